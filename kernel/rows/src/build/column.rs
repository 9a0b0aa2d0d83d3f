//! One column that grows.

use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder};

use crate::schema::{Column, Type};

/// One column that grows, value by value.
#[derive(Debug)]
pub struct ColumnBuilder {
    pub(super) values: Values,
    pub(super) nulls: NullBufferBuilder,
}

/// Where a column's values lie; a null has one too, so that all rows are there. `ends` begin with a 0 before the first value.
#[derive(Debug)]
pub enum Values {
    /// `bool`
    Bool(BooleanBufferBuilder),
    /// `int8`
    Int8(Vec<i8>),
    /// `int16`
    Int16(Vec<i16>),
    /// `int32`
    Int32(Vec<i32>),
    /// `int64`
    Int64(Vec<i64>),
    /// `uint8`
    UInt8(Vec<u8>),
    /// `uint16`
    UInt16(Vec<u16>),
    /// `uint32`
    UInt32(Vec<u32>),
    /// `uint64`
    UInt64(Vec<u64>),
    /// `float32`
    Float32(Vec<f32>),
    /// `float64`
    Float64(Vec<f64>),
    /// `decimal(precision,scale)`: units of the last place.
    Decimal {
        /// The units.
        values: Vec<i128>,
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// `date`: days since 1970.
    Date(Vec<i32>),
    /// `time`, `timestamp`, `timestamptz`: microseconds.
    Micros(Vec<i64>),
    /// `string`, `json`, `enum` and unknown types: UTF-8, which is checked when the column is finished.
    Text {
        /// Where each value ends.
        ends: Vec<i32>,
        /// One after the other.
        bytes: Vec<u8>,
    },
    /// `binary`
    Binary {
        /// Where each value ends.
        ends: Vec<i32>,
        /// One after the other.
        bytes: Vec<u8>,
    },
    /// `binary(n)`, and `uuid` with 16.
    Fixed {
        /// Bytes of each value.
        width: usize,
        /// One after the other.
        bytes: Vec<u8>,
    },
    /// `list(element)`
    List {
        /// Where the elements of each value end.
        ends: Vec<i32>,
        /// The elements of all values.
        element: Box<ColumnBuilder>,
    },
    /// `map(key,value)`
    Map {
        /// Where the entries of each value end.
        ends: Vec<i32>,
        /// The keys of all values.
        keys: Box<ColumnBuilder>,
        /// Their values.
        values: Box<ColumnBuilder>,
    },
    /// `struct(...)`
    Struct {
        /// What the fields are.
        columns: Vec<Column>,
        /// Their values.
        fields: Vec<ColumnBuilder>,
    },
}

impl ColumnBuilder {
    /// An empty column with room for some rows.
    pub fn new(kind: &Type, rows: usize) -> Self {
        Self { values: Values::new(kind, rows), nulls: NullBufferBuilder::new(rows) }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends what `write` puts at the end of the values. After an error a part of it may be there:
    /// [`ColumnBuilder::truncate`] takes it back.
    pub fn append<E>(&mut self, write: impl FnOnce(&mut Values) -> Result<(), E>) -> Result<(), E> {
        write(&mut self.values)?;
        self.nulls.append_non_null();
        Ok(())
    }

    /// Appends a null.
    pub fn append_null(&mut self) {
        self.values.append_nothing();
        self.nulls.append_null();
    }

    /// Takes the column back to its first `rows` rows, also after an `append` that failed.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.nulls.truncate(rows);
    }
}

impl Values {
    fn new(kind: &Type, rows: usize) -> Self {
        let ends = || {
            let mut ends = Vec::with_capacity(rows + 1);
            ends.push(0);
            ends
        };
        match kind {
            Type::Bool => Values::Bool(BooleanBufferBuilder::new(rows)),
            Type::Int8 => Values::Int8(Vec::with_capacity(rows)),
            Type::Int16 => Values::Int16(Vec::with_capacity(rows)),
            Type::Int32 => Values::Int32(Vec::with_capacity(rows)),
            Type::Int64 => Values::Int64(Vec::with_capacity(rows)),
            Type::UInt8 => Values::UInt8(Vec::with_capacity(rows)),
            Type::UInt16 => Values::UInt16(Vec::with_capacity(rows)),
            Type::UInt32 => Values::UInt32(Vec::with_capacity(rows)),
            Type::UInt64 => Values::UInt64(Vec::with_capacity(rows)),
            Type::Float32 => Values::Float32(Vec::with_capacity(rows)),
            Type::Float64 => Values::Float64(Vec::with_capacity(rows)),
            Type::Decimal { precision, scale } => {
                Values::Decimal { values: Vec::with_capacity(rows), precision: *precision, scale: *scale }
            }
            Type::Date => Values::Date(Vec::with_capacity(rows)),
            Type::Time | Type::Timestamp | Type::TimestampTz => Values::Micros(Vec::with_capacity(rows)),
            Type::String | Type::Json | Type::Enum | Type::Unknown(_) => Values::Text { ends: ends(), bytes: Vec::new() },
            Type::Binary => Values::Binary { ends: ends(), bytes: Vec::new() },
            Type::FixedBinary(width) => Values::Fixed { width: *width as usize, bytes: Vec::new() },
            Type::Uuid => Values::Fixed { width: 16, bytes: Vec::with_capacity(16 * rows) },
            Type::List(element) => Values::List { ends: ends(), element: Box::new(ColumnBuilder::new(element, rows)) },
            Type::Map(key, value) => Values::Map {
                ends: ends(),
                keys: Box::new(ColumnBuilder::new(key, rows)),
                values: Box::new(ColumnBuilder::new(value, rows)),
            },
            Type::Struct(columns) => Values::Struct {
                columns: columns.clone(),
                fields: columns.iter().map(|column| ColumnBuilder::new(&column.kind, rows)).collect(),
            },
        }
    }

