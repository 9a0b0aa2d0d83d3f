//! What others do to a table: their commits lose neither the state nor rows, and what cannot be told is an error.

use std::collections::HashMap;

use contract::{CommitRequest, Kind, Mode, Sink, SinkTable};
use iceberg::TableUpdate;
use iceberg::spec::{DataFile, MAIN_BRANCH};
use kernel::outcome::CommitOutcome;
use kernel::position::{Cut, Offset, Position};

use super::world::{Life, World, expect, ident, words};
use crate::delta::{Removed, RowDelta};
use crate::storage::{Local, Storage};
use crate::write::StagedPart;

/// A data file with rows, made as our own writer makes it.
pub(super) async fn data_file(life: &mut Life, rows: &[(i64, &str)]) -> DataFile {
    let staged = life.write(rows, &[]).await;
    let part: &StagedPart = staged.downcast_ref().unwrap();
    part.files[0].file.clone()
}

/// After a foreign commit the same request on the new token goes through.
pub(super) async fn commit_over(life: &mut Life, upserts: &[(i64, &str)], deletes: &[i64]) {
    let staged = life.write(upserts, deletes).await;
    let request = life.request(vec![staged]);
    let CommitOutcome::Conflict { found, token } = life.commit(&request).await else { panic!("no conflict") };
    assert_eq!(found.map(|state| *state), life.state);
    let outcome = life.commit(&CommitRequest { token, ..request }).await;
    assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_foreign_snapshot_without_files_loses_nothing() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    world.foreign_snapshot("words", RowDelta::default()).await;
    assert_eq!(life.recovered().await, life.state);
    commit_over(&mut life, &[(1, "uno"), (3, "three")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "uno"), (3, "three")]));
}

#[tokio::test]
async fn rows_are_found_again_after_a_compaction() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two"), (3, "three")], &[]).await;
    life.say(&[(2, "zwei")], &[3]).await;
    let rewritten = data_file(&mut life, &[(2, "zwei"), (1, "one")]).await;
    world.foreign_snapshot("words", RowDelta { added: vec![rewritten], removed: Removed::All, ..RowDelta::default() }).await;
    assert_eq!((life.recovered().await, life.rows().await), (life.state.clone(), expect(&[(1, "one"), (2, "zwei")])));
    commit_over(&mut life, &[(1, "uno"), (3, "drei")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "uno"), (3, "drei")]));
}

#[tokio::test]
async fn rows_that_others_appended_are_replaced_by_key() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let theirs = data_file(&mut life, &[(8, "theirs"), (9, "theirs")]).await;
    world.foreign_snapshot("words", RowDelta { added: vec![theirs], ..RowDelta::default() }).await;
    commit_over(&mut life, &[(8, "ours")], &[9]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (8, "ours")]));
}

#[tokio::test]
async fn after_a_rollback_the_state_is_that_of_the_data() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let (first, snapshot) = (life.state.clone(), world.load("words").await.metadata.current_snapshot_id().unwrap());
    life.say(&[(1, "uno")], &[2]).await;
    let staged = life.write(&[(4, "four")], &[]).await;
    let request = life.request(vec![staged]);
    world.roll_back("words", snapshot).await;

    assert_eq!(life.recovered().await, first);
    let CommitOutcome::Conflict { found, token } = life.commit(&request).await else { panic!("no conflict") };
    assert_eq!(found.map(|state| *state), first);
    assert_ne!(token, life.token);
    // The table is set back: the life goes on from what was found. Rows live again whose keys were elsewhere.
    (life.state, life.token) = (first, token);
    life.say(&[(1, "eins"), (5, "five")], &[2]).await;
    assert_eq!(life.rows().await, expect(&[(1, "eins"), (5, "five")]));
    assert_eq!(life.recovered().await, life.state);
}

#[tokio::test]
async fn a_state_without_data_is_forgotten_with_the_data_that_it_spoke_of() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let (first, snapshot) = (life.state.clone(), world.load("words").await.metadata.current_snapshot_id().unwrap());
    life.say(&[(2, "two")], &[]).await;
    let mut later = life.state.clone().unwrap();
    later.cut = Cut::at(Position::of("log".into(), Offset(900)));
    let request = CommitRequest { state: later.clone(), ..life.request(Vec::new()) };
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.recovered().await, Some(later.clone()));
    world.foreign_snapshot("words", RowDelta::default()).await;
    assert_eq!(life.recovered().await, Some(later));
    world.roll_back("words", snapshot).await;
    assert_eq!(life.recovered().await, first);
}

