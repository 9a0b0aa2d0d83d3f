//! The laws of sinks, held by the embedded warehouse, read back as its readers see it, changed by somebody else who knows
//! nothing of this crate, and torn as a power cut would.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use contract::conformance::Word;
use contract::conformance::sink::{self, SinkAbilities, SinkHarness, SinkPlace};
use contract::{Capabilities, Error, Kind, Mode, Peek, Sink, SinkTable, StateWrite, async_trait};
use iceberg::spec::{MAIN_BRANCH, ManifestList, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{MetadataLocation, TableUpdate};
use iceberg_sink::IcebergSink;
use serde_json::json;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

struct Harness;

struct Place {
    directory: TempDir,
}

#[async_trait]
impl SinkHarness for Harness {
    fn abilities(&self) -> SinkAbilities {
        SinkAbilities {
            capabilities: Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true },
            modes: vec![Mode::Upsert, Mode::Append, Mode::AppendIdempotent],
            reads_back: true,
            foreign_commit: true,
            roll_back: true,
            tear: true,
        }
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(Place { directory: tempfile::tempdir().map_err(wrong)? }))
    }
}

impl Place {
    async fn sink(&self) -> Result<IcebergSink, Error> {
        let section = json!({"kind": "iceberg", "uri": self.directory.path(), "namespace": "kit"});
        IcebergSink::open("conformance", section.as_object().expect("an object")).await
    }

    async fn catalog(&self) -> Result<SqlitePool, Error> {
        let options = SqliteConnectOptions::new().filename(self.directory.path().join("catalog.db"));
        SqlitePool::connect_with(options).await.map_err(wrong)
    }

    /// Where a table's metadata is now, and was before its last commit.
    async fn locations(&self, table: &SinkTable) -> Result<(String, Option<String>), Error> {
        let query = "SELECT metadata_location, previous_metadata_location FROM iceberg_tables WHERE table_name = ?";
        let row = sqlx::query(query).bind(&table.target).fetch_one(&self.catalog().await?).await.map_err(wrong)?;
        Ok((row.get(0), row.get(1)))
    }

    /// Changes a table's metadata with the Iceberg crate alone.
    async fn change(&self, table: &SinkTable, updates: impl FnOnce(&TableMetadata) -> Vec<TableUpdate>) -> Result<(), Error> {
        let (old, _) = self.locations(table).await?;
        let metadata = metadata(&old)?;
        let changes = updates(&metadata);
        let builder =
            changes.into_iter().try_fold(metadata.into_builder(Some(old.clone())), |builder, update| update.apply(builder));
        let built = builder.and_then(|builder| builder.build()).map_err(wrong)?.metadata;
        let new = MetadataLocation::from_str(&old).map_err(wrong)?.with_next_version().to_string();
        fs::write(path(&new), serde_json::to_vec(&built).map_err(wrong)?).map_err(wrong)?;
        self.point(table, &new, &old).await
    }

    async fn point(&self, table: &SinkTable, to: &str, previous: &str) -> Result<(), Error> {
        let update = "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? WHERE table_name = ?";
        let done = sqlx::query(update).bind(to).bind(previous).bind(&table.target).execute(&self.catalog().await?).await;
        done.map(drop).map_err(wrong)
    }
}

#[async_trait]
impl SinkPlace for Place {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        Ok(Arc::new(self.sink().await?))
    }

    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error> {
        let read = self.sink().await?.peek(table, &Peek { limit: usize::MAX, key: None }).await?;
        read.iter()
            .map(|batch| Word::all_of(batch).ok_or_else(|| wrong("the columns are others")))
            .collect::<Result<Vec<_>, _>>()
            .map(|w| w.concat())
    }

    async fn foreign_commit(&self, table: &SinkTable) -> Result<(), Error> {
        let updates = HashMap::from([("maintained-by".to_owned(), "somebody else".to_owned())]);
        self.change(table, |_| vec![TableUpdate::SetProperties { updates }]).await
    }

    async fn roll_back(&self, table: &SinkTable) -> Result<(), Error> {
        let to_parent = |metadata: &TableMetadata| {
            let parent = metadata.current_snapshot().and_then(|s| s.parent_snapshot_id()).expect("a commit to take back");
            let reference = SnapshotReference::new(parent, SnapshotRetention::branch(None, None, None));
            vec![TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.into(), reference }]
        };
        self.change(table, to_parent).await
    }

    /// The files of the last commit in the order in which they are made durable; the swap is the last step.
    async fn tear(&self, table: &SinkTable, step: u32) -> Result<bool, Error> {
        let (now, before) = self.locations(table).await?;
        let before = before.expect("a commit to tear");
        let mut old = files_of(&metadata(&before)?)?;
        old.push(before.clone());
        let mut made: Vec<String> = files_of(&metadata(&now)?)?.into_iter().filter(|file| !old.contains(file)).collect();
        made.push(now);
        let steps = made.len() as u32 + 1;
        if step < steps {
            self.point(table, &before, &before).await?;
        }
        for file in made.iter().skip(step as usize) {
            fs::remove_file(path(file)).map_err(wrong)?;
        }
        // The file that was being written is there in part.
        if let Some(file) = made.get(step as usize) {
            fs::write(path(file), "torn").map_err(wrong)?;
        }
        Ok(step <= steps)
    }
}

/// Data files and vectors, manifests and the list of the present snapshot.
fn files_of(metadata: &TableMetadata) -> Result<Vec<String>, Error> {
    let Some(snapshot) = metadata.current_snapshot() else { return Ok(Vec::new()) };
    let bytes = fs::read(path(snapshot.manifest_list())).map_err(wrong)?;
    let list = ManifestList::parse_with_version(&bytes, metadata.format_version()).map_err(wrong)?;
    let (mut files, mut manifests) = (Vec::new(), Vec::new());
    for manifest in list.entries() {
        let bytes = fs::read(path(&manifest.manifest_path)).map_err(wrong)?;
        let parsed = iceberg::spec::Manifest::parse_avro(&bytes).map_err(wrong)?;
        files.extend(parsed.entries().iter().filter(|entry| entry.is_alive()).map(|entry| entry.file_path().to_owned()));
        manifests.push(manifest.manifest_path.clone());
    }
    files.extend(manifests);
    files.push(snapshot.manifest_list().to_owned());
    Ok(files)
}

fn metadata(location: &str) -> Result<TableMetadata, Error> {
    serde_json::from_slice(&fs::read(path(location)).map_err(wrong)?).map_err(wrong)
}

fn path(location: &str) -> PathBuf {
    Path::new(location.trim_start_matches("file://")).to_owned()
}

fn wrong(error: impl ToString) -> Error {
    Error::new(Kind::Fatal, "harness", error.to_string(), "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_warehouse_keeps_the_laws_of_sinks() {
    let claims = "the sink's state write is compare-and-set";
    sink::check(&Harness).await.must_hold(&[("the-highest-state-counts", claims), ("the-highest-version-wins", claims)]);
}
