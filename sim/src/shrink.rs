//! Makes a failing scenario small: what can be left out without another verdict is left out. The verdict is the oracle's own, the
//! same invariant by name; a smaller story that breaks another rule is another story.
//!
//! Steps belong to occasions and small choices to the dice, so a part that is taken out leaves the rest as it was. Each pass is
//! delta debugging over one kind of part; passes repeat until none finds anything.

use fault_scenarios::{Dice, Options, Request, Scenario, Step, Tab, Then, Transaction, When};
use kernel::planted::PlantedBug;

use crate::engine;

/// What shrinking found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest scenario with the same verdict.
    pub scenario: Scenario,
    /// How many scenarios were played.
    pub tries: usize,
}

/// Shrinks a scenario in which `rule` is the first to break.
pub fn shrink(scenario: &Scenario, bug: Option<PlantedBug>, rule: &str, tries_max: usize) -> Shrunk {
    let mut shrinker = Shrinker { best: scenario.clone(), bug, rule, tries: 0, tries_max };
    loop {
        let before = (shrinker.best.size(), shrinker.best.to_string().len());
        shrinker.what_never_happens();
        shrinker.dice();
        shrinker.steps();
        shrinker.earlier_occasions();
        shrinker.transactions();
        shrinker.changes();
        shrinker.tables();
        shrinker.streams();
        shrinker.options();
        shrinker.habits();
        shrinker.times();
        let after = (shrinker.best.size(), shrinker.best.to_string().len());
        if after == before || shrinker.tries >= tries_max {
            return Shrunk { scenario: shrinker.best, tries: shrinker.tries };
        }
    }
}

struct Shrinker<'a> {
    best: Scenario,
    bug: Option<PlantedBug>,
    rule: &'a str,
    tries: usize,
    tries_max: usize,
}

