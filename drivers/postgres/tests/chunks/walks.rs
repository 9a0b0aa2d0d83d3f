//! Walks through tables by chunks of every size: each row comes once, whatever its key is made of.

use std::collections::BTreeMap;

use contract::Chunks;
use kernel::id::Bound;

use crate::desk::{Desk, as_text, range, texts, whole};
use crate::postgres::{Postgres, Release};

/// A table's name, its columns, its key, what to order by, and rows.
struct Keyed {
    name: &'static str,
    columns: &'static str,
    key: &'static [&'static str],
    rows: &'static str,
}

const UGLY: &str = r#"VALUES (''), (' '), ('''') , ('"'), ('\'), ('\''"'), (E'line\nbreak\ttab'), ('a'), ('A'), ('b'), ('Z'), ('ä'), ('☃'),
    ('😀'), ('NULL'), ('{a,b}'), ('[1]'), ('1'), ('10'), ('9'), ('$1'), ('a,b'), (');--'), ('%'), (repeat('x', 1500))"#;

const TABLES: &[Keyed] = &[
    Keyed { name: "ints", columns: "k int PRIMARY KEY", key: &["k"], rows: "SELECT n * 7 - 60 FROM generate_series(1, 23) n" },
    Keyed { name: "words", columns: "k text PRIMARY KEY", key: &["k"], rows: UGLY },
    Keyed { name: "words_c", columns: "k text COLLATE \"POSIX\" PRIMARY KEY", key: &["k"], rows: UGLY },
    Keyed { name: "varchars", columns: "k varchar(2000) PRIMARY KEY", key: &["k"], rows: UGLY },
    Keyed {
        name: "padded",
        columns: "k char(4) PRIMARY KEY",
        key: &["k"],
        rows: "VALUES ('a'), ('ab'), ('abc'), ('abcd'), (''), ('b'), ('''')",
    },
    Keyed {
        name: "uuids",
        columns: "k uuid PRIMARY KEY",
        key: &["k"],
        rows: "SELECT md5(n::text)::uuid FROM generate_series(1, 23) n",
    },
    Keyed {
        name: "times",
        columns: "k timestamptz PRIMARY KEY",
        key: &["k"],
        rows: "SELECT '2024-10-27 00:00:00+00'::timestamptz + n * interval '17 minutes 0.000001 seconds' FROM generate_series(1, 15) n
               UNION ALL VALUES ('infinity'::timestamptz), ('-infinity'), ('4713-01-01 00:00:00+00 BC'), ('0001-01-01 00:00:00.5+00')",
    },
    Keyed {
        name: "numbers",
        columns: "k numeric PRIMARY KEY",
        key: &["k"],
        rows: "VALUES (0), (1.0), (1.10), (1.1000000000000000000001), (-1e30), (1e30), (1e-30), ('NaN'), (10), (9), (100)",
    },
    Keyed {
        name: "floats",
        columns: "k float8 PRIMARY KEY",
        key: &["k"],
        rows: "VALUES (0.1), (0.1::float8 + 5e-17), (1e-300), (5e-324), ('NaN'), ('Infinity'), ('-Infinity'), (1e16), (-0.0), (3)",
    },
    Keyed { name: "floats4", columns: "k float4 PRIMARY KEY", key: &["k"], rows: "SELECT (n / 3.0)::float4 FROM generate_series(1, 20) n" },
    Keyed { name: "moods", columns: "k mood PRIMARY KEY", key: &["k"], rows: "VALUES ('sad'), ('it''s \"ok\"'), ('glad')" },
    Keyed { name: "domains", columns: "k positive PRIMARY KEY", key: &["k"], rows: "SELECT * FROM generate_series(1, 12)" },
    Keyed { name: "bytes", columns: "k bytea PRIMARY KEY", key: &["k"], rows: r"VALUES (''::bytea), ('\x00'), ('\x005c'), ('\xff'), ('\x27')" },
    Keyed { name: "intervals", columns: "k interval PRIMARY KEY", key: &["k"], rows: "VALUES ('1 day'), ('-1 month +3 days -00:00:01'), ('0'), ('1 year')" },
    Keyed { name: "nets", columns: "k inet PRIMARY KEY", key: &["k"], rows: "VALUES ('10.0.0.1'), ('10.0.0.0/8'), ('::1'), ('10.0.0.1/24')" },
    Keyed { name: "truths", columns: "k bool PRIMARY KEY", key: &["k"], rows: "VALUES (true), (false)" },
    Keyed {
        name: "pairs",
        columns: "a int, k text, PRIMARY KEY (a, k)",
        key: &["a", "k"],
        rows: "SELECT n / 6, chr(97 + n % 6) || '''\\' FROM generate_series(1, 30) n",
    },
    Keyed {
        name: "unlike",
        columns: "k text NOT NULL, a int NOT NULL, UNIQUE (a, k) INCLUDE (n)",
        key: &["a", "k"],
        rows: "SELECT chr(97 + n % 6), n / 6 FROM generate_series(1, 30) n",
    },
];

