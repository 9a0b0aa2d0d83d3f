//! Measures the way from netted rows to committed Parquet files and deletion vectors: rows per CPU second, bytes, commits.
//!
//! ```text
//! cargo run --release -p iceberg-sink --example upserts -- [DIRECTORY] [--commits N] [--rows N] [--keys N] [--anew N] [--keep]
//! ```
//!
//! Ten columns (long key, string, decimal, double, two timestamps, date, uuid, binary, int), half of them random, commits
//! of `--rows` rows (100,000) whose keys are drawn from `--keys` (as many as half of all rows). CPU time is that of the
//! whole process, all threads, user and system; making the rows is measured apart and left out. With `--anew N` the last N
//! commits copy the table anew: the last one removes what was there before them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use contract::kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use contract::kernel::outcome::CommitOutcome;
use contract::kernel::position::{Coordinate, Cut, LogIdentity, Offset, Position, Transaction};
use contract::kernel::state::{Ancestors, FORMAT, TableState};
use contract::rows::net::ReadRun;
use contract::rows::{Column, EncodedKeys, Netted, Operation, RowPhase, TableSchema, Tail, TransactionRun, Type};
use contract::{CommitRequest, Mode, Sink, SinkTable, Staged, TableSink};
use iceberg_sink::IcebergSink;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = Asked::from_arguments()?;
    let section = serde_json::json!({"kind": "iceberg", "uri": asked.directory, "namespace": "bench"});
    let sink = IcebergSink::open("upserts", section.as_object().ok_or("no object")?).await?;
    let table = table();
    sink.ensure_table(&table).await?;
    let mut token = sink.recover(&table).await?.token;
    let mut open = sink.open(&table, Incarnation(1)).await?;
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut making, mut line, mut copied) = (0.0, Line::default(), HashSet::new());
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for number in 1..=asked.commits {
        let begun = cpu_seconds();
        let rows = netted(&table, &mut random, &asked, number)?;
        making += cpu_seconds() - begun;
        let is_anew = number + asked.anew > asked.commits;
        if is_anew && line.generation == 0 {
            line.generation = 1;
            token = commit(&mut open, line.request(token, number, Vec::new(), false)).await?;
        }
        if is_anew {
            copied.extend(rows.upserts.column(0).as_primitive::<Int64Type>().values().iter().copied());
        }
        let attempt = AttemptId { incarnation: Incarnation(1), number };
        let staged = vec![Arc::new(open.writer.write(attempt, rows).await?)];
        let (last, began) = (Instant::now(), cpu_seconds());
        let sweep = is_anew && number == asked.commits;
        token = commit(&mut open, line.request(token, number, staged, sweep)).await?;
        if sweep {
            let (wall, cpu) = (last.elapsed().as_secs_f64(), cpu_seconds() - began);
            say(&format!("the sweep took {wall:.2} s wall, {cpu:.2} CPU s; {} keys were copied anew", copied.len()));
        }
    }
    let (used, wall) = (cpu_seconds() - cpu - making, start.elapsed().as_secs_f64());
    let written = asked.commits * asked.rows;
    let described = sink.describe(&table).await?.ok_or("the table is gone")?;
    say(&format!(
        "{written} rows in {} commits; {} live in {} data files, {} bytes",
        asked.commits, described.rows, described.data_files, described.data_bytes
    ));
    say(&format!(
        "{wall:.2} s wall, {used:.2} CPU s (and {making:.2} for making rows): {:.0} rows per CPU second",
        written as f64 / used
    ));
    say(&format!("{:.2} CPU s per 1,000,000 rows; {} MiB resident at most", used * 1e6 / written as f64, resident_mib()));
    say(&format!("metadata {}", described.metadata));
    if !asked.keep {
        std::fs::remove_dir_all(&asked.directory)?;
    }
    Ok(())
}

async fn commit(open: &mut TableSink, request: CommitRequest) -> Result<Token, Box<dyn std::error::Error>> {
    match open.committer.commit(&request).await {
        CommitOutcome::Durable { token } => Ok(token),
        other => Err(format!("commit {}: {other:?}", request.state.commit).into()),
    }
}

struct Asked {
    directory: PathBuf,
    commits: u64,
    /// So many of the commits, the last ones, copy the table anew.
    anew: u64,
    rows: u64,
    keys: u64,
    keep: bool,
}

impl Asked {
    fn from_arguments() -> Result<Self, Box<dyn std::error::Error>> {
        let unique = format!("urutau-upserts-{}", std::process::id());
        let mut asked =
            Self { directory: std::env::temp_dir().join(unique), commits: 10, anew: 0, rows: 100_000, keys: 0, keep: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().ok_or("a number is missing")?.parse::<u64>().map_err(|e| e.to_string());
            match argument.as_str() {
                "--commits" => asked.commits = number()?,
                "--anew" => asked.anew = number()?,
                "--rows" => asked.rows = number()?,
                "--keys" => asked.keys = number()?,
                "--keep" => asked.keep = true,
                directory => asked.directory = directory.into(),
            }
        }
        if asked.keys == 0 {
            asked.keys = (asked.commits * asked.rows / 2).max(asked.rows);
        }
        Ok(asked)
    }
}

