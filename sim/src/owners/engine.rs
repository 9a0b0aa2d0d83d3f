//! One agenda: leads, workers, links, sinks. Commands drained together land in any order but that of their lane.

mod commands;
mod faults;
mod judging;
mod landing;

use std::collections::BTreeMap;

use fault_scenarios::Random;
use kernel::id::{AttemptId, Incarnation, Part, Version};
use kernel::outcome::WriteOutcome;
use kernel::planted::PlantedBug;
use kernel::route::{FromOwner, IndexAt, Layout, OwnerInput, OwnerOutput, Run, ToOwner};

use super::lead::{Asker, Event, Lead, LeadInput, LeadOutput, number, number_of};
use super::links::{Links, Way};
use super::sinks::{Commit, Cut, Outcome, Row, Sink, Truth};
use super::story::{Fate, Fault, Story, Tab, generate};
use super::workshop::Workshop;
use crate::agenda::Agenda;
use crate::engine::trace::TraceHash;
use crate::oracle::{Violation, resources};

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
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64, bug: Option<PlantedBug>, trace: bool) -> Report {
    play(&generate(seed), bug, trace)
}

/// Plays a story.
pub fn play(story: &Story, bug: Option<PlantedBug>, trace: bool) -> Report {
    World::new(story, bug, trace).run()
}

#[derive(Debug)]
enum Happens {
    Lead(usize, LeadInput),
    Worker(usize, OwnerInput),
    LeadLands(usize, LeadOutput, Option<Fate>),
    Lands(usize, Doing),
    ToLead { link: usize, sent: u64, message: FromOwner },
    ToWorker { link: usize, sent: u64, message: ToOwner, rows: Vec<Row> },
    LeadTimer(usize),
    WorkerTimer(usize),
    LeadWakes(usize),
    WorkerWakes(usize),
    SinkIsBack(Tab),
    Fault(Fault),
    Begins,
    Tick,
    Heals,
    Ends,
}

/// What a worker does, on its way.
#[derive(Debug)]
enum Doing {
    Load(IndexAt),
    Locate(AttemptId, IndexAt),
    Apply(kernel::route::IndexName, BTreeMap<u8, Option<(kernel::id::FileName, u64)>>),
    Drop(kernel::route::IndexName),
    Write { attempt: AttemptId, part: Part, rows: Vec<Row>, fate: Option<Fate> },
}

struct Process<M, I> {
    machine: M,
    alive: bool,
    /// It stands still: what comes waits.
    still: Option<Vec<I>>,
    /// The timer that was set last.
    timer: u64,
}

impl<M, I> Process<M, I> {
    fn new(machine: M) -> Self {
        Self { machine, alive: true, still: None, timer: 0 }
    }

    fn is_awake(&self) -> bool {
        self.alive && self.still.is_none()
    }
}

/// Every so many ticks faults by chance may happen, and workers come.
const TICK: u64 = 4;
/// Ticks after healing until everything must be at rest.
const DEADLINE: u64 = 6_000;

struct World<'a> {
    story: &'a Story,
    bug: Option<PlantedBug>,
    random: Random,
    now: u64,
    agenda: Agenda<Happens>,
    leads: Vec<Process<Lead, LeadInput>>,
    workers: Vec<Process<Workshop, (OwnerInput, Vec<Row>)>>,
    links: Links,
    lanes: BTreeMap<(usize, Tab), u64>,
    sinks: Vec<Sink>,
    truth: Truth,
    given: Vec<BTreeMap<Version, Row>>,
    incarnation: Incarnation,
    away: Vec<bool>,
    next_commit: BTreeMap<Tab, Fate>,
    next_write: BTreeMap<Tab, Fate>,
    healed: bool,
    begins: bool,
    rests_since: Option<u64>,
    violation: Option<Violation>,
    inputs: u64,
    hash: TraceHash,
    marks: BTreeMap<&'static str, u64>,
    trace: Option<Vec<String>>,
    done: bool,
}

