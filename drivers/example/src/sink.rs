//! A sink: a directory with one document a table, `{"state": ..., "rows": {...}}`.
//!
//! The one thing that a sink must get right is that rows and state become visible **together**, and that of two processes
//! which commit upon the same state only one does. Here both come for free, because a table is one text in a
//! `contract::position_store::FileStore`, which replaces texts by compare-and-set: a commit reads the document, changes it,
//! and puts it back if nobody else has. (It costs a whole document a commit, which is why this is an example.)

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use contract::arrow::array::cast::AsArray;
use contract::arrow::array::types::Int64Type;
use contract::arrow::array::{Array, RecordBatch};
use contract::kernel::id::{AttemptId, CommitId, Incarnation, Token};
use contract::kernel::outcome::{CommitOutcome, StoreOutcome};
use contract::kernel::state::{PipelineState, TableState};
use contract::position_store::{self, FileStore, PositionStore, Replaced};
use contract::rows::{Netted, Type};
use contract::serde_json::{self, Map, Value};
use contract::{
    Capabilities, CommitRequest, Error, Finding, Kind, Mode, Recovered, Severity, Sink, SinkTable, Staged, StateWrite,
    TableCommitter, TableSink, TableWriter, Versioned, async_trait,
};

/// A sink of pages.
pub struct Pages {
    pipeline: String,
    store: FileStore,
}

impl Pages {
    /// The pages of a pipeline in a directory.
    pub fn new(pipeline: &str, directory: impl Into<PathBuf>) -> Self {
        Self { pipeline: pipeline.to_owned(), store: FileStore::new(directory) }
    }

    fn page(&self, table: &SinkTable) -> Page {
        Page { store: self.store.clone(), name: format!("{}.page.{}", self.pipeline, table.target) }
    }

    fn record(&self) -> String {
        format!("{}.record", self.pipeline)
    }
}

#[async_trait]
impl Sink for Pages {
    /// Facts that the kernel plans by. `WithData`: state and rows are one act, by compare-and-set, so that a life which was
    /// overtaken finds out at its next commit. `writes_ahead`: rows may be staged before the commit before them is durable,
    /// since staging does not look at the table.
    fn capabilities(&self) -> Capabilities {
        Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true }
    }

    async fn preflight(&self, tables: &[SinkTable]) -> Vec<Finding> {
        let place = self.store.read_now(&self.record()).map(drop).map_err(|error| ("sink.uri".to_owned(), error));
        let tables = tables.iter().map(|table| possible(table).map_err(|error| (table.table.to_string(), error)));
        let finding = |(subject, error): (String, Error)| Finding {
            severity: Severity::Error,
            code: error.code,
            subject,
            what: error.what,
            remedy: error.remedy,
        };
        tables.chain([place]).filter_map(Result::err).map(finding).collect()
    }

    /// Called at every start: makes what is missing, checks what is there, changes nothing that holds rows.
    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error> {
        possible(table)
    }

    /// The pipeline's record is one small text. Every sink has a place for such a thing, or uses a position store.
    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        position_store::pipeline_state(&self.store, &self.record()).await
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        position_store::store_pipeline_state(&self.store, &self.record(), expected, new).await
    }

    /// The state comes from the table itself, never from a place beside it that could disagree.
    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        let page = self.page(table).read().await?;
        Ok(Versioned { value: page.value.state, token: page.token })
    }

    async fn open(&self, table: &SinkTable, _incarnation: Incarnation) -> Result<TableSink, Error> {
        Ok(TableSink { writer: Box::new(Writer), committer: Box::new(self.page(table)) })
    }
}

/// A table that a page cannot hold is refused before anything runs, with what would help.
fn possible(table: &SinkTable) -> Result<(), Error> {
    let wrong = |what: String, remedy: &str| {
        Err(Error::new(Kind::Config, "example-table", format!("table {}: {what}", table.table), remedy))
    };
    if table.mode != Mode::Upsert || table.schema.key.is_empty() {
        return wrong("a page is kept by key".into(), "name a `primaryKey`, and use `writeMode: upsert`");
    }
    if !table.metadata.is_empty() {
        return wrong("a page has no metadata columns".into(), "leave `metadata` out");
    }
    let odd = table.schema.columns.iter().find(|column| ![Type::Int64, Type::String].contains(&column.kind));
    match odd {
        Some(column) => wrong(format!("column '{}' is {}", column.name, column.kind), "cast it to int64 or string"),
        None => Ok(()),
    }
}

/// Staging keeps rows where no reader sees them and no other life finds them. Here that is memory: what is lost with the
/// process was never committed, and the next life reads it from the log again.
struct Writer;

#[async_trait]
impl TableWriter for Writer {
    async fn write(&mut self, _attempt: AttemptId, rows: Netted) -> Result<Staged, Error> {
        Ok(Box::new(rows))
    }
}

/// A table's document, and its committer.
struct Page {
    store: FileStore,
    name: String,
}

