//! What a seed makes of logs of sets: which logs are, and in what order another server has the transactions.

use crate::random::Random;
use crate::scenario::Scenario;
use crate::swarm::Rates;
use crate::workload::{Kind, Workload};

/// Of the logs of several streams, two in five.
pub(crate) fn decide(scenario: &mut Scenario, rates: &mut Rates, random: &mut Random) {
    let Scenario { options, workload, .. } = scenario;
    if workload.streams.len() < 2 || options.stopped.is_some() || random.chance(600) {
        return;
    }
    options.sets = true;
    options.interleaves = false;
    rates.other_server = *random.pick(&[0, 10, 30, 60]);
    rates.lacks = *random.pick(&[0, 0, 15, 40]);
    if random.chance(500) {
        share_keys(workload);
    }
    let unused = *random.pick(&[0, 0, 100]);
    if unused == 0 && random.chance(100) {
        options.intervals = random.range(2, 5);
    }
    let lag = *random.pick(&[0, 10, 40, 80]);
    for transaction in &mut workload.transactions {
        // Some numbers are given to nothing: a hole that nothing fills.
        transaction.gap = if random.chance(unused) { random.range(1, 3) } else { 0 };
        transaction.late = if random.chance(500) { random.below(lag + 1) } else { 0 };
    }
}

/// Any origin writes any key.
fn share_keys(workload: &mut Workload) {
    let streams = workload.streams.len() as u8;
    for change in workload.transactions.iter_mut().flat_map(|t| &mut t.changes) {
        match &mut change.kind {
            Kind::Set(key, _) | Kind::Gone(key) => *key /= streams,
            Kind::Moved(from, to, value) => {
                (*from, *to) = (*from / streams, *to / streams);
                if from == to {
                    change.kind = Kind::Set(*to, *value);
                }
            }
            Kind::Truncated | Kind::Schema | Kind::Refused => {}
        }
    }
}
