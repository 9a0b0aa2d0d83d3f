//! Reading a table beside the log: chunks of its rows, and what their snapshots saw (rules S).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::coordinator::{ChunkRange, Visibility};
use kernel::id::{Bound, TransactionName};
use kernel::position::{LogIdentity, Position};
use rows::{ChangeBatch, TableSchema};

use crate::Error;

/// A source whose tables can be read in chunks while its log is read.
///
/// What it promises, and what nothing downstream can check: what snapshots see only grows; a second writer of a key commits
/// only after the first is visible; everything that a chunk's snapshot saw is in the log at or below the chunk's fence; log,
/// chunks and visibility come from one server, and call a transaction by one name ([`crate::LogRead::names`]).
#[async_trait]
pub trait Chunks: Send + Sync {
    /// Proposes bounds that divide a table's key space into about `wanted` equal parts, in the order of the key; the last part
    /// ends where the key space does and has no bound. Only makes reading faster: none is a right answer.
    async fn plan_ranges(&self, table: &TableSchema, wanted: u32) -> Result<Vec<Bound>, Error>;

    /// Reads rows of a range in one snapshot. Leaves nothing open at the source.
    async fn read_chunk(&self, request: &ChunkRequest) -> Result<ChunkRead, Error>;

    /// What a new snapshot sees. `unfinished` asks for every transaction that is not finished, too, whether it is in the log
    /// already or not.
    async fn visibility(&self, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Error>;
}

/// Which rows to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChunkRequest {
    /// The table, as it was described last. The rows may have another schema by now; the answer says which.
    pub table: Arc<TableSchema>,
    /// Which range of its keys: above one bound, up to and including another.
    pub range: ChunkRange,
    /// At most so many rows, and at least one if there is one.
    pub rows_max: u32,
    /// About so many bytes of memory.
    pub bytes_max: u64,
    /// Transactions of which the answer says whether its snapshot provably saw them.
    pub about: BTreeSet<TransactionName>,
}

/// What a chunk read brought.
#[derive(Clone, Debug)]
pub struct ChunkRead {
    /// The rows in the order of their key, each once, as [`rows::Operation::Read`] and [`rows::RowPhase::Snapshot`]; no batch if
    /// there are none. They belong to no transaction of the log: their one run names the fence's place.
    pub rows: Option<Arc<ChangeBatch>>,
    /// How far it came: every row of the range up to here, and no other. The range's own end if it was read whole, else a bound
    /// that was none before.
    pub end: Option<Bound>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// A place in the log that contains everything that the snapshot saw: its end when the snapshot was taken, or later. The chunk
    /// waits until the log has been read so far.
    pub fence: Position,
    /// What the rows look like, also where there are none.
    pub schema: Arc<TableSchema>,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}
