//! Tables as the catalogue and the publication describe them.
//!
//! Columns are those that the publication sends. Only key columns are said to be never null: the log does not tell when a column
//! loses its NOT NULL, and a copy must not break by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Error, Kind, SourceTable, TableRequest};
use kernel::id::TableName;
use rows::{Column, TableSchema};

use super::remedies::{self, frozen, leave_out, unread, whole_old_rows};
use super::{Place, prepare};
use crate::catalog::{self, CatalogTable, IDENTITY_WORDS, Publication, Published};
use crate::settings::SourceSettings;
use crate::values::{PgType, Types, holds, natural};
use crate::wire::identifier;

/// What is wrong with one table.
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) what: String,
    pub(super) remedy: String,
}

/// What the server knows that describing needs.
pub(super) struct Known {
    pub(super) version: u32,
    pub(super) types: Types,
    pub(super) tables: BTreeMap<TableName, CatalogTable>,
    pub(super) publication: Option<Publication>,
}

impl Known {
    /// Does the publication send generated columns without being asked for each? One that is not there yet is made so.
    pub(super) fn sends_generated(&self) -> bool {
        self.publication.as_ref().is_none_or(|publication| publication.generated)
    }

    /// What the publication sends of a table that is in it.
    pub(super) fn published(&self, table: &TableName) -> Option<&Published> {
        self.publication.as_ref()?.tables.get(table)
    }

    pub(super) async fn read(place: &Place, tables: &[TableRequest]) -> Result<Self, Error> {
        let mut connection = place.sql().await?;
        let failed = |e| place.failed("looking at the catalogue", e);
        let version = catalog::server(&mut connection).await.map_err(failed)?.version;
        let names: Vec<&TableName> = tables.iter().map(|request| &request.table).collect();
        let known = Self {
            version,
            types: catalog::types(&mut connection).await.map_err(failed)?,
            tables: catalog::tables(&mut connection, &names).await.map_err(failed)?,
            publication: catalog::publication(&mut connection, &place.settings.publication, version).await.map_err(failed)?,
        };
        connection.close().await;
        Ok(known)
    }
}

pub(super) async fn describe(
    place: &Place,
    tables: &[TableRequest],
    stored: &BTreeMap<TableName, Arc<TableSchema>>,
) -> Result<Vec<SourceTable>, Error> {
    let known = Known::read(place, tables).await?;
    let describe = |request: &TableRequest| {
        let described = table(&place.settings, &known, request)?;
        // A copy was made under this schema; what differs from it now, the log says where it does.
        let schema = stored.get(&request.table).cloned().unwrap_or_else(|| Arc::new(described));
        Ok(SourceTable { schema, inferred: false })
    };
    let described: Vec<Result<SourceTable, Problem>> = tables.iter().map(describe).collect();
    let problems: Vec<&Problem> = described.iter().filter_map(|table| table.as_ref().err()).collect();
    refuse(&problems)?;
    Ok(described.into_iter().flatten().collect())
}

/// One error that names every problem, if there are any.
pub(super) fn refuse(problems: &[&Problem]) -> Result<(), Error> {
    let Some(first) = problems.first() else { return Ok(()) };
    let joined = |of: fn(&Problem) -> &str| problems.iter().map(|problem| of(problem)).collect::<Vec<_>>().join("; ");
    Err(Error::new(Kind::Config, first.code, joined(|problem| &problem.what), joined(|problem| &problem.remedy)))
}

/// What speaks against publishing a table: after it the server would refuse what the application does, or nobody could read it.
pub(super) fn unpublishable(settings: &SourceSettings, known: &Known, request: &TableRequest) -> Option<Problem> {
    if let Err(problem) = table(settings, known, request) {
        return Some(problem);
    }
    let found = known.tables.get(&request.table)?;
    if let Some(problem) = frozen(settings, known, found, &request.table) {
        return Some(problem);
    }
    if !found.is_frozen_by_publishing() {
        return None;
    }
    let identity = IDENTITY_WORDS.iter().find(|(identity, _)| *identity == found.identity).map_or("", |(_, word)| *word);
    let name = &request.table;
    Some(Problem {
        code: "postgres-identity",
        what: format!(
            "table {name}: its replica identity is {identity}, and it has none: once it is published the server refuses UPDATE and \
             DELETE of it, so it is not added to the publication"
        ),
        remedy: format!(
            "{} or give it a primary key. If its rows never change: {}",
            whole_old_rows(settings, known, found, name, remedies::by_index),
            prepare::add_statement(&settings.publication, name.as_str())
        ),
    })
}

