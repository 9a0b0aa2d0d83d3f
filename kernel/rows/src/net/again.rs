//! Rows that were read again for values that nobody here has (rules H2, H3): which image takes what of which.

use std::collections::HashMap;

use super::absent::Sources;
use super::located::Located;
use super::{NetError, ReadAgain};

/// Rows that were read, by key.
pub(super) struct Again<'a> {
    by_key: HashMap<&'a [u8], (Option<u32>, bool)>,
}

/// The final images once they have taken what was read.
pub(super) struct Filled {
    /// Rows of the log with an image, in log order.
    pub(super) upserts: Vec<u32>,
    /// For each the row that has its values, but for those that come from elsewhere.
    pub(super) images: Vec<u32>,
    /// Rows of the log whose key is removed, in log order.
    pub(super) deletes: Vec<u32>,
}

impl<'a> Again<'a> {
    /// Places the rows behind those of the log, which keep their numbers.
    pub(super) fn place(rows: &mut Located<'a>, read: &'a [ReadAgain<'a>]) -> Result<Self, NetError> {
        let mut by_key = HashMap::with_capacity(read.len());
        for again in read {
            let key = again.whole.then_some(again.key);
            let row = again.row.as_ref().map(|slice| rows.read_again(slice, key)).transpose()?;
            by_key.insert(again.key, (row, again.whole));
        }
        Ok(Self { by_key })
    }

    /// An image that lacks nothing takes nothing.
    pub(super) fn fill(&self, rows: &Located<'_>, sources: &mut Sources, upserts: Vec<u32>, deletes: Vec<u32>) -> Filled {
        let mut filled = Filled { images: upserts.clone(), upserts, deletes };
        if self.by_key.is_empty() {
            return filled;
        }
        let mut gone = Vec::new();
        for (at, number) in filled.upserts.iter().enumerate() {
            let (source, row) = rows.at(*number);
            let Some(read) = self.by_key.get(source.keys.key(row)).filter(|_| sources.lacks(*number)) else { continue };
            match *read {
                (Some(read), whole) => {
                    if whole {
                        filled.images[at] = read;
                    }
                    sources.take(rows, *number, read, whole);
                }
                (None, true) => gone.push(at),
                // Of a row that is gone nothing can be taken: it stays a hole.
                (None, false) => {}
            }
        }
        for at in gone.into_iter().rev() {
            filled.images.remove(at);
            filled.deletes.push(filled.upserts.remove(at));
        }
        filled.deletes.sort_unstable();
        filled
    }
}
