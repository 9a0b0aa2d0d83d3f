//! What goes into a coordinator and what comes out: facts in the past tense, commands in the imperative.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::absent::{Fill, RowsAnswer};
use super::chunk::{ChunkAnswer, ChunkRange, Touched, Visibility};
use crate::id::{
    AttemptId, BatchId, Bound, CommandId, CommitId, EncodedKey, Incarnation, Part, Session, TableName, Token, TransactionName,
    Version,
};
use crate::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use crate::position::{Coordinate, Digest, LogIdentity, Position, Transaction};
use crate::state::{Phase, PipelineState, TableState};

/// A fact.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// Answers [`Output::ReadPipelineState`].
    PipelineStateRead {
        /// Of the command.
        id: CommandId,
        /// The record, if there is one.
        state: Option<Box<PipelineState>>,
        /// Its token.
        token: Token,
    },
    /// Answers [`Output::StorePipelineState`].
    PipelineStateStored {
        /// Of the command.
        id: CommandId,
        /// What became of it.
        outcome: StoreOutcome,
    },
    /// Answers [`Output::RecoverTable`].
    TableRecovered {
        /// Of the command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// Its state, if it has one.
        state: Option<Box<TableState>>,
        /// Its token.
        token: Token,
    },
    /// Answers [`Output::OpenLog`].
    LogOpened {
        /// Of the command.
        id: CommandId,
        /// The new session.
        session: Session,
        /// Which history it is.
        identity: LogIdentity,
        /// All that can no longer be streamed.
        floor: Position,
        /// Where the log ends now.
        end: Position,
    },
    /// Answers [`Output::ReadLog`].
    LogRead {
        /// Of the command.
        id: CommandId,
        /// The rows that came, now in the row store. The machine gives each back with [`Output::ReleaseBatch`].
        batches: Vec<HeldBatch>,
        /// What happened, in log order.
        events: Vec<LogEvent>,
        /// Nothing will ever come after these events.
        finished: bool,
    },
    /// Answers [`Output::ReadLog`] or [`Output::OpenLog`] too.
    LogFailed {
        /// Of the command.
        id: CommandId,
        /// Why.
        failure: LogFailure,
    },
    /// Answers [`Output::PlanRanges`].
    RangesPlanned {
        /// Of the command.
        id: CommandId,
        /// Where the ranges end, in the order of the key; the last one ends where the key space does and is not named.
        bounds: Vec<Bound>,
    },
    /// Answers [`Output::ReadChunk`].
    ChunkRead {
        /// Of the command.
        id: CommandId,
        /// What was read.
        chunk: Box<ChunkAnswer>,
    },
    /// Answers [`Output::ReadVisibility`].
    VisibilityRead {
        /// Of the command.
        id: CommandId,
        /// What a snapshot taken after the command was given sees.
        visibility: Visibility,
    },
    /// Answers [`Output::ReadRows`].
    RowsRead {
        /// Of the command.
        id: CommandId,
        /// What was read.
        answer: Box<RowsAnswer>,
    },
    /// A worker answers [`ToWorker::Write`].
    Written {
        /// Of the part.
        attempt: AttemptId,
        /// What became of it.
        outcome: WriteOutcome,
    },
    /// Answers [`Output::Commit`].
    Committed {
        /// Of the command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// What became of it.
        outcome: CommitOutcome,
    },
    /// Answers [`Output::Resolve`].
    Resolved {
        /// Of the command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// Is the commit in the table's history?
        found: bool,
        /// The table's token now.
        token: Token,
    },
    /// Answers a command that only reads: it did not happen, and may succeed later.
    Failed {
        /// Of the command.
        id: CommandId,
        /// What happened, for people.
        why: String,
    },
    /// Answers a command that only reads: it can never work.
    Refused {
        /// Of the command.
        id: CommandId,
        /// What happened and what would help, for people.
        why: String,
    },
    /// A person asks.
    Operator(Operator),
    /// The time that [`super::Coordinator::poll_timeout`] named has come.
    Timeout,
}

