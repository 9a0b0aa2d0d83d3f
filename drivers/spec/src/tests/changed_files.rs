//! Files changed at random: whatever stands in a file, it is a pipeline or it has a problem with a place.

use std::cell::Cell;
use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use super::files::files;
use super::{Fixture, SECRET};
use crate::problem::Problem;
use crate::yaml::{Content, Node};
use crate::{Problems, from_tree, parse_as, parse_bytes, yaml};

/// One change to a text.
#[derive(Clone, Debug)]
enum Change {
    Insert(Index, &'static str),
    Remove(Index, usize),
    RepeatLine(Index, Index),
    RemoveLine(Index),
    Cut(Index),
}

const PIECES: &[&str] = &[
    "\t",
    "\n",
    "  ",
    "- ",
    ": ",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "|",
    ">",
    "&a",
    "*a",
    "*b",
    "!t ",
    "!!str ",
    "%YAML 1.2\n",
    "\n---\n",
    "\n...\n",
    "#",
    "? ",
    "\u{feff}",
    "\r\n",
    "\u{85}",
    "é",
    "\0",
    ",",
    "<<: ",
    "~",
    "null",
    "true",
    "0",
    "-1",
    "1e9",
    "@",
    "`",
    "\\",
    "${",
    "${env:SECRET}",
    "${file:/x}",
    "$${",
    "kind: null",
    "compat: go\n",
    "(",
    ")",
    "10s",
    "64M",
    "list(",
    "\u{2028}",
    "\u{1f980}",
];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), prop::sample::select(PIECES)).prop_map(|(at, piece)| Change::Insert(at, piece)),
        3 => (any::<Index>(), 1..12usize).prop_map(|(at, length)| Change::Remove(at, length)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::RepeatLine(from, to)),
        2 => any::<Index>().prop_map(Change::RemoveLine),
        1 => any::<Index>().prop_map(Change::Cut),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for change in changes {
        let place = |index: &Index| index.index(text.len() + 1);
        match change {
            Change::Insert(at, piece) => {
                let at = place(at);
                text.splice(at..at, piece.chars());
            }
            Change::Remove(at, length) => {
                let at = place(at);
                text.drain(at..(at + length).min(text.len()));
            }
            Change::Cut(at) => text.truncate(at.index(text.len() + 1)),
            Change::RepeatLine(..) | Change::RemoveLine(_) => {
                let whole: String = text.iter().collect();
                let mut lines: Vec<&str> = whole.split_inclusive('\n').collect();
                if lines.is_empty() {
                    continue;
                }
                match change {
                    Change::RepeatLine(from, to) => lines.insert(to.index(lines.len()), lines[from.index(lines.len())]),
                    Change::RemoveLine(at) => _ = lines.remove(at.index(lines.len())),
                    _ => {}
                }
                text = lines.concat().chars().collect();
            }
        }
    }
    text.into_iter().collect()
}

fn originals() -> Vec<String> {
    ["good", "go", "later"].into_iter().flat_map(files).map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn has_a_place(problems: &Problems) -> Result<(), TestCaseError> {
    prop_assert!(!problems.list().is_empty());
    for Problem { line, column, found, expected, .. } in problems.list() {
        prop_assert!(*line > 0 && *column > 0, "{problems}");
        prop_assert!(!found.is_empty() && !expected.is_empty(), "{problems}");
    }
    Ok(())
}

#[test]
fn a_changed_file_is_a_pipeline_or_has_a_problem_with_a_place() {
    let originals = originals();
    let (good, bad) = (Cell::new(0), Cell::new(0));
    let strategy = (any::<Index>(), prop::collection::vec(change(), 0..5), any::<bool>());
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) });
    let result = runner.run(&strategy, |(original, changes, refuse_not_built)| {
        let text = changed(&originals[original.index(originals.len())], &changes);
        match parse_as(&text, "pipeline.yaml", &Fixture, refuse_not_built) {
            Ok(_) => good.set(good.get() + 1),
            Err(problems) => {
                bad.set(bad.get() + 1);
                has_a_place(&problems)?;
            }
        }
        Ok(())
    });
    result.unwrap();
    let (good, bad) = (good.get(), bad.get());
    assert!(good * 20 > good + bad && bad * 20 > good + bad, "{good} good and {bad} bad files are no test of both");
}

#[test]
fn bytes_that_are_no_text_have_a_problem_with_a_place() {
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) });
    let result =
        runner.run(&prop::collection::vec(any::<u8>(), 0..200), |bytes| match parse_bytes(&bytes, "pipeline.yaml", &Fixture) {
            Ok(_) => Err(TestCaseError::fail("noise is no pipeline")),
            Err(problems) => has_a_place(&problems),
        });
    result.unwrap();
}

/// Puts `${env:SECRET}` where the value number `number` is. Says whether there is one.
fn put_secret(node: &mut Node, number: &mut usize) -> bool {
    match &mut node.content {
        Content::Scalar(scalar) => {
            if *number == 0 {
                scalar.text = "${env:SECRET}".into();
                return true;
            }
            *number -= 1;
            false
        }
        Content::List(items) => items.iter_mut().any(|item| put_secret(item, number)),
        Content::Map(entries) => entries.iter_mut().any(|(_, value)| put_secret(value, number)),
        Content::Broken => false,
    }
}

#[test]
fn a_value_from_outside_is_never_shown_wherever_it_stands() {
    let mut tried = 0;
    for original in originals() {
        for number in 0.. {
            let mut noise = Vec::new();
            let Some(mut tree) = yaml::read(&original, &mut noise) else { break };
            if !put_secret(&mut tree, &mut { number }) {
                break;
            }
            tried += 1;
            let mut problems = Vec::new();
            let pipeline = from_tree(tree, &Fixture, false, &mut problems);
            let shown = format!("{}\n{:?}", Problems::new("pipeline.yaml", problems.clone()), problems);
            assert!(!shown.contains(SECRET), "value {number}: {shown}");
            // The model's names are plain texts, and the reference says that no secret belongs there.
            if let Some(pipeline) = pipeline {
                let settings = format!("{:?} {}", pipeline.source.settings, pipeline.sink.settings);
                assert!(!settings.contains(SECRET), "value {number}: {settings}");
            }
        }
    }
    assert!(tried > 300, "only {tried} values were tried");
}
