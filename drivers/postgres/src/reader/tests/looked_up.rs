//! What is looked up at the server before a frame is taken: types, and what older rows have in columns that came.

use super::super::read_frames;
use super::*;

#[test]
fn a_column_that_came_brings_what_older_rows_have_in_it() {
    let mut log = Log::from(0);
    let columns = [("id", None), ("word", Some("of a column that was there")), ("day", Some("2024-02-29")), ("", None)];
    log.attributes = attributes(&columns);
    let told = |log: &mut Log| {
        let read = log.read();
        let schemas = read.events.iter().filter_map(|event| match event {
            LogEvent::Schema { schema, .. } => Some(schema),
            _ => None,
        });
        let initials = |schema: &Arc<TableSchema>| schema.columns.iter().map(|column| column.initial.clone()).collect::<Vec<_>>();
        schemas.map(initials).collect::<Vec<_>>()
    };
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", TEXT), ("day", DATE)]);
    log.insert(50, &[V::B(&id(2)), V::Null, V::B(&0_i32.to_be_bytes())]);
    assert_eq!(told(&mut log), [[None, None, Some("2024-02-29".to_owned())]]);
    // Once it is there it keeps what it came with.
    log.attributes = attributes(&columns.map(|(name, _)| (name, None)));
    log.relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", TEXT), ("day", DATE)]);
    log.insert(60, &[V::B(&id(3)), V::Null, V::Null]);
    assert_eq!(told(&mut log), Vec::<[Option<String>; 3]>::new());
    log.attributes = attributes(&[("id", None), ("", None), ("day", None), ("more", None)]);
    log.relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("day", DATE), ("more", TEXT)]);
    log.insert(70, &[V::B(&id(4)), V::Null, V::Null]).commit(100);
    assert_eq!(told(&mut log), [[None, Some("2024-02-29".to_owned()), None]]);
}

/// Columns with their numbers.
type Numbered = Vec<(String, Option<u32>)>;

/// The schemas that were told, and where a change was refused.
fn told(log: &mut Log) -> (Vec<Numbered>, Vec<(Coordinate, &'static str)>) {
    let read = log.read();
    let numbered = |schema: &TableSchema| schema.columns.iter().map(|column| (column.name.clone(), column.identity)).collect();
    let schema = |event: &LogEvent| if let LogEvent::Schema { schema, .. } = event { Some(numbered(schema)) } else { None };
    let refused = |event: &LogEvent| match event {
        LogEvent::Refused { coordinate, error, .. } => Some((*coordinate, error.code)),
        _ => None,
    };
    (read.events.iter().filter_map(schema).collect(), read.events.iter().filter_map(refused).collect())
}

fn numbered<const N: usize>(columns: [(&str, u32); N]) -> Numbered {
    columns.map(|(name, number)| (name.to_owned(), Some(number))).into()
}

/// A log that has told a row, of columns with numbers, in a transaction that goes on.
fn with_numbers() -> Log {
    let mut log = Log::from(0);
    log.attributes = attributes(&[("id", None), ("word", None)]);
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", TEXT)]);
    log.insert(40, &[V::B(&id(1)), V::Null]);
    log
}

#[test]
fn a_column_keeps_its_number_under_another_name() {
    let mut log = with_numbers();
    assert_eq!(told(&mut log), (vec![numbered([("id", 1), ("word", 2)])], vec![]));
    log.attributes = attributes(&[("key", None), ("text", None)]);
    log.relation_of(ORDERS, "orders", b'd', &[("key", INT8), ("text", TEXT)]);
    log.insert(50, &[V::B(&id(2)), V::Null]).commit(100);
    assert_eq!(told(&mut log), (vec![numbered([("key", 1), ("text", 2)])], vec![]));
}

#[test]
fn a_column_that_was_made_again_is_another_one() {
    let mut log = Log::from(0);
    log.attributes = attributes(&[("id", None), ("", None), ("day", None)]);
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("day", DATE)]);
    log.insert(40, &[V::B(&id(1)), V::Null]);
    assert_eq!(told(&mut log), (vec![numbered([("id", 1), ("day", 3)])], vec![]));
    // Of another type it shows.
    log.attributes = attributes(&[("id", None), ("", None), ("", None), ("day", Some("x"))]);
    log.relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("day", TEXT)]);
    log.insert(50, &[V::B(&id(2)), V::Null]);
    assert_eq!(told(&mut log), (vec![numbered([("id", 1), ("day", 4)])], vec![]));
    log.attributes = attributes(&[("id", None), ("", None), ("", None), ("", None), ("day", None)]);
    log.relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("day", TEXT)]);
    // Where nothing shows it is taken for the new one.
    log.insert(60, &[V::B(&id(3)), V::Null]).commit(100);
    assert_eq!(told(&mut log), (vec![numbered([("id", 1), ("day", 5)])], vec![]));
}