/// What a person asks of a running pipeline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    /// Take no more rows of a table.
    Pause(TableName),
    /// Go on with a paused or halted one.
    Resume(TableName),
    /// Pass the event that halted it, and go on.
    Skip(TableName),
    /// Hold nothing for a paused or halted table any more: it needs a snapshot.
    Release(TableName),
    /// Begin a table's snapshot anew, whatever it is doing.
    Resnapshot(TableName),
    /// Commit what was taken, then end.
    Drain,
}

/// Rows in the row store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeldBatch {
    /// Under which id.
    pub batch: BatchId,
    /// How many rows.
    pub rows: u32,
    /// Bytes of memory.
    pub bytes: u64,
}

/// Neighbouring rows of a held batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowRange {
    /// The batch.
    pub batch: BatchId,
    /// Which of its rows.
    pub rows: Range<u32>,
}

impl RowRange {
    /// How many rows.
    pub fn count(&self) -> u32 {
        self.rows.end.saturating_sub(self.rows.start)
    }
}

/// One thing that the log says.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LogEvent {
    /// Neighbouring rows of one table in one transaction. The pump divides them at the points that [`Output::ReadLog`]
    /// names, so that all of them are covered by the table's cut, or none.
    Rows {
        /// The table.
        table: TableName,
        /// Their transaction.
        transaction: Transaction,
        /// Where they are.
        rows: RowRange,
        /// Bytes of memory, about.
        bytes: u64,
        /// Of the first one.
        first: Coordinate,
        /// Of the last one.
        last: Coordinate,
        /// Of all of them.
        digest: Digest,
        /// Whose keys they are, where [`Output::ReadLog`] asks for the table's keys. Of a table that is kept by key also where one of
        /// them lacks a value, and for all that come behind that one in the same read.
        touched: Option<Box<Touched>>,
    },
    /// The table was emptied.
    Truncated {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// The transaction as visibility knows it, where [`Output::ReadLog`] asks for the table's keys.
        by: Option<TransactionName>,
    },
    /// From here on the table's rows have another schema. Its coordinate lies below that of the first such row and is no
    /// row's; a later reading that begins with this schema need not tell it again.
    Schema {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// The schema, in the words of the driver.
        schema: String,
        /// The transaction as visibility knows it, where [`Output::ReadLog`] asks for the table's keys.
        by: Option<TransactionName>,
    },
    /// A row that the table's policy does not let through. It repeats on every reading (rule C2).
    Refused {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// What is wrong and what to do, for people.
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

/// A command. Those that want an answer carry an id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// Read the pipeline record.
    ReadPipelineState {
        /// Of this command.
        id: CommandId,
    },
    /// Replace the pipeline record.
    StorePipelineState {
        /// Of this command.
        id: CommandId,
        /// The token that the present record must have.
        expected: Token,
        /// The new record.
        new: Box<PipelineState>,
    },
    /// Read a table's state.
    RecoverTable {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
    },
    /// Open the log, in a new session.
    OpenLog {
        /// Of this command.
        id: CommandId,
    },
    /// Read what comes next. The answers to earlier ones are void.
    ReadLog {
        /// Of this command.
        id: CommandId,
        /// In which session.
        session: Session,
        /// Where to begin anew; `None` goes on behind the last read.
        restart: Option<Restart>,
        /// How many bytes it may bring.
        bytes_max: u64,
        /// The tables whose rows come with their keys: those of which a snapshot is being read, or of whose open checkpoint a row
        /// lacks a value. The others pay nothing.
        keys_of: Vec<TableName>,
    },
    /// Propose ranges that divide a table's key space into about equal parts, for reading them side by side.
    PlanRanges {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// About how many ranges.
        wanted: u32,
    },
    /// Read rows of a range, in the order of the key, in one snapshot with their visibility, and the log's end after it.
    /// The answer says how far it came; it may stop at a bound of its own, and has one row at least if there is one.
    ReadChunk {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// Which range.
        range: ChunkRange,
        /// How many rows it may bring.
        rows_max: u32,
        /// How many bytes it may bring.
        bytes_max: u64,
        /// Transactions of which the answer says whether its snapshot provably saw them.
        about: Vec<TransactionName>,
    },
    /// Say what a new snapshot sees.
    ReadVisibility {
        /// Of this command.
        id: CommandId,
        /// The table that it is for.
        table: TableName,
        /// Transactions of which the answer says whether they are provably visible.
        about: Vec<TransactionName>,
        /// Is every transaction wanted that is not finished?
        unfinished: bool,
    },
    /// Read the rows with these keys again, in one snapshot with their visibility, and the log's end after it. The answer may leave
    /// keys out to keep to the bytes, but not all of them.
    ReadRows {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// The keys.
        keys: Vec<EncodedKey>,
        /// The schema that the rows must be of, where it ever changed: what came later is left out. Where such rows can't be made
        /// of what is there now, the command is refused.
        schema: Option<String>,
        /// How many bytes it may bring; one row may pass it.
        bytes_max: u64,
        /// Transactions of which the answer says whether its snapshot provably saw them.
        about: Vec<TransactionName>,
    },
    /// The machine needs these rows no more.
    ReleaseBatch {
        /// Where they are.
        batch: BatchId,
    },
    /// Say this to the worker that has the table.
    Send(ToWorker),
    /// Make data and state visible together. Lane: the table.
    Commit {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// The token that its state must have.
        token: Token,
        /// The new state. Its commit id names the commit.
        state: Box<TableState>,
        /// The artefacts of these attempts become visible.
        staged: Vec<AttemptId>,
        /// All rows go first.
        truncate_first: bool,
        /// Rows of versions below the new state's `begun` are removed, before the state says so: what an older generation left
        /// (rule G2). Where data and state are one act, in it; else the removal is repeated until it is known to be done.
        sweep: bool,
    },
    /// Look for a commit in the table's kept history. Lane: the table.
    Resolve {
        /// Of this command.
        id: CommandId,
        /// The table.
        table: TableName,
        /// The commit.
        commit: CommitId,
        /// The life that wrote its state.
        incarnation: Incarnation,
    },
    /// Forget what an attempt staged, and delete it if `delete`. Lane: the table.
    ReleaseStaged {
        /// The table.
        table: TableName,
        /// The attempt.
        attempt: AttemptId,
        /// Was it never part of a commit whose outcome was unknown, and not published?
        delete: bool,
    },
    /// Delete what older lives staged and never published. Lane: the table.
    DiscardOlder {
        /// The table.
        table: TableName,
        /// This life.
        incarnation: Incarnation,
    },
    /// Let the source forget. Lane: the source.
    Acknowledge {
        /// In which session.
        session: Session,
        /// Everything in here.
        upto: Position,
    },
    /// For people and for the simulators' oracle: where a table begins in this life.
    Started {
        /// The table.
        table: TableName,
        /// The state that was found.
        state: Option<Box<TableState>>,
        /// What could no longer be streamed.
        floor: Position,
        /// Does that lack something the table needs?
        lost: bool,
    },
    /// For people: a table stopped, the others go on.
    HaltTable {
        /// The table.
        table: TableName,
        /// What happened and what to do.
        why: String,
        /// The event that it stopped at, which `skip` would pass.
        at: Option<(Transaction, Coordinate)>,
    },
    /// For people: what somebody asked of a table can't be done. Nothing has changed.
    Declined {
        /// The table.
        table: TableName,
        /// What was asked, why it can't be, and what to do.
        why: String,
    },
    /// For people: an event was passed over because somebody said `skip`.
    Skipped {
        /// The table.
        table: TableName,
        /// In which transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
    },
    /// This life is over. No output follows.
    Stop {
        /// Why.
        reason: StopReason,
    },
}

