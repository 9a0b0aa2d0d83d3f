//! The whole of what a driver must do to be held to the laws: two harnesses, two calls. Then what is special about it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use contract::conformance::Word;
use contract::conformance::sink::{self, SinkAbilities, SinkHarness, SinkPlace};
use contract::conformance::source::{self, SourceAbilities, SourceHarness, SourcePlace, Step, TABLES, What};
use contract::position_store::FileStore;
use contract::registry::{Settings, SinkFactory, SourceFactory};
use contract::serde_json::Value;
use contract::{
    Capabilities, Error, Kind, Limit, LogEvent, Mode, Sink, SinkTable, Source, StateWrite, TableRequest, async_trait,
};
use example::{Notebook, NotebookFactory, PagesFactory};

fn settings(name: &str, path: PathBuf) -> Settings {
    [(name.to_string(), path.to_str().unwrap().into())].into_iter().collect()
}

/// A directory that is removed when it is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("urutau-example-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Notebooks;

struct NotebookPlace(Directory);

impl NotebookPlace {
    fn path(&self) -> PathBuf {
        self.0.0.join("notebook.txt")
    }

    fn add(&self, lines: &str) {
        OpenOptions::new().append(true).create(true).open(self.path()).unwrap().write_all(lines.as_bytes()).unwrap();
    }
}

#[async_trait]
impl SourceHarness for Notebooks {
    fn abilities(&self) -> SourceAbilities {
        SourceAbilities { refuses: true, poisons: true, discards: false, reads_rows: false }
    }

    async fn fresh(&self) -> Result<Box<dyn SourcePlace>, Error> {
        let place = NotebookPlace(Directory::new());
        place.add("# notebook of a test\n");
        Ok(Box::new(place))
    }
}

#[async_trait]
impl SourcePlace for NotebookPlace {
    async fn open(&self) -> Result<Arc<dyn Source>, Error> {
        NotebookFactory.open("kit", &settings("path", self.path())).await
    }

    async fn write(&self, transactions: &[Vec<Step>]) -> Result<(), Error> {
        for steps in transactions {
            for Step { table, what } in steps {
                let change = match what {
                    What::Insert(id, word) => format!("+ {id} {word}"),
                    What::Update(id, word) => format!("~ {id} {word}"),
                    What::Rekey(old, new, word) => format!("> {old} {new} {word}"),
                    What::Delete(id) => format!("- {id}"),
                };
                self.add(&format!("{table} {change}\n"));
            }
            self.add("--\n");
        }
        Ok(())
    }

    async fn write_refused(&self) -> Result<(), Error> {
        self.add(&format!("{} + seven seven\n--\n", TABLES[0]));
        Ok(())
    }

    async fn write_poison(&self) -> Result<(), Error> {
        self.add("scribble\n--\n");
        Ok(())
    }
}

#[tokio::test]
async fn the_notebook_keeps_all_laws_of_sources() {
    source::check(&Notebooks).await.must_hold(&[
        ("start-within-streamable", "nothing makes this source forget"),
        ("rows-are-read-again-by-key", "this source's rows can't be read again"),
    ]);
}

struct PagesInDirectories;

struct PagesPlace(Directory);

#[async_trait]
impl SinkHarness for PagesInDirectories {
    fn abilities(&self) -> SinkAbilities {
        SinkAbilities {
            capabilities: Capabilities { state: StateWrite::WithData, writes_ahead: true, truncates: true, sweeps: true },
            modes: vec![Mode::Upsert],
            reads_back: true,
            foreign_commit: false,
            roll_back: false,
            tear: false,
        }
    }

    async fn fresh(&self) -> Result<Box<dyn SinkPlace>, Error> {
        Ok(Box::new(PagesPlace(Directory::new())))
    }
}

#[async_trait]
impl SinkPlace for PagesPlace {
    async fn open(&self) -> Result<Arc<dyn Sink>, Error> {
        PagesFactory.open("kit", &settings("uri", self.0.0.clone())).await
    }

