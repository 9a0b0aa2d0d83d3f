//! A sink that counts rows and forgets them: for trying a pipeline, and for measuring everything before the sink.
//!
//! Its positions are kept like those of any sink, in a directory if `uri` names one, else in memory: a second run with the
//! same `uri` goes on where the first one stopped. Rows cannot be read back, because there are none.
#![deny(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::position_store::{self, FileStore, MemoryStore, PositionStore};
use contract::registry::{Settings, SinkFactory};
use contract::{
    Capabilities, CommitRequest, Error, Finding, Kind, Recovered, Severity, Sink, SinkTable, Staged, StateWrite, TableCommitter,
    TableSink, TableWriter, Versioned, async_trait,
};
use kernel::id::{AttemptId, CommitId, Incarnation, Token};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::PipelineState;
use rows::{Netted, TableSchema};

/// Opens sinks of kind `null`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Factory;

#[async_trait]
impl SinkFactory for Factory {
    fn kind(&self) -> &'static str {
        "null"
    }

    fn summary(&self) -> &'static str {
        "counts rows and forgets them: for trying a pipeline and for measuring"
    }

    async fn open(&self, pipeline: &str, settings: &Settings) -> Result<Arc<dyn Sink>, Error> {
        let store: Arc<dyn PositionStore> = match settings.get("uri") {
            None | Some(contract::serde_json::Value::Null) => Arc::new(MemoryStore::new()),
            Some(uri) => {
                let uri = uri.as_str().filter(|uri| !uri.is_empty()).ok_or_else(|| {
                    let what = format!("sink.uri: a directory is expected, found {}", kind_of(uri));
                    Error::new(
                        Kind::Config,
                        "null-setting",
                        what,
                        "name the directory that keeps the positions, or leave `uri` out",
                    )
                })?;
                Arc::new(FileStore::new(uri))
            }
        };
        Ok(Arc::new(NullSink::new(pipeline, store)))
    }
}

fn kind_of(value: &contract::serde_json::Value) -> &'static str {
    match value {
        contract::serde_json::Value::String(_) => "an empty text",
        _ => "something that is no text",
    }
}

/// What a sink counted since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counted {
    /// Rows committed, deletes too.
    pub rows: u64,
    /// Bytes of their columns in memory.
    pub bytes: u64,
    /// Commits, those without rows too.
    pub commits: u64,
}

/// The sink.
pub struct NullSink {
    pipeline: String,
    store: Arc<dyn PositionStore>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    rows: AtomicU64,
    bytes: AtomicU64,
    commits: AtomicU64,
}

impl NullSink {
    /// A sink of the pipeline of that name whose positions are in `store`.
    pub fn new(pipeline: &str, store: Arc<dyn PositionStore>) -> Self {
        Self { pipeline: pipeline.to_string(), store, counters: Arc::default() }
    }

    /// What it counted so far.
    pub fn counted(&self) -> Counted {
        // Each number is right; together they are of no one moment, which is all that a rate needs.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted { rows: read(&self.counters.rows), bytes: read(&self.counters.bytes), commits: read(&self.counters.commits) }
    }

    fn record(&self) -> String {
        format!("{}.record", self.pipeline)
    }

    fn state_of(&self, table: &SinkTable) -> String {
        format!("{}.table.{}", self.pipeline, table.target)
    }
}

#[async_trait]
impl Sink for NullSink {
    fn capabilities(&self) -> Capabilities {
        // It sweeps: of no row anything is left.
        Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true }
    }

    async fn preflight(&self, _tables: &[SinkTable]) -> Vec<Finding> {
        match self.store.read(&self.record()).await {
            Ok(_) => Vec::new(),
            Err(error) => vec![Finding {
                severity: Severity::Error,
                code: error.code,
                subject: "sink.uri".into(),
                what: error.what,
                remedy: error.remedy,
            }],
        }
    }

    async fn ensure_table(&self, _table: &SinkTable) -> Result<(), Error> {
        Ok(())
    }

    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        position_store::pipeline_state(&*self.store, &self.record()).await
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        position_store::store_pipeline_state(&*self.store, &self.record(), expected, new).await
    }

    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        position_store::table_state(&*self.store, &self.state_of(table)).await
    }

    fn follows(&self, _table: &SinkTable, _to: &TableSchema) -> Result<(), Error> {
        Ok(())
    }

    async fn open(&self, table: &SinkTable, _incarnation: Incarnation) -> Result<TableSink, Error> {
        let committer = Committer {
            store: Arc::clone(&self.store),
            state: self.state_of(table),
            counters: Arc::clone(&self.counters),
            counted: None,
        };
        Ok(TableSink { writer: Box::new(Writer), committer: Box::new(committer) })
    }
}

struct Writer;

/// What is left of the rows of a part.
struct Forgotten {
    rows: u64,
    bytes: u64,
}

#[async_trait]
impl TableWriter for Writer {
    async fn write(&mut self, _attempt: AttemptId, rows: Netted) -> Result<Staged, Error> {
        let count = rows.upserts.num_rows() + rows.deletes.num_rows();
        let bytes = rows.upserts.get_array_memory_size() + rows.deletes.get_array_memory_size();
        Ok(Box::new(Forgotten { rows: count as u64, bytes: bytes as u64 }))
    }
}

struct Committer {
    store: Arc<dyn PositionStore>,
    state: String,
    counters: Arc<Counters>,
    /// The last commit that was counted, so that one asked for twice is counted once.
    counted: Option<CommitId>,
}

#[async_trait]
impl TableCommitter for Committer {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let parts: Option<Vec<&Forgotten>> = request.staged.iter().map(|staged| (***staged).downcast_ref()).collect();
        let Some(parts) = parts else {
            return CommitOutcome::Rejected { why: "what was staged is of another sink; report this as a bug".into() };
        };
        let outcome = position_store::commit_table_state(&*self.store, &self.state, &request.token, &request.state).await;
        let durable = matches!(outcome, CommitOutcome::Durable { .. });
        if durable && (request.staged.is_empty() || self.counted.replace(request.state.commit) != Some(request.state.commit)) {
            self.counters.rows.fetch_add(parts.iter().map(|part| part.rows).sum(), Ordering::Relaxed);
            self.counters.bytes.fetch_add(parts.iter().map(|part| part.bytes).sum(), Ordering::Relaxed);
            self.counters.commits.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Only the newest state is kept; what it was built upon, it says itself.
    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let found = position_store::table_state(&*self.store, &self.state).await?;
        let landed = found.value.is_some_and(|state| {
            (state.commit, state.incarnation) == (commit, incarnation)
                || (commit.incarnation == incarnation && state.ancestors.contains(commit))
        });
        Ok(Versioned { value: landed, token: found.token })
    }

    async fn drop_staged(&mut self, _staged: Vec<Arc<Staged>>) {}

    async fn discard_older(&mut self, _incarnation: Incarnation) {}
}
