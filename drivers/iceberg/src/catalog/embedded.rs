//! The embedded catalogue: `catalog.db` (SQLite) in the warehouse's directory, in the layout that the SQL catalogues of
//! PyIceberg, Java and the Iceberg crate share; the catalogue's name in it is `urutau`.
//!
//! A commit writes the new metadata file, flushes it and its directory, and then swaps it in by one `UPDATE` that names
//! the old location. SQLite runs with a rollback journal and `synchronous = EXTRA`, so that a committed transaction stays
//! after a power cut and the database is one file whenever nobody writes. Processes exclude each other by SQLite's locks;
//! inside this one there is one connection.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contract::{Error, Kind, async_trait};
use iceberg::spec::{FormatVersion, TableMetadata, TableMetadataBuilder};
use iceberg::{MetadataLocation, NamespaceIdent, TableCreation, TableIdent};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Row, SqliteConnection};
use tokio::sync::OnceCell;

use super::{About, Catalog, Commit, Loaded, NewTable, Outcome};
use crate::blocking;
use crate::failpoint::failpoint;
use crate::storage::{Local, Storage};

/// The name under which PyIceberg opens it: `SqlCatalog("urutau", uri="sqlite:////warehouse/catalog.db")`.
const CATALOG: &str = "urutau";
/// The property that lets metadata files go which the table does not remember any more. Our tables have it.
const DELETE_FORGOTTEN: &str = "write.metadata.delete-after-commit.enabled";
/// How long a write waits for another process's.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name))";
const NAMESPACES: &str = "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL,
    PRIMARY KEY (catalog_name, namespace, property_key))";

/// A warehouse in a directory.
#[derive(Debug)]
pub(crate) struct Embedded {
    root: PathBuf,
    storage: Arc<dyn Storage>,
    /// Opened when it is needed first, made when something is to be stored first.
    database: OnceCell<SqlitePool>,
    /// The metadata last seen of each table; a location's content never changes.
    seen: Mutex<HashMap<TableIdent, Loaded>>,
}

impl Embedded {
    /// The warehouse in `root`, an absolute path. It need not exist yet.
    pub(crate) fn new(root: &Path, storage: Arc<dyn Storage>) -> Result<Self, Error> {
        check_path(root)?;
        Ok(Self { root: root.to_owned(), storage, database: OnceCell::new(), seen: Mutex::default() })
    }

    /// The database, if there is one.
    async fn there(&self) -> Result<Option<&SqlitePool>, Error> {
        if let Some(pool) = self.database.get() {
            return Ok(Some(pool));
        }
        let file = self.file();
        match std::fs::metadata(&file) {
            Ok(_) => self.made().await.map(Some),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(unreachable(&file, &e.to_string())),
        }
    }

    /// The database, made if need be.
    async fn made(&self) -> Result<&SqlitePool, Error> {
        let connect = || async {
            let file = self.file();
            std::fs::create_dir_all(&self.root).map_err(|e| unreachable(&self.root, &e.to_string()))?;
            let options = SqliteConnectOptions::new()
                .filename(&file)
                .create_if_missing(true)
                .busy_timeout(BUSY_TIMEOUT)
                .journal_mode(SqliteJournalMode::Delete)
                .synchronous(SqliteSynchronous::Extra);
            let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await;
            let pool = pool.map_err(|e| unreachable(&file, &e.to_string()))?;
            make_tables(&pool).await.map_err(|e| unreachable(&file, &e.to_string()))?;
            Ok(pool)
        };
        self.database.get_or_try_init(connect).await
    }

    fn file(&self) -> PathBuf {
        self.root.join("catalog.db")
    }

    async fn location_of(&self, table: &TableIdent) -> Result<Option<String>, Error> {
        let Some(pool) = self.there().await? else { return Ok(None) };
        let query = "SELECT metadata_location FROM iceberg_tables
                     WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?";
        let row = sqlx::query(query).bind(CATALOG).bind(namespace_text(table)).bind(table.name()).fetch_optional(pool).await;
        let row = row.map_err(|e| away("read", table, &e))?;
        Ok(row.and_then(|row| row.get::<Option<String>, _>(0)))
    }

