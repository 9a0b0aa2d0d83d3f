//! Measures the way from change batches to committed Parquet files and deletion vectors: rows per CPU second, bytes, commits.
//!
//! ```text
//! cargo run --release -p iceberg-sink --example upserts -- [DIRECTORY] [--commits N] [--rows N] [--keys N] [--keep]
//! ```
//!
//! Ten columns (long key, string, decimal, double, two timestamps, date, uuid, binary, int), half of them random, commits
//! of `--rows` rows (100,000) whose keys are drawn from `--keys` (as many as half of all rows). They come as a source gives
//! them, in batches of 8,192 rows and transactions of 64. CPU time is that of the whole process, all threads, user and
//! system; making the rows is measured apart and left out, and so is nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use contract::kernel::id::{AttemptId, CommitId, Incarnation, Version};
use contract::kernel::outcome::CommitOutcome;
use contract::kernel::position::{Coordinate, Cut, LogIdentity, Offset, Position, Transaction};
use contract::kernel::state::{Ancestors, FORMAT, TableState};
use contract::rows::net::net;
use contract::rows::{
    ChangeBatch, Column, EncodedKeys, NetOutcome, Netted, Numbering, Operation, RowPhase, Slice, TableSchema, Tail,
    TransactionRun, Type, row_digests,
};
use contract::{CommitRequest, Mode, Sink, SinkTable};
use iceberg_sink::IcebergSink;

/// What a source gives at once at most.
const BATCH_ROWS: usize = 8_192;
const TRANSACTION_ROWS: usize = 64;

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
    let (mut phases, mut ancestors, mut first) = (Phases::default(), Ancestors::default(), 0);
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for number in 1..=asked.commits {
        phases.begin();
        let batches = batches(&table, &mut random, &asked, number)?;
        phases.end(Phase::Making);
        let slices = slices(&table, batches)?;
        phases.end(Phase::Keys);
        let rows = netted(&slices, first)?;
        first += asked.rows;
        drop(slices);
        phases.end(Phase::Netting);
        let attempt = AttemptId { incarnation: Incarnation(1), number };
        let staged = open.writer.write(attempt, rows).await?;
        phases.end(Phase::Writing);
        let commit = CommitId { incarnation: Incarnation(1), number };
        let state = state(commit, &ancestors, number);
        let request = CommitRequest {
            token: token.clone(),
            state,
            staged: vec![Arc::new(staged)],
            schema: None,
            truncate_first: false,
            sweep: false,
        };
        token = match open.committer.commit(&request).await {
            CommitOutcome::Durable { token } => token,
            other => return Err(format!("commit {number}: {other:?}").into()),
        };
        phases.end(Phase::Committing);
        ancestors.push(commit);
    }
    let making = phases.of(Phase::Making);
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
    let million = 1e6 / written as f64;
    say(&format!(
        "of 1,000,000 rows: keys and digests {:.2}, netting {:.2}, Parquet {:.2}, vectors and commit {:.2} CPU s",
        phases.of(Phase::Keys) * million,
        phases.of(Phase::Netting) * million,
        phases.of(Phase::Writing) * million,
        phases.of(Phase::Committing) * million,
    ));
    say(&format!("{:.2} CPU s per 1,000,000 rows; {} MiB resident at most", used * million, resident_mib()));
    say(&format!("metadata {}", described.metadata));
    if !asked.keep {
        std::fs::remove_dir_all(&asked.directory)?;
    }
    Ok(())
}

/// What the time is used for.
#[derive(Clone, Copy)]
enum Phase {
    Making,
    Keys,
    Netting,
    Writing,
    Committing,
}

/// The CPU seconds of each phase. They follow one another, so each is what the process used meanwhile.
#[derive(Default)]
struct Phases {
    begun: f64,
    used: [f64; 5],
}

impl Phases {
    fn begin(&mut self) {
        self.begun = cpu_seconds();
    }

    /// Ends the phase; the next one begins.
    fn end(&mut self, phase: Phase) {
        let now = cpu_seconds();
        self.used[phase as usize] += now - self.begun;
        self.begun = now;
    }

    fn of(&self, phase: Phase) -> f64 {
        self.used[phase as usize]
    }
}

struct Asked {
    directory: PathBuf,
    commits: u64,
    rows: u64,
    keys: u64,
    keep: bool,
}

