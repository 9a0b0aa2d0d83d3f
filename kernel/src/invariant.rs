//! What must never happen, as far as a machine can see it: one function a rule, grouped and named as in the design's list.
//!
//! [`Coordinator::check`] runs after every input in the simulator, in tests and in debug builds. At the irreversible edges (a
//! commit, an acknowledgement, a deletion) a constant-time form runs always: a broken rule there means that the command is
//! not given and this life ends. What spans several lives, or needs the sink's truth, is the simulator's to check.

mod absent;
mod snapshots;

use alloc::format;
use alloc::string::String;

use crate::checkpoint::{Kind, Table};
use crate::coordinator::{Coordinator, Output, ToWorker, VALIDATE};
use crate::id::TableName;
use crate::position::{Cut, Position};
use crate::state::Phase;

/// A rule is broken.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{rule}: {dump}")]
pub struct Violation {
    /// The invariant's name.
    pub rule: &'static str,
    /// What was seen.
    pub dump: String,
}

fn broken(rule: &'static str, dump: String) -> Result<(), Violation> {
    Err(Violation { rule, dump })
}

impl Coordinator {
    /// Is every rule that this machine can see kept?
    pub fn check(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        if !self.has_begun() {
            return Ok(());
        }
        // Starting and positions
        self.same_log_identity()?;
        for (name, table) in &self.tables {
            self.join_has_a_base(name, table)?;
            self.start_within_streamable(name, table)?;
            // A log that has become shorter ends this life; until then what was taken is committed.
            if !self.drain.is_closing() {
                self.never_ahead_of_source(name, table)?;
                self.record_never_ahead_of_source()?;
            }
            self.start_mode_only_without_state(name)?;
        }
        // Durability and acknowledging
        self.acknowledged_within_received()?;
        self.quiet_before_acknowledged()?;
        self.empty_transactions_do_not_confirm()?;
        for (name, table) in &self.tables {
            self.release_before_pass(name, table)?;
            self.position_covers_only_durable(name, table)?;
            self.commit_in_order_per_table(name, table)?;
            self.everything_owed_is_tracked(name, table)?;
            self.effective_cut_never_falls(name, table)?;
        }
        // Snapshots
        for (name, table) in &self.tables {
            self.snapshots_are_kept(name, table)?;
            self.absent_values_are_kept(name, table)?;
        }
        // Commit outcomes
        self.superseded_means_stopped()?;
        self.superseded_is_learned_in_time()?;
        // Resources and liveness
        self.budget_conserved()?;
        self.every_wait_has_an_exit()
    }

    /// What was acknowledged in this life, beyond what could not be streamed anyway.
    fn passed(&self) -> Position {
        self.log.said.without(&self.log.floor)
    }

    // ---- durability and acknowledging

    fn position_covers_only_durable(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let judged = table.follows() && !self.wants_snapshot(name) && table.stored.is_some();
        if judged && !table.complete().contains(&self.passed()) {
            let dump = format!("{name} is complete to {}, acknowledged is {}", table.complete(), self.log.said);
            return broken("position-covers-only-durable", dump);
        }
        let quiet = &self.record.known.quiet;
        let named = self.record.known.tables.get(name).and_then(|e| e.named);
        let speaks = table.stored.as_ref().is_some_and(|s| Some(s.commit) == named);
        if judged && speaks && !table.complete().contains(quiet) {
            let dump = format!("{name} is complete to {}, the record says {quiet}", table.complete());
            return broken("position-covers-only-durable", dump);
        }
        Ok(())
    }

    fn release_before_pass(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let recorded = self.record.known.tables.get(name);
        let released = recorded.is_some_and(|e| e.phase == Phase::NeedsSnapshot && e.generation > table.generation());
        let held = matches!(table.phase, Phase::Halted | Phase::Paused) && !released && table.stored.is_some();
        if held && !table.complete().contains(&self.passed()) {
            let dump = format!("{name} is {} at {}, acknowledged is {}", table.phase.as_str(), table.complete(), self.log.said);
            return broken("release-before-pass", dump);
        }
        // A snapshot that is needed stays needed until the table's own generation has reached it.
        if released && table.is_member() && !self.wants_snapshot_in_memory(name) {
            let dump = format!("{name} is {} though the stored record says that it needs a snapshot", table.phase.as_str());
            return broken(if table.phase == Phase::Halted { "release-before-pass" } else { "join-has-a-base" }, dump);
        }
        Ok(())
    }

    fn acknowledged_within_received(&self) -> Result<(), Violation> {
        if self.log.received.join(&self.log.floor).contains(&self.log.said) {
            return Ok(());
        }
        broken("acknowledged-within-received", format!("acknowledged {}, received {}", self.log.said, self.log.received))
    }

    fn quiet_before_acknowledged(&self) -> Result<(), Violation> {
        if self.record.known.quiet.contains(&self.passed()) {
            return Ok(());
        }
        broken("quiet-before-acknowledged", format!("acknowledged {}, stored quiet {}", self.log.said, self.record.known.quiet))
    }

