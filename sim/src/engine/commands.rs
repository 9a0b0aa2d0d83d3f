//! What a process says: each of its commands, and when and how the world answers it.

use kernel::state::Skipped;

use super::trace::brief;
use super::*;

/// With so many intervals of a stream no run has too many.
const INTERVALS: usize = 1_000;

impl Engine {
    // ---- what a process says

    /// Carries out what a coordinator says; whether it said anything.
    pub(super) fn drain(&mut self, process: usize) -> bool {
        let mut any = false;
        while let Some(output) = self.processes[process].coordinator.poll_output() {
            any = true;
            self.tell(|| format!("p{process} > {output:?}"));
            self.trace.story(self.now, || Some(format!("p{process} {}", tell::output(&output)?)));
            self.hash.note(self.now, process, &output);
            self.says(process, output);
        }
        let p = &self.processes[process];
        if p.alive && !p.coordinator.is_stopped() {
            let known: BTreeSet<_> = p.coordinator.batches().into_iter().collect();
            let (bytes, held) = p.held();
            let counted = p.coordinator.bytes_held();
            // Chunks have a bound of their own; one more may be released at once.
            let chunks = self.plan.config.snapshot.held_bytes_max + 2 * p.largest_chunk;
            // The same of rows that are read again: one answer is held for each table, and one more may be taken at once.
            let readings = 2 * self.plan.tables.len() as u64 * p.largest_reading;
            let most = self.plan.config.budget_bytes_max + readings + if p.largest_chunk > 0 { chunks } else { 0 };
            let largest = p.largest_read;
            self.world.judge("rows-held-equal-rows-known", resources::rows_held_equal_rows_known(&held, &known));
            self.world.judge("budget-conserved", resources::budget_conserved(bytes, counted, most, largest));
        }
        if let Some(deadline) = self.processes[process].coordinator.poll_timeout() {
            let at = deadline.at.0.max(self.now + 1);
            let timer = &mut self.processes[process].timer;
            if *timer <= self.now || at < *timer {
                *timer = at;
                self.at(at, Event::Timer { process });
            }
        }
        any
    }

    pub(super) fn says(&mut self, process: usize, output: Output) {
        if self.processes[process].told_of_newer {
            self.world.judge("superseded-means-stopped", outcomes::superseded_means_stopped(&output));
        }
        self.note_life(process);
        match output {
            Output::Stop { reason } => self.stopped(process, &reason),
            Output::ReleaseBatch { batch } => {
                let released = self.processes[process].release(batch);
                self.world.judge("rows-held-equal-rows-known", released);
            }
            Output::Send(message) => {
                let pinned = self.processes[process].pin(&message);
                self.world.judge("rows-held-equal-rows-known", pinned);
                let at = self.link(process, 0);
                self.at(at, Event::Arrive { process, mail: Mail::Worker(WorkerInput::Told(message)), of: None });
            }
            Output::Started { table, state, floor, lost } => {
                let Some(tab) = self.world.history.table(&table) else { return };
                // A blank table's claim need not be named.
                let named = state.as_deref().filter(|s| s.commit.number > 0);
                self.processes[process].remembered.insert(tab, named.into_iter().cloned().collect());
                match state.as_deref() {
                    Some(state) => self.processes[process].began.insert(tab, state.clone()),
                    None => self.processes[process].began.remove(&tab),
                };
                let known = self.processes[process].known_at_start.contains(&tab);
                self.world.judge_start(tab, state.as_deref(), &floor, lost, known);
            }
            Output::HaltTable { .. } | Output::Declined { .. } => {}
            Output::Skipped { table, transaction, coordinate } => {
                let incarnation = self.processes[process].coordinator.incarnation();
                let passed = Skipped { incarnation, stream: transaction.stream, at: transaction.at, coordinate };
                let verdict = outcomes::skip_recorded_before_passed(self.world.record.as_ref(), &table, &passed);
                self.world.judge("skip-recorded-before-passed", verdict);
            }
            output => {
                if let Output::Commit { table, .. } = &output
                    && let Some(table) = self.world.history.table(table)
                {
                    *self.processes[process].commits_running.entry(table).or_default() += 1;
                }
                self.send(process, Command::Coordinator(output));
            }
        }
    }

    pub(super) fn note_life(&mut self, process: usize) {
        let p = &mut self.processes[process];
        let incarnation = p.coordinator.incarnation();
        if p.coordinator.is_running() && !p.is_noted {
            p.is_noted = true;
            let first = *self.world.memory.incarnations.entry(incarnation).or_insert(process);
            let verdict = starting::one_process_per_incarnation(incarnation, process, first);
            self.world.judge("stale-incarnation-has-no-effect", verdict);
        }
    }

