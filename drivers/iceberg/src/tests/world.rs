//! A warehouse in a temporary directory, lives that write to it, somebody else who changes its tables, and faults.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use contract::rows::net::ReadRun;
use contract::rows::{Column, EncodedKeys, Netted, Operation, RowPhase, TableSchema, Tail, TransactionRun, Type};
use contract::{CommitRequest, Error, Mode, Peek, Sink, SinkTable, Staged, TableCommitter, TableWriter, async_trait};
use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention};
use iceberg::{NamespaceIdent, TableIdent, TableUpdate};
use kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use kernel::outcome::CommitOutcome;
use kernel::position::{Coordinate, Cut, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, TableState};
use serde_json::json;
use tempfile::TempDir;

use crate::catalog::{About, Catalog, Commit, Embedded, Loaded, NewTable, Outcome};
use crate::commit::Committer;
use crate::delta::{RowDelta, StagedDelta, stage};
use crate::open::OpenTable;
use crate::settings::Settings;
use crate::storage::{Failure, Input, Local, Output, Storage};
use crate::write::PartWriter;
use crate::{IcebergSink, table};

/// A warehouse.
pub(super) struct World {
    directory: TempDir,
    pub(super) storage: Arc<FaultyStorage>,
    pub(super) catalog: Arc<FaultyCatalog>,
    index_memory: u64,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with_index_memory(64 << 20)
    }

    pub(super) fn with_index_memory(index_memory: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let storage = Arc::new(FaultyStorage::default());
        let catalog = Arc::new(FaultyCatalog::new(directory.path(), Arc::clone(&storage) as Arc<dyn Storage>));
        Self { directory, storage, catalog, index_memory }
    }

    /// The sink as a new process would open it.
    pub(super) fn sink(&self) -> IcebergSink {
        let section = json!({"uri": self.directory.path(), "namespace": "shop", "keyIndex": {"memory": self.index_memory}});
        let settings = Settings::read(section.as_object().unwrap()).unwrap();
        IcebergSink::over(
            Arc::clone(&self.catalog) as Arc<dyn Catalog>,
            Arc::clone(&self.storage) as Arc<dyn Storage>,
            "desk",
            settings,
        )
    }

    /// The files of a table whose names end so.
    pub(super) async fn files(&self, target: &str, ending: &str) -> Vec<String> {
        let loaded = self.load(target).await;
        let directories = [crate::open::data_directory(&loaded), crate::open::metadata_directory(&loaded)];
        let mut files: Vec<String> = directories.iter().flat_map(|d| Local.list(d).unwrap()).collect();
        files.retain(|file| file.ends_with(ending));
        files
    }

    /// A table as the catalogue knows it now.
    pub(super) async fn load(&self, target: &str) -> Loaded {
        self.catalog.load(&ident(target)).await.unwrap().unwrap()
    }

    /// Somebody else changes a table.
    pub(super) async fn change(&self, target: &str, updates: Vec<TableUpdate>) {
        let base = self.load(target).await;
        let commit = Commit { base: &base, requirements: Vec::new(), updates, about: About::Record };
        let outcome = self.catalog.inner.commit(commit).await;
        assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    }

    /// Somebody else commits a snapshot: no state in its summary, no property of ours, no tag.
    pub(super) async fn foreign_snapshot(&self, target: &str, delta: RowDelta) -> i64 {
        let base = self.load(target).await;
        let staged = self.staged(&base, delta);
        self.storage.put(&staged.files).unwrap();
        let theirs = |update: &TableUpdate| match update {
            TableUpdate::AddSnapshot { .. } => true,
            TableUpdate::SetSnapshotRef { ref_name, .. } => ref_name == MAIN_BRANCH,
            _ => false,
        };
        self.change(target, staged.updates.iter().filter(|update| theirs(update)).cloned().collect()).await;
        staged.snapshot_id
    }

    fn staged(&self, base: &Loaded, delta: RowDelta) -> StagedDelta {
        let directory = crate::open::metadata_directory(base);
        let name = |what: &str| format!("{directory}/theirs-{what}-{}.avro", uuid::Uuid::new_v4());
        stage(&Local, base, delta, 0, &name).unwrap()
    }

    /// Somebody else makes an older snapshot the present one.
    pub(super) async fn roll_back(&self, target: &str, snapshot_id: i64) {
        let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
        self.change(target, vec![TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.into(), reference }]).await;
    }
}

