//! What follows from a router's state: who has which slot, what is sent to whom, and when a checkpoint is gathered. Level, not edge:
//! each step asks what is true now.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::share::{Given, Piece, Share, Step};
use super::{Deletions, IndexAt, IndexName, Router, RouterOutput, RouterWaiting, ToOwner};
use crate::id::{AttemptId, Part, Slot, TableName, Token, WorkerId, WorkerSession};
use crate::planted::planted;
use crate::time::{Deadline, Time};

/// What is to be done about a part now.
enum Next {
    /// Nothing: it is written, waits, or has nobody.
    Nothing,
    /// It must be located again, and who could do that is gone.
    Gone,
    /// Its worker, or the worker's session, is another one than it was given to.
    Give(WorkerId, WorkerSession),
    /// Its worker is sent what it has not been sent.
    Send(WorkerSession),
}

impl Router {
    pub(super) fn progress(&mut self) {
        if self.over {
            return;
        }
        self.end_silent_sessions();
        self.say_alive();
        self.assign_slots();
        self.move_what_takes_too_long();
        for name in self.tables.keys().cloned().collect::<Vec<_>>() {
            self.send_parts(&name);
            self.gather(&name);
        }
        self.validate_when_due();
        self.say_that_nobody_is_there();
    }

    fn end_silent_sessions(&mut self) {
        for session in self.sessions.silent(self.now, self.config.silence) {
            self.mark("session-silent");
            self.sessions.lost(session);
            self.push(RouterOutput::HangUp { session });
        }
        if self.sessions.workers().next().is_none() && self.alone.is_none() {
            self.alone = Some((self.now, self.now + self.config.worker_wait));
        }
    }

    fn say_alive(&mut self) {
        if self.alive_at > self.now {
            return;
        }
        self.alive_at = self.now + self.config.alive_interval;
        for session in self.sessions.sessions().collect::<Vec<_>>() {
            self.push(RouterOutput::Send { session, message: ToOwner::Alive });
        }
    }

    /// A slot whose worker is gone goes to the one with the fewest; where one has two more than another, and the table has nothing
    /// open, a slot moves.
    fn assign_slots(&mut self) {
        let workers: Vec<WorkerId> = self.sessions.workers().collect();
        if workers.is_empty() {
            return;
        }
        for name in self.tables.keys().cloned().collect::<Vec<_>>() {
            self.spread(&name, &workers);
        }
    }

    fn spread(&mut self, name: &TableName, workers: &[WorkerId]) {
        let mut loads: BTreeMap<WorkerId, usize> = workers.iter().map(|w| (*w, 0)).collect();
        for owner in self.tables.values().flat_map(|t| t.owners.values()) {
            loads.entry(*owner).and_modify(|load| *load += 1);
        }
        let Some(table) = self.tables.get_mut(name) else { return };
        let most = table.shares().map(|(share, _)| share.layout.slots()).max().unwrap_or(1);
        let mut moved = 0;
        for slot in (0..most).map(Slot) {
            if table.owners.get(&slot).is_some_and(|owner| loads.contains_key(owner)) {
                continue;
            }
            let Some((worker, load)) = loads.iter_mut().min_by_key(|(worker, load)| (**load, **worker)) else { return };
            *load += 1;
            moved += usize::from(table.owners.insert(slot, *worker).is_some());
        }
        if table.open.parts.is_empty() && table.closed.is_empty() {
            let least = loads.iter().min_by_key(|(worker, load)| (**load, **worker)).map(|(w, l)| (*w, *l));
            let fullest = loads.iter().max_by_key(|(_, load)| **load).map(|(w, l)| (*w, *l));
            if let (Some((least, few)), Some((fullest, many))) = (least, fullest)
                && few + 1 < many
                && let Some(owner) = table.owners.values_mut().find(|owner| **owner == fullest)
            {
                *owner = least;
                self.mark("slot-to-an-idle-worker");
            }
        }
        if moved > 0 {
            self.mark("slot-to-another-worker");
        }
    }

    /// The slot goes to the next worker, whoever that is.
    pub(super) fn move_slot(&mut self, name: &TableName, slot: Slot, mark: &'static str) {
        let workers: Vec<WorkerId> = self.sessions.workers().collect();
        let Some(owner) = self.tables.get_mut(name).and_then(|t| t.owners.get_mut(&slot)) else { return };
        let next = workers.iter().find(|w| **w > *owner).or(workers.first()).copied().filter(|next| next != owner);
        if let Some(next) = next {
            *owner = next;
            self.mark(mark);
        }
    }

