//! How a table's columns differ before and after a change of its schema, in words that people and sinks can act on.

use std::fmt;

use super::{Column, TableSchema, Type};

/// One difference between two schemas of a table. Which columns are the same is told by [`TableSchema::counterpart`]: without identities
/// a renamed one is one that went and one that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnChange {
    /// A column came.
    Added(Column),
    /// A column went. Rows from here on have no value for it.
    Gone {
        /// Its name.
        name: String,
    },
    /// A column has another name.
    Renamed {
        /// The name that it had.
        from: String,
        /// The name that it has.
        to: String,
        /// Is it one of the key's?
        of_key: bool,
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
    /// Which column of this schema is `column` of the table's schema at another time: see [`TableSchema::find`].
    pub fn counterpart(&self, column: &Column) -> Option<usize> {
        self.find(&column.name, column.identity)
    }

    /// Which column of this schema is the one that is or was called `name`: the one of its identity, or, where one of the two has none,
    /// of its name.
    pub fn find(&self, name: &str, identity: Option<u32>) -> Option<usize> {
        let by_identity = self.columns.iter().position(|own| own.identity.is_some() && own.identity == identity);
        let is_named = |own: &Column| own.name == name && (own.identity.is_none() || identity.is_none());
        by_identity.or_else(|| self.columns.iter().position(is_named))
    }

    /// What is different in `to`, in the order of the columns. The order of columns itself is nothing. A column that went while another
    /// one got its name stands in front of that.
    pub fn changes(&self, to: &TableSchema) -> Vec<ColumnChange> {
        let mut changes = Vec::new();
        for (index, old) in self.columns.iter().enumerate() {
            let name = old.name.clone();
            let Some(new) = to.counterpart(old).map(|at| &to.columns[at]) else {
                changes.push(ColumnChange::Gone { name });
                continue;
            };
            if new.name != name {
                changes.push(ColumnChange::Renamed { from: name, to: new.name.clone(), of_key: self.is_key(index) });
            }
            let name = new.name.clone();
            if new.kind != old.kind {
                changes.push(ColumnChange::Retyped { name: name.clone(), from: old.kind.clone(), to: new.kind.clone() });
            }
            if new.nullable != old.nullable {
                changes.push(ColumnChange::Nullability { name, nullable: new.nullable });
            }
        }
        let added = to.columns.iter().filter(|column| self.counterpart(column).is_none());
        changes.extend(added.cloned().map(ColumnChange::Added));
        let key_stays = self.key.len() == to.key.len()
            && self.key.iter().zip(&to.key).all(|(old, new)| to.counterpart(&self.columns[*old]) == Some(*new));
        if !key_stays {
            changes.push(ColumnChange::Key { from: key_names(self), to: key_names(to) });
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
            Self::Renamed { from, to, of_key: false } => write!(f, "'{from}' is called '{to}' now"),
            Self::Renamed { from, to, of_key: true } => write!(f, "the key's '{from}' is called '{to}' now"),
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
        let columns = columns.iter().map(|(name, kind, nullable)| Column::new(*name, kind.parse().unwrap(), *nullable));
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

    /// A table whose columns say which they are: name, type, identity. The first is the key.
    fn numbered(columns: &[(&str, &str, u32)]) -> TableSchema {
        let mut schema =
            table(&columns.iter().map(|(name, kind, number)| (*name, *kind, *number != columns[0].2)).collect::<Vec<_>>(), &[0]);
        for (column, (.., identity)) in schema.columns.iter_mut().zip(columns) {
            column.identity = Some(*identity);
        }
        schema
    }

    fn told(old: &TableSchema, new: &TableSchema) -> Vec<String> {
        old.changes(new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_column_keeps_its_identity_under_another_name_and_another_one_of_its_name_is_not_it() {
        let old = numbered(&[("id", "int32", 1), ("a", "string", 2), ("b", "int32", 3)]);
        let renamed = numbered(&[("id", "int32", 1), ("z", "string", 2), ("b", "int64", 3)]);
        assert_eq!(told(&old, &renamed), ["'a' is called 'z' now", "'b' was int32 and is int64"]);
        let swapped = numbered(&[("id", "int32", 1), ("b", "string", 2), ("a", "int32", 3)]);
        assert_eq!(told(&old, &swapped), ["'a' is called 'b' now", "'b' is called 'a' now"]);
        let remade = numbered(&[("id", "int32", 1), ("b", "int32", 3), ("a", "string", 4)]);
        assert_eq!(told(&old, &remade), ["'a' is gone", "'a' string is new"]);
        let moved = numbered(&[("id", "int32", 1), ("old_a", "string", 2), ("b", "int32", 3), ("a", "int64", 4)]);
        assert_eq!(told(&old, &moved), ["'a' is called 'old_a' now", "'a' int64 is new"]);
    }

    #[test]
    fn a_key_column_of_another_name_is_the_key_and_another_one_of_its_name_is_not() {
        let old = numbered(&[("id", "int32", 1), ("a", "string", 2)]);
        assert_eq!(told(&old, &numbered(&[("key", "int32", 1), ("a", "string", 2)])), ["the key's 'id' is called 'key' now",]);
        let remade = numbered(&[("id", "int32", 3), ("a", "string", 2)]);
        assert_eq!(told(&old, &remade), ["'id' is gone", "'id' int32 is new", "the key was (id) and is (id)"]);
    }

    #[test]
    fn where_one_of_the_two_has_no_identity_names_tell_which_column_is_which() {
        let old = table(&[("id", "int32", false), ("a", "string", true)], &[0]);
        let new = numbered(&[("id", "int32", 1), ("a", "string", 2)]);
        assert_eq!((told(&old, &new), told(&new, &old)), (vec![], vec![]));
        assert_eq!(told(&old, &numbered(&[("id", "int32", 1), ("z", "string", 2)])), ["'a' is gone", "'z' string is new"]);
    }
}
