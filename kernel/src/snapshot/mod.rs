//! Snapshots: a table's rows read in chunks while the log is followed (rules S and G).
//!
//! # Contract
//!
//! A *generation* begins with a commit that carries no data and fixes its base (`generation`). From then on every event above the
//! base is written, whatever range its key lies in, and the ranges of the key space are read in chunks (`tiling`, `chunk`).
//! A chunk is judged by visibility, never by position: from before it is asked for, keys are remembered that a transaction touched
//! of which nobody has proven that the chunk's snapshot sees it (`fence`). Once the log has passed the fence of a chunk its rows
//! so touched are dropped, and the rest go into the open checkpoint like rows of the log. A range is durable when the commit with
//! its rows is; when all are, what older generations left is swept, and the table streams.
//!
//! What the sources promise: visibility only grows; a second writer of a key commits only after the first is visible; everything
//! that a chunk's snapshot saw is in the log at or below its fence; chunks, visibility and the log come from one server.
//!
//! Dropping a row is always right, since the transaction that touched it lies above the base and is written by the log. Releasing
//! one needs the proof. So nothing here is lost by asking too rarely or by forgetting a proof; only time is.

mod chunk;
mod fence;
mod generation;
mod tiling;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

pub(crate) use chunk::{Chunk, Void};
pub(crate) use fence::TouchedKeys;
pub(crate) use tiling::Tiling;

use crate::config::Config;
use crate::coordinator::{RowRange, SnapshotStatus};
use crate::flow::Backoff;
use crate::id::{CommandId, TransactionName};
use crate::position::Position;
use crate::state::{Range, TableState};
use crate::time::Time;

/// A snapshot that is not complete.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Snapshot {
    pub(crate) generation: u64,
    /// Where its log part begins.
    pub(crate) base: Position,
    pub(crate) stage: Stage,
    /// Does it begin exactly where the older generation's whole transactions end, so that what the record says of that one's
    /// commits is true of this one's, too? An older life that does not know the newest record may begin it.
    pub(crate) built_upon: bool,
    pub(crate) tiling: Tiling,
    /// Transactions with changes at or below the cut, or unfinished at the base, that are not proven to be visible.
    pub(crate) in_doubt: BTreeSet<TransactionName>,
    /// Keys that transactions touched which are not proven to be visible.
    pub(crate) unproven: TouchedKeys,
    pub(crate) chunks: BTreeMap<CommandId, Chunk>,
    /// The question what is visible, if it is asked; and when it is asked next.
    pub(crate) asking: Option<CommandId>,
    pub(crate) next_question: Time,
    /// The question where ranges could end, if it is asked.
    pub(crate) planning: Option<CommandId>,
    /// Are the ranges planned, or was that given up?
    pub(crate) planned: bool,
    /// Reads that failed in a row.
    pub(crate) failing: Option<Backoff>,
    pub(crate) why: Option<String>,
    /// Is what older generations left removed in one act with the last rows? Else once these are durable.
    sweeps_with_data: bool,
    /// A planted bug.
    forgets_last_range: bool,
    /// What was released since the last checkpoint closed, for the invariants.
    pub(crate) released: Vec<Release>,
    pub(crate) asked: u64,
    pub(crate) void: u64,
}

/// How far a generation is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// Its beginning is not durable.
    Beginning,
    /// Its ranges are being read.
    Reading,
    /// Every range is durable, and what older generations left is not removed.
    Unswept,
}

/// A chunk that was released, as it was then.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Release {
    pub(crate) fence: Position,
    /// What the table had taken.
    pub(crate) taken: Position,
    pub(crate) schema: Option<String>,
    /// The stream's.
    pub(crate) stream_schema: Option<String>,
    /// A TRUNCATE that it did not provably see lies above its base, and rows of it were kept.
    pub(crate) survived_truncate: bool,
}

/// What a checkpoint says of the snapshot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Progress {
    pub(crate) tiling: Vec<Range>,
    pub(crate) in_doubt: Vec<TransactionName>,
    /// What older generations left is removed with it: then these are the ranges that were read.
    pub(crate) sweep: bool,
    pub(crate) ranges: Option<Tiling>,
}

