//! The commands, as people type them, over real files.

mod desk;

use desk::{CHANGES, Desk, ICEBERG, JSONL, NULL_KEY, pipeline};
use serde_json::{Value, json};

fn orders() -> [Value; 2] {
    [json!({ "id": 1, "customer": "Ada", "total": "12.00" }), json!({ "id": 3, "customer": "Grace", "total": "20.50" })]
}

#[test]
fn a_run_copies_the_tables_and_says_what_each_got() {
    for sink in [ICEBERG, JSONL] {
        let desk = Desk::new("", sink);
        desk.run().expect(0).has(&["pipeline desk: 8 changes read", "shop.orders", "shop.lines", "streaming"]);
        assert_eq!(desk.rows("orders"), orders(), "{sink}");
        assert_eq!(desk.rows("order_lines"), [json!({ "order_id": 1, "line": 1, "sku": "A-1" })], "{sink}");
    }
}

#[test]
fn a_second_run_copies_nothing_twice_and_goes_on_with_what_is_new() {
    for sink in [ICEBERG, JSONL] {
        let desk = Desk::new("", sink);
        desk.run().expect(0);
        let before = desk.table("shop.orders");
        desk.run().expect(0);
        assert_eq!(desk.table("shop.orders")["commit"], before["commit"], "{sink}");
        let more = r#"{"before":null,"after":{"id":9,"customer":"Joan","total":"1.00"},"source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":9,"ts_ms":1700000009000},"op":"c"}"#;
        desk.append("changes.jsonl", &format!("{more}\n"));
        desk.run().expect(0);
        assert_eq!(desk.rows("orders").len(), 3, "{sink}");
    }
}

#[test]
fn a_run_for_programs_says_one_json_value() {
    let desk = Desk::new("", JSONL);
    let said = desk.urutau(&["run", "--once", "--listen", "off", "--output", "json"]).expect(0).json();
    assert_eq!(said["exit"], json!(0));
    assert_eq!(said["message"], Value::Null);
    assert_eq!(said["report"]["rows_read"], json!(8), "a changed key is two rows");
    assert_eq!(said["report"]["tables"]["shop.orders"]["phase"], json!("streaming"));
}

#[test]
fn a_table_that_halts_is_exit_code_3_and_the_others_go_on() {
    let desk = Desk::new("", ICEBERG);
    desk.append("changes.jsonl", NULL_KEY);
    desk.run().expect(3).has(&["shop.orders", "changes.jsonl", "line 8", "[jsonl-key]"]);
    assert_eq!(desk.table("shop.orders")["phase"], json!("halted"));
    assert_eq!(desk.table("shop.lines")["phase"], json!("streaming"));
    assert_eq!(desk.rows("orders"), orders());
    desk.urutau(&["doctor"]).has(&["table-stands-still", "urutau table resume shop.orders"]);
}

#[test]
fn a_line_that_is_no_event_is_exit_code_3_after_what_was_before_it() {
    let desk = Desk::new("", JSONL);
    desk.append("changes.jsonl", "{\"nothing\": 1}\n");
    desk.run().expect(3).has(&["changes.jsonl, line 8", "[jsonl-not-an-event]"]);
    assert_eq!(desk.rows("orders"), orders());
}

#[test]
fn a_log_that_was_cut_is_exit_code_4() {
    let desk = Desk::new("", JSONL);
    desk.run().expect(0);
    let first: String = CHANGES.lines().take(2).map(|line| format!("{line}\n")).collect();
    desk.write("changes.jsonl", &first);
    desk.run().expect(4).has(&["changes.jsonl"]);
    assert_eq!(desk.rows("orders"), orders());
}

#[test]
fn a_file_that_is_not_there_is_exit_code_2() {
    let desk = Desk::new("", JSONL);
    std::fs::remove_file(desk.path().join("changes.jsonl")).expect("it was there");
    desk.run().expect(2).has(&["changes.jsonl", "[jsonl-no-file]"]);
}

#[test]
fn a_good_file_is_valid_without_anything_around_it() {
    let desk = Desk::new("", ICEBERG);
    std::fs::remove_file(desk.path().join("changes.jsonl")).expect("it was there");
    desk.urutau(&["validate"]).expect(0).has(&["pipeline.yaml: good; pipeline desk, 2 tables"]);
    let said = desk.urutau(&["validate", "--output", "json"]).expect(0).json();
    assert_eq!(said, json!({ "valid": true, "pipeline": "desk", "tables": 2, "warnings": [] }));
}

#[test]
fn every_problem_of_a_file_is_told_at_once_with_its_place() {
    let desk = Desk::new("", ICEBERG);
    desk.write("pipeline.yaml", &pipeline(", pth: x", JSONL).replace("primaryKey: [id]", "primaryKeys: [id]"));
    desk.urutau(&["validate"]).expect(2).has(&["pipeline.yaml:2:", "source.pth", "tables[0].primaryKeys", "[unknown-field]"]);
    let said = desk.urutau(&["validate", "--output", "json"]).expect(2).json();
    assert_eq!(said["exit"], json!(2));
    assert!(said["problems"].as_array().is_some_and(|problems| problems.len() >= 2), "{said}");
}