/// What stands in it. Rows by their encoded key, which is the one that everything compares keys by.
#[derive(Default)]
struct Content {
    state: Option<TableState>,
    rows: Map<String, Value>,
}

#[async_trait]
impl TableCommitter for Page {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let Versioned { value: mut page, token } = match self.read().await {
            Ok(page) => page,
            Err(error) => return not_done(error),
        };
        if token != request.token {
            // Somebody was here. If it was this very commit, its answer was lost: then it is done, and must not be done twice.
            // Else the kernel decides; it needs to know what we found.
            return match page.state {
                Some(state) if state == request.state => CommitOutcome::Durable { token },
                found => CommitOutcome::Conflict { found: found.map(Box::new), token },
            };
        }
        // A table that is copied anew begins with a commit without rows whose state is of another generation. From there to its
        // end a reader may see rows of the older copy, or none. A page that shows none has nothing left to sweep.
        let begins = page.state.as_ref().is_some_and(|found| found.generation != request.state.generation);
        if request.truncate_first || begins {
            page.rows.clear();
        }
        for staged in &request.staged {
            let staged: &(dyn Any + Send + Sync) = &***staged;
            let Some(rows) = staged.downcast_ref::<Netted>() else {
                return CommitOutcome::Rejected { why: "what was staged is of another sink; report this as a bug".into() };
            };
            page.apply(rows);
        }
        page.state = Some(request.state.clone());
        let text = match page.encode() {
            Ok(text) => text,
            Err(error) => return not_done(error),
        };
        match self.store.replace(&self.name, &token, &text).await {
            Replaced::Stored { token } => CommitOutcome::Durable { token },
            // Between reading and replacing. What is there now says what to do.
            Replaced::Conflict { found } => match decode(&self.name, found.value) {
                Ok(page) => CommitOutcome::Conflict { found: page.state.map(Box::new), token: found.token },
                Err(error) => not_done(error),
            },
            // Perhaps. Saying 'no' here would be a lie; the kernel asks again with the same commit.
            Replaced::Unknown { why } => CommitOutcome::Unknown { why },
            Replaced::Failed(error) => not_done(error),
        }
    }

    /// Did it land? The newest state is enough, because it lists the commits that it was built upon.
    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let page = self.read().await?;
        let landed = page.value.state.is_some_and(|state| {
            (state.commit, state.incarnation) == (commit, incarnation)
                || (commit.incarnation == incarnation && state.ancestors.contains(commit))
        });
        Ok(Versioned { value: landed, token: page.token })
    }

    /// What is staged is in memory and goes with its handle.
    async fn drop_staged(&mut self, _staged: Vec<Arc<Staged>>) {}

    async fn discard_older(&mut self, _incarnation: Incarnation) {}
}

fn not_done(error: Error) -> CommitOutcome {
    match error.kind {
        Kind::Transient => CommitOutcome::Transient { why: error.to_string() },
        _ => CommitOutcome::Rejected { why: error.to_string() },
    }
}

impl Page {
    async fn read(&self) -> Result<Versioned<Content>, Error> {
        let stored = self.store.read(&self.name).await?;
        Ok(Versioned { value: decode(&self.name, stored.value)?, token: stored.token })
    }
}

impl Content {
    /// At most one image or one delete for each key: the rows were netted before they came here.
    fn apply(&mut self, rows: &Netted) {
        for key in rows.delete_keys.iter() {
            self.rows.remove(&hex(key));
        }
        for (row, key) in rows.upsert_keys.iter().enumerate() {
            self.rows.insert(hex(key), cells(&rows.upserts, row));
        }
    }

    fn encode(&self) -> Result<String, Error> {
        let state = serde_json::to_value(&self.state).map_err(|error| unreadable("the state", &error))?;
        Ok(serde_json::json!({ "state": state, "rows": self.rows }).to_string())
    }
}

fn decode(name: &str, text: Option<String>) -> Result<Content, Error> {
    let Some(text) = text else { return Ok(Content::default()) };
    let mut page: Map<String, Value> = serde_json::from_str(&text).map_err(|error| unreadable(name, &error))?;
    let rows = match page.remove("rows") {
        Some(Value::Object(rows)) => rows,
        _ => Map::new(),
    };
    let state = page.remove("state").unwrap_or_default();
    Ok(Content { state: serde_json::from_value(state).map_err(|error| unreadable(name, &error))?, rows })
}

fn unreadable(name: &str, error: &serde_json::Error) -> Error {
    let what = format!("the page '{name}' cannot be read: {error}");
    Error::new(Kind::Config, "example-page", what, "restore it, or remove it and copy the table anew")
}

/// A row as a list of its columns' values.
fn cells(data: &RecordBatch, row: usize) -> Value {
    let cell = |column: &Arc<dyn Array>| {
        if column.is_null(row) {
            return Value::Null;
        }
        // The two types that `possible` lets through.
        match column.as_primitive_opt::<Int64Type>() {
            Some(numbers) => numbers.value(row).into(),
            None => column.as_string::<i32>().value(row).into(),
        }
    };
    Value::Array(data.columns().iter().map(cell).collect())
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}
