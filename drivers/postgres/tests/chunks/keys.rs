//! Keys that the server checks late: two rows can have one for a moment, and the log does not tell which of them is changed.

use std::collections::BTreeMap;

use contract::{Source, TableRequest};

use crate::desk::{source, wanted};
use crate::postgres::{Postgres, Release};

/// What is said against a table with this key, named by the pipeline file, or nothing.
async fn said(server: &Postgres, table: &str, key: &[&str]) -> Option<&'static str> {
    let primary_key = Some(key.iter().map(|&column| column.to_owned()).collect());
    let request = TableRequest { primary_key, ..wanted(&format!("public.{table}")) };
    source(&server.uri("keys"), "keys").describe(&[request], &BTreeMap::new()).await.err().map(|error| error.code)
}

/// The primary key is not the only one that can be checked late, and the pipeline file may name its columns in another order, or more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_refused_where_only_what_is_checked_late_says_that_it_is_unique() {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE keys");
    let tables = [
        ("alone", "CREATE TABLE alone (a int NOT NULL UNIQUE DEFERRABLE, b int NOT NULL)"),
        ("late", "CREATE TABLE late (a int NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED, b int PRIMARY KEY)"),
        ("two", "CREATE TABLE two (a int, b int, PRIMARY KEY (a, b) DEFERRABLE)"),
        ("unsaid", "CREATE TABLE unsaid (a int NOT NULL, b int NOT NULL)"),
    ];
    for (table, made) in tables {
        server.sql("keys", &format!("{made}; ALTER TABLE {table} REPLICA IDENTITY FULL"));
    }
    let refused = Some("postgres-deferrable-key");
    for (table, key) in
        [("alone", &["a"][..]), ("alone", &["b", "a"]), ("late", &["a"]), ("two", &["a", "b"]), ("two", &["b", "a"])]
    {
        assert_eq!(said(&server, table, key).await, refused, "{table} {key:?}");
    }
    // With the other columns something else says so, or somebody who knows.
    for (table, key) in [("late", &["b"][..]), ("late", &["a", "b"]), ("unsaid", &["a"])] {
        assert_eq!(said(&server, table, key).await, None, "{table} {key:?}");
    }
    // An index that is checked with each row makes them keys: one of some of the columns does, one of some of the rows does not.
    server.sql("keys", "CREATE UNIQUE INDEX some_rows ON alone (a) WHERE a > 0; CREATE UNIQUE INDEX made ON alone ((a + 1))");
    assert_eq!(said(&server, "alone", &["a"]).await, refused);
    server.sql("keys", "CREATE UNIQUE INDEX at_once ON alone (a) INCLUDE (b); CREATE UNIQUE INDEX part ON two (b)");
    assert_eq!(said(&server, "alone", &["a"]).await, None);
    assert_eq!(said(&server, "two", &["a", "b"]).await, None);
}
