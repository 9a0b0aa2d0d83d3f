//! One chunk: what the table is in this snapshot, then its rows.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use contract::{ChunkRead, ChunkRequest, Error, Kind};
use kernel::coordinator::Visibility;
use kernel::id::StreamName;
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::build::BatchBuilder;
use rows::{Operation, RowPhase};
use tokio::time::Instant;

use super::bound::Bound;
use super::copied::{Copied, CopiedRow};
use super::session;
use crate::catalog::{self, CatalogTable, Published, Walk};
use crate::pgoutput::{Datum, Identity, Lsn, RelationColumn, RelationMessage};
use crate::reader::{self, ROW_BYTES, Refusal, bind};
use crate::source::{Place, PostgresSource, prepare};
use crate::values::{AppendDatum, Types};
use crate::wire::{Connection, WireError, identifier};

/// After so long a chunk ends where it is: whoever wants to change the table waits for it.
const HOLD: Duration = Duration::from_secs(10);
/// Rows that a new builder has room for.
const ROWS_EXPECTED: u32 = 1024;
/// What the table is called in our statement.
const ALIAS: &str = "t";

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
    let table = look_up(source, connection, request, standing.version).await?;
    let query = table.query(request)?;
    connection.query("SAVEPOINT reading").await.map_err(failed)?;
    connection.copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT binary)")).await.map_err(|e| copying(place, request, e))?;
    let mut rows = Rows::new(&table, standing.fence);
    let mut copied = Copied::default();
    let mut stopped = false;
    while let Some(piece) = connection.copied().await.map_err(|e| copying(place, request, e))? {
        copied.push(&piece);
        while let Some(row) = copied.next().map_err(|e| failed(WireError::Protocol(e.to_string())))? {
            rows.take(&row).map_err(|refusal| refused(&refusal, request))?;
        }
        stopped = rows.batch.rows() > 0 && (rows.bytes >= request.bytes_max || begun.elapsed() >= HOLD);
        if stopped {
            connection.stop_copy(&place.settings.endpoint).await.map_err(failed)?;
            break;
        }
    }
    // Reading may prune pages, which is written to the log, and the server flushes that soon only if the transaction commits: else, on
    // an idle server, the fences of the chunks that follow would lie behind what is flushed for a quarter of a minute.
    if stopped {
        connection.query("ROLLBACK TO SAVEPOINT reading").await.map_err(failed)?;
    }
    connection.query("COMMIT").await.map_err(failed)?;
    if !stopped && !copied.is_over() {
        return Err(failed(WireError::Protocol("a COPY ends inside its rows".into())));
    }
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

/// The table as it is in the snapshot, and how its rows are read.
struct Table {
    found: CatalogTable,
    published: Published,
    bound: reader::Bound,
    /// The columns that are sent, in the order of the table.
    columns: Vec<String>,
    walk: Walk,
}

async fn look_up(
    source: &PostgresSource,
    connection: &mut Connection,
    request: &ChunkRequest,
    version: u32,
) -> Result<Table, Error> {
    let (place, name) = (&*source.place, &request.table.table);
    let failed = |e| place.failed(&format!("table {name}: looking at it"), e);
    let found = catalog::tables(connection, &[name]).await.map_err(failed)?.remove(name);
    let found = found.ok_or_else(|| rejected("postgres-table", format!("table {name}: it is gone"), ""))?;
    let bounds = bounds(request)?;
    let is_another = |id| id != found.id;
    if source.streamed(name).is_some_and(is_another) || bounds.iter().any(|bound| is_another(bound.relation)) {
        return Err(Refusal::Replaced.error(name));
    }
    let publication = catalog::publication(connection, &place.settings.publication, version).await.map_err(failed)?;
    let via_root = publication.as_ref().is_some_and(|publication| publication.via_root);
    let Some(published) = publication.and_then(|mut publication| publication.tables.remove(name)) else {
        let publication = &place.settings.publication;
        let what = format!("table {name}: it is not in the publication '{publication}'");
        return Err(Error::new(Kind::Config, "postgres-publication", what, prepare::add_statement(publication, name.as_str())));
    };
    if found.kind == b'p' && !via_root {
        let what = format!("table {name} is partitioned, and the publication publishes its partitions under their own names");
        let publication = identifier(&place.settings.publication);
        let remedy = format!("ALTER PUBLICATION {publication} SET (publish_via_partition_root = true);");
        return Err(Error::new(Kind::Config, "postgres-publication-root", what, remedy));
    }
    let relation = relation(name.as_str(), &found, &published, version);
    let types = types(source, connection, &relation).await.map_err(failed)?;
    let binding = bind(&relation, &request.table, &source.declared(name), &types);
    let columns: Vec<String> = relation.columns.iter().map(|column| column.name.to_owned()).collect();
    let bound = binding.bound.map_err(|refusal| refused(&refusal, request))?;
    let key: Vec<&str> = bound.schema.key.iter().filter_map(|place| column_name(&bound, *place)).collect();
    let walks = catalog::walks(connection, found.id, &key).await.map_err(failed)?;
    let walk = chosen(walks, &bounds, name.as_str(), &key)?;
    Ok(Table { found, published, bound, columns, walk })
}

