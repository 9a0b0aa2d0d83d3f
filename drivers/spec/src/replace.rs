//! `${env:NAME}` and `${file:PATH}` in any value, replaced before the value is looked at.
//!
//! `$${` stands for `${`. What was replaced is never replaced again, and is never shown: the value keeps what the file says
//! for that. Names of fields are left alone.

use crate::environment::{Environment, FILE_BYTES_MAX};
use crate::path::Path;
use crate::problem::{Code, Place, Problem};
use crate::shown::printable;
use crate::yaml::{Content, Node, Scalar, TEXT_BYTES_MAX};

/// Replaces in the whole tree.
pub(crate) fn replace(node: &mut Node, environment: &dyn Environment, problems: &mut Vec<Problem>) {
    Replacer { environment, problems, path: Path::default(), bytes_left: TEXT_BYTES_MAX }.below(node);
}

struct Replacer<'a> {
    environment: &'a dyn Environment,
    problems: &'a mut Vec<Problem>,
    path: Path,
    /// So much may still come from outside: a small file can name a large one many times.
    bytes_left: usize,
}

impl Replacer<'_> {
    fn below(&mut self, node: &mut Node) {
        match &mut node.content {
            Content::Scalar(scalar) if scalar.text.contains("${") => match self.replaced(&scalar.text) {
                Ok(text) => replace_scalar(scalar, text),
                Err(wrongs) => {
                    for wrong in wrongs {
                        self.problems.push(wrong.problem(&self.path, node.at));
                    }
                    node.content = Content::Broken;
                }
            },
            Content::Scalar(_) | Content::Broken => {}
            Content::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let outer = self.path.len();
                    self.path.enter_item(index);
                    self.below(item);
                    self.path.truncate(outer);
                }
            }
            Content::Map(entries) => {
                for (key, value) in entries {
                    let outer = self.path.len();
                    self.path.enter(&key.name);
                    self.below(value);
                    self.path.truncate(outer);
                }
            }
        }
    }

    fn replaced(&mut self, text: &str) -> Result<Text, Vec<Wrong>> {
        let mut value = String::new();
        let mut from_outside = false;
        let mut wrongs = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, after) = rest.split_at(start);
            let inner = &after[2..];
            if let Some(before) = before.strip_suffix('$') {
                value.push_str(before);
                value.push_str("${");
                rest = inner;
                continue;
            }
            value.push_str(before);
            let Some(end) = inner.find('}') else {
                wrongs.push(not_closed());
                return Err(wrongs);
            };
            match looked_up(&inner[..end], self.environment).and_then(|found| self.within_bounds(found)) {
                Ok(found) => value.push_str(&found),
                Err(wrong) => wrongs.push(wrong),
            }
            from_outside = true;
            rest = &inner[end + 1..];
        }
        value.push_str(rest);
        if wrongs.is_empty() { Ok(Text { value, from_outside }) } else { Err(wrongs) }
    }

    fn within_bounds(&mut self, text: String) -> Result<String, Wrong> {
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or_else(|| Wrong {
            code: Code::BadReplacement,
            found: format!("more than {TEXT_BYTES_MAX} bytes from variables and files"),
            expected: "a few values",
            hint: "Is a large file named many times?".into(),
        })?;
        Ok(text)
    }
}

/// Only what came from outside is hidden: a text in which nothing but `$${` was replaced is the file's own.
fn replace_scalar(scalar: &mut Scalar, text: Text) {
    let written = std::mem::replace(&mut scalar.text, text.value);
    if text.from_outside {
        scalar.written = Some(written);
    }
}

struct Text {
    value: String,
    from_outside: bool,
}

/// Why something could not be replaced.
struct Wrong {
    code: Code,
    found: String,
    expected: &'static str,
    hint: String,
}

const FORMS: &str = "`${env:NAME}` or `${file:PATH}`";

fn looked_up(what: &str, environment: &dyn Environment) -> Result<String, Wrong> {
    match what.split_once(':') {
        Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => variable(name, environment),
        Some(("file", path)) if !path.is_empty() && !path.contains('\0') => file(path, environment),
        _ => Err(Wrong {
            code: Code::BadReplacement,
            found: format!("`${{{}}}`", printable(what)),
            expected: FORMS,
            hint: "Write `$${` where a `${` is meant as it stands.".into(),
        }),
    }
}

fn variable(name: &str, environment: &dyn Environment) -> Result<String, Wrong> {
    let name_shown = printable(name);
    let wrong = |found: String, hint: String| Wrong {
        code: Code::UnsetVariable,
        found,
        expected: "a variable that is set, to text in UTF-8",
        hint,
    };
    match environment.variable(name).map(std::ffi::OsString::into_string) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) => Err(wrong(format!("`${{env:{name_shown}}}`, which is not UTF-8"), "Set it to text.".into())),
        None => Err(wrong(
            format!("`${{env:{name_shown}}}`, which is not set"),
            format!("Set {name_shown} in the environment that urutau is started in."),
        )),
    }
}

fn file(path: &str, environment: &dyn Environment) -> Result<String, Wrong> {
    let shown = printable(path);
    let wrong = |found: String, hint: String| Wrong {
        code: Code::UnreadableFile,
        found,
        expected: "a file that can be read, with text in UTF-8",
        hint,
    };
    let bytes = environment.file(std::path::Path::new(path)).map_err(|error| {
        wrong(
            format!("`${{file:{shown}}}`, which cannot be read: {error}"),
            "Relative paths begin at the directory that urutau is started in.".into(),
        )
    })?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(wrong(
            format!("`${{file:{shown}}}`, which is larger than {FILE_BYTES_MAX} bytes"),
            "Is this the right file?".into(),
        ));
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|_| wrong(format!("`${{file:{shown}}}`, which is not UTF-8"), "Is this the right file?".into()))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn not_closed() -> Wrong {
    Wrong {
        code: Code::BadReplacement,
        found: "a `${` without its `}`".into(),
        expected: FORMS,
        hint: "Write `$${` where a `${` is meant as it stands.".into(),
    }
}

impl Wrong {
    fn problem(self, path: &Path, at: Place) -> Problem {
        Problem {
            path: path.to_string(),
            line: at.line,
            column: at.column,
            found: self.found,
            expected: self.expected.to_owned(),
            hint: self.hint,
            code: self.code,
        }
    }
}
