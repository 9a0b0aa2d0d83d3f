//! A trace that a process in production wrote (`urutau run --trace`), given to machines of our own and told in sentences.

use std::io::BufRead;

use kernel::coordinator::ToWorker;
use kernel::outcome::WriteOutcome;
use kernel::planted::PlantedBug;
use kernel::time::Time;
use kernel::worker::{NetOutcome, WorkerInput, WorkerOutput};
use trace::{End, Heard, Reader, Replay, ReplayError, Seen, TraceError};

use crate::tell;

/// What came of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The version of the program that wrote the trace; empty if it is none.
    pub by: String,
    /// Steps that were taken.
    pub steps: u64,
    /// How the trace ends.
    pub end: Result<End, Stopped>,
    /// What the life waited for when the trace ended.
    pub waiting: Vec<String>,
}

/// Why a replay came to no end.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// It is no trace, or nobody can read on.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The machines do another thing, or a rule is broken.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl Replayed {
    /// 0: the machines did the same to the end. 1: they did not, a rule is broken, or a line is not what was written. 2: nobody can read
    /// it. 3: the machines did the same up to where the trace is cut.
    pub fn exit_code(&self) -> u8 {
        match &self.end {
            Ok(_) => 0,
            Err(Stopped::Trace(TraceError::Cut { .. })) => 3,
            Err(Stopped::Trace(TraceError::NoTrace | TraceError::OtherFormat { .. } | TraceError::Unreadable { .. })) => 2,
            Err(Stopped::Trace(TraceError::Altered { .. } | TraceError::Malformed { .. }) | Stopped::Replay(_)) => 1,
        }
    }
}

/// Does a text begin like a trace?
pub fn is_trace(text: &[u8]) -> bool {
    text.starts_with(trace::FIRST_WORDS.as_bytes())
}

/// Replays a trace, with a wrong rule or without. Each line of what is told begins with the line of the trace and with seconds; `everything`: what is heard and said
/// as it is, else what a person wants to read.
pub fn replay(input: impl BufRead, bug: Option<PlantedBug>, everything: bool, mut tell: impl FnMut(String)) -> Replayed {
    let mut replay = Replay::new();
    let mut replayed = Replayed { by: String::new(), steps: 0, end: Ok(End::Stopped), waiting: vec![] };
    replayed.end = play(input, bug, everything, &mut replay, &mut replayed, &mut tell);
    replayed.waiting = replay.coordinator().map(waiting).unwrap_or_default();
    replayed
}

fn play(
    input: impl BufRead,
    bug: Option<PlantedBug>,
    everything: bool,
    replay: &mut Replay,
    replayed: &mut Replayed,
    tell: &mut impl FnMut(String),
) -> Result<End, Stopped> {
    let mut reader = Reader::new(input)?;
    replayed.by = reader.by().into();
    let mut end = End::Stopped;
    while let Some(mut step) = reader.next_step()? {
        let line = step.line;
        if let Heard::Begins(config) = &mut step.heard {
            config.planted = bug;
        }
        replay.take(&step, |now, seen| {
            if let Seen::Ends(how) = seen {
                end = how;
            }
            let told = if everything { Some(format!("{seen:?}")) } else { sentence(seen) };
            if let Some(told) = told {
                tell(format!("{line:>7} {} {told}", seconds(now)));
            }
        })?;
        replayed.steps += 1;
    }
    Ok(end)
}

fn seconds(now: Time) -> String {
    format!("{:>5}.{:06}", now.0 / 1_000_000, now.0 % 1_000_000)
}

fn sentence(seen: Seen<'_>) -> Option<String> {
    match seen {
        Seen::Begins => Some("a life begins".into()),
        Seen::Hears(input) => tell::input(input),
        Seen::Says(output) => tell::output(output),
        Seen::WorkerHears(input) => worker_input(input),
        Seen::WorkerSays(output) => worker_output(output),
        Seen::Ends(End::Stopped) => Some("the trace ends with the life".into()),
        Seen::Ends(End::Full) => Some("the trace ends: its file was full, and the life went on".into()),
    }
}

/// What the coordinator says is told when it says it.
fn worker_input(input: &WorkerInput) -> Option<String> {
    match input {
        WorkerInput::Told(ToWorker::Write { .. } | ToWorker::Abandon { .. }) => None,
        WorkerInput::Netted { attempt, outcome: NetOutcome::Netted { rows, images, .. } } => {
            Some(format!("the worker hears that {rows} rows of {attempt} are {images} images"))
        }
        WorkerInput::Netted { attempt, outcome: NetOutcome::Rejected { why } } => {
            Some(format!("the worker hears that {attempt} can't be netted: {why}"))
        }
        WorkerInput::Wrote { outcome: WriteOutcome::Written, .. } => None,
        WorkerInput::Wrote { attempt, outcome: WriteOutcome::Rejected { why } | WriteOutcome::Transient { why } } => {
            Some(format!("the worker hears that {attempt} is not written: {why}"))
        }
    }
}

fn worker_output(output: &WorkerOutput) -> Option<String> {
    match output {
        WorkerOutput::Net { .. } | WorkerOutput::Write { .. } | WorkerOutput::Written { .. } => None,
        WorkerOutput::Forget { attempt } => Some(format!("the worker forgets {attempt}")),
    }
}

fn waiting(coordinator: &kernel::coordinator::Coordinator) -> Vec<String> {
    let told = coordinator.waiting().into_iter().map(|waiting| {
        let of = waiting.table.map_or(String::new(), |table| format!("{table}: "));
        let since = waiting.since.map_or(String::new(), |since| format!(", since {}", seconds(since).trim()));
        let why = waiting.why.map_or(String::new(), |why| format!(" ({why})"));
        format!("{of}{}{since}{why}; {} ends it", waiting.what, waiting.ended_by)
    });
    told.collect()
}
