//! Every canonical type from every form that it is written in, and what is refused. Expectations are written out.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use rows::{Column, Type};

use super::*;
use crate::envelope::{Unit, Wire, WireField};
use crate::json::Cursor;

fn options() -> Options {
    Options {
        decimals: DecimalText::Auto,
        binary: BinaryText::Base64,
        time_unit: None,
        unavailable: "__debezium_unavailable_value".to_owned(),
        unavailable_base64: "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==".to_owned(),
    }
}

fn kind(text: &str) -> Type {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Values, as JSON, in a column; the first misfit otherwise.
fn column(kind: &Type, wire: Option<&Wire>, options: &Options, values: &[&str]) -> Result<ArrayRef, String> {
    let reading = Reading::of(kind, wire, options);
    let mut builder = ColumnBuilder::new(kind, 0);
    for text in values {
        let value = Cursor::new(text).value().unwrap();
        builder.push(&reading, value, true).map_err(|misfit| format!("{}{}", misfit.path, misfit.found))?;
    }
    let array = builder.finish(kind).unwrap();
    assert_eq!((array.data_type(), array.len()), (&kind.arrow(), values.len()));
    Ok(array)
}

fn plain(kind: &str, values: &[&str]) -> Result<ArrayRef, String> {
    column(&self::kind(kind), None, &options(), values)
}

fn announced(kind: &str, wire: Wire, value: &str) -> Result<ArrayRef, String> {
    column(&self::kind(kind), Some(&wire), &options(), &[value])
}

fn micros(array: ArrayRef) -> i64 {
    match array.data_type() {
        arrow_schema::DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().value(0),
        _ => array.as_primitive::<TimestampMicrosecondType>().value(0),
    }
}

fn decimal(array: ArrayRef) -> String {
    array.as_primitive::<Decimal128Type>().value_as_string(0)
}

fn text(array: ArrayRef) -> String {
    array.as_string::<i32>().value(0).to_owned()
}

#[test]
fn integers_keep_every_bit_and_their_range() {
    let array = plain("int64", &["9007199254740993", "-9223372036854775808", "9223372036854775807", "null", "1.0", "12e2", "-0"]);
    let array = array.unwrap();
    let expected = [Some(9007199254740993), Some(i64::MIN), Some(i64::MAX), None, Some(1), Some(1200), Some(0)];
    assert_eq!(array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), expected);
    assert_eq!(plain("uint64", &["18446744073709551615"]).unwrap().as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert_eq!(plain("int8", &["-128"]).unwrap().as_primitive::<Int8Type>().value(0), -128);
    assert_eq!(plain("int16", &["-32768"]).unwrap().as_primitive::<Int16Type>().value(0), -32768);
    assert_eq!(plain("int32", &["2147483647"]).unwrap().as_primitive::<Int32Type>().value(0), i32::MAX);
    assert_eq!(plain("uint8", &["255"]).unwrap().as_primitive::<UInt8Type>().value(0), 255);
    assert_eq!(plain("uint16", &["65535"]).unwrap().as_primitive::<UInt16Type>().value(0), 65535);
    assert_eq!(plain("uint32", &["4294967295"]).unwrap().as_primitive::<UInt32Type>().value(0), u32::MAX);
    for (kind, value) in [
        ("int8", "128"),
        ("int8", "-129"),
        ("int16", "32768"),
        ("int32", "2147483648"),
        ("int64", "9223372036854775808"),
        ("uint8", "256"),
        ("uint8", "-1"),
        ("uint16", "65536"),
        ("uint32", "4294967296"),
        ("uint64", "18446744073709551616"),
    ] {
        assert_eq!(plain(kind, &[value]).unwrap_err(), "a number out of range", "{kind} {value}");
    }
    assert_eq!(plain("int32", &["1.5"]).unwrap_err(), "a number that is no integer, or one beyond 128 bits");
    assert_eq!(plain("int32", &["\"1\""]).unwrap_err(), "a string");
    assert_eq!(plain("int32", &["true"]).unwrap_err(), "a boolean");
    assert_eq!(plain("int32", &["[1]"]).unwrap_err(), "an array");
}

#[test]
fn booleans_are_true_false_and_what_databases_without_them_write() {
    let array = plain("bool", &["true", "false", "1", "0", "null"]).unwrap();
    let expected = [Some(true), Some(false), Some(true), Some(false), None];
    assert_eq!(array.as_boolean().iter().collect::<Vec<_>>(), expected);
    assert_eq!(plain("bool", &["2"]).unwrap_err(), "a number");
    assert_eq!(plain("bool", &["\"true\""]).unwrap_err(), "a string");
}

#[test]
fn a_float_is_the_number_that_was_written_or_nothing() {
    let read = |value: &str| plain("float64", &[value]).map(|array| array.as_primitive::<Float64Type>().value(0).to_bits());
    for (value, expected) in [
        ("1.5", 1.5),
        ("-2.25E300", -2.25e300),
        ("0.1", 0.1),
        ("0.10000000000000001", 0.1),
        ("0.1000000000000000055511151231257827021181583404541015625", 0.1),
        ("1.7976931348623157e+308", f64::MAX),
        ("5e-324", 5e-324),
        ("4.9E-324", 5e-324),
        ("-0.0", -0.0),
        ("-0", -0.0),
        ("9007199254740992", 9007199254740992.0),
        ("1000000000000000000000", 1e21),
        ("\"Infinity\"", f64::INFINITY),
        ("\"-Infinity\"", f64::NEG_INFINITY),
    ] {
        assert_eq!(read(value), Ok(expected.to_bits()), "{value}");
    }
    assert!(plain("float64", &["\"NaN\""]).unwrap().as_primitive::<Float64Type>().value(0).is_nan());
    for (value, expected) in [
        ("9007199254740993", "a number with more digits than it holds"),
        ("0.12345678901234567890", "a number with more digits than it holds"),
        ("1e309", "a number beyond its range"),
        ("1e-400", "a number that is too small for it"),
        ("4e-324", "a number with more digits than it holds"),
        ("\"1.5\"", "a string"),
        ("null", ""),
    ] {
        match read(value) {
            Err(found) => assert_eq!(found, expected, "{value}"),
            Ok(_) => assert_eq!(value, "null"),
        }
    }
}

#[test]
fn a_narrow_float_is_the_number_that_was_written_or_nothing() {
    let read = |value: &str| plain("float32", &[value]).map(|array| array.as_primitive::<Float32Type>().value(0));
    for (value, expected) in [
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("1.4E-45", 1.4e-45),
        ("0.10000000149", 0.1),
        ("16777216", 16777216.0),
        ("\"Infinity\"", f32::INFINITY),
    ] {
        assert_eq!(read(value).map(f32::to_bits), Ok(f32::to_bits(expected)), "{value}");
    }
    assert_eq!(read("16777217").unwrap_err(), "a number with more digits than it holds");
    assert_eq!(read("3.5e38").unwrap_err(), "a number beyond its range");
}

#[test]
fn a_decimal_is_read_from_numbers_text_and_base64() {
    for (kind, value, expected) in [
        ("decimal(12,2)", "12.5", "12.50"),
        ("decimal(12,2)", "\"12.50\"", "12.50"),
        ("decimal(12,2)", "\"-0.01\"", "-0.01"),
        ("decimal(12,2)", "1250e-2", "12.50"),
        ("decimal(12,2)", "0", "0.00"),
        ("decimal(12,2)", "\"BNI=\"", "12.34"),
        ("decimal(20,4)", "\"B1vNFQ==\"", "12345.6789"),
        ("decimal(20,4)", "\"7Hg=\"", "-0.5000"),
        ("decimal(38,0)", "\"SztMqFqGxHoJiiI//////w==\"", "99999999999999999999999999999999999999"),
        ("decimal(38,0)", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
        ("decimal(38,0)", "-99999999999999999999999999999999999999.0", "-99999999999999999999999999999999999999"),
        ("decimal(20,18)", "0.123456789012345678", "0.123456789012345678"),
        ("decimal(38,20)", "{\"scale\":20,\"value\":\"AQ==\"}", "0.00000000000000000001"),
        ("decimal(12,2)", "1000000000.1000", "1000000000.10"),
    ] {
        assert_eq!(plain(kind, &[value]).map(decimal).as_deref(), Ok(expected), "{kind} {value}");
    }
    for (kind, value, expected) in [
        ("decimal(12,2)", "12.345", "a number with too many digits after the point"),
        ("decimal(4,2)", "100", "a number with too many digits before the point"),
        ("decimal(4,2)", "1e40", "a number with too many digits before the point"),
        ("decimal(38,0)", "1.0E38", "a number with too many digits before the point"),
        ("decimal(38,0)", "100000000000000000000000000000000000000", "a number with too many digits before the point"),
        ("decimal(38,0)", "9999999999999999999999999999999999999999999", "a number with more than 38 digits"),
        ("decimal(12,2)", "\"NAN\"", "a string that is no number"),
        ("decimal(12,2)", "\"NaN\"", "a string that is no number"),
        ("decimal(12,2)", "\"\"", "a string that is no number"),
        ("decimal(12,2)", "true", "a boolean"),
        ("decimal(12,2)", "{\"scale\":2}", "an object that is not {\"scale\", \"value\"}"),
    ] {
        // "NaN" and "NAN" are three characters: no base64.
        assert_eq!(plain(kind, &[value]).unwrap_err(), expected, "{kind} {value}");
    }
}

#[test]
fn digits_that_may_be_base64_are_refused_until_a_setting_decides() {
    let with = |decimals| Options { decimals, ..options() };
    let kind = kind("decimal(12,2)");
    for value in ["\"1234\"", "\"12345678\"", "\"1E10\""] {
        let misfit = column(&kind, None, &with(DecimalText::Auto), &[value]).unwrap_err();
        assert!(misfit.starts_with("a string that can be read as digits and as base64"), "{misfit}");
    }
    assert_eq!(column(&kind, None, &with(DecimalText::Text), &["\"1234\""]).map(decimal).as_deref(), Ok("1234.00"));
    assert_eq!(column(&kind, None, &with(DecimalText::Base64), &["\"1234\""]).map(decimal).as_deref(), Ok("-26588.24"));
    assert_eq!(column(&kind, None, &with(DecimalText::Text), &["\"BNI=\""]).unwrap_err(), "a string that is no number");
    assert_eq!(column(&kind, None, &with(DecimalText::Base64), &["\"12.34\""]).unwrap_err(), "a string that is not base64");
}

#[test]
fn an_announced_decimal_has_the_scale_that_the_schema_part_says() {
    let wire = |scale| Wire::Decimal { precision: Some(20), scale };
    assert_eq!(announced("decimal(20,4)", wire(4), "\"B1vNFQ==\"").map(decimal).as_deref(), Ok("12345.6789"));
    assert_eq!(announced("decimal(20,6)", wire(4), "\"B1vNFQ==\"").map(decimal).as_deref(), Ok("12345.678900"));
    assert_eq!(announced("decimal(20,4)", wire(-2), "\"AQ==\"").map(decimal).as_deref(), Ok("100.0000"));
    assert_eq!(announced("decimal(20,4)", wire(4), "12345.6789").map(decimal).as_deref(), Ok("12345.6789"));
    // With a schema part nothing is ambiguous.
    assert_eq!(announced("decimal(20,0)", wire(0), "\"1234\"").map(decimal).as_deref(), Ok("-2658824"));
    assert_eq!(announced("decimal(20,2)", Wire::String, "\"1234\"").map(decimal).as_deref(), Ok("1234.00"));
    assert_eq!(announced("decimal(20,2)", Wire::Float64, "12.5").map(decimal).as_deref(), Ok("12.50"));
    assert_eq!(announced("decimal(20,2)", Wire::Int64, "12").map(decimal).as_deref(), Ok("12.00"));
    assert_eq!(announced("int64", wire(2), "\"JxA=\"").unwrap().as_primitive::<Int64Type>().value(0), 100);
    assert_eq!(announced("int64", wire(2), "\"BNI=\"").unwrap_err(), "a number with too many digits after the point");
    assert_eq!(announced("decimal(20,3)", wire(4), "\"B1vNFQ==\"").unwrap_err(), "a number with too many digits after the point");
}

#[test]
fn a_decimal_of_any_size_becomes_the_digits_that_it_has() {
    let variable = |value: &str| announced("string", Wire::VariableScaleDecimal, value).map(text);
    for (value, expected) in [
        ("{\"scale\":35,\"value\":\"PIE/ZjbZhPJZW2o3KlPQ\"}", "3.14159265358979323846264338327950288"),
        ("{\"scale\":1,\"value\":\"D5Uan6OihslPDnZsOQ==\"}", "123456789012345678901234567890.5"),
        ("{\"scale\":20,\"value\":\"AQ==\"}", "0.00000000000000000001"),
        ("{\"scale\":0,\"value\":\"gA==\"}", "-128"),
        ("{\"scale\":-3,\"value\":\"/w==\"}", "-1000"),
        ("{\"scale\":2,\"value\":\"AA==\"}", "0.00"),
        ("{\"scale\":-2,\"value\":\"AA==\"}", "0"),
        // 2^136
        ("{\"scale\":0,\"value\":\"AQAAAAAAAAAAAAAAAAAAAAAA\"}", "87112285931760246646623899502532662132736"),
        ("{\"scale\":0,\"value\":\"/wAAAAAAAAAAAAAAAAAAAAAA\"}", "-87112285931760246646623899502532662132736"),
    ] {
        assert_eq!(variable(value).as_deref(), Ok(expected), "{value}");
    }
    let wire = Wire::Decimal { precision: Some(50), scale: 2 };
    assert_eq!(canonical(&wire), Type::Unknown("decimal(50,2)".to_owned()));
    assert_eq!(announced("string", wire, "\"BNI=\"").map(text).as_deref(), Ok("12.34"));
    let long = format!("{{\"scale\":0,\"value\":\"{}\"}}", "AAAA".repeat(2_000));
    assert_eq!(variable(&long).unwrap_err(), "a number with more than 9,800 digits");
}

#[test]
fn text_is_what_stands_between_the_quotes() {
    let read = |kind: &str, value: &str| plain(kind, &[value]).map(text);
    assert_eq!(read("string", "\"a\\n\\u00e9😀\"").as_deref(), Ok("a\né😀"));
    assert_eq!(read("enum", "\"happy\"").as_deref(), Ok("happy"));
    assert_eq!(read("string", "5").unwrap_err(), "a number");
    assert_eq!(read("string", "{}").unwrap_err(), "an object");
    assert_eq!(read("string", "\"\\ud800\"").unwrap_err(), "a string with half of a surrogate pair");
    let unknown = Type::Unknown("numbers and strings".to_owned());
    let array = column(&unknown, None, &options(), &["\"a\"", "1.50", "{\"a\": 1}"]).unwrap();
    assert_eq!(array.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "1.50", "{\"a\": 1}"]);
    assert_eq!(announced("string", Wire::Int64, "9007199254740993").map(text).as_deref(), Ok("9007199254740993"));
    assert_eq!(announced("string", Wire::Bool, "true").map(text).as_deref(), Ok("true"));
    assert_eq!(announced("string", Wire::Date, "5").unwrap_err(), "a column that the event's schema part calls a date");
}

#[test]
fn json_is_text_that_is_json_or_the_value_itself() {
    let array =
        plain("json", &["\"{\\\"a\\\": 1, \\\"a\\\": 2}\"", "{\"b\":[1, 2.50]}", "[1]", "1.50", "true", "\"\\\"x\\\"\"", "null"]);
    let expected =
        [Some("{\"a\": 1, \"a\": 2}"), Some("{\"b\":[1, 2.50]}"), Some("[1]"), Some("1.50"), Some("true"), Some("\"x\""), None];
    assert_eq!(array.unwrap().as_string::<i32>().iter().collect::<Vec<_>>(), expected);
    for value in ["\"{\"", "\"\"", "\"x\"", "\"1 2\""] {
        assert_eq!(plain("json", &[value]).unwrap_err(), "a string that is not JSON", "{value}");
    }
    assert_eq!(announced("json", Wire::Bytes, "\"e30=\"").unwrap_err(), "a column that the event's schema part calls bytes");
}

#[test]
fn bytes_are_read_as_the_setting_says() {
    let read = |binary, value: &str| {
        let options = Options { binary, ..options() };
        column(&Type::Binary, None, &options, &[value]).map(|array| array.as_binary::<i32>().value(0).to_vec())
    };
    assert_eq!(read(BinaryText::Base64, "\"AP8Q\""), Ok(vec![0, 255, 16]));
    assert_eq!(read(BinaryText::Base64, "\"\\/w==\""), Ok(vec![255]));
    assert_eq!(read(BinaryText::Base64, "\"\""), Ok(vec![]));
    assert_eq!(read(BinaryText::Base64Url, "\"_w\""), Ok(vec![255]));
    assert_eq!(read(BinaryText::Base64Url, "\"_w==\""), Ok(vec![255]));
    assert_eq!(read(BinaryText::Hex, "\"00fF10\""), Ok(vec![0, 255, 16]));
    assert_eq!(read(BinaryText::Base64, "\"00ff10\"").unwrap_err(), "a string that is not base64");
    assert_eq!(read(BinaryText::Base64, "\"AP8\"").unwrap_err(), "a string that is not base64");
    assert_eq!(read(BinaryText::Hex, "\"0\"").unwrap_err(), "a string that is not hexadecimal");
    assert_eq!(read(BinaryText::Hex, "\"0g\"").unwrap_err(), "a string that is not hexadecimal");
    assert_eq!(read(BinaryText::Base64, "[0]").unwrap_err(), "an array");
    // What a schema part calls bytes is base64 whatever the setting is.
    let options = Options { binary: BinaryText::Hex, ..options() };
    let array = column(&Type::Binary, Some(&Wire::Bytes), &options, &["\"AP8Q\""]).unwrap();
    assert_eq!(array.as_binary::<i32>().value(0), [0, 255, 16]);
}

#[test]
fn fixed_bytes_and_uuids_have_their_length() {
    let array = plain("binary(3)", &["\"AP8Q\"", "null"]).unwrap();
    assert_eq!(array.as_fixed_size_binary().value(0), [0, 255, 16]);
    assert!(array.is_null(1));
    assert_eq!(plain("binary(2)", &["\"AP8Q\""]).unwrap_err(), "bytes of another length");
    let expected = [0x7d, 0x44, 0x48, 0x40, 0x9d, 0xc0, 0x11, 0xd1, 0xb2, 0x45, 0x5f, 0xfd, 0xce, 0x74, 0xfa, 0xd2];
    for value in ["\"7d444840-9dc0-11d1-b245-5ffdce74fad2\"", "\"7D4448409DC011D1B2455FFDCE74FAD2\""] {
        assert_eq!(plain("uuid", &[value]).unwrap().as_fixed_size_binary().value(0), expected);
    }
    for value in [
        "\"\"",
        "\"7d444840-9dc0-11d1-b245-5ffdce74fad\"",
        "\"7d4448409-dc0-11d1-b245-5ffdce74fad2\"",
        "\"zz444840-9dc0-11d1-b245-5ffdce74fad2\"",
    ] {
        assert_eq!(plain("uuid", &[value]).unwrap_err(), "a string that is no UUID", "{value}");
    }
}

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

#[test]
fn lists_hold_nulls_and_lists() {
    let array = plain("list(int32)", &["[1,null,3]", "[]", "null"]).unwrap();
    let list = array.as_list::<i32>();
    assert_eq!(list.value(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(1), None, Some(3)]);
    assert_eq!((list.value(1).len(), list.is_null(1), list.is_null(2)), (0, false, true));
    let array = plain("list(list(string))", &["[[\"a\",\"b\"],null,[]]"]).unwrap();
    let outer = array.as_list::<i32>().value(0);
    let inner = outer.as_list::<i32>();
    assert_eq!(inner.value(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert_eq!((inner.is_null(1), inner.value(2).len()), (true, 0));
    assert_eq!(plain("list(int32)", &["[1,\"x\"]"]).unwrap_err(), "[1]a string");
    assert_eq!(plain("list(list(int8))", &["[[1],[2,300]]"]).unwrap_err(), "[1][1]a number out of range");
    assert_eq!(plain("list(int32)", &["{}"]).unwrap_err(), "an object");
}

#[test]
fn maps_are_objects_or_pairs() {
    let array = plain("map(string,string)", &["{\"k\":\"v\",\"n\":null}", "{}", "null"]).unwrap();
    let map = array.as_map();
    let entries = map.value(0);
    assert_eq!(entries.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("k"), Some("n")]);
    assert_eq!(entries.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("v"), None]);
    assert_eq!((map.value(1).len(), map.is_null(2)), (0, true));
    for value in ["[[1,\"a\"],[2,\"b\"]]", "{\"1\":\"a\",\"2\":\"b\"}"] {
        let array = plain("map(int32,string)", &[value]).unwrap();
        let entries = array.as_map().value(0);
        assert_eq!(entries.column(0).as_primitive::<Int32Type>().values(), &[1, 2], "{value}");
    }
    assert_eq!(plain("map(string,int8)", &["{\"a\":300}"]).unwrap_err(), "{value}a number out of range");
    assert_eq!(plain("map(string,int8)", &["{\"a\":1,\"a\":2}"]).unwrap_err(), "an object that names a key twice");
    assert_eq!(plain("map(string,int8)", &["[[\"a\"]]"]).unwrap_err(), "an array that is no list of pairs");
    assert_eq!(plain("map(int32,int8)", &["[[null,1]]"]).unwrap_err(), "{key}null");
}

#[test]
fn structs_have_their_members_in_any_order() {
    let kind = Type::Struct(vec![
        Column { name: "x".to_owned(), kind: Type::Float64, nullable: false },
        Column { name: "wkb".to_owned(), kind: Type::Binary, nullable: true },
    ]);
    let array = column(&kind, None, &options(), &["{\"x\":1.5,\"wkb\":\"AQ==\"}", "{\"wkb\":null,\"x\":2}", "{\"x\":3}", "null"])
        .unwrap();
    let fields = array.as_struct();
    assert_eq!(fields.column(0).as_primitive::<Float64Type>().values()[..3], [1.5, 2.0, 3.0]);
    assert_eq!(fields.column(1).as_binary::<i32>().iter().collect::<Vec<_>>(), [Some(&[1_u8][..]), None, None, None]);
    assert!(fields.is_null(3));
    let misfit = |value: &str| column(&kind, None, &options(), &[value]).unwrap_err();
    assert_eq!(misfit("{\"wkb\":null}"), ".xnothing");
    assert_eq!(misfit("{\"x\":null}"), ".xnull");
    assert_eq!(misfit("{\"x\":1,\"y\":2}"), "an object with an unknown member");
    assert_eq!(misfit("{\"x\":1,\"x\":2}"), "an object that names a member twice");
    assert_eq!(misfit("{\"x\":\"a\"}"), ".xa string");
}

#[test]
fn a_column_is_taken_back_to_where_a_failed_row_began() {
    let kind = kind("list(map(string,list(string)))");
    let reading = Reading::of(&kind, None, &options());
    let mut builder = ColumnBuilder::new(&kind, 0);
    let mut push = |text: &str| {
        let before = builder.len();
        let pushed = builder.push(&reading, Cursor::new(text).value().unwrap(), true);
        if pushed.is_err() {
            builder.truncate(before);
        }
        pushed.is_ok()
    };
    assert!(push("[{\"a\":[\"1\",\"2\"]}]"));
    assert!(!push("[{\"b\":[\"3\"]},{\"c\":[\"4\",5]}]"));
    assert!(push("null"));
    assert!(!push("[{\"d\":[\"6\"],\"d\":[]}]"));
    assert!(push("[{\"e\":[\"7\"]}]"));
    let array = builder.finish(&kind).unwrap();
    let list = array.as_list::<i32>();
    let keys = |row: usize| {
        let maps = list.value(row);
        let keys = maps.as_map().value(0).column(0).as_string::<i32>().value(0).to_owned();
        (keys, maps.as_map().value(0).column(1).as_list::<i32>().value(0).as_string::<i32>().value(0).to_owned())
    };
    assert_eq!(keys(0), ("a".to_owned(), "1".to_owned()));
    assert!(list.is_null(1));
    assert_eq!(keys(2), ("e".to_owned(), "7".to_owned()));
}

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
        "binary(4)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "enum",
        "list(int8)",
        "map(string,int8)",
        "struct(a int8)",
    ] {
        let kind = kind(text);
        let mut builder = ColumnBuilder::new(&kind, 4);
        builder.push_null();
        builder.push_null();
        builder.truncate(1);
        let array = builder.finish(&kind).unwrap();
        assert_eq!((array.len(), array.null_count(), array.data_type()), (1, 1, &kind.arrow()), "{text}");
    }
}

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
    let expected = Type::Struct(vec![Column { name: "x".to_owned(), kind: Type::Float64, nullable: false }]);
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
        let mut inference = infer::Inference::default();
        let mut decoder = crate::envelope::Decoder::new(crate::envelope::Format::Debezium);
        for value in values {
            let line = format!("{{\"op\":\"c\",\"source\":{{\"table\":\"t\"}},\"after\":{{\"a\":{value}}}}}");
            let Ok(crate::envelope::Line::Change(change)) = decoder.decode(line.as_bytes()) else { panic!("{line}") };
            inference.add(change.after.unwrap(), |_| false);
        }
        let columns: Vec<_> = inference.columns().map(|(name, kind)| (name.to_owned(), kind.to_string())).collect();
        assert_eq!(columns, [("a".to_owned(), expected.to_owned())], "{values:?}");
    }
}
