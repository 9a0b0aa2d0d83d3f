//! Which row of each key is the last one, and which came before which: one pass over the hashes of the keys.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::located::Located;
use crate::batch::Operation;

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// What happened to the keys.
pub(super) struct History {
    /// Is there a later row of the same key?
    superseded: Vec<bool>,
    /// The row before it of the same key, or [`NONE`]. Empty if nobody asks, or nobody knows.
    before: Vec<u32>,
}

impl History {
    /// Looks at every row's key once. The hash is computed already; a match is proven by the bytes.
    pub(super) fn of(rows: &Located<'_>, with_predecessors: bool) -> Self {
        let total = rows.places.len();
        let mut superseded = vec![false; total];
        let mut before = if with_predecessors { vec![NONE; total] } else { Vec::new() };
        let mut newest: HashTable<u32> = HashTable::with_capacity(total);
        let hash_of = |number: &u32| {
            let (source, row) = rows.at(*number);
            source.keys.hash(row)
        };
        for number in rows.numbers() {
            let (source, row) = rows.at(number);
            let key = source.keys.key(row);
            let is_same = |other: &u32| {
                let (source, row) = rows.at(*other);
                source.keys.key(row) == key
            };
            match newest.entry(source.keys.hash(row), is_same, hash_of) {
                Entry::Occupied(mut entry) => {
                    let earlier = std::mem::replace(entry.get_mut(), number);
                    superseded[earlier as usize] = true;
                    if with_predecessors {
                        before[number as usize] = earlier;
                    }
                }
                Entry::Vacant(entry) => {
                    entry.insert(number);
                }
            }
        }
        Self { superseded, before }
    }

    /// That of a table without a key, whose rows cannot be told apart.
    pub(super) fn unknown() -> Self {
        Self { superseded: Vec::new(), before: Vec::new() }
    }

    /// The last row of each key, in log order: those that are there, and those that are gone.
    pub(super) fn survivors(&self, rows: &Located<'_>) -> (Vec<u32>, Vec<u32>) {
        let alive = rows.numbers().filter(|number| !self.superseded[*number as usize]);
        alive.partition(|number| rows.operation(*number) != Operation::Delete)
    }

    /// The image that the row's key had before it in this checkpoint, if it had one and was not deleted since.
    pub(super) fn image_before(&self, rows: &Located<'_>, number: u32) -> Option<u32> {
        let before = self.before.get(number as usize).copied().filter(|before| *before != NONE)?;
        (rows.operation(before) != Operation::Delete).then_some(before)
    }
}
