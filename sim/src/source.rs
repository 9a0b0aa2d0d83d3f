//! A source of changes with the real thing's ugliness: streams that interleave anew at every reading, transactions larger than
//! any limit, keepalives that name what was not delivered, logs that vanish, shrink, or come from another server.

pub mod chunks;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kernel::coordinator::Restart;
use kernel::id::{Identity, Session, StreamName, TableName};
use kernel::outcome::LogFailure;
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};

use crate::history::{History, Kind, Place, RowImage, Tab, coordinate, schema_coordinate};
use crate::plan::SourcePlan;
use fault_scenarios::{Dice, EmptyTransactions, Small, mix};

/// The source, and what it has been made to forget.
#[derive(Clone, Debug)]
pub struct Source {
    history: Rc<History>,
    plan: SourcePlan,
    dice: Rc<Dice>,
    /// All that can no longer be streamed.
    pub floor: Position,
    /// All that was acknowledged.
    pub acknowledged: Position,
    /// What was forgotten beyond what was acknowledged.
    pub purged: bool,
    /// Another log stands here.
    pub replaced: bool,
    /// The log ends here, for now.
    pub cut_short: Option<Position>,
    /// Whose numbering coordinates have.
    pub server: u32,
    /// It can't be reached.
    pub away: bool,
    /// The log holds something unreadable behind the present end.
    pub poison: bool,
    /// What was told of each session, per stream: ends of transactions, and keepalives outside of them.
    pub told: Position,
    /// Keepalives sent inside a transaction: each names more than was delivered.
    pub told_inside: Vec<Position>,
    /// Sessions that read a divided transaction otherwise than it was.
    pub lies: BTreeSet<Session>,
    /// How many lies were told.
    pub lies_told: u64,
    readers: BTreeMap<Session, Reader>,
    last_session: u64,
    /// The streams as lanes.
    streams: Rc<Vec<Vec<usize>>>,
    /// When each transaction is in the log of the server that is read, where the log is one of sets.
    arrives: Vec<u64>,
}

/// One session's place in the log.
#[derive(Clone, Debug)]
struct Reader {
    tables: BTreeSet<Tab>,
    /// What it reads side by side: the streams, or the one log in which a server has the transactions of all origins.
    lanes: Rc<Vec<Vec<usize>>>,
    /// Per lane: the next transaction and the next change in it.
    next: Vec<(usize, usize)>,
    /// Lanes whose present transaction has sent something.
    begun: BTreeSet<usize>,
    divided: Vec<(TableName, Transaction, Coordinate)>,
    /// The schema that a table's rows have here, where it is known.
    schemas: BTreeMap<Tab, u32>,
    server: u32,
    lies: bool,
    /// Its number, and how many small choices it has made.
    rolled: [u64; 2],
}

impl Reader {
    fn roll(&mut self, dice: &Dice, n: u64) -> u64 {
        self.rolled[1] += 1;
        dice.roll(Small::Reading, &self.rolled, n)
    }

    fn chance(&mut self, dice: &Dice, permille: u64) -> bool {
        self.rolled[1] += 1;
        dice.chance(Small::Reading, &self.rolled, permille)
    }
}

/// What opening the log says.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The new session.
    pub session: Session,
    /// Which log it is.
    pub identity: LogIdentity,
    /// What can't be streamed.
    pub floor: Position,
    /// Where the log ends.
    pub end: Position,
}

/// Something that the log says, before it is put into batches.
#[derive(Clone, Debug)]
pub enum Said {
    /// Neighbouring rows of one table in one transaction.
    Rows {
        /// The table.
        table: Tab,
        /// The transaction.
        transaction: Transaction,
        /// The rows.
        rows: Vec<RowImage>,
        /// Of the first.
        first: Coordinate,
        /// Of the last.
        last: Coordinate,
        /// Of all.
        digest: Digest,
    },
    /// Another change.
    Event {
        /// The table.
        table: Tab,
        /// The transaction.
        transaction: Transaction,
        /// Where in it.
        coordinate: Coordinate,
        /// What it is.
        kind: Kind,
    },
    /// A transaction ended.
    Ended(Transaction, Position),
    /// Nothing up to here.
    Keepalive(Position),
}

