//! Rows: operations, images, absent values, key changes, and what is refused.

use serde_json::json;

use crate::testing::*;
use kernel::position::Position;

/// All that a log of one file says about `s.t`, whose key is `id`; only what concerns rows.
fn rows_of(settings: serde_json::Value, full: bool, columns: &[(&str, &str)], lines: &str) -> Vec<String> {
    let folder = Folder::new("a", settings);
    folder.write("a", lines);
    let mut wanted = request("s.t", &["id"], columns);
    wanted.before_is_full = full;
    let tables = folder.describe(&[wanted]);
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    let no_rows = |line: &String| line.starts_with("keepalive") || line.contains(" ended ");
    told.into_iter()
        .filter(|line| !no_rows(line))
        .map(|line| line.replace(&folder.path("a").display().to_string(), "FILE"))
        .collect()
}

/// The same where the table was described when the log held other lines.
fn rows_as_described(described: &str, lines: &str) -> Vec<String> {
    let folder = Folder::new("a", json!({}));
    folder.write("a", described);
    let tables = folder.describe(&[request("s.t", &["id"], &[("n", "int32")])]);
    folder.write("a", lines);
    let told = folder.read(&Position::START, &tables, ALL).0;
    let no_end = told.into_iter().filter(|line| !line.contains(" ended "));
    no_end.map(|line| line.replace(&folder.path("a").display().to_string(), "FILE")).collect()
}

fn plain(lines: &str) -> Vec<String> {
    rows_of(json!({}), false, &[("id", "int64"), ("v", "string"), ("n", "int32")], lines)
}

