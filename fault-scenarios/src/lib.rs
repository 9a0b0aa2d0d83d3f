//! What can go wrong, as values: one vocabulary for every engine that plays it.
//!
//! A [`Scenario`] is a [`Workload`] (what the source's log says), [`Options`] (limits, and how source and sinks are), a list of
//! [`Step`]s (what goes wrong when) and [`Dice`] (the small choices that nobody writes down one by one: who answers first, where
//! streams change over). Nothing else decides about a run, so a scenario is a run.
//!
//! Steps are *keyed by occasions*, not by the order in which they were drawn: 'when process 0 sends its second commit of t1'. An
//! occasion that no step speaks of is uneventful. So a scenario that lacks a transaction or a step is the same story without it,
//! which is what makes shrinking work. [`Swarm`] is the same as a pure function: it says for each occasion what happens there, by
//! a seed; an engine that writes down what did happen has the scenario of the run.
#![deny(missing_docs)]

mod absent;
mod dice;
mod engines;
mod generate;
mod options;
mod random;
mod scenario;
mod sets;
mod snapshots;
mod step;
mod swarm;
mod text;
mod workload;

pub use dice::{Dice, Small};
pub use engines::Engine;
pub use generate::generate;
pub use options::{EmptyTransactions, Options};
pub use random::{Random, mix};
pub use scenario::{Finds, Scenario};
pub use step::{Command, Request, Step, Tab, Then, What, When};
pub use swarm::{Moment, Rates, Swarm};
pub use text::ParseError;
pub use workload::{Change, GROUP_WORDS, GROUPS, Join, Key, Kind, Sink, Stream, Table, Transaction, Truncate, Value, Workload};
