//! What is judged in a small world: what may be stored, visible, acknowledged. The rules are the oracle's; nothing is remembered
//! but the moment before.

use kernel::coordinator::Waiting;
use kernel::position::Position;
use kernel::state::{Phase, PipelineState, TableState};

use super::world::World;
use crate::history::Tab;
use crate::oracle::durability::{self, Smeared};
use crate::oracle::{Verdict, Violation, outcomes, resources, snapshots, starting};
use crate::sinks::{Commit, Landed};

/// Nothing, or what is broken.
pub(super) type Judged = Result<(), Violation>;

pub(super) fn judge(rule: &'static str, verdict: Verdict) -> Judged {
    verdict.map_err(|dump| Violation { rule, at: 0, dump })
}

pub(super) fn broken(rule: &'static str, dump: String) -> Judged {
    judge(rule, Err(dump))
}

/// What a commit did to what was staged.
pub(super) fn landed(landed: &Landed) -> Judged {
    judge("staged-published-at-most-once", outcomes::staged_published_at_most_once(landed))?;
    judge("staged-kept-while-unknown", outcomes::staged_kept_while_unknown(landed))?;
    judge("only-current-incarnation-deletes", outcomes::discarded_was_not_needed(landed))
}

/// A commit is visible.
pub(super) fn commit(was: &World, is: &World, table: Tab, commit: &Commit, running: usize) -> Judged {
    let (before, state) = (was.targets[table].state(), &commit.state);
    let (view, history) = (is.view(table), &is.small.history);
    let smeared = Smeared::new();
    let rows: Vec<_> = is.targets[table].rows_of(&commit.staged).into_iter().map(|(row, _)| row).collect();
    let visible = is.targets[table].contents();
    judge("commit-in-order-per-table", durability::commit_in_order_per_table(running, before, state))?;
    if let Some(before) = before {
        let verdict = starting::stale_incarnation_has_no_effect(before.incarnation, state.incarnation);
        judge("stale-incarnation-has-no-effect", verdict)?;
        judge("position-never-regresses", durability::position_never_regresses(&view, before, state))?;
    }
    judge("never-ahead-of-source", starting::never_ahead_of_source(state.cut.upto(), &is.end()))?;
    let finished = durability::position_names_finished_transactions(history, state.cut.upto());
    judge("position-names-finished-transactions", finished)?;
    let netted = is.targets[table].netted_of(&commit.staged);
    let images: Vec<_> = netted.iter().flat_map(|n| n.images.iter().map(|(key, row, _)| (*key, *row))).collect();
    judge("one-image-per-key-per-commit", durability::one_image_per_key_per_commit(&images))?;
    if view.plan.staging || before.is_none_or(|b| b.incarnation == state.incarnation) {
        judge("covered-row-has-no-effect", starting::covered_row_has_no_effect(&view, before, &rows, &smeared))?;
        let brought = starting::no_row_is_skipped(&view, before, state, &rows, &smeared);
        judge("position-covers-only-durable", brought)?;
    }
    if state.generation > 0 && state.commit.number > 0 {
        let versions = is.targets[table].versions();
        if before.map_or(0, |b| b.generation) < state.generation {
            let staged = commit.staged.len();
            let begins = snapshots::generation_begins_durably(state, staged, &versions, Some(&is.floor));
            judge("generation-begins-durably", begins)?;
        }
        let (rule, verdict) = snapshots::what_a_reader_may_see(&view, state, &visible, &versions, &smeared);
        judge(rule, verdict)?;
        if state.tiling.is_empty() {
            judge("resnapshot-leaves-no-ghost", snapshots::resnapshot_leaves_no_ghost(state, &versions))?;
        }
    } else if view.base.is_some() {
        let durable = durability::position_covers_only_durable(&view, state, &visible, &smeared);
        judge("position-covers-only-durable", durable)?;
        let together = durability::state_and_data_move_together(&view, state, &visible, &smeared);
        judge("state-and-data-move-together", together)?;
    }
    // Where nothing compares, a life may claim an older state than the one that an older life wrote meanwhile.
    let claims = !view.plan.staging && before.is_some_and(|b| b.incarnation != state.incarnation && b.cut != state.cut);
    record_of(is, table, &[state])?;
    if claims { Ok(()) } else { never_falls(was, is, table) }
}

