//! What a field is: the vocabulary in which `fields` describes the pipeline file, once.
//!
//! One description serves everybody: the reader checks a file by it, the JSON Schema and the reference page are made from
//! it, and the defaults are read from it as if they stood in the file.

use crate::problem::Code;

/// One field of a section.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Another name that is accepted too.
    pub(crate) alias: Option<&'static str>,
    pub(crate) shape: Shape,
    pub(crate) need: Need,
    pub(crate) built: Built,
    /// The kinds of source or sink that have this field; all if empty. A name may come twice, for different kinds.
    pub(crate) kinds: &'static [&'static str],
    /// The variable that gives the value where the file does not.
    pub(crate) variable: Option<&'static str>,
    /// The default of the Go system, where it is another one.
    pub(crate) go_default: Option<&'static str>,
    /// What it is for, in a sentence.
    pub(crate) meaning: &'static str,
}

/// Whether a field must be there, and what holds where it is not.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    Required,
    /// The words say what happens without it.
    Optional(&'static str),
    /// As if this stood there.
    Default(&'static str),
    /// As if this stood there: the first for the kinds that are named with it, else the other.
    DefaultByKind(&'static [(&'static [&'static str], &'static str)], &'static str),
}

/// Whether this version can do it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Built {
    Yes,
    /// The field is known and refused.
    NotYet,
    /// The field is known and refused, unless it says what holds anyway.
    Only(&'static str),
}

/// What a value looks like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Text(Text),
    Bool,
    Number {
        least: u64,
        most: u64,
    },
    Duration(Zero),
    Size,
    Word(&'static [Word]),
    ColumnType,
    Section(&'static [Field]),
    /// A list of sections.
    Sections(&'static [Field]),
    /// A list of names, at least one.
    Names,
    /// Any names with texts.
    Texts {
        secret: bool,
    },
    /// Column names with the types that they are cast to.
    Casts,
    /// A condition on rows.
    Filter,
    /// A list of conditions, at least one.
    Filters,
    /// What a condition compares with: a text, a number, a boolean, or a list of them.
    Literal,
}

/// May a duration be zero?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Allowed,
    Refused,
}

/// A text.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    /// What it is, as the object of "expected".
    pub(crate) what: &'static str,
    pub(crate) secrecy: Secrecy,
    pub(crate) form: Form,
}

/// May the text be shown?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Open,
    /// An address, which may hold a password.
    Address,
    Secret,
}

/// What the text must look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It must not be empty.
    Any,
    /// It becomes part of the name of a table.
    PipelineName,
    /// A PostgreSQL replication slot or publication.
    SlotName,
    /// One name or more, with dots between them.
    Namespace,
    /// A table's name, also as the name of a file or folder.
    Target,
}

/// One of the words that a field accepts.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    /// Another word for the same.
    pub(crate) alias: Option<&'static str>,
    pub(crate) built: bool,
    pub(crate) meaning: &'static str,
}

/// A field with nothing special about it: optional, built, for all kinds.
pub(crate) const fn field(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field {
        name,
        alias: None,
        shape,
        need: Need::Optional(""),
        built: Built::Yes,
        kinds: &[],
        variable: None,
        go_default: None,
        meaning,
    }
}

impl Field {
    pub(crate) const fn or(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }

    /// What happens without it.
    pub(crate) const fn without(mut self, words: &'static str) -> Self {
        self.need = Need::Optional(words);
        self
    }

    pub(crate) const fn default(mut self, value: &'static str) -> Self {
        self.need = Need::Default(value);
        self
    }

    pub(crate) const fn default_by_kind(
        mut self,
        of_kinds: &'static [(&'static [&'static str], &'static str)],
        otherwise: &'static str,
    ) -> Self {
        self.need = Need::DefaultByKind(of_kinds, otherwise);
        self
    }

    pub(crate) const fn of(mut self, kinds: &'static [&'static str]) -> Self {
        self.kinds = kinds;
        self
    }

    pub(crate) const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    pub(crate) const fn go_default(mut self, value: &'static str) -> Self {
        self.go_default = Some(value);
        self
    }

    pub(crate) const fn not_yet(mut self) -> Self {
        self.built = Built::NotYet;
        self
    }

    pub(crate) const fn only(mut self, value: &'static str) -> Self {
        self.built = Built::Only(value);
        self
    }

    /// Does a source or sink of this kind have the field? All do while the kind is not known.
    pub(crate) fn belongs_to(&self, kind: Option<&str>) -> bool {
        self.kinds.is_empty() || kind.is_none_or(|kind| self.kinds.contains(&kind))
    }

    /// The text that stands in for a missing value.
    pub(crate) fn default_for(&self, kind: Option<&str>, compat_go: bool) -> Option<&'static str> {
        if let (true, Some(value)) = (compat_go, self.go_default) {
            return Some(value);
        }
        match self.need {
            Need::Required | Need::Optional(_) => None,
            Need::Default(value) => Some(value),
            Need::DefaultByKind(of_kinds, otherwise) => {
                let own = of_kinds.iter().find(|(kinds, _)| kind.is_some_and(|kind| kinds.contains(&kind)));
                Some(own.map_or(otherwise, |(_, value)| *value))
            }
        }
    }
}

impl Word {
    pub(crate) fn is_called(&self, text: &str) -> bool {
        self.name == text || self.alias == Some(text)
    }
}

