//! The small worlds that are searched: tables, what the log says, what may go wrong.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{CheckpointLimits, Config, Join, OnTruncate, Resnapshot, Retry, SnapshotLimits};
use kernel::time::Duration;

use crate::history::{Change, History, Key, Kind, Tx};
use crate::plan::TablePlan;

/// A world that is small enough.
#[derive(Clone, Debug)]
pub struct Small {
    /// What it is, for people.
    pub name: String,
    /// Its tables.
    pub tables: Vec<TablePlan>,
    /// What the log says.
    pub history: History,
    /// So many transactions are in it, and visible, before anything begins.
    pub known: usize,
    /// A transaction is visible before the source can say so.
    pub says_late: bool,
    /// Lives that may die.
    pub crashes: u8,
    /// Answers, or commands, that may be lost.
    pub losses: u8,
    /// May a life begin while an older one lives?
    pub overlaps: bool,
    /// Does a read of the log bring one thing, perhaps, or always a transaction to its end?
    pub in_pieces: bool,
    /// Is the record stored whenever it differs, or only when somebody waits for it? Then nothing is acknowledged.
    pub acknowledges: bool,
    /// Where a snapshot's ranges end, if it is divided.
    pub bounds: Vec<Key>,
    /// Chunks that are read side by side.
    pub chunks: u32,
    /// Rows of one chunk.
    pub chunk_rows: u32,
}

impl Small {
    fn new(name: String, tables: Vec<TablePlan>, transactions: Vec<Vec<(usize, Kind)>>) -> Self {
        let names: Vec<String> = (0..tables.len()).map(|n| format!("t{n}")).collect();
        let mut history = History::empty(&[""], &names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut at = 0;
        for changes in transactions {
            let changes: Vec<Change> = changes.into_iter().map(|(table, kind)| Change::of(table, kind)).collect();
            let end = at + 2 + changes.len() as u64;
            history.push(Tx { stream: 0, at, end, time: 0, changes });
            at = end;
        }
        let known = history.transactions.len();
        Self {
            name,
            tables,
            history,
            known,
            says_late: false,
            crashes: 0,
            losses: 0,
            overlaps: false,
            in_pieces: false,
            acknowledges: true,
            bounds: vec![],
            chunks: 1,
            chunk_rows: 2,
        }
    }

    /// The configuration of a life in it: everything is due at once, and a checkpoint closes as soon as nothing is on its way, inside a
    /// transaction too.
    pub fn config(&self) -> Config {
        let tables: BTreeSet<usize> = (0..self.tables.len()).collect();
        let never = Duration(u64::MAX);
        let plan = crate::plan::Plan {
            history: self.history.clone(),
            tables: self.tables.clone(),
            config: Config {
                checkpoint: CheckpointLimits { age: Duration(0), rows: 1, bytes: u64::MAX / 4 },
                record_interval: if self.acknowledges { Duration(0) } else { never },
                poll_interval: Duration(0),
                retry: Retry { first: Duration(0), most: never, give_up_after: None },
                validate_interval: never,
                rewind_interval: Duration(0),
                source_reads_chunks: true,
                snapshot: SnapshotLimits {
                    chunks_max: self.chunks,
                    chunk_rows_max: self.chunk_rows,
                    chunk_bytes_max: 1_000,
                    held_bytes_max: 1_000_000,
                    touched_keys_max: 100,
                    visibility_interval: Duration(0),
                },
                ..Config::new(BTreeMap::new())
            },
            source: crate::plan::SourcePlan {
                keeps_key_order: true,
                discards: true,
                exclusive: false,
                interleaves_inside: false,
                empty_transactions: fault_scenarios::EmptyTransactions::End,
                keepalives: 0,
                rows_tell_schemas: false,
                finishes: false,
            },
            refused: BTreeSet::new(),
            stopped: None,
            heals: 0,
        };
        plan.config_of(&tables)
    }
}

fn table(staging: bool, join: Join) -> TablePlan {
    TablePlan { staging, keyed: true, join, on_truncate: OnTruncate::Propagate, resnapshot: Resnapshot::WhenAsked }
}

fn set(key: Key, value: u32) -> Kind {
    Kind::Row(key, Some(value))
}

/// The worlds of a bound, by its name. Each is larger than the ones of the bound before.
pub fn worlds(bound: &str) -> Option<Vec<Small>> {
    let both = [true, false];
    let worlds = match bound {
        // What fits into the tests.
        "small" => {
            let mut worlds: Vec<Small> = both.map(|staging| one_table(staging, 2, Fault::None)).into();
            worlds.extend(both.map(|staging| one_table(staging, 1, Fault::Dies)));
            worlds.extend(both.map(|staging| one_table(staging, 1, Fault::LosesAnAnswer)));
            worlds.extend(both.map(|staging| two_tables(staging, Fault::None)));
            worlds.extend(fences(1, Ranges::One, true, Fault::None));
            worlds.push(fences(1, Ranges::Two, false, Fault::None).swap_remove(MOVED));
            worlds
        }
        "larger" => {
            let mut worlds: Vec<Small> = both.map(|staging| one_table(staging, 2, Fault::Dies)).into();
            worlds.extend(both.map(|staging| one_table(staging, 2, Fault::LosesAnAnswer)));
            worlds.extend(both.map(|staging| one_table(staging, 1, Fault::Overlaps)));
            worlds.extend(fences(1, Ranges::Two, false, Fault::None));
            worlds.extend(fences(1, Ranges::One, true, Fault::Dies));
            worlds
        }
        "largest" => {
            let mut worlds: Vec<Small> = both.map(|staging| one_table(staging, 2, Fault::DiesAndLosesAnAnswer)).into();
            worlds.extend(both.map(|staging| two_tables(staging, Fault::Dies)));
            worlds.extend(fences(1, Ranges::Two, true, Fault::Dies));
            worlds.extend(fences(2, Ranges::One, true, Fault::None));
            worlds
        }
        _ => return None,
    };
    Some(worlds)
}

/// What may go wrong in a world.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Dies,
    LosesAnAnswer,
    DiesAndLosesAnAnswer,
    Overlaps,
}

