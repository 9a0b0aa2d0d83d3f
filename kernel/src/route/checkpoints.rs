//! What a table's checkpoints tell a router: rows, closings, turns, and what became of commits.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::vec::Vec;

use super::share::{Piece, Share, Step};
use super::{CommitAnswer, Layout, Router, RouterOutput, Run, ToOwner};
use crate::id::{AttemptId, CheckpointNumber, Slot, TableName, Token, WorkerSession};
use crate::planted::planted;

impl Router {
    pub(super) fn taken(&mut self, name: &TableName, rows: Vec<(Slot, Run)>) {
        let Some(slots) = self.tables.get(name).map(|t| t.open.layout.slots()) else {
            return self.violate("everything-owed-is-tracked", format!("rows of {name}, which is not open"));
        };
        if let Some((slot, _)) = rows.iter().find(|(slot, _)| slot.0 >= slots) {
            return self.violate("one-owner-per-key", format!("{name}: rows of slot {} of {slots}", slot.0));
        }
        for (slot, run) in rows {
            let count = u64::from(run.rows.count());
            let reuse = planted!(self.config, AttemptReusedAfterTruncate);
            let missing = self.tables.get(name).is_some_and(|t| !t.open.parts.contains_key(&slot));
            let fresh = missing.then(|| self.next_attempt());
            let incarnation = self.incarnation;
            let Some(table) = self.tables.get_mut(name) else { return };
            let number = table.open.number.0;
            let again = AttemptId { incarnation, number: number << 10 | u64::from(slot.0) };
            let attempt = fresh.map(|attempt| if reuse { again } else { attempt }).unwrap_or(again);
            let piece = table.open.parts.entry(slot).or_insert_with(|| Piece::new(attempt));
            piece.batches += 1;
            piece.rows += count;
            piece.runs.push(run);
            self.kept += count;
        }
    }

    /// The parts of before are gone. What comes for their slots now are other parts, with attempts of their own.
    pub(super) fn truncated(&mut self, name: &TableName) {
        let said = !planted!(self.config, AttemptReusedAfterTruncate);
        let Some(table) = self.tables.get_mut(name) else { return };
        table.open.truncated = true;
        let parts = core::mem::take(&mut table.open.parts);
        if parts.values().any(|p| p.given.is_some()) {
            self.mark("truncate-of-sent-rows");
        }
        self.give_back(parts.into_values().collect(), said);
    }

    pub(super) fn closed(&mut self, name: &TableName, checkpoint: CheckpointNumber) {
        let Some(table) = self.tables.get_mut(name) else { return };
        let changed = table.wanted.take();
        let layout = changed.unwrap_or(table.layout);
        table.layout = layout;
        let next = Share::new(CheckpointNumber(checkpoint.0 + 1), layout);
        let mut share = core::mem::replace(&mut table.open, next);
        share.number = checkpoint;
        if let Some(last) = table.closed.back().filter(|last| last.number >= checkpoint) {
            let dump = format!("{name}: checkpoint {} closed behind {}", checkpoint.0, last.number.0);
            return self.violate("commit-in-order-per-table", dump);
        }
        table.closed.push_back(share);
        if changed.is_some() {
            self.layout_changed(name);
        }
    }

    pub(super) fn turn_came(&mut self, name: &TableName, checkpoint: CheckpointNumber, base: Token) {
        let Some(table) = self.tables.get_mut(name) else { return };
        match table.closed.front_mut() {
            Some(share) if share.number == checkpoint && share.step == Step::Gathering && share.base.is_none() => {
                share.base = Some(base);
            }
            other => {
                let oldest = other.map(|share| share.number.0);
                let dump = format!("{name}: the turn of checkpoint {} came, the oldest is {oldest:?}", checkpoint.0);
                self.violate("commit-in-order-per-table", dump);
            }
        }
    }

    pub(super) fn commit_sent(&mut self, name: &TableName) {
        let share = self.tables.get_mut(name).and_then(|t| t.closed.front_mut());
        match share.map(|share| (&mut share.step, share.number)) {
            Some((step, _)) if matches!(step, Step::Gathered { .. }) => {
                if let Step::Gathered { named } = core::mem::replace(step, Step::Gathering) {
                    *step = Step::Sent { named };
                }
            }
            // The same commit again, which is how an unknown one is found out.
            Some((Step::Sent { .. }, _)) => {}
            Some((Step::Gathering | Step::Gathered { .. }, number)) => {
                self.violate("one-attempt-counts", format!("{name}: a commit of checkpoint {} before it was gathered", number.0));
            }
            None => self.violate("one-attempt-counts", format!("{name}: a commit, and nothing is closed")),
        }
    }

