//! What older rows have in a column that came later.
//!
//! `ALTER TABLE ... ADD COLUMN ... DEFAULT` gives every row that is there a value, and no log tells those rows. So the value belongs
//! to the column: a target that follows the change must give it to every row that it has had so far. Whether the column's type holds it
//! is only asked where somebody wants the column.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, cast::AsArray as _};

use super::{Column, Type};
use crate::cast::{CastError, cast, read_text};
use crate::value::ValuePolicy;

impl Column {
    /// The same column, whose older rows have this value: in the one text that its type has for it, or as it was said.
    pub fn began_with(self, text: &str) -> Self {
        let said = read_text(text, &self.name, &self.kind).and_then(|value| text_of(&value, &self.name, &self.kind));
        let initial = said.ok().flatten().unwrap_or_else(|| text.to_owned());
        Self { initial: Some(initial), ..self }
    }

    /// The value that older rows have, as a column of one row. `Err`: its type does not hold the value.
    pub fn initial_value(&self) -> Result<Option<ArrayRef>, CastError> {
        self.initial.as_deref().map(|text| read_text(text, &self.name, &self.kind)).transpose()
    }

    /// Its text in a column of the type `kind` that is made of this one.
    pub(crate) fn initial_as(&self, kind: &Type, policy: ValuePolicy) -> Result<Option<String>, CastError> {
        let Some(value) = self.initial_value()? else { return Ok(None) };
        text_of(&cast(&value, &self.name, &self.kind, kind, policy)?, &self.name, kind)
    }
}

fn text_of(value: &ArrayRef, name: &str, kind: &Type) -> Result<Option<String>, CastError> {
    let text = match kind {
        Type::String => Arc::clone(value),
        kind => cast(value, name, kind, &Type::String, ValuePolicy::Error)?,
    };
    let text = text.as_string_opt::<i32>().filter(|text| text.is_valid(0));
    Ok(text.map(|text| text.value(0).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: &str) -> Column {
        Column::new("x", kind.parse().unwrap(), true)
    }

    fn initial(kind: &str, text: &str) -> Option<String> {
        column(kind).began_with(text).initial
    }

    #[test]
    fn a_value_is_kept_in_the_text_of_its_type() {
        let kept = [
            ("bool", "true", "true"),
            ("int32", "-5", "-5"),
            ("decimal(10,2)", "12.5", "12.50"),
            ("float64", "0.1", "0.1"),
            ("string", "", ""),
            ("date", "2024-02-29", "2024-02-29"),
            ("timestamp", "2024-02-29 12:00:00.5", "2024-02-29T12:00:00.5"),
            ("timestamptz", "2024-02-29 12:00:00+00", "2024-02-29T12:00:00Z"),
            ("uuid", "550E8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
            ("json", r#"{"a": 1}"#, r#"{"a": 1}"#),
            ("enum", "new", "new"),
            ("binary", "00ff", "00ff"),
        ];
        for (kind, text, expected) in kept {
            assert_eq!(initial(kind, text).as_deref(), Some(expected), "{kind}");
            assert_eq!(initial(kind, expected).as_deref(), Some(expected), "{kind}");
        }
    }

    #[test]
    fn a_value_that_the_type_does_not_hold_is_kept_as_it_was_said_and_is_none_of_the_type() {
        for (kind, text) in [("int32", "many"), ("int8", "300"), ("date", "infinity"), ("list(int32)", "{1,2}")] {
            let column = column(kind).began_with(text);
            assert_eq!(column.initial.as_deref(), Some(text));
            assert!(column.initial_value().is_err(), "{kind} {text}");
            assert!(column.initial_as(&column.kind, ValuePolicy::Error).is_err(), "{kind} {text}");
        }
    }

    #[test]
    fn in_another_type_it_is_the_value_cast() {
        let number = column("int32").began_with("7");
        assert_eq!(number.initial_as(&Type::String, ValuePolicy::Error).unwrap().as_deref(), Some("7"));
        assert_eq!(number.initial_as(&Type::Int32, ValuePolicy::Error).unwrap().as_deref(), Some("7"));
        let text = column("string").began_with("seven");
        assert!(text.initial_as(&Type::Int32, ValuePolicy::Error).is_err());
        assert_eq!(text.initial_as(&Type::Int32, ValuePolicy::Null).unwrap(), None);
        assert_eq!(column("int32").initial_as(&Type::String, ValuePolicy::Error).unwrap(), None);
    }
}
