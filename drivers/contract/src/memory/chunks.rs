//! The tables of a log in memory, read beside it. A transaction may be in the log and not be visible yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Bound as Edge;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use async_trait::async_trait;
use kernel::coordinator::Visibility;
use kernel::id::{Bound, StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, LogIdentity, Transaction};
use rows::{ChangeBatch, EncodedKeys, Operation, RowPhase, TableSchema, Tail, TransactionRun};

use super::MemorySource;
use super::source::{Change, Log};
use crate::{ChunkRead, ChunkRequest, Chunks, Error, Kind, RowsByKey, RowsRead, RowsRequest};

/// How visibility calls a transaction.
pub(super) fn name(transaction: &Transaction) -> TransactionName {
    TransactionName::from(format!("{} at {}", transaction.stream, transaction.at.0))
}

#[async_trait]
impl Chunks for MemorySource {
    async fn plan_ranges(&self, table: &TableSchema, wanted: u32) -> Result<Vec<Bound>, Error> {
        let (_, rows) = visible(&self.0.lock(), &table.table)?;
        let part = rows.len().div_ceil(wanted.max(1) as usize).max(1);
        Ok(rows.keys().step_by(part).skip(1).map(|key| bound(key)).collect())
    }

    async fn read_chunk(&self, request: &ChunkRequest) -> Result<ChunkRead, Error> {
        let log = self.0.lock();
        let (schema, rows) = visible(&log, &request.table.table)?;
        let (after, end) = (request.range.after.as_ref().map(key), request.range.end.as_ref().map(key));
        let range = (after.map_or(Edge::Unbounded, Edge::Excluded), end.map_or(Edge::Unbounded, Edge::Included));
        let (mut taken, mut stopped_at) = (Vec::new(), None);
        let mut bytes = 0;
        let mut within = rows.range::<Vec<u8>, _>(range).peekable();
        while let Some((key, row)) =
            within.next_if(|_| taken.is_empty() || (taken.len() < request.rows_max as usize && bytes < request.bytes_max))
        {
            bytes += row.get_array_memory_size() as u64;
            taken.push(row);
            stopped_at = Some(bound(key));
        }
        let is_whole = within.peek().is_none();
        Ok(ChunkRead {
            rows: (!taken.is_empty()).then(|| batch(&schema, taken, &log)).transpose()?,
            end: if is_whole { request.range.end.clone() } else { stopped_at },
            visibility: seen(&log, &request.about, false),
            fence: log.end.clone(),
            schema,
            identity: identity(&log),
        })
    }

