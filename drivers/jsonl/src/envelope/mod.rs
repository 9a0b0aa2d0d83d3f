//! Change events as Debezium writes them, without I/O: the bytes of one line in, a typed event out.
//!
//! An event is an *envelope*, `{"before", "after", "source", "op", "ts_ms", "transaction"}`, alone or as the `payload` beside
//! the `schema` that Kafka Connect's JsonConverter adds; or a line is one Kafka record that holds key and envelope as text.
//! Rows stay JSON: an [`Image`] lists where each member of a row stands in the line, and nothing of it is converted or copied
//! here. Facts of real events are in the corpus under `testdata/debezium`.
//!
//! The decoder holds no history but a small cache of schema parts, never panics, and allocates at most a small multiple of the
//! line. What it cannot read is [`Malformed`], which never tells a row's value.

mod record;
mod schema;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

pub use schema::{RowSchema, Unit, Wire, WireField};

pub use crate::json::Kind;
use crate::json::{Cursor, Syntax, Value};
use schema::{Cached, SchemaCache};

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

/// What an envelope's member may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Slot {
    #[default]
    Missing,
    Null,
    Row,
    Other(Kind),
}

/// The members of an envelope, as far as they matter.
#[derive(Default)]
struct Envelope<'a> {
    operation: Option<Value<'a>>,
    before: Slot,
    after: Slot,
    source: Option<Source<'a>>,
    transaction: Option<Cow<'a, str>>,
    schema: Option<Cached>,
    /// `payload: null`: a tombstone beside its schema.
    payload: Slot,
    /// Of a marker.
    status: Option<Value<'a>>,
    id: Option<Value<'a>>,
    counts: bool,
    /// Of other records.
    time: bool,
    history: bool,
    record: bool,
    members: usize,
}

/// The members of `source` that matter.
#[derive(Default)]
struct Source<'a> {
    connector: Option<Value<'a>>,
    database: Option<Value<'a>>,
    schema: Option<Value<'a>>,
    table: Option<Value<'a>>,
    transaction: Option<Value<'a>>,
    gtid: Option<Value<'a>>,
    millis: Option<Value<'a>>,
    micros: Option<Value<'a>>,
}

impl<'a> Envelope<'a> {
    fn parse(text: &'a str, part: &'static str, images: &mut Images, schemas: &mut SchemaCache) -> Result<Self, Malformed> {
        let mut envelope = Envelope::default();
        let mut cursor = Cursor::new(text);
        let syntax = |wrong: Syntax| Malformed::Syntax { part, what: wrong.what, at: wrong.at + 1 };
        if cursor.enter(b'{') {
            envelope.read(&mut cursor, images, schemas, true).map_err(syntax)?;
            cursor.end().map_err(syntax)?;
            return Ok(envelope);
        }
        let value = cursor.value().map_err(syntax)?;
        cursor.end().map_err(syntax)?;
        if value.kind == Kind::Null {
            envelope.payload = Slot::Null;
            return Ok(envelope);
        }
        Err(Malformed::NotAnEnvelope(format!("expected an object, found {}", value.kind)))
    }

    /// Reads the members of the object that the cursor has entered: the envelope, or what holds it as `payload`.
    fn read(
        &mut self,
        cursor: &mut Cursor<'a>,
        images: &mut Images,
        schemas: &mut SchemaCache,
        outermost: bool,
    ) -> Result<(), Syntax> {
        let mut first = true;
        while let Some(name) = cursor.name(&mut first)? {
            self.members += 1;
            match &*name.text().unwrap_or_default() {
                "before" => self.before = image(cursor, &mut images.before)?,
                "after" => self.after = image(cursor, &mut images.after)?,
                "source" => self.source = Source::read(cursor)?,
                "op" => self.operation = Some(cursor.value()?),
                "transaction" => self.transaction = transaction_id(cursor)?,
                "schema" if outermost => self.schema = schemas.read(cursor)?,
                "payload" if outermost => self.read_payload(cursor, images, schemas)?,
                "status" => self.status = Some(cursor.value()?),
                "id" => self.id = Some(cursor.value()?),
                other => {
                    match other {
                        "ts_ms" => self.time = true,
                        "ts_us" | "ts_ns" => {}
                        "event_count" | "data_collections" => self.counts = true,
                        "ddl" | "tableChanges" | "databaseName" => self.history = true,
                        "topic" | "value" => self.record = true,
                        _ => {}
                    }
                    cursor.value()?;
                }
            }
        }
        Ok(())
    }

