//! From a closed checkpoint to a durable one, and what each outcome means (rule C5).

use super::*;

impl Lead {
    pub(super) fn begin_flight(&mut self, n: Tab) {
        let incarnation = self.incarnation;
        let table = &mut self.tables[n];
        let Some(closed) = table.closed.pop_front() else { return };
        table.commits += 1;
        let begun = closed.begun.unwrap_or_else(|| table.state.map_or(Version::default(), |s| s.begun));
        let commit = CommitId { incarnation, number: table.commits };
        let new = State { cut: closed.cut, incarnation, commit, sequence: closed.sequence, begun };
        let (truncate, base) = (closed.begun.is_some(), token(table.token));
        table.flight = Some(Flight { new, truncate, claim: false, commit: None, asked: None, retry: None, foreign: None });
        self.route(RouterInput::TurnCame { table: name(n), checkpoint: closed.number, base });
        self.act();
    }

    pub(super) fn send_commit(&mut self, n: Tab) {
        let id = self.id();
        let Some(flight) = &mut self.tables[n].flight else { return };
        let Some(commit) = flight.commit.clone() else { return };
        (flight.asked, flight.retry) = (Some(id), None);
        if !flight.claim {
            self.route(RouterInput::CommitSent { table: name(n) });
        }
        self.out.push_back(LeadOutput::Commit { id, table: n, commit: Box::new(commit) });
    }

    pub(super) fn committed(&mut self, id: u64, n: Tab, outcome: Outcome) {
        let (now, incarnation) = (self.now, self.incarnation);
        let table = &mut self.tables[n];
        let expected = table.state.map(|s| (s.incarnation, s.commit));
        let Some(flight) = table.flight.as_mut().filter(|f| f.asked == Some(id)) else { return };
        flight.asked = None;
        let ours = (flight.new.incarnation, flight.new.commit);
        match outcome {
            Outcome::Durable { token } => self.durable(n, token, true),
            Outcome::Unknown => {
                flight.retry = Some(now + 5);
                let claim = flight.claim;
                if !claim {
                    self.answer(n, CommitAnswer::Unknown);
                }
            }
            Outcome::Conflict { found: Some(found), .. } if found.incarnation > incarnation => self.stop(),
            Outcome::Conflict { found: Some(found), token } if (found.incarnation, found.commit) == ours => {
                self.durable(n, token, false);
            }
            Outcome::Conflict { found, token } if found.map(|s| (s.incarnation, s.commit)) == expected => {
                flight.foreign = Some(token);
                self.out.push_back(LeadOutput::ReadRecord(Asker::Flight(n)));
            }
            Outcome::Conflict { found, token } => {
                (table.state, table.token) = (found, token);
                table.sequence = table.sequence.max(found.map_or(0, |s| s.sequence));
                self.answer(n, CommitAnswer::SetBack);
                self.give_up(n, None);
            }
        }
    }

    pub(super) fn answer(&mut self, n: Tab, answer: CommitAnswer) {
        self.route(RouterInput::CommitAnswered { table: name(n), answer });
        self.act();
    }

    pub(super) fn validated(&mut self, n: Tab, newest: Incarnation) {
        if newest > self.incarnation {
            return self.stop();
        }
        let table = &mut self.tables[n];
        let Some(flight) = &mut table.flight else { return };
        let Some(at) = flight.foreign.take() else { return };
        table.token = at;
        flight.commit = None;
        self.answer(n, CommitAnswer::Foreign { base: token(at) });
    }

    pub(super) fn durable(&mut self, n: Tab, at: u64, made_by_it: bool) {
        let table = &mut self.tables[n];
        let Some(flight) = table.flight.take() else { return };
        (table.state, table.token, table.claimed, table.moved) = (Some(flight.new), at, true, self.now);
        if !flight.claim {
            self.answer(n, CommitAnswer::Durable { token: token(at), made_by_it });
        }
    }

    /// All that is not durable is given up and read again, but for a commit whose outcome is not known.
    pub(super) fn give_up(&mut self, n: Tab, blocked: Option<u64>) {
        self.route(RouterInput::GivenUp { table: name(n) });
        let sent = self.router.as_ref().is_some_and(|r| r.is_sent(&name(n)));
        let table = &mut self.tables[n];
        table.closed.clear();
        (table.rows, table.begun, table.moved) = (0, None, self.now);
        if !sent && table.flight.as_ref().is_some_and(|f| !f.claim) {
            table.flight = None;
        }
        table.taken = match (&table.flight, table.state) {
            (Some(flight), _) => flight.new.cut,
            (None, Some(state)) => state.cut,
            (None, None) => Cut::default(),
        };
        table.blocked = blocked;
        if self.tables.iter().all(|t| t.recovered) {
            self.go_back();
        }
        self.act();
    }
}
