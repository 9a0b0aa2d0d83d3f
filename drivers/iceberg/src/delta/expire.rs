//! How much of a table's past is kept, and which files nothing names any more.
//!
//! A commit every ten seconds is 8,640 snapshots a day, so each commit expires old ones in the same act. Kept are:
//!
//! - the newest 20 (`history.expire.min-snapshots-to-keep`),
//! - those younger than half an hour (`history.expire.max-snapshot-age-ms`), but no more than 200 in all,
//! - whatever a branch or tag names.
//!
//! That is beyond any recovery: a state is found at the newest snapshot, and whether a commit of unknown outcome landed is
//! told by the list of ancestors that each state holds, not by old snapshots. They are kept for readers, who may take
//! half an hour for a query, and for people who roll a table back. `gc.enabled = false` keeps everything.
//!
//! After the swap the files that only expired snapshots named are deleted. In a line of snapshots a file that dies never
//! comes back, so comparing each expired snapshot with its successor tells them; it reads the few manifests in which the
//! two differ. If there are branches, holes or rolled back ends, all manifests of what is kept are read instead.

use std::collections::{HashMap, HashSet};

use contract::Error;
use iceberg::spec::{MAIN_BRANCH, ManifestFile, SnapshotRef, TableMetadata};
use kernel::id::Incarnation;

use super::manifests::{entries, list};
use crate::catalog::Loaded;
use crate::open::{data_directory, life_of, metadata_directory};
use crate::state::ancestry;
use crate::storage::Storage;
use crate::table::number;

/// No more snapshots than this are kept of a branch, however young.
const SNAPSHOTS_MAX: usize = 200;
const AGE_MS: u64 = 1_800_000;
const KEEP_MIN: u64 = 20;

/// The snapshots that the next commit expires.
pub(super) fn expired(base: &Loaded, now_ms: i64) -> Vec<i64> {
    let metadata = base.metadata.as_ref();
    let properties = metadata.properties();
    if properties.get("gc.enabled").is_some_and(|enabled| enabled == "false") {
        return Vec::new();
    }
    let age_ms = number(properties, "history.expire.max-snapshot-age-ms", AGE_MS);
    let keep_min = usize::try_from(number(properties, "history.expire.min-snapshots-to-keep", KEEP_MIN)).unwrap_or(usize::MAX);
    let is_old = |snapshot: &SnapshotRef| u64::try_from(now_ms - snapshot.timestamp_ms()).is_ok_and(|age| age > age_ms);
    let named = base.references.iter().filter(|(name, _)| *name != MAIN_BRANCH);
    let mut kept: HashSet<i64> = named.map(|(_, reference)| reference.snapshot_id).collect();
    // The commit's own snapshot is the first of the line.
    let line = ancestry(metadata).zip(1..);
    kept.extend(line.take_while(|(s, n)| *n < keep_min || (*n < SNAPSHOTS_MAX && !is_old(s))).map(|(s, _)| s.snapshot_id()));
    let in_line: HashSet<i64> = ancestry(metadata).map(|s| s.snapshot_id()).collect();
    let goes = |s: &&SnapshotRef| !kept.contains(&s.snapshot_id()) && (in_line.contains(&s.snapshot_id()) || is_old(s));
    let mut expired: Vec<i64> = metadata.snapshots().filter(goes).map(|s| s.snapshot_id()).collect();
    expired.sort_unstable();
    expired
}

/// The files that nothing names after a commit that expired snapshots.
pub(crate) fn garbage(
    storage: &dyn Storage,
    before: &TableMetadata,
    after: &TableMetadata,
    expired: &[i64],
) -> Result<Vec<String>, Error> {
    if expired.is_empty() {
        return Ok(Vec::new());
    }
    let gone: Vec<&SnapshotRef> = expired.iter().filter_map(|id| before.snapshot_by_id(*id)).collect();
    let mut files: Vec<String> = gone.iter().map(|s| s.manifest_list().to_owned()).collect();
    for id in expired {
        files.extend(before.statistics_for_snapshot(*id).map(|s| s.statistics_path.clone()));
        files.extend(before.partition_statistics_for_snapshot(*id).map(|s| s.statistics_path.clone()));
    }
    files.extend(match line_of(before, after, expired) {
        Some(line) => dead_in_line(storage, before, after, &line)?,
        None => dead_anywhere(storage, before, after, &gone)?,
    });
    Ok(files)
}

/// The expired snapshots and the one after them, oldest first, if all there is is one line of snapshots and they are its
/// oldest end.
fn line_of<'a>(before: &'a TableMetadata, after: &'a TableMetadata, expired: &[i64]) -> Option<Vec<&'a SnapshotRef>> {
    let kept: Vec<&SnapshotRef> = ancestry(after).collect();
    let oldest = *kept.last()?;
    let mut line = vec![oldest];
    let mut parent = oldest.parent_snapshot_id();
    while let Some(snapshot) = parent.and_then(|id| before.snapshot_by_id(id)) {
        line.push(snapshot);
        parent = snapshot.parent_snapshot_id();
    }
    line.reverse();
    let is_all = kept.len() == after.snapshots().len() && line.len() == expired.len() + 1;
    is_all.then_some(line)
}

