//! Three model sinks, and the truth: what each table holds when the log up to a cut was applied.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{AttemptId, CommitId, FileName, Incarnation, Part, Version};
use kernel::route::{Deletions, Layout};

use super::story::{Change, KEYS, Key, Kind, Tab, Transaction, Value};

/// All of the transactions before `upto`, and of that one the changes before `coordinate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cut {
    /// Whole transactions.
    pub upto: usize,
    /// Changes of the next one.
    pub coordinate: usize,
}

/// A row as it is routed: an image, or none where it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The key.
    pub key: Key,
    /// The value, if there is one.
    pub value: Option<Value>,
    /// Its version, given before routing.
    pub version: Version,
}

/// What is stored with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// How far the copy goes.
    pub cut: Cut,
    /// Who wrote it.
    pub incarnation: Incarnation,
    /// The data that it is of.
    pub commit: CommitId,
    /// The last row number.
    pub sequence: u64,
    /// Rows of lower versions do not belong to the table.
    pub begun: Version,
}

/// What an attempt staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// What it was an attempt at.
    pub part: Part,
    /// The netted rows; in a file are those with a value, in this order.
    pub rows: Vec<Row>,
}

/// Where a row is.
pub(super) type Place = (FileName, u64);

/// The name of an attempt's file.
pub(super) fn file_of(attempt: AttemptId) -> FileName {
    FileName::from(format!("a{attempt}"))
}

/// A table at its sink.
#[derive(Clone, Debug)]
pub struct Sink {
    /// What it is like.
    pub kind: Kind,
    /// What is stored.
    pub state: Option<State>,
    /// Its token: the snapshot's number.
    pub token: u64,
    /// What attempts staged.
    pub staged: BTreeMap<AttemptId, Staged>,
    /// Attempts whose files were deleted.
    pub deleted: BTreeSet<AttemptId>,
    /// Attempts that are visible, or were.
    pub published: BTreeSet<AttemptId>,
    /// Attempts that a commit named whose outcome its sender does not know.
    pub unknown: BTreeSet<AttemptId>,
    /// Rows of data files.
    files: BTreeMap<FileName, Vec<(Key, Value)>>,
    /// The visible ones.
    live: BTreeSet<Place>,
    snapshots: BTreeMap<u64, BTreeSet<Place>>,
    /// Of a sink that goes by versions.
    rows: BTreeMap<Key, (Version, Option<Value>)>,
    next: u64,
}

/// What became of a commit at the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is visible.
    Durable {
        /// The token now.
        token: u64,
    },
    /// The token was another.
    Conflict {
        /// What is there.
        found: Option<State>,
        /// The token.
        token: u64,
    },
    /// Nobody knows.
    Unknown,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Commit {
    /// The token that must be there.
    pub token: u64,
    /// The new state.
    pub new: State,
    /// What becomes visible.
    pub staged: Vec<AttemptId>,
    /// What goes.
    pub deletions: Deletions,
    /// All rows go first.
    pub truncate: bool,
}

impl Sink {
    /// An empty table.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            state: None,
            token: 1,
            staged: BTreeMap::new(),
            deleted: BTreeSet::new(),
            published: BTreeSet::new(),
            unknown: BTreeSet::new(),
            files: BTreeMap::new(),
            live: BTreeSet::new(),
            snapshots: BTreeMap::from([(1, BTreeSet::new())]),
            rows: BTreeMap::new(),
            next: 1,
        }
    }

    /// An attempt's rows land. A sink that goes by versions shows them at once.
    pub(super) fn write(&mut self, attempt: AttemptId, part: Part, rows: Vec<Row>) {
        if self.kind == Kind::Versioned {
            for row in &rows {
                let kept = self.rows.entry(row.key).or_insert((row.version, row.value));
                if row.version >= kept.0 {
                    *kept = (row.version, row.value);
                }
            }
        }
        let images = rows.iter().filter_map(|row| Some((row.key, row.value?))).collect();
        if !self.published.contains(&attempt) {
            self.files.insert(file_of(attempt), images);
        }
        self.deleted.remove(&attempt);
        self.staged.insert(attempt, Staged { part, rows });
    }

    /// Somebody deletes what an attempt staged.
    pub(super) fn delete(&mut self, attempt: AttemptId) {
        self.staged.remove(&attempt);
        self.deleted.insert(attempt);
    }

    /// The places of a slot's keys in a snapshot.
    pub(super) fn index(&self, token: u64, layout: Layout, slot: kernel::id::Slot) -> BTreeMap<Key, Place> {
        let places = self.snapshots.get(&token).into_iter().flatten();
        let keyed = places.map(|place| (self.key_at(place), place.clone()));
        keyed.filter(|(key, _)| layout.slot_of(&encoded(*key)) == slot).collect()
    }

    fn key_at(&self, place: &Place) -> Key {
        self.row_at(place).0
    }

    fn row_at(&self, place: &Place) -> (Key, Value) {
        self.files[&place.0][place.1 as usize]
    }

    /// The visible places of some keys.
    pub fn places_of(&self, keys: &BTreeSet<Key>) -> BTreeSet<(FileName, u64)> {
        self.live.iter().filter(|place| keys.contains(&self.key_at(place))).cloned().collect()
    }

    fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Somebody puts all rows into one file.
    pub(super) fn compact(&mut self) -> bool {
        if self.kind == Kind::Versioned || self.live.is_empty() {
            return false;
        }
        let token = self.token();
        let file = FileName::from(format!("x{token}"));
        let rows: Vec<(Key, Value)> = self.live.iter().map(|place| self.row_at(place)).collect();
        self.live = (0..rows.len() as u64).map(|position| (file.clone(), position)).collect();
        self.files.insert(file, rows);
        self.token = token;
        self.snapshots.insert(token, self.live.clone());
        true
    }

    /// A commit lands. What its rules say of it was judged before.
    pub(super) fn commit(&mut self, commit: &Commit) -> Outcome {
        let new = commit.new;
        if self.kind == Kind::Versioned {
            // It keeps the highest state, whoever comes late.
            let order = |s: &State| (s.incarnation, s.commit);
            match self.state {
                Some(found) if order(&found) == order(&new) => return Outcome::Durable { token: 1 },
                Some(found) if order(&found) > order(&new) => return Outcome::Conflict { found: Some(found), token: 1 },
                Some(_) | None => {}
            }
            self.state = Some(new);
            self.published.extend(&commit.staged);
            return Outcome::Durable { token: 1 };
        }
        if commit.token != self.token {
            return Outcome::Conflict { found: self.state, token: self.token };
        }
        if commit.truncate {
            self.live.clear();
        }
        for (file, positions) in commit.deletions.files() {
            for position in positions {
                self.live.remove(&(file.clone(), *position));
            }
        }
        for attempt in &commit.staged {
            let file = file_of(*attempt);
            let rows = self.files.get(&file).map_or(0, Vec::len) as u64;
            self.live.extend((0..rows).map(|position| (file.clone(), position)));
            self.published.insert(*attempt);
        }
        let token = self.token();
        self.state = Some(new);
        self.token = token;
        self.snapshots.insert(token, self.live.clone());
        Outcome::Durable { token }
    }

    /// What a reader sees of each key: nothing, a value, or, which must not be, several.
    pub fn visible(&self) -> BTreeMap<Key, Vec<Value>> {
        let mut seen = BTreeMap::<Key, Vec<Value>>::new();
        if self.kind == Kind::Versioned {
            let floor = self.state.map_or(Version::default(), |s| s.begun);
            let rows = self.rows.iter().filter(|(_, (version, _))| *version >= floor);
            return rows.filter_map(|(key, (_, value))| Some((*key, vec![(*value)?]))).collect();
        }
        for place in &self.live {
            let (key, value) = self.row_at(place);
            seen.entry(key).or_default().push(value);
        }
        seen
    }
}

