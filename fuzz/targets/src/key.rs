//! The one key encoding: equal values have equal bytes in whatever form they come, different ones have others in the order of the
//! values, and bytes are read back as what they were encoded from, or refused.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
    FixedSizeBinaryArray, Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, RunArray,
    StringArray, StringViewArray, Time32MillisecondArray, Time32SecondArray, Time64MicrosecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::i256;
use rows::key::{decode, hash};
use rows::{Column, EncodedKeys, TableSchema, Type};

use crate::Saw;
use crate::bytes::Bytes;

/// A value by itself, compared as the type compares.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Bool(bool),
    Number(i128),
    Bytes(Vec<u8>),
    Text(String),
}

/// The first bytes choose the key's columns; then come the values of two rows, with the forms in which they come; what is left is
/// taken for an encoded key.
pub fn key(bytes: &[u8]) -> Saw {
    let mut from = Bytes::new(bytes);
    let types: Vec<Type> = (0..=from.below(3)).map(|_| one_type(&mut from)).collect();
    let alike = from.chance(96);
    let first: Vec<Value> = types.iter().map(|of| value(of, &mut from)).collect();
    let second = if alike { first.clone() } else { types.iter().map(|of| value(of, &mut from)).collect() };
    let (a, b) = (encoded(&first, &types, &mut from), encoded(&second, &types, &mut from));
    assert_eq!(a.key(0).cmp(b.key(0)), first.cmp(&second), "{types:?}: {first:?} and {second:?}");
    assert_eq!(a.hash(0) == b.hash(0), first == second, "{types:?}: {first:?} and {second:?}");
    assert_eq!(a.hash(0), hash(a.key(0)));

    let Some(schema) = schema(&types) else { return Saw::Refused };
    let both = [a.key(0), b.key(0)];
    let decoded = decode(&schema, &both).unwrap_or_else(|error| panic!("{types:?}: {first:?} and {second:?}: {error}"));
    let again = EncodedKeys::encode_columns(decoded.columns(), &types).expect("it was a key");
    assert_eq!(again.iter().collect::<Vec<_>>(), both, "{types:?}: {first:?} and {second:?}");

    let rest = from.rest();
    match decode(&schema, &[rest]) {
        Ok(decoded) => {
            let again = EncodedKeys::encode_columns(decoded.columns(), &types).expect("it was a key");
            assert_eq!(again.key(0), rest, "{types:?}: one value has one encoding");
            Saw::Taken
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Saw::taken_if(rest.is_empty())
        }
    }
}

fn one_type(from: &mut Bytes<'_>) -> Type {
    match from.below(18) {
        0 => Type::Int64,
        1 => Type::String,
        2 => Type::UInt64,
        3 => Type::Binary,
        4 => Type::Decimal { precision: 12, scale: 2 },
        5 => Type::Decimal { precision: 38, scale: 0 },
        6 => Type::Int8,
        7 => Type::Int16,
        8 => Type::Int32,
        9 => Type::UInt8,
        10 => Type::UInt32,
        11 => Type::Bool,
        12 => Type::Date,
        13 => Type::Time,
        14 => Type::Timestamp,
        15 => Type::TimestampTz,
        16 => Type::Uuid,
        _ => Type::Enum,
    }
}

fn schema(types: &[Type]) -> Option<TableSchema> {
    let columns = types.iter().enumerate();
    let columns = columns.map(|(n, of)| Column::new(format!("c{n}"), of.clone(), false)).collect();
    TableSchema::new("shop.orders".into(), columns, (0..types.len()).collect()).ok()
}

/// A number between two others, often at an edge.
fn number(from: &mut Bytes<'_>, low: i128, high: i128) -> i128 {
    let near = i128::from(from.u8());
    match from.below(6) {
        0 => near.clamp(low, high),
        1 => (-near).clamp(low, high),
        2 => high - near.min(high.saturating_sub(low)),
        3 => low + near.min(high.saturating_sub(low)),
        // Where integers begin to take two words.
        4 => (i128::from(i64::MAX) - 3 + near % 7).clamp(low, high),
        _ => (i128::from(from.u64() as i64) * (1 + near)).clamp(low, high),
    }
}

