//! Rows from the log into open checkpoints: what is taken, what is passed over, and when a checkpoint closes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{CLOSED_MAX, Table};
use crate::config::OnTruncate;
use crate::coordinator::{Coordinator, Operator, RowRange, Touched};
use crate::id::{TableName, TransactionName, Version};
use crate::planted::planted;
use crate::position::{Coordinate, Cut, Digest, Offset, Position, Transaction};
use crate::snapshot::Void;
use crate::state::Phase;

/// One change of one table, whatever it is.
pub(crate) struct Change<'a> {
    pub(crate) table: &'a TableName,
    pub(crate) transaction: &'a Transaction,
    pub(crate) first: Coordinate,
    pub(crate) last: Coordinate,
    pub(crate) digest: Digest,
}

/// What is to be done with a change.
pub(super) enum Verdict {
    /// It is covered, or not for this table as it is now: pass over it.
    PassOver,
    /// Take it.
    Take,
}

impl<'a> Change<'a> {
    /// A change that is no row.
    pub(crate) fn event(table: &'a TableName, transaction: &'a Transaction, at: Coordinate) -> Self {
        Self { table, transaction, first: at, last: at, digest: Digest::EVENT }
    }
}

impl Coordinator {
    /// Takes rows into the table's open checkpoint.
    pub(crate) fn take_rows(&mut self, change: &Change<'_>, rows: RowRange, bytes: u64, touched: Option<&Touched>) {
        if let Verdict::PassOver = self.judge(change) {
            self.budget.pass_over(&rows);
            return;
        }
        if !self.touch(change, touched) {
            return self.keys_are_missing(change);
        }
        let count = u64::from(rows.count());
        let Some(table) = self.tables.get_mut(change.table) else { return };
        table.begin_taking_of_log(self.now);
        table.taken.take(change.transaction, change.last, change.digest);
        if planted!(self.config, OneWithin) {
            let mut one = Cut::at(table.taken.upto().clone());
            if let Some(within) = table.taken.within().get(change.transaction) {
                one.take(change.transaction, within.last, within.digest);
            }
            table.taken = one;
        }
        if planted!(self.config, UptoAtFirstEvent) {
            let (stream, at) = (change.transaction.stream.clone(), change.transaction.at);
            let from = if self.log.identity.lineage.is_some() { at } else { Offset(0) };
            let upto = Position::between(stream, from, Offset(at.0 + 1));
            table.taken.join_position(&upto);
        }
        if table.open.rows.is_empty() {
            table.open.first_sequence = table.sequence + 1;
        }
        table.sequence += count;
        table.open.taken += count;
        table.open.bytes = table.open.bytes.saturating_add(bytes);
        self.budget.take(rows.batch, change.table);
        table.open.rows.push(rows);
        if !self.take_images(change.table, touched) {
            return self.keys_are_missing(change);
        }
        self.close_at_hard_limit(change.table);
    }

    /// The hard limit closes inside a transaction, too: it is committed in pieces and resumed exactly.
    pub(crate) fn close_at_hard_limit(&mut self, name: &TableName) {
        let limits = &self.config.checkpoint;
        let bytes_max = limits.bytes.saturating_mul(2).min(self.config.budget_bytes_max / 2);
        let Some(table) = self.tables.get(name) else { return };
        let lacks_much = table.open.absent.is_at_bound(&self.config.absent);
        if table.open.taken < limits.rows.saturating_mul(2) && table.open.bytes < bytes_max && !lacks_much {
            return;
        }
        if lacks_much {
            self.mark("closed-for-holes");
        }
        let Some(table) = self.tables.get(name) else { return };
        match table.taken.within().len() {
            0 => {}
            1 => self.mark("divided-by-limit"),
            _ => self.mark("divided-several"),
        }
        self.close(name);
    }

    /// The reader was told that the table's rows come with their keys.
    fn keys_are_missing(&mut self, change: &Change<'_>) {
        let dump = format!("{}: rows of {:?} came without their keys", change.table, change.transaction);
        self.violate("touched-keys-complete-and-bounded", dump);
    }

