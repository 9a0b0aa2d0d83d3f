//! A life whose commands a test answers one by one: a table with a state of an older life, in a log of one stream.

use kernel::config::{Config, TableConfig};
use kernel::coordinator::{Coordinator, HeldBatch, Input, LogEvent, Output, RowRange, StopReason, ToWorker};
use kernel::id::{BatchId, CommandId, CommitId, Identity, Incarnation, Session, StreamName, TableName, Version};
use kernel::outcome::{LogFailure, StoreOutcome};
use kernel::position::{Coordinate, Cut, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Phase, PipelineState, TableRecord, TableState};
use kernel::time::{Duration, Time};

pub(crate) const TABLE: &str = "shop.orders";

pub(crate) fn commit(incarnation: u32, number: u64) -> CommitId {
    CommitId { incarnation: Incarnation(incarnation), number }
}

/// A table as life 1 left it.
pub(crate) fn state() -> TableState {
    TableState {
        format: FORMAT,
        cut: Cut::at(Position::scalar(10)),
        identity: identity(),
        incarnation: Incarnation(1),
        commit: commit(1, 3),
        ancestors: ancestors(r#"[{"incarnation":1,"first":1,"last":2}]"#),
        sequence: 7,
        generation: 0,
        base: Position::START,
        begun: Version::new(Incarnation(1), 0),
        tiling: Vec::new(),
        in_doubt: Vec::new(),
        ahead: Position::START,
        schema: None,
    }
}

pub(crate) fn record() -> PipelineState {
    let entry = TableRecord { phase: Phase::Streaming, generation: 0, named: Some(commit(1, 3)), skipped: Vec::new(), why: None };
    PipelineState {
        format: FORMAT,
        incarnation: Incarnation(1),
        identity: identity(),
        quiet: Position::scalar(10),
        tables: [(TableName::from(TABLE), entry)].into(),
    }
}

pub(crate) fn identity() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from(""), Identity::from("this"))].into(), coordinates: None, lineage: None }
}

