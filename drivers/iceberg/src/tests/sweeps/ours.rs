//! A pipeline alone with its table: beginnings, sweeps, lost answers, other lives.

use contract::{CommitRequest, Mode, TableCommitter};
use kernel::id::Incarnation;
use kernel::outcome::CommitOutcome;
use kernel::position::{Cut, Offset, Position};
use kernel::state::TableState;

use super::super::expiry::{check_files, set};
use super::super::world::{Fault, Life, World, expect, words};
use super::{durable, keyed, noted, recover, rejected, snapshot, with_an_older_copy};

/// An entry of the newest snapshot's summary; empty if it has none of that name.
async fn counted<const N: usize>(world: &World, names: [&str; N]) -> [String; N] {
    let loaded = world.load("words").await;
    let summary = &loaded.metadata.current_snapshot().unwrap().summary().additional_properties;
    names.map(|name| summary.get(name).cloned().unwrap_or_default())
}

#[tokio::test]
async fn a_sweep_leaves_what_the_generation_brought_and_nothing_else() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new"), (5, "new")], &[]).await;
    let rows = expect(&[(1, "new"), (2, "old"), (3, "old"), (5, "new")]);
    assert_eq!(life.rows().await, rows, "the older copy stays until the sweep");
    // The last rows bring a key that only the older copy has, one that both have, and the log deletes a new one.
    durable(&mut life, &[(2, "new"), (1, "newer"), (4, "new")], &[5]).await;
    assert_eq!(life.rows().await, expect(&[(1, "newer"), (2, "new"), (4, "new")]));
    assert_eq!(life.recovered().await, life.state);
    let totals = counted(&world, ["total-data-files", "total-records", "total-delete-files", "total-position-deletes"]).await;
    assert_eq!(totals, ["1", "3", "0", "0"]);
    // One file of the older copy was dead before. The other one went now, and that of the generation's first rows, which lost both.
    let changed = counted(&world, ["deleted-data-files", "deleted-records", "removed-delete-files", "added-data-files"]).await;
    assert_eq!(changed, ["2", "4", "", "1"]);
    // The next commits find their rows.
    life.say(&[(1, "later"), (3, "back")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "later"), (3, "back"), (4, "new")]));
}

#[tokio::test]
async fn no_vector_is_written_for_a_file_that_goes() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    let before = world.files("words", ".puffin").await;
    durable(&mut life, &[(1, "new")], &[2]).await;
    assert_eq!(world.files("words", ".puffin").await, before);
    assert_eq!(counted(&world, ["added-delete-files", "removed-delete-files"]).await, ["", "1"]);
    assert_eq!(life.rows().await, expect(&[(1, "new")]));
}

#[tokio::test]
async fn a_vector_of_a_file_that_stays_is_kept_and_extended() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(6, "new"), (7, "new"), (8, "new")], &[]).await;
    life.say(&[(6, "newer")], &[]).await;
    durable(&mut life, &[], &[7]).await;
    assert_eq!(life.rows().await, expect(&[(6, "newer"), (8, "new")]));
    let totals = counted(&world, ["total-data-files", "total-records", "total-delete-files", "total-position-deletes"]).await;
    assert_eq!(totals, ["2", "4", "1", "2"]);
}

#[tokio::test]
async fn a_sweep_without_rows_is_a_commit_of_its_own_and_is_recognised() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    let before = snapshot(&world).await;
    let request = CommitRequest { sweep: true, ..life.request(Vec::new()) };
    for _ in 0..2 {
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(life.rows().await, expect(&[(1, "new")]));
    }
    let loaded = world.load("words").await;
    assert_eq!(loaded.metadata.current_snapshot().unwrap().parent_snapshot_id(), Some(before), "once");
    assert_eq!(loaded.metadata.current_snapshot().unwrap().summary().operation.as_str(), "delete");
    // It is known by its commit id, also under a later state of the same data.
    let state = TableState { cut: Cut::at(Position::of("log".into(), Offset(900))), ..request.state.clone() };
    let later = CommitRequest { state, ..life.request(Vec::new()) };
    assert!(matches!(life.commit(&later).await, CommitOutcome::Durable { .. }));
    assert!(matches!(life.committer.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.recovered().await, Some(later.state));
}

#[tokio::test]
async fn a_first_generation_has_nothing_to_sweep() {
    let world = World::new();
    let mut life = Life::begin(&world, &keyed(), 1).await;
    life.begin_generation(1).await;
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 0, "it needs no snapshot");
    assert_eq!(noted(&world).await, [None, Some("1:0".into())]);
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    assert_eq!(noted(&world).await, [Some("1:0".into()), Some("1:0".into())]);
    durable(&mut life, &[(3, "three")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (3, "three")]));
    assert_eq!(counted(&world, ["deleted-data-files", "total-records"]).await, ["", "3"]);

    // Of an empty table there is nothing at all.
    let world = World::new();
    let mut life = Life::begin(&world, &keyed(), 1).await;
    life.begin_generation(1).await;
    durable(&mut life, &[], &[]).await;
    assert_eq!((life.rows().await, life.recovered().await), (expect(&[]), life.state.clone()));
}