/// A key in its canonical encoding.
pub(super) fn encoded(key: Key) -> [u8; 2] {
    [1, key]
}

/// What a change does: an image or none of a key, or the whole table is emptied.
type Effect = Option<(Key, Option<Value>)>;

/// What happened to the tables.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    /// The changes of each table, in log order.
    changes: Vec<Vec<(Cut, Effect)>>,
}

impl Truth {
    /// Of a log.
    pub(super) fn of(log: &[Transaction], tables: usize) -> Self {
        let mut changes = vec![vec![]; tables];
        for (upto, transaction) in log.iter().enumerate() {
            for (coordinate, (table, change)) in transaction.changes.iter().enumerate() {
                let (at, of): (Cut, &mut Vec<_>) = (Cut { upto, coordinate }, &mut changes[*table]);
                match change {
                    Change::Truncated => of.push((at, None)),
                    Change::Row { old, key, value } => {
                        of.extend(old.map(|old| (at, Some((old, None)))));
                        of.push((at, Some((*key, *value))));
                    }
                }
            }
        }
        Self { changes }
    }

    fn below(&self, table: Tab, cut: Cut) -> impl Iterator<Item = &Effect> {
        self.changes[table].iter().take_while(move |(at, _)| *at < cut).map(|(_, change)| change)
    }

    /// What a table holds at a cut: of each key its value, or every row that was ever appended.
    pub(super) fn at(&self, table: Tab, kind: Kind, cut: Cut) -> BTreeMap<Key, Vec<Value>> {
        let mut rows = BTreeMap::<Key, Vec<Value>>::new();
        for change in self.below(table, cut) {
            match (change, kind) {
                (None, _) => rows.clear(),
                (Some((key, Some(value))), Kind::Appended) => rows.entry(*key).or_default().push(*value),
                (Some((_, None)), Kind::Appended) => {}
                (Some((key, Some(value))), Kind::Located | Kind::Versioned) => {
                    rows.insert(*key, vec![*value]);
                }
                (Some((key, None)), Kind::Located | Kind::Versioned) => {
                    rows.remove(key);
                }
            }
        }
        rows
    }

    /// The values that a key has at a cut or ever after.
    pub(super) fn later(&self, table: Tab, cut: Cut, key: Key) -> BTreeSet<Option<Value>> {
        let now = self.at(table, Kind::Versioned, cut).get(&key).map(|v| v[0]);
        let after = self.changes[table].iter().filter(|(at, _)| *at >= cut);
        let values = after.filter_map(|(_, change)| match change {
            None => Some(None),
            Some((of, value)) => (*of == key).then_some(*value),
        });
        values.chain([now]).collect()
    }

    /// Does something happen to a table at or behind a cut, and before the end?
    pub(super) fn lacks(&self, table: Tab, kind: Kind, cut: Cut, end: usize) -> bool {
        let counts = |change: &Effect| kind != Kind::Appended || !matches!(change, Some((_, None)));
        self.changes[table].iter().any(|(at, change)| *at >= cut && at.upto < end && counts(change))
    }

    /// All keys.
    pub(super) fn keys() -> impl Iterator<Item = Key> {
        0..KEYS
    }
}
