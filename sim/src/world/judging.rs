//! What the oracle is asked when something has landed: a commit, a record.

use super::*;
use crate::oracle::{absent, snapshots};

impl World {
    pub(super) fn judge_commit(&mut self, process: &mut Process, table: Tab, before: Option<&TableState>, commit: &Commit) {
        let state = &commit.state;
        let history = self.history.clone();
        if state.cut.upto().intervals().any(|(_, held)| held.len() > 1) {
            self.count("stored-with-a-hole");
        }
        // A claim of a table without a state says nothing of where its copy begins.
        if self.memory.bases[table].as_ref() != Some(&state.base) && state.commit.number > 0 {
            // Where nothing compares, a life that found no beginning begins anew over an older one's that came late.
            let staging = self.plan.tables[table].staging;
            let anew = !staging && before.is_some_and(|b| b.commit.number == 0);
            let first = self.memory.bases[table].is_none();
            // There a life may also claim the generation that it found, over one that an older life has begun meanwhile.
            let begins = before.is_none_or(|b| b.generation < state.generation || (!staging && b.generation > state.generation));
            let moved =
                if first || anew || begins { Ok(()) } else { Err(format!("the base of t{table} moves to {}", state.base)) };
            self.judge("join-has-a-base", moved);
            if state.generation == 0 {
                let verdict = starting::join_has_a_base(&self.view(table), state, &self.memory.ends_told);
                self.judge("join-has-a-base", verdict);
            }
            self.memory.bases[table] = Some(state.base.clone());
        }
        if state.commit.number > 0 && before.map_or(0, |b| b.generation) < state.generation {
            self.judge_beginning(table, state, &commit.staged);
        }
        self.memory.committed[table].insert(state.incarnation);
        let rows: Vec<_> = self.targets[table].rows_of(&commit.staged).into_iter().map(|(row, _)| row).collect();
        let netted = self.targets[table].netted_of(&commit.staged);
        let images: Vec<_> = netted.iter().flat_map(|n| n.images.iter().map(|(key, row, _)| (*key, *row))).collect();
        let fills: Vec<_> = netted.iter().flat_map(|n| n.fills.clone()).collect();
        let visible = self.targets[table].contents();
        // What the state before divides by another server's numbers is read again.
        if let Some(before) = before.filter(|b| b.identity.coordinates != state.identity.coordinates) {
            let divided: BTreeSet<_> = before.cut.within().keys().cloned().collect();
            for place in history.of_table[table].iter().filter(|place| divided.contains(&history.name(place.tx))) {
                self.memory.smeared[table].entry(place.tx).or_default().push(*place);
            }
        }
        let smeared = self.memory.smeared[table].clone();
        let view = self.view(table);
        let chain = view.plan.staging || before.is_none_or(|b| b.incarnation == state.incarnation);
        let log = self.source.identity(u64::MAX);
        let running = process.commits_running.get(&table).copied().unwrap_or(0);
        let mut verdicts = vec![("commit-in-order-per-table", durability::commit_in_order_per_table(running, before, state))];
        if let Some(before) = before {
            let verdict = starting::stale_incarnation_has_no_effect(before.incarnation, state.incarnation);
            verdicts.push(("stale-incarnation-has-no-effect", verdict));
            verdicts.push(("position-never-regresses", durability::position_never_regresses(&view, before, state)));
        }
        verdicts.push((
            "same-log-identity",
            if self.source.replaced { Ok(()) } else { starting::same_log_identity(&state.identity, &log) },
        ));
        let end = self.history.end(self.now).join(&self.source.told);
        verdicts.push(("never-ahead-of-source", starting::never_ahead_of_source(state.cut.upto(), &end)));
        let upto = state.cut.upto();
        verdicts.push(("position-names-finished-transactions", durability::position_names_finished_transactions(&history, upto)));
        let told = [&self.source.told, &self.source.floor, &state.base, &self.source.acknowledged];
        let named = durability::position_names_ended_transactions(&history, upto, &told);
        verdicts.push(("position-names-finished-transactions", named));
        let inside = &self.source.told_inside;
        verdicts.push((
            "empty-transactions-do-not-confirm",
            durability::empty_transactions_do_not_confirm(upto, &self.told(), inside),
        ));
        verdicts.push(("one-image-per-key-per-commit", durability::one_image_per_key_per_commit(&images)));
        verdicts.push(("absent-value-never-stored", absent::absent_value_never_stored(&images)));
        let readings = &self.memory.readings;
        verdicts.push(("hole-filled-by-proof", absent::hole_filled_by_proof(&view, state, &fills, readings)));
        let upon = before.filter(|_| chain);
        let verdict = absent::ahead_within_its_fence(upon, state, commit.truncate_first, &fills, readings);
        verdicts.push(("ahead-within-its-fence", verdict));
        if chain {
            verdicts.push(("covered-row-has-no-effect", starting::covered_row_has_no_effect(&view, before, &rows, &smeared)));
            verdicts.push(("position-covers-only-durable", starting::no_row_is_skipped(&view, before, state, &rows, &smeared)));
            verdicts.push(("schema-before-its-rows", starting::schema_before_its_rows(&view, state, &rows, &smeared)));
        }
        // Of a table that has not begun nothing is promised.
        if state.generation > 0 && state.commit.number > 0 {
            // The cause before what comes of it.
            let began = process.began.get(&table);
            let told = snapshots::Told { chunks: &self.memory.chunks, proven: &process.proven, began };
            verdicts.push(snapshots::chunk_rows_are_proven(&view, state, &rows, &told));
            let versions = self.targets[table].versions();
            verdicts.push(snapshots::what_a_reader_may_see(&view, state, &visible, &versions, &smeared));
            let ended =
                before.is_some_and(|b| b.generation == state.generation && !b.tiling.is_empty()) && state.tiling.is_empty();
            if ended {
                let verdict = snapshots::resnapshot_leaves_no_ghost(state, &versions);
                verdicts.push(("resnapshot-leaves-no-ghost", verdict));
            }
        } else if view.base.is_some() {
            let durable = durability::position_covers_only_durable(&view, state, &visible, &smeared);
            verdicts.push(("position-covers-only-durable", durable));
            let together = durability::state_and_data_move_together(&view, state, &visible, &smeared);
            verdicts.push(("state-and-data-move-together", together));
        }
        // What was under way when the table was released may land; a life that began later may commit nothing.
        let wanted = process.released_at_start.get(&table).copied().filter(|wanted| state.generation < *wanted);
        let own = starting::goes_on_from_its_own_state(wanted.is_some(), before, state);
        verdicts.push(("join-has-a-base", own));
        for (rule, verdict) in verdicts {
            self.judge(rule, verdict);
        }
        self.memory.smeared[table].retain(|tx, _| !history.holds(state.cut.upto(), *tx));
        self.memory.rolled[table] = false;
        let remembered = process.remembered.entry(table).or_default();
        // A generation is built upon none of an older one's commits.
        remembered.retain(|s| s.generation == state.generation);
        // A blank table's claim need not be named.
        if state.commit.number > 0 && remembered.last().is_none_or(|last| last.commit != state.commit) {
            remembered.push(state.clone());
            if remembered.len() > self.plan.config.recent_commits_max {
                remembered.remove(0);
            }
        }
        // Where nothing compares, a life may claim an older state than the one that an older life wrote meanwhile.
        if !self.plan.tables[table].staging && before.is_some_and(|b| b.incarnation != state.incarnation && b.cut != state.cut) {
            self.memory.effective[table] = None;
        }
        self.judge_record_of(table, true);
    }

