//! What machines hear and say, in sentences for people. What happens all the time and means nothing is left out.

use kernel::coordinator::{Input, LogEvent, Operator, Output, StopReason, ToWorker, Visibility};
use kernel::id::{Bound, TransactionName};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::state::{PipelineState, TableState};

/// A fact, unless nobody needs to hear of it.
pub fn input(input: &Input) -> Option<String> {
    Some(match input {
        Input::PipelineStateRead { state: None, .. } => "hears that there is no record".into(),
        Input::PipelineStateRead { state: Some(state), .. } => format!("hears the record: {}", record(state)),
        Input::PipelineStateStored { outcome, .. } => match outcome {
            StoreOutcome::Stored { .. } => "hears that the record is stored".into(),
            StoreOutcome::Conflict { found: None, .. } => "hears that the record is gone".into(),
            StoreOutcome::Conflict { found: Some(found), .. } => format!("hears that another record is there: {}", record(found)),
            StoreOutcome::Unknown { why } => format!("does not know what became of the record: {why}"),
        },
        Input::TableRecovered { table, state: None, .. } => format!("hears that {table} has no state"),
        Input::TableRecovered { table, state: Some(found), .. } => format!("hears that {table} is {}", state(found)),
        Input::LogOpened { session, floor, end, .. } => {
            format!("hears that the log is open as session {}, from '{floor}' to '{end}'", session.0)
        }
        Input::LogRead { events, finished, .. } if events.is_empty() && !finished => return None,
        Input::LogRead { events, finished, .. } => {
            let told: Vec<String> = events.iter().map(event).collect();
            format!("reads {}{}", told.join(", "), if *finished { ", and no more comes" } else { "" })
        }
        Input::LogFailed { failure, .. } => match failure {
            LogFailure::SessionLost { why } => format!("hears that the session is lost: {why}"),
            LogFailure::Poison { why } => format!("hears that the log can't be read: {why}"),
            LogFailure::PositionLost { why } => format!("hears that the place in the log is lost: {why}"),
            LogFailure::Config { why } => format!("hears that the log can't be opened: {why}"),
        },
        Input::Written { attempt, outcome } => match outcome {
            WriteOutcome::Written => format!("hears that {attempt} is written"),
            WriteOutcome::Rejected { why } => format!("hears that {attempt} is refused: {why}"),
            WriteOutcome::Transient { why } => format!("hears that {attempt} failed: {why}"),
        },
        Input::Committed { table, outcome, .. } => match outcome {
            CommitOutcome::Durable { .. } => format!("hears that the commit to {table} is durable"),
            CommitOutcome::Conflict { found: None, .. } => format!("hears of a conflict: {table} has no state"),
            CommitOutcome::Conflict { found: Some(found), .. } => format!("hears of a conflict: {table} is {}", state(found)),
            CommitOutcome::Unknown { why } => format!("does not know what became of the commit to {table}: {why}"),
            CommitOutcome::Superseded => format!("hears from {table} that a newer life has begun"),
            CommitOutcome::Rejected { why } => format!("hears that {table} refuses: {why}"),
            CommitOutcome::Transient { why } => format!("hears that the commit to {table} failed: {why}"),
        },
        Input::Resolved { table, found: true, .. } => format!("hears that the commit is in {table}"),
        Input::Resolved { table, found: false, .. } => format!("hears that the commit is not in {table}"),
        Input::RangesPlanned { bounds, .. } => {
            let bounds: Vec<String> = bounds.iter().map(ToString::to_string).collect();
            format!("hears where ranges may end: {}", if bounds.is_empty() { "nowhere".into() } else { bounds.join(", ") })
        }
        Input::ChunkRead { chunk, .. } => {
            let end = chunk.end.as_ref().map_or("the end".into(), |end| end.to_string());
            let rows = chunk.rows.as_ref().map_or(0, |held| held.rows);
            format!("hears a chunk of {rows} rows up to {end}, at '{}', {}", chunk.fence, visibility(&chunk.visibility))
        }
        Input::RowsRead { answer, .. } => {
            let (there, gone) = (answer.keys.len(), answer.gone.len());
            format!("hears {there} rows again, {gone} are gone, at '{}', {}", answer.fence, visibility(&answer.visibility))
        }
        Input::VisibilityRead { visibility: seen, .. } => format!("hears {}", visibility(seen)),
        Input::Failed { why, .. } => format!("hears that it failed: {why}"),
        Input::Refused { why, .. } => format!("hears that it is refused: {why}"),
        Input::Operator(operator) => match operator {
            Operator::Pause(table) => format!("is asked to pause {table}"),
            Operator::Resume(table) => format!("is asked to resume {table}"),
            Operator::Skip(table) => format!("is asked to skip what halted {table}"),
            Operator::Release(table) => format!("is asked to release {table}"),
            Operator::Resnapshot(table) => format!("is asked to copy {table} anew"),
            Operator::Drain => "is asked to end".into(),
        },
        Input::Timeout => return None,
    })
}