fn value(of: &Type, from: &mut Bytes<'_>) -> Value {
    let mut between = |low: i128, high: i128| Value::Number(number(from, low, high));
    match of {
        Type::Bool => Value::Bool(from.u8() & 1 == 1),
        Type::Int8 => between(i8::MIN.into(), i8::MAX.into()),
        Type::Int16 => between(i16::MIN.into(), i16::MAX.into()),
        Type::Int32 | Type::Date => between(i32::MIN.into(), i32::MAX.into()),
        Type::Int64 | Type::Timestamp | Type::TimestampTz => between(i64::MIN.into(), i64::MAX.into()),
        Type::UInt8 => between(0, u8::MAX.into()),
        Type::UInt32 => between(0, u32::MAX.into()),
        Type::UInt64 => between(0, u64::MAX.into()),
        Type::Time => between(0, 86_399_999_999),
        Type::Decimal { precision, .. } => {
            let most = 10_i128.pow((*precision).into()) - 1;
            between(-most, most)
        }
        Type::Uuid => Value::Bytes(from.array::<16>().to_vec()),
        Type::Binary => Value::Bytes(from.some(5).to_vec()),
        _ => Value::Text(String::from_utf8_lossy(from.some(5)).into_owned()),
    }
}

fn encoded(row: &[Value], types: &[Type], from: &mut Bytes<'_>) -> EncodedKeys {
    let columns: Vec<ArrayRef> = row
        .iter()
        .zip(types)
        .map(|(value, of)| {
            let mut forms = forms(value, of);
            forms.swap_remove(from.below(forms.len()))
        })
        .collect();
    EncodedKeys::encode_columns(&columns, types).unwrap_or_else(|error| panic!("{types:?} {row:?}: {error}"))
}

/// Every form in which a value can come, one row each.
fn forms(value: &Value, of: &Type) -> Vec<ArrayRef> {
    let mut forms: Vec<ArrayRef> = match (value, of) {
        (Value::Bool(value), _) => vec![Arc::new(BooleanArray::from(vec![*value]))],
        (Value::Number(value), Type::Date) => vec![Arc::new(Date32Array::from(vec![*value as i32]))],
        (Value::Number(value), Type::Time) => times(*value as i64),
        (Value::Number(value), Type::Timestamp | Type::TimestampTz) => timestamps(*value as i64, *of == Type::TimestampTz),
        (Value::Number(value), Type::Decimal { scale, .. }) => decimals(*value, *scale),
        (Value::Number(value), of) => integers(*value, *of == Type::UInt64),
        (Value::Bytes(value), of) => {
            let mut forms: Vec<ArrayRef> = vec![
                Arc::new(BinaryArray::from(vec![value.as_slice()])),
                Arc::new(LargeBinaryArray::from(vec![value.as_slice()])),
                Arc::new(BinaryViewArray::from(vec![value.as_slice()])),
            ];
            let fixed = FixedSizeBinaryArray::try_from_iter(std::iter::once(value));
            forms.extend(fixed.ok().filter(|_| *of == Type::Uuid || !value.is_empty()).map(|array| Arc::new(array) as ArrayRef));
            forms
        }
        (Value::Text(value), _) => {
            let plain = StringArray::from(vec![value.as_str()]);
            let mut forms: Vec<ArrayRef> = vec![
                Arc::new(plain.clone()),
                Arc::new(LargeStringArray::from(vec![value.as_str()])),
                Arc::new(StringViewArray::from(vec![value.as_str()])),
            ];
            let run = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1]), &plain);
            forms.extend(run.ok().map(|array| Arc::new(array) as ArrayRef));
            forms
        }
    };
    let plain = Arc::clone(&forms[0]);
    forms.push(Arc::new(DictionaryArray::new(Int32Array::from(vec![0]), plain)));
    forms
}

