//! Images of rows into a change batch that grows.

use rows::build::BatchBuilder;

use super::table::Table;
use crate::envelope::Image;
use crate::json::{Cursor, Kind, Value};
use crate::values::{Misfit, Options, PushJson, Reading};

/// What an image of a row says about the columns that it does not have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fill<'a> {
    /// It is the whole row: a column that it does not have did not exist when it was written, and is null. A value that was
    /// not sent is taken from the old row, if that is whole too.
    Whole {
        /// The whole old row.
        old: Option<Image<'a>>,
    },
    /// It is what is left of an old row: other columns are not known.
    Partial,
    /// As `Partial`, and only its key columns are to be trusted.
    KeyOnly,
}

/// Why a row is not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// A value does not go into its column.
    Value { column: String, expected: String, misfit: Misfit },
    /// A key column has no value.
    Key { column: String, found: &'static str },
    /// The row has a field that the table has not.
    UnknownField { name: String },
    /// The row names a field twice.
    Twice { column: String },
    /// The row is not there at all, or its schema part makes no sense.
    Row { what: String },
}

/// Appends the columns of a row; [`BatchBuilder::tell`] completes it. After a refusal [`BatchBuilder::take_back`] undoes it.
pub(super) fn push(
    batch: &mut BatchBuilder,
    table: &mut Table,
    image: Image<'_>,
    fill: Fill<'_>,
    options: &Options,
) -> Result<(), Refusal> {
    let key_only = matches!(fill, Fill::KeyOnly);
    for member in 0..image.len() {
        let Some((name, value)) = image.member(member) else { break };
        let Some(place) = table.column_of(member, &name) else {
            if key_only {
                continue;
            }
            return Err(Refusal::UnknownField { name: name.text().unwrap_or_default().into_owned() });
        };
        if key_only && !table.is_key[place] {
            continue;
        }
        if batch.is_filled(place) {
            return Err(Refusal::Twice { column: table.schema.columns[place].name.clone() });
        }
        push_value(batch, table, place, value, fill, options)?;
    }
    push_missing(batch, table, fill)
}

fn push_value(
    batch: &mut BatchBuilder,
    table: &Table,
    place: usize,
    value: Value<'_>,
    fill: Fill<'_>,
    options: &Options,
) -> Result<(), Refusal> {
    let column = &table.schema.columns[place];
    let reading = &table.readings[place];
    let mut value = value;
    if is_unavailable(value, reading, options) {
        let old = match fill {
            Fill::Whole { old: Some(old) } => old.get(&column.name).filter(|old| !is_unavailable(*old, reading, options)),
            _ => None,
        };
        match old {
            Some(old) => value = old,
            None if table.is_key[place] => {
                return Err(Refusal::Key { column: column.name.clone(), found: "a placeholder for a value that was not sent" });
            }
            None => {
                batch.append_absent(place);
                return Ok(());
            }
        }
    }
    if value.kind == Kind::Null && table.is_key[place] {
        return Err(Refusal::Key { column: column.name.clone(), found: "null" });
    }
    // Of an old row, a null may stand for what the connector did not know, whatever the column allows.
    let nullable = column.nullable || !matches!(fill, Fill::Whole { .. });
    batch.column(place).push(reading, value, nullable).map_err(|misfit| Refusal::Value {
        column: column.name.clone(),
        expected: column.kind.to_string(),
        misfit,
    })
}

fn push_missing(batch: &mut BatchBuilder, table: &Table, fill: Fill<'_>) -> Result<(), Refusal> {
    for (place, column) in table.schema.columns.iter().enumerate() {
        if batch.is_filled(place) {
            continue;
        }
        if table.is_key[place] {
            return Err(Refusal::Key { column: column.name.clone(), found: "nothing" });
        }
        match fill {
            Fill::Whole { .. } if !column.nullable => {
                let misfit = Misfit::new("nothing");
                return Err(Refusal::Value { column: column.name.clone(), expected: column.kind.to_string(), misfit });
            }
            Fill::Whole { .. } => batch.column(place).append_null(),
            Fill::Partial | Fill::KeyOnly => batch.append_absent(place),
        }
    }
    Ok(())
}

/// Did the connector not send this value? Its placeholder stands in a string, in an array of one, in a map of one; where
/// bytes are expected, in base64 too.
pub(crate) fn is_unavailable(value: Value<'_>, reading: &Reading, options: &Options) -> bool {
    let placeholder = options.unavailable.as_str();
    match value.kind {
        Kind::String => {
            value.is_text(placeholder)
                || matches!(reading, Reading::Bytes(_) | Reading::Decimal(_)) && value.is_text(&options.unavailable_base64)
        }
        Kind::Array | Kind::Object if value.raw.len() <= 2 * placeholder.len() + 16 => is_unavailable_inside(value, placeholder),
        _ => false,
    }
}

fn is_unavailable_inside(value: Value<'_>, placeholder: &str) -> bool {
    let mut cursor = Cursor::new(value.raw);
    let mut first = true;
    if cursor.enter(b'[') {
        let mut next = || cursor.element(&mut first).ok().filter(|there| *there).and_then(|_| cursor.value().ok());
        return next().is_some_and(|only| only.is_text(placeholder)) && next().is_none();
    }
    cursor.enter(b'{');
    let name = cursor.name(&mut first).ok().flatten();
    let item = cursor.value().ok();
    name.is_some_and(|name| name.is_text(placeholder))
        && item.is_some_and(|item| item.is_text(placeholder))
        && matches!(cursor.name(&mut first), Ok(None))
}
