//! The worker's half: takes the rows of parts, has them written once they are whole, locates what they replace.
//!
//! It keeps nothing that it could not lose, deletes nothing that was staged (rule O10), and retries nothing: a try that failed is the
//! coordinator's to repeat. Parts are known by their attempts only.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::index::{Change, Durable, Indexes, Wrong};
use super::{Deletions, FromOwner, IndexAt, IndexName, NotWritten, OwnerInput, OwnerOutput, Run, ToOwner};
use crate::id::{AttemptId, Part, Token, WorkerId, WorkerSession};
use crate::invariant::Violation;
use crate::outcome::WriteOutcome;
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

/// An attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Doing {
    part: Part,
    runs: Vec<Run>,
    /// Once it was asked to be written.
    asked: Option<Asked>,
    located: Option<Located>,
    /// A look-up runs, in this.
    locating: Option<IndexAt>,
    written: Writing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asked {
    at: Option<IndexAt>,
    /// It was answered.
    told: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Located {
    base: Token,
    deletions: Deletions,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Writing {
    No,
    Runs,
    Done,
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
        let parts = || self.parts.iter();
        if let Some((attempt, _)) = parts().find(|(_, d)| d.located.is_some() && d.asked.is_none()) {
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

    fn forget_parts(&mut self) {
        if planted!(self.config, PartsOutliveSessions) {
            return;
        }
        for attempt in self.parts.keys().copied().collect::<Vec<_>>() {
            self.forget(attempt);
        }
    }

    fn forget(&mut self, attempt: AttemptId) {
        #[cfg(feature = "planted-bugs")]
        if planted!(self.config, WorkerCleansUp)
            && let Some(doing) = self.parts.get(&attempt).filter(|d| d.written == Writing::Done)
        {
            self.outbox.push_back(OwnerOutput::DeleteStaged { attempt, table: doing.part.table.clone() });
        }
        if self.parts.remove(&attempt).is_some() {
            self.indexes.forget(attempt);
            self.outbox.push_back(OwnerOutput::Forget { attempt });
        }
    }

    // ---- parts

    fn rows(&mut self, attempt: AttemptId, part: Part, index: u32, run: Run) {
        let attempt = self.known_as(attempt, &part);
        let new = || Doing { part, runs: Vec::new(), asked: None, located: None, locating: None, written: Writing::No };
        let doing = self.parts.entry(attempt).or_insert_with(new);
        if doing.runs.len() as u64 != u64::from(index) || doing.asked.is_some() {
            let dump = format!("{attempt}: rows {index} came behind {}", doing.runs.len());
            return self.violate("one-attempt-counts", dump);
        }
        doing.runs.push(run);
    }

    /// An attempt is what it is; the wrong rule goes by the part's name, and finds what was kept.
    fn known_as(&mut self, attempt: AttemptId, part: &Part) -> AttemptId {
        if !planted!(self.config, PartsOutliveSessions) {
            return attempt;
        }
        self.parts.iter().find(|(_, d)| d.part == *part).map_or(attempt, |(known, _)| *known)
    }

    fn write_asked(&mut self, attempt: AttemptId, part: Part, whole: (u32, u64), at: Option<IndexAt>) {
        let attempt = self.known_as(attempt, &part);
        let Some(doing) = self.parts.get_mut(&attempt) else {
            return self.violate("one-attempt-counts", format!("{attempt} is to be written, and none of its rows came"));
        };
        let rows: u64 = doing.runs.iter().map(|run| u64::from(run.rows.count())).sum();
        if (doing.runs.len() as u64, rows) != (u64::from(whole.0), whole.1) {
            let dump =
                format!("{attempt}: {} batches with {rows} rows came, {} with {} were sent", doing.runs.len(), whole.0, whole.1);
            return self.violate("one-attempt-counts", dump);
        }
        let again = doing.asked.replace(Asked { at, told: false }).is_some();
        if again {
            self.mark("asked-again");
        }
        self.go_on(attempt);
    }

    /// Locates, then writes, then tells; each once for what is asked now.
    fn go_on(&mut self, attempt: AttemptId) {
        let Some(doing) = self.parts.get_mut(&attempt) else { return };
        let Some(asked) = &doing.asked else { return };
        if asked.told || doing.locating.is_some() {
            return;
        }
        if let Some(at) = asked.at.clone().filter(|at| doing.located.as_ref().is_none_or(|l| l.base != at.base)) {
            return self.locate(attempt, at);
        }
        match doing.written {
            Writing::Runs => {}
            Writing::No => {
                doing.written = Writing::Runs;
                let (part, runs) = (doing.part.clone(), doing.runs.clone());
                let runs = self.numbered(runs);
                self.outbox.push_back(OwnerOutput::Write { attempt, part, runs });
            }
            Writing::Done => {
                let (part, located) = (doing.part.clone(), doing.located.clone());
                if let Some(asked) = &mut doing.asked {
                    asked.told = true;
                }
                let (base, deletions) = located.map_or_else(Default::default, |l| (Some(l.base), l.deletions));
                self.say(FromOwner::Written { attempt, part, base, deletions });
            }
        }
    }

    /// Looks the keys up, in an index that is exactly where the commit will be.
    fn locate(&mut self, attempt: AttemptId, mut at: IndexAt) {
        if planted!(self.config, IndexIgnoresLayout) {
            let alike = |name: &&IndexName| name.table == at.index.table && name.slot == at.index.slot;
            let known = self.indexes.iter().map(|(name, _)| name).find(alike).map(|name| name.layout.clone());
            at.index.layout = known.unwrap_or(at.index.layout);
        }
        match self.indexes.bound(&at.index) {
            Some(bound) if *bound == at.base => {
                self.mark("index-at-its-base");
                if let Some(doing) = self.parts.get_mut(&attempt) {
                    doing.locating = Some(at.clone());
                }
                self.outbox.push_back(OwnerOutput::Locate { attempt, at });
            }
            _ if self.loading.get(&at.index) == Some(&at.base) => {}
            bound => {
                let mark = if bound.is_some() { "index-at-another-base" } else { "index-not-there" };
                self.mark(mark);
                let from = self.indexes.unbind(&at.index);
                self.loading.insert(at.index.clone(), at.base.clone());
                self.outbox.push_back(OwnerOutput::LoadIndex { at, from });
            }
        }
    }

    fn index_loaded(&mut self, at: IndexAt, outcome: Result<(), String>) {
        if self.loading.get(&at.index) != Some(&at.base) {
            return self.mark("index-loaded-in-vain");
        }
        self.loading.remove(&at.index);
        let same =
            |other: &IndexAt| (&other.index.table, other.index.slot, &other.base) == (&at.index.table, at.index.slot, &at.base);
        let waits = |d: &Doing| d.asked.as_ref().is_some_and(|asked| !asked.told && asked.at.as_ref().is_some_and(same));
        let waiting: Vec<AttemptId> = self.parts.iter().filter(|(_, d)| waits(d)).map(|(attempt, _)| *attempt).collect();
        match outcome {
            Ok(()) => {
                self.indexes.loaded(at.index, at.base);
                waiting.into_iter().for_each(|attempt| self.go_on(attempt));
            }
            Err(why) => {
                waiting.into_iter().for_each(|attempt| self.not_written(attempt, NotWritten::Transient { why: why.clone() }));
            }
        }
    }

    fn located(&mut self, attempt: AttemptId, at: &IndexAt, deletions: Deletions) {
        let early = planted!(self.config, IndexBeforeDurable);
        let Some(doing) = self.parts.get_mut(&attempt).filter(|d| d.locating.as_ref() == Some(at)) else {
            // What it would do to the index must not stay.
            self.outbox.push_back(OwnerOutput::Forget { attempt });
            return self.mark("located-in-vain");
        };
        doing.locating = None;
        // The index may have moved on meanwhile: then what was found is of no snapshot that can be named.
        if self.indexes.bound(&at.index) == Some(&at.base) {
            doing.located = Some(Located { base: at.base.clone(), deletions });
            self.indexes.located(&at.index, attempt);
            if early {
                self.outbox.push_back(OwnerOutput::Apply { attempt, index: at.index.clone() });
            }
        }
        self.go_on(attempt);
    }

    fn wrote(&mut self, attempt: AttemptId, outcome: WriteOutcome) {
        let Some(doing) = self.parts.get_mut(&attempt).filter(|d| d.written == Writing::Runs) else {
            return self.mark("wrote-in-vain");
        };
        match outcome {
            WriteOutcome::Written => {
                doing.written = Writing::Done;
                self.go_on(attempt);
            }
            WriteOutcome::Rejected { why } => self.not_written(attempt, NotWritten::Rejected { why }),
            WriteOutcome::Transient { why } => self.not_written(attempt, NotWritten::Transient { why }),
        }
    }

    fn not_written(&mut self, attempt: AttemptId, why: NotWritten) {
        if let Some(doing) = self.parts.get_mut(&attempt) {
            if let Some(asked) = &mut doing.asked {
                asked.told = true;
            }
            self.say(FromOwner::NotWritten { attempt, why });
        }
    }

    #[cfg(not(feature = "planted-bugs"))]
    fn numbered(&mut self, runs: Vec<Run>) -> Vec<Run> {
        runs
    }

    /// Rows bear the versions that the coordinator gave; the wrong rule gives others.
    #[cfg(feature = "planted-bugs")]
    fn numbered(&mut self, mut runs: Vec<Run>) -> Vec<Run> {
        if planted!(self.config, VersionByWorker) {
            for run in &mut runs {
                run.first = crate::id::Version::new(run.first.incarnation(), self.own_versions);
                self.own_versions += u64::from(run.rows.count());
            }
        }
        runs
    }
}
