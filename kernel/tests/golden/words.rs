//! Commands, states and times as a script shows them. Every field of a command is shown, or is at its default: a new one does
//! not compile until somebody has decided how it is told.

use kernel::coordinator::{Fill, Output, Restart, RowRange, Status, StopReason, ToWorker};
use kernel::id::{AttemptId, Identity, StreamName};
use kernel::position::{LogIdentity, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, PipelineState, TableRecord, TableState};
use kernel::time::Time;
use kernel::worker::WorkerOutput;

/// A command, in one line or a few.
pub(crate) fn output(output: &Output) -> Vec<String> {
    match output {
        Output::ReadPipelineState { id } => vec![format!("read the record {id:?}")],
        Output::StorePipelineState { id, expected, new } => {
            let mut lines = vec![format!("store the record {id:?} over {expected}:")];
            lines.extend(record(new));
            lines
        }
        Output::RecoverTable { id, table } => vec![format!("recover {table} {id:?}")],
        Output::OpenLog { id } => vec![format!("open the log {id:?}")],
        Output::ReadLog { id, session, restart, bytes_max, keys_of } => {
            let from = restart.as_ref().map_or("on".to_string(), restarts);
            let keys = if keys_of.is_empty() { String::new() } else { format!(", with the keys of {keys_of:?}") };
            vec![format!("read the log {id:?} {from}, session {}, at most {bytes_max} bytes{keys}", session.0)]
        }
        Output::PlanRanges { id, table, wanted } => vec![format!("plan about {wanted} ranges of {table} {id:?}")],
        Output::ReadChunk { id, table, range, rows_max, bytes_max, about } => {
            let bound = |b: &Option<kernel::id::Bound>, open: &str| b.as_ref().map_or(open.to_string(), ToString::to_string);
            let (after, end) = (bound(&range.after, "the start"), bound(&range.end, "the end"));
            let most = format!("at most {rows_max} rows and {bytes_max} bytes");
            vec![format!("read a chunk of {table} {id:?} behind {after} to {end}, {most}, does it see {about:?}?")]
        }
        Output::ReadVisibility { id, table, about, unfinished } => {
            let all = if *unfinished { ", and what is unfinished?" } else { "" };
            vec![format!("is it visible {id:?}: {about:?} for {table}{all}")]
        }
        Output::ReadRows { id, table, keys, schema, bytes_max, about } => {
            let schema = schema.as_ref().map_or(String::new(), |schema| format!(", as of {schema}"));
            vec![format!(
                "read rows of {table} {id:?} again: {keys:?}{schema}, at most {bytes_max} bytes, does it see {about:?}?"
            )]
        }
        Output::ReleaseBatch { batch } => vec![format!("release batch {}", batch.0)],
        Output::Send(message) => vec![to_worker(message)],
        Output::Commit { id, table, token, state, staged, truncate_first, sweep } => {
            let emptied = if *truncate_first { ", all rows go first" } else { "" };
            let swept = if *sweep { ", what is older than its beginning goes" } else { "" };
            let mut lines = vec![format!("commit {table} {id:?} over {token}, staged {staged:?}{emptied}{swept}:")];
            lines.extend(table_state(state));
            lines
        }
        Output::Resolve { id, table, commit, incarnation } => {
            vec![format!("resolve {table} {id:?}: is {commit:?} of life {incarnation} there?")]
        }
        Output::ReleaseStaged { table, attempt, delete } => {
            vec![format!("forget what {attempt:?} staged for {table}{}", if *delete { ", and delete it" } else { "" })]
        }
        Output::DiscardOlder { table, incarnation } => {
            vec![format!("discard what lives before {incarnation} staged for {table}")]
        }
        Output::Acknowledge { session, upto } => vec![format!("acknowledge {} in session {}", place(upto), session.0)],
        Output::Started { table, state, floor, lost } => {
            let stands = state.as_ref().map_or("without a state".to_string(), |s| format!("from {:?}", s.cut));
            let lost = if *lost { ": LOST" } else { "" };
            vec![format!("say: {table} starts {stands}, the log begins at {}{lost}", place(floor))]
        }
        Output::HaltTable { table, why, at } => {
            let at = at.as_ref().map_or(String::new(), |(transaction, at)| format!(" at {transaction:?}/{at:?}"));
            vec![format!("say: {table} halts{at}: {why}")]
        }
        Output::Declined { table, why } => vec![format!("say: {table} is left as it is: {why}")],
        Output::Skipped { table, transaction, coordinate } => vec![format!("say: {table} skips {transaction:?}/{coordinate:?}")],
        Output::Stop { reason } => vec![format!("stop: {}", stop(reason))],
    }
}

