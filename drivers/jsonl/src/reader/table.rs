//! A table that is read: its schema now, and how its events' values go into the columns of that schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kernel::id::TableName;
use rows::{Column, TableSchema, Type};

use crate::envelope::{Image, RowSchema};
use crate::json::Value;
use crate::values::{Options, Reading, canonical, column_holds};

/// What the pipeline file says of a table, beyond its schema.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Declared {
    /// Types that it gives to columns; they win over what events announce.
    pub(crate) columns: BTreeMap<String, Type>,
    /// Is all of `before` to be trusted, or its key columns only?
    pub(crate) before_is_full: bool,
}

/// A table that is read.
pub(super) struct Table {
    pub(super) schema: Arc<TableSchema>,
    pub(super) declared: Declared,
    /// One a column.
    pub(super) readings: Vec<Reading>,
    pub(super) is_key: Vec<bool>,
    places: HashMap<String, usize>,
    /// Which column the n-th member of an image was last time.
    hints: Vec<usize>,
    /// The schema part that `readings` were made for.
    announced: Option<u64>,
    /// The batch that takes its rows.
    pub(super) batch: Option<usize>,
}

impl Table {
    pub(super) fn new(schema: Arc<TableSchema>, declared: Declared, options: &Options) -> Self {
        let mut table = Self {
            schema,
            declared,
            readings: Vec::new(),
            is_key: Vec::new(),
            places: HashMap::new(),
            hints: Vec::new(),
            announced: None,
            batch: None,
        };
        table.plan(None, options);
        table
    }

    pub(super) fn name(&self) -> &TableName {
        &self.schema.table
    }

    /// The column that the n-th member of an image is.
    pub(super) fn column_of(&mut self, member: usize, name: &Value<'_>) -> Option<usize> {
        let columns = &self.schema.columns;
        if let Some(hint) = self.hints.get(member)
            && columns.get(*hint).is_some_and(|column| name.is_text(&column.name))
        {
            return Some(*hint);
        }
        let place = *self.places.get(&*name.text().ok()?)?;
        if self.hints.len() <= member {
            self.hints.resize(member + 1, place);
        }
        self.hints[member] = place;
        Some(place)
    }

    /// Takes on what an event's schema part says. Gives the table's new schema if its rows do not go into the present one, and
    /// an error in words if the part leaves out the key.
    pub(super) fn adopt(&mut self, part: Option<&Arc<RowSchema>>, options: &Options) -> Result<Option<Arc<TableSchema>>, String> {
        if part.map(|part| part.id) == self.announced {
            return Ok(None);
        }
        let Some(part) = part else {
            self.plan(None, options);
            return Ok(None);
        };
        let columns = merged(&self.schema, &announced_columns(part, &self.declared.columns))?;
        let changed = match columns != self.schema.columns {
            true => {
                let schema = TableSchema::new(self.name().clone(), columns, self.schema.key.clone());
                Some(Arc::new(schema.map_err(|e| format!("the event's schema part makes no table: {}", e.problem))?))
            }
            false => None,
        };
        if let Some(schema) = &changed {
            self.schema = schema.clone();
            self.batch = None;
        }
        self.plan(Some(part), options);
        Ok(changed)
    }

    fn plan(&mut self, part: Option<&Arc<RowSchema>>, options: &Options) {
        let columns = &self.schema.columns;
        let wire = |column: &Column| {
            part.and_then(|part| part.fields.iter().find(|field| field.name == column.name)).map(|field| &field.wire)
        };
        self.readings = columns.iter().map(|column| Reading::of(&column.kind, wire(column), options)).collect();
        self.is_key = (0..columns.len()).map(|column| self.schema.is_key(column)).collect();
        self.places = columns.iter().enumerate().map(|(place, column)| (column.name.clone(), place)).collect();
        self.hints.clear();
        self.announced = part.map(|part| part.id);
    }

    /// Does an image hold a value for each key column?
    pub(super) fn holds_key(&self, image: &Image<'_>) -> bool {
        self.schema.key.iter().all(|column| image.get(&self.schema.columns[*column].name).is_some())
    }
}

/// The columns that a schema part announces, with the types that the pipeline file gives them instead.
pub(crate) fn announced_columns(part: &RowSchema, declared: &BTreeMap<String, Type>) -> Vec<Column> {
    let column = |field: &crate::envelope::WireField| {
        Column::new(
            field.name.clone(),
            declared.get(&field.name).cloned().unwrap_or_else(|| canonical(&field.wire)),
            field.optional,
        )
    };
    part.fields.iter().map(column).collect()
}

/// The present columns, changed as little as rows with the announced ones need: columns are added, types and nullability
/// change where the present ones do not hold the announced ones. A column that vanished stays, as null.
fn merged(schema: &TableSchema, announced: &[Column]) -> Result<Vec<Column>, String> {
    let mut columns = schema.columns.clone();
    for (place, column) in columns.iter_mut().enumerate() {
        match announced.iter().find(|other| other.name == column.name) {
            None if schema.is_key(place) => {
                return Err(format!("the event's schema part has no column '{}', which the key needs", column.name));
            }
            None => column.nullable = true,
            Some(other) if schema.is_key(place) => {
                if !crate::values::holds(&column.kind, &other.kind) {
                    column.kind = other.kind.clone();
                }
            }
            Some(other) if !column_holds(column, other) => {
                if !crate::values::holds(&column.kind, &other.kind) {
                    column.kind = other.kind.clone();
                }
                column.nullable |= other.nullable;
            }
            Some(_) => {}
        }
    }
    let known: Vec<_> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    columns.extend(
        announced
            .iter()
            .filter(|other| !known.contains(&other.name.as_str()))
            .map(|other| Column { nullable: true, ..other.clone() }),
    );
    Ok(columns)
}
