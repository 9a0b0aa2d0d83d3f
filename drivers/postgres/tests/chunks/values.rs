//! Values: what a chunk tells of a row is what the log tells of it, for every type.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use contract::serde_json::{self, Value as Json, json};
use contract::{Chunks, Kind, LogEvent, Source, TableRequest};
use kernel::id::Bound;
use postgres_source::PostgresSource;
use rows::{Operation, RowPhase, Type};

use crate::desk::{column_texts, range, read_until, request, wanted, whole};
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
    let request = TableRequest { columns, ..wanted("public.everything") };
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

/// What a type without a binary form has for text is made by settings: those of the database and of the pipeline file must not reach it.
async fn a_type_without_a_binary_form_has_one_text(release: Release) {
    let server = Postgres::start(release, &[]);
    let mut columns = vec!["id int PRIMARY KEY".to_owned()];
    for of in ["float8", "timestamptz", "date", "interval", "bytea", "regclass"] {
        let (length, by_value) = match of {
            "interval" => ("16", ""),
            "bytea" => ("variable", ""),
            "date" | "regclass" => ("4", ", PASSEDBYVALUE"),
            _ => ("8", ", PASSEDBYVALUE"),
        };
        let align = if matches!(of, "date" | "regclass" | "bytea") { "int4" } else { "double" };
        let (input, output) = (format!("{of}in"), format!("{of}out"));
        let named = |name: &str| {
            if matches!(of, "timestamptz" | "date" | "interval") { name.replace(of, &format!("{of}_")) } else { name.into() }
        };
        let arguments = if matches!(of, "timestamptz" | "interval") { "cstring, oid, int" } else { "cstring" };
        server.sql(
            "postgres",
            &format!(
                "CREATE TYPE plain_{of};
                 CREATE FUNCTION plain_{of}_in({arguments}) RETURNS plain_{of} AS '{}' LANGUAGE internal STRICT;
                 CREATE FUNCTION plain_{of}_out(plain_{of}) RETURNS cstring AS '{}' LANGUAGE internal STRICT;
                 CREATE TYPE plain_{of} (INPUT = plain_{of}_in, OUTPUT = plain_{of}_out, INTERNALLENGTH = {length}, ALIGNMENT = {align}{by_value})",
                named(&input),
                named(&output)
            ),
        );
        columns.push(format!("a_{of} plain_{of}"));
    }
    server.sql("postgres", &format!("CREATE TABLE plain ({}, touched int)", columns.join(", ")));
    server.sql(
        "postgres",
        "INSERT INTO plain VALUES (1, '0.30000000000000004', '2024-02-03 04:05:06+07', '2024-02-03', '1 day 02:03:04', '\\xff00', 'plain')",
    );
    for setting in [
        "extra_float_digits = -3",
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'SQL, DMY'",
        "IntervalStyle = iso_8601",
        "bytea_output = escape",
    ] {
        server.sql("postgres", &format!("ALTER DATABASE postgres SET {setting}"));
    }
    server.sql("postgres", "CREATE PUBLICATION plain_pub FOR TABLE plain");
    server.sql("postgres", "SELECT pg_create_logical_replication_slot('plain', 'pgoutput')");
    let own = json!({ "extra_float_digits": "0", "TimeZone": "America/Lima", "search_path": "public" });
    let postgres =
        json!({ "host": "127.0.0.1", "port": server.port(), "database": "postgres", "username": "postgres", "params": own });
    let Json::Object(settings) = json!({ "slotName": "plain", "postgres": postgres }) else { unreachable!() };
    let source = PostgresSource::new("plain", &settings).unwrap();
    let schema = source.describe(&[wanted("public.plain")], &BTreeMap::new()).await.unwrap()[0].schema.clone();
    let opened = source.open().await.unwrap();
    let mut reader = source.stream(&opened.end.into(), std::slice::from_ref(&schema)).await.unwrap();
    server.sql("postgres", "UPDATE plain SET touched = 1");
    let end = source.open().await.unwrap().end;
    let told: Vec<_> = read_until(reader.as_mut(), &end).await.iter().flat_map(|read| read.batches.clone()).collect();
    let chunk = source.read_chunk(&request(&schema, whole(), 9)).await.unwrap().rows.unwrap();
    assert_eq!(told.len(), 1);
    let texts = |batch: &RecordBatch| {
        let columns = ["a_float8", "a_timestamptz", "a_date", "a_interval", "a_bytea", "a_regclass"];
        columns.map(|column| column_texts(batch, column).concat())
    };
    assert_eq!(texts(&told[0].data), texts(&chunk.data));
    assert_eq!(
        texts(&told[0].data),
        ["0.30000000000000004", "2024-02-02 21:05:06+00", "2024-02-03", "1 day 02:03:04", "\\xff00", "public.plain"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_without_a_binary_form_has_one_text_in_postgresql_15() {
    a_type_without_a_binary_form_has_one_text(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_type_without_a_binary_form_has_one_text_in_postgresql_18() {
    a_type_without_a_binary_form_has_one_text(Release::Eighteen).await;
}
