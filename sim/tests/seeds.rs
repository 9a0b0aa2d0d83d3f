//! Thousands of seeds by the rules: nothing breaks, and every rare path is taken. `SIM_SEED=N cargo test -p sim --test seeds --
//! --nocapture` runs that one alone and tells what happens in it.

#![expect(clippy::print_stdout, reason = "one run is told where somebody asks for it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::engine::{self, Report};
use sim::files;
use sim::marks::{COORDINATOR, WORLD};

const BASE: u64 = 1_000_000;
const SEEDS: u64 = 5_000;

/// Paths that chance takes about once in thousands of seeds, so that these need not meet them. Each is taken in a scenario.
const RARE: &[&str] = &["learned-from-record", "record-ahead", "refused-for-key-order", "validation-retried"];

#[test]
fn thousands_of_seeds_keep_every_rule_and_take_every_rare_path() {
    if let Ok(seed) = std::env::var("SIM_SEED") {
        return tell(seed.parse().expect("SIM_SEED is a number"));
    }
    let reports = run(BASE..BASE + SEEDS);
    let broken: Vec<String> =
        reports.iter().filter_map(|(seed, r)| Some(format!("seed {seed}: {}", r.violation.as_ref()?))).collect();
    assert!(broken.is_empty(), "{}\nshow one with: cargo run -p sim -- replay --seed N", broken.join("\n"));

    let mut marks = BTreeMap::<&str, u64>::new();
    for (mark, times) in reports.values().flat_map(|r| &r.marks) {
        *marks.entry(mark).or_default() += times;
    }
    let known = || COORDINATOR.iter().chain(WORLD);
    let missed: Vec<_> =
        known().filter(|mark| !RARE.contains(mark)).filter(|mark| marks.get(**mark).is_none_or(|times| *times == 0)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
    let unknown: Vec<_> = marks.keys().filter(|mark| !known().any(|k| k == *mark)).collect();
    assert!(unknown.is_empty(), "reached, and not in the list of marks: {unknown:?}");

    // A run in which nothing is copied any more proves little.
    let (members, given_up) = reports.values().fold((0, 0), |sum, r| (sum.0 + r.tables.0, sum.1 + r.tables.1));
    assert!(given_up * 3 < members, "{given_up} of {members} tables needed a snapshot at the end");
}

#[test]
fn every_rare_path_is_taken_in_a_scenario() {
    let reached: BTreeSet<String> =
        files::paths("scenarios").iter().flat_map(|p| files::read(p).expect("it is a scenario").1.reaches).collect();
    for mark in RARE {
        assert!(reached.contains(*mark), "no scenario reaches {mark}");
    }
}

/// Runs one seed and tells it.
fn tell(seed: u64) {
    let story = engine::story_of(seed, &engine::run(seed, None, false));
    let report = engine::tell(&story, None);
    println!("{}", report.trace.join("\n"));
    assert_eq!(report.violation, None, "seed {seed}");
}

/// Runs seeds on all cores.
fn run(seeds: std::ops::Range<u64>) -> BTreeMap<u64, Report> {
    let (next, reports) = (AtomicU64::new(seeds.start), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let report = engine::run(seed, None, false);
                    reports.lock().unwrap().insert(seed, report);
                }
            });
        }
    });
    reports.into_inner().unwrap()
}
