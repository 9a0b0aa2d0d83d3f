//! One value of a row, as text for people and as JSON for programs. In JSON, whole and binary floating point numbers are
//! numbers, and everything that a JSON number could change (decimals, times, bytes) is text.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use contract::{Error, Kind};
use serde_json::{Map, Value, json};

/// For people. Bytes are hexadecimal.
pub(crate) fn text(column: &ArrayRef, row: usize, uuid: bool) -> Result<String, Error> {
    if column.is_null(row) {
        return Ok("null".to_owned());
    }
    let text = formatted(column.as_ref(), row)?;
    Ok(if uuid { hyphenated(&text) } else { text })
}

/// For programs.
pub(crate) fn json(column: &ArrayRef, row: usize, uuid: bool) -> Result<Value, Error> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    let text = || formatted(column.as_ref(), row);
    Ok(match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        kind if kind.is_integer() => text()?.parse().map(Value::Number).map_err(|error| unshowable(&error))?,
        DataType::Float32 => number(f64::from(column.as_primitive::<Float32Type>().value(row)), text()?),
        DataType::Float64 => number(column.as_primitive::<Float64Type>().value(row), text()?),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|item| json(&items, item, false)).collect::<Result<Vec<_>, _>>()?.into()
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns();
            let fields = fields.iter().zip(columns).map(|(field, column)| Ok((field.name().clone(), json(column, row, false)?)));
            Value::Object(fields.collect::<Result<Map<_, _>, Error>>()?)
        }
        // A map's keys may be of any type, so it is a list of pairs.
        DataType::Map(..) => {
            let entries: ArrayRef = std::sync::Arc::new(column.as_map().value(row));
            (0..entries.len()).map(|entry| json(&entries, entry, false)).collect::<Result<Vec<_>, _>>()?.into()
        }
        _ if uuid => Value::from(hyphenated(&text()?)),
        _ => Value::from(text()?),
    })
}

/// JSON has no number for what is none.
fn number(value: f64, text: String) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::String(text), Value::Number)
}

fn formatted(column: &dyn Array, row: usize) -> Result<String, Error> {
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(column, &options).map_err(|error| unshowable_arrow(&error))?;
    formatter.value(row).try_to_string().map_err(|error| unshowable_arrow(&error))
}

/// 32 hexadecimal digits as people write a UUID.
fn hyphenated(hex: &str) -> String {
    match (hex.get(..8), hex.get(8..12), hex.get(12..16), hex.get(16..20), hex.get(20..32)) {
        (Some(a), Some(b), Some(c), Some(d), Some(e)) if hex.len() == 32 => format!("{a}-{b}-{c}-{d}-{e}"),
        _ => hex.to_owned(),
    }
}

/// The value itself stays out of the message.
fn unshowable(why: &dyn std::fmt::Display) -> Error {
    let what = format!("a value cannot be shown: {why}");
    Error::new(Kind::Fatal, "peek-value", what, "read the table with another program, and report this")
}

fn unshowable_arrow(error: &ArrowError) -> Error {
    let why = match error {
        ArrowError::CastError(_) => "it is out of the range of its type's text form",
        _ => "its type has no text form",
    };
    unshowable(&why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::*;
    use std::sync::Arc;

    fn both(column: impl Array + 'static) -> (String, Value) {
        let column: ArrayRef = Arc::new(column);
        (text(&column, 0, false).unwrap(), json(&column, 0, false).unwrap())
    }

    #[test]
    fn numbers_that_json_can_hold_are_numbers_and_others_are_text() {
        assert_eq!(both(Int64Array::from(vec![i64::MIN])), ("-9223372036854775808".into(), json!(i64::MIN)));
        assert_eq!(both(UInt64Array::from(vec![u64::MAX])), ("18446744073709551615".into(), json!(u64::MAX)));
        assert_eq!(both(Float64Array::from(vec![0.1])), ("0.1".into(), json!(0.1)));
        assert_eq!(both(Float64Array::from(vec![f64::NAN])), ("NaN".into(), json!("NaN")));
        let decimal = Decimal128Array::from(vec![1_250]).with_precision_and_scale(12, 2).unwrap();
        assert_eq!(both(decimal), ("12.50".into(), json!("12.50")));
    }

    #[test]
    fn times_are_text_with_their_zone_if_they_have_one() {
        let utc = TimestampMicrosecondArray::from(vec![1_700_000_000_123_456]).with_timezone("+00:00");
        assert_eq!(both(utc), ("2023-11-14T22:13:20.123456Z".into(), json!("2023-11-14T22:13:20.123456Z")));
        let wall = TimestampMicrosecondArray::from(vec![1_700_000_000_000_000]);
        assert_eq!(both(wall), ("2023-11-14T22:13:20".into(), json!("2023-11-14T22:13:20")));
        assert_eq!(both(Date32Array::from(vec![-1])), ("1969-12-31".into(), json!("1969-12-31")));
    }

    #[test]
    fn null_is_not_the_text_null() {
        let column: ArrayRef = Arc::new(StringArray::from(vec![None, Some("null")]));
        assert_eq!(json(&column, 0, false).unwrap(), Value::Null);
        assert_eq!(json(&column, 1, false).unwrap(), json!("null"));
    }

    #[test]
    fn sixteen_bytes_are_a_uuid_only_where_the_schema_says_so() {
        let bytes = FixedSizeBinaryArray::try_from_iter([[0x12_u8; 16]].iter()).unwrap();
        let column: ArrayRef = Arc::new(bytes);
        assert_eq!(text(&column, 0, false).unwrap(), "12121212121212121212121212121212");
        assert_eq!(text(&column, 0, true).unwrap(), "12121212-1212-1212-1212-121212121212");
        assert_eq!(json(&column, 0, true).unwrap(), json!("12121212-1212-1212-1212-121212121212"));
    }

    #[test]
    fn lists_and_maps_keep_their_shape_in_json() {
        let mut list = ListBuilder::new(StringBuilder::new());
        list.values().append_value("a");
        list.values().append_null();
        list.append(true);
        assert_eq!(both(list.finish()), ("[a, null]".into(), json!(["a", null])));
        let mut map = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
        map.keys().append_value(1);
        map.values().append_value("one");
        map.append(true).unwrap();
        assert_eq!(both(map.finish()), ("{1: one}".into(), json!([{ "keys": 1, "values": "one" }])));
    }
}
