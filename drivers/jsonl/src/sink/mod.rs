//! # The sink: one file of JSON lines a table
//!
//! A directory (`uri`) holds `<target>.jsonl` for each table; odd characters of a target's name are written as `%2F`. A file
//! begins with a header, then come checkpoints: their rows, then a line of state.
//!
//! ```text
//! {"urutau":"jsonl/1","pipeline":"order-desk","table":"shop.orders","mode":"upsert","key":["id"]}
//! {"key":{"id":7},"op":"u","row":{"id":7,"customer":"Ada","total":"12.30"}}
//! {"key":{"id":3},"op":"d","row":null}
//! {"state":{...},"token":"1.9f3a61c2e0b84d57","from":98,"crc":"5d1b20c4"}
//! ```
//!
//! - **Reading.** Lines count up to the last line of state; what stands behind it is a commit under way, or one that never
//!   came to its end. Of a table that is kept by key (`mode: upsert`) the last line of a key says what it is: `u` the row,
//!   `d` none; `{"op":"t"}` removes all rows before it (TRUNCATE). In `append` every line is a row of its own, with `c`, `u`,
//!   `d` or `r` (seen by a snapshot) as `op`. [`render`] tells how values are written. Metadata columns that the pipeline
//!   file asks for are fields of `row`.
//! - **Committing.** A commit appends rows and state and syncs the file before it is said to be durable; if that fails, the
//!   file is cut back. `crc` is the CRC-32 of everything from byte `from` up to `,"crc"`, so that a checkpoint that a power
//!   cut left with holes does not count. The next commit removes what is torn.
//! - **Two processes.** A commit holds a lock (`.<target>.lock`) and compares the token of the last line of state with the one
//!   that it was given: of two lives one commits, the other hears of it. The pipeline's record is in `.urutau/`, in a
//!   [position store](contract::position_store). The directory must be on a file system with locks and hard links.
//! - **Staging.** Rows wait in `.<target>.i<life>-a<attempt>.staged`, so that a large checkpoint needs no memory.
//!
//! The file only grows. A file that was put back from a backup has its old token again: end every process that wrote to it
//! first.
//!
//! Codes: `jsonl-sink-setting`, `jsonl-sink-io`, `jsonl-sink-table` (what a table cannot be), `jsonl-sink-foreign` (the file of
//! another pipeline or table), `jsonl-sink-unreadable`, `jsonl-sink-gone`, `jsonl-sink-locked`, `jsonl-sink-value`,
//! `jsonl-sink-key`.

mod backwards;
mod file;
mod lines;
mod lock;
mod peek;
mod place;
pub mod render;
mod table;
mod tail;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use contract::position_store::{self, FileStore};
use contract::registry::{Settings, SinkFactory};
use contract::{
    Capabilities, Error, Finding, Kind, Measure, Mode, Peek, Recovered, Severity, Sink, SinkTable, StateWrite, TableSink,
    Versioned, allow_changes, async_trait,
};
use kernel::id::{Incarnation, Token};
use kernel::outcome::StoreOutcome;
use kernel::state::PipelineState;
use rows::{ColumnChange, RecordBatch, TableSchema, Type};

use file::{FORM, Header, TableFile};
use lock::{blocking, exclusively};
use place::{Names, RECORDS};
use tail::TailColumn;

pub use peek::read_rows;

/// Opens sinks of kind `jsonl`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Factory;

#[async_trait]
impl SinkFactory for Factory {
    fn kind(&self) -> &'static str {
        "jsonl"
    }

    fn summary(&self) -> &'static str {
        "files of JSON lines, one a table, in a directory"
    }

    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Sink>, Error> {
        match settings.get("uri").and_then(|uri| uri.as_str()).filter(|uri| !uri.is_empty()) {
            Some(uri) => Ok(Arc::new(JsonlSink::new(pipeline, uri))),
            None => {
                let what = "sink.uri: a directory is expected, found none";
                Err(Error::new(Kind::Config, "jsonl-sink-setting", what, "name the directory of the files"))
            }
        }
    }
}

/// The sink.
pub struct JsonlSink {
    pipeline: String,
    directory: PathBuf,
    records: FileStore,
}

