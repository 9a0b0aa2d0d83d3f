//! Change batches: rows of one table as the log tells them, in columns, with what the log says about each.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take_record_batch;
use kernel::id::TableName;
use kernel::position::{Coordinate, Transaction};

use crate::schema::{TableSchema, Type};

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
    /// For each column the rows whose value was not sent (not the same as null), or `None` if all were. A key column is
    /// always there; of a delete, what is not marked absent is taken for the old row's true value.
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

    /// The neighbour that is the old half of a changed key, if these two are of one transaction: a delete of the same change.
    pub(crate) fn moved_from(&self, row: usize) -> Option<usize> {
        let before = row.checked_sub(1)?;
        let Tail { operations, coordinates, .. } = &self.tail;
        let is_one_change = operations[row] == Operation::Insert
            && operations[before] == Operation::Delete
            && coordinates[row].major == coordinates[before].major;
        is_one_change.then_some(before)
    }

    /// These rows alone, in this order, which must be that of the batch.
    pub fn pick(&self, rows: &[usize]) -> Result<Self, ArrowError> {
        let places: UInt64Array = rows.iter().map(|row| *row as u64).collect();
        let data = take_record_batch(&self.data, &places)?;
        let absent = self
            .absent
            .iter()
            .map(|marks| marks.as_ref().map(|marks| BooleanBuffer::collect_bool(rows.len(), |at| marks.value(rows[at]))));
        let (mut transactions, mut end) = (Vec::new(), 0);
        for run in &self.tail.transactions {
            let start = end;
            end += run.rows;
            let rows = rows.iter().filter(|row| (start..end).contains(*row)).count();
            if rows > 0 {
                transactions.push(TransactionRun { rows, ..run.clone() });
            }
        }
        let tail = Tail {
            operations: rows.iter().map(|row| self.tail.operations[*row]).collect(),
            coordinates: rows.iter().map(|row| self.tail.coordinates[*row]).collect(),
            transactions,
            ..self.tail.clone()
        };
        Ok(Self { schema: Arc::clone(&self.schema), data, absent: absent.collect(), tail })
    }

    /// Bytes of memory, near enough for a budget.
    pub fn bytes(&self) -> u64 {
        let tail = self.rows() * (1 + size_of::<Coordinate>()) + self.tail.transactions.len() * size_of::<TransactionRun>();
        let absent: usize = self.absent.iter().flatten().map(|b| b.len() / 8).sum();
        (self.data.get_array_memory_size() + tail + absent) as u64
    }
}

/// A batch that is not what its schema and the rules of this page say: a fault of the driver that made it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a batch of table {table} is malformed: {problem}")]
pub struct MalformedBatch {
    /// The table.
    pub table: TableName,
    /// What is wrong with it.
    pub problem: BatchProblem,
}

/// What is wrong with a batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BatchProblem {
    /// Not as many columns as the schema has.
    #[error("{expected} columns are expected, {found} found")]
    Columns {
        /// How many the schema has.
        expected: usize,
        /// How many the batch has.
        found: usize,
    },
    /// A column that does not lie in memory as its type does.
    #[error("column '{column}' has the type {kind}, so {expected} is expected, {found} found", expected = .kind.arrow())]
    Form {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// How it lies in memory.
        found: DataType,
    },
    /// A part that is not one entry a row.
    #[error("{expected} rows are expected, {found} found in {part}")]
    Rows {
        /// Which part.
        part: &'static str,
        /// How many operations there are.
        expected: usize,
        /// How many the part has.
        found: usize,
    },
    /// A row's key was not sent.
    #[error("row {row}: the key column '{column}' is marked absent")]
    KeyAbsent {
        /// The row.
        row: usize,
        /// The column.
        column: String,
    },
    /// A null where the schema allows none.
    #[error("row {row}: column '{column}' is null, but the schema says that it never is")]
    Null {
        /// The row.
        row: usize,
        /// The column.
        column: String,
    },
    /// A row that stands before its predecessor in the log.
    #[error("row {row}: its coordinate {found:?} is below {before:?}, that of the row before it in the same transaction")]
    Order {
        /// The row.
        row: usize,
        /// The coordinate of the row before it.
        before: Coordinate,
        /// Its own.
        found: Coordinate,
    },
}

impl ChangeBatch {
    /// Checks everything that this page promises of a batch.
    pub fn check(&self) -> Result<(), MalformedBatch> {
        self.check_shape().and_then(|()| self.find_problem_in_rows().map_or(Ok(()), |problem| Err(self.malformed(problem))))
    }

    /// Checks what can be told without looking at rows.
    pub fn check_shape(&self) -> Result<(), MalformedBatch> {
        self.find_problem_in_shape().map_or(Ok(()), |problem| Err(self.malformed(problem)))
    }

    fn malformed(&self, problem: BatchProblem) -> MalformedBatch {
        MalformedBatch { table: self.schema.table.clone(), problem }
    }

    fn find_problem_in_shape(&self) -> Option<BatchProblem> {
        let (expected, found) = (self.schema.columns.len(), self.data.num_columns());
        if expected != found || expected != self.absent.len() {
            return Some(BatchProblem::Columns { expected, found: if expected == found { self.absent.len() } else { found } });
        }
        let rows = |part, found| (found != self.rows()).then_some(BatchProblem::Rows { part, expected: self.rows(), found });
        rows("the data", self.data.num_rows())
            .or_else(|| rows("the coordinates", self.tail.coordinates.len()))
            .or_else(|| rows("the transactions", self.tail.transactions.iter().map(|run| run.rows).sum()))
            .or_else(|| self.absent.iter().flatten().find_map(|marks| rows("the marks of absent values", marks.len())))
            .or_else(|| self.find_form())
    }

    fn find_form(&self) -> Option<BatchProblem> {
        self.schema.columns.iter().zip(self.data.columns()).find_map(|(column, data)| {
            let (name, kind, found) = (&column.name, &column.kind, data.data_type());
            (kind.arrow() != *found).then(|| BatchProblem::Form {
                column: name.clone(),
                kind: kind.clone(),
                found: found.clone(),
            })
        })
    }

    fn find_problem_in_rows(&self) -> Option<BatchProblem> {
        (0..self.schema.columns.len())
            .find_map(|column| self.find_absent_key(column).or_else(|| self.find_null(column)))
            .or_else(|| self.find_disorder())
    }

    fn find_absent_key(&self, column: usize) -> Option<BatchProblem> {
        let row = self.absent[column].as_ref().filter(|_| self.schema.is_key(column))?.set_indices().next()?;
        Some(BatchProblem::KeyAbsent { row, column: self.schema.columns[column].name.clone() })
    }

    fn find_null(&self, column: usize) -> Option<BatchProblem> {
        let described = &self.schema.columns[column];
        let nulls = self.data.column(column).nulls().filter(|nulls| !described.nullable && nulls.null_count() > 0)?;
        let is_image = |row: &usize| self.tail.operations[*row] != Operation::Delete && !self.is_absent(column, *row);
        let row = (0..self.rows()).filter(|row| nulls.is_null(*row)).find(is_image)?;
        Some(BatchProblem::Null { row, column: described.name.clone() })
    }

    fn find_disorder(&self) -> Option<BatchProblem> {
        let mut start = 0;
        for run in &self.tail.transactions {
            let coordinates = &self.tail.coordinates[start..start + run.rows];
            if let Some(at) = coordinates.windows(2).position(|pair| pair[1] < pair[0]) {
                return Some(BatchProblem::Order { row: start + at + 1, before: coordinates[at], found: coordinates[at + 1] });
            }
            start += run.rows;
        }
        None
    }
}
