//! The text of a position: canonical, so that equal positions are equal byte for byte, and the other way round.
//!
//! `` (nothing), `42` (a log that is one stream), `a:5,b:3` (several, in the order of their names). In a stream's name the
//! four bytes `%`, `,`, `:` and space stand as `%25`, `%2C`, `%3A` and `%20`. The empty name is left out with its colon.

use alloc::string::String;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use super::{Offset, Position};
use crate::id::StreamName;

/// Why a text is no position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a position: {why}")]
pub struct ParsePositionError {
    /// What was to be parsed.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

const ESCAPED: [(char, &str); 4] = [('%', "%25"), (',', "%2C"), (':', "%3A"), (' ', "%20")];

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (stream, offset)) in self.streams().enumerate() {
            if n > 0 {
                f.write_char(',')?;
            }
            for c in stream.as_str().chars() {
                match ESCAPED.iter().find(|(raw, _)| *raw == c) {
                    Some((_, escaped)) => f.write_str(escaped)?,
                    None => f.write_char(c)?,
                }
            }
            if !stream.as_str().is_empty() {
                f.write_char(':')?;
            }
            write!(f, "{}", offset.0)?;
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why| ParsePositionError { text: text.into(), why };
        if text.is_empty() {
            return Ok(Position::START);
        }
        let position = text
            .split(',')
            .map(|entry| {
                let (name, offset) = entry.rsplit_once(':').unwrap_or(("", entry));
                let stream = unescape(name).ok_or(wrong("a stream's name has an unknown escape"))?;
                let offset: u64 = offset.parse().map_err(|_| wrong("an offset is no number"))?;
                Ok((StreamName::from(stream), Offset(offset)))
            })
            .collect::<Result<Position, _>>()?;
        // One position has one text: leading zeros, offsets of 0, another order, a name twice are somebody's mistake.
        if alloc::format!("{position}") == text { Ok(position) } else { Err(wrong("it is not in its canonical form")) }
    }
}

fn unescape(name: &str) -> Option<String> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let (raw, escaped) = ESCAPED.iter().find(|(_, escaped)| rest[at..].starts_with(escaped))?;
        plain.push(*raw);
        rest = &rest[at + escaped.len()..];
    }
    plain.push_str(rest);
    Some(plain)
}

impl TryFrom<String> for Position {
    type Error = ParsePositionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        alloc::format!("{position}")
    }
}
