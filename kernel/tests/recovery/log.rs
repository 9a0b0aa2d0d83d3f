//! A small log, and what it defines: for a cut, the contents of each table.

use std::collections::BTreeMap;

use kernel::id::{Identity, StreamName, TableName};
use kernel::position::{Coordinate, Cut, Digest, LogIdentity, Offset, Position, Transaction};
use proptest::prelude::*;

pub(crate) const TABLES: [&str; 2] = ["orders", "lines"];
pub(crate) const STREAMS: [&str; 2] = ["a", "b"];

pub(crate) type Key = u8;
pub(crate) type Contents = BTreeMap<Key, usize>;

/// One row of the log. Its number is its value, so that no two are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: usize,
    pub(crate) key: Key,
    pub(crate) value: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Tx {
    pub(crate) stream: usize,
    pub(crate) at: u64,
    pub(crate) end: u64,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) transactions: Vec<Tx>,
    /// Its streams are origins that number their transactions, and each reading has them in an order of its own.
    pub(crate) sets: bool,
}

/// A log of streams. A key lies in one of them (rule P5).
pub(crate) fn log() -> impl Strategy<Value = Log> {
    let row = (0..TABLES.len(), 0u8..3, prop::bool::weighted(0.3));
    let transaction = (0..STREAMS.len(), prop::collection::vec(row, 0..7));
    (1..=STREAMS.len(), prop::collection::vec(transaction, 4..14)).prop_map(|(streams, transactions)| {
        let (mut ends, mut number) = ([0; STREAMS.len()], 0);
        let transactions = transactions.into_iter().map(|(stream, rows)| {
            let stream = stream % streams;
            let rows = rows.into_iter().map(|(table, key, gone)| {
                number += 1;
                Row { table, key: key + 10 * stream as u8, value: (!gone).then_some(number) }
            });
            let rows: Vec<Row> = rows.collect();
            let (at, end) = (ends[stream], ends[stream] + 1 + rows.len() as u64);
            ends[stream] = end;
            Tx { stream, at, end, rows }
        });
        Log { transactions: transactions.collect(), sets: false }
    })
}

impl Log {
    /// The same as a log of sets: origins number their transactions, and any of them writes any key. Two that write the same one keep
    /// their order (rule P5).
    pub(crate) fn of_sets(mut self) -> Self {
        self.sets = true;
        let mut numbers = [0; STREAMS.len()];
        for t in &mut self.transactions {
            (t.at, t.end) = (numbers[t.stream], numbers[t.stream] + 1);
            numbers[t.stream] += 1;
            t.rows.iter_mut().for_each(|row| row.key %= 10);
        }
        self
    }
}

pub(crate) fn coordinate(row: usize) -> Coordinate {
    Coordinate { major: row as u64, minor: 0 }
}

impl Log {
    pub(crate) fn name(&self, tx: usize) -> Transaction {
        let t = &self.transactions[tx];
        Transaction { stream: StreamName::from(STREAMS[t.stream]), at: Offset(t.at) }
    }

    /// Where the first `visible` transactions end.
    pub(crate) fn end(&self, visible: usize) -> Position {
        let ends = self.transactions[..visible].iter();
        ends.fold(Position::START, |end, t| end.join(&self.ended(t)))
    }

    /// What the end of a transaction says.
    pub(crate) fn ended(&self, t: &Tx) -> Position {
        Position::between(StreamName::from(STREAMS[t.stream]), Offset(if self.sets { t.at } else { 0 }), Offset(t.end))
    }

    /// Has one to come before the other, in every reading?
    pub(crate) fn precedes(&self, earlier: usize, later: usize) -> bool {
        let (one, other) = (&self.transactions[earlier], &self.transactions[later]);
        let conflicts = || one.rows.iter().any(|a| other.rows.iter().any(|b| (a.table, a.key) == (b.table, b.key)));
        earlier < later && if self.sets { conflicts() } else { one.stream == other.stream }
    }

    pub(crate) fn identity(&self) -> LogIdentity {
        if self.sets {
            return LogIdentity { lineage: Some(Identity::from("this")), ..LogIdentity::default() };
        }
        let streams = STREAMS.iter().map(|s| (StreamName::from(*s), Identity::from("this"))).collect();
        LogIdentity { streams, ..LogIdentity::default() }
    }

    pub(crate) fn digest(&self, tx: usize, row: usize) -> Digest {
        Digest { count: 1, hash: ((tx * 1_000 + row + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }

    /// Every row of a table, with its place.
    pub(crate) fn rows_of(&self, table: usize) -> impl Iterator<Item = (usize, usize, Row)> {
        let rows = |(tx, t): (usize, &Tx)| t.rows.iter().enumerate().map(move |(n, row)| (tx, n, *row)).collect::<Vec<_>>();
        self.transactions.iter().enumerate().flat_map(rows).filter(move |(_, _, row)| row.table == table)
    }

    /// Does a cut cover a row? The kernel is not asked: it is what is judged.
    pub(crate) fn covers(&self, cut: &Cut, tx: usize, row: usize) -> bool {
        self.holds(cut.upto(), tx) || cut.within().get(&self.name(tx)).is_some_and(|within| coordinate(row) <= within.last)
    }

    pub(crate) fn holds(&self, position: &Position, tx: usize) -> bool {
        let t = &self.transactions[tx];
        let (stream, at) = (StreamName::from(STREAMS[t.stream]), t.at);
        position.intervals_of(&stream).iter().any(|held| held.from.0 <= at && at < held.to.0)
    }

    /// What a table holds at a cut.
    pub(crate) fn contents(&self, table: usize, cut: &Cut) -> Contents {
        let mut contents = Contents::new();
        for (tx, n, row) in self.rows_of(table) {
            match row.value {
                _ if !self.covers(cut, tx, n) => {}
                Some(value) => drop(contents.insert(row.key, value)),
                None => drop(contents.remove(&row.key)),
            }
        }
        contents
    }

    /// The first row of a table in `position` that `cut` does not cover.
    pub(crate) fn lacks(&self, table: usize, cut: &Cut, position: &Position) -> Option<(usize, usize)> {
        self.rows_of(table).find(|(tx, n, _)| self.holds(position, *tx) && !self.covers(cut, *tx, *n)).map(|(tx, n, _)| (tx, n))
    }
}

pub(crate) fn table(name: &TableName) -> usize {
    TABLES.iter().position(|t| *t == name.as_str()).expect("a table of this world")
}
