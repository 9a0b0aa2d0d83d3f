//! The machines of urutau: what may happen, in which order, what is durable.
#![no_std]
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

extern crate alloc;

mod acknowledge;
mod checkpoint;
pub mod config;
pub mod coordinator;
mod flow;
pub mod id;
pub mod invariant;
pub mod outcome;
#[cfg_attr(not(feature = "planted-bugs"), allow(missing_docs))]
pub mod planted;
pub mod position;
pub mod state;
pub mod time;
pub mod worker;