impl Source {
    /// A source of this log.
    pub fn new(history: Rc<History>, plan: SourcePlan, dice: Rc<Dice>) -> Self {
        let mut source = Self {
            streams: Rc::new(history.of_stream.clone()),
            arrives: vec![],
            history,
            plan,
            dice,
            floor: Position::START,
            acknowledged: Position::START,
            purged: false,
            replaced: false,
            cut_short: None,
            server: 0,
            away: false,
            poison: false,
            told: Position::START,
            told_inside: vec![],
            lies: BTreeSet::new(),
            lies_told: 0,
            readers: BTreeMap::new(),
            last_session: 0,
        };
        source.look_at_server();
        source
    }

    /// When transactions arrive on the server that is read.
    fn look_at_server(&mut self) {
        if self.history.sets {
            let order = self.history.order_of(self.server, self.plan.keeps_key_order);
            self.arrives = vec![0; order.len()];
            order.into_iter().for_each(|(at, tx)| self.arrives[tx] = at);
        }
    }

    /// Puts a reader to where all is behind it that is in `from`.
    fn put(&self, reader: &mut Reader, from: &Position) {
        if !self.history.sets {
            let next = |stream: &Vec<usize>| (stream.iter().filter(|tx| self.history.holds(from, **tx)).count(), 0);
            (reader.lanes, reader.next) = (self.streams.clone(), self.streams.iter().map(next).collect());
            return;
        }
        let has = |tx: &usize| self.cut_short.as_ref().is_none_or(|short| self.history.holds(short, *tx));
        let mut lane: Vec<usize> = (0..self.arrives.len()).filter(|tx| has(tx) && !self.history.holds(from, *tx)).collect();
        lane.sort_by_key(|tx| (self.arrives[*tx], *tx));
        (reader.lanes, reader.next) = (Rc::new(vec![lane]), vec![(0, 0)]);
    }

    /// The log is another server's from now on.
    pub fn switch_server(&mut self) {
        self.server += 1;
        self.end_sessions();
        self.look_at_server();
    }

    /// What a server has that lacks the last transactions of a stream, and all that must come after them.
    pub fn end_without(&self, now: u64, stream: usize, last: usize) -> Position {
        let history = &self.history;
        let there = |tx: &usize| history.transactions[*tx].time <= now && !history.holds(&self.floor, *tx);
        let mut gone: Vec<usize> = history.of_stream[stream].iter().copied().filter(there).rev().take(last).collect();
        for tx in (0..history.transactions.len()).filter(there) {
            let follows = |gone: &usize| history.sets && history.precedes(*gone, tx);
            if !gone.contains(&tx) && gone.iter().any(follows) {
                gone.push(tx);
            }
        }
        let lost = gone.iter().map(|tx| {
            let t = &history.transactions[*tx];
            (history.streams[t.stream].clone(), t.interval())
        });
        let left = history.end(now).without(&lost.collect());
        // Of a stream the server has all up to somewhere.
        if history.sets { left } else { left.streams().map(|(stream, offset)| (stream.clone(), offset)).collect() }
    }

    /// Does it promise that two changes of one key keep their order?
    pub fn keeps_key_order(&self) -> bool {
        self.plan.keeps_key_order
    }

    /// Where the log ends now: never before what was told.
    pub fn end(&self, now: u64) -> Position {
        match &self.cut_short {
            Some(short) => short.clone(),
            None => self.history.end(now).join(&self.told),
        }
    }

    /// Which log a reader meets.
    pub fn identity(&self, now: u64) -> LogIdentity {
        let name = if self.replaced { "another" } else { "this" };
        let streams = self.history.streams.iter().zip(&self.history.appears).filter(|(_, at)| **at <= now);
        if self.history.sets {
            let coordinates = Some(Identity::from(format!("server{}", self.server).as_str()));
            return LogIdentity { lineage: Some(Identity::from(name)), coordinates, ..LogIdentity::default() };
        }
        LogIdentity {
            lineage: None,
            streams: streams.map(|(s, _)| (s.clone(), Identity::from(name))).collect(),
            coordinates: Some(Identity::from(format!("server{}", self.server).as_str())),
        }
    }

