//! Values that the log leaves out of updates, through the whole machinery, over a log and a sink in memory: what the sink holds in the
//! end is what the source holds, whatever was left out, and whenever it was visible.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::arrow::array::{Array, Int64Array, StringArray};
use contract::memory::{Change, MemoryLog, MemoryRow, MemorySink, Value, row};
use contract::rows::{Column, RecordBatch, TableSchema, Type};
use contract::{Sink, StateWrite};
use host::{Drivers, Ended, Run};
use kernel::coordinator::Operator;
use kernel::id::TableName;
use kernel::state::Phase;

fn pages() -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let columns = vec![column("id", Type::Int64), column("title", Type::String), column("body", Type::String)];
    TableSchema { table: TableName::from("wiki.pages"), columns, key: vec![0] }
}

/// Title and body.
type Page = (String, String);

fn page(id: i64, (title, body): &Page) -> RecordBatch {
    row(&pages(), &[Value::Int(id), Value::Text(title), Value::Text(body)]).expect("a row")
}

fn insert(id: i64, page: &Page) -> Change {
    Change::Insert(pages().table, self::page(id, page))
}

/// The log has the title alone.
fn retitle(id: i64, page: &Page) -> Change {
    Change::UpdateWithout(pages().table, self::page(id, page), vec![2])
}

fn text(title: &str, body: &str) -> Page {
    (title.to_owned(), body.to_owned())
}

/// A log of a table that can be read.
fn log() -> MemoryLog {
    MemoryLog::new("wiki 1", [pages()]).with_rows(&pages().table, [])
}

fn start(log: &MemoryLog, sink: &MemorySink, until_current: bool) -> Run {
    let file = "
pipeline: wiki
source: { kind: jsonl, path: unused.jsonl }
sink: { kind: 'null', checkpoint: { interval: 20ms, maxRows: 30 } }
tables:
  - { source: wiki.pages, primaryKey: [id] }
";
    let pipeline = spec::parse(file, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file");
    Run::start(&pipeline, Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) }, until_current).expect("a run")
}

async fn run(log: &MemoryLog, sink: &MemorySink) -> Ended {
    start(log, sink, true).ended().await
}

fn rows(sink: &MemorySink) -> BTreeMap<i64, Page> {
    let of_row = |row: MemoryRow| {
        let id = row.data.column(0).as_any().downcast_ref::<Int64Array>().expect("ids").value(0);
        let text = |column: usize| {
            let texts = row.data.column(column).as_any().downcast_ref::<StringArray>().expect("texts");
            if texts.is_null(0) { "null".to_owned() } else { texts.value(0).to_owned() }
        };
        (id, (text(1), text(2)))
    };
    sink.rows("pages").into_iter().map(of_row).collect()
}

async fn moment() {
    tokio::time::sleep(Duration::from_millis(3)).await;
}

#[tokio::test]
async fn what_an_update_leaves_out_is_read_again() {
    for kind in [StateWrite::WithData, StateWrite::AfterData] {
        let (log, sink) = (log(), MemorySink::new(kind));
        log.transaction(vec![insert(1, &text("one", "a long body")), insert(2, &text("two", "another"))]);
        assert_eq!(run(&log, &sink).await.exit_code(), 0);
        // In a checkpoint of its own, so that the body is nowhere in it.
        log.transaction(vec![retitle(1, &text("uno", "a long body"))]);
        let moved = page(20, &text("due", "another"));
        log.transaction(vec![Change::RekeyWithout(pages().table, page(2, &text("two", "another")), moved, vec![2])]);

        let ended = run(&log, &sink).await;

        assert_eq!(ended.exit_code(), 0, "{ended:?}");
        assert_eq!(rows(&sink), BTreeMap::from([(1, text("uno", "a long body")), (20, text("due", "another"))]), "{kind:?}");
    }
}

