//! Netting: of all changes of a key within a checkpoint, one final image or one delete.
//!
//! [`net`] for targets that are kept by key, [`append`] for those where every change is a row of its own. Both number the
//! rows in log order, so that a row's version says where it stood, whatever became of the others.
//!
//! What is taken for granted (rule P5 and the source's contract): two changes of one key come in log order, and a key is
//! unique after each of them, never only at a transaction's end. `id = id + 1` over a whole table comes from the highest.
//!
//! A change of a key is two neighbouring rows with one coordinate major, a `Delete` of the old key and an `Insert` of the
//! new one: one row that moved. What it does not say of a value is what the row had before it moved.

mod absent;
mod again;
mod gather;
mod located;
mod survivors;

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use kernel::id::{Incarnation, TableName, Version};
use kernel::position::{Coordinate, Transaction};

use crate::batch::{MalformedBatch, Operation, RowPhase, Slice, Tail};
use crate::filter::Filter;
use crate::key::EncodedKeys;
use crate::schema::TableSchema;
use absent::Sources;
use again::{Again, Filled};
use located::Located;
use survivors::History;

/// What a checkpoint does to a table: at most one image or delete for each key (rule C2), or, for `append`, every row.
#[derive(Clone, Debug)]
pub struct Netted {
    /// What the columns are.
    pub schema: Arc<TableSchema>,
    /// The rows to insert or replace, in log order; data columns only, `schema.arrow()`.
    pub upserts: RecordBatch,
    /// Their encoded keys (none for `append`).
    pub upsert_keys: EncodedKeys,
    /// Their version each.
    pub upsert_versions: Vec<Version>,
    /// What the log said about each upserted row, one entry a row (operations, coordinates, runs of transactions). Its
    /// one ingest time and phase are those of the newest row; `upsert_reads` has every row's.
    pub upsert_tail: Tail,
    /// When each upserted row was read, and in which phase, as runs that together hold all rows.
    pub upsert_reads: Vec<ReadRun>,
    /// The old rows of the keys to remove, in log order: same columns, of which only the key's are sure to be there.
    pub deletes: RecordBatch,
    /// Their encoded keys.
    pub delete_keys: EncodedKeys,
    /// Their version each.
    pub delete_versions: Vec<Version>,
}

/// Neighbouring rows that were read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRun {
    /// How many rows.
    pub rows: usize,
    /// As in [`Tail`].
    pub ingest_time: i64,
    /// As in [`Tail`].
    pub phase: RowPhase,
}

/// How rows get their versions: the i-th of all rows, counted from 0, gets sequence `first + i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbering {
    /// The life that numbers them.
    pub incarnation: Incarnation,
    /// The sequence of the first row.
    pub first: u64,
}

/// What netting found.
#[derive(Clone, Debug)]
pub enum NetOutcome {
    /// The rows, every value of every upserted row known.
    Netted(Box<Netted>),
    /// Values that were not sent and that no earlier row of the checkpoint has, by column. Nothing may be written.
    Holes(Vec<Hole>),
}

/// A column with values that nobody here knows (rule H1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hole {
    /// The column.
    pub column: String,
    /// How many rows lack it.
    pub rows: usize,
    /// The first of them: its transaction.
    pub transaction: Transaction,
    /// The first of them: its place in the transaction.
    pub coordinate: Coordinate,
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hole { column, rows, transaction, coordinate } = self;
        let changed = if *rows == 1 { "1 changed row does".to_owned() } else { format!("{rows} changed rows do") };
        write!(f, "{changed} not carry the value of column '{column}', and no earlier change in the checkpoint does ")?;
        write!(f, "(first in transaction {transaction:?} at {coordinate:?})")
    }
}

/// What was read again for a key whose last image lacks values, as the kernel's `Fill` says it: this key takes of it, and no other.
#[derive(Clone, Debug)]
pub struct ReadAgain<'a> {
    /// The encoded key.
    pub key: &'a [u8],
    /// Its one row, with every value; `None` if there was none. A row that moved since it was read still has the key that it had.
    pub row: Option<Slice>,
    /// All of the row is taken as it was read, or its absence, and not only what the image lacks.
    pub whole: bool,
}

/// Why rows cannot be netted: a fault of ours or of a driver, but for `TooLarge`.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No slice at all, so not even a schema.
    #[error("there is nothing to net")]
    Nothing,
    /// A table without a key cannot be netted.
    #[error("table {table} has no key, so its changes can only be appended; name its primaryKey or use the mode append")]
    NoKey {
        /// The table.
        table: TableName,
    },
    /// Slices of different schemas. A schema change closes the checkpoint before it (rule C7).
    #[error("rows of table {table} under one schema and of table {other} under another stand in one checkpoint")]
    Schemas {
        /// The first slice's table.
        table: TableName,
        /// The table of the slice that differs.
        other: TableName,
    },
    /// A filter that was made for other rows.
    #[error("rows of table {table} came to a filter of table {other}, or under another schema")]
    OtherFilter {
        /// The rows' table.
        table: TableName,
        /// The filter's table.
        other: TableName,
    },
    /// A batch that contradicts itself.
    #[error(transparent)]
    Malformed(#[from] MalformedBatch),
    /// Rows that the batch or its keys do not have.
    #[error("rows {from} to {to} of a batch of table {table} are asked for, which has {rows} rows and {keys} keys")]
    Rows {
        /// The table.
        table: TableName,
        /// The first row asked for.
        from: usize,
        /// The row after the last one asked for.
        to: usize,
        /// How many the batch has.
        rows: usize,
        /// How many keys there are.
        keys: usize,
    },
    /// More rows than one net takes, or than versions are left in this life.
    #[error("table {table}: {rows} rows in one checkpoint, the first of them number {first}, are more than can be numbered")]
    TooLarge {
        /// The table.
        table: TableName,
        /// How many rows.
        rows: usize,
        /// The number of the first.
        first: u64,
    },
    /// A row that was read again is not the one row of the key that it is for.
    #[error("table {table}: what was read again for a key is another key's row, or not one row")]
    ReadAgain {
        /// The table.
        table: TableName,
    },
    /// Arrow could not put the columns together, for example because text of one column exceeds 2 GiB.
    #[error("table {table}: the rows of a checkpoint cannot be put together: {source}; smaller checkpoints may help")]
    Arrow {
        /// The table.
        table: TableName,
        /// What Arrow said.
        source: ArrowError,
    },
}

