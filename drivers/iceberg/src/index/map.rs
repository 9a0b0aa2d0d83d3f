//! Where each key's row is: fingerprint -> (file, row), at 33 to 36 bytes a key however many there are.
//!
//! A hash table that doubles when it is full is half empty afterwards and for a moment needs three times its room. So
//! there are 64 tables, of unequal sizes on purpose: the largest gets twice as many keys as the smallest, in geometric
//! steps. They become full, and double, one after another. An entry has 20 bytes and a control byte.

use hashbrown::HashTable;

use super::fingerprint::Fingerprint;

/// Where a row lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    /// The number of its data file in the index.
    pub(crate) file: u32,
    /// Its row in the file.
    pub(crate) row: u32,
}

const SHARDS: usize = 64;
/// How finely hashes are divided among shards.
const GRAINS: usize = 4096;
/// Which bits of a hash choose the shard: the table below uses those on both sides of them.
const GRAIN_SHIFT: u32 = 36;

/// Fingerprint -> place.
#[derive(Clone, Debug)]
pub(crate) struct KeyMap {
    shards: Vec<HashTable<Slot>>,
    shard_of_grain: Box<[u8]>,
    secret: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: Fingerprint,
    place: Place,
}

impl KeyMap {
    pub(crate) fn new() -> Self {
        // Shard i begins at the grain 4096 * (2^(i/64) - 1): each is 2^(1/64) times as wide as the one before.
        let shard = |grain: usize| ((1.0 + grain as f64 / GRAINS as f64).log2() * SHARDS as f64) as u8;
        Self {
            shards: vec![HashTable::new(); SHARDS],
            shard_of_grain: (0..GRAINS).map(shard).collect(),
            secret: uuid::Uuid::new_v4().as_u64_pair().0,
            len: 0,
        }
    }

    /// How many keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where a key's row is.
    pub(crate) fn get(&self, key: &Fingerprint) -> Option<Place> {
        let hash = key.spread(self.secret);
        self.shards[self.shard(hash)].find(hash, |slot| slot.key == *key).map(|slot| slot.place)
    }

    /// Sets where a key's row is; answers where it was.
    pub(crate) fn insert(&mut self, key: Fingerprint, place: Place) -> Option<Place> {
        let hash = key.spread(self.secret);
        let (shard, secret) = (self.shard(hash), self.secret);
        let entry = self.shards[shard].entry(hash, |slot| slot.key == key, |slot| slot.key.spread(secret));
        match entry {
            hashbrown::hash_table::Entry::Occupied(mut slot) => Some(std::mem::replace(&mut slot.get_mut().place, place)),
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(Slot { key, place });
                self.len += 1;
                None
            }
        }
    }

    /// Forgets a key; answers where its row was.
    pub(crate) fn remove(&mut self, key: &Fingerprint) -> Option<Place> {
        let hash = key.spread(self.secret);
        let shard = self.shard(hash);
        let slot = self.shards[shard].find_entry(hash, |slot| slot.key == *key).ok()?;
        self.len -= 1;
        Some(slot.remove().0.place)
    }

    /// Forgets all keys whose row is not where `keep` says yes to.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Place) -> bool) {
        for shard in &mut self.shards {
            shard.retain(|slot| keep(slot.place));
        }
        self.len = self.shards.iter().map(HashTable::len).sum();
    }

    /// Gives back memory that the keys left do not need.
    pub(crate) fn shrink(&mut self) {
        let secret = self.secret;
        for shard in &mut self.shards {
            shard.shrink_to_fit(|slot| slot.key.spread(secret));
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.allocation_size() as u64).sum()
    }

    /// Counts keys that are to be added, for [`KeyMap::bytes_with`].
    pub(crate) fn count(&self, key: &Fingerprint, more: &mut More) {
        more.0[self.shard(key.spread(self.secret))] += 1;
    }

    /// Bytes of memory once those keys are added. Never less than what it then is.
    pub(crate) fn bytes_with(&self, more: &More) -> u64 {
        let shard = |(shard, more): (&HashTable<Slot>, &u32)| {
            let needed = shard.len() + *more as usize;
            let now = shard.allocation_size() as u64;
            if needed <= shard.capacity() { now } else { now.max(table_bytes(needed)) }
        };
        self.shards.iter().zip(&more.0).map(shard).sum()
    }

    fn shard(&self, hash: u64) -> usize {
        usize::from(self.shard_of_grain[(hash >> GRAIN_SHIFT) as usize % GRAINS])
    }
}

