//! Batches in the making: every type takes values and nulls and can be taken back, and a row that is refused leaves nothing.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use kernel::position::{Coordinate, Offset, Transaction};
use rows::build::{BatchBuilder, ColumnBuilder, Values};
use rows::{Column, Operation, RowPhase, TableSchema, Type};

#[test]
fn every_type_takes_a_null_and_can_be_taken_back() {
    for text in [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "decimal(12,2)",
        "string",
        "json",
        "binary",
        "binary(3)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "enum",
        "unknown(point)",
        "list(int8)",
        "map(string,int8)",
        "struct(a int8, b list(string))",
    ] {
        let kind: Type = text.parse().unwrap();
        let mut column = ColumnBuilder::new(&kind, 4);
        assert!(column.is_empty());
        column.append_null();
        column.append_null();
        column.truncate(1);
        let array = column.finish(&kind).unwrap();
        assert_eq!((array.len(), array.null_count(), array.data_type()), (1, 1, &kind.arrow()), "{text}");
    }
}

/// Appends a text, or a part of it and a refusal.
fn append(column: &mut ColumnBuilder, text: &str, fits: bool) -> Result<(), &'static str> {
    column.append(|values| {
        let Values::Text { ends, bytes } = values else { return Err("no text") };
        bytes.extend_from_slice(text.as_bytes());
        if !fits {
            return Err("it does not fit");
        }
        ends.push(i32::try_from(bytes.len()).unwrap());
        Ok(())
    })
}

#[test]
fn a_value_that_failed_in_its_midst_is_taken_back() {
    let mut column = ColumnBuilder::new(&Type::String, 0);
    append(&mut column, "one", true).unwrap();
    assert_eq!(append(&mut column, "two", false), Err("it does not fit"));
    assert_eq!(column.len(), 1);
    column.truncate(1);
    append(&mut column, "three", true).unwrap();
    let array = column.finish(&Type::String).unwrap();
    assert_eq!(array.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("one"), Some("three")]);
}

#[test]
fn bytes_that_are_no_text_make_no_column_of_texts() {
    let mut column = ColumnBuilder::new(&Type::String, 0);
    let broken = |values: &mut Values| match values {
        Values::Text { ends, bytes } => {
            bytes.push(0xff);
            ends.push(1);
            Ok(())
        }
        _ => Err(()),
    };
    column.append(broken).unwrap();
    assert!(column.finish(&Type::String).is_err());
}

#[test]
fn a_refused_row_leaves_nothing_and_what_was_not_sent_is_marked() {
    let column = |name: &str| Column::new(name, Type::String, true);
    let schema = TableSchema::new("shop.orders".into(), vec![column("id"), column("note")], vec![]).unwrap();
    let mut batch = BatchBuilder::new(Arc::new(schema), 0);
    let transaction = |at| Transaction { stream: "".into(), at: Offset(at) };
    let place = |major| Coordinate { major, minor: 0 };
    append(batch.column(0), "1", true).unwrap();
    append(batch.column(1), "a", true).unwrap();
    batch.tell(Operation::Insert, place(1), &transaction(10), Some(7));
    // A change of two rows whose second one is refused: both go, with the transaction that they began.
    append(batch.column(0), "2", true).unwrap();
    batch.append_absent(1);
    batch.tell(Operation::Delete, place(2), &transaction(20), Some(8));
    append(batch.column(0), "3", true).unwrap();
    assert!(batch.is_filled(0) && !batch.is_filled(1));
    batch.take_back(1);
    assert!(!batch.is_filled(0) && batch.rows() == 1);
    append(batch.column(0), "4", true).unwrap();
    batch.append_absent(1);
    batch.tell(Operation::Update, place(3), &transaction(30), None);
    let batch = batch.finish(99, RowPhase::Stream).unwrap();
    batch.check().unwrap();
    let texts = |column: usize| batch.data.column(column).as_string::<i32>().iter().collect::<Vec<_>>();
    assert_eq!((texts(0), texts(1)), (vec![Some("1"), Some("4")], vec![Some("a"), None]));
    assert_eq!([batch.is_absent(1, 0), batch.is_absent(1, 1), batch.is_absent(0, 1)], [false, true, false]);
    assert_eq!(batch.tail.operations, [Operation::Insert, Operation::Update]);
    let runs: Vec<_> = batch.tail.transactions.iter().map(|run| (run.transaction.at.0, run.rows, run.commit_time)).collect();
    assert_eq!(runs, [(10, 1, Some(7)), (30, 1, None)]);
}

#[test]
fn where_no_row_is_marked_any_more_nothing_is() {
    let column = Column::new("note", Type::String, true);
    let schema = TableSchema::new("shop.orders".into(), vec![column], vec![]).unwrap();
    let mut batch = BatchBuilder::new(Arc::new(schema), 0);
    batch.append_absent(0);
    batch.take_back(0);
    let batch = batch.finish(0, RowPhase::Stream).unwrap();
    assert_eq!((batch.rows(), batch.absent[0].is_none()), (0, true));
}
