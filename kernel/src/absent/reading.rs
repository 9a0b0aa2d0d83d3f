//! Rows that are read again: when, what of the answer holds, and when the table gives up (rule H3).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Absent, Taken};
use crate::checkpoint::{Checkpoint, Table};
use crate::coordinator::{Coordinator, HeldBatch, Output, RowRange, RowsAnswer, Stage, Waiting};
use crate::flow::Backoff;
use crate::id::{CheckpointNumber, CommandId, EncodedKey, TableName, TransactionName};
use crate::planted::planted;
use crate::position::Position;
use crate::time::Time;

/// A table's reading of rows for the first of its checkpoints that lacks values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Rereading {
    asked: Option<Asked>,
    held: Option<Held>,
    /// Attempts in a row that found nothing.
    failing: Option<Backoff>,
    /// How many of these were for a closed checkpoint.
    attempts: u32,
    /// What went wrong last, for people.
    why: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asked {
    id: CommandId,
    checkpoint: CheckpointNumber,
    keys: BTreeSet<EncodedKey>,
}

/// An answer, until the log has passed its fence or its checkpoint has closed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Held {
    checkpoint: CheckpointNumber,
    rows: Option<HeldBatch>,
    /// The row of each key, or that there is none.
    found: BTreeMap<EncodedKey, Option<u32>>,
    proven: BTreeSet<TransactionName>,
    fence: Position,
}

impl Rereading {
    pub(crate) fn awaits_answer(&self) -> bool {
        self.asked.is_some()
    }

    /// The checkpoint that an answer waits for.
    pub(crate) fn holds_for(&self) -> Option<CheckpointNumber> {
        self.held.as_ref().map(|held| held.checkpoint)
    }

    /// Rows in the row store that it holds.
    pub(crate) fn rows_held(&self) -> u64 {
        self.held.iter().filter_map(|held| held.rows).map(|rows| u64::from(rows.rows)).sum()
    }

    /// The same, when they are needed no more.
    pub(crate) fn into_rows(self) -> Option<RowRange> {
        let rows = self.held?.rows?;
        Some(RowRange { batch: rows.batch, rows: 0..rows.rows })
    }
}

impl Table {
    /// The number that the open checkpoint gets when it closes.
    fn open_number(&self) -> CheckpointNumber {
        CheckpointNumber(self.checkpoints + 1)
    }

    /// The first checkpoint that lacks values, and whether it is closed.
    fn first_lacking(&self) -> Option<(CheckpointNumber, &Checkpoint, bool)> {
        let closed = self.closed.iter().find(|c| c.absent.lacks()).map(|c| (c.number, c, true));
        closed.or_else(|| self.open.absent.lacks().then(|| (self.open_number(), &self.open, false)))
    }
}

impl Coordinator {
    // ---- asking

    /// When a table's rows are read again, if they are. Values of an open checkpoint are wanted when it would close without them; of a
    /// closed one at once.
    pub(crate) fn next_row_read(&self, name: &TableName) -> Option<Time> {
        let table = self.tables.get(name)?;
        // At the end of a run the log is not opened again, and rows are read all the same.
        let reads = self.stage == Stage::Running || self.drain.is_closing();
        if !reads || table.rereading.asked.is_some() || table.rereading.held.is_some() {
            return None;
        }
        let (_, point, closed) = table.first_lacking()?;
        if closed && table.rereading.attempts >= self.config.absent.attempts_max {
            return None;
        }
        let due = if closed || table.is_full(&self.config) { point.opened } else { point.opened + self.config.checkpoint.age };
        Some(table.rereading.failing.map_or(due, |failing| failing.at.max(due)))
    }

    /// Reads the rows that are due.
    pub(crate) fn read_rows_again(&mut self) {
        for name in self.names() {
            if self.next_row_read(&name).is_some_and(|at| at <= self.now) {
                self.ask_for_rows(&name);
            }
        }
    }

