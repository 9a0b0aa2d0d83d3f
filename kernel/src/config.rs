//! What a machine is told once, when it begins. Every bound has its name here.

use alloc::collections::BTreeMap;

use crate::id::TableName;
use crate::time::Duration;

/// The configuration of one life of a pipeline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The member tables.
    pub tables: BTreeMap<TableName, TableConfig>,
    /// When a checkpoint closes.
    pub checkpoint: CheckpointLimits,
    /// How often the pipeline record is stored for the quiet position alone.
    pub record_interval: Duration,
    /// How long after an empty read the log is read again.
    pub poll_interval: Duration,
    /// Bytes of rows kept for parts that are not written (rule O9).
    pub budget_bytes_max: u64,
    /// Bytes that one read of the log may bring; not more than a quarter of the budget are asked for.
    pub read_bytes_max: u64,
    /// Retries of what failed transiently.
    pub retry: Retry,
    /// The source never discards anything (files): nothing is acknowledged, so that what was committed and rolled back by
    /// somebody else can still be read again.
    pub source_keeps_all: bool,
    /// How long a blocked table may keep the source from discarding before it is released; `None` for sources that keep all.
    pub hold: Option<Duration>,
    /// How much of the log, in its own measure, a halted or paused table may keep before it is released; `None` for sources that keep
    /// all.
    pub hold_distance: Option<u64>,
    /// After so long without a proof that this life is the newest it reads the record (rule O4).
    pub validate_interval: Duration,
    /// The least time between two goings back of the reader because a stalled table caught up (rule C3).
    pub rewind_interval: Duration,
    /// Runs of commits that a state lists as its ancestors (rule A2).
    pub ancestor_runs_max: usize,
    /// Durable commits of a table that are remembered until the quiet position passes them.
    pub recent_commits_max: usize,
    /// End once every table has taken what the log held when it was opened.
    pub until_current: bool,
    /// So many intervals of one stream a position may have by what the log brings about; at more the run ends.
    pub intervals_max: usize,
    /// Do any two changes of one row come in one order in every reading of the log (rule P5)? A source that cannot promise it is
    /// refused for tables that are kept by key.
    pub source_keeps_key_order: bool,
    /// Can the source read a table's rows in chunks, with what their snapshot saw? Without it a table that needs a snapshot
    /// goes on needing it.
    pub source_reads_chunks: bool,
    /// How snapshots are read.
    pub snapshot: SnapshotLimits,
    /// How values are found that updates left out.
    pub absent: AbsentLimits,
    /// The one wrong rule of a simulator's run.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::planted::PlantedBug>,
}

/// How one table is treated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TableConfig {
    /// Where a table begins that neither the sink nor the record knows.
    pub join: Join,
    /// Does the sink replace rows by key? A keyless target can't take rows twice.
    pub keyed: bool,
    /// Is the state written by compare-and-set, in one act with the data? Else each life claims the table first (rule R3).
    pub state_with_data: bool,
    /// What a TRUNCATE of the source does.
    pub on_truncate: OnTruncate,
    /// What a fault of this table does to the others.
    pub on_error: OnError,
    /// What ends its need of a snapshot.
    pub resnapshot: Resnapshot,
}

/// What has a table that needs a snapshot begin one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Resnapshot {
    /// A person asks.
    WhenAsked,
    /// The next start of the pipeline.
    AtStart,
}

/// How snapshots are read (rules S).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SnapshotLimits {
    /// Chunks of one table that are asked for or held at once.
    pub chunks_max: u32,
    /// Rows of one chunk.
    pub chunk_rows_max: u32,
    /// Bytes of one chunk.
    pub chunk_bytes_max: u64,
    /// Bytes of all chunks that are held or asked for; a single one may pass it.
    pub held_bytes_max: u64,
    /// Keys that a chunk may see touched until it is answered, and keys of a table that are remembered one by one.
    pub touched_keys_max: usize,
    /// How often it is asked what a new snapshot sees, while something is not proven to be visible.
    pub visibility_interval: Duration,
}

