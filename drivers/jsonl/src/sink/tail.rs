//! Metadata columns: what the log says about each row, under names that the pipeline file gives. A row has one only if asked.

use contract::SinkTable;
use rows::net::ReadRun;
use rows::{Netted, Operation, RowPhase, TransactionRun};

use super::render::{quoted, timestamp};

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TailColumn {
    /// `insert`, `update`, `delete` or `read` (seen by a snapshot).
    Op,
    /// `stream@transaction/change.row`: unique for each row of a log.
    Pos,
    /// When the source committed it; null if it does not say.
    CommitTs,
    /// When it was read.
    IngestTs,
    /// Does it come from a snapshot and not from the log?
    Snapshot,
    /// `snapshot`, `stream` or `incremental`.
    Phase,
}

/// The words for them in a pipeline file.
pub(super) const NAMES: [&str; 6] = ["__op", "__pos", "__commit_ts", "__ingest_ts", "__snapshot", "__phase"];

impl TailColumn {
    /// The column that a word means.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "__op" => Self::Op,
            "__pos" => Self::Pos,
            "__commit_ts" => Self::CommitTs,
            "__ingest_ts" => Self::IngestTs,
            "__snapshot" => Self::Snapshot,
            "__phase" => Self::Phase,
            _ => return None,
        })
    }
}

/// The metadata columns of the upserted rows of a part.
pub(super) struct TailColumns<'a> {
    columns: Vec<(TailColumn, &'a str)>,
    rows: &'a Netted,
    /// One entry a row; empty if there are no columns.
    transactions: Vec<&'a TransactionRun>,
    reads: Vec<&'a ReadRun>,
}

impl<'a> TailColumns<'a> {
    /// Those that `table` asks for. Unknown words were refused when the table was ensured.
    pub(super) fn of(table: &'a SinkTable, rows: &'a Netted) -> Self {
        let columns: Vec<_> =
            table.metadata.iter().filter_map(|(word, name)| Some((TailColumn::parse(word)?, name.as_str()))).collect();
        let (mut transactions, mut reads) = (Vec::new(), Vec::new());
        if !columns.is_empty() {
            transactions.extend(rows.upsert_tail.transactions.iter().flat_map(|run| std::iter::repeat_n(run, run.rows)));
            reads.extend(rows.upsert_reads.iter().flat_map(|run| std::iter::repeat_n(run, run.rows)));
        }
        Self { columns, rows, transactions, reads }
    }

    /// Writes `,"name":value` for each.
    pub(super) fn write(&self, out: &mut Vec<u8>, row: usize) {
        for (column, name) in &self.columns {
            out.push(b',');
            quoted(out, name);
            out.push(b':');
            self.write_one(out, *column, row);
        }
    }

    fn write_one(&self, out: &mut Vec<u8>, column: TailColumn, row: usize) {
        let (run, read) = (self.transactions[row], self.reads[row]);
        match column {
            TailColumn::Op => quoted(out, operation(self.rows.upsert_tail.operations[row])),
            TailColumn::Pos => {
                let (of, at) = (&run.transaction, self.rows.upsert_tail.coordinates[row]);
                quoted(out, &format!("{}@{}/{}.{}", of.stream, of.at.0, at.major, at.minor));
            }
            TailColumn::CommitTs => moment(out, run.commit_time),
            TailColumn::IngestTs => moment(out, Some(read.ingest_time)),
            TailColumn::Snapshot => {
                out.extend_from_slice(if read.phase == RowPhase::Snapshot { b"true" } else { b"false" });
            }
            TailColumn::Phase => quoted(out, phase(read.phase)),
        }
    }
}

fn moment(out: &mut Vec<u8>, micros: Option<i64>) {
    match micros {
        Some(micros) => {
            out.push(b'"');
            timestamp(out, micros);
            out.extend_from_slice(b"Z\"");
        }
        None => out.extend_from_slice(b"null"),
    }
}

fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Insert => "insert",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Read => "read",
    }
}

fn phase(phase: RowPhase) -> &'static str {
    match phase {
        RowPhase::Snapshot => "snapshot",
        RowPhase::Stream => "stream",
        RowPhase::Incremental => "incremental",
    }
}
