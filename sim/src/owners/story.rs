//! What a run is made of: tables, a log, limits, and what goes wrong when.

use fault_scenarios::Random;

/// A table, by its number.
pub type Tab = usize;
/// A key.
pub type Key = u8;
/// A value. Each change has one of its own.
pub type Value = u32;

/// How many keys there are.
pub(super) const KEYS: Key = 12;

/// What a table's sink is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stages, compares, and deletes rows by their place: indexes are needed.
    Located,
    /// It stages and compares, and only appends.
    Appended,
    /// It replaces rows by version, at once; its state is written apart and compares nothing.
    Versioned,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A row, a key that moved, or a row that went.
    Row {
        /// The key before, if it was another.
        old: Option<Key>,
        /// The key.
        key: Key,
        /// The value, if there is one left.
        value: Option<Value>,
    },
    /// The table was emptied.
    Truncated,
}

/// A transaction.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// When it is in the log.
    pub at: u64,
    /// What it changes.
    pub changes: Vec<(Tab, Change)>,
}

/// The limits of leads and workers.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Slots of a table at first.
    pub slots: u32,
    /// Rows of a checkpoint.
    pub rows: u32,
    /// Its age.
    pub age: u64,
    /// Rows that a lead holds.
    pub budget: usize,
    /// Changes that one read brings.
    pub read: usize,
    /// How long a part is waited for.
    pub part_wait: u64,
    /// How often a lead asks whether it is the newest.
    pub validate: u64,
    /// How long a table that does not move keeps what waits.
    pub hold: u64,
    /// How many workers there are to be.
    pub workers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { slots: 2, rows: 4, age: 20, budget: 40, read: 10, part_wait: 150, validate: 200, hold: 150, workers: 2 }
    }
}

/// What becomes of a command and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It lands, the answer is lost.
    AnswerLost,
    /// It never lands.
    Lost,
    /// It is answered as unknown, and lands so much later.
    Late(u64),
    /// A write lands, and nobody ever answers; a commit is lost.
    Hangs,
    /// Just before the commit lands somebody rewrites the table's files.
    BehindCompaction,
    /// It lands, its answer is lost, and somebody rewrites the files before anybody asks again.
    BeforeCompaction,
    /// It is answered as unknown and lands later, and the table is given up in between.
    GivenUp,
    /// When it is sent all links of the lead break; it lands, its answer is lost.
    LinksBreak,
}

/// Something that goes wrong, or that somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The newest lead dies.
    LeadDies,
    /// It stands still for a while, and another begins.
    LeadStandsStill(u64),
    /// A worker dies, and another process takes its place.
    WorkerDies(usize),
    /// It stands still for a while.
    WorkerStandsStill(usize, u64),
    /// A worker's link breaks. What is on its way may arrive for so long.
    LinkBreaks(usize, u64),
    /// Nothing passes a worker's link any more, and nobody is told.
    LinkFallsSilent(usize),
    /// A worker dials this lead, of those that ever lived and still do.
    Dials(usize, usize),
    /// Somebody rewrites a table's files and changes no row.
    Compacts(Tab),
    /// The keys are divided otherwise.
    Divides(Tab, u32),
    /// A slot is to have another worker.
    Moves(Tab, u32),
    /// A table's sink can't be reached for so long.
    SinkIsAway(Tab, u64),
    /// What becomes of the next commit.
    NextCommit(Tab, Fate),
    /// What becomes of the next write.
    NextWrite(Tab, Fate),
    /// The lead gives up what is not durable of a table: its source, its budget, or a person wants it so.
    GivesUp(Tab),
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happening {
    /// The time.
    pub at: u64,
    /// What.
    pub fault: Fault,
}

