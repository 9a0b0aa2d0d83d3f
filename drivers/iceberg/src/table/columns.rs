//! Canonical types as Iceberg types, and Iceberg types as Arrow arrays. One place, so that what is written and what is
//! read back cannot differ.
//!
//! Iceberg has fewer types than sources have. Where one is missing the next wider one stands for it, so that no value
//! changes: small and unsigned integers, `uint64` as `decimal(20,0)`, JSON and enum labels as text.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use iceberg::spec::{ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, StructType, Type as IcebergType};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use rows::{Column, Type};

/// Gives out field ids. A new table numbers its fields itself; within one request they only have to differ.
#[derive(Debug, Default)]
pub(crate) struct FieldIds(i32);

impl FieldIds {
    /// Ids above one that was given already.
    pub(crate) fn after(last: i32) -> Self {
        Self(last)
    }

    /// The last one that was given.
    pub(crate) fn last(&self) -> i32 {
        self.0
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> i32 {
        self.0 += 1;
        self.0
    }
}

/// The Iceberg type that holds every value of a canonical type; `Err` says what the source calls a type that has none.
pub(crate) fn iceberg_type(kind: &Type, ids: &mut FieldIds) -> Result<IcebergType, String> {
    let primitive = match kind {
        Type::Bool => PrimitiveType::Boolean,
        Type::Int8 | Type::Int16 | Type::Int32 | Type::UInt8 | Type::UInt16 => PrimitiveType::Int,
        Type::Int64 | Type::UInt32 => PrimitiveType::Long,
        Type::UInt64 => PrimitiveType::Decimal { precision: 20, scale: 0 },
        Type::Float32 => PrimitiveType::Float,
        Type::Float64 => PrimitiveType::Double,
        Type::Decimal { precision, scale } => {
            PrimitiveType::Decimal { precision: u32::from(*precision), scale: u32::try_from(*scale).unwrap_or(0) }
        }
        Type::String | Type::Json | Type::Enum => PrimitiveType::String,
        // Parquet has no values of fixed length 0.
        Type::Binary | Type::FixedBinary(0) => PrimitiveType::Binary,
        Type::FixedBinary(bytes) => PrimitiveType::Fixed(u64::from(*bytes)),
        Type::Date => PrimitiveType::Date,
        Type::Time => PrimitiveType::Time,
        Type::Timestamp => PrimitiveType::Timestamp,
        Type::TimestampTz => PrimitiveType::Timestamptz,
        Type::Uuid => PrimitiveType::Uuid,
        Type::List(element) => {
            let id = ids.next();
            let element = NestedField::list_element(id, iceberg_type(element, ids)?, false);
            return Ok(IcebergType::List(ListType::new(element.into())));
        }
        Type::Map(key, value) => {
            let (key_id, value_id) = (ids.next(), ids.next());
            let key = NestedField::map_key_element(key_id, iceberg_type(key, ids)?);
            let value = NestedField::map_value_element(value_id, iceberg_type(value, ids)?, false);
            return Ok(IcebergType::Map(MapType::new(key.into(), value.into())));
        }
        Type::Struct(columns) => {
            let fields = columns.iter().map(|column| nested(column, ids)).collect::<Result<Vec<_>, _>>()?;
            return Ok(IcebergType::Struct(StructType::new(fields)));
        }
        Type::Unknown(called) => return Err(called.clone()),
    };
    Ok(IcebergType::Primitive(primitive))
}

fn nested(column: &Column, ids: &mut FieldIds) -> Result<NestedFieldRef, String> {
    let id = ids.next();
    Ok(NestedField::new(id, &column.name, iceberg_type(&column.kind, ids)?, !column.nullable).into())
}

/// Are these the same type, whatever ids and requirements their nested fields have?
pub(crate) fn same_type(one: &IcebergType, other: &IcebergType) -> bool {
    match (one, other) {
        (IcebergType::List(one), IcebergType::List(other)) => {
            same_type(&one.element_field.field_type, &other.element_field.field_type)
        }
        (IcebergType::Map(one), IcebergType::Map(other)) => {
            same_type(&one.key_field.field_type, &other.key_field.field_type)
                && same_type(&one.value_field.field_type, &other.value_field.field_type)
        }
        (IcebergType::Struct(one), IcebergType::Struct(other)) => {
            one.fields().len() == other.fields().len()
                && one
                    .fields()
                    .iter()
                    .zip(other.fields())
                    .all(|(a, b)| a.name == b.name && same_type(&a.field_type, &b.field_type))
        }
        _ => one == other,
    }
}

/// Does Iceberg read a file's values of one type as another, wider one ('Schema Evolution')?
pub(crate) fn promotes(from: &IcebergType, to: &IcebergType) -> bool {
    match (from.as_primitive_type(), to.as_primitive_type()) {
        (Some(PrimitiveType::Int), Some(PrimitiveType::Long)) | (Some(PrimitiveType::Float), Some(PrimitiveType::Double)) => true,
        (
            Some(PrimitiveType::Decimal { precision: from, scale }),
            Some(PrimitiveType::Decimal { precision: to, scale: to_scale }),
        ) => from < to && scale == to_scale,
        _ => false,
    }
}

/// A field of a table as an Arrow field that carries its id. Every value may be null unless it is required.
pub(crate) fn arrow_field(field: &NestedField) -> FieldRef {
    let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), field.id.to_string())]);
    Arc::new(Field::new(&field.name, arrow_type(&field.field_type), !field.required).with_metadata(id))
}

