//! The machines of urutau: what may happen, in which order, what is durable.
#![no_std]
#![deny(missing_docs)]

extern crate alloc;

pub mod id;
pub mod outcome;
pub mod position;
pub mod state;
pub mod time;