    fn ask_for_rows(&mut self, name: &TableName) {
        let id = self.next_id();
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some((checkpoint, point, closed)) = table.first_lacking() else { return };
        let schema = if closed { point.schema.clone() } else { table.schema.clone() };
        let keys: BTreeSet<EncodedKey> = point.absent.holes.keys().cloned().collect();
        let about: BTreeSet<&TransactionName> = point.absent.holes.values().collect();
        let about: Vec<TransactionName> = about.into_iter().cloned().collect();
        table.rereading.asked = Some(Asked { id, checkpoint, keys: keys.clone() });
        self.mark(if closed { "rows-read-for-a-closed-checkpoint" } else { "rows-read" });
        let (table, keys, bytes_max) = (name.clone(), keys.into_iter().collect(), self.config.absent.read_bytes_max);
        self.push(Output::ReadRows { id, table, keys, schema, bytes_max, about });
    }

    // ---- answers

    pub(crate) fn rows_read(&mut self, id: CommandId, answer: RowsAnswer) {
        if let Some(rows) = answer.rows {
            self.budget.grant_chunk(rows);
        }
        let Some(name) = self.table_of_rows(id) else {
            self.stale_answer();
            return self.give_rows_up(answer.rows);
        };
        let Some(asked) = self.tables.get_mut(&name).and_then(|t| t.rereading.asked.take()) else { return };
        if let Some(wrong) = is_no_answer(&asked, &answer) {
            self.give_rows_up(answer.rows);
            let why = format!("what was read again is no answer: {wrong}. This is a fault of the source driver");
            return self.rows_can_not_be_read(&name, asked.checkpoint, why);
        }
        if !self.is_this_log(&answer.identity) {
            self.mark("rows-of-another-log");
            self.give_rows_up(answer.rows);
            let why = "another server answered than the one whose log is read";
            self.attempt_failed(&name, asked.checkpoint, String::from(why));
            // The old session may live on, with nothing to say: only opening the log anew brings both to one server.
            return self.session_left(String::from(why));
        }
        let RowsAnswer { rows, keys, gone, visibility, fence, identity: _ } = answer;
        let there = keys.into_iter().zip((0u32..).map(Some));
        let found = there.chain(gone.into_iter().map(|key| (key, None))).collect();
        let Some(table) = self.tables.get_mut(&name) else { return };
        table.rereading.held = Some(Held { checkpoint: asked.checkpoint, rows, found, proven: visibility.proven, fence });
    }

    pub(crate) fn rows_read_failed(&mut self, id: CommandId, why: &str) -> bool {
        let Some(name) = self.table_of_rows(id) else { return false };
        let asked = self.tables.get_mut(&name).and_then(|t| t.rereading.asked.take());
        if let Some(asked) = asked {
            self.mark("rows-read-failed");
            self.attempt_failed(&name, asked.checkpoint, String::from(why));
        }
        true
    }

    pub(crate) fn rows_read_refused(&mut self, id: CommandId, why: &str) -> bool {
        let Some(name) = self.table_of_rows(id) else { return false };
        let asked = self.tables.get_mut(&name).and_then(|t| t.rereading.asked.take());
        if let Some(asked) = asked {
            self.rows_can_not_be_read(&name, asked.checkpoint, String::from(why));
        }
        true
    }

    fn table_of_rows(&self, id: CommandId) -> Option<TableName> {
        let asked = |t: &Table| t.rereading.asked.as_ref().is_some_and(|asked| asked.id == id);
        self.tables.iter().find(|(_, t)| asked(t)).map(|(name, _)| name.clone())
    }

    fn give_rows_up(&mut self, rows: Option<HeldBatch>) {
        if let Some(rows) = rows {
            self.budget.give_up(rows.batch);
        }
    }

    /// The log's session is over, and with it what was read from its server and not taken.
    pub(crate) fn void_rows_of_session(&mut self) {
        for name in self.names() {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            table.rereading.asked = None;
            let rows = table.rereading.held.take().and_then(|held| held.rows);
            self.give_rows_up(rows);
        }
    }

