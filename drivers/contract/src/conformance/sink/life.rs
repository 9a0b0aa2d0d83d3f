//! One life of a pipeline, as far as a sink sees it: it recovers, claims where it must, writes and commits.

use std::sync::Arc;

use kernel::id::{AttemptId, CommitId, Identity, Incarnation, StreamName, Token, Version};
use kernel::outcome::CommitOutcome;
use kernel::position::{Cut, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Range, TableState};

use super::{SinkAbilities, SinkPlace};
use crate::conformance::tables::{self, Say, Word};
use crate::conformance::{Held, equal, failed};
use crate::{CommitRequest, Mode, Recovered, Sink, SinkTable, Staged, StateWrite, TableSink};

/// How much of the log one commit of the kit covers.
const STEP: u64 = 10;

/// A table, opened by a life of its own.
pub(super) struct Life<'a> {
    place: &'a dyn SinkPlace,
    reads_back: bool,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) table: SinkTable,
    pub(super) incarnation: Incarnation,
    /// What this life knows of the table: what it recovered, then what it committed.
    pub(super) known: Recovered,
    open: TableSink,
    attempts: u64,
    commits: u64,
    /// How many row versions were handed out.
    pub(super) sequence: u64,
}

impl<'a> Life<'a> {
    /// Opens the sink as a new process does, makes the table if it is not there, recovers, and claims where a sink needs it.
    pub(super) async fn begin(
        place: &'a dyn SinkPlace,
        abilities: &SinkAbilities,
        mode: Mode,
        incarnation: u32,
    ) -> Result<Life<'a>, String> {
        let sink = place.open().await.map_err(failed("opening the sink"))?;
        Self::over(place, abilities, sink, tables::sink_table(mode), incarnation).await
    }

    /// [`Life::begin`] in a sink that is open already.
    pub(super) async fn over(
        place: &'a dyn SinkPlace,
        abilities: &SinkAbilities,
        sink: Arc<dyn Sink>,
        table: SinkTable,
        incarnation: u32,
    ) -> Result<Life<'a>, String> {
        sink.ensure_table(&table).await.map_err(failed("ensuring the table"))?;
        let known = sink.recover(&table).await.map_err(failed("recovering the table"))?;
        let incarnation = Incarnation(incarnation);
        let open = sink.open(&table, incarnation).await.map_err(failed("opening the table"))?;
        let reads_back = abilities.reads_back;
        let mut life = Life { place, reads_back, sink, table, incarnation, known, open, attempts: 0, commits: 0, sequence: 0 };
        if life.sink.capabilities().state == StateWrite::AfterData {
            life.claim().await?;
        }
        Ok(life)
    }

    /// Writes the state that was found under this life's incarnation (rule R3).
    async fn claim(&mut self) -> Held {
        let state = match &self.known.value {
            Some(state) => TableState { incarnation: self.incarnation, ..state.clone() },
            None => TableState { commit: self.commit_id(0), cut: Cut::default(), ..self.next_state() },
        };
        let request = CommitRequest {
            token: self.known.token.clone(),
            state,
            staged: Vec::new(),
            schema: None,
            truncate_first: false,
            sweep: false,
        };
        self.durable(&request).await
    }

    fn commit_id(&self, number: u64) -> CommitId {
        CommitId { incarnation: self.incarnation, number }
    }

    /// The state of the next commit: a new commit id, a cut that goes further, the lineage.
    pub(super) fn next_state(&self) -> TableState {
        let known = self.known.value.as_ref();
        let mut ancestors = known.map(|state| state.ancestors.clone()).unwrap_or_default();
        if let Some(state) = known {
            ancestors.push(state.commit);
        }
        TableState {
            format: FORMAT,
            cut: Cut::at(Position::scalar(self.covered() + STEP)),
            identity: identity(),
            incarnation: self.incarnation,
            commit: self.commit_id(self.commits + 1),
            ancestors,
            sequence: self.sequence,
            generation: known.map_or(0, |state| state.generation),
            base: Position::START,
            begun: known.map_or(Version(0), |state| state.begun),
            tiling: known.map(|state| state.tiling.clone()).unwrap_or_default(),
            in_doubt: Vec::new(),
            ahead: Position::START,
            schema: None,
        }
    }

    /// How far the table's copy goes.
    fn covered(&self) -> u64 {
        self.known.value.as_ref().map_or(0, |state| state.cut.upto().offset(&StreamName::from("")).0)
    }

    /// Writes rows as one part. They come from a transaction right behind the table's cut.
    pub(super) async fn write(&mut self, says: &[Say]) -> Result<Arc<Staged>, String> {
        self.write_from(self.covered(), says).await
    }

    /// Writes rows that come from the transaction at an offset of the log.
    pub(super) async fn write_from(&mut self, at: u64, says: &[Say]) -> Result<Arc<Staged>, String> {
        let transaction = Transaction { stream: StreamName::from(""), at: Offset(at) };
        let netted = tables::netted(&self.table, says, &transaction, self.incarnation, self.sequence)?;
        self.sequence += says.len() as u64;
        self.attempts += 1;
        let attempt = AttemptId { incarnation: self.incarnation, number: self.attempts };
        let staged = self.open.writer.write(attempt, netted).await.map_err(failed("writing rows"))?;
        Ok(Arc::new(staged))
    }

    /// The next commit, of what was staged.
    pub(super) fn request(&self, staged: Vec<Arc<Staged>>) -> CommitRequest {
        CommitRequest {
            token: self.known.token.clone(),
            state: self.next_state(),
            staged,
            schema: None,
            truncate_first: false,
            sweep: false,
        }
    }

    /// Asks for a commit, whatever comes of it.
    pub(super) async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        self.commits = self.commits.max(request.state.commit.number);
        self.open.committer.commit(request).await
    }

    /// Asks for a commit that must succeed.
    pub(super) async fn durable(&mut self, request: &CommitRequest) -> Held {
        match self.commit(request).await {
            CommitOutcome::Durable { token } => {
                self.know(request.state.clone(), token);
                Ok(())
            }
            other => {
                Err(format!("commit {} on the token that is there: expected Durable, found {other:?}", request.state.commit))
            }
        }
    }

    /// Takes note of a commit that succeeded.
    pub(super) fn know(&mut self, state: TableState, token: Token) {
        self.known = Recovered { value: Some(state), token };
    }

    /// Writes rows and commits them.
    pub(super) async fn say(&mut self, says: &[Say]) -> Held {
        let staged = self.write(says).await?;
        let request = self.request(vec![staged]);
        self.durable(&request).await
    }

    pub(super) async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<bool, String> {
        let resolved = self.open.committer.resolve(commit, incarnation).await;
        resolved.map(|found| found.value).map_err(failed("resolving a commit"))
    }

    pub(super) async fn drop_staged(&mut self, staged: Vec<Arc<Staged>>) {
        self.open.committer.drop_staged(staged).await;
    }

    pub(super) async fn discard_older(&mut self) {
        self.open.committer.discard_older(self.incarnation).await;
    }

    /// Begins a generation: a commit without rows, whose `begun` lies above every version that any life has handed out.
    pub(super) async fn begin_generation(&mut self) -> Held {
        let mut request = self.request(Vec::new());
        request.state.generation += 1;
        request.state.ancestors = Ancestors::default();
        request.state.begun = Version::new(self.incarnation, self.sequence);
        request.state.tiling = vec![Range { end: None, durable: false }];
        self.sequence += 1;
        self.durable(&request).await
    }

    /// The last commit of a generation: rows, if there are any, and the removal of what older ones left.
    pub(super) async fn sweep(&mut self, says: &[Say]) -> Result<CommitRequest, String> {
        let staged = if says.is_empty() { Vec::new() } else { vec![self.write(says).await?] };
        let mut request = CommitRequest { sweep: true, ..self.request(staged) };
        request.state.tiling = Vec::new();
        self.durable(&request).await?;
        Ok(request)
    }

    /// What a reader sees now.
    pub(super) async fn seen(&mut self) -> Result<Vec<Word>, String> {
        self.place.visible_rows(&self.table).await.map_err(failed("reading the rows"))
    }

    /// A reader sees exactly these rows, in any order; not asked where a sink's rows cannot be read.
    pub(super) async fn rows_are(&mut self, when: &str, expected: &[(i64, &str)]) -> Held {
        if !self.reads_back {
            return Ok(());
        }
        let mut found = self.place.visible_rows(&self.table).await.map_err(failed("reading the rows"))?;
        let mut expected: Vec<Word> = expected.iter().map(|(id, word)| Word::new(*id, word)).collect();
        expected.sort();
        found.sort();
        equal(&format!("the rows {when}"), &expected, &found)
    }

    /// What the table's recovery finds now.
    pub(super) async fn recovered(&mut self) -> Result<Recovered, String> {
        self.sink.recover(&self.table).await.map_err(failed("recovering the table"))
    }

    /// The state that recovery finds is the one that this life knows.
    pub(super) async fn state_is_known(&mut self, when: &str) -> Held {
        let found = self.recovered().await?;
        equal(&format!("the state {when}"), &self.known.value, &found.value)
    }
}

/// The log that the kit's states are of.
pub(super) fn identity() -> LogIdentity {
    let identity = Identity::from("the kit's log");
    LogIdentity {
        streams: [(StreamName::from(""), identity.clone())].into(),
        coordinates: Some(identity),
        ..LogIdentity::default()
    }
}

/// Commits `(incarnation, number)` as a lineage.
pub(super) fn ancestors(commits: &[(u32, u64)]) -> Ancestors {
    let mut ancestors = Ancestors::default();
    for (incarnation, number) in commits {
        ancestors.push(CommitId { incarnation: Incarnation(*incarnation), number: *number });
    }
    ancestors
}
