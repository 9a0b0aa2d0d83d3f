//! Memory does not grow with the log: 1.2 GB of changes, 4 M keys, half of it one transaction, in 512 MiB. Nor with a transaction of
//! PostgreSQL's: of 5 million rows with `E2E_LONG=1`, else of as many as are more than that in bytes.

use e2e::large::{READING, Totals, write_memory_file};
use e2e::postgres::{Postgres, Release};
use e2e::readers::{measure, query};
use e2e::{Binary, Desk, is_long};

const RESIDENT_KIB_MAX: u64 = 512 << 10;

const PIPELINE: &str = "pipeline: memory
source: { kind: jsonl, path: changes.jsonl }
sink: { kind: iceberg, uri: ./warehouse, namespace: plant }
tables:
  - { source: plant.meters, primaryKey: [id] }
  - { source: plant.alarms, primaryKey: [id] }
";

#[test]
fn a_huge_file_with_a_huge_transaction_is_copied_in_half_a_gibibyte() {
    let desk = Desk::new().with_pipeline(PIPELINE);
    let file = write_memory_file(&desk.path().join("changes.jsonl")).expect("the change file is written");
    assert!(file.bytes > 1_200_000_000, "the file has {} bytes only", file.bytes);
    assert_eq!(file.meters.rows + file.alarms.rows, 4_000_000);

    let used = measure(&desk.command(Binary::Plain, Desk::RUN));
    let ended = used.ended.expect_code(0);
    eprintln!(
        "{} events, {} bytes: {} KiB resident, {:.1} CPU-s",
        file.events, file.bytes, used.resident_kib_max, used.cpu_seconds
    );
    assert!(used.resident_kib_max <= RESIDENT_KIB_MAX, "{} KiB resident\n{}", used.resident_kib_max, ended.stderr);

    for (table, expected) in [("meters", file.meters), ("alarms", file.alarms)] {
        let wrong = format!(
            "count(*) FILTER ((note LIKE 'the reading was taken by the night shift%' AND reading = {READING}) IS NOT TRUE)"
        );
        let changed = "count(*) FILTER (version = 1 AND id % 10 <> 0)";
        let found = query(
            &desk.warehouse(),
            "plant",
            table,
            &["count(*)", "count(DISTINCT id)", "sum(id)", "sum(reading)", &wrong, changed],
        );
        let Totals { rows, keys, readings } = expected;
        assert_eq!(found, [rows, rows, keys, readings, 0, 0].map(|number| number.to_string()), "{table}");
    }
}

#[test]
fn a_huge_transaction_of_postgresql_is_copied_in_half_a_gibibyte() {
    // Where there are fewer rows they are wider.
    let (rows, width) = if is_long() { (5_000_000_u64, 120) } else { (600_000, 1_000) };
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE plant");
    server.sql("plant", "CREATE TABLE meters (id bigint PRIMARY KEY, version int NOT NULL, reading bigint, note text)");
    let desk = Desk::new().with_pipeline(&format!(
        "pipeline: meters
source: {{ kind: postgres, uri: \"{}\", slotName: meters, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: plant }}
tables:
  - {{ source: public.meters }}
",
        server.uri("plant")
    ));
    desk.run().expect_code(0);
    let before = server.log_end();
    // In one transaction they are made, and every tenth is changed.
    server.sql(
        "plant",
        &format!(
            "BEGIN; INSERT INTO meters SELECT id, 0, id::bigint * 7919 % 1000003, repeat('n', {width}) FROM generate_series(1, {rows}) id;
             UPDATE meters SET version = 1, reading = reading + 10000000 WHERE id % 10 = 0; COMMIT"
        ),
    );
    let bytes = server.log_end() - before;
    assert!(bytes > RESIDENT_KIB_MAX << 10, "{bytes} bytes of log only: all of it may be resident at once");

    let used = measure(&desk.command(Binary::Plain, Desk::RUN));
    let ended = used.ended.expect_code(0);
    eprintln!("{rows} rows, {bytes} bytes of log: {} KiB resident, {:.1} CPU-s", used.resident_kib_max, used.cpu_seconds);
    assert!(used.resident_kib_max <= RESIDENT_KIB_MAX, "{} KiB resident\n{}", used.resident_kib_max, ended.stderr);

    // Also what is null.
    let right = format!("reading = {READING} AND length(note) = {width} AND version = CAST(id % 10 = 0 AS int)");
    let wrong = format!("count(*) FILTER (({right}) IS NOT TRUE)");
    let found = query(&desk.warehouse(), "plant", "meters", &["count(*)", "count(DISTINCT id)", "sum(id)", &wrong]);
    assert_eq!(found, [rows, rows, rows * (rows + 1) / 2, 0].map(|number| number.to_string()));
}
