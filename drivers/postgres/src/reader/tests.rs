//! What frames become: one after the other, without a server.

mod looked_up;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use contract::{Kind, Limit, LogEvent, LogRead};
use kernel::id::{StreamName, TableName, TransactionName};
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::value::Unholdable;
use rows::{Column, Operation, TableSchema, Type};

use super::{Assembler, Refusal, Selected, Taken};
use crate::catalog::Attribute;
use crate::pgoutput::{Lsn, RelationId, TypeId};
use crate::values::{Misfit, TypeEntry, Types};
use crate::visibility::{FullXid, Xids};

const INT8: u32 = 20;
const TEXT: u32 = 25;
const DATE: u32 = 1082;
const ADDRESS: u32 = 600;
const ORDERS: u32 = 500;
/// Where the server's transactions are when a session begins.
const SERVER_XID: u64 = (3 << 32) + 7;

/// A value of a row: binary, null, or not sent.
#[derive(Clone, Copy)]
enum V<'a> {
    B(&'a [u8]),
    Null,
    Unsent,
}

fn id(value: i64) -> [u8; 8] {
    value.to_be_bytes()
}

fn types() -> Arc<Types> {
    types_with(&[])
}

/// A type by itself, neither made of others nor by anybody here.
pub(super) fn entry(id: u32, known_as: &str) -> TypeEntry {
    TypeEntry {
        id: TypeId(id),
        name: known_as.into(),
        known_as: known_as.into(),
        kind: b'b',
        has_binary: true,
        element: TypeId(0),
        base: TypeId(0),
        modifier: -1,
        attributes: Vec::new(),
    }
}

/// The usual ones, a composite, and some that came since.
fn types_with(more: &[(u32, &str)]) -> Arc<Types> {
    let usual = [entry(INT8, "int8"), entry(TEXT, "text"), entry(DATE, "date"), TypeEntry { kind: b'c', ..entry(ADDRESS, "") }];
    Arc::new(Types::new(usual.into_iter().chain(more.iter().map(|(id, known_as)| entry(*id, known_as))), 2))
}

fn schema() -> Arc<TableSchema> {
    let columns = vec![Column::new("id", Type::Int64, false), Column::new("word", Type::String, true)];
    Arc::new(TableSchema::new(TableName::from("shop.orders"), columns, vec![0]).unwrap())
}

/// A log that is fed frame by frame.
struct Log {
    assembler: Assembler,
    /// What the catalogue says of the columns: none where a test is about something else.
    attributes: BTreeMap<u32, Attribute>,
}

/// The columns of a table by their numbers, and what older rows have in them; "" was dropped.
fn attributes(columns: &[(&str, Option<&str>)]) -> BTreeMap<u32, Attribute> {
    let attribute = |(name, initial): &(&str, Option<&str>)| Attribute {
        name: (!name.is_empty()).then(|| (*name).to_owned()),
        initial: initial.map(str::to_owned),
    };
    (1..).zip(columns.iter().map(attribute)).collect()
}

impl Log {
    fn from(from: u64) -> Self {
        Self::of(from, false)
    }

    fn of(from: u64, keeps_every_row: bool) -> Self {
        let selected = Selected { schema: schema(), declared: BTreeMap::new(), keeps_every_row, relation: None };
        let tables = [(TableName::from("shop.orders"), selected)].into();
        let assembler = Assembler::new(tables, types(), Lsn(from), Xids::near(FullXid(SERVER_XID)));
        Self { assembler, attributes: BTreeMap::new() }
    }

    fn data(&mut self, at: u64, message: &[u8]) -> Result<(), contract::Error> {
        let frame = [&[b'w'][..], &at.to_be_bytes(), &[0; 16], message].concat();
        let mut taken = self.assembler.take(&frame)?;
        if let Taken::LacksAttributes(relation) = taken {
            self.assembler.set_attributes(relation, self.attributes.clone());
            taken = self.assembler.take_after_looking(&frame)?;
        }
        assert_eq!(taken, Taken::Whole);
        Ok(())
    }

