//! Text search: documents (`tsvector`) and queries (`tsquery`), as the server writes them.

use std::fmt::Write as _;

use super::Misfit;
use super::bytes::Bytes;

/// Lexemes with their places in the document, and what each of those weighs.
pub(super) fn write_document(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    const WEIGHTS: [&str; 4] = ["", "C", "B", "A"];
    let mut from = Bytes(bytes);
    // Each takes an empty text and a count at least.
    for at in 0..from.count(3)? {
        into.push_str(if at > 0 { " " } else { "" });
        write_lexeme(from.text()?, into);
        for at in 0..from.u16()? {
            let place = from.u16()?;
            let separator = if at > 0 { ',' } else { ':' };
            let _ = write!(into, "{separator}{}{}", place & 0x3FFF, WEIGHTS[usize::from(place >> 14)]);
        }
    }
    from.end()
}

fn write_lexeme(text: &str, into: &mut String) {
    into.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            into.push(c);
        }
        into.push(c);
    }
    into.push('\'');
}

/// A part of a query, in the order of the wire: an operator comes before what it is applied to, the right one first.
#[derive(Clone, Copy)]
enum Item<'a> {
    Lexeme {
        text: &'a str,
        weights: u8,
        is_prefix: bool,
    },
    Not,
    And,
    Or,
    /// The right one comes so many places behind the left one.
    Phrase(u16),
}

impl Item<'_> {
    /// How strongly an operator binds: a weaker one inside a stronger one stands in parentheses.
    fn strength(self) -> u8 {
        match self {
            Item::Or => 1,
            Item::And => 2,
            Item::Phrase(_) => 3,
            Item::Not => 4,
            Item::Lexeme { .. } => 5,
        }
    }
}

/// What is still to be written.
enum Rest {
    Text(&'static str),
    Distance(u16),
    /// The part that begins at this item, inside an operator of this strength, as the right side of a phrase or not.
    Part {
        at: usize,
        inside: u8,
        is_right_of_phrase: bool,
    },
}

/// A query, with as few parentheses as the server writes. Without recursion: a query of many parts is as deep as it is long.
pub(super) fn write_query(bytes: &[u8], into: &mut String) -> Result<(), Misfit> {
    let items = items(bytes)?;
    let sizes = sizes(&items)?;
    let mut rest = Vec::new();
    if !items.is_empty() {
        rest.push(Rest::Part { at: 0, inside: 0, is_right_of_phrase: false });
    }
    while let Some(next) = rest.pop() {
        let (at, inside, is_right_of_phrase) = match next {
            Rest::Text(text) => {
                into.push_str(text);
                continue;
            }
            Rest::Distance(distance) => {
                let _ = match distance {
                    1 => write!(into, " <-> "),
                    distance => write!(into, " <{distance}> "),
                };
                continue;
            }
            Rest::Part { at, inside, is_right_of_phrase } => (at, inside, is_right_of_phrase),
        };
        let item = *items.get(at).ok_or(Misfit::Malformed)?;
        let strength = item.strength();
        // A phrase stands for the place of its last word, so that on the right of another one it is not the same without.
        let is_phrase = matches!(item, Item::Phrase(_));
        let in_parentheses = strength < inside || (is_phrase && is_right_of_phrase);
        if in_parentheses {
            into.push_str("( ");
            rest.push(Rest::Text(" )"));
        }
        let part = |at, is_right_of_phrase| Rest::Part { at, inside: strength, is_right_of_phrase };
        let right = at + 1;
        let left = right + sizes.get(right).copied().unwrap_or_default();
        let between = match item {
            Item::Lexeme { text, weights, is_prefix } => {
                write_lexeme(text, into);
                if weights != 0 || is_prefix {
                    into.push_str(if is_prefix { ":*" } else { ":" });
                    into.extend("ABCD".chars().zip([8, 4, 2, 1]).filter(|(_, bit)| weights & bit != 0).map(|(letter, _)| letter));
                }
                continue;
            }
            Item::Not => {
                into.push('!');
                rest.push(part(right, false));
                continue;
            }
            Item::And => Rest::Text(" & "),
            Item::Or => Rest::Text(" | "),
            Item::Phrase(distance) => Rest::Distance(distance),
        };
        rest.extend([part(right, is_phrase), between, part(left, false)]);
    }
    Ok(())
}

fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, Misfit> {
    let mut from = Bytes(bytes);
    // An operator takes two bytes.
    let count = from.count(2)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(match from.u8()? {
            1 => {
                let (weights, is_prefix) = (from.u8()?, from.u8()? != 0);
                Item::Lexeme { text: from.text()?, weights, is_prefix }
            }
            2 => match from.u8()? {
                1 => Item::Not,
                2 => Item::And,
                3 => Item::Or,
                4 => Item::Phrase(from.u16()?),
                _ => return Err(Misfit::Malformed),
            },
            _ => return Err(Misfit::Malformed),
        });
    }
    from.end().map(|()| items)
}

/// How many items each part has that begins at one. There must be one part in all, or none.
fn sizes(items: &[Item<'_>]) -> Result<Vec<usize>, Misfit> {
    let mut sizes = vec![1; items.len()];
    // From behind: the parts that an operator is applied to are the last ones that are whole.
    let mut whole = 0_usize;
    for (at, item) in items.iter().enumerate().rev() {
        let needed: usize = match item {
            Item::Lexeme { .. } => 0,
            Item::Not => 1,
            Item::And | Item::Or | Item::Phrase(_) => 2,
        };
        whole = whole.checked_sub(needed).ok_or(Misfit::Malformed)? + 1;
        for _ in 0..needed {
            let part = sizes.get(at + sizes[at]).copied().ok_or(Misfit::Malformed)?;
            sizes[at] += part;
        }
    }
    if whole == usize::from(!items.is_empty()) { Ok(sizes) } else { Err(Misfit::Malformed) }
}
