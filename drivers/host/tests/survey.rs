//! A rehearsal tells what a run would do, and leaves everything as it is.

use std::sync::Arc;

use contract::memory::{Change, MemoryLog, MemorySink, Value, row};
use contract::rows::{Column, TableSchema, Type};
use contract::{Sink, StateWrite};
use host::survey::{self, Rehearsal};
use host::{Drivers, Run};
use kernel::coordinator::StopReason;
use kernel::id::{Incarnation, TableName};
use kernel::position::Position;
use kernel::state::Phase;
use spec::Pipeline;

const PIPELINE: &str = "
pipeline: order-desk
source: { kind: jsonl, path: unused.jsonl }
sink: { kind: 'null', checkpoint: { interval: 100ms } }
tables:
  - { source: shop.orders, primaryKey: [id] }
";

fn orders() -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let columns = vec![column("id", Type::Int64), column("note", Type::String)];
    TableSchema { table: TableName::from("shop.orders"), columns, key: vec![0] }
}

fn log(identity: &str) -> MemoryLog {
    MemoryLog::new(identity, [orders()])
}

/// Adds an order in a transaction of its own. Answers where the log ends.
fn insert(log: &MemoryLog, id: i64) -> Position {
    let row = row(&orders(), &[Value::Int(id), Value::Text("new")]).expect("a row");
    log.transaction(vec![Change::Insert(orders().table, row)])
}

fn pipeline() -> Pipeline {
    spec::parse(PIPELINE, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file")
}

fn drivers(log: &MemoryLog, sink: &MemorySink) -> Drivers {
    Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) }
}

async fn run(log: &MemoryLog, sink: &MemorySink) {
    let mut run = Run::start(&pipeline(), drivers(log, sink), true).expect("a run");
    assert_eq!(run.ended().await.reason, StopReason::Drained);
}

async fn rehearse(log: &MemoryLog, sink: &MemorySink) -> Rehearsal {
    survey::rehearse(&pipeline(), &drivers(log, sink)).await.expect("a rehearsal")
}

fn phase_and_stand(rehearsal: &Rehearsal) -> (Phase, Position) {
    let table = &rehearsal.status.tables[&orders().table];
    (table.phase, table.taken.clone())
}

#[tokio::test]
async fn a_first_run_would_be_life_1_and_begin_at_the_beginning() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (log, sink) = (log("desk 1"), MemorySink::new(kind));
        let end = insert(&log, 1);
        let rehearsal = rehearse(&log, &sink).await;
        assert_eq!(rehearsal.stops, None, "{kind:?}");
        assert_eq!(rehearsal.status.incarnation, Incarnation(1));
        assert_eq!(phase_and_stand(&rehearsal), (Phase::Streaming, Position::START));
        assert_eq!(rehearsal.log.end, end);
    }
}

#[tokio::test]
async fn a_rehearsal_takes_no_life_and_writes_nothing() {
    let (log, sink) = (log("desk 1"), MemorySink::new(StateWrite::WithData));
    insert(&log, 1);
    run(&log, &sink).await;
    let record = sink.pipeline_state().await.expect("a record");
    let rehearsal = rehearse(&log, &sink).await;
    assert_eq!(rehearsal.status.incarnation, Incarnation(2));
    assert_eq!(sink.pipeline_state().await.expect("a record"), record);
    assert_eq!(rehearse(&log, &sink).await.status.incarnation, Incarnation(2), "the first rehearsal took a life");
}

#[tokio::test]
async fn a_table_would_go_on_where_its_copy_stands() {
    let (log, sink) = (log("desk 1"), MemorySink::new(StateWrite::WithData));
    let stand = insert(&log, 1);
    run(&log, &sink).await;
    insert(&log, 2);
    assert_eq!(phase_and_stand(&rehearse(&log, &sink).await), (Phase::Streaming, stand));
}

#[tokio::test]
async fn a_log_that_no_longer_goes_back_far_enough_is_told_before_a_run_meets_it() {
    let (log, sink) = (log("desk 1"), MemorySink::new(StateWrite::WithData));
    insert(&log, 1);
    run(&log, &sink).await;
    insert(&log, 2);
    let forgotten = insert(&log, 3);
    log.discard(&forgotten);
    let rehearsal = rehearse(&log, &sink).await;
    assert_eq!(rehearsal.lost, [orders().table]);
    assert_eq!(rehearsal.status.tables[&orders().table].phase, Phase::NeedsSnapshot);
}

#[tokio::test]
async fn another_log_would_end_the_run_at_once() {
    let sink = MemorySink::new(StateWrite::WithData);
    let first = log("desk 1");
    insert(&first, 1);
    run(&first, &sink).await;
    let other = log("desk 2");
    insert(&other, 1);
    let Some(StopReason::PositionLost { why }) = rehearse(&other, &sink).await.stops else { panic!("it would run") };
    assert!(why.contains("'desk 1'") && why.contains("'desk 2'"), "{why}");
}

#[tokio::test]
async fn tables_are_known_with_their_schema_and_their_state() {
    let (log, sink) = (log("desk 1"), MemorySink::new(StateWrite::WithData));
    let stand = insert(&log, 1);
    let plans = host::plan::tables(&pipeline()).expect("plans");
    let known = survey::tables(&plans, &log.source(), &sink).await.expect("tables");
    assert_eq!(known[&orders().table].state.value, None);
    run(&log, &sink).await;
    let known = survey::tables(&plans, &log.source(), &sink).await.expect("tables");
    let known = &known[&orders().table];
    assert_eq!((known.table.target.as_str(), &*known.table.schema), ("orders", &orders()));
    let state = known.state.value.as_ref().expect("a state");
    assert_eq!(state.cut.upto(), &stand);
    let copy = survey::copy(&plans[&orders().table], state).expect("a schema").expect("a copy");
    assert_eq!((copy.target.as_str(), &*copy.schema), ("orders", &orders()));
}