    fn begin(&mut self, commit: u64) -> &mut Self {
        self.begin_as(commit, 0)
    }

    fn begin_as(&mut self, commit: u64, xid: u32) -> &mut Self {
        let message = [&[b'B'][..], &commit.to_be_bytes(), &5_i64.to_be_bytes(), &xid.to_be_bytes()].concat();
        self.data(commit, &message).unwrap();
        self
    }

    fn commit(&mut self, commit: u64) -> &mut Self {
        let message = [&[b'C', 0][..], &commit.to_be_bytes(), &(commit + 8).to_be_bytes(), &5_i64.to_be_bytes()].concat();
        self.data(commit + 8, &message).unwrap();
        self
    }

    fn keepalive(&mut self, end: u64) -> &mut Self {
        assert_eq!(self.assembler.take(&[&[b'k'][..], &end.to_be_bytes(), &[0; 9]].concat()).unwrap(), Taken::Whole);
        self
    }

    /// The relation under a number and name, with these columns; the first one is its identity. The server says no place with it.
    fn relation_of(&mut self, number: u32, name: &str, identity: u8, columns: &[(&str, u32)]) -> &mut Self {
        let mut message = [&[b'R'][..], &number.to_be_bytes(), b"shop\0", name.as_bytes(), &[0, identity]].concat();
        message.extend(u16::try_from(columns.len()).unwrap().to_be_bytes());
        for (place, (column, of)) in columns.iter().enumerate() {
            message.push(u8::from(place == 0 || identity == b'f'));
            message.extend([column.as_bytes(), &[0], &of.to_be_bytes(), &(-1_i32).to_be_bytes()].concat());
        }
        self.data(0, &message).unwrap();
        self
    }

    fn relation(&mut self, identity: u8) -> &mut Self {
        self.relation_of(ORDERS, "orders", identity, &[("id", INT8), ("word", TEXT)])
    }

