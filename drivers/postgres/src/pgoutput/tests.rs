//! Messages by their bytes, arbitrary ones there and back, and ones that somebody broke.

use proptest::prelude::*;

use super::frame::{Frame, Standing, encode};
use super::*;

/// A message's bytes, written by the manual and not by the code that reads them.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn of(kind: u8) -> Self {
        Self(vec![kind])
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn text(mut self, value: &str) -> Self {
        self.0.extend(value.as_bytes());
        self.u8(0)
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend(value);
        self
    }

    fn tuple(mut self, values: &[Value]) -> Self {
        self = self.u16(u16::try_from(values.len()).unwrap());
        for value in values {
            self = match value {
                Value::Null => self.u8(b'n'),
                Value::Unchanged => self.u8(b'u'),
                Value::Text(bytes) => self.u8(b't').u32(u32::try_from(bytes.len()).unwrap()).bytes(bytes),
                Value::Binary(bytes) => self.u8(b'b').u32(u32::try_from(bytes.len()).unwrap()).bytes(bytes),
            };
        }
        self
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Null,
    Unchanged,
    Text(Vec<u8>),
    Binary(Vec<u8>),
}

fn values(tuple: &Tuple<'_>) -> Vec<Value> {
    let of = |datum| match datum {
        Datum::Null => Value::Null,
        Datum::Unchanged => Value::Unchanged,
        Datum::Text(bytes) => Value::Text(bytes.to_vec()),
        Datum::Binary(bytes) => Value::Binary(bytes.to_vec()),
    };
    tuple.values().map(of).collect()
}

#[test]
fn a_transactions_ends_are_read() {
    let begin = Bytes::of(b'B').u64(0x16_B374_D848).u64(7).u32(739);
    assert_eq!(decode(&begin.0), Ok(Message::Begin { commit: Lsn(0x16_B374_D848), time: 7, xid: 739 }));
    let commit = Bytes::of(b'C').u8(0).u64(100).u64(148).u64(9);
    assert_eq!(decode(&commit.0), Ok(Message::Commit { commit: Lsn(100), end: Lsn(148), time: 9 }));
}

#[test]
fn a_relation_is_read_with_its_columns() {
    let bytes = Bytes::of(b'R').u32(16385).text("shop").text("orders").u8(b'd').u16(2);
    let bytes = bytes.u8(1).text("id").u32(20).u32(u32::MAX).u8(0).text("total").u32(1700).u32(786_438);
    let relation = RelationMessage {
        id: RelationId(16385),
        namespace: "shop",
        name: "orders",
        identity: Identity::Default,
        columns: vec![
            RelationColumn { in_identity: true, name: "id", type_id: TypeId(20), modifier: -1 },
            RelationColumn { in_identity: false, name: "total", type_id: TypeId(1700), modifier: 786_438 },
        ],
    };
    assert_eq!(decode(&bytes.0), Ok(Message::Relation(relation)));
}

#[test]
fn a_row_has_null_unsent_text_and_binary_values() {
    let row = [Value::Null, Value::Unchanged, Value::Text(b"a".to_vec()), Value::Binary(vec![0, 1])];
    let bytes = Bytes::of(b'I').u32(5).u8(b'N').tuple(&row);
    let Ok(Message::Insert { relation: RelationId(5), new }) = decode(&bytes.0) else { panic!("it is an insert") };
    assert_eq!(values(&new), row);
    assert_eq!((new.len(), new.bytes()), (4, 1 + 1 + 6 + 7));
}

#[test]
fn an_update_has_no_old_row_its_identity_or_all_of_it() {
    let (old, new) = ([Value::Text(b"1".to_vec())], [Value::Text(b"2".to_vec())]);
    let update = || Bytes::of(b'U').u32(5);
    let bytes = update().u8(b'N').tuple(&new);
    assert!(matches!(decode(&bytes.0), Ok(Message::Update { old: None, .. })));
    let bytes = update().u8(b'K').tuple(&old).u8(b'N').tuple(&new);
    let Ok(Message::Update { old: Some(OldRow::Key(key)), new: row, .. }) = decode(&bytes.0) else { panic!("an update by key") };
    assert_eq!((values(&key), values(&row)), (old.to_vec(), new.to_vec()));
    let bytes = update().u8(b'O').tuple(&old).u8(b'N').tuple(&new);
    assert!(matches!(decode(&bytes.0), Ok(Message::Update { old: Some(OldRow::Full(_)), .. })));
    let bytes = update().u8(b'K').tuple(&old).u8(b'K').tuple(&new);
    assert_eq!(decode(&bytes.0), Err(Malformed::Unknown { what: "the kind of an update's row", found: b'K' }));
}

#[test]
fn a_delete_and_a_truncate_are_read() {
    let bytes = Bytes::of(b'D').u32(5).u8(b'K').tuple(&[Value::Null]);
    assert!(matches!(decode(&bytes.0), Ok(Message::Delete { relation: RelationId(5), old: OldRow::Key(_) })));
    let bytes = Bytes::of(b'T').u32(2).u8(3).u32(8).u32(9);
    let relations = vec![RelationId(8), RelationId(9)];
    assert_eq!(decode(&bytes.0), Ok(Message::Truncate { relations, cascade: true, restart_identity: true }));
}

