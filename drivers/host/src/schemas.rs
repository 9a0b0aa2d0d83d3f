//! What each table's rows look like where the log is read, what goes on of them, and which changes of that go on to the target.
//!
//! The kernel knows the schema of the rows behind each table's stand and says it when the reader begins anew; a source tells each
//! change that comes after (rule C7). A change that the pipeline or the sink does not follow is a refusal: the table halts in
//! front of it, with everything before it committed, and no row behind it reaches the sink, also if somebody says `skip`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::{Error, Kind, Sink, SinkTable};
use kernel::id::TableName;
use rows::filter::Filter;
use rows::shape::{Missing, Shape, ShapeRowsError};
use rows::{ChangeBatch, Column, TableSchema};

use crate::plan::TablePlan;
use crate::stored::Stored;

/// A table as source and sink agreed on it.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) plan: TablePlan,
    /// What its rows look like at the source.
    pub(crate) schema: Arc<TableSchema>,
    /// What goes on of them.
    pub(crate) shape: Arc<Shape>,
}

impl Agreed {
    pub(crate) fn new(plan: &TablePlan, schema: Arc<TableSchema>, missing: Missing) -> Result<Self, Error> {
        let shape = Arc::new(plan.shape(&schema, missing)?);
        Ok(Self { plan: plan.clone(), schema, shape })
    }

    /// What the target's rows look like behind a change that is stored as this text.
    pub(crate) fn changed(&self, text: &str) -> Result<Arc<TableSchema>, Error> {
        let schema = Arc::new(Stored::read(&self.schema.table, text)?.schema);
        Ok(Arc::clone(self.plan.shape(&schema, Missing::Gone)?.schema()))
    }

    /// The table at the target.
    pub(crate) fn at_target(&self) -> SinkTable {
        self.plan.at_target(Arc::clone(self.shape.schema()))
    }
}

/// The schemas of one life.
pub(crate) struct Schemas {
    sink: Arc<dyn Sink>,
    follow: bool,
    tables: Mutex<BTreeMap<TableName, Known>>,
}

struct Known {
    plan: TablePlan,
    /// Of the rows that the reader reads now.
    now: Arc<TableSchema>,
    /// Those whose rows may be written, and what goes on of them.
    followed: Vec<(Arc<TableSchema>, Arc<Shape>)>,
}

impl Schemas {
    pub(crate) fn new(sink: Arc<dyn Sink>, follow: bool) -> Self {
        Self { sink, follow, tables: Mutex::default() }
    }

    /// The tables as source and sink agreed on them: what a table is read under before the log's reader has begun. A life that goes
    /// on with a snapshot reads chunks and the log from the first moment on.
    pub(crate) fn agree(&self, agreed: &BTreeMap<TableName, Agreed>) {
        let mut tables = self.lock();
        for (name, table) in agreed {
            tables.entry(name.clone()).or_insert_with(|| Known::of(table));
        }
    }

    /// The reader begins anew: the schemas with which it begins, one a table.
    pub(crate) fn begin(
        &self,
        agreed: &BTreeMap<TableName, Agreed>,
        stands: &[(TableName, String)],
    ) -> Result<Vec<Arc<TableSchema>>, Error> {
        let mut tables = self.lock();
        for (name, table) in agreed {
            let stored = stands.iter().find(|(of, _)| of == name).map(|(_, text)| Stored::read(name, text)).transpose()?;
            let now = stored.map_or_else(|| Arc::clone(&table.schema), |stored| Arc::new(stored.schema));
            let known = tables.entry(name.clone()).or_insert_with(|| Known::of(table));
            if known.shape_of(&now).is_none() {
                let shape = known.plan.shape(&now, Missing::Gone)?;
                known.followed.push((Arc::clone(&now), Arc::new(shape)));
            }
            known.now = now;
        }
        Ok(tables.values().map(|known| Arc::clone(&known.now)).collect())
    }

    /// The log tells a change. Gives the schema as it is stored, or says why the table halts in front of it.
    pub(crate) fn changed(&self, schema: &Arc<TableSchema>) -> Result<String, String> {
        let mut tables = self.lock();
        let Some(known) = tables.get_mut(&schema.table) else { return Err(format!("table {} is not read", schema.table)) };
        let before = std::mem::replace(&mut known.now, Arc::clone(schema));
        self.follow(known, &before, schema)
    }

