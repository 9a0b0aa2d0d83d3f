//! Text, JSON, bytes, UUIDs.

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::*;

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
