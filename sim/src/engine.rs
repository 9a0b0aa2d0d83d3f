//! One event heap. Commands drained together land in any order but that of their lane. Faults are biased to the kernel's
//! transitions: any landing and any answer may be the moment of a kill or a pause.

mod commands;
mod hands;
mod older;

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

use commands::{TraceHash, incarnation_of};

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
                self.judge_older_lives();
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
        self.processes[process].awake_since = self.now;
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

    // ---- the end

    fn heal(&mut self) {
        self.judge_others();
        self.stage = Stage::Healed;
        self.tell(|| "everything heals".into());
        self.world.rejects = false;
        self.world.unsteady = false;
        self.world.away.clear();
        self.world.source.heal();
        self.processes.iter_mut().for_each(|p| p.awake_since = self.now);
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
        // Nor is a life at rest that a newer one has superseded.
        let older = |process: usize| self.lives(process) && self.is_superseded(process);
        if (0..self.processes.len()).any(older) {
            return;
        }
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
