//! The words of occasions, steps and requests, both ways: what is printed in this file is read in this file.

use std::fmt;

use crate::step::{Command, Request, Tab, Then, What, When};
use crate::workload::{Join, Sink, Table, Truncate};

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.what.word())?;
        if let Some(table) = self.table {
            write!(f, "t{table} ")?;
        }
        write!(f, "{}", self.nth)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::At(time) => write!(f, "at {time}"),
            When::Begins(process) => write!(f, "p{process} begins"),
            When::Sends(command) => write!(f, "p{} sends {command}", command.process),
            When::Lands(command) => write!(f, "p{} landed {command}", command.process),
            When::Hears(command) => write!(f, "p{} hears {command}", command.process),
        }
    }
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Then::Takes(n) => write!(f, "takes {n}"),
            Then::LandsAt(at) => write!(f, "lands at {at}"),
            Then::IsLost => write!(f, "is lost"),
            Then::AnswerIsLost => write!(f, "its answer is lost"),
            Then::LandsLate(n) => write!(f, "lands {n} late"),
            Then::SenderDies => write!(f, "the sender dies"),
            Then::Fails => write!(f, "fails"),
            Then::IsCalledAConflict => write!(f, "is called a conflict"),
            Then::Lies => write!(f, "lies"),
            Then::LosesTheSession => write!(f, "loses the session"),
            Then::AnswerTakes(n) => write!(f, "the answer takes {n}"),
            Then::Dies { process, with_its_mail: false } => write!(f, "p{process} dies"),
            Then::Dies { process, with_its_mail: true } => write!(f, "p{process} dies with its mail"),
            Then::StandsStill(process, n) => write!(f, "p{process} stands still for {n}"),
            Then::HearsACopy(process, of) => write!(f, "p{process} hears a copy of p{} {of}", of.process),
            Then::After(n) => write!(f, "after {n}"),
            Then::UntilCurrent => write!(f, "until current"),
            Then::With(table) => write!(f, "with t{table}"),
            Then::Without(table) => write!(f, "without t{table}"),
            Then::Asked(process, request) => write!(f, "p{process} is asked to {request}"),
            Then::IsSetBack(table, n) => write!(f, "t{table} is set back by {n}"),
            Then::ForeignCommit(table) => write!(f, "t{table} gets a foreign commit"),
            Then::SinkIsAway(table, n) => write!(f, "t{table} is away for {n}"),
            Then::SourceIsAway(n) => write!(f, "the source is away for {n}"),
            Then::Unreadable(n) => write!(f, "the log is unreadable for {n}"),
            Then::AnotherLog(n) => write!(f, "the log is another for {n}"),
            Then::CutShort { by, lasts } => write!(f, "the log is cut short by {by} for {lasts}"),
            Then::AnotherServer => write!(f, "the log is read from another server"),
            Then::Lacks { stream, last, lasts } => {
                write!(f, "the log is read from a server that lacks {last} of stream {stream} for {lasts}")
            }
            Then::Forgets(stream, n) => write!(f, "the source forgets {n} of stream {stream}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Pause(table) => write!(f, "pause t{table}"),
            Request::Resume(table) => write!(f, "resume t{table}"),
            Request::Skip(table) => write!(f, "skip t{table}"),
            Request::Release(table) => write!(f, "release t{table}"),
            Request::Resnapshot(table) => write!(f, "copy t{table} anew"),
            Request::Drain => write!(f, "drain"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.sink {
            Sink::Staging => "staging",
            Sink::Versioned => "versioned",
        })?;
        if !self.keyed {
            f.write_str(" keyless")?;
        }
        f.write_str(match self.join {
            Join::Beginning => "",
            Join::Now => " from-now",
            Join::Snapshot => " from-snapshot",
        })?;
        f.write_str(match self.truncate {
            Truncate::Propagates => "",
            Truncate::Ignored => " truncate-ignored",
            Truncate::Fails => " truncate-fails",
        })?;
        f.write_str(if self.anew { " anew-at-start" } else { "" })
    }
}

