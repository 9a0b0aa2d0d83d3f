//! Reading: a trace step by step, each one whole and as it was written, or an error that names the line.

use std::io::BufRead;

use kernel::config::Config;
use kernel::coordinator::Input;
use kernel::id::AttemptId;
use kernel::outcome::WriteOutcome;
use kernel::time::Time;
use kernel::worker::NetOutcome;
use twox_hash::XxHash3_64;

use crate::text::{Parse, Say, Text, Words, Wrong};
use crate::veil::Veil;
use crate::write::{End, head};
use crate::{FIRST_WORDS, FORMAT};

/// Takes a trace apart.
pub struct Reader<R> {
    input: R,
    by: String,
    /// The lines in front of the first step, which its hash is of too.
    first: String,
    /// Lines that were read.
    lines: u64,
    chain: u64,
    text: Text,
    ended: bool,
}

/// Something that happened, and what the machine said to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its first line, from 1.
    pub line: u64,
    /// When.
    pub now: Time,
    /// What.
    pub heard: Heard,
    /// What was said, line by line.
    pub said: Vec<Line>,
}

/// A line of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// What stands in it.
    pub text: String,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// A life began.
    Begins(Box<Config>),
    /// The coordinator took a fact.
    Coordinator(Box<Input>),
    /// The worker took a fact.
    Worker(WorkerHeard),
    /// Nothing follows.
    Ends(End),
}

/// A fact for a worker. What the coordinator says to it, it has said already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerHeard {
    /// To write a part.
    ToldToWrite(AttemptId),
    /// To abandon a part.
    ToldToAbandon(AttemptId),
    /// A part is netted, or can't be.
    Netted(AttemptId, NetOutcome),
    /// A part is staged, or is not.
    Wrote(AttemptId, WriteOutcome),
}

/// Why a text is no trace, or no more of one.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It does not begin like one.
    #[error("line 1: this is no trace: it does not begin with '{FIRST_WORDS}{FORMAT}'")]
    NoTrace,
    /// It is one of another format.
    #[error(
        "line 1: this is a trace of format {found}, and only format {FORMAT} can be read here: replay it with the version that wrote it ({by})"
    )]
    OtherFormat {
        /// Its format.
        found: String,
        /// Who wrote it.
        by: String,
    },
    /// The text ends inside a step, or without an end.
    #[error("line {line}: the trace is cut here: its process died, still runs, or could not write on")]
    Cut {
        /// The first line that is missing, or belongs to a step that is not whole.
        line: u64,
    },
    /// A step is not what was written.
    #[error("lines {from} to {to}: this is not what was written: a line was altered, added or taken out here")]
    Altered {
        /// The step's first line.
        from: u64,
        /// The line of its hash.
        to: u64,
    },
    /// A line means nothing.
    #[error("line {line}: {what}")]
    Malformed {
        /// The line.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The text can't be read.
    #[error("line {line}: the file can't be read: {error}")]
    Unreadable {
        /// The first line that could not be.
        line: u64,
        /// Why.
        error: std::io::Error,
    },
}

impl<R: BufRead> Reader<R> {
    /// Reads what stands in front of the first step.
    pub fn new(input: R) -> Result<Self, TraceError> {
        let (by, first, text) = (String::new(), String::new(), Text::new(Veil::Lifted));
        let mut reader = Self { input, by, first, lines: 0, chain: 0, text, ended: false };
        let format = match reader.line() {
            Ok(Some(line)) => line.strip_prefix(FIRST_WORDS).map(str::to_owned).ok_or(TraceError::NoTrace)?,
            Ok(None) | Err(TraceError::Malformed { .. } | TraceError::Cut { .. }) => return Err(TraceError::NoTrace),
            Err(error) => return Err(error),
        };
        let by = reader.line()?.ok_or(TraceError::Cut { line: 2 })?;
        let Some(version) = by.strip_prefix("by ") else {
            return Err(TraceError::Malformed { line: 2, what: "'by VERSION' should stand here".into() });
        };
        reader.by = version.trim_end().into();
        if format.trim_end() != FORMAT.to_string() {
            return Err(TraceError::OtherFormat { found: format.trim_end().into(), by: reader.by });
        }
        reader.first = format!("{FIRST_WORDS}{format}{by}");
        Ok(reader)
    }

