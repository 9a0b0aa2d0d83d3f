//! What one life leaves to the next, and what others may do to a table.

use super::life::{self, Life};
use super::visible::fresh;
use super::{SinkHarness, SinkPlace};
use crate::conformance::tables::Say;
use crate::conformance::{Held, ensure, equal, failed};
use crate::{CommitRequest, Mode, StateWrite};
use Say::Insert;
use kernel::id::{StreamName, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{Coordinate, Cut, Digest, Offset, Position, Transaction};
use kernel::state::{PipelineState, Range, TableState};

/// More steps than a commit can have; a harness with more says so instead of running for ever.
const TEAR_STEPS_MAX: u32 = 10_000;

pub(super) async fn recovery_gives_what_was_stored(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    if abilities.capabilities.state == StateWrite::WithData {
        equal("the state of a new table", &None, &life.known.value)?;
    }
    let staged = life.write(&[Insert(1, "one")]).await?;
    let request = CommitRequest { state: every_field(life.next_state()), ..life.request(vec![staged]) };
    life.durable(&request).await?;
    let record = PipelineState { quiet: Position::scalar(u64::MAX), identity: life::identity(), ..PipelineState::default() };
    let none = life.sink.pipeline_state().await.map_err(failed("reading the record"))?;
    let stored = life.sink.store_pipeline_state(&none.token, &record).await;
    ensure(matches!(stored, StoreOutcome::Stored { .. }), || format!("storing the first record: {stored:?}"))?;
    let table = life.table.clone();
    drop(life);

    let sink = place.open().await.map_err(failed("opening the sink"))?;
    let found = sink.recover(&table).await.map_err(failed("recovering the table"))?;
    equal("the state that another process finds", &Some(text(&request.state)?), &found.value.as_ref().map(text).transpose()?)?;
    let found = sink.pipeline_state().await.map_err(failed("reading the record"))?;
    equal("the record that another process finds", &Some(text(&record)?), &found.value.as_ref().map(text).transpose()?)
}

fn text(state: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string(state).map_err(|error| format!("the kit's state has no JSON: {error}"))
}

/// A state that uses everything a state can hold, with the largest numbers and the oddest names.
fn every_field(mut state: TableState) -> TableState {
    let odd = StreamName::from("2026/\u{e4} odd,name:50%\n\"quoted\".jsonl");
    let mut cut = Cut::at([(odd.clone(), Offset(u64::MAX - 1)), (StreamName::from(""), Offset(7))].into_iter().collect());
    let divided = Transaction { stream: StreamName::from("divided"), at: Offset(u64::MAX - 2) };
    cut.take(&divided, Coordinate { major: u64::MAX, minor: u32::MAX }, Digest { count: u64::MAX, hash: u64::MAX - 3 });
    state.identity.streams.insert(odd.clone(), "another identity".into());
    state.base = Position::of(odd.clone(), Offset(3));
    state.ahead = Position::of(odd, Offset(u64::MAX));
    state.cut = cut;
    state.ancestors = life::ancestors(&[(1, 4), (1, 5), (1, 9), (3, u64::MAX)]);
    state.sequence = (1 << Version::SEQUENCE_BITS) - 1;
    state.generation = u64::MAX;
    state.begun = Version(0);
    state.tiling = vec![Range { end: Some("{\"id\":7}".into()), durable: true }, Range { end: None, durable: false }];
    state.in_doubt = vec!["4711".into(), String::new()];
    state.schema = Some("{\"columns\": [ \"kept as it is\u{1F980}\" ]}".into());
    state
}

pub(super) async fn staged_is_invisible(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let staged = life.write(&[Insert(2, "staged")]).await?;
    life.rows_are("while something is staged", &[(1, "one")]).await?;
    let known = life.known.value.clone();
    drop((life, staged)); // It dies: nobody drops what it staged in an orderly way.

    let mut next = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    equal("the state after a life that died with something staged", &known, &next.known.value)?;
    next.rows_are("after a life that died with something staged", &[(1, "one")]).await?;
    next.say(&[Insert(3, "three")]).await?;
    next.rows_are("after the next life's commit", &[(1, "one"), (3, "three")]).await
}

pub(super) async fn cleaning_spares_the_published(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let staging = abilities.capabilities.state == StateWrite::WithData;
    let mut older = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    older.say(&[Insert(1, "one")]).await?;
    let left = if staging { Some(older.write(&[Insert(9, "never published")]).await?) } else { None };

    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    life.say(&[Insert(2, "two")]).await?;
    let kept = life.write(&[Insert(3, "three")]).await?;
    life.discard_older().await;
    let request = life.request(vec![kept]);
    life.durable(&request).await?;
    let mut rows = vec![(1, "one"), (2, "two"), (3, "three")];
    life.rows_are("after what older lives staged was discarded", &rows).await?;

    if staging {
        let dropped = life.write(&[Insert(4, "dropped")]).await?;
        let kept = life.write(&[Insert(5, "five")]).await?;
        life.drop_staged(vec![dropped]).await;
        let request = life.request(vec![kept]);
        life.durable(&request).await?;
        rows.push((5, "five"));
        life.rows_are("after one of two staged parts was dropped", &rows).await?;
    }
    drop((older, left, life));
    let mut again = Life::begin(&*place, &abilities, Mode::Upsert, 3).await?;
    again.rows_are("in another process", &rows).await
}

pub(super) async fn a_torn_commit_is_whole_or_absent(harness: &dyn SinkHarness) -> Held {
    for step in 0..TEAR_STEPS_MAX {
        let place = fresh(harness).await?;
        if !torn(&*place, harness, step).await? {
            return ensure(step > 0, || "the harness can tear, but a commit has no step".into());
        }
    }
    Err(format!("the harness has torn a commit at {TEAR_STEPS_MAX} steps and goes on"))
}

/// Two commits, the second torn at `step`: one of the two states is there, with exactly its rows, and the next life goes on.
async fn torn(place: &dyn SinkPlace, harness: &dyn SinkHarness, step: u32) -> Result<bool, String> {
    let abilities = harness.abilities();
    let mut life = Life::begin(place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let before = life.known.value.clone();
    let staged = life.write(&[Insert(2, "two"), Insert(3, "three"), Insert(4, "four")]).await?;
    let request = life.request(vec![staged]);
    life.durable(&request).await?;
    let (table, after) = (life.table.clone(), life.known.value.clone());
    drop((life, request));
    if !place.tear(&table, step).await.map_err(failed("tearing a commit"))? {
        return Ok(false);
    }
    let mut next =
        Life::begin(place, &abilities, Mode::Upsert, 2).await.map_err(|what| format!("torn at step {step}: {what}"))?;
    let mut rows = match &next.known.value {
        found if *found == before => vec![(1, "one")],
        found if *found == after => vec![(1, "one"), (2, "two"), (3, "three"), (4, "four")],
        found => return Err(format!("torn at step {step}: the state is neither of the two that were committed: {found:?}")),
    };
    next.rows_are(&format!("beside the state that was found, torn at step {step}"), &rows).await?;
    next.say(&[Insert(5, "five")]).await?;
    rows.push((5, "five"));
    next.rows_are(&format!("after the next commit, torn at step {step}"), &rows).await?;
    Ok(true)
}

pub(super) async fn state_survives_foreign_commits(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let first = life.known.value.clone();
    life.say(&[Insert(2, "two")]).await?;
    if abilities.foreign_commit {
        place.foreign_commit(&life.table).await.map_err(failed("committing as somebody else"))?;
        life.state_is_known("after a foreign commit").await?;
        life.rows_are("after a foreign commit", &[(1, "one"), (2, "two")]).await?;
        let staged = life.write(&[Insert(3, "three")]).await?;
        let request = life.request(vec![staged]);
        let token = match life.commit(&request).await {
            // Found is the expected commit: rule C5 lets the same commit go on from there.
            CommitOutcome::Conflict { found, token } => {
                equal("the state that the Conflict found", &life.known.value, &found.map(|state| *state))?;
                token
            }
            CommitOutcome::Durable { token } if abilities.capabilities.state == StateWrite::AfterData => token,
            other => return Err(format!("a commit over a foreign one: expected a Conflict, found {other:?}")),
        };
        life.durable(&CommitRequest { token, ..request }).await?;
        life.rows_are("after a commit upon a foreign one", &[(1, "one"), (2, "two"), (3, "three")]).await?;
        place.foreign_commit(&life.table).await.map_err(failed("committing as somebody else"))?;
    }
    if abilities.roll_back {
        let place = fresh(harness).await?;
        let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
        life.say(&[Insert(1, "one")]).await?;
        life.say(&[Insert(2, "two")]).await?;
        place.roll_back(&life.table).await.map_err(failed("rolling back"))?;
        let mut next = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
        equal("the state after a rollback", &first, &next.known.value)?;
        next.rows_are("after a rollback", &[(1, "one")]).await?;
        next.say(&[Insert(3, "three")]).await?;
        next.rows_are("after a commit behind a rollback", &[(1, "one"), (3, "three")]).await?;
    }
    Ok(())
}

pub(super) async fn looking_changes_nothing(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let token = life.recovered().await?.token;
    let record = life.sink.pipeline_state().await.map_err(failed("reading the record"))?;

    let sink = place.open().await.map_err(failed("opening the sink"))?;
    sink.preflight(std::slice::from_ref(&life.table)).await;
    sink.ensure_table(&life.table).await.map_err(failed("ensuring a table that is there"))?;
    sink.recover(&life.table).await.map_err(failed("recovering the table"))?;
    sink.measure(&life.table).await.map_err(failed("measuring the table"))?;

    equal("the record", &record, &life.sink.pipeline_state().await.map_err(failed("reading the record"))?)?;
    life.state_is_known("after it was looked at").await?;
    equal("the token", &token, &life.recovered().await?.token)?;
    life.rows_are("after it was looked at", &[(1, "one")]).await?;
    life.say(&[Insert(2, "two")]).await?;
    life.rows_are("after the next commit", &[(1, "one"), (2, "two")]).await
}
