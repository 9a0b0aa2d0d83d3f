//! The text of values: read exactly or refused, written in one way, and back.

mod classes;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::*;
use classes::Classes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rows::cast::{CastError, cast, held_as};
use rows::value::{Offence, Unholdable};
use rows::{Type, ValuePolicy};

fn kind(text: &str) -> Type {
    text.parse().expect("a type")
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn run(column: &ArrayRef, from: &str, to: &str, policy: ValuePolicy) -> Result<ArrayRef, CastError> {
    let cast = cast(column, "c", &kind(from), &kind(to), policy)?;
    let held = held_as(&kind(from), &kind(to), policy);
    assert_eq!(cast.data_type(), &held.arrow(), "from {from} to {to}");
    Ok(cast)
}

fn as_text(column: &ArrayRef, from: &str) -> Vec<String> {
    let cast = run(column, from, "string", ValuePolicy::Error).expect("everything has a text");
    cast.as_string::<i32>().iter().map(|text| text.unwrap_or("(null)").to_owned()).collect()
}

/// Reads each text as a value of the type and writes it again.
#[track_caller]
fn reads(to: &str, written: &[(&str, &str)]) {
    let (texts_in, texts_out): (Vec<&str>, Vec<&str>) = written.iter().copied().unzip();
    let column = run(&texts(&texts_in), "string", to, ValuePolicy::Error).expect("reads");
    assert_eq!(as_text(&column, to), texts_out, "as {to}");
}

#[test]
fn text_is_read_exactly_and_written_in_one_way() {
    reads("bool", &[("true", "true"), ("false", "false")]);
    reads("int8", &[("-128", "-128"), ("+127", "127"), ("007", "7")]);
    reads("uint64", &[("18446744073709551615", "18446744073709551615")]);
    reads(
        "decimal(6,2)",
        &[
            ("1.5", "1.50"),
            ("-0.05", "-0.05"),
            ("9999.99", "9999.99"),
            ("1e3", "1000.00"),
            ("12e-2", "0.12"),
            ("1.500", "1.50"),
            ("-0", "0.00"),
        ],
    );
    reads("decimal(3,0)", &[("999", "999"), ("-1.0", "-1")]);
    reads("decimal(38,38)", &[("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001")]);
    reads(
        "float64",
        &[("0.1", "0.1"), ("1", "1.0"), ("1e300", "1e300"), ("NaN", "NaN"), ("-Infinity", "-Infinity"), ("-0.0", "-0.0")],
    );
    reads("float32", &[("0.1", "0.1"), ("16777216", "16777216.0"), ("Infinity", "Infinity")]);
    reads(
        "date",
        &[
            ("1970-01-01", "1970-01-01"),
            ("2024-02-29", "2024-02-29"),
            ("0000-12-31", "0000-12-31"),
            ("-0043-03-15", "-0043-03-15"),
            ("+12024-01-01", "+12024-01-01"),
        ],
    );
    reads(
        "time",
        &[
            ("00:00:00", "00:00:00"),
            ("23:59:59.999999", "23:59:59.999999"),
            ("12:30:00.500", "12:30:00.5"),
            ("24:00:00", "24:00:00"),
        ],
    );
    reads(
        "timestamp",
        &[("2024-02-29T12:30:00", "2024-02-29T12:30:00"), ("1969-12-31 23:59:59.999999", "1969-12-31T23:59:59.999999")],
    );
    reads(
        "timestamptz",
        &[
            ("2024-02-29T12:30:00Z", "2024-02-29T12:30:00Z"),
            ("2024-03-01T01:30:00+02:00", "2024-02-29T23:30:00Z"),
            ("2024-02-29 12:30:00-05", "2024-02-29T17:30:00Z"),
        ],
    );
    reads("uuid", &[("6F9619FF-8B86-D011-B42D-00CF4FC964FF", "6f9619ff-8b86-d011-b42d-00cf4fc964ff")]);
    reads("binary", &[("", ""), ("00FFa0", "00ffa0")]);
    reads("binary(2)", &[("00ff", "00ff")]);
    reads("json", &[("{\"a\": [1, 2.50]}", "{\"a\": [1, 2.50]}"), ("null", "null")]);
}

#[track_caller]
fn refuses(to: &str, refused: &[(&str, Unholdable)]) {
    for (text, why) in refused {
        // In the second row, so that the row is told and not guessed.
        let column: ArrayRef = Arc::new(StringArray::from(vec![None, Some(*text)]));
        match run(&column, "string", to, ValuePolicy::Error) {
            Err(CastError::Value(offence)) => {
                assert_eq!(offence, Offence { row: 1, column: "c".into(), kind: kind(to), why: *why }, "'{text}' as {to}")
            }
            other => panic!("'{text}' as {to}: {other:?}"),
        }
    }
}

#[test]
fn text_that_is_no_such_value_is_refused_with_its_row_and_reason() {
    use Unholdable::{Above, Below, Length, Malformed, NotANumber, TooFine};
    refuses("bool", &[("TRUE", Malformed), ("1", Malformed), ("", Malformed)]);
    refuses(
        "int8",
        &[
            ("128", Above),
            ("-129", Below),
            ("1.0", Malformed),
            ("", Malformed),
            (" 1", Malformed),
            ("1_0", Malformed),
            ("-", Malformed),
        ],
    );
    refuses(
        "uint64",
        &[("-1", Below), ("18446744073709551616", Above), (&"9".repeat(60), Above), (&format!("-{}", "9".repeat(60)), Below)],
    );
    refuses(
        "decimal(6,2)",
        &[
            ("10000", Above),
            ("-10000.00", Below),
            ("1.005", TooFine),
            ("1e-3", TooFine),
            ("NaN", NotANumber),
            ("Infinity", Above),
            ("-Infinity", Below),
            ("1e99", Above),
            ("1e2147483647", Above),
            ("1,5", Malformed),
            ("", Malformed),
            (".", Malformed),
            ("1e", Malformed),
            ("--1", Malformed),
            ("0x1", Malformed),
        ],
    );
    refuses(
        "float64",
        &[("0.1000000000000000055511151231257827", TooFine), ("1e999", Above), ("-1e999", Below), ("one", Malformed)],
    );
    refuses("float32", &[("0.123456789", TooFine), ("1e39", Above)]);
    refuses(
        "date",
        &[
            ("2023-02-29", Malformed),
            ("1900-02-29", Malformed),
            ("2024-13-01", Malformed),
            ("2024-00-01", Malformed),
            ("2024-01-00", Malformed),
            ("0000-00-00", Malformed),
            ("2024-1-1", Malformed),
            ("20240101", Malformed),
            ("12024-01-01", Malformed),
            ("+9999999-01-01", Above),
            ("-9999999-01-01", Below),
            ("2024-01-01T00:00:00", Malformed),
        ],
    );
    refuses(
        "time",
        &[
            ("24:00:01", Malformed),
            ("12:60:00", Malformed),
            ("12:00", Malformed),
            ("12:00:00.", Malformed),
            ("12:00:00.0000001", TooFine),
        ],
    );
    refuses(
        "timestamp",
        &[
            ("2024-01-01", Malformed),
            ("2024-01-01T12:00:00Z", Malformed),
            ("2024-01-01T24:00:00", Malformed),
            ("+300000-01-01T00:00:00", Above),
            ("-300000-01-01T00:00:00", Below),
        ],
    );
    refuses(
        "timestamptz",
        &[
            ("2024-01-01T12:00:00", Malformed),
            ("2024-01-01T12:00:00+25:00", Malformed),
            ("2024-01-01T12:00:00 Europe/Berlin", Malformed),
        ],
    );
    refuses("uuid", &[("6f9619ff8b86d011b42d00cf4fc964ff", Malformed), ("6f9619ff-8b86-d011-b42d-00cf4fc964fg", Malformed)]);
    refuses("binary", &[("0", Malformed), ("0g", Malformed), ("é", Malformed)]);
    refuses("binary(2)", &[("00", Length), ("000000", Length)]);
    refuses("json", &[("{", Malformed), ("", Malformed), ("{} {}", Malformed)]);
}

/// Runs a law over values and asks that none of their classes is rare.
fn holds<S: Strategy>(strategy: &S, law: impl Fn(S::Value, &Classes) -> Result<(), TestCaseError>) {
    let classes = Classes::default();
    let mut runner = TestRunner::new(Config::default());
    runner.run(strategy, |value| law(value, &classes)).unwrap_or_else(|error| panic!("{error}"));
    classes.assert_all_met();
}

/// The calendar against counting days one by one, over 800 years.
#[test]
fn days_count_on_as_the_calendar_does() {
    // One in four begins some days before a 29th of February, or what would be one in a year that is divisible by 4.
    let near_leap_days = (-100i32..100, 0i32..99).prop_map(|(fours, before)| 789 + 1_461 * fours - before);
    let starts = prop_oneof![3 => -146_097i32..146_097, 1 => near_leap_days];
    holds(&starts, |start, classes| {
        let days: ArrayRef = Arc::new(Date32Array::from((start..start + 100).collect::<Vec<_>>()));
        let written = as_text(&days, "date");
        classes.note(&[
            ("a leap day", written.iter().any(|day| day.ends_with("-02-29"))),
            (
                "the end of a February without one",
                written.windows(2).any(|pair| pair[0].ends_with("-02-28") && pair[1].ends_with("-03-01")),
            ),
            ("the end of a year", written.windows(2).any(|pair| pair[0].ends_with("-12-31") && pair[1].ends_with("-01-01"))),
            ("before 1970", start < 0),
        ]);
        for pair in written.windows(2) {
            let part = |text: &str, from: usize| text[from..].split('-').next().unwrap().parse::<u32>().unwrap();
            let ((month, day), (next_month, next_day)) =
                ((part(&pair[0], 5), part(&pair[0], 8)), (part(&pair[1], 5), part(&pair[1], 8)));
            let goes_on = next_day == day + 1 && next_month == month;
            prop_assert!(goes_on || next_day == 1 && (28..=31).contains(&day), "{} {}", pair[0], pair[1]);
        }
        let texts = texts(&written.iter().map(String::as_str).collect::<Vec<_>>());
        let back = run(&texts, "string", "date", ValuePolicy::Error).unwrap();
        prop_assert_eq!(&back, &days);
        Ok(())
    });
}

#[test]
fn every_value_reads_back_from_its_text() {
    const SECOND: i64 = 1_000_000;
    // Mostly of years that somebody has: any number of microseconds lies in one of 290,000 years.
    let micros = prop_oneof![
        any::<i64>(),
        (-62_000_000_000i64..250_000_000_000).prop_map(|seconds| seconds * SECOND),
        -62_000_000_000 * SECOND..250_000_000_000 * SECOND,
    ];
    let days = prop_oneof![any::<i32>(), -719_000i32..2_900_000];
    let unscaled = prop_oneof![-10i128.pow(38) + 1..10i128.pow(38), -10i128.pow(9)..10i128.pow(9)];
    let doubles = prop_oneof![
        4 => prop::num::f64::ANY,
        1 => Just(f64::NAN),
        1 => prop::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY]),
        1 => prop::num::f64::SUBNORMAL,
    ];
    let values = (micros, days, doubles, prop::num::f32::ANY, unscaled, any::<[u8; 16]>());
    holds(&values, |(micros, days, double, single, unscaled, bytes), classes| {
        let time = micros.rem_euclid(86_400_000_001);
        classes.note(&[
            ("not a number", double.is_nan()),
            ("infinite", double.is_infinite()),
            ("a double below the normal ones", double.is_subnormal()),
            ("a fraction of a second", micros % SECOND != 0),
            ("whole seconds", micros % SECOND == 0),
            ("before 1970", micros < 0),
            ("years of four digits", (-719_528..2_932_897).contains(&days)),
            ("years of more", !(-719_528..2_932_897).contains(&days)),
            ("a decimal below 1", unscaled.abs() < 10i128.pow(9)),
        ]);
        let zoned = TimestampMicrosecondArray::from(vec![micros]).with_timezone("+00:00");
        let columns: Vec<(ArrayRef, &str)> = vec![
            (Arc::new(Int64Array::from(vec![micros])), "int64"),
            (Arc::new(Date32Array::from(vec![days])), "date"),
            (Arc::new(Time64MicrosecondArray::from(vec![time])), "time"),
            (Arc::new(TimestampMicrosecondArray::from(vec![micros])), "timestamp"),
            (Arc::new(zoned), "timestamptz"),
            (Arc::new(Float64Array::from(vec![double])), "float64"),
            (Arc::new(Float32Array::from(vec![single])), "float32"),
            (Arc::new(Decimal128Array::from(vec![unscaled]).with_precision_and_scale(38, 9).unwrap()), "decimal(38,9)"),
            (Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].iter()).unwrap()), "uuid"),
            (Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].iter()).unwrap()), "binary(16)"),
            (Arc::new(BinaryArray::from(vec![&bytes[..]])), "binary"),
        ];
        for (column, of) in columns {
            let written = run(&column, of, "string", ValuePolicy::Error).unwrap();
            let back = run(&written, "string", of, ValuePolicy::Error).unwrap();
            // NaN is not equal to itself; its text is.
            if of == "float64" && double.is_nan() || of == "float32" && single.is_nan() {
                prop_assert_eq!(as_text(&back, of), as_text(&column, of));
            } else {
                prop_assert_eq!(&back, &column, "{}", of);
            }
        }
        Ok(())
    });
}

