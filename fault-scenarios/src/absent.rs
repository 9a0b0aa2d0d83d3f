//! What a seed makes of absent values: which updates leave large values out, and how long a pipeline looks for them.

use crate::random::Random;
use crate::scenario::Scenario;
use crate::workload::Kind;

/// Most of the sources that can be read leave values out. A table without a key has none that could be read again.
pub(crate) fn decide(scenario: &mut Scenario, random: &mut Random) {
    let Scenario { options, workload, .. } = scenario;
    if !options.chunks || random.chance(300) {
        return;
    }
    options.absent_ages = random.range(3, 8);
    options.absent_keys = random.range(3, 40);
    options.absent_holes = random.range(2, 20);
    options.absent_bytes = random.range(10, 60);
    options.absent_attempts = random.range(2, 12);
    let rates = [*random.pick(&[0, 150, 400, 800]), *random.pick(&[150, 400, 800])];
    for change in workload.transactions.iter_mut().flat_map(|t| &mut t.changes) {
        let can = workload.tables[change.table].keyed && matches!(change.kind, Kind::Set(..) | Kind::Moved(..));
        let without = rates.map(|rate| random.chance(rate));
        if can {
            change.without = without;
        }
    }
}