/// One final image or one delete for each key. A key that was inserted and deleted in here still yields its delete, since
/// an older row of it may be at the target (rule C2).
pub fn net(slices: &[Slice], numbering: Numbering) -> Result<NetOutcome, NetError> {
    net_filled(slices, numbering, None, &[])
}

/// The same for a target that holds only the rows that match: of a key whose final image does not, its delete. And where rows were
/// read again for what images lack: an image that lacks nothing takes nothing of them. Versions, keys and what the log said of each
/// row are as they would be without.
pub fn net_filled(
    slices: &[Slice],
    numbering: Numbering,
    filter: Option<&Filter>,
    read: &[ReadAgain<'_>],
) -> Result<NetOutcome, NetError> {
    let mut rows = Located::new(slices, numbering)?;
    if rows.schema.key.is_empty() {
        return Err(NetError::NoKey { table: rows.schema.table.clone() });
    }
    let again = Again::place(&mut rows, read)?;
    let absent = absent::columns(&rows);
    let history = History::of(&rows, !absent.is_empty());
    let (upserts, deletes) = history.survivors(&rows);

    let mut sources = Sources::find(&rows, &history, &absent);
    let Filled { mut upserts, mut images, mut deletes } = again.fill(&rows, &mut sources, upserts, deletes);
    if let Some(filter) = filter {
        if *filter.schema() != *rows.schema {
            let (table, other) = (rows.schema.table.clone(), filter.schema().table.clone());
            return Err(NetError::OtherFilter { table, other });
        }
        let holes = sources.holes_in(&rows, &upserts, |column| filter.columns().contains(&column));
        if !holes.is_empty() {
            return Ok(NetOutcome::Holes(holes));
        }
        let columns = gather::columns(&rows, &upserts, &images, &sources, filter.columns())?;
        let matching = filter.matching(upserts.len(), &|column| Arc::clone(&columns[&column]));
        let removed = upserts.iter().zip(&matching).filter(|(_, matches)| !matches).map(|(number, _)| *number);
        deletes.extend(removed);
        deletes.sort_unstable();
        for rows in [&mut upserts, &mut images] {
            let mut matching = matching.iter();
            rows.retain(|_| matching.next() == Some(true));
        }
    }
    let holes = sources.holes(&rows, &upserts);
    if !holes.is_empty() {
        return Ok(NetOutcome::Holes(holes));
    }
    Ok(NetOutcome::Netted(Box::new(Netted {
        schema: Arc::clone(rows.schema),
        upserts: gather::data(&rows, &upserts, &images, &sources)?,
        upsert_keys: gather::keys(&rows, &upserts),
        upsert_versions: gather::versions(&upserts, numbering),
        upsert_tail: gather::tail(&rows, &upserts),
        upsert_reads: gather::reads(&rows, &upserts),
        deletes: gather::data(&rows, &deletes, &deletes, &Sources::default())?,
        delete_keys: gather::keys(&rows, &deletes),
        delete_versions: gather::versions(&deletes, numbering),
    })))
}

/// Every row, in order, deletes too, as upserts with their tail. A value that an update did not send is filled from an
/// earlier row as in [`net`]; of a delete, what was not sent is null.
pub fn append(slices: &[Slice], numbering: Numbering) -> Result<NetOutcome, NetError> {
    let rows = Located::new(slices, numbering)?;
    let absent = absent::columns(&rows);
    let history = if absent.is_empty() || rows.schema.key.is_empty() { History::unknown() } else { History::of(&rows, true) };
    let sources = Sources::find(&rows, &history, &absent);

    let all: Vec<u32> = rows.numbers().collect();
    let images: Vec<u32> = rows.numbers().filter(|number| rows.operation(*number) != Operation::Delete).collect();
    let holes = sources.holes(&rows, &images);
    if !holes.is_empty() {
        return Ok(NetOutcome::Holes(holes));
    }
    Ok(NetOutcome::Netted(Box::new(Netted {
        upserts: gather::data(&rows, &all, &all, &sources.but_for_deletes(&rows))?,
        upsert_versions: gather::versions(&all, numbering),
        upsert_tail: gather::tail(&rows, &all),
        upsert_reads: gather::reads(&rows, &all),
        ..Netted::empty(Arc::clone(rows.schema))
    })))
}

impl Netted {
    /// Nothing at all.
    pub fn empty(schema: Arc<TableSchema>) -> Self {
        let nothing = RecordBatch::new_empty(Arc::new(schema.arrow()));
        Self {
            schema,
            upserts: nothing.clone(),
            upsert_keys: EncodedKeys::default(),
            upsert_versions: Vec::new(),
            upsert_tail: gather::no_tail(),
            upsert_reads: Vec::new(),
            deletes: nothing,
            delete_keys: EncodedKeys::default(),
            delete_versions: Vec::new(),
        }
    }

    /// Does it change nothing?
    pub fn is_empty(&self) -> bool {
        self.upsert_versions.is_empty() && self.delete_versions.is_empty()
    }
}