    fn read_payload(&mut self, cursor: &mut Cursor<'a>, images: &mut Images, schemas: &mut SchemaCache) -> Result<(), Syntax> {
        if cursor.enter(b'{') {
            self.payload = Slot::Row;
            self.members = 0;
            return self.read(cursor, images, schemas, false);
        }
        let value = cursor.value()?;
        self.payload = if value.kind == Kind::Null { Slot::Null } else { Slot::Other(value.kind) };
        Ok(())
    }

    fn into_line(
        self,
        text: &'a str,
        key: Option<&'a str>,
        images: &'a Images,
        schemas: &'a SchemaCache,
    ) -> Result<Line<'a>, Malformed> {
        if self.payload == Slot::Null {
            return Ok(Line::Silent(Silent::Tombstone));
        }
        let Some(operation) = self.operation else { return self.without_operation() };
        let operation = match operation.inside() {
            "c" => Operation::Create,
            "u" => Operation::Update,
            "d" => Operation::Delete,
            "r" => Operation::Read,
            "t" => Operation::Truncate,
            "m" => return Ok(Line::Message(self.tag())),
            // A longer word may be a row's value in a line that is no envelope at all.
            other if other.len() == 1 && other.is_ascii() => return Err(Malformed::UnknownOperation(format!("'{other}'"))),
            _ => return Err(Malformed::UnknownOperation(format!("({} that is no single letter)", operation.kind))),
        };
        let source = self.source.as_ref().ok_or_else(|| not_an_envelope("'source' is missing"))?;
        let (qualifier, table) = source.table()?;
        let row = |slot: Slot, members: &'a [Member], name: &str| match slot {
            Slot::Missing | Slot::Null => Ok(None),
            Slot::Row => Ok(Some(Image { text, members })),
            Slot::Other(kind) => Err(not_an_envelope(&format!("'{name}' is {kind}, expected an object or null"))),
        };
        let schema = match &self.schema {
            Some(cached) => schemas.get(cached).map_err(Malformed::Schema)?,
            None => None,
        };
        Ok(Line::Change(Change {
            operation,
            qualifier,
            table,
            before: row(self.before, &images.before, "before")?,
            after: row(self.after, &images.after, "after")?,
            key: key.map(|text| Image { text, members: &images.key }),
            schema,
            tag: self.tag(),
        }))
    }

    /// What a line may be that has no `op`.
    fn without_operation(self) -> Result<Line<'a>, Malformed> {
        if let (Some(status), Some(id)) = (self.status, self.id)
            && (self.counts || self.time)
            && id.kind == Kind::String
            && matches!(status.inside(), "BEGIN" | "END")
        {
            let id = id.text().map_err(|_| not_an_envelope("a transaction's id that is no text"))?;
            return Ok(Line::Marker(Marker { end: status.inside() == "END", id }));
        }
        if self.history && self.source.is_some() {
            return Ok(Line::Silent(Silent::SchemaHistory));
        }
        if self.time && self.members == 1 {
            return Ok(Line::Silent(Silent::Heartbeat));
        }
        Err(match self.payload {
            Slot::Other(kind) => not_an_envelope(&format!("'payload' is {kind}, expected an object or null")),
            _ if self.record => not_an_envelope(
                "'op' is missing, but 'topic' or 'value' is there as in a Kafka record: 'source.format: record' reads those",
            ),
            _ => not_an_envelope("'op' is missing"),
        })
    }

    fn tag(&self) -> Tag<'a> {
        let Some(source) = &self.source else { return Tag { id: self.transaction.clone(), ..Tag::default() } };
        let postgres = source.connector.is_some_and(|connector| connector.is_text("postgresql"));
        let id = self.transaction.clone().or_else(|| scalar_text(source.gtid)).or_else(|| scalar_text(source.transaction));
        let id = if postgres { id.map(before_colon) } else { id };
        let number = |value: Option<Value<'a>>| value.and_then(|value| value.raw.parse::<i64>().ok());
        let time = number(source.micros).or_else(|| number(source.millis).and_then(|millis| millis.checked_mul(1_000)));
        Tag { id, postgres, time }
    }
}

