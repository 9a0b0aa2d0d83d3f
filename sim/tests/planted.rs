//! Planted bugs: each wrong rule is found by the invariant that claims it, within its budget of seeds. What needs more luck than
//! that has a scenario of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel::planted::PlantedBug;
use sim::planted;

#[test]
fn every_planted_bug_is_found_by_the_invariant_that_claims_it() {
    let bugs: Vec<(PlantedBug, u64)> = PlantedBug::ALL.iter().filter_map(|b| Some((*b, planted::budget(*b)?))).collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((bug, seeds)) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = |seed| planted::run(seed, *bug).is_some_and(|v| v.rule == bug.invariant());
                    if !(0..*seeds).any(found) {
                        missed.lock().unwrap().push(format!("{} by {} in {seeds} seeds", bug.name(), bug.invariant()));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found within their budgets: {missed:#?}");
    assert!(bugs.len() >= 20, "{} bugs are found by chance", bugs.len());
}

#[test]
fn every_directed_bug_has_a_scenario() {
    let found = planted::scenarios().expect("the files are scenarios");
    for bug in planted::DIRECTED {
        assert!(found.contains_key(bug.name()), "no scenario finds {}", bug.name());
    }
}

#[test]
fn the_documents_keep_the_table_of_planted_bugs() {
    let page = include_str!("../../docs/simulation.md");
    let table = planted::table().expect("the files are scenarios");
    assert!(page.contains(&table), "docs/simulation.md has another table than `cargo run -p sim -- planted` prints:\n{table}");
}