#[test]
fn a_key_column_that_was_made_again_is_no_key_any_more() {
    let mut log = with_numbers();
    assert_eq!(told(&mut log).1, []);
    log.attributes = attributes(&[("", None), ("word", None), ("id", None)]);
    log.relation_of(ORDERS, "orders", b'd', &[("word", TEXT), ("id", INT8)]);
    log.insert(50, &[V::Null, V::B(&id(2))]).commit(100);
    assert_eq!(told(&mut log).1, [(at(50, 2), "postgres-schema")]);
}

#[test]
fn types_that_are_not_known_are_looked_up_for_tables_that_are_read_alone() {
    let mut log = Log::from(0);
    log.begin(100);
    let relation = |name: &str| {
        let message = [
            &[b'R'][..],
            &9_u32.to_be_bytes(),
            b"shop\0",
            name.as_bytes(),
            b"\0d\0\x01\x01id\0",
            &777_u32.to_be_bytes(),
            &[0; 4],
        ];
        [&[b'w'][..], &[0; 24], &message.concat()].concat()
    };
    assert_eq!(log.assembler.take(&relation("orders")).unwrap(), Taken::LacksTypes);
    assert_eq!(log.assembler.take(&relation("others")).unwrap(), Taken::Whole);
}

/// A row with a composite of one attribute, as a frame.
fn with_address(at: u64, id: i64, attribute: u32) -> Vec<u8> {
    let address = [&1_u32.to_be_bytes()[..], &attribute.to_be_bytes(), &4_u32.to_be_bytes(), &7_i32.to_be_bytes()].concat();
    let row =
        [&b"I"[..], &ORDERS.to_be_bytes(), b"N\0\x02b", &8_u32.to_be_bytes(), &id.to_be_bytes(), b"b", &[0, 0, 0, 16], &address];
    [&[b'w'][..], &at.to_be_bytes(), &[0; 16], &row.concat()].concat()
}

#[test]
fn a_row_with_a_part_of_a_new_type_waits_until_that_is_looked_up_and_counts_once() {
    let mut log = Log::from(0);
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", ADDRESS)]);
    log.insert(40, &[V::B(&id(1)), V::Null]);
    let frame = with_address(40, 2, 777);
    for _ in 0..2 {
        assert_eq!(log.assembler.take(&frame).unwrap(), Taken::LacksTypes);
    }
    log.assembler.set_types(types_with(&[(777, "int4")]));
    assert_eq!(log.assembler.take_after_looking(&frame).unwrap(), Taken::Whole);
    let read = log.read();
    assert_eq!(read.events, [LogEvent::Rows { batch: 0, rows: 0..2, transaction: transaction(100) }]);
    let expected = [(Operation::Insert, at(40, 2), 1, None), (Operation::Insert, at(40, 6), 2, Some("(7)".to_owned()))];
    assert_eq!(rows(&read), expected);
}

#[test]
fn a_part_of_a_type_that_is_gone_is_refused_in_its_place() {
    let mut log = Log::from(0);
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", ADDRESS)]);
    let frame = with_address(40, 2, 777);
    assert_eq!(log.assembler.take(&frame).unwrap(), Taken::LacksTypes);
    assert_eq!(log.assembler.take_after_looking(&frame).unwrap(), Taken::Whole);
    let read = log.read();
    let LogEvent::Refused { coordinate, error, .. } = &read.events[0] else { panic!("{:?}", read.events) };
    assert_eq!((*coordinate, error.code), (at(40, 2), "postgres-value"));
    assert!(error.what.contains("777"), "{error}");
}

