//! What encoding keys and netting cost: nanoseconds a row, for tables of ten columns and several shapes of a checkpoint.
//! On Linux the processor's time is counted, elsewhere the wall clock's.
//!
//! `cargo run --release -p rows --example netting`. The last column sets each shape in relation to the plainest one, so
//! that runs on different machines can be compared.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::*;
use arrow_buffer::BooleanBuffer;
use kernel::id::Incarnation;
use kernel::position::{Coordinate, Offset, Transaction};
use rows::net::net;
use rows::{
    ChangeBatch, Column, EncodedKeys, NetOutcome, Numbering, Operation, RowPhase, Slice, TableSchema, Tail, TransactionRun,
};

const ROWS: usize = 1_000_000;
const RUNS: usize = 5;
const NUMBERING: Numbering = Numbering { incarnation: Incarnation(1), first: 0 };

/// One way to spread rows over keys and batches.
struct Shape {
    name: &'static str,
    /// How many different keys.
    keys: usize,
    rows_per_batch: usize,
    rows_per_slice: usize,
    /// Every n-th row is a delete.
    delete_every: usize,
    /// Every n-th row is an update without its text.
    absent_every: usize,
}

const NEVER: usize = usize::MAX;

const SHAPES: [Shape; 6] = [
    Shape {
        name: "every key once, one batch",
        keys: ROWS,
        rows_per_batch: ROWS,
        rows_per_slice: ROWS,
        delete_every: NEVER,
        absent_every: NEVER,
    },
    Shape {
        name: "every key once, batches of 8,192",
        keys: ROWS,
        rows_per_batch: 8_192,
        rows_per_slice: 8_192,
        delete_every: NEVER,
        absent_every: NEVER,
    },
    Shape {
        name: "every key twice",
        keys: ROWS / 2,
        rows_per_batch: 8_192,
        rows_per_slice: 8_192,
        delete_every: NEVER,
        absent_every: NEVER,
    },
    Shape {
        name: "every key ten times",
        keys: ROWS / 10,
        rows_per_batch: 8_192,
        rows_per_slice: 8_192,
        delete_every: NEVER,
        absent_every: NEVER,
    },
    Shape {
        name: "twice, transactions of 4 rows, deletes",
        keys: ROWS / 2,
        rows_per_batch: 8_192,
        rows_per_slice: 4,
        delete_every: 10,
        absent_every: NEVER,
    },
    Shape {
        name: "ten times, some texts absent",
        keys: ROWS / 10,
        rows_per_batch: 8_192,
        rows_per_slice: 8_192,
        delete_every: NEVER,
        absent_every: 7,
    },
];

fn main() {
    println!("{:<42}{:>12}{:>12}{:>12}", "shape", "keys ns", "net ns", "relation");
    let mut plainest = None;
    for shape in &SHAPES {
        let batches = batches(shape);
        let encode = || -> Vec<Arc<EncodedKeys>> {
            batches.iter().map(|batch| Arc::new(EncodedKeys::encode(&batch.schema, &batch.data).expect("keys"))).collect()
        };
        let (encoding, keys) = best(encode);
        let slices: Vec<Slice> =
            batches.iter().zip(&keys).flat_map(|(batch, keys)| slices(batch, keys, shape.rows_per_slice)).collect();
        let (netting, outcome) = best(|| net(&slices, NUMBERING).expect("nets"));
        assert!(matches!(outcome, NetOutcome::Netted(_)), "no holes");

        let per_row = |time: Duration| time.as_secs_f64() * 1e9 / ROWS as f64;
        let plain = *plainest.get_or_insert(per_row(netting));
        println!("{:<42}{:>12.1}{:>12.1}{:>12.2}", shape.name, per_row(encoding), per_row(netting), per_row(netting) / plain);
    }
}

/// The shortest of several runs, since a busy machine only ever adds to one.
fn best<T>(run: impl Fn() -> T) -> (Duration, T) {
    let once = || {
        let start = Stopwatch::start();
        let result = run();
        (start.elapsed(), result)
    };
    (0..RUNS - 1).fold(once(), |best, _| {
        let next = once();
        if next.0 < best.0 { next } else { best }
    })
}

