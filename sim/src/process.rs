//! A process: a coordinator and a worker over a link in memory, the row store that stands in for the real one, and what the
//! oracle remembers of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use fault_scenarios::What;
use kernel::coordinator::{
    ChunkAnswer, Coordinator, HeldBatch, Input, LogEvent, Output, RowRange, RowsAnswer, ToWorker, Told, Touched,
};
use kernel::id::{AttemptId, BatchId, CommandId, CommitId, Session, Version};
use kernel::position::{Position, Transaction};
use kernel::state::TableState;
use kernel::time::Time;
use kernel::worker::{NetOutcome, Worker, WorkerInput, WorkerOutput};

use crate::history::{History, Key, Kind, Place, RowImage, Tab};
use crate::sinks::{Filled, Netted};
use crate::source::Said;
use crate::source::chunks::{Chunk, RowsNow, decoded, encoded, transaction_name};

/// What reaches a process.
#[derive(Clone, Debug)]
pub enum Mail {
    /// A fact for the coordinator.
    Fact(Input),
    /// What a read brought: its rows go to the row store when it arrives.
    Read {
        /// Of the command.
        id: CommandId,
        /// What the log said.
        said: Vec<Said>,
        /// Is it the log's end?
        finished: bool,
        /// The tables whose rows come with their keys.
        keys_of: BTreeSet<Tab>,
    },
    /// A chunk: its rows go to the row store when it arrives, and the log's end is looked at then.
    Chunk {
        /// Of the command.
        id: CommandId,
        /// What was read.
        chunk: Box<Chunk>,
    },
    /// Rows that were read again: they go to the row store when it arrives, and the log's end is looked at then.
    Rows {
        /// Of the command.
        id: CommandId,
        /// The number of the reading.
        reading: usize,
        /// What was read.
        rows: Box<RowsNow>,
    },
    /// Something for the worker.
    Worker(WorkerInput),
}

/// What a process has the world do.
#[derive(Clone, Debug, Hash)]
pub enum Command {
    /// The coordinator's.
    Coordinator(Output),
    /// The worker's: write what was netted.
    Write {
        /// Of the part.
        attempt: AttemptId,
        /// The table.
        table: Tab,
        /// What is written.
        netted: Netted,
    },
}

/// Commands of one lane run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Of a table's committer.
    Commits(Tab),
    /// Of a table's writer.
    Writes(Tab),
    /// The acknowledgements of the source.
    Acknowledgements,
    /// The reads of the log: there is one reader.
    Reads,
}

