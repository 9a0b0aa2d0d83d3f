//! A change batch that grows: images of rows into columns, with what the log says about each.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::ArrowError;
use kernel::position::{Coordinate, Transaction};
use rows::{ChangeBatch, Operation, RowPhase, TableSchema, Tail, TransactionRun};

use super::table::Table;
use crate::envelope::Image;
use crate::json::{Cursor, Kind, Value};
use crate::values::{ColumnBuilder, Misfit, Options, Reading};

/// What an image of a row says about the columns that it does not have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fill<'a> {
    /// It is the whole row: a column that it does not have did not exist when it was written, and is null. A value that was
    /// not sent is taken from the old row, if that is whole too.
    Whole {
        /// The whole old row.
        old: Option<Image<'a>>,
    },
    /// It is what is left of an old row: other columns are not known.
    Partial,
    /// As `Partial`, and only its key columns are to be trusted.
    KeyOnly,
}

/// Why a row is not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// A value does not go into its column.
    Value { column: String, expected: String, misfit: Misfit },
    /// A key column has no value.
    Key { column: String, found: &'static str },
    /// The row has a field that the table has not.
    UnknownField { name: String },
    /// The row names a field twice.
    Twice { column: String },
    /// The row is not there at all, or its schema part makes no sense.
    Row { what: String },
}

/// Rows of one table.
pub(super) struct BatchBuilder {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnBuilder>,
    absent: Vec<Option<BooleanBufferBuilder>>,
    operations: Vec<Operation>,
    coordinates: Vec<Coordinate>,
    transactions: Vec<TransactionRun>,
}

