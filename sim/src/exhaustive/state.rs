//! A state of a small world: lives, what they have asked for, and what may happen next.

mod landing;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use kernel::coordinator::{Coordinator, Input, Output, StopReason};
use kernel::id::{AttemptId, Bound, CommandId, TableName, Token};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::planted::PlantedBug;
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};

use super::Small;
use super::fingerprint::Fingerprint;
use super::judge::{self, Judged, broken, judge};
use super::world::World;
use crate::history::RowImage;
use crate::oracle::{Violation, outcomes, resources};
use crate::process::{Command, Lane, Process};
use crate::sinks::{Commit, Landed, Target};
use crate::source::chunks::{Chunk, bound};
use crate::tell;

/// Everything.
#[derive(Clone, Debug)]
pub(super) struct State {
    world: World,
    lives: Vec<Life>,
    bug: Option<PlantedBug>,
    crashes: u8,
    losses: u8,
    begun: u8,
    /// What was said, where somebody listens.
    heard: Option<Vec<String>>,
}

/// A process, and what it has asked for; of a dead one only that.
#[derive(Clone, Debug)]
struct Life {
    process: Option<Rc<Process>>,
    pending: Vec<Pending>,
    /// Of the process, as long as nothing happens to it.
    fingerprint: Option<u64>,
}

impl Life {
    /// The process, to be changed.
    fn process(&mut self) -> Option<&mut Process> {
        self.fingerprint = None;
        self.process.as_mut().map(Rc::make_mut)
    }
}

#[derive(Clone, Debug, Hash)]
struct Pending {
    command: Command,
    step: Step,
}

/// How far a command is.
#[derive(Clone, Debug, Hash)]
enum Step {
    /// On its way.
    Sent,
    /// Answered as unknown; it may land still.
    SaidUnknown,
    /// It has landed, and this is the answer.
    Landed(Answer),
}

#[derive(Clone, Debug, Hash)]
enum Answer {
    Fact(Box<Input>),
    Chunk { id: CommandId, rows: Vec<RowImage>, end: Option<Bound>, seen: Box<Input> },
}

/// One thing that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The next transaction enters the log.
    Log,
    /// A transaction becomes visible.
    Show(usize),
    /// The source can say that it is.
    List(usize),
    /// A command lands; where nothing can come between, it is answered too.
    Land(usize, usize),
    /// A read of the log lands, and brings a transaction to its end.
    LandWhole(usize, usize),
    /// An answer arrives.
    Answer(usize, usize),
    /// An answer is lost, and the command's fate is unknown.
    AnswerIsLost(usize, usize),
    /// A command is answered as unknown before it lands, if it ever does.
    IsLost(usize, usize),
    /// A life dies, and the next one begins.
    Crash(usize),
    /// A life begins while an older one lives.
    Begin,
}

impl State {
    pub(super) fn first(small: &Small, bug: Option<PlantedBug>) -> Self {
        let mut state = Self {
            world: World::new(small),
            lives: vec![],
            bug,
            crashes: small.crashes,
            losses: small.losses,
            begun: u8::from(small.overlaps),
            heard: None,
        };
        // Nothing can be broken before anything was said.
        let _ = state.begin();
        state
    }

