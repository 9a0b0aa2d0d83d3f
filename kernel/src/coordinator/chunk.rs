//! What is said about snapshots: chunks, what a snapshot saw, which keys the log touched. Facts of the source; it decides
//! nothing about rows.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::{HeldBatch, Told};
use crate::id::{Bound, EncodedKey, TransactionName};
use crate::position::{LogIdentity, Position};

/// A range of a snapshot's key space: above one bound, up to and including another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChunkRange {
    /// Where it begins; `None` is the beginning of the key space.
    pub after: Option<Bound>,
    /// Where it ends; `None` is the end of the key space.
    pub end: Option<Bound>,
}

/// A chunk that was read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChunkAnswer {
    /// The rows, now in the row store; `None` if there are none.
    pub rows: Option<HeldBatch>,
    /// The key of each row, in their order.
    pub keys: Vec<EncodedKey>,
    /// How far it came: every row of the range up to here, and no other. `None` is the end of the key space.
    pub end: Option<Bound>,
    /// What the snapshot saw that the rows are of.
    pub visibility: Visibility,
    /// A place in the log that contains everything that the snapshot saw.
    pub fence: Position,
    /// The schema that the rows are of, in the words of the driver; with it, the identity of the columns.
    pub schema: Option<String>,
    /// The log of the server that answered.
    pub identity: LogIdentity,
}

/// What a snapshot saw, as facts. That a transaction is not in `proven` says nothing: some sources can prove 'yes' only.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Visibility {
    /// Of the transactions asked about those that it provably saw, or that ended without an effect.
    pub proven: BTreeSet<TransactionName>,
    /// Every transaction that is not finished, whether it is in the log already or not; where that was asked for.
    pub unfinished: Option<BTreeSet<TransactionName>>,
}

/// What rows of the log touch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Touched {
    /// Their transaction, as visibility knows it.
    pub by: TransactionName,
    /// The key of each row. A row that goes from one key to another is two rows.
    pub keys: Vec<EncodedKey>,
    /// What each row says of the row with its key.
    pub told: Vec<Told>,
}
