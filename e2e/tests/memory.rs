//! Memory does not grow with the log: 1.2 GB of changes, 4 M keys, half of it one transaction, in 512 MiB.

use e2e::large::{READING, Totals, write_memory_file};
use e2e::readers::{measure, query};
use e2e::{Binary, Desk};

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
        let wrong =
            format!("count(*) FILTER (reading <> {READING} OR note NOT LIKE 'the reading was taken by the night shift%')");
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