#[test]
fn each_operation_becomes_its_row() {
    let lines = [
        create("t", 1, r#"{"id":1,"v":"a","n":1}"#),
        event("r", "t", 1, "null", r#"{"id":2,"v":"b","n":null}"#),
        event("u", "t", 1, "null", r#"{"n":5,"id":1,"v":"c"}"#),
        event("d", "t", 1, r#"{"id":2,"v":null,"n":null}"#, "null"),
        event("t", "t", 1, "null", "null"),
    ];
    let at: Vec<usize> = (0..5).map(|n| lines[..n].iter().map(String::len).sum()).collect();
    assert_eq!(
        plain(&lines.concat()),
        [
            "a@0 s.t Insert 0.1: id=1 v=a n=1".to_owned(),
            format!("a@0 s.t Read {}.1: id=2 v=b n=null", at[1]),
            format!("a@0 s.t Update {}.1: id=1 v=c n=5", at[2]),
            format!("a@0 s.t Delete {}.1: id=2 v=~ n=~", at[3]),
            format!("a@0 s.t truncated {}.1", at[4]),
        ]
    );
}

#[test]
fn a_key_update_removes_the_old_row_and_makes_the_new_one() {
    let line = event("u", "t", 1, r#"{"id":1,"v":"old","n":1}"#, r#"{"id":2,"v":"new","n":2}"#);
    assert_eq!(plain(&line), ["a@0 s.t Delete 0.1: id=1 v=~ n=~", "a@0 s.t Insert 0.2: id=2 v=new n=2"]);
    let full = rows_of(json!({}), true, &[("n", "int32")], &line);
    assert_eq!(full, ["a@0 s.t Delete 0.1: id=1 v=old n=1", "a@0 s.t Insert 0.2: id=2 v=new n=2"]);
}

#[test]
fn a_key_that_is_only_written_otherwise_has_not_changed() {
    for (old, new) in [("1", "1.0"), ("1", "1"), ("\"a\"", "\"\\u0061\"")] {
        let kind = if old.starts_with('"') { "string" } else { "int64" };
        let line = event("u", "t", 1, &format!(r#"{{"id":{old},"v":"x"}}"#), &format!(r#"{{"id":{new},"v":"y"}}"#));
        let told = rows_of(json!({}), false, &[("id", kind), ("v", "string")], &line);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("a@0 s.t Update 0.1: id="), "{told:?}");
    }
}

#[test]
fn a_delete_has_what_before_holds_if_before_is_full_and_its_key_otherwise() {
    let line = event("d", "t", 1, r#"{"n":7,"id":1}"#, "null");
    let columns = [("id", "int64"), ("v", "string"), ("n", "int32")];
    assert_eq!(rows_of(json!({}), false, &columns, &line), ["a@0 s.t Delete 0.1: n=~ id=1 v=~"]);
    assert_eq!(rows_of(json!({}), true, &columns, &line), ["a@0 s.t Delete 0.1: n=7 id=1 v=~"]);
}

#[test]
fn a_value_that_was_not_sent_is_absent_and_not_null() {
    let placeholder = "__debezium_unavailable_value";
    let base64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
    let line = event(
        "u",
        "t",
        1,
        "null",
        &format!(
            r#"{{"id":1,"s":"{placeholder}","b":"{base64}","l":["{placeholder}"],"m":{{"{placeholder}":"{placeholder}"}},"j":"{placeholder}","n":null}}"#
        ),
    );
    let columns = [
        ("id", "int64"),
        ("s", "string"),
        ("b", "binary"),
        ("l", "list(string)"),
        ("m", "map(string,string)"),
        ("j", "json"),
        ("n", "int32"),
    ];
    assert_eq!(rows_of(json!({}), false, &columns, &line), ["a@0 s.t Update 0.1: id=1 s=~ b=~ l=~ m=~ j=~ n=null"]);
    // Another placeholder, and text that only looks like one.
    let told = rows_of(
        json!({ "unavailableValue": "__gone__" }),
        false,
        &columns,
        &line.replace(base64, "X19nb25lX18=").replace("\"j\":\"__debezium_unavailable_value\"", "\"j\":\"__gone__\""),
    );
    assert_eq!(
        told,
        [format!("a@0 s.t Update 0.1: id=1 s={placeholder} b=~ l=[{placeholder}] m={{{placeholder}: {placeholder}}} j=~ n=null")]
    );
}

#[test]
fn a_value_that_was_not_sent_is_taken_from_a_full_old_row() {
    let line = event("u", "t", 1, r#"{"id":1,"v":"old","n":1}"#, r#"{"id":1,"v":"__debezium_unavailable_value","n":2}"#);
    assert_eq!(plain(&line), ["a@0 s.t Update 0.1: id=1 v=~ n=2"]);
    assert_eq!(rows_of(json!({}), true, &[], &line), ["a@0 s.t Update 0.1: id=1 v=old n=2"]);
}

#[test]
fn a_column_that_a_row_does_not_name_is_null() {
    let first = create("t", 1, r#"{"id":1}"#);
    let at = first.len();
    assert_eq!(
        plain(&(first + &event("u", "t", 1, "null", r#"{"id":1,"v":"a"}"#))),
        ["a@0 s.t Insert 0.1: id=1 v=null n=null".to_owned(), format!("a@0 s.t Update {at}.1: id=1 v=a n=null")]
    );
}

#[test]
fn a_row_that_does_not_fit_is_refused_and_the_others_are_not() {
    let good = create("t", 1, r#"{"id":1,"v":"a","n":1}"#);
    let bad = create("t", 1, r#"{"v":"b","n":3000000000,"id":2}"#);
    let lines = format!("{good}{bad}{}", create("t", 1, r#"{"id":3,"v":"c","n":3}"#));
    let (second, third) = (good.len(), good.len() + bad.len());
    assert_eq!(
        plain(&lines),
        [
            "a@0 s.t Insert 0.1: id=1 v=a n=1".to_owned(),
            format!(
                "a@0 s.t refused {second}.1: FILE, line 2 (byte {second}): s.t.n: expected int32, found a number out of range [jsonl-value]"
            ),
            format!("a@0 s.t Insert {third}.1: id=3 v=c n=3"),
        ]
    );
}

#[test]
fn a_refusal_says_what_is_wrong_and_never_the_value() {
    let said = |op: &str, before: &str, after: &str| {
        let first = create("t", 1, r#"{"id":1,"v":"a","n":1}"#);
        let line = event(op, "t", 1, before, after);
        let told = rows_as_described(&first, &(first.clone() + &line));
        assert_eq!(told.len(), 2, "{told:?}");
        let at = first.len();
        told[1].strip_prefix(&format!("a@0 s.t refused {at}.1: FILE, line 2 (byte {at}): ")).unwrap_or(&told[1]).to_owned()
    };
    for (op, before, after, expected) in [
        ("c", "null", r#"{"id":1,"v":"a","n":"secret"}"#, "s.t.n: expected int32, found a string [jsonl-value]"),
        ("c", "null", r#"{"id":1,"v":["secret"],"n":1}"#, "s.t.v: expected string, found an array [jsonl-value]"),
        ("c", "null", r#"{"id":null,"v":"a","n":1}"#, "s.t.id: expected a value, since it is in the key, found null [jsonl-key]"),
        ("c", "null", r#"{"v":"a","n":1}"#, "s.t.id: expected a value, since it is in the key, found nothing [jsonl-key]"),
        (
            "c",
            "null",
            r#"{"id":"__debezium_unavailable_value","v":"a","n":1}"#,
            "s.t.id: expected a value, since it is in the key, found a placeholder for a value that was not sent [jsonl-key]",
        ),
        (
            "c",
            "null",
            r#"{"id":1,"v":"a","n":1,"more":"secret"}"#,
            "s.t: the row has a field 'more' that the table has not, and no schema part that announces it [jsonl-unknown-field]",
        ),
        ("c", "null", r#"{"id":1,"v":"a","v":"b"}"#, "s.t.v: the row names it twice [jsonl-value]"),
        ("c", "null", "null", "s.t: 'after' is missing or null [jsonl-row]"),
        ("u", "null", "null", "s.t: 'after' is missing or null [jsonl-row]"),
        ("d", "null", "null", "s.t: 'before' is missing or null, so it is not known which row was deleted [jsonl-row]"),
        ("d", r#"{"v":"a"}"#, "null", "s.t.id: expected a value, since it is in the key, found nothing [jsonl-key]"),
        ("d", r#"{"id":null}"#, "null", "s.t.id: expected a value, since it is in the key, found null [jsonl-key]"),
        (
            "u",
            r#"{"v":"a"}"#,
            r#"{"id":1,"v":"a","n":1}"#,
            "s.t.id: expected a value, since it is in the key, found nothing in 'before' [jsonl-key]",
        ),
        (
            "u",
            r#"{"id":null}"#,
            r#"{"id":1,"v":"a","n":1}"#,
            "s.t.id: expected a value, since it is in the key, found null in 'before' [jsonl-key]",
        ),
    ] {
        assert_eq!(said(op, before, after), expected);
    }
}

#[test]
fn a_refused_key_change_leaves_neither_of_its_rows() {
    let lines = create("t", 1, r#"{"id":1,"v":"a","n":1}"#)
        + &event("u", "t", 1, r#"{"id":1}"#, r#"{"id":2,"v":"b","n":"x"}"#)
        + &create("t", 1, r#"{"id":3,"v":"c","n":3}"#);
    let told = plain(&lines);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].contains("refused"), "{told:?}");
    assert!(told[2].ends_with("id=3 v=c n=3"), "{told:?}");
}

#[test]
fn a_table_without_a_key_has_deletes_of_which_nothing_is_known() {
    let folder = Folder::new("a", json!({}));
    let lines = create("t", 1, r#"{"id":1,"v":"a"}"#)
        + &event("d", "t", 1, r#"{"id":1,"v":"a"}"#, "null")
        + &event("d", "t", 1, "null", "null");
    folder.write("a", lines);
    let mut wanted = request("s.t", &[], &[]);
    let told = |wanted: &contract::TableRequest| {
        let tables = folder.describe(std::slice::from_ref(wanted));
        let told = folder.read(&Position::START, &tables, ALL).0;
        told.iter().filter_map(|line| line.split_once(": ").map(|(_, row)| row.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(told(&wanted), ["id=1 v=a", "id=~ v=~", "id=~ v=~"]);
    wanted.before_is_full = true;
    assert_eq!(told(&wanted), ["id=1 v=a", "id=1 v=a", "id=~ v=~"]);
    wanted.primary_key = None;
    assert_eq!(told(&wanted), ["id=1 v=a", "id=1 v=a", "id=~ v=~"]);
}

#[test]
fn the_records_key_names_the_key_and_says_which_row_was_deleted() {
    let record = |key: &str, value: &str| format!("{}\n", json!({ "topic": "t", "key": key, "value": value.trim_end() }));
    let tombstone = format!("{}\n", json!({ "topic": "t", "key": "{\"id\":1}", "value": null }));
    let lines = [
        record("{\"id\":1}", &create("t", 1, r#"{"v":"a","id":1}"#)),
        record("{\"id\":1}", &event("d", "t", 1, "null", "null")),
        tombstone,
    ];
    let folder = Folder::new("a", json!({ "format": "record" }));
    folder.write("a", lines.concat());
    let mut wanted = request("s.t", &[], &[]);
    wanted.primary_key = None;
    let tables = folder.describe(&[wanted]);
    assert_eq!(told_schema(&tables[0]), "v string, *id int64 not null");
    let (told, error) = folder.read(&Position::START, &tables, ALL);
    assert_eq!(error, None);
    let (second, third, end) = (lines[0].len(), lines[0].len() + lines[1].len(), lines.concat().len());
    assert_eq!(
        told,
        [
            "a@0 s.t Insert 0.1: v=a id=1".to_owned(),
            format!("a@0 s.t Delete {second}.1: v=~ id=1"),
            format!("a@0 ended a:{third} Some(1000)"),
            format!("keepalive a:{end}"),
        ]
    );
    assert_eq!(folder.source.counts().now().tombstones, 1);
}
