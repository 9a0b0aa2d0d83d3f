//! Every run of a tiny world, instead of many runs of a large one: all orders of answers within the order law, every moment of a
//! crash, of a lost answer and of a transaction's becoming visible. States that were met are not met again.
//!
//! The machines are the real ones. Time stands still: every interval is zero, so whatever is due is due at once, and what only the
//! passing of time brings about is not searched. A question whose answer would say nothing new is not answered, since the machine
//! would ask again and be where it was; so a search ends. It goes on until nothing is left: a bound that it hits is an error.
//!
//! Each step is judged as in the simulator, by the machines' own `check` and by the functions of [`crate::oracle`]; and where
//! nothing is left to happen, everything must be copied and acknowledged.

mod fingerprint;
mod judge;
pub mod planted;
mod small;
mod state;
mod world;

use std::collections::{BTreeMap, HashMap, VecDeque};

use kernel::planted::PlantedBug;

pub use small::{Small, worlds};
use state::{Action, State};

use crate::oracle::Violation;

/// States of one search: what a machine of a few gigabytes has room for.
pub const STATES_MAX: usize = 3_000_000;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// States that differ.
    pub states: usize,
    /// Steps that were taken.
    pub steps: u64,
    /// How many states waited at most.
    pub waiting_most: usize,
    /// The first broken rule, and how it came to that.
    pub violation: Option<(Violation, Vec<String>)>,
    /// How often the machines took their rare paths, over all steps.
    pub marks: BTreeMap<&'static str, u64>,
}

/// A search that could not go on to its end proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The bound that it hit.
    pub states_max: usize,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "more than {} states: nothing is proven", self.states_max)
    }
}

/// Searches a small world. With a planted bug the shortest way to a broken rule comes first.
pub fn search(small: &Small, bug: Option<PlantedBug>, states_max: usize) -> Result<Found, Unfinished> {
    let mut found = Found { states: 1, steps: 0, waiting_most: 1, violation: None, marks: BTreeMap::new() };
    let mut first = State::first(small, bug);
    first.forget_counts();
    let at_first = first.fingerprint();
    // Of each state its fingerprint, and the step that led to it first. Two states with one fingerprint of 64 bits would be taken
    // for one: among a million states that happens once in tens of millions of searches.
    let mut met: HashMap<u64, (u64, Option<Action>)> = HashMap::from([(at_first, (0, None))]);
    let mut waiting = VecDeque::from([(at_first, first)]);
    while let Some((from, state)) = if bug.is_some() { waiting.pop_front() } else { waiting.pop_back() } {
        let actions = state.actions();
        if let Err(violation) = state.rests(&actions) {
            found.violation = Some((violation, way(&met, small, bug, from, None)));
            return Ok(found);
        }
        for action in actions {
            found.steps += 1;
            let mut next = state.clone();
            let judged = next.take(action);
            for (mark, times) in next.forget_counts() {
                *found.marks.entry(mark).or_default() += times;
            }
            if let Err(violation) = judged {
                found.violation = Some((violation, way(&met, small, bug, from, Some(action))));
                return Ok(found);
            }
            let to = next.fingerprint();
            if let std::collections::hash_map::Entry::Vacant(vacant) = met.entry(to) {
                vacant.insert((from, Some(action)));
                found.states += 1;
                waiting.push_back((to, next));
            }
        }
        found.waiting_most = found.waiting_most.max(waiting.len());
        if found.states > states_max {
            return Err(Unfinished { states_max });
        }
    }
    Ok(found)
}

/// How a state came about, told from the beginning.
fn way(
    met: &HashMap<u64, (u64, Option<Action>)>,
    small: &Small,
    bug: Option<PlantedBug>,
    mut to: u64,
    last: Option<Action>,
) -> Vec<String> {
    let mut actions: Vec<Action> = last.into_iter().collect();
    while let Some((from, Some(action))) = met.get(&to) {
        actions.push(*action);
        to = *from;
    }
    actions.reverse();
    let mut state = State::first(small, bug);
    let mut told = vec![];
    for action in actions {
        told.push(state.say(action));
        state.listen();
        // What it breaks is told by the search.
        let _ = state.take(action);
        told.extend(state.heard());
    }
    told
}