    /// A chunk of the table was read under this schema, which the log may not have told yet. Gives it as it is stored, or says why
    /// its rows can't be taken.
    pub(crate) fn brought(&self, schema: &Arc<TableSchema>) -> Result<String, String> {
        let mut tables = self.lock();
        let Some(known) = tables.get_mut(&schema.table) else { return Err(format!("table {} is not read", schema.table)) };
        if known.shape_of(schema).is_some() {
            return Stored::write(schema, &known.plan.wanted);
        }
        let before = Arc::clone(&known.now);
        self.follow(known, &before, schema)
    }

    /// Follows this change of a table's columns, if the pipeline does, and its sink.
    fn follow(&self, known: &mut Known, before: &Arc<TableSchema>, schema: &Arc<TableSchema>) -> Result<String, String> {
        let shape = |schema| known.plan.shape(schema, Missing::Gone).map_err(|error| error.to_string());
        let (from, to) = (shape(before)?, shape(schema)?);
        // What the target does not get may change as it likes.
        let changes: Vec<String> = from.schema().changes(to.schema()).iter().map(ToString::to_string).collect();
        if !self.follow && !changes.is_empty() {
            return Err(format!(
                "the table's columns change here, and sink.schemaEvolution is 'fail': {}. Set it to 'evolve' and resume the table, \
                 or copy it anew into another target",
                changes.join("; ")
            ));
        }
        if let Some(why) = parted(before, &from, &to) {
            let (what, remedy) = (format!("table {}: {why}", schema.table), "copy the table anew into another target");
            return Err(Error::new(Kind::Rejected, "columns-changed", what, remedy).to_string());
        }
        let target = known.plan.at_target(Arc::clone(from.schema()));
        self.sink.follows(&target, to.schema()).map_err(|error| error.to_string())?;
        if known.shape_of(schema).is_none() {
            known.followed.push((Arc::clone(schema), Arc::new(to)));
        }
        Stored::write(schema, &known.plan.wanted)
    }

    /// The schema of the table's rows where the log is read now.
    pub(crate) fn now(&self, table: &TableName) -> Option<Arc<TableSchema>> {
        self.lock().get(table).map(|known| Arc::clone(&known.now))
    }

    /// The schema of the table's rows before any change of it.
    pub(crate) fn first(&self, table: &TableName) -> Option<Arc<TableSchema>> {
        self.lock().get(table).and_then(|known| known.followed.first()).map(|(schema, _)| Arc::clone(schema))
    }

    /// Drops the columns that nobody needs. Rows behind a change that was refused stay as they are: they are not written.
    pub(crate) fn narrow(&self, batch: Arc<ChangeBatch>) -> Result<Arc<ChangeBatch>, ShapeRowsError> {
        let shape = self.lock().get(&batch.schema.table).and_then(|known| known.shape_of(&batch.schema));
        shape.map_or(Ok(Arc::clone(&batch)), |shape| shape.narrow(batch))
    }

    /// What goes on of rows that were narrowed to this schema. `None`: they may not be written, since they are behind a change that
    /// was refused.
    pub(crate) fn shape_of_narrowed(&self, schema: &TableSchema) -> Option<Arc<Shape>> {
        let tables = self.lock();
        let shapes = tables.get(&schema.table)?.followed.iter().map(|(_, shape)| shape);
        shapes.rev().find(|shape| **shape.narrow_schema() == *schema).cloned()
    }

