//! The coordinator: one life of a pipeline, from reading its record to its last commit.
//!
//! # Contract
//!
//! [`Coordinator::handle_input`] with one fact, then [`Coordinator::poll_output`] until `None`, then sleep until
//! [`Coordinator::poll_timeout`] or the next fact. Outputs drained together may run at once and finish in any order, each
//! at most once, except those of one *lane* (the commits of a table; the reads of the log; the acknowledgements of the source),
//! which run first in, first out. Nobody retries but the machine. An answer carries its command's id, and ids carry the incarnation, so an
//! answer to somebody else is dropped. `handle_input` never panics, whatever it is given.
//!
//! # How a life goes
//!
//! 1. Read the record, take the next incarnation by compare-and-set, *then* read the tables' states, open the log, judge
//!    where each table stands (rule R1; `start`).
//! 2. One reader reads the log; rows go to their tables' open checkpoints (`flow::reading`, `checkpoint::intake`).
//! 3. A closed checkpoint is written by a worker and committed by the sink (`checkpoint::commit`).
//! 4. A table that begins with a snapshot, or needs one, is read in chunks beside the log (`snapshot`).
//! 5. Values that updates left out are found before their checkpoint is written, by reading rows again (`absent`).
//! 6. The record follows what memory knows, the acknowledgement follows what is stored (`acknowledge`).
//! 7. On a day when nothing is to be written it asks on a timer whether a newer life has begun (`validate`).

mod absent;
mod ahead;
mod chunk;
mod message;
mod start;
mod status;
mod validate;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

pub use absent::*;
pub use chunk::*;
pub use message::*;
pub(crate) use start::{forged_record, forged_state};
pub use status::{Status, Waiting};
pub(crate) use validate::VALIDATE;

use crate::acknowledge::{Difference, Record};
use crate::checkpoint::{Table, Tables};
use crate::config::Config;
use crate::flow::{Budget, Drain, Log};
use crate::id::{BatchId, CommandId, Incarnation, TableName};
use crate::invariant::Violation;
use crate::state::Phase;
use crate::time::{Deadline, Time};

/// One life of a pipeline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Coordinator {
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) stage: Stage,
    pub(crate) incarnation: Incarnation,
    pub(crate) next_command: u64,
    pub(crate) next_attempt: u64,
    pub(crate) starting: start::Starting,
    pub(crate) validation: validate::Validation,
    pub(crate) record: Record,
    pub(crate) tables: Tables,
    pub(crate) log: Log,
    pub(crate) budget: Budget,
    pub(crate) drain: Drain,
    pub(crate) outbox: VecDeque<Output>,
    pub(crate) violation: Option<Violation>,
    /// A newer life was heard of.
    pub(crate) superseded: bool,
    pub(crate) stale_answers: u64,
    pub(crate) marks: BTreeMap<&'static str, u64>,
}

/// Where a life is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// The record is being read.
    Reading,
    /// The next incarnation is being taken.
    Taking,
    /// The tables' states are being read.
    Recovering,
    /// The log is being opened.
    Opening,
    /// Rows flow.
    Running,
    /// The log's session was lost: is this life still the newest?
    Validating,
    /// It is over.
    Stopped,
}

impl Coordinator {
    /// A new life. It knows nothing: what is stored it reads by its own commands, the first of which wait in
    /// [`Coordinator::poll_output`].
    pub fn new(now: Time, config: Config) -> Self {
        let mut coordinator = Self {
            config,
            now,
            stage: Stage::Reading,
            incarnation: Incarnation(0),
            next_command: 0,
            next_attempt: 0,
            starting: start::Starting::default(),
            validation: validate::Validation::default(),
            record: Record::default(),
            tables: Tables::new(),
            log: Log::default(),
            budget: Budget::default(),
            drain: Drain::default(),
            outbox: VecDeque::new(),
            violation: None,
            superseded: false,
            stale_answers: 0,
            marks: BTreeMap::new(),
        };
        if crate::planted::planted!(coordinator.config, StatesBeforeIncarnation) {
            coordinator.recover_tables();
        }
        coordinator.progress();
        coordinator
    }

