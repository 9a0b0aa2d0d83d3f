//! The read-only view: what each table does, and what everything waits for.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Coordinator, Stage, TableStatus, VALIDATE};
use crate::acknowledge::Difference;
use crate::checkpoint::Step;
use crate::id::{Incarnation, TableName};
use crate::planted::planted;
use crate::position::Position;
use crate::state::Phase;
use crate::time::{Deadline, Time};

/// A life as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The life's number; 0 until it is taken.
    pub incarnation: Incarnation,
    /// Is it past its beginning?
    pub running: bool,
    /// Each member table.
    pub tables: BTreeMap<TableName, TableStatus>,
    /// The stored quiet position: nothing at or below it is owed.
    pub quiet: Position,
    /// What the source may forget.
    pub acknowledged: Position,
    /// What was read, ever.
    pub received: Position,
    /// Where the log ended when it was opened.
    pub end: Position,
    /// Bytes of rows held.
    pub bytes_held: u64,
    /// What is waited for.
    pub waiting: Vec<Waiting>,
}

/// One thing that is waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The table, if it is one's.
    pub table: Option<TableName>,
    /// For what.
    pub what: &'static str,
    /// Since when, where that is known.
    pub since: Option<Time>,
    /// What failed last, for people.
    pub why: Option<String>,
    /// What ends it: an answer, a time, or a person.
    pub ended_by: &'static str,
}

impl Coordinator {
    /// The read-only view.
    pub fn status(&self) -> Status {
        Status {
            incarnation: self.incarnation,
            running: self.stage == Stage::Running,
            tables: self.tables.iter().map(|(name, table)| (name.clone(), table.status())).collect(),
            quiet: self.record.known.quiet.clone(),
            acknowledged: self.log.acknowledged.clone(),
            received: self.log.received.clone(),
            end: self.log.end.clone(),
            bytes_held: self.budget.used(),
            waiting: self.waiting(),
        }
    }

    /// Everything that is waited for. Empty when every table is at the end of what was read and all of it is durable.
    pub fn waiting(&self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        let wait =
            |table: Option<&TableName>, what, since, why, ended_by| Waiting { table: table.cloned(), what, since, why, ended_by };
        let starting = match self.stage {
            Stage::Reading => Some("the pipeline record to be read"),
            Stage::Taking => Some("an incarnation to be taken"),
            Stage::Recovering => Some("table states to be read"),
            Stage::Opening => Some("the log to be opened"),
            Stage::Validating => Some("the pipeline record to be read again"),
            Stage::Running | Stage::Stopped => None,
        };
        if let Some(what) = starting {
            let since = self.starting.retry.map(|r| r.since);
            waiting.push(wait(None, what, since, self.starting.why.clone(), "an answer or retry.giveUpAfter"));
        }
        if let Some(retry) = self.validation.retry {
            let (since, why) = (Some(retry.since), self.validation.why.clone());
            waiting.push(wait(None, "proof that no newer life has begun", since, why, "an answer or retry.giveUpAfter"));
        }
        if self.has_begun() && self.record_difference() == Difference::Urgent {
            waiting.push(wait(None, "the pipeline record to be stored", None, None, "an answer or retry.giveUpAfter"));
        }
        for (name, table) in &self.tables {
            if let Some(flight) = &table.flight {
                let what = match flight.step {
                    Step::Write => "rows to be written",
                    Step::Commit => "a commit",
                    Step::Resolve => "the outcome of a commit",
                    Step::Validate => "the pipeline record, after a foreign commit",
                };
                let since = flight.retry.map(|r| r.since);
                waiting.push(wait(Some(name), what, since, flight.why.clone(), "an answer or retry.giveUpAfter"));
            } else if !table.is_settled() {
                waiting.push(wait(Some(name), "a checkpoint to close", Some(table.open.opened), None, "its age, rows or bytes"));
            }
            waiting.extend(self.waits_for_values(name, table));
            match table.phase {
                Phase::Paused | Phase::Halted => {
                    waiting.push(wait(
                        Some(name),
                        table.phase.as_str(),
                        table.blocked,
                        table.why.clone(),
                        if table.resumes_when_recorded {
                            "the record that says what is skipped"
                        } else {
                            "resume, skip, or source.hold"
                        },
                    ));
                }
                Phase::NeedsSnapshot | Phase::Pending | Phase::Snapshotting if table.wants_generation => {
                    waiting.push(wait(
                        Some(name),
                        "a snapshot to begin",
                        None,
                        table.why.clone(),
                        "the record, then its first commit",
                    ));
                }
                Phase::NeedsSnapshot => waiting.push(wait(Some(name), "a snapshot", None, table.why.clone(), "a new snapshot")),
                Phase::Snapshotting => waiting.push(self.waits_for_snapshot(name, table)),
                Phase::Streaming if table.blocked.is_some() => {
                    waiting.push(wait(Some(name), "its own queue, then the log again", table.blocked, None, "its commits"));
                }
                Phase::Pending | Phase::Streaming => {}
            }
        }
        waiting
    }

