//! A table's columns follow its source's (rule C7): what its data files hold before and after each change that the log told in
//! this life, and what a commit must change about the table so that it holds them.
//!
//! Files are written before the commit that changes the table, so field ids are given when the first rows of a new schema are
//! written: those after the last one that the table ever gave. The commit checks that nobody else gave them meanwhile. The
//! change of columns, the rows and the state are one swap of metadata, so a commit that happens twice, or not at all, changes
//! the columns once, or not at all.
//!
//! A column that came is added as optional; in older rows it is null, or what its source gave them. A type is widened where Iceberg
//! promotes it; older files stay as they are. A column of another name keeps its field, and with it the values of all rows. A column that
//! went stays, and is null from there on, until another one gets its name: of two columns that were called alike at different times the
//! table has the later one. Anything else is refused before its rows are read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use contract::{Error, Kind, SinkTable, allow_changes};
use iceberg::spec::{NestedField, Schema, SchemaRef, TableMetadata, Type as IcebergType};
use rows::{ColumnChange, TableSchema, Type};

use super::columns::{FieldIds, iceberg_type, promotes, same_type};
use super::initial::{initial_default, widened};
use super::layout::{Layout, Values, wanted_fields};

/// Can the table take rows of another schema from some place on?
pub(crate) fn follows(table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
    let of = |kind: &Type| iceberg_type(kind, &mut FieldIds::default()).ok();
    allow_changes(table, to, |change| match change {
        ColumnChange::Added(column) => {
            of(&column.kind).is_some_and(|kind| initial_default(column, &kind).is_ok())
                && table.metadata.iter().all(|(_, name)| *name != column.name)
        }
        ColumnChange::Renamed { to, .. } => table.metadata.iter().all(|(_, name)| name != to),
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
        let (schema, last_field) = continued(last, &table)?;
        let step = Arc::new(Step { source: Arc::clone(source), layout: Layout::of(&table, &Arc::new(schema))?, last_field });
        steps.push(Arc::clone(&step));
        Ok(step)
    }

    /// The schema that a commit of `step` must give the table; `None` if the table holds its rows already, under its names.
    pub(crate) fn change(&self, step: &Step, metadata: &TableMetadata) -> Result<Option<SchemaRef>, Error> {
        let now = metadata.current_schema();
        let is_of = |step: &Step| step.layout.fits(now) && step.layout.is_called_alike(now);
        if is_of(step) {
            return Ok(None);
        }
        // Rows are committed in the order of the log; a snapshot may have had a later schema's rows written before.
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.iter().any(|known| known.last_field == metadata.last_column_id() && is_of(known)) {
            return merged(now, &step.layout, &self.table).map(|schema| Some(Arc::new(schema)));
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

/// The columns of the last step, changed as little as the rows of `table` need, and the last field id given.
fn continued(last: &Step, table: &SinkTable) -> Result<(Schema, i32), Error> {
    let Step { source, layout, last_field } = last;
    let mut fields: Vec<NestedField> = layout.schema.as_struct().fields().iter().map(|field| field.as_ref().clone()).collect();
    let called = |name: &str| layout.schema.as_struct().fields().iter().position(|field| field.name == name);
    let mut ids = FieldIds::after(*last_field);
    let mut filled = HashSet::new();
    for want in wanted_fields(table)? {
        let column = match want.values {
            Values::Source(at) => table.schema.columns.get(at),
            Values::Tail(_) | Values::Null => None,
        };
        let before = match column {
            None => called(&want.field.name),
            Some(column) => match source.counterpart(column) {
                Some(at) => layout.values.iter().position(|values| *values == Values::Source(at)),
                // What the table has under its name is another column, if the source can tell.
                None if column.identity.is_some() => None,
                None => called(&want.field.name),
            },
        };
        match before {
            Some(at) => {
                let field = &mut fields[at];
                widen(field, &want.field.field_type);
                field.name = want.field.name;
                filled.insert(field.id);
            }
            None => {
                let id = ids.next();
                filled.insert(id);
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
    Ok((built(fields, &filled, &layout.schema, table)?, ids.last()))
}

/// The columns that the table has now, as this layout calls and fills them.
fn merged(now: &Schema, layout: &Layout, table: &SinkTable) -> Result<Schema, Error> {
    let mut fields: Vec<NestedField> = now.as_struct().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut filled = HashSet::new();
    for (ours, values) in layout.schema.as_struct().fields().iter().zip(&layout.values) {
        if *values != Values::Null {
            filled.insert(ours.id);
        }
        match fields.iter_mut().find(|field| field.id == ours.id) {
            None => fields.push(ours.as_ref().clone()),
            Some(field) if *values == Values::Null => widen(field, &ours.field_type),
            Some(field) => {
                widen(field, &ours.field_type);
                field.name.clone_from(&ours.name);
            }
        }
    }
    built(fields, &filled, now, table)
}

fn widen(field: &mut NestedField, to: &IcebergType) {
    if promotes(&field.field_type, to) {
        field.initial_default = field.initial_default.take().map(|initial| widened(initial, to));
        field.write_default = field.write_default.take().map(|value| widened(value, to));
        *field.field_type = to.clone();
    }
}

/// These fields without those whose name one has that is `filled`: of a column that went.
fn built(mut fields: Vec<NestedField>, filled: &HashSet<i32>, before: &Schema, table: &SinkTable) -> Result<Schema, Error> {
    let names: HashSet<String> =
        fields.iter().filter(|field| filled.contains(&field.id)).map(|field| field.name.clone()).collect();
    fields.retain(|field| filled.contains(&field.id) || !names.contains(&field.name));
    let built = Schema::builder()
        .with_fields(fields.into_iter().map(Into::into))
        .with_identifier_field_ids(before.identifier_field_ids())
        .build();
    built.map_err(|e| refused(table, e.message()))
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
        let columns = columns.iter().map(|(name, kind)| Column::new(*name, kind.parse().unwrap(), *name != "id"));
        let schema = TableSchema::new("shop.orders".into(), columns.collect(), vec![0]).unwrap();
        SinkTable {
            table: "shop.orders".into(),
            target: "orders".into(),
            schema: Arc::new(schema),
            mode: Mode::Upsert,
            metadata: vec![("__op".into(), "op".into())],
        }
    }

    fn step(table: &SinkTable, schema: Schema, last_field: i32) -> Step {
        Step { source: Arc::clone(&table.schema), layout: Layout::of(table, &Arc::new(schema)).unwrap(), last_field }
    }

    /// The same with columns that say which they are: name, type, number.
    fn numbered(columns: &[(&str, &str, u32)]) -> SinkTable {
        let mut table = table(&columns.iter().map(|(name, kind, _)| (*name, *kind)).collect::<Vec<_>>());
        for (column, (.., number)) in Arc::make_mut(&mut table.schema).columns.iter_mut().zip(columns) {
            column.identity = Some(*number);
        }
        table
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
        let (now, last) = continued(&step(&old, made, 9), &new).unwrap();
        assert_eq!(
            text(&now),
            ["1 id long", "2 note string", "3 total decimal(12, 2)", "4 op string", "10 tags list", "12 placed date"]
        );
        assert_eq!((last, now.identifier_field_ids().collect::<Vec<_>>()), (12, vec![1]));
        assert!(now.as_struct().fields()[4..].iter().all(|field| !field.required));
    }

    #[test]
    fn a_column_of_another_name_keeps_its_field_and_one_that_was_made_again_gets_another() {
        let old = numbered(&[("id", "int32", 1), ("a", "string", 2), ("b", "int32", 3), ("c", "string", 4)]);
        let made = Layout::new_schema(&old).unwrap();
        let then = |new: &[(&str, &str, u32)]| {
            let new = numbered(new);
            follows(&old, &new.schema).unwrap();
            text(&continued(&step(&old, made.clone(), 9), &new).unwrap().0)
        };
        let renamed = [("key", "int32", 1), ("b", "string", 2), ("a", "int64", 3), ("c", "string", 4)];
        assert_eq!(then(&renamed), ["1 key int", "2 b string", "3 a long", "4 c string", "5 op string"]);
        // One goes and stays in the table; one is made again; and one gets the name of one that went.
        assert_eq!(
            then(&[("id", "int32", 1), ("b", "int32", 3)]),
            ["1 id int", "2 a string", "3 b int", "4 c string", "5 op string"]
        );
        let again = [("id", "int32", 1), ("b", "int32", 3), ("c", "string", 4), ("a", "string", 5)];
        assert_eq!(then(&again), ["1 id int", "3 b int", "4 c string", "5 op string", "10 a string"]);
        let moved = [("id", "int32", 1), ("a", "int32", 3), ("c", "string", 4)];
        assert_eq!(then(&moved), ["1 id int", "3 a int", "4 c string", "5 op string"]);
        let taken = numbered(&[("id", "int32", 1), ("op", "string", 2)]);
        assert!(follows(&old, &taken.schema).unwrap_err().what.contains("'a' is called 'op' now"));
    }

    #[test]
    fn a_column_of_an_older_row_schema_that_is_committed_later_has_the_names_of_its_own_commit() {
        let old = numbered(&[("id", "int32", 1), ("a", "string", 2)]);
        let between = numbered(&[("id", "int32", 1), ("b", "string", 2), ("x", "int32", 3)]);
        let new = numbered(&[("id", "int32", 1), ("c", "string", 2), ("y", "int32", 4)]);
        let layouts =
            Layouts { table: old.clone(), steps: Mutex::new(vec![Arc::new(step(&old, Layout::new_schema(&old).unwrap(), 3))]) };
        // A snapshot brings the last one first.
        let (last, middle) = (layouts.of(&new.schema).unwrap(), layouts.of(&between.schema).unwrap());
        let of = |schema: &Schema, layout: &Layout| text(&merged(schema, layout, &old).unwrap());
        let first = Layout::new_schema(&old).unwrap();
        assert_eq!(of(&first, &last.layout), ["1 id int", "2 c string", "3 op string", "4 y int"]);
        let committed = merged(&first, &middle.layout, &old).unwrap();
        assert_eq!(text(&committed), ["1 id int", "2 b string", "3 op string", "4 y int", "5 x int"]);
        assert!(last.layout.fits(&committed) && !last.layout.is_called_alike(&committed));
        assert_eq!(of(&committed, &last.layout), ["1 id int", "2 c string", "3 op string", "4 y int", "5 x int"]);
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
        let opened = step(&old, Layout::new_schema(&old).unwrap(), 2);
        let layouts = Layouts { table: old.clone(), steps: Mutex::new(vec![Arc::new(opened)]) };
        let step = layouts.of(&new.schema).unwrap();
        assert_eq!(text(&step.layout.schema), ["1 id int", "2 op string", "3 note string"]);
        assert!(Arc::ptr_eq(&step, &layouts.of(&new.schema).unwrap()));
        assert_eq!(text(&layouts.of(&old.schema).unwrap().layout.schema), ["1 id int", "2 op string"]);
        assert!(layouts.of(&table(&[("id", "string")]).schema).is_err());
        assert_eq!(Type::String, new.schema.columns[1].kind);
    }
}
