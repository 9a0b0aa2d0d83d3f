//! One value into one column: which reading goes with which store.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

use rows::build::Values;

use super::decimal::{self, DecimalForm};
use super::number::{float32, float64, integer};
use super::reading::{BinaryText, Reading};
use super::{Misfit, time};
use crate::envelope::Unit;
use crate::json::{Cursor, Kind, Value, unescape_into};

const OUT_OF_RANGE: &str = "a number out of range";

macro_rules! push_integer {
    ($values:expr, $reading:expr, $value:expr) => {{
        let number = integer_of($reading, $value)?;
        $values.push(number.try_into().map_err(|_| Misfit::new(OUT_OF_RANGE))?);
    }};
}

/// Appends a value that is not null. After an error a part of it may be there.
pub(super) fn push(values: &mut Values, reading: &Reading, value: Value<'_>) -> Result<(), Misfit> {
    if let Reading::Impossible(found) = reading {
        return Err(Misfit::new(*found));
    }
    match values {
        Values::Bool(values) => values.append(boolean(value)?),
        Values::Int8(values) => push_integer!(values, reading, value),
        Values::Int16(values) => push_integer!(values, reading, value),
        Values::Int32(values) => push_integer!(values, reading, value),
        Values::Int64(values) => push_integer!(values, reading, value),
        Values::UInt8(values) => push_integer!(values, reading, value),
        Values::UInt16(values) => push_integer!(values, reading, value),
        Values::UInt32(values) => push_integer!(values, reading, value),
        Values::UInt64(values) => push_integer!(values, reading, value),
        Values::Float32(values) => values.push(match special(value)? {
            Some(special) => special as f32,
            None => float32(value.raw).map_err(Misfit::new)?,
        }),
        Values::Float64(values) => values.push(match special(value)? {
            Some(special) => special,
            None => float64(value.raw).map_err(Misfit::new)?,
        }),
        Values::Decimal { values, precision, scale } => {
            let Reading::Decimal(form) = reading else { return Err(Misfit::kind(value.kind)) };
            let exact = decimal::exact(*form, value, *scale)?;
            values.push(exact.unscaled(*precision, *scale).map_err(Misfit::new)?);
        }
        Values::Date(values) => values.push(match value.kind {
            Kind::String => on_text(value, time::date)?,
            _ => integer_of(&Reading::Integer, value)?.try_into().map_err(|_| Misfit::new(OUT_OF_RANGE))?,
        }),
        Values::Micros(values) => values.push(micros(reading, value)?),
        Values::Text { ends, bytes } | Values::Binary { ends, bytes } => {
            push_bytes(bytes, reading, value)?;
            ends.push(i32::try_from(bytes.len()).map_err(|_| Misfit::new("more than 2 GiB in one batch"))?);
        }
        Values::Fixed { width, bytes } => {
            let begin = bytes.len();
            push_bytes(bytes, reading, value)?;
            if bytes.len() - begin != *width {
                return Err(Misfit::new("bytes of another length"));
            }
        }
        Values::List { ends, element } => super::nested::push_list(ends, element, reading, value)?,
        Values::Map { ends, keys, values } => super::nested::push_map(ends, keys, values, reading, value)?,
        Values::Struct { columns, fields } => super::nested::push_struct(columns, fields, reading, value)?,
    }
    Ok(())
}

/// `true`, `false`, and 1 and 0 as databases without booleans write them.
fn boolean(value: Value<'_>) -> Result<bool, Misfit> {
    match (value.kind, value.raw) {
        (Kind::Bool, raw) => Ok(raw == "true"),
        (Kind::Number, "1") => Ok(true),
        (Kind::Number, "0") => Ok(false),
        (other, _) => Err(Misfit::kind(other)),
    }
}

fn integer_of(reading: &Reading, value: Value<'_>) -> Result<i128, Misfit> {
    match reading {
        Reading::Decimal(form) => decimal::exact(*form, value, 0)?.at_scale(0).map_err(Misfit::new),
        _ if value.kind != Kind::Number => Err(Misfit::kind(value.kind)),
        _ => integer(value.raw).ok_or(Misfit::new("a number that is no integer, or one beyond 128 bits")),
    }
}

/// The numbers that JSON has no numbers for, as strings. `None` for a number.
fn special(value: Value<'_>) -> Result<Option<f64>, Misfit> {
    match (value.kind, value.inside()) {
        (Kind::Number, _) => Ok(None),
        (Kind::String, "NaN") => Ok(Some(f64::NAN)),
        (Kind::String, "Infinity") => Ok(Some(f64::INFINITY)),
        (Kind::String, "-Infinity") => Ok(Some(f64::NEG_INFINITY)),
        (other, _) => Err(Misfit::kind(other)),
    }
}

