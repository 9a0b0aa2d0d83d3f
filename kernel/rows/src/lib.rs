//! Pure functions on Arrow batches, and the bounded store that holds batches by id while a machine decides about them.
#![deny(missing_docs)]

pub mod batch;
pub mod cast;
pub mod digest;
pub mod filter;
pub mod key;
pub mod net;
pub mod project;
pub mod schema;
pub mod store;
mod text;
pub mod value;

/// Rows in columns: what drivers hand over and get.
pub use arrow_array::RecordBatch;
pub use batch::{BatchProblem, ChangeBatch, MalformedBatch, Operation, RowPhase, Slice, Tail, TransactionRun};
pub use digest::row_digests;
pub use key::{EncodedKeys, KeyError};
pub use net::{NetOutcome, Netted, Numbering};
pub use schema::{Column, TableSchema, Type};
pub use store::{RowStore, StoredBatch};
pub use value::ValuePolicy;
