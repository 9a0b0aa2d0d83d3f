//! What people and chance do to a run: operators, other writers, servers that change.

use super::*;

impl Engine {
    // ---- hands

    pub(super) fn hands(&mut self) {
        for process in 0..self.processes.len() {
            if self.lives(process) && self.processes[process].coordinator.is_running() {
                self.operate(process);
            }
        }
        if self.stage == Stage::Faults {
            self.foreign_hands();
            self.trouble_the_source();
        }
    }

    pub(super) fn operate(&mut self, process: usize) {
        let calm = self.stage != Stage::Faults;
        let hands = self.plan.faults.hands;
        for (name, table) in self.processes[process].coordinator.status().tables {
            let chance = |random: &mut Random, permille| random.chance(permille);
            let resume = if self.random.chance(700) { Operator::Resume(name.clone()) } else { Operator::Skip(name.clone()) };
            let operator = match table.phase {
                Phase::Streaming => (!calm && chance(&mut self.random, hands / 6)).then(|| Operator::Pause(name.clone())),
                Phase::Paused | Phase::Halted if calm || chance(&mut self.random, 300) => Some(resume),
                Phase::Paused | Phase::Halted => chance(&mut self.random, hands / 8).then(|| Operator::Release(name.clone())),
                _ => None,
            };
            if let (Some(Operator::Release(_)), Some(tab)) = (&operator, self.world.history.table(&name)) {
                self.world.excuse(tab);
            }
            if let (Some(Operator::Resume(_) | Operator::Skip(_)), Some(tab)) = (&operator, self.world.history.table(&name)) {
                self.processes[process].resumed.insert(tab);
            }
            if let Some(operator) = operator {
                self.arrive(process, Mail::Fact(Input::Operator(operator)));
            }
            if !self.lives(process) {
                return;
            }
        }
        if !calm && self.random.chance(self.plan.faults.drains) {
            self.processes[process].asked_to_drain = true;
            self.arrive(process, Mail::Fact(Input::Operator(Operator::Drain)));
        }
    }

    pub(super) fn foreign_hands(&mut self) {
        let faults = self.plan.faults.clone();
        let table = self.random.below(self.plan.tables.len() as u64) as Tab;
        if self.random.chance(faults.foreign) {
            self.world.foreign_commit(table);
        }
        if self.random.chance(faults.rollback) {
            let steps = self.random.range(1, 3) as usize;
            if self.world.roll_back(table, steps) {
                self.tell(|| format!("t{table} is set back by {steps}"));
            }
        }
        if self.random.chance(faults.away) {
            if self.world.away.is_empty() {
                self.world.away.insert(table);
            } else {
                self.world.away.clear();
            }
        }
        if let Some(table) = faults.only_away
            && self.now > 60
        {
            self.world.away.insert(table);
        }
    }

    pub(super) fn trouble_the_source(&mut self) {
        let faults = self.plan.faults.clone();
        if self.random.chance(faults.purge) {
            self.world.source.purge(self.now);
        }
        // What began ends more often than it begins.
        let toggle = |random: &mut Random, on: bool, permille: u64| random.chance(if on { 300 } else { permille });
        if toggle(&mut self.random, self.world.source.away, faults.source_away) && faults.source_away > 0 {
            self.world.source.away = !self.world.source.away;
        }
        if toggle(&mut self.random, self.world.source.poison, faults.poison) && faults.poison > 0 {
            self.world.source.poison = !self.world.source.poison;
        }
        // Nobody can know that the first log that is ever read is the wrong one.
        let known = self.world.record.as_ref().is_some_and(|r| !r.identity.streams.is_empty());
        if toggle(&mut self.random, self.world.source.replaced, faults.replaced) && faults.replaced > 0 && known {
            self.world.source.replaced = !self.world.source.replaced;
            self.world.source.end_sessions();
            self.tell(|| "the log is another one, or itself again".into());
        }
        if toggle(&mut self.random, self.world.source.cut_short.is_some(), faults.cut_short) && faults.cut_short > 0 {
            let before = self.world.history.end(self.now.saturating_sub(self.random.range(10, 100)));
            let source = &mut self.world.source;
            source.cut_short = if source.cut_short.is_some() { None } else { Some(before.join(&source.floor)) };
            source.end_sessions();
            self.tell(|| "the log is cut short, or whole again".into());
        }
        if self.random.chance(faults.other_server) {
            self.world.switch_server();
            self.tell(|| "the log is read from another server".into());
        }
    }
}