    pub(super) fn commit_answered(&mut self, name: &TableName, answer: CommitAnswer) {
        let head = planted!(self.config, IndexBoundToHead);
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(share) = table.closed.front_mut().filter(|s| s.is_sent()) else {
            return self.violate("one-attempt-counts", format!("{name}: {answer:?}, and no commit was sent"));
        };
        match answer {
            CommitAnswer::Unknown => {
                share.ever_unknown = true;
                self.mark("routed-commit-unknown");
            }
            CommitAnswer::Foreign { base } => {
                share.step = Step::Gathering;
                share.base = Some(base);
                self.mark("located-again");
            }
            CommitAnswer::Durable { token, made_by_it } => {
                let Some(share) = table.closed.pop_front() else { return };
                self.durable(name, share, (made_by_it || head).then_some(token));
            }
            CommitAnswer::SetBack => {
                share.step = Step::Gathering;
                self.given_up(name);
            }
        }
    }

    /// Every worker is told, since any of them may keep an index of the table.
    pub(super) fn durable(&mut self, name: &TableName, share: Share, made: Option<Token>) {
        let Some(table) = self.tables.get(name) else { return };
        let identity = table.identity.clone();
        let published: BTreeMap<Slot, AttemptId> = share.parts.iter().map(|(slot, p)| (*slot, p.attempt)).collect();
        if made.is_none() {
            self.mark("durable-in-history");
        }
        let message = ToOwner::Committed {
            table: name.clone(),
            identity,
            layout: share.layout.name(),
            from: share.base.unwrap_or_else(|| Token::from("")),
            to: made.filter(|_| !share.truncated),
            published,
        };
        let sessions: Vec<WorkerSession> = self.sessions.sessions().collect();
        for session in sessions {
            self.push(RouterOutput::Send { session, message: message.clone() });
        }
    }

    pub(super) fn given_up(&mut self, name: &TableName) {
        let all = planted!(self.config, GivenUpWhileUnknown);
        let Some(table) = self.tables.get_mut(name) else { return };
        let next = table.open.number;
        let layout = table.wanted.take().unwrap_or(table.layout);
        let changed = layout != table.layout;
        table.layout = layout;
        let open = core::mem::replace(&mut table.open, Share::new(next, layout));
        let mut kept = VecDeque::new();
        let (mut gone, mut staged) = (Vec::new(), Vec::new());
        for share in core::mem::take(&mut table.closed).into_iter().chain([open]) {
            if share.is_sent() && !all {
                kept.push_back(share);
                continue;
            }
            if !share.ever_unknown || all {
                let written = share.parts.values().filter_map(|p| p.written.as_ref());
                staged.extend(written.map(|w| w.attempt));
            }
            gone.extend(share.parts.into_values());
        }
        let spared = !kept.is_empty();
        table.closed = kept;
        if spared {
            self.mark("sent-commit-spared");
        }
        self.give_back(gone, true);
        if !staged.is_empty() {
            self.mark("staged-deleted");
            self.push(RouterOutput::DeleteStaged { table: name.clone(), attempts: staged });
        }
        if changed {
            self.layout_changed(name);
        }
    }

    /// Parts are given up: their rows are released, and their workers are told by name, in the sessions that they are in now.
    pub(super) fn give_back(&mut self, parts: Vec<Piece>, said: bool) {
        let said = said && !planted!(self.config, AbandonNotSaid);
        let mut rows = Vec::new();
        for mut piece in parts {
            if said {
                self.abandon(&piece);
            }
            let released = piece.release();
            self.kept = self.kept.saturating_sub(released.iter().map(|r| u64::from(r.count())).sum());
            rows.extend(released);
        }
        if !rows.is_empty() {
            self.push(RouterOutput::ReleaseRows { rows });
        }
    }

    pub(super) fn abandon(&mut self, piece: &Piece) {
        let Some(given) = &piece.given else { return };
        if let Some(session) = self.sessions.session_of(given.worker) {
            self.push(RouterOutput::Send { session, message: ToOwner::Abandon { attempt: piece.attempt } });
        }
    }

    pub(super) fn layout_wanted(&mut self, name: &TableName, layout: Layout) {
        let inside = planted!(self.config, LayoutFlipsInside);
        let Some(table) = self.tables.get_mut(name) else { return };
        if layout == table.layout {
            table.wanted = None;
            return;
        }
        if inside || (table.open.parts.is_empty() && !table.open.truncated) {
            table.layout = layout;
            table.open.layout = layout;
            return self.layout_changed(name);
        }
        table.wanted = Some(layout);
    }

    pub(super) fn layout_changed(&mut self, name: &TableName) {
        self.mark("layout-changed");
        // A part of a checkpoint before may be of a slot that is no more: it keeps its worker until it is written.
        let Some(table) = self.tables.get_mut(name) else { return };
        let most = table.shares().map(|(share, _)| share.layout.slots()).max().unwrap_or(1);
        table.owners.retain(|slot, _| slot.0 < most);
    }

    /// The attempts that a commit of this checkpoint names.
    pub(super) fn named(share: &Share) -> BTreeSet<AttemptId> {
        share.parts.values().map(|p| p.attempt).collect()
    }
}
