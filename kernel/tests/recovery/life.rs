//! One life: a coordinator, its row store, its place in the log, and its commands that wait for an answer.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{CheckpointLimits, Config, Retry, TableConfig};
use kernel::coordinator::{Coordinator, HeldBatch, Input, LogEvent, Output, Restart, RowRange, StopReason, ToWorker};
use kernel::id::{BatchId, Session, TableName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::time::{Duration, Time};

use crate::log::{Log, Row, STREAMS, TABLES, coordinate, table};
use crate::sink::Durable;

/// What a life asked for. A write carries its rows, since the store may forget them once they are sent.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Command(Output),
    Write(ToWorker, Vec<Row>),
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// It happens; nobody says so.
    AnswerLost,
    /// It never happens; nobody says so.
    Lost,
}

#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) coordinator: Coordinator,
    pub(crate) pending: Vec<Asked>,
    pub(crate) stopped: Option<StopReason>,
    store: BTreeMap<BatchId, Vec<Row>>,
    batches: u64,
    /// Transactions that were read to their ends, or that nobody asked for;
    read: BTreeSet<usize>,
    /// of those that were begun, how many rows were read.
    begun: BTreeMap<usize, usize>,
}

/// The configuration of every life.
pub(crate) fn config(durable: &Durable, keeps_all: bool) -> Config {
    let tables = TABLES.iter().zip(&durable.tables);
    let table = |staging: bool| TableConfig { state_with_data: staging, ..TableConfig::new() };
    Config {
        checkpoint: CheckpointLimits { age: Duration(10), rows: 2, bytes: 10_000 },
        record_interval: Duration(10),
        poll_interval: Duration(5),
        read_bytes_max: 30,
        retry: Retry { first: Duration(2), most: Duration(20), give_up_after: None },
        validate_interval: Duration(60),
        rewind_interval: Duration(10),
        source_keeps_all: keeps_all,
        ..Config::new(tables.map(|(name, target)| (TableName::from(*name), table(target.staging))).collect())
    }
}

impl Life {
    pub(crate) fn begin(now: u64, config: Config) -> Self {
        let mut life = Self {
            coordinator: Coordinator::new(Time(now), config),
            pending: vec![],
            stopped: None,
            store: BTreeMap::new(),
            batches: 0,
            read: BTreeSet::new(),
            begun: BTreeMap::new(),
        };
        life.drain();
        life
    }

