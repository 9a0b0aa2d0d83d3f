//! What a machine said, each command in one line. These lines are only ever compared: a replay has the commands themselves.
//!
//! Two machines that did the same say the same here, though one knew keys and the other only their hashes: lists that are in the
//! order of keys are told in the order of what stands for them, batches that are released together in the order of their
//! numbers, and texts for people not at all. A line that would be long is cut and ends with a hash of the whole.

use kernel::coordinator::{Fill, Output, Restart, RowRange, StopReason, ToWorker};
use kernel::id::BatchId;
use kernel::state::PipelineState;
use kernel::worker::{WorkerInput, WorkerOutput};
use twox_hash::XxHash3_64;

use crate::text::{Say, Text};
use crate::veil::Veil;

/// A longer line is cut.
const LINE_MAX: usize = 240;

/// The lines of one step.
pub(crate) struct Said {
    text: Text,
    lines: String,
    released: Vec<BatchId>,
}

impl Said {
    pub(crate) fn new(veil: Veil) -> Self {
        Self { text: Text::new(veil), lines: String::new(), released: Vec::new() }
    }

    pub(crate) fn coordinator(&mut self, output: &Output) {
        if let Output::ReleaseBatch { batch } = output {
            return self.released.push(*batch);
        }
        say_output(output, &mut self.text);
        self.end_line();
    }

    pub(crate) fn worker(&mut self, output: &WorkerOutput) {
        say_worker_output(output, &mut self.text);
        self.end_line();
    }

    /// All of them; the next ones are another step's.
    pub(crate) fn take(&mut self) -> String {
        if !self.released.is_empty() {
            self.released.sort_unstable();
            self.text.word("release-batches");
            std::mem::take(&mut self.released).say(&mut self.text);
            self.end_line();
        }
        std::mem::take(&mut self.lines)
    }

    fn end_line(&mut self) {
        let line = self.text.as_str();
        self.lines.push_str("- ");
        if line.len() <= LINE_MAX {
            self.lines.push_str(line);
        } else {
            let at = (0..=LINE_MAX - 24).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            self.lines.push_str(&line[..at]);
            self.lines.push_str(&format!(" ... {:016x}", XxHash3_64::oneshot(line.as_bytes())));
        }
        self.lines.push('\n');
        self.text.clear();
    }
}

macro_rules! said {
    ($text:ident, $word:literal $(, $thing:expr)*) => {{ $text.word($word); $( $thing.say($text); )* }};
}

fn say_output(output: &Output, text: &mut Text) {
    match output {
        Output::ReadPipelineState { id } => said!(text, "read-record", id),
        Output::StorePipelineState { id, expected, new } => {
            said!(text, "store-record", id, expected, without_reasons(new));
        }
        Output::RecoverTable { id, table } => said!(text, "recover-table", id, table),
        Output::OpenLog { id } => said!(text, "open-log", id),
        Output::ReadLog { id, session, restart, bytes_max, keys_of } => {
            said!(text, "read-log", id, session, restart, bytes_max, keys_of);
        }
        Output::PlanRanges { id, table, wanted } => said!(text, "plan-ranges", id, table, wanted),
        Output::ReadChunk { id, table, range, rows_max, bytes_max, about } => {
            said!(text, "read-chunk", id, table, range.after, range.end, rows_max, bytes_max, about);
        }
        Output::ReadVisibility { id, table, about, unfinished } => {
            said!(text, "read-visibility", id, table, about, unfinished);
        }
        Output::ReadRows { id, table, keys, schema, bytes_max, about } => {
            let mut keys: Vec<Told> = keys.iter().map(|key| Told::of(key, text)).collect();
            keys.sort_unstable();
            said!(text, "read-rows", id, table, schema, bytes_max, about, keys);
        }
        Output::ReleaseBatch { batch } => said!(text, "release-batch", batch),
        Output::Send(ToWorker::Write { attempt, part, rows, first_version, fills }) => {
            let (table, checkpoint, slot) = (&part.table, part.checkpoint.0, part.slot.0);
            said!(text, "have-written", attempt, table, checkpoint, slot, first_version, sorted(fills, text), Rows(rows));
        }
        Output::Send(ToWorker::Abandon { attempt }) => said!(text, "abandon", attempt),
        Output::Commit { id, table, token, state, staged, truncate_first, sweep } => {
            said!(text, "commit", id, table, token, staged, truncate_first, sweep, state);
        }
        Output::Resolve { id, table, commit, incarnation } => said!(text, "resolve", id, table, commit, incarnation),
        Output::ReleaseStaged { table, attempt, delete } => said!(text, "release-staged", table, attempt, delete),
        Output::DiscardOlder { table, incarnation } => said!(text, "discard-older", table, incarnation),
        Output::Acknowledge { session, upto } => said!(text, "acknowledge", session, upto),
        Output::Started { table, state, floor, lost } => said!(text, "started", table, floor, lost, state),
        Output::HaltTable { table, why: _, at } => said!(text, "halt-table", table, at),
        Output::Declined { table, why: _ } => said!(text, "decline", table),
        Output::Skipped { table, transaction, coordinate } => said!(text, "skipped", table, transaction, coordinate),
        Output::Stop { reason } => {
            text.word("stop");
            say_reason(reason, text);
        }
    }
}

