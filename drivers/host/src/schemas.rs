//! What each table's rows look like where the log is read, and which changes of that go on to the target.
//!
//! The kernel knows the schema of the rows behind each table's stand and says it when the reader begins anew; a source tells each
//! change that comes after (rule C7). A change that the pipeline or the sink does not follow is a refusal: the table halts in
//! front of it, with everything before it committed, and no row behind it reaches the sink, also if somebody says `skip`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::{Error, Sink, SinkTable};
use kernel::id::TableName;
use rows::TableSchema;

use crate::env::stored_schema;

/// The schemas of one life.
pub(crate) struct Schemas {
    sink: Arc<dyn Sink>,
    follow: bool,
    tables: Mutex<BTreeMap<TableName, Known>>,
}

struct Known {
    target: SinkTable,
    /// Of the rows that the reader reads now.
    now: Arc<TableSchema>,
    /// Those whose rows may be written.
    followed: Vec<Arc<TableSchema>>,
}

impl Schemas {
    pub(crate) fn new(sink: Arc<dyn Sink>, follow: bool) -> Self {
        Self { sink, follow, tables: Mutex::default() }
    }

    /// The tables as source and sink agreed on them: what a table is read under before the log's reader has begun. A life that goes
    /// on with a snapshot reads chunks and the log from the first moment on.
    pub(crate) fn agree(&self, agreed: &BTreeMap<TableName, SinkTable>) {
        let mut tables = self.lock();
        for (name, target) in agreed {
            tables.entry(name.clone()).or_insert_with(|| Known::of(target));
        }
    }

    /// The reader begins anew: the schemas with which it begins, one a table.
    pub(crate) fn begin(
        &self,
        agreed: &BTreeMap<TableName, SinkTable>,
        stands: &[(TableName, String)],
    ) -> Result<Vec<Arc<TableSchema>>, Error> {
        let mut tables = self.lock();
        for (name, target) in agreed {
            let stored = stands.iter().find(|(table, _)| table == name).map(|(_, text)| stored_schema(name, text)).transpose()?;
            let now = stored.map_or_else(|| Arc::clone(&target.schema), Arc::new);
            let known = tables.entry(name.clone()).or_insert_with(|| Known::of(target));
            known.now = now;
            known.follow();
        }
        Ok(tables.values().map(|known| Arc::clone(&known.now)).collect())
    }

    /// The log tells a change. Gives the schema as it is stored, or says why the table halts in front of it.
    pub(crate) fn changed(&self, schema: &Arc<TableSchema>) -> Result<String, String> {
        let mut tables = self.lock();
        let Some(known) = tables.get_mut(&schema.table) else { return Err(format!("table {} is not read", schema.table)) };
        let before = std::mem::replace(&mut known.now, Arc::clone(schema));
        self.may_become(known, &before, schema)?;
        known.follow();
        as_stored(schema)
    }

    /// A chunk of the table was read under this schema, which the log may not have told yet. Gives it as it is stored, or says why
    /// its rows can't be taken.
    pub(crate) fn brought(&self, schema: &Arc<TableSchema>) -> Result<String, String> {
        let mut tables = self.lock();
        let Some(known) = tables.get_mut(&schema.table) else { return Err(format!("table {} is not read", schema.table)) };
        if !known.followed.contains(schema) {
            self.may_become(known, &known.now, schema)?;
            known.followed.push(Arc::clone(schema));
        }
        as_stored(schema)
    }

    /// The schema of the table's rows where the log is read now.
    pub(crate) fn now(&self, table: &TableName) -> Option<Arc<TableSchema>> {
        self.lock().get(table).map(|known| Arc::clone(&known.now))
    }

    /// Does the pipeline follow this change of a table's columns, and its sink?
    fn may_become(&self, known: &Known, before: &Arc<TableSchema>, schema: &TableSchema) -> Result<(), String> {
        if !self.follow {
            let changes: Vec<String> = before.changes(schema).iter().map(ToString::to_string).collect();
            return Err(format!(
                "the table's columns change here, and sink.schemaEvolution is 'fail': {}. Set it to 'evolve' and resume the table, \
                 or copy it anew into another target",
                changes.join("; ")
            ));
        }
        let target = SinkTable { schema: Arc::clone(before), ..known.target.clone() };
        self.sink.follows(&target, schema).map_err(|error| error.to_string())
    }

