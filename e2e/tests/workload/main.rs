//! A long day of three tables: random transactions, some of them large, keys that move, rows that go and come again, TRUNCATE, columns that
//! come, go, get other names and wider types, a table that joins, while urutau is killed again and again and the server restarts. In the end,
//! and at each rest between, two independent readers find in the copies what the ledger at the server says; and at every look the position
//! gate holds: see [`Gate`].
//!
//! The day goes by a count of steps from a seed, not by the clock. What it must meet (a kill in the midst of a snapshot, of a large transaction,
//! of a commit ...) it brings about: it looks, freezes the run when it is there, and looks again before it kills. How many turns that takes
//! depends on how fast everybody is: a seed's day is much the same again, not to the last statement. `URUTAU_WORKLOAD_STEPS` makes it
//! longer, `URUTAU_WORKLOAD_SEED` another one. A day that fails says both, and leaves what there was in the target folder.

mod lives;
mod trade;

use std::collections::BTreeMap;
use std::path::Path;

use e2e::gate::{Gate, Look, Stand};
use e2e::http::{free_port, post, table};
use e2e::postgres::{Postgres, Release};
use e2e::{Binary, Desk, Ended, Process, Signal, readers, wait_until};

use lives::{Life, POINTS, ROUND};
use trade::{DATABASE, Trade};

/// Steps of a short day; one more round of lives begins as long as there are fewer. One round has more: a short day is one round, and is
/// killed at one boundary inside of a commit.
const STEPS: u64 = 30;
/// Rows of a large transaction at most, in a short day and in a longer one.
const LARGE: (u64, u64) = (20_000, 100_000);

/// Looks until something is given up.
const LOOKS: usize = 500;

/// What every day must meet.
const MET: [&str; 19] = [
    "a kill",
    "a kill while there was more to copy",
    "a kill while a table was read",
    "a kill in the midst of a large transaction",
    "a kill inside of a commit",
    "a change of columns while urutau was away: Add",
    "a change of columns while urutau was away: Widen",
    "a change of columns while urutau was away: Rename",
    "a change of columns while urutau was away: Drop",
    "a change of columns while the log was followed",
    "a change of columns while the table was read",
    "a TRUNCATE while urutau was away",
    "a TRUNCATE while the log was followed",
    "a large transaction",
    "a transaction that committed behind later ones",
    "a shutdown of the server while urutau ran",
    "a crash of the server while a table was read",
    "a crash of the server while a transaction was open",
    "a table that joined",
];

/// A table that is read, until a rest.
struct Reading {
    /// The generation that ends it.
    wanted: u64,
    /// Have its columns changed meanwhile so that rows look different?
    evolved: bool,
}

struct Day {
    release: Release,
    seed: u64,
    /// Steps that it is asked to have at least; none where a test leads through it.
    wanted: u64,
    steps: u64,
    /// Rows of a large transaction at most.
    large: u64,
    trade: Trade,
    desk: Desk,
    gate: Gate,
    run: Option<(Process, u16)>,
    reading: BTreeMap<usize, Reading>,
    has_stock: bool,
    changes: usize,
    /// Times that urutau was away.
    away: usize,
    boundaries: usize,
    met: BTreeMap<&'static str, u64>,
}

impl Day {
    fn begin(release: Release, seed: u64, wanted: u64) -> Day {
        let trade = Trade::begin(Postgres::start(release, &[]), seed);
        let day = Day {
            release,
            seed,
            wanted,
            steps: 0,
            large: if wanted > STEPS { LARGE.1 } else { LARGE.0 },
            trade,
            desk: Desk::new(),
            gate: Gate::new("desk"),
            run: None,
            reading: BTreeMap::new(),
            has_stock: false,
            changes: 0,
            away: 0,
            boundaries: first_boundary(seed),
            met: BTreeMap::new(),
        };
        day.write_pipeline();
        day.desk.urutau(Desk::RUN).expect_code(0);
        day
    }

