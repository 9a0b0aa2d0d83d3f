//! Runs seeds, and shows what happened in one.
#![expect(clippy::print_stdout, reason = "a command line program speaks to its user")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fault_scenarios::{Engine, Finds};
use kernel::planted::PlantedBug;
use sim::engine::{self, Report};
use sim::oracle::Violation;
use sim::shrink::shrink;
use sim::{exhaustive, files, owners, planted, production};

const USAGE: &str = "\
explore --seeds N [--base S] [--hashes] [--bug NAME]   run seeds, tell what broke; --hashes: seed, inputs and hash of each
explore --minutes N                                    run fresh seeds; what breaks is shrunk into regressions/
replay FILE | --seed S [--bug NAME] [--everything]     play a scenario or a seed and tell what happens; or what `urutau run --trace` wrote
record --seed S [--bug NAME]                           print a seed's run as a scenario
shrink --seed S | --bug NAME [--seeds N] [--base S]    the smallest scenario of what a seed finds
planted                                                what finds each planted bug: the table of docs/simulation.md
planted --measure [--seeds N] [--base S] [--bug NAME]  how soon chance finds each planted bug, as the code is now
exhaust [--bound NAME] [--world N] [--bug NAME]        every run of tiny worlds: small (as in the tests), larger, largest
exhaust --planted | --measure [--states N]             which wrong rules the small ones find: as kept, or as the code is now
owners [--seeds N] [--base S] [--bug NAME] [--hashes]  several owners a table: run seeds, tell what broke and which paths were taken
owners --seed S | --story NAME [--bug NAME]            one of them, told
marks [--seeds N] [--base S]                           how often each rare path was taken
format                                                 rewrite the scenario files in their one form";

