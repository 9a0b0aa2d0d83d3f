//! Columns that come with a default: rows that are there have it without any log telling them, and so do their copies, whoever reads them.

use e2e::postgres::{Postgres, Release};
use e2e::{Desk, readers};

/// Columns with a default that is one value for all rows: type, default, and how PostgreSQL and DuckDB write its values alike.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("boolean NOT NULL", "true", "CAST(CAST({} AS int) AS text)"),
    ("smallint", "-3", "CAST({} AS text)"),
    ("bigint", "9007199254740993", "CAST({} AS text)"),
    ("real", "0.25", "CAST(CAST({} AS numeric(10,4)) AS text)"),
    ("double precision", "-0.125", "CAST(CAST({} AS numeric(10,4)) AS text)"),
    ("numeric(12,2) NOT NULL", "12.5", "CAST({} AS text)"),
    ("numeric(30,10)", "-12345678901234567890.0123456789", "CAST({} AS text)"),
    ("text", "E'it''s \"quoted\"\\n ü'", "{}"),
    ("varchar(20)", "''", "{}"),
    ("date", "'2024-02-29'", "CAST({} AS text)"),
    ("date", "CURRENT_DATE", "CAST({} AS text)"),
    ("time", "'23:59:59.5'", "CAST({} AS text)"),
    ("timestamp", "'0044-03-15 12:00:00'", "CAST({} AS text)"),
    ("timestamptz", "'2024-02-29 12:00:00.000001+02'", "CAST(extract(epoch FROM {}) AS numeric(20,6))"),
    ("timestamptz", "now()", "CAST(extract(epoch FROM {}) AS numeric(20,6))"),
    ("uuid", "'550e8400-e29b-41d4-a716-446655440000'", "CAST({} AS text)"),
    ("jsonb", "'{\"a\": [1, null]}'", "CAST({} AS text)"),
    ("mood", "'calm'", "CAST({} AS text)"),
    ("money", "'1234.50'", "{money}"),
    ("int", "NULL", "coalesce(CAST({} AS text), '-')"),
];

fn rows(written: impl Fn(usize, &str) -> String) -> String {
    let columns: Vec<String> = DEFAULTS.iter().enumerate().map(|(n, (.., written_as))| written(n, written_as)).collect();
    format!("string_agg(id || '|' || {}, ' ; ' ORDER BY id)", columns.join(" || '|' || "))
}

fn an_older_row_has_what_its_source_gave_it(release: Release) {
    let server = Postgres::start(release, &["timezone=UTC"]);
    server.sql("postgres", "CREATE TYPE mood AS ENUM ('calm', 'cross'); CREATE TABLE items (id int PRIMARY KEY, note text)");
    server.sql("postgres", "INSERT INTO items SELECT n, 'old' FROM generate_series(1, 6) n");
    let pipeline = |table: &str| {
        let uri = server.uri("postgres");
        format!(
            "pipeline: desk
source: {{ kind: postgres, uri: \"{uri}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop }}
tables: [ {table} ]
"
        )
    };
    let desk = Desk::new().with_pipeline(&pipeline("{ source: public.items }"));
    desk.urutau(Desk::RUN).expect_code(0);
    // Some rows change behind each column, one in the same transaction in front of it; most never do.
    for (n, (kind, default, _)) in DEFAULTS.iter().enumerate() {
        let kind = kind.replacen(" NOT NULL", &format!(" DEFAULT {default} NOT NULL"), 1);
        let kind = if kind.contains("DEFAULT") { kind } else { format!("{kind} DEFAULT {default}") };
        server.sql(
            "postgres",
            &format!(
                "BEGIN; UPDATE items SET note = 'before {n}' WHERE id = 3; ALTER TABLE items ADD COLUMN v{n} {kind};
                 UPDATE items SET note = 'behind {n}' WHERE id = 4; COMMIT; INSERT INTO items (id) VALUES ({})",
                100 + n
            ),
        );
        if n % 7 == 3 {
            desk.urutau(Desk::RUN).expect_code(0);
        }
    }
    // The default that new rows get is nothing of the older ones'.
    server
        .sql("postgres", "ALTER TABLE items ALTER v1 SET DEFAULT 9, ALTER v2 DROP DEFAULT; INSERT INTO items (id) VALUES (900)");
    server.sql("postgres", "UPDATE items SET v1 = NULL, v7 = NULL WHERE id = 5");
    desk.urutau(Desk::RUN).expect_code(0);

    let null = |written: String| format!("coalesce({written}, '-')");
    let of_server = rows(|n, written| {
        let money = format!("CAST(CAST(v{n} AS numeric(12,2)) AS text)");
        null(format!("CAST({} AS text)", written.replace("{money}", &money).replace("{}", &format!("v{n}"))))
    });
    let of_copy = rows(|n, written| {
        null(format!(
            "CAST({} AS text)",
            written.replace("{money}", &format!("CAST(v{n} AS text)")).replace("{}", &format!("v{n}"))
        ))
    });
    let expected = server.sql("postgres", &format!("SELECT {of_server} FROM items"));
    for reader in readers::READERS {
        let said = readers::query_as(reader, &desk.warehouse(), "shop", "items", &[&of_copy]);
        let (said, expected): (Vec<&str>, Vec<&str>) = (said[0].split(" ; ").collect(), expected.split(" ; ").collect());
        for (said, expected) in said.iter().zip(&expected) {
            assert_eq!(said, expected, "{reader}");
        }
        assert_eq!(said.len(), expected.len(), "{reader}");
    }
    desk.urutau(&["verify"]).expect_code(0).expect_words(&["and the copy has the same"]);

    // What cannot be told older rows halts the table in front of it, and says what to do: which mends it.
    server.sql("postgres", "ALTER TABLE items ADD COLUMN tags text[] DEFAULT '{a}'; INSERT INTO items (id) VALUES (901)");
    let why = ["[columns-changed]", "column 'tags' came with a value for older rows", "copy the table anew into another target"];
    desk.urutau(Desk::RUN).expect_code(3).expect_words(&why);
    let desk = desk.with_pipeline(&(pipeline("{ source: public.items, target: items_2 }") + "snapshot: { mode: when-needed }\n"));
    desk.urutau(Desk::RUN).expect_code(0);
    let all = "count(*) FILTER (WHERE tags = ARRAY['a'])";
    let copied = readers::query(&desk.warehouse(), "shop", "items_2", &["count(*)", all]);
    assert_eq!(copied.join(" "), server.sql("postgres", &format!("SELECT count(*) || ' ' || {all} FROM items")).trim());
}

#[test]
fn an_older_row_has_what_its_source_gave_it_15() {
    an_older_row_has_what_its_source_gave_it(Release::Fifteen);
}

#[test]
fn an_older_row_has_what_its_source_gave_it_18() {
    an_older_row_has_what_its_source_gave_it(Release::Eighteen);
}
