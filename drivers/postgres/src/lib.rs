//! PostgreSQL as a source, by logical replication (`pgoutput`) from a replication slot. For servers 14 to 18.
//!
//! - **Positions** are one stream of LSNs: a transaction is in a position if its commit record begins before it, `upto` is where a
//!   commit record ends. The identity is the system identifier, the timeline and the database.
//! - **Coordinates** are the LSN of a change and its number there: they do not depend on what else is read.
//! - **What may be forgotten** moves by `acknowledge` alone, and never beyond what the server sent in the session. Signs of life
//!   outside of a transaction are positions, so that an idle database does not hold back the log of its neighbours.
//! - **Rows** come in the server's binary form, one decoder ([`values`]) for all paths. A changed key is a delete and an insert.
//! - **What is refused.** A value that its column cannot hold, a change whose old row does not tell the key, an update that leaves out
//!   a large value of a row that can't be read again by a key: each halts its table in words.
//! - **Snapshots** are chunks of a table, read beside the log, each in one short transaction ([`contract::Chunks`]). What a snapshot of
//!   the server sees decides between its rows and the log's, by the numbers of transactions, which the log tells too. Rows whose updates
//!   left large values out are read again in the same way ([`contract::RowsByKey`]).
//!
//! Not built yet: snapshots of tables without a unique key that is never null; streamed transactions.
//!
//! Codes of errors and findings: `postgres-setting`, `postgres-tls`, `postgres-login`, `postgres-database`, `postgres-unreachable`,
//! `postgres-away`, `postgres-server`, `postgres-statement`, `postgres-protocol` (connections); `postgres-version`, `postgres-wal-level`,
//! `postgres-privilege`, `postgres-encoding`, `postgres-slot-wal-keep`, `postgres-senders`, `postgres-slots` (servers); `postgres-slot`,
//! `postgres-slot-active`, `postgres-slot-lost`, `postgres-slot-safe`, `postgres-slot-behind`, `postgres-wal-removed`,
//! `postgres-position-lost` (slots); `postgres-publication`, `postgres-publication-kinds`, `postgres-publication-root`
//! (publications); `postgres-table`, `postgres-key`, `postgres-no-key`, `postgres-identity`, `postgres-type`, `postgres-generated`,
//! `postgres-unsent-value` (tables); `postgres-value`, `postgres-row`, `postgres-schema`, `postgres-renamed`, `postgres-replaced`,
//! `postgres-batch` (rows); `postgres-select`, `postgres-policies`, `postgres-snapshot-key`, `postgres-locked`, `postgres-bound`,
//! `postgres-order`, `postgres-key-text`, `postgres-another-server` (snapshots, and rows that are read again).
#![deny(missing_docs)]

mod catalog;
mod chunks;
pub mod copied;
pub mod pgoutput;
mod reader;
mod settings;
mod source;
pub mod values;
mod visibility;
mod wire;

pub use reader::read_frames;
pub use source::{PostgresSource, SourceFactory};