    /// All that was told by ends of transactions, keepalives outside of them, and openings.
    pub(super) fn told(&self) -> Position {
        self.memory.ends_told.iter().fold(self.source.told.join(&self.source.floor), |told, end| told.join(end))
    }

    /// Does a state divide a transaction by the coordinates of another server than the one that is read now? A life takes it again
    /// from its beginning (rule P2): the state is another one then, `upto` stands, and what readers see is the same.
    pub fn is_divided_elsewhere(&self, was: Option<&TableState>, is: Option<&TableState>, now: u64) -> bool {
        let (Some(was), Some(is)) = (was, is) else { return false };
        let elsewhere = was.identity.coordinates != self.source.identity(now).coordinates;
        !was.cut.is_whole() && elsewhere && durability::contains(is.cut.upto(), was.cut.upto())
    }

    /// A table that the record newly calls in need of a snapshot really needs one.
    pub(super) fn judge_release(&mut self, process: &Process, table: Tab, before: Option<&PipelineState>) {
        let name = &self.history.tables[table];
        let needs =
            |r: Option<&PipelineState>| r.and_then(|r| r.tables.get(name)).is_some_and(|e| e.phase == Phase::NeedsSnapshot);
        if !needs(self.record.as_ref()) || needs(before) {
            return;
        }
        self.memory.effective[table] = None;
        let known = before.is_some_and(|r| r.tables.contains_key(name));
        let removed = !process.tables.contains(&table);
        let elsewhere = self.source.server > 0 && !self.plan.tables[table].keyed;
        let vanished = self.memory.ever_rolled[table];
        // One that stands still may not keep more of the log than this.
        let state = self.targets[table].state();
        let kept = self.source.told.beyond(state.map_or(&Position::START, |state| state.cut.upto()));
        let stands =
            process.coordinator.status().tables.get(name).is_some_and(|t| matches!(t.phase, Phase::Halted | Phase::Paused));
        let too_much = stands && self.plan.config.hold_distance.is_some_and(|most| kept > most);
        let excused = self.memory.excused[table]
            || too_much
            || removed
            || elsewhere
            || !known
            || vanished
            || self.source.purged
            || self.plan.config.hold.is_some();
        let floor = self.source.floor.join(&self.source.acknowledged);
        let verdict = starting::lost_is_true(&self.view(table), self.targets[table].state(), &floor, excused);
        self.judge("start-within-streamable", verdict);
        self.memory.excused[table] = true;
    }