/// A word that is accepted.
pub(crate) const fn word(name: &'static str, meaning: &'static str) -> Word {
    Word { name, alias: None, built: true, meaning }
}

impl Word {
    pub(crate) const fn or(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    pub(crate) const fn not_yet(mut self) -> Self {
        self.built = false;
        self
    }
}

/// A text that may be shown.
pub(crate) const fn text(what: &'static str) -> Shape {
    Shape::Text(Text { what, secrecy: Secrecy::Open, form: Form::Any })
}

/// An address, whose passwords are not shown.
pub(crate) const fn address(what: &'static str) -> Shape {
    Shape::Text(Text { what, secrecy: Secrecy::Address, form: Form::Any })
}

/// A text that is never shown.
pub(crate) const fn secret(what: &'static str) -> Shape {
    Shape::Text(Text { what, secrecy: Secrecy::Secret, form: Form::Any })
}

/// A name of some form.
pub(crate) const fn name(what: &'static str, form: Form) -> Shape {
    Shape::Text(Text { what, secrecy: Secrecy::Open, form })
}

impl Shape {
    /// What is accepted, as the object of "expected".
    pub(crate) fn expected(self) -> String {
        match self {
            Shape::Text(text) => text.what.to_owned(),
            Shape::Bool => "true or false".into(),
            Shape::Number { least, most: u64::MAX } => format!("a whole number, at least {least}"),
            Shape::Number { least, most } => format!("a whole number from {least} to {most}"),
            Shape::Duration(_) => crate::duration::EXPECTED.into(),
            Shape::Size => crate::size::EXPECTED.into(),
            Shape::Word(words) => one_of(words.iter().filter(|word| word.built).map(|word| word.name)),
            Shape::ColumnType => crate::column_type::EXPECTED.into(),
            Shape::Section(_) => "a section".into(),
            Shape::Sections(_) => "a list of sections".into(),
            Shape::Names => "a list of names".into(),
            Shape::Texts { .. } => "a section of names and texts".into(),
            Shape::Casts => "a section of column names and types".into(),
            Shape::Filter => "a condition: a section with one of all, any, not, where".into(),
            Shape::Filters => "a list of conditions".into(),
            Shape::Literal => "a text, a number, true or false, or a list of them".into(),
        }
    }

    /// The kind of problem that a value has which cannot be read.
    pub(crate) fn code(self) -> Code {
        match self {
            Shape::Number { .. } => Code::BadNumber,
            Shape::Duration(_) => Code::BadDuration,
            Shape::Size => Code::BadSize,
            Shape::Word(_) => Code::UnknownWord,
            Shape::ColumnType | Shape::Casts => Code::BadColumnType,
            Shape::Filter | Shape::Filters | Shape::Literal => Code::BadFilter,
            Shape::Text(_) | Shape::Names => Code::BadName,
            Shape::Bool | Shape::Section(_) | Shape::Sections(_) | Shape::Texts { .. } => Code::WrongType,
        }
    }

    /// The fields below this one.
    pub(crate) fn fields(self) -> Option<&'static [Field]> {
        match self {
            Shape::Section(fields) | Shape::Sections(fields) => Some(fields),
            _ => None,
        }
    }
}

/// Words in a row.
pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => "nothing yet".into(),
        [only] => format!("`{only}`"),
        names => format!("one of {}", names.join(", ")),
    }
}

impl Form {
    /// What is wrong with the text, if anything.
    pub(crate) fn fault(self, text: &str) -> Option<&'static str> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        match self {
            _ if text.is_empty() => Some(""),
            Form::Any => None,
            Form::PipelineName => {
                let good =
                    text.starts_with(plain) && text.chars().all(|c| plain(c) || matches!(c, '-' | '_')) && text.len() <= 50;
                (!good).then_some(
                    "It becomes part of a table's name: at most 50 lower-case letters, digits, `-` and `_`, a letter or \
            digit first.",
                )
            }
            Form::SlotName => {
                let good = text.chars().all(|c| plain(c) || c == '_') && text.len() <= 63;
                (!good).then_some("PostgreSQL accepts at most 63 lower-case letters, digits and underscores.")
            }
            Form::Namespace => text
                .split('.')
                .any(|part| !is_file_name(part))
                .then_some("It is one name or more with dots between them, none of them empty, none with a slash."),
            Form::Target => (!is_file_name(text)).then_some(
                "It also names a folder or a file: no slash or backslash, no control character, not `.` or `..`, at \
            most 200 bytes.",
            ),
        }
    }

    /// The same as a regular expression, as far as one can say it.
    pub(crate) fn pattern(self) -> Option<&'static str> {
        match self {
            Form::Any => None,
            Form::PipelineName => Some("^[a-z0-9][a-z0-9_-]{0,49}$"),
            Form::SlotName => Some("^[a-z0-9_]{1,63}$"),
            Form::Namespace => Some(r"^[^./\\]+(\.[^./\\]+)*$"),
            Form::Target => Some(r"^[^/\\]+$"),
        }
    }
}

fn is_file_name(text: &str) -> bool {
    let bad = |c: char| c.is_control() || matches!(c, '/' | '\\');
    !text.is_empty() && text.len() <= 200 && !text.contains(bad) && !matches!(text, "." | "..")
}
