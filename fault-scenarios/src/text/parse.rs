//! From text to a scenario. Every error names its line and says what to write instead.

use std::collections::BTreeMap;

use super::ParseError;
use super::print::{DELAYS, delays};
use super::words::{self, Wrong, number, wrong};
use crate::options::Options;
use crate::scenario::{Finds, Scenario};
use crate::step::{Step, Tab, Then, When};
use crate::workload::{Change, GROUP_WORDS, GROUPS, Key, Kind, Stream, Transaction, Value};

pub(super) fn scenario(text: &str) -> Result<Scenario, ParseError> {
    let mut reader = Reader::default();
    for (n, line) in text.lines().enumerate() {
        reader.line = n + 1;
        reader.read(line).map_err(|wrong| reader.error(wrong))?;
    }
    reader.end().map_err(|wrong| reader.error(wrong))?;
    Ok(reader.scenario)
}

#[derive(Default)]
struct Reader {
    scenario: Scenario,
    line: usize,
    /// Comments whose owner has not come yet.
    comments: Vec<String>,
    /// Has anything but a comment been read?
    begun: bool,
    /// Where each value was first brought.
    values: BTreeMap<Value, usize>,
}

impl Reader {
    fn error(&self, wrong: Wrong) -> ParseError {
        ParseError { line: self.line, what: wrong.what, remedy: wrong.remedy }
    }

