//! Where the schedule is asked what happens, and what happens is noted.

use super::*;

impl Engine {
    /// What the schedule says of an occasion: nothing, once everything has healed.
    pub(super) fn ask(&self, when: When, moment: &Moment<'_>) -> Vec<Then> {
        if self.stage == Stage::Faults { self.schedule.at(when, moment) } else { vec![] }
    }

    /// Notes that something happens.
    pub(super) fn fire(&mut self, when: When, then: Then) {
        self.trace.both(Some(self.now), || format!("* {when}: {then}"));
        // One process may be about to begin more than once.
        let again = matches!(when, When::Begins(_)) && self.fired.iter().any(|s| s.when == when && s.then == then);
        if !again {
            self.fired.push(Step::new(when, then));
        }
    }

    /// Has anything like this happened?
    pub(super) fn has_happened(&self, is_it: impl Fn(&Then) -> bool) -> bool {
        self.fired.iter().any(|step| is_it(&step.then))
    }

    /// Is a process beginning, and not the first one?
    pub(super) fn recovers(&self, process: usize) -> bool {
        self.processes.len() > 1 && !self.processes[process].coordinator.is_running()
    }

    /// The newest process that is past its beginning.
    fn newest(&self) -> Option<usize> {
        (0..self.processes.len()).rfind(|p| self.lives(*p) && self.processes[*p].coordinator.is_running())
    }

    // ---- beginnings

    /// Which tables the next process has; whether it ends by itself once it is current.
    pub(super) fn settle_members(&mut self) -> bool {
        let members: Vec<Tab> = self.members.iter().copied().collect();
        let when = When::Begins(self.processes.len());
        let mut until_current = false;
        for then in self.ask(when, &Moment { members: &members, ..Moment::default() }) {
            match then {
                Then::With(table) => drop(self.members.insert(table)),
                Then::Without(table) if self.members.len() > 1 => drop(self.members.remove(&table)),
                Then::UntilCurrent => until_current = true,
                _ => continue,
            }
            self.fire(when, then);
        }
        until_current
    }

    /// How long after it is needed the next process begins.
    pub(super) fn delay_of_next(&mut self) -> u64 {
        let when = When::Begins(self.processes.len());
        for then in self.ask(when, &Moment::default()) {
            if let Then::After(n) = then {
                self.fire(when, then);
                return n.max(1);
            }
        }
        1 + self.dice.roll(Small::Begins, &[self.processes.len() as u64], 40)
    }

    // ---- landings and answers

    /// Something reaches a process: copies of older answers before it, deaths after it.
    pub(super) fn reach(&mut self, process: usize, mail: Mail, of: Option<Name>) {
        let mut happens = vec![];
        if let Some(name) = of {
            if let Mail::Fact(fact) = &mail {
                self.keep_answer(process, name, fact);
            }
            let newest = self.newest();
            let moment = Moment {
                recovers: self.recovers(process),
                running: newest.as_slice(),
                answered: &self.answered,
                ..Moment::default()
            };
            happens = self.ask(When::Hears(name), &moment);
            for then in happens.iter().filter(|then| matches!(then, Then::HearsACopy(..))) {
                self.hear_a_copy(name, then);
            }
        }
        self.arrive(process, mail);
        if let Some(name) = of {
            self.befall(When::Hears(name), happens);
        }
    }

    fn keep_answer(&mut self, process: usize, name: Name, fact: &Input) {
        let of_this_life = incarnation_of(fact).is_some_and(|of| self.world.memory.incarnations.get(&of) == Some(&process));
        if of_this_life && self.stage == Stage::Faults && self.answered.len() < OLD_ANSWERS_MAX {
            self.old_answers.push(fact.clone());
            self.answered.push(name);
        }
    }

    /// An older life's answer reaches a newer one, too, perhaps long after: it names another life, so it must have no effect.
    fn hear_a_copy(&mut self, name: Name, then: &Then) {
        let Then::HearsACopy(newer, of) = then else { return };
        let Some(at) = self.answered.iter().position(|a| a == of) else { return };
        let old = self.old_answers[at].clone();
        let lives = *newer < self.processes.len() && self.lives(*newer) && self.processes[*newer].coordinator.is_running();
        if lives && incarnation_of(&old).is_some_and(|of| self.processes[*newer].coordinator.incarnation() > of) {
            self.world.count("stale-copy");
            self.fire(When::Hears(name), then.clone());
            self.arrive(*newer, Mail::Fact(old));
        }
    }

    /// Processes die or stand still.
    pub(super) fn befall(&mut self, when: When, happens: Vec<Then>) {
        for then in happens {
            match then {
                Then::Dies { process, with_its_mail } if self.exists(process) => {
                    self.world.count(if self.recovers(process) { "killed-in-recovery" } else { "killed" });
                    self.fire(when, then);
                    self.kill(process, with_its_mail);
                }
                Then::StandsStill(process, lasts) if self.exists(process) => {
                    self.fire(when, then);
                    self.stand_still(process, lasts);
                }
                _ => {}
            }
        }
        self.need_a_life();
    }

    fn exists(&self, process: usize) -> bool {
        process < self.processes.len() && self.lives(process)
    }
}
