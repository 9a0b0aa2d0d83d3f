//! Where a table's state lies in its metadata, and which state is true when others have changed the table.
//!
//! A commit writes its [`TableState`] twice, in one act with its data: into the summary of its snapshot and as a property
//! of the table. Beside the state stand the commit's id, the pipeline's name and the position as text.
//!
//! | name | in the summary | as a property |
//! |---|---|---|
//! | `urutau.state` | the state after this snapshot, JSON | the newest state |
//! | `urutau.commit-id` | `incarnation.number` | the same |
//! | `urutau.pipeline` | the pipeline | the same |
//! | `cdc.position` | the whole transactions that are covered, as text | the same |
//! | `urutau.generation-began` | `generation:sequence number`, see [`Began`] | the same |
//! | `urutau.snapshot` | | the id of the snapshot with the property's state; absent: there was none yet |
//!
//! # Which state is true
//!
//! *The ancestry of the current snapshot decides what data is there*, so it decides which state is true (rules C5, C6):
//!
//! 1. Walk from the current snapshot through its parents to the first whose summary holds a state. Foreign snapshots
//!    (compaction, deletes, appends) hold none and are passed over: data that ours describes is below them.
//! 2. The property wins over the snapshot found if it names that very snapshot: then it is a later state of the same data
//!    (a write that changes no data keeps its commit id and makes no snapshot). If it names another one, somebody rolled
//!    the table back, and the property is about data that is not there any more: it is ignored.
//! 3. The walk may come to a parent that others expired. If the property names that very snapshot, or was written before
//!    there was one, its state is true. Otherwise the table's older metadata files, as far as it remembers them, still know
//!    the parent and the walk goes on there. If they do not, nothing is proven, and that is an error: to guess would be to
//!    skip rows or to double them.
//! 4. The walk may reach the first snapshot, or there is no snapshot at all. Then the property's state is true only if it
//!    was written before there was one; else the data that it describes was taken away, and there is no state.

mod generation;
mod record;

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Error, Kind};
use iceberg::TableUpdate;
use iceberg::spec::{SnapshotRef, TableMetadata};
use kernel::id::Token;
use kernel::state::{FORMAT, TableState};

pub(crate) use generation::Began;
pub(crate) use record::Record;

use crate::blocking;
use crate::catalog::Loaded;
use crate::storage::Storage;

/// The state, as JSON.
pub(crate) const STATE: &str = "urutau.state";
/// The commit's id.
pub(crate) const COMMIT: &str = "urutau.commit-id";
/// The pipeline that made the table.
pub(crate) const PIPELINE: &str = "urutau.pipeline";
/// The position, for people and for other tools.
pub(crate) const POSITION: &str = "cdc.position";
/// The snapshot that the property's state describes.
pub(crate) const SNAPSHOT: &str = "urutau.snapshot";
/// Where the state's generation began.
pub(crate) const BEGAN: &str = "urutau.generation-began";

/// Where a table stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    /// Its state; `None` if it has none.
    pub(crate) state: Option<TableState>,
    /// The snapshot that the state describes; `None` if it has no data.
    pub(crate) snapshot: Option<i64>,
    /// Where the state's generation began, if that was noted with it.
    pub(crate) began: Option<Began>,
}

/// The token of a table: it differs after whatever anybody did to it. A snapshot id alone repeats after a rollback.
pub(crate) fn token(loaded: &Loaded) -> Token {
    let metadata = &loaded.metadata;
    let snapshot = metadata.current_snapshot_id().map_or("-".to_owned(), |id| id.to_string());
    let file = loaded.location.rsplit('/').next().unwrap_or(&loaded.location);
    Token::from(format!("{}:{snapshot}:{file}", metadata.last_sequence_number()))
}

