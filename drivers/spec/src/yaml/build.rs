//! From the parser's events to the tree, with bounds on its depth and size, aliases followed and `<<` merged.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, Tag};

use super::{Content, DEPTH_MAX, Key, NODES_MAX, Node, Scalar, TEXT_BYTES_MAX};
use crate::path::Path;
use crate::problem::{Code, Place, Problem};

pub(super) struct Builder<'a> {
    problems: &'a mut Vec<Problem>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Measured>,
    root: Option<Node>,
    size: Size,
}

/// How many values there are, and how many bytes of text in them.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.bytes += other.bytes;
    }
}

/// A list or section whose end has not come yet.
struct Open {
    at: Place,
    anchor: usize,
    depth: usize,
    size: Size,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, waiting: Option<Key>, merged: Vec<Node> },
}

/// A finished node with the levels in it and its size.
#[derive(Clone)]
struct Measured {
    node: Node,
    depth: usize,
    size: Size,
}

impl<'a> Builder<'a> {
    pub(super) fn new(problems: &'a mut Vec<Problem>) -> Self {
        Self { problems, open: Vec::new(), anchors: BTreeMap::new(), root: None, size: Size::default() }
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(super) fn has_document(&self) -> bool {
        self.root.is_some()
    }

    /// The tree, or nothing if the document is empty.
    pub(super) fn finish(self) -> Option<Node> {
        let Self { problems, root, .. } = self;
        let empty = |node: &Node| matches!(&node.content, Content::Scalar(scalar) if scalar.is_null());
        let root = root.filter(|node| !empty(node));
        if root.is_none() {
            problems.push(Problem {
                path: String::new(),
                line: Place::START.line,
                column: Place::START.column,
                found: "an empty file".into(),
                expected: "a pipeline".into(),
                hint: "`urutau init` writes one to begin with.".into(),
                code: Code::EmptyFile,
            });
        }
        root
    }

    /// Takes one event. Says whether there is any sense in going on.
    pub(super) fn take(&mut self, event: Event<'_>, at: Place) -> bool {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !tag.as_deref().is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                self.check_tag(tag.as_deref(), at);
                let size = Size { nodes: 1, bytes: text.len() };
                let content = Content::Scalar(Scalar { text: text.into_owned(), plain, written: None });
                self.size += size;
                self.finished(Measured { node: Node { at, content }, depth: 0, size }, anchor, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), at);
                self.begin(at, anchor, Body::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), at);
                self.begin(at, anchor, Body::Map { entries: Vec::new(), waiting: None, merged: Vec::new() })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(target) => {
                    self.size += target.size;
                    self.finished(target, 0, at)
                }
                None => {
                    let hint = "An alias can only repeat what is complete before it.";
                    self.complain(
                        Code::YamlFeature,
                        at,
                        "an alias inside of what it repeats",
                        "an anchor (`&name`) before it",
                        hint,
                    );
                    self.finished(broken(at), 0, at)
                }
            },
            Event::UnresolvedAlias(name) => {
                let found = format!("the alias `*{name}`");
                let hint = format!("Mark what it repeats with `&{name}`, or put it in quotes if the asterisk is meant.");
                self.complain(Code::UnknownAnchor, at, &found, "an alias with an anchor before it", &hint);
                self.finished(broken(at), 0, at)
            }
            _ => true,
        }
    }

    fn begin(&mut self, at: Place, anchor: usize, body: Body) -> bool {
        let size = Size { nodes: 1, bytes: 0 };
        self.size += size;
        self.open.push(Open { at, anchor, depth: 0, size, body });
        true
    }

    fn end(&mut self) -> bool {
        let Some(open) = self.open.pop() else { return true };
        let content = match open.body {
            Body::List(items) => Content::List(items),
            Body::Map { entries, merged, .. } => Content::Map(self.merge(entries, merged)),
        };
        let node = Node { at: open.at, content };
        self.finished(Measured { node, depth: open.depth + 1, size: open.size }, open.anchor, open.at)
    }

    /// Puts a finished value where it belongs. `at` is where it is mentioned, which is not where it stands if an alias does.
    fn finished(&mut self, value: Measured, anchor: usize, at: Place) -> bool {
        let Size { nodes, bytes } = self.size;
        if nodes > NODES_MAX || bytes > TEXT_BYTES_MAX || self.open.len() + value.depth > DEPTH_MAX {
            let expected = format!("at most {NODES_MAX} values, {TEXT_BYTES_MAX} bytes of text and {DEPTH_MAX} levels");
            self.complain(Code::YamlFeature, at, "a file that its aliases make too large", &expected, "");
            return false;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let Some(mut parent) = self.open.pop() else {
            self.root = Some(value.node);
            return true;
        };
        let mut twice = None;
        parent.depth = parent.depth.max(value.depth);
        parent.size += value.size;
        match &mut parent.body {
            Body::List(items) => items.push(value.node),
            Body::Map { entries, waiting, merged } => match waiting.take() {
                None => *waiting = Some(self.key(value.node)),
                Some(key) if key.name == MERGE => merged.push(value.node),
                Some(key) => match entries.iter().find(|(other, _)| other.name == key.name && !key.name.is_empty()) {
                    Some((first, _)) => twice = Some((key, first.at.line)),
                    None => entries.push((key, value.node)),
                },
            },
        }
        self.open.push(parent);
        if let Some((key, first_line)) = twice {
            self.twice(&key, first_line);
        }
        true
    }

    /// A value as the name of a field.
    fn key(&mut self, node: Node) -> Key {
        match node.content {
            Content::Scalar(scalar) => Key { name: scalar.text, at: node.at },
            Content::Broken => Key { name: String::new(), at: node.at },
            Content::List(_) | Content::Map(_) => {
                self.complain(Code::YamlFeature, node.at, "a list or a section as the name of a field", "a text", "");
                Key { name: String::new(), at: node.at }
            }
        }
    }

    /// The entries of a section with those that `<<` brings in: what stands in the section itself wins, then what was merged first.
    fn merge(&mut self, mut entries: Vec<(Key, Node)>, merged: Vec<Node>) -> Vec<(Key, Node)> {
        entries.retain(|(key, _)| !key.name.is_empty());
        for node in merged {
            let parts = match node.content {
                Content::List(parts) => parts,
                _ => vec![node],
            };
            for part in parts {
                match part.content {
                    Content::Map(more) => {
                        for (key, value) in more {
                            if !entries.iter().any(|(other, _)| other.name == key.name) {
                                entries.push((key, value));
                            }
                        }
                    }
                    Content::Broken => {}
                    Content::Scalar(_) | Content::List(_) => {
                        let hint = "`<<: *name` takes over the fields of the section that is marked `&name`.";
                        self.complain(
                            Code::YamlFeature,
                            part.at,
                            "something else than a section below `<<`",
                            "a section or a list of them",
                            hint,
                        );
                    }
                }
            }
        }
        entries
    }

    fn twice(&mut self, key: &Key, first_line: usize) {
        let found = format!("`{}` a second time", shorten(&key.name));
        let hint = format!("The first one is in line {first_line}; remove one of the two.");
        let mut path = self.path();
        path.enter(&key.name);
        self.complain_at(&path, Code::DuplicateField, key.at, &found, "each field once in its section", &hint);
    }

    fn check_tag(&mut self, tag: Option<&Tag>, at: Place) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            let found = format!("the tag `{}`", shorten(&tag.original()));
            self.complain(Code::YamlFeature, at, &found, "a value without a tag", "Remove the tag.");
        }
    }

    /// Where the next value will stand.
    fn path(&self) -> Path {
        let mut path = Path::default();
        for open in &self.open {
            match &open.body {
                Body::List(items) => path.enter_item(items.len()),
                Body::Map { waiting: Some(key), .. } => path.enter(&key.name),
                Body::Map { waiting: None, .. } => {}
            }
        }
        path
    }

    fn complain(&mut self, code: Code, at: Place, found: &str, expected: &str, hint: &str) {
        let path = self.path();
        self.complain_at(&path, code, at, found, expected, hint);
    }

    fn complain_at(&mut self, path: &Path, code: Code, at: Place, found: &str, expected: &str, hint: &str) {
        self.problems.push(Problem {
            path: path.to_string(),
            line: at.line,
            column: at.column,
            found: found.to_owned(),
            expected: expected.to_owned(),
            hint: hint.to_owned(),
            code,
        });
    }
}

/// The name that takes over the fields of other sections.
const MERGE: &str = "<<";

fn broken(at: Place) -> Measured {
    Measured { node: Node { at, content: Content::Broken }, depth: 0, size: Size { nodes: 1, bytes: 0 } }
}

/// A name as it can be shown: never longer than a line.
fn shorten(name: &str) -> String {
    crate::shown::printable(name)
}