    /// A reader needs to know where the newest text is, and JSON.
    async fn visible_rows(&self, table: &SinkTable) -> Result<Vec<Word>, Error> {
        let stored = FileStore::new(&self.0.0).read_now(&format!("kit.page.{}", table.target))?;
        let page: Value = contract::serde_json::from_str(&stored.value.unwrap_or_else(|| "{}".into())).unwrap();
        let rows = page["rows"].as_object().cloned().unwrap_or_default();
        let word = |row: &Value| Word { id: row[0].as_i64().unwrap(), word: row[1].as_str().map(String::from) };
        Ok(rows.values().map(word).collect())
    }
}

#[tokio::test]
async fn the_pages_keep_all_laws_of_sinks() {
    sink::check(&PagesInDirectories).await.must_hold(&[
        ("a-torn-commit-is-whole-or-absent", "the harness cannot tear a commit"),
        ("append-keeps-every-row-once", "the sink has no tables of that mode"),
        ("covered-rows-are-refused", "the sink has no tables of that mode"),
        ("the-highest-state-counts", "the sink's state write is compare-and-set"),
        ("the-highest-version-wins", "the sink's state write is compare-and-set"),
        ("state-survives-foreign-commits", "nobody else can change a table of this sink"),
    ]);
}

fn request(table: &str) -> TableRequest {
    source::request(table)
}

const ALL: Limit = Limit { rows: 100, bytes: 1 << 20 };

#[tokio::test]
async fn what_stands_behind_the_last_transaction_is_not_there_yet() {
    let place = NotebookPlace(Directory::new());
    place.add("# half written\noffice.boats + 1 Alma\n--\noffice.boats + 2 Ber");
    let source = Notebook::new(place.path());
    let described = source.describe(&[request("office.boats")], &Default::default()).await.unwrap();
    let opened = source.open().await.unwrap();
    let mut reader = source.stream(&opened.floor.into(), &[described[0].schema.clone()]).await.unwrap();
    let read = reader.next(ALL).await.unwrap();
    assert_eq!(read.batches.iter().map(|batch| batch.rows()).sum::<usize>(), 1);
    assert!(matches!(&read.events[..], [LogEvent::Rows { .. }, LogEvent::Ended { upto, .. }] if *upto == opened.end));
    assert!(read.finished);
}

#[tokio::test]
async fn a_line_that_belongs_to_no_table_stops_the_source_after_what_came_before() {
    let place = NotebookPlace(Directory::new());
    place.add("# torn page\noffice.boats + 1 Alma\n--\nscribble\n--\n");
    let source = Notebook::new(place.path());
    let described = source.describe(&[request("office.boats")], &Default::default()).await.unwrap();
    let mut reader = source.stream(&source.open().await.unwrap().floor.into(), &[described[0].schema.clone()]).await.unwrap();
    assert_eq!(reader.next(ALL).await.unwrap().events.len(), 2);
    let error = reader.next(ALL).await.unwrap_err();
    assert_eq!(error.kind, Kind::Poison);
    assert!(error.what.ends_with("the line at byte 37 does not begin with a table"), "{error}");
}

#[tokio::test]
async fn a_notebook_that_got_shorter_has_lost_the_position() {
    let place = NotebookPlace(Directory::new());
    place.add("# shorter\noffice.boats + 1 Alma\n--\n");
    let source = Notebook::new(place.path());
    let end = source.open().await.unwrap().end;
    std::fs::write(place.path(), "# shorter\n").unwrap();
    let Err(error) = source.stream(&end.into(), &[]).await else { panic!("there is nothing to go on from") };
    assert_eq!((error.kind, error.code), (Kind::PositionLost, "example-shorter"));
}

/// What the crate is for: a driver needs the contract and nothing else of urutau.
#[test]
fn it_depends_on_the_contract_alone() {
    let manifest = include_str!("../Cargo.toml");
    let section = manifest.split_once("[dependencies]\n").unwrap().1.split_once("\n[").unwrap().0;
    let names: Vec<&str> =
        section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|n| !n.is_empty()).collect();
    assert_eq!(names, ["contract", "async-trait"]);
}
