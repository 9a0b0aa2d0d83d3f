//! Rows of one table that grow into a change batch.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::ArrowError;
use kernel::position::{Coordinate, Transaction};

use super::ColumnBuilder;
use crate::batch::{ChangeBatch, Operation, RowPhase, Tail, TransactionRun};
use crate::schema::TableSchema;

/// Rows of one table under one schema. A row is a value in each column, then [`BatchBuilder::tell`].
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<TableSchema>,
    columns: Vec<ColumnBuilder>,
    /// For each column, which rows lack it, as far as any did.
    absent: Vec<Option<BooleanBufferBuilder>>,
    operations: Vec<Operation>,
    coordinates: Vec<Coordinate>,
    transactions: Vec<TransactionRun>,
}

impl BatchBuilder {
    /// An empty batch with room for some rows.
    pub fn new(schema: Arc<TableSchema>, rows: usize) -> Self {
        Self {
            columns: schema.columns.iter().map(|column| ColumnBuilder::new(&column.kind, rows)).collect(),
            absent: schema.columns.iter().map(|_| None).collect(),
            operations: Vec::with_capacity(rows),
            coordinates: Vec::with_capacity(rows),
            transactions: Vec::new(),
            schema,
        }
    }

    /// What its rows look like.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// How many rows are complete.
    pub fn rows(&self) -> usize {
        self.operations.len()
    }

    /// A column, to append the row's value to.
    pub fn column(&mut self, place: usize) -> &mut ColumnBuilder {
        &mut self.columns[place]
    }

    /// Has the row that is not complete yet its value in this column?
    pub fn is_filled(&self, place: usize) -> bool {
        self.columns[place].len() > self.rows()
    }

    /// The row's value in this column was not sent.
    pub fn append_absent(&mut self, place: usize) {
        let row = self.rows();
        self.columns[place].append_null();
        let absent = self.absent[place].get_or_insert_with(|| BooleanBufferBuilder::new(row + 1));
        absent.resize(row);
        absent.append(true);
    }

    /// Completes the row: what the log says of it.
    pub fn tell(&mut self, operation: Operation, coordinate: Coordinate, of: &Transaction, commit_time: Option<i64>) {
        self.operations.push(operation);
        self.coordinates.push(coordinate);
        match self.transactions.last_mut() {
            Some(run) if run.transaction == *of => run.rows += 1,
            _ => self.transactions.push(TransactionRun { transaction: of.clone(), rows: 1, commit_time }),
        }
    }

    /// Takes away all but the first `rows` rows, and what a row that was refused left behind.
    pub fn take_back(&mut self, rows: usize) {
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

    /// The batch. An error is a fault of who filled it.
    pub fn finish(self, ingest_time: i64, phase: RowPhase) -> Result<ChangeBatch, ArrowError> {
        let rows = self.rows();
        let absent = self.absent.into_iter().map(|absent| absent.and_then(|absent| bits(absent, rows))).collect();
        let columns: Result<Vec<_>, _> =
            self.columns.into_iter().zip(&self.schema.columns).map(|(built, column)| built.finish(&column.kind)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let data = RecordBatch::try_new_with_options(Arc::new(self.schema.arrow()), columns?, &options)?;
        let (operations, coordinates, transactions) = (self.operations, self.coordinates, self.transactions);
        let tail = Tail { operations, coordinates, transactions, ingest_time, phase };
        Ok(ChangeBatch { schema: self.schema, data, absent, tail })
    }
}

/// `None` if no row is marked any more.
fn bits(mut marked: BooleanBufferBuilder, rows: usize) -> Option<BooleanBuffer> {
    marked.resize(rows);
    Some(marked.build()).filter(|marked| marked.count_set_bits() > 0)
}
