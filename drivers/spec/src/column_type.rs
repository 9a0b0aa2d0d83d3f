//! The text form of a column's type: `int64`, `decimal(12,2)`, `list(string)`.
//!
//! What a type means is the business of the `rows` crate, on which this one does not depend: here is only the grammar,
//! so that a file is refused with its line. A test in a crate that sees both (`host`) compares them.

use std::fmt;
use std::str::FromStr;

use crate::nearest::nearest;

/// A column type whose text is known to be well formed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnType {
    text: String,
    can_be_key: bool,
}

impl ColumnType {
    /// The canonical text, without needless spaces and quotes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its first word: `list` of a list.
    pub(crate) fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    /// Can a column of this type be part of a key? Not where equality is inexact (floating point), ambiguous (json) or
    /// nested.
    pub fn can_be_key(&self) -> bool {
        self.can_be_key
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is no column type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a column type: {hint}")]
pub struct BadColumnType {
    hint: String,
}

impl FromStr for ColumnType {
    type Err = BadColumnType;

    fn from_str(text: &str) -> Result<Self, BadColumnType> {
        parse(text).map_err(|hint| BadColumnType { hint })
    }
}

/// All type names that take nothing in parentheses.
pub(crate) const PLAIN: [&str; 20] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "string",
    "json",
    "binary",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "enum",
];

/// The forms that take something in parentheses, as they are shown.
pub(crate) const WITH_ARGUMENTS: [&str; 5] =
    ["decimal(precision,scale)", "binary(bytes)", "list(type)", "map(type,type)", "struct(name type, ...)"];

/// What databases call it, and what it is called here.
const ELSEWHERE: [(&str, &str); 40] = [
    ("array", "list(type)"),
    ("bigint", "int64"),
    ("bigserial", "int64"),
    ("blob", "binary"),
    ("boolean", "bool"),
    ("byte", "int8"),
    ("bytea", "binary"),
    ("bytes", "binary"),
    ("char", "string"),
    ("datetime", "timestamp"),
    ("double", "float64"),
    ("double precision", "float64"),
    ("fixed", "binary(bytes)"),
    ("float", "float64"),
    ("float4", "float32"),
    ("float8", "float64"),
    ("guid", "uuid"),
    ("int", "int32"),
    ("int2", "int16"),
    ("int4", "int32"),
    ("integer", "int32"),
    ("interval", "string"),
    ("jsonb", "json"),
    ("long", "int64"),
    ("mediumint", "int32"),
    ("number", "decimal(precision,scale)"),
    ("numeric", "decimal(precision,scale)"),
    ("object", "struct(name type, ...)"),
    ("real", "float32"),
    ("record", "struct(name type, ...)"),
    ("row", "struct(name type, ...)"),
    ("serial", "int32"),
    ("short", "int16"),
    ("smallint", "int16"),
    ("text", "string"),
    ("timestamp with time zone", "timestamptz"),
    ("timestamp without time zone", "timestamp"),
    ("tinyint", "int8"),
    ("varbinary", "binary"),
    ("varchar", "string"),
];

/// Types inside types go no deeper.
const DEPTH_MAX: usize = 32;
/// No type text is longer.
const LENGTH_MAX: usize = 10_000;
/// Digits of a decimal.
const PRECISION_MAX: u32 = 38;

/// What a column type looks like, for the word "expected".
pub(crate) const EXPECTED: &str = "a column type such as `int64`, `decimal(12,2)` or `timestamptz`";

/// All types, in a sentence.
pub(crate) fn all() -> String {
    format!("the types are {}, {}", PLAIN.join(", "), WITH_ARGUMENTS.join(", "))
}

/// Reads a column type, or says what is wrong with it and what to do.
pub(crate) fn parse(text: &str) -> Result<ColumnType, String> {
    if text.len() > LENGTH_MAX {
        return Err(format!("a type's text is at most {LENGTH_MAX} characters long"));
    }
    let mut reader = Reader { rest: text.trim() };
    let parsed = reader.column_type(0).and_then(|parsed| reader.end().map(|()| parsed));
    parsed.map_err(|fault| match called_elsewhere(text) {
        Some(name) => name,
        None if text.matches('(').count() > text.matches(')').count() => {
            format!("{fault}; inside of `{{ }}` and `[ ]` a type with a comma stands in quotes")
        }
        None => fault,
    })
}

/// Reads the target of a cast: a column type, or one of the three that say how.
pub(crate) fn parse_cast(text: &str) -> Result<ColumnType, String> {
    const WITH_A_WAY: [&str; 3] = ["string(hex)", "string(base64)", "timestamptz(assume_utc)"];
    let squeezed: String = text.chars().filter(|c| *c != ' ').collect();
    match WITH_A_WAY.iter().find(|way| **way == squeezed) {
        Some(way) => Ok(ColumnType { text: (*way).to_owned(), can_be_key: true }),
        None => parse(text),
    }
}

/// What is still to be read. Every method takes what it names, and the spaces behind it.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn column_type(&mut self, depth: usize) -> Result<ColumnType, String> {
        if depth > DEPTH_MAX {
            return Err(format!("types inside types go at most {DEPTH_MAX} deep"));
        }
        let name = self.word("a type")?;
        let (text, can_be_key) = match name {
            "decimal" => (self.decimal()?, true),
            "binary" if self.rest.starts_with('(') => (self.fixed_binary()?, true),
            "list" => {
                self.symbol('(', "list(string)")?;
                let element = self.column_type(depth + 1)?;
                self.symbol(')', "list(string)")?;
                (format!("list({element})"), false)
            }
            "map" => {
                self.symbol('(', "map(string,int64)")?;
                let key = self.column_type(depth + 1)?;
                self.symbol(',', "map(string,int64)")?;
                let value = self.column_type(depth + 1)?;
                self.symbol(')', "map(string,int64)")?;
                (format!("map({key},{value})"), false)
            }
            "struct" => (self.structure(depth)?, false),
            "unknown" => return Err("`unknown` is a type that only a source can bring; name the type it becomes".into()),
            name if !PLAIN.contains(&name) => return Err(offer(name)),
            name if self.rest.starts_with('(') => return Err(format!("`{name}` takes nothing in parentheses")),
            name => (name.to_owned(), !matches!(name, "float32" | "float64" | "json")),
        };
        Ok(ColumnType { text, can_be_key })
    }

    fn decimal(&mut self) -> Result<String, String> {
        let example = "decimal(12,2)";
        self.symbol('(', example)?;
        let precision = self.number("precision", 1, PRECISION_MAX)?;
        self.symbol(',', example)?;
        let scale = self.number("scale", 0, precision)?;
        self.symbol(')', example)?;
        Ok(format!("decimal({precision},{scale})"))
    }

    fn fixed_binary(&mut self) -> Result<String, String> {
        self.symbol('(', "binary(16)")?;
        let bytes = self.number("length", 1, i32::MAX as u32)?;
        self.symbol(')', "binary(16)")?;
        Ok(format!("binary({bytes})"))
    }

    fn structure(&mut self, depth: usize) -> Result<String, String> {
        let mut fields: Vec<(String, String)> = Vec::new();
        self.symbol('(', STRUCT)?;
        loop {
            let (name, text) = self.struct_field(depth + 1)?;
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(format!("the struct has two fields `{name}`"));
            }
            fields.push((name, text));
            if self.symbol(',', STRUCT).is_err() {
                break;
            }
        }
        self.symbol(')', STRUCT)?;
        let fields: Vec<String> = fields.into_iter().map(|(_, text)| text).collect();
        Ok(format!("struct({})", fields.join(", ")))
    }

    /// A field's name, and its text: name, type, and `not null` if it says so.
    fn struct_field(&mut self, depth: usize) -> Result<(String, String), String> {
        let name = match self.rest.strip_prefix('"') {
            Some(rest) => self.quoted(rest)?,
            None => self.word("a field's name")?.to_owned(),
        };
        if name.is_empty() {
            return Err("a field's name is empty".into());
        }
        let field = self.column_type(depth)?;
        let mut text = format!("{} {field}", written(&name));
        if self.rest.starts_with(is_word_part) {
            if (self.word("`not`")?, self.word("`null`")?) != ("not", "null") {
                return Err("behind a field's type only `not null` may follow".into());
            }
            text.push_str(" not null");
        }
        Ok((name, text))
    }

    /// A name in double quotes, of which the first is taken already. A quote inside is doubled.
    fn quoted(&mut self, mut rest: &'a str) -> Result<String, String> {
        let mut name = String::new();
        loop {
            let (part, behind) = rest.split_once('"').ok_or("a double quote is not closed")?;
            name.push_str(part);
            let Some(more) = behind.strip_prefix('"') else {
                self.rest = behind.trim_start();
                return Ok(name);
            };
            name.push('"');
            rest = more;
        }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        let end = self.rest.find(|c| !is_word_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(format!("{what} is missing"));
        }
        self.rest = rest.trim_start();
        Ok(word)
    }

    fn number(&mut self, what: &str, least: u32, most: u32) -> Result<u32, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let canonical = digits == "0" || !digits.starts_with('0');
        let number = digits.parse::<u32>().ok().filter(|number| canonical && (least..=most).contains(number));
        self.rest = rest.trim_start();
        number.ok_or_else(|| format!("the {what} is a number from {least} to {most}"))
    }

    fn symbol(&mut self, symbol: char, example: &str) -> Result<(), String> {
        let rest =
            self.rest.strip_prefix(symbol).ok_or_else(|| format!("a `{symbol}` is missing: write it as in `{example}`"))?;
        self.rest = rest.trim_start();
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err("something stands behind the type".into()) }
    }
}

