//! The world outside a process: source, sinks, pipeline record. A command lands here at one moment, is judged, and is answered.

mod hands;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fault_scenarios::{Command as Name, Dice, EmptyTransactions, Small, Then};
use kernel::coordinator::{Input, Output};
use kernel::id::{Incarnation, Token};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::Position;
use kernel::state::{Phase, PipelineState, TableState};
use kernel::worker::WorkerInput;

use crate::history::{History, Tab, Value};
use crate::oracle::durability::{self, Smeared};
use crate::oracle::{Verdict, View, Violation, outcomes, starting};
use crate::plan::Plan;
use crate::process::{Command, Mail, Process};
use crate::sinks::{Commit, Landed, Staging, Target, Versioned};
use crate::source::Source;

/// Everything that outlives a process.
#[derive(Debug)]
pub struct World {
    /// The log.
    pub history: Rc<History>,
    /// What the seed decided.
    pub plan: Rc<Plan>,
    /// The source.
    pub source: Source,
    /// The pipeline record.
    pub record: Option<PipelineState>,
    record_writes: u64,
    /// The tables at their sinks.
    pub targets: Vec<Target>,
    /// Tables whose sink can't be reached.
    pub away: BTreeSet<Tab>,
    /// The sinks refuse some values.
    pub rejects: bool,
    /// Faults happen.
    pub unsteady: bool,
    /// What the oracle remembers.
    pub memory: Memory,
    dice: Rc<Dice>,
    /// Now.
    pub now: u64,
}

/// What the oracle remembers from one moment to the next.
#[derive(Debug, Default)]
pub struct Memory {
    /// The first broken rule.
    pub violation: Option<Violation>,
    /// Which process lives which life.
    pub incarnations: BTreeMap<Incarnation, usize>,
    /// When the newest life was taken.
    pub taken_at: u64,
    /// Where each table's copy begins.
    pub bases: Vec<Option<Position>>,
    /// Where the log ended when somebody opened it.
    pub ends_told: Vec<Position>,
    /// Transactions that are read again under another numbering.
    pub smeared: Vec<Smeared>,
    /// A foreign hand set the table back, and nothing was committed since.
    pub rolled: Vec<bool>,
    /// What a life could know to be durable before that: its acknowledgement may be on the way still.
    pub rolled_over: Vec<Position>,
    /// A foreign hand ever did.
    pub ever_rolled: Vec<bool>,
    /// A person or the time released the table, or it began without a base: that it needs a snapshot is right.
    pub excused: Vec<bool>,
    /// Where each table's copy really stood, when that was looked at last.
    pub effective: Vec<Option<Position>>,
    /// The lives that have committed to each table.
    pub committed: Vec<BTreeSet<Incarnation>>,
    /// How often things happened.
    pub counts: BTreeMap<&'static str, u64>,
}

/// What the small choices about a command are rolled by.
pub fn key(name: &Name) -> [u64; 4] {
    [name.process as u64, name.what as u64, name.table.map_or(0, |t| t as u64 + 1), u64::from(name.nth)]
}

impl World {
    /// The world before anything happens.
    pub fn new(plan: Rc<Plan>, dice: Rc<Dice>) -> Self {
        let history = Rc::new(plan.history.clone());
        let target = |staging: bool| {
            if staging { Target::Staging(Staging::default()) } else { Target::Versioned(Versioned::default()) }
        };
        let tables = plan.tables.len();
        let memory = Memory {
            bases: vec![None; tables],
            smeared: vec![Smeared::new(); tables],
            rolled: vec![false; tables],
            rolled_over: vec![Position::START; tables],
            ever_rolled: vec![false; tables],
            excused: plan.tables.iter().map(|t| t.join == kernel::config::Join::Snapshot).collect(),
            effective: vec![None; tables],
            committed: vec![BTreeSet::new(); tables],
            ..Memory::default()
        };
        Self {
            source: Source::new(history.clone(), plan.source.clone(), dice.clone()),
            targets: plan.tables.iter().map(|t| target(t.staging)).collect(),
            rejects: true,
            unsteady: true,
            history,
            plan,
            record: None,
            record_writes: 0,
            away: BTreeSet::new(),
            memory,
            dice,
            now: 0,
        }
    }

