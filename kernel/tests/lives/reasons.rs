//! Why a table stands still: what the record keeps of it for later lives, and what takes it back.

use std::collections::BTreeSet;

use kernel::config::Config;
use kernel::coordinator::{Input, LogEvent, Operator, Output, ToWorker, Visibility};
use kernel::id::{CommandId, Incarnation, Session, StreamName, TableName};
use kernel::outcome::{CommitOutcome, WriteOutcome};
use kernel::position::{Coordinate, Offset, Position, Transaction};
use kernel::state::{Phase, PipelineState, REASON_CHARS_MAX, TableRecord, TableState};
use kernel::time::Duration;

use crate::desk::{Life, TABLE, commit, config, identity, read_id, record, state};

/// The record of an older life that left the table like this.
fn left(phase: Phase, why: Option<&str>) -> PipelineState {
    let mut record = record();
    let entry = record.tables.get_mut(&TABLE.into()).expect("the table");
    entry.phase = phase;
    entry.why = why.map(str::to_owned);
    if phase == Phase::NeedsSnapshot {
        (entry.generation, entry.named) = (1, None);
    }
    record
}

/// A life that finds such a record, and what it says once the log is open.
fn finds(record: PipelineState) -> (Life, Vec<Output>) {
    finds_under(config(), record)
}

fn finds_under(config: Config, record: PipelineState) -> (Life, Vec<Output>) {
    let mut life = Life::of(config);
    let outputs = life.reads(record);
    let outputs = life.takes(&outputs);
    let outputs = life.finds(&outputs, state());
    let [Output::OpenLog { id }] = outputs.as_slice() else { panic!("{outputs:?}") };
    let (session, floor, end) = (Session(1), Position::START, Position::scalar(100));
    let outputs = life.give(Input::LogOpened { id: *id, session, identity: identity(), floor, end });
    (life, outputs)
}

/// The log comes to an event that the table does not let through.
fn refuses(life: &mut Life, read: CommandId, why: &str) -> Vec<Output> {
    let transaction = Transaction { stream: StreamName::from(""), at: Offset(20) };
    let coordinate = Coordinate { major: 20, minor: 0 };
    let refused = LogEvent::Refused { table: TABLE.into(), transaction, coordinate, why: why.into() };
    life.give(Input::LogRead { id: read, batches: vec![], events: vec![refused], finished: false })
}

/// What the newest of these records says of the table.
fn stored(outputs: &[Output]) -> Option<&TableRecord> {
    outputs.iter().rev().find_map(|o| match o {
        Output::StorePipelineState { new, .. } => new.tables.get(&TABLE.into()),
        _ => None,
    })
}

fn phase_and_why(life: &Life) -> (Phase, Option<String>) {
    let status = life.coordinator.status();
    let table = &status.tables[&TABLE.into()];
    (table.phase, table.why.clone())
}

#[test]
fn a_life_says_from_its_first_moment_why_an_older_one_left_a_table_standing() {
    for (phase, why) in [(Phase::Halted, "a date"), (Phase::NeedsSnapshot, "the log was cut")] {
        let (mut life, outputs) = finds(left(phase, Some(why)));
        assert_eq!(phase_and_why(&life), (phase, Some(why.to_owned())));
        assert_eq!(stored(&outputs), None, "nothing differs from what is stored: {outputs:?}");
        life.now += Duration::from_secs(10).0;
        let outputs = life.give(Input::Timeout);
        assert_eq!(stored(&outputs), None, "nor later: {outputs:?}");
        let waits = life.coordinator.status().waiting;
        assert!(waits.iter().any(|wait| wait.why.as_deref() == Some(why)), "{waits:?}");
    }
}

/// A record of a release that stored no reasons.
#[test]
fn a_halted_table_without_a_reason_stays_halted_and_nothing_is_written_for_it() {
    let (life, outputs) = finds(left(Phase::Halted, None));
    assert_eq!((phase_and_why(&life), stored(&outputs)), ((Phase::Halted, None), None));
}

