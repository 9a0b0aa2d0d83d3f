//! A process that was asleep while another one took over: it wakes up and must do no harm.
//!
//! A is frozen (SIGSTOP) at three places: before it stages anything, with data files staged, with its metadata written. To
//! freeze it exactly there the test holds the lock of the catalogue's database: a commit waits at it. Then B starts, and has
//! committed the table, or has not yet, when A is thawed (SIGCONT).

use std::path::PathBuf;
use std::process::Command;

use e2e::readers::{Expectation, evidence, reader};
use e2e::{Binary, Changes, Desk, Ended, Process, Signal, wait_until};
use serde_json::{Value, json};

/// Where A is frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frozen {
    BeforeStaging,
    Staged,
    MetadataWritten,
}

/// B's life: A's is the first of this warehouse.
const LIFE_OF_B: u64 = 2;

/// What B has done when A wakes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Other {
    HasCommitted,
    HasStarted,
}

const TABLES: &str = r#"{
    "items": { "source": "shop.items", "key": ["id"], "columns": { "id": "int64", "name": "string", "amount": "int64" } },
    "journal": { "source": "shop.journal", "key": [], "columns": { "seq": "int64", "what": "string" } }
}"#;

/// A pipeline that follows its file; `when` says at which age or how many rows a checkpoint is committed.
fn pipeline(when: &str) -> String {
    format!(
        "pipeline: takeover
source: {{ kind: jsonl, path: changes.jsonl, follow: true, transactionIdle: 100ms }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {{ {when} }} }}
tables:
  - {{ source: shop.items, primaryKey: [id] }}
  - {{ source: shop.journal, writeMode: append }}
"
    )
}

/// A transaction of both tables for each number.
fn changes(numbers: std::ops::Range<u64>) -> Changes {
    numbers.fold(Changes::new(), |changes, n| {
        let item = |amount: u64| json!({"id": n % 40, "name": format!("item {}", n % 40), "amount": amount});
        let changes = changes.begin();
        let changes = if n < 40 { changes.insert("items", item(n)) } else { changes.update("items", item(n - 40), item(n)) };
        changes.insert("journal", json!({"seq": n, "what": "changed"}))
    })
}

struct Scene {
    desk: Desk,
    a: Process,
}

/// What is left when A has ended.
struct Aftermath {
    desk: Desk,
    a: Ended,
}

impl Scene {
    /// A follows the file and has committed its first part.
    fn begin() -> Scene {
        let desk = Desk::new().with_pipeline(&pipeline("interval: 200ms"));
        // Reads what A is given to do and commits nothing of it, until there is more.
        desk.write("patient.yaml", &pipeline("interval: 1h, maxRows: 50"));
        desk.write("tables.json", TABLES);
        desk.write("changes.jsonl", changes(0..60).text());
        let a = Process::start(desk.command(Binary::Plain, &["run", "-f", "pipeline.yaml", "--listen", "off"]));
        let mut scene = Scene { desk, a };
        wait_until("A's first commits", || {
            assert!(scene.a.runs(), "A has ended: {}", scene.a.stderr());
            committed(&look(&scene.desk)).filter(|tables| tables.len() == 2)
        });
        scene
    }

    /// Gives A more to do and freezes it.
    fn freeze(&mut self, place: Frozen) {
        let more = changes(60..90);
        match place {
            Frozen::BeforeStaging => {
                self.a.send(Signal::Stop);
                self.desk.append("changes.jsonl", more.text());
            }
            Frozen::Staged => self.freeze_at_lock("read", &more, |folder| files(folder, "parquet")),
            Frozen::MetadataWritten => self.freeze_at_lock("write", &more, |folder| files(folder, "metadata.json")),
        }
    }

    /// Freezes A when, waiting at the catalogue's lock, it has made another file of this kind for `items`.
    fn freeze_at_lock(&mut self, mode: &str, more: &Changes, count: impl Fn(&std::path::Path) -> usize) {
        let table = self.desk.warehouse().join("shop/items");
        let before = count(&table);
        let lock = hold_lock(&self.desk, mode);
        self.desk.append("changes.jsonl", more.text());
        wait_until("A's next file", || (count(&table) > before).then_some(()));
        self.a.send(Signal::Stop);
        lock.kill();
    }

