//! What can go wrong on a connection, and what can be done about it.

use std::fmt;

use contract::{Error, Kind};

/// An error that the server reports. The detail is left out: it may hold a row's values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerError {
    /// Five letters and digits ("PostgreSQL Error Codes", appendix A of the manual).
    pub(crate) code: String,
    pub(crate) message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)
    }
}

/// Why a connection does not do what it should.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The network, or the other end is gone.
    Io { doing: &'static str, error: std::io::Error },
    /// The server says no.
    Server(ServerError),
    /// It does not speak as it should, or not so that we may go on.
    Refused { code: &'static str, what: String, remedy: &'static str },
    /// It does not keep to the protocol.
    Protocol(String),
}

impl WireError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| WireError::Io { doing, error }
    }

    /// The server's code, if it is the server that says no.
    pub(crate) fn sqlstate(&self) -> Option<&str> {
        match self {
            WireError::Server(error) => Some(&error.code),
            WireError::Io { .. } | WireError::Refused { .. } | WireError::Protocol(_) => None,
        }
    }

    /// As an error of the driver. `doing` says what was to be done, at which server.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        match self {
            WireError::Io { doing: step, error } => Error::new(
                Kind::Transient,
                "postgres-unreachable",
                format!("{doing}: {step}: {error}"),
                "check 'source.uri' and that the server runs and can be reached",
            ),
            WireError::Server(error) => {
                let (kind, code, remedy) = judged(&error.code);
                Error::new(kind, code, format!("{doing}: the server says: {error}"), remedy)
            }
            WireError::Refused { code, what, remedy } => Error::new(Kind::Config, code, format!("{doing}: {what}"), remedy),
            WireError::Protocol(what) => Error::new(
                Kind::Poison,
                "postgres-protocol",
                format!("{doing}: the server's answer can't be read: {what}"),
                "is there a PostgreSQL at the other end? If so, please report this",
            ),
        }
    }
}

/// What can be done about an error of the server, by its code.
fn judged(code: &str) -> (Kind, &'static str, &'static str) {
    let class = code.get(..2).unwrap_or_default();
    match (class, code) {
        (_, "28P01" | "28000") => (Kind::Config, "postgres-login", "check user and password, and the server's pg_hba.conf"),
        (_, "3D000") => (Kind::Config, "postgres-database", "check the database's name in 'source.uri'"),
        (_, "42501") => (Kind::Config, "postgres-privilege", "`urutau doctor` says which rights are missing"),
        (_, "55006") => (
            Kind::Transient,
            "postgres-slot-active",
            "another process reads the slot; stop it, or take another slot: 'source.slotName'",
        ),
        (_, "58P01" | "58030") => (
            Kind::PositionLost,
            "postgres-wal-removed",
            "the slot is of no use any more: drop it, make it anew, and read the tables anew: `urutau table resnapshot`",
        ),
        ("08" | "53" | "57" | "40", _) => (Kind::Transient, "postgres-away", "it may pass; see the server's log"),
        ("42" | "22" | "0A", _) => (Kind::Config, "postgres-statement", "`urutau doctor` checks what the source needs"),
        _ => (Kind::Transient, "postgres-server", "see the server's log"),
    }
}
