//! What happens when: the steps of a scenario, or a swarm that is asked for each occasion.

use std::collections::BTreeMap;

use fault_scenarios::{Moment, Step, Swarm, Then, When};

/// Where steps come from.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// From a scenario.
    Written(BTreeMap<When, Vec<Then>>),
    /// From chance.
    Swarm(Swarm),
}

impl Schedule {
    /// These steps.
    pub fn of(steps: &[Step]) -> Self {
        let mut written = BTreeMap::<When, Vec<Then>>::new();
        for step in steps {
            written.entry(step.when).or_default().push(step.then.clone());
        }
        Self::Written(written)
    }

    /// What happens on an occasion.
    pub fn at(&self, when: When, moment: &Moment<'_>) -> Vec<Then> {
        match self {
            Schedule::Written(steps) => steps.get(&when).cloned().unwrap_or_default(),
            Schedule::Swarm(swarm) => swarm.at(when, moment),
        }
    }

    /// The times that it names.
    pub fn times(&self) -> Vec<u64> {
        let time = |when: &When| if let When::At(time) = when { Some(*time) } else { None };
        match self {
            Schedule::Written(steps) => steps.keys().filter_map(time).collect(),
            Schedule::Swarm(_) => vec![],
        }
    }
}