const STRUCT: &str = "struct(street string, number int32)";

fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A field's name, in quotes unless it is a plain word.
fn written(name: &str) -> String {
    let plain = !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_word_part);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The nearest type to a name that is none.
fn offer(unknown: &str) -> String {
    let candidates = PLAIN.iter().copied().chain(["decimal", "list", "map", "struct"]);
    match nearest(unknown, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => all(),
    }
}

/// What a database's name for a type is here, whatever stands in parentheses behind it.
fn called_elsewhere(text: &str) -> Option<String> {
    let name = text.split('(').next().unwrap_or_default();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let (_, here) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == name)?;
    Some(format!("`{here}` is what is called `{name}` elsewhere"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_into_its_canonical_text() {
        for name in PLAIN {
            assert_eq!(parse(name).unwrap().as_str(), name);
        }
        for (text, canonical) in [
            ("decimal(12,2)", "decimal(12,2)"),
            (" decimal ( 12 , 2 ) ", "decimal(12,2)"),
            ("decimal(38,38)", "decimal(38,38)"),
            ("binary( 16 )", "binary(16)"),
            ("list( string )", "list(string)"),
            ("map(string, list(int64))", "map(string,list(int64))"),
            ("struct(street string,number  int32)", "struct(street string, number int32)"),
            ("struct(a struct(b decimal(4,1)), c list(uuid))", "struct(a struct(b decimal(4,1)), c list(uuid))"),
            ("struct(\"a\" int8  not  null)", "struct(a int8 not null)"),
            ("struct(\"a \"\"b\" int8, 1c int8)", "struct(\"a \"\"b\" int8, \"1c\" int8)"),
        ] {
            assert_eq!(parse(text).unwrap().as_str(), canonical);
        }
    }

    #[test]
    fn inexact_ambiguous_and_nested_types_cannot_be_keys() {
        for text in ["float32", "float64", "json", "list(int8)", "map(string,int8)", "struct(a int8)"] {
            assert!(!parse(text).unwrap().can_be_key(), "{text}");
        }
        for text in ["decimal(3,1)", "uuid", "binary(4)", "string", "timestamptz", "enum", "bool"] {
            assert!(parse(text).unwrap().can_be_key(), "{text}");
        }
    }

    #[test]
    fn what_is_no_type_gets_a_way_out() {
        for (text, hint) in [
            ("", "a type is missing"),
            ("varchar", "`string` is what is called `varchar` elsewhere"),
            ("VARCHAR(20)", "`string` is what is called `varchar` elsewhere"),
            ("timestamp  with time zone", "`timestamptz` is what is called `timestamp with time zone` elsewhere"),
            ("INT64", "did you mean `int64`?"),
            ("timestamptx", "did you mean `timestamptz`?"),
            ("decimal", "a `(` is missing: write it as in `decimal(12,2)`"),
            ("decimal(12)", "a `,` is missing: write it as in `decimal(12,2)`"),
            ("decimal(39,2)", "the precision is a number from 1 to 38"),
            ("decimal(012,2)", "the precision is a number from 1 to 38"),
            ("decimal(4,5)", "the scale is a number from 0 to 4"),
            ("decimal(4,-1)", "the scale is a number from 0 to 4"),
            (
                "decimal(4,1",
                "a `)` is missing: write it as in `decimal(12,2)`; inside of `{ }` and `[ ]` a type with a comma stands in quotes",
            ),
            ("int64(8)", "`int64` takes nothing in parentheses"),
            ("binary(0)", "the length is a number from 1 to 2147483647"),
            ("list", "a `(` is missing: write it as in `list(string)`"),
            ("list()", "a type is missing"),
            ("map(string)", "a `,` is missing: write it as in `map(string,int64)`"),
            ("struct()", "a field's name is missing"),
            ("struct(string)", "a type is missing"),
            ("struct(\"\" int8)", "a field's name is empty"),
            ("struct(\"a int8)", "a double quote is not closed"),
            ("struct(a int8, a int8)", "the struct has two fields `a`"),
            ("struct(a int8 or not)", "behind a field's type only `not null` may follow"),
            ("unknown(money)", "`unknown` is a type that only a source can bring; name the type it becomes"),
            ("int64)", "something stands behind the type"),
            ("int64 string", "something stands behind the type"),
        ] {
            assert_eq!(parse(text), Err(hint.to_owned()), "{text}");
        }
        assert!(parse(&"list(".repeat(2_000)).unwrap_err().starts_with("types inside types go at most 32 deep"));
        assert!(parse("geometry").unwrap_err().starts_with("the types are bool, int8, "));
        assert_eq!(parse(&" ".repeat(10_001)), Err("a type's text is at most 10000 characters long".to_owned()));
    }

    #[test]
    fn a_cast_may_say_how() {
        assert_eq!(parse_cast("string( hex )").unwrap().as_str(), "string(hex)");
        assert_eq!(parse_cast("timestamptz(assume_utc)").unwrap().as_str(), "timestamptz(assume_utc)");
        assert_eq!(parse_cast("int64").unwrap().as_str(), "int64");
        assert_eq!(parse("string(hex)"), Err("`string` takes nothing in parentheses".to_owned()));
    }
}
