//! YAML text as a tree in which every node knows its line and column.
//!
//! The tree keeps scalars as they are written: whether `null` is a word or nothing, and `5` a number or a text, is for the
//! field that it stands in to say. What a pipeline file has no use for (tags, keys that are not text) becomes a problem here;
//! so does anything that could make the tree larger or deeper than a pipeline file can sensibly be.

mod build;
mod syntax;

use granit_parser::{Event, Parser};

use crate::problem::{Code, Place, Problem};
use build::Builder;

/// One value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// Something that has been complained about already.
    Broken,
}

/// A text, number, boolean or null, as it is written.
#[derive(Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Not in quotes and not a block of text, so that it may be a number, a boolean or null.
    pub(crate) plain: bool,
    /// What the file says, if `text` came from outside of it. Then `text` must not be shown.
    pub(crate) written: Option<String>,
}

/// The name of a field with its place.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) at: Place,
}

impl Scalar {
    /// Is it nothing: not written at all, `~` or `null`?
    pub(crate) fn is_null(&self) -> bool {
        self.plain && self.written.is_none() && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

/// Without the text, which may be a secret.
impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scalar").field("plain", &self.plain).field("written", &self.written).finish_non_exhaustive()
    }
}

/// A pipeline file is never larger.
pub(crate) const FILE_BYTES_MAX: usize = 4 << 20;
/// Sections and lists inside each other go no deeper, aliases followed.
const DEPTH_MAX: usize = 48;
/// Text in the whole file, aliases followed.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;
/// Values in the whole file, aliases followed: without a bound, ten lines of aliases fill the memory.
const NODES_MAX: usize = 200_000;

/// Reads the one document of a file. `None` if there is nothing to look at, which `problems` then says why.
pub(crate) fn read(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    if text.len() > FILE_BYTES_MAX {
        problems.push(too_large());
        return None;
    }
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut builder = Builder::new(problems);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                builder.problem(syntax::problem(&error));
                return None;
            }
        };
        let at = Place { line: span.start.line(), column: span.start.col() + 1 };
        if matches!(event, Event::DocumentStart(..)) && builder.has_document() {
            builder.problem(several_documents(at));
            return None;
        }
        if !builder.take(event, at) {
            return None;
        }
    }
    builder.finish()
}

/// The problem of a file that is far larger than a pipeline file can be.
fn too_large() -> Problem {
    Problem {
        path: String::new(),
        line: 1,
        column: 1,
        found: format!("a file of more than {FILE_BYTES_MAX} bytes"),
        expected: "a pipeline file".into(),
        hint: "Is this the right file?".into(),
        code: Code::UnreadablePipeline,
    }
}

fn several_documents(at: Place) -> Problem {
    Problem {
        path: String::new(),
        line: at.line,
        column: at.column,
        found: "a second YAML document".into(),
        expected: "one document, which describes one pipeline".into(),
        hint: "Remove the `---` line, or make it a file of its own.".into(),
        code: Code::SeveralDocuments,
    }
}
