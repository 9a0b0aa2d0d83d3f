//! The race: writers change rows while chunks are read, and a commit stands in the log before any snapshot sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use contract::{ChunkRead, ChunkRequest, Chunks, LogEvent, LogRead, Source};
use kernel::id::TransactionName;

use crate::desk::{Desk, offset, read_until, request, whole};
use crate::postgres::{Postgres, Release};
use crate::visibility::Open;

/// Each changes a row of its own, and now and then one that all of them change.
const WRITERS: u64 = 8;
const CHANGES: u64 = 800;
const SHARED: i64 = 100;
const COLD: i64 = 101;

/// What the log tells of a row: in the order of the log.
struct Change {
    key: i64,
    value: i64,
    by: TransactionName,
    /// Where its commit ends.
    end: u64,
}

fn changes(reads: &[LogRead]) -> Vec<Change> {
    let (mut changes, mut open) = (Vec::new(), 0);
    for read in reads {
        for event in &read.events {
            match event {
                LogEvent::Rows { batch, rows, transaction } => {
                    let data = &read.batches[*batch].data;
                    let column = |place: usize| data.column(place).as_primitive::<Int64Type>().clone();
                    let (keys, values) = (column(0), column(1));
                    let by = &read.names[transaction];
                    changes.extend(rows.clone().map(|row| Change {
                        key: keys.value(row),
                        value: values.value(row),
                        by: by.clone(),
                        end: 0,
                    }));
                }
                LogEvent::Ended { upto, .. } => {
                    changes[open..].iter_mut().for_each(|change| change.end = offset(upto));
                    open = changes.len();
                }
                other => assert!(matches!(other, LogEvent::Keepalive { .. }), "{other:?}"),
            }
        }
    }
    changes
}

fn rows(chunk: &ChunkRead) -> Vec<(i64, i64)> {
    let data = &chunk.rows.as_ref().unwrap().data;
    let column = |place: usize| data.column(place).as_primitive::<Int64Type>().clone();
    column(0).values().iter().copied().zip(column(1).values().iter().copied()).collect()
}

/// The last of a row's changes that `take` lets through.
fn folded(changes: &[&Change], take: impl Fn(&Change) -> bool) -> Option<i64> {
    changes.iter().rfind(|change| take(change)).map(|change| change.value)
}

#[expect(clippy::print_stdout, reason = "the figures, for who runs it with --nocapture")]
async fn a_row_is_what_its_visibility_proves(release: Release) {
    let server = Postgres::start(release, &["fsync=on", "synchronous_commit=on"]);
    let desk = Desk::open(&server, "race", "CREATE TABLE hot (id bigint PRIMARY KEY, n bigint)");
    let schema = desk.describe("public.hot").await;
    let opened = desk.source.open().await.unwrap();
    let mut reader = desk.source.stream(&opened.end.into(), std::slice::from_ref(&schema)).await.unwrap();
    let first: u64 = desk.sql("SELECT pg_current_xact_id()").parse().unwrap();
    desk.sql(&format!("INSERT INTO hot SELECT n, 0 FROM generate_series(1, {COLD}) n"));
    // All that the writers could be called, also those that come after the question: a snapshot proves what it sees, whenever it is asked.
    let about: BTreeSet<TransactionName> =
        (first..first + 2 * WRITERS * CHANGES + 100).map(|xid| TransactionName::from(xid.to_string())).collect();

    let writers: Vec<Open> = (1..=WRITERS)
        .map(|writer| {
            let mut statements = String::new();
            for n in 1..=CHANGES {
                let _ = writeln!(statements, "UPDATE hot SET n = {n} WHERE id = {writer};");
                if n % 10 == 0 {
                    let _ = writeln!(statements, "UPDATE hot SET n = n + 1 WHERE id = {SHARED};");
                }
            }
            Open::begin(&server, "race", &(statements + "\\q\n"))
        })
        .collect();
    let mut chunks = Vec::new();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'psql' AND pid <> pg_backend_pid()";
    while chunks.len() < 5 || desk.sql(running) != "0" {
        for _ in 0..5 {
            let chunk = ChunkRequest { about: about.clone(), ..request(&schema, whole(), 1000) };
            chunks.push(desk.source.read_chunk(&chunk).await.unwrap());
        }
    }
    writers.into_iter().for_each(|writer| writer.end(""));
    let end = desk.source.open().await.unwrap().end;
    let changes = changes(&read_until(reader.as_mut(), &end).await);
    assert_eq!(changes.len() as u64, COLD as u64 + WRITERS * (CHANGES + CHANGES / 10));

    let mut of_key: BTreeMap<i64, Vec<&Change>> = BTreeMap::new();
    changes.iter().for_each(|change| of_key.entry(change.key).or_default().push(change));
    let (mut all, mut stale, mut hidden_by_number) = (0, 0, 0);
    for chunk in &chunks {
        let (fence, proven) = (offset(&chunk.fence), &chunk.visibility.proven);
        let beyond = changes.iter().find(|change| proven.contains(&change.by) && change.end > fence);
        assert!(beyond.is_none(), "a transaction that the snapshot sees ends above the fence");
        let newest = proven.iter().map(number).max();
        for (key, value) in rows(chunk) {
            all += 1;
            let changes = &of_key[&key];
            let seen = folded(changes, |change| proven.contains(&change.by));
            assert_eq!(Some(value), seen, "key {key} at fence {fence}: the row is not what the proven transactions left");
            // What a judgement by place would take for the row's state.
            stale += usize::from(folded(changes, |change| change.end <= fence) != Some(value));
            // Not seen, though a transaction that began later is.
            let is_hidden = |change: &&Change| !proven.contains(&change.by) && Some(number(&change.by)) < newest;
            hidden_by_number += usize::from(changes.iter().any(is_hidden));
        }
    }
    let figures = [("chunks", chunks.len()), ("rows", all), ("stale", stale), ("hidden, by number", hidden_by_number)];
    let of_all = BTreeMap::from(figures);
    println!("{of_all:?}");
    assert!(stale > 0, "no row was older than the log at its fence: a judgement by place would have done: {of_all:?}");
    assert!(hidden_by_number > 0, "no snapshot had a gap: a judgement by number alone would have done: {of_all:?}");
}

fn number(name: &TransactionName) -> u64 {
    name.as_str().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_postgresql_15_is_what_its_visibility_proves() {
    a_row_is_what_its_visibility_proves(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_postgresql_18_is_what_its_visibility_proves() {
    a_row_is_what_its_visibility_proves(Release::Eighteen).await;
}
