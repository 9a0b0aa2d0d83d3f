//! Where a state is kept for sinks that have no place of their own for it: named texts, each replaced by compare-and-set.
//!
//! The promise is the one that the pipeline record needs (rules R1 to R3): of two lives that replace the same text at the
//! same time at most one is told `Stored`, and what was told `Stored` is there after a power cut. Nothing else is promised,
//! least of all that a failed replacement did not happen: `Unknown` is an answer, and reading again is what it asks for.

mod file;
mod memory;

use async_trait::async_trait;
use kernel::id::Token;
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::state::{PipelineState, TableState};
use serde::de::DeserializeOwned;

pub use file::{FileStore, file_name, make_directory};
pub use memory::MemoryStore;

use crate::{Error, Kind, Recovered, Versioned};

/// Keeps texts by name.
#[async_trait]
pub trait PositionStore: Send + Sync {
    /// The text of that name, with the token that its replacement must show. There is a token for 'none' too.
    async fn read(&self, name: &str) -> Result<Versioned<Option<String>>, Error>;

    /// Replaces the text if it still is the one of `expected`.
    async fn replace(&self, name: &str, expected: &Token, text: &str) -> Replaced;
}

/// What became of a replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replaced {
    /// The text is stored, and stays after a power cut.
    Stored {
        /// Its token.
        token: Token,
    },
    /// Another text was there. Nothing was written.
    Conflict {
        /// The text that is there.
        found: Versioned<Option<String>>,
    },
    /// It may have happened or not.
    Unknown {
        /// What went wrong, for people.
        why: String,
    },
    /// It did not happen.
    Failed(Error),
}

/// The pipeline record that `store` keeps under `name`.
pub async fn pipeline_state(store: &dyn PositionStore, name: &str) -> Result<Versioned<Option<PipelineState>>, Error> {
    read(store, name).await
}

/// The table state that `store` keeps under `name`.
pub async fn table_state(store: &dyn PositionStore, name: &str) -> Result<Recovered, Error> {
    read(store, name).await
}

/// Replaces the pipeline record that `store` keeps under `name`.
pub async fn store_pipeline_state(store: &dyn PositionStore, name: &str, expected: &Token, new: &PipelineState) -> StoreOutcome {
    let text = match encode(name, new) {
        Ok(text) => text,
        Err(error) => return StoreOutcome::Unknown { why: error.to_string() },
    };
    match store.replace(name, expected, &text).await {
        Replaced::Stored { token } => StoreOutcome::Stored { token },
        Replaced::Conflict { found } => match decode(name, found.value) {
            Ok(value) => StoreOutcome::Conflict { found: value.map(Box::new), token: found.token },
            Err(error) => StoreOutcome::Unknown { why: error.to_string() },
        },
        Replaced::Unknown { why } => StoreOutcome::Unknown { why },
        // It did not happen. The outcome has no word for that; 'unknown' claims less, and leads to the same next step.
        Replaced::Failed(error) => StoreOutcome::Unknown { why: error.to_string() },
    }
}

/// Replaces the table state that `store` keeps under `name`: a commit whose data is nowhere or already there. A state that
/// is there already, word for word, is the same commit asked for again.
pub async fn commit_table_state(store: &dyn PositionStore, name: &str, expected: &Token, new: &TableState) -> CommitOutcome {
    let text = match encode(name, new) {
        Ok(text) => text,
        Err(error) => return CommitOutcome::Rejected { why: error.to_string() },
    };
    match store.replace(name, expected, &text).await {
        Replaced::Stored { token } => CommitOutcome::Durable { token },
        Replaced::Conflict { found } if found.value.as_ref() == Some(&text) => CommitOutcome::Durable { token: found.token },
        Replaced::Conflict { found } => match decode(name, found.value) {
            Ok(value) => CommitOutcome::Conflict { found: value.map(Box::new), token: found.token },
            Err(error) => CommitOutcome::Rejected { why: error.to_string() },
        },
        Replaced::Unknown { why } => CommitOutcome::Unknown { why },
        Replaced::Failed(error) if error.kind == Kind::Transient => CommitOutcome::Transient { why: error.to_string() },
        Replaced::Failed(error) => CommitOutcome::Rejected { why: error.to_string() },
    }
}

async fn read<T: DeserializeOwned>(store: &dyn PositionStore, name: &str) -> Result<Versioned<Option<T>>, Error> {
    let stored = store.read(name).await?;
    Ok(Versioned { value: decode(name, stored.value)?, token: stored.token })
}

fn encode(name: &str, state: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(state).map_err(|error| {
        Error::new(
            Kind::Fatal,
            "position-unwritable",
            format!("the state '{name}' has no JSON form: {error}"),
            "report this as a bug",
        )
    })
}

fn decode<T: DeserializeOwned>(name: &str, text: Option<String>) -> Result<Option<T>, Error> {
    let parse = |text: String| {
        serde_json::from_str(&text).map_err(|error| {
            Error::new(
                Kind::Config,
                "position-unreadable",
                format!("the stored state '{name}' cannot be read: {error}"),
                "restore the file from a backup, or use the version of urutau that wrote it",
            )
        })
    };
    text.map(parse).transpose()
}