    fn write_pipeline(&self) {
        let stock = if self.has_stock { "  - { source: public.stock }\n" } else { "" };
        let text = format!(
            "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {{ interval: 200ms, maxRows: 1000 }} }}
snapshot: {{ chunkRows: 40, parallelism: 2 }}
tables:
  - {{ source: public.orders }}
  - {{ source: public.lines }}
{stock}",
            self.trade.server.uri(DATABASE)
        );
        self.desk.write("pipeline.yaml", &text);
    }

    fn meet(&mut self, what: &'static str) {
        assert!(MET.contains(&what), "{what}");
        *self.met.entry(what).or_default() += 1;
    }

    fn ordinary(&mut self) {
        self.trade.ordinary();
        self.steps += 1;
    }

    fn look(&mut self) -> Look {
        self.gate.look(&self.trade.server, &self.desk, &[]).unwrap_or_else(|why| panic!("{why}"))
    }

    fn look_at_rows(&mut self) -> Look {
        self.judge_rows().unwrap_or_else(|why| panic!("{why}"))
    }

    /// Looks, and holds the marks in the rows against the positions beside them. `Err` says what is wrong.
    fn judge_rows(&mut self) -> Result<Look, String> {
        let questions: Vec<(&str, &str)> = self.trade.tables.iter().map(|table| (table.ledger.table, table.marked)).collect();
        let look = self.gate.look(&self.trade.server, &self.desk, &questions)?;
        let mut faults = Vec::new();
        for (table, answer) in self.trade.tables.iter().zip(&look.answers) {
            let name = format!("public.{}", table.ledger.table);
            let Some(stand) = look.tables.get(&name) else { continue };
            let seen = answer.as_ref().map(|mark| mark.parse::<usize>().expect("a mark is a number"));
            let wrong = wrong_mark(&self.trade.marks, stand, seen, table.ledger.table == "lines");
            faults.extend(wrong.map(|fault| format!("{name}: {fault}")));
        }
        if faults.is_empty() { Ok(look) } else { Err(format!("{}\n{look:#?}\n{:?}", faults.join("; "), self.trade.marks)) }
    }

    fn start(&mut self) {
        let port = free_port();
        self.run = Some((self.desk.run_at(Binary::Plain, port, None), port));
        self.wait("the run's beginning", |_, port| table(port, "public.orders").filter(|orders| orders["phase"] != "pending"));
    }

