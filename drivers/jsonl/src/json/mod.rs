//! JSON as this source reads it: a cursor over one line that checks the grammar (RFC 8259) as it goes and hands out values
//! as ranges of the line. Nothing is unescaped, converted or allocated until somebody wants the value.
//!
//! Checked by a differential test against serde_json: both accept the same texts. One bound is ours: values nested deeper
//! than [`DEPTH_MAX`] are refused. Nothing here recurses, and nothing panics whatever the bytes are.

mod scan;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use scan::{find_string_stop, is_number_tail};
#[cfg(test)]
pub(crate) use text::LoneSurrogate;
pub(crate) use text::unescape_into;

/// How deep objects and arrays may be nested.
pub(crate) const DEPTH_MAX: u32 = 128;

/// What a JSON value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// `[...]`
    Array,
    /// `{...}`
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        })
    }
}

/// A value that follows the grammar: its text, from its first byte to its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) kind: Kind,
    /// Of a string: does it hold an escape?
    pub(crate) escaped: bool,
    pub(crate) raw: &'a str,
}

/// Where a text stops being JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Syntax {
    /// Its byte, from 0.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) what: &'static str,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the cursor stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What has not been read yet, from the next value on.
    pub(crate) fn rest(&mut self) -> &'a str {
        self.skip_space();
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes over bytes that the caller knows to be a whole value.
    pub(crate) fn skip_known(&mut self, bytes: usize) {
        self.at = self.text.len().min(self.at + bytes);
    }

    /// Reads the value that comes next.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Syntax> {
        self.skip_space();
        let start = self.at;
        let (kind, escaped) = match self.byte() {
            Some(b'"') => (Kind::String, self.string()?),
            Some(b'{') => self.container().map(|()| (Kind::Object, false))?,
            Some(b'[') => self.container().map(|()| (Kind::Array, false))?,
            _ => (self.scalar()?, false),
        };
        Ok(Value { kind, escaped, raw: self.text.get(start..self.at).unwrap_or_default() })
    }

    /// Enters an object or an array, if one comes next.
    pub(crate) fn enter(&mut self, opening: u8) -> bool {
        self.skip_space();
        let there = self.byte() == Some(opening);
        self.at += usize::from(there);
        there
    }

    /// The name of the next member of the object that was entered, with the cursor before its value; `None` at its end.
    pub(crate) fn name(&mut self, first: &mut bool) -> Result<Option<Value<'a>>, Syntax> {
        Ok(self.name_place(first)?.map(|(name, _)| name))
    }

    /// As [`Cursor::name`], with the byte where the name begins.
    pub(crate) fn name_place(&mut self, first: &mut bool) -> Result<Option<(Value<'a>, usize)>, Syntax> {
        if !self.another(b'}', first)? {
            return Ok(None);
        }
        let start = self.at;
        let escaped = self.member_name()?;
        let raw = self.text.get(start..self.at).unwrap_or_default();
        self.colon()?;
        Ok(Some((Value { kind: Kind::String, escaped, raw }, start)))
    }

    /// Stands the cursor before an element of the array that was entered? `false` at its end.
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool, Syntax> {
        self.another(b']', first)
    }

    /// Nothing but space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Syntax> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.wrong("text after the end of the value")) }
    }

    fn another(&mut self, closing: u8, first: &mut bool) -> Result<bool, Syntax> {
        self.skip_space();
        let was_first = std::mem::replace(first, false);
        match self.byte() {
            Some(byte) if byte == closing => {
                self.at += 1;
                Ok(false)
            }
            _ if was_first => Ok(true),
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            _ => Err(self.wrong("expected a comma or the end of the object or array")),
        }
    }

    fn member_name(&mut self) -> Result<bool, Syntax> {
        match self.byte() {
            Some(b'"') => self.string(),
            _ => Err(self.wrong("expected a member's name in quotes")),
        }
    }

    fn colon(&mut self) -> Result<(), Syntax> {
        self.skip_space();
        if self.byte() != Some(b':') {
            return Err(self.wrong("expected a colon after the member's name"));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over an object or array and all that it holds.
    fn container(&mut self) -> Result<(), Syntax> {
        let mut open = Nesting::default();
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(opening @ (b'{' | b'[')) => {
                    if !open.push(opening == b'{') {
                        return Err(self.wrong("nested deeper than 128 objects and arrays"));
                    }
                    self.at += 1;
                    self.skip_space();
                    match (opening, self.byte()) {
                        (b'{', Some(b'}')) | (b'[', Some(b']')) => {
                            self.at += 1;
                            open.pop();
                        }
                        (b'{', _) => {
                            self.member_name()?;
                            self.colon()?;
                            self.skip_space();
                            continue;
                        }
                        _ => continue,
                    }
                }
                _ => {
                    self.scalar()?;
                }
            }
            if !self.next_inside(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value inside a container: goes to the next one. `false` when the outermost container has ended.
    fn next_inside(&mut self, open: &mut Nesting) -> Result<bool, Syntax> {
        while !open.is_empty() {
            self.skip_space();
            match (open.in_object(), self.byte()) {
                (true, Some(b',')) => {
                    self.at += 1;
                    self.skip_space();
                    self.member_name()?;
                    self.colon()?;
                    self.skip_space();
                    return Ok(true);
                }
                (false, Some(b',')) => {
                    self.at += 1;
                    self.skip_space();
                    return Ok(true);
                }
                (true, Some(b'}')) | (false, Some(b']')) => {
                    self.at += 1;
                    open.pop();
                }
                _ => return Err(self.wrong("expected a comma or the end of the object or array")),
            }
        }
        Ok(false)
    }

    /// Passes over a string, from quote to quote. Does it hold an escape?
    fn string(&mut self) -> Result<bool, Syntax> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at = find_string_stop(bytes, self.at);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.wrong("a control character in a string")),
                None => return Err(self.wrong("a string without its closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Syntax> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match bytes.get(self.at + 2..self.at + 6) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => self.at += 6,
                _ => return Err(self.wrong("an escape \\u without its four hexadecimal digits")),
            },
            _ => return Err(self.wrong("an unknown escape in a string")),
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<Kind, Syntax> {
        match self.byte() {
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| Kind::Number),
            Some(b't') => self.literal("true", Kind::Bool),
            Some(b'f') => self.literal("false", Kind::Bool),
            Some(b'n') => self.literal("null", Kind::Null),
            Some(_) => Err(self.wrong("expected a JSON value")),
            None => Err(self.wrong("the text ends where a value is expected")),
        }
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Result<Kind, Syntax> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("expected a JSON value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    fn number(&mut self) -> Result<(), Syntax> {
        self.at += usize::from(self.byte() == Some(b'-'));
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // `01`, `1x`, `-.5`: what is glued to a number makes it none.
        if self.byte().is_some_and(is_number_tail) { Err(self.wrong("a malformed number")) } else { Ok(()) }
    }

    fn digits(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.wrong("a malformed number")) } else { Ok(()) }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &'static str) -> Syntax {
        Syntax { at: self.at, what }
    }
}

/// The objects (1) and arrays (0) that are open, the innermost in the lowest bit.
#[derive(Default)]
struct Nesting {
    depth: u32,
    objects: u128,
}

impl Nesting {
    fn push(&mut self, object: bool) -> bool {
        let fits = self.depth < DEPTH_MAX;
        if fits {
            self.objects = self.objects << 1 | u128::from(object);
            self.depth += 1;
        }
        fits
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth = self.depth.saturating_sub(1);
    }

    fn is_empty(&self) -> bool {
        self.depth == 0
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}
