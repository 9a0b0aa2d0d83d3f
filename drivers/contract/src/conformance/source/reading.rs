//! Reading a log as the kit does it: until all that the script wrote has come, forgiving what a law of its own is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use futures::FutureExt;
use kernel::position::{Coordinate, Position, Transaction};
use rows::{ChangeBatch, Operation, TableSchema};

use super::SourcePlace;
use super::script::Expected;
use crate::conformance::failed;
use crate::{Limit, LogEvent, LogRead, LogReader, Source};

/// So many empty answers one after the other, and the kit takes it that nothing more comes.
pub(super) const IDLE_READS_MAX: usize = 40;

/// No script is so long; a reader that goes on is broken.
const READS_MAX: usize = 5_000;

/// A limit that no script reaches.
pub(super) const ALL: Limit = Limit { rows: 10_000, bytes: 64 << 20 };

/// A row as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) transaction: Transaction,
    pub(super) coordinate: Coordinate,
    pub(super) table: String,
    pub(super) operation: Operation,
    /// Missing where the key is null.
    pub(super) id: Option<i64>,
    /// Of images only.
    pub(super) word: Option<String>,
}

/// What was read.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) reads: Vec<LogRead>,
    pub(super) rows: Vec<Row>,
    pub(super) ends: Vec<(Transaction, Position)>,
}

/// A connection with the tables that are read over it.
pub(super) struct Connection {
    pub(super) source: Arc<dyn Source>,
    pub(super) schemas: Vec<Arc<TableSchema>>,
}

impl Connection {
    /// Connects as a new process does, and has the tables described.
    pub(super) async fn open(place: &dyn SourcePlace, tables: &[&str]) -> Result<Connection, String> {
        let source = place.open().await.map_err(failed("opening the source"))?;
        let requests: Vec<_> = tables.iter().map(|table| place.request(table)).collect();
        let described = source.describe(&requests, &BTreeMap::new()).await.map_err(failed("describing the tables"))?;
        Ok(Connection { source, schemas: described.into_iter().map(|table| table.schema).collect() })
    }

    pub(super) async fn reader(&self, from: &Position) -> Result<Box<dyn LogReader>, String> {
        self.source.stream(&from.clone().into(), &self.schemas).await.map_err(failed(&format!("streaming from '{from}'")))
    }

    /// Reads until these rows, or as many others, have come with the ends of their transactions.
    pub(super) async fn read(&self, from: &Position, limit: Limit, until: &[Vec<Expected>]) -> Result<Reading, String> {
        let mut reader = self.reader(from).await?;
        Reading::to(&mut *reader, limit, until, false).await
    }
}

impl Reading {
    /// Reads until these rows, or as many others, have come with the ends of their transactions. `impatient`: each wait is
    /// begun, given up and begun again.
    pub(super) async fn to(
        reader: &mut dyn LogReader,
        limit: Limit,
        until: &[Vec<Expected>],
        impatient: bool,
    ) -> Result<Reading, String> {
        let mut reading = Reading::default();
        let wanted = until.iter().map(Vec::len).sum();
        let mut idle = 0;
        while !reading.has(wanted) && idle < IDLE_READS_MAX {
            let given_up = if impatient { reader.next(limit).now_or_never() } else { None };
            let read = match given_up {
                Some(read) => read,
                None => reader.next(limit).await,
            };
            let read = read.map_err(failed("reading the log"))?;
            idle = if read.events.is_empty() { idle + 1 } else { 0 };
            let finished = read.finished;
            reading.take(read);
            if finished {
                break;
            }
            if reading.reads.len() > READS_MAX {
                return Err(format!("{READS_MAX} reads and no end, where {wanted} rows are in the log"));
            }
        }
        Ok(reading)
    }

    /// Have so many rows come, with the end of the last one's transaction?
    fn has(&self, rows: usize) -> bool {
        let ended = |row: &Row| self.ends.iter().any(|(transaction, _)| *transaction == row.transaction);
        self.rows.len() >= rows && self.rows.last().is_none_or(ended)
    }

    /// Adds what one read brought.
    pub(super) fn take(&mut self, read: LogRead) {
        for event in &read.events {
            if let LogEvent::Ended { transaction, upto, .. } = event {
                self.ends.push((transaction.clone(), upto.clone()));
            }
        }
        self.rows.extend(rows_by_event(&read).into_iter().flatten());
        self.reads.push(read);
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &LogEvent> {
        self.reads.iter().flat_map(|read| &read.events)
    }

    /// The rows, event by event.
    pub(super) fn events_of_rows(&self) -> impl Iterator<Item = Vec<Row>> {
        self.reads.iter().flat_map(rows_by_event)
    }

    /// The rows that a position does not contain.
    pub(super) fn beyond(&self, position: &Position) -> Vec<Row> {
        self.rows.iter().filter(|row| !position.contains_transaction(&row.transaction)).cloned().collect()
    }

    /// The rows of one table.
    pub(super) fn of(&self, table: &str) -> Vec<Row> {
        self.rows.iter().filter(|row| row.table == table).cloned().collect()
    }
}

/// The rows of a read, event by event. What an event names and a batch lacks is another law's matter.
fn rows_by_event(read: &LogRead) -> Vec<Vec<Row>> {
    let of_event = |event: &LogEvent| match event {
        LogEvent::Rows { batch, rows, transaction } => {
            let batch = read.batches.get(*batch)?;
            let rows = rows.start..rows.end.min(batch.rows());
            Some(rows.filter_map(|row| Row::of(batch, row, transaction)).collect())
        }
        LogEvent::Truncated { .. }
        | LogEvent::Schema { .. }
        | LogEvent::Refused { .. }
        | LogEvent::Ended { .. }
        | LogEvent::Keepalive { .. } => None,
    };
    read.events.iter().filter_map(of_event).collect()
}

impl Row {
    fn of(batch: &ChangeBatch, row: usize, transaction: &Transaction) -> Option<Row> {
        let operation = *batch.tail.operations.get(row)?;
        let ids = batch.data.column_by_name("id").and_then(|ids| ids.as_primitive_opt::<Int64Type>());
        let words = batch.data.column_by_name("word").and_then(|words| words.as_string_opt::<i32>());
        let word = words.filter(|words| words.is_valid(row)).map(|words| words.value(row).to_string());
        Some(Row {
            transaction: transaction.clone(),
            coordinate: *batch.tail.coordinates.get(row)?,
            table: batch.schema.table.to_string(),
            operation,
            id: ids.filter(|ids| ids.is_valid(row)).map(|ids| ids.value(row)),
            word: word.filter(|_| operation != Operation::Delete),
        })
    }

    /// Is it the row that the script wrote? A key that is null is another law's matter.
    pub(super) fn is(&self, expected: &Expected) -> bool {
        self.table == expected.table
            && self.operation == expected.operation
            && self.id.is_none_or(|id| id == expected.id)
            && self.word == expected.word
    }
}
