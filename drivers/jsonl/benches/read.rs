//! How fast a change file becomes batches: rows per second of processor time, of a file of 1,000,000 events with ten columns.
//!
//! `cargo bench -p jsonl`, or with `BENCH_FILE` (and `BENCH_TABLE`, `BENCH_KEY`) another file. Printed, never asserted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use contract::{Limit, LogReader, Source, Start, TableRequest};
use jsonl::JsonlSource;
use serde_json::json;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let given = std::env::var("BENCH_FILE").ok();
    let path = match &given {
        Some(path) => path.into(),
        None => {
            let path = dir.path().join("changes.jsonl");
            write_events(&mut BufWriter::new(File::create(&path).expect("a new file")), 1_000_000).expect("a disk with room");
            path
        }
    };
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let columns =
        [("price", "decimal(12,2)"), ("placed_at", "timestamptz"), ("day", "date"), ("ref", "uuid"), ("attributes", "json")];
    let request = TableRequest {
        table: variable("BENCH_TABLE", "shop.orders").as_str().into(),
        primary_key: Some(vec![variable("BENCH_KEY", "id")]),
        columns: columns
            .iter()
            .filter(|_| given.is_none())
            .map(|(name, kind)| ((*name).to_owned(), kind.parse().expect("a type")))
            .collect::<BTreeMap<_, _>>(),
        before_is_full: false,
        keeps_every_row: false,
    };
    let settings = [("path".to_owned(), json!(path.to_str()))].into_iter().collect();
    let source = JsonlSource::new(&settings).expect("settings");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for _ in 0..3 {
        runtime.block_on(read(&source, &request, path.metadata().expect("the file").len()));
    }
}

async fn read(source: &JsonlSource, request: &TableRequest, bytes: u64) {
    let described = source.describe(std::slice::from_ref(request), &BTreeMap::new()).await.expect("a description");
    let schemas: Vec<_> = described.into_iter().map(|table| table.schema).collect();
    let (begin, begin_cpu) = (Instant::now(), processor_seconds());
    let mut reader: Box<dyn LogReader> = source.stream(&Start::default(), &schemas).await.expect("a reader");
    let (mut rows, mut reads) = (0, 0);
    loop {
        let read = reader.next(Limit { rows: 8_192, bytes: 16 << 20 }).await.expect("events");
        rows += read.batches.iter().map(|batch| batch.rows()).sum::<usize>();
        reads += 1;
        if read.finished {
            break;
        }
    }
    let (wall, cpu) = (begin.elapsed().as_secs_f64(), processor_seconds() - begin_cpu);
    let per_million = cpu * 1e6 / rows as f64;
    let line = json!({
        "rows": rows, "reads": reads, "megabytes": bytes >> 20, "wall_seconds": wall, "cpu_seconds": cpu,
        "cpu_seconds_per_million_rows": per_million, "megabytes_per_cpu_second": bytes as f64 / 1e6 / cpu,
    });
    writeln!(std::io::stdout(), "{line}").expect("standard output");
}

/// User and system time of the whole process, where the system tells it.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}

/// Inserts and updates of an orders table as Debezium writes them without schema parts, about 620 bytes each.
fn write_events(to: &mut impl Write, events: u64) -> std::io::Result<()> {
    for n in 0..events {
        let (id, transaction) = (n * 7_919 % (events / 2), 1_000 + n / 4);
        let op = if n < events / 2 { "c" } else { "u" };
        let after = format!(
            "{{\"id\":{id},\"customer_id\":{},\"status\":\"{}\",\"price\":\"{}.{:02}\",\"placed_at\":\"2026-03-{:02}T{:02}:{:02}:{:02}.{:06}Z\",\"day\":\"2026-03-{:02}\",\"paid\":{},\"note\":{},\"ref\":\"7d444840-9dc0-11d1-b245-{:012x}\",\"attributes\":\"{{\\\"w\\\": {}, \\\"h\\\": [1, 2]}}\"}}",
            n % 10_007,
            ["placed", "paid", "shipped"][n as usize % 3],
            n % 5_000,
            n % 100,
            n % 28 + 1,
            n % 24,
            n % 60,
            n % 59,
            n % 999_983,
            n % 28 + 1,
            n % 2 == 0,
            if n % 3 == 0 { "null".to_owned() } else { format!("\"left at the door number {}\"", n % 1_000) },
            n,
            n % 50,
        );
        writeln!(
            to,
            "{{\"before\":null,\"after\":{after},\"source\":{{\"version\":\"3.6.1.Final\",\"connector\":\"postgresql\",\"name\":\"desk\",\"ts_ms\":1796029715533,\"snapshot\":\"false\",\"db\":\"desk\",\"sequence\":\"[\\\"{n}\\\",\\\"{n}\\\"]\",\"ts_us\":1796029715533378,\"ts_ns\":1796029715533378000,\"schema\":\"shop\",\"table\":\"orders\",\"txId\":{transaction},\"lsn\":{n},\"xmin\":null}},\"transaction\":{{\"id\":\"{transaction}:{n}\",\"total_order\":1,\"data_collection_order\":1}},\"op\":\"{op}\",\"ts_ms\":1796029715904,\"ts_us\":1796029715904374,\"ts_ns\":1796029715904374181}}"
        )?;
    }
    to.flush()
}
