//! Tables read beside their log, through the whole machinery, over a log and a sink in memory: what the sink holds in the end is
//! what the source holds, whatever was in the log before it was visible.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::memory::{Change, MemoryLog, MemoryRow, MemorySink, Value, row};
use contract::rows::{Column, RecordBatch, TableSchema, Type};
use contract::{Sink, StateWrite};
use host::{Drivers, Ended, Run, TableReport};
use kernel::coordinator::Operator;
use kernel::id::TableName;
use kernel::state::Phase;

const OLDER: i64 = 100;

fn orders() -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let columns = vec![column("id", Type::Int64), column("note", Type::String)];
    TableSchema { table: TableName::from("shop.orders"), columns, key: vec![0] }
}

fn order(id: i64, note: &str) -> RecordBatch {
    row(&orders(), &[Value::Int(id), Value::Text(note)]).expect("a row")
}

fn insert(id: i64, note: &str) -> Change {
    Change::Insert(orders().table, order(id, note))
}

fn update(id: i64, note: &str) -> Change {
    Change::Update(orders().table, order(id, note))
}

fn delete(id: i64) -> Change {
    Change::Delete(orders().table, order(id, ""))
}

/// A log whose table held rows before it began.
fn log() -> MemoryLog {
    MemoryLog::new("desk 1", [orders()]).with_rows(&orders().table, (0..OLDER).map(|id| order(id, "older than the log")))
}

fn file(snapshot: &str, mode: &str) -> String {
    format!(
        "
pipeline: order-desk
source: {{ kind: jsonl, path: unused.jsonl }}
sink: {{ kind: 'null', checkpoint: {{ interval: 50ms, maxRows: 40 }} }}
snapshot: {snapshot}
tables:
  - {{ source: shop.orders, primaryKey: [id], writeMode: {mode} }}
"
    )
}

fn try_start(log: &MemoryLog, sink: &MemorySink, text: &str, until_current: bool) -> Result<Run, contract::Error> {
    let pipeline = spec::parse(text, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file");
    Run::start(&pipeline, Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) }, until_current)
}

fn start(log: &MemoryLog, sink: &MemorySink, snapshot: &str, until_current: bool) -> Run {
    try_start(log, sink, &file(snapshot, "upsert"), until_current).expect("a run")
}

async fn run(log: &MemoryLog, sink: &MemorySink, snapshot: &str) -> Ended {
    start(log, sink, snapshot, true).ended().await
}

/// The target's rows: key to note.
fn rows(sink: &MemorySink) -> BTreeMap<i64, String> {
    use contract::arrow::array::{Int64Array, StringArray};
    let of_row = |row: MemoryRow| {
        let id = row.data.column(0).as_any().downcast_ref::<Int64Array>().expect("ids").value(0);
        let note = row.data.column(1).as_any().downcast_ref::<StringArray>().expect("notes").value(0).to_owned();
        (id, note)
    };
    sink.rows("orders").into_iter().map(of_row).collect()
}

async fn moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

const CHUNKS: &str = "{ chunkRows: 7, parallelism: 3 }";

#[tokio::test]
async fn rows_that_are_older_than_the_log_get_to_the_sink_and_so_do_their_changes() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (log, sink) = (log(), MemorySink::new(kind));
        log.transaction(vec![update(5, "changed"), delete(6), insert(200, "new")]);

        let ended = run(&log, &sink, CHUNKS).await;

        assert_eq!(ended.exit_code(), 0, "{ended:?}");
        let mut expected: BTreeMap<i64, String> = (0..OLDER).map(|id| (id, "older than the log".to_owned())).collect();
        expected.extend([(5, "changed".to_owned()), (200, "new".to_owned())]);
        expected.remove(&6);
        assert_eq!(rows(&sink), expected, "{kind:?}");
        assert_eq!(ended.tables[&orders().table].phase, Phase::Streaming);
        // A next life has nothing to read.
        log.transaction(vec![delete(7)]);
        expected.remove(&7);
        let ended = run(&log, &sink, CHUNKS).await;
        assert_eq!((ended.exit_code(), ended.report.tables["shop.orders"].rows_committed), (0, 1), "{ended:?}");
        assert_eq!(rows(&sink), expected, "{kind:?}");
    }
}

#[tokio::test]
async fn without_a_snapshot_only_what_changes_from_then_on_is_there() {
    let (log, sink) = (log(), MemorySink::new(StateWrite::WithData));
    log.transaction(vec![update(5, "before the first run")]);
    assert_eq!(run(&log, &sink, "{ mode: never }").await.exit_code(), 0);
    log.transaction(vec![update(6, "after it")]);
    assert_eq!(run(&log, &sink, "{ mode: never }").await.exit_code(), 0);
    assert_eq!(rows(&sink), BTreeMap::from([(6, "after it".to_owned())]));
}

