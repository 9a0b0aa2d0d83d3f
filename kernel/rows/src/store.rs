//! The row store: holds batches by id while a machine decides about them.
//!
//! Machines know ids, never rows; the pump puts rows in here and hands the ids on. The store holds exactly the ids that
//! the machine knows: one that is held and not known is a leak, one that is known and not held was freed too early
//! (invariant `rows-held-equal-rows-known`). How much may be in here is the machine's decision (rule O9), which it takes by
//! the bytes that it is told; the store refuses nothing and says what it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::coordinator::RowRange;
use kernel::id::BatchId;

use crate::batch::{ChangeBatch, Slice};
use crate::key::EncodedKeys;

/// Batches by id.
#[derive(Debug, Default)]
pub struct RowStore {
    held: BTreeMap<BatchId, StoredBatch>,
    /// How many ids were given so far.
    given: u64,
    bytes: u64,
}

/// A batch in the store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StoredBatch {
    /// The batch.
    pub batch: Arc<ChangeBatch>,
    /// Its rows' encoded keys.
    pub keys: Arc<EncodedKeys>,
    /// What it counts in the store's bytes.
    pub bytes: u64,
}

/// A rule of the store that its user broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The batch was here, and was released.
    #[error("batch {} was released already", .0.0)]
    Released(BatchId),
    /// No batch ever had this id.
    #[error("no batch ever had the number {}", .0.0)]
    NeverGiven(BatchId),
}

/// The store and the machine do not agree about what is held.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the row store and the machine differ: {} held but not known (leaked), {} known but not held (freed too early)", .leaked.len(), .freed.len())]
pub struct Disagreement {
    /// Held here, not known there.
    pub leaked: Vec<BatchId>,
    /// Known there, not held here.
    pub freed: Vec<BatchId>,
}

impl RowStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a batch until it is released. Ids are never used again.
    pub fn insert(&mut self, batch: Arc<ChangeBatch>, keys: Arc<EncodedKeys>) -> BatchId {
        self.given += 1;
        let id = BatchId(self.given);
        let bytes = batch.bytes() + keys.memory();
        self.held.insert(id, StoredBatch { batch, keys, bytes });
        self.bytes += bytes;
        id
    }

    /// A batch that is held.
    pub fn get(&self, id: BatchId) -> Result<&StoredBatch, StoreError> {
        self.held.get(&id).ok_or_else(|| self.missing(id))
    }

    /// Some rows of a batch; `None` if it is not held or does not have them.
    pub fn slice(&self, range: &RowRange) -> Option<Slice> {
        let StoredBatch { batch, keys, .. } = self.held.get(&range.batch)?;
        let rows = range.rows.start as usize..range.rows.end as usize;
        let exist = rows.start <= rows.end && rows.end <= batch.rows();
        exist.then(|| Slice { batch: Arc::clone(batch), keys: Arc::clone(keys), rows })
    }

    /// Forgets a batch, and says how many bytes that frees here. Slices taken before keep their rows.
    pub fn release(&mut self, id: BatchId) -> Result<u64, StoreError> {
        let StoredBatch { bytes, .. } = self.held.remove(&id).ok_or_else(|| self.missing(id))?;
        self.bytes -= bytes;
        Ok(bytes)
    }

    /// What is held, in the order in which it came.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = BatchId> {
        self.held.keys().copied()
    }

    /// Compares what is held with the ids that a machine knows.
    pub fn agrees_with(&self, known: impl IntoIterator<Item = BatchId>) -> Result<(), Disagreement> {
        let known: BTreeSet<BatchId> = known.into_iter().collect();
        let leaked: Vec<BatchId> = self.ids().filter(|id| !known.contains(id)).collect();
        let freed: Vec<BatchId> = known.into_iter().filter(|id| !self.held.contains_key(id)).collect();
        if leaked.is_empty() && freed.is_empty() { Ok(()) } else { Err(Disagreement { leaked, freed }) }
    }

    /// How many batches are held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Is nothing held?
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The bytes of all that is held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn missing(&self, id: BatchId) -> StoreError {
        if (1..=self.given).contains(&id.0) { StoreError::Released(id) } else { StoreError::NeverGiven(id) }
    }
}
