//! Several owners of a table: seeds by the rules take every rare path and break nothing; the stories that are told find what they are
//! about; and a seed is one run.

use std::collections::BTreeMap;
use std::process::Command;

use sim::marks::{OWNERS, WORLD_OF_OWNERS};
use sim::owners::{self, Change, Kind, Limits, Report, Story};

const BASE: u64 = 3_000_000;
const SEEDS: u64 = 600;

/// Paths that chance takes once in thousands of seeds, or that need a worker which sends what ours does not. Each has a test or
/// a script in the kernel.
const RARE: &[&str] = &["not-admitted-in-doubt", "older-life-refused", "written-again", "written-at-an-older-base"];

#[test]
fn seeds_keep_every_rule_and_take_every_rare_path() {
    let half = |from: u64| (from..from + SEEDS / 2).map(|seed| (seed, owners::run(seed, None, false))).collect::<Vec<_>>();
    let reports: Vec<(u64, Report)> = std::thread::scope(|scope| {
        let halves = [BASE, BASE + SEEDS / 2].map(|from| scope.spawn(move || half(from)));
        halves.into_iter().flat_map(|half| half.join().expect("no seed panics")).collect()
    });
    let broken: Vec<String> =
        reports.iter().filter_map(|(seed, r)| Some(format!("seed {seed}: {}", r.violation.as_ref()?))).collect();
    assert!(broken.is_empty(), "{}\nshow one with: cargo run -p sim -- owners --seed N", broken.join("\n"));

    let mut marks = BTreeMap::<&str, u64>::new();
    for (mark, times) in reports.iter().flat_map(|(_, r)| &r.marks) {
        *marks.entry(mark).or_default() += times;
    }
    let known = || OWNERS.iter().chain(WORLD_OF_OWNERS);
    let missed: Vec<_> = known().filter(|mark| !RARE.contains(mark) && !marks.contains_key(**mark)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
    let unknown: Vec<_> = marks.keys().filter(|mark| !known().any(|k| k == *mark)).collect();
    assert!(unknown.is_empty(), "reached, and not in the list of marks: {unknown:?}");
}

#[test]
fn told_stories_are_clean_and_find_what_they_are_about() {
    let mut wrong = vec![];
    for told in owners::stories() {
        let report = owners::play(&told.story, None, false);
        if let Some(violation) = &report.violation {
            wrong.push(format!("{}: {violation}", told.name));
        }
        let missed = told.reaches.iter().filter(|mark| !report.marks.contains_key(**mark));
        wrong.extend(missed.map(|mark| format!("{} does not reach {mark}", told.name)));
        for bug in &told.finds {
            match owners::play(&told.story, Some(*bug), false).violation {
                None => wrong.push(format!("{}: {} is not found", told.name, bug.name())),
                Some(violation) if violation.rule != bug.invariant() => {
                    wrong.push(format!("{}: {} is found by {violation}", told.name, bug.name()));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nshow one with: cargo run -p sim -- owners --story NAME [--bug NAME]", wrong.join("\n"));
}

#[test]
fn a_seed_gives_the_same_run_in_another_process() {
    let arguments = ["owners", "--seeds", "12", "--base", "7000", "--hashes"];
    let output = Command::new(env!("CARGO_BIN_EXE_sim")).args(arguments).output().expect("the simulator's program runs");
    let text = String::from_utf8(output.stdout).expect("it speaks text");
    let there: Vec<&str> = text.lines().take(12).collect();
    let line = |seed: u64| {
        let report = owners::run(seed, None, false);
        format!("{seed} {} {:016x}", report.inputs, report.hash)
    };
    let here: Vec<String> = (7000..7012).map(line).collect();
    assert_eq!(there, here);
}

#[test]
fn one_altered_value_gives_another_hash() {
    let story = |value| {
        let changes = [(0, Change::Row { old: None, key: 2, value: Some(value) })];
        Story::told(&[Kind::Located], Limits::default(), &[(20, &changes)], &[])
    };
    let (one, same, other) =
        (owners::play(&story(1), None, false), owners::play(&story(1), None, true), owners::play(&story(2), None, false));
    assert_eq!((one.hash, one.inputs), (same.hash, same.inputs));
    assert_ne!(one.hash, other.hash);
    assert_eq!(one.violation, None);
}
