//! How planted bugs are found: by chance within a budget of seeds, or in a written scenario, or both.

use std::collections::BTreeMap;
use std::fmt::Write;

use kernel::planted::PlantedBug;

use crate::files;

/// Found in directed scenarios only: chance meets them once in thousands of seeds, or less.
pub const DIRECTED: &[PlantedBug] = &[
    PlantedBug::AcknowledgesByOwnCuts,
    PlantedBug::DividedLeavesDoubtWhenSeen,
    PlantedBug::HaltUndoesRelease,
    PlantedBug::KeyOrderNotAsked,
    PlantedBug::LearnsNothingFromRecord,
    PlantedBug::LineageByNumber,
    PlantedBug::LostByLastNumber,
    PlantedBug::NoClaim,
    PlantedBug::PartOfLostUnnoticed,
    PlantedBug::ReconnectWithoutValidation,
    PlantedBug::RetryWithoutValidation,
    PlantedBug::ShorterLogUnnoticed,
    PlantedBug::SweepByStaleLife,
];

/// How many seeds, from 0 on, a bug may need; none for a directed one. Most need a handful.
pub fn budget(bug: PlantedBug) -> Option<u64> {
    match bug {
        bug if DIRECTED.contains(&bug) => None,
        PlantedBug::AheadClamped | PlantedBug::LostOnlyIfBelow | PlantedBug::StatesBeforeIncarnation => Some(600),
        PlantedBug::AcknowledgedOnlyOnce | PlantedBug::DoubtNotStored | PlantedBug::UnknownTakeTrusted => Some(600),
        PlantedBug::RereadProvesFirst => Some(600),
        PlantedBug::MinimumInsteadOfMeet => Some(300),
        _ => Some(120),
    }
}

/// The scenario files that find each bug.
pub fn scenarios() -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut finders = BTreeMap::<String, Vec<String>>::new();
    for path in files::paths("scenarios").iter().chain(&files::paths("regressions")) {
        for finds in files::read(path)?.1.finds {
            finders.entry(finds.bug).or_default().push(files::name(path));
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
