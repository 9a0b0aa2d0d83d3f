//! How fast things may go: the byte budget, the reader's place in the log, retries, and the end of a run.

mod reading;

pub(crate) use reading::scattered_log;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::config::Retry;
use crate::coordinator::{HeldBatch, RowRange, StopReason};
use crate::id::{BatchId, CommandId, Session, TableName};
use crate::position::{LogIdentity, Position, Transaction};
use crate::time::Time;

/// Rows in the row store, counted once when they are read and released once when nothing needs them (rule O9).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Budget {
    held: BTreeMap<BatchId, Held>,
    used: u64,
    /// Of these, held for chunks of snapshots: they have a bound of their own.
    chunks: u64,
    /// Ever, for the invariant.
    granted: u64,
    given_back: u64,
    /// Given back and not yet told to the pump.
    released: VecDeque<BatchId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Held {
    bytes: u64,
    /// Rows that something may still need.
    rows: u32,
    /// The table that has taken some of them. A batch is of one table.
    table: Option<TableName>,
    /// Is it a chunk's that is not released?
    chunk: bool,
}

impl Budget {
    /// Rows came from the log.
    pub(crate) fn grant(&mut self, batch: HeldBatch) {
        self.used = self.used.saturating_add(batch.bytes);
        self.granted = self.granted.saturating_add(batch.bytes);
        self.held.insert(batch.batch, Held { bytes: batch.bytes, rows: batch.rows, table: None, chunk: false });
        if batch.rows == 0 {
            self.release(batch.batch);
        }
    }

    /// Rows of a chunk came.
    pub(crate) fn grant_chunk(&mut self, batch: HeldBatch) {
        self.grant(batch);
        if let Some(held) = self.held.get_mut(&batch.batch) {
            held.chunk = true;
            self.chunks = self.chunks.saturating_add(held.bytes);
        }
    }

    /// A chunk was released: its rows are like rows of the log from here on.
    pub(crate) fn admit_chunk(&mut self, batch: BatchId, table: &TableName) {
        if let Some(held) = self.held.get_mut(&batch).filter(|held| held.chunk) {
            held.chunk = false;
            held.table = Some(table.clone());
            self.chunks = self.chunks.saturating_sub(held.bytes);
        }
    }

    /// A table has taken some rows of a batch.
    pub(crate) fn take(&mut self, batch: BatchId, table: &TableName) {
        if let Some(held) = self.held.get_mut(&batch)
            && held.table.is_none()
        {
            held.table = Some(table.clone());
        }
    }

    /// Bytes that are held for a table. A batch stays whole until its last row is needed no more.
    pub(crate) fn held_for(&self, table: &TableName) -> u64 {
        sum(self.held.values().filter(|h| h.table.as_ref() == Some(table)))
    }

    /// These rows are needed no more.
    pub(crate) fn pass_over(&mut self, rows: &RowRange) {
        if let Some(held) = self.held.get_mut(&rows.batch) {
            held.rows = held.rows.saturating_sub(rows.count());
            if held.rows == 0 {
                self.release(rows.batch);
            }
        }
    }

    fn release(&mut self, batch: BatchId) {
        if let Some(held) = self.held.remove(&batch) {
            self.used = self.used.saturating_sub(held.bytes);
            if held.chunk {
                self.chunks = self.chunks.saturating_sub(held.bytes);
            }
            self.given_back = self.given_back.saturating_add(held.bytes);
            self.released.push_back(batch);
        }
    }

    /// A whole batch is needed no more.
    pub(crate) fn give_up(&mut self, batch: BatchId) {
        self.release(batch);
    }

    /// What was released since the last call.
    pub(crate) fn take_released(&mut self) -> Vec<BatchId> {
        self.released.drain(..).collect()
    }

    pub(crate) fn is_full(&self, bytes_max: u64) -> bool {
        self.used.saturating_sub(self.chunks) >= bytes_max
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// The batches that the row store must hold, no more and no fewer.
    pub(crate) fn batches(&self) -> impl Iterator<Item = BatchId> {
        self.held.keys().copied()
    }

    /// Granted = given back + held?
    pub(crate) fn is_conserved(&self) -> bool {
        sum(self.held.values()) == self.used && self.granted == self.given_back.saturating_add(self.used)
    }

    /// Rows held, for comparison with the rows that checkpoints name.
    pub(crate) fn rows(&self) -> u64 {
        self.held.values().map(|h| u64::from(h.rows)).sum()
    }

    /// A planted bug: bytes given back that were given back before.
    pub(crate) fn release_again(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.given_back = self.given_back.saturating_add(bytes);
    }
}

/// Bytes of batches. What the pump says of one is not believed so far that it could overflow.
fn sum<'a>(held: impl Iterator<Item = &'a Held>) -> u64 {
    held.fold(0, |sum, h| sum.saturating_add(h.bytes))
}

