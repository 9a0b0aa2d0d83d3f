//! Values of PostgreSQL's types, real servers and real processes: what a chunk brings, what the log brings once another column was
//! changed, and what the server itself writes are one value at the targets.

use e2e::postgres::{Postgres, Release};
use e2e::{Desk, jsonl_copy, readers};
use serde_json::{Value, json};

/// Made of others.
const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'happy and glad'); CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
    CREATE TYPE pair AS (n integer, t text); CREATE TYPE nest AS (p pair, ps pair[], r numrange, b boolean, m mood);
    CREATE TYPE textrange AS RANGE (subtype = text);";

/// A type and three values of it, which a column of its own holds.
const VALUES: &[(&str, [&str; 3])] = &[
    ("boolean", ["true", "false", "NULL"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807", "0"]),
    ("oid", ["0", "4294967295", "NULL"]),
    ("double precision", ["'-0'", "1e300", "'NaN'"]),
    ("numeric(12,2)", ["-9999999999.99", "0", "0.01"]),
    ("numeric", ["1e50", "'NaN'", "0.000"]),
    ("text", ["'ünïcode ☃ 😀'", "''", "E'a\\n\"b\"\\\\'"]),
    ("char(6)", ["'pad'", "''", "NULL"]),
    ("bytea", ["'\\x00ff5c'", "''", "NULL"]),
    ("uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "NULL", "NULL"]),
    ("jsonb", ["'{\"b\": [1, 2.50, null], \"a\": \"x\"}'", "'null'", "NULL"]),
    ("date", ["'0044-03-15 BC'", "'2024-02-29'", "NULL"]),
    ("time", ["'23:59:59.999999'", "'00:00:00'", "NULL"]),
    ("time with time zone", ["'01:02:03.25-03:30'", "'24:00:00+00'", "NULL"]),
    ("timestamp with time zone", ["'2024-03-31 01:30:00.000001+01'", "'0001-01-01 00:00:00+00'", "NULL"]),
    ("interval", ["'1 year -2 days 04:05:06.789'", "'0'", "NULL"]),
    ("inet", ["'2001:db8::1/64'", "'10.0.0.1'", "NULL"]),
    ("bit varying(12)", ["B'101100111010'", "B''", "NULL"]),
    ("mood", ["'happy and glad'", "NULL", "'sad'"]),
    ("positive", ["1", "99", "NULL"]),
    ("point", ["'(1,-2.5)'", "'(NaN,Infinity)'", "NULL"]),
    ("box", ["'(3,4),(1,2)'", "'(0,0),(0,0)'", "NULL"]),
    ("path", ["'[(1,2),(3,4)]'", "'((1,2),(3,4))'", "NULL"]),
    ("tsvector", ["'a:1A,2 b'", "''", "NULL"]),
    ("tsquery", ["'(a | b) & !c:*'", "'a <-> b'", "NULL"]),
    ("int4range", ["'[1,10)'", "'empty'", "'(,)'"]),
    ("tstzrange", ["'[2024-03-31 01:30:00+01,infinity)'", "'(,2000-01-01 00:00:00+00]'", "NULL"]),
    ("textrange", ["'[\"a,b\",\"c\"\"d\")'", "'[\"\",z]'", "NULL"]),
    ("nummultirange", ["'{[1.50,2],(3,)}'", "'{}'", "NULL"]),
    ("pair", ["ROW(1, 'a \"b\", c')", "ROW(NULL, NULL)", "NULL"]),
    (
        "nest",
        [
            "ROW(ROW(1, 'x y'), ARRAY[ROW(2, ''), NULL]::pair[], '[1.5,NaN]', true, 'sad')",
            "ROW(NULL, '{}', NULL, NULL, NULL)",
            "NULL",
        ],
    ),
    ("integer[]", ["'{1,NULL,3}'", "'{}'", "NULL"]),
    ("numeric(12,2)[]", ["'{1.50,NULL}'", "'{}'", "NULL"]),
    ("mood[]", ["'{sad,\"happy and glad\"}'", "'{}'", "NULL"]),
    ("pair[]", ["ARRAY[ROW(1, 'a \"b\"')::pair, NULL]", "'{}'", "NULL"]),
    ("daterange[]", ["'{\"[2000-01-01,2000-02-01)\",empty}'", "'{}'", "NULL"]),
    ("box[]", ["'{(1,1),(0,0);(2,2),(1,1)}'", "'{}'", "NULL"]),
    ("aclitem", ["'postgres=r/postgres'", "NULL", "NULL"]),
];

const VALUES_15: &[(&str, [&str; 3])] =
    &[("hstore", ["'a=>1, b=>NULL, \"q \\\"\"=>\"\"'", "''", "NULL"]), ("xml", ["'<a>&amp; ü</a>'", "NULL", "NULL"])];

const VALUES_18: &[(&str, [&str; 3])] =
    &[("vector", ["'[1,2.5,1e-7]'", "NULL", "NULL"]), ("sparsevec", ["'{1:1.5,3:-2}/5'", "NULL", "NULL"])];

/// A server's table of all values, copied twice by each pipeline: in columns of its own types, and as text.
struct World {
    server: Postgres,
    values: Vec<(&'static str, [&'static str; 3])>,
}

impl World {
    fn begin(release: Release) -> World {
        let server = Postgres::start(release, &["timezone=UTC"]);
        let (more, extension) = match release {
            Release::Fifteen => (VALUES_15, "hstore"),
            Release::Eighteen => (VALUES_18, "vector"),
        };
        server.sql("postgres", &format!("CREATE EXTENSION {extension}; {TYPES}"));
        let values = [VALUES, more].concat();
        let columns: String = values.iter().enumerate().map(|(n, (of, _))| format!(", v{n} {of}")).collect();
        for table in ["own", "texts"] {
            server.sql("postgres", &format!("CREATE TABLE {table} (id int PRIMARY KEY, touched int NOT NULL{columns})"));
            for row in 0..3 {
                let row_values: String = values.iter().map(|(of, values)| format!(", ({})::{of}", values[row])).collect();
                server.sql("postgres", &format!("INSERT INTO {table} VALUES ({row}, 0{row_values})"));
            }
        }
        World { server, values }
    }

    fn pipeline(&self, name: &str, sink: &str) -> String {
        let texts: String = (0..self.values.len()).map(|n| format!("      - {{ name: v{n}, type: string }}\n")).collect();
        format!(
            "pipeline: {name}
source: {{ kind: postgres, uri: \"{}\", slotName: {name}, create: true }}
sink: {sink}
tables:
  - {{ source: public.own }}
  - source: public.texts
    columns:
{texts}",
            self.server.uri("postgres")
        )
    }

    /// What the server writes, a row a list; `None` for null.
    fn said(&self) -> Vec<Vec<Option<String>>> {
        let text = |(n, (of, _)): (usize, &(&str, _))| match *of {
            // Alone it is written out; inside of others it is a letter.
            "boolean" => format!("v{n}::text"),
            _ => format!("CASE WHEN num_nulls(v{n}) = 0 THEN format('%s', v{n}) END"),
        };
        let texts: Vec<String> = self.values.iter().enumerate().map(text).collect();
        let all = format!("SELECT json_agg(json_build_array({}) ORDER BY id) FROM texts", texts.join(", "));
        serde_json::from_str(&self.server.sql("postgres", &all)).expect("rows of texts")
    }

    fn touch(&self) {
        self.server.sql("postgres", "UPDATE own SET touched = touched + 1; UPDATE texts SET touched = touched + 1");
    }

    /// Rows from chunks, then the same rows from the log: at the target they are the same, and, as text, the server's.
    fn check(&self, name: &str, sink: &str, rows: impl Fn(&Desk, &str) -> Vec<Value>) {
        let desk = Desk::new().with_pipeline(&self.pipeline(name, sink));
        let copied = |touched: u64| {
            desk.urutau(Desk::RUN).expect_code(0);
            ["own", "texts"].map(|table| {
                let mut rows = rows(&desk, table);
                for row in &mut rows {
                    assert_eq!(row.as_object_mut().expect("a row").remove("touched"), Some(Value::from(touched)), "{table}");
                }
                rows
            })
        };
        let by_chunk = copied(0);
        self.touch();
        let by_log = copied(1);
        for (chunk, log) in by_chunk.iter().zip(&by_log) {
            for (chunk, log) in chunk.iter().zip(log) {
                for (n, (of, _)) in self.values.iter().enumerate() {
                    assert_eq!(chunk[format!("v{n}")], log[format!("v{n}")], "{name}: {of}");
                }
                assert_eq!(chunk, log);
            }
        }
        let said = self.said();
        assert_eq!([by_log[0].len(), by_log[1].len(), said.len()], [3; 3]);
        for (row, said) in by_log[1].iter().zip(&said) {
            for (n, (of, _)) in self.values.iter().enumerate() {
                assert_eq!(row[format!("v{n}")].as_str(), said[n].as_deref(), "{name}: {of}");
            }
        }
        self.server.sql("postgres", "UPDATE own SET touched = 0; UPDATE texts SET touched = 0");
    }
}

/// As the file of lines has them, in the order of their keys.
fn lines(desk: &Desk, table: &str) -> Vec<Value> {
    jsonl_copy::rows(&desk.path().join(format!("out/{table}.jsonl"))).into_values().collect()
}

/// As DuckDB has them: each value as the text that it makes of it.
fn scanned(desk: &Desk, table: &str, columns: usize) -> Vec<Value> {
    let columns: String = (0..columns).map(|n| format!(", v{n} := CAST(v{n} AS VARCHAR)")).collect();
    let rows = format!("CAST(to_json(list(struct_pack(id := id, touched := touched{columns}) ORDER BY id)) AS VARCHAR)");
    let said = readers::query(&desk.warehouse(), "shop", table, &[&rows]);
    serde_json::from_str(&said[0]).expect("rows as JSON")
}

fn one_value_by_every_way(release: Release) {
    let world = World::begin(release);
    world.check("lines", "{ kind: jsonl, uri: ./out }", lines);
    world.check("lake", "{ kind: iceberg, uri: ./warehouse, namespace: shop }", |desk, table| {
        scanned(desk, table, world.values.len())
    });
}

#[test]
fn a_value_of_postgresql_15_is_the_same_by_chunk_by_log_and_as_the_server_writes_it() {
    one_value_by_every_way(Release::Fifteen);
}

#[test]
fn a_value_of_postgresql_18_is_the_same_by_chunk_by_log_and_as_the_server_writes_it() {
    one_value_by_every_way(Release::Eighteen);
}

/// What a column cannot hold halts its table; read as text and cast back, it follows the column's policy, by chunk and by the log.
#[test]
fn values_that_no_column_holds_follow_the_policy_of_their_cast() {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql(
        "postgres",
        "CREATE TABLE judged (id int PRIMARY KEY, touched int NOT NULL, day date, at timestamptz, n numeric);
         INSERT INTO judged VALUES (0, 0, '2024-02-29', '2024-03-31 01:30:00.5+01', 1.50), (1, 0, 'infinity', '-infinity', 'NaN')",
    );
    let desk = Desk::new().with_pipeline(&format!(
        "pipeline: judged
source: {{ kind: postgres, uri: \"{}\", slotName: judged, create: true }}
sink: {{ kind: jsonl, uri: ./out }}
tables:
  - source: public.judged
    columns: [{{ name: day, type: string }}, {{ name: at, type: string }}, {{ name: n, type: string }}]
    cast: {{ day: date, at: timestamptz, n: \"decimal(12,2)\" }}
    onValue: \"null\"
",
        server.uri("postgres")
    ));
    for touched in 0..2 {
        desk.urutau(Desk::RUN).expect_code(0);
        let expected = [
            json!({ "id": 0, "touched": touched, "day": "2024-02-29", "at": "2024-03-31T00:30:00.500000Z", "n": "1.50" }),
            json!({ "id": 1, "touched": touched, "day": null, "at": null, "n": null }),
        ];
        assert_eq!(lines(&desk, "judged"), expected);
        server.sql("postgres", "UPDATE judged SET touched = touched + 1");
    }
}