#[tokio::test]
async fn a_source_whose_rows_cannot_be_read_again_halts_the_table_and_says_what_to_do() {
    let (log, sink) = (MemoryLog::new("wiki 1", [pages()]), MemorySink::new(StateWrite::WithData));
    log.transaction(vec![insert(1, &text("one", "a long body"))]);
    assert_eq!(run(&log, &sink).await.exit_code(), 0);
    log.transaction(vec![retitle(1, &text("uno", "a long body"))]);

    let ended = run(&log, &sink).await;

    assert_eq!(ended.tables[&pages().table].phase, Phase::Halted, "{ended:?}");
    let why = ended.tables[&pages().table].why.clone().unwrap_or_default();
    assert!(why.contains("body") && why.contains("Have the source send whole rows"), "{why}");
    assert_eq!(rows(&sink), BTreeMap::from([(1, text("one", "a long body"))]), "never null, never a placeholder");
}

/// Numbers that look random and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One change of what is there, which leaves out of the log what it does not change.
fn change(there: &mut BTreeMap<i64, Page>, chance: &mut Chance, number: u64) -> Change {
    let id = i64::try_from(chance.below(12)).expect("small");
    let Some(before) = there.get(&id).cloned() else {
        let new = text(&format!("title {number}"), &format!("body {number}"));
        there.insert(id, new.clone());
        return insert(id, &new);
    };
    let to = i64::try_from(chance.below(12)).expect("small");
    let titled = (format!("title {number}"), before.1.clone());
    match chance.below(10) {
        0 => {
            there.remove(&id);
            Change::Delete(pages().table, page(id, &before))
        }
        1 | 2 if !there.contains_key(&to) => {
            there.remove(&id);
            there.insert(to, titled.clone());
            Change::RekeyWithout(pages().table, page(id, &before), page(to, &titled), vec![2])
        }
        3 => {
            let whole = text(&format!("title {number}"), &format!("body {number}"));
            there.insert(id, whole.clone());
            Change::Update(pages().table, page(id, &whole))
        }
        4 => {
            let bodied = (before.0.clone(), format!("body {number}"));
            there.insert(id, bodied.clone());
            Change::UpdateWithout(pages().table, page(id, &bodied), vec![1])
        }
        5 => Change::UpdateWithout(pages().table, page(id, &before), vec![1, 2]),
        _ => {
            there.insert(id, titled.clone());
            retitle(id, &titled)
        }
    }
}

/// Rows come and go, move and change, in transactions that are in the log before they are visible; two lives read it, one after the other.
#[tokio::test]
async fn whatever_is_left_out_and_whenever_it_is_visible_the_copy_is_the_source() {
    for (kind, seed) in [(StateWrite::WithData, 7), (StateWrite::AfterData, 11), (StateWrite::WithData, 2026)] {
        let (log, sink) = (log(), MemorySink::new(kind));
        let (mut there, mut chance, mut number) = (BTreeMap::new(), Chance(seed), 0);
        for _ in 0..2 {
            let mut run = start(&log, &sink, false);
            let control = run.control();
            for _ in 0..60 {
                if chance.below(2) == 0 {
                    log.hide();
                }
                for _ in 0..=chance.below(4) {
                    let changes = (0..=chance.below(3)).map(|_| {
                        number += 1;
                        change(&mut there, &mut chance, number)
                    });
                    log.transaction(changes.collect());
                    tokio::task::yield_now().await;
                }
                moment().await;
                log.show();
                moment().await;
            }
            control.ask(Operator::Drain).await;
            let ended = run.ended().await;
            assert_eq!(ended.exit_code(), 0, "{ended:?}");
        }
        // What was in the log when it was asked to end, and not read.
        assert_eq!(run(&log, &sink).await.exit_code(), 0);
        assert_eq!(rows(&sink), there, "{kind:?} {seed}");
        assert!(sink.pipeline_state().await.unwrap().value.is_some());
    }
}
