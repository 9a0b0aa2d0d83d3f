//! The key index that commits keep is the one that a start would build, and both say what a model says.

use std::collections::BTreeMap;

use contract::{CommitRequest, Mode};
use kernel::outcome::CommitOutcome;
use proptest::prelude::*;

use super::world::{Fault, Life, World, words};
use crate::delta::RowDelta;

/// One commit of random rows, and what happens around it.
#[derive(Clone, Debug)]
struct Step {
    upserts: Vec<i64>,
    deletes: Vec<i64>,
    truncates: bool,
    around: Around,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Around {
    Nothing,
    AnswerLost,
    RequestLost,
    ForeignSnapshot,
    RolledBack,
    NewLife,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || proptest::collection::btree_set(0i64..40, 0..14).prop_map(|keys| keys.into_iter().collect::<Vec<_>>());
    let around = prop_oneof![
        6 => Just(Around::Nothing),
        2 => Just(Around::AnswerLost),
        1 => Just(Around::RequestLost),
        2 => Just(Around::ForeignSnapshot),
        2 => Just(Around::RolledBack),
        2 => Just(Around::NewLife),
    ];
    (keys(), keys(), proptest::bool::weighted(0.05), around).prop_map(|(upserts, mut deletes, truncates, around)| {
        deletes.retain(|key| !upserts.contains(key));
        Step { upserts, deletes, truncates, around }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn an_index_kept_over_commits_is_the_one_that_is_built_anew(steps in proptest::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(run(steps))?;
    }
}

async fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let mut model: BTreeMap<i64, String> = BTreeMap::new();
    // What the table was after each commit: its snapshot, state and rows.
    let mut past = Vec::new();
    let mut incarnation = 1;
    for (number, step) in steps.into_iter().enumerate() {
        match step.around {
            Around::NewLife => {
                incarnation += 1;
                life = Life::begin(&world, &words(Mode::Upsert), incarnation).await;
            }
            Around::ForeignSnapshot => drop(world.foreign_snapshot("words", RowDelta::default()).await),
            Around::RolledBack if past.len() > 1 => {
                let (snapshot, rows): (i64, BTreeMap<i64, String>) = past.remove(past.len() - 2);
                past.pop();
                world.roll_back("words", snapshot).await;
                model = rows.clone();
                past.push((snapshot, rows));
            }
            _ => {}
        }
        let recovered = contract::Sink::recover(&life.sink, &life.table).await.unwrap();
        (life.state, life.token) = (recovered.value, recovered.token);

        let word = format!("step {number}");
        let upserts: Vec<(i64, &str)> = step.upserts.iter().map(|key| (*key, word.as_str())).collect();
        let staged = life.write(&upserts, &step.deletes).await;
        let request = CommitRequest { truncate_first: step.truncates, ..life.request(vec![staged]) };
        match step.around {
            Around::AnswerLost => world.catalog.fail_next(Fault::AnswerLost),
            Around::RequestLost => world.catalog.fail_next(Fault::RequestLost),
            _ => {}
        }
        let mut outcome = life.commit(&request).await;
        if matches!(outcome, CommitOutcome::Unknown { .. }) {
            outcome = life.commit(&request).await;
        }
        prop_assert!(matches!(outcome, CommitOutcome::Durable { .. }), "{:?}", outcome);
        if step.truncates {
            model.clear();
        }
        model.extend(step.upserts.iter().map(|key| (*key, word.clone())));
        step.deletes.iter().for_each(|key| drop(model.remove(key)));
        past.push((world.load("words").await.metadata.current_snapshot_id().unwrap(), model.clone()));

        prop_assert_eq!(&life.rows().await, &model);
        let kept = life.committer.places(0..40).await;
        let mut anew = Life::begin(&world, &words(Mode::Upsert), incarnation).await;
        let built = anew.committer.places(0..40).await;
        prop_assert_eq!(&kept, &built);
        prop_assert_eq!(kept.keys().copied().collect::<Vec<_>>(), model.keys().copied().collect::<Vec<_>>());
    }
    Ok(())
}