fn column_name(bound: &reader::Bound, place: usize) -> Option<&str> {
    bound.schema.columns.get(place).map(|column| column.name.as_str())
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

/// The walk in whose order the bounds lie; the best one if there are none.
fn chosen(walks: Vec<Walk>, bounds: &[Bound], table: &str, key: &[&str]) -> Result<Walk, Error> {
    let is_empty = walks.is_empty();
    let fits = |walk: &Walk| bounds.iter().all(|bound| bound.order == walk.order() && bound.key.len() == walk.columns.len());
    match walks.into_iter().find(fits) {
        Some(walk) => Ok(walk),
        None if is_empty => Err(Error::new(Kind::Config, "postgres-snapshot-key", unwalkable(table, key), walkable(table, key))),
        None => {
            let what = format!("table {table}: the columns, types or collations of its key changed while its snapshot was read");
            Err(rejected("postgres-order", what, "read its snapshot anew, or undo the change"))
        }
    }
}

/// What is wrong with a table through which there is no walk.
pub(crate) fn unwalkable(table: &str, key: &[&str]) -> String {
    match key {
        [] => format!("table {table} has no key, and its rows can't be read in chunks without one"),
        key => format!(
            "table {table}: no unique index says that its key ({}) is one, with columns that are NOT NULL and the usual order of their \
             types: its rows can't be read in chunks",
            key.join(", ")
        ),
    }
}

/// What makes a walk.
pub(crate) fn walkable(table: &str, key: &[&str]) -> String {
    let columns = match key {
        [] => "...".to_owned(),
        key => key.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", "),
    };
    format!("ALTER TABLE {} ADD PRIMARY KEY ({columns}); or `snapshot: {{ mode: never }}`", prepare::table(table))
}

/// What the log would say of the table before its first row.
fn relation<'a>(name: &'a str, found: &'a CatalogTable, published: &Published, version: u32) -> RelationMessage<'a> {
    let (namespace, name) = name.split_once('.').unwrap_or(("", name));
    let sent = found.columns.iter().filter(|column| catalog::sends(Some(published), column, version));
    let columns = sent.map(|column| RelationColumn {
        in_identity: true,
        name: &column.name,
        type_id: column.type_id,
        modifier: column.modifier,
    });
    RelationMessage { id: found.id, namespace, name, identity: Identity::Full, columns: columns.collect() }
}

/// The database's types; looked up again if the table has one that is not known.
async fn types(source: &PostgresSource, connection: &mut Connection, of: &RelationMessage<'_>) -> Result<Arc<Types>, WireError> {
    let known = source.types.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if of.columns.iter().all(|column| known.contains(column.type_id)) {
        return Ok(known);
    }
    let types = Arc::new(catalog::types(connection).await?);
    *source.types.lock().unwrap_or_else(PoisonError::into_inner) = types.clone();
    Ok(types)
}

