//! pipeline.yaml: its model, defaults, validation with field paths, JSON Schema.
//!
//! ```
//! let text = "
//! pipeline: order-desk
//! source: { kind: jsonl, path: changes.jsonl }
//! sink: { kind: iceberg, uri: ./warehouse, namespace: shop }
//! tables:
//!   - { source: shop.orders, primaryKey: [id] }
//! ";
//! let pipeline = spec::parse(text, "pipeline.yaml", &spec::ProcessEnvironment).unwrap();
//! assert_eq!(pipeline.tables[0].target, "orders");
//! assert_eq!(pipeline.sink.checkpoint.interval, spec::Duration::from_secs(10));
//! ```
//!
//! The way of a file: `yaml` makes a tree in which every value knows its line and column, `replace` puts in what comes from
//! variables and files, `read` checks it by the table of `fields` and fills in defaults, `resolve` checks what takes two
//! fields to be wrong and builds the model. None of them stops at the first problem: what is wrong is noted, marked as
//! broken so that nobody complains about it twice, and passed over.
//!
//! `fields` describes every field once. `schema` and `reference` are made from it, so that editors and the documentation
//! say what the reader does.
#![deny(missing_docs)]

mod column_type;
mod duration;
mod environment;
mod example;
mod field;
mod fields;
mod filter;
mod model;
mod nearest;
mod path;
mod problem;
mod read;
mod reference;
mod replace;
mod resolve;
mod scaled;
mod schema;
mod settings;
mod shown;
mod size;
mod value;
mod words;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use column_type::{BadColumnType, ColumnType};
pub use duration::{BadDuration, Duration};
pub use environment::{Environment, ProcessEnvironment};
pub use example::{Draft, DraftColumn, DraftKey, DraftSource, DraftTable, render_example};
pub use filter::Filter;
pub use model::{
    Checkpoint, ColumnSpec, GiveUp, Hold, MetadataColumn, OtherInGo, Pipeline, SinkSpec, SnapshotSpec, SourceSpec, TableSpec,
    Warning,
};
pub use problem::{Code, Problem, Problems};
pub use reference::reference;
pub use schema::schema;
pub use settings::Settings;
pub use size::{BadSize, Size};
pub use value::{Literal, LiteralKind};
pub use words::{
    BeforeImage, Compat, FilterOp, MetadataSource, OnDecodeError, OnDelete, OnError, OnTruncate, OnValue, SchemaEvolution,
    SnapshotMode, TableMode, WriteMode,
};

use problem::Place;
use yaml::{Content, Node};

/// Reads a pipeline file, with the variables and files of this process.
pub fn load(path: &Path) -> Result<Pipeline, Problems> {
    let name = path.display().to_string();
    let whole_file = |found: String, expected: &str, hint: &str| {
        let (line, column) = (Place::WHOLE_FILE.line, Place::WHOLE_FILE.column);
        let (expected, hint) = (expected.to_owned(), hint.to_owned());
        Problems::new(
            &name,
            vec![Problem { path: String::new(), line, column, found, expected, hint, code: Code::UnreadablePipeline }],
        )
    };
    match bytes_of(path) {
        Ok(bytes) => parse_bytes(&bytes, &name, &ProcessEnvironment),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let hint = "`urutau init` writes one; `-f FILE` names another.";
            Err(whole_file("no such file".into(), "a pipeline file", hint))
        }
        Err(error) => Err(whole_file(format!("a file that cannot be read: {error}"), "a pipeline file that can be read", "")),
    }
}

/// What a file holds, up to a little more than a pipeline file can hold: the path may name something without end.
fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(yaml::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a pipeline file that is in memory. `file_name` is what the problems call it.
pub fn parse(text: &str, file_name: &str, environment: &dyn Environment) -> Result<Pipeline, Problems> {
    parse_as(text, file_name, environment, true)
}

fn parse_as(text: &str, file_name: &str, environment: &dyn Environment, refuse_not_built: bool) -> Result<Pipeline, Problems> {
    let mut problems = Vec::new();
    let tree = yaml::read(text, &mut problems);
    let pipeline = tree.and_then(|tree| from_tree(tree, environment, refuse_not_built, &mut problems));
    match pipeline {
        Some(pipeline) if problems.is_empty() => Ok(pipeline),
        None if problems.is_empty() => Err(Problems::new(file_name, vec![nothing_said()])),
        _ => Err(Problems::new(file_name, problems)),
    }
}

/// From the tree to the model. What is returned counts only if nothing was said against it.
fn from_tree(
    mut tree: Node,
    environment: &dyn Environment,
    refuse_not_built: bool,
    problems: &mut Vec<Problem>,
) -> Option<Pipeline> {
    replace::replace(&mut tree, environment, problems);
    let reading = read::Reading { environment, compat_go: says_compat_go(&tree), refuse_not_built };
    let file = read::read(fields::PIPELINE, &tree, reading, problems)?;
    resolve::resolve(&file, reading, problems)
}

/// As [`parse`], for bytes that may not be text.
pub fn parse_bytes(bytes: &[u8], file_name: &str, environment: &dyn Environment) -> Result<Pipeline, Problems> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, file_name, environment),
        Err(error) => Err(Problems::new(file_name, vec![not_utf8(bytes, error.valid_up_to())])),
    }
}

/// Defaults depend on it, so it is looked at before anything else.
fn says_compat_go(tree: &Node) -> bool {
    let Content::Map(entries) = &tree.content else { return false };
    entries.iter().any(|(key, value)| {
        key.name == "compat" && matches!(&value.content, Content::Scalar(scalar) if scalar.text == Compat::Go.as_str())
    })
}

fn not_utf8(bytes: &[u8], valid: usize) -> Problem {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let hint = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "It looks like UTF-16; save it as UTF-8.",
        _ => "Save it as UTF-8.",
    };
    Problem {
        path: String::new(),
        line: before.matches('\n').count() + 1,
        column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
        found: format!("the byte 0x{:02x}, which is not UTF-8", bytes.get(valid).copied().unwrap_or_default()),
        expected: "text in UTF-8".into(),
        hint: hint.into(),
        code: Code::NotUtf8,
    }
}

/// A value is missing and nobody complained: a hole in this crate, said rather than hidden.
fn nothing_said() -> Problem {
    Problem {
        path: String::new(),
        line: Place::START.line,
        column: Place::START.column,
        found: "a file that cannot be used, without knowing why".into(),
        expected: "a reason".into(),
        hint: "This is a fault in urutau; please report it with the file.".into(),
        code: Code::Internal,
    }
}