    fn read(&mut self, line: &str) -> Result<(), Wrong> {
        if line.trim().is_empty() {
            return self.take_about();
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.comments.push(comment.strip_prefix(' ').unwrap_or(comment).trim_end().to_string());
            return Ok(());
        }
        if line.starts_with([' ', '\t']) {
            self.begun = true;
            return self.change(line);
        }
        if let Some((when, then)) = line.split_once(": ") {
            return self.step(when, then);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "tx" {
            return self.transaction(&words[1..]);
        }
        self.take_about()?;
        self.begun = true;
        match words.as_slice() {
            ["finds", bug, "by", invariant] => {
                self.scenario.finds.push(Finds { bug: (*bug).into(), invariant: (*invariant).into() });
                Ok(())
            }
            ["finds", ..] => Err(wrong(
                "a wrong rule and its invariant are named",
                "write 'finds StateBeforeData by position-covers-only-durable'",
            )),
            ["reaches", mark] => {
                self.scenario.reaches.push((*mark).into());
                Ok(())
            }
            ["stream", name] => self.stream(name, 0),
            ["stream", name, "appears", at] => {
                let at = number(at)?;
                self.stream(name, at)
            }
            ["table", name, rest @ ..] => self.table(name, rest),
            ["refuse", value] => {
                self.scenario.workload.refused.push(number(value)?);
                Ok(())
            }
            ["dice", digits] => self.dice(digits),
            [word, value] => match self.scenario.options.set(word, value) {
                Some(Ok(())) => Ok(()),
                Some(Err(expected)) => Err(wrong(format!("{word} can't be '{value}'"), format!("write {expected}"))),
                None => Err(nothing(word)),
            },
            _ => Err(nothing(words[0])),
        }
    }

    /// Comments at the top are what the scenario is about; others belong to the transaction or step that follows.
    fn take_about(&mut self) -> Result<(), Wrong> {
        if self.comments.is_empty() {
            return Ok(());
        }
        if self.begun || !self.scenario.about.is_empty() {
            let remedy = "put it at the top, or directly before the transaction or the step that it is about";
            return Err(wrong("the comment above this line belongs to nothing", remedy));
        }
        self.scenario.about = std::mem::take(&mut self.comments);
        Ok(())
    }

    fn stream(&mut self, name: &str, appears: u64) -> Result<(), Wrong> {
        if !self.scenario.workload.transactions.is_empty() {
            return Err(wrong("a stream comes after transactions", "name all streams before them"));
        }
        self.scenario.workload.streams.push(Stream { name: name.into(), appears });
        Ok(())
    }

    fn table(&mut self, name: &str, rest: &[&str]) -> Result<(), Wrong> {
        let next = self.scenario.workload.tables.len();
        if words::table(name)? != next {
            return Err(wrong(
                format!("{name} is not the next table"),
                format!("call it t{next}: tables are numbered as they come"),
            ));
        }
        self.scenario.workload.tables.push(words::table_kind(rest)?);
        Ok(())
    }

    fn dice(&mut self, digits: &str) -> Result<(), Wrong> {
        let number = |at: usize| digits.get(at..at + 2).and_then(|d| u8::from_str_radix(d, 16).ok());
        for at in (0..digits.len()).step_by(2) {
            let Some(number) = number(at) else {
                return Err(wrong("dice are pairs of hexadecimal digits", "copy the whole line, or leave it out"));
            };
            self.scenario.dice.0.push(number);
        }
        Ok(())
    }

    fn transaction(&mut self, words: &[&str]) -> Result<(), Wrong> {
        self.begun = true;
        let workload = &self.scenario.workload;
        let [time, rest @ ..] = words else { return Err(wrong("its time is missing", "write 'tx 12'")) };
        let time = number(time)?;
        if time < workload.last_time() {
            let last = workload.last_time();
            return Err(wrong(
                format!("time goes from {last} back to {time}"),
                "put the transactions in the order of their times",
            ));
        }
        let (name, rest) = match rest {
            [] => (None, rest),
            [word, ..] if DELAYS.contains(word) => (None, rest),
            [name, rest @ ..] => (Some(*name), rest),
        };
        let names: Vec<&str> = workload.streams.iter().map(|s| s.name.as_str()).collect();
        let stream = match name {
            None if names.is_empty() => 0,
            None => return Err(wrong("its stream is missing", format!("write 'tx {time} {}'", names[0]))),
            Some(name) => names.iter().position(|n| *n == name).ok_or_else(|| {
                let known = if names.is_empty() {
                    "write none: there is one stream".into()
                } else {
                    format!("write one of {}", names.join(", "))
                };
                wrong(format!("there is no stream '{name}'"), known)
            })?,
        };
        let note = std::mem::take(&mut self.comments);
        let mut transaction = Transaction { note, stream, time, ..Transaction::default() };
        said_of(rest, &mut transaction)?;
        self.scenario.workload.transactions.push(transaction);
        Ok(())
    }

    fn change(&mut self, line: &str) -> Result<(), Wrong> {
        if !self.comments.is_empty() {
            return Err(wrong("the comment above this line is about a change", "put it before its transaction"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [table, rest @ ..] = words.as_slice() else { return Ok(()) };
        let table = self.known(words::table(table)?)?;
        let (rest, without) = without(rest)?;
        let kinds = kinds(rest)?;
        let carries = |kind: &Kind| matches!(kind, Kind::Set(..) | Kind::Moved(..));
        if without != [false; GROUPS] && !kinds.iter().all(carries) {
            return Err(wrong("nothing is left out of that", "leave 'without' away: only rows have large values"));
        }
        for kind in &kinds {
            if let Some(value) = kind.value()
                && let Some(before) = self.values.insert(value, self.line)
            {
                return Err(wrong(format!("{value} was written in line {before}, too"), "give each change a value of its own"));
            }
        }
        let Some(transaction) = self.scenario.workload.transactions.last_mut() else {
            return Err(wrong("a change outside of a transaction", "write a line such as 'tx 1' before it"));
        };
        transaction.changes.extend(kinds.into_iter().map(|kind| Change { table, kind, without }));
        Ok(())
    }

    fn known(&self, table: Tab) -> Result<Tab, Wrong> {
        if table < self.scenario.workload.tables.len() {
            return Ok(table);
        }
        Err(wrong(format!("there is no table t{table}"), format!("write a line such as 'table t{table} staging' further up")))
    }

    fn step(&mut self, when: &str, then: &str) -> Result<(), Wrong> {
        self.begun = true;
        let when = words::when(&when.split_whitespace().collect::<Vec<_>>())?;
        let then = words::then(&then.split_whitespace().collect::<Vec<_>>())?;
        for table in tables_of(&when, &then) {
            self.known(table)?;
        }
        if let Then::Forgets(stream, _) | Then::Lacks { stream, .. } = &then
            && *stream >= self.scenario.workload.streams()
        {
            return Err(wrong(format!("there is no stream {stream}"), "streams are numbered from 0 here"));
        }
        let step = Step { note: std::mem::take(&mut self.comments), when, then };
        step.fits().map_err(|remedy| wrong(format!("'{}' can't happen when '{}'", step.then, step.when), remedy))?;
        self.scenario.steps.push(step);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Wrong> {
        self.take_about()?;
        if self.scenario.workload.tables.is_empty() {
            return Err(wrong("there is no table", "write a line such as 'table t0 staging'"));
        }
        match self.scenario.options.stopped {
            Some(table) => self.known(table).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// `gap 3 early 20 hidden 40 unlisted 5`, any of them.
fn said_of(words: &[&str], transaction: &mut Transaction) -> Result<(), Wrong> {
    let mut known = DELAYS.iter().zip(delays(transaction));
    for pair in words.chunks(2) {
        match (pair, known.find(|(word, _)| **word == pair[0])) {
            ([_, n], Some((_, delay))) => *delay = number(n)?,
            _ => {
                let right = "write 'tx 12', 'tx 12 a' or 'tx 12 a gap 3 early 20 hidden 40 unlisted 5 late 9', in this order";
                return Err(wrong("there is more than a time and a stream", right));
            }
        }
    }
    Ok(())
}

fn nothing(word: &str) -> Wrong {
    let known = ["finds", "reaches", "stream", "table", "refuse", "tx", "dice"];
    let mut all: Vec<&str> = known.iter().chain(Options::WORDS).copied().collect();
    all.sort_unstable();
    wrong(
        format!("'{word}' begins no line, or not one like this"),
        format!("write an occasion with ': ' behind it, or one of {}", all.join(", ")),
    )
}

fn tables_of(when: &When, then: &Then) -> Vec<Tab> {
    let of_when = match when {
        When::Sends(c) | When::Lands(c) | When::Hears(c) => c.table,
        When::At(_) | When::Begins(_) => None,
    };
    let of_then = match then {
        Then::HearsACopy(_, c) => c.table,
        Then::With(t) | Then::Without(t) | Then::IsSetBack(t, _) | Then::ForeignCommit(t) | Then::SinkIsAway(t, _) => Some(*t),
        Then::Asked(_, request) => match request {
            crate::Request::Pause(t) | crate::Request::Resume(t) | crate::Request::Skip(t) => Some(*t),
            crate::Request::Release(t) | crate::Request::Resnapshot(t) => Some(*t),
            crate::Request::Drain => None,
        },
        _ => None,
    };
    of_when.into_iter().chain(of_then).collect()
}

/// `without a b` at the end of a change.
fn without<'a, 'b>(words: &'a [&'b str]) -> Result<(&'a [&'b str], [bool; GROUPS]), Wrong> {
    let mut left_out = [false; GROUPS];
    let Some(at) = words.iter().position(|word| *word == "without") else { return Ok((words, left_out)) };
    let (kind, groups) = (&words[..at], &words[at + 1..]);
    for word in groups {
        match GROUP_WORDS.iter().position(|group| group == word) {
            Some(group) => left_out[group] = true,
            None => {
                return Err(wrong(
                    format!("there is no large value '{word}'"),
                    "write 'without a', 'without b' or 'without a b'",
                ));
            }
        }
    }
    if groups.is_empty() {
        return Err(wrong("what is left out is missing", "write 'without a', 'without b' or 'without a b'"));
    }
    Ok((kind, left_out))
}

/// Changes that one line can stand for: more than anybody plays.
const CHANGES_MAX: Value = 100_000;

/// `1 = 100`, `1 = 100..139`, `1..40 = 100..139`, `1 gone`, `1 -> 2 = 100`, `truncated`, `schema`, `refused`.
fn kinds(words: &[&str]) -> Result<Vec<Kind>, Wrong> {
    match words {
        [key, "=", value] => {
            let ((key, key_last), (value, value_last)) = (range::<Key>(key)?, range::<Value>(value)?);
            if value_last - value >= CHANGES_MAX {
                return Err(wrong(
                    format!("'{}' are too many changes", words[2]),
                    format!("write {CHANGES_MAX} at most in one line"),
                ));
            }
            let values: Vec<Value> = (value..=value_last).collect();
            if key == key_last {
                return Ok(values.into_iter().map(|value| Kind::Set(key, value)).collect());
            }
            let keys: Vec<Key> = (key..=key_last).collect();
            if keys.len() != values.len() {
                let what = format!("{} keys and {} values", keys.len(), values.len());
                return Err(wrong(what, "give each key one value, or one key many values"));
            }
            Ok(keys.into_iter().zip(values).map(|(key, value)| Kind::Set(key, value)).collect())
        }
        [key, "gone"] => Ok(vec![Kind::Gone(number(key)?)]),
        [from, "->", to, "=", value] => Ok(vec![Kind::Moved(number(from)?, number(to)?, number(value)?)]),
        ["truncated"] => Ok(vec![Kind::Truncated]),
        ["schema"] => Ok(vec![Kind::Schema]),
        ["refused"] => Ok(vec![Kind::Refused]),
        _ => Err(wrong(
            format!("'{}' is no change", words.join(" ")),
            "write '1 = 100', '1..40 = 100..139', '1 gone', '1 -> 2 = 100', 'truncated', 'schema' or 'refused'",
        )),
    }
}

/// `7`, or `7..9` for 7, 8 and 9.
fn range<N: std::str::FromStr + Copy + PartialOrd>(word: &str) -> Result<(N, N), Wrong> {
    match word.split_once("..") {
        None => number(word).map(|n| (n, n)),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            if first < last {
                Ok((first, last))
            } else {
                Err(wrong(format!("'{word}' is empty"), "write the smaller number first"))
            }
        }
    }
}
