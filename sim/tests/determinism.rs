//! The same seed gives the same run: in one process twice, and in two processes byte for byte.

use std::process::Command;

use fault_scenarios::{Change, Command as Name, Join, Kind, Scenario, Step, Then, What, When};
use sim::engine;

const SEEDS: u64 = 20;

/// What the first process asks for first.
const FIRST: Name = Name { process: 0, what: What::ReadRecord, table: None, nth: 1 };

#[test]
fn a_seed_gives_the_same_run_in_another_process() {
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["explore", "--seeds", &SEEDS.to_string(), "--base", "7000", "--hashes"])
        .output()
        .expect("the simulator's program runs");
    let text = String::from_utf8(output.stdout).expect("it speaks text");
    let there: Vec<&str> = text.lines().take(SEEDS as usize).collect();
    let line = |seed: u64| {
        let report = engine::run(seed, None, false);
        format!("{seed} {} {:016x}", report.inputs, report.hash)
    };
    let here: Vec<String> = (7000..7000 + SEEDS).map(line).collect();
    assert_eq!(there, here);
}

#[test]
fn a_trace_changes_nothing() {
    for seed in 7000..7020 {
        let (silent, told) = (engine::run(seed, None, false), engine::run(seed, None, true));
        assert_eq!((silent.hash, silent.inputs), (told.hash, told.inputs), "seed {seed}");
        assert_eq!(silent.trace, Vec::<String>::new());
        assert!(told.trace.len() > 100);
    }
}

#[test]
fn another_seed_gives_another_run() {
    let hashes: std::collections::BTreeSet<u64> = (7000..7050).map(|seed| engine::run(seed, None, false).hash).collect();
    assert_eq!(hashes.len(), 50);
}

/// The hash is of times, processes and everything that goes in, with its payload: another value of one row changes it.
#[test]
fn one_altered_byte_gives_another_hash() {
    for seed in 7000..7000 + SEEDS {
        // Where nothing goes wrong every row is read.
        let mut calm = Scenario { steps: vec![], ..engine::story_of(seed, &engine::run(seed, None, false)) };
        // A snapshot reads what a row is at last, a log all that it was.
        calm.workload.tables.iter_mut().filter(|t| t.join == Join::Snapshot).for_each(|t| t.join = Join::Beginning);
        let hash = engine::play(&calm, None, false).hash;
        let mut later = calm.clone();
        later.steps.push(Step::new(When::Sends(FIRST), Then::Takes(7)));
        assert_ne!(engine::play(&later, None, false).hash, hash, "seed {seed}: a later beginning");
        let mut other = calm.clone();
        let beginning = |change: &&mut Change| calm.workload.tables[change.table].join == Join::Beginning;
        let changes = other.workload.transactions.iter_mut().flat_map(|t| &mut t.changes).filter(beginning);
        let value =
            changes.into_iter().find_map(|change| if let Kind::Set(_, value) = &mut change.kind { Some(value) } else { None });
        *value.expect("a workload sets values") ^= 1 << 20;
        assert_ne!(engine::play(&other, None, false).hash, hash, "seed {seed}: another value");
    }
}
