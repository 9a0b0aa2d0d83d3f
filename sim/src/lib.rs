//! The simulator: the kernel's machines in a world with faults, judged by an oracle.
#![deny(missing_docs)]

pub mod engine;
pub mod history;
pub mod marks;
pub mod oracle;
pub mod plan;
pub mod process;
pub mod random;
pub mod scenario;
pub mod sinks;
pub mod source;
pub mod world;
