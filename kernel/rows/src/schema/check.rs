//! What makes a schema one that batches, keys and sinks can rely on.

use kernel::id::TableName;
use serde::Deserialize;

use super::{Column, TableSchema, Type};

/// How deep lists, maps and structs may be nested. A bound for recursion, far above what any table has.
pub(super) const DEPTH_MAX: usize = 32;

/// A schema that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("table {table}: {problem}")]
pub struct SchemaError {
    /// The table.
    pub table: TableName,
    /// What is wrong with it.
    pub problem: SchemaProblem,
}

/// What is wrong with a schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaProblem {
    /// A column without a name.
    #[error("column number {number} has no name")]
    NamelessColumn {
        /// Counted from 1.
        number: usize,
    },
    /// Two columns of one name.
    #[error("two columns are called '{column}'")]
    DuplicateColumn {
        /// The name.
        column: String,
    },
    /// A type that breaks its own bounds.
    #[error("column '{column}' has the type {kind}: {why}")]
    InvalidType {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
        /// The bound.
        why: String,
    },
    /// The key names a column that is not there.
    #[error("the key names column index {index}, but there are {columns} columns")]
    NoSuchKeyColumn {
        /// What the key names.
        index: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// The key names a column twice.
    #[error("the key names column '{column}' twice")]
    KeyColumnTwice {
        /// The column.
        column: String,
    },
    /// The key holds a type that has no exact equality.
    #[error(
        "column '{column}' cannot be part of the key, because values of type {kind} cannot be compared exactly; name other key columns or give it another type"
    )]
    NoKeyType {
        /// The column.
        column: String,
        /// Its type.
        kind: Type,
    },
}

impl TableSchema {
    /// A table with these columns and this key (indexes into `columns`, in key order), if it can be.
    pub fn new(table: TableName, columns: Vec<Column>, key: Vec<usize>) -> Result<Self, SchemaError> {
        match check_columns(&columns).and_then(|()| check_key(&columns, &key)) {
            Ok(()) => Ok(Self { table, columns, key }),
            Err(problem) => Err(SchemaError { table, problem }),
        }
    }
}

impl Type {
    /// Can values of this type be (part of) a key? Not where equality is inexact (float), ambiguous (json) or nested.
    pub fn can_be_key(&self) -> bool {
        match self {
            Type::Bool
            | Type::Int8
            | Type::Int16
            | Type::Int32
            | Type::Int64
            | Type::UInt8
            | Type::UInt16
            | Type::UInt32
            | Type::UInt64
            | Type::Decimal { .. }
            | Type::String
            | Type::Binary
            | Type::FixedBinary(_)
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::TimestampTz
            | Type::Uuid
            | Type::Enum => true,
            Type::Float32 | Type::Float64 | Type::Json | Type::List(_) | Type::Map(..) | Type::Struct(_) | Type::Unknown(_) => {
                false
            }
        }
    }

    /// Checks the type's own bounds: digits, lengths, names of fields, depth. Text that parses has passed it.
    pub fn check(&self) -> Result<(), String> {
        self.check_at(0)
    }

    fn check_at(&self, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("types may be nested at most {DEPTH_MAX} deep"));
        }
        match self {
            Type::Decimal { precision, .. } if !(1..=38).contains(precision) => {
                Err(format!("a decimal has 1 to 38 digits, not {precision}"))
            }
            Type::Decimal { precision, scale } if !(0..=i16::from(*precision)).contains(&i16::from(*scale)) => {
                Err(format!("of {precision} digits, 0 to {precision} can stand after the point, not {scale}"))
            }
            Type::FixedBinary(bytes) if *bytes == 0 || i32::try_from(*bytes).is_err() => {
                Err(format!("a fixed binary has 1 to {} bytes, not {bytes}", i32::MAX))
            }
            Type::Unknown(name) if name.is_empty() => Err("an unknown type needs the name that the source has for it".into()),
            Type::List(element) => element.check_at(depth + 1),
            Type::Map(key, value) => key.check_at(depth + 1).and_then(|()| value.check_at(depth + 1)),
            Type::Struct(fields) => check_fields(fields, depth + 1),
            _ => Ok(()),
        }
    }
}

fn check_fields(fields: &[Column], depth: usize) -> Result<(), String> {
    if fields.is_empty() {
        return Err("a struct has at least one field".into());
    }
    for (index, field) in fields.iter().enumerate() {
        if field.name.is_empty() {
            return Err("a field of a struct has no name".into());
        }
        if fields[..index].iter().any(|earlier| earlier.name == field.name) {
            return Err(format!("two fields of a struct are called '{}'", field.name));
        }
        field.kind.check_at(depth)?;
    }
    Ok(())
}

fn check_columns(columns: &[Column]) -> Result<(), SchemaProblem> {
    let mut seen = std::collections::BTreeSet::new();
    for (index, Column { name, kind, .. }) in columns.iter().enumerate() {
        if name.is_empty() {
            return Err(SchemaProblem::NamelessColumn { number: index + 1 });
        }
        if !seen.insert(name) {
            return Err(SchemaProblem::DuplicateColumn { column: name.clone() });
        }
        if let Err(why) = kind.check() {
            return Err(SchemaProblem::InvalidType { column: name.clone(), kind: kind.clone(), why });
        }
    }
    Ok(())
}

fn check_key(columns: &[Column], key: &[usize]) -> Result<(), SchemaProblem> {
    for (place, index) in key.iter().enumerate() {
        let Some(Column { name, kind, .. }) = columns.get(*index) else {
            return Err(SchemaProblem::NoSuchKeyColumn { index: *index, columns: columns.len() });
        };
        if key[..place].contains(index) {
            return Err(SchemaProblem::KeyColumnTwice { column: name.clone() });
        }
        if !kind.can_be_key() {
            return Err(SchemaProblem::NoKeyType { column: name.clone(), kind: kind.clone() });
        }
    }
    Ok(())
}

/// The serialised form, not yet checked.
#[derive(Deserialize)]
pub(super) struct StoredSchema {
    table: TableName,
    columns: Vec<Column>,
    key: Vec<usize>,
}

impl TryFrom<StoredSchema> for TableSchema {
    type Error = SchemaError;

    fn try_from(stored: StoredSchema) -> Result<Self, SchemaError> {
        Self::new(stored.table, stored.columns, stored.key)
    }
}
