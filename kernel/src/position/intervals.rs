//! What a position holds of one stream: everything before an offset, or a set with holes.

use alloc::vec::Vec;

use super::Offset;

/// Everything from an offset to before another one. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interval {
    /// The first place in it.
    pub from: Offset,
    /// The first place behind it.
    pub to: Offset,
}

impl Interval {
    /// Of a place.
    pub fn contains(&self, at: Offset) -> bool {
        self.from <= at && at < self.to
    }

    /// How many places.
    pub fn count(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// Intervals in their order, with something between any two. One alone, the prefix of every stream that is read in order, needs
/// no allocation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Intervals {
    /// Exactly one.
    One([Interval; 1]),
    /// At least two.
    Several(Vec<Interval>),
}

impl Intervals {
    /// What lies in any of these, in whatever order they come; `None` if that is nothing.
    pub(super) fn of(mut all: Vec<Interval>) -> Option<Self> {
        all.retain(|interval| interval.from < interval.to);
        all.sort_unstable_by_key(|interval| interval.from);
        all.dedup_by(|next, before| {
            let touch = next.from <= before.to;
            if touch {
                before.to = before.to.max(next.to);
            }
            touch
        });
        match all.as_slice() {
            [] => None,
            [one] => Some(Intervals::One([*one])),
            [_, _, ..] => Some(Intervals::Several(all)),
        }
    }

    pub(super) fn as_slice(&self) -> &[Interval] {
        match self {
            Intervals::One(one) => one,
            Intervals::Several(several) => several,
        }
    }

    /// How far they go from the beginning of the stream without a hole.
    pub(super) fn prefix(&self) -> Offset {
        match self.as_slice() {
            [first, ..] if first.from == Offset(0) => first.to,
            _ => Offset(0),
        }
    }

    pub(super) fn contains(&self, at: Offset) -> bool {
        let all = self.as_slice();
        let begun = all.partition_point(|interval| interval.from <= at);
        begun.checked_sub(1).and_then(|last| all.get(last)).is_some_and(|interval| interval.contains(at))
    }

    pub(super) fn contains_all(&self, others: &[Interval]) -> bool {
        let all = self.as_slice();
        let within = |other: &Interval| {
            let begun = all.partition_point(|interval| interval.from <= other.from);
            begun.checked_sub(1).and_then(|last| all.get(last)).is_some_and(|interval| other.to <= interval.to)
        };
        others.iter().all(within)
    }

    /// Adds an interval: in place wherever it touches the last one or lies behind it, as it does in a log that is read in order.
    pub(super) fn insert(&mut self, new: Interval) {
        if self.contains_all(&[new]) {
            return;
        }
        match self {
            Intervals::One([one]) if one.from <= new.from && new.from <= one.to => return one.to = new.to,
            Intervals::Several(several) => match several.last_mut() {
                Some(last) if last.from <= new.from && new.from <= last.to => return last.to = new.to,
                Some(last) if last.to < new.from => return several.push(new),
                _ => {}
            },
            Intervals::One(_) => {}
        }
        let mut all = self.as_slice().to_vec();
        all.push(new);
        if let Some(joined) = Self::of(all) {
            *self = joined;
        }
    }

    pub(super) fn meet(&self, others: &[Interval]) -> Option<Self> {
        let mut meet = Vec::new();
        let (mut ours, mut theirs) = (self.as_slice(), others);
        while let ([a, behind_a @ ..], [b, behind_b @ ..]) = (ours, theirs) {
            meet.push(Interval { from: a.from.max(b.from), to: a.to.min(b.to) });
            (ours, theirs) = if a.to <= b.to { (behind_a, theirs) } else { (ours, behind_b) };
        }
        Self::of(meet)
    }

    pub(super) fn without(&self, others: &[Interval]) -> Option<Self> {
        let mut left = Vec::new();
        for ours in self.as_slice() {
            let mut from = ours.from;
            let first = others.partition_point(|other| other.to <= ours.from);
            for other in others.iter().skip(first).take_while(|other| other.from < ours.to) {
                left.push(Interval { from, to: other.from });
                from = other.to;
            }
            left.push(Interval { from, to: ours.to });
        }
        Self::of(left)
    }

    pub(super) fn count(&self) -> u64 {
        self.as_slice().iter().map(Interval::count).fold(0, u64::saturating_add)
    }
}
