//! Scenarios: a log, a table or two, and a script of what happens when. For the faults that chance meets once in thousands of
//! seeds: two processes that are late at the same time, a foreign hand at the wrong moment.

use std::collections::BTreeMap;

use kernel::config::{CheckpointLimits, Config, Join, OnTruncate, Retry};
use kernel::coordinator::Operator;
use kernel::id::TableName;
use kernel::time::Duration;

use crate::history::{Change, History, Key, Kind, Tab, Tx, Value};
use crate::plan::{Faults, Plan, SourcePlan, TablePlan};

/// A story to be played.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The log, the tables, the limits. Nothing goes wrong by chance.
    pub plan: Plan,
    /// What happens when.
    pub script: Vec<(When, Then)>,
}

/// An occasion.
#[derive(Clone, Debug)]
pub enum When {
    /// This time.
    At(u64),
    /// A process sends its nth command of a kind: commit, record, write, acknowledge, ask (for the record), resolve.
    Sends {
        /// The process; they are numbered as they begin.
        process: usize,
        /// The kind.
        what: &'static str,
        /// The table, if it matters.
        table: Option<Tab>,
        /// The how-manieth, from 1.
        nth: usize,
    },
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Then {
    /// The command lands at this time, and is answered then.
    LandsAt(u64),
    /// It never lands, and is answered as unknown.
    IsLost,
    /// It lands, and is answered as unknown.
    AnswerIsLost,
    /// It never lands, and the sender dies.
    SenderDies,
    /// A process dies. What it sent still lands.
    Dies(usize),
    /// A process stands still until then.
    StandsStill(usize, u64),
    /// A foreign hand sets a table back by some commits.
    IsSetBack(Tab, usize),
    /// A person asks.
    Asked(usize, Operator),
}

/// A row of one table: its key and value, or that it is gone.
pub type TableRow = (Key, Option<Value>);
/// A row of one of several tables.
pub type Row = (Tab, Key, Option<Value>);

impl Scenario {
    /// One table of one stream, keyed; small checkpoints, closed as soon as they can be.
    pub fn of_one_table(staging: bool, transactions: &[(u64, &[TableRow])]) -> Self {
        let of_table = |rows: &[TableRow]| rows.iter().map(|(key, value)| (0, *key, *value)).collect();
        let transactions = transactions.iter().map(|(time, rows)| (*time, of_table(rows)));
        Self::of_tables(staging, 1, transactions.collect())
    }

    /// The same of several tables.
    pub fn of_tables(staging: bool, tables: usize, transactions: Vec<(u64, Vec<Row>)>) -> Self {
        let mut history = History::empty(&[""], &["t0", "t1", "t2"][..tables]);
        let mut at = 0;
        for (time, rows) in transactions {
            let change = |(table, key, value): &Row| Change { table: *table, kind: Kind::Row(*key, *value), schema: 0 };
            let changes: Vec<Change> = rows.iter().map(change).collect();
            let end = at + 1 + changes.len() as u64;
            history.push(Tx { stream: 0, at, end, time, changes });
            at = end;
        }
        let table = TablePlan { staging, keyed: true, join: Join::Beginning, on_truncate: OnTruncate::Propagate };
        let config = Config {
            checkpoint: CheckpointLimits { age: Duration(10), rows: 1, bytes: 10_000 },
            record_interval: Duration(10),
            poll_interval: Duration(5),
            retry: Retry { first: Duration(5), most: Duration(20), give_up_after: None },
            validate_interval: Duration(300),
            rewind_interval: Duration(10),
            ..Config::new(BTreeMap::new())
        };
        let source = SourcePlan {
            discards: true,
            exclusive: false,
            interleaves_inside: false,
            empty_transactions: 0,
            keepalives: 0,
            rows_tell_schemas: false,
            finishes: false,
        };
        let faults = Faults { slow: 2, ..Faults::default() };
        Self { plan: Plan { history, tables: vec![table; tables], config, source, faults }, script: vec![] }
    }

    /// When the last thing in its script happens.
    pub fn ends(&self) -> u64 {
        let at = |(when, then): &(When, Then)| {
            let when = if let When::At(at) = when { *at } else { 0 };
            let then = if let Then::LandsAt(at) | Then::StandsStill(_, at) = then { *at } else { 0 };
            when.max(then)
        };
        self.script.iter().map(at).max().unwrap_or(0)
    }

    /// With this in its script.
    #[must_use]
    pub fn when(mut self, when: When, then: Then) -> Self {
        self.script.push((when, then));
        self
    }
}

/// The nth command of a kind that a process sends.
pub fn sends(process: usize, what: &'static str, nth: usize) -> When {
    When::Sends { process, what, table: None, nth }
}

/// The name of a table by its number.
pub fn table(number: Tab) -> TableName {
    TableName::from(format!("t{number}").as_str())
}
