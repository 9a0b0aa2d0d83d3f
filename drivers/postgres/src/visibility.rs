//! Which transactions a snapshot of the server's sees, and how they are called: by numbers of 64 bits, in decimal, as
//! `pg_current_snapshot()` writes them. The log tells the lower 32 bits of such a number.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use kernel::id::TransactionName;

use crate::pgoutput::Malformed;

/// A transaction's number, which never comes again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FullXid(pub(crate) u64);

/// Finds the numbers of the log's transactions.
///
/// A slot keeps the server from giving out numbers that are 2^31 above one whose changes are still to be read. So the nearest number
/// with these lower bits is the right one, wherever reading begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Xids {
    /// Above every number that came, or where the server was when the session began.
    near: FullXid,
}

/// What a snapshot sees (`pg_snapshot`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// All below it are over.
    below: FullXid,
    /// It and all above are not seen.
    next: FullXid,
    /// Between the two: those that are not over.
    running: BTreeSet<FullXid>,
    /// On a standby `running` is always empty, whatever is running.
    lists_running: bool,
}

impl FullXid {
    pub(crate) fn name(self) -> TransactionName {
        TransactionName::from(self.0.to_string())
    }

    fn of(name: &TransactionName) -> Option<Self> {
        name.as_str().parse().ok().map(FullXid)
    }
}

impl fmt::Display for FullXid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Xids {
    /// Near this one, which the server named.
    pub(crate) fn near(near: FullXid) -> Self {
        Self { near }
    }

    /// The whole number of a transaction that comes next in the log.
    pub(crate) fn widen(&mut self, xid: u32) -> FullXid {
        let full = self.nearest(xid);
        self.near = self.near.max(full);
        full
    }

    /// The number with these lower bits that is nearest. There is none below 0.
    pub(crate) fn nearest(self, xid: u32) -> FullXid {
        const ROUND: u64 = 1 << 32;
        let near = self.near.0;
        let ahead = xid.wrapping_sub((near % ROUND) as u32);
        let above = near.saturating_add(ahead.into());
        match above.checked_sub(ROUND) {
            Some(below) if ahead >= 1 << 31 => FullXid(below),
            _ => FullXid(above),
        }
    }
}

impl Seen {
    /// What the server wrote of it: `xmin:xmax:running,...`.
    pub(crate) fn read(text: &str, lists_running: bool) -> Result<Self, Malformed> {
        let malformed = Malformed::NotText { what: "a snapshot" };
        let number = |text: &str| u64::from_str(text).map(FullXid).map_err(|_| malformed);
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(malformed);
        let (below, next, running) = (number(part()?)?, number(part()?)?, part()?);
        let running = running.split(',').filter(|xid| !xid.is_empty()).map(number).collect::<Result<_, _>>()?;
        Ok(Self { below, next, running, lists_running })
    }

    /// Where the server's numbers were.
    pub(crate) fn next(&self) -> FullXid {
        self.next
    }

    /// Does it provably see what this transaction did, if that did anything?
    fn proves(&self, xid: FullXid) -> bool {
        xid < self.below || (self.lists_running && xid < self.next && !self.running.contains(&xid))
    }

    /// Of these transactions those that it provably sees. A name that is none here is never proven.
    pub(crate) fn proven(&self, about: &BTreeSet<TransactionName>) -> BTreeSet<TransactionName> {
        about.iter().filter(|name| FullXid::of(name).is_some_and(|xid| self.proves(xid))).cloned().collect()
    }

    /// Every transaction that was not over when it was taken, if `locked` are the lower bits of all that held their lock **after**
    /// that. A snapshot alone does not tell: the newest transactions, above the newest that is over, are in no list of it.
    pub(crate) fn unfinished(&self, locked: impl Iterator<Item = u32>) -> BTreeSet<TransactionName> {
        let xids = Xids::near(self.next);
        let locked = locked.map(|xid| xids.nearest(xid));
        self.running.iter().copied().chain(locked).map(FullXid::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(xids: &[u64]) -> BTreeSet<TransactionName> {
        xids.iter().map(|xid| FullXid(*xid).name()).collect()
    }

    #[test]
    fn the_nearest_number_with_these_lower_bits_is_meant_on_both_sides_of_a_round() {
        const ROUND: u64 = 1 << 32;
        for (near, xid, full) in [
            (1000, 1000, 1000),
            (1000, 990, 990),
            (1000, 1001, 1001),
            (7 * ROUND + 5, 4_294_967_290, 7 * ROUND - 6),
            (7 * ROUND - 6, 5, 7 * ROUND + 5),
            (7 * ROUND, 3, 7 * ROUND + 3),
            (7 * ROUND + (1 << 31), 0, 7 * ROUND),
            (7 * ROUND + (1 << 31), u32::MAX, 7 * ROUND + u64::from(u32::MAX)),
            // Nothing is below 0, however near it would be.
            (5, u32::MAX, u64::from(u32::MAX)),
        ] {
            assert_eq!(Xids::near(FullXid(near)).nearest(xid), FullXid(full), "{xid} near {near}");
        }
    }

    #[test]
    fn a_log_may_go_round_more_than_once_in_a_session() {
        let mut xids = Xids::near(FullXid(100));
        let step = 1_u64 << 30;
        for n in 0..12 {
            let full = 90 + n * step;
            assert_eq!(xids.widen(full as u32), FullXid(full));
            assert_eq!(xids.widen((full - 5) as u32), FullXid(full - 5), "an older one that is committed later");
        }
    }

    #[test]
    fn where_reading_begins_does_not_change_a_name() {
        let log: Vec<u64> = (0..40).map(|n| (1 << 32) - 20 + n).collect();
        let names_from = |begin: usize| {
            let mut xids = Xids::near(FullXid((1 << 32) + 25));
            log[begin..].iter().map(|full| xids.widen(*full as u32)).collect::<Vec<_>>()
        };
        for begin in 0..log.len() {
            assert_eq!(names_from(begin), log[begin..].iter().copied().map(FullXid).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_snapshot_proves_what_is_over_and_nothing_else() {
        let seen = Seen::read("10:20:12,15", true).unwrap();
        assert_eq!(seen.proven(&names(&[9, 10, 11, 12, 15, 19, 20, 21])), names(&[9, 10, 11, 19]));
        assert_eq!(seen.proven(&["11", "x", ""].map(TransactionName::from).into()), names(&[11]));
    }

    #[test]
    fn a_snapshot_of_a_standby_proves_only_what_is_older_than_all_that_runs() {
        let seen = Seen::read("10:20:", false).unwrap();
        assert_eq!(seen.proven(&names(&[9, 10, 19, 20])), names(&[9]));
    }

    #[test]
    fn the_newest_transactions_are_unfinished_though_no_snapshot_lists_them() {
        const ROUND: u64 = 1 << 32;
        let seen = Seen::read(&format!("{}:{}:{}", ROUND - 9, ROUND - 2, ROUND - 9), true).unwrap();
        let locked = [u32::MAX - 8, u32::MAX, 4];
        assert_eq!(seen.unfinished(locked.into_iter()), names(&[ROUND - 9, ROUND - 1, ROUND + 4]));
        assert_eq!(seen.proven(&names(&[ROUND - 1, ROUND + 4])), names(&[]));
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        for text in ["", "1", "1:2", "a:2:", "1:2:x", "1:2:3,,x"] {
            assert!(Seen::read(text, true).is_err(), "{text}");
        }
        assert_eq!(Seen::read("1:2:", true).unwrap().next(), FullXid(2));
    }
}
