//! What older rows have in a column that came later: Iceberg's `initial-default`, which a reader gives to every row of a data file
//! that lacks the column ('Default values'). So the rows that a table has keep their files.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, new_null_array,
};
use arrow_schema::DataType;
use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Type as IcebergType};
use rows::Column;

use super::columns::{arrow_type, cast};

/// The value that a column's older rows have, for a field of this type. `Err`: the table's metadata can't say it.
pub(super) fn initial_default(column: &Column, kind: &IcebergType) -> Result<Option<Literal>, Unsayable> {
    if column.initial.is_none() {
        return Ok(None);
    }
    let value = column.initial_value().map_err(|_| Unsayable)?.ok_or(Unsayable)?;
    let value = cast(&value, &arrow_type(kind)).map_err(|_| Unsayable)?;
    let literal = literal(&value, kind.as_primitive_type().ok_or(Unsayable)?).ok_or(Unsayable)?;
    // Metadata is JSON: it has no number that is none, for one.
    let told = literal.clone().try_into_json(kind).map_err(|_| Unsayable)?;
    match Literal::try_from_json(told, kind) {
        Ok(Some(read)) if read == literal => Ok(Some(literal)),
        Ok(_) | Err(_) => Err(Unsayable),
    }
}

/// A value that no metadata can say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unsayable;

/// The years of four digits, which every reader's JSON has. In days since 1970.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
const DAY_MICROS: i64 = 86_400_000_000;

/// The first value of an array.
fn literal(value: &ArrayRef, kind: &PrimitiveType) -> Option<Literal> {
    let is_in_years = |micros: &i64| DAYS.contains(&micros.div_euclid(DAY_MICROS));
    let primitive = match kind {
        PrimitiveType::Boolean => PrimitiveLiteral::Boolean(value.as_boolean_opt()?.value(0)),
        PrimitiveType::Int => PrimitiveLiteral::Int(value.as_primitive_opt::<Int32Type>()?.value(0)),
        PrimitiveType::Long => PrimitiveLiteral::Long(value.as_primitive_opt::<Int64Type>()?.value(0)),
        PrimitiveType::Float => PrimitiveLiteral::Float(value.as_primitive_opt::<Float32Type>()?.value(0).into()),
        PrimitiveType::Double => PrimitiveLiteral::Double(value.as_primitive_opt::<Float64Type>()?.value(0).into()),
        PrimitiveType::Decimal { .. } => PrimitiveLiteral::Int128(value.as_primitive_opt::<Decimal128Type>()?.value(0)),
        PrimitiveType::Date => {
            let days = value.as_primitive_opt::<Date32Type>()?.value(0);
            PrimitiveLiteral::Int(Some(days).filter(|days| DAYS.contains(&i64::from(*days)))?)
        }
        PrimitiveType::Time => PrimitiveLiteral::Long(value.as_primitive_opt::<Time64MicrosecondType>()?.value(0)),
        PrimitiveType::Timestamp => {
            PrimitiveLiteral::Long(Some(value.as_primitive_opt::<TimestampMicrosecondType>()?.value(0)).filter(is_in_years)?)
        }
        // The library's text of a moment in the midst of a second before 1970 would be a panic.
        PrimitiveType::Timestamptz => {
            let micros = value.as_primitive_opt::<TimestampMicrosecondType>()?.value(0);
            let is_told = |micros: &i64| is_in_years(micros) && (*micros >= 0 || micros % 1_000_000 == 0);
            PrimitiveLiteral::Long(Some(micros).filter(is_told)?)
        }
        PrimitiveType::String => PrimitiveLiteral::String(value.as_string_opt::<i32>()?.value(0).to_owned()),
        PrimitiveType::Uuid => {
            PrimitiveLiteral::UInt128(u128::from_be_bytes(value.as_fixed_size_binary_opt()?.value(0).try_into().ok()?))
        }
        PrimitiveType::Fixed(_) => PrimitiveLiteral::Binary(value.as_fixed_size_binary_opt()?.value(0).to_vec()),
        PrimitiveType::Binary => PrimitiveLiteral::Binary(value.as_binary_opt::<i32>()?.value(0).to_vec()),
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => return None,
    };
    Some(Literal::Primitive(primitive))
}

/// The same value in a field whose type is widened.
pub(super) fn widened(initial: Literal, to: &IcebergType) -> Literal {
    match (initial, to.as_primitive_type()) {
        (Literal::Primitive(PrimitiveLiteral::Int(value)), Some(PrimitiveType::Long)) => Literal::long(value),
        (Literal::Primitive(PrimitiveLiteral::Float(value)), Some(PrimitiveType::Double)) => Literal::double(value.0),
        (same, _) => same,
    }
}

