//! PostgreSQL's tables read while they change, real servers and real processes: what was there before, what changes meanwhile, kills
//! in the midst, and the race between the log and what is visible.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::http::{free_port, get, post, table};
use e2e::postgres::{Postgres, Release};
use e2e::shop::{Random, TABLES, transaction};
use e2e::shop_copy::assert_equal;
use e2e::{Binary, Desk, Process, Signal, readers, wait_until};
use serde_json::Value;

/// Small checkpoints: what is special happens often.
const SMALL: &str = "{ interval: 200ms, maxRows: 400 }";

/// A pipeline that reads `tables` in chunks of so many rows.
fn pipeline(server: &Postgres, tables: &[&str], chunk_rows: u32) -> String {
    pipeline_of(server, tables, chunk_rows, SMALL)
}

fn pipeline_of(server: &Postgres, tables: &[&str], chunk_rows: u32, checkpoint: &str) -> String {
    let tables: String = tables.iter().map(|table| format!("  - {{ source: public.{table} }}\n")).collect();
    format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {checkpoint} }}
snapshot: {{ chunkRows: {chunk_rows}, parallelism: 3 }}
tables:
{tables}",
        server.uri("shop")
    )
}

fn until_current(desk: &Desk) -> e2e::Ended {
    desk.urutau(Desk::RUN)
}

fn run(desk: &Desk, binary: Binary, port: u16, fault: Option<&str>) -> Process {
    let listen = format!("127.0.0.1:{port}");
    let mut command = desk.command(binary, &["run", "-f", "pipeline.yaml", "--listen", &listen]);
    command.envs(fault.map(|fault| ("URUTAU_FAULT", fault)));
    Process::start(command)
}

/// A shop that was open for a while before anybody copied it.
fn shop(server: &Postgres) {
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", TABLES);
    server.sql(
        "shop",
        "INSERT INTO orders SELECT n, 'c' || n, n + 0.25, now(), n % 2 = 0, NULL FROM generate_series(1, 3000) n;
         INSERT INTO lines SELECT n / 3, n % 3, 'sku' || n, n FROM generate_series(1, 3000) n;",
    );
}

/// Writes until the table is being read and so many of its chunks were asked for; read anew as often as a snapshot ends before.
fn write_until_chunk(server: &Postgres, random: &mut Random, port: u16, chunks: u64) {
    wait_until("a snapshot in its midst", || {
        server.sql("shop", &(0..3).map(|_| transaction(random)).collect::<String>());
        let orders = table(port, "public.orders")?;
        if orders["phase"] == "streaming" {
            for name in ["public.orders", "public.lines"] {
                // Refused where that table is still being read.
                post(port, &format!("/tables/{name}/resnapshot"));
            }
        }
        (orders["phase"] == "snapshotting" && orders["snapshot"]["chunks"].as_u64()? >= chunks).then_some(())
    });
}

/// Most lives end in the midst of a snapshot, at any chunk of it; every fourth one at any moment.
fn survives_kills(release: Release) {
    let server = Postgres::start(release, &[]);
    shop(&server);
    let desk = Desk::new().with_pipeline(&pipeline(&server, &["orders", "lines"], 60));
    let mut random = Random(0x5EED_0F0D_D5EE_D0F5);
    for kill in 1..=12 {
        let port = free_port();
        let mut process = run(&desk, Binary::Plain, port, None);
        wait_until("the run's beginning", || table(port, "public.orders"));
        if kill % 4 == 0 {
            let moment = Instant::now() + Duration::from_millis(50 + random.below(1_500));
            while Instant::now() < moment {
                server.sql("shop", &(0..10).map(|_| transaction(&mut random)).collect::<String>());
            }
        } else {
            let chunks = random.below(30);
            write_until_chunk(&server, &mut random, port, chunks);
        }
        assert!(process.runs(), "it ended by itself:\n{}", process.stderr());
        process.send(Signal::Kill);
        let ended = process.wait();
        assert_eq!(ended.signal, Some(9));
        assert!(!ended.stderr.contains("halted"), "a table halted:\n{}", ended.stderr);
        if kill % 3 == 0 {
            until_current(&desk).expect_code(0);
            assert_equal(&server, "shop", &desk);
        }
    }
}

#[test]
fn kills_in_the_midst_of_a_snapshot_lose_nothing_of_postgresql_15() {
    survives_kills(Release::Fifteen);
}

#[test]
fn kills_in_the_midst_of_a_snapshot_lose_nothing_of_postgresql_18() {
    survives_kills(Release::Eighteen);
}

/// Sessions that change one row after the other, each in a transaction of its own, until they are told to end.
struct Writers(Vec<Child>);

impl Writers {
    fn start(server: &Postgres, count: usize, rows: usize) -> Writers {
        server.sql("shop", "TRUNCATE going; INSERT INTO going VALUES (true)");
        let loops = format!(
            "DO $$ DECLARE latest timestamptz := clock_timestamp() + INTERVAL '2 minutes'; BEGIN LOOP
               UPDATE hot SET n = n + 1 WHERE id = 1 + floor(random() * {rows})::int;
               COMMIT;
               EXIT WHEN NOT EXISTS (SELECT FROM going) OR clock_timestamp() > latest;
             END LOOP; END $$"
        );
        Writers((0..count).map(|_| session(server, &loops)).collect())
    }

