//! Types from values, for events that announce none: what all values seen so far have in common, and nothing cleverer. Text
//! stays text, whatever it looks like; objects and arrays are JSON.

use std::collections::HashMap;

use rows::Type;

use super::number::{float64, integer};
use crate::envelope::Image;
use crate::json::{Kind, Value};

/// What was seen of a table's rows.
#[derive(Default)]
pub(crate) struct Inference {
    /// In the order in which they appeared.
    fields: Vec<Field>,
    places: HashMap<String, usize>,
}

struct Field {
    name: String,
    seen: Seen,
    /// The line since which no type has held what was seen.
    untold_since: Option<String>,
}

/// A field as its values tell it.
pub(crate) struct Told<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Type,
    /// Where nothing holds all of its values: the line of the first one that does not fit those before it.
    pub(crate) untold_since: Option<&'a str>,
}

/// What was seen of a field's values.
#[derive(Default)]
struct Seen {
    bools: bool,
    text: bool,
    /// `NaN`, `Infinity`, `-Infinity`: numbers among numbers, else text.
    special: bool,
    containers: bool,
    integers: Option<(i128, i128)>,
    /// A number with a point or an exponent.
    fractions: bool,
    /// A number that a double does not hold.
    beyond_double: bool,
    /// A number beyond 128 bits.
    beyond_decimal: bool,
    digits_before: usize,
    digits_after: usize,
}

impl Inference {
    /// Takes note of a row, which stands in a line that `place` puts into words.
    pub(crate) fn add(
        &mut self,
        image: Image<'_>,
        is_unavailable: impl Fn(Value<'_>) -> bool,
        place: &mut impl FnMut() -> String,
    ) {
        for (name, value) in image.members() {
            let name = name.text().unwrap_or_default();
            let at = match self.places.get(&*name) {
                Some(at) => *at,
                None => {
                    self.fields.push(Field { name: name.to_string(), seen: Seen::default(), untold_since: None });
                    self.places.insert(name.into_owned(), self.fields.len() - 1);
                    self.fields.len() - 1
                }
            };
            if !is_unavailable(value) {
                self.fields[at].add(value, place);
            }
        }
    }

    /// The fields and their types.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Told<'_>> {
        self.fields.iter().map(|Field { name, seen, untold_since }| Told {
            name,
            kind: seen.kind(),
            untold_since: untold_since.as_deref(),
        })
    }
}

impl Field {
    fn add(&mut self, value: Value<'_>, place: &mut impl FnMut() -> String) {
        self.seen.add(value);
        if value.kind == Kind::Null {
            return;
        }
        // Not for ever: integers of too many digits are doubles once a fraction says so.
        self.untold_since = match self.seen.kind() {
            Type::Unknown(_) => self.untold_since.take().or_else(|| Some(place())),
            _ => None,
        };
    }
}

impl Seen {
    fn add(&mut self, value: Value<'_>) {
        match value.kind {
            Kind::Null => {}
            Kind::Bool => self.bools = true,
            Kind::Array | Kind::Object => self.containers = true,
            Kind::String if matches!(value.inside(), "NaN" | "Infinity" | "-Infinity") => self.special = true,
            Kind::String => self.text = true,
            Kind::Number => self.number(value.raw),
        }
    }

    fn number(&mut self, raw: &str) {
        self.beyond_double |= float64(raw).is_err();
        let fraction = raw.contains(['.', 'e', 'E']);
        self.fractions |= fraction;
        match integer(raw) {
            Some(value) if !fraction => {
                let (low, high) = self.integers.unwrap_or((value, value));
                self.integers = Some((low.min(value), high.max(value)));
            }
            None if !fraction => self.beyond_decimal = true,
            _ => {}
        }
        let (mantissa, exponent) = raw.trim_start_matches('-').split_once(['e', 'E']).unwrap_or((raw, ""));
        let (before, after) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
        self.beyond_decimal |= self.beyond_double && !exponent.is_empty();
        self.digits_before = self.digits_before.max(before.len());
        self.digits_after = self.digits_after.max(after.len());
    }

    fn kind(&self) -> Type {
        let numbers = self.integers.is_some() || self.fractions || self.beyond_decimal;
        let text = self.text || (self.special && !numbers);
        let kinds = [(self.bools, "booleans"), (numbers, "numbers"), (text, "strings"), (self.containers, "objects or arrays")];
        let mut found = kinds.iter().filter(|(seen, _)| *seen).map(|(_, name)| *name);
        match (found.next(), found.next()) {
            (None, _) => Type::Unknown("only nulls".to_owned()),
            (Some(one), Some(other)) => Type::Unknown(format!("{one} and {other}")),
            (Some("booleans"), None) => Type::Bool,
            (Some("strings"), None) => Type::String,
            (Some("numbers"), None) => self.number_kind(),
            (Some(_), None) => Type::Json,
        }
    }

    fn number_kind(&self) -> Type {
        let whole = !self.fractions && !self.special;
        match self.integers {
            Some((low, high)) if whole && !self.beyond_decimal => {
                if i64::try_from(low).is_ok() && i64::try_from(high).is_ok() {
                    return Type::Int64;
                }
                if low >= 0 && u64::try_from(high).is_ok() {
                    return Type::UInt64;
                }
            }
            _ if !self.beyond_double => return Type::Float64,
            _ => {}
        }
        if !self.beyond_double && !whole {
            return Type::Float64;
        }
        match u8::try_from(self.digits_after) {
            Ok(scale) if !self.beyond_decimal && !self.special && self.digits_before + self.digits_after <= 38 => {
                Type::Decimal { precision: 38, scale: scale as i8 }
            }
            _ => Type::Unknown("numbers of too many digits".to_owned()),
        }
    }
}
