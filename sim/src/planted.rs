//! How planted bugs are found: by chance within a budget of seeds, or in a written scenario, or both.

use std::collections::BTreeMap;
use std::fmt::Write;

use kernel::planted::PlantedBug;

use crate::oracle::Violation;
use crate::{engine, files, owners};

/// Found in directed scenarios only: chance meets them once in thousands of seeds, or less.
pub const DIRECTED: &[PlantedBug] = &[
    PlantedBug::AcknowledgesByOwnCuts,
    PlantedBug::DividedLeavesDoubtWhenSeen,
    PlantedBug::HaltUndoesRelease,
    PlantedBug::KeyOrderNotAsked,
    PlantedBug::LearnsNothingFromRecord,
    PlantedBug::LineageByNumber,
    PlantedBug::LostByLastNumber,
    PlantedBug::NeitherHelloNorTimer,
    PlantedBug::NoClaim,
    PlantedBug::PartOfLostUnnoticed,
    PlantedBug::ReconnectWithoutValidation,
    PlantedBug::RetryWithoutValidation,
    PlantedBug::ShorterLogUnnoticed,
    PlantedBug::SilenceIgnored,
    PlantedBug::SweepByStaleLife,
];

/// Wrong rules of several owners of a table, which are played in the world of `owners`.
pub const OF_OWNERS: &[PlantedBug] = &[
    PlantedBug::AbandonNotSaid,
    PlantedBug::AttemptReusedAfterTruncate,
    PlantedBug::CommitWithoutOwner,
    PlantedBug::DeadAttemptsPublished,
    PlantedBug::GivenUpWhileUnknown,
    PlantedBug::IndexBeforeDurable,
    PlantedBug::IndexBoundToHead,
    PlantedBug::IndexGoesOnBlindly,
    PlantedBug::IndexIgnoresLayout,
    PlantedBug::LateMessagesTaken,
    PlantedBug::LayoutFlipsInside,
    PlantedBug::MoveKeepsSent,
    PlantedBug::NeitherHelloNorTimer,
    PlantedBug::NotLocatedAgain,
    PlantedBug::OldAttemptAccepted,
    PlantedBug::OnePartLocatedAgain,
    PlantedBug::OneVectorPerOwner,
    PlantedBug::PartNeverMoves,
    PlantedBug::PartReleasedTwice,
    PlantedBug::PartsOutliveSessions,
    PlantedBug::SentPartAttemptedAgain,
    PlantedBug::SilenceIgnored,
    PlantedBug::VersionByWorker,
    PlantedBug::WorkerCleansUp,
];

/// What a seed finds of a bug, in the world that plays it.
pub fn run(seed: u64, bug: PlantedBug) -> Option<Violation> {
    match OF_OWNERS.contains(&bug) {
        true => owners::run(seed, Some(bug), false).violation,
        false => engine::run(seed, Some(bug), false).violation,
    }
}

/// How many seeds, from 0 on, a bug may need; none for a directed one. Most need a handful.
pub fn budget(bug: PlantedBug) -> Option<u64> {
    match bug {
        bug if DIRECTED.contains(&bug) => None,
        PlantedBug::AheadClamped | PlantedBug::LostOnlyIfBelow | PlantedBug::StatesBeforeIncarnation => Some(600),
        PlantedBug::AcknowledgedOnlyOnce | PlantedBug::DoubtNotStored | PlantedBug::UnknownTakeTrusted => Some(600),
        PlantedBug::RereadProvesFirst | PlantedBug::IndexBoundToHead | PlantedBug::PartNeverMoves => Some(600),
        PlantedBug::MinimumInsteadOfMeet => Some(300),
        _ => Some(120),
    }
}

/// The scenario files, and the stories of `owners`, that find each bug.
pub fn scenarios() -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut finders = BTreeMap::<String, Vec<String>>::new();
    for path in files::paths("scenarios").iter().chain(&files::paths("regressions")) {
        for finds in files::read(path)?.1.finds {
            finders.entry(finds.bug).or_default().push(files::name(path));
        }
    }
    for told in owners::stories() {
        for bug in &told.finds {
            finders.entry(bug.name().to_string()).or_default().push(told.name.to_string());
        }
    }
    Ok(finders)
}

/// What finds each planted bug, as the documents keep it. Which seed is the first changes with every change of the code; that
/// there is one below the bound does not, and is tested.
pub fn table() -> Result<String, String> {
    let finders = scenarios()?;
    let mut table =
        String::from("| planted bug | invariant that finds it | seeds at most (pure) | scenarios |\n|---|---|---|---|\n");
    for bug in PlantedBug::ALL {
        let seeds = budget(*bug).map_or("-".to_string(), |seeds| seeds.to_string());
        let files = finders.get(bug.name()).map_or(String::new(), |files| files.join(", "));
        let _ = writeln!(table, "| {} | {} | {seeds} | {files} |", bug.name(), bug.invariant());
    }
    Ok(table)
}
