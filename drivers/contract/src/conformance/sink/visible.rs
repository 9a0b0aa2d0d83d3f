//! What a reader sees after a commit.

use super::life::Life;
use super::{SinkHarness, SinkPlace};
use crate::conformance::tables::{self, Say};
use crate::conformance::{Held, ensure, equal, failed};
use crate::{CommitRequest, Mode, StateWrite};
use Say::{Delete, Insert, Update};
use kernel::id::Version;
use kernel::position::{Cut, Position};

pub(super) async fn fresh(harness: &dyn SinkHarness) -> Result<Box<dyn SinkPlace>, String> {
    harness.fresh().await.map_err(failed("making a fresh place"))
}

pub(super) async fn says_what_it_can(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    for opening in ["the first sink", "another sink"] {
        let sink = place.open().await.map_err(failed("opening the sink"))?;
        equal(&format!("the capabilities of {opening}"), &harness.abilities().capabilities, &sink.capabilities())?;
    }
    Ok(())
}

pub(super) async fn state_and_data_move_together(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Upsert, 1).await?;
    two_parts(&mut life, &[Insert(1, "one"), Insert(2, "two")], &[Insert(3, "three")]).await?;
    life.rows_are("after a commit of two parts", &[(1, "one"), (2, "two"), (3, "three")]).await?;
    two_parts(&mut life, &[Insert(4, "four")], &[Insert(5, "five")]).await?;
    let rows = [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")];
    life.rows_are("after another commit of two parts", &rows).await
}

/// A commit of two parts, with a look at the state before and after.
async fn two_parts(life: &mut Life<'_>, first: &[Say], second: &[Say]) -> Held {
    let staged = vec![life.write(first).await?, life.write(second).await?];
    life.state_is_known("before the commit").await?;
    let request = life.request(staged);
    life.durable(&request).await?;
    life.state_is_known("after the commit").await
}

pub(super) async fn one_image_per_key(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    life.say(&[Update(1, "uno")]).await?;
    life.rows_are("after an update", &[(1, "uno"), (2, "two")]).await?;
    life.say(&[Insert(1, "one"), Update(1, "eins"), Update(2, "zwei")]).await?;
    life.rows_are("after several changes of a key in one commit", &[(1, "eins"), (2, "zwei")]).await
}

pub(super) async fn deletes_remove(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    life.say(&[Delete(1, "one"), Delete(7, "never there")]).await?;
    life.rows_are("after a delete", &[(2, "two")]).await?;
    life.say(&[Insert(1, "again"), Insert(3, "three")]).await?;
    life.rows_are("after the key was made again", &[(1, "again"), (2, "two"), (3, "three")]).await
}

pub(super) async fn truncate_first(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    // The TRUNCATE has a version of its own, below those of the rows after it (rule C7).
    let begun = Version::new(life.incarnation, life.sequence);
    life.sequence += 1;
    let staged = life.write(&[Insert(3, "three")]).await?;
    let mut request = CommitRequest { truncate_first: true, ..life.request(vec![staged]) };
    request.state.begun = begun;
    life.durable(&request).await?;
    life.rows_are("after a commit that truncates", &[(3, "three")]).await?;
    life.say(&[Insert(4, "four")]).await?;
    life.rows_are("after the next commit", &[(3, "three"), (4, "four")]).await
}

pub(super) async fn append_keeps_every_row_once(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &harness.abilities(), Mode::Append, 1).await?;
    life.say(&[Insert(1, "one"), Update(1, "uno"), Delete(1, "uno"), Insert(2, "two"), Insert(2, "two")]).await?;
    let mut rows = vec![(1, "one"), (1, "uno"), (1, "uno"), (2, "two"), (2, "two")];
    life.rows_are("after one commit", &rows).await?;
    life.say(&[Insert(2, "two")]).await?;
    rows.push((2, "two"));
    life.rows_are("after a commit of an equal row", &rows).await
}

pub(super) async fn covered_rows_are_refused(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::AppendIdempotent, 1).await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    drop(life);
    // The log is read again from its beginning, as after a set-back.
    let mut life = Life::begin(&*place, &abilities, Mode::AppendIdempotent, 2).await?;
    let again = life.write_from(0, &[Insert(1, "one"), Insert(2, "two")]).await?;
    let request = life.request(vec![again]);
    life.durable(&request).await?;
    life.rows_are("after covered rows came again", &[(1, "one"), (2, "two")]).await?;
    life.say(&[Insert(1, "one")]).await?;
    life.rows_are("after an equal row that is not covered", &[(1, "one"), (1, "one"), (2, "two")]).await
}

pub(super) async fn state_only_commit_keeps_data(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, "one")]).await?;
    let Some(mut state) = life.known.value.clone() else { return Err("the kit lost a state".into()) };
    state.cut = Cut::at(Position::scalar(1_000));
    let request = CommitRequest { state, ..life.request(Vec::new()) };
    life.durable(&request).await?;
    life.state_is_known("after a commit without rows").await?;
    life.rows_are("after a commit without rows", &[(1, "one")]).await?;
    life.say(&[Insert(2, "two")]).await?;
    life.rows_are("after the commit behind it", &[(1, "one"), (2, "two")]).await
}

pub(super) async fn tables_are_independent(harness: &dyn SinkHarness) -> Held {
    let place = fresh(harness).await?;
    let abilities = harness.abilities();
    let mut keyed = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    let other = if abilities.modes.contains(&Mode::Append) {
        tables::sink_table(Mode::Append)
    } else {
        crate::SinkTable { target: "more_words".into(), ..tables::sink_table(Mode::Upsert) }
    };
    let sink = std::sync::Arc::clone(&keyed.sink);
    let mut other = Life::over(&*place, &abilities, sink, other, 1).await?;
    keyed.say(&[Insert(1, "one")]).await?;
    other.rows_are("of the other table", &[]).await?;
    other.state_is_known("of the other table").await?;
    other.say(&[Insert(7, "seven")]).await?;
    keyed.rows_are("of the first table", &[(1, "one")]).await?;
    keyed.state_is_known("of the first table").await?;
    keyed.say(&[Insert(2, "two")]).await?;
    other.rows_are("of the other table", &[(7, "seven")]).await?;
    let staging = abilities.capabilities.state == StateWrite::WithData;
    let (ours, theirs) = (keyed.recovered().await?.token, other.known.token.clone());
    ensure(!staging || other.recovered().await?.token == theirs, || {
        format!("the other table's token changed from {theirs} when the first table got {ours}")
    })
}
