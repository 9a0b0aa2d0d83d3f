//! A pipeline as the rest of the program sees it: complete, consistent, with all defaults filled in.

use std::fmt;

use serde::Serialize;

use crate::column_type::ColumnType;
use crate::duration::Duration;
use crate::filter::Filter;
use crate::settings::Settings;
use crate::size::Size;
use crate::words::{
    BeforeImage, MetadataSource, OnDelete, OnError, OnTruncate, OnValue, SchemaEvolution, SnapshotMode, WriteMode,
};

/// One replication job.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its name: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Where changes come from.
    pub source: SourceSpec,
    /// Where rows go.
    pub sink: SinkSpec,
    /// The tables. Sources differ, and targets differ.
    pub tables: Vec<TableSpec>,
    /// How rows that are older than the log get to the target.
    pub snapshot: SnapshotSpec,
    /// How long a transient fault is retried; `None` where the file does not say, since the default is the command's.
    pub give_up_after: Option<GiveUp>,
    /// Fields that the file leaves out and whose default in the Go urutau is another: `plan` names them, and the log does
    /// once. Empty with `compat: go`.
    pub other_in_go: Vec<OtherInGo>,
    /// What is allowed and yet may not be what was meant.
    pub warnings: Vec<Warning>,
}

/// Where changes come from.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// The driver's word.
    pub kind: &'static str,
    /// What a TRUNCATE does.
    pub on_truncate: OnTruncate,
    /// How much log blocked tables may hold back; `None` for sources that keep everything anyway.
    pub hold: Option<Hold>,
    /// The driver's own section.
    pub settings: Settings,
}

/// How tables are read beside the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotSpec {
    /// When.
    pub mode: SnapshotMode,
    /// Rows of one read.
    pub chunk_rows: u32,
    /// Reads of one table at the same time.
    pub parallelism: u32,
}

/// How much log the blocked tables may keep a source from discarding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// So much.
    pub bytes: Size,
    /// So long.
    pub time: Duration,
}

/// Where rows go.
#[derive(Clone, Debug)]
pub struct SinkSpec {
    /// The driver's word. `iceberg+rest` is `iceberg` with `catalog` set to `rest`.
    pub kind: &'static str,
    /// Where the tables stand.
    pub namespace: String,
    /// When a checkpoint is cut.
    pub checkpoint: Checkpoint,
    /// What a schema change does.
    pub schema_evolution: SchemaEvolution,
    /// The driver's own section; it holds the namespace too.
    pub settings: Settings,
}

/// When a checkpoint is cut: at the first of the three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// So long after the first row.
    pub interval: Duration,
    /// So many rows.
    pub max_rows: u64,
    /// So many bytes of rows.
    pub max_bytes: Size,
}

/// One table.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Its name at the source.
    pub source: String,
    /// Its name at the target, below the sink's namespace.
    pub target: String,
    /// The key's columns; `None` if the source says them. Never empty.
    pub primary_key: Option<Vec<String>>,
    /// What the file says about single columns.
    pub columns: Vec<ColumnSpec>,
    /// The columns that are copied; `None` is all.
    pub column_filter: Option<Vec<String>>,
    /// Columns that get another type at the target.
    pub casts: Vec<(String, ColumnType)>,
    /// Only these rows.
    pub filter: Option<Filter>,
    /// Columns that the log fills.
    pub metadata: Vec<MetadataColumn>,
    /// How rows are applied.
    pub write_mode: WriteMode,
    /// What a delete does in a table that is appended to.
    pub on_delete: OnDelete,
    /// What a fault of this table does to the run.
    pub on_error: OnError,
    /// What happens to a value that the target cannot hold, where its column says nothing else.
    pub on_value: OnValue,
    /// What the image of a row before its change holds.
    pub before_image: BeforeImage,
}

/// What the file says about one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnSpec {
    /// Its name at the source.
    pub name: String,
    /// Its type, if the file says it.
    pub column_type: Option<ColumnType>,
    /// What happens to a value that the target cannot hold, if it is not what holds for the table.
    pub on_value: Option<OnValue>,
}

/// A column of the target that the log fills.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetadataColumn {
    /// What it is filled with.
    pub from: MetadataSource,
    /// Its name.
    pub name: String,
}

/// How long a transient fault is retried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GiveUp {
    /// For ever.
    Never,
    /// So long.
    After(Duration),
}

/// A field whose default differs from the Go urutau's, and which the file leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OtherInGo {
    /// The field.
    pub path: String,
    /// What holds.
    pub here: &'static str,
    /// What would hold there.
    pub go: &'static str,
}

impl fmt::Display for OtherInGo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} by default; in the Go urutau it is {}", self.path, self.here, self.go)
    }
}

/// What is allowed and yet may not be what was meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Warning {
    /// The field.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What to know about it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.path, self.text)
    }
}

impl TableSpec {
    /// What the file says about a column.
    pub fn column(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }
}
