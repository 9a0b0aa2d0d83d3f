//! Tests of the sink, with a reader of its files that shares nothing with the sink's own.

mod files;
mod laws;
mod peeking;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use contract::registry::{Settings, SinkFactory};
use contract::{CommitRequest, Mode, Sink, SinkTable, Staged, TableSink};
use kernel::id::{AttemptId, CommitId, Incarnation, StreamName, TableName, Token};
use kernel::outcome::CommitOutcome;
use kernel::position::{Coordinate, Cut, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, TableState};
use rows::net::{NetOutcome, Numbering, append, net};
use rows::{ChangeBatch, Column, EncodedKeys, Netted, Operation, RowPhase, Slice, TableSchema, Tail, TransactionRun, Type};
use serde_json::Value as Json;

use crate::sink::{Factory, JsonlSink};

/// The lines of a table that count: everything up to the last line of state.
fn committed(path: &Path) -> Vec<Json> {
    let content = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = content.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    let parsed: Vec<Json> = lines.iter().map_while(|line| serde_json::from_str(line).ok()).collect();
    let last = parsed.iter().rposition(|line| line.get("state").is_some()).map_or(1, |last| last + 1);
    parsed[..last].to_vec()
}

/// The rows of a table that is kept by key, by its key; or all rows.
fn rows_of(path: &Path) -> Vec<Json> {
    let lines = committed(path);
    let keyed = lines[0]["mode"] == "upsert";
    let mut by_key = BTreeMap::new();
    let mut all = Vec::new();
    for line in lines.iter().skip(1).filter(|line| line.get("state").is_none()) {
        let key = line.get("key").map(Json::to_string).unwrap_or_default();
        match line["op"].as_str().unwrap() {
            "t" => {
                by_key.clear();
                all.clear();
            }
            "d" if keyed => drop(by_key.remove(&key)),
            _ if keyed => drop(by_key.insert(key, line["row"].clone())),
            _ => all.push(line["row"].clone()),
        }
    }
    by_key.into_values().chain(all).collect()
}

/// A directory with a sink of the pipeline `desk`, opened as the program opens it.
async fn sink() -> (tempfile::TempDir, Arc<dyn Sink>) {
    let directory = tempfile::tempdir().unwrap();
    let sink = opened(directory.path()).await;
    (directory, sink)
}

async fn opened(directory: &Path) -> Arc<dyn Sink> {
    let settings: Settings = [("uri".to_owned(), directory.to_str().unwrap().into())].into_iter().collect();
    Factory.open("desk", &settings).await.unwrap()
}

fn column(name: &str, kind: Type) -> Column {
    Column::new(name, kind, true)
}

/// A table `shop.orders` with these columns, its first `key` columns its key, as `orders` at the target.
fn table(columns: &[(&str, Type)], key: usize, mode: Mode) -> SinkTable {
    let columns = columns.iter().map(|(name, kind)| column(name, kind.clone())).collect();
    let schema = TableSchema { table: TableName::from("shop.orders"), columns, key: (0..key).collect() };
    SinkTable { table: schema.table.clone(), target: "orders".into(), schema: Arc::new(schema), mode, metadata: Vec::new() }
}

fn path_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("orders.jsonl")
}

/// What a checkpoint does, by the same functions as in a run. Rows are of one transaction at `at`.
fn netted(table: &SinkTable, operations: &[Operation], data: RecordBatch, at: u64) -> Netted {
    let transaction = Transaction { stream: StreamName::from("a.jsonl"), at: Offset(at) };
    let keys = Arc::new(EncodedKeys::encode(&table.schema, &data).unwrap());
    let rows = data.num_rows();
    let tail = Tail {
        operations: operations.to_vec(),
        coordinates: (0..rows as u64).map(|n| Coordinate { major: at + n, minor: 0 }).collect(),
        transactions: vec![TransactionRun { transaction, rows, commit_time: Some(1_700_000_000_000_000) }],
        ingest_time: 1_700_000_001_500_000,
        phase: RowPhase::Stream,
    };
    let absent = vec![None; table.schema.columns.len()];
    let batch = Arc::new(ChangeBatch { schema: Arc::clone(&table.schema), data, absent, tail });
    let slice = [Slice { batch, keys, rows: 0..rows }];
    let numbering = Numbering { incarnation: Incarnation(1), first: 1 };
    let outcome = if table.mode == Mode::Upsert { net(&slice, numbering) } else { append(&slice, numbering) };
    match outcome.unwrap() {
        NetOutcome::Netted(netted) => *netted,
        NetOutcome::Holes(holes) => panic!("{holes:?}"),
    }
}

/// The state of a commit of the first life.
fn state(number: u64) -> TableState {
    TableState {
        format: FORMAT,
        cut: Cut::at(Position::of(StreamName::from("a.jsonl"), Offset(number * 100))),
        identity: Default::default(),
        incarnation: Incarnation(1),
        commit: CommitId { incarnation: Incarnation(1), number },
        ancestors: Ancestors::default(),
        sequence: 0,
        generation: 0,
        base: Position::START,
        begun: Default::default(),
        tiling: Vec::new(),
        in_doubt: Vec::new(),
        ahead: Position::START,
        schema: None,
    }
}

/// Opens a table and commits what it is given, one checkpoint after the other.
struct Desk {
    sink: Arc<dyn Sink>,
    table: SinkTable,
    open: TableSink,
    commits: u64,
}

impl Desk {
    async fn new(sink: &Arc<dyn Sink>, table: SinkTable) -> Self {
        sink.ensure_table(&table).await.unwrap();
        let open = sink.open(&table, Incarnation(1)).await.unwrap();
        Self { sink: Arc::clone(sink), table, open, commits: 0 }
    }

    async fn stage(&mut self, rows: Netted) -> Arc<Staged> {
        self.commits += 1;
        let attempt = AttemptId { incarnation: Incarnation(1), number: self.commits };
        Arc::new(self.open.writer.write(attempt, rows).await.unwrap())
    }

    async fn token(&self) -> Token {
        self.sink.recover(&self.table).await.unwrap().token
    }

    async fn request(&mut self, rows: Netted) -> CommitRequest {
        let staged = vec![self.stage(rows).await];
        CommitRequest {
            token: self.token().await,
            state: state(self.commits),
            staged,
            schema: None,
            truncate_first: false,
            sweep: false,
        }
    }

    async fn commit(&mut self, rows: Netted) {
        let request = self.request(rows).await;
        let outcome = self.open.committer.commit(&request).await;
        assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_sink_without_a_directory_is_a_fault_of_the_configuration() {
    for uri in [None, Some("")] {
        let settings: Settings = uri.map(|uri| ("uri".to_owned(), uri.into())).into_iter().collect();
        let Err(error) = Factory.open("desk", &settings).await else { panic!("it opened") };
        assert_eq!(error.code, "jsonl-sink-setting");
    }
}