    /// The version of the program that wrote it.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The next step; `None` behind the end.
    pub fn next_step(&mut self) -> Result<Option<Step>, TraceError> {
        if self.ended {
            return match self.line()? {
                None => Ok(None),
                Some(_) => Err(TraceError::Malformed { line: self.lines, what: "something stands behind the end".into() }),
            };
        }
        let from = self.lines + 1;
        let mut step = std::mem::take(&mut self.first);
        let before = step.len();
        let (mut said, mut head_end) = (Vec::new(), None);
        let hash = loop {
            let line = match self.line() {
                Ok(Some(line)) => line,
                Ok(None) | Err(TraceError::Cut { .. }) => return Err(TraceError::Cut { line: from }),
                Err(error) => return Err(error),
            };
            if let Some(hash) = line.strip_prefix("= ") {
                break hash.trim_end_matches('\n').to_owned();
            }
            if let Some(text) = line.strip_prefix("- ") {
                head_end.get_or_insert(step.len());
                said.push(Line { number: self.lines, text: text.trim_end_matches('\n').into() });
            } else if head_end.is_some() {
                return Err(self.altered_or(&mut step, &line, from, "neither '- ...' nor '= ...' stands here"));
            }
            step.push_str(&line);
        };
        self.chain = XxHash3_64::oneshot_with_seed(self.chain, step.as_bytes());
        if hash != format!("{:016x}", self.chain) {
            return Err(TraceError::Altered { from, to: self.lines });
        }
        let told = step.get(before..head_end.unwrap_or(step.len())).unwrap_or_default();
        let (now, heard) = self.parse(told).map_err(|Wrong { line, what }| TraceError::Malformed { line: from + line, what })?;
        self.ended = matches!(heard, Heard::Ends(_));
        Ok(Some(Step { line: from, now, heard, said }))
    }

    /// A line that stands where none of its kind can: the hash below it says whether somebody put it there.
    fn altered_or(&mut self, step: &mut String, line: &str, from: u64, what: &str) -> TraceError {
        let at = self.lines;
        step.push_str(line);
        loop {
            match self.line() {
                Ok(Some(line)) => match line.strip_prefix("= ") {
                    Some(hash)
                        if hash.trim_end() == format!("{:016x}", XxHash3_64::oneshot_with_seed(self.chain, step.as_bytes())) =>
                    {
                        return TraceError::Malformed { line: at, what: what.into() };
                    }
                    Some(_) => return TraceError::Altered { from, to: self.lines },
                    None => step.push_str(&line),
                },
                Ok(None) | Err(TraceError::Cut { .. }) => return TraceError::Cut { line: from },
                Err(error) => return error,
            }
        }
    }

    fn parse(&mut self, told: &str) -> Result<(Time, Heard), Wrong> {
        let mut words = Words::new(told);
        let now = Time::parse(&mut words)?;
        let what = words.word()?.into_owned();
        let heard = match &*what {
            "begins" => Heard::Begins(Parse::parse(&mut words)?),
            "hears" => Heard::Coordinator(Parse::parse(&mut words)?),
            "worker" => Heard::Worker(Parse::parse(&mut words)?),
            "ends" => Heard::Ends(Parse::parse(&mut words)?),
            _ => return Err(words.wrong(format!("'{what}' is none of begins, hears, worker, ends"))),
        };
        words.end()?;
        let again = head(&mut self.text, now, &what, |text| match &heard {
            Heard::Begins(config) => config.say(text),
            Heard::Coordinator(input) => input.say(text),
            Heard::Worker(heard) => heard.say(text),
            Heard::Ends(end) => end.say(text),
        });
        if again != told {
            let line = again.lines().zip(told.lines()).take_while(|(again, told)| again == told).count() as u64;
            let form = again.lines().nth(line as usize).unwrap_or_default();
            return Err(Wrong { line, what: format!("this is not in its one form, which is '{form}'") });
        }
        Ok((now, heard))
    }

    /// The next whole line, with its end.
    fn line(&mut self) -> Result<Option<String>, TraceError> {
        let mut line = Vec::new();
        let number = self.lines + 1;
        self.input.read_until(b'\n', &mut line).map_err(|error| TraceError::Unreadable { line: number, error })?;
        if line.last() != Some(&b'\n') {
            // What a killed process left of its last line says nothing.
            return if line.is_empty() { Ok(None) } else { Err(TraceError::Cut { line: number }) };
        }
        self.lines = number;
        let text = String::from_utf8(line);
        text.map(Some).map_err(|_| TraceError::Malformed { line: number, what: "this is no text".into() })
    }
}

impl Say for WorkerHeard {
    fn say(&self, text: &mut Text) {
        match self {
            WorkerHeard::ToldToWrite(attempt) => {
                text.word("told-to-write");
                attempt.say(text);
            }
            WorkerHeard::ToldToAbandon(attempt) => {
                text.word("told-to-abandon");
                attempt.say(text);
            }
            WorkerHeard::Netted(attempt, outcome) => {
                text.word("netted");
                attempt.say(text);
                outcome.say(text);
            }
            WorkerHeard::Wrote(attempt, outcome) => {
                text.word("wrote");
                attempt.say(text);
                outcome.say(text);
            }
        }
    }
}

impl Parse for WorkerHeard {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        let word = words.word()?.into_owned();
        let attempt = AttemptId::parse(words)?;
        Ok(match &*word {
            "told-to-write" => WorkerHeard::ToldToWrite(attempt),
            "told-to-abandon" => WorkerHeard::ToldToAbandon(attempt),
            "netted" => WorkerHeard::Netted(attempt, Parse::parse(words)?),
            "wrote" => WorkerHeard::Wrote(attempt, Parse::parse(words)?),
            _ => return Err(words.wrong(format!("'{word}' is none of told-to-write, told-to-abandon, netted, wrote"))),
        })
    }
}
