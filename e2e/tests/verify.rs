//! `urutau verify` beside a run: a table that changes all the time is compared, and what a foreign hand did to the copy is named.

use std::time::{Duration, Instant};

use e2e::postgres::{Postgres, Release};
use e2e::shop::{Random, TABLES, transaction};
use e2e::{Binary, Desk, Process, Signal};
use serde_json::{Value, json};

fn begun(server: &Postgres) -> Desk {
    server.sql("postgres", "CREATE DATABASE shop");
    server.sql("shop", TABLES);
    server.sql(
        "shop",
        "INSERT INTO orders SELECT n, 'c' || n, n + 0.25, now(), n % 2 = 0, NULL FROM generate_series(1, 3000) n;
         INSERT INTO lines SELECT n / 3, n % 3, 'sku' || n, n FROM generate_series(1, 3000) n;",
    );
    let desk = Desk::new().with_pipeline(&format!(
        "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: iceberg, uri: ./warehouse, namespace: shop, checkpoint: {{ interval: 200ms }} }}
snapshot: {{ chunkRows: 500 }}
tables:
  - {{ source: public.orders }}
  - {{ source: public.lines, columnFilter: [order_id, line, quantity] }}
",
        server.uri("shop")
    ));
    desk.urutau(Desk::RUN).expect_code(0);
    desk
}

fn found(said: &str) -> Vec<Value> {
    let said: Value = serde_json::from_str(said).expect("JSON");
    said["tables"].as_array().expect("tables").clone()
}

#[test]
fn a_copy_is_compared_while_it_changes_and_what_others_did_to_it_is_named() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let desk = begun(&server);
    desk.urutau(&["verify"]).expect_code(0).expect_words(&["public.orders: 3,000 rows, and the copy has the same"]);

    // Rows that come after the run has ended are in nobody's copy yet: they are no difference.
    server.sql("shop", "INSERT INTO orders SELECT n, 'late', 1, now(), true, NULL FROM generate_series(5001, 5003) n");
    desk.urutau(&["verify", "orders", "--wait", "1"]).expect_code(5).expect_words(&["3 rows can't be judged", "running"]);

    let run = Process::start(desk.command(Binary::Plain, &["run", "-f", "pipeline.yaml", "--listen", "off"]));
    let mut verifying = Process::start(desk.command(Binary::Plain, &["verify", "--output", "json"]));
    let mut random = Random(0x7E57_AB1E_5EED_0001);
    let begun = Instant::now();
    while verifying.runs() && begun.elapsed() < Duration::from_secs(60) {
        let written: String = (0..10).map(|_| transaction(&mut random)).collect();
        server.sql("shop", &written);
    }
    let said = verifying.wait();
    assert_ne!(said.code, Some(3), "the copy is right:\n{}", said.stdout);
    let tables = found(&said.stdout);
    assert_eq!(tables.len(), 2);
    assert!(tables.iter().all(|table| table["differences"] == json!([])), "{tables:?}");
    let quiet = desk.urutau(&["verify", "--output", "json"]).expect_code(0);
    assert!(found(&quiet.stdout).iter().all(|table| table["unsettled"] == json!(0)), "{}", quiet.stdout);

    // What the log does not tell, since somebody took the table out of the publication meanwhile.
    server.sql("shop", "INSERT INTO orders SELECT n, 'kept', 1, now(), true, NULL FROM generate_series(9001, 9005) n");
    server.sql("shop", "ALTER PUBLICATION desk_pub DROP TABLE orders");
    server.sql(
        "shop",
        "DELETE FROM orders WHERE id = 9002; UPDATE orders SET note = 'silently' WHERE id = 9003;
         INSERT INTO orders VALUES (9006, 'unseen', 1, now(), true, NULL)",
    );
    server.sql("shop", "ALTER PUBLICATION desk_pub ADD TABLE orders");
    let named = desk.urutau(&["verify", "orders", "--output", "json"]).expect_code(3);
    let expected = json!([
        { "key": ["9002"], "how": "extra" },
        { "key": ["9003"], "how": "other values" },
        { "key": ["9006"], "how": "missing" },
    ]);
    assert_eq!(found(&named.stdout)[0]["differences"], expected, "{}", named.stdout);
    // Columns that are not copied are not compared.
    server.sql("shop", "UPDATE lines SET sku = 'other'");
    desk.urutau(&["verify", "lines"]).expect_code(0);
    run.send(Signal::Terminate);
    run.wait().expect_code(0);
}
