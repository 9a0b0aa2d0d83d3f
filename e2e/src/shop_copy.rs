//! The small shop's tables in PostgreSQL against their copies, as an independent reader finds them.

use crate::postgres::Postgres;
use crate::{Desk, readers};

/// One line a row, in the order of the key, as both sides write it.
const ORDERS: &str = "id || '|' || coalesce(customer, '-') || '|' || coalesce(CAST(total AS text), '-') || '|' || \
                      coalesce(CAST(paid AS text), '-') || '|' || coalesce(note, '-')";
const LINES: &str = "order_id || '|' || line || '|' || coalesce(sku, '-') || '|' || coalesce(CAST(quantity AS text), '-')";

/// Panics unless the copies in a desk's warehouse are what the server has.
#[track_caller]
pub fn assert_equal(server: &Postgres, database: &str, desk: &Desk) {
    for (table, row, key) in [("orders", ORDERS, "id"), ("lines", LINES, "order_id, line")] {
        let list = format!("string_agg({row}, chr(10) ORDER BY {key})");
        let source = server.sql(database, &format!("SELECT coalesce({list}, '') FROM public.{table}"));
        let copy = readers::query(&desk.warehouse(), "shop", table, &[&format!("coalesce({list}, '')")]).join("\n");
        if source != copy {
            let (source, copy): (Vec<_>, Vec<_>) = (source.lines().collect(), copy.lines().collect());
            let missing: Vec<_> = source.iter().filter(|line| !copy.contains(line)).take(5).collect();
            let surplus: Vec<_> = copy.iter().filter(|line| !source.contains(line)).take(5).collect();
            panic!("{table}: {} rows here, {} there; missing {missing:?}, surplus {surplus:?}", source.len(), copy.len());
        }
    }
}