    fn insert(&mut self, at: u64, row: &[V<'_>]) -> &mut Self {
        self.change(at, b'I', &[(b'N', row)])
    }

    fn change(&mut self, at: u64, kind: u8, rows: &[(u8, &[V<'_>])]) -> &mut Self {
        let mut message = [&[kind][..], &ORDERS.to_be_bytes()].concat();
        for (kind, row) in rows {
            message.push(*kind);
            message.extend(u16::try_from(row.len()).unwrap().to_be_bytes());
            for value in *row {
                match value {
                    V::Null => message.push(b'n'),
                    V::Unsent => message.push(b'u'),
                    V::B(bytes) => {
                        message.push(b'b');
                        message.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                        message.extend(*bytes);
                    }
                }
            }
        }
        self.data(at, &message).unwrap();
        self
    }

    fn read(&mut self) -> LogRead {
        let read = self.assembler.finish(0).unwrap();
        for batch in &read.batches {
            batch.check().unwrap();
        }
        read
    }
}

fn transaction(at: u64) -> Transaction {
    Transaction { stream: StreamName::from(""), at: Offset(at) }
}

fn at(major: u64, minor: u32) -> Coordinate {
    Coordinate { major, minor }
}

/// Operation, coordinate, key and word of each row.
fn rows(read: &LogRead) -> Vec<(Operation, Coordinate, i64, Option<String>)> {
    let of = |batch: &Arc<rows::ChangeBatch>| {
        let (ids, words) =
            (batch.data.column(0).as_primitive::<Int64Type>().clone(), batch.data.column(1).as_string::<i32>().clone());
        let row = |row| {
            let word = words.is_valid(row).then(|| words.value(row).to_owned());
            (batch.tail.operations[row], batch.tail.coordinates[row], ids.value(row), word)
        };
        (0..batch.rows()).map(row).collect::<Vec<_>>()
    };
    read.batches.iter().flat_map(of).collect()
}

fn ended(at: u64) -> LogEvent {
    LogEvent::Ended { transaction: transaction(at), upto: Position::scalar(at + 8), commit_time: Some(946_684_800_000_005) }
}

#[test]
fn a_transaction_becomes_its_rows_and_its_end() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd').insert(40, &[V::B(&id(1)), V::B(b"one")]).insert(50, &[V::B(&id(2)), V::Null]).commit(100);
    let read = log.read();
    assert_eq!(read.events, [LogEvent::Rows { batch: 0, rows: 0..2, transaction: transaction(100) }, ended(100)]);
    let expected = [(Operation::Insert, at(40, 2), 1, Some("one".to_owned())), (Operation::Insert, at(50, 2), 2, None)];
    assert_eq!(rows(&read), expected);
    assert_eq!(read.batches[0].tail.transactions[0].commit_time, Some(946_684_800_000_005));
    assert!(log.read().events.is_empty());
}

#[test]
fn rows_of_one_place_in_the_log_are_numbered() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd');
    for n in 0..3 {
        log.insert(40, &[V::B(&id(n)), V::Null]);
    }
    let coordinates: Vec<_> = rows(&log.read()).into_iter().map(|(_, coordinate, _, _)| coordinate).collect();
    assert_eq!(coordinates, [at(40, 2), at(40, 6), at(40, 10)]);
}

#[test]
fn a_changed_key_is_a_delete_and_an_insert_that_nothing_divides() {
    let mut log = Log::from(0);
    let (old, new) = ([V::B(&id(1)), V::Null], [V::B(&id(9)), V::B(b"nine")]);
    log.begin(100).relation(b'd').change(40, b'U', &[(b'K', &old), (b'N', &new)]);
    let read = log.read();
    assert_eq!(read.events, [LogEvent::Rows { batch: 0, rows: 0..2, transaction: transaction(100) }]);
    assert_eq!(rows(&read), [(Operation::Delete, at(40, 1), 1, None), (Operation::Insert, at(40, 2), 9, Some("nine".into()))]);
    let batch = &read.batches[0];
    assert!(batch.is_absent(1, 0) && !batch.is_absent(1, 1) && !batch.is_absent(0, 0));
}

#[test]
fn an_update_of_a_row_that_is_known_whole_keeps_its_key() {
    let mut log = Log::from(0);
    let (old, new) = ([V::B(&id(1)), V::B(b"large")], [V::B(&id(1)), V::Unsent]);
    log.begin(100).relation(b'f').change(40, b'U', &[(b'O', &old), (b'N', &new)]).change(41, b'D', &[(b'O', &old)]);
    let read = log.read();
    let large = || Some("large".to_owned());
    assert_eq!(rows(&read), [(Operation::Update, at(40, 2), 1, large()), (Operation::Delete, at(41, 2), 1, large())]);
    assert!(read.batches[0].absent.iter().all(Option::is_none));
}

#[test]
fn a_value_that_was_not_sent_is_absent_and_not_null() {
    let mut log = Log::from(0);
    let (old, new) = ([V::B(&id(1)), V::Null], [V::B(&id(9)), V::Unsent]);
    log.begin(100).relation(b'd').change(40, b'U', &[(b'N', &[V::B(&id(1)), V::Unsent])]);
    log.change(41, b'U', &[(b'K', &old), (b'N', &new)]).insert(42, &[V::B(&id(3)), V::Null]).commit(100);
    let read = log.read();
    let expected = [(Operation::Update, 1), (Operation::Delete, 1), (Operation::Insert, 9), (Operation::Insert, 3)];
    assert_eq!(rows(&read).into_iter().map(|(operation, _, id, _)| (operation, id)).collect::<Vec<_>>(), expected);
    let batch = &read.batches[0];
    assert_eq!((0..4).map(|row| batch.is_absent(1, row)).collect::<Vec<_>>(), [true, true, true, false]);
    assert!(batch.absent[0].is_none());
}

#[test]
fn a_large_key_that_was_not_sent_is_in_the_old_row_that_tells_it() {
    let mut log = Log::from(0);
    let (old, new) = ([V::B(&id(1)), V::Null], [V::Unsent, V::B(b"one")]);
    log.begin(100).relation(b'd').change(40, b'U', &[(b'K', &old), (b'N', &new)]).commit(100);
    assert_eq!(rows(&log.read()), [(Operation::Update, at(40, 2), 1, Some("one".into()))]);
}

#[test]
fn where_every_row_is_kept_a_value_that_was_not_sent_is_refused_in_its_place_and_no_part_of_the_change_is_taken() {
    let mut log = Log::of(0, true);
    let (old, new) = ([V::B(&id(1)), V::Null], [V::B(&id(9)), V::Unsent]);
    log.begin(100).relation(b'd').insert(40, &[V::B(&id(1)), V::B(b"one")]);
    log.change(41, b'U', &[(b'K', &old), (b'N', &new)]).insert(42, &[V::B(&id(3)), V::B(b"three")]).commit(100);
    let read = log.read();
    let LogEvent::Refused { table, transaction: of, coordinate, error } = &read.events[1] else { panic!("{:?}", read.events) };
    assert_eq!((table.as_str(), of, *coordinate), ("shop.orders", &transaction(100), at(41, 2)));
    assert_eq!((error.kind, error.code), (Kind::Rejected, "postgres-unsent-value"));
    assert!(error.remedy.contains("REPLICA IDENTITY FULL"));
    assert_eq!(rows(&read).into_iter().map(|(_, _, id, _)| id).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(read.events[2], LogEvent::Rows { batch: 0, rows: 1..2, transaction: transaction(100) });
}

#[test]
fn a_read_of_refused_rows_alone_has_no_batch() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd').insert(40, &[V::B(b"short"), V::Null]).insert(41, &[V::Null, V::Null]).commit(100);
    let read = log.read();
    assert!(read.batches.is_empty());
    let codes: Vec<_> = read
        .events
        .iter()
        .filter_map(|event| match event {
            LogEvent::Refused { error, .. } => Some(error.code),
            _ => None,
        })
        .collect();
    assert_eq!(codes, ["postgres-value", "postgres-key"]);
}

#[test]
fn an_identity_that_does_not_tell_the_key_refuses_updates_and_deletes_and_takes_inserts() {
    let mut log = Log::from(0);
    let row = [V::B(&id(1)), V::Null];
    log.begin(100).relation(b'n').insert(40, &row).change(41, b'U', &[(b'N', &row)]).change(42, b'D', &[(b'K', &row)]);
    let read = log.read();
    assert_eq!(rows(&read).len(), 1);
    assert!(matches!(&read.events[1..], [LogEvent::Refused { error: a, .. }, LogEvent::Refused { error: b, .. }]
        if a.code == "postgres-identity" && b.code == "postgres-identity"));
}

#[test]
fn other_columns_are_told_in_front_of_the_first_row_that_has_them() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd').insert(40, &[V::B(&id(1)), V::Null]);
    log.relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", TEXT), ("day", DATE)]);
    log.insert(50, &[V::B(&id(2)), V::Null, V::B(&0_i32.to_be_bytes())]).commit(100);
    let read = log.read();
    let LogEvent::Schema { coordinate, schema, .. } = &read.events[1] else { panic!("{:?}", read.events) };
    assert_eq!(*coordinate, at(50, 0));
    let columns: Vec<_> =
        schema.columns.iter().map(|column| (column.name.as_str(), column.kind.clone(), column.nullable)).collect();
    assert_eq!(columns, [("id", Type::Int64, false), ("word", Type::String, true), ("day", Type::Date, true)]);
    assert_eq!(read.events[2], LogEvent::Rows { batch: 1, rows: 0..1, transaction: transaction(100) });
    assert_eq!(read.batches[1].schema, *schema);
}

#[test]
fn a_relation_that_is_sent_again_as_it_was_is_no_change_and_columns_may_come_in_another_order() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd').insert(40, &[V::B(&id(1)), V::B(b"a")]).relation(b'd');
    log.insert(50, &[V::B(&id(2)), V::B(b"b")]);
    log.relation_of(ORDERS, "orders", b'f', &[("word", TEXT), ("id", INT8)]).insert(60, &[V::B(b"c"), V::B(&id(3))]);
    let read = log.read();
    assert_eq!(read.events, [LogEvent::Rows { batch: 0, rows: 0..3, transaction: transaction(100) }]);
    assert_eq!(rows(&read)[2], (Operation::Insert, at(60, 2), 3, Some("c".into())));
}

