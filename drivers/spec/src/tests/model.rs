//! What holds for models, written out one by one.

use std::path::Path;

use super::{Fixture, SECRET};
use crate::environment::Environment;
use crate::field::{Field, Need, Shape};
use crate::fields::{PIPELINE, SINK, SOURCE};
use crate::problem::Place;
use crate::read::{Reading, read};
use crate::yaml::{Content, Key, Node, Scalar};
use crate::{
    Code, Duration, GiveUp, OnTruncate, Pipeline, Problems, SchemaEvolution, Size, SnapshotMode, SnapshotSpec, load, parse,
};

fn pipeline(source: &str, sink: &str, more: &str) -> Result<Pipeline, Problems> {
    let text = format!(
        "pipeline: p\nsource: {{ kind: jsonl, path: a.jsonl{source} }}\nsink: {{ {sink} }}\ntables: [{{ \
            source: shop.orders, primaryKey: [id] }}]\n{more}"
    );
    parse(&text, "pipeline.yaml", &Fixture)
}

const ICEBERG: &str = "kind: iceberg, uri: w";

#[test]
fn checkpoints_of_iceberg_are_larger_than_those_of_other_sinks() {
    let iceberg = pipeline("", ICEBERG, "").unwrap().sink.checkpoint;
    assert_eq!(iceberg.interval, Duration::from_secs(10));
    assert_eq!(iceberg.max_rows, 1_000_000);
    assert_eq!(iceberg.max_bytes, Size::from_bytes(268_435_456));
    for sink in ["kind: null", "kind: jsonl, uri: out"] {
        let other = pipeline("", sink, "").unwrap().sink.checkpoint;
        assert_eq!(other.interval, Duration::from_secs(1));
        assert_eq!(other.max_rows, 100_000);
        assert_eq!(other.max_bytes, Size::from_bytes(67_108_864));
    }
}

#[test]
fn giving_up_is_left_to_the_command_unless_the_file_says_when() {
    assert_eq!(pipeline("", ICEBERG, "").unwrap().give_up_after, None);
    assert_eq!(pipeline("", ICEBERG, "retry: { giveUpAfter: 0 }").unwrap().give_up_after, Some(GiveUp::Never));
    assert_eq!(
        pipeline("", ICEBERG, "retry: { giveUpAfter: 90s }").unwrap().give_up_after,
        Some(GiveUp::After(Duration::from_secs(90)))
    );
}

#[test]
fn defaults_that_are_others_in_the_go_system_are_told_unless_the_file_decides() {
    let told = |pipeline: Pipeline| pipeline.other_in_go.iter().map(ToString::to_string).collect::<Vec<_>>();
    let truncate = "source.onTruncate is propagate by default; in the Go urutau it is ignore";
    let evolution = "sink.schemaEvolution is evolve by default; in the Go urutau it is fail";
    let deletes = "sink.deleteMode is vectors by default; in the Go urutau it is equality";
    assert_eq!(told(pipeline("", ICEBERG, "").unwrap()), [truncate, evolution, deletes]);
    assert_eq!(told(pipeline("", "kind: null", "").unwrap()), [truncate, evolution]);
    assert_eq!(
        told(pipeline(", onTruncate: propagate", &format!("{ICEBERG}, evolveSchema: true, deleteMode: vectors"), "").unwrap()),
        [""; 0]
    );
}

#[test]
fn compat_go_restores_the_defaults_of_the_go_system() {
    let go = pipeline("", "kind: null", "compat: go").unwrap();
    assert_eq!(go.source.on_truncate, OnTruncate::Ignore);
    assert_eq!(go.sink.schema_evolution, SchemaEvolution::Fail);
    assert!(go.other_in_go.is_empty());
    let own = pipeline(", onTruncate: fail", "kind: null, schemaEvolution: evolve", "compat: go").unwrap();
    assert_eq!(own.source.on_truncate, OnTruncate::Fail);
    assert_eq!(own.sink.schema_evolution, SchemaEvolution::Evolve);
}

