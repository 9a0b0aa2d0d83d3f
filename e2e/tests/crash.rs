//! kill -9: at every boundary of a commit, at random moments, and again while the next life recovers.
//!
//! A build with failpoints parks the thread that comes to a boundary and tells its name; the test makes sure from the files
//! alone that the process is where it says, kills it from outside and starts it again on what it left. However often
//! that happens, in the end the tables are what the change file says, no event is twice in the append-only one, and at
//! every kept snapshot the stored position is that of the rows beside it.

use std::cell::RefCell;
use std::path::PathBuf;

use e2e::readers::{Expectation, evidence};
use e2e::{Binary, Desk, Process, Signal, TABLES_OF_THE_QUICKSTART, root, wait_until};
use serde_json::Value;

/// Rows a checkpoint: small, so that each life makes many commits.
const ROWS_MAX: usize = 300;

/// A boundary, and what the files must say when a process stands at it.
struct Boundary {
    point: &'static str,
    /// How many table files of each kind no snapshot names: that is, how far the commit in the making has come.
    unfinished: fn(&Unfinished) -> bool,
}

/// What of the warehouse is not part of any table yet, all tables together, and whether the catalogue has moved.
#[derive(Debug)]
struct Unfinished {
    data_files: usize,
    vector_files: usize,
    metadata_files: usize,
    catalogue_moved: bool,
    record_moved: bool,
}

const BOUNDARIES: [Boundary; 5] = [
    Boundary { point: "iceberg-data-written", unfinished: |files| files.data_files > 0 },
    Boundary { point: "iceberg-vectors-written", unfinished: |files| files.vector_files > 0 },
    Boundary { point: "iceberg-metadata-written", unfinished: |files| files.metadata_files > 0 },
    Boundary { point: "iceberg-swapped", unfinished: |files| files.catalogue_moved },
    Boundary { point: "iceberg-record-stored", unfinished: |files| files.record_moved },
];

/// At which time of coming to the boundary each life is killed. The small numbers meet it in the first commits after a
/// recovery, the large ones in a life that runs freely.
const TURNS: [usize; 7] = [2, 1, 5, 3, 1, 8, 4];

/// Lives that must end at the boundary before it counts as tested.
const KILLS_MIN: usize = 6;

/// The metadata files that the catalogue names, one a table.
fn pointers(said: &Value) -> Vec<(String, String)> {
    said.as_object()
        .expect("evidence of tables")
        .iter()
        .map(|(name, table)| (name.clone(), table["pointer"].to_string()))
        .collect()
}

fn unfinished(before: &Value, now: &Value) -> Unfinished {
    // What an earlier life left does not count: it lay there before.
    let list = |said: &Value, table: &str, place: &[&str]| {
        let place = place.iter().fold(&said[table], |said, name| &said[*name]);
        place.as_array().cloned().unwrap_or_default()
    };
    let count = |place: &[&str]| -> usize {
        let tables = now.as_object().expect("evidence of tables").keys();
        tables
            .map(|table| (list(now, table, place), list(before, table, place)))
            .map(|(now, old)| now.iter().filter(|file| !old.contains(file)).count())
            .sum()
    };
    let old = pointers(before);
    let moved: Vec<String> = pointers(now).into_iter().filter(|table| !old.contains(table)).map(|(name, _)| name).collect();
    Unfinished {
        data_files: count(&["unnamed", "parquet"]),
        vector_files: count(&["unnamed", "puffin"]),
        metadata_files: count(&["unswapped"]),
        catalogue_moved: moved.iter().any(|name| !name.starts_with("urutau_")),
        record_moved: moved.iter().any(|name| name.starts_with("urutau_")),
    }
}

/// The quickstart in a warehouse of its own, with everything that judges it.
struct Story {
    desk: Desk,
    changes: PathBuf,
    tables: PathBuf,
    /// What the files said when the last life was killed.
    left: RefCell<Value>,
}

impl Story {
    fn begin() -> Story {
        let desk = Desk::quickstart(ROWS_MAX);
        let (changes, tables) = (root().join("examples/quickstart/changes.jsonl"), root().join(TABLES_OF_THE_QUICKSTART));
        Story { desk, changes, tables, left: RefCell::new(serde_json::json!({})) }
    }

    /// Lives until the `turn`-th coming to the boundary, and is killed there. False if the life ended by itself before, an error
    /// if the files do not say that it is there.
    fn kill_at(&self, boundary: &Boundary, turn: usize, variables: &[(&str, &str)]) -> Result<bool, String> {
        let Some(process) = self.desk.run_parked(boundary.point, turn, variables) else { return Ok(false) };
        let now = evidence(&self.desk.warehouse(), "shop");
        let files = unfinished(&self.left.replace(now.clone()), &now);
        if !(boundary.unfinished)(&files) {
            return Err(format!("at {}, turn {turn}, the files say otherwise: {files:?}", boundary.point));
        }
        assert_eq!(process.kill().signal, Some(9));
        Ok(true)
    }

    /// Runs undisturbed to the end of the file and asks the independent readers.
    fn verdict(&self) -> Result<(), String> {
        let ended = self.desk.run();
        if ended.code != Some(0) {
            return Err(format!("the last run ended with {:?}:\n{}{}", ended.code, ended.stdout, ended.stderr));
        }
        self.expectation(|expectation| expectation.judge("order-desk"))
    }

