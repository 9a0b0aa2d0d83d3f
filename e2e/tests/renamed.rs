//! Columns that are renamed, dropped and made again, in one backlog and between runs: rows that no log tells follow them, too.

use e2e::postgres::{Postgres, Release};
use e2e::{Binary, Desk, Signal, http, readers, wait_until};

const ROWS: u64 = 6;

/// A server with a table, and a pipeline of it that has copied it.
fn begun(release: Release) -> (Postgres, Desk) {
    let server = Postgres::start(release, &[]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", "CREATE TABLE items (id int PRIMARY KEY, a text, b text, n int)");
    server.sql("shop", &format!("INSERT INTO items SELECT i, 'a' || i, 'b' || i, i FROM generate_series(1, {ROWS}) i"));
    let desk = Desk::new().with_pipeline(&format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop }}
tables: [ {{ source: public.items }} ]
",
        server.uri("shop")
    ));
    desk.run().expect_code(0);
    (server, desk)
}

/// All rows, with the columns that the server has now, as both readers see them and as the server does.
fn compare(server: &Postgres, desk: &Desk, what: &str) {
    let columns = server.sql(
        "shop",
        "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute
         WHERE attrelid = 'items'::regclass AND attnum > 0 AND NOT attisdropped",
    );
    let written: Vec<String> = columns.trim().split(',').map(|column| format!("coalesce(CAST({column} AS text), '-')")).collect();
    let all = format!("string_agg({}, ',' ORDER BY n)", written.join(" || ' ' || "));
    let expected = server.sql("shop", &format!("SELECT {all} FROM items"));
    for reader in readers::READERS {
        let said = readers::query_as(reader, &desk.warehouse(), "shop", "items", &[&all]);
        assert_eq!(said.join(""), expected.trim(), "{what}: {columns} by {reader}");
    }
    // The server's own records may lie behind what the last run read: nobody reads them now.
    desk.urutau(&["verify", "--wait", "1"]).expect_code(0).expect_words(&["and the copy has the same"]);
}

/// Each is a transaction or several, behind which the copy is compared. `n` stays what it is: rows are compared in its order.
const CHANGES: &[(&str, &str)] = &[
    ("another name", "ALTER TABLE items RENAME a TO c; UPDATE items SET c = 'new' WHERE n = 1"),
    (
        "another name in the midst",
        "BEGIN; UPDATE items SET c = 'x' WHERE n = 2; ALTER TABLE items RENAME c TO a; UPDATE items SET a = 'y' WHERE n = 3; COMMIT",
    ),
    (
        "two names swapped",
        "BEGIN; ALTER TABLE items RENAME a TO t; ALTER TABLE items RENAME b TO a; ALTER TABLE items RENAME t TO b; COMMIT; UPDATE items SET a = 'swapped' WHERE n = 4",
    ),
    (
        "another name of the key",
        "ALTER TABLE items RENAME id TO key; UPDATE items SET a = 'k' WHERE n = 1; DELETE FROM items WHERE n = 2; INSERT INTO items VALUES (20, 'b', 'a', 2)",
    ),
    (
        "a name that goes to another column",
        "ALTER TABLE items ADD COLUMN wide bigint; UPDATE items SET wide = key; ALTER TABLE items DROP COLUMN a; ALTER TABLE items RENAME wide TO a; UPDATE items SET a = 7 WHERE n = 5",
    ),
    (
        "several names, one after the other",
        "ALTER TABLE items RENAME b TO b1; UPDATE items SET b1 = '1' WHERE n = 1; ALTER TABLE items RENAME b1 TO b2; UPDATE items SET b2 = '2' WHERE n = 3; ALTER TABLE items RENAME b2 TO b3; UPDATE items SET b3 = '3' WHERE n = 4",
    ),
    (
        "dropped, and made again of another type",
        "ALTER TABLE items DROP COLUMN a; ALTER TABLE items ADD COLUMN a date DEFAULT '2024-02-29'; INSERT INTO items VALUES (30, 'b', 9)",
    ),
    (
        "dropped, and another one gets its name later",
        "ALTER TABLE items DROP COLUMN a; INSERT INTO items VALUES (31, 'b', 10); ALTER TABLE items RENAME b3 TO a; INSERT INTO items VALUES (32, 'c', 11)",
    ),
];

fn rows_that_do_not_change_follow_their_columns(release: Release) {
    let (server, desk) = begun(release);
    for (what, change) in CHANGES {
        server.sql("shop", change);
        desk.run().expect_code(0).expect_no_words(&["halted"]);
        compare(&server, &desk, what);
    }
    // The same in one backlog, for a copy that knows only how it began.
    let (server, desk) = begun(release);
    for (_, change) in &CHANGES[..5] {
        server.sql("shop", change);
    }
    desk.run().expect_code(0).expect_no_words(&["halted"]);
    compare(&server, &desk, "all in one backlog");
}

