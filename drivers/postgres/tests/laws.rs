//! The contract's laws, held against a real server.

#[path = "../../../e2e/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "the harness of the end-to-end tests, of which this test needs a part")]
mod postgres;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contract::conformance::source::{self, SourceAbilities, SourceHarness, SourcePlace, Step, What};
use contract::registry::Settings;
use contract::serde_json::{Value as Json, json};
use contract::{Error, Source, async_trait};
use kernel::position::Position;
use postgres::{Postgres, Release};
use postgres_source::PostgresSource;

struct Harness {
    server: Arc<Postgres>,
    places: AtomicU32,
}

/// A database and a slot of its own.
struct Place {
    server: Arc<Postgres>,
    name: String,
}

#[async_trait]
impl SourceHarness for Harness {
    fn abilities(&self) -> SourceAbilities {
        SourceAbilities { refuses: true, poisons: false, discards: true, reads_rows: true }
    }

    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error> {
        let name = format!("kit{}", self.places.fetch_add(1, Ordering::Relaxed));
        let sql = |database: &str, statement: &str| self.server.sql(database, statement);
        sql("postgres", &format!("CREATE DATABASE {name}"));
        for table in ["words", "names"] {
            sql(
                &name,
                &format!(
                    "CREATE SCHEMA IF NOT EXISTS kit; CREATE TABLE kit.{table} (id bigint PRIMARY KEY, word text, at timestamp)"
                ),
            );
        }
        sql(&name, &format!("CREATE PUBLICATION {name}_pub FOR TABLE kit.words, kit.names"));
        sql(&name, &format!("SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"));
        Ok(Box::new(Place { server: self.server.clone(), name }))
    }
}

impl Place {
    fn sql(&self, statement: &str) {
        self.server.sql(&self.name, statement);
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn statement(step: &Step) -> String {
    let table = step.table;
    match &step.what {
        What::Insert(id, word) => format!("INSERT INTO {table} (id, word) VALUES ({id}, {})", quoted(word)),
        What::Update(id, word) => format!("UPDATE {table} SET word = {} WHERE id = {id}", quoted(word)),
        What::Rekey(old, new, word) => format!("UPDATE {table} SET id = {new}, word = {} WHERE id = {old}", quoted(word)),
        What::Delete(id) => format!("DELETE FROM {table} WHERE id = {id}"),
    }
}

#[async_trait]
impl SourcePlace for Place {
    async fn open(&self) -> Result<Arc<dyn Source>, Error> {
        let settings: Json = json!({ "uri": self.server.uri(&self.name), "slotName": self.name });
        let Json::Object(settings) = settings else { unreachable!("settings are an object") };
        let settings: Settings = settings;
        Ok(Arc::new(PostgresSource::new("kit", &settings)?))
    }

    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error> {
        let transactions = transactions.iter().map(|steps| {
            let steps: Vec<String> = steps.iter().map(statement).collect();
            format!("BEGIN; {}; COMMIT;", steps.join("; "))
        });
        self.sql(&transactions.collect::<Vec<_>>().join("\n"));
        Ok(())
    }

    async fn write_refused(&self) -> Result<(), Error> {
        self.sql("INSERT INTO kit.words (id, word, at) VALUES (1000, 'never', 'infinity')");
        Ok(())
    }

    async fn discard(&self, upto: &Position) -> Result<(), Error> {
        let source = self.open().await?;
        let upto = source.describe_position(upto);
        self.sql(&format!("SELECT pg_replication_slot_advance('{}', '{upto}')", self.name));
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A session that has just ended holds the slot for a moment; what stays goes with the server.
        let _ = self.server.try_sql("postgres", &format!("SELECT pg_drop_replication_slot('{}')", self.name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_of_sources_holds() {
    let harness = Harness { server: Arc::new(Postgres::start(Release::Fifteen, &[])), places: AtomicU32::new(0) };
    source::check(&harness).await.must_hold(&[("poison-comes-last", "nothing that can be written is unreadable to this source")]);
}
