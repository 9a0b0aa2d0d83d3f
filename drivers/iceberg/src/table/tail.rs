//! Metadata columns: what the log says about each row, as columns of the table. A table has one only if asked for.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray};
use contract::rows::net::ReadRun;
use contract::rows::{Netted, Operation, RowPhase, Tail};
use iceberg::spec::PrimitiveType;

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TailColumn {
    /// `op`: `insert`, `update`, `delete` or `read` (seen by a snapshot).
    Op,
    /// `pos`: `stream@transaction/change.row`, unique for each row of a log.
    Pos,
    /// `commit_ts`: when the source committed it; null if it does not say.
    CommitTs,
    /// `ingest_ts`: when it was read.
    IngestTs,
    /// `snapshot`: was it read by a snapshot and not in the log?
    Snapshot,
    /// `phase`: `snapshot`, `stream` or `incremental`.
    Phase,
}

impl TailColumn {
    /// The words for them in a pipeline file; with `__` in front they mean the same.
    pub(crate) const NAMES: [&str; 6] = ["op", "pos", "commit_ts", "ingest_ts", "snapshot", "phase"];

    /// The column that a word means.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("__").unwrap_or(name) {
            "op" => Self::Op,
            "pos" | "position" => Self::Pos,
            "commit_ts" => Self::CommitTs,
            "ingest_ts" => Self::IngestTs,
            "snapshot" => Self::Snapshot,
            "phase" => Self::Phase,
            _ => return None,
        })
    }

    /// Its type in the table.
    pub(crate) fn iceberg_type(self) -> PrimitiveType {
        match self {
            Self::Op | Self::Pos | Self::Phase => PrimitiveType::String,
            Self::CommitTs | Self::IngestTs => PrimitiveType::Timestamptz,
            Self::Snapshot => PrimitiveType::Boolean,
        }
    }

    /// Its values for all upserted rows.
    pub(crate) fn values(self, rows: &Netted) -> ArrayRef {
        let (tail, reads) = (&rows.upsert_tail, &rows.upsert_reads);
        match self {
            Self::Op => Arc::new(StringArray::from_iter_values(tail.operations.iter().map(|op| operation(*op)))),
            Self::Pos => Arc::new(positions(tail).map(Some).collect::<StringArray>()),
            Self::CommitTs => Arc::new(instants(commit_times(tail).collect())),
            Self::IngestTs => Arc::new(instants(each(reads).map(|read| Some(read.ingest_time)).collect())),
            Self::Snapshot => Arc::new(each(reads).map(|read| Some(read.phase == RowPhase::Snapshot)).collect::<BooleanArray>()),
            Self::Phase => Arc::new(each(reads).map(|read| Some(phase(read.phase))).collect::<StringArray>()),
        }
    }
}

fn each(reads: &[ReadRun]) -> impl Iterator<Item = &ReadRun> {
    reads.iter().flat_map(|read| std::iter::repeat_n(read, read.rows))
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

fn positions(tail: &Tail) -> impl Iterator<Item = String> {
    let transactions = tail.transactions.iter().flat_map(|run| std::iter::repeat_n(&run.transaction, run.rows));
    transactions.zip(&tail.coordinates).map(|(t, c)| format!("{}@{}/{}.{}", t.stream, t.at.0, c.major, c.minor))
}

fn commit_times(tail: &Tail) -> impl Iterator<Item = Option<i64>> {
    tail.transactions.iter().flat_map(|run| std::iter::repeat_n(run.commit_time, run.rows))
}

fn instants(micros: Int64Array) -> TimestampMicrosecondArray {
    let (_, values, nulls) = micros.into_parts();
    TimestampMicrosecondArray::new(values, nulls).with_timezone("+00:00")
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, RecordBatch};
    use contract::kernel::position::{Coordinate, Offset, Transaction};
    use contract::rows::{EncodedKeys, TableSchema, TransactionRun};

    use super::*;

    fn netted() -> Netted {
        let run = |at, rows, commit_time| TransactionRun {
            transaction: Transaction { stream: "a.jsonl".into(), at: Offset(at) },
            rows,
            commit_time,
        };
        let tail = Tail {
            operations: vec![Operation::Insert, Operation::Delete, Operation::Update],
            coordinates: vec![
                Coordinate { major: 10, minor: 0 },
                Coordinate { major: 10, minor: 1 },
                Coordinate { major: 90, minor: 0 },
            ],
            transactions: vec![run(10, 2, Some(7_000_000)), run(90, 1, None)],
            ingest_time: 9_000_000,
            phase: RowPhase::Stream,
        };
        let schema = Arc::new(TableSchema { table: "t".into(), columns: Vec::new(), key: Vec::new() });
        let nothing = RecordBatch::new_empty(Arc::new(schema.arrow()));
        Netted {
            upserts: nothing.clone(),
            upsert_keys: EncodedKeys::empty(3),
            upsert_versions: Vec::new(),
            upsert_tail: tail,
            upsert_reads: vec![
                ReadRun { rows: 1, ingest_time: 8_000_000, phase: RowPhase::Snapshot },
                ReadRun { rows: 2, ingest_time: 9_000_000, phase: RowPhase::Stream },
            ],
            deletes: nothing,
            delete_keys: EncodedKeys::default(),
            delete_versions: Vec::new(),
            schema,
        }
    }

    fn text(column: TailColumn) -> Vec<String> {
        let array = column.values(&netted());
        let strings = array.as_any().downcast_ref::<StringArray>().unwrap();
        strings.iter().map(|s| s.unwrap().to_owned()).collect()
    }

    fn micros(column: TailColumn) -> Vec<Option<i64>> {
        let array = column.values(&netted());
        array.as_any().downcast_ref::<TimestampMicrosecondArray>().unwrap().iter().collect()
    }

    #[test]
    fn each_row_says_what_happened_where_and_when() {
        assert_eq!(text(TailColumn::Op), ["insert", "delete", "update"]);
        assert_eq!(text(TailColumn::Pos), ["a.jsonl@10/10.0", "a.jsonl@10/10.1", "a.jsonl@90/90.0"]);
        assert_eq!(text(TailColumn::Phase), ["snapshot", "stream", "stream"]);
        assert_eq!(micros(TailColumn::CommitTs), [Some(7_000_000), Some(7_000_000), None]);
        assert_eq!(micros(TailColumn::IngestTs), [Some(8_000_000), Some(9_000_000), Some(9_000_000)]);
        let snapshot = TailColumn::Snapshot.values(&netted());
        assert_eq!(snapshot.to_data(), BooleanArray::from(vec![Some(true), Some(false), Some(false)]).to_data());
    }

    #[test]
    fn every_name_means_a_column() {
        for name in TailColumn::NAMES {
            assert_eq!(TailColumn::parse(name), TailColumn::parse(&format!("__{name}")));
            assert!(TailColumn::parse(name).is_some(), "{name}");
        }
        assert_eq!(TailColumn::parse("__row"), None);
    }
}
