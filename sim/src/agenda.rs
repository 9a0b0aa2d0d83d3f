//! What is to happen, by time: of two things of one time the one that was planned first.

use std::collections::BTreeMap;

/// A plan of what is to happen.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    planned: u64,
    coming: BTreeMap<(u64, u64), T>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { planned: 0, coming: BTreeMap::new() }
    }
}

impl<T> Agenda<T> {
    /// Plans something.
    pub(crate) fn plan(&mut self, at: u64, what: T) {
        self.planned += 1;
        self.coming.insert((at, self.planned), what);
    }

    /// What comes next, and when.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        self.coming.pop_first().map(|((at, _), what)| (at, what))
    }

    /// How much was ever planned.
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }
}
