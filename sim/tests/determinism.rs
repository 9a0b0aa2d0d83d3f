//! The same seed gives the same run: in one process twice, and in two processes byte for byte.

use std::process::Command;

use sim::engine;

const SEEDS: u64 = 60;

#[test]
fn a_seed_gives_the_same_run_in_another_process() {
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["explore", "--seeds", &SEEDS.to_string(), "--base", "7000", "--hashes"])
        .output()
        .expect("the simulator's program runs");
    let text = String::from_utf8(output.stdout).expect("it speaks text");
    let there: Vec<&str> = text.lines().take(SEEDS as usize).collect();
    let here: Vec<String> =
        (7000..7000 + SEEDS).map(|seed| format!("{seed} {:016x}", engine::run(seed, None, false).hash)).collect();
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