/// Finds the table's state as the module's text says.
pub(crate) async fn standing(storage: &Arc<dyn Storage>, loaded: &Loaded) -> Result<Standing, Error> {
    let property = Property::of(loaded)?;
    let is_proven = |parent| property.as_ref().is_none_or(|p| p.snapshot.is_none_or(|id| id == parent));
    let mut older = HashMap::new();
    let mut remembered = loaded.metadata.metadata_log().iter().rev();
    loop {
        return match newest_in_ancestry(&loaded.metadata, &older) {
            Ancestry::State(snapshot) => {
                let place = format!("the summary of snapshot {}", snapshot.snapshot_id());
                let stored = Stored::of(loaded, &snapshot.summary().additional_properties, &place)?;
                let id = Some(snapshot.snapshot_id());
                let later = property.filter(|p| p.snapshot == id).map(|p| p.stored);
                Ok(Standing::new(later.or(stored), id))
            }
            Ancestry::Expired(parent) if is_proven(parent) => {
                let snapshot = property.as_ref().and_then(|p| p.snapshot);
                Ok(Standing::new(property.map(|p| p.stored), snapshot))
            }
            Ancestry::Expired(parent) => {
                let Some(file) = remembered.next() else { return Err(unproven(loaded, parent)) };
                older.extend(snapshots_of(storage, file.metadata_file.clone()).await?);
                continue;
            }
            Ancestry::None => Ok(Standing::new(property.filter(|p| p.snapshot.is_none()).map(|p| p.stored), None)),
        };
    }
}

/// The snapshots that an older metadata file knows; none if it is gone.
async fn snapshots_of(storage: &Arc<dyn Storage>, file: String) -> Result<Vec<(i64, SnapshotRef)>, Error> {
    let storage = Arc::clone(storage);
    blocking::run(move || {
        let json = match storage.read(&file) {
            Err(e) if e.is_absent() => return Ok(Vec::new()),
            read => read?,
        };
        // One that cannot be read proves nothing, like one that is gone.
        let metadata = serde_json::from_slice::<TableMetadata>(&json).ok();
        Ok(metadata.iter().flat_map(|m| m.snapshots()).map(|s| (s.snapshot_id(), Arc::clone(s))).collect())
    })
    .await
}

/// The entries of a summary, or of the properties, for a state.
pub(crate) fn entries(pipeline: &str, state: &TableState, began: Option<Began>) -> HashMap<String, String> {
    // A state is numbers and text under fixed names: this always is JSON.
    let json = serde_json::to_string(state).unwrap_or_default();
    let began = began.map(|began| (BEGAN.to_owned(), began.to_string()));
    let entries = [
        (STATE.to_owned(), json),
        (COMMIT.to_owned(), state.commit.to_string()),
        (PIPELINE.to_owned(), pipeline.to_owned()),
        (POSITION.to_owned(), state.cut.upto().to_string()),
    ];
    entries.into_iter().chain(began).collect()
}

/// The changes that make the properties of a table those of a state that describes `snapshot`.
pub(crate) fn properties(
    base: &TableMetadata,
    pipeline: &str,
    state: &TableState,
    began: Option<Began>,
    snapshot: Option<i64>,
) -> Vec<TableUpdate> {
    let mut updates = entries(pipeline, state, began);
    updates.extend(snapshot.map(|id| (SNAPSHOT.to_owned(), id.to_string())));
    // What stands there without a successor is about another state.
    let goes = |name: &&str| !updates.contains_key(*name) && base.properties().contains_key(*name);
    let removals: Vec<String> = [BEGAN, SNAPSHOT].into_iter().filter(goes).map(str::to_owned).collect();
    let removed = (!removals.is_empty()).then_some(TableUpdate::RemoveProperties { removals });
    removed.into_iter().chain([TableUpdate::SetProperties { updates }]).collect()
}

/// Fails if another pipeline made the table, or nobody knows who and it has rows.
pub(crate) fn check_pipeline(loaded: &Loaded, pipeline: &str) -> Result<(), Error> {
    let wrong = |what: String| {
        let remedy = "choose another target, namespace or warehouse; or, if the table is to be taken over as it is, set its \
                      property urutau.pipeline to this pipeline's name; or drop it";
        Err(Error::new(Kind::Config, "iceberg-foreign-table", what, remedy))
    };
    match loaded.metadata.properties().get(PIPELINE) {
        Some(made_by) if made_by == pipeline => Ok(()),
        Some(made_by) => {
            wrong(format!("table '{}' was made by another pipeline: by '{made_by}', not by '{pipeline}'", loaded.ident))
        }
        None if loaded.metadata.current_snapshot().is_none() => Ok(()),
        None => wrong(format!("table '{}' was not made by pipeline '{pipeline}': it has no property {PIPELINE}", loaded.ident)),
    }
}

