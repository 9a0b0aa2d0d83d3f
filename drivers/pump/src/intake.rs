//! From what was read to the facts that a machine takes: keys encoded once, digests, rows divided where a cut divides; of tables
//! whose snapshot is read, or whose rows lack values, whose keys the rows of the log are and what each tells of its key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::coordinator::{ChunkAnswer, HeldBatch, LogEvent, RowRange, Told, Touched};
use kernel::id::{EncodedKey, TableName, TransactionName};
use kernel::outcome::LogFailure;
use kernel::position::{Coordinate, Transaction};
use rows::store::RowStore;
use rows::{ChangeBatch, EncodedKeys};

use crate::env::{Chunk, ChunkEvent, SnapshotChunk};

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

/// How rows of the log are told.
#[derive(Clone, Default)]
pub(crate) struct Telling {
    /// Where rows are divided since the reader last began anew.
    pub(crate) divided: Divided,
    /// Tables whose rows come with their keys.
    pub(crate) keys_of: Vec<TableName>,
    /// Can rows be read again for values that they lack? Else the machine hears of none: netting finds them, or refuses the part.
    pub(crate) reads_rows: bool,
}

/// What the transactions and tables of a read are, for what is told of rows.
struct Context<'a> {
    batches: &'a [(Arc<ChangeBatch>, Arc<EncodedKeys>)],
    names: &'a BTreeMap<Transaction, TransactionName>,
    telling: &'a Telling,
    /// Tables of which a row before lacked a value.
    lacking: BTreeSet<TableName>,
}

/// Encodes keys and computes digests: the long part, for a core of its own.
pub(crate) fn prepare(chunk: Chunk, telling: &Telling) -> Result<Prepared, LogFailure> {
    let mut batches = Vec::with_capacity(chunk.batches.len());
    for batch in chunk.batches {
        let keys = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| broken_key(&batch, &e.to_string()))?;
        batches.push((batch, Arc::new(keys)));
    }
    let mut events = Vec::with_capacity(chunk.events.len());
    let mut context = Context { batches: &batches, names: &chunk.names, telling, lacking: BTreeSet::new() };
    for event in chunk.events {
        prepare_event(event, &mut context, &mut events)?;
    }
    Ok(Prepared { batches, events, finished: chunk.finished })
}

impl Context<'_> {
    /// How visibility calls the transaction, where the table's keys are wanted.
    fn by(&self, table: &TableName, transaction: &Transaction) -> Result<Option<TransactionName>, LogFailure> {
        if !self.telling.keys_of.contains(table) && !self.lacking.contains(table) {
            return Ok(None);
        }
        self.names.get(transaction).cloned().map(Some).ok_or_else(|| nameless(table, transaction))
    }

    /// What rows tell of their keys.
    fn told(&self, batch: &ChangeBatch, rows: std::ops::Range<usize>) -> Vec<Told> {
        let mut told = rows::told::told(batch, rows);
        if !self.telling.reads_rows {
            told.iter_mut().filter(|told| told.lacks()).for_each(|told| *told = Told::Whole);
        }
        told
    }
}

