//! A log of changes in memory, of one stream or several.
//!
//! Each change takes one offset of its stream, an empty transaction too; a transaction is named by its first offset. A
//! change's place in its transaction is its number there, whichever tables are read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::concat_batches;
use async_trait::async_trait;
use kernel::id::{Identity, StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::{ChangeBatch, Operation, RowPhase, TableSchema, Tail, TransactionRun};

use super::chunks::{identity, name};
use crate::{
    Chunks, Error, Finding, Kind, Limit, LogEvent, LogRead, LogReader, OpenedLog, RowsByKey, Source, SourceTable, Start,
    TableRequest,
};

/// One change. Rows are batches of one row, under the schema that the table has at that place of the log.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A row was made.
    Insert(TableName, RecordBatch),
    /// A row was changed, its key was not.
    Update(TableName, RecordBatch),
    /// A row got another key: the old row, the new one.
    Rekey(TableName, RecordBatch, RecordBatch),
    /// A row was changed, and the log leaves the values of these columns out, which the row had before.
    UpdateWithout(TableName, RecordBatch, Vec<usize>),
    /// A row got another key: the old row, the new one, of which the log leaves the values of these columns out.
    RekeyWithout(TableName, RecordBatch, RecordBatch, Vec<usize>),
    /// A row is gone.
    Delete(TableName, RecordBatch),
    /// All rows are gone.
    Truncate(TableName),
    /// The table's rows have another schema from here on.
    Schema(Arc<TableSchema>),
    /// A change that cannot be taken.
    Refused(TableName, Error),
    /// Something that cannot be read and belongs to no table: nothing behind it can be read either.
    Poison(Error),
}

/// A log, to be written by a test and read by a [`MemorySource`].
#[derive(Clone)]
pub struct MemoryLog(Arc<Mutex<Log>>);

pub(super) struct Log {
    pub(super) identity: Identity,
    pub(super) tables: BTreeMap<TableName, Arc<TableSchema>>,
    pub(super) transactions: Vec<Logged>,
    pub(super) end: Position,
    floor: Position,
    acknowledged: Position,
    discards_acknowledged: bool,
    finished: bool,
    /// Can its tables be read? Then with these rows, which are older than the log.
    pub(super) older: Option<BTreeMap<TableName, Vec<RecordBatch>>>,
    /// So many transactions are visible to who reads the tables; all, if nothing is said.
    pub(super) visible: Option<usize>,
}

pub(super) struct Logged {
    pub(super) transaction: Transaction,
    upto: Position,
    pub(super) changes: Vec<Change>,
    commit_time: Option<i64>,
}

impl MemoryLog {
    /// An empty log of these tables. `identity` tells it from other histories.
    pub fn new(identity: &str, tables: impl IntoIterator<Item = TableSchema>) -> Self {
        let tables = tables.into_iter().map(|schema| (schema.table.clone(), Arc::new(schema))).collect();
        Self(Arc::new(Mutex::new(Log {
            identity: Identity::from(identity),
            tables,
            transactions: Vec::new(),
            end: Position::START,
            floor: Position::START,
            acknowledged: Position::START,
            discards_acknowledged: false,
            finished: false,
            older: None,
            visible: None,
        })))
    }

    /// A log of tables that can be read, too. They hold these rows, each a batch of one, that are older than the log.
    #[must_use]
    pub fn with_rows(self, table: &TableName, rows: impl IntoIterator<Item = RecordBatch>) -> Self {
        self.lock().older.get_or_insert_default().entry(table.clone()).or_default().extend(rows);
        self
    }

    /// Transactions that come from now on are in the log, and not visible to who reads the tables.
    pub fn hide(&self) {
        let mut log = self.lock();
        log.visible = Some(log.transactions.len());
    }

    /// Everything is visible.
    pub fn show(&self) {
        self.lock().visible = None;
    }

    /// A source that reads it.
    pub fn source(&self) -> MemorySource {
        MemorySource(self.clone())
    }

