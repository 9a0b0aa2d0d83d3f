//! What tells states apart.

use std::hash::Hasher;

/// A hash that is fast, and the same for equal states within one search.
#[derive(Clone, Copy)]
pub(super) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fingerprint {
    pub(super) fn of(hash: impl FnOnce(&mut Self)) -> u64 {
        let mut hasher = Self::default();
        hash(&mut hasher);
        hasher.finish()
    }
}

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word) ^ (part.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ word.wrapping_add(0x9E37_79B9_7F4A_7C15)) * 0xDA94_2042_E4DD_58B5_u128;
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
