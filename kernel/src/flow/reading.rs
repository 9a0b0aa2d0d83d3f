//! The one reader: when it reads, what comes of what it read, and when it goes back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Backoff;
use crate::checkpoint::{Change, Table};
use crate::coordinator::{Coordinator, HeldBatch, LogEvent, Output, Restart, Stage, StopReason};
use crate::id::{CommandId, StreamName};
use crate::outcome::LogFailure;
use crate::planted::planted;
use crate::position::Position;
use crate::state::Phase;

impl Coordinator {
    /// Reads on if nothing speaks against it.
    pub(crate) fn read_on(&mut self) {
        if !self.may_read() || self.now < self.log.next_read {
            return;
        }
        let begin = || Restart {
            from: self.log.read.clone(),
            stands: self.stands(),
            schemas: self.tables.iter().filter_map(|(name, t)| Some((name.clone(), t.schema.clone()?))).collect(),
            divided: self.divided(),
        };
        let restart = self.log.restart.then(begin);
        self.log.restart = false;
        let id = self.next_id();
        self.log.reading = Some(id);
        // One read passes the bound at most; a large one would leave nothing to the tables that are not stuck.
        let (session, bytes_max) = (self.log.session, self.config.read_bytes_max.min(self.config.budget_bytes_max / 4).max(1));
        let with_keys = |t: &Table| t.snapshot.is_some() || t.open.absent.is_tracked();
        let keys_of = self.tables.iter().filter(|(_, t)| with_keys(t)).map(|(name, _)| name.clone()).collect();
        self.push(Output::ReadLog { id, session, restart, bytes_max, keys_of });
    }

    /// Could the log be read now, if it were time?
    pub(crate) fn may_read(&self) -> bool {
        let over = self.log.reading.is_some() || self.log.finished || self.drain.is_closing();
        let pressed = self.tables.values().any(|t| t.presses_back(self.now, self.config.retry.most));
        let chunks = planted!(self.config, ChunksStopTheReader) && self.budget.used() >= self.config.budget_bytes_max;
        !over && !pressed && !self.budget.is_full(self.config.budget_bytes_max) && !chunks
    }

    /// Where the tables stand, each place once. Blocked ones too: what they are to skip later must be divided as it was.
    fn stands(&self) -> Vec<Position> {
        let mut stands = Vec::new();
        for table in self.tables.values().filter(|table| table.phase != Phase::NeedsSnapshot) {
            if !stands.contains(table.taken.upto()) {
                stands.push(table.taken.upto().clone());
            }
        }
        stands
    }