    /// Adds a transaction to the log's one stream. Answers where it ends.
    pub fn transaction(&self, changes: Vec<Change>) -> Position {
        self.transaction_in("", changes, None)
    }

    /// Adds a transaction to one of the log's streams, committed at a time (microseconds since 1970). Answers where it ends.
    pub fn transaction_in(&self, stream: &str, changes: Vec<Change>, commit_time: Option<i64>) -> Position {
        let mut log = self.lock();
        let stream = StreamName::from(stream);
        let at = log.end.offset(&stream);
        let length = u64::try_from(changes.len()).unwrap_or(u64::MAX).max(1);
        let upto = Position::of(stream.clone(), Offset(at.0.saturating_add(length)));
        log.end.join_with(&upto);
        // In a log of several streams 'up to here' is of this stream alone: the others may be read further or less far.
        log.transactions.push(Logged { transaction: Transaction { stream, at }, upto: upto.clone(), changes, commit_time });
        upto
    }

    /// Says that nothing will come any more.
    pub fn finish(&self) {
        self.lock().finished = true;
    }

    /// Forgets what is in `upto`: it can no longer be streamed.
    pub fn discard(&self, upto: &Position) {
        self.lock().floor.join_with(upto);
    }

    /// From now on what is acknowledged is forgotten at once.
    pub fn discard_acknowledged(&self) {
        let mut log = self.lock();
        log.discards_acknowledged = true;
        let acknowledged = log.acknowledged.clone();
        log.floor.join_with(&acknowledged);
    }

