//! What to say about a field that is not there: the nearest one that is, or where one of that name belongs.

use super::names_of;
use crate::field::{Field, Shape, one_of};
use crate::fields::PIPELINE;
use crate::nearest::nearest;
use crate::problem::Code;
use crate::shown::printable;

/// A problem that has no place yet.
pub(super) struct Complaint {
    pub(super) code: Code,
    pub(super) found: String,
    pub(super) expected: String,
    pub(super) hint: String,
}

/// No field of the section has this name. The field that was probably meant, if there is one.
pub(super) fn unknown(name: &str, fields: &'static [Field], kind: Option<&str>) -> (Complaint, Option<&'static Field>) {
    let own = fields.iter().filter(|field| field.belongs_to(kind));
    let near = nearest(name, own.clone().flat_map(|field| [Some(field.name), field.alias]).flatten());
    let hint = match near {
        Some(near) => format!("Did you mean `{near}`?"),
        None if name.contains(')') && !name.contains('(') => {
            "Inside of `{ }` a text with a comma stands in quotes, for example `\"decimal(12,2)\"`.".to_owned()
        }
        None => match elsewhere(name, PIPELINE, "") {
            Some(place) if place == name => format!("There is such a field at the top of the file: `{name}:`."),
            Some(place) => format!("There is such a field: `{place}`."),
            None => String::new(),
        },
    };
    let code = Code::UnknownField;
    let found = format!("the unknown field `{}`", printable(name));
    let meant = own.into_iter().find(|field| near.is_some_and(|near| field.name == near || field.alias == Some(near)));
    (Complaint { code, found, expected: one_of(names_of(fields, kind).into_iter()), hint }, meant)
}

/// The field exists, but not for this kind of source or sink.
pub(super) fn of_another_kind(field: &Field, fields: &'static [Field], kind: &str) -> Complaint {
    let mut kinds: Vec<&str> =
        fields.iter().filter(|other| other.name == field.name).flat_map(|other| other.kinds).copied().collect();
    kinds.dedup();
    let hint = format!("`{}` goes with {}.", field.name, kinds.join(", "));
    let found = format!("a field that {kind} does not have");
    Complaint { code: Code::FieldOfAnotherKind, found, expected: one_of(names_of(fields, Some(kind)).into_iter()), hint }
}

/// Where in the file a field of that very name is.
fn elsewhere(name: &str, fields: &'static [Field], above: &str) -> Option<String> {
    fields.iter().find_map(|field| {
        let list = if matches!(field.shape, Shape::Sections(_)) { "[]" } else { "" };
        if field.name == name {
            return Some(format!("{above}{name}"));
        }
        elsewhere(name, field.shape.fields()?, &format!("{above}{}{list}.", field.name))
    })
}
