//! Tables as their events describe them: types from the schema part, from the pipeline file, or from the values seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Error, Kind, SourceTable, TableRequest};
use kernel::id::TableName;
use rows::{Column, TableSchema};

use super::JsonlSource;
use super::survey::{Seen, Survey};
use crate::reader::announced_columns;

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
    let described = tables.iter().map(|request| match stored.get(&request.table) {
        // A copy was made under this schema; what differs from it now, the log says where it does.
        Some(schema) => Ok(SourceTable { schema: schema.clone(), inferred: false }),
        None => table(request, survey.table(request.table.as_str())),
    });
    all(source, &survey, described.collect())
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
            let column = |(name, kind): (&str, _)| {
                let declared = request.columns.get(name).cloned();
                inferred |= declared.is_none();
                Column { name: name.to_owned(), kind: declared.unwrap_or(kind), nullable: true }
            };
            seen.inference.columns().map(column).collect()
        }
    };
    let known: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let declared = request.columns.iter().filter(|(name, _)| !known.contains(name));
    columns.extend(declared.map(|(name, kind)| Column { name: name.clone(), kind: kind.clone(), nullable: true }));
    (columns, inferred)
}
