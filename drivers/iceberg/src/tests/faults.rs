//! Disks that are full or refuse: the error says what and where, nothing is lost, and it goes on when there is room.

use std::io::ErrorKind;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use contract::rows::Netted;
use contract::{Kind, Mode, Sink};
use kernel::outcome::CommitOutcome;

use super::world::{Life, World, batch, expect, netted, words};

#[tokio::test]
async fn a_full_disk_while_staging_is_transient_and_names_the_file() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    world.storage.fail(".parquet", ErrorKind::StorageFull);
    let rows = netted(&life.table, 0, batch(&life.table, &[(1, "one")]), batch(&life.table, &[]));
    let error = life.write_netted(rows.clone()).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Transient, "iceberg-disk-full"));
    assert!(error.what.starts_with("cannot create file:///") && error.what.contains("/words/data/i1-a1-001-"), "{}", error.what);
    world.storage.heal();
    let staged = life.write_netted(rows).await.unwrap();
    let request = life.request(vec![staged]);
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "one")]));
}

#[tokio::test]
async fn a_full_disk_anywhere_in_a_commit_is_transient_and_leaves_nothing() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    let staged = life.write(&[(1, "uno")], &[]).await;
    let request = life.request(vec![staged]);
    for part in [".puffin", "/metadata/i1-data", "/metadata/i1-list", ".metadata.json"] {
        let before = [world.files("words", "").await].concat();
        world.storage.fail(part, ErrorKind::StorageFull);
        let CommitOutcome::Transient { why } = life.commit(&request).await else { panic!("{part}: not transient") };
        assert!(why.contains("iceberg-disk-full") && why.contains(part), "{part}: {why}");
        world.storage.heal();
        assert_eq!(world.files("words", "").await, before, "{part}");
        assert_eq!(life.rows().await, expect(&[(1, "one"), (2, "two")]), "{part}");
    }
    assert!(matches!(life.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(life.rows().await, expect(&[(1, "uno"), (2, "two")]));
}

#[tokio::test]
async fn missing_rights_are_a_matter_of_configuration() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    world.storage.fail(".parquet", ErrorKind::PermissionDenied);
    let rows = netted(&life.table, 0, batch(&life.table, &[(1, "one")]), batch(&life.table, &[]));
    let error = life.write_netted(rows).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-rights"));
}

#[tokio::test]
async fn a_damaged_vector_is_told_by_name_and_rejects_the_table() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    life.say(&[(1, "one"), (2, "two")], &[]).await;
    life.say(&[(1, "uno")], &[]).await;
    let vectors = world.files("words", ".puffin").await;
    let path = vectors[0].trim_start_matches("file://");
    let mut bytes = std::fs::read(path).unwrap();
    bytes[30] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let mut next = Life::begin(&world, &words(Mode::Upsert), 2).await;
    let staged = next.write(&[(3, "three")], &[]).await;
    let request = next.request(vec![staged]);
    let CommitOutcome::Rejected { why } = next.commit(&request).await else { panic!("not rejected") };
    assert!(why.contains("has checksum") && why.contains(path), "{why}");
}

#[tokio::test]
async fn a_null_key_is_refused_with_its_column() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let rows = netted(&life.table, 0, batch(&life.table, &[(1, "one")]), batch(&life.table, &[]));
    let ids = Int64Array::from(vec![None]);
    let words = rows.upserts.column(1).clone();
    let upserts = RecordBatch::try_new(rows.upserts.schema(), vec![Arc::new(ids), words]).unwrap();
    let error = life.write_netted(Netted { upserts, ..rows }).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert_eq!(error.what, "column 'id' of 'desk.words' is in the key and is null in a row");
    assert!(world.files("words", ".parquet").await.is_empty());
}

#[tokio::test]
async fn a_warehouse_that_cannot_be_made_says_where() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "not a directory").unwrap();
    let section = serde_json::json!({"uri": directory.path().join("file/warehouse"), "namespace": "shop"});
    let sink = crate::IcebergSink::open("desk", section.as_object().unwrap()).await.unwrap();
    let error = sink.ensure_table(&words(Mode::Upsert)).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "iceberg-warehouse"));
    assert!(error.what.contains("/file/warehouse"), "{}", error.what);
}

#[tokio::test]
async fn rows_of_columns_that_the_table_cannot_follow_are_refused() {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let rows = netted(&life.table, 0, batch(&life.table, &[(1, "one")]), batch(&life.table, &[]));
    let mut schema = (*rows.schema).clone();
    schema.columns[1].kind = rows::Type::Date;
    let error = life.write_netted(Netted { schema: Arc::new(schema), ..rows }).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Rejected, "columns-changed"));
}
