//! The written scenarios and the regressions: each is clean by the rules, all that it speaks of happens, and the wrong rule that it
//! is about is found in it by the invariant that claims it.

use fault_scenarios::{Scenario, Step};
use kernel::planted::PlantedBug;
use sim::{engine, files};

/// Plays a file once by the rules, and once with each wrong rule that it names. What is wrong with it.
fn play(path: &std::path::Path) -> Vec<String> {
    let name = files::name(path);
    let (text, scenario) = match files::read(path) {
        Ok(read) => read,
        Err(why) => return vec![why],
    };
    let mut wrong = vec![];
    if scenario.to_string() != text {
        wrong.push(format!("{name} is not in its one form: cargo run -p sim -- format"));
    }
    if scenario.about.is_empty() {
        wrong.push(format!("{name} does not say what it is about"));
    }
    let report = engine::play(&scenario, None, false);
    if let Some(violation) = &report.violation {
        wrong.push(format!("{name}: by the rules nothing may break, and {violation}"));
    }
    for step in missing(&scenario, &report.steps) {
        wrong.push(format!("{name}: it never comes to '{}: {}'", step.when, step.then));
    }
    for mark in scenario.reaches.iter().filter(|mark| !report.marks.contains_key(mark.as_str())) {
        wrong.push(format!("{name}: '{mark}' is not reached"));
    }
    for finds in &scenario.finds {
        let Some(bug) = PlantedBug::ALL.iter().find(|b| b.name() == finds.bug) else {
            wrong.push(format!("{name}: there is no planted bug '{}'", finds.bug));
            continue;
        };
        if bug.invariant() != finds.invariant {
            wrong.push(format!("{name}: {} is claimed by {}", finds.bug, bug.invariant()));
        }
        match engine::play(&scenario, Some(*bug), false).violation {
            None => wrong.push(format!("{name}: {} is not found", finds.bug)),
            Some(violation) if violation.rule != finds.invariant => {
                wrong.push(format!("{name}: {} is found by {violation}", finds.bug));
            }
            Some(_) => {}
        }
    }
    wrong
}

/// Steps of a scenario that never happened.
fn missing<'a>(scenario: &'a Scenario, happened: &[Step]) -> Vec<&'a Step> {
    let happens = |step: &&Step| !happened.iter().any(|h| h.when == step.when && h.then == step.then);
    scenario.steps.iter().filter(happens).collect()
}

#[track_caller]
fn play_all(folder: &str) -> usize {
    let paths = files::paths(folder);
    let wrong: Vec<String> = paths.iter().flat_map(|path| play(path)).collect();
    assert!(wrong.is_empty(), "{}\nshow one with: cargo run -p sim -- replay FILE [--bug NAME]", wrong.join("\n"));
    paths.len()
}

#[test]
fn written_scenarios_are_clean_and_find_what_they_are_about() {
    assert!(play_all("scenarios") >= 40);
}

#[test]
fn regressions_stay_clean() {
    play_all("regressions");
}