    /// Empties the table: nothing taken before it matters any more (rule C7).
    pub(crate) fn take_truncate(&mut self, change: &Change<'_>, by: Option<&TransactionName>) {
        match self.config.tables.get(change.table).map(|t| t.on_truncate) {
            Some(OnTruncate::Ignore) => return self.take_nothing(change),
            Some(OnTruncate::Fail) => {
                let why = String::from("the source truncated the table, and source.onTruncate is 'fail'");
                return self.take_refused(change, why);
            }
            Some(OnTruncate::Propagate) | None => {}
        }
        if let Verdict::PassOver = self.judge(change) {
            return;
        }
        if !self.touch_every_key(change, by) {
            return self.keys_are_missing(change);
        }
        self.mark("truncate");
        let incarnation = self.incarnation;
        let Some(table) = self.tables.get_mut(change.table) else { return };
        table.begin_taking_of_log(self.now);
        table.taken.take(change.transaction, change.last, change.digest);
        table.sequence += 1;
        table.open.taken += 1;
        table.open.truncate_first = true;
        if !planted!(self.config, TruncateWithoutFloor) {
            table.open.begun = Some(Version::new(incarnation, table.sequence));
        }
        if planted!(self.config, TruncateKeepsRows) {
            table.open.first_sequence = table.sequence + 1 - u64::from(table.open.rows.iter().map(RowRange::count).sum::<u32>());
            return;
        }
        let emptied = core::mem::take(&mut table.open.rows);
        let absent = core::mem::take(&mut table.open.absent);
        table.open.bytes = 0;
        for rows in emptied.into_iter().chain(absent.into_rows()) {
            self.budget.pass_over(&rows);
        }
    }

    /// From here on rows have another schema: the checkpoint before it closes (rule C7).
    ///
    /// It counts in no digest: a reader that begins with the schema of the table's stand does not tell it again.
    pub(crate) fn take_schema(&mut self, change: &Change<'_>, schema: String, by: Option<&TransactionName>) {
        let change = &Change { digest: Digest::default(), ..*change };
        if let Verdict::PassOver = self.judge(change) {
            return;
        }
        // Told again it may still be of a transaction that a chunk does not see.
        if !self.touch_schema(change, by) {
            return self.keys_are_missing(change);
        }
        let Some(table) = self.tables.get_mut(change.table) else { return };
        if table.schema.as_ref() == Some(&schema) {
            return self.mark("schema-known");
        }
        if table.open.taken > 0 {
            table.close(&self.log);
        }
        table.begin_taking_of_log(self.now);
        table.taken.take(change.transaction, change.last, change.digest);
        table.open.taken += 1;
        table.schema = Some(schema);
        self.mark("schema-change");
    }

    /// Covers a change without an effect.
    fn take_nothing(&mut self, change: &Change<'_>) {
        if let Verdict::Take = self.judge(change) {
            self.cover(change);
        }
    }

    pub(super) fn cover(&mut self, change: &Change<'_>) {
        if let Some(table) = self.tables.get_mut(change.table) {
            table.begin_taking_of_log(self.now);
            table.taken.take(change.transaction, change.last, change.digest);
            table.sequence += 1;
            table.open.taken += 1;
        }
    }

