//! The one key encoding: netting, routing, fences, indexes and stored state all compare these bytes and nothing else.

/// The encoded keys of the rows of a batch, in order, with a hash of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodedKeys {
    bytes: Vec<u8>,
    /// `ends[i]` is where key i ends in `bytes`.
    ends: Vec<u32>,
    hashes: Vec<u64>,
}

impl EncodedKeys {
    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of key `row`.
    pub fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    /// A 64-bit hash of key `row`: the same in every process and version, since it is stored.
    pub fn hash(&self, row: usize) -> u64 {
        self.hashes[row]
    }
}