pub(crate) fn arrow_type(kind: &IcebergType) -> DataType {
    match kind {
        IcebergType::Primitive(primitive) => primitive_arrow(primitive),
        IcebergType::List(list) => DataType::List(arrow_field(&list.element_field)),
        IcebergType::Struct(fields) => DataType::Struct(fields.fields().iter().map(|f| arrow_field(f)).collect()),
        IcebergType::Map(map) => {
            let entries = Fields::from(vec![arrow_field(&map.key_field), arrow_field(&map.value_field)]);
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
        }
    }
}

fn primitive_arrow(primitive: &PrimitiveType) -> DataType {
    let utc: Arc<str> = "+00:00".into();
    match primitive {
        PrimitiveType::Boolean => DataType::Boolean,
        PrimitiveType::Int => DataType::Int32,
        PrimitiveType::Long => DataType::Int64,
        PrimitiveType::Float => DataType::Float32,
        PrimitiveType::Double => DataType::Float64,
        // Iceberg's own bound is 38, which `ensure_table` has checked of our columns and the format promises of others.
        PrimitiveType::Decimal { precision, scale } => DataType::Decimal128(*precision as u8, *scale as i8),
        PrimitiveType::Date => DataType::Date32,
        PrimitiveType::Time => DataType::Time64(TimeUnit::Microsecond),
        PrimitiveType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(utc)),
        PrimitiveType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        PrimitiveType::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, Some(utc)),
        PrimitiveType::String => DataType::Utf8,
        PrimitiveType::Uuid => DataType::FixedSizeBinary(16),
        PrimitiveType::Fixed(bytes) => DataType::FixedSizeBinary(i32::try_from(*bytes).unwrap_or(i32::MAX)),
        PrimitiveType::Binary => DataType::Binary,
    }
}

/// Values that another type does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("values of type {from} do not all fit {to}")]
pub(crate) struct Unfit {
    /// The type that they have.
    from: DataType,
    /// The type that they should have.
    to: DataType,
}