/// The one reader's place in the log, and what was heard and said in this session.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Log {
    pub(crate) session: Session,
    pub(crate) identity: LogIdentity,
    /// How often another server was read than before: by which one's coordinates something was taken.
    pub(crate) server: u64,
    /// What could no longer be streamed when the log was opened.
    pub(crate) floor: Position,
    /// Where it ended when it was last opened.
    pub(crate) end: Position,
    /// It ends there or later: what was read and found since is in it.
    pub(crate) known_end: Position,
    /// Where the log ended when it was first opened.
    pub(crate) first_end: Option<Position>,
    /// The read whose answer is awaited.
    pub(crate) reading: Option<CommandId>,
    /// The next read begins anew, from `read`.
    pub(crate) restart: bool,
    pub(crate) next_read: Time,
    /// Ends of transactions and keepalives that the reader has passed since it began anew.
    pub(crate) read: Position,
    /// Transactions begun and not ended since then.
    pub(crate) inside: BTreeSet<Transaction>,
    /// All that the source sent, ever (rule A4).
    pub(crate) received: Position,
    /// Acknowledged, ever.
    pub(crate) acknowledged: Position,
    /// Acknowledged in this session: an acknowledgement dies with its session.
    pub(crate) said: Position,
    pub(crate) finished: bool,
    /// No going back for a stalled table before this.
    pub(crate) next_unstall: Time,
    /// Sessions lost in a row, without a read that succeeded.
    pub(crate) failing: Option<Backoff>,
    /// What was asked for was not there, and no read has succeeded since.
    pub(crate) lost: bool,
}

impl Log {
    /// What a position holds that this log, as far as `end`, does not have.
    pub(crate) fn beyond(&self, position: &Position, end: &Position) -> Position {
        if end.contains(position) {
            return Position::START;
        }
        position.only(|stream| self.identity.knows(stream)).without(end)
    }

    /// Does a position hold something that this log, as far as `end`, does not have?
    pub(crate) fn is_ahead(&self, position: &Position, end: &Position) -> bool {
        self.beyond(position, end) != Position::START
    }
}

/// A step that failed transiently and is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Backoff {
    /// Of the first failure in a row.
    pub(crate) since: Time,
    /// Failures in a row.
    pub(crate) tries: u32,
    /// When it is tried again.
    pub(crate) at: Time,
}

impl Backoff {
    /// After one more failure.
    pub(crate) fn after(last: Option<Backoff>, now: Time, retry: &Retry) -> Backoff {
        let (since, tries) = last.map_or((now, 0), |b| (b.since, b.tries.saturating_add(1)));
        let wait = retry.first.times(1 << tries.min(20)).min(retry.most);
        Backoff { since, tries, at: now + wait }
    }

    /// Has it failed for longer than anybody wants to wait?
    pub(crate) fn is_hopeless(&self, now: Time, retry: &Retry) -> bool {
        retry.give_up_after.is_some_and(|most| self.since + most <= now)
    }
}

/// The end of a run: nothing more is read, everything taken is committed, the record is stored, then it stops.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Drain {
    reason: Option<StopReason>,
    /// It began because everything was taken. What is set back meanwhile must be taken again before the end.
    while_current: bool,
}

impl Drain {
    /// Begins for good; an earlier reason of that kind stays.
    pub(crate) fn begin(&mut self, reason: StopReason) {
        if self.reason.is_none() || self.while_current {
            self.reason = Some(reason);
            self.while_current = false;
        }
    }

    /// Everything was taken, or not any more.
    pub(crate) fn set_current(&mut self, current: bool) {
        if current && self.reason.is_none() {
            *self = Self { reason: Some(StopReason::Drained), while_current: true };
        } else if !current && self.while_current {
            *self = Self::default();
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.reason.is_some()
    }

    pub(crate) fn reason(&self) -> Option<&StopReason> {
        self.reason.as_ref()
    }
}
