//! A run that goes on: what it answers while it runs, and how it ends when it is asked to.

use std::net::TcpListener;

use e2e::http::{free_port, get};
use e2e::readers::{Expectation, evidence, reader};
use e2e::{Binary, Changes, Desk, Process, Signal, wait_until};
use serde_json::json;

/// A pipeline that follows its file and would commit once an hour.
const PIPELINE: &str = "pipeline: running
source: { kind: jsonl, path: changes.jsonl, follow: true, transactionIdle: 100ms }
sink: { kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { interval: 1h } }
tables:
  - { source: shop.items, primaryKey: [id] }
";

const TABLES: &str = r#"{ "items": { "source": "shop.items", "key": ["id"], "columns": { "id": "int64", "name": "string" } } }"#;

fn desk() -> Desk {
    let desk = Desk::new().with_pipeline(PIPELINE);
    let changes =
        (1..=50).fold(Changes::new(), |changes, id| changes.begin().insert("items", json!({"id": id, "name": "thing"})));
    desk.write("changes.jsonl", changes.text());
    desk.write("tables.json", TABLES);
    desk
}

fn start(desk: &Desk, port: u16) -> Process {
    Process::start(desk.command(Binary::Plain, &["run", "-f", "pipeline.yaml", "--listen", &format!("127.0.0.1:{port}")]))
}

/// Waits until the run has read the whole file.
fn wait_for_rows(process: &mut Process, port: u16) {
    wait_until("the run's rows", || {
        assert!(process.runs(), "the run has ended: {}", process.stderr());
        let status: serde_json::Value = serde_json::from_str(&get(port, "/statusz")?.body).ok()?;
        (status["rows_read"].as_u64() == Some(50)).then_some(())
    });
}

#[test]
fn a_request_to_stop_commits_what_was_read() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let (desk, port) = (desk(), free_port());
        let mut process = start(&desk, port);
        wait_for_rows(&mut process, port);
        let said = evidence(&desk.warehouse(), "shop");
        assert_eq!(said["items"]["commit"], json!(null), "the run has committed before it was asked to");
        process.send(signal);
        process.wait().expect_code(0);
        let (warehouse, changes, tables) = (desk.warehouse(), desk.path().join("changes.jsonl"), desk.path().join("tables.json"));
        let expectation = Expectation { warehouse: &warehouse, namespace: "shop", changes: &changes, tables: &tables };
        expectation.judge("running").unwrap_or_else(|faults| panic!("{faults}"));
    }
}

#[test]
fn a_second_request_ends_at_once_and_loses_nothing() {
    let (desk, port) = (desk(), free_port());
    let mut process = start(&desk, port);
    wait_for_rows(&mut process, port);
    let mut lock = reader("lock.py");
    lock.arg("--warehouse").arg(desk.warehouse()).args(["--mode", "write"]);
    let lock = Process::start(lock);
    wait_until("the catalogue's lock", || lock.stdout().contains("locked").then_some(()));
    process.send(Signal::Terminate);
    wait_until("the drain", || process.stderr().contains("stopping").then_some(()));
    process.send(Signal::Terminate);
    process.wait().expect_code(130);
    lock.kill();
    desk.run().expect_code(0);
    let (warehouse, changes, tables) = (desk.warehouse(), desk.path().join("changes.jsonl"), desk.path().join("tables.json"));
    let expectation = Expectation { warehouse: &warehouse, namespace: "shop", changes: &changes, tables: &tables };
    expectation.judge("running").unwrap_or_else(|faults| panic!("{faults}"));
}

#[test]
fn the_endpoints_tell_how_it_goes() {
    let (desk, port) = (desk(), free_port());
    let mut process = start(&desk, port);
    wait_for_rows(&mut process, port);
    let answer = |path: &str| get(port, path).unwrap_or_else(|| panic!("{path}: no answer"));
    assert_eq!(answer("/healthz").status, 200);
    assert_eq!(answer("/readyz").status, 200);
    assert_eq!(answer("/nowhere").status, 404);
    let metrics = answer("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(metrics.body.contains("urutau_"), "no metric of ours:\n{}", metrics.body);
    let status: serde_json::Value = serde_json::from_str(&answer("/statusz").body).expect("/statusz is JSON");
    assert!(status["tables"]["shop.items"]["phase"].is_string(), "no phase of shop.items: {status}");
}

#[test]
fn an_address_that_is_taken_is_refused_if_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("a port has a number").to_string();
    let ended = desk().urutau(&["run", "-f", "pipeline.yaml", "--until-current", "--listen", &address]);
    ended.expect_code(2).expect_words(&[&address]);
}

#[test]
fn a_table_that_somebody_left_standing_is_said_to_stand_at_each_beginning() {
    let desk = desk().with_pipeline(&PIPELINE.replace(", follow: true, transactionIdle: 100ms", ""));
    desk.run().expect_code(0);
    let table =
        |action: &[&str]| desk.urutau(&[&["table"], action, &["-f", "pipeline.yaml", "--listen", "off", "shop.items"]].concat());
    table(&["pause"]).expect_code(0);
    let paused = ["INFO", "table is paused since an earlier run", "urutau table resume"];
    desk.run().expect_code(0).expect_line(&paused).expect_no_words(&["table goes on"]);
    table(&["drop", "--yes"]).expect_code(0);
    let dropped = ["shop.items is needs-snapshot: somebody dropped it"];
    desk.urutau(&["tables", "-f", "pipeline.yaml"]).expect_code(0).expect_words(&dropped);
    desk.run().expect_code(4).expect_words(&dropped);
}
