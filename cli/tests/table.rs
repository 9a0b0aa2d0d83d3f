//! `urutau table`, while a run is on and while none is; and the signals that end a run.

mod desk;

use std::io::{Read, Write};

use desk::{Desk, ICEBERG, JSONL, NULL_KEY, pipeline, wait_until};
use serde_json::json;

/// An order more.
fn order(id: u32) -> String {
    let row = json!({ "id": id, "customer": "Joan", "total": "1.00" });
    let source = json!({ "connector": "postgresql", "db": "desk", "schema": "shop", "table": "orders", "txId": id, "ts_ms": 1_700_000_009_000_u64 });
    format!("{}\n", json!({ "before": null, "after": row, "source": source, "op": "c" }))
}

const FOLLOWS: &str = ", follow: true, transactionIdle: 100ms";

#[test]
fn while_no_run_is_on_the_record_is_changed_and_the_next_run_finds_it() {
    for sink in [ICEBERG, JSONL] {
        let desk = Desk::new("", sink);
        desk.run().expect(0);
        desk.urutau(&["table", "pause", "--listen", "off", "orders"]).expect(0).has(&["shop.orders is paused", "life 2"]);
        assert_eq!(desk.table("shop.orders")["phase"], json!("paused"));
        desk.urutau(&["table", "pause", "--listen", "off", "orders"]).expect(0).has(&["paused already"]);
        desk.append("changes.jsonl", &order(10));
        desk.run().expect(0);
        assert_eq!(desk.rows("orders").len(), 2, "{sink}: a paused table takes nothing");
        desk.urutau(&["table", "resume", "--listen", "off", "shop.orders"]).expect(0);
        desk.run().expect(0);
        assert_eq!(desk.rows("orders").len(), 3, "{sink}: a resumed one takes what it had passed over");
    }
}

/// A line of an order, in a transaction.
fn line(order: u32, transaction: u32) -> String {
    let row = json!({ "order_id": order, "line": 1, "sku": "C-1" });
    let source = json!({ "connector": "postgresql", "db": "desk", "schema": "shop", "table": "lines", "txId": transaction, "ts_ms": 1_700_000_009_000_u64 });
    format!("{}\n", json!({ "before": null, "after": row, "source": source, "op": "c" }))
}

