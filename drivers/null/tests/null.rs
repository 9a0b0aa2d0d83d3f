//! The sink that forgets keeps its positions by all the laws that do not need rows, and counts what it forgot.

use std::path::PathBuf;
use std::sync::Arc;

use contract::conformance::Word;
use contract::conformance::sink::{self, SinkAbilities, SinkHarness, SinkPlace};
use contract::position_store::{FileStore, MemoryStore};
use contract::registry::{Settings, SinkFactory};
use contract::{Capabilities, CommitRequest, Error, Kind, Mode, Sink, SinkTable, Staged, StateWrite, async_trait};
use kernel::id::{AttemptId, CommitId, Incarnation, TableName};
use kernel::outcome::CommitOutcome;
use kernel::position::{Cut, Position};
use kernel::state::{Ancestors, FORMAT, TableState};
use null::{Counted, NullSink};
use rows::{Column, Netted, TableSchema, Type};

/// A sink whose positions are in a directory of its own, opened as the program opens it.
struct InDirectories;

struct Directory(tempfile::TempDir);

#[async_trait]
impl SinkHarness for InDirectories {
    fn abilities(&self) -> SinkAbilities {
        SinkAbilities {
            capabilities: Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true },
            modes: vec![Mode::Upsert, Mode::Append, Mode::AppendIdempotent],
            reads_back: false,
            foreign_commit: false,
            roll_back: false,
            tear: false,
        }
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(Directory(tempfile::tempdir().unwrap())))
    }
}

#[async_trait]
impl SinkPlace for Directory {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        null::Factory.open("kit", &settings(self.0.path().join("positions"))).await
    }

    async fn visible_rows(&self, _table: &SinkTable) -> Result<Vec<Word>, Error> {
        unreachable!("it said that its rows cannot be read")
    }
}

fn settings(uri: PathBuf) -> Settings {
    [("uri".to_string(), uri.to_str().unwrap().into())].into_iter().collect()
}

#[tokio::test]
async fn it_keeps_all_laws_that_need_no_rows() {
    let unread = "the sink's rows cannot be read";
    sink::check(&InDirectories).await.must_hold(&[
        ("state-and-data-move-together", unread),
        ("a-torn-commit-is-whole-or-absent", unread),
        ("one-image-per-key", unread),
        ("deletes-remove", unread),
        ("truncate-first", unread),
        ("resnapshot-leaves-no-ghost", unread),
        ("a-sweep-spares-its-generation", unread),
        ("append-keeps-every-row-once", unread),
        ("covered-rows-are-refused", unread),
        ("the-highest-state-counts", "the sink's state write is compare-and-set"),
        ("the-highest-version-wins", "the sink's state write is compare-and-set"),
        ("staged-is-invisible", unread),
        ("cleaning-spares-the-published", unread),
        ("state-survives-foreign-commits", unread),
    ]);
}

fn table(target: &str) -> SinkTable {
    let column = |name: &str, kind| Column::new(name, kind, true);
    let schema = TableSchema {
        table: TableName::from("shop.orders"),
        columns: vec![column("id", Type::Int64), column("name", Type::String)],
        key: vec![0],
    };
    SinkTable {
        table: schema.table.clone(),
        target: target.into(),
        schema: Arc::new(schema),
        mode: Mode::Upsert,
        metadata: Vec::new(),
    }
}

fn state(number: u64) -> TableState {
    TableState {
        format: FORMAT,
        cut: Cut::at(Position::scalar(number)),
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

/// Rows: three to keep, one to delete.
fn netted(table: &SinkTable) -> Netted {
    use contract::memory::{Value, row};
    let image = row(&table.schema, &[Value::Int(1), Value::Text("one")]).unwrap();
    let rows = contract::arrow::select::concat_batches(&image.schema(), [&image, &image, &image]).unwrap();
    Netted { upserts: rows, deletes: image, ..Netted::empty(Arc::clone(&table.schema)) }
}

#[tokio::test]
async fn it_counts_what_was_committed_once_and_nothing_else() {
    let sink = NullSink::new("desk", Arc::new(MemoryStore::new()));
    let orders = table("orders");
    let mut open = sink.open(&orders, Incarnation(1)).await.unwrap();
    let attempt = |number| AttemptId { incarnation: Incarnation(1), number };
    let rows = netted(&orders);
    let bytes = (rows.upserts.get_array_memory_size() + rows.deletes.get_array_memory_size()) as u64;
    let staged: Arc<Staged> = Arc::new(open.writer.write(attempt(1), rows.clone()).await.unwrap());
    open.writer.write(attempt(2), rows).await.unwrap();
    assert_eq!(sink.counted(), Counted::default(), "staged is not committed");

    let token = sink.recover(&orders).await.unwrap().token;
    let request =
        CommitRequest { token, state: state(1), staged: vec![staged], schema: None, truncate_first: false, sweep: false };
    for _ in 0..2 {
        assert!(matches!(open.committer.commit(&request).await, CommitOutcome::Durable { .. }));
        assert_eq!(sink.counted(), Counted { rows: 4, bytes, commits: 1 });
    }
    let stale = CommitRequest {
        token: request.token,
        state: state(2),
        staged: request.staged,
        schema: request.schema.clone(),
        truncate_first: false,
        sweep: false,
    };
    assert!(matches!(open.committer.commit(&stale).await, CommitOutcome::Conflict { .. }));
    assert_eq!(sink.counted(), Counted { rows: 4, bytes, commits: 1 });
}

#[tokio::test]
async fn without_a_uri_its_positions_end_with_it() {
    for _ in 0..2 {
        let sink = null::Factory.open("desk", &Settings::new()).await.unwrap();
        let none = sink.pipeline_state().await.unwrap();
        assert_eq!(none.value, None);
        sink.store_pipeline_state(&none.token, &Default::default()).await;
        assert!(sink.pipeline_state().await.unwrap().value.is_some());
    }
}

#[tokio::test]
async fn two_pipelines_share_a_directory_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path().to_path_buf());
    let ours = null::Factory.open("desk", &settings).await.unwrap();
    let none = ours.pipeline_state().await.unwrap();
    ours.store_pipeline_state(&none.token, &Default::default()).await;
    let theirs = null::Factory.open("other", &settings).await.unwrap();
    assert_eq!(theirs.pipeline_state().await.unwrap().value, None);
}

#[tokio::test]
async fn a_uri_that_is_no_text_is_a_fault_of_the_configuration() {
    for (uri, found) in [(7.into(), "something that is no text"), ("".into(), "an empty text")] {
        let settings: Settings = [("uri".to_string(), uri)].into_iter().collect();
        let Err(error) = null::Factory.open("desk", &settings).await else { panic!("it opened") };
        assert_eq!((error.kind, error.code), (Kind::Config, "null-setting"));
        assert_eq!(error.what, format!("sink.uri: a directory is expected, found {found}"));
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_found_before_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let sink = NullSink::new("desk", Arc::new(FileStore::new(file.join("below"))));
    let findings = sink.preflight(&[]).await;
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].code, findings[0].subject.as_str()), ("position-store", "sink.uri"));
}
