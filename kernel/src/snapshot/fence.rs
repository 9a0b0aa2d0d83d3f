//! What was touched by transactions that nobody has proven to be visible, and what of the log's rows goes into it (rules S2, S4).

use alloc::collections::{BTreeMap, BTreeSet};

use crate::checkpoint::Change;
use crate::coordinator::{Coordinator, Touched};
use crate::id::{CommandId, EncodedKey, TableName, TransactionName};
use crate::planted::planted;

use super::Stage;
use super::chunk::Void;

/// Keys, and by which transactions they were touched. A TRUNCATE touches every key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct TouchedKeys {
    keys: BTreeMap<EncodedKey, BTreeSet<TransactionName>>,
    every_key: BTreeSet<TransactionName>,
    /// What changed the table's schema.
    schema: BTreeSet<TransactionName>,
}

impl TouchedKeys {
    pub(crate) fn touch(&mut self, key: &EncodedKey, by: &TransactionName) {
        self.keys.entry(key.clone()).or_default().insert(by.clone());
    }

    pub(crate) fn touch_every_key(&mut self, by: &TransactionName) {
        self.every_key.insert(by.clone());
    }

    /// These transactions are proven to be visible.
    pub(crate) fn prune(&mut self, proven: &BTreeSet<TransactionName>) {
        for by in self.keys.values_mut() {
            by.retain(|transaction| !proven.contains(transaction));
        }
        self.keys.retain(|_, by| !by.is_empty());
        self.every_key.retain(|transaction| !proven.contains(transaction));
        self.schema.retain(|transaction| !proven.contains(transaction));
    }

    /// Of the keys only these matter from now on.
    pub(crate) fn keep_only(&mut self, keys: &BTreeSet<&EncodedKey>) {
        self.keys.retain(|key, _| keys.contains(key));
    }

    pub(crate) fn contains(&self, key: &EncodedKey) -> bool {
        self.keys.contains_key(key) || self.truncated()
    }

    fn by(&self, key: &EncodedKey) -> Option<&BTreeSet<TransactionName>> {
        self.keys.get(key)
    }

    /// Was the table's schema changed?
    pub(crate) fn schema_changed(&self) -> bool {
        !self.schema.is_empty()
    }

    /// Was the table emptied?
    pub(crate) fn truncated(&self) -> bool {
        !self.every_key.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.every_key.is_empty() && self.schema.is_empty()
    }

    /// How many keys are remembered.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Every transaction that touched something.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &TransactionName> {
        self.keys.values().flatten().chain(&self.every_key).chain(&self.schema)
    }

    /// A touch of `other`, of a key that matters and not by one of `proven`, that is not in here.
    pub(crate) fn first_missing<'a>(
        &self,
        other: &'a TouchedKeys,
        matters: impl Fn(&EncodedKey) -> bool,
        proven: &BTreeSet<TransactionName>,
    ) -> Option<(&'a EncodedKey, &'a TransactionName)> {
        let touches = other.keys.iter().filter(|(key, _)| matters(key)).flat_map(|(key, by)| by.iter().map(move |t| (key, t)));
        touches
            .filter(|(_, transaction)| !proven.contains(*transaction))
            .find(|(key, transaction)| !self.keys.get(*key).is_some_and(|by| by.contains(*transaction)))
    }
}

impl Coordinator {
    /// Rows of a table are about to be taken. False if they came without the keys that were asked for.
    pub(crate) fn touch(&mut self, change: &Change<'_>, touched: Option<&Touched>) -> bool {
        let old_keys_count = !planted!(self.config, OldKeyForgotten);
        let done = self.touch_with(change, touched.map(|t| &t.by), |keys| {
            let Some(touched) = touched else { return };
            let forgotten = if old_keys_count { 0 } else { touched.keys.len().saturating_sub(1) };
            for key in touched.keys.iter().skip(forgotten) {
                keys.touch(key, &touched.by);
            }
        });
        if let (Some(touched), true) = (touched, done) {
            self.check_touched(change.table, touched);
        }
        done
    }

