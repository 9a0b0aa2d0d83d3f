//! What commits make of a table, and how each outcome comes about.

use contract::{CommitRequest, Kind, Mode, Peek, Sink, TableCommitter};
use kernel::id::{CommitId, Incarnation, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{Cut, Offset, Position};
use kernel::state::{FORMAT, PipelineState};

use super::world::{Fault, Life, World, expect, words};

#[tokio::test]
async fn rows_are_inserted_replaced_removed_and_made_again() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two"), (3, "three")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two"), (3, "three")]));
    life.say(&[(2, "zwei"), (4, "four")], &[1]).await;
    assert_eq!(life.rows().await, expect(&[(2, "zwei"), (3, "three"), (4, "four")]));
    life.say(&[(1, "eins")], &[2, 99]).await;
    assert_eq!(life.rows().await, expect(&[(1, "eins"), (3, "three"), (4, "four")]));
}

#[tokio::test]
async fn appended_rows_are_all_kept() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Append), 1).await;
    life.say(&[(1, "one"), (1, "one")], &[]).await;
    life.say(&[(1, "one")], &[]).await;
    let read = life.sink.peek(&life.table, &Peek { limit: 10, key: None }).await.unwrap();
    assert_eq!(read.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
    let loaded = world.load("words").await;
    assert_eq!(loaded.metadata.current_schema().identifier_field_ids().count(), 0);
}

#[tokio::test]
async fn rows_that_the_cut_covers_are_not_appended_again() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::AppendIdempotent), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    life.state = None; // It reads the log from its beginning again.
    let again = life.write(&[(1, "one"), (2, "two")], &[]).await;
    life.state = life.recovered().await;
    let request = life.request(vec![again]);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
}

#[tokio::test]
async fn truncate_first_removes_everything_before_and_nothing_of_its_own() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    life.say(&[(2, "zwei")], &[]).await;
    let staged = life.write(&[(2, "new"), (3, "new")], &[]).await;
    let request = CommitRequest { truncate_first: true, ..life.request(vec![staged]) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(2, "new"), (3, "new")]));
    life.say(&[(1, "back")], &[3]).await;
    assert_eq!(life.rows().await, expect(&[(1, "back"), (2, "new")]));
    let totals = world.load("words").await.metadata.current_snapshot().unwrap().summary().additional_properties.clone();
    assert_eq!((totals["total-records"].as_str(), totals["total-data-files"].as_str()), ("3", "2"));
}

#[tokio::test]
async fn a_truncate_without_rows_empties_the_table() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let request = CommitRequest { truncate_first: true, ..life.request(Vec::new()) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[]));
}

#[tokio::test]
async fn a_vector_is_merged_with_the_one_in_force_and_replaces_it() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "a"), (2, "a"), (3, "a"), (4, "a")], &[]).await;
    life.say(&[(1, "b")], &[]).await;
    life.say(&[(2, "c")], &[]).await;
    let summary = world.load("words").await.metadata.current_snapshot().unwrap().summary().additional_properties.clone();
    let count = |name: &str| summary.get(name).map_or("", String::as_str);
    // One vector of two rows in place of one of one row: never two for a data file.
    assert_eq!((count("added-delete-files"), count("removed-delete-files"), count("total-delete-files")), ("1", "1", "1"));
    assert_eq!(
        (count("added-position-deletes"), count("removed-position-deletes"), count("total-position-deletes")),
        ("2", "1", "2")
    );
    assert_eq!((count("total-records"), count("total-data-files")), ("6", "3"));
    assert_eq!(life.rows().await, expect(&[(1, "b"), (2, "c"), (3, "a"), (4, "a")]));
}

#[tokio::test]
async fn a_data_file_without_live_rows_is_removed_with_its_vector() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "a"), (2, "a")], &[]).await;
    life.say(&[(1, "b")], &[]).await;
    life.say(&[(2, "c")], &[]).await;
    let summary = world.load("words").await.metadata.current_snapshot().unwrap().summary().additional_properties.clone();
    let count = |name: &str| summary.get(name).map_or("", String::as_str);
    assert_eq!((count("deleted-data-files"), count("removed-delete-files"), count("added-delete-files")), ("1", "1", ""));
    assert_eq!((count("total-records"), count("total-data-files"), count("total-delete-files")), ("2", "2", "0"));
    assert_eq!(life.rows().await, expect(&[(1, "b"), (2, "c")]));
    life.say(&[(1, "d")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "d")]));
}