impl<'a> Source<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Syntax> {
        if !cursor.enter(b'{') {
            cursor.value()?;
            return Ok(None);
        }
        let mut source = Source::default();
        let mut first = true;
        while let Some(name) = cursor.name(&mut first)? {
            let value = Some(cursor.value()?);
            match &*name.text().unwrap_or_default() {
                "connector" => source.connector = value,
                "db" => source.database = value,
                "schema" => source.schema = value,
                "table" => source.table = value,
                "txId" => source.transaction = value,
                "gtid" => source.gtid = value,
                "ts_ms" => source.millis = value,
                "ts_us" => source.micros = value,
                _ => {}
            }
        }
        Ok(Some(source))
    }

    fn table(&self) -> Result<(Option<Cow<'a, str>>, Cow<'a, str>), Malformed> {
        let text = |value: Option<Value<'a>>, name: &str| match value {
            None => Ok(None),
            Some(value) if value.kind == Kind::Null => Ok(None),
            Some(value) if value.kind == Kind::String => match value.text() {
                Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
                Err(_) => Err(not_an_envelope(&format!("'source.{name}' is no text"))),
            },
            Some(value) => Err(not_an_envelope(&format!("'source.{name}' is {}, expected a string", value.kind))),
        };
        let table = text(self.table, "table")?.ok_or_else(|| not_an_envelope("'source.table' is missing"))?;
        let schema = text(self.schema, "schema")?;
        Ok((if schema.is_some() { schema } else { text(self.database, "db")? }, table))
    }
}

/// Reads a row image, if one comes next.
fn image(cursor: &mut Cursor<'_>, members: &mut Vec<Member>) -> Result<Slot, Syntax> {
    members.clear();
    if !cursor.enter(b'{') {
        let value = cursor.value()?;
        return Ok(if value.kind == Kind::Null { Slot::Null } else { Slot::Other(value.kind) });
    }
    let mut first = true;
    let place = |end: usize, value: &Value<'_>| ((end - value.raw.len()) as u32, end as u32);
    loop {
        let Some((name, name_place)) = cursor.name_place(&mut first)? else { return Ok(Slot::Row) };
        let value = cursor.value()?;
        members.push(Member {
            name: (name_place as u32, (name_place + name.raw.len()) as u32),
            value: place(cursor.at(), &value),
            kind: value.kind,
            name_escaped: name.escaped,
            value_escaped: value.escaped,
        });
    }
}

fn transaction_id<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, Syntax> {
    if !cursor.enter(b'{') {
        cursor.value()?;
        return Ok(None);
    }
    let (mut first, mut id) = (true, None);
    while let Some(name) = cursor.name(&mut first)? {
        let value = cursor.value()?;
        if name.is_text("id") {
            id = scalar_text(Some(value));
        }
    }
    Ok(id)
}

/// A string's content or a number's digits.
fn scalar_text<'a>(value: Option<Value<'a>>) -> Option<Cow<'a, str>> {
    match value? {
        value if value.kind == Kind::String => value.text().ok(),
        value if value.kind == Kind::Number => Some(Cow::Borrowed(value.raw)),
        _ => None,
    }
}

fn before_colon(id: Cow<'_, str>) -> Cow<'_, str> {
    match (id.find(':'), id) {
        (None, id) => id,
        (Some(at), Cow::Borrowed(id)) => Cow::Borrowed(&id[..at]),
        (Some(at), Cow::Owned(id)) => Cow::Owned(id[..at].to_owned()),
    }
}

fn not_an_envelope(why: &str) -> Malformed {
    Malformed::NotAnEnvelope(why.to_owned())
}
