//! What a snapshot of the source shows: not a prefix of the log, but what is visible at a moment. A transaction is in the log
//! before it is visible, and visible before the source can say so; one that is not in the log yet may have begun long ago.

use std::collections::BTreeSet;

use fault_scenarios::{Small, Transaction};
use kernel::coordinator::{ChunkRange, Visibility};
use kernel::id::{Bound, EncodedKey, TransactionName};
use kernel::position::{LogIdentity, Position};

use super::Source;
use crate::history::{Change, History, Key, Kind, RowImage, Tab};

/// When a transaction is what to whom. In the log it is at its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// It began.
    pub begun: u64,
    /// New snapshots see it.
    pub visible: u64,
    /// The source can say that they do.
    pub listed: u64,
}

/// A chunk as it was read, before its rows go to a row store and the log's end is looked at.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its rows.
    pub rows: Vec<RowImage>,
    /// How far it came.
    pub end: Option<Bound>,
    /// What its snapshot saw.
    pub visibility: Visibility,
    /// The log's end when it was read.
    pub at_least: Position,
    /// The schema that its rows are of.
    pub schema: u32,
    /// Of the server that answered.
    pub identity: LogIdentity,
}

/// Rows as they were read again, before they go to a row store and the log's end is looked at.
#[derive(Clone, Debug)]
pub struct RowsNow {
    /// Those that are there.
    pub rows: Vec<RowImage>,
    /// Keys without a row.
    pub gone: Vec<Key>,
    /// What their snapshot saw.
    pub visibility: Visibility,
    /// The log's end when they were read.
    pub at_least: Position,
    /// Of the server that answered.
    pub identity: LogIdentity,
}

/// How visibility calls a transaction.
pub fn transaction_name(tx: usize) -> TransactionName {
    TransactionName::from(format!("x{tx}").as_str())
}

/// The number of a transaction's name.
pub fn transaction_number(name: &TransactionName) -> Option<usize> {
    name.as_str().strip_prefix('x')?.parse().ok()
}

/// A key as the machines know it.
pub fn encoded(key: Key) -> EncodedKey {
    EncodedKey::from([key].as_slice())
}

/// The key of one that the machines know.
pub fn decoded(encoded_key: &EncodedKey) -> Option<Key> {
    (0..=Key::MAX).find(|key| encoded(*key) == *encoded_key)
}

/// A bound as the machines know it. Its order is the source's own.
pub fn bound(key: Key) -> Bound {
    Bound::from(format!("k{key}").as_str())
}

/// The key that a bound names.
pub fn key_of(bound: &str) -> Option<Key> {
    bound.strip_prefix('k')?.parse().ok()
}

/// Is a key in the range behind `after`, up to `end`?
pub fn is_within(key: Key, after: Option<&str>, end: Option<&str>) -> bool {
    after.and_then(key_of).is_none_or(|after| key > after) && end.and_then(key_of).is_none_or(|end| key <= end)
}

/// When each transaction of a log becomes visible. Two that write the same key come one after the other: the second is in the log
/// only after the first is visible, since it had to wait for it.
pub fn visibility(history: &History, transactions: &[Transaction]) -> Vec<Seen> {
    let seen = |(n, t): (usize, &Transaction)| {
        let later = history.transactions.iter().enumerate().skip(n + 1);
        let waits = later.filter(|(other, l)| l.time < t.time + t.hidden && excludes(history, n, *other));
        let visible = waits.map(|(_, l)| l.time).min().unwrap_or(t.time + t.hidden);
        Seen { begun: t.time.saturating_sub(t.early), visible, listed: visible + t.unlisted }
    };
    transactions.iter().enumerate().map(seen).collect()
}

/// Does one have to wait for the other? They write the same key, or one of them needs a whole table for itself.
pub fn excludes(history: &History, one: usize, other: usize) -> bool {
    let (one, other) = (&history.transactions[one].changes, &history.transactions[other].changes);
    let whole = |kind: Kind| matches!(kind, Kind::Truncated | Kind::Schema(_));
    one.iter().any(|a| {
        let same_key = |b: Kind| keys(a.kind).iter().any(|key| keys(b).contains(key));
        // Between two schemas lies a change of it, which waits for all who write, and lets nobody write before it is visible.
        let waits = |b: &Change| whole(a.kind) || whole(b.kind) || same_key(b.kind) || a.schema != b.schema;
        other.iter().any(|b| a.table == b.table && waits(b))
    })
}

