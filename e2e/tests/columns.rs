//! Columns that change while the log is copied: added, widened, gone. The target follows in the commit that brings the first rows
//! which need it, whenever the process is killed, and two independent readers find every row on either side as it was.

use e2e::readers::Expectation;
use e2e::{Desk, Process, Signal};
use serde_json::{Value, json};

const PIPELINE: &str = "pipeline: columns
source: { kind: jsonl, path: changes.jsonl }
sink: { kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { maxRows: 50 } }
tables:
  - { source: shop.items, primaryKey: [id] }
  - { source: shop.notes, primaryKey: [id] }
";

/// Columns of `shop.items`, as a connector announces them: name, type, may it be null.
type Columns = &'static [(&'static str, &'static str, bool)];

const FIRST: Columns = &[("id", "int32", false), ("name", "string", true), ("stock", "int32", true)];
const ADDED: Columns = &[("id", "int32", false), ("name", "string", true), ("stock", "int32", true), ("place", "string", true)];
const WIDENED: Columns = &[("id", "int64", false), ("name", "string", true), ("stock", "int64", true), ("place", "string", true)];
const GONE: Columns = &[("id", "int64", false), ("stock", "int64", true), ("place", "string", true), ("weight", "double", true)];

const TABLES: &str = r#"{
  "items": {
    "source": "shop.items",
    "key": ["id"],
    "columns": { "id": "int64", "name": "string", "stock": "int64", "place": "string", "weight": "float64" },
    "sometimes": ["name", "place", "weight"]
  },
  "notes": { "source": "shop.notes", "key": ["id"], "columns": { "id": "int32", "text": "string" } }
}"#;

/// An event with its schema part.
fn event(table: &str, columns: &[(&str, &str, bool)], transaction: u64, op: &str, before: &Value, after: &Value) -> String {
    let field = |(name, kind, optional): &(&str, &str, bool)| json!({ "type": kind, "optional": optional, "field": name });
    let fields: Vec<Value> = columns.iter().map(field).collect();
    let image = |name: &str| json!({ "type": "struct", "optional": true, "fields": fields, "field": name });
    let source = json!({ "connector": "mysql", "db": "desk", "schema": "shop", "table": table, "txId": transaction, "ts_ms": 1 });
    let payload = json!({ "before": before, "after": after, "source": source, "op": op });
    let schema = json!({ "type": "struct", "fields": [image("before"), image("after")] });
    format!("{}\n", json!({ "schema": schema, "payload": payload }))
}

/// Some transactions under these columns: inserts, updates and deletes of the items, and a note with each.
fn stretch(columns: Columns, transactions: std::ops::Range<u64>) -> String {
    let row = |id: u64, transaction: u64| {
        let value = |(name, kind, _): &(&str, &str, bool)| match (*name, *kind) {
            ("id", _) => json!(id),
            ("stock", "int64") => json!(i64::from(i32::MAX) + i64::try_from(transaction).expect("a small number")),
            ("stock", _) => json!(transaction),
            ("weight", _) => json!(f64::from(u32::try_from(transaction).expect("a small number")) / 4.0),
            _ if transaction.is_multiple_of(5) => Value::Null,
            (name, _) => json!(format!("{name} of {id} at {transaction}")),
        };
        columns.iter().map(|column| (column.0.to_owned(), value(column))).collect::<serde_json::Map<_, _>>()
    };
    let none = Value::Null;
    let mut text = String::new();
    for transaction in transactions {
        let id = transaction % 40;
        let key = json!({ "id": id });
        let item = |op: &str, before: &Value, after: &Value| event("items", columns, transaction, op, before, after);
        text += &match transaction % 10 {
            7 => item("d", &key, &none),
            _ => item("u", &key, &Value::Object(row(id, transaction))),
        };
        let note = json!({ "id": transaction, "text": format!("of {transaction}") });
        text += &event("notes", &[("id", "int32", false), ("text", "string", true)], transaction, "c", &none, &note);
    }
    text
}

fn desk() -> Desk {
    let desk = Desk::new().with_pipeline(PIPELINE);
    desk.write("tables.json", TABLES);
    desk.write("changes.jsonl", "");
    desk
}

fn judge(desk: &Desk) {
    let (warehouse, changes, tables) = (desk.warehouse(), desk.path().join("changes.jsonl"), desk.path().join("tables.json"));
    let expectation = Expectation { warehouse: &warehouse, namespace: "shop", changes: &changes, tables: &tables };
    expectation.compare(&[]).expect_code(0);
}

#[test]
fn both_readers_find_every_row_on_either_side_of_each_change() {
    let desk = desk();
    // A change in the midst of a run, two with one row between them, and each run begins with what the one before it stored.
    desk.append("changes.jsonl", &[stretch(FIRST, 1..120), stretch(ADDED, 120..200)].concat());
    desk.run().expect_code(0);
    desk.append("changes.jsonl", &[stretch(WIDENED, 200..201), stretch(GONE, 201..330)].concat());
    desk.run().expect_code(0);
    desk.append("changes.jsonl", &stretch(GONE, 330..400));
    desk.run().expect_code(0).expect_no_words(&["halted"]);
    judge(&desk);
}

#[test]
fn killed_at_each_boundary_of_the_commit_that_changes_the_columns_nothing_is_changed_twice() {
    for point in ["iceberg-data-written", "iceberg-metadata-written", "iceberg-swapped"] {
        let desk = desk();
        desk.append("changes.jsonl", &stretch(FIRST, 1..30));
        desk.run().expect_code(0);
        desk.append("changes.jsonl", &[stretch(ADDED, 30..60), stretch(WIDENED, 60..61), stretch(GONE, 61..120)].concat());
        let mut lives = 0;
        for nth in [1, 2, 3, 1, 4, 2] {
            let Some(process) = desk.run_parked(point, nth, &[]) else { continue };
            process.send(Signal::Kill);
            process.wait();
            lives += 1;
        }
        assert!(lives >= 3, "{point}: only {lives} lives came there");
        desk.run().expect_code(0);
        judge(&desk);
    }
}

#[test]
fn a_change_that_cannot_be_followed_halts_its_table_in_front_of_it_and_the_other_goes_on() {
    let desk = desk();
    desk.append("changes.jsonl", &stretch(FIRST, 1..30));
    let text: Columns = &[("id", "int32", false), ("name", "string", true), ("stock", "string", true)];
    let odd = event("items", text, 30, "c", &Value::Null, &json!({ "id": 99, "name": "x", "stock": "many" }));
    desk.append("changes.jsonl", &odd);
    desk.append(
        "changes.jsonl",
        &stretch(FIRST, 31..60).lines().filter(|line| line.contains("notes")).collect::<Vec<_>>().join("\n"),
    );
    let ended: Process = Process::start(desk.command(e2e::Binary::Plain, Desk::RUN));
    let ended = ended.wait().expect_code(3);
    ended.expect_words(&["shop.items is halted", "'stock' was int32 and is string", "copy the table anew"]);
    let rows = e2e::readers::query(&desk.warehouse(), "shop", "items", &["count(*)", "max(id)"]);
    assert_eq!(rows[1], "29", "the row behind the change is not there");
    let notes = e2e::readers::query(&desk.warehouse(), "shop", "notes", &["max(id)"]);
    assert_eq!(notes, ["59"], "the other table goes on");
}
