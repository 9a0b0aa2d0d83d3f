//! Generated columns of 18: sent if the publication says so, never without a word, and never at the price of the application.

use std::collections::BTreeMap;

use contract::{Chunks, Error, Kind, LogEvent, Severity, Source};
use postgres_source::PostgresSource;

use crate::desk::{read_until, request, source, wanted, whole};
use crate::postgres::{Postgres, Release};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, made int GENERATED ALWAYS AS (n * 2) STORED";

/// A database with the table, and a pipeline that may make what it needs.
fn begin(server: &Postgres, name: &str, table: &str) -> PostgresSource {
    server.sql("postgres", &format!("CREATE DATABASE {name}"));
    server.sql(name, &format!("{table}; INSERT INTO t VALUES (1, 10), (2, 20)"));
    source(&server.uri(name), name)
}

async fn columns(source: &PostgresSource) -> Result<Vec<String>, Error> {
    let described = source.describe(&[wanted("public.t")], &BTreeMap::new()).await?;
    Ok(described[0].schema.columns.iter().map(|column| column.name.clone()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_column_comes_by_chunk_and_by_the_log_where_a_run_makes_the_publication() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let table = format!("{TABLE}, never int GENERATED ALWAYS AS (n * 3) VIRTUAL)");
    let source = begin(&server, "made", &table);
    let before = columns(&source).await.unwrap();
    source.prepare(&[wanted("public.t")]).await.unwrap();
    assert_eq!(
        (before, columns(&source).await.unwrap()),
        (["id", "n", "made"].map(String::from).into(), ["id", "n", "made"].map(String::from).into())
    );
    let schema = source.describe(&[wanted("public.t")], &BTreeMap::new()).await.unwrap()[0].schema.clone();
    let opened = source.open().await.unwrap();
    let mut reader = source.stream(&opened.end.into(), std::slice::from_ref(&schema)).await.unwrap();
    server.sql("made", "UPDATE t SET n = n + 1");
    let end = source.open().await.unwrap().end;
    let reads = read_until(reader.as_mut(), &end).await;
    let events: Vec<&LogEvent> = reads.iter().flat_map(|read| &read.events).collect();
    assert!(events.iter().all(|event| !matches!(event, LogEvent::Schema { .. } | LogEvent::Refused { .. })), "{events:?}");
    let told: Vec<_> = reads.iter().flat_map(|read| &read.batches).map(|batch| batch.data.clone()).collect();
    let chunk = source.read_chunk(&request(&schema, whole(), 9)).await.unwrap().rows.unwrap();
    assert_eq!(told, std::slice::from_ref(&chunk.data));
    assert_eq!(
        format!("{:?}", chunk.data.column_by_name("made").unwrap()),
        format!("{:?}", arrow_array::Int32Array::from(vec![22, 42]))
    );
}

/// Whole old rows need every generated column, or the server refuses what the application does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_whose_changes_the_server_would_refuse_is_not_published() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let works = |name: &str| server.sql(name, "UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 2");
    let full = "ALTER TABLE t REPLICA IDENTITY FULL";

    let virtual_one = begin(&server, "never", &format!("{TABLE}, never int GENERATED ALWAYS AS (n * 3) VIRTUAL); {full}"));
    let error = virtual_one.prepare(&[wanted("public.t")]).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "postgres-identity"), "{error}");
    assert!(error.what.contains("(never)") && error.remedy.contains("REPLICA IDENTITY DEFAULT"), "{error}");
    works("never");

    // A publication that somebody made without them.
    let stored = begin(&server, "stored", &format!("{TABLE}); {full}; CREATE TABLE other (id int PRIMARY KEY)"));
    server.sql("stored", "CREATE PUBLICATION stored_pub FOR TABLE other");
    let error = stored.prepare(&[wanted("public.t")]).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "postgres-identity"), "{error}");
    works("stored");
    server.sql("stored", &error.remedy);
    stored.prepare(&[wanted("public.t")]).await.unwrap();
    works("stored");

    // One that the run makes sends them.
    let whole_rows = begin(&server, "whole", &format!("{TABLE}); {full}"));
    whole_rows.prepare(&[wanted("public.t")]).await.unwrap();
    works("whole");

    // Published by somebody: said, since it happens to the application now.
    server.sql("stored", "ALTER PUBLICATION stored_pub SET (publish_generated_columns = none)");
    let said = server.try_sql("stored", "UPDATE t SET n = 0").unwrap_err();
    assert!(said.contains("Replica identity must not contain unpublished generated columns"), "{said}");
    let findings = stored.preflight(&[wanted("public.t")]).await;
    let found = findings.iter().find(|finding| finding.code == "postgres-identity").unwrap();
    assert_eq!(found.severity, Severity::Error);
    server.sql("stored", &found.remedy);
    works("stored");
    assert!(stored.preflight(&[wanted("public.t")]).await.iter().all(|finding| finding.severity != Severity::Error));
}
