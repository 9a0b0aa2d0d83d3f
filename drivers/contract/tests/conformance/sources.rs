//! How the kit is let at the source in memory.

use std::sync::Arc;

use contract::conformance::source::{SourceAbilities, SourceHarness, SourcePlace, Step, TABLES, What, columns};
use contract::kernel::id::TableName;
use contract::kernel::position::Position;
use contract::memory::{Change, MemoryLog, Value, row};
use contract::rows::TableSchema;
use contract::{Error, Kind, Source, async_trait};

pub(crate) struct MemorySources;

pub(crate) struct MemoryPlace(pub(crate) MemoryLog);

impl MemoryPlace {
    pub(crate) fn new() -> Self {
        let table = |name: &str| TableSchema { table: TableName::from(name), columns: columns(), key: vec![0] };
        Self(MemoryLog::new("the log of a test", TABLES.map(table)).with_rows(&TableName::from(TABLES[0]), []))
    }
}

#[async_trait]
impl SourceHarness for MemorySources {
    fn abilities(&self) -> SourceAbilities {
        SourceAbilities { refuses: true, poisons: true, discards: true, reads_rows: true }
    }

    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error> {
        Ok(Box::new(MemoryPlace::new()))
    }
}

#[async_trait]
impl SourcePlace for MemoryPlace {
    async fn open(&self) -> Result<Arc<dyn Source>, Error> {
        Ok(Arc::new(self.0.source()))
    }

    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error> {
        for steps in transactions {
            self.0.transaction(steps.iter().map(change).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    async fn write_refused(&self) -> Result<(), Error> {
        let error = Error::new(Kind::Rejected, "test-refused", "a key is null", "give it one");
        self.0.transaction(vec![Change::Refused(TableName::from(TABLES[0]), error)]);
        Ok(())
    }

    async fn write_poison(&self) -> Result<(), Error> {
        let error = Error::new(Kind::Poison, "test-poison", "the log is torn", "mend it");
        self.0.transaction(vec![Change::Poison(error)]);
        Ok(())
    }

    async fn finish(&self) -> Result<(), Error> {
        self.0.finish();
        Ok(())
    }

    async fn discard(&self, upto: &Position) -> Result<(), Error> {
        self.0.discard(upto);
        Ok(())
    }
}

fn change(step: &Step) -> Result<Change, Error> {
    let table = TableName::from(step.table);
    let schema = TableSchema { table: table.clone(), columns: columns(), key: vec![0] };
    let image = |id: &i64, word: &str| row(&schema, &[Value::Int(*id), Value::Text(word)]);
    let key = |id: &i64| row(&schema, &[Value::Int(*id), Value::Null]);
    Ok(match &step.what {
        What::Insert(id, word) => Change::Insert(table, image(id, word)?),
        What::Update(id, word) => Change::Update(table, image(id, word)?),
        What::Rekey(old, new, word) => Change::Rekey(table, key(old)?, image(new, word)?),
        What::Delete(id) => Change::Delete(table, key(id)?),
    })
}
