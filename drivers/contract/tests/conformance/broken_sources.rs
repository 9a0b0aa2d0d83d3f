//! Sources that each break one law: the source in memory behind a wrapper that spoils one thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contract::arrow::buffer::BooleanBuffer;
use contract::conformance::source::{SourceAbilities, SourceHarness, SourcePlace, Step};
use contract::kernel::id::{Identity, TableName};
use contract::kernel::position::{Offset, Position};
use contract::memory::MemorySource;
use contract::rows::{ChangeBatch, Operation, TableSchema};
use contract::{
    Error, Finding, Limit, LogEvent, LogRead, LogReader, OpenedLog, RowsByKey, RowsRead, RowsRequest, Source, SourceTable, Start,
    TableRequest, async_trait,
};

use crate::sources::MemoryPlace;

/// What is wrong with a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    CountsSessions,
    CountsReads,
    CountsSelectedTables,
    CallsUpdatesInserts,
    KeepaliveGoesBack,
    EndsBeforeItsEnd,
    NamesOneRowTooMany,
    MarksKeysAbsent,
    UsesAnotherSchema,
    DividesChanges,
    IgnoresTheLimit,
    LosesWhatIsGivenUp,
    SkipsTheFirst,
    BeginsWhereItCan,
    EndsTooEarly,
    ConfirmsByReading,
    IdentifiesByLength,
    RefusesOnce,
    LosesWhatPoisonFollows,
    DescribesInItsOwnOrder,
    SaysRowsAreGone,
    ProvesWhatIsNone,
    FencesTooEarly,
}
use Fault::*;

pub(crate) const SOURCE_FAULTS: &[(Fault, &str)] = &[
    (CountsSessions, "within-names-the-same-row"),
    (CountsReads, "within-names-the-same-row"),
    (CountsSelectedTables, "within-names-the-same-row"),
    (CallsUpdatesInserts, "key-order-is-one"),
    (KeepaliveGoesBack, "positions-grow"),
    (EndsBeforeItsEnd, "position-names-finished-transactions"),
    (NamesOneRowTooMany, "batches-are-whole"),
    (MarksKeysAbsent, "keys-are-present"),
    (UsesAnotherSchema, "rows-decode-under-their-schema"),
    (DividesChanges, "a-change-is-not-divided"),
    (IgnoresTheLimit, "reads-keep-their-limit"),
    (LosesWhatIsGivenUp, "reading-can-be-given-up"),
    (SkipsTheFirst, "any-end-is-a-place-to-go-on"),
    (BeginsWhereItCan, "start-within-streamable"),
    (EndsTooEarly, "never-ahead-of-source"),
    (ConfirmsByReading, "sole-confirmer"),
    (IdentifiesByLength, "same-log-identity"),
    (RefusesOnce, "refusals-repeat"),
    (LosesWhatPoisonFollows, "poison-comes-last"),
    (DescribesInItsOwnOrder, "describing-repeats"),
    (SaysRowsAreGone, "rows-are-read-again-by-key"),
    (ProvesWhatIsNone, "rows-are-read-again-by-key"),
    (FencesTooEarly, "rows-are-read-again-by-key"),
];

pub(crate) struct BrokenSources(pub(crate) Fault);

/// What the faults need to remember, over all connections to a log.
#[derive(Default)]
struct Memory {
    sessions: u64,
    read: Position,
    refused: bool,
}

struct BrokenPlace {
    inner: MemoryPlace,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

struct BrokenSource {
    inner: MemorySource,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

struct BrokenReader {
    inner: Box<dyn LogReader>,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
    session: u64,
    reads: u64,
    tables: usize,
    first_end: Option<Position>,
    ahead: Option<LogRead>,
}

#[async_trait]
impl SourceHarness for BrokenSources {
    fn abilities(&self) -> SourceAbilities {
        SourceAbilities { refuses: true, poisons: true, discards: true, reads_rows: true }
    }

    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error> {
        Ok(Box::new(BrokenPlace { inner: MemoryPlace::new(), fault: self.0, memory: Arc::default() }))
    }
}

#[async_trait]
impl SourcePlace for BrokenPlace {
    async fn open(&self) -> Result<Arc<dyn Source>, Error> {
        let memory = Arc::clone(&self.memory);
        Ok(Arc::new(BrokenSource { inner: self.inner.0.source(), fault: self.fault, memory }))
    }

    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error> {
        self.inner.write(transactions).await
    }

    async fn write_refused(&self) -> Result<(), Error> {
        self.inner.write_refused().await
    }

    async fn write_poison(&self) -> Result<(), Error> {
        self.inner.write_poison().await
    }

    async fn finish(&self) -> Result<(), Error> {
        self.inner.finish().await
    }

    async fn discard(&self, upto: &Position) -> Result<(), Error> {
        self.inner.discard(upto).await
    }
}

#[async_trait]
impl Source for BrokenSource {
    async fn preflight(&self, tables: &[TableRequest]) -> Vec<Finding> {
        self.inner.preflight(tables).await
    }

    async fn describe(
        &self,
        tables: &[TableRequest],
        stored: &BTreeMap<TableName, Arc<TableSchema>>,
    ) -> Result<Vec<SourceTable>, Error> {
        let mut described = self.inner.describe(tables, stored).await?;
        if self.fault == DescribesInItsOwnOrder {
            described.sort_by_key(|table| table.schema.table.clone());
        }
        Ok(described)
    }

    async fn discover(&self) -> Result<Vec<TableName>, Error> {
        self.inner.discover().await
    }

