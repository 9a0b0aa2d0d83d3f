//! What reading a table beside the log needs, as findings: only warnings, since a table without a snapshot needs none of it.

use contract::{Error, Finding, Severity, TableRequest};

use super::describe::{self, Known};
use super::{Place, prepare};
use crate::catalog;
use crate::chunks;
use crate::wire::identifier;

pub(super) async fn findings(place: &Place, known: &Known, tables: &[TableRequest]) -> Result<Vec<Finding>, Error> {
    let mut connection = place.sql().await?;
    let mut findings = Vec::new();
    for request in tables {
        let name = request.table.as_str();
        // What is wrong with a table's description was found already.
        let (Ok(schema), Some(found)) = (describe::table(&place.settings, known, request), known.tables.get(&request.table))
        else {
            continue;
        };
        let mut add = |code, what: String, remedy: String| {
            let (severity, subject) = (Severity::Warning, name.to_owned());
            findings.push(Finding { severity, code, subject, what, remedy });
        };
        let user = &place.settings.endpoint.user;
        if !found.may_select {
            let what = format!(
                "table {name}: the user {user} may not select its rows, which snapshots and large values that updates leave out need"
            );
            add("postgres-select", what, chunks::select_statement(name, user));
        } else if found.has_policies {
            let what = format!("table {name}: policies hide rows of it from the user {user}, so that its snapshot is refused");
            let (table, user) = (prepare::table(name), identifier(user));
            add("postgres-policies", what, format!("ALTER ROLE {user} BYPASSRLS; or make it the owner of {table}"));
        }
        let key: Vec<&str> = schema.key.iter().filter_map(|place| Some(schema.columns.get(*place)?.name.as_str())).collect();
        let walks = catalog::walks(&mut connection, found.id, &key).await;
        if walks.map_err(|e| place.failed("looking at the catalogue", e))?.is_empty() {
            add("postgres-snapshot-key", chunks::unwalkable(name, &key), chunks::walkable(name, &key));
        }
    }
    connection.close().await;
    Ok(findings)
}