#[tokio::test]
async fn the_note_outlives_the_life_that_began_and_states_without_rows() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    assert_eq!(noted(&world).await, [None, None], "a table that began in the log has none");
    life.begin_generation(4).await;
    life.say(&[(1, "new")], &[]).await;
    let mut next = Life::begin(&world, &keyed(), 2).await;
    let state = TableState { cut: Cut::at(Position::of("log".into(), Offset(900))), ..next.state.clone().unwrap() };
    let request = CommitRequest { state, ..next.request(Vec::new()) };
    assert!(matches!(next.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(noted(&world).await, [Some("4:2".into()), Some("4:2".into())]);
    next.say(&[(6, "new")], &[]).await;
    let mut last = Life::begin(&world, &keyed(), 3).await;
    durable(&mut last, &[], &[]).await;
    assert_eq!(last.rows().await, expect(&[(1, "new"), (6, "new")]));
}

#[tokio::test]
async fn a_generation_sweeps_the_one_before_it() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    for (generation, word) in [(1, "first"), (2, "second"), (7, "third")] {
        life.begin_generation(generation).await;
        life.say(&[(generation as i64, word)], &[]).await;
        durable(&mut life, &[(100, word)], &[]).await;
        assert_eq!(life.rows().await, expect(&[(generation as i64, word), (100, word)]));
    }
    // One that is given up before its end is swept by the next.
    life.begin_generation(8).await;
    life.say(&[(8, "given up")], &[]).await;
    life.begin_generation(9).await;
    life.say(&[(9, "ninth")], &[]).await;
    durable(&mut life, &[], &[]).await;
    assert_eq!(life.rows().await, expect(&[(9, "ninth")]));
}

#[tokio::test]
async fn a_beginning_of_unknown_outcome_is_noted_once() {
    for fault in [Fault::AnswerLost, Fault::RequestLost] {
        let world = World::new();
        let mut life = with_an_older_copy(&world).await;
        let request = life.beginning(1);
        world.catalog.fail_next(fault);
        assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
        let landed = life.committer.resolve(request.state.commit, Incarnation(1)).await.unwrap().value;
        assert_eq!(landed, fault == Fault::AnswerLost);
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(noted(&world).await, [Some("1:2".into()), Some("1:2".into())]);
        life.say(&[(1, "new")], &[]).await;
        durable(&mut life, &[], &[]).await;
        assert_eq!(life.rows().await, expect(&[(1, "new")]));
    }
}

#[tokio::test]
async fn a_sweep_of_unknown_outcome_happens_once() {
    for fault in [Fault::AnswerLost, Fault::RequestLost] {
        let world = World::new();
        let mut life = with_an_older_copy(&world).await;
        life.begin_generation(1).await;
        life.say(&[(1, "new"), (2, "new")], &[]).await;
        let staged = life.write(&[(2, "newer")], &[]).await;
        let request = CommitRequest { sweep: true, ..life.request(vec![staged]) };
        world.catalog.fail_next(fault);
        assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
        assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "newer")]));
        life.say(&[(3, "back")], &[1]).await;
        assert_eq!(life.rows().await, expect(&[(2, "newer"), (3, "back")]));
        assert_eq!(world.load("words").await.metadata.snapshots().len(), 6);
    }
}

#[tokio::test]
async fn a_sweep_that_was_not_sent_leaves_the_table_and_the_index_as_they_were() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    world.catalog.fail_next(Fault::Away);
    assert!(matches!(life.sweep(&[(1, "new")], &[]).await, CommitOutcome::Transient { .. }));
    life.say(&[(1, "new"), (2, "new")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "new"), (3, "old")]));
    durable(&mut life, &[], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "new")]));
}

#[tokio::test]
async fn a_table_that_was_emptied_within_its_generation_keeps_what_came_after() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    let staged = life.write(&[(1, "after it")], &[]).await;
    let request = CommitRequest { truncate_first: true, ..life.request(vec![staged]) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    durable(&mut life, &[(2, "new")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "after it"), (2, "new")]));
}

#[tokio::test]
async fn a_table_that_is_appended_to_is_never_swept() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Append), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let why = rejected(&mut life, &[(2, "two")]).await;
    assert!(why.contains("only appends") && why.contains("[iceberg-fault]"), "{why}");
    assert_eq!(life.rows().await, expect(&[(1, "one")]));
}

#[tokio::test]
async fn what_was_swept_is_deleted_with_the_last_snapshot_that_names_it() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    set(&world, &[("history.expire.min-snapshots-to-keep", "2"), ("history.expire.max-snapshot-age-ms", "0")]).await;
    recover(&mut life).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new"), (2, "new")], &[]).await;
    durable(&mut life, &[(1, "newer")], &[]).await;
    for round in 0..4 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        life.say(&[(50 + round, "later")], &[]).await;
    }
    check_files(&world, true).await;
    assert_eq!(world.files("words", ".parquet").await.len(), 6);
    assert_eq!(life.rows().await.len(), 6);
}

#[tokio::test]
async fn more_files_than_a_manifest_holds_are_swept_from_all_of_them() {
    let world = World::new();
    let mut life = Life::begin(&world, &keyed(), 1).await;
    for round in 0..40 {
        life.say(&[(round, "old"), (1_000 + round, "old")], &[]).await;
    }
    life.begin_generation(1).await;
    for round in 0..20 {
        life.say(&[(round, "new")], &[]).await;
    }
    durable(&mut life, &[(500, "new")], &[]).await;
    let rows = life.rows().await;
    assert_eq!((rows.len(), rows.values().all(|word| word == "new")), (21, true));
    let totals = counted(&world, ["total-data-files", "total-records", "total-delete-files", "deleted-data-files"]).await;
    assert_eq!(totals, ["21", "21", "0", "40"]);
}
