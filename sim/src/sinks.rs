//! Two sinks. One stages: an attempt's rows are durable and invisible until a commit shows them together with the state, by
//! compare-and-set (like Iceberg). The other is idempotent by version: rows are visible when they are written, the state is
//! written apart, and nothing compares (like ClickHouse).

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use kernel::outcome::CommitOutcome;
use kernel::state::TableState;

use crate::history::{Contents, Key, Large, Row, RowImage, Value};

/// What a worker made of a part's rows.
#[derive(Clone, Debug, Default, Hash)]
pub struct Netted {
    /// The rows that went in, in log order, with their versions.
    pub rows: Vec<(RowImage, Version)>,
    /// One image or delete for each key; for a keyless target nothing.
    pub images: Vec<(Key, Option<Row>, Version)>,
    /// For a keyless target every row.
    pub kept: Vec<(RowImage, Version)>,
    /// What was taken for values that were not sent.
    pub fills: Vec<Filled>,
}

/// What is taken for values that the last image of a key lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filled {
    /// The key.
    pub key: Key,
    /// The row that was read; none if it is gone.
    pub row: Option<RowImage>,
    /// Is all of it taken?
    pub whole: bool,
}

/// A key's image while rows are netted.
#[derive(Clone, Copy)]
struct Image {
    value: Value,
    large: Large<Option<Value>>,
}

impl Image {
    fn is_whole(&self) -> bool {
        !self.large.contains(&None)
    }
}

impl Netted {
    /// Nets rows that came in log order. An update takes what it lacks from the image that its row had before, under its old key;
    /// what then lacks is filled. `Err`: the keys of which values lack.
    pub fn of(rows: &[RowImage], first: Version, keyed: bool, fills: &[Filled], null: bool) -> Result<Self, Vec<Key>> {
        let rows: Vec<_> = rows.iter().enumerate().map(|(n, row)| (*row, Version(first.0 + n as u64))).collect();
        if !keyed {
            return Ok(Self { kept: rows.clone(), rows, ..Self::default() });
        }
        let mut last: BTreeMap<Key, (Option<Image>, Version)> = BTreeMap::new();
        let mut left = None;
        for (row, version) in &rows {
            let here = last.get(&row.key).and_then(|(image, _)| *image);
            let before = match (row.moved, row.chunk) {
                (true, _) => left,
                (false, None) => here,
                (false, Some(_)) => None,
            };
            let large = std::array::from_fn(|group| row.large[group].or_else(|| before?.large[group]));
            left = if row.value.is_none() { here } else { None };
            last.insert(row.key, (row.value.map(|value| Image { value, large }), *version));
        }
        let (mut images, mut used, mut lacking) = (vec![], vec![], vec![]);
        for (key, (image, version)) in last {
            let fill = fills.iter().find(|fill| fill.key == key).filter(|_| image.is_some_and(|image| !image.is_whole()));
            used.extend(fill);
            let row = match image.map(|image| filled(image, fill, null)) {
                None => None,
                Some(Some(row)) => row,
                Some(None) => {
                    lacking.push(key);
                    None
                }
            };
            images.push((key, row, version));
        }
        if lacking.is_empty() { Ok(Self { rows, images, kept: vec![], fills: used }) } else { Err(lacking) }
    }
}

/// An image with what it lacked; none if that is not known. `null` is a planted bug.
fn filled(image: Image, fill: Option<&Filled>, null: bool) -> Option<Option<Row>> {
    let read = fill.and_then(|fill| fill.row);
    let row_of = |value, large: Large<Option<Value>>| {
        let known = large.iter().all(Option::is_some);
        known.then(|| Some(Row { value, large: large.map(Option::unwrap_or_default) }))
    };
    match (fill, read) {
        (Some(Filled { whole: true, .. }), None) => Some(None),
        (Some(Filled { whole: true, .. }), Some(read)) => row_of(read.value.unwrap_or_default(), read.large),
        (_, Some(read)) => row_of(image.value, std::array::from_fn(|group| image.large[group].or(read.large[group]))),
        (_, None) if null => row_of(image.value, image.large.map(|large| large.or(Some(0)))),
        (_, None) => row_of(image.value, image.large),
    }
}