#[tokio::test]
async fn a_lineage_that_others_expired_is_told_by_older_metadata_or_not_at_all() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let ours = world.load("words").await.metadata.current_snapshot_id().unwrap();
    let between = world.foreign_snapshot("words", RowDelta::default()).await;
    world.foreign_snapshot("words", RowDelta::default()).await;
    let older = world.files("words", ".metadata.json").await;
    world.change("words", vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![ours, between] }]).await;
    assert_eq!(world.load("words").await.metadata.snapshots().len(), 1);
    assert_eq!(life.recovered().await, life.state);
    for file in older {
        Local.delete(&file).unwrap();
    }
    let error = life.sink.recover(&life.table).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-state-unproven"));
}

#[tokio::test]
async fn a_state_whose_own_snapshot_was_expired_is_known_from_the_properties() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let ours = world.load("words").await.metadata.current_snapshot_id().unwrap();
    world.foreign_snapshot("words", RowDelta::default()).await;
    world.change("words", vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![ours] }]).await;
    assert_eq!(life.recovered().await, life.state);
    commit_over(&mut life, &[(2, "two")], &[]).await;
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
}

#[tokio::test]
async fn a_table_emptied_of_its_snapshots_has_no_state() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    world.change("words", vec![TableUpdate::RemoveSnapshotRef { ref_name: MAIN_BRANCH.into() }]).await;
    assert_eq!(life.recovered().await, None);
}

#[tokio::test]
async fn a_property_that_others_set_is_a_conflict_and_no_more() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one")], &[]).await;
    let updates = HashMap::from([("owner".to_owned(), "somebody".to_owned())]);
    world.change("words", vec![TableUpdate::SetProperties { updates }]).await;
    commit_over(&mut life, &[(2, "two")], &[]).await;
    assert_eq!(world.load("words").await.metadata.properties()["owner"], "somebody");
    assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]));
}

#[tokio::test]
async fn a_table_of_another_pipeline_is_refused_by_name() {
    let world = World::new();
    let life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let updates = HashMap::from([("urutau.pipeline".to_owned(), "other".to_owned())]);
    world.change("words", vec![TableUpdate::SetProperties { updates }]).await;
    let error = life.sink.ensure_table(&life.table).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-foreign-table"));
    assert_eq!(error.what, "table 'shop.words' was made by another pipeline: by 'other', not by 'desk'");
    let findings = life.sink.preflight(std::slice::from_ref(&life.table)).await;
    assert_eq!(findings.iter().map(|f| f.code).collect::<Vec<_>>(), ["iceberg-foreign-table"]);
}

#[tokio::test]
async fn an_empty_table_that_somebody_made_is_taken_and_a_filled_one_is_not() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let removals = vec!["urutau.pipeline".to_owned()];
    world.change("words", vec![TableUpdate::RemoveProperties { removals: removals.clone() }]).await;
    life.sink.ensure_table(&life.table).await.unwrap();
    life.token = life.sink.recover(&life.table).await.unwrap().token;
    life.say(&[(1, "one")], &[]).await;
    assert_eq!(world.load("words").await.metadata.properties()["urutau.pipeline"], "desk");
    world.change("words", vec![TableUpdate::RemoveProperties { removals }]).await;
    let error = life.sink.ensure_table(&life.table).await.unwrap_err();
    assert_eq!(error.what, "table 'shop.words' was not made by pipeline 'desk': it has no property urutau.pipeline");
}

#[tokio::test]
async fn a_dropped_directory_is_not_used_for_another_table() {
    let world = World::new();
    let life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let first = world.load("words").await.metadata.location().to_owned();
    let other = World::new();
    drop(other);
    let table = SinkTable { target: "words".into(), ..life.table.clone() };
    // Another catalogue in the same directory, as after catalog.db was lost.
    let root = std::path::Path::new(first.trim_start_matches("file://")).ancestors().nth(2).unwrap().to_owned();
    std::fs::remove_file(root.join("catalog.db")).unwrap();
    let catalog = crate::catalog::Embedded::new(&root, std::sync::Arc::new(Local)).unwrap();
    crate::table::ensure(&catalog, &ident("words"), &table, "desk", None).await.unwrap();
    let second = crate::catalog::Catalog::load(&catalog, &ident("words")).await.unwrap().unwrap();
    assert_ne!(second.metadata.location(), first);
    assert!(second.metadata.location().starts_with(&first), "{}", second.metadata.location());
}
