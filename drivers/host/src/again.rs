//! Rows read again for values that the log left out, as the pump asks for them: keys become values, and what is read becomes rows of the
//! schema that lacks them.

use std::sync::Arc;

use contract::{Error, Kind, RowsRequest, Source};
use kernel::id::EncodedKey;
use pump::{Failure, RowsAgain, RowsWanted};
use rows::project::{Projection, Selected};
use rows::{ChangeBatch, RecordBatch, TableSchema, ValuePolicy};

use crate::convert;
use crate::schemas::Schemas;
use crate::stored::Stored;

/// Reads the rows that are wanted.
pub(crate) async fn read(source: &dyn Source, schemas: &Schemas, wanted: RowsWanted) -> Result<RowsAgain, Failure> {
    let RowsWanted { table, keys, schema, bytes_max, about } = wanted;
    let by_key = source.rows_by_key().ok_or_else(|| {
        let what = format!("table {table}: this source's rows can't be read again by their keys");
        convert::failure(Error::new(Kind::Fatal, "rows-not-readable", what, "this is a fault in urutau itself: please report it"))
    })?;
    let schema = match schema {
        Some(text) => Some(Arc::new(Stored::read(&table, &text).map_err(convert::failure)?.schema)),
        None => schemas.first(&table),
    };
    let schema = schema.ok_or_else(|| Failure::Refused(format!("table {table} is not read: a fault in urutau itself")))?;
    let encoded: Vec<&[u8]> = keys.iter().map(EncodedKey::as_bytes).collect();
    let keys = rows::key::decode(&schema, &encoded)
        .map_err(|e| Failure::Refused(format!("table {table}: {e}: a fault in urutau itself")))?;
    let request = RowsRequest { table: Arc::clone(&schema), keys, bytes_max, about };
    let read = by_key.read_rows(&request).await.map_err(convert::failure)?;
    let rows = read.rows.map(|batch| conform(batch, &schema)).transpose();
    let rows = rows.map_err(|why| {
        let what = format!("table {table}: its columns have changed since: {why}");
        convert::failure(Error::new(
            Kind::Rejected,
            "rows-of-another-schema",
            what,
            "read its rows anew: `urutau table resnapshot`",
        ))
    })?;
    let rows = rows.map(|rows| schemas.narrow(rows)).transpose().map_err(|error| Failure::Refused(error.to_string()))?;
    let contract::RowsRead { gone, visibility, fence, identity, .. } = read;
    Ok(RowsAgain { rows, gone, visibility, fence, identity })
}

/// The same rows with the columns of this schema: what came later is left out.
pub(crate) fn conform(batch: Arc<ChangeBatch>, schema: &Arc<TableSchema>) -> Result<Arc<ChangeBatch>, String> {
    if *batch.schema == **schema {
        return Ok(batch);
    }
    let select = |column: &rows::Column| {
        let found = batch.schema.counterpart(column).ok_or_else(|| format!("column '{}' is gone", column.name))?;
        let (name, kind) = (Some(column.name.clone()), Some(column.kind.clone()));
        Ok(Selected { column: batch.schema.columns[found].name.clone(), name, kind, policy: ValuePolicy::Error })
    };
    let selected: Vec<Selected> = schema.columns.iter().map(select).collect::<Result<_, String>>()?;
    let projection = Projection::new(&batch.schema, &selected).map_err(|e| e.to_string())?;
    let data = projection.apply(&batch.data).map_err(|e| e.to_string())?;
    // Where a column could not be null, this also says that none is.
    let data = RecordBatch::try_new(Arc::new(schema.arrow()), data.columns().to_vec()).map_err(|e| e.to_string())?;
    let absent = vec![None; schema.columns.len()];
    Ok(Arc::new(ChangeBatch { schema: Arc::clone(schema), data, absent, tail: batch.tail.clone() }))
}
