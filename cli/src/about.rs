//! The commands that need no pipeline: the file's schema, the drivers, shell completions, the version.

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::args::Args;
use crate::drivers;
use crate::grid::Grid;
use crate::output::Answer;

/// The commit that this binary was built from; empty if that was no checkout.
const COMMIT: &str = env!("URUTAU_COMMIT");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `urutau schema`: the same for people and programs.
pub(crate) fn schema() -> Answer {
    let schema = spec::schema();
    Answer::done(format!("{schema:#}"), schema)
}

/// `urutau drivers`
pub(crate) fn list_drivers() -> Answer {
    let registry = drivers::registry();
    let sources: Vec<_> = registry.sources().map(|driver| (driver.kind(), driver.summary())).collect();
    let sinks: Vec<_> = registry.sinks().map(|driver| (driver.kind(), driver.summary())).collect();
    let mut grid = Grid::new(&["", "", ""]);
    let both = sources.iter().map(|driver| ("source", driver)).chain(sinks.iter().map(|driver| ("sink", driver)));
    for (role, (kind, summary)) in both {
        grid.row([role.to_owned(), (*kind).to_owned(), (*summary).to_owned()]);
    }
    let list = |drivers: &[(&str, &str)]| -> Vec<_> {
        drivers.iter().map(|(kind, summary)| json!({ "kind": kind, "summary": summary })).collect()
    };
    let json = json!({ "sources": list(&sources), "sinks": list(&sinks) });
    Answer::done(grid.text(), json)
}

/// `urutau completions`
pub(crate) fn completions(shell: Shell) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "urutau", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "shell": shell.to_string(), "script": script });
    Answer::done(script, json)
}

/// `urutau version`
pub(crate) fn version() -> Answer {
    let registry = drivers::registry();
    let sources: Vec<&str> = registry.sources().map(|driver| driver.kind()).collect();
    let sinks: Vec<&str> = registry.sinks().map(|driver| driver.kind()).collect();
    let built_from = if COMMIT.is_empty() { "no checkout" } else { COMMIT };
    let text = format!(
        "urutau {VERSION}\nbuilt from  {built_from}\nsources     {}\nsinks       {}\n",
        sources.join(", "),
        sinks.join(", ")
    );
    let commit = if COMMIT.is_empty() { None } else { Some(COMMIT) };
    Answer::done(text, json!({ "version": VERSION, "commit": commit, "sources": sources, "sinks": sinks }))
}
