//! What stands in the files, and what happens to them when things go wrong.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;

use arrow_array::{Int64Array, StringArray};
use contract::Kind;
use rows::Operation::{Delete, Insert, Read, Update};

use super::*;

fn orders(mode: Mode) -> SinkTable {
    table(&[("id", Type::Int64), ("name", Type::String)], 1, mode)
}

fn batch(table: &SinkTable, rows: &[(i64, &str)]) -> RecordBatch {
    let ids = Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id));
    let names = StringArray::from_iter_values(rows.iter().map(|(_, name)| *name));
    RecordBatch::try_new(Arc::new(table.schema.arrow()), vec![Arc::new(ids), Arc::new(names)]).unwrap()
}

fn inserted(table: &SinkTable, rows: &[(i64, &str)]) -> Netted {
    netted(table, &vec![Insert; rows.len()], batch(table, rows), 0)
}

/// A line of state without what differs from run to run.
fn without_token(line: &str) -> String {
    let start = line.find(",\"token\":").unwrap();
    line[..start].to_owned()
}

#[tokio::test]
async fn a_file_is_a_header_and_checkpoints_closed_by_their_state() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one"), (2, "line\n\"two\"")])).await;
    desk.commit(netted(&orders, &[Delete, Update], batch(&orders, &[(1, "one"), (2, "zwei")]), 200)).await;
    let content = fs::read_to_string(path_of(&directory)).unwrap();
    let mut lines: Vec<String> = content.lines().map(String::from).collect();
    for state in [3, 6] {
        lines[state] = without_token(&lines[state]);
    }
    let state = |commit: u64, offset: u64| {
        format!(
            "{{\"state\":{{\"format\":1,\"cut\":{{\"upto\":\"a.jsonl:{offset}\"}},\"identity\":{{\"streams\":{{}},\"coordinates\":null}},\
             \"incarnation\":1,\"commit\":{{\"incarnation\":1,\"number\":{commit}}},\"ancestors\":[],\"sequence\":0,\"generation\":0,\
             \"base\":\"\",\"begun\":0}}"
        )
    };
    assert_eq!(
        lines,
        [
            "{\"urutau\":\"jsonl/1\",\"pipeline\":\"desk\",\"table\":\"shop.orders\",\"mode\":\"upsert\",\"key\":[\"id\"]}"
                .to_owned(),
            "{\"key\":{\"id\":1},\"op\":\"u\",\"row\":{\"id\":1,\"name\":\"one\"}}".to_owned(),
            "{\"key\":{\"id\":2},\"op\":\"u\",\"row\":{\"id\":2,\"name\":\"line\\n\\\"two\\\"\"}}".to_owned(),
            state(1, 100),
            "{\"key\":{\"id\":1},\"op\":\"d\",\"row\":null}".to_owned(),
            "{\"key\":{\"id\":2},\"op\":\"u\",\"row\":{\"id\":2,\"name\":\"zwei\"}}".to_owned(),
            state(2, 200),
        ]
    );
    let token = desk.token().await;
    let number = token.as_str().split('.').next();
    assert_eq!(number, Some("2"));
    let end = content.lines().last().unwrap();
    let second = content.find("{\"key\":{\"id\":1},\"op\":\"d\"").unwrap();
    assert!(end.contains(&format!(",\"token\":\"{token}\",\"from\":{second},\"crc\":\"")), "{end}");
}

#[tokio::test]
async fn in_append_every_change_is_a_row_with_its_operation_and_metadata() {
    let (directory, sink) = sink().await;
    let words = ["__op", "__pos", "__commit_ts", "__ingest_ts", "__snapshot", "__phase"];
    let metadata = words.iter().zip(["_op", "_at", "_committed", "_read", "_snapshot", "_phase"]);
    let orders =
        SinkTable { metadata: metadata.map(|(word, name)| ((*word).into(), name.into())).collect(), ..orders(Mode::Append) };
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let rows = batch(&orders, &[(1, "a"), (1, "b"), (1, "b"), (2, "c")]);
    desk.commit(netted(&orders, &[Insert, Update, Delete, Read], rows, 40)).await;
    let content = fs::read_to_string(path_of(&directory)).unwrap();
    let line = |id: i64, op: &str, name: &str, word: &str, at: u64| {
        format!(
            "{{\"key\":{{\"id\":{id}}},\"op\":\"{op}\",\"row\":{{\"id\":{id},\"name\":\"{name}\",\"_op\":\"{word}\",\
             \"_at\":\"a.jsonl@40/{at}.0\",\"_committed\":\"2023-11-14T22:13:20.000000Z\",\
             \"_read\":\"2023-11-14T22:13:21.500000Z\",\"_snapshot\":false,\"_phase\":\"stream\"}}}}"
        )
    };
    let expected = [
        line(1, "c", "a", "insert", 40),
        line(1, "u", "b", "update", 41),
        line(1, "d", "b", "delete", 42),
        line(2, "r", "c", "read", 43),
    ];
    assert_eq!(content.lines().skip(1).take(4).collect::<Vec<_>>(), expected);
}

