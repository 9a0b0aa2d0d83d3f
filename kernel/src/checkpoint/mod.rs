//! Checkpoints: a table's rows from the log until they are durable (rules C).
//!
//! A table has one *open* checkpoint that takes rows, at most two *closed* ones that wait, and at most one *in flight*:
//! written, then committed. Each becomes visible whole, in order, with the state that says how far the copy goes.

mod commit;
mod giving_up;
mod intake;
mod refused;

pub(crate) use intake::Change;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use crate::absent::{Absent, Rereading};
use crate::config::Config;
use crate::coordinator::RowRange;
use crate::flow::{Backoff, Log};
use crate::id::{AttemptId, CheckpointNumber, CommandId, CommitId, Identity, TableName, Token, Version};
use crate::position::{Coordinate, Cut, Digest, LogIdentity, Position, Transaction};
use crate::snapshot::{Progress, Snapshot};
use crate::state::{Phase, TableState};
use crate::time::{Duration, Time};

/// Rows of one table that become visible together.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Checkpoint {
    pub(crate) number: CheckpointNumber,
    /// The table's `taken` at closing.
    pub(crate) cut: Cut,
    /// The table's own whole `taken` when its first row was taken: what was complete then (rule A1).
    pub(crate) before: Position,
    pub(crate) opened: Time,
    pub(crate) rows: Vec<RowRange>,
    /// Was anything of the log taken? Chunks lie at no place in it.
    pub(crate) logged: bool,
    /// Rows and other changes taken; more than are in `rows` after a truncate or a skip.
    pub(crate) taken: u64,
    pub(crate) bytes: u64,
    /// Row numbers: of the first row in `rows`, and the last one given so far.
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) truncate_first: bool,
    /// Rows of lower versions do not belong to the table any more.
    pub(crate) begun: Option<Version>,
    /// The table's schema after it.
    pub(crate) schema: Option<String>,
    /// Under what the coordinates in its cut are valid (rule P2).
    pub(crate) coordinates: Option<Identity>,
    /// The server of this life, counted: the first may be read again, and then its coordinates are the same.
    pub(crate) server: u64,
    pub(crate) kind: Kind,
    /// Of a generation's beginning: is what the record says of the older one's commits true of it?
    pub(crate) built_upon: bool,
    /// How far the table's snapshot is with it, while one is being read.
    pub(crate) progress: Option<Progress>,
    /// What its rows lack, and what was read for it.
    pub(crate) absent: Absent,
}

impl Checkpoint {
    /// Does it stand at a place in the log? Rows of chunks alone do not.
    pub(crate) fn is_of_log(&self) -> bool {
        self.logged || matches!(self.kind, Kind::Base | Kind::Begin(_))
    }

    /// Is what older generations left removed with it?
    pub(crate) fn sweeps(&self) -> bool {
        self.progress.as_ref().is_some_and(|p| p.sweep)
    }
}

/// What a checkpoint is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Kind {
    /// Rows.
    #[default]
    Data,
    /// This life's incarnation under the state that was found; no data, so the same commit id (rule R3).
    Claim,
    /// A table without rows that has no state yet: where it stands is stored, so that the record can name it.
    Base,
    /// The beginning of this generation of a snapshot; no data (rule G1).
    Begin(u64),
}

/// A checkpoint being made durable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flight {
    pub(crate) point: Checkpoint,
    pub(crate) new: TableState,
    pub(crate) step: Step,
    /// The command whose answer is awaited; of another one it is stale.
    pub(crate) command: CommandId,
    /// The present try at writing the part, if the checkpoint has rows.
    pub(crate) attempt: Option<AttemptId>,
    pub(crate) written: bool,
    /// When the step is tried again; `None` while it runs.
    pub(crate) retry: Option<Backoff>,
    /// What failed last, for people.
    pub(crate) why: Option<String>,
    /// Was its outcome ever unknown? Then nothing of it may be deleted (rule C8).
    pub(crate) ever_unknown: bool,
    /// Was this life proven to be the newest since what it is built upon is durable?
    pub(crate) validated: bool,
    /// It was found in the table's history, with this token; durable once this life has proven to be the newest.
    pub(crate) found: Option<Token>,
    /// When the step that runs was asked for.
    pub(crate) since: Time,
}

impl Flight {
    /// Has it failed, or not been answered for so long that others should not wait for it?
    pub(crate) fn stands_still(&self, now: Time, patience: Duration) -> bool {
        self.retry.is_some() || self.since + patience <= now
    }
}

/// Where a flight is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    /// A worker nets and writes.
    Write,
    /// The sink makes it visible.
    Commit,
    /// The outcome was unknown: is the commit there?
    Resolve,
    /// Somebody else committed, or might have: is this life still the newest?
    Validate,
}

/// A durable commit that the quiet position has not passed yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Recent {
    pub(crate) commit: CommitId,
    /// The table's whole `taken` that preceded its first row of the log.
    pub(crate) before: Position,
    /// Has it rows of the log?
    pub(crate) logged: bool,
}

