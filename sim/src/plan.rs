//! What a seed decides before a run begins: the log, the tables and their sinks, the limits, and which faults happen how
//! often. Swarm testing: a fault that is always on hides what happens without it, so each seed has only some of them.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{CheckpointLimits, Config, Join, OnError, OnTruncate, Retry, TableConfig};
use kernel::time::Duration;

use crate::history::{Change, History, Kind, Tab, Tx};
use crate::random::Random;

/// Everything that is decided beforehand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The log.
    pub history: History,
    /// What each table of the source is, were it in the pipeline.
    pub tables: Vec<TablePlan>,
    /// Limits and intervals; its tables are chosen for each life.
    pub config: Config,
    /// How the source behaves.
    pub source: SourcePlan,
    /// What goes wrong, and how often.
    pub faults: Faults,
}

/// One table.
#[derive(Clone, Copy, Debug)]
pub struct TablePlan {
    /// Iceberg-like; else ClickHouse-like.
    pub staging: bool,
    /// Does the sink replace rows by key?
    pub keyed: bool,
    /// Where it begins.
    pub join: Join,
    /// What a TRUNCATE does.
    pub on_truncate: OnTruncate,
}

/// How the source behaves.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    /// What was acknowledged is gone at once.
    pub discards: bool,
    /// A new session ends the one before it.
    pub exclusive: bool,
    /// Streams change over inside transactions, too.
    pub interleaves_inside: bool,
    /// Transactions without rows of ours: 0 end like others, 1 are told by keepalives, 2 by nothing.
    pub empty_transactions: u64,
    /// Of 1,000 steps, how many send a keepalive.
    pub keepalives: u64,
    /// A change of schema is no event of its own: it is told before the first row that a reader can't read without it, so
    /// that a reading that begins with the schema of a later one never tells it (JSON files; PostgreSQL).
    pub rows_tell_schemas: bool,
    /// The log has an end.
    pub finishes: bool,
}

/// What goes wrong. Numbers are chances in 1,000 at each occasion; 0 never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A process dies at a landing or an answer.
    pub kill: u64,
    /// How much more often while it starts.
    pub kill_in_recovery: u64,
    /// A process stands still and wakes up later.
    pub pause: u64,
    /// An answer or a command is lost, or lands late.
    pub unknown: u64,
    /// The longest time that an ordinary command takes.
    pub slow: u64,
    /// A table's sink can't be reached for a while.
    pub away: u64,
    /// A foreign hand sets a table back.
    pub rollback: u64,
    /// A foreign hand commits to a table without changing it.
    pub foreign: u64,
    /// The sink refuses some values.
    pub rejects: bool,
    /// A person pauses, resumes, skips, releases.
    pub hands: u64,
    /// The source forgets more than it may.
    pub purge: u64,
    /// The session to the source is lost.
    pub session: u64,
    /// An acknowledgement is lost with its session.
    pub lost_acknowledgement: u64,
    /// Another log stands in this one's place for a while.
    pub replaced: u64,
    /// The log is shorter for a while.
    pub cut_short: u64,
    /// The log is read from another server, which numbers rows otherwise.
    pub other_server: u64,
    /// The source can't be reached for a while.
    pub source_away: u64,
    /// The log holds something that can't be read, for a while.
    pub poison: u64,
    /// A divided transaction is told otherwise when it is read again.
    pub lies: u64,
    /// A read fails.
    pub read_fails: u64,
    /// A life ends by itself: drained, or current.
    pub drains: u64,
    /// The next life has other tables.
    pub reconfigures: u64,
    /// An older life's answer reaches a newer one.
    pub stale_answers: u64,
    /// The one fault of the run: this table's sink is away all the time.
    pub only_away: Option<Tab>,
}

