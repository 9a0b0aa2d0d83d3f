//! Where a table stands when the log is opened again and is not what it was: read from another server, or shorter at its beginning.
//! Each was found by the fuzz target `machine`.

use std::collections::BTreeSet;

use kernel::config::{Config, Retry};
use kernel::coordinator::{Input, LogEvent, Operator, Output, Restart, StopReason, ToWorker, Visibility};
use kernel::id::{CommandId, Identity, Session, StreamName};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Phase, TableState};
use kernel::time::Duration;

use crate::desk::{Life, TABLE, config, identity, read_id, record, state};

fn restart(outputs: &[Output]) -> Option<&Restart> {
    outputs.iter().find_map(|o| if let Output::ReadLog { restart, .. } = o { restart.as_ref() } else { None })
}

fn of_server(name: &str) -> LogIdentity {
    LogIdentity { coordinates: Some(Identity::from(name)), ..identity() }
}

/// Meanwhile rows of its beginning may have been written behind those that the cut covers.
#[test]
fn a_transaction_that_was_begun_anew_is_not_gone_on_with_when_the_first_server_is_read_again() {
    let divided = Transaction { stream: StreamName::from(""), at: Offset(10) };
    let mut found = TableState { identity: of_server("first"), ..state() };
    found.cut.take(&divided, Coordinate { major: 15, minor: 0 }, Digest { count: 1, hash: 15 });
    // The life begins at the second server, and comes to the first one later.
    let (mut life, read) = Life::running(config(), found);
    let outputs = life.opens_again(read, of_server("first"), 0);
    let restart = restart(&outputs).expect("it begins anew");
    assert_eq!((restart.from.to_string(), restart.divided.as_slice()), ("10".to_owned(), [].as_slice()));
}

/// Where a table stands, and whether it is blocked, when the budget is full and the log was opened again with this beginning.
fn stands_with_a_full_budget(floor: u64) -> (String, bool) {
    let budget = Config { budget_bytes_max: 25, ..config() };
    let (mut life, read) = Life::running(budget, state());
    let outputs = life.row_that_closes(read, 20);
    let written = |o: &Output| matches!(o, Output::Send(ToWorker::Write { .. }));
    assert!(outputs.iter().any(written), "{outputs:?}");
    let outputs = life.row(read_id(&outputs).expect("it reads on"), 30);
    let outputs = life.opens_again(read_id(&outputs).expect("it reads on"), identity(), floor);
    life.row(read_id(&outputs).expect("it reads on"), 40);
    // The write has no answer for longer than anybody waits, and the budget is full.
    life.now += Duration::from_secs(60).0;
    life.give(Input::Timeout);
    let status = life.coordinator.status();
    let table = status.tables.get(&TABLE.into()).expect("the table");
    (table.taken.to_string(), table.blocked)
}

/// The source forgot, by itself, what a table has taken and not made durable.
#[test]
fn what_the_source_has_forgotten_is_not_given_back_for_the_budget() {
    assert_eq!(stands_with_a_full_budget(25), ("41".to_owned(), false));
    assert_eq!(stands_with_a_full_budget(0), ("21".to_owned(), true), "what it still has is read again");
}

/// A table that needs a snapshot, which somebody asked for: its generation is beginning. And the question that it waits for.
fn beginning() -> (Life, CommandId) {
    beginning_under(config())
}

fn beginning_under(config: Config) -> (Life, CommandId) {
    let mut needs = record();
    let entry = needs.tables.get_mut(&TABLE.into()).expect("the table");
    (entry.phase, entry.generation, entry.named) = (Phase::NeedsSnapshot, 1, None);
    let mut life = Life::of(Config { source_reads_chunks: true, ..config });
    let outputs = life.reads(needs);
    let outputs = life.takes(&outputs);
    let outputs = life.finds(&outputs, state());
    let [Output::OpenLog { id }] = outputs.as_slice() else { panic!("{outputs:?}") };
    let (session, floor, end) = (Session(1), Position::START, Position::scalar(100));
    life.give(Input::LogOpened { id: *id, session, identity: identity(), floor, end });
    let outputs = life.give(Input::Operator(Operator::Resnapshot(TABLE.into())));
    let asked = asks(&outputs).expect("it asks what is unfinished");
    (life, asked)
}

