//! The pump's environment on tokio: real drivers behind the kernel's commands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use contract::{CommitRequest, Error, Kind, Limit, LogReader, Sink, Source, TableCommitter, TableWriter};
use kernel::coordinator::{Coordinator, Restart, Visibility};
use kernel::id::{AttemptId, Bound, CommitId, Incarnation, Session, TableName, Token, TransactionName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::Position;
use kernel::state::{PipelineState, TableState};
use kernel::time::Time;
use pump::{Chunk, Commit, Failure, Notice, OpenedLog, RowsAgain, RowsWanted, SnapshotChunk, SnapshotRead};
use rows::filter::Filter;
use rows::shape::Missing;
use rows::{Netted, TableSchema};
use tokio::sync::{Mutex, OnceCell};

use crate::again;
use crate::chunks;
use crate::convert;
use crate::plan::TablePlan;
use crate::report::Reporter;
use crate::schemas::{Agreed, Schemas};
use crate::stored::Stored;

/// The world of one run.
pub(crate) struct TokioEnv {
    begun: Instant,
    source: Arc<dyn Source>,
    sink: Arc<dyn Sink>,
    plans: BTreeMap<TableName, TablePlan>,
    /// The tables as source and sink agreed on them, once this life has its incarnation.
    agreed: OnceCell<BTreeMap<TableName, Agreed>>,
    opened: OnceCell<BTreeMap<TableName, OpenTable>>,
    reader: Mutex<Option<Box<dyn LogReader>>>,
    sessions: AtomicU64,
    schemas: Schemas,
    rows_per_read: usize,
    reporter: Arc<Reporter>,
}

/// A table that is open for writing in this life.
struct OpenTable {
    writer: Mutex<Box<dyn TableWriter>>,
    committer: Mutex<Box<dyn TableCommitter>>,
}

impl TokioEnv {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        sink: Arc<dyn Sink>,
        plans: BTreeMap<TableName, TablePlan>,
        follows_schemas: bool,
        rows_per_read: usize,
        reporter: Arc<Reporter>,
    ) -> Self {
        Self {
            begun: Instant::now(),
            schemas: Schemas::new(Arc::clone(&sink), follows_schemas),
            source,
            sink,
            plans,
            agreed: OnceCell::new(),
            opened: OnceCell::new(),
            reader: Mutex::new(None),
            sessions: AtomicU64::new(0),
            rows_per_read,
            reporter,
        }
    }

    /// Source and sink agree on every table: described under the schema that its copy was made with, made at the target.
    async fn agree(&self) -> Result<&BTreeMap<TableName, Agreed>, Error> {
        self.agreed
            .get_or_try_init(|| async {
                let mut stored = BTreeMap::new();
                for (name, plan) in &self.plans {
                    let state = self.sink.recover(&plan.before_described()).await?.value;
                    if let Some(text) = state.and_then(|s| s.schema) {
                        let of_copy = Stored::read(name, &text)?;
                        of_copy.check(&plan.wanted)?;
                        stored.insert(name.clone(), Arc::new(of_copy.schema));
                    }
                }
                let requests: Vec<_> = self.plans.values().map(|p| p.request.clone()).collect();
                self.source.prepare(&requests).await?;
                let described = self.source.describe(&requests, &stored).await?;
                let mut agreed = BTreeMap::new();
                for table in described {
                    let name = table.schema.table.clone();
                    let Some(plan) = self.plans.get(&name) else { continue };
                    let missing = if stored.contains_key(&name) { Missing::Gone } else { Missing::Refused };
                    if table.inferred && missing == Missing::Refused {
                        self.reporter.inferred(&table.schema);
                    }
                    let table = Agreed::new(plan, table.schema, missing)?;
                    self.sink.ensure_table(&table.at_target()).await?;
                    agreed.insert(name, table);
                }
                if let Some(missing) = self.plans.keys().find(|name| !agreed.contains_key(*name)) {
                    let what = format!("table {missing}: the source did not describe it");
                    return Err(Error::new(Kind::Fatal, "source-describe", what, "this is a fault of the source driver"));
                }
                Ok(agreed)
            })
            .await
    }

    async fn open_tables(&self, incarnation: Incarnation) -> Result<(), Error> {
        let agreed = self.agree().await?;
        let open = || async {
            let mut open = BTreeMap::new();
            for (name, table) in agreed {
                let sink = self.sink.open(&table.at_target(), incarnation).await?;
                open.insert(name.clone(), OpenTable { writer: Mutex::new(sink.writer), committer: Mutex::new(sink.committer) });
            }
            Ok::<_, Error>(open)
        };
        self.opened.get_or_try_init(open).await?;
        self.schemas.agree(agreed);
        Ok(())
    }

    fn open_table(&self, table: &TableName) -> Option<&OpenTable> {
        self.opened.get().and_then(|open| open.get(table))
    }

    async fn stream(&self, restart: &Restart) -> Result<Box<dyn LogReader>, Error> {
        let schemas = self.schemas.begin(self.agree().await?, &restart.schemas)?;
        let start = contract::Start { from: restart.from.clone(), stands: restart.stands.clone() };
        self.source.stream(&start, &schemas).await
    }
}

