//! Shrinking is proven by planted bugs: what is left is small, is broken by the same invariant, and is clean without the bug.

use std::sync::Mutex;

use kernel::planted::PlantedBug;
use sim::{engine, shrink};

/// Bugs, and how large what is left of a run that finds them may be: lines that a person has to read.
const SMALL: &[(PlantedBug, usize)] = &[
    (PlantedBug::StateBeforeData, 4),
    (PlantedBug::UnknownDropsStaged, 6),
    (PlantedBug::StallNeverEnds, 14),
    (PlantedBug::RecordNamesNewest, 14),
    (PlantedBug::ReaddedTableTrusted, 4),
    (PlantedBug::AcknowledgesBeforeRecord, 4),
];

#[test]
fn what_is_left_of_a_failing_run_is_small_and_fails_by_the_same_rule() {
    let (next, wrong) = (Mutex::new(SMALL.iter()), Mutex::new(vec![]));
    let take = || next.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((bug, most)) = take() {
                    wrong.lock().unwrap().extend(shrunk(*bug, *most).err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn shrunk(bug: PlantedBug, most: usize) -> Result<(), String> {
    let found = |seed: &u64| engine::run(*seed, Some(bug), false).violation.is_some_and(|v| v.rule == bug.invariant());
    let seed = (0..200).find(found).ok_or_else(|| format!("{} is not found", bug.name()))?;
    let story = engine::story_of(seed, &engine::run(seed, Some(bug), false));
    let shrunk = shrink::shrink(&story, Some(bug), bug.invariant(), 4_000);
    let (size, text) = (shrunk.scenario.size(), shrunk.scenario.to_string());
    let whole = format!("{} from {} to {size} in {} tries:\n{text}", bug.name(), story.size(), shrunk.tries);
    if size > most {
        return Err(format!("more than {most} lines are left of {whole}"));
    }
    // The text is what is kept, so it must be what fails.
    let kept = text.parse().map_err(|e| format!("{e} in {whole}"))?;
    match engine::play(&kept, Some(bug), false).violation {
        Some(violation) if violation.rule == bug.invariant() => {}
        other => return Err(format!("{other:?} is found in what is left of {whole}")),
    }
    match engine::play(&kept, None, false).violation {
        Some(violation) => Err(format!("without the bug, {violation} in what is left of {whole}")),
        None => Ok(()),
    }
}