/// A table of the namespace that all tests use.
pub(super) fn ident(target: &str) -> TableIdent {
    TableIdent::new(NamespaceIdent::new("shop".into()), target.into())
}

/// `id int64` (the key), `word string`.
pub(super) fn words(mode: Mode) -> SinkTable {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let columns = vec![column("id", Type::Int64), column("word", Type::String)];
    table_of("words", columns, &[0], mode)
}

pub(super) fn table_of(target: &str, columns: Vec<Column>, key: &[usize], mode: Mode) -> SinkTable {
    let schema = TableSchema { table: format!("desk.{target}").into(), columns, key: key.to_vec() };
    SinkTable { table: schema.table.clone(), target: target.into(), schema: Arc::new(schema), mode, metadata: Vec::new() }
}

/// Rows of [`words`].
pub(super) fn batch(table: &SinkTable, rows: &[(i64, &str)]) -> RecordBatch {
    let ids = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let words = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![Arc::new(ids), Arc::new(words)]).unwrap()
}

/// What a checkpoint does to a table; its rows come from the transaction at `at`.
pub(super) fn netted(table: &SinkTable, at: u64, upserts: RecordBatch, deletes: RecordBatch) -> Netted {
    let keys = |batch: &RecordBatch| match table.mode {
        Mode::Upsert => EncodedKeys::encode(&table.schema, batch).unwrap(),
        Mode::Append | Mode::AppendIdempotent => EncodedKeys::empty(batch.num_rows()),
    };
    let rows = upserts.num_rows();
    let transaction = Transaction { stream: "log".into(), at: Offset(at) };
    Netted {
        schema: Arc::clone(&table.schema),
        upsert_keys: keys(&upserts),
        upsert_versions: (0..rows as u64).map(Version).collect(),
        upsert_tail: Tail {
            operations: vec![Operation::Insert; rows],
            coordinates: (0..rows as u64).map(|major| Coordinate { major, minor: 0 }).collect(),
            transactions: vec![TransactionRun { transaction, rows, commit_time: Some(1_000) }],
            ingest_time: 2_000,
            phase: RowPhase::Stream,
        },
        upsert_reads: vec![ReadRun { rows, ingest_time: 2_000, phase: RowPhase::Stream }],
        delete_keys: keys(&deletes),
        delete_versions: (0..deletes.num_rows() as u64).map(Version).collect(),
        upserts,
        deletes,
    }
}

/// One life of a pipeline at one table.
pub(super) struct Life {
    pub(super) sink: IcebergSink,
    pub(super) table: SinkTable,
    pub(super) writer: PartWriter,
    pub(super) committer: Committer,
    pub(super) incarnation: Incarnation,
    pub(super) state: Option<TableState>,
    pub(super) token: Token,
    attempts: u64,
    commits: u64,
}

impl Life {
    /// Begins as R1 says: the table is ensured, its state read.
    pub(super) async fn begin(world: &World, table: &SinkTable, incarnation: u32) -> Self {
        let (sink, incarnation) = (world.sink(), Incarnation(incarnation));
        sink.ensure_table(table).await.unwrap();
        let recovered = sink.recover(table).await.unwrap();
        let found = world.load(&table.target).await;
        let layout = table::check(&found, table, "desk").unwrap();
        let open = Arc::new(OpenTable::new(&sink.shared, &found, table, layout, incarnation));
        Self {
            writer: PartWriter::new(Arc::clone(&open)),
            committer: Committer::new(open),
            sink,
            table: table.clone(),
            incarnation,
            state: recovered.value,
            token: recovered.token,
            attempts: 0,
            commits: 0,
        }
    }