    fn other(&self, pipeline: &str, options: &[&str]) -> Process {
        let arguments = [&["run", "-f", pipeline, "--listen", "off"], options].concat();
        Process::start(self.desk.command(Binary::Plain, &arguments))
    }

    /// A wakes up; it must end by itself.
    fn thaw(self) -> Aftermath {
        self.a.send(Signal::Continue);
        Aftermath { desk: self.desk, a: self.a.wait() }
    }
}

impl Aftermath {
    /// A says why it ended, with the exit code for that; no file that a snapshot names is gone; the rows are right.
    fn expect_no_harm(&self) {
        let Ended { code, stderr, .. } = &self.a;
        assert_eq!(*code, Some(1), "{stderr}");
        assert!(stderr.contains("superseded"), "A does not say that it was superseded:\n{stderr}");
        for (table, said) in look(&self.desk).as_object().expect("evidence of tables") {
            assert_eq!(said["missing"], json!([]), "{table}: files that a snapshot names are gone");
        }
        let (changes, tables) = (self.desk.path().join("changes.jsonl"), self.desk.path().join("tables.json"));
        let warehouse = self.desk.warehouse();
        let expectation = Expectation { warehouse: &warehouse, namespace: "shop", changes: &changes, tables: &tables };
        expectation.judge("takeover").unwrap_or_else(|faults| panic!("{faults}"));
    }
}

/// What the warehouse's files say; nothing if there is no catalogue yet.
fn look(desk: &Desk) -> Value {
    let there = desk.warehouse().join("catalog.db").exists();
    if there { evidence(&desk.warehouse(), "shop") } else { json!({}) }
}

/// The commits that the tables stand at, if there are any tables.
fn committed(said: &Value) -> Option<Vec<(String, String)>> {
    let tables = said.as_object()?.iter().filter(|(name, _)| !name.starts_with("urutau_"));
    tables.map(|(name, table)| Some((name.clone(), table["commit"].as_str()?.to_string()))).collect()
}

/// A table's newest state: its commit, and the commits that it was built upon.
#[derive(PartialEq, Eq, Debug)]
struct Head {
    /// The life and the number of the commit.
    commit: (u64, u64),
    /// Life, first and last number.
    built_upon: Vec<(u64, u64, u64)>,
}

impl Head {
    fn of(said: &Value, table: &str) -> Head {
        let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{table}: no {name} in {said}"));
        let head = &said[table]["head"];
        let run = |run: &Value| (number(run, "incarnation"), number(run, "first"), number(run, "last"));
        let built_upon = head["ancestors"].as_array().expect("a list of ancestors").iter().map(run).collect();
        Head { commit: (number(&head["commit"], "incarnation"), number(&head["commit"], "number")), built_upon }
    }

    fn is_built_upon(&self, (life, number): (u64, u64)) -> bool {
        self.built_upon.iter().any(|(of, first, last)| *of == life && (*first..=*last).contains(&number))
    }
}

/// Are there data files of the table that no snapshot names?
fn has_staged(said: &Value, table: &str) -> bool {
    !said[table]["unnamed"]["parquet"].as_array().expect("a list of files").is_empty()
}

/// Files below a folder whose name ends so.
fn files(folder: &std::path::Path, suffix: &str) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let here = paths.iter().filter(|path| path.to_string_lossy().ends_with(suffix)).count();
    here + paths.iter().filter(|path| path.is_dir()).map(|path| files(path, suffix)).sum::<usize>()
}

fn hold_lock(desk: &Desk, mode: &str) -> Process {
    let mut command: Command = reader("lock.py");
    command.arg("--warehouse").arg(desk.warehouse()).args(["--mode", mode]);
    let mut lock = Process::start(command);
    wait_until("the catalogue's lock", || {
        assert!(lock.runs(), "{}", lock.stderr());
        lock.stdout().contains("locked").then_some(())
    });
    lock
}