/// Where a reader begins, and where it must divide rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Restart {
    /// Everything in here was read.
    pub from: Position,
    /// Where the tables stand, each once. Every one of these stood between two transactions when the log was read before, and
    /// must again: a source that took a silence for a transaction's end divides there.
    pub stands: Vec<Position>,
    /// The schema of each table's rows behind its stand, where a change of it was ever taken.
    pub schemas: Vec<(TableName, String)>,
    /// Rows of this table and transaction are divided behind this coordinate.
    pub divided: Vec<(TableName, Transaction, Coordinate)>,
}

/// What a coordinator says to a worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ToWorker {
    /// Net these rows and write them.
    Write {
        /// Of this try.
        attempt: AttemptId,
        /// What it is a try of.
        part: Part,
        /// The rows, in log order.
        rows: Vec<RowRange>,
        /// The first one's version; each next one's is one higher.
        first_version: Version,
        /// What is taken for values that the last image of a key lacks.
        fills: Vec<Fill>,
    },
    /// Forget this attempt.
    Abandon {
        /// Which.
        attempt: AttemptId,
    },
}

/// Why a life is over.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StopReason {
    /// Everything that was taken is committed; a person asked, or the log's end was reached. Tables may be halted.
    Drained,
    /// As `Drained`, because the log holds something that can't be read.
    Poison {
        /// What, where, what to do.
        why: String,
    },
    /// As `Drained`, because a table whose `on_error` says so halted.
    TableHalted {
        /// Which.
        table: TableName,
    },
    /// What is stored is no place in this log.
    PositionLost {
        /// What, where, what to do.
        why: String,
    },
    /// It can never work as configured.
    Config {
        /// What, where, what to do.
        why: String,
    },
    /// A step kept failing for longer than `retry.give_up_after`.
    Unreachable {
        /// What was tried and what happened.
        why: String,
    },
    /// A newer life has taken over. This one has stopped everything.
    Superseded {
        /// The newer one.
        by: Incarnation,
    },
    /// A rule of the kernel is broken: a fault in urutau itself.
    Violation {
        /// The invariant.
        rule: &'static str,
        /// What was seen.
        dump: String,
    },
}

