//! A commit: staged parts and the state become visible in one swap of the table's metadata.
//!
//! The order of what is made durable: data files (by the writer, before), vectors, manifests and their list, metadata, the
//! swap. Each is flushed before something names it. Up to the swap everything may be done again with the same request:
//! data files are used as they are, the rest is written anew, since it depends on the snapshot that it is built upon.
//!
//! What became of it is told as it is (rule C5). A commit that is already in the table's history is durable, whatever the
//! token. If the token is not the table's, nothing is staged. What was written for a swap that certainly did not happen is
//! deleted; if nobody knows, nothing is.

mod judge;
mod prepare;
mod sweep;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use contract::{CommitRequest, Error, Kind, Staged, TableCommitter, Versioned, async_trait};
use kernel::id::{CommitId, Incarnation};
use kernel::outcome::CommitOutcome;
use rows::TableSchema;

use self::judge::{has_data, judge};
use self::prepare::{Job, Prepared, index_at};
use self::sweep::removes;
use crate::blocking;
use crate::catalog::{About, Commit, Loaded, Outcome};
use crate::delta::{garbage, requirements, unnamed};
use crate::index::KeyIndex;
use crate::open::OpenTable;
use crate::state::{Began, Standing, entries, properties, standing, token};
use crate::table::{self, Step};
use crate::write::StagedPart;

/// Commits to one table.
pub(crate) struct Committer {
    table: Arc<OpenTable>,
    /// Where each key's row is, at some snapshot. `None`: to be built, or rows are only appended.
    index: Option<KeyIndex>,
}

impl Committer {
    pub(crate) fn new(table: Arc<OpenTable>) -> Self {
        Self { table, index: None }
    }

    /// Builds the key index now, so that the first commit need not.
    pub(crate) async fn build_index(&mut self) -> Result<(), Error> {
        if !self.table.is_keyed() {
            return Ok(());
        }
        let loaded = table::existing(self.table.catalog.as_ref(), &self.table.ident).await?;
        let (table, index) = (Arc::clone(&self.table), self.index.take());
        let step = self.table.step(None)?;
        self.index = Some(blocking::run(move || index_at(&table, &step, index, &loaded)).await?);
        Ok(())
    }

    /// Where the row of each of some integer keys is.
    #[cfg(test)]
    pub(crate) async fn places(&mut self, keys: std::ops::Range<i64>) -> std::collections::BTreeMap<i64, (String, u32)> {
        self.build_index().await.unwrap();
        let index = self.index.as_ref().unwrap();
        let column: arrow_array::ArrayRef = Arc::new(arrow_array::Int64Array::from_iter_values(keys.clone()));
        let encoded = rows::EncodedKeys::encode_columns(&[column], &[rows::Type::Int64]).unwrap();
        let place = |(row, key)| {
            let (file, place) = index.place(&self.table.fingerprints.of(encoded.key(row)))?;
            Some((key, (file.to_string(), place)))
        };
        keys.enumerate().filter_map(place).collect()
    }

    async fn try_commit(&mut self, request: &CommitRequest) -> Result<CommitOutcome, Error> {
        #[cfg_attr(not(feature = "failpoints"), expect(unused_mut, reason = "only a fault changes it"))]
        let mut loaded = table::existing(self.table.catalog.as_ref(), &self.table.ident).await?;
        let found = standing(&self.table.storage, &loaded).await?;
        if let Some(outcome) = judge(request, &found, token(&loaded)) {
            return Ok(outcome);
        }
        let began = Began::of(&request.state, &found, &loaded.metadata);
        #[cfg(feature = "failpoints")]
        if crate::failpoint::state_first() {
            loaded = self.commit_state_first(&loaded, request, began).await?;
        }
        let is_state_only =
            !has_data(request) && found.describes_same_data(&request.state) && !self.changes_columns(request, &loaded)?;
        if is_state_only && self.table.catalog.compares_metadata() {
            return self.commit_state(&loaded, &found, request, began).await;
        }
        self.commit_data(loaded, request, began).await
    }

    /// Rows lie in the table under the schema that its state names, or a reader would not find their columns
    /// (`schema-before-its-rows`).
    fn check_parts(&self, request: &CommitRequest, step: &Step) -> Result<(), Error> {
        // That a source says by now which column is which changes nothing about the rows.
        let is_of = |source: &TableSchema| *source == *step.source || source.changes(&step.source).is_empty();
        if parts(&request.staged).iter().all(|part| is_of(&part.step.source)) {
            return Ok(());
        }
        let what = format!("table '{}': rows of other columns than its state names were to be committed", self.table.ident);
        Err(Error::new(Kind::Rejected, "iceberg-fault", what, "this is a fault in urutau: please report it"))
    }