    /// Notes what a rule says; the first violation counts.
    pub fn judge(&mut self, rule: &'static str, verdict: Verdict) {
        if let (Err(dump), None) = (verdict, &self.memory.violation) {
            self.memory.violation = Some(Violation { rule, at: self.now, dump });
        }
    }

    /// Counts something.
    pub fn count(&mut self, what: &'static str) {
        *self.memory.counts.entry(what).or_default() += 1;
    }

    /// A table as the oracle sees it.
    pub fn view(&self, table: Tab) -> View<'_> {
        View { history: &self.history, table, plan: &self.plan.tables[table], base: self.memory.bases[table].as_ref() }
    }

    fn entry(&self, table: Tab) -> Option<&kernel::state::TableRecord> {
        self.record.as_ref().and_then(|r| r.tables.get(&self.history.tables[table]))
    }

    fn record_token(&self) -> Token {
        Token::from(format!("r{}", self.record_writes).as_str())
    }

    /// A command lands. What goes wrong with it is taken out of `twist` if it does.
    pub fn land(&mut self, name: &Name, process: &mut Process, command: &Command, twist: &mut Option<Then>) -> Option<Mail> {
        match command {
            Command::Write { attempt, table, netted } => {
                let outcome = self.write(*table, *attempt, netted);
                Some(Mail::Worker(WorkerInput::Wrote { attempt: *attempt, outcome }))
            }
            Command::Coordinator(output) => self.land_output(name, process, output, twist),
        }
    }

    fn land_output(&mut self, name: &Name, process: &mut Process, output: &Output, twist: &mut Option<Then>) -> Option<Mail> {
        let unsteady = self.unsteady;
        let mut goes_wrong = |then: Then| unsteady && twist.take_if(|t| *t == then).is_some();
        let failed = |id| Some(Mail::Fact(Input::Failed { id, why: "no answer".into() }));
        match output {
            Output::ReadPipelineState { id } | Output::RecoverTable { id, .. } | Output::Resolve { id, .. }
                if goes_wrong(Then::Fails) =>
            {
                failed(*id)
            }
            Output::ReadPipelineState { id } => {
                let state = self.record.clone().map(Box::new);
                Some(Mail::Fact(Input::PipelineStateRead { id: *id, state, token: self.record_token() }))
            }
            Output::StorePipelineState { id, expected, new } => {
                let outcome = self.store_record(process, expected, new);
                Some(Mail::Fact(Input::PipelineStateStored { id: *id, outcome }))
            }
            Output::RecoverTable { id, table } => {
                let target = &self.targets[self.history.table(table)?];
                let state = target.state().cloned().map(Box::new);
                Some(Mail::Fact(Input::TableRecovered { id: *id, table: table.clone(), state, token: target.token() }))
            }
            Output::OpenLog { id } => {
                let lies = goes_wrong(Then::Lies);
                match self.source.open(self.now, process.tables.clone(), lies) {
                    Ok(opened) => {
                        self.memory.ends_told.push(opened.end.clone());
                        process.first_end.get_or_insert(opened.end.clone());
                        let (session, identity, floor, end) = (opened.session, opened.identity, opened.floor, opened.end);
                        Some(Mail::Fact(Input::LogOpened { id: *id, session, identity, floor, end }))
                    }
                    Err(failure) => Some(Mail::Fact(Input::LogFailed { id: *id, failure })),
                }
            }
            Output::ReadLog { id, session, restart, bytes_max } => {
                if goes_wrong(Then::LosesTheSession) {
                    let failure = LogFailure::SessionLost { why: "the connection broke".into() };
                    return Some(Mail::Fact(Input::LogFailed { id: *id, failure }));
                }
                match self.source.read(self.now, *session, restart.as_ref(), (*bytes_max / 10).max(1) as usize) {
                    Ok((said, finished)) => Some(Mail::Read { id: *id, said, finished }),
                    Err(failure) => Some(Mail::Fact(Input::LogFailed { id: *id, failure })),
                }
            }
            Output::Commit { id, table, token, state, staged, truncate_first } => {
                let tab = self.history.table(table)?;
                let (state, staged) = ((**state).clone(), staged.clone());
                let commit = Commit { token: token.clone(), state, staged, truncate_first: *truncate_first };
                let outcome = self.commit(name, process, tab, &commit, twist);
                Some(Mail::Fact(Input::Committed { id: *id, table: table.clone(), outcome }))
            }
            Output::Resolve { id, table, commit, incarnation } => match &self.targets[self.history.table(table)?] {
                Target::Staging(target) => {
                    let (found, token) = (target.resolve(*commit, *incarnation), target.token());
                    Some(Mail::Fact(Input::Resolved { id: *id, table: table.clone(), found, token }))
                }
                Target::Versioned(_) => failed(*id),
            },
            Output::ReleaseStaged { table, attempt, delete } => {
                let tab = self.history.table(table)?;
                if let (Target::Staging(target), true) = (&mut self.targets[tab], *delete) {
                    let deleted = target.delete(*attempt);
                    self.judge("staged-kept-while-unknown", outcomes::dropped_was_never_visible(*attempt, !deleted));
                }
                None
            }
            Output::DiscardOlder { table, incarnation } => {
                let tab = self.history.table(table)?;
                if let Target::Staging(target) = &mut self.targets[tab] {
                    target.discard_older(*incarnation);
                    let verdict = starting::only_current_incarnation_deletes(*incarnation, &self.memory.committed[tab]);
                    self.judge("only-current-incarnation-deletes", verdict);
                }
                None
            }
            Output::Acknowledge { session, upto } => {
                self.acknowledge(process, *session, upto);
                None
            }
            _ => None,
        }
    }

    // ---- sinks

    fn refuses(&self, value: Option<Value>) -> bool {
        self.rejects && value.is_some_and(|v| self.plan.refused.contains(&v))
    }

    fn write(&mut self, table: Tab, attempt: kernel::id::AttemptId, netted: &crate::sinks::Netted) -> WriteOutcome {
        if self.away.contains(&table) {
            return WriteOutcome::Transient { why: "the sink is away".into() };
        }
        let values = netted.images.iter().map(|i| i.1).chain(netted.kept.iter().map(|(row, _)| row.value));
        if values.into_iter().any(|value| self.refuses(value)) {
            self.count("rows-rejected");
            return WriteOutcome::Rejected { why: "the sink refuses a value".into() };
        }
        match &mut self.targets[table] {
            Target::Staging(target) => {
                target.staged.insert(attempt, netted.clone());
            }
            Target::Versioned(target) => target.write(attempt, netted),
        }
        WriteOutcome::Written
    }

    fn commit(
        &mut self,
        name: &Name,
        process: &mut Process,
        table: Tab,
        commit: &Commit,
        twist: &mut Option<Then>,
    ) -> CommitOutcome {
        if self.away.contains(&table) {
            return CommitOutcome::Transient { why: "the sink is away".into() };
        }
        let before = self.targets[table].state().cloned();
        let looks_first = self.dice.chance(Small::Looks, &key(name), 500);
        let (outcome, landed) = match &mut self.targets[table] {
            Target::Staging(target) => target.commit(commit),
            Target::Versioned(target) => {
                let newer =
                    target.state().filter(|s| (s.incarnation, s.commit) > (commit.state.incarnation, commit.state.commit));
                let (found, token) = (newer.cloned().map(Box::new), Token::from(""));
                match found {
                    Some(_) if looks_first => (CommitOutcome::Conflict { found, token }, Landed::Refused),
                    // Nothing compares: the state is written, and does not count.
                    _ if target.commit(commit) => (CommitOutcome::Durable { token }, Landed::Shown),
                    _ => (CommitOutcome::Durable { token }, Landed::Again),
                }
            }
        };
        let outcome = self.perhaps_as_a_conflict(table, outcome, twist);
        self.judge("staged-published-at-most-once", outcomes::staged_published_at_most_once(&landed));
        self.judge("staged-kept-while-unknown", outcomes::staged_kept_while_unknown(&landed));
        self.judge("only-current-incarnation-deletes", outcomes::discarded_was_not_needed(&landed));
        if matches!(landed, Landed::Shown) {
            self.count("commits");
            self.judge_commit(process, table, before.as_ref(), commit);
        }
        outcome
    }

    /// A sink may find its own commit there when it tries again by itself, and say so.
    fn perhaps_as_a_conflict(&mut self, table: Tab, outcome: CommitOutcome, twist: &mut Option<Then>) -> CommitOutcome {
        let staging = self.plan.tables[table].staging && self.unsteady;
        match outcome {
            CommitOutcome::Durable { token } if staging && twist.take_if(|t| *t == Then::IsCalledAConflict).is_some() => {
                CommitOutcome::Conflict { found: self.targets[table].state().cloned().map(Box::new), token }
            }
            outcome => outcome,
        }
    }

    fn judge_commit(&mut self, process: &mut Process, table: Tab, before: Option<&TableState>, commit: &Commit) {
        let state = &commit.state;
        let history = self.history.clone();
        // A claim of a table without a state says nothing of where its copy begins.
        if self.memory.bases[table].as_ref() != Some(&state.base) && state.commit.number > 0 {
            // Where nothing compares, a life that found no beginning begins anew over an older one's that came late.
            let anew = !self.plan.tables[table].staging && before.is_some_and(|b| b.commit.number == 0);
            let first = self.memory.bases[table].is_none();
            let moved = if first || anew { Ok(()) } else { Err(format!("the base of t{table} moves to {}", state.base)) };
            self.judge("join-has-a-base", moved);
            let verdict = starting::join_has_a_base(&self.view(table), state, &self.memory.ends_told);
            self.judge("join-has-a-base", verdict);
            self.memory.bases[table] = Some(state.base.clone());
        }
        self.memory.committed[table].insert(state.incarnation);
        let rows: Vec<_> = self.targets[table].rows_of(&commit.staged).into_iter().map(|(row, _)| row).collect();
        let images = self.targets[table].images_of(&commit.staged);
        let visible = self.targets[table].contents();
        // What the state before divides by another server's numbers is read again.
        if let Some(before) = before.filter(|b| b.identity.coordinates != state.identity.coordinates) {
            let divided: BTreeSet<_> = before.cut.within().keys().cloned().collect();
            for place in history.of_table[table].iter().filter(|place| divided.contains(&history.name(place.tx))) {
                self.memory.smeared[table].entry(place.tx).or_default().push(*place);
            }
        }
        let smeared = self.memory.smeared[table].clone();
        let view = self.view(table);
        let chain = view.plan.staging || before.is_none_or(|b| b.incarnation == state.incarnation);
        let log = self.source.identity(u64::MAX);
        let running = process.commits_running.get(&table).copied().unwrap_or(0);
        let mut verdicts = vec![("commit-in-order-per-table", durability::commit_in_order_per_table(running, before, state))];
        if let Some(before) = before {
            let verdict = starting::stale_incarnation_has_no_effect(before.incarnation, state.incarnation);
            verdicts.push(("stale-incarnation-has-no-effect", verdict));
            verdicts.push(("position-never-regresses", durability::position_never_regresses(&view, before, state)));
        }
        verdicts.push((
            "same-log-identity",
            if self.source.replaced { Ok(()) } else { starting::same_log_identity(&state.identity, &log) },
        ));
        let end = self.history.end(self.now).join(&self.source.told);
        verdicts.push(("never-ahead-of-source", starting::never_ahead_of_source(state.cut.upto(), &end)));
        let upto = state.cut.upto();
        verdicts.push(("position-names-finished-transactions", durability::position_names_finished_transactions(&history, upto)));
        let inside = &self.source.told_inside;
        verdicts.push((
            "empty-transactions-do-not-confirm",
            durability::empty_transactions_do_not_confirm(upto, &self.told(), inside),
        ));
        verdicts.push(("one-image-per-key-per-commit", durability::one_image_per_key_per_commit(&images)));
        if chain {
            verdicts.push(("covered-row-has-no-effect", starting::covered_row_has_no_effect(&view, before, &rows, &smeared)));
            verdicts.push(("position-covers-only-durable", starting::no_row_is_skipped(&view, before, state, &rows, &smeared)));
            verdicts.push(("schema-before-its-rows", starting::schema_before_its_rows(&view, state, &rows, &smeared)));
        }
        // Of a table that has not begun nothing is promised.
        if view.base.is_some() {
            let durable = durability::position_covers_only_durable(&view, state, &visible, &smeared);
            verdicts.push(("position-covers-only-durable", durable));
            let together = durability::state_and_data_move_together(&view, state, &visible, &smeared);
            verdicts.push(("state-and-data-move-together", together));
        }
        // What was under way when the table was released may land; a life that began later may commit nothing.
        let own = starting::goes_on_from_its_own_state(process.released_at_start.contains(&table), before, state);
        verdicts.push(("join-has-a-base", own));
        for (rule, verdict) in verdicts {
            self.judge(rule, verdict);
        }
        self.memory.smeared[table].retain(|tx, _| !history.holds(state.cut.upto(), *tx));
        self.memory.rolled[table] = false;
        let remembered = process.remembered.entry(table).or_default();
        // A blank table's claim need not be named.
        if state.commit.number > 0 && remembered.last().is_none_or(|last| last.commit != state.commit) {
            remembered.push(state.clone());
            if remembered.len() > self.plan.config.recent_commits_max {
                remembered.remove(0);
            }
        }
        // Where nothing compares, a life may claim an older state than the one that an older life wrote meanwhile.
        if !self.plan.tables[table].staging && before.is_some_and(|b| b.incarnation != state.incarnation && b.cut != state.cut) {
            self.memory.effective[table] = None;
        }
        self.judge_record_of(table, true);
    }

    /// All that was told by ends of transactions, keepalives outside of them, and openings.
    fn told(&self) -> Position {
        self.memory.ends_told.iter().fold(self.source.told.join(&self.source.floor), |told, end| told.join(end))
    }

    // ---- the record

    fn store_record(&mut self, process: &mut Process, expected: &Token, new: &PipelineState) -> StoreOutcome {
        if *expected != self.record_token() {
            return StoreOutcome::Conflict { found: self.record.clone().map(Box::new), token: self.record_token() };
        }
        if let Some(before) = self.record.clone() {
            self.judge("position-never-regresses", durability::record_never_regresses(&before, new));
            let verdict = starting::stale_incarnation_has_no_effect(before.incarnation, new.incarnation);
            self.judge("stale-incarnation-has-no-effect", verdict);
        }
        let takes = self.record.as_ref().is_none_or(|r| r.incarnation < new.incarnation);
        let (told, inside) = (self.told(), self.source.told_inside.clone());
        self.judge(
            "position-names-finished-transactions",
            durability::position_names_finished_transactions(&self.history.clone(), &new.quiet),
        );
        self.judge(
            "empty-transactions-do-not-confirm",
            durability::empty_transactions_do_not_confirm(&new.quiet, &told, &inside),
        );
        let before = self.record.replace(new.clone());
        self.record_writes += 1;
        let needs = |e: &kernel::state::TableRecord| e.phase == Phase::NeedsSnapshot;
        if takes {
            self.memory.taken_at = self.now;
            let all = 0..self.targets.len();
            process.released_at_start = all.clone().filter(|table| self.entry(*table).is_some_and(needs)).collect();
            process.known_at_start = all.filter(|table| self.entry(*table).is_some()).collect();
        }
        for table in 0..self.targets.len() {
            if !takes {
                self.judge_release(process, table, before.as_ref());
            }
            self.judge_record_of(table, false);
            self.judge_naming(process, table);
        }
        StoreOutcome::Stored { token: self.record_token() }
    }

    /// A table that the record newly calls in need of a snapshot really needs one.
    fn judge_release(&mut self, process: &Process, table: Tab, before: Option<&PipelineState>) {
        let name = &self.history.tables[table];
        let needs =
            |r: Option<&PipelineState>| r.and_then(|r| r.tables.get(name)).is_some_and(|e| e.phase == Phase::NeedsSnapshot);
        if !needs(self.record.as_ref()) || needs(before) {
            return;
        }
        self.memory.effective[table] = None;
        let known = before.is_some_and(|r| r.tables.contains_key(name));
        let removed = !process.tables.contains(&table);
        let elsewhere = self.source.server > 0 && !self.plan.tables[table].keyed;
        let vanished = self.memory.ever_rolled[table];
        let excused = self.memory.excused[table]
            || removed
            || elsewhere
            || !known
            || vanished
            || self.source.purged
            || self.plan.config.hold.is_some();
        let floor = self.source.floor.join(&self.source.acknowledged);
        let verdict = starting::lost_is_true(&self.view(table), self.targets[table].state(), &floor, excused);
        self.judge("start-within-streamable", verdict);
        self.memory.excused[table] = true;
    }

    /// What the record claims of a table is true, whatever happens later; and nothing written makes the table fall. After a
    /// commit only what it made is new.
    fn judge_record_of(&mut self, table: Tab, after_commit: bool) {
        let Some(record) = self.record.clone() else { return };
        let Some(entry) = self.entry(table).cloned() else { return };
        let states = if after_commit { self.targets[table].state().into_iter().collect() } else { self.targets[table].states() };
        let verdict = durability::record_claims_truth(&self.view(table), &record, &entry, &states);
        self.judge("record-claims-truth", verdict);
        let Some(state) = self.targets[table].state() else { return };
        // That an idle table was set back is noticed at its next commit; until then the record speaks of what is gone.
        if entry.phase == Phase::NeedsSnapshot || self.memory.rolled[table] {
            self.memory.effective[table] = None;
            return;
        }
        let now = durability::effective(Some(&record), Some(&entry), state);
        if let Some(before) = self.memory.effective[table].replace(now.clone()) {
            let name = self.history.tables[table].to_string();
            let verdict = durability::effective_cut_never_falls(&before, &now).map_err(|dump| format!("{name}: {dump}"));
            self.judge("effective-cut-never-falls", verdict);
        }
    }

    fn judge_naming(&mut self, process: &Process, table: Tab) {
        // Several streams, another numbering and short lists of ancestors make a later name right.
        let all_count = self.plan.tables[table].on_truncate != kernel::config::OnTruncate::Ignore;
        let lists_are_long = self.plan.config.ancestor_runs_max >= 16;
        let exact = self.history.streams.len() == 1 && self.source.server == 0 && lists_are_long && all_count;
        let (Some(record), Some(entry)) = (self.record.clone(), self.entry(table).cloned()) else { return };
        // A keepalive between two transactions may be told in one reading and not in another.
        let quiet = record.quiet.offset(&self.history.streams[0]).0;
        let ends = self.plan.source.empty_transactions != EmptyTransactions::Silent
            && self.history.transactions.iter().any(|t| t.end == quiet);
        if !exact || !ends {
            return;
        }
        let remembered: Vec<&TableState> = process.remembered.get(&table).into_iter().flatten().collect();
        let verdict = durability::record_names_the_oldest(&self.view(table), &record, &entry, &remembered);
        self.judge("record-claims-truth", verdict);
    }

    // ---- acknowledging

    fn acknowledge(&mut self, process: &mut Process, session: kernel::id::Session, upto: &Position) {
        if !self.source.is_open(session) {
            return self.count("acknowledgement-of-an-old-session");
        }
        let said = process.said.entry(session).or_default();
        let verdict = durability::acknowledgement_never_regresses(said, upto);
        *said = upto.clone();
        self.judge("position-never-regresses", verdict);
        let end = self.history.end(self.now).join(&self.told());
        self.judge("acknowledged-within-received", durability::acknowledged_within_received(upto, &end));
        let verdict = durability::quiet_before_acknowledged(upto, self.record.as_ref(), &self.source.floor);
        self.judge("quiet-before-acknowledged", verdict);
        let inside = self.source.told_inside.clone();
        let verdict = durability::empty_transactions_do_not_confirm(upto, &self.told(), &inside);
        self.judge("empty-transactions-do-not-confirm", verdict);
        for table in 0..self.targets.len() {
            let Some(entry) = self.entry(table).cloned() else { continue };
            let outstanding = durability::contains(&self.memory.rolled_over[table], upto);
            if entry.phase == Phase::NeedsSnapshot || self.memory.rolled[table] || outstanding || self.source.purged {
                continue;
            }
            let state = self.targets[table].state();
            let released = durability::release_before_pass(&self.view(table), &entry, state, upto);
            let durable = durability::acknowledged_is_durable(&self.view(table), state, upto);
            self.judge("release-before-pass", released);
            self.judge("position-covers-only-durable", durable);
        }
        self.source.acknowledge(upto);
    }
}
