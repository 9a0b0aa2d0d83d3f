//! A relation of the log, bound to a table of the pipeline: which value goes into which column, and what an old row tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{Column, TableSchema, Type};

use super::refusal::Refusal;
use crate::pgoutput::{Identity, RelationMessage};
use crate::values::{PgType, Types, holds, natural};

/// A relation whose rows are read.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The schema of its rows.
    pub(crate) schema: Arc<TableSchema>,
    /// Where each of its values goes, in the order of the relation.
    pub(crate) places: Vec<Place>,
    /// Does an old row have the whole key?
    pub(crate) tells_key: bool,
}

/// Where a value goes.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The column of the schema.
    pub(crate) column: usize,
    /// What the server calls its type.
    pub(crate) kind: PgType,
    /// Does an old row have it?
    pub(crate) in_identity: bool,
}

/// What became of a relation.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) bound: Result<Bound, Refusal>,
    /// Are its columns others than the schema said?
    pub(crate) changed: bool,
}

/// Binds a relation to the table of this schema. Columns keep their type wherever it holds the relation's values; whatever else
/// differs makes a new schema. `declared` are the types that the pipeline file names.
pub(crate) fn bind(
    relation: &RelationMessage<'_>,
    schema: &Arc<TableSchema>,
    declared: &BTreeMap<String, Type>,
    types: &Types,
) -> Binding {
    let resolved: Vec<PgType> = relation.columns.iter().map(|column| types.resolve(column.type_id, column.modifier)).collect();
    let columns: Vec<Column> = relation
        .columns
        .iter()
        .zip(&resolved)
        .map(|(column, of)| {
            let before = schema.columns.iter().find(|known| known.name == column.name);
            let stays = before.map(|known| &known.kind).filter(|kind| holds(of, kind));
            let asked = declared.get(column.name).filter(|kind| holds(of, kind));
            let kind = stays.or(asked).cloned().unwrap_or_else(|| natural(of));
            Column { name: column.name.to_owned(), kind, nullable: before.is_none_or(|known| known.nullable) }
        })
        .collect();
    let same = columns.len() == schema.columns.len() && columns.iter().all(|column| schema.columns.contains(column));
    let schema = match same {
        true => Ok(schema.clone()),
        false => changed(schema, columns),
    };
    let bound = schema.map(|schema| {
        let place = |(column, kind): (&crate::pgoutput::RelationColumn<'_>, PgType)| {
            Some(Place { column: schema.index_of(column.name)?, kind, in_identity: column.in_identity })
        };
        let places: Vec<Place> = relation.columns.iter().zip(resolved).filter_map(place).collect();
        let is_full = relation.identity == Identity::Full;
        let has = |key: &usize| places.iter().any(|place| place.column == *key && place.in_identity);
        let tells_key = is_full || (relation.identity != Identity::Nothing && schema.key.iter().all(has));
        Bound { tells_key, places, schema }
    });
    Binding { bound, changed: !same }
}

/// The table with other columns, and the key that it had.
fn changed(before: &TableSchema, columns: Vec<Column>) -> Result<Arc<TableSchema>, Refusal> {
    let key: Result<Vec<usize>, Refusal> = before
        .key
        .iter()
        .map(|index| {
            let name = before.columns.get(*index).map(|column| column.name.as_str()).unwrap_or_default();
            let found = columns.iter().position(|column| column.name == name);
            found.ok_or_else(|| Refusal::Schema { why: format!("the key column '{name}' is gone") })
        })
        .collect();
    let schema = TableSchema::new(before.table.clone(), columns, key?);
    schema.map(Arc::new).map_err(|error| Refusal::Schema { why: error.to_string() })
}
