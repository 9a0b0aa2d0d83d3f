//! What a seed makes of snapshots: whether the source can be read in chunks, which tables are, how late it shows what is in its log.

use crate::random::Random;
use crate::scenario::Scenario;
use crate::swarm::Rates;
use crate::workload::{Join, Kind, Truncate, Workload};

/// Half of the sources can be read in chunks.
pub(crate) fn decide(scenario: &mut Scenario, rates: &mut Rates, random: &mut Random) {
    let Scenario { options, workload, .. } = scenario;
    if random.chance(500) || options.stopped.is_some() {
        return;
    }
    options.chunks = true;
    options.chunks_max = random.range(1, 4);
    options.chunk_rows = random.range(1, 5);
    options.chunk_bytes = random.range(10, 60);
    options.chunk_budget = random.range(50, 200);
    options.touched_keys = random.range(2, 20);
    options.visibility_interval = random.range(2, 20);
    rates.resnapshots = random.sometimes(500, 20);
    for table in workload.tables.iter_mut().filter(|t| t.keyed) {
        // What a snapshot shows of a table whose TRUNCATE is passed over is another table.
        table.truncate = Truncate::Propagates;
        if random.chance(600) {
            table.join = Join::Snapshot;
        }
        table.anew = random.chance(800);
    }
    spread_keys(workload, random);
    hide(workload, random);
}

/// More keys: a transaction can be hidden only until another one writes one of its keys. A key's remainder stays its stream.
fn spread_keys(workload: &mut Workload, random: &mut Random) {
    let (times, step) = (*random.pick(&[1, 2, 4]), 4 * workload.streams() as u64);
    let mut spread = |key: &mut u8| *key += (random.below(times) * step) as u8;
    for change in workload.transactions.iter_mut().flat_map(|t| &mut t.changes) {
        match &mut change.kind {
            Kind::Set(key, _) | Kind::Gone(key) => spread(key),
            Kind::Moved(from, to, _) => {
                spread(from);
                spread(to);
            }
            Kind::Truncated | Kind::Schema | Kind::Refused => {}
        }
    }
}

/// Some transactions are in the log before they are visible, some began long before; of some sources nothing else can be proven.
fn hide(workload: &mut Workload, random: &mut Random) {
    let exact = random.chance(600);
    let lag = *random.pick(&[0, 4, 15, 40, 120]);
    let long = *random.pick(&[0, 50, 200]);
    let late = |random: &mut Random, most: u64| if random.chance(700) { random.below(most + 1) } else { 0 };
    for transaction in &mut workload.transactions {
        let most = if random.chance(100) { lag * 4 } else { lag };
        transaction.hidden = late(random, most);
        let early = if random.chance(long) { random.range(20, 200) } else { random.below(4) };
        // Nothing began before there was a log.
        transaction.early = early.min(transaction.time);
        transaction.unlisted = if exact { 0 } else { late(random, lag / 2 + 1) };
    }
}
