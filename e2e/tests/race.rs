//! The race between the log and what is visible: a commit is in the log, and sent from it, before any statement sees it. In between lie
//! a flush and, under synchronous replication, the wait for a standby. What was read in between is older than what the log has told
//! already, however new the position is that it was read at.
//!
//! Writers change hot rows while the table is read anew, one snapshot after the other. Then they pause, in the midst of a snapshot, and
//! as soon as everything is acknowledged the copy is compared with the table, row by row. `E2E_LONG=1` goes on for about half a minute
//! of writing, and lets the wrong rule run into it three times.

use std::collections::BTreeMap;
use std::process::Child;

use e2e::http::{free_port, post, table};
use e2e::jsonl_copy::{self, number};
use e2e::postgres::{Postgres, Release};
use e2e::{Binary, Desk, Process, Signal, is_long, readers, wait_until};
use serde_json::Value;

/// So few that each is changed again and again, so many that a row which a snapshot has spoilt is not mended before the next pause.
const ROWS: u64 = 4_000;
/// They wait for a flush, here and at the standby (`synchronous_commit=on`).
const WRITERS: u64 = 8;
/// They wait until the standby shows what they did (`remote_apply`), which it does late: others that come later in the log are seen before.
const PATIENT_WRITERS: u64 = 4;
/// So much later.
const APPLIED_LATE: &str = "250ms";
/// Rows that a patient writer changes at once.
const PATIENT_ROWS: u64 = 10;
/// Snapshots that are begun before the writers pause, in the midst of the last one.
const SNAPSHOTS_A_ROUND: u64 = 2;
/// Fewer rows of snapshots than this in whose place the log's were taken, and there was no race: nothing is shown.
const DROPPED_MIN: u64 = 100;

/// The test's own statements wait for no standby: one that is gone would keep them for ever.
const UNHURRIED: &str = "SET synchronous_commit = local;";

/// How much happens before a race is over.
struct Length {
    changes: u64,
    pauses: u64,
}

fn length() -> Length {
    if is_long() { Length { changes: 60_000, pauses: 6 } } else { Length { changes: 3_000, pauses: 2 } }
}

/// A race with the wrong rule is over as soon as a row is wrong: at one of so many pauses.
const LENGTH_WITH_THE_WRONG_RULE: Length = Length { changes: 0, pauses: 10 };

/// Where the copy is.
#[derive(Clone, Copy, Debug)]
enum Copy {
    Iceberg,
    Jsonl,
}

/// The rows by their key, with how often each was changed.
type Rows = BTreeMap<u64, u64>;

impl Copy {
    fn sink(self) -> &'static str {
        match self {
            Copy::Iceberg => "{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { interval: 1s } }",
            Copy::Jsonl => "{ kind: jsonl, uri: ./copies, checkpoint: { interval: 1s } }",
        }
    }

    /// What a program that has nothing of ours reads.
    fn rows(self, desk: &Desk) -> Rows {
        match self {
            Copy::Iceberg => {
                let list = "coalesce(string_agg(id || ' ' || n, ',' ORDER BY id), '')";
                listed(&readers::query(&desk.warehouse(), "shop", "hot", &[list]).join(""))
            }
            Copy::Jsonl => {
                let rows = jsonl_copy::rows(&desk.path().join("copies/hot.jsonl"));
                rows.values().map(|row| (number(row, "id"), number(row, "n"))).collect()
            }
        }
    }
}

/// `1 5,2 7`
fn listed(list: &str) -> Rows {
    let rows: Vec<&str> = list.split_terminator(',').collect();
    let number = |text: &str| text.parse().expect("a number");
    let made: Rows = rows.iter().filter_map(|row| row.split_once(' ')).map(|(id, n)| (number(id), number(n))).collect();
    assert_eq!(made.len(), rows.len(), "a key is there twice");
    made
}

/// What a race was in which the copy was right at each pause and at the end.
#[derive(Debug)]
struct Ran {
    /// Of rows.
    changes: u64,
    pauses: u64,
    snapshots: u64,
    /// Rows of snapshots in whose place the log's were taken.
    dropped: u64,
}

/// What was wrong first.
#[derive(Debug)]
enum Wrong {
    /// Keys, what the table has and what the copy has, at this pause.
    Rows { pause: u64, differences: Vec<(u64, Option<u64>, Option<u64>)> },
    /// The run ended by itself: a build with checks looks at its own rules all the time.
    Ended(String),
}

/// Sessions that change rows, one transaction after the other, until they are told to end.
struct Writers(Vec<Child>);

