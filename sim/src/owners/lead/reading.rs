//! From the log to open checkpoints, row by row with its version and its owner, and to closed ones.

use std::collections::BTreeMap;

use super::*;

/// Rows on their way to the owners of their keys.
type Routed = BTreeMap<(Tab, Slot), Vec<Row>>;

impl Lead {
    /// The one reader goes on where the first of the tables stands that are not blocked.
    pub(super) fn go_back(&mut self) {
        if let Some(from) = self.tables.iter().filter(|t| t.blocked.is_none()).map(|t| t.taken.upto).min() {
            self.reader = Cut { upto: from, coordinate: 0 };
        }
        self.reading = None;
        self.read_at = self.now;
    }

    pub(super) fn read(&mut self, id: u64, events: Vec<(Cut, Event)>) {
        if self.reading != Some(id) {
            return;
        }
        self.reading = None;
        self.read_at = if events.is_empty() { self.now + POLL } else { self.now };
        let mut routed = BTreeMap::new();
        for (at, event) in events {
            match event {
                Event::Ended => {
                    self.reader = Cut { upto: at.upto + 1, coordinate: 0 };
                    self.transaction_ended(at.upto + 1, &mut routed);
                }
                Event::Change(table, change) => {
                    self.reader = Cut { upto: at.upto, coordinate: at.coordinate + 1 };
                    self.change(table, at, change, &mut routed);
                }
            }
        }
        self.flush(&mut routed);
    }

    pub(super) fn change(&mut self, n: Tab, at: Cut, change: Change, routed: &mut Routed) {
        let now = self.now;
        let table = &mut self.tables[n];
        if table.blocked.is_some() || at < table.taken {
            return;
        }
        if table.closed.len() >= 2 {
            table.blocked = Some(now + STALL);
            return;
        }
        if table.is_open_empty() {
            table.opened = now;
        }
        table.taken = Cut { upto: at.upto, coordinate: at.coordinate + 1 };
        match change {
            Change::Row { old, key, value } => {
                let halves = old.map(|old| (old, None)).into_iter().chain([(key, value)]);
                for (key, value) in halves {
                    self.take(n, key, value, routed);
                }
            }
            Change::Truncated => {
                self.flush(routed);
                let incarnation = self.incarnation;
                let table = &mut self.tables[n];
                table.sequence += 1;
                table.begun = Some(Version::new(incarnation, table.sequence));
                table.rows = 0;
                self.route(RouterInput::Truncated { table: name(n) });
                self.act();
            }
        }
        if self.tables[n].rows >= self.limits.rows * 2 {
            self.flush(routed);
            self.close(n);
        }
    }

    /// A row, or a half of a key that moved, gets its version and goes to the owner of its key.
    pub(super) fn take(&mut self, n: Tab, key: Key, value: Option<Value>, routed: &mut Routed) {
        let Some(layout) = self.router.as_ref().and_then(|r| r.layout_of(&name(n))) else { return };
        let incarnation = self.incarnation;
        let table = &mut self.tables[n];
        if table.kind == Kind::Appended && value.is_none() {
            return;
        }
        table.sequence += 1;
        table.rows += 1;
        let row = Row { key, value, version: Version::new(incarnation, table.sequence) };
        self.numbered.push((n, row));
        routed.entry((n, layout.slot_of(&encoded(key)))).or_default().push(row);
    }

    pub(super) fn flush(&mut self, routed: &mut Routed) {
        let mut of = BTreeMap::<Tab, Vec<(Slot, Run)>>::new();
        for ((table, slot), rows) in std::mem::take(routed) {
            self.batches += 1;
            let batch = BatchId(self.batches);
            let run = Run { rows: RowRange { batch, rows: 0..rows.len() as u32 }, first: rows[0].version };
            self.store.insert(batch, rows);
            of.entry(table).or_default().push((slot, run));
        }
        for (table, rows) in of {
            self.route(RouterInput::Taken { table: name(table), rows });
        }
    }

    pub(super) fn transaction_ended(&mut self, upto: usize, routed: &mut Routed) {
        for table in self.tables.iter_mut().filter(|t| t.blocked.is_none() && t.taken.upto < upto) {
            table.taken = Cut { upto, coordinate: 0 };
        }
        for n in 0..self.tables.len() {
            if self.tables[n].rows >= self.limits.rows && self.tables[n].is_free() {
                self.flush(routed);
                self.close(n);
            }
        }
    }

    pub(super) fn close(&mut self, n: Tab) {
        let table = &mut self.tables[n];
        table.checkpoints += 1;
        let number = CheckpointNumber(table.checkpoints);
        if table.closed.is_empty() && table.flight.is_none() {
            table.moved = self.now;
        }
        table.closed.push_back(Closed { number, cut: table.taken, sequence: table.sequence, begun: table.begun.take() });
        table.rows = 0;
        self.route(RouterInput::Closed { table: name(n), checkpoint: number });
    }
}