#[test]
fn a_driver_gets_its_secrets_and_nobody_else_sees_them() {
    let pipeline = pipeline("", "kind: jsonl, uri: \"${env:SECRET}\", namespace: \"a-${env:NUMBER}\"", "").unwrap();
    assert_eq!(pipeline.sink.settings.expose()["uri"], SECRET);
    assert_eq!(pipeline.sink.settings.shown()["uri"], "${env:SECRET}");
    assert_eq!(pipeline.sink.settings.expose()["namespace"], "a-5000");
    assert_eq!(pipeline.sink.namespace, "a-5000");
    let debug = format!("{pipeline:?} {}", pipeline.sink.settings);
    assert!(!debug.contains(SECRET), "{debug}");
}

#[test]
fn durations_are_milliseconds_and_sizes_are_bytes_in_a_drivers_settings() {
    let pipeline = pipeline(", transactionIdle: 1m30s", &format!("{ICEBERG}, keyIndex: {{ memory: 1Gi }}"), "").unwrap();
    assert_eq!(pipeline.source.settings.expose()["transactionIdle"], 90_000);
    assert_eq!(pipeline.sink.settings.expose()["keyIndex"]["memory"], 1_073_741_824);
    assert_eq!(pipeline.source.settings.expose().get("kind"), None);
}

#[test]
fn a_database_is_read_once_unless_the_file_says_otherwise() {
    let snapshot = |more: &str| {
        let source = "{ kind: postgres, uri: \"postgres://u@h/d\", slotName: s }";
        let text =
            format!("pipeline: p\nsource: {source}\nsink: {{ kind: null }}\ntables: [{{ source: public.orders }}]\n{more}");
        parse(&text, "pipeline.yaml", &Fixture).map(|pipeline| pipeline.snapshot)
    };
    let initial = SnapshotSpec { mode: SnapshotMode::Initial, chunk_rows: 20_000, parallelism: 2 };
    assert_eq!([snapshot("").unwrap(), snapshot("snapshot: {}").unwrap()], [initial; 2]);
    let said = snapshot("snapshot: { mode: when-needed, chunkRows: 500, parallelism: 4 }").unwrap();
    assert_eq!(said, SnapshotSpec { mode: SnapshotMode::WhenNeeded, chunk_rows: 500, parallelism: 4 });
    assert_eq!(snapshot("snapshot: { mode: never }").unwrap().mode, SnapshotMode::Never);
    let problems = snapshot("snapshot: { mode: only }").unwrap_err();
    let [problem] = problems.list() else { panic!("{problems}") };
    assert_eq!((problem.code, problem.line), (Code::NotBuilt, 5));
}

/// Variables that the Go system takes where the file says nothing.
struct GoVariables;

impl Environment for GoVariables {
    fn variable(&self, name: &str) -> Option<std::ffi::OsString> {
        match name {
            "URUTAU_SINK_URI" => Some("/hunter2/warehouse".into()),
            "URUTAU_SOURCE_URI" => Some("postgres://u:hunter2@db".into()),
            _ => None,
        }
    }

    fn file(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

#[test]
fn a_variable_stands_in_for_an_address_that_the_file_leaves_out() {
    let text = |sink: &str| {
        format!(
            "pipeline: p\nsource: {{ kind: jsonl, path: a }}\nsink: {{ {sink} }}\ntables: [{{ source: a, primaryKey: [id] }}]"
        )
    };
    let pipeline = parse(&text("kind: iceberg"), "pipeline.yaml", &GoVariables).unwrap();
    assert_eq!(pipeline.sink.settings.expose()["uri"], "/hunter2/warehouse");
    assert_eq!(pipeline.sink.settings.shown()["uri"], "${env:URUTAU_SINK_URI}");
    let pipeline = parse(&text("kind: iceberg, uri: ./own"), "pipeline.yaml", &GoVariables).unwrap();
    assert_eq!(pipeline.sink.settings.expose()["uri"], "./own");
    let pipeline = parse(&text("kind: null"), "pipeline.yaml", &GoVariables).unwrap();
    assert_eq!(pipeline.sink.settings.expose().get("uri"), None);
}

#[test]
fn a_file_is_loaded_from_disk_with_its_name_in_the_problems() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.yaml");
    std::fs::write(
        &path,
        "pipeline: p\nsource: { kind: jsonl, path: a }\nsink: { kind: null }\ntables: [{ source: a, primaryKey: [id] }]\n",
    )
    .unwrap();
    assert_eq!(load(&path).unwrap().name, "p");
    std::fs::write(&path, "pipeline: [\n").unwrap();
    let problems = load(&path).unwrap_err();
    assert_eq!(problems.file(), path.display().to_string());
    assert!(problems.to_string().starts_with(&format!("{}:1:11: ", path.display())), "{problems}");
}

#[test]
fn a_file_that_cannot_be_read_says_which_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.yaml");
    let file = path.display();
    let expected = format!(
        "{file}: found no such file, expected a pipeline file [unreadable-pipeline]\n    `urutau init` writes \
            one; `-f FILE` names another.\n1 problem in {file}"
    );
    assert_eq!(load(&path).unwrap_err().to_string(), expected);
    let problems = load(folder.path()).unwrap_err();
    assert_eq!(problems.list()[0].code, Code::UnreadablePipeline);
    assert!(problems.to_string().contains("found a file that cannot be read: "), "{problems}");
}

