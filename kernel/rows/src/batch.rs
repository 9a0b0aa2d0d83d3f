//! Change batches: rows of one table as the log tells them, in columns, with what the log says about each.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use kernel::position::{Coordinate, Transaction};

use crate::schema::TableSchema;

/// What happened to a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Operation {
    /// It was made.
    Insert = 0,
    /// It was changed, its key was not. (A changed key is a `Delete` of the old row and an `Insert` of the new one.)
    Update = 1,
    /// It is gone.
    Delete = 2,
    /// It was there when a snapshot looked.
    Read = 3,
}

/// Where a row came from. (A table's own phase is `kernel::state::Phase`.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowPhase {
    /// A snapshot chunk.
    Snapshot,
    /// The log.
    Stream,
    /// A read that is repeated from time to time.
    Incremental,
}

/// Rows of one table, in log order.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    /// What the columns are.
    pub schema: Arc<TableSchema>,
    /// The after-image of each row (of a delete: what is known of the old row, its key at least), as `schema.arrow()` says.
    pub data: RecordBatch,
    /// For each column the rows whose value was not sent (not the same as null), or `None` if all were.
    pub absent: Vec<Option<BooleanBuffer>>,
    /// What the log says about the rows.
    pub tail: Tail,
}

/// What the log says about each row: born at the source, never made up downstream.
#[derive(Clone, Debug)]
pub struct Tail {
    /// `__op`, one a row.
    pub operations: Vec<Operation>,
    /// `__pos`, one a row: the place inside its transaction. Non-decreasing within a transaction.
    pub coordinates: Vec<Coordinate>,
    /// The transactions, in order, that together hold all rows.
    pub transactions: Vec<TransactionRun>,
    /// `__ingest_ts`: when the batch was read, microseconds since 1970.
    pub ingest_time: i64,
    /// `__phase` (and `__snapshot`).
    pub phase: RowPhase,
}

/// Neighbouring rows of one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionRun {
    /// Their transaction.
    pub transaction: Transaction,
    /// How many rows.
    pub rows: usize,
    /// `__commit_ts`: when the source committed it, microseconds since 1970, if it says so.
    pub commit_time: Option<i64>,
}

/// Rows of a batch, by range. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The batch.
    pub batch: Arc<ChangeBatch>,
    /// Its rows' encoded keys (empty keys for a table without one).
    pub keys: Arc<crate::key::EncodedKeys>,
    /// Which of its rows.
    pub rows: Range<usize>,
}

impl ChangeBatch {
    /// How many rows.
    pub fn rows(&self) -> usize {
        self.tail.operations.len()
    }

    /// Was the value of this row and column not sent?
    pub fn is_absent(&self, column: usize, row: usize) -> bool {
        self.absent.get(column).and_then(Option::as_ref).is_some_and(|rows| rows.value(row))
    }

    /// Bytes of memory, near enough for a budget.
    pub fn bytes(&self) -> u64 {
        let tail = self.rows() * (1 + size_of::<Coordinate>()) + self.tail.transactions.len() * size_of::<TransactionRun>();
        let absent: usize = self.absent.iter().flatten().map(|b| b.len() / 8).sum();
        (self.data.get_array_memory_size() + tail + absent) as u64
    }
}
