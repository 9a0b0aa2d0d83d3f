//! A table's columns follow its source's (rule C7): what its data files hold before and after each change that the log told in
//! this life, and what a commit must change about the table so that it holds them.
//!
//! Files are written before the commit that changes the table, so field ids are given when the first rows of a new schema are
//! written: those after the last one that the table ever gave. The commit checks that nobody else gave them meanwhile. The
//! change of columns, the rows and the state are one swap of metadata, so a commit that happens twice, or not at all, changes
//! the columns once, or not at all.
//!
//! A column that came is added as optional; in older rows it is null, or what its source gave them. A type is widened where Iceberg promotes it; older files
//! stay as they are. A column that went stays, and is null from there on. Anything else is refused before its rows are read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use contract::{Error, Kind, SinkTable, allow_changes};
use iceberg::spec::{NestedField, Schema, SchemaRef, TableMetadata};
use rows::{ColumnChange, TableSchema, Type};

use super::columns::{FieldIds, iceberg_type, promotes, same_type};
use super::initial::{initial_default, widened};
use super::layout::{Layout, wanted_fields};

/// Can the table take rows of another schema from some place on?
pub(crate) fn follows(table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
    let of = |kind: &Type| iceberg_type(kind, &mut FieldIds::default()).ok();
    allow_changes(table, to, |change| match change {
        ColumnChange::Added(column) => {
            of(&column.kind).is_some_and(|kind| initial_default(column, &kind).is_ok())
                && table.metadata.iter().all(|(_, name)| *name != column.name)
        }
        ColumnChange::Gone { .. } | ColumnChange::Nullability { .. } => true,
        ColumnChange::Retyped { from, to, .. } => {
            of(from).zip(of(to)).is_some_and(|(from, to)| same_type(&from, &to) || promotes(&from, &to))
        }
        ColumnChange::Key { .. } => false,
    })
}

/// What data files hold under one schema of the source.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) source: Arc<TableSchema>,
    pub(crate) layout: Layout,
    /// The highest field id that was given so far.
    last_field: i32,
}

/// The schemas of this life, in the order of the log.
#[derive(Debug)]
pub(crate) struct Layouts {
    table: SinkTable,
    steps: Mutex<Vec<Arc<Step>>>,
}

impl Layouts {
    /// Of a table as it was opened.
    pub(crate) fn new(table: &SinkTable, layout: Layout, metadata: &TableMetadata) -> Self {
        let opened = Step { source: Arc::clone(&table.schema), layout, last_field: metadata.last_column_id() };
        Self { table: table.clone(), steps: Mutex::new(vec![Arc::new(opened)]) }
    }

    /// What files hold under a schema. One that is new continues the last one.
    pub(crate) fn of(&self, source: &Arc<TableSchema>) -> Result<Arc<Step>, Error> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = steps.iter().rev().find(|step| step.source == *source) {
            return Ok(Arc::clone(known));
        }
        let Some(last) = steps.last() else { return Err(changed_meanwhile(&self.table.target)) };
        let table = SinkTable { schema: Arc::clone(source), ..self.table.clone() };
        follows(&SinkTable { schema: Arc::clone(&last.source), ..table.clone() }, source)?;
        let (schema, last_field) = continued(&last.layout.schema, last.last_field, &table)?;
        let step = Arc::new(Step { source: Arc::clone(source), layout: Layout::of(&table, &Arc::new(schema))?, last_field });
        steps.push(Arc::clone(&step));
        Ok(step)
    }

    /// The schema that a commit of `step` must give the table; `None` if the table holds its rows already.
    pub(crate) fn change(&self, step: &Step, metadata: &TableMetadata) -> Result<Option<SchemaRef>, Error> {
        let now = metadata.current_schema();
        if step.layout.fits(now) {
            return Ok(None);
        }
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = steps.iter().take_while(|earlier| earlier.source != step.source);
        let is_known = |earlier: &Arc<Step>| earlier.last_field == metadata.last_column_id() && earlier.layout.fits(now);
        if earlier.into_iter().any(is_known) {
            return Ok(Some(Arc::clone(&step.layout.schema)));
        }
        Err(changed_meanwhile(&self.table.target))
    }
}

fn changed_meanwhile(target: &str) -> Error {
    let what = format!("the columns of table '{target}' were changed by others while it was open");
    Error::new(Kind::Rejected, "iceberg-table-changed", what, "start anew: the table is then opened as it is")
}

/// The id that the metadata will give a schema: that of an equal one, or the next.
pub(crate) fn schema_id(metadata: &TableMetadata, schema: &Schema) -> i32 {
    let ids = |of: &Schema| of.identifier_field_ids().collect::<HashSet<_>>();
    let equal = metadata.schemas_iter().find(|known| known.as_struct() == schema.as_struct() && ids(known) == ids(schema));
    let next = metadata.schemas_iter().map(|known| known.schema_id()).max().unwrap_or(0) + 1;
    equal.map_or(next, |known| known.schema_id())
}