/// A commit as it arrives at a sink.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The token that the state must have.
    pub token: Token,
    /// The new state.
    pub state: TableState,
    /// What becomes visible.
    pub staged: Vec<AttemptId>,
    /// All rows go first.
    pub truncate_first: bool,
    /// Rows of versions below the state's `begun` go.
    pub sweep: bool,
}

/// A state that a table had, with what it held.
#[derive(Clone, Debug, Hash)]
pub struct Snapshot {
    /// Its token.
    pub token: Token,
    /// The state.
    pub state: Option<TableState>,
    /// What was visible.
    pub contents: Contents,
    /// The version of each row of it.
    pub versions: BTreeMap<Key, Version>,
    /// Attempts that became visible in it.
    pub published: Vec<AttemptId>,
}

/// How an attempt's rows went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deleted {
    /// A life said to delete what it had staged.
    Dropped,
    /// A life deleted what older ones had staged.
    Discarded,
}

/// A table of a sink that stages.
#[derive(Clone, Debug, Default, Hash)]
pub struct Staging {
    /// From the first commit to the present one; what was set back is not in it.
    pub snapshots: Vec<Snapshot>,
    /// Rows that are durable, visible or not.
    pub staged: BTreeMap<AttemptId, Netted>,
    /// Attempts whose rows are gone.
    pub deleted: BTreeMap<AttemptId, Deleted>,
    /// Attempts that were visible once: a kept snapshot may name them, even if the table was set back.
    ever_published: BTreeSet<AttemptId>,
    tokens: u64,
}

/// What a commit did.
#[derive(Clone, Debug)]
pub enum Landed {
    /// It is visible.
    Shown,
    /// It was there already.
    Again,
    /// It was refused.
    Refused,
    /// It names rows that are gone.
    Gone(AttemptId, Deleted),
    /// It names rows that are visible already.
    Twice(AttemptId),
}

impl Staging {
    /// The present state.
    pub fn state(&self) -> Option<&TableState> {
        self.snapshots.last().and_then(|s| s.state.as_ref())
    }

    /// The present token.
    pub fn token(&self) -> Token {
        self.snapshots.last().map_or_else(|| Token::from("t0"), |s| s.token.clone())
    }

    /// What is visible.
    pub fn contents(&self) -> Contents {
        self.snapshots.last().map(|s| s.contents.clone()).unwrap_or_default()
    }

    /// The version of each visible row, and of what was deleted last.
    pub fn versions(&self) -> BTreeMap<Key, Version> {
        self.snapshots.last().map(|s| s.versions.clone()).unwrap_or_default()
    }

    fn next_token(&mut self) -> Token {
        self.tokens += 1;
        Token::from(format!("t{}", self.tokens).as_str())
    }

    /// Carries out a commit, or says why not.
    pub fn commit(&mut self, commit: &Commit) -> (CommitOutcome, Landed) {
        let same = |s: &TableState| s.commit == commit.state.commit && s.incarnation == commit.state.incarnation;
        if self.state().is_some_and(same) {
            return (CommitOutcome::Durable { token: self.token() }, Landed::Again);
        }
        if commit.token != self.token() {
            let found = self.state().cloned().map(Box::new);
            return (CommitOutcome::Conflict { found, token: self.token() }, Landed::Refused);
        }
        let mut contents = self.contents();
        let mut versions = self.versions();
        if commit.truncate_first {
            contents = Contents::default();
            versions.clear();
        }
        if commit.sweep {
            versions.retain(|_, version| *version >= commit.state.begun);
            contents.rows.retain(|key, _| versions.contains_key(key));
        }
        for attempt in &commit.staged {
            let unknown = || CommitOutcome::Unknown { why: "a file is missing".into() };
            if self.snapshots.iter().any(|s| s.published.contains(attempt)) {
                return (unknown(), Landed::Twice(*attempt));
            }
            let Some(netted) = self.staged.get(attempt) else {
                let how = self.deleted.get(attempt).copied().unwrap_or(Deleted::Dropped);
                return (unknown(), Landed::Gone(*attempt, how));
            };
            for (key, value, version) in &netted.images {
                versions.insert(*key, *version);
                match value {
                    Some(value) => contents.rows.insert(*key, *value),
                    None => contents.rows.remove(key),
                };
            }
            for (row, _) in &netted.kept {
                *contents.kept.entry(*row).or_default() += 1;
            }
        }
        let token = self.next_token();
        let published = commit.staged.clone();
        self.ever_published.extend(&published);
        self.snapshots.push(Snapshot { token: token.clone(), state: Some(commit.state.clone()), contents, versions, published });
        (CommitOutcome::Durable { token }, Landed::Shown)
    }

