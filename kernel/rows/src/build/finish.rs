//! From a builder to an Arrow array, without copying what it holds.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};

use super::{ColumnBuilder, Values};
use crate::schema::Type;

impl ColumnBuilder {
    /// The column, of the type that it was made for. An error is a fault of ours.
    pub fn finish(self, kind: &Type) -> Result<ArrayRef, ArrowError> {
        let rows = self.len();
        let nulls = self.nulls.build();
        Ok(match self.values {
            Values::Bool(values) => Arc::new(BooleanArray::new(values.build(), nulls)),
            Values::Int8(values) => primitive::<Int8Type>(values, nulls)?,
            Values::Int16(values) => primitive::<Int16Type>(values, nulls)?,
            Values::Int32(values) => primitive::<Int32Type>(values, nulls)?,
            Values::Int64(values) => primitive::<Int64Type>(values, nulls)?,
            Values::UInt8(values) => primitive::<UInt8Type>(values, nulls)?,
            Values::UInt16(values) => primitive::<UInt16Type>(values, nulls)?,
            Values::UInt32(values) => primitive::<UInt32Type>(values, nulls)?,
            Values::UInt64(values) => primitive::<UInt64Type>(values, nulls)?,
            Values::Float32(values) => primitive::<Float32Type>(values, nulls)?,
            Values::Float64(values) => primitive::<Float64Type>(values, nulls)?,
            Values::Date(values) => primitive::<Date32Type>(values, nulls)?,
            Values::Decimal { values, precision, scale } => {
                let array = PrimitiveArray::<Decimal128Type>::try_new(ScalarBuffer::from(values), nulls)?;
                Arc::new(array.with_precision_and_scale(precision, scale)?)
            }
            Values::Micros(values) => match kind {
                Type::Time => primitive::<Time64MicrosecondType>(values, nulls)?,
                zoned => {
                    let array = PrimitiveArray::<TimestampMicrosecondType>::try_new(ScalarBuffer::from(values), nulls)?;
                    match zoned.arrow() {
                        DataType::Timestamp(_, zone) => Arc::new(array.with_timezone_opt(zone)),
                        _ => Arc::new(array),
                    }
                }
            },
            Values::Text { ends, bytes } => Arc::new(StringArray::try_new(offsets(ends), Buffer::from_vec(bytes), nulls)?),
            Values::Binary { ends, bytes } => Arc::new(BinaryArray::try_new(offsets(ends), Buffer::from_vec(bytes), nulls)?),
            Values::Fixed { width, bytes } => {
                let width = i32::try_from(width).unwrap_or(i32::MAX);
                Arc::new(FixedSizeBinaryArray::try_new(width, Buffer::from_vec(bytes), nulls)?)
            }
            Values::List { ends, element } => match (kind, kind.arrow()) {
                (Type::List(inner), DataType::List(field)) => {
                    Arc::new(ListArray::try_new(field, offsets(ends), element.finish(inner)?, nulls)?)
                }
                _ => return Err(mismatch(kind)),
            },
            Values::Map { ends, keys, values } => match (kind, kind.arrow()) {
                (Type::Map(key, value), DataType::Map(field, sorted)) => {
                    let DataType::Struct(fields) = field.data_type() else { return Err(mismatch(kind)) };
                    let columns = vec![keys.finish(key)?, values.finish(value)?];
                    let entries = StructArray::try_new(fields.clone(), columns, None)?;
                    Arc::new(MapArray::try_new(field, offsets(ends), entries, nulls, sorted)?)
                }
                _ => return Err(mismatch(kind)),
            },
            Values::Struct { columns, fields } => {
                let arrays: Result<Vec<_>, _> =
                    fields.into_iter().zip(&columns).map(|(field, column)| field.finish(&column.kind)).collect();
                match kind.arrow() {
                    DataType::Struct(fields) => Arc::new(StructArray::try_new_with_length(fields, arrays?, nulls, rows)?),
                    _ => return Err(mismatch(kind)),
                }
            }
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?))
}

/// Ends only grow, from a first 0: that makes them offsets.
fn offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(ends))
}

fn mismatch(kind: &Type) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("a column was built as another type than {kind}"))
}
