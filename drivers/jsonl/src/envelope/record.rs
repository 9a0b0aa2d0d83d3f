//! A line that is one Kafka record: `{"topic", "partition", "offset", "timestamp", "headers", "key", "value"}`, key and value as
//! the text of the message or null. Only the last two matter here.

use super::parse::{Slot, image, not_an_envelope};
use super::{Image, Malformed, Member};
use crate::json::{Cursor, Kind, Syntax, Value, unescape_into};

/// What a record has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parts {
    pub(super) key: bool,
    /// `false` for a tombstone.
    pub(super) value: bool,
}

/// Puts the texts of a record's key and value into the two buffers.
pub(super) fn split(line: &str, key_text: &mut String, value_text: &mut String) -> Result<Parts, Malformed> {
    let syntax = |wrong: Syntax| Malformed::Syntax { part: "line", what: wrong.what, at: wrong.at + 1 };
    let mut cursor = Cursor::new(line);
    if !cursor.enter(b'{') {
        let value = cursor.value().map_err(syntax)?;
        cursor.end().map_err(syntax)?;
        return Err(not_an_envelope(&format!("expected an object, a Kafka record, found {}", value.kind)));
    }
    let (mut key, mut value, mut operation) = (None, None, false);
    let mut first = true;
    while let Some(name) = cursor.name(&mut first).map_err(syntax)? {
        let found = cursor.value().map_err(syntax)?;
        match &*name.text().unwrap_or_default() {
            "key" => key = Some(found),
            "value" => value = Some(found),
            "op" => operation = true,
            _ => {}
        }
    }
    cursor.end().map_err(syntax)?;
    let Some(value) = value else {
        return Err(not_an_envelope(if operation {
            "'value' is missing as in an envelope: 'source.format: debezium' reads those"
        } else {
            "'value' is missing, which a Kafka record has"
        }));
    };
    let key = match key {
        Some(key) => fill(key, "key", key_text)?,
        None => false,
    };
    Ok(Parts { key, value: fill(value, "value", value_text)? })
}

/// Copies a text, its escapes resolved. `false` for null.
fn fill(value: Value<'_>, part: &str, into: &mut String) -> Result<bool, Malformed> {
    match value.kind {
        Kind::Null => return Ok(false),
        Kind::String => {}
        other => return Err(not_an_envelope(&format!("the record's {part} is {other}, expected a string or null"))),
    }
    let mut bytes = std::mem::take(into).into_bytes();
    bytes.clear();
    let whole = unescape_into(value.inside(), &mut bytes);
    *into = String::from_utf8(bytes).unwrap_or_default();
    whole.map_err(|_| not_an_envelope(&format!("the record's {part} holds half of a surrogate pair")))?;
    Ok(true)
}

/// Reads the members of a record's key. `false` for a key that is no object: it names no columns.
pub(super) fn key_members(text: &str, members: &mut Vec<Member>) -> Result<bool, Malformed> {
    let syntax = |wrong: Syntax| Malformed::Syntax { part: "key", what: wrong.what, at: wrong.at + 1 };
    let mut cursor = Cursor::new(text);
    let mut slot = image(&mut cursor, members).map_err(syntax)?;
    cursor.end().map_err(syntax)?;
    // With schemas on, the key is the payload. Its members are found by reading again from there: keys are small.
    let held = Image { text, members };
    let place = |name: &str| held.members().position(|(member, _)| member.is_text(name));
    if slot == Slot::Row
        && members.len() == 2
        && place("schema").is_some()
        && let Some(payload) = place("payload")
    {
        let mut inner = Cursor::new(text);
        inner.skip_known(members[payload].value.0 as usize);
        slot = image(&mut inner, members).map_err(syntax)?;
    }
    Ok(slot == Slot::Row)
}
