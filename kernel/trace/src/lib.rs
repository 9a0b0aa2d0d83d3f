//! What the machines of one life were told and what they said, as text: written by a process that runs a pipeline
//! (`urutau run --trace`), and replayed by the same machines somewhere else.
//!
//! A machine does what its configuration and its inputs say, and nothing else. So a file that holds both is the run again, with every
//! rule checked after every input, on a desk that has neither the source nor the sink, and without a row: machines know ids,
//! positions and counts, and of keys only which ones are equal. What they know of somebody's data is veiled on its way into the file
//! (`veil`).
//!
//! # The form
//!
//! ```text
//! urutau trace 1                                        the format
//! by 0.1.0                                              who wrote it
//! 0 begins                                              when, in microseconds, and what
//!   checkpoint age 10000000 rows 1500 bytes 268435456   what belongs to it, each in a line of its own
//!   ...
//! - read-record #0.1                                    what the machine said
//! = 5d0c7a4f0c6b1e2a                                    a hash of all this, and of the hash before
//! 1234 hears record-read #0.1 record - token ~5e...     the coordinator hears a fact
//! - store-record #0.2 ~5e... {"format":1,...}
//! = ...
//! 5678 worker netted a1.1 netted rows 3 images 2 keys - the worker does
//! - write a1.1 shop.orders
//! = ...
//! 9999 ends stopped                                     nothing comes behind it
//! = ...
//! ```
//!
//! `#1.5` is a command, `a1.5` an attempt, `c1.5` a commit, each with its life; `7:0..3` are rows of batch 7; `changes@12` is a
//! transaction and where it begins in its stream; `12.0` is a coordinate; `k...` is what stands for a key, `~...` for a bound, an identity, a
//! token, a schema or a text; `-` is nothing. Rows of the log stand as `rows TABLE TRANSACTION ROWS BYTES FIRST LAST COUNT TOUCHED`. Stored states stand as
//! they are stored. What a step tells has one form only, so a line is right or wrong.
//!
//! A step without its hash is none: a process died while it wrote it. The hash finds what was altered by mistake, not by somebody who
//! wants to: it has no secret.
//!
//! # The parts
//!
//! [`Writer`] makes text of what it is shown; [`Reader`] takes it apart, step by step; [`Replay`] gives each step to machines of its own
//! and compares. Deliberately not here: files, clocks, and words for people (`sim` tells a replay).
#![deny(missing_docs)]

mod read;
mod replay;
mod said;
mod shapes;
#[cfg(test)]
mod tests;
mod text;
mod veil;
mod words;
mod write;

pub use read::{Heard, Line, Reader, Step, TraceError, WorkerHeard};
pub use replay::{Replay, ReplayError, Seen};
pub use write::{End, Writer};

/// How a trace begins.
pub const FIRST_WORDS: &str = "urutau trace ";

/// The format that is written, and the only one that is read.
pub const FORMAT: u32 = 1;
