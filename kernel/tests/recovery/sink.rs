//! What outlives a life: the record and the tables at their sinks. Whatever is stored is judged where it lands.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::{AttemptId, CommitId, Incarnation, Token, Version};
use kernel::outcome::{CommitOutcome, StoreOutcome};
use kernel::position::{Cut, Position};
use kernel::state::{Phase, PipelineState, TableState};

use crate::log::{Contents, Key, Log, Row, TABLES, table};

/// The durable projection of everything that ever lived.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    pub(crate) record: Option<PipelineState>,
    record_writes: u64,
    pub(crate) tables: Vec<Target>,
    /// What the source has forgotten.
    pub(crate) floor: Position,
}

/// A table at its sink.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Does it stage, and compare? Else it is idempotent by version, and the highest state counts.
    pub(crate) staging: bool,
    /// The present state last.
    snapshots: Vec<Snapshot>,
    writes: u64,
    staged: BTreeMap<AttemptId, Vec<Row>>,
    /// What was visible ever.
    published: BTreeSet<AttemptId>,
    versions: BTreeMap<Key, (Version, Option<usize>)>,
}

#[derive(Clone, Debug)]
struct Snapshot {
    state: TableState,
    /// What a reader sees, where data and state are one.
    contents: Contents,
    /// Which artefacts it made visible.
    staged: Vec<AttemptId>,
}

impl Durable {
    pub(crate) fn new(staging: &[bool]) -> Self {
        let target = |staging: &bool| Target {
            staging: *staging,
            snapshots: vec![],
            writes: 0,
            staged: BTreeMap::new(),
            published: BTreeSet::new(),
            versions: BTreeMap::new(),
        };
        Self { record: None, record_writes: 0, tables: staging.iter().map(target).collect(), floor: Position::START }
    }

    pub(crate) fn record_token(&self) -> Token {
        Token::from(format!("r{}", self.record_writes))
    }

    pub(crate) fn store_record(&mut self, log: &Log, expected: &Token, new: &PipelineState) -> StoreOutcome {
        let token = self.record_token();
        if *expected != token {
            return StoreOutcome::Conflict { found: self.record.clone().map(Box::new), token };
        }
        if let Some(before) = &self.record {
            assert!(new.quiet.contains(&before.quiet) && new.incarnation >= before.incarnation, "{before:?} then {new:?}");
        }
        self.record = Some(new.clone());
        self.record_writes += 1;
        self.judge(log);
        StoreOutcome::Stored { token: self.record_token() }
    }

    /// Where a table's copy really stands (rule A2).
    pub(crate) fn effective(&self, number: usize) -> Cut {
        let Some(state) = self.tables[number].state() else { return Cut::default() };
        let mut cut = state.cut.clone();
        let Some(record) = &self.record else { return cut };
        let named = record.tables.iter().find(|(name, _)| table(name) == number).and_then(|(_, entry)| entry.named);
        if named.is_some_and(|named| named == state.commit || state.ancestors.contains(named)) {
            cut.join_position(&record.quiet);
        }
        cut
    }

    /// Position-covers-only-durable, at everything that is stored: what is visible at a table's own cut is what the log up to it
    /// defines; nothing of the table lies between that and where the record proves it to stand.
    pub(crate) fn judge(&self, log: &Log) {
        for (number, target) in self.tables.iter().enumerate() {
            let cut = target.state().map(|s| s.cut.clone()).unwrap_or_default();
            target.judge(log, number, &cut);
            let stands = self.effective(number);
            let owed = log.rows_of(number).find(|(tx, n, _)| log.covers(&stands, *tx, *n) && !log.covers(&cut, *tx, *n));
            assert!(owed.is_none(), "{} is proven to stand at {stands:?}, and {owed:?} is not durable", TABLES[number]);
        }
    }

    /// The source forgets what is acknowledged: each member table must have all of it.
    pub(crate) fn acknowledge(&mut self, log: &Log, upto: &Position) {
        let record = self.record.as_ref().expect("nothing is acknowledged without a record");
        assert!(record.quiet.join(&self.floor).contains(upto), "acknowledged {upto}, the record says {}", record.quiet);
        for (name, entry) in &record.tables {
            let number = table(name);
            let cut = self.tables[number].state().map(|s| s.cut.clone()).unwrap_or_default();
            let lacking = log.lacks(number, &cut, upto).filter(|_| entry.phase != Phase::NeedsSnapshot);
            assert!(lacking.is_none(), "acknowledged {upto}; {name} at {cut:?} lacks {lacking:?}");
        }
        self.floor.join_with(upto);
    }
}

