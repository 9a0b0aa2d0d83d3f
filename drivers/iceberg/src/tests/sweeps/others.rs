//! Others at the table while it is copied anew: who rewrites its files, sets it back, puts old files into it, removes what was noted.

use contract::CommitRequest;
use iceberg::TableUpdate;
use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Struct};
use kernel::outcome::CommitOutcome;

use super::super::expiry::set;
use super::super::foreign::{commit_over, data_file};
use super::super::world::{Life, World, expect};
use super::{durable, keyed, noted, recover, rejected, snapshot, with_an_older_copy};
use crate::delta::{Removed, RowDelta};

/// A data file of ours under a name that another engine would give.
async fn named_as_theirs(life: &mut Life, rows: &[(i64, &str)]) -> DataFile {
    let ours = data_file(life, rows).await;
    let directory = ours.file_path().rsplit_once('/').unwrap().0;
    let path = format!("{directory}/00000-0-{}-00001.parquet", uuid::Uuid::new_v4());
    std::fs::rename(ours.file_path().trim_start_matches("file://"), path.trim_start_matches("file://")).unwrap();
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_format(DataFileFormat::Parquet)
        .file_path(path)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(ours.record_count())
        .file_size_in_bytes(ours.file_size_in_bytes())
        .build()
        .unwrap()
}

/// Somebody else puts these rows in the place of all that there is.
async fn compact(world: &World, life: &mut Life, rows: &[(i64, &str)]) {
    let rewritten = named_as_theirs(life, rows).await;
    world.foreign_snapshot("words", RowDelta { added: vec![rewritten], removed: Removed::All, ..RowDelta::default() }).await;
}

#[tokio::test]
async fn a_truncate_takes_all_that_a_sweep_would_and_needs_no_note() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new"), (5, "new")], &[]).await;
    compact(&world, &mut life, &[(1, "new"), (2, "old"), (5, "new")]).await;
    recover(&mut life).await;
    let staged = life.write(&[(9, "after it")], &[]).await;
    let request = CommitRequest { truncate_first: true, sweep: true, ..life.request(vec![staged]) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(9, "after it")]));
    life.say(&[(1, "again")], &[9]).await;
    assert_eq!(life.rows().await, expect(&[(1, "again")]));
}

#[tokio::test]
async fn others_who_add_no_file_do_not_hinder_a_sweep() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    world.foreign_snapshot("words", RowDelta::default()).await;
    commit_over(&mut life, &[(2, "new")], &[]).await;
    world.foreign_snapshot("words", RowDelta::default()).await;
    recover(&mut life).await;
    durable(&mut life, &[(5, "new")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "new"), (5, "new")]));
}

#[tokio::test]
async fn a_compaction_before_the_generation_is_swept_like_the_rest() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    compact(&world, &mut life, &[(1, "old"), (2, "old"), (3, "old")]).await;
    recover(&mut life).await;
    life.begin_generation(1).await;
    life.say(&[(2, "new")], &[]).await;
    durable(&mut life, &[], &[]).await;
    assert_eq!(life.rows().await, expect(&[(2, "new")]));
}

#[tokio::test]
async fn a_compaction_within_the_generation_stops_its_sweep_and_the_next_one_takes_it_all() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    compact(&world, &mut life, &[(1, "new"), (2, "old"), (3, "old")]).await;
    recover(&mut life).await;
    life.say(&[(5, "new")], &[]).await;
    let (before, rows) = (snapshot(&world).await, life.rows().await);
    let why = rejected(&mut life, &[(6, "new")]).await;
    let told = [
        "table 'shop.words' was copied anew, and 1 of its data files were written by others since that began (one is file:///",
        "Nothing was removed from it",
        "copy it anew: `urutau table resnapshot` [iceberg-sweep-foreign-files]",
    ];
    assert!(told.iter().all(|part| why.contains(part)), "{why}");
    assert_eq!((snapshot(&world).await, life.rows().await), (before, rows), "nothing changed");

    life.begin_generation(2).await;
    life.say(&[(1, "newer")], &[]).await;
    durable(&mut life, &[(5, "newer")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "newer"), (5, "newer")]));
}

