//! What people and chance do to a run: operators, other writers, servers that change.

use super::*;

impl Engine {
    // ---- hands

    pub(super) fn hands(&mut self) {
        if self.stage == Stage::Faults {
            self.strike(self.now);
        } else {
            self.put_right();
        }
    }

    /// What happens at a time.
    pub(super) fn strike(&mut self, at: u64) {
        let running: Vec<usize> = (0..self.processes.len()).filter(|p| self.lives(*p) && self.is_running(*p)).collect();
        // A person looks at all tables before they ask for anything.
        let phases: Vec<BTreeMap<Tab, Phase>> = (0..self.processes.len()).map(|p| self.phases(p)).collect();
        let when = When::At(at);
        for then in self.ask(when, &Moment { running: &running, ..Moment::default() }) {
            match &then {
                Then::Asked(process, request) => {
                    let phases = phases.get(*process).cloned().unwrap_or_default();
                    if running.contains(process) && self.lives(*process) && suits(*request, &phases) {
                        self.fire(when, then.clone());
                        self.request(*process, *request);
                    }
                }
                Then::Dies { .. } | Then::StandsStill(..) => self.befall(when, vec![then]),
                _ => {
                    if self.befalls_the_world(&then) {
                        self.fire(when, then);
                    }
                }
            }
        }
        if let Some(table) = self.plan.stopped
            && self.now > 60
        {
            self.world.away.insert(table);
        }
    }

    fn is_running(&self, process: usize) -> bool {
        self.processes[process].coordinator.is_running()
    }

    fn phases(&self, process: usize) -> BTreeMap<Tab, Phase> {
        let status = self.processes[process].coordinator.status();
        status.tables.iter().filter_map(|(name, table)| Some((self.world.history.table(name)?, table.phase))).collect()
    }

    /// Everything is well: people let tables go on.
    fn put_right(&mut self) {
        for process in 0..self.processes.len() {
            if !self.lives(process) || !self.is_running(process) {
                continue;
            }
            for (table, phase) in self.phases(process) {
                if matches!(phase, Phase::Paused | Phase::Halted) && self.lives(process) {
                    let skips = self.dice.chance(Small::Person, &[self.now, table as u64], 300);
                    self.request(process, if skips { Request::Skip(table) } else { Request::Resume(table) });
                }
            }
        }
    }

    fn request(&mut self, process: usize, request: Request) {
        let name = |table: Tab| self.world.history.tables[table].clone();
        let operator = match request {
            Request::Pause(table) => Operator::Pause(name(table)),
            Request::Resume(table) | Request::Skip(table) => {
                self.processes[process].resumed.insert(table);
                if matches!(request, Request::Skip(_)) { Operator::Skip(name(table)) } else { Operator::Resume(name(table)) }
            }
            Request::Release(table) => {
                let operator = Operator::Release(name(table));
                self.world.excuse(table);
                operator
            }
            Request::Resnapshot(table) => Operator::Resnapshot(name(table)),
            Request::Drain => {
                self.processes[process].asked_to_drain = true;
                Operator::Drain
            }
        };
        self.arrive(process, Mail::Fact(Input::Operator(operator)));
    }

    /// What befalls sinks and source; false if it can't as things are.
    fn befalls_the_world(&mut self, then: &Then) -> bool {
        let source = &mut self.world.source;
        let lasting = match *then {
            Then::ForeignCommit(table) => {
                self.world.foreign_commit(table);
                return true;
            }
            Then::IsSetBack(table, steps) => return self.world.roll_back(table, steps as usize),
            Then::Forgets(stream, n) => return source.purge(self.now, stream, n as usize),
            Then::AnotherServer => {
                self.world.switch_server();
                return true;
            }
            Then::SinkIsAway(table, lasts) if self.world.away.insert(table) => Some((Lasting::Sink(table), lasts)),
            Then::SourceIsAway(lasts) if !std::mem::replace(&mut source.away, true) => Some((Lasting::Source, lasts)),
            Then::Unreadable(lasts) if !std::mem::replace(&mut source.poison, true) => Some((Lasting::Unreadable, lasts)),
            // Nobody can know that the first log that is ever read is the wrong one.
            Then::AnotherLog(_)
                if self.world.record.as_ref().is_none_or(|r| r.identity.streams.is_empty() && r.identity.lineage.is_none()) =>
            {
                None
            }
            Then::AnotherLog(lasts) if !std::mem::replace(&mut source.replaced, true) => {
                source.end_sessions();
                Some((Lasting::AnotherLog, lasts))
            }
            Then::CutShort { by, lasts } if source.cut_short.is_none() => {
                let before = self.world.history.end(self.now.saturating_sub(by));
                source.cut_short = Some(before.join(&source.floor));
                source.end_sessions();
                Some((Lasting::CutShort, lasts))
            }
            Then::Lacks { stream, last, lasts } if source.cut_short.is_none() => {
                source.cut_short = Some(source.end_without(self.now, stream, last as usize));
                self.world.switch_server();
                self.world.count("lacking-server");
                Some((Lasting::CutShort, lasts))
            }
            _ => None,
        };
        if let Some((what, lasts)) = lasting {
            self.at(self.now + lasts, Event::Over(what));
        }
        lasting.is_some()
    }

    /// What began is over, if it has not healed already.
    pub(super) fn over(&mut self, what: Lasting) {
        if self.stage != Stage::Faults {
            return;
        }
        self.trace.both(Some(self.now), || format!("{what:?} is over"));
        let source = &mut self.world.source;
        match what {
            Lasting::Sink(table) => drop(self.world.away.remove(&table)),
            Lasting::Source => source.away = false,
            Lasting::Unreadable => source.poison = false,
            Lasting::AnotherLog => {
                source.replaced = false;
                source.end_sessions();
            }
            Lasting::CutShort => {
                source.cut_short = None;
                source.end_sessions();
            }
        }
    }
}

/// Does a request suit what the tables are doing?
fn suits(request: Request, phases: &BTreeMap<Tab, Phase>) -> bool {
    let is = |table: Tab, of: &[Phase]| phases.get(&table).is_some_and(|phase| of.contains(phase));
    match request {
        Request::Pause(table) => is(table, &[Phase::Streaming, Phase::Snapshotting]),
        Request::Resume(table) | Request::Skip(table) | Request::Release(table) => is(table, &[Phase::Paused, Phase::Halted]),
        Request::Resnapshot(table) => phases.contains_key(&table),
        Request::Drain => true,
    }
}