    /// What a snapshot waits for that is being read.
    fn waits_for_snapshot(&self, name: &TableName, table: &crate::checkpoint::Table) -> Waiting {
        let wait = |what, why, ended_by| Waiting { table: Some(name.clone()), what, since: None, why, ended_by };
        let Some(snapshot) = &table.snapshot else { return wait("the end of its snapshot", None, "its last commit") };
        let why = snapshot.why.clone();
        if !snapshot.in_doubt.is_empty() {
            let names: Vec<&str> = snapshot.in_doubt.iter().take(5).map(|t| t.as_str()).collect();
            let why = why.or_else(|| Some(alloc::format!("unfinished or not visible yet: {}", names.join(", "))));
            return wait("transactions to become visible, before chunks are read", why, "these transactions' end");
        }
        let read = snapshot.chunks.values().any(|chunk| chunk.held.is_some());
        match (read, snapshot.chunks.is_empty()) {
            (true, _) => wait("the log to pass a chunk's fence", why, "reading the log"),
            (false, false) => wait("a chunk to be read", why, "an answer"),
            (false, true) => wait("its snapshot", why, "chunks, and its commits"),
        }
    }

    pub(crate) fn deadlines(&self) -> Vec<Deadline> {
        let mut deadlines = Vec::new();
        let mut at = |at, why| deadlines.push(Deadline { at, why });
        if self.is_stopped() {
            return deadlines;
        }
        let log_needed = !(self.has_begun() && self.drain.is_closing());
        let asks = matches!(self.stage, Stage::Reading | Stage::Validating | Stage::Opening) && log_needed;
        if let (None, Some(retry), true) = (self.starting.asked, self.starting.retry, asks) {
            at(retry.at, "start again");
        }
        for table in self.tables.values() {
            if let (None, Some(retry)) = (table.recovering, table.recovery_retry) {
                at(retry.at, "recover again");
            }
        }
        if let Some(when) = self.validation_due_at() {
            at(when, VALIDATE);
        }
        if !self.has_begun() {
            return deadlines;
        }
        if let Some(when) = self.record_due_at() {
            at(when, "store the record");
        }
        if self.stage == Stage::Running && self.may_read() {
            at(self.log.next_read, "read the log");
        }
        let stalled = |t: &&crate::checkpoint::Table| t.follows() && t.blocked.is_some() && t.is_settled();
        let goes_back = self.stage == Stage::Running && !self.drain.is_closing() && !planted!(self.config, StallNeverEnds);
        if goes_back && self.tables.values().any(|t| stalled(&t)) {
            at(self.log.next_unstall, "go back for a table that had stalled");
        }
        for (name, table) in &self.tables {
            let running = self.stage == Stage::Running && !self.drain.is_closing();
            if let (Some(when), true) = (self.next_question(name), running) {
                at(when, "ask what is visible");
            }
            if let (Some(failing), true) = (table.snapshot.as_ref().and_then(|s| s.failing), running)
                && failing.at > self.now
            {
                at(failing.at, "ask for a chunk again");
            }
            if let Some(retry) = table.flight.as_ref().and_then(|f| f.retry) {
                at(retry.at, "try again");
            }
            if table.open.taken > 0 && table.flight.is_none() && table.closed.is_empty() {
                at(table.closes_at(&self.config), "close a checkpoint");
            }
            if let Some(when) = self.next_row_read(name) {
                at(when, "read rows again");
            }
            if let (Some(hold), Some(since)) = (self.config.hold, self.holds_since(name)) {
                at(since + hold, "release a table that holds the source");
            }
            if self.lacks_base(name) {
                at(table.base_due, "store where an idle table stands");
            }
            // A flight that others wait for: the budget is full, or a checkpoint waits behind it.
            let patience = self.config.retry.most;
            let waits = self.budget.is_full(self.config.budget_bytes_max) || table.presses_back(self.now, patience);
            if let (Some(flight), false) = (&table.flight, self.drain.is_closing())
                && waits
                && !flight.stands_still(self.now, patience)
            {
                at(flight.since + patience, "go on without a table that stands still");
            }
        }
        deadlines
    }
}

impl crate::checkpoint::Table {
    fn status(&self) -> TableStatus {
        TableStatus {
            phase: self.phase,
            why: self.why().cloned(),
            stored: self.stored.clone(),
            taken: self.taken.upto().clone(),
            rows_owed: self.rows_owed(),
            rows_durable: self.durable_rows,
            commits: self.durable_commits,
            blocked: self.blocked.is_some(),
            chunk_rows: self.chunk_rows,
            chunk_rows_dropped: self.chunk_rows_dropped,
            snapshot: self.snapshot.as_ref().map(crate::snapshot::Snapshot::status),
        }
    }
}