    /// An attempt found nothing: again after a while, for a closed checkpoint not for ever.
    fn attempt_failed(&mut self, name: &TableName, checkpoint: CheckpointNumber, why: String) {
        let (now, retry) = (self.now, self.config.retry);
        let Some(table) = self.tables.get_mut(name) else { return };
        let closed = table.closed.iter().any(|c| c.number == checkpoint);
        let rereading = &mut table.rereading;
        rereading.failing = Some(Backoff::after(rereading.failing, now, &retry));
        rereading.attempts += u32::from(closed);
        rereading.why = Some(why);
    }

    /// It can never work: the checkpoint closes, and its table halts.
    fn rows_can_not_be_read(&mut self, name: &TableName, checkpoint: CheckpointNumber, why: String) {
        if self.tables.get(name).is_some_and(|t| t.open_number() == checkpoint && t.open.absent.lacks()) {
            self.close(name);
        }
        let attempts = self.config.absent.attempts_max;
        if let Some(table) = self.tables.get_mut(name) {
            table.rereading.attempts = attempts;
            table.rereading.why = Some(why);
        }
    }

    /// A closed checkpoint whose values nobody finds: the table goes back in front of it.
    pub(crate) fn halt_what_lacks_values(&mut self) {
        let most = self.config.absent.attempts_max;
        for name in self.names() {
            let Some(table) = self.tables.get(&name) else { continue };
            let hopeless = table.rereading.attempts >= most && table.rereading.asked.is_none();
            // What flies before it comes to its end first.
            let free = table.flight.is_none() && table.committing.is_none();
            let Some(front) = table.closed.front().filter(|c| hopeless && free && c.absent.lacks()) else { continue };
            let (rows, _) = front.absent.len();
            let last = table.rereading.why.clone().unwrap_or_default();
            let what = if rows == 1 { String::from("1 row does") } else { format!("{rows} rows do") };
            let why = format!(
                "updates of {what} not carry all values, and they could not be read from the table either: {last}. Mend that, then \
                 resume the table, which reads them again; a source that sends whole rows of table {name} needs no such reading"
            );
            self.mark("halted-for-values");
            self.halt(&name, why);
        }
    }

    // ---- filling

    /// Takes what was read, where it holds now.
    pub(crate) fn fill_holes(&mut self) {
        for name in self.names() {
            self.fill_holes_of(&name);
        }
    }

    fn fill_holes_of(&mut self, name: &TableName) {
        let early = planted!(self.config, RereadBeforeFence);
        let unproven = planted!(self.config, RereadWithoutProof);
        let Some(table) = self.tables.get_mut(name) else { return };
        let Some(held) = &table.rereading.held else { return };
        let number = held.checkpoint;
        let closed = table.closed.iter().find(|c| c.number == number).map(|c| c.cut.upto());
        let exact = closed.unwrap_or(table.taken.upto()).contains(&held.fence) || early;
        let is_open = closed.is_none() && table.open_number() == number;
        if is_open && !exact {
            return;
        }
        let Some(held) = table.rereading.held.take() else { return };
        let point = if is_open { Some(&mut table.open) } else { table.closed.iter_mut().find(|c| c.number == number) };
        let Some(point) = point else { return self.give_rows_up(held.rows) };
        let filled = point.absent.fill(&held, exact, unproven);
        if let Some(rows) = held.rows {
            point.bytes = point.bytes.saturating_add(if filled.used.is_empty() { 0 } else { rows.bytes });
            self.budget.admit_chunk(rows.batch, name);
            let unused = (0..rows.rows).filter(|row| !filled.used.contains(row));
            for row in unused {
                self.budget.pass_over(&RowRange { batch: rows.batch, rows: row..row + 1 });
            }
        }
        if filled.keys == 0 && point.absent.lacks() {
            self.mark("rows-read-in-vain");
            let why = if filled.vanished {
                "the rows are gone, and the log does not say so"
            } else {
                "the transactions that changed them can't be seen there yet"
            };
            self.attempt_failed(name, number, String::from(why));
        } else {
            (table.rereading.failing, table.rereading.attempts, table.rereading.why) = (None, 0, None);
        }
        if filled.keys > 0 {
            self.mark(if exact { "holes-filled" } else { "holes-filled-ahead" });
        }
        if filled.deleted {
            self.mark("deleted-ahead");
        }
    }

