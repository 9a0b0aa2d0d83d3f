//! Which metadata file is a table's present one, and how another becomes it: the catalogue.
//!
//! All that the sink needs of a catalogue are three calls. The third is the one on which everything rests: a linearizable
//! compare-and-set. It answers what became of it, and 'nobody knows' is an answer: the crate's own catalogues retry and
//! re-base silently and have no word for it. A REST catalogue is another implementation of this trait.

mod embedded;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use contract::{Error, async_trait};
use iceberg::spec::{Schema, SnapshotReference, TableMetadata};
use iceberg::{TableIdent, TableRequirement, TableUpdate};

pub(crate) use embedded::Embedded;

/// A catalogue.
#[async_trait]
pub(crate) trait Catalog: Send + Sync + fmt::Debug {
    /// The table as it is now; `None` if there is none.
    async fn load(&self, table: &TableIdent) -> Result<Option<Loaded>, Error>;

    /// Makes a table without snapshots. `None`: there already is one of that name.
    async fn create(&self, table: &TableIdent, new: NewTable) -> Result<Option<Loaded>, Error>;

    /// Replaces the metadata of a table if it still is the one that the commit was made from.
    async fn commit(&self, commit: Commit<'_>) -> Outcome;

    /// Does [`Catalog::commit`] notice *any* other commit in between? If it only compares the current snapshot, a commit
    /// must bring a snapshot to be noticed by the next one.
    fn compares_metadata(&self) -> bool;
}

/// A table to be made.
#[derive(Debug)]
pub(crate) struct NewTable {
    /// Its columns; field ids are given anew.
    pub(crate) schema: Schema,
    /// Its properties.
    pub(crate) properties: Vec<(String, String)>,
}

/// A table as a catalogue knew it at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Its name.
    pub(crate) ident: TableIdent,
    /// Its metadata.
    pub(crate) metadata: Arc<TableMetadata>,
    /// Where that metadata is stored. No two versions of a table are stored at one location.
    pub(crate) location: String,
    /// Its branches and tags. The crate keeps them to itself; their JSON does not.
    pub(crate) references: Arc<HashMap<String, SnapshotReference>>,
}

impl Loaded {
    /// A table whose metadata is stored as `json`.
    pub(crate) fn new(
        ident: TableIdent,
        metadata: TableMetadata,
        location: String,
        json: &[u8],
    ) -> Result<Self, serde_json::Error> {
        #[derive(serde::Deserialize)]
        struct References {
            #[serde(default)]
            refs: HashMap<String, SnapshotReference>,
        }
        let References { refs } = serde_json::from_slice(json)?;
        Ok(Self { ident, metadata: Arc::new(metadata), location, references: Arc::new(refs) })
    }
}

/// What a table's metadata should become.
#[derive(Debug)]
pub(crate) struct Commit<'a> {
    /// What it was made from.
    pub(crate) base: &'a Loaded,
    /// What must still be true, for catalogues that cannot compare locations.
    pub(crate) requirements: Vec<TableRequirement>,
    /// The changes.
    pub(crate) updates: Vec<TableUpdate>,
    /// What the commit is about: tests stop the process at those of data.
    pub(crate) about: About,
}

/// What a commit is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    /// A table's data and state.
    Data,
    /// The pipeline's record.
    Record,
}

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is the table's metadata, and stays after a power cut.
    Committed {
        /// The table as it is now.
        now: Loaded,
        /// Metadata files that the table does not remember any more, and that are to go.
        forgotten: Vec<String>,
    },
    /// The table was another one meanwhile. Nothing was changed.
    Conflict,
    /// It was not sent: nothing was changed, nothing will be.
    Unsent(Error),
    /// No answer, or one that says nothing. It may have happened, it may happen yet.
    Unknown(String),
    /// The change makes no sense to the catalogue. Nothing was changed.
    Refused(String),
}