    /// Is this commit of this life in the kept history of what is visible?
    pub fn resolve(&self, commit: CommitId, incarnation: Incarnation) -> bool {
        let is_it = |s: &Snapshot| s.state.as_ref().is_some_and(|s| s.commit == commit && s.incarnation == incarnation);
        self.snapshots.iter().rev().take(20).any(is_it)
    }

    /// Somebody else commits and changes nothing.
    pub fn foreign_commit(&mut self) {
        let token = self.next_token();
        if let Some(last) = self.snapshots.last().cloned() {
            self.snapshots.push(Snapshot { token, published: vec![], ..last });
        }
    }

    /// Somebody else sets the table back by some commits. Tokens do not come back.
    pub fn roll_back(&mut self, steps: usize) -> bool {
        if self.snapshots.len() < steps + 1 {
            return false;
        }
        self.snapshots.truncate(self.snapshots.len() - steps);
        let token = self.next_token();
        if let Some(last) = self.snapshots.last_mut() {
            last.token = token;
        }
        true
    }

    /// Deletes an attempt's rows; false if they are or were visible.
    pub fn delete(&mut self, attempt: AttemptId) -> bool {
        if self.ever_published.contains(&attempt) {
            return false;
        }
        self.staged.remove(&attempt);
        self.deleted.insert(attempt, Deleted::Dropped);
        true
    }

    /// Deletes what older lives staged and is not visible.
    pub fn discard_older(&mut self, incarnation: Incarnation) {
        let older: Vec<AttemptId> = self.staged.keys().copied().filter(|a| a.incarnation < incarnation).collect();
        for attempt in older {
            if !self.ever_published.contains(&attempt) {
                self.staged.remove(&attempt);
                self.deleted.insert(attempt, Deleted::Discarded);
            }
        }
    }
}

/// A table of a sink that is idempotent by version.
#[derive(Clone, Debug, Default, Hash)]
pub struct Versioned {
    /// The newest version of each key, deletes too.
    rows: BTreeMap<Key, (Version, Option<Row>)>,
    /// For a keyless target every row; one version is one row.
    kept: BTreeMap<Version, RowImage>,
    /// The state that counts: the highest, not the latest written.
    counts: Option<TableState>,
    /// All that ever counted, in that order.
    pub history: Vec<TableState>,
    /// The rows of each attempt.
    pub written: BTreeMap<AttemptId, Netted>,
}

impl Versioned {
    /// The state that counts.
    pub fn state(&self) -> Option<&TableState> {
        self.counts.as_ref()
    }

    /// Rows become visible.
    pub fn write(&mut self, attempt: AttemptId, netted: &Netted) {
        for (key, value, version) in &netted.images {
            let row = self.rows.entry(*key).or_insert((*version, *value));
            if *version >= row.0 {
                *row = (*version, *value);
            }
        }
        for (row, version) in &netted.kept {
            self.kept.insert(*version, *row);
        }
        self.written.insert(attempt, netted.clone());
    }

