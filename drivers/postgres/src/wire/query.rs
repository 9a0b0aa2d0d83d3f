//! Statements by the simple protocol: text in, rows of text out. For catalogues, which are small.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::backend;
use super::connection::Connection;
use super::error::{ServerError, WireError};

/// A row of an answer.
pub(crate) type Row = Vec<Option<String>>;

/// No catalogue answers with more.
const ROWS_MAX: usize = 1_000_000;

impl Connection {
    /// The rows that a statement answers.
    pub(crate) async fn query(&mut self, statement: &str) -> Result<Vec<Row>, WireError> {
        let mut bytes = BytesMut::new();
        frontend::query(statement, &mut bytes).map_err(|e| WireError::Protocol(e.to_string()))?;
        self.send(&bytes).await?;
        let mut rows = Vec::new();
        let mut failed: Option<ServerError> = None;
        loop {
            let message = match self.receive().await {
                Ok(message) => message,
                // Of a statement: the server is ready again after it.
                Err(WireError::Server(error)) => {
                    let fatal = error.code.starts_with("57P") || error.code.starts_with("08");
                    if fatal {
                        return Err(WireError::Server(error));
                    }
                    failed = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match message.kind {
                b'D' if rows.len() < ROWS_MAX => rows.push(backend::data_row(&message.body)?),
                b'Z' => return failed.map_or(Ok(rows), |error| Err(WireError::Server(error))),
                b'T' | b'C' | b'I' | b'N' | b'S' => {}
                other => return Err(WireError::Protocol(format!("'{}' came in answer to a statement", char::from(other)))),
            }
        }
    }
}

/// A text as SQL, whatever is in it.
pub(crate) fn literal(text: &str) -> String {
    // With a backslash the escape form is needed, which reads the same whatever standard_conforming_strings says.
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// A name as SQL, whatever is in it.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_or_a_name_ends_it_early() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    }
}
