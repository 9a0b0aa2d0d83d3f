//! A run that is written down, and the same machines told the same again: they say the same, and nobody learns a row from the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contract::memory::{Change, MemoryLog, MemorySink, Value, row};
use contract::rows::{Column, RecordBatch, TableSchema, Type};
use contract::{Kind, StateWrite};
use host::{Drivers, Run, Trace};
use kernel::coordinator::{Input, Operator, Output, StopReason};
use kernel::id::TableName;
use trace::{End, Reader, Replay, ReplayError, Seen, TraceError};

/// What stands in every key, and in every other value.
const KEY: &str = "KEYMARK";
const VALUE: &str = "VALUEMARK";

fn pages() -> TableSchema {
    let column = |name: &str| Column::new(name, Type::String, true);
    TableSchema {
        table: TableName::from("wiki.pages"),
        columns: vec![column("id"), column("title"), column("body")],
        key: vec![0],
    }
}

type Page = (String, String);

fn page(id: u64, (title, body): &Page) -> RecordBatch {
    let id = format!("{KEY}{id}");
    row(&pages(), &[Value::Text(&id), Value::Text(title), Value::Text(body)]).expect("a row")
}

fn text(title: u64, body: u64) -> Page {
    (format!("{VALUE}{title}"), format!("{VALUE}{body}"))
}

fn start(log: &MemoryLog, sink: &MemorySink, until_current: bool, trace: Trace) -> Run {
    let file = "
pipeline: wiki
source: { kind: jsonl, path: unused.jsonl }
sink: { kind: 'null', checkpoint: { interval: 20ms, maxRows: 30 } }
snapshot: { chunkRows: 7, parallelism: 3 }
tables:
  - { source: wiki.pages, primaryKey: [id] }
";
    let pipeline = spec::parse(file, "pipeline.yaml", &spec::ProcessEnvironment).expect("a good file");
    let drivers = Drivers { source: Arc::new(log.source()), sink: Arc::new(sink.clone()) };
    Run::start_traced(&pipeline, drivers, until_current, Some(trace)).expect("a run")
}

/// A log whose table held forty rows before it began.
fn log() -> MemoryLog {
    MemoryLog::new("wiki 1", [pages()]).with_rows(&pages().table, (0..40).map(|id| page(id, &text(id, id))))
}

/// What a replay comes to: how often each thing was seen, and how it ended.
#[derive(Debug)]
struct Replayed {
    seen: BTreeMap<&'static str, u64>,
    end: Result<End, String>,
    cut: Option<u64>,
}

fn replay(file: &Path) -> Replayed {
    let text = std::fs::read(file).expect("the trace can be read");
    let mut replayed = Replayed { seen: BTreeMap::new(), end: Err("no end".into()), cut: None };
    let (mut reader, mut replay) = (Reader::new(text.as_slice()).expect("a trace"), Replay::new());
    loop {
        let step = match reader.next_step() {
            Ok(Some(step)) => step,
            Ok(None) => return replayed,
            Err(error) => {
                replayed.cut = if let TraceError::Cut { line } = &error { Some(*line) } else { None };
                replayed.end = Err(error.to_string());
                return replayed;
            }
        };
        let taken: Result<(), ReplayError> = replay.take(&step, |_, seen| {
            let what = match seen {
                Seen::Hears(Input::ChunkRead { .. }) => "chunk",
                Seen::Hears(Input::RowsRead { .. }) => "rows again",
                Seen::Says(Output::Commit { .. }) => "commit",
                Seen::WorkerSays(_) => "worker",
                Seen::Ends(end) => {
                    replayed.end = Ok(end);
                    "end"
                }
                _ => "other",
            };
            *replayed.seen.entry(what).or_default() += 1;
        });
        if let Err(error) = taken {
            replayed.end = Err(error.to_string());
            return replayed;
        }
    }
}

/// Panics if something of a row stands in the file, as it is or as a key is encoded.
fn holds_no_row(file: &Path) {
    let text = std::fs::read_to_string(file).expect("a trace is text").to_lowercase();
    for mark in [KEY, VALUE] {
        let hex: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
        for mark in [mark.to_lowercase(), hex] {
            if let Some(line) = text.lines().find(|line| line.contains(&mark)) {
                panic!("'{mark}' stands in\n{line}");
            }
        }
    }
}

/// Numbers that look random and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn change(there: &mut BTreeMap<u64, Page>, chance: &mut Chance, number: u64) -> Change {
    let (id, to) = (chance.below(12), chance.below(12));
    let Some(before) = there.get(&id).cloned() else {
        there.insert(id, text(number, number));
        return Change::Insert(pages().table, page(id, &text(number, number)));
    };
    let titled = (format!("{VALUE}{number}"), before.1.clone());
    match chance.below(6) {
        0 => {
            there.remove(&id);
            Change::Delete(pages().table, page(id, &before))
        }
        1 if !there.contains_key(&to) => {
            there.remove(&id);
            there.insert(to, titled.clone());
            Change::RekeyWithout(pages().table, page(id, &before), page(to, &titled), vec![2])
        }
        2 => {
            there.insert(id, text(number, number));
            Change::Update(pages().table, page(id, &text(number, number)))
        }
        _ => {
            there.insert(id, titled.clone());
            Change::UpdateWithout(pages().table, page(id, &titled), vec![2])
        }
    }
}

