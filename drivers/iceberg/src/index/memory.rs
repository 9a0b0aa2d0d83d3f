//! The memory that the key indexes of all tables of a sink share: `sink.keyIndex.memory`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bound and what is used of it.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes_max: u64,
    used: AtomicU64,
}

impl Memory {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, used: AtomicU64::new(0) })
    }
}

/// One index's share. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<Memory>,
    bytes: u64,
}

/// The bound would be passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full {
    /// The bound.
    pub(crate) bytes_max: u64,
    /// What the other indexes use.
    pub(crate) others: u64,
}

impl Lease {
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Makes the share so large. A smaller one is always granted.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), Full> {
        let bytes_max = self.memory.bytes_max;
        let (old, mut full) = (self.bytes, None);
        let changed = self.memory.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
            let others = used.saturating_sub(old);
            let fits = bytes <= old || others.saturating_add(bytes) <= bytes_max;
            full = (!fits).then_some(Full { bytes_max, others });
            fits.then(|| others.saturating_add(bytes))
        });
        match (changed, full) {
            (Ok(_), _) => {
                self.bytes = bytes;
                Ok(())
            }
            (Err(used), full) => Err(full.unwrap_or(Full { bytes_max, others: used })),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_shared_and_what_is_dropped_is_given_back() {
        let memory = Memory::new(100);
        let (mut one, mut two) = (Lease::new(&memory), Lease::new(&memory));
        assert_eq!(one.resize(60), Ok(()));
        assert_eq!(two.resize(41), Err(Full { bytes_max: 100, others: 60 }));
        assert_eq!(two.resize(40), Ok(()));
        assert_eq!(one.resize(61), Err(Full { bytes_max: 100, others: 40 }));
        assert_eq!(one.resize(10), Ok(()));
        drop(two);
        assert_eq!(one.resize(100), Ok(()));
        drop(one);
        assert_eq!(memory.used.load(Ordering::SeqCst), 0);
    }
}