#[test]
fn a_field_that_is_not_built_is_refused_by_validate_and_by_run() {
    let desk = Desk::new("", JSONL);
    desk.write("pipeline.yaml", &pipeline("", JSONL).replace("target: order_lines", "partitionBy: [line]"));
    for command in [&["validate"][..], &["run", "--listen", "off"]] {
        desk.urutau(command).expect(2).has(&["tables[1].partitionBy", "not built"]);
    }
}

#[test]
fn a_plan_tells_keys_types_and_where_a_run_would_begin_and_changes_nothing() {
    let desk = Desk::new("", ICEBERG);
    let before = desk.listing();
    desk.urutau(&["plan"]).expect(0).has(&[
        "the next run would be life 1",
        "shop.orders -> orders: upsert, key id; types inferred from the first events",
        "begins at the beginning of the log",
        "decimal(12,2)",
        "shop.lines -> order_lines: upsert, key order_id, line",
        "source.onTruncate is propagate by default; in the Go urutau it is ignore",
    ]);
    assert_eq!(desk.listing(), before, "a plan wrote something");
    desk.run().expect(0);
    let before = desk.listing();
    let end = CHANGES.len();
    desk.urutau(&["plan"]).expect(0).has(&["life 2", &format!("goes on behind changes.jsonl up to byte {end}")]);
    let said = desk.urutau(&["plan", "--output", "json"]).expect(0).json();
    assert_eq!(
        said["tables"][1]["columns"][2],
        json!({ "name": "total", "type": "decimal(12,2)", "key": false, "nullable": true, "from_the_log": false })
    );
    assert_eq!(said["would_stop"], Value::Null);
    assert_eq!(desk.listing(), before, "a plan wrote something");
}

#[test]
fn a_plan_says_that_a_run_would_end_at_once() {
    let desk = Desk::new("", ICEBERG);
    desk.run().expect(0);
    let other = CHANGES.replace("Ada", "Eve");
    desk.write("changes.jsonl", &other);
    desk.urutau(&["plan"]).expect(0).has(&["it would end at once", "another one than the copies were made from"]);
    desk.urutau(&["doctor"]).expect(2).has(&["would-not-start"]);
}

#[test]
fn a_doctor_finds_nothing_wrong_where_nothing_is_and_changes_nothing() {
    let desk = Desk::new("", ICEBERG);
    let before = desk.listing();
    let said = desk.urutau(&["doctor", "--output", "json"]).expect(0).json();
    assert_eq!((&said["errors"], &said["warnings"]), (&json!(0), &json!(0)), "{said:#}");
    assert_eq!(desk.listing(), before, "a doctor wrote something");
}

#[test]
fn a_doctor_names_what_is_wrong_with_its_remedy_and_ends_with_2() {
    let desk = Desk::new("", ICEBERG);
    std::fs::remove_file(desk.path().join("changes.jsonl")).expect("it was there");
    let said = desk.urutau(&["doctor", "--output", "json"]).expect(2).json();
    let found = said["findings"].as_array().expect("findings").clone();
    assert!(found.iter().any(|f| f["code"] == "jsonl-no-file" && f["severity"] == "error" && f["remedy"] != ""), "{said:#}");
    desk.urutau(&["doctor"]).expect(2).has(&["error:", "[jsonl-no-file]"]);
}

