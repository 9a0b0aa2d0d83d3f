//! Every run of tiny worlds: by the rules none breaks anything, and each search ends. Wrong rules are found in them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sim::exhaustive::planted::{FOUND, table};
use sim::exhaustive::{STATES_MAX, Small, search, worlds};

fn small() -> Vec<Small> {
    worlds("small").expect("there is such a bound")
}

/// Does each of so many things, on all cores, and gives what is wrong with them.
fn wrong_of(things: usize, wrong: impl Fn(usize) -> Option<String> + Sync) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let thing = next.fetch_add(1, Ordering::Relaxed);
                    if thing >= things {
                        break;
                    }
                    found.lock().unwrap().extend(wrong(thing));
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// A search that does not end proves nothing: it fails here like a broken rule.
#[test]
fn no_run_of_a_tiny_world_breaks_a_rule_and_every_search_ends() {
    let small = small();
    assert!(small.len() >= 10, "{} worlds", small.len());
    // The largest ones first: they are the last of the list.
    let wrong = wrong_of(small.len(), |number| {
        let small = &small[small.len() - 1 - number];
        let found = match search(small, None, STATES_MAX) {
            Ok(found) => found,
            Err(unfinished) => return Some(format!("{}: {unfinished}", small.name)),
        };
        match found.violation {
            Some((violation, way)) => Some(format!("{}: {violation}\n{}", small.name, way.join("\n"))),
            // A world in which nothing happens has a handful.
            None => (found.states < 1_000).then(|| format!("{}: {} states", small.name, found.states)),
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_search_that_hits_its_bound_is_no_proof() {
    let unfinished = search(&small()[0], None, 10).expect_err("there are more states than ten");
    assert_eq!(unfinished.to_string(), "more than 10 states: nothing is proven");
}

#[test]
fn wrong_rules_are_found_within_their_bounds() {
    let small = small();
    let wrong = wrong_of(FOUND.len(), |number| {
        let finds = FOUND[number];
        let missed = |what: String| Some(format!("{} in '{}': {what}", finds.bug.name(), small[finds.world].name));
        match search(&small[finds.world], Some(finds.bug), finds.states_max) {
            Err(unfinished) => missed(unfinished.to_string()),
            Ok(found) => match found.violation {
                None => missed("nothing is found".into()),
                Some((violation, _)) if violation.rule != finds.invariant => missed(format!("found by {}", violation.rule)),
                Some(_) => None,
            },
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(FOUND.len() >= 20, "{} are found", FOUND.len());
}

#[test]
fn a_way_to_a_broken_rule_is_told_from_the_beginning() {
    let finds = FOUND.iter().find(|f| f.bug == kernel::planted::PlantedBug::AcknowledgesReceived).expect("it is in the list");
    let found = search(&small()[finds.world], Some(finds.bug), finds.states_max).expect("it is found before the bound");
    let (_, way) = found.violation.expect("it is found");
    assert!(way.iter().any(|line| line.ends_with("lets the source forget '4'")), "{}", way.join("\n"));
}

#[test]
fn the_documents_keep_the_table_of_what_the_search_finds() {
    let page = include_str!("../../docs/simulation.md");
    assert!(
        page.contains(&table()),
        "docs/simulation.md has another table than `cargo run -p sim -- exhaust --planted` prints:\n{}",
        table()
    );
}
