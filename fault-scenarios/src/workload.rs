//! What the source's log says: streams, tables, transactions with their changes.

use serde::{Deserialize, Serialize};

use crate::step::Tab;

/// A row's key.
pub type Key = u8;
/// A row's value. No two changes of a workload have the same, so that a value tells where it came from.
pub type Value = u32;

/// Large values of a row: two groups of columns, `a` and `b`. An update may leave either out.
pub const GROUPS: usize = 2;
/// Their words.
pub const GROUP_WORDS: [&str; GROUPS] = ["a", "b"];

/// A log, and the tables that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its streams; none is one stream without a name.
    pub streams: Vec<Stream>,
    /// Its tables: `t0`, `t1` and so on.
    pub tables: Vec<Table>,
    /// In the order of their times.
    pub transactions: Vec<Transaction>,
    /// Values that the sinks refuse while faults happen.
    pub refused: Vec<Value>,
}

/// One stream of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// When it appears.
    pub appears: u64,
}

/// How a table is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// To what.
    pub sink: Sink,
    /// Does the sink replace rows by key?
    pub keyed: bool,
    /// Where the copy begins.
    pub join: Join,
    /// What a TRUNCATE does.
    pub truncate: Truncate,
    /// Does a start begin the snapshot that it needs? Else a person has to ask.
    pub anew: bool,
}

/// What kind of sink it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sink {
    /// Data and state become visible in one act, by compare-and-set.
    Staging,
    /// Rows are visible when they are written; the state is written apart, and nothing compares.
    Versioned,
}

/// Where a copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Join {
    /// Where the log does.
    Beginning,
    /// Where the log ends.
    Now,
    /// With a snapshot.
    Snapshot,
}

/// What a TRUNCATE of the source does to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truncate {
    /// It empties it.
    Propagates,
    /// Nothing.
    Ignored,
    /// It halts the table.
    Fails,
}

/// One transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// What a reader should know of it.
    pub note: Vec<String>,
    /// The stream that holds it, by its number.
    pub stream: usize,
    /// When it is in the log.
    pub time: u64,
    /// Offsets of the stream that lie between the one before and this one: what is not ours.
    pub gap: u64,
    /// How long before that it began.
    pub early: u64,
    /// How long after that snapshots see it; sooner, if a later one had to wait for it.
    pub hidden: u64,
    /// How long after that the source can say that they do.
    pub unlisted: u64,
    /// How long after its time it is in the log of every second server, where the log is one of sets.
    pub late: u64,
    /// What it does.
    pub changes: Vec<Change>,
}

/// One change of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The table.
    pub table: Tab,
    /// What happens to it.
    pub kind: Kind,
    /// The large values that it leaves out, as far as the row is there already: a new row is sent whole.
    pub without: [bool; GROUPS],
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A row has this value now.
    Set(Key, Value),
    /// A row is gone.
    Gone(Key),
    /// A row goes from one key to another.
    Moved(Key, Key, Value),
    /// The table is empty now.
    Truncated,
    /// The table's rows have the next schema from here on.
    Schema,
    /// A row that no policy lets through.
    Refused,
}

impl Table {
    /// A keyed table of this sink, from the beginning of the log.
    pub const fn of(sink: Sink) -> Self {
        Self { sink, keyed: true, join: Join::Beginning, truncate: Truncate::Propagates, anew: false }
    }
}

impl Kind {
    /// The value that it brings.
    pub fn value(self) -> Option<Value> {
        match self {
            Kind::Set(_, value) | Kind::Moved(_, _, value) => Some(value),
            Kind::Gone(_) | Kind::Truncated | Kind::Schema | Kind::Refused => None,
        }
    }
}

impl Workload {
    /// When its last transaction is in the log.
    pub fn last_time(&self) -> u64 {
        self.transactions.last().map_or(0, |t| t.time)
    }

    /// How many streams it has.
    pub fn streams(&self) -> usize {
        self.streams.len().max(1)
    }
}