impl<'a> World<'a> {
    fn new(story: &'a Story, bug: Option<PlantedBug>, trace: bool) -> Self {
        let tables = story.tables.len();
        Self {
            story,
            bug,
            random: Random::of(&[story.seed.unwrap_or(0), 78]),
            now: 0,
            agenda: Agenda::default(),
            leads: vec![],
            workers: vec![],
            links: Links::default(),
            lanes: BTreeMap::new(),
            sinks: story.tables.iter().map(|kind| Sink::new(*kind)).collect(),
            truth: Truth::of(&story.log, tables),
            given: vec![BTreeMap::new(); tables],
            incarnation: Incarnation(0),
            away: vec![false; tables],
            next_commit: BTreeMap::new(),
            next_write: BTreeMap::new(),
            healed: false,
            begins: false,
            rests_since: None,
            violation: None,
            inputs: 0,
            hash: TraceHash::default(),
            marks: BTreeMap::new(),
            trace: trace.then(Vec::new),
            done: false,
        }
    }

    fn run(mut self) -> Report {
        self.at(0, Happens::Tick);
        for happening in &self.story.happenings {
            self.at(happening.at, Happens::Fault(happening.fault));
        }
        let heals = self.story.heals();
        self.at(heals, Happens::Heals);
        self.at(heals + DEADLINE, Happens::Ends);
        while let Some((at, happens)) = self.agenda.pop() {
            self.now = at;
            self.happens(happens);
            if self.violation.is_some() || self.done {
                break;
            }
        }
        let (leads, workers) = (std::mem::take(&mut self.leads), std::mem::take(&mut self.workers));
        let of_leads = leads.iter().filter_map(|l| l.machine.router.as_ref()).flat_map(|r| r.marks());
        for (mark, times) in of_leads.chain(workers.iter().flat_map(|w| w.machine.owner.marks())) {
            *self.marks.entry(mark).or_default() += times;
        }
        Report {
            violation: self.violation,
            inputs: self.inputs,
            hash: self.hash.0,
            marks: self.marks,
            trace: self.trace.unwrap_or_default(),
        }
    }

    fn at(&mut self, at: u64, happens: Happens) {
        self.agenda.plan(at, happens);
    }

    fn mark(&mut self, mark: &'static str) {
        *self.marks.entry(mark).or_default() += 1;
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.trace {
            lines.push(format!("{:>6} {}", self.now, line()));
        }
    }