/// Counts this thread's time on a processor, where the system tells it.
struct Stopwatch {
    wall: Instant,
    on_processor: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { wall: Instant::now(), on_processor: on_processor() }
    }

    fn elapsed(&self) -> Duration {
        self.on_processor.and_then(|start| on_processor()?.checked_sub(start)).unwrap_or_else(|| self.wall.elapsed())
    }
}

fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn slices(batch: &Arc<ChangeBatch>, keys: &Arc<EncodedKeys>, rows_per_slice: usize) -> Vec<Slice> {
    (0..batch.rows())
        .step_by(rows_per_slice)
        .map(|start| Slice { batch: batch.clone(), keys: keys.clone(), rows: start..(start + rows_per_slice).min(batch.rows()) })
        .collect()
}

fn schema() -> Arc<TableSchema> {
    let types = ["int64", "string", "decimal(12,2)", "float64", "timestamp", "timestamptz", "date", "uuid", "bool", "int32"];
    let columns = types.iter().enumerate().map(|(n, kind)| Column::new(format!("c{n}"), kind.parse().expect("a type"), n > 0));
    Arc::new(TableSchema::new("bench".into(), columns.collect(), vec![0]).expect("valid"))
}

fn batches(shape: &Shape) -> Vec<Arc<ChangeBatch>> {
    let schema = schema();
    // A multiplier without a factor in common with the number of keys visits all of them, far apart.
    let key = |row: usize| (row * 7_368_787 % shape.keys) as i64;
    (0..ROWS)
        .step_by(shape.rows_per_batch)
        .map(|start| Arc::new(batch(&schema, shape, start..(start + shape.rows_per_batch).min(ROWS), &key)))
        .collect()
}

fn batch(schema: &Arc<TableSchema>, shape: &Shape, rows: std::ops::Range<usize>, key: &dyn Fn(usize) -> i64) -> ChangeBatch {
    let ints = || rows.clone().map(|row| row as i64);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.clone().map(key))),
        Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("a status or name {row}")))),
        Arc::new(Decimal128Array::from_iter_values(ints().map(i128::from)).with_precision_and_scale(12, 2).expect("fits")),
        Arc::new(Float64Array::from_iter_values(ints().map(|n| n as f64))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(ints())),
        Arc::new(TimestampMicrosecondArray::from_iter_values(ints()).with_timezone("+00:00")),
        Arc::new(Date32Array::from_iter_values(rows.clone().map(|row| (row % 20_000) as i32))),
        Arc::new(FixedSizeBinaryArray::try_from_iter(rows.clone().map(|row| (row as u128).to_le_bytes())).expect("16 bytes")),
        Arc::new(BooleanArray::from_iter(rows.clone().map(|row| Some(row % 2 == 0)))),
        Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| row as i32))),
    ];
    // The first tenth is whole, so that later rows have something to take values from.
    let is_absent = |row: usize| row > shape.keys && row.is_multiple_of(shape.absent_every);
    let operation = |row: usize| match row {
        row if row % shape.delete_every == shape.delete_every - 1 => Operation::Delete,
        row if is_absent(row) => Operation::Update,
        _ => Operation::Insert,
    };
    let marks = (shape.absent_every != NEVER).then(|| BooleanBuffer::collect_bool(rows.len(), |n| is_absent(rows.start + n)));
    ChangeBatch {
        schema: schema.clone(),
        data: RecordBatch::try_new(Arc::new(schema.arrow()), columns).expect("a batch"),
        absent: (0..10).map(|column| if column == 1 { marks.clone() } else { None }).collect(),
        tail: Tail {
            operations: rows.clone().map(operation).collect(),
            coordinates: rows.clone().map(|row| Coordinate { major: row as u64, minor: 0 }).collect(),
            transactions: vec![TransactionRun {
                transaction: Transaction { stream: "log".into(), at: Offset(rows.start as u64) },
                rows: rows.len(),
                commit_time: None,
            }],
            ingest_time: 0,
            phase: RowPhase::Stream,
        },
    }
}
