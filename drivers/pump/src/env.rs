//! What a pump needs of the world: drivers, a clock, somewhere to compute. `host` gives it on tokio, the simulator in a world
//! of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::coordinator::{ChunkRange, Coordinator, Restart, Visibility};
use kernel::id::{AttemptId, Bound, CommitId, EncodedKey, Incarnation, Session, TableName, Token, TransactionName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::{Coordinate, LogIdentity, Position, Transaction};
use kernel::state::{PipelineState, TableState};
use kernel::time::Time;
use rows::filter::Filter;
use rows::{ChangeBatch, Netted, TableSchema};

/// Why a command that only reads did not happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It may succeed later.
    Transient(String),
    /// It can never work as configured.
    Refused(String),
}

/// A log that was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedLog {
    /// The new session; a larger number than any before in this process.
    pub session: Session,
    /// Which history it is.
    pub identity: LogIdentity,
    /// All that can no longer be streamed.
    pub floor: Position,
    /// Where the log ends now.
    pub end: Position,
}

/// What one read of the log brought.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The rows.
    pub batches: Vec<Arc<ChangeBatch>>,
    /// What happened, in log order, with references into `batches`.
    pub events: Vec<ChunkEvent>,
    /// How visibility calls the transactions of these events, where the source's tables can be read beside its log.
    pub names: BTreeMap<Transaction, TransactionName>,
    /// Nothing will ever come after these events.
    pub finished: bool,
}

/// Which rows of a table a snapshot wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotRead {
    /// The table.
    pub table: TableName,
    /// Which range of its keys.
    pub range: ChunkRange,
    /// At most so many rows.
    pub rows_max: u32,
    /// About so many bytes.
    pub bytes_max: u64,
    /// Transactions of which the answer says whether its snapshot provably saw them.
    pub about: BTreeSet<TransactionName>,
}

/// What a read for a snapshot brought.
#[derive(Clone, Debug)]
pub struct SnapshotChunk {
    /// The rows, in the order of their key; `None` if there are none.
    pub rows: Option<Arc<ChangeBatch>>,
    /// How far it came; `None` is the end of the key space.
    pub end: Option<Bound>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// Where the log ended after the read.
    pub fence: Position,
    /// What the rows look like, as it is stored with the table's state.
    pub schema: String,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}

/// Which rows of a table are wanted again, for values that updates left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsWanted {
    /// The table.
    pub table: TableName,
    /// Their keys.
    pub keys: Vec<EncodedKey>,
    /// The schema that they must be of, where it ever changed.
    pub schema: Option<String>,
    /// About so many bytes.
    pub bytes_max: u64,
    /// Transactions of which the answer says whether its snapshot provably saw them.
    pub about: BTreeSet<TransactionName>,
}

/// What reading rows again brought.
#[derive(Clone, Debug)]
pub struct RowsAgain {
    /// Those that are there, in any order; a key that was not asked for counts for nothing. `None` if there are none.
    pub rows: Option<Arc<ChangeBatch>>,
    /// Which of the keys, by their place, no row has. One that is neither here nor among the rows was not read.
    pub gone: Vec<usize>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// Where the log ended after the read.
    pub fence: Position,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}

/// One thing that the log says.
#[derive(Clone, PartialEq, Debug)]
pub enum ChunkEvent {
    /// Neighbouring rows of one table in one transaction.
    Rows {
        /// Which of the chunk's batches.
        batch: usize,
        /// Which of its rows.
        rows: Range<usize>,
        /// Their transaction.
        transaction: Transaction,
    },
    /// The table was emptied.
    Truncated {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
    },
    /// From here on the table's rows have another schema.
    Schema {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// The schema, as it is stored with the table's state.
        schema: String,
    },
    /// A change that the table's policy does not let through.
    Refused {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// What is wrong and what to do.
        why: String,
    },
    /// A transaction ended.
    Ended {
        /// The transaction.
        transaction: Transaction,
        /// It and everything before it in its stream.
        upto: Position,
    },
    /// Nothing for us up to here.
    Keepalive {
        /// Up to where.
        upto: Position,
    },
}

/// One commit of one table.
#[derive(Debug)]
pub struct Commit<'a, S> {
    /// The table.
    pub table: &'a TableName,
    /// The token that its state must have.
    pub token: &'a Token,
    /// The new state.
    pub state: &'a TableState,
    /// What the present attempts staged.
    pub staged: Vec<Arc<S>>,
    /// All rows go first.
    pub truncate_first: bool,
    /// What an older generation left goes with it.
    pub sweep: bool,
}

