//! From the pipeline file to what a run does: one plan a table, and the kernel's configuration.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use contract::{Capabilities, Error, Kind, Mode, SinkTable, Source, StateWrite, TableRequest};
use kernel::config::{self, AbsentLimits, CheckpointLimits, Config, Join, Retry, SnapshotLimits, TableConfig};
use kernel::id::TableName;
use kernel::time::Duration;
use rows::project::{ProjectionError, ProjectionProblem};
use rows::shape::{Missing, Shape, ShapeError, Wanted, WantedCast};
use rows::{TableSchema, Type, ValuePolicy};
use spec::{BeforeImage, GiveUp, MetadataSource, OnError, OnTruncate, OnValue, Pipeline, SnapshotMode, TableSpec, WriteMode};

/// What a run does with one table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// What the source is asked for.
    pub request: TableRequest,
    /// Its name at the target.
    pub target: String,
    /// How rows are applied.
    pub mode: Mode,
    /// Columns of the target that the log fills: what with, and their names.
    pub metadata: Vec<(String, String)>,
    /// Which rows and columns go on, and as which types.
    pub wanted: Wanted,
}

impl TablePlan {
    /// The table at the target, as far as it is known before the source has described it: enough to find its state.
    pub fn before_described(&self) -> SinkTable {
        let table = self.request.table.clone();
        self.at_target(Arc::new(TableSchema { table, columns: Vec::new(), key: Vec::new() }))
    }

    /// What goes on of a table that has this schema at the source.
    pub fn shape(&self, schema: &Arc<TableSchema>, missing: Missing) -> Result<Shape, Error> {
        Shape::new(schema, &self.wanted, missing).map_err(|error| match &error {
            // Nothing in the file could mend what the source has given its rows.
            ShapeError::Projection(ProjectionError { problem: ProjectionProblem::Initial { .. }, .. }) => {
                Error::new(Kind::Rejected, "columns-changed", error.to_string(), "copy the table anew into another target")
            }
            _ => {
                let remedy =
                    "mend the table's columnFilter, cast, onValue or filter; `urutau plan` shows the columns that it has";
                Error::new(Kind::Config, "table-shape", error.to_string(), remedy)
            }
        })
    }

    /// The table at the target, whose rows have this schema there.
    pub fn at_target(&self, schema: Arc<TableSchema>) -> SinkTable {
        SinkTable {
            table: self.request.table.clone(),
            target: self.target.clone(),
            schema,
            mode: self.mode,
            metadata: self.metadata.clone(),
        }
    }
}

/// The plans of all tables of a pipeline.
pub fn tables(pipeline: &Pipeline) -> Result<BTreeMap<TableName, TablePlan>, Error> {
    pipeline.tables.iter().map(|table| Ok((TableName::from(table.source.as_str()), plan(table)?))).collect()
}

fn plan(table: &TableSpec) -> Result<TablePlan, Error> {
    let mut columns = BTreeMap::new();
    for column in &table.columns {
        if let Some(text) = &column.column_type {
            columns.insert(column.name.clone(), column_type(&table.source, &column.name, text.as_str())?);
        }
    }
    Ok(TablePlan {
        request: TableRequest {
            table: TableName::from(table.source.as_str()),
            primary_key: table.primary_key.clone(),
            columns,
            before_is_full: table.before_image == BeforeImage::Full,
            keeps_every_row: table.write_mode != WriteMode::Upsert,
        },
        target: table.target.clone(),
        mode: match table.write_mode {
            WriteMode::Upsert => Mode::Upsert,
            WriteMode::Append => Mode::Append,
            WriteMode::AppendIdempotent => Mode::AppendIdempotent,
        },
        metadata: table.metadata.iter().map(|m| (tail_column(m.from).to_owned(), m.name.clone())).collect(),
        wanted: wanted(table)?,
    })
}