    /// How far the table's copy goes.
    fn covered(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.cut.upto().offset(&"log".into()).0)
    }

    /// The state after the next commit.
    pub(super) fn next_state(&self) -> TableState {
        let mut ancestors = self.state.as_ref().map(|state| state.ancestors.clone()).unwrap_or_default();
        if let Some(state) = &self.state {
            ancestors.push(state.commit);
        }
        TableState {
            format: FORMAT,
            cut: Cut::at(Position::of("log".into(), Offset(self.covered() + 10))),
            identity: LogIdentity::default(),
            incarnation: self.incarnation,
            commit: CommitId { incarnation: self.incarnation, number: self.commits + 1 },
            ancestors,
            sequence: 0,
            generation: self.state.as_ref().map_or(0, |state| state.generation),
            base: Position::START,
            begun: Version(0),
            tiling: Vec::new(),
            in_doubt: Vec::new(),
            ahead: Position::START,
            schema: None,
        }
    }

    pub(super) async fn write_netted(&mut self, rows: Netted) -> Result<Arc<Staged>, Error> {
        self.attempts += 1;
        let attempt = AttemptId { incarnation: self.incarnation, number: self.attempts };
        self.writer.write(attempt, rows).await.map(Arc::new)
    }

    pub(super) async fn write(&mut self, upserts: &[(i64, &str)], deletes: &[i64]) -> Arc<Staged> {
        let deletes: Vec<(i64, &str)> = deletes.iter().map(|id| (*id, "")).collect();
        let rows = netted(&self.table, self.covered(), batch(&self.table, upserts), batch(&self.table, &deletes));
        self.write_netted(rows).await.unwrap()
    }

    pub(super) fn request(&self, staged: Vec<Arc<Staged>>) -> CommitRequest {
        CommitRequest {
            token: self.token.clone(),
            state: self.next_state(),
            staged,
            schema: None,
            truncate_first: false,
            sweep: false,
        }
    }

    pub(super) async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let outcome = self.committer.commit(request).await;
        if let CommitOutcome::Durable { token } = &outcome {
            self.commits = self.commits.max(request.state.commit.number);
            (self.state, self.token) = (Some(request.state.clone()), token.clone());
        }
        outcome
    }

    /// Writes and commits what must succeed.
    pub(super) async fn say(&mut self, upserts: &[(i64, &str)], deletes: &[i64]) {
        let staged = self.write(upserts, deletes).await;
        let request = self.request(vec![staged]);
        let outcome = self.commit(&request).await;
        assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
    }

    /// The commit that begins a generation: no data, another number.
    pub(super) fn beginning(&self, generation: u64) -> CommitRequest {
        let state = TableState { generation, ancestors: Ancestors::default(), ..self.next_state() };
        CommitRequest { state, ..self.request(Vec::new()) }
    }

    /// Begins a generation.
    pub(super) async fn begin_generation(&mut self, generation: u64) {
        let request = self.beginning(generation);
        let outcome = self.commit(&request).await;
        assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
    }

    /// Writes and commits the last rows of a generation, with the removal of what older ones left.
    pub(super) async fn sweep(&mut self, upserts: &[(i64, &str)], deletes: &[i64]) -> CommitOutcome {
        let staged = if upserts.is_empty() && deletes.is_empty() { Vec::new() } else { vec![self.write(upserts, deletes).await] };
        let request = CommitRequest { sweep: true, ..self.request(staged) };
        self.commit(&request).await
    }

    /// What a reader sees.
    pub(super) async fn rows(&self) -> BTreeMap<i64, String> {
        let ask = Peek { limit: usize::MAX, key: None };
        let mut rows = BTreeMap::new();
        for batch in self.sink.peek(&self.table, &ask).await.unwrap() {
            for row in rows_of(&batch) {
                let doubled = rows.insert(row.0, row.1);
                assert_eq!(doubled, None, "key {} has two rows", row.0);
            }
        }
        rows
    }

    /// The state as a new process would find it.
    pub(super) async fn recovered(&self) -> Option<TableState> {
        self.sink.recover(&self.table).await.unwrap().value
    }
}

