//! The order law: what runs at once and what runs first in, first out.

use std::collections::{BTreeMap, VecDeque};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kernel::id::TableName;

/// What runs one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// A table's commits and what belongs to them.
    Commits(TableName),
    /// A table's writes.
    Writes(TableName),
    /// Reads of the log.
    Reads,
    /// Acknowledgements.
    Acknowledgements,
}

/// Commands that run, and those that wait for their lane.
pub(crate) struct Lanes<T> {
    running: FuturesUnordered<BoxFuture<'static, (Option<Lane>, T)>>,
    waiting: BTreeMap<Lane, VecDeque<BoxFuture<'static, T>>>,
}

impl<T: Send + 'static> Lanes<T> {
    pub(crate) fn new() -> Self {
        Self { running: FuturesUnordered::new(), waiting: BTreeMap::new() }
    }

    /// Runs it at once.
    pub(crate) fn run(&mut self, command: BoxFuture<'static, T>) {
        self.running.push(Box::pin(async move { (None, command.await) }));
    }

    /// Runs it when everything before it in the lane has run.
    pub(crate) fn run_in(&mut self, lane: Lane, command: BoxFuture<'static, T>) {
        match self.waiting.get_mut(&lane) {
            Some(queue) => queue.push_back(command),
            None => {
                self.waiting.insert(lane.clone(), VecDeque::new());
                self.begin(lane, command);
            }
        }
    }

    fn begin(&mut self, lane: Lane, command: BoxFuture<'static, T>) {
        self.running.push(Box::pin(async move { (Some(lane), command.await) }));
    }

    /// The next answer. Pending for ever if nothing runs.
    pub(crate) async fn next(&mut self) -> T {
        loop {
            match self.running.next().await {
                Some((lane, answer)) => {
                    if let Some(lane) = lane {
                        self.advance(lane);
                    }
                    return answer;
                }
                None => futures::future::pending::<()>().await,
            }
        }
    }

    /// Waits until nothing of this lane is left. The answers of what else ends meanwhile are lost.
    pub(crate) async fn run_out(&mut self, lane: &Lane) {
        while self.waiting.contains_key(lane) {
            let _ = self.next().await;
        }
    }

    fn advance(&mut self, lane: Lane) {
        match self.waiting.get_mut(&lane).and_then(VecDeque::pop_front) {
            Some(next) => self.begin(lane, next),
            None => {
                self.waiting.remove(&lane);
            }
        }
    }
}