/// One process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its coordinator.
    pub coordinator: Coordinator,
    /// Its worker.
    pub worker: Worker,
    /// Its member tables.
    pub tables: BTreeSet<Tab>,
    /// Does it end once it is current?
    pub until_current: bool,
    /// Is it neither killed nor stopped?
    pub alive: bool,
    /// Does it stand still?
    pub paused: bool,
    /// Since when it has been awake, and nothing has gone wrong.
    pub awake_since: u64,
    /// What it asked for before it died never lands.
    pub lose_mail: bool,
    /// What came while it stood still.
    pub queue: Vec<Mail>,
    /// When the last command of a lane lands.
    pub lanes: BTreeMap<Lane, u64>,
    /// How many commands of each kind it has sent, by table.
    pub sent: BTreeMap<(What, Option<Tab>), u32>,
    /// When the last message of the link arrives, to the worker and from it, and how many there were.
    pub link: [(u64, u64); 2],
    /// Parts that were netted.
    pub nets: u64,
    /// When it is called next.
    pub timer: u64,
    /// The oracle knows which life it lives.
    pub is_noted: bool,
    /// An answer told it of a newer life.
    pub told_of_newer: bool,
    /// A person asked it to end.
    pub asked_to_drain: bool,
    /// Tables that a person resumed.
    pub resumed: BTreeSet<Tab>,
    /// Commits that were asked for and not answered.
    pub commits_running: BTreeMap<Tab, usize>,
    /// What was acknowledged in each session.
    pub said: BTreeMap<Session, Position>,
    /// Where the log ended when it was first opened.
    pub first_end: Option<Position>,
    /// The states that it may name, the oldest first.
    pub remembered: BTreeMap<Tab, Vec<TableState>>,
    /// The states that it found.
    pub began: BTreeMap<Tab, TableState>,
    /// Tables that the record called in need of a snapshot when it took its life, and the generation that ends it.
    pub released_at_start: BTreeMap<Tab, u64>,
    /// Tables that the record knew then.
    pub known_at_start: BTreeSet<Tab>,
    /// The commit of each table's state that it found.
    pub found: BTreeMap<Tab, Option<CommitId>>,
    /// A table that it found has a part of a transaction that the log did not have when it was opened.
    pub part_ahead: Option<String>,
    /// The last change of each key that the log has told since it was read from a new beginning.
    pub last_of_keys: BTreeMap<(Tab, Key), Place>,
    /// Bytes of the largest read so far.
    pub largest_read: u64,
    /// And of the largest chunk.
    pub largest_chunk: u64,
    /// And of what was read again at once.
    pub largest_reading: u64,
    /// Transactions of which an answer has told it that they are visible.
    pub proven: BTreeMap<usize, BTreeSet<CommandId>>,
    store: BTreeMap<BatchId, (u64, Vec<RowImage>)>,
    batches: u64,
    pinned: BTreeMap<AttemptId, (Vec<RowImage>, Vec<Filled>)>,
    netted: BTreeMap<AttemptId, (Tab, Netted)>,
}

impl Process {
    /// A process that begins.
    pub fn new(coordinator: Coordinator, tables: BTreeSet<Tab>, until_current: bool) -> Self {
        Self {
            coordinator,
            worker: Worker::new(),
            tables,
            until_current,
            alive: true,
            paused: false,
            awake_since: 0,
            lose_mail: false,
            queue: vec![],
            lanes: BTreeMap::new(),
            sent: BTreeMap::new(),
            link: [(0, 0); 2],
            nets: 0,
            timer: 0,
            is_noted: false,
            told_of_newer: false,
            asked_to_drain: false,
            resumed: BTreeSet::new(),
            commits_running: BTreeMap::new(),
            said: BTreeMap::new(),
            first_end: None,
            remembered: BTreeMap::new(),
            began: BTreeMap::new(),
            released_at_start: BTreeMap::new(),
            known_at_start: BTreeSet::new(),
            found: BTreeMap::new(),
            part_ahead: None,
            last_of_keys: BTreeMap::new(),
            largest_read: 0,
            largest_chunk: 0,
            largest_reading: 0,
            proven: BTreeMap::new(),
            store: BTreeMap::new(),
            batches: 0,
            pinned: BTreeMap::new(),
            netted: BTreeMap::new(),
        }
    }

    /// Its machines and the rows that it holds: all that decides what it will do.
    pub fn hash_state(&self, state: &mut impl Hasher) {
        (&self.coordinator, &self.worker, &self.store, self.batches, &self.pinned, &self.netted).hash(state);
    }