    fn breaks(&mut self, rule: &'static str, dump: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, at: self.now, dump });
        }
    }

    fn judge(&mut self, rule: &'static str, verdict: crate::oracle::Verdict) {
        if let Err(dump) = verdict {
            self.breaks(rule, dump);
        }
    }

    fn chance(&mut self, permille: u64) -> bool {
        self.story.seed.is_some() && !self.healed && self.random.chance(permille)
    }

    fn takes(&mut self) -> u64 {
        if self.story.seed.is_none() {
            return 1;
        }
        let slow = self.story.rates.slow;
        if !self.healed && self.random.chance(120) { self.random.range(1, slow.max(2)) } else { self.random.range(1, 2) }
    }

    /// Changes of the log that are there now.
    fn end(&self) -> usize {
        self.story.log.partition_point(|t| t.at <= self.now)
    }

    fn newest(&self) -> Option<usize> {
        self.leads.iter().rposition(|l| l.alive)
    }

    fn happens(&mut self, happens: Happens) {
        match happens {
            Happens::Lead(p, input) => self.lead(p, input),
            Happens::Worker(w, input) => self.worker(w, input, vec![]),
            Happens::LeadLands(p, output, fate) => self.lead_lands(p, output, fate),
            Happens::Lands(w, doing) => self.lands(w, doing),
            Happens::ToLead { link, sent, message } => {
                if self.links.passes(link, sent, self.now) {
                    self.late(link);
                    let lead = self.links.0[link].lead;
                    self.lead(lead, LeadInput::Heard(Links::session(link), message));
                    self.perhaps_ends(lead);
                }
            }
            Happens::ToWorker { link, sent, message, rows } => {
                if self.links.passes(link, sent, self.now) {
                    self.late(link);
                    let worker = self.links.0[link].worker;
                    self.worker(worker, OwnerInput::Heard { session: Links::session(link), message }, rows);
                }
            }
            Happens::LeadTimer(p) => {
                let due = self.leads[p].machine.deadline().is_some_and(|at| at <= self.now);
                if due {
                    self.lead(p, LeadInput::Timeout);
                }
            }
            Happens::WorkerTimer(w) => {
                let due = self.workers[w].machine.owner.poll_timeout().is_some_and(|d| d.at.0 <= self.now);
                if due {
                    self.worker(w, OwnerInput::Timeout, vec![]);
                }
            }
            Happens::LeadWakes(p) => {
                for input in self.leads[p].still.take().unwrap_or_default() {
                    self.lead(p, input);
                }
                self.lead(p, LeadInput::Timeout);
            }
            Happens::WorkerWakes(w) => {
                for (input, rows) in self.workers[w].still.take().unwrap_or_default() {
                    self.worker(w, input, rows);
                }
                self.worker(w, OwnerInput::Timeout, vec![]);
            }
            Happens::SinkIsBack(table) => self.away[table] = false,
            Happens::Fault(fault) => self.fault(fault),
            Happens::Begins => {
                self.begins = false;
                if !self.leads.iter().any(Process::is_awake) {
                    let lead = Lead::new(self.now, &self.story.tables, self.story.limits.clone(), self.bug);
                    self.leads.push(Process::new(lead));
                    self.lead(self.leads.len() - 1, LeadInput::Timeout);
                }
            }
            Happens::Tick => self.tick(),
            Happens::Heals => {
                self.healed = true;
                self.away.iter_mut().for_each(|away| *away = false);
                self.next_commit.clear();
                self.next_write.clear();
            }
            Happens::Ends => {
                let missing = self.missing().unwrap_or_else(|| "something waits".into());
                let leads = self.leads.iter().filter(|l| l.alive);
                let waiting: Vec<String> = leads.flat_map(|l| l.machine.waiting()).collect();
                self.judge("converges-after-healing", resources::converges_after_healing(Some(&missing), &waiting));
            }
        }
        self.rest();
    }

    fn late(&mut self, link: usize) {
        if self.links.0[link].broke.is_some() {
            self.mark("late-message");
        }
    }

    // ---- machines

    fn lead(&mut self, p: usize, input: LeadInput) {
        if !self.leads[p].alive {
            return;
        }
        if let Some(waits) = &mut self.leads[p].still {
            if !matches!(input, LeadInput::Timeout) {
                waits.push(input);
            }
            return;
        }
        self.inputs += 1;
        self.hash.note(self.now, p, &format!("{input:?}"));
        self.tell(|| format!("lead {p} < {input:?}"));
        self.leads[p].machine.handle(self.now, input);
        if let Some((rule, dump)) = self.leads[p].machine.broken.take() {
            self.breaks(rule, dump);
        }
        for (table, row) in std::mem::take(&mut self.leads[p].machine.numbered) {
            if let Some(other) = self.given[table].insert(row.version, row).filter(|other| *other != row) {
                self.breaks("a-version-names-one-row", format!("t{table}: {:?} is of {other:?} and of {row:?}", row.version));
            }
        }
        while let Some(output) = self.leads[p].machine.out.pop_front() {
            self.tell(|| format!("lead {p} > {output:?}"));
            self.command(p, output);
        }
        if let Some(at) = self.leads[p].machine.deadline().filter(|at| *at != self.leads[p].timer) {
            self.leads[p].timer = at;
            self.at(at.max(self.now + 1), Happens::LeadTimer(p));
        }
    }

    fn worker(&mut self, w: usize, input: OwnerInput, rows: Vec<Row>) {
        if !self.workers[w].alive {
            return;
        }
        if let Some(waits) = &mut self.workers[w].still {
            if !matches!(input, OwnerInput::Timeout) {
                waits.push((input, rows));
            }
            return;
        }
        self.inputs += 1;
        self.hash.note(self.now, w + 1_000, &(&input, &rows));
        self.tell(|| format!("    worker {w} < {input:?} {rows:?}"));
        self.workers[w].machine.handle(self.now, input, rows);
        if let Err(violation) = self.workers[w].machine.owner.check() {
            self.breaks(violation.rule, violation.dump);
        }
        while let Some(output) = self.workers[w].machine.owner.poll_output() {
            self.tell(|| format!("    worker {w} > {output:?}"));
            self.worker_command(w, output);
        }
        self.workers[w].machine.tidy();
        if let Some(at) = self.workers[w].machine.owner.poll_timeout().map(|d| d.at.0).filter(|at| *at != self.workers[w].timer) {
            self.workers[w].timer = at;
            self.at(at.max(self.now + 1), Happens::WorkerTimer(w));
        }
    }
}
