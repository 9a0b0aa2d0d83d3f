//! The log's reader: frames from a session, one read after the other.

mod alone;
mod assemble;
mod batch;
mod numbers;
mod refusal;
mod relation;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use contract::{Error, Kind, Limit, LogRead, LogReader};
use tokio::time::Instant;

pub use alone::read_frames;
pub(crate) use assemble::{Assembler, ROW_BYTES, Selected, Taken};
pub(crate) use refusal::Refusal;
pub(crate) use relation::{Bound, Place as ValuePlace, Read, bind_numbered};

use crate::catalog;
use crate::source::{Place, TEXTS};
use crate::wire::{Connection, Received, Session};

/// How long a read waits for something to come.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long a transaction that is in the log may stay unseen.
const UNSEEN_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether it is.
const LOOKED_EVERY: Duration = Duration::from_millis(10);
/// Frames that one look into the queue takes: of tables that are not read any number may come.
const FRAMES_MAX: usize = 1 << 16;

/// A session, and what is put together of it.
pub(crate) struct Reader {
    session: Session,
    assembler: Assembler,
    place: Arc<Place>,
    /// A frame that waits for something to be looked up.
    held: Option<Received>,
    /// What ended the session, told after everything before it.
    failed: Option<Error>,
}

impl Reader {
    pub(crate) fn new(session: Session, assembler: Assembler, place: Arc<Place>) -> Self {
        Self { session, assembler, place, held: None, failed: None }
    }

    /// Takes what is there, up to the limit.
    async fn gather(&mut self, limit: Limit) {
        for _ in 0..FRAMES_MAX {
            if self.assembler.is_full(limit) || self.failed.is_some() {
                return;
            }
            let frame = match self.held.take() {
                Some(held) => held,
                None => match self.session.try_next() {
                    None => return,
                    Some(Ok(frame)) => frame,
                    Some(Err(error)) => {
                        self.failed = Some(self.place.stream_failed(error));
                        return;
                    }
                },
            };
            if let Err(error) = self.take(frame).await {
                self.failed = Some(error);
            }
        }
    }

    async fn take(&mut self, frame: Received) -> Result<(), Error> {
        let mut taken = self.assembler.take(&frame.frame)?;
        // Kept where giving up the wait does not lose it.
        self.held = Some(frame);
        while taken != Taken::Whole {
            let mut connection = self.place.sql().await?;
            self.seen(&mut connection).await?;
            match taken {
                Taken::Whole => {}
                Taken::LacksTypes => {
                    let types = catalog::types(&mut connection).await;
                    self.assembler.set_types(Arc::new(types.map_err(|e| self.place.failed("looking up types", e))?));
                }
                Taken::LacksAttributes(relation) => {
                    let failed = |e| self.place.failed("looking up a table's columns", e);
                    // As text there is what older rows have in a new one.
                    connection.query(TEXTS).await.map_err(failed)?;
                    let attributes = catalog::attributes(&mut connection, relation).await.map_err(failed)?;
                    self.assembler.set_attributes(relation, attributes);
                }
            }
            connection.close().await;
            let Some(frame) = &self.held else { break };
            taken = self.assembler.take_after_looking(&frame.frame)?;
        }
        self.held = None;
        Ok(())
    }

    /// Waits until the transaction that is read is seen: before that the catalogue is as it was before it.
    async fn seen(&self, connection: &mut Connection) -> Result<(), Error> {
        let Some(transaction) = self.assembler.transaction() else { return Ok(()) };
        let begun = Instant::now();
        let failed = |e| self.place.failed("looking whether a transaction is seen", e);
        while !catalog::sees(connection, transaction).await.map_err(failed)? {
            if begun.elapsed() > UNSEEN_MAX {
                let what = format!(
                    "transaction {} is in the log, and other sessions do not see it yet: what it did to tables can't be looked up",
                    transaction.as_str()
                );
                let remedy = "it is tried again; if it stays so, look at the synchronous standbys (pg_stat_replication), for which it waits";
                return Err(Error::new(Kind::Transient, "postgres-unseen", what, remedy));
            }
            tokio::time::sleep(LOOKED_EVERY).await;
        }
        Ok(())
    }
}

#[async_trait]
impl LogReader for Reader {
    async fn next(&mut self, limit: Limit) -> Result<LogRead, Error> {
        self.gather(limit).await;
        if self.assembler.is_empty() && self.failed.is_none() {
            // Cancel-safe: what is received is kept before anything else is waited for.
            match tokio::time::timeout(PATIENCE, self.session.next()).await {
                Err(_) => {}
                Ok(Ok(frame)) => {
                    self.held = Some(frame);
                    self.gather(limit).await;
                }
                Ok(Err(error)) => self.failed = Some(self.place.stream_failed(error)),
            }
        }
        if self.assembler.is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        self.assembler.finish(now())
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
