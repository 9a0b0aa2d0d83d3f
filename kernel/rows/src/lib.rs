//! Pure functions on Arrow batches, and the store that holds batches by id while a machine decides about them.
//!
//! A source makes a [`ChangeBatch`] ([`build`]): rows of one table in log order, with what the log says of each. On its way to a sink it
//! is given its keys ([`key`]) and digests ([`digest`]), held ([`store`]), and, once the kernel closes a checkpoint, netted
//! ([`net`]), filtered ([`filter`]), projected and cast ([`project`], [`cast`], [`value`]). What a sink gets is a [`Netted`]: at most
//! one image or delete for each key. [`shape`] holds together what the pipeline wants of a table.
//!
//! Nothing here decides what is durable or when; that is `kernel`. Nothing here does I/O, reads a clock or keeps state
//! but for the store. All work is by column, and allocates by batch.
//!
//! What others store relies on three things in here, each with its golden test: the bytes of a key and their hash, the
//! digest of a row, and the text of a type.
#![deny(missing_docs)]

pub mod batch;
pub mod build;
pub mod cast;
pub mod digest;
pub mod filter;
pub mod key;
pub mod net;
pub mod project;
pub mod schema;
pub mod shape;
pub mod store;
mod text;
pub mod told;
pub mod value;

/// Rows in columns: what drivers hand over and get.
pub use arrow_array::RecordBatch;
pub use batch::{BatchProblem, ChangeBatch, MalformedBatch, Operation, RowPhase, Slice, Tail, TransactionRun};
pub use digest::row_digests;
pub use key::{EncodedKeys, KeyError};
pub use net::{NetOutcome, Netted, Numbering, ReadAgain};
pub use schema::{Column, ColumnChange, TableSchema, Type};
pub use store::{RowStore, StoredBatch};
pub use value::ValuePolicy;
