//! What a generator made: how often each class came, and that none of them is rare.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Counts of each class among all that was looked at.
#[derive(Default)]
pub(crate) struct Classes {
    looked_at: RefCell<u32>,
    met: RefCell<BTreeMap<&'static str, u32>>,
}

impl Classes {
    /// One more was looked at, and is of some of these classes or not.
    pub(crate) fn note(&self, classes: &[(&'static str, bool)]) {
        *self.looked_at.borrow_mut() += 1;
        let mut met = self.met.borrow_mut();
        for (class, is) in classes {
            *met.entry(class).or_default() += u32::from(*is);
        }
    }

    /// At least one in twenty is of each class.
    #[track_caller]
    pub(crate) fn assert_all_met(&self) {
        let (all, met) = (*self.looked_at.borrow(), self.met.borrow());
        assert!(all > 0 && !met.is_empty(), "nothing was looked at");
        for (class, count) in met.iter() {
            assert!(count * 20 >= all, "only {count} of {all} are of the class '{class}': {met:?}");
        }
    }
}
