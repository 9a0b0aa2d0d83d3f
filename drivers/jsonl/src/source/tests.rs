//! The source as a whole: settings to source, tables described, findings, the log's identity and end.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::registry::{Registry, Settings};
use contract::{Finding, Kind, Severity, Source, Start, TableRequest};
use kernel::position::{Offset, Position};
use rows::TableSchema;
use serde_json::json;

use super::SourceFactory;
use crate::testing::*;

/// Schemas as text, each with whether a type was guessed; or an error.
type Described = Result<Vec<(String, bool)>, (Kind, &'static str, String)>;

fn described(folder: &Folder, tables: &[TableRequest]) -> Described {
    match block_on(folder.source.describe(tables, &BTreeMap::new())) {
        Ok(tables) => Ok(tables.iter().map(|table| (told_schema(&table.schema), table.inferred)).collect()),
        Err(error) => Err((error.kind, error.code, error.what)),
    }
}

#[test]
fn the_factory_opens_sources_of_its_kind() {
    let registry = Registry::default().with_source(SourceFactory);
    let factory = registry.source("jsonl").unwrap();
    assert!(!factory.summary().is_empty());
    let settings: Settings = [("path".to_owned(), json!("a.jsonl"))].into_iter().collect();
    assert!(block_on(factory.open("p", &settings)).is_ok());
    let error = block_on(factory.open("p", &Settings::new())).err().unwrap();
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-setting"));
}

#[test]
fn types_are_inferred_from_values_and_declared_ones_are_not_guessed() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", create("t", 1, r#"{"id":1,"price":"1.50","ok":true,"tags":["a"],"ratio":0.5}"#));
    let all = [
        ("id", "int32"),
        ("price", "decimal(10,2)"),
        ("ok", "bool"),
        ("tags", "list(string)"),
        ("ratio", "float32"),
        ("late", "date"),
    ];
    assert_eq!(
        described(&folder, &[request("s.t", &["id"], &[("price", "decimal(10,2)")]), request("s.t", &["id"], &all)]),
        Ok(vec![
            ("*id int64 not null, price decimal(10,2), ok bool, tags json, ratio float64".to_owned(), true),
            ("*id int32 not null, price decimal(10,2), ok bool, tags list(string), ratio float32, late date".to_owned(), false),
        ])
    );
}

