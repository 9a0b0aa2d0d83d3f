//! What is stored with a table's state of its rows: the schema that they have at the source, and what the pipeline wanted of them
//! when the copy was made.
//!
//! A copy that was made of other rows or columns can't be gone on with: rows that were left out would never come, and rows that
//! are there would never go. So what is wanted now must be what was wanted then. Only what becomes of single values that do not fit
//! may be said anew: that is how a table goes on that halted in front of one.

use contract::{Error, Kind};
use kernel::id::TableName;
use rows::TableSchema;
use rows::shape::Wanted;
use serde::{Deserialize, Serialize};

/// The stored form. Without wishes it is the schema's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    #[serde(flatten)]
    pub(crate) schema: TableSchema,
    #[serde(default, rename = "shape", skip_serializing_if = "Wanted::is_everything")]
    pub(crate) wanted: Wanted,
}

impl Stored {
    /// Reads what a table's state holds.
    pub(crate) fn read(table: &TableName, text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|e| {
            let what = format!("table {table}: the schema that is stored with its state can't be read: {e}");
            Error::new(Kind::Config, "stored-schema", what, "run the urutau that wrote it, or a newer one")
        })
    }

    /// As a table's state holds it.
    pub(crate) fn write(schema: &TableSchema, wanted: &Wanted) -> Result<String, String> {
        let stored = Stored { schema: schema.clone(), wanted: wanted.of_copy() };
        serde_json::to_string(&stored).map_err(|e| format!("its schema can't be stored: {e}"))
    }

    /// Refuses to go on with a copy that something else was wanted of.
    pub(crate) fn check(&self, wanted: &Wanted) -> Result<(), Error> {
        let wanted = &wanted.of_copy();
        if self.wanted == *wanted {
            return Ok(());
        }
        let words = |wanted: &Wanted| match wanted.is_everything() {
            true => "everything as it is".to_owned(),
            false => serde_json::to_string(wanted).unwrap_or_default(),
        };
        let what = format!(
            "table {}: its copy was made with other rows, columns or types than the pipeline file wants now. It was made with {}; now \
             wanted is {}",
            self.schema.table,
            words(&self.wanted),
            words(wanted)
        );
        let remedy = "put its columnFilter, cast, onValue and filter back, or give the table another `target` and let it be read anew (of a \
             database: `snapshot: { mode: when-needed }`)";
        Err(Error::new(Kind::Config, "table-shape-changed", what, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> TableSchema {
        let text = r#"{"table":"shop.orders","columns":[{"name":"id","type":"int64","nullable":false}],"key":[0]}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn without_wishes_it_is_the_schema_and_with_them_both() {
        let text = Stored::write(&schema(), &Wanted::default()).unwrap();
        assert_eq!(text, serde_json::to_string(&schema()).unwrap());
        let wanted = Wanted { filter: Some("id > 5".into()), ..Wanted::default() };
        let text = Stored::write(&schema(), &wanted).unwrap();
        let stored = Stored::read(&"shop.orders".into(), &text).unwrap();
        assert_eq!(stored, Stored { schema: schema(), wanted });
        // What other parts know of the text is the schema.
        assert_eq!(serde_json::from_str::<TableSchema>(&text).unwrap(), schema());
    }

    #[test]
    fn a_copy_of_something_else_is_not_gone_on_with() {
        let made = Stored { schema: schema(), wanted: Wanted { filter: Some("id > 5".into()), ..Wanted::default() } };
        assert!(made.check(&made.wanted).is_ok());
        let error = made.check(&Wanted::default()).unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "table-shape-changed"));
        let text = error.to_string();
        assert!(text.contains(r#"It was made with {"filter":"id > 5"}; now wanted is everything as it is"#), "{text}");
    }
}