fn prepare_event(event: ChunkEvent, context: &mut Context<'_>, events: &mut Vec<PreparedEvent>) -> Result<(), LogFailure> {
    let other = |event| PreparedEvent::Other(event);
    events.push(match event {
        ChunkEvent::Rows { batch, rows, transaction } => {
            let Some((rows_of, keys)) = context.batches.get(batch).filter(|(b, _)| rows.end <= b.rows()) else {
                return Err(outside(batch, &transaction));
            };
            let table = &rows_of.schema.table;
            if context.telling.reads_rows && rows::told::lacks_values(rows_of, rows.clone()) {
                context.lacking.insert(table.clone());
            }
            let by = context.by(table, &transaction)?;
            for rows in divide(rows_of, rows, table, &transaction, &context.telling.divided) {
                let (Some(first), Some(last)) = (coordinate(rows_of, rows.start), coordinate(rows_of, rows.end.wrapping_sub(1)))
                else {
                    continue;
                };
                let digest = rows::digest::row_digests(rows_of, keys, rows.clone());
                let bytes = rows_of.bytes().saturating_mul(rows.len() as u64) / (rows_of.rows().max(1) as u64);
                let range = RowRange { batch: kernel::id::BatchId(0), rows: to_u32(rows.start)..to_u32(rows.end) };
                let (table, transaction) = (table.clone(), transaction.clone());
                let touched = by.clone().map(|by| {
                    let (keys, told) = (encoded(keys, rows.clone()), context.told(rows_of, rows));
                    Box::new(Touched { by, keys, told })
                });
                let event = LogEvent::Rows { table, transaction, rows: range, bytes, first, last, digest, touched };
                events.push(PreparedEvent::Rows { batch, event });
            }
            return Ok(());
        }
        ChunkEvent::Truncated { table, transaction, coordinate } => {
            let by = context.by(&table, &transaction)?;
            other(LogEvent::Truncated { table, transaction, coordinate, by })
        }
        ChunkEvent::Schema { table, transaction, coordinate, schema } => {
            let by = context.by(&table, &transaction)?;
            other(LogEvent::Schema { table, transaction, coordinate, schema, by })
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

/// A chunk of a snapshot whose long work is done.
pub(crate) struct PreparedChunk {
    rows: Option<(Arc<ChangeBatch>, Arc<EncodedKeys>)>,
    answer: ChunkAnswer,
}

/// Encodes a chunk's keys.
pub(crate) fn prepare_chunk(chunk: SnapshotChunk) -> Result<PreparedChunk, String> {
    let SnapshotChunk { rows, end, visibility, fence, schema, identity } = chunk;
    let (mut held, mut keys) = (None, Vec::new());
    if let Some(batch) = rows.filter(|batch| batch.rows() > 0) {
        let of = EncodedKeys::encode(&batch.schema, &batch.data).map_err(|e| broken_key_text(&batch, &e.to_string()))?;
        keys = encoded(&of, 0..batch.rows());
        held = Some((batch, Arc::new(of)));
    }
    let answer = ChunkAnswer { rows: None, keys, end, visibility, fence, schema: Some(schema), identity };
    Ok(PreparedChunk { rows: held, answer })
}

/// Puts a chunk's rows into the store; what is left is a fact.
pub(crate) fn hold_chunk(prepared: PreparedChunk, store: &mut RowStore) -> ChunkAnswer {
    let rows = prepared.rows.map(|(batch, keys)| {
        let (rows, bytes) = (to_u32(batch.rows()), batch.bytes());
        HeldBatch { batch: store.insert(batch, keys), rows, bytes }
    });
    ChunkAnswer { rows, ..prepared.answer }
}

/// Keys as the machines know them.
pub(crate) fn encoded(keys: &EncodedKeys, rows: std::ops::Range<usize>) -> Vec<EncodedKey> {
    rows.map(|row| EncodedKey::from(keys.key(row))).collect()
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

pub(crate) fn to_u32(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The source promised keys: a row without one should have come as a refused change.
fn broken_key(batch: &ChangeBatch, why: &str) -> LogFailure {
    LogFailure::Config { why: broken_key_text(batch, why) }
}

pub(crate) fn broken_key_text(batch: &ChangeBatch, why: &str) -> String {
    format!(
        "table {}: the source driver delivered a row whose key can't be encoded: {why}. This is a fault of the driver",
        batch.schema.table
    )
}

fn nameless(table: &TableName, transaction: &Transaction) -> LogFailure {
    let why = format!(
        "table {table}: the source driver reads it beside its log, and does not say how visibility calls transaction {transaction:?}. This is \
         a fault of the driver"
    );
    LogFailure::Config { why }
}

fn outside(batch: usize, transaction: &Transaction) -> LogFailure {
    let why = format!(
        "the source driver named rows outside of batch {batch} in transaction {transaction:?}. This is a fault of the driver"
    );
    LogFailure::Config { why }
}