    fn remember(&self, loaded: &Loaded) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(loaded.ident.clone(), loaded.clone());
    }

    fn remembered(&self, table: &TableIdent, location: &str) -> Option<Loaded> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(table).filter(|loaded| loaded.location == location).cloned()
    }

    /// A directory for a new table that no other table uses or used: what an earlier one left is not ours to touch.
    fn free_directory(&self, table: &TableIdent) -> String {
        let mut directory = self.root.clone();
        directory.extend(table.namespace().as_ref().iter().map(|part| file_name(part)));
        let name = file_name(table.name());
        let mut candidate = directory.join(&name);
        while candidate.exists() {
            let unique = uuid::Uuid::new_v4().simple().to_string();
            candidate = directory.join(format!("{name}-{}", &unique[..8]));
        }
        Local::location(&candidate)
    }

    /// Writes a metadata file that nothing names yet.
    async fn write_metadata(&self, table: &TableIdent, location: String, metadata: TableMetadata) -> Result<Loaded, Error> {
        let (storage, table) = (Arc::clone(&self.storage), table.clone());
        blocking::run(move || {
            let failed = |e: serde_json::Error| fault(&format!("cannot write the metadata {location}: {e}"));
            let json = serde_json::to_vec(&metadata).map_err(failed)?;
            let loaded = Loaded::new(table, metadata, location.clone(), &json).map_err(failed)?;
            storage.put(&[(location.clone(), json.into())])?;
            Ok(loaded)
        })
        .await
    }

    /// Deletes a metadata file that was not swapped in.
    async fn delete_quietly(&self, loaded: &Loaded) {
        blocking::delete_quietly(Arc::clone(&self.storage), vec![loaded.location.clone()]).await;
    }

    /// The swap. `Err` is for what certainly did not happen: a transaction that was not committed is rolled back.
    async fn swap(&self, base: &Loaded, location: &str) -> Result<Swap, Error> {
        let failed = |e: sqlx::Error| away("change", &base.ident, &e);
        let mut transaction = self.made().await?.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let update = "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
                      WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?";
        let updated = sqlx::query(update)
            .bind(location)
            .bind(&base.location)
            .bind(CATALOG)
            .bind(namespace_text(&base.ident))
            .bind(base.ident.name())
            .bind(&base.location)
            .execute(&mut *transaction)
            .await;
        if updated.map_err(failed)?.rows_affected() == 0 {
            return Ok(Swap::Lost);
        }
        let Err(error) = transaction.commit().await else { return Ok(Swap::Done) };
        // It is over by now, one way or the other, and the database tells which.
        match self.location_of(&base.ident).await {
            Ok(Some(now)) if now == location => Ok(Swap::Done),
            Ok(Some(now)) if now == base.location => Err(failed(error)),
            Ok(_) => Ok(Swap::Lost),
            Err(_) => Ok(Swap::Unknown(error.to_string())),
        }
    }
}

/// What became of the swap.
enum Swap {
    Done,
    Lost,
    Unknown(String),
}

#[async_trait]
impl Catalog for Embedded {
    async fn load(&self, table: &TableIdent) -> Result<Option<Loaded>, Error> {
        let Some(location) = self.location_of(table).await? else { return Ok(None) };
        if let Some(known) = self.remembered(table, &location) {
            return Ok(Some(known));
        }
        let (storage, table) = (Arc::clone(&self.storage), table.clone());
        let loaded = blocking::run(move || {
            let json = storage.read(&location)?;
            let damaged = |e: serde_json::Error| {
                let what = format!("the metadata of table '{table}' in {location} cannot be read: {e}");
                Error::new(
                    Kind::Fatal,
                    "iceberg-metadata-damaged",
                    what,
                    "restore that file, or drop the table and let it be copied anew",
                )
            };
            let metadata: TableMetadata = serde_json::from_slice(&json).map_err(damaged)?;
            Loaded::new(table.clone(), metadata, location.clone(), &json).map_err(damaged)
        });
        let loaded = loaded.await?;
        self.remember(&loaded);
        Ok(Some(loaded))
    }

    async fn create(&self, table: &TableIdent, new: NewTable) -> Result<Option<Loaded>, Error> {
        let creation = TableCreation::builder()
            .name(table.name().to_owned())
            .location(self.free_directory(table))
            .schema(new.schema)
            .properties(new.properties)
            .format_version(FormatVersion::V3)
            .build();
        let built = TableMetadataBuilder::from_table_creation(creation).and_then(TableMetadataBuilder::build);
        let metadata = built.map_err(|e| fault(&format!("Iceberg refuses the new table '{table}': {e}")))?.metadata;
        let location = MetadataLocation::new_with_metadata(metadata.location(), &metadata).to_string();
        let loaded = self.write_metadata(table, location, metadata).await?;
        if !self.insert(table, &loaded.location).await? {
            self.delete_quietly(&loaded).await;
            return Ok(None);
        }
        self.remember(&loaded);
        Ok(Some(loaded))
    }