    /// The one place that decides whether a change is taken. A change at or below the table's `taken` has no effect, one
    /// above it is never skipped: it is taken, or the table is blocked from here on.
    pub(super) fn judge(&mut self, change: &Change<'_>) -> Verdict {
        let now = self.now;
        let stuck = self.tables.get(change.table).is_some_and(|t| self.holds_others(change.table, t));
        let Some(table) = self.tables.get_mut(change.table) else { return Verdict::PassOver };
        if matches!(table.phase, Phase::NeedsSnapshot | Phase::Pending) {
            return Verdict::PassOver;
        }
        if table.taken.upto().contains_transaction(change.transaction) && !planted!(self.config, TakesCoveredRows) {
            return Verdict::PassOver;
        }
        let last = table.taken.upto().intervals_of(&change.transaction.stream).last();
        if last.is_some_and(|last| change.transaction.at < last.to) && planted!(self.config, CoveredByLastNumber) {
            return Verdict::PassOver;
        }
        // A blocked table takes nothing and compares nothing until the reader goes back: where it stands may be a point at which
        // the reader does not divide rows yet.
        if table.blocked.is_some() {
            return Verdict::PassOver;
        }
        if let Some(within) = table.taken.within().get(change.transaction).copied() {
            if change.last <= within.last {
                let seen = table.replayed.entry(change.transaction.clone()).or_default();
                *seen = seen.plus(change.digest);
                return Verdict::PassOver;
            }
            if change.first <= within.last {
                let dump = format!("{}: rows {:?}..{:?} straddle {within:?}", change.table, change.first, change.last);
                self.violate("within-names-the-same-row", dump);
                return Verdict::PassOver;
            }
        } else if planted!(self.config, SkipsFirstRow) && !table.replayed.contains_key(change.transaction) {
            table.replayed.insert(change.transaction.clone(), Digest::default());
            return Verdict::PassOver;
        }
        let early = table.is_beginning() && planted!(self.config, GenerationBeginsWithData);
        if !table.follows() && !early {
            table.blocked = Some(now);
            self.mark("blocked");
            return Verdict::PassOver;
        }
        // A table that cannot keep up stands still and reads again later; it does not hold the reader (rule C3). The same for
        // one whose flight stands still while its rows fill half of the budget (rule O9).
        if table.closed.len() >= CLOSED_MAX || stuck {
            table.blocked = Some(now);
            self.mark("stalled");
            return Verdict::PassOver;
        }
        if self.replayed_otherwise(change.table, change.transaction) {
            return Verdict::PassOver;
        }
        Verdict::Take
    }

    /// Compares what was seen again of a divided transaction with what its cut says, once (rule P3).
    fn replayed_otherwise(&mut self, name: &TableName, transaction: &Transaction) -> bool {
        let Some(why) = self.tables.get_mut(name).and_then(|t| t.differs_from_replay(transaction)) else { return false };
        self.mark("coordinate-shifted");
        self.halt_in_front(name, why, None);
        true
    }

    /// A transaction ended: each table that stands in front of its end and has taken all of it takes the end.
    pub(crate) fn take_end(&mut self, transaction: &Transaction, upto: &Position) {
        let mut otherwise = Vec::new();
        for (name, table) in &mut self.tables {
            if !table.takes_positions() || table.taken.upto().contains(upto) {
                continue;
            }
            if let Some(why) = table.differs_from_replay(transaction) {
                otherwise.push((name.clone(), why));
                continue;
            }
            if planted!(self.config, CutFromReader) {
                table.taken = Cut::at(self.log.read.join(upto));
            }
            table.taken.join_position(upto);
            let full = table.is_full(&self.config) && !table.open.absent.lacks();
            if full && table.taken.is_whole() && table.flight.is_none() && table.closed.is_empty() {
                table.close(&self.log);
            }
        }
        for (name, why) in otherwise {
            self.mark("coordinate-shifted");
            self.halt_in_front(&name, why, None);
        }
    }

    /// Nothing for us up to here. The reader is inside no transaction: one that a table has in part comes again later.
    pub(crate) fn take_keepalive(&mut self, upto: &Position) {
        for table in self.tables.values_mut().filter(|t| t.takes_positions()) {
            table.taken.join_position(upto);
        }
    }

    /// Closes a table's open checkpoint.
    pub(crate) fn close(&mut self, name: &TableName) {
        if let Some(table) = self.tables.get_mut(name) {
            table.close(&self.log);
        }
    }

    /// Closes what age, a block, the end of the run or the budget says should close.
    pub(crate) fn close_what_is_due(&mut self) {
        for name in self.names() {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            if table.open.taken == 0 || table.flight.is_some() || !table.closed.is_empty() {
                continue;
            }
            let (whole, lacks) = (table.taken.is_whole(), table.open.absent.lacks());
            // One that was full, and lacks nothing any more, has waited long enough.
            let filled = whole && table.open.absent.was_filled() && table.is_full(&self.config);
            let due = table.closes_at(&self.config) <= self.now || filled;
            if table.blocked.is_some() || self.drain.is_closing() || due {
                if !whole {
                    self.mark("closed-inside-transaction");
                }
                if lacks {
                    self.mark("closed-with-holes");
                }
                self.close(&name);
            }
        }
        if self.budget.is_full(self.config.budget_bytes_max) && !planted!(self.config, BudgetNeverCloses) {
            self.close_the_largest();
        }
    }