    /// Waits for something about the run, which must go on.
    fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&Trade, u16) -> Option<T>) -> T {
        let (process, port) = self.run.as_mut().expect("a run");
        wait_until(what, || {
            assert!(process.runs(), "{what}: it ended by itself:\n{}", process.stderr());
            look(&self.trade, *port)
        })
    }

    fn send(&mut self, signal: Signal) {
        let (process, _) = self.run.as_mut().expect("a run");
        assert!(process.runs(), "it ended by itself:\n{}", process.stderr());
        process.send(signal);
    }

    /// Kills the run wherever it is.
    fn kill(&mut self) -> Look {
        self.send(Signal::Kill);
        let (process, _) = self.run.take().expect("a run");
        self.was_killed(process.wait())
    }

    /// A run was killed: what it said is kept, and what it left is looked at.
    fn was_killed(&mut self, ended: Ended) -> Look {
        self.desk.write(&format!("life-{}.log", self.met.get("a kill").unwrap_or(&0)), &ended.stderr);
        assert_eq!(ended.signal, Some(9), "it ended by itself:\n{}", ended.stderr);
        for word in ["halted", "panicked", "a fault in urutau"] {
            assert!(!ended.stderr.contains(word), "it says '{word}':\n{}", ended.stderr);
        }
        self.meet("a kill");
        let look = self.look_at_rows();
        let last = self.trade.last_mark();
        if look.tables.values().any(|stand| stand.effective < last) {
            self.meet("a kill while there was more to copy");
        }
        if look.tables.values().any(|stand| stand.is_half_read()) {
            self.meet("a kill while a table was read");
        }
        if look.tables.values().any(|stand| stand.is_divided) {
            self.meet("a kill in the midst of a large transaction");
        }
        look
    }

    /// Freezes the run when it is so, done `meanwhile` as often as it is not, and sees that it still is.
    fn freeze_when(&mut self, what: &str, is_so: impl Fn(&Look) -> bool, mut meanwhile: impl FnMut(&mut Day)) -> Look {
        for _ in 0..LOOKS {
            if is_so(&self.look_at_run(what)) {
                self.send(Signal::Stop);
                let frozen = self.gate.look_at_frozen(&self.trade.server, &self.desk);
                let frozen = frozen.unwrap_or_else(|why| panic!("{why}"));
                if let Some(look) = frozen.filter(|look| is_so(look)) {
                    return look;
                }
                self.send(Signal::Continue);
            }
            meanwhile(self);
        }
        self.give_up(what)
    }

    /// Looks until everything that was done up to now is copied by the run.
    fn see_it_copied(&mut self, what: &str) {
        let last = self.trade.last_mark();
        // A mark's place may lie a little behind the end of its commit, where a table stands that has it: one more leads beyond.
        self.trade.mark();
        for _ in 0..LOOKS {
            let look = self.look_at_run(what);
            if self.has_copied(&look, last) {
                return;
            }
        }
        self.give_up(what)
    }

    /// Has every table's copy what was done up to this mark?
    fn has_copied(&self, look: &Look, mark: u64) -> bool {
        (0..self.tables()).all(|number| look.tables.get(&self.name(number)).is_some_and(|stand| stand.effective >= mark))
    }

    fn look_at_run(&mut self, what: &str) -> Look {
        let (process, _) = self.run.as_mut().expect("a run");
        assert!(process.runs(), "{what}: it ended by itself:\n{}", process.stderr());
        self.look()
    }

    fn give_up(&self, what: &str) -> ! {
        panic!("{what}: does not come about:\n{}", self.run.as_ref().map(|(process, _)| process.stderr()).unwrap_or_default());
    }

    /// Has a table read anew, unless it is being read.
    fn read_anew(&mut self, number: usize) {
        let name = self.name(number);
        let port = self.run.as_ref().expect("a run").1;
        let Some(before) = table(port, &name).filter(|table| table["phase"] == "streaming") else { return };
        self.may_be_read(number, before["generation"].as_u64().expect("a generation") + 1);
        let asked = post(port, &format!("/tables/{name}/resnapshot")).map(|answer| answer.status);
        assert_eq!(asked, Some(202), "{name} is not read anew");
    }

    /// A table is read from now on.
    fn may_be_read(&mut self, number: usize, wanted: u64) {
        self.trade.tables[number].ledger.may_be_read(&self.trade.server, DATABASE);
        self.reading.insert(number, Reading { wanted, evolved: false });
    }

    fn name(&self, number: usize) -> String {
        format!("public.{}", self.trade.tables[number].ledger.table)
    }

    fn compare(&self, readers: &[&str]) {
        if let Some(difference) = self.difference(readers) {
            panic!("{difference}");
        }
    }

    /// How many tables the pipeline has.
    fn tables(&self) -> usize {
        if self.has_stock { 3 } else { 2 }
    }

    /// What the first of these readers finds in a copy that is not as its ledger says.
    fn difference(&self, readers: &[&str]) -> Option<String> {
        self.trade.tables[..self.tables()].iter().find_map(|table| {
            readers.iter().find_map(|reader| {
                let differs = table.ledger.difference(&self.trade.server, DATABASE, &self.desk, reader)?;
                Some(format!("{reader}: {}: {differs}", table.ledger.table))
            })
        })
    }
}

/// Rows at a table's position have the last mark whose transaction had ended there, and none whose transaction began behind.
/// `is_emptied`: somebody may have emptied the table, and not filled it again.
fn wrong_mark(marks: &[u64], stand: &Stand, seen: Option<usize>, is_emptied: bool) -> Option<String> {
    let upto = stand.upto;
    // Some rows of what is behind the position are here already, or some of what is before it were not read yet.
    let is_partial = stand.is_divided || (stand.generation == 1 && stand.ranges.1 > 0);

    // The marked row itself may be missing then. Where it is there, it is never older than the position.
    let least = marks.iter().rposition(|end| *end <= upto);
    let may_be_missing = is_partial || is_emptied;
    if seen < least && !(seen.is_none() && may_be_missing) {
        return Some(format!("at {upto} its rows have the mark {seen:?}, and the position says that they have {least:?}"));
    }

    // What is in the midst may be ahead; and a mark's place may lie a little behind the end of its commit, where a table stands that has
    // some of the next one.
    let before = seen.and_then(|seen| seen.checked_sub(1)).map_or(0, |before| marks[before]);
    let is_ahead = upto < before && !is_partial;
    is_ahead.then(|| format!("at {upto} its rows have the mark {seen:?} already, which was made behind {before}"))
}