fn asks(outputs: &[Output]) -> Option<CommandId> {
    outputs.iter().find_map(|o| if let Output::ReadVisibility { id, .. } = o { Some(*id) } else { None })
}

fn halts(outputs: &[Output]) -> usize {
    outputs.iter().filter(|o| matches!(o, Output::HaltTable { .. })).count()
}

/// It would be refused again, at once and for ever.
#[test]
fn a_beginning_that_the_sink_refuses_is_not_begun_again_by_itself() {
    let (mut life, asked) = beginning();
    let visibility = Visibility { unfinished: Some(BTreeSet::new()), ..Visibility::default() };
    let outputs = life.give(Input::VisibilityRead { id: asked, visibility });
    let commit = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None });
    let outcome = CommitOutcome::Rejected { why: "there is no such database".into() };
    let mut outputs = life.give(Input::Committed { id: commit.expect("it begins"), table: TABLE.into(), outcome });
    life.now += Duration::from_secs(30).0;
    outputs.extend(life.give(Input::Timeout));
    assert_eq!((halts(&outputs), asks(&outputs)), (1, None), "{outputs:?}");
    let outputs = life.give(Input::Operator(Operator::Resnapshot(TABLE.into())));
    assert!(asks(&outputs).is_some(), "once it is mended somebody asks again: {outputs:?}");
}

/// It is begun anew whenever it has held the source for too long, and does not fail the less for that (rule R7).
#[test]
fn a_beginning_that_fails_for_ever_ends_the_run_however_short_it_may_hold_the_source() {
    let retry = Retry { first: Duration(5), most: Duration(5), give_up_after: Some(Duration(1_000)) };
    let (mut life, asked) = beginning_under(Config { hold: Some(Duration(80)), retry, ..config() });
    let (mut begun, mut halted, mut pending) = (0, 0, vec![]);
    let visibility = || Visibility { unfinished: Some(BTreeSet::new()), ..Visibility::default() };
    pending.extend(life.give(Input::VisibilityRead { id: asked, visibility: visibility() }));
    while life.now < 3_000 {
        let answers: Vec<Input> = pending
            .drain(..)
            .filter_map(|output| match output {
                Output::ReadVisibility { id, .. } => Some(Input::VisibilityRead { id, visibility: visibility() }),
                Output::Commit { id, table, .. } => {
                    begun += 1;
                    Some(Input::Committed { id, table, outcome: CommitOutcome::Transient { why: "nobody answers".into() } })
                }
                Output::StorePipelineState { id, .. } => {
                    let outcome = StoreOutcome::Stored { token: "r".into() };
                    Some(Input::PipelineStateStored { id, outcome })
                }
                Output::HaltTable { .. } => {
                    halted += 1;
                    None
                }
                Output::Stop { reason: StopReason::Unreachable { why } } => {
                    assert!(halted > 1 && begun > halted, "{halted} of {begun} beginnings were given up before");
                    assert_eq!(why, "table shop.orders: nobody answers");
                    assert!((1_000..1_300).contains(&life.now), "it was given up at {}", life.now);
                    None
                }
                _ => None,
            })
            .collect();
        if life.coordinator.is_stopped() {
            return;
        }
        for input in answers {
            pending.extend(life.give(input));
        }
        life.now += 4;
        pending.extend(life.give(Input::Timeout));
    }
    panic!("it goes on: {begun} beginnings, {halted} of them given up");
}

