//! Sinks that each break one law: the sink in memory behind a wrapper that spoils one thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use contract::arrow::array::RecordBatch;
use contract::conformance::Word;
use contract::conformance::sink::{SinkAbilities, SinkHarness, SinkPlace};
use contract::kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use contract::kernel::outcome::{CommitOutcome, StoreOutcome};
use contract::kernel::state::{PipelineState, TableState};
use contract::memory::MemorySink;
use contract::rows::{EncodedKeys, Netted};
use contract::{
    Capabilities, CommitRequest, Error, Finding, Mode, Recovered, Sink, SinkTable, Staged, StateWrite, TableCommitter, TableSink,
    TableWriter, Versioned, async_trait,
};

use crate::{forgetful, sinks};

/// What is wrong with a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    SaysOtherwise,
    CommitsFirstPartOnly,
    StateFirst,
    KeepsOldImages,
    IgnoresDeletes,
    IgnoresTruncate,
    IgnoresSweep,
    ForgetsBeginnings,
    SweepsEverything,
    MergesEqualRows,
    AddsCoveredRows,
    EmptiesOnStateOnly,
    SharesTokens,
    CommitsAgain,
    ResolvesEverything,
    HidesWhatItFound,
    TokensGoRound,
    LetsOlderLivesCommit,
    LatestNumberCounts,
    LatestRowWins,
    ReplacesAnyRecord,
    ForgetsFields,
    PublishesLeftovers,
    DropsEverythingStaged,
    DiscardsPublished,
    LosesStateToCompaction,
    TouchesOnPreflight,
}
use Fault::*;
use StateWrite::{AfterData, WithData};

pub(crate) const SINK_FAULTS: &[(Fault, &str, StateWrite)] = &[
    (SaysOtherwise, "sink-says-what-it-can", WithData),
    (CommitsFirstPartOnly, "state-and-data-move-together", WithData),
    (StateFirst, "a-torn-commit-is-whole-or-absent", WithData),
    (KeepsOldImages, "one-image-per-key", WithData),
    (IgnoresDeletes, "deletes-remove", WithData),
    (IgnoresTruncate, "truncate-first", WithData),
    (IgnoresSweep, "resnapshot-leaves-no-ghost", WithData),
    (ForgetsBeginnings, "resnapshot-leaves-no-ghost", WithData),
    (SweepsEverything, "a-sweep-spares-its-generation", WithData),
    (MergesEqualRows, "append-keeps-every-row-once", WithData),
    (AddsCoveredRows, "covered-rows-are-refused", WithData),
    (EmptiesOnStateOnly, "state-only-commit-keeps-data", WithData),
    (SharesTokens, "tables-are-independent", WithData),
    (CommitsAgain, "staged-published-at-most-once", WithData),
    (ResolvesEverything, "resolve-finds-what-landed", WithData),
    (ResolvesEverything, "resolve-finds-what-landed", AfterData),
    (HidesWhatItFound, "a-stale-token-conflicts", WithData),
    (TokensGoRound, "tokens-never-repeat", WithData),
    (LetsOlderLivesCommit, "a-superseded-life-cannot-commit", WithData),
    (LatestNumberCounts, "the-highest-state-counts", AfterData),
    (LatestRowWins, "the-highest-version-wins", AfterData),
    (ReplacesAnyRecord, "record-is-compare-and-set", WithData),
    (ForgetsFields, "recovery-gives-what-was-stored", WithData),
    (PublishesLeftovers, "staged-is-invisible", WithData),
    (DropsEverythingStaged, "cleaning-spares-the-published", WithData),
    (DiscardsPublished, "cleaning-spares-the-published", WithData),
    (LosesStateToCompaction, "state-survives-foreign-commits", WithData),
    (TouchesOnPreflight, "looking-changes-nothing", WithData),
];

pub(crate) struct BrokenSinks {
    pub(crate) fault: Fault,
    pub(crate) kind: StateWrite,
}