/// A commit of a generation.
async fn of_generation(desk: &mut Desk, generation: u64, rows: Option<Netted>, sweep: bool) -> CommitRequest {
    let request = match rows {
        Some(rows) => desk.request(rows).await,
        None => {
            desk.commits += 1;
            let (token, state) = (desk.token().await, state(desk.commits));
            CommitRequest { token, state, staged: Vec::new(), schema: None, truncate_first: false, sweep: false }
        }
    };
    let state = TableState { generation, ..request.state.clone() };
    CommitRequest { state, sweep, ..request }
}

#[tokio::test]
async fn a_table_that_is_copied_anew_is_emptied_where_that_begins() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let ops = || {
        let op = |line: &Json| line["op"].as_str().map(str::to_owned);
        committed(&path_of(&directory)).iter().filter_map(op).collect::<Vec<_>>()
    };
    let mut expected: Vec<&str> = Vec::new();
    for generation in 1..3 {
        let beginning = of_generation(&mut desk, generation, None, false).await;
        for _ in 0..2 {
            let outcome = desk.open.committer.commit(&beginning).await;
            assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
        }
        // Where nothing stands before it there is nothing to empty.
        expected.extend((generation > 1).then_some("t"));
        assert_eq!(ops(), expected, "generation {generation}");
        let word = format!("copy {generation}");
        let rows = inserted(&orders, &[(1, word.as_str()), (generation as i64 + 10, word.as_str())]);
        let request = of_generation(&mut desk, generation, Some(rows), false).await;
        desk.open.committer.commit(&request).await;
        let request = of_generation(&mut desk, generation, None, true).await;
        let outcome = desk.open.committer.commit(&request).await;
        assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
        expected.extend(["u", "u"]);
        assert_eq!(ops(), expected, "generation {generation}");
    }
    let rows: Vec<String> = rows_of(&path_of(&directory)).iter().map(|row| format!("{} {}", row["id"], row["name"])).collect();
    assert_eq!(rows, ["12 \"copy 2\"", "1 \"copy 2\""]);
}

#[tokio::test]
async fn a_table_that_keeps_every_row_is_never_emptied_by_a_generation() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Append);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let rows = inserted(&orders, &[(2, "two")]);
    let request = of_generation(&mut desk, 1, Some(rows), false).await;
    assert!(matches!(desk.open.committer.commit(&request).await, CommitOutcome::Durable { .. }));
    assert_eq!(rows_of(&path_of(&directory)).len(), 2);
    let request = of_generation(&mut desk, 1, None, true).await;
    assert!(matches!(desk.open.committer.commit(&request).await, CommitOutcome::Rejected { .. }));
    assert_eq!(rows_of(&path_of(&directory)).len(), 2);
}

#[tokio::test]
async fn a_truncate_is_a_line_before_the_rows_that_follow_it() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let request = CommitRequest { truncate_first: true, ..desk.request(inserted(&orders, &[(2, "two")])).await };
    assert!(matches!(desk.open.committer.commit(&request).await, CommitOutcome::Durable { .. }));
    let content = fs::read_to_string(path_of(&directory)).unwrap();
    assert_eq!(content.lines().nth(3), Some("{\"op\":\"t\"}"));
    assert_eq!(rows_of(&path_of(&directory)), [serde_json::json!({"id": 2, "name": "two"})]);
}

#[tokio::test]
async fn nothing_is_left_beside_a_committed_table() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let names = || {
        let mut names: Vec<String> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), [".orders.lock", "orders.jsonl"]);
    desk.stage(inserted(&orders, &[(2, "two")])).await;
    assert_eq!(names(), [".orders.i1-a2.staged", ".orders.lock", "orders.jsonl"]);
    // A later life removes what an earlier one staged, of this table and no other.
    fs::write(directory.path().join(".order.i1-a1.staged"), "").unwrap();
    fs::write(directory.path().join(".orders.i1-a1.staged.i1-a1.staged"), "").unwrap();
    fs::write(directory.path().join(".orders.i2-a1.staged"), "").unwrap();
    let mut later = sink.open(&orders, Incarnation(2)).await.unwrap();
    later.committer.discard_older(Incarnation(2)).await;
    assert_eq!(
        names(),
        [".order.i1-a1.staged", ".orders.i1-a1.staged.i1-a1.staged", ".orders.i2-a1.staged", ".orders.lock", "orders.jsonl"]
    );
}