    fn expectation<T>(&self, ask: impl FnOnce(Expectation<'_>) -> T) -> T {
        let warehouse = self.desk.warehouse();
        ask(Expectation { warehouse: &warehouse, namespace: "shop", changes: &self.changes, tables: &self.tables })
    }
}

/// Kills at one boundary, again and again, in one warehouse after the other until it was met often enough.
fn killed_at(boundary: &Boundary, variables: &[(&str, &str)]) -> Result<usize, String> {
    let mut kills = 0;
    while kills < KILLS_MIN {
        let story = Story::begin();
        let mut here = 0;
        for turn in TURNS {
            if !story.kill_at(boundary, turn, variables)? {
                break;
            }
            here += 1;
        }
        if here == 0 {
            return Err(format!("a fresh run never comes to {}", boundary.point));
        }
        kills += here;
        story.verdict()?;
    }
    Ok(kills)
}

fn survives_kills_at(point: &str) {
    let boundary = BOUNDARIES.iter().find(|boundary| boundary.point == point).expect("a boundary");
    let kills = killed_at(boundary, &[]).unwrap_or_else(|faults| panic!("after kills at {point}:\n{faults}"));
    assert!(kills >= KILLS_MIN);
}

#[test]
fn a_kill_between_data_files_and_vectors_loses_nothing() {
    survives_kills_at("iceberg-data-written");
}

#[test]
fn a_kill_between_vectors_and_metadata_loses_nothing() {
    survives_kills_at("iceberg-vectors-written");
}

#[test]
fn a_kill_between_metadata_and_the_catalogues_swap_loses_nothing() {
    survives_kills_at("iceberg-metadata-written");
}

#[test]
fn a_commit_that_landed_unreported_is_recognised_by_the_next_life() {
    survives_kills_at("iceberg-swapped");
}

#[test]
fn a_kill_after_the_pipelines_record_is_stored_loses_nothing() {
    survives_kills_at("iceberg-record-stored");
}

#[test]
fn a_second_kill_while_the_next_life_recovers_loses_nothing() {
    let recovery = [("iceberg-record-stored", 1), ("iceberg-data-written", 1), ("iceberg-swapped", 1)];
    for (point, turn) in recovery {
        let story = Story::begin();
        let second = BOUNDARIES.iter().find(|boundary| boundary.point == point).expect("a boundary");
        for first in &BOUNDARIES {
            let killed = |boundary, turn| story.kill_at(boundary, turn, &[]).unwrap_or_else(|otherwise| panic!("{otherwise}"));
            assert!(killed(first, 2), "the file is too short for a life of its own at {}", first.point);
            assert!(killed(second, turn), "the life after a kill at {} never comes to {point}", first.point);
        }
        story.verdict().unwrap_or_else(|faults| panic!("second kills at {point}:\n{faults}"));
    }
}

#[test]
fn twenty_kills_at_random_moments_lose_nothing() {
    let mut random = Random(0x0DD5_0FD0_0DAD);
    let mut kills = 0;
    while kills < 20 {
        let story = Story::begin();
        while kills < 20 {
            let mut process = Process::start(story.desk.command(Binary::Failpoints, Desk::RUN));
            let moment = std::time::Instant::now() + std::time::Duration::from_millis(30 + random.below(1_500));
            wait_until("a random moment", || (!process.runs() || std::time::Instant::now() >= moment).then_some(()));
            if !process.runs() {
                process.wait().expect_code(0);
                break;
            }
            process.send(Signal::Kill);
            let ended = process.wait();
            if ended.signal != Some(9) {
                ended.expect_code(0); // It came to its end in that very moment.
                break;
            }
            kills += 1;
        }
        story.verdict().unwrap_or_else(|faults| panic!("after {kills} kills at random moments:\n{faults}"));
    }
}

#[test]
fn the_same_kills_are_noticed_where_a_state_is_stored_before_its_data() {
    let fault = [("URUTAU_FAULT", "state-first")];
    // Not killed, a run with the fault loses nothing: what is missing below, the kill has cost.
    let story = Story::begin();
    let mut command = story.desk.command(Binary::Failpoints, Desk::RUN);
    command.envs(fault);
    Process::start(command).wait().expect_code(0);
    story.expectation(|expectation| expectation.compare(&[])).expect_code(0);
    // These two boundaries lie between the state that the fault stores and the commit of its rows.
    for point in ["iceberg-vectors-written", "iceberg-metadata-written"] {
        let boundary = BOUNDARIES.iter().find(|boundary| boundary.point == point).expect("a boundary");
        let said = killed_at(boundary, &fault).expect_err("kills that cost rows went unnoticed");
        for reader in ["duckdb", "pyiceberg"] {
            let is_of_a_lost_row =
                |line: &str| line.starts_with(reader) && line.contains(": key (") && line.ends_with(": missing");
            assert!(said.lines().any(is_of_a_lost_row), "at {point}, {reader} misses no row; it was noticed otherwise:\n{said}");
        }
    }
}

/// A small generator of random numbers with a fixed seed: a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}
