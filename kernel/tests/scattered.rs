//! A log whose transactions come too far out of the order of their numbers: sets are bounded, and the bound is a decision.

use kernel::config::{Config, TableConfig};
use kernel::coordinator::{Coordinator, Input, LogEvent, Output, StopReason};
use kernel::id::{CommandId, Identity, Session, StreamName, TableName, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{LogIdentity, Offset, Position, Transaction};
use kernel::time::Time;

/// What is usual.
const MOST: u64 = 1_024;

/// A life that asks to open its log.
fn opening() -> (Coordinator, CommandId) {
    let mut life = Coordinator::new(Time(0), Config::new([(TableName::from("orders"), TableConfig::new())].into()));
    let Some(Output::ReadPipelineState { id }) = life.poll_output() else { panic!("it reads the record") };
    life.handle_input(Time(1), Input::PipelineStateRead { id, state: None, token: Token::from("r0") });
    let Some(Output::StorePipelineState { id, .. }) = life.poll_output() else { panic!("it takes its incarnation") };
    life.handle_input(Time(1), Input::PipelineStateStored { id, outcome: StoreOutcome::Stored { token: Token::from("r1") } });
    let Some(Output::RecoverTable { id, table }) = life.poll_output() else { panic!("it reads the table's state") };
    life.handle_input(Time(1), Input::TableRecovered { id, table, state: None, token: Token::from("t0") });
    let Some(Output::OpenLog { id }) = life.poll_output() else { panic!("it opens the log") };
    (life, id)
}

fn open(life: &mut Coordinator, id: CommandId, floor: Position, end: Position) {
    let identity = LogIdentity { lineage: Some(Identity::from("g1")), ..LogIdentity::default() };
    life.handle_input(Time(2), Input::LogOpened { id, session: Session(1), identity, floor, end });
}

/// Every second transaction of an origin.
fn scattered(count: u64) -> Vec<LogEvent> {
    let end = |n: u64| {
        let (stream, at) = (StreamName::from("a"), Offset(2 * n + 1));
        let upto = Position::between(stream.clone(), at, Offset(at.0 + 1));
        LogEvent::Ended { transaction: Transaction { stream, at }, upto }
    };
    (0..count).map(end).collect()
}

/// All that the life says, while all that it writes succeeds.
fn outputs(life: &mut Coordinator) -> Vec<Output> {
    let mut said: Vec<Output> = core::iter::from_fn(|| life.poll_output()).collect();
    let mut answered = 0;
    while let Some(output) = said.get(answered) {
        answered += 1;
        if let Some(answer) = succeeds(output, &Token::from(format!("t{answered}"))) {
            life.handle_input(Time(3), answer);
            said.extend(core::iter::from_fn(|| life.poll_output()));
        }
        assert_eq!(life.check(), Ok(()));
    }
    said
}

fn succeeds(output: &Output, token: &Token) -> Option<Input> {
    let token = token.clone();
    match output {
        Output::StorePipelineState { id, .. } => {
            Some(Input::PipelineStateStored { id: *id, outcome: StoreOutcome::Stored { token } })
        }
        Output::Commit { id, table, .. } => {
            Some(Input::Committed { id: *id, table: table.clone(), outcome: CommitOutcome::Durable { token } })
        }
        _ => None,
    }
}

fn upto(event: LogEvent) -> Option<Position> {
    if let LogEvent::Ended { upto, .. } = event { Some(upto) } else { None }
}

fn reads(output: &Output) -> Option<CommandId> {
    if let Output::ReadLog { id, .. } = output { Some(*id) } else { None }
}

fn read(count: u64) -> Vec<Output> {
    let (mut life, id) = opening();
    open(&mut life, id, Position::START, Position::of(StreamName::from("a"), Offset(3 * MOST)));
    let said = outputs(&mut life);
    let id = said.iter().find_map(reads).expect("it reads the log");
    life.handle_input(Time(4), Input::LogRead { id, batches: vec![], events: scattered(count), finished: false });
    outputs(&mut life)
}

fn stops(said: &[Output]) -> Option<&str> {
    said.iter().find_map(|output| match output {
        Output::Stop { reason: StopReason::Poison { why } } => Some(why.as_str()),
        _ => None,
    })
}

#[test]
fn a_log_with_as_many_holes_as_there_may_be_is_read_on() {
    let said = read(MOST);
    assert!(matches!(said.last(), Some(Output::ReadLog { .. })) && stops(&said).is_none());
}

#[test]
fn at_one_more_what_was_read_is_stored_and_the_run_ends_and_says_of_which_stream() {
    let said = read(MOST + 1);
    assert!(stops(&said).is_some_and(|why| why.contains("stream 'a'") && why.contains("1024 pieces")));
    let stored = said.iter().rev().find_map(|output| match output {
        Output::StorePipelineState { new, .. } => Some(new.quiet.beyond(&Position::START)),
        _ => None,
    });
    assert_eq!(stored, Some(MOST + 1), "nothing that was read is given up, and nothing else is claimed");
}

#[test]
fn what_fills_a_hole_is_read_on_however_many_there_are() {
    let (mut life, id) = opening();
    // What was acknowledged in more pieces than there may be, by a run that ended for it, and is gone.
    let floor = scattered(MOST + 9).into_iter().filter_map(upto).fold(Position::START, |all, upto| all.join(&upto));
    open(&mut life, id, floor, Position::of(StreamName::from("a"), Offset(3 * MOST)));
    let said = outputs(&mut life);
    let id = said.iter().find_map(reads).expect("it reads the log");
    let (stream, at) = (StreamName::from("a"), Offset(2));
    let upto = Position::between(stream.clone(), at, Offset(3));
    let fills = LogEvent::Ended { transaction: Transaction { stream, at }, upto };
    life.handle_input(Time(4), Input::LogRead { id, batches: vec![], events: vec![fills], finished: false });
    assert_eq!(stops(&outputs(&mut life)), None);
}

#[test]
fn a_log_that_ends_in_too_many_pieces_is_not_read() {
    let end = scattered(MOST + 1).into_iter().filter_map(upto).fold(Position::START, |all, upto| all.join(&upto));
    let (mut life, id) = opening();
    open(&mut life, id, Position::START, end);
    let said = outputs(&mut life);
    assert!(matches!(said.as_slice(), [Output::Stop { .. }]) && stops(&said).is_some());
}
