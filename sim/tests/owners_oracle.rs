//! Each rule of the oracle of several owners is shown a moment, made by hand, that breaks it and nothing else, and the right one
//! beside it.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{AttemptId, CheckpointNumber, CommitId, FileName, Incarnation, Part, Slot, TableName, Version};
use kernel::route::Deletions;
use sim::oracle::owners::*;
use sim::owners::{Cut, Key, Kind, Row, Sink, Staged, State};

const LIFE: Incarnation = Incarnation(1);

fn attempt(number: u64) -> AttemptId {
    AttemptId { incarnation: LIFE, number }
}

fn row(key: Key, value: Option<u32>) -> Row {
    Row { key, value, version: Version::new(LIFE, u64::from(key)) }
}

/// A table in which attempts 1 and 2 staged a key each.
fn sink(kind: Kind) -> Sink {
    let mut sink = Sink::new(kind);
    for number in [1, 2] {
        let part = Part { table: TableName::from("t0"), checkpoint: CheckpointNumber(1), slot: Slot(number as u32 - 1) };
        sink.staged.insert(attempt(number), Staged { part, rows: vec![row(number as Key, Some(7))] });
    }
    sink
}

fn state(upto: usize, life: u32) -> State {
    let incarnation = Incarnation(life);
    let commit = CommitId { incarnation, number: 1 };
    State { cut: Cut { upto, coordinate: 0 }, incarnation, commit, sequence: 0, begun: Version(0) }
}

#[test]
fn a_commit_names_what_was_written_in_its_life() {
    let sink = sink(Kind::Located);
    assert_eq!(one_attempt_counts(&sink, &[attempt(1), attempt(2)], LIFE), Ok(()));
    assert!(one_attempt_counts(&sink, &[attempt(3)], LIFE).is_err(), "it was never written");
    assert!(one_attempt_counts(&sink, &[attempt(1)], Incarnation(2)).is_err(), "another life's");
}

#[test]
fn what_a_commit_names_is_there() {
    let mut sink = sink(Kind::Located);
    assert_eq!(staged_kept_while_unknown(&sink, &[attempt(1)]), Ok(()));
    sink.staged.remove(&attempt(1));
    sink.deleted.insert(attempt(1));
    assert!(staged_kept_while_unknown(&sink, &[attempt(1)]).is_err());
    assert_eq!(one_attempt_counts(&sink, &[attempt(1)], LIFE), Ok(()), "that is the other rule's");
}

#[test]
fn what_may_be_published_is_not_deleted() {
    let mut sink = sink(Kind::Located);
    assert_eq!(deleted_was_never_named(&sink, attempt(1)), Ok(()));
    sink.unknown.insert(attempt(1));
    assert!(deleted_was_never_named(&sink, attempt(1)).is_err());
    sink.published.insert(attempt(2));
    assert!(deleted_was_never_named(&sink, attempt(2)).is_err());
}

#[test]
fn a_key_is_in_one_part() {
    let mut sink = sink(Kind::Located);
    assert_eq!(one_owner_per_key(&sink, &[attempt(1), attempt(2)]), Ok(()));
    sink.staged.get_mut(&attempt(2)).unwrap().rows[0].key = 1;
    assert!(one_owner_per_key(&sink, &[attempt(1), attempt(2)]).is_err());
}

#[test]
fn exactly_the_rows_that_are_replaced_are_deleted() {
    let sink = sink(Kind::Located);
    let nothing = Deletions::default();
    assert_eq!(index_at_its_base(&sink, &[attempt(1)], &nothing, false), Ok(()));
    let gone: Deletions = [(FileName::from("x1"), 0)].into_iter().collect();
    assert!(index_at_its_base(&sink, &[attempt(1)], &gone, false).is_err(), "it is not there");
    assert_eq!(index_at_its_base(&sink, &[attempt(1)], &gone, true), Ok(()), "all rows go");
}

#[test]
fn an_artefact_is_published_once() {
    let mut sink = sink(Kind::Appended);
    assert_eq!(staged_published_at_most_once(&sink, &[attempt(1)]), Ok(()));
    sink.published.insert(attempt(1));
    assert!(staged_published_at_most_once(&sink, &[attempt(1)]).is_err());
}

#[test]
fn a_cut_does_not_move_back() {
    assert_eq!(position_never_regresses(Kind::Located, Some(state(3, 1)), state(3, 1)), Ok(()));
    assert!(position_never_regresses(Kind::Located, Some(state(3, 1)), state(2, 2)).is_err());
    assert_eq!(position_never_regresses(Kind::Versioned, Some(state(3, 1)), state(2, 2)), Ok(()), "it claims what it found");
    assert!(position_never_regresses(Kind::Versioned, Some(state(3, 1)), state(2, 1)).is_err());
}

#[test]
fn a_staging_sink_holds_what_its_cut_says() {
    let rows = |values: &[u32]| BTreeMap::from([(1 as Key, values.to_vec())]);
    let cut = Cut { upto: 1, coordinate: 0 };
    assert_eq!(state_and_data_move_together(cut, rows(&[2, 1]), rows(&[1, 2])), Ok(()));
    assert!(state_and_data_move_together(cut, rows(&[1]), rows(&[2])).is_err(), "another value");
    assert!(state_and_data_move_together(cut, rows(&[1, 1]), rows(&[1])).is_err(), "twice");
    assert!(state_and_data_move_together(cut, BTreeMap::new(), rows(&[1])).is_err(), "missing");
    assert!(state_and_data_move_together(cut, rows(&[1]), BTreeMap::new()).is_err(), "not gone");
}

#[test]
fn a_key_at_a_sink_that_goes_by_versions_is_not_behind() {
    let cut = Cut { upto: 1, coordinate: 0 };
    let seen = BTreeMap::from([(1 as Key, vec![5])]);
    let may = |values: &[Option<u32>]| values.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(position_covers_only_durable(cut, &seen, |_| may(&[Some(4), Some(5)]), [1].into_iter()), Ok(()));
    assert!(position_covers_only_durable(cut, &seen, |_| may(&[Some(4), None]), [1].into_iter()).is_err());
}

#[test]
fn a_version_is_of_the_row_that_it_was_given_to() {
    let given = BTreeMap::from([(row(1, Some(5)).version, row(1, Some(5)))]);
    assert_eq!(a_version_names_one_row(&given, &row(1, Some(5))), Ok(()));
    assert!(a_version_names_one_row(&given, &row(1, Some(6))).is_err(), "another row");
    assert!(a_version_names_one_row(&given, &row(2, Some(5))).is_err(), "given to nobody");
}

#[test]
fn nobody_holds_rows_at_rest() {
    assert_eq!(nothing_is_held_at_rest(1, &BTreeSet::new()), Ok(()));
    assert!(nothing_is_held_at_rest(1, &BTreeSet::from([attempt(4)])).is_err());
}