impl Snapshot {
    /// One that is to begin at `base`.
    pub(crate) fn beginning(generation: u64, base: Position, config: &Config, sweeps_with_data: bool) -> Self {
        Self {
            generation,
            base,
            stage: Stage::Beginning,
            built_upon: false,
            tiling: Tiling::whole(config.snapshot.chunk_rows_max),
            in_doubt: BTreeSet::new(),
            unproven: TouchedKeys::default(),
            chunks: BTreeMap::new(),
            asking: None,
            next_question: Time(0),
            planning: None,
            planned: false,
            failing: None,
            why: None,
            sweeps_with_data,
            forgets_last_range: crate::planted::planted!(config, LastRangeForgotten),
            released: Vec::new(),
            asked: 0,
            void: 0,
        }
    }

    /// The one that a table's state is in the midst of, if it is. A list of ranges that is none is read anew.
    pub(crate) fn of(state: &TableState, config: &Config, sweeps_with_data: bool) -> Option<Self> {
        if state.tiling.is_empty() {
            return None;
        }
        let mut snapshot = Self::beginning(state.generation, state.base.clone(), config, sweeps_with_data);
        snapshot.stage = Stage::Reading;
        if let Some(tiling) = Tiling::stored(&state.tiling, config.snapshot.chunk_rows_max) {
            snapshot.tiling = tiling;
        }
        if snapshot.tiling.is_complete() {
            snapshot.stage = Stage::Unswept;
        }
        snapshot.planned = !snapshot.tiling.is_untouched();
        snapshot.in_doubt = state.in_doubt.iter().map(|name| TransactionName::from(name.as_str())).collect();
        Some(snapshot)
    }

    pub(crate) fn is_beginning(&self) -> bool {
        self.stage == Stage::Beginning
    }

    /// Is it asked, now and then, what is visible? So that what is stored as in doubt stays short.
    pub(crate) fn needs_proof(&self) -> bool {
        match self.stage {
            Stage::Beginning => true,
            Stage::Reading => !self.in_doubt.is_empty() || !self.unproven.is_empty(),
            Stage::Unswept => false,
        }
    }

    /// Everything that is not proven to be visible.
    pub(crate) fn doubts(&self) -> BTreeSet<TransactionName> {
        self.in_doubt.iter().chain(self.unproven.transactions()).cloned().collect()
    }

    /// What a checkpoint that closes now says of it, and whether it is over with that.
    pub(crate) fn close(&mut self) -> (Progress, bool) {
        self.released.clear();
        let complete = self.tiling.is_complete() || (self.forgets_last_range && self.tiling.misses_last_only());
        let sweep = complete && (self.sweeps_with_data || self.stage == Stage::Unswept);
        if sweep {
            let ranges = Some(self.tiling.clone());
            return (Progress { tiling: Vec::new(), in_doubt: Vec::new(), sweep, ranges }, true);
        }
        let in_doubt = self.doubts().into_iter().collect();
        (Progress { tiling: self.tiling.to_store(), in_doubt, sweep, ranges: None }, false)
    }

    /// A state of it is durable.
    pub(crate) fn stored(&mut self, state: &TableState) {
        let durable = !state.tiling.is_empty() && state.tiling.iter().all(|range| range.durable);
        if durable && self.stage == Stage::Reading && self.tiling.is_complete() {
            self.stage = Stage::Unswept;
        }
    }

    /// Rows in the row store that chunks hold.
    pub(crate) fn rows_held(&self) -> u64 {
        self.held().map(|rows| u64::from(rows.count())).sum()
    }

    fn held(&self) -> impl Iterator<Item = RowRange> {
        self.chunks.values().filter_map(|chunk| chunk.held_rows())
    }

    /// Is an answer on its way?
    pub(crate) fn awaits_answer(&self) -> bool {
        self.asking.is_some() || self.planning.is_some() || self.chunks.values().any(|chunk| chunk.held.is_none())
    }

    pub(crate) fn status(&self) -> SnapshotStatus {
        SnapshotStatus {
            generation: self.generation,
            begun: !self.is_beginning(),
            ranges_missing: self.tiling.missing(),
            ranges: self.tiling.len(),
            chunks_open: self.chunks.len(),
            chunks_asked: self.asked,
            chunks_void: self.void,
            in_doubt: self.in_doubt.iter().cloned().collect(),
        }
    }
}
