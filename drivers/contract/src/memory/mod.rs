//! A source and a sink in memory, correct and small: for tests of what stands above a driver, and to read before writing one.
//!
//! Both share what they hold by reference: a clone of a [`MemorySink`] is another process over the same place, a second
//! [`MemoryLog::source`] another connection to the same log. Nothing here ever fails by itself.

mod chunks;
mod sink;
mod source;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use rows::{TableSchema, Type};

pub use sink::{MemoryRow, MemorySink};
pub use source::{Change, MemoryLog, MemorySource};

use crate::{Error, Kind};

/// A value for [`row`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Of a column `int64`.
    Int(i64),
    /// Of a column `string`, `json` or `enum`.
    Text(&'a str),
}

/// One row of a table whose columns are `int64` or text, in the order of its columns.
pub fn row(schema: &TableSchema, values: &[Value<'_>]) -> Result<RecordBatch, Error> {
    let wrong = |what: String| Error::new(Kind::Fatal, "memory-row", format!("{}: {what}", schema.table), "mend the test");
    if values.len() != schema.columns.len() {
        return Err(wrong(format!("{} values for {} columns", values.len(), schema.columns.len())));
    }
    let column = |(column, value): (&rows::Column, &Value<'_>)| -> Result<ArrayRef, Error> {
        match (&column.kind, value) {
            (Type::Int64, Value::Int(number)) => Ok(Arc::new(Int64Array::from(vec![*number]))),
            (Type::Int64, Value::Null) => Ok(Arc::new(Int64Array::from(vec![None::<i64>]))),
            (Type::String | Type::Json | Type::Enum, Value::Text(text)) => Ok(Arc::new(StringArray::from(vec![*text]))),
            (Type::String | Type::Json | Type::Enum, Value::Null) => Ok(Arc::new(StringArray::from(vec![None::<&str>]))),
            _ => Err(wrong(format!("the column '{}' takes another kind of value", column.name))),
        }
    };
    let columns = schema.columns.iter().zip(values).map(column).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(Arc::new(schema.arrow()), columns).map_err(|error| wrong(error.to_string()))
}