    /// By what rows that were narrowed to this schema are judged.
    pub(crate) fn filter(&self, schema: &TableSchema) -> Option<Arc<Filter>> {
        self.shape_of_narrowed(schema)?.filter().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableName, Known>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a copy would lack of its older rows from here on, because a name that the pipeline file gives is another column's.
fn parted(before: &TableSchema, from: &Shape, to: &Shape) -> Option<String> {
    let is_old = |column: &&Column| from.schema().counterpart(column).is_none() && before.counterpart(column).is_some();
    if let Some(column) = to.schema().columns.iter().find(is_old) {
        let name = &column.name;
        return Some(format!("'{name}' is a column here that was left out so far, so that the copy has none of its values"));
    }
    let (was, is) = (from.filter()?, to.filter()?);
    let mut looked_at = is.columns().iter().map(|place| &is.schema().columns[*place]);
    let other = looked_at.find(|column| was.schema().counterpart(column) != was.schema().index_of(&column.name))?;
    Some(format!("'{}', by which its filter judges, is another column here: rows that it left out would have come", other.name))
}

impl Known {
    fn of(table: &Agreed) -> Self {
        let followed = vec![(Arc::clone(&table.schema), Arc::clone(&table.shape))];
        Self { plan: table.plan.clone(), now: Arc::clone(&table.schema), followed }
    }

    fn shape_of(&self, schema: &Arc<TableSchema>) -> Option<Arc<Shape>> {
        let is_it = |known: &Arc<TableSchema>| Arc::ptr_eq(known, schema) || known == schema;
        self.followed.iter().find(|(known, _)| is_it(known)).map(|(_, shape)| Arc::clone(shape))
    }
}

#[cfg(test)]
mod tests {
    use contract::memory::MemorySink;
    use contract::{Mode, TableRequest};
    use rows::shape::Wanted;

    use super::*;

    fn schema(columns: &[(&str, &str)]) -> Arc<TableSchema> {
        let columns = columns.iter().map(|(name, kind)| Column::new(*name, kind.parse().unwrap(), *name != "id"));
        Arc::new(TableSchema::new("shop.orders".into(), columns.collect(), vec![0]).unwrap())
    }

    fn agreed(schema: &Arc<TableSchema>) -> BTreeMap<TableName, Agreed> {
        agreed_as(schema, Wanted::default())
    }

    fn agreed_as(schema: &Arc<TableSchema>, wanted: Wanted) -> BTreeMap<TableName, Agreed> {
        let request = TableRequest {
            table: schema.table.clone(),
            primary_key: None,
            columns: BTreeMap::new(),
            before_is_full: false,
            keeps_every_row: false,
        };
        let plan = TablePlan { request, target: "orders".into(), mode: Mode::Upsert, metadata: Vec::new(), wanted };
        [(schema.table.clone(), Agreed::new(&plan, Arc::clone(schema), Missing::Refused).unwrap())].into()
    }

    fn is_followed(schemas: &Schemas, schema: &TableSchema) -> bool {
        schemas.shape_of_narrowed(schema).is_some()
    }

    #[test]
    fn a_chunk_may_come_before_the_reader_has_begun_and_bring_what_the_log_has_not_told() {
        let (old, new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("note", "string")]));
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        schemas.agree(&agreed(&old));
        assert_eq!(schemas.now(&old.table), Some(Arc::clone(&old)));
        let brought = schemas.brought(&new).unwrap();
        assert!(is_followed(&schemas, &new));
        // The log's reader is where it was, and tells the same change when it comes to it.
        assert_eq!(schemas.now(&old.table), Some(Arc::clone(&old)));
        assert_eq!(schemas.begin(&agreed(&old), &[]).unwrap(), [Arc::clone(&old)]);
        assert_eq!(schemas.changed(&new).unwrap(), brought);
        let other_key = Arc::new(TableSchema { key: vec![1], ..new.as_ref().clone() });
        assert!(schemas.brought(&other_key).unwrap_err().contains("the key was (id) and is (note)"));
        assert!(!is_followed(&schemas, &other_key));
    }

