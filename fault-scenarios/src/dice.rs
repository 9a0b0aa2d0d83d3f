//! The small choices of a run: which of two answers comes first, where streams change over, which rows share a batch. There are
//! thousands in a run, none is a fault, and each is taken from one short table by the occasion that it belongs to.

use serde::{Deserialize, Serialize};

use crate::random::mix;

/// A table of numbers, and nothing else: what is not in it is 0, the first and quietest choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dice(pub Vec<u8>);

/// What a small choice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Small {
    /// When a process begins once everything is well.
    Begins,
    /// How long a command takes.
    Latency,
    /// How long an answer takes.
    Answer,
    /// When a command whose fate is unknown is answered.
    Unknown,
    /// How long a message between coordinator and worker takes.
    Link,
    /// How long netting takes.
    Netting,
    /// Does what a process sent before it ended still land?
    Mail,
    /// Does a sink that need not look whether its state is newer look?
    Looks,
    /// Are the rows of a table in a read one batch?
    Batches,
    /// How the log's streams are interleaved, where keepalives come, which rows are told together.
    Reading,
    /// What a person does once everything is well.
    Person,
    /// Where a chunk ends by itself, and where ranges do.
    Chunks,
}

impl Dice {
    /// A number below `n`, the same for the same occasion.
    pub fn roll(&self, about: Small, occasion: &[u64], n: u64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let place = occasion.iter().fold(mix(about as u64 + 1), |sum, part| mix(sum ^ part.wrapping_add(0x9E37_79B9)));
        let number = self.0[(place % self.0.len() as u64) as usize];
        u64::from(number) * n / 256
    }

    /// True in `permille` of 1,000 cases; without dice only if that is all of them.
    pub fn chance(&self, about: Small, occasion: &[u64], permille: u64) -> bool {
        permille >= 1_000 || self.roll(about, occasion, 1_000) >= 1_000 - permille
    }
}
