//! A condition on rows. Its `Display` is the condition as one text, which is how it goes on to whoever judges rows:
//! `"status" != 'draft' and ("total" >= 100 or "customer" is null)`.

use std::fmt;

use crate::value::{Literal, LiteralKind, Many, Section};
use crate::words::FilterOp;

/// A condition on rows. Null satisfies no comparison, and neither does its opposite: the logic has three values, as in SQL.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All of these hold.
    All(Vec<Filter>),
    /// One of these holds.
    Any(Vec<Filter>),
    /// This does not hold.
    Not(Box<Filter>),
    /// A column compares with values in this way.
    Where {
        /// The column.
        column: String,
        /// How.
        op: FilterOp,
        /// With what: one value, several for `in` and `not_in`, none for `is_null` and `is_not_null`.
        values: Vec<Literal>,
    },
}

impl Filter {
    /// The columns that the condition looks at.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Filter::All(parts) | Filter::Any(parts) => parts.iter().flat_map(Filter::columns).collect(),
            Filter::Not(part) => part.columns(),
            Filter::Where { column, .. } => vec![column],
        }
    }

    /// The condition that a section describes. `wrong` is told of what is not one: the section, what was found, what is
    /// expected.
    pub(crate) fn build(section: &Section, wrong: &mut dyn FnMut(&Section, String, &str)) -> Option<Self> {
        if section.entries.len() != 1 {
            let names: Vec<&str> = section.entries.iter().map(|entry| entry.field.name).collect();
            let found = if names.is_empty() {
                "an empty condition".to_owned()
            } else {
                format!("{} in one condition", names.join(" and "))
            };
            wrong(section, found, "one of all, any, not, where");
            return None;
        }
        let mut parts = |name: &str| -> Option<Vec<Filter>> {
            let sections = section.sections(name)?;
            let parts: Vec<Filter> = sections.iter().filter_map(|part| Filter::build(part, wrong)).collect();
            (parts.len() == sections.len()).then_some(parts)
        };
        if section.entry("all").is_some() {
            return parts("all").map(Filter::All);
        }
        if section.entry("any").is_some() {
            return parts("any").map(Filter::Any);
        }
        match section.section("not") {
            Some(part) => Filter::build(part, wrong).map(|part| Filter::Not(Box::new(part))),
            None => comparison(section.section("where")?, wrong),
        }
    }
}

fn comparison(section: &Section, wrong: &mut dyn FnMut(&Section, String, &str)) -> Option<Filter> {
    let column = section.text("col")?.to_owned();
    let op = FilterOp::from_word(section.word("op")?)?;
    let expected = match op {
        FilterOp::In | FilterOp::NotIn => Some(Many::List),
        FilterOp::IsNull | FilterOp::IsNotNull => None,
        FilterOp::Eq | FilterOp::Neq | FilterOp::Lt | FilterOp::Lte | FilterOp::Gt | FilterOp::Gte => Some(Many::One),
    };
    let found = match section.entry("value") {
        None => None,
        Some(_) => Some(section.literals("value")?),
    };
    if found.map(|(_, many)| many) != expected {
        let given = match found {
            None => "no value",
            Some((_, Many::One)) => "one value",
            Some((_, Many::List)) => "a list of values",
        };
        let expected = match expected {
            None => "no value",
            Some(Many::One) => "one value",
            Some(Many::List) => "a list of values",
        };
        wrong(section, format!("{given} with `op: {op}`"), expected);
        return None;
    }
    let values = found.map(|(values, _)| values.to_vec()).unwrap_or_default();
    // A condition is stored with the copy, and shown where it does not fit: nothing that may be a secret belongs into it.
    if values.iter().any(Literal::is_from_outside) {
        wrong(
            section,
            "a value that comes from a variable or a file".to_owned(),
            "a value written here: a filter is stored with the copy",
        );
        return None;
    }
    Some(Filter::Where { column, op, values })
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::All(parts) => joined(f, parts, "and"),
            Filter::Any(parts) => joined(f, parts, "or"),
            Filter::Not(part) => write!(f, "not ({part})"),
            Filter::Where { column, op, values } => {
                let column = format!("\"{}\"", column.replace('"', "\"\""));
                let each = |comparison: &str, word: &str| {
                    let each: Vec<String> =
                        values.iter().map(|value| format!("{column} {comparison} {}", shown(value))).collect();
                    each.join(word)
                };
                match op {
                    FilterOp::IsNull => write!(f, "{column} is null"),
                    FilterOp::IsNotNull => write!(f, "{column} is not null"),
                    FilterOp::Eq => f.write_str(&each("=", "")),
                    FilterOp::Neq => f.write_str(&each("!=", "")),
                    FilterOp::Lt => f.write_str(&each("<", "")),
                    FilterOp::Lte => f.write_str(&each("<=", "")),
                    FilterOp::Gt => f.write_str(&each(">", "")),
                    FilterOp::Gte => f.write_str(&each(">=", "")),
                    FilterOp::In => write!(f, "({})", each("=", " or ")),
                    FilterOp::NotIn => write!(f, "({})", each("!=", " and ")),
                }
            }
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Filter], word: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            write!(f, " {word} ")?;
        }
        match part {
            Filter::All(_) | Filter::Any(_) => write!(f, "({part})")?,
            Filter::Not(_) | Filter::Where { .. } => write!(f, "{part}")?,
        }
    }
    Ok(())
}

fn shown(value: &Literal) -> String {
    match value.kind() {
        LiteralKind::Bool | LiteralKind::Number => value.text().to_owned(),
        LiteralKind::Text => format!("'{}'", value.text().replace('\'', "''")),
    }
}