    /// A part that was asked for too long ago is attempted at another worker, or anew where there is only one: its wait has an exit
    /// that no session has to end. One that failed waits for its retry, since another worker writes to the same sink.
    fn move_what_takes_too_long(&mut self) {
        if planted!(self.config, PartNeverMoves) {
            return;
        }
        let mut late = Vec::new();
        for (name, table) in &self.tables {
            for (number, (share, closed)) in table.shares().enumerate().filter(|(_, (share, _))| share.step == Step::Gathering) {
                let Some(base) = share.asks(closed, table.locates) else { continue };
                for (slot, piece) in share.parts.iter().filter(|(_, p)| p.written.is_none()) {
                    let here = piece.given.as_ref().map(|g| g.worker) == table.owners.get(slot).copied();
                    if here && self.waited_until(piece, &base).is_some_and(|at| at <= self.now) {
                        late.push((name.clone(), number, *slot));
                    }
                }
            }
        }
        let several = self.sessions.workers().nth(1).is_some();
        for (name, number, slot) in late {
            match self.piece_at(&name, number, slot) {
                Some(piece) if !several => {
                    piece.spent = true;
                    self.mark("part-waited-too-long-alone");
                }
                _ => self.move_slot(&name, slot, "part-waited-too-long"),
            }
        }
    }

    /// Until when a part that was asked for is waited for.
    fn waited_until(&self, piece: &Piece, base: &Option<Token>) -> Option<Time> {
        let waits = !piece.is_written_at(base) && !piece.spent;
        piece.asked_at(base).filter(|_| waits).map(|at| at + self.config.part_wait)
    }

    /// What this session of this worker has not been sent is sent.
    fn send_parts(&mut self, name: &TableName) {
        let Some(table) = self.tables.get(name) else { return };
        let mut doing = Vec::new();
        for (number, (share, closed)) in table.shares().enumerate() {
            // Once all are written, and the more so once their commit is sent, nothing about them changes (rule O5).
            if share.step != Step::Gathering && !planted!(self.config, SentPartAttemptedAgain) {
                continue;
            }
            let base = share.asks(closed, table.locates);
            for (slot, piece) in &share.parts {
                doing.push((number, *slot, base.clone(), self.next_for(piece, table.owners.get(slot).copied(), base.as_ref())));
            }
        }
        for (number, slot, base, next) in doing {
            match next {
                Next::Nothing => {}
                Next::Gone => {
                    self.mark("located-again-but-owner-gone");
                    return self.push(RouterOutput::SetBack { table: name.clone() });
                }
                Next::Give(worker, session) => {
                    self.give(name, number, slot, worker, session);
                    self.send_piece(name, number, slot, session, base);
                }
                Next::Send(session) => self.send_piece(name, number, slot, session, base),
            }
        }
    }

    fn next_for(&self, piece: &Piece, owner: Option<WorkerId>, base: Option<&Option<Token>>) -> Next {
        let again = planted!(self.config, SentPartAttemptedAgain);
        let there = |g: &Given| self.sessions.session_of(g.worker) == Some(g.session);
        if let (Some(_), Some(base)) = (&piece.written, base) {
            let present = piece.given.as_ref().filter(|g| there(g));
            let late = self.waited_until(piece, base).is_some_and(|at| at <= self.now);
            return match present {
                None if again => owner.and_then(|w| Some(Next::Give(w, self.sessions.session_of(w)?))).unwrap_or(Next::Nothing),
                _ if piece.is_written_at(base) => Next::Nothing,
                // Its rows are gone, so nobody else can locate it.
                None => Next::Gone,
                Some(_) if late => Next::Gone,
                Some(_) if piece.retry_at().is_some_and(|at| at > self.now) => Next::Nothing,
                Some(given) => Next::Send(given.session),
            };
        }
        let present = owner.and_then(|worker| Some((worker, self.sessions.session_of(worker)?)));
        let same = |g: &Given| Some((g.worker, g.session)) == present;
        match (&piece.given, present) {
            (_, None) => Next::Nothing,
            (Some(given), Some((_, session))) if same(given) && !piece.spent => Next::Send(session),
            (Some(given), Some(_)) if same(given) && piece.retry_at().is_some_and(|at| at > self.now) => Next::Nothing,
            (_, Some((worker, session))) => Next::Give(worker, session),
        }
    }

    fn piece_at(&mut self, name: &TableName, number: usize, slot: Slot) -> Option<&mut Piece> {
        let table = self.tables.get_mut(name)?;
        let closed = table.closed.len();
        let share = if number < closed { table.closed.get_mut(number) } else { Some(&mut table.open) };
        share?.parts.get_mut(&slot)
    }

