//! Words: how single things stand in a trace, and how a text is taken apart again.
//!
//! What a thing looks like is a matter of its type, and so is what of it may leave the process: a [`Text`] that is written through a
//! [`Veil`] holds no key, no bound and no free text, whatever is said into it.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::veil::Veil;

/// A text that grows by words.
pub(crate) struct Text {
    out: String,
    pub(crate) veil: Veil,
    breaks: bool,
}

/// Something that can be told.
pub(crate) trait Say {
    /// Has each one in a list a line of its own?
    const LINES: bool = false;

    fn say(&self, text: &mut Text);
}

/// Something that can be read from what was told.
pub(crate) trait Parse: Sized {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong>;
}

/// What is wrong with a text, and in which of its lines, the first being 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub(crate) line: u64,
    pub(crate) what: String,
}

impl Text {
    pub(crate) fn new(veil: Veil) -> Self {
        Self { out: String::new(), veil, breaks: false }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.out
    }

    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }

    /// What comes next stands in a line of its own, below the one that it belongs to.
    pub(crate) fn new_line(&mut self) {
        self.breaks = true;
    }

    /// A word that needs no quotes.
    pub(crate) fn word(&mut self, word: &str) {
        self.gap();
        self.out.push_str(word);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.gap();
        push_number(&mut self.out, number);
    }

    /// Several pieces without a space; nothing in them needs quotes.
    pub(crate) fn pieces(&mut self, write: impl FnOnce(&mut String)) {
        self.gap();
        write(&mut self.out);
    }

    /// A word with whatever in it.
    pub(crate) fn any_word(&mut self, write: impl FnOnce(&mut String)) {
        self.gap();
        let from = self.out.len();
        write(&mut self.out);
        if let Some(word) = self.out.get(from..).filter(|word| !is_bare(word)) {
            let quoted = quoted(word);
            self.out.truncate(from);
            self.out.push_str(&quoted);
        }
    }

    /// Ends the last line.
    pub(crate) fn finish(&mut self) -> &str {
        self.out.push('\n');
        &self.out
    }

    /// What would be written, and is not.
    pub(crate) fn aside(&mut self, say: impl FnOnce(&mut Self)) -> String {
        let kept = std::mem::take(&mut self.out);
        say(self);
        std::mem::replace(&mut self.out, kept)
    }

    fn gap(&mut self) {
        if std::mem::take(&mut self.breaks) {
            self.out.push_str("\n  ");
        } else if !self.out.is_empty() {
            self.out.push(' ');
        }
    }
}

pub(crate) fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or("0"));
}

/// Can a word stand without quotes and be read as what it is?
fn is_bare(word: &str) -> bool {
    let first = word.bytes().next();
    first.is_some_and(|first| !matches!(first, b'"' | b'{' | b'[' | b']'))
        && word != "-"
        && word.bytes().all(|byte| byte > b' ' && byte < 0x7F)
}