    /// Writes a state; it counts if it is the highest. True if it is new and counts.
    pub fn commit(&mut self, commit: &Commit) -> bool {
        if commit.truncate_first || commit.sweep {
            self.rows.retain(|_, (version, _)| *version >= commit.state.begun);
            self.kept.retain(|version, _| *version >= commit.state.begun);
        }
        let order = |s: &TableState| (s.incarnation, s.commit);
        if self.counts.as_ref().is_some_and(|s| order(s) >= order(&commit.state)) {
            return false;
        }
        self.counts = Some(commit.state.clone());
        self.history.push(commit.state.clone());
        true
    }

    /// What a reader sees: nothing of an older generation.
    pub fn contents(&self) -> Contents {
        let begun = self.counts.as_ref().map_or(Version(0), |s| s.begun);
        let live = |(version, _): &(Version, Option<Row>)| *version >= begun;
        let rows = self.rows.iter().filter(|(_, row)| live(row)).filter_map(|(key, (_, value))| Some((*key, (*value)?)));
        let mut contents = Contents { rows: rows.collect(), kept: BTreeMap::new() };
        for (_, row) in self.kept.iter().filter(|(version, _)| **version >= begun) {
            *contents.kept.entry(*row).or_default() += 1;
        }
        contents
    }
}

/// A table at its sink.
#[derive(Clone, Debug, Hash)]
#[expect(clippy::large_enum_variant, reason = "there are a handful, and none moves")]
pub enum Target {
    /// It stages.
    Staging(Staging),
    /// It is idempotent by version.
    Versioned(Versioned),
}

impl Target {
    /// The state that a life would find.
    pub fn state(&self) -> Option<&TableState> {
        match self {
            Target::Staging(table) => table.state(),
            Target::Versioned(table) => table.state(),
        }
    }

    /// Its token.
    pub fn token(&self) -> Token {
        match self {
            Target::Staging(table) => table.token(),
            Target::Versioned(_) => Token::from(""),
        }
    }

    /// What a reader sees.
    pub fn contents(&self) -> Contents {
        match self {
            Target::Staging(table) => table.contents(),
            Target::Versioned(table) => table.contents(),
        }
    }

    /// The version of each row that is there, whether a reader sees it or not.
    pub fn versions(&self) -> BTreeMap<Key, Version> {
        match self {
            Target::Staging(table) => {
                let rows = table.contents().rows;
                table.versions().into_iter().filter(|(key, _)| rows.contains_key(key)).collect()
            }
            Target::Versioned(table) => {
                table.rows.iter().filter(|(_, row)| row.1.is_some()).map(|(key, row)| (*key, row.0)).collect()
            }
        }
    }

    /// Every state that a reader could find, or could have found before somebody set the table back.
    pub fn states(&self) -> Vec<&TableState> {
        match self {
            Target::Staging(table) => table.snapshots.iter().filter_map(|s| s.state.as_ref()).collect(),
            Target::Versioned(table) => table.history.iter().collect(),
        }
    }

    /// The rows that these attempts brought.
    pub fn rows_of(&self, attempts: &[AttemptId]) -> Vec<(RowImage, Version)> {
        let of = |a: &AttemptId| match self {
            Target::Staging(table) => table.staged.get(a),
            Target::Versioned(table) => table.written.get(a),
        };
        attempts.iter().filter_map(of).flat_map(|n| n.rows.clone()).collect()
    }

    /// What these attempts brought.
    pub fn netted_of(&self, attempts: &[AttemptId]) -> Vec<Netted> {
        let of = |a: &AttemptId| match self {
            Target::Staging(table) => table.staged.get(a),
            Target::Versioned(table) => table.written.get(a),
        };
        attempts.iter().filter_map(of).cloned().collect()
    }
}

/// Attempts, for tests.
pub fn attempts(numbers: &[(u32, u64)]) -> BTreeSet<AttemptId> {
    numbers.iter().map(|(i, n)| AttemptId { incarnation: Incarnation(*i), number: *n }).collect()
}
