//! `id = id + 1` over a whole table: every key but the first is given up by one row and taken by another in one transaction, and the
//! log tells it from the highest. Cut into many checkpoints or in one, no row is lost, none is there twice, none under another's key.

use e2e::jsonl_copy::{self, number};
use e2e::postgres::{Postgres, Release};
use e2e::{Desk, readers};
use serde_json::Value;

const ROWS: u64 = 10_000;

/// A table with the usual replica identity, and one whose key may be checked late, with the whole row as its identity; the index beside
/// it is checked at once, without which the log would not say whose key is whose. Made in descending order, so that the server can
/// shift them.
const TABLES: &str = "
    CREATE TABLE shifted (id int PRIMARY KEY, was int NOT NULL);
    CREATE TABLE late (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, was int NOT NULL);
    CREATE UNIQUE INDEX late_at_once ON late (id); ALTER TABLE late REPLICA IDENTITY FULL;";

fn fill() -> String {
    ["shifted", "late"].map(|table| format!("INSERT INTO {table} SELECT n, n FROM generate_series({ROWS}, 1, -1) n;")).concat()
}

const SHIFT: &str = "UPDATE shifted SET id = id + 1; UPDATE late SET id = id + 1;";

fn source(server: &Postgres, table: &str) -> String {
    server.sql("shop", &format!("SELECT string_agg(id || ' ' || was, ',' ORDER BY id) FROM {table}"))
}

fn in_iceberg(desk: &Desk, table: &str) -> String {
    readers::query(&desk.warehouse(), "shop", table, &["string_agg(id || ' ' || was, ',' ORDER BY id)"]).join("")
}

fn in_jsonl(desk: &Desk, table: &str) -> String {
    let rows = jsonl_copy::rows(&desk.path().join(format!("copies/{table}.jsonl")));
    let mut rows: Vec<_> = rows.values().map(|row| (number(row, "id"), number(row, "was"))).collect();
    rows.sort_unstable();
    rows.iter().map(|(id, was)| format!("{id} {was}")).collect::<Vec<_>>().join(",")
}

fn every_row_is_found_under_its_new_key(sink: &str, copied: fn(&Desk, &str) -> String) {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", TABLES);
    // The first copy takes a transaction at once, the second in parts.
    let desks = [("whole", ""), ("parts", ", checkpoint: { maxRows: 3000 }")].map(|(name, checkpoint)| {
        Desk::new().with_pipeline(&format!(
            "pipeline: {name}
source: {{ kind: postgres, uri: \"{}\", slotName: {name}, create: true }}
sink: {{ {sink}{checkpoint} }}
tables:
  - {{ source: public.shifted }}
  - {{ source: public.late }}
",
            server.uri("shop")
        ))
    });
    let check = |what: &str| {
        let commits = desks.each_ref().map(|desk| {
            let ended = desk.urutau(&[Desk::RUN, &["--output", "json"]].concat()).expect_code(0).expect_no_words(&["halted"]);
            for table in ["shifted", "late"] {
                let (source, copy) = (source(&server, table), copied(desk, table));
                assert!(source == copy, "{what}, {table}: {} here, {} there", begin(&source), begin(&copy));
            }
            let said: Value = serde_json::from_str(&ended.stdout).expect("a run that is asked for JSON prints it");
            number(&said["report"]["tables"]["public.shifted"], "commits")
        });
        assert!(commits[1] > commits[0] + 1, "{what}: {commits:?} commits, both copies were made in the same way");
    };
    for desk in &desks {
        desk.run().expect_code(0);
    }
    // Made and shifted in one backlog, shifted alone, and shifted twice together with keys that are given up and taken anew.
    server.sql("shop", &format!("{}{SHIFT}", fill()));
    check("made and shifted");
    server.sql("shop", SHIFT);
    check("shifted");
    server.sql(
        "shop",
        &format!("BEGIN; {SHIFT} DELETE FROM shifted WHERE was % 3 = 0; DELETE FROM late WHERE was % 3 = 0; {SHIFT} COMMIT"),
    );
    assert_eq!(source(&server, "shifted").split(',').next(), Some("5 1"), "four shifts");
    check("shifted twice around deletes");
}

/// Enough to see what is wrong.
fn begin(list: &str) -> String {
    format!("{} rows, {}...", list.split(',').count(), list.chars().take(80).collect::<String>())
}

#[test]
fn rows_whose_keys_are_all_shifted_are_found_under_their_new_keys_in_iceberg() {
    every_row_is_found_under_its_new_key("kind: iceberg, uri: ./warehouse, namespace: shop", in_iceberg);
}

#[test]
fn rows_whose_keys_are_all_shifted_are_found_under_their_new_keys_in_jsonl() {
    every_row_is_found_under_its_new_key("kind: jsonl, uri: ./copies", in_jsonl);
}
