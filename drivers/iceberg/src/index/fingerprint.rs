//! What the index remembers of a key: 12 bytes.
//!
//! A short encoded key (up to 11 bytes: integers, dates, short text) is remembered itself, so that two keys can never be
//! taken for one another. A longer one is remembered by 95 bits of a hash whose secret is drawn anew in each process
//! (SipHash, twice): among a billion keys the chance of one collision is about 10^-11, below that of a bit
//! flipping unnoticed in memory, and nobody who chooses keys can raise it. That is why a hit is not checked against the
//! file: it would cost reading key columns all over the table at every commit.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Of how many bytes a key may be to be remembered itself.
const INLINE_MAX: usize = 11;
/// Marks a hash in the last byte, where else the length of a short key stands.
const HASHED: u8 = 0x80;

/// What the index remembers of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Fingerprint([u8; 12]);

/// Makes fingerprints. Those of two makers must not be compared.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints {
    secrets: [RandomState; 2],
}

impl Fingerprints {
    /// With secrets of its own.
    pub(crate) fn random() -> Self {
        Self { secrets: [RandomState::new(), RandomState::new()] }
    }

    /// The fingerprint of an encoded key.
    pub(crate) fn of(&self, key: &[u8]) -> Fingerprint {
        let mut bytes = [0; 12];
        if key.len() <= INLINE_MAX {
            bytes[..key.len()].copy_from_slice(key);
            bytes[INLINE_MAX] = key.len() as u8;
            return Fingerprint(bytes);
        }
        let [one, two] = [0, 1].map(|i: usize| {
            let mut hasher = self.secrets[i].build_hasher();
            hasher.write(key);
            hasher.finish()
        });
        bytes[..8].copy_from_slice(&one.to_le_bytes());
        bytes[8..].copy_from_slice(&(two as u32).to_le_bytes());
        bytes[INLINE_MAX] |= HASHED;
        Fingerprint(bytes)
    }
}

impl Fingerprint {
    /// A number that spreads fingerprints over a table, whatever the keys look like.
    pub(super) fn spread(&self, secret: u64) -> u64 {
        let low = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i: usize| self.0[i]));
        let high = u32::from_le_bytes([8, 9, 10, 11].map(|i: usize| self.0[i]));
        let product = u128::from(low ^ secret) * u128::from((u64::from(high) << 32 | u64::from(high)) ^ 0x9E37_79B9_7F4A_7C15);
        let mixed = (product as u64) ^ ((product >> 64) as u64);
        mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ (mixed >> 29)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn short_keys_are_remembered_themselves() {
        let of = Fingerprints::random();
        assert_eq!(of.of(b"").0, [0; 12]);
        assert_eq!(of.of(b"ab").0, *b"ab\0\0\0\0\0\0\0\0\0\x02");
        assert_eq!(of.of(b"ab\0").0, *b"ab\0\0\0\0\0\0\0\0\0\x03");
        assert_eq!(of.of(b"elevenbytes").0, *b"elevenbytes\x0b");
    }

    #[test]
    fn long_keys_are_hashed_and_never_look_short() {
        let of = Fingerprints::random();
        let seen: HashSet<_> = (0..20_000).map(|i| of.of(format!("a key that is long {i}").as_bytes()).0).collect();
        assert_eq!(seen.len(), 20_000);
        assert!(seen.iter().all(|bytes| bytes[11] & HASHED != 0));
    }

    #[test]
    fn the_secret_is_drawn_anew() {
        let key = b"twelve bytes";
        assert_ne!(Fingerprints::random().of(key), Fingerprints::random().of(key));
    }

    #[test]
    fn sequential_keys_spread_evenly() {
        let of = Fingerprints::random();
        for shift in [0, 32, 57] {
            let mut buckets = [0u32; 128];
            for i in 0..64_000u64 {
                let mut key = vec![1];
                key.extend((i * 256).to_be_bytes());
                buckets[(of.of(&key).spread(17) >> shift) as usize % 128] += 1;
            }
            assert!(buckets.iter().all(|&n| (350..650).contains(&n)), "bits from {shift}: {buckets:?}");
        }
    }
}
