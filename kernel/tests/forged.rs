//! Stored numbers that no life has written: damaged, or somebody's mischief. Whatever counts on from them must not overflow, and
//! must not come to a version, a commit or a life that another one has. So they are refused where they come in.

use std::collections::BTreeMap;

use kernel::config::{Config, TableConfig};
use kernel::coordinator::{Coordinator, HeldBatch, Input, LogEvent, Output, RowRange, StopReason, ToWorker};
use kernel::id::{BatchId, CommandId, CommitId, Identity, Incarnation, Session, StreamName, TableName, Token, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::position::{Coordinate, Cut, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Phase, PipelineState, TableRecord, TableState};
use kernel::time::{Duration, Time};

const TABLE: &str = "shop.orders";

fn commit(incarnation: u32, number: u64) -> CommitId {
    CommitId { incarnation: Incarnation(incarnation), number }
}

/// A table as life 1 left it.
fn state() -> TableState {
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

fn record() -> PipelineState {
    let entry = TableRecord { phase: Phase::Streaming, generation: 0, named: Some(commit(1, 3)) };
    PipelineState {
        format: FORMAT,
        incarnation: Incarnation(1),
        identity: identity(),
        quiet: Position::scalar(10),
        tables: [(TableName::from(TABLE), entry)].into(),
    }
}

fn identity() -> LogIdentity {
    LogIdentity { streams: [(StreamName::from(""), Identity::from("this"))].into(), coordinates: None }
}

fn ancestors(json: &str) -> Ancestors {
    serde_json::from_str(json).unwrap()
}

/// A life of which each command is answered by the test.
struct Life {
    coordinator: Coordinator,
    now: u64,
}

impl Life {
    fn begin() -> Self {
        let config = Config { record_interval: Duration(1_000), ..Config::new([(TABLE.into(), TableConfig::new())].into()) };
        Self { coordinator: Coordinator::new(Time(0), config), now: 0 }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.coordinator.poll_output()).collect()
    }

    fn give(&mut self, input: Input) -> Vec<Output> {
        self.now += 1;
        self.coordinator.handle_input(Time(self.now), input);
        let outputs = self.outputs();
        self.coordinator.check().unwrap();
        outputs
    }

    fn reads(&mut self, record: PipelineState) -> Vec<Output> {
        let asked = self.outputs();
        let [Output::ReadPipelineState { id }] = asked.as_slice() else { panic!("{asked:?}") };
        self.give(Input::PipelineStateRead { id: *id, state: Some(Box::new(record)), token: "r1".into() })
    }

    fn takes(&mut self, outputs: &[Output]) -> Vec<Output> {
        let [Output::StorePipelineState { id, .. }] = outputs else { panic!("{outputs:?}") };
        self.give(Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Stored { token: "r2".into() } })
    }

    fn finds(&mut self, outputs: &[Output], state: TableState) -> Vec<Output> {
        let [Output::RecoverTable { id, table }] = outputs else { panic!("{outputs:?}") };
        let state = Some(Box::new(state));
        self.give(Input::TableRecovered { id: *id, table: table.clone(), state, token: "t1".into() })
    }

    /// Up to where the log is read.
    fn running(state: TableState) -> (Self, CommandId) {
        let mut life = Self::begin();
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
    fn row(&mut self, read: CommandId, at: u64) -> Vec<Output> {
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
        let mut outputs = self.give(Input::LogRead { id: read, batches, events, finished: false });
        self.now += Duration::from_secs(10).0;
        outputs.extend(self.give(Input::Timeout));
        outputs
    }
}

fn stops_for(outputs: &[Output]) -> &StopReason {
    match outputs {
        [Output::Stop { reason }] => reason,
        others => panic!("it goes on: {others:?}"),
    }
}

fn first_version(outputs: &[Output]) -> Option<Version> {
    outputs.iter().find_map(|output| match output {
        Output::Send(ToWorker::Write { first_version, .. }) => Some(*first_version),
        _ => None,
    })
}

fn read_id(outputs: &[Output]) -> Option<CommandId> {
    outputs.iter().find_map(|o| if let Output::ReadLog { id, .. } = o { Some(*id) } else { None })
}

#[test]
fn behind_the_last_number_a_list_of_ancestors_goes_on_with_a_run_of_its_own() {
    let mut list = ancestors(r#"[{"incarnation":1,"first":18446744073709551610,"last":18446744073709551615}]"#);
    list.push(commit(1, 0));
    assert_eq!(list.runs(), 2);
    assert!(list.contains(commit(1, u64::MAX)) && list.contains(commit(1, 0)) && !list.contains(commit(1, 1)));
}

#[test]
fn a_state_with_a_number_that_no_life_can_have_given_is_refused_by_name() {
    let forged: BTreeMap<&str, TableState> = [
        ("its commit's number is 18446744073709551615", TableState { commit: commit(1, u64::MAX), ..state() }),
        ("its generation is 18446744073709551615", TableState { generation: u64::MAX, ..state() }),
        ("its row sequence is 17592186044416", TableState { sequence: 1 << Version::SEQUENCE_BITS, ..state() }),
        ("its commit is of life 2, and it is of life 1", TableState { commit: commit(2, 1), ..state() }),
        ("its copy began in life 2, and it is of life 1", TableState { begun: Version::new(Incarnation(2), 0), ..state() }),
        (
            "its ancestors hold the commits 1 to 18446744073709551615 of life 1",
            TableState { ancestors: ancestors(r#"[{"incarnation":1,"first":1,"last":18446744073709551615}]"#), ..state() },
        ),
        (
            "its ancestors hold the commits 5 to 4 of life 1",
            TableState { ancestors: ancestors(r#"[{"incarnation":1,"first":5,"last":4}]"#), ..state() },
        ),
        (
            "its ancestors hold the commits 1 to 2 of life 9, and it is of life 1",
            TableState { ancestors: ancestors(r#"[{"incarnation":9,"first":1,"last":2}]"#), ..state() },
        ),
    ]
    .into();
    for (what, state) in forged {
        let mut life = Life::begin();
        let outputs = life.reads(record());
        let outputs = life.takes(&outputs);
        let outputs = life.finds(&outputs, state);
        let why = format!(
            "table shop.orders: its state in the sink is not what urutau wrote: {what}. Restore it, or drop the table and let it be \
             copied anew"
        );
        assert_eq!(stops_for(&outputs), &StopReason::Config { why });
    }
}

#[test]
fn a_record_with_a_number_that_no_life_can_have_given_is_refused_by_name() {
    let with = |entry: TableRecord| PipelineState { tables: [(TableName::from(TABLE), entry)].into(), ..record() };
    let entry = || TableRecord { phase: Phase::Streaming, generation: 0, named: None };
    let forged = [
        ("its life is 4294967295", PipelineState { incarnation: Incarnation(u32::MAX), ..record() }),
        (
            "the generation of table shop.orders is 18446744073709551615",
            with(TableRecord { phase: Phase::NeedsSnapshot, generation: u64::MAX, named: None }),
        ),
        (
            "the commit of table shop.orders is number 18446744073709551615",
            with(TableRecord { named: Some(commit(1, u64::MAX)), ..entry() }),
        ),
        (
            "the commit of table shop.orders is of life 2, and the record of life 1",
            with(TableRecord { named: Some(commit(2, 1)), ..entry() }),
        ),
    ];
    for (what, record) in forged {
        let outputs = Life::begin().reads(record);
        let why = format!("the pipeline's record is not what urutau wrote: {what}. Restore it");
        assert_eq!(stops_for(&outputs), &StopReason::Config { why });
    }
}

/// Versions hold 20 bits of a life's number: a later one's rows would lose against every older one's.
#[test]
fn behind_the_last_life_there_is_none() {
    let outputs = Life::begin().reads(PipelineState { incarnation: Incarnation::MAX, ..record() });
    let why = "this pipeline has begun 1048575 times, and its rows' versions know no later life. Begin anew with another pipeline \
               name and another target";
    assert_eq!(stops_for(&outputs), &StopReason::Config { why: why.into() });
    assert_eq!(Incarnation(Incarnation::MAX.0 - 1).next(), Some(Incarnation::MAX));
    assert_eq!(Incarnation::MAX.next(), None);
    assert_eq!(Version::new(Incarnation::MAX, 5).incarnation(), Incarnation::MAX);
}

/// The record was restored, and is older than the states: nobody but this life may have the number that it takes.
#[test]
fn a_state_of_the_number_that_was_just_taken_is_another_life() {
    let mut life = Life::begin();
    let outputs = life.reads(record());
    let outputs = life.takes(&outputs);
    let outputs = life.finds(&outputs, TableState { incarnation: Incarnation(2), commit: commit(2, 9), ..state() });
    assert_eq!(stops_for(&outputs), &StopReason::Superseded { by: Incarnation(2) });
}

#[test]
fn a_forged_state_that_a_commit_conflicts_with_halts_the_table() {
    let (mut life, read) = Life::running(state());
    let outputs = life.row(read, 20);
    let attempt = outputs
        .iter()
        .find_map(|o| if let Output::Send(ToWorker::Write { attempt, .. }) = o { Some(*attempt) } else { None })
        .expect("it is written");
    let outputs = life.give(Input::Written { attempt, outcome: WriteOutcome::Written });
    let id = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None }).expect("it commits");
    let found = Some(Box::new(TableState { sequence: u64::MAX, ..state() }));
    let outcome = CommitOutcome::Conflict { found, token: Token::from("t9") };
    let outputs = life.give(Input::Committed { id, table: TABLE.into(), outcome });
    let why = "its state in the sink is not what urutau wrote: its row sequence is 18446744073709551615. Restore it, or drop the table \
               and let it be copied anew";
    let halted = Output::HaltTable { table: TABLE.into(), why: why.into(), at: None };
    assert!(outputs.contains(&halted), "{outputs:?}");
}

#[test]
fn a_forged_record_that_a_store_conflicts_with_ends_the_life() {
    let (mut life, read) = Life::running(state());
    life.row(read, 20);
    life.now += 1_000;
    let outputs = life.give(Input::Operator(kernel::coordinator::Operator::Pause(TABLE.into())));
    let id = outputs.iter().find_map(|o| if let Output::StorePipelineState { id, .. } = o { Some(*id) } else { None });
    let entry = TableRecord { phase: Phase::Streaming, generation: u64::MAX, named: None };
    let found = PipelineState { incarnation: Incarnation(2), tables: [(TableName::from(TABLE), entry)].into(), ..record() };
    let outcome = StoreOutcome::Conflict { found: Some(Box::new(found)), token: "r9".into() };
    let outputs = life.give(Input::PipelineStateStored { id: id.expect("it is stored"), outcome });
    let why =
        "the pipeline's record is not what urutau wrote: the generation of table shop.orders is 18446744073709551615. Restore it";
    assert_eq!(stops_for(&outputs), &StopReason::Config { why: why.into() });
}

/// What an older life has used up is of no concern: a later life's versions are above them all.
#[test]
fn a_life_numbers_its_rows_from_the_beginning() {
    let (mut life, read) = Life::running(TableState { sequence: Version::SEQUENCE_MAX, ..state() });
    let outputs = life.row(read, 20);
    assert_eq!(first_version(&outputs), Some(Version::new(Incarnation(2), 1)));
}

/// A version that began at zero again would lose against the same life's older ones.
#[test]
fn a_life_that_has_used_up_its_versions_halts_the_table() {
    let (mut life, read) = Life::running(state());
    let outputs = life.row(read, 20);
    let next = read_id(&outputs).expect("it reads on");
    let attempt = outputs
        .iter()
        .find_map(|o| if let Output::Send(ToWorker::Write { attempt, .. }) = o { Some(*attempt) } else { None })
        .expect("it is written");
    let outputs = life.give(Input::Written { attempt, outcome: WriteOutcome::Written });
    let id = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None }).expect("it commits");
    // Somebody has restored a state that this life wrote once.
    let ours = TableState { incarnation: Incarnation(2), commit: commit(2, 40), sequence: Version::SEQUENCE_MAX, ..state() };
    let outcome = CommitOutcome::Conflict { found: Some(Box::new(ours)), token: Token::from("t9") };
    let outputs = life.give(Input::Committed { id, table: TABLE.into(), outcome });
    let next = read_id(&outputs).unwrap_or(next);
    let outputs = life.row(next, 20);
    assert_eq!(first_version(&outputs), None);
    let why = "this life has numbered 17592186044415 rows of the table, and versions go no further: start the pipeline again, then resume \
               the table";
    let halted = Output::HaltTable { table: TABLE.into(), why: why.into(), at: None };
    assert!(outputs.contains(&halted), "{outputs:?}");
}
