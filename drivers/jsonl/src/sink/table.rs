//! An open table: rows are staged in files of their own, a commit copies them to the end of the table's file.
//!
//! A table that is copied anew is emptied by the commit that begins the generation, with the line that a TRUNCATE has. A reader
//! may see nothing of a key that the new copy has not come to yet, every reader knows that line, and nothing needs to be
//! remembered until the sweep, which has nothing left to do. To remove only what was not written again would take all keys of
//! the file, or a second kind of line that each reader had to learn.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use contract::{
    CommitRequest, Error, Kind, Mode, SinkTable, Staged, TableCommitter, TableSink, TableWriter, Versioned, async_trait,
};
use kernel::id::{AttemptId, CommitId, Incarnation, Token};
use kernel::outcome::CommitOutcome;
use kernel::state::TableState;
use rows::Netted;

use super::fault;
use super::file::{Checkpoint, NotAppended, StagedRows, TableFile};
use super::lines::{self, Problem};
use super::lock::{blocking, exclusively};
use super::place::Names;

/// What both halves share.
struct OpenTable {
    names: Names,
    table: SinkTable,
    /// The newest state that this handle has seen: what `append-idempotent` refuses rows by.
    known: Mutex<Option<TableState>>,
}

impl OpenTable {
    fn know(&self, state: Option<TableState>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Opens both halves. What an unfinished commit left is removed.
pub(super) async fn open(names: Names, table: &SinkTable) -> Result<TableSink, Error> {
    let files = names.clone();
    let stand = exclusively(&names.lock, move || {
        let file = files.open_to_write()?;
        let stand = file.stand()?;
        file.cut_off(&stand)?;
        Ok(stand)
    })
    .await?;
    let known = Mutex::new(stand.newest.map(|(state, _)| state));
    let open = Arc::new(OpenTable { names, table: table.clone(), known });
    Ok(TableSink { writer: Box::new(Writer(Arc::clone(&open))), committer: Box::new(Committer(open)) })
}

struct Writer(Arc<OpenTable>);

#[async_trait]
impl TableWriter for Writer {
    async fn write(&mut self, attempt: AttemptId, rows: Netted) -> Result<Staged, Error> {
        let open = Arc::clone(&self.0);
        let staged = blocking(move || stage(&open, attempt, &rows)).await?;
        Ok(Box::new(staged))
    }
}

/// Writes the lines of a part into its file. It needs no sync: what is not committed is written again by the next life, and a
/// commit copies it and syncs the copy.
fn stage(open: &OpenTable, attempt: AttemptId, rows: &Netted) -> Result<StagedRows, Error> {
    let path = open.names.staged(attempt);
    let known = open.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let covered = known.as_ref().filter(|_| open.table.mode == Mode::AppendIdempotent);
    let written = (|| {
        let mut out = BufWriter::with_capacity(64 << 10, File::create(&path)?);
        lines::write(&mut out, &open.table, rows, covered)?;
        out.flush()?;
        Ok(out.get_ref().metadata()?.len())
    })();
    match written {
        Ok(bytes) => Ok(StagedRows { path, bytes }),
        Err(problem) => {
            let _ = fs::remove_file(&path); // What is left of it belongs to an attempt that is no more.
            Err(refused(open, &path, problem))
        }
    }
}

fn refused(open: &OpenTable, path: &std::path::Path, problem: Problem) -> Error {
    match problem {
        Problem::Io(error) => fault("write", path, &error),
        Problem::Refused { refusal, row } => Error::new(
            Kind::Rejected,
            "jsonl-sink-value",
            format!("table {}, column '{}', row {row} of a part: {}", open.table.table, refusal.column, refusal.why),
            "give the column another type under `columns`, or mend the value at the source",
        ),
    }
}

struct Committer(Arc<OpenTable>);

#[async_trait]
impl TableCommitter for Committer {
    async fn commit(&mut self, request: &CommitRequest) -> CommitOutcome {
        let parts: Option<Vec<StagedRows>> = request.staged.iter().map(|part| (***part).downcast_ref().cloned()).collect();
        let Some(parts) = parts else {
            return CommitOutcome::Rejected { why: "what was staged is of another sink; report this as a bug".into() };
        };
        let commit = Commit {
            names: self.0.names.clone(),
            token: request.token.clone(),
            state: request.state.clone(),
            mode: self.0.table.mode,
            truncate_first: request.truncate_first,
            sweep: request.sweep,
            parts,
        };
        let outcome = match exclusively(&self.0.names.lock, move || commit.run()).await {
            Ok(outcome) => outcome,
            Err(error) if error.kind == Kind::Transient => CommitOutcome::Transient { why: error.to_string() },
            Err(error) => CommitOutcome::Rejected { why: error.to_string() },
        };
        match &outcome {
            CommitOutcome::Durable { .. } => self.0.know(Some(request.state.clone())),
            CommitOutcome::Conflict { found, .. } => self.0.know(found.as_deref().cloned()),
            CommitOutcome::Unknown { .. }
            | CommitOutcome::Superseded
            | CommitOutcome::Rejected { .. }
            | CommitOutcome::Transient { .. } => {}
        }
        outcome
    }

    async fn resolve(&mut self, commit: CommitId, incarnation: Incarnation) -> Result<Versioned<bool>, Error> {
        let names = self.0.names.clone();
        exclusively(&self.0.names.lock, move || {
            let file = names.open_to_write()?;
            let stand = file.stand()?;
            file.sync()?;
            let token = stand.token();
            let landed = stand.newest.is_some_and(|(state, _)| {
                // Each commit's state names all that it was built upon, so the newest one is enough.
                (state.commit, state.incarnation) == (commit, incarnation)
                    || (commit.incarnation == incarnation && state.ancestors.contains(commit))
            });
            Ok(Versioned { value: landed, token })
        })
        .await
    }

    async fn drop_staged(&mut self, staged: Vec<Arc<Staged>>) {
        let paths = staged.iter().filter_map(|part| (***part).downcast_ref::<StagedRows>()).map(|part| part.path.clone());
        let paths: Vec<PathBuf> = paths.collect();
        let _ = blocking(move || {
            paths.iter().for_each(|path| drop(fs::remove_file(path)));
            Ok(())
        })
        .await;
    }

    async fn discard_older(&mut self, incarnation: Incarnation) {
        let names = self.0.names.clone();
        let _ = blocking(move || {
            names.staged_before(incarnation).iter().for_each(|path| drop(fs::remove_file(path)));
            Ok(())
        })
        .await;
    }
}

/// A commit, for the thread that does it.
struct Commit {
    names: Names,
    token: Token,
    state: TableState,
    mode: Mode,
    truncate_first: bool,
    sweep: bool,
    parts: Vec<StagedRows>,
}

impl Commit {
    fn run(self) -> Result<CommitOutcome, Error> {
        let file = self.names.open_to_write()?;
        let stand = file.stand_trusting(Some(&self.token))?;
        if stand.token() != self.token {
            file.sync()?;
            let token = stand.token();
            return Ok(match stand.newest {
                // Asked for again: its answer was lost.
                Some((state, _)) if state == self.state => CommitOutcome::Durable { token },
                newest => CommitOutcome::Conflict { found: newest.map(|(state, _)| Box::new(state)), token },
            });
        }
        if self.sweep && self.mode != Mode::Upsert {
            let why = "the table keeps every row, and was to lose those of an older copy; report this as a bug";
            return Ok(CommitOutcome::Rejected { why: why.into() });
        }
        if let Some(gone) = self.parts.iter().find(|part| !part.path.exists()) {
            let why = format!("{} was removed by somebody else; resume the table to write its rows again", gone.path.display());
            return Ok(CommitOutcome::Rejected { why });
        }
        file.cut_off(&stand)?;
        let empties = self.truncate_first || self.begins_after(stand.newest.as_ref().map(|(state, _)| state));
        let checkpoint = Checkpoint { empties, parts: &self.parts, state: &self.state };
        Ok(match file.append(&stand, &checkpoint) {
            Ok(token) => {
                self.parts.iter().for_each(|part| drop(fs::remove_file(&part.path)));
                CommitOutcome::Durable { token }
            }
            Err(NotAppended::Failed(error)) if error.kind == Kind::Transient => {
                CommitOutcome::Transient { why: error.to_string() }
            }
            Err(NotAppended::Failed(error)) => CommitOutcome::Rejected { why: error.to_string() },
            Err(NotAppended::Unknown(why)) => CommitOutcome::Unknown { why },
        })
    }
}

impl Commit {
    /// Does it begin another generation than the one that it found?
    fn begins_after(&self, found: Option<&TableState>) -> bool {
        self.mode == Mode::Upsert && found.is_some_and(|found| found.generation != self.state.generation)
    }
}

impl Names {
    /// The table's file. Where there is none, somebody has removed it.
    fn open_to_write(&self) -> Result<TableFile, Error> {
        TableFile::open(&self.file, true)?.ok_or_else(|| {
            let what = format!("{} is not there any more", self.file.display());
            Error::new(Kind::Rejected, "jsonl-sink-gone", what, "put it back, or copy the table anew into another target")
        })
    }
}
