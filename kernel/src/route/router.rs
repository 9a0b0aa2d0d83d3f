//! The coordinator's half: its facts, and what each changes. What is sent to whom follows from the state (`attempts`).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::share::{Divided, Share};
use super::{Layout, RouterInput, RouterOutput};
use crate::config::Retry;
use crate::coordinator::RowRange;
use crate::id::{AttemptId, CheckpointNumber, Incarnation, Slot, TableName, WorkerId};
use crate::invariant::Violation;
use crate::session::Sessions;
use crate::time::{Deadline, Duration, Time};

/// What a router is told once, when it begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RouterConfig {
    /// A part that was asked for longer ago is attempted at another worker, if there is one (rule O10).
    pub part_wait: Duration,
    /// A session in which nothing was heard for so long is over (rule O3). Several times the interval of [`super::OwnerConfig`].
    pub silence: Duration,
    /// How often it says in each session that it is there.
    pub alive_interval: Duration,
    /// How often it is said that there is no worker.
    pub worker_wait: Duration,
    /// After so long without a proof that this life is the newest it asks (rule O4); `None` where somebody else does.
    pub validate_interval: Option<Duration>,
    /// Retries of parts whose writing failed.
    pub retry: Retry,
    /// The one wrong rule of a simulator's run.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::planted::PlantedBug>,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            part_wait: Duration::from_secs(120),
            silence: Duration::from_secs(15),
            alive_interval: Duration::from_secs(3),
            worker_wait: Duration::from_secs(30),
            validate_interval: None,
            retry: Retry { first: Duration::from_millis(200), most: Duration::from_secs(10), give_up_after: None },
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

#[cfg(feature = "planted-bugs")]
impl crate::planted::Planted for RouterConfig {
    fn planted(&self) -> Option<crate::planted::PlantedBug> {
        self.planted
    }
}

/// Something that a router waits for, and what ends it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterWaiting {
    /// What.
    pub what: String,
    /// By what it ends.
    pub until: &'static str,
}

/// The coordinator's half of a table with several owners, for all tables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Router {
    pub(super) config: RouterConfig,
    pub(super) now: Time,
    pub(super) incarnation: Incarnation,
    pub(super) sessions: Sessions,
    pub(super) tables: BTreeMap<TableName, Divided>,
    pub(super) next_attempt: u64,
    /// Rows that are kept for parts that are not written.
    pub(super) kept: u64,
    /// Since when there is no worker, and when it is said next.
    pub(super) alone: Option<(Time, Time)>,
    pub(super) validate_at: Option<Time>,
    pub(super) alive_at: Time,
    pub(super) validating: bool,
    pub(super) over: bool,
    pub(super) outbox: VecDeque<RouterOutput>,
    pub(super) violation: Option<Violation>,
    pub(super) marks: BTreeMap<&'static str, u64>,
}

impl Router {
    /// Of a life that has taken its incarnation. No worker is there yet, and no table.
    pub fn new(now: Time, incarnation: Incarnation, config: RouterConfig) -> Self {
        let validate_at = config.validate_interval.map(|interval| now + interval);
        let alone = Some((now, now + config.worker_wait));
        let alive_at = now + config.alive_interval;
        Self {
            config,
            now,
            incarnation,
            sessions: Sessions::new(incarnation),
            tables: BTreeMap::new(),
            next_attempt: 0,
            kept: 0,
            alone,
            validate_at,
            alive_at,
            validating: false,
            over: false,
            outbox: VecDeque::new(),
            violation: None,
            marks: BTreeMap::new(),
        }
    }

