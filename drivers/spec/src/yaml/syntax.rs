//! What the YAML parser complains about, in the words of somebody who wants to mend a file.

use granit_parser::{ErrorKind, ScanError};

use crate::problem::{Code, Problem};

pub(super) fn problem(error: &ScanError) -> Problem {
    let (code, found, expected, hint) = words(error.kind());
    Problem {
        path: String::new(),
        line: error.marker().line().max(1),
        column: error.marker().col() + 1,
        found: found.unwrap_or_else(|| format!("text that is not YAML ({})", error.kind())),
        expected: expected.into(),
        hint: hint.into(),
        code,
    }
}

/// The mistakes that people make; the parser's own words say the rest.
fn words(kind: &ErrorKind) -> (Code, Option<String>, &'static str, &'static str) {
    let said = |found: &str| Some(found.to_owned());
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => {
            (Code::YamlTab, said("a tab"), "spaces", "YAML indents with spaces only; set your editor to write spaces.")
        }
        ErrorKind::UnclosedQuotedScalar => (
            Code::YamlSyntax,
            said("the end of the file inside a quoted text"),
            "its closing quote",
            "Look for the quote that is left open.",
        ),
        ErrorKind::UnclosedFlowCollection { open } => (
            Code::YamlSyntax,
            Some(format!("a `{open}` that is not closed")),
            "its counterpart",
            "Look for the bracket that is left open.",
        ),
        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => (
            Code::YamlSyntax,
            said("the end of the file inside brackets"),
            "the closing `]` or `}`",
            "Look for the bracket that is left open.",
        ),
        ErrorKind::ExpectedFlowMappingSeparator => (
            Code::YamlSyntax,
            said("something else"),
            "`,` or `}`",
            "Between the entries of `{ ... }` stand commas; a text with special characters is put in quotes.",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            Code::YamlSyntax,
            said("something else"),
            "`,` or `]`",
            "Between the entries of `[ ... ]` stand commas; a text with special characters is put in quotes.",
        ),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            (Code::YamlSyntax, Some(format!("`{close}` for the `{open}` before it")), "matching brackets", "")
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            (Code::YamlSyntax, said("a closing bracket without an opening one"), "matching brackets", "")
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            Code::YamlSyntax,
            said("a colon that cannot stand here"),
            "`name: value`",
            "A text that holds `: ` is put in quotes; fields of one section are indented alike.",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            Code::YamlSyntax,
            said("a line without a colon"),
            "`name: value`",
            "Each line of a section is a name, a colon, a space and a value.",
        ),
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::InvalidIndentation => (
            Code::YamlSyntax,
            said("a line that is indented unlike its neighbours"),
            "the fields of one section below each other",
            "Indent all fields of one section by the same number of spaces.",
        ),
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::ExpectedBlockSequenceEntry => (
            Code::YamlSyntax,
            said("a `- ` that cannot stand here"),
            "a list below its field's name",
            "Each entry of a list stands on a line of its own, indented alike.",
        ),
        ErrorKind::UnexpectedCharacter { character } => (
            Code::YamlSyntax,
            Some(format!("the character `{}`", character.escape_debug())),
            "a value",
            "A text that begins with one of the characters @ ` % is put in quotes.",
        ),
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape | ErrorKind::InvalidUnicodeEscape => (
            Code::YamlSyntax,
            said("a backslash that begins nothing known"),
            "an escape such as `\\n`",
            "In double quotes a backslash is written twice; in single quotes it stands for itself.",
        ),
        ErrorKind::RecursionLimitExceeded => {
            (Code::YamlFeature, said("brackets or sections inside each other without end"), "a pipeline", "")
        }
        _ => (Code::YamlSyntax, None, "YAML", ""),
    }
}
