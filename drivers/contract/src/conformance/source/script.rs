//! What the kit has a source's log say, and what must be read of it.

use kernel::id::TableName;
use rows::{Column, Operation, Type};

use crate::TableRequest;

/// The two tables whose changes a source's log holds: `id int64` (the key), `word string`.
pub const TABLES: [&str; 2] = ["kit.words", "kit.names"];

/// A change that a harness makes at its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// One of [`TABLES`].
    pub table: &'static str,
    /// What is done.
    pub what: What,
}

/// What a [`Step`] does. Rows are written out: a source that needs the old row's value finds it in the steps before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A row is made.
    Insert(i64, String),
    /// A row's word is changed.
    Update(i64, String),
    /// A row gets another key, from the first to the second, with this word.
    Rekey(i64, i64, String),
    /// A row is removed.
    Delete(i64),
}

/// A row that must be read: what happened, the key, and the word where the row is an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    pub(super) table: &'static str,
    pub(super) operation: Operation,
    pub(super) id: i64,
    pub(super) word: Option<String>,
}

/// How the kit asks for one of its tables.
pub fn request(table: &str) -> TableRequest {
    TableRequest {
        table: TableName::from(table),
        primary_key: Some(vec!["id".into()]),
        columns: [("id".to_string(), Type::Int64), ("word".to_string(), Type::String)].into(),
        before_is_full: false,
        keeps_every_row: false,
    }
}

/// The columns of the kit's tables.
pub fn columns() -> Vec<Column> {
    vec![Column::new("id", Type::Int64, false), Column::new("word", Type::String, true)]
}

fn step(table: &'static str, what: What) -> Step {
    Step { table, what }
}

/// Transactions with everything in them: both tables, several rows, a row changed again in its transaction, a changed key, a
/// key that goes and comes back.
pub(super) fn story() -> Vec<Vec<Step>> {
    use What::{Delete, Insert, Rekey, Update};
    let [words, names] = TABLES;
    vec![
        vec![step(words, Insert(1, "one".into())), step(words, Insert(2, "two".into())), step(words, Insert(3, "three".into()))],
        vec![step(names, Insert(1, "Ada".into())), step(words, Update(1, "uno".into())), step(names, Insert(2, "Bo".into()))],
        vec![step(words, Rekey(2, 20, "twenty".into())), step(words, Delete(3)), step(words, Insert(3, "drei".into()))],
        vec![step(names, Update(2, "Cy".into()))],
        vec![step(words, Update(1, "eins".into())), step(words, Update(1, "un".into())), step(words, Insert(4, "four".into()))],
        vec![
            step(names, Delete(1)),
            step(words, Delete(20)),
            step(names, Insert(3, "Di".into())),
            step(words, Update(4, "vier".into())),
        ],
    ]
}

/// `count` transactions of one row each, of the first table.
pub(super) fn many(first: i64, count: i64) -> Vec<Vec<Step>> {
    (first..first + count).map(|id| vec![step(TABLES[0], What::Insert(id, format!("word {id}")))]).collect()
}

/// The rows of these tables that the log's transactions hold, transaction by transaction; those without any are left out.
pub(super) fn expected(transactions: &[Vec<Step>], tables: &[&str]) -> Vec<Vec<Expected>> {
    let of = |steps: &Vec<Step>| steps.iter().filter(|step| tables.contains(&step.table)).flat_map(rows).collect::<Vec<_>>();
    transactions.iter().map(of).filter(|rows| !rows.is_empty()).collect()
}

fn rows(step: &Step) -> Vec<Expected> {
    let row = |operation, id: i64, word: Option<&String>| Expected { table: step.table, operation, id, word: word.cloned() };
    match &step.what {
        What::Insert(id, word) => vec![row(Operation::Insert, *id, Some(word))],
        What::Update(id, word) => vec![row(Operation::Update, *id, Some(word))],
        What::Rekey(old, new, word) => vec![row(Operation::Delete, *old, None), row(Operation::Insert, *new, Some(word))],
        What::Delete(id) => vec![row(Operation::Delete, *id, None)],
    }
}
