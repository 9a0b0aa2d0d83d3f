//! Netted rows as batches of a data file: the table's columns in its types, some thousand rows at a time so that a large
//! checkpoint is never held twice.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_schema::ArrowError;
use arrow_select::filter::{filter, filter_record_batch};
use contract::{Error, Kind};
use kernel::id::TableName;
use kernel::position::Cut;
use rows::Netted;

use crate::table::columns::cast;
use crate::table::{Layout, Values};

/// Netted rows, to be taken piece by piece.
pub(super) struct FileRows<'a> {
    layout: &'a Layout,
    table: &'a TableName,
    upserts: RecordBatch,
    /// The metadata columns whole; they are small.
    tails: Vec<Option<ArrayRef>>,
}

impl<'a> FileRows<'a> {
    /// The upserted rows, without those that `covered` covers. Refuses them whole if a key is null.
    pub(super) fn new(layout: &'a Layout, rows: &'a Netted, covered: Option<&Cut>) -> Result<Self, Error> {
        let table = &rows.schema.table;
        for column in &layout.key {
            let values = rows.upserts.columns().get(column.source);
            if values.is_none_or(|values| values.null_count() > 0) {
                return Err(rejected(format!("column '{}' of '{table}' is in the key and is null in a row", column.name)));
            }
        }
        let tail = |values: &Values| match values {
            Values::Tail(column) => Some(column.values(rows)),
            Values::Source(_) | Values::Null => None,
        };
        let all = Self { layout, table, upserts: rows.upserts.clone(), tails: layout.values.iter().map(tail).collect() };
        match covered.map(|cut| not_covered(rows, cut)).filter(|keep| keep.true_count() < keep.len()) {
            Some(keep) => all.only(&keep),
            None => Ok(all),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.upserts.num_rows()
    }

    /// Some of them as a batch of a data file.
    pub(super) fn batch(&self, range: Range<usize>) -> Result<RecordBatch, Error> {
        let length = range.len();
        let columns =
            self.layout.values.iter().zip(self.layout.arrow.fields()).zip(&self.tails).map(|((values, field), tail)| {
                let array = match (values, tail) {
                    (Values::Source(index), _) => self.upserts.column(*index).slice(range.start, length),
                    (Values::Tail(_), Some(tail)) => tail.slice(range.start, length),
                    (Values::Tail(_) | Values::Null, _) => new_null_array(field.data_type(), length),
                };
                cast(&array, field.data_type())
                    .map_err(|e| rejected(format!("column '{}' of '{}' does not fit its table: {e}", field.name(), self.table)))
            });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(Arc::clone(&self.layout.arrow), columns)
            .map_err(|e| rejected(format!("rows of '{}' do not fit their table: {e}", self.table)))
    }

    fn only(self, keep: &BooleanArray) -> Result<Self, Error> {
        let failed = |e: ArrowError| rejected(format!("rows of '{}' cannot be told apart: {e}", self.table));
        let upserts = filter_record_batch(&self.upserts, keep).map_err(failed)?;
        let tails = self.tails.iter().map(|tail| tail.as_ref().map(|tail| filter(tail, keep)).transpose());
        let tails = tails.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        tracing::info!(table = %self.table, rows = keep.len() - keep.true_count(), "rows that the table has already are left out");
        Ok(Self { upserts, tails, ..self })
    }
}

/// Marks the rows that a cut does not cover.
fn not_covered(rows: &Netted, cut: &Cut) -> BooleanArray {
    let tail = &rows.upsert_tail;
    let transactions = tail.transactions.iter().flat_map(|run| std::iter::repeat_n(&run.transaction, run.rows));
    transactions.zip(&tail.coordinates).map(|(transaction, at)| Some(!cut.covers(transaction, *at))).collect()
}

fn rejected(what: String) -> Error {
    Error::new(Kind::Rejected, "iceberg-rows-refused", what, "mend the rows at the source or change the table, then resume it")
}
