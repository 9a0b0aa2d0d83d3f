//! Values as JSON: numbers, truth values and nested values as such, everything else as a string of its text.
//!
//! A number keeps all its digits, whatever a reader makes of them. NaN and the infinities are strings, since JSON has no
//! such numbers. A JSON column's text stands as it is. A map is an object whose names are the texts of its keys.

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::scalar::Scalar;
use crate::schema::Type;

/// Writes the value of a row, `null` for null.
pub fn write(column: &dyn Array, kind: &Type, row: usize, out: &mut String) {
    match Scalar::read(column, kind, row) {
        None => out.push_str("null"),
        Some(Scalar::Nested(column, kind, row)) => write_nested(column, kind, row, out),
        Some(Scalar::Float64(value)) if !value.is_finite() => write_quoted(&Scalar::Float64(value), out),
        Some(Scalar::Float32(value)) if !value.is_finite() => write_quoted(&Scalar::Float32(value), out),
        Some(
            plain @ (Scalar::Bool(_)
            | Scalar::Integer(_)
            | Scalar::Decimal(..)
            | Scalar::Float32(_)
            | Scalar::Float64(_)
            | Scalar::Json(_)),
        ) => plain.write(out),
        Some(quoted) => write_quoted(&quoted, out),
    }
}

/// Writes a list, a map or a struct that is not null.
pub(super) fn write_nested(column: &dyn Array, kind: &Type, row: usize, out: &mut String) {
    match kind {
        Type::List(element) => {
            let elements = column.as_list::<i32>().value(row);
            let write_element = |index: usize, out: &mut String| write(&elements, element, index, out);
            write_all('[', ']', elements.len(), out, write_element);
        }
        Type::Map(key, value) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            write_all('{', '}', entries.len(), out, |index, out| {
                match Scalar::read(keys, key, index) {
                    Some(key) => write_quoted(&key, out),
                    None => out.push_str("\"\""),
                }
                out.push(':');
                write(values, value, index, out);
            });
        }
        Type::Struct(fields) => {
            let columns = column.as_struct().columns();
            write_all('{', '}', fields.len().min(columns.len()), out, |index, out| {
                write_string(&fields[index].name, out);
                out.push(':');
                write(&columns[index], &fields[index].kind, row, out);
            });
        }
        _ => write(column, kind, row, out),
    }
}

fn write_all(open: char, close: char, count: usize, out: &mut String, write_one: impl Fn(usize, &mut String)) {
    out.push(open);
    for index in 0..count {
        if index > 0 {
            out.push(',');
        }
        write_one(index, out);
    }
    out.push(close);
}

fn write_quoted(value: &Scalar<'_>, out: &mut String) {
    if let Scalar::Text(text) = value {
        return write_string(text, out);
    }
    let mut text = String::new();
    value.write(&mut text);
    write_string(&text, out);
}

/// Writes a string with its quotes; escapes what JSON wants escaped, nothing else.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if short.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