/// A command, unless nobody needs to hear of it.
pub fn output(output: &Output) -> Option<String> {
    Some(match output {
        Output::ReadPipelineState { .. } => "reads the record".into(),
        Output::StorePipelineState { new, .. } => format!("stores the record: {}", record(new)),
        Output::RecoverTable { table, .. } => format!("reads the state of {table}"),
        Output::OpenLog { .. } => "opens the log".into(),
        Output::ReadLog { restart: None, .. } => return None,
        Output::ReadLog { restart: Some(restart), .. } => {
            let divided: Vec<String> = restart.divided.iter().map(|(t, x, at)| format!("{t} in {x:?} at {at:?}")).collect();
            let divided = if divided.is_empty() { String::new() } else { format!(", divided for {}", divided.join(", ")) };
            format!("goes back in the log to '{}'{divided}", restart.from)
        }
        Output::PlanRanges { table, wanted, .. } => format!("asks for about {wanted} ranges of {table}"),
        Output::ReadChunk { table, range, about, .. } => {
            let bound = |bound: &Option<Bound>, open: &str| bound.as_ref().map_or(open.to_string(), ToString::to_string);
            let (after, end) = (bound(&range.after, "the start"), bound(&range.end, "the end"));
            format!("reads a chunk of {table} behind {after} up to {end}, asking about {}", names(about))
        }
        Output::ReadVisibility { table, about, unfinished, .. } => {
            let all = if *unfinished { ", and what is unfinished" } else { "" };
            format!("asks for {table} whether {} can be seen{all}", names(about))
        }
        Output::ReadRows { table, keys, about, .. } => {
            format!("reads {} rows of {table} again, for values that were not sent, asking about {}", keys.len(), names(about))
        }
        Output::ReleaseBatch { .. } => return None,
        Output::Send(ToWorker::Write { attempt, part, rows, fills, .. }) => {
            let count: u32 = rows.iter().map(|r| r.count()).sum();
            let filled = if fills.is_empty() { String::new() } else { format!(", {} of them with what was read", fills.len()) };
            format!("has {count} rows of {} written as {attempt}{filled}", part.table)
        }
        Output::Send(ToWorker::Abandon { attempt }) => format!("gives {attempt} up"),
        Output::Commit { table, state: new, staged, truncate_first, sweep, .. } => {
            let parts: Vec<String> = staged.iter().map(|a| a.to_string()).collect();
            let with = if parts.is_empty() { "no rows".into() } else { parts.join(", ") };
            let first = if *truncate_first { ", emptying it first" } else { "" };
            let swept = if *sweep { ", taking away what is older than its snapshot" } else { "" };
            format!("commits {with} to {table}{first}{swept}: {}", state(new))
        }
        Output::Resolve { table, commit, .. } => format!("looks for {commit:?} in {table}"),
        Output::ReleaseStaged { delete: false, .. } => return None,
        Output::ReleaseStaged { table, attempt, delete: true } => format!("deletes what {attempt} staged for {table}"),
        Output::DiscardOlder { table, .. } => format!("deletes what older lives staged for {table}"),
        Output::Acknowledge { upto, .. } => format!("lets the source forget '{upto}'"),
        Output::Started { table, lost: false, state: None, .. } => format!("begins {table} anew"),
        Output::Started { table, lost: false, state: Some(found), .. } => format!("goes on with {table}, {}", state(found)),
        Output::Started { table, lost: true, floor, .. } => {
            format!("says that {table} lacks what the log has no more, below '{floor}'")
        }
        Output::HaltTable { table, why, .. } => format!("halts {table}: {why}"),
        Output::Declined { table, why } => format!("leaves {table} as it is: {why}"),
        Output::Skipped { table, transaction, coordinate } => format!("skips {transaction:?} {coordinate:?} of {table}"),
        Output::Stop { reason } => match reason {
            StopReason::Drained => "ends: everything is committed".into(),
            StopReason::Superseded { by } => format!("ends: life {by} has taken over"),
            other => format!("ends: {other:?}"),
        },
    })
}

fn visibility(seen: &Visibility) -> String {
    let unfinished = seen.unfinished.as_ref().map_or(String::new(), |all| format!(", unfinished is {}", names(all)));
    format!("that {} can be seen{unfinished}", names(&seen.proven))
}

fn names<'a>(of: impl IntoIterator<Item = &'a TransactionName>) -> String {
    let names: Vec<&str> = of.into_iter().map(TransactionName::as_str).collect();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

fn record(record: &PipelineState) -> String {
    let tables: Vec<String> = record
        .tables
        .iter()
        .map(|(name, entry)| match entry.named {
            Some(named) => format!("{name} {} as of {named:?}", entry.phase.as_str()),
            None => format!("{name} {}", entry.phase.as_str()),
        })
        .collect();
    let tables = if tables.is_empty() { String::new() } else { format!("; {}", tables.join(", ")) };
    format!("life {}, quiet '{}'{tables}", record.incarnation, record.quiet)
}

fn state(state: &TableState) -> String {
    format!("at {:?} by {:?} of life {}", state.cut, state.commit, state.incarnation)
}

fn event(event: &LogEvent) -> String {
    match event {
        LogEvent::Rows { table, transaction, rows, first, last, .. } => {
            format!("{} rows of {table} in {transaction:?} ({first:?} to {last:?})", rows.count())
        }
        LogEvent::Truncated { table, transaction, .. } => format!("that {table} is truncated in {transaction:?}"),
        LogEvent::Schema { table, transaction, schema, .. } => {
            format!("that {table} has schema {schema} from {transaction:?} on")
        }
        LogEvent::Refused { table, transaction, coordinate, .. } => {
            format!("a row of {table} that fits no policy in {transaction:?} at {coordinate:?}")
        }
        LogEvent::Ended { transaction, upto } => format!("the end of {transaction:?} at '{upto}'"),
        LogEvent::Keepalive { upto } => format!("a keepalive at '{upto}'"),
    }
}
