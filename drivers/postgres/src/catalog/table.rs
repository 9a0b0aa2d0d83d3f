//! Tables and their columns, keys and replica identities.

use std::collections::BTreeMap;

use contract::{TableSize, serde_json};
use kernel::id::TableName;

use crate::pgoutput::{Identity, RelationId, TypeId};
use crate::wire::{Connection, Row, WireError, literal};

use super::Cells;

/// A relation of the catalogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CatalogTable {
    pub(crate) id: RelationId,
    /// `r` a table, `p` a partitioned one, `v` a view ...
    pub(crate) kind: u8,
    /// `p`ermanent, `u`nlogged, `t`emporary
    pub(crate) persistence: u8,
    pub(crate) identity: Identity,
    /// May its rows be selected?
    pub(crate) may_select: bool,
    /// Would policies hide rows of it?
    pub(crate) has_policies: bool,
    pub(crate) columns: Vec<CatalogColumn>,
    /// The primary key's columns, in its order.
    pub(crate) primary_key: Vec<String>,
    /// Is the primary key checked with each row? The server takes no other one as the replica identity.
    pub(crate) primary_is_immediate: bool,
    /// What says that columns are unique, of all rows.
    pub(crate) unique: Vec<Unique>,
    /// The columns of the index that is the replica identity, in its order.
    pub(crate) identity_index: Vec<String>,
}

/// An index that says of columns that they are unique.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unique {
    /// With each row? Else when the statement or the transaction ends, and in between two rows can have one key.
    pub(crate) is_immediate: bool,
    pub(crate) columns: Vec<String>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CatalogColumn {
    pub(crate) name: String,
    /// Which of the table's columns it is: no other one ever has its number.
    pub(crate) number: u32,
    pub(crate) type_id: TypeId,
    pub(crate) modifier: i32,
    /// Is it computed by the server?
    pub(crate) is_generated: bool,
    /// When it is read, and never stored? Then no log tells it.
    pub(crate) is_virtual: bool,
    /// May a value of it lie outside of its row, so that an update that leaves it alone does not send it?
    pub(crate) may_be_outside: bool,
}

/// The words of `ALTER TABLE ... REPLICA IDENTITY`.
pub(crate) const IDENTITY_WORDS: [(Identity, &str); 4] = [
    (Identity::Default, "DEFAULT (the primary key)"),
    (Identity::Nothing, "NOTHING"),
    (Identity::Full, "FULL"),
    (Identity::Index, "an index"),
];

impl CatalogTable {
    /// Does an old row of the log tell this column?
    pub(crate) fn tells(&self, column: &str) -> bool {
        match self.identity {
            Identity::Full => true,
            Identity::Nothing => false,
            Identity::Default => self.primary_is_immediate && self.primary_key.iter().any(|name| name == column),
            Identity::Index => self.identity_index.iter().any(|name| name == column),
        }
    }

    /// Is it nothing but a check that comes late which says that a key of these columns is unique? Where nothing says so, somebody knows.
    pub(crate) fn is_unique_late(&self, key: &[String]) -> bool {
        let says = |immediate: bool| {
            let mut of_key = self.unique.iter().filter(|unique| unique.columns.iter().all(|column| key.contains(column)));
            of_key.any(|unique| unique.is_immediate == immediate)
        };
        says(false) && !says(true)
    }

    /// Does the server refuse updates and deletes of it once it is published?
    pub(crate) fn is_frozen_by_publishing(&self) -> bool {
        match self.identity {
            Identity::Full => false,
            Identity::Nothing => true,
            Identity::Default => !self.primary_is_immediate,
            Identity::Index => self.identity_index.is_empty(),
        }
    }
}

/// These names as SQL: rows of a schema's and a table's.
fn wanted(names: &[&TableName]) -> Vec<String> {
    let parts = names.iter().filter_map(|name| name.as_str().split_once('.'));
    parts.map(|(namespace, name)| format!("({}, {})", literal(namespace), literal(name))).collect()
}