impl Plan {
    /// What `seed` decides.
    pub fn new(random: &mut Random) -> Self {
        let tables = random.range(2, 4) as usize;
        let vector = random.chance(550);
        let streams = if vector { random.range(2, 3) as usize } else { 1 };
        let faults = faults(random, tables);
        let refuses = faults.only_away.is_none() && random.chance(250);
        let rows_tell_schemas = random.chance(400);
        let history = history(random, tables, streams, refuses, rows_tell_schemas);
        let discards = random.chance(800);
        let source = SourcePlan {
            discards,
            exclusive: random.chance(600),
            interleaves_inside: random.chance(500),
            empty_transactions: random.below(3),
            keepalives: random.sometimes(700, 150),
            rows_tell_schemas,
            finishes: random.chance(150),
        };
        let tables = (0..tables).map(|_| table(random, &faults)).collect();
        let mut config = config(random);
        if !discards && random.chance(500) {
            config.hold = None;
            config.source_keeps_all = true;
        }
        if faults.only_away.is_some() {
            config.hold = None;
            config.retry.give_up_after = None;
            config.rewind_interval = Duration(20);
            // The others are fast enough by themselves.
            config.checkpoint.rows = 50;
            config.read_bytes_max = 1_000;
            config.budget_bytes_max = random.range(800, 2_000);
            config.checkpoint.bytes = 10_000;
        }
        Self { history, tables, config, source, faults }
    }

    /// A configuration for a life with these tables.
    pub fn config_of(&self, tables: &BTreeSet<Tab>) -> Config {
        let table = |tab: &Tab| {
            let plan = &self.tables[*tab];
            let config = TableConfig {
                join: plan.join,
                keyed: plan.keyed,
                state_with_data: plan.staging,
                on_truncate: plan.on_truncate,
                on_error: OnError::Halt,
            };
            (self.history.tables[*tab].clone(), config)
        };
        Config { tables: tables.iter().map(table).collect(), ..self.config.clone() }
    }
}

fn table(random: &mut Random, faults: &Faults) -> TablePlan {
    let calm = faults.only_away.is_some();
    TablePlan {
        staging: random.chance(600),
        keyed: !random.chance(200),
        join: match random.below(100) {
            0..8 if !calm => Join::Now,
            8..10 if !calm => Join::Snapshot,
            _ => Join::Beginning,
        },
        on_truncate: match random.below(10) {
            0 => OnTruncate::Ignore,
            1 if !calm => OnTruncate::Fail,
            _ => OnTruncate::Propagate,
        },
    }
}

fn config(random: &mut Random) -> Config {
    let rows = random.range(2, 8);
    // A row has 10 bytes, more or less.
    let budget_bytes_max = if random.chance(300) { random.range(60, 300) } else { 100_000 };
    let age = Duration(random.range(5, 40));
    Config {
        checkpoint: CheckpointLimits { age, rows, bytes: if random.chance(300) { random.range(20, 80) } else { 10_000 } },
        record_interval: Duration(random.range(5, 40)),
        poll_interval: Duration(5),
        budget_bytes_max,
        read_bytes_max: random.range(30, 200),
        retry: Retry {
            first: Duration(random.range(2, 6)),
            most: Duration(random.range(8, 60)),
            give_up_after: random.chance(150).then_some(Duration(200)),
        },
        hold: random.chance(400).then(|| Duration(random.range(80, 400))),
        validate_interval: Duration(20 + 15 * rows),
        rewind_interval: Duration(random.range(1, 60)),
        ancestor_runs_max: *random.pick(&[1, 2, 4, 16]),
        recent_commits_max: *random.pick(&[2, 4, 64, 64]),
        until_current: false,
        planted: None,
        ..Config::new(BTreeMap::new())
    }
}

fn faults(random: &mut Random, tables: usize) -> Faults {
    if random.chance(40) {
        return Faults { slow: 2, only_away: Some(random.below(tables as u64) as Tab), ..Faults::default() };
    }
    Faults {
        kill: random.sometimes(600, 4),
        kill_in_recovery: *random.pick(&[1, 1, 8, 20]),
        pause: random.sometimes(500, 4),
        unknown: random.sometimes(600, 150),
        slow: 2 + random.sometimes(500, 60),
        away: random.sometimes(300, 100),
        rollback: random.sometimes(250, 60),
        foreign: random.sometimes(300, 150),
        rejects: random.chance(300),
        hands: random.sometimes(500, 300),
        purge: random.sometimes(80, 20),
        session: random.sometimes(300, 10),
        lost_acknowledgement: random.sometimes(200, 300),
        replaced: random.sometimes(80, 25),
        cut_short: random.sometimes(80, 25),
        other_server: random.sometimes(150, 30),
        source_away: random.sometimes(200, 30),
        poison: random.sometimes(80, 15),
        lies: random.sometimes(100, 200),
        read_fails: random.sometimes(300, 30),
        drains: random.sometimes(250, 20),
        reconfigures: random.sometimes(200, 250),
        stale_answers: random.sometimes(400, 150),
        only_away: None,
    }
}

