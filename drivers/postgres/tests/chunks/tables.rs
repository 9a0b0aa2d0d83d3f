//! What a table is: partitioned, inherited from, published in part, changed meanwhile, locked, not ours to read.

use std::collections::BTreeMap;

use contract::{ChunkRequest, Chunks, Kind, Severity, Source, TableRequest};

use crate::desk::{Desk, as_text, range, request, texts, wanted, whole};
use crate::postgres::{Postgres, Release};
use crate::visibility::{Open, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_publications_filter_and_columns_hold_for_a_chunk_as_for_the_log() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let desk = Desk::open(
        &server,
        "filtered",
        "CREATE SCHEMA other; CREATE FUNCTION other.odd(n int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT n % 2 = 1';
         CREATE TABLE t (secret text, id text PRIMARY KEY, \"N\" int, made int GENERATED ALWAYS AS (\"N\" * 2) STORED, t text);
         ALTER TABLE t REPLICA IDENTITY FULL",
    );
    desk.sql("DROP PUBLICATION filtered_pub; CREATE PUBLICATION filtered_pub FOR TABLE t (id, \"N\", made, t) WHERE (\"N\" % 2 = 1 AND id <> 'no''ne')");
    desk.sql("INSERT INTO t (secret, id, \"N\", t) SELECT 'x', n, n, n FROM generate_series(1, 9) n; INSERT INTO t (id, \"N\") VALUES ('no''ne', 1)");
    let schema = desk.describe_as("public.t", None, as_text(&["N", "made"])).await;
    let chunks = desk.walk(&schema, whole(), 3).await;
    assert_eq!(texts(&chunks, "N"), ["1", "3", "5", "7", "9"]);
    assert_eq!(texts(&chunks, "made"), ["2", "6", "10", "14", "18"]);
    let names: Vec<_> = chunks[0].schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "N", "made", "t"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_table_is_read_by_its_root_and_children_by_inheritance_are_not() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "trees",
        "CREATE TABLE root (id int, k text, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
         CREATE TABLE root_a PARTITION OF root FOR VALUES IN ('a'); CREATE TABLE root_b PARTITION OF root FOR VALUES IN ('b');
         INSERT INTO root SELECT n, chr(97 + n % 2) FROM generate_series(1, 20) n;
         CREATE TABLE parent (id text PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
         INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (3)",
    );
    let root = desk.describe_as("public.root", None, as_text(&["id"])).await;
    let chunks = desk.walk(&root, whole(), 7).await;
    assert_eq!(texts(&chunks, "id").join(" "), "2 4 6 8 10 12 14 16 18 20 1 3 5 7 9 11 13 15 17 19");
    // What older rows have in a column is noted at the partitions alone.
    desk.sql("ALTER TABLE root ADD COLUMN w int DEFAULT 7");
    let grown = desk.chunk(&root, whole(), 7).await.unwrap().schema;
    assert_eq!(grown.columns.last().map(|column| (column.name.as_str(), column.initial.as_deref())), Some(("w", Some("7"))));
    desk.sql("UPDATE root SET w = 8 WHERE id = 2");
    let end = desk.source.open().await.unwrap().end;
    let told = desk.log(std::slice::from_ref(&root), &end).await;
    assert_eq!(told.iter().flat_map(|read| &read.batches).next_back().unwrap().schema, grown);
    let parent = desk.describe("public.parent").await;
    assert_eq!(texts(&desk.walk(&parent, whole(), 7).await, "id"), ["1", "2"]);
    desk.sql("ALTER PUBLICATION trees_pub SET (publish_via_partition_root = false)");
    let error = desk.chunk(&root, whole(), 7).await.unwrap_err();
    // As the publication has it now it is in no way the root that is published.
    assert_eq!((error.kind, error.code), (Kind::Config, "postgres-publication"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_changes_between_chunks_answers_with_its_new_columns() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "changed",
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(3)); INSERT INTO t SELECT n, n FROM generate_series(1, 9) n",
    );
    let before = desk.describe_as("public.t", None, as_text(&["id"])).await;
    let first = desk.chunk(&before, whole(), 4).await.unwrap();
    assert_eq!(first.schema, before);
    desk.sql("ALTER TABLE t ADD COLUMN day date DEFAULT '2024-02-29', DROP COLUMN v, ADD COLUMN w text DEFAULT 'w'");
    let second = desk.chunk(&before, range(first.end.as_ref(), None), 9).await.unwrap();
    let columns: Vec<_> = second.schema.columns.iter().map(|column| format!("{} {}", column.name, column.kind)).collect();
    assert_eq!(columns, ["id string", "day date", "w string"]);
    let initials: Vec<_> = second.schema.columns.iter().map(|column| column.initial.as_deref()).collect();
    assert_eq!(initials, [None, Some("2024-02-29"), Some("w")]);
    assert_eq!(second.schema.key, [0]);
    assert_eq!(
        (texts(std::slice::from_ref(&second), "id"), texts(std::slice::from_ref(&second), "w")),
        ((5..=9).map(|n| n.to_string()).collect(), vec!["w".to_owned(); 5])
    );
    // The log comes to the same schema.
    desk.sql("UPDATE t SET w = 'x' WHERE id = 1");
    let end = desk.source.open().await.unwrap().end;
    let reads = desk.log(std::slice::from_ref(&before), &end).await;
    assert_eq!(reads.iter().flat_map(|read| &read.batches).next_back().unwrap().schema, second.schema);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_of_another_order_or_another_table_are_refused() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "orders",
        "CREATE TABLE t (id varchar(9) PRIMARY KEY, other text NOT NULL UNIQUE); INSERT INTO t SELECT n, n FROM generate_series(1, 20) n",
    );
    let schema = desk.describe("public.t").await;
    let end = desk.chunk(&schema, whole(), 5).await.unwrap().end.unwrap();
    // Another length is no other order, and neither is another index beside the first.
    desk.sql("ALTER TABLE t ALTER id TYPE varchar(20); CREATE UNIQUE INDEX ON t (other, id)");
    assert_eq!(texts(&desk.walk(&schema, range(Some(&end), None), 7).await, "id").len(), 15);
    let code = async || desk.chunk(&schema, range(Some(&end), None), 7).await.unwrap_err();
    desk.sql("ALTER TABLE t ALTER id TYPE varchar(20) COLLATE \"POSIX\"");
    let error = code().await;
    assert_eq!((error.kind, error.code), (Kind::Rejected, "postgres-order"), "{error}");
    desk.sql("DROP TABLE t; CREATE TABLE t (id varchar(9) PRIMARY KEY, other text)");
    let error = code().await;
    assert_eq!((error.kind, error.code), (Kind::Rejected, "postgres-replaced"), "{error}");
    desk.sql("DROP TABLE t");
    let error = code().await;
    assert_eq!((error.kind, error.code), (Kind::Rejected, "postgres-table"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_ends_at_about_so_many_bytes_and_has_a_row_at_least() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "wide",
        "CREATE TABLE t (id int PRIMARY KEY, w text); INSERT INTO t SELECT n, repeat(md5(n::text), 3000) FROM generate_series(1, 300) n",
    );
    let schema = desk.describe_as("public.t", None, as_text(&["id"])).await;
    let chunk = |bytes_max| ChunkRequest { bytes_max, ..request(&schema, whole(), 1000) };
    let one = desk.source.read_chunk(&chunk(1)).await.unwrap();
    assert_eq!(one.rows.unwrap().rows(), 1);
    let some = desk.source.read_chunk(&chunk(1_000_000)).await.unwrap();
    assert_eq!(some.rows.unwrap().rows(), 11, "each has 96 kB");
    let (mut after, mut rows) = (None, Vec::new());
    loop {
        let chunk = ChunkRequest { range: range(after.as_ref(), None), ..chunk(1_000_000) };
        let read = desk.source.read_chunk(&chunk).await.unwrap();
        rows.extend(texts(std::slice::from_ref(&read), "id"));
        after = read.end;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(rows, (1..=300).map(|n| n.to_string()).collect::<Vec<_>>());
    until(&desk, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'urutau wide'");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_keeps_readers_out_is_named_and_not_waited_for() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(&server, "locked", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let schema = desk.describe("public.t").await;
    let lock = Open::begin(&server, "locked", "SET application_name = 'migration'; BEGIN; LOCK TABLE t;\n");
    until(&desk, "SELECT count(*) = 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 't'::regclass");
    let error = desk.chunk(&schema, whole(), 7).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Transient, "postgres-locked"), "{error}");
    assert!(error.what.contains("table public.t") && error.what.contains("held by process"), "{error}");
    assert!(error.what.contains("user postgres, application 'migration'"), "{error}");
    until(&desk, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'urutau locked'");
    lock.end("ALTER TABLE t ADD COLUMN v text; COMMIT;\n");
    assert_eq!(desk.chunk(&schema, whole(), 7).await.unwrap().schema.columns.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_no_index_makes_one_is_refused_with_what_to_do() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let tables = [
        ("plain", "CREATE TABLE plain (a int NOT NULL, b int NOT NULL)"),
        ("nullable", "CREATE TABLE nullable (a int NOT NULL, b int, UNIQUE (a, b))"),
        ("part", "CREATE TABLE part (a int NOT NULL, b int NOT NULL); CREATE UNIQUE INDEX ON part (a, b) WHERE a > 0"),
        ("computed", "CREATE TABLE computed (a int NOT NULL, b int NOT NULL); CREATE UNIQUE INDEX ON computed (a, (b + 1))"),
        ("more", "CREATE TABLE more (a int NOT NULL, b int NOT NULL, c int NOT NULL, UNIQUE (a, b, c))"),
        (
            "unproven",
            "CREATE TABLE unproven (a int NOT NULL, b int, UNIQUE (a, b)); ALTER TABLE unproven ADD CONSTRAINT n NOT NULL b NOT VALID",
        ),
    ];
    let all: Vec<String> = tables.iter().map(|(name, sql)| format!("{sql}; ALTER TABLE {name} REPLICA IDENTITY FULL")).collect();
    let fit =
        "CREATE TABLE fit (a int NOT NULL UNIQUE, b int); ALTER TABLE fit REPLICA IDENTITY FULL; INSERT INTO fit VALUES (1, 2)";
    let desk = Desk::open(&server, "keys", &format!("{}; {fit}", all.join("; ")));
    let key = || Some(vec!["a".to_owned(), "b".to_owned()]);
    for (name, _) in tables {
        let name = format!("public.{name}");
        let schema = desk.describe_as(&name, key(), BTreeMap::new()).await;
        let error = desk.chunk(&schema, whole(), 7).await.unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "postgres-snapshot-key"), "{error}");
        assert!(error.remedy.contains("ADD PRIMARY KEY (\"a\", \"b\")") && error.remedy.contains("never"), "{error}");
        let request = TableRequest { primary_key: key(), before_is_full: true, ..wanted(&name) };
        let findings = desk.source.preflight(&[request]).await;
        let found = findings.iter().find(|finding| finding.code == "postgres-snapshot-key").unwrap();
        assert_eq!((found.severity, found.subject.as_str()), (Severity::Warning, name.as_str()));
    }
    // A part of the key that is unique by itself is enough.
    let schema = desk.describe_as("public.fit", key(), BTreeMap::new()).await;
    let error = desk.chunk(&schema, whole(), 7).await.map(|chunk| chunk.rows.map(|rows| rows.rows()));
    assert_eq!(error.unwrap(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_needs_select_and_no_policy_hides_rows_silently() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "rights",
        "CREATE SCHEMA shop; CREATE TABLE shop.t (id int PRIMARY KEY); INSERT INTO shop.t VALUES (1)",
    );
    desk.sql("CREATE ROLE reader LOGIN REPLICATION");
    let source = desk.seen_by("reader");
    let schema = source.describe(&[wanted("shop.t")], &BTreeMap::new()).await.unwrap()[0].schema.clone();
    let finding = async |code: &str| source.preflight(&[wanted("shop.t")]).await.into_iter().find(|finding| finding.code == code);

    let error = source.read_chunk(&request(&schema, whole(), 7)).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "postgres-select"), "{error}");
    let found = finding("postgres-select").await.unwrap();
    assert_eq!(found.remedy, error.remedy);
    desk.sql(&found.remedy);
    assert_eq!(finding("postgres-select").await, None);
    assert_eq!(source.read_chunk(&request(&schema, whole(), 7)).await.unwrap().rows.unwrap().rows(), 1);

    desk.sql("ALTER TABLE shop.t ENABLE ROW LEVEL SECURITY");
    assert!(finding("postgres-policies").await.is_some());
    let error = source.read_chunk(&request(&schema, whole(), 7)).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "postgres-privilege"), "{error}");
    desk.sql("ALTER ROLE reader BYPASSRLS");
    assert_eq!(finding("postgres-policies").await, None);
    assert!(source.read_chunk(&request(&schema, whole(), 7)).await.is_ok());
}
