//! What is kept of a table's past, and that nothing which is kept loses a file.

use std::collections::{HashMap, HashSet};

use contract::{Mode, TableCommitter};
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotReference, SnapshotRetention};
use kernel::id::Incarnation;

use super::world::{Life, World, expect, words};
use crate::delta::{Live, RowDelta};
use crate::storage::{Local, Storage};

pub(super) async fn set(world: &World, properties: &[(&str, &str)]) {
    let updates: HashMap<String, String> = properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    world.change("words", vec![TableUpdate::SetProperties { updates }]).await;
}

/// Every file that a kept snapshot names is there, and, after a cleaning, no other.
pub(super) async fn check_files(world: &World, nothing_else: bool) {
    let loaded = world.load("words").await;
    let mut named = HashSet::new();
    for snapshot in loaded.metadata.snapshots() {
        let live = Live::of(&Local, &loaded.metadata, Some(snapshot.as_ref())).unwrap();
        named.extend(live.data.iter().map(|file| file.path.to_string()));
        named.extend(live.vectors.iter().map(|vector| vector.path.to_string()));
    }
    let there: HashSet<String> =
        [world.files("words", ".parquet").await, world.files("words", ".puffin").await].concat().into_iter().collect();
    let missing: Vec<_> = named.difference(&there).collect();
    assert!(missing.is_empty(), "{missing:?}");
    if nothing_else {
        let left: Vec<_> = there.difference(&named).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn snapshots_and_files_stay_bounded_over_many_commits() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    set(&world, &[("history.expire.min-snapshots-to-keep", "5"), ("history.expire.max-snapshot-age-ms", "0")]).await;
    life.token = contract::Sink::recover(&life.sink, &life.table).await.unwrap().token;
    for round in 0..60i64 {
        let word = format!("round {round}");
        life.say(&[(round % 7, word.as_str()), (100 + round, "stays")], &[]).await;
        assert!(world.load("words").await.metadata.snapshots().len() <= 5);
    }
    check_files(&world, true).await;
    assert_eq!(world.files("words", ".metadata.json").await.len(), 21);
    // Of five snapshots: a list and a manifest of vectors each; 15 small manifests of data files, 4 merged ones, and the 16
    // that the last merge replaced.
    let manifests = world.files("words", ".avro").await.len();
    assert!(manifests <= 5 + 5 + 15 + 4 + 16, "{manifests} manifests and lists");
    let rows = life.rows().await;
    assert_eq!(rows.len(), 67);
    assert_eq!(rows[&3], "round 59");
    assert_eq!(rows[&130], "stays");
}

#[tokio::test]
async fn young_snapshots_are_kept_for_their_readers() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    for round in 0..30 {
        life.say(&[(round, "x")], &[]).await;
    }
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 30);
}

#[tokio::test]
async fn what_people_have_tagged_is_kept_with_its_files() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    set(&world, &[("history.expire.min-snapshots-to-keep", "1"), ("history.expire.max-snapshot-age-ms", "0")]).await;
    life.token = contract::Sink::recover(&life.sink, &life.table).await.unwrap().token;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let tagged = world.load("words").await.metadata.current_snapshot_id().unwrap();
    let reference = SnapshotReference::new(tagged, SnapshotRetention::Tag { max_ref_age_ms: None });
    world.change("words", vec![TableUpdate::SetSnapshotRef { ref_name: "audit".into(), reference }]).await;
    life.token = contract::Sink::recover(&life.sink, &life.table).await.unwrap().token;
    for round in 0..5 {
        let word = format!("round {round}");
        life.say(&[(1, word.as_str()), (2, word.as_str())], &[]).await;
    }
    let loaded = world.load("words").await;
    let kept: HashSet<i64> = loaded.metadata.snapshots().map(|s| s.snapshot_id()).collect();
    assert_eq!(kept, HashSet::from([tagged, loaded.metadata.current_snapshot_id().unwrap()]));
    check_files(&world, true).await;
}

#[tokio::test]
async fn nothing_is_expired_where_collection_is_off() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let off =
        [("gc.enabled", "false"), ("history.expire.min-snapshots-to-keep", "1"), ("history.expire.max-snapshot-age-ms", "0")];
    set(&world, &off).await;
    life.token = contract::Sink::recover(&life.sink, &life.table).await.unwrap().token;
    for round in 0..4 {
        life.say(&[(round, "x")], &[]).await;
    }
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 4);
}

