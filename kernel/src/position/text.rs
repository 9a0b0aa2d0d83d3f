//! The text of a position: canonical, so that equal positions are equal byte for byte, and the other way round.
//!
//! `` (nothing), `42` (a log that is one stream), `a:5,b:3` (several, in the order of their names), `a:5+7..9+12..13` (sets: before 5,
//! from 7 to before 9, and 12; `a:7..9` if it lacks the beginning). In a stream's name the four bytes `%`, `,`, `:` and space stand
//! as `%25`, `%2C`, `%3A` and `%20`. The empty name is left out with its colon.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use super::{Interval, Intervals, Offset, Position};
use crate::id::StreamName;

/// Why a text is no position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a position: {why}, at byte {at}: '{part}'")]
pub struct ParsePositionError {
    /// What was to be parsed.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
    /// Where that begins,
    pub at: usize,
    /// and what stands there.
    pub part: String,
}

const ESCAPED: [(char, &str); 4] = [('%', "%25"), (',', "%2C"), (':', "%3A"), (' ', "%20")];

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (stream, intervals)) in self.intervals().enumerate() {
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
            for (n, Interval { from, to }) in intervals.iter().enumerate() {
                match (n, from) {
                    (0, Offset(0)) => write!(f, "{}", to.0)?,
                    (0, from) => write!(f, "{}..{}", from.0, to.0)?,
                    (_, from) => write!(f, "+{}..{}", from.0, to.0)?,
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Position::START);
        }
        let mut position = Position::START;
        let mut before: Option<StreamName> = None;
        let mut at = 0;
        for entry in text.split(',') {
            let (name, intervals) = entry.rsplit_once(':').unwrap_or(("", entry));
            let stream = unescape(name).map(StreamName::from).map_err(|why| wrong(text, why, at, name))?;
            if name.is_empty() && entry.contains(':') {
                return Err(wrong(text, "the empty name is left out with its colon", at, entry));
            }
            let held = intervals_of(intervals)
                .map_err(|(why, n, part)| wrong(text, why, at + entry.len() - intervals.len() + n, part))?;
            if before.as_ref().is_some_and(|before| *before >= stream) {
                return Err(wrong(text, "streams stand in the order of their names, each once", at, entry));
            }
            position.streams.insert(stream.clone(), held);
            before = Some(stream);
            at += entry.len() + 1;
        }
        Ok(position)
    }
}

fn wrong(text: &str, why: &'static str, at: usize, part: &str) -> ParsePositionError {
    ParsePositionError { text: text.into(), why, at, part: part.into() }
}

/// One position has one text: leading zeros, intervals that are empty, touch or stand in another order are somebody's mistake.
fn intervals_of(text: &str) -> Result<Intervals, (&'static str, usize, &str)> {
    let mut all = Vec::<Interval>::new();
    let mut at = 0;
    for part in text.split('+') {
        let wrong = |why| (why, at, part);
        let interval = match part.split_once("..") {
            None if all.is_empty() => Interval { from: Offset(0), to: offset(part).map_err(wrong)? },
            None => return Err(wrong("only the first interval begins at the beginning")),
            Some((from, to)) => {
                let (from, to) = (offset(from).map_err(wrong)?, offset(to).map_err(wrong)?);
                if from == Offset(0) {
                    return Err(wrong("what begins at the beginning is written without it"));
                }
                Interval { from, to }
            }
        };
        if interval.from >= interval.to {
            return Err(wrong("it holds nothing"));
        }
        if all.last().is_some_and(|before| interval.from <= before.to) {
            return Err(wrong("intervals stand in their order, with something between them"));
        }
        all.push(interval);
        at += part.len() + 1;
    }
    Intervals::of(all).ok_or(("it holds nothing", 0, text))
}

fn offset(text: &str) -> Result<Offset, &'static str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(_) if !digits || (text.len() > 1 && text.starts_with('0')) => {
            Err("an offset is written in digits, without zeros before it")
        }
        Ok(offset) => Ok(Offset(offset)),
        Err(_) if digits => Err("an offset is larger than any"),
        Err(_) => Err("an offset is no number"),
    }
}

fn unescape(name: &str) -> Result<String, &'static str> {
    if name.contains([':', ' ']) {
        return Err("in a stream's name a colon or a space stands escaped");
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let escape = ESCAPED.iter().find(|(_, escaped)| rest[at..].starts_with(escaped));
        let (raw, escaped) = escape.ok_or("a stream's name has an unknown escape")?;
        plain.push(*raw);
        rest = &rest[at + escaped.len()..];
    }
    plain.push_str(rest);
    Ok(plain)
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
