//! The whole machinery over a log and a sink in memory: what a run reads is what its sink holds, across lives.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::memory::{Change, MemoryLog, MemorySink, Value, row};
use contract::rows::{Column, TableSchema, Type};
use contract::{Sink, StateWrite};
use host::{Drivers, Ended, Run};
use kernel::coordinator::{Operator, StopReason};
use kernel::id::TableName;
use kernel::state::Phase;

const PIPELINE: &str = "
pipeline: order-desk
source: { kind: jsonl, path: unused.jsonl }
sink: { kind: 'null', checkpoint: { interval: 100ms, maxRows: 100 } }
tables:
  - { source: shop.orders, primaryKey: [id] }
  - { source: shop.lines, primaryKey: [id] }
";

fn schema(table: &str) -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, true);
    TableSchema {
        table: TableName::from(table),
        columns: vec![column("id", Type::Int64), column("note", Type::String)],
        key: vec![0],
    }
}

struct Shop {
    orders: TableSchema,
    lines: TableSchema,
    log: MemoryLog,
}

impl Shop {
    fn new() -> Self {
        let (orders, lines) = (schema("shop.orders"), schema("shop.lines"));
        let log = MemoryLog::new("desk 1", [orders.clone(), lines.clone()]);
        Self { orders, lines, log }
    }

    fn insert(&self, table: &TableSchema, id: i64, note: &str) -> Change {
        Change::Insert(table.table.clone(), row(table, &[Value::Int(id), Value::Text(note)]).expect("a row"))
    }

    fn delete(&self, table: &TableSchema, id: i64) -> Change {
        Change::Delete(table.table.clone(), row(table, &[Value::Int(id), Value::Null]).expect("a row"))
    }

    async fn run(&self, sink: &MemorySink) -> Ended {
        start(&self.log, sink, true).ended().await
    }
}

fn start(log: &MemoryLog, sink: &MemorySink, until_current: bool) -> Run {
    let pipeline = spec::parse(PIPELINE, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file");
    let drivers = Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) };
    Run::start(&pipeline, drivers, until_current).expect("a run")
}

/// A target's rows: key to note.
fn rows(sink: &MemorySink, target: &str) -> BTreeMap<i64, String> {
    use contract::arrow::array::{Int64Array, StringArray};
    let of_row = |row: contract::memory::MemoryRow| {
        let id = row.data.column(0).as_any().downcast_ref::<Int64Array>().expect("ids").value(0);
        let note = row.data.column(1).as_any().downcast_ref::<StringArray>().expect("notes").value(0).to_owned();
        (id, note)
    };
    sink.rows(target).into_iter().map(of_row).collect()
}

#[tokio::test]
async fn what_the_log_says_is_what_the_sink_holds() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (shop, sink) = (Shop::new(), MemorySink::new(kind));
        shop.log.transaction(vec![shop.insert(&shop.orders, 1, "first"), shop.insert(&shop.lines, 10, "a line")]);
        shop.log.transaction(vec![shop.insert(&shop.orders, 2, "second"), shop.delete(&shop.orders, 1)]);
        let end = shop.log.transaction(vec![shop.insert(&shop.orders, 3, "third")]);

        let ended = shop.run(&sink).await;

        assert_eq!(ended.reason, StopReason::Drained, "{ended:?}");
        assert_eq!(ended.exit_code(), 0);
        assert_eq!(rows(&sink, "orders"), BTreeMap::from([(2, "second".into()), (3, "third".into())]));
        assert_eq!(rows(&sink, "lines"), BTreeMap::from([(10, "a line".into())]));
        assert_eq!(shop.log.acknowledged(), end, "{kind:?}");
    }
}

#[tokio::test]
async fn a_next_life_goes_on_where_the_last_one_stood() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (shop, sink) = (Shop::new(), MemorySink::new(kind));
        shop.log.discard_acknowledged();
        for id in 0..1_000 {
            shop.log.transaction(vec![shop.insert(&shop.orders, id, "as it was")]);
        }
        assert_eq!(shop.run(&sink).await.exit_code(), 0);
        for id in 0..500 {
            shop.log.transaction(vec![shop.delete(&shop.orders, id)]);
        }
        let ended = shop.run(&sink).await;

        assert_eq!(ended.exit_code(), 0, "{ended:?}");
        assert_eq!(ended.report.incarnation, 2);
        assert_eq!(ended.report.rows_read, 500, "what was acknowledged is not read again, and nothing is read twice");
        let expected: BTreeMap<i64, String> = (500..1_000).map(|id| (id, "as it was".to_owned())).collect();
        assert_eq!(rows(&sink, "orders"), expected);
        // The idle table never had a row, and is not lost though the log begins far behind its cut.
        assert_eq!(ended.tables[&TableName::from("shop.lines")].phase, Phase::Streaming);
    }
}

