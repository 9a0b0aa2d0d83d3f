//! Rows read back for people.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Float64Array, Int64Array, StringArray, UInt64Array};
use contract::{Kind, Peek};
use rows::Operation::{Delete, Insert, Update};

use super::*;

fn orders(mode: Mode) -> SinkTable {
    table(&[("id", Type::Int64), ("part", Type::String), ("note", Type::String)], 2, mode)
}

fn batch(table: &SinkTable, rows: &[(i64, &str, Option<&str>)]) -> RecordBatch {
    let ids = Int64Array::from_iter_values(rows.iter().map(|(id, _, _)| *id));
    let parts = StringArray::from_iter_values(rows.iter().map(|(_, part, _)| *part));
    let notes: StringArray = rows.iter().map(|(_, _, note)| *note).collect();
    RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![Arc::new(ids), Arc::new(parts), Arc::new(notes)]).unwrap()
}

/// What a look shows: id, part, note.
async fn look(sink: &dyn Sink, table: &SinkTable, limit: usize, key: Option<&[&str]>) -> Vec<(i64, String, Option<String>)> {
    let key = key.map(|key| key.iter().map(|text| (*text).to_owned()).collect());
    let mut found = Vec::new();
    for batch in sink.peek(table, &Peek { limit, key }).await.unwrap() {
        assert_eq!(batch.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["id", "part", "note"]);
        let notes: Vec<Option<&str>> = batch.column(2).as_string::<i32>().iter().collect();
        for (row, note) in notes.iter().enumerate() {
            let id = batch.column(0).as_primitive::<Int64Type>().value(row);
            found.push((id, batch.column(1).as_string::<i32>().value(row).to_owned(), note.map(String::from)));
        }
    }
    found
}

fn seen(id: i64, part: &str, note: Option<&str>) -> (i64, String, Option<String>) {
    (id, part.into(), note.map(String::from))
}

#[tokio::test]
async fn the_newest_rows_come_first_each_key_once_as_it_is_now() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let first = batch(&orders, &[(1, "a", Some("old")), (2, "b", None), (3, "c", Some("gone")), (4, "d", Some("kept"))]);
    desk.commit(netted(&orders, &[Insert; 4], first, 0)).await;
    let second = batch(&orders, &[(1, "a", Some("new")), (3, "c", None)]);
    desk.commit(netted(&orders, &[Update, Delete], second, 200)).await;
    // A commit under way shows nothing.
    let path = path_of(&directory);
    let torn = "{\"key\":{\"id\":9,\"part\":\"z\"},\"op\":\"u\",\"row\":{\"id\":9}}\n";
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + torn).unwrap();

    let all = [seen(1, "a", Some("new")), seen(4, "d", Some("kept")), seen(2, "b", None)];
    assert_eq!(look(&*sink, &orders, 10, None).await, all);
    assert_eq!(look(&*sink, &orders, 2, None).await, all[..2]);
    assert_eq!(look(&*sink, &orders, 0, None).await, []);
    assert_eq!(look(&*sink, &orders, 10, Some(&["4", "d"])).await, [seen(4, "d", Some("kept"))]);
    for nothing in [["3", "c"], ["9", "z"], ["4", "a"]] {
        assert_eq!(look(&*sink, &orders, 10, Some(&nothing)).await, []);
    }
}

#[tokio::test]
async fn rows_before_a_truncate_are_not_shown() {
    let (_directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(netted(&orders, &[Insert], batch(&orders, &[(1, "a", None)]), 0)).await;
    let rows = netted(&orders, &[Insert], batch(&orders, &[(2, "b", Some("after"))]), 200);
    let request = CommitRequest { truncate_first: true, ..desk.request(rows).await };
    desk.open.committer.commit(&request).await;
    assert_eq!(look(&*sink, &orders, 10, None).await, [seen(2, "b", Some("after"))]);
}

#[tokio::test]
async fn in_append_every_change_is_shown_and_none_has_a_key() {
    let (_directory, sink) = sink().await;
    let orders = orders(Mode::Append);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let rows = batch(&orders, &[(1, "a", Some("x")), (1, "a", Some("y")), (1, "a", Some("y"))]);
    desk.commit(netted(&orders, &[Insert, Update, Delete], rows, 0)).await;
    let (x, y) = (seen(1, "a", Some("x")), seen(1, "a", Some("y")));
    assert_eq!(look(&*sink, &orders, 10, None).await, [y.clone(), y, x]);
    let error = sink.peek(&orders, &Peek { limit: 1, key: Some(vec!["1".into()]) }).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-sink-key"));
}

#[tokio::test]
async fn a_key_of_the_wrong_length_is_said() {
    let (_directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    Desk::new(&sink, orders.clone()).await;
    let error = sink.peek(&orders, &Peek { limit: 1, key: Some(vec!["1".into()]) }).await.unwrap_err();
    assert_eq!(error.what, "orders: 1 key values are given, the key is id, part");
}

#[tokio::test]
async fn a_table_that_was_never_made_has_no_rows() {
    let (_directory, sink) = sink().await;
    assert!(sink.peek(&orders(Mode::Upsert), &Peek { limit: 1, key: None }).await.unwrap().is_empty());
}

#[tokio::test]
async fn columns_come_back_as_numbers_only_where_all_are_and_none_loses_a_digit() {
    let (_directory, sink) = sink().await;
    let table = table(&[("id", Type::Int64), ("large", Type::UInt64), ("share", Type::Float64)], 1, Mode::Upsert);
    let mut desk = Desk::new(&sink, table.clone()).await;
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, i64::MIN])),
        Arc::new(UInt64Array::from(vec![7, u64::MAX])),
        Arc::new(Float64Array::from(vec![Some(0.5), None])),
    ];
    let data = RecordBatch::try_new(Arc::new(table.schema.arrow()), columns).unwrap();
    desk.commit(netted(&table, &[Insert; 2], data, 0)).await;
    let found = sink.peek(&table, &Peek { limit: 9, key: None }).await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().values(), &[i64::MIN, 1]);
    let large: Vec<Option<&str>> = found[0].column(1).as_string::<i32>().iter().collect();
    assert_eq!(large, [Some("18446744073709551615"), Some("7")]);
    let share: Vec<Option<f64>> = found[0].column(2).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(share, [None, Some(0.5)]);
}
