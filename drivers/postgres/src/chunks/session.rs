//! The session in which a table is looked at: settings that make text and plans what they must be, a lock that is not waited for long,
//! one snapshot.

use contract::{Error, Kind};
use kernel::id::TableName;

use crate::source::{Place, TEXTS, prepare};
use crate::wire::{Connection, WireError, literal};

/// A key is told to the server as a literal, which must mean the same in every session. Rows come along the index of the key whatever the
/// planner thinks of the table, so that a chunk costs what its rows cost. Rows that policies would hide are an error. And nothing waits for
/// us for long: a change of the table waits for its readers, and everybody else for the change.
const SETTINGS: &str = "
    SET standard_conforming_strings = on; SET lc_monetary = 'C'; SET array_nulls = on;
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0; SET jit = off;
    SET row_security = off;
    SET lock_timeout = '2s'; SET statement_timeout = '120s'; SET idle_in_transaction_session_timeout = '60s'";

/// A connection with these settings.
pub(super) async fn connect(place: &Place) -> Result<Connection, Error> {
    let mut connection = place.sql().await?;
    connection.query(&format!("{TEXTS}; {SETTINGS}")).await.map_err(|e| place.failed("preparing a session", e))?;
    Ok(connection)
}

/// Begins a transaction that will have one snapshot, in which the table stays as it is. The snapshot is not taken yet: a change of the
/// table that the lock waited for is seen by it.
pub(super) async fn begin(place: &Place, connection: &mut Connection, table: &TableName) -> Result<(), Error> {
    let failed = |error| place.failed(&format!("table {table}: beginning to read a chunk"), error);
    connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(failed)?;
    let sql = prepare::table(table.as_str());
    match connection.query(&format!("LOCK TABLE {sql} IN ACCESS SHARE MODE")).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.sqlstate() {
            Some("55P03") => held(place, connection, table).await.unwrap_or_else(failed),
            Some("42P01" | "3F000") => {
                let what = format!("table {table}: it is gone");
                let remedy = "make it again, or take it out of the pipeline file";
                Error::new(Kind::Rejected, "postgres-table", what, remedy)
            }
            Some("42501") => {
                let what = format!(
                    "table {table}: the user may not select its rows, which snapshots and large values that updates leave out need"
                );
                Error::new(Kind::Config, "postgres-select", what, select_statement(table.as_str(), &place.settings.endpoint.user))
            }
            _ => failed(error),
        }),
    }
}

/// Who changes the table, or wants to.
async fn held(place: &Place, connection: &mut Connection, table: &TableName) -> Result<Error, WireError> {
    connection.query("ROLLBACK").await?;
    let name = literal(&prepare::table(table.as_str()));
    let rows = connection
        .query(&format!(
            "SELECT DISTINCT pg_catalog.format('%s by process %s (user %s, application ''%s'')',
                        CASE WHEN l.granted THEN 'held' ELSE 'waited for' END, l.pid, a.usename, a.application_name)
             FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
               AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
               AND (l.relation = pg_catalog.to_regclass({name})
                    OR l.relation IN (SELECT p.relid FROM pg_catalog.pg_partition_tree(pg_catalog.to_regclass({name})) p))
             ORDER BY 1"
        ))
        .await?;
    let by: Vec<&str> = rows.iter().filter_map(|row| row.first()?.as_deref()).collect();
    let by = if by.is_empty() { "by somebody who is gone by now".to_owned() } else { by.join(", ") };
    let what = format!("{}: table {table}: a lock that keeps out every reader is {by}", place.settings.endpoint.shown());
    Ok(Error::new(Kind::Transient, "postgres-locked", what, "it is read once that session ends its transaction"))
}

/// The SQL that lets a user read a table's rows.
pub(crate) fn select_statement(table: &str, user: &str) -> String {
    let schema = table.split_once('.').map_or("public", |(schema, _)| schema);
    let (schema, user) = (crate::wire::identifier(schema), crate::wire::identifier(user));
    format!("GRANT USAGE ON SCHEMA {schema} TO {user}; GRANT SELECT ON {} TO {user};", prepare::table(table))
}