impl JsonlSink {
    /// A sink of the pipeline of that name whose files are in `directory`. It is made when the first table is.
    pub fn new(pipeline: &str, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let records = FileStore::new(directory.join(RECORDS));
        Self { pipeline: pipeline.to_owned(), directory, records }
    }

    fn names(&self, table: &SinkTable) -> Names {
        Names::new(&self.directory, &table.target)
    }

    fn record(&self) -> String {
        format!("{}.record", self.pipeline)
    }

    /// The header that a table's file has.
    fn header(&self, table: &SinkTable) -> Header {
        let key = if table.mode == Mode::Upsert { table.schema.key.as_slice() } else { &[] };
        Header {
            urutau: FORM.into(),
            pipeline: self.pipeline.clone(),
            table: table.table.as_str().into(),
            mode: mode(table.mode).into(),
            key: key.iter().filter_map(|index| table.schema.columns.get(*index)).map(|column| column.name.clone()).collect(),
        }
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Upsert => "upsert",
        Mode::Append => "append",
        Mode::AppendIdempotent => "append-idempotent",
    }
}

#[async_trait]
impl Sink for JsonlSink {
    fn capabilities(&self) -> Capabilities {
        Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true }
    }

    async fn preflight(&self, tables: &[SinkTable]) -> Vec<Finding> {
        let mut errors: Vec<(String, Error)> = Vec::new();
        if let Err(error) = usable(&self.directory) {
            errors.push(("sink.uri".into(), error));
        }
        for table in tables {
            let header = self.header(table);
            let names = self.names(table);
            let there = blocking(move || TableFile::open(&names.file, false)?.map_or(Ok(()), |file| belongs(&file, &header)));
            let problems = [possible(table), there.await];
            errors.extend(problems.into_iter().filter_map(Result::err).map(|error| (table.table.as_str().into(), error)));
        }
        let finding = |(subject, error): (String, Error)| Finding {
            severity: Severity::Error,
            code: error.code,
            subject,
            what: error.what,
            remedy: error.remedy,
        };
        errors.into_iter().map(finding).collect()
    }

    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error> {
        possible(table)?;
        let (directory, names, header) = (self.directory.clone(), self.names(table), self.header(table));
        blocking(move || {
            position_store::make_directory(&directory).map_err(|error| fault("create", &directory, &error))?;
            if TableFile::open(&names.file, false)?.is_none() {
                TableFile::create(&names.file, &header)?;
            }
            TableFile::open(&names.file, true)?.map_or(Ok(()), |file| belongs(&file, &header))
        })
        .await
    }

    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        position_store::pipeline_state(&self.records, &self.record()).await
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        position_store::store_pipeline_state(&self.records, &self.record(), expected, new).await
    }

    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        let (names, pipeline, name) = (self.names(table), self.pipeline.clone(), table.table.to_string());
        if !names.file.exists() {
            return Ok(Versioned { value: None, token: Token::from("0") });
        }
        exclusively(&self.names(table).lock, move || {
            let Some(file) = TableFile::open(&names.file, false)? else {
                return Ok(Versioned { value: None, token: Token::from("0") });
            };
            let (header, _) = file.header()?;
            same(&file, "the pipeline", &pipeline, &header.pipeline)?;
            same(&file, "the table", &name, &header.table)?;
            let stand = file.stand()?;
            file.sync()?;
            let token = stand.token();
            Ok(Versioned { value: stand.newest.map(|(state, _)| state), token })
        })
        .await
    }

    async fn peek(&self, table: &SinkTable, which: &Peek) -> Result<Vec<RecordBatch>, Error> {
        let (directory, target, which) = (self.directory.clone(), table.target.clone(), which.clone());
        blocking(move || read_rows(&directory, &target, &which)).await
    }

    /// How many rows there are, only reading the whole file could say.
    async fn measure(&self, table: &SinkTable) -> Result<Measure, Error> {
        let path = self.names(table).file;
        let data = match fs::metadata(&path) {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Measure::default()),
            Err(error) => return Err(fault("read", &path, &error)),
        };
        let changed = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Measure {
            rows: None,
            files: Some(1),
            bytes: Some(data.len()),
            committed_at: changed.and_then(|since| i64::try_from(since.as_millis()).ok()),
        })
    }

    fn follows(&self, table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
        possible(&SinkTable { schema: Arc::new(to.clone()), ..table.clone() })?;
        // Each line names its own columns; only the key is the file's.
        allow_changes(table, to, |change| {
            !matches!(change, ColumnChange::Key { .. } | ColumnChange::Renamed { of_key: true, .. })
        })
    }

    async fn open(&self, table: &SinkTable, _incarnation: Incarnation) -> Result<TableSink, Error> {
        table::open(self.names(table), table).await
    }
}