    /// *touched-keys-complete-and-bounded*, where it is written: every key of every row is remembered, or its transaction is.
    fn check_touched(&mut self, name: &TableName, touched: &Touched) {
        let Some(snapshot) = self.tables.get(name).and_then(|t| t.snapshot.as_ref()) else { return };
        let remembers = |key: &&EncodedKey| snapshot.unproven.by(key).is_some_and(|by| by.contains(&touched.by));
        if snapshot.stage != Stage::Reading || snapshot.in_doubt.contains(&touched.by) {
            return;
        }
        if let Some(key) = touched.keys.iter().find(|key| !remembers(key)) {
            let dump = alloc::format!("{name}: {} touched {key:?}, and nobody remembers it", touched.by);
            self.violate("touched-keys-complete-and-bounded", dump);
        }
    }

    /// A TRUNCATE of a table is about to be taken. False if it came without the transaction's name.
    pub(crate) fn touch_every_key(&mut self, change: &Change<'_>, by: Option<&TransactionName>) -> bool {
        self.touch_with(change, by, |keys| {
            if let Some(by) = by {
                keys.touch_every_key(by);
            }
        })
    }

    /// A change of a table's schema is about to be taken: what does not provably see it may be of an older one. False if it came
    /// without the transaction's name.
    pub(crate) fn touch_schema(&mut self, change: &Change<'_>, by: Option<&TransactionName>) -> bool {
        self.touch_with(change, by, |keys| {
            if let Some(by) = by {
                keys.schema.insert(by.clone());
            }
        })
    }

    fn touch_with(&mut self, change: &Change<'_>, by: Option<&TransactionName>, touch: impl Fn(&mut TouchedKeys)) -> bool {
        let keys_max = self.config.snapshot.touched_keys_max;
        let leaves_when_seen = planted!(self.config, DividedLeavesDoubtWhenSeen);
        let unbounded = planted!(self.config, TouchBoundIgnored);
        let forgets_truncates = planted!(self.config, TruncateForgottenByChunks);
        let Some(table) = self.tables.get_mut(change.table) else { return true };
        let divided = table.taken.within().contains_key(change.transaction);
        let Some(snapshot) = table.snapshot.as_mut().filter(|s| s.stage != Stage::Beginning) else { return true };
        let Some(by) = by else { return false };
        // From its first event above the cut on a transaction is remembered by its keys. What a cut divides has others below.
        let seen_whole = !divided || leaves_when_seen;
        let was_in_doubt = seen_whole && snapshot.in_doubt.remove(by);
        touch(&mut snapshot.unproven);
        for chunk in snapshot.chunks.values_mut() {
            let before = chunk.touched.truncated();
            touch(&mut chunk.touched);
            if forgets_truncates && !before && chunk.touched.truncated() {
                chunk.touched.forget_truncates();
            }
            if let Some(held) = &chunk.held {
                chunk.touched.keep_only(&held.keys.iter().collect());
            }
        }
        let collapses = snapshot.unproven.len() > keys_max;
        if collapses {
            // More keys than anybody wants to remember: the transactions are in doubt as a whole, and no chunk is asked for before
            // they are proven.
            let transactions: BTreeSet<_> = snapshot.unproven.transactions().cloned().collect();
            snapshot.in_doubt.extend(transactions);
            snapshot.unproven = TouchedKeys::default();
        }
        let too_many = |chunk: &super::Chunk| chunk.held.is_none() && chunk.touched.len() > keys_max && !unbounded;
        let full: alloc::vec::Vec<CommandId> =
            snapshot.chunks.iter().filter(|(_, chunk)| too_many(chunk)).map(|(id, _)| *id).collect();
        if was_in_doubt {
            self.mark("doubt-delivered");
        }
        if collapses {
            self.mark("doubt-instead-of-keys");
        }
        for id in full {
            self.void_chunk(change.table, id, Void::TouchedTooMuch);
        }
        true
    }

    /// These transactions are proven to be visible to every snapshot that is taken from now on.
    pub(crate) fn prove(&mut self, name: &TableName, proven: &BTreeSet<TransactionName>) {
        let forgets_for_all = planted!(self.config, ForgottenForAll);
        let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
        let doubts = snapshot.in_doubt.len();
        snapshot.in_doubt.retain(|transaction| !proven.contains(transaction));
        snapshot.unproven.prune(proven);
        if forgets_for_all {
            for chunk in snapshot.chunks.values_mut() {
                chunk.touched.prune(proven);
            }
        }
        if doubts > snapshot.in_doubt.len() {
            self.mark("doubt-proven");
        }
    }
}

impl TouchedKeys {
    /// A planted bug: a TRUNCATE touches nothing.
    fn forget_truncates(&mut self) {
        self.every_key.clear();
    }
}