impl Small {
    fn with(self, fault: Fault) -> Self {
        let (crashes, losses, overlaps, what) = match fault {
            Fault::None => (0, 0, false, "nothing goes wrong"),
            Fault::Dies => (1, 0, false, "one life dies"),
            Fault::LosesAnAnswer => (0, 1, false, "one answer is lost"),
            Fault::DiesAndLosesAnAnswer => (1, 1, false, "one life dies and one answer is lost"),
            Fault::Overlaps => (0, 0, true, "an older life lives on"),
        };
        Self { name: format!("{}, {what}", self.name), crashes, losses, overlaps, ..self }
    }
}

fn sink(staging: bool) -> &'static str {
    if staging { "a sink that stages" } else { "a sink that goes by versions" }
}

/// Checkpoints and acknowledging of one table. A cut may divide the first transaction anywhere.
fn one_table(staging: bool, transactions: usize, fault: Fault) -> Small {
    let mut log = vec![vec![(0, set(1, 100)), (0, set(2, 101))], vec![(0, Kind::Row(2, None))]];
    log.truncate(transactions);
    let name = format!("one table, {transactions} transactions, {}", sink(staging));
    let small = Small::new(name, vec![table(staging, Join::Beginning)], log);
    Small { in_pieces: true, ..small }.with(fault)
}

/// Two tables: what is acknowledged must be durable in both.
fn two_tables(staging: bool, fault: Fault) -> Small {
    let log = vec![vec![(0, set(1, 100))], vec![(0, set(1, 101)), (1, set(1, 200))]];
    let tables = vec![table(true, Join::Beginning), table(staging, Join::Beginning)];
    Small::new(format!("two tables, the second at {}", sink(staging)), tables, log).with(fault)
}

/// How a snapshot's key space is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ranges {
    /// One range, in one chunk.
    One,
    /// Two, read side by side.
    Two,
}

/// Which of the changes of a fence's world moves a row from the first range to the second.
const MOVED: usize = 3;

/// The fence: a table of two rows, read in chunks while so many transactions of one change each are written, every choice of them.
fn fences(transactions: usize, ranges: Ranges, says_late: bool, fault: Fault) -> Vec<Small> {
    let mut written = vec![];
    choose(&mut vec![], &BTreeSet::from([1, 2]), transactions, &mut written);
    let world = |changes: Vec<Kind>| {
        let how = if ranges == Ranges::Two { " of two ranges" } else { "" };
        let name =
            format!("a snapshot{how} while {changes:?}{}", if says_late { ", of which the source knows late" } else { "" });
        let mut log = vec![vec![(0, set(1, 100)), (0, set(2, 101))]];
        log.extend(changes.into_iter().map(|kind| vec![(0, kind)]));
        let small = Small::new(name, vec![table(true, Join::Snapshot)], log);
        let (bounds, chunks) = if ranges == Ranges::Two { (vec![1], 2) } else { (vec![], 1) };
        Small { known: 1, says_late, acknowledges: false, bounds, chunks, ..small }.with(fault)
    };
    written.into_iter().map(world).collect()
}

/// Every sequence of changes that a source with these keys could write.
fn choose(so_far: &mut Vec<Kind>, keys: &BTreeSet<Key>, left: usize, written: &mut Vec<Vec<Kind>>) {
    if left == 0 {
        return written.push(so_far.clone());
    }
    let value = 200 + so_far.len() as u32;
    let mut kinds = vec![Kind::Truncated];
    for key in [1, 2] {
        kinds.push(set(key, value));
        if keys.contains(&key) {
            kinds.push(Kind::Row(key, None));
            kinds.push(Kind::Moved(key, 3 - key, value));
        }
    }
    for kind in kinds {
        let mut then = keys.clone();
        match kind {
            Kind::Row(key, Some(_)) => drop(then.insert(key)),
            Kind::Row(key, None) => drop(then.remove(&key)),
            Kind::Moved(from, to, _) => {
                then.remove(&from);
                then.insert(to);
            }
            Kind::Truncated => then.clear(),
            Kind::Schema(_) | Kind::Refused => {}
        }
        so_far.push(kind);
        choose(so_far, &then, left - 1, written);
        so_far.pop();
    }
}
