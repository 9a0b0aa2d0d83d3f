//! One taxonomy of errors for all drivers: what the caller can do about it decides the kind.

use std::fmt;

/// What can be done about an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It may succeed later: a server is away, a disk is full.
    Transient,
    /// What was stored is no place in this log any more; only a new snapshot helps.
    PositionLost,
    /// It can never work as configured: usage, rights, a missing file.
    Config,
    /// These rows or this table are refused. The others are not affected.
    Rejected,
    /// The log holds something unreadable that belongs to no table.
    Poison,
    /// A fault in urutau itself.
    Fatal,
}

/// What happened, to what, and what to do now. It never holds a secret or a row's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What can be done.
    pub kind: Kind,
    /// A stable code with a page in the docs, for example `jsonl-malformed`.
    pub code: &'static str,
    /// What happened, where; what was expected and found.
    pub what: String,
    /// What to do now.
    pub remedy: String,
}

impl Error {
    /// An error of `kind`.
    pub fn new(kind: Kind, code: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind, code, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if !self.remedy.is_empty() {
            write!(f, " — {}", self.remedy)?;
        }
        write!(f, " [{}]", self.code)
    }
}

impl std::error::Error for Error {}
