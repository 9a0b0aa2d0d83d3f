//! One event heap. Commands drained together land in any order but that of their lane. Faults are biased to the kernel's
//! transitions: any landing and any answer may be the moment of a kill or a pause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use kernel::coordinator::{Coordinator, Input, Operator, Output, StopReason};
use kernel::id::{Incarnation, TableName};
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::planted::PlantedBug;
use kernel::state::{Phase, TableState};
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};

use crate::history::{Contents, Tab};
use crate::oracle::{Violation, outcomes, resources, starting};
use crate::plan::Plan;
use crate::process::{Command, Lane, Mail, Process};
use crate::random::{Random, mix};
use crate::scenario::{Scenario, Then, When};
use crate::sinks::Target;
use crate::world::World;

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The first broken rule.
    pub violation: Option<Violation>,
    /// Facts that machines were given.
    pub inputs: u64,
    /// Of everything that was said and done, in order.
    pub hash: u64,
    /// How often the machines took rare paths, and the world did things.
    pub marks: BTreeMap<&'static str, u64>,
    /// Member tables at the end, and how many of them need a snapshot.
    pub tables: (usize, usize),
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64, bug: Option<PlantedBug>, trace: bool) -> Report {
    let mut random = Random::new(seed);
    let mut plan = Plan::new(&mut random);
    plan.config.planted = bug;
    Engine::new(plan, random, trace).run()
}

/// Plays a scenario.
pub fn play(scenario: &Scenario, bug: Option<PlantedBug>, trace: bool) -> Report {
    let mut plan = scenario.plan.clone();
    plan.config.planted = bug;
    let mut engine = Engine::new(plan, Random::new(1), trace);
    engine.script.clone_from(&scenario.script);
    engine.last = engine.last.max(scenario.ends());
    engine.run()
}

#[derive(Debug)]
enum Event {
    Land { process: usize, command: Command, fate: Fate },
    Arrive { process: usize, mail: Mail },
    Timer { process: usize },
    Script { step: usize },
    Boot,
    Wake { process: usize },
    Hands,
    Heal,
    End,
}

/// What becomes of a command and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It lands and is answered.
    Answered,
    /// It lands, the answer is lost.
    AnswerLost,
    /// It is answered as unknown and lands later.
    LandsLate,
}

struct Queued(u64, u64, Event);

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Queued {}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Faults happen.
    Faults,
    /// Nothing goes wrong any more.
    Healed,
    /// Everything was at rest; a new life began, which must change nothing.
    AtRest { since: u64, process: usize },
}

/// Answers of older lives that are kept to be given to later ones.
const OLD_ANSWERS_MAX: usize = 100;

struct Engine {
    world: World,
    plan: Rc<Plan>,
    random: Random,
    now: u64,
    order: u64,
    heap: BinaryHeap<Reverse<Queued>>,
    processes: Vec<Process>,
    stage: Stage,
    booting: bool,
    members: BTreeSet<Tab>,
    at_rest: Vec<(Option<TableState>, Contents)>,
    /// What a scenario has happen, and how often each of its occasions has come.
    script: Vec<(When, Then)>,
    occasions: Vec<usize>,
    /// Answers to lives, to be given to later ones.
    old_answers: Vec<Input>,
    inputs: u64,
    hash: TraceHash,
    marks: BTreeMap<&'static str, u64>,
    trace: Option<Vec<String>>,
    done: bool,
    last: u64,
}

impl Engine {
    fn new(plan: Plan, mut random: Random, trace: bool) -> Self {
        let plan = Rc::new(plan);
        let world = World::new(plan.clone(), &mut random);
        let last = plan.history.last_time();
        let mut members: BTreeSet<Tab> = (0..plan.tables.len()).collect();
        if plan.faults.reconfigures > 0 && random.chance(500) {
            members.remove(&(random.below(plan.tables.len() as u64) as Tab));
        }
        Self {
            world,
            plan,
            random,
            now: 0,
            order: 0,
            heap: BinaryHeap::new(),
            processes: vec![],
            stage: Stage::Faults,
            booting: true,
            members,
            at_rest: vec![],
            script: vec![],
            occasions: vec![],
            old_answers: vec![],
            inputs: 0,
            hash: TraceHash(0xCBF2_9CE4_8422_2325),
            marks: BTreeMap::new(),
            trace: trace.then(Vec::new),
            done: false,
            last,
        }
    }

