//! PostgreSQL's tables read while they change, real servers and real processes: what was there before, what changes meanwhile, kills
//! in the midst. `race.rs` is about what is in the log before it is visible.

use std::time::{Duration, Instant};

use e2e::http::{free_port, get, post, status, table};
use e2e::postgres::{Postgres, Release};
use e2e::shop::{Random, TABLES, transaction};
use e2e::shop_copy::assert_equal;
use e2e::{Binary, Desk, Signal, readers, wait_until};

/// Small checkpoints: what is special happens often.
const SMALL: &str = "{ interval: 200ms, maxRows: 400 }";

/// A pipeline that reads `tables` in chunks of so many rows.
fn pipeline(server: &Postgres, tables: &[&str], chunk_rows: u32) -> String {
    let tables: String = tables.iter().map(|table| format!("  - {{ source: public.{table} }}\n")).collect();
    format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {SMALL} }}
snapshot: {{ chunkRows: {chunk_rows}, parallelism: 3 }}
tables:
{tables}",
        server.uri("shop")
    )
}

fn until_current(desk: &Desk) -> e2e::Ended {
    desk.urutau(Desk::RUN)
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
        let mut process = desk.run_at(Binary::Plain, port, None);
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

#[test]
fn a_snapshot_waits_for_a_transaction_that_was_open_when_it_began_and_says_so() {
    let server = Postgres::start(Release::Fifteen, &[]);
    shop(&server);
    server.sql("shop", "CREATE TABLE go (yes bool)");
    let desk = Desk::new().with_pipeline(&pipeline(&server, &["orders", "lines"], 500));
    // A slot is made first: that waits for open transactions, too, by itself.
    until_current(&desk).expect_code(0);
    let port = free_port();
    let process = desk.run_at(Binary::Plain, port, None);
    wait_until("the run's beginning", || table(port, "public.orders").filter(|orders| orders["phase"] == "streaming"));
    wait_until("what the server keeps for the slot being told", || status(port)?["retained_bytes"].as_u64());
    assert!(get(port, "/metrics").is_some_and(|answer| answer.body.contains("urutau_source_retained_bytes ")));
    let mut open = server.session(
        "shop",
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
        let waiting = status(port)?["waiting"].to_string();
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
    let process = desk.run_at(Binary::Plain, port, None);
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
    let process = desk.run_at(Binary::Plain, port, None);
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