#[tokio::test]
async fn what_was_traced_is_done_again_and_no_row_is_in_it() {
    let mut seen = BTreeMap::<&str, u64>::new();
    for (kind, seed) in [(StateWrite::WithData, 7), (StateWrite::AfterData, 11), (StateWrite::WithData, 2026)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, sink) = (log(), MemorySink::new(kind));
        let mut there: BTreeMap<u64, Page> = (0..40).map(|id| (id, text(id, id))).collect();
        let (mut chance, mut number) = (Chance(seed), 100);
        for life in 0..3 {
            let file = folder.path().join(format!("{life}.trace"));
            let mut run = start(&log, &sink, false, Trace::create(&file).expect("a file"));
            for _ in 0..25 {
                if chance.below(2) == 0 {
                    log.hide();
                }
                for _ in 0..=chance.below(4) {
                    let changes = (0..=chance.below(3)).map(|_| {
                        number += 1;
                        change(&mut there, &mut chance, number)
                    });
                    log.transaction(changes.collect());
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(Duration::from_millis(3)).await;
                log.show();
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            run.control().ask(Operator::Drain).await;
            let ended = run.ended().await;
            assert_eq!(ended.reason, StopReason::Drained, "{ended:?}");

            holds_no_row(&file);
            // For `sim/tests/traces/`: what no change file shows.
            if let Some(folder) = std::env::var_os("KEEP_TRACES") {
                let kept = Path::new(&folder).join(format!("snapshot-{seed}-{life}.trace"));
                std::fs::copy(&file, kept).expect("a trace is kept");
            }
            let replayed = replay(&file);
            assert_eq!(replayed.end, Ok(End::Stopped), "{kind:?} {seed}, life {life}");
            replayed.seen.into_iter().for_each(|(what, times)| *seen.entry(what).or_default() += times);
        }
    }
    for what in ["chunk", "rows again", "commit", "worker"] {
        assert!(seen.get(what).is_some_and(|times| *times > 0), "the story has no {what}: {seen:?}");
    }
}

#[tokio::test]
async fn what_an_error_says_of_a_value_is_not_in_the_trace_and_its_code_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.trace");
    let (log, sink) = (MemoryLog::new("wiki 1", [pages()]), MemorySink::new(StateWrite::WithData));
    let careless = format!("wiki.pages: '{VALUE}1' of '{KEY}1' is too long");
    let refused = contract::Error::new(Kind::Rejected, "too-long", careless, format!("shorten '{VALUE}1'"));
    log.transaction(vec![Change::Refused(pages().table, refused)]);
    let ended = start(&log, &sink, true, Trace::create(&file).expect("a file")).ended().await;
    assert_eq!(ended.exit_code(), 3, "{ended:?}");

    holds_no_row(&file);
    let text = std::fs::read_to_string(&file).expect("a trace is text");
    assert!(text.lines().any(|line| line.starts_with("  refused wiki.pages ") && line.contains(" too-long~")), "{text}");
    assert_eq!(replay(&file).end, Ok(End::Stopped));
}

#[tokio::test]
async fn a_line_that_somebody_altered_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.trace");
    let (log, sink) = (log(), MemorySink::new(StateWrite::WithData));
    log.transaction((100..140).map(|id| Change::Insert(pages().table, page(id, &text(id, id)))).collect());
    assert_eq!(start(&log, &sink, true, Trace::create(&file).expect("a file")).ended().await.exit_code(), 0);
    let text = std::fs::read_to_string(&file).expect("a trace is text");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("  rows ")).expect("rows were read");
    let other = lines[at].replacen(":0..", ":1..", 1);
    assert_ne!(other, lines[at]);
    std::fs::write(&file, text.replacen(lines[at], &other, 1)).expect("it can be altered");

    let error = replay(&file).end.expect_err("it was altered");

    let begun = lines[..at].iter().rposition(|line| line.contains(" hears ")).expect("in a step") + 1;
    assert!(error.starts_with(&format!("lines {begun} to ")) && error.contains("a line was altered"), "{error}");
}

#[tokio::test]
async fn a_life_that_is_left_where_it_stands_has_its_trace_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.trace");
    let (log, sink) = (log(), MemorySink::new(StateWrite::WithData));
    let mut run = start(&log, &sink, false, Trace::create(&file).expect("a file"));
    while run.control().report().tables.get("wiki.pages").is_none_or(|table| table.commits < 2) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    run.leave().await;

    let replayed = replay(&file);
    assert!(replayed.cut.is_some(), "{replayed:?}");
    assert!(replayed.seen["commit"] >= 2, "{replayed:?}");
}

#[tokio::test]
async fn a_trace_that_may_not_become_larger_says_so_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.trace");
    let (log, sink) = (log(), MemorySink::new(StateWrite::WithData));
    let trace = Trace::create(&file).expect("a file").of_at_most(4_000);
    let mut run = start(&log, &sink, false, trace);
    for id in 100..200 {
        log.transaction(vec![Change::Insert(pages().table, page(id, &text(id, id)))]);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    run.control().ask(Operator::Drain).await;
    let ended = run.ended().await;
    assert_eq!(ended.exit_code(), 0, "{ended:?}");
    assert_eq!(replay(&file).end, Ok(End::Full));
    let size = std::fs::metadata(&file).expect("the trace").len();
    assert!((4_000..40_000).contains(&size), "{size} bytes");
}

fn code_of(path: PathBuf) -> &'static str {
    let error = Trace::create(&path).expect_err("it can't be made");
    assert!(error.what.contains(path.to_str().expect("a name")) && !error.remedy.is_empty(), "{error}");
    error.code
}

#[test]
fn a_file_is_made_for_nobody_else_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.trace");
    let trace = Trace::create(&file).expect("a file");
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(code_of(file.clone()), "trace-exists");
    assert_eq!(code_of(folder.path().to_owned()), "trace-exists");
    assert_eq!(code_of(folder.path().join("no folder/run.trace")), "trace-not-writable");
    // A run that did not begin leaves nothing behind, and the next one may have the name.
    drop(trace);
    assert!(!file.exists());
}
