//! Rows and columns that the pipeline file leaves out, and columns that get another type: what reaches the target, run after run, and
//! that a copy is never gone on with as if something else had been wanted of it.

use std::collections::BTreeMap;

use e2e::postgres::{Postgres, Release};
use e2e::{Desk, readers};
use serde_json::{Value, json};

const HEAD: &str = "pipeline: shape
source: { kind: jsonl, path: changes.jsonl }
sink: { kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: { maxRows: 40 } }
tables:
  - source: shop.items
    primaryKey: [id]
    columns:
      - { name: id, type: int64 }
      - { name: status, type: string }
      - { name: price, type: \"decimal(12,2)\" }
      - { name: note, type: string }
";

const WANTED: &str = "    columnFilter: [id, price]
    cast: { price: \"decimal(6,2)\" }
    filter:
      any:
        - { where: { col: status, op: in, value: [open, \"it's paid\"] } }
        - { where: { col: id, op: gte, value: 90 } }
";

type Items = BTreeMap<u64, (String, u64)>;

fn event(transaction: u64, op: &str, before: &Value, after: &Value) -> String {
    let source =
        json!({ "connector": "mysql", "db": "desk", "schema": "shop", "table": "items", "txId": transaction, "ts_ms": 1 });
    format!("{}\n", json!({ "before": before, "after": after, "source": source, "op": op }))
}

fn price(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Some transactions, folded into what the source holds afterwards: rows come, go, change their key, and move in and out of the filter.
fn stretch(items: &mut Items, transactions: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for transaction in transactions {
        let id = (transaction * 37) % 100;
        let status = ["open", "closed", "it's paid", "lost"][(transaction as usize / 3) % 4];
        let row = |id: u64| json!({ "id": id, "status": status, "price": price(transaction), "note": format!("n{transaction}") });
        text += &match transaction % 9 {
            5 => {
                items.remove(&id);
                event(transaction, "d", &json!({ "id": id }), &Value::Null)
            }
            7 => {
                let moved = (id + 1) % 100;
                items.remove(&id);
                items.insert(moved, (status.to_owned(), transaction));
                event(transaction, "u", &json!({ "id": id }), &row(moved))
            }
            _ => {
                items.insert(id, (status.to_owned(), transaction));
                event(transaction, "u", &Value::Null, &row(id))
            }
        };
    }
    text
}

fn expected(items: &Items) -> String {
    let is_kept = |id: u64, status: &str| status == "open" || status == "it's paid" || id >= 90;
    let kept = items.iter().filter(|(id, (status, _))| is_kept(**id, status));
    kept.map(|(id, (_, cents))| format!("{id} {}", price(*cents))).collect::<Vec<_>>().join(",")
}

fn copied(desk: &Desk) -> String {
    readers::query(&desk.warehouse(), "shop", "items", &["string_agg(id || ' ' || price, ',' ORDER BY id)"]).join("")
}

#[test]
fn rows_that_match_reach_the_target_and_those_that_do_not_any_more_go() {
    let desk = Desk::new().with_pipeline(&format!("{HEAD}{WANTED}"));
    let mut items = Items::new();
    desk.write("changes.jsonl", "");
    for part in 0..4 {
        desk.append("changes.jsonl", &stretch(&mut items, part * 150..(part + 1) * 150));
        desk.run().expect_code(0);
        assert_eq!(copied(&desk), expected(&items), "after part {part}");
    }
    assert_eq!(readers::query(&desk.warehouse(), "shop", "items", &["typeof(any_value(price))"]), ["DECIMAL(6,2)"]);
    let peeked = desk.urutau(&["peek", "-f", "pipeline.yaml", "shop.items", "--key", "95", "--output", "json"]).expect_code(0);
    let peeked: Value = serde_json::from_str(&peeked.stdout).expect("JSON");
    let row = peeked["rows"][0].as_object().expect("a row");
    assert_eq!(row.keys().collect::<Vec<_>>(), ["id", "price"], "only the columns that are wanted");

    // What the pipeline wants of the copy is the copy's: with anything else nothing goes on, and nothing is changed.
    let before = copied(&desk);
    for other in [String::new(), WANTED.replace("90", "91"), WANTED.replace("[id, price]", "[id, price, note]")] {
        desk.write("pipeline.yaml", &format!("{HEAD}{other}"));
        desk.append("changes.jsonl", &stretch(&mut items, 600..601));
        desk.run().expect_code(2).expect_words(&["[table-shape-changed]", "another `target`"]);
        desk.urutau(&["plan", "-f", "pipeline.yaml"]).expect_code(2).expect_words(&["[table-shape-changed]"]);
        assert_eq!(copied(&desk), before);
    }
    desk.write("pipeline.yaml", &format!("{HEAD}{WANTED}"));
    desk.urutau(&["plan", "-f", "pipeline.yaml"]).expect_code(0).expect_words(&["decimal(6,2)"]).expect_no_words(&["note"]);
    desk.run().expect_code(0);
    assert_eq!(copied(&desk), expected(&items));
}

#[test]
fn a_value_that_does_not_fit_halts_the_table_until_somebody_says_what_becomes_of_it() {
    let desk = Desk::new().with_pipeline(&format!("{HEAD}    cast: {{ price: \"decimal(4,2)\" }}\n"));
    let row = |id: u64, price: &str| json!({ "id": id, "status": "open", "price": price, "note": null });
    let insert = |id: u64, price: &str| event(id, "c", &Value::Null, &row(id, price));
    desk.write("changes.jsonl", &[insert(1, "99.99"), insert(2, "100.00"), insert(3, "1.00")].concat());
    let halted = desk.run().expect_code(3);
    halted.expect_words(&["shop.items", "'price'", "decimal(4,2)", "above the highest", "onValue"]).expect_no_words(&["100.00"]);

    // The next run reads nothing of the table, has no log of the one before, and says why it stands still all the same.
    let why = ["shop.items is halted: ", "'price'", "decimal(4,2)", "above the highest", "onValue"];
    desk.urutau(&["tables", "-f", "pipeline.yaml"]).expect_code(0).expect_words(&why).expect_no_words(&["100.00"]);
    let since = ["WARN", "table is halted since an earlier run", "urutau table resume", "above the highest"];
    desk.run().expect_code(3).expect_words(&why).expect_line(&since).expect_no_words(&["table goes on", "100.00"]);

    desk.write("pipeline.yaml", &format!("{HEAD}    cast: {{ price: \"decimal(4,2)\" }}\n    onValue: clamp\n"));
    let resumed = desk.urutau(&["table", "resume", "-f", "pipeline.yaml", "--listen", "off", "shop.items"]);
    resumed.expect_code(0);
    desk.urutau(&["tables", "-f", "pipeline.yaml"]).expect_code(0).expect_no_words(&["above the highest"]);
    desk.run().expect_code(0);
    assert_eq!(copied(&desk), "1 99.99,2 99.99,3 1.00");
}

#[test]
fn a_wish_that_does_not_fit_the_table_is_refused_in_words() {
    let cases = [
        ("    columnFilter: [id, prise]\n", "no column 'prise'; did you mean 'price'?"),
        ("    cast: { price: date }\n", "there is no cast from decimal(12,2) to date"),
        ("    filter: { where: { col: price, op: gt, value: cheap } }\n", "write a number without quotes"),
        ("    filter: { where: { col: state, op: is_null } }\n", "did you mean 'status'?"),
    ];
    for (wanted, words) in cases {
        let desk = Desk::new().with_pipeline(&format!("{HEAD}{wanted}"));
        desk.write("changes.jsonl", &stretch(&mut Items::new(), 0..5));
        desk.run().expect_code(2).expect_words(&["[table-shape]", words, "urutau plan"]);
    }
}

/// A snapshot reads rows that do not match, the log moves rows over the border, and a large value that nobody wants is not sent.
#[test]
fn a_table_that_is_read_beside_its_log_gets_the_same_shape() {
    let server = Postgres::start(Release::Fifteen, &[]);
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql(
        "shop",
        "CREATE TABLE papers (id int PRIMARY KEY, state text NOT NULL, pages numeric(8,1), body text);
         ALTER TABLE papers ALTER COLUMN body SET STORAGE EXTERNAL;
         INSERT INTO papers SELECT n, CASE n % 3 WHEN 0 THEN 'draft' ELSE 'done' END, n, repeat('x', 9000) FROM generate_series(1, 900) n",
    );
    let pipeline = format!(
        "pipeline: papers
source: {{ kind: postgres, uri: \"{}\", slotName: papers, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop }}
snapshot: {{ chunkRows: 100 }}
tables:
  - source: public.papers
    columnFilter: [id, pages]
    cast: {{ pages: string }}
    filter: {{ where: {{ col: state, op: neq, value: draft }} }}
",
        server.uri("shop")
    );
    let desk = Desk::new().with_pipeline(&pipeline);
    let rows_of = |target: &str| {
        readers::query(&desk.warehouse(), "shop", target, &["string_agg(id || ' ' || pages, ',' ORDER BY id)"]).join("")
    };
    let copied = || rows_of("papers");
    let wanted =
        || server.sql("shop", "SELECT string_agg(id || ' ' || pages, ',' ORDER BY id) FROM papers WHERE state <> 'draft'");
    desk.urutau(Desk::RUN).expect_code(0);
    assert_eq!(copied(), wanted());
    server.sql(
        "shop",
        "UPDATE papers SET state = 'done' WHERE id % 9 = 0; UPDATE papers SET state = 'draft' WHERE id % 7 = 0;
         UPDATE papers SET pages = pages + 0.5 WHERE id % 5 = 0; DELETE FROM papers WHERE id % 11 = 0;
         UPDATE papers SET id = id + 10000 WHERE id % 13 = 0",
    );
    desk.urutau(Desk::RUN).expect_code(0).expect_no_words(&["halted"]);
    assert_eq!(copied(), wanted());

    // Another filter needs another copy; what the message says to do makes it, and the old one stays as it was.
    let before = copied();
    let more = pipeline.replace("value: draft", "value: lost");
    desk.write("pipeline.yaml", &more);
    desk.urutau(Desk::RUN).expect_code(2).expect_words(&["[table-shape-changed]", "another `target`", "when-needed"]);
    let more = more
        .replace("columnFilter:", "target: more_papers\n    columnFilter:")
        .replace("chunkRows: 100", "chunkRows: 100, mode: when-needed");
    desk.write("pipeline.yaml", &more);
    desk.urutau(Desk::RUN).expect_code(0);
    assert_eq!(rows_of("more_papers"), server.sql("shop", "SELECT string_agg(id || ' ' || pages, ',' ORDER BY id) FROM papers"));
    assert_eq!(copied(), before);
}
