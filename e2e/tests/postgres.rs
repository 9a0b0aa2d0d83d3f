//! PostgreSQL as the source, real servers and real processes: statements go on while urutau is killed, and in the end the tables that
//! DuckDB reads are the tables that the server has.

use std::time::{Duration, Instant};

use e2e::postgres::{Postgres, Release};
use e2e::shop::{Random, TABLES, transaction};
use e2e::shop_copy::assert_equal;
use e2e::{Binary, Desk, Process, Signal, readers, wait_until};

const ARGUMENTS: &[&str] = &["run", "-f", "pipeline.yaml", "--listen", "off"];

fn pipeline(server: &Postgres, database: &str, create: bool) -> String {
    format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: {create} }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {{ interval: 200ms, maxRows: 400 }} }}
snapshot: {{ mode: never }}
tables:
  - {{ source: public.orders }}
  - {{ source: public.lines }}
",
        server.uri(database)
    )
}

fn until_current(desk: &Desk) -> e2e::Ended {
    desk.urutau(&["run", "-f", "pipeline.yaml", "--listen", "off", "--until-current"])
}

/// A database with the two tables, in a desk that copies it, begun: what is written from here on is copied.
fn begun(server: &Postgres, database: &str) -> Desk {
    server.sql("postgres", &format!("CREATE DATABASE {database}"));
    server.sql(database, TABLES);
    let desk = Desk::new().with_pipeline(&pipeline(server, database, true));
    until_current(&desk).expect_code(0);
    desk
}

fn survives_kills(release: Release) {
    let server = Postgres::start(release, &[]);
    let desk = begun(&server, "shop");
    let mut random = Random(0x5EED_0F0D_D5EE_D0F5);
    let mut kills = 0;
    while kills < 12 {
        let mut process = Process::start(desk.command(Binary::Plain, ARGUMENTS));
        let moment = Instant::now() + Duration::from_millis(300 + random.below(2_500));
        while Instant::now() < moment {
            let written: String = (0..20).map(|_| transaction(&mut random)).collect();
            server.sql("shop", &written);
        }
        assert!(process.runs(), "it ended by itself:\n{}", process.stderr());
        process.send(Signal::Kill);
        assert_eq!(process.wait().signal, Some(9));
        kills += 1;
        if kills % 4 == 0 {
            until_current(&desk).expect_code(0);
            assert_equal(&server, "shop", &desk);
        }
    }
}

#[test]
fn kills_at_random_moments_lose_nothing_of_postgresql_15() {
    survives_kills(Release::Fifteen);
}

#[test]
fn kills_at_random_moments_lose_nothing_of_postgresql_18() {
    survives_kills(Release::Eighteen);
}

#[test]
fn a_server_that_goes_away_and_comes_back_is_waited_for() {
    let mut server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    let mut process = Process::start(desk.command(Binary::Plain, ARGUMENTS));
    let mut random = Random(0xABCD);
    for _ in 0..3 {
        let written: String = (0..50).map(|_| transaction(&mut random)).collect();
        server.sql("shop", &written);
        server.restart();
    }
    assert!(process.runs(), "it ended by itself:\n{}", process.stderr());
    process.send(Signal::Terminate);
    process.wait().expect_code(0);
    until_current(&desk).expect_code(0);
    assert_equal(&server, "shop", &desk);
}

/// The server throws away what lies before `kept_from`: of what another database writes nothing is kept for a slot that has nothing to
/// do, and nobody has to write into an idle database for that, as a heartbeat would.
#[test]
fn the_slot_of_an_idle_database_moves_on_while_another_one_writes_and_nothing_is_written_for_it() {
    const TRANSACTIONS: u64 = 100;
    let server = Postgres::start(Release::Fifteen, &["checkpoint_timeout=30s", "autovacuum=off"]);
    let desk = begun(&server, "shop");
    let mut process = Process::start(desk.command(Binary::Plain, ARGUMENTS));
    server.sql("postgres", "CREATE TABLE busy (n int, t text)");
    let next_transaction =
        || server.sql("postgres", "SELECT pg_snapshot_xmax(pg_current_snapshot())").parse::<u64>().expect("a number");
    let copies = || {
        let mut said = readers::evidence(&desk.warehouse(), "shop");
        said.as_object_mut().expect("tables").retain(|name, _| !name.starts_with("urutau_"));
        said
    };
    let (begin, first, copied) = (server.log_end(), next_transaction(), copies());
    let statement = "INSERT INTO busy SELECT n, repeat('x', 500) FROM generate_series(1, 4000) n;\n";
    server.sql("postgres", &statement.repeat(TRANSACTIONS as usize));
    let end = server.log_end();
    assert!(end - begin > 200_000_000, "{} bytes of log only", end - begin);
    wait_until("the slot passing what the other database wrote", || {
        let slot = server.slot("desk");
        (slot.acknowledged >= end && slot.kept_from >= begin + (end - begin) / 2).then_some(())
    });
    assert_eq!(next_transaction(), first + TRANSACTIONS, "somebody else has written, too");
    assert_eq!(copies(), copied, "the copies got a commit without a change");
    assert!(process.runs());
    process.send(Signal::Terminate);
    process.wait().expect_code(0);
}

