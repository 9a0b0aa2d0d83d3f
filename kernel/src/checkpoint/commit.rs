//! From closed to durable: written by a worker, committed by the sink, and what each outcome means (rules C4 to C9).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Checkpoint, Flight, Kind, Recent, Step, Table, only_streams_of};
use crate::absent::ahead_after;
use crate::config::Join;
use crate::coordinator::{Coordinator, Output, RowRange, StopReason, ToWorker, forged_state};
use crate::flow::Backoff;
use crate::id::{AttemptId, CommandId, CommitId, Incarnation, Part, Slot, TableName, Token, Version};
use crate::outcome::{CommitOutcome, WriteOutcome};
use crate::planted::planted;
use crate::position::{LogIdentity, Position};
use crate::state::{Ancestors, FORMAT, Phase, PipelineState, TableState};

impl Coordinator {
    /// Moves every table's flight on, and begins the next where none is.
    pub(crate) fn fly(&mut self) {
        for name in self.names() {
            self.retry_flight(&name);
            let Some(table) = self.tables.get(&name) else { continue };
            let overlaps = |f: &Flight| f.step == Step::Commit && f.retry.is_none();
            let second = planted!(self.config, TwoCommitsInFlight) && table.flight.as_ref().is_some_and(overlaps);
            // One that was given up while its commit ran is answered first.
            let free = (table.flight.is_none() && table.committing.is_none()) || second;
            let unclaimed = self.is_unclaimed(&name);
            // What lacks values waits for them (rule H4).
            let lacks = table.closed.front().is_some_and(|c| c.absent.lacks());
            if free && ((!table.closed.is_empty() && !lacks) || unclaimed) && self.may_commit(&name, unclaimed) {
                self.begin_flight(&name);
            }
        }
    }

    fn retry_flight(&mut self, name: &TableName) {
        let Some(table) = self.tables.get(name) else { return };
        let Some((Some(retry), step)) = table.flight.as_ref().map(|flight| (flight.retry, flight.step)) else { return };
        let failing = Backoff { since: table.begins_in_vain.unwrap_or(retry.since), ..retry };
        if failing.is_hopeless(self.now, &self.config.retry) {
            let why = table.flight.as_ref().and_then(|flight| flight.why.clone()).unwrap_or_default();
            return self.stop(StopReason::Unreachable { why: format!("table {name}: {why}") });
        }
        if retry.at <= self.now {
            self.issue(name, step);
        }
    }

