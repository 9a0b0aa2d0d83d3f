//! A column that grows, value by value.

use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use rows::Type;

use super::array::Elements;
use super::numeric::Numeric;
use super::{Misfit, PgType, exactly, text, time};
use crate::pgoutput::Datum;

/// Values of one column.
#[derive(Debug)]
pub struct ColumnBuilder {
    pub(super) store: Store,
    pub(super) nulls: NullBufferBuilder,
}

/// Where values lie. Of a null something lies there too.
#[derive(Debug)]
pub(super) enum Store {
    Bool(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    /// Times and timestamps.
    Micros(Vec<i64>),
    Text {
        ends: Vec<i32>,
        text: String,
    },
    Bytes {
        ends: Vec<i32>,
        bytes: Vec<u8>,
    },
    Uuid(Vec<[u8; 16]>),
    List {
        ends: Vec<i32>,
        elements: Box<ColumnBuilder>,
    },
    /// A type that nothing of this driver becomes.
    Nothing,
}

impl ColumnBuilder {
    /// An empty column.
    pub fn new(kind: &Type) -> Self {
        let store = match kind {
            Type::Bool => Store::Bool(BooleanBufferBuilder::new(0)),
            Type::Int16 => Store::Int16(Vec::new()),
            Type::Int32 => Store::Int32(Vec::new()),
            Type::Int64 => Store::Int64(Vec::new()),
            Type::UInt32 => Store::UInt32(Vec::new()),
            Type::UInt64 => Store::UInt64(Vec::new()),
            Type::Float32 => Store::Float32(Vec::new()),
            Type::Float64 => Store::Float64(Vec::new()),
            Type::Decimal { precision, scale } => Store::Decimal { values: Vec::new(), precision: *precision, scale: *scale },
            Type::Date => Store::Date(Vec::new()),
            Type::Time | Type::Timestamp | Type::TimestampTz => Store::Micros(Vec::new()),
            Type::String | Type::Json | Type::Enum | Type::Unknown(_) => Store::Text { ends: Vec::new(), text: String::new() },
            Type::Binary => Store::Bytes { ends: Vec::new(), bytes: Vec::new() },
            Type::Uuid => Store::Uuid(Vec::new()),
            Type::List(element) => Store::List { ends: Vec::new(), elements: Box::new(ColumnBuilder::new(element)) },
            Type::Int8 | Type::UInt8 | Type::UInt16 | Type::FixedBinary(_) | Type::Map(..) | Type::Struct(_) => Store::Nothing,
        };
        Self { store, nulls: NullBufferBuilder::new(0) }
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value of a type. If it does not fit, nothing is appended.
    pub fn append(&mut self, of: &PgType, datum: Datum<'_>) -> Result<(), Misfit> {
        match datum {
            Datum::Null | Datum::Unchanged => self.append_null(),
            Datum::Binary(bytes) => self.append_binary(of, bytes)?,
            // Only a type without a binary form comes so.
            Datum::Text(bytes) => match (&mut self.store, of) {
                (Store::Text { ends, text: into }, PgType::Other(_) | PgType::Text) => {
                    append_text(ends, into, |into| text::utf8(bytes).map(|text| into.push_str(text)))?;
                    self.nulls.append_non_null();
                }
                _ => return Err(Misfit::TextForm),
            },
        }
        Ok(())
    }

    /// Appends null.
    pub fn append_null(&mut self) {
        match &mut self.store {
            Store::Bool(values) => values.append(false),
            Store::Int16(values) => values.push(0),
            Store::Int32(values) | Store::Date(values) => values.push(0),
            Store::Int64(values) | Store::Micros(values) => values.push(0),
            Store::UInt32(values) => values.push(0),
            Store::UInt64(values) => values.push(0),
            Store::Float32(values) => values.push(0.0),
            Store::Float64(values) => values.push(0.0),
            Store::Decimal { values, .. } => values.push(0),
            Store::Text { ends, .. } | Store::Bytes { ends, .. } | Store::List { ends, .. } => ends.push(last(ends)),
            Store::Uuid(values) => values.push([0; 16]),
            Store::Nothing => {}
        }
        self.nulls.append_null();
    }

    fn append_binary(&mut self, of: &PgType, bytes: &[u8]) -> Result<(), Misfit> {
        match (&mut self.store, of) {
            (Store::Text { ends, text: into }, _) => append_text(ends, into, |into| text::write(of, bytes, into))?,
            (Store::Bool(values), PgType::Bool) => values.append(text::boolean(bytes)?),
            (Store::Int16(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?)),
            (Store::Int32(values), PgType::Int4) => values.push(i32::from_be_bytes(exactly(bytes)?)),
            (Store::Int32(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?).into()),
            (Store::Int64(values), PgType::Int8) => values.push(i64::from_be_bytes(exactly(bytes)?)),
            (Store::Int64(values), PgType::Int4) => values.push(i32::from_be_bytes(exactly(bytes)?).into()),
            (Store::Int64(values), PgType::Int2) => values.push(i16::from_be_bytes(exactly(bytes)?).into()),
            (Store::Int64(values), PgType::Oid) => values.push(u32::from_be_bytes(exactly(bytes)?).into()),
            (Store::UInt32(values), PgType::Oid) => values.push(u32::from_be_bytes(exactly(bytes)?)),
            (Store::UInt64(values), PgType::Xid8) => values.push(u64::from_be_bytes(exactly(bytes)?)),
            (Store::Float32(values), PgType::Float4) => values.push(f32::from_be_bytes(exactly(bytes)?)),
            (Store::Float64(values), PgType::Float8) => values.push(f64::from_be_bytes(exactly(bytes)?)),
            (Store::Float64(values), PgType::Float4) => values.push(f32::from_be_bytes(exactly(bytes)?).into()),
            (Store::Decimal { values, precision, scale }, PgType::Numeric(_)) => {
                values.push(Numeric::read(bytes)?.decimal(*precision, *scale)?);
            }
            (Store::Decimal { values, precision, scale }, PgType::Money(digits)) => {
                values.push(money(i64::from_be_bytes(exactly(bytes)?), *digits, *precision, *scale)?);
            }
            (Store::Date(values), PgType::Date) => values.push(time::date(bytes)?),
            (Store::Micros(values), PgType::Time) => values.push(time::time(bytes)?),
            (Store::Micros(values), PgType::Timestamp | PgType::TimestampTz) => values.push(time::timestamp(bytes)?),
            (Store::Uuid(values), PgType::Uuid) => values.push(exactly(bytes)?),
            (Store::Bytes { ends, bytes: into }, PgType::Bytea | PgType::Other(_)) => {
                ends.push(end(into.len(), bytes.len())?);
                into.extend_from_slice(bytes);
            }
            (Store::List { ends, elements }, PgType::Array(element)) => {
                let before = elements.len();
                match append_list(elements, element, bytes).and_then(|()| end(elements.len(), 0)) {
                    Ok(end) => ends.push(end),
                    Err(misfit) => {
                        elements.truncate(before);
                        return Err(misfit);
                    }
                }
            }
            _ => return Err(Misfit::Unreadable),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    /// Takes away all but the first `len` values.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.store {
            Store::Bool(values) => values.truncate(len),
            Store::Int16(values) => values.truncate(len),
            Store::Int32(values) | Store::Date(values) => values.truncate(len),
            Store::Int64(values) | Store::Micros(values) => values.truncate(len),
            Store::UInt32(values) => values.truncate(len),
            Store::UInt64(values) => values.truncate(len),
            Store::Float32(values) => values.truncate(len),
            Store::Float64(values) => values.truncate(len),
            Store::Decimal { values, .. } => values.truncate(len),
            Store::Text { ends, text } => {
                ends.truncate(len);
                text.truncate(size(last(ends)));
            }
            Store::Bytes { ends, bytes } => {
                ends.truncate(len);
                bytes.truncate(size(last(ends)));
            }
            Store::Uuid(values) => values.truncate(len),
            Store::List { ends, elements } => {
                ends.truncate(len);
                elements.truncate(size(last(ends)));
            }
            Store::Nothing => {}
        }
        self.nulls.truncate(len);
    }
}

fn append_text(
    ends: &mut Vec<i32>,
    into: &mut String,
    write: impl FnOnce(&mut String) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    let before = into.len();
    match write(into).and_then(|()| end(into.len(), 0)) {
        Ok(end) => ends.push(end),
        Err(misfit) => {
            into.truncate(before);
            return Err(misfit);
        }
    }
    Ok(())
}

fn append_list(elements: &mut ColumnBuilder, of: &PgType, bytes: &[u8]) -> Result<(), Misfit> {
    let mut from = Elements::of_list(bytes)?;
    while let Some(element) = from.next()? {
        elements.append(of, element.map_or(Datum::Null, Datum::Binary))?;
    }
    Ok(())
}

/// Units of the server's money as a decimal of another scale.
fn money(units: i64, digits: u8, precision: u8, scale: i8) -> Result<i128, Misfit> {
    use rows::value::Unholdable;
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

fn last(ends: &[i32]) -> i32 {
    ends.last().copied().unwrap_or(0)
}

fn size(end: i32) -> usize {
    usize::try_from(end).unwrap_or(0)
}

/// Where a value ends. A batch is far smaller than what an offset can say; a value that is not is refused.
fn end(begin: usize, bytes: usize) -> Result<i32, Misfit> {
    begin.checked_add(bytes).and_then(|end| i32::try_from(end).ok()).ok_or(Misfit::Unholdable(rows::value::Unholdable::Length))
}