    /// Opens the log for `tables`.
    pub fn open(&mut self, now: u64, tables: BTreeSet<Tab>, lies: bool) -> Result<Opened, LogFailure> {
        if self.away {
            return Err(LogFailure::SessionLost { why: "the source is away".into() });
        }
        self.last_session += 1;
        let session = Session(self.last_session);
        if self.plan.exclusive {
            self.readers.clear();
        }
        if lies {
            self.lies.insert(session);
        }
        let mut reader = Reader {
            tables,
            lanes: Rc::default(),
            next: vec![],
            begun: BTreeSet::new(),
            divided: vec![],
            schemas: BTreeMap::new(),
            server: self.server,
            lies,
            rolled: [session.0, 0],
        };
        self.put(&mut reader, &Position::START);
        self.readers.insert(session, reader);
        Ok(Opened { session, identity: self.identity(now), floor: self.floor.clone(), end: self.end(now) })
    }

    /// Ends every session: what was opened before the log changed is over.
    pub fn end_sessions(&mut self) {
        self.readers.clear();
    }

    /// Ends one session.
    pub fn end_session(&mut self, session: Session) {
        self.readers.remove(&session);
    }

    /// Can this session still speak?
    pub fn is_open(&self, session: Session) -> bool {
        self.readers.contains_key(&session)
    }

    /// Nothing goes wrong any more, and the log is one that is followed.
    pub fn heal(&mut self) {
        if self.replaced || self.cut_short.is_some() || !self.plan.keeps_key_order {
            self.end_sessions();
        }
        self.plan.keeps_key_order = true;
        self.look_at_server();
        (self.away, self.poison, self.replaced, self.cut_short) = (false, false, false, None);
        self.plan.finishes = false;
        for reader in self.readers.values_mut() {
            reader.lies = false;
        }
    }

    /// The source may forget this.
    pub fn acknowledge(&mut self, upto: &Position) {
        self.acknowledged.join_with(upto);
        if self.plan.discards {
            self.floor.join_with(upto);
        }
    }

    /// The source forgets so many transactions of a stream more, whatever was acknowledged; false if there are none.
    pub fn purge(&mut self, now: u64, stream: usize, more: usize) -> bool {
        let end = self.history.end(now);
        let gone = |tx: &&usize| self.history.holds(&self.floor, **tx);
        let left: Vec<usize> = self.history.of_stream[stream].iter().filter(|tx| !gone(tx)).take(more).copied().collect();
        let last = left.iter().rfind(|tx| self.history.holds(&end, **tx));
        let Some(last) = last.copied() else { return false };
        // Of a log of sets all goes that came before it on this server.
        let older = |tx: &usize| (self.arrives[*tx], *tx) <= (self.arrives[last], last) && self.history.holds(&end, *tx);
        let older: Vec<usize> = if self.history.sets { (0..self.arrives.len()).filter(older).collect() } else { vec![last] };
        older.into_iter().for_each(|tx| self.floor.join_with(&self.history.ended(tx)));
        self.purged = true;
        true
    }

