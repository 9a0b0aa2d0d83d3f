//! Where transactions were ended though the log does not say so. If one went on, its pieces must be the same when the log is
//! read again, since positions stand between them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::id::StreamName;
use kernel::position::Position;

/// Offsets of such ends.
#[derive(Clone, Default, Debug)]
pub(crate) struct Breaks {
    /// Those that this life made; its readings share them.
    made: Arc<Mutex<BTreeSet<(StreamName, u64)>>>,
    /// Where tables stand, maybe at one that an earlier life made.
    stands: Vec<Position>,
    /// Of them, those in the file that is read.
    stands_here: BTreeSet<u64>,
}

impl Breaks {
    /// For a reading by tables that stand here.
    #[must_use]
    pub(crate) fn with_stands(self, stands: &[Position]) -> Self {
        Self { stands: stands.to_vec(), ..self }
    }

    /// A file is read from now on.
    pub(crate) fn begin_file(&mut self, stream: &StreamName) {
        self.stands_here = self.stands.iter().map(|stand| stand.offset(stream).0).collect();
    }

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

    /// Is one between the last line of a transaction and the next line that names it? (A stand may have passed lines between
    /// the two that concern nobody.)
    pub(crate) fn divides(&self, stream: &StreamName, end: u64, begin: u64) -> bool {
        if end > begin {
            return false;
        }
        let of_stream = |offset| (stream.clone(), offset);
        self.stands_here.range(end..=begin).next().is_some()
            || self.with(|made| !made.is_empty() && made.range(of_stream(end)..=of_stream(begin)).next().is_some())
    }

    /// Nothing before this position is read again.
    pub(crate) fn forget(&self, upto: &Position) {
        self.with(|breaks| breaks.retain(|(stream, end)| *end >= upto.offset(stream).0));
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeSet<(StreamName, u64)>) -> T) -> T {
        act(&mut self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