/// What the faults need to remember, over all openings of a place.
#[derive(Default)]
struct Memory {
    /// Every image that a key ever had, until it was deleted or the table was copied anew.
    images: BTreeMap<i64, Vec<Word>>,
    /// The wrong token of each right one, and the right one that it stands for now.
    tokens: BTreeMap<String, Token>,
    /// States, with their tables, in the order of writing.
    states: Vec<(String, TableState)>,
    targets: Vec<SinkTable>,
    /// What was staged and not committed.
    staged: Vec<(Weak<Staged>, Netted)>,
    /// The highest life that wrote.
    highest: Incarnation,
    /// Below which life rows are hidden.
    hidden: Incarnation,
    compacted: bool,
    dropped: bool,
}

#[derive(Clone)]
struct BrokenSink {
    inner: MemorySink,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

struct BrokenTable {
    sink: BrokenSink,
    table: SinkTable,
    inner: TableSink,
    /// The generation that began while this was open.
    began: Option<u64>,
}

#[async_trait]
impl SinkHarness for BrokenSinks {
    fn abilities(&self) -> SinkAbilities {
        sinks::abilities(self.kind)
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(BrokenSink { inner: MemorySink::new(self.kind), fault: self.fault, memory: Arc::default() }))
    }
}

#[async_trait]
impl SinkPlace for BrokenSink {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        Ok(Arc::new(self.clone()))
    }

    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error> {
        let memory = self.memory.lock().unwrap();
        let mut rows = self.inner.rows(&table.target);
        rows.retain(|row| row.version >= Version::new(memory.hidden, 0));
        let mut rows = sinks::words(&rows);
        if self.fault == KeepsOldImages && table.mode == Mode::Upsert {
            let old = |row: &Word| memory.images.get(&row.id).into_iter().flatten().filter(|old| *old != row).cloned().collect();
            rows = rows.iter().flat_map(|row| [old(row), vec![row.clone()]]).flatten().collect();
        }
        if self.fault == MergesEqualRows && table.mode == Mode::Append {
            rows.sort();
            rows.dedup();
        }
        Ok(rows)
    }

    async fn foreign_commit(&self, table: &SinkTable) -> Result<(), Error> {
        self.memory.lock().unwrap().compacted = true;
        self.inner.touch(&table.target);
        Ok(())
    }

    async fn roll_back(&self, table: &SinkTable) -> Result<(), Error> {
        self.inner.roll_back(&table.target);
        Ok(())
    }

    async fn tear(&self, table: &SinkTable, step: u32) -> Result<bool, Error> {
        match (step, self.fault) {
            (0, _) => self.inner.roll_back(&table.target),
            (1, StateFirst) => sinks::state_without_data(&self.inner, table).await?,
            (1, _) | (2, StateFirst) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl BrokenSink {
    /// The token that this sink shows for a right one.
    fn shown(&self, token: Token) -> Token {
        if self.fault != TokensGoRound {
            return token;
        }
        let round = (token.as_str().parse::<u64>().unwrap() % 4).to_string();
        self.memory.lock().unwrap().tokens.insert(round.clone(), token);
        Token::from(round)
    }

    /// The right token for one that this sink showed.
    fn meant(&self, token: &Token) -> Token {
        self.memory.lock().unwrap().tokens.get(token.as_str()).unwrap_or(token).clone()
    }

    /// What was staged by lives that ended without committing it.
    fn left_by_the_dead(&self) -> Vec<Netted> {
        let mut memory = self.memory.lock().unwrap();
        let (alive, dead): (Vec<_>, Vec<_>) =
            std::mem::take(&mut memory.staged).into_iter().partition(|(staged, _)| staged.strong_count() > 0);
        memory.staged = alive;
        dead.into_iter().map(|(_, rows)| rows).collect()
    }

    /// The generation of the newest state that was committed.
    fn generation_of(&self, table: &SinkTable) -> Option<u64> {
        let memory = self.memory.lock().unwrap();
        let mut of_table = memory.states.iter().rev().filter(|(target, _)| *target == table.target);
        of_table.next().map(|(_, state)| state.generation)
    }

    /// The table as the sink in memory is told about it.
    fn told(&self, table: &SinkTable) -> SinkTable {
        let lenient = self.fault == AddsCoveredRows && table.mode == Mode::AppendIdempotent;
        SinkTable { mode: if lenient { Mode::Append } else { table.mode }, ..table.clone() }
    }
}

#[async_trait]
impl Sink for BrokenSink {
    fn capabilities(&self) -> Capabilities {
        let right = self.inner.capabilities();
        Capabilities { writes_ahead: right.writes_ahead != (self.fault == SaysOtherwise), ..right }
    }

    async fn preflight(&self, tables: &[SinkTable]) -> Vec<Finding> {
        if self.fault == TouchesOnPreflight {
            tables.iter().for_each(|table| self.inner.touch(&table.target));
        }
        Vec::new()
    }

    async fn ensure_table(&self, table: &SinkTable) -> Result<(), Error> {
        self.memory.lock().unwrap().targets.push(table.clone());
        self.inner.ensure_table(&self.told(table)).await
    }

    async fn pipeline_state(&self) -> Result<Versioned<Option<PipelineState>>, Error> {
        self.inner.pipeline_state().await
    }

    async fn store_pipeline_state(&self, expected: &Token, new: &PipelineState) -> StoreOutcome {
        match self.inner.store_pipeline_state(expected, new).await {
            StoreOutcome::Conflict { token, .. } if self.fault == ReplacesAnyRecord => {
                self.inner.store_pipeline_state(&token, new).await
            }
            outcome => outcome,
        }
    }

    async fn recover(&self, table: &SinkTable) -> Result<Recovered, Error> {
        let mut found = self.inner.recover(table).await?;
        found.token = self.shown(found.token);
        let memory = self.memory.lock().unwrap();
        found.value = match self.fault {
            ForgetsFields => found.value.map(forgetful),
            LosesStateToCompaction if memory.compacted => None,
            LatestNumberCounts => {
                let states = memory.states.iter().filter(|(target, _)| *target == table.target).map(|(_, state)| state);
                states.max_by_key(|state| state.commit.number).cloned()
            }
            _ => found.value,
        };
        Ok(found)
    }

    async fn open(&self, table: &SinkTable, incarnation: Incarnation) -> Result<TableSink, Error> {
        let half = async || -> Result<BrokenTable, Error> {
            let inner = self.inner.open(table, incarnation).await?;
            Ok(BrokenTable { sink: self.clone(), table: table.clone(), inner, began: None })
        };
        Ok(TableSink { writer: Box::new(half().await?), committer: Box::new(half().await?) })
    }
}

#[async_trait]
impl TableWriter for BrokenTable {
    async fn write(&mut self, attempt: AttemptId, mut rows: Netted) -> Result<Staged, Error> {
        {
            let mut memory = self.sink.memory.lock().unwrap();
            for word in Word::all_of(&rows.deletes).unwrap() {
                memory.images.remove(&word.id);
            }
            for word in Word::all_of(&rows.upserts).unwrap() {
                memory.images.entry(word.id).or_default().push(word);
            }
            memory.highest = memory.highest.max(attempt.incarnation);
            if self.sink.fault == LatestRowWins && attempt.incarnation < memory.highest {
                let latest = |number: usize| Version::new(memory.highest, (1 << 40) + number as u64);
                rows.upsert_versions = (0..rows.upsert_versions.len()).map(latest).collect();
                rows.delete_versions = (0..rows.delete_versions.len()).map(latest).collect();
            }
        }
        if self.sink.fault == IgnoresDeletes {
            rows.deletes = RecordBatch::new_empty(rows.deletes.schema());
            (rows.delete_keys, rows.delete_versions) = (EncodedKeys::default(), Vec::new());
        }
        let inner = Arc::new(self.inner.writer.write(attempt, rows.clone()).await?);
        self.sink.memory.lock().unwrap().staged.push((Arc::downgrade(&inner), rows));
        Ok(Box::new(inner))
    }
}

impl BrokenTable {
    /// The request as the sink in memory is asked.
    async fn spoilt(&mut self, request: &CommitRequest) -> CommitRequest {
        let mut staged: Vec<Arc<Staged>> = request.staged.iter().map(unwrapped).collect();
        let state_only = staged.is_empty();
        match self.sink.fault {
            CommitsFirstPartOnly => staged.truncate(1),
            DropsEverythingStaged if self.sink.memory.lock().unwrap().dropped => staged.clear(),
            PublishesLeftovers => {
                let left = self.sink.left_by_the_dead();
                for rows in left {
                    let attempt = AttemptId { incarnation: request.state.incarnation, number: 1_000 };
                    staged.push(Arc::new(self.inner.writer.write(attempt, rows).await.unwrap()));
                }
            }
            _ => {}
        }
        let truncate_first = match self.sink.fault {
            IgnoresTruncate => false,
            EmptiesOnStateOnly => state_only || request.truncate_first,
            SweepsEverything => request.sweep || request.truncate_first,
            _ => request.truncate_first,
        };
        let sweep = match self.sink.fault {
            IgnoresSweep => false,
            ForgetsBeginnings => request.sweep && self.began == Some(request.state.generation),
            _ => request.sweep,
        };
        CommitRequest {
            token: self.sink.meant(&request.token),
            state: request.state.clone(),
            staged,
            schema: request.schema.clone(),
            truncate_first,
            sweep,
        }
    }
}

#[async_trait]
impl TableCommitter for BrokenTable {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        if self.sink.generation_of(&self.table) != Some(request.state.generation) {
            self.began = Some(request.state.generation);
        }
        let mut request = self.spoilt(request).await;
        let (again, compacted) = {
            let memory = self.sink.memory.lock().unwrap();
            (memory.states.iter().any(|(_, state)| state.commit == request.state.commit), memory.compacted)
        };
        if self.sink.fault == CommitsAgain && again {
            request.token = self.sink.inner.recover(&self.table).await.unwrap().token;
        }
        let mut outcome = self.inner.committer.commit(&request).await;
        if let CommitOutcome::Conflict { found: Some(found), token } = &outcome {
            match self.sink.fault {
                LetsOlderLivesCommit if found.incarnation > request.state.incarnation => {
                    request.token = token.clone();
                    outcome = self.inner.committer.commit(&request).await;
                }
                HidesWhatItFound if found.incarnation == request.state.incarnation && !compacted => {
                    outcome = CommitOutcome::Conflict { found: None, token: token.clone() };
                }
                _ => {}
            }
        }
        match outcome {
            CommitOutcome::Durable { token } => {
                self.landed(&request);
                CommitOutcome::Durable { token: self.sink.shown(token) }
            }
            CommitOutcome::Conflict { found, token } => CommitOutcome::Conflict { found, token: self.sink.shown(token) },
            other => other,
        }
    }

    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let found = self.inner.committer.resolve(commit, incarnation).await?;
        Ok(Versioned { value: found.value || self.sink.fault == ResolvesEverything, token: self.sink.shown(found.token) })
    }

    async fn drop_staged(&mut self, staged: Vec<Arc<Staged>>) {
        let mut memory = self.sink.memory.lock().unwrap();
        memory.dropped = true;
        let dropped: Vec<Arc<Staged>> = staged.iter().map(unwrapped).collect();
        memory.staged.retain(|(one, _)| !dropped.iter().any(|staged| one.as_ptr() == Arc::as_ptr(staged)));
    }

    async fn discard_older(&mut self, incarnation: Incarnation) {
        if self.sink.fault == DiscardsPublished {
            self.sink.memory.lock().unwrap().hidden = incarnation;
        }
    }
}

impl BrokenTable {
    fn landed(&self, request: &CommitRequest) {
        let mut memory = self.sink.memory.lock().unwrap();
        memory.states.push((self.table.target.clone(), request.state.clone()));
        if request.state.generation > 0 {
            memory.images.clear();
        }
        let committed = |staged: &Weak<Staged>| request.staged.iter().any(|one| staged.as_ptr() == Arc::as_ptr(one));
        memory.staged.retain(|(staged, _)| !committed(staged));
        if self.sink.fault == SharesTokens {
            let others = memory.targets.iter().filter(|table| table.target != self.table.target);
            others.for_each(|table| self.sink.inner.touch(&table.target));
        }
    }
}

/// What the sink in memory staged.
fn unwrapped(staged: &Arc<Staged>) -> Arc<Staged> {
    Arc::clone((***staged).downcast_ref::<Arc<Staged>>().unwrap())
}
