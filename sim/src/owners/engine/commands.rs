//! What a lead and a worker command: when it is carried out, in which lane, and what may go wrong on the way.

use super::*;

impl World<'_> {
    pub(super) fn command(&mut self, p: usize, output: LeadOutput) {
        match output {
            LeadOutput::Stop => self.end_lead(p),
            LeadOutput::HangUp(session) => self.break_link(Links::of(session), 0),
            LeadOutput::Send(session, message, rows) => {
                let (link, takes, sent) = (Links::of(session), self.takes(), self.now);
                let at = self.links.arrives(link, Way::ToWorker, self.now, takes);
                self.at(at, Happens::ToWorker { link, sent, message, rows });
            }
            LeadOutput::Commit { id, table, commit } => self.command_commit(p, id, table, commit),
            LeadOutput::Take
            | LeadOutput::ReadRecord(_)
            | LeadOutput::Recover(_)
            | LeadOutput::Read { .. }
            | LeadOutput::Delete(..) => {
                let at = self.now + self.takes();
                self.at(at, Happens::LeadLands(p, output, None));
            }
        }
    }

    fn command_commit(&mut self, p: usize, id: u64, table: Tab, commit: Box<Commit>) {
        let drawn = if self.chance(self.story.rates.commits) { Some(self.commit_fate()) } else { None };
        let fate = self.next_commit.remove(&table).or(drawn).filter(|_| !self.healed);
        let mut at = self.now + self.takes();
        let lane = self.lanes.entry((p, table)).or_insert(0);
        at = at.max(*lane + 1);
        *lane = at;
        if fate == Some(Fate::BehindCompaction) {
            self.at(at, Happens::Fault(Fault::Compacts(table)));
            return self.at(at, Happens::LeadLands(p, LeadOutput::Commit { id, table, commit }, None));
        }
        if fate.is_some() {
            self.sinks[table].unknown.extend(&commit.staged);
            self.mark("commit-of-unknown-fate");
        }
        let unknown = LeadInput::Committed { id, table, outcome: Outcome::Unknown };
        match fate {
            None | Some(Fate::BehindCompaction) => {}
            Some(Fate::AnswerLost) => self.at(at + 2, Happens::Lead(p, unknown)),
            Some(Fate::BeforeCompaction) => {
                self.at(at + 1, Happens::Fault(Fault::Compacts(table)));
                self.at(at + 2, Happens::Lead(p, unknown));
            }
            Some(Fate::LinksBreak) => {
                self.break_links(p);
                self.at(at + 2, Happens::Lead(p, unknown));
            }
            Some(Fate::GivenUp) => {
                self.at(at + 2, Happens::Lead(p, unknown));
                self.at(at + 3, Happens::Lead(p, LeadInput::GiveUp(table)));
                at += 20;
            }
            Some(Fate::Lost | Fate::Hangs) => return self.at(at + 2, Happens::Lead(p, unknown)),
            Some(Fate::Late(late)) => {
                self.at(at + 2, Happens::Lead(p, unknown));
                at += late;
            }
        }
        self.at(at, Happens::LeadLands(p, LeadOutput::Commit { id, table, commit }, fate));
    }

    fn commit_fate(&mut self) -> Fate {
        match self.random.below(8) {
            0 => Fate::BehindCompaction,
            1 => Fate::BeforeCompaction,
            2 => Fate::GivenUp,
            3 => Fate::LinksBreak,
            _ => self.fate(80),
        }
    }

    pub(super) fn fate(&mut self, late: u64) -> Fate {
        match self.random.below(4) {
            0 => Fate::AnswerLost,
            1 => Fate::Lost,
            2 => Fate::Hangs,
            _ => Fate::Late(self.random.range(5, late)),
        }
    }

    pub(super) fn worker_command(&mut self, w: usize, output: OwnerOutput) {
        match output {
            OwnerOutput::Send { session, message } => {
                let (link, takes, sent) = (Links::of(session), self.takes(), self.now);
                let at = self.links.arrives(link, Way::ToLead, self.now, takes);
                self.at(at, Happens::ToLead { link, sent, message });
            }
            OwnerOutput::HangUp { session } => self.break_link(Links::of(session), 0),
            OwnerOutput::LoadIndex { at, .. } => self.in_lane(w, at.index.clone(), Doing::Load(at)),
            OwnerOutput::Locate { attempt, at } => self.in_lane(w, at.index.clone(), Doing::Locate(attempt, at)),
            OwnerOutput::Apply { attempt, index } => {
                let overlay = self.workers[w].machine.overlay(attempt);
                self.in_lane(w, index.clone(), Doing::Apply(index, overlay));
            }
            OwnerOutput::DropIndex { index } => self.in_lane(w, index.clone(), Doing::Drop(index)),
            OwnerOutput::Write { attempt, part, runs } => self.command_write(w, attempt, part, &runs),
            OwnerOutput::Forget { attempt } => self.workers[w].machine.forget(attempt),
            OwnerOutput::DeleteStaged { attempt, table } => self.delete(number(&table), attempt),
        }
    }

    /// The commands of one index are carried out one after the other.
    fn in_lane(&mut self, w: usize, index: kernel::route::IndexName, doing: Doing) {
        let takes = self.takes();
        let lane = self.workers[w].machine.lanes.entry(index).or_insert(0);
        *lane = (self.now + takes).max(*lane);
        let at = *lane;
        self.at(at, Happens::Lands(w, doing));
    }

    fn command_write(&mut self, w: usize, attempt: AttemptId, part: Part, runs: &[Run]) {
        let table = number(&part.table);
        let rows = self.workers[w].machine.netted(attempt, self.story.tables[table], runs);
        let drawn = if self.chance(self.story.rates.writes) { Some(self.fate(150)) } else { None };
        let fate = self.next_write.remove(&table).or(drawn).filter(|_| !self.healed);
        let mut at = self.now + self.takes();
        if fate.is_some() {
            self.mark("write-of-unknown-fate");
        }
        let failed = OwnerInput::Wrote { attempt, outcome: WriteOutcome::Transient { why: "no answer".into() } };
        match fate {
            Some(Fate::BehindCompaction | Fate::BeforeCompaction | Fate::GivenUp | Fate::LinksBreak) | None => {}
            Some(Fate::Hangs) => {}
            Some(Fate::AnswerLost) => self.at(at + 2, Happens::Worker(w, failed)),
            Some(Fate::Lost) => return self.at(at + 2, Happens::Worker(w, failed)),
            Some(Fate::Late(late)) => {
                self.at(at + 2, Happens::Worker(w, failed));
                at += late;
            }
        }
        self.at(at, Happens::Lands(w, Doing::Write { attempt, part, rows, fate }));
    }
}
