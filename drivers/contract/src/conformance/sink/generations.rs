//! What is left of a table's older copies when it was copied anew (rules G1, G2).
//!
//! Between the beginning of a generation and its sweep a reader may see rows of an older one, or not. So until then the laws
//! only ask for what the generation wrote. One asks for the ghosts alone, the other for the rows alone: a sink that removes
//! nothing and one that removes everything each break one of them.

use super::SinkHarness;
use super::life::Life;
use super::visible::fresh;
use crate::conformance::tables::{Say, Word};
use crate::conformance::{Held, ensure, equal};
use crate::{CommitRequest, Mode};
use Say::{Insert, Update};
use kernel::outcome::CommitOutcome;
use kernel::state::TableState;

/// The word of every row that the older generation wrote, and no other.
const OLD: &str = "old";

/// No row that the older generation wrote is seen.
async fn no_ghost(life: &mut Life<'_>, when: &str) -> Held {
    let ghosts: Vec<Word> = life.seen().await?.into_iter().filter(|row| row.word.as_deref() == Some(OLD)).collect();
    ensure(ghosts.is_empty(), || format!("rows of an older generation {when}: {ghosts:?}"))
}

/// Of the rows that are not the older generation's exactly these are seen.
async fn written(life: &mut Life<'_>, when: &str, expected: &[(i64, &str)]) -> Held {
    let mut found: Vec<Word> = life.seen().await?.into_iter().filter(|row| row.word.as_deref() != Some(OLD)).collect();
    let mut expected: Vec<Word> = expected.iter().map(|(id, word)| Word::new(*id, word)).collect();
    expected.sort();
    found.sort();
    equal(&format!("the generation's rows {when}"), &expected, &found)
}

/// A state of the same data: what the log had for the table was nothing.
async fn state_only(life: &mut Life<'_>) -> Held {
    let Some(known) = life.known.value.clone() else { return Err("the kit lost a state".into()) };
    let state = TableState { cut: life.next_state().cut, ..known };
    let request = CommitRequest { state, ..life.request(Vec::new()) };
    life.durable(&request).await
}

pub(super) async fn resnapshot_leaves_no_ghost(harness: &dyn SinkHarness) -> Held {
    let abilities = harness.abilities();
    let older = [Insert(1, OLD), Insert(2, OLD), Insert(3, OLD)];

    // One life copies it anew.
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&older).await?;
    life.begin_generation().await?;
    life.say(&[Insert(1, "new"), Insert(4, "new")]).await?;
    life.sweep(&[Insert(5, "new")]).await?;
    no_ghost(&mut life, "after the sweep").await?;
    life.say(&[Insert(6, "later")]).await?;
    no_ghost(&mut life, "after the commit behind the sweep").await?;
    // And again, in the middle of which it dies; the next life brings no row more.
    life.say(&[Insert(7, OLD)]).await?;
    life.begin_generation().await?;
    life.say(&[Insert(1, "new")]).await?;
    state_only(&mut life).await?;
    drop(life);
    let mut next = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    next.sweep(&[]).await?;
    no_ghost(&mut next, "after the sweep of a generation that an older life began").await?;
    drop(next);
    let mut last = Life::begin(&*place, &abilities, Mode::Upsert, 3).await?;
    no_ghost(&mut last, "in another process").await
}

pub(super) async fn a_sweep_spares_its_generation(harness: &dyn SinkHarness) -> Held {
    let abilities = harness.abilities();

    // A first generation: there is nothing older.
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.begin_generation().await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    life.sweep(&[Insert(3, "three")]).await?;
    written(&mut life, "after the sweep of the first one", &[(1, "one"), (2, "two"), (3, "three")]).await?;
    // What follows it is its own.
    life.say(&[Insert(4, "four")]).await?;
    let rows = [(1, "one"), (2, "two"), (3, "three"), (4, "four")];
    written(&mut life, "after the commit behind the sweep", &rows).await?;
    life.begin_generation().await?;
    life.say(&[Insert(1, "one"), Insert(2, "two")]).await?;
    life.say(&[Insert(3, "three")]).await?;
    life.sweep(&[Insert(4, "four")]).await?;
    written(&mut life, "after the sweep of another one that wrote all keys again", &rows).await?;
    drop(life);

    // Keys that both wrote, in the commits before the sweep and in its own; states without rows; other lives.
    let place = fresh(harness).await?;
    let mut life = Life::begin(&*place, &abilities, Mode::Upsert, 1).await?;
    life.say(&[Insert(1, OLD), Insert(2, OLD), Insert(3, OLD)]).await?;
    life.begin_generation().await?;
    state_only(&mut life).await?;
    life.say(&[Insert(1, "new"), Insert(5, "new")]).await?;
    written(&mut life, "before the sweep", &[(1, "new"), (5, "new")]).await?;
    drop(life);
    let mut next = Life::begin(&*place, &abilities, Mode::Upsert, 2).await?;
    next.say(&[Insert(6, "new"), Insert(7, "new")]).await?;
    let request = next.sweep(&[Insert(2, "new"), Update(6, "newer")]).await?;
    let rows = [(1, "new"), (2, "new"), (5, "new"), (6, "newer"), (7, "new")];
    written(&mut next, "after a sweep that brought rows itself", &rows).await?;
    // Its answer was lost.
    let again = next.commit(&request).await;
    ensure(matches!(again, CommitOutcome::Durable { .. }), || format!("the sweep asked for again: {again:?}"))?;
    written(&mut next, "after the sweep was asked for again", &rows).await?;
    drop(next);
    let mut last = Life::begin(&*place, &abilities, Mode::Upsert, 3).await?;
    written(&mut last, "in another process", &rows).await?;
    last.say(&[Update(1, "last"), Insert(3, "back")]).await?;
    let rows = [(1, "last"), (2, "new"), (3, "back"), (5, "new"), (6, "newer"), (7, "new")];
    written(&mut last, "after the next life's commit", &rows).await
}
