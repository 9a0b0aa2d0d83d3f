//! A row delta: data files and deletion vectors added, replaced and removed in one snapshot.
//!
//! The crate has no such action, so this makes one of its public parts. Two manifests at most are new in a commit: one of
//! data files, one of vectors. Each holds what is added and, of the manifests that it replaces, what is carried over and
//! what is removed. A manifest is replaced when something in it is removed, or when there are too many of its size:
//! sixteen of a size become one of the next size, so that a table of n files has some 16 x log16(n) manifests, and a
//! commit reads and writes few of them.
//!
//! In format 3 a data file has at most one vector. The one in force is replaced by one that names its rows too; a data
//! file whose rows are all dead is removed with its vector.

mod expire;
mod manifests;
mod summary;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use contract::{Error, Kind};
use iceberg::spec::{
    DataFile, MAIN_BRANCH, ManifestContentType, ManifestFile, ManifestStatus, SchemaRef, Snapshot, SnapshotReference,
    SnapshotRetention, Summary, TableMetadata,
};
use iceberg::{TableRequirement, TableUpdate};

pub(crate) use expire::{garbage, unnamed};
pub(crate) use manifests::{Live, LiveFile, LiveVector};

use self::manifests::{Entry, Writing, entries, list, list_bytes};
use crate::catalog::Loaded;
use crate::storage::Storage;
use crate::table::schema_id;

/// So many manifests of a size become one of the next.
const MERGE: usize = 16;

/// What a commit does to the files of a table.
#[derive(Debug, Default)]
pub(crate) struct RowDelta {
    /// New data files.
    pub(crate) added: Vec<DataFile>,
    /// New vectors; each replaces the one in force of the data file that it references.
    pub(crate) vectors: Vec<DataFile>,
    /// Data files that go, with their vectors.
    pub(crate) removed: Removed,
    /// The columns that the table has from here on, if they change.
    pub(crate) schema: Option<SchemaRef>,
    /// What its snapshot's summary says beside the counts.
    pub(crate) summary: HashMap<String, String>,
}

/// Data files that go.
#[derive(Debug)]
pub(crate) enum Removed {
    /// These, with the sequence number of each, which tells in which manifests it can be.
    Files(HashMap<Arc<str>, i64>),
    /// All that there are.
    All,
}

impl Default for Removed {
    fn default() -> Self {
        Self::Files(HashMap::new())
    }
}

impl Removed {
    fn takes(&self, path: &str) -> bool {
        match self {
            Self::Files(files) => files.contains_key(path),
            Self::All => true,
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::Files(files) if files.is_empty())
    }
}

/// A delta, ready to be written and swapped in.
#[derive(Debug)]
pub(crate) struct StagedDelta {
    /// Manifests and their list; to be durable before anything else.
    pub(crate) files: Vec<(String, Bytes)>,
    pub(crate) updates: Vec<TableUpdate>,
    pub(crate) requirements: Vec<TableRequirement>,
    /// The snapshot that it makes.
    pub(crate) snapshot_id: i64,
    /// Its sequence number.
    pub(crate) sequence: i64,
    /// Snapshots that it expires.
    pub(crate) expired: Vec<i64>,
}

/// Makes the manifests and metadata changes of a delta. `name` gives each file a name of its own, from what it is.
pub(crate) fn stage(
    storage: &dyn Storage,
    base: &Loaded,
    delta: RowDelta,
    now_ms: i64,
    name: &dyn Fn(&str) -> String,
) -> Result<StagedDelta, Error> {
    let metadata = base.metadata.as_ref();
    let snapshot_id = new_snapshot_id(metadata);
    let mut change = Change {
        storage,
        delta: &delta,
        metadata,
        writing: Writing::new(metadata, snapshot_id, delta.schema.as_ref()),
        counts: summary::Counts::default(),
        manifests: Vec::new(),
        files: Vec::new(),
    };
    let parent = match metadata.current_snapshot() {
        Some(snapshot) => list(storage, metadata, snapshot)?,
        None => Vec::new(),
    };
    let (data, deletes): (Vec<_>, Vec<_>) =
        parent.into_iter().filter(has_files).partition(|m| m.content == ManifestContentType::Data);
    change.data(data, name)?;
    change.deletes(deletes, name)?;

    let Change { counts, manifests, mut files, .. } = change;
    let location = name("list");
    let (bytes, row_ids) = list_bytes(&location, metadata, snapshot_id, manifests)?;
    files.push((location.clone(), bytes));
    let summary = Summary {
        operation: counts.operation(),
        additional_properties: counts.entries(delta.summary, metadata.current_snapshot().map(|s| s.summary())),
    };
    // A clock that was set back must not stop the table: Iceberg refuses snapshots from long before the last.
    let timestamp_ms = now_ms.max(metadata.last_updated_ms());
    let snapshot = Snapshot::builder()
        .with_manifest_list(location)
        .with_snapshot_id(snapshot_id)
        .with_parent_snapshot_id(metadata.current_snapshot_id())
        .with_sequence_number(metadata.next_sequence_number())
        .with_summary(summary)
        .with_schema_id(delta.schema.as_ref().map_or(metadata.current_schema_id(), |schema| schema_id(metadata, schema)))
        .with_timestamp_ms(timestamp_ms)
        .with_row_range(metadata.next_row_id(), row_ids)
        .build();
    let expired = expire::expired(base, timestamp_ms);
    Ok(StagedDelta {
        files,
        updates: updates(base, delta.schema.as_ref(), snapshot, &expired),
        requirements: requirements(metadata),
        snapshot_id,
        sequence: metadata.next_sequence_number(),
        expired,
    })
}

