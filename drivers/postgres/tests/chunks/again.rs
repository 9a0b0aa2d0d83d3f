//! Rows that are read again by their keys: of every type that a key can have, in one statement, along an index, and whether they are
//! there.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use contract::{Error, Kind, LogEvent, RowsByKey, RowsRead, RowsRequest, Source};
use kernel::id::TransactionName;
use rows::{EncodedKeys, TableSchema};

use crate::desk::{Desk, as_text, column_texts, offset, texts, whole};
use crate::everything;
use crate::postgres::{Postgres, Release};
use crate::visibility::{Open, until};

fn request(table: &Arc<TableSchema>, keys: RecordBatch) -> RowsRequest {
    RowsRequest { table: table.clone(), keys, bytes_max: 1 << 30, about: BTreeSet::new() }
}

/// The key's columns of these rows.
fn keys(table: &TableSchema, data: &RecordBatch) -> RecordBatch {
    data.project(&table.key).unwrap()
}

impl Desk<'_> {
    async fn again(&self, table: &Arc<TableSchema>, keys: RecordBatch) -> Result<RowsRead, Error> {
        self.source.read_rows(&request(table, keys)).await
    }
}

/// The rows of a table by their keys, read from the table itself.
async fn all(desk: &Desk<'_>, table: &Arc<TableSchema>) -> RecordBatch {
    desk.walk(table, whole(), 1_000).await.remove(0).rows.unwrap().data.clone()
}