impl BatchBuilder {
    pub(super) fn new(schema: Arc<TableSchema>, rows: usize) -> Self {
        Self {
            columns: schema.columns.iter().map(|column| ColumnBuilder::new(&column.kind, rows)).collect(),
            absent: schema.columns.iter().map(|_| None).collect(),
            operations: Vec::with_capacity(rows),
            coordinates: Vec::with_capacity(rows),
            transactions: Vec::new(),
            schema,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.operations.len()
    }

    /// Appends the columns of a row; [`BatchBuilder::tell`] completes it.
    pub(super) fn push(&mut self, table: &mut Table, image: Image<'_>, fill: Fill<'_>, options: &Options) -> Result<(), Refusal> {
        let row = self.rows();
        let key_only = matches!(fill, Fill::KeyOnly);
        for member in 0..image.len() {
            let Some((name, value)) = image.member(member) else { break };
            let Some(place) = table.column_of(member, &name) else {
                if key_only {
                    continue;
                }
                return Err(Refusal::UnknownField { name: name.text().unwrap_or_default().into_owned() });
            };
            if key_only && !table.is_key[place] {
                continue;
            }
            if self.columns[place].len() > row {
                return Err(Refusal::Twice { column: self.schema.columns[place].name.clone() });
            }
            self.push_value(table, place, value, fill, options)?;
        }
        self.push_missing(table, fill)
    }

    fn push_value(
        &mut self,
        table: &Table,
        place: usize,
        value: Value<'_>,
        fill: Fill<'_>,
        options: &Options,
    ) -> Result<(), Refusal> {
        let column = &self.schema.columns[place];
        let reading = &table.readings[place];
        let mut value = value;
        if is_unavailable(value, reading, options) {
            let old = match fill {
                Fill::Whole { old: Some(old) } => old.get(&column.name).filter(|old| !is_unavailable(*old, reading, options)),
                _ => None,
            };
            match old {
                Some(old) => value = old,
                None if table.is_key[place] => {
                    return Err(Refusal::Key {
                        column: column.name.clone(),
                        found: "a placeholder for a value that was not sent",
                    });
                }
                None => {
                    self.columns[place].push_null();
                    self.mark_absent(place);
                    return Ok(());
                }
            }
        }
        if value.kind == Kind::Null && table.is_key[place] {
            return Err(Refusal::Key { column: column.name.clone(), found: "null" });
        }
        // Of an old row, a null may stand for what the connector did not know, whatever the column allows.
        let nullable = column.nullable || !matches!(fill, Fill::Whole { .. });
        self.columns[place].push(reading, value, nullable).map_err(|misfit| Refusal::Value {
            column: column.name.clone(),
            expected: column.kind.to_string(),
            misfit,
        })
    }

    fn push_missing(&mut self, table: &Table, fill: Fill<'_>) -> Result<(), Refusal> {
        let row = self.rows();
        for place in 0..self.columns.len() {
            if self.columns[place].len() > row {
                continue;
            }
            let column = &self.schema.columns[place];
            if table.is_key[place] {
                return Err(Refusal::Key { column: column.name.clone(), found: "nothing" });
            }
            match fill {
                Fill::Whole { .. } if !column.nullable => {
                    let misfit = Misfit::new("nothing");
                    return Err(Refusal::Value { column: column.name.clone(), expected: column.kind.to_string(), misfit });
                }
                Fill::Whole { .. } => self.columns[place].push_null(),
                Fill::Partial | Fill::KeyOnly => {
                    self.columns[place].push_null();
                    self.mark_absent(place);
                }
            }
        }
        Ok(())
    }

    fn mark_absent(&mut self, place: usize) {
        let row = self.rows();
        let absent = self.absent[place].get_or_insert_with(|| BooleanBufferBuilder::new(row + 1));
        absent.resize(row);
        absent.append(true);
    }

    /// Takes back what a row that was refused left behind.
    pub(super) fn take_back(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        for absent in self.absent.iter_mut().flatten() {
            absent.truncate(rows.min(absent.len()));
        }
        while self.rows() > rows {
            self.operations.pop();
            self.coordinates.pop();
            if let Some(run) = self.transactions.last_mut() {
                run.rows -= 1;
                if run.rows == 0 {
                    self.transactions.pop();
                }
            }
        }
    }

    /// Completes the row that was appended.
    pub(super) fn tell(&mut self, operation: Operation, coordinate: Coordinate, of: &Transaction, commit_time: Option<i64>) {
        self.operations.push(operation);
        self.coordinates.push(coordinate);
        match self.transactions.last_mut() {
            Some(run) if run.transaction == *of => run.rows += 1,
            _ => self.transactions.push(TransactionRun { transaction: of.clone(), rows: 1, commit_time }),
        }
    }

    /// The batch. An error is a fault of ours.
    pub(super) fn finish(self, ingest_time: i64) -> Result<ChangeBatch, ArrowError> {
        let rows = self.rows();
        let absent = self.absent.into_iter().map(|absent| absent.and_then(|absent| bits(absent, rows))).collect();
        let columns: Result<Vec<_>, _> =
            self.columns.into_iter().zip(&self.schema.columns).map(|(built, column)| built.finish(&column.kind)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let data = RecordBatch::try_new_with_options(Arc::new(self.schema.arrow()), columns?, &options)?;
        let tail = Tail {
            operations: self.operations,
            coordinates: self.coordinates,
            transactions: self.transactions,
            ingest_time,
            // Rows that a connector's snapshot found came by this log like all others: `Operation::Read` tells them.
            phase: RowPhase::Stream,
        };
        Ok(ChangeBatch { schema: self.schema, data, absent, tail })
    }
}

/// `None` if no row is marked any more.
fn bits(mut marked: BooleanBufferBuilder, rows: usize) -> Option<BooleanBuffer> {
    marked.resize(rows);
    Some(marked.build()).filter(|marked| marked.count_set_bits() > 0)
}

/// Did the connector not send this value? Its placeholder stands in a string, in an array of one, in a map of one; where
/// bytes are expected, in base64 too.
pub(crate) fn is_unavailable(value: Value<'_>, reading: &Reading, options: &Options) -> bool {
    let placeholder = options.unavailable.as_str();
    match value.kind {
        Kind::String => {
            value.is_text(placeholder)
                || matches!(reading, Reading::Bytes(_) | Reading::Decimal(_)) && value.is_text(&options.unavailable_base64)
        }
        Kind::Array | Kind::Object if value.raw.len() <= 2 * placeholder.len() + 16 => is_unavailable_inside(value, placeholder),
        _ => false,
    }
}

fn is_unavailable_inside(value: Value<'_>, placeholder: &str) -> bool {
    let mut cursor = Cursor::new(value.raw);
    let mut first = true;
    if cursor.enter(b'[') {
        let mut next = || cursor.element(&mut first).ok().filter(|there| *there).and_then(|_| cursor.value().ok());
        return next().is_some_and(|only| only.is_text(placeholder)) && next().is_none();
    }
    cursor.enter(b'{');
    let name = cursor.name(&mut first).ok().flatten();
    let item = cursor.value().ok();
    name.is_some_and(|name| name.is_text(placeholder))
        && item.is_some_and(|item| item.is_text(placeholder))
        && matches!(cursor.name(&mut first), Ok(None))
}