fn integers(value: i128, as_decimal: bool) -> Vec<ArrayRef> {
    let mut forms: Vec<ArrayRef> = Vec::new();
    let mut add = |array: Option<ArrayRef>| forms.extend(array);
    add(i64::try_from(value).ok().map(|v| Arc::new(Int64Array::from(vec![v])) as _));
    add(u64::try_from(value).ok().map(|v| Arc::new(UInt64Array::from(vec![v])) as _));
    add(i8::try_from(value).ok().map(|v| Arc::new(Int8Array::from(vec![v])) as _));
    add(i16::try_from(value).ok().map(|v| Arc::new(Int16Array::from(vec![v])) as _));
    add(i32::try_from(value).ok().map(|v| Arc::new(Int32Array::from(vec![v])) as _));
    add(u8::try_from(value).ok().map(|v| Arc::new(UInt8Array::from(vec![v])) as _));
    add(u16::try_from(value).ok().map(|v| Arc::new(UInt16Array::from(vec![v])) as _));
    add(u32::try_from(value).ok().map(|v| Arc::new(UInt32Array::from(vec![v])) as _));
    if as_decimal {
        let decimal = Decimal128Array::from(vec![value]).with_precision_and_scale(20, 0);
        add(decimal.ok().map(|array| Arc::new(array) as _));
    }
    forms
}

/// The value in other scales, where it fits there.
fn decimals(value: i128, scale: i8) -> Vec<ArrayRef> {
    let narrow = |value: i128, scale| Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale).ok();
    let mut forms: Vec<ArrayRef> = narrow(value, scale).map(|array| Arc::new(array) as ArrayRef).into_iter().collect();
    let finer = value.checked_mul(100).filter(|fine| fine.unsigned_abs() < 10_u128.pow(38));
    forms.extend(finer.and_then(|fine| narrow(fine, scale + 2)).map(|array| Arc::new(array) as ArrayRef));
    if let Some(finer) = finer {
        let wide = Decimal256Array::from(vec![i256::from_i128(finer)]).with_precision_and_scale(76, scale + 2);
        forms.extend(wide.ok().map(|array| Arc::new(array) as ArrayRef));
    }
    let unit = 10_i128.pow(scale.unsigned_abs().into());
    if value % unit == 0
        && let Ok(whole) = i64::try_from(value / unit)
    {
        forms.push(Arc::new(Int64Array::from(vec![whole])));
    }
    forms
}

fn times(micros: i64) -> Vec<ArrayRef> {
    let mut forms: Vec<ArrayRef> =
        vec![Arc::new(Time64MicrosecondArray::from(vec![micros])), Arc::new(Time64NanosecondArray::from(vec![micros * 1_000]))];
    if micros % 1_000 == 0 {
        forms.push(Arc::new(Time32MillisecondArray::from(vec![(micros / 1_000) as i32])));
    }
    if micros % 1_000_000 == 0 {
        forms.push(Arc::new(Time32SecondArray::from(vec![(micros / 1_000_000) as i32])));
    }
    forms
}

fn timestamps(micros: i64, is_instant: bool) -> Vec<ArrayRef> {
    // An instant is the same in every zone.
    let zone = is_instant.then_some(if micros % 2 == 0 { "UTC" } else { "+02:00" });
    let mut forms: Vec<ArrayRef> = vec![Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone_opt(zone))];
    if let Some(nanos) = micros.checked_mul(1_000) {
        forms.push(Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone_opt(zone)));
    }
    if micros % 1_000 == 0 {
        forms.push(Arc::new(TimestampMillisecondArray::from(vec![micros / 1_000]).with_timezone_opt(zone)));
    }
    if micros % 1_000_000 == 0 {
        forms.push(Arc::new(TimestampSecondArray::from(vec![micros / 1_000_000]).with_timezone_opt(zone)));
    }
    forms
}
