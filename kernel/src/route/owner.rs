//! The worker's half: whom it serves, and what it hears. What becomes of a part is in [`parts`].
//!
//! It keeps nothing that it could not lose, deletes nothing that was staged (rule O10), and retries nothing: a try that failed is the
//! coordinator's to repeat. Parts are known by their attempts only.

mod parts;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use parts::Doing;

use super::index::{Change, Durable, Indexes, Wrong};
use super::{FromOwner, IndexName, OwnerInput, OwnerOutput, ToOwner};
use crate::id::{AttemptId, Token, WorkerId, WorkerSession};
use crate::invariant::Violation;
use crate::planted::planted;
use crate::session::{Serving, Welcomed};
use crate::time::{Deadline, Duration, Time};

/// What an owner is told once, when it begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OwnerConfig {
    /// Who it is. A process that starts again is another one.
    pub worker: WorkerId,
    /// How often it says that it is there.
    pub alive_interval: Duration,
    /// A session in which nothing was heard for so long is over (rule O3). Several times the interval of [`super::RouterConfig`].
    pub silence: Duration,
    /// The one wrong rule of a simulator's run.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::planted::PlantedBug>,
}

impl OwnerConfig {
    /// Defaults for this worker.
    pub fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            alive_interval: Duration::from_secs(3),
            silence: Duration::from_secs(15),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }
}

#[cfg(feature = "planted-bugs")]
impl crate::planted::Planted for OwnerConfig {
    fn planted(&self) -> Option<crate::planted::PlantedBug> {
        self.planted
    }
}

/// A worker's half, for all tables.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    config: OwnerConfig,
    now: Time,
    serving: Serving,
    parts: BTreeMap<AttemptId, Doing>,
    indexes: Indexes,
    /// Indexes that are being loaded, and where to.
    loading: BTreeMap<IndexName, Token>,
    alive_at: Option<Time>,
    /// When something was last heard in the present session.
    heard_at: Time,
    /// Row numbers of its own, which nobody should see.
    #[cfg(feature = "planted-bugs")]
    own_versions: u64,
    outbox: VecDeque<OwnerOutput>,
    violation: Option<Violation>,
    marks: BTreeMap<&'static str, u64>,
}

impl Owner {
    /// A worker that has served nobody yet.
    pub fn new(now: Time, config: OwnerConfig) -> Self {
        Self {
            config,
            now,
            serving: Serving::default(),
            parts: BTreeMap::new(),
            indexes: Indexes::default(),
            loading: BTreeMap::new(),
            alive_at: None,
            heard_at: now,
            #[cfg(feature = "planted-bugs")]
            own_versions: 0,
            outbox: VecDeque::new(),
            violation: None,
            marks: BTreeMap::new(),
        }
    }

