//! Walks the tree by the field table: every field is known and of the right shape, or a problem; defaults are filled in.
//!
//! Nothing here ends the walk. A value that is wrong becomes `Value::Broken`, so that nobody complains about it again.

mod scalar;
mod unknown;

use crate::environment::Environment;
use crate::field::{Built, Field, Need, Shape, Word};
use crate::path::Path;
use crate::problem::{Code, Place, Problem};
use crate::value::{Cast, Entry, Many, Name, Origin, Section, Value};
use crate::yaml::{Content, Key, Node, Scalar};

/// How a file is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Where variables are.
    pub(crate) environment: &'a dyn Environment,
    /// Do the defaults of the Go system hold?
    pub(crate) compat_go: bool,
    /// Is what is known but not built yet a problem? Only tests say no, to read files of tomorrow.
    pub(crate) refuse_not_built: bool,
}

/// Reads the whole file by the table of its fields.
pub(crate) fn read(fields: &'static [Field], node: &Node, reading: Reading<'_>, problems: &mut Vec<Problem>) -> Option<Section> {
    Reader { problems, reading, kind: None, path: Path::default() }.section(fields, node, node.at)
}

struct Reader<'a> {
    problems: &'a mut Vec<Problem>,
    reading: Reading<'a>,
    /// The kind of the source or sink that is being read, if it is known.
    kind: Option<&'static str>,
    path: Path,
}