/// The record says that it needs a snapshot: it holds nothing. So what is paused is given up, and does not begin again by itself.
#[test]
fn a_beginning_that_somebody_pauses_is_given_up_until_somebody_asks_again() {
    let (mut life, _) = beginning();
    let mut outputs = life.give(Input::Operator(Operator::Pause(TABLE.into())));
    outputs.extend(life.give(Input::Operator(Operator::Resume(TABLE.into()))));
    assert_eq!(asks(&outputs), None, "{outputs:?}");
    let why = outputs.iter().find_map(|o| if let Output::HaltTable { why, .. } = o { Some(why) } else { None });
    assert!(why.is_some_and(|why| why.starts_with("it was stopped while its snapshot was beginning")), "{why:?}");
    assert_eq!(life.coordinator.status().tables[&TABLE.into()].phase, Phase::NeedsSnapshot);
    let outputs = life.give(Input::Operator(Operator::Resnapshot(TABLE.into())));
    assert!(asks(&outputs).is_some(), "{outputs:?}");
}

/// A pause that comes behind a skip and a resume is the last word.
#[test]
fn a_skip_that_is_recorded_late_ends_no_pause() {
    let (mut life, read) = Life::running(config(), state());
    let (transaction, coordinate) =
        (Transaction { stream: StreamName::from(""), at: Offset(20) }, Coordinate { major: 20, minor: 0 });
    let refused = LogEvent::Refused { table: TABLE.into(), transaction, coordinate, why: "a date".into() };
    let outputs = life.give(Input::LogRead { id: read, batches: vec![], events: vec![refused], finished: false });
    assert_eq!(halts(&outputs), 1, "{outputs:?}");
    life.stores(&outputs);
    let outputs = life.give(Input::Operator(Operator::Skip(TABLE.into())));
    life.give(Input::Operator(Operator::Resume(TABLE.into())));
    life.give(Input::Operator(Operator::Pause(TABLE.into())));
    life.stores(&outputs);
    assert_eq!(life.coordinator.status().tables[&TABLE.into()].phase, Phase::Paused);
}

/// Somebody resumes it before the record says that it may pass over the event: it comes there again, halts, and goes on all the same.
#[test]
fn a_table_that_is_resumed_before_its_skip_is_recorded_passes_over_the_event_once_it_is() {
    let (mut life, read) = Life::running(config(), state());
    let transaction = Transaction { stream: StreamName::from(""), at: Offset(20) };
    let refused = || LogEvent::Refused {
        table: TABLE.into(),
        transaction: transaction.clone(),
        coordinate: Coordinate { major: 20, minor: 0 },
        why: "a date".into(),
    };
    let outputs = life.give(Input::LogRead { id: read, batches: vec![], events: vec![refused()], finished: false });
    life.stores(&outputs);
    let skipped = life.give(Input::Operator(Operator::Skip(TABLE.into())));
    let outputs = life.give(Input::Operator(Operator::Resume(TABLE.into())));
    assert!(restart(&outputs).is_some(), "it is read again: {outputs:?}");
    let read = read_id(&outputs).expect("it reads");
    let outputs = life.give(Input::LogRead { id: read, batches: vec![], events: vec![refused()], finished: false });
    assert_eq!(halts(&outputs), 1, "the record does not say so yet: {outputs:?}");
    life.stores(&skipped);
    assert_eq!(life.coordinator.status().tables[&TABLE.into()].phase, Phase::Streaming);
}

#[test]
fn a_generation_that_would_begin_below_what_the_source_has_forgotten_begins_by_needing_a_snapshot() {
    let chunks = Config { source_reads_chunks: true, ..config() };
    let (mut life, read) = Life::running(chunks, state());
    let outputs = life.row(read, 20);
    let outputs = life.opens_again(read_id(&outputs).expect("it reads on"), identity(), 21);
    assert!(restart(&outputs).is_some(), "what it has taken is enough: {outputs:?}");
    let outputs = life.give(Input::Operator(Operator::Resnapshot(TABLE.into())));
    let stored = outputs.iter().find_map(|o| if let Output::StorePipelineState { new, .. } = o { Some(new) } else { None });
    let entry = stored.and_then(|record| record.tables.get(&TABLE.into())).expect("the record says so first");
    assert_eq!((entry.phase, entry.generation), (Phase::NeedsSnapshot, 1));
}
