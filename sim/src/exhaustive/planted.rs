//! Wrong rules that the search finds, in which world and after how many states: how it is known that it would find others.

use std::fmt::Write;

use kernel::planted::PlantedBug;

use super::{Small, search, worlds};
use crate::oracle::Violation;

/// A wrong rule, the world of the bound `small` in which it is found, by which invariant, and states that it may take at most.
#[derive(Clone, Copy, Debug)]
pub struct Finds {
    /// The wrong rule.
    pub bug: PlantedBug,
    /// The number of the world.
    pub world: usize,
    /// What finds it first.
    pub invariant: &'static str,
    /// States at most. How many it takes changes with the kernel; these are about twice as many as when it was written.
    pub states_max: usize,
}

const fn finds(bug: PlantedBug, world: usize, invariant: &'static str, states_max: usize) -> Finds {
    Finds { bug, world, invariant, states_max }
}

/// What is found in the worlds of the tests. What is not here needs what they do not have: see the page.
pub const FOUND: &[Finds] = &[
    finds(PlantedBug::AcknowledgesBeforeRecord, 0, "quiet-before-acknowledged", 300),
    finds(PlantedBug::AcknowledgesReceived, 0, "position-covers-only-durable", 400),
    finds(PlantedBug::AcknowledgesTooMuch, 0, "acknowledged-within-received", 500),
    finds(PlantedBug::BatchNotReleased, 0, "budget-conserved", 200),
    finds(PlantedBug::BudgetReleasedTwice, 0, "budget-conserved", 200),
    finds(PlantedBug::SkipsFirstRow, 0, "position-covers-only-durable", 300),
    finds(PlantedBug::TwoCommitsInFlight, 0, "commit-in-order-per-table", 400),
    finds(PlantedBug::UptoAtFirstEvent, 0, "position-covers-only-durable", 300),
    finds(PlantedBug::DiscardsAtStart, 2, "only-current-incarnation-deletes", 200),
    finds(PlantedBug::ReaddedTableTrusted, 2, "join-has-a-base", 400),
    finds(PlantedBug::StateBeforeData, 3, "position-covers-only-durable", 500),
    finds(PlantedBug::VersionWithoutIncarnation, 3, "position-covers-only-durable", 700),
    finds(PlantedBug::UnknownDropsStaged, 4, "staged-kept-while-unknown", 500),
    finds(PlantedBug::UnknownRetriedUnderNewId, 4, "staged-kept-while-unknown", 1_000),
    finds(PlantedBug::RecordListsIdleOnly, 6, "position-covers-only-durable", 300),
    finds(PlantedBug::GenerationBeginsWithData, 8, "generation-begins-durably", 600),
    finds(PlantedBug::TruncateForgottenByChunks, 8, "truncate-empties-open-chunks", 900),
    finds(PlantedBug::DoubtEmptyAtJoin, 9, "visible-decides", 1_300),
    finds(PlantedBug::ReleasedBeforeFence, 9, "state-and-data-move-together", 2_600),
    finds(PlantedBug::WatermarkByPosition, 9, "visible-decides", 900),
    finds(PlantedBug::OldKeyForgotten, 11, "touched-keys-complete-and-bounded", 900),
    finds(PlantedBug::LastRangeForgotten, 15, "snapshot-complete-means-every-range-durable", 900),
];

/// As the documents keep it.
pub fn table() -> String {
    let worlds = worlds("small").unwrap_or_default();
    let mut table = String::from("| planted bug | world | found by | states at most |\n|---|---|---|---|\n");
    for found in FOUND {
        let world = worlds.get(found.world).map_or("", |world| world.name.as_str());
        let _ = writeln!(table, "| {} | {world} | {} | {} |", found.bug.name(), found.invariant, found.states_max);
    }
    table
}

/// In which world a wrong rule is found first, and after how many states; each world is searched so far at most.
pub fn measure(bug: PlantedBug, worlds: &[Small], states_max: usize) -> Option<(usize, usize, Violation)> {
    worlds.iter().enumerate().find_map(|(number, small)| {
        let found = search(small, Some(bug), states_max).ok()?;
        found.violation.map(|(violation, _)| (number, found.states, violation))
    })
}