pub(crate) fn ancestors(json: &str) -> Ancestors {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn config() -> Config {
    Config { record_interval: Duration(1_000), ..Config::new([(TABLE.into(), TableConfig::new())].into()) }
}

/// A life of which each command is answered by the test.
pub(crate) struct Life {
    pub(crate) coordinator: Coordinator,
    pub(crate) now: u64,
}

impl Life {
    pub(crate) fn begin() -> Self {
        Self::of(config())
    }

    pub(crate) fn of(config: Config) -> Self {
        Self { coordinator: Coordinator::new(Time(0), config), now: 0 }
    }

    pub(crate) fn outputs(&mut self) -> Vec<Output> {
        let outputs: Vec<_> = std::iter::from_fn(|| self.coordinator.poll_output()).take(1_000).collect();
        assert!(outputs.len() < 1_000, "it never rests: {:?}", &outputs[..4]);
        outputs
    }

    pub(crate) fn give(&mut self, input: Input) -> Vec<Output> {
        self.now += 1;
        self.coordinator.handle_input(Time(self.now), input);
        let outputs = self.outputs();
        self.coordinator.check().unwrap();
        outputs
    }

    pub(crate) fn reads(&mut self, record: PipelineState) -> Vec<Output> {
        let asked = self.outputs();
        let [Output::ReadPipelineState { id }] = asked.as_slice() else { panic!("{asked:?}") };
        self.give(Input::PipelineStateRead { id: *id, state: Some(Box::new(record)), token: "r1".into() })
    }

    pub(crate) fn takes(&mut self, outputs: &[Output]) -> Vec<Output> {
        let [Output::StorePipelineState { id, .. }] = outputs else { panic!("{outputs:?}") };
        self.give(Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Stored { token: "r2".into() } })
    }

    /// The record that it wants to store is stored.
    pub(crate) fn stores(&mut self, outputs: &[Output]) -> Vec<Output> {
        let stores = outputs.iter().find_map(|o| if let Output::StorePipelineState { id, .. } = o { Some(*id) } else { None });
        let outcome = StoreOutcome::Stored { token: "r3".into() };
        self.give(Input::PipelineStateStored { id: stores.expect("it stores the record"), outcome })
    }

    pub(crate) fn finds(&mut self, outputs: &[Output], state: TableState) -> Vec<Output> {
        let [Output::RecoverTable { id, table }] = outputs else { panic!("{outputs:?}") };
        let state = Some(Box::new(state));
        self.give(Input::TableRecovered { id: *id, table: table.clone(), state, token: "t1".into() })
    }

    /// Up to where the log is read.
    pub(crate) fn running(config: Config, state: TableState) -> (Self, CommandId) {
        let mut life = Self::of(config);
        let outputs = life.reads(record());
        let outputs = life.takes(&outputs);
        let outputs = life.finds(&outputs, state);
        let [Output::OpenLog { id }] = outputs.as_slice() else { panic!("{outputs:?}") };
        let (session, floor, end) = (Session(1), Position::START, Position::scalar(100));
        let outputs = life.give(Input::LogOpened { id: *id, session, identity: identity(), floor, end });
        let reads = outputs.iter().find_map(|o| if let Output::ReadLog { id, .. } = o { Some(*id) } else { None });
        (life, reads.expect("it reads"))
    }

    /// A transaction of one row, and its end; then the checkpoint's time is over.
    pub(crate) fn row(&mut self, read: CommandId, at: u64) -> Vec<Output> {
        let transaction = Transaction { stream: StreamName::from(""), at: Offset(at) };
        let (batch, coordinate) = (BatchId(at), Coordinate { major: at, minor: 0 });
        let row = LogEvent::Rows {
            table: TABLE.into(),
            transaction: transaction.clone(),
            rows: RowRange { batch, rows: 0..1 },
            bytes: 10,
            first: coordinate,
            last: coordinate,
            digest: Digest { count: 1, hash: at },
            touched: None,
        };
        let events = vec![row, LogEvent::Ended { transaction, upto: Position::scalar(at + 1) }];
        let batches = vec![HeldBatch { batch, rows: 1, bytes: 10 }];
        self.give(Input::LogRead { id: read, batches, events, finished: false })
    }

    /// As `row`, and the checkpoint's age is over.
    pub(crate) fn row_that_closes(&mut self, read: CommandId, at: u64) -> Vec<Output> {
        let mut outputs = self.row(read, at);
        self.now += Duration::from_secs(10).0;
        outputs.extend(self.give(Input::Timeout));
        outputs
    }

    /// The log's session is lost, and opened again where it is as this says.
    pub(crate) fn opens_again(&mut self, read: CommandId, identity: LogIdentity, floor: u64) -> Vec<Output> {
        let failure = LogFailure::SessionLost { why: "the connection broke".into() };
        self.give(Input::LogFailed { id: read, failure });
        self.now += Duration::from_secs(1).0;
        let outputs = self.give(Input::Timeout);
        let id = outputs.iter().find_map(|o| if let Output::ReadPipelineState { id } = o { Some(*id) } else { None });
        let state = Some(Box::new(PipelineState { incarnation: Incarnation(2), ..record() }));
        let read = Input::PipelineStateRead { id: id.expect("it validates"), state, token: "r2".into() };
        let outputs = self.give(read);
        let id = outputs.iter().find_map(|o| if let Output::OpenLog { id } = o { Some(*id) } else { None });
        let (session, floor, end) = (Session(2), Position::scalar(floor), Position::scalar(100));
        self.give(Input::LogOpened { id: id.expect("it opens the log"), session, identity, floor, end })
    }
}

pub(crate) fn stops_for(outputs: &[Output]) -> &StopReason {
    match outputs {
        [Output::Stop { reason }] => reason,
        others => panic!("it goes on: {others:?}"),
    }
}

pub(crate) fn first_version(outputs: &[Output]) -> Option<Version> {
    outputs.iter().find_map(|output| match output {
        Output::Send(ToWorker::Write { first_version, .. }) => Some(*first_version),
        _ => None,
    })
}

pub(crate) fn read_id(outputs: &[Output]) -> Option<CommandId> {
    outputs.iter().find_map(|o| if let Output::ReadLog { id, .. } = o { Some(*id) } else { None })
}
