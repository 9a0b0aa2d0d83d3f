//! Back from keys to values: for asking a source about rows of which only the keys are known.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Int64Array, RecordBatch,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Schema};

use super::column::LARGE;
use crate::schema::{Column, TableSchema, Type};

/// Why bytes are not a key of a table: they are another table's, or of another version of it.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a value, go on behind the last one, or are none of its type.
    #[error("key {key}: its bytes are no value of the column '{column}', of type {kind}")]
    Bytes {
        /// Which of the keys.
        key: usize,
        /// Which column.
        column: String,
        /// Its type.
        kind: Type,
    },
    /// There are bytes behind the last value.
    #[error("key {key} goes on behind its last value")]
    Longer {
        /// Which of the keys.
        key: usize,
    },
    /// Arrow refuses the values.
    #[error("the values of keys can't be put together: {0}")]
    Arrow(#[from] ArrowError),
}

/// The values of these keys: the key's columns in the order of the key, a row a key. Encoded again they are the same keys.
pub fn decode(schema: &TableSchema, keys: &[&[u8]]) -> Result<RecordBatch, DecodeError> {
    let columns: Vec<&Column> = schema.key.iter().filter_map(|place| schema.columns.get(*place)).collect();
    let mut rest: Vec<&[u8]> = keys.to_vec();
    let decoded: Vec<ArrayRef> = columns.iter().map(|column| take(column, &mut rest)).collect::<Result<_, _>>()?;
    match rest.iter().position(|rest| !rest.is_empty()) {
        Some(key) => Err(DecodeError::Longer { key }),
        None => {
            let fields: Vec<_> = columns.iter().map(|column| column.arrow()).collect();
            Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), decoded)?)
        }
    }
}

/// The next value of each key.
fn take(column: &Column, rest: &mut [&[u8]]) -> Result<ArrayRef, DecodeError> {
    let form = column.kind.arrow();
    Ok(match &column.kind {
        Type::Bool => Arc::new(BooleanArray::from(each(column, rest, bool_value)?)),
        Type::UInt64 => Arc::new(UInt64Array::from(each(column, rest, unsigned)?)),
        Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 | Type::UInt8 | Type::UInt16 | Type::UInt32 => {
            let wide: ArrayRef = Arc::new(Int64Array::from(each(column, rest, signed)?));
            cast_with_options(&wide, &form, &CastOptions { safe: false, ..CastOptions::default() })?
        }
        Type::Decimal { precision, scale } => {
            let values = Decimal128Array::from(each(column, rest, |r| Some(i128::from_be_bytes(word(r)?) ^ i128::MIN))?);
            let values = values.with_precision_and_scale(*precision, *scale)?;
            values.validate_decimal_precision(*precision)?;
            Arc::new(values)
        }
        Type::Date => Arc::new(Date32Array::from(each(column, rest, |r| Some(i32::from_be_bytes(word(r)?) ^ i32::MIN))?)),
        Type::Time => Arc::new(Time64MicrosecondArray::from(each(column, rest, micros)?)),
        Type::Timestamp => Arc::new(TimestampMicrosecondArray::from(each(column, rest, micros)?)),
        Type::TimestampTz => match form {
            DataType::Timestamp(_, zone) => {
                Arc::new(TimestampMicrosecondArray::from(each(column, rest, micros)?).with_timezone_opt(zone))
            }
            other => return Err(ArrowError::SchemaError(format!("a timestamp that is {other}")).into()),
        },
        Type::Uuid | Type::FixedBinary(_) => {
            let DataType::FixedSizeBinary(length) = form else {
                return Err(ArrowError::SchemaError(format!("fixed bytes that are {form}")).into());
            };
            let bytes = usize::try_from(length).unwrap_or(0);
            let values = each(column, rest, |r| r.split_off(..bytes))?;
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter().map(Some), length)?)
        }
        Type::Binary => Arc::new(BinaryArray::from_iter_values(each(column, rest, escaped)?)),
        Type::String | Type::Enum => {
            Arc::new(StringArray::from_iter_values(each(column, rest, |r| String::from_utf8(escaped(r)?).ok())?))
        }
        Type::Float32 | Type::Float64 | Type::Json | Type::List(_) | Type::Map(..) | Type::Struct(_) | Type::Unknown(_) => {
            // No key has such a column: encoding refuses it.
            return Err(ArrowError::SchemaError(format!("the key column '{}' is {}", column.name, column.kind)).into());
        }
    })
}

fn each<'a, T>(
    column: &Column,
    rest: &mut [&'a [u8]],
    value: impl Fn(&mut &'a [u8]) -> Option<T>,
) -> Result<Vec<T>, DecodeError> {
    let wrong = |key| DecodeError::Bytes { key, column: column.name.clone(), kind: column.kind.clone() };
    rest.iter_mut().enumerate().map(|(key, rest)| value(rest).ok_or_else(|| wrong(key))).collect()
}

fn word<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    rest.split_off(..BYTES)?.try_into().ok()
}

fn bool_value(rest: &mut &[u8]) -> Option<bool> {
    match word::<1>(rest)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

fn micros(rest: &mut &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(word(rest)?) ^ i64::MIN)
}

/// Large ones take two words, and are none if they stand in one.
fn unsigned(rest: &mut &[u8]) -> Option<u64> {
    match word(rest)? {
        [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] => LARGE.checked_add(u64::from_be_bytes(word(rest)?)),
        small => Some(u64::from_be_bytes(small) ^ (1 << 63)).filter(|value| *value < LARGE),
    }
}

fn signed(rest: &mut &[u8]) -> Option<i64> {
    match word(rest)? {
        [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] => {
            i64::try_from(LARGE.checked_add(u64::from_be_bytes(word(rest)?))?).ok()
        }
        small => Some(i64::from_be_bytes(small) ^ i64::MIN),
    }
}

fn escaped(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        value.extend_from_slice(rest.split_off(..zero)?);
        match word::<2>(rest)? {
            [0x00, 0x00] => return Some(value),
            [0x00, 0xFF] => value.push(0),
            _ => return None,
        }
    }
}
