//! One agenda. Commands drained together land in any order but that of their lane. What goes wrong is asked of the schedule
//! at each occasion, and noted when it happens: those steps, with the workload, the options and the dice, are the run.

mod commands;
mod hands;
mod older;
mod steps;
pub(crate) mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fault_scenarios::{Command as Name, Dice, Moment, Request, Scenario, Small, Step, Then, What, When, generate};
use kernel::coordinator::{Coordinator, Input, Operator, Output, StopReason};
use kernel::id::Incarnation;
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::planted::PlantedBug;
use kernel::state::{Phase, TableState};
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};

use commands::incarnation_of;
use trace::{Trace, TraceHash};

use crate::agenda::Agenda;
use crate::history::{Contents, Tab};
use crate::oracle::{Violation, outcomes, resources, starting};
use crate::plan::Plan;
use crate::process::{Command, Lane, Mail, Process};
use crate::schedule::Schedule;
use crate::sinks::Target;
use crate::source::Said;
use crate::source::chunks::transaction_number;
use crate::tell;
use crate::world::{World, key};

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
    /// What went wrong, as steps. With the workload, the options and the dice they make the same run again.
    pub steps: Vec<Step>,
    /// Member tables at the end, and how many of them need a snapshot.
    pub tables: (usize, usize),
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64, bug: Option<PlantedBug>, trace: bool) -> Report {
    let (scenario, swarm) = generate(seed);
    Engine::new(&scenario, Schedule::Swarm(swarm), bug, Trace::of(trace)).run()
}

/// The scenario of a run: what the seed made, with the steps that happened.
pub fn story_of(seed: u64, report: &Report) -> Scenario {
    let mut scenario = generate(seed).0;
    scenario.options.heals = Some(scenario.heals());
    scenario.steps.clone_from(&report.steps);
    scenario
}

/// Plays a scenario, and tells it so that a person can read it.
pub fn tell(scenario: &Scenario, bug: Option<PlantedBug>) -> Report {
    Engine::new(scenario, Schedule::of(&scenario.steps), bug, Trace::Story(vec![])).run()
}

/// Plays a scenario.
pub fn play(scenario: &Scenario, bug: Option<PlantedBug>, trace: bool) -> Report {
    Engine::new(scenario, Schedule::of(&scenario.steps), bug, Trace::of(trace)).run()
}

#[derive(Debug)]
enum Event {
    Land { command: Command, sent: Sent },
    Arrive { process: usize, mail: Mail, of: Option<Name> },
    Timer { process: usize },
    Written { at: u64 },
    Over(Lasting),
    Boot,
    Wake { process: usize },
    Hands,
    Heal,
    End,
}

/// A command on its way.
#[derive(Clone, Debug)]
struct Sent {
    name: Name,
    fate: Fate,
    /// What goes wrong where it lands.
    twist: Option<Then>,
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

/// What began and ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasting {
    /// A table's sink is away.
    Sink(Tab),
    /// The source is.
    Source,
    /// Something can't be read.
    Unreadable,
    /// The log is another.
    AnotherLog,
    /// The log is cut short.
    CutShort,
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

/// People and others have a hand in it every so many ticks.
const HANDS: u64 = 10;

struct Engine {
    world: World,
    plan: Rc<Plan>,
    schedule: Schedule,
    dice: Rc<Dice>,
    now: u64,
    agenda: Agenda<Event>,
    processes: Vec<Process>,
    stage: Stage,
    booting: bool,
    members: BTreeSet<Tab>,
    at_rest: Vec<(Option<TableState>, Contents)>,
    /// Tables that nobody copied when everything was at rest: a new life may begin their snapshots.
    needed: BTreeSet<Tab>,
    /// What has happened.
    fired: Vec<Step>,
    /// Answers to lives, to be given to later ones, and what they answer.
    old_answers: Vec<Input>,
    answered: Vec<Name>,
    inputs: u64,
    hash: TraceHash,
    marks: BTreeMap<&'static str, u64>,
    trace: Trace,
    done: bool,
}

impl Engine {
    fn new(scenario: &Scenario, schedule: Schedule, bug: Option<PlantedBug>, trace: Trace) -> Self {
        let mut plan = Plan::of(scenario);
        plan.config.planted = bug;
        let (plan, dice) = (Rc::new(plan), Rc::new(scenario.dice.clone()));
        let mut engine = Self {
            world: World::new(plan.clone(), dice.clone()),
            members: (0..plan.tables.len()).collect(),
            plan,
            schedule,
            dice,
            now: 0,
            agenda: Agenda::default(),
            processes: vec![],
            stage: Stage::Faults,
            booting: true,
            at_rest: vec![],
            needed: BTreeSet::new(),
            fired: vec![],
            old_answers: vec![],
            answered: vec![],
            inputs: 0,
            hash: TraceHash::default(),
            marks: BTreeMap::new(),
            trace,
            done: false,
        };
        engine.say_plan(scenario);
        engine
    }

