//! Where transactions were ended though the log does not say so. If one went on, its pieces must be the same when the log is
//! read again, since positions stand between them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::id::StreamName;
use kernel::position::Position;

/// Offsets of such ends; shared by the readings of one life.
#[derive(Clone, Default, Debug)]
pub(crate) struct Breaks(Arc<Mutex<BTreeSet<(StreamName, u64)>>>);

impl Breaks {
    pub(crate) fn insert(&self, stream: &StreamName, end: u64) {
        self.with(|breaks| {
            breaks.insert((stream.clone(), end));
        });
    }

    /// The log said later that this was an end.
    pub(crate) fn remove(&self, stream: &StreamName, end: u64) {
        self.with(|breaks| {
            breaks.remove(&(stream.clone(), end));
        });
    }

    pub(crate) fn contains(&self, stream: &StreamName, end: u64) -> bool {
        self.with(|breaks| !breaks.is_empty() && breaks.contains(&(stream.clone(), end)))
    }

    /// Nothing before this position is read again.
    pub(crate) fn forget(&self, upto: &Position) {
        self.with(|breaks| breaks.retain(|(stream, end)| *end >= upto.offset(stream).0));
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeSet<(StreamName, u64)>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
