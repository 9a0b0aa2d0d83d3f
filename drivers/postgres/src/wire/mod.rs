//! The connection to a server: TLS, who we are, simple queries, rows in bulk, and the replication stream. Thin async files around formats that
//! are read without I/O (`pgoutput`, [`backend`]).
//!
//! One client for both uses, so that a password goes over the wire by one set of rules only: in clear text or as MD5 never
//! without TLS, by SCRAM with channel binding wherever the server offers it.

mod authenticate;
mod backend;
mod connection;
mod copy;
mod error;
mod query;
mod replication;
mod tls;

pub(crate) use connection::{Connection, Endpoint, Purpose};
pub(crate) use error::WireError;
pub(crate) use query::{Row, identifier, literal};
pub(crate) use replication::{Ended, Received, Session, StreamOptions};
pub(crate) use tls::{Tls, TlsFiles, TlsMode};
