//! The oracle of snapshots, broken by hand: each function finds what must not be, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{Join, OnTruncate, Resnapshot};
use kernel::id::{CommandId, CommitId, Incarnation, Token, Version};
use kernel::position::{Cut, LogIdentity, Position};
use kernel::state::{Ancestors, FORMAT, Range, TableState};
use sim::history::{Change, Contents, History, Key, Kind, Row, RowImage, Seen, Tx};
use sim::oracle::View;
use sim::oracle::durability::Smeared;
use sim::oracle::snapshots::{self, ChunkRead, Told};
use sim::plan::TablePlan;
use sim::sinks::Commit;

/// `1 = 100, 2 = 101, 3 = 102`; the base; then `2` is gone and `4 = 103`, which is visible at 50 only.
fn history() -> History {
    let mut history = History::empty(&[""], &["t0"]);
    let row = |key, value| Change::of(0, Kind::Row(key, value));
    let first = vec![row(1, Some(100)), row(2, Some(101)), row(3, Some(102))];
    for (n, changes) in [first, vec![row(2, None), row(4, Some(103))]].into_iter().enumerate() {
        let at = 10 * n as u64;
        history.push(Tx { stream: 0, at, end: at + 10, time: at, changes });
    }
    history.seen = vec![Seen { begun: 0, visible: 0, listed: 0 }, Seen { begun: 10, visible: 50, listed: 50 }];
    history
}

const BEGUN: Version = Version(1000);

/// Generation 1, begun at [10], at [20]; keys up to 2 are durable.
fn state() -> TableState {
    let commit = CommitId { incarnation: Incarnation(2), number: 3 };
    let range = |end: Option<&str>, durable| Range { end: end.map(String::from), durable };
    TableState {
        format: FORMAT,
        cut: Cut::at(Position::scalar(20)),
        identity: LogIdentity::default(),
        incarnation: Incarnation(2),
        commit,
        ancestors: Ancestors::default(),
        sequence: 9,
        generation: 1,
        base: Position::scalar(10),
        begun: BEGUN,
        tiling: vec![range(Some("k2"), true), range(None, false)],
        in_doubt: vec![],
        ahead: Position::START,
        schema: None,
    }
}

fn beginning() -> TableState {
    let tiling = vec![Range { end: None, durable: false }];
    TableState { cut: Cut::at(Position::scalar(10)), tiling, ..state() }
}

fn ended() -> TableState {
    TableState { tiling: vec![], ..state() }
}

/// Rows with their versions.
fn sees(state: &TableState, staging: bool, rows: &[(Key, u32, u64)]) -> Option<&'static str> {
    let (history, plan) = (history(), plan(staging));
    let view = View { history: &history, table: 0, plan: &plan, base: Some(&state.base), whole: true };
    let visible = Contents { rows: rows.iter().map(|(k, v, _)| (*k, Row::from(*v))).collect(), kept: BTreeMap::new() };
    let versions = rows.iter().map(|(k, _, v)| (*k, Version(*v))).collect();
    let (rule, verdict) = snapshots::what_a_reader_may_see(&view, state, &visible, &versions, &Smeared::new());
    verdict.err().map(|_| rule)
}

fn plan(staging: bool) -> TablePlan {
    let (join, on_truncate, resnapshot) = (Join::Snapshot, OnTruncate::Propagate, Resnapshot::AtStart);
    TablePlan { staging, keyed: true, join, on_truncate, resnapshot }
}

#[test]
fn a_reader_sees_the_source_where_a_range_is_durable_or_the_log_touched_and_nothing_elsewhere() {
    let right = [(1, 100, 1001), (4, 103, 1002)];
    assert_eq!(sees(&state(), true, &right), None);
    let older = [(1, 100, 1001), (3, 7, 500), (4, 103, 1002)];
    assert_eq!(sees(&state(), true, &older), None, "what an older generation left may stand where nothing is promised yet");
    assert_eq!(sees(&state(), true, &[(4, 103, 1002)]), Some("snapshot-complete-means-every-range-durable"), "a row is missing");
    assert_eq!(sees(&state(), true, &[(1, 100, 1001)]), Some("position-covers-only-durable"), "a change of the log is missing");
    let resurrected = [(1, 100, 1001), (2, 101, 1003), (4, 103, 1002)];
    assert_eq!(sees(&state(), true, &resurrected), Some("visible-decides"), "a deleted row is back");
    let stale = [(1, 100, 500), (4, 103, 1002)];
    assert_eq!(sees(&state(), true, &stale), Some("visible-decides"), "an older generation's row stands in a durable range");
    let early = [(1, 100, 1001), (3, 102, 1003), (4, 103, 1002)];
    assert_eq!(sees(&state(), true, &early), Some("generation-begins-durably"), "a row is there and its range is not durable");
    assert_eq!(sees(&state(), false, &early), None, "which is allowed where data may be ahead of the state");
    assert_eq!(sees(&ended(), true, &early), None);
    let ghost = [(1, 100, 1001), (3, 102, 1003), (4, 103, 1002), (5, 9, 500)];
    assert_eq!(sees(&ended(), true, &ghost), Some("resnapshot-leaves-no-ghost"));
    assert_eq!(sees(&ended(), true, &right), Some("snapshot-complete-means-every-range-durable"), "the last range is missing");
}

