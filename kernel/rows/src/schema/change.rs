//! How a table's columns differ before and after a change of its schema, in words that people and sinks can act on.

use std::fmt;

use super::{Column, TableSchema, Type};

/// One difference between two schemas of a table. Columns are the same if they have the same name: a renamed one is one that
/// went and one that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnChange {
    /// A column came.
    Added(Column),
    /// A column went. Rows from here on have no value for it.
    Gone {
        /// Its name.
        name: String,
    },
    /// A column has another type.
    Retyped {
        /// Its name.
        name: String,
        /// The type that it had.
        from: Type,
        /// The type that it has.
        to: Type,
    },
    /// A column may be null from here on, or may not any more.
    Nullability {
        /// Its name.
        name: String,
        /// May it be null?
        nullable: bool,
    },
    /// Other columns are the key, or in another order.
    Key {
        /// The columns that were.
        from: Vec<String>,
        /// The columns that are.
        to: Vec<String>,
    },
}

impl TableSchema {
    /// What is different in `to`, in the order of the columns. The order of columns itself is nothing.
    pub fn changes(&self, to: &TableSchema) -> Vec<ColumnChange> {
        let named = |schema: &TableSchema, name: &str| schema.columns.iter().find(|column| column.name == name).cloned();
        let mut changes = Vec::new();
        for old in &self.columns {
            let name = old.name.clone();
            match named(to, &name) {
                None => changes.push(ColumnChange::Gone { name }),
                Some(new) => {
                    if new.kind != old.kind {
                        changes.push(ColumnChange::Retyped { name: name.clone(), from: old.kind.clone(), to: new.kind });
                    }
                    if new.nullable != old.nullable {
                        changes.push(ColumnChange::Nullability { name, nullable: new.nullable });
                    }
                }
            }
        }
        let added = to.columns.iter().filter(|column| named(self, &column.name).is_none());
        changes.extend(added.cloned().map(ColumnChange::Added));
        let (old, new) = (key_names(self), key_names(to));
        if old != new {
            changes.push(ColumnChange::Key { from: old, to: new });
        }
        changes
    }
}

fn key_names(schema: &TableSchema) -> Vec<String> {
    schema.key.iter().filter_map(|index| schema.columns.get(*index)).map(|column| column.name.clone()).collect()
}

impl fmt::Display for ColumnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(column) => {
                let older = if column.initial.is_some() { ", with a value in older rows" } else { "" };
                write!(f, "'{}' {} is new{older}", column.name, column.kind)
            }
            Self::Gone { name } => write!(f, "'{name}' is gone"),
            Self::Retyped { name, from, to } => write!(f, "'{name}' was {from} and is {to}"),
            Self::Nullability { name, nullable: true } => write!(f, "'{name}' may be null"),
            Self::Nullability { name, nullable: false } => write!(f, "'{name}' may not be null any more"),
            Self::Key { from, to } => write!(f, "the key was ({}) and is ({})", from.join(", "), to.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[(&str, &str, bool)], key: &[usize]) -> TableSchema {
        let columns = columns.iter().map(|(name, kind, nullable)| Column {
            name: (*name).to_owned(),
            kind: kind.parse().unwrap(),
            nullable: *nullable,
            initial: None,
        });
        TableSchema::new("shop.orders".into(), columns.collect(), key.to_vec()).unwrap()
    }

    #[test]
    fn every_difference_is_told_and_the_order_of_columns_is_none() {
        let old = table(&[("id", "int32", false), ("note", "string", true), ("total", "decimal(10,2)", false)], &[0]);
        let same = table(&[("total", "decimal(10,2)", false), ("note", "string", true), ("id", "int32", false)], &[2]);
        assert_eq!(old.changes(&same), []);
        let new = table(
            &[("id", "int64", false), ("total", "decimal(12,2)", true), ("placed", "date", true), ("shop", "int8", false)],
            &[3, 0],
        );
        let told: Vec<String> = old.changes(&new).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "'id' was int32 and is int64",
                "'note' is gone",
                "'total' was decimal(10,2) and is decimal(12,2)",
                "'total' may be null",
                "'placed' date is new",
                "'shop' int8 is new",
                "the key was (id) and is (shop, id)",
            ]
        );
    }
}