/// Everything known of one table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Table {
    pub(crate) phase: Phase,
    /// In phase needs-snapshot: the generation that ends it.
    pub(crate) needed: u64,
    /// Why it is halted or needs a snapshot, or why its state can't be read, for people. A flight that fails says so itself.
    pub(crate) why: Option<String>,
    /// A snapshot that is beginning or being read.
    pub(crate) snapshot: Option<Snapshot>,
    /// A new generation is to begin as soon as it can.
    pub(crate) wants_generation: bool,
    /// The command that recovers it, until its state is known.
    pub(crate) recovering: Option<CommandId>,
    pub(crate) recovery_retry: Option<Backoff>,
    pub(crate) stored: Option<TableState>,
    /// The server of this life, counted, by whose coordinates it is.
    pub(crate) stored_by: u64,
    pub(crate) token: Token,
    /// Every row of the table at or below it is in exactly one place: in a checkpoint, in flight, durable or covered.
    pub(crate) taken: Cut,
    /// It passed over a row; until the reader goes back `taken` stands still (rule R6).
    pub(crate) blocked: Option<Time>,
    pub(crate) open: Checkpoint,
    pub(crate) closed: VecDeque<Checkpoint>,
    pub(crate) flight: Option<Flight>,
    /// The one commit that was asked for and not answered.
    pub(crate) committing: Option<CommandId>,
    /// The failures in a row of the step that runs now.
    pub(crate) last_failure: Option<Backoff>,
    /// Since when beginnings of its generation have failed that were given up one after the other (rule R7).
    pub(crate) begins_in_vain: Option<Time>,
    /// Why it was released, until it is given up for that.
    pub(crate) released: Option<String>,
    pub(crate) recent: VecDeque<Recent>,
    /// Rows of divided transactions seen again, until they are compared with the cut (rule P3).
    pub(crate) replayed: BTreeMap<Transaction, Digest>,
    pub(crate) sequence: u64,
    pub(crate) commits: u64,
    pub(crate) checkpoints: u64,
    pub(crate) discarded: bool,
    /// From when on a table without a state stores where it stands, though it has no rows.
    pub(crate) base_due: Time,
    pub(crate) schema: Option<String>,
    /// Rows that are read again for values that updates left out.
    pub(crate) rereading: Rereading,
    /// The event that halted it.
    pub(crate) refused: Option<(Transaction, Coordinate)>,
    /// The event that somebody wants passed.
    pub(crate) skip: Option<(Transaction, Coordinate)>,
    /// Does it go on once the stored record says that it may pass that event?
    pub(crate) resumes_when_recorded: bool,
    pub(crate) durable_commits: u64,
    pub(crate) durable_rows: u64,
    /// Rows of snapshot chunks that were taken in this life, and those in whose place the log's were.
    pub(crate) chunk_rows: u64,
    pub(crate) chunk_rows_dropped: u64,
}

/// Rows that wait: closed checkpoints beyond this make the table pass over further rows (rule C3).
pub(crate) const CLOSED_MAX: usize = 2;

impl Table {
    pub(crate) fn new(phase: Phase) -> Self {
        Self {
            phase,
            needed: 0,
            why: None,
            snapshot: None,
            wants_generation: false,
            recovering: None,
            recovery_retry: None,
            stored: None,
            stored_by: 0,
            token: Token::from(""),
            taken: Cut::default(),
            blocked: None,
            open: Checkpoint::default(),
            closed: VecDeque::new(),
            flight: None,
            committing: None,
            last_failure: None,
            begins_in_vain: None,
            released: None,
            recent: VecDeque::new(),
            replayed: BTreeMap::new(),
            sequence: 0,
            commits: 0,
            checkpoints: 0,
            discarded: false,
            base_due: Time(0),
            schema: None,
            rereading: Rereading::default(),
            refused: None,
            skip: None,
            resumes_when_recorded: false,
            durable_commits: 0,
            durable_rows: 0,
            chunk_rows: 0,
            chunk_rows_dropped: 0,
        }
    }

    /// The generation of the copy that is stored.
    pub(crate) fn generation(&self) -> u64 {
        self.stored.as_ref().map_or(0, |s| s.generation)
    }

    /// Is nothing stored of it but, perhaps, a life's claim?
    pub(crate) fn is_blank(&self) -> bool {
        self.stored.as_ref().is_none_or(|s| s.commit.number == 0)
    }

    /// Does it take rows, if nothing blocks it?
    pub(crate) fn follows(&self) -> bool {
        matches!(self.phase, Phase::Streaming | Phase::Snapshotting) && !self.is_beginning()
    }

    /// Is the beginning of its generation not durable?
    pub(crate) fn is_beginning(&self) -> bool {
        self.snapshot.as_ref().is_some_and(Snapshot::is_beginning)
    }

    /// Is what is stored, or on its way, in the midst of a snapshot?
    pub(crate) fn is_incomplete(&self) -> bool {
        self.snapshot.is_some() || self.stored.as_ref().is_some_and(|s| !s.tiling.is_empty())
    }

