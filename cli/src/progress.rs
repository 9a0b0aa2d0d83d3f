//! What a run shows while it goes on, on a terminal: a line for the whole, a line a table. Elsewhere the log lines say it.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use console::style;
use host::{Control, Report, TableReport};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use crate::grid::{Grid, bytes, count};

/// How often the lines are drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// Over how long the rate is taken.
const RATE_OVER: Duration = Duration::from_secs(5);
/// More tables than this do not fit on a screen.
const TABLES_MAX: usize = 24;

/// The lines that are on the screen, for whoever else writes there.
static LINES: OnceLock<MultiProgress> = OnceLock::new();

/// Writes to standard error, above the lines if there are any.
pub(crate) fn write_above(text: &[u8]) -> std::io::Result<()> {
    match LINES.get() {
        Some(lines) => lines.suspend(|| std::io::stderr().write_all(text)),
        None => std::io::stderr().write_all(text),
    }
}

/// The lines of one run.
#[derive(Debug)]
pub(crate) struct Progress(JoinHandle<()>);

impl Progress {
    /// Shows them, if somebody can see them.
    pub(crate) fn begin(control: Control) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = LINES.get_or_init(MultiProgress::new).add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Some(Self(tokio::spawn(async move {
            let mut rate = Rate::default();
            loop {
                let report = control.report();
                rate.add(Instant::now(), report.rows_read);
                bar.set_message(lines(&report, rate.per_second(), chrono::Utc::now().timestamp_millis()));
                bar.tick();
                tokio::time::sleep(DRAWN_EVERY).await;
            }
        })))
    }

    /// Takes them away.
    pub(crate) fn end(self) {
        self.0.abort();
        if let Some(lines) = LINES.get() {
            // A screen that can't be cleared is no reason to fail.
            let _ = lines.clear();
        }
    }
}

/// The lines as text.
fn lines(report: &Report, rows_per_second: u64, now_ms: i64) -> String {
    let state = match (report.running, report.waiting.first()) {
        (false, Some(waiting)) => format!("waiting for {waiting}"),
        (false, None) => "starting".to_owned(),
        (true, _) if report.behind == 0 => "up to date with the log as it was opened".to_owned(),
        (true, _) => format!("{} of the log to go", count(report.behind)),
    };
    let (read, held) = (count(report.rows_read), bytes(report.bytes_held));
    let lag = report.lag_ms.map(|lag| format!(", {} old when read", ago(lag / 1000))).unwrap_or_default();
    let head = format!("{read} changes read, {}/s{lag}, {held} in memory; {state}", count(rows_per_second));
    if report.tables.is_empty() {
        return format!("{}\n", style(head).bold());
    }
    let mut grid = Grid::new(&["table", "phase", ">committed", ">owed", ">commits", ">last commit"]).indented();
    for (name, table) in report.tables.iter().take(TABLES_MAX) {
        let last = table
            .committed_at_ms
            .map_or("-".to_owned(), |at| format!("{} ago", ago(now_ms.saturating_sub(at).max(0).unsigned_abs() / 1000)));
        let (committed, owed, commits) = (count(table.rows_committed), count(table.rows_owed), count(table.commits));
        grid.row([name.clone(), phase(table), committed, owed, commits, last]);
    }
    let more = report.tables.len().saturating_sub(TABLES_MAX);
    let more = if more == 0 { String::new() } else { format!("  and {more} more tables\n") };
    format!("{}\n{}{more}", style(head).bold(), grid.text())
}

/// A stretch of time, as short as people say it.
fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// What a table does; of a snapshot also how much of it is left.
fn phase(table: &TableReport) -> String {
    match &table.snapshot {
        Some(snapshot) => format!("{}, {} ranges to go", table.phase, count(snapshot.ranges_missing as u64)),
        None => table.phase.clone(),
    }
}

/// How fast a number grows, over the last seconds.
#[derive(Debug, Default)]
struct Rate {
    seen: VecDeque<(Instant, u64)>,
}

impl Rate {
    fn add(&mut self, at: Instant, number: u64) {
        self.seen.push_back((at, number));
        while self.seen.len() > 2 && self.seen.front().is_some_and(|(first, _)| at.duration_since(*first) > RATE_OVER) {
            self.seen.pop_front();
        }
    }

    fn per_second(&self) -> u64 {
        let (Some((from, first)), Some((to, last))) = (self.seen.front(), self.seen.back()) else { return 0 };
        let milliseconds = to.duration_since(*from).as_millis().max(1);
        u64::try_from(u128::from(last.saturating_sub(*first)) * 1000 / milliseconds).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_seconds_only() {
        let mut rate = Rate::default();
        let start = Instant::now();
        rate.add(start, 0);
        assert_eq!(rate.per_second(), 0);
        rate.add(start + Duration::from_secs(2), 1_000);
        assert_eq!(rate.per_second(), 500);
        rate.add(start + Duration::from_secs(10), 1_800);
        assert_eq!(rate.per_second(), 100);
    }

    #[test]
    fn the_lines_say_what_is_read_what_is_committed_and_what_is_owed() {
        let table = TableReport {
            phase: "streaming".into(),
            rows_owed: 1_500,
            rows_committed: 20_000,
            commits: 3,
            committed_at_ms: Some(1_700_000_000_000),
            ..TableReport::default()
        };
        let report = Report {
            running: true,
            rows_read: 21_500,
            bytes_held: 2048,
            behind: 123_456,
            lag_ms: Some(4_900),
            tables: [("shop.orders".to_owned(), table)].into(),
            ..Report::default()
        };
        let text = console::strip_ansi_codes(&lines(&report, 7_000, 1_700_000_200_000)).into_owned();
        let expected = "21,500 changes read, 7,000/s, 4 s old when read, 2.00 KiB in memory; 123,456 of the log to go
  table        phase      committed   owed  commits  last commit
  shop.orders  streaming     20,000  1,500        3    3 min ago
";
        assert_eq!(text, expected);
    }

    #[test]
    fn before_it_runs_the_first_line_says_what_it_waits_for() {
        let report = Report { waiting: vec!["the log to be opened, ended by an answer".into()], ..Report::default() };
        let text = console::strip_ansi_codes(&lines(&report, 0, 0)).into_owned();
        assert_eq!(text, "0 changes read, 0/s, 0 B in memory; waiting for the log to be opened, ended by an answer\n");
    }
}
