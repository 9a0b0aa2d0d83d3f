//! Durability and acknowledging.

use std::collections::BTreeMap;

use kernel::id::StreamName;
use kernel::position::{Cut, Interval, Position};
use kernel::state::{Phase, PipelineState, TableRecord, TableState};

use super::{Verdict, View};
use crate::history::{Contents, History, Key, Place, Row, holds_place};

/// Changes that were visible under another server's numbering and are read again from their transaction's beginning: until
/// that transaction is whole, a key may show what they made of it (rule P2).
pub type Smeared = BTreeMap<usize, Vec<Place>>;

/// No stored position passes a row that is not durable: what is visible lacks nothing that the state covers.
pub fn position_covers_only_durable(view: &View<'_>, state: &TableState, visible: &Contents, smeared: &Smeared) -> Verdict {
    match mismatch(view, state, visible, smeared) {
        Some(Mismatch { ahead: false, dump }) => Err(dump),
        _ => Ok(()),
    }
}

/// Sinks that stage show exactly what the state covers; sinks idempotent by version may show more, never less.
pub fn state_and_data_move_together(view: &View<'_>, state: &TableState, visible: &Contents, smeared: &Smeared) -> Verdict {
    match mismatch(view, state, visible, smeared) {
        Some(Mismatch { ahead: true, dump }) if view.plan.staging => Err(dump),
        _ => Ok(()),
    }
}

struct Mismatch {
    /// Is what is seen a later state of the source?
    ahead: bool,
    dump: String,
}

fn mismatch(view: &View<'_>, state: &TableState, visible: &Contents, smeared: &Smeared) -> Option<Mismatch> {
    let all = view.covered(Some(state));
    let covered = |place| all.covers(view.history, place);
    let expected = view.fold(covered);
    if expected == *visible {
        return None;
    }
    let name = &view.history.tables[view.table];
    let keys: std::collections::BTreeSet<Key> = expected.rows.keys().chain(visible.rows.keys()).copied().collect();
    let mut ahead = None;
    for key in keys {
        let (is, should) = (visible.rows.get(&key).copied(), expected.rows.get(&key).copied());
        let read_again = |place: Place| smeared.get(&place.tx).is_some_and(|places| places.contains(&place));
        if is == should || view.values_of(key, read_again).contains(&is) || view.is_ahead(state, &all, key, is) {
            continue;
        }
        let dump = format!("{name} key {key} at {:?}: is {is:?}, should be {should:?}", state.cut);
        if !view.values_of(key, |place| !covered(place)).contains(&is) {
            return Some(Mismatch { ahead: false, dump });
        }
        ahead.get_or_insert(Mismatch { ahead: true, dump });
    }
    if let Some((row, count)) = expected.kept.iter().find(|(row, _)| !visible.kept.contains_key(row)) {
        // A TRUNCATE that is ahead of the state takes older rows along where data may be ahead.
        let emptied = |place: &Place| !covered(*place) && view.history.change(*place).kind == crate::history::Kind::Truncated;
        let dump = format!("{name} at {:?}: {} is there 0 times of {count}", state.cut, view.say(row.place));
        return Some(Mismatch { ahead: view.needed().any(|place| emptied(&place)), dump });
    }
    for (row, count) in &visible.kept {
        let should = expected.kept.get(row).copied().unwrap_or(0);
        let dump = format!("{name} at {:?}: {} is there {count} times of {should}", state.cut, view.say(row.place));
        match (covered(row.place), should) {
            // It was covered and should be gone, or it came twice.
            (true, should) if *count > should && view.plan.staging => return Some(Mismatch { ahead: false, dump }),
            (false, _) => {
                ahead.get_or_insert(Mismatch { ahead: true, dump });
            }
            _ => {}
        }
    }
    ahead
}

/// Nothing that is acknowledged lacks at the sink: the other half of *position-covers-only-durable*.
pub fn acknowledged_is_durable(view: &View<'_>, state: Option<&TableState>, acknowledged: &Position) -> Verdict {
    match view.lacks(state, acknowledged) {
        Some(place) => {
            Err(format!("acknowledged {acknowledged} passes {}, stored is {:?}", view.say(place), state.map(|s| &s.cut)))
        }
        None => Ok(()),
    }
}

/// No table's cut moves back, within a generation. Where nothing compares, not within an incarnation.
pub fn position_never_regresses(view: &View<'_>, before: &TableState, after: &TableState) -> Verdict {
    let judged = before.generation == after.generation && (view.plan.staging || before.incarnation == after.incarnation);
    let whole = contains(after.cut.upto(), before.cut.upto());
    let divided = before.identity.coordinates != after.identity.coordinates || covers_parts(&after.cut, &before.cut);
    if !judged || (whole && divided) {
        return Ok(());
    }
    Err(format!(
        "{} goes from {:?} ({:?}) back to {:?} ({:?})",
        view.history.tables[view.table], before.cut, before.commit, after.cut, after.commit
    ))
}

