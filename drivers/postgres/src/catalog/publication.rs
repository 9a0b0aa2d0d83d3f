//! The publication: which tables, which of their columns, which kinds of change.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::TableName;

use crate::pgoutput::TypeId;
use crate::wire::{Connection, WireError, literal};

use super::{CatalogColumn, Cells};

/// A publication.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Publication {
    pub(crate) inserts: bool,
    pub(crate) updates: bool,
    pub(crate) deletes: bool,
    pub(crate) truncates: bool,
    /// Are partitions published under the name of their root?
    pub(crate) via_root: bool,
    /// Are generated columns published that no list of columns names?
    pub(crate) generated: bool,
    /// Does it name each of its tables? One of all tables, or of a schema's, takes no list of columns.
    pub(crate) is_by_name: bool,
    pub(crate) tables: BTreeMap<TableName, Published>,
}

/// What is sent of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Published {
    /// These columns; `None` where the server does not say (before 15: all).
    pub(crate) columns: Option<BTreeSet<String>>,
    /// Does the publication name its columns, be it all of them? Of a table whose old rows are whole the server refuses changes then.
    pub(crate) is_listed: bool,
    /// The rows for which this is true, in SQL as the session that asked would write it.
    pub(crate) filter: Option<String>,
}

/// The first version that knows lists of columns, and filters of rows.
const COLUMN_LISTS: u32 = 150_000;
/// The first version that can publish generated columns.
pub(crate) const GENERATED_PUBLISHED: u32 = 180_000;

/// Does the log tell this column? `generated`: does the publication send generated columns that no list names?
pub(crate) fn sends(published: Option<&Published>, column: &CatalogColumn, version: u32, generated: bool) -> bool {
    let listed = published.and_then(|table| table.columns.as_ref());
    let is_listed = listed.is_none_or(|columns| columns.contains(&column.name));
    let could = version >= GENERATED_PUBLISHED && (listed.is_some() || (generated && !column.is_virtual));
    is_listed && (!column.is_generated || could)
}

pub(crate) async fn publication(connection: &mut Connection, name: &str, version: u32) -> Result<Option<Publication>, WireError> {
    let name = literal(name);
    let generated = if version >= GENERATED_PUBLISHED { "pubgencols = 's'" } else { "false" };
    let by_schema = match version >= COLUMN_LISTS {
        true => "EXISTS (SELECT FROM pg_catalog.pg_publication_namespace n WHERE n.pnpubid = p.oid)",
        false => "false",
    };
    let rows = connection
        .query(&format!(
            "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, {generated}, NOT (puballtables OR {by_schema})
             FROM pg_catalog.pg_publication p WHERE pubname = {name}"
        ))
        .await?;
    let Some(row) = rows.first().map(Cells) else { return Ok(None) };
    let mut publication = Publication {
        inserts: row.boolean(0)?,
        updates: row.boolean(1)?,
        deletes: row.boolean(2)?,
        truncates: row.boolean(3)?,
        via_root: row.boolean(4)?,
        generated: row.boolean(5)?,
        is_by_name: row.boolean(6)?,
        tables: BTreeMap::new(),
    };
    let columns = match version >= COLUMN_LISTS {
        true => {
            "p.schemaname, p.tablename, p.rowfilter, a.name,
                 EXISTS (SELECT FROM pg_catalog.pg_publication_rel r
                         JOIN pg_catalog.pg_publication u ON u.oid = r.prpubid
                         JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
                         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                         WHERE (u.pubname, n.nspname, c.relname) = (p.pubname, p.schemaname, p.tablename) AND r.prattrs IS NOT NULL)
             FROM pg_catalog.pg_publication_tables p LEFT JOIN LATERAL pg_catalog.unnest(p.attnames) a(name) ON true"
        }
        false => "p.schemaname, p.tablename, NULL, NULL, false FROM pg_catalog.pg_publication_tables p",
    };
    for row in &connection.query(&format!("SELECT {columns} WHERE p.pubname = {name}")).await? {
        let row = Cells(row);
        let table = TableName::from(format!("{}.{}", row.text(0)?, row.text(1)?));
        let known = publication.tables.entry(table).or_default();
        known.filter = row.optional(2).map(str::to_owned);
        known.is_listed = row.boolean(4)?;
        if let Some(column) = row.optional(3) {
            known.columns.get_or_insert_default().insert(column.to_owned());
        }
    }
    Ok(Some(publication))
}

/// The columns of one of these types that a publication sends: table, column, type.
pub(crate) async fn columns_of(
    connection: &mut Connection,
    publication: &str,
    types: &[TypeId],
    version: u32,
) -> Result<Vec<(TableName, String, TypeId)>, WireError> {
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let types: Vec<String> = types.iter().map(|id| id.0.to_string()).collect();
    let listed = if version >= COLUMN_LISTS { "AND a.attname = ANY (p.attnames)" } else { "" };
    let rows = connection
        .query(&format!(
            "SELECT p.schemaname, p.tablename, a.attname, a.atttypid
             FROM pg_catalog.pg_publication_tables p
             JOIN pg_catalog.pg_namespace n ON n.nspname = p.schemaname
             JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped {listed}
             WHERE p.pubname = {} AND a.atttypid IN ({}) ORDER BY 1, 2, a.attnum",
            literal(publication),
            types.join(", ")
        ))
        .await?;
    let column = |row| {
        let row = Cells(row);
        let table = TableName::from(format!("{}.{}", row.text(0)?, row.text(1)?));
        Ok((table, row.text(2)?.to_owned(), TypeId(row.number(3)?)))
    };
    rows.iter().map(column).collect()
}