#[test]
fn no_text_makes_a_cast_panic() {
    const TYPES: &[&str] = &[
        "bool",
        "int8",
        "uint64",
        "float32",
        "float64",
        "decimal(38,10)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "binary",
        "json",
    ];
    // Text of any sort, and text that some type reads, with one letter changed.
    let well_formed = prop::sample::select(vec![
        "true",
        "-127",
        "18446744073709551615",
        "-1.25e-3",
        "Infinity",
        "2024-02-29",
        "-0043-03-15",
        "23:59:59.999999",
        "2024-02-29T12:30:00",
        "2024-02-29 12:30:00-05:30",
        "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        "00ffa0",
        "{\"a\": [1, 2.50]}",
    ]);
    let changed = (well_formed, any::<prop::sample::Index>(), "[-+0-9TZe:. a-fé]").prop_map(|(text, place, letter)| {
        let at = place.index(text.len());
        format!("{}{letter}{}", &text[..at], &text[at + 1..])
    });
    holds(&prop_oneof!["[-+0-9TZe:. a-f]{0,30}", changed], |text, classes| {
        let read = |to: &&str| cast(&texts(&[&text]), "c", &Type::String, &kind(to), ValuePolicy::Error).is_ok();
        let is_read = TYPES.iter().filter(|to| read(to)).count() > 0;
        classes.note(&[("read as something", is_read), ("read as nothing", !is_read)]);
        for to in TYPES {
            let _ = cast(&texts(&[&text]), "c", &Type::String, &kind(to), ValuePolicy::Clamp);
        }
        Ok(())
    });
}
