//! A copy is compared with its source while both go on: what is right is called right, what a foreign hand changed is named by its
//! key, and what can't be judged is no difference.

use std::sync::Arc;
use std::time::Duration;

use contract::memory::{Change, MemoryLog, MemorySink, Value, row};
use contract::rows::{Column, EncodedKeys, RecordBatch, TableSchema, Type};
use contract::{Error, StateWrite};
use host::verify::{self, Difference, How, Verified};
use host::{Drivers, Run};
use kernel::coordinator::Operator;
use kernel::id::TableName;
use spec::Pipeline;

fn orders() -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let columns = vec![column("id", Type::Int64), column("note", Type::String), column("draft", Type::String)];
    TableSchema { table: TableName::from("shop.orders"), columns, key: vec![0] }
}

fn order(id: i64, note: &str) -> RecordBatch {
    row(&orders(), &[Value::Int(id), Value::Text(note), Value::Text(if id % 10 == 0 { "yes" } else { "no" })]).expect("a row")
}

fn insert(id: i64, note: &str) -> Change {
    Change::Insert(orders().table, order(id, note))
}

fn pipeline(more: &str) -> Pipeline {
    let file = format!(
        "
pipeline: order-desk
source: {{ kind: jsonl, path: unused.jsonl }}
sink: {{ kind: 'null', checkpoint: {{ interval: 20ms }} }}
tables:
  - {{ source: shop.orders, primaryKey: [id]{more} }}
"
    );
    spec::parse(&file, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file")
}

fn drivers(log: &MemoryLog, sink: &MemorySink) -> Drivers {
    Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) }
}

/// A copy of a table that held rows before its log began.
async fn copied(pipeline: &Pipeline) -> (MemoryLog, MemorySink) {
    let older = (1..=50).map(|id| order(id, "old"));
    let (log, sink) =
        (MemoryLog::new("desk 1", [orders()]).with_rows(&orders().table, older), MemorySink::new(StateWrite::WithData));
    log.transaction(vec![insert(51, "new")]);
    run(pipeline, &log, &sink).await;
    (log, sink)
}

async fn run(pipeline: &Pipeline, log: &MemoryLog, sink: &MemorySink) {
    let ended = Run::start(pipeline, drivers(log, sink), true).expect("a run").ended().await;
    assert_eq!(ended.exit_code(), 0, "{ended:?}");
}

async fn verified(pipeline: &Pipeline, log: &MemoryLog, sink: &MemorySink, patience: u64) -> Result<Verified, Error> {
    let plans = host::plan::tables(pipeline).expect("plans");
    verify::table(&drivers(log, sink), &plans[&orders().table], Duration::from_millis(patience)).await
}

fn key(id: i64) -> Vec<u8> {
    EncodedKeys::encode(&orders(), &order(id, "")).expect("a key").key(0).to_vec()
}

fn differs(id: i64, how: How) -> Difference {
    Difference { key: vec![id.to_string()], how }
}

#[tokio::test]
async fn a_copy_that_is_right_is_called_right_and_what_a_foreign_hand_did_is_named() {
    let pipeline = pipeline("");
    let (log, sink) = copied(&pipeline).await;
    let found = verified(&pipeline, &log, &sink, 5_000).await.expect("it is compared");
    assert_eq!((found.rows, &found.differences[..], found.unsettled, found.behind, found.more), (51, &[][..], 0, false, false));

    sink.tamper("orders", &key(7), None);
    sink.tamper("orders", &key(9), Some(order(9, "by hand")));
    sink.tamper("orders", &key(99), Some(order(99, "a ghost")));
    let found = verified(&pipeline, &log, &sink, 5_000).await.expect("it is compared");
    let expected = [differs(7, How::Missing), differs(9, How::Other), differs(99, How::Extra)];
    assert_eq!((&found.differences[..], found.unsettled), (&expected[..], 0));
}