fn say_reason(reason: &StopReason, text: &mut Text) {
    match reason {
        StopReason::Drained => text.word("drained"),
        StopReason::Poison { why: _ } => text.word("poison"),
        StopReason::TableHalted { table } => said!(text, "table-halted", table),
        StopReason::PositionLost { why: _ } => text.word("position-lost"),
        StopReason::Config { why: _ } => text.word("config"),
        StopReason::Unreachable { why: _ } => text.word("unreachable"),
        StopReason::Superseded { by } => said!(text, "superseded", by),
        StopReason::Violation { rule, dump: _ } => {
            text.word("violation");
            text.word(rule);
        }
    }
}

fn say_worker_output(output: &WorkerOutput, text: &mut Text) {
    match output {
        WorkerOutput::Net { attempt, part, rows, first_version, fills } => {
            let (table, checkpoint, slot) = (&part.table, part.checkpoint.0, part.slot.0);
            said!(text, "net", attempt, table, checkpoint, slot, first_version, sorted(fills, text), Rows(rows));
        }
        WorkerOutput::Write { attempt, table } => said!(text, "write", attempt, table),
        WorkerOutput::Forget { attempt } => said!(text, "forget", attempt),
        WorkerOutput::Written { attempt, outcome } => said!(text, "tell-written", attempt, outcome),
    }
}

/// What a worker was told, without what the coordinator said already.
pub(crate) fn say_worker_input(input: &WorkerInput, text: &mut Text) {
    match input {
        WorkerInput::Told(ToWorker::Write { attempt, .. }) => said!(text, "told-to-write", attempt),
        WorkerInput::Told(ToWorker::Abandon { attempt }) => said!(text, "told-to-abandon", attempt),
        WorkerInput::Netted { attempt, outcome } => said!(text, "netted", attempt, outcome),
        WorkerInput::Wrote { attempt, outcome } => said!(text, "wrote", attempt, outcome),
    }
}

impl Say for Restart {
    fn say(&self, text: &mut Text) {
        let Self { from, stands, schemas, divided } = self;
        from.say(text);
        stands.say(text);
        schemas.say(text);
        text.word("[");
        for (table, transaction, coordinate) in divided {
            table.say(text);
            transaction.say(text);
            coordinate.say(text);
        }
        text.word("]");
    }
}

/// Rows of a part. There may be as many ranges as transactions in a checkpoint; of many it is told how many they are, and a hash.
struct Rows<'a>(&'a [RowRange]);

/// So many ranges are told one by one.
const RANGES_MAX: usize = 8;

impl Say for Rows<'_> {
    fn say(&self, text: &mut Text) {
        let Self(rows) = self;
        if rows.len() <= RANGES_MAX {
            return rows.say(text);
        }
        let hash = rows.iter().fold(0, |hash, range| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&range.batch.0.to_le_bytes());
            bytes[8..12].copy_from_slice(&range.rows.start.to_le_bytes());
            bytes[12..].copy_from_slice(&range.rows.end.to_le_bytes());
            XxHash3_64::oneshot_with_seed(hash, &bytes)
        });
        text.number(rows.len() as u64);
        text.word("ranges");
        text.word(&format!("{hash:016x}"));
    }
}

/// Something that is told of a key, by which it is sorted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Told(String);

impl Told {
    fn of(thing: &impl Say, text: &mut Text) -> Self {
        Self(text.aside(|text| thing.say(text)))
    }
}

impl Say for Told {
    fn say(&self, text: &mut Text) {
        text.word(&self.0);
    }
}

impl Say for Fill {
    fn say(&self, text: &mut Text) {
        let Self { key, row, whole } = self;
        key.say(text);
        row.say(text);
        whole.say(text);
    }
}

/// A machine makes reasons of texts, and one that knows these by their hashes makes others: what is left is whether there is one.
fn without_reasons(state: &PipelineState) -> PipelineState {
    let mut state = state.clone();
    state.tables.values_mut().filter_map(|entry| entry.why.as_mut()).for_each(String::clear);
    state
}

fn sorted(fills: &[Fill], text: &mut Text) -> Vec<Told> {
    let mut told: Vec<Told> = fills.iter().map(|fill| Told::of(fill, text)).collect();
    told.sort_unstable();
    told
}