    /// Reads on in a session, or from a new beginning.
    pub fn read(
        &mut self,
        now: u64,
        session: Session,
        restart: Option<&Restart>,
        rows_max: usize,
    ) -> Result<(Vec<Said>, bool), LogFailure> {
        let lost = |why: &str| LogFailure::SessionLost { why: why.into() };
        if self.away {
            return Err(lost("the source is away"));
        }
        let Some(mut reader) = self.readers.remove(&session) else { return Err(lost("the session is over")) };
        if let Some(restart) = restart {
            self.put(&mut reader, &restart.from);
            reader.begun.clear();
            reader.divided.clone_from(&restart.divided);
            reader.schemas = restart.schemas.iter().filter_map(|(name, schema)| self.history.schema(name, schema)).collect();
        }
        if (0..reader.next.len()).any(|lane| self.is_below_floor(&reader.lanes[lane], reader.next[lane].0)) {
            return Err(LogFailure::PositionLost { why: "the log does not reach back so far any more".into() });
        }
        let dice = self.dice.clone();
        let mut said = vec![];
        let mut rows = 0;
        while rows < rows_max && said.len() < 40 {
            let ready: Vec<usize> = (0..reader.next.len()).filter(|s| self.is_ready(now, &reader, *s)).collect();
            if ready.is_empty() {
                break;
            }
            let inside: Vec<usize> = ready.iter().copied().filter(|s| reader.next[*s].1 > 0).collect();
            let changes_over = inside.is_empty() || (self.plan.interleaves_inside && reader.chance(&dice, 400));
            let of = if changes_over { &ready } else { &inside };
            let stream = of[reader.roll(&dice, of.len() as u64) as usize];
            for _ in 0..12 - reader.roll(&dice, 12) {
                let before = reader.next[stream].0;
                rows += self.step(&mut reader, stream, &mut said);
                if reader.chance(&dice, self.plan.keepalives) {
                    self.keepalive(&reader, stream, &mut said);
                }
                if reader.next[stream].0 != before || rows >= rows_max {
                    break;
                }
            }
        }
        let at_end = (0..reader.next.len()).all(|s| !self.is_ready(now, &reader, s));
        if at_end && said.is_empty() && self.poison {
            self.readers.insert(session, reader);
            return Err(LogFailure::Poison { why: "there is something that can't be read".into() });
        }
        let done = reader.lanes.iter().zip(&reader.next).all(|(stream, next)| next.0 == stream.len());
        let finished = self.plan.finishes && done && at_end && self.cut_short.is_none();
        let speaks = self.plan.keepalives > 0 || self.plan.empty_transactions != EmptyTransactions::End;
        if speaks && at_end && (said.is_empty() || finished) {
            let appears = |lane: &usize| self.history.sets || self.history.appears[*lane] <= now;
            let appeared: Vec<usize> = (0..reader.next.len()).filter(appears).collect();
            for stream in appeared {
                self.keepalive(&reader, stream, &mut said);
            }
        }
        self.readers.insert(session, reader);
        Ok((said, finished))
    }

    fn is_below_floor(&self, lane: &[usize], next: usize) -> bool {
        let gone = |tx: &usize| self.history.holds(&self.floor, *tx);
        // Streams are forgotten from their beginnings.
        let most = if self.history.sets { lane.len() } else { 1 };
        lane.iter().skip(next).take(most).any(gone)
    }

    fn is_ready(&self, now: u64, reader: &Reader, lane: usize) -> bool {
        let Some(tx) = reader.lanes[lane].get(reader.next[lane].0) else { return false };
        let t = &self.history.transactions[*tx];
        let in_log = self.arrives.get(*tx).copied().unwrap_or(t.time) <= now && self.history.appears[t.stream] <= now;
        in_log && !self.replaced && self.cut_short.as_ref().is_none_or(|short| self.history.holds(short, *tx))
    }

