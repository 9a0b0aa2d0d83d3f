//! `urutau init` against a server: the file that it writes is valid and copies what it names, and what it leaves out it explains.

use e2e::postgres::{Postgres, Release};
use e2e::{Binary, Desk, Process, readers};

const TABLES: &str = "
    CREATE SCHEMA stock;
    CREATE TABLE customers (id int PRIMARY KEY, name text);
    CREATE TABLE stock.customers (region int, no int, note text, PRIMARY KEY (region, no));
    CREATE TABLE journal (at timestamptz, line text);
    CREATE TABLE twins (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE events (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
    INSERT INTO customers SELECT n, 'c' || n FROM generate_series(1, 250) n;
    INSERT INTO stock.customers SELECT n % 3, n, 'x' FROM generate_series(1, 90) n;
    INSERT INTO events SELECT n, '2026-02-01' FROM generate_series(1, 40) n;
    ANALYZE";

#[test]
fn a_databases_tables_become_a_pipeline_that_runs() {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", TABLES);
    let desk = Desk::new();
    let with_password = server.uri("shop").replace("postgres@", "postgres:secret@");
    assert!(with_password.contains("secret"), "{with_password}");
    let written = desk.urutau(&["init", &with_password, "--namespace", "copy"]).expect_code(0);
    written
        .expect_words(&["pipeline shop, 3 tables", "public.customers: key id", "stock.customers: key region, no"])
        .expect_words(&[
            "public.journal: left out:",
            "ADD PRIMARY KEY",
            "public.twins: left out:",
            "deferrable",
            "set PGPASSWORD",
        ])
        .expect_no_words(&["secret"]);

    let file = std::fs::read_to_string(desk.path().join("pipeline.yaml")).expect("the pipeline file");
    for line in ["about 250 rows, ", "about 40 rows, ", "target: stock_customers", "${env:PGPASSWORD}", "slotName: urutau_shop"] {
        assert!(file.contains(line), "no '{line}' in\n{file}");
    }
    assert!(!file.contains("secret") && file.contains("  # - source: public.journal\n"), "{file}");

    desk.urutau(&["validate"]).expect_code(2).expect_words(&["PGPASSWORD"]);
    let urutau = |arguments: &[&str]| {
        let mut command = desk.command(Binary::Plain, arguments);
        command.env("PGPASSWORD", "secret");
        Process::start(command).wait()
    };
    urutau(&["validate"]).expect_code(0);
    urutau(Desk::RUN).expect_code(0);
    for (table, rows) in [("customers", 250), ("stock_customers", 90), ("events", 40)] {
        assert_eq!(readers::query(&desk.warehouse(), "copy", table, &["count(*)"]), [rows.to_string()], "{table}");
    }
}

#[test]
fn a_database_that_cannot_be_copied_says_why_and_no_file_is_written() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = Desk::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        desk.urutau(&[&["init"], arguments].concat()).expect_code(2).expect_words(words);
        assert!(!desk.path().join("pipeline.yaml").exists());
    };
    refused(&[&server.uri("postgres")], &["[init-no-tables]"]);
    server.sql("postgres", "CREATE TABLE journal (line text)");
    refused(&[&server.uri("postgres")], &["[init-no-tables]", "public.journal", "REPLICA IDENTITY"]);
    refused(&["mysql://me:secret@localhost/shop"], &["[init-source]", "postgres://"]);
    refused(&[&server.uri("nowhere")], &["nowhere"]);
}