/// What must still be true of the table for a commit made from this metadata.
pub(crate) fn requirements(metadata: &TableMetadata) -> Vec<TableRequirement> {
    vec![
        TableRequirement::UuidMatch { uuid: metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: metadata.current_snapshot_id() },
        TableRequirement::CurrentSchemaIdMatch { current_schema_id: metadata.current_schema_id() },
    ]
}

fn updates(base: &Loaded, schema: Option<&SchemaRef>, snapshot: Snapshot, expired: &[i64]) -> Vec<TableUpdate> {
    let (metadata, id) = (&base.metadata, snapshot.snapshot_id());
    // People may have set how long the branch keeps its snapshots; that stays.
    let unset = SnapshotRetention::branch(None, None, None);
    let retention = base.references.get(MAIN_BRANCH).map_or(unset, |main| main.retention.clone());
    let mut updates = Vec::new();
    if let Some(schema) = schema {
        updates.push(TableUpdate::AddSchema { schema: schema.as_ref().clone() });
        // The last that was added.
        updates.push(TableUpdate::SetCurrentSchema { schema_id: -1 });
    }
    updates.extend([
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference: SnapshotReference::new(id, retention) },
    ]);
    for id in expired {
        if metadata.statistics_for_snapshot(*id).is_some() {
            updates.push(TableUpdate::RemoveStatistics { snapshot_id: *id });
        }
        if metadata.partition_statistics_for_snapshot(*id).is_some() {
            updates.push(TableUpdate::RemovePartitionStatistics { snapshot_id: *id });
        }
    }
    if !expired.is_empty() {
        updates.push(TableUpdate::RemoveSnapshots { snapshot_ids: expired.to_vec() });
    }
    updates
}

