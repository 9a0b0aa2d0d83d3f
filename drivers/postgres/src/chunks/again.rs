//! Rows read again by their keys, for large values that updates leave out of the log: one statement for all keys, along the index through
//! which chunks go.
//!
//! A key is written as text and comes back in binary form, as the server understood it. What the server understood otherwise is an error,
//! and never a row that is gone.

use std::sync::Arc;

use contract::arrow::array::cast::AsArray;
use contract::arrow::array::types::{Date32Type, TimestampMicrosecondType};
use contract::arrow::array::{ArrayRef, StringArray};
use contract::{Error, Kind, RowsRead, RowsRequest};
use kernel::coordinator::Visibility;
use kernel::id::StreamName;
use kernel::position::{Coordinate, Offset, Position, Transaction};
use rows::build::BatchBuilder;
use rows::{EncodedKeys, Operation, RowPhase, TableSchema, Type, ValuePolicy};
use tokio::time::Instant;

use super::read::{ALIAS, ROWS_EXPECTED};
use super::session;
use super::table::{Table, as_sent, look_up, rejected};
use super::taking::{Takes, take};
use crate::catalog;
use crate::copied::CopiedRow;
use crate::pgoutput::{Datum, Lsn};
use crate::reader::{self, ROW_BYTES, Refusal, ValuePlace};
use crate::source::{PostgresSource, prepare};
use crate::values::{AppendDatum, PgType, Reading};
use crate::wire::{Connection, WireError, identifier, literal};

/// What the keys are called in our statement.
const KEYS: &str = "k";

/// For each key the index is looked into; no plan that reads the table is one.
const BY_INDEX: &str = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

pub(super) async fn read(source: &PostgresSource, request: &RowsRequest) -> Result<RowsRead, Error> {
    let mut connection = session::connect(&source.place).await?;
    let read = read_in(source, &mut connection, request).await;
    // Of a read that failed the transaction ends with it.
    connection.close().await;
    read
}

async fn read_in(source: &PostgresSource, connection: &mut Connection, request: &RowsRequest) -> Result<RowsRead, Error> {
    let (place, name) = (&*source.place, &request.table.table);
    session::begin(place, connection, name).await?;
    let begun = Instant::now();
    let failed = |e| place.failed(&format!("table {name}: looking at it"), e);
    // The first statement that needs a snapshot: all that follow have the same one.
    let standing = catalog::standing(connection).await.map_err(failed)?;
    let table = look_up(source, connection, &request.table, &[], standing.version).await?;
    let asked = Asked::new(&table, request)?;
    connection.query(BY_INDEX).await.map_err(failed)?;
    let mut rows = Rows::new(&table, &asked, standing.fence);
    let stopped = take(source, connection, name, &asked.query(&table), (request.bytes_max, begun), &mut rows).await?;
    if !stopped && rows.told.len() != request.keys.num_rows() {
        return Err(failed(WireError::Protocol("a COPY ends before all of its keys".into())));
    }
    let (batch, gone) = rows.finish(&asked)?;
    let visibility = Visibility { proven: standing.seen.proven(&request.about), unfinished: None };
    Ok(RowsRead { rows: batch, gone, visibility, fence: Position::scalar(standing.fence.0), identity: standing.identity })
}

/// What is asked for: of each key the columns by which the table is walked through.
struct Asked {
    /// These columns, as the table has them now.
    schema: Arc<TableSchema>,
    /// How the server sends each of them.
    places: Vec<ValuePlace>,
    /// The keys, in the order of the request.
    keys: EncodedKeys,
    /// Their values as SQL, a column one after the other.
    values: Vec<Vec<String>>,
}