/// Scenarios that shrinking may play.
const SHRINK_TRIES_MAX: usize = 20_000;

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
        "format" => format_files(),
        "record" => record(&arguments),
        "shrink" => shrink_run(&arguments),
        "marks" => marks(&arguments),
        "owners" => several_owners(&arguments),
        "exhaust" => exhaust(&arguments),
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
    let minutes = arguments.number("--minutes", 0)?;
    let fresh = if minutes > 0 { fresh_base() } else { 0 };
    let (seeds, base) =
        (arguments.number("--seeds", if minutes > 0 { u64::MAX / 2 } else { 1_000 })?, arguments.number("--base", fresh)?);
    let hashes = arguments.0.iter().any(|a| a == "--hashes");
    let bug = arguments.bug()?;
    let begun = std::time::Instant::now();
    let over = |run: u64| run >= seeds || (minutes > 0 && begun.elapsed().as_secs() >= minutes * 60);
    let (mut broken, mut inputs, mut tables, mut hash, mut run) = (BTreeMap::<&str, Vec<u64>>::new(), 0, (0, 0), 0u64, 0);
    while !over(run) {
        let seed = base + run;
        run += 1;
        let report = engine::run(seed, bug, false);
        inputs += report.inputs;
        tables = (tables.0 + report.tables.0, tables.1 + report.tables.1);
        hash = hash.rotate_left(1) ^ report.hash;
        if hashes {
            println!("{seed} {} {:016x}", report.inputs, report.hash);
        }
        if let Some(violation) = &report.violation {
            println!("seed {seed}: {violation}");
            if minutes > 0 && !broken.contains_key(violation.rule) {
                println!("shrunk: {}", keep(seed, bug, &report, violation)?.display());
            }
            broken.entry(violation.rule).or_default().push(seed);
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let violations: usize = broken.values().map(Vec::len).sum();
    println!("{run} seeds from {base}: {violations} violations, {inputs} inputs, hash {hash:016x}");
    println!("{} of {} tables needed a snapshot at the end", tables.1, tables.0);
    println!("{took:.1} s, {:.0} seeds/s, {:.0} inputs/s", run as f64 / took, inputs as f64 / took);
    for (rule, seeds) in broken {
        println!("{rule}: {} ({:?})", seeds.len(), &seeds[..seeds.len().min(8)]);
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Seeds that nobody has run.
fn fresh_base() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_micros() as u64)
}

/// Shrinks what a seed found, and keeps it among the regressions; with a planted bug it is printed, since that is none.
fn keep(seed: u64, bug: Option<PlantedBug>, report: &Report, violation: &Violation) -> Result<PathBuf, String> {
    let mut small = shrink(&engine::story_of(seed, report), bug, violation.rule, SHRINK_TRIES_MAX).scenario;
    small.about = vec![
        format!("Found by chance, and not understood yet: {} breaks.", violation.rule),
        "Tell here which class of bugs it is and which rule it is about, and give the file a name that says so.".into(),
    ];
    let folder = if bug.is_some() { std::env::temp_dir() } else { files::folder("regressions") };
    let path = folder.join(format!("{}-{seed}.scenario", violation.rule));
    std::fs::write(&path, small.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn record(arguments: &Arguments) -> Result<ExitCode, String> {
    let (seed, bug) = (arguments.number("--seed", 0)?, arguments.bug()?);
    print!("{}", engine::story_of(seed, &engine::run(seed, bug, false)));
    Ok(ExitCode::SUCCESS)
}

/// What a seed finds, shrunk; without one, what the first seed finds in which a planted bug is found as it should be.
fn shrink_run(arguments: &Arguments) -> Result<ExitCode, String> {
    let bug = arguments.bug()?;
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let found = |seed: &u64| {
        let violation = engine::run(*seed, bug, false).violation?;
        bug.is_none_or(|bug| violation.rule == bug.invariant()).then_some((*seed, violation))
    };
    let first = match arguments.text("--seed") {
        Some(_) => found(&arguments.number("--seed", 0)?),
        None => (base..base + seeds).find_map(|seed| found(&seed)),
    };
    let (seed, violation) = first.ok_or("nothing is found")?;
    let story = engine::story_of(seed, &engine::run(seed, bug, false));
    let mut shrunk = shrink(&story, bug, violation.rule, SHRINK_TRIES_MAX);
    shrunk.scenario.finds = bug.map(|b| Finds { bug: b.name().into(), invariant: violation.rule.into() }).into_iter().collect();
    let (from, to, tries) = (story.size(), shrunk.scenario.size(), shrunk.tries);
    shrunk.scenario.about = vec![format!("Seed {seed}, {}: from {from} to {to} in {tries} tries.", violation.rule)];
    print!("{}", shrunk.scenario);
    Ok(ExitCode::SUCCESS)
}

fn replay(arguments: &Arguments) -> Result<ExitCode, String> {
    let everything = arguments.0.iter().any(|a| a == "--everything");
    let named = arguments.0.first().filter(|word| !word.starts_with("--"));
    if let Some(trace) = named.map(|file| trace_in(Path::new(file))).transpose()?.flatten() {
        return replay_trace(trace, arguments.bug()?, everything);
    }
    let (scenario, bug) = match named {
        Some(file) => (files::read(Path::new(file))?.1, arguments.bug()?),
        None => {
            let seed = match std::env::var("SIM_SEED") {
                Ok(seed) if arguments.text("--seed").is_none() => seed.parse().map_err(|_| "SIM_SEED is no number")?,
                _ => arguments.number("--seed", 0)?,
            };
            let bug = arguments.bug()?;
            (engine::story_of(seed, &engine::run(seed, bug, false)), bug)
        }
    };
    let report = if everything { engine::play(&scenario, bug, true) } else { engine::tell(&scenario, bug) };
    for engine in Engine::ALL {
        let lacks = engine.lacks_for(&scenario);
        println!("{}: {}", engine.name(), if lacks.is_empty() { "can play it".into() } else { lacks.join("; ") });
    }
    println!();
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

/// The file, if it begins like a trace.
fn trace_in(file: &Path) -> Result<Option<BufReader<File>>, String> {
    let read = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut reader = BufReader::new(File::open(file).map_err(read)?);
    let is_trace = production::is_trace(reader.fill_buf().map_err(read)?);
    Ok(is_trace.then_some(reader))
}

/// What a process in production wrote. The exit code says what came of it.
fn replay_trace(trace: BufReader<File>, bug: Option<PlantedBug>, everything: bool) -> Result<ExitCode, String> {
    let replayed = production::replay(trace, bug, everything, |line| println!("{line}"));
    for waiting in &replayed.waiting {
        println!("it waits for {waiting}");
    }
    if !replayed.by.is_empty() {
        println!("written by {}, {} steps replayed", replayed.by, replayed.steps);
    }
    match &replayed.end {
        Ok(_) => println!("the machines did the same, and every rule was kept"),
        Err(stopped) if replayed.exit_code() == 3 => {
            println!("the machines did the same, and every rule was kept, up to here\n{stopped}");
        }
        Err(stopped) => println!("{stopped}"),
    }
    Ok(ExitCode::from(replayed.exit_code()))
}

fn planted(arguments: &Arguments) -> Result<ExitCode, String> {
    if arguments.0.iter().any(|a| a == "--measure") || arguments.text("--bug").is_some() {
        return measure(arguments);
    }
    print!("{}", planted::table()?);
    Ok(ExitCode::SUCCESS)
}

/// How soon chance finds each planted bug, as the code is now.
fn measure(arguments: &Arguments) -> Result<ExitCode, String> {
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let only = arguments.bug()?;
    println!("| bug | first seed | hits/seeds | invariant | first seed by it | others |\n|---|---|---|---|---|---|");
    for bug in PlantedBug::ALL.iter().filter(|b| only.is_none_or(|only| only == **b)) {
        let (mut first, mut claimed, mut by, mut run) = (None, None, BTreeMap::<&str, u64>::new(), 0);
        for seed in base..base + seeds {
            run += 1;
            if let Some(violation) = planted::run(seed, *bug) {
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

fn format_files() -> Result<ExitCode, String> {
    for path in files::paths("scenarios").iter().chain(&files::paths("regressions")) {
        let (text, scenario) = files::read(path)?;
        if text != scenario.to_string() {
            std::fs::write(path, scenario.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
            println!("{}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every run of tiny worlds.
fn exhaust(arguments: &Arguments) -> Result<ExitCode, String> {
    let has = |name: &str| arguments.0.iter().any(|a| a == name);
    if has("--planted") {
        print!("{}", exhaustive::planted::table());
        return Ok(ExitCode::SUCCESS);
    }
    if has("--measure") {
        return exhaust_planted(arguments);
    }
    let bound = arguments.text("--bound").unwrap_or("small");
    let worlds = exhaustive::worlds(bound).ok_or_else(|| format!("there is no bound '{bound}'"))?;
    let (bug, states_max) = (arguments.bug()?, arguments.number("--states", exhaustive::STATES_MAX as u64)? as usize);
    let begun = std::time::Instant::now();
    let (mut states, mut steps, mut broken) = (0, 0, 0);
    let only = arguments.text("--world").map(|_| arguments.number("--world", 0)).transpose()?;
    for (_, small) in (0..).zip(&worlds).filter(|(number, _)| only.is_none_or(|only| only == *number)) {
        let before = begun.elapsed().as_secs_f64();
        let found = exhaustive::search(small, bug, states_max).map_err(|unfinished| format!("{}: {unfinished}", small.name))?;
        states += found.states;
        steps += found.steps;
        println!(
            "{:>9} states {:>9} steps {:>6.1} s  {}",
            found.states,
            found.steps,
            begun.elapsed().as_secs_f64() - before,
            small.name
        );
        if let Some((violation, way)) = found.violation {
            broken += 1;
            println!("{}\n{violation}", way.join("\n"));
            break;
        }
    }
    println!("{states} states, {steps} steps, {:.1} s", begun.elapsed().as_secs_f64());
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Which wrong rules the small worlds find, as the code is now.
fn exhaust_planted(arguments: &Arguments) -> Result<ExitCode, String> {
    let (states_max, only) = (arguments.number("--states", 20_000)? as usize, arguments.bug()?);
    let worlds = exhaustive::worlds("small").unwrap_or_default();
    for bug in PlantedBug::ALL.iter().filter(|b| only.is_none_or(|only| only == **b)) {
        match exhaustive::planted::measure(*bug, &worlds, states_max) {
            Some((world, states, violation)) => {
                println!("| {} | {world} | {} | {states} | {} |", bug.name(), violation.rule, worlds[world].name);
            }
            None => println!("| {} | - | - | - | |", bug.name()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Several owners of a table: seeds, or one of them with all that happens in it.
fn several_owners(arguments: &Arguments) -> Result<ExitCode, String> {
    let bug = arguments.bug()?;
    let told = owners::stories().into_iter().find(|told| Some(told.name) == arguments.text("--story"));
    if arguments.text("--seed").is_some() || arguments.text("--story").is_some() {
        let report = match (told, arguments.text("--story")) {
            (Some(told), _) => owners::play(&told.story, bug, true),
            (None, Some(name)) => return Err(format!("there is no story '{name}'")),
            (None, None) => owners::run(arguments.number("--seed", 0)?, bug, true),
        };
        println!("{}\nhash {:016x}", report.trace.join("\n"), report.hash);
        return Ok(match report.violation {
            Some(violation) => {
                println!("{violation}");
                ExitCode::FAILURE
            }
            None => ExitCode::SUCCESS,
        });
    }
    let (seeds, base) = (arguments.number("--seeds", 1_000)?, arguments.number("--base", 0)?);
    let hashes = arguments.0.iter().any(|a| a == "--hashes");
    let begun = std::time::Instant::now();
    let (mut broken, mut inputs, mut marks) = (BTreeMap::<&str, Vec<u64>>::new(), 0, BTreeMap::<&str, u64>::new());
    for seed in base..base + seeds {
        let report = owners::run(seed, bug, false);
        inputs += report.inputs;
        report.marks.iter().for_each(|(mark, times)| *marks.entry(mark).or_default() += times);
        if hashes {
            println!("{seed} {} {:016x}", report.inputs, report.hash);
        }
        if let Some(violation) = report.violation {
            let few = broken.values().map(Vec::len).sum::<usize>() < 20;
            broken.entry(violation.rule).or_default().push(seed);
            if few {
                println!("seed {seed}: {violation}");
            }
        }
    }
    let took = begun.elapsed().as_secs_f64();
    for (mark, times) in &marks {
        println!("{times:>10} {mark}");
    }
    println!("{seeds} seeds from {base}, {inputs} inputs, {took:.1} s, {:.0} inputs/s", inputs as f64 / took);
    for (rule, seeds) in &broken {
        println!("{rule}: {} ({:?})", seeds.len(), &seeds[..seeds.len().min(8)]);
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