impl Drop for Day {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("workload-{:?}-{:x}", self.release, self.seed));
        let _ = std::fs::remove_dir_all(&kept);
        if let Some((process, _)) = &self.run {
            self.desk.write("life-last.log", &process.stderr());
            process.send(Signal::Kill);
        }
        let _ = std::process::Command::new("cp").arg("-r").arg(self.desk.path()).arg(&kept).status();
        let _ = std::fs::write(kept.join("server.log"), self.trade.server.log());
        for table in &self.trade.tables {
            let said = self
                .trade
                .server
                .try_sql(DATABASE, &format!("SELECT key, rows FROM ledger.{0} ORDER BY key", table.ledger.table));
            let _ = std::fs::write(kept.join(format!("ledger-{}", table.ledger.table)), said.unwrap_or_else(|why| why));
        }
        if self.wanted > 0 {
            eprintln!("again: URUTAU_WORKLOAD_SEED={:#x} URUTAU_WORKLOAD_STEPS={}", self.seed, self.wanted);
        }
        eprintln!(
            "PostgreSQL {:?}: failed after {} steps, met {:#?}; what there was: {}",
            self.release,
            self.steps,
            self.met,
            kept.display()
        );
    }
}

/// A number that an environment variable says, in digits, or in hexadecimal ones behind `0x`.
fn said(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    Some(number.unwrap_or_else(|_| panic!("{variable}: '{text}' is no number")))
}

fn a_day(release: Release, seed: u64) {
    let seed = said("URUTAU_WORKLOAD_SEED").unwrap_or(seed).max(1); // Zero is no seed for this generator.
    let mut day = Day::begin(release, seed, said("URUTAU_WORKLOAD_STEPS").unwrap_or(STEPS));
    while day.steps < day.wanted {
        ROUND.into_iter().for_each(|life| day.live(life));
    }
    day.rest();
    day.compare(&readers::READERS);
    eprintln!("seed {seed:#x}, {} steps, met {:#?}", day.steps, day.met);
    let unmet: Vec<&str> = MET.into_iter().filter(|what| !day.met.contains_key(what)).collect();
    assert!(unmet.is_empty(), "a day that meets too little: {unmet:?}");
}

/// The seeds of the days on PostgreSQL 15 and 18.
const SEEDS: [u64; 2] = [0x5EED_0000_0000_0F15, 0x5EED_0000_0000_0F18];

// What one short day does not visit the other one does.
const _: () = assert!(first_boundary(SEEDS[0]) != first_boundary(SEEDS[1]));

/// Which of the boundaries inside of a commit a day begins with.
const fn first_boundary(seed: u64) -> usize {
    (seed % POINTS.len() as u64) as usize
}

#[test]
fn three_tables_survive_kills_restarts_and_changes_of_columns_on_postgresql_15() {
    a_day(Release::Fifteen, SEEDS[0]);
}

#[test]
fn three_tables_survive_kills_restarts_and_changes_of_columns_on_postgresql_18() {
    a_day(Release::Eighteen, SEEDS[1]);
}

