//! What is made from the field table: the schema, the reference page, the example.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::Fixture;
use super::files::{expect, files, read};
use crate::yaml::{Content, Node, Scalar};
use crate::{
    Code, Draft, DraftColumn, DraftKey, DraftSource, DraftTable, Environment, SourceSpec, parse, reference, render_example,
    schema, yaml,
};

mod checker;

#[test]
fn the_schema_is_the_expected_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/schema.json");
    expect(&path, &format!("{:#}\n", schema()));
}

#[test]
fn the_reference_page_in_the_docs_is_the_one_of_this_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pipeline-reference.md");
    expect(&path, &reference());
}

/// The file as any YAML 1.2 reader would hand it to a JSON Schema.
fn json(node: &Node) -> Json {
    match &node.content {
        Content::Scalar(scalar) => json_scalar(scalar),
        Content::List(items) => items.iter().map(json).collect(),
        Content::Map(entries) => entries.iter().map(|(key, value)| (key.name.clone(), json(value))).collect(),
        Content::Broken => panic!("a broken node has no JSON"),
    }
}

fn json_scalar(scalar: &Scalar) -> Json {
    match scalar.text.as_str() {
        _ if !scalar.plain => Json::from(scalar.text.as_str()),
        _ if scalar.is_null() => Json::Null,
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        text => text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<f64>().map(Json::from)).unwrap_or(Json::from(text)),
    }
}

fn json_of(path: &Path) -> Option<Json> {
    let mut problems = Vec::new();
    let tree = yaml::read(&fs::read_to_string(path).ok()?, &mut problems)?;
    problems.is_empty().then(|| json(&tree))
}

#[test]
fn the_schema_accepts_every_file_that_the_reader_accepts() {
    let schema = schema();
    for path in files("good") {
        let faults = checker::faults(&schema, &json_of(&path).unwrap());
        assert!(faults.is_empty(), "{}: {faults:#?}", path.display());
    }
}

#[test]
fn the_schema_refuses_what_one_field_alone_says_wrong() {
    let schema = schema();
    let by_one_field = [
        Code::UnknownField,
        Code::FieldOfAnotherKind,
        Code::EmptyValue,
        Code::WrongType,
        Code::NotBuilt,
        Code::UnknownWord,
        Code::BadNumber,
        Code::BadDuration,
        Code::BadSize,
        Code::BadColumnType,
    ];
    let mut refused = 0;
    for path in files("bad") {
        let (Some(json), Err(problems)) = (json_of(&path), read(&path)) else { continue };
        let expected: Vec<Code> =
            problems.list().iter().map(|problem| problem.code).filter(|code| by_one_field.contains(code)).collect();
        // An address says by its first letters what is not built, and `compat` what others default to: no single field does.
        let beyond = ["object-store.yaml", "compat-go-asks-for-what-is-not-built.yaml", "no-tables.yaml"];
        if expected.is_empty() || beyond.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        refused += 1;
        assert!(!checker::faults(&schema, &json).is_empty(), "{}: {expected:?}", path.display());
    }
    assert!(refused >= 12, "only {refused} files were refused");
}

/// The variables of a test, and a password.
struct WithPassword;

impl Environment for WithPassword {
    fn variable(&self, name: &str) -> Option<OsString> {
        if name == "PGPASSWORD" { Some("secret".into()) } else { Fixture.variable(name) }
    }

    fn file(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        Fixture.file(path)
    }
}

#[test]
fn the_examples_are_pipelines() {
    for (kind, file) in [("jsonl", "example.yaml"), ("postgres", "example-postgres.yaml")] {
        let text = render_example(kind).unwrap();
        let pipeline = parse(&text, "pipeline.yaml", &WithPassword).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        assert_eq!(pipeline.tables.len(), 2);
        assert_eq!(pipeline.source.kind, kind);
        expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(file), &text);
    }
    assert_eq!(render_example("mysql"), None);
}

#[test]
fn a_table_that_cannot_be_copied_stands_in_a_draft_as_a_comment_with_its_reason() {
    let table = |source: &str, fault: Option<&str>| DraftTable {
        source: source.into(),
        target: fault.map(|_| "other".into()),
        key: DraftKey::Told,
        columns: Vec::new(),
        note: format!("about {source}"),
        fault: fault.map(str::to_owned),
    };
    let draft = Draft {
        pipeline: "Desk No-1".into(),
        source: DraftSource::Postgres { uri: "postgres://me@localhost/desk".into(), password: None },
        warehouse: "./warehouse".into(),
        namespace: "shop".into(),
        tables: vec![table("public.a", None), table("public.b", Some("it has no key;\nALTER TABLE \"b\""))],
    };
    let text = draft.render();
    let (_, list) = text.split_once("\ntables:\n").expect("a list of tables");
    let expected = "  # about public.a
  - source: public.a
  # about public.b
  # Not copied as it is: it has no key; ALTER TABLE \"b\"
  # - source: public.b
  #   target: other
";
    assert_eq!(list, expected);
    let pipeline = parse(&text.replace("Desk No-1", "desk"), "pipeline.yaml", &Fixture).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(pipeline.tables.len(), 1);
    assert!(text.contains("slotName: urutau_desk_no_1\n"), "{text}");
}

#[test]
fn what_the_examples_offer_in_comments_can_be_taken() {
    let settings = taken("jsonl");
    assert_eq!(settings["follow"], true, "the offer was not taken");
    taken("postgres");
}

