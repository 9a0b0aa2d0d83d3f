//! A table that is copied anew: what was there when the generation began goes with its last rows, and nothing else does.

mod others;
mod ours;

use std::collections::HashMap;

use contract::{Mode, Sink, SinkTable};
use kernel::outcome::CommitOutcome;

use super::world::{Life, World, words};

fn keyed() -> SinkTable {
    words(Mode::Upsert)
}

/// A life at a table with three rows in two data files, one of them with a vector, that are of no generation.
async fn with_an_older_copy(world: &World) -> Life {
    let mut life = Life::begin(world, &keyed(), 1).await;
    life.say(&[(1, "old"), (2, "older")], &[]).await;
    life.say(&[(2, "old"), (3, "old")], &[]).await;
    life
}

async fn durable(life: &mut Life, upserts: &[(i64, &str)], deletes: &[i64]) {
    let outcome = life.sweep(upserts, deletes).await;
    assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{outcome:?}");
}

async fn rejected(life: &mut Life, upserts: &[(i64, &str)]) -> String {
    match life.sweep(upserts, &[]).await {
        CommitOutcome::Rejected { why } => why,
        other => panic!("not rejected: {other:?}"),
    }
}

async fn snapshot(world: &World) -> i64 {
    world.load("words").await.metadata.current_snapshot_id().unwrap()
}

/// What was noted of the beginning, in the summary and as a property.
async fn noted(world: &World) -> [Option<String>; 2] {
    let loaded = world.load("words").await;
    let of = |entries: &HashMap<String, String>| entries.get("urutau.generation-began").cloned();
    let summary = loaded.metadata.current_snapshot().and_then(|s| of(&s.summary().additional_properties));
    [summary, of(loaded.metadata.properties())]
}

/// Goes on from what the table is, as after a set-back.
async fn recover(life: &mut Life) {
    let recovered = life.sink.recover(&life.table).await.unwrap();
    (life.state, life.token) = (recovered.value, recovered.token);
}