impl Table {
    /// The rows of a range: their columns, then their place in the walk as text. Along a partitioned table's root; never rows of tables
    /// that inherit from it, which the log tells under their own names.
    fn query(&self, request: &ChunkRequest) -> Result<String, Error> {
        let columns = self.columns.iter().map(|column| format!("{ALIAS}.{}", identifier(column)));
        let texts = self.walk.columns.iter().map(|column| format!("{ALIAS}.{}::pg_catalog.text", identifier(&column.name)));
        let selected: Vec<String> = columns.chain(texts).collect();
        let mut only: Vec<String> = self.published.filter.iter().map(|filter| format!("({filter})")).collect();
        let key = |bound: &kernel::id::Bound| Bound::read(bound).map(|bound| bound.key);
        only.extend(request.range.after.as_ref().and_then(key).map(|key| self.walk.above(ALIAS, &key)));
        only.extend(request.range.end.as_ref().and_then(key).map(|key| self.walk.up_to(ALIAS, &key)));
        let from =
            format!("{}{}", if self.found.kind == b'p' { "" } else { "ONLY " }, prepare::table(request.table.table.as_str()));
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

    fn take(&mut self, row: &CopiedRow) -> Result<(), Refusal> {
        let (bound, walk) = (&self.table.bound, &self.table.walk);
        let columns = bound.places.len() + walk.columns.len();
        if row.len() != columns || bound.places.len() != self.table.columns.len() {
            return Err(Refusal::Shape { columns, values: row.len() });
        }
        let mut values = row.values();
        for (place, datum) in bound.places.iter().zip(&mut values) {
            let column = &bound.schema.columns[place.column];
            if datum == Datum::Null && bound.schema.is_key(place.column) {
                return Err(Refusal::NullKey { column: column.name.clone() });
            }
            let appended = self.batch.column(place.column).append_datum(&place.kind, datum, &mut self.scratch);
            appended.map_err(|misfit| Refusal::Value { column: column.name.clone(), kind: column.kind.clone(), misfit })?;
        }
        let key: Option<Vec<String>> = values.map(text).collect();
        self.last = Some(key.ok_or_else(|| Refusal::Shape { columns, values: row.len() })?);
        let coordinate = Coordinate { major: self.batch.rows() as u64, minor: 0 };
        self.batch.tell(Operation::Read, coordinate, &self.at, None);
        self.bytes += ROW_BYTES + row.bytes();
        Ok(())
    }
}

fn text(datum: Datum<'_>) -> Option<String> {
    match datum {
        Datum::Binary(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Datum::Null | Datum::Unchanged | Datum::Text(_) => None,
    }
}

/// What a COPY failed for. What the server says of a value may hold the value.
fn copying(place: &Place, request: &ChunkRequest, error: WireError) -> Error {
    let table = &request.table.table;
    match error.sqlstate() {
        Some(code) if code.starts_with("22") || code.starts_with("23") => {
            let what =
                format!("table {table}: the server can't work out a chunk of its rows (SQLSTATE {code}; its log says more)");
            rejected("postgres-value", what, "mend the row, the publication's filter of rows, or the type of a key column")
        }
        _ => place.failed(&format!("table {table}: reading a chunk"), error),
    }
}

/// A row or column that is not taken. In a snapshot nothing can be passed over.
fn refused(refusal: &Refusal, request: &ChunkRequest) -> Error {
    let error = refusal.error(&request.table.table);
    match refusal {
        Refusal::Value { column, .. } => {
            let remedy = format!(
                "mend the row at the source, or declare the column as `string` in a new copy ('tables[].columns': name {column}, type \
                 string)"
            );
            Error { what: format!("{}, in a row that its snapshot read", error.what), remedy, ..error }
        }
        Refusal::Unsent { .. }
        | Refusal::NullKey { .. }
        | Refusal::Identity
        | Refusal::Shape { .. }
        | Refusal::Schema { .. }
        | Refusal::Renamed { .. }
        | Refusal::Replaced => error,
    }
}

fn rejected(code: &'static str, what: String, remedy: &str) -> Error {
    Error::new(Kind::Rejected, code, what, remedy)
}
