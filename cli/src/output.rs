//! How a command's result is said: on standard output, as text for people or as one JSON value for programs, and what went
//! wrong on standard error. Exit codes too: they are the shortest way to say it.

use std::io::Write as _;

use contract::{Error, Kind};
use serde_json::{Value, json};

use crate::args::OutputFormat;

/// The exit codes of commands. Those of a run's end are `host::Ended::exit_code`, the same numbers.
pub(crate) mod exit {
    pub(crate) const DONE: u8 = 0;
    pub(crate) const FAULT: u8 = 1;
    pub(crate) const CONFIG: u8 = 2;
    pub(crate) const HALTED: u8 = 3;
    pub(crate) const POSITION_LOST: u8 = 4;
    pub(crate) const UNREACHABLE: u8 = 5;
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// What a command found out or did.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u8,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Answer {
    /// All is well.
    pub(crate) fn done(text: impl Into<String>, json: Value) -> Self {
        Self { code: exit::DONE, text: text.into(), json }
    }
}

/// Why a command did not do what it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The pipeline file has these problems.
    File(spec::Problems),
    /// Anything else.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<spec::Problems> for Failure {
    fn from(problems: spec::Problems) -> Self {
        Failure::File(problems)
    }
}

impl Failure {
    /// A mistake of whoever called.
    pub(crate) fn usage(code: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Failure::Error(Error::new(Kind::Config, code, what, remedy))
    }

    fn exit_code(&self) -> u8 {
        match self {
            Failure::File(_) => exit::CONFIG,
            Failure::Error(error) => code_of(error.kind),
        }
    }

    fn json(&self) -> Value {
        match self {
            Failure::File(problems) => json!({ "exit": self.exit_code(), "file": problems.file(), "problems": problems.list() }),
            Failure::Error(error) => json!({
                "exit": self.exit_code(),
                "error": { "code": error.code, "what": error.what, "remedy": error.remedy },
            }),
        }
    }

    fn text(&self) -> String {
        match self {
            Failure::File(problems) => problems.to_string(),
            Failure::Error(error) => format!("error: {error}"),
        }
    }
}

/// The exit code for an error of this kind.
pub(crate) fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Config | Kind::Rejected => exit::CONFIG,
        Kind::Poison => exit::HALTED,
        Kind::PositionLost => exit::POSITION_LOST,
        Kind::Transient => exit::UNREACHABLE,
        Kind::Fatal => exit::FAULT,
    }
}

/// Says it, and returns the exit code. With `--output json` standard output holds exactly one JSON value, also for a failure.
pub(crate) fn say(result: Result<Answer, Failure>, format: OutputFormat) -> u8 {
    let (code, text, json) = match result {
        Ok(answer) => (answer.code, answer.text, answer.json),
        Err(failure) => {
            eprintln!("{}", failure.text());
            (failure.exit_code(), String::new(), failure.json())
        }
    };
    let said = match format {
        OutputFormat::Text => text,
        OutputFormat::Json => json.to_string(),
    };
    if !said.is_empty() {
        let end = if said.ends_with('\n') { "" } else { "\n" };
        let mut out = std::io::stdout().lock();
        // Whoever reads may have seen enough (`| head`): that is no fault.
        let _ = write!(out, "{said}{end}").and_then(|()| out.flush());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_the_exit_code_of_the_design() {
        let codes = [
            (Kind::Fatal, 1),
            (Kind::Config, 2),
            (Kind::Rejected, 2),
            (Kind::Poison, 3),
            (Kind::PositionLost, 4),
            (Kind::Transient, 5),
        ];
        for (kind, code) in codes {
            assert_eq!(code_of(kind), code, "{kind:?}");
        }
    }

    #[test]
    fn a_failure_tells_programs_its_code_and_remedy() {
        let failure = Failure::usage("no-table", "there is no such table", "name another");
        let json =
            json!({ "exit": 2, "error": { "code": "no-table", "what": "there is no such table", "remedy": "name another" } });
        assert_eq!(failure.json(), json);
        assert_eq!(failure.text(), "error: there is no such table — name another [no-table]");
    }
}
