//! JSON change files as a source, JSON lines as a sink.
//!
//! # The source
//!
//! A log is one file or the files of a glob, in the order of their names, each a stream of its own. A line is a Debezium
//! envelope or a Kafka record that holds one ([`envelope`]). Positions are bytes at which lines begin; the coordinate of a row is
//! the byte at which its line begins, and 0 or 1 in it: an update that changes the key is a delete (0) and an insert (1).
//!
//! - **Order.** File after file, none before the one before it is complete. A file that grows after a later one was begun, and
//!   a new one that sorts before it, stop the source.
//! - **Transactions** are neighbouring lines of one id, in one file. Nothing is held back until one ends: memory is bounded by
//!   what a read may bring and by the longest line (64 MiB).
//! - **Rows.** `after` is the whole row: a column that it does not name is null. `before` is what was known of the old row: a
//!   column that it does not name is absent, and only key columns are trusted unless the pipeline file says otherwise. The
//!   connector's placeholder is an absent value.
//! - **Snapshot rows** (`op: r`) are `Operation::Read` in `RowPhase::Stream`: they come by this log, in its order, like all others.
//! - **Types** come from the schema part, with what the pipeline file declares above it, else from values. A schema part whose
//!   rows the table's schema does not hold is a `LogEvent::Schema` before the first such row.
//! - **What is refused.** A row that does not fit halts its table (`LogEvent::Refused`); a line that is no event stops the source,
//!   after everything before it (`Kind::Poison`), or is counted and logged (`onDecodeError: skip`).
//!
//! Codes of errors and findings: `jsonl-setting`, `jsonl-path`, `jsonl-no-file`, `jsonl-unreadable`, `jsonl-io` (files);
//! `jsonl-file-gone`, `jsonl-file-shorter`, `jsonl-file-replaced`, `jsonl-file-order`, `jsonl-not-a-line` (where reading may go on);
//! `jsonl-encoding`, `jsonl-malformed`, `jsonl-not-an-event`, `jsonl-operation`, `jsonl-schema-part`, `jsonl-line-too-long`,
//! `jsonl-unfinished-line` (lines); `jsonl-value`, `jsonl-key`, `jsonl-unknown-field`, `jsonl-row` (rows); `jsonl-table`, `jsonl-table-unseen`,
//! `jsonl-key-unseen`, `jsonl-no-key`, `jsonl-inferred`, `jsonl-type-unknown` (tables).
#![deny(missing_docs)]

mod counts;
pub mod envelope;
mod files;
mod json;
mod reader;
mod settings;
pub mod sink;
mod source;
#[cfg(test)]
mod testing;
mod values;

pub use counts::{Counted, Counts};
pub use reader::read_text;
pub use source::{JsonlSource, SourceFactory};