    pub(super) fn worker_says(&mut self, process: usize, output: WorkerOutput) {
        self.tell(|| format!("p{process} worker > {output:?}"));
        match output {
            WorkerOutput::Net { attempt, part, first_version, .. } => {
                let Some(table) = self.world.history.table(&part.table) else { return };
                let keyed = self.plan.tables[table].keyed;
                let null = self.plan.config.planted == Some(PlantedBug::NullForAbsent);
                let netted = match self.processes[process].net(attempt, table, first_version, keyed, null) {
                    Ok(netted) => netted,
                    Err(keys) => {
                        let dump = format!("{attempt:?} of t{table} is to be written, and keys {keys:?} lack values");
                        return self.world.judge("absent-value-never-stored", Err(dump));
                    }
                };
                self.processes[process].nets += 1;
                let at = self.now + self.dice.roll(Small::Netting, &[process as u64, self.processes[process].nets], 3);
                self.at(at, Event::Arrive { process, mail: Mail::Worker(netted), of: None });
            }
            WorkerOutput::Write { attempt, .. } => {
                if let Some((table, netted)) = self.processes[process].netted(attempt) {
                    self.send(process, Command::Write { attempt, table, netted });
                }
            }
            WorkerOutput::Forget { attempt } => self.processes[process].forget(attempt),
            WorkerOutput::Written { attempt, outcome } => {
                let of = self.processes[process].table_of(attempt).map(|t| self.name(process, What::Written, Some(t)));
                let at = self.link(process, 1);
                self.at(at, Event::Arrive { process, mail: Mail::Fact(Input::Written { attempt, outcome }), of });
            }
        }
    }

    /// When a message arrives: a session keeps its order.
    pub(super) fn link(&mut self, process: usize, direction: usize) -> u64 {
        let (last, number) = self.processes[process].link[direction];
        let after = self.dice.roll(Small::Link, &[process as u64, direction as u64, number], 3);
        let at = (self.now + after).max(last);
        self.processes[process].link[direction] = (at, number + 1);
        at
    }

    /// The name of the next command of this kind.
    pub(super) fn name(&mut self, process: usize, what: What, table: Option<Tab>) -> Name {
        let nth = self.processes[process].sent.entry((what, table)).or_default();
        *nth += 1;
        Name { process, what, table, nth: *nth }
    }

    /// Sends a command on its way, and decides what becomes of it.
    pub(super) fn send(&mut self, process: usize, command: Command) {
        let (what, table) = self.kind(process, &command);
        let name = self.name(process, what, table);
        let when = When::Sends(name);
        let mut at = self.now + 1 + self.dice.roll(Small::Latency, &key(&name), 2);
        let (mut fate, mut twist) = (None, None);
        for then in self.ask(when, &Moment::default()) {
            match then {
                Then::Takes(n) => {
                    at = self.now + n.max(1);
                    self.fire(when, then);
                }
                Then::LandsAt(time) => {
                    at = time.max(self.now + 1);
                    self.fire(when, then);
                }
                Then::SenderDies => {
                    self.fire(when, then);
                    self.kill(process, false);
                    return self.need_a_life();
                }
                Then::IsLost | Then::AnswerIsLost | Then::LandsLate(_) => fate = Some(then),
                then => twist = Some(then),
            }
        }
        if let Some(lane) = self.lane(&command) {
            let last = self.processes[process].lanes.entry(lane).or_default();
            at = at.max(*last + 1);
            *last = at;
        }
        let (answer, heard) = (unknown(&command), at + 1 + self.dice.roll(Small::Unknown, &key(&name), 4));
        let fate = match fate {
            None => Fate::Answered,
            Some(then) => {
                self.fire(when, then.clone());
                match (then, &command) {
                    (_, Command::Coordinator(Output::Acknowledge { session, .. })) => {
                        // An acknowledgement has no answer: it is lost with its session.
                        self.world.count("acknowledgement-lost");
                        return self.world.source.end_session(*session);
                    }
                    (Then::IsLost, _) => return self.answer(name, heard, answer),
                    (Then::LandsLate(late), _) => {
                        self.answer(name, heard, answer);
                        at += late;
                        Fate::LandsLate
                    }
                    _ => Fate::AnswerLost,
                }
            }
        };
        self.at(at, Event::Land { command, sent: Sent { name, fate, twist } });
    }

