//! The content of JSON strings: escapes resolved, into text.

use std::borrow::Cow;

use super::{Kind, Value};

/// A string holds half of a surrogate pair (`\ud800`): JSON allows it, no text can hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoneSurrogate;

impl<'a> Value<'a> {
    /// What stands between a string's quotes, escapes as they are. Of another kind of value: its text.
    pub(crate) fn inside(&self) -> &'a str {
        match self.kind {
            Kind::String => self.raw.get(1..self.raw.len().saturating_sub(1)).unwrap_or_default(),
            _ => self.raw,
        }
    }

    /// A string's content.
    pub(crate) fn text(&self) -> Result<Cow<'a, str>, LoneSurrogate> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.inside()));
        }
        let mut text = Vec::with_capacity(self.raw.len());
        unescape_into(self.inside(), &mut text)?;
        // Pieces of a `str` and encoded characters: what they make is UTF-8, so nothing is ever replaced.
        Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Is it a string with exactly this content?
    pub(crate) fn is_text(&self, content: &str) -> bool {
        self.kind == Kind::String
            && if self.escaped { self.text().is_ok_and(|text| text == content) } else { self.inside() == content }
    }
}

/// Appends the content of a string, given without its quotes, as UTF-8.
pub(crate) fn unescape_into(inside: &str, into: &mut Vec<u8>) -> Result<(), LoneSurrogate> {
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        into.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or_default();
        let mut used = 2;
        let character = match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (character, length) = unicode(&rest[at..])?;
                used = length;
                character
            }
            other => char::from(other),
        };
        into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = rest.get(at + used..).unwrap_or_default();
    }
    into.extend_from_slice(rest.as_bytes());
    Ok(())
}

/// The character of `\uXXXX` or of a pair of them, and how long that was.
fn unicode(escape: &str) -> Result<(char, usize), LoneSurrogate> {
    let first = unit(escape, 2).ok_or(LoneSurrogate)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = escape.get(6..8).filter(|next| *next == "\\u").and_then(|_| unit(escape, 8)).ok_or(LoneSurrogate)?;
    match (first, second) {
        (0xd800..=0xdbff, 0xdc00..=0xdfff) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(code).map(|character| (character, 12)).ok_or(LoneSurrogate)
        }
        _ => Err(LoneSurrogate),
    }
}

fn unit(escape: &str, at: usize) -> Option<u32> {
    escape.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok())
}