#[test]
fn a_type_that_is_gone_is_looked_up_once() {
    let mut log = Log::from(0);
    log.begin(100).relation_of(ORDERS, "orders", b'd', &[("id", INT8), ("word", ADDRESS)]);
    let first = with_address(40, 2, 777);
    assert_eq!(log.assembler.take(&first).unwrap(), Taken::LacksTypes);
    log.assembler.set_types(types());
    assert_eq!(log.assembler.take_after_looking(&first).unwrap(), Taken::Whole);
    assert_eq!(log.assembler.take(&with_address(41, 3, 777)).unwrap(), Taken::Whole);
    // Another lookup, for another type, does not bring it back.
    let another = with_address(42, 4, 778);
    assert_eq!(log.assembler.take(&another).unwrap(), Taken::LacksTypes);
    log.assembler.set_types(types_with(&[(778, "int4")]));
    assert_eq!(log.assembler.take_after_looking(&another).unwrap(), Taken::Whole);
    assert_eq!(log.assembler.take(&with_address(43, 5, 777)).unwrap(), Taken::Whole);
    let read = log.read();
    let refused: Vec<_> = read
        .events
        .iter()
        .filter_map(|event| match event {
            LogEvent::Refused { coordinate, error, .. } => Some((*coordinate, error.code)),
            _ => None,
        })
        .collect();
    assert_eq!(refused, [(at(40, 2), "postgres-value"), (at(41, 2), "postgres-value"), (at(43, 2), "postgres-value")]);
    assert_eq!(rows(&read), [(Operation::Insert, at(42, 2), 4, Some("(7)".to_owned()))]);
}

#[test]
fn a_relation_with_a_column_of_a_type_that_is_gone_is_looked_up_once() {
    let mut log = Log::from(0);
    let relation = |name: &str| {
        let head = [&[b'w'][..], &[0; 24], b"R", &9_u32.to_be_bytes(), b"shop\0", name.as_bytes()].concat();
        [&head[..], b"\0d\0\x01\x01id\0", &777_u32.to_be_bytes(), &[0; 4]].concat()
    };
    log.begin(100);
    assert_eq!(log.assembler.take(&relation("orders")).unwrap(), Taken::LacksTypes);
    assert_eq!(log.assembler.take_after_looking(&relation("orders")).unwrap(), Taken::LacksAttributes(RelationId(9)));
    log.assembler.set_attributes(RelationId(9), BTreeMap::new());
    assert_eq!(log.assembler.take_after_looking(&relation("orders")).unwrap(), Taken::Whole);
    assert_eq!(log.assembler.take(&relation("orders")).unwrap(), Taken::LacksAttributes(RelationId(9)));
}

#[test]
fn frames_that_are_read_alone_are_all_told() {
    let mut begin = vec![b'w'];
    begin.extend([&[0; 24][..], b"B", &100_u64.to_be_bytes(), &[0; 12]].concat());
    let mut relation = vec![b'w'];
    relation.extend([&[0; 24][..], b"R", &ORDERS.to_be_bytes(), b"shop\0orders\0d\0\x02"].concat());
    for (column, of) in [("\x01id\0", INT8), ("\0word\0", ADDRESS)] {
        relation.extend([column.as_bytes(), &of.to_be_bytes(), &(-1_i32).to_be_bytes()].concat());
    }
    let frames = [begin, relation, with_address(40, 2, 777), with_address(41, 3, INT8)];
    let types = Arc::unwrap_or_clone(types());
    let (read, ended) = read_frames([schema()], types, frames.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(ended, None);
    let refused = read.events.iter().filter(|event| matches!(event, LogEvent::Refused { .. })).count();
    assert_eq!(refused, 2, "{:?}", read.events);
}
