//! The text of a filter.
//!
//! ```text
//! any     := all ("or" all)*
//! all     := one ("and" one)*
//! one     := "not" one | "(" any ")" | column "is" ["not"] "null" | column comparison literal
//! literal := number | 'text' | true | false          a quote in a text is doubled
//! column  := word | "any name"                       a quote in a name is doubled
//! ```

use std::fmt;

use super::Comparison;

/// How deep parentheses and `not` may be nested. A bound for recursion.
const DEPTH_MAX: usize = 64;

/// Why a text is no filter.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the filter cannot be read at character {at}: {why}\n  {text}\n  {}^", " ".repeat(at.saturating_sub(1)))]
pub struct ParseFilterError {
    /// The filter.
    pub text: String,
    /// Where, counted in characters from 1.
    pub at: usize,
    /// What was expected and found.
    pub why: String,
}

pub(super) enum Expression {
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
    IsNull(String),
    Compare(String, Comparison, Literal),
}

/// A value as the filter writes it.
pub(super) enum Literal {
    Number(String),
    Text(String),
    Bool(String),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Number(text) | Literal::Bool(text) => f.write_str(text),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Word(String),
    Name(String),
    Number(String),
    Text(String),
    Comparison(Comparison),
    Open,
    Close,
    End,
}

/// What is wrong, and at which byte.
type Wrong = (usize, String);

pub(super) fn parse(text: &str) -> Result<Expression, ParseFilterError> {
    let whole = |(byte, why): Wrong| ParseFilterError { text: text.to_owned(), at: text[..byte].chars().count() + 1, why };
    let tokens = tokens(text).map_err(whole)?;
    let mut parser = Parser { tokens, next: 0 };
    let expression = parser.any(0).map_err(whole)?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(whole(parser.expected("'and', 'or' or the end"))),
    }
}

struct Parser {
    /// Each with the byte at which it begins; the last one is the end.
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl Parser {
    fn any(&mut self, depth: usize) -> Result<Expression, Wrong> {
        let mut parts = vec![self.all(depth)?];
        while self.take_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Expression, Wrong> {
        let mut parts = vec![self.one(depth)?];
        while self.take_word("and") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Expression, Wrong> {
        if depth > DEPTH_MAX {
            return Err((self.place(), format!("parentheses and 'not' may be nested at most {DEPTH_MAX} deep")));
        }
        if self.take_word("not") {
            return Ok(Expression::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.take(&Token::Open) {
            let inner = self.any(depth + 1)?;
            return if self.take(&Token::Close) { Ok(inner) } else { Err(self.expected("')'")) };
        }
        self.condition()
    }

    fn condition(&mut self) -> Result<Expression, Wrong> {
        let column = match self.peek() {
            Token::Word(name) if !is_reserved(name) => name.clone(),
            Token::Name(name) => name.clone(),
            _ => return Err(self.expected("a column, 'not' or '('")),
        };
        self.next += 1;
        if self.take_word("is") {
            let is_not = self.take_word("not");
            if !self.take_word("null") {
                return Err(self.expected("'null' or 'not null'"));
            }
            let is_null = Expression::IsNull(column);
            return Ok(if is_not { Expression::Not(Box::new(is_null)) } else { is_null });
        }
        let Token::Comparison(comparison) = *self.peek() else {
            return Err(self.expected("=, !=, <, <=, >, >= or 'is'"));
        };
        self.next += 1;
        let literal = match self.peek() {
            Token::Number(text) => Literal::Number(text.clone()),
            Token::Text(text) => Literal::Text(text.clone()),
            Token::Word(word) if is_either(word, ["true", "false"]) => Literal::Bool(word.to_ascii_lowercase()),
            Token::Word(word) if word.eq_ignore_ascii_case("null") => {
                return Err((self.place(), "nothing compares with null; write 'is null' or 'is not null'".to_owned()));
            }
            _ => return Err(self.expected("a number, a text in single quotes, true or false")),
        };
        self.next += 1;
        Ok(Expression::Compare(column, comparison, literal))
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(place, _)| *place)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is = self.peek() == token;
        self.next += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word));
        self.next += usize::from(is);
        is
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = match self.peek() {
            Token::Word(text) | Token::Number(text) => format!("'{text}'"),
            Token::Name(name) => format!("\"{name}\""),
            Token::Text(text) => Literal::Text(text.clone()).to_string(),
            Token::Comparison(_) => "a comparison".to_owned(),
            Token::Open => "'('".to_owned(),
            Token::Close => "')'".to_owned(),
            Token::End => "the end".to_owned(),
        };
        (self.place(), format!("{what} is expected, {found} found"))
    }
}

fn is_either(word: &str, of: [&str; 2]) -> bool {
    of.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn is_reserved(word: &str) -> bool {
    ["and", "or", "not", "is", "null", "true", "false"].iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Wrong> {
    const SYMBOLS: [(&str, Token); 9] = [
        ("!=", Token::Comparison(Comparison::NotEqual)),
        ("<>", Token::Comparison(Comparison::NotEqual)),
        ("<=", Token::Comparison(Comparison::AtMost)),
        (">=", Token::Comparison(Comparison::AtLeast)),
        ("=", Token::Comparison(Comparison::Equal)),
        ("<", Token::Comparison(Comparison::Less)),
        (">", Token::Comparison(Comparison::Greater)),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = match first {
            ' ' | '\t' | '\n' | '\r' => {
                at += first.len_utf8();
                continue;
            }
            '\'' => quoted(rest, '\'')
                .map(|(text, length)| (Token::Text(text), length))
                .ok_or((at, "a single quote is not closed".to_owned()))?,
            '"' => quoted(rest, '"')
                .map(|(name, length)| (Token::Name(name), length))
                .ok_or((at, "a double quote is not closed".to_owned()))?,
            '0'..='9' | '-' | '+' | '.' => {
                let length = number_length(rest);
                (Token::Number(rest[..length].to_owned()), length)
            }
            first if first.is_alphabetic() || first == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
            other => match SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
                Some((symbol, token)) => (token.clone(), symbol.len()),
                None => return Err((at, format!("'{other}' has no meaning here"))),
            },
        };
        tokens.push((at, token));
        at += length;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// The text between quotes, and how many bytes it takes with them.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut inner = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            inner.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            inner.push(quote);
        } else {
            return Some((inner, at + quote.len_utf8()));
        }
    }
    None
}

/// A sign, digits with a point, an exponent with its sign. Whether it is a number is judged by the column's type.
fn number_length(rest: &str) -> usize {
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        let goes_on = match c {
            '-' | '+' => at == 0 || matches!(before, 'e' | 'E'),
            c => c.is_ascii_alphanumeric() || c == '.',
        };
        if !goes_on {
            return at;
        }
        before = c;
    }
    rest.len()
}
