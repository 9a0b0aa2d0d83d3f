//! What a process says: each of its commands, and when and how the world answers it.

use super::*;

impl Engine {
    // ---- what a process says

    /// Carries out what a coordinator says; whether it said anything.
    pub(super) fn drain(&mut self, process: usize) -> bool {
        let mut any = false;
        while let Some(output) = self.processes[process].coordinator.poll_output() {
            any = true;
            self.tell(|| format!("p{process} > {output:?}"));
            self.hash.note(self.now, &output);
            self.says(process, output);
        }
        let p = &self.processes[process];
        if p.alive && !p.coordinator.is_stopped() {
            let known: BTreeSet<_> = p.coordinator.batches().into_iter().collect();
            let (bytes, held) = p.held();
            let counted = p.coordinator.bytes_held();
            let (most, largest) = (self.plan.config.budget_bytes_max, p.largest_read);
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
                self.at(at, Event::Arrive { process, mail: Mail::Worker(WorkerInput::Told(message)) });
            }
            Output::Started { table, state, floor, lost } => {
                let Some(tab) = self.world.history.table(&table) else { return };
                self.processes[process].remembered.insert(tab, state.iter().map(|s| (**s).clone()).collect());
                let known = self.processes[process].known_at_start.contains(&tab);
                self.world.judge_start(tab, state.as_deref(), &floor, lost, known);
            }
            Output::HaltTable { .. } | Output::Skipped { .. } => {}
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
                let netted = self.processes[process].net(attempt, table, first_version, keyed);
                let at = self.now + self.random.range(0, 2);
                self.at(at, Event::Arrive { process, mail: Mail::Worker(netted) });
            }
            WorkerOutput::Write { attempt, .. } => {
                if let Some((table, netted)) = self.processes[process].netted(attempt) {
                    self.send(process, Command::Write { attempt, table, netted });
                }
            }
            WorkerOutput::Forget { attempt } => self.processes[process].forget(attempt),
            WorkerOutput::Written { attempt, outcome } => {
                let at = self.link(process, 1);
                self.at(at, Event::Arrive { process, mail: Mail::Fact(Input::Written { attempt, outcome }) });
            }
        }
    }

    /// When a message arrives: a session keeps its order.
    pub(super) fn link(&mut self, process: usize, direction: usize) -> u64 {
        let at = (self.now + self.random.range(0, 2)).max(self.processes[process].link[direction]);
        self.processes[process].link[direction] = at;
        at
    }

    /// What a scenario has happen at a time.
    pub(super) fn act(&mut self, step: usize) {
        match self.script[step].1.clone() {
            Then::Dies(process) => {
                self.kill(process);
                self.processes[process].lose_mail = false;
                self.need_a_life();
            }
            Then::StandsStill(process, until) => {
                self.tell(|| format!("p{process} stands still"));
                self.processes[process].paused = true;
                self.at(until, Event::Wake { process });
                self.need_a_life();
            }
            Then::IsSetBack(table, steps) => {
                self.world.roll_back(table, steps);
            }
            Then::Asked(process, operator) => {
                if let Operator::Release(name) = &operator
                    && let Some(table) = self.world.history.table(name)
                {
                    self.world.excuse(table);
                }
                self.arrive(process, Mail::Fact(Input::Operator(operator)));
            }
            Then::LandsAt(_) | Then::IsLost | Then::AnswerIsLost | Then::SenderDies => {}
        }
    }

    /// What a scenario has become of a command, if it speaks of it.
    pub(super) fn scripted(&mut self, process: usize, command: &Command) -> Option<Then> {
        let mut then = None;
        for step in 0..self.script.len() {
            let When::Sends { process: p, what, table, nth } = self.script[step].0 else { continue };
            let (is, of) = kind(command);
            let same_table = table.is_none() || table == of.and_then(|name| self.world.history.table(&name));
            if p == process && is == what && same_table {
                self.occasions[step] += 1;
                if self.occasions[step] == nth {
                    then = then.or(Some(self.script[step].1.clone()));
                }
            }
        }
        then
    }

    /// Sends a command on its way, and decides what becomes of it.
    pub(super) fn send(&mut self, process: usize, command: Command) {
        match self.scripted(process, &command) {
            Some(Then::LandsAt(at)) => return self.at(at, Event::Land { process, command, fate: Fate::Answered }),
            Some(Then::IsLost) => return self.answer(process, self.now + 2, unknown(&command)),
            Some(Then::AnswerIsLost) => return self.at(self.now + 1, Event::Land { process, command, fate: Fate::AnswerLost }),
            Some(Then::SenderDies) => {
                self.kill(process);
                self.processes[process].lose_mail = false;
                return self.need_a_life();
            }
            _ => {}
        }
        let calm = self.stage != Stage::Faults;
        let slow = if self.random.chance(100) && !calm { self.plan.faults.slow.max(2) } else { 2 };
        let mut at = self.now + self.random.range(1, slow);
        if let Some(lane) = self.lane(&command) {
            let last = self.processes[process].lanes.entry(lane).or_default();
            at = at.max(*last + 1);
            *last = at;
        }
        if let (Command::Coordinator(Output::Acknowledge { session, .. }), false) = (&command, calm)
            && self.random.chance(self.plan.faults.lost_acknowledgement)
        {
            // An acknowledgement has no answer: it is lost with its session.
            self.world.count("acknowledgement-lost");
            return self.world.source.end_session(*session);
        }
        // That the record can't be read by chance is the world's to say (`read_fails`).
        let reads = matches!(command, Command::Coordinator(Output::ReadPipelineState { .. }));
        let answer = unknown(&command).filter(|_| !reads);
        if calm || answer.is_none() || !self.random.chance(self.plan.faults.unknown) {
            return self.at(at, Event::Land { process, command, fate: Fate::Answered });
        }
        let heard = at + self.random.range(1, 4);
        match self.random.below(3) {
            0 => self.at(at, Event::Land { process, command, fate: Fate::AnswerLost }),
            1 => self.answer(process, heard, answer),
            _ => {
                self.answer(process, heard, answer);
                let late = at + self.random.range(5, 80);
                self.at(late, Event::Land { process, command, fate: Fate::LandsLate });
            }
        }
    }

    pub(super) fn answer(&mut self, process: usize, at: u64, mail: Option<Mail>) {
        if let Some(mail) = mail {
            self.at(at, Event::Arrive { process, mail });
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

    pub(super) fn land(&mut self, process: usize, command: Command, fate: Fate) {
        let p = &mut self.processes[process];
        if !p.alive && p.lose_mail {
            return;
        }
        let answer = self.world.land(process, p, &command);
        self.tell(|| format!("p{process} landed {} {fate:?}", brief(&command)));
        if fate != Fate::LandsLate {
            let answer = if fate == Fate::AnswerLost { unknown(&command) } else { answer };
            let slow = if self.random.chance(100) && self.stage == Stage::Faults { self.plan.faults.slow.max(2) } else { 2 };
            let at = self.now + self.random.range(1, slow);
            self.answer(process, at, answer);
        }
        if !matches!(command, Command::Coordinator(Output::ReadLog { .. })) {
            self.fault(process);
        }
    }

    /// A life ended by itself: for a reason that is true?
    pub(super) fn stopped(&mut self, process: usize, reason: &StopReason) {
        self.processes[process].alive = false;
        self.note_marks(process);
        let (faults, now) = (self.plan.faults.clone(), self.now);
        let healed_long_ago = self.stage != Stage::Faults && now > self.last + 500;
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
                if faults.replaced == 0 && faults.cut_short == 0 && faults.purge == 0 {
                    self.world.judge("start-within-streamable", wrong("the log was always there"));
                }
            }
            StopReason::Unreachable { .. } => {
                if healed_long_ago {
                    self.world.judge("every-wait-has-an-exit", wrong("everything could be reached"));
                }
            }
            StopReason::Poison { .. } => {
                if faults.poison == 0 {
                    self.world.judge("every-wait-has-an-exit", wrong("there was nothing unreadable"));
                }
                self.judge_drained(process);
            }
            StopReason::Config { .. } => {
                self.world.judge("start-mode-only-without-state", wrong("nothing is wrong with the configuration"))
            }
            StopReason::Drained | StopReason::TableHalted { .. } => self.judge_drained(process),
        }
        self.need_a_life();
    }

    pub(super) fn judge_drained(&mut self, process: usize) {
        self.world.count("ended-drained");
        let p = &self.processes[process];
        let status = p.coordinator.status();
        let owed = status.tables.values().map(|t| t.rows_owed).sum();
        let mut behind = None;
        if p.until_current && !p.asked_to_drain && self.plan.faults.poison == 0 {
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
        | Input::Failed { id, .. }
        | Input::Refused { id, .. } => Some(id.incarnation),
        Input::Written { attempt, .. } => Some(attempt.incarnation),
        Input::LogRead { .. } | Input::Operator(_) | Input::Timeout => None,
    }
}