fn micros(reading: &Reading, value: Value<'_>) -> Result<i64, Misfit> {
    let count = |unit: Option<Unit>| match (value.kind, unit) {
        (Kind::Number, Some(unit)) => Ok((integer_of(&Reading::Integer, value)?, unit)),
        (Kind::Number, None) => Err(Misfit::new(
            "a number that counts nobody knows what (the setting 'source.timeUnit', ms, us or ns, or events with their schema part tell it)",
        )),
        (other, _) => Err(Misfit::kind(other)),
    };
    let text = value.kind == Kind::String;
    match reading {
        Reading::Time(_) if text => on_text(value, time::time),
        Reading::Timestamp(_) if text => on_text(value, time::timestamp),
        Reading::TimestampTz(_) if text => on_text(value, time::timestamptz),
        Reading::Time(unit) => count(*unit).and_then(|(count, unit)| time::time_of(count, unit).map_err(Misfit::new)),
        Reading::Timestamp(unit) | Reading::TimestampTz(unit) => {
            count(*unit).and_then(|(count, unit)| time::timestamp_of(count, unit).map_err(Misfit::new))
        }
        _ => Err(Misfit::kind(value.kind)),
    }
}

fn on_text<T>(value: Value<'_>, read: impl Fn(&str) -> Result<T, &'static str>) -> Result<T, Misfit> {
    let text = value.text().map_err(|_| Misfit::new("a string that is no text"))?;
    read(&text).map_err(Misfit::new)
}

fn push_bytes(bytes: &mut Vec<u8>, reading: &Reading, value: Value<'_>) -> Result<(), Misfit> {
    match (reading, value.kind) {
        (Reading::Text, Kind::String) => content(bytes, value),
        (Reading::Json, Kind::String) => {
            let begin = bytes.len();
            content(bytes, value)?;
            if is_json(&bytes[begin..]) { Ok(()) } else { Err(Misfit::new("a string that is not JSON")) }
        }
        (Reading::Verbatim, Kind::String) => content(bytes, value),
        (Reading::Json | Reading::Verbatim, _) => {
            bytes.extend_from_slice(value.raw.as_bytes());
            Ok(())
        }
        (Reading::Decimal(form), _) if *form != DecimalForm::Any => decimal::write_plain(*form, value, bytes),
        (Reading::Bytes(how), Kind::String) => binary(bytes, *how, value),
        (Reading::Uuid, Kind::String) => on_text(value, uuid).map(|uuid| bytes.extend_from_slice(&uuid)),
        (_, other) => Err(Misfit::kind(other)),
    }
}

fn content(bytes: &mut Vec<u8>, value: Value<'_>) -> Result<(), Misfit> {
    if value.escaped {
        unescape_into(value.inside(), bytes).map_err(|_| Misfit::new("a string with half of a surrogate pair"))
    } else {
        bytes.extend_from_slice(value.inside().as_bytes());
        Ok(())
    }
}

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| {
        let mut cursor = Cursor::new(text);
        cursor.value().and_then(|_| cursor.end()).is_ok()
    })
}

fn binary(bytes: &mut Vec<u8>, how: BinaryText, value: Value<'_>) -> Result<(), Misfit> {
    let text = value.text().map_err(|_| Misfit::new("a string that is no text"))?;
    let decoded = match how {
        BinaryText::Base64 => STANDARD.decode_vec(&*text, bytes).is_ok(),
        BinaryText::Base64Url if text.ends_with('=') => URL_SAFE.decode_vec(&*text, bytes).is_ok(),
        BinaryText::Base64Url => URL_SAFE_NO_PAD.decode_vec(&*text, bytes).is_ok(),
        BinaryText::Hex => hex(&text, bytes).is_some(),
    };
    if decoded { Ok(()) } else { Err(Misfit::new(how.misfit())) }
}

fn hex(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    for [high, low] in pairs {
        bytes.push((digit(*high)? << 4) | digit(*low)?);
    }
    rest.is_empty().then_some(())
}

/// `7d444840-9dc0-11d1-b245-5ffdce74fad2`, also without its dashes.
fn uuid(text: &str) -> Result<[u8; 16], &'static str> {
    let dashes = [8, 13, 18, 23];
    let plain = text.len() == 32;
    let mut digits = text.bytes().enumerate().filter(|(at, _)| plain || !dashes.contains(at)).map(|(_, byte)| digit(byte));
    let well_formed = plain || (text.len() == 36 && dashes.iter().all(|at| text.as_bytes()[*at] == b'-'));
    let mut uuid = [0; 16];
    if well_formed {
        for byte in &mut uuid {
            let mut next = || digits.next().flatten().ok_or("a string that is no UUID");
            *byte = (next()? << 4) | next()?;
        }
        return Ok(uuid);
    }
    Err("a string that is no UUID")
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
