//! Rows that a commit deletes by their place in a data file, and how several owners' are put together (rule O7).

use alloc::collections::{BTreeMap, BTreeSet};

use crate::id::FileName;

/// For each data file the positions of the rows that go. A file has one deletion vector at a time; so has a value of this type.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Deletions(BTreeMap<FileName, BTreeSet<u64>>);

impl Deletions {
    /// One more row goes.
    pub fn delete(&mut self, file: FileName, position: u64) {
        self.0.entry(file).or_default().insert(position);
    }

    /// What another owner deletes, or what is deleted in the snapshot already, joins: two owners may delete in one file, since a
    /// compaction puts rows of all slots into it.
    pub fn join(&mut self, other: &Self) {
        for (file, positions) in &other.0 {
            self.0.entry(file.clone()).or_default().extend(positions);
        }
    }

    /// The wrong way: the last owner's vector takes the place of the others'.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn replace(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// The files, each with its one vector.
    pub fn files(&self) -> impl Iterator<Item = (&FileName, &BTreeSet<u64>)> {
        self.0.iter()
    }

    /// How many rows go.
    pub fn count(&self) -> u64 {
        self.0.values().map(|positions| positions.len() as u64).sum()
    }
}

impl FromIterator<(FileName, u64)> for Deletions {
    fn from_iter<I: IntoIterator<Item = (FileName, u64)>>(rows: I) -> Self {
        let mut deletions = Self::default();
        rows.into_iter().for_each(|(file, position)| deletions.delete(file, position));
        deletions
    }
}

#[cfg(test)]
mod tests {
    use super::Deletions;
    use crate::id::FileName;

    #[test]
    fn two_owners_that_delete_in_one_file_make_one_vector() {
        let file = FileName::from("f1");
        let mut all: Deletions = [(file.clone(), 3), (FileName::from("f2"), 0)].into_iter().collect();
        let other: Deletions = [(file.clone(), 1), (file.clone(), 3)].into_iter().collect();
        all.join(&other);
        let expected: Deletions = [(file.clone(), 1), (file, 3), (FileName::from("f2"), 0)].into_iter().collect();
        assert_eq!(all, expected);
        assert_eq!((all.count(), all.files().count()), (3, 2));
    }
}
