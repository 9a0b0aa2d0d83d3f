//! What the statements in `testdata/debezium/make` did to the tables, written by hand from them: each table's events in order, with
//! the rows as the database had them. A column that is not named is null; of a deleted row nothing but the key is known.

/// An event of a table: the operation, and the row's columns as text.
pub(crate) type Event = (&'static str, Vec<(&'static str, String)>);

fn row(columns: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    columns.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
}

pub(crate) fn orders() -> Vec<Event> {
    let order =
        |region: &str, id: &str, note: &str, qty: &str| row(&[("region", region), ("id", id), ("note", note), ("qty", qty)]);
    let key = |region: &str, id: &str| row(&[("region", region), ("id", id)]);
    vec![
        ("Read", order("eu", "1", "snapshot", "1")),
        ("Read", order("us", "1", "null", "2")),
        ("Insert", order("eu", "2", "new", "5")),
        ("Update", order("eu", "2", "new", "6")),
        // SET id = 3 is a delete of the old key and a create of the new one.
        ("Delete", key("eu", "2")),
        ("Insert", order("eu", "3", "new", "6")),
        ("Delete", key("eu", "3")),
        ("Insert", order("null", "1", "qty is null", "null")),
        ("Insert", order("tx", "1", "a", "1")),
        ("Insert", order("tx", "2", "b", "2")),
        ("Delete", key("tx", "1")),
        ("Insert", order("sp", "1", "kept", "1")),
        ("Insert", order("sp", "3", "kept", "1")),
        // An incremental snapshot, in the order of the key.
        ("Read", order("eu", "1", "snapshot", "1")),
        ("Read", order("null", "1", "qty is null", "null")),
        ("Read", order("sp", "1", "kept", "1")),
        ("Read", order("sp", "3", "kept", "1")),
        ("Read", order("tx", "2", "b", "2")),
        ("Read", order("us", "1", "null", "2")),
    ]
}

pub(crate) fn evolve() -> Vec<Event> {
    vec![
        ("Read", row(&[("id", "1"), ("a", "10")])),
        ("Update", row(&[("id", "1"), ("a", "11")])),
        ("Insert", row(&[("id", "2"), ("a", "20")])),
        ("Insert", row(&[("id", "3"), ("a", "30"), ("b", "thirty")])),
        ("Update", row(&[("id", "1"), ("a", "12"), ("b", "dflt")])),
        ("Insert", row(&[("id", "4"), ("a", "4000000000")])),
        ("Insert", row(&[("id", "5"), ("a", "50"), ("c", "fifty")])),
        ("Insert", row(&[("id", "6"), ("a", "60")])),
    ]
}

pub(crate) fn full_ident() -> Vec<Event> {
    let of = |b: &str| row(&[("id", "1"), ("a", "a"), ("b", b)]);
    vec![("Insert", of("1.10")), ("Update", of("2.20")), ("Delete", of("2.20")), ("Truncate", vec![])]
}

pub(crate) fn toast_default() -> Vec<Event> {
    let json = format!("{{\"k\": \"{}\"}}", "w".repeat(3_000));
    let (text, bytes, list) = ("x".repeat(3_000), "79".repeat(3_000), format!("[{}]", "z".repeat(3_000)));
    let first = [("id", "1"), ("small", "1"), ("big", &text), ("bigb", &bytes), ("bigarr", &list), ("bigj", &json)];
    // Large values that an update did not touch are not sent.
    let second = [("id", "1"), ("small", "2"), ("big", "~"), ("bigb", "~"), ("bigarr", "~"), ("bigj", "~")];
    vec![("Insert", row(&first)), ("Update", row(&second))]
}

pub(crate) fn toast_full() -> Vec<Event> {
    let text = "x".repeat(3_000);
    vec![
        ("Insert", row(&[("id", "1"), ("small", "1"), ("big", &text)])),
        ("Update", row(&[("id", "1"), ("small", "2"), ("big", &text)])),
    ]
}

/// The first partition; under the root's name the row that moved comes back in the same table.
pub(crate) fn parted_first() -> Vec<Event> {
    vec![
        ("Insert", row(&[("id", "1"), ("day", "2026-03-01"), ("v", "p")])),
        ("Delete", row(&[("id", "1"), ("day", "2026-03-01")])),
    ]
}

