//! In which orders a table's rows can be walked through by their key: along its unique indexes.

use std::collections::BTreeMap;

use crate::pgoutput::RelationId;
use crate::wire::{Connection, WireError, identifier, literal};

use super::Cells;

/// A unique index over columns of the key that are never null: each row has one place in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Walk {
    pub(crate) columns: Vec<WalkColumn>,
    /// The operators of its order, by their schema: one pair for all columns, so that keys can be compared as rows.
    operators: Operators,
}

/// A column of a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WalkColumn {
    pub(crate) name: String,
    /// Its type as SQL, with its modifier: without one, `character` would be a single letter.
    pub(crate) of: String,
    /// Its type without a modifier, on which no order depends.
    pub(crate) kind: String,
    /// Its collation as SQL, if that is not its type's own.
    pub(crate) collation: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Operators {
    namespace: String,
    above: String,
    up_to: String,
    same: String,
}

impl Walk {
    /// What the order depends on. Bounds of one order mean nothing in another one.
    pub(crate) fn order(&self) -> String {
        let columns = self.columns.iter().map(|column| {
            let collation = column.collation.as_ref().map(|collation| format!(" COLLATE {collation}")).unwrap_or_default();
            format!("{} {}{collation}", identifier(&column.name), column.kind)
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The key as SQL, as a list; `of` is what the table is called.
    pub(crate) fn columns(&self, of: &str) -> String {
        let columns = self.columns.iter().map(|column| format!("{of}.{}", identifier(&column.name)));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Does the key lie above these values?
    pub(crate) fn above(&self, of: &str, values: &[String]) -> String {
        self.compared(of, &self.operators.above, values)
    }

    /// Does the key lie below these values, or is it they?
    pub(crate) fn up_to(&self, of: &str, values: &[String]) -> String {
        self.compared(of, &self.operators.up_to, values)
    }

    /// Is the key what `other` has in columns of these names?
    pub(crate) fn same(&self, of: &str, other: &str, names: &[String]) -> String {
        let (namespace, same) = (identifier(&self.operators.namespace), &self.operators.same);
        let pairs = self.columns.iter().zip(names);
        let pairs = pairs.map(|(column, name)| {
            let column = identifier(&column.name);
            format!("{of}.{column} OPERATOR({namespace}.{same}) {other}.{}", identifier(name))
        });
        pairs.collect::<Vec<_>>().join(" AND ")
    }

    fn compared(&self, of: &str, operator: &str, values: &[String]) -> String {
        let typed = self.columns.iter().zip(values).map(|(column, value)| format!("{}::{}", literal(value), column.of));
        let (columns, values) = (self.columns(of), typed.collect::<Vec<_>>().join(", "));
        let row = if self.columns.len() > 1 { "ROW" } else { "" };
        format!("{row}({columns}) OPERATOR({}.{operator}) {row}({values})", identifier(&self.operators.namespace))
    }
}

/// The walks through a table whose rows have this key, the best one first: along the primary key, else along the index that was
/// made first.
pub(crate) async fn walks(connection: &mut Connection, table: RelationId, key: &[&str]) -> Result<Vec<Walk>, WireError> {
    struct Index {
        columns_expected: usize,
        columns: Vec<WalkColumn>,
        operators: Vec<Operators>,
    }
    let rows = connection.query(&format!("{WALKS} WHERE i.indrelid = {} AND {FIT} {ORDER}", table.0)).await?;
    let mut indexes: BTreeMap<(bool, u32), Index> = BTreeMap::new();
    for row in &rows {
        let row = Cells(row);
        // A primary key goes first.
        let index = indexes.entry((!row.boolean(1)?, row.number(0)?)).or_insert(Index {
            columns_expected: row.number(2)?,
            columns: Vec::new(),
            operators: Vec::new(),
        });
        index.columns.push(WalkColumn {
            name: row.text(3)?.to_owned(),
            of: row.text(4)?.to_owned(),
            kind: row.text(5)?.to_owned(),
            collation: row.optional(6).map(str::to_owned),
        });
        let text = |place| row.text(place).map(str::to_owned);
        index.operators.push(Operators { namespace: text(7)?, above: text(8)?, up_to: text(9)?, same: text(10)? });
    }
    let walk = |index: Index| {
        // Columns that do not fit are not among the rows.
        let is_whole = index.columns.len() == index.columns_expected;
        let is_of_key = index.columns.iter().all(|column| key.contains(&column.name.as_str()));
        let operators = index.operators.first()?.clone();
        let agree = index.operators.iter().all(|of| *of == operators);
        (is_whole && is_of_key && agree).then_some(Walk { columns: index.columns, operators })
    };
    Ok(indexes.into_values().filter_map(walk).collect())
}

const WALKS: &str = "
    SELECT i.indexrelid, i.indisprimary, i.indnkeyatts, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
           pg_catalog.format_type(a.atttypid, NULL),
           CASE WHEN a.attcollation NOT IN (0, t.typcollation) THEN
               (SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.collname)
                FROM pg_catalog.pg_collation c JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
                WHERE c.oid = a.attcollation) END,
           o.nspname, above.oprname, up_to.oprname, same.oprname
    FROM pg_catalog.pg_index i
    CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY k(attnum, place)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_opclass p ON p.oid = i.indclass[k.place - 1]
    JOIN pg_catalog.pg_amop s5 ON s5.amopfamily = p.opcfamily AND s5.amopstrategy = 5
         AND s5.amoplefttype = p.opcintype AND s5.amoprighttype = p.opcintype
    JOIN pg_catalog.pg_operator above ON above.oid = s5.amopopr
    JOIN pg_catalog.pg_amop s2 ON s2.amopfamily = p.opcfamily AND s2.amopstrategy = 2
         AND s2.amoplefttype = p.opcintype AND s2.amoprighttype = p.opcintype
    JOIN pg_catalog.pg_operator up_to ON up_to.oid = s2.amopopr AND up_to.oprnamespace = above.oprnamespace
    JOIN pg_catalog.pg_amop s3 ON s3.amopfamily = p.opcfamily AND s3.amopstrategy = 3
         AND s3.amoplefttype = p.opcintype AND s3.amoprighttype = p.opcintype
    JOIN pg_catalog.pg_operator same ON same.oid = s3.amopopr AND same.oprnamespace = above.oprnamespace
    JOIN pg_catalog.pg_namespace o ON o.oid = above.oprnamespace";

/// Strategies 2, 3 and 5 are 'up to', 'the same' and 'above' of trees ('Index Method Strategies', chapter 38.16 of the manual of 15). The order of the
/// table's own `ORDER BY` is that of the type's usual operators and the column's collation. Since 18 a column may be said to be never
/// null before that was looked at.
const FIT: &str = "
    i.indisunique AND i.indisvalid AND i.indisready AND i.indpred IS NULL AND i.indexprs IS NULL
    AND k.place <= i.indnkeyatts AND a.attnotnull AND p.opcdefault AND i.indcollation[k.place - 1] = a.attcollation
    AND p.opcmethod = (SELECT m.oid FROM pg_catalog.pg_am m WHERE m.amname = 'btree')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c
                    WHERE c.conrelid = i.indrelid AND c.contype = 'n' AND NOT c.convalidated AND c.conkey = ARRAY[a.attnum])";

const ORDER: &str = "ORDER BY i.indexrelid, k.place";

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(columns: &[(&str, &str, Option<&str>)]) -> Walk {
        let column = |(name, of, collation): &(&str, &str, Option<&str>)| WalkColumn {
            name: (*name).to_owned(),
            of: (*of).to_owned(),
            kind: of.split('(').next().unwrap_or_default().to_owned(),
            collation: collation.map(str::to_owned),
        };
        let operators = Operators { namespace: "pg_catalog".into(), above: ">".into(), up_to: "<=".into(), same: "=".into() };
        Walk { columns: columns.iter().map(column).collect(), operators }
    }

    #[test]
    fn a_key_of_one_column_is_compared_as_a_value_and_nothing_in_a_bound_ends_it_early() {
        let walk = walk(&[("na\"me", "text", None)]);
        let sql = walk.above("t", &["it's \\ '; DROP".into()]);
        assert_eq!(sql, r#"(t."na""me") OPERATOR("pg_catalog".>) (E'it''s \\ ''; DROP'::text)"#);
    }

    #[test]
    fn a_key_of_several_columns_is_compared_as_a_row() {
        let walk = walk(&[("a", "bigint", None), ("b", "character varying(3)", Some("pg_catalog.\"C\""))]);
        let sql = walk.up_to("t", &["1".into(), "x".into()]);
        assert_eq!(sql, r#"ROW(t."a", t."b") OPERATOR("pg_catalog".<=) ROW('1'::bigint, 'x'::character varying(3))"#);
        assert_eq!(walk.order(), r#""a" bigint, "b" character varying COLLATE pg_catalog."C""#);
        let same = walk.same("t", "k", &["0".into(), "1".into()]);
        assert_eq!(same, r#"t."a" OPERATOR("pg_catalog".=) k."0" AND t."b" OPERATOR("pg_catalog".=) k."1""#);
    }
}
