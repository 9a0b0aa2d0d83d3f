//! A column whose cells can be written as JSON: its type is looked at once, not once a row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rows::Type;

use super::text::{self, put};

/// Why a cell, or a whole column, has no JSON. It names no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// The column, with the way into it: `address.zip`.
    pub(crate) column: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// A column of a batch.
pub(crate) struct Column<'a> {
    name: &'a str,
    array: &'a dyn Array,
    cells: Cells<'a>,
}

enum Cells<'a> {
    Bool(&'a BooleanArray),
    Int8(&'a Int8Array),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    UInt8(&'a UInt8Array),
    UInt16(&'a UInt16Array),
    UInt32(&'a UInt32Array),
    UInt64(&'a UInt64Array),
    Float32(&'a Float32Array),
    Float64(&'a Float64Array),
    Decimal(&'a Decimal128Array, i8),
    Text(&'a StringArray),
    Json(&'a StringArray),
    Binary(&'a BinaryArray),
    FixedBinary(&'a FixedSizeBinaryArray),
    Date(&'a Date32Array),
    Time(&'a Time64MicrosecondArray),
    Timestamp(&'a TimestampMicrosecondArray),
    TimestampTz(&'a TimestampMicrosecondArray),
    Uuid(&'a FixedSizeBinaryArray),
    List(&'a ListArray, Box<Column<'a>>),
    /// With names of text.
    Object(&'a MapArray, &'a StringArray, Box<Column<'a>>),
    Pairs(&'a MapArray, Box<Column<'a>>, Box<Column<'a>>),
    Struct(Vec<Column<'a>>),
}

impl<'a> Column<'a> {
    /// A column of a type. Refused where the type has no JSON, or where the values do not lie in memory as the type says.
    pub(crate) fn new(name: &'a str, kind: &'a Type, array: &'a ArrayRef) -> Result<Self, Refusal> {
        if let Type::Unknown(theirs) = kind {
            let why = format!("its type is unknown ({theirs}); give it a type under `columns` in the pipeline file");
            return Err(Refusal { column: name.to_owned(), why });
        }
        let cells = Cells::of(kind, array).map_err(|refusal| refusal.within(name))?;
        let cells = cells.ok_or_else(|| Refusal {
            column: name.to_owned(),
            why: format!("its type is {kind}, but its values come as {}", array.data_type()),
        })?;
        Ok(Self { name, array, cells })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Writes the cell of a row.
    pub(crate) fn write(&self, out: &mut Vec<u8>, row: usize) -> Result<(), Refusal> {
        if self.array.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        let refuse = |why: &str| Refusal { column: self.name.to_owned(), why: why.to_owned() };
        match &self.cells {
            Cells::Bool(cells) => out.extend_from_slice(if cells.value(row) { b"true" } else { b"false" }),
            Cells::Int8(cells) => integer(out, cells.value(row)),
            Cells::Int16(cells) => integer(out, cells.value(row)),
            Cells::Int32(cells) => integer(out, cells.value(row)),
            Cells::Int64(cells) => integer(out, cells.value(row)),
            Cells::UInt8(cells) => integer(out, cells.value(row)),
            Cells::UInt16(cells) => integer(out, cells.value(row)),
            Cells::UInt32(cells) => integer(out, cells.value(row)),
            Cells::UInt64(cells) => integer(out, cells.value(row)),
            Cells::Float32(cells) => text::float(out, cells.value(row).into(), serde_json::to_string(&cells.value(row))),
            Cells::Float64(cells) => text::float(out, cells.value(row), serde_json::to_string(&cells.value(row))),
            Cells::Decimal(cells, scale) => text::decimal(out, cells.value(row), *scale),
            Cells::Text(cells) => quoted(out, cells.value(row)),
            Cells::Json(cells) => text::json(out, cells.value(row)).map_err(refuse)?,
            Cells::Binary(cells) => base64(out, cells.value(row)),
            Cells::FixedBinary(cells) => base64(out, cells.value(row)),
            Cells::Date(cells) => in_quotes(out, |out| text::date(out, cells.value(row).into())),
            Cells::Time(cells) => {
                out.push(b'"');
                text::time(out, cells.value(row)).map_err(refuse)?;
                out.push(b'"');
            }
            Cells::Timestamp(cells) => in_quotes(out, |out| text::timestamp(out, cells.value(row))),
            Cells::TimestampTz(cells) => in_quotes(out, |out| {
                text::timestamp(out, cells.value(row));
                out.push(b'Z');
            }),
            Cells::Uuid(cells) => in_quotes(out, |out| text::uuid(out, cells.value(row))),
            Cells::List(list, elements) => {
                let range = extent(list.value_offsets(), row);
                listed(out, range, |out, row| elements.write(out, row)).map_err(|refusal| refusal.within(self.name))?;
            }
            Cells::Object(map, names, values) => self.object(out, extent(map.value_offsets(), row), names, values)?,
            Cells::Pairs(map, names, values) => {
                let range = extent(map.value_offsets(), row);
                let pair = |out: &mut Vec<u8>, row| {
                    out.extend_from_slice(b"{\"key\":");
                    names.write(out, row)?;
                    out.extend_from_slice(b",\"value\":");
                    values.write(out, row)?;
                    out.push(b'}');
                    Ok(())
                };
                listed(out, range, pair).map_err(|refusal: Refusal| refusal.within(self.name))?;
            }
            Cells::Struct(fields) => object(out, fields, row).map_err(|refusal| refusal.within(self.name))?,
        }
        Ok(())
    }

    fn object(
        &self,
        out: &mut Vec<u8>,
        range: std::ops::Range<usize>,
        names: &StringArray,
        values: &Column<'_>,
    ) -> Result<(), Refusal> {
        let mut seen = std::collections::BTreeSet::new();
        out.push(b'{');
        for row in range.clone() {
            if !seen.insert(names.value(row)) {
                let why = "a map in it holds one key twice".to_owned();
                return Err(Refusal { column: self.name.to_owned(), why });
            }
            if row > range.start {
                out.push(b',');
            }
            quoted(out, names.value(row));
            out.push(b':');
            values.write(out, row).map_err(|refusal| refusal.within(self.name))?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl<'a> Cells<'a> {
    /// The values of an array, if they lie in memory as the type says.
    fn of(kind: &'a Type, array: &'a ArrayRef) -> Result<Option<Self>, Refusal> {
        Ok(match kind {
            Type::Bool => array.as_boolean_opt().map(Cells::Bool),
            Type::Int8 => array.as_primitive_opt::<Int8Type>().map(Cells::Int8),
            Type::Int16 => array.as_primitive_opt::<Int16Type>().map(Cells::Int16),
            Type::Int32 => array.as_primitive_opt::<Int32Type>().map(Cells::Int32),
            Type::Int64 => array.as_primitive_opt::<Int64Type>().map(Cells::Int64),
            Type::UInt8 => array.as_primitive_opt::<UInt8Type>().map(Cells::UInt8),
            Type::UInt16 => array.as_primitive_opt::<UInt16Type>().map(Cells::UInt16),
            Type::UInt32 => array.as_primitive_opt::<UInt32Type>().map(Cells::UInt32),
            Type::UInt64 => array.as_primitive_opt::<UInt64Type>().map(Cells::UInt64),
            Type::Float32 => array.as_primitive_opt::<Float32Type>().map(Cells::Float32),
            Type::Float64 => array.as_primitive_opt::<Float64Type>().map(Cells::Float64),
            Type::Decimal { scale, .. } => {
                let cells = array.as_primitive_opt::<Decimal128Type>().filter(|cells| cells.scale() == *scale);
                cells.map(|cells| Cells::Decimal(cells, *scale))
            }
            Type::String | Type::Enum => array.as_string_opt::<i32>().map(Cells::Text),
            Type::Json => array.as_string_opt::<i32>().map(Cells::Json),
            Type::Binary => array.as_binary_opt::<i32>().map(Cells::Binary),
            Type::FixedBinary(_) => array.as_fixed_size_binary_opt().map(Cells::FixedBinary),
            Type::Date => array.as_primitive_opt::<Date32Type>().map(Cells::Date),
            Type::Time => array.as_primitive_opt::<Time64MicrosecondType>().map(Cells::Time),
            Type::Timestamp => array.as_primitive_opt::<TimestampMicrosecondType>().map(Cells::Timestamp),
            Type::TimestampTz => array.as_primitive_opt::<TimestampMicrosecondType>().map(Cells::TimestampTz),
            Type::Uuid => array.as_fixed_size_binary_opt().filter(|cells| cells.value_length() == 16).map(Cells::Uuid),
            Type::List(element) => match array.as_list_opt::<i32>() {
                Some(list) => Some(Cells::List(list, Box::new(Column::new("element", element, list.values())?))),
                None => None,
            },
            Type::Map(key, value) => match array.as_map_opt() {
                Some(map) => Some(Self::of_map(map, key, value)?),
                None => None,
            },
            Type::Struct(fields) => match array.as_struct_opt() {
                Some(columns) if columns.num_columns() == fields.len() => Some(Cells::Struct(columns_of(columns, fields)?)),
                _ => None,
            },
            Type::Unknown(_) => None,
        })
    }

    fn of_map(map: &'a MapArray, key: &'a Type, value: &'a Type) -> Result<Self, Refusal> {
        let values = Box::new(Column::new("value", value, map.values())?);
        Ok(match (key, map.keys().as_string_opt::<i32>()) {
            (Type::String | Type::Enum, Some(names)) => Cells::Object(map, names, values),
            _ => Cells::Pairs(map, Box::new(Column::new("key", key, map.keys())?), values),
        })
    }
}

fn columns_of<'a>(columns: &'a StructArray, fields: &'a [rows::Column]) -> Result<Vec<Column<'a>>, Refusal> {
    fields.iter().zip(columns.columns()).map(|(field, array)| Column::new(&field.name, &field.kind, array)).collect()
}

impl Refusal {
    /// The same, seen from the column that it is in.
    fn within(self, name: &str) -> Self {
        Self { column: format!("{name}.{}", self.column), why: self.why }
    }
}

/// Columns of one row as an object.
pub(crate) fn object(out: &mut Vec<u8>, columns: &[Column<'_>], row: usize) -> Result<(), Refusal> {
    out.push(b'{');
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        quoted(out, column.name);
        out.push(b':');
        column.write(out, row)?;
    }
    out.push(b'}');
    Ok(())
}

fn listed(
    out: &mut Vec<u8>,
    range: std::ops::Range<usize>,
    write: impl Fn(&mut Vec<u8>, usize) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    out.push(b'[');
    for row in range.clone() {
        if row > range.start {
            out.push(b',');
        }
        write(out, row)?;
    }
    out.push(b']');
    Ok(())
}

/// Which elements belong to a row. Offsets never fall, so they fit.
fn extent(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |row: usize| usize::try_from(offsets[row]).unwrap_or(0);
    at(row)..at(row + 1)
}

fn integer(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    use std::io::Write as _;
    put!(out, "{value}");
}

fn in_quotes(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    quoted(out, &STANDARD.encode(bytes));
}

/// A text in quotes, escaped as JSON wants it. Writing a text into memory does not fail.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(&mut *out, text);
}