/// How values are found that updates left out (rules H).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AbsentLimits {
    /// Keys of a checkpoint that are remembered, once one of its rows lacks a value; at more it closes.
    pub keys_max: usize,
    /// Keys of a checkpoint whose values must be read; at more it closes.
    pub holes_max: usize,
    /// Bytes that one reading of rows may bring.
    pub read_bytes_max: u64,
    /// So many times its age a checkpoint stays open for the values that it lacks. Then they are taken as they are read.
    pub ages: u64,
    /// Readings in a row for a closed checkpoint that found nothing; then the table halts.
    pub attempts_max: u32,
}

/// Where a new table begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Join {
    /// At the beginning of a log that can still be read from there.
    Beginning,
    /// At the end that the log has when it is opened: only what comes from now on.
    Now,
    /// With a snapshot.
    Snapshot,
}

/// What a TRUNCATE of the source does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnTruncate {
    /// It empties the target.
    Propagate,
    /// It is counted and passed over.
    Ignore,
    /// It halts the table.
    Fail,
}

/// What a fault of one table does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnError {
    /// The table halts, the others go on.
    Halt,
    /// The run ends, the others' rows committed.
    Stop,
}

/// When a checkpoint closes (rule C1). At twice `rows` or `bytes`, and at three times `age`, also inside a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CheckpointLimits {
    /// Since its first row.
    pub age: Duration,
    /// Rows taken.
    pub rows: u64,
    /// Bytes of rows taken.
    pub bytes: u64,
}

/// How a transient failure is retried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Retry {
    /// After the first failure; doubles with each.
    pub first: Duration,
    /// At most.
    pub most: Duration,
    /// One step failing for so long ends the run; `None` is never.
    pub give_up_after: Option<Duration>,
}

impl Config {
    /// Defaults for these tables.
    pub fn new(tables: BTreeMap<TableName, TableConfig>) -> Self {
        Self {
            tables,
            checkpoint: CheckpointLimits { age: Duration::from_secs(10), rows: 1_000_000, bytes: 256 << 20 },
            record_interval: Duration::from_secs(10),
            poll_interval: Duration::from_millis(100),
            budget_bytes_max: 128 << 20,
            read_bytes_max: 8 << 20,
            retry: Retry { first: Duration::from_millis(200), most: Duration::from_secs(10), give_up_after: None },
            source_keeps_all: false,
            hold: None,
            hold_distance: None,
            validate_interval: Duration::from_secs(60),
            rewind_interval: Duration::from_secs(5),
            ancestor_runs_max: 16,
            recent_commits_max: 64,
            until_current: false,
            intervals_max: 1_024,
            source_keeps_key_order: true,
            source_reads_chunks: false,
            snapshot: SnapshotLimits {
                chunks_max: 4,
                chunk_rows_max: 50_000,
                chunk_bytes_max: 16 << 20,
                held_bytes_max: 64 << 20,
                touched_keys_max: 100_000,
                visibility_interval: Duration::from_secs(1),
            },
            absent: AbsentLimits { keys_max: 100_000, holes_max: 10_000, read_bytes_max: 16 << 20, ages: 6, attempts_max: 30 },
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

#[cfg(feature = "planted-bugs")]
impl crate::planted::Planted for Config {
    fn planted(&self) -> Option<crate::planted::PlantedBug> {
        self.planted
    }
}

impl TableConfig {
    /// A keyed table of a staging sink, read from the beginning of the log.
    pub fn new() -> Self {
        Self {
            join: Join::Beginning,
            keyed: true,
            state_with_data: true,
            on_truncate: OnTruncate::Propagate,
            on_error: OnError::Halt,
            resnapshot: Resnapshot::WhenAsked,
        }
    }
}

impl Default for TableConfig {
    fn default() -> Self {
        Self::new()
    }
}
