//! An event that a table does not let through: it halts in front of it, and passes it once the record says that somebody wanted so (rules
//! C2, A5).

use alloc::string::String;

use super::Table;
use super::intake::{Change, Verdict};
use crate::coordinator::{Coordinator, Output};
use crate::id::TableName;
use crate::planted::planted;
use crate::position::{Coordinate, Transaction};
use crate::state::{Phase, Skipped};

impl Coordinator {
    /// A row that the table's policy does not let through: the table halts in front of it, unless somebody said `skip`.
    pub(crate) fn take_refused(&mut self, change: &Change<'_>, why: String) {
        if let Verdict::PassOver = self.judge(change) {
            return;
        }
        let at = (change.transaction.clone(), change.first);
        if self.may_skip(change.table, &at) {
            self.mark("refused-skipped");
            self.cover(change);
            let (transaction, coordinate) = at;
            self.push(Output::Skipped { table: change.table.clone(), transaction, coordinate });
            return;
        }
        self.mark("halted-by-refused-row");
        if let Some(table) = self.tables.get_mut(change.table) {
            table.refused = Some(at.clone());
            table.blocked = Some(self.now);
        }
        self.halt_in_front(change.table, why, Some(at));
        // Somebody has said `skip` already, and resumed before the record said so: once it does, the table goes on.
        if let Some(table) = self.tables.get_mut(change.table) {
            table.resumes_when_recorded = table.skip == table.refused;
        }
    }

    /// A person wants the event passed that halted the table.
    pub(super) fn skip(&mut self, name: &TableName) {
        let Some(table) = self.tables.get_mut(name) else { return };
        if let (Phase::Halted, Some(at)) = (table.phase, table.refused.take()) {
            table.skip = Some(at);
            table.resumes_when_recorded = true;
        }
    }

    /// What the record says of the event that somebody in this life wants the table to pass, if somebody does.
    pub(crate) fn skipped(&self, table: &Table) -> Option<Skipped> {
        let (Transaction { stream, at }, coordinate) = table.skip.clone()?;
        Some(Skipped { incarnation: self.incarnation, stream, at, coordinate })
    }

    /// May the table pass over this event? Once the stored record says so, not when somebody has said it.
    fn may_skip(&self, name: &TableName, at: &(Transaction, Coordinate)) -> bool {
        let told = self.tables.get(name).filter(|table| table.skip.as_ref() == Some(at));
        told.is_some_and(|table| self.is_skip_recorded(name, table))
    }

    fn is_skip_recorded(&self, name: &TableName, table: &Table) -> bool {
        let recorded = |skipped| self.record.known.tables.get(name).is_some_and(|entry| entry.skipped.contains(&skipped));
        planted!(self.config, SkipsUnrecorded) || self.skipped(table).is_some_and(recorded)
    }

    /// Tables that halted in front of what they may pass over now go on.
    pub(crate) fn resume_what_may_skip(&mut self) {
        loop {
            let goes_on =
                |(name, table): &(&TableName, &Table)| table.resumes_when_recorded && self.is_skip_recorded(name, table);
            let Some(name) = self.tables.iter().find(goes_on).map(|(name, _)| name.clone()) else { return };
            self.mark("skip-recorded");
            self.resume(&name);
        }
    }
}
