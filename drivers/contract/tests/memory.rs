//! What the log in memory offers beyond the laws: streams, schema changes, truncates, forgetting.

use std::sync::Arc;

use contract::kernel::id::{StreamName, TableName};
use contract::kernel::position::{Coordinate, Offset, Position, Transaction};
use contract::memory::{Change, MemoryLog, Value, row};
use contract::rows::{Column, RecordBatch, TableSchema, Type};
use contract::{Kind, Limit, LogEvent, LogRead, Source, Start};

const ALL: Limit = Limit { rows: 100, bytes: 1 << 20 };

fn schema(columns: &[(&str, Type)]) -> TableSchema {
    let column = |(name, kind): &(&str, Type)| Column::new(*name, kind.clone(), true);
    TableSchema { table: TableName::from("t"), columns: columns.iter().map(column).collect(), key: vec![0] }
}

fn numbers() -> TableSchema {
    schema(&[("id", Type::Int64)])
}

fn number(id: i64) -> RecordBatch {
    row(&numbers(), &[Value::Int(id)]).unwrap()
}

fn table() -> TableName {
    TableName::from("t")
}

async fn read(log: &MemoryLog, from: &Position, limit: Limit) -> LogRead {
    let mut reader = log.source().stream(&from.clone().into(), &[Arc::new(numbers())]).await.unwrap();
    reader.next(limit).await.unwrap()
}

fn ended(stream: &str, at: u64, upto: u64, commit_time: Option<i64>) -> LogEvent {
    let name = StreamName::from(stream);
    let upto = Position::of(name.clone(), Offset(upto));
    LogEvent::Ended { transaction: Transaction { stream: name, at: Offset(at) }, upto, commit_time }
}

#[tokio::test]
async fn each_stream_has_positions_of_its_own() {
    let log = MemoryLog::new("log", [numbers()]);
    log.transaction_in("a", vec![Change::Insert(table(), number(1)), Change::Insert(table(), number(2))], Some(7));
    log.transaction_in("b", vec![Change::Insert(table(), number(3))], None);
    let upto = log.transaction_in("a", vec![], None);
    log.finish();
    assert_eq!(upto.to_string(), "a:3");
    assert_eq!(log.source().open().await.unwrap().end.to_string(), "a:3,b:1");

    let all = read(&log, &Position::START, ALL).await;
    let ends: Vec<&LogEvent> = all.events.iter().filter(|event| matches!(event, LogEvent::Ended { .. })).collect();
    assert_eq!(ends, [&ended("a", 0, 2, Some(7)), &ended("b", 0, 1, None), &ended("a", 2, 3, None)]);
    assert!(all.finished);

    let rest = read(&log, &Position::of(StreamName::from("a"), Offset(2)), ALL).await;
    assert_eq!(rest.batches.iter().map(|batch| batch.rows()).sum::<usize>(), 1, "only what is in b");
}

#[tokio::test]
async fn rows_after_a_schema_change_come_under_the_new_schema() {
    let log = MemoryLog::new("log", [numbers()]);
    let wider = Arc::new(schema(&[("id", Type::Int64), ("word", Type::String)]));
    let with_word = row(&wider, &[Value::Int(2), Value::Text("two")]).unwrap();
    log.transaction(vec![
        Change::Insert(table(), number(1)),
        Change::Schema(Arc::clone(&wider)),
        Change::Insert(table(), with_word),
    ]);
    let read = read(&log, &Position::START, ALL).await;
    let [
        LogEvent::Rows { batch: 0, .. },
        LogEvent::Schema { schema, .. },
        LogEvent::Rows { batch: 1, .. },
        LogEvent::Ended { .. },
    ] = &read.events[..]
    else {
        panic!("{:?}", read.events)
    };
    assert_eq!((schema, &read.batches[1].schema), (&wider, &wider));
    assert_eq!(read.batches[0].schema, Arc::new(numbers()));
}

#[tokio::test]
async fn a_truncate_has_its_place_between_the_rows() {
    let log = MemoryLog::new("log", [numbers()]);
    let insert = |id| Change::Insert(table(), number(id));
    log.transaction(vec![insert(1), Change::Truncate(table()), insert(2)]);
    let read = read(&log, &Position::START, ALL).await;
    let transaction = Transaction { stream: StreamName::from(""), at: Offset(0) };
    let truncated = LogEvent::Truncated { table: table(), transaction, coordinate: Coordinate { major: 1, minor: 0 } };
    assert_eq!(read.events[1], truncated);
    assert_eq!(read.batches[0].tail.coordinates.iter().map(|at| at.major).collect::<Vec<_>>(), [0, 2]);
}

#[tokio::test]
async fn what_was_acknowledged_is_forgotten_only_if_asked_for() {
    let log = MemoryLog::new("log", [numbers()]);
    let first = log.transaction(vec![Change::Insert(table(), number(1))]);
    log.transaction(vec![Change::Insert(table(), number(2))]);
    let source = log.source();
    source.acknowledge(&first).await.unwrap();
    assert_eq!(log.acknowledged(), first);
    assert_eq!(source.open().await.unwrap().floor, Position::START);
    assert_eq!(read(&log, &Position::START, ALL).await.events.len(), 4);

    log.discard_acknowledged();
    assert_eq!(source.open().await.unwrap().floor, first);
    let Err(error) = source.stream(&Start::default(), &[]).await else { panic!("it is forgotten") };
    assert_eq!(error.kind, Kind::PositionLost);
    assert_eq!(read(&log, &first, ALL).await.events.len(), 2);
}

#[tokio::test]
async fn an_open_log_answers_with_nothing_until_something_is_written() {
    let log = MemoryLog::new("log", [numbers()]);
    let mut reader = log.source().stream(&Start::default(), &[Arc::new(numbers())]).await.unwrap();
    let empty = reader.next(ALL).await.unwrap();
    assert!(empty.events.is_empty() && !empty.finished);
    log.transaction(vec![Change::Insert(table(), number(1))]);
    assert_eq!(reader.next(ALL).await.unwrap().events.len(), 2);
    log.finish();
    assert!(reader.next(ALL).await.unwrap().finished);
}

#[test]
fn a_row_that_does_not_fit_its_schema_is_said() {
    let error = row(&numbers(), &[Value::Text("one")]).unwrap_err();
    assert_eq!(error.what, "t: the column 'id' takes another kind of value");
    let error = row(&numbers(), &[]).unwrap_err();
    assert_eq!(error.what, "t: 0 values for 1 columns");
}
