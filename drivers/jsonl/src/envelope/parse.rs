//! One pass over an envelope: which of its members matter, and what they make of the line.

use std::borrow::Cow;

use super::schema::{Cached, SchemaCache};
use super::{Change, Image, Images, Line, Malformed, Marker, Member, Operation, Silent, Tag};
use crate::json::{Cursor, Kind, Syntax, Value};

/// What an envelope's member may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Slot {
    #[default]
    Missing,
    Null,
    Row,
    Other(Kind),
}

/// The members of an envelope, as far as they matter.
#[derive(Default)]
pub(super) struct Envelope<'a> {
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
    pub(super) fn parse(
        text: &'a str,
        part: &'static str,
        images: &mut Images,
        schemas: &mut SchemaCache,
    ) -> Result<Self, Malformed> {
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

    pub(super) fn into_line(
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
pub(super) fn image(cursor: &mut Cursor<'_>, members: &mut Vec<Member>) -> Result<Slot, Syntax> {
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

pub(super) fn not_an_envelope(why: &str) -> Malformed {
    Malformed::NotAnEnvelope(why.to_owned())
}