#[test]
fn a_transaction_that_goes_on_after_the_files_end_reaches_every_table_wherever_it_stands() {
    let desk = Desk::new("", JSONL);
    desk.run().expect(0);
    desk.urutau(&["table", "pause", "--listen", "off", "shop.lines"]).expect(0);
    desk.append("changes.jsonl", &[line(20, 20), order(20)].concat());
    // The file's end counts as the transaction's: the orders stand behind it, the lines in front of it.
    desk.run().expect(0);
    desk.append("changes.jsonl", &[order(21).replace(r#""txId":21"#, r#""txId":20"#), line(21, 20)].concat());
    desk.urutau(&["table", "resume", "--listen", "off", "shop.lines"]).expect(0);
    desk.run().expect(0);
    let orders: Vec<_> = desk.rows("orders").iter().map(|row| row["id"].clone()).collect();
    assert_eq!(orders, [json!(1), json!(3), json!(20), json!(21)], "the order that came later is there too");
    assert_eq!(desk.rows("order_lines").len(), 3);
}

#[test]
fn a_halted_table_whose_cause_is_mended_goes_on_after_resume() {
    let desk = Desk::new("", JSONL);
    desk.append("changes.jsonl", NULL_KEY);
    desk.run().expect(3);
    let length = NULL_KEY.len();
    let mut mended = order(10);
    let blanks = " ".repeat(length - mended.len());
    mended.insert_str(mended.len() - 1, &blanks);
    desk.append("changes.jsonl", "");
    desk.write("changes.jsonl", &desk.read("changes.jsonl").replace(NULL_KEY, &mended));
    desk.run().expect(3).has(&["halted"]);
    desk.urutau(&["table", "resume", "--listen", "off", "orders"]).expect(0);
    desk.run().expect(0);
    assert_eq!(desk.rows("orders").len(), 3);
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let desk = Desk::new("", JSONL);
    let off = |words: &[&str]| desk.urutau(&[&["table"], words, &["--listen", "off"]].concat());
    off(&["pause", "orders"]).expect(2).has(&["has not run yet", "[table-not-begun]"]);
    desk.run().expect(0);
    off(&["skip", "orders"]).expect(2).has(&["[table-skip-needs-run]"]);
    off(&["resnapshot", "orders"]).expect(2).has(&["a jsonl source holds changes, not tables", "[no-snapshot]"]);
    off(&["drop", "orders"]).expect(2).has(&["--yes", "[table-drop-unconfirmed]"]);
    assert_eq!(desk.table("shop.orders")["phase"], json!("streaming"));
    off(&["drop", "orders", "--yes"]).expect(0);
    assert_eq!(desk.table("shop.orders")["phase"], json!("needs-snapshot"));
    off(&["resume", "orders"]).expect(2).has(&["[table-other-phase]"]);
    desk.run().expect(4);
    off(&["pause", "nothing"]).expect(2).has(&["[no-table]"]);
}

#[test]
fn a_run_is_asked_at_its_address() {
    let desk = Desk::new(FOLLOWS, ICEBERG);
    let mut run = desk.start();
    wait_until("the first commits", || (desk.table("shop.orders")["rows"] == json!(2)).then_some(()));
    let act = |words: &[&str]| desk.urutau(&[&["table"], words, &["--listen", &run.address]].concat());
    act(&["pause", "orders"]).expect(0).has(&["shop.orders is paused now"]);
    desk.append("changes.jsonl", &order(10));
    act(&["resume", "orders"]).expect(0).has(&["shop.orders is streaming now"]);
    wait_until("the new order", || (desk.table("shop.orders")["rows"] == json!(3)).then_some(()));
    desk.append("changes.jsonl", NULL_KEY);
    // Told by the run's own log, since between the resume and the second halt the phase still is, or is again, 'halted'.
    let halts = || desk.read("run.log").matches("table halted").count();
    wait_until("the halt", || (halts() == 1).then_some(()));
    act(&["pause", "orders"]).expect(2).has(&["is halted", "[table-other-phase]"]);
    act(&["resume", "orders"]).has(&["shop.orders"]);
    wait_until("the halt again", || (halts() == 2).then_some(()));
    act(&["skip", "orders"]).expect(0).has(&["shop.orders is streaming now"]);
    // That it was told to is stored before the event is passed.
    assert_eq!(desk.table("shop.orders")["skipped"].as_array().map(Vec::len), Some(1));
    desk.append("changes.jsonl", &order(11));
    wait_until("the order behind it", || (desk.table("shop.orders")["rows"] == json!(4)).then_some(()));
    act(&["drop", "orders", "--yes"]).expect(0).has(&["shop.orders is needs-snapshot now"]);
    run.signal("TERM");
    assert_eq!(run.wait(), Some(4), "{}", desk.read("run.log"));
}

#[test]
fn the_run_of_another_pipeline_is_not_asked() {
    let desk = Desk::new(FOLLOWS, JSONL);
    let run = desk.start();
    wait_until("the first commits", || (desk.table("shop.orders")["phase"] == json!("streaming")).then_some(()));
    desk.write("other.yaml", &pipeline("", "{ kind: jsonl, uri: ./other }").replace("pipeline: desk", "pipeline: other"));
    desk.urutau(&["table", "pause", "-f", "other.yaml", "--listen", &run.address, "orders"])
        .expect(2)
        .has(&["no run of pipeline other answers", "[table-no-run]"]);
    assert_eq!(desk.table("shop.orders")["phase"], json!("streaming"));
}

#[test]
fn a_run_that_nobody_named_stops_when_the_record_is_changed_behind_it() {
    let desk = Desk::new(FOLLOWS, JSONL);
    let mut run = desk.start();
    wait_until("the first commits", || (desk.table("shop.orders")["phase"] == json!("streaming")).then_some(()));
    desk.urutau(&["table", "pause", "--listen", "off", "orders"]).expect(0).has(&["stops at its next write"]);
    desk.append("changes.jsonl", &order(10));
    assert_eq!(run.wait(), Some(1), "{}", desk.read("run.log"));
    assert!(desk.read("run.log").contains("superseded"), "{}", desk.read("run.log"));
    assert_eq!(desk.table("shop.orders")["phase"], json!("paused"));
}

#[test]
fn sigterm_commits_what_was_read_and_ends_with_0() {
    for signal in ["TERM", "INT"] {
        // Nothing would be committed by age.
        let desk = Desk::new(FOLLOWS, "{ kind: iceberg, uri: ./warehouse, checkpoint: { interval: 1h } }");
        let mut run = desk.start();
        wait_until("the rows to be read", || (status(&run.address)?["rows_read"] == json!(8)).then_some(()));
        run.signal(signal);
        assert_eq!(run.wait(), Some(0), "{}", desk.read("run.log"));
        assert_eq!(desk.table("shop.orders")["rows"], json!(2), "{signal}");
        assert!(desk.read("run.out").contains("pipeline desk: 8 changes read"), "{}", desk.read("run.out"));
    }
}

#[test]
fn a_second_signal_ends_a_drain_that_hangs_with_130_and_nothing_is_lost() {
    let desk = Desk::new(FOLLOWS, "{ kind: jsonl, uri: ./out, checkpoint: { interval: 1h } }");
    let mut run = desk.start();
    wait_until("the rows to be read", || (status(&run.address)?["rows_read"] == json!(8)).then_some(()));
    // No commit can end while somebody else has the table's lock.
    let lock = std::fs::File::open(desk.path().join("out/.orders.lock")).expect("the table's lock");
    lock.lock().expect("the lock is free between two commits");
    run.signal("TERM");
    wait_until("the drain", || desk.read("run.log").contains("stopping").then_some(()));
    run.signal("TERM");
    assert_eq!(run.wait(), Some(130), "{}", desk.read("run.log"));
    assert!(desk.read("run.log").contains("interrupted before a clean end: a second signal came"), "{}", desk.read("run.log"));
    drop(lock);
    desk.write("pipeline.yaml", &pipeline("", JSONL));
    desk.run().expect(0);
    assert_eq!(desk.rows("orders").len(), 2);
}

#[test]
fn a_run_serves_its_status_metrics_and_health() {
    let desk = Desk::new(FOLLOWS, JSONL);
    let run = desk.start();
    wait_until("it to be ready", || get(&run.address, "readyz").filter(|answer| answer.starts_with("HTTP/1.1 200")));
    assert!(get(&run.address, "healthz").is_some_and(|answer| answer.ends_with("ok\n")));
    wait_until("rows", || (status(&run.address)?["tables"]["shop.orders"]["rows_committed"] != json!(0)).then_some(()));
    let status = status(&run.address).expect("a status");
    assert_eq!((&status["pipeline"], &status["incarnation"], &status["running"]), (&json!("desk"), &json!(1), &json!(true)));
    let metrics = get(&run.address, "metrics").expect("metrics");
    for name in [
        "urutau_coordinator_events_decoded_total 8",
        "urutau_coordinator_commits_total{table=\"shop.orders\"}",
        "urutau_worker_rows_written_total{table=\"shop.orders\"}",
        "urutau_worker_commit_duration_seconds",
        "urutau_coordinator_pending_rows{table=\"shop.orders\"}",
        "urutau_table_halted{table=\"shop.orders\"} 0",
        "urutau_source_behind",
        "urutau_source_lag_seconds",
        "urutau_coordinator_committed_timestamp_seconds{table=\"shop.orders\"}",
        "urutau_inflight_bytes",
    ] {
        assert!(metrics.contains(name), "no '{name}' in\n{metrics}");
    }
}

fn get(address: &str, path: &str) -> Option<String> {
    let mut connection = std::net::TcpStream::connect(address).ok()?;
    write!(connection, "GET /{path} HTTP/1.1\r\nHost: urutau\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn status(address: &str) -> Option<serde_json::Value> {
    let answer = get(address, "statusz")?;
    serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()
}