    async fn commit(&self, commit: Commit<'_>) -> Outcome {
        let base = commit.base;
        if let Some(unmet) = commit.requirements.iter().find_map(|r| r.check(Some(&base.metadata)).err()) {
            return Outcome::Refused(format!("a commit that does not fit what it was made from: {unmet}"));
        }
        let applied = commit
            .updates
            .into_iter()
            .try_fold(base.metadata.as_ref().clone().into_builder(Some(base.location.clone())), |builder, u| u.apply(builder))
            .and_then(TableMetadataBuilder::build);
        let built = match applied {
            Ok(built) => built,
            Err(e) => return Outcome::Refused(e.to_string()),
        };
        let location = match MetadataLocation::from_str(&base.location) {
            Ok(old) => old.with_next_version().with_new_metadata(&built.metadata).to_string(),
            Err(e) => return Outcome::Refused(format!("{} is not the name of a metadata file: {e}", base.location)),
        };
        let now = match self.write_metadata(&base.ident, location, built.metadata).await {
            Ok(now) => now,
            Err(e) => return Outcome::Unsent(e),
        };
        if commit.about == About::Data {
            failpoint!("iceberg-metadata-written");
        }
        match self.swap(base, &now.location).await {
            Ok(Swap::Done) => {}
            Ok(Swap::Unknown(why)) => return Outcome::Unknown(why),
            Ok(Swap::Lost) => {
                self.delete_quietly(&now).await;
                return Outcome::Conflict;
            }
            Err(e) => {
                self.delete_quietly(&now).await;
                return Outcome::Unsent(e);
            }
        }
        if commit.about == About::Data {
            failpoint!("iceberg-swapped");
        }
        self.remember(&now);
        let deletes = now.metadata.properties().get(DELETE_FORGOTTEN).is_some_and(|delete| delete == "true");
        let forgotten = built.expired_metadata_logs.into_iter().filter(|_| deletes).map(|log| log.metadata_file).collect();
        Outcome::Committed { now, forgotten }
    }

    fn compares_metadata(&self) -> bool {
        true
    }
}

impl Embedded {
    /// Adds a table, and its namespace if that is not there. `false`: there is one of that name.
    async fn insert(&self, table: &TableIdent, location: &str) -> Result<bool, Error> {
        let failed = |e: sqlx::Error| away("make", table, &e);
        let mut transaction = self.made().await?.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        make_namespace(table.namespace(), &mut transaction).await.map_err(failed)?;
        let insert = "INSERT OR IGNORE INTO iceberg_tables
                      (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type)
                      VALUES (?, ?, ?, ?, NULL, 'TABLE')";
        let row = sqlx::query(insert).bind(CATALOG).bind(namespace_text(table)).bind(table.name()).bind(location);
        let made = row.execute(&mut *transaction).await.map_err(failed)?.rows_affected() > 0;
        transaction.commit().await.map_err(failed)?;
        Ok(made)
    }
}

async fn make_tables(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    let there = "SELECT count(*) FROM sqlite_master WHERE name IN ('iceberg_tables', 'iceberg_namespace_properties')";
    let count: i64 = sqlx::query(there).fetch_one(pool).await?.get(0);
    if count < 2 {
        sqlx::query(TABLES).execute(pool).await?;
        sqlx::query(NAMESPACES).execute(pool).await?;
    }
    Ok(())
}

/// A namespace is there when it has a property; `exists` is the one that the other catalogues write.
async fn make_namespace(namespace: &NamespaceIdent, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let insert = "INSERT OR IGNORE INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
                  VALUES (?, ?, 'exists', 'true')";
    sqlx::query(insert).bind(CATALOG).bind(namespace.as_ref().join(".")).execute(connection).await?;
    Ok(())
}

fn namespace_text(table: &TableIdent) -> String {
    table.namespace().as_ref().join(".")
}

/// A name as a file's name: what is not plain ASCII is replaced, and a hash keeps different names different.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        return name.to_owned();
    }
    let replaced: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{}-{:08x}", replaced.trim_start_matches('.'), crc32fast::hash(name.as_bytes()))
}

/// Readers take locations for URIs, so the directory's name must mean the same as one.
fn check_path(root: &Path) -> Result<(), Error> {
    let text = root.to_str().filter(|text| !text.contains(['?', '#', '%']) && !text.chars().any(char::is_control));
    if text.is_some() && root.is_absolute() {
        return Ok(());
    }
    let what = format!("the warehouse {} cannot be named in Iceberg's metadata: readers take it for a URI", root.display());
    Err(Error::new(Kind::Config, "iceberg-path", what, "choose a directory whose path is text without '?', '#' and '%'"))
}

fn unreachable(path: &Path, why: &str) -> Error {
    let what = format!("the warehouse cannot be opened: {}: {why}", path.display());
    Error::new(Kind::Config, "iceberg-warehouse", what, "see that `sink.uri` names a directory in which this user may write")
}

/// The catalogue did not answer, before anything was changed.
fn away(action: &str, table: &TableIdent, error: &sqlx::Error) -> Error {
    let what = format!("cannot {action} table '{table}' in catalog.db: {error}");
    Error::new(
        Kind::Transient,
        "iceberg-catalog",
        what,
        "see that no other process holds the catalogue for long and that its disk has room",
    )
}

fn fault(what: &str) -> Error {
    Error::new(Kind::Fatal, "iceberg-fault", what, "this is a fault in urutau: please report it")
}
