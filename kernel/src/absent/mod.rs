//! Absent values: what an update did not send of its row, and where it is found (rules H).
//!
//! # Contract
//!
//! A row that lacks a value, and whose earlier image the checkpoint does not have either, is a *hole*: its key, and the last
//! transaction that touched it. Nothing is written while a checkpoint has one; never null, never a placeholder.
//!
//! **Where a hole is known.** The machine sees keys, never values. The source says of each row whether it tells all of its row
//! ([`Told`]), from the first row that lacks something on: tables whose updates are whole pay nothing. Such a checkpoint is
//! *tracked*: it remembers the keys of whole images, of holes, and of holes for which a row was read ([`Absent`]). A row that lacks
//! a value takes it from the image of its *old* key, which netting finds by itself; a hole moves with its row, and is moot when the
//! row is gone, replaced, truncated or overwritten by a released row of a chunk. A row of a chunk never fills one. What was taken
//! before the first such row has no keys here: then a hole may be opened that netting could fill, and is read in vain.
//!
//! **How a value gets into the net.** All holes of a checkpoint are read in one query by their present keys
//! ([`Output::ReadRows`](crate::coordinator::Output::ReadRows)). The rows lie in the row store like others; the `Write` of the
//! part names one for each key ([`Fill`]), and netting takes from it what the last image of that key lacks. Versions, digests and
//! the number of rows do not depend on it, so a replay compares equal (rule P3); after a crash the checkpoint is read again,
//! and its holes are, too.
//!
//! **When it holds.** The answer holds for a hole whose last transaction its snapshot provably saw. While its checkpoint is open it
//! waits until the log has passed the read's fence and takes what is then still a hole: nobody has changed that row up to there, so the
//! value is exact. A checkpoint that had to close (a change of schema, a bound, the budget, the end of a run, a block, several times its
//! age) waits in the queue instead, and takes whole rows as they were read, or deletes: these keys are *ahead*, and the state says up
//! to where. The first one that lacks values is read, one query of a table at a time. After so many attempts for a closed one
//! that found nothing the table halts.
//!
//! **Ahead** is a position: until the cut passes it some keys may show a later state of the source, never an earlier one. It is of
//! the rows that are there: it stays in every state that is built upon them, goes with a TRUNCATE, with a new generation and
//! when the cut contains it, and comes back with an older state that somebody restores. It changes no cut: what is acknowledged,
//! named and replayed is the same. A released chunk row overwrites a key that is ahead exactly as it overwrites any other.
//!
//! **Bounds.** `absent.keys_max` keys are remembered and `absent.holes_max` are holes, then the checkpoint closes. One answer has
//! `absent.read_bytes_max` bytes, held like a chunk until it is taken; what is taken of it counts like rows of the log.
//!
//! An answer does not outlive the session of the log: a source that crashed may have lost what it showed.
//!
//! Not here: sinks that keep a column (rule H2). They would take a hole out of [`Absent`] when the checkpoint closes. Tables that keep
//! every row are not tracked: their source must send all, or refuse the row.

mod reading;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

pub(crate) use reading::Rereading;

use crate::checkpoint::Checkpoint;
use crate::config::{AbsentLimits, Config};
use crate::coordinator::{Coordinator, Fill, RowRange, Told, Touched};
use crate::id::{EncodedKey, TableName, TransactionName};
use crate::planted::planted;
use crate::position::Position;
use crate::state::TableState;

/// What the rows of a checkpoint lack, and what was read for it. A key is in one of the three lists at most.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Absent {
    /// Did a row of it lack a value? From then on its rows come with their keys.
    tracked: bool,
    /// Keys whose last image lacks a value, with the last transaction that touched the row.
    holes: BTreeMap<EncodedKey, TransactionName>,
    /// Keys whose last image lacks a value that was read.
    read: BTreeMap<EncodedKey, Taken>,
    /// Keys whose last image is known to lack nothing. Only an open checkpoint needs them.
    whole: BTreeSet<EncodedKey>,
    /// The fences of the rows that were taken as they were read.
    ahead: Position,
}

/// What was read for a key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Taken {
    row: Option<RowRange>,
    whole: bool,
}

/// Wrong rules that are planted here.
#[derive(Clone, Copy, Default)]
struct Wrong {
    under_new_key: bool,
    forgets_moved: bool,
    keeps_first: bool,
}

/// What became of holes when rows were taken.
#[derive(Default)]
struct Became {
    /// Rows that were read and are needed no more.
    freed: Vec<RowRange>,
    opened: bool,
    moved: bool,
    moot: bool,
}

impl Absent {
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Does an image lack a value that nobody has read?
    pub(crate) fn lacks(&self) -> bool {
        !self.holes.is_empty()
    }

    pub(crate) fn was_filled(&self) -> bool {
        !self.read.is_empty()
    }

    pub(crate) fn ahead(&self) -> &Position {
        &self.ahead
    }

