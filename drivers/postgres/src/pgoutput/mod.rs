//! The output plugin's messages: bytes in, typed events out.
//!
//! Protocol version 1, text and binary values, as servers 14 to 18 send it ("Logical Replication Message Formats", chapter 55.9
//! of the manual of 15). No socket, no clock, no panic. A message borrows the bytes that it was read from; the one thing that
//! is allocated is a relation's list of columns and a TRUNCATE's list of relations, each bounded by the bytes that hold it.
//!
//! Not here: messages of protocol 2 and later (streamed and prepared transactions). They come only if they are asked for, which
//! this driver does not; one that came anyway is an error by name.

mod cursor;
pub mod frame;
mod message;
mod tuple;

#[cfg(test)]
mod tests;

pub use message::{Identity, Message, OldRow, RelationColumn, RelationMessage, decode};
pub use tuple::{Datum, Tuple};

/// A place in the server's write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl std::fmt::Debug for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Lsn {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let half = |part: &str| match part.len() {
            1..=8 if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => u64::from_str_radix(part, 16).ok(),
            _ => None,
        };
        let (high, low) = text.split_once('/').ok_or(Malformed::NotText { what: "an LSN" })?;
        let (high, low) = half(high).zip(half(low)).ok_or(Malformed::NotText { what: "an LSN" })?;
        Ok(Lsn(high << 32 | low))
    }
}

/// The oid of a relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelationId(pub u32);

/// The oid of a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeId(pub u32);

/// Bytes that are no message. It says which part of it, never what the part held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The bytes end inside something.
    #[error("the message ends inside {what}")]
    Short {
        /// Inside what.
        what: &'static str,
    },
    /// A length below zero.
    #[error("{what} is negative")]
    Negative {
        /// Which one.
        what: &'static str,
    },
    /// Text that is no UTF-8, or not of its form.
    #[error("{what} is not readable text")]
    NotText {
        /// Which one.
        what: &'static str,
    },
    /// A letter or number that means nothing there.
    #[error("{what} is {found}, which means nothing")]
    Unknown {
        /// Which one.
        what: &'static str,
        /// What it is.
        found: u8,
    },
    /// Bytes behind the end.
    #[error("{bytes} bytes stand behind the end of the message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A message of another version of the protocol than was asked for.
    #[error("a message of the kind '{}' came, which was not asked for", char::from(*.kind))]
    NotAskedFor {
        /// Its letter.
        kind: u8,
    },
}