/// What is wrong with a column that the server can't send.
pub(super) fn stops(column: &str, of: &str) -> String {
    format!(
        "column '{column}' is of the type {of}, a part of which the server cannot send in binary: at the first such value the log stops, \
         for all tables of the publication"
    )
}

/// A table, or the first thing that is wrong with it.
pub(super) fn table(settings: &SourceSettings, known: &Known, request: &TableRequest) -> Result<TableSchema, Problem> {
    let name = &request.table;
    let problem = |code, what: String, remedy: String| Problem { code, what: format!("table {name}: {what}"), remedy };
    let Some(found) = known.tables.get(name) else {
        return Err(problem(
            "postgres-table",
            "the database has no such table".into(),
            "correct 'tables[].source': the schema, a point, the table's name, as the catalogue writes them".into(),
        ));
    };
    if !matches!(found.kind, b'r' | b'p') || found.persistence != b'p' {
        let what = "it is no permanent table, so that the log has none of its rows".to_owned();
        return Err(problem("postgres-table", what, "name the tables that it is made of, or make it a logged table".into()));
    }
    let published = known.published(name);
    if published.is_none() && !settings.create {
        let publication = &settings.publication;
        let (what, remedy) = match &known.publication {
            None => (
                "there is no publication",
                prepare::publication_statement(publication, [name.as_str()].into_iter(), known.version),
            ),
            Some(_) => ("it is not in the publication", prepare::add_statement(publication, name.as_str())),
        };
        return Err(problem("postgres-publication", format!("{what} '{publication}'"), remedy));
    }
    let mut columns = Vec::new();
    for column in found.columns.iter().filter(|column| catalog::sends(published, column, known.version, known.sends_generated()))
    {
        let of = known.types.resolve(column.type_id, column.modifier);
        if let PgType::Unsendable(of) = &of {
            return Err(problem("postgres-type", stops(&column.name, of), leave_out(settings, known, name)));
        }
        let kind = match request.columns.get(&column.name) {
            Some(declared) if holds(&of, declared) => declared.clone(),
            Some(declared) => {
                let what = format!("column '{}' is declared as {declared}, which does not hold its values", column.name);
                let remedy = match natural(&of) {
                    rows::Type::Unknown(_) => unread(settings, known, name, &of),
                    rows::Type::String => "declare it as `string`".into(),
                    kind => format!("declare it as `{kind}`, or as `string`"),
                };
                return Err(problem("postgres-type", what, remedy));
            }
            None => natural(&of),
        };
        columns.push(Column { name: column.name.clone(), kind, nullable: true, initial: None, identity: Some(column.number) });
    }
    let key_names = match &request.primary_key {
        Some(names) => names.clone(),
        None if found.primary_key.is_empty() => found.identity_index.clone(),
        None => found.primary_key.clone(),
    };
    if found.is_unique_late(&key_names) {
        let what =
            "its key is deferrable: between two of its checks two rows can have one key, and the log does not tell which of \
                    them is changed"
                .to_owned();
        let remedy = format!(
            "make the key again without DEFERRABLE: ALTER TABLE {0} DROP CONSTRAINT ..., ADD {2} ({1}); or an index beside it, \
             CREATE UNIQUE INDEX CONCURRENTLY ... ON {0} ({1}); and ALTER TABLE {0} REPLICA IDENTITY USING INDEX ...;",
            prepare::table(name.as_str()),
            key_names.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", "),
            if key_names == found.primary_key { "PRIMARY KEY" } else { "UNIQUE" },
        );
        return Err(problem("postgres-deferrable-key", what, remedy));
    }
    let mut key = Vec::new();
    for wanted in &key_names {
        let Some(place) = columns.iter().position(|column| column.name == *wanted) else {
            let there: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let what = format!("the key names '{wanted}', which is not sent; its columns are {}", there.join(", "));
            return Err(problem(
                "postgres-key",
                what,
                "correct 'tables[].primaryKey', or the publication's list of columns".into(),
            ));
        };
        if !found.tells(wanted) {
            let identity = IDENTITY_WORDS.iter().find(|(identity, _)| *identity == found.identity).map_or("", |(_, word)| *word);
            let what = format!("its replica identity is {identity}, so that old rows do not tell the key column '{wanted}'");
            return Err(problem("postgres-identity", what, whole_old_rows(settings, known, found, name, remedies::by_index)));
        }
        columns[place].nullable = false;
        key.push(place);
    }
    TableSchema::new(name.clone(), columns, key).map_err(|wrong| Problem {
        code: "postgres-table",
        what: wrong.to_string(),
        remedy: "declare the column with another type ('tables[].columns'), or name other key columns ('tables[].primaryKey')"
            .into(),
    })
}
