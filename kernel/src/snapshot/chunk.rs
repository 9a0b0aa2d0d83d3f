//! A chunk from being asked for to being released or void (rules S3 to S7).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Release, Stage, TouchedKeys};
use crate::checkpoint::{CLOSED_MAX, Table};
use crate::coordinator::{ChunkAnswer, Coordinator, HeldBatch, Output, RowRange, Stage as Life};
use crate::flow::Backoff;
use crate::id::{Bound, CommandId, EncodedKey, Session, TableName, TransactionName};
use crate::planted::planted;
use crate::position::{LogIdentity, Position};
use crate::state::Phase;

/// A chunk that was asked for, and perhaps read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Chunk {
    /// How many rows were asked for.
    rows_max: u32,
    /// The session of the log that it belongs to.
    pub(crate) session: Session,
    /// Did another chunk bring a schema since it was asked for?
    schema_moved: bool,
    /// Keys touched by transactions that its snapshot does not provably see: at first what was unproven when it was asked for;
    /// every touch since; at the answer those that its own visibility proves are struck out.
    pub(crate) touched: TouchedKeys,
    /// What was read.
    pub(crate) held: Option<Held>,
}

/// The rows of a chunk, until the log has passed its fence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Held {
    rows: Option<HeldBatch>,
    pub(crate) keys: Vec<EncodedKey>,
    end: Option<Bound>,
    pub(crate) proven: BTreeSet<TransactionName>,
    fence: Position,
    schema: Option<String>,
}

/// Why a chunk was read, or asked for, in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Void {
    /// The read failed.
    Failed,
    /// More keys were touched meanwhile than a chunk remembers: the next one is smaller.
    TouchedTooMuch,
    /// It does not prove what is in doubt.
    InDoubt,
    /// Another server answered, or the log's session is over.
    AnotherLog,
    /// The stream's schema changed since it was asked for, to another one.
    Schema,
    /// The table stopped, or what it had taken was given up.
    Stopped,
}

impl Chunk {
    /// Its rows in the row store.
    pub(crate) fn held_rows(&self) -> Option<RowRange> {
        let rows = self.held.as_ref()?.rows?;
        Some(RowRange { batch: rows.batch, rows: 0..rows.rows })
    }

    fn bytes(&self, reserved: u64) -> u64 {
        self.held.as_ref().map_or(reserved, |held| held.rows.map_or(0, |rows| rows.bytes))
    }
}

impl Coordinator {
    /// Asks for as many chunks of a table as the bounds allow.
    pub(crate) fn ask_for_chunks(&mut self, name: &TableName) {
        let limits = self.config.snapshot;
        while self.may_ask_for_chunk(name) {
            let id = self.next_id();
            let session = self.log.session;
            let empty = planted!(self.config, WatermarkByPosition);
            let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
            let Some((range, rows_max)) = snapshot.tiling.open_next(id) else { return };
            let touched = if empty { TouchedKeys::default() } else { snapshot.unproven.clone() };
            let about = snapshot.doubts().into_iter().collect();
            snapshot.asked += 1;
            snapshot.chunks.insert(id, Chunk { rows_max, session, schema_moved: false, touched, held: None });
            let bytes_max = limits.chunk_bytes_max;
            self.push(Output::ReadChunk { id, table: name.clone(), range, rows_max, bytes_max, about });
        }
    }

    fn may_ask_for_chunk(&self, name: &TableName) -> bool {
        let limits = &self.config.snapshot;
        let Some(table) = self.tables.get(name) else { return false };
        let Some(snapshot) = table.snapshot.as_ref().filter(|s| s.stage == Stage::Reading) else { return false };
        let goes = self.stage == Life::Running && !self.drain.is_closing() && table.phase == Phase::Snapshotting;
        let held: u64 = self
            .snapshots()
            .flat_map(|s| s.chunks.values())
            .fold(0, |sum, c| sum.saturating_add(c.bytes(limits.chunk_bytes_max)));
        let proven = snapshot.in_doubt.is_empty() && snapshot.unproven.len() < limits.touched_keys_max;
        goes && table.blocked.is_none()
            && !self.is_unclaimed(name)
            && snapshot.planned
            && snapshot.tiling.has_missing()
            && snapshot.failing.is_none_or(|failing| failing.at <= self.now)
            && proven
            && (snapshot.chunks.len() as u64) < u64::from(limits.chunks_max)
            && (held == 0 || held.saturating_add(limits.chunk_bytes_max) <= limits.held_bytes_max)
    }

