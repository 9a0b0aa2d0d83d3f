//! A lead: what a coordinator's checkpoints do, as little of it as the router beside it needs.

mod committing;
mod reading;

use std::collections::{BTreeMap, VecDeque};

use kernel::coordinator::RowRange;
use kernel::id::{
    AttemptId, BatchId, CheckpointNumber, CommitId, Identity, Incarnation, Slot, TableName, Token, Version, WorkerSession,
};
use kernel::planted::PlantedBug;
use kernel::route::{CommitAnswer, FromOwner, Layout, Router, RouterConfig, RouterInput, RouterOutput, Run, ToOwner};
use kernel::time::{Duration, Time};

use super::sinks::{Commit, Cut, Outcome, Row, State, encoded};
use super::story::{Change, Key, Kind, Limits, Tab, Value};
use crate::oracle::{Verdict, owners};

/// What the log says next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Change(Tab, Change),
    Ended,
}

/// A fact for a lead.
#[derive(Clone, Debug)]
pub(super) enum LeadInput {
    Took(Incarnation),
    Recovered(Tab, Option<State>, u64),
    Read { id: u64, events: Vec<(Cut, Event)> },
    Committed { id: u64, table: Tab, outcome: Outcome },
    RecordRead { asker: Asker, newest: Incarnation },
    Heard(WorkerSession, FromOwner),
    Lost(WorkerSession),
    Divide(Tab, u32),
    Move(Tab, u32),
    GiveUp(Tab),
    Timeout,
}

/// Who wants to know whether this life is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Router,
    Flight(Tab),
}

/// A command of a lead.
#[derive(Clone, Debug)]
pub(super) enum LeadOutput {
    Take,
    ReadRecord(Asker),
    Recover(Tab),
    Read { id: u64, from: Cut },
    Commit { id: u64, table: Tab, commit: Box<Commit> },
    Send(WorkerSession, ToOwner, Vec<Row>),
    HangUp(WorkerSession),
    Delete(Tab, Vec<AttemptId>),
    Stop,
}

#[derive(Clone, Debug)]
struct Closed {
    number: CheckpointNumber,
    cut: Cut,
    sequence: u64,
    begun: Option<Version>,
}

#[derive(Clone, Debug)]
struct Flight {
    new: State,
    truncate: bool,
    claim: bool,
    /// What is to be committed, once it is gathered.
    commit: Option<Commit>,
    /// The commit that was asked for and not answered.
    asked: Option<u64>,
    retry: Option<u64>,
    /// Somebody else committed, and the record is being asked.
    foreign: Option<u64>,
}

#[derive(Clone, Debug)]
struct Table {
    kind: Kind,
    state: Option<State>,
    token: u64,
    taken: Cut,
    sequence: u64,
    commits: u64,
    checkpoints: u64,
    rows: u32,
    begun: Option<Version>,
    opened: u64,
    closed: VecDeque<Closed>,
    flight: Option<Flight>,
    recovered: bool,
    claimed: bool,
    blocked: Option<u64>,
    moved: u64,
}

impl Table {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            state: None,
            token: 0,
            taken: Cut::default(),
            sequence: 0,
            commits: 0,
            checkpoints: 0,
            rows: 0,
            begun: None,
            opened: 0,
            closed: VecDeque::new(),
            flight: None,
            recovered: false,
            claimed: kind != Kind::Versioned,
            blocked: None,
            moved: 0,
        }
    }

    fn is_open_empty(&self) -> bool {
        self.rows == 0 && self.begun.is_none()
    }

    /// May it close a checkpoint?
    fn is_free(&self) -> bool {
        self.flight.is_none() && self.closed.is_empty() && self.blocked.is_none() && !self.is_open_empty()
    }
}

pub(super) struct Lead {
    pub(super) incarnation: Incarnation,
    pub(super) stopped: bool,
    pub(super) router: Option<Router>,
    pub(super) out: VecDeque<LeadOutput>,
    /// Rows that were given versions since somebody looked.
    pub(super) numbered: Vec<(Tab, Row)>,
    /// The first broken rule.
    pub(super) broken: Option<(&'static str, String)>,
    limits: Limits,
    planted: Option<PlantedBug>,
    now: u64,
    tables: Vec<Table>,
    store: BTreeMap<BatchId, Vec<Row>>,
    batches: u64,
    ids: u64,
    reader: Cut,
    reading: Option<u64>,
    read_at: u64,
    acts: VecDeque<RouterOutput>,
}

/// How long after an empty read the log is read again.
const POLL: u64 = 5;
/// How long a table that could not go on waits before it is read again.
const STALL: u64 = 20;

pub(super) fn name(table: Tab) -> TableName {
    TableName::from(format!("t{table}"))
}

pub(super) fn number(table: &TableName) -> Tab {
    table.as_str().trim_start_matches('t').parse().unwrap_or(0)
}

fn token(number: u64) -> Token {
    Token::from(format!("s{number}"))
}

pub(super) fn number_of(token: &Token) -> u64 {
    token.as_str().trim_start_matches('s').parse().unwrap_or(0)
}

impl Lead {
    pub(super) fn new(now: u64, kinds: &[Kind], limits: Limits, planted: Option<PlantedBug>) -> Self {
        Self {
            incarnation: Incarnation(0),
            stopped: false,
            router: None,
            out: VecDeque::from([LeadOutput::Take]),
            numbered: vec![],
            broken: None,
            limits,
            planted,
            now,
            tables: kinds.iter().map(|kind| Table::new(*kind)).collect(),
            store: BTreeMap::new(),
            batches: 0,
            ids: 0,
            reader: Cut::default(),
            reading: None,
            read_at: 0,
            acts: VecDeque::new(),
        }
    }

