//! What the two machines are told and what they command. What they say to each other is in [`super::wire`].

use alloc::string::String;
use alloc::vec::Vec;

use super::{Deletions, FromOwner, IndexAt, IndexName, Layout, Run, ToOwner};
use crate::coordinator::RowRange;
use crate::id::{AttemptId, CheckpointNumber, Identity, Incarnation, Part, Slot, TableName, Token, WorkerSession};
use crate::outcome::WriteOutcome;

/// A fact for a router.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RouterInput {
    /// A table's state was recovered: its rows can be taken from now on.
    TableOpened {
        /// The table.
        table: TableName,
        /// The table itself, of all that ever bore the name.
        identity: Identity,
        /// How its keys are divided.
        layout: Layout,
        /// Does its sink delete rows by their place?
        locates: bool,
    },
    /// Rows were taken into the table's open checkpoint, divided by its [`layout`](super::Router::layout_of) and numbered. Of an update
    /// that changes the key the two halves are here, each with the slot of its key.
    Taken {
        /// The table.
        table: TableName,
        /// The rows of each slot, in log order.
        rows: Vec<(Slot, Run)>,
    },
    /// The table was emptied: of what is in its open checkpoint nothing is left.
    Truncated {
        /// The table.
        table: TableName,
    },
    /// The open checkpoint is closed, under this number.
    Closed {
        /// The table.
        table: TableName,
        /// The number.
        checkpoint: CheckpointNumber,
    },
    /// The checkpoint's turn has come: all before it are durable, and this is the table's token.
    TurnCame {
        /// The table.
        table: TableName,
        /// The oldest closed one.
        checkpoint: CheckpointNumber,
        /// The token.
        base: Token,
    },
    /// A commit of all that [`RouterOutput::Gathered`] named was asked for.
    CommitSent {
        /// The table.
        table: TableName,
    },
    /// What became of it.
    CommitAnswered {
        /// The table.
        table: TableName,
        /// That.
        answer: CommitAnswer,
    },
    /// All that is not durable is given up, but for a commit whose outcome is not known.
    GivenUp {
        /// The table.
        table: TableName,
    },
    /// The keys are to be divided otherwise, from the next checkpoint on.
    LayoutWanted {
        /// The table.
        table: TableName,
        /// How.
        layout: Layout,
    },
    /// A slot is to have another worker.
    MoveWanted {
        /// The table.
        table: TableName,
        /// The slot.
        slot: Slot,
    },
    /// A worker said this.
    Heard {
        /// In this session.
        session: WorkerSession,
        /// That.
        message: FromOwner,
    },
    /// A session is over.
    SessionLost {
        /// Which.
        session: WorkerSession,
    },
    /// Answers [`RouterOutput::Validate`].
    Validated {
        /// The incarnation that the pipeline record names; `None` if it could not be read.
        newest: Option<Incarnation>,
    },
    /// The time that [`super::Router::poll_timeout`] named has come.
    Timeout,
}

/// What became of a commit, as far as its parts are concerned (rule C5).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CommitAnswer {
    /// It is durable.
    Durable {
        /// The table's token now.
        token: Token,
        /// Is that the snapshot that the commit made? Else only 'it is in the history' is known.
        made_by_it: bool,
    },
    /// Somebody else committed and changed no data, and this life is proven to be the newest: the same commit on another token.
    Foreign {
        /// That token.
        base: Token,
    },
    /// Nobody knows.
    Unknown,
    /// It did not happen, nor will it: the table is where it says, and not where this life thought.
    SetBack,
}