#[test]
fn inference_looks_at_the_first_thousand_events_of_a_table() {
    let folder = Folder::new("a", json!({}));
    let mut lines: String = (0..999).map(|id| create("t", 1, &format!("{{\"id\":{id},\"a\":1}}"))).collect();
    lines += &create("t", 1, r#"{"id":1,"a":0.5}"#);
    let early: String = (0..1_000).map(|id| create("other", 1, &format!("{{\"id\":{id}}}"))).collect();
    folder.write("a", early + &lines + &create("t", 1, r#"{"id":1,"a":"x","b":1}"#));
    let expected = Ok(vec![("*id int64 not null, a float64".to_owned(), true)]);
    assert_eq!(described(&folder, &[request("s.t", &["id"], &[])]), expected);
}

#[test]
fn a_schema_under_which_a_copy_was_made_stays_as_it_is() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", create("t", 1, r#"{"id":1,"a":"x"}"#));
    let before = folder.describe(&[request("s.t", &["id"], &[])]);
    folder.write("a", create("t", 1, r#"{"id":1,"a":5,"b":6}"#));
    let stored: BTreeMap<_, Arc<TableSchema>> = [("s.t".into(), before[0].clone())].into_iter().collect();
    let tables = block_on(folder.source.describe(&[request("s.t", &["id"], &[])], &stored)).unwrap();
    assert_eq!((&tables[0].schema, tables[0].inferred), (&before[0], false));
}

#[test]
fn every_table_that_cannot_be_described_is_named_at_once() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", create("t", 1, r#"{"id":1,"a":"x"}"#));
    let wrong = [request("s.gone", &["id"], &[]), request("s.t", &["key", "id"], &[])];
    assert_eq!(
        described(&folder, &wrong),
        Err((
            Kind::Config,
            "jsonl-table-unseen",
            "table s.gone: the log holds no event with a row of it, so its columns are not known; table s.t: the key names key, which no event has; its columns are id, a".to_owned()
        ))
    );
    // A table whose columns are all declared need not have been seen.
    let columns = [("id", "int32"), ("a", "string")];
    let expected = Ok(vec![("a string, *id int32 not null".to_owned(), false)]);
    assert_eq!(described(&folder, &[request("s.gone", &["id"], &columns)]), expected);
    let error = described(&folder, &[request("s.t", &["a"], &[("a", "float64")])]).unwrap_err();
    assert_eq!((error.0, error.1), (Kind::Config, "jsonl-table"));
}

#[test]
fn a_column_whose_type_nothing_tells_is_refused_with_the_line_that_shows_it() {
    let folder = Folder::new("a", json!({}));
    let first = create("t", 1, r#"{"id":1,"gone":null,"n":1,"m":"x"}"#);
    let second = create("t", 1, r#"{"id":2,"gone":null,"n":"a","m":[]}"#);
    folder.write("a", first.clone() + &second + &create("t", 1, r#"{"id":"c","gone":null,"n":3,"m":"x"}"#));
    let path = folder.path("a").display().to_string();
    let (second, third) = (first.len(), first.len() + second.len());
    let wrong = |column: &str, what: &str| format!("table s.t: the type of column '{column}' is not known: {what}");
    let expected = [
        wrong("id", &format!("numbers and strings; {path}, line 3 (byte {third}) is the first that shows it")),
        wrong("gone", "only nulls"),
        wrong("n", &format!("numbers and strings; {path}, line 2 (byte {second}) is the first that shows it")),
        wrong("m", &format!("strings and objects or arrays; {path}, line 2 (byte {second}) is the first that shows it")),
    ];
    let all = request("s.t", &["id"], &[]);
    let error = block_on(folder.source.describe(std::slice::from_ref(&all), &BTreeMap::new())).unwrap_err();
    assert_eq!((error.kind, error.code, error.what), (Kind::Config, "jsonl-type-unknown", expected.join("; ")));
    assert!(error.remedy.contains("declare the column") && error.remedy.contains("tables[].columns"), "{}", error.remedy);
    // What would go wrong is said before as well, and of a key it is the type that is said.
    let found: Vec<_> = findings(&folder, std::slice::from_ref(&all)).into_iter().map(|(_, code, _)| code).collect();
    assert_eq!(found, ["jsonl-type-unknown"; 4]);
    // What is declared is not asked of the values; a value that does not fit is refused when it comes.
    let declared = [("id", "string"), ("gone", "date"), ("n", "int64"), ("m", "json")];
    assert_eq!(
        described(&folder, &[request("s.t", &["id"], &declared)]),
        Ok(vec![("*id string not null, gone date, n int64, m json".to_owned(), false)])
    );
    // A key that is not there is told beside it.
    let error = described(&folder, &[request("s.t", &["key"], &declared[..3])]).unwrap_err();
    assert!(
        error.2.contains("the key names key, which no event has") && error.2.contains("column 'm' is not known"),
        "{}",
        error.2
    );
    // A sketch for a new pipeline file says what is unknown. Of a copy that was made nothing is asked anew.
    let keyless = TableRequest { primary_key: None, ..all.clone() };
    let sketch = block_on(folder.source.sketch(&[keyless])).unwrap();
    let sketched = &sketch[0].found.as_ref().unwrap().schema;
    let kinds: Vec<_> = sketched.columns.iter().map(|column| column.kind.to_string()).collect();
    let unknown = ["unknown(numbers and strings)", "unknown(only nulls)", "unknown(numbers and strings)"];
    assert_eq!(kinds, [&unknown[..], &["unknown(strings and objects or arrays)"]].concat());
    let stored: BTreeMap<_, _> = [("s.t".into(), sketched.clone())].into_iter().collect();
    assert!(block_on(folder.source.describe(&[all], &stored)).is_ok());
}

#[test]
fn a_table_that_may_still_come_is_waited_for_if_the_log_is_followed() {
    let folder = Folder::new("a", json!({ "follow": true }));
    let error = described(&folder, &[request("s.t", &["id"], &[])]).unwrap_err();
    assert_eq!((error.0, error.1), (Kind::Transient, "jsonl-table-unseen"));
    folder.write("a", create("t", 1, r#"{"id":1}"#));
    assert!(described(&folder, &[request("s.t", &["id"], &[])]).is_ok());
}

#[test]
fn a_line_that_ends_the_log_is_named_where_a_table_was_not_seen_before_it() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", "nonsense\n".to_owned() + &create("t", 1, r#"{"id":1}"#));
    let error = described(&folder, &[request("s.t", &["id"], &[])]).unwrap_err();
    assert!(error.2.contains("a line that cannot be read: ") && error.2.contains("a, line 1 (byte 0): not JSON"), "{}", error.2);
}

#[test]
fn the_log_is_known_by_its_files_first_lines_and_ends_where_they_end() {
    let folder = Folder::new("*.jsonl", json!({}));
    folder.write("a.jsonl", "foobar\nx\n");
    folder.write("b.jsonl", "");
    folder.write("c.jsonl", "foobaz\n{\"op\"");
    let opened = block_on(folder.source.open()).unwrap();
    let streams: Vec<_> = opened.identity.streams.iter().map(|(stream, identity)| (stream.as_str(), identity.as_str())).collect();
    let expected = [("a.jsonl", "line1:343e1662793c64bf6f0d3597ba446f18"), ("c.jsonl", streams[1].1)];
    assert_eq!(streams, expected);
    assert_ne!(streams[0].1, streams[1].1);
    assert_eq!((opened.end.to_string(), opened.floor), ("a.jsonl:9,c.jsonl:7".to_owned(), Position::START));
    assert_eq!(opened.identity.coordinates, None);
}

#[test]
fn a_missing_file_is_an_error_unless_it_is_waited_for() {
    let folder = Folder::new("a", json!({}));
    for error in [
        block_on(folder.source.open()).err().unwrap(),
        block_on(folder.source.stream(&Start::default(), &[])).err().unwrap(),
        block_on(folder.source.discover()).err().unwrap(),
    ] {
        assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-no-file"));
        assert!(error.what.contains(&folder.path("a").display().to_string()));
    }
    let folder = Folder::new("*", json!({ "follow": true }));
    let opened = block_on(folder.source.open()).unwrap();
    assert!(opened.identity.streams.is_empty() && opened.end == Position::START);
}

#[test]
fn tables_are_discovered_by_their_events() {
    let folder = Folder::new("a", json!({}));
    folder.write(
        "a",
        create("b", 1, "{\"id\":1}") + &create("a", 1, "{\"id\":1}") + &create("b", 2, "{\"id\":1}") + &end_marker(2),
    );
    let names = block_on(folder.source.discover()).unwrap();
    assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["s.a", "s.b"]);
}

#[test]
fn a_position_is_told_in_words() {
    let folder = Folder::new("a", json!({}));
    let position: Position = [("a".into(), Offset(5)), ("b".into(), Offset(7))].into_iter().collect();
    assert_eq!(folder.source.describe_position(&position), "a up to byte 5, b up to byte 7");
    assert_eq!(folder.source.describe_position(&Position::START), "the beginning");
}

fn findings(folder: &Folder, tables: &[TableRequest]) -> Vec<(Severity, &'static str, String)> {
    let say = |found: Finding| {
        assert!(!found.subject.is_empty() && !found.remedy.is_empty(), "{found:?}");
        (found.severity, found.code, found.what.replace(&folder.dir.path().display().to_string(), "DIR"))
    };
    block_on(folder.source.preflight(tables)).into_iter().map(say).collect()
}

#[test]
fn a_log_without_faults_has_only_findings_of_what_was_guessed() {
    let folder = Folder::new("a", json!({}));
    folder.write("a", create("t", 1, r#"{"id":1,"a":"x"}"#));
    assert_eq!(
        findings(&folder, &[request("s.t", &["id"], &[("id", "int32")])]),
        [(Severity::Info, "jsonl-inferred", "table s.t: types inferred from values: a string".to_owned())]
    );
    assert_eq!(findings(&folder, &[request("s.t", &["id"], &[("id", "int32"), ("a", "string")])]), []);
}

#[test]
fn what_is_wrong_with_files_is_found() {
    let folder = Folder::new("a", json!({}));
    assert_eq!(findings(&folder, &[]), [(Severity::Error, "jsonl-no-file", "source.path: there is no file 'DIR/a'".to_owned())]);
    let folder = Folder::new("*.x", json!({}));
    assert_eq!(findings(&folder, &[]), [(Severity::Error, "jsonl-no-file", "source.path: no file matches 'DIR/*.x'".to_owned())]);
    let folder = Folder::new("*.x", json!({ "follow": true }));
    assert_eq!(
        findings(&folder, &[]),
        [(Severity::Warning, "jsonl-no-file", "source.path: no file matches 'DIR/*.x'".to_owned())]
    );
}

/// A user without rights cannot be had where tests run as root: then the rights are not looked at by the system either.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("a", json!({}));
    folder.write("a", create("t", 1, "{\"id\":1}"));
    std::fs::set_permissions(folder.path("a"), std::fs::Permissions::from_mode(0o0)).unwrap();
    let readable = std::fs::File::open(folder.path("a")).is_ok();
    let found = findings(&folder, &[]);
    if readable {
        assert_eq!(found, []);
    } else {
        assert_eq!((found[0].0, found[0].1), (Severity::Error, "jsonl-unreadable"));
        assert!(found[0].2.starts_with("cannot open DIR/a: "), "{found:?}");
    }
    let error = crate::files::unreadable(&folder.path("a"), "open", &std::io::ErrorKind::PermissionDenied.into());
    assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-unreadable"));
}

#[test]
fn what_is_wrong_with_tables_and_rows_is_found() {
    let folder = Folder::new("a", json!({}));
    let lines = create("t", 1, r#"{"id":1,"a":null,"b":1}"#)
        + &create("t", 1, r#"{"id":2,"a":null,"b":"x"}"#)
        + &create("u", 1, r#"{"id":"x"}"#);
    folder.write("a", lines);
    let mut keyless = request("s.u", &[], &[("id", "int32")]);
    keyless.primary_key = None;
    let second = create("t", 1, r#"{"id":1,"a":null,"b":1}"#).len();
    let at = second + create("t", 1, r#"{"id":2,"a":null,"b":"x"}"#).len();
    let untold = [
        (Severity::Error, "jsonl-type-unknown", "table s.t: the type of column 'a' is not known: only nulls".to_owned()),
        (
            Severity::Error,
            "jsonl-type-unknown",
            format!(
                "table s.t: the type of column 'b' is not known: numbers and strings; DIR/a, line 2 (byte {second}) is the first that shows it"
            ),
        ),
    ];
    assert_eq!(
        findings(
            &folder,
            &[request("s.t", &["id"], &[]), keyless, request("s.gone", &["id"], &[]), request("s.t", &["key"], &[])]
        ),
        [
            (
                Severity::Info,
                "jsonl-inferred",
                "table s.t: types inferred from values: id int64, a unknown(only nulls), b unknown(numbers and strings)"
                    .to_owned()
            ),
            untold[0].clone(),
            untold[1].clone(),
            (Severity::Info, "jsonl-no-key", "table s.u has no key: its events can be appended, not applied by key".to_owned()),
            (Severity::Warning, "jsonl-table-unseen", "the first 3 events of the log hold no row of s.gone".to_owned()),
            (
                Severity::Error,
                "jsonl-table-unseen",
                "table s.gone: the log holds no event with a row of it, so its columns are not known".to_owned()
            ),
            (
                Severity::Error,
                "jsonl-key-unseen",
                "table s.t: the key names key, which no event has; its columns are id, a, b".to_owned()
            ),
            untold[0].clone(),
            untold[1].clone(),
            (Severity::Error, "jsonl-value", format!("DIR/a, line 3 (byte {at}): s.u.id: expected int32, found a string")),
        ]
    );
}

#[test]
fn a_line_that_cannot_be_read_is_an_error_or_a_warning_as_the_pipeline_says() {
    let lines = create("t", 1, r#"{"id":1}"#) + "nonsense\n";
    let place = format!("DIR/a, line 2 (byte {}): not JSON: expected a JSON value, at byte 1 of the line", lines.len() - 9);
    for (settings, expected) in [
        (json!({}), (Severity::Error, "jsonl-malformed", place.clone())),
        (
            json!({ "onDecodeError": "skip" }),
            (Severity::Warning, "jsonl-malformed", format!("1 of the first lines will be passed over, the first is {place}")),
        ),
    ] {
        let folder = Folder::new("a", settings);
        folder.write("a", &lines);
        assert_eq!(findings(&folder, &[request("s.t", &["id"], &[("id", "int32")])]), [expected]);
    }
}
