//! The text of a scenario: made to be written by hand, and canonical, so that a file changes only where the story does.
//!
//! ```text
//! # The data of a checkpoint is visible, its state is not: the process dies between the two (rule C4).
//!
//! finds StateBeforeData by position-covers-only-durable
//!
//! rows 2
//!
//! table t0 versioned
//!
//! tx 1
//!   t0 1 = 100
//! tx 2
//!   t0 1..40 = 101..140
//!   t0 2 gone
//!   t0 3 -> 4 = 141
//!
//! # The second commit is answered so late that the next checkpoint takes both transactions.
//! p0 sends commit t0 2: lands at 60
//! at 100: p0 dies
//! ```
//!
//! First what it is about, then the wrong rules that it finds, the options that are not as usual, streams, tables, transactions
//! with their changes, steps, dice. A comment stands at the top, or before the transaction or the step that it is about.

mod parse;
mod print;
mod words;

use std::fmt;

use crate::scenario::Scenario;

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.what, self.remedy)
    }
}

impl std::error::Error for ParseError {}

impl std::str::FromStr for Scenario {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::scenario(text)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::scenario(self, f)
    }
}