/// No acknowledgement moves back within a session.
pub fn acknowledgement_never_regresses(before: &Position, after: &Position) -> Verdict {
    if contains(after, before) { Ok(()) } else { Err(format!("acknowledged {after} after {before}")) }
}

/// The record's quiet position and incarnation never move back.
pub fn record_never_regresses(before: &PipelineState, after: &PipelineState) -> Verdict {
    if after.incarnation < before.incarnation {
        return Err(format!("life {} comes over life {}", after.incarnation, before.incarnation));
    }
    if contains(&after.quiet, &before.quiet) {
        Ok(())
    } else {
        Err(format!("quiet goes from {} back to {}", before.quiet, after.quiet))
    }
}

/// A table's checkpoints become visible in log order, one at a time: one commit of a life runs at once, and each is built upon
/// the one that it found.
pub fn commit_in_order_per_table(running: usize, before: Option<&TableState>, after: &TableState) -> Verdict {
    if running > 1 {
        return Err(format!("{:?} is one of {running} commits that run at once", after.commit));
    }
    let Some(before) = before.filter(|b| b.incarnation == after.incarnation) else { return Ok(()) };
    if after.commit > before.commit { Ok(()) } else { Err(format!("{:?} follows {:?}", after.commit, before.commit)) }
}

/// One commit holds one image or delete for a key.
pub fn one_image_per_key_per_commit(images: &[(Key, Option<Row>)]) -> Verdict {
    let mut seen = std::collections::BTreeSet::new();
    match images.iter().find(|(key, _)| !seen.insert(*key)) {
        Some((key, _)) => Err(format!("key {key} is in a commit twice")),
        None => Ok(()),
    }
}

/// The named commit, and every one built upon it, lacks nothing up to `quiet`.
pub fn record_claims_truth(view: &View<'_>, record: &PipelineState, entry: &TableRecord, states: &[&TableState]) -> Verdict {
    let Some(named) = entry.named else { return Ok(()) };
    let mut proven: Vec<&TableState> = vec![];
    for state in states.iter().filter(|s| s.commit == named || s.ancestors.contains(named)) {
        // One that covers what a proven one covers lacks nothing either.
        let covers = |p: &&TableState| {
            let same = p.identity.coordinates == state.identity.coordinates;
            same && contains(state.cut.upto(), p.cut.upto()) && covers_parts(&state.cut, &p.cut)
        };
        if proven.iter().any(covers) {
            continue;
        }
        proven.push(state);
        if let Some(place) = view.lacks(Some(state), &record.quiet) {
            let (commit, cut) = (state.commit, &state.cut);
            return Err(format!("quiet {} names {named:?}; {commit:?} at {cut:?} lacks {}", record.quiet, view.say(place)));
        }
    }
    Ok(())
}

/// Can a state be a table's again? At a sink that keeps its history, always: somebody may restore it. Where nothing compares, not one of
/// an older life once a newer life's state counts; only if it began where the present one did is it judged all the same, since what
/// lacks in it lacks there, too.
pub fn may_be_found_again(state: &TableState, now: &TableState, staging: bool) -> bool {
    staging || state.incarnation >= now.incarnation || state.base == now.base
}

/// Where one stream is all, the oldest commit of which the record's claim is true can be known: a later one must not be named,
/// since a table that is set back to the older one would be called lost. `remembered` are the commits that the life knows.
pub fn record_names_the_oldest(
    view: &View<'_>,
    record: &PipelineState,
    entry: &TableRecord,
    remembered: &[&TableState],
) -> Verdict {
    let Some(named) = entry.named else { return Ok(()) };
    let Some(at) = remembered.iter().position(|s| s.commit == named) else { return Ok(()) };
    match at.checked_sub(1).map(|older| remembered[older]) {
        Some(older) if view.lacks(Some(older), &record.quiet).is_none() => {
            Err(format!("quiet {} names {named:?}, though {:?} lacks nothing either", record.quiet, older.commit))
        }
        _ => Ok(()),
    }
}

/// Where a table's copy really stands: judged by the oracle's own reading of rule A2.
pub fn effective(record: Option<&PipelineState>, entry: Option<&TableRecord>, state: &TableState) -> Position {
    let named = entry.and_then(|e| e.named).is_some_and(|named| named == state.commit || state.ancestors.contains(named));
    match record {
        Some(record) if named => state.cut.upto().join(&record.quiet),
        _ => state.cut.upto().clone(),
    }
}

/// Whatever is written for a table, its effective cut stays or rises.
pub fn effective_cut_never_falls(before: &Position, after: &Position) -> Verdict {
    if contains(after, before) { Ok(()) } else { Err(format!("it stood at {before}, now at {after}")) }
}