#[test]
fn a_table_that_is_renamed_or_replaced_is_not_silently_another_one() {
    let columns = [("id", INT8), ("word", TEXT)];
    let row = [V::B(&id(1)), V::Null];
    let code = |log: &mut Log| match log.read().events.last() {
        Some(LogEvent::Refused { error, .. }) => error.code,
        other => panic!("{other:?}"),
    };
    let mut renamed = Log::from(0);
    renamed.begin(100).relation(b'd').insert(40, &row).relation_of(ORDERS, "elsewhere", b'd', &columns).insert(50, &row);
    assert_eq!(code(&mut renamed), "postgres-renamed");
    let mut replaced = Log::from(0);
    replaced.begin(100).relation_of(499, "orders", b'd', &columns).relation(b'd').insert(50, &row);
    assert_eq!(code(&mut replaced), "postgres-replaced");
}

#[test]
fn other_tables_are_passed_over_and_do_not_move_the_numbers() {
    let mut log = Log::from(0);
    log.begin(100).relation_of(7, "others", b'd', &[("id", INT8)]).commit(100);
    assert_eq!(log.read().events, [ended(100)]);
}

#[test]
fn a_sign_of_life_is_a_position_outside_of_a_transaction_only() {
    let mut log = Log::from(10);
    log.keepalive(9).keepalive(20).keepalive(30).begin(100).keepalive(40).commit(100).keepalive(50).keepalive(120);
    let keepalive = |end| LogEvent::Keepalive { upto: Position::scalar(end) };
    assert_eq!(log.read().events, [keepalive(30), ended(100), keepalive(120)]);
}

