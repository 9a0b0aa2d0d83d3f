//! Where something stands in a log.
//!
//! A [`Position`] is a statement about a set of transactions: *all of these*. For a log of one stream the set is a prefix
//! (`42`: everything before offset 42), for a log of several it is a prefix of each (`a:5,b:3`). A stream that a position
//! does not name is at its beginning, in every operation. Sets are ordered by containment, which is a **partial** order:
//! `a:5,b:3` and `a:3,b:10` are incomparable, and that is the daily case, not an error. So there is no `Ord` here; rules
//! that say 'later of' mean [`Position::join`], 'lowest' [`Position::meet`], 'at or below' [`Position::contains`]. Nothing
//! ever chooses one of two positions (rule P1).
//!
//! A [`Cut`] is where one table's copy stands: a position and, for each transaction that it divides, how far it got in it.

mod cut;
mod text;

use alloc::collections::BTreeMap;
use core::cmp::Ordering;
use core::fmt;

use serde::{Deserialize, Serialize};

pub use cut::{Coordinate, Cut, Digest, Transaction, Within};
pub use text::ParsePositionError;

use crate::id::{Identity, StreamName};

/// A place in a stream: the number of the first thing not included. Bytes of a file, an LSN, a partition's offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub u64);

/// A set of transactions: a prefix of each named stream, nothing of any other.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "alloc::string::String", into = "alloc::string::String")]
pub struct Position {
    /// Without entries at offset 0, so that equal sets are equal values.
    streams: BTreeMap<StreamName, Offset>,
}

impl Position {
    /// Nothing of any log.
    pub const START: Position = Position { streams: BTreeMap::new() };

    /// Everything before `offset` of a log that is one stream.
    pub fn scalar(offset: u64) -> Self {
        Self::of(StreamName::from(""), Offset(offset))
    }

    /// Everything before `offset` of one stream.
    pub fn of(stream: StreamName, offset: Offset) -> Self {
        [(stream, offset)].into_iter().collect()
    }

    /// How far this position goes in `stream`.
    pub fn offset(&self, stream: &StreamName) -> Offset {
        self.streams.get(stream).copied().unwrap_or_default()
    }

    /// The streams of which it holds something, in the order of their names.
    pub fn streams(&self) -> impl Iterator<Item = (&StreamName, Offset)> {
        self.streams.iter().map(|(stream, offset)| (stream, *offset))
    }

    /// Is everything in `other` also in here?
    pub fn contains(&self, other: &Position) -> bool {
        other.streams().all(|(stream, offset)| offset <= self.offset(stream))
    }

    /// Is this transaction, whole, in here?
    pub fn contains_transaction(&self, transaction: &Transaction) -> bool {
        transaction.at < self.offset(&transaction.stream)
    }

    /// The smallest position that contains both: their union.
    #[must_use]
    pub fn join(&self, other: &Position) -> Position {
        let mut joined = self.clone();
        joined.join_with(other);
        joined
    }

    /// [`Position::join`], in place.
    pub fn join_with(&mut self, other: &Position) {
        for (stream, offset) in other.streams() {
            if self.offset(stream) < offset {
                self.streams.insert(stream.clone(), offset);
            }
        }
    }

    /// The largest position that both contain: their intersection.
    #[must_use]
    pub fn meet(&self, other: &Position) -> Position {
        self.streams().map(|(stream, offset)| (stream.clone(), offset.min(other.offset(stream)))).collect()
    }

    /// How much is in here that is not in `other`: bytes of a file or of a log, records of a partition.
    pub fn beyond(&self, other: &Position) -> u64 {
        self.streams().map(|(stream, offset)| offset.0.saturating_sub(other.offset(stream).0)).fold(0, u64::saturating_add)
    }

    /// `Equal`, `Less` (contained in), `Greater` (contains), or `None` where each holds something that the other lacks.
    pub fn compare(&self, other: &Position) -> Option<Ordering> {
        match (self.contains(other), other.contains(self)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        }
    }
}

impl FromIterator<(StreamName, Offset)> for Position {
    /// A stream given twice keeps its last offset.
    fn from_iter<I: IntoIterator<Item = (StreamName, Offset)>>(streams: I) -> Self {
        let mut all: BTreeMap<_, _> = streams.into_iter().collect();
        all.retain(|_, offset| *offset > Offset(0));
        Self { streams: all }
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which history a log is, stream by stream. Positions of different histories must never be compared (rule P4).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct LogIdentity {
    /// What each stream that exists was recognised by.
    pub streams: BTreeMap<StreamName, Identity>,
    /// Under what coordinates inside a transaction are valid: the server whose log was read (rule P2).
    pub coordinates: Option<Identity>,
}

impl LogIdentity {
    /// The first stream that both name and that is not the same history, with its identity here and there.
    pub fn differs_from<'a>(&'a self, other: &'a LogIdentity) -> Option<(&'a StreamName, &'a Identity, &'a Identity)> {
        self.streams.iter().find_map(|(stream, ours)| match other.streams.get(stream) {
            Some(theirs) if theirs != ours => Some((stream, ours, theirs)),
            _ => None,
        })
    }
}