/// A table's columns, changed as little as the rows of `table` need, and the last field id given.
fn continued(schema: &Schema, last_field: i32, table: &SinkTable) -> Result<(Schema, i32), Error> {
    let mut fields: Vec<NestedField> = schema.as_struct().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut ids = FieldIds::after(last_field);
    for want in wanted_fields(table)? {
        match fields.iter_mut().find(|field| field.name == want.field.name) {
            Some(field) if promotes(&field.field_type, &want.field.field_type) => {
                field.initial_default = field.initial_default.take().map(|initial| widened(initial, &want.field.field_type));
                field.write_default = field.write_default.take().map(|value| widened(value, &want.field.field_type));
                field.field_type = want.field.field_type;
            }
            Some(_) => {}
            None => {
                let id = ids.next();
                let column = table.schema.columns.iter().find(|column| column.name == want.field.name);
                let kind = column.and_then(|column| iceberg_type(&column.kind, &mut ids).ok()).unwrap_or(*want.field.field_type);
                let initial = column.map_or(Ok(None), |column| initial_default(column, &kind));
                let field = NestedField::optional(id, &want.field.name, kind);
                fields.push(match initial.map_err(|_| refused(table, "what a new column has in older rows cannot be said"))? {
                    Some(initial) => field.with_initial_default(initial),
                    None => field,
                });
            }
        }
    }
    let built = Schema::builder()
        .with_fields(fields.into_iter().map(Into::into))
        .with_identifier_field_ids(schema.identifier_field_ids())
        .build();
    Ok((built.map_err(|e| refused(table, e.message()))?, ids.last()))
}

fn refused(table: &SinkTable, why: &str) -> Error {
    let what = format!("table '{}' cannot have the columns that '{}' has now: {why}", table.target, table.table);
    Error::new(Kind::Rejected, "iceberg-columns-refused", what, "copy the table anew into another target")
}

#[cfg(test)]
mod tests {
    use contract::Mode;
    use rows::Column;

    use super::*;

    fn table(columns: &[(&str, &str)]) -> SinkTable {
        let columns = columns.iter().map(|(name, kind)| Column {
            name: (*name).to_owned(),
            kind: kind.parse().unwrap(),
            nullable: *name != "id",
            initial: None,
        });
        let schema = TableSchema::new("shop.orders".into(), columns.collect(), vec![0]).unwrap();
        SinkTable {
            table: "shop.orders".into(),
            target: "orders".into(),
            schema: Arc::new(schema),
            mode: Mode::Upsert,
            metadata: vec![("__op".into(), "op".into())],
        }
    }

    fn text(schema: &Schema) -> Vec<String> {
        let told = |field: &NestedField| format!("{} {} {}", field.id, field.name, field.field_type);
        schema.as_struct().fields().iter().map(|field| told(field)).collect()
    }

    #[test]
    fn columns_are_added_behind_and_widened_in_place_and_none_goes() {
        let old = table(&[("id", "int32"), ("note", "string"), ("total", "decimal(10,2)")]);
        let new = table(&[("id", "int64"), ("total", "decimal(12,2)"), ("tags", "list(string)"), ("placed", "date")]);
        let made = Layout::new_schema(&old).unwrap();
        assert_eq!(text(&made), ["1 id int", "2 note string", "3 total decimal(10, 2)", "4 op string"]);
        follows(&old, &new.schema).unwrap();
        let (now, last) = continued(&made, 9, &new).unwrap();
        assert_eq!(
            text(&now),
            ["1 id long", "2 note string", "3 total decimal(12, 2)", "4 op string", "10 tags list", "12 placed date"]
        );
        assert_eq!((last, now.identifier_field_ids().collect::<Vec<_>>()), (12, vec![1]));
        assert!(now.as_struct().fields()[4..].iter().all(|field| !field.required));
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        let old = table(&[("id", "int32"), ("total", "decimal(10,2)"), ("at", "timestamp")]);
        let new = table(&[("id", "string"), ("total", "decimal(12,4)"), ("at", "timestamp"), ("op", "string"), ("note", "json")]);
        let error = follows(&old, &new.schema).unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Rejected, "columns-changed"));
        assert_eq!(
            error.what,
            "table shop.orders: its columns change in a way that its target cannot follow: \
             'id' was int32 and is string; 'total' was decimal(10,2) and is decimal(12,4); 'op' string is new"
        );
    }

    #[test]
    fn the_same_change_gives_the_same_step_and_an_older_one_is_still_known() {
        let old = table(&[("id", "int32")]);
        let new = table(&[("id", "int32"), ("note", "string")]);
        let made = Arc::new(Layout::new_schema(&old).unwrap());
        let opened = Step { source: Arc::clone(&old.schema), layout: Layout::of(&old, &made).unwrap(), last_field: 2 };
        let layouts = Layouts { table: old.clone(), steps: Mutex::new(vec![Arc::new(opened)]) };
        let step = layouts.of(&new.schema).unwrap();
        assert_eq!(text(&step.layout.schema), ["1 id int", "2 op string", "3 note string"]);
        assert!(Arc::ptr_eq(&step, &layouts.of(&new.schema).unwrap()));
        assert_eq!(text(&layouts.of(&old.schema).unwrap().layout.schema), ["1 id int", "2 op string"]);
        assert!(layouts.of(&table(&[("id", "string")]).schema).is_err());
        assert_eq!(Type::String, new.schema.columns[1].kind);
    }
}