fn takes_over(place: Frozen, other: Other) {
    let mut scene = Scene::begin();
    scene.freeze(place);
    let asleep = look(&scene.desk);
    match other {
        Other::HasCommitted => {
            scene.other("pipeline.yaml", &["--until-current"]).wait().expect_code(0);
            let taken = committed(&look(&scene.desk));
            assert_ne!(taken, committed(&asleep), "B committed nothing");
            let after = scene.thaw();
            assert_eq!(committed(&look(&after.desk)), taken, "A published something after it had been superseded");
            after.expect_no_harm();
        }
        Other::HasStarted => {
            let record = |said: &Value| said["urutau_takeover"]["pointer"].clone();
            let mut b = scene.other("patient.yaml", &[]);
            wait_until("B's incarnation", || Some(look(&scene.desk)).filter(|said| record(said) != record(&asleep)));
            assert_eq!(committed(&look(&scene.desk)), committed(&asleep), "B was to be patient");
            let after = scene.thaw();
            let left = look(&after.desk);
            expect_ordinary_commits(place, &asleep, &left);
            // B meets what A left when it has enough to commit something itself.
            after.desk.append("changes.jsonl", changes(90..150).text());
            let later = wait_until("B's own commits", || {
                assert!(b.runs(), "B has ended: {}", b.stderr());
                let said = look(&after.desk);
                ["items", "journal"].iter().all(|table| Head::of(&said, table).commit.0 == LIFE_OF_B).then_some(said)
            });
            for table in ["items", "journal"] {
                let (left, later) = (Head::of(&left, table), Head::of(&later, table));
                assert!(later.is_built_upon(left.commit), "{table}: B's {later:?} does not name A's {left:?}");
            }
            b.send(Signal::Terminate);
            b.wait().expect_code(0);
            after.expect_no_harm();
        }
    }
}

/// What A had staged when it fell asleep is an ordinary commit now, since B had committed nothing: each such table stands one commit
/// of A's further on. Where A had staged nothing, it may have committed something since, or have noticed before.
fn expect_ordinary_commits(place: Frozen, asleep: &Value, left: &Value) {
    assert_eq!(has_staged(asleep, "items"), place != Frozen::BeforeStaging, "A fell asleep elsewhere: {asleep}");
    for table in ["items", "journal"] {
        let (was, is) = (Head::of(asleep, table), Head::of(left, table));
        assert_eq!(was.commit.0, 1, "{table}: not of A's life: {was:?}");
        assert_eq!(is.commit.0, 1, "{table}: B was to be patient: {is:?}");
        if has_staged(asleep, table) {
            assert_eq!(is.commit.1, was.commit.1 + 1, "{table}: what A had staged is not its next commit: {was:?}, then {is:?}");
            assert!(is.is_built_upon(was.commit), "{table}: {is:?} does not name {was:?}");
            assert!(!has_staged(left, table), "{table}: files that A staged are in no snapshot");
        } else {
            assert!(is.commit.1 >= was.commit.1, "{table}: went back from {was:?} to {is:?}");
        }
    }
}

#[test]
fn asleep_before_staging_while_another_commits() {
    takes_over(Frozen::BeforeStaging, Other::HasCommitted);
}

#[test]
fn asleep_with_staged_files_while_another_commits() {
    takes_over(Frozen::Staged, Other::HasCommitted);
}

#[test]
fn asleep_with_metadata_written_while_another_commits() {
    takes_over(Frozen::MetadataWritten, Other::HasCommitted);
}

#[test]
fn asleep_before_staging_while_another_starts() {
    takes_over(Frozen::BeforeStaging, Other::HasStarted);
}

#[test]
fn asleep_with_staged_files_while_another_starts() {
    takes_over(Frozen::Staged, Other::HasStarted);
}

#[test]
fn asleep_with_metadata_written_while_another_starts() {
    takes_over(Frozen::MetadataWritten, Other::HasStarted);
}
