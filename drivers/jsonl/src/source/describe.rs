//! Tables as their events describe them: types from the schema part, from the pipeline file, or from the values seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Error, Kind, Sketch, SourceTable, TableRequest};
use kernel::id::TableName;
use rows::{Column, TableSchema, Type};

use super::JsonlSource;
use super::survey::{Seen, Survey};
use crate::reader::announced_columns;
use crate::values::infer::Told;

/// A table, or what is wrong with it in words.
type Described = Result<SourceTable, Problem>;

/// Why a table cannot be described.
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) what: String,
    pub(super) remedy: &'static str,
    /// May an event that comes later change that?
    pub(super) may_come: bool,
}

pub(super) fn describe(
    source: &JsonlSource,
    tables: &[TableRequest],
    stored: &BTreeMap<TableName, Arc<TableSchema>>,
) -> Result<Vec<SourceTable>, Error> {
    let new: Vec<_> =
        tables.iter().filter(|request| !stored.contains_key(&request.table)).map(|request| request.table.as_str()).collect();
    let survey = if new.is_empty() { Survey::default() } else { Survey::of(source, &new, u64::MAX)? };
    let mut described = Vec::new();
    for request in tables {
        // A copy was made under this schema; what differs from it now, the log says where it does.
        if let Some(schema) = stored.get(&request.table) {
            described.push(Ok(SourceTable { schema: schema.clone(), inferred: false }));
            continue;
        }
        let seen = survey.table(request.table.as_str());
        match (table(request, seen), untold(request, seen)) {
            (Err(problem), untold) => described.extend(beside(problem, untold).into_iter().map(Err)),
            (Ok(table), untold) if untold.is_empty() => described.push(Ok(table)),
            (Ok(_), untold) => described.extend(untold.into_iter().map(Err)),
        }
    }
    all(source, &survey, described)
}

/// The tables as far as anything tells them: a column without a type is no error here.
pub(super) fn sketch(source: &JsonlSource, tables: &[TableRequest]) -> Result<Vec<Sketch>, Error> {
    let names: Vec<_> = tables.iter().map(|request| request.table.as_str()).collect();
    let survey = Survey::of(source, &names, u64::MAX)?;
    let described = tables.iter().map(|request| table(request, survey.table(request.table.as_str()))).collect();
    Ok(all(source, &survey, described)?.into_iter().map(Sketch::from).collect())
}

/// The columns that the pipeline gives no type and nothing else does. Without one no sink can hold them, and a reader would
/// have to guess.
pub(super) fn untold(request: &TableRequest, seen: Option<&Seen>) -> Vec<Problem> {
    let (columns, _) = columns(request, seen);
    let undeclared = columns.into_iter().filter(|column| !request.columns.contains_key(&column.name));
    let problem = |Column { name, kind, .. }| {
        let Type::Unknown(why) = kind else { return None };
        let since = seen.and_then(|seen| seen.inference.columns().find(|told| told.name == name)?.untold_since);
        let shows = since.map(|place| format!("; {place} is the first that shows it")).unwrap_or_default();
        Some(Problem {
            code: "jsonl-type-unknown",
            what: format!("table {}: the type of column '{name}' is not known: {why}{shows}", request.table),
            remedy: "declare the column with the type that it is to have ('tables[].columns'), or correct the lines that disagree",
            may_come: false,
        })
    };
    undeclared.filter_map(problem).collect()
}

/// All tables, or one error that names every problem.
fn all(source: &JsonlSource, survey: &Survey, described: Vec<Described>) -> Result<Vec<SourceTable>, Error> {
    let problems: Vec<_> = described.iter().filter_map(|described| described.as_ref().err()).collect();
    let Some(first) = problems.first() else { return Ok(described.into_iter().flatten().collect()) };
    let mut what = problems.iter().map(|problem| problem.what.as_str()).collect::<Vec<_>>().join("; ");
    if let Some(unreadable) = &survey.unreadable {
        what += &format!("; the log was read up to a line that cannot be read: {}", unreadable.what);
    }
    let waits = source.settings.behaviour.follow && problems.iter().all(|problem| problem.may_come);
    let kind = if waits { Kind::Transient } else { Kind::Config };
    Err(Error::new(kind, first.code, what, first.remedy))
}

/// What is wrong with a table and its columns. Of a key without a type it is the type that is said.
pub(super) fn beside(problem: Problem, untold: Vec<Problem>) -> Vec<Problem> {
    let is_about_types = problem.code == "jsonl-table" && !untold.is_empty();
    let problem = (!is_about_types).then_some(problem);
    problem.into_iter().chain(untold).collect()
}

pub(super) fn table(request: &TableRequest, seen: Option<&Seen>) -> Described {
    let name = &request.table;
    let (mut columns, inferred) = columns(request, seen);
    let key_names = match (&request.primary_key, seen.and_then(|seen| seen.key.as_ref())) {
        (Some(names), _) => names.as_slice(),
        (None, Some(names)) => names.as_slice(),
        (None, None) => &[],
    };
    let place = |wanted: &String| columns.iter().position(|column| column.name == *wanted);
    let key: Vec<_> = key_names.iter().filter_map(place).collect();
    if seen.is_none_or(|seen| seen.events == 0) && (columns.is_empty() || key.len() < key_names.len()) {
        return Err(Problem {
            code: "jsonl-table-unseen",
            what: format!("table {name}: the log holds no event with a row of it, so its columns are not known"),
            remedy: "check the table's name ('schema.table', or 'db.table' where events have no schema), or declare its columns with their types ('tables[].columns')",
            may_come: true,
        });
    }
    if key.len() < key_names.len() {
        let missing: Vec<_> = key_names.iter().filter(|wanted| place(wanted).is_none()).map(String::as_str).collect();
        let there: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        return Err(Problem {
            code: "jsonl-key-unseen",
            what: format!(
                "table {name}: the key names {}, which no event has; its columns are {}",
                missing.join(", "),
                there.join(", ")
            ),
            remedy: "correct 'tables[].primaryKey'",
            may_come: false,
        });
    }
    for place in &key {
        columns[*place].nullable = false;
    }
    match TableSchema::new(name.clone(), columns, key) {
        Ok(schema) => Ok(SourceTable { schema: Arc::new(schema), inferred }),
        Err(wrong) => Err(Problem {
            code: "jsonl-table",
            what: wrong.to_string(),
            remedy: "declare the column with another type ('tables[].columns'), or name other key columns ('tables[].primaryKey')",
            may_come: false,
        }),
    }
}

/// A table's columns, and whether a type was guessed.
fn columns(request: &TableRequest, seen: Option<&Seen>) -> (Vec<Column>, bool) {
    let mut inferred = false;
    let mut columns = match seen {
        None => Vec::new(),
        Some(Seen { schema: Some(part), .. }) => announced_columns(part, &request.columns),
        Some(seen) => {
            let column = |told: Told<'_>| {
                let declared = request.columns.get(told.name).cloned();
                inferred |= declared.is_none();
                Column::new(told.name, declared.unwrap_or(told.kind), true)
            };
            seen.inference.columns().map(column).collect()
        }
    };
    let known: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let declared = request.columns.iter().filter(|(name, _)| !known.contains(name));
    columns.extend(declared.map(|(name, kind)| Column::new(name.clone(), kind.clone(), true)));
    (columns, inferred)
}
