//! Stored states: what is read is written as it was, and a life that begins from what somebody damaged or forged refuses it or goes
//! on; it does not fall over.

use kernel::config::{CheckpointLimits, Config, TableConfig};
use kernel::coordinator::{Coordinator, HeldBatch, Input, LogEvent, Output, RowRange, StopReason, ToWorker};
use kernel::id::{BatchId, CommitId, Identity, Incarnation, Session, StreamName, TableName};
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{FORMAT, NUMBER_MAX, Phase, PipelineState, TableRecord, TableState};
use kernel::time::{Duration, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Saw;

/// The table of a life that begins from what was read.
const TABLE: &str = "shop.orders";
/// Commands that it gives, answered one after the other.
const COMMANDS_MAX: usize = 40;

/// The first line is a table's state as a sink keeps it, or a pipeline's record; a second line may be the other one. Of what lacks a
/// usual one is taken.
pub fn state(bytes: &[u8]) -> Saw {
    let (mut table, mut record) = (None, None);
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        match read::<TableState>(line) {
            Some(state) => table = Some(state),
            None => record = read::<PipelineState>(line).or(record),
        }
    }
    let taken = table.is_some() || record.is_some();
    if let Some(state) = &table {
        ancestors(state);
    }
    if taken {
        begin(&table, &record);
    }
    Saw::taken_if(taken)
}

fn read<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(text: &[u8]) -> Option<T> {
    let state: T = serde_json::from_slice(text).ok()?;
    let written = serde_json::to_string(&state).expect("a state is JSON");
    assert_eq!(serde_json::from_str::<T>(&written).expect("it was written"), state);
    Some(state)
}

/// Adding to the list of ancestors claims the one that was added, and no other.
fn ancestors(state: &TableState) {
    let next = CommitId { number: state.commit.number.wrapping_add(1), ..state.commit };
    let before = |commit| listed(state, commit);
    let probes = [CommitId { number: 0, ..next }, CommitId { incarnation: Incarnation(0), number: 0 }, next];
    let mut then = state.ancestors.clone();
    then.push(state.commit);
    if state.impossible().is_some() {
        return;
    }
    assert!(then.contains(state.commit));
    for probe in probes.into_iter().filter(|probe| *probe != state.commit) {
        assert_eq!(then.contains(probe), before(probe), "{probe} after {}", state.commit);
    }
    for runs_max in 0..3 {
        assert!(then.clone().bounded(runs_max).runs() <= runs_max);
        let crowded = state.ancestors.crowds_out(state.commit, next, runs_max);
        assert!(!crowded || before(state.commit));
    }
}

/// Does the stored list name it? Read from the stored form, and not by the code that reads it.
fn listed(state: &TableState, commit: CommitId) -> bool {
    let runs = serde_json::to_value(&state.ancestors).expect("a list is JSON");
    let number = |run: &serde_json::Value, field: &str| run[field].as_u64().expect("a number");
    runs.as_array().expect("a list").iter().any(|run| {
        let (first, last) = (number(run, "first"), number(run, "last"));
        number(run, "incarnation") == u64::from(commit.incarnation.0) && first <= commit.number && commit.number <= last
    })
}

fn identity() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from(""), Identity::from("this"))].into(), coordinates: None, lineage: None }
}

fn usual_record(state: &TableState) -> PipelineState {
    let named = Some(state.commit).filter(|commit| commit.number <= NUMBER_MAX);
    let entry = TableRecord {
        phase: Phase::Streaming,
        generation: state.generation.min(NUMBER_MAX),
        named,
        skipped: Vec::new(),
        why: None,
    };
    PipelineState {
        format: FORMAT,
        incarnation: state.incarnation.max(state.commit.incarnation),
        identity: state.identity.clone(),
        quiet: state.cut.upto().clone(),
        tables: [(TableName::from(TABLE), entry)].into(),
    }
}

/// A life begins from what is stored, in a log of whose kind the state says it is of, reads one row and commits it.
fn begin(table: &Option<TableState>, record: &Option<PipelineState>) {
    let usual = table.as_ref().map(usual_record);
    let record = record.clone().or(usual);
    let known = record.iter().map(|r| &r.identity).chain(table.iter().map(|t| &t.identity));
    let mut log = identity();
    for of in known {
        if of.lineage.is_some() {
            log = of.clone();
            continue;
        }
        log.streams.extend(of.streams.clone());
        log.coordinates.clone_from(&of.coordinates);
    }
    let ends = record.iter().map(|r| &r.quiet).chain(table.iter().flat_map(|t| [t.cut.upto(), &t.base, &t.ahead]));
    let end = ends.fold(Position::scalar(100), |end, position| end.join(position));
    for (chunks, state_with_data) in [(false, true), (true, false), (true, true)] {
        let limits = CheckpointLimits { age: Duration(10), rows: 1, bytes: 1_000 };
        let of_table = TableConfig { state_with_data, ..TableConfig::new() };
        let tables = [(TableName::from(TABLE), of_table)].into();
        let config = Config { checkpoint: limits, source_reads_chunks: chunks, ..Config::new(tables) };
        Life { coordinator: Coordinator::new(Time(0), config), now: 0, read: false }.run(table, &record, &log, &end);
    }
}