/// A position claims no transaction of which a keepalive inside it was the only thing ever heard.
pub fn empty_transactions_do_not_confirm(claimed: &Position, told: &Position, told_inside: &[Position]) -> Verdict {
    for (stream, held) in claimed.intervals() {
        let known = told.intervals_of(stream);
        let untold: Vec<_> = held.iter().filter(|interval| !covers_interval(known, interval)).collect();
        let reaches = |end: &Interval| untold.iter().any(|i| i.to == end.to) && !covers_interval(known, end);
        let inside = !untold.is_empty() && told_inside.iter().flat_map(|k| k.intervals_of(stream)).any(reaches);
        if inside {
            return Err(format!("{claimed} relies on a keepalive inside a transaction; told was {told}"));
        }
    }
    Ok(())
}

/// Never beyond what the source sent.
pub fn acknowledged_within_received(acknowledged: &Position, end: &Position) -> Verdict {
    if contains(end, acknowledged) { Ok(()) } else { Err(format!("acknowledged {acknowledged}, the log ends at {end}")) }
}

/// What is acknowledged beyond what could not be streamed anyway is in a stored quiet position.
pub fn quiet_before_acknowledged(acknowledged: &Position, record: Option<&PipelineState>, floor: &Position) -> Verdict {
    let quiet = record.map(|r| r.quiet.clone()).unwrap_or_default();
    let known =
        |stream: &StreamName, at: u64| holds_place(quiet.intervals_of(stream), at) || holds_place(floor.intervals_of(stream), at);
    // Between two ends of what is known all places are alike.
    let mut places = acknowledged.intervals().flat_map(|(stream, held)| {
        let ends = quiet.intervals_of(stream).iter().chain(floor.intervals_of(stream)).map(|i| i.to.0);
        let places = held.iter().map(|i| i.from.0).chain(ends);
        places.filter(|at| holds_place(held, *at)).map(|at| (stream, at)).collect::<Vec<_>>()
    });
    match places.find(|(stream, at)| !known(stream, *at)) {
        Some((stream, at)) => Err(format!("acknowledged is {at} of '{stream}', stored quiet is {quiet}")),
        None => Ok(()),
    }
}

/// The acknowledgement passes a halted or paused table only after the record says that it needs a snapshot.
pub fn release_before_pass(view: &View<'_>, entry: &TableRecord, state: Option<&TableState>, acknowledged: &Position) -> Verdict {
    if !matches!(entry.phase, Phase::Halted | Phase::Paused) {
        return Ok(());
    }
    acknowledged_is_durable(view, state, acknowledged)
        .map_err(|dump| format!("{} and not released: {dump}", entry.phase.as_str()))
}

/// A stored position stands where transactions end, or between them; never inside one.
pub fn position_names_finished_transactions(history: &History, position: &Position) -> Verdict {
    let inside = |tx: &&crate::history::Tx| {
        let (held, own) = (position.intervals_of(&history.streams[tx.stream]), tx.interval());
        let touched = held.iter().any(|i| i.from < own.to && own.from < i.to);
        touched && !covers_interval(held, &own)
    };
    match history.transactions.iter().find(inside) {
        Some(tx) => {
            Err(format!("{position} stands inside the transaction that begins at {} of '{}'", tx.at, history.streams[tx.stream]))
        }
        None => Ok(()),
    }
}

/// Of a log of sets no position can stand inside a transaction. It names none of which nobody was told that it ended: `told` are ends and
/// keepalives, and where the log began and ended for those who did not read what was before.
pub fn position_names_ended_transactions(history: &History, position: &Position, told: &[&Position]) -> Verdict {
    let names = |tx: &usize| history.holds(position, *tx) && !told.iter().any(|told| history.holds(told, *tx));
    match (0..history.transactions.len()).filter(|_| history.sets).find(names) {
        Some(tx) => Err(format!("{position} has {:?}, and nobody was told that it ended", history.name(tx))),
        None => Ok(()),
    }
}

/// The same as the kernel's, written again.
pub fn contains(position: &Position, other: &Position) -> bool {
    other.intervals().all(|(stream, held)| held.iter().all(|i| covers_interval(position.intervals_of(stream), i)))
}

/// Intervals have something between them, so one alone can cover another.
fn covers_interval(held: &[Interval], other: &Interval) -> bool {
    held.iter().any(|interval| interval.from <= other.from && other.to <= interval.to)
}

fn covers_parts(cut: &Cut, other: &Cut) -> bool {
    other.within().iter().all(|(transaction, theirs)| {
        holds_place(cut.upto().intervals_of(&transaction.stream), transaction.at.0)
            || cut.within().iter().any(|(t, ours)| t == transaction && theirs.last <= ours.last)
    })
}
