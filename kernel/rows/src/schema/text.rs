//! The text of a type, as pipeline files and stored schemas hold it: `decimal(12,2)`, `struct(a int64, b string not null)`.
//!
//! One type has one text, and no second name: what other systems call `bigint` is `int64` here. Reading is lenient about
//! spaces only. Names that are not plain words stand in double quotes, a quote in them doubled.

use std::fmt;
use std::str::FromStr;

use super::check::DEPTH_MAX;
use super::{Column, Type};

/// Why a text is no type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a type: {why}")]
pub struct ParseTypeError {
    /// What was to be parsed.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// Types that are just a name.
const SIMPLE: [(&str, Type); 20] = [
    ("bool", Type::Bool),
    ("int8", Type::Int8),
    ("int16", Type::Int16),
    ("int32", Type::Int32),
    ("int64", Type::Int64),
    ("uint8", Type::UInt8),
    ("uint16", Type::UInt16),
    ("uint32", Type::UInt32),
    ("uint64", Type::UInt64),
    ("float32", Type::Float32),
    ("float64", Type::Float64),
    ("string", Type::String),
    ("json", Type::Json),
    ("binary", Type::Binary),
    ("date", Type::Date),
    ("time", Type::Time),
    ("timestamp", Type::Timestamp),
    ("timestamptz", Type::TimestampTz),
    ("uuid", Type::Uuid),
    ("enum", Type::Enum),
];

/// Types that need something in parentheses.
const COMPOUND: [(&str, &str); 5] = [
    ("decimal", "decimal(precision,scale)"),
    ("list", "list(element)"),
    ("map", "map(key,value)"),
    ("struct", "struct(name type, ...)"),
    ("unknown", "unknown(what the source calls it)"),
];

/// What other systems call a type, for the hint in an error only.
const FOREIGN: [(&str, &str); 34] = [
    ("array", "list(element)"),
    ("bigint", "int64"),
    ("blob", "binary"),
    ("boolean", "bool"),
    ("bytea", "binary"),
    ("bytes", "binary"),
    ("byte", "int8"),
    ("char", "string"),
    ("datetime", "timestamp"),
    ("double", "float64"),
    ("fixed", "binary(n)"),
    ("float", "float64"),
    ("float4", "float32"),
    ("float8", "float64"),
    ("int", "int32"),
    ("int1", "int8"),
    ("int2", "int16"),
    ("int4", "int32"),
    ("integer", "int32"),
    ("interval", "string"),
    ("jsonb", "json"),
    ("long", "int64"),
    ("mediumint", "int32"),
    ("numeric", "decimal(precision,scale)"),
    ("number", "decimal(precision,scale)"),
    ("object", "struct(name type, ...)"),
    ("real", "float32"),
    ("record", "struct(name type, ...)"),
    ("row", "struct(name type, ...)"),
    ("short", "int16"),
    ("smallint", "int16"),
    ("text", "string"),
    ("tinyint", "int8"),
    ("varchar", "string"),
];

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Type::FixedBinary(bytes) => write!(f, "binary({bytes})"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(key, value) => write!(f, "map({key},{value})"),
            Type::Struct(fields) => {
                f.write_str("struct(")?;
                for (index, Column { name, kind, nullable, .. }) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let not_null = if *nullable { "" } else { " not null" };
                    write!(f, "{comma}{} {kind}{not_null}", Name { name, plain: is_word })?;
                }
                f.write_str(")")
            }
            Type::Unknown(name) => write!(f, "unknown({})", Name { name, plain: is_phrase }),
            simple => match SIMPLE.iter().find(|(_, kind)| kind == simple) {
                Some((name, _)) => f.write_str(name),
                None => Err(fmt::Error),
            },
        }
    }
}

/// A name, in quotes unless it is plain.
struct Name<'a> {
    name: &'a str,
    plain: fn(&str) -> bool,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.plain)(self.name) { f.write_str(self.name) } else { write!(f, "\"{}\"", self.name.replace('"', "\"\"")) }
    }
}

fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_word_part)
}

/// Words with single spaces between them: `timestamp without time zone`.
fn is_phrase(name: &str) -> bool {
    name.split(' ').all(is_word)
}

fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl FromStr for Type {
    type Err = ParseTypeError;

    fn from_str(text: &str) -> Result<Self, ParseTypeError> {
        let mut rest = Rest { text: text.trim() };
        let whole = |why| ParseTypeError { text: text.into(), why };
        let kind = rest.kind(0).map_err(whole)?;
        rest.end().map_err(whole)?;
        kind.check().map_err(whole)?;
        Ok(kind)
    }
}

impl TryFrom<String> for Type {
    type Error = ParseTypeError;

    fn try_from(text: String) -> Result<Self, ParseTypeError> {
        text.parse()
    }
}

impl From<Type> for String {
    fn from(kind: Type) -> Self {
        kind.to_string()
    }
}

/// What is still to be read. Every method takes what it names, and the spaces after it.
struct Rest<'a> {
    text: &'a str,
}

