//! Casts between canonical types: exact, or refused with the row and the reason. Never a silent change.
//!
//! No cast rounds, truncates, wraps or guesses a zone. A decimal becomes a binary number only if the number's shortest text
//! has the same digits, and the other way round by that text; a timestamp becomes a date only at midnight; a wall clock
//! never becomes an instant. As text, numbers stand in digits, times in ISO 8601, bytes in hexadecimal digits, nested values
//! as JSON. What cannot be held follows the column's [`ValuePolicy`].

pub mod json;
mod matrix;
mod nested;
pub(crate) mod scalar;

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::{ArrowError, DataType};

use crate::schema::Type;
use crate::value::{Judge, Offence, Unholdable, ValuePolicy};
use matrix::integer;
pub use matrix::{Fit, fit};
use scalar::Scalar;

/// Why a column could not be cast.
#[derive(Debug, thiserror::Error)]
pub enum CastError {
    /// There is no such cast.
    #[error("column '{column}': there is no cast from {from} to {to}; string holds every value")]
    Refused {
        /// The column.
        column: String,
        /// Its type.
        from: Type,
        /// The type asked for.
        to: Type,
    },
    /// A value that the policy refuses.
    #[error(transparent)]
    Value(#[from] Offence),
    /// A column that does not lie in memory as its type does: a fault of who made it.
    #[error("column '{column}' has the type {kind}, so {expected} is expected, {found} found", expected = .kind.arrow())]
    Form {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// How it lies in memory.
        found: DataType,
    },
    /// Arrow could not build the column, for example because its text exceeds 2 GiB.
    #[error("column '{column}' cannot be built: {source}")]
    Arrow {
        /// The column.
        column: String,
        /// What Arrow said.
        source: ArrowError,
    },
}

/// The type in which a target that has `to` keeps a column of type `from`: with the policy `string`, where not every value
/// fits, that is `string`. Known before there is a value, so that the target's column can be made.
pub fn held_as(from: &Type, to: &Type, policy: ValuePolicy) -> Type {
    if policy == ValuePolicy::String && fit(from, to) == Fit::Checked { Type::String } else { to.clone() }
}

/// The column as [`held_as`] says. `name` is for errors.
pub fn cast(column: &ArrayRef, name: &str, from: &Type, to: &Type, policy: ValuePolicy) -> Result<ArrayRef, CastError> {
    if from.arrow() != *column.data_type() {
        return Err(CastError::Form { column: name.into(), kind: from.clone(), found: column.data_type().clone() });
    }
    match fit(from, to) {
        Fit::Same => Ok(Arc::clone(column)),
        Fit::Refused => Err(CastError::Refused { column: name.into(), from: from.clone(), to: to.clone() }),
        Fit::Lossless | Fit::Checked => {
            let to = held_as(from, to, policy);
            Cast { column, from, to: &to, judge: Judge { name, kind: &to, policy } }.run()
        }
    }
}

/// A value given as text (`peek --key`, a filter's literal) as a column of one row, exact or refused.
pub(crate) fn read_text(text: &str, name: &str, kind: &Type) -> Result<ArrayRef, CastError> {
    let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
    // A label is taken by its word, whether the source has it or not: it is only compared.
    let to = if *kind == Type::Enum { &Type::String } else { kind };
    cast(&column, name, &Type::String, to, ValuePolicy::Error)
}

/// One column, on its way.
struct Cast<'a> {
    column: &'a ArrayRef,
    from: &'a Type,
    to: &'a Type,
    judge: Judge<'a>,
}