impl Writers {
    fn start(server: &Postgres) -> Writers {
        server.sql("shop", &format!("{UNHURRIED} TRUNCATE going; INSERT INTO going VALUES (true)"));
        let one = format!("hot_id := 1 + floor(random() * {ROWS}); UPDATE hot SET n = n + 1 WHERE id = hot_id;");
        // Each in a part of its own: they must not wait for one another.
        let part = ROWS / PATIENT_WRITERS;
        let some = |nth: u64| {
            let (first, choice, more) = (nth * part + 1, part - PATIENT_ROWS + 1, PATIENT_ROWS - 1);
            format!(
                "hot_id := {first} + floor(random() * {choice}); UPDATE hot SET n = n + 1 WHERE id BETWEEN hot_id AND hot_id + {more};"
            )
        };
        let eager = (0..WRITERS).map(|_| server.session("shop", &again("on", &one)));
        let patient = (0..PATIENT_WRITERS).map(|nth| server.session("shop", &again("remote_apply", &some(nth))));
        Writers(eager.chain(patient).collect())
    }

    fn end(self, server: &Postgres) {
        server.sql("shop", &format!("{UNHURRIED} DELETE FROM going"));
        for mut writer in self.0 {
            let ended = wait_until("a writer's end", || writer.try_wait().expect("a child can be asked"));
            assert!(ended.success(), "a writer failed");
        }
    }
}

/// A statement that does these again and again, each time in a transaction of its own.
fn again(synchronous_commit: &str, statements: &str) -> String {
    format!(
        "DO $$ DECLARE latest timestamptz := clock_timestamp() + INTERVAL '10 minutes'; hot_id int; BEGIN
           PERFORM set_config('synchronous_commit', '{synchronous_commit}', false);
           LOOP
             {statements}
             COMMIT;
             EXIT WHEN NOT EXISTS (SELECT FROM going);
             IF clock_timestamp() > latest THEN RAISE EXCEPTION 'nobody tells the writers to end'; END IF;
           END LOOP; END $$"
    )
}

/// A table and its copy.
struct World {
    server: Postgres,
    _standby: Postgres,
    desk: Desk,
    copy: Copy,
}

impl World {
    fn begin(copy: Copy) -> World {
        let settings = ["fsync=on", "synchronous_commit=on", "commit_delay=2000", "commit_siblings=1"];
        let server = Postgres::start(Release::Fifteen, &settings);
        server.sql("postgres", "CREATE DATABASE shop");
        server.sql(
            "shop",
            &format!(
                "CREATE TABLE going (yes bool); CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL);
                 INSERT INTO hot SELECT n, 0 FROM generate_series(1, {ROWS}) n"
            ),
        );
        let standby = server.standby();
        set(&standby, "recovery_min_apply_delay", APPLIED_LATE);
        set(&server, "synchronous_standby_names", "walreceiver");
        wait_until("the standby being waited for", || {
            (server.sql("postgres", "SELECT sync_state FROM pg_stat_replication") == "sync").then_some(())
        });
        let desk = Desk::new().with_pipeline(&format!(
            "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {}
snapshot: {{ chunkRows: 200, parallelism: 3 }}
tables:
  - {{ source: public.hot }}
",
            server.uri("shop"),
            copy.sink()
        ));
        World { server, _standby: standby, desk, copy }
    }

    /// How many changes there were, if the copy is the table.
    fn compare(&self, pause: u64) -> Result<u64, Wrong> {
        let source = listed(&self.server.sql("shop", "SELECT string_agg(id || ' ' || n, ',' ORDER BY id) FROM hot"));
        let copy = self.copy.rows(&self.desk);
        assert_eq!(source.len() as u64, ROWS, "the writers make and delete no row");
        let keys = source.keys().chain(copy.keys().filter(|id| !source.contains_key(id)));
        let both = keys.map(|id| (*id, source.get(id).copied(), copy.get(id).copied()));
        let differences: Vec<_> = both.filter(|(_, here, there)| here != there).collect();
        // Each change has added one.
        if differences.is_empty() { Ok(source.values().sum()) } else { Err(Wrong::Rows { pause, differences }) }
    }
}

/// Sets something for a whole server.
fn set(server: &Postgres, name: &str, value: &str) {
    // Apart: the first can't be done in a transaction with others.
    server.sql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"));
    server.sql("postgres", "SELECT pg_reload_conf()");
}

/// A run that copies it meanwhile.
struct Run<'a> {
    world: &'a World,
    process: Process,
    port: u16,
}

