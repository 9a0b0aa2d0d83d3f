//! What would go wrong, found before anything is written: files, rights, tables, keys, types, and the first rows themselves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use contract::{Error, Finding, Kind, Limit, LogEvent, Severity, Start, TableRequest};
use rows::{Column, TableSchema};

use super::survey::Survey;
use super::{JsonlSource, describe, no_files};
use crate::files;
use crate::reader::Breaks;
use crate::settings::OnDecodeError;

/// How many events are searched for the pipeline's tables.
const SURVEY_EVENTS_MAX: u64 = 100_000;

/// How many rows are read as a run would read them.
const TRIAL_ROWS: usize = 10_000;

pub(super) fn findings(source: &JsonlSource, tables: &[TableRequest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    match source.settings.location.list() {
        Err(error) => return vec![finding(Severity::Error, "source.path", &error)],
        Ok(found) if found.is_empty() => return vec![nothing_there(source)],
        Ok(found) => {
            let unreadable = found.iter().filter_map(|file| files::open(&file.path).err().map(|error| (file, error)));
            findings.extend(unreadable.map(|(file, error)| finding(Severity::Error, file.stream.as_str(), &error)));
        }
    }
    if !findings.is_empty() {
        return findings;
    }
    let names: Vec<_> = tables.iter().map(|request| request.table.as_str()).collect();
    match Survey::of(source, &names, SURVEY_EVENTS_MAX) {
        Err(error) => findings.push(finding(Severity::Error, "source.path", &error)),
        Ok(survey) => {
            let described: Vec<_> = tables.iter().filter_map(|request| table(request, &survey, &mut findings)).collect();
            findings.extend(survey.unreadable.as_ref().map(|error| unreadable_line(source, error, survey.skipped)));
            findings.extend(trial(source, &described));
        }
    }
    findings
}

fn nothing_there(source: &JsonlSource) -> Finding {
    let location = &source.settings.location;
    let mut found = finding(Severity::Error, "source.path", &no_files(location.text(), location.is_glob()));
    if source.settings.behaviour.follow {
        found.severity = Severity::Warning;
        found.remedy = "nothing, if the file is still to come: a run waits for it".to_owned();
    }
    found
}

/// A run stops at such a line, or passes over it.
fn unreadable_line(source: &JsonlSource, error: &Error, lines: u64) -> Finding {
    let mut found = finding(Severity::Error, "source.path", error);
    if source.settings.behaviour.on_decode_error == OnDecodeError::Skip {
        found.severity = Severity::Warning;
        found.what = format!("{lines} of the first lines will be passed over, the first is {}", found.what);
        found.remedy = "correct or remove the lines if they hold events".to_owned();
    }
    found
}

/// What the survey says of a table, and its schema if there is one.
fn table(request: &TableRequest, survey: &Survey, findings: &mut Vec<Finding>) -> Option<Arc<TableSchema>> {
    let seen = survey.table(request.table.as_str());
    let subject = request.table.to_string();
    let mut found = |severity, code, what: String, remedy: &str| {
        findings.push(Finding { severity, code, subject: subject.clone(), what, remedy: remedy.to_owned() });
    };
    if seen.is_none_or(|seen| seen.events == 0) {
        found(
            Severity::Warning,
            "jsonl-table-unseen",
            format!("the first {} events of the log hold no row of {}", survey.events, request.table),
            "check the table's name ('schema.table', or 'db.table' where events have no schema)",
        );
    }
    let described = match describe::table(request, seen) {
        Ok(described) => described,
        Err(problem) => {
            for problem in describe::beside(problem, describe::untold(request, seen)) {
                found(Severity::Error, problem.code, problem.what, problem.remedy);
            }
            return None;
        }
    };
    if described.schema.key.is_empty() {
        found(
            Severity::Info,
            "jsonl-no-key",
            format!("table {} has no key: its events can be appended, not applied by key", request.table),
            "name its key ('tables[].primaryKey') to write by key",
        );
    }
    let undeclared = |column: &&Column| !request.columns.contains_key(&column.name);
    if described.inferred {
        let guessed: Vec<_> =
            described.schema.columns.iter().filter(undeclared).map(|column| format!("{} {}", column.name, column.kind)).collect();
        let what = format!("table {}: types inferred from values: {}", request.table, guessed.join(", "));
        found(Severity::Info, "jsonl-inferred", what, "declare them ('tables[].columns') where another type is meant");
    }
    for problem in describe::untold(request, seen) {
        found(Severity::Error, problem.code, problem.what, problem.remedy);
    }
    Some(described.schema)
}

/// Reads the first rows as a run would: the first that is refused of each table. (A line that cannot be read was found before.)
fn trial(source: &JsonlSource, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut refused = BTreeSet::new();
    let mut core = match source.core(&Start::default(), tables, Breaks::default(), Arc::default()) {
        Ok(core) => core,
        Err(error) => return vec![finding(Severity::Error, "source.path", &error)],
    };
    let mut rows = 0;
    while rows < TRIAL_ROWS {
        let read = match core.read(Limit { rows: TRIAL_ROWS - rows, bytes: 64 << 20 }, Instant::now(), 0) {
            Ok(read) => read,
            Err(error) if error.kind == Kind::Poison => break,
            Err(error) => {
                findings.push(finding(Severity::Error, "source.path", &error));
                break;
            }
        };
        for event in &read.events {
            match event {
                LogEvent::Rows { rows: more, .. } => rows += more.len(),
                LogEvent::Refused { table, error, .. } if refused.insert(table.clone()) => {
                    findings.push(finding(Severity::Error, table.as_str(), error));
                }
                _ => {}
            }
        }
        if read.finished || read.events.is_empty() {
            break;
        }
    }
    findings
}

fn finding(severity: Severity, subject: &str, error: &Error) -> Finding {
    Finding { severity, code: error.code, subject: subject.to_owned(), what: error.what.clone(), remedy: error.remedy.clone() }
}