    pub(super) fn answer(&mut self, of: Name, at: u64, mail: Option<Mail>) {
        if let Some(mail) = mail {
            self.at(at, Event::Arrive { process: of.process, mail, of: Some(of) });
        }
    }

    /// What a scenario calls a command, and the table that it is about.
    fn kind(&self, process: usize, command: &Command) -> (What, Option<Tab>) {
        let of = |table| self.world.history.table(table);
        match command {
            Command::Write { table, .. } => (What::Write, Some(*table)),
            Command::Coordinator(output) => match output {
                Output::ReadPipelineState { .. } => (What::ReadRecord, None),
                Output::StorePipelineState { .. } if self.processes[process].is_noted => (What::Record, None),
                Output::StorePipelineState { .. } => (What::Take, None),
                Output::RecoverTable { table, .. } => (What::Recover, of(table)),
                Output::OpenLog { .. } => (What::Open, None),
                Output::Commit { table, state, .. } if is_a_claim(state) => (What::Claim, of(table)),
                Output::Commit { table, .. } => (What::Commit, of(table)),
                Output::Resolve { table, .. } => (What::Resolve, of(table)),
                Output::ReleaseStaged { table, .. } => (What::Release, of(table)),
                Output::DiscardOlder { table, .. } => (What::Discard, of(table)),
                Output::Acknowledge { .. } => (What::Acknowledge, None),
                Output::PlanRanges { table, .. } => (What::Ranges, of(table)),
                Output::ReadChunk { table, .. } => (What::Chunk, of(table)),
                Output::ReadVisibility { table, .. } => (What::Visibility, of(table)),
                Output::ReadRows { table, .. } => (What::Rows, of(table)),
                _ => (What::Read, None),
            },
        }
    }

    pub(super) fn lane(&self, command: &Command) -> Option<Lane> {
        let commits = |table| self.world.history.table(table).map(Lane::Commits);
        match command {
            Command::Write { table, .. } => Some(Lane::Writes(*table)),
            Command::Coordinator(Output::Commit { table, .. } | Output::Resolve { table, .. }) => commits(table),
            Command::Coordinator(Output::ReleaseStaged { table, .. } | Output::DiscardOlder { table, .. }) => commits(table),
            Command::Coordinator(Output::Acknowledge { .. }) => Some(Lane::Acknowledgements),
            Command::Coordinator(Output::ReadLog { .. }) => Some(Lane::Reads),
            Command::Coordinator(_) => None,
        }
    }

    pub(super) fn land(&mut self, command: Command, sent: Sent) {
        let Sent { name, fate, mut twist } = sent;
        let process = name.process;
        let p = &mut self.processes[process];
        if !p.alive && p.lose_mail {
            return;
        }
        let goes_wrong = twist.clone();
        let answer = self.world.land(&name, p, &command, &mut twist);
        if let (Some(then), None) = (goes_wrong, twist) {
            self.fire(When::Sends(name), then);
        }
        self.tell(|| format!("p{process} landed {} {fate:?}", brief(&command)));
        let changes_something = matches!(name.what, What::Take | What::Record | What::Commit | What::Claim | What::Acknowledge);
        self.trace.story(self.now, || changes_something.then(|| format!("    p{process}'s {name} lands")));
        let when = When::Lands(name);
        let happens = self.ask(when, &Moment { recovers: self.recovers(process), ..Moment::default() });
        if fate != Fate::LandsLate {
            let answer = if fate == Fate::AnswerLost { unknown(&command) } else { answer };
            let mut at = self.now + 1 + self.dice.roll(Small::Answer, &key(&name), 2);
            if let (Some(Then::AnswerTakes(n)), true) = (happens.first(), answer.is_some()) {
                at = self.now + (*n).max(1);
                self.fire(when, Then::AnswerTakes(*n));
            }
            self.answer(name, at, answer);
        }
        self.befall(when, happens);
    }

