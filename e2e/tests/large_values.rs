//! Large values that PostgreSQL leaves out of the log where an update did not change them: real servers and real processes, tables of
//! every replica identity. The copies have them in the end, whatever happened to the rows, and whenever urutau was killed.

use std::time::{Duration, Instant};

use e2e::postgres::{Postgres, Release};
use e2e::shop::Random;
use e2e::{Binary, Desk, Process, Signal, readers};

const RUN: &[&str] = &["run", "-f", "pipeline.yaml", "--listen", "off"];

/// One for each replica identity: the primary key, an index, the whole row.
const TABLES: [&str; 3] = ["pages", "leaves", "sheets"];

/// Large values lie beside their rows, 10 KB each.
fn tables() -> String {
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (id bigint PRIMARY KEY, title text, body text);
             ALTER TABLE {name} ALTER body SET STORAGE EXTERNAL; CREATE UNIQUE INDEX {name}_id ON {name} (id);"
        )
    };
    let identities = "ALTER TABLE leaves REPLICA IDENTITY USING INDEX leaves_id; ALTER TABLE sheets REPLICA IDENTITY FULL;";
    TABLES.map(table).concat() + identities
}

/// 10 KB that are no other row's.
fn body(seed: u64) -> String {
    format!("(SELECT string_agg(md5({seed}::text || n), '') FROM generate_series(1, 320) n)")
}

fn pipeline(server: &Postgres) -> String {
    let tables = TABLES.map(|table| format!("  - {{ source: public.{table} }}\n")).concat();
    format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {{ interval: 200ms, maxRows: 40 }} }}
tables:
{tables}",
        server.uri("shop")
    )
}

fn until_current(desk: &Desk) -> e2e::Ended {
    desk.urutau(Desk::RUN)
}

/// A database with the tables, copied so far.
fn begun(server: &Postgres) -> Desk {
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", &tables());
    let desk = Desk::new().with_pipeline(&pipeline(server));
    until_current(&desk).expect_code(0);
    desk
}

/// The same change of every table.
fn everywhere(server: &Postgres, statement: &str) {
    server.sql("shop", &TABLES.map(|table| statement.replace("{t}", table) + ";").concat());
}

/// Panics unless the copies are what the server has.
#[track_caller]
fn assert_equal(server: &Postgres, desk: &Desk) {
    for table in TABLES {
        let list = "coalesce(string_agg(id || '|' || coalesce(title, '-') || '|' || coalesce(md5(body), '-') || '|' || \
                    coalesce(CAST(length(body) AS text), '-'), chr(10) ORDER BY id), '')";
        let source = server.sql("shop", &format!("SELECT {list} FROM {table}"));
        let copy = readers::query(&desk.warehouse(), "shop", table, &[list]).join("\n");
        assert_eq!(copy, source, "{table}");
    }
}

fn values_that_updates_leave_out_are_in_the_copies(release: Release) {
    let server = Postgres::start(release, &[]);
    let desk = begun(&server);
    everywhere(&server, &format!("INSERT INTO {{t}} SELECT n, 'title ' || n, {} FROM generate_series(1, 8) n", body(7)));
    until_current(&desk).expect_code(0);
    assert_equal(&server, &desk);

    // Another column changes; the row goes to another key, and back; its body becomes null, and large again.
    everywhere(&server, "UPDATE {t} SET title = 'another' WHERE id = 1");
    everywhere(&server, "UPDATE {t} SET id = 102 WHERE id = 2");
    everywhere(
        &server,
        "BEGIN; UPDATE {t} SET id = 103 WHERE id = 3; UPDATE {t} SET id = 3, title = 'again' WHERE id = 103; COMMIT",
    );
    everywhere(
        &server,
        &format!(
            "UPDATE {{t}} SET body = NULL WHERE id = 4; UPDATE {{t}} SET title = 'bare' WHERE id = 4;
                                  UPDATE {{t}} SET body = {} WHERE id = 4; UPDATE {{t}} SET title = 'dressed' WHERE id = 4",
            body(8)
        ),
    );
    // A row that is gone when it would be read, and one under whose key another one is by then.
    everywhere(&server, "UPDATE {t} SET title = 'last words' WHERE id = 5; DELETE FROM {t} WHERE id = 5");
    everywhere(
        &server,
        &format!(
            "UPDATE {{t}} SET title = 'old' WHERE id = 6; DELETE FROM {{t}} WHERE id = 6;
                                  INSERT INTO {{t}} VALUES (6, 'new', {})",
            body(9)
        ),
    );
    until_current(&desk).expect_code(0);
    assert_equal(&server, &desk);

    // All of them at once, and then none is left.
    everywhere(&server, "UPDATE {t} SET id = id + 1000, title = title || '!'");
    until_current(&desk).expect_code(0);
    assert_equal(&server, &desk);
    everywhere(&server, "UPDATE {t} SET title = 'gone'; TRUNCATE {t}");
    everywhere(&server, &format!("INSERT INTO {{t}} VALUES (1, 'one', {}); UPDATE {{t}} SET title = 'uno'", body(10)));
    until_current(&desk).expect_code(0);
    assert_equal(&server, &desk);

    // A column that comes, and one that goes, behind updates that leave a value out.
    everywhere(&server, "UPDATE {t} SET title = 'due'; ALTER TABLE {t} ADD COLUMN more int; UPDATE {t} SET more = 7");
    until_current(&desk).expect_code(0);
    assert_equal(&server, &desk);
}

