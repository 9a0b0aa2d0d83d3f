//! Dates, times and timestamps, as counts and as text.

use arrow_array::cast::AsArray;
use arrow_array::types::*;

use super::*;
use crate::envelope::Unit;

#[test]
fn dates_are_days_or_text_in_any_year() {
    let read = |value: &str| plain("date", &[value]).map(|array| array.as_primitive::<Date32Type>().value(0));
    for (value, expected) in [
        ("20512", 20512),
        ("-719162", -719162),
        ("\"1970-01-01\"", 0),
        ("\"2026-02-28Z\"", 20512),
        ("\"2024-02-29\"", 19782),
        ("\"0001-01-01Z\"", -719162),
        ("\"-4712-01-01Z\"", -2440550),
        ("\"-5877611-06-21Z\"", -2147472692),
        ("\"9999-12-31\"", 2932896),
    ] {
        assert_eq!(read(value), Ok(expected), "{value}");
    }
    for value in
        ["\"2026-02-29\"", "\"2026-13-01\"", "\"2026-00-01\"", "\"26-02-01\"", "\"2026-02-28T00:00:00\"", "\"2026-2-8\"", "\"\""]
    {
        assert_eq!(read(value).unwrap_err(), "a string that is no date", "{value}");
    }
    assert_eq!(read("\"infinity\"").unwrap_err(), "an infinite date or time");
    assert_eq!(read("2147483648").unwrap_err(), "a number out of range");
    assert_eq!(read("\"999999999-01-01\"").unwrap_err(), "a date out of range");
}

#[test]
fn times_count_what_the_schema_part_says_or_are_text() {
    let time = |wire, value: &str| announced("time", wire, value).map(micros);
    assert_eq!(time(Wire::Time(Unit::Millis), "3723456"), Ok(3_723_456_000));
    assert_eq!(time(Wire::Time(Unit::Micros), "86399123456"), Ok(86_399_123_456));
    assert_eq!(time(Wire::Time(Unit::Micros), "86400000000"), Ok(86_400_000_000));
    assert_eq!(time(Wire::Time(Unit::Nanos), "1000"), Ok(1));
    assert_eq!(time(Wire::Time(Unit::Nanos), "1001").unwrap_err(), "a time finer than microseconds");
    assert_eq!(time(Wire::Time(Unit::Micros), "86400000001").unwrap_err(), "a time of day outside the day");
    assert_eq!(time(Wire::Time(Unit::Micros), "-1").unwrap_err(), "a time of day outside the day");
    let text = |value: &str| plain("time", &[value]).map(micros);
    for (value, expected) in [
        ("\"23:59:59.123456Z\"", 86_399_123_456),
        ("\"01:02:03.456\"", 3_723_456_000),
        ("\"17:44\"", 63_840_000_000),
        ("\"24:00:00\"", 86_400_000_000),
        ("\"00:00:00.1234560\"", 123_456),
        ("\"00:00:00+00:00\"", 0),
    ] {
        assert_eq!(text(value), Ok(expected), "{value}");
    }
    for value in ["\"25:00:00\"", "\"24:00:01\"", "\"12:60:00\"", "\"12:00:60\"", "\"12:00:00.\"", "\"noon\"", "\"1:00:00\""] {
        assert_eq!(text(value).unwrap_err(), "a string that is no time of day", "{value}");
    }
    assert_eq!(text("\"10:00:00+02\"").unwrap_err(), "a time of day with an offset from UTC");
    assert_eq!(text("\"10:00:00.1234567\"").unwrap_err(), "a time finer than microseconds");
    assert!(text("5").unwrap_err().starts_with("a number that counts nobody knows what"));
}

#[test]
fn timestamps_count_what_the_schema_part_says_or_are_text() {
    let count = |unit, value: &str| announced("timestamp", Wire::Timestamp(unit), value).map(micros);
    assert_eq!(count(Unit::Millis, "1772282096123"), Ok(1_772_282_096_123_000));
    assert_eq!(count(Unit::Micros, "-1"), Ok(-1));
    assert_eq!(count(Unit::Micros, "9223372036825200000"), Ok(9_223_372_036_825_200_000));
    assert_eq!(count(Unit::Nanos, "-1000"), Ok(-1));
    assert_eq!(count(Unit::Nanos, "-1").unwrap_err(), "a time finer than microseconds");
    assert_eq!(count(Unit::Millis, "9223372036854775807").unwrap_err(), "a timestamp out of range");
    let text = |value: &str| plain("timestamp", &[value]).map(micros);
    for (value, expected) in [
        ("\"2026-02-28T12:34:56.123456\"", 1_772_282_096_123_456),
        ("\"2026-02-28 12:34:56Z\"", 1_772_282_096_000_000),
        ("\"0001-01-01T00:00:00Z\"", -62_135_596_800_000_000),
        ("\"1969-12-31T23:59:59.999999Z\"", -1),
        ("\"+294247-01-10T04:00:25.2Z\"", 9_223_372_036_825_200_000),
    ] {
        assert_eq!(text(value), Ok(expected), "{value}");
    }
    assert_eq!(text("\"2026-02-28T12:34:56+01:00\"").unwrap_err(), "a timestamp with an offset from UTC");
    assert_eq!(text("\"+300000-01-01T00:00:00\"").unwrap_err(), "a timestamp out of range");
    assert_eq!(text("\"infinity\"").unwrap_err(), "an infinite date or time");
    assert_eq!(text("\"2026-02-28\"").unwrap_err(), "a string that is no timestamp");
}

#[test]
fn a_timestamp_with_a_zone_is_a_point_in_time() {
    let read = |value: &str| plain("timestamptz", &[value]).map(micros);
    for (value, expected) in [
        ("\"2026-02-28T09:34:56.123456Z\"", 1_772_271_296_123_456),
        ("\"2026-02-28T12:34:56.123456+03:00\"", 1_772_271_296_123_456),
        ("\"2026-02-28T15:19:56.123456+0545\"", 1_772_271_296_123_456),
        ("\"2026-02-28T04:34:56.123456-05\"", 1_772_271_296_123_456),
        ("\"9999-12-31T23:59:59.999999Z\"", 253_402_300_799_999_999),
    ] {
        assert_eq!(read(value), Ok(expected), "{value}");
    }
    assert_eq!(read("\"2026-02-28T09:34:56\"").unwrap_err(), "a timestamp without a zone");
    assert_eq!(read("\"-infinity\"").unwrap_err(), "an infinite date or time");
    assert_eq!(read("\"2026-02-28T09:34:56+25\"").unwrap_err(), "a string that is no timestamp");
    let millis = Options { time_unit: Some(Unit::Millis), ..options() };
    assert_eq!(column(&Type::TimestampTz, None, &millis, &["1"]).map(micros), Ok(1_000));
}