/// What is wrong with some words, and what would be right.
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) remedy: String,
}

pub(super) fn wrong(what: impl Into<String>, remedy: impl Into<String>) -> Wrong {
    Wrong { what: what.into(), remedy: remedy.into() }
}

pub(super) fn number<N: std::str::FromStr>(word: &str) -> Result<N, Wrong> {
    word.parse().map_err(|_| wrong(format!("'{word}' is no number, or too large a one"), "write digits alone"))
}

pub(super) fn table(word: &str) -> Result<Tab, Wrong> {
    match word.strip_prefix('t').map(str::parse) {
        Some(Ok(table)) => Ok(table),
        _ => Err(wrong(format!("'{word}' is no table"), "tables are called t0, t1 and so on")),
    }
}

pub(super) fn process(word: &str) -> Result<usize, Wrong> {
    match word.strip_prefix('p').map(str::parse) {
        Some(Ok(process)) => Ok(process),
        _ => Err(wrong(format!("'{word}' is no process"), "processes are called p0, p1 and so on, as they begin")),
    }
}

/// `commit t0 2`, of a process.
pub(super) fn command(process: usize, words: &[&str]) -> Result<Command, Wrong> {
    let [kind, rest @ ..] = words else { return Err(wrong("a command is missing", "for example: p0 sends record 2")) };
    let Some(what) = What::ALL.into_iter().find(|w| w.word() == *kind) else {
        let all: Vec<_> = What::ALL.iter().map(|w| w.word()).collect();
        return Err(wrong(format!("there is no command '{kind}'"), format!("write one of {}", all.join(", "))));
    };
    let (of, nth) = match (what.is_of_a_table(), rest) {
        (true, [of, nth]) => (Some(table(of)?), number(nth)?),
        (false, [nth]) => (None, number(nth)?),
        (true, _) => return Err(wrong("which one is not clear", format!("name its table and its number: {kind} t0 1"))),
        (false, _) => return Err(wrong("which one is not clear", format!("name its number alone: {kind} 1"))),
    };
    if nth == 0 {
        return Err(wrong("there is no command number 0", "they are counted from 1"));
    }
    Ok(Command { process, what, table: of, nth })
}

pub(super) fn when(words: &[&str]) -> Result<When, Wrong> {
    match words {
        ["at", time] => Ok(When::At(number(time)?)),
        [p, "begins"] => Ok(When::Begins(process(p)?)),
        [p, "sends", rest @ ..] => Ok(When::Sends(command(process(p)?, rest)?)),
        [p, "landed", rest @ ..] => Ok(When::Lands(command(process(p)?, rest)?)),
        [p, "hears", rest @ ..] => Ok(When::Hears(command(process(p)?, rest)?)),
        _ => Err(wrong(
            format!("'{}' is no occasion", words.join(" ")),
            "write 'at 100', 'p0 begins', 'p0 sends commit t0 1', 'p0 landed record 2' or 'p0 hears commit t0 1'",
        )),
    }
}

