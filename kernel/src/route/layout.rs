//! Which slot has which key: a pure function, known by its name.

use alloc::format;

use crate::id::{LayoutName, Slot};

/// A function from encoded keys to slots. It is not stored: whatever a life computes it computes again, and what outlives a life
/// (a key index) is bound to the function's name (rules O1, O8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Layout {
    slots: u32,
}

/// A layout that can't be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// No slot, or too many of them.
    #[error("a table has 1 to {} slots, not {slots}", Layout::SLOTS_MAX)]
    Slots {
        /// How many were asked for.
        slots: u32,
    },
    /// A name that this version does not compute.
    #[error("'{name}' is no layout that this version knows; it knows 'fnv1a/N' with 1 to {} slots", Layout::SLOTS_MAX)]
    Unknown {
        /// The name.
        name: LayoutName,
    },
}

impl Layout {
    /// Slots that a table has at most: a checkpoint has a part for each.
    pub const SLOTS_MAX: u32 = 1_024;

    /// One slot for all keys.
    pub const WHOLE: Self = Self { slots: 1 };

    /// So many slots, with about equally many keys each.
    pub fn new(slots: u32) -> Result<Self, LayoutError> {
        if slots == 0 || slots > Self::SLOTS_MAX {
            return Err(LayoutError::Slots { slots });
        }
        Ok(Self { slots })
    }

    /// The layout of this name.
    pub fn named(name: &LayoutName) -> Result<Self, LayoutError> {
        let unknown = || LayoutError::Unknown { name: name.clone() };
        let slots = name.as_str().strip_prefix("fnv1a/").ok_or_else(unknown)?;
        let layout = slots.parse().ok().and_then(|slots| Self::new(slots).ok()).ok_or_else(unknown)?;
        // '+4' and '04' are no second names.
        if layout.name() == *name { Ok(layout) } else { Err(unknown()) }
    }

    /// What it computes, in a word.
    pub fn name(&self) -> LayoutName {
        LayoutName::from(format!("fnv1a/{}", self.slots))
    }

    /// How many slots there are.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.slots).map(Slot)
    }

    /// The slot of a key in its one canonical encoding.
    pub fn slot_of(&self, key: &[u8]) -> Slot {
        let hash =
            key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        // The low bits of this hash are poor for keys that differ in one byte.
        let spread = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Slot(u32::try_from(spread % u64::from(self.slots)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::{Layout, LayoutError};
    use crate::id::{LayoutName, Slot};

    #[test]
    fn a_layout_is_its_name() {
        let four = Layout::new(4).unwrap();
        assert_eq!(four.name(), LayoutName::from("fnv1a/4"));
        assert_eq!(Layout::named(&four.name()), Ok(four));
        for wrong in ["fnv1a/0", "fnv1a/04", "fnv1a/1025", "fnv1a/", "md5/4", ""] {
            let name = LayoutName::from(wrong);
            assert_eq!(Layout::named(&name), Err(LayoutError::Unknown { name: name.clone() }));
        }
        assert_eq!(Layout::new(0).unwrap_err().to_string(), "a table has 1 to 1024 slots, not 0");
    }

    #[test]
    fn the_function_behind_a_name_never_changes() {
        let four = Layout::new(4).unwrap();
        let slots: std::vec::Vec<u32> = (0..12_u8).map(|key| four.slot_of(&[1, key]).0).collect();
        assert_eq!(slots, [1, 1, 0, 3, 0, 2, 2, 1, 1, 2, 3, 3]);
        assert_eq!(Layout::WHOLE.slot_of(b"any"), Slot(0));
    }

    #[test]
    fn neighbouring_keys_spread_over_all_slots() {
        for slots in [2, 3, 7, 64] {
            let layout = Layout::new(slots).unwrap();
            let mut counts = std::vec![0_u32; slots as usize];
            for key in 0..10_000_u32 {
                counts[layout.slot_of(&key.to_be_bytes()).0 as usize] += 1;
            }
            let even = 10_000 / slots;
            assert!(counts.iter().all(|c| *c > even / 2 && *c < even * 2), "{slots}: {counts:?}");
        }
    }
}
