//! Key indexes of a worker: at which snapshot each is, and when it moves on (rule O8).
//!
//! An index says where each key's row is, in the files of exactly one snapshot. It is a cache and never the truth: what does not fit is
//! dropped and loaded again. Its contents are the pump's; here is only what it is bound to.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::IndexName;
use crate::id::{AttemptId, Identity, LayoutName, Slot, TableName, Token};

/// What an index is bound to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binding {
    /// The snapshot that it serves, and no other.
    pub bound: Token,
    /// The attempt whose rows were looked up in it last, and what they do to it is kept.
    pub overlay: Option<AttemptId>,
}

/// The indexes that a worker keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Indexes(BTreeMap<IndexName, Binding>);

/// A commit that is durable, as an index sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Durable<'a> {
    pub(super) table: &'a TableName,
    pub(super) identity: &'a Identity,
    pub(super) layout: &'a LayoutName,
    pub(super) from: &'a Token,
    pub(super) to: Option<&'a Token>,
    pub(super) published: &'a BTreeMap<Slot, AttemptId>,
}

/// What becomes of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// What this attempt does to it is done.
    Apply(IndexName, AttemptId),
    /// It is kept no more.
    Drop(IndexName),
}

/// Wrong rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wrong {
    /// Another attempt's rows are taken for none.
    pub(super) blindly: bool,
    /// What was looked up counts at once.
    pub(super) early: bool,
    /// A slot's index is one whatever the layout.
    pub(super) whatever_layout: bool,
}

impl Indexes {
    /// The snapshot that it is at, if it is kept.
    pub fn bound(&self, name: &IndexName) -> Option<&Token> {
        self.0.get(name).map(|b| &b.bound)
    }

    /// It was loaded, or caught up.
    pub(super) fn loaded(&mut self, name: IndexName, at: Token) {
        self.0.insert(name, Binding { bound: at, overlay: None });
    }

    /// It is loaded anew: until then it serves nothing.
    pub(super) fn unbind(&mut self, name: &IndexName) -> Option<Token> {
        self.0.remove(name).map(|b| b.bound)
    }

    /// An attempt's rows were looked up in it.
    pub(super) fn located(&mut self, name: &IndexName, attempt: AttemptId) {
        if let Some(binding) = self.0.get_mut(name) {
            binding.overlay = Some(attempt);
        }
    }

    /// An attempt is forgotten, and what it would do to an index with it.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        for binding in self.0.values_mut().filter(|b| b.overlay == Some(attempt)) {
            binding.overlay = None;
        }
    }

    /// A commit is durable. An index that is where the commit came from goes on with it if the slot's published attempt was looked up
    /// in it, or if the slot had no rows and the layout is the same. Whatever else may have changed, it is dropped.
    pub(super) fn committed(&mut self, commit: Durable<'_>, wrong: Wrong) -> Vec<Change> {
        let mut changes = Vec::new();
        let of_table = |name: &IndexName| name.table == *commit.table;
        for (name, binding) in self.0.iter_mut().filter(|(name, _)| of_table(name)) {
            let same = name.identity == *commit.identity && (name.layout == *commit.layout || wrong.whatever_layout);
            let from_here = binding.bound == *commit.from;
            let published = commit.published.get(&name.slot);
            match commit.to {
                // It was loaded there already.
                Some(to) if binding.bound == *to => {}
                Some(to) if from_here && same && published.is_some() && binding.overlay.as_ref() == published => {
                    if let (Some(attempt), false) = (binding.overlay.take(), wrong.early) {
                        changes.push(Change::Apply(name.clone(), attempt));
                    }
                    binding.bound = to.clone();
                }
                Some(to) if from_here && same && published.is_none() => binding.bound = to.clone(),
                Some(to) if from_here && (wrong.blindly || wrong.early) => binding.bound = to.clone(),
                Some(_) | None => changes.push(Change::Drop(name.clone())),
            }
        }
        for change in &changes {
            if let Change::Drop(name) = change {
                self.0.remove(name);
            }
        }
        changes
    }

    /// Names and bindings.
    pub fn iter(&self) -> impl Iterator<Item = (&IndexName, &Binding)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec;
    use std::vec::Vec;

    use super::{Change, Durable, Indexes, Wrong};
    use crate::id::{AttemptId, Identity, Incarnation, LayoutName, Slot, TableName, Token};
    use crate::route::IndexName;

    const OURS: AttemptId = AttemptId { incarnation: Incarnation(1), number: 4 };
    const OTHERS: AttemptId = AttemptId { incarnation: Incarnation(1), number: 5 };

    fn index(layout: &str) -> IndexName {
        let (identity, layout) = (Identity::from("u1"), LayoutName::from(layout));
        IndexName { table: TableName::from("orders"), identity, layout, slot: Slot(0) }
    }

    /// An index at s5 in which our attempt was looked up, and a commit of `published` from s5.
    fn after(to: Option<&str>, layout: &str, published: &[AttemptId]) -> (Option<Token>, Vec<Change>) {
        let mut indexes = Indexes::default();
        indexes.loaded(index("fnv1a/2"), Token::from("s5"));
        indexes.located(&index("fnv1a/2"), OURS);
        let published: BTreeMap<Slot, AttemptId> = published.iter().map(|a| (Slot(0), *a)).collect();
        let (table, identity, layout) = (TableName::from("orders"), Identity::from("u1"), LayoutName::from(layout));
        let (from, to) = (Token::from("s5"), to.map(Token::from));
        let commit =
            Durable { table: &table, identity: &identity, layout: &layout, from: &from, to: to.as_ref(), published: &published };
        let changes = indexes.committed(commit, Wrong::default());
        (indexes.bound(&index("fnv1a/2")).cloned(), changes)
    }

    #[test]
    fn an_index_goes_on_with_its_own_attempt() {
        let changes = vec![Change::Apply(index("fnv1a/2"), OURS)];
        assert_eq!(after(Some("s6"), "fnv1a/2", &[OURS]), (Some(Token::from("s6")), changes));
    }

    #[test]
    fn an_index_whose_slot_had_no_rows_goes_on_unchanged() {
        assert_eq!(after(Some("s6"), "fnv1a/2", &[]), (Some(Token::from("s6")), vec![]));
    }

    #[test]
    fn an_index_is_dropped_where_its_keys_may_have_moved() {
        let dropped = (None, vec![Change::Drop(index("fnv1a/2"))]);
        assert_eq!(after(Some("s6"), "fnv1a/2", &[OTHERS]), dropped, "another attempt's rows");
        assert_eq!(after(Some("s6"), "fnv1a/3", &[]), dropped, "another layout");
        assert_eq!(after(None, "fnv1a/2", &[OURS]), dropped, "a snapshot that nobody can name");
    }

    #[test]
    fn an_index_at_the_new_snapshot_stays() {
        assert_eq!(after(Some("s5"), "fnv1a/3", &[OTHERS]), (Some(Token::from("s5")), vec![]));
    }
}
