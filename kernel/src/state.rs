//! What is stored, word for word: where a table's copy stands, and what the pipeline as a whole knows.
//!
//! Both live in the sink. A [`TableState`] becomes visible together with the rows that it describes; the one
//! [`PipelineState`] is replaced by compare-and-set. Fields that only snapshots and several owners use are stored from
//! the beginning, so that a state written today is read by what comes next.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Incarnation, StreamName, TableName, Version};
use crate::position::{Coordinate, Cut, LogIdentity, Offset, Position};

/// The version of the stored forms.
pub const FORMAT: u32 = 1;

/// Commits and generations are counted by ones: no count comes so far. A stored number above it was not written by a life, and below
/// it no life can count so far that it overflows.
pub const NUMBER_MAX: u64 = u64::MAX >> 1;

/// Where one table's copy stands. It is in the sink, with the data.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TableState {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// What the copy covers.
    pub cut: Cut,
    /// The log that the cut is of.
    pub identity: LogIdentity,
    /// The life that wrote it.
    pub incarnation: Incarnation,
    /// The data that it describes; a write that changes no data keeps it.
    pub commit: CommitId,
    /// The commits of this generation that this one was built upon.
    pub ancestors: Ancestors,
    /// The highest row sequence used so far in the life of `commit`.
    pub sequence: u64,
    /// The number of the snapshot that the copy began with; 0 began at a log position.
    pub generation: u64,
    /// Where the generation's log part begins.
    pub base: Position,
    /// Rows of lower versions do not belong to the copy any more.
    pub begun: Version,
    /// Snapshot progress: the ranges of the key space and whether each is durable. Empty without a snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiling: Vec<Range>,
    /// Transactions below the cut that a snapshot could not be proven to have seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_doubt: Vec<String>,
    /// Until the cut passes this, some keys may show a later state of the source.
    #[serde(default, skip_serializing_if = "is_start")]
    pub ahead: Position,
    /// The schema of the copy, in the words of the driver that described it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

impl TableState {
    /// What is in here that no life can have written, in words. What a sink says is asked for it before anything counts on from it.
    pub fn impossible(&self) -> Option<String> {
        let numbers = [
            ("its commit's number", self.commit.number, NUMBER_MAX),
            ("its generation", self.generation, NUMBER_MAX),
            ("its row sequence", self.sequence, Version::SEQUENCE_MAX),
            ("its life", self.incarnation.0.into(), Incarnation::MAX.0.into()),
        ];
        if let Some((what, number, _)) = numbers.iter().find(|(_, number, most)| number > most) {
            return Some(format!("{what} is {number}"));
        }
        let lives = [("its commit is of", self.commit.incarnation), ("its copy began in", self.begun.incarnation())];
        if let Some((what, life)) = lives.iter().find(|(_, life)| *life > self.incarnation) {
            return Some(format!("{what} life {life}, and it is of life {}", self.incarnation));
        }
        self.ancestors.impossible(self.incarnation)
    }
}

fn is_start(position: &Position) -> bool {
    *position == Position::START
}

/// A range of a snapshot's key space, up to a bound that only the source can read.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Range {
    /// Where it ends; `None` is the end of the key space.
    pub end: Option<String>,
    /// Are its rows committed?
    pub durable: bool,
}

/// Commits that a state was built upon, as runs of one life, the oldest first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ancestors {
    runs: Vec<Run>,
}

/// The commits `first..=last` of one life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
struct Run {
    incarnation: Incarnation,
    first: u64,
    last: u64,
}

impl Ancestors {
    /// Was the state built upon this commit? By list, never by number: after a foreign rollback a higher number says nothing.
    pub fn contains(&self, commit: CommitId) -> bool {
        self.runs.iter().any(|run| run.incarnation == commit.incarnation && (run.first..=run.last).contains(&commit.number))
    }

    /// Adds the newest one.
    pub fn push(&mut self, commit: CommitId) {
        match self.runs.last_mut() {
            Some(run) if run.incarnation == commit.incarnation && run.last.checked_add(1) == Some(commit.number) => {
                run.last = commit.number;
            }
            _ => self.runs.push(Run { incarnation: commit.incarnation, first: commit.number, last: commit.number }),
        }
    }

    /// A run that no state of the life `of` can list, in words.
    fn impossible(&self, of: Incarnation) -> Option<String> {
        let wrong = |run: &&Run| run.first > run.last || run.last > NUMBER_MAX || run.incarnation > of;
        let Run { incarnation, first, last } = self.runs.iter().find(wrong)?;
        let later = if *incarnation > of { format!(", and it is of life {of}") } else { String::new() };
        Some(format!("its ancestors hold the commits {first} to {last} of life {incarnation}{later}"))
    }

