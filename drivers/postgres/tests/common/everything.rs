//! A table with values of every type that the source reads, and what the server itself writes for each as text.
//!
//! Extensions are there as far as a release's package brings them: the one's has those of the distribution, the other's has vectors.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use rows::Type;

use crate::postgres::{Postgres, Release};

/// A type, and values of it as SQL.
type Values = (&'static str, &'static [&'static str]);

/// What every server has. Each is also read as null, and inside an array.
const VALUES: &[Values] = &[
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
    ("regclass", &["'pg_class'", "'pg_catalog.pg_type'"]),
    ("refcursor", &["'a cursor'"]),
    ("tid", &["'(0,1)'", "'(4294967295,65535)'"]),
    ("pg_snapshot", &["'10:20:12,15'", "'10:20:'"]),
    ("jsonpath", &["'$.a[*] ? (@ > 1)'"]),
    ("oidvector", &["'1 2 4294967295'", "''"]),
    ("int2vector", &["'1 -2'", "''"]),
    ("point", &["'(1,-2.5)'", "'(NaN,-Infinity)'", "'(1e300,0.1)'", "'(-0,1e-300)'"]),
    ("line", &["'{1,-2,3}'", "'{0,-1,1e-7}'"]),
    ("lseg", &["'[(1,2),(3,4)]'"]),
    ("box", &["'(3,4),(1,2)'", "'(NaN,1),(2,-0)'"]),
    ("path", &["'[(1,2),(3,4)]'", "'((1,2),(3,4),(5,6))'", "'[(1,2)]'"]),
    ("polygon", &["'((1,2),(3,4),(5,6))'", "'((0,0))'"]),
    ("circle", &["'<(1,2),3.5>'", "'<(0,0),Infinity>'"]),
    ("tsvector", &["''", "'a:1A,2 b c:5B,7C'", "$$'it''s' 'back\\\\slash':3 'two words'$$", "'ünï:16383'"]),
    (
        "tsquery",
        &[
            "''",
            "'a & b | !c:*AB'",
            "'a <-> (b <-> c)'",
            "'(a <-> b) <3> c'",
            "'!(a | b) & (c | d)'",
            "'(a & b) <-> (c | d)'",
            "$$'it''s' & 'x\\\\y':C$$",
            "'!(a <-> !b) | !!c'",
        ],
    ),
    ("int4range", &["'[1,10)'", "'empty'", "'(,5]'", "'(,)'", "'[2147483646,2147483647)'"]),
    ("int8range", &["'[1,10)'", "'[-9223372036854775808,)'"]),
    ("numrange", &["'[1.50,NaN]'", "'(-Infinity,1e50)'", "'[0.1,0.1]'", "'(,)'"]),
    ("tsrange", &["'[2000-01-01 00:00:00,infinity)'", "'(0044-03-15 12:00:00 BC,2000-01-01 00:00:00.000001]'"]),
    ("tstzrange", &["'[2024-03-31 01:30:00+01,)'", "'(-infinity,infinity)'"]),
    ("daterange", &["'[2000-01-01,infinity)'", "'(,2024-02-29]'", "'empty'"]),
    ("textrange", &["'[\"a,b\",\"c\"\"d\\\\e\")'", "'[\"\",\"x y\"]'", "'[\"(a)\",)'", "'(,É)'", "'[null,zz)'"]),
    ("pairrange", &["pairrange('(1,\"a b\")','(2,)')", "pairrange(NULL, '(1,x)')"]),
    ("int4multirange", &["'{[1,3),[7,9)}'", "'{}'", "'{(,)}'"]),
    ("nummultirange", &["'{[1.50,2],(3,Infinity]}'"]),
    ("datemultirange", &["'{(,2000-01-01),[2024-02-29,infinity)}'"]),
    ("textmultirange", &["'{[\"a,b\",\"c d\"]}'"]),
    ("spell", &["'[1,10)'"]),
    (
        "pair",
        &["'(1,x)'", "'(,)'", "'(2,\"\")'", "ROW(3, 'say \"hi\", (back\\slash) {x}')", "ROW(4, 'NULL')", "ROW(5, E' tab\\t')"],
    ),
    ("pairish", &["'(1,\"a b\")'", "ROW(NULL, 'ünï')"]),
    (
        "nest",
        &[
            "ROW(ROW(1, 'a \"b\" c'), ARRAY[ROW(2, 'x,y'), NULL, ROW(NULL, '')]::pair[], '[1.50,2)', ARRAY['(3,4),(1,2)', '(1,1),(0,0)']::box[], \
             true, 'happy and glad', 7, '{\"a\": [1, \"x\"]}', '\\x00ff', '2024-03-31 01:30:00+01', '1 day -25:00:00', 1e300, \
             'ab', '2000-01-01', B'101', '{1,NULL}', '10.0.0.1/8', '{[1,2)}', 'a & !b', '1 2', 1.50, '24:00:00', 'x')",
            "ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
             NULL, NULL, NULL)",
            "ROW(ROW(NULL, NULL), '{}', 'empty', '{}', false, 'sad', 1, 'null', '', '-infinity', '0', 'NaN', '', 'infinity', B'000', \
             '[0:1]={1,2}', '::1', '{}', '', '', 'NaN', '00:00:00+00', '')",
        ],
    ),
    ("integer[]", &["'{1,NULL}'", "'{}'", "'[0:1]={1,2}'", "'{{1,2},{3,NULL}}'", "'[-1:0][2:3]={{1,2},{3,4}}'"]),
    ("pair[]", &["'{}'", "ARRAY[ARRAY[ROW(1, 'a \"b\"')::pair], ARRAY[NULL]]"]),
    ("numbers", &["'{1.50,NULL,0.1}'"]),
    ("aclitem", &["'postgres=r/postgres'", "'=arwdDxt/postgres'"]),
];

/// What the distribution's package of 15 brings beside.
const VALUES_15: &[Values] = &[
    ("citext", &["'Ünïcode'"]),
    ("hstore", &["''", "'a=>1, b=>NULL, \"q\"=>\"with \\\"quotes\\\" and back\\\\slash\"'", "'\"\"=>\"\", NULL=>\"NULL\"'"]),
    ("ltree", &["'top.middle.leaf'"]),
    ("lquery", &["'*.leaf|other{1,2}'"]),
    ("ltxtquery", &["'top & !leaf'"]),
    ("lo", &["42"]),
    ("isbn13", &["'978-0-393-04002-9'"]),
    ("seg", &["'1.5 .. 3'"]),
    (
        "xml",
        &[
            "'<a>&amp; ü</a>'",
            "'<?xml version=\"1.0\" encoding=\"latin1\"?><a/>'",
            "'<?xml version=\"1.0\" standalone=\"yes\"?><a/>'",
        ],
    ),
];

/// What the package of 18 brings beside.
const VALUES_18: &[Values] = &[
    ("vector", &["'[1,2.5,1e-7]'", "'[1e10,-123456.7,0]'"]),
    ("halfvec", &["'[1,0.1,65504,6e-8,-0.0001]'"]),
    ("sparsevec", &["'{1:1.5,3:-2}/5'", "'{}/3'"]),
];

const EXTENSIONS_15: &[&str] = &["citext", "hstore", "ltree", "lo", "isn", "seg"];
const EXTENSIONS_18: &[&str] = &["vector"];

/// All types of a release.
pub fn values(release: Release) -> Vec<Values> {
    let more = match release {
        Release::Fifteen => VALUES_15,
        Release::Eighteen => VALUES_18,
    };
    [VALUES, more].concat()
}

/// Is it also read inside of an array? An array of arrays is none, and the server can't send one of what has no binary form.
fn has_array(of: &str) -> bool {
    !of.ends_with("[]") && !matches!(of, "numbers" | "aclitem" | "isbn13" | "seg")
}

/// How many rows it has: the last one is null in all columns.
pub fn rows(release: Release) -> usize {
    values(release).iter().map(|(_, values)| values.len()).max().unwrap() + 1
}

/// The table that holds all values: a column a type and one of its arrays, a row a value.
pub fn fill(server: &Postgres, release: Release) {
    make_types(server, "postgres", release);
    let sql = |statement: &str| server.sql("postgres", statement);
    let (all, mut columns) = (values(release), vec!["id int PRIMARY KEY".to_owned()]);
    for (n, (of, _)) in all.iter().enumerate() {
        columns.push(format!("v{n} {of}"));
        columns.extend(has_array(of).then(|| format!("a{n} {of}[]")));
    }
    sql(&format!("CREATE TABLE public.everything ({})", columns.join(", ")));
    // A row that is larger than a quarter of a page has values outside of it, which an update does not send again without.
    sql("ALTER TABLE public.everything REPLICA IDENTITY FULL");
    sql("CREATE PUBLICATION values_pub FOR TABLE public.everything");
    sql("SELECT pg_create_logical_replication_slot('values', 'pgoutput')");
    for row in 0..rows(release) {
        let mut fields = vec![row.to_string()];
        for (of, values) in &all {
            let value = values.get(row);
            fields.push(value.map_or("NULL".to_owned(), |value| format!("({value})::{of}")));
            let array =
                || value.map_or("NULL".to_owned(), |value| format!("ARRAY[({value})::{of}, NULL, ({})::{of}]", values[0]));
            fields.extend(has_array(of).then(array));
        }
        sql(&format!("INSERT INTO public.everything VALUES ({})", fields.join(", ")));
    }
}

/// The types that are not there by themselves.
pub fn make_types(server: &Postgres, database: &str, release: Release) {
    let extensions = match release {
        Release::Fifteen => EXTENSIONS_15,
        Release::Eighteen => EXTENSIONS_18,
    };
    for extension in extensions {
        server.sql(database, &format!("CREATE EXTENSION {extension}"));
    }
    server.sql(database, TYPES);
}

/// Types that are made of others.
const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'happy and glad');
    CREATE DOMAIN small AS integer;
    CREATE DOMAIN positive AS small CHECK (VALUE > 0);
    CREATE DOMAIN numbers AS numeric(12,2)[];
    CREATE DOMAIN spell AS int4range;
    CREATE TYPE pair AS (n integer, t text);
    CREATE DOMAIN pairish AS pair;
    CREATE TYPE textrange AS RANGE (subtype = text);
    CREATE TYPE pairrange AS RANGE (subtype = pair);
    CREATE TYPE nest AS (p pair, ps pair[], r numrange, bs box[], b boolean, m mood, d positive, j jsonb, by bytea, at timestamptz,
                         i interval, f double precision, c char(3), day date, bits bit(3), n integer[], net inet, mr int4multirange,
                         q tsquery, ov oidvector, num numeric, tz timetz, ch \"char\")";

/// All columns, declared as text.
pub fn as_text(release: Release) -> BTreeMap<String, Type> {
    names(release).into_iter().map(|(name, _)| (name, Type::String)).collect()
}

/// The columns and their types.
fn names(release: Release) -> Vec<(String, &'static str)> {
    let names = |(n, (of, _)): (usize, Values)| [(format!("v{n}"), of), (format!("a{n}"), of)];
    let all = values(release).into_iter().enumerate().flat_map(names);
    all.filter(|(name, of)| name.starts_with('v') || has_array(of)).collect()
}

/// Where these batches, which hold all rows in their order as text, differ from what the server writes.
pub fn differences(server: &Postgres, release: Release, batches: &[RecordBatch]) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, of) in &names(release) {
        // Money as text has the currency of its locale: its digits are what is copied.
        let text = match (*of, &name[..1]) {
            ("money", "v") => format!("{name}::numeric::text"),
            ("money", _) => format!("{name}::numeric[]::text"),
            ("boolean", "v") => format!("{name}::text"),
            // The number, not the name that it has now.
            ("regclass", "v") => format!("{name}::oid::text"),
            ("regclass", _) => format!("{name}::oid[]::text"),
            // What is written, not what a cast makes of it: that takes away padding and adds masks.
            _ => format!("CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"),
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