#[tokio::test]
async fn the_rest_of_an_unfinished_commit_is_cut_off_when_the_table_is_opened() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let whole = fs::read(path_of(&directory)).unwrap();
    for torn in ["{\"key\":{\"id\":2},\"op\":\"u\",\"row\":{\"id\":2}}\n", "{\"key\":{\"id", "\0\0\0\n\0\n", "{\"state\":{}}\n"] {
        OpenOptions::new().append(true).open(path_of(&directory)).unwrap().write_all(torn.as_bytes()).unwrap();
        let found = sink.recover(&orders).await.unwrap();
        assert_eq!(found.value, Some(state(1)));
        sink.open(&orders, Incarnation(2)).await.unwrap();
        assert_eq!(fs::read(path_of(&directory)).unwrap(), whole, "after '{torn}'");
    }
}

#[tokio::test]
async fn a_state_of_another_version_is_no_torn_one() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let path = path_of(&directory);
    let mut content = fs::read_to_string(&path).unwrap();
    let from = content.len();
    let line = format!("{{\"state\":{{\"format\":\"two\"}},\"token\":\"2.0\",\"from\":{from}");
    let sum = crc32fast::hash(line.as_bytes());
    content.push_str(&format!("{line},\"crc\":\"{sum:08x}\"}}\n"));
    fs::write(&path, &content).unwrap();
    let error = sink.recover(&orders).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-sink-unreadable"));
    assert!(error.what.contains(&format!("orders.jsonl: the state at byte {from} cannot be read")), "{error}");
    assert!(sink.open(&orders, Incarnation(2)).await.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), content, "nothing was cut off");
}

#[tokio::test]
async fn a_part_that_finds_no_room_is_transient_and_leaves_nothing() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let staged = directory.path().join(".orders.i1-a7.staged");
    symlink("/dev/full", &staged).unwrap();
    let attempt = AttemptId { incarnation: Incarnation(1), number: 7 };
    let rows = inserted(&orders, &[(1, "one")]);
    let Err(error) = desk.open.writer.write(attempt, rows.clone()).await else { panic!("there is no room") };
    assert_eq!((error.kind, error.remedy.as_str()), (Kind::Transient, "free space; it is tried again"));
    assert!(!staged.is_symlink());
    desk.open.writer.write(attempt, rows).await.unwrap();
}

#[tokio::test]
async fn a_commit_that_fails_half_way_leaves_the_file_as_it_was() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    desk.commit(inserted(&orders, &[(1, "one")])).await;
    let whole = fs::read(path_of(&directory)).unwrap();
    let request = desk.request(inserted(&orders, &[(2, "two")])).await;
    // The part is shorter than it was: its copy ends too early, in the middle of the commit.
    let staged = directory.path().join(".orders.i1-a2.staged");
    let content = fs::read(&staged).unwrap();
    fs::write(&staged, &content[..10]).unwrap();
    let outcome = desk.open.committer.commit(&request).await;
    assert!(matches!(outcome, CommitOutcome::Transient { .. }), "{outcome:?}");
    assert_eq!(fs::read(path_of(&directory)).unwrap(), whole);
    // The same commit on the same token goes through once the fault is gone.
    fs::write(&staged, &content).unwrap();
    let outcome = desk.open.committer.commit(&request).await;
    assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_staged_file_that_somebody_removed_is_refused_by_name() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let request = desk.request(inserted(&orders, &[(1, "one")])).await;
    fs::remove_file(directory.path().join(".orders.i1-a1.staged")).unwrap();
    let CommitOutcome::Rejected { why } = desk.open.committer.commit(&request).await else { panic!("it must be refused") };
    assert!(why.contains(".orders.i1-a1.staged was removed by somebody else"), "{why}");
}

