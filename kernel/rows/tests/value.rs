//! What a target cannot hold, judged against its bounds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use rows::cast::CastError;
use rows::value::{Bounds, Offence, Unholdable, judge};
use rows::{Type, ValuePolicy};

fn offence(result: Result<ArrayRef, CastError>) -> Offence {
    match result {
        Err(CastError::Value(offence)) => offence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_column_that_fits_is_given_back_as_it_is() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(-5), None, Some(5)]));
    let judged = judge(&column, "n", &Type::Int64, Bounds::Between(-5, 5), ValuePolicy::Error).unwrap();
    assert!(Arc::ptr_eq(&judged, &column));
}

#[test]
fn the_first_row_that_does_not_fit_is_told_without_its_value() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(-77), Some(78)]));
    let offence = offence(judge(&column, "n", &Type::Int64, Bounds::Between(-5, 5), ValuePolicy::Error));
    assert_eq!(offence, Offence { row: 2, column: "n".into(), kind: Type::Int64, why: Unholdable::Below });
    assert_eq!(offence.to_string(), "row 2: the value of column 'n' cannot be held as int64: it is below the lowest such value");
}

#[test]
fn every_type_with_an_order_is_judged() {
    let price = || Decimal128Array::from(vec![99_999, 100_000]).with_precision_and_scale(12, 2).unwrap();
    let columns: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(Int8Array::from(vec![99, 101])), "int8"),
        (Arc::new(Int16Array::from(vec![99, 101])), "int16"),
        (Arc::new(Int32Array::from(vec![99, 101])), "int32"),
        (Arc::new(Int64Array::from(vec![99, 101])), "int64"),
        (Arc::new(UInt8Array::from(vec![99, 101])), "uint8"),
        (Arc::new(UInt16Array::from(vec![99, 101])), "uint16"),
        (Arc::new(UInt32Array::from(vec![99, 101])), "uint32"),
        (Arc::new(UInt64Array::from(vec![99, 101])), "uint64"),
        (Arc::new(Date32Array::from(vec![99, 101])), "date"),
        (Arc::new(Time64MicrosecondArray::from(vec![99, 101])), "time"),
        (Arc::new(TimestampMicrosecondArray::from(vec![99, 101])), "timestamp"),
        (Arc::new(TimestampMicrosecondArray::from(vec![99, 101]).with_timezone("+00:00")), "timestamptz"),
    ];
    for (column, of) in columns {
        let kind: Type = of.parse().unwrap();
        let found = offence(judge(&column, "n", &kind, Bounds::Between(0, 100), ValuePolicy::Error));
        assert_eq!((found.row, found.why), (1, Unholdable::Above), "{of}");
        let clamped = judge(&column, "n", &kind, Bounds::Between(0, 100), ValuePolicy::Clamp).unwrap();
        let expected = judge(&column.slice(0, 1), "n", &kind, Bounds::Between(0, 100), ValuePolicy::Error).unwrap();
        assert_eq!((clamped.data_type(), &clamped.slice(0, 1)), (column.data_type(), &expected), "{of}");
    }
    let kind = Type::Decimal { precision: 12, scale: 2 };
    let column: ArrayRef = Arc::new(price());
    let clamped = judge(&column, "n", &kind, Bounds::Between(-99_999, 99_999), ValuePolicy::Clamp).unwrap();
    assert_eq!(clamped.as_primitive::<types::Decimal128Type>().values(), &[99_999, 99_999]);
}

#[test]
fn each_policy_does_what_it_says() {
    let column: ArrayRef = Arc::new(Date32Array::from(vec![Some(-9), None, Some(3), Some(99)]));
    let run = |policy| judge(&column, "day", &Type::Date, Bounds::Between(0, 10), policy).unwrap();
    let days = |column: &ArrayRef| column.as_primitive::<types::Date32Type>().iter().collect::<Vec<_>>();
    assert_eq!(days(&run(ValuePolicy::Null)), [None, None, Some(3), None]);
    assert_eq!(days(&run(ValuePolicy::Clamp)), [Some(0), None, Some(3), Some(10)]);
    let text = run(ValuePolicy::String);
    let text: Vec<Option<&str>> = text.as_string::<i32>().iter().collect();
    assert_eq!(text, [Some("1969-12-23"), None, Some("1970-01-04"), Some("1970-04-10")]);
}

#[test]
fn a_bound_beyond_the_columns_own_type_refuses_nothing() {
    let column: ArrayRef = Arc::new(Int8Array::from(vec![-128, 127]));
    let judged = judge(&column, "n", &Type::Int8, Bounds::Between(-1_000, 1_000), ValuePolicy::Clamp).unwrap();
    assert!(Arc::ptr_eq(&judged, &column));
    let judged = judge(&column, "n", &Type::Int8, Bounds::Between(-1_000, 5), ValuePolicy::Clamp).unwrap();
    assert_eq!(judged.as_primitive::<types::Int8Type>().values(), &[-128, 5]);
}

#[test]
fn what_is_not_a_number_is_refused_or_null_and_the_infinities_can_be_clamped() {
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY, f64::NEG_INFINITY]));
    let run = |column: &ArrayRef, policy| judge(column, "x", &Type::Float64, Bounds::Finite, policy);
    assert_eq!(offence(run(&column, ValuePolicy::Error)).why, Unholdable::Above);
    assert_eq!(
        run(&column, ValuePolicy::Clamp).unwrap().as_primitive::<types::Float64Type>().values(),
        &[1.0, f64::MAX, f64::MIN]
    );
    let nan: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN]));
    let run = |policy| judge(&nan, "x", &Type::Float32, Bounds::Finite, policy);
    assert_eq!(offence(run(ValuePolicy::Clamp)).why, Unholdable::NotANumber);
    assert_eq!(run(ValuePolicy::Null).unwrap().null_count(), 1);
    assert_eq!(run(ValuePolicy::String).unwrap().as_string::<i32>().value(0), "NaN");
}

#[test]
fn a_decoder_can_ask_before_there_is_a_column() {
    let ends = Some((0, 9));
    assert_eq!(ValuePolicy::Error.settle(Unholdable::Above, ends), Err(Unholdable::Above));
    assert_eq!(ValuePolicy::Null.settle(Unholdable::Malformed, ends), Ok(None));
    assert_eq!(ValuePolicy::Clamp.settle(Unholdable::Above, ends), Ok(Some(9)));
    assert_eq!(ValuePolicy::Clamp.settle(Unholdable::Below, ends), Ok(Some(0)));
    assert_eq!(ValuePolicy::Clamp.settle(Unholdable::Above, None::<(u8, u8)>), Err(Unholdable::Above));
    assert_eq!(ValuePolicy::Clamp.settle(Unholdable::NotANumber, ends), Err(Unholdable::NotANumber));
    assert_eq!(ValuePolicy::String.settle(Unholdable::Above, ends), Err(Unholdable::Above));
}

#[test]
fn the_policies_have_the_words_of_pipeline_files() {
    for (policy, word) in [
        (ValuePolicy::Error, "error"),
        (ValuePolicy::Null, "null"),
        (ValuePolicy::Clamp, "clamp"),
        (ValuePolicy::String, "string"),
    ] {
        assert_eq!(policy.as_str(), word);
        assert_eq!(serde_json::from_str::<ValuePolicy>(&format!("\"{word}\"")).unwrap(), policy);
    }
    assert_eq!(ValuePolicy::default(), ValuePolicy::Error);
}