/// A table as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableStatus {
    /// What it is doing.
    pub phase: Phase,
    /// Why it is halted or what it needs, for people.
    pub why: Option<String>,
    /// Where the copy stands.
    pub stored: Option<TableState>,
    /// Up to where its rows were taken.
    pub taken: Position,
    /// Rows taken and not yet durable.
    pub rows_owed: u64,
    /// Rows in durable commits of this life.
    pub rows_durable: u64,
    /// Durable commits of this life.
    pub commits: u64,
    /// It passed over rows and will read them again.
    pub blocked: bool,
    /// Rows of snapshot chunks that were taken in this life.
    pub chunk_rows: u64,
    /// Rows of snapshot chunks in whose place the log's were taken in this life: something touched their keys that the chunk did
    /// not provably see.
    pub chunk_rows_dropped: u64,
    /// How far its snapshot is, while one is being read.
    pub snapshot: Option<SnapshotStatus>,
}

/// A snapshot as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotStatus {
    /// Its number.
    pub generation: u64,
    /// Is its beginning durable?
    pub begun: bool,
    /// Ranges of which rows are still to be read.
    pub ranges_missing: usize,
    /// All ranges as they are known now.
    pub ranges: usize,
    /// Chunks asked for, or read and not yet released.
    pub chunks_open: usize,
    /// Chunks asked for in this life.
    pub chunks_asked: u64,
    /// Chunks that were read for nothing in this life.
    pub chunks_void: u64,
    /// Transactions that are not proven to be visible, and that no chunk is asked for before they are.
    pub in_doubt: Vec<TransactionName>,
}