/// The keys that a change touches; a TRUNCATE touches all, and names none.
pub fn keys(kind: Kind) -> Vec<Key> {
    match kind {
        Kind::Row(key, _) => vec![key],
        Kind::Moved(from, to, _) => vec![from, to],
        Kind::Truncated | Kind::Schema(_) | Kind::Refused => vec![],
    }
}

impl Source {
    fn answers(&self) -> bool {
        !(self.away || self.replaced || self.cut_short.is_some())
    }

    /// What a snapshot taken now sees.
    pub fn sees(&self, now: u64, about: &[TransactionName], unfinished: bool) -> Option<Visibility> {
        let all = 0..self.history.transactions.len();
        let lists = |tx: usize| self.history.seen(tx).listed <= now;
        let running = |tx: &usize| self.history.seen(*tx).begun <= now && !lists(*tx);
        let proven = about.iter().filter(|name| transaction_number(name).is_some_and(lists)).cloned().collect();
        let unfinished = unfinished.then(|| all.filter(running).map(transaction_name).collect());
        self.answers().then_some(Visibility { proven, unfinished })
    }

    /// The rows of a table that are visible now, in the order of their keys.
    fn rows_now(&self, now: u64, table: Tab) -> Vec<RowImage> {
        let history = &self.history;
        let schema = self.schema_now(now, table);
        let mut rows = std::collections::BTreeMap::new();
        for place in history.of_table[table].iter().filter(|p| history.seen(p.tx).visible <= now) {
            match history.change(*place).kind {
                Kind::Truncated => rows.clear(),
                Kind::Row(..) | Kind::Moved(..) | Kind::Schema(_) | Kind::Refused => {}
            }
            let change = history.change(*place);
            for row in change.rows(*place) {
                let whole = RowImage { schema, large: change.large.map(Some), moved: false, ..row };
                match row.value {
                    Some(_) => rows.insert(row.key, whole),
                    None => rows.remove(&row.key),
                };
            }
        }
        rows.into_values().collect()
    }

    fn schema_now(&self, now: u64, table: Tab) -> u32 {
        let visible = self.history.of_table[table].iter().filter(|p| self.history.seen(p.tx).visible <= now);
        visible.map(|p| self.history.change(*p).schema).max().unwrap_or(0)
    }

    /// Reads a chunk.
    pub fn chunk(&self, now: u64, table: Tab, range: &ChunkRange, rows_max: u32, about: &[TransactionName]) -> Option<Chunk> {
        let visibility = self.sees(now, about, false)?;
        let text = |bound: &Option<Bound>| bound.as_ref().map(|b| b.as_str().to_string());
        let (after, end) = (text(&range.after), text(&range.end));
        let within = |row: &RowImage| is_within(row.key, after.as_deref(), end.as_deref());
        let mut rows: Vec<RowImage> = self.rows_now(now, table).into_iter().filter(within).collect();
        // It may stop at a bound of its own.
        let most = if self.dice.chance(Small::Chunks, &[now, table as u64], 100) { 1 } else { rows_max as usize };
        let divided = rows.len() > most;
        rows.truncate(most);
        let end = rows.last().filter(|_| divided).map(|row| bound(row.key)).or(range.end.clone());
        Some(Chunk {
            rows,
            end,
            visibility,
            at_least: self.end(now),
            schema: self.schema_now(now, table),
            identity: self.identity(now),
        })
    }

    /// Reads rows by their keys: what was not read for the bytes is in neither list.
    pub fn rows_again(&self, now: u64, table: Tab, keys: &[Key], bytes_max: u64, about: &[TransactionName]) -> Option<RowsNow> {
        let visibility = self.sees(now, about, false)?;
        let rows = self.rows_now(now, table);
        let gone = keys.iter().copied().filter(|key| !rows.iter().any(|row| row.key == *key)).collect();
        let most = (bytes_max / 10).max(1) as usize;
        let rows = rows.into_iter().filter(|row| keys.contains(&row.key)).take(most).collect();
        Some(RowsNow { rows, gone, visibility, at_least: self.end(now), identity: self.identity(now) })
    }

    /// Proposes bounds for a table's ranges.
    pub fn plan_ranges(&self, now: u64, table: Tab, wanted: u32) -> Option<Vec<Bound>> {
        let keys: BTreeSet<Key> = self.rows_now(now, table).iter().map(|row| row.key).collect();
        let chosen = |key: &Key| self.dice.chance(Small::Chunks, &[now, table as u64, u64::from(*key)], 300);
        let some: BTreeSet<Key> = keys.into_iter().filter(chosen).take(wanted as usize).collect();
        self.answers().then(|| some.into_iter().map(bound).collect())
    }
}