    /// How many runs there are: what the list's bound counts.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Would the bound `runs_max` push `commit` out when `next` is added?
    pub fn crowds_out(&self, commit: CommitId, next: CommitId, runs_max: usize) -> bool {
        let mut then = self.clone();
        then.push(next);
        self.contains(commit) && !then.bounded(runs_max).contains(commit)
    }

    /// The newest `runs_max` runs.
    #[must_use]
    pub fn bounded(mut self, runs_max: usize) -> Self {
        let over = self.runs.len().saturating_sub(runs_max);
        self.runs.drain(..over);
        self
    }
}

/// What the pipeline as a whole knows: one small record in the sink, replaced by compare-and-set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct PipelineState {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The highest life that began.
    pub incarnation: Incarnation,
    /// The log that `quiet` is of.
    pub identity: LogIdentity,
    /// At or below it no member table has a row that is not durable.
    pub quiet: Position,
    /// Every table that the pipeline ever had.
    pub tables: BTreeMap<TableName, TableRecord>,
}

impl PipelineState {
    /// As [`TableState::impossible`].
    pub fn impossible(&self) -> Option<String> {
        if self.incarnation > Incarnation::MAX {
            return Some(format!("its life is {}", self.incarnation));
        }
        self.tables.iter().find_map(|(table, entry)| match entry.named {
            _ if entry.generation > NUMBER_MAX => Some(format!("the generation of table {table} is {}", entry.generation)),
            Some(commit) if commit.number > NUMBER_MAX => {
                Some(format!("the commit of table {table} is number {}", commit.number))
            }
            Some(commit) if commit.incarnation > self.incarnation => {
                let life = commit.incarnation;
                Some(format!("the commit of table {table} is of life {life}, and the record of life {}", self.incarnation))
            }
            _ => None,
        })
    }
}

/// What the pipeline record says of one table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TableRecord {
    /// What is wanted of it.
    pub phase: Phase,
    /// In phase needs-snapshot: the generation that ends it.
    pub generation: u64,
    /// With this commit, or one built upon it, as its state the table lacks nothing up to `quiet`.
    pub named: Option<CommitId>,
    /// The events that somebody had it pass over, the newest last; at most [`SKIPS_KEPT`]. Each was stored here before it was passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// In the phases halted and needs-snapshot: why, for people of later lives; at most [`REASON_CHARS_MAX`]. Nothing decides by what
    /// is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// So many characters of a reason are stored: the record holds every table's, and is replaced as one.
pub const REASON_CHARS_MAX: usize = 1_000;

/// A reason as it is stored. One that is too long ends with an ellipsis.
pub(crate) fn stored_reason(why: &str) -> String {
    if why.chars().nth(REASON_CHARS_MAX).is_none() {
        return why.into();
    }
    why.chars().take(REASON_CHARS_MAX - 1).chain(['…']).collect()
}

/// So many events that were passed over are remembered of a table; then the oldest are forgotten.
pub const SKIPS_KEPT: usize = 100;

/// An event that was passed over because somebody said so.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// The life that was told to.
    pub incarnation: Incarnation,
    /// The stream that holds the event.
    pub stream: StreamName,
    /// Where its transaction begins there.
    pub at: Offset,
    /// Its place in the transaction.
    pub coordinate: Coordinate,
}

impl PipelineState {
    /// Where a table's copy really stands (rule A2): its own cut, joined with the quiet position if the record speaks of its commit or
    /// of one that it was built upon.
    pub fn effective_cut(&self, table: &TableName, state: &TableState) -> Cut {
        let mut cut = state.cut.clone();
        let named = self.tables.get(table).and_then(|entry| entry.named);
        if named.is_some_and(|commit| commit == state.commit || state.ancestors.contains(commit)) {
            cut.join_position(&self.quiet);
        }
        cut
    }
}

impl TableRecord {
    /// Adds what is passed over, once.
    pub(crate) fn skip(&mut self, skipped: Skipped) {
        if !self.skipped.contains(&skipped) {
            self.skipped.push(skipped);
            let over = self.skipped.len().saturating_sub(SKIPS_KEPT);
            self.skipped.drain(..over);
        }
    }
}

/// What a table is doing, as people see it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Known, not begun.
    Pending,
    /// A snapshot is being read.
    Snapshotting,
    /// The log is followed.
    Streaming,
    /// Stopped by a person.
    Paused,
    /// Stopped by a fault.
    Halted,
    /// It can go on only from a new snapshot; nothing is held for it.
    NeedsSnapshot,
}

impl Phase {
    /// The word that people and stored records use.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Snapshotting => "snapshotting",
            Phase::Streaming => "streaming",
            Phase::Paused => "paused",
            Phase::Halted => "halted",
            Phase::NeedsSnapshot => "needs-snapshot",
        }
    }
}
