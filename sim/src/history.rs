//! The log as it truly is: what every copy is judged by. It is written before a run begins and never changes; a transaction
//! becomes visible at its time.

use std::collections::BTreeMap;

use fault_scenarios::{GROUP_WORDS, GROUPS};
use kernel::id::{StreamName, TableName};
use kernel::position::{Coordinate, Cut, Interval, Offset, Position, Transaction};

pub use crate::source::chunks::Seen;
use crate::source::chunks::excludes;

/// A table of the source, by its number.
pub type Tab = usize;
/// A row's key.
pub type Key = u8;
/// A row's value. No two changes have the same.
pub type Value = u32;

/// Large values of a row, by group. Each is the value of the change that wrote it.
pub type Large<T> = [T; GROUPS];

/// A row without its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The value that every change sends.
    pub value: Value,
    /// Those that an update may leave out.
    pub large: Large<Value>,
}

impl From<Value> for Row {
    /// A row that was sent whole.
    fn from(value: Value) -> Self {
        Self { value, large: [value; GROUPS] }
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.value)?;
        let older = GROUP_WORDS.iter().zip(self.large).filter(|(_, large)| *large != self.value);
        older.into_iter().try_for_each(|(word, large)| write!(f, " with {word} {large}"))
    }
}

/// All transactions of all streams.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Their names.
    pub streams: Vec<StreamName>,
    /// When each stream appears.
    pub appears: Vec<u64>,
    /// Every transaction, in the order of their times.
    pub transactions: Vec<Tx>,
    /// The transactions of each stream, in order.
    pub of_stream: Vec<Vec<usize>>,
    /// The streams are origins that number their transactions: what holds one of them holds none before it by that.
    pub sets: bool,
    /// How long after its time each is in the log of every second server; where nothing is said, at once.
    pub late: Vec<u64>,
    /// The tables' names.
    pub tables: Vec<TableName>,
    /// The changes of each table, in an order that keeps each stream's.
    pub of_table: Vec<Vec<Place>>,
    /// When each transaction is visible; where nothing is said, as soon as it is in the log.
    pub seen: Vec<Seen>,
    /// The rows of each table at the end.
    rows: Vec<BTreeMap<Key, Row>>,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Tx {
    /// The stream that holds it.
    pub stream: usize,
    /// Where it begins in its stream.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// When it becomes visible.
    pub time: u64,
    /// What it does.
    pub changes: Vec<Change>,
}

impl Tx {
    /// Where it lies in its stream.
    pub fn interval(&self) -> Interval {
        Interval { from: Offset(self.at), to: Offset(self.end) }
    }
}

/// One change of one table.
#[derive(Clone, Debug)]
pub struct Change {
    /// The table.
    pub table: Tab,
    /// What happens to it.
    pub kind: Kind,
    /// The table's schema when it happens; 0 is the first one.
    pub schema: u32,
    /// The large values that it leaves out.
    pub without: Large<bool>,
    /// The large values that its row has behind it, sent or not.
    pub large: Large<Value>,
    /// Did the row that it moves exist?
    pub moves: bool,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A row has this value now; without one it is gone.
    Row(Key, Option<Value>),
    /// A row goes from one key to another.
    Moved(Key, Key, Value),
    /// The table is empty now.
    Truncated,
    /// The table's rows have this schema from here on.
    Schema(u32),
    /// A row that no policy lets through.
    Refused,
}

/// A place in the log: transaction and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The transaction's number.
    pub tx: usize,
    /// The change's number in it.
    pub change: usize,
}

/// One row as it travels: a change has one, or two if it moves a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowImage {
    /// Where it is from.
    pub place: Place,
    /// Its key.
    pub key: Key,
    /// Its value; none for a delete.
    pub value: Option<Value>,
    /// The schema that it was decoded under.
    pub schema: u32,
    /// The chunk that it was read in, if it is not the log's.
    pub chunk: Option<usize>,
    /// Its large values, as far as they were sent.
    pub large: Large<Option<Value>>,
    /// It came here from another key: the row in front of it tells that it is gone from there.
    pub moved: bool,
    /// The reading that it was read again by, if it was.
    pub reading: Option<usize>,
}

/// What a table holds: by key, and for a keyless target every row that came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Contents {
    /// The row of each key.
    pub rows: BTreeMap<Key, Row>,
    /// How often each row of the log is there.
    pub kept: BTreeMap<RowImage, u32>,
}

/// How a server numbers rows. Another server groups the same rows otherwise. Below the first row of each change there is a
/// number for its schema.
pub fn coordinate(server: u32, change: usize, row: usize) -> Coordinate {
    let Coordinate { major, minor } = schema_coordinate(server, change);
    Coordinate { major, minor: minor + 1 + row as u32 }
}