/// A command of a router.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RouterOutput {
    /// Say this to a worker. The lane is the session.
    Send {
        /// In this session.
        session: WorkerSession,
        /// This. The rows that it names go with it.
        message: ToOwner,
    },
    /// End this session.
    HangUp {
        /// Which.
        session: WorkerSession,
    },
    /// These rows are needed no more: they are written, or given up.
    ReleaseRows {
        /// Which.
        rows: Vec<RowRange>,
    },
    /// Every part of the checkpoint is written, and located at this token where the sink locates: it can be committed.
    Gathered {
        /// The table.
        table: TableName,
        /// Its oldest closed one.
        checkpoint: CheckpointNumber,
        /// The token that the commit must name.
        base: Token,
        /// The attempts whose artefacts become visible: one for each part that had rows.
        staged: Vec<AttemptId>,
        /// The rows that go, all owners' in one.
        deletions: Deletions,
    },
    /// Delete what these attempts staged: they were given up, and no commit that may have happened names them. Nobody else deletes
    /// anything staged (rule O10).
    DeleteStaged {
        /// The table.
        table: TableName,
        /// Whose.
        attempts: Vec<AttemptId>,
    },
    /// A part that must be located again is gone with its worker: the table has to be set back (rule O6).
    SetBack {
        /// The table.
        table: TableName,
    },
    /// The sink refuses a part.
    Rejected {
        /// The table.
        table: TableName,
        /// The part's checkpoint.
        checkpoint: CheckpointNumber,
        /// What is refused and what would help, for people.
        why: String,
    },
    /// A part has failed for longer than anybody wants to wait.
    Unreachable {
        /// The table.
        table: TableName,
        /// What was tried and what happened, for people.
        why: String,
    },
    /// Read the pipeline record: is this life still the newest?
    Validate,
    /// A newer life has begun: everything stops. No output follows.
    Superseded {
        /// That one.
        by: Incarnation,
    },
    /// For people: there has been no worker for so long.
    NoWorker {
        /// Since when, in microseconds.
        since: u64,
    },
}

/// A fact for an owner.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OwnerInput {
    /// A coordinator was reached.
    Connected {
        /// In this session.
        session: WorkerSession,
    },
    /// It said this.
    Heard {
        /// In this session.
        session: WorkerSession,
        /// That.
        message: ToOwner,
    },
    /// A session is over.
    SessionLost {
        /// Which.
        session: WorkerSession,
    },
    /// Answers [`OwnerOutput::LoadIndex`].
    IndexLoaded {
        /// What was asked for.
        at: IndexAt,
        /// Is it there now? If not, what happened, for people.
        outcome: Result<(), String>,
    },
    /// Answers [`OwnerOutput::Locate`].
    Located {
        /// For this try.
        attempt: AttemptId,
        /// In this.
        at: IndexAt,
        /// Where the rows are that it replaces.
        deletions: Deletions,
    },
    /// Answers [`OwnerOutput::Write`].
    Wrote {
        /// Of this try.
        attempt: AttemptId,
        /// What came of it.
        outcome: WriteOutcome,
    },
    /// The time that [`super::Owner::poll_timeout`] named has come.
    Timeout,
}

/// A command of an owner.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OwnerOutput {
    /// Say this to the coordinator. The lane is the session.
    Send {
        /// In this session.
        session: WorkerSession,
        /// This.
        message: FromOwner,
    },
    /// End this session.
    HangUp {
        /// Which.
        session: WorkerSession,
    },
    /// Load an index at a snapshot, or catch it up. Lane: the index.
    LoadIndex {
        /// Which, and where to.
        at: IndexAt,
        /// The snapshot that it is at now, if it is kept.
        from: Option<Token>,
    },
    /// Look up the keys of an attempt's rows, and keep what it does to the index under the attempt. Lane: the index.
    Locate {
        /// For this try.
        attempt: AttemptId,
        /// In this.
        at: IndexAt,
    },
    /// What an attempt does to an index is done: that commit is durable. What was kept of it under the attempt goes with this command.
    /// Lane: the index.
    Apply {
        /// The try.
        attempt: AttemptId,
        /// To this.
        index: IndexName,
    },
    /// An index is kept no more. Lane: the index.
    DropIndex {
        /// Which.
        index: IndexName,
    },
    /// Net the rows of an attempt and write them, once, under its name.
    Write {
        /// The try, whose name what is staged bears.
        attempt: AttemptId,
        /// What it is a try of.
        part: Part,
        /// Its rows, in log order.
        runs: Vec<Run>,
    },
    /// Drop what is held under an attempt: rows, and look-ups that were not applied.
    Forget {
        /// The try.
        attempt: AttemptId,
    },
    /// The one thing that a worker must not do (rule O10): delete what an attempt staged.
    #[cfg(feature = "planted-bugs")]
    DeleteStaged {
        /// The try.
        attempt: AttemptId,
        /// The table.
        table: TableName,
    },
}
