//! The world outside a process: source, sinks, pipeline record. A command lands here at one moment, is judged, and is answered.

mod hands;
mod judging;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fault_scenarios::{Command as Name, Dice, EmptyTransactions, Small, Then};
use kernel::config::Join;
use kernel::coordinator::{Input, Output};
use kernel::id::{Incarnation, Token};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::Position;
use kernel::state::{Phase, PipelineState, TableState};
use kernel::worker::WorkerInput;

use crate::history::{History, Tab, Value};
use crate::oracle::absent::Reading;
use crate::oracle::durability::{self, Smeared};
use crate::oracle::snapshots::{ChunkRead, doubt_proven_before_chunk, only_what_is_superseded_is_swept};
use crate::oracle::{Verdict, View, Violation, outcomes, starting};
use crate::plan::Plan;
use crate::process::{Command, Mail, Process};
use crate::sinks::{Commit, Landed, Staging, Target, Versioned};
use crate::source::chunks::decoded;
use crate::source::{Said, Source};

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
    /// Every chunk that was read: when, of which table, and by which command.
    pub chunks: Vec<ChunkRead>,
    /// Every reading of rows.
    pub readings: Vec<Reading>,
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
            excused: plan.tables.iter().map(|t| t.join == Join::Snapshot).collect(),
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
        let state = self.targets[table].state();
        let whole = state.is_some_and(|s| s.generation > 0);
        View { history: &self.history, table, plan: &self.plan.tables[table], base: self.memory.bases[table].as_ref(), whole }
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
                let tab = self.history.table(table)?;
                let target = &self.targets[tab];
                let state = target.state().cloned().map(Box::new);
                process.found.insert(tab, target.state().map(|s| s.commit));
                Some(Mail::Fact(Input::TableRecovered { id: *id, table: table.clone(), state, token: target.token() }))
            }
            Output::OpenLog { id } => {
                let lies = goes_wrong(Then::Lies);
                match self.source.open(self.now, process.tables.clone(), lies) {
                    Ok(opened) => {
                        self.memory.ends_told.push(opened.end.clone());
                        self.note_parts_ahead(process, &opened.end);
                        process.first_end.get_or_insert(opened.end.clone());
                        let (session, identity, floor, end) = (opened.session, opened.identity, opened.floor, opened.end);
                        Some(Mail::Fact(Input::LogOpened { id: *id, session, identity, floor, end }))
                    }
                    Err(failure) => Some(Mail::Fact(Input::LogFailed { id: *id, failure })),
                }
            }
            Output::ReadLog { id, session, restart, bytes_max, keys_of } => {
                if goes_wrong(Then::LosesTheSession) {
                    let failure = LogFailure::SessionLost { why: "the connection broke".into() };
                    return Some(Mail::Fact(Input::LogFailed { id: *id, failure }));
                }
                match self.source.read(self.now, *session, restart.as_ref(), (*bytes_max / 10).max(1) as usize) {
                    Ok((said, finished)) => {
                        if let Some(dump) = process.part_ahead.take() {
                            self.judge("never-ahead-of-source", Err(dump));
                        }
                        self.judge_order_of_keys(process, restart.is_some(), &said);
                        let keys_of = keys_of.iter().filter_map(|name| self.history.table(name)).collect();
                        Some(Mail::Read { id: *id, said, finished, keys_of })
                    }
                    Err(failure) => Some(Mail::Fact(Input::LogFailed { id: *id, failure })),
                }
            }
            Output::PlanRanges { .. } | Output::ReadChunk { .. } | Output::ReadVisibility { .. } | Output::ReadRows { .. } => {
                let fails = goes_wrong(Then::Fails);
                self.land_snapshot_read(process, output, fails)
            }
            Output::Commit { id, table, token, state, staged, truncate_first, sweep } => {
                let tab = self.history.table(table)?;
                let (state, staged) = ((**state).clone(), staged.clone());
                let (truncate_first, sweep) = (*truncate_first, *sweep);
                let commit = Commit { token: token.clone(), state, staged, truncate_first, sweep };
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

    /// A life that begins while the log lacks something: has a table that it has found a part of that?
    fn note_parts_ahead(&self, process: &mut Process, end: &Position) {
        let found = |(table, commit): (&Tab, &Option<_>)| {
            let state = self.targets[*table].state().filter(|s| Some(s.commit) == *commit)?;
            let entry = self.entry(*table).filter(|e| e.phase != Phase::NeedsSnapshot)?;
            // One that is lost, or would be appended to twice, is left as it is.
            let stands = durability::effective(self.record.as_ref(), Some(entry), state);
            let elsewhere = state.identity.coordinates != self.source.identity(self.now).coordinates;
            if !durability::contains(&stands, &self.source.floor) || (elsewhere && !self.plan.tables[*table].keyed) {
                return None;
            }
            starting::no_part_is_ahead(&format!("t{table}"), &state.cut, end).err()
        };
        process.part_ahead = if process.first_end.is_none() { process.found.iter().find_map(found) } else { None };
    }

    fn judge_order_of_keys(&mut self, process: &mut Process, anew: bool, said: &[Said]) {
        if anew {
            process.last_of_keys.clear();
        }
        for said in said {
            if let Said::Rows { table, rows, .. } = said
                && self.plan.tables[*table].keyed
            {
                let verdict = starting::key_order_is_one(&mut process.last_of_keys, *table, rows);
                self.judge("key-order-is-one", verdict);
            }
        }
    }

    // ---- snapshots

    fn land_snapshot_read(&mut self, process: &Process, output: &Output, fails: bool) -> Option<Mail> {
        let failed = |id| Some(Mail::Fact(Input::Failed { id, why: "no answer".into() }));
        match output {
            Output::PlanRanges { id, .. }
            | Output::ReadChunk { id, .. }
            | Output::ReadVisibility { id, .. }
            | Output::ReadRows { id, .. }
                if fails =>
            {
                failed(*id)
            }
            Output::ReadRows { id, .. } if !self.plan.config.source_reads_chunks => {
                let why = "this source can't be asked for rows".into();
                Some(Mail::Fact(Input::Refused { id: *id, why }))
            }
            Output::ReadRows { id, table, keys, bytes_max, about, .. } => {
                let table = self.history.table(table)?;
                let keys: Vec<_> = keys.iter().filter_map(decoded).collect();
                let Some(mut rows) = self.source.rows_again(self.now, table, &keys, *bytes_max, about) else {
                    return failed(*id);
                };
                self.count("readings");
                let reading = self.memory.readings.len();
                rows.rows.iter_mut().for_each(|row| row.reading = Some(reading));
                self.memory.readings.push(Reading { at: self.now, ..Reading::default() });
                Some(Mail::Rows { id: *id, reading, rows: Box::new(rows) })
            }
            Output::PlanRanges { id, table, wanted } => {
                let table = self.history.table(table)?;
                let Some(bounds) = self.source.plan_ranges(self.now, table, *wanted) else { return failed(*id) };
                Some(Mail::Fact(Input::RangesPlanned { id: *id, bounds }))
            }
            Output::ReadVisibility { id, about, unfinished, .. } => {
                let Some(visibility) = self.source.sees(self.now, about, *unfinished) else { return failed(*id) };
                Some(Mail::Fact(Input::VisibilityRead { id: *id, visibility }))
            }
            Output::ReadChunk { id, table, range, rows_max, about, .. } => {
                let table = self.history.table(table)?;
                let Some(mut chunk) = self.source.chunk(self.now, table, range, *rows_max, about) else { return failed(*id) };
                let began = process.began.get(&table);
                let verdict = doubt_proven_before_chunk(&self.view(table), self.targets[table].state(), began, self.now);
                self.judge("doubt-proven-before-chunk", verdict);
                self.count("chunks");
                let number = self.memory.chunks.len();
                chunk.rows.iter_mut().for_each(|row| row.chunk = Some(number));
                self.memory.chunks.push(ChunkRead { id: *id, at: self.now, schema: chunk.schema });
                Some(Mail::Chunk { id: *id, chunk: Box::new(chunk) })
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
        let values = netted.images.iter().map(|i| i.1.map(|row| row.value)).chain(netted.kept.iter().map(|(row, _)| row.value));
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
        let verdict = only_what_is_superseded_is_swept(before.as_ref(), commit);
        self.judge("only-current-incarnation-deletes", verdict);
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
            let wanted = |table: Tab| Some((table, self.entry(table).filter(|e| needs(e))?.generation));
            process.released_at_start = all.clone().filter_map(wanted).collect();
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

    // ---- acknowledging

    fn acknowledge(&mut self, process: &mut Process, session: kernel::id::Session, upto: &Position) {
        if !self.source.is_open(session) {
            return self.count("acknowledgement-of-an-old-session");
        }
        let said = process.said.entry(session).or_default();
        let verdict = durability::acknowledgement_never_regresses(said, upto);
        *said = upto.clone();
        self.judge("position-never-regresses", verdict);
        // A session that is open while the log is shorter was told so.
        let end = match &self.source.cut_short {
            Some(short) => short.join(&self.source.floor),
            None => self.history.end(self.now).join(&self.told()),
        };
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