/// What is tried again by itself is in the log all the same: it may stay so.
fn warn_if_lost(failure: &LogFailure) {
    if let LogFailure::SessionLost { why } = failure {
        tracing::warn!(why, "the source's log is not read; it is tried again");
    }
}

#[async_trait]
impl pump::Env for TokioEnv {
    type Staged = contract::Staged;

    fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, at: Time) {
        let now = self.now();
        if at > now {
            tokio::time::sleep(std::time::Duration::from_micros(at.0 - now.0)).await;
        }
    }

    async fn compute<T: Send + 'static>(&self, work: Box<dyn FnOnce() -> T + Send>) -> T {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            // Only a panic of the work itself can end here: pass it on, the process must not go on half done.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    async fn read_pipeline_state(&self) -> Result<(Option<PipelineState>, Token), Failure> {
        let found = self.sink.pipeline_state().await.map_err(convert::failure)?;
        Ok((found.value, found.token))
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        self.sink.store_pipeline_state(expected, new).await
    }

    async fn recover_table(&self, table: &TableName) -> Result<(Option<TableState>, Token), Failure> {
        let agreed = self.agree().await.map_err(convert::failure)?;
        let Some(known) = agreed.get(table) else {
            return Err(Failure::Refused(format!("table {table} is not part of the pipeline")));
        };
        let found = self.sink.recover(&known.at_target()).await.map_err(convert::failure)?;
        Ok((found.value, found.token))
    }

    async fn open_log(&self, incarnation: Incarnation) -> Result<OpenedLog, LogFailure> {
        *self.reader.lock().await = None;
        self.open_tables(incarnation).await.map_err(convert::opening_failure)?;
        let log = self.source.open().await.map_err(convert::opening_failure).inspect_err(warn_if_lost)?;
        let session = Session(self.sessions.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(OpenedLog { session, identity: log.identity, floor: log.floor, end: log.end })
    }

    async fn read_log(&self, restart: Option<&Restart>, bytes_max: u64) -> Result<Chunk, LogFailure> {
        let mut reader = self.reader.lock().await;
        if let Some(restart) = restart {
            *reader = None;
            *reader = Some(self.stream(restart).await.map_err(convert::reading_failure).inspect_err(warn_if_lost)?);
        }
        let Some(open) = reader.as_mut() else {
            return Err(LogFailure::SessionLost { why: "the log is not open".into() });
        };
        let limit = Limit { rows: self.rows_per_read, bytes: bytes_max };
        let read = open.next(limit).await.map_err(convert::reading_failure).inspect_err(warn_if_lost)?;
        self.reporter.read(&read);
        convert::chunk(read, &self.schemas).map_err(|error| LogFailure::Config { why: error.to_string() })
    }

    async fn plan_ranges(&self, table: &TableName, wanted: u32) -> Result<Vec<Bound>, Failure> {
        chunks::plan_ranges(self.source.as_ref(), &self.schemas, table, wanted).await
    }

    async fn read_chunk(&self, read: SnapshotRead) -> Result<SnapshotChunk, Failure> {
        chunks::read(self.source.as_ref(), &self.schemas, read).await
    }

    async fn read_visibility(&self, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Failure> {
        chunks::visibility(self.source.as_ref(), about, unfinished).await
    }

    fn reads_rows(&self) -> bool {
        self.source.rows_by_key().is_some()
    }

    async fn read_rows(&self, wanted: RowsWanted) -> Result<RowsAgain, Failure> {
        again::read(self.source.as_ref(), &self.schemas, wanted).await
    }

    async fn acknowledge(&self, _session: Session, upto: &Position) {
        if let Err(error) = self.source.acknowledge(upto).await {
            // It is said again in the next session; until then the source keeps more than it must.
            tracing::warn!(%error, position = %upto, "the source did not take an acknowledgement");
        }
    }

    /// That fault is to be found by those who read the copy: whether they would is what is asked.
    #[cfg(feature = "failpoints")]
    fn checks_rules(&self) -> bool {
        cfg!(debug_assertions) && !crate::plan::fences_by_position()
    }

    fn filter(&self, schema: &TableSchema) -> Option<Arc<Filter>> {
        self.schemas.filter(schema)
    }

    fn keeps_every_row(&self, table: &TableName) -> bool {
        self.plans.get(table).is_some_and(|plan| plan.mode != contract::Mode::Upsert)
    }

    async fn write(&self, table: &TableName, attempt: AttemptId, rows: Netted) -> (WriteOutcome, Option<contract::Staged>) {
        let Some(open) = self.open_table(table) else { return (WriteOutcome::Rejected { why: not_open(table) }, None) };
        let Some(shape) = self.schemas.shape_of_narrowed(&rows.schema) else {
            let why =
                format!("table {table}: its columns changed in a way that was not followed; copy it anew into another target");
            return (WriteOutcome::Rejected { why }, None);
        };
        let rows = match self.compute(Box::new(move || shape.apply(rows))).await {
            Ok(rows) => rows,
            Err(error) => return (WriteOutcome::Rejected { why: error.to_string() }, None),
        };
        match open.writer.lock().await.write(attempt, rows).await {
            Ok(staged) => (WriteOutcome::Written, Some(staged)),
            Err(error) => (convert::write_outcome(error), None),
        }
    }

    async fn commit(&self, commit: Commit<'_, contract::Staged>) -> CommitOutcome {
        let Commit { table, token, state, staged, truncate_first, sweep } = commit;
        let Some(open) = self.open_table(table) else { return CommitOutcome::Rejected { why: not_open(table) } };
        let Some(known) = self.agreed.get().and_then(|agreed| agreed.get(table)) else {
            return CommitOutcome::Rejected { why: not_open(table) };
        };
        let mut state = state.clone();
        let schema = match state.schema.as_deref().map(|text| known.changed(text)).transpose() {
            Ok(schema) => schema,
            Err(error) => return CommitOutcome::Rejected { why: error.to_string() },
        };
        if state.schema.is_none() {
            state.schema = Stored::write(&known.schema, &known.plan.wanted).ok();
        }
        let begun = Instant::now();
        let request = CommitRequest { token: token.clone(), state, staged, schema, truncate_first, sweep };
        let outcome = open.committer.lock().await.commit(&request).await;
        self.reporter.committed(table, &outcome, begun.elapsed());
        outcome
    }

    async fn resolve(&self, table: &TableName, commit: CommitId, incarnation: Incarnation) -> Result<(bool, Token), Failure> {
        let Some(open) = self.open_table(table) else { return Err(Failure::Refused(not_open(table))) };
        let found = open.committer.lock().await.resolve(commit, incarnation).await.map_err(convert::failure)?;
        Ok((found.value, found.token))
    }

    async fn delete_staged(&self, table: &TableName, staged: Arc<contract::Staged>) {
        if let Some(open) = self.open_table(table) {
            open.committer.lock().await.drop_staged(vec![staged]).await;
        }
    }

    async fn discard_older(&self, table: &TableName, incarnation: Incarnation) {
        if let Some(open) = self.open_table(table) {
            open.committer.lock().await.discard_older(incarnation).await;
        }
    }

    fn notice(&self, notice: Notice) {
        self.reporter.notice(notice);
    }

    fn observe(&self, coordinator: &Coordinator) {
        self.reporter.observe(coordinator);
    }
}

fn not_open(table: &TableName) -> String {
    format!("table {table} is not open for writing: a fault in urutau itself")
}