/// The same values in another type: from a canonical one to the table's, or back. A value that does not fit is an error,
/// never a null, and stands in no error's text.
pub(crate) fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Unfit> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options).map_err(|_| Unfit { from: array.data_type().clone(), to: to.clone() })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Decimal128Array, Int8Array, Int32Array, UInt64Array};

    use super::*;

    fn text(kind: &Type) -> String {
        iceberg_type(kind, &mut FieldIds::default()).unwrap().to_string()
    }

    #[test]
    fn every_canonical_type_has_an_iceberg_type_but_the_unknown() {
        let expected = [
            (Type::Bool, "boolean"),
            (Type::Int8, "int"),
            (Type::Int16, "int"),
            (Type::Int32, "int"),
            (Type::Int64, "long"),
            (Type::UInt8, "int"),
            (Type::UInt16, "int"),
            (Type::UInt32, "long"),
            (Type::UInt64, "decimal(20, 0)"),
            (Type::Float32, "float"),
            (Type::Float64, "double"),
            (Type::Decimal { precision: 38, scale: 10 }, "decimal(38, 10)"),
            (Type::String, "string"),
            (Type::Json, "string"),
            (Type::Enum, "string"),
            (Type::Binary, "binary"),
            (Type::FixedBinary(4), "fixed(4)"),
            (Type::FixedBinary(0), "binary"),
            (Type::Date, "date"),
            (Type::Time, "time"),
            (Type::Timestamp, "timestamp"),
            (Type::TimestampTz, "timestamptz"),
            (Type::Uuid, "uuid"),
        ];
        for (kind, name) in expected {
            assert_eq!(text(&kind), name);
        }
        let unknown = iceberg_type(&Type::Unknown("geometry".into()), &mut FieldIds::default());
        assert_eq!(unknown, Err("geometry".to_owned()));
    }

    #[test]
    fn nested_fields_get_ids_of_their_own() {
        let pair = Type::Struct(vec![
            Column::new("a", Type::List(Box::new(Type::UInt64)), true),
            Column::new("b", Type::Map(Box::new(Type::Enum), Box::new(Type::Int8)), false),
        ]);
        let mapped = iceberg_type(&pair, &mut FieldIds::default()).unwrap();
        let IcebergType::Struct(fields) = &mapped else { panic!("{mapped}") };
        let [a, b] = fields.fields() else { panic!("{mapped}") };
        assert_eq!((a.id, a.required, b.id, b.required), (1, false, 3, true));
        let IcebergType::List(list) = a.field_type.as_ref() else { panic!("{mapped}") };
        assert_eq!((list.element_field.id, list.element_field.field_type.to_string()), (2, "decimal(20, 0)".to_owned()));
        let IcebergType::Map(map) = b.field_type.as_ref() else { panic!("{mapped}") };
        assert_eq!((map.key_field.id, map.value_field.id, map.value_field.required), (4, 5, false));
    }

    #[test]
    fn types_are_compared_without_ids_and_requirements() {
        let list = |element: Type, ids: &mut FieldIds| iceberg_type(&Type::List(Box::new(element)), ids).unwrap();
        let (mut one, mut other) = (FieldIds::default(), FieldIds(40));
        assert!(same_type(&list(Type::Int32, &mut one), &list(Type::Int16, &mut other)));
        assert!(!same_type(&list(Type::Int32, &mut one), &list(Type::Int64, &mut other)));
    }

    #[test]
    fn the_largest_unsigned_value_survives_there_and_back() {
        let values: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]));
        let there = cast(&values, &DataType::Decimal128(20, 0)).unwrap();
        let decimals = there.as_any().downcast_ref::<Decimal128Array>().unwrap();
        assert_eq!((decimals.value(0), decimals.is_null(1)), (18_446_744_073_709_551_615, true));
        assert_eq!(cast(&there, &DataType::UInt64).unwrap().to_data(), values.to_data());
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_and_no_null() {
        let wide: ArrayRef = Arc::new(Int32Array::from(vec![300]));
        let error = cast(&wide, &DataType::Int8).unwrap_err();
        assert_eq!(error.to_string(), "values of type Int32 do not all fit Int8");
        let narrow: ArrayRef = Arc::new(Int8Array::from(vec![-3]));
        assert_eq!(cast(&narrow, &DataType::Int32).unwrap().to_data(), Int32Array::from(vec![-3]).to_data());
    }
}
