//! A sink: tables that are written in checkpoints, each with the state that says how far it goes.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::id::{AttemptId, CommitId, Incarnation, TableName, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::{PipelineState, TableState};
use rows::{ColumnChange, Netted, TableSchema};

use crate::{Error, Finding};

/// How rows are applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// By key: the target is what the source is.
    Upsert,
    /// Every change is a row of its own.
    Append,
    /// `Append` that refuses rows which the table's state already covers.
    AppendIdempotent,
}

/// A table at the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinkTable {
    /// Its name at the source: what the kernel calls it.
    pub table: TableName,
    /// Its name at the target.
    pub target: String,
    /// What its rows look like at the source.
    pub schema: Arc<TableSchema>,
    /// How rows are applied.
    pub mode: Mode,
    /// Which tail columns the target has (`__op`, `__pos`, `__commit_ts`, ...) and under which names.
    pub metadata: Vec<(String, String)>,
}

/// How a table's state is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StateWrite {
    /// In one act with the data, by compare-and-set on the token (Iceberg).
    WithData,
    /// After the data, which is idempotent by version; by no compare-and-set, so that lives must claim (ClickHouse).
    AfterData,
}

/// What a sink can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// How a table's state is written.
    pub state: StateWrite,
    /// May a closed checkpoint be written before the one before it is durable? Not where rows are located at a snapshot.
    pub writes_ahead: bool,
    /// Does it take back all rows of a table in one commit (TRUNCATE)?
    pub truncates: bool,
    /// Does it remove what an older generation left ([`CommitRequest::sweep`])? Without it no snapshot is read.
    pub sweeps: bool,
}

/// Something stored, with the token that a replacement of it must show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned<T> {
    /// The thing.
    pub value: T,
    /// Its token; it never repeats.
    pub token: Token,
}

/// Which rows somebody wants to see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peek {
    /// At most so many.
    pub limit: usize,
    /// Only the row with this key: the text of each key column, in key order.
    pub key: Option<Vec<String>>,
}

/// What a table holds. `None` is what the sink cannot say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measure {
    /// Rows that a reader sees.
    pub rows: Option<u64>,
    /// Data files.
    pub files: Option<u64>,
    /// Bytes of them.
    pub bytes: Option<u64>,
    /// When the newest state became visible, milliseconds since 1970.
    pub committed_at: Option<i64>,
}

/// Who takes the rows of a table.
pub type Take<'a> = &'a mut (dyn FnMut(rows::RecordBatch) -> Result<(), Error> + Send);

/// What a table's recovery found.
pub type Recovered = Versioned<Option<TableState>>;

/// What a writer made, as its committer needs it. Opaque to everybody else. `Sync`, since a commit only borrows it and its
/// future must be `Send`.
pub type Staged = Box<dyn Any + Send + Sync>;

/// A sink.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Checks everything that could go wrong, without changing anything.
    async fn preflight(&self, tables: &[SinkTable]) -> Vec<Finding>;

    /// Makes the table if it is not there; checks that it can hold what the source sends if it is.
    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error>;

    /// The pipeline's record.
    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error>;

    /// Replaces the record if it still is the one of `expected`.
    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome;

    /// The state of a table, from the table itself.
    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error>;

    /// Reads some rows of a table as it is visible now, for people: `table.schema` may be empty.
    async fn peek(&self, table: &SinkTable, which: &Peek) -> Result<Vec<rows::RecordBatch>, Error> {
        let _ = which;
        let what = format!("table {}: this sink cannot read its rows back", table.target);
        Err(Error::new(crate::Kind::Rejected, "peek-unsupported", what, "read the table with another program"))
    }

    /// Gives every row of a table as one snapshot of it has them, in the sink's own types, in any order; nothing if there is no table.
    /// Ends with the first error of who takes them.
    async fn scan(&self, table: &SinkTable, take: Take<'_>) -> Result<(), Error> {
        let _ = take;
        let what = format!("table {}: this sink cannot read back all of its rows as what they are", table.target);
        Err(Error::new(crate::Kind::Config, "verify-unsupported", what, "compare it with another program"))
    }

    /// What a table holds, as far as the sink can say it cheaply.
    async fn measure(&self, table: &SinkTable) -> Result<Measure, Error> {
        let _ = table;
        Ok(Measure::default())
    }

    /// Can a table whose rows have looked as `table` says take rows that look as `to` says, from some place in the log on? The
    /// change itself is part of the commit that brings the first such rows ([`CommitRequest::schema`]). An error halts the
    /// table in front of the change.
    fn follows(&self, table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
        allow_changes(table, to, |_| false)
    }

    /// Opens a table for writing in the life `incarnation`.
    async fn open(&self, table: &SinkTable, incarnation: Incarnation) -> Result<TableSink, Error>;
}

/// Refuses a change of a table's columns unless `allowed` says yes to each part of it; the error names the others.
pub fn allow_changes(table: &SinkTable, to: &TableSchema, allowed: impl Fn(&ColumnChange) -> bool) -> Result<(), Error> {
    let changes = table.schema.changes(to);
    let refused: Vec<String> = changes.iter().filter(|change| !allowed(change)).map(ToString::to_string).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let what =
        format!("table {}: its columns change in a way that its target cannot follow: {}", table.table, refused.join("; "));
    Err(Error::new(crate::Kind::Rejected, "columns-changed", what, "copy the table anew into another target"))
}

/// The two halves of an open table. They may be used at the same time.
pub struct TableSink {
    /// Stages rows.
    pub writer: Box<dyn TableWriter>,
    /// Makes them visible.
    pub committer: Box<dyn TableCommitter>,
}

/// Stages the rows of parts.
#[async_trait]
pub trait TableWriter: Send {
    /// Makes the rows durable but invisible (or visible and idempotent by version). File names hold the attempt.
    async fn write(&mut self, attempt: AttemptId, rows: Netted) -> Result<Staged, Error>;
}

/// One commit of one table.
pub struct CommitRequest {
    /// The token of the state that this one replaces.
    pub token: Token,
    /// The state that becomes visible with the data. `state.commit` is the commit's id.
    pub state: TableState,
    /// What the table's rows look like with this state, where the log has told a change of it (rule C7): what the staged rows
    /// look like, and those that follow. `None`: as when the table was opened.
    pub schema: Option<Arc<TableSchema>>,
    /// What the present attempts staged. Kept by the caller until the outcome is known, since the same commit may be asked
    /// for again; empty for a claim.
    pub staged: Vec<Arc<Staged>>,
    /// Remove all rows first.
    pub truncate_first: bool,
    /// Remove all rows that were written before the generation of `state` began (its versions lie below `state.begun`), in the
    /// same act where data and state are one (rule G2). A sink notes the beginning when a state's generation is a new one.
    pub sweep: bool,
}

/// Makes staged rows visible together with the state. Calls for one table come one at a time, in order.
#[async_trait]
pub trait TableCommitter: Send {
    /// Commits. Must be able to say `Durable` to a commit id that is already there.
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome;

    /// Is this commit of this life in the table's kept history? `Conflict`-free: it only looks.
    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error>;

    /// Deletes what an attempt staged, best effort. Only asked for attempts that were never in an unknown commit.
    async fn drop_staged(&mut self, staged: Vec<Arc<Staged>>);

    /// Deletes what older lives staged and never published, best effort. Asked after this life's first commit is durable.
    async fn discard_older(&mut self, incarnation: Incarnation);
}