fn new_snapshot_id(metadata: &TableMetadata) -> i64 {
    loop {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        let id = ((high ^ low) & 0x7FFF_FFFF_FFFF_FFFF) as i64;
        if id != 0 && metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

fn has_files(manifest: &ManifestFile) -> bool {
    manifest.has_added_files() || manifest.has_existing_files()
}

/// A delta being turned into manifests.
struct Change<'a> {
    storage: &'a dyn Storage,
    delta: &'a RowDelta,
    metadata: &'a TableMetadata,
    writing: Writing,
    counts: summary::Counts,
    manifests: Vec<ManifestFile>,
    files: Vec<(String, Bytes)>,
}

impl Change<'_> {
    fn data(&mut self, parent: Vec<ManifestFile>, name: &dyn Fn(&str) -> String) -> Result<(), Error> {
        let removed = &self.delta.removed;
        let mut missing: HashSet<&str> = match removed {
            Removed::Files(files) => files.keys().map(AsRef::as_ref).collect(),
            Removed::All => HashSet::new(),
        };
        let (mut kept, mut carried) = (Vec::new(), Vec::new());
        for manifest in parent {
            if !may_hold(&manifest, removed) {
                kept.push(manifest);
                continue;
            }
            let alive = self.alive(&manifest)?;
            if alive.iter().any(|entry| removed.takes(entry.file.file_path())) {
                for entry in &alive {
                    missing.remove(entry.file.file_path());
                }
                let spec_id = manifest.partition_spec_id;
                carried
                    .extend(alive.into_iter().map(|entry| (spec_id, Self::carry(entry, |e| removed.takes(e.file.file_path())))));
            } else {
                kept.push(manifest);
            }
        }
        if let Some(path) = missing.into_iter().next() {
            let what = format!("the key index knows the data file {path}, and no manifest of the table does");
            return Err(Error::new(Kind::Transient, "iceberg-index-differs", what, "the index is built anew"));
        }
        self.merge(&mut kept, &mut carried)?;
        let added = self.delta.added.clone();
        self.write(ManifestContentType::Data, kept, carried, added, name)
    }

    fn deletes(&mut self, parent: Vec<ManifestFile>, name: &dyn Fn(&str) -> String) -> Result<(), Error> {
        let (removed, vectors) = (&self.delta.removed, &self.delta.vectors);
        if removed.is_none() && vectors.is_empty() {
            self.manifests.extend(parent);
            return Ok(());
        }
        let replaced: HashSet<String> = vectors.iter().filter_map(DataFile::referenced_data_file).collect();
        let goes = |entry: &Entry| match entry.file.referenced_data_file() {
            Some(path) => replaced.contains(&path) || removed.takes(&path),
            None => matches!(removed, Removed::All),
        };
        let (mut kept, mut carried) = (Vec::new(), Vec::new());
        for manifest in parent {
            let alive = self.alive(&manifest)?;
            if alive.iter().any(goes) {
                let spec_id = manifest.partition_spec_id;
                carried.extend(alive.into_iter().map(|entry| (spec_id, Self::carry(entry, goes))));
            } else {
                kept.push(manifest);
            }
        }
        self.merge(&mut kept, &mut carried)?;
        self.write(ManifestContentType::Deletes, kept, carried, vectors.clone(), name)
    }

    fn alive(&self, manifest: &ManifestFile) -> Result<Vec<Entry>, Error> {
        Ok(entries(self.storage, manifest)?.into_iter().filter(Entry::is_alive).collect())
    }

    fn carry(entry: Entry, goes: impl Fn(&Entry) -> bool) -> Entry {
        let status = if goes(&entry) { ManifestStatus::Deleted } else { ManifestStatus::Existing };
        Entry { status, ..entry }
    }

    /// Replaces the manifests of a size of which there are too many.
    fn merge(&self, kept: &mut Vec<ManifestFile>, carried: &mut Vec<(i32, Entry)>) -> Result<(), Error> {
        let mut sizes: BTreeMap<(i32, u32), usize> = BTreeMap::new();
        for manifest in kept.iter() {
            *sizes.entry(size(manifest)).or_default() += 1;
        }
        let (merged, rest): (Vec<_>, Vec<_>) = kept.drain(..).partition(|manifest| sizes[&size(manifest)] >= MERGE);
        *kept = rest;
        for manifest in merged {
            let spec_id = manifest.partition_spec_id;
            carried.extend(self.alive(&manifest)?.into_iter().map(|entry| (spec_id, Self::carry(entry, |_| false))));
        }
        Ok(())
    }

    /// Writes the new manifest of a content, one for each partition spec, and counts what it changes.
    fn write(
        &mut self,
        content: ManifestContentType,
        kept: Vec<ManifestFile>,
        carried: Vec<(i32, Entry)>,
        added: Vec<DataFile>,
        name: &dyn Fn(&str) -> String,
    ) -> Result<(), Error> {
        let mut by_spec: BTreeMap<i32, Vec<Entry>> = BTreeMap::new();
        for file in added {
            self.counts.add(&file, self.metadata);
            let entry = Entry {
                status: ManifestStatus::Added,
                snapshot_id: self.writing.snapshot_id,
                sequence: -1,
                file_sequence: -1,
                file,
            };
            by_spec.entry(self.metadata.default_partition_spec_id()).or_default().push(entry);
        }
        for (spec_id, entry) in carried {
            if entry.status == ManifestStatus::Deleted {
                self.counts.remove(&entry.file, self.metadata);
            }
            by_spec.entry(spec_id).or_default().push(entry);
        }
        for (spec_id, entries) in by_spec {
            let location = name(if content == ManifestContentType::Data { "data" } else { "vectors" });
            let (placed, bytes) = self.writing.manifest(&location, content, spec_id, &entries)?;
            self.manifests.push(placed);
            self.files.push((location, bytes));
        }
        self.manifests.extend(kept);
        Ok(())
    }
}

/// Can a file that goes be in this manifest?
fn may_hold(manifest: &ManifestFile, removed: &Removed) -> bool {
    match removed {
        Removed::Files(files) => {
            files.values().any(|sequence| (manifest.min_sequence_number..=manifest.sequence_number).contains(sequence))
        }
        Removed::All => true,
    }
}

/// The size class of a manifest, among those of its partition spec.
fn size(manifest: &ManifestFile) -> (i32, u32) {
    let files = manifest.added_files_count.unwrap_or(1) + manifest.existing_files_count.unwrap_or(0);
    (manifest.partition_spec_id, files.max(1).ilog(MERGE as u32))
}

#[cfg(test)]
pub(crate) mod tests_only {
    //! A table's manifests as tests look at them.

    use iceberg::spec::{DataFile, Snapshot, TableMetadata};

    use super::manifests::{entries, list};
    use crate::storage::Storage;

    /// The live data files of each data manifest of a snapshot.
    pub(crate) fn manifests(storage: &dyn Storage, metadata: &TableMetadata, snapshot: &Snapshot) -> Vec<Vec<DataFile>> {
        let data =
            list(storage, metadata, snapshot).unwrap().into_iter().filter(|m| m.content == super::ManifestContentType::Data);
        let alive =
            |manifest| entries(storage, &manifest).unwrap().into_iter().filter(|e| e.is_alive()).map(|e| e.file).collect();
        data.map(alive).collect()
    }

    /// The live data files of a snapshot.
    pub(crate) fn data_files(storage: &dyn Storage, metadata: &TableMetadata, snapshot: &Snapshot) -> Vec<DataFile> {
        manifests(storage, metadata, snapshot).concat()
    }
}
