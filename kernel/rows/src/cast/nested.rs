//! Casts of lists, maps and structs, part by part. A value refused inside names the row of the whole.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, FieldRef, Fields};

use super::{Cast, CastError, cast as cast_column};
use crate::schema::{Column, Type};
use crate::value::{Offence, ValuePolicy};

pub(super) fn cast(of: &Cast<'_>) -> Result<ArrayRef, CastError> {
    match (of.from, of.to, of.to.arrow()) {
        (Type::List(from), Type::List(to), DataType::List(field)) => list(of, from, to, field),
        (Type::Map(from_key, from), Type::Map(to_key, to), DataType::Map(field, _)) => {
            map(of, (from_key, from), (to_key, to), field)
        }
        (Type::Struct(from), Type::Struct(to), DataType::Struct(fields)) => structure(of, from, to, fields),
        _ => Err(CastError::Refused { column: of.judge.name.into(), from: of.from.clone(), to: of.to.clone() }),
    }
}

fn list(of: &Cast<'_>, from: &Type, to: &Type, field: FieldRef) -> Result<ArrayRef, CastError> {
    let list = of.column.as_list::<i32>();
    let (elements, offsets) = used(list.values(), list.offsets());
    let elements = part(of, &elements, from, to).map_err(|error| at_row(error, &offsets))?;
    let built = ListArray::try_new(field, offsets, elements, list.nulls().cloned()).map_err(|source| of.arrow(source))?;
    Ok(Arc::new(built))
}

fn map(of: &Cast<'_>, from: (&Type, &Type), to: (&Type, &Type), field: FieldRef) -> Result<ArrayRef, CastError> {
    let map = of.column.as_map();
    let DataType::Struct(fields) = field.data_type().clone() else {
        return Err(CastError::Form { column: of.judge.name.into(), kind: of.to.clone(), found: field.data_type().clone() });
    };
    let (keys, offsets) = used(map.keys(), map.offsets());
    let (values, _) = used(map.values(), map.offsets());
    let keys = part(of, &keys, from.0, to.0).map_err(|error| at_row(error, &offsets))?;
    let values = part(of, &values, from.1, to.1).map_err(|error| at_row(error, &offsets))?;
    let built = StructArray::try_new(fields, vec![keys, values], None)
        .and_then(|entries| MapArray::try_new(field, offsets, entries, map.nulls().cloned(), false));
    Ok(Arc::new(built.map_err(|source| of.arrow(source))?))
}

fn structure(of: &Cast<'_>, from: &[Column], to: &[Column], fields: Fields) -> Result<ArrayRef, CastError> {
    let whole = of.column.as_struct();
    let parts = from.iter().zip(to).zip(whole.columns());
    let columns = parts.map(|((from, to), column)| part(of, column, &from.kind, &to.kind)).collect::<Result<Vec<_>, _>>()?;
    let built = StructArray::try_new(fields, columns, whole.nulls().cloned()).map_err(|source| of.arrow(source))?;
    Ok(Arc::new(built))
}

/// The policy `string` was settled for the whole; inside it is an error like any other.
fn part(of: &Cast<'_>, column: &ArrayRef, from: &Type, to: &Type) -> Result<ArrayRef, CastError> {
    let policy = if of.judge.policy == ValuePolicy::String { ValuePolicy::Error } else { of.judge.policy };
    cast_column(column, of.judge.name, from, to, policy)
}

/// The elements that the rows of a sliced column refer to, with offsets from zero.
fn used(elements: &ArrayRef, offsets: &OffsetBuffer<i32>) -> (ArrayRef, OffsetBuffer<i32>) {
    let lengths = offsets.windows(2).map(|pair| usize::try_from(pair[1] - pair[0]).unwrap_or(0));
    let first = usize::try_from(offsets[0]).unwrap_or(0);
    let from_zero = OffsetBuffer::from_lengths(lengths);
    let count = usize::try_from(from_zero[from_zero.len() - 1]).unwrap_or(0);
    (elements.slice(first, count), from_zero)
}

fn at_row(error: CastError, offsets: &OffsetBuffer<i32>) -> CastError {
    match error {
        CastError::Value(Offence { row: element, column, kind, why }) => {
            let row = offsets.partition_point(|offset| usize::try_from(*offset).is_ok_and(|offset| offset <= element)) - 1;
            CastError::Value(Offence { row, column, kind, why })
        }
        other => other,
    }
}