    /// The part is attempted at this worker, in this session: from its first row.
    fn give(&mut self, name: &TableName, number: usize, slot: Slot, worker: WorkerId, session: WorkerSession) {
        let keeps = planted!(self.config, MoveKeepsSent);
        let again = self.piece_at(name, number, slot).is_some_and(|p| !p.fresh);
        let attempt = again.then(|| self.next_attempt());
        let Some(piece) = self.piece_at(name, number, slot) else { return };
        let over = again.then(|| piece.clone());
        let kept = piece.given.as_ref().filter(|g| keeps && g.worker != worker).map_or(0, |g| g.sent);
        piece.attempt = attempt.unwrap_or(piece.attempt);
        // How often it failed in a row is kept until it succeeds.
        (piece.fresh, piece.spent) = (false, false);
        piece.given = Some(Given { worker, session, sent: kept, asked: None });
        let Some(over) = over else { return };
        self.mark("part-attempted-again");
        #[cfg(feature = "planted-bugs")]
        if let Some(table) = self.tables.get_mut(name) {
            let closed = table.closed.len();
            let share = if number < closed { table.closed.get_mut(number) } else { Some(&mut table.open) };
            share.into_iter().for_each(|share| share.dead.push(over.attempt));
        }
        if !planted!(self.config, AbandonNotSaid) {
            self.abandon(&over);
        }
    }

    fn send_piece(&mut self, name: &TableName, number: usize, slot: Slot, session: WorkerSession, at: Option<Option<Token>>) {
        let now = self.now;
        let Some(table) = self.tables.get_mut(name) else { return };
        let closed = table.closed.len();
        let identity = table.identity.clone();
        let share = if number < closed { table.closed.get_mut(number) } else { Some(&mut table.open) };
        let Some(Share { number, layout, parts, .. }) = share else { return };
        let Some(piece) = parts.get_mut(&slot) else { return };
        let (attempt, batches, rows) = (piece.attempt, piece.batches, piece.rows);
        let failed = core::mem::take(&mut piece.spent);
        let Some(given) = &mut piece.given else { return };
        if failed {
            // It is written, and only to be located again: what is staged stays, and so does its attempt.
            given.asked = None;
        }
        let part = Part { table: name.clone(), checkpoint: *number, slot };
        let mut messages = Vec::new();
        for (index, run) in (0..).zip(&piece.runs).skip(given.sent as usize) {
            messages.push(ToOwner::Rows { attempt, part: part.clone(), index, run: run.clone() });
            given.sent = index + 1;
        }
        if let Some(base) = at
            && given.asked.as_ref().map(|(_, asked)| asked) != Some(&base)
        {
            given.asked = Some((now, base.clone()));
            let layout = layout.name();
            let at = base.map(|base| IndexAt { index: IndexName { table: name.clone(), identity, layout, slot }, base });
            messages.push(ToOwner::Write { attempt, part, batches, rows, at });
        }
        for message in messages {
            self.push(RouterOutput::Send { session, message });
        }
    }

    /// Once every part is written, and located at the token of the commit, the commit can go.
    fn gather(&mut self, name: &TableName) {
        if planted!(self.config, NotLocatedAgain) || planted!(self.config, OnePartLocatedAgain) {
            self.take_for_located(name);
        }
        let one = planted!(self.config, CommitWithoutOwner);
        let vectors = planted!(self.config, OneVectorPerOwner);
        let Some(table) = self.tables.get_mut(name) else { return };
        let locates = table.locates;
        let Some(share) = table.closed.front_mut() else { return };
        let (Some(base), Step::Gathering) = (share.base.clone(), &share.step) else { return };
        let at = locates.then(|| base.clone());
        let written = share.parts.values().filter(|p| p.is_written_at(&at)).count();
        if written < share.parts.len() && !(one && written > 0) {
            return;
        }
        let mut deletions = Deletions::default();
        let found = share.parts.values().filter_map(|p| p.written.as_ref()).map(|w| &w.deletions);
        let mut staged: Vec<AttemptId> = share.parts.values().filter(|p| p.written.is_some()).map(|p| p.attempt).collect();
        for part in found {
            join(&mut deletions, part, vectors);
        }
        #[cfg(feature = "planted-bugs")]
        if planted!(self.config, DeadAttemptsPublished) {
            staged.extend(&share.dead);
        }
        staged.sort_unstable();
        share.step = Step::Gathered { named: Self::named(share) };
        let checkpoint = share.number;
        self.push(RouterOutput::Gathered { table: name.clone(), checkpoint, base, staged, deletions });
    }

