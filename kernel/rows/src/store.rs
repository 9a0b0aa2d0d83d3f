//! The row store: holds batches by id while a machine decides about them, and counts their bytes.
//!
//! The machine knows ids, never rows. The store must hold exactly the ids that the machine knows: one too many is a leak, one
//! too few was released too early (`rows-held-equal-rows-known`); whoever drives both compares [`RowStore::ids`].

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::coordinator::RowRange;
use kernel::id::BatchId;

use crate::batch::{ChangeBatch, Slice};
use crate::key::EncodedKeys;

/// Batches by id.
#[derive(Debug, Default)]
pub struct RowStore {
    held: BTreeMap<BatchId, Held>,
    bytes: u64,
    last: u64,
}

#[derive(Debug)]
struct Held {
    batch: Arc<ChangeBatch>,
    keys: Arc<EncodedKeys>,
    bytes: u64,
}

/// The store does not hold this batch: it never did, or it was released before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the row store holds no batch {0:?}")]
pub struct NotHeld(pub BatchId);

impl RowStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a batch with its rows' encoded keys, under an id that was never used.
    pub fn insert(&mut self, batch: Arc<ChangeBatch>, keys: Arc<EncodedKeys>) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        let bytes = batch.bytes();
        self.bytes += bytes;
        self.held.insert(id, Held { batch, keys, bytes });
        id
    }

    /// Some rows of a batch; `None` if it is not held or does not have them.
    pub fn slice(&self, range: &RowRange) -> Option<Slice> {
        let held = self.held.get(&range.batch)?;
        let rows = range.rows.start as usize..range.rows.end as usize;
        let exist = rows.start <= rows.end && rows.end <= held.batch.rows();
        exist.then(|| Slice { batch: held.batch.clone(), keys: held.keys.clone(), rows })
    }

    /// Lets a batch go. Slices that were taken keep its memory until they are dropped.
    pub fn release(&mut self, id: BatchId) -> Result<(), NotHeld> {
        let held = self.held.remove(&id).ok_or(NotHeld(id))?;
        self.bytes -= held.bytes;
        Ok(())
    }

    /// The ids of what is held, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = BatchId> {
        self.held.keys().copied()
    }

    /// Bytes of what is held, as the batches say.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
