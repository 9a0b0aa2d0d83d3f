//! What the tests of this crate share: a folder with files, change events as text, and what a read brought as lines of text that
//! a test can write down.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use contract::{Error, Limit, LogEvent, LogRead, Source, TableRequest};
use kernel::position::{Position, Transaction};
use rows::{ChangeBatch, TableSchema};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::JsonlSource;
use crate::reader::Core;

/// As much as there is.
pub(crate) const ALL: Limit = Limit { rows: usize::MAX, bytes: u64::MAX };

/// A folder with change files and a source that reads them.
pub(crate) struct Folder {
    pub(crate) dir: TempDir,
    pub(crate) source: JsonlSource,
}

impl Folder {
    /// Settings besides the path, which is below the folder.
    pub(crate) fn new(path: &str, settings: Json) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let source = source(&dir, path, settings);
        Self { dir, source }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        OpenOptions::new().append(true).open(self.path(name)).unwrap().write_all(content.as_ref()).unwrap();
    }

    /// The source of another life.
    pub(crate) fn again(&mut self, path: &str, settings: Json) {
        self.source = source(&self.dir, path, settings);
    }

    /// Tables as the source describes them.
    pub(crate) fn describe(&self, tables: &[TableRequest]) -> Vec<Arc<TableSchema>> {
        let described = block_on(self.source.describe(tables, &BTreeMap::new())).unwrap();
        described.into_iter().map(|table| table.schema).collect()
    }

    pub(crate) fn core(&self, from: &Position, tables: &[Arc<TableSchema>]) -> Result<Core, Error> {
        self.source.reader(&from.clone().into(), tables)
    }

    /// Everything from a position on, and the error that ended it.
    pub(crate) fn read(&self, from: &Position, tables: &[Arc<TableSchema>], limit: Limit) -> (Vec<String>, Option<Error>) {
        let mut core = self.core(from, tables).unwrap();
        let mut all = Vec::new();
        loop {
            match core.read(limit, Instant::now(), 5) {
                Ok(read) => {
                    all.extend(told(&read));
                    if read.finished || read.events.is_empty() {
                        return (all, None);
                    }
                }
                Err(error) => {
                    let again = core.read(limit, Instant::now(), 5).unwrap_err();
                    assert_eq!(again, error, "an error comes again");
                    return (all, Some(error));
                }
            }
        }
    }
}

fn source(dir: &TempDir, path: &str, settings: Json) -> JsonlSource {
    let Json::Object(mut settings) = settings else { panic!("settings are an object") };
    settings.insert("path".to_owned(), json!(dir.path().join(path).to_str().unwrap()));
    JsonlSource::new(&settings).unwrap()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A table with a key and some declared types.
pub(crate) fn request(table: &str, key: &[&str], columns: &[(&str, &str)]) -> TableRequest {
    TableRequest {
        table: table.into(),
        primary_key: Some(key.iter().map(|name| (*name).to_owned()).collect()),
        columns: columns.iter().map(|(name, kind)| ((*name).to_owned(), kind.parse().unwrap())).collect(),
        before_is_full: false,
        keeps_every_row: false,
    }
}

/// A line with an event of a PostgreSQL table `s.<table>`; `null` for rows that are not there.
pub(crate) fn event(op: &str, table: &str, transaction: u64, before: &str, after: &str) -> String {
    format!(
        "{{\"before\":{before},\"after\":{after},\"source\":{{\"connector\":\"postgresql\",\"schema\":\"s\",\"table\":\"{table}\",\"txId\":{transaction},\"ts_ms\":{transaction}}},\"op\":\"{op}\"}}\n"
    )
}

pub(crate) fn create(table: &str, transaction: u64, after: &str) -> String {
    event("c", table, transaction, "null", after)
}

pub(crate) fn end_marker(transaction: u64) -> String {
    format!("{{\"status\":\"END\",\"id\":\"{transaction}:77\",\"event_count\":1,\"ts_ms\":5}}\n")
}

/// What a read brought, an event a line, rows one by one.
pub(crate) fn told(read: &LogRead) -> Vec<String> {
    for batch in &read.batches {
        batch.check().unwrap();
    }
    read.events.iter().flat_map(|event| told_event(read, event)).collect()
}

fn told_event(read: &LogRead, event: &LogEvent) -> Vec<String> {
    let of = |transaction: &Transaction| format!("{}@{}", transaction.stream, transaction.at.0);
    vec![match event {
        LogEvent::Rows { batch, rows, transaction } => {
            let batch = &read.batches[*batch];
            return rows.clone().map(|row| format!("{} {}", of(transaction), told_row(batch, row))).collect();
        }
        LogEvent::Truncated { table, transaction, coordinate } => format!("{} {table} truncated {coordinate:?}", of(transaction)),
        LogEvent::Schema { transaction, coordinate, schema } => {
            format!("{} {} schema {coordinate:?}: {}", of(transaction), schema.table, told_schema(schema))
        }
        LogEvent::Refused { table, transaction, coordinate, error } => {
            format!("{} {table} refused {coordinate:?}: {} [{}]", of(transaction), error.what, error.code)
        }
        LogEvent::Ended { transaction, upto, commit_time } => format!("{} ended {upto} {commit_time:?}", of(transaction)),
        LogEvent::Keepalive { upto } => format!("keepalive {upto}"),
    }]
}

pub(crate) fn told_schema(schema: &TableSchema) -> String {
    let column = |(place, column): (usize, &rows::Column)| {
        let key = if schema.is_key(place) { "*" } else { "" };
        format!("{key}{} {}{}", column.name, column.kind, if column.nullable { "" } else { " not null" })
    };
    schema.columns.iter().enumerate().map(column).collect::<Vec<_>>().join(", ")
}

/// `table Operation coordinate: column=value ...`; `~` for an absent value.
pub(crate) fn told_row(batch: &ChangeBatch, row: usize) -> String {
    let values: Vec<_> = (0..batch.schema.columns.len())
        .map(|place| {
            let value =
                if batch.is_absent(place, row) { "~".to_owned() } else { told_value(batch.data.column(place).as_ref(), row) };
            format!("{}={value}", batch.schema.columns[place].name)
        })
        .collect();
    let tail = &batch.tail;
    format!("{} {:?} {:?}: {}", batch.schema.table, tail.operations[row], tail.coordinates[row], values.join(" "))
}

pub(crate) fn told_value(array: &dyn Array, row: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    ArrayFormatter::try_new(array, &options).unwrap().value(row).to_string()
}
