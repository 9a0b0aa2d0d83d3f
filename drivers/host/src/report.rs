//! What a run shows: log lines, metrics, and one report that progress bars, `/statusz` and the final summary read.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use contract::{LogEvent, LogRead, Retention};
use kernel::coordinator::{Coordinator, Status, TableStatus};
use kernel::id::TableName;
use kernel::outcome::CommitOutcome;
use kernel::state::Phase;
use metrics::{counter, gauge, histogram};
use pump::Notice;
use rows::TableSchema;
use serde::Serialize;

/// A run as people and programs see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The pipeline's name.
    pub pipeline: String,
    /// This life's number; 0 until it is taken.
    pub incarnation: u32,
    /// Is it past its beginning?
    pub running: bool,
    /// Rows read from the log in this run, all tables together, those of tables that took them before included.
    pub rows_read: u64,
    /// Bytes of rows held in memory now.
    pub bytes_held: u64,
    /// How much of the log, up to the end that it had when it was opened, is not read yet; in the log's own measure.
    pub behind: u64,
    /// How old the newest change was when it was read, in milliseconds, if the source says when it committed it.
    pub lag_ms: Option<u64>,
    /// Bytes of log that the source keeps because of this pipeline, if it does and says so.
    pub retained_bytes: Option<u64>,
    /// After so many bytes more it discards what the pipeline needs, if there is such a bound.
    pub retention_left_bytes: Option<u64>,
    /// At or below this nothing is owed.
    pub quiet: String,
    /// What the source may forget.
    pub acknowledged: String,
    /// The tables.
    pub tables: BTreeMap<String, TableReport>,
    /// What is waited for.
    pub waiting: Vec<String>,
}

/// A table as people and programs see it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TableReport {
    /// pending, snapshotting, streaming, paused, halted, needs-snapshot.
    pub phase: String,
    /// Why it stands still, if it does.
    pub why: Option<String>,
    /// Where its copy stands.
    pub position: String,
    /// Changes taken and not yet durable.
    pub rows_owed: u64,
    /// Changes in durable commits of this run.
    pub rows_committed: u64,
    /// Durable commits of this run.
    pub commits: u64,
    /// When the last of them was, milliseconds since 1970.
    pub committed_at_ms: Option<i64>,
    /// Of which snapshot its copy is: 0 if it was never read beside the log.
    pub generation: u64,
    /// Rows of snapshots that were taken in this run.
    pub snapshot_rows: u64,
    /// Rows of snapshots in whose place the log's were taken, since something had changed them that the snapshot did not see.
    pub snapshot_rows_dropped: u64,
    /// How far the snapshot is that is being read.
    pub snapshot: Option<SnapshotReport>,
}

/// A snapshot that is being read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SnapshotReport {
    /// Ranges of the table's keys, as far as they are known; neighbours that are read are one.
    pub ranges: usize,
    /// Those of them that are not read.
    pub ranges_missing: usize,
    /// Chunks that were asked for in this run.
    pub chunks: u64,
    /// Those of them that were read in vain and are read again.
    pub chunks_void: u64,
    /// Transactions of the source that it waits for, as the source calls them.
    pub in_doubt: Vec<String>,
}

/// Where a run's machinery leaves what it sees.
pub(crate) struct Reporter {
    pipeline: String,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    report: Report,
    status: Option<Status>,
    observed: Option<Instant>,
    rows_read: u64,
    /// The newest moment at which the source committed something that was read, and when it was read, microseconds since 1970.
    newest: Option<(i64, i64)>,
    retention: Option<Retention>,
    /// When each table's last durable commit was, milliseconds since 1970.
    committed_at: BTreeMap<TableName, i64>,
    /// What is to be logged once the report says it too: who reads the log may ask for the report at once.
    notices: Vec<Notice>,
}

/// Less log than this may be left at the source before somebody should look.
const LITTLE_LEFT: u64 = 64 << 20;

/// How often a report is made anew while rows flow: it walks over all tables.
const OBSERVED_EVERY: Duration = Duration::from_millis(100);

