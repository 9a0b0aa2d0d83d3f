//! Values: what a chunk tells of a row is what the log tells of it, for every type.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use contract::serde_json::{self, Value as Json, json};
use contract::{Chunks, Kind, LogEvent, Source, TableRequest};
use kernel::id::{Bound, TableName};
use postgres_source::PostgresSource;
use rows::{Operation, RowPhase, Type};

use crate::desk::{range, read_until, request, whole};
use crate::everything;
use crate::postgres::{Postgres, Release};

/// A row of the log, or that it was refused.
type Told = Option<RecordBatch>;

/// All rows as the log tells them once another column of each was changed.
async fn told(
    source: &PostgresSource,
    server: &Postgres,
    release: Release,
    columns: BTreeMap<String, Type>,
) -> (std::sync::Arc<rows::TableSchema>, Vec<Told>) {
    let request = TableRequest {
        table: TableName::from("public.everything"),
        primary_key: None,
        columns,
        before_is_full: false,
        keeps_every_row: false,
    };
    let schema = source.describe(&[request], &BTreeMap::new()).await.unwrap()[0].schema.clone();
    let opened = source.open().await.unwrap();
    let mut reader = source.stream(&opened.end.into(), std::slice::from_ref(&schema)).await.unwrap();
    for row in 0..everything::rows(release) {
        server.sql("postgres", &format!("UPDATE everything SET touched = coalesce(touched, 0) + 1 WHERE id = {row}"));
    }
    let end = source.open().await.unwrap().end;
    let mut told = Vec::new();
    for read in read_until(reader.as_mut(), &end).await {
        for event in &read.events {
            match event {
                LogEvent::Rows { batch, rows, .. } => {
                    let batch = &read.batches[*batch];
                    assert_eq!(batch.tail.operations[rows.start], Operation::Update);
                    told.extend(rows.clone().map(|row| Some(batch.data.slice(row, 1))));
                }
                LogEvent::Refused { .. } => told.push(None),
                LogEvent::Ended { .. } | LogEvent::Truncated { .. } | LogEvent::Schema { .. } | LogEvent::Keepalive { .. } => {}
            }
        }
    }
    assert_eq!(told.len(), everything::rows(release));
    (schema, told)
}

async fn a_chunk_tells_what_the_log_tells(release: Release) {
    let server = Postgres::start(release, &["timezone=UTC", "lc_monetary=C"]);
    everything::fill(&server, release);
    server.sql("postgres", "ALTER TABLE everything ADD COLUMN touched int");
    let Json::Object(settings) = json!({ "uri": server.uri("postgres"), "slotName": "values" }) else { unreachable!() };
    let source = PostgresSource::new("values", &settings).unwrap();

    // As text nothing is refused.
    let (schema, told_as_text) = told(&source, &server, release, everything::as_text(release)).await;
    let chunk = source.read_chunk(&request(&schema, whole(), 1000)).await.unwrap();
    let rows = chunk.rows.unwrap();
    rows.check().unwrap();
    assert!(rows.tail.operations.iter().all(|operation| *operation == Operation::Read));
    assert_eq!((rows.tail.phase, rows.rows()), (RowPhase::Snapshot, everything::rows(release)));
    assert_eq!(chunk.schema, schema);
    for (row, told) in told_as_text.iter().enumerate() {
        assert_eq!(Some(&rows.data.slice(row, 1)), told.as_ref(), "row {row}");
    }
    let differences = everything::differences(&server, release, std::slice::from_ref(&rows.data));
    assert!(differences.is_empty(), "{}", differences.join("\n"));

    // In their own columns the same values are refused, row by row.
    let first = source.read_chunk(&request(&schema, whole(), 1)).await.unwrap().end.unwrap();
    let (schema, told) = told(&source, &server, release, BTreeMap::new()).await;
    let mut refused = 0;
    for (row, told) in told.iter().enumerate() {
        let (before, this) = (row.checked_sub(1).map(|before| bound(&first, before)), bound(&first, row));
        let chunk = source.read_chunk(&request(&schema, range(before.as_ref(), Some(&this)), 9)).await;
        match (chunk, told) {
            (Ok(chunk), Some(told)) => {
                assert_eq!(chunk.end, Some(this));
                assert_eq!(&chunk.rows.unwrap().data, told, "row {row}");
            }
            (Err(error), None) => {
                refused += 1;
                assert_eq!((error.kind, error.code), (Kind::Rejected, "postgres-value"), "{error}");
                assert!(error.what.contains("public.everything") && error.what.contains("column '"), "{error}");
            }
            (chunk, told) => panic!("row {row}: the log took it: {}, the chunk: {chunk:?}", told.is_some()),
        }
    }
    assert!(refused > 0, "rows with infinite times are among them");
}

/// Where the row of this id is, as a bound says it.
fn bound(like: &Bound, id: usize) -> Bound {
    let mut parts: Vec<Json> = serde_json::from_str(like.as_str()).unwrap();
    *parts.last_mut().unwrap() = json!(id.to_string());
    Bound::from(Json::Array(parts).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_of_postgresql_15_tells_what_its_log_tells() {
    a_chunk_tells_what_the_log_tells(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_of_postgresql_18_tells_what_its_log_tells() {
    a_chunk_tells_what_the_log_tells(Release::Eighteen).await;
}
