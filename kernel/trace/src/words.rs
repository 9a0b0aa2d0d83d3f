//! What is one word in a trace: names, numbers, ids, places. What is made of several is in [`crate::shapes`].

use std::fmt::Write as _;

use kernel::coordinator::RowRange;
use kernel::id::{
    AttemptId, BatchId, Bound, CommandId, CommitId, EncodedKey, Identity, Incarnation, Session, StreamName, TableName, Token,
    TransactionName, Version,
};
use kernel::position::{Coordinate, Digest, Offset, Position, Transaction};
use kernel::time::{Duration, Time};

use crate::text::{Parse, Say, Text, Words, Wrong, push_number};
use crate::veil::{Of, changes};

macro_rules! names {
    ($($name:ident),*) => { $(
        impl Say for $name {
            fn say(&self, text: &mut Text) {
                text.any_word(|out| out.push_str(self.as_str()));
            }
        }

        impl Parse for $name {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                words.word().map(|word| Self::from(&*word))
            }
        }
    )* };
}
names!(TableName, StreamName, TransactionName);

macro_rules! veiled_names {
    ($($name:ident $of:expr),*) => { $(
        impl Say for $name {
            fn say(&self, text: &mut Text) {
                let name = text.veil.name($of, self.as_str());
                text.any_word(|out| out.push_str(&name));
            }
        }

        impl Parse for $name {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                words.word().map(|word| Self::from(&*word))
            }
        }
    )* };
}
veiled_names!(Identity Of::Identity, Bound Of::Bound, Token Of::Token);

/// A text for people, or a schema: no machine decides by what is in it.
impl Say for String {
    fn say(&self, text: &mut Text) {
        let shown = text.veil.text(self);
        text.any_word(|out| out.push_str(&shown));
    }
}

impl Parse for String {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.word().map(std::borrow::Cow::into_owned)
    }
}

impl Say for EncodedKey {
    fn say(&self, text: &mut Text) {
        let hash = text.veil.hash(Of::Key, self.as_bytes());
        text.pieces(|out| {
            let _ = match hash {
                Some(hash) => write!(out, "k{hash:016x}"),
                None => write!(out, "{self:?}"),
            };
        });
    }
}

impl Parse for EncodedKey {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("key", |word| {
            let digits = word.strip_prefix('k').filter(|digits| digits.is_ascii() && digits.len() % 2 == 0)?;
            let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
            Some(Self::from(bytes?.as_slice()))
        })
    }
}

macro_rules! plain_numbers {
    ($($number:ident),*) => { $(
        impl Say for $number {
            fn say(&self, text: &mut Text) {
                self.0.say(text);
            }
        }

        impl Parse for $number {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                Parse::parse(words).map(Self)
            }
        }
    )* };
}
plain_numbers!(Incarnation, BatchId, Session, Time, Duration, Version);

macro_rules! ids {
    ($($id:ident $letter:literal),*) => { $(
        impl Say for $id {
            fn say(&self, text: &mut Text) {
                text.pieces(|out| {
                    out.push_str($letter);
                    push_number(out, self.incarnation.0.into());
                    out.push('.');
                    push_number(out, self.number);
                });
            }
        }

        impl Parse for $id {
            fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
                words.read(concat!("'", $letter, "LIFE.NUMBER'"), |word| {
                    let (life, number) = word.strip_prefix($letter)?.split_once('.')?;
                    Some(Self { incarnation: Incarnation(life.parse().ok()?), number: number.parse().ok()? })
                })
            }
        }
    )* };
}
ids!(CommandId "#", CommitId "c", AttemptId "a");

impl Say for Coordinate {
    fn say(&self, text: &mut Text) {
        text.pieces(|out| {
            push_number(out, self.major);
            out.push('.');
            push_number(out, self.minor.into());
        });
    }
}

impl Parse for Coordinate {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("coordinate", |word| {
            let (major, minor) = word.split_once('.')?;
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        })
    }
}

impl Say for Transaction {
    fn say(&self, text: &mut Text) {
        text.any_word(|out| {
            out.push_str(self.stream.as_str());
            out.push('@');
            push_number(out, self.at.0);
        });
    }
}

impl Parse for Transaction {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("transaction", |word| {
            let (stream, at) = word.rsplit_once('@')?;
            Some(Self { stream: stream.into(), at: Offset(at.parse().ok()?) })
        })
    }
}

impl Say for Position {
    fn say(&self, text: &mut Text) {
        text.any_word(|out| {
            let _ = write!(out, "{self}");
        });
    }
}

impl Parse for Position {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("position", |word| word.parse().ok())
    }
}

impl Say for RowRange {
    fn say(&self, text: &mut Text) {
        text.pieces(|out| {
            push_number(out, self.batch.0);
            out.push(':');
            push_number(out, self.rows.start.into());
            out.push_str("..");
            push_number(out, self.rows.end.into());
        });
    }
}

impl Parse for RowRange {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("range of rows", |word| {
            let (batch, rows) = word.split_once(':')?;
            let (start, end) = rows.split_once("..")?;
            Some(Self { batch: BatchId(batch.parse().ok()?), rows: start.parse().ok()?..end.parse().ok()? })
        })
    }
}

/// The count; with the sum where it is not that of so many changes that are no rows.
impl Say for Digest {
    fn say(&self, text: &mut Text) {
        let digest = text.veil.digest(*self);
        text.pieces(|out| {
            push_number(out, digest.count);
            if digest != changes(digest.count) {
                let _ = write!(out, "+{:x}", digest.hash);
            }
        });
    }
}

impl Parse for Digest {
    fn parse(words: &mut Words<'_>) -> Result<Self, Wrong> {
        words.read("digest", |word| match word.split_once('+') {
            None => word.parse().ok().map(changes),
            Some((count, hash)) => Some(Self { count: count.parse().ok()?, hash: u64::from_str_radix(hash, 16).ok()? }),
        })
    }
}
