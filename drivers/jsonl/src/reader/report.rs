//! What is wrong with a line or a row, in words: where it stands, what was expected and found, what to do. Never a value.

use std::path::Path;

use contract::{Error, Kind};
use kernel::id::TableName;

use super::batch::Refusal;
use crate::envelope::Malformed;
use crate::files::LINE_BYTES_MAX;

/// A place in a file, for people.
pub(crate) fn place(path: &Path, begin: u64, line: Option<u64>) -> String {
    match line {
        Some(line) => format!("{}, line {line} (byte {begin})", path.display()),
        None => format!("{}, the line at byte {begin}", path.display()),
    }
}

/// A line that cannot be read.
pub(crate) fn malformed(malformed: &Malformed, path: &Path, begin: u64, line: Option<u64>) -> Error {
    let code = match malformed {
        Malformed::Encoding { .. } => "jsonl-encoding",
        Malformed::Syntax { .. } => "jsonl-malformed",
        Malformed::NotAnEnvelope(_) => "jsonl-not-an-event",
        Malformed::UnknownOperation(_) => "jsonl-operation",
        Malformed::Schema(_) => "jsonl-schema-part",
    };
    poison(code, format!("{}: {malformed}", place(path, begin, line)))
}

/// A line that is too long to be read.
pub(crate) fn too_long(path: &Path, begin: u64, line: Option<u64>) -> Error {
    let what = format!("{}: longer than {} MiB, the most that is read", place(path, begin, line), LINE_BYTES_MAX >> 20);
    poison("jsonl-line-too-long", what)
}

/// The last line of a file that is not written any more.
pub(crate) fn unfinished(path: &Path, begin: u64, line: Option<u64>) -> Error {
    let what = format!("{}: the file ends in the middle of this line", place(path, begin, line));
    poison("jsonl-unfinished-line", what)
}

fn poison(code: &'static str, what: String) -> Error {
    let remedy = "correct or remove the line; or set 'source.onDecodeError: skip', which counts such lines and logs each";
    Error::new(Kind::Poison, code, what, remedy)
}

pub(super) fn refused(refusal: &Refusal, table: &TableName, path: &Path, begin: u64, line: Option<u64>) -> Error {
    let (code, what, remedy) = match refusal {
        Refusal::Value { column, expected, misfit } => {
            let inside = if misfit.path.is_empty() { String::new() } else { format!(" at {}", misfit.path) };
            (
                "jsonl-value",
                format!("{table}.{column}: expected {expected}, found {}{inside}", misfit.found),
                "give the column a type that holds its values ('tables[].columns'), or correct the line",
            )
        }
        Refusal::Key { column, found } => (
            "jsonl-key",
            format!("{table}.{column}: expected a value, since it is in the key, found {found}"),
            "name a key whose columns always have values ('tables[].primaryKey'), or correct the line",
        ),
        Refusal::UnknownField { name } => (
            "jsonl-unknown-field",
            format!("{table}: the row has a field '{name}' that the table has not, and no schema part that announces it"),
            "write the events with their schema part; or declare the column ('tables[].columns') and copy the table anew into another target",
        ),
        Refusal::Twice { column } => ("jsonl-value", format!("{table}.{column}: the row names it twice"), "correct the line"),
        Refusal::Row { what } => ("jsonl-row", format!("{table}: {what}"), "correct the line"),
    };
    Error::new(Kind::Rejected, code, format!("{}: {what}", place(path, begin, line)), remedy)
}