fn restarts(restart: &Restart) -> String {
    let divided: Vec<String> = restart.divided.iter().map(|(t, x, c)| format!("{t} behind {x:?}/{c:?}")).collect();
    let divided = if divided.is_empty() { String::new() } else { format!(", divided: {}", divided.join(", ")) };
    format!("from {}{divided}", place(&restart.from))
}

fn stop(reason: &StopReason) -> String {
    match reason {
        StopReason::Drained => "drained".into(),
        StopReason::Poison { why } => format!("the log can't be read on: {why}"),
        StopReason::TableHalted { table } => format!("{table} has halted"),
        StopReason::PositionLost { why } => format!("position lost: {why}"),
        StopReason::Config { why } => format!("configuration: {why}"),
        StopReason::Unreachable { why } => format!("unreachable: {why}"),
        StopReason::Superseded { by } => format!("superseded by life {by}"),
        StopReason::Violation { rule, dump } => format!("VIOLATION of {rule}: {dump}"),
    }
}

fn to_worker(message: &ToWorker) -> String {
    match message {
        ToWorker::Write { attempt, part, rows, first_version, fills } => {
            let (table, checkpoint, slot) = (&part.table, part.checkpoint.0, part.slot.0);
            let version = format!("{}/{}", first_version.incarnation(), first_version.sequence());
            format!(
                "tell the worker: write {attempt:?}, checkpoint {checkpoint} of {table}, slot {slot}: {}, from version {version}{}",
                ranges(rows),
                filled(fills)
            )
        }
        ToWorker::Abandon { attempt } => format!("tell the worker: abandon {attempt:?}"),
    }
}

fn filled(fills: &[Fill]) -> String {
    let row = |fill: &Fill| fill.row.as_ref().map_or("nothing".to_string(), |row| ranges(std::slice::from_ref(row)));
    let whole = |fill: &Fill| if fill.whole { ", whole" } else { "" };
    let fill = |fill: &Fill| format!("; what {:?} lacks is in {}{}", fill.key, row(fill), whole(fill));
    fills.iter().map(fill).collect()
}

fn ranges(rows: &[RowRange]) -> String {
    let ranges: Vec<String> = rows.iter().map(|r| format!("batch {} rows {}..{}", r.batch.0, r.rows.start, r.rows.end)).collect();
    ranges.join(", ")
}

/// A command of a worker.
pub(crate) fn worker_output(output: &WorkerOutput) -> String {
    match output {
        WorkerOutput::Net { attempt, part, rows, first_version, fills } => {
            let (table, checkpoint, slot) = (&part.table, part.checkpoint.0, part.slot.0);
            let version = format!("{}/{}", first_version.incarnation(), first_version.sequence());
            let rows = ranges(rows);
            let fills = filled(fills);
            format!("net {attempt:?}, checkpoint {checkpoint} of {table}, slot {slot}: {rows}, from version {version}{fills}")
        }
        WorkerOutput::Write { attempt, table } => format!("write {attempt:?} to {table}"),
        WorkerOutput::Forget { attempt } => format!("forget {attempt:?}"),
        WorkerOutput::Written { attempt, outcome } => format!("tell the coordinator: {}: {outcome:?}", attempt_name(*attempt)),
    }
}

fn attempt_name(attempt: AttemptId) -> String {
    format!("{attempt:?}")
}

/// A position in brackets.
pub(crate) fn place(position: &Position) -> String {
    format!("[{position}]")
}

fn identity(identity: &LogIdentity) -> String {
    let of = |(s, i): (&StreamName, &Identity)| if s.as_str().is_empty() { i.to_string() } else { format!("{s}={i}") };
    let streams: Vec<String> = identity.streams.iter().map(of).collect();
    let server = identity.coordinates.as_ref().map_or(String::new(), |c| format!(" numbered by {c}"));
    let log = match &identity.lineage {
        Some(lineage) => format!("lineage {lineage}"),
        None if streams.is_empty() => "no log".into(),
        None => streams.join(" "),
    };
    format!("{log}{server}")
}