#[tokio::test]
async fn a_transaction_beyond_every_limit_becomes_visible_whole_in_the_end() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let huge = (0..10_000).map(|id| shop.insert(&shop.orders, id, "one of many")).collect();
    shop.log.transaction(huge);

    let ended = shop.run(&sink).await;

    assert_eq!(ended.exit_code(), 0, "{ended:?}");
    assert_eq!(rows(&sink, "orders").len(), 10_000);
    assert!(ended.report.tables["shop.orders"].commits > 1, "it was committed in pieces: {:?}", ended.report.tables);
}

#[tokio::test]
async fn a_refused_row_halts_its_table_and_no_other() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let refused = contract::Error::new(contract::Kind::Rejected, "too-long", "shop.orders: note is too long", "shorten it");
    shop.log.transaction(vec![shop.insert(&shop.orders, 1, "good")]);
    shop.log.transaction(vec![Change::Refused(shop.orders.table.clone(), refused), shop.insert(&shop.orders, 2, "behind it")]);
    shop.log.transaction(vec![shop.insert(&shop.lines, 10, "another table")]);

    let ended = shop.run(&sink).await;

    assert_eq!(ended.exit_code(), 3, "{ended:?}");
    assert_eq!(rows(&sink, "orders"), BTreeMap::from([(1, "good".into())]));
    assert_eq!(rows(&sink, "lines"), BTreeMap::from([(10, "another table".into())]));
    let why = ended.tables[&shop.orders.table].why.clone().unwrap_or_default();
    assert!(why.contains("note is too long"), "{why}");
}

#[tokio::test]
async fn skip_passes_the_refused_row_and_nothing_else() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let refused = contract::Error::new(contract::Kind::Rejected, "too-long", "shop.orders: note is too long", "shorten it");
    shop.log.transaction(vec![Change::Refused(shop.orders.table.clone(), refused), shop.insert(&shop.orders, 2, "behind it")]);
    let mut run = start(&shop.log, &sink, false);
    let control = run.control();
    while control.report().tables.get("shop.orders").is_none_or(|t| t.phase != "halted") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    control.ask(Operator::Skip(shop.orders.table.clone())).await;
    while rows(&sink, "orders").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    control.ask(Operator::Drain).await;

    let ended = run.ended().await;
    assert_eq!(ended.exit_code(), 0, "{ended:?}");
    assert_eq!(rows(&sink, "orders"), BTreeMap::from([(2, "behind it".into())]));
}

/// Waits until a target holds something.
async fn until(sink: &MemorySink, target: &str, holds: impl Fn(&BTreeMap<i64, String>) -> bool) {
    while !holds(&rows(sink, target)) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn commits_of_others_lose_nothing() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let mut run = start(&shop.log, &sink, false);
    for id in 0..20 {
        shop.log.transaction(vec![shop.insert(&shop.orders, id, "x")]);
        until(&sink, "orders", |rows| rows.contains_key(&id)).await;
        sink.touch("orders");
    }
    run.control().ask(Operator::Drain).await;
    assert_eq!(run.ended().await.exit_code(), 0);
    assert_eq!(rows(&sink, "orders").len(), 20);
}

#[tokio::test]
async fn what_was_acknowledged_and_rolled_back_is_said_to_be_lost() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let mut run = start(&shop.log, &sink, false);
    let end = shop.log.transaction(vec![shop.insert(&shop.orders, 1, "x")]);
    while shop.log.acknowledged() != end {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    sink.roll_back("orders");
    shop.log.transaction(vec![shop.insert(&shop.orders, 2, "behind it")]);
    while run.control().report().tables["shop.orders"].phase != "needs-snapshot" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    run.control().ask(Operator::Drain).await;
    assert_eq!(run.ended().await.exit_code(), 4, "the source may have forgotten what was rolled back");
    assert!(rows(&sink, "orders").is_empty(), "nothing is written on top of a hole");
}

#[tokio::test]
async fn a_newer_life_takes_over_and_the_older_one_says_so() {
    let (shop, sink) = (Shop::new(), MemorySink::new(StateWrite::WithData));
    let mut first = start(&shop.log, &sink, false);
    while !first.control().report().running {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut second = start(&shop.log, &sink, false);
    while !second.control().report().running {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    shop.log.transaction(vec![shop.insert(&shop.orders, 1, "x")]);

    let ended = first.ended().await;
    assert!(matches!(ended.reason, StopReason::Superseded { .. }), "{ended:?}");
    while rows(&sink, "orders").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    second.control().ask(Operator::Drain).await;
    assert_eq!(second.ended().await.exit_code(), 0);
    assert_eq!(sink.pipeline_state().await.expect("a record").value.expect("a record").incarnation.0, 2);
}
