//! One chunk: what the table is in this snapshot, then its rows.

use std::sync::Arc;

use contract::{ChunkRead, ChunkRequest, Error, Kind};
use kernel::coordinator::Visibility;
use kernel::id::StreamName;
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::build::BatchBuilder;
use rows::{Operation, RowPhase};
use tokio::time::Instant;

use super::bound::Bound;
use super::session;
use super::table::{Table, look_up, rejected};
use super::taking::{Takes, take};
use crate::catalog;
use crate::copied::CopiedRow;
use crate::pgoutput::{Datum, Lsn};
use crate::reader::{self, ROW_BYTES, Refusal};
use crate::source::PostgresSource;
use crate::wire::{Connection, identifier};

/// Rows that a new builder has room for.
pub(super) const ROWS_EXPECTED: u32 = 1024;
/// What the table is called in our statement.
pub(super) const ALIAS: &str = "t";

pub(super) async fn read(source: &PostgresSource, request: &ChunkRequest) -> Result<ChunkRead, Error> {
    let mut connection = session::connect(&source.place).await?;
    let read = read_in(source, &mut connection, request).await;
    // Of a read that failed the transaction ends with it.
    connection.close().await;
    read
}

async fn read_in(source: &PostgresSource, connection: &mut Connection, request: &ChunkRequest) -> Result<ChunkRead, Error> {
    let (place, name) = (&*source.place, &request.table.table);
    session::begin(place, connection, name).await?;
    let begun = Instant::now();
    let failed = |e| place.failed(&format!("table {name}: looking at it"), e);
    // The first statement that needs a snapshot: all that follow have the same one.
    let standing = catalog::standing(connection).await.map_err(failed)?;
    let table = look_up(source, connection, &request.table, &bounds(request)?, standing.version).await?;
    let query = table.query(request)?;
    let mut rows = Rows::new(&table, standing.fence);
    let stopped = take(source, connection, name, &query, (request.bytes_max, begun), &mut rows).await?;
    let is_whole = !stopped && rows.batch.rows() < limit(request) as usize;
    let end = match rows.last {
        Some(key) if !is_whole => Some(Bound { relation: table.found.id, order: table.walk.order(), key }.written()),
        _ => request.range.end.clone(),
    };
    let schema = table.bound.schema.clone();
    let batch = match rows.batch.rows() {
        0 => None,
        _ => Some(Arc::new(rows.batch.finish(reader::now(), RowPhase::Snapshot).map_err(|error| {
            let what = format!("table {name}: a batch of its rows could not be made: {error}");
            Error::new(Kind::Fatal, "postgres-batch", what, "this is a fault in urutau itself; please report it")
        })?)),
    };
    let visibility = Visibility { proven: standing.seen.proven(&request.about), unfinished: None };
    let fence = Position::scalar(standing.fence.0);
    Ok(ChunkRead { rows: batch, end, visibility, fence, schema, identity: standing.identity })
}

/// At least one row, or nothing would go on.
fn limit(request: &ChunkRequest) -> u32 {
    request.rows_max.max(1)
}

/// The bounds of the range.
fn bounds(request: &ChunkRequest) -> Result<Vec<Bound>, Error> {
    let given = [&request.range.after, &request.range.end];
    let read = given.into_iter().flatten().map(|bound| {
        Bound::read(bound).ok_or_else(|| {
            let what = format!("table {}: where its snapshot is, is not told in this source's words", request.table.table);
            rejected("postgres-bound", what, "read its snapshot anew")
        })
    });
    read.collect()
}

impl Table {
    /// The rows of a range: their columns, then their place in the walk as text. Along a partitioned table's root; never rows of tables
    /// that inherit from it, which the log tells under their own names.
    fn query(&self, request: &ChunkRequest) -> Result<String, Error> {
        let texts = self.walk.columns.iter().map(|column| format!("{ALIAS}.{}::pg_catalog.text", identifier(&column.name)));
        let selected: Vec<String> = self.selected(ALIAS).chain(texts).collect();
        let mut only: Vec<String> = self.published.filter.iter().map(|filter| format!("({filter})")).collect();
        let key = |bound: &kernel::id::Bound| Bound::read(bound).map(|bound| bound.key);
        only.extend(request.range.after.as_ref().and_then(key).map(|key| self.walk.above(ALIAS, &key)));
        only.extend(request.range.end.as_ref().and_then(key).map(|key| self.walk.up_to(ALIAS, &key)));
        let from = self.from();
        let filter = if only.is_empty() { String::new() } else { format!(" WHERE {}", only.join(" AND ")) };
        let (selected, order) = (selected.join(", "), self.walk.columns(ALIAS));
        Ok(format!("SELECT {selected} FROM {from} AS {ALIAS}{filter} ORDER BY {order} LIMIT {}", limit(request)))
    }
}

/// The rows that came.
struct Rows<'a> {
    table: &'a Table,
    batch: BatchBuilder,
    bytes: u64,
    /// The place of the last one.
    last: Option<Vec<String>>,
    /// They are of no transaction: this is where the log was.
    at: Transaction,
    scratch: String,
}

impl<'a> Rows<'a> {
    fn new(table: &'a Table, fence: Lsn) -> Self {
        let batch = BatchBuilder::new(table.bound.schema.clone(), ROWS_EXPECTED as usize);
        let at = Transaction { stream: StreamName::from(""), at: Offset(fence.0) };
        Self { table, batch, bytes: 0, last: None, at, scratch: String::new() }
    }
}

impl Takes for Rows<'_> {
    fn take(&mut self, row: &CopiedRow) -> Result<(), Refusal> {
        let (bound, walk) = (&self.table.bound, &self.table.walk);
        let columns = bound.places.len() + walk.columns.len();
        if row.len() != columns || bound.places.len() != self.table.columns.len() {
            return Err(Refusal::Shape { columns, values: row.len() });
        }
        let mut values = row.values();
        self.table.append(&mut self.batch, &mut values, &mut self.scratch)?;
        let key: Option<Vec<String>> = values.map(text).collect();
        self.last = Some(key.ok_or_else(|| Refusal::Shape { columns, values: row.len() })?);
        let coordinate = Coordinate { major: self.batch.rows() as u64, minor: 0 };
        self.batch.tell(Operation::Read, coordinate, &self.at, None);
        self.bytes += ROW_BYTES + row.bytes();
        Ok(())
    }

    fn rows(&self) -> usize {
        self.batch.rows()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn text(datum: Datum<'_>) -> Option<String> {
    match datum {
        Datum::Binary(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Datum::Null | Datum::Unchanged | Datum::Text(_) => None,
    }
}
