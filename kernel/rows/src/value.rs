//! Values that a target cannot hold, and what a column's policy makes of them. Never a silent change.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

use crate::cast::{CastError, cast};
use crate::schema::Type;

/// What becomes of a value that the target cannot hold. The words are those of pipeline files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValuePolicy {
    /// The row is refused.
    #[default]
    Error,
    /// Null takes its place.
    Null,
    /// The nearest value that can be held takes its place. Where nothing is near (NaN, too many digits), the row is refused.
    Clamp,
    /// The whole column is kept as text, so that it holds every value.
    String,
}

/// Why a value cannot be held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unholdable {
    /// It is below the lowest one, or minus infinity.
    Below,
    /// It is above the highest one, or infinity.
    Above,
    /// It is NaN.
    NotANumber,
    /// It has more digits after the point, a finer time, or more digits than a binary number keeps.
    TooFine,
    /// It has another number of bytes.
    Length,
    /// Its text or bytes are not those of such a value.
    Malformed,
}

/// The first value that a column's policy refuses. It does not hold the value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("row {row}: the value of column '{column}' cannot be held as {kind}: {why}")]
pub struct Offence {
    /// Which row.
    pub row: usize,
    /// Which column.
    pub column: String,
    /// The type that was to hold it.
    pub kind: Type,
    /// Why it cannot.
    pub why: Unholdable,
}

/// What a target can hold of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// Integers, digits of a decimal without its point, days of a date, microseconds of a time: from the first to the last.
    Between(i128, i128),
    /// Of floats, those that are numbers.
    Finite,
}

impl ValuePolicy {
    /// The word for it in a pipeline file.
    pub fn as_str(self) -> &'static str {
        match self {
            ValuePolicy::Error => "error",
            ValuePolicy::Null => "null",
            ValuePolicy::Clamp => "clamp",
            ValuePolicy::String => "string",
        }
    }

    /// What stands where the value was; `Err` if it is refused. `lowest` and `highest` are what can be held, where that has
    /// an order. For decoders too, which see a value before there is a column.
    pub fn settle<V>(self, why: Unholdable, ends: Option<(V, V)>) -> Result<Option<V>, Unholdable> {
        match (self, why, ends) {
            (ValuePolicy::Null, _, _) => Ok(None),
            (ValuePolicy::Clamp, Unholdable::Below, Some((lowest, _))) => Ok(Some(lowest)),
            (ValuePolicy::Clamp, Unholdable::Above, Some((_, highest))) => Ok(Some(highest)),
            (ValuePolicy::Error | ValuePolicy::Clamp | ValuePolicy::String, _, _) => Err(why),
        }
    }
}

impl fmt::Display for Unholdable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unholdable::Below => "it is below the lowest such value",
            Unholdable::Above => "it is above the highest such value",
            Unholdable::NotANumber => "it is NaN",
            Unholdable::TooFine => "it has more digits than can be kept",
            Unholdable::Length => "it has another number of bytes",
            Unholdable::Malformed => "it is not written as such a value is",
        })
    }
}

/// Judges a column against what the target can hold. Returns the column itself if everything fits, else what the policy
/// makes of it, or the first row that it refuses. With the policy `string` the answer is always the column as text.
/// Types that the bounds do not speak of are left as they are.
pub fn judge(column: &ArrayRef, name: &str, kind: &Type, bounds: Bounds, policy: ValuePolicy) -> Result<ArrayRef, CastError> {
    if policy == ValuePolicy::String {
        return cast(column, name, kind, &Type::String, ValuePolicy::Error);
    }
    let judge = Judge { name, kind, policy };
    let judged = match (bounds, column.data_type()) {
        (Bounds::Between(lowest, highest), found) => {
            let range = (lowest, highest);
            match found {
                DataType::Int8 => judge.integers::<Int8Type>(column, range),
                DataType::Int16 => judge.integers::<Int16Type>(column, range),
                DataType::Int32 => judge.integers::<Int32Type>(column, range),
                DataType::Int64 => judge.integers::<Int64Type>(column, range),
                DataType::UInt8 => judge.integers::<UInt8Type>(column, range),
                DataType::UInt16 => judge.integers::<UInt16Type>(column, range),
                DataType::UInt32 => judge.integers::<UInt32Type>(column, range),
                DataType::UInt64 => judge.integers::<UInt64Type>(column, range),
                DataType::Decimal128(..) => judge.integers::<Decimal128Type>(column, range),
                DataType::Date32 => judge.integers::<Date32Type>(column, range),
                DataType::Time64(_) => judge.integers::<Time64MicrosecondType>(column, range),
                DataType::Timestamp(..) => judge.integers::<TimestampMicrosecondType>(column, range),
                _ => Ok(Arc::clone(column)),
            }
        }
        (Bounds::Finite, DataType::Float32) => judge.each::<Float32Type>(column, finite, Some((f32::MIN, f32::MAX))),
        (Bounds::Finite, DataType::Float64) => judge.each::<Float64Type>(column, finite, Some((f64::MIN, f64::MAX))),
        (Bounds::Finite, _) => Ok(Arc::clone(column)),
    };
    Ok(judged?)
}

fn finite<F: Into<f64> + Copy>(value: F) -> Option<Unholdable> {
    match value.into() {
        value if value.is_nan() => Some(Unholdable::NotANumber),
        f64::INFINITY => Some(Unholdable::Above),
        f64::NEG_INFINITY => Some(Unholdable::Below),
        _ => None,
    }
}

/// Whose values are judged, and by what.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) name: &'a str,
    /// What is to hold them.
    pub(crate) kind: &'a Type,
    pub(crate) policy: ValuePolicy,
}

impl Judge<'_> {
    /// The value, or what the policy puts in its place.
    pub(crate) fn settle<V>(&self, row: usize, value: Result<V, Unholdable>, ends: Option<(V, V)>) -> Result<Option<V>, Offence> {
        let settled = value.map(Some).or_else(|why| self.policy.settle(why, ends));
        settled.map_err(|why| Offence { row, column: self.name.into(), kind: self.kind.clone(), why })
    }

    fn integers<T>(&self, column: &ArrayRef, (lowest, highest): (i128, i128)) -> Result<ArrayRef, Offence>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128> + TryFrom<i128>,
    {
        let judge = |value: T::Native| match value.into() {
            value if value < lowest => Some(Unholdable::Below),
            value if value > highest => Some(Unholdable::Above),
            _ => None,
        };
        // Where the column itself cannot hold an end, no value lies beyond it, and what stands for it is never taken.
        let end = |end: i128, otherwise: i128| T::Native::try_from(end).or_else(|_| T::Native::try_from(otherwise)).ok();
        let ends = end(lowest, 0).zip(end(highest, 0));
        self.each::<T>(column, judge, ends)
    }

    fn each<T: ArrowPrimitiveType>(
        &self,
        column: &ArrayRef,
        judge: impl Fn(T::Native) -> Option<Unholdable>,
        ends: Option<(T::Native, T::Native)>,
    ) -> Result<ArrayRef, Offence> {
        let values = column.as_primitive::<T>();
        if values.iter().flatten().all(|value| judge(value).is_none()) {
            return Ok(Arc::clone(column));
        }
        let settled = values.iter().enumerate().map(|(row, value)| match value {
            None => Ok(None),
            Some(value) => self.settle(row, judge(value).map_or(Ok(value), Err), ends),
        });
        let replaced: PrimitiveArray<T> = settled.collect::<Result<Vec<_>, _>>()?.into_iter().collect();
        Ok(Arc::new(replaced.with_data_type(column.data_type().clone())))
    }
}