    /// Equal for states that will do the same.
    pub(super) fn fingerprint(&mut self) -> u64 {
        let mut hasher = Fingerprint::default();
        (&self.world, self.crashes, self.losses, self.begun).hash(&mut hasher);
        for life in &mut self.lives {
            hasher.write_u8(u8::from(life.process.is_some()));
            if let Some(process) = &life.process {
                let known = *life.fingerprint.get_or_insert_with(|| Fingerprint::of(|hasher| process.hash_state(hasher)));
                hasher.write_u64(known);
            }
            // In which order things were asked for matters no more: a lane's order is in their numbers.
            let one = |pending: &Pending| Fingerprint::of(|hasher| pending.hash(hasher));
            let all = life.pending.iter().map(one).fold(0u64, u64::wrapping_add);
            (life.pending.len(), all).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What the machines have counted since the last time.
    pub(super) fn forget_counts(&mut self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for life in &mut self.lives {
            // Only of one to which something has happened.
            if life.fingerprint.is_some() {
                continue;
            }
            for (mark, times) in life.process().map(|p| p.coordinator.forget_counts()).unwrap_or_default() {
                *counts.entry(mark).or_default() += times;
            }
        }
        counts
    }

    // ---- what may happen

    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions = vec![];
        if self.world.may_log() {
            actions.push(Action::Log);
        }
        actions.extend(self.world.hidden().map(Action::Show));
        actions.extend(self.world.unsaid().map(Action::List));
        for (life, l) in self.lives.iter().enumerate() {
            for (at, pending) in l.pending.iter().enumerate() {
                match &pending.step {
                    Step::Sent if self.may_land(l, at) => {
                        let reads = matches!(pending.command, Command::Coordinator(Output::ReadLog { .. }));
                        if reads {
                            actions.push(Action::LandWhole(life, at));
                        }
                        if !reads || self.world.small.in_pieces {
                            actions.push(Action::Land(life, at));
                        }
                        if self.losses > 0 && l.process.is_some() && unknown(&pending.command).is_some() {
                            actions.push(Action::IsLost(life, at));
                        }
                    }
                    Step::Sent => {}
                    Step::SaidUnknown => actions.push(Action::Land(life, at)),
                    Step::Landed(_) => {
                        actions.push(Action::Answer(life, at));
                        if self.losses > 0 && unknown(&pending.command).is_some() {
                            actions.push(Action::AnswerIsLost(life, at));
                        }
                    }
                }
            }
            if self.crashes > 0 && l.process.is_some() {
                actions.push(Action::Crash(life));
            }
        }
        if self.begun > 0 {
            actions.push(Action::Begin);
        }
        actions
    }

    /// Is it the first of its lane, and does the answer say something new?
    fn may_land(&self, life: &Life, at: usize) -> bool {
        let pending = &life.pending[at];
        let lane = self.lane(&pending.command);
        let sent = |p: &Pending| matches!(p.step, Step::Sent);
        if lane.is_some() && life.pending[..at].iter().any(|p| sent(p) && self.lane(&p.command) == lane) {
            return false;
        }
        match &pending.command {
            Command::Coordinator(Output::ReadLog { session, restart, .. }) => {
                let later = life.pending[at + 1..].iter().any(|p| self.lane(&p.command) == lane);
                later || self.world.has_more(*session, restart.as_ref())
            }
            Command::Coordinator(Output::ReadVisibility { about, unfinished, .. }) => {
                *unfinished || !self.world.sees(about, false).proven.is_empty()
            }
            _ => true,
        }
    }

    fn lane(&self, command: &Command) -> Option<Lane> {
        let commits = |table: &TableName| Some(Lane::Commits(self.world.table(table)));
        match command {
            Command::Write { table, .. } => Some(Lane::Writes(*table)),
            Command::Coordinator(Output::Commit { table, .. } | Output::Resolve { table, .. }) => commits(table),
            Command::Coordinator(Output::ReleaseStaged { table, .. } | Output::DiscardOlder { table, .. }) => commits(table),
            Command::Coordinator(Output::Acknowledge { .. }) => Some(Lane::Acknowledgements),
            Command::Coordinator(Output::ReadLog { .. }) => Some(Lane::Reads),
            Command::Coordinator(_) => None,
        }
    }

    /// Where nothing must happen any more, everything is copied and acknowledged.
    pub(super) fn rests(&self, actions: &[Action]) -> Judged {
        let lives = |life: &usize| self.lives[*life].process.is_some();
        let goes_on = |action: &Action| match action {
            Action::Log | Action::Show(_) | Action::List(_) => true,
            Action::LandWhole(..) => true,
            Action::Land(life, at) => lives(life) && matches!(self.lives[*life].pending[*at].step, Step::Sent),
            Action::Answer(life, _) => lives(life),
            Action::AnswerIsLost(..) | Action::IsLost(..) | Action::Crash(_) | Action::Begin => false,
        };
        // A life that another one has taken from may not know it yet; that it learns so in time is not searched.
        let newest = self.world.record.as_ref().map(|r| r.incarnation);
        let ours = self.lives.iter().rev().find_map(|l| l.process.as_ref()).map(|p| p.coordinator.incarnation());
        if actions.iter().any(goes_on) || ours != newest {
            return Ok(());
        }
        let waiting = self.lives.iter().rev().find_map(|l| l.process.as_ref()).map(|p| p.coordinator.waiting());
        judge::is_complete(&self.world, &waiting.unwrap_or_default())
    }

    // ---- what happens

    pub(super) fn take(&mut self, action: Action) -> Judged {
        match action {
            Action::Log => self.world.logged += 1,
            Action::Show(tx) => self.world.show(tx),
            Action::List(tx) => self.world.list(tx),
            Action::Land(life, at) => self.land(life, at, false)?,
            Action::LandWhole(life, at) => self.land(life, at, true)?,
            Action::Answer(life, at) => {
                if let Step::Landed(answer) = self.lives[life].pending.remove(at).step {
                    self.answer(life, answer)?;
                }
            }
            Action::AnswerIsLost(life, at) => {
                self.losses -= 1;
                let command = self.lives[life].pending.remove(at).command;
                self.answer_unknown(life, &command)?;
            }
            Action::IsLost(life, at) => {
                self.losses -= 1;
                let pending = &mut self.lives[life].pending[at];
                pending.step = Step::SaidUnknown;
                let command = pending.command.clone();
                self.answer_unknown(life, &command)?;
            }
            Action::Crash(life) => {
                self.crashes -= 1;
                self.die(life);
                self.begin()?;
            }
            Action::Begin => {
                self.begun -= 1;
                self.begin()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Judged {
        let mut config = self.world.small.config();
        config.planted = self.bug;
        let tables = (0..self.world.small.tables.len()).collect();
        let process = Process::new(Coordinator::new(Time(0), config), tables, false);
        self.lives.push(Life { process: Some(Rc::new(process)), pending: vec![], fingerprint: None });
        self.drain(self.lives.len() - 1)
    }

    /// What a dead life asked for may land still, if it changes anything.
    fn die(&mut self, life: usize) {
        let life = &mut self.lives[life];
        life.process = None;
        let changes = |command: &Command| match command {
            Command::Write { .. } => true,
            Command::Coordinator(output) => matches!(
                output,
                Output::Commit { .. }
                    | Output::StorePipelineState { .. }
                    | Output::Acknowledge { .. }
                    | Output::ReleaseStaged { .. }
                    | Output::DiscardOlder { .. }
            ),
        };
        life.pending.retain(|p| !matches!(p.step, Step::Landed(_)) && changes(&p.command));
    }

    // ---- told to people

    pub(super) fn listen(&mut self) {
        self.heard = Some(vec![]);
    }

    pub(super) fn heard(&mut self) -> Vec<String> {
        self.heard.take().unwrap_or_default()
    }

    fn hear(&mut self, line: impl FnOnce() -> Option<String>) {
        if let Some(heard) = &mut self.heard {
            heard.extend(line());
        }
    }

    pub(super) fn say(&self, action: Action) -> String {
        let command = |life: usize, at: usize| match &self.lives[life].pending[at].command {
            Command::Write { attempt, .. } => format!("life {life}'s write of {attempt}"),
            Command::Coordinator(output) => {
                let text = format!("{output:?}");
                format!("life {life}'s {}", text.split([' ', '(']).next().unwrap_or_default())
            }
        };
        let tx = |tx: usize| self.world.small.history.name(tx);
        match action {
            Action::Log => format!("{:?} enters the log", tx(self.world.logged)),
            Action::Show(n) => format!("{:?} becomes visible", tx(n)),
            Action::List(n) => format!("the source can say that {:?} is visible", tx(n)),
            Action::Land(life, at) => format!("{} lands", command(life, at)),
            Action::LandWhole(life, at) => format!("{} lands and brings a transaction to its end", command(life, at)),
            Action::Answer(life, at) => format!("{} is answered", command(life, at)),
            Action::AnswerIsLost(life, at) => format!("the answer to {} is lost", command(life, at)),
            Action::IsLost(life, at) => format!("nobody knows of {}", command(life, at)),
            Action::Crash(life) => format!("life {life} dies, the next one begins"),
            Action::Begin => "another life begins".into(),
        }
    }
}

/// The answer to a command whose fate nobody knows.
fn unknown(command: &Command) -> Option<Input> {
    let why = || "no answer".to_string();
    match command {
        Command::Coordinator(Output::Commit { id, table, .. }) => {
            Some(Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Unknown { why: why() } })
        }
        Command::Coordinator(Output::StorePipelineState { id, .. }) => {
            Some(Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Unknown { why: why() } })
        }
        Command::Write { .. } | Command::Coordinator(_) => None,
    }
}