    /// Takes one fact. Drain [`Router::poll_output`] before the next.
    pub fn handle_input(&mut self, now: Time, input: RouterInput) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        if self.over {
            return;
        }
        match input {
            RouterInput::TableOpened { table, identity, layout, locates } => {
                let open = Share::new(CheckpointNumber(1), layout);
                let owners = BTreeMap::new();
                let divided = Divided { identity, locates, layout, wanted: None, owners, open, closed: VecDeque::new() };
                if self.tables.insert(table.clone(), divided).is_some() {
                    self.violate("everything-owed-is-tracked", format!("{table} was opened twice"));
                }
            }
            RouterInput::Taken { table, rows } => self.taken(&table, rows),
            RouterInput::Truncated { table } => self.truncated(&table),
            RouterInput::Closed { table, checkpoint } => self.closed(&table, checkpoint),
            RouterInput::TurnCame { table, checkpoint, base } => self.turn_came(&table, checkpoint, base),
            RouterInput::CommitSent { table } => self.commit_sent(&table),
            RouterInput::CommitAnswered { table, answer } => self.commit_answered(&table, answer),
            RouterInput::GivenUp { table } => self.given_up(&table),
            RouterInput::LayoutWanted { table, layout } => self.layout_wanted(&table, layout),
            RouterInput::MoveWanted { table, slot } => self.move_slot(&table, slot, "slot-moved"),
            RouterInput::Heard { session, message } => self.heard(session, message),
            RouterInput::SessionLost { session } => self.session_lost(session),
            RouterInput::Validated { newest } => self.validated(newest),
            RouterInput::Timeout => {}
        }
        self.progress();
    }

    /// The next command. Drain them all before the next input.
    pub fn poll_output(&mut self) -> Option<RouterOutput> {
        self.outbox.pop_front()
    }

    /// When, and why, it wants [`RouterInput::Timeout`] though nothing has happened.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines().into_iter().min_by_key(|d| d.at)
    }

    /// How the rows of a table's open checkpoint are to be divided.
    pub fn layout_of(&self, table: &TableName) -> Option<Layout> {
        self.tables.get(table).map(|t| t.layout)
    }

    /// Is a commit of the table on its way whose outcome is not known? Nothing of it is given up meanwhile.
    pub fn is_sent(&self, table: &TableName) -> bool {
        self.tables.get(table).and_then(|t| t.closed.front()).is_some_and(Share::is_sent)
    }

    /// The rows that the row store must hold for parts, no more and no fewer.
    pub fn rows_held(&self) -> impl Iterator<Item = &RowRange> {
        let shares = self.tables.values().flat_map(Divided::shares);
        shares.flat_map(|(share, _)| share.parts.values()).flat_map(|p| &p.runs).map(|run| &run.rows)
    }

    /// The workers that may own slots.
    pub fn workers(&self) -> Vec<WorkerId> {
        self.sessions.workers().collect()
    }

    /// Who has a slot, if anybody.
    pub fn owner_of(&self, table: &TableName, slot: Slot) -> Option<WorkerId> {
        self.tables.get(table).and_then(|t| t.owners.get(&slot)).copied()
    }

    /// Are some parts of a checkpoint written and others not?
    pub fn is_between_owners(&self) -> bool {
        self.tables.values().filter_map(|t| t.closed.front()).any(|share| {
            let written = share.parts.values().filter(|p| p.written.is_some()).count();
            written > 0 && written < share.parts.len()
        })
    }

    /// How often each rare path was taken.
    pub fn marks(&self) -> &BTreeMap<&'static str, u64> {
        &self.marks
    }

    pub(super) fn mark(&mut self, path: &'static str) {
        *self.marks.entry(path).or_default() += 1;
    }

    pub(super) fn push(&mut self, output: RouterOutput) {
        if self.over {
            return;
        }
        match self.check_edge(&output) {
            Ok(()) => self.outbox.push_back(output),
            Err(violation) => self.violate(violation.rule, violation.dump),
        }
    }

    /// Our own caller broke the contract, or a rule is broken: this life is over, and nothing that was prepared goes out.
    pub(super) fn violate(&mut self, rule: &'static str, dump: String) {
        self.violation.get_or_insert(Violation { rule, dump });
        self.over = true;
        self.outbox.clear();
    }

    pub(super) fn next_attempt(&mut self) -> AttemptId {
        self.next_attempt += 1;
        AttemptId { incarnation: self.incarnation, number: self.next_attempt }
    }
}
