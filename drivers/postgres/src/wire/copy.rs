//! Rows in bulk: what a COPY sends, as it comes, and how to make it stop.

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;

use super::connection::{Connection, Endpoint};
use super::error::{ServerError, WireError};

/// What the server says to a statement that was cancelled.
const CANCELLED: &str = "57014";

impl Connection {
    /// Begins a COPY ... TO STDOUT.
    pub(crate) async fn copy_out(&mut self, statement: &str) -> Result<(), WireError> {
        let mut bytes = BytesMut::new();
        frontend::query(statement, &mut bytes).map_err(|e| WireError::Protocol(e.to_string()))?;
        self.send(&bytes).await?;
        loop {
            let message = match self.receive().await {
                Ok(message) => message,
                Err(error) => return Err(self.until_ready(error).await),
            };
            match message.kind {
                b'H' => return Ok(()),
                b'N' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// What comes next of it; `None` at its end.
    pub(crate) async fn copied(&mut self) -> Result<Option<Bytes>, WireError> {
        loop {
            let message = match self.receive().await {
                Ok(message) => message,
                Err(error) => return Err(self.until_ready(error).await),
            };
            match message.kind {
                b'd' => return Ok(Some(message.body)),
                b'Z' => return Ok(None),
                b'c' | b'C' | b'N' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Makes the COPY stop, and reads past what is on its way. The server is ready after it, in a transaction that failed.
    pub(crate) async fn stop_copy(&mut self, endpoint: &Endpoint) -> Result<(), WireError> {
        endpoint.cancel(self).await?;
        loop {
            match self.copied().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) if error.sqlstate() == Some(CANCELLED) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// After an error of a statement the server says when it is ready again; after another one it says nothing.
    async fn until_ready(&mut self, error: WireError) -> WireError {
        let WireError::Server(ServerError { code, .. }) = &error else { return error };
        if code.starts_with("57P") || code.starts_with("08") {
            return error;
        }
        loop {
            match self.receive().await {
                Ok(message) if message.kind == b'Z' => return error,
                Ok(_) => {}
                Err(_) => return error,
            }
        }
    }
}

fn unexpected(kind: u8) -> WireError {
    WireError::Protocol(format!("'{}' came in answer to a COPY", char::from(kind)))
}
