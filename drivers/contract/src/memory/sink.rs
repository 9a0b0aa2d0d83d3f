//! A sink in memory, of either kind.
//!
//! `WithData`: staged rows are kept aside, a commit makes them and the state visible in one act, by compare-and-set on the
//! token. `AfterData`: written rows are visible at once and idempotent by version; a commit only adds a state, without
//! asking what is there, and of all states the one with the highest (incarnation, commit) counts (rule R3).
//!
//! Rows have their versions, so a sweep removes those below the `begun` of its state: in the commit itself, or, `AfterData`, right
//! before its state is added, where nobody sees them any more since the generation began (rule G2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use async_trait::async_trait;
use kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::{PipelineState, TableState};
use rows::{ColumnChange, Netted, Operation, TableSchema};

use crate::{
    Capabilities, CommitRequest, Error, Finding, Kind, Mode, Recovered, Sink, SinkTable, Staged, StateWrite, TableCommitter,
    TableSink, TableWriter, Take, Versioned, allow_changes,
};

/// A row as a reader finds it.
#[derive(Clone, PartialEq, Debug)]
pub struct MemoryRow {
    /// What the log said had happened to it; for upserted rows the last of it.
    pub operation: Operation,
    /// Its version.
    pub version: Version,
    /// The row, a batch of one.
    pub data: RecordBatch,
}

/// A sink in memory. A clone is another process over the same place.
#[derive(Clone)]
pub struct MemorySink {
    place: Arc<Mutex<Place>>,
    kind: StateWrite,
}

#[derive(Default)]
struct Place {
    tables: BTreeMap<String, Table>,
    record: Option<PipelineState>,
    record_token: u64,
    /// The number of the last token handed out, for tables and the record alike: none repeats, after a rollback neither.
    tokens: u64,
}

struct Table {
    mode: Mode,
    /// `upsert`: the last image of each key, or its tombstone.
    rows: BTreeMap<Vec<u8>, Image>,
    /// `append`: every row in the order of its commit.
    appended: Vec<MemoryRow>,
    token: u64,
    /// Every state ever written and not rolled back, in the order of writing.
    states: Vec<Kept>,
    /// Attempts whose rows are in (`AfterData`).
    written: BTreeSet<AttemptId>,
}

#[derive(Clone)]
struct Image {
    version: Version,
    row: Option<MemoryRow>,
}

/// A state, and what its commit replaced.
struct Kept {
    state: TableState,
    token: u64,
    /// What was there before, in the order in which it was replaced or removed.
    replaced: Vec<(Vec<u8>, Option<Image>)>,
    /// How many rows `appended` had, and all of them if the commit removed them first.
    appended: usize,
    truncated: Vec<MemoryRow>,
}

impl MemorySink {
    /// An empty place.
    pub fn new(kind: StateWrite) -> Self {
        Self { place: Arc::default(), kind }
    }

    /// The rows of a table as its readers see them: by encoded key, or in the order of writing where each change is a row.
    pub fn rows(&self, target: &str) -> Vec<MemoryRow> {
        let place = self.lock();
        let Some(table) = place.tables.get(target) else { return Vec::new() };
        let begun = table.state(self.kind).map_or(Version(0), |kept| kept.state.begun);
        let visible = |row: &&MemoryRow| self.kind == StateWrite::WithData || row.version >= begun;
        let images = table.rows.values().filter_map(|image| image.row.as_ref());
        images.chain(&table.appended).filter(visible).cloned().collect()
    }

    /// What maintenance by somebody else does to a table (compaction): the same rows and state under another token.
    pub fn touch(&self, target: &str) {
        let mut place = self.lock();
        place.tokens += 1;
        let token = place.tokens;
        if let Some(table) = place.tables.get_mut(target) {
            table.token = token;
            if let Some(kept) = table.states.last_mut() {
                kept.token = token;
            }
        }
    }

    /// What an operator can do to a table: its last commit, data and state, is taken back. Of kind `WithData` only.
    pub fn roll_back(&self, target: &str) {
        let mut place = self.lock();
        place.tokens += 1;
        let token = place.tokens;
        if let Some(table) = place.tables.get_mut(target)
            && let Some(kept) = table.states.pop()
        {
            if !kept.truncated.is_empty() {
                table.appended = kept.truncated;
            }
            table.appended.truncate(kept.appended);
            for (key, image) in kept.replaced.into_iter().rev() {
                match image {
                    Some(image) => table.rows.insert(key, image),
                    None => table.rows.remove(&key),
                };
            }
            table.token = token;
        }
    }