    fn run(mut self) -> Report {
        // What is written for a time at which people and others have a hand in it happens then, else by itself.
        for at in self.schedule.times().into_iter().filter(|at| *at == 0 || !at.is_multiple_of(HANDS)) {
            self.at(at, Event::Written { at });
        }
        self.at(0, Event::Boot);
        self.at(HANDS, Event::Hands);
        self.at(self.plan.heals, Event::Heal);
        self.at(self.plan.heals + 5_900, Event::End);
        while let Some((at, event)) = self.agenda.pop() {
            self.now = at;
            self.world.now = at;
            self.happen(event);
            if self.world.memory.violation.is_some() || self.done {
                break;
            }
        }
        if let Some(violation) = &self.world.memory.violation {
            let violation = violation.clone();
            self.trace.both(Some(self.now), || format!("! {}: {}", violation.rule, violation.dump));
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
            steps: self.fired,
            trace: self.trace.lines(),
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.agenda.plan(at, event);
    }

    /// A line for whoever wants to know everything.
    fn tell(&mut self, line: impl FnOnce() -> String) {
        self.trace.everything(self.now, line);
    }

    fn say_plan(&mut self, scenario: &Scenario) {
        if !self.trace.is_none() {
            let without_steps = Scenario { steps: vec![], dice: Dice::default(), ..scenario.clone() };
            without_steps.to_string().lines().for_each(|line| self.trace.both(None, || line.to_string()));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Boot => self.boot(),
            Event::Land { command, sent } => self.land(command, sent),
            Event::Arrive { process, mail, of } => self.reach(process, mail, of),
            Event::Timer { process } => {
                self.processes[process].timer = 0;
                let due = self.processes[process].coordinator.poll_timeout().is_some_and(|d| d.at.0 <= self.now);
                if due {
                    self.arrive(process, Mail::Fact(Input::Timeout));
                } else if self.lives(process) {
                    self.drain(process);
                }
            }
            Event::Written { at } => self.strike(at),
            Event::Over(what) => self.over(what),
            Event::Wake { process } => self.wake(process),
            Event::Hands => {
                self.hands();
                self.judge_older_lives();
                self.at(self.now + HANDS, Event::Hands);
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
        let until_current = self.settle_members();
        let mut config = self.plan.config_of(&self.members);
        config.until_current = until_current;
        config.source_keeps_key_order = self.world.source.keeps_key_order();
        let coordinator = Coordinator::new(Time(self.now), config);
        self.processes.push(Process::new(coordinator, self.members.clone(), until_current));
        let process = self.processes.len() - 1;
        self.trace.both(Some(self.now), || format!("p{process} begins"));
        self.drain(process);
    }

    fn need_a_life(&mut self) {
        if !self.booting && !(0..self.processes.len()).any(|p| self.lives(p)) {
            self.booting = true;
            let at = self.now + self.delay_of_next();
            self.at(at, Event::Boot);
        }
    }

    fn kill(&mut self, process: usize, with_its_mail: bool) {
        self.trace.both(Some(self.now), || format!("p{process} is dead"));
        self.processes[process].alive = false;
        self.note_marks(process);
        self.processes[process].lose_mail = with_its_mail;
    }

    /// A process ends because it is time for another one.
    fn retire(&mut self, process: usize) {
        let with_its_mail = self.dice.chance(Small::Mail, &[process as u64], 500);
        self.kill(process, with_its_mail);
    }

    fn stand_still(&mut self, process: usize, lasts: u64) {
        self.world.count("stood-still");
        self.tell(|| format!("p{process} stands still"));
        self.processes[process].paused = true;
        self.at(self.now + lasts, Event::Wake { process });
    }

    fn note_marks(&mut self, process: usize) {
        for (mark, times) in self.processes[process].coordinator.marks() {
            *self.marks.entry(mark).or_default() += times;
        }
    }

    fn wake(&mut self, process: usize) {
        if !self.processes[process].paused {
            return;
        }
        self.processes[process].paused = false;
        self.processes[process].awake_since = self.now;
        self.trace.both(Some(self.now), || format!("p{process} wakes up"));
        if self.stage != Stage::Faults && self.is_ended_by_people(process) {
            self.retire(process);
            return self.need_a_life();
        }
        for mail in std::mem::take(&mut self.processes[process].queue) {
            self.arrive(process, mail);
        }
        if self.lives(process) {
            self.arrive(process, Mail::Fact(Input::Timeout));
        }
        self.need_a_life();
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
                self.hash.note(self.now, process, &input);
                let outputs = self.processes[process].tell_worker(input);
                if let Err(violation) = self.processes[process].worker.check() {
                    self.world.judge(violation.rule, Err(violation.dump));
                }
                for output in outputs {
                    self.worker_says(process, output);
                }
                return;
            }
            Mail::Chunk { id, chunk } => {
                self.hash.note(self.now, process, &chunk.rows);
                let end = self.world.source.end(self.now);
                let fact = self.processes[process].take_chunk(id, *chunk, end);
                self.give(process, fact);
            }
            Mail::Rows { id, reading, rows } => {
                self.hash.note(self.now, process, &rows.rows);
                let end = self.world.source.end(self.now);
                let (fact, fence) = self.processes[process].take_rows(id, *rows, &end);
                self.world.memory.readings[reading].fence = fence;
                self.give(process, fact);
            }
            Mail::Read { id, said, finished, keys_of } => {
                for said in &said {
                    if let Said::Rows { rows, .. } = said {
                        self.hash.note(self.now, process, rows);
                    }
                }
                let history = self.world.history.clone();
                let one = self.dice.chance(Small::Batches, &[process as u64, id.number], 500);
                let fact = self.processes[process].take_in(&history, one, id, (said, finished), &keys_of);
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
        self.trace.story(self.now, || Some(format!("p{process} {}", tell::input(&fact)?)));
        self.hash.note(self.now, process, &fact);
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
        let proven = match fact {
            Input::VisibilityRead { id, visibility } => Some((*id, &visibility.proven)),
            Input::ChunkRead { id, chunk } => Some((*id, &chunk.visibility.proven)),
            _ => None,
        };
        for (id, name) in proven.iter().flat_map(|(id, names)| names.iter().map(move |name| (*id, name))) {
            if let Some(tx) = transaction_number(name) {
                p.proven.entry(tx).or_default().insert(id);
            }
        }
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
        self.trace.both(Some(self.now), || "everything heals".into());
        self.world.rejects = false;
        self.world.unsteady = false;
        self.world.away.clear();
        self.world.source.heal();
        self.processes.iter_mut().for_each(|p| p.awake_since = self.now);
        for process in 0..self.processes.len() {
            if self.lives(process) && self.is_ended_by_people(process) {
                self.retire(process);
            }
        }
        self.need_a_life();
    }

    /// One table's sink was away all the time, and nothing else was wrong.
    fn judge_others(&mut self) {
        let Some(stopped) = self.plan.stopped else { return };
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
        let long_enough = self.now > self.plan.heals + 50 && !self.processes.iter().any(|p| p.alive && p.paused);
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
                self.needed = (0..self.plan.tables.len()).filter(|tab| self.world.needs_snapshot(*tab)).collect();
                for process in 0..self.processes.len() {
                    if self.lives(process) {
                        self.retire(process);
                    }
                }
                self.stage = Stage::AtRest { since: self.now, process: self.processes.len() };
                self.trace.both(Some(self.now), || "everything is at rest: one more life must change nothing".into());
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
        // What a table shows that nobody copies is nobody's promise: an older life's late write may still reach it.
        let copied = |tab: &usize| self.members.contains(tab) && !self.world.needs_snapshot(*tab) && !self.needed.contains(tab);
        for tab in (0..before.len()).filter(copied).collect::<Vec<_>>() {
            let ((s0, c0), (s1, c1)) = (&before[tab], &after[tab]);
            let s0 = if self.world.is_divided_elsewhere(s0.as_ref(), s1.as_ref(), self.now) { s1 } else { s0 };
            let verdict = starting::recovery_is_a_projection(&format!("t{tab}"), (s0, c0), (s1, c1));
            self.world.judge("recovery-is-a-projection", verdict);
        }
        self.done = true;
    }

    fn end(&mut self) {
        let missing = self.world.lacks(&self.members).or_else(|| Some("no life comes to rest".into()));
        let waiting = self.processes.iter().filter(|p| p.alive).flat_map(|p| p.coordinator.waiting());
        let waiting: Vec<String> = waiting.filter(|w| w.what != "a snapshot").map(|w| format!("{w:?}")).collect();
        self.world.judge("converges-after-healing", resources::converges_after_healing(missing.as_deref(), &waiting));
    }
}
