//! The worker: nets the rows of one part after the other and has them written.
//!
//! It holds no rows and decides nothing about them. A part is named by its attempt; a message about another attempt than the
//! present one is stale. It retries nothing: that is the coordinator's decision, which gives every try a new attempt
//! (rule O2). Parts of one table are written one after the other, tables side by side.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::coordinator::{Fill, RowRange, ToWorker};
use crate::id::{AttemptId, Part, TableName, Version};
use crate::invariant::Violation;
use crate::outcome::WriteOutcome;

/// A fact for a worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WorkerInput {
    /// The coordinator said this.
    Told(ToWorker),
    /// Answers [`WorkerOutput::Net`].
    Netted {
        /// Of the part.
        attempt: AttemptId,
        /// What came of it.
        outcome: NetOutcome,
    },
    /// Answers [`WorkerOutput::Write`].
    Wrote {
        /// Of the part.
        attempt: AttemptId,
        /// What came of it.
        outcome: WriteOutcome,
    },
}

/// What came of netting a part's rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NetOutcome {
    /// They are netted, and held under the attempt.
    Netted {
        /// Rows that went in.
        rows: u64,
        /// Images and deletes that came out.
        images: u64,
        /// Different keys among the rows; `None` where every row is kept.
        keys: Option<u64>,
    },
    /// They can't be.
    Rejected {
        /// Why, and what to do, for people.
        why: String,
    },
}

/// A command of a worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WorkerOutput {
    /// Net these rows. Hold the result under the attempt.
    Net {
        /// Of the part.
        attempt: AttemptId,
        /// The part.
        part: Part,
        /// Its rows, in log order.
        rows: Vec<RowRange>,
        /// The first one's version; each next one's is one higher.
        first_version: Version,
        /// What is taken for values that the last image of a key lacks.
        fills: Vec<Fill>,
    },
    /// Write what was netted. Lane: the table.
    Write {
        /// Of the part.
        attempt: AttemptId,
        /// The table.
        table: TableName,
    },
    /// Drop what is held under the attempt.
    Forget {
        /// Which.
        attempt: AttemptId,
    },
    /// Tell the coordinator.
    Written {
        /// Of the part.
        attempt: AttemptId,
        /// What became of it.
        outcome: WriteOutcome,
    },
}

/// A worker of one process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Worker {
    /// Parts of each table, the one that is worked on first.
    parts: BTreeMap<TableName, VecDeque<Doing>>,
    outbox: VecDeque<WorkerOutput>,
    violation: Option<Violation>,
    stale: u64,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Doing {
    attempt: AttemptId,
    part: Part,
    rows: Vec<RowRange>,
    first_version: Version,
    fills: Vec<Fill>,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Waiting,
    Netting,
    Writing,
}

impl Worker {
    /// A worker without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one fact. Drain [`Worker::poll_output`] before the next.
    pub fn handle_input(&mut self, input: WorkerInput) {
        match input {
            WorkerInput::Told(ToWorker::Write { attempt, part, rows, first_version, fills }) => {
                let doing = Doing { attempt, part: part.clone(), rows, first_version, fills, step: Step::Waiting };
                self.parts.entry(part.table).or_default().push_back(doing);
            }
            WorkerInput::Told(ToWorker::Abandon { attempt }) => self.abandon(attempt),
            WorkerInput::Netted { attempt, outcome } => self.netted(attempt, outcome),
            WorkerInput::Wrote { attempt, outcome } => match self.take(attempt, Step::Writing) {
                Some(_) => self.outbox.push_back(WorkerOutput::Written { attempt, outcome }),
                None => self.stale += 1,
            },
        }
        self.begin_next();
    }

    /// The next command.
    pub fn poll_output(&mut self) -> Option<WorkerOutput> {
        self.outbox.pop_front()
    }

    /// Is every rule that this machine can see kept?
    pub fn check(&self) -> Result<(), Violation> {
        self.violation.clone().map_or(Ok(()), Err)
    }

    /// How many parts it has.
    pub fn parts(&self) -> usize {
        self.parts.values().map(VecDeque::len).sum()
    }

    fn netted(&mut self, attempt: AttemptId, outcome: NetOutcome) {
        let Some(doing) = self.present(attempt, Step::Netting) else {
            self.stale += 1;
            // The answer made something that nobody will ask for.
            return self.outbox.push_back(WorkerOutput::Forget { attempt });
        };
        let asked: u64 = doing.rows.iter().map(|r| u64::from(r.count())).sum();
        let table = doing.part.table.clone();
        doing.step = Step::Writing;
        match outcome {
            NetOutcome::Netted { rows, images, keys } => {
                if rows != asked || keys.is_some_and(|keys| keys != images) {
                    let dump = format!("{table}: {asked} rows asked, {rows} netted, {images} images of {keys:?} keys");
                    self.violation.get_or_insert(Violation { rule: "one-image-per-key-per-commit", dump });
                    return;
                }
                self.outbox.push_back(WorkerOutput::Write { attempt, table });
            }
            NetOutcome::Rejected { why } => {
                let _ = self.take(attempt, Step::Writing);
                self.outbox.push_back(WorkerOutput::Written { attempt, outcome: WriteOutcome::Rejected { why } });
            }
        }
    }

    fn abandon(&mut self, attempt: AttemptId) {
        for parts in self.parts.values_mut() {
            parts.retain(|doing| doing.attempt != attempt);
        }
        self.outbox.push_back(WorkerOutput::Forget { attempt });
    }

    fn present(&mut self, attempt: AttemptId, step: Step) -> Option<&mut Doing> {
        self.parts.values_mut().filter_map(VecDeque::front_mut).find(|d| d.attempt == attempt && d.step == step)
    }

    fn take(&mut self, attempt: AttemptId, step: Step) -> Option<Doing> {
        let is_it = |d: &Doing| d.attempt == attempt && d.step == step;
        self.parts.values_mut().find(|parts| parts.front().is_some_and(is_it)).and_then(VecDeque::pop_front)
    }

    fn begin_next(&mut self) {
        for doing in self.parts.values_mut().filter_map(VecDeque::front_mut) {
            if doing.step == Step::Waiting {
                doing.step = Step::Netting;
                self.outbox.push_back(WorkerOutput::Net {
                    attempt: doing.attempt,
                    part: doing.part.clone(),
                    rows: doing.rows.clone(),
                    first_version: doing.first_version,
                    fills: doing.fills.clone(),
                });
            }
        }
        self.parts.retain(|_, parts| !parts.is_empty());
    }
}
