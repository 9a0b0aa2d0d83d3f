//! What urutau goes through: how each life is brought about, and where it is killed.

use e2e::gate::{Look, Stand};
use e2e::{Desk, Signal, readers};

use super::Day;
use super::trade::{Change, DATABASE};

/// What urutau goes through, one life after the other; each ends by a kill but for the last, a rest.
pub(super) const ROUND: [Life; 7] =
    [Life::Trading, Life::Read, Life::Large, Life::Joined, Life::Restarts, Life::Commit, Life::Rest];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Ordinary transactions, and killed at any moment.
    Trading,
    /// A table is read anew, its columns change meanwhile, and the kill is in the midst.
    Read,
    /// Killed when a part of a large transaction is committed.
    Large,
    /// A table joins, or is read anew in later rounds, and the kill is in the midst.
    Joined,
    /// The server is shut down and crashes.
    Restarts,
    /// Killed at a boundary inside of a commit.
    Commit,
    /// Everything that is there is copied, and compared.
    Rest,
}

/// The boundaries inside of a commit, each of which has its turn. Which one is the first depends on the seed.
pub(super) const POINTS: [&str; 5] =
    ["iceberg-data-written", "iceberg-vectors-written", "iceberg-metadata-written", "iceberg-swapped", "iceberg-record-stored"];

impl Day {
    pub(super) fn live(&mut self, life: Life) {
        match life {
            Life::Trading => self.trading(),
            Life::Read => self.read(0),
            Life::Large => self.large(),
            Life::Joined => self.joined(),
            Life::Restarts => self.restarts(),
            Life::Commit => self.commit(),
            Life::Rest => self.rest(),
        }
        self.meanwhile();
    }

    fn trading(&mut self) {
        self.start();
        for _ in 0..self.trade.random.below(4) {
            self.ordinary();
            self.look();
        }
        self.truncate();
        let open = self.trade.open();
        self.ordinary();
        open.commit();
        self.trade.mark();
        self.meet("a transaction that committed behind later ones");
        self.evolve();
        self.see_it_copied("a TRUNCATE and a change of columns");
        self.meet("a TRUNCATE while the log was followed");
        self.meet("a change of columns while the log was followed");
        for _ in 0..self.trade.random.below(4) {
            self.ordinary();
        }
        self.kill();
    }

    /// A table is read, its columns change in the midst, and the kill is in the midst too.
    fn read(&mut self, number: usize) {
        self.start();
        let changes = [Change::Add, Change::Rename];
        for turn in 0.. {
            assert!(turn < 50, "no change of columns comes in the midst of a snapshot");
            let before = self.freeze_half_read(number);
            self.send(Signal::Continue);
            self.evolve_table(number, changes[turn % 2]);
            let after = self.look().tables.remove(&self.name(number)).expect("a table that is read");
            if after.is_half_read() && after.generation == before {
                self.meet("a change of columns while the table was read");
                break;
            }
        }
        self.freeze_half_read(number);
        self.kill();
    }

    /// Freezes the run in the midst of reading a table; which generation that is.
    fn freeze_half_read(&mut self, number: usize) -> u64 {
        let name = self.name(number);
        let is_half_read = |look: &Look| look.tables.get(&name).is_some_and(Stand::is_half_read);
        let frozen = self.freeze_when("a table in the midst of being read", is_half_read, |day| day.read_anew(number));
        frozen.tables[&name].generation
    }

    fn large(&mut self) {
        self.start();
        let rows = self.large / 2 + self.trade.random.below(self.large / 2) + 1;
        let is_divided = |look: &Look| look.tables.values().any(|stand| stand.is_divided);
        let stock = self.has_stock;
        self.trade.large(rows, stock);
        self.meet("a large transaction");
        self.freeze_when("a table in the midst of a large transaction", is_divided, |day| {
            // All of it may have been copied between two looks.
            let look = day.look();
            if day.has_copied(&look, day.trade.last_mark()) {
                day.trade.large(rows, stock);
            }
        });
        self.kill();
    }

    fn joined(&mut self) {
        if !self.has_stock {
            self.has_stock = true;
            self.may_be_read(2, 1);
            self.write_pipeline();
            self.meet("a table that joined");
        } else {
            self.trade.thin(2);
        }
        self.read(2);
    }

    fn restarts(&mut self) {
        self.start();
        self.ordinary();
        self.trade.server.restart();
        self.meet("a shutdown of the server while urutau ran");
        self.ordinary();
        self.freeze_half_read(0);
        let open = self.trade.open();
        self.trade.server.crash();
        open.lost();
        self.trade.server.go();
        self.send(Signal::Continue);
        self.meet("a crash of the server while a table was read");
        self.meet("a crash of the server while a transaction was open");
        self.ordinary();
        self.kill();
    }

    fn commit(&mut self) {
        let point = POINTS[self.boundaries % POINTS.len()];
        self.boundaries += 1;
        self.ordinary();
        let parked = self.desk.run_parked(point, 1, &[]).unwrap_or_else(|| panic!("with more to copy no run comes to {point}"));
        self.was_killed(parked.kill());
        self.meet("a kill inside of a commit");
    }

    pub(super) fn rest(&mut self) {
        let ended = self.desk.urutau(Desk::RUN).expect_code(0);
        assert!(!ended.stderr.contains("halted"), "{}", ended.stderr);
        let look = self.look_at_rows();
        for (number, reading) in std::mem::take(&mut self.reading) {
            let table = &self.trade.tables[number];
            let stand = &look.tables[&self.name(number)];
            assert_eq!(stand.ranges.1, 0, "{} is not read whole", table.ledger.table);
            if stand.generation >= reading.wanted && !reading.evolved {
                table.ledger.was_read(&self.trade.server, DATABASE);
            }
        }
        self.compare(&readers::READERS[..1]);
    }

    /// What happens while urutau is away.
    fn meanwhile(&mut self) {
        self.ordinary();
        for _ in 0..2 {
            let change = self.evolve();
            self.meet(match change {
                Change::Add => "a change of columns while urutau was away: Add",
                Change::Widen => "a change of columns while urutau was away: Widen",
                Change::Rename => "a change of columns while urutau was away: Rename",
                Change::Drop => "a change of columns while urutau was away: Drop",
            });
            if self.trade.random.below(2) == 0 {
                self.ordinary();
            }
        }
        // In turns, since a day that meets none fails.
        if self.away.is_multiple_of(3) {
            self.truncate();
            self.meet("a TRUNCATE while urutau was away");
        }
        self.away += 1;
        self.ordinary();
    }

    /// Changes a table's columns, in the order of a list: each change and each table has its turn.
    fn evolve(&mut self) -> Change {
        const TURNS: [Change; 5] = [Change::Add, Change::Widen, Change::Rename, Change::Add, Change::Drop];
        let (turn, number) = (TURNS[self.changes % TURNS.len()], self.changes % 3);
        self.changes += 1;
        self.evolve_table(number, turn);
        turn
    }

    fn evolve_table(&mut self, number: usize, change: Change) {
        let looks_different = self.trade.evolve(number, change);
        self.steps += 1;
        if let Some(reading) = self.reading.get_mut(&number).filter(|_| looks_different) {
            reading.evolved = true;
            self.trade.tables[number].ledger.may_be_read(&self.trade.server, DATABASE);
        }
    }

    fn truncate(&mut self) {
        self.trade.truncate();
        self.steps += 1;
    }
}
