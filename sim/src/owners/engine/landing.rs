//! What lands: commands of leads and of workers, and the answers to them.

use super::*;

impl World<'_> {
    pub(super) fn lead_lands(&mut self, p: usize, output: LeadOutput, fate: Option<Fate>) {
        // Of what a dead process sent half still lands.
        if !self.leads[p].alive && self.agenda.planned().is_multiple_of(2) {
            return;
        }
        let answer = match output {
            LeadOutput::Take => {
                self.incarnation = Incarnation(self.incarnation.0 + 1);
                Some(LeadInput::Took(self.incarnation))
            }
            LeadOutput::ReadRecord(asker) => Some(LeadInput::RecordRead { asker, newest: self.incarnation }),
            LeadOutput::Recover(table) => Some(LeadInput::Recovered(table, self.sinks[table].state, self.sinks[table].token)),
            LeadOutput::Read { id, from } => Some(LeadInput::Read { id, events: self.read(from) }),
            LeadOutput::Commit { id, table, commit } => {
                let outcome = self.commit(table, &commit);
                self.tell(|| format!("lead {p} lands {table} {commit:?}: {outcome:?}"));
                fate.is_none().then_some(LeadInput::Committed { id, table, outcome })
            }
            LeadOutput::Delete(table, attempts) => {
                attempts.into_iter().for_each(|attempt| self.delete(table, attempt));
                None
            }
            LeadOutput::Send(..) | LeadOutput::HangUp(_) | LeadOutput::Stop => None,
        };
        if let Some(answer) = answer {
            let quiet = matches!(answer, LeadInput::Read { .. } | LeadInput::RecordRead { asker: Asker::Router, .. });
            let at = self.now + self.takes();
            self.at(at, Happens::Lead(p, answer));
            if !quiet {
                self.perhaps_ends(p);
            }
        }
    }

    pub(super) fn read(&self, from: Cut) -> Vec<(Cut, Event)> {
        let (mut events, mut at) = (vec![], from);
        while events.len() < self.story.limits.read && at.upto < self.end() {
            match self.story.log[at.upto].changes.get(at.coordinate) {
                Some((table, change)) => {
                    events.push((at, Event::Change(*table, *change)));
                    at.coordinate += 1;
                }
                None => {
                    events.push((at, Event::Ended));
                    at = Cut { upto: at.upto + 1, coordinate: 0 };
                }
            }
        }
        events
    }

    pub(super) fn lands(&mut self, w: usize, doing: Doing) {
        if !self.workers[w].alive && self.agenda.planned().is_multiple_of(2) {
            return;
        }
        let answer = match doing {
            Doing::Load(at) => {
                let table = number(&at.index.table);
                let layout = Layout::named(&at.index.layout).unwrap_or(Layout::WHOLE);
                let outcome = if self.away[table] { Err("the sink is away".into()) } else { Ok(()) };
                if outcome.is_ok() {
                    let contents = self.sinks[table].index(number_of(&at.base), layout, at.index.slot);
                    self.workers[w].machine.loaded(at.index.clone(), contents);
                }
                OwnerInput::IndexLoaded { at, outcome }
            }
            Doing::Locate(attempt, at) => {
                let deletions = self.workers[w].machine.locate(attempt, &at);
                OwnerInput::Located { attempt, at, deletions }
            }
            Doing::Apply(index, overlay) => return self.workers[w].machine.apply(&index, overlay),
            Doing::Drop(index) => return self.workers[w].machine.drop_index(&index),
            Doing::Write { attempt, part, rows, fate } => {
                let table = number(&part.table);
                if self.away[table] {
                    let outcome = WriteOutcome::Transient { why: "the sink is away".into() };
                    return self.at(self.now + 8, Happens::Worker(w, OwnerInput::Wrote { attempt, outcome }));
                }
                if !self.workers[w].alive || attempt.incarnation < self.incarnation || matches!(fate, Some(Fate::Late(_))) {
                    self.mark("late-write");
                }
                self.written(table, attempt, part, rows);
                if fate.is_some() {
                    return;
                }
                OwnerInput::Wrote { attempt, outcome: WriteOutcome::Written }
            }
        };
        let at = self.now + self.takes();
        self.at(at, Happens::Worker(w, answer));
    }
}
