//! A key column in whatever physical form it came, ready to be encoded row by row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    FixedSizeBinaryArray, Int64Array, PrimitiveArray, StringArray, UInt64Array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};

use super::KeyError;
use crate::schema::Type;

/// A column of values without nulls, one variant for each way in which values become bytes.
pub(super) enum KeyColumn {
    Bool(BooleanArray),
    /// Integers up to 64 bits with a sign, and unsigned ones that fit there.
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Decimal(Decimal128Array),
    Days(Date32Array),
    Micros(Int64Array),
    /// All of one length.
    Fixed(FixedSizeBinaryArray),
    Bytes(BinaryArray),
    Text(StringArray),
}

impl KeyColumn {
    /// Brings `column`, which has no nulls, into the one form of its type, or says why that cannot be done exactly.
    pub(super) fn new(column: &ArrayRef, name: &str, kind: &Type) -> Result<Self, KeyError> {
        let column = unpacked(column, name, kind)?;
        let form = |found: &DataType| KeyError::Form { column: name.into(), kind: kind.clone(), found: found.clone() };
        let value = |(row, why)| KeyError::Value { row, column: name.into(), kind: kind.clone(), why };
        let cast = |to: &DataType| cast(&column, to).ok_or_else(|| form(column.data_type()));

        Ok(match (kind, column.data_type()) {
            (Type::Bool, DataType::Boolean) => Self::Bool(column.as_boolean().clone()),
            (kind, DataType::UInt64) if kind.arrow().is_integer() => Self::Unsigned(column.as_primitive().clone()),
            (kind, found) if kind.arrow().is_integer() && found.is_integer() => {
                Self::Signed(cast(&DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            // Sinks without unsigned integers keep the widest one as a decimal.
            (Type::UInt64, DataType::Decimal128(_, 0)) => Self::Unsigned(unsigned(column.as_primitive()).map_err(value)?),
            (Type::Decimal { scale, .. }, DataType::Decimal256(_, found)) => {
                let narrow = narrowed(column.as_primitive()).map_err(value)?;
                Self::Decimal(rescaled(&narrow, *found, *scale).map_err(value)?)
            }
            (Type::Decimal { scale, .. }, found) if found.is_decimal() || found.is_integer() => {
                let found = scale_of(found);
                let wide = cast(&DataType::Decimal128(38, found))?;
                Self::Decimal(rescaled(wide.as_primitive(), found, *scale).map_err(value)?)
            }
            (Type::Date, DataType::Date32) => Self::Days(column.as_primitive::<Date32Type>().clone()),
            // Whatever the zone is called, the number is an instant. Without one it is none.
            (Type::Time, DataType::Time64(unit) | DataType::Time32(unit))
            | (Type::Timestamp, DataType::Timestamp(unit, None))
            | (Type::TimestampTz, DataType::Timestamp(unit, Some(_))) => {
                Self::Micros(micros(&cast(&DataType::Int64)?, *unit).map_err(value)?)
            }
            (Type::Uuid | Type::FixedBinary(_), DataType::FixedSizeBinary(_)) => {
                Self::Fixed(fixed(&column, fixed_length(kind)).map_err(value)?)
            }
            (Type::Uuid | Type::FixedBinary(_), DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                Self::Fixed(fixed(&cast(&DataType::Binary)?, fixed_length(kind)).map_err(value)?)
            }
            (Type::Binary, DataType::FixedSizeBinary(_) | DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                Self::Bytes(cast(&DataType::Binary)?.as_binary::<i32>().clone())
            }
            (Type::String | Type::Enum, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                Self::Text(cast(&DataType::Utf8)?.as_string::<i32>().clone())
            }
            (_, found) => return Err(form(found)),
        })
    }

    /// Appends the bytes of a row's value.
    pub(super) fn put(&self, row: usize, key: &mut Vec<u8>) {
        match self {
            Self::Bool(values) => key.push(u8::from(values.value(row))),
            Self::Signed(values) => match values.value(row) {
                i64::MAX => put_large(0, key),
                value => key.extend_from_slice(&(value ^ i64::MIN).to_be_bytes()),
            },
            Self::Unsigned(values) => match values.value(row).checked_sub(LARGE) {
                Some(over) => put_large(over, key),
                None => key.extend_from_slice(&(values.value(row) ^ (1 << 63)).to_be_bytes()),
            },
            Self::Decimal(values) => key.extend_from_slice(&(values.value(row) ^ i128::MIN).to_be_bytes()),
            Self::Days(values) => key.extend_from_slice(&(values.value(row) ^ i32::MIN).to_be_bytes()),
            Self::Micros(values) => key.extend_from_slice(&(values.value(row) ^ i64::MIN).to_be_bytes()),
            Self::Fixed(values) => key.extend_from_slice(values.value(row)),
            Self::Bytes(values) => put_escaped(values.value(row), key),
            Self::Text(values) => put_escaped(values.value(row).as_bytes(), key),
        }
    }

    /// How many bytes a value takes, near enough to reserve memory.
    pub(super) fn average_length(&self) -> usize {
        let average = |bytes: usize, rows: usize| bytes.div_ceil(rows.max(1)) + 2;
        match self {
            Self::Bool(_) => 1,
            Self::Signed(_) | Self::Unsigned(_) | Self::Micros(_) => 8,
            Self::Decimal(_) => 16,
            Self::Days(_) => 4,
            Self::Fixed(values) => usize::try_from(values.value_length()).unwrap_or(0),
            Self::Bytes(values) => average(span(values.value_offsets()), values.len()),
            Self::Text(values) => average(span(values.value_offsets()), values.len()),
        }
    }
}

/// From here on an integer takes two words: this many, and what is beyond.
pub(super) const LARGE: u64 = i64::MAX as u64;

fn put_large(over: u64, key: &mut Vec<u8>) {
    key.extend_from_slice(&[0xFF; 8]);
    key.extend_from_slice(&over.to_be_bytes());
}

/// The end, `00 00`, sorts before everything that a longer value can go on with.
fn put_escaped(value: &[u8], key: &mut Vec<u8>) {
    for (n, part) in value.split(|byte| *byte == 0).enumerate() {
        if n > 0 {
            key.extend_from_slice(&[0x00, 0xFF]);
        }
        key.extend_from_slice(part);
    }
    key.extend_from_slice(&[0x00, 0x00]);
}

fn span(offsets: &[i32]) -> usize {
    match offsets {
        [first, .., last] => usize::try_from(last - first).unwrap_or(0),
        _ => 0,
    }
}

/// Takes the value out of dictionaries and runs.
fn unpacked(column: &ArrayRef, name: &str, kind: &Type) -> Result<ArrayRef, KeyError> {
    let inner = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        DataType::RunEndEncoded(_, values) => values.data_type(),
        _ => return Ok(column.clone()),
    };
    cast(column, inner).ok_or_else(|| KeyError::Form {
        column: name.into(),
        kind: kind.clone(),
        found: column.data_type().clone(),
    })
}

/// Only for casts that change the form and no value.
fn cast(column: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if column.data_type() == to {
        return Some(Arc::clone(column));
    }
    cast_with_options(column, to, &CastOptions { safe: false, ..CastOptions::default() }).ok()
}

fn scale_of(found: &DataType) -> i8 {
    match found {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

/// Which row cannot be brought into the form, and why.
type Wrong = (usize, &'static str);

fn unsigned(values: &Decimal128Array) -> Result<UInt64Array, Wrong> {
    each::<UInt64Type, _>(values.values(), |value| u64::try_from(value).map_err(|_| "it is not within 0 to 2^64 - 1"))
}

fn narrowed(values: &Decimal256Array) -> Result<Decimal128Array, Wrong> {
    each::<Decimal128Type, _>(values.values(), |value| value.to_i128().ok_or("it has more than 38 digits"))
}

fn rescaled(values: &Decimal128Array, from: i8, to: i8) -> Result<Decimal128Array, Wrong> {
    let shift = i32::from(to) - i32::from(from);
    match 10i128.checked_pow(shift.unsigned_abs()) {
        Some(1) => Ok(values.clone()),
        Some(factor) if shift > 0 => {
            each::<Decimal128Type, _>(values.values(), |value| value.checked_mul(factor).ok_or("it has more than 38 digits"))
        }
        Some(factor) => each::<Decimal128Type, _>(values.values(), |value| {
            if value % factor == 0 { Ok(value / factor) } else { Err("it has more digits after the point") }
        }),
        None => each::<Decimal128Type, _>(values.values(), |value| {
            if value == 0 { Ok(0) } else { Err("its scale is too far from the column's") }
        }),
    }
}

/// Microseconds since the origin of the count, whatever its unit.
fn micros(values: &ArrayRef, unit: TimeUnit) -> Result<Int64Array, Wrong> {
    let values = values.as_primitive::<Int64Type>();
    let times = |factor: i64| {
        each::<Int64Type, _>(values.values(), move |value: i64| value.checked_mul(factor).ok_or("it is out of range"))
    };
    match unit {
        TimeUnit::Second => times(1_000_000),
        TimeUnit::Millisecond => times(1_000),
        TimeUnit::Microsecond => Ok(values.clone()),
        TimeUnit::Nanosecond => each::<Int64Type, _>(values.values(), |value: i64| {
            if value % 1_000 == 0 { Ok(value / 1_000) } else { Err("it is finer than a microsecond") }
        }),
    }
}

fn each<T: ArrowPrimitiveType, V: Copy>(
    values: &[V],
    convert: impl Fn(V) -> Result<T::Native, &'static str>,
) -> Result<PrimitiveArray<T>, Wrong> {
    let converted = values.iter().enumerate().map(|(row, value)| convert(*value).map_err(|why| (row, why)));
    Ok(PrimitiveArray::from_iter_values(converted.collect::<Result<Vec<_>, _>>()?))
}

fn fixed_length(kind: &Type) -> i32 {
    match kind.arrow() {
        DataType::FixedSizeBinary(length) => length,
        _ => 0,
    }
}

fn fixed(column: &ArrayRef, length: i32) -> Result<FixedSizeBinaryArray, Wrong> {
    let to = DataType::FixedSizeBinary(length);
    let wanted = usize::try_from(length).unwrap_or(0);
    let wrong = "it has another length";
    match column.as_binary_opt::<i32>() {
        Some(values) => match (0..values.len()).find(|row| values.value(*row).len() != wanted) {
            Some(row) => Err((row, wrong)),
            None => cast(column, &to).map(|fixed| fixed.as_fixed_size_binary().clone()).ok_or((0, wrong)),
        },
        None if column.data_type() == &to => Ok(column.as_fixed_size_binary().clone()),
        None => Err((0, wrong)),
    }
}
