//! One value by itself, and what it is as a value of another type: exactly that, or why not.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;

use super::json;
use crate::schema::Type;
use crate::text::{self, Digits, calendar};
use crate::value::Unholdable;

/// A value that is not null.
pub(crate) enum Scalar<'a> {
    Bool(bool),
    Integer(i128),
    Decimal(i128, i8),
    Float32(f32),
    Float64(f64),
    /// Text, an enum's label, what a source has no type for.
    Text(&'a str),
    Json(&'a str),
    Bytes(&'a [u8]),
    Uuid(&'a [u8]),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    Instant(i64),
    /// A list, a map or a struct: the column and the row.
    Nested(&'a dyn Array, &'a Type, usize),
}

use Scalar::{Bool, Bytes, Date, Decimal, Float32, Float64, Instant, Integer, Json, Nested, Text, Time, Timestamp, Uuid};

impl<'a> Scalar<'a> {
    /// The value in a row of a column that lies in memory as `kind` says.
    pub(crate) fn read(column: &'a dyn Array, kind: &'a Type, row: usize) -> Option<Self> {
        if column.is_null(row) {
            return None;
        }
        Some(match kind {
            Type::Bool => Bool(column.as_boolean().value(row)),
            Type::Int8 => Integer(column.as_primitive::<Int8Type>().value(row).into()),
            Type::Int16 => Integer(column.as_primitive::<Int16Type>().value(row).into()),
            Type::Int32 => Integer(column.as_primitive::<Int32Type>().value(row).into()),
            Type::Int64 => Integer(column.as_primitive::<Int64Type>().value(row).into()),
            Type::UInt8 => Integer(column.as_primitive::<UInt8Type>().value(row).into()),
            Type::UInt16 => Integer(column.as_primitive::<UInt16Type>().value(row).into()),
            Type::UInt32 => Integer(column.as_primitive::<UInt32Type>().value(row).into()),
            Type::UInt64 => Integer(column.as_primitive::<UInt64Type>().value(row).into()),
            Type::Float32 => Float32(column.as_primitive::<Float32Type>().value(row)),
            Type::Float64 => Float64(column.as_primitive::<Float64Type>().value(row)),
            Type::Decimal { scale, .. } => Decimal(column.as_primitive::<Decimal128Type>().value(row), *scale),
            Type::String | Type::Enum | Type::Unknown(_) => Text(column.as_string::<i32>().value(row)),
            Type::Json => Json(column.as_string::<i32>().value(row)),
            Type::Binary => Bytes(column.as_binary::<i32>().value(row)),
            Type::FixedBinary(_) => Bytes(column.as_fixed_size_binary().value(row)),
            Type::Uuid => Uuid(column.as_fixed_size_binary().value(row)),
            Type::Date => Date(column.as_primitive::<Date32Type>().value(row)),
            Type::Time => Time(column.as_primitive::<Time64MicrosecondType>().value(row)),
            Type::Timestamp => Timestamp(column.as_primitive::<TimestampMicrosecondType>().value(row)),
            Type::TimestampTz => Instant(column.as_primitive::<TimestampMicrosecondType>().value(row)),
            Type::List(_) | Type::Map(..) | Type::Struct(_) => Nested(column, kind, row),
        })
    }

    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Integer(value) => out.push_str(&value.to_string()),
            Decimal(unscaled, scale) => text::write_decimal(*unscaled, *scale, out),
            Float32(value) => text::write_float(*value, out),
            Float64(value) => text::write_float(*value, out),
            Text(value) | Json(value) => out.push_str(value),
            Bytes(value) => text::write_hex(value, out),
            Uuid(value) => text::write_uuid(value, out),
            Date(days) => calendar::write_date((*days).into(), out),
            Time(micros) => calendar::write_time(*micros, out),
            Timestamp(micros) => calendar::write_timestamp(*micros, out),
            Instant(micros) => {
                calendar::write_timestamp(*micros, out);
                out.push('Z');
            }
            Nested(column, kind, row) => json::write_nested(*column, kind, *row, out),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, Unholdable> {
        match self {
            Bool(value) => Ok(*value),
            Integer(0) | Text("false") => Ok(false),
            Integer(1) | Text("true") => Ok(true),
            Integer(value) => Err(if *value < 0 { Unholdable::Below } else { Unholdable::Above }),
            _ => Err(Unholdable::Malformed),
        }
    }

    /// An integer from `lowest` to `highest`.
    pub(super) fn integer(&self, (lowest, highest): (i128, i128)) -> Result<i128, Unholdable> {
        let value = match self {
            Bool(value) => i128::from(*value),
            Integer(value) => *value,
            Text(text) => text::read_integer(text)?,
            Decimal(..) | Float32(_) | Float64(_) => self.digits()?.unscaled(0)?,
            _ => return Err(Unholdable::Malformed),
        };
        match value {
            value if value < lowest => Err(Unholdable::Below),
            value if value > highest => Err(Unholdable::Above),
            value => Ok(value),
        }
    }

    /// The digits of a decimal, without its point.
    pub(super) fn decimal(&self, precision: u8, scale: i8) -> Result<i128, Unholdable> {
        let unscaled = self.digits()?.unscaled(scale)?;
        let end = 10i128.pow(precision.into());
        match unscaled {
            unscaled if unscaled <= -end => Err(Unholdable::Below),
            unscaled if unscaled >= end => Err(Unholdable::Above),
            unscaled => Ok(unscaled),
        }
    }

    pub(super) fn float64(&self) -> Result<f64, Unholdable> {
        match self {
            Float32(value) => Ok((*value).into()),
            Float64(value) => Ok(*value),
            _ => self.nearest(),
        }
    }

    pub(super) fn float32(&self) -> Result<f32, Unholdable> {
        match self {
            Float32(value) => Ok(*value),
            Float64(value) => match *value as f32 {
                narrow if f64::from(narrow) == *value || value.is_nan() => Ok(narrow),
                f32::INFINITY => Err(Unholdable::Above),
                f32::NEG_INFINITY => Err(Unholdable::Below),
                _ => Err(Unholdable::TooFine),
            },
            _ => self.nearest(),
        }
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, Unholdable> {
        match self {
            Bytes(value) | Uuid(value) => Ok(value.to_vec()),
            Text(text) => text::read_hex(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    pub(super) fn fixed(&self, length: usize) -> Result<Vec<u8>, Unholdable> {
        let bytes = self.bytes()?;
        if bytes.len() == length { Ok(bytes) } else { Err(Unholdable::Length) }
    }

    pub(super) fn uuid(&self) -> Result<[u8; 16], Unholdable> {
        match self {
            Bytes(value) | Uuid(value) => (*value).try_into().map_err(|_| Unholdable::Length),
            Text(text) => text::read_uuid(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    pub(super) fn date(&self) -> Result<i32, Unholdable> {
        match self {
            Date(days) => Ok(*days),
            Timestamp(micros) if micros.rem_euclid(calendar::DAY) != 0 => Err(Unholdable::TooFine),
            Timestamp(micros) => i32::try_from(micros / calendar::DAY).map_err(|_| Unholdable::Malformed),
            Text(text) => calendar::read_date(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    pub(super) fn time(&self) -> Result<i64, Unholdable> {
        match self {
            Time(micros) => Ok(*micros),
            Text(text) => calendar::read_time(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    pub(super) fn timestamp(&self) -> Result<i64, Unholdable> {
        match self {
            Timestamp(micros) => Ok(*micros),
            Date(days) => calendar::micros((*days).into(), 0),
            Text(text) => calendar::read_timestamp(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    pub(super) fn instant(&self) -> Result<i64, Unholdable> {
        match self {
            Instant(micros) => Ok(*micros),
            Text(text) => calendar::read_instant(text),
            _ => Err(Unholdable::Malformed),
        }
    }

    /// The decimal digits: of a binary number those of its shortest text.
    fn digits(&self) -> Result<Digits, Unholdable> {
        match self {
            Text(text) => Digits::read(text),
            Integer(_) | Decimal(..) => Digits::read(&self.text()),
            Float32(value) => self.digits_of((*value).into()),
            Float64(value) => self.digits_of(*value),
            _ => Err(Unholdable::Malformed),
        }
    }

    /// Where a large binary number's shortest text is not its value, nobody can say which digits are meant.
    fn digits_of(&self, value: f64) -> Result<Digits, Unholdable> {
        let digits = Digits::read(&self.text())?;
        let is_whole = value.fract() == 0.0 && value.abs() < 1e38;
        if is_whole && digits.unscaled(0) != Ok(value as i128) { Err(Unholdable::TooFine) } else { Ok(digits) }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    /// The binary number that is nearest, if it is the very integer or its shortest text has the same digits.
    fn nearest<F: std::str::FromStr + Into<f64> + std::fmt::Debug + Copy>(&self) -> Result<F, Unholdable> {
        let digits = match self.digits() {
            // These three are binary numbers too.
            Err(Unholdable::NotANumber) => return "NaN".parse().map_err(|_| Unholdable::NotANumber),
            Err(Unholdable::Above) => return "inf".parse().map_err(|_| Unholdable::Above),
            Err(Unholdable::Below) => return "-inf".parse().map_err(|_| Unholdable::Below),
            digits => digits?,
        };
        let value: F = self.text().parse().map_err(|_| Unholdable::Malformed)?;
        if let Integer(integer) = self
            && value.into() as i128 == *integer
        {
            return Ok(value);
        }
        let mut shortest = String::new();
        text::write_float(value, &mut shortest);
        match Digits::read(&shortest) {
            Ok(same) if same == digits => Ok(value),
            Ok(_) => Err(Unholdable::TooFine),
            Err(beyond) => Err(beyond),
        }
    }
}
