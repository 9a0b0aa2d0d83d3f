//! Schema parts: a change that the table's schema does not hold is told before the first row that needs it.

use kernel::position::Position;
use serde_json::json;

use crate::testing::*;

/// An event of `s.t` with its schema part.
fn with_schema(transaction: u64, fields: &str, after: &str) -> String {
    let envelope = create("t", transaction, after);
    format!(
        "{{\"schema\":{{\"type\":\"struct\",\"fields\":[{{\"type\":\"struct\",\"fields\":[{fields}],\"field\":\"after\"}}]}},\"payload\":{}}}\n",
        envelope.trim_end()
    )
}

fn field(name: &str, kind: &str, optional: bool) -> String {
    format!("{{\"type\":\"{kind}\",\"optional\":{optional},\"field\":\"{name}\"}}")
}

fn told_of(lines: &[String], columns: &[(&str, &str)]) -> (String, Vec<String>) {
    let folder = Folder::new("a", json!({}));
    folder.write("a", lines.concat());
    let tables = folder.describe(&[request("s.t", &["id"], columns)]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    let kept = told
        .into_iter()
        .filter(|line| !line.contains(" ended "))
        .map(|line| line.replace(&folder.path("a").display().to_string(), "FILE"));
    (told_schema(&tables[0]), kept.collect())
}

#[test]
fn the_schema_part_gives_types_and_nullability() {
    let fields = [field("id", "int32", false), field("a", "string", true), field("b", "int64", false)].join(",");
    let (schema, told) = told_of(&[with_schema(1, &fields, r#"{"id":1,"a":null,"b":5}"#)], &[]);
    assert_eq!(schema, "*id int32 not null, a string, b int64 not null");
    assert_eq!(told, ["a@0 s.t Insert 0.1: id=1 a=null b=5"]);
}

#[test]
fn what_the_pipeline_file_declares_wins_over_the_schema_part() {
    let fields = [field("id", "int32", false), field("a", "string", true)].join(",");
    let (schema, told) =
        told_of(&[with_schema(1, &fields, r#"{"id":1,"a":"12.50"}"#)], &[("a", "decimal(8,2)"), ("id", "int64")]);
    assert_eq!(schema, "*id int64 not null, a decimal(8,2)");
    assert_eq!(told, ["a@0 s.t Insert 0.1: id=1 a=12.50"]);
}

#[test]
fn a_column_that_appears_is_told_before_the_first_row_that_has_it() {
    let old = field("id", "int32", false);
    let new = [field("id", "int32", false), field("b", "string", true)].join(",");
    let lines =
        [with_schema(1, &old, r#"{"id":1}"#), with_schema(1, &new, r#"{"id":2,"b":"x"}"#), with_schema(1, &old, r#"{"id":3}"#)];
    let (schema, told) = told_of(&lines, &[]);
    let (second, third) = (lines[0].len(), lines[0].len() + lines[1].len());
    assert_eq!(schema, "*id int32 not null");
    assert_eq!(
        told,
        [
            "a@0 s.t Insert 0.1: id=1".to_owned(),
            format!("a@0 s.t schema {second}.0: *id int32 not null, b string"),
            format!("a@0 s.t Insert {second}.1: id=2 b=x"),
            // A column that vanished stays, as null.
            format!("a@0 s.t Insert {third}.1: id=3 b=null"),
        ]
    );
}

#[test]
fn a_wider_type_is_told_and_a_narrower_one_is_held() {
    let with = |kind: &str| [field("id", "int32", false), field("a", kind, true)].join(",");
    let lines = [
        with_schema(1, &with("int32"), r#"{"id":1,"a":5}"#),
        with_schema(1, &with("int64"), r#"{"id":2,"a":4000000000}"#),
        with_schema(1, &with("int16"), r#"{"id":3,"a":7}"#),
        with_schema(1, &with("string"), r#"{"id":4,"a":"x"}"#),
    ];
    let at: Vec<usize> = (0..4).map(|n| lines[..n].iter().map(String::len).sum()).collect();
    assert_eq!(
        told_of(&lines, &[]).1,
        [
            "a@0 s.t Insert 0.1: id=1 a=5".to_owned(),
            format!("a@0 s.t schema {}.0: *id int32 not null, a int64", at[1]),
            format!("a@0 s.t Insert {}.1: id=2 a=4000000000", at[1]),
            format!("a@0 s.t Insert {}.1: id=3 a=7", at[2]),
            format!("a@0 s.t schema {}.0: *id int32 not null, a string", at[3]),
            format!("a@0 s.t Insert {}.1: id=4 a=x", at[3]),
        ]
    );
}

#[test]
fn a_column_that_may_be_null_from_now_on_is_told() {
    let with = |optional| [field("id", "int32", false), field("a", "int32", optional)].join(",");
    let lines = [with_schema(1, &with(false), r#"{"id":1,"a":5}"#), with_schema(1, &with(true), r#"{"id":2,"a":null}"#)];
    let (schema, told) = told_of(&lines, &[]);
    assert_eq!(schema, "*id int32 not null, a int32 not null");
    assert_eq!(told[1], format!("a@0 s.t schema {}.0: *id int32 not null, a int32", lines[0].len()));
}

#[test]
fn a_null_where_the_schema_part_allows_none_is_refused() {
    let fields = [field("id", "int32", false), field("a", "int32", false)].join(",");
    let lines = [with_schema(1, &fields, r#"{"id":1,"a":null}"#), with_schema(1, &fields, r#"{"id":2}"#)];
    let at = lines[0].len();
    assert_eq!(
        told_of(&lines, &[]).1,
        [
            "a@0 s.t refused 0.1: FILE, line 1 (byte 0): s.t.a: expected int32, found null [jsonl-value]".to_owned(),
            format!("a@0 s.t refused {at}.1: FILE, line 2 (byte {at}): s.t.a: expected int32, found nothing [jsonl-value]"),
        ]
    );
}

#[test]
fn a_schema_part_without_the_key_is_refused() {
    let lines =
        [with_schema(1, &field("id", "int32", false), r#"{"id":1}"#), with_schema(1, &field("x", "int32", false), r#"{"x":1}"#)];
    let at = lines[0].len();
    let told = told_of(&lines, &[]).1;
    assert_eq!(
        told[1],
        format!(
            "a@0 s.t refused {at}.1: FILE, line 2 (byte {at}): s.t: the event's schema part has no column 'id', which the key needs [jsonl-row]"
        )
    );
}

#[test]
fn an_encoding_that_changes_under_one_type_is_followed_silently() {
    let with = |name: &str| {
        format!(
            "{},{{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.{name}\",\"field\":\"a\"}}",
            field("id", "int32", false)
        )
    };
    let lines = [
        with_schema(1, &with("Timestamp"), r#"{"id":1,"a":1}"#),
        with_schema(1, &with("MicroTimestamp"), r#"{"id":2,"a":1}"#),
        with_schema(1, &with("NanoTimestamp"), r#"{"id":3,"a":1000}"#),
    ];
    let told = told_of(&lines, &[]).1;
    let values: Vec<_> = told.iter().map(|line| line.split_once("a=").unwrap().1).collect();
    assert_eq!(values, ["1970-01-01T00:00:00.001", "1970-01-01T00:00:00.000001", "1970-01-01T00:00:00.000001"]);
}

#[test]
fn a_field_that_the_schema_part_does_not_announce_is_refused() {
    let lines = [with_schema(1, &field("id", "int32", false), r#"{"id":1,"y":5}"#)];
    let told = told_of(&lines, &[]).1;
    assert!(told[0].contains("the row has a field 'y' that the table has not"), "{told:?}");
}
