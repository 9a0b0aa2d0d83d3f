//! What outlives a life in a small world: the log and what of it is visible, the record, the tables at their sinks.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use kernel::coordinator::{ChunkRange, Restart, Visibility};
use kernel::id::{Identity, Session, StreamName, TableName, Token, TransactionName};
use kernel::outcome::StoreOutcome;
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{PipelineState, TableRecord};

use super::Small;
use crate::history::{History, Kind, Place, RowImage, Tab, coordinate};
use crate::oracle::View;
use crate::sinks::{Staging, Target, Versioned};
use crate::source::Said;
use crate::source::chunks::{Chunk, bound, is_within, keys, transaction_name, transaction_number};

/// Everything outside a process.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) small: Rc<Small>,
    /// So many transactions are in the log.
    pub(super) logged: usize,
    /// Those that a new snapshot sees, as bits.
    visible: u32,
    /// Those of which the source can say so.
    listed: u32,
    pub(super) record: Option<PipelineState>,
    record_writes: u64,
    pub(super) targets: Vec<Target>,
    readers: BTreeMap<Session, Reader>,
    /// What was acknowledged can't be read any more.
    pub(super) floor: Position,
}

/// One session's place in the log.
#[derive(Clone, Debug, Hash, Default)]
struct Reader {
    /// The next transaction, and the next change in it.
    next: (usize, usize),
}

impl Reader {
    fn step(&mut self, history: &History) -> Said {
        let (tx, change) = self.next;
        let (t, transaction) = (&history.transactions[tx], history.name(tx));
        let Some(c) = t.changes.get(change) else {
            self.next = (tx + 1, 0);
            return Said::Ended(transaction, Position::of(history.streams[0].clone(), Offset(t.end)));
        };
        self.next = (tx, change + 1);
        let first = coordinate(0, change, 0);
        let rows = c.rows(Place { tx, change });
        if rows.is_empty() {
            return Said::Event { table: c.table, transaction, coordinate: first, kind: c.kind };
        }
        let last = coordinate(0, change, rows.len() - 1);
        let digest = Digest { count: rows.len() as u64, hash: hash_of(&transaction, first) };
        Said::Rows { table: c.table, transaction, rows, first, last, digest }
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.logged, self.visible, self.listed, &self.record, self.record_writes).hash(state);
        (&self.targets, &self.readers, &self.floor).hash(state);
    }
}

impl World {
    pub(super) fn new(small: &Small) -> Self {
        let target = |staging: bool| {
            if staging { Target::Staging(Staging::default()) } else { Target::Versioned(Versioned::default()) }
        };
        let seen = (1u32 << small.known) - 1;
        Self {
            logged: small.known,
            visible: seen,
            listed: seen,
            record: None,
            record_writes: 0,
            targets: small.tables.iter().map(|t| target(t.staging)).collect(),
            readers: BTreeMap::new(),
            floor: Position::START,
            small: Rc::new(small.clone()),
        }
    }