/// Something for people: logged by whoever runs the pump.
#[derive(Clone, PartialEq, Debug)]
pub enum Notice {
    /// Where a table begins in this life.
    Started {
        /// The table.
        table: TableName,
        /// The state that was found.
        state: Option<Box<TableState>>,
        /// Does the log lack something that it needs?
        lost: bool,
    },
    /// A table stopped; the others go on.
    Halted {
        /// The table.
        table: TableName,
        /// What happened and what to do.
        why: String,
        /// The event that it stopped at.
        at: Option<(Transaction, Coordinate)>,
    },
    /// What somebody asked of a table can't be done; nothing has changed.
    Declined {
        /// The table.
        table: TableName,
        /// What was asked, why it can't be, and what to do.
        why: String,
    },
    /// An event was passed over because somebody said `skip`.
    Skipped {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
    },
}

/// The world of one pump. Methods may run at once, but for those that the kernel's order law puts in one lane.
#[async_trait]
pub trait Env: Send + Sync + 'static {
    /// What a writer made, as its committer needs it.
    type Staged: Send + Sync + 'static;

    /// The time.
    fn now(&self) -> Time;

    /// Returns at that time, not before.
    async fn sleep_until(&self, at: Time);

    /// Runs something that takes long on a core of its own, if there is one.
    async fn compute<T: Send + 'static>(&self, work: Box<dyn FnOnce() -> T + Send>) -> T;

    /// Reads the pipeline record.
    async fn read_pipeline_state(&self) -> Result<(Option<PipelineState>, Token), Failure>;

    /// Replaces it by compare-and-set.
    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome;

    /// Reads a table's state.
    async fn recover_table(&self, table: &TableName) -> Result<(Option<TableState>, Token), Failure>;

    /// Opens the log in a new session. `incarnation` is this life, taken.
    async fn open_log(&self, incarnation: Incarnation) -> Result<OpenedLog, LogFailure>;

    /// Reads what comes next, or begins anew.
    async fn read_log(&self, restart: Option<&Restart>, bytes_max: u64) -> Result<Chunk, LogFailure>;

    /// Proposes bounds that divide a table's keys into about equal parts.
    async fn plan_ranges(&self, table: &TableName, wanted: u32) -> Result<Vec<Bound>, Failure>;

    /// Reads rows of a table in one snapshot.
    async fn read_chunk(&self, read: SnapshotRead) -> Result<SnapshotChunk, Failure>;

    /// What a new snapshot of the source sees.
    async fn read_visibility(&self, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Failure>;

    /// Can rows be read again by their keys? Else a value that a row does not carry must be in an earlier row of its checkpoint.
    fn reads_rows(&self) -> bool;

    /// Reads rows of a table again by their keys, in one snapshot.
    async fn read_rows(&self, wanted: RowsWanted) -> Result<RowsAgain, Failure>;

    /// Lets the source forget.
    async fn acknowledge(&self, session: Session, upto: &Position);

    /// By what rows of this schema are judged once they are netted: what does not match goes from the target.
    fn filter(&self, schema: &TableSchema) -> Option<Arc<Filter>>;

    /// How a table's rows are netted: by key, or every row kept.
    fn keeps_every_row(&self, table: &TableName) -> bool;

    /// Stages a part. The outcome is `Written` exactly if there is something staged.
    async fn write(&self, table: &TableName, attempt: AttemptId, rows: Netted) -> (WriteOutcome, Option<Self::Staged>);

    /// Makes data and state visible together.
    async fn commit(&self, commit: Commit<'_, Self::Staged>) -> CommitOutcome;

    /// Is the commit in the table's kept history?
    async fn resolve(&self, table: &TableName, commit: CommitId, incarnation: Incarnation) -> Result<(bool, Token), Failure>;

    /// Deletes what an attempt staged, best effort.
    async fn delete_staged(&self, table: &TableName, staged: Arc<Self::Staged>);

    /// Deletes what older lives staged and never published, best effort.
    async fn discard_older(&self, table: &TableName, incarnation: Incarnation);

    /// Does the coordinator look at all its rules after every step? That takes time, and a released build does not.
    fn checks_rules(&self) -> bool {
        cfg!(debug_assertions)
    }

    /// Tells people.
    fn notice(&self, notice: Notice);

    /// Called after every step, with the machine to look at. Must be quick.
    fn observe(&self, coordinator: &Coordinator);
}
