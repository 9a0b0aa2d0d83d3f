//! Tables read beside the log, as the pump asks for them.

use std::collections::BTreeSet;

use contract::{ChunkRequest, Chunks, Error, Kind, Source};
use kernel::coordinator::Visibility;
use kernel::id::{Bound, TableName, TransactionName};
use pump::{Failure, SnapshotChunk, SnapshotRead};

use crate::convert;
use crate::schemas::Schemas;

/// Proposes bounds for a table's ranges.
pub(crate) async fn plan_ranges(
    source: &dyn Source,
    schemas: &Schemas,
    table: &TableName,
    wanted: u32,
) -> Result<Vec<Bound>, Failure> {
    let schema = schemas.now(table).ok_or_else(|| not_read(table))?;
    chunks(source)?.plan_ranges(&schema, wanted).await.map_err(convert::failure)
}

/// Reads a chunk, and asks whether rows of its schema may be written.
pub(crate) async fn read(source: &dyn Source, schemas: &Schemas, read: SnapshotRead) -> Result<SnapshotChunk, Failure> {
    let SnapshotRead { table, range, rows_max, bytes_max, about } = read;
    let schema = schemas.now(&table).ok_or_else(|| not_read(&table))?;
    let request = ChunkRequest { table: schema, range, rows_max, bytes_max, about };
    let chunk = chunks(source)?.read_chunk(&request).await.map_err(convert::failure)?;
    let schema = schemas.brought(&chunk.schema).map_err(Failure::Refused)?;
    let contract::ChunkRead { rows, end, visibility, fence, schema: _, identity } = chunk;
    let rows = rows.map(|rows| schemas.narrow(rows)).transpose().map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(SnapshotChunk { rows, end, visibility, fence, schema, identity })
}

/// What a new snapshot sees.
pub(crate) async fn visibility(
    source: &dyn Source,
    about: &BTreeSet<TransactionName>,
    unfinished: bool,
) -> Result<Visibility, Failure> {
    chunks(source)?.visibility(about, unfinished).await.map_err(convert::failure)
}

/// The kernel is told at its beginning whether there are any.
fn chunks(source: &dyn Source) -> Result<&dyn Chunks, Failure> {
    source.chunks().ok_or_else(|| {
        let what = "the source's tables can't be read in chunks";
        convert::failure(Error::new(Kind::Fatal, "no-chunks", what, "this is a fault in urutau itself: please report it"))
    })
}

fn not_read(table: &TableName) -> Failure {
    Failure::Refused(format!("table {table} is not read: a fault in urutau itself"))
}