    /// A table as the oracle sees it.
    pub(super) fn view(&self, table: Tab) -> View<'_> {
        let state = self.targets[table].state().filter(|s| s.commit.number > 0);
        View {
            history: &self.small.history,
            table,
            plan: &self.small.tables[table],
            base: state.map(|s| &s.base),
            whole: state.is_some_and(|s| s.generation > 0),
        }
    }

    pub(super) fn entry(&self, table: Tab) -> Option<&TableRecord> {
        self.record.as_ref().and_then(|r| r.tables.get(&self.small.history.tables[table]))
    }

    // ---- the record

    pub(super) fn record_token(&self) -> Token {
        Token::from(format!("r{}", self.record_writes).as_str())
    }

    pub(super) fn store_record(&mut self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        if *expected != self.record_token() {
            return StoreOutcome::Conflict { found: self.record.clone().map(Box::new), token: self.record_token() };
        }
        self.record = Some(new.clone());
        self.record_writes += 1;
        StoreOutcome::Stored { token: self.record_token() }
    }

    // ---- the log

    pub(super) fn end(&self) -> Position {
        let end = self.logged.checked_sub(1).map_or(0, |last| self.small.history.transactions[last].end);
        Position::scalar(end)
    }

    pub(super) fn identity(&self) -> LogIdentity {
        let streams = [(StreamName::from(""), Identity::from("this"))].into();
        LogIdentity { streams, coordinates: Some(Identity::from("server0")), ..LogIdentity::default() }
    }

    pub(super) fn open(&mut self) -> Session {
        let session = Session(self.readers.len() as u64 + 1);
        self.readers.insert(session, Reader::default());
        session
    }

    /// Would a read bring something?
    pub(super) fn has_more(&self, session: Session, restart: Option<&Restart>) -> bool {
        let from = restart.map(|restart| self.behind(restart));
        from.or_else(|| self.readers.get(&session).map(|r| r.next.0)).is_some_and(|next| next < self.logged)
    }

    fn behind(&self, restart: &Restart) -> usize {
        let history = &self.small.history;
        (0..history.transactions.len()).filter(|tx| history.holds(&restart.from, *tx)).count()
    }

    /// Reads one thing, the rows of a change, another change, the end of a transaction; or all up to the end of one. `None` if the
    /// log has forgotten it.
    pub(super) fn read(&mut self, session: Session, restart: Option<&Restart>, whole: bool) -> Option<Vec<Said>> {
        let behind = restart.map(|restart| self.behind(restart));
        let (logged, small, floor) = (self.logged, self.small.clone(), self.floor.clone());
        let reader = self.readers.entry(session).or_default();
        if let Some(behind) = behind {
            reader.next = (behind, 0);
        }
        let mut said = vec![];
        while reader.next.0 < logged {
            if small.history.holds(&floor, reader.next.0) {
                return None;
            }
            said.push(reader.step(&small.history));
            if !whole || matches!(said.last(), Some(Said::Ended(..))) {
                break;
            }
        }
        Some(said)
    }

    // ---- what is visible

    /// May the next transaction enter the log? One that waits for another's row waits until that one is visible.
    pub(super) fn may_log(&self) -> bool {
        let Some(next) = self.small.history.transactions.get(self.logged) else { return false };
        let waits_for = |tx: &usize| !self.sees_tx(*tx) && excludes(&self.small.history.transactions[*tx].changes, &next.changes);
        !(0..self.logged).any(|tx| waits_for(&tx))
    }

    fn sees_tx(&self, tx: usize) -> bool {
        self.visible >> tx & 1 == 1
    }

    pub(super) fn lists(&self, tx: usize) -> bool {
        self.listed >> tx & 1 == 1
    }

    /// The transactions that can become visible now.
    pub(super) fn hidden(&self) -> impl Iterator<Item = usize> {
        (0..self.logged).filter(|tx| !self.sees_tx(*tx))
    }

    /// Those of which the source can come to say that they are.
    pub(super) fn unsaid(&self) -> impl Iterator<Item = usize> {
        (0..self.logged).filter(|tx| self.sees_tx(*tx) && !self.lists(*tx))
    }

    pub(super) fn show(&mut self, tx: usize) {
        self.visible |= 1 << tx;
        if !self.small.says_late {
            self.list(tx);
        }
    }

    pub(super) fn list(&mut self, tx: usize) {
        self.listed |= 1 << tx;
    }

    pub(super) fn sees(&self, about: &[TransactionName], unfinished: bool) -> Visibility {
        let lists = |name: &&TransactionName| transaction_number(name).is_some_and(|tx| self.lists(tx));
        let unfinished = unfinished.then(|| (0..self.logged).filter(|tx| !self.lists(*tx)).map(transaction_name).collect());
        Visibility { proven: about.iter().filter(lists).cloned().collect(), unfinished }
    }

    /// Reads a chunk. Its fence is where the log ends at this moment: no later one holds less back.
    pub(super) fn chunk(&self, table: Tab, range: &ChunkRange, rows_max: u32, about: &[TransactionName]) -> Chunk {
        let history = &self.small.history;
        let mut rows = BTreeMap::<u8, RowImage>::new();
        for place in history.of_table[table].iter().filter(|p| p.tx < self.logged && self.sees_tx(p.tx)) {
            if history.change(*place).kind == Kind::Truncated {
                rows.clear();
            }
            for row in history.change(*place).rows(*place) {
                match row.value {
                    Some(_) => rows.insert(row.key, row),
                    None => rows.remove(&row.key),
                };
            }
        }
        let (after, end) = (range.after.as_ref().map(|b| b.as_str()), range.end.as_ref().map(|b| b.as_str()));
        let within = |row: &RowImage| is_within(row.key, after, end);
        // Of its rows only the keys and values are told: a chunk's row has no place in the log.
        let mut rows: Vec<RowImage> = rows.into_values().filter(within).map(|row| RowImage { chunk: Some(0), ..row }).collect();
        let divided = rows.len() > rows_max as usize;
        rows.truncate(rows_max as usize);
        let end = rows.last().filter(|_| divided).map(|row| bound(row.key)).or(range.end.clone());
        let visibility = self.sees(about, false);
        Chunk { rows, end, visibility, at_least: self.end(), schema: 0, identity: self.identity() }
    }

    pub(super) fn table(&self, name: &TableName) -> Tab {
        self.small.history.table(name).unwrap_or_default()
    }
}

/// Does one have to wait for the other? They write the same key, or one of them empties the table.
fn excludes(one: &[crate::history::Change], other: &[crate::history::Change]) -> bool {
    let waits = |a: Kind, b: Kind| {
        let whole = a == Kind::Truncated || b == Kind::Truncated;
        whole || keys(a).iter().any(|key| keys(b).contains(key))
    };
    one.iter().any(|a| other.iter().any(|b| a.table == b.table && waits(a.kind, b.kind)))
}

fn hash_of(transaction: &Transaction, first: Coordinate) -> u64 {
    fault_scenarios::mix(transaction.at.0 << 16 ^ first.major << 8 ^ u64::from(first.minor))
}
