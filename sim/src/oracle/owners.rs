//! Several owners of a table: parts, attempts, indexes, and what a table with them holds. All of a commit is judged where it lands,
//! before it does.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{AttemptId, Incarnation, Version};

use super::Verdict;
use crate::owners::{Cut, Key, Kind, Row, Sink, State, Value};

pub use super::resources::rows_held_equal_rows_known;

/// A commit names artefacts that are there and were made in its own life.
pub fn one_attempt_counts(sink: &Sink, staged: &[AttemptId], incarnation: Incarnation) -> Verdict {
    if let Some(attempt) = staged.iter().find(|a| a.incarnation != incarnation) {
        return Err(format!("{attempt} of another life is named by life {incarnation}"));
    }
    match staged.iter().find(|a| !sink.staged.contains_key(a) && !sink.deleted.contains(a)) {
        Some(attempt) => Err(format!("{attempt} is named and was never written")),
        None => Ok(()),
    }
}

/// What a commit names was not deleted.
pub fn staged_kept_while_unknown(sink: &Sink, staged: &[AttemptId]) -> Verdict {
    match staged.iter().find(|a| sink.deleted.contains(a)) {
        Some(attempt) => Err(format!("{attempt} was deleted, and a commit names it")),
        None => Ok(()),
    }
}

/// And what a commit may have published is not deleted.
pub fn deleted_was_never_named(sink: &Sink, attempt: AttemptId) -> Verdict {
    if sink.published.contains(&attempt) || sink.unknown.contains(&attempt) {
        return Err(format!("{attempt} is deleted, and was named by a commit that landed or may have"));
    }
    Ok(())
}

/// Of one checkpoint each key is in one part.
pub fn one_owner_per_key(sink: &Sink, staged: &[AttemptId]) -> Verdict {
    let mut owners = BTreeMap::<Key, AttemptId>::new();
    for (attempt, artefact) in staged.iter().filter_map(|a| Some((a, sink.staged.get(a)?))) {
        let keys: BTreeSet<Key> = artefact.rows.iter().map(|row| row.key).collect();
        for key in keys {
            if let Some(other) = owners.insert(key, *attempt) {
                return Err(format!("key {key} is in {other} and in {attempt}"));
            }
        }
    }
    Ok(())
}

/// What the owners located is exactly where their keys are in the snapshot that the commit goes upon.
pub fn index_at_its_base(sink: &Sink, staged: &[AttemptId], deletions: &kernel::route::Deletions, truncate: bool) -> Verdict {
    if sink.kind != Kind::Located || truncate {
        return Ok(());
    }
    let keys = staged.iter().filter_map(|a| sink.staged.get(a)).flat_map(|s| &s.rows).map(|row| row.key).collect();
    let there = sink.places_of(&keys);
    let found: BTreeSet<_> = deletions.files().flat_map(|(file, rows)| rows.iter().map(|row| (file.clone(), *row))).collect();
    match there.symmetric_difference(&found).next() {
        Some(place) if there.contains(place) => Err(format!("the row at {place:?} is replaced and stays")),
        Some(place) => Err(format!("the row at {place:?} goes, and is not one of these keys' any more")),
        None => Ok(()),
    }
}

/// A staged artefact is in one durable commit at most.
pub fn staged_published_at_most_once(sink: &Sink, staged: &[AttemptId]) -> Verdict {
    match staged.iter().find(|a| sink.published.contains(a)) {
        Some(attempt) => Err(format!("{attempt} is visible already")),
        None => Ok(()),
    }
}

/// No table's cut moves back; where nothing compares, not within a life.
pub fn position_never_regresses(kind: Kind, before: Option<State>, after: State) -> Verdict {
    let Some(before) = before.filter(|b| kind != Kind::Versioned || b.incarnation == after.incarnation) else { return Ok(()) };
    if after.cut < before.cut { Err(format!("{:?} after {:?}", after.cut, before.cut)) } else { Ok(()) }
}

/// A staging sink holds exactly what the log up to the cut defines.
pub fn state_and_data_move_together(
    cut: Cut,
    mut seen: BTreeMap<Key, Vec<Value>>,
    mut expected: BTreeMap<Key, Vec<Value>>,
) -> Verdict {
    seen.values_mut().chain(expected.values_mut()).for_each(|values| values.sort_unstable());
    let keys: BTreeSet<Key> = seen.keys().chain(expected.keys()).copied().collect();
    match keys.into_iter().find(|key| seen.get(key) != expected.get(key)) {
        Some(key) => Err(format!("key {key} at {cut:?} is {:?}, and should be {:?}", seen.get(&key), expected.get(&key))),
        None => Ok(()),
    }
}

/// A sink that goes by versions may be ahead of its state, key by key, and never behind.
pub fn position_covers_only_durable(
    cut: Cut,
    seen: &BTreeMap<Key, Vec<Value>>,
    mut may_be: impl FnMut(Key) -> BTreeSet<Option<Value>>,
    keys: impl Iterator<Item = Key>,
) -> Verdict {
    for key in keys {
        let value = seen.get(&key).and_then(|values| values.first()).copied();
        let may = may_be(key);
        if !may.contains(&value) {
            return Err(format!("key {key} at {cut:?} is {value:?}, and may be {may:?}"));
        }
    }
    Ok(())
}

/// A version is given to one row, and what is written under it is that row.
pub fn a_version_names_one_row(given: &BTreeMap<Version, Row>, row: &Row) -> Verdict {
    match given.get(&row.version) {
        Some(known) if known == row => Ok(()),
        Some(known) => Err(format!("{:?} was given to {known:?}, and is of {row:?}", row.version)),
        None => Err(format!("{:?} of {row:?} was given to nobody", row.version)),
    }
}

/// Once nothing is on its way no worker holds rows: nobody would ever tell it to forget them.
pub fn nothing_is_held_at_rest(worker: u64, held: &BTreeSet<AttemptId>) -> Verdict {
    match held.first() {
        Some(attempt) => Err(format!("worker {worker} holds rows of {attempt}, which nobody knows")),
        None => Ok(()),
    }
}
