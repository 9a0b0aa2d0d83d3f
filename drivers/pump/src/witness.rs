//! Somebody who sees all that the machines of a life hear and say, in the order in which they do, so that it can be told again.

use async_trait::async_trait;
use kernel::config::Config;
use kernel::coordinator::{Input, Output};
use kernel::time::Time;
use kernel::worker::{WorkerInput, WorkerOutput};

/// Sees a life. What it sees it must note at once: the pump goes on with it. It changes nothing, and nothing waits for it but in
/// [`Witness::settle`].
#[async_trait]
pub trait Witness: Send {
    /// A life begins. First of all, and once.
    fn begins(&mut self, now: Time, config: &Config);

    /// The coordinator is about to take a fact. What is said until the next fact is its answer.
    fn hears(&mut self, now: Time, input: &Input);

    /// The coordinator gave a command.
    fn says(&mut self, output: &Output);

    /// The worker is about to take a fact.
    fn worker_hears(&mut self, now: Time, input: &WorkerInput);

    /// The worker gave a command.
    fn worker_says(&mut self, output: &WorkerOutput);

    /// Nothing is left to do at once. A witness that notes more slowly than it sees holds the pump back here. `over`: it was all.
    async fn settle(&mut self, over: bool);
}