#[test]
fn the_small_messages_are_read() {
    let bytes = Bytes::of(b'O').u64(77).text("elsewhere");
    assert_eq!(decode(&bytes.0), Ok(Message::Origin { commit: Lsn(77), name: "elsewhere" }));
    let bytes = Bytes::of(b'Y').u32(16400).text("shop").text("mood");
    assert_eq!(decode(&bytes.0), Ok(Message::Type { id: TypeId(16400), namespace: "shop", name: "mood" }));
    let bytes = Bytes::of(b'M').u8(1).u64(5).text("p").u32(2).bytes(b"hi");
    let message = Message::Logical { transactional: true, at: Lsn(5), prefix: "p", content: b"hi" };
    assert_eq!(decode(&bytes.0), Ok(message));
}

#[test]
fn messages_of_other_versions_are_named() {
    for kind in *b"SEcAbPKrp" {
        assert_eq!(decode(&[kind, 0, 0, 0, 1]), Err(Malformed::NotAskedFor { kind }));
    }
    assert_eq!(decode(b"?"), Err(Malformed::Unknown { what: "the kind of the message", found: b'?' }));
    assert_eq!(decode(b""), Err(Malformed::Short { what: "the kind of the message" }));
}

#[test]
fn a_lying_count_reserves_nothing() {
    let bytes = Bytes::of(b'T').u32(0x7FFF_FFFF).u8(0);
    assert_eq!(decode(&bytes.0), Err(Malformed::Short { what: "the relations of a truncate" }));
    let bytes = Bytes::of(b'T').u32(u32::MAX).u8(0);
    assert_eq!(decode(&bytes.0), Err(Malformed::Negative { what: "the number of a truncate's relations" }));
    let bytes = Bytes::of(b'I').u32(5).u8(b'N').u16(1).u8(b'b').u32(u32::MAX);
    assert_eq!(decode(&bytes.0), Err(Malformed::Negative { what: "the length of a value" }));
}

#[test]
fn bytes_behind_the_end_are_refused() {
    let bytes = Bytes::of(b'B').u64(1).u64(2).u32(3).u8(0);
    assert_eq!(decode(&bytes.0), Err(Malformed::Trailing { bytes: 1 }));
}

#[test]
fn frames_are_read_and_our_standing_is_written_as_the_manual_says() {
    let data = Bytes::of(b'w').u64(0x10).u64(0x20).u64(0x30).bytes(b"Bxyz");
    assert_eq!(frame::decode(&data.0), Ok(Frame::Data { at: Lsn(0x10), message: b"Bxyz" }));
    let alive = Bytes::of(b'k').u64(0x40).u64(0x50).u8(1);
    assert_eq!(frame::decode(&alive.0), Ok(Frame::Keepalive { end: Lsn(0x40), reply: true }));
    assert_eq!(frame::decode(b"x"), Err(Malformed::Unknown { what: "the kind of a frame", found: b'x' }));
    let standing = Standing { received: Lsn(3), durable: Lsn(2), time: 9, reply: true };
    assert_eq!(encode(standing).to_vec(), Bytes::of(b'r').u64(3).u64(2).u64(2).u64(9).u8(1).0);
}

#[test]
fn an_lsn_is_written_as_the_server_does() {
    for (lsn, text) in [(Lsn(0), "0/0"), (Lsn(0x1_0000_00AB), "1/AB"), (Lsn(u64::MAX), "FFFFFFFF/FFFFFFFF")] {
        assert_eq!(lsn.to_string(), text);
        assert_eq!(text.parse(), Ok(lsn));
    }
    for text in ["", "/", "0", "0/", "0/123456789", "g/0", "+1/0", "0/-1"] {
        assert!(text.parse::<Lsn>().is_err(), "{text}");
    }
}

/// What real servers sent for statements of every kind: each line an LSN and a message in hexadecimal, as
/// `pg_logical_slot_peek_binary_changes` gives them (protocol 1, binary, messages).
const RECORDED: [(&str, &str); 2] = [("15", include_str!("corpus/15.txt")), ("18", include_str!("corpus/18.txt"))];

fn recorded(text: &str) -> Vec<Vec<u8>> {
    let byte = |hex: &str, at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let message = |line: &str| {
        let (lsn, hex) = line.split_once(' ').unwrap();
        lsn.parse::<Lsn>().unwrap();
        (0..hex.len()).step_by(2).map(|at| byte(hex, at)).collect()
    };
    text.lines().map(message).collect()
}