/// Which rows and columns of a table go on, and as which types.
fn wanted(table: &TableSpec) -> Result<Wanted, Error> {
    if table.filter.is_some() && table.write_mode != WriteMode::Upsert {
        let what = format!("table {}: rows that are appended can't be filtered: they could not be taken back", table.source);
        return Err(Error::new(Kind::Config, "table-shape", what, "set its writeMode to 'upsert', or leave its filter out"));
    }
    let mut casts = BTreeMap::new();
    for (column, kind) in &table.casts {
        let of_column = table.columns.iter().find(|known| known.name == *column).and_then(|known| known.on_value);
        let on_value = match of_column.unwrap_or(table.on_value) {
            OnValue::Error => ValuePolicy::Error,
            OnValue::Null => ValuePolicy::Null,
            OnValue::Clamp => ValuePolicy::Clamp,
            OnValue::String => ValuePolicy::String,
        };
        let kind = column_type(&table.source, column, kind.as_str())?;
        casts.insert(column.clone(), WantedCast { kind, on_value });
    }
    Ok(Wanted { columns: table.column_filter.clone(), casts, filter: table.filter.as_ref().map(ToString::to_string) })
}

fn column_type(table: &str, column: &str, text: &str) -> Result<Type, Error> {
    Type::from_str(text).map_err(|e| {
        let what = format!("table {table}: column {column}: type '{text}': {e}");
        Error::new(Kind::Config, "column-type", what, "see the type names in the pipeline reference")
    })
}

/// The word of the tail for a metadata column.
fn tail_column(from: MetadataSource) -> &'static str {
    match from {
        MetadataSource::Op => "__op",
        MetadataSource::CommitTs => "__commit_ts",
        MetadataSource::IngestTs => "__ingest_ts",
        MetadataSource::Position => "__pos",
        MetadataSource::Phase => "__phase",
        // The validator refuses these as not built yet.
        other => other.as_str(),
    }
}

/// How many rows one read of the log may bring: a checkpoint's at most, so that a table is not stalled by a single read.
pub(crate) fn rows_per_read(pipeline: &Pipeline) -> usize {
    usize::try_from(pipeline.sink.checkpoint.max_rows).unwrap_or(usize::MAX).clamp(1, 65_536)
}

/// Bytes of rows that are read and not yet written.
const BUDGET_BYTES_MAX: u64 = 64 << 20;

/// Bytes of snapshot chunks that are held or asked for, and of one of them; what is held counts in the budget too.
const CHUNKS_BYTES_MAX: u64 = 32 << 20;
const CHUNK_BYTES_MAX: u64 = 8 << 20;

/// Rows of a checkpoint that are read again for large values: until it is written all of them are in memory, and nobody knows before how
/// large they are.
const HOLES_MAX: usize = 4_000;

/// Can what the pipeline wants of snapshots be had from this source and this sink?
fn check_snapshots(pipeline: &Pipeline, capabilities: Capabilities, source: &dyn Source) -> Result<(), Error> {
    if source.begins_with_log() || pipeline.snapshot.mode == SnapshotMode::Never {
        return Ok(());
    }
    let refuse = |what: String, remedy: &str| {
        let remedy =
            format!("{remedy}, or say `snapshot: {{ mode: never }}`: rows that do not change from then on are not copied");
        Err(Error::new(Kind::Config, "no-snapshot", what, remedy))
    };
    let (from, to) = (pipeline.source.kind, pipeline.sink.kind);
    if source.chunks().is_none() {
        return refuse(
            format!("tables of a {from} source can't be read beside its log, so there is no snapshot"),
            "use another source",
        );
    }
    if !capabilities.sweeps {
        let what = format!("a {to} sink can't remove what an older snapshot left, so none is read");
        return refuse(what, "use another sink");
    }
    match pipeline.tables.iter().find(|table| table.write_mode != WriteMode::Upsert) {
        None => Ok(()),
        Some(table) => {
            let what = format!(
                "table {}: writeMode '{}' keeps every row, and a snapshot needs a key by which rows are replaced",
                table.source,
                table.write_mode.as_str()
            );
            refuse(what, "set its writeMode to 'upsert'")
        }
    }
}

