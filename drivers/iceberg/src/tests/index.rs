//! The key index that commits keep is the one that a start would build, and both say what a model says.

use std::collections::{BTreeMap, BTreeSet};

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
    generation: Generation,
    around: Around,
}

/// What a commit is to the table's generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Generation {
    GoesOn,
    /// Before it another one begins.
    Begins,
    /// It removes what older ones left, if there is one.
    Ends,
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
    let generation = prop_oneof![4 => Just(Generation::GoesOn), 1 => Just(Generation::Begins), 2 => Just(Generation::Ends)];
    (keys(), keys(), proptest::bool::weighted(0.05), generation, around).prop_map(
        |(upserts, mut deletes, truncates, generation, around)| {
            deletes.retain(|key| !upserts.contains(key));
            Step { upserts, deletes, truncates, generation, around }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn an_index_kept_over_commits_is_the_one_that_is_built_anew(steps in proptest::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(run(steps))?;
    }
}

/// What the table should be.
#[derive(Clone, Default)]
struct Model {
    rows: BTreeMap<i64, String>,
    /// The keys of the rows that the present generation brought.
    of_generation: BTreeSet<i64>,
}

impl Model {
    fn commit(&mut self, step: &Step, word: &str, sweep: bool) {
        if step.truncates {
            (self.rows, self.of_generation) = Default::default();
        }
        for key in &step.upserts {
            self.rows.insert(*key, word.to_owned());
            self.of_generation.insert(*key);
        }
        step.deletes.iter().for_each(|key| drop(self.rows.remove(key)));
        if sweep {
            self.rows.retain(|key, _| self.of_generation.contains(key));
        }
    }
}

async fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let world = World::new();
    let mut life = Life::begin(&world, &words(Mode::Upsert), 1).await;
    let mut model = Model::default();
    // What the table was after each commit: its snapshot and rows.
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
                let (snapshot, then): (i64, Model) = past.remove(past.len() - 2);
                past.pop();
                world.roll_back("words", snapshot).await;
                model = then.clone();
                past.push((snapshot, then));
            }
            _ => {}
        }
        let recovered = contract::Sink::recover(&life.sink, &life.table).await.unwrap();
        (life.state, life.token) = (recovered.value, recovered.token);

        if step.generation == Generation::Begins {
            life.begin_generation(number as u64 + 1).await;
            model.of_generation.clear();
        }
        let sweep = step.generation == Generation::Ends && life.state.as_ref().is_some_and(|state| state.generation > 0);

        let word = format!("step {number}");
        let upserts: Vec<(i64, &str)> = step.upserts.iter().map(|key| (*key, word.as_str())).collect();
        let staged = life.write(&upserts, &step.deletes).await;
        let request = CommitRequest { truncate_first: step.truncates, sweep, ..life.request(vec![staged]) };
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
        model.commit(&step, &word, sweep);
        past.push((world.load("words").await.metadata.current_snapshot_id().unwrap(), model.clone()));

        prop_assert_eq!(&life.rows().await, &model.rows);
        let kept = life.committer.places(0..40).await;
        let mut anew = Life::begin(&world, &words(Mode::Upsert), incarnation).await;
        let built = anew.committer.places(0..40).await;
        prop_assert_eq!(&kept, &built);
        prop_assert_eq!(kept.keys().copied().collect::<Vec<_>>(), model.rows.keys().copied().collect::<Vec<_>>());
    }
    Ok(())
}
