//! The rules about absent values, as far as a machine can see them: that nothing is written which lacks one, and what is said of keys
//! that were taken as they were read. What a read proved is the simulator's oracle's to judge.

use alloc::format;

use super::{Violation, broken};
use crate::checkpoint::Table;
use crate::coordinator::Coordinator;
use crate::id::TableName;
use crate::state::TableState;

impl Coordinator {
    pub(super) fn absent_values_are_kept(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        self.nothing_is_written_that_lacks(name)?;
        let points = table.flight.iter().map(|f| &f.point).chain(&table.closed).chain([&table.open]);
        if let Some(point) = points.clone().find(|point| !point.absent.is_consistent()) {
            return broken("absent-value-never-stored", format!("{name}: a key is in two lists: {:?}", point.absent));
        }
        if table.open.absent.is_at_bound(&self.config.absent) {
            let dump = format!("{name}: (holes, keys) are {:?}, the bounds {:?}", table.open.absent.len(), self.config.absent);
            return broken("absent-keys-bounded", dump);
        }
        self.what_is_closed_waits_for_no_fence(name, table)
    }

    /// An answer waits for the log only while its checkpoint is open: one that is closed takes it as it is, and nothing else need come.
    fn what_is_closed_waits_for_no_fence(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let held = table.rereading.holds_for();
        match table.closed.iter().find(|point| held == Some(point.number)) {
            Some(point) => {
                let dump = format!("{name}: checkpoint {:?} is closed, and an answer for it is not taken", point.number);
                broken("every-wait-has-an-exit", dump)
            }
            None => Ok(()),
        }
    }

    /// Also the edge of a write.
    pub(super) fn nothing_is_written_that_lacks(&self, name: &TableName) -> Result<(), Violation> {
        let flight = self.tables.get(name).and_then(|t| t.flight.as_ref());
        match flight.filter(|f| f.point.absent.lacks()) {
            Some(flight) => {
                let (number, absent) = (flight.point.number, &flight.point.absent);
                broken(
                    "absent-value-never-stored",
                    format!("{name}: checkpoint {number:?} is written and lacks values: {absent:?}"),
                )
            }
            None => Ok(()),
        }
    }

    /// The edge of a commit: until the cut passes it, it stays said that keys are ahead, unless these rows are gone.
    pub(super) fn ahead_within_its_fence(&self, name: &TableName, state: &TableState) -> Result<(), Violation> {
        let Some(table) = self.tables.get(name) else { return Ok(()) };
        let said = state.cut.upto().join(&state.ahead);
        let flight = table.flight.as_ref().filter(|f| f.new.commit == state.commit);
        let emptied = flight.is_some_and(|f| f.point.truncate_first);
        let before = table.stored.as_ref().filter(|b| b.generation == state.generation && !emptied).map(|b| &b.ahead);
        let own = flight.map(|f| f.point.absent.ahead());
        match before.into_iter().chain(own).find(|ahead| !said.contains(ahead)) {
            Some(ahead) => {
                let dump = format!(
                    "{name}: {:?} at {:?} says {}, and keys are ahead up to {ahead}",
                    state.commit, state.cut, state.ahead
                );
                broken("ahead-within-its-fence", dump)
            }
            None => Ok(()),
        }
    }
}