impl Cast<'_> {
    fn run(&self) -> Result<ArrayRef, CastError> {
        match self.to {
            Type::Bool => self.bools(),
            Type::Int8 => self.integers::<Int8Type>(),
            Type::Int16 => self.integers::<Int16Type>(),
            Type::Int32 => self.integers::<Int32Type>(),
            Type::Int64 => self.integers::<Int64Type>(),
            Type::UInt8 => self.integers::<UInt8Type>(),
            Type::UInt16 => self.integers::<UInt16Type>(),
            Type::UInt32 => self.integers::<UInt32Type>(),
            Type::UInt64 => self.integers::<UInt64Type>(),
            Type::Float32 => self.primitives::<Float32Type>(|value| value.float32(), Some((f32::MIN, f32::MAX))),
            Type::Float64 => self.primitives::<Float64Type>(|value| value.float64(), Some((f64::MIN, f64::MAX))),
            Type::Decimal { precision, scale } => {
                let highest = 10i128.pow((*precision).into()) - 1;
                self.primitives::<Decimal128Type>(|value| value.decimal(*precision, *scale), Some((-highest, highest)))
            }
            Type::Date => self.primitives::<Date32Type>(|value| value.date(), Some((i32::MIN, i32::MAX))),
            Type::Time => self.primitives::<Time64MicrosecondType>(|value| value.time(), Some((0, crate::text::calendar::DAY))),
            Type::Timestamp => self.primitives::<TimestampMicrosecondType>(|value| value.timestamp(), Some((i64::MIN, i64::MAX))),
            Type::TimestampTz => self.primitives::<TimestampMicrosecondType>(|value| value.instant(), Some((i64::MIN, i64::MAX))),
            Type::String | Type::Enum | Type::Unknown(_) => self.texts(|value, out| {
                value.write(out);
                Ok(())
            }),
            Type::Json if *self.from == Type::String => self.texts(|value, out| {
                value.write(out);
                serde_json::from_str::<serde::de::IgnoredAny>(out).map(|_| ()).map_err(|_| Unholdable::Malformed)
            }),
            Type::Json => self.jsons(),
            Type::Binary => self.binaries(),
            Type::FixedBinary(length) => self.fixed(*length as usize, |value| value.fixed(*length as usize)),
            Type::Uuid => self.fixed(16, |value| value.uuid().map(Vec::from)),
            Type::List(_) | Type::Map(..) | Type::Struct(_) => nested::cast(self),
        }
    }

    fn integers<T>(&self) -> Result<ArrayRef, CastError>
    where
        T: ArrowPrimitiveType,
        T::Native: TryFrom<i128>,
    {
        let bounds = integer(self.to).unwrap_or((0, 0));
        let native = |value| T::Native::try_from(value).map_err(|_| Unholdable::Malformed);
        let ends = native(bounds.0).ok().zip(native(bounds.1).ok());
        self.primitives::<T>(|value| native(value.integer(bounds)?), ends)
    }

    fn primitives<T: ArrowPrimitiveType>(
        &self,
        convert: impl Fn(&Scalar<'_>) -> Result<T::Native, Unholdable>,
        ends: Option<(T::Native, T::Native)>,
    ) -> Result<ArrayRef, CastError> {
        let values = self.settled(convert, ends).collect::<Result<Vec<Option<T::Native>>, Offence>>()?;
        Ok(Arc::new(values.into_iter().collect::<PrimitiveArray<T>>().with_data_type(self.to.arrow())))
    }

    fn bools(&self) -> Result<ArrayRef, CastError> {
        let values = self.settled(|value| value.bool(), Some((false, true))).collect::<Result<Vec<Option<bool>>, Offence>>()?;
        Ok(Arc::new(BooleanArray::from(values)))
    }

    fn texts(&self, write: impl Fn(&Scalar<'_>, &mut String) -> Result<(), Unholdable>) -> Result<ArrayRef, CastError> {
        let mut texts = StringBuilder::with_capacity(self.column.len(), 0);
        let mut text = String::new();
        for row in 0..self.column.len() {
            text.clear();
            let written = Scalar::read(self.column, self.from, row).map(|value| write(&value, &mut text));
            match written {
                None => texts.append_null(),
                Some(written) => match self.judge.settle(row, written, None)? {
                    Some(()) => texts.append_value(&text),
                    None => texts.append_null(),
                },
            }
        }
        Ok(Arc::new(texts.finish()))
    }

    fn jsons(&self) -> Result<ArrayRef, CastError> {
        let mut texts = StringBuilder::with_capacity(self.column.len(), 0);
        let mut text = String::new();
        for row in 0..self.column.len() {
            text.clear();
            json::write(self.column, self.from, row, &mut text);
            texts.append_option(self.column.is_valid(row).then_some(&text));
        }
        Ok(Arc::new(texts.finish()))
    }

    fn binaries(&self) -> Result<ArrayRef, CastError> {
        let mut bytes = BinaryBuilder::with_capacity(self.column.len(), 0);
        for value in self.settled(|value| value.bytes(), None) {
            bytes.append_option(value?);
        }
        Ok(Arc::new(bytes.finish()))
    }

    fn fixed(&self, length: usize, convert: impl Fn(&Scalar<'_>) -> Result<Vec<u8>, Unholdable>) -> Result<ArrayRef, CastError> {
        let mut bytes = FixedSizeBinaryBuilder::with_capacity(self.column.len(), i32::try_from(length).unwrap_or(i32::MAX));
        for value in self.settled(convert, None) {
            match value? {
                Some(value) => bytes.append_value(value).map_err(|source| self.arrow(source))?,
                None => bytes.append_null(),
            }
        }
        Ok(Arc::new(bytes.finish()))
    }

    fn settled<V: Clone>(
        &self,
        convert: impl Fn(&Scalar<'_>) -> Result<V, Unholdable>,
        ends: Option<(V, V)>,
    ) -> impl Iterator<Item = Result<Option<V>, Offence>> {
        (0..self.column.len()).map(move |row| match Scalar::read(self.column, self.from, row) {
            None => Ok(None),
            Some(value) => self.judge.settle(row, convert(&value), ends.clone()),
        })
    }

    fn arrow(&self, source: ArrowError) -> CastError {
        CastError::Arrow { column: self.judge.name.into(), source }
    }
}