    /// How many keys have holes, and how many are remembered.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.holes.len(), self.holes.len() + self.read.len() + self.whole.len())
    }

    pub(crate) fn is_at_bound(&self, limits: &AbsentLimits) -> bool {
        let (holes, keys) = self.len();
        holes >= limits.holes_max || keys >= limits.keys_max
    }

    /// Is every key in one list at most?
    pub(crate) fn is_consistent(&self) -> bool {
        let twice = |key: &EncodedKey| self.read.contains_key(key) || self.whole.contains(key);
        let both = |key: &EncodedKey| self.whole.contains(key);
        !self.holes.keys().any(twice) && !self.read.keys().any(both)
    }

    /// The checkpoint takes no more rows.
    pub(crate) fn close(&mut self) {
        self.whole.clear();
    }

    /// What the worker is told.
    pub(crate) fn fills(&self) -> Vec<Fill> {
        let fill = |(key, taken): (&EncodedKey, &Taken)| Fill { key: key.clone(), row: taken.row.clone(), whole: taken.whole };
        self.read.iter().map(fill).collect()
    }

    /// Rows in the row store that were read for it.
    pub(crate) fn rows_held(&self) -> u64 {
        self.read.values().filter_map(|taken| taken.row.as_ref()).map(|row| u64::from(row.count())).sum()
    }

    /// They are written.
    pub(crate) fn give_rows(&mut self) -> Vec<RowRange> {
        core::mem::take(&mut self.read).into_values().filter_map(|taken| taken.row).collect()
    }

    /// The same, when they are needed no more.
    pub(crate) fn into_rows(self) -> Vec<RowRange> {
        self.read.into_values().filter_map(|taken| taken.row).collect()
    }

    /// Rows of the log are taken.
    fn take(&mut self, touched: &Touched, wrong: Wrong) -> Became {
        let mut became = Became::default();
        let mut old: Option<&EncodedKey> = None;
        for (n, (key, told)) in touched.keys.iter().zip(&touched.told).enumerate() {
            match told {
                Told::Whole => {
                    self.drop_image(key, &mut became);
                    self.whole.insert(key.clone());
                }
                // What the row was under its old key, the next one asks.
                Told::Gone if touched.told.get(n + 1) == Some(&Told::PartOfMoved) => {}
                Told::Gone => self.drop_image(key, &mut became),
                Told::Part => self.take_part(key, key, &touched.by, wrong, &mut became),
                Told::PartOfMoved => self.take_part(old.unwrap_or(key), key, &touched.by, wrong, &mut became),
                Told::PartOfNew => {
                    self.drop_image(key, &mut became);
                    self.take_part(key, key, &touched.by, wrong, &mut became);
                }
            }
            old = Some(key);
        }
        became
    }

    /// A row that lacks values, and that was under `old` before.
    fn take_part(&mut self, old: &EncodedKey, key: &EncodedKey, by: &TransactionName, wrong: Wrong, became: &mut Became) {
        let (hole, taken, mut whole) = (self.holes.remove(old), self.read.remove(old), self.whole.remove(old));
        let moved = old != key;
        became.moved |= moved && (hole.is_some() || taken.is_some());
        if moved {
            whole |= wrong.under_new_key && self.whole.contains(key);
            self.drop_image(key, became);
        }
        let opens = hole.is_none();
        match (taken, whole) {
            (Some(taken), _) => drop(self.read.insert(key.clone(), taken)),
            (None, true) => drop(self.whole.insert(key.clone())),
            (None, false) if moved && !opens && wrong.forgets_moved => {}
            (None, false) => {
                let last = hole.filter(|_| wrong.keeps_first).unwrap_or_else(|| by.clone());
                became.opened |= opens;
                self.holes.insert(key.clone(), last);
            }
        }
    }

    /// Nothing of a key's image matters any more.
    fn drop_image(&mut self, key: &EncodedKey, became: &mut Became) {
        became.moot |= self.holes.remove(key).is_some();
        self.whole.remove(key);
        became.freed.extend(self.read.remove(key).and_then(|taken| taken.row));
    }

    /// Rows of a chunk overwrite what is there. Returns rows that are needed no more.
    pub(crate) fn overwrite<'a>(&mut self, keys: impl Iterator<Item = &'a EncodedKey>) -> Vec<RowRange> {
        let mut became = Became::default();
        if self.tracked {
            for key in keys {
                self.drop_image(key, &mut became);
                self.whole.insert(key.clone());
            }
        }
        became.freed
    }
}

impl Coordinator {
    /// What rows say of their keys' images. False if they came without the keys that were asked for.
    pub(crate) fn take_images(&mut self, name: &TableName, touched: Option<&Touched>) -> bool {
        let keyed = self.config.tables.get(name).is_some_and(|t| t.keyed);
        let wrong = Wrong {
            under_new_key: planted!(self.config, FilledUnderNewKey),
            forgets_moved: planted!(self.config, HoleForgottenOverKeyChange),
            keeps_first: planted!(self.config, RereadProvesFirst),
        };
        if planted!(self.config, NullForAbsent) {
            return true;
        }
        let Some(table) = self.tables.get_mut(name).filter(|_| keyed) else { return true };
        let absent = &mut table.open.absent;
        let Some(touched) = touched else { return !absent.tracked };
        absent.tracked |= touched.told.iter().any(|told| told.lacks());
        if !absent.tracked {
            return true;
        }
        let became = absent.take(touched, wrong);
        for rows in &became.freed {
            self.budget.pass_over(rows);
        }
        let marks = [(became.opened, "hole-opened"), (became.moved, "hole-moved"), (became.moot, "hole-moot")];
        for (_, mark) in marks.into_iter().filter(|(is, _)| *is) {
            self.mark(mark);
        }
        touched.told.len() == touched.keys.len()
    }
}

/// Up to where keys may be ahead once `point` is committed upon `before`.
pub(crate) fn ahead_after(config: &Config, before: Option<&TableState>, point: &Checkpoint) -> Position {
    let gone = point.truncate_first || planted!(config, AheadClearedTooEarly);
    let passed = |ahead: &Position| point.cut.upto().contains(ahead);
    let stays = before.map(|b| &b.ahead).filter(|ahead| !gone && !passed(ahead)).cloned().unwrap_or_default();
    let own = if planted!(config, AheadNotNoted) { Position::START } else { point.absent.ahead.clone() };
    stays.join(&if passed(&own) { Position::START } else { own })
}