#[test]
fn nothing_is_acknowledged_that_the_sink_does_not_hold() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    let before_its_commit = server.sql(
        "shop",
        "BEGIN; INSERT INTO orders SELECT n, 'c', 1, now(), true, NULL FROM generate_series(1, 300) n; \
         SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint; COMMIT;",
    );
    // A life that is stopped before its first commit is visible has read the rows, and has acknowledged nothing of them.
    let parked = desk.run_parked("iceberg-data-written", 1, &[]).expect("it comes to a commit");
    assert!(
        server.slot("desk").acknowledged <= before_its_commit.parse().expect("a number"),
        "the slot moved over rows that are not committed"
    );
    parked.kill();
    assert!(server.slot("desk").acknowledged <= before_its_commit.parse().expect("a number"));
    until_current(&desk).expect_code(0);
    assert_equal(&server, "shop", &desk);
}

#[test]
fn a_paused_table_lets_go_of_the_slot_before_it_keeps_more_log_than_it_may() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    desk.urutau(&["table", "pause", "--listen", "off", "public.orders"]).expect_code(0);
    let text = pipeline(&server, "shop", true).replace("create: true", "create: true, hold: { bytes: 1Mi }");
    desk.write("pipeline.yaml", &text);
    let process = Process::start(desk.command(Binary::Plain, ARGUMENTS));
    server.sql("shop", "INSERT INTO orders SELECT n, 'c', 1, now(), true, NULL FROM generate_series(1, 10) n");
    server.sql("postgres", "CREATE TABLE busy AS SELECT n, repeat('x', 500) t FROM generate_series(1, 8000) n");
    server.sql("shop", "INSERT INTO lines SELECT 1, n, 'a', 1 FROM generate_series(1, 500) n");
    let written = server.log_end();
    wait_until("the slot passing what the paused table lacks", || (server.slot("desk").acknowledged >= written).then_some(()));
    process.send(Signal::Terminate);
    process.wait().expect_code(4).expect_words(&["public.orders"]);
    assert!(desk.urutau(&["tables", "--output", "json"]).expect_code(0).stdout.contains("\"needs-snapshot\""));
    assert_eq!(readers::query(&desk.warehouse(), "shop", "lines", &["count(*)"]), ["500"]);
}

#[test]
fn a_slot_that_was_made_again_is_a_lost_position() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    server.sql("shop", "SELECT pg_drop_replication_slot('desk'); INSERT INTO orders (id) VALUES (1)");
    until_current(&desk).expect_code(4).expect_words(&["snapshot"]);
    // It was made again, as the file says; the verdict stays.
    until_current(&desk).expect_code(4);
}

#[test]
fn a_missing_slot_is_named_with_the_statement_that_makes_it() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    server.sql("shop", "SELECT pg_drop_replication_slot('desk')");
    let desk = desk.with_pipeline(&pipeline(&server, "shop", false));
    let words = ["there is no replication slot 'desk'", "pg_create_logical_replication_slot('desk', 'pgoutput')"];
    until_current(&desk).expect_code(2).expect_words(&words);
    desk.urutau(&["doctor", "-f", "pipeline.yaml"]).expect_code(2).expect_words(&words);
}