#[test]
fn a_table_that_goes_on_has_no_reason_any_more() {
    let (mut life, _) = finds(left(Phase::Halted, Some("a date")));
    let outputs = life.give(Input::Operator(Operator::Resume(TABLE.into())));
    assert_eq!(phase_and_why(&life), (Phase::Streaming, None));
    let entry = stored(&outputs).expect("the record says so");
    assert_eq!((entry.phase, &entry.why), (Phase::Streaming, &None));
}

#[test]
fn a_long_reason_is_stored_up_to_its_bound_and_told_whole_while_the_life_lasts() {
    let (mut life, read) = Life::running(config(), state());
    let why = "ä".repeat(REASON_CHARS_MAX + 1);
    let outputs = refuses(&mut life, read, &why);
    let kept = stored(&outputs).and_then(|entry| entry.why.clone()).expect("a reason");
    assert_eq!(kept, "ä".repeat(REASON_CHARS_MAX - 1) + "…");
    assert_eq!(phase_and_why(&life), (Phase::Halted, Some(why)));

    let (mut life, read) = Life::running(config(), state());
    let why = "ä".repeat(REASON_CHARS_MAX);
    let outputs = refuses(&mut life, read, &why);
    assert_eq!(stored(&outputs).and_then(|entry| entry.why.clone()), Some(why));
}

/// It was resumed, and halted again, before a record that says so could be stored: the stored one called it halted all the time.
#[test]
fn a_table_that_halts_for_another_reason_has_that_one_stored_once() {
    let (mut life, read) = Life::running(config(), state());
    let first = refuses(&mut life, read, "a date");
    let outputs = life.give(Input::Operator(Operator::Resume(TABLE.into())));
    let read = read_id(&outputs).expect("it reads again");
    let outputs = refuses(&mut life, read, "a number");
    assert_eq!(stored(&outputs), None, "the first record is under way: {outputs:?}");
    let mut outputs = life.stores(&first);
    life.now += Duration::from_secs(1).0;
    outputs.extend(life.give(Input::Timeout));
    let entry = stored(&outputs).expect("the reason is stored");
    assert_eq!((entry.phase, entry.why.as_deref()), (Phase::Halted, Some("a number")));
    let mut outputs = life.stores(&outputs);
    life.now += Duration::from_secs(10).0;
    outputs.extend(life.give(Input::Timeout));
    assert_eq!(stored(&outputs), None, "{outputs:?}");
}

/// What was taken before the event is still on its way, and its sink fails: that passes, and what halted the table does not.
#[test]
fn a_commit_that_fails_hides_no_reason() {
    let (mut life, read) = Life::running(config(), state());
    let mut outputs = life.row(read, 15);
    let read = read_id(&outputs).expect("it reads on");
    outputs.extend(refuses(&mut life, read, "a date"));
    let halted = || (Phase::Halted, Some("a date".to_owned()));
    let written = |o: &Output| if let Output::Send(ToWorker::Write { attempt, .. }) = o { Some(*attempt) } else { None };
    let attempt = outputs.iter().find_map(written).expect("the row is written");
    let outputs = life.give(Input::Written { attempt, outcome: WriteOutcome::Written });
    let id = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None });
    let outcome = CommitOutcome::Transient { why: "the disk is full".into() };
    life.give(Input::Committed { id: id.expect("it commits"), table: TABLE.into(), outcome });
    assert_eq!(phase_and_why(&life), halted());
    let waits = life.coordinator.status().waiting;
    let waits = |what: &str| waits.iter().find(|wait| wait.what == what).and_then(|wait| wait.why.as_deref());
    assert_eq!((waits("a commit"), waits("halted")), (Some("the disk is full"), Some("a date")));
    life.now += Duration::from_secs(60).0;
    let outputs = life.give(Input::Timeout);
    let id = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None });
    let outcome = CommitOutcome::Durable { token: "t2".into() };
    life.give(Input::Committed { id: id.expect("it commits again"), table: TABLE.into(), outcome });
    assert_eq!(phase_and_why(&life), halted());
}

