//! Faults by chance, as a function: for each occasion what happens there, by a seed. Nothing is drawn in an order, so what an
//! engine does not ask changes nothing else. Kills and pauses are bound to the kernel's own transitions, the landings of commands
//! and the arrivals of answers, and more of them to those of a life that is recovering: at times chosen evenly they miss the rare
//! windows.

use crate::random::Random;
use crate::step::{Command, Request, Tab, Then, What, When};

/// How often things go wrong. Numbers are chances in 1,000 at each occasion; 0 never. Each seed has only some of them: a fault
/// that is always on hides what happens without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// A process dies at a landing or an answer.
    pub kill: u64,
    /// How much more often that and the next happen while it starts.
    pub kill_in_recovery: u64,
    /// A process stands still and wakes up later.
    pub pause: u64,
    /// An answer or a command is lost, or lands late.
    pub unknown: u64,
    /// The longest time that an ordinary command takes; 0 if none is slow.
    pub slow: u64,
    /// A table's sink can't be reached for a while.
    pub away: u64,
    /// A foreign hand sets a table back.
    pub rollback: u64,
    /// A foreign hand commits to a table without changing it.
    pub foreign: u64,
    /// A person pauses, resumes, skips, releases.
    pub hands: u64,
    /// The source forgets more than it may.
    pub purge: u64,
    /// The session to the source is lost.
    pub session: u64,
    /// An acknowledgement is lost with its session.
    pub lost_acknowledgement: u64,
    /// Another log stands in this one's place for a while.
    pub replaced: u64,
    /// The log is shorter for a while.
    pub cut_short: u64,
    /// The log is read from another server, which numbers rows otherwise.
    pub other_server: u64,
    /// The log is read from another server, which lacks the last transactions of a stream for a while.
    pub lacks: u64,
    /// The source can't be reached for a while.
    pub source_away: u64,
    /// The log holds something that can't be read, for a while.
    pub poison: u64,
    /// A divided transaction is told otherwise when it is read again.
    pub lies: u64,
    /// A read fails.
    pub read_fails: u64,
    /// A life ends by itself: drained, or current.
    pub drains: u64,
    /// The next life has other tables.
    pub reconfigures: u64,
    /// An older life's answer reaches a newer one.
    pub stale_answers: u64,
    /// A person has a table copied anew.
    pub resnapshots: u64,
}

/// Faults by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    /// How often.
    pub rates: Rates,
    /// Which ones.
    pub seed: u64,
    /// Of how many streams the log is.
    pub streams: usize,
    /// How many tables there are.
    pub tables: usize,
}

/// What an engine knows of an occasion that chance may ask for.
#[derive(Clone, Debug, Default)]
pub struct Moment<'a> {
    /// The process that it belongs to is beginning, and is not the first one.
    pub recovers: bool,
    /// Processes that are past their beginning and neither dead nor still.
    pub running: &'a [usize],
    /// Commands of which an answer is kept to be heard again.
    pub answered: &'a [Command],
    /// The tables that the next process would have.
    pub members: &'a [Tab],
}

impl Swarm {
    /// What happens on an occasion. An engine passes over what can't happen as things are: a table that is not paused is not
    /// resumed, a sink that is away does not go away.
    pub fn at(&self, when: When, moment: &Moment<'_>) -> Vec<Then> {
        let mut random = self.random(&when);
        match when {
            When::At(time) => self.at_a_time(time, moment, &mut random),
            When::Begins(process) => self.begins(process, moment, &mut random),
            When::Sends(command) => self.sends(command, &mut random),
            When::Lands(command) => {
                let slow = self.slow(&mut random);
                if command.what == What::Read {
                    return slow;
                }
                self.process_ends(command.process, moment, &mut random, slow)
            }
            // There are too many reads, and nothing changes by one.
            When::Hears(Command { what: What::Read, .. }) => vec![],
            When::Hears(command) => {
                let copy = self.hears_a_copy(moment, &mut random);
                self.process_ends(command.process, moment, &mut random, copy)
            }
        }
    }

    /// Chance at one occasion, and no other.
    fn random(&self, when: &When) -> Random {
        let (kind, command) = match when {
            When::At(time) => return Random::of(&[self.seed, 1, *time]),
            When::Begins(process) => return Random::of(&[self.seed, 2, *process as u64]),
            When::Sends(command) => (3, command),
            When::Lands(command) => (4, command),
            When::Hears(command) => (5, command),
        };
        let table = command.table.map_or(0, |t| t as u64 + 1);
        Random::of(&[self.seed, kind, command.process as u64, command.what as u64, table, u64::from(command.nth)])
    }