impl Asked {
    fn new(table: &Table, request: &RowsRequest) -> Result<Self, Error> {
        let name = &request.table.table;
        let changed = || {
            let what = format!("table {name}: the columns of its key, or their types, have changed since its rows did");
            rejected("postgres-order", what, "read its rows anew: `urutau table resnapshot`")
        };
        let key: Vec<&rows::Column> = request.table.key.iter().filter_map(|place| request.table.columns.get(*place)).collect();
        let (mut columns, mut places, mut arrays, mut kinds, mut values) = (vec![], vec![], vec![], vec![], vec![]);
        for walked in &table.walk.columns {
            let of_bound = |place: &&ValuePlace| table.bound.schema.columns[place.column].name == walked.name;
            let place = table.bound.places.iter().find(of_bound).ok_or_else(changed)?;
            let is_it = |column: &rows::Column| table.bound.schema.counterpart(column) == Some(place.column);
            let at = key.iter().position(|column| is_it(column)).ok_or_else(changed)?;
            let array = request.keys.columns().get(at).ok_or_else(changed)?;
            let (was, is) = (&key[at].kind, &table.bound.schema.columns[place.column].kind);
            // A wider number has the same keys.
            if was != is && !(was.arrow().is_integer() && is.arrow().is_integer()) {
                return Err(changed());
            }
            places.push(ValuePlace { column: columns.len(), ..place.clone() });
            columns.push(table.bound.schema.columns[place.column].clone());
            arrays.push(array.clone());
            kinds.push(key[at].kind.clone());
            values.push(literals(array, &walked.name, &key[at].kind, (&place.kind, &walked.of)).ok_or_else(changed)?);
        }
        let all = (0..columns.len()).collect();
        let schema = TableSchema::new(name.clone(), columns, all).map_err(|_| changed())?;
        let keys = EncodedKeys::encode_columns(&arrays, &kinds).map_err(|_| changed())?;
        Ok(Self { schema: Arc::new(schema), places, keys, values })
    }

    /// For each key its number, what the server understands of it, whether there is a row, and the row. In a query of its own, where the
    /// publication's filter sees the table's columns and no others.
    fn query(&self, table: &Table) -> String {
        let tuple = |at: usize| {
            let values: Vec<&str> = self.values.iter().map(|column| column[at].as_str()).collect();
            format!("({at}, {})", values.join(", "))
        };
        let tuples: Vec<String> = (0..self.keys.len()).map(tuple).collect();
        let names: Vec<String> = (0..self.values.len()).map(|at| format!("key {at}")).collect();
        let quoted = |prefix: &str, names: &mut dyn Iterator<Item = String>| {
            names.map(|name| format!("{prefix}{}", identifier(&name))).collect::<Vec<_>>().join(", ")
        };
        let understood =
            names.iter().zip(&self.places).map(|(name, place)| format!("{KEYS}.{}{}", identifier(name), as_sent(&place.kind)));
        let understood: Vec<String> = understood.collect();
        let columns = || (0..table.columns.len()).map(|at| format!("column {at}"));
        let of_table = table.selected(ALIAS).zip(columns());
        let of_table = of_table.map(|(column, name)| format!("{column} AS {}", identifier(&name)));
        let filter: String = table.published.filter.iter().map(|filter| format!(" AND ({filter})")).collect();
        format!(
            "SELECT {KEYS}.number, {}, r.here, {} FROM (VALUES {}) AS {KEYS}(number, {})
             LEFT JOIN LATERAL (SELECT true AS here, {} FROM {} AS {ALIAS} WHERE {}{filter}) AS r ON true",
            understood.join(", "),
            quoted("r.", &mut columns()),
            tuples.join(", "),
            quoted("", &mut names.clone().into_iter()),
            of_table.collect::<Vec<_>>().join(", "),
            table.from(),
            table.walk.same(ALIAS, KEYS, &names),
        )
    }
}

/// The values of a key's column as SQL of this type; `None` if they have no text. Days and moments are counted from one that every
/// server reads alike: their own texts differ before year 1 and behind 9999.
fn literals(column: &ArrayRef, name: &str, kind: &Type, (theirs, of): (&PgType, &str)) -> Option<Vec<String>> {
    const DAY_MICROS: i64 = 86_400_000_000;
    let since = |origin: &str, micros: i64| {
        let (days, of_day) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
        let (seconds, micros) = (of_day / 1_000_000, of_day % 1_000_000);
        format!("({origin} + '{days} days {seconds}.{micros:06} seconds'::pg_catalog.interval)::{of}")
    };
    Some(match kind {
        Type::Date => {
            let days = column.as_primitive_opt::<Date32Type>()?.values();
            days.iter().map(|days| format!("('1970-01-01'::pg_catalog.date + ({days}))::{of}")).collect()
        }
        Type::Timestamp => {
            let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.values();
            micros.iter().map(|micros| since("'1970-01-01'::pg_catalog.timestamp", *micros)).collect()
        }
        Type::TimestampTz => {
            let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?.values();
            micros.iter().map(|micros| since("'1970-01-01 00:00:00+00'::pg_catalog.timestamptz", *micros)).collect()
        }
        Type::Binary | Type::FixedBinary(_) => {
            // PostGIS takes the digits alone.
            let prefix = if *theirs == PgType::Spatial { "" } else { "\\x" };
            texts(column, name, kind)?
                .iter()
                .flatten()
                .map(|text| format!("{}::{of}", literal(&format!("{prefix}{text}"))))
                .collect()
        }
        _ => texts(column, name, kind)?.iter().flatten().map(|text| format!("{}::{of}", literal(text))).collect(),
    })
}