#[tokio::test]
async fn the_state_stands_in_summary_and_properties_under_its_names() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 3).await;
    life.say(&[(1, "one")], &[]).await;
    let loaded = world.load("words").await;
    let snapshot = loaded.metadata.current_snapshot().unwrap();
    let (summary, properties) = (&snapshot.summary().additional_properties, loaded.metadata.properties());
    for place in [summary, properties] {
        assert_eq!(place["urutau.commit-id"], "3.1");
        assert_eq!(place["urutau.pipeline"], "desk");
        assert_eq!(place["cdc.position"], "log:10");
        assert_eq!(place["urutau.state"], serde_json::to_string(life.state.as_ref().unwrap()).unwrap());
    }
    assert_eq!(properties["urutau.snapshot"], snapshot.snapshot_id().to_string());
    assert_eq!(life.recovered().await, life.state);
}

#[tokio::test]
async fn a_stale_token_conflicts_and_the_told_one_is_good() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let stale = life.token.clone();
    life.say(&[(2, "two")], &[]).await;
    let staged = life.write(&[(3, "three")], &[]).await;
    let late = CommitRequest { token: stale, ..life.request(vec![staged]) };
    let CommitOutcome::Conflict { found, token } = life.commit(&late).await else { panic!("no conflict") };
    assert_eq!((found.map(|state| *state), &token), (life.state.clone(), &life.token));
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
    assert!(matches!(life.commit(&CommitRequest { token, ..late }).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two"), (3, "three")]));
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_recognised_and_not_applied_twice() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let staged = life.write(&[(1, "uno"), (2, "two")], &[]).await;
    let request = life.request(vec![staged]);
    world.catalog.fail_next(Fault::AnswerLost);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
    let resolved = life.committer.resolve(request.state.commit, Incarnation(1)).await.unwrap();
    assert!(resolved.value);
    let CommitOutcome::Durable { token } = life.commit(&request).await else { panic!("not durable") };
    assert_eq!(token, resolved.token);
    assert_eq!(life.rows().await, expect(&[(1, "uno"), (2, "two")]));
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 2);
    // The index catches up with what it did not see.
    life.say(&[(1, "ein"), (3, "three")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "ein"), (3, "three")]));
}

#[tokio::test]
async fn a_commit_that_was_lost_itself_goes_through_with_the_same_token_and_files() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let staged = life.write(&[(1, "uno")], &[]).await;
    let request = life.request(vec![staged]);
    world.catalog.fail_next(Fault::RequestLost);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Unknown { .. }));
    assert!(!life.committer.resolve(request.state.commit, Incarnation(1)).await.unwrap().value);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "uno")]));
}

#[tokio::test]
async fn a_commit_that_was_not_sent_is_transient_and_leaves_nothing_but_its_data_files() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let staged = life.write(&[(1, "uno")], &[]).await;
    let (vectors, manifests) = (world.files("words", ".puffin").await, world.files("words", ".avro").await);
    let request = life.request(vec![staged]);
    world.catalog.fail_next(Fault::Away);
    let CommitOutcome::Transient { why } = life.commit(&request).await else { panic!("not transient") };
    assert_eq!(why, "the catalogue is away — wait [iceberg-catalog]");
    assert_eq!((world.files("words", ".puffin").await, world.files("words", ".avro").await), (vectors, manifests));
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "uno")]));
}

#[tokio::test]
async fn an_older_life_is_told_that_it_is_superseded_and_changes_nothing() {
    let world = World::new();
    let mut older = Life::begin(&world, &words(Mode::Upsert), 1).await;
    older.say(&[(1, "one")], &[]).await;
    let staged = older.write(&[(2, "late")], &[]).await;
    let late = older.request(vec![staged]);
    let mut newer = Life::begin(&world, &words(Mode::Upsert), 2).await;
    newer.say(&[(3, "three")], &[]).await;
    assert_eq!(older.commit(&late).await, CommitOutcome::Superseded);
    assert_eq!(newer.rows().await, expect(&[(1, "one"), (3, "three")]));
    assert_eq!(newer.recovered().await, newer.state);
}

#[tokio::test]
async fn an_older_lifes_commit_that_lands_first_is_an_ordinary_one_that_the_newer_finds() {
    let world = World::new();
    let mut older = Life::begin(&world, &words(Mode::Upsert), 1).await;
    older.say(&[(1, "one")], &[]).await;
    let mut newer = Life::begin(&world, &words(Mode::Upsert), 2).await;
    older.say(&[(2, "of the older")], &[]).await;
    let staged = newer.write(&[(3, "three")], &[]).await;
    let request = newer.request(vec![staged]);
    let CommitOutcome::Conflict { found, .. } = newer.commit(&request).await else { panic!("no conflict") };
    assert_eq!(found.map(|state| *state), older.state);
}