/// The relations of these names, as far as they are there.
pub(crate) async fn tables(
    connection: &mut Connection,
    names: &[&TableName],
) -> Result<BTreeMap<TableName, CatalogTable>, WireError> {
    let mut found = BTreeMap::new();
    let wanted = wanted(names);
    if wanted.is_empty() {
        return Ok(found);
    }
    let mut keys: BTreeMap<TableName, [Vec<(i32, String)>; 2]> = BTreeMap::new();
    let rows = connection
        .query(&format!("{TABLES} WHERE (n.nspname, c.relname) IN ({}) ORDER BY c.oid, a.attnum", wanted.join(", ")))
        .await?;
    for row in &rows {
        let row = Cells(row);
        let name = TableName::from(format!("{}.{}", row.text(0)?, row.text(1)?));
        if !found.contains_key(&name) {
            found.insert(name.clone(), relation(row)?);
        }
        let (Some(column), Some(table)) = (row.optional(6), found.get_mut(&name)) else { continue };
        let [primary, identity] = keys.entry(name).or_default();
        for (place, key) in [(12, primary), (13, identity)] {
            if row.optional(place).is_some() {
                key.push((row.number(place)?, column.to_owned()));
            }
        }
        table.columns.push(CatalogColumn {
            name: column.to_owned(),
            number: row.number(18)?,
            type_id: TypeId(row.number(7)?),
            modifier: row.number(8)?,
            is_generated: row.letter(10)? != 0,
            is_virtual: row.letter(10)? == b'v',
            may_be_outside: row.boolean(11)?,
        });
    }
    for (name, [mut primary, mut identity]) in keys {
        primary.sort();
        identity.sort();
        if let Some(table) = found.get_mut(&name) {
            table.primary_key = primary.into_iter().map(|(_, column)| column).collect();
            table.identity_index = identity.into_iter().map(|(_, column)| column).collect();
        }
    }
    Ok(found)
}

fn relation(row: Cells<'_>) -> Result<CatalogTable, WireError> {
    Ok(CatalogTable {
        id: RelationId(row.number(2)?),
        kind: row.letter(3)?,
        persistence: row.letter(4)?,
        identity: match row.letter(5)? {
            b'f' => Identity::Full,
            b'n' => Identity::Nothing,
            b'i' => Identity::Index,
            _ => Identity::Default,
        },
        may_select: row.boolean(14)?,
        has_policies: row.boolean(15)?,
        primary_is_immediate: row.boolean(16)?,
        unique: unique(row.text(17)?)?,
        columns: Vec::new(),
        primary_key: Vec::new(),
        identity_index: Vec::new(),
    })
}

/// Reads `[[true, ["id"]], ...]`.
fn unique(said: &str) -> Result<Vec<Unique>, WireError> {
    let indexes: Vec<(bool, Vec<String>)> = serde_json::from_str(said)
        .map_err(|_| WireError::Protocol("an answer has something else in place of a list of indexes".into()))?;
    Ok(indexes.into_iter().map(|(is_immediate, columns)| Unique { is_immediate, columns }).collect())
}

/// Columns that an index only includes are no part of its key.
const TABLES: &str = "
    SELECT n.nspname, c.relname, c.oid, c.relkind, c.relpersistence, c.relreplident,
           a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated, a.attstorage IN ('x', 'e'),
           (SELECT k.place FROM pg_catalog.pg_index i, LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY k(attnum, place)
            WHERE i.indrelid = c.oid AND i.indisprimary AND k.attnum = a.attnum AND k.place <= i.indnkeyatts),
           (SELECT k.place FROM pg_catalog.pg_index i, LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY k(attnum, place)
            WHERE i.indrelid = c.oid AND i.indisreplident AND k.attnum = a.attnum AND k.place <= i.indnkeyatts),
           pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),
           pg_catalog.row_security_active(c.oid),
           EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate),
           (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(i.indimmediate, ARRAY(
                       SELECT k.attname FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY u(attnum, place)
                       JOIN pg_catalog.pg_attribute k ON k.attrelid = c.oid AND k.attnum = u.attnum
                       WHERE u.place <= i.indnkeyatts))), '[]')
            FROM pg_catalog.pg_index i
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL),
           a.attnum
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped";

/// A column that a table has or had, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attribute {
    /// Its name; `None` if it was dropped.
    pub(crate) name: Option<String>,
    /// What rows have in it that came before it, as text. A table that was written anew since (a `VACUUM FULL`, a default that is another
    /// one for each row) has it in its rows, and nothing here.
    pub(crate) initial: Option<String>,
}