    /// A life ended by itself: for a reason that is true?
    pub(super) fn stopped(&mut self, process: usize, reason: &StopReason) {
        self.processes[process].alive = false;
        self.note_marks(process);
        let healed_long_ago = self.stage != Stage::Faults && self.now > self.plan.heals + 400;
        let wrong = |what: &str| Err(format!("p{process} stopped, {what}: {reason:?}"));
        match reason {
            StopReason::Violation { rule, dump } => self.world.judge(rule, Err(format!("p{process}: {dump}"))),
            StopReason::Superseded { .. } => {
                let ours = self.processes[process].coordinator.incarnation();
                let newest = self.world.record.as_ref().map_or(Incarnation(0), |r| r.incarnation);
                if newest <= ours {
                    self.world.judge("superseded-means-stopped", wrong("no newer life has begun"));
                }
            }
            StopReason::PositionLost { .. } => {
                let gone = |then: &Then| {
                    matches!(then, Then::AnotherLog(_) | Then::CutShort { .. } | Then::Lacks { .. } | Then::Forgets(..))
                };
                if !self.has_happened(gone) {
                    self.world.judge("start-within-streamable", wrong("the log was always there"));
                }
            }
            StopReason::Unreachable { .. } => {
                if healed_long_ago {
                    self.world.judge("every-wait-has-an-exit", wrong("everything could be reached"));
                }
            }
            StopReason::Poison { .. } => {
                if !self.may_end_early() {
                    self.world.judge("every-wait-has-an-exit", wrong("there was nothing unreadable"));
                }
                self.judge_drained(process);
            }
            StopReason::Config { .. } => {
                let refused = self.members.iter().any(|tab| self.plan.tables[*tab].keyed) && !self.world.source.keeps_key_order();
                if refused {
                    self.world.count("refused-for-key-order");
                } else {
                    self.world.judge("start-mode-only-without-state", wrong("nothing is wrong with the configuration"));
                }
            }
            StopReason::Drained | StopReason::TableHalted { .. } => self.judge_drained(process),
        }
        self.need_a_life();
    }

    /// Was there something that can't be read, or may there be a set with too many holes?
    fn may_end_early(&self) -> bool {
        self.has_happened(|then| matches!(then, Then::Unreadable(_))) || self.plan.config.intervals_max < INTERVALS
    }

    pub(super) fn judge_drained(&mut self, process: usize) {
        self.world.count("ended-drained");
        let poisoned = self.may_end_early();
        let p = &self.processes[process];
        let status = p.coordinator.status();
        let owed = status.tables.values().map(|t| t.rows_owed).sum();
        let mut behind = None;
        if p.until_current && !p.asked_to_drain && !poisoned {
            let end = p.first_end.clone().unwrap_or_default();
            for (name, table) in status.tables.iter().filter(|(_, t)| t.phase == Phase::Streaming) {
                let Some(tab) = self.world.history.table(name) else { continue };
                // One that was resumed while the life was ending already reads no more.
                if p.resumed.contains(&tab) {
                    continue;
                }
                let view = self.world.view(tab);
                let lacking = view.lacks(table.stored.as_ref(), &end);
                behind = behind.or(lacking.map(|place| format!("{name} lacks {}", view.say(place))));
            }
        }
        self.world.judge("drained-means-durable", resources::drained_means_durable(owed, behind.as_deref()));
    }
}

/// The answer to a command whose fate nobody knows.
pub(super) fn unknown(command: &Command) -> Option<Mail> {
    let why = || "no answer".to_string();
    let fact = match command {
        Command::Write { attempt, .. } => {
            let outcome = WriteOutcome::Transient { why: why() };
            return Some(Mail::Worker(WorkerInput::Wrote { attempt: *attempt, outcome }));
        }
        Command::Coordinator(Output::Commit { id, table, .. }) => {
            Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Unknown { why: why() } }
        }
        Command::Coordinator(Output::StorePipelineState { id, .. }) => {
            Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Unknown { why: why() } }
        }
        Command::Coordinator(Output::Resolve { id, .. } | Output::ReadPipelineState { id }) => {
            Input::Failed { id: *id, why: why() }
        }
        Command::Coordinator(_) => return None,
    };
    Some(Mail::Fact(fact))
}

pub(super) fn incarnation_of(fact: &Input) -> Option<Incarnation> {
    match fact {
        Input::PipelineStateRead { id, .. }
        | Input::PipelineStateStored { id, .. }
        | Input::TableRecovered { id, .. }
        | Input::LogOpened { id, .. }
        | Input::LogFailed { id, .. }
        | Input::Committed { id, .. }
        | Input::Resolved { id, .. }
        | Input::RangesPlanned { id, .. }
        | Input::ChunkRead { id, .. }
        | Input::VisibilityRead { id, .. }
        | Input::RowsRead { id, .. }
        | Input::Failed { id, .. }
        | Input::Refused { id, .. } => Some(id.incarnation),
        Input::Written { attempt, .. } => Some(attempt.incarnation),
        Input::LogRead { .. } | Input::Operator(_) | Input::Timeout => None,
    }
}

/// A claim says who lives, and nothing of the data: the commit that it names is another life's, or none.
fn is_a_claim(state: &TableState) -> bool {
    state.commit.number == 0 || state.commit.incarnation != state.incarnation
}