fn dead_in_line(
    storage: &dyn Storage,
    before: &TableMetadata,
    after: &TableMetadata,
    line: &[&SnapshotRef],
) -> Result<Vec<String>, Error> {
    let mut dead = Vec::new();
    let mut manifests = line.first().map(|first| by_path(storage, before, first)).transpose()?.unwrap_or_default();
    for next in line.iter().skip(1) {
        let following = by_path(storage, after, next)?;
        let only_before: Vec<&ManifestFile> = manifests.values().filter(|m| !following.contains_key(&m.manifest_path)).collect();
        let only_after: Vec<&ManifestFile> = following.values().filter(|m| !manifests.contains_key(&m.manifest_path)).collect();
        let alive = files_of(storage, &only_after)?;
        dead.extend(files_of(storage, &only_before)?.into_iter().filter(|path| !alive.contains(path)));
        dead.extend(only_before.iter().map(|m| m.manifest_path.clone()));
        manifests = following;
    }
    Ok(dead)
}

fn dead_anywhere(
    storage: &dyn Storage,
    before: &TableMetadata,
    after: &TableMetadata,
    gone: &[&SnapshotRef],
) -> Result<Vec<String>, Error> {
    let mut kept = HashMap::new();
    for snapshot in after.snapshots() {
        kept.extend(by_path(storage, after, snapshot)?);
    }
    let mut only_before = HashMap::new();
    for snapshot in gone {
        only_before.extend(by_path(storage, before, snapshot)?.into_iter().filter(|(path, _)| !kept.contains_key(path)));
    }
    let alive = files_of(storage, &kept.values().collect::<Vec<_>>())?;
    let was_alive = files_of(storage, &only_before.values().collect::<Vec<_>>())?;
    Ok(was_alive.into_iter().filter(|path| !alive.contains(path)).chain(only_before.into_keys()).collect())
}

fn by_path(
    storage: &dyn Storage,
    metadata: &TableMetadata,
    snapshot: &SnapshotRef,
) -> Result<HashMap<String, ManifestFile>, Error> {
    Ok(list(storage, metadata, snapshot)?.into_iter().map(|m| (m.manifest_path.clone(), m)).collect())
}

/// The files that are alive in manifests. Many vectors share one.
fn files_of(storage: &dyn Storage, manifests: &[&ManifestFile]) -> Result<HashSet<String>, Error> {
    let mut files = HashSet::new();
    for manifest in manifests {
        let alive = entries(storage, manifest)?.into_iter().filter(|entry| entry.is_alive());
        files.extend(alive.map(|entry| entry.file.file_path().to_owned()));
    }
    Ok(files)
}

/// Files of lives before `incarnation` that no kept snapshot names: what they staged or wrote and never published, and
/// what they could not delete any more. Asked only when a commit of this life is durable: whatever an older life still
/// does is made from metadata that is not the table's any more, so it cannot succeed.
pub(crate) fn unnamed(storage: &dyn Storage, loaded: &Loaded, incarnation: Incarnation) -> Result<Vec<String>, Error> {
    let metadata = loaded.metadata.as_ref();
    let mut manifests = HashMap::new();
    let mut named: HashSet<String> = HashSet::from([loaded.location.clone()]);
    for snapshot in metadata.snapshots() {
        named.insert(snapshot.manifest_list().to_owned());
        manifests.extend(by_path(storage, metadata, snapshot)?);
    }
    named.extend(files_of(storage, &manifests.values().collect::<Vec<_>>())?);
    named.extend(manifests.into_keys());
    named.extend(metadata.metadata_log().iter().map(|log| log.metadata_file.clone()));
    let present = version_of(&loaded.location);
    let mut files = storage.list(&data_directory(loaded))?;
    files.extend(storage.list(&metadata_directory(loaded))?);
    files.retain(|file| !named.contains(file) && (is_older_life(file, incarnation) || is_lost_metadata(file, present)));
    Ok(files)
}

fn is_older_life(file: &str, incarnation: Incarnation) -> bool {
    life_of(file).is_some_and(|life| life < incarnation)
}

/// A metadata file that is neither present nor remembered, of a version that was decided for another one: it was never
/// swapped in, or is forgotten.
fn is_lost_metadata(file: &str, present: Option<u64>) -> bool {
    matches!((version_of(file), present), (Some(version), Some(present)) if version <= present)
}

fn version_of(location: &str) -> Option<u64> {
    let name = location.rsplit('/').next()?.strip_suffix(".metadata.json")?;
    name.split_once('-')?.0.parse().ok()
}
