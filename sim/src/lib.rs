//! The simulator: the kernel's machines in a world with faults, judged by an oracle.
#![deny(missing_docs)]

mod agenda;
pub mod engine;
pub mod exhaustive;
pub mod files;
pub mod history;
pub mod marks;
pub mod oracle;
pub mod owners;
pub mod plan;
pub mod planted;
pub mod process;
pub mod production;
pub mod schedule;
pub mod shrink;
pub mod sinks;
pub mod source;
pub mod tell;
pub mod world;
