//! Judging all rows of a batch at once, in three values: true, false, and unknown where something is null.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::{Comparison, Condition};

/// For which rows it is true, and for which false.
struct Truth {
    yes: BooleanBuffer,
    no: BooleanBuffer,
}

impl Condition {
    /// Of so many rows, whose columns are given by index.
    pub(super) fn matching(&self, rows: usize, column: &dyn Fn(usize) -> ArrayRef) -> BooleanBuffer {
        self.judge(rows, column).yes
    }

    fn judge(&self, rows: usize, column: &dyn Fn(usize) -> ArrayRef) -> Truth {
        match self {
            Condition::Not(inner) => {
                let Truth { yes, no } = inner.judge(rows, column);
                Truth { yes: no, no: yes }
            }
            Condition::All(parts) => parts
                .iter()
                .map(|part| part.judge(rows, column))
                .fold(Truth::always(rows), |all, part| Truth { yes: &all.yes & &part.yes, no: &all.no | &part.no }),
            Condition::Any(parts) => parts
                .iter()
                .map(|part| part.judge(rows, column))
                .fold(Truth::never(rows), |any, part| Truth { yes: &any.yes | &part.yes, no: &any.no & &part.no }),
            Condition::IsNull(index) => {
                let valid = valid(&column(*index));
                Truth { yes: !&valid, no: valid }
            }
            Condition::Compare(index, comparison, literal) => {
                let values = column(*index);
                let valid = valid(&values);
                let holds = compare(&values, *comparison, literal);
                Truth { yes: &valid & &holds, no: &valid & &!&holds }
            }
        }
    }
}

impl Truth {
    fn always(rows: usize) -> Self {
        Self { yes: BooleanBuffer::new_set(rows), no: BooleanBuffer::new_unset(rows) }
    }

    fn never(rows: usize) -> Self {
        Self { yes: BooleanBuffer::new_unset(rows), no: BooleanBuffer::new_set(rows) }
    }
}

fn valid(values: &ArrayRef) -> BooleanBuffer {
    values.nulls().map_or_else(|| BooleanBuffer::new_set(values.len()), |nulls| nulls.inner().clone())
}

/// Where the comparison holds; what it says of null means nothing. Types without an order never come here.
fn compare(values: &ArrayRef, comparison: Comparison, literal: &ArrayRef) -> BooleanBuffer {
    match values.data_type() {
        DataType::Boolean => {
            let (values, literal) = (values.as_boolean(), literal.as_boolean().value(0));
            each(values.len(), comparison, |row| values.value(row), &literal)
        }
        DataType::Int8 => primitive::<Int8Type>(values, comparison, literal),
        DataType::Int16 => primitive::<Int16Type>(values, comparison, literal),
        DataType::Int32 => primitive::<Int32Type>(values, comparison, literal),
        DataType::Int64 => primitive::<Int64Type>(values, comparison, literal),
        DataType::UInt8 => primitive::<UInt8Type>(values, comparison, literal),
        DataType::UInt16 => primitive::<UInt16Type>(values, comparison, literal),
        DataType::UInt32 => primitive::<UInt32Type>(values, comparison, literal),
        DataType::UInt64 => primitive::<UInt64Type>(values, comparison, literal),
        DataType::Float32 => primitive::<Float32Type>(values, comparison, literal),
        DataType::Float64 => primitive::<Float64Type>(values, comparison, literal),
        DataType::Decimal128(..) => primitive::<Decimal128Type>(values, comparison, literal),
        DataType::Date32 => primitive::<Date32Type>(values, comparison, literal),
        DataType::Time64(TimeUnit::Microsecond) => primitive::<Time64MicrosecondType>(values, comparison, literal),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive::<TimestampMicrosecondType>(values, comparison, literal),
        DataType::Utf8 => {
            let (values, literal) = (values.as_string::<i32>(), literal.as_string::<i32>().value(0));
            each(values.len(), comparison, |row| values.value(row), &literal)
        }
        DataType::Binary => {
            let (values, literal) = (values.as_binary::<i32>(), literal.as_binary::<i32>().value(0));
            each(values.len(), comparison, |row| values.value(row), &literal)
        }
        DataType::FixedSizeBinary(_) => {
            let (values, literal) = (values.as_fixed_size_binary(), literal.as_fixed_size_binary().value(0));
            each(values.len(), comparison, |row| values.value(row), &literal)
        }
        _ => BooleanBuffer::new_unset(values.len()),
    }
}

fn primitive<T: ArrowPrimitiveType>(values: &ArrayRef, comparison: Comparison, literal: &ArrayRef) -> BooleanBuffer
where
    T::Native: PartialOrd,
{
    let (values, literal) = (values.as_primitive::<T>(), literal.as_primitive::<T>().value(0));
    each(values.len(), comparison, |row| values.value(row), &literal)
}

fn each<V: PartialOrd>(rows: usize, comparison: Comparison, value: impl Fn(usize) -> V, literal: &V) -> BooleanBuffer {
    match comparison {
        Comparison::Equal => BooleanBuffer::collect_bool(rows, |row| value(row) == *literal),
        Comparison::NotEqual => BooleanBuffer::collect_bool(rows, |row| value(row) != *literal),
        Comparison::Less => BooleanBuffer::collect_bool(rows, |row| value(row) < *literal),
        Comparison::AtMost => BooleanBuffer::collect_bool(rows, |row| value(row) <= *literal),
        Comparison::Greater => BooleanBuffer::collect_bool(rows, |row| value(row) > *literal),
        Comparison::AtLeast => BooleanBuffer::collect_bool(rows, |row| value(row) >= *literal),
    }
}