    /// What a foreign hand does to a row of a keyed table: another row in its place, or none. State and token stay.
    pub fn tamper(&self, target: &str, key: &[u8], row: Option<RecordBatch>) {
        let mut place = self.lock();
        let Some(table) = place.tables.get_mut(target) else { return };
        let version = table.rows.get(key).map_or(Version(0), |image| image.version);
        let row = row.map(|data| MemoryRow { operation: Operation::Update, version, data });
        table.rows.insert(key.to_vec(), Image { version, row });
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        lock(&self.place)
    }
}

fn lock(place: &Mutex<Place>) -> MutexGuard<'_, Place> {
    // What is behind the lock is whole at every moment, so a panic elsewhere is no reason to stop.
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

fn token(number: u64) -> Token {
    Token::from(number.to_string())
}

impl Table {
    fn new(mode: Mode) -> Self {
        Self { mode, rows: BTreeMap::new(), appended: Vec::new(), token: 0, states: Vec::new(), written: BTreeSet::new() }
    }

    /// The state that counts.
    fn state(&self, kind: StateWrite) -> Option<&Kept> {
        match kind {
            StateWrite::WithData => self.states.last(),
            StateWrite::AfterData => self.states.iter().max_by_key(|kept| (kept.state.incarnation, kept.state.commit)),
        }
    }

    fn recovered(&self, kind: StateWrite) -> Recovered {
        let kept = self.state(kind);
        Versioned { value: kept.map(|kept| kept.state.clone()), token: token(self.token) }
    }

    /// Puts rows in, where they are the newest of their key. Answers what they replaced.
    fn apply(&mut self, rows: &Netted) -> Vec<(Vec<u8>, Option<Image>)> {
        let row = |index: usize| MemoryRow {
            operation: rows.upsert_tail.operations[index],
            version: rows.upsert_versions[index],
            data: rows.upserts.slice(index, 1),
        };
        if self.mode != Mode::Upsert {
            self.appended.extend((0..rows.upserts.num_rows()).map(row));
            return Vec::new();
        }
        let deletes = (0..rows.deletes.num_rows())
            .map(|index| (rows.delete_keys.key(index).to_vec(), Image { version: rows.delete_versions[index], row: None }));
        let upserts = (0..rows.upserts.num_rows()).map(|index| {
            let image = Image { version: rows.upsert_versions[index], row: Some(row(index)) };
            (rows.upsert_keys.key(index).to_vec(), image)
        });
        let mut replaced = Vec::new();
        for (key, image) in deletes.chain(upserts) {
            if self.rows.get(&key).is_none_or(|there| there.version <= image.version) {
                replaced.push((key.clone(), self.rows.insert(key, image)));
            }
        }
        replaced
    }

    /// Removes the images below a version, tombstones too. Answers what it removed.
    fn sweep(&mut self, begun: Version) -> Vec<(Vec<u8>, Option<Image>)> {
        let older: Vec<(Vec<u8>, Image)> = self.rows.extract_if(.., |_, image| image.version < begun).collect();
        older.into_iter().map(|(key, image)| (key, Some(image))).collect()
    }

    /// Without the rows that the table's state covers, if that is the table's mode.
    fn refuse_covered(&self, rows: Netted) -> Result<Netted, Error> {
        match (self.mode, self.states.last()) {
            (Mode::AppendIdempotent, Some(kept)) => without_covered(rows, &kept.state),
            _ => Ok(rows),
        }
    }
}

/// Everything that `state` does not cover.
fn without_covered(rows: Netted, state: &TableState) -> Result<Netted, Error> {
    let tail = &rows.upsert_tail;
    let transactions = tail.transactions.iter().flat_map(|run| std::iter::repeat_n(&run.transaction, run.rows));
    let new: Vec<bool> =
        transactions.zip(&tail.coordinates).map(|(transaction, at)| !state.cut.covers(transaction, *at)).collect();
    let upserts = filter_record_batch(&rows.upserts, &BooleanArray::from(new.clone())).map_err(|error| {
        Error::new(
            Kind::Fatal,
            "memory-rows",
            format!("rows and their tail do not fit together: {error}"),
            "report this as a bug",
        )
    })?;
    let mut kept = new.iter().copied();
    let mut versions = rows.upsert_versions;
    versions.retain(|_| kept.next().unwrap_or(false));
    let mut kept = new.iter().copied();
    let mut upsert_tail = rows.upsert_tail;
    upsert_tail.operations.retain(|_| kept.next().unwrap_or(false));
    Ok(Netted { upserts, upsert_versions: versions, upsert_tail, ..rows })
}

#[async_trait]
impl Sink for MemorySink {
    fn capabilities(&self) -> Capabilities {
        Capabilities { state: self.kind, writes_ahead: true, truncates: true, sweeps: true }
    }

