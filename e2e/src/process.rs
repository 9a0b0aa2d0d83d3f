//! A process of the product: started with all its output kept, ended at a deadline, killed when its test is done with it.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::wait_until;

/// A running process. Dropping it kills it, by its own id.
pub struct Process {
    child: Child,
    output: tempfile::TempDir,
    what: String,
}

/// How a process ended, and what it said.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code, if it was not killed.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

/// What can be sent to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Ends it at once, wherever it is.
    Kill,
    /// Freezes it.
    Stop,
    /// Thaws it.
    Continue,
    /// Asks it to end.
    Terminate,
    /// Asks it to end, as a terminal does.
    Interrupt,
}

impl Process {
    /// Starts a command. Its standard input is empty.
    pub fn start(mut command: Command) -> Process {
        let output = tempfile::tempdir().expect("a folder for a process's output");
        let file = |name: &str| std::fs::File::create(output.path().join(name)).expect("a file for a process's output");
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let what = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("{what} does not start: {error}"));
        Process { child, output, what }
    }

    /// Starts a command as the unprivileged user `nobody`. Needs root.
    pub fn start_as_nobody(mut command: Command) -> Process {
        let (user, group) = nobody();
        command.uid(user).gid(group);
        Process::start(command)
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Is it still running?
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Sends a signal to it.
    pub fn send(&self, signal: Signal) {
        let name = match signal {
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
            Signal::Terminate => "TERM",
            Signal::Interrupt => "INT",
        };
        // A process that has just ended cannot get it: who cares asks `wait`.
        let _ = Command::new("kill").args(["-s", name, &self.id().to_string()]).stderr(Stdio::null()).status();
    }

    /// Waits for its end; panics, with what it said, when that takes too long.
    pub fn wait(mut self) -> Ended {
        let what = self.what.clone();
        let status = wait_until(&format!("the end of {what}"), || self.child.try_wait().expect("a child can be asked"));
        let ended =
            Ended { code: status.code(), signal: status.signal(), stdout: self.said("stdout"), stderr: self.said("stderr") };
        if std::env::var_os("E2E_SHOW").is_some() {
            eprintln!("{what}: {:?}\n{}{}", status, ended.stdout, ended.stderr);
        }
        ended
    }

    /// Kills it and waits until it is gone.
    pub fn kill(self) -> Ended {
        self.send(Signal::Kill);
        self.wait()
    }

    /// What it has written to its standard error up to now.
    pub fn stderr(&self) -> String {
        self.said("stderr")
    }

    /// What it has written to its standard output up to now.
    pub fn stdout(&self) -> String {
        self.said("stdout")
    }

    fn said(&self, stream: &str) -> String {
        let bytes = std::fs::read(self.output.path().join(stream)).expect("a process's output can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Panics, with everything that it said, if it did not end with this exit code.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "signal {:?}\n-- stdout\n{}\n-- stderr\n{}", self.signal, self.stdout, self.stderr);
        self
    }

    /// Panics if one of these is in none of what it said.
    #[track_caller]
    pub fn expect_words(self, words: &[&str]) -> Ended {
        let said = format!("{}\n{}", self.stdout, self.stderr);
        for word in words {
            assert!(said.contains(word), "nothing says '{word}':\n{said}");
        }
        self
    }

    /// Panics if no line that it said has all of these; a line that is indented belongs to the one above it.
    #[track_caller]
    pub fn expect_line(self, words: &[&str]) -> Ended {
        let said = format!("{}\n{}", self.stdout, self.stderr);
        let joined = said.replace("\n    ", " ");
        let found = joined.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "no line says all of {words:?}:\n{said}");
        self
    }

    /// Panics if one of these is in what it said: a secret, a row's value.
    #[track_caller]
    pub fn expect_no_words(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(
                !self.stdout.contains(word) && !self.stderr.contains(word),
                "'{word}' is said:\n{}{}",
                self.stdout,
                self.stderr
            );
        }
        self
    }
}

/// The numbers of the user `nobody`, as the machine's own table has them.
fn nobody() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").expect("the table of users can be read");
    let line = users.lines().find(|line| line.starts_with("nobody:")).expect("there is a user 'nobody'");
    let numbers: Vec<u32> = line.split(':').skip(2).take(2).filter_map(|number| number.parse().ok()).collect();
    (numbers[0], numbers[1])
}

/// A file that is gone when the test is: what a process is told to write when it has come somewhere.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
}

impl Mark {
    pub(crate) fn new(folder: &Path, name: &str) -> Mark {
        let path = folder.join(name);
        let _ = std::fs::remove_file(&path);
        Mark { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The first line, once it is there whole.
    pub(crate) fn line(&self) -> Option<String> {
        let content = std::fs::read_to_string(&self.path).ok()?;
        content.lines().next().filter(|_| content.ends_with('\n')).map(String::from)
    }
}