pub(super) fn then(words: &[&str]) -> Result<Then, Wrong> {
    Ok(match words {
        ["takes", n] => Then::Takes(number(n)?),
        ["lands", "at", at] => Then::LandsAt(number(at)?),
        ["is", "lost"] => Then::IsLost,
        ["its", "answer", "is", "lost"] => Then::AnswerIsLost,
        ["lands", n, "late"] => Then::LandsLate(number(n)?),
        ["the", "sender", "dies"] => Then::SenderDies,
        ["fails"] => Then::Fails,
        ["is", "called", "a", "conflict"] => Then::IsCalledAConflict,
        ["lies"] => Then::Lies,
        ["loses", "the", "session"] => Then::LosesTheSession,
        ["the", "answer", "takes", n] => Then::AnswerTakes(number(n)?),
        ["after", n] => Then::After(number(n)?),
        ["until", "current"] => Then::UntilCurrent,
        ["with", t] => Then::With(table(t)?),
        ["without", t] => Then::Without(table(t)?),
        ["the", "source", "is", "away", "for", n] => Then::SourceIsAway(number(n)?),
        ["the", "log", "is", "unreadable", "for", n] => Then::Unreadable(number(n)?),
        ["the", "log", "is", "another", "for", n] => Then::AnotherLog(number(n)?),
        ["the", "log", "is", "cut", "short", "by", by, "for", n] => Then::CutShort { by: number(by)?, lasts: number(n)? },
        ["the", "log", "is", "read", "from", "another", "server"] => Then::AnotherServer,
        ["the", "log", "is", "read", "from", "a", "server", "that", "lacks", last, "of", "stream", s, "for", n] => {
            Then::Lacks { stream: number(s)?, last: number(last)?, lasts: number(n)? }
        }
        ["the", "source", "forgets", n, "of", "stream", s] => Then::Forgets(number(s)?, number(n)?),
        [p, "dies"] => Then::Dies { process: process(p)?, with_its_mail: false },
        [p, "dies", "with", "its", "mail"] => Then::Dies { process: process(p)?, with_its_mail: true },
        [p, "stands", "still", "for", n] => Then::StandsStill(process(p)?, number(n)?),
        [p, "hears", "a", "copy", "of", of, rest @ ..] => Then::HearsACopy(process(p)?, command(process(of)?, rest)?),
        [p, "is", "asked", "to", rest @ ..] => Then::Asked(process(p)?, request(rest)?),
        [t, "is", "set", "back", "by", n] => Then::IsSetBack(table(t)?, number(n)?),
        [t, "gets", "a", "foreign", "commit"] => Then::ForeignCommit(table(t)?),
        [t, "is", "away", "for", n] => Then::SinkIsAway(table(t)?, number(n)?),
        _ => {
            let what = format!("'{}' is nothing that can happen", words.join(" "));
            return Err(wrong(what, "the page on simulation lists what can, with the words for it"));
        }
    })
}

fn request(words: &[&str]) -> Result<Request, Wrong> {
    Ok(match words {
        ["pause", t] => Request::Pause(table(t)?),
        ["resume", t] => Request::Resume(table(t)?),
        ["skip", t] => Request::Skip(table(t)?),
        ["release", t] => Request::Release(table(t)?),
        ["copy", t, "anew"] => Request::Resnapshot(table(t)?),
        ["drain"] => Request::Drain,
        _ => {
            return Err(wrong(
                format!("nobody asks to '{}'", words.join(" ")),
                "ask to pause, resume, skip or release a table, to copy t0 anew, or to drain",
            ));
        }
    })
}

pub(super) fn table_kind(words: &[&str]) -> Result<Table, Wrong> {
    let mut table = Table::of(Sink::Staging);
    let [sink, rest @ ..] = words else {
        return Err(wrong("its sink is missing", "write 'table t0 staging' or 'table t0 versioned'"));
    };
    table.sink = match *sink {
        "staging" => Sink::Staging,
        "versioned" => Sink::Versioned,
        _ => return Err(wrong(format!("there is no sink '{sink}'"), "write staging or versioned")),
    };
    for word in rest {
        match *word {
            "keyless" => table.keyed = false,
            "from-now" => table.join = Join::Now,
            "from-snapshot" => table.join = Join::Snapshot,
            "truncate-ignored" => table.truncate = Truncate::Ignored,
            "truncate-fails" => table.truncate = Truncate::Fails,
            "anew-at-start" => table.anew = true,
            _ => {
                let right =
                    "write keyless, from-now, from-snapshot, truncate-ignored, truncate-fails or anew-at-start, or nothing";
                return Err(wrong(format!("a table can't be '{word}'"), right));
            }
        }
    }
    Ok(table)
}