/// What the walk through the ancestors of the current snapshot found.
enum Ancestry<'a> {
    /// The newest snapshot with a state.
    State(&'a SnapshotRef),
    /// No state up to a snapshot whose parent, this one, is not kept.
    Expired(i64),
    /// No state up to the first snapshot, or no snapshot.
    None,
}

fn newest_in_ancestry<'a>(metadata: &'a TableMetadata, older: &'a HashMap<i64, SnapshotRef>) -> Ancestry<'a> {
    let mut at = metadata.current_snapshot();
    while let Some(snapshot) = at {
        if snapshot.summary().additional_properties.contains_key(STATE) {
            return Ancestry::State(snapshot);
        }
        let Some(parent) = snapshot.parent_snapshot_id() else { return Ancestry::None };
        at = metadata.snapshot_by_id(parent).or_else(|| older.get(&parent));
        if at.is_none() {
            return Ancestry::Expired(parent);
        }
    }
    Ancestry::None
}

/// The snapshots from the current one back to the first that is kept, newest first.
pub(crate) fn ancestry(metadata: &TableMetadata) -> impl Iterator<Item = &SnapshotRef> {
    let parent = |snapshot: &&SnapshotRef| metadata.snapshot_by_id(snapshot.parent_snapshot_id()?);
    std::iter::successors(metadata.current_snapshot(), parent)
}

impl Standing {
    fn new(stored: Option<Stored>, snapshot: Option<i64>) -> Self {
        let (state, began) = stored.map(|stored| (stored.state, stored.began)).unzip();
        Self { state, snapshot, began: began.flatten() }
    }
}

/// A state with what stands beside it.
struct Stored {
    state: TableState,
    began: Option<Began>,
}

/// The state that stands as a property.
struct Property {
    stored: Stored,
    snapshot: Option<i64>,
}

impl Property {
    fn of(loaded: &Loaded) -> Result<Option<Self>, Error> {
        let properties = loaded.metadata.properties();
        let Some(stored) = Stored::of(loaded, properties, "its properties")? else { return Ok(None) };
        let snapshot = match properties.get(SNAPSHOT) {
            None => None,
            Some(id) => Some(id.parse().map_err(|_| damaged(loaded, SNAPSHOT, "its properties", "it is no number"))?),
        };
        Ok(Some(Self { stored, snapshot }))
    }
}

impl Stored {
    fn of(loaded: &Loaded, entries: &HashMap<String, String>, place: &str) -> Result<Option<Self>, Error> {
        let Some(text) = entries.get(STATE) else { return Ok(None) };
        let state = parse(loaded, text, place)?;
        let began = entries.get(BEGAN).map(|text| text.parse::<Began>().map_err(|why| damaged(loaded, BEGAN, place, why)));
        // One of another generation is about another state.
        let began = began.transpose()?.filter(|began| began.generation == state.generation);
        Ok(Some(Self { state, began }))
    }
}

fn parse(loaded: &Loaded, text: &str, place: &str) -> Result<TableState, Error> {
    let state: TableState = serde_json::from_str(text).map_err(|e| damaged(loaded, STATE, place, &e.to_string()))?;
    if state.format > FORMAT {
        let why = format!("it is of format {}, and this version knows up to {FORMAT}", state.format);
        return Err(damaged(loaded, STATE, place, &why));
    }
    Ok(state)
}

fn damaged(loaded: &Loaded, name: &str, place: &str, why: &str) -> Error {
    let what = format!("{name} in {place} of table '{}' is not what urutau wrote: {why}", loaded.ident);
    Error::new(
        Kind::Config,
        "iceberg-state-unreadable",
        what,
        "restore it, run the version that wrote it, or drop the table and let it be copied anew",
    )
}

fn unproven(loaded: &Loaded, parent: i64) -> Error {
    let what = format!(
        "the state of table '{}' cannot be told: others changed it and expired snapshot {parent}, below which the state's data would lie",
        loaded.ident
    );
    let remedy = "roll the table back to a snapshot that urutau wrote, or drop it and let it be copied anew";
    Error::new(Kind::Config, "iceberg-state-unproven", what, remedy)
}