/// The transactions that a read names, and how.
fn names(read: &LogRead) -> Vec<(Transaction, TransactionName)> {
    read.names.clone().into_iter().collect()
}

#[test]
fn every_transaction_of_a_read_has_the_name_that_visibility_gives_it() {
    let mut log = Log::from(0);
    let row = [V::B(&id(1)), V::B(b"a")];
    log.begin_as(100, u32::MAX).relation(b'd').insert(40, &row).commit(100).begin_as(200, 9).insert(150, &row);
    let (old, new) = ((transaction(100), FullXid((3 << 32) - 1).name()), (transaction(200), FullXid((3 << 32) + 9).name()));
    assert_eq!(names(&log.read()), [old, new.clone()]);
    // A transaction that goes on is named again, and one of which nothing is told is not.
    log.insert(160, &row);
    assert_eq!(names(&log.read()), std::slice::from_ref(&new));
    log.commit(200);
    assert_eq!(names(&log.read()), [new]);
    log.begin_as(300, 10).keepalive(900);
    assert_eq!(names(&log.read()), []);
    log.insert(250, &[V::Null, V::Null]);
    assert_eq!(names(&log.read()), [(transaction(300), FullXid((3 << 32) + 10).name())], "a change that is refused, too");
}

#[test]
fn what_was_delivered_before_is_passed_over() {
    let mut log = Log::from(101);
    let row = [V::B(&id(1)), V::Null];
    log.begin(100).relation(b'd').insert(40, &row).commit(100).begin(101).insert(60, &row).commit(101);
    let read = log.read();
    assert_eq!(read.events, [LogEvent::Rows { batch: 0, rows: 0..1, transaction: transaction(101) }, ended(101)]);
}