impl Asked {
    fn from_arguments() -> Result<Self, Box<dyn std::error::Error>> {
        let unique = format!("urutau-upserts-{}", std::process::id());
        let mut asked = Self { directory: std::env::temp_dir().join(unique), commits: 10, rows: 100_000, keys: 0, keep: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().ok_or("a number is missing")?.parse::<u64>().map_err(|e| e.to_string());
            match argument.as_str() {
                "--commits" => asked.commits = number()?,
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
    let column = |name: &str, kind| Column::new(name, kind, true);
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

/// Batches with their keys, divided by transaction, as the pump keeps them until a checkpoint closes. The digests go to the
/// kernel there; here they are computed for what they cost.
fn slices(table: &SinkTable, batches: Vec<ChangeBatch>) -> Result<Vec<Slice>, Box<dyn std::error::Error>> {
    let mut slices = Vec::new();
    for batch in batches {
        let keys = Arc::new(EncodedKeys::encode(&table.schema, &batch.data)?);
        let (batch, mut from) = (Arc::new(batch), 0);
        for run in &batch.tail.transactions {
            let rows = from..from + run.rows;
            std::hint::black_box(row_digests(&batch, &keys, rows.clone()));
            from = rows.end;
            slices.push(Slice { batch: Arc::clone(&batch), keys: Arc::clone(&keys), rows });
        }
    }
    Ok(slices)
}

fn netted(slices: &[Slice], first: u64) -> Result<Netted, Box<dyn std::error::Error>> {
    match net(slices, Numbering { incarnation: Incarnation(1), first })? {
        NetOutcome::Netted(netted) => Ok(*netted),
        NetOutcome::Holes(holes) => Err(format!("{holes:?}").into()),
    }
}

/// A commit's changes: distinct keys, a run of the key space that begins at random, in steps that spread it.
fn batches(
    table: &SinkTable,
    random: &mut Random,
    asked: &Asked,
    number: u64,
) -> Result<Vec<ChangeBatch>, Box<dyn std::error::Error>> {
    let count = usize::try_from(asked.rows)?;
    let start = random.next() % asked.keys;
    let ids: Vec<i64> = (0..asked.rows).map(|i| ((start + i * 7_919) % asked.keys) as i64).collect();
    let distinct: std::collections::HashSet<i64> = ids.iter().copied().collect();
    let ids: Vec<i64> =
        if distinct.len() == count { ids } else { (0..asked.rows).map(|i| ((start + i) % asked.keys) as i64).collect() };
    ids.chunks(BATCH_ROWS).enumerate().map(|(index, ids)| batch(table, random, number, index * BATCH_ROWS, ids)).collect()
}

/// Changes of these rows, the first of them the `from`th of the commit.
fn batch(
    table: &SinkTable,
    random: &mut Random,
    number: u64,
    from: usize,
    ids: &[i64],
) -> Result<ChangeBatch, Box<dyn std::error::Error>> {
    let (mut names, mut tokens, mut bytes) = (StringBuilder::new(), FixedSizeBinaryBuilder::new(16), BinaryBuilder::new());
    let (mut amounts, mut prices) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
    for id in ids {
        let hash = random.next();
        names.append_value(format!("name-{id}-{:x}", hash & 0xffff));
        tokens.append_value((u128::from(hash) << 64 | u128::from(number)).to_be_bytes())?;
        bytes.append_value(hash.to_le_bytes());
        amounts.push(i128::from(hash % 1_000_000_000));
        prices.push((hash >> 11) as f64 / 1e6);
    }
    let at: Vec<i64> = ids.iter().map(|id| 1_700_000_000_000_000 + id * 1_000_003).collect();
    let data = RecordBatch::try_new(
        Arc::new(table.schema.arrow()),
        vec![
            Arc::new(Int64Array::from(ids.to_vec())),
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
    let transactions = (0..ids.len()).step_by(TRANSACTION_ROWS).map(|start| TransactionRun {
        transaction: Transaction { stream: "log".into(), at: Offset((number << 32) + (from + start) as u64) },
        rows: TRANSACTION_ROWS.min(ids.len() - start),
        commit_time: Some(0),
    });
    let tail = Tail {
        operations: vec![Operation::Update; ids.len()],
        coordinates: (0..ids.len()).map(|row| Coordinate { major: (from + row) as u64, minor: 0 }).collect(),
        transactions: transactions.collect(),
        ingest_time: 0,
        phase: RowPhase::Stream,
    };
    Ok(ChangeBatch { schema: Arc::clone(&table.schema), absent: vec![None; data.num_columns()], data, tail })
}

fn state(commit: CommitId, ancestors: &Ancestors, number: u64) -> TableState {
    TableState {
        format: FORMAT,
        cut: Cut::at(Position::of("log".into(), Offset(number + 1))),
        identity: LogIdentity::default(),
        incarnation: Incarnation(1),
        commit,
        ancestors: ancestors.clone(),
        sequence: 0,
        generation: 0,
        base: Position::START,
        begun: Version(0),
        tiling: Vec::new(),
        in_doubt: Vec::new(),
        ahead: Position::START,
        schema: None,
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