impl Reporter {
    pub(crate) fn new(pipeline: &str) -> Self {
        Self { pipeline: pipeline.to_owned(), seen: Mutex::new(Seen::default()) }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        // A panic elsewhere leaves numbers here, never a broken structure.
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The newest report.
    pub(crate) fn report(&self) -> Report {
        self.seen().report.clone()
    }

    /// Each table's state when the run ended.
    pub(crate) fn tables(&self) -> BTreeMap<TableName, TableStatus> {
        self.seen().status.as_ref().map(|s| s.tables.clone()).unwrap_or_default()
    }

    pub(crate) fn observe(&self, coordinator: &Coordinator) {
        let mut seen = self.seen();
        let fresh = seen.observed.is_some_and(|at| at.elapsed() < OBSERVED_EVERY);
        if fresh && seen.notices.is_empty() && !coordinator.is_stopped() {
            return;
        }
        let status = coordinator.status();
        let mut report = report(&self.pipeline, &status);
        report.rows_read = seen.rows_read;
        report.lag_ms = seen.newest.map(|(then, read)| read.saturating_sub(then).max(0).unsigned_abs() / 1000);
        report.retained_bytes = seen.retention.map(|retention| retention.kept_bytes);
        report.retention_left_bytes = seen.retention.and_then(|retention| retention.left_bytes);
        for (table, at) in &seen.committed_at {
            if let Some(table) = report.tables.get_mut(table.as_str()) {
                table.committed_at_ms = Some(*at);
            }
        }
        publish(&report);
        seen.report = report;
        let notices = std::mem::take(&mut seen.notices);
        let tables = if notices.is_empty() { BTreeMap::new() } else { status.tables.clone() };
        seen.status = Some(status);
        seen.observed = Some(Instant::now());
        drop(seen);
        notices.iter().for_each(|notice| log(notice, &tables));
    }

    /// Something for people. It is logged when the machine is observed next, which is at the end of the same step.
    pub(crate) fn notice(&self, notice: Notice) {
        self.seen().notices.push(notice);
    }

    pub(crate) fn read(&self, read: &LogRead) {
        let rows: u64 = read.batches.iter().map(|b| b.rows() as u64).sum();
        counter!("urutau_coordinator_events_decoded_total").increment(rows);
        let runs = read.batches.iter().flat_map(|batch| &batch.tail.transactions);
        let ended = read.events.iter().filter_map(|event| match event {
            LogEvent::Ended { commit_time, .. } => *commit_time,
            _ => None,
        });
        let newest = runs.filter_map(|run| run.commit_time).chain(ended).max();
        let mut seen = self.seen();
        seen.rows_read += rows;
        // What is read again is older, and says nothing of how far behind the run is.
        if let Some(newest) = newest.filter(|newest| seen.newest.is_none_or(|(before, _)| before < *newest)) {
            seen.newest = Some((newest, now_micros()));
        }
        drop(seen);
        for event in &read.events {
            if let LogEvent::Truncated { table, .. } = event {
                counter!("urutau_source_truncates_total", "table" => table.to_string()).increment(1);
            }
        }
    }

    /// What the source keeps because of this pipeline. Little left is said once, until there is more again.
    pub(crate) fn retained(&self, retention: Option<Retention>) {
        let left = |retention: Option<Retention>| retention.and_then(|retention| retention.left_bytes);
        let is_little = |retention| left(retention).is_some_and(|left| left < LITTLE_LEFT);
        let before = std::mem::replace(&mut self.seen().retention, retention);
        if let Some(left) = left(retention).filter(|_| is_little(retention) && !is_little(before)) {
            tracing::warn!(left_bytes = left, "the source is about to discard log that this pipeline needs");
        }
        let Some(Retention { kept_bytes, left_bytes }) = retention else { return };
        gauge!("urutau_source_retained_bytes").set(float(kept_bytes));
        if let Some(left) = left_bytes {
            gauge!("urutau_source_retention_left_bytes").set(float(left));
        }
    }

    pub(crate) fn committed(&self, table: &TableName, outcome: &CommitOutcome, took: Duration) {
        let table = table.to_string();
        histogram!("urutau_worker_commit_duration_seconds", "table" => table.clone()).record(took.as_secs_f64());
        match outcome {
            CommitOutcome::Durable { .. } => {
                self.seen().committed_at.insert(TableName::from(table.as_str()), now_micros() / 1000);
                counter!("urutau_coordinator_commits_total", "table" => table).increment(1);
            }
            CommitOutcome::Conflict { .. } => tracing::info!(table, "another writer had committed to the table"),
            CommitOutcome::Unknown { why } | CommitOutcome::Transient { why } => {
                counter!("urutau_worker_commit_failures_total", "table" => table.clone()).increment(1);
                tracing::warn!(table, why, "a commit did not succeed; it is tried again");
            }
            CommitOutcome::Superseded | CommitOutcome::Rejected { .. } => {
                counter!("urutau_worker_commit_failures_total", "table" => table).increment(1);
            }
        }
    }

    pub(crate) fn inferred(&self, schema: &TableSchema) {
        let columns: Vec<String> = schema.columns.iter().map(|c| format!("{} {}", c.name, c.kind)).collect();
        let (table, columns) = (schema.table.to_string(), columns.join(", "));
        tracing::info!(
            table,
            columns,
            "column types were inferred from the first events; name them under tables[].columns to fix them"
        );
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Of a notice that a table begins the tables' status is that of its beginning: no row was read yet.
fn log(notice: &Notice, tables: &BTreeMap<TableName, TableStatus>) {
    match notice {
        Notice::Started { table, state, lost } => {
            let stands = tables.get(table).filter(|status| matches!(status.phase, Phase::Halted | Phase::Paused));
            let (table, lost) = (table.to_string(), *lost);
            let position = state.as_ref().map(|s| s.cut.upto().to_string()).unwrap_or_default();
            if let (Some(status), false) = (stands, lost) {
                log_standing(&table, status);
            } else if lost {
                tracing::error!(
                    table,
                    position,
                    "the log no longer holds what this table needs: read it anew with 'urutau table resnapshot' where its source can, \
                     else copy it into another target"
                );
            } else if state.is_some() {
                tracing::info!(table, position, "table goes on");
            } else {
                tracing::info!(table, "table begins");
            }
        }
        Notice::Halted { table, why, .. } => {
            let table = table.to_string();
            tracing::error!(table, why, "table halted; the others go on");
        }
        Notice::Declined { table, why } => {
            let table = table.to_string();
            tracing::warn!(table, why, "what was asked can't be done; the table goes on as before");
        }
        Notice::Skipped { table, transaction, coordinate } => {
            let table = table.to_string();
            tracing::warn!(table, ?transaction, ?coordinate, "an event was passed over because somebody said skip");
        }
    }
}

/// A table that an earlier run has left standing, and that stands still: the log in which it says why may be gone.
fn log_standing(table: &str, status: &TableStatus) {
    if status.phase == Phase::Paused {
        return tracing::info!(table, "table is paused since an earlier run; 'urutau table resume' lets it go on");
    }
    let why = status.why.as_deref().unwrap_or("the run that halted it did not store why");
    tracing::warn!(
        table,
        why,
        "table is halted since an earlier run: mend the cause, then 'urutau table resume'; or pass over the one event with 'urutau table \
         skip', or read the table anew with 'urutau table resnapshot' where its source can"
    );
}

fn report(pipeline: &str, status: &Status) -> Report {
    let tables = status.tables.iter().map(|(name, table)| {
        let position = table.stored.as_ref().map(|s| s.cut.upto().to_string()).unwrap_or_default();
        let snapshot = table.snapshot.as_ref().map(|snapshot| SnapshotReport {
            ranges: snapshot.ranges,
            ranges_missing: snapshot.ranges_missing,
            chunks: snapshot.chunks_asked,
            chunks_void: snapshot.chunks_void,
            in_doubt: snapshot.in_doubt.iter().map(ToString::to_string).collect(),
        });
        let report = TableReport {
            phase: table.phase.as_str().to_owned(),
            why: table.why.clone(),
            position,
            rows_owed: table.rows_owed,
            rows_committed: table.rows_durable,
            commits: table.commits,
            committed_at_ms: None,
            generation: table.stored.as_ref().map_or(0, |stored| stored.generation),
            snapshot_rows: table.chunk_rows,
            snapshot_rows_dropped: table.chunk_rows_dropped,
            snapshot,
        };
        (name.to_string(), report)
    });
    let waiting = status.waiting.iter().map(|w| {
        let table = w.table.as_ref().map(|t| format!("table {t}: ")).unwrap_or_default();
        let why = w.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{table}{}, ended by {}{why}", w.what, w.ended_by)
    });
    Report {
        pipeline: pipeline.to_owned(),
        incarnation: status.incarnation.0,
        running: status.running,
        rows_read: 0,
        bytes_held: status.bytes_held,
        behind: status.end.beyond(&status.received),
        lag_ms: None,
        retained_bytes: None,
        retention_left_bytes: None,
        quiet: status.quiet.to_string(),
        acknowledged: status.acknowledged.to_string(),
        tables: tables.collect(),
        waiting: waiting.collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; the figures are for eyes")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; the figures are for eyes")]
fn publish(report: &Report) {
    gauge!("urutau_inflight_bytes").set(report.bytes_held as f64);
    gauge!("urutau_source_behind").set(report.behind as f64);
    if let Some(lag) = report.lag_ms {
        gauge!("urutau_source_lag_seconds").set(lag as f64 / 1000.0);
    }
    for (name, table) in &report.tables {
        gauge!("urutau_coordinator_pending_rows", "table" => name.clone()).set(table.rows_owed as f64);
        gauge!("urutau_table_halted", "table" => name.clone()).set(f64::from(u8::from(table.phase == "halted")));
        counter!("urutau_worker_rows_written_total", "table" => name.clone()).absolute(table.rows_committed);
        if let Some(at) = table.committed_at_ms {
            gauge!("urutau_coordinator_committed_timestamp_seconds", "table" => name.clone()).set(at as f64 / 1000.0);
        }
        let missing = table.snapshot.as_ref().map_or(0, |snapshot| snapshot.ranges_missing);
        counter!("urutau_snapshot_rows_total", "table" => name.clone()).absolute(table.snapshot_rows);
        counter!("urutau_snapshot_rows_dropped_total", "table" => name.clone()).absolute(table.snapshot_rows_dropped);
        gauge!("urutau_snapshot_ranges_missing", "table" => name.clone()).set(missing as f64);
    }
}
