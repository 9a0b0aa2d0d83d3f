//! Cuts: where a table's copy stands, inside a transaction too.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Offset, Position};
use crate::id::StreamName;

/// A transaction, named by where it begins in its stream, or by the number that its origin gave it. It is in a position if that
/// holds its beginning, since positions gain transactions at their ends, whole (rule P1).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction {
    /// The stream that holds it.
    pub stream: StreamName,
    /// A place that is in the transaction, below the offset of its end, and not in any earlier one.
    pub at: Offset,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.stream, self.at.0)
    }
}

/// A row's place inside its transaction: a function of the log alone (rule P2), growing in log order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Coordinate {
    /// The change: an LSN, an event's number, a line's offset.
    pub major: u64,
    /// The row in the change.
    pub minor: u32,
}

impl fmt::Debug for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A sum over rows by which a replayed transaction is recognised as the same one. It does not depend on how rows were
/// grouped into batches: each row adds one to the count and a hash of (coordinate, operation, key) to the sum (rule P3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Digest {
    /// How many rows.
    pub count: u64,
    /// The wrapping sum of their hashes.
    pub hash: u64,
}

impl Digest {
    /// What stands for a change that is not a row: it must be told from no change at all.
    pub const EVENT: Digest = Digest { count: 1, hash: 0x9E37_79B9_7F4A_7C15 };

    /// Both sets of rows together.
    #[must_use]
    pub fn plus(self, other: Digest) -> Digest {
        Digest { count: self.count.wrapping_add(other.count), hash: self.hash.wrapping_add(other.hash) }
    }
}

/// How far a table's copy got inside one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Within {
    /// The last row that is covered.
    pub last: Coordinate,
    /// Of this table's covered rows of this transaction.
    pub digest: Digest,
}

/// Where a table's copy stands: all of `upto`, and of each transaction in `within` the rows up to a coordinate.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "StoredCut", into = "StoredCut")]
pub struct Cut {
    upto: Position,
    /// Never a transaction that `upto` contains.
    within: BTreeMap<Transaction, Within>,
}

impl Cut {
    /// Exactly the transactions of `upto`.
    pub fn at(upto: Position) -> Self {
        Self { upto, within: BTreeMap::new() }
    }

    /// The whole transactions.
    pub fn upto(&self) -> &Position {
        &self.upto
    }

    /// The divided transactions.
    pub fn within(&self) -> &BTreeMap<Transaction, Within> {
        &self.within
    }

    /// Does it divide no transaction?
    pub fn is_whole(&self) -> bool {
        self.within.is_empty()
    }

    /// Is this row at or below the cut?
    pub fn covers(&self, transaction: &Transaction, coordinate: Coordinate) -> bool {
        self.upto.contains_transaction(transaction) || self.within.get(transaction).is_some_and(|w| coordinate <= w.last)
    }

    /// Takes rows of a transaction, up to and including `last`.
    pub fn take(&mut self, transaction: &Transaction, last: Coordinate, digest: Digest) {
        if self.upto.contains_transaction(transaction) {
            return;
        }
        self.within
            .entry(transaction.clone())
            .and_modify(|w| *w = Within { last: w.last.max(last), digest: w.digest.plus(digest) })
            .or_insert(Within { last, digest });
    }

    /// Adds everything in `position`: a finished transaction, a keepalive, the quiet position.
    pub fn join_position(&mut self, position: &Position) {
        self.upto.join_with(position);
        let upto = &self.upto;
        self.within.retain(|transaction, _| !upto.contains_transaction(transaction));
    }

    /// The smallest cut that covers what either covers. Of two entries for one transaction the further one stays.
    #[must_use]
    pub fn join(&self, other: &Cut) -> Cut {
        let mut joined = self.clone();
        for (transaction, theirs) in &other.within {
            let further = match joined.within.get(transaction) {
                Some(ours) if ours.last >= theirs.last => *ours,
                _ => *theirs,
            };
            joined.within.insert(transaction.clone(), further);
        }
        joined.join_position(&other.upto);
        joined
    }

    /// The whole transactions that both cover; what only one of them has in part is dropped (rule P3).
    #[must_use]
    pub fn meet(&self, other: &Cut) -> Position {
        self.upto.meet(&other.upto)
    }

    /// Does this cut cover every row that `other` covers?
    pub fn contains(&self, other: &Cut) -> bool {
        self.upto.contains(&other.upto)
            && other.within.iter().all(|(transaction, theirs)| {
                self.upto.contains_transaction(transaction)
                    || self.within.get(transaction).is_some_and(|ours| theirs.last <= ours.last)
            })
    }
}

impl fmt::Debug for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.upto)?;
        for (transaction, within) in &self.within {
            write!(f, "+{transaction:?}/{:?}", within.last)?;
        }
        Ok(())
    }
}

/// The stored form: the map's entries as a list, since a JSON object's keys are text.
#[derive(Clone, Serialize, Deserialize)]
struct StoredCut {
    upto: Position,
    #[serde(default, skip_serializing_if = "alloc::vec::Vec::is_empty")]
    within: alloc::vec::Vec<StoredWithin>,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredWithin {
    stream: String,
    at: Offset,
    #[serde(flatten)]
    within: Within,
}

impl From<StoredCut> for Cut {
    fn from(stored: StoredCut) -> Self {
        let within = stored
            .within
            .into_iter()
            .map(|w| (Transaction { stream: w.stream.into(), at: w.at }, w.within))
            .filter(|(transaction, _)| !stored.upto.contains_transaction(transaction))
            .collect();
        Cut { upto: stored.upto, within }
    }
}

impl From<Cut> for StoredCut {
    fn from(cut: Cut) -> Self {
        let within = cut
            .within
            .into_iter()
            .map(|(transaction, within)| StoredWithin { stream: transaction.stream.into(), at: transaction.at, within })
            .collect();
        StoredCut { upto: cut.upto, within }
    }
}
