//! What a scenario says, in the words of the machines: the log as it truly is, the tables, the limits, the source's habits.

use std::collections::{BTreeMap, BTreeSet};

use fault_scenarios::{EmptyTransactions, Options, Scenario, Sink, Table, Truncate, Workload};
use kernel::config::{
    AbsentLimits, CheckpointLimits, Config, Join, OnError, OnTruncate, Resnapshot, Retry, SnapshotLimits, TableConfig,
};
use kernel::time::Duration;

use crate::history::{Change, History, Kind, Tab, Tx};
use crate::source::chunks;

/// Everything that is decided beforehand, but for the steps.
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
    /// Values that the sinks refuse while faults happen.
    pub refused: BTreeSet<u32>,
    /// The one fault of the run: this table's sink is away all the time.
    pub stopped: Option<Tab>,
    /// When everything heals.
    pub heals: u64,
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
    /// What ends its need of a snapshot.
    pub resnapshot: Resnapshot,
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
    /// What becomes of transactions without rows of ours.
    pub empty_transactions: EmptyTransactions,
    /// Of 1,000 steps, how many send a keepalive.
    pub keepalives: u64,
    /// A change of schema is no event of its own: it is told before the first row that a reader can't read without it, so
    /// that a reading that begins with the schema of a later one never tells it (JSON files; PostgreSQL).
    pub rows_tell_schemas: bool,
    /// The log has an end.
    pub finishes: bool,
    /// Two changes of one key keep their order in every reading.
    pub keeps_key_order: bool,
}

impl Plan {
    /// What a scenario says.
    pub fn of(scenario: &Scenario) -> Self {
        let o = &scenario.options;
        let config = Config {
            checkpoint: CheckpointLimits { age: Duration(o.age), rows: o.rows, bytes: o.bytes },
            record_interval: Duration(o.record_interval),
            poll_interval: Duration(o.poll_interval),
            budget_bytes_max: o.budget,
            read_bytes_max: o.read_bytes,
            retry: Retry {
                first: Duration(o.retry_first),
                most: Duration(o.retry_most),
                give_up_after: o.give_up_after.map(Duration),
            },
            source_keeps_all: o.keeps_all,
            hold: o.hold.map(Duration),
            hold_distance: o.hold_distance,
            validate_interval: Duration(o.validate_interval),
            rewind_interval: Duration(o.rewind_interval),
            ancestor_runs_max: o.ancestors as usize,
            recent_commits_max: o.recent as usize,
            until_current: false,
            intervals_max: o.intervals as usize,
            source_reads_chunks: o.chunks,
            snapshot: SnapshotLimits {
                chunks_max: o.chunks_max as u32,
                chunk_rows_max: o.chunk_rows as u32,
                chunk_bytes_max: o.chunk_bytes,
                held_bytes_max: o.chunk_budget,
                touched_keys_max: o.touched_keys as usize,
                visibility_interval: Duration(o.visibility_interval),
            },
            absent: AbsentLimits {
                keys_max: o.absent_keys as usize,
                holes_max: o.absent_holes as usize,
                read_bytes_max: o.absent_bytes,
                ages: o.absent_ages,
                attempts_max: o.absent_attempts as u32,
            },
            planted: None,
            ..Config::new(BTreeMap::new())
        };
        let source = SourcePlan {
            discards: o.discards,
            exclusive: o.exclusive,
            interleaves_inside: o.interleaves,
            empty_transactions: o.empty,
            keepalives: o.keepalives,
            rows_tell_schemas: o.rows_tell_schemas,
            finishes: o.finishes,
            keeps_key_order: o.key_order,
        };
        Self {
            history: history(&scenario.workload, o),
            tables: scenario.workload.tables.iter().map(table).collect(),
            config,
            source,
            refused: scenario.workload.refused.iter().copied().collect(),
            stopped: o.stopped,
            heals: scenario.heals(),
        }
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
                resnapshot: plan.resnapshot,
            };
            (self.history.tables[*tab].clone(), config)
        };
        Config { tables: tables.iter().map(table).collect(), ..self.config.clone() }
    }
}

fn table(table: &Table) -> TablePlan {
    TablePlan {
        staging: match table.sink {
            Sink::Staging => true,
            Sink::Versioned => false,
        },
        keyed: table.keyed,
        join: match table.join {
            fault_scenarios::Join::Beginning => Join::Beginning,
            fault_scenarios::Join::Now => Join::Now,
            fault_scenarios::Join::Snapshot => Join::Snapshot,
        },
        on_truncate: match table.truncate {
            Truncate::Propagates => OnTruncate::Propagate,
            Truncate::Ignored => OnTruncate::Ignore,
            Truncate::Fails => OnTruncate::Fail,
        },
        resnapshot: if table.anew { Resnapshot::AtStart } else { Resnapshot::WhenAsked },
    }
}

/// The log: each transaction has an offset for its beginning, one for each change and one for its end; in a log of sets a number.
fn history(workload: &Workload, options: &Options) -> History {
    let streams: Vec<&str> = match workload.streams.as_slice() {
        [] => vec![""],
        streams => streams.iter().map(|s| s.name.as_str()).collect(),
    };
    let tables: Vec<String> = (0..workload.tables.len()).map(|n| format!("t{n}")).collect();
    let mut history = History::empty(&streams, &tables.iter().map(String::as_str).collect::<Vec<_>>());
    for (n, stream) in workload.streams.iter().enumerate() {
        history.appears[n] = stream.appears;
    }
    let mut offsets = vec![0; streams.len()];
    let mut schemas = vec![0; tables.len()];
    for transaction in &workload.transactions {
        let change = |change: &fault_scenarios::Change| {
            let schema = &mut schemas[change.table];
            let kind = match change.kind {
                fault_scenarios::Kind::Set(key, value) => Kind::Row(key, Some(value)),
                fault_scenarios::Kind::Gone(key) => Kind::Row(key, None),
                fault_scenarios::Kind::Moved(from, to, value) => Kind::Moved(from, to, value),
                fault_scenarios::Kind::Truncated => Kind::Truncated,
                fault_scenarios::Kind::Schema => {
                    *schema += 1;
                    if options.rows_tell_schemas {
                        return None;
                    }
                    Kind::Schema(*schema)
                }
                fault_scenarios::Kind::Refused => Kind::Refused,
            };
            Some(Change { schema: *schema, without: change.without, ..Change::of(change.table, kind) })
        };
        let changes: Vec<Change> = transaction.changes.iter().filter_map(change).collect();
        let stream = transaction.stream;
        let at = offsets[stream] + transaction.gap;
        let end = at + if options.sets { 1 } else { 2 + changes.len() as u64 };
        offsets[stream] = end;
        history.push(Tx { stream, at, end, time: transaction.time, changes });
    }
    history.sets = options.sets;
    history.late = workload.transactions.iter().map(|t| t.late).collect();
    history.seen = chunks::visibility(&history, &workload.transactions);
    history
}