fn table() -> SinkTable {
    let column = |name: &str, kind| Column { name: name.into(), kind, nullable: true };
    let columns = vec![
        column("id", Type::Int64),
        column("name", Type::String),
        column("amount", Type::Decimal { precision: 18, scale: 4 }),
        column("price", Type::Float64),
        column("at", Type::Timestamp),
        column("at_utc", Type::TimestampTz),
        column("day", Type::Date),
        column("token", Type::Uuid),
        column("bytes", Type::Binary),
        column("quantity", Type::Int32),
    ];
    let schema = TableSchema { table: "bench.upserts".into(), columns, key: vec![0] };
    SinkTable {
        table: schema.table.clone(),
        target: "upserts".into(),
        schema: Arc::new(schema),
        mode: Mode::Upsert,
        metadata: Vec::new(),
    }
}

/// A commit's rows: distinct keys, a run of the key space that begins at random, in steps that spread it.
fn netted(table: &SinkTable, random: &mut Random, asked: &Asked, number: u64) -> Result<Netted, Box<dyn std::error::Error>> {
    let count = usize::try_from(asked.rows)?;
    let start = random.next() % asked.keys;
    let ids: Vec<i64> = (0..asked.rows).map(|i| ((start + i * 7_919) % asked.keys) as i64).collect();
    let distinct: HashSet<i64> = ids.iter().copied().collect();
    let ids: Vec<i64> =
        if distinct.len() == count { ids } else { (0..asked.rows).map(|i| ((start + i) % asked.keys) as i64).collect() };
    let (mut names, mut tokens, mut bytes) = (StringBuilder::new(), FixedSizeBinaryBuilder::new(16), BinaryBuilder::new());
    let (mut amounts, mut prices) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for id in &ids {
        let hash = random.next();
        names.append_value(format!("name-{id}-{:x}", hash & 0xffff));
        tokens.append_value((u128::from(hash) << 64 | u128::from(number)).to_be_bytes())?;
        bytes.append_value(hash.to_le_bytes());
        amounts.push(i128::from(hash % 1_000_000_000));
        prices.push((hash >> 11) as f64 / 1e6);
    }
    let at: Vec<i64> = ids.iter().map(|id| 1_700_000_000_000_000 + id * 1_000_003).collect();
    let upserts = RecordBatch::try_new(
        Arc::new(table.schema.arrow()),
        vec![
            Arc::new(Int64Array::from(ids.clone())),
            Arc::new(names.finish()),
            Arc::new(Decimal128Array::from(amounts).with_precision_and_scale(18, 4)?),
            Arc::new(Float64Array::from(prices)),
            Arc::new(TimestampMicrosecondArray::from(at.clone())),
            Arc::new(TimestampMicrosecondArray::from(at).with_timezone("+00:00")),
            Arc::new(Date32Array::from_iter_values(ids.iter().map(|id| 19_000 + (id % 300) as i32))),
            Arc::new(tokens.finish()),
            Arc::new(bytes.finish()),
            Arc::new(Int32Array::from_iter_values(ids.iter().map(|id| *id as i32))),
        ],
    )?;
    let transaction = Transaction { stream: "log".into(), at: Offset(number) };
    let keys = EncodedKeys::encode(&table.schema, &upserts)?;
    Ok(Netted {
        schema: Arc::clone(&table.schema),
        upsert_keys: keys,
        upsert_versions: (0..asked.rows).map(Version).collect(),
        upsert_tail: Tail {
            operations: vec![Operation::Update; count],
            coordinates: (0..asked.rows).map(|major| Coordinate { major, minor: 0 }).collect(),
            transactions: vec![TransactionRun { transaction, rows: count, commit_time: None }],
            ingest_time: 0,
            phase: RowPhase::Stream,
        },
        upsert_reads: vec![ReadRun { rows: count, ingest_time: 0, phase: RowPhase::Stream }],
        deletes: upserts.slice(0, 0),
        delete_keys: EncodedKeys::empty(0),
        delete_versions: Vec::new(),
        upserts,
    })
}

/// Where the table stands.
#[derive(Default)]
struct Line {
    commits: u64,
    ancestors: Ancestors,
    generation: u64,
}

impl Line {
    /// The next commit.
    fn request(&mut self, token: Token, number: u64, staged: Vec<Arc<Staged>>, sweep: bool) -> CommitRequest {
        self.commits += 1;
        let commit = CommitId { incarnation: Incarnation(1), number: self.commits };
        let state = self.state(commit, number);
        self.ancestors.push(commit);
        CommitRequest { token, state, staged, schema: None, truncate_first: false, sweep }
    }

    fn state(&self, commit: CommitId, number: u64) -> TableState {
        TableState {
            format: FORMAT,
            cut: Cut::at(Position::of("log".into(), Offset(number + 1))),
            identity: LogIdentity::default(),
            incarnation: Incarnation(1),
            commit,
            ancestors: self.ancestors.clone(),
            sequence: 0,
            generation: self.generation,
            base: Position::START,
            begun: Version(0),
            tiling: Vec::new(),
            in_doubt: Vec::new(),
            ahead: Position::START,
            schema: None,
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }
}

/// User and system time of this process, in the kernel's ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks =
        |field: usize| after_name.split_whitespace().nth(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// An example may speak.
#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn say(line: &str) {
    println!("{line}");
}