    fn changes_columns(&self, request: &CommitRequest, loaded: &Loaded) -> Result<bool, Error> {
        let step = self.table.step(request.schema.as_ref())?;
        Ok(self.table.layouts.change(&step, &loaded.metadata)?.is_some())
    }

    /// A state of the same data: the properties change, no snapshot is made.
    async fn commit_state(
        &mut self,
        base: &Loaded,
        found: &Standing,
        request: &CommitRequest,
        began: Option<Began>,
    ) -> Result<CommitOutcome, Error> {
        let updates = properties(&base.metadata, &self.table.pipeline, &request.state, began, found.snapshot);
        let commit = Commit { base, requirements: requirements(&base.metadata), updates, about: About::Data };
        match self.table.catalog.commit(commit).await {
            Outcome::Committed { now, forgotten } => {
                blocking::delete_quietly(Arc::clone(&self.table.storage), forgotten).await;
                Ok(CommitOutcome::Durable { token: token(&now) })
            }
            Outcome::Conflict => self.judge_anew(request).await,
            Outcome::Unknown(why) => Ok(CommitOutcome::Unknown { why }),
            Outcome::Unsent(e) => Err(e),
            Outcome::Refused(why) => Err(refused(&self.table, &why)),
        }
    }

    async fn commit_data(&mut self, base: Loaded, request: &CommitRequest, began: Option<Began>) -> Result<CommitOutcome, Error> {
        let step = self.table.step(request.schema.as_ref())?;
        self.check_parts(request, &step)?;
        let job = Job {
            table: Arc::clone(&self.table),
            base: base.clone(),
            schema: self.table.layouts.change(&step, &base.metadata)?,
            step,
            staged: request.staged.clone(),
            removes: removes(&self.table, request, began)?,
            summary: entries(&self.table.pipeline, &request.state, began),
        };
        let index = self.index.take();
        let (index, prepared) = blocking::run(move || Ok(job.prepare(index))).await?;
        self.index = index;
        let prepared = prepared?;
        let mut updates = prepared.delta.updates.clone();
        let snapshot = Some(prepared.delta.snapshot_id);
        updates.extend(properties(&base.metadata, &self.table.pipeline, &request.state, began, snapshot));
        let commit = Commit { base: &base, requirements: prepared.delta.requirements.clone(), updates, about: About::Data };
        match self.table.catalog.commit(commit).await {
            Outcome::Committed { now, forgotten } => {
                self.finish(base, &now, request, prepared, forgotten).await;
                Ok(CommitOutcome::Durable { token: token(&now) })
            }
            // Nothing is deleted: it may have happened, it may happen yet.
            Outcome::Unknown(why) => {
                self.settle();
                Ok(CommitOutcome::Unknown { why })
            }
            Outcome::Conflict => {
                self.give_up(prepared).await;
                self.judge_anew(request).await
            }
            Outcome::Unsent(e) => {
                self.give_up(prepared).await;
                Err(e)
            }
            Outcome::Refused(why) => {
                self.give_up(prepared).await;
                Err(refused(&self.table, &why))
            }
        }
    }

    /// The commit is durable: the index follows, and what nothing names any more goes.
    async fn finish(
        &mut self,
        before: Loaded,
        now: &Loaded,
        request: &CommitRequest,
        prepared: Prepared,
        forgotten: Vec<String>,
    ) {
        let (index, after, staged) = (self.index.take(), now.clone(), request.staged.clone());
        let table = Arc::clone(&self.table);
        let finished = blocking::run(move || {
            let Prepared { delta, located, made, .. } = prepared;
            let index = index.map(|mut index| {
                index.apply(parts(&staged).into_iter(), &located, &made);
                index
            });
            let dead = garbage(table.storage.as_ref(), &before.metadata, &after.metadata, &delta.expired).unwrap_or_else(|e| {
                tracing::warn!(table = %table.ident, error = %e, "files of expired snapshots could not be found; a later start removes them");
                Vec::new()
            });
            Ok((index, dead))
        });
        match finished.await {
            Ok((index, mut dead)) => {
                self.index = index;
                dead.extend(forgotten);
                blocking::delete_quietly(Arc::clone(&self.table.storage), dead).await;
            }
            // The commit stands; the index is built anew.
            Err(e) => tracing::error!(table = %self.table.ident, error = %e, "the key index could not follow a commit"),
        }
    }

    /// The swap did not happen: what was written for it goes.
    async fn give_up(&mut self, prepared: Prepared) {
        self.settle();
        let files = prepared.written;
        blocking::delete_quietly(Arc::clone(&self.table.storage), files).await;
    }

