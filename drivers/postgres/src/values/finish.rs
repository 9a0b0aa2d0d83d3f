//! From a builder to an Arrow array, without copying what it holds.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, PrimitiveArray, StringArray, new_null_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use rows::Type;

use super::ColumnBuilder;
use super::builder::Store;

impl ColumnBuilder {
    /// The column, of the type that it was made for. An error is a fault of ours.
    pub fn finish(mut self, kind: &Type) -> Result<ArrayRef, ArrowError> {
        let rows = self.len();
        let nulls = self.nulls.finish();
        Ok(match self.store {
            Store::Bool(values) => Arc::new(BooleanArray::new(values.build(), nulls)),
            Store::Int16(values) => primitive::<Int16Type>(values, nulls)?,
            Store::Int32(values) => primitive::<Int32Type>(values, nulls)?,
            Store::Int64(values) => primitive::<Int64Type>(values, nulls)?,
            Store::UInt32(values) => primitive::<UInt32Type>(values, nulls)?,
            Store::UInt64(values) => primitive::<UInt64Type>(values, nulls)?,
            Store::Float32(values) => primitive::<Float32Type>(values, nulls)?,
            Store::Float64(values) => primitive::<Float64Type>(values, nulls)?,
            Store::Date(values) => primitive::<Date32Type>(values, nulls)?,
            Store::Decimal { values, precision, scale } => {
                let array = PrimitiveArray::<Decimal128Type>::try_new(ScalarBuffer::from(values), nulls)?;
                Arc::new(array.with_precision_and_scale(precision, scale)?)
            }
            Store::Micros(values) => match kind.arrow() {
                DataType::Timestamp(_, zone) => {
                    let array = PrimitiveArray::<TimestampMicrosecondType>::try_new(ScalarBuffer::from(values), nulls)?;
                    Arc::new(array.with_timezone_opt(zone))
                }
                _ => primitive::<Time64MicrosecondType>(values, nulls)?,
            },
            Store::Text { ends, text } => {
                Arc::new(StringArray::try_new(offsets(ends), Buffer::from_vec(text.into_bytes()), nulls)?)
            }
            Store::Bytes { ends, bytes } => Arc::new(BinaryArray::try_new(offsets(ends), Buffer::from_vec(bytes), nulls)?),
            Store::Uuid(values) => Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(values.into_flattened()), nulls)?),
            Store::List { ends, elements } => match (kind, kind.arrow()) {
                (Type::List(of), DataType::List(field)) => {
                    Arc::new(ListArray::try_new(field, offsets(ends), elements.finish(of)?, nulls)?)
                }
                _ => return Err(ArrowError::SchemaError("a list was made for a column that is none".into())),
            },
            Store::Nothing => new_null_array(&kind.arrow(), rows),
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?))
}

fn offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    let mut all = Vec::with_capacity(ends.len() + 1);
    all.push(0);
    all.extend(ends);
    OffsetBuffer::new(ScalarBuffer::from(all))
}
