//! Starting and positions.

use std::collections::{BTreeMap, BTreeSet};

use kernel::config::{Join, OnTruncate};
use kernel::id::Incarnation;
use kernel::position::{Cut, LogIdentity, Position, Transaction};
use kernel::state::TableState;

use super::durability::{Smeared, contains};
use super::{Verdict, View};
use crate::history::{Contents, Key, Kind, Place, RowImage, Tab, holds_place};

/// A table that is not called lost lacks nothing that can no longer be streamed.
pub fn start_within_streamable(view: &View<'_>, state: Option<&TableState>, floor: &Position, lost: bool) -> Verdict {
    match view.lacks(state, floor) {
        Some(place) if !lost => {
            Err(format!("the log begins at {floor}, stored is {:?}: {} is lost silently", state.map(|s| &s.cut), view.say(place)))
        }
        _ => Ok(()),
    }
}

/// A table that is called lost lacks something. Said falsely it costs a snapshot; only a purge and a foreign hand excuse it.
pub fn lost_is_true(view: &View<'_>, state: Option<&TableState>, floor: &Position, excused: bool) -> Verdict {
    if excused || view.lacks(state, floor).is_some() {
        return Ok(());
    }
    Err(format!(
        "{} is called lost at {:?}, the log begins at {floor}: it lacks nothing",
        view.history.tables[view.table],
        state.map(|s| &s.cut)
    ))
}

/// A position of another history is refused.
pub fn same_log_identity(state: &LogIdentity, log: &LogIdentity) -> Verdict {
    match state.differs_from(log) {
        Some(difference) => Err(format!("{difference:?}")),
        None => Ok(()),
    }
}

/// No stored position is beyond the end of the log.
pub fn never_ahead_of_source(position: &Position, end: &Position) -> Verdict {
    if contains(end, position) { Ok(()) } else { Err(format!("{position} is stored, the log ends at {end}")) }
}

/// Nobody reads on whose table has rows of a transaction that the log did not have when it was opened.
pub fn no_part_is_ahead(table: &str, cut: &Cut, end: &Position) -> Verdict {
    let has = |t: &Transaction| holds_place(end.intervals_of(&t.stream), t.at.0);
    match cut.within().keys().find(|transaction| !has(transaction)) {
        Some(part) => Err(format!("{table} has a part of {part:?}, the log ended at {end}, and it is read on")),
        None => Ok(()),
    }
}

/// Two changes of one key of a table that is kept by key come in the same order in every reading: in that of the source.
pub fn key_order_is_one(last: &mut BTreeMap<(Tab, Key), Place>, table: Tab, rows: &[RowImage]) -> Verdict {
    for row in rows {
        let before = last.insert((table, row.key), row.place);
        if let Some(before) = before.filter(|before| *before > row.place) {
            return Err(format!("t{table} key {}: {before:?} came before {:?}", row.key, row.place));
        }
    }
    Ok(())
}

/// A row at or below a table's cut changes nothing; of a commit each row lies above the cut that it follows.
pub fn covered_row_has_no_effect(view: &View<'_>, before: Option<&TableState>, rows: &[RowImage], smeared: &Smeared) -> Verdict {
    let covered = view.covered(before);
    // A row of a chunk is not the log's.
    let rows = rows.iter().filter(|row| row.chunk.is_none());
    let again = |row: &&RowImage| covered.covers(view.history, row.place) && !smeared.contains_key(&row.place.tx);
    if let Some(row) = rows.clone().find(again) {
        return Err(format!("{} is written again; covered was {:?}", view.say(row.place), before.map(|s| &s.cut)));
    }
    let mut seen = BTreeSet::new();
    match rows.clone().find(|row| !smeared.contains_key(&row.place.tx) && !seen.insert(**row)) {
        Some(row) => Err(format!("{} is in one commit twice", view.say(row.place))),
        None => Ok(()),
    }
}

/// And none above it is skipped: a commit brings every row between the cut that it follows and its own. This is
/// *position-covers-only-durable*, found before a reader could see it.
pub fn no_row_is_skipped(
    view: &View<'_>,
    before: Option<&TableState>,
    after: &TableState,
    rows: &[RowImage],
    smeared: &Smeared,
) -> Verdict {
    // A TRUNCATE in a transaction that is read again has emptied what came before it, and will again.
    let truncated = |place: &Place| view.history.change(*place).kind == Kind::Truncated;
    if smeared.values().flatten().any(truncated) {
        return Ok(());
    }
    let brought: BTreeSet<Place> = rows.iter().filter(|row| row.chunk.is_none()).map(|row| row.place).collect();
    let (now, then) = (view.covered(Some(after)), view.covered(before));
    let is_owed = |place: &Place| now.covers(view.history, *place) && !then.covers(view.history, *place);
    let owed: Vec<Place> = view.needed().filter(is_owed).collect();
    // What a TRUNCATE empties need not come.
    let empties = view.plan.on_truncate == OnTruncate::Propagate;
    let emptied = owed.iter().rposition(|p| empties && view.history.change(*p).kind == Kind::Truncated);
    let from = emptied.map_or(0, |at| at + 1);
    let is_row = |place: &&Place| !view.history.change(**place).rows(**place).is_empty();
    match owed[from..].iter().filter(is_row).find(|place| !brought.contains(place)) {
        Some(place) => Err(format!("{:?} at {:?} covers {}, which no commit brought", after.commit, after.cut, view.say(*place))),
        None => Ok(()),
    }
}

