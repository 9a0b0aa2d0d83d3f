//! Values that are made of others, as the server writes them: arrays, composites, ranges, and pairs of texts.
//!
//! Each kind has its own rule for when a part stands in quotes, and how a quote inside of them is told. A composite's attributes come
//! with their types, but without their names: its text is right whatever was done to its type before or since.

use std::fmt::Write as _;

use rows::value::Unholdable;

use super::array::{self, Elements};
use super::bytes::Bytes;
use super::geometry::Geometric;
use super::{Misfit, PgType, Types, text};
use crate::pgoutput::TypeId;

/// Where in a value we are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nest<'a> {
    /// What a composite's attributes may be of.
    pub(super) types: &'a Types,
    depth: usize,
}

/// A composite of ranges in an array of composites ...: a quote in the innermost is written twice as long by each around it, so that what
/// a lying server makes of a few bytes is bounded by this.
pub(super) const DEPTH_MAX: usize = 8;

/// What the server itself takes for a text at most.
const TEXT_BYTES_MAX: usize = 1 << 30;

impl<'a> Nest<'a> {
    pub(super) fn new(types: &'a Types) -> Self {
        Self { types, depth: 0 }
    }

    fn inner(self) -> Result<Self, Misfit> {
        if self.depth < DEPTH_MAX { Ok(Self { depth: self.depth + 1, ..self }) } else { Err(Misfit::Depth) }
    }

    /// What a value is of whose type the wire names.
    pub(super) fn named(self, id: TypeId) -> Result<&'a PgType, Misfit> {
        self.types.plain(id).ok_or(Misfit::UnknownType(id))
    }
}

/// How a quote or a backslash inside of quotes is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    Backslash,
    Twice,
}

pub(super) fn write_array(element: &PgType, bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let (dimensions, mut elements) = array::open(bytes)?;
    if dimensions.is_empty() {
        into.push_str("{}");
    }
    if dimensions.iter().any(|(_, first)| *first != 1) {
        for (length, first) in &dimensions {
            let last = i64::from(*first) + i64::try_from(*length).unwrap_or(i64::MAX).saturating_sub(1);
            let _ = write!(into, "[{first}:{last}]");
        }
        into.push('=');
    }
    let lengths: Vec<usize> = dimensions.iter().map(|(length, _)| *length).collect();
    if !lengths.is_empty() {
        write_dimension(element, &lengths, &mut elements, at.inner()?, into)?;
    }
    match elements.next()? {
        None => Ok(()),
        Some(_) => Err(Misfit::Malformed),
    }
}

fn write_dimension(
    element: &PgType,
    lengths: &[usize],
    from: &mut Elements<'_>,
    at: Nest<'_>,
    into: &mut String,
) -> Result<(), Misfit> {
    let Some((length, inner)) = lengths.split_first() else {
        return match from.next()? {
            Some(Some(value)) => write_element(element, value, at, into),
            Some(None) => {
                into.push_str("NULL");
                Ok(())
            }
            None => Err(Misfit::Malformed),
        };
    };
    let delimiter = delimiter(element);
    into.push('{');
    for place in 0..*length {
        if place > 0 {
            into.push(delimiter);
        }
        write_dimension(element, inner, from, at, into)?;
    }
    into.push('}');
    Ok(())
}

/// What stands between the elements of an array: a matter of their type, for the text of a box has commas.
fn delimiter(element: &PgType) -> char {
    match element {
        PgType::Geometric(Geometric::Box) => ';',
        PgType::Spatial => ':',
        _ => ',',
    }
}

fn write_element(element: &PgType, value: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let text = part(element, value, at)?;
    let delimiter = delimiter(element);
    let special = |c: char| matches!(c, '{' | '}' | '"' | '\\') || c == delimiter || is_space(c);
    let in_quotes = text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special);
    quote(&text, in_quotes, Escape::Backslash, into)
}

/// `oidvector`, `int2vector`
pub(super) fn write_vector(element: &PgType, bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let mut elements = Elements::of_vector(bytes)?;
    let at = at.inner()?;
    let first = into.len();
    while let Some(value) = elements.next()? {
        if into.len() > first {
            into.push(' ');
        }
        text::write(element, value.ok_or(Misfit::Malformed)?, at, into)?;
    }
    Ok(())
}