    /// Takes one fact. Drain [`Owner::poll_output`] before the next.
    pub fn handle_input(&mut self, now: Time, input: OwnerInput) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        match input {
            OwnerInput::Connected { session } => self.connected(session),
            OwnerInput::Heard { session, message } => self.heard(session, message),
            OwnerInput::SessionLost { session } => {
                if self.serving.lost(session) {
                    self.alive_at = None;
                    self.forget_parts();
                }
            }
            OwnerInput::IndexLoaded { at, outcome } => self.index_loaded(at, outcome),
            OwnerInput::Located { attempt, at, deletions } => self.located(attempt, &at, deletions),
            OwnerInput::Wrote { attempt, outcome } => self.wrote(attempt, outcome),
            OwnerInput::Timeout => {}
        }
        self.end_silent_session();
        self.say_alive();
    }

    /// The next command. Drain them all before the next input.
    pub fn poll_output(&mut self) -> Option<OwnerOutput> {
        self.outbox.pop_front()
    }

    /// When, and why, it wants [`OwnerInput::Timeout`] though nothing has happened.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let alive = self.alive_at.map(|at| Deadline { at, why: "say that it is there" });
        alive.into_iter().chain(self.silent_at().map(|at| Deadline { at, why: "end a silent session" })).min_by_key(|d| d.at)
    }

    /// The attempts whose rows it holds.
    pub fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.parts.keys().copied()
    }

    /// The indexes that it keeps.
    pub fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// Whom it serves.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// How often each rare path was taken.
    pub fn marks(&self) -> &BTreeMap<&'static str, u64> {
        &self.marks
    }

    /// Is every rule that this machine can see kept?
    pub fn check(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        if let Some((attempt, _)) = self.parts.iter().find(|(_, doing)| doing.is_located_unasked()) {
            let dump = format!("{attempt} was located before it was asked for");
            return Err(Violation { rule: "index-at-its-base", dump });
        }
        Ok(())
    }

    fn mark(&mut self, path: &'static str) {
        *self.marks.entry(path).or_default() += 1;
    }

    fn violate(&mut self, rule: &'static str, dump: String) {
        self.violation.get_or_insert(Violation { rule, dump });
    }

    fn say(&mut self, message: FromOwner) {
        if let Some(session) = self.serving.session() {
            self.outbox.push_back(OwnerOutput::Send { session, message });
        }
    }

    // ---- sessions

    fn connected(&mut self, session: WorkerSession) {
        self.heard_at = self.now;
        self.alive_at = None;
        if let Some(before) = self.serving.connected(session) {
            self.outbox.push_back(OwnerOutput::HangUp { session: before });
        }
        self.forget_parts();
        let message = FromOwner::Hello { worker: self.config.worker, served: self.serving.highest() };
        self.outbox.push_back(OwnerOutput::Send { session, message });
    }

    /// When the present session will have been silent for too long, welcomed or not.
    fn silent_at(&self) -> Option<Time> {
        self.serving.present().filter(|_| !planted!(self.config, SilenceIgnored)).map(|_| self.heard_at + self.config.silence)
    }

    fn end_silent_session(&mut self) {
        let Some(session) = self.serving.present().filter(|_| self.silent_at().is_some_and(|at| at <= self.now)) else { return };
        self.mark("coordinator-silent");
        self.outbox.push_back(OwnerOutput::HangUp { session });
        self.serving.lost(session);
        self.alive_at = None;
        self.forget_parts();
    }

    fn heard(&mut self, session: WorkerSession, message: ToOwner) {
        if self.serving.present() == Some(session) {
            self.heard_at = self.now;
        }
        if let ToOwner::Welcome { incarnation } = message {
            match self.serving.welcome(session, incarnation) {
                Welcomed::Refused => {
                    self.mark("older-life-refused");
                    self.outbox.push_back(OwnerOutput::HangUp { session });
                }
                Welcomed::Serves { another } => {
                    if another {
                        self.mark("adopted-by-a-newer-life");
                    }
                    self.alive_at = Some(self.now + self.config.alive_interval);
                    self.forget_parts();
                }
                Welcomed::Stale => self.mark("late-message-of-an-old-session"),
            }
            return;
        }
        if !self.serving.serves(session) {
            self.mark("late-message-of-an-old-session");
            if !planted!(self.config, LateMessagesTaken) {
                return;
            }
        }
        match message {
            ToOwner::Welcome { .. } | ToOwner::Alive => {}
            ToOwner::Rows { attempt, part, index, run } => self.rows(attempt, part, index, run),
            ToOwner::Write { attempt, part, batches, rows, at } => self.write_asked(attempt, part, (batches, rows), at),
            ToOwner::Abandon { attempt } => self.forget(attempt),
            ToOwner::Committed { table, identity, layout, from, to, published } => {
                let wrong = self.wrong();
                let (to, published) = (to.as_ref(), &published);
                let commit = Durable { table: &table, identity: &identity, layout: &layout, from: &from, to, published };
                for change in self.indexes.committed(commit, wrong) {
                    match change {
                        Change::Apply(index, attempt) => {
                            self.mark("index-went-on");
                            self.outbox.push_back(OwnerOutput::Apply { attempt, index });
                        }
                        Change::Drop(index) => {
                            self.mark("index-dropped");
                            self.outbox.push_back(OwnerOutput::DropIndex { index });
                        }
                    }
                }
                let done: Vec<AttemptId> = published.values().filter(|a| self.parts.contains_key(*a)).copied().collect();
                for attempt in done {
                    self.parts.remove(&attempt);
                    self.outbox.push_back(OwnerOutput::Forget { attempt });
                }
            }
        }
    }

    fn wrong(&self) -> Wrong {
        Wrong {
            blindly: planted!(self.config, IndexGoesOnBlindly),
            early: planted!(self.config, IndexBeforeDurable),
            whatever_layout: planted!(self.config, IndexIgnoresLayout),
        }
    }

    fn say_alive(&mut self) {
        if self.alive_at.is_some_and(|at| at <= self.now) {
            self.alive_at = Some(self.now + self.config.alive_interval);
            self.say(FromOwner::Alive);
        }
    }
}
