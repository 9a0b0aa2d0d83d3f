//! A table with values of every type that the source reads, and what the server itself writes for each as text.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use rows::Type;

use crate::postgres::Postgres;

/// A type, and values of it as SQL. Each is also read as null, and inside an array.
pub const VALUES: &[(&str, &[&str])] = &[
    ("boolean", &["true", "false"]),
    ("smallint", &["-32768", "32767"]),
    ("integer", &["-2147483648", "2147483647"]),
    ("bigint", &["-9223372036854775808", "9223372036854775807"]),
    ("oid", &["0", "4294967295"]),
    ("real", &["0", "-1.5", "1e-10", "123456.7", "1e30", "'NaN'", "'-Infinity'", "3.4028235e38"]),
    ("double precision", &["0", "-0.1", "1e-300", "123456789.125", "1e15", "1e16", "'NaN'", "'Infinity'", "5e-324"]),
    ("numeric(12,2)", &["0", "-9999999999.99", "0.01", "1234.5"]),
    (
        "numeric",
        &["0", "0.000", "-0.00000000012345", "1e50", "123456789012345678901234567890.123456789", "'NaN'", "10000", "100000000"],
    ),
    ("money", &["0", "-12.34", "92233720368547758.07"]),
    (
        "text",
        &[
            "''",
            "'plain'",
            "'with \"quotes\", commas and {braces}'",
            "E'line\\nbreak\\ttab'",
            "'ünïcode ☃ 😀'",
            "'NULL'",
            "'back\\slash'",
        ],
    ),
    ("varchar(20)", &["'short'"]),
    ("char(6)", &["'pad'"]),
    ("name", &["'a_name'"]),
    ("\"char\"", &["'x'"]),
    ("mood", &["'sad'", "'happy and glad'"]),
    ("positive", &["1", "99"]),
    ("json", &["'{\"a\": 1,  \"a\": 2}'"]),
    ("jsonb", &["'{\"b\": [1, 2.50, null], \"a\": \"x\"}'"]),
    ("bytea", &["''", "'\\x00ff5c'"]),
    ("uuid", &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    (
        "date",
        &["'2000-01-01'", "'1999-12-31'", "'4713-01-01 BC'", "'5874897-12-31'", "'infinity'", "'-infinity'", "'2024-02-29'"],
    ),
    ("time", &["'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "'01:02:03.5'"]),
    ("time with time zone", &["'01:02:03+02'", "'01:02:03.25-03:30'", "'24:00:00+00'", "'12:00:00+15:59:59'"]),
    (
        "timestamp",
        &[
            "'2000-01-01 00:00:00'",
            "'1969-12-31 23:59:59.999999'",
            "'0044-03-15 12:00:00 BC'",
            "'infinity'",
            "'294276-12-31 23:59:59.999999'",
            "'4713-01-01 BC'",
        ],
    ),
    (
        "timestamp with time zone",
        &["'2024-03-31 01:30:00+01'", "'-infinity'", "'0001-01-01 00:00:00+00'", "'1900-01-01 00:00:00.1+00'"],
    ),
    (
        "interval",
        &[
            "'0'",
            "'1 year 2 months 3 days 04:05:06.789'",
            "'-1 month +1 day -00:00:01'",
            "'-3 days'",
            "'178000000 years'",
            "'1 day -25:00:00'",
        ],
    ),
    ("inet", &["'10.0.0.1'", "'10.0.0.0/8'", "'::1'", "'2001:db8::1/64'", "'::ffff:1.2.3.4'"]),
    ("cidr", &["'10.0.0.0/8'", "'10.1.2.3/32'", "'2001:db8::/32'"]),
    ("macaddr", &["'08:00:2b:01:02:03'"]),
    ("macaddr8", &["'08:00:2b:01:02:03:04:05'"]),
    ("bit(5)", &["B'10110'"]),
    ("bit varying(12)", &["B''", "B'101100111010'"]),
    ("pg_lsn", &["'0/0'", "'16/B374D848'"]),
    ("xid8", &["'18446744073709551615'"]),
];

/// How many rows it has: the last one is null in all columns.
pub fn rows() -> usize {
    VALUES.iter().map(|(_, values)| values.len()).max().unwrap() + 1
}

/// The table that holds all values: a column a type and one of its arrays, a row a value.
pub fn fill(server: &Postgres) {
    let sql = |statement: &str| server.sql("postgres", statement);
    sql(
        "CREATE TYPE mood AS ENUM ('sad', 'happy and glad'); CREATE DOMAIN small AS integer; CREATE DOMAIN positive AS small CHECK (VALUE > 0)",
    );
    let columns = VALUES.iter().enumerate().map(|(n, (of, _))| format!("v{n} {of}, a{n} {of}[]"));
    sql(&format!("CREATE TABLE public.everything (id int PRIMARY KEY, {})", columns.collect::<Vec<_>>().join(", ")));
    sql("CREATE PUBLICATION values_pub FOR TABLE public.everything");
    sql("SELECT pg_create_logical_replication_slot('values', 'pgoutput')");
    for row in 0..rows() {
        let values = VALUES.iter().map(|(of, values)| match values.get(row) {
            None => "NULL, NULL".to_owned(),
            Some(value) => format!("({value})::{of}, ARRAY[({value})::{of}, NULL, ({})::{of}]", values[0]),
        });
        sql(&format!("INSERT INTO public.everything VALUES ({row}, {})", values.collect::<Vec<_>>().join(", ")));
    }
}

/// All columns, declared as text.
pub fn as_text() -> BTreeMap<String, Type> {
    names().into_iter().map(|name| (name, Type::String)).collect()
}

fn names() -> Vec<String> {
    (0..VALUES.len()).flat_map(|n| [format!("v{n}"), format!("a{n}")]).collect()
}

/// Where these batches, which hold all rows in their order as text, differ from what the server writes.
pub fn differences(server: &Postgres, batches: &[RecordBatch]) -> Vec<String> {
    let mut differences = Vec::new();
    for name in &names() {
        let of = VALUES[name[1..].parse::<usize>().unwrap()].0;
        // Money as text has the currency of its locale: its digits are what is copied.
        let text = match (of, &name[..1]) {
            ("money", "v") => format!("{name}::numeric::text"),
            ("money", _) => format!("{name}::numeric[]::text"),
            ("boolean", "v") => format!("{name}::text"),
            // What is written, not what a cast makes of it: that takes away padding and adds masks.
            _ => format!("CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END"),
        };
        let said = server.sql(
            "postgres",
            &format!("SELECT encode(convert_to(coalesce({text}, '(null)'), 'UTF8'), 'hex') FROM everything ORDER BY id"),
        );
        let said: Vec<String> = said.lines().map(unhex).collect();
        let found: Vec<String> = batches
            .iter()
            .flat_map(|batch| {
                let column = batch.column_by_name(name).unwrap().as_string::<i32>().clone();
                (0..column.len()).map(move |row| if column.is_null(row) { "(null)".into() } else { column.value(row).to_owned() })
            })
            .collect();
        assert_eq!(said.len(), found.len());
        let differ = said.iter().zip(&found).filter(|(said, found)| said != found);
        differences.extend(differ.map(|(said, found)| format!("{of} {name}: the server writes '{said}', read was '{found}'")));
    }
    differences
}

fn unhex(text: &str) -> String {
    let bytes = (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}
