//! A source: what its log says, what a snapshot of it sees, and how far it has forgotten.

use std::collections::{BTreeMap, BTreeSet};

use kernel::coordinator::{HeldBatch, LogEvent, Output, Restart, RowRange, Told, Touched, Visibility};
use kernel::id::{BatchId, EncodedKey, Identity, StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};

use crate::bytes::Bytes;

pub(super) const TABLES: [&str; 2] = ["orders", "lines"];
const STREAMS: [&str; 2] = ["a", "b"];
/// Keys that rows have.
const KEYS: u8 = 6;
/// Transactions that one log has at most.
const TRANSACTIONS_MAX: usize = 60;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A whole row.
    Whole(u8),
    /// A row that is gone.
    Gone(u8),
    /// A row that lacks values.
    Part(u8),
    /// A row that goes to another key; does it lack values?
    Moved(u8, u8, bool),
    Truncated,
    Schema(u8),
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    table: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Written {
    stream: usize,
    at: u64,
    end: u64,
    changes: Vec<Change>,
}

/// The log, and one reader's place in it.
#[derive(Debug)]
pub(super) struct Log {
    streams: usize,
    written: Vec<Written>,
    /// So many transactions snapshots see: they are in the log before that.
    seen: usize,
    pub(super) floor: Position,
    identity: &'static str,
    coordinates: Option<&'static str>,
    /// Per stream: the next transaction of it, and the next change in that.
    reader: [(usize, usize); STREAMS.len()],
    keyed: [bool; TABLES.len()],
    batches: u64,
}

/// What a read of any kind brought.
pub(super) type Brought = (Vec<HeldBatch>, Vec<LogEvent>);

pub(super) fn key(number: u8) -> EncodedKey {
    EncodedKey::from([number].as_slice())
}

fn number_of(key: &EncodedKey) -> u8 {
    key.as_bytes().first().copied().unwrap_or_default()
}

pub(super) fn table(name: &TableName) -> usize {
    TABLES.iter().position(|table| *table == name.as_str()).expect("a table of this world")
}

impl Log {
    pub(super) fn new(streams: usize, keyed: [bool; TABLES.len()]) -> Self {
        Self {
            streams: streams.clamp(1, STREAMS.len()),
            written: Vec::new(),
            seen: 0,
            floor: Position::START,
            identity: "this",
            coordinates: None,
            reader: [(0, 0); STREAMS.len()],
            keyed,
            batches: 0,
        }
    }

    /// Another transaction is written.
    pub(super) fn grow(&mut self, from: &mut Bytes<'_>) {
        if self.written.len() == TRANSACTIONS_MAX {
            return;
        }
        let stream = from.below(self.streams);
        let count = from.below(6);
        let changes: Vec<Change> = (0..count).map(|_| self.change(stream, from)).collect();
        let at = self.written.iter().filter(|t| t.stream == stream).map(|t| t.end).max().unwrap_or(0);
        let end = at + 1 + changes.len() as u64;
        self.written.push(Written { stream, at, end, changes });
    }

    /// A key lies in one stream (rule P5).
    fn change(&self, stream: usize, from: &mut Bytes<'_>) -> Change {
        let table = from.below(TABLES.len());
        let mut one = || from.u8() % KEYS + KEYS * stream as u8;
        let (here, there) = (one(), one());
        let kind = match from.below(16) {
            0..6 => Kind::Whole(here),
            6 | 7 => Kind::Gone(here),
            8 | 9 if self.keyed[table] => Kind::Part(here),
            10 if here != there => Kind::Moved(here, there, false),
            11 if here != there && self.keyed[table] => Kind::Moved(here, there, true),
            12 => Kind::Truncated,
            13 => Kind::Schema(here % 3),
            14 => Kind::Refused,
            _ => Kind::Whole(here),
        };
        Change { table, kind }
    }

    /// Snapshots see more of it.
    pub(super) fn show(&mut self, more: usize) {
        self.seen = (self.seen + more).min(self.written.len());
    }

    /// The source forgets what is in `upto`, or more.
    pub(super) fn forget(&mut self, upto: &Position) {
        self.floor.join_with(upto);
    }

    /// Another server's log, with the same transactions numbered otherwise; or another log altogether.
    pub(super) fn move_to_another(&mut self, altogether: bool) {
        if altogether {
            self.identity = "another";
        } else {
            self.coordinates = if self.coordinates.is_none() { Some("second") } else { None };
        }
    }