/// Can a table be a file of lines?
fn possible(table: &SinkTable) -> Result<(), Error> {
    let wrong = |what: String, remedy: &str| {
        Err(Error::new(Kind::Config, "jsonl-sink-table", format!("table {}: {what}", table.table), remedy))
    };
    let schema = &table.schema;
    if table.mode == Mode::Upsert && schema.key.is_empty() {
        return wrong(
            "it has no key, so its rows cannot be kept by key".into(),
            "name its `primaryKey`, or use `writeMode: append`",
        );
    }
    if let Some(column) = schema.columns.iter().find(|column| is_unknown(&column.kind)) {
        let what = format!("column '{}' has the type {}", column.name, column.kind);
        return wrong(what, "give it a type under `columns`");
    }
    for (word, name) in &table.metadata {
        if TailColumn::parse(word).is_none() {
            return wrong(format!("there is no metadata column '{word}'"), &format!("use one of {}", tail::NAMES.join(", ")));
        }
        let taken = table.metadata.iter().filter(|(_, other)| other == name).count() > 1;
        if taken || schema.index_of(name).is_some() {
            return wrong(format!("two columns are called '{name}'"), "give the metadata column another name");
        }
    }
    Ok(())
}

fn is_unknown(kind: &Type) -> bool {
    match kind {
        Type::Unknown(_) => true,
        Type::List(element) => is_unknown(element),
        Type::Map(key, value) => is_unknown(key) || is_unknown(value),
        Type::Struct(fields) => fields.iter().any(|field| is_unknown(&field.kind)),
        _ => false,
    }
}

/// Is the file the one that this table writes?
fn belongs(file: &TableFile, expected: &Header) -> Result<(), Error> {
    let (found, _) = file.header()?;
    let key = |header: &Header| header.key.join(", ");
    same(file, "the pipeline", &expected.pipeline, &found.pipeline)?;
    same(file, "the table", &expected.table, &found.table)?;
    same(file, "the mode", &expected.mode, &found.mode)?;
    same(file, "the key", &key(expected), &key(&found))
}

fn same(file: &TableFile, what: &str, expected: &str, found: &str) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    let what = format!("{}: {what} '{expected}' is expected, found '{found}'", file.path().display());
    Err(Error::new(Kind::Config, "jsonl-sink-foreign", what, "name another directory or target, or move the file away"))
}

/// Is there a directory, or can one be made? Whether we may write there, only writing shows.
fn usable(directory: &Path) -> Result<(), Error> {
    let existing = directory.ancestors().find(|ancestor| !ancestor.as_os_str().is_empty() && ancestor.exists());
    match existing {
        Some(existing) if !existing.is_dir() => Err(fault("create", directory, &ErrorKind::NotADirectory.into())),
        _ => Ok(()),
    }
}

/// An error of the file system, with what can be done about it.
fn fault(doing: &str, path: &Path, error: &io::Error) -> Error {
    let (kind, remedy) = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (Kind::Config, "give the user that runs urutau the right to write there")
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => {
            (Kind::Config, "name a directory that exists or can be made")
        }
        ErrorKind::Unsupported => (Kind::Config, "use a file system with locks and hard links"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (Kind::Transient, "free space; it is tried again"),
        _ => (Kind::Transient, "mend the disk or the file system; it is tried again"),
    };
    Error::new(kind, "jsonl-sink-io", format!("cannot {doing} {}: {error}", path.display()), remedy)
}

#[cfg(test)]
mod tests;