impl Reader<'_> {
    /// A section, if it is one.
    fn section(&mut self, fields: &'static [Field], node: &Node, named_at: Place) -> Option<Section> {
        let entries = match &node.content {
            Content::Map(entries) => entries,
            Content::Broken => return None,
            Content::Scalar(scalar) if scalar.is_null() => {
                self.empty_value(named_at, "a section");
                return None;
            }
            Content::Scalar(_) | Content::List(_) => {
                let expected = format!("a section, whose fields are {}", names_of(fields, None).join(", "));
                let hint = "Write the fields below it, indented, or as `{ name: value }`.";
                self.complain(Code::WrongType, node.at, sort_of(node), &expected, hint);
                return None;
            }
        };
        Some(self.section_of(fields, entries, node.at))
    }

    fn section_of(&mut self, fields: &'static [Field], entries: &[(Key, Node)], at: Place) -> Section {
        let outer_kind = self.kind;
        if let Some(words) = kinds_of(fields) {
            self.kind = kind_in(entries, words, fields);
        }
        let kind = self.kind;
        let mut read: Vec<Entry> = Vec::new();
        let mut meant: Vec<(&'static Field, &Key)> = Vec::new();
        for (key, node) in entries {
            match self.field_called(fields, key) {
                Ok(field) => {
                    let entry = self.entry(field, key, node);
                    match read.iter().find(|other| other.field.name == entry.field.name) {
                        Some(first) => self.same_field_twice(first, &entry, key),
                        None => read.push(entry),
                    }
                }
                Err(nearest) => meant.extend(nearest.map(|field| (field, key))),
            }
        }
        for (field, key) in meant {
            if !read.iter().any(|entry| entry.field.name == field.name) {
                read.push(self.misspelt(field, key));
            }
        }
        self.fill(fields, at, &mut read);
        self.kind = outer_kind;
        Section { at, path: self.path.to_string(), kind, entries: read }
    }

    /// The field of that name, for the kind at hand. If there is none, that is a problem, and the field that was probably
    /// meant is the error.
    fn field_called(&mut self, fields: &'static [Field], key: &Key) -> Result<&'static Field, Option<&'static Field>> {
        let called = |field: &&Field| field.name == key.name || field.alias == Some(key.name.as_str());
        if let Some(field) = fields.iter().filter(called).find(|field| field.belongs_to(self.kind)) {
            return Ok(field);
        }
        let (problem, nearest) = match (fields.iter().find(called), self.kind) {
            (Some(field), Some(kind)) => (unknown::of_another_kind(field, fields, kind), None),
            _ => unknown::unknown(&key.name, fields, self.kind),
        };
        self.complain_in(&key.name, problem.code, key.at, &problem.found, &problem.expected, &problem.hint);
        Err(nearest)
    }

    /// A field whose name is misspelt is there, in a way: nobody needs to hear that it is missing, too.
    fn misspelt(&mut self, field: &'static Field, key: &Key) -> Entry {
        let path = self.inside(field.name, |reader| reader.path.to_string());
        Entry { field, at: key.at, path, value: Value::Broken, origin: Origin::File }
    }

    fn entry(&mut self, field: &'static Field, key: &Key, node: &Node) -> Entry {
        self.inside(&key.name, |reader| {
            let value =
                if field.built == Built::NotYet && reader.reading.refuse_not_built && !matches!(node.content, Content::Broken) {
                    reader.not_built(node.at_or(key), "a field that is known, but not built yet", "a file without it", "");
                    None
                } else {
                    reader.value(field.shape, node, key.at).filter(|value| reader.is_built(field, value, node))
                };
            Entry {
                field,
                at: node.at_or(key),
                path: reader.path.to_string(),
                value: value.unwrap_or(Value::Broken),
                origin: Origin::File,
            }
        })
    }

    /// A field that says only what holds anyway is no harm.
    fn is_built(&mut self, field: &Field, value: &Value, node: &Node) -> bool {
        let Built::Only(only) = field.built else { return true };
        if !self.reading.refuse_not_built {
            return true;
        }
        let says = match value {
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            _ => return true,
        };
        if says == only {
            return true;
        }
        self.not_built(node.at, &format!("`{says}`, which is known, but not built yet"), &format!("`{only}`"), "");
        false
    }

    /// `kind` and `type` are one field; they may stand there both only if they agree.
    fn same_field_twice(&mut self, first: &Entry, second: &Entry, key: &Key) {
        let agree = matches!((&first.value, &second.value), (Value::Word(one), Value::Word(other)) if one == other);
        let broken = matches!(first.value, Value::Broken) || matches!(second.value, Value::Broken);
        if !agree && !broken {
            let found = format!("`{}` beside a different `{}`", key.name, first.path.rsplit('.').next().unwrap_or_default());
            let hint = format!("Both mean the same; remove one. The other is in line {}.", first.at.line);
            self.complain_in(&key.name, Code::Conflict, key.at, &found, "one of them", &hint);
        }
    }

    /// Adds what a variable or a default says, and complains about what must be there and is not.
    fn fill(&mut self, fields: &'static [Field], at: Place, read: &mut Vec<Entry>) {
        for field in fields {
            let unsure = self.kind.is_none() && !field.kinds.is_empty();
            if unsure || !field.belongs_to(self.kind) || read.iter().any(|entry| entry.field.name == field.name) {
                continue;
            }
            let filled = self.inside(field.name, |reader| reader.missing(field, at));
            read.extend(filled);
        }
    }

    fn missing(&mut self, field: &'static Field, at: Place) -> Option<Entry> {
        let from = |reader: &mut Self, scalar: Scalar, origin: Origin| {
            let node = Node { at, content: Content::Scalar(scalar) };
            let value = reader.value(field.shape, &node, at).unwrap_or(Value::Broken);
            Some(Entry { field, at, path: reader.path.to_string(), value, origin })
        };
        if let Some((name, value)) =
            field.variable.and_then(|name| Some((name, self.reading.environment.variable(name)?.into_string().ok()?)))
        {
            let written = Some(format!("${{env:{name}}}"));
            return from(self, Scalar { text: value, plain: true, written }, Origin::Variable);
        }
        if let Some(default) = field.default_for(self.kind, self.reading.compat_go) {
            let before = self.problems.len();
            let entry = from(self, Scalar { text: default.to_owned(), plain: true, written: None }, Origin::Default);
            for problem in &mut self.problems[before..] {
                problem.hint = "`compat: go` makes it so; give the field a value to choose another.".into();
            }
            return entry;
        }
        match (field.need, field.shape) {
            (Need::Required, shape) => {
                let hint = match field.variable {
                    Some(variable) => format!("{} The variable {variable} is used where the file has none.", field.meaning),
                    None => field.meaning.to_owned(),
                };
                self.complain(Code::MissingField, at, "nothing", &shape.expected(), &hint);
                None
            }
            (Need::Optional(""), Shape::Section(fields)) => {
                let section = self.section_of(fields, &[], at);
                Some(Entry { field, at, path: section.path.clone(), value: Value::Section(section), origin: Origin::Default })
            }
            _ => None,
        }
    }

    /// A value of that shape, if it is one.
    fn value(&mut self, shape: Shape, node: &Node, named_at: Place) -> Option<Value> {
        match shape {
            Shape::Section(fields) => self.section(fields, node, named_at).map(Value::Section),
            Shape::Sections(fields) => {
                let items = self.items(node, named_at, shape)?;
                let sections = self.each(items, |reader, item| reader.section(fields, item, item.at));
                (sections.len() == items.len()).then_some(Value::Sections(sections))
            }
            Shape::Filter => self.section(crate::fields::FILTER, node, named_at).map(Value::Filter),
            Shape::Filters => {
                let items = self.some_items(node, named_at, shape)?;
                let sections = self.each(items, |reader, item| reader.section(crate::fields::FILTER, item, item.at));
                (sections.len() == items.len()).then_some(Value::Filters(sections))
            }
            Shape::Names => {
                let items = self.some_items(node, named_at, shape)?;
                let names = self.each(items, Self::name);
                (names.len() == items.len()).then_some(Value::Names(names))
            }
            Shape::Texts { secret } => self.texts(node, named_at, secret),
            Shape::Casts => self.casts(node, named_at),
            Shape::Literal => match &node.content {
                Content::List(_) => {
                    let items = self.some_items(node, named_at, shape)?;
                    let literals = self.each(items, |reader, item| reader.literal(item, item.at));
                    (literals.len() == items.len()).then_some(Value::Literal(literals, Many::List))
                }
                _ => self.literal(node, named_at).map(|literal| Value::Literal(vec![literal], Many::One)),
            },
            _ => self.scalar_value(shape, node, named_at),
        }
    }

    /// The entries of a list.
    fn items<'n>(&mut self, node: &'n Node, named_at: Place, shape: Shape) -> Option<&'n [Node]> {
        match &node.content {
            Content::List(items) => Some(items),
            Content::Broken => None,
            Content::Scalar(scalar) if scalar.is_null() => {
                self.empty_value(named_at, &shape.expected());
                None
            }
            Content::Scalar(_) | Content::Map(_) => {
                let hint = match shape {
                    Shape::Names | Shape::Literal => "Write `[one]` or `[one, two]`.",
                    _ => "Each entry begins with `- ` on a line of its own.",
                };
                self.complain(Code::WrongType, node.at, sort_of(node), &shape.expected(), hint);
                None
            }
        }
    }

    /// The entries of a list, at least one.
    fn some_items<'n>(&mut self, node: &'n Node, named_at: Place, shape: Shape) -> Option<&'n [Node]> {
        let items = self.items(node, named_at, shape)?;
        if items.is_empty() {
            self.complain(
                Code::EmptyValue,
                node.at,
                "an empty list",
                &format!("{}, at least one", shape.expected()),
                "Remove the field if it is not meant.",
            );
            return None;
        }
        Some(items)
    }

    /// What `read` makes of each entry, without those that are broken.
    fn each<T>(&mut self, items: &[Node], mut read: impl FnMut(&mut Self, &Node) -> Option<T>) -> Vec<T> {
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            values.extend(self.inside_item(index, |reader| read(reader, item)));
        }
        values
    }

    fn name(&mut self, node: &Node) -> Option<Name> {
        let scalar = self.scalar(node, node.at, "a name")?;
        if scalar.text.is_empty() {
            self.complain(Code::BadName, node.at, "an empty text", "a name", "");
            return None;
        }
        Some(Name { value: scalar::shadowed(scalar, false), at: node.at, path: self.path.to_string() })
    }

    fn texts(&mut self, node: &Node, named_at: Place, secret: bool) -> Option<Value> {
        let entries = self.free_section(node, named_at, Shape::Texts { secret })?;
        let mut texts = Vec::new();
        for (key, value) in entries {
            texts.extend(self.inside(&key.name, |reader| {
                let scalar = reader.scalar(value, key.at, "a text")?;
                Some((key.name.clone(), scalar::shadowed(scalar, secret)))
            }));
        }
        (texts.len() == entries.len()).then_some(Value::Texts(texts))
    }

    fn casts(&mut self, node: &Node, named_at: Place) -> Option<Value> {
        let entries = self.free_section(node, named_at, Shape::Casts)?;
        let mut casts = Vec::new();
        for (key, value) in entries {
            casts.extend(self.inside(&key.name, |reader| {
                let to = reader.cast_type(value, key.at)?;
                let column = Name { value: key.name.as_str().into(), at: key.at, path: reader.path.to_string() };
                Some(Cast { column, to })
            }));
        }
        (casts.len() == entries.len()).then_some(Value::Casts(casts))
    }

    /// A section whose names are not ours.
    fn free_section<'n>(&mut self, node: &'n Node, named_at: Place, shape: Shape) -> Option<&'n [(Key, Node)]> {
        match &node.content {
            Content::Map(entries) => Some(entries),
            Content::Broken => None,
            Content::Scalar(scalar) if scalar.is_null() => {
                self.empty_value(named_at, &shape.expected());
                None
            }
            Content::Scalar(_) | Content::List(_) => {
                self.complain(Code::WrongType, node.at, sort_of(node), &shape.expected(), "Write `name: value` lines below it.");
                None
            }
        }
    }

    fn empty_value(&mut self, named_at: Place, expected: &str) {
        self.complain(Code::EmptyValue, named_at, "no value", expected, "Give it one, or remove the line.");
    }

    fn not_built(&mut self, at: Place, found: &str, expected: &str, hint: &str) {
        self.complain(Code::NotBuilt, at, found, expected, hint);
    }

    fn complain(&mut self, code: Code, at: Place, found: &str, expected: &str, hint: &str) {
        self.problems.push(Problem {
            path: self.path.to_string(),
            line: at.line,
            column: at.column,
            found: found.to_owned(),
            expected: expected.to_owned(),
            hint: hint.to_owned(),
            code,
        });
    }

    fn complain_in(&mut self, field: &str, code: Code, at: Place, found: &str, expected: &str, hint: &str) {
        self.inside(field, |reader| reader.complain(code, at, found, expected, hint));
    }

    fn inside<T>(&mut self, field: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.path.len();
        self.path.enter(field);
        let result = walk(self);
        self.path.truncate(outer);
        result
    }

    fn inside_item<T>(&mut self, index: usize, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.path.len();
        self.path.enter_item(index);
        let result = walk(self);
        self.path.truncate(outer);
        result
    }
}

