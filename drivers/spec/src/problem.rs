//! What is wrong with a pipeline file: every problem with its place, what was found, what is accepted and a way out.

use std::fmt;

use serde::Serialize;

/// A line and a column of the file, both counted from 1; line 0 is the file as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// The file as a whole: it could not be read.
    pub(crate) const WHOLE_FILE: Self = Self { line: 0, column: 0 };
    /// Its first character.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// One thing that is wrong. No text in it ever holds a secret or a value that came from outside the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The field, for example `tables[1].primaryKey`; empty if it is about the file.
    pub path: String,
    /// The line, from 1; 0 if the file could not be read at all.
    pub line: usize,
    /// The column in characters, from 1; 0 if the file could not be read at all.
    pub column: usize,
    /// What stands there, as the object of "found".
    pub found: String,
    /// What is accepted, as the object of "expected".
    pub expected: String,
    /// A way out, as a sentence; may be empty.
    pub hint: String,
    /// Which kind of problem it is.
    pub code: Code,
}

/// All problems of one file, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problems {
    file: String,
    list: Vec<Problem>,
}

impl Problems {
    pub(crate) fn new(file: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by(|a, b| (a.line, a.column, &a.path).cmp(&(b.line, b.column, &b.path)));
        list.dedup();
        Self { file: file.to_owned(), list }
    }

    /// The file's name as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The problems, at least one.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }
}

/// One problem a line, as `file:line:column: field: found ..., expected ... [code]`, its hint on a line below, and a count.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.list {
            write!(f, "{}:", self.file)?;
            if problem.line > 0 {
                write!(f, "{}:{}:", problem.line, problem.column)?;
            }
            if !problem.path.is_empty() {
                write!(f, " {}:", problem.path)?;
            }
            writeln!(f, " found {}, expected {} [{}]", problem.found, problem.expected, problem.code)?;
            if !problem.hint.is_empty() {
                writeln!(f, "    {}", problem.hint)?;
            }
        }
        let count = self.list.len();
        write!(f, "{count} problem{} in {}", if count == 1 { "" } else { "s" }, self.file)
    }
}

impl std::error::Error for Problems {}

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $variant:ident = $text:literal,)+) => {
        /// Which kind of problem it is: a stable word, with a line in the reference.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        pub enum Code {
            $($(#[doc = $meaning])+ #[serde(rename = $text)] $variant,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)+ }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> String {
                match self { $(Code::$variant => concat!($($meaning),+).trim().to_owned(),)+ }
            }
        }
    };
}

codes! {
    /// The file cannot be read, or is too large to be a pipeline file.
    UnreadablePipeline = "unreadable-pipeline",
    /// The file is not text in UTF-8.
    NotUtf8 = "not-utf8",
    /// The file holds nothing.
    EmptyFile = "empty-file",
    /// The file is not YAML.
    YamlSyntax = "yaml-syntax",
    /// A tab stands where YAML wants spaces.
    YamlTab = "yaml-tab",
    /// The file is YAML, but uses a part of it that a pipeline file does not: tags, keys that are not text, nesting without end.
    YamlFeature = "yaml-feature",
    /// An alias (`*name`) has no anchor (`&name`) before it.
    UnknownAnchor = "unknown-anchor",
    /// The file holds more than one YAML document.
    SeveralDocuments = "several-documents",
    /// A field stands twice in one section.
    DuplicateField = "duplicate-field",
    /// No field has this name.
    UnknownField = "unknown-field",
    /// The field exists, but not for this kind of source or sink.
    FieldOfAnotherKind = "field-of-another-kind",
    /// A field that must be there is not.
    MissingField = "missing-field",
    /// The field is there, but has no value.
    EmptyValue = "empty-value",
    /// The value is of another sort: a list for a text, a text for a number.
    WrongType = "wrong-type",
    /// The field or the value is known, but this version of urutau cannot do it.
    NotBuilt = "not-built",
    /// The value is none of the words that are accepted here.
    UnknownWord = "unknown-word",
    /// The number is not one, or out of range.
    BadNumber = "bad-number",
    /// The duration is not one, or out of range.
    BadDuration = "bad-duration",
    /// The size is not one, or out of range.
    BadSize = "bad-size",
    /// The column type is not one.
    BadColumnType = "bad-column-type",
    /// The text cannot be a name of this sort.
    BadName = "bad-name",
    /// The row filter is not one.
    BadFilter = "bad-filter",
    /// A `${...}` is not one that can be replaced.
    BadReplacement = "bad-replacement",
    /// `${env:NAME}` names a variable that is not set, or not text.
    UnsetVariable = "unset-variable",
    /// `${file:PATH}` names a file that cannot be read as text.
    UnreadableFile = "unreadable-file",
    /// Two fields contradict each other, or one needs another.
    Conflict = "conflict",
    /// Two tables have the same source or the same target.
    DuplicateTable = "duplicate-table",
    /// A name stands twice in a list of names that differ.
    DuplicateName = "duplicate-name",
    /// A name that urutau keeps for itself.
    ReservedName = "reserved-name",
    /// A fault in urutau itself, not in the file. Please report it.
    Internal = "internal",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
