//! What must never happen to parts, as far as a router can see it (group 'rows and schema' of the design's list).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::share::{Divided, Share, Step};
use super::{Router, RouterOutput};
use crate::id::{AttemptId, TableName};
use crate::invariant::Violation;

fn broken(rule: &'static str, dump: String) -> Result<(), Violation> {
    Err(Violation { rule, dump })
}

impl Router {
    /// Is every rule that this machine can see kept?
    pub fn check(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        if self.over {
            return Ok(());
        }
        for (name, table) in &self.tables {
            for (share, _) in table.shares() {
                self.one_attempt_counts(name, share)?;
                self.one_owner_per_key(name, share)?;
            }
        }
        self.attempts_are_used_once()?;
        self.budget_conserved()?;
        self.every_wait_has_an_exit()
    }

    /// What counts as written was written by the present attempt; and of a checkpoint whose commit was sent the attempts are those
    /// that the commit names.
    fn one_attempt_counts(&self, name: &TableName, share: &Share) -> Result<(), Violation> {
        for (slot, piece) in &share.parts {
            if let Some(written) = piece.written.as_ref().filter(|w| w.attempt != piece.attempt) {
                let dump = format!("{name} slot {}: {} wrote, {} is the present one", slot.0, written.attempt, piece.attempt);
                return broken("one-attempt-counts", dump);
            }
        }
        match &share.step {
            Step::Gathering => Ok(()),
            Step::Gathered { named } | Step::Sent { named, .. } if *named == Self::named(share) => Ok(()),
            Step::Gathered { named } | Step::Sent { named, .. } => {
                let dump = format!("{name}: the commit names {named:?}, the attempts are {:?}", Self::named(share));
                broken("one-attempt-counts", dump)
            }
        }
    }

    fn one_owner_per_key(&self, name: &TableName, share: &Share) -> Result<(), Violation> {
        match share.parts.keys().find(|slot| slot.0 >= share.layout.slots()) {
            Some(slot) => broken("one-owner-per-key", format!("{name}: slot {} of {} slots", slot.0, share.layout.slots())),
            None => Ok(()),
        }
    }

    fn attempts_are_used_once(&self) -> Result<(), Violation> {
        let mut seen = BTreeSet::new();
        let shares = self.tables.values().flat_map(Divided::shares);
        for piece in shares.flat_map(|(share, _)| share.parts.values()) {
            if !seen.insert(piece.attempt) {
                return broken("one-attempt-counts", format!("{} is the attempt at two parts", piece.attempt));
            }
        }
        Ok(())
    }

    fn budget_conserved(&self) -> Result<(), Violation> {
        let rows: u64 = self.rows_held().map(|r| u64::from(r.count())).sum();
        if rows != self.kept {
            return broken("budget-conserved", format!("{rows} rows are kept, {} are counted", self.kept));
        }
        Ok(())
    }

    /// A part that is wanted is asked for, fails and is tried again, or there is nobody and that is said.
    fn every_wait_has_an_exit(&self) -> Result<(), Violation> {
        let nobody = self.sessions.workers().next().is_none();
        for (name, table) in &self.tables {
            for (share, closed) in table.shares().filter(|(share, _)| share.step == Step::Gathering) {
                let Some(base) = share.asks(closed, table.locates) else { continue };
                let waits = |p: &super::share::Piece| !p.is_written_at(&base) && p.written.is_none();
                let stuck = |p: &super::share::Piece| p.asked_at(&base).is_none() && !p.spent && !nobody;
                if let Some((slot, _)) = share.parts.iter().find(|(_, p)| waits(p) && stuck(p)) {
                    let dump = format!("{name} checkpoint {} slot {}: nobody was asked", share.number.0, slot.0);
                    return broken("every-wait-has-an-exit", dump);
                }
            }
        }
        if nobody && self.alone.is_none() {
            return broken("every-wait-has-an-exit", String::from("there is no worker, and nobody will say so"));
        }
        Ok(())
    }

    /// What must hold before a command is given that can't be taken back.
    pub(super) fn check_edge(&self, output: &RouterOutput) -> Result<(), Violation> {
        let RouterOutput::Gathered { table: name, checkpoint, base, staged, deletions } = output else { return Ok(()) };
        let Some(table) = self.tables.get(name) else { return Ok(()) };
        let Some(share) = table.closed.front().filter(|share| share.number == *checkpoint) else {
            return broken("commit-in-order-per-table", format!("{name}: checkpoint {} is not the oldest", checkpoint.0));
        };
        let present: Vec<AttemptId> = Self::named(share).into_iter().collect();
        if present != *staged {
            let dump = format!("{name}: a commit of {staged:?}, the present attempts are {present:?}");
            return broken("one-attempt-counts", dump);
        }
        let at = table.locates.then(|| base.clone());
        if let Some((slot, piece)) = share.parts.iter().find(|(_, p)| !p.is_written_at(&at)) {
            let dump = format!("{name}: a commit at {base}, slot {} ({}) is not written there", slot.0, piece.attempt);
            return broken("one-attempt-counts", dump);
        }
        let found: u64 = share.parts.values().filter_map(|p| p.written.as_ref()).map(|w| w.deletions.count()).sum();
        if found != deletions.count() {
            let dump = format!("{name}: owners found {found} rows to delete, the commit deletes {}", deletions.count());
            return broken("one-vector-per-file", dump);
        }
        Ok(())
    }
}