#[tokio::test]
async fn a_state_without_new_data_makes_no_snapshot() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let mut state = life.state.clone().unwrap();
    state.cut = Cut::at(Position::of("log".into(), Offset(500)));
    let request = CommitRequest { state: state.clone(), ..life.request(Vec::new()) };
    let before = life.token.clone();
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_ne!(life.token, before);
    let loaded = world.load("words").await;
    assert_eq!((loaded.metadata.snapshots().len(), life.recovered().await), (1, Some(state)));
    assert_eq!(loaded.metadata.properties()["cdc.position"], "log:500");
    // The same once more, as after a lost answer: it is there.
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    life.say(&[(2, "two")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
}

#[tokio::test]
async fn a_state_before_any_data_stands_alone_and_data_follows() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let request = life.request(Vec::new());
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!((world.load("words").await.metadata.snapshots().len(), life.recovered().await), (0, life.state.clone()));
    life.say(&[(1, "one")], &[]).await;
    assert_eq!((life.rows().await, life.recovered().await), (expect(&[(1, "one")]), life.state.clone()));
}

#[tokio::test]
async fn deletes_of_unknown_keys_still_make_their_commit_id_known() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    life.say(&[], &[7, 8]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one")]));
    let id = CommitId { incarnation: Incarnation(1), number: 2 };
    assert_eq!(life.recovered().await.unwrap().commit, id);
    assert!(life.committer.resolve(id, Incarnation(1)).await.unwrap().value);
}

#[tokio::test]
async fn a_key_index_at_its_bound_rejects_the_commit_before_it_and_names_the_setting() {
    let world = World::with_index_memory(40_000);
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let many: Vec<(i64, &str)> = (0..5_000).map(|id| (id, "x")).collect();
    let staged = life.write(&many, &[]).await;
    let request = life.request(vec![staged]);
    let CommitOutcome::Rejected { why } = life.commit(&request).await else { panic!("not rejected") };
    assert!(why.contains("`sink.keyIndex.memory` allows 1 MiB in all: set it to at least 1Mi"), "{why}");
    assert_eq!(life.rows().await, expect(&[(1, "one")]));
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 1);
    // What fits still goes.
    life.say(&[(2, "two")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
}

#[tokio::test]
async fn the_record_is_kept_in_a_control_table_without_rows() {
    let world = World::new();
    let sink = world.sink();
    let none = sink.pipeline_state().await.unwrap();
    assert_eq!(none.value, None);
    let record =
        |incarnation| PipelineState { format: FORMAT, incarnation: Incarnation(incarnation), ..PipelineState::default() };
    let StoreOutcome::Stored { token } = sink.store_pipeline_state(&none.token, &record(1)).await else { panic!("not stored") };
    let stale = sink.store_pipeline_state(&none.token, &record(2)).await;
    assert_eq!(stale, StoreOutcome::Conflict { found: Some(Box::new(record(1))), token: token.clone() });
    for incarnation in 2..40 {
        let found = sink.pipeline_state().await.unwrap();
        let stored = sink.store_pipeline_state(&found.token, &record(incarnation)).await;
        assert!(matches!(stored, StoreOutcome::Stored { .. }), "{stored:?}");
    }
    let loaded = world.load("urutau_desk").await;
    assert_eq!(loaded.metadata.snapshots().len(), 0);
    assert_eq!(world.files("urutau_desk", ".metadata.json").await.len(), 21);
    assert_eq!(world.sink().pipeline_state().await.unwrap().value, Some(record(39)));
    let forged = sink.store_pipeline_state(&Token::from("forged"), &record(50)).await;
    assert!(matches!(forged, StoreOutcome::Conflict { .. }), "{forged:?}");
}

#[tokio::test]
async fn a_row_is_found_by_its_key() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    life.say(&[(2, "zwei")], &[1]).await;
    let ask = |key: &str| Peek { limit: 1, key: Some(vec![key.to_owned()]) };
    let found = life.sink.peek(&life.table, &ask("2")).await.unwrap();
    assert_eq!(found.iter().flat_map(super::world::rows_of).collect::<Vec<_>>(), [(2, "zwei".to_owned())]);
    assert!(life.sink.peek(&life.table, &ask("1")).await.unwrap().is_empty());
    let wrong = life.sink.peek(&life.table, &ask("two")).await.unwrap_err();
    assert_eq!(wrong.kind, Kind::Config);
    assert_eq!(wrong.what, "no row can have that key: what was given for 'id' is no int64");
}

#[tokio::test]
async fn a_description_counts_live_rows() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let words = words(Mode::Upsert);
    assert_eq!(life.sink.describe(&contract::SinkTable { target: "nowhere".into(), ..words }).await.unwrap(), None);
    life.say(&[(1, "one"), (2, "two"), (3, "three")], &[]).await;
    life.say(&[(2, "zwei")], &[1]).await;
    let described = life.sink.describe(&life.table).await.unwrap().unwrap();
    assert_eq!((described.rows, described.data_files, described.dead_rows, described.snapshots), (2, 2, 2, 2));
    assert_eq!(described.state, life.state);
    assert_eq!(described.metadata, world.load("words").await.location);
}