/// Where the schema of a change's rows is told.
pub fn schema_coordinate(server: u32, change: usize) -> Coordinate {
    let change = change as u64;
    match server % 2 {
        0 => Coordinate { major: change, minor: 0 },
        _ => Coordinate { major: change / 3, minor: (change % 3) as u32 * 3 },
    }
}

/// What a position or a cut covers of a history.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// What is covered of each stream.
    upto: Vec<Vec<Interval>>,
    within: Vec<(usize, Coordinate)>,
    server: u32,
}

impl Covered {
    /// Is a transaction, whole, in it?
    pub fn holds(&self, history: &History, tx: usize) -> bool {
        let t = &history.transactions[tx];
        self.upto.get(t.stream).is_some_and(|held| holds_place(held, t.at))
    }

    /// Is all of a change in it?
    pub fn covers(&self, history: &History, place: Place) -> bool {
        if self.holds(history, place.tx) {
            return true;
        }
        let last = match history.change(place).kind {
            Kind::Moved(..) => 1,
            Kind::Row(..) | Kind::Truncated | Kind::Schema(_) | Kind::Refused => 0,
        };
        let within = self.within.iter().find(|(tx, _)| *tx == place.tx);
        within.is_some_and(|(_, covered)| coordinate(self.server, place.change, last) <= *covered)
    }
}

/// Is a place in one of these? Written again, so that nothing is asked of the kernel that it could get wrong.
pub fn holds_place(held: &[Interval], at: u64) -> bool {
    held.iter().any(|interval| interval.from.0 <= at && at < interval.to.0)
}

impl Change {
    /// A change that sends all of its row.
    pub fn of(table: Tab, kind: Kind) -> Self {
        Self { table, kind, schema: 0, without: [false; GROUPS], large: [0; GROUPS], moves: false }
    }

    /// The rows that it sends.
    pub fn rows(&self, place: Place) -> Vec<RowImage> {
        let whole = |key, value| RowImage {
            place,
            key,
            value,
            schema: self.schema,
            chunk: None,
            large: [None; GROUPS],
            moved: false,
            reading: None,
        };
        let sent = std::array::from_fn(|group| (!self.without[group]).then_some(self.large[group]));
        match self.kind {
            Kind::Row(key, None) => vec![whole(key, None)],
            Kind::Row(key, value) => vec![RowImage { large: sent, ..whole(key, value) }],
            Kind::Moved(from, to, value) => {
                let there = RowImage { large: sent, moved: self.moves, ..whole(to, Some(value)) };
                vec![whole(from, None), there]
            }
            Kind::Truncated | Kind::Schema(_) | Kind::Refused => vec![],
        }
    }

    /// What the keys that it touches hold behind it.
    pub fn leaves(&self) -> Vec<(Key, Option<Row>)> {
        let row = |value| Row { value, large: self.large };
        match self.kind {
            Kind::Row(key, value) => vec![(key, value.map(row))],
            Kind::Moved(from, to, value) => vec![(from, None), (to, Some(row(value)))],
            Kind::Truncated | Kind::Schema(_) | Kind::Refused => vec![],
        }
    }

