//! The file after it was read by the field table: values of the right shape, defaults filled in, each with its place.

use std::fmt;

use crate::column_type::ColumnType;
use crate::duration::Duration;
use crate::field::Field;
use crate::problem::Place;
use crate::shown::printable;
use crate::size::Size;

/// A section. What is neither there nor has a default is missing from it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) at: Place,
    pub(crate) path: String,
    /// The kind of a source or sink, also one that is not built.
    pub(crate) kind: Option<&'static str>,
    pub(crate) entries: Vec<Entry>,
}

/// A field with its value.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) field: &'static Field,
    pub(crate) at: Place,
    pub(crate) path: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Who said it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    File,
    Variable,
    Default,
}

/// A value of the right shape.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Shadowed),
    Bool(bool),
    Number(u64),
    Duration(Duration),
    Size(Size),
    Word(&'static str),
    ColumnType(ColumnType),
    Section(Section),
    Sections(Vec<Section>),
    Names(Vec<Name>),
    Texts(Vec<(String, Shadowed)>),
    Casts(Vec<Cast>),
    Filter(Section),
    Filters(Vec<Section>),
    Literal(Vec<Literal>, Many),
    /// It is there, but has been complained about.
    Broken,
}

/// One literal or a list of them, as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Many {
    One,
    List,
}

/// A text with what may be shown of it.
#[derive(Clone)]
pub(crate) struct Shadowed {
    pub(crate) text: String,
    /// What is shown in its place, if it must not be shown itself.
    pub(crate) shown: Option<String>,
}

/// A name that stands in the file: of a column, a table.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) value: Shadowed,
    pub(crate) at: Place,
    pub(crate) path: String,
}

/// A column and the type that it is cast to.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    pub(crate) column: Name,
    pub(crate) to: ColumnType,
}

/// What a column is compared with.
#[derive(Clone)]
pub struct Literal {
    pub(crate) kind: LiteralKind,
    pub(crate) value: Shadowed,
}

/// How a literal was written, which must fit the column's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LiteralKind {
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// Anything else, or in quotes.
    Text,
}

impl Literal {
    /// How it was written.
    pub fn kind(&self) -> LiteralKind {
        self.kind
    }

    /// Its text, for numbers the digits as they were written.
    pub fn text(&self) -> &str {
        &self.value.text
    }

    /// Does a part of it come from a variable or a file, so that it must not be shown?
    pub(crate) fn is_from_outside(&self) -> bool {
        self.value.shown.is_some()
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?})", self.kind, self.value)
    }
}

impl From<&str> for Shadowed {
    /// A text that may be shown.
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), shown: None }
    }
}

impl Name {
    /// The name.
    pub(crate) fn text(&self) -> &str {
        &self.value.text
    }

    /// What may be shown of it, on one line and in quotes.
    pub(crate) fn shown(&self) -> String {
        format!("`{}`", printable(self.value.shown.as_deref().unwrap_or(&self.value.text)))
    }
}

impl fmt::Debug for Shadowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown.as_deref().unwrap_or(&self.text), f)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.path, self.value)
    }
}

impl Section {
    /// The entry of a field.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.field.name == name)
    }

    /// The entry of a field, if the file or a variable gives it.
    pub(crate) fn given(&self, name: &str) -> Option<&Entry> {
        self.entry(name).filter(|entry| entry.origin != Origin::Default)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &self.entry(name)?.value {
            Value::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// A text with its place.
    pub(crate) fn name(&self, name: &str) -> Option<Name> {
        let entry = self.entry(name)?;
        match &entry.value {
            Value::Text(text) => Some(Name { value: text.clone(), at: entry.at, path: entry.path.clone() }),
            _ => None,
        }
    }

    pub(crate) fn word(&self, name: &str) -> Option<&'static str> {
        match self.entry(name)?.value {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn bool(&self, name: &str) -> Option<bool> {
        match self.entry(name)?.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.entry(name)?.value {
            Value::Number(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        match self.entry(name)?.value {
            Value::Duration(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn size(&self, name: &str) -> Option<Size> {
        match self.entry(name)?.value {
            Value::Size(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn column_type(&self, name: &str) -> Option<&ColumnType> {
        match &self.entry(name)?.value {
            Value::ColumnType(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        match &self.entry(name)?.value {
            Value::Section(section) | Value::Filter(section) => Some(section),
            _ => None,
        }
    }

    pub(crate) fn sections(&self, name: &str) -> Option<&[Section]> {
        match &self.entry(name)?.value {
            Value::Sections(sections) | Value::Filters(sections) => Some(sections),
            _ => None,
        }
    }

    pub(crate) fn names(&self, name: &str) -> Option<&[Name]> {
        match &self.entry(name)?.value {
            Value::Names(names) => Some(names),
            _ => None,
        }
    }

    pub(crate) fn casts(&self, name: &str) -> Option<&[Cast]> {
        match &self.entry(name)?.value {
            Value::Casts(casts) => Some(casts),
            _ => None,
        }
    }

    pub(crate) fn literals(&self, name: &str) -> Option<(&[Literal], Many)> {
        match &self.entry(name)?.value {
            Value::Literal(literals, many) => Some((literals, *many)),
            _ => None,
        }
    }
}