    async fn preflight(&self, _tables: &[SinkTable]) -> Vec<Finding> {
        Vec::new()
    }

    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error> {
        self.lock().tables.entry(table.target.clone()).or_insert_with(|| Table::new(table.mode));
        Ok(())
    }

    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        let place = self.lock();
        Ok(Versioned { value: place.record.clone(), token: token(place.record_token) })
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        let mut place = self.lock();
        if token(place.record_token) != *expected {
            return StoreOutcome::Conflict { found: place.record.clone().map(Box::new), token: token(place.record_token) };
        }
        place.tokens += 1;
        place.record_token = place.tokens;
        place.record = Some(new.clone());
        StoreOutcome::Stored { token: token(place.record_token) }
    }

    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        let place = self.lock();
        let none = Versioned { value: None, token: token(0) };
        Ok(place.tables.get(&table.target).map_or(none, |table| table.recovered(self.kind)))
    }

    async fn scan(&self, table: &SinkTable, take: Take<'_>) -> Result<(), Error> {
        self.rows(&table.target).into_iter().try_for_each(|row| take(row.data))
    }

    fn follows(&self, table: &SinkTable, to: &TableSchema) -> Result<(), Error> {
        allow_changes(table, to, |change| {
            !matches!(change, ColumnChange::Key { .. } | ColumnChange::Renamed { of_key: true, .. })
        })
    }

    async fn open(&self, table: &SinkTable, _incarnation: Incarnation) -> Result<TableSink, Error> {
        if !self.lock().tables.contains_key(&table.target) {
            let what = format!("there is no table '{}'", table.target);
            return Err(Error::new(Kind::Config, "memory-no-table", what, "ensure the table first"));
        }
        let half = || OpenTable { place: Arc::clone(&self.place), kind: self.kind, target: table.target.clone() };
        Ok(TableSink { writer: Box::new(half()), committer: Box::new(half()) })
    }
}

/// Both halves of an open table.
struct OpenTable {
    place: Arc<Mutex<Place>>,
    kind: StateWrite,
    target: String,
}

#[async_trait]
impl TableWriter for OpenTable {
    async fn write(&mut self, attempt: AttemptId, rows: Netted) -> Result<Staged, Error> {
        let mut place = lock(&self.place);
        let Some(table) = place.tables.get_mut(&self.target) else {
            return Err(Error::new(Kind::Rejected, "memory-no-table", format!("'{}' is gone", self.target), "restart"));
        };
        let rows = table.refuse_covered(rows)?;
        if self.kind == StateWrite::AfterData && table.written.insert(attempt) {
            table.apply(&rows);
        }
        Ok(Box::new(rows))
    }
}

#[async_trait]
impl TableCommitter for OpenTable {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let mut place = lock(&self.place);
        let next = place.tokens + 1;
        let Some(table) = place.tables.get_mut(&self.target) else {
            return CommitOutcome::Rejected { why: format!("the table '{}' is gone", self.target) };
        };
        let staged: Option<Vec<&Netted>> = request.staged.iter().map(|staged| (***staged).downcast_ref()).collect();
        let Some(staged) = staged else {
            return CommitOutcome::Rejected { why: format!("what was staged for '{}' is of another sink", self.target) };
        };
        if self.kind == StateWrite::WithData && token(table.token) != request.token {
            let found = table.recovered(self.kind);
            return match found.value {
                Some(state) if state == request.state => CommitOutcome::Durable { token: found.token },
                state => CommitOutcome::Conflict { found: state.map(Box::new), token: found.token },
            };
        }
        if request.sweep && table.mode != Mode::Upsert {
            return CommitOutcome::Rejected { why: format!("'{}' is appended to: no generation of it is swept", self.target) };
        }
        let appended = table.appended.len();
        let (mut replaced, mut truncated) = (Vec::new(), Vec::new());
        if self.kind == StateWrite::WithData {
            if request.truncate_first {
                replaced.extend(std::mem::take(&mut table.rows).into_iter().map(|(key, image)| (key, Some(image))));
                truncated = std::mem::take(&mut table.appended);
            }
            staged.iter().for_each(|rows| replaced.extend(table.apply(rows)));
        }
        if request.sweep {
            replaced.extend(table.sweep(request.state.begun));
        }
        table.token = next;
        table.states.push(Kept { state: request.state.clone(), token: next, replaced, appended, truncated });
        place.tokens = next;
        CommitOutcome::Durable { token: token(next) }
    }

    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let place = lock(&self.place);
        let Some(table) = place.tables.get(&self.target) else { return Ok(Versioned { value: false, token: token(0) }) };
        let landed = table.states.iter().any(|kept| (kept.state.commit, kept.state.incarnation) == (commit, incarnation));
        Ok(Versioned { value: landed, token: token(table.token) })
    }

    /// Nothing to do: what is staged lives as long as its handle.
    async fn drop_staged(&mut self, _staged: Vec<Arc<Staged>>) {}

    /// Nothing to do, for the same reason.
    async fn discard_older(&mut self, _incarnation: Incarnation) {}
}
