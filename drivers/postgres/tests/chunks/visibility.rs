//! What a snapshot sees: transactions that run, that are prepared, that are over.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use contract::{ChunkRequest, Chunks, LogEvent, Source};
use kernel::id::TransactionName;

use crate::desk::{Desk, offset, request, whole};
use crate::postgres::{Postgres, Release};

/// A session that stays open.
pub(crate) struct Open(Child);

impl Open {
    pub(crate) fn begin(server: &Postgres, database: &str, statements: &str) -> Open {
        let mut psql = Command::new(server.programs().join("psql"))
            .args(["-X", "-q", "-d", &server.uri(database)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        psql.stdin.as_mut().unwrap().write_all(statements.as_bytes()).unwrap();
        Open(psql)
    }

    pub(crate) fn end(mut self, statements: &str) {
        let mut input = self.0.stdin.take().unwrap();
        input.write_all(statements.as_bytes()).unwrap();
        drop(input);
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn names(texts: &[&str]) -> BTreeSet<TransactionName> {
    texts.iter().map(|text| TransactionName::from(*text)).collect()
}

/// Until a statement answers `t`.
pub(crate) fn until(desk: &Desk<'_>, statement: &str) {
    let begun = std::time::Instant::now();
    while desk.sql(statement) != "t" {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{statement}");
    }
}

async fn transactions_are_proven_once_they_are_seen(release: Release) {
    let server = Postgres::start(release, &["max_prepared_transactions=5"]);
    let desk = Desk::open(&server, "seen", "CREATE TABLE t (id int PRIMARY KEY)");
    let schema = desk.describe("public.t").await;
    let over = desk.sql("BEGIN; INSERT INTO t VALUES (1); SELECT pg_current_xact_id(); COMMIT");
    let prepared = desk.sql("BEGIN; INSERT INTO t VALUES (2); SELECT pg_current_xact_id(); PREPARE TRANSACTION 'p'");
    // The newest transaction of all: no list of a snapshot has it.
    let open = Open::begin(&server, "seen", "BEGIN; INSERT INTO t VALUES (3);\n");
    until(&desk, "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'transactionid'");
    let newest = desk.sql("SELECT max(transactionid::text::bigint) FROM pg_locks WHERE locktype = 'transactionid'");
    let listed = desk.sql("SELECT pg_current_snapshot()");
    assert!(!listed.ends_with(&newest), "{listed} lists {newest}");

    let about = names(&[&over, &prepared, &newest, "99999999", "no number"]);
    let visibility = desk.source.visibility(&about, true).await.unwrap();
    assert_eq!((visibility.proven, visibility.unfinished), (names(&[&over]), Some(names(&[&prepared, &newest]))));
    let chunk = ChunkRequest { about: about.clone(), ..request(&schema, whole(), 10) };
    let read = desk.source.read_chunk(&chunk).await.unwrap();
    assert_eq!((read.rows.unwrap().rows(), read.visibility.proven, read.visibility.unfinished), (1, names(&[&over]), None));

    open.end("COMMIT;\n");
    desk.sql("ROLLBACK PREPARED 'p'");
    let visibility = desk.source.visibility(&about, true).await.unwrap();
    assert_eq!((visibility.proven, visibility.unfinished), (names(&[&over, &prepared, &newest]), Some(names(&[]))));
    let read = desk.source.read_chunk(&chunk).await.unwrap();
    assert_eq!((read.rows.unwrap().rows(), read.visibility.proven), (2, names(&[&over, &prepared, &newest])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_postgresql_15_are_proven_once_they_are_seen() {
    transactions_are_proven_once_they_are_seen(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_postgresql_18_are_proven_once_they_are_seen() {
    transactions_are_proven_once_they_are_seen(Release::Eighteen).await;
}

/// The log calls a transaction what visibility calls it, also when the numbers went round since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_calls_transactions_what_visibility_calls_them() {
    let mut server = Postgres::start(Release::Fifteen, &[]);
    server.stop();
    server.set_next_xid(3, 1000);
    server.go();
    let desk = Desk::open(&server, "called", "CREATE TABLE t (id int PRIMARY KEY)");
    let schema = desk.describe("public.t").await;
    let name = desk.sql("BEGIN; INSERT INTO t VALUES (1); SELECT pg_current_xact_id(); COMMIT");
    assert!(name.parse::<u64>().unwrap() > 3 << 32, "{name}");
    let end = desk.source.open().await.unwrap().end;
    let reads = desk.log(std::slice::from_ref(&schema), &end).await;
    let rows = reads.iter().flat_map(|read| read.events.iter().map(move |event| (read, event)));
    let named: Vec<_> = rows
        .filter_map(|(read, event)| match event {
            LogEvent::Rows { transaction, .. } => Some(read.names[transaction].as_str().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(named, [name]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_is_reached_by_a_log_in_which_nothing_happens() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(&server, "idle", "CREATE TABLE t (id int PRIMARY KEY)");
    let schema = desk.describe("public.t").await;
    let opened = desk.source.open().await.unwrap();
    let mut reader = desk.source.stream(&opened.end.clone().into(), std::slice::from_ref(&schema)).await.unwrap();
    // The server switches to a new segment: what comes next would stand behind its header.
    desk.sql("INSERT INTO t VALUES (1); SELECT pg_switch_wal()");
    let chunk = desk.chunk(&schema, whole(), 10).await.unwrap();
    assert_eq!(chunk.identity, opened.identity);
    assert!(chunk.fence.contains(&opened.end) && offset(&chunk.fence) > 0);
    crate::desk::read_until(reader.as_mut(), &chunk.fence).await;
}

/// What a standby's snapshot sees it does not list: only what is older than everything that runs is proven there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_proves_nothing_that_is_newer_than_what_runs() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::open(&server, "followed", "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0)");
    let standby = server.standby();
    let source = desk.at(&standby);
    let schema = desk.describe("public.t").await;
    let opened = source.open().await.unwrap();
    assert_eq!(opened.identity, desk.source.open().await.unwrap().identity);

    let open = Open::begin(&server, "followed", "BEGIN; UPDATE t SET v = 1 WHERE id = 1;\n");
    until(&desk, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'transactionid'");
    let running = desk.sql("SELECT max(transactionid::text::bigint) FROM pg_locks WHERE locktype = 'transactionid'");
    let over = desk.sql("BEGIN; UPDATE t SET v = 2 WHERE id = 2; SELECT pg_current_xact_id(); COMMIT");
    while standby.sql("followed", "SELECT v = 2 FROM t WHERE id = 2") != "t" {}
    // This is why a list of what runs is not trusted there.
    assert!(standby.sql("followed", "SELECT pg_current_snapshot()").ends_with(':'));
    let about = names(&[&running, &over]);
    let visibility = source.visibility(&about, true).await.unwrap();
    assert_eq!((visibility.proven, visibility.unfinished), (names(&[]), Some(names(&[]))));
    let chunk = ChunkRequest { about: about.clone(), ..request(&schema, whole(), 10) };
    let read = source.read_chunk(&chunk).await.unwrap();
    assert_eq!((read.identity, read.rows.unwrap().rows(), read.visibility.proven), (opened.identity, 2, names(&[])));

    open.end("COMMIT;\n");
    while standby.sql("followed", "SELECT v = 1 FROM t WHERE id = 1") != "t" {}
    assert_eq!(source.visibility(&about, false).await.unwrap().proven, about);
    assert!(source.read_chunk(&chunk).await.unwrap().fence.contains(&opened.end));
}