    fn end(self, server: &Postgres) {
        server.sql("shop", "DELETE FROM going");
        for mut writer in self.0 {
            assert!(writer.wait().expect("a writer ends").success(), "a writer failed");
        }
    }
}

fn session(server: &Postgres, statement: &str) -> Child {
    let mut psql: Command = server.psql("shop");
    psql.args(["-c", statement]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("psql starts")
}

/// How many rows of the copy are not what the server has, at pauses between writers and snapshots that go on side by side; and how
/// many rows of snapshots were not taken since the log was newer.
fn race(fault: Option<&str>, rounds: usize) -> (usize, u64) {
    const ROWS: usize = 8_000;
    // Between a commit's record and its visibility lies a flush: that is the window.
    let server =
        Postgres::start(Release::Fifteen, &["fsync=on", "synchronous_commit=on", "commit_delay=2000", "commit_siblings=1"]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql(
        "shop",
        &format!(
            "CREATE TABLE going (yes bool); CREATE TABLE hot (id int PRIMARY KEY, n int);
             INSERT INTO hot SELECT n, 0 FROM generate_series(1, {ROWS}) n"
        ),
    );
    let desk = Desk::new().with_pipeline(&pipeline_of(&server, &["hot"], 200, "{ interval: 1s }"));
    let binary = if fault.is_some() { Binary::Failpoints } else { Binary::Plain };
    let (mut wrong, mut dropped) = (0, 0);
    for _ in 0..rounds {
        let port = free_port();
        let mut process = run(&desk, binary, port, fault);
        let generation = wait_until("the table streaming", || {
            table(port, "public.hot").filter(|hot| hot["phase"] == "streaming").and_then(|hot| hot["generation"].as_u64())
        });
        let writers = Writers::start(&server, 8, ROWS);
        // Several snapshots one after the other, the last of which is still being read when the writers end.
        for again in 1..=2 {
            if !process.runs() {
                break;
            }
            let asked = post(port, "/tables/public.hot/resnapshot").map(|answer| answer.status);
            assert!(asked == Some(202) || !process.runs(), "{asked:?}");
            wait_until("a snapshot going on", || {
                if !process.runs() {
                    return Some(());
                }
                let hot = table(port, "public.hot")?;
                let is_next = hot["generation"].as_u64()? >= generation + again;
                let is_over = hot["phase"] == "streaming";
                let is_half_read = hot["snapshot_rows"].as_u64()? >= again * ROWS as u64 / 2;
                (is_next && (is_over || (again == 2 && is_half_read))).then_some(())
            });
        }
        writers.end(&server);
        wait_until("the last snapshot's end", || {
            (!process.runs() || table(port, "public.hot").is_some_and(|hot| hot["phase"] == "streaming")).then_some(())
        });
        if !process.runs() {
            // The machine's own check of its rules came before the judge.
            let ended = process.wait();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(fault.is_some() && said.contains("visible-decides"), "it ended by itself:\n{said}");
            return (ROWS, dropped);
        }
        dropped += table(port, "public.hot").and_then(|hot| hot["snapshot_rows_dropped"].as_u64()).unwrap_or(0);
        process.send(Signal::Terminate);
        process.wait().expect_code(0);
        until_current(&desk).expect_code(0);
        let source = server.sql("shop", "SELECT string_agg(id || ' ' || n, ',' ORDER BY id) FROM hot");
        let copy = readers::query(&desk.warehouse(), "shop", "hot", &["string_agg(id || ' ' || n, ',' ORDER BY id)"]).join("");
        let (source, copy): (Vec<_>, Vec<_>) = (source.split(',').collect(), copy.split(',').collect());
        assert_eq!(source.len(), copy.len(), "rows are missing or too many");
        wrong += source.iter().zip(&copy).filter(|(source, copy)| source != copy).count();
    }
    (wrong, dropped)
}

#[test]
fn what_is_in_the_log_before_it_is_visible_is_never_overwritten_by_an_older_row() {
    let (wrong, dropped) = race(None, 3);
    assert_eq!(wrong, 0, "rows of the copy are not the server's");
    assert!(dropped > 100, "only {dropped} rows were in doubt: the race was not there, so nothing is shown");
}

/// The race that the test above shows nothing without: judged by positions, older rows win.
#[test]
fn a_fence_by_position_is_found_out() {
    let (wrong, _) = race(Some("fence-by-position"), 3);
    assert!(wrong > 0, "the wrong rule was not found out");
}

#[test]
fn a_snapshot_waits_for_a_transaction_that_was_open_when_it_began_and_says_so() {
    let server = Postgres::start(Release::Fifteen, &[]);
    shop(&server);
    server.sql("shop", "CREATE TABLE go (yes bool)");
    let desk = Desk::new().with_pipeline(&pipeline(&server, &["orders", "lines"], 500));
    // A slot is made first: that waits for open transactions, too, by itself.
    until_current(&desk).expect_code(0);
    let port = free_port();
    let process = run(&desk, Binary::Plain, port, None);
    wait_until("the run's beginning", || table(port, "public.orders").filter(|orders| orders["phase"] == "streaming"));
    wait_until("what the server keeps for the slot being told", || {
        let status: Value = serde_json::from_str(&get(port, "/statusz")?.body).ok()?;
        status["retained_bytes"].as_u64()
    });
    assert!(get(port, "/metrics").is_some_and(|answer| answer.body.contains("urutau_source_retained_bytes ")));
    let mut open = session(
        &server,
        "BEGIN; UPDATE orders SET customer = 'late' WHERE id <= 10;
         DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM go) LOOP PERFORM pg_sleep(0.05); END LOOP; END $$;
         COMMIT",
    );
    wait_until("the transaction having begun", || {
        let begun =
            server.sql("shop", "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND query LIKE '%pg_sleep%'");
        (begun == "1").then_some(())
    });
    assert_eq!(post(port, "/tables/public.orders/resnapshot").map(|answer| answer.status), Some(202));
    wait_until("the wait being named", || {
        let status: Value = serde_json::from_str(&get(port, "/statusz")?.body).ok()?;
        let waiting = status["waiting"].to_string();
        (waiting.contains("public.orders") && waiting.contains("unfinished")).then_some(())
    });
    server.sql("shop", "INSERT INTO go VALUES (true)");
    assert!(open.wait().expect("it ends").success());
    wait_until("the snapshot's end", || {
        table(port, "public.orders").filter(|orders| orders["phase"] == "streaming" && orders["generation"] == 2)
    });
    process.send(Signal::Terminate);
    process.wait().expect_code(0);
    until_current(&desk).expect_code(0);
    assert_equal(&server, "shop", &desk);
}

#[test]
fn columns_that_come_while_a_snapshot_is_read_are_followed() {
    let server = Postgres::start(Release::Fifteen, &[]);
    shop(&server);
    let desk = Desk::new().with_pipeline(&pipeline(&server, &["orders"], 40));
    let port = free_port();
    let process = run(&desk, Binary::Plain, port, None);
    wait_until("the snapshot being read", || table(port, "public.orders").filter(|orders| orders["phase"] == "snapshotting"));
    server.sql("shop", "ALTER TABLE orders ADD COLUMN more int; UPDATE orders SET more = id WHERE id % 7 = 0");
    wait_until("the snapshot's end", || table(port, "public.orders").filter(|orders| orders["phase"] == "streaming"));
    process.send(Signal::Terminate);
    process.wait().expect_code(0);
    until_current(&desk).expect_code(0);
    let list = "string_agg(id || ' ' || coalesce(CAST(more AS text), '-'), ',' ORDER BY id)";
    let source = server.sql("shop", &format!("SELECT {list} FROM orders"));
    assert_eq!(readers::query(&desk.warehouse(), "shop", "orders", &[list]).join(""), source);
}

#[test]
fn a_lost_slot_is_mended_by_reading_anew_and_keeps_no_row_that_is_gone() {
    let server = Postgres::start(Release::Fifteen, &[]);
    shop(&server);
    let text = pipeline(&server, &["orders", "lines"], 500);
    let desk = Desk::new().with_pipeline(&text);
    until_current(&desk).expect_code(0);
    assert_equal(&server, "shop", &desk);
    server.sql(
        "shop",
        "SELECT pg_drop_replication_slot('desk'); DELETE FROM orders WHERE id % 3 = 0; UPDATE lines SET quantity = 1",
    );
    until_current(&desk).expect_code(4);
    let desk = desk.with_pipeline(&text.replace("snapshot: { ", "snapshot: { mode: when-needed, "));
    until_current(&desk).expect_code(0);
    assert_equal(&server, "shop", &desk);
}

#[test]
fn the_command_reads_a_table_anew_while_the_run_goes_on() {
    let server = Postgres::start(Release::Fifteen, &[]);
    shop(&server);
    let desk = Desk::new().with_pipeline(&pipeline(&server, &["orders", "lines"], 500));
    let port = free_port();
    let process = run(&desk, Binary::Plain, port, None);
    wait_until("the first snapshot", || table(port, "public.orders").filter(|orders| orders["phase"] == "streaming"));
    let listen = format!("127.0.0.1:{port}");
    let said = desk.urutau(&["table", "resnapshot", "-f", "pipeline.yaml", "--listen", &listen, "public.orders"]);
    said.expect_code(0).expect_words(&["public.orders is read anew (snapshot 2)"]);
    wait_until("the second snapshot", || table(port, "public.orders").filter(|orders| orders["phase"] == "streaming"));
    process.send(Signal::Terminate);
    process.wait().expect_code(0);
    assert_equal(&server, "shop", &desk);
    let said = desk.urutau(&["table", "resnapshot", "-f", "pipeline.yaml", "--listen", "off", "public.orders"]);
    said.expect_code(2).expect_words(&["[table-resnapshot-needs-run]"]);
}
