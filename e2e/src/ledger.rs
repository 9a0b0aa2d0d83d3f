//! What a copy must hold, written down by the server itself: beside each table a ledger in which triggers keep what every row was when the
//! log last told it, in the same transaction as the row.
//!
//! A table itself does not say that once its columns change: a row that nobody writes any more keeps, in the copy, the values of columns
//! that went, and has none of those that came. So the ledger keeps whole rows, with the columns that they had; one that is renamed is so in
//! all rows ([`Ledger::renaming`]). A row that a snapshot may have read under later columns can be either: the ledger keeps both.

use std::collections::BTreeMap;

use crate::postgres::Postgres;
use crate::{Desk, readers};

/// A table with a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ledger {
    /// Its name in the schema `public`, and that of its copy.
    pub table: &'static str,
    /// The columns of its key, as a list.
    pub key: &'static str,
    /// Columns that are not compared, since two systems write their values as different texts.
    pub without: &'static [&'static str],
}

impl Ledger {
    /// Begins to keep it. What is in the table already is not in it.
    pub fn begin(&self, server: &Postgres, database: &str) {
        let Ledger { table, key, .. } = self;
        let on = |what: &str, transition: &str| {
            format!(
                "CREATE TRIGGER told_{what} AFTER {what} ON public.{table} {transition}
                 FOR EACH STATEMENT EXECUTE FUNCTION ledger.{table}_told();"
            )
        };
        let triggers = [
            on("INSERT", "REFERENCING NEW TABLE AS come"),
            on("UPDATE", "REFERENCING OLD TABLE AS gone NEW TABLE AS come"),
            on("DELETE", "REFERENCING OLD TABLE AS gone"),
            on("TRUNCATE", ""),
        ];
        // The statements about rows are made anew each time, since the table's columns change.
        let statements = format!(
            "CREATE SCHEMA IF NOT EXISTS ledger;
             CREATE TABLE ledger.{table} (key jsonb PRIMARY KEY, rows jsonb[] NOT NULL);
             CREATE FUNCTION ledger.{table}_told() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF TG_OP IN ('UPDATE', 'DELETE') THEN
                     EXECUTE 'DELETE FROM ledger.{table} WHERE key IN (SELECT jsonb_build_array({key}) FROM gone)';
                 END IF;
                 IF TG_OP IN ('INSERT', 'UPDATE') THEN
                     EXECUTE 'INSERT INTO ledger.{table} SELECT jsonb_build_array({key}), ARRAY[to_jsonb(come)] FROM come
                              ON CONFLICT (key) DO UPDATE SET rows = EXCLUDED.rows';
                 END IF;
                 IF TG_OP = 'TRUNCATE' THEN
                     DELETE FROM ledger.{table};
                 END IF;
                 RETURN NULL;
             END $$;
             {}",
            triggers.concat()
        );
        server.sql(database, &statements);
    }

    /// From now on a row that nobody writes may also be as it is now: somebody reads the table, or its columns have changed while it was read.
    pub fn may_be_read(&self, server: &Postgres, database: &str) {
        self.set(server, database, "CASE WHEN to_jsonb(t) = ANY (l.rows) THEN l.rows ELSE l.rows || to_jsonb(t) END");
    }

    /// The statement with which the ledger follows a column that is renamed, for the transaction that renames it.
    pub fn renaming(&self, from: &str, to: &str) -> String {
        let renamed = format!(
            "row - '{from}' || CASE WHEN row ? '{from}' THEN jsonb_build_object('{to}', row -> '{from}') ELSE '{{}}' END"
        );
        format!("UPDATE ledger.{} SET rows = ARRAY(SELECT {renamed} FROM unnest(rows) row)", self.table)
    }

    /// Every row that nobody wrote since was read as it is now.
    pub fn was_read(&self, server: &Postgres, database: &str) {
        self.set(server, database, "ARRAY[to_jsonb(t)]");
    }

