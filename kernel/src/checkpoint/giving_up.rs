//! Giving up what is not durable, and stopping: what a table goes back to when its sink refuses it, another life has committed,
//! or others need the room.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Step, Table};
use crate::config::OnError;
use crate::coordinator::{Coordinator, Output, StopReason, ToWorker};
use crate::id::TableName;
use crate::planted::planted;
use crate::position::{Coordinate, Cut, Transaction};
use crate::snapshot::Void;
use crate::state::Phase;

impl Coordinator {
    /// All that is not durable of a table is given up.
    pub(crate) fn give_up(&mut self, name: &TableName) {
        self.give_up_waiting(name);
        self.drop_staged(name);
        let Some(table) = self.tables.get_mut(name) else { return };
        let point = table.flight.take().map(|f| f.point).unwrap_or_default();
        let flying: Vec<_> = point.rows.into_iter().chain(point.absent.into_rows()).collect();
        table.last_failure = None;
        table.begins_in_vain = None;
        table.schema = table.stored.as_ref().and_then(|s| s.schema.clone());
        for rows in &flying {
            self.budget.pass_over(rows);
        }
        let stored = self.tables.get(name).and_then(|t| t.stored.clone());
        self.reset_snapshot(name, stored.as_ref());
    }

    /// All that waits behind a table's flight is given up.
    pub(crate) fn give_up_waiting(&mut self, name: &TableName) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let open = core::mem::take(&mut table.open);
        let closed = core::mem::take(&mut table.closed);
        let read = core::mem::take(&mut table.rereading).into_rows();
        for point in closed.into_iter().chain([open]) {
            for rows in point.rows.iter().chain(&point.absent.into_rows()) {
                self.budget.pass_over(rows);
            }
        }
        if let Some(rows) = read {
            self.budget.pass_over(&rows);
        }
    }

    /// The budget's bound is reached, so nothing is read. A table whose flight stands still and that fills half of the budget
    /// gives back what waits behind the flight, and reads it again later: the others go on (rule O9).
    pub(crate) fn make_room(&mut self) {
        if !self.budget.is_full(self.config.budget_bytes_max) || self.drain.is_closing() {
            return;
        }
        for name in self.names() {
            let Some(table) = self.tables.get(&name).filter(|t| self.holds_others(&name, t)) else { continue };
            let Some(flight) = table.flight.as_ref().filter(|_| table.open.taken > 0 || !table.closed.is_empty()) else {
                continue;
            };
            let schema = flight.new.schema.clone();
            let flies = self.valid_here(&flight.new.cut, &flight.new.identity, flight.point.server);
            let keyed = self.config.tables.get(&name).is_none_or(|t| t.keyed);
            if !keyed && flies != flight.new.cut {
                // What it is inside of would be read from its beginning, numbered otherwise, and come twice (rule P2).
                continue;
            }
            let stand = flies.join(&self.stored_stand(&name)).join(&Cut::at(table.complete().clone()));
            if !stand.upto().contains(&self.log.floor.join(&self.log.acknowledged)) {
                // What it gave back the source could not tell it again.
                continue;
            }
            let (beginning, new) = (table.is_beginning(), flight.new.clone());
            self.give_up_waiting(&name);
            if !beginning {
                self.reset_snapshot(&name, Some(&new));
            }
            if let Some(table) = self.tables.get_mut(&name) {
                table.taken = stand;
                table.schema = schema;
                table.replayed.clear();
                table.blocked = Some(self.now);
            }
            self.mark("gave-back-for-budget");
        }
    }

    /// Does its flight stand still while its rows fill half of the budget?
    pub(crate) fn holds_others(&self, name: &TableName, table: &Table) -> bool {
        let still = table.flight.as_ref().is_some_and(|f| f.stands_still(self.now, self.config.retry.most));
        still && self.budget.held_for(name) >= self.config.budget_bytes_max / 2
    }

    /// What the flight's attempt staged is deleted, unless it may have been published.
    pub(super) fn drop_staged(&mut self, name: &TableName) {
        let Some(flight) = self.tables.get(name).and_then(|t| t.flight.as_ref()) else { return };
        let Some(attempt) = flight.attempt else { return };
        let running = flight.step == Step::Commit
            && flight.retry.is_none()
            && self.tables.get(name).is_some_and(|t| t.committing.is_some());
        let careful = flight.ever_unknown || running;
        let delete =
            !careful || planted!(self.config, UnknownDropsStaged) || planted!(self.config, ConflictAfterUnknownDropsStaged);
        let written = flight.written;
        if written {
            self.push(Output::ReleaseStaged { table: name.clone(), attempt, delete });
        } else {
            self.push(Output::Send(ToWorker::Abandon { attempt }));
        }
    }

    /// The sink refuses the table or its rows. After netting nobody knows which event it was, and it need not repeat (C5).
    pub(crate) fn halt(&mut self, name: &TableName, why: String) {
        self.mark("halted-by-sink");
        let released = self.wants_snapshot(name) && !planted!(self.config, HaltUndoesRelease);
        let Some(table) = self.tables.get(name) else { return };
        // What is known in memory counts, too: a record that is being stored may already rely on it.
        let stand = self.stored_stand(name).join(&Cut::at(table.complete().clone()));
        let divided_elsewhere = self.is_divided_elsewhere(name);
        let began = table.is_beginning();
        self.give_up(name);
        let floor = self.log.floor.join(&self.log.acknowledged);
        let now = self.now;
        if !stand.upto().contains(&floor) || divided_elsewhere {
            let why = format!("{why}. The log can be read from {floor} on only, so it can't go on from {stand:?}");
            return self.needs_snapshot(name, why);
        }
        let Some(table) = self.tables.get_mut(name) else { return };
        table.taken = stand;
        table.replayed.clear();
        table.blocked = Some(now);
        table.phase = if released { Phase::NeedsSnapshot } else { Phase::Halted };
        if released {
            table.blocked = None;
            table.needed = table.generation() + 1;
            // What was refused once would be refused again, at once and for ever: somebody mends it, and asks.
            table.wants_generation &= !began;
        }
        self.say_halted(name, why, None);
        self.want(name, if released { Phase::NeedsSnapshot } else { Phase::Halted });
    }

    /// The table stops in front of an event; what was taken before it is committed.
    pub(crate) fn halt_in_front(&mut self, name: &TableName, why: String, at: Option<(Transaction, Coordinate)>) {
        self.void_chunks(name, Void::Stopped);
        if let Some(table) = self.tables.get_mut(name) {
            table.phase = Phase::Halted;
            table.blocked = Some(self.now);
        }
        self.say_halted(name, why, at);
        self.want(name, Phase::Halted);
    }

    fn say_halted(&mut self, name: &TableName, why: String, at: Option<(Transaction, Coordinate)>) {
        if let Some(table) = self.tables.get_mut(name) {
            table.why = Some(why.clone());
            table.resumes_when_recorded = false;
        }
        self.reason_was_given();
        self.push(Output::HaltTable { table: name.clone(), why, at });
        if self.config.tables.get(name).is_some_and(|t| t.on_error == OnError::Stop) {
            self.drain.begin(StopReason::TableHalted { table: name.clone() });
        }
    }
}
