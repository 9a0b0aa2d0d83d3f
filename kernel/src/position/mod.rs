//! Where something stands in a log.
//!
//! A [`Position`] is a statement about a set of transactions: *all of these*. For a log of one stream the set is a prefix
//! (`42`: everything before offset 42), for a log of several it is a prefix of each (`a:5,b:3`), for a log whose transactions come
//! from several origins and not in the order of their numbers it is any set (`a:5+7..9,b:3`: before 5, and from 7 to before 9). A
//! stream that a position does not name is at its beginning, in every operation. Sets are ordered by containment, which is a
//! **partial** order: `a:5,b:3` and `a:3,b:10` are incomparable, and that is the daily case, not an error. So there is no `Ord`
//! here; rules that say 'later of' mean [`Position::join`], 'lowest' [`Position::meet`], 'at or below' [`Position::contains`].
//! Nothing ever chooses one of two positions (rule P1), and nothing ever asks for the last number of one.
//!
//! A set grows by what the log says and by nothing else. How many holes it has is the log's doing: a parallel replica leaves as many
//! as it has workers, a group of servers one for each block of numbers that is being used. At more than
//! [`intervals_max`](crate::config::Config::intervals_max) of a stream this is no log that can be followed, and the run ends with that word.
//!
//! A [`Cut`] is where one table's copy stands: a position and, for each transaction that it divides, how far it got in it. A log
//! of sets is read in one order under one coordinate identity (rule P2), so that there is one such transaction a reading; what
//! another server's order would add goes with the identity.

mod cut;
mod intervals;
mod text;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use serde::{Deserialize, Serialize};

pub use cut::{Coordinate, Cut, Digest, Transaction, Within};
pub use intervals::Interval;
use intervals::Intervals;
pub use text::ParsePositionError;

use crate::id::{Identity, StreamName};

/// A place in a stream: the number of the first thing not included. Bytes of a file, an LSN, a partition's offset, a number that an
/// origin gave to a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub u64);

/// A set of transactions: a prefix of each named stream, or any set of its places; nothing of any other stream.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "alloc::string::String", into = "alloc::string::String")]
pub struct Position {
    /// Without streams of which nothing is held, so that equal sets are equal values.
    streams: BTreeMap<StreamName, Intervals>,
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
        Self::between(stream, Offset(0), offset)
    }

    /// What lies in one stream from `from` to before `to`: of a log of sets, a transaction is what lies between its number and the
    /// next one.
    pub fn between(stream: StreamName, from: Offset, to: Offset) -> Self {
        [(stream, Interval { from, to })].into_iter().collect()
    }

    /// How far this position goes in `stream`, from its beginning and without a hole.
    pub fn offset(&self, stream: &StreamName) -> Offset {
        self.streams.get(stream).map(Intervals::prefix).unwrap_or_default()
    }

    /// The streams of which it holds something, in the order of their names, and how far it goes in each without a hole.
    pub fn streams(&self) -> impl Iterator<Item = (&StreamName, Offset)> {
        self.streams.iter().map(|(stream, intervals)| (stream, intervals.prefix()))
    }

    /// What it holds of each stream, in the order of their names.
    pub fn intervals(&self) -> impl Iterator<Item = (&StreamName, &[Interval])> {
        self.streams.iter().map(|(stream, intervals)| (stream, intervals.as_slice()))
    }

    /// What it holds of one stream.
    pub fn intervals_of(&self, stream: &StreamName) -> &[Interval] {
        self.streams.get(stream).map_or(&[], Intervals::as_slice)
    }

    /// Is everything in `other` also in here?
    pub fn contains(&self, other: &Position) -> bool {
        let within =
            |(stream, theirs): (&StreamName, &[Interval])| self.streams.get(stream).is_some_and(|ours| ours.contains_all(theirs));
        other.intervals().all(within)
    }

    /// Is this transaction, whole, in here?
    pub fn contains_transaction(&self, transaction: &Transaction) -> bool {
        self.streams.get(&transaction.stream).is_some_and(|intervals| intervals.contains(transaction.at))
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
        for (stream, theirs) in &other.streams {
            match self.streams.get_mut(stream) {
                Some(ours) => theirs.as_slice().iter().for_each(|interval| ours.insert(*interval)),
                None => drop(self.streams.insert(stream.clone(), theirs.clone())),
            }
        }
    }

    /// The largest position that both contain: their intersection.
    #[must_use]
    pub fn meet(&self, other: &Position) -> Position {
        self.of_each(|stream, ours| ours.meet(other.intervals_of(stream)))
    }

    /// What is in here and not in `other`.
    #[must_use]
    pub fn without(&self, other: &Position) -> Position {
        self.of_each(|stream, ours| ours.without(other.intervals_of(stream)))
    }

    /// What is in here of the streams that are asked for.
    #[must_use]
    pub fn only(&self, asked: impl Fn(&StreamName) -> bool) -> Position {
        self.of_each(|stream, ours| asked(stream).then(|| ours.clone()))
    }

    fn of_each(&self, left: impl Fn(&StreamName, &Intervals) -> Option<Intervals>) -> Position {
        let left = |(stream, ours)| Some((StreamName::clone(stream), left(stream, ours)?));
        Position { streams: self.streams.iter().filter_map(left).collect() }
    }

    /// How much is in here that is not in `other`: bytes of a file or of a log, records of a partition, transactions of an origin.
    pub fn beyond(&self, other: &Position) -> u64 {
        self.without(other).streams.values().map(Intervals::count).fold(0, u64::saturating_add)
    }

    /// The first stream of which it holds more than so many intervals.
    pub fn scattered(&self, most: usize) -> Option<&StreamName> {
        let scattered = |intervals: &Intervals| intervals.as_slice().len() > most;
        self.streams.iter().find(|(_, intervals)| scattered(intervals)).map(|(stream, _)| stream)
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
        let all: BTreeMap<_, _> = streams.into_iter().collect();
        all.into_iter().map(|(stream, to)| (stream, Interval { from: Offset(0), to })).collect()
    }
}

