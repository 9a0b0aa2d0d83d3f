//! Types: announced, compared, inferred.

use rows::Column;

use super::*;
use crate::envelope::{Unit, WireField};

#[test]
fn announced_types_have_their_canonical_type() {
    let point = Wire::Struct(vec![WireField { name: "x".to_owned(), wire: Wire::Float64, optional: false }]);
    for (wire, expected) in [
        (Wire::Bool, "bool"),
        (Wire::Int8, "int8"),
        (Wire::Int16, "int16"),
        (Wire::Int32, "int32"),
        (Wire::Int64, "int64"),
        (Wire::Float32, "float32"),
        (Wire::Float64, "float64"),
        (Wire::String, "string"),
        (Wire::Bytes, "binary"),
        (Wire::Decimal { precision: Some(20), scale: 4 }, "decimal(20,4)"),
        (Wire::Decimal { precision: None, scale: 2 }, "decimal(38,2)"),
        (Wire::Decimal { precision: Some(3), scale: -2 }, "decimal(5,0)"),
        (Wire::VariableScaleDecimal, "string"),
        (Wire::Date, "date"),
        (Wire::IsoDate, "date"),
        (Wire::Time(Unit::Millis), "time"),
        (Wire::IsoTime, "time"),
        (Wire::ZonedTime, "string"),
        (Wire::Timestamp(Unit::Nanos), "timestamp"),
        (Wire::IsoTimestamp, "timestamp"),
        (Wire::ZonedTimestamp, "timestamptz"),
        (Wire::Uuid, "uuid"),
        (Wire::Json, "json"),
        (Wire::Enum, "enum"),
        (Wire::Array(Box::new(Wire::Int32)), "list(int32)"),
        (Wire::Map(Box::new(Wire::String), Box::new(Wire::Int8)), "map(string,int8)"),
    ] {
        assert_eq!(canonical(&wire), kind(expected), "{wire:?}");
        assert!(!matches!(Reading::of(&canonical(&wire), Some(&wire), &options()), Reading::Impossible(_)), "{wire:?}");
    }
    let expected = Type::Struct(vec![Column::new("x", Type::Float64, false)]);
    assert_eq!(canonical(&point), expected);
}

#[test]
fn a_type_holds_narrower_ones_and_no_others() {
    for (wide, narrow) in [
        ("int64", "int32"),
        ("int16", "int16"),
        ("uint32", "uint8"),
        ("int64", "uint32"),
        ("float64", "float32"),
        ("decimal(12,4)", "decimal(10,2)"),
        ("string", "enum"),
        ("list(int64)", "list(int8)"),
    ] {
        assert!(holds(&kind(wide), &kind(narrow)), "{wide} {narrow}");
        assert!(wide == narrow || !holds(&kind(narrow), &kind(wide)), "{narrow} {wide}");
    }
    for (one, other) in [
        ("int64", "uint64"),
        ("uint8", "int8"),
        ("decimal(10,2)", "decimal(10,1)"),
        ("date", "timestamp"),
        ("string", "binary"),
        ("float64", "int64"),
    ] {
        assert!(!holds(&kind(one), &kind(other)), "{one} {other}");
    }
}

#[test]
fn inference_takes_what_all_values_have_in_common() {
    for (values, expected) in [
        (&["1", "null", "-5"][..], "int64"),
        (&["18446744073709551615", "0"], "uint64"),
        (&["18446744073709551616"], "decimal(38,0)"),
        (&["-1", "18446744073709551615"], "decimal(38,0)"),
        (&["1.5", "2"], "float64"),
        (&["\"NaN\"", "2"], "float64"),
        (&["\"NaN\""], "string"),
        (&["0.5", "9007199254740993"], "decimal(38,1)"),
        (&["0.12345678901234567890"], "decimal(38,20)"),
        (&["true", "false"], "bool"),
        (&["\"a\"", "\"2026-01-01\""], "string"),
        (&["{}", "[1]"], "json"),
        (&["null"], "unknown(only nulls)"),
        (&["1", "\"a\""], "unknown(numbers and strings)"),
        (&["99999999999999999999999999999999999999999999"], "unknown(numbers of too many digits)"),
    ] {
        assert_eq!(inferred(values).0, expected, "{values:?}");
    }
}

#[test]
fn inference_says_since_which_line_no_type_has_held_the_values() {
    for (values, expected) in [
        (&["1", "2"][..], None),
        // Nulls say nothing, and no line is to blame for them.
        (&["null", "null"], None),
        (&["null", "1", "2", "\"a\"", "3", "\"b\""], Some("line 4")),
        (&["\"a\"", "{}"], Some("line 2")),
        // A number among texts, be it one that is written as a text.
        (&["\"NaN\"", "\"a\"", "1"], Some("line 3")),
        (&["\"NaN\"", "1"], None),
        (&["1", "99999999999999999999999999999999999999999999"], Some("line 2")),
        // 2^126 + 2^125 has too many digits for a decimal, and a double holds it.
        (&["127605887595351923798765477786913079296"], Some("line 1")),
        (&["127605887595351923798765477786913079296", "0.5"], None),
        (&["127605887595351923798765477786913079296", "0.5", "true"], Some("line 3")),
    ] {
        assert_eq!(inferred(values).1.as_deref(), expected, "{values:?}");
    }
}

/// The type of a column with these values, and the line since which there is none.
fn inferred(values: &[&str]) -> (String, Option<String>) {
    let mut inference = infer::Inference::default();
    let mut decoder = crate::envelope::Decoder::new(crate::envelope::Format::Debezium);
    for (number, value) in values.iter().enumerate() {
        let line = format!("{{\"op\":\"c\",\"source\":{{\"table\":\"t\"}},\"after\":{{\"a\":{value}}}}}");
        let Ok(crate::envelope::Line::Change(change)) = decoder.decode(line.as_bytes()) else { panic!("{line}") };
        inference.add(change.after.unwrap(), |_| false, &mut || format!("line {}", number + 1));
    }
    let columns: Vec<_> = inference.columns().collect();
    assert_eq!((columns.len(), columns[0].name), (1, "a"));
    (columns[0].kind.to_string(), columns[0].untold_since.map(str::to_owned))
}