    pub(super) fn end(&self) -> Position {
        let end = |t: &Written| Position::of(StreamName::from(STREAMS[t.stream]), Offset(t.end));
        self.written.iter().fold(self.floor.clone(), |all, t| all.join(&end(t)))
    }

    pub(super) fn identity(&self) -> LogIdentity {
        let streams = STREAMS[..self.streams].iter().map(|s| (StreamName::from(*s), Identity::from(self.identity))).collect();
        LogIdentity { streams, coordinates: self.coordinates.map(Identity::from), lineage: None }
    }

    fn transaction(&self, number: usize) -> Transaction {
        let t = &self.written[number];
        Transaction { stream: StreamName::from(STREAMS[t.stream]), at: Offset(t.at) }
    }

    fn name(number: usize) -> TransactionName {
        TransactionName::from(format!("t{number}"))
    }

    /// The `nth` transaction of a stream.
    fn of_stream(&self, stream: usize, nth: usize) -> Option<usize> {
        self.written.iter().enumerate().filter(|(_, t)| t.stream == stream).map(|(n, _)| n).nth(nth)
    }

    /// How many transactions of a stream are in a position.
    fn held(&self, stream: usize, position: &Position) -> usize {
        let upto = position.offset(&StreamName::from(STREAMS[stream]));
        self.written.iter().filter(|t| t.stream == stream && Offset(t.at) < upto).count()
    }

    fn batch(&mut self, rows: usize) -> HeldBatch {
        self.batches += 1;
        HeldBatch { batch: BatchId(self.batches), rows: rows as u32, bytes: 10 * rows as u64 }
    }

    /// Reads on: up to `most` things of the streams in turn, the first of them `first`.
    pub(super) fn read(&mut self, restart: Option<&Restart>, keys_of: &[TableName], first: usize, most: usize) -> Brought {
        if let Some(restart) = restart {
            for stream in 0..STREAMS.len() {
                self.reader[stream] = (self.held(stream, &restart.from), 0);
            }
        }
        let (mut batches, mut events, mut lacked) = (Vec::new(), Vec::new(), [false; TABLES.len()]);
        for n in 0..self.streams {
            let stream = (first + n) % self.streams;
            while events.len() < most {
                let (nth, place) = self.reader[stream];
                let Some(number) = self.of_stream(stream, nth) else { break };
                let transaction = self.transaction(number);
                let Some(change) = self.written[number].changes.get(place).copied() else {
                    let upto = Position::of(StreamName::from(STREAMS[stream]), Offset(self.written[number].end));
                    events.push(LogEvent::Ended { transaction, upto });
                    self.reader[stream] = (nth + 1, 0);
                    continue;
                };
                let asked = keys_of.contains(&TableName::from(TABLES[change.table]));
                let event = self.tell(change, transaction, (number, place), asked, &mut lacked, &mut batches);
                events.push(event);
                self.reader[stream] = (nth, place + 1);
            }
        }
        if events.is_empty() && self.reader[..self.streams].iter().all(|(_, place)| *place == 0) && most % 2 == 1 {
            events.push(LogEvent::Keepalive { upto: self.end() });
        }
        (batches, events)
    }

    fn tell(
        &mut self,
        change: Change,
        transaction: Transaction,
        (number, place): (usize, usize),
        asked: bool,
        lacked: &mut [bool],
        batches: &mut Vec<HeldBatch>,
    ) -> LogEvent {
        let table = TableName::from(TABLES[change.table]);
        // Another server has other coordinates for the same changes.
        let shift = if self.coordinates.is_some() { 1_000 } else { 0 };
        let at = |minor| Coordinate { major: shift + 10 * (place as u64 + 1), minor };
        let by = Some(Self::name(number));
        let rows = match change.kind {
            Kind::Whole(key) => vec![(key, Told::Whole)],
            Kind::Gone(key) => vec![(key, Told::Gone)],
            Kind::Part(key) => vec![(key, Told::Part)],
            Kind::Moved(old, new, lacks) => vec![(old, Told::Gone), (new, if lacks { Told::PartOfMoved } else { Told::Whole })],
            Kind::Truncated => return LogEvent::Truncated { table, transaction, coordinate: at(0), by },
            Kind::Schema(which) => {
                return LogEvent::Schema { table, transaction, coordinate: at(0), schema: format!("s{which}"), by };
            }
            Kind::Refused => return LogEvent::Refused { table, transaction, coordinate: at(0), why: "it does not fit".into() },
        };
        let keyed = self.keyed[change.table];
        lacked[change.table] |= keyed && rows.iter().any(|(_, told)| told.lacks());
        let touched = (asked || lacked[change.table]).then(|| {
            let keys = rows.iter().map(|(number, _)| key(*number)).collect();
            let told = rows.iter().map(|(_, told)| *told).collect();
            Box::new(Touched { by: Self::name(number), keys, told })
        });
        let held = self.batch(rows.len());
        batches.push(held);
        LogEvent::Rows {
            table,
            transaction,
            rows: RowRange { batch: held.batch, rows: 0..held.rows },
            bytes: held.bytes,
            first: at(0),
            last: at(held.rows - 1),
            digest: Digest { count: held.rows.into(), hash: (number * 100 + place) as u64 + shift },
            touched,
        }
    }