#[test]
fn a_file_that_is_far_too_large_is_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    std::fs::write(&path, "# comment\n".repeat(500_000)).unwrap();
    let problems = load(&path).unwrap_err();
    assert_eq!(problems.list().len(), 1);
    assert_eq!(problems.list()[0].found, "a file of more than 4194304 bytes");
}

#[test]
fn a_small_file_cannot_be_made_large_by_what_it_repeats() {
    let list = |item: &str| format!("[{}]", vec![item; 40].join(", "));
    let aliases = format!("pipeline: &big \"{}\"\ntables: {}", "x".repeat(1 << 20), list("*big"));
    let problems = parse(&aliases, "pipeline.yaml", &Fixture).unwrap_err();
    assert_eq!(problems.list().len(), 1);
    assert_eq!(problems.list()[0].found, "a file that its aliases make too large");
    let files = format!("pipeline: p\ntables: {}", list("\"${file:/run/secrets/large}\""));
    let problems = parse(&files, "pipeline.yaml", &Fixture).unwrap_err();
    let too_much = problems.list().iter().filter(|problem| problem.found == "more than 16777216 bytes from variables and files");
    assert_eq!(too_much.count(), 24);
}

#[test]
fn problems_are_values_for_programs_too() {
    let problems = pipeline("", "kind: nul", "").unwrap_err();
    assert_eq!(
        serde_json::to_value(&problems).unwrap(),
        serde_json::json!({ "file": "pipeline.yaml", "list": [{
            "path": "sink.kind", "line": 3, "column": 15, "found": "`nul`", "expected": "one of iceberg, jsonl, null",
            "hint": "Did you mean `null`?", "code": "unknown-word",
        }] })
    );
}

/// A section that says nothing but its kind.
fn only_kind(kind: &str) -> Node {
    let at = Place::START;
    let scalar = Scalar { text: kind.into(), plain: true, written: None };
    let entries = vec![(Key { name: "kind".into(), at }, Node { at, content: Content::Scalar(scalar) })];
    Node { at, content: Content::Map(entries) }
}

#[test]
fn every_default_is_a_value_that_its_field_accepts() {
    let mut defaults = 0;
    for fields in [SOURCE, SINK] {
        let Some(Field { shape: Shape::Word(kinds), .. }) = fields.first() else { panic!("the first field is the kind") };
        for kind in *kinds {
            for compat_go in [false, true] {
                let mut problems = Vec::new();
                let reading = Reading { environment: &Fixture, compat_go, refuse_not_built: false };
                let section = read(fields, &only_kind(kind.name), reading, &mut problems).unwrap();
                problems.retain(|problem| problem.code != Code::MissingField);
                assert!(problems.is_empty(), "{problems:?}");
                defaults += section.entries.len();
            }
        }
    }
    assert!(defaults > 100, "only {defaults} values were looked at");
}

#[test]
fn a_section_without_words_for_its_absence_can_be_left_out_whole() {
    // `read` makes it of its defaults, which does not work where a field of it is required.
    fn check(fields: &'static [Field]) {
        for field in fields {
            if let (Need::Optional(""), Shape::Section(below)) = (field.need, field.shape) {
                assert!(below.iter().all(|field| !matches!(field.need, Need::Required)), "{}", field.name);
            }
            check(field.shape.fields().unwrap_or_default());
        }
    }
    check(PIPELINE);
}
