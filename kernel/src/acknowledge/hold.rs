//! Who holds the source back, for how long and how much of it, and how that ends (rules A5, R7).

use alloc::format;

use super::Wanted;
use crate::checkpoint::Table;
use crate::coordinator::Coordinator;
use crate::id::TableName;
use crate::planted::planted;
use crate::state::{Phase, stored_reason};
use crate::time::Time;

impl Coordinator {
    /// A table's phase should be this in the record. A table that needs a snapshot goes on needing it until its own generation
    /// has reached the wanted one: no halt, pause or resume replaces that (rule A5).
    pub(crate) fn want(&mut self, name: &TableName, phase: Phase) {
        let undone = phase != Phase::NeedsSnapshot && self.wants_snapshot(name);
        if undone && !planted!(self.config, HaltUndoesRelease) && !planted!(self.config, ReaddedTableTrusted) {
            return;
        }
        self.wants_now(name, phase);
    }

    /// With the reason, where it stands still. One that was found so, or that stands still again while the snapshot that it needs was
    /// tried, has the reason that is stored.
    fn wants_now(&mut self, name: &TableName, phase: Phase) {
        let recorded = self.record.known.tables.get(name).filter(|entry| entry.phase == phase);
        let known = recorded.and_then(|entry| entry.why.clone());
        let stands = matches!(phase, Phase::Halted | Phase::NeedsSnapshot);
        let why = self.tables.get_mut(name).filter(|_| stands).and_then(|table| {
            table.why = table.why.take().or(known);
            table.why.as_deref().map(stored_reason)
        });
        self.record.wanted.insert(name.clone(), Wanted { phase, why });
    }

    /// Somebody should be told why a table stands still, also where the record says already that it does.
    pub(crate) fn reason_was_given(&mut self) {
        self.record.reason_given = true;
    }

    /// Does the record, or will it, say that the table needs a snapshot that it does not have?
    pub(crate) fn wants_snapshot(&self, name: &TableName) -> bool {
        let generation = self.tables.get(name).map_or(0, Table::generation);
        let wanted = self.wants_snapshot_in_memory(name);
        let stored = self.record.known.tables.get(name);
        wanted || stored.is_some_and(|e| e.phase == Phase::NeedsSnapshot && e.generation > generation)
    }

    /// Its generation is the wanted one now.
    pub(crate) fn snapshot_is_needed_no_more(&mut self, name: &TableName, phase: Phase) {
        if let Some(table) = self.tables.get_mut(name) {
            table.released = None;
        }
        self.wants_now(name, phase);
    }

    /// Does memory, whatever the stored record says, want a snapshot of it?
    pub(crate) fn wants_snapshot_in_memory(&self, name: &TableName) -> bool {
        self.record.wanted.get(name).is_some_and(|wanted| wanted.phase == Phase::NeedsSnapshot)
    }

    /// Hold nothing for the table any more: true once the record says so, not before (rule A5).
    pub(crate) fn release(&mut self, name: &TableName, because: &str) {
        if self.wants_snapshot_in_memory(name) {
            return;
        }
        self.mark("released");
        if let Some(table) = self.tables.get_mut(name) {
            let before = table.why().map(|why| format!(" (first: {why})")).unwrap_or_default();
            let why = format!("{because}{before}");
            (table.why, table.released) = (Some(why.clone()), Some(why));
        }
        self.want(name, Phase::NeedsSnapshot);
    }

    /// Since when a table holds the source back and time alone may end it: it is stopped in front of a row, or its sink fails.
    pub(crate) fn holds_since(&self, name: &TableName) -> Option<Time> {
        let table = self.tables.get(name).filter(|t| t.is_member() && !self.wants_snapshot_in_memory(name))?;
        match &table.flight {
            Some(flight) => flight.retry.map(|r| r.since),
            None if matches!(table.phase, Phase::Streaming | Phase::Snapshotting) => None,
            None => table.blocked,
        }
    }

    /// A table may hold the source back only so long, and only so much of it (rules A5, R7).
    pub(crate) fn release_what_holds_too_long(&mut self) {
        if self.config.hold.is_none() && self.config.hold_distance.is_none() {
            return;
        }
        for name in self.names() {
            let too_long = |hold| self.holds_since(&name).is_some_and(|since| since + hold <= self.now);
            if self.config.hold.is_some_and(too_long) {
                self.mark("held-too-long");
                self.release(&name, "it held the source's log for longer than source.hold.time");
            } else if self.config.hold_distance.is_some_and(|most| self.holds(&name) > most) {
                self.mark("held-too-much");
                self.release(&name, "it held more of the source's log than source.hold.bytes");
            }
        }
    }

    /// How much of what was read of the log is kept for a table that is halted or paused. One whose sink fails is on its way, however
    /// far behind: time alone ends that.
    fn holds(&self, name: &TableName) -> u64 {
        let stands = |t: &&Table| t.is_member() && t.blocked.is_some() && matches!(t.phase, Phase::Halted | Phase::Paused);
        let table = self.tables.get(name).filter(stands).filter(|_| !self.wants_snapshot_in_memory(name));
        table.map_or(0, |table| self.log.received.beyond(table.complete()))
    }

    /// A table of which the stored record says that it needs a snapshot, because this life wanted so, is given up. Not while
    /// one of its commands runs: its outcome must be known first (rule O5).
    pub(crate) fn end_what_was_released(&mut self) {
        for name in self.names() {
            let (Some(entry), Some(table)) = (self.record.known.tables.get(&name), self.tables.get(&name)) else { continue };
            let stored = entry.phase == Phase::NeedsSnapshot && entry.generation > table.generation();
            let running = table.flight.as_ref().is_some_and(|f| f.retry.is_none());
            let failing = table.flight.as_ref().and_then(|flight| flight.retry);
            let too_long = self.config.hold.zip(failing).is_some_and(|(hold, retry)| retry.since + hold <= self.now);
            // The wanted generation is on its way, unless its sink has failed for too long, or somebody stopped it: nothing would begin
            // it then, and nobody could resume it.
            let stopped = table.is_beginning() && table.phase != Phase::Snapshotting;
            let begins = table.is_beginning() && !stopped && !too_long;
            if stored && table.is_member() && !running && !begins && self.wants_snapshot_in_memory(&name) {
                let otherwise = match stopped {
                    true => "it was stopped while its snapshot was beginning, and begins when somebody asks for a new one",
                    false => "it was released",
                };
                let why = table.released.as_ref().or(table.why()).cloned().unwrap_or_else(|| otherwise.into());
                // It begins anew at once, and its sink has failed for as long as before.
                let in_vain =
                    table.begins_in_vain.or(failing.map(|retry| retry.since)).filter(|_| table.is_beginning() && !stopped);
                self.mark("release-stored");
                self.needs_snapshot(&name, why);
                if let Some(table) = self.tables.get_mut(&name) {
                    table.released = None;
                    table.begins_in_vain = in_vain;
                    table.wants_generation &= !stopped;
                }
            }
        }
    }
}
