//! From closed to durable: written by a worker, committed by the sink, and what each outcome means (rules C4 to C9).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Checkpoint, Flight, Kind, Recent, Step};
use crate::acknowledge::effective;
use crate::config::OnError;
use crate::coordinator::{Coordinator, Output, RowRange, StopReason, ToWorker};
use crate::flow::Backoff;
use crate::id::{AttemptId, CommandId, CommitId, Incarnation, Part, Slot, TableName, Token, Version};
use crate::outcome::{CommitOutcome, WriteOutcome};
use crate::planted::planted;
use crate::position::{Coordinate, Cut, LogIdentity, Transaction};
use crate::state::{FORMAT, Phase, PipelineState, TableState};

impl Coordinator {
    /// Moves every table's flight on, and begins the next where none is.
    pub(crate) fn fly(&mut self) {
        for name in self.names() {
            self.retry_flight(&name);
            let Some(table) = self.tables.get(&name) else { continue };
            let overlaps = |f: &Flight| f.step == Step::Commit && f.retry.is_none();
            let second = planted!(self.config, TwoCommitsInFlight) && table.flight.as_ref().is_some_and(overlaps);
            let free = table.flight.is_none() || second;
            if free && (!table.closed.is_empty() || self.is_unclaimed(&name)) && self.may_commit(&name) {
                self.begin_flight(&name);
            }
        }
    }

    fn retry_flight(&mut self, name: &TableName) {
        let Some(flight) = self.tables.get(name).and_then(|t| t.flight.as_ref()) else { return };
        let (Some(retry), step) = (flight.retry, flight.step) else { return };
        if retry.is_hopeless(self.now, &self.config.retry) {
            let why = self.tables.get(name).and_then(|t| t.why.clone()).unwrap_or_default();
            return self.stop(StopReason::Unreachable { why: format!("table {name}: {why}") });
        }
        if retry.at <= self.now {
            self.issue(name, step);
        }
    }

    /// Nothing of a table is written before the stored record knows the table: a state that no record names would not be
    /// trusted at the next start.
    fn may_commit(&mut self, name: &TableName) -> bool {
        let Some(table) = self.tables.get(name) else { return false };
        let generation = table.generation();
        let recorded = self.record.known.tables.get(name);
        let known = recorded.is_some_and(|e| e.phase != Phase::NeedsSnapshot || e.generation <= generation);
        let crowded = self.is_crowded(name);
        if crowded {
            self.mark("waits-for-record");
        }
        (known || planted!(self.config, ReaddedTableTrusted)) && !crowded && !self.superseded
    }

    fn begin_flight(&mut self, name: &TableName) {
        if self.is_unclaimed(name) {
            self.prepend_claim(name);
        }
        let incarnation = self.incarnation;
        let runs_max = self.config.ancestor_runs_max;
        let identity = self.log.identity.clone();
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(point) = table.closed.pop_front() else { return };
        let stored = table.stored.as_ref();
        let claim = point.kind == Kind::Claim;
        // A commit id names data: a claim changes none and keeps the one it found.
        let commit = match (claim, stored) {
            (true, Some(found)) => found.commit,
            (true, None) => CommitId { incarnation, number: 0 },
            (false, _) => {
                table.commits += 1;
                CommitId { incarnation, number: table.commits }
            }
        };
        let mut ancestors = stored.map(|s| s.ancestors.clone()).unwrap_or_default();
        if let (false, Some(found)) = (claim, stored) {
            ancestors.push(found.commit);
            ancestors = ancestors.bounded(runs_max);
        }
        let new = TableState {
            format: FORMAT,
            identity: only_streams_of(&identity, &point.cut, stored),
            cut: point.cut.clone(),
            incarnation,
            commit,
            ancestors,
            sequence: point.last_sequence,
            generation: stored.map_or(0, |s| s.generation),
            base: stored.map_or_else(|| point.before.clone(), |s| s.base.clone()),
            begun: point.begun.or(stored.map(|s| s.begun)).unwrap_or_default(),
            tiling: stored.map(|s| s.tiling.clone()).unwrap_or_default(),
            in_doubt: stored.map(|s| s.in_doubt.clone()).unwrap_or_default(),
            ahead: stored.map(|s| s.ahead.clone()).unwrap_or_default(),
            schema: point.schema.clone().or_else(|| table.schema.clone()),
        };
        let command = CommandId { incarnation, number: 0 };
        let (attempt, written, retry, ever_unknown) = (None, false, None, false);
        let step = Step::Write;
        table.flight = Some(Flight { point, new, step, command, attempt, written, retry, ever_unknown });
        self.issue(name, Step::Write);
    }