#[test]
fn a_slot_whose_log_was_thrown_away_is_a_lost_position() {
    let server = Postgres::start(Release::Fifteen, &["max_slot_wal_keep_size=16MB", "max_wal_size=32MB", "min_wal_size=32MB"]);
    let desk = begun(&server, "shop");
    wait_until("the server throwing log away", || {
        server.sql("postgres", "DROP TABLE IF EXISTS busy; CREATE TABLE busy AS SELECT n, repeat('x', 900) t FROM generate_series(1, 20000) n; CHECKPOINT");
        let status = server.sql("postgres", "SELECT wal_status FROM pg_replication_slots");
        (status == "lost").then_some(())
    });
    until_current(&desk).expect_code(4).expect_words(&["postgres-slot-lost"]);
    desk.urutau(&["doctor", "-f", "pipeline.yaml"]).expect_code(2).expect_words(&["postgres-slot-lost"]);
}

#[test]
fn another_server_is_another_log() {
    let (first, second) = (Postgres::start(Release::Fifteen, &[]), Postgres::start(Release::Fifteen, &[]));
    let desk = begun(&first, "shop");
    second.sql("postgres", "CREATE DATABASE shop");
    second.sql("shop", TABLES);
    let desk = desk.with_pipeline(&pipeline(&second, "shop", true));
    until_current(&desk).expect_code(4).expect_words(&["another one than the copies were made from"]);
}

#[test]
fn an_added_column_comes_with_the_first_row_that_has_it_and_another_type_halts_the_table_in_front_of_it() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    server.sql(
        "shop",
        "INSERT INTO orders (id) VALUES (1); ALTER TABLE orders ADD COLUMN more int; INSERT INTO orders (id, more) VALUES (2, 7);
         INSERT INTO lines VALUES (9, 9, 'x', 1)",
    );
    until_current(&desk).expect_code(0);
    let orders = readers::query(
        &desk.warehouse(),
        "shop",
        "orders",
        &["string_agg(id || '/' || coalesce(CAST(more AS text), '-'), ' ' ORDER BY id)"],
    );
    assert_eq!(orders, ["1/- 2/7"]);
    server.sql("shop", "ALTER TABLE orders ALTER more TYPE text; INSERT INTO orders (id, more) VALUES (3, 'x'); INSERT INTO lines VALUES (9, 10, 'y', 1)");
    until_current(&desk).expect_code(3).expect_words(&["columns-changed"]);
    assert_eq!(readers::query(&desk.warehouse(), "shop", "orders", &["count(*)"]), ["2"]);
    assert_eq!(readers::query(&desk.warehouse(), "shop", "lines", &["count(*)"]), ["2"]);
}

#[test]
fn columns_that_change_in_the_midst_of_a_transaction_and_a_numeric_that_gets_wider_are_followed() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    server.sql(
        "shop",
        "BEGIN; INSERT INTO orders (id) VALUES (1); ALTER TABLE orders ADD COLUMN more numeric(10,2);
         INSERT INTO orders (id, more) VALUES (2, 7.25); ALTER TABLE orders ALTER more TYPE numeric(14,2);
         INSERT INTO orders (id, more) VALUES (3, 10000000000.75); COMMIT",
    );
    until_current(&desk).expect_code(0);
    let list = "string_agg(id || '/' || coalesce(CAST(more AS text), '-'), ' ' ORDER BY id)";
    assert_eq!(readers::query(&desk.warehouse(), "shop", "orders", &[list]), ["1/- 2/7.25 3/10000000000.75"]);
}

#[test]
fn doctor_finds_nothing_wrong_where_a_run_works_and_names_what_is_missing_where_it_would_not() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server, "shop");
    server.sql("shop", "ALTER TABLE orders REPLICA IDENTITY FULL");
    desk.urutau(&["doctor", "-f", "pipeline.yaml"]).expect_code(0).expect_words(&["nothing is wrong"]);
    server.sql("shop", "ALTER PUBLICATION desk_pub DROP TABLE lines; ALTER PUBLICATION desk_pub SET (publish = 'insert')");
    server.sql("shop", "ALTER TABLE orders REPLICA IDENTITY NOTHING");
    let desk = desk.with_pipeline(&pipeline(&server, "shop", false));
    let words = [
        "ALTER PUBLICATION \"desk_pub\" ADD TABLE \"public\".\"lines\"",
        "ALTER TABLE \"public\".\"orders\" REPLICA IDENTITY FULL",
        "SET (publish = 'insert, update, delete, truncate')",
    ];
    desk.urutau(&["doctor", "-f", "pipeline.yaml"]).expect_code(2).expect_words(&words);
}
