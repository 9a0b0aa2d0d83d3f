//! Changes that are not taken, in words: what is wrong, with which column, what to do. Never with a value.

use contract::{Error, Kind};
use kernel::id::TableName;
use rows::Type;

use crate::pgoutput::TypeId;
use crate::source::prepare;
use crate::values::Misfit;
use crate::wire::identifier;

/// Why a change is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// A value does not go into its column.
    Value { column: String, kind: Type, misfit: Misfit },
    /// A large value did not change, so that the server did not send it, and nothing will say what it is: the row has no key by which
    /// it could be read, or it is the key's.
    Unsent { column: String },
    /// A key column is null.
    NullKey { column: String },
    /// The old row's key is not known: what it is known by has too few columns.
    Identity,
    /// The row has another number of values than its relation has columns.
    Shape { columns: usize, values: usize },
    /// The table's columns make no table here.
    Schema { why: String },
    /// The table is called otherwise now.
    Renamed { name: String },
    /// Another table has its name.
    Replaced,
}

impl Refusal {
    /// May it be taken once types were looked up? Which one is missing.
    pub(crate) fn lacks_type(&self) -> Option<TypeId> {
        match self {
            Refusal::Value { misfit: Misfit::UnknownType(id), .. } => Some(*id),
            Refusal::Value { .. }
            | Refusal::Unsent { .. }
            | Refusal::NullKey { .. }
            | Refusal::Identity
            | Refusal::Shape { .. }
            | Refusal::Schema { .. }
            | Refusal::Renamed { .. }
            | Refusal::Replaced => None,
        }
    }

    /// How a row whose value does not go into its column is mended at the source, and whether another type of the column would hold it.
    pub(crate) fn mended(table: &TableName, column: &str, kind: &Type, misfit: Misfit) -> (String, Option<String>) {
        let mended = match misfit {
            // The server's own text of it has no more digits than it shows.
            Misfit::HiddenDigits => {
                let (table, column) = (prepare::table(table.as_str()), identifier(column));
                format!(
                    "mend the row at the source (UPDATE {table} SET {column} = {column}::text::numeric ...; or, where numbers are a part of \
                     it, ::text and its own type)"
                )
            }
            Misfit::Unholdable(_)
            | Misfit::Malformed
            | Misfit::Shape
            | Misfit::TextForm
            | Misfit::Unreadable
            | Misfit::UnknownType(_)
            | Misfit::Depth => "mend the row at the source".into(),
        };
        // What cannot be written as text is not read by a column of text either.
        let is_text_of_it = matches!(misfit, Misfit::Unholdable(_) | Misfit::Shape) && *kind != Type::String;
        let declared = is_text_of_it
            .then(|| format!("declare the column as `string` in a new copy ('tables[].columns': name {column}, type string)"));
        (mended, declared)
    }

    pub(crate) fn error(&self, table: &TableName) -> Error {
        let rejected = |code, what: String, remedy: String| Error::new(Kind::Rejected, code, what, remedy);
        let skip = format!("`urutau table skip {table}` passes over the row");
        let full = |more: &str| prepare::full_statement(table.as_str(), more);
        match self {
            Refusal::Value { column, kind, misfit } => rejected(
                "postgres-value",
                format!("table {table}: a value of column '{column}' cannot be held as {kind}: {misfit}"),
                match Self::mended(table, column, kind, *misfit) {
                    (_, Some(declared)) => format!("{declared}, or {skip}"),
                    (mended, None) => format!("{mended}; {skip}"),
                },
            ),
            Refusal::Unsent { column } => rejected(
                "postgres-unsent-value",
                format!(
                    "table {table}: a row was updated whose large value of column '{column}' did not change, so that the server did not send it"
                ),
                full(&format!("holds for changes made from then on; `urutau table skip {table}` passes over this one")),
            ),
            Refusal::NullKey { column } => rejected(
                "postgres-key",
                format!("table {table}: the key column '{column}' of a row is null"),
                "name key columns that are never null: 'tables[].primaryKey'".into(),
            ),
            Refusal::Identity => rejected(
                "postgres-identity",
                format!(
                    "table {table}: a row was changed or deleted, and its replica identity does not tell the key of the old row"
                ),
                full("holds for changes made from then on"),
            ),
            Refusal::Shape { columns, values } => rejected(
                "postgres-row",
                format!("table {table}: a row has {values} values, its relation {columns} columns"),
                "please report this".into(),
            ),
            Refusal::Schema { why } => rejected(
                "postgres-schema",
                format!("table {table}: its columns changed, and they can't be followed: {why}"),
                "copy the table anew into another target".into(),
            ),
            Refusal::Renamed { name } => rejected(
                "postgres-renamed",
                format!("table {table}: it is called {name} from here on"),
                "rename it back, or copy it anew under its new name".into(),
            ),
            Refusal::Replaced => rejected(
                "postgres-replaced",
                format!("table {table}: another table has its name from here on, or had it up to here"),
                "copy the table anew into another target".into(),
            ),
        }
    }
}