fn quoted(word: &str) -> String {
    let mut quoted = String::from('"');
    for c in word.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' ' => quoted.push(' '),
            c if c.is_control() || c.is_whitespace() => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text that is taken apart.
pub(crate) struct Words<'a> {
    rest: &'a str,
    line: u64,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 0 }
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) -> Wrong {
        Wrong { line: self.line, what: what.into() }
    }

    /// Is that all?
    pub(crate) fn end(&mut self) -> Result<(), Wrong> {
        self.skip_gap();
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong(format!("nothing should follow, and '{}' does", self.shown()))) }
    }

    /// The next word, without its quotes.
    pub(crate) fn word(&mut self) -> Result<Cow<'a, str>, Wrong> {
        self.skip_gap();
        if self.rest.starts_with('"') {
            return self.quoted().map(Cow::Owned);
        }
        let end = self.rest.find([' ', '\n']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.wrong("a word is missing at the end"));
        }
        self.rest = rest;
        Ok(Cow::Borrowed(word))
    }

    /// This word and no other.
    pub(crate) fn label(&mut self, label: &str) -> Result<(), Wrong> {
        let word = self.word()?;
        if word == label { Ok(()) } else { Err(self.wrong(format!("'{word}' stands where '{label}' should"))) }
    }

    /// Takes this bare word if it is the next one.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        self.skip_gap();
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        let whole = rest.is_empty() || rest.starts_with([' ', '\n']);
        if whole {
            self.rest = rest;
        }
        whole
    }

    /// A word that a function reads.
    pub(crate) fn read<T>(&mut self, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Wrong> {
        let word = self.word()?;
        read(&word).ok_or_else(|| self.wrong(format!("'{word}' is no {what}")))
    }

    /// A JSON object.
    pub(crate) fn json(&mut self) -> Result<&'a str, Wrong> {
        self.skip_gap();
        let (mut depth, mut inside, mut escaped) = (0u32, false, false);
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'\n' => break,
                _ if escaped => escaped = false,
                b'\\' if inside => escaped = true,
                b'"' => inside = !inside,
                b'{' if !inside => depth += 1,
                b'}' if !inside && depth > 0 => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (json, rest) = self.rest.split_at(if byte == b'}' { at + 1 } else { 0 });
                self.rest = rest;
                return if json.is_empty() { Err(self.wrong("no stored state stands where one should")) } else { Ok(json) };
            }
        }
        Err(self.wrong("a stored state has no end"))
    }

    fn quoted(&mut self) -> Result<String, Wrong> {
        let mut word = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(word);
                }
                '\n' => break,
                '\\' => match characters.next() {
                    Some((_, c @ ('"' | '\\'))) => word.push(c),
                    Some((_, 'u')) => {
                        let code: String = characters.by_ref().map(|(_, c)| c).skip(1).take_while(|c| *c != '}').collect();
                        let c = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                        word.push(c.ok_or_else(|| self.wrong(format!("'\\u{{{code}}}' is no character")))?);
                    }
                    _ => return Err(self.wrong("a backslash stands before nothing that it could mean")),
                },
                c => word.push(c),
            }
        }
        Err(self.wrong("a quoted word has no end"))
    }

    fn skip_gap(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\n']);
        let gap = &self.rest[..self.rest.len() - rest.len()];
        self.line += gap.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.rest = rest;
    }

    fn shown(&self) -> &str {
        self.rest.split(['\n', ' ']).next().unwrap_or_default()
    }
}

// ---- what stands in others

impl<T: Say> Say for Box<T> {
    fn say(&self, text: &mut Text) {
        T::say(self, text);
    }
}

impl<T: Parse> Parse for Box<T> {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        T::parse(words).map(Box::new)
    }
}

impl<T: Say> Say for Option<T> {
    fn say(&self, text: &mut Text) {
        match self {
            Some(thing) => thing.say(text),
            None => text.word("-"),
        }
    }
}

impl<T: Parse> Parse for Option<T> {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        if words.take("-") { Ok(None) } else { T::parse(words).map(Some) }
    }
}

impl<T: Say> Say for [T] {
    fn say(&self, text: &mut Text) {
        text.word("[");
        for thing in self {
            if T::LINES {
                text.new_line();
            }
            thing.say(text);
        }
        text.word("]");
    }
}

impl<T: Say> Say for Vec<T> {
    fn say(&self, text: &mut Text) {
        self.as_slice().say(text);
    }
}

impl<T: Parse> Parse for Vec<T> {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.label("[")?;
        let mut list = Vec::new();
        while !words.take("]") {
            list.push(T::parse(words)?);
        }
        Ok(list)
    }
}

impl<T: Say> Say for std::collections::BTreeSet<T> {
    fn say(&self, text: &mut Text) {
        text.word("[");
        self.iter().for_each(|thing| thing.say(text));
        text.word("]");
    }
}

impl<T: Parse + Ord> Parse for std::collections::BTreeSet<T> {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        Vec::parse(words).map(|list| list.into_iter().collect())
    }
}

impl<K: Say, V: Say> Say for std::collections::BTreeMap<K, V> {
    fn say(&self, text: &mut Text) {
        text.word("[");
        for (key, value) in self {
            if V::LINES {
                text.new_line();
            }
            key.say(text);
            value.say(text);
        }
        text.word("]");
    }
}

impl<K: Parse + Ord, V: Parse> Parse for std::collections::BTreeMap<K, V> {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.label("[")?;
        let mut map = Self::new();
        while !words.take("]") {
            map.insert(K::parse(words)?, V::parse(words)?);
        }
        Ok(map)
    }
}

impl<A: Say, B: Say> Say for (A, B) {
    fn say(&self, text: &mut Text) {
        self.0.say(text);
        self.1.say(text);
    }
}

impl Say for bool {
    fn say(&self, text: &mut Text) {
        text.word(if *self { "yes" } else { "no" });
    }
}

impl Parse for bool {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("'yes' or 'no'", |word| match word {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        })
    }
}

macro_rules! numbers {
    ($($number:ident),*) => { $(
        impl Say for $number {
            fn say(&self, text: &mut Text) {
                text.number(*self as u64);
            }
        }

        impl Parse for $number {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                words.read("number", |word| word.parse().ok())
            }
        }
    )* };
}
numbers!(u32, u64, usize);