/// An older life's commit does not come upon a newer one's.
pub fn stale_incarnation_has_no_effect(found: Incarnation, wrote: Incarnation) -> Verdict {
    if wrote >= found { Ok(()) } else { Err(format!("life {wrote} writes over life {found}")) }
}

/// No two processes live the same life.
pub fn one_process_per_incarnation(incarnation: Incarnation, process: usize, first: usize) -> Verdict {
    if process == first { Ok(()) } else { Err(format!("processes {first} and {process} both live life {incarnation}")) }
}

/// Older lives' files go only after a commit of the life that deletes them.
pub fn only_current_incarnation_deletes(life: Incarnation, committed: &BTreeSet<Incarnation>) -> Verdict {
    if committed.contains(&life) { Ok(()) } else { Err(format!("life {life} deletes, and has committed nothing here")) }
}

/// A table's first state begins where its configuration says: at the beginning, or where the log ended when a life opened it;
/// what lies between there and its base is nothing of the table's.
pub fn join_has_a_base(view: &View<'_>, state: &TableState, ends_told: &[Position]) -> Verdict {
    let name = &view.history.tables[view.table];
    let passed_over = |from: &Position| View { base: Some(from), ..*view }.lacks(None, &state.base);
    match view.plan.join {
        Join::Now if ends_told.iter().any(|end| contains(&state.base, end) && passed_over(end).is_none()) => Ok(()),
        Join::Now => Err(format!("{name} begins at {}, which is not where a log ended", state.base)),
        Join::Snapshot => Err(format!("{name} begins at {:?} without a snapshot", state.cut)),
        Join::Beginning => match passed_over(&Position::START) {
            Some(place) => Err(format!("{name} begins at {}, above {}", state.base, view.say(place))),
            None => Ok(()),
        },
    }
}

/// A table goes on only from a state that belongs to it: one that the record calls in need of a snapshot does not.
pub fn goes_on_from_its_own_state(released: bool, before: Option<&TableState>, after: &TableState) -> Verdict {
    // A claim keeps the commit id of an older life.
    let ours = after.commit.number > 0 && after.commit.incarnation == after.incarnation;
    let data = ours && before.is_none_or(|b| b.commit != after.commit);
    if released && data {
        Err(format!("{:?} is committed though the record says that a snapshot is needed", after.commit))
    } else {
        Ok(())
    }
}

/// A life that begins when everything is at rest changes nothing.
pub fn recovery_is_a_projection(
    table: &str,
    before: (&Option<TableState>, &Contents),
    after: (&Option<TableState>, &Contents),
) -> Verdict {
    let data = |s: &Option<TableState>| s.as_ref().map(|s| (s.cut.clone(), s.commit));
    if data(before.0) == data(after.0) && before.1 == after.1 {
        return Ok(());
    }
    Err(format!("{table} was at {:?}, a new life made it {:?}", data(before.0), data(after.0)))
}

/// The rows of a commit have one schema, the one that its state names; before the first change the one at the table's base.
/// Not judged of a transaction that is read again from its beginning, since another server numbers its rows otherwise: its older
/// rows come behind its change of schema then.
pub fn schema_before_its_rows(view: &View<'_>, state: &TableState, rows: &[RowImage], smeared: &Smeared) -> Verdict {
    let before_base = |place: &&Place| view.base.is_some_and(|base| view.history.holds(base, place.tx));
    let at_base =
        view.history.of_table[view.table].iter().filter(before_base).map(|p| view.history.change(*p).schema).next_back();
    let of = |name: &str| name.strip_prefix('s').and_then(|s| s.parse().ok());
    let named = state.schema.as_deref().and_then(of).or(at_base).unwrap_or(0);
    match rows.iter().find(|row| row.schema != named && !smeared.contains_key(&row.place.tx)) {
        Some(row) => Err(format!("{:?} has schema {named}, a row of it {}", state.commit, row.schema)),
        None => Ok(()),
    }
}