/// What a scenario calls a command, and the table that it is about.
pub(super) fn kind(command: &Command) -> (&'static str, Option<TableName>) {
    match command {
        Command::Write { .. } => ("write", None),
        Command::Coordinator(Output::Commit { table, .. }) => ("commit", Some(table.clone())),
        Command::Coordinator(Output::StorePipelineState { .. }) => ("record", None),
        Command::Coordinator(Output::Acknowledge { .. }) => ("acknowledge", None),
        Command::Coordinator(Output::ReadPipelineState { .. }) => ("ask", None),
        Command::Coordinator(Output::Resolve { table, .. }) => ("resolve", Some(table.clone())),
        Command::Coordinator(_) => ("", None),
    }
}

pub(super) fn brief(command: &Command) -> String {
    match command {
        Command::Write { attempt, table, .. } => format!("write {attempt:?} t{table}"),
        Command::Coordinator(Output::Commit { table, state, .. }) => format!("commit {table} {:?}", state.commit),
        Command::Coordinator(Output::StorePipelineState { new, .. }) => format!("record quiet {}", new.quiet),
        Command::Coordinator(output) => {
            let text = format!("{output:?}");
            text.split_once(' ').map_or(text.clone(), |(name, _)| name.to_string())
        }
    }
}

/// A hash that is the same on every machine.
pub(super) struct TraceHash(pub(super) u64);

impl TraceHash {
    pub(super) fn note(&mut self, now: u64, what: &impl Hash) {
        self.write_u64(now);
        what.hash(self);
        self.0 = mix(self.0);
    }
}

impl Hasher for TraceHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
