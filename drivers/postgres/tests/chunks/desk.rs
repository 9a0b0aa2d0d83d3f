//! A server, a database of a test's own, and what asking for its tables takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use contract::serde_json::{Value as Json, json};
use contract::{ChunkRead, ChunkRequest, Chunks, Error, Limit, LogEvent, LogReader, Source, TableRequest};
use kernel::coordinator::ChunkRange;
use kernel::id::{Bound, TableName};
use kernel::position::Position;
use postgres_source::PostgresSource;
use rows::{TableSchema, Type};

use crate::postgres::Postgres;

/// The database, its publication and slot.
pub(crate) struct Desk<'a> {
    pub(crate) server: &'a Postgres,
    pub(crate) source: PostgresSource,
    name: &'a str,
}

impl<'a> Desk<'a> {
    /// A database with these tables, all of them published.
    pub(crate) fn open(server: &'a Postgres, name: &'a str, tables: &str) -> Desk<'a> {
        server.sql("postgres", &format!("CREATE DATABASE {name}"));
        server.sql(name, tables);
        server.sql(name, &format!("CREATE PUBLICATION {name}_pub FOR ALL TABLES WITH (publish_via_partition_root = true)"));
        server.sql(name, &format!("SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"));
        Desk { server, source: source(&server.uri(name), name), name }
    }

    /// The same database at another server.
    pub(crate) fn at(&self, server: &Postgres) -> PostgresSource {
        source(&server.uri(self.name), self.name)
    }

    /// What another user sees.
    pub(crate) fn seen_by(&self, user: &str) -> PostgresSource {
        source(&self.server.uri(self.name).replace("postgres@", &format!("{user}@")), self.name)
    }

    #[track_caller]
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.server.sql(self.name, statement)
    }

    pub(crate) async fn try_describe(&self, table: &str) -> Result<Arc<TableSchema>, Error> {
        Ok(self.source.describe(&[wanted(table)], &BTreeMap::new()).await?[0].schema.clone())
    }

    pub(crate) async fn describe(&self, table: &str) -> Arc<TableSchema> {
        self.describe_as(table, None, BTreeMap::new()).await
    }

    /// With this key, and columns of these types.
    pub(crate) async fn describe_as(
        &self,
        table: &str,
        primary_key: Option<Vec<String>>,
        columns: BTreeMap<String, Type>,
    ) -> Arc<TableSchema> {
        let request = TableRequest { primary_key, columns, ..wanted(table) };
        self.source.describe(&[request], &BTreeMap::new()).await.unwrap()[0].schema.clone()
    }

    pub(crate) async fn chunk(&self, table: &Arc<TableSchema>, range: ChunkRange, rows_max: u32) -> Result<ChunkRead, Error> {
        self.source.read_chunk(&request(table, range, rows_max)).await
    }

    /// All chunks of a range, one after the other.
    pub(crate) async fn walk(&self, table: &Arc<TableSchema>, range: ChunkRange, rows_max: u32) -> Vec<ChunkRead> {
        let (mut chunks, mut after) = (Vec::new(), range.after.clone());
        loop {
            let chunk = self.chunk(table, ChunkRange { after, end: range.end.clone() }, rows_max).await.unwrap();
            if let Some(rows) = &chunk.rows {
                rows.check().unwrap();
                assert!(rows.rows() <= rows_max as usize && rows.tail.transactions.len() == 1);
                assert_eq!(rows.tail.transactions[0].transaction.at.0, offset(&chunk.fence));
            }
            after = chunk.end.clone();
            chunks.push(chunk);
            if after == range.end {
                return chunks;
            }
        }
    }

    /// The log from where the slot begins, at least up to here.
    pub(crate) async fn log(&self, tables: &[Arc<TableSchema>], upto: &Position) -> Vec<contract::LogRead> {
        let opened = self.source.open().await.unwrap();
        let mut reader = self.source.stream(&opened.floor.into(), tables).await.unwrap();
        read_until(reader.as_mut(), upto).await
    }
}

/// Reads on until a position is reached.
pub(crate) async fn read_until(reader: &mut dyn LogReader, upto: &Position) -> Vec<contract::LogRead> {
    let (mut reads, mut reached) = (Vec::new(), Position::default());
    while !reached.contains(upto) {
        let read = reader.next(Limit { rows: 10_000, bytes: 1 << 30 }).await.unwrap();
        for event in &read.events {
            if let LogEvent::Ended { upto, .. } | LogEvent::Keepalive { upto } = event {
                reached.join_with(upto);
            }
        }
        reads.push(read);
    }
    reads
}

/// What a pipeline that says nothing more than a table's name wants of it.
pub(crate) fn wanted(table: &str) -> TableRequest {
    TableRequest {
        table: TableName::from(table),
        primary_key: None,
        columns: BTreeMap::new(),
        before_is_full: false,
        keeps_every_row: false,
    }
}

pub(crate) fn source(uri: &str, name: &str) -> PostgresSource {
    let Json::Object(settings) = json!({ "uri": uri, "slotName": name, "create": true }) else {
        unreachable!("settings are an object")
    };
    PostgresSource::new(name, &settings).unwrap()
}

pub(crate) fn request(table: &Arc<TableSchema>, range: ChunkRange, rows_max: u32) -> ChunkRequest {
    ChunkRequest { table: table.clone(), range, rows_max, bytes_max: 1 << 30, about: BTreeSet::new() }
}

/// All keys.
pub(crate) fn whole() -> ChunkRange {
    ChunkRange { after: None, end: None }
}

pub(crate) fn range(after: Option<&Bound>, end: Option<&Bound>) -> ChunkRange {
    ChunkRange { after: after.cloned(), end: end.cloned() }
}

pub(crate) fn offset(position: &Position) -> u64 {
    position.streams().map(|(_, offset)| offset.0).next().unwrap_or(0)
}

/// A column of text, of all chunks.
pub(crate) fn texts(chunks: &[ChunkRead], column: &str) -> Vec<String> {
    let batches = chunks.iter().filter_map(|chunk| chunk.rows.as_ref());
    batches.flat_map(|rows| column_texts(&rows.data, column)).collect()
}

pub(crate) fn column_texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let texts = batch.column_by_name(column).unwrap_or_else(|| panic!("no column {column}")).as_string::<i32>().clone();
    (0..texts.len()).map(|row| if texts.is_null(row) { "(null)".into() } else { texts.value(row).to_owned() }).collect()
}

/// Declares these columns as text.
pub(crate) fn as_text(columns: &[&str]) -> BTreeMap<String, Type> {
    columns.iter().map(|name| ((*name).to_owned(), Type::String)).collect()
}