#[tokio::test]
async fn a_foreign_file_is_known_after_our_own_commits_have_merged_its_manifest() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    compact(&world, &mut life, &[(1, "new"), (2, "old"), (3, "old")]).await;
    recover(&mut life).await;
    for round in 0..20 {
        life.say(&[(100 + round, "new")], &[]).await;
    }
    let why = rejected(&mut life, &[]).await;
    assert!(why.contains("[iceberg-sweep-foreign-files]"), "{why}");
}

#[tokio::test]
async fn a_foreign_file_is_known_by_its_name_when_its_snapshot_is_gone() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    set(&world, &[("history.expire.min-snapshots-to-keep", "1"), ("history.expire.max-snapshot-age-ms", "0")]).await;
    recover(&mut life).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    compact(&world, &mut life, &[(1, "new"), (2, "old"), (3, "old")]).await;
    let theirs = snapshot(&world).await;
    recover(&mut life).await;
    for round in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        life.say(&[(50 + round, "new")], &[]).await;
    }
    assert!(world.load("words").await.metadata.snapshot_by_id(theirs).is_none());
    let why = rejected(&mut life, &[]).await;
    assert!(why.contains("[iceberg-sweep-foreign-files]"), "{why}");
}

#[tokio::test]
async fn an_old_file_of_ours_that_somebody_puts_back_is_theirs() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    let old = data_file(&mut life, &[(8, "old"), (9, "old")]).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    world.foreign_snapshot("words", RowDelta { added: vec![old], ..RowDelta::default() }).await;
    recover(&mut life).await;
    let why = rejected(&mut life, &[]).await;
    assert!(why.contains("[iceberg-sweep-foreign-files]"), "{why}");
}

#[tokio::test]
async fn a_table_set_back_to_before_the_generation_begins_it_again() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    let (older, at) = (life.state.clone(), snapshot(&world).await);
    life.begin_generation(1).await;
    life.say(&[(1, "lost"), (6, "lost")], &[]).await;
    world.roll_back("words", at).await;
    recover(&mut life).await;
    assert_eq!(life.state, older);
    // The log goes on in the older copy for a while; then the generation begins under the same number.
    life.say(&[(4, "old")], &[]).await;
    assert_eq!(noted(&world).await, [None, None], "the note went with the generation");
    life.begin_generation(1).await;
    assert_eq!(noted(&world).await, [Some("1:5".into()), Some("1:5".into())]);
    life.say(&[(1, "new")], &[]).await;
    durable(&mut life, &[(2, "new")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "new")]));
}

#[tokio::test]
async fn a_table_set_back_within_the_generation_goes_on_with_its_note() {
    let world = World::new();
    let mut life = with_an_older_copy(&world).await;
    life.begin_generation(1).await;
    life.say(&[(1, "new")], &[]).await;
    let at = snapshot(&world).await;
    life.say(&[(6, "given up")], &[]).await;
    durable(&mut life, &[], &[]).await;
    // Even the sweep is taken back.
    world.roll_back("words", at).await;
    recover(&mut life).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (2, "old"), (3, "old")]));
    life.say(&[(5, "new")], &[]).await;
    durable(&mut life, &[], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "new"), (5, "new")]));
}

#[tokio::test]
async fn without_a_note_nothing_is_swept_and_a_new_generation_is() {
    let world = World::new();
    let mut life = Life::begin(&world, &keyed(), 1).await;
    life.begin_generation(1).await;
    let removals = vec!["urutau.generation-began".to_owned()];
    world.change("words", vec![TableUpdate::RemoveProperties { removals }]).await;
    recover(&mut life).await;
    life.say(&[(1, "one")], &[]).await;
    let why = rejected(&mut life, &[(2, "two")]).await;
    assert!(why.contains("nothing in it tells which of its data files were there before"), "{why}");
    assert!(why.ends_with("`urutau table resnapshot` [iceberg-generation-unknown]"), "{why}");
    assert_eq!(life.rows().await, expect(&[(1, "one")]));
    life.begin_generation(2).await;
    durable(&mut life, &[(2, "two")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(2, "two")]));
}
