//! `urutau run`: the pipeline in this process, until it is stopped or done.
//!
//! SIGTERM and SIGINT drain: nothing more is read, what was read is committed, then the process ends as it would have ended
//! by itself. A second signal, or a drain longer than 30 s, ends it at once with 130; nothing is lost by that, the next run
//! goes on from what was committed.

use std::time::Duration;

use contract::{Error, Kind};
use host::{Ended, Endpoints, Report, Run, Trace};
use kernel::coordinator::Operator;
use serde_json::json;

use crate::args::{LISTEN, Listen, OutputFormat, RunArgs};
use crate::drivers;
use crate::grid::{Grid, count};
use crate::output::{Answer, Failure, exit};
use crate::pipeline::{self, Loaded};
use crate::progress::Progress;
use crate::signals::Signals;

/// How long a drain may take before the process ends anyway.
const DRAIN_MAX: Duration = Duration::from_secs(30);

/// Runs to the end.
pub(crate) async fn run(args: &RunArgs, output: OutputFormat) -> Result<Answer, Failure> {
    let mut signals = Signals::listen().map_err(|error| {
        Error::new(Kind::Fatal, "signals", format!("signals can't be listened to: {error}"), "this is a fault in urutau itself")
    })?;
    let pipeline = pipeline::load(&args.file.file)?;
    for difference in &pipeline.spec.other_in_go {
        tracing::info!("{difference}");
    }
    for warning in &pipeline.spec.warnings {
        tracing::warn!("{}:{warning}", args.file.file.display());
    }
    let begun = std::time::Instant::now();
    let mut run = tokio::select! {
        run = start(&pipeline, args) => run?,
        () = signals.next() => return Ok(Answer::done("stopped before it began", json!({ "exit": exit::DONE, "message": null }))),
    };
    let progress = (output == OutputFormat::Text).then(|| Progress::begin(run.control())).flatten();
    let end = to_its_end(&mut run, &mut signals).await;
    if let Some(progress) = progress {
        progress.end();
    }
    Ok(match end {
        Ok(ended) => ended_answer(&ended, begun.elapsed()),
        Err(why) => {
            run.leave().await;
            interrupted_answer(why, &run.control().report())
        }
    })
}

async fn start(pipeline: &Loaded, args: &RunArgs) -> Result<Run, Error> {
    let trace = args.trace.as_deref().map(Trace::create).transpose()?;
    let endpoints = listen(args.listen).await?;
    let drivers = host::open(&pipeline.spec, &drivers::registry()).await?;
    let run = Run::start_traced(&pipeline.spec, drivers, args.until_current, trace)?;
    if let Some(endpoints) = endpoints {
        if let Some(address) = endpoints.address() {
            tracing::info!(%address, "serving /metrics, /statusz, /healthz, /readyz");
        }
        endpoints.serve(run.control());
    }
    Ok(run)
}

/// The default address is a convenience: taken, it is a warning. One that somebody gave must be had.
async fn listen(asked: Option<Listen>) -> Result<Option<Endpoints>, Error> {
    match asked {
        Some(Listen::Off) => Ok(None),
        Some(Listen::At(address)) => Endpoints::bind(address).await.map(Some),
        None => match Endpoints::bind(LISTEN).await {
            Ok(endpoints) => Ok(Some(endpoints)),
            Err(error) => {
                tracing::warn!("{error}; the run goes on without endpoints");
                Ok(None)
            }
        },
    }
}

/// `Err` says why there was no clean end.
async fn to_its_end(run: &mut Run, signals: &mut Signals) -> Result<Ended, &'static str> {
    tokio::select! {
        ended = run.ended() => return Ok(ended),
        () = signals.next() => {}
    }
    tracing::info!("stopping: what was read is committed first; a second signal ends at once");
    let control = run.control();
    let drained = async {
        // If it is over already, its end says so.
        control.ask(Operator::Drain).await;
        run.ended().await
    };
    tokio::select! {
        ended = drained => Ok(ended),
        () = signals.next() => Err("a second signal came"),
        () = tokio::time::sleep(DRAIN_MAX) => Err("the drain took longer than 30 s"),
    }
}

fn interrupted_answer(why: &str, report: &Report) -> Answer {
    let message = format!("interrupted before a clean end: {why}. Nothing is lost: the next run goes on from what was committed");
    eprintln!("{message}");
    let json = json!({ "exit": exit::INTERRUPTED, "message": message, "report": report });
    Answer { code: exit::INTERRUPTED, text: String::new(), json }
}

fn ended_answer(ended: &Ended, took: Duration) -> Answer {
    if let Some(message) = ended.message() {
        eprintln!("error: {message}");
    }
    let json = json!({ "exit": ended.exit_code(), "message": ended.message(), "report": ended.report });
    // Where it never came to reading, the message is all that there is to say.
    let began = ended.report.running || ended.report.rows_read > 0 || ended.message().is_none();
    let text = if began { summary(&ended.report, took) } else { String::new() };
    Answer { code: ended.exit_code(), text, json }
}

/// What came of it, table by table.
fn summary(report: &Report, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let changes = if report.rows_read == 1 { "change" } else { "changes" };
    let mut text = format!("pipeline {}: {} {changes} read in {seconds:.1} s\n", report.pipeline, count(report.rows_read));
    let mut grid = Grid::new(&["table", "phase", ">committed", ">commits"]);
    for (name, table) in &report.tables {
        grid.row([name.clone(), table.phase.clone(), count(table.rows_committed), count(table.commits)]);
    }
    text.push_str(&grid.text());
    for (name, table) in &report.tables {
        if let Some(why) = &table.why {
            text.push_str(&format!("{name} is {}: {why}\n", table.phase));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::TableReport;

    #[test]
    fn the_summary_names_what_each_table_got_and_why_one_stands_still() {
        let orders = TableReport { phase: "streaming".into(), rows_committed: 12_000, commits: 4, ..TableReport::default() };
        let why = Some("line 7: the key is null".to_owned());
        let items = TableReport { phase: "halted".into(), rows_committed: 3, commits: 1, why, ..TableReport::default() };
        let tables = [("shop.orders".to_owned(), orders), ("shop.items".to_owned(), items)].into();
        let report = Report { pipeline: "desk".into(), rows_read: 12_010, tables, ..Report::default() };
        let text = console::strip_ansi_codes(&summary(&report, Duration::from_millis(2_540))).into_owned();
        let expected = "pipeline desk: 12,010 changes read in 2.5 s
table        phase      committed  commits
shop.items   halted             3        1
shop.orders  streaming     12,000        4
shop.items is halted: line 7: the key is null
";
        assert_eq!(text, expected);
    }
}