#[test]
fn a_release_keeps_the_first_reason_beside_its_own() {
    let (mut life, _) = finds(left(Phase::Halted, Some("a date")));
    let outputs = life.give(Input::Operator(Operator::Release(TABLE.into())));
    let why = "somebody released it (first: a date)".to_owned();
    assert_eq!(stored(&outputs).and_then(|entry| entry.why.clone()), Some(why.clone()));
    life.stores(&outputs);
    assert_eq!(phase_and_why(&life), (Phase::NeedsSnapshot, Some(why)));
}

/// Its own life may end before the snapshot that was asked for has begun: the table stands still then, and the reason is true.
#[test]
fn the_reason_for_a_snapshot_stays_until_the_snapshot_has_begun() {
    let chunks = Config { source_reads_chunks: true, ..config() };
    let (mut life, _) = finds_under(chunks, left(Phase::NeedsSnapshot, Some("the log was cut")));
    let mut outputs = life.give(Input::Operator(Operator::Resnapshot(TABLE.into())));
    assert_eq!(phase_and_why(&life), (Phase::Snapshotting, None));
    life.now += Duration::from_secs(10).0;
    outputs.extend(life.give(Input::Timeout));
    let entry = stored(&outputs).expect("the record is replaced since others go on");
    assert_eq!((entry.phase, entry.why.as_deref()), (Phase::NeedsSnapshot, Some("the log was cut")));
    // Its first commit finds that somebody has set the table back, and it is to begin again.
    let id = outputs.iter().find_map(|o| if let Output::ReadVisibility { id, .. } = o { Some(*id) } else { None });
    let visibility = Visibility { unfinished: Some(BTreeSet::new()), ..Visibility::default() };
    life.stores(&outputs);
    let outputs = life.give(Input::VisibilityRead { id: id.expect("it asks what is unfinished"), visibility });
    let id = outputs.iter().find_map(|o| if let Output::Commit { id, .. } = o { Some(*id) } else { None });
    let found = Some(Box::new(TableState { commit: commit(1, 2), ..state() }));
    let outcome = CommitOutcome::Conflict { found, token: "t9".into() };
    let mut outputs = life.give(Input::Committed { id: id.expect("it begins"), table: TABLE.into(), outcome });
    assert!(outputs.iter().any(|o| matches!(o, Output::ReadVisibility { .. })), "{outputs:?}");
    life.now += Duration::from_secs(10).0;
    outputs.extend(life.give(Input::Timeout));
    let lost = |entry: &TableRecord| entry.why.as_deref() != Some("the log was cut");
    assert!(!stored(&outputs).is_some_and(lost), "{outputs:?}");
}

#[test]
fn a_table_that_the_pipeline_has_no_more_and_a_copy_that_the_record_does_not_know_say_why() {
    let mut other = record();
    let entry = other.tables.remove(&TABLE.into()).expect("the table");
    other.tables.insert(TableName::from("shop.gone"), TableRecord { phase: Phase::Halted, why: Some("a date".into()), ..entry });
    let (life, outputs) = finds(other);
    let unknown = "the pipeline's record does not know the copy that is there";
    assert_eq!(phase_and_why(&life), (Phase::NeedsSnapshot, Some(unknown.to_owned())));
    assert_eq!(stored(&outputs).and_then(|entry| entry.why.as_deref()), Some(unknown));
    let new = outputs.iter().find_map(|o| if let Output::StorePipelineState { new, .. } = o { Some(new) } else { None });
    let gone = &new.expect("a record").tables[&TableName::from("shop.gone")];
    assert_eq!((gone.phase, gone.why.as_deref()), (Phase::NeedsSnapshot, Some("the pipeline had no such table any more")));
    assert_eq!(new.expect("a record").incarnation, Incarnation(2));
}