    /// Takes one fact.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs before the next input");
        self.now = self.now.max(now);
        if self.is_stopped() {
            return;
        }
        match input {
            Input::PipelineStateRead { id, state, token } => self.pipeline_state_read(id, state.map(|s| *s), token),
            Input::PipelineStateStored { id, outcome } => self.record_stored(id, outcome),
            Input::TableRecovered { id, table, state, token } => self.table_recovered(id, &table, state.map(|s| *s), token),
            Input::LogOpened { id, session, identity, floor, end } => self.log_opened(id, session, identity, floor, end),
            Input::LogRead { id, batches, events, finished } => self.log_read(id, batches, events, finished),
            Input::LogFailed { id, failure } => self.log_failed(id, failure),
            Input::RangesPlanned { id, bounds } => self.ranges_planned(id, bounds),
            Input::ChunkRead { id, chunk } => self.chunk_read(id, *chunk),
            Input::VisibilityRead { id, visibility } => self.visibility_read(id, visibility),
            Input::RowsRead { id, answer } => self.rows_read(id, *answer),
            Input::Written { attempt, outcome } => self.written(attempt, outcome),
            Input::Committed { id, table, outcome } => self.committed(id, &table, outcome),
            Input::Resolved { id, table, found, token } => self.resolved(id, &table, found, token),
            Input::Failed { id, why } => self.failed(id, why),
            Input::Refused { id, why } => self.refused(id, why),
            Input::Operator(operator) => self.operate(operator),
            Input::Timeout => {}
        }
        self.progress();
    }

    /// The next command. Drain them all before the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop_front()
    }

    /// When, and why, this machine wants [`Input::Timeout`] though nothing has happened.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines().into_iter().min_by_key(|d| d.at)
    }

    /// Is this life over?
    pub fn is_stopped(&self) -> bool {
        self.stage == Stage::Stopped
    }

    /// Is the log open, and do rows flow?
    pub fn is_running(&self) -> bool {
        self.stage == Stage::Running
    }

    /// Bytes of rows held.
    pub fn bytes_held(&self) -> u64 {
        self.budget.used()
    }

    /// The life's number; 0 until it is taken.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The batches that the row store must hold now, no more and no fewer (`rows-held-equal-rows-known`).
    pub fn batches(&self) -> Vec<BatchId> {
        self.budget.batches().collect()
    }

    /// How often each rare path was taken.
    pub fn marks(&self) -> &BTreeMap<&'static str, u64> {
        &self.marks
    }

    /// Forgets what is only counted, and gives the marks: of two lives that will do the same a search keeps one.
    pub fn forget_counts(&mut self) -> BTreeMap<&'static str, u64> {
        self.stale_answers = 0;
        for table in self.tables.values_mut() {
            table.durable_rows = 0;
            table.durable_commits = 0;
            if let Some(snapshot) = &mut table.snapshot {
                snapshot.asked = 0;
                snapshot.void = 0;
            }
        }
        core::mem::take(&mut self.marks)
    }

    /// Everything that may go on without a new fact. Level, not edge: each step asks what is true now.
    fn progress(&mut self) {
        if self.superseded && !crate::planted::planted!(self.config, SupersededStopsCommitsOnly) {
            return self.stop_as_superseded();
        }
        if !self.is_stopped() {
            self.start_on();
            self.validate_when_due();
        }
        if self.stage == Stage::Running {
            self.end_when_current();
            self.end_stalls();
        }
        // What was taken goes on to the sink whether the log can be read just now or not.
        if self.has_begun() {
            self.release_what_holds_too_long();
            self.end_what_was_released();
            self.say_verdicts();
            self.resume_what_may_skip();
            self.begin_generations();
            self.release_chunks();
            self.fill_holes();
            self.sweep_what_is_complete();
            self.close_what_is_due();
            // What closed just now takes what was read for it as it is, though nothing else happens any more.
            if !crate::planted::planted!(self.config, ClosedWaitsForFence) {
                self.fill_holes();
            }
            self.store_missing_bases();
            self.halt_what_lacks_values();
            self.read_rows_again();
            self.fly();
            self.make_room();
            self.store_what_differs();
        }
        if self.stage == Stage::Running {
            self.acknowledge_what_is_stored();
            self.read_snapshots();
            self.read_on();
        }
        if self.has_begun() {
            self.stop_when_drained();
        }
        if !self.is_stopped() {
            for batch in self.budget.take_released() {
                self.outbox.push_back(Output::ReleaseBatch { batch });
            }
        }
    }

    /// Was the log open once in this life? From then on its tables have rows on their way.
    pub(crate) fn has_begun(&self) -> bool {
        self.log.first_end.is_some() && !self.is_stopped()
    }

    pub(crate) fn push(&mut self, output: Output) {
        if self.is_stopped() {
            return;
        }
        match self.check_edge(&output) {
            Ok(()) => self.outbox.push_back(output),
            Err(violation) => self.violate(violation.rule, violation.dump),
        }
    }

    pub(crate) fn next_id(&mut self) -> CommandId {
        self.next_command += 1;
        CommandId { incarnation: self.incarnation, number: self.next_command }
    }

    pub(crate) fn mark(&mut self, path: &'static str) {
        *self.marks.entry(path).or_default() += 1;
    }

    pub(crate) fn stale_answer(&mut self) {
        self.stale_answers += 1;
        self.mark("stale-answer");
    }

    pub(crate) fn names(&self) -> Vec<TableName> {
        self.tables.keys().cloned().collect()
    }

    /// A rule of the kernel is broken. Of one table it would halt the table; all that are checked here are of shared truth.
    pub(crate) fn violate(&mut self, rule: &'static str, dump: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, dump: dump.clone() });
        }
        self.stop(StopReason::Violation { rule, dump });
    }

    /// Ends this life at once: nothing that was prepared goes out any more.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        if self.is_stopped() {
            return;
        }
        self.stage = Stage::Stopped;
        self.outbox.clear();
        self.outbox.push_back(Output::Stop { reason });
    }

    /// A newer life has begun: this one stops everything, not only its commits (rule R5).
    pub(crate) fn supersede(&mut self, by: Incarnation) {
        self.superseded = true;
        self.starting.superseded_by = by;
        self.mark("superseded");
    }

    fn stop_as_superseded(&mut self) {
        let by = self.starting.superseded_by;
        self.stop(StopReason::Superseded { by });
    }

    fn stop_when_drained(&mut self) {
        let Some(reason) = self.drain.reason().cloned() else { return };
        if !self.record.is_settled() || self.record_difference() != Difference::None {
            return;
        }
        let settled = |(name, table): (&TableName, &Table)| table.is_settled() && !self.lacks_base(name);
        if !self.tables.iter().all(settled) {
            return;
        }
        for batch in self.budget.take_released() {
            self.outbox.push_back(Output::ReleaseBatch { batch });
        }
        // What was said in this step still goes out.
        self.outbox.push_back(Output::Stop { reason });
        self.stage = Stage::Stopped;
    }

    /// Ends this life once everything that was taken is committed; at once if nothing was taken yet.
    pub(crate) fn end_with(&mut self, reason: StopReason) {
        if self.has_begun() { self.drain.begin(reason) } else { self.stop(reason) }
    }

    /// A member table that only a new snapshot can help, and why. It is said once the record that says so is stored.
    pub(crate) fn needs_snapshot(&mut self, name: &TableName, why: String) {
        self.give_up(name);
        let halted = Output::HaltTable { table: name.clone(), why: why.clone(), at: None };
        self.record.verdicts.push((name.clone(), halted));
        let Some(table) = self.tables.get_mut(name) else { return };
        table.phase = Phase::NeedsSnapshot;
        table.needed = table.generation() + 1;
        table.snapshot = None;
        table.blocked = None;
        table.why = Some(why);
        self.want(name, Phase::NeedsSnapshot);
    }

    fn boxed_state(state: Option<&crate::state::TableState>) -> Option<Box<crate::state::TableState>> {
        state.cloned().map(Box::new)
    }
}
