//! Values as text, as the server writes them with its default settings (and timestamps with a zone in UTC): for columns that
//! are declared as text, and for types that have no other column.

use std::fmt::{LowerExp, Write as _};

use super::bytes::Bytes;
use super::nested::{self, Nest};
use super::numeric::Numeric;
use super::{Misfit, PgType, embedding, exactly, geometry, network, search, time};

/// Appends the text of a value. What was appended before a failure is the caller's to take away.
pub(super) fn write(of: &PgType, bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    match of {
        PgType::Bool => into.push_str(if boolean(bytes)? { "true" } else { "false" }),
        PgType::Int2 => number(i16::from_be_bytes(exactly(bytes)?), into),
        PgType::Int4 => number(i32::from_be_bytes(exactly(bytes)?), into),
        PgType::Int8 => number(i64::from_be_bytes(exactly(bytes)?), into),
        PgType::Oid => number(u32::from_be_bytes(exactly(bytes)?), into),
        PgType::Xid8 => number(u64::from_be_bytes(exactly(bytes)?), into),
        PgType::Float4 => float4(f32::from_be_bytes(exactly(bytes)?), into),
        PgType::Float8 => float8(f64::from_be_bytes(exactly(bytes)?), into),
        PgType::Numeric(_) => Numeric::read(bytes)?.write(into),
        PgType::Money(scale) => money(i64::from_be_bytes(exactly(bytes)?), *scale, into),
        PgType::Text | PgType::TextOnly | PgType::Enum | PgType::Json | PgType::Jsonb | PgType::Versioned => {
            into.push_str(as_it_comes(of, bytes).transpose()?.unwrap_or_default());
        }
        PgType::Char => char_byte(exactly(bytes)?, into),
        PgType::Bytea => {
            into.push_str("\\x");
            for byte in bytes {
                let _ = write!(into, "{byte:02x}");
            }
        }
        PgType::Uuid => uuid(exactly(bytes)?, into),
        PgType::Date => time::write_date(bytes, into)?,
        PgType::Time => time::write_time(bytes, into)?,
        PgType::TimeTz => time::write_time_tz(bytes, into)?,
        PgType::Timestamp => time::write_timestamp(bytes, "", into)?,
        PgType::TimestampTz => time::write_timestamp(bytes, "+00", into)?,
        PgType::Interval => time::write_interval(bytes, into)?,
        PgType::Inet => network::write_inet(bytes, into)?,
        PgType::Mac => network::write_mac(bytes, into)?,
        PgType::Bits => network::write_bits(bytes, into)?,
        PgType::PgLsn => {
            let _ = write!(into, "{}", crate::pgoutput::Lsn(u64::from_be_bytes(exactly(bytes)?)));
        }
        PgType::RowPlace => row_place(bytes, into)?,
        PgType::Snapshot => snapshot(bytes, into)?,
        PgType::Geometric(kind) => geometry::write(*kind, bytes, into)?,
        PgType::Document => search::write_document(bytes, into)?,
        PgType::Query => search::write_query(bytes, into)?,
        PgType::Embedding(number) => number.write(bytes, into)?,
        PgType::SparseEmbedding => embedding::write_sparse(bytes, into)?,
        // What PostGIS writes for it is the same, in hexadecimal digits.
        PgType::Spatial => {
            for byte in bytes {
                let _ = write!(into, "{byte:02X}");
            }
        }
        PgType::Array(element) => nested::write_array(element, bytes, at, into)?,
        PgType::Vector(element) => nested::write_vector(element, bytes, at, into)?,
        PgType::Composite => nested::write_composite(bytes, at, into)?,
        PgType::Range(of) => nested::write_range(of, bytes, at, into)?,
        PgType::MultiRange(of) => nested::write_ranges(of, bytes, at, into)?,
        PgType::Pairs => nested::write_pairs(bytes, into)?,
        PgType::Other(_) | PgType::Unsendable(_) => return Err(Misfit::Unreadable),
    }
    Ok(())
}

