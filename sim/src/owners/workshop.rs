//! A worker's process: the kernel's owner, and what its pump keeps: rows, key indexes, look-ups.

use std::collections::BTreeMap;

use kernel::id::{AttemptId, BatchId, FileName, Version, WorkerId};
use kernel::planted::PlantedBug;
use kernel::route::{Deletions, IndexAt, IndexName, Owner, OwnerConfig, OwnerInput, Run, ToOwner};
use kernel::time::{Duration, Time};

use super::lead::number;
use super::sinks::{Row, file_of};
use super::story::{Key, Kind};

type Contents = BTreeMap<Key, (FileName, u64)>;
/// What an attempt does to an index: where its keys are then.
type Overlay = BTreeMap<Key, Option<(FileName, u64)>>;

pub(super) struct Workshop {
    pub(super) owner: Owner,
    kinds: Vec<Kind>,
    rows: BTreeMap<(AttemptId, BatchId), Vec<Row>>,
    of: BTreeMap<AttemptId, Vec<Run>>,
    indexes: BTreeMap<IndexName, Contents>,
    overlays: BTreeMap<AttemptId, Overlay>,
    /// When the last command of an index lands.
    pub(super) lanes: BTreeMap<IndexName, u64>,
}

/// How often a worker says that it is there.
const ALIVE: u64 = 30;
/// How long it waits where nothing is heard.
const SILENCE: u64 = 120;

impl Workshop {
    pub(super) fn new(now: u64, worker: u64, kinds: &[Kind], planted: Option<PlantedBug>) -> Self {
        let config = OwnerConfig {
            alive_interval: Duration(ALIVE),
            silence: Duration(SILENCE),
            planted,
            ..OwnerConfig::new(WorkerId(worker))
        };
        Self {
            owner: Owner::new(Time(now), config),
            kinds: kinds.to_vec(),
            rows: BTreeMap::new(),
            of: BTreeMap::new(),
            indexes: BTreeMap::new(),
            overlays: BTreeMap::new(),
            lanes: BTreeMap::new(),
        }
    }

    /// Takes a fact, with the rows that came with it. They are kept if the owner keeps the attempt that they are for.
    pub(super) fn handle(&mut self, now: u64, input: OwnerInput, rows: Vec<Row>) {
        if let OwnerInput::Heard { message: ToOwner::Rows { attempt, run, .. }, .. } = &input {
            self.rows.insert((*attempt, run.rows.batch), rows);
            self.of.entry(*attempt).or_default().push(run.clone());
        }
        self.owner.handle_input(Time(now), input);
    }

    /// Drops what is held of attempts that the owner does not know. By the rules there is nothing.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.overlays.remove(&attempt);
        for run in self.of.remove(&attempt).into_iter().flatten() {
            self.rows.remove(&(attempt, run.rows.batch));
        }
    }

    /// What came for nobody is not kept.
    pub(super) fn tidy(&mut self) {
        let known: Vec<AttemptId> = self.owner.attempts().collect();
        let unknown: Vec<AttemptId> = self.of.keys().filter(|a| !known.contains(a)).copied().collect();
        unknown.into_iter().for_each(|attempt| self.forget(attempt));
    }

    /// The last image of each key, or every row of a table that is only appended to, with the versions that are asked for.
    pub(super) fn netted(&self, attempt: AttemptId, kind: Kind, runs: &[Run]) -> Vec<Row> {
        let mut all = vec![];
        for run in runs {
            let Some(rows) = self.rows.get(&(attempt, run.rows.batch)) else { continue };
            let first = rows.first().map_or(Version::default(), |r| r.version);
            let shifted = rows
                .iter()
                .map(|row| Row { version: Version(run.first.0.wrapping_add(row.version.0.wrapping_sub(first.0))), ..*row });
            all.extend(shifted);
        }
        if kind == Kind::Appended {
            return all;
        }
        let last: BTreeMap<Key, Row> = all.into_iter().map(|row| (row.key, row)).collect();
        last.into_values().collect()
    }

    fn kind_of(&self, index: &IndexName) -> Kind {
        self.kinds[number(&index.table)]
    }

    /// Where the rows are that an attempt replaces; what it does to the index is kept.
    pub(super) fn locate(&mut self, attempt: AttemptId, at: &IndexAt) -> Deletions {
        let runs = self.of.get(&attempt).cloned().unwrap_or_default();
        let rows = self.netted(attempt, self.kind_of(&at.index), &runs);
        let index = self.indexes.entry(at.index.clone()).or_default();
        let deletions = rows.iter().filter_map(|row| index.get(&row.key).cloned()).collect();
        let mut position = 0;
        let overlay = rows.iter().map(|row| {
            let place = row.value.map(|_| (file_of(attempt), position));
            position += u64::from(place.is_some());
            (row.key, place)
        });
        self.overlays.insert(attempt, overlay.collect());
        deletions
    }

    /// An attempt's look-ups, to be applied.
    pub(super) fn overlay(&self, attempt: AttemptId) -> Overlay {
        self.overlays.get(&attempt).cloned().unwrap_or_default()
    }

    pub(super) fn apply(&mut self, index: &IndexName, overlay: Overlay) {
        let Some(contents) = self.indexes.get_mut(index) else { return };
        for (key, place) in overlay {
            match place {
                Some(place) => contents.insert(key, place),
                None => contents.remove(&key),
            };
        }
    }

    pub(super) fn loaded(&mut self, index: IndexName, contents: Contents) {
        self.indexes.insert(index, contents);
    }

    pub(super) fn drop_index(&mut self, index: &IndexName) {
        self.indexes.remove(index);
    }

    /// Attempts whose rows it holds.
    pub(super) fn held(&self) -> Vec<AttemptId> {
        self.of.keys().copied().collect()
    }
}
