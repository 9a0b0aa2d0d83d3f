//! Real processes, independent readers, crash tests, benchmarks: what proves the product from outside.
//!
//! Nothing here links the product: tests start its binary, stop it, kill it, and let programs that have nothing of ours
//! read what it left. [`Process`] is a process with a deadline that never outlives its test, [`Desk`] a folder with a
//! pipeline file and a warehouse of its own, [`readers`] what DuckDB, PyIceberg and a standard-library Python program say of it, [`postgres::Postgres`]
//! a server that a test starts, [`ledger::Ledger`] what its copies must hold, [`gate::Gate`] how far they may say that they are.

#![deny(missing_docs)]

mod binary;
mod changes;
mod desk;
pub mod gate;
pub mod http;
pub mod jsonl_copy;
pub mod large;
pub mod ledger;
mod length;
pub mod postgres;
mod process;
pub mod readers;
pub mod shop;
pub mod shop_copy;
mod waiting;

pub use binary::{Binary, python, root, simulator};
pub use changes::{Change, Changes};
pub use desk::{Desk, TABLES_OF_THE_QUICKSTART};
pub use length::is_long;
pub use process::{Ended, Process, Signal};
pub use waiting::{DEADLINE, wait_until};
