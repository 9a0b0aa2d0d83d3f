//! From JSON values into Arrow columns, one builder a column, without anything in between.
//!
//! A value lands exactly or not at all: nothing is rounded, cut or guessed, and numbers that a double cannot hold never pass
//! through one. What does not fit is a [`Misfit`], which says what was found and never which value it was.
//!
//! [`Reading`] is how a column's values are to be read, decided once for a column and a schema part. A builder that failed in
//! the middle of a row is taken back to where the row began by [`ColumnBuilder::truncate`].

mod decimal;
mod finish;
pub(crate) mod infer;
mod nested;
mod number;
mod reading;
mod scalar;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;

use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};
use rows::{Column, Type};

use crate::json::{Kind, Value};
pub(crate) use reading::{BinaryText, DecimalText, Options, Reading, canonical, column_holds, holds};

/// Why a value does not go into its column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Misfit {
    /// What was found instead, without the value: `a string that is no date`.
    pub(crate) found: Cow<'static, str>,
    /// Where inside the value: `[2].city`; empty for the value itself.
    pub(crate) path: String,
}

impl Misfit {
    pub(crate) fn new(found: impl Into<Cow<'static, str>>) -> Self {
        Self { found: found.into(), path: String::new() }
    }

    pub(crate) fn kind(kind: Kind) -> Self {
        Self::new(kind.to_string())
    }