#[test]
fn a_ghost_is_found_even_where_no_reader_sees_it() {
    assert!(snapshots::resnapshot_leaves_no_ghost(&ended(), &[(1, Version(1001))].into()).is_ok());
    assert!(snapshots::resnapshot_leaves_no_ghost(&ended(), &[(1, Version(999))].into()).is_err());
}

#[test]
fn a_generation_begins_without_data_above_every_version_and_holds_its_base() {
    let begins = |state: &TableState, staged, version, acknowledged| {
        let versions = BTreeMap::from([(1, Version(version))]);
        snapshots::generation_begins_durably(state, staged, &versions, Some(&Position::scalar(acknowledged))).is_ok()
    };
    assert!(begins(&beginning(), 0, 999, 10));
    assert!(!begins(&beginning(), 1, 999, 10), "it brings data");
    assert!(!begins(&beginning(), 0, 1000, 10), "a row has its version, or a higher one");
    assert!(!begins(&beginning(), 0, 999, 11), "the source may have forgotten what lies above its base");
    assert!(!begins(&state(), 0, 999, 10), "its cut is not its base");
    assert!(!begins(&TableState { tiling: vec![], ..beginning() }, 0, 999, 10), "it is complete at once");
}

#[test]
fn a_chunk_is_not_asked_for_while_something_below_is_hidden() {
    let (history, plan) = (history(), plan(true));
    let view = View { history: &history, table: 0, plan: &plan, base: None, whole: true };
    let asked = |state: &TableState, began: Option<&TableState>, now| {
        snapshots::doubt_proven_before_chunk(&view, Some(state), began, now).is_ok()
    };
    assert!(asked(&state(), Some(&beginning()), 20), "this life has remembered the keys since the base");
    assert!(!asked(&state(), Some(&state()), 20), "it has found a cut above the hidden transaction");
    assert!(asked(&state(), Some(&state()), 50), "which is visible now");
    let above = TableState { base: Position::scalar(20), ..beginning() };
    assert!(!asked(&above, None, 20), "it lies below the base");
}

#[test]
fn a_chunk_row_that_beats_a_change_which_its_snapshot_did_not_see_is_found() {
    let (history, plan) = (history(), plan(true));
    let view = View { history: &history, table: 0, plan: &plan, base: None, whole: true };
    let id = |number| CommandId { incarnation: Incarnation(2), number };
    let chunks = [ChunkRead { id: id(1), at: 20, schema: 0 }, ChunkRead { id: id(2), at: 50, schema: 0 }];
    let row = |key, chunk| {
        let place = history.of_table[0][1];
        RowImage { key, chunk: Some(chunk), ..Change::of(0, Kind::Row(key, Some(101))).rows(place)[0] }
    };
    let judged = |row: RowImage, proven: &BTreeMap<usize, BTreeSet<CommandId>>, began: Option<&TableState>| {
        let told = Told { chunks: &chunks, proven, began };
        let (rule, verdict) = snapshots::chunk_rows_are_proven(&view, &state(), &[row], &told);
        verdict.err().map(|_| rule)
    };
    let nothing = BTreeMap::new();
    assert_eq!(judged(row(1, 0), &nothing, None), None, "nothing touched it");
    assert_eq!(judged(row(2, 1), &nothing, None), None, "it was read when the delete was visible");
    assert_eq!(judged(row(2, 0), &nothing, None), Some("visible-decides"));
    let by_another = BTreeMap::from([(1, BTreeSet::from([id(2)]))]);
    assert_eq!(judged(row(2, 0), &by_another, None), Some("forgetting-is-per-chunk"));
    assert_eq!(judged(row(2, 0), &nothing, Some(&state())), Some("doubt-proven-before-chunk"));
}

#[test]
fn a_sweep_takes_nothing_that_a_newer_life_goes_on_with() {
    let sweep =
        |token: &str| Commit { token: Token::from(token), state: ended(), staged: vec![], truncate_first: false, sweep: true };
    let newer = TableState { generation: 0, incarnation: Incarnation(3), ..state() };
    assert!(snapshots::only_what_is_superseded_is_swept(Some(&newer), &sweep("")).is_err());
    assert!(snapshots::only_what_is_superseded_is_swept(Some(&newer), &sweep("t1")).is_ok(), "a sink that compares refuses it");
    assert!(snapshots::only_what_is_superseded_is_swept(Some(&state()), &sweep("")).is_ok());
}
