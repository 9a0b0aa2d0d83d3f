//! Several owners of one table: the kernel's [`Router`](kernel::route::Router) and [`Owner`](kernel::route::Owner) in a world of
//! their own.
//!
//! The coordinator of the other engine has one owner a table and no sessions yet. So here a *lead* stands beside the router: it takes
//! an incarnation, reads a log whose positions are numbers, closes checkpoints, commits, and does with each outcome what rules C5, C7,
//! R1, R3 and R5 say; no record, no acknowledgement, no snapshot. What is proven here is what the two machines of the kernel decide:
//! parts, attempts, sessions, indexes. Workers, links between them and leads, and three kinds of sinks are models: one that deletes by
//! position (located by key indexes), one that only appends, and one that goes by versions and compares nothing.
//!
//! Links break, and what was sent before the break may be lost or arrive much later; they fall silent; processes die, and stand
//! still and wake beside their successors; workers dial leads that are over; writes and commits are lost, or their answers, or land
//! late; foreign hands compact tables. The oracle (`oracle::owners`) compares each committed table with the log.

mod engine;
mod lead;
mod links;
mod sinks;
mod stories;
mod story;
mod workshop;

pub use engine::{Report, play, run};
pub use sinks::{Cut, Row, Sink, Staged, State};
pub use stories::{Told, stories};
pub use story::{Change, Fate, Fault, Happening, Key, Kind, Limits, Story, Tab, Transaction, Value, generate};
