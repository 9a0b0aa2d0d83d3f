//! A change batch that grows: rows of the log into columns, with what the log says about each.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use kernel::position::{Coordinate, Transaction};
use rows::{ChangeBatch, Operation, RowPhase, TableSchema, Tail, TransactionRun};

use super::refusal::Refusal;
use super::relation::Bound;
use crate::pgoutput::{Datum, Tuple};
use crate::values::ColumnBuilder;

/// What of a row there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Image<'a> {
    /// All of it; what was not sent stands in the old row, if that is whole.
    Whole { row: Tuple<'a>, old: Option<Tuple<'a>> },
    /// The columns of its identity.
    Identity(Tuple<'a>),
}

/// Rows of one table under one schema.
pub(super) struct BatchBuilder {
    pub(super) schema: Arc<TableSchema>,
    columns: Vec<ColumnBuilder>,
    /// For each column, which rows lack it, as far as any did.
    absent: Vec<Vec<bool>>,
    operations: Vec<Operation>,
    coordinates: Vec<Coordinate>,
    transactions: Vec<TransactionRun>,
}

impl BatchBuilder {
    pub(super) fn new(schema: Arc<TableSchema>) -> Self {
        Self {
            columns: schema.columns.iter().map(|column| ColumnBuilder::new(&column.kind)).collect(),
            absent: schema.columns.iter().map(|_| Vec::new()).collect(),
            operations: Vec::new(),
            coordinates: Vec::new(),
            transactions: Vec::new(),
            schema,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.operations.len()
    }

    /// Appends a row. If it is refused, nothing is appended.
    pub(super) fn push(
        &mut self,
        bound: &Bound,
        image: Image<'_>,
        operation: Operation,
        coordinate: Coordinate,
        transaction: (&Transaction, i64),
    ) -> Result<(), Refusal> {
        let rows = self.rows();
        let absent_before: Vec<usize> = self.absent.iter().map(Vec::len).collect();
        if let Err(refusal) = self.push_values(bound, image) {
            for column in &mut self.columns {
                column.truncate(rows);
            }
            for (marks, len) in self.absent.iter_mut().zip(absent_before) {
                marks.truncate(len);
            }
            return Err(refusal);
        }
        self.operations.push(operation);
        self.coordinates.push(coordinate);
        match self.transactions.last_mut() {
            Some(run) if run.transaction == *transaction.0 => run.rows += 1,
            _ => self.transactions.push(TransactionRun {
                transaction: transaction.0.clone(),
                rows: 1,
                commit_time: Some(transaction.1),
            }),
        }
        Ok(())
    }

    /// Takes away all but the first `rows` rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        let mut gone = self.rows().saturating_sub(rows);
        for column in &mut self.columns {
            column.truncate(rows);
        }
        for marks in &mut self.absent {
            marks.truncate(rows);
        }
        self.operations.truncate(rows);
        self.coordinates.truncate(rows);
        while let Some(run) = self.transactions.last_mut().filter(|_| gone > 0) {
            let of_run = run.rows.min(gone);
            run.rows -= of_run;
            gone -= of_run;
            if run.rows == 0 {
                self.transactions.pop();
            }
        }
    }

    fn push_values(&mut self, bound: &Bound, image: Image<'_>) -> Result<(), Refusal> {
        let (row, old, is_whole) = match image {
            Image::Whole { row, old } => (row, old, true),
            Image::Identity(row) => (row, None, false),
        };
        let shape = |values: usize| match values == bound.places.len() {
            true => Ok(()),
            false => Err(Refusal::Shape { columns: bound.places.len(), values }),
        };
        shape(row.len())?;
        old.map_or(Ok(()), |old| shape(old.len()))?;
        let mut old = old.map(|old| old.values());
        for (place, datum) in bound.places.iter().zip(row.values()) {
            let before = old.as_mut().and_then(Iterator::next);
            let name = || self.schema.columns[place.column].name.clone();
            let datum = match (datum, before) {
                (Datum::Unchanged, Some(before)) if before != Datum::Unchanged => before,
                (Datum::Unchanged, _) => return Err(Refusal::Unsent { column: name() }),
                (datum, _) => datum,
            };
            let has_it = is_whole || place.in_identity;
            if has_it && datum == Datum::Null && self.schema.is_key(place.column) {
                return Err(Refusal::NullKey { column: name() });
            }
            if !has_it {
                let marks = &mut self.absent[place.column];
                marks.resize(self.operations.len(), false);
                marks.push(true);
            }
            let kind = &self.schema.columns[place.column].kind;
            self.columns[place.column]
                .append(&place.kind, if has_it { datum } else { Datum::Null })
                .map_err(|misfit| Refusal::Value { column: name(), kind: kind.clone(), misfit })?;
        }
        Ok(())
    }

    /// The batch. An error is a fault of ours.
    pub(super) fn finish(self, ingest_time: i64) -> Result<ChangeBatch, ArrowError> {
        let rows = self.rows();
        let columns: Result<Vec<_>, _> =
            self.columns.into_iter().zip(&self.schema.columns).map(|(column, of)| column.finish(&of.kind)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let data = RecordBatch::try_new_with_options(Arc::new(self.schema.arrow()), columns?, &options)?;
        let absent = self.absent.into_iter().map(|mut marks| {
            if marks.is_empty() {
                return None;
            }
            marks.resize(rows, false);
            Some(BooleanBuffer::from(marks))
        });
        let tail = Tail {
            operations: self.operations,
            coordinates: self.coordinates,
            transactions: self.transactions,
            ingest_time,
            phase: RowPhase::Stream,
        };
        Ok(ChangeBatch { absent: absent.collect(), schema: self.schema, data, tail })
    }
}
