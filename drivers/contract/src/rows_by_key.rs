//! Reading rows again by their keys, and what their snapshot saw: for values that updates leave out of the log (rules H).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::coordinator::Visibility;
use kernel::id::TransactionName;
use kernel::position::{LogIdentity, Position};
use rows::{ChangeBatch, RecordBatch, TableSchema};

use crate::Error;

/// A source whose log leaves values out of updates, and whose rows can be read again.
///
/// It promises what [`Chunks`](crate::Chunks) promises of their snapshots: what they see only grows, everything that one saw is in the
/// log at or below its fence, and log and rows come from one server, which calls a transaction by one name
/// ([`LogRead::names`](crate::LogRead::names)). A value is left out of the log only where the row has it.
#[async_trait]
pub trait RowsByKey: Send + Sync {
    /// Reads rows again, all in one snapshot. Leaves nothing open at the source.
    async fn read_rows(&self, request: &RowsRequest) -> Result<RowsRead, Error>;
}

/// Which rows to read.
#[derive(Clone, PartialEq, Debug)]
pub struct RowsRequest {
    /// The table, as the rows that lack values are. What is read may be of another schema by now: a column that this one has keeps its
    /// type wherever that holds its values.
    pub table: Arc<TableSchema>,
    /// The key's columns, in the order of the key; a row a key, each once.
    pub keys: RecordBatch,
    /// About so many bytes of memory, and at least one row if there is one.
    pub bytes_max: u64,
    /// Transactions of which the answer says whether its snapshot provably saw them.
    pub about: BTreeSet<TransactionName>,
}

/// What reading rows brought.
#[derive(Clone, Debug)]
pub struct RowsRead {
    /// The rows that are there, whole, each once, in any order, as [`rows::Operation::Read`] and [`rows::RowPhase::Snapshot`]; no batch
    /// if there are none. They belong to no transaction of the log: their one run names the fence's place.
    pub rows: Option<Arc<ChangeBatch>>,
    /// The places of those keys of the request of which there provably is no row. A key that is neither here nor among the rows was
    /// not read.
    pub gone: Vec<usize>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// A place in the log that contains everything that the snapshot saw: its end when the snapshot was taken, or later.
    pub fence: Position,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}