    /// Puts what a read brought into the row store, and says it as the pump would.
    pub fn take_in(
        &mut self,
        history: &History,
        one_batch_a_table: bool,
        id: CommandId,
        (said, finished): (Vec<Said>, bool),
        keys_of: &BTreeSet<Tab>,
    ) -> Input {
        let number = |transaction: &Transaction| history.number(transaction).map(transaction_name);
        let mut batch_of: BTreeMap<Tab, BatchId> = BTreeMap::new();
        let mut fresh = vec![];
        let mut events = vec![];
        // From the first row on that lacks something the rows of its table come with their keys.
        let mut lacking = keys_of.clone();
        for said in said {
            events.push(match said {
                Said::Rows { table, transaction, rows, first, last, digest } => {
                    let held = batch_of.get(&table).copied().filter(|_| one_batch_a_table);
                    let batch = held.unwrap_or_else(|| {
                        self.batches += 1;
                        fresh.push(BatchId(self.batches));
                        BatchId(self.batches)
                    });
                    batch_of.insert(table, batch);
                    let held = self.store.entry(batch).or_default();
                    let from = held.1.len() as u32;
                    let bytes = rows.len() as u64 * 10;
                    held.0 += bytes;
                    if rows.iter().any(RowImage::lacks) {
                        lacking.insert(table);
                    }
                    let by = number(&transaction).filter(|_| lacking.contains(&table));
                    let keys = rows.iter().map(|row| encoded(row.key)).collect();
                    let told = rows.iter().map(told).collect();
                    let touched = by.map(|by| Box::new(Touched { by, keys, told }));
                    held.1.extend(rows);
                    let rows = RowRange { batch, rows: from..held.1.len() as u32 };
                    let table = history.tables[table].clone();
                    LogEvent::Rows { table, transaction, rows, bytes, first, last, digest, touched }
                }
                Said::Event { table, transaction, coordinate, kind } => {
                    let by = number(&transaction).filter(|_| keys_of.contains(&table));
                    let table = history.tables[table].clone();
                    match kind {
                        Kind::Truncated => LogEvent::Truncated { table, transaction, coordinate, by },
                        Kind::Schema(schema) => {
                            let schema = format!("s{schema}");
                            LogEvent::Schema { table, transaction, coordinate, schema, by }
                        }
                        _ => LogEvent::Refused { table, transaction, coordinate, why: "a value that does not fit".into() },
                    }
                }
                Said::Ended(transaction, upto) => LogEvent::Ended { transaction, upto },
                Said::Keepalive(upto) => LogEvent::Keepalive { upto },
            });
        }
        let held = |batch: &BatchId| {
            let (bytes, rows) = &self.store[batch];
            HeldBatch { batch: *batch, rows: rows.len() as u32, bytes: *bytes }
        };
        let batches: Vec<HeldBatch> = fresh.iter().map(held).collect();
        self.largest_read = self.largest_read.max(batches.iter().map(|b| b.bytes).sum());
        Input::LogRead { id, batches, events, finished }
    }

    /// Puts a chunk into the row store. `end` is where the log ends after it was read.
    pub fn take_chunk(&mut self, id: CommandId, chunk: Chunk, end: Position) -> Input {
        let Chunk { rows, end: came_to, visibility, at_least, schema, identity } = chunk;
        let keys = rows.iter().map(|row| encoded(row.key)).collect();
        let held = (!rows.is_empty()).then(|| {
            self.batches += 1;
            let (batch, bytes) = (BatchId(self.batches), rows.len() as u64 * 10);
            self.largest_chunk = self.largest_chunk.max(bytes);
            let held = HeldBatch { batch, rows: rows.len() as u32, bytes };
            self.store.insert(batch, (bytes, rows));
            held
        });
        let (fence, schema) = (at_least.join(&end), Some(format!("s{schema}")));
        let answer = ChunkAnswer { rows: held, keys, end: came_to, visibility, fence, schema, identity };
        Input::ChunkRead { id, chunk: Box::new(answer) }
    }

    /// Puts rows that were read again into the row store. `end` is where the log ends after they were read; with the fact that.
    pub fn take_rows(&mut self, id: CommandId, rows: RowsNow, end: &Position) -> (Input, Position) {
        let RowsNow { rows, gone, visibility, at_least, identity } = rows;
        let keys = rows.iter().map(|row| encoded(row.key)).collect();
        let held = (!rows.is_empty()).then(|| {
            self.batches += 1;
            let (batch, bytes) = (BatchId(self.batches), rows.len() as u64 * 10);
            self.largest_reading = self.largest_reading.max(bytes);
            let held = HeldBatch { batch, rows: rows.len() as u32, bytes };
            self.store.insert(batch, (bytes, rows));
            held
        });
        let fence = at_least.join(end);
        let gone = gone.into_iter().map(encoded).collect();
        let answer = RowsAnswer { rows: held, keys, gone, visibility, fence: fence.clone(), identity };
        (Input::RowsRead { id, answer: Box::new(answer) }, fence)
    }