    /// The points behind which rows must be divided, so that a cut covers all or none of an event.
    fn divided(&self) -> Vec<(crate::id::TableName, crate::position::Transaction, crate::position::Coordinate)> {
        let of_table = |(name, table): (&crate::id::TableName, &Table)| {
            let entries = table.taken.within().iter();
            entries.map(|(transaction, within)| (name.clone(), transaction.clone(), within.last)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(of_table).collect()
    }

    pub(crate) fn log_read(&mut self, id: CommandId, batches: Vec<HeldBatch>, events: Vec<LogEvent>, finished: bool) {
        for batch in &batches {
            self.budget.grant(*batch);
        }
        if self.log.reading != Some(id) {
            // A read from before the reader went back: its rows are read again.
            self.stale_answer();
            for batch in &batches {
                self.budget.give_up(batch.batch);
            }
            return;
        }
        self.log.reading = None;
        self.log.failing = None;
        self.log.lost = false;
        self.log.next_read = if events.is_empty() { self.now + self.config.poll_interval } else { self.now };
        for event in events {
            if self.is_stopped() {
                return;
            }
            self.log_event(event);
        }
        // A table may have been blocked while the end was read: then the reader goes back, and finishes once more.
        self.log.finished = finished && !self.log.restart;
    }

    fn log_event(&mut self, event: LogEvent) {
        match event {
            LogEvent::Rows { table, transaction, rows, bytes, first, last, digest, touched } => {
                self.log.inside.insert(transaction.clone());
                let change = Change { table: &table, transaction: &transaction, first, last, digest };
                self.take_rows(&change, rows, bytes, touched.as_deref());
            }
            LogEvent::Truncated { table, transaction, coordinate, by } => {
                self.log.inside.insert(transaction.clone());
                self.take_truncate(&Change::event(&table, &transaction, coordinate), by.as_ref());
            }
            LogEvent::Schema { table, transaction, coordinate, schema, by } => {
                self.log.inside.insert(transaction.clone());
                self.take_schema(&Change::event(&table, &transaction, coordinate), schema, by.as_ref());
            }
            LogEvent::Refused { table, transaction, coordinate, why } => {
                self.log.inside.insert(transaction.clone());
                self.take_refused(&Change::event(&table, &transaction, coordinate), why);
            }
            LogEvent::Ended { transaction, upto } => {
                self.log.inside.remove(&transaction);
                if !upto.contains_transaction(&transaction) {
                    let dump = format!("{transaction:?} ended at {upto}");
                    return self.violate("position-names-finished-transactions", dump);
                }
                let pieces = self.pieces(&upto);
                self.log.read.join_with(&upto);
                self.log.received.join_with(&upto);
                self.log.known_end.join_with(&upto);
                self.take_end(&transaction, &upto);
                self.end_if_scattered(&upto, pieces);
            }
            LogEvent::Keepalive { upto } => {
                // Inside a transaction it may name a position beyond rows that were not delivered yet (rule A4).
                if self.log.inside.is_empty() || planted!(self.config, KeepaliveInsideTransaction) {
                    let pieces = self.pieces(&upto);
                    self.log.read.join_with(&upto);
                    self.log.received.join_with(&upto);
                    self.log.known_end.join_with(&upto);
                    self.take_keepalive(&upto);
                    self.end_if_scattered(&upto, pieces);
                } else {
                    self.mark("keepalive-inside-transaction");
                }
            }
        }
    }

    /// The most pieces that what was received or taken of one of these streams is in.
    fn pieces(&self, of: &Position) -> usize {
        let takens = self.tables.values().map(|t| t.taken.upto());
        let held = takens.chain([&self.log.received]);
        let most = |position: &Position| of.streams().map(|(stream, _)| position.intervals_of(stream).len()).max();
        held.filter_map(most).max().unwrap_or(0)
    }

    /// A set with more holes than a log may bring about is none that states can hold: what was taken is committed, and the run ends.
    /// What is behind a hole is claimed by nobody to make it smaller. What fills a hole may come at any time.
    fn end_if_scattered(&mut self, upto: &Position, before: usize) {
        let pieces = self.pieces(upto);
        if pieces <= self.config.intervals_max || pieces <= before {
            return;
        }
        if let Some((stream, _)) = upto.streams().next() {
            let reason = scattered_log(stream, self.config.intervals_max);
            self.mark("scattered");
            self.drain.begin(reason);
        }
    }

    /// The reader begins anew at the meet of what the tables that can take rows have taken (rule R6). Every table skips what
    /// it has taken.
    pub(crate) fn go_back(&mut self) {
        let follows = |t: &Table| matches!(t.phase, Phase::Streaming | Phase::Snapshotting | Phase::Paused | Phase::Halted);
        let wants = |t: &&Table| t.blocked.is_none() && follows(t);
        let takens = || self.tables.values().filter(wants).map(|t| t.taken.upto());
        let meet = if planted!(self.config, MinimumInsteadOfMeet) {
            takens().min_by_key(|p| p.beyond(&Position::START)).cloned()
        } else {
            takens().cloned().reduce(|low, taken| low.meet(&taken))
        };
        if takens().any(|a| takens().any(|b| a.compare(b).is_none())) {
            self.mark("went-back-to-incomparable");
        }
        // A table that stands where the log is not ends this life, but the reader begins nowhere else before that either.
        let from = self.of_this_log(&meet.unwrap_or_else(|| self.log.read.clone())).join(&self.log.floor);
        self.log.received.join_with(&from);
        self.log.read = from;
        self.log.inside.clear();
        self.log.reading = None;
        self.log.restart = true;
        self.log.finished = false;
        self.log.next_read = self.now;
        for table in self.tables.values_mut() {
            // What was seen again counts from the new beginning; a divided transaction is seen from its first row.
            table.replayed = table.taken.within().keys().map(|t| (t.clone(), Default::default())).collect();
        }
    }

    pub(crate) fn log_failed(&mut self, id: CommandId, failure: LogFailure) {
        let reading = self.log.reading == Some(id);
        if !reading && self.starting.asked != Some(id) {
            return self.stale_answer();
        }
        self.log.reading = None;
        match failure {
            LogFailure::SessionLost { why } if reading => {
                self.mark("session-lost");
                self.session_lost(why);
            }
            LogFailure::SessionLost { why } => self.start_failed(why),
            // The log is opened again, which judges each table by what is left of it.
            LogFailure::PositionLost { why } if reading && !self.log.lost => {
                self.mark("position-lost-while-reading");
                self.log.lost = true;
                self.session_lost(why);
            }
            LogFailure::PositionLost { why } => self.log_ended(StopReason::PositionLost { why }),
            LogFailure::Poison { why } => {
                self.mark("poison");
                self.log_ended(StopReason::Poison { why });
            }
            LogFailure::Config { why } => self.log_ended(StopReason::Config { why }),
        }
    }

    /// The session may be alive, and is of no use any more.
    pub(crate) fn session_left(&mut self, why: String) {
        if self.stage != Stage::Running {
            return;
        }
        self.log.reading = None;
        self.mark("session-left");
        self.session_lost(why);
    }

    fn log_ended(&mut self, reason: StopReason) {
        self.starting.asked = None;
        self.end_with(reason);
    }

    /// Before the log is opened again this life asks whether it still is the newest (rule R4); two lives that reconnect
    /// blindly steal the session from each other for ever.
    fn session_lost(&mut self, why: String) {
        let failing = Backoff::after(self.log.failing, self.now, &self.config.retry);
        if failing.is_hopeless(self.now, &self.config.retry) {
            return self.drain.begin(StopReason::Unreachable { why });
        }
        self.log.failing = Some(failing);
        self.void_chunks_of_session();
        self.void_rows_of_session();
        self.starting.retry = Some(failing);
        self.starting.why = Some(why);
        self.stage = if planted!(self.config, ReconnectWithoutValidation) { Stage::Opening } else { Stage::Validating };
    }

    /// A stalled table whose rows are durable: the reader goes back for it, but not too often.
    pub(crate) fn end_stalls(&mut self) {
        let stalled = |t: &Table| t.follows() && t.blocked.is_some() && t.is_settled();
        let caught_up = self.tables.values().any(stalled);
        if !caught_up || self.now < self.log.next_unstall || self.drain.is_closing() || planted!(self.config, StallNeverEnds) {
            return;
        }
        for table in self.tables.values_mut().filter(|t| stalled(t)) {
            table.blocked = None;
        }
        self.mark("stall-ends");
        self.log.next_unstall = self.now + self.config.rewind_interval;
        self.go_back();
    }

    /// Has everything been taken that the run is for?
    pub(crate) fn end_when_current(&mut self) {
        let target = match (&self.log.first_end, self.config.until_current, self.log.finished) {
            (_, _, true) => None,
            (Some(end), true, false) => Some(end),
            _ => return self.drain.set_current(false),
        };
        let waits = |t: &&Table| {
            let behind = t.blocked.is_some() || target.is_some_and(|p| !t.taken.upto().contains(p));
            let reads = matches!(t.phase, Phase::Snapshotting | Phase::Pending);
            let begins = t.wants_generation && !matches!(t.phase, Phase::Paused | Phase::Halted);
            (t.phase == Phase::Streaming && behind) || reads || begins
        };
        let current = !self.tables.values().any(|t| waits(&t));
        if current && !self.drain.is_closing() {
            self.mark("until-current");
        }
        self.drain.set_current(current);
    }
}

/// Why a log is not followed whose transactions come too far out of order.
pub(crate) fn scattered_log(stream: &StreamName, most: usize) -> StopReason {
    let named = if stream.as_str().is_empty() { String::from("the log") } else { format!("stream '{stream}'") };
    let why = format!(
        "what was read of {named} is in more than {most} pieces: its transactions come too far out of the order of their numbers. \
         Have the server that is read keep the order of commits, or read one that does"
    );
    StopReason::Poison { why }
}
