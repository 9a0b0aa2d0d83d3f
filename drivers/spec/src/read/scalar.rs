//! Values that are one text: read by what their field accepts, shown only as far as they may be.

use super::{Reader, sort_of};
use crate::column_type::{self, ColumnType};
use crate::duration::Duration;
use crate::field::{Secrecy, Shape, Text, Word, Zero};
use crate::nearest::nearest;
use crate::problem::{Code, Place};
use crate::shown::{printable, without_credentials};
use crate::size::Size;
use crate::value::{Literal, LiteralKind, Shadowed, Value};
use crate::yaml::{Content, Node, Scalar};

impl Reader<'_> {
    pub(super) fn scalar_value(&mut self, shape: Shape, node: &Node, named_at: Place) -> Option<Value> {
        if let Shape::Word(words) = shape {
            return self.word(words, node, named_at).map(Value::Word);
        }
        let scalar = self.scalar(node, named_at, &shape.expected())?;
        match shape {
            Shape::Text(text) => self.text(text, scalar, node.at).map(Value::Text),
            Shape::Bool => self.bool(scalar, node.at).map(Value::Bool),
            Shape::Number { least, most } => self.number(least, most, scalar, node.at).map(Value::Number),
            Shape::Duration(zero) => self.duration(zero, scalar, node.at).map(Value::Duration),
            Shape::Size => self.size(scalar, node.at).map(Value::Size),
            _ => self.column_type(scalar, node.at, column_type::parse).map(Value::ColumnType),
        }
    }

    /// The one text that a value is.
    pub(super) fn scalar<'n>(&mut self, node: &'n Node, named_at: Place, expected: &str) -> Option<&'n Scalar> {
        match &node.content {
            Content::Scalar(scalar) if scalar.is_null() => {
                self.empty_value(named_at, expected);
                None
            }
            Content::Scalar(scalar) => Some(scalar),
            Content::Broken => None,
            Content::List(_) | Content::Map(_) => {
                self.complain(Code::WrongType, node.at, sort_of(node), expected, "");
                None
            }
        }
    }

    /// A word is looked at before null is, because `null` may be one.
    fn word(&mut self, words: &'static [Word], node: &Node, named_at: Place) -> Option<&'static str> {
        let shape = Shape::Word(words);
        let scalar = match &node.content {
            Content::Scalar(scalar) if words.iter().any(|word| word.is_called(&scalar.text)) => scalar,
            _ => self.scalar(node, named_at, &shape.expected())?,
        };
        match words.iter().find(|word| word.is_called(&scalar.text)) {
            Some(word) if word.built || !self.reading.refuse_not_built => Some(word.name),
            Some(word) => {
                let found = format!("`{}`, which is known, but not built yet", word.name);
                self.not_built(node.at, &found, &shape.expected(), "");
                None
            }
            None => {
                let candidates = words.iter().flat_map(|word| [Some(word.name), word.alias]).flatten();
                let near = nearest(&scalar.text, candidates);
                let built = words.iter().any(|word| word.built && near.is_some_and(|near| word.is_called(near)));
                let though = if built { "" } else { " It is not built yet, though." };
                let hint = near.map(|near| format!("Did you mean `{near}`?{though}")).unwrap_or_default();
                self.bad(shape.code(), node.at, scalar, Secrecy::Open, &shape.expected(), &hint);
                None
            }
        }
    }

    fn text(&mut self, text: Text, scalar: &Scalar, at: Place) -> Option<Shadowed> {
        if let Some(fault) = text.form.fault(&scalar.text) {
            self.bad(Code::BadName, at, scalar, text.secrecy, text.what, fault);
            return None;
        }
        let mut value = shadowed(scalar, text.secrecy == Secrecy::Secret);
        if text.secrecy == Secrecy::Address && value.shown.is_none() {
            value.shown = without_credentials(&scalar.text);
        }
        Some(value)
    }

    fn bool(&mut self, scalar: &Scalar, at: Place) -> Option<bool> {
        let plain = scalar.plain || scalar.written.is_some();
        match scalar.text.as_str() {
            "true" | "True" | "TRUE" if plain => return Some(true),
            "false" | "False" | "FALSE" if plain => return Some(false),
            _ => {}
        }
        if !plain && matches!(scalar.text.as_str(), "true" | "false") {
            let found = format!("`{}` in quotes", scalar.text);
            self.complain(Code::WrongType, at, &found, &Shape::Bool.expected(), "Remove the quotes.");
            return None;
        }
        let hint = match scalar.text.to_lowercase().as_str() {
            "yes" | "on" | "y" => "In YAML 1.2 only `true` and `false` are booleans; `yes` and `on` are texts. Write `true`.",
            "no" | "off" | "n" => "In YAML 1.2 only `true` and `false` are booleans; `no` and `off` are texts. Write `false`.",
            _ => "",
        };
        self.bad(Code::WrongType, at, scalar, Secrecy::Open, &Shape::Bool.expected(), hint);
        None
    }

    /// Digits, in quotes or not: the Go system has a number that is a text.
    fn number(&mut self, least: u64, most: u64, scalar: &Scalar, at: Place) -> Option<u64> {
        let shape = Shape::Number { least, most };
        let digits = scalar.text.replace('_', "");
        let number = digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        let hint = match number {
            Some(number) if (least..=most).contains(&number) => return Some(number),
            None if !digits.is_empty() && digits.replace([',', '\'', ' '], "").bytes().all(|b| b.is_ascii_digit()) => {
                "Write the digits only; underscores may stand between them."
            }
            Some(_) | None => "",
        };
        self.bad(shape.code(), at, scalar, Secrecy::Open, &shape.expected(), hint);
        None
    }

    fn duration(&mut self, zero: Zero, scalar: &Scalar, at: Place) -> Option<Duration> {
        let hint = match scalar.text.parse::<Duration>() {
            Ok(duration) if duration.is_zero() && zero == Zero::Refused => "It cannot be zero.".to_owned(),
            Ok(duration) if duration.as_std().subsec_nanos() % 1_000_000 != 0 => {
                "Nothing here is shorter than a millisecond.".to_owned()
            }
            Ok(duration) => return Some(duration),
            Err(bad) => sentence(&bad.hint),
        };
        self.bad(Code::BadDuration, at, scalar, Secrecy::Open, crate::duration::EXPECTED, &hint);
        None
    }

    fn size(&mut self, scalar: &Scalar, at: Place) -> Option<Size> {
        let hint = match scalar.text.parse::<Size>() {
            Ok(size) if size.bytes() == 0 => "It cannot be zero.".to_owned(),
            Ok(size) => return Some(size),
            Err(bad) => sentence(&bad.hint),
        };
        self.bad(Code::BadSize, at, scalar, Secrecy::Open, crate::size::EXPECTED, &hint);
        None
    }

    fn column_type(&mut self, scalar: &Scalar, at: Place, parse: fn(&str) -> Result<ColumnType, String>) -> Option<ColumnType> {
        match parse(&scalar.text) {
            Ok(column_type) => Some(column_type),
            Err(hint) => {
                self.bad(Code::BadColumnType, at, scalar, Secrecy::Open, column_type::EXPECTED, &sentence(&hint));
                None
            }
        }
    }

    /// The type that a column is cast to.
    pub(super) fn cast_type(&mut self, node: &Node, named_at: Place) -> Option<ColumnType> {
        let scalar = self.scalar(node, named_at, "a column type")?;
        self.column_type(scalar, node.at, column_type::parse_cast)
    }

    /// What a condition compares with.
    pub(super) fn literal(&mut self, node: &Node, named_at: Place) -> Option<Literal> {
        if let Content::Scalar(scalar) = &node.content
            && scalar.is_null()
            && !scalar.text.is_empty()
        {
            let hint = "Nothing is equal to null; ask with `op: is_null` or `op: is_not_null`.";
            self.complain(Code::BadFilter, node.at, "`null`", &Shape::Literal.expected(), hint);
            return None;
        }
        let scalar = self.scalar(node, named_at, &Shape::Literal.expected())?;
        let kind = match scalar.text.as_str() {
            _ if !scalar.plain => LiteralKind::Text,
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => LiteralKind::Bool,
            text if is_number(text) => LiteralKind::Number,
            _ => LiteralKind::Text,
        };
        Some(Literal { kind, value: shadowed(scalar, false) })
    }

    /// A value that is not what it should be. A hint may quote the value, so a value from outside gets none.
    fn bad(&mut self, code: Code, at: Place, scalar: &Scalar, secrecy: Secrecy, expected: &str, hint: &str) {
        let hint = if scalar.written.is_some() { "Look at what it stands for." } else { hint };
        self.complain(code, at, &shown(scalar, secrecy), expected, hint);
    }
}