    /// Is it one that the source's log is kept for? (Rule A3; a snapshot being read holds its base, too.)
    pub(crate) fn is_member(&self) -> bool {
        !matches!(self.phase, Phase::NeedsSnapshot)
    }

    /// Checkpoints with something that is not durable, the oldest first.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &Checkpoint> {
        self.flight
            .iter()
            .map(|f| &f.point)
            .chain(&self.closed)
            .chain((self.open.taken > 0).then_some(&self.open))
            .filter(|c| c.kind != Kind::Claim)
    }

    /// At or below this the table has no row that is not durable (rule A1).
    pub(crate) fn complete(&self) -> &Position {
        // Rows of chunks lie at no place in the log.
        self.owed().find(|c| c.is_of_log()).map_or(self.taken.upto(), |oldest| &oldest.before)
    }

    /// Has it nothing on its way to the sink?
    pub(crate) fn is_settled(&self) -> bool {
        self.flight.is_none() && self.closed.is_empty() && self.open.taken == 0
    }

    /// A closed checkpoint waits for one in flight that makes its way: the reader waits, too, which costs less than passing
    /// over rows and reading them again. A flight that stands still holds nobody (rule C3).
    pub(crate) fn presses_back(&self, now: Time, patience: Duration) -> bool {
        let makes_its_way = self.flight.as_ref().is_some_and(|f| !f.stands_still(now, patience));
        makes_its_way && !self.closed.is_empty() && self.blocked.is_none()
    }

    /// Closes the open checkpoint. Its cut's coordinates are those of `log`.
    pub(crate) fn close(&mut self, log: &Log) {
        let mut closed = core::mem::take(&mut self.open);
        if let Some(snapshot) = self.snapshot.as_mut().filter(|s| !s.is_beginning()) {
            let (progress, over) = snapshot.close();
            closed.progress = Some(progress);
            if over {
                self.snapshot = None;
            }
        }
        self.checkpoints += 1;
        closed.number = CheckpointNumber(self.checkpoints);
        closed.cut = self.taken.clone();
        closed.last_sequence = self.sequence;
        closed.schema.clone_from(&self.schema);
        closed.coordinates.clone_from(&log.identity.coordinates);
        closed.server = log.server;
        closed.absent.close();
        self.closed.push_back(closed);
    }

    /// Rows that the row store must hold for it.
    pub(crate) fn rows_unwritten(&self) -> u64 {
        let points = self.flight.iter().map(|f| &f.point).chain(&self.closed).chain([&self.open]);
        let held = self.snapshot.as_ref().map_or(0, Snapshot::rows_held) + self.rereading.rows_held();
        let rows = |c: &Checkpoint| c.rows.iter().map(|r| u64::from(r.count())).sum::<u64>() + c.absent.rows_held();
        held + points.map(rows).sum::<u64>()
    }

    /// When the open checkpoint closes, if nothing else closes it: at its age between two transactions, later inside one, and later
    /// still while it lacks values.
    pub(crate) fn closes_at(&self, config: &Config) -> Time {
        let ages = match (self.taken.is_whole(), self.open.absent.lacks()) {
            (true, false) => 1,
            (false, false) => 3,
            (_, true) => config.absent.ages.max(3),
        };
        self.open.opened + config.checkpoint.age.times(ages)
    }

    /// Is the open checkpoint as large as it should get?
    pub(crate) fn is_full(&self, config: &Config) -> bool {
        self.open.taken >= config.checkpoint.rows || self.open.bytes >= config.checkpoint.bytes
    }

    /// Why it stands still, or else what fails.
    pub(crate) fn why(&self) -> Option<&String> {
        self.why.as_ref().or(self.flight.as_ref().and_then(|flight| flight.why.as_ref()))
    }

    /// What `status` says.
    pub(crate) fn rows_owed(&self) -> u64 {
        self.owed().map(|c| c.taken).sum()
    }
}

/// Tables by name.
pub(crate) type Tables = BTreeMap<TableName, Table>;

/// A state names only the streams that its cut is of.
pub(crate) fn only_streams_of(identity: &LogIdentity, point: &Checkpoint, stored: Option<&TableState>) -> LogIdentity {
    let (cut, before) = (&point.cut, stored.map(|s| &s.identity.streams));
    let names = cut.upto().streams().map(|(stream, _)| stream).chain(cut.within().keys().map(|t| &t.stream));
    let known = |stream| identity.streams.get(stream).or_else(|| before.and_then(|b| b.get(stream)));
    let blank = cut.upto() == &Position::START && cut.is_whole();
    let lineage = identity.lineage.clone().or_else(|| stored.and_then(|s| s.identity.lineage.clone())).filter(|_| !blank);
    LogIdentity {
        lineage,
        streams: names.filter_map(|stream| known(stream).map(|i| (stream.clone(), i.clone()))).collect(),
        coordinates: point.coordinates.clone(),
    }
}