/// Dropped and made again under its name and with its type, behind all others: whether a row lies in front of that or behind it nothing
/// says. That is warned of, and mended by reading the table anew.
fn a_column_that_is_made_again_is_warned_of(release: Release) {
    let (server, desk) = begun(release);
    server.sql("shop", "ALTER TABLE items ADD COLUMN z text; UPDATE items SET z = 'z' || n");
    desk.run().expect_code(0);
    compare(&server, &desk, "a new column");
    server.sql("shop", "ALTER TABLE items DROP COLUMN z; ALTER TABLE items ADD COLUMN z text");
    server.sql("shop", "UPDATE items SET z = 'behind' WHERE n = 2");
    let warned = ["a column was dropped and made again under its name", "column=\"z\"", "urutau table resnapshot"];
    desk.run().expect_code(0).expect_words(&warned).expect_no_words(&["halted"]);
    compare(&server, &desk, "nothing lies in front of it");
    // Said once, and a row in front of the change has what it had there.
    server.sql("shop", "UPDATE items SET z = 'before' WHERE n = 1; UPDATE items SET z = 'before' WHERE n = 4");
    server.sql("shop", "ALTER TABLE items DROP COLUMN z; ALTER TABLE items ADD COLUMN z text");
    server.sql("shop", "UPDATE items SET z = 'later' WHERE n = 3");
    desk.run().expect_code(0).expect_words(&warned);
    let port = http::free_port();
    let run = desk.run_at(Binary::Plain, port, None);
    let generation = || http::table(port, "public.items").filter(|table| table["phase"] == "streaming")?["generation"].as_u64();
    let before = wait_until("a run", generation);
    desk.urutau(&["table", "resnapshot", "public.items", "--listen", &format!("127.0.0.1:{port}")]).expect_code(0);
    // Also while rows change.
    server.sql("shop", "UPDATE items SET z = 'at once' WHERE n = 5");
    wait_until("a new copy", || generation().filter(|generation| *generation > before));
    run.send(Signal::Terminate);
    run.wait().expect_code(0).expect_no_words(&["halted", "made again"]);
    desk.run().expect_code(0).expect_no_words(&["made again"]);
    compare(&server, &desk, "read anew");
}

/// A transaction that waits for a synchronous standby is in the log before anybody sees what it did to the table: it is waited for, since
/// the catalogue of before would call its new column by the number of the one that it dropped.
#[test]
fn what_nobody_sees_yet_is_waited_for() {
    let (server, desk) = begun(Release::Fifteen);
    let port = http::free_port();
    let run = desk.run_at(Binary::Plain, port, None);
    wait_until("a run", || http::table(port, "public.items").filter(|table| table["phase"] == "streaming"));
    server.sql("shop", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.sql("shop", "SELECT pg_reload_conf()");
    let before = server.log_end();
    let change =
        "BEGIN; ALTER TABLE items DROP COLUMN n; ALTER TABLE items ADD COLUMN m int; UPDATE items SET m = 7 WHERE id = 2; COMMIT";
    let mut waiting = server.session("shop", &format!("SET synchronous_commit = on; {change}"));
    let is_logged =
        || (server.sql("shop", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").trim() == "1").then_some(());
    wait_until("a commit that waits for a standby", is_logged);
    assert!(server.log_end() > before);
    wait_until("a run that says so", || run.stderr().contains("[postgres-unseen]").then_some(()));
    server.sql("shop", "SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names");
    server.sql("shop", "SELECT pg_reload_conf()");
    assert!(wait_until("the commit's end", || waiting.try_wait().expect("a child can be asked")).success());
    let end = server.log_end();
    let position = |table: serde_json::Value| table["position"].as_str().and_then(|text| text.parse::<u64>().ok());
    wait_until("the copy", || http::table(port, "public.items").and_then(position).filter(|position| *position >= end));
    run.send(Signal::Terminate);
    run.wait().expect_code(0).expect_no_words(&["halted"]);
    let all = "string_agg(id || ' ' || a || ' ' || coalesce(CAST(m AS text), '-'), ',' ORDER BY id)";
    let copied = readers::query(&desk.warehouse(), "shop", "items", &[all]);
    assert_eq!(copied.join(""), server.sql("shop", &format!("SELECT {all} FROM items")).trim());
}

#[test]
fn rows_that_do_not_change_follow_their_columns_15() {
    rows_that_do_not_change_follow_their_columns(Release::Fifteen);
}

#[test]
fn rows_that_do_not_change_follow_their_columns_18() {
    rows_that_do_not_change_follow_their_columns(Release::Eighteen);
}

#[test]
fn a_column_that_is_made_again_is_warned_of_15() {
    a_column_that_is_made_again_is_warned_of(Release::Fifteen);
}

#[test]
fn a_column_that_is_made_again_is_warned_of_18() {
    a_column_that_is_made_again_is_warned_of(Release::Eighteen);
}
