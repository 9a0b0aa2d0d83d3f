//! Where a table stands when the log is opened again and is not what it was: read from another server, or shorter at its beginning.
//! Each was found by the fuzz target `machine`.

use kernel::config::Config;
use kernel::coordinator::{Input, Operator, Output, Restart, ToWorker};
use kernel::id::{Identity, StreamName};
use kernel::position::{Coordinate, Digest, LogIdentity, Offset, Transaction};
use kernel::state::{Phase, TableState};
use kernel::time::Duration;

use crate::desk::{Life, TABLE, config, identity, read_id, state};

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

/// The source forgot, by itself, what a table has taken and not made durable.
#[test]
fn what_the_source_has_forgotten_is_not_given_back_for_the_budget() {
    let budget = Config { budget_bytes_max: 25, ..config() };
    let (mut life, read) = Life::running(budget, state());
    let outputs = life.row_that_closes(read, 20);
    let written = |o: &Output| matches!(o, Output::Send(ToWorker::Write { .. }));
    assert!(outputs.iter().any(written), "{outputs:?}");
    let outputs = life.row(read_id(&outputs).expect("it reads on"), 30);
    let outputs = life.opens_again(read_id(&outputs).expect("it reads on"), identity(), 25);
    life.row(read_id(&outputs).expect("it reads on"), 40);
    // The write has no answer for longer than anybody waits, and the budget is full.
    life.now += Duration::from_secs(60).0;
    life.give(Input::Timeout);
    let status = life.coordinator.status();
    let table = status.tables.get(&TABLE.into()).expect("the table");
    assert_eq!((table.taken.to_string(), table.blocked), ("41".to_owned(), false));
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
