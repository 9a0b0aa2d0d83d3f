//! Generations: how a snapshot begins, is taken up again, and ends (rules S1, S2, G1 to G3).
//!
//! The base is fixed first, and held: from then on the table is a member whose `taken` stands there. Then the source says which
//! transactions are unfinished. Then the beginning is committed, without data. While it is not durable nothing is taken: rows
//! above the base block the table, and the reader goes back to them.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::chunk::Void;
use super::{Progress, Snapshot, Stage};
use crate::checkpoint::{Checkpoint, Kind};
use crate::config::{Join, Resnapshot};
use crate::coordinator::{Coordinator, Output, Stage as Life, Visibility};
use crate::id::{Bound, CommandId, TableName, Version};
use crate::planted::planted;
use crate::position::{Cut, Position};
use crate::state::{Phase, TableState};

impl Coordinator {
    /// Can a snapshot of the table be read at all? `Err` says why not, for people.
    pub(crate) fn can_snapshot(&self, name: &TableName) -> Result<(), &'static str> {
        let keyed = self.config.tables.get(name).is_some_and(|t| t.keyed);
        match (self.config.source_reads_chunks, keyed) {
            (true, true) => Ok(()),
            (false, _) => Err("this source can't be read in chunks, so there is no snapshot"),
            (true, false) => Err("its target keeps every row, and a snapshot needs a key by which rows are replaced"),
        }
    }

    /// Does the table begin with a snapshot when nothing is stored of it?
    pub(crate) fn begins_with_snapshot(&self, name: &TableName) -> bool {
        self.config.tables.get(name).is_some_and(|t| t.join == Join::Snapshot) && self.can_snapshot(name).is_ok()
    }

    /// Does its next start end the table's need of a snapshot?
    pub(crate) fn resnapshots_at_start(&self, name: &TableName) -> bool {
        let at_start = self.config.tables.get(name).is_some_and(|t| t.resnapshot == Resnapshot::AtStart);
        at_start && self.can_snapshot(name).is_ok()
    }

    /// A person wants a table's snapshot begun anew.
    pub(crate) fn resnapshot(&mut self, name: &TableName) {
        if let Err(why) = self.can_snapshot(name) {
            let why = alloc::format!("no snapshot is begun: {why}");
            return self.push(Output::Declined { table: name.clone(), why });
        }
        let phase = self.phase_to_go_on(name);
        let Some(table) = self.tables.get_mut(name) else { return };
        table.wants_generation = true;
        if matches!(table.phase, Phase::Paused | Phase::Halted) {
            // What it passed over is given up with the rest of the old generation's log.
            table.phase = phase;
            table.refused = None;
            table.skip = None;
            table.resumes_when_recorded = false;
        }
        self.mark("resnapshot-asked");
    }

    /// What a table does that is to go on.
    pub(crate) fn phase_to_go_on(&self, name: &TableName) -> Phase {
        let Some(table) = self.tables.get(name) else { return Phase::Streaming };
        if table.is_blank() && self.begins_with_snapshot(name) && table.snapshot.is_none() {
            return Phase::Pending;
        }
        if table.is_incomplete() { Phase::Snapshotting } else { Phase::Streaming }
    }

    /// Begins the generations that are wanted, as far as nothing of their tables is on its way.
    pub(crate) fn begin_generations(&mut self) {
        for name in self.names() {
            if self.may_begin(&name) {
                self.fix_base(&name);
            }
        }
    }

    fn may_begin(&self, name: &TableName) -> bool {
        let Some(table) = self.tables.get(name).filter(|t| t.wants_generation && !t.is_beginning()) else { return false };
        let Some(recorded) = self.record.known.tables.get(name) else { return false };
        let released = recorded.phase == Phase::NeedsSnapshot && recorded.generation > table.generation();
        let ready = match table.phase {
            // Only after the record says so does anything pass the old generation's log (rule A5).
            Phase::NeedsSnapshot => released,
            Phase::Pending | Phase::Streaming | Phase::Snapshotting => !self.wants_snapshot(name),
            Phase::Paused | Phase::Halted => false,
        };
        ready && !self.drain.is_closing() && table.flight.is_none() && table.committing.is_none() && !self.is_unclaimed(name)
    }

    fn fix_base(&mut self, name: &TableName) {
        let Some(table) = self.tables.get(name) else { return };
        let stand = self.stored_stand(name).join(&Cut::at(table.complete().clone()));
        let floor = self.log.floor.join(&self.log.acknowledged);
        if table.is_member() && table.phase != Phase::Pending && !stand.upto().contains(&floor) {
            // The log from its base on is not there any more: the record says so before a later base is fixed.
            let why = alloc::format!("the log can be read from {floor} on only, and its copy stands at {stand:?}");
            return self.needs_snapshot(name, why);
        }
        let base = match table.phase {
            // It has promised nothing of the log before now.
            Phase::Pending | Phase::NeedsSnapshot => self.end_of_everything(),
            Phase::Snapshotting | Phase::Streaming | Phase::Paused | Phase::Halted => stand.upto().clone(),
        };
        let generation = self.needed(name, table);
        let with_data = self.config.tables.get(name).is_some_and(|t| t.state_with_data);
        self.void_chunks(name, Void::Stopped);
        self.give_up_waiting(name);
        let config = &self.config;
        let Some(table) = self.tables.get_mut(name) else { return };
        let old = table.snapshot.take();
        let mut snapshot = Snapshot::beginning(generation, base.clone(), config, with_data);
        let member = !matches!(table.phase, Phase::Pending | Phase::NeedsSnapshot);
        snapshot.built_upon = member && stand.is_whole();
        if planted!(config, RangesOfTwoGenerations)
            && let Some(old) = old
        {
            snapshot.tiling = old.tiling;
        }
        table.snapshot = Some(snapshot);
        // What is divided is read again from its beginning, where the schema may have been another one.
        let same_schema = member && stand.is_whole();
        table.schema = table.stored.as_ref().filter(|_| same_schema).and_then(|s| s.schema.clone());
        table.phase = Phase::Snapshotting;
        table.taken = Cut::at(base);
        table.replayed.clear();
        table.blocked = None;
        table.why = None;
        self.mark("generation-wanted");
        self.go_back();
    }

    /// Everything that anybody knows to be in the log, or to be gone from it.
    fn end_of_everything(&self) -> Position {
        let log = &self.log;
        log.known_end.join(&log.received).join(&log.floor).join(&log.acknowledged).join(&self.record.known.quiet)
    }

    /// Asks what the snapshots need to know: what is visible, where ranges could end, chunks.
    pub(crate) fn read_snapshots(&mut self) {
        if self.stage != Life::Running || self.drain.is_closing() {
            return;
        }
        for name in self.names() {
            self.ask_what_is_visible(&name);
            self.plan_ranges(&name);
            self.ask_for_chunks(&name);
        }
    }

    /// When the table's snapshot asks next what is visible, if it does.
    pub(crate) fn next_question(&self, name: &TableName) -> Option<crate::time::Time> {
        let table = self.tables.get(name)?;
        let snapshot = table.snapshot.as_ref().filter(|s| s.asking.is_none() && s.needs_proof())?;
        // The beginning's list is taken once. It is asked for even while the table is paused: its place in the queue is empty.
        let open = !snapshot.is_beginning() || (table.flight.is_none() && table.closed.is_empty());
        let goes = table.phase == Phase::Snapshotting && !self.is_unclaimed(name);
        (open && goes && !self.drain.is_closing()).then_some(snapshot.next_question)
    }

    fn ask_what_is_visible(&mut self, name: &TableName) {
        if self.next_question(name).is_none_or(|at| at > self.now) {
            return;
        }
        let id = self.next_id();
        let next = self.now + self.config.snapshot.visibility_interval;
        let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
        snapshot.asking = Some(id);
        snapshot.next_question = next;
        let (unfinished, about) = (snapshot.is_beginning(), snapshot.doubts().into_iter().collect());
        self.push(Output::ReadVisibility { id, table: name.clone(), about, unfinished });
    }

    pub(crate) fn visibility_read(&mut self, id: CommandId, visibility: Visibility) {
        let asked = |s: &Snapshot| s.asking == Some(id);
        let found = self.tables.iter_mut().find(|(_, t)| t.snapshot.as_ref().is_some_and(asked));
        let Some((name, table)) = found else { return self.stale_answer() };
        let name = name.clone();
        let Some(snapshot) = table.snapshot.as_mut() else { return };
        snapshot.asking = None;
        snapshot.failing = None;
        snapshot.why = None;
        if !snapshot.is_beginning() {
            return self.prove(&name, &visibility.proven);
        }
        let doubts = if planted!(self.config, DoubtEmptyAtJoin) { Some(BTreeSet::new()) } else { visibility.unfinished };
        match doubts {
            Some(unfinished) => {
                snapshot.in_doubt = unfinished;
                self.queue_beginning(&name);
            }
            None => {
                let why = "the source did not say which transactions are unfinished. This is a fault of its driver";
                self.halt_in_front(&name, String::from(why), None);
            }
        }
    }

    /// The first commit of a generation carries no data (rule G1).
    fn queue_beginning(&mut self, name: &TableName) {
        let (incarnation, now) = (self.incarnation, self.now);
        let (coordinates, server) = (self.log.identity.coordinates.clone(), self.log.server);
        let Some(table) = self.tables.get_mut(name) else { return };
        table.sequence += 1;
        table.checkpoints += 1;
        let Some(snapshot) = table.snapshot.as_mut() else { return };
        if !snapshot.in_doubt.is_empty() {
            *self.marks.entry("doubt-at-the-base").or_default() += 1;
        }
        let in_doubt = snapshot.in_doubt.iter().cloned().collect();
        let progress = Progress { tiling: snapshot.tiling.to_store(), in_doubt, sweep: false, ranges: None };
        table.closed.push_back(Checkpoint {
            number: crate::id::CheckpointNumber(table.checkpoints),
            cut: Cut::at(snapshot.base.clone()),
            before: snapshot.base.clone(),
            opened: now,
            last_sequence: table.sequence,
            begun: Some(Version::new(incarnation, table.sequence)),
            schema: table.schema.clone(),
            coordinates,
            server,
            built_upon: snapshot.built_upon,
            kind: Kind::Begin(snapshot.generation),
            progress: Some(progress),
            ..Checkpoint::default()
        });
    }

    /// The beginning of a generation is durable: from here on the table's rows are taken.
    pub(crate) fn generation_begun(&mut self, name: &TableName, state: &TableState) {
        self.mark("generation-begun");
        let with_data = self.config.tables.get(name).is_some_and(|t| t.state_with_data);
        let snapshot = Snapshot::of(state, &self.config, with_data);
        let Some(table) = self.tables.get_mut(name) else { return };
        table.snapshot = snapshot;
        table.wants_generation = false;
        table.needed = 0;
        let phase = table.phase;
        let passed_over = phase == Phase::Snapshotting && table.blocked.take().is_some();
        self.snapshot_is_needed_no_more(name, phase);
        if passed_over {
            self.mark("generation-goes-back");
            self.go_back();
        } else if phase == Phase::Snapshotting {
            // No row of it was met since the reader went back to the base.
            let read = self.log.read.clone();
            if let Some(table) = self.tables.get_mut(name) {
                table.taken.join_position(&read);
            }
        }
    }

    // ---- ranges

    fn plan_ranges(&mut self, name: &TableName) {
        let alone = self.config.snapshot.chunks_max <= 1;
        let Some(table) = self.tables.get(name).filter(|t| t.phase == Phase::Snapshotting) else { return };
        let wanted = |s: &&Snapshot| s.stage == Stage::Reading && !s.planned && s.planning.is_none() && s.in_doubt.is_empty();
        if table.snapshot.as_ref().filter(wanted).is_none() || self.is_unclaimed(name) {
            return;
        }
        let id = self.next_id();
        let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
        if alone {
            snapshot.planned = true;
            return;
        }
        snapshot.planning = Some(id);
        let wanted = self.config.snapshot.chunks_max;
        self.push(Output::PlanRanges { id, table: name.clone(), wanted });
    }

    pub(crate) fn ranges_planned(&mut self, id: CommandId, bounds: Vec<Bound>) {
        let planning = |s: &Snapshot| s.planning == Some(id);
        let found = self.tables.values_mut().filter_map(|t| t.snapshot.as_mut()).find(|s| planning(s));
        let Some(snapshot) = found else { return self.stale_answer() };
        snapshot.planning = None;
        snapshot.planned = true;
        let divided = !bounds.is_empty() && snapshot.tiling.divide(bounds);
        if divided {
            self.mark("ranges-planned");
        }
    }

    // ---- the end

    /// A table whose every range is durable owes the removal of what older generations left: the next checkpoint brings it.
    pub(crate) fn sweep_what_is_complete(&mut self) {
        let now = self.now;
        for name in self.names() {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            let owes = table.snapshot.as_ref().is_some_and(|s| s.stage == Stage::Unswept) && table.phase == Phase::Snapshotting;
            // One with holes closes soon, and brings it.
            let lacks = table.open.absent.lacks();
            if !owes || lacks || table.flight.is_some() || !table.closed.is_empty() || table.blocked.is_some() {
                continue;
            }
            table.begin_taking(now);
            table.open.taken += 1;
            self.mark("sweep-apart");
            self.close(&name);
        }
    }

    /// Every range is durable and what older generations left is gone: the table streams.
    pub(crate) fn snapshot_ended(&mut self, name: &TableName) {
        self.mark("snapshot-complete");
        let Some(table) = self.tables.get_mut(name) else { return };
        if table.phase == Phase::Snapshotting {
            table.phase = Phase::Streaming;
            self.want(name, Phase::Streaming);
        }
    }

    /// What is not durable of a table was given up: its snapshot is where `state` says.
    pub(crate) fn reset_snapshot(&mut self, name: &TableName, state: Option<&TableState>) {
        self.void_chunks(name, Void::Stopped);
        let with_data = self.config.tables.get(name).is_some_and(|t| t.state_with_data);
        let snapshot = state.and_then(|state| Snapshot::of(state, &self.config, with_data));
        let Some(table) = self.tables.get_mut(name) else { return };
        table.wants_generation |= table.is_beginning();
        table.snapshot = snapshot;
    }
}
