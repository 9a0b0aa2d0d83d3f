//! Tables read in chunks beside the log, each in a transaction of its own with one snapshot.
//!
//! Nothing is written at the server, and nothing stays open there between two reads. The snapshot tells which transactions it sees,
//! which is what decides between its rows and the log's: **not** a place in the log, since a commit stands there before any snapshot sees
//! it. The fence is read behind the snapshot in the same statement: all that it sees is in the log below.
//!
//! Rows come by COPY along a unique index of the key, in the binary form in which the log has them, and go through the same binding and
//! the same decoder; the publication's list of columns and its filter of rows hold for them as for the log. Rows whose updates left large
//! values out are read again in the same way, by their keys.

mod again;
mod bound;
mod plan;
mod read;
mod session;
mod table;
mod taking;

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use contract::{ChunkRead, ChunkRequest, Chunks, Error, Kind, RowsByKey, RowsRead, RowsRequest};
use kernel::coordinator::Visibility;
use kernel::id::{Bound, TransactionName};
use rows::TableSchema;

use crate::catalog;
use crate::source::PostgresSource;

pub(crate) use session::select_statement;
pub(crate) use table::{unwalkable, walkable};

/// When a question has no answer, the server is gone without a word. Above all that the server itself bounds.
const PATIENCE: Duration = Duration::from_secs(300);

#[async_trait]
impl Chunks for PostgresSource {
    async fn plan_ranges(&self, table: &TableSchema, wanted: u32) -> Result<Vec<Bound>, Error> {
        patiently("planning a snapshot", plan::ranges(self, table, wanted)).await
    }

    async fn read_chunk(&self, request: &ChunkRequest) -> Result<ChunkRead, Error> {
        patiently("reading a chunk", read::read(self, request)).await
    }

    async fn visibility(&self, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Error> {
        patiently("asking what is visible", visibility(self, about, unfinished)).await
    }
}

#[async_trait]
impl RowsByKey for PostgresSource {
    async fn read_rows(&self, request: &RowsRequest) -> Result<RowsRead, Error> {
        patiently("reading rows again", again::read(self, request)).await
    }
}

async fn patiently<T>(doing: &str, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let what = format!("{doing}: the server does not answer");
            Err(Error::new(Kind::Transient, "postgres-unreachable", what, "check that the server runs and can be reached"))
        }
    }
}

async fn visibility(source: &PostgresSource, about: &BTreeSet<TransactionName>, unfinished: bool) -> Result<Visibility, Error> {
    let place = &source.place;
    let mut connection = place.sql().await?;
    let failed = |e| place.failed("asking what is visible", e);
    let standing = catalog::standing(&mut connection).await.map_err(failed)?;
    let unfinished = match unfinished {
        true => Some(catalog::unfinished(&mut connection, &standing.seen).await.map_err(failed)?),
        false => None,
    };
    connection.close().await;
    // The answer does not say whose it is: another server's numbers would prove what nobody saw.
    if source.opened().is_some_and(|opened| opened != standing.identity) {
        let what = format!("{}: another server answers than the one whose log is read", place.settings.endpoint.shown());
        return Err(Error::new(Kind::Transient, "postgres-another-server", what, "the log is opened anew, which tells more"));
    }
    Ok(Visibility { proven: standing.seen.proven(about), unfinished })
}