    /// Gives the coordinator a fact.
    pub fn tell(&mut self, now: u64, fact: Input) {
        self.coordinator.handle_input(Time(now), fact);
    }

    /// The row store forgets a batch.
    pub fn release(&mut self, batch: BatchId) -> Result<(), String> {
        self.store.remove(&batch).map(|_| ()).ok_or_else(|| format!("{batch:?} is released and not held"))
    }

    /// Bytes in the row store, and its ids.
    pub fn held(&self) -> (u64, BTreeSet<BatchId>) {
        (self.store.values().map(|(bytes, _)| *bytes).sum(), self.store.keys().copied().collect())
    }

    /// A message for the worker takes its rows along: from here on the store may forget them.
    pub fn pin(&mut self, message: &ToWorker) -> Result<(), String> {
        let ToWorker::Write { attempt, rows, fills, .. } = message else { return Ok(()) };
        let held = |range: &RowRange| {
            let held = self.store.get(&range.batch).and_then(|(_, r)| r.get(range.rows.start as usize..range.rows.end as usize));
            held.map(<[RowImage]>::to_vec).ok_or_else(|| format!("{range:?} of {attempt:?} is not held"))
        };
        let mut pinned = vec![];
        for range in rows {
            pinned.extend(held(range)?);
        }
        let mut filled = vec![];
        for fill in fills {
            let row = fill.row.as_ref().map(held).transpose()?.and_then(|rows| rows.first().copied());
            let key = decoded(&fill.key).ok_or_else(|| format!("{:?} is no key", fill.key))?;
            filled.push(Filled { key, row, whole: fill.whole });
        }
        self.pinned.insert(*attempt, (pinned, filled));
        Ok(())
    }

    /// Nets the rows of a part. `Err`: the keys of which values lack.
    pub fn net(
        &mut self,
        attempt: AttemptId,
        table: Tab,
        first_version: Version,
        keyed: bool,
        null: bool,
    ) -> Result<WorkerInput, Vec<Key>> {
        let (rows, fills) = self.pinned.remove(&attempt).unwrap_or_default();
        let netted = Netted::of(&rows, first_version, keyed, &fills, null)?;
        let (images, keys) = if keyed {
            let keys: BTreeSet<u8> = rows.iter().map(|r| r.key).collect();
            (netted.images.len() as u64, Some(keys.len() as u64))
        } else {
            (netted.kept.len() as u64, None)
        };
        self.netted.insert(attempt, (table, netted));
        Ok(WorkerInput::Netted { attempt, outcome: NetOutcome::Netted { rows: rows.len() as u64, images, keys } })
    }

    /// What was netted under an attempt.
    pub fn netted(&self, attempt: AttemptId) -> Option<(Tab, Netted)> {
        self.netted.get(&attempt).cloned()
    }

    /// The table of what was netted under an attempt.
    pub fn table_of(&self, attempt: AttemptId) -> Option<Tab> {
        self.netted.get(&attempt).map(|(table, _)| *table)
    }

    /// What was netted is needed no more.
    pub fn forget(&mut self, attempt: AttemptId) {
        self.netted.remove(&attempt);
        self.pinned.remove(&attempt);
    }

    /// Is something at the worker's door?
    pub fn tell_worker(&mut self, input: WorkerInput) -> Vec<WorkerOutput> {
        self.worker.handle_input(input);
        std::iter::from_fn(|| self.worker.poll_output()).collect()
    }
}

/// What a row of the log says of the row with its key.
fn told(row: &RowImage) -> Told {
    match (row.value, row.lacks(), row.moved) {
        (None, ..) => Told::Gone,
        (Some(_), false, _) => Told::Whole,
        (Some(_), true, false) => Told::Part,
        (Some(_), true, true) => Told::PartOfMoved,
    }
}
