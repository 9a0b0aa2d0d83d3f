//! The rows of one COPY, taken until there are enough of them: what chunks and rows that are read again have in common.

use std::time::Duration;

use contract::Error;
use kernel::id::TableName;
use tokio::time::Instant;

use super::table::{copying, untaken};
use crate::copied::{Copied, CopiedRow};
use crate::reader::Refusal;
use crate::source::PostgresSource;
use crate::wire::{Connection, WireError};

/// After so long a COPY ends where it is: whoever wants to change the table waits for it.
const HOLD: Duration = Duration::from_secs(10);

/// Who takes the rows.
pub(super) trait Takes {
    /// One row.
    fn take(&mut self, row: &CopiedRow) -> Result<(), Refusal>;
    /// How many were taken.
    fn rows(&self) -> usize;
    /// How many bytes they have.
    fn bytes(&self) -> u64;
}

/// Takes the rows of a query, at least one, until there are `bytes_max` or the transaction, which began at `begun`, has taken too long;
/// then ends the transaction. Returns whether rows were left behind.
pub(super) async fn take(
    source: &PostgresSource,
    connection: &mut Connection,
    name: &TableName,
    query: &str,
    (bytes_max, begun): (u64, Instant),
    rows: &mut impl Takes,
) -> Result<bool, Error> {
    let place = &*source.place;
    let failed = |e| place.failed(&format!("table {name}: looking at it"), e);
    connection.query("SAVEPOINT reading").await.map_err(failed)?;
    connection.copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT binary)")).await.map_err(|e| copying(place, name, e))?;
    let mut copied = Copied::default();
    let mut stopped = false;
    while let Some(piece) = connection.copied().await.map_err(|e| copying(place, name, e))? {
        copied.push(&piece);
        while let Some(row) = copied.next_row().map_err(|e| failed(WireError::Protocol(e.to_string())))? {
            rows.take(&row).map_err(|refusal| untaken(source, &refusal, name))?;
        }
        stopped = rows.rows() > 0 && (rows.bytes() >= bytes_max || begun.elapsed() >= HOLD);
        if stopped {
            connection.stop_copy(&place.settings.endpoint).await.map_err(failed)?;
            break;
        }
    }
    // Reading may prune pages, which is written to the log, and the server flushes that soon only if the transaction commits: else, on
    // an idle server, the fences of what is read next would lie behind what is flushed for a quarter of a minute.
    if stopped {
        connection.query("ROLLBACK TO SAVEPOINT reading").await.map_err(failed)?;
    }
    connection.query("COMMIT").await.map_err(failed)?;
    if !stopped && !copied.is_over() {
        return Err(failed(WireError::Protocol("a COPY ends inside its rows".into())));
    }
    Ok(stopped)
}
