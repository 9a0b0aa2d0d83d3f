//! Stored numbers that no life has written: damaged, or somebody's mischief. Whatever counts on from them must not overflow, and
//! must not come to a version, a commit or a life that another one has. So they are refused where they come in.

use std::collections::BTreeMap;

use kernel::coordinator::{Input, Output, StopReason, ToWorker};
use kernel::id::{Incarnation, TableName, Token, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome, WriteOutcome};
use kernel::state::{Phase, PipelineState, TableRecord, TableState};

use crate::desk::{Life, TABLE, ancestors, commit, config, first_version, read_id, record, state, stops_for};

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
    let entry = || TableRecord { phase: Phase::Streaming, generation: 0, named: None, skipped: Vec::new(), why: None };
    let forged = [
        ("its life is 4294967295", PipelineState { incarnation: Incarnation(u32::MAX), ..record() }),
        (
            "the generation of table shop.orders is 18446744073709551615",
            with(TableRecord { phase: Phase::NeedsSnapshot, generation: u64::MAX, named: None, skipped: Vec::new(), why: None }),
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
    let (mut life, read) = Life::running(config(), state());
    let outputs = life.row_that_closes(read, 20);
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
    let (mut life, read) = Life::running(config(), state());
    life.row_that_closes(read, 20);
    life.now += 1_000;
    let outputs = life.give(Input::Operator(kernel::coordinator::Operator::Pause(TABLE.into())));
    let id = outputs.iter().find_map(|o| if let Output::StorePipelineState { id, .. } = o { Some(*id) } else { None });
    let entry = TableRecord { phase: Phase::Streaming, generation: u64::MAX, named: None, skipped: Vec::new(), why: None };
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
    let (mut life, read) = Life::running(config(), TableState { sequence: Version::SEQUENCE_MAX, ..state() });
    let outputs = life.row_that_closes(read, 20);
    assert_eq!(first_version(&outputs), Some(Version::new(Incarnation(2), 1)));
}

/// A version that began at zero again would lose against the same life's older ones.
#[test]
fn a_life_that_has_used_up_its_versions_halts_the_table() {
    let (mut life, read) = Life::running(config(), state());
    let outputs = life.row_that_closes(read, 20);
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
    let outputs = life.row_that_closes(next, 20);
    assert_eq!(first_version(&outputs), None);
    let why = "this life has numbered 17592186044415 rows of the table, and versions go no further: start the pipeline again, then resume \
               the table";
    let halted = Output::HaltTable { table: TABLE.into(), why: why.into(), at: None };
    assert!(outputs.contains(&halted), "{outputs:?}");
}