#[test]
fn values_that_updates_leave_out_are_in_the_copies_of_postgresql_15() {
    values_that_updates_leave_out_are_in_the_copies(Release::Fifteen);
}

#[test]
fn values_that_updates_leave_out_are_in_the_copies_of_postgresql_18() {
    values_that_updates_leave_out_are_in_the_copies(Release::Eighteen);
}

/// Rows made, retitled, moved, given other bodies, deleted.
fn transaction(random: &mut Random) -> String {
    let mut statements = vec!["BEGIN".to_owned()];
    for _ in 0..=random.below(3) {
        let (table, id, other) = (TABLES[random.below(3) as usize], random.below(60), random.below(60));
        let body = body(random.below(1_000_000));
        statements.push(match random.below(10) {
            0..=2 => {
                format!("INSERT INTO {table} VALUES ({id}, 't{other}', {body}) ON CONFLICT (id) DO UPDATE SET title = 'met'")
            }
            3..=5 => format!("UPDATE {table} SET title = 't{other}' WHERE id BETWEEN {id} AND {id} + 3"),
            6 | 7 => {
                format!("UPDATE {table} SET id = {other} WHERE id = {id} AND NOT EXISTS (SELECT FROM {table} WHERE id = {other})")
            }
            8 => format!("UPDATE {table} SET body = {body} WHERE id = {id}"),
            _ => format!("DELETE FROM {table} WHERE id = {id}"),
        });
    }
    statements.push(if random.below(10) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
    statements.join("; ") + ";\n"
}

fn kills_lose_no_value(release: Release) {
    let server = Postgres::start(release, &[]);
    let desk = begun(&server);
    let mut random = Random(0x5EED_1A26_EBA1_0E50);
    for kill in 1..=9 {
        let mut process = Process::start(desk.command(Binary::Plain, RUN));
        let moment = Instant::now() + Duration::from_millis(300 + random.below(2_500));
        while Instant::now() < moment {
            server.sql("shop", &(0..10).map(|_| transaction(&mut random)).collect::<String>());
        }
        assert!(process.runs(), "it ended by itself:\n{}", process.stderr());
        process.send(Signal::Kill);
        let ended = process.wait();
        assert_eq!(ended.signal, Some(9));
        assert!(!ended.stderr.contains("halted"), "a table halted:\n{}", ended.stderr);
        if kill % 3 == 0 {
            until_current(&desk).expect_code(0);
            assert_equal(&server, &desk);
        }
    }
}

#[test]
fn kills_lose_no_value_that_was_left_out_by_postgresql_15() {
    kills_lose_no_value(Release::Fifteen);
}

#[test]
fn kills_lose_no_value_that_was_left_out_by_postgresql_18() {
    kills_lose_no_value(Release::Eighteen);
}

/// Where every row is kept there is no key by which a value could be read again: nothing is made up, and the table says what helps.
#[test]
fn a_target_that_keeps_every_row_refuses_what_lacks_a_value_in_its_place() {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", &tables());
    let file = format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: jsonl, uri: ./copies }}
snapshot: {{ mode: never }}
tables:
  - {{ source: public.pages, writeMode: append }}
",
        server.uri("shop")
    );
    let desk = Desk::new().with_pipeline(&file);
    until_current(&desk).expect_code(0);
    server.sql("shop", &format!("INSERT INTO pages VALUES (1, 'one', {})", body(1)));
    until_current(&desk).expect_code(0);
    server.sql("shop", "UPDATE pages SET title = 'uno'");
    until_current(&desk).expect_code(3).expect_words(&["postgres-unsent-value", "REPLICA IDENTITY FULL", "'body'"]);
}

/// The user may read the log and not the table: nothing is made up, the table says which right it lacks, and has it as soon as it is given.
#[test]
fn rows_that_may_not_be_read_halt_their_table_until_they_may() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server);
    everywhere(&server, &format!("INSERT INTO {{t}} VALUES (1, 'one', {})", body(1)));
    until_current(&desk).expect_code(0);
    server.sql(
        "shop",
        "CREATE ROLE reader LOGIN REPLICATION; REVOKE ALL ON pages FROM PUBLIC; GRANT USAGE ON SCHEMA public TO reader",
    );
    let as_reader =
        desk.with_pipeline(&pipeline(&server).replace("postgres@", "reader@").replace("create: true", "create: false"));
    server.sql("shop", "UPDATE pages SET title = 'uno'");
    until_current(&as_reader).expect_code(3).expect_words(&["postgres-select", "GRANT SELECT ON \"public\".\"pages\""]);
    server.sql("shop", "GRANT SELECT ON pages TO reader");
    as_reader.urutau(&["table", "resume", "public.pages", "-f", "pipeline.yaml"]).expect_code(0);
    until_current(&as_reader).expect_code(0);
    assert_equal(&server, &as_reader);
}