fn texts(column: &ArrayRef, name: &str, kind: &Type) -> Option<StringArray> {
    let text = rows::cast::cast(column, name, kind, &Type::String, ValuePolicy::Error).ok()?;
    Some(text.as_string_opt::<i32>()?.clone())
}

/// What came.
struct Rows<'a> {
    table: &'a Table,
    places: &'a [ValuePlace],
    batch: BatchBuilder,
    /// What the server understood of the keys that it told of, and which ones they are.
    understood: BatchBuilder,
    told: Vec<usize>,
    gone: Vec<usize>,
    bytes: u64,
    /// They are of no transaction: this is where the log was.
    at: Transaction,
    scratch: String,
}

impl<'a> Rows<'a> {
    fn new(table: &'a Table, asked: &'a Asked, fence: Lsn) -> Self {
        let batch = BatchBuilder::new(table.bound.schema.clone(), ROWS_EXPECTED as usize);
        let understood = BatchBuilder::new(asked.schema.clone(), asked.keys.len());
        let at = Transaction { stream: StreamName::from(""), at: Offset(fence.0) };
        let (told, gone) = (Vec::new(), Vec::new());
        Self { table, places: &asked.places, batch, understood, told, gone, bytes: 0, at, scratch: String::new() }
    }

    /// The rows, and the keys without one: once it is sure that these are the keys that were meant.
    fn finish(self, asked: &Asked) -> Result<(Option<Arc<rows::ChangeBatch>>, Vec<usize>), Error> {
        let name = self.table.bound.schema.table.clone();
        let fault = |error: &dyn std::fmt::Display| {
            let what = format!("table {name}: a batch of its rows could not be made: {error}");
            Error::new(Kind::Fatal, "postgres-batch", what, "this is a fault in urutau itself; please report it")
        };
        let understood = self.understood.finish(reader::now(), RowPhase::Snapshot).map_err(|e| fault(&e))?;
        let understood = EncodedKeys::encode(&asked.schema, &understood.data).map_err(|e| fault(&e))?;
        let is_meant =
            |(at, number): (usize, &usize)| *number < asked.keys.len() && understood.key(at) == asked.keys.key(*number);
        if !self.told.iter().enumerate().all(is_meant) {
            let what = format!("table {name}: a row's key can't be told to the server so that it understands the same value");
            let full = prepare::full_statement(name.as_str(), "has updates carry such values; and please report this");
            return Err(rejected("postgres-key-text", what, &full));
        }
        let batch = match self.batch.rows() {
            0 => None,
            _ => Some(Arc::new(self.batch.finish(reader::now(), RowPhase::Snapshot).map_err(|e| fault(&e))?)),
        };
        Ok((batch, self.gone))
    }
}

impl Takes for Rows<'_> {
    fn take(&mut self, row: &CopiedRow) -> Result<(), Refusal> {
        let columns = 1 + self.places.len() + 1 + self.table.columns.len();
        let shape = || Refusal::Shape { columns, values: row.len() };
        if row.len() != columns || self.table.bound.places.len() != self.table.columns.len() {
            return Err(shape());
        }
        let mut values = row.values();
        let number = match values.next() {
            Some(Datum::Binary(bytes)) => bytes.try_into().ok().map(i32::from_be_bytes).and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        self.told.push(number.ok_or_else(shape)?);
        let mut reading = Reading { types: &self.table.types, scratch: &mut self.scratch };
        for (place, datum) in self.places.iter().zip(&mut values) {
            let column = &self.understood.schema().columns[place.column];
            let (name, kind) = (column.name.clone(), column.kind.clone());
            let appended = self.understood.column(place.column).append_datum(&place.kind, datum, &mut reading);
            appended.map_err(|misfit| Refusal::Value { column: name, kind, misfit })?;
        }
        let coordinate = Coordinate { major: self.told.len() as u64, minor: 0 };
        self.understood.tell(Operation::Read, coordinate, &self.at, None);
        match values.next() {
            Some(Datum::Binary(_)) => {
                self.table.append(&mut self.batch, &mut values, &mut self.scratch)?;
                self.batch.tell(Operation::Read, coordinate, &self.at, None);
                self.bytes += ROW_BYTES + row.bytes();
            }
            _ => self.gone.extend(self.told.last()),
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.told.len()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