    /// At the budget's bound the largest open checkpoint of a table that nothing runs for closes, also inside a transaction.
    fn close_the_largest(&mut self) {
        let largest = self
            .tables
            .iter()
            .filter(|(_, t)| !t.open.rows.is_empty() && t.flight.is_none() && t.closed.is_empty())
            .max_by_key(|(_, t)| t.open.bytes)
            .map(|(name, _)| name.clone());
        if let Some(name) = largest {
            self.mark("closed-for-budget");
            self.close(&name);
        }
    }

    /// What a person asks of a table.
    pub(crate) fn operate(&mut self, operator: Operator) {
        match operator {
            Operator::Drain => {
                self.mark("drain");
                self.drain.begin(crate::coordinator::StopReason::Drained);
            }
            Operator::Pause(name) => {
                let Some(table) = self.tables.get_mut(&name) else { return };
                if matches!(table.phase, Phase::Streaming | Phase::Snapshotting) {
                    table.phase = Phase::Paused;
                    self.void_chunks(&name, Void::Stopped);
                    self.want(&name, Phase::Paused);
                    self.mark("paused");
                }
            }
            Operator::Resume(name) => self.resume(&name),
            Operator::Skip(name) => self.skip(&name),
            Operator::Release(name) => {
                if self.tables.get(&name).is_some_and(|t| matches!(t.phase, Phase::Paused | Phase::Halted)) {
                    self.release(&name, "somebody released it");
                }
            }
            Operator::Resnapshot(name) => self.resnapshot(&name),
        }
    }

    pub(crate) fn resume(&mut self, name: &TableName) {
        let released = self.wants_snapshot(name);
        let phase = self.phase_to_go_on(name);
        let Some(table) = self.tables.get_mut(name) else { return };
        table.resumes_when_recorded = false;
        if !matches!(table.phase, Phase::Paused | Phase::Halted) || released {
            return;
        }
        table.phase = phase;
        table.why = None;
        table.refused = None;
        let passed_over = table.blocked.take().is_some();
        self.want(name, phase);
        if passed_over {
            self.mark("resume-goes-back");
            self.go_back();
        }
    }
}

impl Table {
    /// Prepares the open checkpoint for its first change.
    pub(crate) fn begin_taking(&mut self, now: crate::time::Time) {
        if self.open.taken == 0 {
            self.open.opened = now;
            self.open.before = self.taken.upto().clone();
            self.open.first_sequence = self.sequence + 1;
        }
    }

    /// Prepares the open checkpoint for a change of the log.
    fn begin_taking_of_log(&mut self, now: crate::time::Time) {
        self.begin_taking(now);
        if !core::mem::replace(&mut self.open.logged, true) {
            self.open.before = self.taken.upto().clone();
        }
    }

    /// Do ends of transactions and keepalives move it? A halted one comes to the row that halted it, and is blocked there. One
    /// whose generation is beginning stands at its base, which is what will be stored: nothing may be acknowledged beyond it.
    fn takes_positions(&self) -> bool {
        let follows = matches!(self.phase, Phase::Streaming | Phase::Snapshotting | Phase::Paused | Phase::Halted);
        follows && self.blocked.is_none() && !self.is_beginning()
    }

    /// Compares what was seen again of a divided transaction with what the cut says of it, once (rule P3).
    fn differs_from_replay(&mut self, transaction: &Transaction) -> Option<String> {
        if self.replayed.is_empty() {
            return None;
        }
        let seen = self.replayed.remove(transaction)?;
        let within = self.taken.within().get(transaction).filter(|within| within.digest != seen)?;
        let (count, others) = (within.digest.count, if within.digest.count == seen.count { " others" } else { "" });
        Some(format!(
            "the log tells transaction {transaction:?} otherwise than before: {count} changes up to {:?} were committed, {}{others} \
             are there now. The copy can't be continued from inside it; it needs a new snapshot",
            within.last, seen.count
        ))
    }
}