    /// The wrong way: what was located somewhere counts as located here.
    fn take_for_located(&mut self, name: &TableName) {
        let all = planted!(self.config, NotLocatedAgain);
        let Some(table) = self.tables.get_mut(name).filter(|t| t.locates) else { return };
        let Some(share) = table.closed.front_mut() else { return };
        let Some(base) = share.base.clone() else { return };
        let mut first = true;
        for piece in share.parts.values_mut() {
            let here = core::mem::replace(&mut first, false) && !all;
            if let Some(written) = piece.written.as_mut().filter(|_| !here) {
                written.base = Some(base.clone());
            }
        }
    }

    fn validate_when_due(&mut self) {
        if self.validate_at.is_some_and(|at| at <= self.now) && !planted!(self.config, NeitherHelloNorTimer) {
            self.validate_at = None;
            self.ask_for_validation();
        }
    }

    fn say_that_nobody_is_there(&mut self) {
        let Some((since, _)) = self.alone.filter(|(_, at)| *at <= self.now) else { return };
        self.alone = Some((since, self.now + self.config.worker_wait));
        self.mark("no-worker");
        self.push(RouterOutput::NoWorker { since: since.0 });
    }

    pub(super) fn deadlines(&self) -> Vec<Deadline> {
        if self.over {
            return Vec::new();
        }
        let mut deadlines = Vec::new();
        let mut due = |at: Option<Time>, why| deadlines.extend(at.map(|at| Deadline { at, why }));
        due(self.validate_at.filter(|_| !planted!(self.config, NeitherHelloNorTimer)), "ask whether a newer life has begun");
        due(self.sessions.next_silent(self.config.silence), "end a silent session");
        due(self.sessions.sessions().next().map(|_| self.alive_at), "say that it is there");
        due(self.alone.map(|(_, at)| at), "say that there is no worker");
        let moving = !planted!(self.config, PartNeverMoves);
        for table in self.tables.values() {
            for (share, closed) in table.shares().filter(|(share, _)| share.step == Step::Gathering) {
                let Some(base) = share.asks(closed, table.locates) else { continue };
                for (slot, piece) in &share.parts {
                    due(piece.retry_at().filter(|at| *at > self.now), "attempt a failed part again");
                    let here = piece.given.as_ref().map(|g| g.worker) == table.owners.get(slot).copied();
                    let moves = (here && moving) || piece.written.is_some();
                    due(self.waited_until(piece, &base).filter(|_| moves), "attempt a part elsewhere");
                }
            }
        }
        deadlines
    }

    /// What it waits for, and what ends each wait.
    pub fn waiting(&self) -> Vec<RouterWaiting> {
        let mut waiting = Vec::new();
        if self.alone.is_some() && self.tables.values().any(|t| t.shares().any(|(share, _)| !share.parts.is_empty())) {
            waiting.push(RouterWaiting { what: "rows are there and no worker".into(), until: "a worker comes" });
        }
        for (name, table) in &self.tables {
            for (share, closed) in table.shares() {
                let Some(base) = share.asks(closed, table.locates) else { continue };
                for (slot, piece) in share.parts.iter().filter(|(_, p)| !p.is_written_at(&base)) {
                    let part = format!("checkpoint {} of {name}, slot {}, attempt {}", share.number.0, slot.0, piece.attempt);
                    let (what, until) = match (piece.retry_at(), &piece.given) {
                        (Some(_), _) => (format!("{part}: {}", piece.why), "it is attempted again"),
                        (None, Some(given)) if self.sessions.session_of(given.worker) == Some(given.session) => {
                            (format!("{part}, at worker {}", given.worker.0), "it is written, or its wait is over")
                        }
                        (None, _) => (part, "a worker comes"),
                    };
                    waiting.push(RouterWaiting { what, until });
                }
                if share.is_sent() {
                    let what = format!("the commit of checkpoint {} of {name}", share.number.0);
                    waiting.push(RouterWaiting { what, until: "its outcome is known" });
                }
            }
        }
        waiting
    }
}

#[cfg(feature = "planted-bugs")]
fn join(all: &mut Deletions, part: &Deletions, replaces: bool) {
    if replaces { all.replace(part) } else { all.join(part) }
}

#[cfg(not(feature = "planted-bugs"))]
fn join(all: &mut Deletions, part: &Deletions, _: bool) {
    all.join(part);
}