/// The text of a value that the server sends as one; `None` for all other types.
pub(super) fn as_it_comes<'a>(of: &PgType, bytes: &'a [u8]) -> Option<Result<&'a str, Misfit>> {
    match of {
        PgType::Text | PgType::TextOnly | PgType::Enum | PgType::Json => Some(utf8(bytes)),
        PgType::Jsonb | PgType::Versioned => Some(versioned(bytes).and_then(utf8)),
        _ => None,
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Misfit> {
    std::str::from_utf8(bytes).map_err(|_| Misfit::Malformed)
}

pub(super) fn boolean(bytes: &[u8]) -> Result<bool, Misfit> {
    match exactly::<1>(bytes)? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(Misfit::Malformed),
    }
}

/// Behind the number of its format.
fn versioned(bytes: &[u8]) -> Result<&[u8], Misfit> {
    match bytes.split_first() {
        Some((1, text)) => Ok(text),
        _ => Err(Misfit::Malformed),
    }
}

fn number(value: impl std::fmt::Display, into: &mut String) {
    let _ = write!(into, "{value}");
}

/// From so many digits before the point on the server writes an exponent.
const FLOAT4_DIGITS: i32 = 6;
const FLOAT8_DIGITS: i32 = 15;

pub(super) fn float4(value: f32, into: &mut String) {
    float(value, f64::from(value), FLOAT4_DIGITS, into);
}

pub(super) fn float8(value: f64, into: &mut String) {
    float(value, value, FLOAT8_DIGITS, into);
}

/// The shortest digits that give the number back, with an exponent where the server writes one.
fn float(value: impl LowerExp + std::fmt::Display, kind: f64, digits: i32, into: &mut String) {
    if kind.is_nan() {
        return into.push_str("NaN");
    }
    if kind.is_infinite() {
        return into.push_str(if kind < 0.0 { "-Infinity" } else { "Infinity" });
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return into.push_str(&scientific) };
    match exponent.parse::<i32>() {
        Ok(power) if power < -4 || power >= digits => {
            let sign = if power < 0 { '-' } else { '+' };
            let _ = write!(into, "{mantissa}e{sign}{:02}", power.unsigned_abs());
        }
        _ => {
            let _ = write!(into, "{value}");
        }
    }
}

fn money(units: i64, scale: u8, into: &mut String) {
    let unit = 10_u64.checked_pow(u32::from(scale)).unwrap_or(1);
    let (whole, rest) = (units.unsigned_abs() / unit, units.unsigned_abs() % unit);
    let _ = write!(into, "{}{whole}", if units < 0 { "-" } else { "" });
    if unit > 1 {
        let _ = write!(into, ".{rest:0width$}", width = usize::from(scale));
    }
}

/// One byte; what is no ASCII is written as the server does, in octal.
fn char_byte([byte]: [u8; 1], into: &mut String) {
    match byte {
        0 => {}
        1..=127 => into.push(char::from(byte)),
        128..=255 => {
            let _ = write!(into, "\\{byte:03o}");
        }
    }
}

fn uuid(bytes: [u8; 16], into: &mut String) {
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            into.push('-');
        }
        let _ = write!(into, "{byte:02x}");
    }
}

/// `tid`: a page of the table, and the place in it.
fn row_place(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    let _ = write!(into, "({},{})", from.u32()?, from.u16()?);
    from.end()
}

/// `pg_snapshot`: what is over, what has not begun, and what of that in between was running.
fn snapshot(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    let count = usize::try_from(from.i32()?).map_err(|_| Misfit::Malformed)?;
    let _ = write!(into, "{}:{}:", from.u64()?, from.u64()?);
    if count.checked_mul(8) != Some(from.0.len()) {
        return Err(Misfit::Malformed);
    }
    for place in 0..count {
        let _ = write!(into, "{}{}", if place > 0 { "," } else { "" }, from.u64()?);
    }
    Ok(())
}