struct Life {
    coordinator: Coordinator,
    now: u64,
    read: bool,
}

impl Life {
    fn run(&mut self, table: &Option<TableState>, record: &Option<PipelineState>, log: &LogIdentity, end: &Position) {
        let mut commands = self.outputs();
        for _ in 0..COMMANDS_MAX {
            self.now += 1;
            let input = match commands.is_empty() {
                true => Input::Timeout,
                false => match self.answer(commands.remove(0), table, record, log, end) {
                    Some(input) => input,
                    None => continue,
                },
            };
            if let Input::Timeout = input {
                self.now = self.coordinator.poll_timeout().map_or(self.now, |deadline| deadline.at.0.max(self.now));
            }
            self.coordinator.handle_input(Time(self.now), input);
            commands.extend(self.outputs());
            if self.coordinator.is_stopped() {
                return;
            }
        }
    }

    /// A forged state may contradict itself in more ways than a life looks for; that a check of its own then ends it is no fault.
    fn outputs(&mut self) -> Vec<Output> {
        let outputs: Vec<Output> = std::iter::from_fn(|| self.coordinator.poll_output()).collect();
        for output in &outputs {
            if let Output::Stop { reason: StopReason::Config { why } | StopReason::PositionLost { why } } = output {
                assert!(!why.is_empty());
            }
        }
        outputs
    }

    fn answer(
        &mut self,
        command: Output,
        table: &Option<TableState>,
        record: &Option<PipelineState>,
        log: &LogIdentity,
        end: &Position,
    ) -> Option<Input> {
        Some(match command {
            Output::ReadPipelineState { id } => {
                Input::PipelineStateRead { id, state: record.clone().map(Box::new), token: "r1".into() }
            }
            Output::StorePipelineState { id, .. } => {
                let token = format!("r{}", id.number).into();
                Input::PipelineStateStored { id, outcome: StoreOutcome::Stored { token } }
            }
            Output::RecoverTable { id, table: name } => {
                Input::TableRecovered { id, table: name, state: table.clone().map(Box::new), token: "t1".into() }
            }
            Output::OpenLog { id } => {
                let (session, floor, end) = (Session(id.number), Position::START, end.clone());
                Input::LogOpened { id, session, identity: log.clone(), floor, end }
            }
            Output::ReadLog { id, restart, .. } => {
                let from = restart.map_or_else(|| end.clone(), |restart| restart.from);
                let (batches, events) = if self.read { (vec![], vec![]) } else { one_row(&from) };
                self.read = true;
                Input::LogRead { id, batches, events, finished: false }
            }
            Output::Send(ToWorker::Write { attempt, .. }) => Input::Written { attempt, outcome: WriteOutcome::Written },
            // What is there is what was found at the beginning: the second time it is another's.
            Output::Commit { id, table: name, .. } => {
                let (found, token) = (table.clone().map(Box::new), "t2".into());
                let outcome = match id.number % 2 {
                    0 => CommitOutcome::Durable { token },
                    _ => CommitOutcome::Conflict { found, token },
                };
                Input::Committed { id, table: name, outcome }
            }
            Output::Resolve { id, table: name, .. } => Input::Resolved { id, table: name, found: false, token: "t3".into() },
            Output::PlanRanges { id, .. }
            | Output::ReadChunk { id, .. }
            | Output::ReadVisibility { id, .. }
            | Output::ReadRows { id, .. } => Input::Failed { id, why: "not now".into() },
            _ => return None,
        })
    }
}

/// A transaction of one row behind `from`.
fn one_row(from: &Position) -> (Vec<HeldBatch>, Vec<LogEvent>) {
    let stream = from.streams().next().map_or_else(|| StreamName::from(""), |(stream, _)| stream.clone());
    let at = from.offset(&stream);
    let upto = Position::of(stream.clone(), Offset(at.0.saturating_add(1)));
    let transaction = Transaction { stream, at };
    if !upto.contains_transaction(&transaction) {
        return (vec![], vec![]);
    }
    let (batch, coordinate) = (BatchId(1), Coordinate { major: at.0, minor: 0 });
    let row = LogEvent::Rows {
        table: TABLE.into(),
        transaction: transaction.clone(),
        rows: RowRange { batch, rows: 0..1 },
        bytes: 10,
        first: coordinate,
        last: coordinate,
        digest: Digest { count: 1, hash: 7 },
        touched: None,
    };
    (vec![HeldBatch { batch, rows: 1, bytes: 10 }], vec![row, LogEvent::Ended { transaction, upto }])
}
