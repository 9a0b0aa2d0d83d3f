//! The pump: feeds a coordinator and a worker from an [`Env`] and carries out what they ask.
//!
//! One loop: hand a fact to its machine, drain the machine's commands, start each command, wait for the next answer, for a
//! person, or for the time that the machine named. It decides nothing. It never retries. Answers come back in any order but
//! for those of one lane. Machines hold ids, never rows; the rows are kept here, under those ids, and after every step the row
//! store must hold exactly the batches that the coordinator knows (`rows-held-equal-rows-known`).
//!
//! It knows no runtime: `host` drives it on tokio, a simulator in a world of its own.
#![deny(missing_docs)]

mod again;
mod carry;
mod env;
mod intake;
mod lanes;
#[cfg(test)]
mod tests;
mod witness;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::future::{Either, select};
use futures::{FutureExt, Stream, StreamExt};
use kernel::config::Config;
use kernel::coordinator::{Coordinator, Input, Operator, StopReason};
use kernel::id::AttemptId;
use kernel::invariant::Violation;
use kernel::worker::{Worker, WorkerInput};
use rows::Netted;
use rows::store::RowStore;

pub use env::{Chunk, ChunkEvent, Commit, Env, Failure, Notice, OpenedLog, RowsAgain, RowsWanted, SnapshotChunk, SnapshotRead};
pub use witness::Witness;

use carry::Answer;
use intake::Divided;
use lanes::{Lane, Lanes};

/// Runs one life of a pipeline until it stops, and says why it did. A witness sees all that its machines hear and say.
pub async fn run<E: Env>(
    env: Arc<E>,
    config: Config,
    operators: impl Stream<Item = Operator> + Send + Unpin,
    mut witness: Option<Box<dyn Witness>>,
) -> StopReason {
    let now = env.now();
    if let Some(witness) = &mut witness {
        witness.begins(now, &config);
    }
    let coordinator = Coordinator::new(now, config);
    let mut pump = Pump {
        env,
        witness,
        coordinator,
        worker: Worker::new(),
        facts: VecDeque::new(),
        store: RowStore::new(),
        netted: BTreeMap::new(),
        staged: BTreeMap::new(),
        divided: Divided::new(),
        lanes: Lanes::new(),
        stopped: None,
    };
    pump.run(operators).await
}

/// A fact for one of the machines.
enum Fact {
    Coordinator(Input),
    Worker(WorkerInput),
}

struct Pump<E: Env> {
    env: Arc<E>,
    witness: Option<Box<dyn Witness>>,
    coordinator: Coordinator,
    worker: Worker,
    facts: VecDeque<Fact>,
    store: RowStore,
    /// What was netted and not yet handed to a writer.
    netted: BTreeMap<AttemptId, Box<Netted>>,
    /// What was staged and may be committed.
    staged: BTreeMap<AttemptId, Arc<E::Staged>>,
    /// Where rows are divided since the reader last began anew.
    divided: Divided,
    lanes: Lanes<Answer<E>>,
    stopped: Option<StopReason>,
}

impl<E: Env> Pump<E> {
    async fn run(&mut self, mut operators: impl Stream<Item = Operator> + Send + Unpin) -> StopReason {
        let mut operators_left = true;
        loop {
            self.step();
            if let Some(witness) = &mut self.witness {
                witness.settle(self.stopped.is_some()).await;
            }
            if let Some(reason) = self.stopped.take() {
                // Acknowledgements that were given still reach the source; nothing else is waited for.
                self.lanes.run_out(&Lane::Acknowledgements).await;
                return reason;
            }
            match self.wait(&mut operators, operators_left).await {
                Woken::Answer(answer) => self.answered(answer),
                Woken::Operator(Some(operator)) => self.facts.push_back(Fact::Coordinator(Input::Operator(operator))),
                Woken::Operator(None) => operators_left = false,
                Woken::Time => self.facts.push_back(Fact::Coordinator(Input::Timeout)),
            }
        }
    }

    /// Hands over every fact and starts every command, until nothing is left to do at once.
    fn step(&mut self) {
        self.drain();
        while let Some(fact) = self.facts.pop_front() {
            let now = self.env.now();
            match fact {
                Fact::Coordinator(input) => {
                    if let Some(witness) = &mut self.witness {
                        witness.hears(now, &input);
                    }
                    self.coordinator.handle_input(now, input);
                }
                Fact::Worker(input) => {
                    if let Some(witness) = &mut self.witness {
                        witness.worker_hears(now, &input);
                    }
                    self.worker.handle_input(input);
                }
            }
            self.drain();
        }
        // Only now: a read that was answered is in the store before the machine has heard of it.
        if let (Err(violation), None) = (self.check(), &self.stopped) {
            self.stopped = Some(StopReason::Violation { rule: violation.rule, dump: violation.dump });
        }
        self.env.observe(&self.coordinator);
    }

    fn drain(&mut self) {
        while let Some(output) = self.coordinator.poll_output() {
            if let Some(witness) = &mut self.witness {
                witness.says(&output);
            }
            self.carry_out(output);
        }
        while let Some(output) = self.worker.poll_output() {
            if let Some(witness) = &mut self.witness {
                witness.worker_says(&output);
            }
            self.carry_out_for_worker(output);
        }
    }

    /// The machines' own rules, and the one that only the pump can see.
    fn check(&self) -> Result<(), Violation> {
        self.worker.check()?;
        if self.env.checks_rules() {
            self.coordinator.check()?;
        }
        if self.coordinator.is_stopped() {
            return Ok(());
        }
        let known = self.coordinator.batches();
        if !self.store.ids().eq(known.iter().copied()) {
            let dump = format!("the store holds {:?}, the machine knows {known:?}", self.store.ids().collect::<Vec<_>>());
            return Err(Violation { rule: "rows-held-equal-rows-known", dump });
        }
        Ok(())
    }

    async fn wait(&mut self, operators: &mut (impl Stream<Item = Operator> + Send + Unpin), left: bool) -> Woken<E> {
        let deadline = self.coordinator.poll_timeout();
        let env = self.env.clone();
        let time = async move {
            match deadline {
                Some(deadline) => env.sleep_until(deadline.at).await,
                None => futures::future::pending().await,
            }
        };
        let person = async { if left { operators.next().await } else { futures::future::pending().await } };
        let answer = self.lanes.next().boxed();
        let outside = select(Box::pin(person), Box::pin(time));
        match select(answer, outside).await {
            Either::Left((answer, _)) => Woken::Answer(answer),
            Either::Right((Either::Left((operator, _)), _)) => Woken::Operator(operator),
            Either::Right((Either::Right(((), _)), _)) => Woken::Time,
        }
    }
}

enum Woken<E: Env> {
    Answer(Answer<E>),
    Operator(Option<Operator>),
    Time,
}
