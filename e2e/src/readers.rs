//! What programs that have nothing of ours say about a warehouse. They live in `e2e/readers/` and each tells at its top what
//! it does; here they are started and believed.

use std::path::Path;
use std::process::Command;

use crate::{Ended, Process, python, root};

/// What a warehouse is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Expectation<'a> {
    /// The warehouse's folder.
    pub warehouse: &'a Path,
    /// The namespace of its tables.
    pub namespace: &'a str,
    /// The change file from which the expected state is folded.
    pub changes: &'a Path,
    /// The description of the tables.
    pub tables: &'a Path,
}

impl Expectation<'_> {
    /// Reads every table with DuckDB and PyIceberg and compares every value. `options`: `--selftest`, `--reader NAME`.
    pub fn compare(&self, options: &[&str]) -> Ended {
        self.ask("compare.py", options)
    }

    /// Compares every stored position of the pipeline with the rows that it stands beside.
    pub fn positions(&self, pipeline: &str, options: &[&str]) -> Ended {
        self.ask("positions.py", &[&["--pipeline", pipeline], options].concat())
    }

    /// Both, as one answer: nothing, or all that is wrong.
    pub fn judge(&self, pipeline: &str) -> Result<(), String> {
        let verdicts = [self.compare(&[]), self.positions(pipeline, &[])];
        let faults: Vec<String> =
            verdicts.iter().filter(|said| said.code != Some(0)).map(|said| format!("{}{}", said.stdout, said.stderr)).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }

    fn ask(&self, program: &str, options: &[&str]) -> Ended {
        let mut command = reader(program);
        command.arg("--warehouse").arg(self.warehouse).args(["--namespace", self.namespace]);
        command.arg("--changes").arg(self.changes).arg("--tables").arg(self.tables).args(options);
        Process::start(command).wait()
    }
}

/// A program of `e2e/readers/`, to be given arguments.
pub fn reader(program: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(root().join("e2e/readers").join(program)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// What the files of a warehouse say by themselves: see `evidence.py`.
pub fn evidence(warehouse: &Path, namespace: &str) -> serde_json::Value {
    let mut command = reader("evidence.py");
    command.arg("--warehouse").arg(warehouse).args(["--namespace", namespace]);
    let said = Process::start(command).wait().expect_code(0);
    serde_json::from_str(&said.stdout).expect("evidence.py prints JSON")
}

/// What DuckDB answers to `SELECT EXPRESSIONS FROM table`, as texts.
pub fn query(warehouse: &Path, namespace: &str, table: &str, expressions: &[&str]) -> Vec<String> {
    query_as("duckdb", warehouse, namespace, table, expressions)
}

/// The same of the rows that one of [`READERS`] finds.
pub fn query_as(name: &str, warehouse: &Path, namespace: &str, table: &str, expressions: &[&str]) -> Vec<String> {
    ask_about(name, warehouse, namespace, table, expressions)
}

/// The names of a table's columns, as one of [`READERS`] finds them.
pub fn columns(name: &str, warehouse: &Path, namespace: &str, table: &str) -> Vec<String> {
    ask_about(name, warehouse, namespace, table, &["--columns"])
}

fn ask_about(name: &str, warehouse: &Path, namespace: &str, table: &str, what: &[&str]) -> Vec<String> {
    let mut command = reader("query.py");
    command.arg("--warehouse").arg(warehouse).args(["--namespace", namespace, "--table", table, "--reader", name]);
    command.args(what);
    let said = Process::start(command).wait().expect_code(0);
    serde_json::from_str(&said.stdout).expect("query.py prints JSON")
}

/// The engines that read a warehouse, each with nothing of ours and nothing of the other's.
pub const READERS: [&str; 2] = ["duckdb", "pyiceberg"];

/// What a warehouse stores about itself, and answers to questions (table, expression) about the same moment: see `states.py`. `None` if
/// somebody holds the catalogue's lock, as a process does that was frozen with it.
pub fn states(warehouse: &Path, namespace: &str, questions: &[(&str, &str)], patience_seconds: u32) -> Option<serde_json::Value> {
    let mut command = reader("states.py");
    command.arg("--warehouse").arg(warehouse).args(["--namespace", namespace, "--patience", &patience_seconds.to_string()]);
    for (table, expression) in questions {
        command.args(["--ask", table, expression]);
    }
    let said = Process::start(command).wait().expect_code(0);
    serde_json::from_str(&said.stdout).expect("states.py prints JSON")
}

/// What a process used in all.
#[derive(Clone, Debug)]
pub struct Used {
    /// How it ended.
    pub ended: Ended,
    /// Its resident memory at its highest (VmHWM), in KiB.
    pub resident_kib_max: u64,
    /// CPU time, user and system.
    pub cpu_seconds: f64,
    /// Time on the clock.
    pub wall_seconds: f64,
}

/// Runs a command to its end and tells what it used.
pub fn measure(command: &Command) -> Used {
    let told = tempfile::NamedTempFile::new().expect("a file");
    let mut measured = reader("measure.py");
    measured.arg(told.path()).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        measured.current_dir(folder);
    }
    let ended = Process::start(measured).wait();
    let used: serde_json::Value =
        serde_json::from_slice(&std::fs::read(told.path()).expect("a file can be read")).expect("measure.py writes JSON");
    let number = |name: &str| used[name].as_f64().unwrap_or_else(|| panic!("measure.py tells no {name}"));
    Used {
        ended,
        resident_kib_max: number("resident_kib_max") as u64,
        cpu_seconds: number("user_seconds") + number("system_seconds"),
        wall_seconds: number("wall_seconds"),
    }
}