impl Target {
    pub(crate) fn state(&self) -> Option<&TableState> {
        self.snapshots.last().map(|s| &s.state)
    }

    pub(crate) fn token(&self) -> Token {
        if self.staging { Token::from(format!("t{}", self.writes)) } else { Token::from("") }
    }

    pub(crate) fn contents(&self) -> Contents {
        if self.staging {
            return self.snapshots.last().map(|s| s.contents.clone()).unwrap_or_default();
        }
        self.versions.iter().filter_map(|(key, (_, value))| Some((*key, (*value)?))).collect()
    }

    pub(crate) fn write(&mut self, attempt: AttemptId, first: Version, rows: &[Row]) {
        if self.staging {
            self.staged.insert(attempt, rows.to_vec());
            return;
        }
        for (n, row) in rows.iter().enumerate() {
            let version = Version(first.0 + n as u64);
            let newest = self.versions.entry(row.key).or_insert((version, row.value));
            if version >= newest.0 {
                *newest = (version, row.value);
            }
        }
    }

    pub(crate) fn commit(&mut self, token: &Token, new: &TableState, staged: &[AttemptId]) -> CommitOutcome {
        if !self.staging {
            let order = |s: &TableState| (s.incarnation, s.commit);
            if self.state().is_none_or(|s| order(s) < order(new)) {
                self.snapshots.push(Snapshot { state: new.clone(), contents: Contents::new(), staged: vec![] });
            }
            return CommitOutcome::Durable { token: self.token() };
        }
        if *token != self.token() {
            return CommitOutcome::Conflict { found: self.state().cloned().map(Box::new), token: self.token() };
        }
        let mut contents = self.contents();
        for attempt in staged {
            assert!(!self.snapshots.iter().any(|s| s.staged.contains(attempt)), "{attempt:?} is visible already");
            self.published.insert(*attempt);
            for row in &self.staged[attempt] {
                match row.value {
                    Some(value) => drop(contents.insert(row.key, value)),
                    None => drop(contents.remove(&row.key)),
                }
            }
        }
        self.snapshots.push(Snapshot { state: new.clone(), contents, staged: staged.to_vec() });
        self.writes += 1;
        CommitOutcome::Durable { token: self.token() }
    }

    pub(crate) fn has(&self, commit: CommitId, incarnation: Incarnation) -> bool {
        self.snapshots.iter().any(|s| s.state.commit == commit && s.state.incarnation == incarnation)
    }

    pub(crate) fn delete(&mut self, attempt: AttemptId) {
        assert!(!self.published.contains(&attempt), "{attempt:?} is visible, and is deleted");
        self.staged.remove(&attempt);
    }

    pub(crate) fn discard_older(&mut self, incarnation: Incarnation) {
        let published = &self.published;
        self.staged.retain(|attempt, _| attempt.incarnation >= incarnation || published.contains(attempt));
    }

    /// A foreign hand commits, or restores the state before the last one.
    pub(crate) fn foreign(&mut self, restores: bool) -> bool {
        if !self.staging || (restores && self.snapshots.is_empty()) {
            return false;
        }
        self.writes += 1;
        if restores {
            self.snapshots.pop();
        }
        true
    }

    /// Exactly what the log up to the cut defines; where data may be ahead of the state, each key there or later.
    fn judge(&self, log: &Log, number: usize, cut: &Cut) {
        let (is, should) = (self.contents(), log.contents(number, cut));
        if self.staging {
            assert_eq!(is, should, "{} at {cut:?}", TABLES[number]);
            return;
        }
        let keys: BTreeSet<Key> = is.keys().chain(should.keys()).copied().collect();
        for key in keys {
            let later = |(tx, n, row): (usize, usize, Row)| (row.key == key && !log.covers(cut, tx, n)).then_some(row.value);
            let (is, should) = (is.get(&key).copied(), should.get(&key).copied());
            let ahead = log.rows_of(number).filter_map(later).any(|value| value == is);
            assert!(is == should || ahead, "{} key {key} at {cut:?}: is {is:?}, should be {should:?}", TABLES[number]);
        }
    }
}