impl Node {
    /// Where the value stands; where its field's name stands if there is no value to point at.
    fn at_or(&self, key: &Key) -> Place {
        match &self.content {
            Content::Scalar(scalar) if scalar.text.is_empty() && scalar.plain => key.at,
            _ => self.at,
        }
    }
}

/// The words for the kind, if the section has one.
fn kinds_of(fields: &'static [Field]) -> Option<&'static [Word]> {
    match fields.first().map(|field| (field.name, field.shape)) {
        Some(("kind", Shape::Word(words))) => Some(words),
        _ => None,
    }
}

/// The kind that a section says, before anything else of it is read.
fn kind_in(entries: &[(Key, Node)], words: &'static [Word], fields: &'static [Field]) -> Option<&'static str> {
    let mut said = entries.iter().filter(|(key, _)| matches!(key.name.as_str(), "kind" | "type")).peekable();
    if said.peek().is_none() {
        let default = fields.first().and_then(|field| field.default_for(None, false));
        return default;
    }
    said.find_map(|(_, node)| match &node.content {
        Content::Scalar(scalar) => words.iter().find(|word| word.is_called(&scalar.text)).map(|word| word.name),
        _ => None,
    })
}

/// What a value is, where it must not be shown.
fn sort_of(node: &Node) -> &'static str {
    match &node.content {
        Content::Scalar(_) => "a single value",
        Content::List(items) if items.is_empty() => "an empty list",
        Content::List(_) => "a list",
        Content::Map(_) => "a section",
        Content::Broken => "something broken",
    }
}

/// The names that a section accepts.
fn names_of(fields: &[Field], kind: Option<&str>) -> Vec<&'static str> {
    let accepted = fields.iter().filter(|field| field.belongs_to(kind) && field.built != Built::NotYet);
    let mut names: Vec<&str> = accepted.map(|field| field.name).collect();
    names.dedup();
    names
}
