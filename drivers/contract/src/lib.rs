//! What a source, a sink and a position store are: all that a driver needs, and all that it may know.
//!
//! A driver reports facts and carries out commands. It decides nothing about rows, retries nothing (a retry is the
//! kernel's decision; `Transient` says that one makes sense), and confirms nothing by itself. `conformance` holds
//! the laws as functions that every driver's tests call with a live instance.
#![deny(missing_docs)]

mod chunks;
pub mod conformance;
mod error;
mod finding;
pub mod memory;
pub mod position_store;
pub mod registry;
mod rows_by_key;
mod sink;
mod source;

pub use async_trait::async_trait;
pub use chunks::{ChunkRead, ChunkRequest, Chunks};
pub use error::{Error, Kind};
pub use finding::{Finding, Severity};
pub use rows_by_key::{RowsByKey, RowsRead, RowsRequest};
pub use sink::{
    Capabilities, CommitRequest, Measure, Mode, Peek, Recovered, Sink, SinkTable, Staged, StateWrite, TableCommitter, TableSink,
    TableWriter, Take, Versioned, allow_changes,
};
pub use source::{
    Limit, LogEvent, LogRead, LogReader, OpenedLog, Retention, Sketch, Source, SourceTable, Start, TableRequest, TableSize,
};

/// Arrow's columns, in the one version that everything shares.
pub mod arrow {
    pub use arrow_array as array;
    pub use arrow_buffer as buffer;
    pub use arrow_schema as schema;
    pub use arrow_select::concat as select;
}

/// The kernel, for its names, positions, states and outcomes.
pub use kernel;
/// The rows, for batches, types and keys.
pub use rows;
/// JSON, for settings and stored states.
pub use serde_json;