    fn empty_transactions_do_not_confirm(&self) -> Result<(), Violation> {
        match self.log.inside.iter().find(|transaction| self.log.read.contains_transaction(transaction)) {
            None => Ok(()),
            Some(t) => broken("empty-transactions-do-not-confirm", format!("read to {}, inside {t:?}", self.log.read)),
        }
    }

    fn commit_in_order_per_table(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let Some(stored) = &table.stored else { return Ok(()) };
        let mut last = (&stored.cut, &stored.identity.coordinates, table.stored_by);
        for point in table.flight.iter().map(|f| &f.point).chain(&table.closed).filter(|c| c.kind != Kind::Claim) {
            // Coordinates of two servers are not compared; whole transactions are.
            // A generation begins with whole transactions; what is divided is written again in it.
            let same = *last.1 == point.coordinates && last.2 == point.server && !matches!(point.kind, Kind::Begin(_));
            if !point.cut.upto().contains(last.0.upto()) || (same && !point.cut.contains(last.0)) {
                return broken("commit-in-order-per-table", format!("{name}: {:?} follows {:?}", point.cut, last.0));
            }
            last = (&point.cut, &point.coordinates, point.server);
        }
        Ok(())
    }

    fn everything_owed_is_tracked(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let Some(stored) = table.stored.as_ref().filter(|_| table.is_member() && !table.is_beginning()) else { return Ok(()) };
        let stored = self.valid_here(&stored.cut, &stored.identity, table.stored_by);
        if !table.taken.contains(&stored) {
            let dump = format!("{name} has taken {:?}, stored is {stored:?}", table.taken);
            return broken("everything-owed-is-tracked", dump);
        }
        match table.owed().next() {
            Some(oldest) if !table.taken.upto().contains(&oldest.before) => {
                broken("everything-owed-is-tracked", format!("{name} has taken {:?}, less than {}", table.taken, oldest.before))
            }
            _ => Ok(()),
        }
    }

    fn effective_cut_never_falls(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let Some(flight) = table.flight.as_ref().filter(|f| f.point.kind != Kind::Claim) else { return Ok(()) };
        if self.log.identity.coordinates != flight.point.coordinates || self.log.server != flight.point.server {
            return Ok(());
        }
        let stands = self.stored_stand(name);
        let same = table.stored.as_ref().is_none_or(|s| s.generation == flight.new.generation);
        // Of the quiet position only what the table had taken when it closed can be in its cut; the rest the record still holds.
        if same && !flight.new.cut.join(&Cut::at(self.record.known.quiet.clone())).contains(&stands) {
            return broken("effective-cut-never-falls", format!("{name} stands at {stands:?}, writes {:?}", flight.new.cut));
        }
        Ok(())
    }

    // ---- starting and positions

    fn start_within_streamable(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        if table.phase == Phase::NeedsSnapshot || table.taken.upto().contains(&self.log.floor) {
            return Ok(());
        }
        broken("start-within-streamable", format!("{name} has taken {:?}, the log begins at {}", table.taken, self.log.floor))
    }

    fn same_log_identity(&self) -> Result<(), Violation> {
        let stored = self.tables.iter().filter_map(|(n, t)| Some((n, t.stored.as_ref()?)));
        for (name, state) in stored {
            if let Some(difference) = state.identity.differs_from(&self.log.identity) {
                return broken("same-log-identity", format!("{name}: {difference:?}"));
            }
        }
        Ok(())
    }

    fn never_ahead_of_source(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        let known = &self.log.known_end;
        let ahead = |stored: &Position| self.log.is_ahead(stored, known);
        if table.is_member() && table.stored.is_some() && ahead(self.stored_stand(name).upto()) {
            let dump = format!("{name}: {:?}, the log ends at {known}", table.stored.as_ref().map(|s| &s.cut));
            return broken("never-ahead-of-source", dump);
        }
        Ok(())
    }

    fn record_never_ahead_of_source(&self) -> Result<(), Violation> {
        let (quiet, known) = (&self.record.known.quiet, &self.log.known_end);
        if self.log.is_ahead(quiet, known) {
            return broken("never-ahead-of-source", format!("the record: {quiet}, the log ends at {known}"));
        }
        Ok(())
    }

    fn start_mode_only_without_state(&self, name: &TableName) -> Result<(), Violation> {
        match self.starting.joined.get(name) {
            Some(true) => broken("start-mode-only-without-state", format!("{name} had a state when the start option moved it")),
            Some(false) | None => Ok(()),
        }
    }

    fn join_has_a_base(&self, name: &TableName, table: &Table) -> Result<(), Violation> {
        if table.is_member() && table.stored.is_some() && !self.record.known.tables.contains_key(name) {
            return broken("join-has-a-base", format!("{name} goes on from a state that the record does not know"));
        }
        Ok(())
    }