/// How often things go wrong, in 1,000.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    pub(super) lead_dies: u64,
    pub(super) lead_stands: u64,
    pub(super) worker_dies: u64,
    pub(super) worker_stands: u64,
    pub(super) breaks: u64,
    pub(super) silent: u64,
    pub(super) dials_old: u64,
    pub(super) compacts: u64,
    pub(super) divides: u64,
    pub(super) moves: u64,
    pub(super) away: u64,
    pub(super) commits: u64,
    pub(super) writes: u64,
    pub(super) gives_up: u64,
    /// The longest that something slow takes.
    pub(super) slow: u64,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Story {
    /// The tables.
    pub tables: Vec<Kind>,
    /// The log.
    pub log: Vec<Transaction>,
    /// The limits.
    pub limits: Limits,
    /// What happens at stated times. With a seed, faults by chance come on top.
    pub happenings: Vec<Happening>,
    /// Small choices, and faults, are drawn from here; without it nothing is left to chance and everything takes one tick.
    pub seed: Option<u64>,
    pub(super) rates: Rates,
}

impl Story {
    /// One without chance.
    pub fn told(tables: &[Kind], limits: Limits, log: &[(u64, &[(Tab, Change)])], happenings: &[(u64, Fault)]) -> Self {
        Self {
            tables: tables.to_vec(),
            log: log.iter().map(|(at, changes)| Transaction { at: *at, changes: changes.to_vec() }).collect(),
            limits,
            happenings: happenings.iter().map(|(at, fault)| Happening { at: *at, fault: *fault }).collect(),
            seed: None,
            rates: Rates::default(),
        }
    }

    /// When everything heals.
    pub fn heals(&self) -> u64 {
        let last = self.log.last().map_or(0, |t| t.at);
        self.happenings.iter().map(|h| h.at).max().unwrap_or(0).max(last) + 100
    }
}

/// The story of a seed. Each has only some kinds of faults: one that is always on hides what happens without it.
pub fn generate(seed: u64) -> Story {
    let mut r = Random::of(&[seed, 77]);
    let count = r.range(1, 3) as usize;
    let tables: Vec<Kind> =
        (0..count).map(|_| *r.pick(&[Kind::Located, Kind::Located, Kind::Appended, Kind::Versioned])).collect();
    let transactions = r.range(40, 90);
    let log = log(&mut r, tables.len(), transactions);
    let slow = 2 + r.sometimes(600, 60);
    let rates = Rates {
        lead_dies: r.sometimes(500, 8),
        lead_stands: r.sometimes(500, 10),
        worker_dies: r.sometimes(600, 15),
        worker_stands: r.sometimes(500, 12),
        breaks: r.sometimes(700, 25),
        silent: r.sometimes(300, 10),
        dials_old: r.sometimes(500, 400),
        compacts: r.sometimes(600, 80),
        divides: r.sometimes(600, 100),
        moves: r.sometimes(600, 120),
        away: r.sometimes(300, 20),
        commits: r.sometimes(600, 150),
        writes: r.sometimes(500, 60),
        gives_up: r.sometimes(300, 25),
        slow,
    };
    let limits = Limits {
        slots: r.range(1, 4) as u32,
        rows: r.range(3, 10) as u32,
        age: r.range(5, 40),
        budget: r.range(6, 60) as usize,
        read: r.range(1, 10) as usize,
        part_wait: r.range(60, 300),
        validate: r.range(40, 600),
        hold: r.range(60, 200),
        workers: r.range(1, 3) as usize,
    };
    Story { tables, log, limits, happenings: vec![], seed: Some(seed), rates }
}

fn log(r: &mut Random, tables: usize, transactions: u64) -> Vec<Transaction> {
    let (mut at, mut value) = (0, 0);
    let key = |r: &mut Random| r.below(u64::from(KEYS)) as Key;
    let mut transaction = |r: &mut Random| {
        at += r.range(1, 8);
        let rows = if r.chance(60) { r.range(15, 40) } else { r.range(1, 4) };
        let changes = (0..rows).map(|_| {
            value += 1;
            let (table, to) = (r.below(tables as u64) as Tab, key(r));
            let change = if r.chance(25) {
                Change::Truncated
            } else if r.chance(200) {
                let from = key(r);
                Change::Row { old: (from != to).then_some(from), key: to, value: Some(value) }
            } else {
                Change::Row { old: None, key: to, value: (!r.chance(250)).then_some(value) }
            };
            (table, change)
        });
        Transaction { at, changes: changes.collect() }
    };
    (0..transactions).map(|_| transaction(r)).collect()
}
