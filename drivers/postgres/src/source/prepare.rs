//! What `source.create: true` makes: the publication, its tables, and the slot. In this order: a publication must be older than the
//! log that is read by it.

use contract::{Error, TableRequest};

use super::Place;
use super::describe::{self, Known};
use crate::catalog;
use crate::settings::SourceSettings;
use crate::wire::{Connection, WireError, identifier};

pub(super) async fn prepare(place: &Place, tables: &[TableRequest]) -> Result<(), Error> {
    let known = Known::read(place, tables).await?;
    let published = |request: &&TableRequest| known.publication.as_ref().is_some_and(|p| p.tables.contains_key(&request.table));
    let problems: Vec<_> = tables
        .iter()
        .filter(|request| !published(request))
        .filter_map(|request| describe::unpublishable(&place.settings, &known, request))
        .collect();
    describe::refuse(&problems.iter().collect::<Vec<_>>())?;
    let mut connection = place.sql().await?;
    publish(place, &mut connection, tables).await.map_err(|e| place.failed("making the publication", e))?;
    let SourceSettings { slot, .. } = &place.settings;
    let looking = |e| place.failed("looking at the slot", e);
    if catalog::slot(&mut connection, slot).await.map_err(looking)?.is_none() {
        // It waits for every transaction that runs, prepared ones too: not for ever.
        connection.query("SET statement_timeout = '60s'").await.map_err(looking)?;
        connection.query(&slot_statement(slot)).await.map_err(|e| place.failed("making the replication slot", e))?;
        tracing::info!(slot, "made the replication slot");
    }
    connection.close().await;
    Ok(())
}

async fn publish(place: &Place, connection: &mut Connection, tables: &[TableRequest]) -> Result<(), WireError> {
    let SourceSettings { publication, .. } = &place.settings;
    let server = catalog::server(connection).await?;
    match catalog::publication(connection, publication, server.version).await? {
        None => {
            let tables = tables.iter().map(|request| request.table.as_str());
            connection.query(&publication_statement(publication, tables, server.version)).await?;
            tracing::info!(publication, "made the publication");
        }
        Some(known) => {
            for request in tables.iter().filter(|request| !known.tables.contains_key(&request.table)) {
                connection.query(&add_statement(publication, request.table.as_str())).await?;
                tracing::info!(publication, table = request.table.as_str(), "added the table to the publication");
            }
        }
    }
    Ok(())
}

/// The SQL that makes a slot.
pub(super) fn slot_statement(slot: &str) -> String {
    format!("SELECT pg_create_logical_replication_slot({}, 'pgoutput');", crate::wire::literal(slot))
}

/// The SQL that makes a publication. Partitions come under their root's name, since that is what the pipeline file names; generated
/// columns come where the server can send them.
pub(super) fn publication_statement<'a>(publication: &str, tables: impl Iterator<Item = &'a str>, version: u32) -> String {
    create_statement(publication, &tables.map(table).collect::<Vec<_>>().join(", "), version)
}

/// The same with tables as SQL.
pub(super) fn create_statement(publication: &str, tables: &str, version: u32) -> String {
    let generated = if version >= catalog::GENERATED_PUBLISHED { ", publish_generated_columns = stored" } else { "" };
    format!(
        "CREATE PUBLICATION {} FOR TABLE {tables} WITH (publish_via_partition_root = true{generated});",
        identifier(publication)
    )
}

/// The SQL that has a publication send generated columns, as far as they are stored.
pub(super) fn generated_statement(publication: &str) -> String {
    format!("ALTER PUBLICATION {} SET (publish_generated_columns = stored);", identifier(publication))
}

/// The SQL that adds a table to a publication.
pub(crate) fn add_statement(publication: &str, name: &str) -> String {
    format!("ALTER PUBLICATION {} ADD TABLE {};", identifier(publication), table(name))
}

/// The SQL that has old rows tell all columns, and what there is to say of it. For who knows a table from the log alone: of some the server
/// refuses UPDATE and DELETE then, and who looks at the catalogue says of which.
pub(crate) fn full_statement(name: &str, more: &str) -> String {
    format!(
        "ALTER TABLE {} REPLICA IDENTITY FULL; (`urutau doctor` first where it has generated columns or a list of columns; {more})",
        table(name)
    )
}

/// A table's name as SQL.
pub(crate) fn table(name: &str) -> String {
    match name.split_once('.') {
        Some((namespace, name)) => format!("{}.{}", identifier(namespace), identifier(name)),
        None => identifier(name),
    }
}
