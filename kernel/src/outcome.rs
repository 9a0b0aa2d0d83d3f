//! What became of a command that the world carried out, or did not, or perhaps did.
//!
//! A write whose answer was lost is *unknown*: it may have happened, it may happen yet. Nothing may be concluded from it
//! but by asking again with the same names (rule C5).

use alloc::boxed::Box;
use alloc::string::String;

use crate::id::Token;
use crate::state::{PipelineState, TableState};

/// What became of a commit of one table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CommitOutcome {
    /// Data and state are visible, and stay after a power cut. `token` is for the next commit.
    Durable {
        /// The token of the state that was written.
        token: Token,
    },
    /// The table was not where the token said. Nothing was written.
    Conflict {
        /// The state that is there.
        found: Option<Box<TableState>>,
        /// Its token.
        token: Token,
    },
    /// No answer, or one that says nothing.
    Unknown {
        /// What happened, for people.
        why: String,
    },
    /// The sink itself knows that a newer life has taken over.
    Superseded,
    /// The sink refuses these rows or this table. Trying again changes nothing.
    Rejected {
        /// What it refuses and what would help, for people.
        why: String,
    },
    /// It did not happen, and may succeed later.
    Transient {
        /// What happened, for people.
        why: String,
    },
}

/// What became of a part's rows at a worker.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WriteOutcome {
    /// Staged: durable but invisible, or visible and idempotent by version.
    Written,
    /// As in [`CommitOutcome::Rejected`].
    Rejected {
        /// What is refused and what would help, for people.
        why: String,
    },
    /// It did not happen, or nobody knows; the same attempt may be made again.
    Transient {
        /// What happened, for people.
        why: String,
    },
}

/// What became of the pipeline record's replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StoreOutcome {
    /// It is stored.
    Stored {
        /// The token of what was stored.
        token: Token,
    },
    /// Another record was there. Nothing was written.
    Conflict {
        /// The record that is there.
        found: Option<Box<PipelineState>>,
        /// Its token.
        token: Token,
    },
    /// No answer, or one that says nothing.
    Unknown {
        /// What happened, for people.
        why: String,
    },
}

/// Why the log could not be opened or read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LogFailure {
    /// The session is gone; another may be opened.
    SessionLost {
        /// What happened, for people.
        why: String,
    },
    /// The log holds something that cannot be read and that belongs to no table. Everything before it was delivered.
    Poison {
        /// What, where, and what to do.
        why: String,
    },
    /// What was asked for is no longer there, or another log is in its place.
    PositionLost {
        /// What, where, and what to do.
        why: String,
    },
    /// It can never work as configured.
    Config {
        /// What, where, and what to do.
        why: String,
    },
}
