//! Values of every type, written by SQL, read from the log of a real server, and compared with what the server itself makes of them
//! as text.

#[path = "common/everything.rs"]
#[allow(unreachable_pub, reason = "shared with other tests of this driver")]
mod everything;
#[path = "../../../e2e/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "the harness of the end-to-end tests, of which this test needs a part")]
mod postgres;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use contract::serde_json::{Value as Json, json};
use contract::{Limit, LogEvent, Source, TableRequest};
use kernel::id::TableName;
use postgres::{Postgres, Release};
use postgres_source::PostgresSource;
use rows::{TableSchema, Type};

fn source(server: &Postgres) -> PostgresSource {
    let Json::Object(settings) = json!({ "uri": server.uri("postgres"), "slotName": "values" }) else {
        unreachable!("settings are an object")
    };
    PostgresSource::new("values", &settings).unwrap()
}

async fn read(
    source: &PostgresSource,
    release: Release,
    columns: BTreeMap<String, Type>,
) -> (Arc<TableSchema>, Vec<RecordBatch>, Vec<String>) {
    let request = TableRequest {
        table: TableName::from("public.everything"),
        primary_key: None,
        columns,
        before_is_full: false,
        keeps_every_row: false,
    };
    let described = source.describe(&[request], &BTreeMap::new()).await.unwrap();
    let schema = described[0].schema.clone();
    let opened = source.open().await.unwrap();
    let mut reader = source.stream(&opened.floor.clone().into(), std::slice::from_ref(&schema)).await.unwrap();
    let (mut batches, mut refused, mut ends) = (Vec::new(), Vec::new(), 0);
    while ends < everything::rows(release) {
        let read = reader.next(Limit { rows: 1000, bytes: 1 << 30 }).await.unwrap();
        for event in &read.events {
            match event {
                LogEvent::Ended { .. } => ends += 1,
                LogEvent::Refused { error, .. } => refused.push(error.what.clone()),
                LogEvent::Rows { .. } | LogEvent::Truncated { .. } | LogEvent::Schema { .. } | LogEvent::Keepalive { .. } => {}
            }
        }
        for batch in read.batches {
            batch.check().unwrap();
            batches.push(batch.data.clone());
        }
    }
    (schema, batches, refused)
}

async fn every_value_is_written_as_the_server_writes_it(release: Release) {
    let server = Postgres::start(release, &["timezone=UTC", "lc_monetary=C"]);
    everything::fill(&server, release);
    let (_, batches, refused) = read(&source(&server), release, everything::as_text(release)).await;
    assert_eq!(refused, [""; 0]);
    let differences = everything::differences(&server, release, &batches);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_is_written_as_postgresql_15_writes_it() {
    every_value_is_written_as_the_server_writes_it(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_is_written_as_postgresql_18_writes_it() {
    every_value_is_written_as_the_server_writes_it(Release::Eighteen).await;
}

async fn every_type_has_a_column(release: Release) {
    let server = Postgres::start(release, &["timezone=UTC"]);
    everything::fill(&server, release);
    let (schema, batches, refused) = read(&source(&server), release, BTreeMap::new()).await;
    let unknown: Vec<_> = schema.columns.iter().filter(|column| matches!(column.kind, Type::Unknown(_))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // Rows that hold an infinite or endless time, or an array that no list can be: one a row, whatever else is in it. The others came.
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows + refused.len(), everything::rows(release));
    let expected = ["it is above", "it is below", "more than one dimension"];
    assert!(!refused.is_empty() && refused.iter().all(|what| expected.iter().any(|why| what.contains(why))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_postgresql_15_has_a_column_and_only_what_that_cannot_hold_is_refused() {
    every_type_has_a_column(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_postgresql_18_has_a_column_and_only_what_that_cannot_hold_is_refused() {
    every_type_has_a_column(Release::Eighteen).await;
}
