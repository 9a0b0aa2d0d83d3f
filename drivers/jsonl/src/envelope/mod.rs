//! Change events as Debezium writes them, without I/O: the bytes of one line in, a typed event out.
//!
//! An event is an *envelope*, `{"before", "after", "source", "op", "ts_ms", "transaction"}`, alone or as the `payload` beside
//! the `schema` that Kafka Connect's JsonConverter adds; or a line is one Kafka record that holds key and envelope as text.
//! Rows stay JSON: an [`Image`] lists where each member of a row stands in the line, and nothing of it is converted or copied
//! here. Facts of real events are in the corpus under `testdata/debezium`.
//!
//! The decoder holds no history but a small cache of schema parts, never panics, and allocates at most a small multiple of the
//! line. What it cannot read is [`Malformed`], which never tells a row's value.

mod parse;
mod record;
mod schema;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

pub use schema::{RowSchema, Unit, Wire, WireField};

pub use crate::json::Kind;
use crate::json::Value;
use parse::Envelope;
use schema::SchemaCache;

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One envelope.
    Debezium,
    /// One Kafka record: `{"topic", "key", "value", ...}`, key and value as text.
    Record,
}

/// What a line says.
#[derive(Debug)]
pub enum Line<'a> {
    /// Something happened to a table.
    Change(Change<'a>),
    /// A transaction begins or ends.
    Marker(Marker<'a>),
    /// A logical message: no table's, but a transaction's.
    Message(Tag<'a>),
    /// Nothing that concerns rows.
    Silent(Silent),
}

/// Lines that are read and passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silent {
    /// No text at all.
    Blank,
    /// What a broker needs to forget a key; the delete came before it.
    Tombstone,
    /// A sign of life of the connector.
    Heartbeat,
    /// A record of the connector's schema history.
    SchemaHistory,
}

/// A change of a table.
#[derive(Debug)]
pub struct Change<'a> {
    /// What happened.
    pub operation: Operation,
    /// The schema, or where there is none the database, that holds the table.
    pub qualifier: Option<Cow<'a, str>>,
    /// The table's name in it.
    pub table: Cow<'a, str>,
    /// Its transaction.
    pub tag: Tag<'a>,
    /// The row as it was.
    pub before: Option<Image<'a>>,
    /// The row as it is.
    pub after: Option<Image<'a>>,
    /// The key of the Kafka record.
    pub key: Option<Image<'a>>,
    /// What the schema part says about the rows, if there is one.
    pub schema: Option<&'a Arc<RowSchema>>,
}

/// What happened to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `c`
    Create,
    /// `u`
    Update,
    /// `d`
    Delete,
    /// `r`: a row that a snapshot found.
    Read,
    /// `t`
    Truncate,
}

/// Which transaction an event belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tag<'a> {
    /// `transaction.id`, else `source.gtid`, else `source.txId`; of PostgreSQL the part before the colon, since the rest
    /// differs from event to event.
    pub id: Option<Cow<'a, str>>,
    /// Is the source a PostgreSQL?
    pub postgres: bool,
    /// `source.ts_us`, else `source.ts_ms`: when the source committed it, microseconds since 1970.
    pub time: Option<i64>,
}

/// The beginning or end of a transaction. It names no connector, so its id is as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marker<'a> {
    /// Is it the end?
    pub end: bool,
    /// The transaction's id.
    pub id: Cow<'a, str>,
}

/// A row, where it stands in the line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Image<'a> {
    text: &'a str,
    members: &'a [Member],
}

/// A member of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Member {
    name: (u32, u32),
    value: (u32, u32),
    kind: Kind,
    name_escaped: bool,
    value_escaped: bool,
}

/// Why a line cannot be read. It has no table, so nobody can be told to skip just its own.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Bytes that are no text.
    #[error("not UTF-8 from byte {at} of the line on")]
    Encoding {
        /// The first wrong byte, from 1.
        at: usize,
    },
    /// Text that is no JSON.
    #[error("not JSON: {what}, at byte {at} of the {part}")]
    Syntax {
        /// The line, or the text of the record's key or value.
        part: &'static str,
        /// What is wrong.
        what: &'static str,
        /// Where, from 1.
        at: usize,
    },
    /// JSON that is no change event.
    #[error("JSON, but no change event: {0}")]
    NotAnEnvelope(String),
    /// An event of a kind that nobody knows.
    #[error("a change event with the unknown operation {0}; known are c, u, d, r, t and m")]
    UnknownOperation(String),
    /// A schema part that makes no sense.
    #[error("a change event whose schema part cannot be read: {0}")]
    Schema(String),
}

/// Reads lines.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    images: Images,
    schemas: SchemaCache,
    key_text: String,
    value_text: String,
}

/// The members of the row images of the line that was read last.
#[derive(Default, Debug)]
struct Images {
    before: Vec<Member>,
    after: Vec<Member>,
    key: Vec<Member>,
}

impl Decoder {
    /// A decoder of lines of one format.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            images: Images::default(),
            schemas: SchemaCache::default(),
            key_text: String::new(),
            value_text: String::new(),
        }
    }

    /// Reads a line, given without its line end.
    pub fn decode<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Malformed> {
        let line = std::str::from_utf8(line).map_err(|e| Malformed::Encoding { at: e.valid_up_to() + 1 })?;
        if line.bytes().all(|byte| byte.is_ascii_whitespace()) {
            return Ok(Line::Silent(Silent::Blank));
        }
        if u32::try_from(line.len()).is_err() {
            return Err(Malformed::NotAnEnvelope("it is longer than 4 GiB".into()));
        }
        match self.format {
            Format::Debezium => {
                let envelope = Envelope::parse(line, "line", &mut self.images, &mut self.schemas)?;
                envelope.into_line(line, None, &self.images, &self.schemas)
            }
            Format::Record => {
                let parts = record::split(line, &mut self.key_text, &mut self.value_text)?;
                if !parts.value {
                    return Ok(Line::Silent(Silent::Tombstone));
                }
                let key = parts.key && record::key_members(&self.key_text, &mut self.images.key)?;
                let envelope = Envelope::parse(&self.value_text, "value", &mut self.images, &mut self.schemas)?;
                let key = key.then_some(self.key_text.as_str());
                envelope.into_line(&self.value_text, key, &self.images, &self.schemas)
            }
        }
    }
}

impl<'a> Image<'a> {
    /// How many members.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// How long its text is, nearly.
    pub(crate) fn bytes(&self) -> usize {
        match (self.members.first(), self.members.last()) {
            (Some(first), Some(last)) => last.value.1.saturating_sub(first.name.0) as usize,
            _ => 0,
        }
    }

    /// A member: its name and its value.
    pub(crate) fn member(&self, at: usize) -> Option<(Value<'a>, Value<'a>)> {
        let member = self.members.get(at)?;
        let piece = |(start, end): (u32, u32)| self.text.get(start as usize..end as usize).unwrap_or_default();
        let name = Value { kind: Kind::String, escaped: member.name_escaped, raw: piece(member.name) };
        let value = Value { kind: member.kind, escaped: member.value_escaped, raw: piece(member.value) };
        Some((name, value))
    }

    /// All members.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let image = *self;
        (0..image.len()).filter_map(move |at| image.member(at))
    }

    /// The value of the member of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'a>> {
        self.members().find(|(member, _)| member.is_text(name)).map(|(_, value)| value)
    }
}