impl<'a> Rest<'a> {
    fn kind(&mut self, depth: usize) -> Result<Type, String> {
        if depth > DEPTH_MAX {
            return Err(format!("types may be nested at most {DEPTH_MAX} deep"));
        }
        let name = self.word()?;
        match name {
            "decimal" => {
                self.symbol('(').map_err(|_| usage(name))?;
                let precision = self.number()?;
                self.symbol(',').map_err(|_| usage(name))?;
                let scale = self.number()?;
                self.symbol(')')?;
                Ok(Type::Decimal { precision, scale })
            }
            "binary" if self.symbol('(').is_ok() => {
                let bytes = self.number()?;
                self.symbol(')')?;
                Ok(Type::FixedBinary(bytes))
            }
            "list" => {
                self.symbol('(').map_err(|_| usage(name))?;
                let element = self.kind(depth + 1)?;
                self.symbol(')')?;
                Ok(Type::List(Box::new(element)))
            }
            "map" => {
                self.symbol('(').map_err(|_| usage(name))?;
                let key = self.kind(depth + 1)?;
                self.symbol(',').map_err(|_| usage(name))?;
                let value = self.kind(depth + 1)?;
                self.symbol(')')?;
                Ok(Type::Map(Box::new(key), Box::new(value)))
            }
            "struct" => {
                self.symbol('(').map_err(|_| usage(name))?;
                let mut fields = vec![self.field(depth + 1)?];
                while self.symbol(',').is_ok() {
                    fields.push(self.field(depth + 1)?);
                }
                self.symbol(')')?;
                Ok(Type::Struct(fields))
            }
            "unknown" => {
                self.symbol('(').map_err(|_| usage(name))?;
                let name = self.phrase()?;
                self.symbol(')')?;
                Ok(Type::Unknown(name))
            }
            simple => {
                SIMPLE.iter().find(|(name, _)| *name == simple).map(|(_, kind)| kind.clone()).ok_or_else(|| unknown(simple))
            }
        }
    }

    fn field(&mut self, depth: usize) -> Result<Column, String> {
        let name = if self.text.starts_with('"') { self.quoted()? } else { self.word()?.to_owned() };
        let kind = self.kind(depth)?;
        let mut nullable = true;
        if self.text.starts_with(is_word_part) {
            nullable = !(self.word() == Ok("not") && self.word() == Ok("null"));
            if nullable {
                return Err(format!("after the type of the field '{name}' only 'not null' may follow"));
            }
        }
        Ok(Column::new(name, kind, nullable))
    }

    fn word(&mut self) -> Result<&'a str, String> {
        let end = self.text.find(|c| !is_word_part(c)).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        if word.is_empty() {
            return Err(format!("a name is expected {}", self.place()));
        }
        self.text = rest.trim_start();
        Ok(word)
    }

    fn phrase(&mut self) -> Result<String, String> {
        if self.text.starts_with('"') {
            return self.quoted();
        }
        let (phrase, rest) = self.text.split_at(self.text.find(')').unwrap_or(self.text.len()));
        let phrase = phrase.trim_end();
        if !is_phrase(phrase) {
            return Err(
                "the name of an unknown type that is not plain words stands in double quotes: unknown(\"numeric(5,2)\")".into()
            );
        }
        self.text = rest;
        Ok(phrase.to_owned())
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut name = String::new();
        let mut rest = &self.text[1..];
        loop {
            let (part, after) = rest.split_once('"').ok_or("a double quote is not closed")?;
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(more) => {
                    name.push('"');
                    rest = more;
                }
                None => {
                    self.text = after.trim_start();
                    return Ok(name);
                }
            }
        }
    }

    fn number<N: FromStr>(&mut self) -> Result<N, String> {
        let end = self.text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.text.len());
        let (digits, rest) = self.text.split_at(end);
        // One number has one text: `007` and `+7` are somebody's mistake.
        let canonical = digits == "0" || !digits.trim_start_matches('-').starts_with('0');
        let number = digits.parse().ok().filter(|_| canonical).ok_or_else(|| match digits {
            "" => format!("a number is expected {}", self.place()),
            _ => format!("'{digits}' is not a number that can stand here"),
        })?;
        self.text = rest.trim_start();
        Ok(number)
    }

    fn symbol(&mut self, symbol: char) -> Result<(), String> {
        match self.text.strip_prefix(symbol) {
            Some(rest) => {
                self.text = rest.trim_start();
                Ok(())
            }
            None => Err(format!("'{symbol}' is expected {}", self.place())),
        }
    }

    fn end(&self) -> Result<(), String> {
        if self.text.is_empty() { Ok(()) } else { Err(format!("the type is complete before '{}'", self.text)) }
    }

    fn place(&self) -> String {
        if self.text.is_empty() { "at the end".into() } else { format!("before '{}'", self.text) }
    }
}

fn usage(name: &str) -> String {
    let form = COMPOUND.iter().find(|(known, _)| *known == name).map_or(name, |(_, form)| form);
    format!("it is written {form}")
}

fn unknown(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let known = || SIMPLE.iter().map(|(name, _)| *name).chain(COMPOUND.iter().map(|(name, _)| *name));
    let foreign = FOREIGN.iter().find(|(theirs, _)| *theirs == lower).map(|(_, ours)| *ours);
    let nearest = foreign.or_else(|| known().min_by_key(|ours| strsim::damerau_levenshtein(ours, &lower))).unwrap_or_default();
    let all: Vec<&str> = known().collect();
    format!("there is no '{name}'; did you mean {nearest}? The types are {}", all.join(", "))
}