/// A field of rows whose data file lacks it. `None`: others gave it a value that is not read.
pub(crate) fn filled(initial: Option<&Literal>, kind: &DataType, rows: usize) -> Option<ArrayRef> {
    let primitive = match initial {
        None => return Some(new_null_array(kind, rows)),
        Some(Literal::Primitive(primitive)) => primitive,
        Some(Literal::Struct(_) | Literal::List(_) | Literal::Map(_)) => return None,
    };
    let fixed = |bytes: &[u8], size| {
        let values = repeat_n(Some(bytes), rows);
        Some(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, size).ok()?) as ArrayRef)
    };
    match (kind, primitive) {
        (DataType::Boolean, PrimitiveLiteral::Boolean(value)) => Some(Arc::new(BooleanArray::from(vec![*value; rows]))),
        (DataType::Int32, PrimitiveLiteral::Int(value)) => Some(Arc::new(Int32Array::from_value(*value, rows))),
        (DataType::Date32, PrimitiveLiteral::Int(value)) => Some(Arc::new(Date32Array::from_value(*value, rows))),
        (DataType::Int64, PrimitiveLiteral::Long(value)) => Some(Arc::new(Int64Array::from_value(*value, rows))),
        (DataType::Time64(_), PrimitiveLiteral::Long(value)) => Some(Arc::new(Time64MicrosecondArray::from_value(*value, rows))),
        (DataType::Timestamp(_, zone), PrimitiveLiteral::Long(value)) => {
            Some(Arc::new(TimestampMicrosecondArray::from_value(*value, rows).with_timezone_opt(zone.clone())))
        }
        (DataType::Float32, PrimitiveLiteral::Float(value)) => Some(Arc::new(Float32Array::from_value(value.0, rows))),
        (DataType::Float64, PrimitiveLiteral::Double(value)) => Some(Arc::new(Float64Array::from_value(value.0, rows))),
        (DataType::Decimal128(precision, scale), PrimitiveLiteral::Int128(value)) => {
            Some(Arc::new(Decimal128Array::from_value(*value, rows).with_precision_and_scale(*precision, *scale).ok()?))
        }
        (DataType::Utf8, PrimitiveLiteral::String(value)) => {
            Some(Arc::new(StringArray::from_iter_values(repeat_n(value.as_str(), rows))))
        }
        (DataType::Binary, PrimitiveLiteral::Binary(value)) => {
            Some(Arc::new(BinaryArray::from_iter_values(repeat_n(value.as_slice(), rows))))
        }
        (DataType::FixedSizeBinary(size), PrimitiveLiteral::Binary(value)) => fixed(value, *size),
        (DataType::FixedSizeBinary(size), PrimitiveLiteral::UInt128(value)) => fixed(&value.to_be_bytes(), *size),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;

    use super::*;
    use crate::table::columns::{FieldIds, iceberg_type};

    fn column(kind: &str) -> Column {
        Column::new("x", kind.parse().unwrap(), true)
    }

    fn field(column: &Column) -> IcebergType {
        iceberg_type(&column.kind, &mut FieldIds::default()).unwrap()
    }

    #[test]
    fn what_is_said_of_a_value_is_read_as_that_value() {
        let values = [
            ("bool", "true"),
            ("int8", "-5"),
            ("uint32", "4000000000"),
            ("uint64", "18446744073709551615"),
            ("int64", "9007199254740993"),
            ("float32", "0.1"),
            ("float64", "-0.1"),
            ("decimal(38,10)", "-1234567890123456789012345678.0123456789"),
            ("string", "ein \"Wort\"\n"),
            ("enum", "new"),
            ("json", "{}"),
            ("binary", "00ff"),
            ("binary(3)", "00ff10"),
            ("date", "0001-01-01"),
            ("time", "23:59:59.999999"),
            ("timestamp", "9999-12-31T23:59:59.999999"),
            ("timestamp", "1969-12-31T23:59:59.000001"),
            ("timestamptz", "1969-12-31T23:59:59Z"),
            ("timestamptz", "2024-02-29T12:00:00.000001Z"),
            ("uuid", "550e8400-e29b-41d4-a716-446655440000"),
        ];
        for (kind, text) in values {
            let column = column(kind).began_with(text);
            let field = field(&column);
            let literal = initial_default(&column, &field).unwrap().expect(kind);
            let expected = cast(&column.initial_value().unwrap().unwrap(), &arrow_type(&field)).unwrap();
            let three = filled(Some(&literal), &arrow_type(&field), 3).expect(kind);
            assert_eq!((three.len(), three.slice(1, 1).to_data()), (3, expected.to_data()), "{kind}");
            assert_eq!(filled(Some(&literal), &arrow_type(&field), 0).expect(kind).len(), 0);
        }
        assert_eq!(initial_default(&column("int32"), &field(&column("int32"))), Ok(None));
    }

    #[test]
    fn what_metadata_cannot_say_is_not_said_wrong() {
        let values = [
            ("float64", "NaN"),
            ("date", "+12024-01-01"),
            ("timestamp", "+12024-01-01T00:00:00"),
            ("timestamptz", "1969-12-31T23:59:59.000001Z"),
        ];
        for (kind, text) in values {
            let column = column(kind).began_with(text);
            assert_eq!(initial_default(&column, &field(&column)), Err(Unsayable), "{kind} {text}");
        }
    }
}