impl Run<'_> {
    fn start<'a>(world: &'a World, fault: Option<&str>) -> Run<'a> {
        let binary = if fault.is_some() { Binary::Failpoints } else { Binary::Plain };
        let port = free_port();
        Run { world, process: world.desk.run_at(binary, port, fault), port }
    }

    /// Waits for something that the run says of the table.
    fn wait(&mut self, what: &str, mut is: impl FnMut(&Value) -> bool) -> Result<Value, Wrong> {
        wait_until(what, || match self.process.runs() {
            false => Some(Err(Wrong::Ended(format!("{}{}", self.process.stdout(), self.process.stderr())))),
            true => table(self.port, "public.hot").filter(&mut is).map(Ok),
        })
    }

    /// Snapshots one after the other, up to the midst of the last one.
    fn read_anew(&mut self) -> Result<(), Wrong> {
        for nth in 1..=SNAPSHOTS_A_ROUND {
            let before = self.wait("a table that streams", is_streaming)?;
            let asked = post(self.port, "/tables/public.hot/resnapshot").map(|answer| answer.status);
            assert!(asked == Some(202) || !self.process.runs(), "{asked:?}");
            let is_last = nth == SNAPSHOTS_A_ROUND;
            self.wait("a snapshot going on", |hot| {
                let is_half_read = rows_read(hot) >= rows_read(&before) + ROWS / 2;
                number(hot, "generation") > number(&before, "generation") && (is_streaming(hot) || (is_last && is_half_read))
            })?;
        }
        Ok(())
    }

    /// What is said of the table when the snapshot is at its end and everything that was written is acknowledged.
    fn pause(&mut self) -> Result<Value, Wrong> {
        let (server, written) = (&self.world.server, self.world.server.log_end());
        self.wait("everything being acknowledged", |hot| is_streaming(hot) && server.slot("desk").acknowledged >= written)
    }
}

fn is_streaming(hot: &Value) -> bool {
    hot["phase"] == "streaming"
}

/// Rows of snapshots, whatever became of them.
fn rows_read(hot: &Value) -> u64 {
    number(hot, "snapshot_rows") + number(hot, "snapshot_rows_dropped")
}

fn race(copy: Copy, fault: Option<&str>, length: &Length) -> Result<Ran, Wrong> {
    let world = World::begin(copy);
    let mut run = Run::start(&world, fault);
    run.wait("the first snapshot", is_streaming)?;
    let mut pauses = 0;
    let ran = loop {
        let writers = Writers::start(&world.server);
        let went = run.read_anew();
        writers.end(&world.server);
        let said = went.and_then(|()| run.pause())?;
        pauses += 1;
        let changes = world.compare(pauses)?;
        if pauses >= length.pauses && changes >= length.changes {
            let (snapshots, dropped) = (number(&said, "generation"), number(&said, "snapshot_rows_dropped"));
            break Ran { changes, pauses, snapshots, dropped };
        }
    };
    run.process.send(Signal::Terminate);
    run.process.wait().expect_code(0);
    world.compare(pauses)?;
    // Another life has nothing to add.
    world.desk.run().expect_code(0);
    world.compare(pauses)?;
    Ok(ran)
}

fn the_copy_is_right(copy: Copy) {
    let ran = race(copy, None, &length()).unwrap_or_else(|wrong| panic!("{copy:?}: {wrong:?}"));
    let Ran { changes, pauses, snapshots, dropped } = ran;
    eprintln!("{copy:?}: {changes} changes, {pauses} pauses, {snapshots} snapshots, {dropped} rows of them in doubt");
    assert_eq!(snapshots, 1 + pauses * SNAPSHOTS_A_ROUND);
    assert!(dropped > DROPPED_MIN, "only {dropped} rows were in doubt: the race was not there, so nothing is shown");
}

#[test]
fn what_is_in_the_log_before_it_is_visible_is_never_overwritten_by_an_older_row_in_iceberg() {
    the_copy_is_right(Copy::Iceberg);
}

#[test]
fn what_is_in_the_log_before_it_is_visible_is_never_overwritten_by_an_older_row_in_jsonl() {
    the_copy_is_right(Copy::Jsonl);
}

/// The race that the tests above show nothing without: judged by positions, older rows win.
fn a_fence_by_position_is_found_out(copy: Copy) {
    for nth in 1..=if is_long() { 3 } else { 1 } {
        match race(copy, Some("fence-by-position"), &LENGTH_WITH_THE_WRONG_RULE) {
            Ok(ran) => panic!("{copy:?}, race {nth}: the wrong rule was not found out: {ran:?}"),
            Err(Wrong::Rows { pause, differences }) => {
                eprintln!("{copy:?}, race {nth}: {} rows are wrong at pause {pause}", differences.len());
            }
            Err(Wrong::Ended(said)) => panic!("{copy:?}, race {nth}: it ended by itself, and nobody judged the copy:\n{said}"),
        }
    }
}

#[test]
fn a_fence_by_position_is_found_out_in_iceberg() {
    a_fence_by_position_is_found_out(Copy::Iceberg);
}

#[test]
fn a_fence_by_position_is_found_out_in_jsonl() {
    a_fence_by_position_is_found_out(Copy::Jsonl);
}