#[test]
fn what_is_planted_at_each_judge_is_noticed_on_a_real_server() {
    let mut day = Day::begin(Release::Fifteen, 1, 0);
    for reader in readers::READERS {
        day.compare(&[reader]);
        day.trade.sql("UPDATE ledger.orders SET rows[1] = rows[1] || '{\"note\": \"planted\"}' WHERE key = '[7]'");
        assert!(day.difference(&[reader]).is_some_and(|said| said.contains("planted")), "{reader}");
        day.trade.sql("DELETE FROM ledger.orders WHERE key = '[7]'");
        assert!(day.difference(&[reader]).is_some_and(|said| said.contains("surplus [\"7|")), "{reader}");
        day.trade.sql("INSERT INTO ledger.orders SELECT '[7]', ARRAY[to_jsonb(orders)] FROM orders WHERE id = 7");
    }
    day.look_at_rows();
    // A mark that nobody wrote, at a place that the copy says to have passed.
    day.trade.marks.push(day.trade.marks[0]);
    assert!(day.judge_rows().is_err_and(|said| said.contains("the position says that they have Some(1)")));
    day.trade.marks.pop();
    // Somebody tells the server that it may forget what the copy lacks.
    day.trade.ordinary();
    day.trade.sql("SELECT pg_replication_slot_advance('desk', pg_current_wal_lsn())");
    let said = day.gate.look(&day.trade.server, &day.desk, &[]).expect_err("it was not noticed");
    assert!(said.contains("the slot is at") && said.contains("beyond what the stored record says"), "{said}");
}

#[test]
fn a_table_in_the_midst_of_a_large_transaction_is_judged_too() {
    let mut day = Day::begin(Release::Fifteen, 2, 0);
    day.ordinary();
    day.rest();
    day.live(Life::Large);
    assert!(day.met.contains_key("a kill in the midst of a large transaction"), "{:?}", day.met);
    let marks = day.trade.marks.clone();
    // A mark that nobody wrote, at a place that the copy says to have passed.
    day.trade.marks.push(marks[0]);
    let said = day.judge_rows().expect_err("it was not noticed");
    assert!(said.contains("public.lines: at"), "{said}");
    // Marks that no copy can have yet: only what has a part of a transaction may be ahead of its position.
    day.trade.marks = vec![u64::MAX; marks.len()];
    let said = day.judge_rows().expect_err("it was not noticed");
    assert!(said.contains("public.orders: at") && !said.contains("public.lines: at"), "{said}");
}

#[test]
fn a_mark_that_the_position_contradicts_is_noticed() {
    let whole = |upto, seen| wrong_mark(&[10, 20, 30], &Stand { upto, ..Stand::default() }, seen, false);
    assert_eq!(whole(20, Some(1)), None);
    assert_eq!(whole(25, Some(2)), None, "it ended before 30");
    assert_eq!(whole(9, None), None, "none was made");
    assert!(whole(30, Some(1)).is_some(), "the position is ahead of the rows");
    assert!(whole(19, Some(2)).is_some(), "the rows are ahead of the position");
    assert!(whole(10, None).is_some(), "the row is not there");
}

#[test]
fn a_table_that_has_parts_may_be_ahead_and_lack_the_row_and_never_has_an_older_mark() {
    let divided = Stand { is_divided: true, ..Stand::default() };
    let half_read = Stand { generation: 1, ranges: (1, 1), ..Stand::default() };
    for stand in [divided, half_read] {
        let partial = |upto, seen| wrong_mark(&[10, 20, 30], &Stand { upto, ..stand.clone() }, seen, false);
        assert_eq!(partial(19, Some(2)), None, "a part of what is behind the position is here");
        assert_eq!(partial(30, None), None, "the row is missing");
        assert!(partial(30, Some(1)).is_some(), "the position is ahead of the rows");
    }
    let whole = Stand { generation: 2, ranges: (1, 1), ..Stand::default() };
    let again = |upto, seen| wrong_mark(&[10, 20, 30], &Stand { upto, ..whole.clone() }, seen, false);
    assert!(again(30, None).is_some() && again(19, Some(2)).is_some(), "a table that is read anew keeps its rows meanwhile");

    let emptied = |upto, seen| wrong_mark(&[10, 20, 30], &Stand { upto, ..Stand::default() }, seen, true);
    assert_eq!(emptied(30, None), None, "nobody has filled it again");
    assert!(emptied(30, Some(1)).is_some() && emptied(19, Some(2)).is_some(), "it has rows");
}