/// How many keys are to be added to each shard.
#[derive(Clone, Debug)]
pub(crate) struct More([u32; SHARDS]);

impl Default for More {
    fn default() -> Self {
        Self([0; SHARDS])
    }
}

/// What a table that has grown to hold so many takes: at most 7/8 full, a power of two of slots, a control byte each.
fn table_bytes(keys: usize) -> u64 {
    let slots = (keys.max(3) * 8).div_ceil(7).next_power_of_two() as u64;
    slots * (size_of::<Slot>() as u64 + 1) + 64
}

#[cfg(test)]
mod tests {
    use super::super::fingerprint::Fingerprints;
    use super::*;

    fn key(of: &Fingerprints, i: u64) -> Fingerprint {
        let mut bytes = vec![1];
        bytes.extend(i.to_be_bytes());
        of.of(&bytes)
    }

    fn place(i: u64) -> Place {
        Place { file: (i / 1000) as u32, row: (i % 1000) as u32 }
    }

    #[test]
    fn a_key_is_found_where_it_was_put_last() {
        let (of, mut map) = (Fingerprints::random(), KeyMap::new());
        for i in 0..50_000 {
            assert_eq!(map.insert(key(&of, i), place(i)), None);
        }
        assert_eq!(map.insert(key(&of, 7), place(99)), Some(place(7)));
        assert_eq!(map.remove(&key(&of, 8)), Some(place(8)));
        assert_eq!(map.remove(&key(&of, 8)), None);
        assert_eq!((map.get(&key(&of, 7)), map.get(&key(&of, 8)), map.get(&key(&of, 60_000))), (Some(place(99)), None, None));
        assert_eq!((map.get(&key(&of, 49_999)), map.len()), (Some(place(49_999)), 49_999));
    }

    #[test]
    fn what_is_not_kept_is_forgotten() {
        let (of, mut map) = (Fingerprints::random(), KeyMap::new());
        for i in 0..3_000 {
            map.insert(key(&of, i), place(i));
        }
        map.retain(|place| place.file != 1);
        assert_eq!((map.len(), map.get(&key(&of, 1_500)), map.get(&key(&of, 2_500))), (2_000, None, Some(place(2_500))));
        let before = map.bytes();
        map.retain(|place| place.file == 2 && place.row < 100);
        map.shrink();
        assert!(map.bytes() * 4 < before, "{} bytes of {before} are kept for 100 of 3,000 keys", map.bytes());
        assert_eq!((map.len(), map.get(&key(&of, 2_099)), map.get(&key(&of, 2_100))), (100, Some(place(2_099)), None));
    }

    #[test]
    fn a_key_costs_at_most_forty_bytes_at_any_size_and_growth_is_foretold() {
        let (of, mut map) = (Fingerprints::random(), KeyMap::new());
        let mut next = 0;
        for step in 1..40 {
            let end = 100_000 + step * 37_000;
            let mut more = More::default();
            (next..end).for_each(|i| map.count(&key(&of, i), &mut more));
            let foretold = map.bytes_with(&more);
            for i in next..end {
                map.insert(key(&of, i), place(i));
            }
            next = end;
            assert!(map.bytes() <= foretold, "{} keys take {} bytes, {foretold} were foretold", map.len(), map.bytes());
            let each = map.bytes() as f64 / map.len() as f64;
            assert!((24.0..40.0).contains(&each), "{} keys take {each:.1} bytes each", map.len());
        }
    }
}