impl FromIterator<(StreamName, Interval)> for Position {
    /// All of them; of one stream there may be several, in any order.
    fn from_iter<I: IntoIterator<Item = (StreamName, Interval)>>(intervals: I) -> Self {
        let mut all = BTreeMap::<StreamName, Vec<Interval>>::new();
        for (stream, interval) in intervals {
            all.entry(stream).or_default().push(interval);
        }
        Self { streams: all.into_iter().filter_map(|(stream, all)| Some((stream, Intervals::of(all)?))).collect() }
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which history a log is, stream by stream or as a whole. Positions of different histories must never be compared (rule P4).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct LogIdentity {
    /// What each stream that exists was recognised by.
    pub streams: BTreeMap<StreamName, Identity>,
    /// What the log was recognised by where its streams are origins of one history (a group of servers that replicate) and not
    /// things of their own. Of such a log the end names every origin: one that it does not name is at its beginning, so that a
    /// transaction which only a lost server had is *ahead* (rule P4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Identity>,
    /// Under what coordinates inside a transaction are valid: the server whose log was read (rule P2).
    pub coordinates: Option<Identity>,
}

/// How one log is another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The stream that differs, if it is not the whole log.
    pub stream: Option<StreamName>,
    /// What it was recognised by.
    pub was: Identity,
    /// And is.
    pub is: Identity,
}

impl LogIdentity {
    /// The first stream that both name and that is not the same history, with its identity here and there. A log that is one
    /// history as a whole is none whose streams have their own.
    pub fn differs_from(&self, other: &LogIdentity) -> Option<Difference> {
        let of_stream = |(stream, was): (&StreamName, &Identity)| match other.streams.get(stream) {
            Some(is) if is != was => Some(Difference { stream: Some(stream.clone()), was: was.clone(), is: is.clone() }),
            _ => None,
        };
        let says = |identity: &LogIdentity| identity.lineage.is_some() || !identity.streams.is_empty();
        let called = |identity: &LogIdentity| identity.lineage.clone().unwrap_or_else(|| Identity::from("its streams"));
        let of_lineage = (self.lineage != other.lineage && says(self) && says(other)).then(|| Difference {
            stream: None,
            was: called(self),
            is: called(other),
        });
        of_lineage.or_else(|| self.streams.iter().find_map(of_stream))
    }

    /// Does the log's end say how far this stream goes? Of a stream of its own that is gone it does not.
    pub fn knows(&self, stream: &StreamName) -> bool {
        self.lineage.is_some() || self.streams.contains_key(stream)
    }
}