    fn inside(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// One column that grows, row by row.
pub(crate) struct ColumnBuilder {
    store: Store,
    nulls: NullBufferBuilder,
}

/// The values; a null has one too, so that all rows are there.
enum Store {
    Bool(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
    UInt16(Vec<u16>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    /// Time, timestamp, timestamptz.
    Micros(Vec<i64>),
    /// Strings and binary: the end of each value in `bytes`, after a first 0.
    Bytes {
        ends: Vec<i32>,
        bytes: Vec<u8>,
    },
    Fixed {
        width: usize,
        bytes: Vec<u8>,
    },
    List {
        ends: Vec<i32>,
        element: Box<ColumnBuilder>,
    },
    Map {
        ends: Vec<i32>,
        keys: Box<ColumnBuilder>,
        values: Box<ColumnBuilder>,
    },
    Struct {
        columns: Vec<Column>,
        fields: Vec<ColumnBuilder>,
    },
}

impl ColumnBuilder {
    /// An empty column with room for some rows.
    pub(crate) fn new(kind: &Type, rows: usize) -> Self {
        Self { store: Store::new(kind, rows), nulls: NullBufferBuilder::new(rows) }
    }

    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Appends a value.
    pub(crate) fn push(&mut self, reading: &Reading, value: Value<'_>, nullable: bool) -> Result<(), Misfit> {
        match value.kind {
            Kind::Null if nullable => self.push_null(),
            Kind::Null => return Err(Misfit::kind(Kind::Null)),
            _ => {
                self.store.push(reading, value)?;
                self.nulls.append_non_null();
            }
        }
        Ok(())
    }

    /// Appends a null.
    pub(crate) fn push_null(&mut self) {
        self.store.push_nothing();
        self.nulls.append_null();
    }

    /// Takes the column back to its first `rows` rows, also after a `push` that failed.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.store.truncate(rows);
        self.nulls.truncate(rows);
    }
}

impl Store {
    fn new(kind: &Type, rows: usize) -> Self {
        let ends = || {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(0);
            ends
        };
        match kind {
            Type::Bool => Store::Bool(BooleanBufferBuilder::new(rows)),
            Type::Int8 => Store::Int8(Vec::with_capacity(rows)),
            Type::Int16 => Store::Int16(Vec::with_capacity(rows)),
            Type::Int32 => Store::Int32(Vec::with_capacity(rows)),
            Type::Int64 => Store::Int64(Vec::with_capacity(rows)),
            Type::UInt8 => Store::UInt8(Vec::with_capacity(rows)),
            Type::UInt16 => Store::UInt16(Vec::with_capacity(rows)),
            Type::UInt32 => Store::UInt32(Vec::with_capacity(rows)),
            Type::UInt64 => Store::UInt64(Vec::with_capacity(rows)),
            Type::Float32 => Store::Float32(Vec::with_capacity(rows)),
            Type::Float64 => Store::Float64(Vec::with_capacity(rows)),
            Type::Decimal { precision, scale } => {
                Store::Decimal { values: Vec::with_capacity(rows), precision: *precision, scale: *scale }
            }
            Type::Date => Store::Date(Vec::with_capacity(rows)),
            Type::Time | Type::Timestamp | Type::TimestampTz => Store::Micros(Vec::with_capacity(rows)),
            Type::String | Type::Json | Type::Enum | Type::Unknown(_) | Type::Binary => {
                Store::Bytes { ends: ends(), bytes: Vec::new() }
            }
            Type::FixedBinary(width) => Store::Fixed { width: *width as usize, bytes: Vec::new() },
            Type::Uuid => Store::Fixed { width: 16, bytes: Vec::with_capacity(16 * rows) },
            Type::List(element) => Store::List { ends: ends(), element: Box::new(ColumnBuilder::new(element, rows)) },
            Type::Map(key, value) => Store::Map {
                ends: ends(),
                keys: Box::new(ColumnBuilder::new(key, rows)),
                values: Box::new(ColumnBuilder::new(value, rows)),
            },
            Type::Struct(columns) => Store::Struct {
                columns: columns.clone(),
                fields: columns.iter().map(|column| ColumnBuilder::new(&column.kind, rows)).collect(),
            },
        }
    }

    /// The value of a null.
    fn push_nothing(&mut self) {
        match self {
            Store::Bool(values) => values.append(false),
            Store::Int8(values) => values.push(0),
            Store::Int16(values) => values.push(0),
            Store::Int32(values) | Store::Date(values) => values.push(0),
            Store::Int64(values) | Store::Micros(values) => values.push(0),
            Store::UInt8(values) => values.push(0),
            Store::UInt16(values) => values.push(0),
            Store::UInt32(values) => values.push(0),
            Store::UInt64(values) => values.push(0),
            Store::Float32(values) => values.push(0.0),
            Store::Float64(values) => values.push(0.0),
            Store::Decimal { values, .. } => values.push(0),
            Store::Bytes { ends, .. } | Store::List { ends, .. } | Store::Map { ends, .. } => {
                ends.push(ends.last().copied().unwrap_or_default());
            }
            Store::Fixed { width, bytes } => bytes.resize(bytes.len() + *width, 0),
            Store::Struct { fields, .. } => fields.iter_mut().for_each(ColumnBuilder::push_null),
        }
    }

    fn truncate(&mut self, rows: usize) {
        fn cut(ends: &mut Vec<i32>, rows: usize) -> usize {
            ends.truncate(rows + 1);
            ends.last().copied().unwrap_or_default() as usize
        }
        match self {
            Store::Bool(values) => values.truncate(rows),
            Store::Int8(values) => values.truncate(rows),
            Store::Int16(values) => values.truncate(rows),
            Store::Int32(values) | Store::Date(values) => values.truncate(rows),
            Store::Int64(values) | Store::Micros(values) => values.truncate(rows),
            Store::UInt8(values) => values.truncate(rows),
            Store::UInt16(values) => values.truncate(rows),
            Store::UInt32(values) => values.truncate(rows),
            Store::UInt64(values) => values.truncate(rows),
            Store::Float32(values) => values.truncate(rows),
            Store::Float64(values) => values.truncate(rows),
            Store::Decimal { values, .. } => values.truncate(rows),
            Store::Bytes { ends, bytes } => bytes.truncate(cut(ends, rows)),
            Store::Fixed { width, bytes } => bytes.truncate(*width * rows),
            Store::List { ends, element } => element.truncate(cut(ends, rows)),
            Store::Map { ends, keys, values } => {
                let entries = cut(ends, rows);
                keys.truncate(entries);
                values.truncate(entries);
            }
            Store::Struct { fields, .. } => fields.iter_mut().for_each(|field| field.truncate(rows)),
        }
    }
}