    /// Says one more thing of a stream; how many rows it was.
    fn step(&mut self, reader: &mut Reader, stream: usize, said: &mut Vec<Said>) -> usize {
        let (number, change) = reader.next[stream];
        let tx = reader.lanes[stream][number];
        let t = &self.history.transactions[tx];
        let transaction = self.history.name(tx);
        let Some(c) = t.changes.get(change) else {
            let silent = !t.changes.iter().any(|c| reader.tables.contains(&c.table));
            let upto = self.history.ended(tx);
            reader.next[stream] = (number + 1, 0);
            reader.begun.remove(&stream);
            match (silent, self.plan.empty_transactions) {
                (true, EmptyTransactions::Keepalive) if reader.begun.is_empty() => said.push(Said::Keepalive(upto.clone())),
                (true, EmptyTransactions::Keepalive | EmptyTransactions::Silent) => return 0,
                (false, _) | (true, EmptyTransactions::End) => said.push(Said::Ended(transaction, upto.clone())),
            }
            self.told.join_with(&upto);
            return 0;
        };
        reader.next[stream] = (number, change + 1);
        if !reader.tables.contains(&c.table) {
            return 0;
        }
        reader.begun.insert(stream);
        let place = Place { tx, change };
        let at = coordinate(reader.server, change, 0);
        let rows = c.rows(place);
        if rows.is_empty() {
            said.push(Said::Event { table: c.table, transaction, coordinate: at, kind: c.kind });
            return 0;
        }
        if self.plan.rows_tell_schemas && reader.schemas.insert(c.table, c.schema) != Some(c.schema) {
            let (coordinate, kind) = (schema_coordinate(reader.server, change), Kind::Schema(c.schema));
            said.push(Said::Event { table: c.table, transaction: transaction.clone(), coordinate, kind });
        }
        let last = coordinate(reader.server, change, rows.len() - 1);
        let mut digest = rows.iter().enumerate().fold(Digest::default(), |sum, (n, row)| {
            sum.plus(Digest { count: 1, hash: row_hash(coordinate(reader.server, change, n), row) })
        });
        // A lie is told of what was told before only: of the first change of a transaction that the table has in part.
        let told_before = |d: &(TableName, Transaction, Coordinate)| d.0 == self.history.tables[c.table] && d.1 == transaction;
        let first_of_table = t.changes.iter().position(|x| x.table == c.table) == Some(change);
        if reader.lies && first_of_table && reader.divided.iter().any(told_before) {
            digest.hash = digest.hash.wrapping_add(1);
            self.lies_told += 1;
        }
        let count = rows.len();
        let dice = self.dice.clone();
        let joins = !reader.chance(&dice, 300);
        let divided_here = |before: &Coordinate| {
            let name = &self.history.tables[c.table];
            reader.divided.iter().any(|(t, x, at_row)| t == name && *x == transaction && *before <= *at_row && *at_row < at)
        };
        match said.last_mut() {
            Some(Said::Rows { table, transaction: x, rows: r, last: l, digest: d, .. })
                if joins && *table == c.table && *x == transaction && !divided_here(l) && r[0].schema == c.schema =>
            {
                r.extend(rows);
                *l = last;
                *d = d.plus(digest);
            }
            _ => said.push(Said::Rows { table: c.table, transaction, rows, first: at, last, digest }),
        }
        count
    }

    /// Outside a transaction a keepalive says what is true; inside one it may name what was not delivered.
    fn keepalive(&mut self, reader: &Reader, stream: usize, said: &mut Vec<Said>) {
        if self.cut_short.is_some() || self.replaced {
            return;
        }
        let (number, change) = reader.next[stream];
        let transactions = &reader.lanes[stream];
        if change > 0 {
            if !reader.begun.contains(&stream) {
                return;
            }
            let upto = self.history.ended(transactions[number]);
            self.told_inside.push(upto.clone());
            said.push(Said::Keepalive(upto));
            return;
        }
        let upto = if self.history.sets {
            // What was delivered in this session.
            transactions[..number].iter().map(|tx| self.history.ended(*tx)).fold(Position::START, |all, tx| all.join(&tx))
        } else {
            // Up to where the next transaction begins: nothing undelivered is in it.
            let name = &self.history.streams[stream];
            let next = transactions.get(number).map(|tx| self.history.transactions[*tx].at);
            let before = number.checked_sub(1).map_or(0, |n| self.history.transactions[transactions[n]].end);
            Position::of(name.clone(), Offset(next.unwrap_or(before).max(before)))
        };
        // Inside another stream's transaction it is not believed, so it is not told either.
        if reader.begun.is_empty() && upto != Position::START {
            self.told.join_with(&upto);
        }
        said.push(Said::Keepalive(upto));
    }
}

fn row_hash(at: Coordinate, row: &RowImage) -> u64 {
    let operation = if row.value.is_some() { 1 } else { 2 };
    mix(mix(at.major ^ (u64::from(at.minor) << 40)) ^ (u64::from(row.key) << 8 | operation))
}

/// A name for a stream, for tests.
pub fn stream(name: &str) -> StreamName {
    StreamName::from(name)
}