async fn every_row_comes_once(release: Release) {
    let server = Postgres::start(release, &["timezone=America/New_York", "datestyle=SQL,DMY", "extra_float_digits=-10"]);
    let mut tables =
        "CREATE TYPE mood AS ENUM ('sad', 'it''s \"ok\"', 'glad'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);".to_owned();
    for Keyed { name, columns, rows, key } in TABLES {
        let order = if *name == "unlike" { "k, a" } else { &key.join(", ") };
        tables += &format!("CREATE TABLE {name} (n serial, {columns}); INSERT INTO {name} ({order}) {rows}; ANALYZE {name};");
    }
    tables += "ALTER TABLE unlike REPLICA IDENTITY FULL";
    let desk = Desk::open(&server, "walks", &tables);
    let at = "SET timezone = UTC; SET datestyle = 'ISO, YMD'; SET extra_float_digits = 1;";
    for Keyed { name, key, .. } in TABLES {
        let primary_key = Some(key.iter().map(|column| (*column).to_owned()).collect());
        let schema = desk.describe_as(&format!("public.{name}"), primary_key, as_text(&["n", "k"])).await;
        let expected = desk.sql(&format!("{at} SELECT n FROM {name} ORDER BY {}", key.join(", ")));
        let expected: Vec<&str> = expected.lines().collect();
        for rows_max in [1, 7, 1000] {
            let chunks = desk.walk(&schema, whole(), rows_max).await;
            assert_eq!(texts(&chunks, "n"), expected, "{name} by {rows_max}");
            let full = expected.len() / rows_max as usize;
            assert_eq!(chunks.len(), full + 1, "{name} by {rows_max}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_postgresql_15_comes_once() {
    every_row_comes_once(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_postgresql_18_comes_once() {
    every_row_comes_once(Release::Eighteen).await;
}

/// Ranges between planned bounds hold every row once, and none is empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_bounds_divide_a_table() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let wide = "repeat('x', 500)";
    let desk = Desk::open(
        &server,
        "planned",
        &format!(
            "CREATE TABLE known (k uuid PRIMARY KEY, w text); INSERT INTO known SELECT md5(n::text)::uuid, {wide} FROM generate_series(1, 12000) n;
             CREATE TABLE words (k text PRIMARY KEY, w text); INSERT INTO words SELECT md5(n::text) || '''', {wide} FROM generate_series(1, 12000) n;
             CREATE TABLE fresh (k bigint PRIMARY KEY, w text); INSERT INTO fresh SELECT n * 3, {wide} FROM generate_series(1, 12000) n;
             CREATE TABLE unknown (k uuid PRIMARY KEY, w text); INSERT INTO unknown SELECT * FROM known;
             CREATE TABLE pairs (a int, k int, w text, PRIMARY KEY (a, k)); INSERT INTO pairs SELECT n, n, {wide} FROM generate_series(1, 12000) n;
             CREATE TABLE small (k int PRIMARY KEY, w text); INSERT INTO small SELECT n, 'x' FROM generate_series(1, 1000) n;
             ANALYZE known; ANALYZE words; ANALYZE small"
        ),
    );
    for (name, ranges) in [("known", 4), ("words", 4), ("fresh", 4), ("unknown", 1), ("pairs", 1), ("small", 1)] {
        let schema = desk.describe_as(&format!("public.{name}"), None, as_text(&["k"])).await;
        let bounds = desk.source.plan_ranges(&schema, 4).await.unwrap();
        assert_eq!(bounds.len() + 1, ranges, "{name}");
        let ends: Vec<Option<&Bound>> = bounds.iter().map(Some).chain([None]).collect();
        let (mut after, mut seen) = (None, BTreeMap::new());
        for end in ends {
            let chunks = desk.walk(&schema, range(after, end), 5000).await;
            let keys = texts(&chunks, "k");
            assert!(keys.len() > 100, "{name}: a range of {} rows", keys.len());
            keys.into_iter().for_each(|key| *seen.entry(key).or_insert(0) += 1);
            after = end;
        }
        let rows: usize = desk.sql(&format!("SELECT count(*) FROM {name}")).parse().unwrap();
        if name != "pairs" {
            assert_eq!(seen.len(), rows, "{name}");
            assert!(seen.values().all(|times| *times == 1), "{name}");
        }
    }
}
