//! What is made from the field table: the schema, the reference page, the example.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::Fixture;
use super::files::{expect, files, read};
use crate::yaml::{Content, Node, Scalar};
use crate::{Code, Draft, DraftColumn, DraftTable, SourceSpec, parse, reference, render_example, schema, yaml};

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

#[test]
fn the_example_is_a_pipeline() {
    let text = render_example("jsonl").unwrap();
    let pipeline = parse(&text, "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(pipeline.tables.len(), 2);
    expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/example.yaml"), &text);
    assert_eq!(render_example("mysql"), None);
}

#[test]
fn what_the_example_offers_in_comments_can_be_taken() {
    let text = render_example("jsonl").unwrap();
    let offered = |line: &str| {
        line.trim_start()
            .strip_prefix("# ")
            .is_some_and(|rest| rest.split_once(": ").is_some_and(|(name, _)| !name.contains(' ')))
    };
    let lines: Vec<String> =
        text.lines().map(|line| if offered(line) { line.replacen("# ", "", 1) } else { line.to_owned() }).collect();
    let pipeline =
        parse(&lines.join("\n"), "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{}", lines.join("\n")));
    let SourceSpec { settings, .. } = pipeline.source;
    assert_eq!(settings.expose()["follow"], true, "the offer was not taken");
}

#[test]
fn every_line_of_a_draft_that_belongs_to_a_section_is_indented_below_it() {
    let table = |source: &str, key: &[&str], columns: &[(&str, &str)], note: &str| DraftTable {
        source: source.into(),
        primary_key: key.iter().map(|name| (*name).to_owned()).collect(),
        columns: columns.iter().map(|(name, kind)| DraftColumn { name: (*name).into(), column_type: (*kind).into() }).collect(),
        note: note.into(),
    };
    let draft = Draft {
        pipeline: "desk".into(),
        path: "changes.jsonl".into(),
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
        path: "C:\\changes\\${x} #1: all.jsonl".into(),
        warehouse: "null".into(),
        namespace: "yes".into(),
        tables: vec![
            DraftTable {
                source: "shop.\"order\" - lines".into(),
                primary_key: vec!["no".into(), "a, b]".into()],
                columns: vec![DraftColumn { name: "0x1".into(), column_type: "decimal(12,2)".into() }],
                note: "two\nlines".into(),
            },
            DraftTable { source: "- notes".into(), primary_key: Vec::new(), columns: Vec::new(), note: String::new() },
        ],
    };
    let text = draft.render();
    let pipeline = parse(&text, "pipeline.yaml", &Fixture).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(pipeline.name, "1");
    assert_eq!(pipeline.source.settings.expose()["path"], "C:\\changes\\${x} #1: all.jsonl");
    assert_eq!(pipeline.sink.settings.expose()["uri"], "null");
    assert_eq!(pipeline.sink.namespace, "yes");
    assert_eq!(pipeline.tables[0].source, "shop.\"order\" - lines");
    assert_eq!(pipeline.tables[0].primary_key, Some(vec!["no".to_owned(), "a, b]".to_owned()]));
    assert_eq!(pipeline.tables[0].column("0x1").unwrap().column_type.as_ref().unwrap().as_str(), "decimal(12,2)");
    assert_eq!(pipeline.tables[1].source, "- notes");
    assert_eq!(pipeline.tables[1].primary_key, None);
}
