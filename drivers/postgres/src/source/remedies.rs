//! Statements that mend what the publication and a table's replica identity make of each other. Each must be one that the server takes, and
//! after which the application goes on: of a table whose old rows are whole the server refuses UPDATE and DELETE as soon as the publication
//! does not send all of its columns, or names them.

use kernel::id::TableName;
use rows::Type;

use super::describe::{Known, Problem};
use super::prepare;
use crate::catalog::{self, CatalogColumn, CatalogTable};
use crate::pgoutput::Identity;
use crate::settings::SourceSettings;
use crate::values::{PgType, holds};
use crate::wire::identifier;

/// What helps where a column can't be read: the publication leaves it out.
pub(super) fn leave_out(settings: &SourceSettings, known: &Known, table: &TableName) -> String {
    let (publication, sql) = (identifier(&settings.publication), prepare::table(table.as_str()));
    let filter = known.published(table).and_then(|published| published.filter.as_ref());
    let listed = format!("{sql} (...){}", filtered(filter));
    let created = |tables: &str| prepare::create_statement(&settings.publication, tables, known.version);
    let (statement, why) = match &known.publication {
        None => (created(&listed), ""),
        Some(found) if !found.is_by_name => (
            format!("BEGIN; DROP PUBLICATION {publication}; {} COMMIT;", created(&format!("{listed}, ..."))),
            "it is of all tables, or of a schema's, and takes no list of columns: make it again, by the names of its tables; ",
        ),
        Some(found) if !found.tables.contains_key(table) => (format!("ALTER PUBLICATION {publication} ADD TABLE {listed};"), ""),
        Some(_) => (
            format!(
                "BEGIN; ALTER PUBLICATION {publication} DROP TABLE {sql}; ALTER PUBLICATION {publication} ADD TABLE {listed}; COMMIT;"
            ),
            "",
        ),
    };
    let key = if filter.is_some() { "; its filter may then use columns of the key alone" } else { "" };
    format!(
        "publish the table without it, by naming its other columns (15 and later): {statement} ({why}where its replica identity is FULL, first \
         ALTER TABLE {sql} REPLICA IDENTITY DEFAULT; since with a list of columns the server would refuse UPDATE and DELETE{key})"
    )
}

/// What helps where a column's type is not read: its bytes, as far as those can be had, or to leave it out.
pub(super) fn unread(settings: &SourceSettings, known: &Known, table: &TableName, of: &PgType) -> String {
    let as_bytes = [Type::Binary, Type::List(Box::new(Type::Binary))].into_iter().find(|kind| holds(of, kind));
    let as_bytes = as_bytes
        .map(|kind| format!("declare it as `{kind}` to get its bytes as the server sends them ('tables[].columns'), or "));
    format!("{}{}", as_bytes.unwrap_or_default(), leave_out(settings, known, table))
}

/// A filter of rows, as a publication has it behind a table.
fn filtered(filter: Option<&String>) -> String {
    filter.map(|filter| format!(" WHERE ({filter})")).unwrap_or_default()
}

/// What speaks against a table whose old rows are whole: the server refuses changes of it where they are not sent whole. It refuses every
/// list of columns, and from 18 on generated columns that are not sent.
pub(super) fn frozen(settings: &SourceSettings, known: &Known, found: &CatalogTable, name: &TableName) -> Option<Problem> {
    if found.identity != Identity::Full {
        return None;
    }
    let published = known.published(name);
    let is_listed = published.is_some_and(|published| published.is_listed);
    let is_sent = |column: &CatalogColumn| catalog::sends(published, column, known.version, known.sends_generated());
    let minds = is_listed || known.version >= catalog::GENERATED_PUBLISHED;
    let untold: Vec<&CatalogColumn> = found.columns.iter().filter(|column| minds && !is_sent(column)).collect();
    if untold.is_empty() && !is_listed {
        return None;
    }
    let (sql, publication) = (prepare::table(name.as_str()), identifier(&settings.publication));
    let key_is_sent = found.columns.iter().filter(|column| found.primary_key.contains(&column.name)).all(is_sent);
    let narrow = match found.primary_is_immediate && key_is_sent {
        true => format!("ALTER TABLE {sql} REPLICA IDENTITY DEFAULT; (the primary key), or USING INDEX ...;"),
        false => format!("ALTER TABLE {sql} REPLICA IDENTITY USING INDEX ...; (of columns that are published)"),
    };
    let filter = published.and_then(|published| published.filter.as_ref());
    let narrow = match filter {
        Some(_) => format!("{narrow} (the publication's filter of rows may then use columns of it alone)"),
        None => narrow,
    };
    let generated = || found.columns.iter().filter(|column| column.is_generated);
    // Without a list of columns whole old rows are possible, but for generated ones.
    let is_possible = known.version < catalog::GENERATED_PUBLISHED || !generated().any(|column| column.is_virtual);
    let needs_generated =
        known.version >= catalog::GENERATED_PUBLISHED && generated().next().is_some() && !known.sends_generated();
    let sends_generated = match needs_generated {
        true => format!("{} ", prepare::generated_statement(&settings.publication)),
        false => String::new(),
    };
    let remedy = match (is_listed, is_possible) {
        (true, true) => format!(
            "{narrow} Or publish all of its columns: BEGIN; {sends_generated}ALTER PUBLICATION {publication} DROP TABLE {sql}; ALTER \
             PUBLICATION {publication} ADD TABLE {sql}{}; COMMIT;",
            filtered(filter)
        ),
        (true, false) => narrow,
        (false, true) => sends_generated.trim_end().to_owned(),
        (false, false) => format!("virtual columns are never published: {narrow}"),
    };
    let columns: Vec<&str> = untold.iter().map(|column| column.name.as_str()).collect();
    let columns = columns.join(", ");
    let untold = match (is_listed, columns.is_empty()) {
        (true, true) => "the publication names its columns".to_owned(),
        (true, false) => format!("the publication names its columns, and these are not among them ({columns})"),
        (false, _) => format!("its generated columns are not published ({columns})"),
    };
    let when = if published.is_some() { "the server refuses every" } else { "once it is published the server refuses" };
    let what = format!("table {name}: its replica identity is FULL, and {untold}: {when} UPDATE and DELETE of it");
    Some(Problem { code: "postgres-identity", what, remedy })
}

/// What has old rows tell all of their columns; or what is in its way, and what helps then.
pub(super) fn whole_old_rows(
    settings: &SourceSettings,
    known: &Known,
    found: &CatalogTable,
    name: &TableName,
    otherwise: impl FnOnce(&TableName) -> String,
) -> String {
    let generated = || found.columns.iter().filter(|column| known.version >= catalog::GENERATED_PUBLISHED && column.is_generated);
    let obstacle = match known.published(name).is_some_and(|published| published.is_listed) {
        true => Some("a list of columns"),
        false => generated().any(|column| column.is_virtual).then_some("virtual columns"),
    };
    let statement = format!("ALTER TABLE {} REPLICA IDENTITY FULL;", prepare::table(name.as_str()));
    match obstacle {
        Some(with) => {
            format!("with {with} it cannot be FULL: the server would refuse UPDATE and DELETE; {}", otherwise(name))
        }
        None if generated().next().is_some() && !known.sends_generated() => {
            format!("{} {statement}", prepare::generated_statement(&settings.publication))
        }
        None => statement,
    }
}

/// An identity that tells the key where old rows can't be whole.
pub(super) fn by_index(name: &TableName) -> String {
    format!("ALTER TABLE {} REPLICA IDENTITY USING INDEX ...;", prepare::table(name.as_str()))
}
