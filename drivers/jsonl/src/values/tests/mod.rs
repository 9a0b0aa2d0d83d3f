//! Every canonical type from every form that it is written in, and what is refused. Expectations are written out.

mod nested;
mod numbers;
mod text;
mod times;
mod types;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Time64MicrosecondType, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef};
use rows::Type;

use super::*;
use crate::envelope::Wire;
use crate::json::Cursor;

pub(super) fn options() -> Options {
    Options {
        decimals: DecimalText::Auto,
        binary: BinaryText::Base64,
        time_unit: None,
        unavailable: "__debezium_unavailable_value".to_owned(),
        unavailable_base64: "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==".to_owned(),
    }
}

pub(super) fn kind(text: &str) -> Type {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Values, as JSON, in a column; the first misfit otherwise.
pub(super) fn column(kind: &Type, wire: Option<&Wire>, options: &Options, values: &[&str]) -> Result<ArrayRef, String> {
    let reading = Reading::of(kind, wire, options);
    let mut builder = ColumnBuilder::new(kind, 0);
    for text in values {
        let value = Cursor::new(text).value().unwrap();
        builder.push(&reading, value, true).map_err(|misfit| format!("{}{}", misfit.path, misfit.found))?;
    }
    let array = builder.finish(kind).unwrap();
    assert_eq!((array.data_type(), array.len()), (&kind.arrow(), values.len()));
    Ok(array)
}

pub(super) fn plain(kind: &str, values: &[&str]) -> Result<ArrayRef, String> {
    column(&self::kind(kind), None, &options(), values)
}

pub(super) fn announced(kind: &str, wire: Wire, value: &str) -> Result<ArrayRef, String> {
    column(&self::kind(kind), Some(&wire), &options(), &[value])
}

pub(super) fn micros(array: ArrayRef) -> i64 {
    match array.data_type() {
        arrow_schema::DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().value(0),
        _ => array.as_primitive::<TimestampMicrosecondType>().value(0),
    }
}

pub(super) fn decimal(array: ArrayRef) -> String {
    array.as_primitive::<Decimal128Type>().value_as_string(0)
}

pub(super) fn text(array: ArrayRef) -> String {
    array.as_string::<i32>().value(0).to_owned()
}