fn record(record: &PipelineState) -> Vec<String> {
    let PipelineState { format, incarnation, identity: log, quiet, tables } = record;
    let format = if *format == FORMAT { String::new() } else { format!(", format {format}") };
    let mut lines = vec![format!("  life {incarnation}, quiet {} of {}{format}", place(quiet), identity(log))];
    for (name, TableRecord { phase, generation, named, skipped, why }) in tables {
        let generation = if *generation == 0 { String::new() } else { format!(", generation {generation}") };
        let named = named.map_or("names nothing".to_string(), |c| format!("names {c:?}"));
        let skips = skipped.iter().map(|s| {
            let transaction = Transaction { stream: s.stream.clone(), at: s.at };
            format!(", life {} skips {transaction:?}/{:?}", s.incarnation, s.coordinate)
        });
        lines.push(format!("  {name} {}{generation}, {named}{}", phase.as_str(), skips.collect::<String>()));
        lines.extend(why.iter().map(|why| format!("    because {why}")));
    }
    lines
}

fn table_state(state: &TableState) -> Vec<String> {
    let TableState { format, cut, identity: log, incarnation, commit, ancestors, sequence, generation, base, begun, .. } = state;
    let TableState { tiling, in_doubt, ahead, schema, .. } = state;
    let after = if *ancestors == Ancestors::default() { String::new() } else { format!(" after {}", built_upon(ancestors)) };
    let begun = format!("{}/{}", begun.incarnation(), begun.sequence());
    let mut lines = vec![format!("  {commit:?} of life {incarnation} at {cut:?} of {}{after}", identity(log))];
    lines.push(format!("  last row {sequence}, base {}, begun {begun}", place(base)));
    if *format != FORMAT || *generation != 0 || !tiling.is_empty() || !in_doubt.is_empty() || *ahead != Position::START {
        lines.push(format!("  format {format}, generation {generation}, {tiling:?}, {in_doubt:?}, ahead {}", place(ahead)));
    }
    lines.extend(schema.iter().map(|schema| format!("  schema {schema}")));
    lines
}

/// The list itself says only whether it contains a commit.
fn built_upon(ancestors: &Ancestors) -> String {
    let of = |incarnation| (0..100).map(move |number| kernel::id::CommitId { incarnation, number });
    let known = (0..10).map(kernel::id::Incarnation).flat_map(of).filter(|commit| ancestors.contains(*commit));
    known.map(|commit| format!("{commit:?}")).collect::<Vec<_>>().join(" ")
}

/// A moment, as seconds.
pub(crate) fn time(time: Time) -> String {
    let (seconds, rest) = (time.0 / 1_000_000, time.0 % 1_000_000);
    if rest == 0 { format!("{seconds}s") } else { format!("{}s", time.0 as f64 / 1e6) }
}

/// The read-only view.
pub(crate) fn status(status: &Status) -> Vec<String> {
    let running = if status.running { "running" } else { "not running" };
    let (quiet, acknowledged, received) = (place(&status.quiet), place(&status.acknowledged), place(&status.received));
    let mut lines = vec![format!(
        "life {}, {running}: quiet {quiet}, acknowledged {acknowledged}, received {received}, {} bytes held",
        status.incarnation, status.bytes_held
    )];
    for (name, table) in &status.tables {
        let stored = table.stored.as_ref().map_or("nothing".into(), |s| format!("{:?} at {:?}", s.commit, s.cut));
        let blocked = if table.blocked { ", blocked" } else { "" };
        lines.push(format!(
            "{name} is {}{blocked}: stored {stored}, taken {}, owes {}, {} rows durable in {} commits",
            table.phase.as_str(),
            place(&table.taken),
            table.rows_owed,
            table.rows_durable,
            table.commits
        ));
        lines.extend(table.why.iter().map(|why| format!("  because {why}")));
    }
    for waiting in &status.waiting {
        let table = waiting.table.as_ref().map_or(String::new(), |t| format!("{t}: "));
        let since = waiting.since.map_or(String::new(), |s| format!(", since {}", time(s)));
        let why = waiting.why.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        lines.push(format!("waits for {table}{}{since}{why}, ended by {}", waiting.what, waiting.ended_by));
    }
    lines
}