/// A log: a key of a table lies in one stream only (rule P5), and what touches all keys at once only where the whole table
/// does.
fn history(random: &mut Random, tables: usize, streams: usize, refuses: bool, rows_tell_schemas: bool) -> History {
    let names: &[&str] = if streams == 1 { &[""] } else { &["a", "b", "c"][..streams] };
    let mut history = History::empty(names, &["t0", "t1", "t2", "t3"][..tables]);
    let transactions = random.range(60, 160);
    // Of some tables all rows lie in one stream.
    let home: Vec<Option<usize>> =
        (0..tables).map(|_| (streams == 1 || random.chance(400)).then(|| random.below(streams as u64) as usize)).collect();
    let idle = random.below(tables as u64 + 1) as Tab;
    let late = (streams > 1 && random.chance(400)).then_some(streams - 1);
    let events = random.chance(600);
    let huge = random.chance(600);
    let mut clock = Clock { time: 0, value: 0, offsets: vec![0; streams], schema: vec![0; tables], rows_tell_schemas };
    for n in 0..transactions {
        clock.time += random.range(1, 8);
        let mut stream = random.below(streams as u64) as usize;
        if Some(stream) == late && n < transactions / 2 {
            stream = 0;
        }
        if Some(stream) == late && history.of_stream[stream].is_empty() {
            history.appears[stream] = clock.time;
        }
        let here: Vec<Tab> = (0..tables).filter(|t| home[*t].is_none_or(|h| h == stream)).collect();
        let size = match random.below(100) {
            0..6 if huge => random.range(15, 45),
            6..14 => 0,
            _ => random.range(1, 4),
        };
        let only = random.chance(400).then(|| random.below(here.len() as u64));
        let mut changes = vec![];
        for _ in 0..if here.is_empty() { 0 } else { size } {
            let mut table = here[only.unwrap_or_else(|| random.below(here.len() as u64)) as usize];
            if table == idle && !random.chance(40) {
                table = here[random.below(here.len() as u64) as usize];
            }
            let whole_table_here = home[table].is_some();
            changes.push(clock.change(random, table, stream, streams, events && whole_table_here, refuses));
        }
        let at = clock.offsets[stream] + random.below(3);
        let end = at + 2 + changes.len() as u64;
        clock.offsets[stream] = end;
        history.push(Tx { stream, at, end, time: clock.time, changes });
    }
    history
}

struct Clock {
    time: u64,
    value: u32,
    offsets: Vec<u64>,
    schema: Vec<u32>,
    rows_tell_schemas: bool,
}

impl Clock {
    fn change(&mut self, random: &mut Random, table: Tab, stream: usize, streams: usize, events: bool, refuses: bool) -> Change {
        self.value += 1;
        // A key's remainder is its stream.
        let mut key = || (random.below(4) as usize * streams + stream) as u8;
        let (from, to, value) = (key(), key(), self.value);
        let kind = match random.below(1000) {
            0..15 if events => Kind::Truncated,
            15..35 if events => {
                self.schema[table] += 1;
                if self.rows_tell_schemas { Kind::Row(from, Some(value)) } else { Kind::Schema(self.schema[table]) }
            }
            35..45 if refuses => Kind::Refused,
            45..120 if from != to => Kind::Moved(from, to, value),
            120..400 => Kind::Row(from, None),
            _ => Kind::Row(from, Some(value)),
        };
        Change { table, kind, schema: self.schema[table] }
    }
}