    fn run(mut self) -> Report {
        self.say_plan();
        self.occasions = vec![0; self.script.len()];
        for step in 0..self.script.len() {
            if let When::At(at) = self.script[step].0 {
                self.at(at, Event::Script { step });
            }
        }
        self.at(0, Event::Boot);
        self.at(10, Event::Hands);
        self.at(self.last + 100, Event::Heal);
        self.at(self.last + 6000, Event::End);
        while let Some(Reverse(Queued(at, _, event))) = self.heap.pop() {
            self.now = at;
            self.world.now = at;
            self.happen(event);
            if self.world.memory.violation.is_some() || self.done {
                break;
            }
        }
        for process in 0..self.processes.len() {
            if self.processes[process].alive {
                self.note_marks(process);
            }
        }
        for (what, times) in &self.world.memory.counts {
            *self.marks.entry(what).or_default() += times;
        }
        let need = self.members.iter().filter(|t| self.world.needs_snapshot(**t)).count();
        Report {
            violation: self.world.memory.violation,
            inputs: self.inputs,
            hash: self.hash.0,
            marks: self.marks,
            tables: (self.members.len(), need),
            trace: self.trace.unwrap_or_default(),
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.heap.push(Reverse(Queued(at, self.order, event)));
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} {}", self.now, line()));
        }
    }

    fn say_plan(&mut self) {
        let plan = self.plan.clone();
        self.tell(|| format!("{:?}", plan.faults));
        self.tell(|| format!("{:?}", plan.source));
        for (n, table) in plan.tables.iter().enumerate() {
            self.tell(|| format!("t{n} {table:?}"));
        }
        self.tell(|| format!("{:?}", plan.config));
        for (n, tx) in plan.history.transactions.iter().enumerate() {
            let stream = &plan.history.streams[tx.stream];
            self.tell(|| format!("tx {n} '{stream}' {}..{} visible at {}", tx.at, tx.end, tx.time));
            for (c, change) in tx.changes.iter().enumerate() {
                self.tell(|| format!("    {c}: t{} {:?} s{}", change.table, change.kind, change.schema));
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Boot => self.boot(),
            Event::Land { process, command, fate } => self.land(process, command, fate),
            Event::Arrive { process, mail } => {
                let ordinary = !matches!(mail, Mail::Read { .. } | Mail::Worker(_));
                self.stale_copy(process, &mail);
                self.arrive(process, mail);
                if ordinary {
                    self.fault(process);
                }
            }
            Event::Timer { process } => {
                self.processes[process].timer = 0;
                let due = self.processes[process].coordinator.poll_timeout().is_some_and(|d| d.at.0 <= self.now);
                if due {
                    self.arrive(process, Mail::Fact(Input::Timeout));
                } else if self.lives(process) {
                    self.drain(process);
                }
            }
            Event::Script { step } => self.act(step),
            Event::Wake { process } => self.wake(process),
            Event::Hands => {
                self.hands();
                self.at(self.now + 10, Event::Hands);
                self.rest();
            }
            Event::Heal => self.heal(),
            Event::End => self.end(),
        }
    }

    fn lives(&self, process: usize) -> bool {
        self.processes[process].alive && !self.processes[process].paused
    }

    // ---- lives

    fn boot(&mut self) {
        self.booting = false;
        if (0..self.processes.len()).any(|p| self.lives(p)) {
            return;
        }
        let faults = &self.plan.faults;
        if self.stage == Stage::Faults && self.random.chance(faults.reconfigures) {
            let table = self.random.below(self.plan.tables.len() as u64) as Tab;
            // A pipeline has one table at least.
            if !self.members.remove(&table) || self.members.is_empty() {
                self.members.insert(table);
            }
        }
        let mut config = self.plan.config_of(&self.members);
        let until_current = self.stage == Stage::Faults && self.random.chance(faults.drains * 10);
        config.until_current = until_current;
        let coordinator = Coordinator::new(Time(self.now), config);
        self.processes.push(Process::new(coordinator, self.members.clone(), until_current));
        let process = self.processes.len() - 1;
        self.tell(|| format!("p{process} begins"));
        self.drain(process);
    }

    fn need_a_life(&mut self) {
        if !self.booting && !(0..self.processes.len()).any(|p| self.lives(p)) {
            self.booting = true;
            let at = self.now + self.random.range(1, 40);
            self.at(at, Event::Boot);
        }
    }

    fn kill(&mut self, process: usize) {
        self.tell(|| format!("p{process} is killed"));
        self.processes[process].alive = false;
        self.note_marks(process);
        self.processes[process].lose_mail = self.random.chance(500);
    }

    fn note_marks(&mut self, process: usize) {
        for (mark, times) in self.processes[process].coordinator.marks() {
            *self.marks.entry(mark).or_default() += times;
        }
    }

    /// The moment of a kill or a pause, perhaps.
    fn fault(&mut self, process: usize) {
        if self.stage != Stage::Faults || !self.lives(process) {
            return;
        }
        let recovers = !self.processes[process].coordinator.is_running() && self.processes.len() > 1;
        let kill = self.plan.faults.kill * if recovers { self.plan.faults.kill_in_recovery } else { 1 };
        if self.random.chance(kill) {
            self.world.count(if recovers { "killed-in-recovery" } else { "killed" });
            self.kill(process);
        } else if self.random.chance(self.plan.faults.pause) {
            self.world.count("stood-still");
            self.tell(|| format!("p{process} stands still"));
            self.processes[process].paused = true;
            let at = self.now + self.random.range(20, 400);
            self.at(at, Event::Wake { process });
        }
        self.need_a_life();
    }

    fn wake(&mut self, process: usize) {
        if !self.processes[process].paused {
            return;
        }
        self.processes[process].paused = false;
        self.tell(|| format!("p{process} wakes up"));
        for mail in std::mem::take(&mut self.processes[process].queue) {
            self.arrive(process, mail);
        }
        if self.lives(process) {
            self.arrive(process, Mail::Fact(Input::Timeout));
        }
        self.need_a_life();
    }

    /// An older life's answer reaches a newer one, too, perhaps long after: it names another life, so it must have no effect.
    fn stale_copy(&mut self, process: usize, mail: &Mail) {
        let Mail::Fact(fact) = mail else { return };
        if self.stage != Stage::Faults || self.plan.faults.stale_answers == 0 {
            return;
        }
        let Some(of) = incarnation_of(fact) else { return };
        if self.world.memory.incarnations.get(&of) != Some(&process) {
            return;
        }
        if self.old_answers.len() < OLD_ANSWERS_MAX {
            self.old_answers.push(fact.clone());
        }
        if !self.random.chance(self.plan.faults.stale_answers) {
            return;
        }
        let old = self.random.pick(&self.old_answers).clone();
        let newer = (0..self.processes.len()).rfind(|p| self.lives(*p) && self.processes[*p].coordinator.is_running());
        if let (Some(newer), Some(of)) = (newer, incarnation_of(&old))
            && self.processes[newer].coordinator.incarnation() > of
        {
            self.world.count("stale-copy");
            self.arrive(newer, Mail::Fact(old));
        }
    }

    // ---- what reaches a process

    fn arrive(&mut self, process: usize, mail: Mail) {
        if !self.processes[process].alive {
            return;
        }
        if self.processes[process].paused {
            self.processes[process].queue.push(mail);
            return;
        }
        self.inputs += 1;
        let timeout = matches!(mail, Mail::Fact(Input::Timeout));
        match mail {
            Mail::Worker(input) => {
                self.tell(|| format!("p{process} worker < {input:?}"));
                self.hash.note(self.now, &input);
                let outputs = self.processes[process].tell_worker(input);
                if let Err(violation) = self.processes[process].worker.check() {
                    self.world.judge(violation.rule, Err(violation.dump));
                }
                for output in outputs {
                    self.worker_says(process, output);
                }
                return;
            }
            Mail::Read { id, said, finished } => {
                let history = self.world.history.clone();
                let fact = self.processes[process].take_in(&history, &mut self.random, id, said, finished);
                self.give(process, fact);
            }
            Mail::Fact(fact) => self.give(process, fact),
        }
        let said = self.drain(process);
        let deadline = self.processes[process].coordinator.poll_timeout().map(|d| (d.at.0, d.why));
        if timeout && self.lives(process) {
            self.world.judge("every-wait-has-an-exit", resources::every_wait_has_an_exit(self.now, deadline, said));
        }
    }

    fn give(&mut self, process: usize, fact: Input) {
        self.tell(|| format!("p{process} < {fact:?}"));
        self.hash.note(self.now, &fact);
        self.note_answer(process, &fact);
        self.processes[process].tell(self.now, fact);
        if let Err(violation) = self.processes[process].coordinator.check() {
            let waiting = self.processes[process].coordinator.waiting();
            self.world.judge(violation.rule, Err(format!("p{process}: {} (waiting: {waiting:?})", violation.dump)));
        }
    }

    /// What the oracle learns from an answer: that a commit ended, that a newer life was told of.
    fn note_answer(&mut self, process: usize, fact: &Input) {
        let p = &mut self.processes[process];
        let ours = p.coordinator.incarnation();
        if let Input::Committed { id, table, .. } = fact
            && id.incarnation == ours
            && let Some(table) = self.world.history.table(table)
        {
            let running = p.commits_running.entry(table).or_default();
            *running = running.saturating_sub(1);
        }
        let newer = match fact {
            Input::PipelineStateStored { id, outcome: StoreOutcome::Conflict { found: Some(found), .. } } => {
                id.incarnation == ours && p.coordinator.is_running() && found.incarnation > ours
            }
            Input::Committed { id, outcome: CommitOutcome::Superseded, .. } => id.incarnation == ours,
            _ => false,
        };
        p.told_of_newer |= newer && ours > Incarnation(0);
    }

    // ---- what a process says

    /// Carries out what a coordinator says; whether it said anything.
    fn drain(&mut self, process: usize) -> bool {
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

    fn says(&mut self, process: usize, output: Output) {
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

    fn note_life(&mut self, process: usize) {
        let p = &mut self.processes[process];
        let incarnation = p.coordinator.incarnation();
        if p.coordinator.is_running() && !p.is_noted {
            p.is_noted = true;
            let first = *self.world.memory.incarnations.entry(incarnation).or_insert(process);
            let verdict = starting::one_process_per_incarnation(incarnation, process, first);
            self.world.judge("stale-incarnation-has-no-effect", verdict);
        }
    }

    fn worker_says(&mut self, process: usize, output: WorkerOutput) {
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
    fn link(&mut self, process: usize, direction: usize) -> u64 {
        let at = (self.now + self.random.range(0, 2)).max(self.processes[process].link[direction]);
        self.processes[process].link[direction] = at;
        at
    }

    /// What a scenario has happen at a time.
    fn act(&mut self, step: usize) {
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
    fn scripted(&mut self, process: usize, command: &Command) -> Option<Then> {
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
    fn send(&mut self, process: usize, command: Command) {
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
        let answer = unknown(&command);
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

    fn answer(&mut self, process: usize, at: u64, mail: Option<Mail>) {
        if let Some(mail) = mail {
            self.at(at, Event::Arrive { process, mail });
        }
    }

    fn lane(&self, command: &Command) -> Option<Lane> {
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

    fn land(&mut self, process: usize, command: Command, fate: Fate) {
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
    fn stopped(&mut self, process: usize, reason: &StopReason) {
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

    fn judge_drained(&mut self, process: usize) {
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

    // ---- hands

    fn hands(&mut self) {
        for process in 0..self.processes.len() {
            if self.lives(process) && self.processes[process].coordinator.is_running() {
                self.operate(process);
            }
        }
        if self.stage == Stage::Faults {
            self.foreign_hands();
            self.trouble_the_source();
        }
    }

    fn operate(&mut self, process: usize) {
        let calm = self.stage != Stage::Faults;
        let hands = self.plan.faults.hands;
        for (name, table) in self.processes[process].coordinator.status().tables {
            let chance = |random: &mut Random, permille| random.chance(permille);
            let resume = if self.random.chance(700) { Operator::Resume(name.clone()) } else { Operator::Skip(name.clone()) };
            let operator = match table.phase {
                Phase::Streaming => (!calm && chance(&mut self.random, hands / 6)).then(|| Operator::Pause(name.clone())),
                Phase::Paused | Phase::Halted if calm || chance(&mut self.random, 300) => Some(resume),
                Phase::Paused | Phase::Halted => chance(&mut self.random, hands / 8).then(|| Operator::Release(name.clone())),
                _ => None,
            };
            if let (Some(Operator::Release(_)), Some(tab)) = (&operator, self.world.history.table(&name)) {
                self.world.excuse(tab);
            }
            if let (Some(Operator::Resume(_) | Operator::Skip(_)), Some(tab)) = (&operator, self.world.history.table(&name)) {
                self.processes[process].resumed.insert(tab);
            }
            if let Some(operator) = operator {
                self.arrive(process, Mail::Fact(Input::Operator(operator)));
            }
            if !self.lives(process) {
                return;
            }
        }
        if !calm && self.random.chance(self.plan.faults.drains) {
            self.processes[process].asked_to_drain = true;
            self.arrive(process, Mail::Fact(Input::Operator(Operator::Drain)));
        }
    }

    fn foreign_hands(&mut self) {
        let faults = self.plan.faults.clone();
        let table = self.random.below(self.plan.tables.len() as u64) as Tab;
        if self.random.chance(faults.foreign) {
            self.world.foreign_commit(table);
        }
        if self.random.chance(faults.rollback) {
            let steps = self.random.range(1, 3) as usize;
            if self.world.roll_back(table, steps) {
                self.tell(|| format!("t{table} is set back by {steps}"));
            }
        }
        if self.random.chance(faults.away) {
            if self.world.away.is_empty() {
                self.world.away.insert(table);
            } else {
                self.world.away.clear();
            }
        }
        if let Some(table) = faults.only_away
            && self.now > 60
        {
            self.world.away.insert(table);
        }
    }

    fn trouble_the_source(&mut self) {
        let faults = self.plan.faults.clone();
        if self.random.chance(faults.purge) {
            self.world.source.purge(self.now);
        }
        // What began ends more often than it begins.
        let toggle = |random: &mut Random, on: bool, permille: u64| random.chance(if on { 300 } else { permille });
        if toggle(&mut self.random, self.world.source.away, faults.source_away) && faults.source_away > 0 {
            self.world.source.away = !self.world.source.away;
        }
        if toggle(&mut self.random, self.world.source.poison, faults.poison) && faults.poison > 0 {
            self.world.source.poison = !self.world.source.poison;
        }
        // Nobody can know that the first log that is ever read is the wrong one.
        let known = self.world.record.as_ref().is_some_and(|r| !r.identity.streams.is_empty());
        if toggle(&mut self.random, self.world.source.replaced, faults.replaced) && faults.replaced > 0 && known {
            self.world.source.replaced = !self.world.source.replaced;
            self.world.source.end_sessions();
            self.tell(|| "the log is another one, or itself again".into());
        }
        if toggle(&mut self.random, self.world.source.cut_short.is_some(), faults.cut_short) && faults.cut_short > 0 {
            let before = self.world.history.end(self.now.saturating_sub(self.random.range(10, 100)));
            let source = &mut self.world.source;
            source.cut_short = if source.cut_short.is_some() { None } else { Some(before.join(&source.floor)) };
            source.end_sessions();
            self.tell(|| "the log is cut short, or whole again".into());
        }
        if self.random.chance(faults.other_server) {
            self.world.switch_server();
            self.tell(|| "the log is read from another server".into());
        }
    }

    // ---- the end

    fn heal(&mut self) {
        self.judge_others();
        self.stage = Stage::Healed;
        self.tell(|| "everything heals".into());
        self.world.rejects = false;
        self.world.unsteady = false;
        self.world.away.clear();
        self.world.source.heal();
        // That an idle table was set back is noticed at the next start only.
        if self.plan.faults.rollback > 0 {
            for process in 0..self.processes.len() {
                if self.lives(process) {
                    self.kill(process);
                }
            }
        }
        self.need_a_life();
    }

    /// One table's sink was away all the time, and nothing else was wrong.
    fn judge_others(&mut self) {
        let Some(stopped) = self.plan.faults.only_away else { return };
        // What became visible shortly before may still be on its way.
        let age = self.plan.config.checkpoint.age.0;
        let a_while_ago = self.now.saturating_sub(100 + 4 * age);
        let end = self.world.history.end(a_while_ago);
        let others = self.members.iter().filter(|t| **t != stopped);
        let lacks = |tab: &Tab| {
            let view = self.world.view(*tab);
            let released = self.processes.last().is_some_and(|p| {
                let status = p.coordinator.status();
                status.tables.get(&self.world.history.tables[*tab]).is_some_and(|t| t.phase != Phase::Streaming)
            });
            let place = view.lacks(self.world.targets[*tab].state(), &end).filter(|_| !released);
            (format!("t{tab}"), place.map(|place| view.say(place)))
        };
        let others: Vec<_> = others.map(lacks).collect();
        self.world.count("one-table-away");
        let verdict = resources::one_table_does_not_stop_others(&format!("t{stopped}"), &others);
        self.world.judge("one-table-does-not-stop-others", verdict);
    }

    /// Is everything at rest? Then one more life begins, which must change nothing.
    fn rest(&mut self) {
        let long_enough = self.now > self.last + 150 && !self.processes.iter().any(|p| p.alive && p.paused);
        if !long_enough || self.stage == Stage::Faults || self.done {
            return;
        }
        let live = (0..self.processes.len()).rfind(|p| self.lives(*p));
        // Two lives that take one session from each other are not at rest.
        let several = (0..self.processes.len()).filter(|p| self.lives(*p)).count() > 1;
        if several && self.plan.source.exclusive {
            return;
        }
        let quiet = live.is_some_and(|process| {
            let coordinator = &self.processes[process].coordinator;
            coordinator.is_running() && coordinator.waiting().iter().all(|w| w.what == "a snapshot")
        });
        if !quiet || self.world.lacks(&self.members).is_some() {
            return;
        }
        match self.stage {
            Stage::AtRest { since, process } if self.now > since + 60 && self.processes.len() > process => self.judge_rest(),
            Stage::AtRest { .. } | Stage::Faults => {}
            Stage::Healed => {
                self.at_rest = self.rest_states();
                for process in 0..self.processes.len() {
                    if self.lives(process) {
                        self.kill(process);
                    }
                }
                self.stage = Stage::AtRest { since: self.now, process: self.processes.len() };
                self.tell(|| "everything is at rest".into());
                self.need_a_life();
            }
        }
    }

    fn rest_states(&self) -> Vec<(Option<TableState>, Contents)> {
        let contents = |t: &Target| match t {
            Target::Staging(_) => t.contents(),
            // A row of a keyless target may come twice where nothing compares, also late.
            Target::Versioned(_) => Contents { kept: BTreeMap::new(), ..t.contents() },
        };
        self.world.targets.iter().map(|t| (t.state().cloned(), contents(t))).collect()
    }

    fn judge_rest(&mut self) {
        let after = self.rest_states();
        let before = std::mem::take(&mut self.at_rest);
        // What a table shows that nobody copies is nobody's promise: a late write of an older life may still reach it.
        let copied = |tab: &usize| self.members.contains(tab) && !self.world.needs_snapshot(*tab);
        let copied: Vec<usize> = (0..before.len()).filter(copied).collect();
        for tab in copied {
            let ((s0, c0), (s1, c1)) = (&before[tab], &after[tab]);
            let verdict = starting::recovery_is_a_projection(&format!("t{tab}"), (s0, c0), (s1, c1));
            self.world.judge("recovery-is-a-projection", verdict);
        }
        self.done = true;
    }

    fn end(&mut self) {
        let missing = self.world.lacks(&self.members);
        let waiting = self.processes.iter().filter(|p| p.alive).flat_map(|p| p.coordinator.waiting());
        let waiting: Vec<String> = waiting.filter(|w| w.what != "a snapshot").map(|w| format!("{w:?}")).collect();
        let missing = missing.or_else(|| Some("no life comes to rest".into()));
        self.world.judge("converges-after-healing", resources::converges_after_healing(missing.as_deref(), &waiting));
    }
}

/// The answer to a command whose fate nobody knows.
fn unknown(command: &Command) -> Option<Mail> {
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
        Command::Coordinator(Output::Resolve { id, .. }) => Input::Failed { id: *id, why: why() },
        Command::Coordinator(_) => return None,
    };
    Some(Mail::Fact(fact))
}

fn incarnation_of(fact: &Input) -> Option<Incarnation> {
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
fn kind(command: &Command) -> (&'static str, Option<TableName>) {
    match command {
        Command::Write { .. } => ("write", None),
        Command::Coordinator(Output::Commit { table, .. }) => ("commit", Some(table.clone())),
        Command::Coordinator(Output::StorePipelineState { .. }) => ("record", None),
        Command::Coordinator(Output::Acknowledge { .. }) => ("acknowledge", None),
        Command::Coordinator(Output::Resolve { table, .. }) => ("resolve", Some(table.clone())),
        Command::Coordinator(_) => ("", None),
    }
}

fn brief(command: &Command) -> String {
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
struct TraceHash(u64);

impl TraceHash {
    fn note(&mut self, now: u64, what: &impl Hash) {
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