/// The kernel's configuration of a run.
pub fn config(
    pipeline: &Pipeline,
    capabilities: Capabilities,
    source: &dyn Source,
    until_current: bool,
) -> Result<Config, Error> {
    check_snapshots(pipeline, capabilities, source)?;
    let snapshot = &pipeline.snapshot;
    let tables = pipeline.tables.iter().map(|table| {
        let config = TableConfig {
            join: match snapshot.mode {
                _ if source.begins_with_log() => Join::Beginning,
                SnapshotMode::Never => Join::Now,
                SnapshotMode::Initial | SnapshotMode::Only | SnapshotMode::WhenNeeded => Join::Snapshot,
            },
            keyed: table.write_mode == WriteMode::Upsert,
            state_with_data: capabilities.state == StateWrite::WithData,
            on_truncate: match pipeline.source.on_truncate {
                OnTruncate::Propagate if capabilities.truncates => config::OnTruncate::Propagate,
                // A sink that can't empty a table must not go on as if it had.
                OnTruncate::Propagate | OnTruncate::Fail => config::OnTruncate::Fail,
                OnTruncate::Ignore => config::OnTruncate::Ignore,
            },
            on_error: match table.on_error {
                OnError::Halt => config::OnError::Halt,
                OnError::Stop => config::OnError::Stop,
            },
            resnapshot: match snapshot.mode {
                SnapshotMode::WhenNeeded => config::Resnapshot::AtStart,
                SnapshotMode::Initial | SnapshotMode::Never | SnapshotMode::Only => config::Resnapshot::WhenAsked,
            },
        };
        (TableName::from(table.source.as_str()), config)
    });
    let checkpoint = &pipeline.sink.checkpoint;
    let interval = Duration::from_millis(checkpoint.interval.as_millis());
    let give_up_after = match (pipeline.give_up_after, until_current) {
        (Some(GiveUp::Never), _) => None,
        (Some(GiveUp::After(time)), _) => Some(Duration::from_millis(time.as_millis())),
        (None, true) => Some(Duration::from_secs(2 * 60)),
        (None, false) => Some(Duration::from_secs(15 * 60)),
    };
    let mut config = Config::new(tables.collect());
    config.checkpoint = CheckpointLimits { age: interval, rows: checkpoint.max_rows, bytes: checkpoint.max_bytes.bytes() };
    config.record_interval = interval;
    // Rows lie in memory as read, as netted and as written to a file at once: a run is to stay within half a gibibyte.
    config.budget_bytes_max = BUDGET_BYTES_MAX;
    config.retry = Retry { give_up_after, ..config.retry };
    config.hold = pipeline.source.hold.map(|hold| Duration::from_millis(hold.time.as_millis()));
    config.hold_distance = pipeline.source.hold.map(|hold| hold.bytes.bytes());
    config.source_keeps_all = source.keeps_all();
    config.source_keeps_key_order = source.keeps_key_order();
    config.until_current = until_current;
    config.source_reads_chunks = source.chunks().is_some() && capabilities.sweeps;
    config.snapshot = SnapshotLimits {
        chunks_max: snapshot.parallelism,
        chunk_rows_max: snapshot.chunk_rows,
        chunk_bytes_max: CHUNK_BYTES_MAX,
        held_bytes_max: CHUNKS_BYTES_MAX,
        ..config.snapshot
    };
    config.absent = AbsentLimits { holes_max: HOLES_MAX, read_bytes_max: CHUNK_BYTES_MAX, ..config.absent };
    #[cfg(feature = "failpoints")]
    {
        config.planted = fences_by_position().then_some(kernel::planted::PlantedBug::WatermarkByPosition);
    }
    Ok(config)
}

/// The fault that the test of the fence must notice: a chunk is judged by positions, as if what is in the log were visible.
#[cfg(feature = "failpoints")]
pub(crate) fn fences_by_position() -> bool {
    std::env::var("URUTAU_FAULT").is_ok_and(|fault| fault == "fence-by-position")
}