#[tokio::test]
async fn while_another_process_commits_a_commit_waits() {
    let (directory, sink) = sink().await;
    let orders = orders(Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let request = desk.request(inserted(&orders, &[(1, "one")])).await;
    let other = OpenOptions::new().write(true).open(directory.path().join(".orders.lock")).unwrap();
    other.lock().unwrap();
    let mut commit = Box::pin(desk.open.committer.commit(&request));
    // However often it is looked at, it does not go through: it sleeps in between.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let waker = std::task::Waker::noop();
        let polled = commit.as_mut().poll(&mut std::task::Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    assert_eq!(fs::read_to_string(path_of(&directory)).unwrap().lines().count(), 1);
    drop(other);
    assert!(matches!(commit.await, CommitOutcome::Durable { .. }));
}

#[tokio::test]
async fn the_file_of_another_pipeline_or_table_is_refused_before_anything_is_written() {
    let (directory, sink) = sink().await;
    let ours = orders(Mode::Upsert);
    sink.ensure_table(&ours).await.unwrap();
    let content = fs::read(path_of(&directory)).unwrap();
    let path = path_of(&directory).display().to_string();
    let other = JsonlSink::new("other", directory.path());
    let renamed = SinkTable { table: TableName::from("shop.others"), ..ours.clone() };
    let rekeyed = table(&[("id", Type::Int64), ("name", Type::String)], 2, Mode::Upsert);
    let cases: [(&dyn Sink, &SinkTable, &str); 4] = [
        (&other, &ours, "the pipeline 'other' is expected, found 'desk'"),
        (&*sink, &renamed, "the table 'shop.others' is expected, found 'shop.orders'"),
        (&*sink, &orders(Mode::Append), "the mode 'append' is expected, found 'upsert'"),
        (&*sink, &rekeyed, "the key 'id, name' is expected, found 'id'"),
    ];
    for (sink, table, what) in cases {
        let error = sink.ensure_table(table).await.unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-sink-foreign"));
        assert_eq!(error.what, format!("{path}: {what}"));
        let findings = sink.preflight(std::slice::from_ref(table)).await;
        assert_eq!(findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>(), [error.what]);
    }
    assert_eq!(other.recover(&ours).await.unwrap_err().code, "jsonl-sink-foreign");
    assert_eq!(fs::read(path_of(&directory)).unwrap(), content);
}

#[tokio::test]
async fn a_file_that_is_none_of_ours_is_left_alone() {
    let (directory, sink) = sink().await;
    for content in ["", "one line without an end", "{\"id\":1}\n", "{\"urutau\":\"jsonl/9\",\"pipeline\":\"desk\"}\n"] {
        fs::write(path_of(&directory), content).unwrap();
        for error in
            [sink.ensure_table(&orders(Mode::Upsert)).await.unwrap_err(), sink.recover(&orders(Mode::Upsert)).await.unwrap_err()]
        {
            assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-sink-foreign"), "{content}");
        }
        assert_eq!(fs::read_to_string(path_of(&directory)).unwrap(), content);
    }
}

#[tokio::test]
async fn what_cannot_be_a_table_of_lines_is_said_with_the_remedy() {
    let (_directory, sink) = sink().await;
    let keyless = table(&[("id", Type::Int64)], 0, Mode::Upsert);
    let unknown = table(&[("id", Type::Int64), ("at", Type::List(Box::new(Type::Unknown("point".into()))))], 1, Mode::Upsert);
    let named = |word: &str, name: &str| SinkTable { metadata: vec![(word.into(), name.into())], ..orders(Mode::Append) };
    let cases = [
        (keyless, "table shop.orders: it has no key, so its rows cannot be kept by key"),
        (unknown, "table shop.orders: column 'at' has the type list(unknown(point))"),
        (named("__lsn", "lsn"), "table shop.orders: there is no metadata column '__lsn'"),
        (named("__op", "name"), "table shop.orders: two columns are called 'name'"),
    ];
    for (table, what) in cases {
        let error = sink.ensure_table(&table).await.unwrap_err();
        assert_eq!((error.kind, error.code, error.what.as_str()), (Kind::Config, "jsonl-sink-table", what));
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_a_directory_is_found_before_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("file");
    fs::write(&place, "").unwrap();
    let sink = opened(&place).await;
    let error = sink.ensure_table(&orders(Mode::Upsert)).await.unwrap_err();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-sink-io"), "{error}");
    assert_eq!(sink.preflight(&[]).await.len(), 1);
}

#[tokio::test]
async fn a_value_without_json_is_refused_by_the_name_of_its_column_and_nothing_else() {
    let (directory, sink) = sink().await;
    let orders = table(&[("id", Type::Int64), ("doc", Type::Json)], 1, Mode::Upsert);
    let mut desk = Desk::new(&sink, orders.clone()).await;
    let rows = inserted(&orders, &[(1, "{}"), (2, "{secret")]);
    let attempt = AttemptId { incarnation: Incarnation(1), number: 9 };
    let Err(error) = desk.open.writer.write(attempt, rows).await else { panic!("it must be refused") };
    assert_eq!((error.kind, error.code), (Kind::Rejected, "jsonl-sink-value"));
    assert_eq!(error.what, "table shop.orders, column 'doc', row 2 of a part: it is no JSON, or JSON nested more than 128 deep");
    assert!(!directory.path().join(".orders.i1-a9.staged").exists());
}
