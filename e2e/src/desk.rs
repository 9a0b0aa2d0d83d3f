//! A folder with a pipeline file, a warehouse and what a test puts beside them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Mark;
use crate::{Binary, Process, root, wait_until};

/// The description of the quickstart's tables that the independent readers compare with.
pub const TABLES_OF_THE_QUICKSTART: &str = "e2e/expected/quickstart.json";

/// A working place of its own: the working directory of every process that it starts.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// An empty one.
    pub fn new() -> Desk {
        // Everybody may enter, since some processes run as another user.
        let folder = tempfile::Builder::new().prefix("urutau-e2e-").tempdir().expect("a folder for a test");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("the folder's rights can be set");
        Desk { folder }
    }

    /// One with the quickstart's pipeline, its change file where it lies, and checkpoints of at most `rows_max` rows.
    pub fn quickstart(rows_max: usize) -> Desk {
        let example = root().join("examples/quickstart");
        let text = std::fs::read_to_string(example.join("pipeline.yaml")).expect("the quickstart's pipeline can be read");
        let changes = example.join("changes.jsonl");
        let text = swap(&text, "path: examples/quickstart/changes.jsonl", &format!("path: {}", changes.display()));
        let text = swap(&text, "checkpoint: { maxRows: 1500 }", &format!("checkpoint: {{ maxRows: {rows_max} }}"));
        Desk::new().with_pipeline(&text)
    }

    /// Writes the pipeline file.
    #[must_use]
    pub fn with_pipeline(self, text: &str) -> Desk {
        self.write("pipeline.yaml", text);
        self
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Adds to a file in it.
    pub fn append(&self, name: &str, content: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.path().join(name)).expect("the file is there");
        std::io::Write::write_all(&mut file, content.as_bytes()).expect("a file can be added to");
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where its pipeline writes.
    pub fn warehouse(&self) -> PathBuf {
        self.path().join("warehouse")
    }

    /// The product, with arguments, in this folder. No variable that steers it is inherited.
    pub fn command(&self, binary: Binary, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary.path());
        command.args(arguments).current_dir(self.path());
        for variable in ["URUTAU_PARK_AT", "URUTAU_PARK_FILE", "URUTAU_FAULT", "FAILPOINTS", "RUST_LOG", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        command
    }

    /// `urutau ARGUMENTS` to its end.
    pub fn urutau(&self, arguments: &[&str]) -> crate::Ended {
        Process::start(self.command(Binary::Plain, arguments)).wait()
    }

    /// The arguments of a run that ends at the end of the file.
    pub const RUN: &[&str] = &["run", "-f", "pipeline.yaml", "--until-current", "--listen", "off"];

    /// Runs the pipeline to the end of its file.
    pub fn run(&self) -> crate::Ended {
        self.urutau(Desk::RUN)
    }

    /// Starts a run that goes on, answers at this port, and does something wrong if a fault is named.
    pub fn run_at(&self, binary: Binary, port: u16, fault: Option<&str>) -> Process {
        let listen = format!("127.0.0.1:{port}");
        let mut command = self.command(binary, &["run", "-f", "pipeline.yaml", "--listen", &listen]);
        command.envs(fault.map(|fault| ("URUTAU_FAULT", fault)));
        Process::start(command)
    }

    /// Starts a run that parks the `nth` time that it comes to `point`. `None` if it ended without.
    pub fn run_parked(&self, point: &str, nth: usize, variables: &[(&str, &str)]) -> Option<Process> {
        let mark = Mark::new(self.path(), &format!("parked-{point}-{nth}"));
        let mut command = self.command(Binary::Failpoints, Desk::RUN);
        command.env("URUTAU_PARK_AT", format!("{point}:{nth}")).env("URUTAU_PARK_FILE", mark.path());
        command.envs(variables.iter().copied());
        let mut process = Process::start(command);
        let there = wait_until(&format!("coming to {point} for time {nth}"), || {
            let runs = process.runs();
            mark.line().or_else(|| (!runs).then(String::new))
        });
        if there.is_empty() {
            return None;
        }
        assert_eq!(there, format!("parked {point}"), "the process names the point that it is at");
        Some(process)
    }
}

impl Default for Desk {
    fn default() -> Self {
        Desk::new()
    }
}

/// Replaces what must be there exactly once.
fn swap(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "the quickstart's pipeline has no single '{old}' any more");
    text.replace(old, new)
}