    pub(crate) fn give(&mut self, now: u64, input: Input) {
        self.coordinator.handle_input(Time(now), input);
        self.drain();
        if let Err(violation) = self.coordinator.check() {
            panic!("{violation}");
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.coordinator.poll_output() {
            match output {
                Output::ReleaseBatch { batch } => assert!(self.store.remove(&batch).is_some(), "{batch:?} is not held"),
                Output::Send(ToWorker::Write { attempt, part, rows, first_version, fills }) => {
                    let of = |r: &RowRange| self.store[&r.batch][r.rows.start as usize..r.rows.end as usize].to_vec();
                    let sent = rows.iter().flat_map(of).collect();
                    self.pending.push(Asked::Write(ToWorker::Write { attempt, part, rows, first_version, fills }, sent));
                }
                Output::Stop { reason } => {
                    assert!(matches!(reason, StopReason::Superseded { .. }), "{reason:?}");
                    self.stopped = Some(reason);
                }
                Output::Started { table, lost, .. } => assert!(!lost, "{table} is called lost"),
                Output::Send(ToWorker::Abandon { .. })
                | Output::HaltTable { .. }
                | Output::Declined { .. }
                | Output::Skipped { .. } => {}
                output => self.pending.push(Asked::Command(output)),
            }
        }
    }

    /// The place of the `nth` pending command, or of one of the same lane that was asked for before it.
    pub(crate) fn next_of_lane(&self, nth: usize) -> usize {
        let lane = lane(&self.pending[nth]);
        self.pending.iter().position(|asked| lane.is_some() && self::lane(asked) == lane).unwrap_or(nth)
    }

    /// The log says up to `most` things more: of one stream as long as it has some, or of sets in an order that `choice` chooses.
    fn read(&mut self, log: &Log, visible: usize, restart: Option<&Restart>, choice: usize, most: usize) -> Brought {
        if let Some(restart) = restart {
            self.read = (0..log.transactions.len()).filter(|tx| log.holds(&restart.from, *tx)).collect();
            self.begun.clear();
        }
        let (mut batches, mut events) = (vec![], vec![]);
        while events.len() < most {
            let ready = |tx: &usize| !self.read.contains(tx) && (0..*tx).all(|e| self.read.contains(&e) || !log.precedes(e, *tx));
            let mut ready: Vec<usize> = (0..visible).filter(ready).collect();
            if log.sets {
                // A transaction is never divided by another one.
                ready = self.begun.keys().copied().next().map_or(ready, |inside| vec![inside]);
                let first = (choice + events.len()) % ready.len().max(1);
                ready.rotate_left(first);
            } else {
                ready.sort_by_key(|tx| (log.transactions[*tx].stream + choice) % STREAMS.len());
            }
            let Some(tx) = ready.first().copied() else { break };
            let (transaction, row) = (log.name(tx), self.begun.get(&tx).copied().unwrap_or(0));
            let Some(found) = log.transactions[tx].rows.get(row).copied() else {
                events.push(LogEvent::Ended { transaction, upto: log.ended(&log.transactions[tx]) });
                self.begun.remove(&tx);
                self.read.insert(tx);
                continue;
            };
            self.batches += 1;
            let batch = BatchId(self.batches);
            self.store.insert(batch, vec![found]);
            batches.push(HeldBatch { batch, rows: 1, bytes: 10 });
            let (table, rows, at) = (TableName::from(TABLES[found.table]), RowRange { batch, rows: 0..1 }, coordinate(row));
            let digest = log.digest(tx, row);
            let touched = None;
            events.push(LogEvent::Rows { table, transaction, rows, bytes: 10, first: at, last: at, digest, touched });
            self.begun.insert(tx, row + 1);
        }
        (batches, events)
    }

    /// A pending command lands, perhaps, and is answered.
    pub(crate) fn answer(&mut self, nth: usize, fate: Fate, choice: usize, world: (&Log, usize, &mut Durable), now: u64) {
        let asked = self.pending.remove(nth);
        let (log, visible, durable) = world;
        if let Asked::Command(Output::ReadLog { id, restart, .. }) = &asked {
            if fate != Fate::Answered {
                let failure = LogFailure::SessionLost { why: "the connection broke".into() };
                return self.give(now, Input::LogFailed { id: *id, failure });
            }
            if let Some(restart) = restart {
                assert!(restart.from.contains(&durable.floor), "it reads from {}, gone is {}", restart.from, durable.floor);
            }
            let (batches, events) = self.read(log, visible, restart.as_ref(), choice, 1 + choice % 6);
            return self.give(now, Input::LogRead { id: *id, batches, events, finished: false });
        }
        let told = if fate == Fate::Lost { None } else { land(&asked, log, visible, durable) };
        let input = if fate == Fate::Answered { told } else { unknown(&asked) };
        if let Some(input) = input {
            self.give(now, input);
        }
    }
}

type Brought = (Vec<HeldBatch>, Vec<LogEvent>);

/// What runs first in, first out.
fn lane(asked: &Asked) -> Option<(u8, usize)> {
    match asked {
        Asked::Write(ToWorker::Write { part, .. }, _) => Some((0, table(&part.table))),
        Asked::Write(ToWorker::Abandon { .. }, _) => None,
        Asked::Command(Output::Commit { table: name, .. } | Output::Resolve { table: name, .. }) => Some((1, table(name))),
        Asked::Command(Output::ReleaseStaged { table: name, .. } | Output::DiscardOlder { table: name, .. }) => {
            Some((1, table(name)))
        }
        Asked::Command(Output::Acknowledge { .. }) => Some((2, 0)),
        Asked::Command(Output::ReadLog { .. }) => Some((3, 0)),
        Asked::Command(_) => None,
    }
}

/// The world does what was asked.
pub(crate) fn land(asked: &Asked, log: &Log, visible: usize, durable: &mut Durable) -> Option<Input> {
    let output = match asked {
        Asked::Write(ToWorker::Write { attempt, part, first_version, .. }, rows) => {
            durable.tables[table(&part.table)].write(*attempt, *first_version, rows);
            return Some(Input::Written { attempt: *attempt, outcome: WriteOutcome::Written });
        }
        Asked::Write(ToWorker::Abandon { .. }, _) => return None,
        Asked::Command(output) => output,
    };
    match output {
        Output::ReadPipelineState { id } => {
            let state = durable.record.clone().map(Box::new);
            Some(Input::PipelineStateRead { id: *id, state, token: durable.record_token() })
        }
        Output::StorePipelineState { id, expected, new } => {
            Some(Input::PipelineStateStored { id: *id, outcome: durable.store_record(log, expected, new) })
        }
        Output::RecoverTable { id, table: name } => {
            let target = &durable.tables[table(name)];
            let state = target.state().cloned().map(Box::new);
            Some(Input::TableRecovered { id: *id, table: name.clone(), state, token: target.token() })
        }
        Output::OpenLog { id } => {
            let (floor, end) = (durable.floor.clone(), log.end(visible).join(&durable.floor));
            Some(Input::LogOpened { id: *id, session: Session(id.number), identity: log.identity(), floor, end })
        }
        Output::Commit { id, table: name, token, state, staged, .. } => {
            let outcome = durable.tables[table(name)].commit(token, state, staged);
            durable.judge(log);
            Some(Input::Committed { id: *id, table: name.clone(), outcome })
        }
        Output::Resolve { id, table: name, commit, incarnation } => {
            let target = &durable.tables[table(name)];
            let (found, token) = (target.has(*commit, *incarnation), target.token());
            Some(Input::Resolved { id: *id, table: name.clone(), found, token })
        }
        Output::ReleaseStaged { table: name, attempt, delete: true } => {
            durable.tables[table(name)].delete(*attempt);
            None
        }
        Output::DiscardOlder { table: name, incarnation } => {
            durable.tables[table(name)].discard_older(*incarnation);
            None
        }
        Output::Acknowledge { upto, .. } => {
            durable.acknowledge(log, upto);
            None
        }
        // A reader that nobody waits for any more reads nothing.
        Output::ReadLog { .. } | Output::ReleaseStaged { delete: false, .. } => None,
        other => panic!("nobody carries this out: {other:?}"),
    }
}

/// The answer of silence, where there is one.
fn unknown(asked: &Asked) -> Option<Input> {
    let why = || "no answer".to_string();
    match asked {
        Asked::Write(ToWorker::Write { attempt, .. }, _) => {
            Some(Input::Written { attempt: *attempt, outcome: WriteOutcome::Transient { why: why() } })
        }
        Asked::Command(Output::Commit { id, table, .. }) => {
            Some(Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Unknown { why: why() } })
        }
        Asked::Command(Output::StorePipelineState { id, .. }) => {
            Some(Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Unknown { why: why() } })
        }
        Asked::Command(Output::ReadPipelineState { id } | Output::RecoverTable { id, .. } | Output::Resolve { id, .. }) => {
            Some(Input::Failed { id: *id, why: why() })
        }
        Asked::Command(Output::OpenLog { id }) => {
            let failure = LogFailure::SessionLost { why: why() };
            Some(Input::LogFailed { id: *id, failure })
        }
        Asked::Write(ToWorker::Abandon { .. }, _) | Asked::Command(_) => None,
    }
}