    /// Nothing of a table is written before the stored record knows the table: a state that no record names would not be
    /// trusted at the next start. A claim is written also for a table that needs a snapshot: it holds the quiet position
    /// until then, and no older life's state may come after it.
    fn may_commit(&mut self, name: &TableName, claim: bool) -> bool {
        let Some(table) = self.tables.get(name) else { return false };
        let generation = table.generation();
        let recorded = self.record.known.tables.get(name);
        // The beginning of the wanted generation is what ends the need of it.
        let begins = |c: &Checkpoint| if let Kind::Begin(generation) = c.kind { Some(generation) } else { None };
        let generation = table.closed.front().and_then(begins).unwrap_or(generation);
        let known = recorded.is_some_and(|e| claim || e.phase != Phase::NeedsSnapshot || e.generation <= generation);
        let crowded = !claim && self.is_crowded(name);
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
        // A table that begins in this life holds nothing of what an older life wrote and never finished.
        let first_version = Version::new(incarnation, 0);
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(point) = table.closed.pop_front() else { return };
        let ahead = ahead_after(&self.config, table.stored.as_ref(), &point);
        let mut new = match &table.stored {
            before if matches!(point.kind, Kind::Begin(_)) => {
                table.commits += 1;
                let commit = CommitId { incarnation, number: table.commits };
                first_of_generation(&self.log.identity, &point, before.as_ref(), commit, runs_max)
            }
            // A commit id names data: a claim changes none and keeps the one that it found, and all the rest.
            Some(found) if point.kind == Kind::Claim && planted!(self.config, ClaimTakesNewId) => {
                table.commits += 1;
                TableState { incarnation, commit: CommitId { incarnation, number: table.commits }, ..found.clone() }
            }
            Some(found) if point.kind == Kind::Claim => TableState { format: FORMAT, incarnation, ..found.clone() },
            Some(found) => {
                table.commits += 1;
                let mut ancestors = found.ancestors.clone();
                ancestors.push(found.commit);
                TableState {
                    format: FORMAT,
                    identity: only_streams_of(&self.log.identity, &point, Some(found)),
                    cut: point.cut.clone(),
                    incarnation,
                    commit: CommitId { incarnation, number: table.commits },
                    ancestors: ancestors.bounded(runs_max),
                    sequence: point.last_sequence,
                    // A blank state is a claim of a table that had not begun.
                    base: if found.commit.number == 0 { point.before.clone() } else { found.base.clone() },
                    begun: point.begun.unwrap_or(if found.commit.number == 0 { first_version } else { found.begun }),
                    ahead,
                    schema: point.schema.clone(),
                    ..found.clone()
                }
            }
            None => {
                if point.kind != Kind::Claim {
                    table.commits += 1;
                }
                TableState {
                    format: FORMAT,
                    identity: only_streams_of(&self.log.identity, &point, None),
                    cut: point.cut.clone(),
                    incarnation,
                    commit: CommitId { incarnation, number: if point.kind == Kind::Claim { 0 } else { table.commits } },
                    ancestors: Ancestors::default(),
                    sequence: point.last_sequence,
                    generation: 0,
                    base: point.before.clone(),
                    begun: point.begun.unwrap_or(if point.kind == Kind::Claim { Version::default() } else { first_version }),
                    tiling: Vec::new(),
                    in_doubt: Vec::new(),
                    ahead,
                    schema: point.schema.clone(),
                }
            }
        };
        if let Some(progress) = &point.progress {
            new.tiling.clone_from(&progress.tiling);
            new.in_doubt = progress.in_doubt.iter().map(|name| String::from(name.as_str())).collect();
            if planted!(self.config, DoubtNotStored) && !matches!(point.kind, Kind::Begin(_)) {
                new.in_doubt.clear();
            }
        }
        let command = CommandId { incarnation, number: 0 };
        let used_up = point.last_sequence > Version::SEQUENCE_MAX;
        let (attempt, written, retry, why, ever_unknown, validated, found) = (None, false, None, None, false, false, None);
        let (step, since) = (Step::Write, self.now);
        table.flight =
            Some(Flight { point, new, step, command, attempt, written, retry, why, ever_unknown, validated, found, since });
        if used_up {
            // Versions that began at zero again would lose against this life's older ones.
            let why = format!(
                "this life has numbered {} rows of the table, and versions go no further: start the pipeline again, then resume the table",
                Version::SEQUENCE_MAX
            );
            return self.halt(name, why);
        }
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

    /// Where a table without rows stands becomes its first state.
    fn store_base(&mut self, name: &TableName) {
        let (coordinates, server) = (self.log.identity.coordinates.clone(), self.log.server);
        let Some(table) = self.tables.get_mut(name) else { return };
        let (cut, before, schema) = (table.taken.clone(), table.taken.upto().clone(), table.schema.clone());
        table.closed.push_back(Checkpoint {
            cut,
            before,
            schema,
            coordinates,
            server,
            kind: Kind::Base,
            ..Checkpoint::default()
        });
    }

    /// A table that has had no row yet has no state that the record could name, so it would hold the acknowledgement for ever.
    /// After a while, and at the end of a run, it stores where it stands.
    pub(crate) fn store_missing_bases(&mut self) {
        for name in self.names() {
            let due = self.drain.is_closing() || self.tables.get(&name).is_some_and(|t| t.base_due <= self.now);
            if due && self.lacks_base(&name) {
                self.mark("stored-a-base");
                self.store_base(&name);
            }
        }
    }

    /// Has it taken something, all of it without an effect, and no state that says so?
    pub(crate) fn lacks_base(&self, name: &TableName) -> bool {
        let Some(table) = self.tables.get(name) else { return false };
        let idle = table.is_settled() && table.taken.is_whole() && *table.taken.upto() != Position::START;
        let unknown = table.stored.is_none() || (table.is_blank() && self.begins_now(name));
        table.is_member() && idle && unknown && !self.is_unclaimed(name) && !table.wants_generation && table.snapshot.is_none()
    }

    /// Does it begin, when nothing is stored of it, where the log ends?
    pub(crate) fn begins_now(&self, name: &TableName) -> bool {
        self.config.tables.get(name).is_some_and(|t| t.join == Join::Now)
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
        let now = self.now;
        let validates = self.validates_sweep(name);
        let Some(table) = self.tables.get_mut(name) else { return };
        let token = table.token.clone();
        let Some(flight) = &mut table.flight else { return };
        let state_first = planted!(self.config, StateBeforeData) && flight.attempt.is_none();
        let nothing = flight.written || flight.point.rows.is_empty() || state_first;
        let step = if step == Step::Write && nothing { Step::Commit } else { step };
        let step = if step == Step::Commit && validates { Step::Validate } else { step };
        flight.step = step;
        flight.command = id;
        flight.since = now;
        // A step that is asked for again keeps its history of failures until it succeeds.
        let retry = flight.retry.take();
        flight.retry = None;
        let table_name = name.clone();
        let output = match step {
            Step::Write => {
                flight.attempt = Some(next_attempt);
                let part = Part { table: table_name, checkpoint: flight.point.number, slot: Slot(0) };
                let first_version = Version::new(versions_of, flight.point.first_sequence);
                let (rows, fills) = (flight.point.rows.clone(), flight.point.absent.fills());
                Output::Send(ToWorker::Write { attempt: next_attempt, part, rows, first_version, fills })
            }
            Step::Commit => Output::Commit {
                id,
                table: table_name,
                token,
                state: Box::new(flight.new.clone()),
                staged: flight.attempt.into_iter().collect(),
                truncate_first: flight.point.truncate_first,
                sweep: flight.point.sweeps() && !planted!(self.config, NoSweep),
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

    /// Where the state write is not compare-and-set nothing but the record tells a life that it is stale, and what a stale one
    /// removes a newer one may need: a newer one may have claimed the older generation. But if none had begun once every range was
    /// durable, the next one that begins finds that state.
    fn validates_sweep(&self, name: &TableName) -> bool {
        let compares = self.config.tables.get(name).is_none_or(|t| t.state_with_data);
        let flight = self.tables.get(name).and_then(|t| t.flight.as_ref());
        !compares && flight.is_some_and(|f| f.point.sweeps() && !f.validated) && !planted!(self.config, SweepByStaleLife)
    }

    /// The step did not happen, or nobody knows: again, later.
    fn again(&mut self, name: &TableName, step: Step, why: String) {
        let (now, retry) = (self.now, self.config.retry);
        let Some(table) = self.tables.get_mut(name) else { return };
        let backoff = Backoff::after(table.last_failure.take(), now, &retry);
        let mut sweeps = false;
        if let Some(flight) = &mut table.flight {
            (flight.step, flight.retry, flight.why) = (step, Some(backoff), Some(why));
            sweeps = flight.point.sweeps();
        }
        if sweeps && step == Step::Commit {
            self.mark("sweep-repeated");
        }
        self.mark("tried-again");
    }

    /// The table whose running step this command is.
    fn table_of(&self, id: CommandId) -> Option<TableName> {
        let flies = |t: &Table| t.flight.as_ref().is_some_and(|f| f.command == id && f.retry.is_none());
        self.tables.iter().find(|(_, t)| flies(t)).map(|(name, _)| name.clone())
    }

    pub(crate) fn written(&mut self, attempt: AttemptId, outcome: WriteOutcome) {
        let present = |t: &Table| {
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
                let mut rows = core::mem::take(&mut flight.point.rows);
                rows.extend(flight.point.absent.give_rows());
                self.give_back(&rows);
                if planted!(self.config, StateBeforeData) {
                    let token = self.tables.get(&name).map(|t| t.token.clone()).unwrap_or_else(|| Token::from(""));
                    return self.durable(&name, token);
                }
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
            CommitOutcome::Durable { token } if self.writes_after_state(name) => {
                if let Some(table) = self.tables.get_mut(name) {
                    table.token = token;
                }
                self.attempt_after_state(name);
            }
            CommitOutcome::Durable { token } => self.durable(name, token),
            CommitOutcome::Conflict { found, token } => self.conflict(name, found.map(|s| *s), token),
            CommitOutcome::Unknown { why } => self.commit_unknown(name, why),
            CommitOutcome::Superseded => self.supersede(self.incarnation.next().unwrap_or(self.incarnation)),
            CommitOutcome::Rejected { why } => self.halt(name, why),
            CommitOutcome::Transient { why } => self.again(name, Step::Commit, why),
        }
    }

    /// A planted bug: the state is written, the data is not.
    fn writes_after_state(&self, name: &TableName) -> bool {
        let flight = self.tables.get(name).and_then(|t| t.flight.as_ref());
        planted!(self.config, StateBeforeData) && flight.is_some_and(|f| f.attempt.is_none() && !f.point.rows.is_empty())
    }

    /// A planted bug, continued: now the data.
    fn attempt_after_state(&mut self, name: &TableName) {
        self.next_attempt += 1;
        let attempt = AttemptId { incarnation: self.incarnation, number: self.next_attempt };
        if let Some(flight) = self.tables.get_mut(name).and_then(|t| t.flight.as_mut()) {
            flight.attempt = Some(attempt);
        }
        self.issue(name, Step::Write);
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
        if !found {
            self.mark("resolved-absent");
            return self.issue(name, Step::Commit);
        }
        // The token is the table's present one. A newer life may have committed upon ours already: then it must not be used.
        self.mark("resolved-durable");
        if let Some(flight) = self.tables.get_mut(name).and_then(|t| t.flight.as_mut()) {
            flight.found = Some(token);
        }
        self.issue(name, Step::Validate);
    }

    fn conflict(&mut self, name: &TableName, found: Option<TableState>, token: Token) {
        // The token stays as it is, so that nothing is ever committed upon it.
        if let Some(what) = found.as_ref().and_then(TableState::impossible) {
            return self.halt(name, forged_state(&what));
        }
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
        if let Some(state) = &found {
            // Another life read the log further than it reached when this one opened it.
            self.log.known_end.join_with(state.cut.upto());
        }
        let Some(table) = self.tables.get_mut(name) else { return };
        table.schema = found.as_ref().and_then(|s| s.schema.clone());
        table.stored = found;
        let phase = table.phase;
        self.stand_at_stored(name, phase);
        self.go_back();
    }

    /// The record was read for a flight: is this life still the newest?
    pub(crate) fn validated(&mut self, id: CommandId, state: Option<PipelineState>) {
        let Some(name) = self.table_of(id) else { return self.stale_answer() };
        let newest = state.map_or(Incarnation(0), |s| s.incarnation);
        if newest > self.incarnation {
            return self.supersede(newest);
        }
        self.is_proven_newest();
        if let Some(flight) = self.tables.get_mut(&name).and_then(|t| t.flight.as_mut()) {
            flight.validated = true;
        }
        match self.tables.get_mut(&name).and_then(|t| t.flight.as_mut()).and_then(|f| f.found.take()) {
            Some(token) => self.durable(&name, token),
            None => self.issue(&name, Step::Commit),
        }
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
        if table.follows() {
            table.why = None;
        }
        table.last_failure = None;
        table.begins_in_vain = None;
        table.committing = None;
        let begins = matches!(flight.point.kind, Kind::Begin(_));
        if begins {
            // An older generation's commits are none that this one is built upon.
            table.recent.clear();
        }
        if flight.point.kind != Kind::Claim || table.recent.is_empty() {
            table.recent.push_back(Recent {
                commit: flight.new.commit,
                before: flight.point.before.clone(),
                logged: flight.point.is_of_log(),
            });
        }
        if flight.point.kind != Kind::Claim {
            table.durable_commits += 1;
            table.durable_rows += flight.point.taken;
        }
        // Of those that the quiet position has passed only the newest can still be named.
        while table.recent.len() > 1
            && (table.recent.get(1).is_some_and(|r| r.logged && !r.before.contains(&quiet)) || table.recent.len() > recent_max)
        {
            table.recent.pop_front();
        }
        let joined = flight.point.kind == Kind::Base && table.phase == Phase::Streaming;
        if let (Some(snapshot), false) = (&mut table.snapshot, begins) {
            snapshot.stored(&flight.new);
        }
        let streams = flight.point.sweeps();
        let state = flight.new.clone();
        table.stored = Some(flight.new);
        if flight.point.kind != Kind::Claim {
            table.stored_by = flight.point.server;
        }
        let discards = !core::mem::replace(&mut table.discarded, true);
        if let Some(attempt) = flight.attempt {
            self.push(Output::ReleaseStaged { table: name.clone(), attempt, delete: false });
        }
        if joined {
            self.want(name, Phase::Streaming);
        }
        if begins {
            self.generation_begun(name, &state);
        }
        if streams {
            self.snapshot_ended(name);
        }
        // Taking the incarnation is not enough: only our own commit in the table makes an older life's attempts hopeless (C8).
        if discards {
            self.push(Output::DiscardOlder { table: name.clone(), incarnation });
        }
    }
}

/// The state that a generation begins with (rule G1). Where the older one's cut was whole and the base is its stand, no row of the
/// table lies between: what a record says of the older one's commits is true of this one, and a life that does not know the newest
/// record must not take that back.
fn first_of_generation(
    log: &LogIdentity,
    point: &Checkpoint,
    before: Option<&TableState>,
    commit: CommitId,
    runs_max: usize,
) -> TableState {
    let mut ancestors = Ancestors::default();
    if let Some(before) = before.filter(|b| point.built_upon && b.cut.is_whole()) {
        ancestors = before.ancestors.clone();
        ancestors.push(before.commit);
    }
    let generation = if let Kind::Begin(generation) = point.kind { generation } else { 0 };
    TableState {
        format: FORMAT,
        identity: only_streams_of(log, point, before),
        cut: point.cut.clone(),
        incarnation: commit.incarnation,
        commit,
        ancestors: ancestors.bounded(runs_max),
        sequence: point.last_sequence,
        generation,
        base: point.before.clone(),
        begun: point.begun.unwrap_or_default(),
        tiling: Vec::new(),
        in_doubt: Vec::new(),
        ahead: Position::START,
        schema: point.schema.clone(),
    }
}
