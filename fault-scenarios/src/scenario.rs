//! A scenario: everything that decides about a run.

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::options::Options;
use crate::step::Step;
use crate::workload::Workload;

/// A story to be played, the same on every engine that can play it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// What it is about, for people: which class of bugs, which rule.
    pub about: Vec<String>,
    /// Wrong rules that it finds. By the rules a scenario is clean.
    pub finds: Vec<Finds>,
    /// Rare paths of the kernel that it takes, by their marks.
    pub reaches: Vec<String>,
    /// The pipeline's limits and its source's habits.
    pub options: Options,
    /// What the log says.
    pub workload: Workload,
    /// What goes wrong when. Two of one occasion happen in this order.
    pub steps: Vec<Step>,
    /// The small choices.
    pub dice: Dice,
}

/// A wrong rule, and the invariant that it breaks here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finds {
    /// The planted bug.
    pub bug: String,
    /// The invariant.
    pub invariant: String,
}

impl Scenario {
    /// When the last thing happens that is known beforehand.
    pub fn last_time(&self) -> u64 {
        self.steps.iter().map(Step::ends).max().unwrap_or(0).max(self.workload.last_time())
    }

    /// When everything heals.
    pub fn heals(&self) -> u64 {
        self.options.heals.unwrap_or(self.last_time().saturating_add(100))
    }

    /// How large it is: what a person has to read.
    pub fn size(&self) -> usize {
        let changes: usize = self.workload.transactions.iter().map(|t| 1 + t.changes.len()).sum();
        changes + self.steps.len() + self.workload.tables.len() + self.options.unusual().len() + self.dice.0.len()
    }
}
