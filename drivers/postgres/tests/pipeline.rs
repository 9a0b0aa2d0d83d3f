//! From a real server through the kernel into a sink in memory: lives that are cut off while statements go on lose nothing.

#[path = "../../../e2e/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "the harness of the end-to-end tests, of which this test needs a part")]
mod postgres;
#[path = "../../../e2e/src/shop.rs"]
#[allow(unreachable_pub, reason = "the workload of the end-to-end tests")]
mod shop;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use contract::memory::{MemoryRow, MemorySink};
use contract::{Source, StateWrite};
use host::{Drivers, Ended, Run};
use postgres::{Postgres, Release};
use postgres_source::PostgresSource;
use shop::{Random, TABLES, transaction};
use tokio::runtime::Runtime;

/// A server, a pipeline that reads it, and what the pipeline has written.
struct World {
    server: Postgres,
    sink: MemorySink,
}

impl World {
    /// The tables are there, and the pipeline has begun: what is written from here on is copied.
    fn begin(release: Release) -> World {
        let world = World { server: Postgres::start(release, &[]), sink: MemorySink::new(StateWrite::WithData) };
        world.server.sql("postgres", TABLES);
        assert_eq!(world.until_current().exit_code(), 0);
        world
    }

    fn start(&self, until_current: bool) -> Run {
        let file = format!(
            "pipeline: desk
source: {{ kind: postgres, uri: \"{}\", slotName: desk, create: true }}
sink: {{ kind: 'null', checkpoint: {{ interval: 100ms, maxRows: 300 }} }}
snapshot: {{ mode: never }}
tables: [{{ source: public.orders }}, {{ source: public.lines }}]
",
            self.server.uri("postgres")
        );
        let pipeline = spec::parse(&file, "pipeline.yaml", &spec::ProcessEnvironment).unwrap();
        let source: Arc<dyn Source> = Arc::new(PostgresSource::new("desk", &pipeline.source.settings.expose()).unwrap());
        Run::start(&pipeline, Drivers { source, sink: Arc::new(self.sink.clone()) }, until_current).unwrap()
    }

    fn until_current(&self) -> Ended {
        Runtime::new().unwrap().block_on(async { self.start(true).ended().await })
    }

    /// A life that is cut off after `time`, wherever it is, while statements go on.
    fn cut_off_after(&self, time: Duration, random: &mut Random) {
        let life = Runtime::new().unwrap();
        let _run = life.block_on(async { self.start(false) });
        let end = Instant::now() + time;
        while Instant::now() < end {
            let written: String = (0..10).map(|_| transaction(random)).collect();
            self.server.sql("postgres", &written);
        }
        life.shutdown_background();
    }

    #[track_caller]
    fn assert_equal(&self) {
        for (table, columns, row) in [
            ("orders", "id, customer, total, paid, note", order as fn(&RecordBatch) -> String),
            ("lines", "order_id, line, sku, quantity", line as fn(&RecordBatch) -> String),
        ] {
            let source = self.server.sql("postgres", &format!("SELECT {columns} FROM public.{table}"));
            let source = counted(source.lines().map(str::to_owned));
            let copy = counted(self.sink.rows(table).iter().map(|MemoryRow { data, .. }| row(data)));
            let differ: Vec<_> = source.iter().filter(|row| copy.get(row.0) != Some(row.1)).take(3).collect();
            let surplus: Vec<_> = copy.iter().filter(|row| source.get(row.0) != Some(row.1)).take(3).collect();
            assert!(source == copy, "{table}: {} rows here, {} there: {differ:?}, {surplus:?}", source.len(), copy.len());
        }
    }
}

fn counted(rows: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    rows.for_each(|row| *all.entry(row).or_insert(0) += 1);
    all
}

/// As psql writes it.
fn text(batch: &RecordBatch, column: &str) -> String {
    let array = batch.column_by_name(column).unwrap();
    array.as_string_opt::<i32>().filter(|texts| texts.is_valid(0)).map(|texts| texts.value(0).to_owned()).unwrap_or_default()
}

fn order(batch: &RecordBatch) -> String {
    let id = batch.column(0).as_primitive::<Int64Type>().value(0);
    let total = batch.column_by_name("total").unwrap().as_primitive::<Decimal128Type>();
    let total = if total.is_null(0) { String::new() } else { format!("{}.{:02}", total.value(0) / 100, total.value(0) % 100) };
    let paid = batch.column_by_name("paid").unwrap().as_boolean();
    let paid = if paid.is_null(0) {
        ""
    } else if paid.value(0) {
        "t"
    } else {
        "f"
    };
    format!("{id}|{}|{total}|{paid}|{}", text(batch, "customer"), text(batch, "note"))
}

fn line(batch: &RecordBatch) -> String {
    let id = batch.column(0).as_primitive::<Int64Type>().value(0);
    let (line, quantity) = (batch.column(1).as_primitive::<Int32Type>(), batch.column(3).as_primitive::<Int32Type>());
    format!("{id}|{}|{}|{}", line.value(0), text(batch, "sku"), quantity.value(0))
}

fn lives_that_are_cut_off_lose_nothing(release: Release) {
    let world = World::begin(release);
    let mut random = Random(0x5EED_0F0D_D5EE_D0F5);
    for life in 1..=12 {
        world.cut_off_after(Duration::from_millis(200 + random.below(1_500)), &mut random);
        if life % 4 == 0 {
            let ended = world.until_current();
            assert_eq!(ended.exit_code(), 0, "{ended:?}");
            world.assert_equal();
        }
    }
}

#[test]
fn lives_that_are_cut_off_lose_nothing_of_postgresql_15() {
    lives_that_are_cut_off_lose_nothing(Release::Fifteen);
}

#[test]
fn lives_that_are_cut_off_lose_nothing_of_postgresql_18() {
    lives_that_are_cut_off_lose_nothing(Release::Eighteen);
}

#[test]
fn a_slot_that_was_made_again_is_a_lost_position() {
    let world = World::begin(Release::Fifteen);
    world.server.sql("postgres", "SELECT pg_drop_replication_slot('desk'); INSERT INTO orders (id) VALUES (1)");
    let ended = world.until_current();
    assert_eq!(ended.exit_code(), 4, "{ended:?}");
    assert_eq!(world.until_current().exit_code(), 4, "it is made again by then, and the copy lacks a row all the same");
}

#[test]
fn a_table_halts_in_front_of_what_it_cannot_take_and_the_others_go_on() {
    let world = World::begin(Release::Fifteen);
    world.server.sql(
        "postgres",
        "INSERT INTO orders VALUES (1, 'c', 1, 'infinity', true, NULL), (2, 'c', 1, now(), true, NULL); INSERT INTO lines VALUES (1, 1, 'x', 1)",
    );
    let ended = world.until_current();
    assert_eq!(ended.exit_code(), 3, "{ended:?}");
    assert_eq!((world.sink.rows("orders").len(), world.sink.rows("lines").len()), (0, 1));
}

/// What a run with `create: true` says against tables, none of which it may publish; and whether the application still works.
#[test]
fn a_table_that_publishing_would_stop_is_not_published() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let world = World { server, sink: MemorySink::new(StateWrite::WithData) };
    let lines = "CREATE TABLE public.lines (order_id bigint, line int, sku text, quantity int, PRIMARY KEY (order_id, line))";
    let orders = "CREATE TABLE public.orders (id bigint, customer text, total numeric(12,2), placed_at timestamptz, paid boolean, note text";
    let refused = |table: &str, code: &str| {
        world.server.sql(
            "postgres",
            &format!("DROP TABLE IF EXISTS orders, lines; {lines}; {table}; INSERT INTO orders (id) VALUES (1)"),
        );
        let ended = world.until_current();
        let said = ended.message().unwrap_or_default();
        assert!(ended.exit_code() == 2 && said.contains(code) && said.contains("public.orders"), "{table}: {ended:?}");
        assert_eq!(world.server.sql("postgres", "SELECT count(*) FROM pg_publication"), "0", "{table}");
        world.server.sql("postgres", "UPDATE orders SET note = 'it works'; DELETE FROM orders");
    };
    refused(&format!("{orders}, PRIMARY KEY (id) DEFERRABLE)"), "postgres-deferrable-key");
    refused(&format!("{orders}, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)"), "postgres-deferrable-key");
    // Whole old rows do not tell either which of two rows with one key is changed.
    refused(
        &format!("{orders}, PRIMARY KEY (id) DEFERRABLE); ALTER TABLE orders REPLICA IDENTITY FULL"),
        "postgres-deferrable-key",
    );
    refused(&format!("{orders})"), "postgres-identity");
    refused(&format!("{orders}, PRIMARY KEY (id)); ALTER TABLE orders REPLICA IDENTITY NOTHING"), "postgres-identity");

    // The remedy: an index beside it that is checked row by row, and that tells old rows.
    let beside = "CREATE UNIQUE INDEX one ON orders (id); ALTER TABLE orders REPLICA IDENTITY USING INDEX one";
    world.server.sql("postgres", &format!("DROP TABLE orders; {orders}, PRIMARY KEY (id) DEFERRABLE); {beside}"));
    assert_eq!(world.until_current().exit_code(), 0);
    world.server.sql("postgres", "INSERT INTO orders (id) VALUES (1), (2); UPDATE orders SET note = 'n' WHERE id = 1");
    assert_eq!(world.until_current().exit_code(), 0);
    world.assert_equal();
}