    /// Has it copied everything up to there, and nothing on its way?
    pub(super) fn is_at_rest(&self, end: usize) -> bool {
        let rests = |t: &Table| {
            t.recovered
                && t.flight.is_none()
                && t.closed.is_empty()
                && t.is_open_empty()
                && t.blocked.is_none()
                && t.taken.upto >= end
        };
        !self.stopped && self.router.is_some() && self.tables.iter().all(rests)
    }

    pub(super) fn waiting(&self) -> Vec<String> {
        let tables = self.tables.iter().enumerate().filter(|(_, t)| t.flight.is_some() || !t.closed.is_empty());
        let mut waiting: Vec<String> =
            tables.map(|(n, t)| format!("t{n} taken {:?}, {} closed, flight {:?}", t.taken, t.closed.len(), t.flight)).collect();
        waiting.extend(self.router.iter().flat_map(Router::waiting).map(|w| format!("{} until {}", w.what, w.until)));
        waiting
    }

    /// When it wants a `Timeout`.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.router.as_ref().and_then(Router::poll_timeout).map(|d| d.at.0)
    }

    pub(super) fn handle(&mut self, now: u64, input: LeadInput) {
        if self.stopped {
            return;
        }
        self.now = now;
        match input {
            LeadInput::Took(incarnation) => self.took(incarnation),
            LeadInput::Recovered(table, state, at) => self.recovered(table, state, at),
            LeadInput::Read { id, events } => self.read(id, events),
            LeadInput::Committed { id, table, outcome } => self.committed(id, table, outcome),
            LeadInput::RecordRead { asker: Asker::Router, newest } => self.route(RouterInput::Validated { newest: Some(newest) }),
            LeadInput::RecordRead { asker: Asker::Flight(table), newest } => self.validated(table, newest),
            LeadInput::Heard(session, message) => self.route(RouterInput::Heard { session, message }),
            LeadInput::Lost(session) => self.route(RouterInput::SessionLost { session }),
            LeadInput::Divide(table, slots) => {
                let layout = Layout::new(slots).unwrap_or(Layout::WHOLE);
                self.route(RouterInput::LayoutWanted { table: name(table), layout });
            }
            LeadInput::Move(table, slot) => self.route(RouterInput::MoveWanted { table: name(table), slot: Slot(slot) }),
            LeadInput::GiveUp(table) => self.give_up(table, None),
            LeadInput::Timeout => self.route(RouterInput::Timeout),
        }
        self.act();
        self.work();
        if let Err(dump) = self.holds_what_is_known() {
            self.broken.get_or_insert(("rows-held-equal-rows-known", dump));
        }
    }

    fn holds_what_is_known(&self) -> Verdict {
        let Some(router) = self.router.as_ref().filter(|_| !self.stopped) else { return Ok(()) };
        let known = router.rows_held().map(|r| r.batch).collect();
        owners::rows_held_equal_rows_known(&self.store.keys().copied().collect(), &known)
    }

    /// Tells the router something. What it says is done afterwards, in order.
    fn route(&mut self, input: RouterInput) {
        let Some(router) = &mut self.router else { return };
        router.handle_input(Time(self.now), input);
        self.acts.extend(std::iter::from_fn(|| router.poll_output()));
        if let Err(violation) = router.check() {
            self.broken.get_or_insert((violation.rule, violation.dump));
        }
    }

    fn act(&mut self) {
        while let Some(act) = self.acts.pop_front() {
            match act {
                RouterOutput::Send { session, message } => {
                    let rows = match &message {
                        ToOwner::Rows { run, .. } => self.store.get(&run.rows.batch).cloned().unwrap_or_default(),
                        _ => vec![],
                    };
                    self.out.push_back(LeadOutput::Send(session, message, rows));
                }
                RouterOutput::HangUp { session } => self.out.push_back(LeadOutput::HangUp(session)),
                RouterOutput::ReleaseRows { rows } => rows.iter().for_each(|r| {
                    self.store.remove(&r.batch);
                }),
                RouterOutput::DeleteStaged { table, attempts } => {
                    self.out.push_back(LeadOutput::Delete(number(&table), attempts))
                }
                RouterOutput::Gathered { table, base, staged, deletions, .. } => {
                    let table = number(&table);
                    self.tables[table].moved = self.now;
                    let Some(flight) = &mut self.tables[table].flight else { continue };
                    let (new, truncate) = (flight.new, flight.truncate);
                    flight.commit = Some(Commit { token: number_of(&base), new, staged, deletions, truncate });
                    self.send_commit(table);
                }
                RouterOutput::SetBack { table } => self.give_up(number(&table), None),
                RouterOutput::Rejected { .. } | RouterOutput::Unreachable { .. } | RouterOutput::NoWorker { .. } => {}
                RouterOutput::Validate => self.out.push_back(LeadOutput::ReadRecord(Asker::Router)),
                RouterOutput::Superseded { .. } => self.stop(),
            }
        }
    }

    fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.out.clear();
            self.acts.clear();
            self.out.push_back(LeadOutput::Stop);
        }
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    // ---- starting

    fn took(&mut self, incarnation: Incarnation) {
        self.incarnation = incarnation;
        let config = RouterConfig {
            part_wait: Duration(self.limits.part_wait),
            silence: Duration(120),
            alive_interval: Duration(30),
            worker_wait: Duration(100),
            validate_interval: Some(Duration(self.limits.validate)),
            planted: self.planted,
            ..RouterConfig::default()
        };
        let retry = kernel::config::Retry { first: Duration(5), most: Duration(40), give_up_after: None };
        self.router = Some(Router::new(Time(self.now), incarnation, RouterConfig { retry, ..config }));
        self.out.extend((0..self.tables.len()).map(LeadOutput::Recover));
    }

    fn recovered(&mut self, n: Tab, state: Option<State>, at: u64) {
        if state.is_some_and(|s| s.incarnation > self.incarnation) {
            return self.stop();
        }
        let incarnation = self.incarnation;
        let table = &mut self.tables[n];
        (table.state, table.token, table.recovered, table.moved) = (state, at, true, self.now);
        table.taken = state.map_or_else(Cut::default, |s| s.cut);
        table.sequence = state.map_or(0, |s| s.sequence);
        if !table.claimed {
            let none = CommitId { incarnation: Incarnation(0), number: 0 };
            let blank = State { cut: Cut::default(), incarnation, commit: none, sequence: 0, begun: Version::default() };
            let new = State { incarnation, ..state.unwrap_or(blank) };
            let commit = Commit { token: at, new, staged: vec![], deletions: Default::default(), truncate: false };
            table.flight =
                Some(Flight { new, truncate: false, claim: true, commit: Some(commit), asked: None, retry: None, foreign: None });
        }
        let (locates, kind) = (table.kind == Kind::Located, table.kind);
        let layout = Layout::new(self.limits.slots).unwrap_or(Layout::WHOLE);
        let identity = Identity::from(format!("{kind:?}{n}"));
        self.route(RouterInput::TableOpened { table: name(n), identity, layout, locates });
        if self.tables[n].flight.is_some() {
            self.send_commit(n);
        }
        if self.tables.iter().all(|t| t.recovered) {
            self.go_back();
        }
    }

    // ---- what follows from the state

    fn work(&mut self) {
        if self.stopped || self.router.is_none() {
            return;
        }
        let mut back = false;
        for n in 0..self.tables.len() {
            let (now, limits) = (self.now, &self.limits);
            let table = &mut self.tables[n];
            if table.blocked.is_some_and(|until| until <= now) && table.closed.is_empty() && table.flight.is_none() {
                table.blocked = None;
                back = true;
            }
            let full = table.rows >= limits.rows || now >= table.opened + limits.age;
            if table.is_free() && table.taken.coordinate == 0 && full {
                self.close(n);
            }
            let table = &self.tables[n];
            if table.recovered && table.claimed && table.flight.is_none() && !table.closed.is_empty() {
                self.begin_flight(n);
            }
            let table = &self.tables[n];
            if table.flight.as_ref().is_some_and(|f| f.retry.is_some_and(|at| at <= now)) {
                self.send_commit(n);
            }
            let stands =
                self.tables[n].flight.as_ref().is_some_and(|f| !f.claim) && now > self.tables[n].moved + self.limits.hold;
            if stands && self.tables[n].blocked.is_none() {
                self.give_up(n, Some(now + self.limits.hold));
            }
        }
        if back {
            self.go_back();
        }
        self.make_room();
        self.act();
        self.read_on();
    }

    fn rows_held(&self) -> usize {
        self.store.values().map(Vec::len).sum()
    }

    /// At the bound the largest open checkpoint closes, inside a transaction too (rule O9).
    fn make_room(&mut self) {
        if self.rows_held() < self.limits.budget {
            return;
        }
        let free = |n: &Tab| self.tables[*n].is_free() && self.tables[*n].rows > 0;
        if let Some(n) = (0..self.tables.len()).filter(free).max_by_key(|n| self.tables[*n].rows) {
            self.close(n);
            if self.tables[n].claimed {
                self.begin_flight(n);
            }
        }
    }

    fn read_on(&mut self) {
        let ready = self.tables.iter().all(|t| t.recovered);
        let room = self.rows_held() < self.limits.budget || self.store.is_empty();
        if ready && room && self.reading.is_none() && self.read_at <= self.now && !self.stopped {
            let id = self.id();
            self.reading = Some(id);
            self.out.push_back(LeadOutput::Read { id, from: self.reader });
        }
    }
}