/// A record is stored.
pub(super) fn record(was: &World, is: &World) -> Judged {
    let Some(new) = &is.record else { return Ok(()) };
    if let Some(before) = &was.record {
        judge("position-never-regresses", durability::record_never_regresses(before, new))?;
    }
    let finished = durability::position_names_finished_transactions(&is.small.history, &new.quiet);
    judge("position-names-finished-transactions", finished)?;
    for table in 0..is.targets.len() {
        let states = is.targets[table].states();
        record_of(is, table, &states)?;
        never_falls(was, is, table)?;
        released(was, is, table)?;
    }
    Ok(())
}

/// A table that the record newly calls in need of a snapshot really needs one: here none does.
fn released(was: &World, is: &World, table: Tab) -> Judged {
    let needs = |world: &World| world.entry(table).is_some_and(|e| e.phase == Phase::NeedsSnapshot);
    if !needs(is) || needs(was) {
        return Ok(());
    }
    let verdict = starting::lost_is_true(&is.view(table), is.targets[table].state(), &is.floor, false);
    judge("start-within-streamable", verdict)
}

fn record_of(is: &World, table: Tab, states: &[&TableState]) -> Judged {
    let (Some(record), Some(entry)) = (&is.record, is.entry(table)) else { return Ok(()) };
    judge("record-claims-truth", durability::record_claims_truth(&is.view(table), record, entry, states))
}

fn never_falls(was: &World, is: &World, table: Tab) -> Judged {
    let stands = |world: &World| {
        let state = world.targets[table].state()?;
        let entry = world.entry(table);
        let counts = entry.is_none_or(|e| e.phase != Phase::NeedsSnapshot);
        counts.then(|| durability::effective(world.record.as_ref(), entry, state))
    };
    match (stands(was), stands(is)) {
        (Some(before), Some(after)) => judge("effective-cut-never-falls", durability::effective_cut_never_falls(&before, &after)),
        _ => Ok(()),
    }
}

/// The source may forget this.
pub(super) fn acknowledgement(world: &World, upto: &Position) -> Judged {
    judge("acknowledged-within-received", durability::acknowledged_within_received(upto, &world.end()))?;
    let record: Option<&PipelineState> = world.record.as_ref();
    judge("quiet-before-acknowledged", durability::quiet_before_acknowledged(upto, record, &world.floor))?;
    for table in 0..world.targets.len() {
        if world.entry(table).is_none_or(|e| e.phase == Phase::NeedsSnapshot) {
            continue;
        }
        let durable = durability::acknowledged_is_durable(&world.view(table), world.targets[table].state(), upto);
        judge("position-covers-only-durable", durable)?;
    }
    Ok(())
}

/// Where a table begins in a life, as that life says it.
pub(super) fn start(world: &World, table: Tab, state: Option<&TableState>, floor: &Position, lost: bool) -> Judged {
    let view = world.view(table);
    let promised = !matches!(view.plan.join, kernel::config::Join::Now | kernel::config::Join::Snapshot);
    if state.is_none() && !promised && !lost {
        return Ok(());
    }
    judge("start-within-streamable", starting::start_within_streamable(&view, state, floor, lost))?;
    if !lost {
        return Ok(());
    }
    judge("start-within-streamable", starting::lost_is_true(&view, state, floor, false))
}

/// Nothing is left to happen: everything is copied and acknowledged, and nothing is waited for.
pub(super) fn is_complete(world: &World, waiting: &[Waiting]) -> Judged {
    let end = world.end();
    let lacks = |table: Tab| {
        let view = world.view(table);
        let (is, should) = (world.targets[table].contents(), view.fold(|_| true));
        (is != should).then(|| format!("t{table} is {is:?}, the source is {should:?}"))
    };
    let unacknowledged = || {
        let acknowledged = &world.floor;
        (world.small.acknowledges && !durability::contains(acknowledged, &end))
            .then(|| format!("acknowledged is {acknowledged} of {end}"))
    };
    let missing = (0..world.targets.len()).find_map(lacks).or_else(unacknowledged);
    let waiting: Vec<String> = waiting.iter().map(|w| format!("{w:?}")).collect();
    judge("converges-after-healing", resources::converges_after_healing(missing.as_deref(), &waiting))
}
