//! A checkpoint as it is divided among owners: its parts, and how far each is.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::{Deletions, Layout, Run};
use crate::coordinator::RowRange;
use crate::flow::Backoff;
use crate::id::{AttemptId, CheckpointNumber, Identity, Slot, Token, WorkerId, WorkerSession};
use crate::time::Time;

/// A table whose rows are divided.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Divided {
    pub(super) identity: Identity,
    /// Does the sink delete rows by their place?
    pub(super) locates: bool,
    /// Of the open checkpoint.
    pub(super) layout: Layout,
    /// Of the next one.
    pub(super) wanted: Option<Layout>,
    /// Who has which slot. A worker that is gone has none as soon as another is there.
    pub(super) owners: BTreeMap<Slot, WorkerId>,
    pub(super) open: Share,
    /// The oldest one first.
    pub(super) closed: VecDeque<Share>,
}

/// One checkpoint, divided.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Share {
    /// While it is open, the one that it will have, if no other is given.
    pub(super) number: CheckpointNumber,
    pub(super) layout: Layout,
    pub(super) parts: BTreeMap<Slot, Piece>,
    /// Nothing of the snapshot before is left behind it.
    pub(super) truncated: bool,
    pub(super) step: Step,
    /// Was the outcome of its commit ever unknown? Then nothing of it is deleted (rule C8).
    pub(super) ever_unknown: bool,
    /// Once its turn has come: the token to locate and to commit at.
    pub(super) base: Option<Token>,
    /// Attempts at its parts that are over.
    #[cfg(feature = "planted-bugs")]
    pub(super) dead: Vec<AttemptId>,
}

/// How far a checkpoint is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    /// Rows come, or parts are being written.
    Gathering,
    /// All are written, and these attempts were named.
    Gathered {
        /// One for each part.
        named: BTreeSet<AttemptId>,
    },
    /// The commit that names them was asked for, and its outcome is not known.
    Sent {
        /// One for each part.
        named: BTreeSet<AttemptId>,
    },
}

/// One part: a slot's rows of one checkpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Piece {
    /// The present one.
    pub(super) attempt: AttemptId,
    /// Was it given to nobody yet?
    pub(super) fresh: bool,
    /// The rows, until they are written.
    pub(super) runs: Vec<Run>,
    /// How many there are in all.
    pub(super) batches: u32,
    pub(super) rows: u64,
    /// Who has the present attempt.
    pub(super) given: Option<Given>,
    pub(super) written: Option<Staged>,
    /// The failures in a row, the last one's retry included.
    pub(super) failed: Option<Backoff>,
    /// The present attempt failed, and is over.
    pub(super) spent: bool,
    pub(super) why: String,
}

/// To whom an attempt was given, and what of it was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Given {
    pub(super) worker: WorkerId,
    pub(super) session: WorkerSession,
    /// Batches.
    pub(super) sent: u32,
    /// When it was asked to be written, and where to locate it.
    pub(super) asked: Option<(Time, Option<Token>)>,
}

/// What an attempt wrote.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Staged {
    pub(super) attempt: AttemptId,
    pub(super) base: Option<Token>,
    pub(super) deletions: Deletions,
}

impl Share {
    pub(super) fn new(number: CheckpointNumber, layout: Layout) -> Self {
        Self {
            number,
            layout,
            parts: BTreeMap::new(),
            truncated: false,
            step: Step::Gathering,
            ever_unknown: false,
            base: None,
            #[cfg(feature = "planted-bugs")]
            dead: Vec::new(),
        }
    }

    /// Was its commit sent, and is the outcome not known?
    pub(super) fn is_sent(&self) -> bool {
        matches!(self.step, Step::Sent { .. })
    }

    /// Where its parts are to be written now, if they are: the inner is the snapshot to locate them at. Where nothing is located a
    /// closed checkpoint need not wait for its turn.
    pub(super) fn asks(&self, closed: bool, locates: bool) -> Option<Option<Token>> {
        match (locates, &self.base) {
            (true, Some(base)) => Some(Some(base.clone())),
            (false, _) if closed => Some(None),
            (true, None) | (false, _) => None,
        }
    }
}

impl Piece {
    pub(super) fn new(attempt: AttemptId) -> Self {
        Self {
            attempt,
            fresh: true,
            runs: Vec::new(),
            batches: 0,
            rows: 0,
            given: None,
            written: None,
            failed: None,
            spent: false,
            why: String::new(),
        }
    }

    /// Is it written, and located there?
    pub(super) fn is_written_at(&self, base: &Option<Token>) -> bool {
        self.written.as_ref().is_some_and(|w| w.base == *base)
    }

    /// Since when it is being waited for there, if it is.
    pub(super) fn asked_at(&self, base: &Option<Token>) -> Option<Time> {
        self.given.as_ref().and_then(|g| g.asked.as_ref()).filter(|(_, there)| there == base).map(|(at, _)| *at)
    }

    /// When it may be tried again, if its last try failed.
    pub(super) fn retry_at(&self) -> Option<Time> {
        self.failed.filter(|_| self.spent).map(|f| f.at)
    }

    /// Its rows are needed no more.
    pub(super) fn release(&mut self) -> Vec<RowRange> {
        core::mem::take(&mut self.runs).into_iter().map(|run| run.rows).collect()
    }
}

impl Divided {
    /// All its checkpoints, the oldest first; and is each closed?
    pub(super) fn shares(&self) -> impl Iterator<Item = (&Share, bool)> {
        self.closed.iter().map(|s| (s, true)).chain([(&self.open, false)])
    }

    /// The part that this is the present attempt at, if it may still change.
    pub(super) fn piece_of(&mut self, attempt: AttemptId) -> Option<(&mut Piece, &Step, CheckpointNumber)> {
        let shares = self.closed.iter_mut().chain([&mut self.open]);
        for share in shares {
            if let Some(piece) = share.parts.values_mut().find(|p| p.attempt == attempt) {
                return Some((piece, &share.step, share.number));
            }
        }
        None
    }
}