    fn settle(&mut self) {
        if let Some(index) = &mut self.index {
            // Less than before: always granted.
            let _ = index.settle();
        }
    }

    /// What the table says after a lost race.
    async fn judge_anew(&self, request: &CommitRequest) -> Result<CommitOutcome, Error> {
        let loaded = table::existing(self.table.catalog.as_ref(), &self.table.ident).await?;
        let (found, token) = (standing(&self.table.storage, &loaded).await?, token(&loaded));
        Ok(judge(request, &found, token.clone()).unwrap_or(CommitOutcome::Conflict { found: found.state.map(Box::new), token }))
    }

    /// The fault that crash tests must notice: the state is visible before its data.
    #[cfg(feature = "failpoints")]
    async fn commit_state_first(&self, base: &Loaded, request: &CommitRequest, began: Option<Began>) -> Result<Loaded, Error> {
        use crate::delta::{RowDelta, stage};
        let delta = RowDelta { summary: entries(&self.table.pipeline, &request.state, began), ..RowDelta::default() };
        let (table, at) = (Arc::clone(&self.table), base.clone());
        let staged = blocking::run(move || {
            let staged = stage(table.storage.as_ref(), &at, delta, now_ms(), &prepare::names(&table, &at))?;
            table.storage.put(&staged.files)?;
            Ok(staged)
        });
        let staged = staged.await?;
        let commit = Commit { base, requirements: staged.requirements, updates: staged.updates, about: About::Record };
        match self.table.catalog.commit(commit).await {
            Outcome::Committed { now, .. } => Ok(now),
            other => Err(refused(&self.table, &format!("{other:?}"))),
        }
    }
}

#[async_trait]
impl TableCommitter for Committer {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let outcome = self.try_commit(request).await;
        outcome.unwrap_or_else(|e| match e.kind {
            Kind::Rejected | Kind::Config | Kind::Fatal => CommitOutcome::Rejected { why: e.to_string() },
            Kind::Transient | Kind::PositionLost | Kind::Poison => CommitOutcome::Transient { why: e.to_string() },
        })
    }

    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let loaded = table::existing(self.table.catalog.as_ref(), &self.table.ident).await?;
        let is_there = standing(&self.table.storage, &loaded).await?.state.is_some_and(|found| {
            let is_newest = found.commit == commit && found.incarnation == incarnation;
            is_newest || (commit.incarnation == incarnation && found.ancestors.contains(commit))
        });
        Ok(Versioned { value: is_there, token: token(&loaded) })
    }

    async fn drop_staged(&mut self, staged: Vec<Arc<Staged>>) {
        let files = parts(&staged).iter().flat_map(|part| &part.files).map(|staged| staged.file.file_path().to_owned()).collect();
        blocking::delete_quietly(Arc::clone(&self.table.storage), files).await;
    }

    async fn discard_older(&mut self, incarnation: Incarnation) {
        let found = match table::existing(self.table.catalog.as_ref(), &self.table.ident).await {
            Ok(loaded) => loaded,
            Err(e) => return tracing::debug!(table = %self.table.ident, error = %e, "what older lives left stays for now"),
        };
        // Only a commit of this life makes sure that an older one cannot publish any more.
        let standing = standing(&self.table.storage, &found).await;
        let ours = standing.is_ok_and(|s| s.state.is_some_and(|state| state.incarnation == incarnation));
        if !ours {
            return;
        }
        let table = Arc::clone(&self.table);
        let files = blocking::run(move || unnamed(table.storage.as_ref(), &found, incarnation));
        match files.await {
            Ok(files) => {
                if !files.is_empty() {
                    tracing::info!(table = %self.table.ident, files = files.len(), "files that older lives left are deleted");
                }
                blocking::delete_quietly(Arc::clone(&self.table.storage), files).await;
            }
            Err(e) => tracing::debug!(table = %self.table.ident, error = %e, "what older lives left stays for now"),
        }
    }
}

/// What a writer staged, as it was before it became opaque. Others than ours cannot be: each table has its own writer.
fn parts(staged: &[Arc<Staged>]) -> Vec<&StagedPart> {
    staged.iter().filter_map(|staged| staged.downcast_ref::<StagedPart>()).collect()
}

fn refused(table: &OpenTable, why: &str) -> Error {
    let what = format!("the catalogue refuses a commit to table '{}': {why}", table.ident);
    Error::new(
        Kind::Rejected,
        "iceberg-commit-refused",
        what,
        "see what is wrong with the table's metadata; if nothing is, please report it",
    )
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