/// While a snapshot is read, and read anew, rows change in transactions that are in the log before they are visible.
#[tokio::test]
async fn what_was_in_the_log_before_it_was_visible_is_not_overwritten_by_what_was_seen() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (log, sink) = (log(), MemorySink::new(kind));
        let mut expected: BTreeMap<i64, String> = (0..OLDER).map(|id| (id, "older than the log".to_owned())).collect();
        let mut run = start(&log, &sink, "{ chunkRows: 5, parallelism: 2 }", false);
        let control = run.control();
        let mut changes = 0;
        for again in 0..6 {
            let mut rounds = 0;
            while rounds < 7 || control.report().tables.get("shop.orders").is_none_or(|table| table.generation <= again) {
                rounds += 1;
                log.hide();
                for _ in 0..3 {
                    changes += 1;
                    let (id, note) = (changes * 37 % OLDER, format!("change {changes}"));
                    log.transaction(vec![update(id, &note)]);
                    expected.insert(id, note);
                    tokio::task::yield_now().await;
                }
                moment().await;
                log.show();
                moment().await;
            }
            control.ask(Operator::Resnapshot(orders().table)).await;
        }
        // A report is a moment old: of the last snapshot it may not have heard.
        let is_done = |table: &TableReport| table.generation == 7 && table.phase == "streaming";
        while !is_done(&control.report().tables["shop.orders"]) {
            moment().await;
        }
        control.ask(Operator::Drain).await;
        let ended = run.ended().await;
        assert_eq!(ended.exit_code(), 0, "{ended:?}");
        // What was in the log when it was asked to end, and not read.
        assert_eq!(self::run(&log, &sink, CHUNKS).await.exit_code(), 0);
        assert_eq!(rows(&sink), expected, "{kind:?}");
        assert!(changes > 100, "{changes} changes");
    }
}

#[tokio::test]
async fn a_table_whose_place_in_the_log_is_lost_is_read_anew_and_keeps_no_row_that_is_gone() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (log, sink) = (log(), MemorySink::new(kind));
        assert_eq!(run(&log, &sink, CHUNKS).await.exit_code(), 0);
        log.transaction(vec![insert(300, "nobody read its end")]);
        log.transaction((0..50).map(delete).collect());
        let end = log.transaction(vec![delete(300)]);
        log.discard(&end);
        log.transaction(vec![update(60, "behind the gap")]);

        // Nobody is asked: the copy stays as it is, and says so.
        let ended = run(&log, &sink, CHUNKS).await;
        assert_eq!((ended.exit_code(), ended.tables[&orders().table].phase), (4, Phase::NeedsSnapshot), "{ended:?}");
        assert_eq!(rows(&sink).len(), usize::try_from(OLDER).unwrap());

        let ended = run(&log, &sink, "{ mode: when-needed, chunkRows: 7 }").await;
        assert_eq!(ended.exit_code(), 0, "{ended:?}");
        let mut expected: BTreeMap<i64, String> = (50..OLDER).map(|id| (id, "older than the log".to_owned())).collect();
        expected.insert(60, "behind the gap".to_owned());
        assert_eq!(rows(&sink), expected, "{kind:?}");
    }
}

#[tokio::test]
async fn a_target_that_keeps_every_row_has_no_snapshot() {
    let (log, sink) = (log(), MemorySink::new(StateWrite::WithData));
    let Err(error) = try_start(&log, &sink, &file("{}", "append"), true) else { panic!("it runs") };
    assert_eq!(error.code, "no-snapshot");
    assert!(error.to_string().contains("table shop.orders: writeMode 'append' keeps every row"), "{error}");
    assert!(sink.pipeline_state().await.unwrap().value.is_none());
}

#[tokio::test]
async fn a_table_that_cannot_be_read_anew_goes_on_as_it_was() {
    let (log, sink) = (MemoryLog::new("desk 1", [orders()]), MemorySink::new(StateWrite::WithData));
    let mut run = start(&log, &sink, "{}", false);
    let control = run.control();
    while !control.report().running {
        moment().await;
    }
    control.ask(Operator::Resnapshot(orders().table)).await;
    log.transaction(vec![insert(1, "after it was asked")]);
    while rows(&sink).is_empty() {
        moment().await;
    }
    control.ask(Operator::Drain).await;
    let ended = run.ended().await;
    assert_eq!((ended.exit_code(), ended.tables[&orders().table].phase), (0, Phase::Streaming), "{ended:?}");
}