    /// What a table waits for whose checkpoint lacks values.
    pub(crate) fn waits_for_values(&self, name: &TableName, table: &Table) -> Option<Waiting> {
        let (_, point, _) = table.first_lacking()?;
        let held = table.rereading.held.is_some();
        let (what, ended_by) = match (&table.rereading.asked, held) {
            (Some(_), _) => ("rows to be read again, for values that updates left out", "an answer"),
            (None, true) => ("the log to pass where rows were read again", "reading the log, or the checkpoint's age"),
            (None, false) => ("values that updates left out", "reading the rows again, or a halt after so many attempts"),
        };
        let (since, why) = (Some(point.opened), table.rereading.why.clone());
        Some(Waiting { table: Some(name.clone()), what, since, why, ended_by })
    }
}

/// What is wrong with an answer, if its driver broke the contract.
fn is_no_answer(asked: &Asked, answer: &RowsAnswer) -> Option<String> {
    let rows = answer.rows.map_or(0, |rows| rows.rows as usize);
    let all = || answer.keys.iter().chain(&answer.gone);
    if rows != answer.keys.len() {
        return Some(format!("it has {rows} rows and {} keys", answer.keys.len()));
    }
    let distinct: BTreeSet<&EncodedKey> = all().collect();
    if distinct.len() != all().count() {
        return Some(String::from("it tells a key twice"));
    }
    if distinct.iter().any(|key| !asked.keys.contains(*key)) {
        return Some(String::from("it tells a key that was not asked for"));
    }
    distinct.is_empty().then(|| String::from("it tells nothing"))
}

/// What filling came to.
#[derive(Default)]
struct Filled {
    keys: usize,
    /// Rows of the answer that are needed now.
    used: BTreeSet<u32>,
    deleted: bool,
    /// A row is gone though the log has passed the fence and did not say so.
    vanished: bool,
}

impl Absent {
    /// Takes what holds of an answer: exact values, or whole rows that may be later ones.
    fn fill(&mut self, held: &Held, exact: bool, unproven: bool) -> Filled {
        let mut filled = Filled::default();
        for (key, row) in &held.found {
            let Some(last) = self.holes.get(key).filter(|last| unproven || held.proven.contains(*last)) else { continue };
            if exact && row.is_none() && !unproven {
                filled.vanished |= held.proven.contains(last);
                continue;
            }
            self.holes.remove(key);
            let of = |row: &u32| held.rows.map(|rows| RowRange { batch: rows.batch, rows: *row..*row + 1 });
            self.read.insert(key.clone(), Taken { row: row.as_ref().and_then(of), whole: !exact || row.is_none() });
            filled.keys += 1;
            filled.used.extend(row);
            filled.deleted |= row.is_none();
            if !exact {
                self.ahead.join_with(&held.fence);
            }
        }
        filled
    }

    /// A planted bug: a row of a chunk is taken for a hole.
    fn fill_from(&mut self, key: &EncodedKey, row: &RowRange) -> bool {
        let hole = self.holes.remove(key).is_some();
        if hole {
            self.read.insert(key.clone(), Taken { row: Some(row.clone()), whole: false });
        }
        hole
    }
}

impl Coordinator {
    /// A planted bug: rows of a chunk that something unproven touched fill holes.
    pub(crate) fn fill_from_chunk(&mut self, name: &TableName, rows: &RowRange, keys: &[EncodedKey]) {
        let Some(table) = self.tables.get_mut(name) else { return };
        for row in rows.rows.clone() {
            let one = RowRange { batch: rows.batch, rows: row..row + 1 };
            let fills = keys.get(row as usize).is_some_and(|key| table.open.absent.fill_from(key, &one));
            if !fills {
                self.budget.pass_over(&one);
            }
        }
    }
}