    #[test]
    fn a_change_that_is_followed_may_be_written_and_begins_the_next_reading() {
        let (old, new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("note", "string")]));
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        assert_eq!(schemas.begin(&agreed(&old), &[]).unwrap(), [Arc::clone(&old)]);
        assert!(is_followed(&schemas, &old) && !is_followed(&schemas, &new));
        let stored = schemas.changed(&new).unwrap();
        assert!(is_followed(&schemas, &old) && is_followed(&schemas, &new));
        // Where the table stands behind the change, and where it was set back to before it.
        assert_eq!(schemas.begin(&agreed(&old), &[(old.table.clone(), stored)]).unwrap(), [new]);
        assert_eq!(schemas.begin(&agreed(&old), &[]).unwrap(), [old]);
    }

    #[test]
    fn a_change_that_is_not_followed_says_what_changes_and_its_rows_are_not_written() {
        let (old, new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("note", "string")]));
        let fails = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), false);
        fails.begin(&agreed(&old), &[]).unwrap();
        let why = fails.changed(&new).unwrap_err();
        assert!(why.contains("sink.schemaEvolution is 'fail': 'note' string is new. "), "{why}");
        assert!(!is_followed(&fails, &new));
        let other_key = Arc::new(TableSchema { key: vec![1], ..new.as_ref().clone() });
        let follows = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        follows.begin(&agreed(&old), &[]).unwrap();
        let why = follows.changed(&other_key).unwrap_err();
        assert!(why.contains("the key was (id) and is (note)"), "{why}");
        assert!(!is_followed(&follows, &other_key));
    }

    #[test]
    fn a_change_of_what_nobody_copies_is_no_change_and_its_rows_go_on() {
        let (old, new) =
            (schema(&[("id", "int64"), ("a", "int32")]), schema(&[("id", "int64"), ("a", "int32"), ("b", "string")]));
        let wanted = Wanted { columns: Some(vec!["id".into(), "a".into()]), ..Wanted::default() };
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), false);
        schemas.begin(&agreed_as(&old, wanted.clone()), &[]).unwrap();
        let stored = schemas.changed(&new).unwrap();
        assert_eq!(Stored::read(&new.table, &stored).unwrap(), Stored { schema: new.as_ref().clone(), wanted });
        assert!(is_followed(&schemas, &old), "rows of both come narrowed to the columns that are copied");
        // The copied column goes: with 'fail' that is refused, and what comes behind it is not written.
        let gone = schema(&[("id", "int64"), ("b", "string")]);
        let why = schemas.changed(&gone).unwrap_err();
        assert!(why.contains("'a' is gone"), "{why}");
        assert!(!is_followed(&schemas, &schema(&[("id", "int64")])));
    }

    #[test]
    fn a_value_for_older_rows_that_cannot_be_held_halts_only_a_table_that_copies_the_column() {
        let (old, mut new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("tags", "list(string)")]));
        Arc::make_mut(&mut new).columns[1].initial = Some("{a}".into());
        let copied = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        copied.begin(&agreed(&old), &[]).unwrap();
        let why = copied.changed(&new).unwrap_err();
        assert!(why.contains("column 'tags' came with a value for older rows") && why.contains("[columns-changed]"), "{why}");
        assert!(!is_followed(&copied, &new));
        let wanted = Wanted { columns: Some(vec!["id".into()]), ..Wanted::default() };
        let left_out = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        left_out.begin(&agreed_as(&old, wanted), &[]).unwrap();
        left_out.changed(&new).unwrap();
        assert!(is_followed(&left_out, &old), "rows of both come narrowed to the columns that are copied");
    }

    #[test]
    fn a_column_that_was_left_out_and_gets_a_copied_name_halts_the_table() {
        let numbered = |columns: &[(&str, &str, u32)]| {
            let mut schema = schema(&columns.iter().map(|(name, kind, _)| (*name, *kind)).collect::<Vec<_>>());
            for (column, (.., number)) in Arc::make_mut(&mut schema).columns.iter_mut().zip(columns) {
                column.identity = Some(*number);
            }
            schema
        };
        let old = numbered(&[("id", "int64", 1), ("a", "string", 2), ("b", "string", 3)]);
        let wanted = Wanted { columns: Some(vec!["id".into(), "a".into()]), ..Wanted::default() };
        let schemas = || {
            let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
            schemas.begin(&agreed_as(&old, wanted.clone()), &[]).unwrap();
            schemas
        };
        let why = schemas().changed(&numbered(&[("id", "int64", 1), ("a", "string", 3)])).unwrap_err();
        assert!(why.contains("'a' is a column here that was left out so far"), "{why}");
        // What the filter looks at is another one.
        let judged = Wanted { filter: Some("b = 'x'".into()), ..Wanted::default() };
        let by_filter = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        by_filter.begin(&agreed_as(&old, judged), &[]).unwrap();
        let why = by_filter.changed(&numbered(&[("id", "int64", 1), ("b", "string", 2), ("a", "string", 3)])).unwrap_err();
        assert!(why.contains("'b', by which its filter judges, is another column here"), "{why}");
        // One that is new has no older values.
        schemas().changed(&numbered(&[("id", "int64", 1), ("b", "string", 3), ("a", "string", 4)])).unwrap();
    }

    #[test]
    fn a_column_of_the_filter_that_goes_halts_the_table() {
        let (old, new) = (schema(&[("id", "int64"), ("open", "bool")]), schema(&[("id", "int64")]));
        let wanted = Wanted { filter: Some("open = true".into()), ..Wanted::default() };
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        schemas.begin(&agreed_as(&old, wanted), &[]).unwrap();
        assert!(schemas.filter(&old).is_some());
        let why = schemas.changed(&new).unwrap_err();
        assert!(why.contains("the filter of table shop.orders names column 'open', which it does not have"), "{why}");
    }
}