    /// The value of a null.
    fn append_nothing(&mut self) {
        match self {
            Values::Bool(values) => values.append(false),
            Values::Int8(values) => values.push(0),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) => values.push(0),
            Values::Int64(values) | Values::Micros(values) => values.push(0),
            Values::UInt8(values) => values.push(0),
            Values::UInt16(values) => values.push(0),
            Values::UInt32(values) => values.push(0),
            Values::UInt64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text { ends, .. } | Values::Binary { ends, .. } | Values::List { ends, .. } | Values::Map { ends, .. } => {
                ends.push(ends.last().copied().unwrap_or_default());
            }
            Values::Fixed { width, bytes } => bytes.resize(bytes.len() + *width, 0),
            Values::Struct { fields, .. } => fields.iter_mut().for_each(ColumnBuilder::append_null),
        }
    }

    fn truncate(&mut self, rows: usize) {
        fn cut(ends: &mut Vec<i32>, rows: usize) -> usize {
            ends.truncate(rows + 1);
            ends.last().copied().unwrap_or_default() as usize
        }
        match self {
            Values::Bool(values) => values.truncate(rows),
            Values::Int8(values) => values.truncate(rows),
            Values::Int16(values) => values.truncate(rows),
            Values::Int32(values) | Values::Date(values) => values.truncate(rows),
            Values::Int64(values) | Values::Micros(values) => values.truncate(rows),
            Values::UInt8(values) => values.truncate(rows),
            Values::UInt16(values) => values.truncate(rows),
            Values::UInt32(values) => values.truncate(rows),
            Values::UInt64(values) => values.truncate(rows),
            Values::Float32(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Decimal { values, .. } => values.truncate(rows),
            Values::Text { ends, bytes } | Values::Binary { ends, bytes } => bytes.truncate(cut(ends, rows)),
            Values::Fixed { width, bytes } => bytes.truncate(*width * rows),
            Values::List { ends, element } => element.truncate(cut(ends, rows)),
            Values::Map { ends, keys, values } => {
                let entries = cut(ends, rows);
                keys.truncate(entries);
                values.truncate(entries);
            }
            Values::Struct { fields, .. } => fields.iter_mut().for_each(|field| field.truncate(rows)),
        }
    }
}