#[tokio::test]
async fn a_rolled_back_end_is_expired_without_touching_what_is_live() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    set(&world, &[("history.expire.min-snapshots-to-keep", "2"), ("history.expire.max-snapshot-age-ms", "0")]).await;
    life.token = contract::Sink::recover(&life.sink, &life.table).await.unwrap().token;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let first = world.load("words").await.metadata.current_snapshot_id().unwrap();
    life.say(&[(1, "uno")], &[]).await;
    world.roll_back("words", first).await;
    let recovered = contract::Sink::recover(&life.sink, &life.table).await.unwrap();
    (life.state, life.token) = (recovered.value, recovered.token);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    for round in 0..4 {
        let word = format!("round {round}");
        life.say(&[(2, word.as_str())], &[]).await;
    }
    check_files(&world, true).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "round 3")]));
}

#[tokio::test]
async fn discarding_spares_what_any_kept_snapshot_names_and_what_this_life_staged() {
    let world = World::new();
    let mut older = Life::begin(&world, &words(Mode::Upsert), 1).await;
    older.say(&[(1, "one"), (2, "two")], &[]).await;
    older.say(&[(1, "uno")], &[]).await;
    drop(older.write(&[(9, "never published")], &[]).await);
    let mut life = Life::begin(&world, &words(Mode::Upsert), 2).await;

    // Before a commit of its own it deletes nothing: the older life may still publish.
    life.committer.discard_older(Incarnation(2)).await;
    assert_eq!(world.files("words", ".parquet").await.len(), 3);

    life.say(&[(3, "three")], &[]).await;
    let staged = life.write(&[(4, "four")], &[]).await;
    life.committer.discard_older(Incarnation(2)).await;
    let left = world.files("words", ".parquet").await;
    assert_eq!(left.iter().filter(|file| file.contains("/i1-")).count(), 2, "{left:?}");
    assert_eq!(left.iter().filter(|file| file.contains("/i2-")).count(), 2, "{left:?}");
    let request = life.request(vec![staged]);
    life.commit(&request).await;
    assert_eq!(life.rows().await, expect(&[(1, "uno"), (2, "two"), (3, "three"), (4, "four")]));
    check_files(&world, true).await;
}

#[tokio::test]
async fn discarding_removes_metadata_that_was_never_swapped_in_and_keeps_what_others_write_now() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 2).await;
    life.say(&[(1, "one")], &[]).await;
    let location = world.load("words").await.location;
    let directory = location.rsplit_once('/').unwrap().0.to_owned();
    let file = |version: u32| format!("{directory}/{version:05}-{}.metadata.json", uuid::Uuid::new_v4());
    let (lost, theirs) = (file(1), file(2));
    Local.put(&[(lost.clone(), "{}".into()), (theirs.clone(), "{}".into())]).unwrap();
    assert!(location.contains("/00001-"), "{location}");
    life.committer.discard_older(Incarnation(2)).await;
    let left = world.files("words", ".metadata.json").await;
    assert!(!left.contains(&lost) && left.contains(&theirs) && left.contains(&location), "{left:?}");
}

#[tokio::test]
async fn dropping_what_was_staged_leaves_the_rest() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let dropped = life.write(&[(2, "two")], &[]).await;
    let kept = life.write(&[(3, "three")], &[]).await;
    life.committer.drop_staged(vec![dropped]).await;
    assert_eq!(world.files("words", ".parquet").await.len(), 2);
    let request = life.request(vec![kept]);
    life.commit(&request).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (3, "three")]));
}

#[tokio::test]
async fn manifests_of_a_size_are_merged_and_row_ids_stay() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Append), 1).await;
    for round in 0..40 {
        life.say(&[(round, "x"), (1_000 + round, "y")], &[]).await;
    }
    let loaded = world.load("words").await;
    let snapshot = loaded.metadata.current_snapshot().unwrap();
    let manifests = crate::delta::tests_only::manifests(&Local, &loaded.metadata, snapshot);
    assert!(manifests.len() <= 16, "{} manifests", manifests.len());
    let mut first_ids: Vec<i64> = manifests.iter().flatten().map(|file| file.first_row_id().unwrap()).collect();
    first_ids.sort_unstable();
    // Each file still has the ids that it got when it was added, two rows a commit; a merge gives out unused ones.
    assert_eq!(first_ids.len(), 40);
    assert_eq!(first_ids[..16], (0..16).map(|commit| commit * 2).collect::<Vec<i64>>()[..]);
    assert!(first_ids.windows(2).all(|pair| pair[1] - pair[0] >= 2), "{first_ids:?}");
    world.foreign_snapshot("words", RowDelta::default()).await;
}
