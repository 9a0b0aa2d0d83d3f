//! Types that change under a table's rows, and types that would stop the log.

use contract::{Kind, Limit, LogEvent, Severity, Source};

use crate::desk::{Desk, column_texts, read_until, texts, wanted, whole};
use crate::postgres::{Postgres, Release};

/// The log tells each value as it was at its place, also with a part of a type that was not there when reading began; a chunk tells what
/// there is now.
async fn a_composite_whose_type_is_changed_is_told_as_it_was(release: Release) {
    let server = Postgres::start(release, &[]);
    let desk = Desk::open(
        &server,
        "moved",
        "CREATE TYPE pair AS (n int, t text); CREATE TABLE t (id int PRIMARY KEY, p pair, ps pair[], touched int);
         INSERT INTO t VALUES (1, '(1,x)', ARRAY['(1,x)'::pair])",
    );
    let schema = desk.describe("public.t").await;
    assert_eq!(texts(&desk.walk(&schema, whole(), 9).await, "p"), ["(1,x)"]);
    let opened = desk.source.open().await.unwrap();
    let mut reader = desk.source.stream(&opened.end.into(), std::slice::from_ref(&schema)).await.unwrap();
    for statement in [
        "INSERT INTO t VALUES (2, '(2,y)')",
        "CREATE TYPE mood AS ENUM ('sad', 'so so')",
        "ALTER TYPE pair ADD ATTRIBUTE m mood",
        "UPDATE t SET p = '(2,y,\"so so\")' WHERE id = 2",
        // Another attribute of the same type stands where one was.
        "ALTER TYPE pair DROP ATTRIBUTE t",
        "ALTER TYPE pair ADD ATTRIBUTE u text",
        "INSERT INTO t VALUES (3, '(3,sad,z)')",
        "UPDATE t SET touched = 1 WHERE id = 1",
    ] {
        desk.sql(statement);
    }
    let end = desk.source.open().await.unwrap().end;
    let reads = read_until(reader.as_mut(), &end).await;
    let batches = || reads.iter().flat_map(|read| &read.batches);
    let told: Vec<String> = batches().flat_map(|batch| column_texts(&batch.data, "p")).collect();
    assert_eq!(told, ["(2,y)", r#"(2,y,"so so")"#, "(3,sad,z)", "(1,,)"]);
    let refused = |event: &LogEvent| matches!(event, LogEvent::Refused { .. } | LogEvent::Schema { .. });
    assert!(!reads.iter().any(|read| read.events.iter().any(refused)));

    // The types that the first chunk looked up are not those of now: that is found out, and the next attempt knows them.
    let error = desk.chunk(&schema, whole(), 9).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Transient, "postgres-type"), "{error}");
    let found = texts(&desk.walk(&schema, whole(), 9).await, "p");
    assert_eq!(found.join("\n"), desk.sql("SELECT p::text FROM t ORDER BY id"));
    assert_eq!(found, ["(1,,)", r#"(2,"so so",)"#, "(3,sad,z)"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composite_whose_type_is_changed_is_told_as_it_was_by_postgresql_15() {
    a_composite_whose_type_is_changed_is_told_as_it_was(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composite_whose_type_is_changed_is_told_as_it_was_by_postgresql_18() {
    a_composite_whose_type_is_changed_is_told_as_it_was(Release::Eighteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_at_which_the_log_would_stop_is_refused_before_it_does() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "stopped",
        "CREATE TYPE granted AS (who text, acl aclitem); CREATE DOMAIN grants AS granted[];
         CREATE TABLE plain (id int PRIMARY KEY, acl aclitem); CREATE TABLE arrays (id int PRIMARY KEY, acls aclitem[]);
         CREATE TABLE deep (id int PRIMARY KEY, g grants)",
    );
    desk.describe("public.plain").await;
    for (table, column, of) in
        [("arrays", "'acls'", "array of aclitem"), ("deep", "'g'", "array of public.granted (attribute 'acl': aclitem)")]
    {
        let error = desk.try_describe(&format!("public.{table}")).await.unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "postgres-type"), "{error}");
        assert!(error.what.contains(column) && error.what.contains(of), "{error}");
        assert!(error.remedy.contains(&format!("FOR TABLE \"public\".\"{table}\" (...), ...")), "{error}");
    }
    // The plain one would be read, but not beside the others.
    let findings = desk.source.preflight(&[wanted("public.plain")]).await;
    let named = findings.iter().filter(|finding| finding.code == "postgres-type" && finding.severity == Severity::Error);
    assert_eq!(named.map(|finding| finding.subject.as_str()).collect::<Vec<_>>(), ["public.arrays", "public.deep"]);
    // That it would is what the server says.
    desk.sql("INSERT INTO plain VALUES (1, '=r/postgres')");
    let peek = "SELECT count(*) FROM pg_logical_slot_peek_binary_changes('stopped', NULL, NULL, 'proto_version', '1', \
                'publication_names', 'stopped_pub', 'binary', 'true')";
    desk.sql(peek);
    desk.sql("INSERT INTO arrays VALUES (1, '{=r/postgres}')");
    let said = server.try_sql("stopped", peek).unwrap_err();
    assert!(said.contains("no binary output function available for type aclitem"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_comes_later_and_ends_the_log_is_named_with_what_helps() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let desk = Desk::open(&server, "ended", "CREATE TABLE t (id int PRIMARY KEY)");
    let schema = desk.describe("public.t").await;
    let opened = desk.source.open().await.unwrap();
    let mut reader = desk.source.stream(&opened.end.into(), &[schema]).await.unwrap();
    desk.sql("INSERT INTO t VALUES (1)");
    desk.sql("ALTER TABLE t ADD COLUMN acls aclitem[]");
    desk.sql("INSERT INTO t VALUES (2, '{=r/postgres}')");
    let mut rows = 0;
    let error = loop {
        match reader.next(Limit { rows: 10, bytes: 1 << 20 }).await {
            Ok(read) => rows += read.batches.iter().map(|batch| batch.rows()).sum::<usize>(),
            Err(error) => break error,
        }
    };
    assert_eq!((rows, error.kind, error.code), (1, Kind::Config, "postgres-type"), "{error}");
    assert!(error.what.contains("aclitem") && error.remedy.contains("pg_drop_replication_slot('ended')"), "{error}");
    let named = desk.try_describe("public.t").await.unwrap_err();
    assert!(named.what.contains("'acls'"), "{named}");
}
