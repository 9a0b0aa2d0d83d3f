//! Frames of PostgreSQL's replication stream and the messages in them: what is read can be written so that it is read back the same.

use std::sync::Arc;

use contract::LogEvent;
use postgres_source::pgoutput::frame::{self, Frame, Standing};
use postgres_source::pgoutput::{Datum, Identity, Lsn, Message, OldRow, Tuple, TypeId, decode};
use postgres_source::values::{TypeEntry, Types};
use rows::{Column, TableSchema, Type};

use crate::Saw;
use crate::read::is_well_formed;

/// The bytes are frames, each behind its length in two bytes. Each is looked at alone, and all together make rows of a table.
pub fn frames(bytes: &[u8]) -> Saw {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (frame, after) = after.split_at(length);
        frames.push(frame);
        rest = after;
    }
    let taken = frames.iter().filter(|frame| one_frame(frame) == Saw::Taken).count();
    assembled(&frames);
    Saw::taken_if(taken > 0)
}

/// What comes of all of them together is the same each time, and its batches are what a batch must be.
fn assembled(frames: &[&[u8]]) {
    let read = || postgres_source::read_frames(tables(), types(), frames.iter().copied());
    let (read, again) = (read(), read());
    let (Ok((read, ended)), Ok((again, ended_again))) = (&read, &again) else { panic!("a batch could not be made: {read:?}") };
    assert_eq!((&read.events, ended.as_ref().map(|e| &e.what)), (&again.events, ended_again.as_ref().map(|e| &e.what)));
    is_well_formed(read);
    for event in &read.events {
        let transaction = match event {
            LogEvent::Rows { transaction, .. } | LogEvent::Truncated { transaction, .. } => transaction,
            LogEvent::Schema { transaction, .. } | LogEvent::Refused { transaction, .. } => transaction,
            LogEvent::Ended { transaction, upto, .. } => {
                assert!(upto.contains_transaction(transaction), "{transaction:?} ends at {upto}");
                transaction
            }
            LogEvent::Keepalive { .. } => continue,
        };
        assert!(read.names.contains_key(transaction), "{transaction:?} has no name");
    }
}

/// The tables of the recorded corpus.
fn tables() -> Vec<Arc<TableSchema>> {
    let orders = vec![
        Column::new("id", Type::Int64, false),
        Column::new("customer", Type::String, true),
        Column::new("total", Type::Decimal { precision: 12, scale: 2 }, true),
    ];
    let keyless = vec![Column::new("a", Type::Int32, true), Column::new("b", Type::String, true)];
    let table = |name: &str, columns, key| TableSchema::new(name.into(), columns, key).expect("a table").into();
    vec![table("shop.orders", orders, vec![0]), table("shop.whole", keyless, vec![])]
}

/// What a server has built in, by its numbers.
fn types() -> Types {
    let names =
        [(16, "bool"), (17, "bytea"), (20, "int8"), (21, "int2"), (23, "int4"), (25, "text"), (1082, "date"), (1700, "numeric")];
    let entry = |id, name: &str, element| TypeEntry {
        id: TypeId(id),
        name: name.into(),
        known_as: name.into(),
        kind: b'b',
        has_binary: true,
        element: TypeId(element),
        base: TypeId(0),
        modifier: -1,
        attributes: Vec::new(),
    };
    let arrays = [entry(1007, "_int4", 23), entry(1009, "_text", 25)];
    Types::new(names.into_iter().map(|(id, name)| entry(id, name, 0)).chain(arrays), 2)
}

fn one_frame(bytes: &[u8]) -> Saw {
    lsn(bytes);
    match frame::decode(bytes) {
        Ok(Frame::Keepalive { end, reply }) => {
            let written = [&[b'k'][..], &end.0.to_be_bytes(), &[0; 8], &[u8::from(reply)]].concat();
            assert_eq!(frame::decode(&written), Ok(Frame::Keepalive { end, reply }));
            let standing = Standing { received: end, durable: end, time: 5, reply };
            assert_eq!(frame::encode(standing)[1..9], end.0.to_be_bytes());
            Saw::Taken
        }
        Ok(Frame::Data { at, message }) => {
            assert!(bytes.ends_with(message));
            let written = [&[b'w'][..], &at.0.to_be_bytes(), &[0; 16], message].concat();
            assert_eq!(frame::decode(&written), Ok(Frame::Data { at, message }));
            Saw::taken_if(one_message(message))
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Saw::Refused
        }
    }
}