#[test]
fn tables_show_what_is_there_before_and_after_a_run() {
    let desk = Desk::new("", ICEBERG);
    let before = desk.listing();
    desk.urutau(&["tables"]).expect(0).has(&["it has not run yet", "pending"]);
    assert_eq!(desk.listing(), before, "looking wrote something");
    desk.run().expect(0);
    desk.urutau(&["status"]).expect(0).has(&["life 1", "shop.orders", "streaming"]);
    let orders = desk.table("shop.orders");
    assert_eq!(orders["rows"], json!(2));
    assert_eq!(orders["target"], json!("orders"));
    assert_eq!(orders["inside_a_transaction"], json!(false));
    assert!(orders["files"].as_u64().is_some_and(|files| files > 0), "{orders}");
    assert!(orders["committed_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{orders}");
}

#[test]
fn a_table_that_left_the_file_is_still_shown() {
    let desk = Desk::new("", JSONL);
    desk.run().expect(0);
    let text = pipeline("", JSONL);
    let without = text.lines().filter(|line| !line.contains("shop.lines")).collect::<Vec<_>>().join("\n");
    desk.write("pipeline.yaml", &without);
    desk.urutau(&["tables"]).expect(0).has(&["shop.lines is not in the pipeline file any more; the record says streaming"]);
    desk.run().expect(0);
    desk.urutau(&["tables"]).expect(0).has(&["shop.lines is not in the pipeline file any more; the record says needs-snapshot"]);
}

#[test]
fn a_row_is_found_by_its_key() {
    for sink in [ICEBERG, JSONL] {
        let desk = Desk::new("", sink);
        desk.urutau(&["peek", "orders"]).expect(0).has(&["the table does not hold anything yet"]);
        desk.run().expect(0);
        let said = desk.urutau(&["peek", "orders", "--key", "3", "--output", "json"]).expect(0).json();
        assert_eq!(said["rows"], json!([{ "id": 3, "customer": "Grace", "total": "20.50" }]), "{sink}");
        let said = desk.urutau(&["peek", "shop.lines", "--key", "1", "--key", "1", "--output", "json"]).expect(0).json();
        assert_eq!(said["rows"], json!([{ "order_id": 1, "line": 1, "sku": "A-1" }]), "{sink}");
        desk.urutau(&["peek", "orders", "--key", "2"]).expect(0).has(&["no row has this key"]);
        desk.urutau(&["peek", "orders", "--limit", "1"]).expect(0).has(&["id", "customer", "total"]);
        desk.urutau(&["peek", "nothing"]).expect(2).has(&["has no table 'nothing'", "shop.orders", "[no-table]"]);
    }
}

#[test]
fn a_sink_that_cannot_read_back_says_so() {
    let desk = Desk::new("", "{ kind: null, uri: ./positions }");
    desk.run().expect(0);
    assert_eq!(desk.table("shop.orders")["phase"], json!("streaming"));
    desk.urutau(&["peek", "orders"]).expect(2).has(&["[peek-unsupported]"]);
}

#[test]
fn init_writes_a_file_that_is_valid_and_runs() {
    let desk = Desk::new("", JSONL);
    desk.urutau(&["init", "changes.jsonl"]).expect(2).has(&["pipeline.yaml is there already", "--force", "[init-file-exists]"]);
    desk.urutau(&["init", "changes.jsonl", "--namespace", "shop", "--force"])
        .expect(0)
        .has(&["wrote pipeline.yaml: pipeline changes, 2 tables", "shop.orders: key not known, appended"]);
    let file = desk.read("pipeline.yaml");
    for line in ["source: shop.orders", "writeMode: append", "{ name: customer, type: string }", "Types inferred"] {
        assert!(file.contains(line), "no '{line}' in\n{file}");
    }
    let (_, list) = file.split_once("\ntables:\n").expect("a list of tables");
    let outside: Vec<&str> = list.lines().filter(|line| !line.starts_with("  ")).collect();
    assert!(outside.is_empty(), "lines of the list that are not indented: {outside:?}");
    desk.urutau(&["validate"]).expect(0);
    desk.run().expect(0);
    assert_eq!(desk.table("shop.orders")["rows"], json!(4), "each change of an order is a row");
}

#[test]
fn init_without_a_path_and_a_terminal_says_what_is_missing() {
    let desk = Desk::new("", JSONL);
    desk.urutau(&["init", "-f", "new.yaml"]).expect(2).has(&["[init-no-path]"]);
    desk.write("empty.jsonl", "");
    desk.urutau(&["init", "empty.jsonl", "-f", "new.yaml"]).expect(2).has(&["[init-no-tables]"]);
    desk.urutau(&["init", "gone.jsonl", "-f", "new.yaml"]).expect(2).has(&["gone.jsonl", "[jsonl-no-file]"]);
    assert!(!desk.path().join("new.yaml").exists());
}

#[test]
fn the_commands_that_need_no_pipeline_need_none() {
    let desk = Desk::new("", JSONL);
    let schema = desk.urutau(&["schema"]).expect(0).json();
    assert_eq!(schema["title"], json!("urutau pipeline"));
    desk.urutau(&["drivers"]).expect(0).has(&["source", "jsonl", "sink", "iceberg", "null"]);
    desk.urutau(&["version"]).expect(0).has(&["urutau 0.1.0", "built from", "jsonl"]);
    let version = desk.urutau(&["version", "--output", "json"]).expect(0).json();
    assert_eq!(version["sinks"], json!(["iceberg", "jsonl", "null"]));
    desk.urutau(&["completions", "bash"]).expect(0).has(&["_urutau()"]);
    desk.urutau(&["--version"]).expect(0).has(&["urutau 0.1.0"]);
}

#[test]
fn usage_that_makes_no_sense_is_exit_code_2() {
    let desk = Desk::new("", JSONL);
    desk.urutau(&["frobnicate"]).expect(2);
    desk.urutau(&["run", "--listen", "nowhere"]).expect(2).has(&["neither 'off' nor an address"]);
    desk.urutau(&["run", "-f", "gone.yaml"]).expect(2).has(&["gone.yaml", "urutau init"]);
}