    fn set(&self, server: &Postgres, database: &str, rows: &str) {
        let Ledger { table, key, .. } = self;
        server.sql(
            database,
            &format!("UPDATE ledger.{table} l SET rows = {rows} FROM public.{table} t WHERE l.key = jsonb_build_array({key})"),
        );
    }

    /// How a copy differs from what must be in it, as one of [`readers::READERS`] finds it. Nothing may write meanwhile.
    pub fn difference(&self, server: &Postgres, database: &str, desk: &Desk, reader: &str) -> Option<String> {
        let columns = readers::columns(reader, &desk.warehouse(), "shop", self.table);
        if let Some(missing) = self.missing(server, database, &columns) {
            return Some(missing);
        }
        let keys = self.key.split(", ");
        let others = columns
            .iter()
            .map(String::as_str)
            .filter(|name| !self.without.contains(name) && !keys.clone().any(|key| key == *name));
        let columns: Vec<&str> = keys.clone().chain(others).collect();
        let cells = |cell: &dyn Fn(&str) -> String| columns.iter().map(|name| cell(name)).collect::<Vec<_>>().join(" || '|' || ");

        let row = cells(&|name| format!("coalesce(row ->> '{name}', '-')"));
        let rows = format!("SELECT string_agg({row}, chr(9)) FROM unnest(rows) row");
        let source = server.sql(database, &format!("SELECT ({rows}) FROM ledger.{}", self.table));
        let row = cells(&|name| format!("coalesce(CAST(\"{name}\" AS text), '-')"));
        let list = format!("coalesce(string_agg({row}, chr(10)), '')");
        let copy = readers::query_as(reader, &desk.warehouse(), "shop", self.table, &[&list]).concat();
        differs(&source, &copy, keys.count())
    }

    /// Columns that have values in the ledger, and are not in the copy at all.
    fn missing(&self, server: &Postgres, database: &str, columns: &[String]) -> Option<String> {
        let known: String = columns.iter().map(|name| format!(", '{name}'")).collect();
        let query = format!(
            "SELECT string_agg(DISTINCT cell.key, ', ') FROM ledger.{}, jsonb_each(rows[1]) cell
             WHERE cardinality(rows) = 1 AND cell.value <> 'null' AND cell.key NOT IN (''{known})",
            self.table
        );
        let missing = server.sql(database, &query);
        (!missing.is_empty()).then(|| format!("the copy has no column {missing}"))
    }
}

/// Compares what rows may be, a line a row with tabs between, with what they are. A row's key is in its first `keys` cells.
fn differs(source: &str, copy: &str, keys: usize) -> Option<String> {
    let key_of = |line: &str| line.split('|').take(keys).collect::<Vec<_>>().join("|");
    let copy: Vec<&str> = copy.lines().collect();
    let there: BTreeMap<String, &str> = copy.iter().map(|line| (key_of(line), *line)).collect();
    let choose = |may_be: &'_ str| -> String {
        let found = there.get(&key_of(may_be));
        may_be.split('\t').find(|row| found == Some(row)).or(may_be.split('\t').next()).unwrap_or_default().to_owned()
    };
    let source: Vec<String> = source.lines().map(choose).collect();
    crate::shop_copy::difference(source.iter().map(String::as_str).collect(), copy)
}

#[cfg(test)]
mod tests {
    use super::differs;

    #[test]
    fn a_row_may_be_any_of_what_the_ledger_keeps_of_it_and_nothing_else() {
        let source = "1|a|-\t1|-|a\n2|b|-";
        assert_eq!(differs(source, "2|b|-\n1|-|a", 1), None);
        assert_eq!(differs(source, "2|b|-\n1|a|-", 1), None);
        for wrong in ["2|b|-\n1|a|a", "2|b|-", "2|b|-\n1|a|-\n1|-|a", "2|-|b\n1|a|-", "2|b|-\n1|a|-\n3|c|-"] {
            assert!(differs(source, wrong, 1).is_some(), "{wrong:?} goes for right");
        }
    }
}
