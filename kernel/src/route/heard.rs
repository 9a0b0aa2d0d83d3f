//! What workers tell a router: that they are there, that they are gone, and what they wrote.

use super::share::{Share, Staged, Step};
use super::{Deletions, FromOwner, NotWritten, Router, RouterOutput, ToOwner};
use crate::flow::Backoff;
use crate::id::{AttemptId, Incarnation, Part, Token, WorkerId, WorkerSession};
use crate::planted::planted;
use crate::session::Admission;

impl Router {
    pub(super) fn heard(&mut self, session: WorkerSession, message: FromOwner) {
        if let FromOwner::Hello { worker, served } = message {
            return self.hello(session, worker, served);
        }
        if self.sessions.heard(self.now, session).is_none() {
            return self.mark("message-of-an-old-session");
        }
        match message {
            FromOwner::Hello { .. } | FromOwner::Alive => {}
            FromOwner::Written { attempt, part, base, deletions } => self.written(attempt, &part, base, deletions),
            FromOwner::NotWritten { attempt, why } => self.not_written(attempt, why),
        }
    }

    pub(super) fn hello(&mut self, session: WorkerSession, worker: WorkerId, served: Incarnation) {
        let deaf = planted!(self.config, NeitherHelloNorTimer);
        match self.sessions.hello(self.now, session, worker, if deaf { served.min(self.incarnation) } else { served }) {
            Admission::Admitted { replaces } => {
                if let Some(session) = replaces {
                    self.mark("session-replaced");
                    self.push(RouterOutput::HangUp { session });
                }
                self.alone = None;
                self.push(RouterOutput::Send { session, message: ToOwner::Welcome { incarnation: self.incarnation } });
            }
            Admission::ServedNewer => {
                self.mark("told-of-a-newer-life");
                self.push(RouterOutput::HangUp { session });
                self.ask_for_validation();
            }
            Admission::Doubted => {
                self.mark("not-admitted-in-doubt");
                self.push(RouterOutput::HangUp { session });
            }
            Admission::Late => self.mark("hello-came-late"),
            Admission::SaidTwice => self.mark("hello-said-twice"),
        }
    }

    pub(super) fn session_lost(&mut self, session: WorkerSession) {
        if self.sessions.lost(session).is_none() {
            return;
        }
        self.mark("worker-session-lost");
        if self.sessions.workers().next().is_none() {
            self.alone = Some((self.now, self.now + self.config.worker_wait));
        }
    }

    pub(super) fn ask_for_validation(&mut self) {
        if !core::mem::replace(&mut self.validating, true) {
            self.push(RouterOutput::Validate);
        }
    }

    pub(super) fn validated(&mut self, newest: Option<Incarnation>) {
        self.validating = false;
        match newest {
            Some(by) if by > self.incarnation => {
                self.mark("router-superseded");
                self.outbox.clear();
                self.outbox.push_back(RouterOutput::Superseded { by });
                self.over = true;
            }
            Some(_) => {
                self.sessions.proven_newest();
                self.validate_at = self.config.validate_interval.map(|interval| self.now + interval);
            }
            // Asked again after a while, whoever it was that made us ask.
            None => self.validate_at = Some(self.now + self.config.retry.first),
        }
    }

    /// Only the present attempt counts, once.
    pub(super) fn written(&mut self, attempt: AttemptId, part: &Part, base: Option<Token>, deletions: Deletions) {
        let any = planted!(self.config, OldAttemptAccepted);
        let twice = planted!(self.config, PartReleasedTwice);
        if attempt.incarnation != self.incarnation && !any {
            return self.mark("written-of-an-older-life");
        }
        let present = if any { self.present_attempt_at(part) } else { Some(attempt) };
        let found = present.and_then(|present| self.tables.get_mut(&part.table).and_then(|t| t.piece_of(present)));
        let Some((piece, Step::Gathering, _)) = found else { return self.mark("written-of-an-older-attempt") };
        let asked = piece.given.as_ref().and_then(|g| g.asked.as_ref()).map(|(_, at)| at);
        if asked != Some(&base) && !any {
            // It was located at a snapshot that is not wanted any more, and is asked for again.
            return self.mark("written-at-an-older-base");
        }
        if piece.is_written_at(&base) {
            return self.mark("written-again");
        }
        let again = piece.written.is_some();
        piece.written = Some(Staged { attempt, base, deletions });
        (piece.failed, piece.spent) = (None, false);
        let rows = piece.release();
        let count: u64 = rows.iter().map(|r| u64::from(r.count())).sum();
        let count = if twice && again { piece.rows } else { count };
        self.kept = self.kept.saturating_sub(count);
        if !rows.is_empty() {
            self.push(RouterOutput::ReleaseRows { rows });
        }
    }

    /// The present attempt at the part of this name.
    pub(super) fn present_attempt_at(&self, part: &Part) -> Option<AttemptId> {
        let table = self.tables.get(&part.table)?;
        let of = |(share, _): (&Share, bool)| {
            (share.number == part.checkpoint).then(|| share.parts.get(&part.slot).map(|p| p.attempt)).flatten()
        };
        table.shares().find_map(of)
    }

    pub(super) fn not_written(&mut self, attempt: AttemptId, why: NotWritten) {
        let (now, retry) = (self.now, self.config.retry);
        let found = self.tables.iter_mut().find_map(|(name, t)| t.piece_of(attempt).map(|found| (name.clone(), found)));
        let Some((table, (piece, Step::Gathering, checkpoint))) = found else { return self.mark("written-of-an-older-attempt") };
        match why {
            NotWritten::Rejected { why } => {
                self.mark("part-rejected");
                self.push(RouterOutput::Rejected { table, checkpoint, why });
            }
            NotWritten::Transient { why } => {
                let failed = Backoff::after(piece.failed.take(), now, &retry);
                (piece.failed, piece.spent) = (Some(failed), true);
                piece.why.clone_from(&why);
                self.mark("part-failed");
                if failed.is_hopeless(now, &retry) {
                    self.push(RouterOutput::Unreachable { table, why });
                }
            }
        }
    }
}