impl Shrinker<'_> {
    /// Is it the same verdict? Then it is the new best.
    fn accept(&mut self, scenario: Scenario) -> bool {
        if self.tries >= self.tries_max || scenario == self.best {
            return false;
        }
        self.tries += 1;
        let same = engine::play(&scenario, self.bug, false).violation.is_some_and(|v| v.rule == self.rule);
        if same {
            self.best = scenario;
        }
        same
    }

    /// Takes out of a list what is not needed: halves, quarters, and so on down to single parts.
    fn less_of(&mut self, count: impl Fn(&Scenario) -> usize, without: impl Fn(&Scenario, std::ops::Range<usize>) -> Scenario) {
        let mut size = count(&self.best);
        while size > 0 {
            let mut at = 0;
            while at < count(&self.best) {
                let part = at..(at + size).min(count(&self.best));
                if !self.accept(without(&self.best, part)) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    /// Steps that no run comes to.
    fn what_never_happens(&mut self) {
        let steps = engine::play(&self.best, self.bug, false).steps;
        let happens = |step: &Step| steps.iter().any(|s| s.when == step.when && s.then == step.then);
        let mut scenario = self.best.clone();
        scenario.steps.retain(happens);
        self.accept(scenario);
    }

    fn dice(&mut self) {
        if self.best.dice.0.iter().all(|n| *n == 0) {
            let none = Scenario { dice: Dice::default(), ..self.best.clone() };
            self.accept(none);
            return;
        }
        let zeroed = |scenario: &Scenario, part: std::ops::Range<usize>| {
            let mut scenario = scenario.clone();
            scenario.dice.0[part].fill(0);
            scenario
        };
        let mut size = self.best.dice.0.len();
        while size > 0 {
            for at in (0..self.best.dice.0.len()).step_by(size) {
                let part = at..(at + size).min(self.best.dice.0.len());
                if self.best.dice.0[part.clone()].iter().any(|n| *n > 0) {
                    self.accept(zeroed(&self.best, part));
                }
            }
            size /= 2;
        }
        if self.best.dice.0.iter().all(|n| *n == 0) {
            self.accept(Scenario { dice: Dice::default(), ..self.best.clone() });
        }
    }

    fn steps(&mut self) {
        self.less_of(
            |s| s.steps.len(),
            |s, part| {
                let mut scenario = s.clone();
                scenario.steps.drain(part);
                scenario
            },
        );
    }

    /// The first commit instead of the seventh: what made the six others is needed no more.
    fn earlier_occasions(&mut self) {
        for number in 0..self.best.steps.len() {
            for by in [|_| 1, |n| n / 2, |n| n - 1] as [fn(u32) -> u32; 3] {
                let mut scenario = self.best.clone();
                if let When::Sends(command) | When::Lands(command) | When::Hears(command) = &mut scenario.steps[number].when {
                    command.nth = by(command.nth).max(1);
                }
                if self.accept(scenario) {
                    break;
                }
            }
        }
    }

    fn transactions(&mut self) {
        self.less_of(
            |s| s.workload.transactions.len(),
            |s, part| {
                let mut scenario = s.clone();
                scenario.workload.transactions.drain(part);
                scenario
            },
        );
    }

    fn changes(&mut self) {
        self.less_of(
            |s| s.workload.transactions.iter().map(|t| t.changes.len()).sum(),
            |s, part| {
                let mut scenario = s.clone();
                let mut n = 0;
                for transaction in &mut scenario.workload.transactions {
                    transaction.changes.retain(|_| {
                        n += 1;
                        !part.contains(&(n - 1))
                    });
                }
                scenario
            },
        );
    }

    fn tables(&mut self) {
        for table in (0..self.best.workload.tables.len()).rev() {
            if self.best.workload.tables.len() > 1 {
                self.accept(without_table(&self.best, table));
            }
        }
    }

    fn streams(&mut self) {
        for stream in (0..self.best.workload.streams.len()).rev() {
            let used = self.best.workload.transactions.iter().any(|t| t.stream == stream);
            let named = self.best.steps.iter().any(|s| matches!(s.then, Then::Forgets(..) | Then::Lacks { .. }));
            if used || named {
                continue;
            }
            let mut scenario = self.best.clone();
            scenario.workload.streams.remove(stream);
            for transaction in scenario.workload.transactions.iter_mut().filter(|t| t.stream > stream) {
                transaction.stream -= 1;
            }
            self.accept(scenario);
        }
        // One stream needs no name.
        if let [only] = self.best.workload.streams.as_slice()
            && only.appears == 0
        {
            let mut scenario = self.best.clone();
            scenario.workload.streams.clear();
            self.accept(scenario);
        }
    }

    fn options(&mut self) {
        self.accept(Scenario { options: Options::default(), ..self.best.clone() });
        let usual: Vec<(&str, String)> = self.best.options.unusual();
        for (word, _) in usual {
            let mut scenario = self.best.clone();
            scenario.options.reset(word);
            self.accept(scenario);
        }
    }

    /// Kinds of tables, gaps, how late transactions are seen, refused values.
    fn habits(&mut self) {
        for table in 0..self.best.workload.tables.len() {
            let plain = fault_scenarios::Table::of(self.best.workload.tables[table].sink);
            for simpler in 0..5 {
                let mut scenario = self.best.clone();
                let t = &mut scenario.workload.tables[table];
                match simpler {
                    0 => *t = plain,
                    1 => t.keyed = plain.keyed,
                    2 => t.join = plain.join,
                    3 => t.anew = plain.anew,
                    _ => t.truncate = plain.truncate,
                }
                self.accept(scenario);
            }
        }
        let delays: [fn(&mut Transaction) -> &mut u64; 5] =
            [|t| &mut t.late, |t| &mut t.gap, |t| &mut t.early, |t| &mut t.unlisted, |t| &mut t.hidden];
        for delay in delays {
            let mut scenario = self.best.clone();
            scenario.workload.transactions.iter_mut().for_each(|t| *delay(t) = 0);
            self.accept(scenario);
            self.less_of(
                |s| s.workload.transactions.len(),
                |s, part| {
                    let mut scenario = s.clone();
                    scenario.workload.transactions[part].iter_mut().for_each(|t| *delay(t) = 0);
                    scenario
                },
            );
        }
        self.less_of(
            |s| s.workload.refused.len(),
            |s, part| {
                let mut scenario = s.clone();
                scenario.workload.refused.drain(part);
                scenario
            },
        );
    }

    /// Idle stretches before transactions, and how long steps last.
    fn times(&mut self) {
        for number in 0..self.best.workload.transactions.len() {
            let before = number.checked_sub(1).map_or(0, |n| self.best.workload.transactions[n].time);
            let idle = self.best.workload.transactions[number].time.saturating_sub(before);
            for less in [idle, idle / 2] {
                let mut scenario = self.best.clone();
                scenario.workload.transactions[number..].iter_mut().for_each(|t| t.time -= less);
                if less > 0 && self.accept(scenario) {
                    break;
                }
            }
        }
        for number in 0..self.best.steps.len() {
            let shorter = |then: &Then, by: fn(u64) -> u64| match then.clone() {
                Then::Takes(n) => Then::Takes(by(n)),
                Then::LandsLate(n) => Then::LandsLate(by(n)),
                Then::AnswerTakes(n) => Then::AnswerTakes(by(n)),
                Then::StandsStill(p, n) => Then::StandsStill(p, by(n)),
                Then::After(n) => Then::After(by(n)),
                Then::SinkIsAway(t, n) => Then::SinkIsAway(t, by(n)),
                Then::SourceIsAway(n) => Then::SourceIsAway(by(n)),
                Then::Unreadable(n) => Then::Unreadable(by(n)),
                Then::AnotherLog(n) => Then::AnotherLog(by(n)),
                Then::CutShort { by: of, lasts } => Then::CutShort { by: of, lasts: by(lasts) },
                Then::Lacks { stream, last, lasts } => Then::Lacks { stream, last, lasts: by(lasts) },
                other => other,
            };
            for by in [|_| 1, |n| n / 2, |n| n - n / 4, |n| n - 1] as [fn(u64) -> u64; 4] {
                let mut scenario = self.best.clone();
                let then = shorter(&scenario.steps[number].then, by);
                let is_some = then != scenario.steps[number].then && !format!("{then}").contains(" 0");
                scenario.steps[number].then = then;
                if is_some && self.accept(scenario) {
                    break;
                }
            }
        }
    }
}

/// The scenario without a table, and without all that speaks of it; later ones take its place.
fn without_table(scenario: &Scenario, table: Tab) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.workload.tables.remove(table);
    let down = |t: &mut Tab| {
        if *t > table {
            *t -= 1;
        }
    };
    for transaction in &mut scenario.workload.transactions {
        transaction.changes.retain(|c| c.table != table);
        transaction.changes.iter_mut().for_each(|c| down(&mut c.table));
    }
    if scenario.options.stopped == Some(table) {
        scenario.options.stopped = None;
    }
    if let Some(stopped) = &mut scenario.options.stopped {
        down(stopped);
    }
    scenario.steps.retain_mut(|step| {
        let mut speaks_of_it = false;
        let mut each = |t: &mut Tab| {
            speaks_of_it |= *t == table;
            down(t);
        };
        tables_of(step, &mut each);
        !speaks_of_it
    });
    scenario
}

/// Every table that a step speaks of.
fn tables_of(step: &mut Step, each: &mut dyn FnMut(&mut Tab)) {
    if let When::Sends(command) | When::Lands(command) | When::Hears(command) = &mut step.when {
        command.table.iter_mut().for_each(&mut *each);
    }
    match &mut step.then {
        Then::HearsACopy(_, command) => command.table.iter_mut().for_each(each),
        Then::With(t) | Then::Without(t) | Then::IsSetBack(t, _) | Then::ForeignCommit(t) | Then::SinkIsAway(t, _) => each(t),
        Then::Asked(_, Request::Pause(t) | Request::Resume(t) | Request::Skip(t) | Request::Release(t)) => each(t),
        Then::Asked(_, Request::Resnapshot(t)) => each(t),
        Then::Asked(_, Request::Drain) => {}
        Then::Takes(_) | Then::LandsAt(_) | Then::IsLost | Then::AnswerIsLost | Then::LandsLate(_) | Then::SenderDies => {}
        Then::Fails | Then::IsCalledAConflict | Then::Lies | Then::LosesTheSession | Then::AnswerTakes(_) => {}
        Then::Dies { .. } | Then::StandsStill(..) | Then::After(_) | Then::UntilCurrent => {}
        Then::SourceIsAway(_) | Then::Unreadable(_) | Then::AnotherLog(_) | Then::CutShort { .. } => {}
        Then::AnotherServer | Then::Lacks { .. } | Then::Forgets(..) => {}
    }
}
