//! Replaying: the same machines are told the same, and must say the same, with every rule checked after every step.

use std::collections::VecDeque;

use kernel::coordinator::{Coordinator, Input, Output, ToWorker};
use kernel::id::AttemptId;
use kernel::outcome::WriteOutcome;
use kernel::time::Time;
use kernel::worker::{Worker, WorkerInput, WorkerOutput};

use crate::read::{Heard, Line, Step, WorkerHeard};
use crate::said::Said;
use crate::veil::Veil;
use crate::write::End;

/// The machines of a life that was traced.
pub struct Replay {
    coordinator: Option<Coordinator>,
    worker: Worker,
    /// What the coordinator said to the worker, and the worker has not heard.
    to_worker: VecDeque<ToWorker>,
    /// What the worker said to the coordinator, and the coordinator has not heard.
    to_coordinator: VecDeque<(AttemptId, WriteOutcome)>,
    said: Said,
}

/// What is seen of a replay.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A life begins.
    Begins,
    /// The coordinator is about to take a fact.
    Hears(&'a Input),
    /// The coordinator gave a command.
    Says(&'a Output),
    /// The worker is about to take a fact.
    WorkerHears(&'a WorkerInput),
    /// The worker gave a command.
    WorkerSays(&'a WorkerOutput),
    /// Nothing follows.
    Ends(End),
}

/// Why a replay can't go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// A machine does another thing now.
    #[error("line {line}: the machine does another thing than the one that was traced\n  traced: {traced}\n  now:    {now}")]
    Differs {
        /// Where.
        line: u64,
        /// What the trace says.
        traced: String,
        /// What this machine says.
        now: String,
    },
    /// A rule is broken.
    #[error("line {line}: {rule} is broken: {dump}")]
    Broken {
        /// The step after which it is.
        line: u64,
        /// The invariant.
        rule: &'static str,
        /// What was seen.
        dump: String,
    },
    /// No process can have been told that.
    #[error("line {line}: {what}")]
    Impossible {
        /// Where.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

impl Default for Replay {
    fn default() -> Self {
        Self::new()
    }
}

impl Replay {
    /// Before the first step.
    pub fn new() -> Self {
        Self {
            coordinator: None,
            worker: Worker::new(),
            to_worker: VecDeque::new(),
            to_coordinator: VecDeque::new(),
            said: Said::new(Veil::Lifted),
        }
    }

    /// The coordinator, once the first step was taken.
    pub fn coordinator(&self) -> Option<&Coordinator> {
        self.coordinator.as_ref()
    }

    /// Takes one step. After an error the replay is over.
    pub fn take(&mut self, step: &Step, mut see: impl FnMut(Time, Seen<'_>)) -> Result<(), ReplayError> {
        let (line, now) = (step.line, step.now);
        let impossible = |what: String| ReplayError::Impossible { line, what };
        match (&step.heard, &mut self.coordinator) {
            (Heard::Begins(config), None) => {
                see(now, Seen::Begins);
                self.coordinator = Some(Coordinator::new(now, (**config).clone()));
            }
            (Heard::Begins(_), Some(_)) => return Err(impossible("a life begins in another one".into())),
            (_, None) => return Err(impossible("something happens before a life begins".into())),
            (Heard::Coordinator(input), Some(coordinator)) => {
                if let Input::Written { attempt, outcome } = &**input {
                    let place = self.to_coordinator.iter().position(|said| said.0 == *attempt && said.1 == *outcome);
                    let place = place.ok_or_else(|| impossible(format!("the worker has not said this of {attempt:?}")))?;
                    self.to_coordinator.remove(place);
                }
                see(now, Seen::Hears(input));
                coordinator.handle_input(now, (**input).clone());
            }
            (Heard::Worker(heard), Some(_)) => {
                let input = self.worker_input(heard).map_err(impossible)?;
                see(now, Seen::WorkerHears(&input));
                self.worker.handle_input(input);
            }
            (Heard::Ends(end), Some(_)) => see(now, Seen::Ends(*end)),
        }
        self.drain(now, see);
        // Of a rule that is broken all else may follow.
        self.check(line)?;
        self.compare(step)
    }

    fn worker_input(&mut self, heard: &WorkerHeard) -> Result<WorkerInput, String> {
        let told = match heard {
            WorkerHeard::ToldToWrite(attempt) => (attempt, true),
            WorkerHeard::ToldToAbandon(attempt) => (attempt, false),
            WorkerHeard::Netted(attempt, outcome) => {
                return Ok(WorkerInput::Netted { attempt: *attempt, outcome: outcome.clone() });
            }
            WorkerHeard::Wrote(attempt, outcome) => {
                return Ok(WorkerInput::Wrote { attempt: *attempt, outcome: outcome.clone() });
            }
        };
        let said = self.to_worker.pop_front().ok_or("the coordinator has said nothing to the worker")?;
        let is_it = match &said {
            ToWorker::Write { attempt, .. } => told == (attempt, true),
            ToWorker::Abandon { attempt } => told == (attempt, false),
        };
        if is_it { Ok(WorkerInput::Told(said)) } else { Err(format!("the coordinator has said another thing first: {said:?}")) }
    }

    fn drain(&mut self, now: Time, mut see: impl FnMut(Time, Seen<'_>)) {
        while let Some(output) = self.coordinator.as_mut().and_then(Coordinator::poll_output) {
            see(now, Seen::Says(&output));
            self.said.coordinator(&output);
            if let Output::Send(told) = output {
                self.to_worker.push_back(told);
            }
        }
        while let Some(output) = self.worker.poll_output() {
            see(now, Seen::WorkerSays(&output));
            self.said.worker(&output);
            if let WorkerOutput::Written { attempt, outcome } = output {
                self.to_coordinator.push_back((attempt, outcome));
            }
        }
    }

    fn compare(&mut self, step: &Step) -> Result<(), ReplayError> {
        let lines = self.said.take();
        let mut now = lines.lines().filter_map(|line| line.strip_prefix("- "));
        let nothing = || "(nothing)".to_owned();
        for Line { number, text } in &step.said {
            let said = now.next();
            if said != Some(text) {
                let now = said.map_or_else(nothing, str::to_owned);
                return Err(ReplayError::Differs { line: *number, traced: text.clone(), now });
            }
        }
        match now.next() {
            None => Ok(()),
            Some(more) => {
                let line = step.said.last().map_or(step.line, |last| last.number);
                Err(ReplayError::Differs { line, traced: nothing(), now: more.into() })
            }
        }
    }

    fn check(&self, line: u64) -> Result<(), ReplayError> {
        let of_coordinator = self.coordinator.as_ref().map_or(Ok(()), Coordinator::check);
        let checked = of_coordinator.and_then(|()| self.worker.check());
        checked.map_err(|broken| ReplayError::Broken { line, rule: broken.rule, dump: broken.dump })
    }
}
