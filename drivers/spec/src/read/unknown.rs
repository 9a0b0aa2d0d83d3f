//! What to say about a field that is not there: the nearest one that is, or where one of that name belongs.

use super::names_of;
use crate::field::Field;
use crate::fields::PIPELINE;
use crate::nearest::nearest;
use crate::problem::{Code, Problem};
use crate::shown::printable;

/// No field of the section has this name.
pub(super) fn unknown(name: &str, fields: &'static [Field], kind: Option<&str>) -> Problem {
    let candidates = fields.iter().filter(|field| field.belongs_to(kind)).flat_map(|field| [Some(field.name), field.alias]).flatten();
    let hint = match nearest(name, candidates) {
        Some(near) => format!("Did you mean `{near}`?"),
        None => match elsewhere(name, PIPELINE, "") {
            Some(place) => format!("There is such a field: `{place}`."),
            None => String::new(),
        },
    };
    problem(Code::UnknownField, format!("the unknown field `{}`", printable(name)), names_of(fields, kind), hint)
}

/// The field exists, but not for this kind of source or sink.
pub(super) fn of_another_kind(field: &Field, fields: &'static [Field], kind: &str) -> Problem {
    let mut kinds: Vec<&str> = fields.iter().filter(|other| other.name == field.name).flat_map(|other| other.kinds).copied().collect();
    kinds.dedup();
    let hint = format!("`{}` goes with {}.", field.name, kinds.join(", "));
    problem(Code::FieldOfAnotherKind, format!("a field that {kind} does not have"), names_of(fields, Some(kind)), hint)
}

/// Where in the file a field of that very name is.
fn elsewhere(name: &str, fields: &'static [Field], above: &str) -> Option<String> {
    fields.iter().find_map(|field| {
        let list = if matches!(field.shape, crate::field::Shape::Sections(_)) { "[]" } else { "" };
        if field.name == name {
            return Some(format!("{above}{name}"));
        }
        elsewhere(name, field.shape.fields()?, &format!("{above}{}{list}.", field.name))
    })
}

fn problem(code: Code, found: String, expected: String, hint: String) -> Problem {
    Problem { path: String::new(), line: 0, column: 0, found, expected, hint, code }
}