async fn rows_are_found_by_keys_of_every_type(release: Release) {
    let server = Postgres::start(release, &["lc_monetary=C"]);
    let desk = Desk::open(&server, "keys", "");
    everything::make_types(&server, "keys", release);
    let (mut read, mut no_key) = (0, Vec::new());
    for (place, (of, values)) in everything::values(release).into_iter().enumerate() {
        let table = format!("t{place}");
        let made = server.try_sql(
            "keys",
            &format!("CREATE TABLE {table} (word text, k {of} PRIMARY KEY); ALTER TABLE {table} ALTER word SET STORAGE EXTERNAL"),
        );
        if made.is_err() {
            no_key.push(of);
            continue;
        }
        for value in values {
            // Some values of this page are one key in another spelling.
            let insert = format!("INSERT INTO {table} VALUES (repeat('w', 5000), ({value})::{of}) ON CONFLICT DO NOTHING");
            // A composite has an order if all of its parts have one, which the server finds out when it compares.
            if let Err(said) = server.try_sql("keys", &insert) {
                assert!(said.contains("could not identify a comparison function"), "{of}: {said}");
            }
        }
        let name = format!("public.{table}");
        let Ok(schema) = desk.try_describe(&name).await else {
            no_key.push(of);
            continue;
        };
        let mut chunk = desk.chunk(&schema, whole(), 1_000).await;
        if chunk.is_err() {
            // A value that no column of ours holds.
            desk.sql(&format!("DELETE FROM {table} WHERE k::text ~* 'infinity|nan|24:00:00'"));
            chunk = desk.chunk(&schema, whole(), 1_000).await;
        }
        let Ok(chunk) = chunk else {
            no_key.push(of);
            continue;
        };
        let data = chunk.rows.unwrap().data.clone();
        let answer = desk.again(&schema, keys(&schema, &data)).await.unwrap_or_else(|error| panic!("{of}: {error}"));
        assert_eq!(answer.gone, [0; 0], "{of}");
        let rows = answer.rows.unwrap();
        rows.check().unwrap();
        let encoded = |data: &RecordBatch| {
            let keys = EncodedKeys::encode(&schema, data).unwrap();
            keys.iter().map(<[u8]>::to_vec).collect::<BTreeSet<_>>()
        };
        assert_eq!(encoded(&rows.data), encoded(&data), "{of}");
        desk.sql(&format!("DELETE FROM {table}"));
        let answer = desk.again(&schema, keys(&schema, &data)).await.unwrap();
        assert!(answer.rows.is_none(), "{of}");
        assert_eq!(answer.gone.iter().copied().collect::<BTreeSet<_>>(), (0..data.num_rows()).collect(), "{of}");
        read += data.num_rows();
    }
    assert!(read > 80, "{read} keys; no keys are {no_key:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_found_by_keys_of_every_type_of_postgresql_15() {
    rows_are_found_by_keys_of_every_type(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_found_by_keys_of_every_type_of_postgresql_18() {
    rows_are_found_by_keys_of_every_type(Release::Eighteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moments_far_from_now_are_found_and_names_that_would_end_a_text() {
    let server = Postgres::start(Release::Fifteen, &["timezone=Europe/Berlin"]);
    let desk = Desk::open(
        &server,
        "far",
        "CREATE TABLE t (day date, at timestamptz, stamp timestamp(3), name varchar(30), code char(5), word text,
                         PRIMARY KEY (name, code, day, at, stamp));
         INSERT INTO t VALUES ('1066-10-14', '1899-12-31 23:59:59.999999+01', '2024-03-31 02:30:00.125', 'it''s \\ ; DROP', 'a', 'x'),
                              ('9999-12-31', '9999-12-31 23:59:59.999999+00', '1969-12-31 23:59:59.999', '', '', 'y'),
                              ('0001-01-01', '0001-01-01 00:00:00+00', '0001-01-01', 'ünï ☃', 'ab cd', 'z')",
    );
    let schema = desk.describe("public.t").await;
    let data = all(&desk, &schema).await;
    let answer = desk.again(&schema, keys(&schema, &data)).await.unwrap();
    assert_eq!((answer.gone, answer.rows.unwrap().rows()), (vec![], 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_there_and_rows_that_are_gone_are_told_apart_and_the_filter_holds() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let desk = Desk::open(
        &server,
        "filtered",
        "CREATE TABLE t (number int NOT NULL, key_0 text, here text, PRIMARY KEY (key_0, number));
         INSERT INTO t SELECT n, 'k' || n, 'here ' || n FROM generate_series(1, 9) n",
    );
    desk.sql("DROP PUBLICATION filtered_pub; CREATE PUBLICATION filtered_pub FOR TABLE t WHERE (number % 2 = 1)");
    let schema = desk.describe_as("public.t", None, as_text(&[])).await;
    desk.sql("ALTER PUBLICATION filtered_pub SET TABLE t");
    let data = all(&desk, &schema).await;
    desk.sql(
        "ALTER PUBLICATION filtered_pub SET TABLE t WHERE (number % 2 = 1 AND key_0 <> 'k5'); DELETE FROM t WHERE number = 3",
    );
    let answer = desk.again(&schema, keys(&schema, &data)).await.unwrap();
    let mut words = column_texts(&answer.rows.as_ref().unwrap().data, "here");
    words.sort();
    assert_eq!(words, ["here 1", "here 7", "here 9"]);
    assert_eq!(answer.gone.iter().copied().collect::<BTreeSet<_>>(), [1, 2, 3, 4, 5, 7].into());
    assert_eq!(answer.rows.unwrap().tail.transactions[0].transaction.at.0, offset(&answer.fence));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_ends_at_about_so_many_bytes_and_what_it_does_not_tell_was_not_read() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "wide",
        "CREATE TABLE t (id int PRIMARY KEY, w text); INSERT INTO t SELECT n, repeat(md5(n::text), 3000) FROM generate_series(1, 300) n",
    );
    let schema = desk.describe("public.t").await;
    let ids = all(&desk, &schema).await;
    let limited = |bytes_max| RowsRequest { bytes_max, ..request(&schema, keys(&schema, &ids)) };
    let one = desk.source.read_rows(&limited(1)).await.unwrap();
    assert!((1..20).contains(&one.rows.unwrap().rows()) && one.gone.is_empty());
    let some = desk.source.read_rows(&limited(1_000_000)).await.unwrap();
    assert!((11..40).contains(&some.rows.unwrap().rows()) && some.gone.is_empty());
    assert_eq!(desk.source.read_rows(&limited(1 << 30)).await.unwrap().rows.unwrap().rows(), 300);
}

/// The server counts how often it looked through the whole table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_looked_up_in_the_index_and_the_table_is_not_read() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "large",
        "CREATE TABLE t (id int PRIMARY KEY, w text); INSERT INTO t SELECT n, n FROM generate_series(1, 30000) n; ANALYZE t",
    );
    let schema = desk.describe("public.t").await;
    let ids = desk.chunk(&schema, whole(), 5_000).await.unwrap().rows.unwrap().data.clone();
    let scans = || {
        desk.sql("SELECT pg_stat_force_next_flush()")
            + &desk.sql("SELECT seq_scan || ' ' || seq_tup_read FROM pg_stat_user_tables WHERE relname = 't'")
    };
    let before = scans();
    assert_eq!(desk.again(&schema, keys(&schema, &ids)).await.unwrap().rows.unwrap().rows(), 5_000);
    assert_eq!(scans(), before);
    assert_eq!(desk.sql("SELECT idx_scan >= 5000 FROM pg_stat_user_tables WHERE relname = 't'"), "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_not_seen_is_not_proven_and_the_fence_is_reached_by_the_log() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(
        &server,
        "proof",
        "CREATE TABLE t (id int PRIMARY KEY, title text, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL;
         INSERT INTO t VALUES (1, 'one', repeat('x', 10000)), (2, 'two', repeat('y', 10000))",
    );
    let schema = desk.describe("public.t").await;
    let opened = desk.source.open().await.unwrap();
    let data = all(&desk, &schema).await;
    let open = Open::begin(&server, "proof", "BEGIN; UPDATE t SET title = 'zwei' WHERE id = 2;\n");
    until(&desk, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'transactionid'");
    let running = desk.sql("SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid'");
    desk.sql("UPDATE t SET title = 'uno' WHERE id = 1");
    let mut reader = desk.source.stream(&opened.end.clone().into(), std::slice::from_ref(&schema)).await.unwrap();
    let end = desk.source.open().await.unwrap().end;
    let reads = crate::desk::read_until(reader.as_mut(), &end).await;
    let updates: Vec<TransactionName> = reads
        .iter()
        .flat_map(|read| {
            read.events.iter().filter_map(|event| match event {
                LogEvent::Rows { batch, rows, transaction } => {
                    assert!(read.batches[*batch].is_absent(2, rows.start), "the body was not sent");
                    read.names.get(transaction).cloned()
                }
                _ => None,
            })
        })
        .collect();
    assert_eq!(updates.len(), 1);
    let about: BTreeSet<_> = updates.iter().cloned().chain([TransactionName::from(running)]).collect();
    let answer = desk.source.read_rows(&RowsRequest { about, ..request(&schema, keys(&schema, &data)) }).await.unwrap();
    assert_eq!(answer.visibility.proven, updates.into_iter().collect());
    let rows = answer.rows.unwrap();
    let mut titles = column_texts(&rows.data, "title");
    titles.sort();
    assert_eq!(titles, ["two", "uno"]);
    // An idle server's log comes so far.
    crate::desk::read_until(reader.as_mut(), &answer.fence).await;
    open.end("COMMIT;\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_table_of_its_name_a_key_of_another_type_and_no_index_are_refused_by_name() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(&server, "refused", "CREATE TABLE t (id int PRIMARY KEY, w text); INSERT INTO t VALUES (1, 'x')");
    let schema = desk.describe("public.t").await;
    let data = all(&desk, &schema).await;
    let code = async || {
        let error = desk.again(&schema, keys(&schema, &data)).await.unwrap_err();
        (error.kind, error.code)
    };
    desk.sql("ALTER TABLE t ALTER id TYPE bigint");
    let answer = desk.again(&schema, keys(&schema, &data)).await.unwrap();
    assert_eq!((answer.gone.len(), answer.rows.unwrap().rows()), (0, 1), "a wider number is the same key");
    desk.sql("ALTER TABLE t DROP CONSTRAINT t_pkey");
    assert_eq!(code().await, (Kind::Config, "postgres-snapshot-key"));
    desk.sql("ALTER TABLE t ADD PRIMARY KEY (id); DELETE FROM t; ALTER TABLE t ALTER id TYPE date USING NULL");
    assert_eq!(code().await, (Kind::Rejected, "postgres-order"));
    desk.sql("DROP TABLE t");
    assert_eq!(code().await, (Kind::Rejected, "postgres-table"));
    assert_eq!(texts(&[], "w"), [""; 0]);
}