    // ---- what a snapshot sees

    /// Of these transactions those that a snapshot taken now provably sees, and all that it does not.
    pub(super) fn visibility(&self, about: &[TransactionName], unfinished: bool) -> Visibility {
        let seen: BTreeSet<TransactionName> = (0..self.seen).map(Self::name).collect();
        let not_seen = (self.seen..self.written.len()).map(Self::name).collect();
        Visibility {
            proven: about.iter().filter(|name| seen.contains(*name)).cloned().collect(),
            unfinished: unfinished.then_some(not_seen),
        }
    }

    /// The keys that a table has in a snapshot taken now, and its schema there.
    fn snapshot(&self, of: usize) -> (BTreeSet<u8>, Option<String>) {
        let (mut keys, mut schema) = (BTreeMap::new(), None);
        let changes = self.written[..self.seen].iter().flat_map(|t| &t.changes).filter(|change| change.table == of);
        for change in changes {
            match change.kind {
                Kind::Whole(key) | Kind::Part(key) => drop(keys.insert(key, ())),
                Kind::Gone(key) => drop(keys.remove(&key)),
                Kind::Moved(old, new, _) => {
                    keys.remove(&old);
                    keys.insert(new, ());
                }
                Kind::Truncated => keys.clear(),
                Kind::Schema(which) => schema = Some(format!("s{which}")),
                Kind::Refused => {}
            }
        }
        (keys.into_keys().collect(), schema)
    }

    /// Answers a chunk's read, with `most` rows.
    pub(super) fn chunk(&mut self, command: &Output, most: usize) -> Option<kernel::coordinator::ChunkAnswer> {
        let Output::ReadChunk { table: name, range, rows_max, about, .. } = command else { return None };
        let (keys, schema) = self.snapshot(table(name));
        let bound = |text: &kernel::id::Bound| text.as_str().parse::<u8>().unwrap_or(u8::MAX);
        let after = range.after.as_ref().map(bound);
        let end = range.end.as_ref().map(bound);
        let inside = |key: &&u8| after.is_none_or(|after| **key > after) && end.is_none_or(|end| **key <= end);
        let all: Vec<u8> = keys.iter().filter(inside).copied().collect();
        let most = most.clamp(1, (*rows_max).max(1) as usize);
        let taken = &all[..all.len().min(most)];
        let whole = taken.len() == all.len();
        let end = if whole { range.end.clone() } else { taken.last().map(|key| key.to_string().as_str().into()) };
        let rows = (!taken.is_empty()).then(|| self.batch(taken.len()));
        Some(kernel::coordinator::ChunkAnswer {
            rows,
            keys: taken.iter().map(|number| key(*number)).collect(),
            end,
            visibility: self.visibility(about, false),
            fence: self.end(),
            schema,
            identity: self.identity(),
        })
    }

    /// Answers a reading of rows by their keys, of `most` of them.
    pub(super) fn rows(&mut self, command: &Output, most: usize) -> Option<kernel::coordinator::RowsAnswer> {
        let Output::ReadRows { table: name, keys, about, .. } = command else { return None };
        let (there, _) = self.snapshot(table(name));
        let asked = &keys[..keys.len().min(most.max(1))];
        let (found, gone): (Vec<_>, Vec<_>) = asked.iter().cloned().partition(|key| there.contains(&number_of(key)));
        let rows = (!found.is_empty()).then(|| self.batch(found.len()));
        let (visibility, fence, identity) = (self.visibility(about, false), self.end(), self.identity());
        Some(kernel::coordinator::RowsAnswer { rows, keys: found, gone, visibility, fence, identity })
    }

    /// Where ranges of a table could end.
    pub(super) fn ranges(&self, of: &TableName, wanted: usize) -> Vec<kernel::id::Bound> {
        let (keys, _) = self.snapshot(table(of));
        keys.iter().step_by(1 + keys.len() / wanted.max(1)).map(|key| key.to_string().as_str().into()).collect()
    }
}
