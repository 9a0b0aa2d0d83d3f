//! Booleans and numbers: every bit that was written, or nothing.

use arrow_array::cast::AsArray;
use arrow_array::types::*;

use super::*;

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