#[test]
fn everything_that_real_servers_sent_is_read() {
    for (release, text) in RECORDED {
        let messages = recorded(text);
        let mut kinds = std::collections::BTreeMap::new();
        let mut values = 0;
        for message in &messages {
            *kinds.entry(char::from(message[0])).or_insert(0) += 1;
            values += walk(&decode(message).unwrap_or_else(|malformed| panic!("{release}: {malformed}: {message:?}")));
        }
        let all: String = kinds.keys().collect();
        assert_eq!(all, "BCDIMRTUY", "{release}: {kinds:?}");
        assert!(values > 150, "{release}: {values} values");
    }
}

#[test]
fn every_recorded_message_may_lack_its_end_or_have_any_byte_changed() {
    for (_, text) in RECORDED {
        for message in recorded(text) {
            // A value of some kilobytes is all alike.
            let bytes = message.len().min(400);
            for at in 0..bytes {
                assert!(decode(&message[..at]).is_err());
                for byte in [0, 1, b'b', 0x7F, 0xFF] {
                    let mut changed = message.clone();
                    changed[at] = byte;
                    if let Ok(message) = decode(&changed) {
                        walk(&message);
                    }
                }
            }
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..24);
    prop_oneof![Just(Value::Null), Just(Value::Unchanged), bytes().prop_map(Value::Text), bytes().prop_map(Value::Binary)]
}

fn any_row() -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(any_value(), 0..12)
}

/// Whole messages of every kind.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let name = "[a-zé_]{0,12}";
    let column = (any::<bool>(), name, any::<u32>(), any::<u32>());
    prop_oneof![
        any::<(u64, u64, u32)>().prop_map(|(lsn, time, xid)| Bytes::of(b'B').u64(lsn).u64(time).u32(xid).0),
        any::<(u64, u64, u64)>().prop_map(|(at, end, time)| Bytes::of(b'C').u8(0).u64(at).u64(end).u64(time).0),
        (any::<u32>(), name, name, proptest::collection::vec(column, 0..8)).prop_map(|(id, namespace, name, columns)| {
            let count = u16::try_from(columns.len()).unwrap();
            let head = Bytes::of(b'R').u32(id).text(&namespace).text(&name).u8(b'f').u16(count);
            let add = |bytes: Bytes, (key, name, of, modifier): (bool, String, u32, u32)| {
                bytes.u8(u8::from(key)).text(&name).u32(of).u32(modifier)
            };
            columns.into_iter().fold(head, add).0
        }),
        (any::<u32>(), any_row()).prop_map(|(id, row)| Bytes::of(b'I').u32(id).u8(b'N').tuple(&row).0),
        (any::<u32>(), any_row(), any_row()).prop_map(|(id, old, new)| Bytes::of(b'U')
            .u32(id)
            .u8(b'O')
            .tuple(&old)
            .u8(b'N')
            .tuple(&new)
            .0),
        (any::<u32>(), any_row()).prop_map(|(id, old)| Bytes::of(b'D').u32(id).u8(b'K').tuple(&old).0),
        proptest::collection::vec(any::<u32>(), 0..6).prop_map(|ids| {
            let head = Bytes::of(b'T').u32(u32::try_from(ids.len()).unwrap()).u8(0);
            ids.into_iter().fold(head, Bytes::u32).0
        }),
    ]
}

/// Walks through everything that a message holds.
fn walk(message: &Message<'_>) -> usize {
    match message {
        Message::Insert { new, .. } => values(new).len(),
        Message::Update { old: Some(OldRow::Key(old) | OldRow::Full(old)), new, .. } => values(old).len() + values(new).len(),
        Message::Update { old: None, new, .. } => values(new).len(),
        Message::Delete { old: OldRow::Key(old) | OldRow::Full(old), .. } => values(old).len(),
        Message::Relation(relation) => relation.columns.len(),
        Message::Truncate { relations, .. } => relations.len(),
        Message::Begin { .. }
        | Message::Commit { .. }
        | Message::Origin { .. }
        | Message::Type { .. }
        | Message::Logical { .. } => 0,
    }
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were_written(old in any_row(), new in any_row(), id in any::<u32>()) {
        let bytes = Bytes::of(b'U').u32(id).u8(b'O').tuple(&old).u8(b'N').tuple(&new);
        let Ok(Message::Update { relation, old: Some(OldRow::Full(found)), new: row }) = decode(&bytes.0) else {
            panic!("it is an update")
        };
        prop_assert_eq!(relation, RelationId(id));
        prop_assert_eq!((values(&found), values(&row)), (old, new));
    }

    #[test]
    fn every_whole_message_is_read_and_every_beginning_of_one_is_refused(message in any_message(), cut in any::<prop::sample::Index>()) {
        prop_assert!(decode(&message).is_ok());
        prop_assert!(decode(&message[..cut.index(message.len())]).is_err());
    }

    #[test]
    fn whatever_was_done_to_a_message_it_is_read_or_refused(
        mut message in any_message(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        if let Ok(message) = decode(&message) {
            walk(&message);
        }
    }

    #[test]
    fn noise_is_read_or_refused(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = decode(&noise) {
            walk(&message);
        }
        let _ = frame::decode(&noise);
    }
}