    /// Happens to the rows of its table: what it leaves out they have, or it was sent.
    fn happen(&mut self, rows: &mut BTreeMap<Key, Row>) {
        let (before, value) = match self.kind {
            Kind::Row(key, value) => (rows.get(&key).copied(), value),
            Kind::Moved(from, _, value) => (rows.remove(&from), Some(value)),
            Kind::Truncated => {
                rows.clear();
                return;
            }
            Kind::Schema(_) | Kind::Refused => return,
        };
        self.moves = matches!(self.kind, Kind::Moved(..)) && before.is_some();
        for group in 0..GROUPS {
            self.without[group] &= before.is_some();
            let sent = value.unwrap_or_default();
            self.large[group] = before.filter(|_| self.without[group]).map_or(sent, |before| before.large[group]);
        }
        for (key, row) in self.leaves() {
            match row {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }
}

impl RowImage {
    /// Does it leave something out of its row?
    pub fn lacks(&self) -> bool {
        self.value.is_some() && self.large.contains(&None)
    }
}

impl History {
    /// Adds a transaction, with its place in its stream.
    pub fn push(&mut self, mut tx: Tx) {
        let number = self.transactions.len();
        tx.changes.iter_mut().for_each(|change| change.happen(&mut self.rows[change.table]));
        for (change, c) in tx.changes.iter().enumerate() {
            self.of_table[c.table].push(Place { tx: number, change });
        }
        self.of_stream[tx.stream].push(number);
        self.transactions.push(tx);
    }

    /// A history without transactions.
    pub fn empty(streams: &[&str], tables: &[&str]) -> Self {
        Self {
            streams: streams.iter().map(|s| StreamName::from(*s)).collect(),
            appears: vec![0; streams.len()],
            transactions: vec![],
            of_stream: vec![vec![]; streams.len()],
            sets: false,
            late: vec![],
            tables: tables.iter().map(|t| TableName::from(*t)).collect(),
            of_table: vec![vec![]; tables.len()],
            seen: vec![],
            rows: vec![BTreeMap::new(); tables.len()],
        }
    }

    /// The change at a place.
    pub fn change(&self, place: Place) -> &Change {
        &self.transactions[place.tx].changes[place.change]
    }

    /// When a transaction is what to whom.
    pub fn seen(&self, tx: usize) -> Seen {
        let time = self.transactions[tx].time;
        self.seen.get(tx).copied().unwrap_or(Seen { begun: time, visible: time, listed: time })
    }

    /// How the machines name a transaction.
    pub fn name(&self, tx: usize) -> Transaction {
        let t = &self.transactions[tx];
        Transaction { stream: self.streams[t.stream].clone(), at: Offset(t.at) }
    }

    /// The number of a transaction's name.
    pub fn number(&self, transaction: &Transaction) -> Option<usize> {
        let stream = self.streams.iter().position(|s| *s == transaction.stream)?;
        let of = &self.of_stream[stream];
        of.binary_search_by_key(&transaction.at.0, |tx| self.transactions[*tx].at).ok().map(|n| of[n])
    }

    /// The number of a table's name.
    pub fn table(&self, name: &TableName) -> Option<Tab> {
        self.tables.iter().position(|t| t == name)
    }

    /// A table and a schema of it, by their names.
    pub fn schema(&self, table: &TableName, schema: &str) -> Option<(Tab, u32)> {
        Some((self.table(table)?, schema.strip_prefix('s')?.parse().ok()?))
    }

    /// Where the log ends at a time.
    pub fn end(&self, now: u64) -> Position {
        if self.sets {
            return self
                .transactions
                .iter()
                .filter(|t| t.time <= now)
                .map(|t| (self.streams[t.stream].clone(), t.interval()))
                .collect();
        }
        let of = |stream: usize| {
            let visible = self.of_stream[stream].iter().rev().find(|tx| self.transactions[**tx].time <= now);
            (self.streams[stream].clone(), Offset(visible.map_or(0, |tx| self.transactions[*tx].end)))
        };
        (0..self.streams.len()).filter(|s| self.appears[*s] <= now).map(of).collect()
    }

    /// Is this transaction, whole, in a position? Not asked of the kernel: it is what is judged.
    pub fn holds(&self, position: &Position, tx: usize) -> bool {
        let t = &self.transactions[tx];
        holds_place(position.intervals_of(&self.streams[t.stream]), t.at)
    }

    /// What the end of a transaction says: of a stream all up to there, of an origin this one.
    pub fn ended(&self, tx: usize) -> Position {
        let t = &self.transactions[tx];
        let from = if self.sets { t.at } else { 0 };
        Position::between(self.streams[t.stream].clone(), Offset(from), Offset(t.end))
    }

    /// Must one come before the other, on every server? They touch the same key, or one of them needs a whole table for itself.
    pub fn precedes(&self, earlier: usize, later: usize) -> bool {
        earlier < later && excludes(self, earlier, later)
    }

    /// The transactions in the order of a server's log, and when each is in it; `keeps_order` says whether those that touch the same key
    /// keep theirs (rule P5).
    pub fn order_of(&self, server: u32, keeps_order: bool) -> Vec<(u64, usize)> {
        let mut order: Vec<(u64, usize)> = vec![];
        for (tx, t) in self.transactions.iter().enumerate() {
            let late = if server % 2 == 1 { self.late.get(tx).copied().unwrap_or(0) } else { 0 };
            let before = order.iter().filter(|(_, earlier)| keeps_order && self.precedes(*earlier, tx)).map(|(at, _)| *at).max();
            order.push(((t.time + late).max(before.unwrap_or(0)), tx));
        }
        order.sort_unstable();
        order
    }

    /// What a position holds, ready to be asked often.
    pub fn held(&self, position: &Position) -> Covered {
        Covered { upto: self.streams.iter().map(|s| position.intervals_of(s).to_vec()).collect(), ..Covered::default() }
    }

    /// What a cut covers that was made under the numbering of `server`, ready to be asked often.
    pub fn covered(&self, cut: &Cut, server: u32) -> Covered {
        let within = cut.within().iter().filter_map(|(transaction, w)| Some((self.number(transaction)?, w.last)));
        Covered { within: within.collect(), server, ..self.held(cut.upto()) }
    }

    /// The last time at which something happens.
    pub fn last_time(&self) -> u64 {
        let late = self.late.iter().copied().max().unwrap_or(0);
        self.transactions.last().map_or(0, |t| t.time + late)
    }
}

/// The server whose numbering a state's coordinates are of; servers are called `server0`, `server1`.
pub fn server_of(coordinates: Option<&str>) -> u32 {
    coordinates.and_then(|c| c.strip_prefix("server")).and_then(|n| n.parse().ok()).unwrap_or(0)
}