    async fn open(&self) -> Result<OpenedLog, Error> {
        let mut opened = self.inner.open().await?;
        match self.fault {
            EndsTooEarly => opened.end = opened.floor.clone(),
            ConfirmsByReading => opened.floor.join_with(&self.memory.lock().unwrap().read),
            IdentifiesByLength => opened.identity.coordinates = Some(Identity::from(opened.end.to_string())),
            _ => {}
        }
        Ok(opened)
    }

    async fn stream(&self, start: &Start, tables: &[Arc<TableSchema>]) -> Result<Box<dyn LogReader>, Error> {
        let opened = self.inner.open().await?;
        let from = &start.from;
        let from = match self.fault {
            BeginsWhereItCan => from.join(&opened.floor),
            // The story's transactions after the first have three, four, one, three and four changes.
            SkipsTheFirst if *from == Position::scalar(3) => Position::scalar(6),
            _ => from.clone(),
        };
        let inner = self.inner.stream(&from.into(), tables).await?;
        let mut memory = self.memory.lock().unwrap();
        memory.sessions += 1;
        Ok(Box::new(BrokenReader {
            inner,
            fault: self.fault,
            memory: Arc::clone(&self.memory),
            session: memory.sessions,
            reads: 0,
            tables: tables.len(),
            first_end: None,
            ahead: None,
        }))
    }

    fn rows_by_key(&self) -> Option<&dyn RowsByKey> {
        Some(self)
    }

    async fn acknowledge(&self, upto: &Position) -> Result<(), Error> {
        self.inner.acknowledge(upto).await
    }
}

#[async_trait]
impl RowsByKey for BrokenSource {
    async fn read_rows(&self, request: &RowsRequest) -> Result<RowsRead, Error> {
        let mut read = self.inner.read_rows(request).await?;
        match self.fault {
            SaysRowsAreGone => (read.rows, read.gone) = (None, (0..request.keys.num_rows()).collect()),
            ProvesWhatIsNone => read.visibility.proven.clone_from(&request.about),
            FencesTooEarly => read.fence = Position::START,
            _ => {}
        }
        Ok(read)
    }
}

#[async_trait]
impl LogReader for BrokenReader {
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error> {
        let limit = if self.fault == IgnoresTheLimit { Limit { rows: usize::MAX, ..limit } } else { limit };
        let mut read = match self.ahead.take() {
            Some(read) => read,
            None => self.inner.next(limit).await?,
        };
        if self.fault == LosesWhatPoisonFollows && !read.finished {
            // An error that is met while reading ahead comes at once, instead of what was read before it.
            self.ahead = Some(self.inner.next(limit).await?);
        }
        if self.fault == LosesWhatIsGivenUp {
            let mut waited = false;
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut waited, true) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        }
        read.batches = read.batches.iter().map(|batch| Arc::new(self.spoil_batch(batch))).collect();
        self.spoil_events(&mut read);
        self.reads += 1;
        Ok(read)
    }
}

impl BrokenReader {
    fn spoil_batch(&self, batch: &ChangeBatch) -> ChangeBatch {
        let mut batch = batch.clone();
        let shift = match self.fault {
            CountsSessions => self.session,
            CountsReads => self.reads,
            CountsSelectedTables => self.tables as u64,
            _ => 0,
        };
        batch.tail.coordinates.iter_mut().for_each(|at| at.major += shift);
        match self.fault {
            CallsUpdatesInserts => {
                let updates = batch.tail.operations.iter_mut().filter(|operation| **operation == Operation::Update);
                updates.for_each(|operation| *operation = Operation::Insert);
            }
            MarksKeysAbsent => {
                let rows = batch.rows();
                batch.absent[0] = Some(BooleanBuffer::collect_bool(rows, |row| row == 0));
            }
            UsesAnotherSchema => {
                let mut schema = (*batch.schema).clone();
                schema.columns[1].nullable = false;
                batch.schema = Arc::new(schema);
            }
            _ => {}
        }
        batch
    }

    fn spoil_events(&mut self, read: &mut LogRead) {
        for event in &mut read.events {
            match event {
                LogEvent::Ended { transaction, upto, .. } => {
                    self.first_end.get_or_insert(upto.clone());
                    self.memory.lock().unwrap().read.join_with(upto);
                    if self.fault == EndsBeforeItsEnd {
                        *upto = Position::of(transaction.stream.clone(), Offset(transaction.at.0));
                    }
                }
                LogEvent::Rows { batch, rows, .. } if self.fault == NamesOneRowTooMany => {
                    rows.end += usize::from(rows.end == read.batches[*batch].rows());
                }
                _ => {}
            }
        }
        match (self.fault, self.first_end.clone()) {
            (KeepaliveGoesBack, Some(upto)) if self.memory.lock().unwrap().read != upto => {
                read.events.push(LogEvent::Keepalive { upto });
            }
            (RefusesOnce, _) => {
                let mut memory = self.memory.lock().unwrap();
                let before = memory.refused;
                memory.refused |= read.events.iter().any(|event| matches!(event, LogEvent::Refused { .. }));
                read.events.retain(|event| !before || !matches!(event, LogEvent::Refused { .. }));
            }
            (DividesChanges, _) => read.events = read.events.drain(..).flat_map(row_by_row).collect(),
            _ => {}
        }
    }
}

/// An event of rows as an event a row.
fn row_by_row(event: LogEvent) -> Vec<LogEvent> {
    match event {
        LogEvent::Rows { batch, rows, transaction } => {
            rows.map(|row| LogEvent::Rows { batch, rows: row..row + 1, transaction: transaction.clone() }).collect()
        }
        other => vec![other],
    }
}