fn one_message(bytes: &[u8]) -> bool {
    let Ok(message) = decode(bytes) else { return false };
    let written = encode(&message);
    assert_eq!(decode(&written).as_ref(), Ok(&message), "{message:?}");
    assert!(decode(&[&written[..], &[0]].concat()).is_err(), "a byte behind the end of {message:?}");
    if let Some((_, short)) = written.split_last() {
        assert_ne!(decode(short).as_ref(), Ok(&message), "{message:?}, cut short");
    }
    true
}

/// An LSN as text.
fn lsn(bytes: &[u8]) {
    let number = bytes.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    assert_eq!(Lsn(number).to_string().parse::<Lsn>(), Ok(Lsn(number)));
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= 20) else { return };
    if let Ok(lsn) = text.parse::<Lsn>() {
        assert_eq!(lsn.to_string().parse::<Lsn>(), Ok(lsn), "'{text}'");
    }
}

/// By the manual's chapter on these formats, and not by the code that reads them.
#[derive(Default)]
struct Written(Vec<u8>);

impl Written {
    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes()).u8(0)
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(value);
        self
    }

    fn tuple(mut self, tuple: &Tuple<'_>) -> Self {
        assert_eq!(tuple.values().count(), tuple.len());
        assert_eq!(tuple.is_empty(), tuple.values().next().is_none());
        let before = self.0.len();
        self = self.u16(tuple.len() as u16);
        for value in tuple.values() {
            self = match value {
                Datum::Null => self.u8(b'n'),
                Datum::Unchanged => self.u8(b'u'),
                Datum::Text(bytes) => self.u8(b't').u32(bytes.len() as u32).bytes(bytes),
                Datum::Binary(bytes) => self.u8(b'b').u32(bytes.len() as u32).bytes(bytes),
            };
        }
        assert_eq!(self.0.len() - before, 2 + tuple.bytes());
        self
    }

    fn old(self, old: &OldRow<'_>) -> Self {
        match old {
            OldRow::Key(tuple) => self.u8(b'K').tuple(tuple),
            OldRow::Full(tuple) => self.u8(b'O').tuple(tuple),
        }
    }
}

fn encode(message: &Message<'_>) -> Vec<u8> {
    let empty = Written::default();
    let written = match message {
        Message::Begin { commit, time, xid } => empty.u8(b'B').u64(commit.0).u64(*time as u64).u32(*xid),
        Message::Commit { commit, end, time } => empty.u8(b'C').u8(0).u64(commit.0).u64(end.0).u64(*time as u64),
        Message::Origin { commit, name } => empty.u8(b'O').u64(commit.0).text(name),
        Message::Relation(relation) => {
            let identity = match relation.identity {
                Identity::Default => b'd',
                Identity::Nothing => b'n',
                Identity::Full => b'f',
                Identity::Index => b'i',
            };
            let head = empty.u8(b'R').u32(relation.id.0).text(relation.namespace).text(relation.name).u8(identity);
            relation.columns.iter().fold(head.u16(relation.columns.len() as u16), |written, column| {
                let named = written.u8(u8::from(column.in_identity)).text(column.name);
                named.u32(column.type_id.0).u32(column.modifier as u32)
            })
        }
        Message::Type { id, namespace, name } => empty.u8(b'Y').u32(id.0).text(namespace).text(name),
        Message::Insert { relation, new } => empty.u8(b'I').u32(relation.0).u8(b'N').tuple(new),
        Message::Update { relation, old, new } => {
            let head = empty.u8(b'U').u32(relation.0);
            let head = match old {
                Some(old) => head.old(old),
                None => head,
            };
            head.u8(b'N').tuple(new)
        }
        Message::Delete { relation, old } => empty.u8(b'D').u32(relation.0).old(old),
        Message::Truncate { relations, cascade, restart_identity } => {
            let options = u8::from(*cascade) | u8::from(*restart_identity) << 1;
            let head = empty.u8(b'T').u32(relations.len() as u32).u8(options);
            relations.iter().fold(head, |written, relation| written.u32(relation.0))
        }
        Message::Logical { transactional, at, prefix, content } => {
            let head = empty.u8(b'M').u8(u8::from(*transactional)).u64(at.0).text(prefix);
            head.u32(content.len() as u32).bytes(content)
        }
    };
    written.0
}