#[test]
fn a_truncate_stands_in_its_place() {
    let mut log = Log::from(0);
    log.begin(100).relation(b'd');
    log.data(40, &[&[b'T'][..], &2_u32.to_be_bytes(), &[0], &9_u32.to_be_bytes(), &ORDERS.to_be_bytes()].concat()).unwrap();
    let table = TableName::from("shop.orders");
    assert_eq!(log.read().events, [LogEvent::Truncated { table, transaction: transaction(100), coordinate: at(40, 2) }]);
}

#[test]
fn a_stream_that_makes_no_sense_is_poison() {
    let row = [V::B(&id(1)), V::Null];
    let insert = |log: &mut Log| {
        let bytes = [&[b'I'][..], &ORDERS.to_be_bytes(), b"N", &0_u16.to_be_bytes()].concat();
        log.data(40, &bytes)
    };
    let mut outside = Log::from(0);
    assert_eq!(insert(&mut outside).unwrap_err().kind, Kind::Poison);
    let mut unknown = Log::from(0);
    unknown.begin(100);
    assert_eq!(insert(&mut unknown).unwrap_err().kind, Kind::Poison);
    let mut backwards = Log::from(0);
    backwards.begin(100).relation(b'd').insert(50, &row);
    assert_eq!(insert(&mut backwards).unwrap_err().kind, Kind::Poison);
    let mut noise = Log::from(0);
    assert_eq!(noise.assembler.take(b"?").unwrap_err().kind, Kind::Poison);
}

#[test]
fn a_limit_is_full_once_a_row_is_there() {
    let mut log = Log::from(0);
    let (one_row, one_byte) = (Limit { rows: 1, bytes: u64::MAX }, Limit { rows: 9, bytes: 1 });
    log.begin(100).relation(b'd');
    assert!(!log.assembler.is_full(one_row) && !log.assembler.is_full(one_byte));
    log.insert(40, &[V::B(&id(1)), V::Null]);
    assert!(log.assembler.is_full(one_row) && log.assembler.is_full(one_byte));
    log.read();
    assert!(!log.assembler.is_full(one_row) && !log.assembler.is_full(one_byte));
}

#[test]
fn what_helps_against_a_refusal_can_be_done() {
    let table = TableName::from("shop.Order lines");
    let unsent = Refusal::Unsent { column: "word".into() }.error(&table);
    for error in [&unsent, &Refusal::Identity.error(&table)] {
        assert!(error.remedy.contains(r#"ALTER TABLE "shop"."Order lines" REPLICA IDENTITY FULL;"#), "{error}");
        assert!(error.remedy.contains("`urutau doctor` first"), "{error}");
    }
    let value = |kind, misfit| Refusal::Value { column: "n".into(), kind, misfit };
    let above = Misfit::Unholdable(Unholdable::Above);
    let decimal = || Type::Decimal { precision: 12, scale: 2 };
    // Another type helps where the column has one that does not hold the value, and where text would.
    for (kind, misfit, helps) in [
        (decimal(), above, true),
        (Type::String, Misfit::Malformed, false),
        (Type::String, Misfit::UnknownType(TypeId(7)), false),
        (Type::List(Box::new(Type::Int64)), Misfit::Shape, true),
        (Type::List(Box::new(Type::String)), Misfit::Depth, false),
        (Type::String, Misfit::HiddenDigits, false),
        (decimal(), Misfit::HiddenDigits, false),
    ] {
        let error = value(kind.clone(), misfit).error(&table);
        assert_eq!(error.remedy.contains("declare the column as `string`"), helps, "{kind}: {error}");
        assert!(error.remedy.contains("`urutau table skip shop.Order lines` passes over the row"), "{error}");
    }
    let hidden = value(decimal(), Misfit::HiddenDigits).error(&table);
    assert!(hidden.what.contains("digits behind those that it shows"), "{hidden}");
    assert!(hidden.remedy.contains(r#"UPDATE "shop"."Order lines" SET "n" = "n"::text::numeric"#), "{hidden}");
}
