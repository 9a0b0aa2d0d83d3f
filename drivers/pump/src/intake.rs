//! From a chunk of the log to the facts that a machine takes: keys encoded once, digests, rows divided where a cut divides.

use std::sync::Arc;

use kernel::coordinator::{HeldBatch, LogEvent, RowRange};
use kernel::id::TableName;
use kernel::outcome::LogFailure;
use kernel::position::{Coordinate, Transaction};
use rows::store::RowStore;
use rows::{ChangeBatch, EncodedKeys};

use crate::env::{Chunk, ChunkEvent};

/// Points behind which a table's rows of a transaction are divided.
pub(crate) type Divided = Vec<(TableName, Transaction, Coordinate)>;

/// A chunk whose long work is done.
pub(crate) struct Prepared {
    batches: Vec<(Arc<ChangeBatch>, Arc<EncodedKeys>)>,
    events: Vec<PreparedEvent>,
    finished: bool,
}

enum PreparedEvent {
    /// `batch` and the range stand for a [`RowRange`] whose batch has no id yet.
    Rows {
        batch: usize,
        event: LogEvent,
    },
    Other(LogEvent),
}

/// Encodes keys and computes digests: the long part, for a core of its own.
pub(crate) fn prepare(chunk: Chunk, divided: &Divided) -> Result<Prepared, LogFailure> {
    let mut batches = Vec::with_capacity(chunk.batches.len());
    for batch in chunk.batches {
        let keys = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| broken_key(&batch, &e.to_string()))?;
        batches.push((batch, Arc::new(keys)));
    }
    let mut events = Vec::with_capacity(chunk.events.len());
    for event in chunk.events {
        prepare_event(event, &batches, divided, &mut events)?;
    }
    Ok(Prepared { batches, events, finished: chunk.finished })
}

fn prepare_event(
    event: ChunkEvent,
    batches: &[(Arc<ChangeBatch>, Arc<EncodedKeys>)],
    divided: &Divided,
    events: &mut Vec<PreparedEvent>,
) -> Result<(), LogFailure> {
    let other = |event| PreparedEvent::Other(event);
    events.push(match event {
        ChunkEvent::Rows { batch, rows, transaction } => {
            let Some((rows_of, keys)) = batches.get(batch).filter(|(b, _)| rows.end <= b.rows()) else {
                return Err(outside(batch, &transaction));
            };
            let table = &rows_of.schema.table;
            for rows in divide(rows_of, rows, table, &transaction, divided) {
                let (Some(first), Some(last)) = (coordinate(rows_of, rows.start), coordinate(rows_of, rows.end.wrapping_sub(1)))
                else {
                    continue;
                };
                let digest = rows::digest::row_digests(rows_of, keys, rows.clone());
                let bytes = rows_of.bytes().saturating_mul(rows.len() as u64) / (rows_of.rows().max(1) as u64);
                let range = RowRange { batch: kernel::id::BatchId(0), rows: to_u32(rows.start)..to_u32(rows.end) };
                let (table, transaction) = (table.clone(), transaction.clone());
                let touched = None;
                let event = LogEvent::Rows { table, transaction, rows: range, bytes, first, last, digest, touched };
                events.push(PreparedEvent::Rows { batch, event });
            }
            return Ok(());
        }
        ChunkEvent::Truncated { table, transaction, coordinate } => {
            other(LogEvent::Truncated { table, transaction, coordinate, by: None })
        }
        ChunkEvent::Schema { table, transaction, coordinate, schema } => {
            other(LogEvent::Schema { table, transaction, coordinate, schema, by: None })
        }
        ChunkEvent::Refused { table, transaction, coordinate, why } => {
            other(LogEvent::Refused { table, transaction, coordinate, why })
        }
        ChunkEvent::Ended { transaction, upto } => other(LogEvent::Ended { transaction, upto }),
        ChunkEvent::Keepalive { upto } => other(LogEvent::Keepalive { upto }),
    });
    Ok(())
}

/// Puts the rows into the store; what is left are facts.
pub(crate) fn hold(prepared: Prepared, store: &mut RowStore) -> (Vec<HeldBatch>, Vec<LogEvent>, bool) {
    let mut held = Vec::with_capacity(prepared.batches.len());
    for (batch, keys) in prepared.batches {
        let (rows, bytes) = (to_u32(batch.rows()), batch.bytes());
        let id = store.insert(batch, keys);
        held.push(HeldBatch { batch: id, rows, bytes });
    }
    let events = prepared.events.into_iter().map(|event| match event {
        PreparedEvent::Rows { batch, mut event } => {
            if let (LogEvent::Rows { rows, .. }, Some(held)) = (&mut event, held.get(batch)) {
                rows.batch = held.batch;
            }
            event
        }
        PreparedEvent::Other(event) => event,
    });
    let events = events.collect();
    (held, events, prepared.finished)
}

/// The rows, divided behind every coordinate that a cut of the table has in this transaction.
fn divide(
    batch: &ChangeBatch,
    rows: std::ops::Range<usize>,
    table: &TableName,
    transaction: &Transaction,
    divided: &Divided,
) -> Vec<std::ops::Range<usize>> {
    let mut pieces = vec![rows.clone()];
    for (_, _, last) in divided.iter().filter(|(t, x, _)| t == table && x == transaction) {
        let Some(piece) = pieces.pop() else { break };
        let covered = batch.tail.coordinates.get(piece.clone()).map_or(0, |c| c.partition_point(|c| c <= last));
        let at = piece.start + covered;
        pieces.extend([piece.start..at, at..piece.end].into_iter().filter(|p| !p.is_empty()));
    }
    pieces
}

fn coordinate(batch: &ChangeBatch, row: usize) -> Option<Coordinate> {
    batch.tail.coordinates.get(row).copied()
}

fn to_u32(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The source promised keys: a row without one should have come as a refused change.
fn broken_key(batch: &ChangeBatch, why: &str) -> LogFailure {
    let why = format!(
        "table {}: the source driver delivered a row whose key can't be encoded: {why}. This is a fault of the driver",
        batch.schema.table
    );
    LogFailure::Config { why }
}

fn outside(batch: usize, transaction: &Transaction) -> LogFailure {
    let why = format!(
        "the source driver named rows outside of batch {batch} in transaction {transaction:?}. This is a fault of the driver"
    );
    LogFailure::Config { why }
}