    /// On a sink whose state write is not compare-and-set an older life's state can land at any time: this life writes its
    /// incarnation into every table first, with the cut that it found (rule R3).
    fn prepend_claim(&mut self, name: &TableName) {
        self.mark("claim");
        let Some(table) = self.tables.get_mut(name) else { return };
        let (cut, last_sequence) = table.stored.as_ref().map_or_else(Default::default, |s| (s.cut.clone(), s.sequence));
        let claim = Checkpoint { cut, last_sequence, kind: Kind::Claim, ..Checkpoint::default() };
        table.closed.push_front(claim);
    }

    /// A table that joins without rows stores its base before anything relies on it.
    pub(crate) fn store_base(&mut self, name: &TableName) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let (cut, before) = (table.taken.clone(), table.taken.upto().clone());
        table.closed.push_back(Checkpoint { cut, before, kind: Kind::Join, ..Checkpoint::default() });
    }

    pub(crate) fn is_unclaimed(&self, name: &TableName) -> bool {
        let after_data = self.config.tables.get(name).is_some_and(|t| !t.state_with_data);
        let claimed = self.tables.get(name).and_then(|t| t.stored.as_ref()).is_some_and(|s| s.incarnation == self.incarnation);
        after_data && !claimed && !planted!(self.config, NoClaim)
    }

    /// Asks for a step of the flight.
    fn issue(&mut self, name: &TableName, step: Step) {
        let id = self.next_id();
        let incarnation = self.incarnation;
        let versions_of = if planted!(self.config, VersionWithoutIncarnation) { Incarnation(0) } else { incarnation };
        self.next_attempt += 1;
        let next_attempt = AttemptId { incarnation, number: self.next_attempt };
        let Some(table) = self.tables.get_mut(name) else { return };
        let token = table.token.clone();
        let Some(flight) = &mut table.flight else { return };
        let step = if step == Step::Write && (flight.written || flight.point.rows.is_empty()) { Step::Commit } else { step };
        flight.step = step;
        flight.command = id;
        // A step that is asked for again keeps its history of failures until it succeeds.
        let retry = flight.retry.take();
        flight.retry = None;
        let table_name = name.clone();
        let output = match step {
            Step::Write => {
                flight.attempt = Some(next_attempt);
                let part = Part { table: table_name, checkpoint: flight.point.number, slot: Slot(0) };
                let first_version = Version::new(versions_of, flight.point.first_sequence);
                Output::Send(ToWorker::Write { attempt: next_attempt, part, rows: flight.point.rows.clone(), first_version })
            }
            Step::Commit => Output::Commit {
                id,
                table: table_name,
                token,
                state: Box::new(flight.new.clone()),
                staged: flight.attempt.into_iter().collect(),
                truncate_first: flight.point.truncate_first,
            },
            Step::Resolve => {
                Output::Resolve { id, table: table_name, commit: flight.new.commit, incarnation: flight.new.incarnation }
            }
            Step::Validate => Output::ReadPipelineState { id },
        };
        table.last_failure = retry;
        self.push(output);
        if step == Step::Commit
            && let Some(table) = self.tables.get_mut(name)
        {
            table.committing = Some(id);
        }
    }

    /// The step did not happen, or nobody knows: again, later.
    fn again(&mut self, name: &TableName, step: Step, why: String) {
        let (now, retry) = (self.now, self.config.retry);
        let Some(table) = self.tables.get_mut(name) else { return };
        let backoff = Backoff::after(table.last_failure.take(), now, &retry);
        table.why = Some(why);
        if let Some(flight) = &mut table.flight {
            flight.step = step;
            flight.retry = Some(backoff);
        }
        self.mark("tried-again");
    }

    /// The table whose running step this command is.
    fn table_of(&self, id: CommandId) -> Option<TableName> {
        let flies = |t: &super::Table| t.flight.as_ref().is_some_and(|f| f.command == id && f.retry.is_none());
        self.tables.iter().find(|(_, t)| flies(t)).map(|(name, _)| name.clone())
    }

    // ---- written

    pub(crate) fn written(&mut self, attempt: AttemptId, outcome: WriteOutcome) {
        let present = |t: &super::Table| {
            let flies = |f: &Flight| f.attempt == Some(attempt) && f.step == Step::Write && f.retry.is_none();
            t.flight.as_ref().is_some_and(flies)
        };
        let Some(name) = self.tables.iter().find(|(_, t)| present(t)).map(|(name, _)| name.clone()) else {
            return self.stale_answer();
        };
        match outcome {
            WriteOutcome::Written => {
                let Some(flight) = self.tables.get_mut(&name).and_then(|t| t.flight.as_mut()) else { return };
                flight.written = true;
                flight.point.bytes = 0;
                let rows = core::mem::take(&mut flight.point.rows);
                self.give_back(&rows);
                self.issue(&name, Step::Commit);
            }
            WriteOutcome::Rejected { why } => self.halt(&name, why),
            WriteOutcome::Transient { why } => {
                self.push(Output::Send(ToWorker::Abandon { attempt }));
                self.again(&name, Step::Write, why);
            }
        }
    }

    /// Written rows are needed no more (rule O9).
    fn give_back(&mut self, rows: &[RowRange]) {
        for range in rows {
            if !planted!(self.config, BatchNotReleased) {
                self.budget.pass_over(range);
            }
            if planted!(self.config, BudgetReleasedTwice) {
                self.budget.release_again(1);
            }
        }
    }

    // ---- committed

    pub(crate) fn committed(&mut self, id: CommandId, name: &TableName, outcome: CommitOutcome) {
        let Some(table) = self.tables.get_mut(name) else { return self.stale_answer() };
        let awaited = table.committing == Some(id);
        let flies = table.flight.as_ref().is_some_and(|f| f.step == Step::Commit && f.retry.is_none());
        let accepted = awaited || (flies && planted!(self.config, StaleAnswersAccepted));
        if !accepted {
            return self.stale_answer();
        }
        if id.incarnation != self.incarnation || !awaited {
            let dump = format!("{name}: {id:?} answers in life {}", self.incarnation);
            return self.violate("stale-incarnation-has-no-effect", dump);
        }
        table.committing = None;
        if self.table_of(id).as_ref() != Some(name) {
            return self.stale_answer();
        }
        match outcome {
            CommitOutcome::Durable { token } => self.durable(name, token),
            CommitOutcome::Conflict { found, token } => self.conflict(name, found.map(|s| *s), token),
            CommitOutcome::Unknown { why } => self.commit_unknown(name, why),
            CommitOutcome::Superseded => self.supersede(self.incarnation.next()),
            CommitOutcome::Rejected { why } => self.halt(name, why),
            CommitOutcome::Transient { why } => self.again(name, Step::Commit, why),
        }
    }

    /// It may have happened, it may happen yet. The same commit id with the same token again, or a look for it.
    fn commit_unknown(&mut self, name: &TableName, why: String) {
        self.mark("commit-unknown");
        let with_data = self.config.tables.get(name).is_some_and(|t| t.state_with_data);
        if planted!(self.config, UnknownDropsStaged) {
            self.drop_staged(name);
            return self.again(name, Step::Commit, why);
        }
        let Some(table) = self.tables.get_mut(name) else { return };
        let next_number = table.commits + 1;
        let Some(flight) = &mut table.flight else { return };
        if planted!(self.config, UnknownRetriedUnderNewId) {
            flight.new.commit.number = next_number;
            table.commits = next_number;
            return self.again(name, Step::Commit, why);
        }
        flight.ever_unknown = true;
        // Where a state write is idempotent there is nothing to look up.
        self.again(name, if with_data { Step::Resolve } else { Step::Commit }, why);
    }

    pub(crate) fn resolved(&mut self, id: CommandId, name: &TableName, found: bool, token: Token) {
        if self.table_of(id).as_ref() != Some(name) {
            return self.stale_answer();
        }
        if found {
            self.mark("resolved-durable");
            self.durable(name, token)
        } else {
            self.mark("resolved-absent");
            self.issue(name, Step::Commit);
        }
    }

    fn conflict(&mut self, name: &TableName, found: Option<TableState>, token: Token) {
        let blind = planted!(self.config, ConflictRetriedBlindly);
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(flight) = &table.flight else { return };
        let (ours, unknown) = (flight.new.commit, flight.ever_unknown);
        let expected = table.stored.as_ref().map(|s| (s.incarnation, s.commit));
        table.token = token.clone();
        if let Some(newer) = found.as_ref().map(|s| s.incarnation).filter(|i| *i > self.incarnation) {
            return self.supersede(newer);
        }
        // A claim shares its commit id with the state that it claims: both must be ours.
        if found.as_ref().is_some_and(|s| s.commit == ours && s.incarnation == self.incarnation) {
            self.mark(if unknown { "conflict-after-unknown-is-ours" } else { "conflict-is-ours" });
            return self.durable(name, token);
        }
        if found.as_ref().map(|s| (s.incarnation, s.commit)) == expected || blind {
            self.mark("conflict-foreign");
            // A rollback may have hidden the state of a newer life: the record is asked before anything is published.
            let asks = !blind && !planted!(self.config, RetryWithoutValidation);
            return self.issue(name, if asks { Step::Validate } else { Step::Commit });
        }
        // An older life's commit, or an older commit of ours that somebody restored: what we hold was netted upon another base.
        let restored = found.as_ref().is_none_or(|s| s.incarnation == self.incarnation);
        self.mark(if restored { "set-back-by-rollback" } else { "set-back-by-older-life" });
        self.set_back(name, found);
    }

    /// The table stands where the sink says. All that is not durable is given up and read again.
    fn set_back(&mut self, name: &TableName, found: Option<TableState>) {
        self.give_up(name);
        if let Some(table) = self.tables.get_mut(name) {
            table.schema = found.as_ref().and_then(|s| s.schema.clone());
            table.stored = found;
        }
        let phase = self.tables.get(name).map(|t| t.phase);
        self.start_table(name);
        if let (Some(was @ (Phase::Paused | Phase::Halted)), Some(table)) = (phase, self.tables.get_mut(name))
            && table.phase == Phase::Streaming
        {
            table.phase = was;
            self.want(name, was);
        }
        self.go_back();
    }

    /// The record was read for a flight: is this life still the newest?
    pub(crate) fn validated(&mut self, id: CommandId, state: Option<PipelineState>) {
        let Some(name) = self.table_of(id) else { return self.stale_answer() };
        let newest = state.map_or(Incarnation(0), |s| s.incarnation);
        if newest > self.incarnation {
            return self.supersede(newest);
        }
        self.issue(&name, Step::Commit);
    }

    pub(crate) fn flight_failed(&mut self, id: CommandId, why: String) {
        let Some(name) = self.table_of(id) else { return self.stale_answer() };
        let Some(step) = self.tables.get(&name).and_then(|t| t.flight.as_ref()).map(|f| f.step) else { return };
        self.again(&name, step, why);
    }

    pub(crate) fn flight_refused(&mut self, id: CommandId, why: String) {
        match self.table_of(id) {
            Some(name) => self.halt(&name, why),
            None => self.stale_answer(),
        }
    }

    fn durable(&mut self, name: &TableName, token: Token) {
        let (quiet, incarnation) = (self.record.known.quiet.clone(), self.incarnation);
        let recent_max = self.config.recent_commits_max;
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(flight) = table.flight.take() else { return };
        table.token = token;
        table.why = None;
        table.last_failure = None;
        table.committing = None;
        if flight.point.kind != Kind::Claim {
            table.recent.push_back(Recent { commit: flight.new.commit, before: flight.point.before.clone() });
            table.durable_commits += 1;
            table.durable_rows += flight.point.taken;
        }
        // Of those that the quiet position has passed only the newest can still be named.
        while table.recent.len() > 1
            && (!table.recent.get(1).is_some_and(|r| r.before.contains(&quiet)) || table.recent.len() > recent_max)
        {
            table.recent.pop_front();
        }
        let joined = flight.point.kind == Kind::Join;
        table.stored = Some(flight.new);
        let discards = !core::mem::replace(&mut table.discarded, true);
        if let Some(attempt) = flight.attempt {
            self.push(Output::ReleaseStaged { table: name.clone(), attempt, delete: false });
        }
        if joined {
            self.want(name, Phase::Streaming);
        }
        // Taking the incarnation is not enough: only our own commit in the table makes an older life's attempts hopeless (C8).
        if discards {
            self.push(Output::DiscardOlder { table: name.clone(), incarnation });
        }
    }

    // ---- giving up and halting

    /// All that is not durable of a table is given up.
    pub(crate) fn give_up(&mut self, name: &TableName) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let open = core::mem::take(&mut table.open);
        let closed = core::mem::take(&mut table.closed);
        let flying = table.flight.as_ref().map(|f| f.point.rows.clone()).unwrap_or_default();
        let given_up: Vec<RowRange> =
            open.rows.into_iter().chain(closed.into_iter().flat_map(|c| c.rows)).chain(flying).collect();
        for rows in given_up {
            self.budget.pass_over(&rows);
        }
        self.drop_staged(name);
        if let Some(table) = self.tables.get_mut(name) {
            table.flight = None;
            table.last_failure = None;
        }
    }

    /// What the flight's attempt staged is deleted, unless it may have been published.
    fn drop_staged(&mut self, name: &TableName) {
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
    fn halt(&mut self, name: &TableName, why: String) {
        self.mark("halted-by-sink");
        let released = self.wants_snapshot(name) && !planted!(self.config, HaltUndoesRelease);
        let Some(table) = self.tables.get(name) else { return };
        // What is known in memory counts, too: a record that is being stored may already rely on it.
        let stand = effective(&self.config, &self.record.known, name, table.stored.as_ref()).join(&Cut::at(table.complete()));
        self.give_up(name);
        let floor = self.log.floor.clone();
        let now = self.now;
        if !stand.upto().contains(&floor) {
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
        }
        self.say_halted(name, why, None);
        self.want(name, if released { Phase::NeedsSnapshot } else { Phase::Halted });
    }

    /// The table stops in front of an event; what was taken before it is committed.
    pub(crate) fn halt_in_front(&mut self, name: &TableName, why: String, at: Option<(Transaction, Coordinate)>) {
        if let Some(table) = self.tables.get_mut(name) {
            table.phase = Phase::Halted;
        }
        self.say_halted(name, why, at);
        self.want(name, Phase::Halted);
    }

    fn say_halted(&mut self, name: &TableName, why: String, at: Option<(Transaction, Coordinate)>) {
        if let Some(table) = self.tables.get_mut(name) {
            table.why = Some(why.clone());
        }
        self.push(Output::HaltTable { table: name.clone(), why, at });
        if self.config.tables.get(name).is_some_and(|t| t.on_error == OnError::Stop) {
            self.drain.begin(StopReason::TableHalted { table: name.clone() });
        }
    }
}

/// A state names only the streams that its cut is of.
fn only_streams_of(identity: &LogIdentity, cut: &Cut, stored: Option<&TableState>) -> LogIdentity {
    let before = stored.map(|s| &s.identity.streams);
    let names = cut.upto().streams().map(|(stream, _)| stream).chain(cut.within().keys().map(|t| &t.stream));
    let known = |stream| identity.streams.get(stream).or_else(|| before.and_then(|b| b.get(stream)));
    LogIdentity {
        streams: names.filter_map(|stream| known(stream).map(|i| (stream.clone(), i.clone()))).collect(),
        coordinates: identity.coordinates.clone(),
    }
}