pub(crate) fn parted_second() -> Vec<Event> {
    vec![("Insert", row(&[("id", "1"), ("day", "2026-09-01"), ("v", "p")]))]
}

pub(crate) fn parted_root() -> Vec<Event> {
    [parted_first(), parted_second()].concat()
}

/// Row 2 has a value of every type.
const FULL: &[(&str, &str)] = &[
    ("id", "2"),
    ("b", "true"),
    ("i2", "-32768"),
    ("i4", "-2147483648"),
    ("i8", "-9223372036854775808"),
    ("f4", "1.5"),
    ("f8", "-2.25e300"),
    ("n_ps", "12345.6789"),
    ("n_0", "99999999999999999999999999999999999999"),
    ("n_free", "3.14159265358979323846264338327950288"),
    ("m", "12.34"),
    ("c", "ab   "),
    ("v", "größe"),
    ("t", "line1\nline2 \"quoted\" \\ 😀"),
    ("bin", "00ff10"),
    ("u", "7d4448409dc011d1b2455ffdce74fad2"),
    ("j", "{\"a\": 1, \"a\": 2}"),
    ("jb", "{\"b\": [1, 2.50, null]}"),
    ("x", "<a>1</a>"),
    ("d", "2026-02-28"),
    ("tm", "23:59:59.123456"),
    ("tm3", "01:02:03.456"),
    ("ttz", "10:00:00+02"),
    ("ts", "2026-02-28T12:34:56.123456"),
    ("ts3", "2026-02-28T12:34:56.123"),
    ("ts0", "2026-02-28T12:34:56"),
    ("tstz", "2026-02-28T09:34:56.123456Z"),
    ("iv", "P1Y2M3DT4H5M6.789S"),
    ("e", "happy"),
    ("em", "a@b.c"),
    ("h", "{\"k\":\"v\",\"n\":null}"),
    ("ai", "[1, null, 3]"),
    ("at", "[x, y,z, null]"),
    ("inet", "10.0.0.1"),
    ("cidr", "10.0.0.0/8"),
    ("mac", "08:00:2b:01:02:03"),
    ("bit1", "true"),
    // B'10101' and B'101' as bytes, the least significant first.
    ("bit5", "15"),
    ("vb", "05"),
    // The well-known binary of POINT(1.5 2.5): byte order, type 1, two doubles.
    ("pt", "{x: 1.5, y: 2.5, wkb: 0101000000000000000000f83f0000000000000440, srid: null}"),
    ("r4", "[1,10)"),
    ("rts", "[\"2026-01-01 00:00:00\",\"2026-02-01 00:00:00\")"),
    ("o", "42"),
];

pub(crate) fn types_all() -> Vec<Event> {
    let mut updated = row(FULL);
    for (name, text) in &mut updated {
        match *name {
            "i4" => *text = "7".to_owned(),
            "n_ps" => *text = "null".to_owned(),
            _ => {}
        }
    }
    let third = [
        ("id", "3"),
        ("f4", "NaN"),
        ("f8", "inf"),
        ("n_free", "NaN"),
        ("n_ps", "0.0001"),
        ("d", "0001-01-01"),
        ("ts", "0001-01-01T00:00:00"),
        ("tstz", "9999-12-31T23:59:59.999999Z"),
    ];
    let fourth = [
        ("id", "4"),
        ("f4", "-inf"),
        ("f8", "-0.0"),
        ("n_free", "0.00000000000000000001"),
        ("n_ps", "-0.5000"),
        ("d", "infinity"),
        ("ts", "infinity"),
        ("tstz", "-infinity"),
    ];
    let fifth = [
        ("id", "5"),
        ("f4", "1e-45"),
        ("f8", "5e-324"),
        ("n_free", "123456789012345678901234567890.5"),
        ("n_ps", "9999999999999999.9999"),
        ("d", "-4712-01-01"),
        ("ts", "1969-12-31T23:59:59.999999"),
        ("tstz", "1969-12-31T23:59:59.999999Z"),
    ];
    vec![
        ("Read", row(&[("id", "1"), ("t", "row of the first snapshot, others null")])),
        ("Insert", row(FULL)),
        ("Insert", row(&third)),
        ("Insert", row(&fourth)),
        ("Insert", row(&fifth)),
        ("Update", updated),
        ("Delete", row(&[("id", "5")])),
    ]
}