/// The source's settings of an example whose comments are no comments any more.
fn taken(kind: &str) -> Map<String, Json> {
    let text = render_example(kind).unwrap();
    let offered = |line: &str| {
        line.trim_start()
            .strip_prefix("# ")
            .is_some_and(|rest| rest.split_once(": ").is_some_and(|(name, _)| !name.contains(' ')))
    };
    let lines: Vec<String> =
        text.lines().map(|line| if offered(line) { line.replacen("# ", "", 1) } else { line.to_owned() }).collect();
    let pipeline =
        parse(&lines.join("\n"), "pipeline.yaml", &WithPassword).unwrap_or_else(|e| panic!("{e}\n{}", lines.join("\n")));
    let SourceSpec { settings, .. } = pipeline.source;
    settings.expose()
}

#[test]
fn every_line_of_a_draft_that_belongs_to_a_section_is_indented_below_it() {
    let table = |source: &str, key: &[&str], columns: &[(&str, &str)], note: &str| DraftTable {
        source: source.into(),
        target: None,
        key: match key {
            [] => DraftKey::Unknown,
            key => DraftKey::Columns(key.iter().map(|name| (*name).to_owned()).collect()),
        },
        columns: columns.iter().map(|(name, kind)| DraftColumn { name: (*name).into(), column_type: (*kind).into() }).collect(),
        note: note.into(),
        fault: None,
    };
    let draft = Draft {
        pipeline: "desk".into(),
        source: DraftSource::Files { path: "changes.jsonl".into() },
        warehouse: "./warehouse".into(),
        namespace: "shop".into(),
        tables: vec![
            table("shop.orders", &["id"], &[("price", "decimal(12,2)")], "Types inferred."),
            table("shop.journal", &[], &[("at", "timestamptz")], "Keyless.\nTwo lines."),
            table("shop.notes", &[], &[], ""),
        ],
    };
    let text = draft.render();
    parse(&text, "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let (_, list) = text.split_once("\ntables:\n").expect("a list of tables");
    let expected = "  # Types inferred.
  - source: shop.orders
    primaryKey: [id]
    # Types that the source does not say, or not exactly enough.
    columns:
      - { name: price, type: \"decimal(12,2)\" }
  # Keyless. Two lines.
  - source: shop.journal
    # Its key is not known. Name the columns, or append: each change becomes a row of its own.
    # primaryKey: [id]
    writeMode: append
    # Types that the source does not say, or not exactly enough.
    columns:
      - { name: at, type: timestamptz }
  - source: shop.notes
    # Its key is not known. Name the columns, or append: each change becomes a row of its own.
    # primaryKey: [id]
    writeMode: append
";
    assert_eq!(list, expected);
    // What a table's comments offer can be taken, each in the place of what it would replace.
    let keyed = list.replace("    # primaryKey: [id]\n    writeMode: append\n", "    primaryKey: [id]\n");
    let taken = text.replace(list, &keyed);
    let pipeline = parse(&taken, "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{taken}"));
    assert!(pipeline.tables.iter().all(|table| table.primary_key == Some(vec!["id".to_owned()])));
    // Between a section's first line and the next section nothing stands at its left edge but comments on the next one.
    let mut in_section = false;
    for line in text.lines() {
        in_section = match line {
            "" => false,
            "source:" | "sink:" | "tables:" => true,
            _ => in_section,
        };
        let heads = matches!(line, "source:" | "sink:" | "tables:");
        assert!(!in_section || heads || line.starts_with("  "), "not indented: {line:?}");
    }
}

#[test]
fn a_draft_with_difficult_names_is_a_pipeline_with_the_same_names() {
    let draft = Draft {
        pipeline: "1".into(),
        source: DraftSource::Files { path: "C:\\changes\\${x} #1: all.jsonl".into() },
        warehouse: "null".into(),
        namespace: "yes".into(),
        tables: vec![
            DraftTable {
                source: "shop.\"order\" - lines".into(),
                target: Some("~".into()),
                key: DraftKey::Columns(vec!["no".into(), "a, b]".into()]),
                columns: vec![DraftColumn { name: "0x1".into(), column_type: "decimal(12,2)".into() }],
                note: "two\nlines".into(),
                fault: None,
            },
            DraftTable {
                source: "- notes".into(),
                target: None,
                key: DraftKey::Unknown,
                columns: Vec::new(),
                note: String::new(),
                fault: None,
            },
        ],
    };
    let text = draft.render();
    let pipeline = parse(&text, "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(pipeline.name, "1");
    assert_eq!(pipeline.source.settings.expose()["path"], "C:\\changes\\${x} #1: all.jsonl");
    assert_eq!(pipeline.sink.settings.expose()["uri"], "null");
    assert_eq!(pipeline.sink.namespace, "yes");
    assert_eq!(pipeline.tables[0].source, "shop.\"order\" - lines");
    assert_eq!(pipeline.tables[0].target, "~");
    assert_eq!(pipeline.tables[0].primary_key, Some(vec!["no".to_owned(), "a, b]".to_owned()]));
    assert_eq!(pipeline.tables[0].column("0x1").unwrap().column_type.as_ref().unwrap().as_str(), "decimal(12,2)");
    assert_eq!(pipeline.tables[1].source, "- notes");
    assert_eq!(pipeline.tables[1].primary_key, None);
}