/// The columns that a table has or had, by their numbers, as the catalogue has them now.
pub(crate) async fn attributes(connection: &mut Connection, id: RelationId) -> Result<BTreeMap<u32, Attribute>, WireError> {
    let rows = connection.query(&ATTRIBUTES.replace("$1", &id.0.to_string())).await?;
    let attribute = |row| {
        let row = Cells(row);
        let text = |at| row.optional(at).map(str::to_owned);
        Ok((row.number(0)?, Attribute { name: text(1), initial: text(2) }))
    };
    rows.iter().map(attribute).collect()
}

/// Of a partitioned table only its leaves have rows, and each numbers its columns by itself; one of them speaks for all.
const ATTRIBUTES: &str = "
    SELECT a.attnum, CASE WHEN NOT a.attisdropped THEN a.attname END,
           (SELECT CASE WHEN l.atttypid = 'pg_catalog.money'::pg_catalog.regtype
                        THEN m.initial[1]::pg_catalog.money::pg_catalog.numeric::pg_catalog.text ELSE m.initial[1] END
            FROM pg_catalog.pg_attribute l, LATERAL (SELECT l.attmissingval::pg_catalog.text::pg_catalog.text[]) m(initial)
            WHERE l.attrelid = ANY (ARRAY(SELECT $1::pg_catalog.oid UNION ALL SELECT t.relid FROM pg_catalog.pg_partition_tree($1) t))
              AND l.attname = a.attname AND l.attnum > 0 AND NOT l.attisdropped AND l.atthasmissing
            ORDER BY l.attrelid LIMIT 1)
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0";

/// The tables that could be asked for: permanent ones, partitioned ones by their root.
pub(crate) async fn discover(connection: &mut Connection, schemas: &[String]) -> Result<Vec<TableName>, WireError> {
    let only = match schemas {
        [] => "n.nspname NOT IN ('pg_catalog', 'information_schema')".to_owned(),
        schemas => format!("n.nspname IN ({})", schemas.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ")),
    };
    let rows = connection.query(&format!("{DISCOVER} AND {only} ORDER BY 1, 2")).await?;
    rows.iter().map(|row| Ok(TableName::from(format!("{}.{}", Cells(row).text(0)?, Cells(row).text(1)?)))).collect()
}

const DISCOVER: &str = "
    SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
      AND pg_catalog.left(n.nspname, 8) <> 'pg_toast' AND pg_catalog.left(n.nspname, 7) <> 'pg_temp'";

/// About how large tables are, as the server's statistics say: with all their partitions, and bytes with their indexes.
pub(crate) async fn sizes(
    connection: &mut Connection,
    names: &[&TableName],
) -> Result<BTreeMap<TableName, TableSize>, WireError> {
    let wanted = wanted(names);
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = connection.query(&format!("{SIZES} WHERE (n.nspname, c.relname) IN ({})", wanted.join(", "))).await?;
    let size = |row: &Row| {
        let row = Cells(row);
        let name = TableName::from(format!("{}.{}", row.text(0)?, row.text(1)?));
        let rows = row.optional(2).map(|_| row.number(2)).transpose()?;
        Ok((name, TableSize { rows, bytes: row.number(3)? }))
    };
    rows.iter().map(size).collect()
}

/// A table that was never analysed has no number of rows.
const SIZES: &str = "
    SELECT n.nspname, c.relname,
           CASE WHEN c.relkind <> 'p' THEN NULLIF(c.reltuples, -1)::pg_catalog.int8 ELSE (
               SELECT CASE WHEN pg_catalog.bool_and(p.reltuples >= 0) THEN pg_catalog.sum(p.reltuples)::pg_catalog.int8 END
               FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class p ON p.oid = t.relid WHERE t.isleaf) END,
           CASE WHEN c.relkind <> 'p' THEN pg_catalog.pg_total_relation_size(c.oid) ELSE (
               SELECT COALESCE(pg_catalog.sum(pg_catalog.pg_total_relation_size(t.relid)), 0)
               FROM pg_catalog.pg_partition_tree(c.oid) t) END
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";