    /// What the record claims of a table is true, whatever happens later; and nothing written makes the table fall. After a
    /// commit only what it made is new.
    pub(super) fn judge_record_of(&mut self, table: Tab, after_commit: bool) {
        let Some(record) = self.record.clone() else { return };
        let Some(entry) = self.entry(table).cloned() else { return };
        let (staging, now) = (self.plan.tables[table].staging, self.targets[table].state());
        let again = |s: &&TableState| now.is_none_or(|now| durability::may_be_found_again(s, now, staging));
        let states = if after_commit { now.into_iter().collect() } else { self.targets[table].states() };
        let states: Vec<&TableState> = states.into_iter().filter(again).collect();
        let verdict = durability::record_claims_truth(&self.view(table), &record, &entry, &states);
        self.judge("record-claims-truth", verdict);
        let Some(state) = self.targets[table].state() else { return };
        // That an idle table was set back is noticed at its next commit; until then the record speaks of what is gone.
        if entry.phase == Phase::NeedsSnapshot || self.memory.rolled[table] {
            self.memory.effective[table] = None;
            return;
        }
        let now = durability::effective(Some(&record), Some(&entry), state);
        if let Some(before) = self.memory.effective[table].replace(now.clone()) {
            let name = self.history.tables[table].to_string();
            let verdict = durability::effective_cut_never_falls(&before, &now).map_err(|dump| format!("{name}: {dump}"));
            self.judge("effective-cut-never-falls", verdict);
        }
    }

    pub(super) fn judge_naming(&mut self, process: &Process, table: Tab) {
        // Several streams, another numbering and short lists of ancestors make a later name right.
        let all_count = self.plan.tables[table].on_truncate != kernel::config::OnTruncate::Ignore;
        let lists_are_long = self.plan.config.ancestor_runs_max >= 16;
        let exact =
            self.history.streams.len() == 1 && !self.history.sets && self.source.server == 0 && lists_are_long && all_count;
        let (Some(record), Some(entry)) = (self.record.clone(), self.entry(table).cloned()) else { return };
        // A keepalive between two transactions may be told in one reading and not in another.
        let quiet = record.quiet.offset(&self.history.streams[0]).0;
        let ends = self.plan.source.empty_transactions != EmptyTransactions::Silent
            && self.history.transactions.iter().any(|t| t.end == quiet);
        if !exact || !ends {
            return;
        }
        let remembered: Vec<&TableState> = process.remembered.get(&table).into_iter().flatten().collect();
        let verdict = durability::record_names_the_oldest(&self.view(table), &record, &entry, &remembered);
        self.judge("record-claims-truth", verdict);
    }

    /// A generation begins.
    fn judge_beginning(&mut self, table: Tab, state: &TableState, staged: &[kernel::id::AttemptId]) {
        let versions = self.targets[table].versions();
        // One that an older life was still sending is judged when a newer one finds it.
        let newest = self.record.as_ref().is_some_and(|r| r.incarnation == state.incarnation);
        let passed = self.source.acknowledged.clone();
        // What a foreign hand has taken away may have been acknowledged.
        let excused = !newest || self.source.purged || self.memory.ever_rolled[table];
        let passed = (!excused).then_some(&passed);
        let verdict = snapshots::generation_begins_durably(state, staged.len(), &versions, passed);
        self.judge("generation-begins-durably", verdict);
        self.count("generations");
    }
}