/// A text and what is shown in its place: what the file says if it came from outside, nothing if it is a secret.
pub(super) fn shadowed(scalar: &Scalar, secret: bool) -> Shadowed {
    let shown = match (&scalar.written, secret) {
        (Some(written), _) => Some(written.clone()),
        (None, true) => Some("***".to_owned()),
        (None, false) => None,
    };
    Shadowed { text: scalar.text.clone(), shown }
}

/// A value as the object of "found".
fn shown(scalar: &Scalar, secrecy: Secrecy) -> String {
    match &scalar.written {
        _ if scalar.text.is_empty() && scalar.written.is_none() => "an empty text".to_owned(),
        Some(written) => format!("`{}`, whose value is not shown", printable(written)),
        None if secrecy == Secrecy::Secret => "a value that is not shown".to_owned(),
        None => {
            let hidden = without_credentials(&scalar.text).filter(|_| secrecy == Secrecy::Address || scalar.text.contains("://"));
            format!("`{}`", printable(hidden.as_deref().unwrap_or(&scalar.text)))
        }
    }
}

/// A hint of a part that does not write sentences.
fn sentence(hint: &str) -> String {
    let mut characters = hint.chars();
    match characters.next() {
        Some(first) => {
            let end = if hint.ends_with(['?', '.']) { "" } else { "." };
            format!("{}{}{end}", first.to_uppercase(), characters.as_str())
        }
        None => String::new(),
    }
}

/// A number as YAML 1.2 has them.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().any(|c| c.is_ascii_digit())
        && digits.parse::<f64>().is_ok()
}