    // ---- commit outcomes

    fn superseded_means_stopped(&self) -> Result<(), Violation> {
        if self.superseded && !self.is_stopped() {
            return broken("superseded-means-stopped", String::from("a newer life was heard of, and this one goes on"));
        }
        Ok(())
    }

    /// A life that writes nothing asks: no proof is older than the interval without a question on its way.
    fn superseded_is_learned_in_time(&self) -> Result<(), Violation> {
        if self.neglects_validation() {
            let dump = format!("no proof for {} us that no newer life has begun", self.config.validate_interval.0);
            return broken("superseded-is-learned-in-time", dump);
        }
        Ok(())
    }

    // ---- resources and liveness

    fn budget_conserved(&self) -> Result<(), Violation> {
        if !self.budget.is_conserved() {
            return broken("budget-conserved", String::from("granted is not given back plus held"));
        }
        let named: u64 = self.tables.values().map(Table::rows_unwritten).sum();
        if named != self.budget.rows() {
            return broken("budget-conserved", format!("checkpoints name {named} rows, {} are held", self.budget.rows()));
        }
        let full = self.budget.is_full(self.config.budget_bytes_max);
        let moving = |t: &Table| t.flight.is_some() || !t.closed.is_empty();
        if full && !self.tables.values().any(moving) {
            return broken("budget-conserved", format!("{} bytes are held and nothing closes", self.budget.used()));
        }
        Ok(())
    }

    fn every_wait_has_an_exit(&self) -> Result<(), Violation> {
        let answer = self.log.reading.is_some()
            || self.starting.asked.is_some()
            || self.record.is_being_stored()
            || self.snapshots().any(|s| s.awaits_answer())
            || self.tables.values().any(|t| t.rereading.awaits_answer())
            || self.tables.values().any(|t| t.flight.as_ref().is_some_and(|f| f.retry.is_none()));
        let person = self.log.finished || self.drain.is_closing();
        // That it will ask whether a newer life has begun ends no wait.
        let time = self.deadlines().iter().any(|deadline| deadline.why != VALIDATE);
        if answer || person || time || !self.outbox.is_empty() {
            return Ok(());
        }
        broken("every-wait-has-an-exit", format!("nothing is asked and nothing is due: {:?}", self.waiting()))
    }

    // ---- the edges

    /// The rules that a command must keep before it is given: asserted hardest where it can't be taken back.
    pub(crate) fn check_edge(&self, output: &Output) -> Result<(), Violation> {
        match output {
            Output::Acknowledge { upto, .. } => {
                if !self.log.received.join(&self.log.floor).contains(upto) {
                    return broken("acknowledged-within-received", format!("{upto}, received {}", self.log.received));
                }
                if self.log.is_ahead(upto, &self.log.known_end) {
                    let dump = format!("{upto} is acknowledged, the log ends at {}", self.log.known_end);
                    return broken("never-ahead-of-source", dump);
                }
                self.quiet_before_acknowledged()
            }
            Output::Commit { table, state, staged, .. } => {
                let Some(found) = self.tables.get(table) else { return Ok(()) };
                if found.committing.is_some() {
                    return broken("commit-in-order-per-table", format!("{table}: {:?} while another commit runs", state.commit));
                }
                if state.incarnation != self.incarnation {
                    return broken("stale-incarnation-has-no-effect", format!("{table}: a commit of life {}", state.incarnation));
                }
                self.sweep_comes_with_the_end(output)?;
                self.ahead_within_its_fence(table, state)?;
                let whole = found.flight.as_ref().is_some_and(|f| f.attempt.is_none() || (f.written && staged.len() == 1));
                if whole { Ok(()) } else { broken("one-attempt-counts", format!("{table}: {:?} names {staged:?}", state.commit)) }
            }
            Output::Send(ToWorker::Write { part, .. }) => self.nothing_is_written_that_lacks(&part.table),
            Output::ReleaseStaged { table, attempt, delete: true } => {
                let flight = self.tables.get(table).and_then(|t| t.flight.as_ref()).filter(|f| f.attempt == Some(*attempt));
                match flight {
                    Some(f) if f.ever_unknown || self.commit_runs(table) => {
                        broken("staged-kept-while-unknown", format!("{table}: {attempt:?} may have been published"))
                    }
                    _ => Ok(()),
                }
            }
            Output::DiscardOlder { table, .. } => {
                let ours =
                    self.tables.get(table).and_then(|t| t.stored.as_ref()).is_some_and(|s| s.incarnation == self.incarnation);
                if ours {
                    Ok(())
                } else {
                    broken("only-current-incarnation-deletes", format!("{table} has no commit of this life"))
                }
            }
            _ => Ok(()),
        }
    }

    fn commit_runs(&self, name: &TableName) -> bool {
        self.tables.get(name).is_some_and(|t| t.committing.is_some())
    }
}