    /// May rows of this schema be written? Not those behind a change that was refused.
    pub(crate) fn is_followed(&self, schema: &TableSchema) -> bool {
        let tables = self.lock();
        tables.get(&schema.table).is_some_and(|known| known.followed.iter().any(|followed| **followed == *schema))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableName, Known>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_stored(schema: &TableSchema) -> Result<String, String> {
    serde_json::to_string(schema).map_err(|e| format!("its schema can't be stored: {e}"))
}

impl Known {
    fn of(target: &SinkTable) -> Self {
        Self { target: target.clone(), now: Arc::clone(&target.schema), followed: vec![Arc::clone(&target.schema)] }
    }

    fn follow(&mut self) {
        if !self.followed.contains(&self.now) {
            self.followed.push(Arc::clone(&self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::Mode;
    use contract::memory::MemorySink;
    use rows::Column;

    use super::*;

    fn schema(columns: &[(&str, &str)]) -> Arc<TableSchema> {
        let columns = columns.iter().map(|(name, kind)| Column {
            name: (*name).to_owned(),
            kind: kind.parse().unwrap(),
            nullable: *name != "id",
        });
        Arc::new(TableSchema::new("shop.orders".into(), columns.collect(), vec![0]).unwrap())
    }

    fn agreed(schema: &Arc<TableSchema>) -> BTreeMap<TableName, SinkTable> {
        let table = SinkTable {
            table: schema.table.clone(),
            target: "orders".into(),
            schema: Arc::clone(schema),
            mode: Mode::Upsert,
            metadata: Vec::new(),
        };
        [(schema.table.clone(), table)].into()
    }

    #[test]
    fn a_chunk_may_come_before_the_reader_has_begun_and_bring_what_the_log_has_not_told() {
        let (old, new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("note", "string")]));
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        schemas.agree(&agreed(&old));
        assert_eq!(schemas.now(&old.table), Some(Arc::clone(&old)));
        let brought = schemas.brought(&new).unwrap();
        assert!(schemas.is_followed(&new));
        // The log's reader is where it was, and tells the same change when it comes to it.
        assert_eq!(schemas.now(&old.table), Some(Arc::clone(&old)));
        assert_eq!(schemas.begin(&agreed(&old), &[]).unwrap(), [Arc::clone(&old)]);
        assert_eq!(schemas.changed(&new).unwrap(), brought);
        let other_key = Arc::new(TableSchema { key: vec![1], ..new.as_ref().clone() });
        assert!(schemas.brought(&other_key).unwrap_err().contains("the key was (id) and is (note)"));
        assert!(!schemas.is_followed(&other_key));
    }

    #[test]
    fn a_change_that_is_followed_may_be_written_and_begins_the_next_reading() {
        let (old, new) = (schema(&[("id", "int64")]), schema(&[("id", "int64"), ("note", "string")]));
        let schemas = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        assert_eq!(schemas.begin(&agreed(&old), &[]).unwrap(), [Arc::clone(&old)]);
        assert!(schemas.is_followed(&old) && !schemas.is_followed(&new));
        let stored = schemas.changed(&new).unwrap();
        assert!(schemas.is_followed(&old) && schemas.is_followed(&new));
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
        assert!(!fails.is_followed(&new));
        let other_key = Arc::new(TableSchema { key: vec![1], ..new.as_ref().clone() });
        let follows = Schemas::new(Arc::new(MemorySink::new(contract::StateWrite::WithData)), true);
        follows.begin(&agreed(&old), &[]).unwrap();
        let why = follows.changed(&other_key).unwrap_err();
        assert!(why.contains("the key was (id) and is (note)"), "{why}");
        assert!(!follows.is_followed(&other_key));
    }
}
