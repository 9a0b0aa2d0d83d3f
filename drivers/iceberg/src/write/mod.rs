//! Staging: the rows of a part become data files that nothing names yet.
//!
//! Nothing is located here, so a checkpoint may be written while the one before it is being committed. What the commit
//! needs to locate, a fingerprint of each key, is computed here too, where another core does it.

mod dictionary;
mod metrics;
mod parquet;
mod rows;

use std::sync::Arc;

use ::rows::{EncodedKeys, Netted};
use contract::{Error, Kind, Mode, Staged, TableWriter, async_trait};
use iceberg::spec::DataFile;
use kernel::id::AttemptId;
use kernel::position::Cut;

use self::parquet::FileWriter;
use self::rows::FileRows;
use crate::blocking;
use crate::failpoint::failpoint;
use crate::index::{Fingerprint, Fingerprints};
use crate::open::OpenTable;
use crate::state::standing;
use crate::table::{Step, TARGET_FILE_BYTES, TARGET_FILE_SIZE, existing, number};

/// How many rows are turned into a batch of a data file at once.
const ROWS_AT_ONCE: usize = 8 * 1024;

/// What an attempt made of a part.
#[derive(Debug)]
pub(crate) struct StagedPart {
    /// Data files, with the keys of their rows.
    pub(crate) files: Vec<StagedFile>,
    /// The keys to remove.
    pub(crate) deletes: Vec<Fingerprint>,
    /// What the files hold.
    pub(crate) step: Arc<Step>,
}

/// A data file, durable and not yet named by the table.
#[derive(Debug)]
pub(crate) struct StagedFile {
    /// What its manifest will say.
    pub(crate) file: DataFile,
    /// The key of each row, in order; none where rows are appended.
    pub(crate) keys: Vec<Fingerprint>,
}

/// Stages the rows of parts of one table.
pub(crate) struct PartWriter {
    table: Arc<OpenTable>,
}

impl PartWriter {
    pub(crate) fn new(table: Arc<OpenTable>) -> Self {
        Self { table }
    }

    /// What the table covers, where rows are appended that it may have already. Read each time: others may have set the
    /// table back, and then the same rows are wanted again.
    async fn covered(&self) -> Result<Option<Cut>, Error> {
        if self.table.wanted.mode != Mode::AppendIdempotent {
            return Ok(None);
        }
        let loaded = existing(self.table.catalog.as_ref(), &self.table.ident).await?;
        Ok(standing(&self.table.storage, &loaded).await?.state.map(|state| state.cut))
    }
}

#[async_trait]
impl TableWriter for PartWriter {
    async fn write(&mut self, attempt: AttemptId, rows: Netted) -> Result<Staged, Error> {
        let covered = self.covered().await?;
        let table = Arc::clone(&self.table);
        let part = blocking::run(move || stage(&table, attempt, &rows, covered.as_ref())).await?;
        if !part.files.is_empty() {
            failpoint!("iceberg-data-written");
        }
        Ok(Box::new(part))
    }
}

fn stage(table: &OpenTable, attempt: AttemptId, rows: &Netted, covered: Option<&Cut>) -> Result<StagedPart, Error> {
    let step = table.step(Some(&rows.schema))?;
    let layout = &step.layout;
    let keyed = !layout.key.is_empty();
    if !keyed && rows.deletes.num_rows() > 0 {
        let what = format!("table '{}' only appends, but rows were to be removed from it by key", table.ident);
        return Err(Error::new(Kind::Fatal, "iceberg-fault", what, "this is a fault in urutau: please report it"));
    }
    let bytes_target = number(table.properties(), TARGET_FILE_SIZE, TARGET_FILE_BYTES);
    let mut count = 0;
    let names = || {
        count += 1;
        table.data_file_name(attempt, count)
    };
    let mut writer = FileWriter::new(table.storage.as_ref(), layout, table.spec_id, bytes_target, names);
    let written = FileRows::new(layout, rows, covered).and_then(|rows| write_rows(&mut writer, &rows));
    let files = writer.into_files();
    if let Err(e) = written {
        // The attempt failed as a whole; nobody was told of the files that it had finished.
        for file in files {
            let _ = table.storage.delete(file.file_path());
        }
        return Err(e);
    }
    let keys = fingerprints(&table.fingerprints, &rows.upsert_keys, keyed);
    let deletes = fingerprints(&table.fingerprints, &rows.delete_keys, keyed).collect();
    Ok(StagedPart { files: with_keys(files, keys, keyed), deletes, step })
}

fn write_rows(writer: &mut FileWriter<'_>, rows: &FileRows<'_>) -> Result<(), Error> {
    for start in (0..rows.count()).step_by(ROWS_AT_ONCE) {
        writer.write(&rows.batch(start..rows.count().min(start + ROWS_AT_ONCE))?)?;
    }
    writer.end_file()
}

fn fingerprints<'a>(of: &'a Fingerprints, keys: &'a EncodedKeys, keyed: bool) -> impl Iterator<Item = Fingerprint> + 'a {
    let count = if keyed { keys.len() } else { 0 };
    (0..count).map(|row| of.of(keys.key(row)))
}

/// Rows lie in the files in order.
fn with_keys(files: Vec<DataFile>, mut keys: impl Iterator<Item = Fingerprint>, keyed: bool) -> Vec<StagedFile> {
    let rows = |file: &DataFile| if keyed { usize::try_from(file.record_count()).unwrap_or(usize::MAX) } else { 0 };
    files.into_iter().map(|file| StagedFile { keys: keys.by_ref().take(rows(&file)).collect(), file }).collect()
}
