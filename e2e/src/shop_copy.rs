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
        let differs = difference(source.lines().collect(), copy.lines().collect());
        assert!(differs.is_none(), "{table}: {}", differs.unwrap_or_default());
    }
}

/// How the rows of two sides differ, each a line, in whatever order; `None` if they do not.
pub fn difference(mut source: Vec<&str>, mut copy: Vec<&str>) -> Option<String> {
    source.sort_unstable();
    copy.sort_unstable();
    if source == copy {
        return None;
    }
    let some_not_in = |lines: &[&str], others: &[&str]| -> Vec<String> {
        let strangers = lines.iter().filter(|line| others.binary_search(line).is_err());
        strangers.take(5).map(|line| (*line).to_owned()).collect()
    };
    let (missing, surplus) = (some_not_in(&source, &copy), some_not_in(&copy, &source));
    Some(format!("{} rows here, {} there; missing {missing:?}, surplus {surplus:?}", source.len(), copy.len()))
}
