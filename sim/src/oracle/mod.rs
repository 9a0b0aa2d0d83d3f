//! The oracle: what must never happen, judged from outside, across lives. One function a rule, named and grouped as in the
//! design's list. Each is pure: it is given what it judges, so that a test can hand it a world that must not pass.
//!
//! Nothing here asks the kernel what a position or a cut covers: that is what is judged.

pub mod absent;
pub mod durability;
pub mod outcomes;
pub mod owners;
pub mod resources;
pub mod snapshots;
pub mod starting;

use std::collections::BTreeSet;

use kernel::config::{Join, OnTruncate};
use kernel::position::Position;
use kernel::state::TableState;

use crate::history::{Contents, Covered, History, Key, Kind, Place, Row, Tab, server_of};
use crate::plan::TablePlan;

/// What a rule says of something: nothing, or what is wrong.
pub type Verdict = Result<(), String>;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's name.
    pub rule: &'static str,
    /// When.
    pub at: u64,
    /// What was seen.
    pub dump: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.rule, self.at, self.dump)
    }
}

/// A table, and all that happened to it at the source.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The log.
    pub history: &'a History,
    /// The table.
    pub table: Tab,
    /// How it is copied.
    pub plan: &'a TablePlan,
    /// Where the copy begins; `None` before that is known.
    pub base: Option<&'a Position>,
    /// It holds what was there before its base, too: it began with a snapshot.
    pub whole: bool,
}

impl View<'_> {
    /// The changes that a complete copy has seen, in an order that keeps each key's.
    pub fn needed(&self) -> impl Iterator<Item = Place> {
        self.above(self.base)
    }

    /// The changes above a base. A table that begins now, or with a snapshot, has promised nothing before its beginning is stored.
    fn above(&self, base: Option<&Position>) -> impl Iterator<Item = Place> {
        let promised = !matches!(self.plan.join, Join::Now | Join::Snapshot);
        let base = base.map(|base| self.history.held(base));
        self.all().filter(move |place| base.as_ref().map_or(promised, |base| !base.holds(self.history, place.tx)))
    }

    /// Every change that has an effect.
    fn all(&self) -> impl Iterator<Item = Place> {
        let truncated = |place: Place| self.history.change(place).kind == Kind::Truncated;
        let ignored = move |place: &Place| truncated(*place) && self.plan.on_truncate == OnTruncate::Ignore;
        self.history.of_table[self.table].iter().copied().filter(move |place| !ignored(place))
    }

    /// What makes up the contents of a copy: with a snapshot also what was there before its base.
    fn counted(&self) -> Box<dyn Iterator<Item = Place> + '_> {
        if self.whole { Box::new(self.all()) } else { Box::new(self.needed()) }
    }

    /// What a copy with this state, or without any, covers.
    pub fn covered(&self, state: Option<&TableState>) -> Covered {
        let server = |s: &TableState| server_of(s.identity.coordinates.as_ref().map(|c| c.as_str()));
        state.map(|s| self.history.covered(&s.cut, server(s))).unwrap_or_default()
    }

    /// The first change at or below `position` that a copy with this state lacks.
    pub fn lacks(&self, state: Option<&TableState>, position: &Position) -> Option<Place> {
        let (held, covered) = (self.history.held(position), self.covered(state));
        // Of a state that is there its own base counts.
        let own = state.filter(|s| s.commit.number > 0).map(|s| &s.base);
        self.above(own.or(self.base)).find(|place| held.holds(self.history, place.tx) && !covered.covers(self.history, *place))
    }

    /// What the table holds when exactly these changes have been applied.
    pub fn fold(&self, applied: impl Fn(Place) -> bool) -> Contents {
        let mut contents = Contents::default();
        for place in self.counted().filter(|place| applied(*place)) {
            match self.history.change(place).kind {
                // Where it fails, a person has it passed over.
                Kind::Truncated if self.plan.on_truncate == OnTruncate::Fail => {}
                Kind::Truncated => contents = Contents::default(),
                Kind::Schema(_) | Kind::Refused => {}
                Kind::Row(..) | Kind::Moved(..) => {
                    if !self.plan.keyed {
                        for row in self.history.change(place).rows(place) {
                            *contents.kept.entry(row).or_default() += 1;
                        }
                        continue;
                    }
                    for (key, row) in self.history.change(place).leaves() {
                        match row {
                            Some(row) => contents.rows.insert(key, row),
                            None => contents.rows.remove(&key),
                        };
                    }
                }
            }
        }
        contents
    }

    /// The rows that a key has by these changes, one after the other.
    pub fn values_of(&self, key: Key, by: impl Fn(Place) -> bool) -> BTreeSet<Option<Row>> {
        let mut values = BTreeSet::new();
        for place in self.counted().filter(|place| by(*place)) {
            let change = self.history.change(place);
            if change.kind == Kind::Truncated && self.plan.on_truncate == OnTruncate::Propagate {
                values.insert(None);
            }
            values.extend(change.leaves().into_iter().filter(|(k, _)| *k == key).map(|(_, row)| row));
        }
        values
    }

    /// Is this what an `ahead` allows a key to show: a state of the source that lies above the cut, and in it?
    pub fn is_ahead(&self, state: &TableState, covered: &Covered, key: Key, row: Option<Row>) -> bool {
        let ahead = self.history.held(&state.ahead);
        let later = |place: Place| !covered.covers(self.history, place) && ahead.holds(self.history, place.tx);
        self.values_of(key, later).contains(&row)
    }

    /// For a message: which table, and what a place in the log is.
    pub fn say(&self, place: Place) -> String {
        let name = &self.history.tables[self.table];
        format!("{name} change {} of {:?} ({:?})", place.change, self.history.name(place.tx), self.history.change(place).kind)
    }
}
