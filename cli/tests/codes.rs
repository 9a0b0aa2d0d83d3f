//! Every code that an error or a finding can carry has a heading in `docs/troubleshooting.md`, and no heading is of a code that
//! nothing carries any more. The codes are read from the source text, as somebody would who searches for one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the cli lies in the workspace")
}

/// What is shipped: no tests, no conformance kit, no drivers that exist for tests.
fn shipped() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = [
        "cli/src",
        "drivers/host/src",
        "drivers/pump/src",
        "drivers/contract/src",
        "drivers/jsonl/src",
        "drivers/postgres/src",
        "drivers/iceberg/src",
        "drivers/null/src",
    ]
    .map(|folder| root().join(folder))
    .to_vec();
    let left_out = ["tests", "tests.rs", "testing.rs", "conformance", "memory"];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of code can be read").flatten() {
            if left_out.iter().any(|name| entry.file_name() == *name)
                && entry.path() != root().join("drivers/contract/src/position_store/memory.rs")
            {
                continue;
            }
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The code of a file that is compiled into the product, without comments.
fn code_of(text: &str) -> String {
    let shipped = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = |line: &str| match line.trim_start().starts_with("//") {
        true => String::new(),
        false => line.split(" // ").next().unwrap_or_default().to_owned(),
    };
    shipped.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// The texts that stand where a code stands: behind an error's kind, behind a finding's severity, as a field or variable `code`,
/// behind `usage(`; and whatever begins like a driver's own codes.
fn codes_in(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = code;
    let mut before = String::new();
    while let Some(start) = rest.find('"') {
        before.push_str(&rest[..start]);
        let Some((length, text)) = literal(&rest[start + 1..]) else { break };
        let place = before.trim_end();
        let is_place = ends_with_kind(place) || place.ends_with("code:") || place.ends_with("usage(");
        let is_park = place.ends_with("failpoint!(");
        let is_drivers = ["jsonl-", "postgres-", "iceberg-", "null-", "position-"].iter().any(|prefix| text.starts_with(prefix));
        if is_code(text) && !is_park && (is_place || is_drivers) {
            found.insert(text.to_owned());
        }
        before.clear();
        before.push('"');
        rest = &rest[start + 1 + length..];
    }
    found
}

/// The content of a string literal and how long it is with its closing quote.
fn literal(text: &str) -> Option<(usize, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return Some((at + 1, &text[..at])),
            _ => escaped = false,
        }
    }
    None
}

fn ends_with_kind(place: &str) -> bool {
    let Some(place) = place.strip_suffix(',') else { return false };
    let word = place.rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next().unwrap_or_default();
    word.contains("Kind::") || word.contains("Severity::")
}

/// Lower-case words with hyphens between them, the first of which begins with a letter.
fn is_code(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.split('-').all(is_word)
}

fn all_codes() -> BTreeSet<String> {
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("code is text");
    shipped().iter().flat_map(|path| codes_in(&code_of(&text(path)))).collect()
}

fn headings() -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page is there");
    page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).map(str::to_owned).collect()
}

#[test]
fn every_code_has_a_heading_and_every_heading_a_code() {
    let (codes, headings) = (all_codes(), headings());
    let missing: Vec<_> = codes.difference(&headings).collect();
    let stale: Vec<_> = headings.difference(&codes).collect();
    assert!(missing.is_empty() && stale.is_empty(), "without a heading: {missing:?}; headings of nothing: {stale:?}");
}

#[test]
fn the_codes_are_found_where_they_stand() {
    let code = r#"
        Error::new(Kind::Config, "no-driver", text, "see \"drivers\", or so")
        Error::new(
            crate::Kind::Transient,
            "run-no-answer", what)
        Finding { severity: Severity::Error, code: "would-not-start", subject: "start".into() }
        Failure::usage("no-table", what, "it has others")
        found(Severity::Warning, "jsonl-table-unseen")
        Malformed::Syntax { .. } => "jsonl-malformed",
        failpoint!("iceberg-swapped");
        counter!("urutau_source_truncates_total", "table" => name)
    "#;
    let expected = ["jsonl-malformed", "jsonl-table-unseen", "no-driver", "no-table", "run-no-answer", "would-not-start"];
    assert_eq!(codes_in(code).into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn what_only_tests_carry_is_no_code() {
    let text = "a(Kind::Config, \"real-one\") // Kind::Config, \"of-a-comment\"\n#[cfg(test)]\nmod tests {\n a(Kind::Config, \"of-a-test\") }";
    assert_eq!(codes_in(&code_of(text)).into_iter().collect::<Vec<_>>(), ["real-one"]);
}

#[test]
fn codes_are_found_in_each_crate_that_makes_them() {
    let codes = all_codes();
    for one in
        ["no-table", "listen", "position-store", "jsonl-malformed", "jsonl-sink-locked", "iceberg-warehouse", "null-setting"]
    {
        assert!(codes.contains(one), "'{one}' is not found: the search is blind for a crate");
    }
}
