//! The quickstart, as a newcomer runs it, read back by engines that have nothing of ours.

use std::path::Path;

use e2e::readers::{Expectation, reader};
use e2e::{Binary, Desk, Process, TABLES_OF_THE_QUICKSTART, python, root};

fn expectation<'a>(warehouse: &'a Path, changes: &'a Path, tables: &'a Path) -> Expectation<'a> {
    Expectation { warehouse, namespace: "shop", changes, tables }
}

/// Compares a warehouse with the quickstart's change file.
fn judge(warehouse: &Path, options: &[&str]) -> e2e::Ended {
    let (changes, tables) = (root().join("examples/quickstart/changes.jsonl"), root().join(TABLES_OF_THE_QUICKSTART));
    expectation(warehouse, &changes, &tables).compare(options)
}

#[test]
fn the_change_file_is_what_its_generator_writes() {
    let again = tempfile::NamedTempFile::new().expect("a file");
    let mut command = std::process::Command::new(python());
    command.arg(root().join("examples/quickstart/generate.py")).arg(again.path());
    Process::start(command).wait().expect_code(0);
    let (kept, made) = (root().join("examples/quickstart/changes.jsonl"), again.path());
    let same = std::fs::read(kept).expect("the kept file") == std::fs::read(made).expect("the new file");
    assert!(same, "examples/quickstart/changes.jsonl is not what generate.py writes: run it and commit both");
}

#[test]
fn every_value_of_every_table_arrives_with_its_type() {
    let desk = Desk::quickstart(1500);
    desk.run().expect_code(0);
    judge(&desk.warehouse(), &["--selftest"]).expect_code(0);
}

#[test]
fn the_readme_shows_what_a_run_says() {
    let desk = Desk::quickstart(1500);
    let mut said = desk.run().expect_code(0).stdout;
    said += &desk.urutau(&["peek", "-f", "pipeline.yaml", "order_lines", "--limit", "5"]).expect_code(0).stdout;
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let shown = readme.split("```").find(|block| block.contains("\n== urutau run ")).expect("the README shows a run");
    // How long it took, and into how many commits that divides a table's changes, is another thing each time.
    let timeless = |line: &str| match line.split_once(" changes read in ") {
        Some((begin, _)) => format!("{begin} changes read"),
        None if line.starts_with("shop.") => line.rsplit_once(' ').expect("a column of commits").0.trim_end().to_owned(),
        None => line.to_owned(),
    };
    let said: Vec<String> = said.lines().map(timeless).collect();
    let mut places = Vec::new();
    for line in shown.lines().filter(|line| !line.is_empty() && *line != "..." && !line.starts_with("== ")) {
        let place = said.iter().position(|said| *said == timeless(line));
        places.push(place.unwrap_or_else(|| panic!("no run says '{line}', only\n{}", said.join("\n"))));
    }
    assert!(places.len() >= 10 && places.is_sorted(), "the README shows {places:?} of the lines that a run says");
}

#[test]
fn the_stored_positions_are_those_of_the_rows_beside_them() {
    let desk = Desk::quickstart(700);
    desk.run().expect_code(0);
    let (changes, tables) = (root().join("examples/quickstart/changes.jsonl"), root().join(TABLES_OF_THE_QUICKSTART));
    expectation(&desk.warehouse(), &changes, &tables).positions("order-desk", &[]).expect_code(0);
}

#[test]
fn a_second_run_changes_nothing() {
    let desk = Desk::quickstart(1500);
    desk.run().expect_code(0);
    let commits = commits(&desk);
    desk.run().expect_code(0);
    assert_eq!(commits, self::commits(&desk), "a run with nothing to do commits nothing to a table");
    judge(&desk.warehouse(), &[]).expect_code(0);
}

/// The commit id that each of the pipeline's tables stands at.
fn commits(desk: &Desk) -> Vec<(String, String)> {
    let evidence = e2e::readers::evidence(&desk.warehouse(), "shop");
    let tables = evidence.as_object().expect("evidence of tables").iter();
    tables
        .filter(|(name, _)| !name.starts_with("urutau_"))
        .map(|(name, said)| (name.clone(), said["commit"].to_string()))
        .collect()
}

#[test]
fn the_judge_needs_nothing_of_ours_and_notices_a_row_too_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let (changes, tables) = (root().join("examples/quickstart/changes.jsonl"), root().join(TABLES_OF_THE_QUICKSTART));
    let imitate = |name: &str, options: &[&str]| {
        let place = folder.path().join(name);
        let mut command = reader("imitate.py");
        command.arg("--warehouse").arg(&place).args(["--namespace", "shop"]);
        command.arg("--changes").arg(&changes).arg("--tables").arg(&tables).args(options);
        Process::start(command).wait().expect_code(0);
        place
    };
    judge(&imitate("right", &[]), &["--selftest"]).expect_code(0);
    judge(&imitate("key-twice", &["--spoil", "stock"]), &[])
        .expect_code(1)
        .expect_words(&["duckdb: stock: key ('CLO-0001', 1): twice", "pyiceberg: stock: key ('CLO-0001', 1): twice"]);
    judge(&imitate("row-twice", &["--spoil", "order_events"]), &[]).expect_code(1).expect_words(&[
        "duckdb: order_events: row (1, 70001, 'placed'",
        "): extra",
        "pyiceberg: order_events: row (1,",
    ]);
}

#[test]
fn the_released_binary_has_no_points_to_park_it_at() {
    let names = [
        "iceberg-data-written",
        "iceberg-vectors-written",
        "iceberg-metadata-written",
        "iceberg-swapped",
        "iceberg-record-stored",
    ];
    for name in names.into_iter().chain(["URUTAU_PARK_AT", "URUTAU_FAULT", "state-first", "fence-by-position"]) {
        let held = |binary: Binary| {
            let found = std::process::Command::new("grep").args(["-qaF", "-e", name]).arg(binary.path()).status();
            found.expect("grep starts").success()
        };
        assert!(
            held(Binary::Failpoints),
            "'{name}' is no longer in the build with failpoints: this test looks for the wrong name"
        );
        assert!(!held(Binary::Plain), "'{name}' is in the released binary");
    }
}
