//! Runs seeds, and shows what happened in one.
#![expect(clippy::print_stdout, reason = "a command line program speaks to its user")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use kernel::planted::PlantedBug;
use sim::engine;

const USAGE: &str = "\
explore --seeds N [--base S] [--hashes] [--bug NAME]   run seeds, stop at none, tell what broke
replay --seed S [--bug NAME]                           run one seed and print what happened
planted [--seeds N] [--base S] [--bug NAME]            find each planted bug: a Markdown table
marks [--seeds N] [--base S]                           how often each rare path was taken";

struct Arguments(Vec<String>);

impl Arguments {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|a| a == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.replace('_', "").parse().map_err(|_| format!("{name} takes a number, not '{text}'"))
    }

    fn bug(&self) -> Result<Option<PlantedBug>, String> {
        let Some(name) = self.text("--bug") else { return Ok(None) };
        let found = PlantedBug::ALL.iter().find(|b| b.name() == name);
        found.map(|b| Some(*b)).ok_or_else(|| format!("there is no planted bug '{name}'"))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let arguments = Arguments(words.collect());
    let result = match command.as_str() {
        "explore" => explore(&arguments),
        "replay" => replay(&arguments),
        "planted" => planted(&arguments),
        "marks" => marks(&arguments),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

fn explore(arguments: &Arguments) -> Result<ExitCode, String> {
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let hashes = arguments.0.iter().any(|a| a == "--hashes");
    let bug = arguments.bug()?;
    let begun = std::time::Instant::now();
    let (mut broken, mut inputs, mut tables, mut hash) = (BTreeMap::<&str, Vec<u64>>::new(), 0, (0, 0), 0u64);
    for seed in base..base + seeds {
        let report = engine::run(seed, bug, false);
        inputs += report.inputs;
        tables = (tables.0 + report.tables.0, tables.1 + report.tables.1);
        hash = hash.rotate_left(1) ^ report.hash;
        if hashes {
            println!("{seed} {:016x}", report.hash);
        }
        if let Some(violation) = report.violation {
            println!("seed {seed}: {violation}");
            broken.entry(violation.rule).or_default().push(seed);
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let violations: usize = broken.values().map(Vec::len).sum();
    println!("{seeds} seeds from {base}: {violations} violations, {inputs} inputs, hash {hash:016x}");
    println!("{} of {} tables needed a snapshot at the end", tables.1, tables.0);
    println!("{took:.1} s, {:.0} seeds/s, {:.0} inputs/s", seeds as f64 / took, inputs as f64 / took);
    for (rule, seeds) in broken {
        println!("{rule}: {} ({:?})", seeds.len(), &seeds[..seeds.len().min(8)]);
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn replay(arguments: &Arguments) -> Result<ExitCode, String> {
    let report = engine::run(arguments.number("--seed", 0)?, arguments.bug()?, true);
    for line in &report.trace {
        println!("{line}");
    }
    println!("hash {:016x}", report.hash);
    match report.violation {
        Some(violation) => {
            println!("{violation}");
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn planted(arguments: &Arguments) -> Result<ExitCode, String> {
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let only = arguments.bug()?;
    println!("| bug | first seed | hits/seeds | invariant | first seed by it | others |\n|---|---|---|---|---|---|");
    for bug in PlantedBug::ALL.iter().filter(|b| only.is_none_or(|only| only == **b)) {
        let (mut first, mut claimed, mut by, mut run) = (None, None, BTreeMap::<&str, u64>::new(), 0);
        for seed in base..base + seeds {
            run += 1;
            if let Some(violation) = engine::run(seed, Some(*bug), false).violation {
                first.get_or_insert(seed);
                if violation.rule == bug.invariant() {
                    claimed.get_or_insert(seed);
                }
                *by.entry(violation.rule).or_default() += 1;
                if by.values().sum::<u64>() >= 20 && claimed.is_some() {
                    break;
                }
            }
        }
        let hits: u64 = by.values().sum();
        let own = by.remove(bug.invariant()).unwrap_or(0);
        let others: Vec<String> = by.iter().map(|(rule, n)| format!("{rule} {n}")).collect();
        let seed = |seed: Option<u64>| seed.map_or_else(|| "-".to_string(), |s| s.to_string());
        let (name, rule, others) = (bug.name(), bug.invariant(), others.join(", "));
        println!("| {name} | {} | {hits}/{run} | {rule} {own} | {} | {others} |", seed(first), seed(claimed));
    }
    Ok(ExitCode::SUCCESS)
}

fn marks(arguments: &Arguments) -> Result<ExitCode, String> {
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let mut marks = BTreeMap::<&str, u64>::new();
    for seed in base..base + seeds {
        for (mark, times) in engine::run(seed, None, false).marks {
            *marks.entry(mark).or_default() += times;
        }
    }
    for (mark, times) in marks {
        println!("{times:>10} {mark}");
    }
    Ok(ExitCode::SUCCESS)
}
