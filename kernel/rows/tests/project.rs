//! Projection: columns left out, renamed and cast, and what must not happen to a key.

mod shop;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, types};
use rows::Operation::{Insert, Update};
use rows::project::{Projection, ProjectionError, Selected};
use rows::{Column, TableSchema, Type, ValuePolicy};
use shop::{data, row, schema};

fn keep(column: &str) -> Selected {
    Selected { column: column.into(), name: None, kind: None, policy: ValuePolicy::Error }
}

fn with_type(column: &str, kind: &str, policy: ValuePolicy) -> Selected {
    Selected { kind: Some(kind.parse().expect("a type")), policy, ..keep(column) }
}

fn refused(selected: &[Selected]) -> String {
    let error: ProjectionError = Projection::new(&schema(), selected).expect_err("refused");
    error.to_string()
}

#[test]
fn columns_are_left_out_renamed_and_put_in_another_order() {
    let projection =
        Projection::new(&schema(), &[keep("total"), Selected { name: Some("order_id".into()), ..keep("id") }]).unwrap();
    let columns =
        vec![Column::new("total", Type::Decimal { precision: 12, scale: 2 }, true), Column::new("order_id", Type::Int64, false)];
    assert_eq!(**projection.schema(), TableSchema::new("shop.orders".into(), columns, vec![1]).unwrap());

    let before = data(&[row(Insert, (1, 0), 7, "new", 150), row(Update, (2, 0), 8, "paid", 0)]);
    let after = projection.apply(&before).unwrap();
    assert!(Arc::ptr_eq(after.column(0), before.column(2)) && Arc::ptr_eq(after.column(1), before.column(0)));
    let keys = projection.apply_to_keys(&before).unwrap();
    assert!(Arc::ptr_eq(keys.column(1), before.column(0)) && keys.column(0).null_count() == 2);
}

#[test]
fn a_column_changes_its_type_as_its_policy_says() {
    let before = data(&[row(Insert, (1, 0), 7, "new", 150), row(Update, (2, 0), 7, "paid", 99_999)]);
    let run = |policy| {
        let projection = Projection::new(&schema(), &[keep("id"), with_type("total", "decimal(4,2)", policy)]).unwrap();
        // Of a row that is gone no value is judged.
        assert!(projection.apply_to_keys(&before).is_ok());
        projection.apply(&before).map(|after| after.column(1).clone())
    };
    let error = run(ValuePolicy::Error).expect_err("too large").to_string();
    assert_eq!(
        error,
        "table shop.orders: row 1: the value of column 'total' cannot be held as decimal(4,2): it is above the highest such value"
    );
    assert_eq!(run(ValuePolicy::Clamp).unwrap().as_primitive::<types::Decimal128Type>().values(), &[150, 9_999]);
    assert!(run(ValuePolicy::Null).unwrap().is_null(1));
    let text = run(ValuePolicy::String).unwrap();
    assert_eq!(text.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("1.50"), Some("999.99")]);
}

#[test]
fn a_column_that_may_become_null_says_so() {
    let columns = vec![Column::new("n", Type::Int64, false)];
    let from = Arc::new(TableSchema::new("t".into(), columns, vec![]).unwrap());
    let nullable = |policy, kind| Projection::new(&from, &[with_type("n", kind, policy)]).unwrap().schema().columns[0].nullable;
    assert!(nullable(ValuePolicy::Null, "int8"));
    assert!(!nullable(ValuePolicy::Null, "string"));
    assert!(!nullable(ValuePolicy::Clamp, "int8"));
}

#[test]
fn a_key_stays_whole_and_its_values_apart() {
    assert_eq!(
        refused(&[keep("status")]),
        "table shop.orders: the key column 'id' is left out, but without it rows cannot be told apart"
    );
    assert_eq!(
        refused(&[with_type("id", "int8", ValuePolicy::Clamp)]),
        "table shop.orders: the key column 'id' cannot go from int64 to int8 with the policy 'clamp': two keys could become one"
    );
    assert!(Projection::new(&schema(), &[with_type("id", "int8", ValuePolicy::Error)]).is_ok());
    assert_eq!(
        Projection::new(&schema(), &[with_type("id", "int8", ValuePolicy::String)]).unwrap().schema().columns[0].kind,
        Type::String
    );
    assert_eq!(
        refused(&[with_type("id", "float64", ValuePolicy::Error)]),
        "table shop.orders: after the projection, column 'id' cannot be part of the key, because values of type float64 cannot be \
         compared exactly; name other key columns or give it another type"
    );

    let columns = vec![Column::new("code", Type::String, false)];
    let by_text = Arc::new(TableSchema::new("t".into(), columns, vec![0]).unwrap());
    let error = Projection::new(&by_text, &[with_type("code", "int64", ValuePolicy::Error)]).expect_err("007 and 7").to_string();
    assert_eq!(
        error,
        "table t: the key column 'code' cannot go from string to int64 with the policy 'error': two keys could become one"
    );
}

#[test]
fn a_projection_that_cannot_be_is_refused() {
    assert_eq!(refused(&[keep("id"), keep("statsu")]), "table shop.orders: there is no column 'statsu'; did you mean 'status'?");
    assert_eq!(
        refused(&[keep("id"), with_type("total", "date", ValuePolicy::Error)]),
        "table shop.orders: column 'total': there is no cast from decimal(12,2) to date; string holds every value"
    );
    let twice = [keep("id"), Selected { name: Some("id".into()), ..keep("status") }];
    assert_eq!(refused(&twice), "table shop.orders: after the projection, two columns are called 'id'");
}

#[test]
fn rows_of_another_table_are_refused() {
    let projection = Projection::new(&schema(), &[keep("id")]).unwrap();
    let narrower = projection.apply(&data(&[row(Insert, (1, 0), 7, "new", 150)])).unwrap();
    let error = projection.apply(&narrower).expect_err("another table").to_string();
    assert_eq!(error, "table shop.orders: 3 columns are expected by the projection, 1 found");
}