    /// What was acknowledged so far.
    pub fn acknowledged(&self) -> Position {
        self.lock().acknowledged.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Log> {
        // What is behind the lock is whole at every moment, so a panic elsewhere is no reason to stop.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to a [`MemoryLog`].
#[derive(Clone)]
pub struct MemorySource(pub(super) MemoryLog);

#[async_trait]
impl Source for MemorySource {
    async fn preflight(&self, _tables: &[TableRequest]) -> Vec<Finding> {
        Vec::new()
    }

    async fn describe(
        &self,
        tables: &[TableRequest],
        stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error> {
        let log = self.0.lock();
        let missing: Vec<&str> =
            tables.iter().map(|t| &t.table).filter(|t| !log.tables.contains_key(*t)).map(TableName::as_str).collect();
        if !missing.is_empty() {
            let what = format!("the log has no table {}", missing.join(", "));
            return Err(Error::new(Kind::Config, "memory-no-table", what, "name tables that it has"));
        }
        let known = |table: &TableName| stored.get(table).or_else(|| log.tables.get(table)).cloned();
        let describe = |request: &TableRequest| Some(SourceTable { schema: known(&request.table)?, inferred: false });
        Ok(tables.iter().filter_map(describe).collect())
    }

    async fn discover(&self) -> Result<Vec<TableName>, Error> {
        Ok(self.0.lock().tables.keys().cloned().collect())
    }

    async fn open(&self) -> Result<OpenedLog, Error> {
        let log = self.0.lock();
        Ok(OpenedLog { identity: identity(&log), floor: log.floor.clone(), end: log.end.clone() })
    }

    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error> {
        let from = &start.from;
        let floor = self.0.lock().floor.clone();
        if !from.contains(&floor) {
            let what = format!("the log begins at {floor}, reading was to go on at {from}");
            return Err(Error::new(Kind::PositionLost, "memory-position-lost", what, "copy the tables anew into another target"));
        }
        let schemas = tables.iter().map(|schema| (schema.table.clone(), Arc::clone(schema))).collect();
        Ok(Box::new(MemoryReader { log: self.0.clone(), from: from.clone(), schemas, transaction: 0, change: 0 }))
    }

    fn begins_with_log(&self) -> bool {
        self.chunks().is_none()
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        self.0.lock().older.is_some().then_some(self as &dyn Chunks)
    }

    fn rows_by_key(&self) -> Option<&dyn RowsByKey> {
        self.0.lock().older.is_some().then_some(self as &dyn RowsByKey)
    }

    async fn acknowledge(&self, upto: &Position) -> Result<(), Error> {
        let mut log = self.0.lock();
        log.acknowledged.join_with(upto);
        if log.discards_acknowledged {
            log.floor.join_with(upto);
        }
        Ok(())
    }
}

struct MemoryReader {
    log: MemoryLog,
    from: Position,
    schemas: BTreeMap<TableName, Arc<TableSchema>>,
    /// The transaction that comes next, by its number in the log, and the change in it.
    transaction: usize,
    change: usize,
}

#[async_trait]
impl LogReader for MemoryReader {
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error> {
        let read = self.read(limit)?;
        if read.events.is_empty() && !read.finished {
            let mut waited = false;
            std::future::poll_fn(|context| match std::mem::replace(&mut waited, true) {
                true => Poll::Ready(()),
                false => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await;
        }
        Ok(read)
    }
}

impl MemoryReader {
    fn read(&mut self, limit: Limit) -> Result<LogRead, Error> {
        let log = self.log.clone();
        let log = log.lock();
        let mut read = Building::default();
        while let Some(logged) = log.transactions.get(self.transaction) {
            if self.from.contains_transaction(&logged.transaction) {
                self.transaction += 1;
                continue;
            }
            read.names.insert(logged.transaction.clone(), name(&logged.transaction));
            while let Some(change) = logged.changes.get(self.change) {
                if read.rows >= limit.rows || read.bytes >= limit.bytes {
                    return read.finish(false);
                }
                if let Change::Poison(error) = change {
                    // After everything before it: with the next read, if this one has something.
                    return if read.events.is_empty() { Err(error.clone()) } else { read.finish(false) };
                }
                read.add(change, self.change, logged, &mut self.schemas);
                self.change += 1;
            }
            let (transaction, upto, commit_time) = (logged.transaction.clone(), logged.upto.clone(), logged.commit_time);
            read.events.push(LogEvent::Ended { transaction, upto, commit_time });
            (self.transaction, self.change) = (self.transaction + 1, 0);
        }
        read.finish(log.finished)
    }
}

/// A read that is being put together: one batch a table and schema.
#[derive(Default)]
struct Building {
    events: Vec<LogEvent>,
    batches: Vec<BatchRows>,
    names: BTreeMap<Transaction, TransactionName>,
    rows: usize,
    bytes: u64,
}

struct BatchRows {
    schema: Arc<TableSchema>,
    rows: Vec<RecordBatch>,
    /// For each row the columns that the log leaves out.
    without: Vec<Vec<usize>>,
    operations: Vec<Operation>,
    coordinates: Vec<Coordinate>,
    transactions: Vec<TransactionRun>,
}

impl Building {
    fn add(&mut self, change: &Change, number: usize, logged: &Logged, schemas: &mut BTreeMap<TableName, Arc<TableSchema>>) {
        let at = |minor| Coordinate { major: number as u64, minor };
        let transaction = logged.transaction.clone();
        let (table, rows) = match change {
            Change::Insert(table, row) => (table, vec![(Operation::Insert, row)]),
            Change::Update(table, row) => (table, vec![(Operation::Update, row)]),
            Change::UpdateWithout(table, row, _) => (table, vec![(Operation::Update, row)]),
            Change::Rekey(table, old, new) | Change::RekeyWithout(table, old, new, _) => {
                (table, vec![(Operation::Delete, old), (Operation::Insert, new)])
            }
            Change::Delete(table, row) => (table, vec![(Operation::Delete, row)]),
            Change::Truncate(table) if schemas.contains_key(table) => {
                return self.events.push(LogEvent::Truncated { table: table.clone(), transaction, coordinate: at(0) });
            }
            Change::Refused(table, error) if schemas.contains_key(table) => {
                let (table, error) = (table.clone(), error.clone());
                return self.events.push(LogEvent::Refused { table, transaction, coordinate: at(0), error });
            }
            Change::Schema(schema) if schemas.contains_key(&schema.table) => {
                schemas.insert(schema.table.clone(), Arc::clone(schema));
                let schema = Arc::clone(schema);
                return self.events.push(LogEvent::Schema { transaction, coordinate: at(0), schema });
            }
            Change::Truncate(_) | Change::Refused(..) | Change::Schema(_) | Change::Poison(_) => return,
        };
        let without: &[usize] = match change {
            Change::UpdateWithout(_, _, without) | Change::RekeyWithout(_, _, _, without) => without,
            _ => &[],
        };
        // Of an old row the log tells the key.
        let all = |schema: &TableSchema| (0..schema.columns.len()).filter(|column| !schema.is_key(*column)).collect();
        let Some(schema) = schemas.get(table) else { return };
        let index = self.batch(schema);
        let batch = &mut self.batches[index];
        let first = batch.rows.len();
        for (minor, (operation, row)) in (0..).zip(&rows) {
            batch.operations.push(*operation);
            batch.coordinates.push(at(minor));
            batch.rows.push((*row).clone());
            batch.without.push(match operation {
                Operation::Delete if !without.is_empty() => all(schema),
                Operation::Delete => Vec::new(),
                Operation::Insert | Operation::Update | Operation::Read => without.to_vec(),
            });
            self.bytes += row.get_array_memory_size() as u64;
        }
        self.rows += rows.len();
        match batch.transactions.last_mut() {
            Some(run) if run.transaction == transaction => run.rows += rows.len(),
            _ => {
                let run = TransactionRun { transaction: transaction.clone(), rows: rows.len(), commit_time: logged.commit_time };
                batch.transactions.push(run);
            }
        }
        let last = batch.rows.len();
        match self.events.last_mut() {
            Some(LogEvent::Rows { batch, rows, transaction: before })
                if *batch == index && rows.end == first && *before == transaction =>
            {
                rows.end = last;
            }
            _ => self.events.push(LogEvent::Rows { batch: index, rows: first..last, transaction }),
        }
    }

    fn batch(&mut self, schema: &Arc<TableSchema>) -> usize {
        if let Some(index) = self.batches.iter().position(|batch| batch.schema == *schema) {
            return index;
        }
        self.batches.push(BatchRows {
            schema: Arc::clone(schema),
            rows: Vec::new(),
            without: Vec::new(),
            operations: Vec::new(),
            coordinates: Vec::new(),
            transactions: Vec::new(),
        });
        self.batches.len() - 1
    }

    fn finish(self, finished: bool) -> Result<LogRead, Error> {
        let batches = self.batches.into_iter().map(BatchRows::finish).collect::<Result<_, _>>()?;
        Ok(LogRead { batches, events: self.events, names: self.names, finished })
    }
}

impl BatchRows {
    fn finish(self) -> Result<Arc<ChangeBatch>, Error> {
        let data = concat_batches(&Arc::new(self.schema.arrow()), &self.rows).map_err(|error| {
            let what = format!("a row of {} in the log is not of its schema: {error}", self.schema.table);
            Error::new(Kind::Poison, "memory-schema", what, "mend the test")
        })?;
        let tail = Tail {
            operations: self.operations,
            coordinates: self.coordinates,
            transactions: self.transactions,
            ingest_time: 0,
            phase: RowPhase::Stream,
        };
        let marks = |column: usize| {
            let marks = BooleanBuffer::collect_bool(self.without.len(), |row| self.without[row].contains(&column));
            (marks.count_set_bits() > 0).then_some(marks)
        };
        let absent = (0..self.schema.columns.len()).map(marks).collect();
        Ok(Arc::new(ChangeBatch { schema: self.schema, data, absent, tail }))
    }
}
