//! What the oracle is asked, and when: at each write and each commit that lands, and at the end.

use kernel::id::{AttemptId, Part};

use super::World;
use crate::oracle::owners;
use crate::owners::sinks::{Commit, Outcome, Truth};
use crate::owners::{Kind, Row, Tab};

/// How long everything must stay at rest.
const REST: u64 = 260;

impl World<'_> {
    pub(super) fn written(&mut self, table: Tab, attempt: AttemptId, part: Part, rows: Vec<Row>) {
        for row in &rows {
            let verdict = owners::a_version_names_one_row(&self.given[table], row);
            self.judge("a-version-names-one-row", verdict);
        }
        self.sinks[table].write(attempt, part, rows);
        if self.kind(table) == Kind::Versioned {
            self.judge_versioned(table);
        }
    }

    pub(super) fn delete(&mut self, table: Tab, attempt: AttemptId) {
        let verdict = owners::deleted_was_never_named(&self.sinks[table], attempt);
        self.judge("staged-kept-while-unknown", verdict);
        self.sinks[table].delete(attempt);
    }

    pub(super) fn commit(&mut self, table: Tab, commit: &Commit) -> Outcome {
        let (sink, kind) = (&self.sinks[table], self.kind(table));
        let order = |s: &crate::owners::State| (s.incarnation, s.commit);
        let lands = match kind {
            Kind::Versioned => sink.state.as_ref().is_none_or(|s| order(s) < order(&commit.new)),
            Kind::Located | Kind::Appended => commit.token == sink.token,
        };
        if lands {
            let staged = &commit.staged;
            let mut verdicts = vec![
                ("staged-kept-while-unknown", owners::staged_kept_while_unknown(sink, staged)),
                ("one-attempt-counts", owners::one_attempt_counts(sink, staged, commit.new.incarnation)),
                ("staged-published-at-most-once", owners::staged_published_at_most_once(sink, staged)),
                ("position-never-regresses", owners::position_never_regresses(kind, sink.state, commit.new)),
            ];
            if kind != Kind::Appended {
                verdicts.push(("one-owner-per-key", owners::one_owner_per_key(sink, staged)));
                let located = owners::index_at_its_base(sink, staged, &commit.deletions, commit.truncate);
                verdicts.push(("index-at-its-base", located));
            }
            verdicts.into_iter().for_each(|(rule, verdict)| self.judge(rule, verdict));
            self.mark("landed-commits");
        }
        let outcome = self.sinks[table].commit(commit);
        if lands && self.violation.is_none() {
            match kind {
                Kind::Versioned => self.judge_versioned(table),
                Kind::Located | Kind::Appended => {
                    let cut = commit.new.cut;
                    let expected = self.truth.at(table, kind, cut);
                    let verdict = owners::state_and_data_move_together(cut, self.sinks[table].visible(), expected);
                    self.judge("state-and-data-move-together", verdict);
                }
            }
        }
        outcome
    }

    fn judge_versioned(&mut self, table: Tab) {
        let cut = self.sinks[table].state.map(|s| s.cut).unwrap_or_default();
        let seen = self.sinks[table].visible();
        let may_be = |key| self.truth.later(table, cut, key);
        let verdict = owners::position_covers_only_durable(cut, &seen, may_be, Truth::keys());
        self.judge("position-covers-only-durable", verdict);
    }

    /// What is not yet as the log says, if anything.
    pub(super) fn missing(&self) -> Option<String> {
        let end = self.end();
        (0..self.sinks.len()).find_map(|table| {
            let (sink, kind) = (&self.sinks[table], self.kind(table));
            let cut = sink.state.map(|s| s.cut).unwrap_or_default();
            if self.truth.lacks(table, kind, cut, end) {
                return Some(format!("t{table} stands at {cut:?} of {end}"));
            }
            let expected = self.truth.at(table, kind, cut);
            owners::state_and_data_move_together(cut, sink.visible(), expected).err().map(|why| format!("t{table}: {why}"))
        })
    }

    /// Has everything come to rest?
    pub(super) fn rest(&mut self) {
        if !self.healed || self.done || self.violation.is_some() {
            return;
        }
        let end = self.end();
        let awake = self.leads.iter().all(|l| l.still.is_none()) && self.workers.iter().all(|w| w.still.is_none());
        let rests = awake && self.newest().is_some_and(|p| self.leads[p].machine.is_at_rest(end)) && self.missing().is_none();
        if !rests {
            self.rests_since = None;
            return;
        }
        let since = *self.rests_since.get_or_insert(self.now);
        if self.now < since + REST {
            return;
        }
        for w in 0..self.workers.len() {
            let newest = self.newest();
            let serves = self.links.present(w).is_some_and(|l| Some(self.links.0[l].lead) == newest);
            if self.workers[w].alive && serves {
                let held = self.workers[w].machine.held().into_iter().collect();
                self.judge("rows-held-equal-rows-known", owners::nothing_is_held_at_rest(w as u64, &held));
            }
        }
        self.done = true;
    }

    pub(super) fn kind(&self, table: Tab) -> Kind {
        self.story.tables[table]
    }
}
