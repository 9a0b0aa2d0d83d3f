//! A small table to test with: `id int64, status string, total decimal(12,2)`, the key is `id`.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::BooleanBuffer;
use kernel::position::{Coordinate, Offset, Transaction};
use rows::{ChangeBatch, Column, EncodedKeys, Operation, RowPhase, Slice, TableSchema, Tail, TransactionRun, Type};

/// A column's value in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell<T> {
    Is(T),
    Null,
    /// Not sent.
    Absent,
}

use Cell::{Absent, Is, Null};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) operation: Operation,
    /// Which transaction, by its offset.
    pub(crate) transaction: u64,
    pub(crate) coordinate: (u64, u32),
    pub(crate) id: i64,
    pub(crate) status: Cell<String>,
    pub(crate) total: Cell<i128>,
}

pub(crate) fn schema() -> Arc<TableSchema> {
    let columns = vec![
        Column::new("id", Type::Int64, false),
        Column::new("status", Type::String, true),
        Column::new("total", Type::Decimal { precision: 12, scale: 2 }, true),
    ];
    Arc::new(TableSchema::new("shop.orders".into(), columns, vec![0]).expect("valid"))
}

pub(crate) fn row(operation: Operation, coordinate: (u64, u32), id: i64, status: &str, total: i128) -> Row {
    Row { operation, transaction: 0, coordinate, id, status: Is(status.into()), total: Is(total) }
}

/// The row of a delete whose old values were not sent.
pub(crate) fn delete(coordinate: (u64, u32), id: i64) -> Row {
    Row { operation: Operation::Delete, transaction: 0, coordinate, id, status: Absent, total: Absent }
}

impl Row {
    pub(crate) fn without_status(self) -> Self {
        Self { status: Absent, ..self }
    }

    pub(crate) fn without_total(self) -> Self {
        Self { total: Absent, ..self }
    }

    pub(crate) fn null_total(self) -> Self {
        Self { total: Null, ..self }
    }

    pub(crate) fn of(self, transaction: u64) -> Self {
        Self { transaction, ..self }
    }
}

fn value<T: Clone>(cell: &Cell<T>) -> Option<T> {
    if let Is(value) = cell { Some(value.clone()) } else { None }
}

fn marks<T: PartialEq>(cells: Vec<&Cell<T>>) -> Option<BooleanBuffer> {
    let marks = BooleanBuffer::collect_bool(cells.len(), |row| *cells[row] == Absent);
    (marks.count_set_bits() > 0).then_some(marks)
}

pub(crate) fn transaction(at: u64) -> Transaction {
    Transaction { stream: "log".into(), at: Offset(at) }
}

pub(crate) fn data(rows: &[Row]) -> RecordBatch {
    let totals: Decimal128Array = rows.iter().map(|row| value(&row.total)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.id)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| value(&row.status)).collect::<StringArray>()),
        Arc::new(totals.with_precision_and_scale(12, 2).expect("fits")),
    ];
    RecordBatch::try_new(Arc::new(schema().arrow()), columns).expect("a batch")
}

pub(crate) fn batch(rows: &[Row]) -> ChangeBatch {
    let mut transactions: Vec<TransactionRun> = Vec::new();
    for row in rows {
        let of = transaction(row.transaction);
        match transactions.last_mut() {
            Some(run) if run.transaction == of => run.rows += 1,
            _ => transactions.push(TransactionRun {
                transaction: of,
                rows: 1,
                commit_time: Some(1_000 + i64::try_from(row.transaction).unwrap()),
            }),
        }
    }
    ChangeBatch {
        schema: schema(),
        data: data(rows),
        absent: vec![
            None,
            marks(rows.iter().map(|row| &row.status).collect()),
            marks(rows.iter().map(|row| &row.total).collect()),
        ],
        tail: Tail {
            operations: rows.iter().map(|row| row.operation).collect(),
            coordinates: rows.iter().map(|row| Coordinate { major: row.coordinate.0, minor: row.coordinate.1 }).collect(),
            transactions,
            ingest_time: 7_000,
            phase: RowPhase::Stream,
        },
    }
}

/// The batch and its keys, all rows.
pub(crate) fn slice(rows: &[Row]) -> Slice {
    let batch = batch(rows);
    let keys = Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).expect("keys"));
    Slice { batch: Arc::new(batch), keys, rows: 0..rows.len() }
}