pub(super) fn rows_of(batch: &RecordBatch) -> Vec<(i64, String)> {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let words = batch.column(1).as_string::<i32>();
    (0..batch.num_rows()).map(|row| (ids.value(row), words.value(row).to_owned())).collect()
}

/// Rows as a map, for comparison.
pub(super) fn expect(rows: &[(i64, &str)]) -> BTreeMap<i64, String> {
    rows.iter().map(|(id, word)| (*id, (*word).to_owned())).collect()
}

/// The local file system, but that chosen files cannot be made or written.
#[derive(Debug, Default)]
pub(super) struct FaultyStorage {
    /// Which part of a name fails, and how.
    pub(super) fails: Mutex<HashMap<String, io::ErrorKind>>,
}

impl FaultyStorage {
    pub(super) fn fail(&self, part: &str, kind: io::ErrorKind) {
        self.fails.lock().unwrap().insert(part.into(), kind);
    }

    pub(super) fn heal(&self) {
        self.fails.lock().unwrap().clear();
    }

    fn check(&self, action: &'static str, location: &str) -> Result<(), Failure> {
        let fails = self.fails.lock().unwrap();
        match fails.iter().find(|(part, _)| location.contains(part.as_str())) {
            Some((_, kind)) => Err(Failure::new(action, location, (*kind).into())),
            None => Ok(()),
        }
    }
}

impl Storage for FaultyStorage {
    fn create(&self, location: &str) -> Result<Box<dyn Output>, Failure> {
        self.check("create", location)?;
        Local.create(location)
    }

    fn put(&self, files: &[(String, Bytes)]) -> Result<(), Failure> {
        files.iter().try_for_each(|(location, _)| self.check("write", location))?;
        Local.put(files)
    }

    fn read(&self, location: &str) -> Result<Bytes, Failure> {
        Local.read(location)
    }

    fn open(&self, location: &str) -> Result<Arc<dyn Input>, Failure> {
        Local.open(location)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, Failure> {
        Local.list(directory)
    }

    fn delete(&self, location: &str) -> Result<(), Failure> {
        Local.delete(location)
    }
}

/// What the next commit to a catalogue meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// It is lost, and nobody knows.
    RequestLost,
    /// The catalogue does not answer, before anything was sent.
    Away,
}

/// The embedded catalogue, with faults.
#[derive(Debug)]
pub(super) struct FaultyCatalog {
    pub(super) inner: Embedded,
    /// What the next commits meet, the first first.
    pub(super) faults: Mutex<Vec<Fault>>,
}

impl FaultyCatalog {
    fn new(root: &Path, storage: Arc<dyn Storage>) -> Self {
        Self { inner: Embedded::new(&root.canonicalize().unwrap(), storage).unwrap(), faults: Mutex::default() }
    }

    pub(super) fn fail_next(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }

    fn next_fault(&self) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        (!faults.is_empty()).then(|| faults.remove(0))
    }
}

#[async_trait]
impl Catalog for FaultyCatalog {
    async fn load(&self, table: &TableIdent) -> Result<Option<Loaded>, Error> {
        self.inner.load(table).await
    }

    async fn create(&self, table: &TableIdent, new: NewTable) -> Result<Option<Loaded>, Error> {
        self.inner.create(table, new).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Outcome {
        match self.next_fault() {
            None => self.inner.commit(commit).await,
            Some(Fault::AnswerLost) => {
                let done = self.inner.commit(commit).await;
                assert!(matches!(done, Outcome::Committed { .. }), "{done:?}");
                Outcome::Unknown("the answer was lost".into())
            }
            Some(Fault::RequestLost) => Outcome::Unknown("the request was lost".into()),
            Some(Fault::Away) => {
                Outcome::Unsent(Error::new(contract::Kind::Transient, "iceberg-catalog", "the catalogue is away", "wait"))
            }
        }
    }

    fn compares_metadata(&self) -> bool {
        true
    }
}
