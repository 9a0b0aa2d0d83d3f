//! What a commit and a store answer, and who may write at all.

use std::collections::BTreeSet;

use super::SinkHarness;
use super::life::{self, Life};
use super::visible::fresh;
use crate::conformance::tables::Say;
use crate::conformance::{Held, ensure, equal, failed};
use crate::{CommitRequest, Mode, StateWrite};
use Say::{Delete, Insert, Update};
use kernel::id::{CommitId, Incarnation, TableName, Token, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::Position;
use kernel::state::{FORMAT, Phase, PipelineState, TableRecord, TableState};

pub(super) async fn staged_published_at_most_once(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mode = if abilities.modes.contains(&Mode::Append) { Mode::Append } else { Mode::Upsert };
    let mut life = Life::begin(&*place, &abilities, mode, 1).await?;
    let staged = life.write(&[Insert(1, "one")]).await?;
    let first = life.request(vec![staged]);
    life.durable(&first).await?;
    // The answer was lost: the same commit again, on the token that it had.
    let CommitOutcome::Durable { token } = life.commit(&first).await else {
        return Err("a commit that is there already, asked for again, is not Durable".into());
    };
    if abilities.capabilities.state == StateWrite::WithData {
        equal("the token of a commit asked for again", &life.known.token, &token)?;
    }
    life.rows_are("after a commit was asked for twice", &[(1, "one")]).await?;
    life.state_is_known("after a commit was asked for twice").await?;
    life.know(first.state.clone(), token);
    life.say(&[Insert(2, "two")]).await?;
    // It may say what it likes now, but it must not write.
    life.commit(&first).await;
    life.rows_are("after an old commit was asked for again", &[(1, "one"), (2, "two")]).await?;
    life.state_is_known("after an old commit was asked for again").await
}

pub(super) async fn resolve_finds_what_landed(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let Some(landed) = life.known.value.as_ref().map(|state| state.commit) else { return Err("the kit lost a state".into()) };
    let never = CommitId { incarnation: Incarnation(1), number: 99 };
    let mut expect = vec![
        (landed, Incarnation(1), true, "the newest commit"),
        (never, Incarnation(1), false, "a commit that never was"),
        (landed, Incarnation(2), false, "the same commit as another life's"),
    ];
    for _ in 0..2 {
        for (commit, incarnation, expected, which) in &expect {
            equal(&format!("resolving {which}"), expected, &life.resolve(*commit, *incarnation).await?)?;
        }
        life.say(&[Insert(2, "two")]).await?;
        expect = vec![(landed, Incarnation(1), true, "a commit that another one followed")];
    }
    if abilities.capabilities.state == StateWrite::WithData {
        let mut newer = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
        newer.say(&[Insert(3, "three")]).await?;
        equal("resolving a commit that a newer life followed", &true, &life.resolve(landed, Incarnation(1)).await?)?;
    }
    Ok(())
}

pub(super) async fn a_stale_token_conflicts(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let stale = life.known.token.clone();
    life.say(&[Insert(2, "two")]).await?;
    let staged = life.write(&[Insert(3, "three")]).await?;
    let request = life.request(vec![staged]);
    let late = CommitRequest {
        token: stale,
        state: request.state.clone(),
        staged: request.staged.clone(),
        schema: request.schema.clone(),
        truncate_first: false,
        sweep: false,
    };
    let CommitOutcome::Conflict { found, token } = life.commit(&late).await else {
        return Err("a commit on a token that is not the table's any more is no Conflict".into());
    };
    equal("the state that the Conflict found", &life.known.value, &found.map(|state| *state))?;
    life.rows_are("after a Conflict", &[(1, "one"), (2, "two")]).await?;
    life.state_is_known("after a Conflict").await?;
    // The token that the Conflict told is good: nobody has committed since.
    life.durable(&CommitRequest { token, ..request }).await?;
    life.rows_are("after the same commit on the token that was told", &[(1, "one"), (2, "two"), (3, "three")]).await
}

pub(super) async fn tokens_never_repeat(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut seen = BTreeSet::new();
    let mut note = |token: &Token, when: &str| {
        ensure(seen.insert(token.to_string()), || format!("the token '{token}' came before and comes again {when}"))
    };
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    note(&life.known.token, "at the beginning")?;
    for _ in 0..6 {
        life.say(&[Insert(1, "one")]).await?;
        note(&life.known.token, "after a commit")?;
    }
    for incarnation in 2..4 {
        drop(life);
        life = Life::begin(&*place, &abilities, Mode::Upsert, incarnation).await?;
        life.say(&[Insert(1, "one")]).await?;
        note(&life.known.token, "in another process")?;
    }
    if abilities.roll_back {
        place.roll_back(&life.table).await.map_err(failed("rolling back"))?;
        note(&life.recovered().await?.token, "after a rollback")?;
    }
    Ok(())
}

pub(super) async fn a_superseded_life_cannot_commit(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut older = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    older.say(&[Insert(1, "one")]).await?;
    let staged = older.write(&[Insert(2, "of the older life")]).await?;
    let late = older.request(vec![staged]);

    let mut newer = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    newer.say(&[Insert(3, "three")]).await?;
    match older.commit(&late).await {
        CommitOutcome::Superseded => {}
        CommitOutcome::Conflict { found: Some(found), .. } if found.incarnation > older.incarnation => {}
        other => return Err(format!("the older life must hear of the newer one, not {other:?}")),
    }
    newer.rows_are("after an older life tried to commit", &[(1, "one"), (3, "three")]).await?;
    newer.state_is_known("after an older life tried to commit").await?;
    newer.say(&[Insert(4, "four")]).await?;
    newer.rows_are("after the newer life went on", &[(1, "one"), (3, "three"), (4, "four")]).await
}

pub(super) async fn the_highest_state_counts(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut older = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    older.say(&[Insert(1, "one")]).await?;
    let mut newer = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    equal(
        "what the claim took over",
        &older.known.value.clone().map(|state| TableState { incarnation: Incarnation(2), ..state }),
        &newer.known.value,
    )?;
    newer.state_is_known("after a claim").await?;
    // The older life has not noticed; whatever its commit answers, it does not count.
    let late = older.request(Vec::new());
    older.commit(&late).await;
    newer.state_is_known("after an older life's state came late").await?;

    newer.say(&[Insert(2, "two")]).await?;
    let behind = older.request(Vec::new());
    older.commit(&behind).await;
    newer.state_is_known("after another late state").await
}

pub(super) async fn the_highest_version_wins(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut older = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    let mut newer = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    newer.say(&[Insert(1, "new"), Insert(2, "new"), Insert(3, "new")]).await?;
    newer.say(&[Delete(2, "new")]).await?;
    older.write(&[Update(1, "old"), Insert(2, "old"), Delete(3, "old")]).await?;
    newer.rows_are("after rows of an older life came late", &[(1, "new"), (3, "new")]).await?;

    let begun = Version::new(newer.incarnation, newer.sequence);
    newer.sequence += 1;
    let staged = newer.write(&[Insert(4, "new")]).await?;
    let mut request = newer.request(vec![staged]);
    request.state.begun = begun;
    newer.durable(&request).await?;
    older.write(&[Insert(5, "old")]).await?;
    newer.rows_are("where no version below `begun` counts", &[(4, "new")]).await
}

/// A record with something in every field, numbered.
fn record(number: u32) -> PipelineState {
    let named = Some(CommitId { incarnation: Incarnation(number), number: 7 });
    let table = TableRecord { phase: Phase::Streaming, generation: u64::from(number), named, skipped: Vec::new(), why: None };
    PipelineState {
        format: FORMAT,
        incarnation: Incarnation(number),
        identity: life::identity(),
        quiet: Position::scalar(u64::from(number) * 10),
        tables: [(TableName::from("kit.words"), table)].into(),
    }
}

pub(super) async fn record_is_compare_and_set(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let ours = place.open().await.map_err(failed("opening the sink"))?;
    let theirs = place.open().await.map_err(failed("opening the sink"))?;
    let read = failed("reading the record");
    let none = ours.pipeline_state().await.map_err(&read)?;
    equal("the record in the beginning", &None, &none.value)?;
    let StoreOutcome::Stored { token: first } = ours.store_pipeline_state(&none.token, &record(1)).await else {
        return Err("the first record is not Stored".into());
    };
    // Who knows only that there was none, or a record that was replaced since, writes nothing.
    let mut there = (record(1), first);
    let mut seen = BTreeSet::from([none.token.to_string(), there.1.to_string()]);
    let mut stale = none.token;
    for number in 2..5 {
        let StoreOutcome::Conflict { found, token } = theirs.store_pipeline_state(&stale, &record(99)).await else {
            return Err("a record on a stale token is no Conflict".into());
        };
        equal("the record that the Conflict found", &Some(there.0.clone()), &found.map(|record| *record))?;
        equal("the record after a Conflict", &Some(there.0), &theirs.pipeline_state().await.map_err(&read)?.value)?;
        let StoreOutcome::Stored { token: next } = theirs.store_pipeline_state(&token, &record(number)).await else {
            return Err("a record on the token that a Conflict told is not Stored".into());
        };
        ensure(seen.insert(next.to_string()), || format!("the record's token '{next}' came before"))?;
        equal("the record after it was stored", &Some(record(number)), &ours.pipeline_state().await.map_err(&read)?.value)?;
        stale = there.1;
        there = (record(number), next);
    }
    Ok(())
}