    fn at_a_time(&self, time: u64, moment: &Moment<'_>, random: &mut Random) -> Vec<Then> {
        // People and other hands come every tenth tick.
        if !time.is_multiple_of(10) {
            return vec![];
        }
        let rates = &self.rates;
        let mut happens = vec![];
        for process in moment.running {
            for table in 0..self.tables {
                let again = if random.chance(700) { Request::Resume(table) } else { Request::Skip(table) };
                let ask =
                    |random: &mut Random, permille, request| random.chance(permille).then_some(Then::Asked(*process, request));
                happens.extend(ask(random, rates.hands / 6, Request::Pause(table)));
                // Of these only one finds the table as it must be.
                let once = ask(random, 300, again).or_else(|| ask(random, rates.hands / 8, Request::Release(table)));
                happens.extend(once);
                // Who never does it draws nothing for it: what else happens stays as it is.
                let anew = rates.resnapshots > 0 && random.chance(rates.resnapshots);
                happens.extend(anew.then_some(Then::Asked(*process, Request::Resnapshot(table))));
            }
            happens.extend(random.chance(rates.drains).then_some(Then::Asked(*process, Request::Drain)));
        }
        let table = random.below(self.tables as u64) as Tab;
        let mut perhaps = |permille, then: &dyn Fn(&mut Random) -> Then| {
            if random.chance(permille) {
                happens.push(then(random));
            }
        };
        perhaps(rates.foreign, &|_| Then::ForeignCommit(table));
        perhaps(rates.rollback, &|random| Then::IsSetBack(table, random.range(1, 3)));
        perhaps(rates.away, &|random| Then::SinkIsAway(table, 10 * random.range(1, 20)));
        for stream in 0..self.streams {
            perhaps(rates.purge, &|random| Then::Forgets(stream, random.range(1, 7)));
        }
        perhaps(rates.source_away, &|random| Then::SourceIsAway(10 * random.range(1, 6)));
        perhaps(rates.poison, &|random| Then::Unreadable(10 * random.range(1, 6)));
        perhaps(rates.replaced, &|random| Then::AnotherLog(10 * random.range(1, 6)));
        perhaps(rates.cut_short, &|random| Then::CutShort { by: random.range(10, 100), lasts: 10 * random.range(1, 6) });
        perhaps(rates.other_server, &|_| Then::AnotherServer);
        if rates.lacks > 0 {
            let stream = random.below(self.streams as u64) as usize;
            let lacks = Then::Lacks { stream, last: random.range(1, 4), lasts: 10 * random.range(1, 6) };
            happens.extend(random.chance(rates.lacks).then_some(lacks));
        }
        happens
    }

    fn begins(&self, process: usize, moment: &Moment<'_>, random: &mut Random) -> Vec<Then> {
        let mut happens = vec![];
        if process > 0 {
            happens.push(Then::After(random.range(1, 40)));
        }
        let changes = if process == 0 && self.rates.reconfigures > 0 { 500 } else { self.rates.reconfigures };
        if random.chance(changes) {
            let table = random.below(self.tables as u64) as Tab;
            match moment.members.contains(&table) {
                // A pipeline has one table at least.
                true if moment.members.len() > 1 => happens.push(Then::Without(table)),
                true => {}
                false => happens.push(Then::With(table)),
            }
        }
        happens.extend(random.chance(self.rates.drains * 10).then_some(Then::UntilCurrent));
        happens
    }

    fn sends(&self, command: Command, random: &mut Random) -> Vec<Then> {
        let rates = &self.rates;
        let mut happens: Vec<Then> = vec![];
        if rates.slow > 2 && random.chance(100) {
            happens.push(Then::Takes(random.range(1, rates.slow)));
        }
        let own = match command.what {
            What::Acknowledge => random.chance(rates.lost_acknowledgement).then_some(Then::IsLost),
            What::ReadRecord | What::Recover | What::Resolve if random.chance(rates.read_fails) => Some(Then::Fails),
            What::Ranges | What::Chunk | What::Visibility | What::Rows if random.chance(rates.read_fails) => Some(Then::Fails),
            What::Open => random.chance(rates.lies).then_some(Then::Lies),
            What::Read => random.chance(rates.session).then_some(Then::LosesTheSession),
            What::Commit if rates.unknown > 0 && random.chance(40) => Some(Then::IsCalledAConflict),
            _ => None,
        };
        let unknown = command.what.can_be_unknown() && random.chance(rates.unknown);
        let fate = unknown.then(|| match random.below(3) {
            0 => Then::AnswerIsLost,
            1 => Then::IsLost,
            _ => Then::LandsLate(random.range(5, 80)),
        });
        happens.extend(fate.or(own));
        happens
    }

    fn slow(&self, random: &mut Random) -> Vec<Then> {
        let slow = self.rates.slow > 2 && random.chance(100);
        slow.then(|| Then::AnswerTakes(random.range(1, self.rates.slow))).into_iter().collect()
    }

    fn hears_a_copy(&self, moment: &Moment<'_>, random: &mut Random) -> Vec<Then> {
        let chance = random.chance(self.rates.stale_answers);
        let (Some(newest), false) = (moment.running.last(), moment.answered.is_empty() || !chance) else { return vec![] };
        vec![Then::HearsACopy(*newest, *random.pick(moment.answered))]
    }

    fn process_ends(&self, process: usize, moment: &Moment<'_>, random: &mut Random, mut happens: Vec<Then>) -> Vec<Then> {
        let often = if moment.recovers { self.rates.kill_in_recovery.max(1) } else { 1 };
        if random.chance(self.rates.kill * often) {
            happens.push(Then::Dies { process, with_its_mail: random.chance(500) });
        } else if random.chance(self.rates.pause * often) {
            happens.push(Then::StandsStill(process, random.range(20, 400)));
        }
        happens
    }
}