/// Of each attribute its type and its value. Attributes that were dropped are not sent, ones that came later are null in older rows.
pub(super) fn write_composite(bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let at = at.inner()?;
    let mut from = Bytes(bytes);
    into.push('(');
    for place in 0..from.count(8)? {
        if place > 0 {
            into.push(',');
        }
        let of = TypeId(from.u32()?);
        if let Some(value) = from.value()? {
            let text = part(at.named(of)?, value, at)?;
            let special = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || is_space(c);
            quote(&text, text.is_empty() || text.contains(special), Escape::Twice, into)?;
        }
    }
    into.push(')');
    from.end()
}

/// Which bounds there are, and whether they belong to the range.
const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

pub(super) fn write_range(of: &PgType, bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let at = at.inner()?;
    let mut from = Bytes(bytes);
    let flags = from.u8()?;
    if flags & !(EMPTY | LOWER_INCLUSIVE | UPPER_INCLUSIVE | LOWER_INFINITE | UPPER_INFINITE) != 0 {
        return Err(Misfit::Malformed);
    }
    if flags & EMPTY != 0 {
        into.push_str("empty");
        return from.end();
    }
    into.push(if flags & LOWER_INCLUSIVE != 0 { '[' } else { '(' });
    for (infinite, separator) in [(LOWER_INFINITE, ","), (UPPER_INFINITE, "")] {
        if flags & infinite == 0 {
            let text = part(of, from.value()?.ok_or(Misfit::Malformed)?, at)?;
            let special = |c: char| matches!(c, '(' | ')' | '[' | ']' | ',' | '"' | '\\') || is_space(c);
            quote(&text, text.is_empty() || text.contains(special), Escape::Twice, into)?;
        }
        into.push_str(separator);
    }
    into.push(if flags & UPPER_INCLUSIVE != 0 { ']' } else { ')' });
    from.end()
}

pub(super) fn write_ranges(of: &PgType, bytes: &[u8], at: Nest<'_>, into: &mut String) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    into.push('{');
    // Each has its length and its flags.
    for place in 0..from.count(5)? {
        if place > 0 {
            into.push(',');
        }
        write_range(of, from.value()?.ok_or(Misfit::Malformed)?, at, into)?;
    }
    into.push('}');
    from.end()
}

/// `hstore`: the pairs, in the server's order (shorter names first), in which no name stands twice.
pub(super) fn pairs<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(&'a str, Option<&'a str>) -> Result<(), Misfit>,
) -> Result<(), Misfit> {
    let mut from = Bytes(bytes);
    let mut before: Option<&[u8]> = None;
    for _ in 0..from.count(8)? {
        let name = from.value()?.ok_or(Misfit::Malformed)?;
        if before.is_some_and(|before| (before.len(), before) >= (name.len(), name)) {
            return Err(Misfit::Malformed);
        }
        before = Some(name);
        take(text::utf8(name)?, from.value()?.map(text::utf8).transpose()?)?;
    }
    from.end()
}

pub(super) fn write_pairs(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let first = into.len();
    pairs(bytes, |name, value| {
        if into.len() > first {
            into.push_str(", ");
        }
        quote(name, true, Escape::Backslash, into)?;
        into.push_str("=>");
        match value {
            Some(value) => quote(value, true, Escape::Backslash, into),
            None => {
                into.push_str("NULL");
                Ok(())
            }
        }
    })
}

/// The text of a part. Inside of others the server writes its short form of a boolean.
fn part(of: &PgType, value: &[u8], at: Nest<'_>) -> Result<String, Misfit> {
    let mut text = String::new();
    match of {
        PgType::Bool => text.push(if text::boolean(value)? { 't' } else { 'f' }),
        of => text::write(of, value, at, &mut text)?,
    }
    Ok(text)
}

fn quote(text: &str, in_quotes: bool, escape: Escape, into: &mut String) -> Result<(), Misfit> {
    if in_quotes {
        into.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                into.push(if escape == Escape::Backslash { '\\' } else { c });
            }
            into.push(c);
        }
        into.push('"');
    } else {
        into.push_str(text);
    }
    if into.len() > TEXT_BYTES_MAX { Err(Unholdable::Length.into()) } else { Ok(()) }
}

/// As C's `isspace` sees it.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}
