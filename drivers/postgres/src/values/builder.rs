//! Values into the columns of a batch that grows.

use rows::build::{ColumnBuilder, Values};
use rows::value::Unholdable;

use super::array::Elements;
use super::nested::{self, Nest};
use super::numeric::Numeric;
use super::{Misfit, PgType, Types, exactly, text, time};
use crate::pgoutput::Datum;

/// What reading values needs beside them.
#[derive(Debug)]
pub struct Reading<'a> {
    /// The database's types: the parts of a composite name theirs.
    pub types: &'a Types,
    /// Memory for texts that are made of values.
    pub scratch: &'a mut String,
}

/// Takes values of the server's.
pub trait AppendDatum {
    /// Appends a value of a type. If it does not fit, nothing is appended.
    fn append_datum(&mut self, of: &PgType, datum: Datum<'_>, reading: &mut Reading<'_>) -> Result<(), Misfit>;
}

impl AppendDatum for ColumnBuilder {
    fn append_datum(&mut self, of: &PgType, datum: Datum<'_>, reading: &mut Reading<'_>) -> Result<(), Misfit> {
        let before = self.len();
        let appended = match datum {
            Datum::Null | Datum::Unchanged => {
                self.append_null();
                Ok(())
            }
            Datum::Binary(bytes) => self.append(|values| append_binary(values, of, bytes, reading)),
            // Only a type without a binary form comes so.
            Datum::Text(bytes) => self.append(|values| match (values, of) {
                (Values::Text { ends, bytes: into }, PgType::TextOnly | PgType::Text) => {
                    append_text(ends, into, text::utf8(bytes)?)
                }
                _ => Err(Misfit::TextForm),
            }),
        };
        if appended.is_err() {
            self.truncate(before);
        }
        appended
    }
}

fn append_binary(values: &mut Values, of: &PgType, bytes: &[u8], reading: &mut Reading<'_>) -> Result<(), Misfit> {
    match (values, of) {
        (Values::Text { ends, bytes: into }, of) => match text::as_it_comes(of, bytes) {
            Some(text) => append_text(ends, into, text?)?,
            None => {
                reading.scratch.clear();
                text::write(of, bytes, Nest::new(reading.types), reading.scratch)?;
                append_text(ends, into, reading.scratch)?;
            }
        },
        (Values::Bool(values), PgType::Bool) => values.append(text::boolean(bytes)?),
        (Values::Int16(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?)),
        (Values::Int32(values), PgType::Int4) => values.push(i32::from_be_bytes(exactly(bytes)?)),
        (Values::Int32(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?).into()),
        (Values::Int64(values), PgType::Int8) => values.push(i64::from_be_bytes(exactly(bytes)?)),
        (Values::Int64(values), PgType::Int4) => values.push(i32::from_be_bytes(exactly(bytes)?).into()),
        (Values::Int64(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?).into()),
        (Values::Int64(values), PgType::Oid) => values.push(u32::from_be_bytes(exactly(bytes)?).into()),
        (Values::UInt32(values), PgType::Oid) => values.push(u32::from_be_bytes(exactly(bytes)?)),
        (Values::UInt64(values), PgType::Xid8) => values.push(u64::from_be_bytes(exactly(bytes)?)),
        (Values::Float32(values), PgType::Float4) => values.push(f32::from_be_bytes(exactly(bytes)?)),
        (Values::Float64(values), PgType::Float8) => values.push(f64::from_be_bytes(exactly(bytes)?)),
        (Values::Float64(values), PgType::Float4) => values.push(f32::from_be_bytes(exactly(bytes)?).into()),
        (Values::Decimal { values, precision, scale }, PgType::Numeric(_)) => {
            values.push(Numeric::read(bytes)?.decimal(*precision, *scale)?);
        }
        (Values::Decimal { values, precision, scale }, PgType::Money(digits)) => {
            values.push(money(i64::from_be_bytes(exactly(bytes)?), *digits, *precision, *scale)?);
        }
        (Values::Date(values), PgType::Date) => values.push(time::date(bytes)?),
        (Values::Micros(values), PgType::Time) => values.push(time::time(bytes)?),
        (Values::Micros(values), PgType::Timestamp | PgType::TimestampTz) => values.push(time::timestamp(bytes)?),
        (Values::Fixed { width: 16, bytes: into }, PgType::Uuid) => into.extend_from_slice(&exactly::<16>(bytes)?),
        (Values::Binary { ends, bytes: into }, PgType::Bytea | PgType::Spatial | PgType::Other(_)) => {
            into.extend_from_slice(bytes);
            ends.push(end(into.len())?);
        }
        (Values::List { ends, element }, PgType::Array(of)) => {
            append_elements(ends, element, of, Elements::of_list(bytes)?, reading)?;
        }
        (Values::List { ends, element }, PgType::Vector(of)) => {
            append_elements(ends, element, of, Elements::of_vector(bytes)?, reading)?;
        }
        (Values::List { ends, element }, PgType::Embedding(number)) => {
            number.read(bytes, |number| {
                element.append(|values| {
                    match values {
                        Values::Float32(values) => values.push(number),
                        Values::Float64(values) => values.push(number.into()),
                        _ => return Err(Misfit::Unreadable),
                    }
                    Ok(())
                })
            })?;
            ends.push(end(element.len())?);
        }
        (Values::Map { ends, keys, values }, PgType::Pairs) => {
            nested::pairs(bytes, |name, value| {
                keys.append_datum(&PgType::Text, Datum::Binary(name.as_bytes()), reading)?;
                values.append_datum(&PgType::Text, value.map_or(Datum::Null, |value| Datum::Binary(value.as_bytes())), reading)
            })?;
            ends.push(end(keys.len())?);
        }
        _ => return Err(Misfit::Unreadable),
    }
    Ok(())
}

fn append_elements(
    ends: &mut Vec<i32>,
    element: &mut ColumnBuilder,
    of: &PgType,
    mut from: Elements<'_>,
    reading: &mut Reading<'_>,
) -> Result<(), Misfit> {
    while let Some(value) = from.next()? {
        element.append_datum(of, value.map_or(Datum::Null, Datum::Binary), reading)?;
    }
    ends.push(end(element.len())?);
    Ok(())
}

fn append_text(ends: &mut Vec<i32>, into: &mut Vec<u8>, text: &str) -> Result<(), Misfit> {
    into.extend_from_slice(text.as_bytes());
    ends.push(end(into.len())?);
    Ok(())
}

/// Where a value ends. A batch is far smaller than what an offset can say; a value that is not is refused.
fn end(length: usize) -> Result<i32, Misfit> {
    i32::try_from(length).map_err(|_| Misfit::Unholdable(Unholdable::Length))
}

/// Units of the server's money as a decimal of another scale.
fn money(units: i64, digits: u8, precision: u8, scale: i8) -> Result<i128, Misfit> {
    let (limit, power) = (10_i128.checked_pow(u32::from(precision)), i32::from(scale) - i32::from(digits));
    let unit = 10_i128.checked_pow(power.unsigned_abs()).ok_or(Misfit::Unreadable)?;
    let beyond = if units < 0 { Unholdable::Below } else { Unholdable::Above };
    let units = i128::from(units);
    let value = match power < 0 {
        false => units.checked_mul(unit).ok_or(beyond)?,
        true if units % unit != 0 => return Err(Unholdable::TooFine.into()),
        true => units / unit,
    };
    if limit.is_some_and(|limit| value.abs() >= limit) { Err(beyond.into()) } else { Ok(value) }
}
