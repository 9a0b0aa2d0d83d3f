//! What people and others do to the world: purges, rollbacks, compactions, another server.

use super::*;

impl World {
    // ---- people, and foreign hands

    /// Where a table begins in a life, as that life says it. `known`: did the record know the table when the life began?
    pub fn judge_start(&mut self, table: Tab, state: Option<&TableState>, floor: &Position, lost: bool, known: bool) {
        // A table that begins now has promised nothing; one that is new can't prove what the log held before.
        let promised = !matches!(self.plan.tables[table].join, Join::Now | Join::Snapshot);
        // A claim says whose the table is, and no more (rule R3).
        let blank = state.is_none_or(|state| state.commit.number == 0);
        if blank && !promised && !lost {
            return;
        }
        if blank && !known && self.plan.tables[table].join == Join::Snapshot && lost {
            let why = "it is new and begins with a snapshot: nothing that the log has lost is needed".to_owned();
            self.judge("start-within-streamable", Err(why));
            return;
        }
        let verdict = starting::start_within_streamable(&self.view(table), state, floor, lost);
        self.judge("start-within-streamable", verdict);
        if !lost {
            return;
        }
        let elsewhere = self.source.server > 0 && !self.plan.tables[table].keyed;
        let excused = self.source.purged || self.memory.ever_rolled[table] || elsewhere || !known;
        let truly = self.view(table).lacks(state, floor).is_some();
        self.count(if truly { "lost-truly" } else { "lost-falsely-and-excused" });
        let verdict = starting::lost_is_true(&self.view(table), state, floor, excused);
        self.judge("start-within-streamable", verdict);
        self.memory.excused[table] = true;
    }

    /// A foreign hand sets a table back.
    pub fn roll_back(&mut self, table: Tab, steps: usize) -> bool {
        let mut known = self.record.as_ref().map(|r| r.quiet.clone()).unwrap_or_default();
        for state in self.targets[table].states() {
            known.join_with(state.cut.upto());
        }
        let Target::Staging(target) = &mut self.targets[table] else { return false };
        if !target.roll_back(steps) {
            return false;
        }
        self.memory.rolled_over[table].join_with(&known);
        self.memory.rolled[table] = true;
        self.memory.ever_rolled[table] = true;
        self.memory.effective[table] = None;
        let state = self.targets[table].state().filter(|s| s.commit.number > 0);
        self.memory.bases[table] = state.map(|s| s.base.clone());
        self.count("rolled-back");
        true
    }

    /// A foreign hand commits, and changes nothing.
    pub fn foreign_commit(&mut self, table: Tab) {
        if let Target::Staging(target) = &mut self.targets[table] {
            target.foreign_commit();
            self.count("foreign-commit");
        }
    }

    /// The log is read from another server from now on.
    pub fn switch_server(&mut self) {
        self.source.switch_server();
        for table in 0..self.targets.len() {
            let state = self.targets[table].state().cloned();
            let held = |tx: usize| state.as_ref().is_some_and(|s| self.history.holds(s.cut.upto(), tx));
            let places: Vec<_> = self.history.of_table[table].to_vec();
            for place in places {
                if self.history.transactions[place.tx].time <= self.now && !held(place.tx) {
                    self.memory.smeared[table].entry(place.tx).or_default().push(place);
                }
            }
        }
        self.count("other-server");
    }

    /// What lacks for everything to be at rest: nothing, or the first thing.
    pub fn lacks(&self, tables: &BTreeSet<Tab>) -> Option<String> {
        let end = self.history.end(self.now);
        for table in tables {
            let name = &self.history.tables[*table];
            match self.entry(*table) {
                None => return Some(format!("the record does not know {name}")),
                Some(e) if e.phase == Phase::NeedsSnapshot => continue,
                Some(_) => {}
            }
            let view = self.view(*table);
            let state = self.targets[*table].state();
            if let Some(place) = view.lacks(state, &end) {
                return Some(format!("{name} at {:?} lacks {}", state.map(|s| &s.cut), view.say(place)));
            }
            let visible = self.targets[*table].contents();
            if view.plan.keyed && visible != view.fold(|_| true) {
                return Some(format!("{name} is {visible:?}, the source is {:?}", view.fold(|_| true)));
            }
        }
        let acknowledged = self.source.acknowledged.join(&self.source.floor);
        if self.plan.config.source_keeps_all {
            return None;
        }
        (!durability::contains(&acknowledged, &end)).then(|| format!("acknowledged is {acknowledged} of {end}"))
    }

    /// Does the record say that a table needs a snapshot?
    pub fn needs_snapshot(&self, table: Tab) -> bool {
        self.entry(table).is_some_and(|e| e.phase == Phase::NeedsSnapshot)
    }

    /// What a person released may need a snapshot.
    pub fn excuse(&mut self, table: Tab) {
        self.memory.excused[table] = true;
    }
}