#[tokio::test]
async fn rows_that_the_pipeline_leaves_out_are_no_difference() {
    let pipeline = pipeline(", columnFilter: [id, note], filter: { where: { col: draft, op: eq, value: 'no' } }");
    let (log, sink) = copied(&pipeline).await;
    let found = verified(&pipeline, &log, &sink, 5_000).await.expect("it is compared");
    assert_eq!((found.rows, found.differences.len(), found.unsettled), (46, 0, 0));
}

#[tokio::test]
async fn what_the_copy_has_not_come_to_is_not_judged() {
    let pipeline = pipeline("");
    let (log, sink) = copied(&pipeline).await;
    log.transaction(vec![insert(52, "nobody reads it")]);
    let found = verified(&pipeline, &log, &sink, 300).await.expect("it is compared");
    assert_eq!((found.rows, found.differences.len(), found.unsettled, found.behind), (52, 0, 1, true));
    run(&pipeline, &log, &sink).await;
    let found = verified(&pipeline, &log, &sink, 5_000).await.expect("it is compared");
    assert_eq!((found.rows, found.differences.len(), found.unsettled, found.behind), (52, 0, 0, false));
}

#[tokio::test]
async fn a_table_that_changes_all_the_time_is_compared_while_it_is_copied() {
    let pipeline = pipeline("");
    let (log, sink) = copied(&pipeline).await;
    sink.tamper("orders", &key(33), None);
    let mut goes_on = Run::start(&pipeline, drivers(&log, &sink), false).expect("a run");
    let control = goes_on.control();
    let writing = tokio::spawn({
        let log = log.clone();
        async move {
            for number in 0..400 {
                log.transaction(vec![Change::Update(orders().table, order(number % 20 + 1, &format!("note {number}")))]);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    let found = verified(&pipeline, &log, &sink, 30_000).await.expect("it is compared");
    // Of rows that change each time nothing is said; whatever is said is true.
    assert_eq!(found.differences, [differs(33, How::Missing)], "{found:?}");
    writing.await.expect("it writes");
    let found = verified(&pipeline, &log, &sink, 30_000).await.expect("it is compared");
    assert_eq!((&found.differences[..], found.unsettled), (&[differs(33, How::Missing)][..], 0), "{found:?}");
    control.ask(Operator::Drain).await;
    goes_on.ended().await;
}

/// A commit is in the log for a moment before any snapshot sees it.
#[tokio::test]
async fn a_row_that_the_log_has_and_the_source_does_not_show_yet_is_no_difference() {
    let pipeline = pipeline("");
    let (log, sink) = copied(&pipeline).await;
    log.hide();
    log.transaction(vec![insert(52, "in the log")]);
    run(&pipeline, &log, &sink).await;
    let shown = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        log.show();
    };
    let ((), found) = tokio::join!(biased; shown, verified(&pipeline, &log, &sink, 5_000));
    let found = found.expect("it is compared");
    assert_eq!((&found.differences[..], found.unsettled), (&[][..], 0), "{found:?}");
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused_in_words() {
    let pipeline = pipeline("");
    let (_, sink) = copied(&pipeline).await;
    let other = MemoryLog::new("desk 2", [orders()]).with_rows(&orders().table, []);
    other.transaction(vec![insert(1, "of another history")]);
    let refused = verified(&pipeline, &other, &sink, 0).await.unwrap_err();
    assert_eq!(refused.code, "verify-other-log", "{refused}");
    for words in ["shop.orders", "'desk 1'", "'desk 2'"] {
        assert!(refused.what.contains(words), "no {words} in {refused}");
    }
    let sink = MemorySink::new(StateWrite::WithData);
    let log = MemoryLog::new("desk 1", [orders()]);
    let refused = verified(&pipeline, &log, &sink, 0).await.unwrap_err();
    assert_eq!(refused.code, "verify-unsupported", "{refused}");
    let log = log.with_rows(&orders().table, []);
    let refused = verified(&pipeline, &log, &sink, 0).await.unwrap_err();
    assert_eq!(refused.code, "verify-not-copied", "{refused}");
}