    async fn visibility(&self, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Error> {
        Ok(seen(&self.0.lock(), about, unfinished))
    }
}

#[async_trait]
impl RowsByKey for MemorySource {
    async fn read_rows(&self, request: &RowsRequest) -> Result<RowsRead, Error> {
        let log = self.0.lock();
        let (schema, rows) = visible(&log, &request.table.table)?;
        let of_key = |place: &usize| request.table.columns.get(*place).map(|column| column.kind.clone());
        let types: Vec<_> = request.table.key.iter().filter_map(of_key).collect();
        let keys = EncodedKeys::encode_columns(request.keys.columns(), &types).map_err(|e| broken(&schema, &e.to_string()))?;
        let (mut there, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (place, key) in keys.iter().enumerate() {
            match rows.get(key) {
                None => gone.push(place),
                Some(row) if there.is_empty() || bytes < request.bytes_max => {
                    bytes += row.get_array_memory_size() as u64;
                    there.push(row);
                }
                Some(_) => {}
            }
        }
        Ok(RowsRead {
            rows: (!there.is_empty()).then(|| batch(&schema, there, &log)).transpose()?,
            gone,
            visibility: seen(&log, &request.about, false),
            fence: log.end.clone(),
            identity: identity(&log),
        })
    }
}

pub(super) fn identity(log: &Log) -> LogIdentity {
    let streams = log.end.streams().map(|(stream, _)| (stream.clone(), log.identity.clone())).collect();
    LogIdentity { streams, coordinates: Some(log.identity.clone()), ..LogIdentity::default() }
}

fn shown(log: &Log) -> usize {
    log.visible.unwrap_or(log.transactions.len()).min(log.transactions.len())
}

fn seen(log: &Log, about: &BTreeSet<TransactionName>, unfinished: bool) -> Visibility {
    let (shown, hidden) = log.transactions.split_at(shown(log));
    let proven: BTreeSet<_> = shown.iter().map(|logged| name(&logged.transaction)).filter(|name| about.contains(name)).collect();
    let unfinished = unfinished.then(|| hidden.iter().map(|logged| name(&logged.transaction)).collect());
    Visibility { proven, unfinished }
}

/// Rows by their encoded key.
type ByKey = BTreeMap<Vec<u8>, RecordBatch>;

/// The rows of a table that are visible, by key, and what they look like.
fn visible(log: &Log, table: &TableName) -> Result<(Arc<TableSchema>, ByKey), Error> {
    let unknown =
        || Error::new(Kind::Config, "memory-no-table", format!("the log has no table {table}"), "name tables that it has");
    let mut schema = Arc::clone(log.tables.get(table).ok_or_else(unknown)?);
    let mut rows = BTreeMap::new();
    for row in log.older.iter().flat_map(|older| older.get(table)).flatten() {
        rows.insert(key_of(&schema, row)?, row.clone());
    }
    for change in log.transactions.iter().take(shown(log)).flat_map(|logged| &logged.changes) {
        match change {
            Change::Insert(of, row) | Change::Update(of, row) | Change::UpdateWithout(of, row, _) if of == table => {
                rows.insert(key_of(&schema, row)?, row.clone());
            }
            Change::Rekey(of, old, new) | Change::RekeyWithout(of, old, new, _) if of == table => {
                rows.remove(&key_of(&schema, old)?);
                rows.insert(key_of(&schema, new)?, new.clone());
            }
            Change::Delete(of, row) if of == table => {
                rows.remove(&key_of(&schema, row)?);
            }
            Change::Truncate(of) if of == table => rows.clear(),
            Change::Schema(of) if of.table == *table => schema = Arc::clone(of),
            Change::Insert(..)
            | Change::Update(..)
            | Change::UpdateWithout(..)
            | Change::Rekey(..)
            | Change::RekeyWithout(..)
            | Change::Delete(..)
            | Change::Truncate(_)
            | Change::Schema(_)
            | Change::Refused(..)
            | Change::Poison(_) => {}
        }
    }
    Ok((schema, rows))
}

fn key_of(schema: &TableSchema, row: &RecordBatch) -> Result<Vec<u8>, Error> {
    let keys = EncodedKeys::encode(schema, row).map_err(|e| broken(schema, &e.to_string()))?;
    Ok(keys.key(0).to_vec())
}

fn batch(schema: &Arc<TableSchema>, rows: Vec<&RecordBatch>, log: &Log) -> Result<Arc<ChangeBatch>, Error> {
    let count = rows.len();
    let data = concat_batches(&Arc::new(schema.arrow()), rows).map_err(|e| broken(schema, &e.to_string()))?;
    let at = |minor| Coordinate { major: 0, minor };
    // The fence's place in the log's one stream.
    let transaction = Transaction { stream: StreamName::from(""), at: log.end.offset(&StreamName::from("")) };
    let tail = Tail {
        operations: vec![Operation::Read; count],
        coordinates: (0..).take(count).map(at).collect(),
        transactions: vec![TransactionRun { transaction, rows: count, commit_time: None }],
        ingest_time: 0,
        phase: RowPhase::Snapshot,
    };
    Ok(Arc::new(ChangeBatch { schema: Arc::clone(schema), data, absent: vec![None; schema.columns.len()], tail }))
}

fn broken(schema: &TableSchema, why: &str) -> Error {
    let what = format!("a row of {} in the log is not of its schema: {why}", schema.table);
    Error::new(Kind::Poison, "memory-schema", what, "mend the test")
}

/// A key as a bound: its bytes in hexadecimal digits.
fn bound(key: &[u8]) -> Bound {
    let mut text = String::with_capacity(key.len() * 2);
    for byte in key {
        let _ = write!(text, "{byte:02x}");
    }
    Bound::from(text)
}

fn key(bound: &Bound) -> Vec<u8> {
    let digits = bound.as_str();
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (0..digits.len()).step_by(2).filter_map(byte).collect()
}
