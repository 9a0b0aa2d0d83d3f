//! One event heap: leads, workers, links, sinks. Commands drained together land in any order but that of their lane.

mod faults;
mod judging;
mod landing;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fault_scenarios::Random;
use kernel::id::{AttemptId, Incarnation, Part, Version, WorkerSession};
use kernel::outcome::WriteOutcome;
use kernel::planted::PlantedBug;
use kernel::route::{FromOwner, IndexAt, Layout, OwnerInput, OwnerOutput, Run, ToOwner};

use super::lead::{Asker, Event, Lead, LeadInput, LeadOutput, number, number_of};
use super::links::{Links, Way};
use super::sinks::{Commit, Cut, Outcome, Row, Sink, Truth};
use super::story::{Fate, Fault, Happening, Kind, Story, Tab, generate};
use super::workshop::Workshop;
use crate::engine::trace::TraceHash;
use crate::oracle::{Violation, owners, resources};

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
    /// What went wrong.
    pub happened: Vec<Happening>,
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

struct Queued(u64, u64, Happens);

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
/// How long everything must stay at rest.
const REST: u64 = 260;

struct World<'a> {
    story: &'a Story,
    bug: Option<PlantedBug>,
    random: Random,
    now: u64,
    order: u64,
    heap: BinaryHeap<Reverse<Queued>>,
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
    happened: Vec<Happening>,
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
            order: 0,
            heap: BinaryHeap::new(),
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
            happened: vec![],
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
        while let Some(Reverse(Queued(at, _, happens))) = self.heap.pop() {
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
            happened: self.happened,
            trace: self.trace.unwrap_or_default(),
        }
    }

    fn at(&mut self, at: u64, happens: Happens) {
        self.order += 1;
        self.heap.push(Reverse(Queued(at, self.order, happens)));
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
                if self.links.passes(link, Way::ToLead, sent, self.now) {
                    self.late(link);
                    let lead = self.links.0[link].lead;
                    self.lead(lead, LeadInput::Heard(Links::session(link), message));
                    self.perhaps_ends(lead);
                }
            }
            Happens::ToWorker { link, sent, message, rows } => {
                if self.links.passes(link, Way::ToWorker, sent, self.now) {
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

    fn command(&mut self, p: usize, output: LeadOutput) {
        match output {
            LeadOutput::Stop => self.end_lead(p),
            LeadOutput::HangUp(session) => self.break_link(Links::of(session), 0),
            LeadOutput::Send(session, message, rows) => {
                let (link, takes, sent) = (Links::of(session), self.takes(), self.now);
                let at = self.links.arrives(link, Way::ToWorker, self.now, takes);
                self.at(at, Happens::ToWorker { link, sent, message, rows });
            }
            LeadOutput::Commit { id, table, commit } => self.command_commit(p, id, table, commit),
            LeadOutput::Take
            | LeadOutput::ReadRecord(_)
            | LeadOutput::Recover(_)
            | LeadOutput::Read { .. }
            | LeadOutput::Delete(..) => {
                let at = self.now + self.takes();
                self.at(at, Happens::LeadLands(p, output, None));
            }
        }
    }

    fn command_commit(&mut self, p: usize, id: u64, table: Tab, commit: Box<Commit>) {
        let drawn = if self.chance(self.story.rates.commits) { Some(self.commit_fate()) } else { None };
        let fate = self.next_commit.remove(&table).or(drawn).filter(|_| !self.healed);
        let mut at = self.now + self.takes();
        let lane = self.lanes.entry((p, table)).or_insert(0);
        at = at.max(*lane + 1);
        *lane = at;
        if fate == Some(Fate::BehindCompaction) {
            self.at(at, Happens::Fault(Fault::Compacts(table)));
            return self.at(at, Happens::LeadLands(p, LeadOutput::Commit { id, table, commit }, None));
        }
        if fate.is_some() {
            self.sinks[table].unknown.extend(&commit.staged);
            self.mark("commit-of-unknown-fate");
        }
        let unknown = LeadInput::Committed { id, table, outcome: Outcome::Unknown };
        match fate {
            None | Some(Fate::BehindCompaction) => {}
            Some(Fate::AnswerLost) => self.at(at + 2, Happens::Lead(p, unknown)),
            Some(Fate::BeforeCompaction) => {
                self.at(at + 1, Happens::Fault(Fault::Compacts(table)));
                self.at(at + 2, Happens::Lead(p, unknown));
            }
            Some(Fate::LinksBreak) => {
                self.break_links(p);
                self.at(at + 2, Happens::Lead(p, unknown));
            }
            Some(Fate::GivenUp) => {
                self.at(at + 2, Happens::Lead(p, unknown));
                self.at(at + 3, Happens::Lead(p, LeadInput::GiveUp(table)));
                at += 20;
            }
            Some(Fate::Lost | Fate::Hangs) => return self.at(at + 2, Happens::Lead(p, unknown)),
            Some(Fate::Late(late)) => {
                self.at(at + 2, Happens::Lead(p, unknown));
                at += late;
            }
        }
        self.at(at, Happens::LeadLands(p, LeadOutput::Commit { id, table, commit }, fate));
    }

    fn commit_fate(&mut self) -> Fate {
        match self.random.below(8) {
            0 => Fate::BehindCompaction,
            1 => Fate::BeforeCompaction,
            2 => Fate::GivenUp,
            3 => Fate::LinksBreak,
            _ => self.fate(80),
        }
    }

    fn fate(&mut self, late: u64) -> Fate {
        match self.random.below(4) {
            0 => Fate::AnswerLost,
            1 => Fate::Lost,
            2 => Fate::Hangs,
            _ => Fate::Late(self.random.range(5, late)),
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

    fn worker_command(&mut self, w: usize, output: OwnerOutput) {
        match output {
            OwnerOutput::Send { session, message } => {
                let (link, takes, sent) = (Links::of(session), self.takes(), self.now);
                let at = self.links.arrives(link, Way::ToLead, self.now, takes);
                self.at(at, Happens::ToLead { link, sent, message });
            }
            OwnerOutput::HangUp { session } => self.break_link(Links::of(session), 0),
            OwnerOutput::LoadIndex { at, .. } => self.in_lane(w, at.index.clone(), Doing::Load(at)),
            OwnerOutput::Locate { attempt, at } => self.in_lane(w, at.index.clone(), Doing::Locate(attempt, at)),
            OwnerOutput::Apply { attempt, index } => {
                let overlay = self.workers[w].machine.overlay(attempt);
                self.in_lane(w, index.clone(), Doing::Apply(index, overlay));
            }
            OwnerOutput::DropIndex { index } => self.in_lane(w, index.clone(), Doing::Drop(index)),
            OwnerOutput::Write { attempt, part, runs } => self.command_write(w, attempt, part, &runs),
            OwnerOutput::Forget { attempt } => self.workers[w].machine.forget(attempt),
            OwnerOutput::DeleteStaged { attempt, table } => self.delete(number(&table), attempt),
        }
    }

    /// The commands of one index are carried out one after the other.
    fn in_lane(&mut self, w: usize, index: kernel::route::IndexName, doing: Doing) {
        let takes = self.takes();
        let lane = self.workers[w].machine.lanes.entry(index).or_insert(0);
        *lane = (self.now + takes).max(*lane);
        let at = *lane;
        self.at(at, Happens::Lands(w, doing));
    }

    fn command_write(&mut self, w: usize, attempt: AttemptId, part: Part, runs: &[Run]) {
        let table = number(&part.table);
        let rows = self.workers[w].machine.netted(attempt, self.story.tables[table], runs);
        let drawn = if self.chance(self.story.rates.writes) { Some(self.fate(150)) } else { None };
        let fate = self.next_write.remove(&table).or(drawn).filter(|_| !self.healed);
        let mut at = self.now + self.takes();
        if fate.is_some() {
            self.mark("write-of-unknown-fate");
        }
        let failed = OwnerInput::Wrote { attempt, outcome: WriteOutcome::Transient { why: "no answer".into() } };
        match fate {
            Some(Fate::BehindCompaction | Fate::BeforeCompaction | Fate::GivenUp | Fate::LinksBreak) | None => {}
            Some(Fate::Hangs) => {}
            Some(Fate::AnswerLost) => self.at(at + 2, Happens::Worker(w, failed)),
            Some(Fate::Lost) => return self.at(at + 2, Happens::Worker(w, failed)),
            Some(Fate::Late(late)) => {
                self.at(at + 2, Happens::Worker(w, failed));
                at += late;
            }
        }
        self.at(at, Happens::Lands(w, Doing::Write { attempt, part, rows, fate }));
    }
}

fn session_lost(session: WorkerSession) -> (LeadInput, OwnerInput) {
    (LeadInput::Lost(session), OwnerInput::SessionLost { session })
}

impl World<'_> {
    /// Has everything come to rest?
    fn rest(&mut self) {
        if !self.healed || self.done || self.violation.is_some() {
            return;
        }
        let end = self.end();
        let awake = self.leads.iter().all(|l| l.still.is_none()) && self.workers.iter().all(|w| w.still.is_none());
        let rests = awake && self.newest().is_some_and(|p| self.leads[p].machine.is_at_rest(end)) && self.missing().is_none();
        if !rests {
            self.rests_since = None;
            return;
        }
        let since = *self.rests_since.get_or_insert(self.now);
        if self.now < since + REST {
            return;
        }
        for w in 0..self.workers.len() {
            let newest = self.newest();
            let serves = self.links.present(w).is_some_and(|l| Some(self.links.0[l].lead) == newest);
            if self.workers[w].alive && serves {
                let held = self.workers[w].machine.held().into_iter().collect();
                self.judge("rows-held-equal-rows-known", owners::nothing_is_held_at_rest(w as u64, &held));
            }
        }
        self.done = true;
    }

    fn kind(&self, table: Tab) -> Kind {
        self.story.tables[table]
    }
}
