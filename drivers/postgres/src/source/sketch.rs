//! The tables of a database for a new pipeline file: each as it would be copied, or why it can't be as it is.

use contract::{Error, Finding, Kind, Sketch, SourceTable, TableRequest};

use super::describe::{self, Known};
use super::{Place, preflight, readable};
use crate::catalog;

pub(super) async fn sketch(place: &Place, tables: &[TableRequest]) -> Result<Vec<Sketch>, Error> {
    let known = Known::read(place, tables).await?;
    let unreadable = readable::findings(place, &known, tables).await?;
    let names: Vec<_> = tables.iter().map(|request| &request.table).collect();
    let mut connection = place.sql().await?;
    let sizes = catalog::sizes(&mut connection, &names).await;
    connection.close().await;
    let sizes = sizes.map_err(|e| place.failed("asking how large the tables are", e))?;
    let sketch = |request: &TableRequest| {
        let of_table = |finding: &&Finding| finding.subject == request.table.as_str();
        let fault = match describe::unpublishable(&place.settings, &known, request) {
            Some(problem) => Some(Error::new(Kind::Config, problem.code, problem.what, problem.remedy)),
            None => preflight::fault(&place.settings, &known, request)
                .or_else(|| unreadable.iter().find(of_table).cloned())
                .map(|finding| Error::new(Kind::Config, finding.code, finding.what, finding.remedy)),
        };
        let found = match fault {
            Some(fault) => Err(fault),
            None => describe::table(&place.settings, &known, request)
                .map(|schema| SourceTable { schema: std::sync::Arc::new(schema), inferred: false })
                .map_err(|problem| Error::new(Kind::Config, problem.code, problem.what, problem.remedy)),
        };
        Sketch { table: request.table.clone(), found, size: sizes.get(&request.table).copied() }
    };
    Ok(tables.iter().map(sketch).collect())
}
