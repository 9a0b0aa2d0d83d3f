//! How much CPU the released binary needs: rows per CPU-second of the whole process, bytes, commits.
//!
//! `make bench`, or `cargo run --release -p e2e --example bench -- [ROWS]` with `URUTAU_BIN` naming a release build. The same
//! file is copied twice, into the null sink and into Iceberg: the difference is what the sink does, without reading JSON and
//! without keys and netting, which both need. `upserts` of the Iceberg sink measures the whole way from a batch of changes.

use std::path::Path;

use e2e::large::write_bench_file;
use e2e::readers::{Used, measure, query};
use e2e::{Binary, Desk};

const ROWS: u64 = 1_000_000;

fn main() {
    let rows = std::env::args().nth(1).map_or(ROWS, |text| text.parse().expect("ROWS is a number"));
    let desk = Desk::new();
    write_bench_file(&desk.path().join("changes.jsonl"), rows).expect("the change file is written");
    let bytes = std::fs::metadata(desk.path().join("changes.jsonl")).expect("the change file is there").len();
    print(&format!("{rows} upserts of ten columns, {:.1} MB of JSON, checkpoints of 100,000 rows", bytes as f64 / 1e6));

    let null = run(&desk, "{ kind: null }");
    say("jsonl -> null", rows, &null);
    let iceberg =
        run(&desk, "{ kind: iceberg, uri: ./warehouse, namespace: bench, checkpoint: { maxRows: 100000, interval: 1h } }");
    say("jsonl -> iceberg", rows, &iceberg);

    let kept = query(&desk.warehouse(), "bench", "rows", &["count(*)", "count(DISTINCT id)"]);
    assert_eq!(kept[0], kept[1], "a key is there twice");
    let warehouse = desk.warehouse();
    print(&format!(
        "warehouse: {} rows, {:.1} MB in {} files",
        kept[0],
        size(&warehouse, "") as f64 / 1e6,
        count(&warehouse, "")
    ));
    for (what, suffix) in [("data files", ".parquet"), ("vectors", ".puffin")] {
        print(&format!("  {what}: {:.1} MB in {} files", size(&warehouse, suffix) as f64 / 1e6, count(&warehouse, suffix)));
    }
    print(&format!("commits: {}", commits(&iceberg)));
    let apart = (iceberg.cpu_seconds - null.cpu_seconds) * 1e6 / rows as f64;
    print(&format!("the sink's part: {apart:.2} CPU-s per million rows"));
}

fn run(desk: &Desk, sink: &str) -> Used {
    let pipeline = format!(
        "pipeline: bench
source: {{ kind: jsonl, path: changes.jsonl }}
sink: {sink}
tables:
  - source: bench.rows
    primaryKey: [id]
    columns:
      - {{ name: amount, type: \"decimal(12,2)\" }}
      - {{ name: made_at, type: timestamptz }}
      - {{ name: seen_at, type: timestamp }}
      - {{ name: due, type: date }}
      - {{ name: token, type: uuid }}
      - {{ name: blob, type: binary }}
      - {{ name: count, type: int32 }}
"
    );
    desk.write("pipeline.yaml", &pipeline);
    let mut used = measure(&desk.command(Binary::Plain, &[Desk::RUN, &["--output", "json"]].concat()));
    used.ended = used.ended.expect_code(0);
    used
}

/// How many commits the run says that it made.
fn commits(used: &Used) -> u64 {
    let said: serde_json::Value = serde_json::from_str(&used.ended.stdout).expect("the run's report is JSON");
    said["report"]["tables"]["bench.rows"]["commits"].as_u64().expect("the report counts commits")
}

fn say(what: &str, rows: u64, used: &Used) {
    let Used { cpu_seconds, wall_seconds, resident_kib_max, .. } = used;
    let rate = rows as f64 / cpu_seconds;
    print(&format!(
        "{what}: {cpu_seconds:.2} CPU-s, {wall_seconds:.2} s, {rate:.0} rows per CPU-second, {} MiB resident",
        resident_kib_max >> 10
    ));
}

/// All files below a folder whose name ends so, with their sizes.
fn files(folder: &Path, suffix: &str) -> Vec<u64> {
    let entries = std::fs::read_dir(folder).expect("a folder of the warehouse").map(|entry| entry.expect("an entry"));
    let found = entries.map(|entry| match entry.metadata().expect("an entry's size") {
        below if below.is_dir() => files(&entry.path(), suffix),
        file if entry.file_name().to_string_lossy().ends_with(suffix) => vec![file.len()],
        _ => Vec::new(),
    });
    found.flatten().collect()
}

fn size(folder: &Path, suffix: &str) -> u64 {
    files(folder, suffix).iter().sum()
}

fn count(folder: &Path, suffix: &str) -> usize {
    files(folder, suffix).len()
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn print(line: &str) {
    println!("{line}");
}