    /// Every snapshot that is being read.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &super::Snapshot> {
        self.tables.values().filter_map(|table| table.snapshot.as_ref())
    }

    pub(crate) fn chunk_read(&mut self, id: CommandId, answer: ChunkAnswer) {
        if let Some(rows) = answer.rows {
            self.budget.grant_chunk(rows);
        }
        let open = |t: &Table| t.snapshot.as_ref().and_then(|s| s.chunks.get(&id)).is_some_and(|c| c.held.is_none());
        let Some(name) = self.tables.iter().find(|(_, t)| open(t)).map(|(name, _)| name.clone()) else {
            self.stale_answer();
            return self.drop_rows(answer.rows);
        };
        if let Some(why) = self.is_no_answer(&name, id, &answer) {
            self.drop_rows(answer.rows);
            return self.stop_snapshot(&name, why);
        }
        let another_log = planted!(self.config, ChunkOutlivesReconnect);
        if !self.is_this_log(&answer.identity) && !another_log {
            self.drop_rows(answer.rows);
            let why = "another server answered than the one whose log is read";
            self.ask_later(&name, String::from(why));
            self.void_chunk(&name, id, Void::AnotherLog);
            // The old session may live on, with nothing to say: only opening the log anew brings both to one server.
            return self.session_left(String::from(why));
        }
        self.prove(&name, &answer.visibility.proven);
        let Some(snapshot) = self.tables.get_mut(&name).and_then(|t| t.snapshot.as_mut()) else { return };
        snapshot.failing = None;
        snapshot.why = None;
        if !snapshot.in_doubt.is_empty() {
            self.drop_rows(answer.rows);
            return self.void_chunk(&name, id, Void::InDoubt);
        }
        let Some(chunk) = snapshot.chunks.get_mut(&id) else { return };
        let ChunkAnswer { rows, keys, end, visibility, fence, schema, identity: _ } = answer;
        // From here on only what is not proven counts, and only the chunk's own keys: no bound is needed any more.
        chunk.touched.prune(&visibility.proven);
        chunk.touched.keep_only(&keys.iter().collect());
        chunk.held = Some(Held { rows, keys, end, proven: visibility.proven, fence, schema });
    }

    /// What is wrong with an answer, if its driver broke the contract.
    fn is_no_answer(&self, name: &TableName, id: CommandId, answer: &ChunkAnswer) -> Option<String> {
        let snapshot = self.tables.get(name)?.snapshot.as_ref()?;
        let rows = answer.rows.map_or(0, |rows| rows.rows as usize);
        let wrong = if rows != answer.keys.len() {
            format!("it has {rows} rows and {} keys", answer.keys.len())
        } else if !snapshot.tiling.may_end(id, answer.end.as_ref()) {
            // Where, is a key of somebody's row.
            String::from("it ends outside of the range that was asked for")
        } else {
            return None;
        };
        Some(format!("a chunk of the snapshot of {name} is no answer: {wrong}. This is a fault of the source driver"))
    }

    /// Did the server answer whose log is read?
    pub(crate) fn is_this_log(&self, answered: &LogIdentity) -> bool {
        let log = &self.log.identity;
        log.differs_from(answered).is_none() && log.coordinates == answered.coordinates
    }

    /// The table's snapshot asks again after a while.
    fn ask_later(&mut self, name: &TableName, why: String) {
        let (now, retry) = (self.now, self.config.retry);
        let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
        snapshot.failing = Some(Backoff::after(snapshot.failing, now, &retry));
        snapshot.why = Some(why);
    }

    fn drop_rows(&mut self, rows: Option<HeldBatch>) {
        if let Some(rows) = rows {
            self.budget.give_up(rows.batch);
        }
    }

    /// A chunk is given up; its range is read again.
    pub(crate) fn void_chunk(&mut self, name: &TableName, id: CommandId, why: Void) {
        let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) else { return };
        let Some(chunk) = snapshot.chunks.remove(&id) else { return };
        let smaller = why == Void::TouchedTooMuch;
        snapshot.tiling.give_up(id, if smaller { (chunk.rows_max / 2).max(1) } else { chunk.rows_max });
        snapshot.void += 1;
        self.drop_rows(chunk.held.and_then(|held| held.rows));
        self.mark(match why {
            Void::Failed => "chunk-failed",
            Void::TouchedTooMuch => "chunk-void-by-bound",
            Void::InDoubt => "chunk-void-in-doubt",
            Void::AnotherLog => "chunk-void-by-reconnect",
            Void::Schema => "chunk-void-by-schema",
            Void::Stopped => "chunk-void-by-stop",
        });
    }

    /// Every open chunk of a table is given up.
    pub(crate) fn void_chunks(&mut self, name: &TableName, why: Void) {
        let open: Vec<CommandId> = match self.tables.get(name).and_then(|t| t.snapshot.as_ref()) {
            Some(snapshot) => snapshot.chunks.keys().copied().collect(),
            None => return,
        };
        for id in open {
            self.void_chunk(name, id, why);
        }
    }

    /// The log's session is over, and with it everything that was read from its server (rule S3).
    pub(crate) fn void_chunks_of_session(&mut self) {
        if planted!(self.config, ChunkOutlivesReconnect) {
            return;
        }
        for name in self.names() {
            self.void_chunks(&name, Void::AnotherLog);
            if let Some(snapshot) = self.tables.get_mut(&name).and_then(|t| t.snapshot.as_mut()) {
                snapshot.asking = None;
                snapshot.planning = None;
            }
        }
    }

    /// A read for a snapshot failed; is it one?
    pub(crate) fn snapshot_read_failed(&mut self, id: CommandId, why: &str) -> bool {
        let (now, retry) = (self.now, self.config.retry);
        let Some(name) = self.table_of_read(id) else { return false };
        self.void_chunk(&name, id, Void::Failed);
        let Some(snapshot) = self.tables.get_mut(&name).and_then(|t| t.snapshot.as_mut()) else { return true };
        let backoff = Backoff::after(snapshot.failing, now, &retry);
        snapshot.failing = Some(backoff);
        snapshot.why = Some(String::from(why));
        if snapshot.asking == Some(id) {
            snapshot.asking = None;
            snapshot.next_question = backoff.at;
        }
        if snapshot.planning == Some(id) {
            // Ranges only make it faster.
            snapshot.planning = None;
            snapshot.planned = true;
        }
        true
    }

    /// A read for a snapshot can never work; is it one?
    pub(crate) fn snapshot_read_refused(&mut self, id: CommandId, why: &str) -> bool {
        let Some(name) = self.table_of_read(id) else { return false };
        self.stop_snapshot(&name, String::from(why));
        true
    }

    fn table_of_read(&self, id: CommandId) -> Option<TableName> {
        let asked = |s: &super::Snapshot| {
            s.asking == Some(id) || s.planning == Some(id) || s.chunks.get(&id).is_some_and(|c| c.held.is_none())
        };
        self.tables.iter().find(|(_, t)| t.snapshot.as_ref().is_some_and(asked)).map(|(name, _)| name.clone())
    }

    /// The snapshot cannot go on: the table halts, and what was taken is committed.
    fn stop_snapshot(&mut self, name: &TableName, why: String) {
        self.mark("snapshot-refused");
        self.void_chunks(name, Void::Stopped);
        if let Some(snapshot) = self.tables.get_mut(name).and_then(|t| t.snapshot.as_mut()) {
            snapshot.asking = None;
            snapshot.planning = None;
        }
        self.halt_in_front(name, why, None);
    }

    // ---- releasing

    /// Releases every chunk whose fence the log has passed.
    pub(crate) fn release_chunks(&mut self) {
        for name in self.names() {
            while let Some(id) = self.releasable(&name) {
                if !self.agree_on_schema(&name, id) {
                    continue;
                }
                self.release_chunk(&name, id);
            }
        }
    }

    fn releasable(&self, name: &TableName) -> Option<CommandId> {
        let table = self.tables.get(name).filter(|t| t.phase == Phase::Snapshotting && t.closed.len() < CLOSED_MAX)?;
        if self.budget.is_full(self.config.budget_bytes_max) || self.drain.is_closing() {
            return None;
        }
        let early = planted!(self.config, ReleasedBeforeFence);
        let passed = |chunk: &Chunk| chunk.held.as_ref().is_some_and(|h| early || table.taken.upto().contains(&h.fence));
        table.snapshot.as_ref()?.chunks.iter().find(|(_, chunk)| passed(chunk)).map(|(id, _)| *id)
    }

    /// Is the chunk's schema the stream's? A chunk that is read under one that the stream has not shown yet *brings* it: the change
    /// lies between the stream's last row and the fence. But if the stream's changed by something that the chunk does not provably
    /// see, the chunk's may be an old one.
    fn agree_on_schema(&mut self, name: &TableName, id: CommandId) -> bool {
        let never = planted!(self.config, ChunkNeverBringsSchema);
        if planted!(self.config, ChunkUnderAnotherSchema) {
            return true;
        }
        let Some(table) = self.tables.get_mut(name) else { return false };
        let Some(snapshot) = table.snapshot.as_mut() else { return false };
        let Some(chunk) = snapshot.chunks.get(&id) else { return false };
        let schema = chunk.held.as_ref().and_then(|held| held.schema.clone());
        if schema == table.schema {
            return true;
        }
        if chunk.schema_moved || chunk.touched.schema_changed() || never {
            self.void_chunk(name, id, Void::Schema);
            return false;
        }
        for (other, chunk) in &mut snapshot.chunks {
            chunk.schema_moved |= *other != id;
        }
        if table.open.taken > 0 {
            table.close(&self.log);
        }
        table.schema = schema;
        self.mark("chunk-brings-schema");
        // The closed checkpoint may have been one too many: the chunk waits for its turn.
        self.tables.get(name).is_some_and(|t| t.closed.len() < CLOSED_MAX)
    }

    fn release_chunk(&mut self, name: &TableName, id: CommandId) {
        let (now, limit) = (self.now, self.config.snapshot.chunk_rows_max);
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(snapshot) = table.snapshot.as_mut() else { return };
        let Some(Chunk { rows_max, touched, held: Some(held), .. }) = snapshot.chunks.remove(&id) else { return };
        let divided = snapshot.tiling.release(id, held.end, rows_max.saturating_mul(2).min(limit));
        let (kept, dropped) = kept_and_dropped(held.rows, &held.keys, &touched);
        snapshot.released.push(Release {
            fence: held.fence,
            taken: table.taken.upto().clone(),
            schema: held.schema,
            stream_schema: table.schema.clone(),
            survived_truncate: touched.truncated() && !kept.is_empty(),
        });
        let count: u64 = kept.iter().map(|rows| u64::from(rows.count())).sum();
        table.chunk_rows_dropped += dropped.iter().map(|rows| u64::from(rows.count())).sum::<u64>();
        table.chunk_rows += count;
        table.begin_taking(now);
        if table.open.rows.is_empty() {
            table.open.first_sequence = table.sequence + 1;
        }
        table.sequence += count;
        // A range without rows counts, too: that it is done must be stored.
        table.open.taken += count.max(1);
        if let Some(rows) = held.rows {
            table.open.bytes = table.open.bytes.saturating_add(rows.bytes);
            self.budget.admit_chunk(rows.batch, name);
        }
        let overwritten =
            kept.iter().flat_map(|rows| held.keys.iter().skip(rows.rows.start as usize).take(rows.count() as usize));
        let freed = table.open.absent.overwrite(overwritten);
        table.open.rows.extend(kept);
        for rows in &freed {
            self.budget.pass_over(rows);
        }
        for rows in &dropped {
            if planted!(self.config, ChunkRowFillsHole) {
                self.fill_from_chunk(name, rows, &held.keys);
            } else {
                self.budget.pass_over(rows);
            }
        }
        self.mark("chunk-released");
        if divided {
            self.mark("chunk-split");
        }
        if !dropped.is_empty() {
            self.mark(if touched.truncated() { "chunk-emptied-by-truncate" } else { "chunk-row-dropped" });
        }
        self.close_at_hard_limit(name);
    }
}

/// Neighbouring rows of a chunk whose keys nothing unproven has touched, and those of which it has.
fn kept_and_dropped(rows: Option<HeldBatch>, keys: &[EncodedKey], touched: &TouchedKeys) -> (Vec<RowRange>, Vec<RowRange>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let Some(batch) = rows.map(|rows| rows.batch) else { return (kept, dropped) };
    for (row, key) in (0u32..).zip(keys) {
        let to: &mut Vec<RowRange> = if touched.contains(key) { &mut dropped } else { &mut kept };
        match to.last_mut() {
            Some(last) if last.rows.end == row => last.rows.end = row + 1,
            _ => to.push(RowRange { batch, rows: row..row + 1 }),
        }
    }
    (kept, dropped)
}
