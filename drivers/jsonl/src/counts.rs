//! What was read and passed over, counted: none of it may be silent, none of it is an error.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::envelope::Silent;

/// Counters of one source, over all its readings.
#[derive(Default, Debug)]
pub struct Counts {
    other_tables: AtomicU64,
    skipped: AtomicU64,
    refused: AtomicU64,
    pieces: AtomicU64,
    messages: AtomicU64,
    tombstones: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counted {
    /// Events of tables that the pipeline does not name.
    pub other_tables: u64,
    /// Lines that could not be read and were passed over (`onDecodeError: skip`).
    pub skipped: u64,
    /// Rows that were refused.
    pub refused: u64,
    /// Transactions that went on after they had ended.
    pub pieces: u64,
    /// Logical messages.
    pub messages: u64,
    /// Tombstones.
    pub tombstones: u64,
}

impl Counts {
    /// All counters.
    pub fn now(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            other_tables: read(&self.other_tables),
            skipped: read(&self.skipped),
            refused: read(&self.refused),
            pieces: read(&self.pieces),
            messages: read(&self.messages),
            tombstones: read(&self.tombstones),
        }
    }

    pub(crate) fn other_tables(&self) {
        self.other_tables.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn pieces(&self, more: u64) {
        self.pieces.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn messages(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn silent(&self, silent: Silent) {
        if silent == Silent::Tombstone {
            self.tombstones.fetch_add(1, Ordering::Relaxed);
        }
    }
}
