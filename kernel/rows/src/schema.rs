//! Tables, columns and their canonical types: what every source maps to and every sink maps from.

mod change;
mod check;
mod initial;
mod text;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use kernel::id::TableName;
use serde::{Deserialize, Serialize};

pub use change::ColumnChange;
pub use check::{SchemaError, SchemaProblem};
pub use text::ParseTypeError;

/// A column's canonical type. `Display` and `FromStr` are the text form of pipeline files: `decimal(12,2)`, `list(int64)`.
/// Stored schemas hold the same text.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Type {
    /// `bool`
    Bool,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `decimal(precision,scale)`, precision 1 to 38, scale 0 to precision.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// `string`
    String,
    /// `json`: text that is JSON.
    Json,
    /// `binary`
    Binary,
    /// `binary(n)`: always n bytes.
    FixedBinary(u32),
    /// `date`: days since 1970-01-01.
    Date,
    /// `time`: microseconds since midnight.
    Time,
    /// `timestamp`: microseconds, of a wall clock without a zone.
    Timestamp,
    /// `timestamptz`: microseconds since 1970-01-01T00:00:00Z.
    TimestampTz,
    /// `uuid`
    Uuid,
    /// `enum`: text, one of the source's labels.
    Enum,
    /// `list(element)`
    List(Box<Type>),
    /// `map(key,value)`
    Map(Box<Type>, Box<Type>),
    /// `struct(name type, ...)`; a field that may not be null is `name type not null`.
    Struct(Vec<Column>),
    /// `unknown(what the source calls it)`: needs an explicit cast before it can be written anywhere.
    Unknown(String),
}

/// One column.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name at the source.
    pub name: String,
    /// Its canonical type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// May it be null?
    pub nullable: bool,
    /// What rows have in it that were written before it came, as the text of its type; see [`Column::began_with`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// Which of its table's columns it is, where the source can say: a number that it keeps under another name and that no later column
    /// gets. See [`TableSchema::counterpart`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<u32>,
}

/// A table as a source describes it: what its change batches look like. Its serialised form is stored with the table's
/// state; reading one back checks it like [`TableSchema::new`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "check::StoredSchema")]
pub struct TableSchema {
    /// Its name at the source.
    pub table: TableName,
    /// All columns, in the order of the batches.
    pub columns: Vec<Column>,
    /// Which columns are the key, by index, in key order. Empty for a table without one.
    pub key: Vec<usize>,
}

impl Column {
    /// A column that was there from the beginning, as far as its source says.
    pub fn new(name: impl Into<String>, kind: Type, nullable: bool) -> Self {
        Self { name: name.into(), kind, nullable, initial: None, identity: None }
    }
}

impl Type {
    /// How the type lies in memory.
    pub fn arrow(&self) -> DataType {
        match self {
            Type::Bool => DataType::Boolean,
            Type::Int8 => DataType::Int8,
            Type::Int16 => DataType::Int16,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::UInt8 => DataType::UInt8,
            Type::UInt16 => DataType::UInt16,
            Type::UInt32 => DataType::UInt32,
            Type::UInt64 => DataType::UInt64,
            Type::Float32 => DataType::Float32,
            Type::Float64 => DataType::Float64,
            Type::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Type::String | Type::Json | Type::Enum | Type::Unknown(_) => DataType::Utf8,
            Type::Binary => DataType::Binary,
            Type::FixedBinary(bytes) => DataType::FixedSizeBinary(i32::try_from(*bytes).unwrap_or(i32::MAX)),
            Type::Date => DataType::Date32,
            Type::Time => DataType::Time64(TimeUnit::Microsecond),
            Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Type::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Type::Uuid => DataType::FixedSizeBinary(16),
            Type::List(element) => DataType::List(Arc::new(Field::new("element", element.arrow(), true))),
            Type::Map(key, value) => {
                let entries = Fields::from(vec![Field::new("key", key.arrow(), false), Field::new("value", value.arrow(), true)]);
                DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
            }
            Type::Struct(fields) => DataType::Struct(fields.iter().map(Column::arrow).collect()),
        }
    }
}

impl Column {
    /// The column as an Arrow field.
    pub fn arrow(&self) -> Field {
        Field::new(&self.name, self.kind.arrow(), self.nullable)
    }
}

impl TableSchema {
    /// The Arrow schema of a batch's data columns. Every column is nullable there: the image of a delete may be partial.
    pub fn arrow(&self) -> Schema {
        Schema::new(self.columns.iter().map(|c| Field::new(&c.name, c.kind.arrow(), true)).collect::<Fields>())
    }

    /// The index of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Is the column, by index, part of the key?
    pub fn is_key(&self, column: usize) -> bool {
        self.key.contains(&column)
    }
}
