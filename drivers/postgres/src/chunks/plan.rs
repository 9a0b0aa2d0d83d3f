//! Where a table's key space could be divided, from what the server knows anyway: never by looking through the table.

use contract::Error;
use kernel::id;
use rows::TableSchema;

use super::bound::Bound;
use super::session;
use crate::catalog::{self, CatalogTable, Walk};
use crate::source::{PostgresSource, prepare};
use crate::wire::{Connection, WireError, identifier, literal};

/// A table that is smaller is one range: it is read before a second one is asked for.
const BYTES_MIN: u64 = 4 << 20;
/// More bounds than anybody needs.
const RANGES_MAX: u32 = 1024;

pub(super) async fn ranges(source: &PostgresSource, table: &TableSchema, wanted: u32) -> Result<Vec<id::Bound>, Error> {
    let place = &source.place;
    let mut connection = session::connect(place).await?;
    let planned = plan(&mut connection, table, wanted.min(RANGES_MAX)).await;
    connection.close().await;
    planned.map_err(|e| place.failed(&format!("table {}: planning its snapshot", table.table), e))
}

async fn plan(connection: &mut Connection, table: &TableSchema, wanted: u32) -> Result<Vec<id::Bound>, WireError> {
    let Some(found) = catalog::tables(connection, &[&table.table]).await?.remove(&table.table) else { return Ok(Vec::new()) };
    let key: Vec<&str> = table.key.iter().filter_map(|place| Some(table.columns.get(*place)?.name.as_str())).collect();
    let Some(walk) = catalog::walks(connection, found.id, &key).await?.into_iter().next() else { return Ok(Vec::new()) };
    // A bound is a whole key, and statistics are of one column.
    if walk.columns.len() != 1 || wanted < 2 || bytes(connection, &found).await? < BYTES_MIN {
        return Ok(Vec::new());
    }
    let mut values = from_statistics(connection, &found, &walk, wanted).await?;
    if values.is_empty() && matches!(walk.columns[0].kind.as_str(), "smallint" | "integer" | "bigint") {
        values = from_ends(connection, table, &found, &walk, wanted).await?;
    }
    let bound = |value| Bound { relation: found.id, order: walk.order(), key: vec![value] }.written();
    Ok(values.into_iter().map(bound).collect())
}

/// What its pages take, those of partitions too.
async fn bytes(connection: &mut Connection, found: &CatalogTable) -> Result<u64, WireError> {
    let oid = found.id.0;
    let rows = connection
        .query(&format!(
            "SELECT coalesce(
                 (SELECT pg_catalog.sum(pg_catalog.pg_relation_size(p.relid))::pg_catalog.int8
                  FROM pg_catalog.pg_partition_tree({oid}) p),
                 pg_catalog.pg_relation_size({oid}), 0)"
        ))
        .await?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0))
}

/// Values that divide the rows into equal parts as of the last ANALYZE, each once, in the order of the walk.
async fn from_statistics(
    connection: &mut Connection,
    found: &CatalogTable,
    walk: &Walk,
    wanted: u32,
) -> Result<Vec<String>, WireError> {
    let column = &walk.columns[0];
    let collate = column.collation.as_ref().map(|collation| format!(" COLLATE {collation}")).unwrap_or_default();
    let (of, name, inherited) = (&column.of, literal(&column.name), found.kind == b'p');
    let asked = connection
        .query(&format!(
            "SELECT v::pg_catalog.text FROM (
                 SELECT DISTINCT (h.value::{of}){collate} AS v
                 FROM pg_catalog.pg_stats s
                 JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
                 JOIN pg_catalog.pg_class c ON c.relname = s.tablename AND c.relnamespace = n.oid
                 CROSS JOIN LATERAL pg_catalog.unnest(s.histogram_bounds::pg_catalog.text::pg_catalog.text[]) h(value)
                 WHERE c.oid = {} AND s.attname = {name} AND s.inherited = {inherited}) d
             ORDER BY v",
            found.id.0
        ))
        .await;
    let rows = match asked {
        Ok(rows) => rows,
        // Of another type than the column is by now; and what the server says of it may hold a value.
        Err(error) if error.sqlstate().is_some_and(|code| code.starts_with("22")) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let values: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    Ok(evenly(&values, wanted as usize))
}

/// Of the ends of bins that hold equally many rows those that divide them into so many parts. The first is where the bins begin, and
/// the last needs no bound.
fn evenly(ends: &[String], parts: usize) -> Vec<String> {
    let bins = ends.len().saturating_sub(1);
    let mut places: Vec<usize> = (1..parts).map(|part| part * bins / parts).filter(|place| *place > 0).collect();
    places.dedup();
    places.into_iter().filter_map(|place| ends.get(place).cloned()).collect()
}

/// Whole numbers between the least and the greatest, which the ends of an index tell.
async fn from_ends(
    connection: &mut Connection,
    table: &TableSchema,
    found: &CatalogTable,
    walk: &Walk,
    wanted: u32,
) -> Result<Vec<String>, WireError> {
    let (column, only) = (identifier(&walk.columns[0].name), if found.kind == b'p' { "" } else { "ONLY " });
    let rows = connection
        .query(&format!(
            "SELECT pg_catalog.min({column})::pg_catalog.text, pg_catalog.max({column})::pg_catalog.text FROM {only}{}",
            prepare::table(table.table.as_str())
        ))
        .await?;
    let number = |place: usize| rows.first()?.get(place)?.as_deref()?.parse::<i64>().ok();
    let Some((least, greatest)) = number(0).zip(number(1)) else { return Ok(Vec::new()) };
    Ok(between(least, greatest, wanted))
}

fn between(least: i64, greatest: i64, wanted: u32) -> Vec<String> {
    let (least, width, wanted) = (i128::from(least), i128::from(greatest) - i128::from(least), i128::from(wanted));
    if width < wanted {
        return Vec::new();
    }
    (1..wanted).map(|n| (least + width * n / wanted).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_divided_into_equal_parts() {
        let ends: Vec<String> = (0..=12).map(|n| n.to_string()).collect();
        assert_eq!(evenly(&ends, 2), ["6"]);
        assert_eq!(evenly(&ends, 4), ["3", "6", "9"]);
        assert_eq!(evenly(&ends, 5), ["2", "4", "7", "9"]);
        assert_eq!(evenly(&ends, 99), ends[1..12]);
        for parts in [0, 1] {
            assert_eq!(evenly(&ends, parts), [""; 0]);
        }
        assert_eq!((evenly(&[], 3), evenly(&ends[..1], 3)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn numbers_are_divided_over_all_that_a_column_can_hold() {
        assert_eq!(between(0, 100, 4), ["25", "50", "75"]);
        assert_eq!(between(i64::MIN, i64::MAX, 2), ["-1"]);
        assert_eq!(between(5, 7, 4), [""; 0]);
        assert_eq!(between(5, 5, 2), [""; 0]);
    }
}
