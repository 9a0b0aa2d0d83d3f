//! What is done to the tables: by statements of a seed, each step one batch, with a mark in every table at its end.

use std::io::Write as _;
use std::process::{Child, ExitStatus, Stdio};

use e2e::ledger::Ledger;
use e2e::postgres::Postgres;
use e2e::shop::{Random, TABLES, transaction};
use e2e::wait_until;

pub(crate) const DATABASE: &str = "shop";

/// Rows with such keys came in a large transaction; nothing else touches them.
const LARGE_FROM: u64 = 1_000_000;

/// A change of a table's columns. A column of before is never changed, so that the shop's own statements go on as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Change {
    Add,
    Widen,
    Rename,
    Drop,
}

/// The types of columns that come, and what each is widened to.
const KINDS: [(&str, Option<&str>); 4] =
    [("int", Some("bigint")), ("real", Some("double precision")), ("numeric(10,2)", Some("numeric(14,2)")), ("text", None)];

/// A value of the type, of a row whose key is the number `k`: behind a widening one that did not fit before.
fn value(kind: &str) -> &'static str {
    match kind {
        "int" => "k * 7",
        "bigint" => "k + 3000000000",
        "real" => "k + 0.25",
        "double precision" => "k + 1000000000.25",
        "numeric(10,2)" => "k + 0.75",
        "numeric(14,2)" => "k + 10000000000.75",
        _ => "'of ' || k",
    }
}

/// A column that came.
struct Column {
    name: String,
    kind: &'static str,
}

/// A table, and the columns that came and did not go.
pub(crate) struct Table {
    pub(crate) ledger: Ledger,
    /// The number of a row's key, for values.
    number: &'static str,
    /// How a row is marked: with the number of the step, in the text of a row of its own.
    mark: &'static str,
    /// What an independent reader is asked for the mark.
    pub(crate) marked: &'static str,
    columns: Vec<Column>,
    /// What is to be done next with the rows of large transactions.
    large: usize,
}

/// Everything that goes on at the server.
pub(crate) struct Trade {
    pub(crate) server: Postgres,
    pub(crate) random: Random,
    pub(crate) tables: Vec<Table>,
    /// Where the log ended behind each mark.
    pub(crate) marks: Vec<u64>,
    named: usize,
}

impl Trade {
    pub(crate) fn begin(server: Postgres, seed: u64) -> Trade {
        server.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        server.sql(DATABASE, TABLES);
        server.sql(DATABASE, "CREATE TABLE public.stock (id bigint PRIMARY KEY, place text, amount int, note text)");
        let table = |table, key, number, mark, marked| Table {
            ledger: Ledger { table, key, without: &["placed_at"] },
            number,
            mark,
            marked,
            columns: Vec::new(),
            large: 0,
        };
        let note = "INSERT INTO $t (id, note) VALUES (-1, '$n') ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note";
        let sku = "INSERT INTO $t (order_id, line, sku) VALUES (-1, 0, '$n') ON CONFLICT (order_id, line) DO UPDATE SET sku = EXCLUDED.sku";
        let noted = "max(note) FILTER (WHERE id = -1)";
        let tables = vec![
            table("orders", "id", "id", note, noted),
            table("lines", "order_id, line", "(order_id * 10 + line)", sku, "max(sku) FILTER (WHERE order_id = -1)"),
            table("stock", "id", "id", note, noted),
        ];
        for table in &tables {
            table.ledger.begin(&server, DATABASE);
        }
        let mut trade = Trade { server, random: Random(seed), tables, marks: Vec::new(), named: 0 };
        for table in 0..3 {
            trade.sql(&trade.refill(table));
        }
        trade.mark();
        trade
    }

    pub(crate) fn sql(&self, statements: &str) -> String {
        self.server.sql(DATABASE, statements)
    }

    /// Rows by which a table is worth being read.
    fn refill(&self, table: usize) -> String {
        match self.tables[table].ledger.table {
            "orders" => {
                "INSERT INTO orders SELECT n, 'c' || n, n + 0.25, now(), n % 2 = 0, NULL FROM generate_series(1, 3000) n;"
            }
            "lines" => "INSERT INTO lines SELECT n / 3, n % 3, 'sku' || n, n FROM generate_series(1, 3000) n;",
            _ => "INSERT INTO stock SELECT n, 'p' || n % 7, n, NULL FROM generate_series(1, 3000) n;",
        }
        .to_owned()
    }

    /// Marks every table, by which new columns are told too.
    pub(crate) fn mark(&mut self) {
        let statements = self.marking();
        let end = self.sql(&format!("BEGIN; {statements} COMMIT; SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"));
        self.marks.push(end.parse().expect("a place in the log"));
    }

    pub(crate) fn last_mark(&self) -> u64 {
        *self.marks.last().expect("a mark")
    }

    fn marking(&self) -> String {
        self.tables.iter().map(|table| self.marking_of(table)).collect()
    }

    fn marking_of(&self, table: &Table) -> String {
        // As wide as the others, so that the greatest text is the greatest number.
        table.mark.replace("$t", table.ledger.table).replace("$n", &format!("{:08}", self.marks.len())) + ";"
    }

    /// Some ordinary transactions, of all tables.
    pub(crate) fn ordinary(&mut self) {
        let random = &mut self.random;
        let statements: String = (0..12).map(|_| transaction(random) + &stock(random)).collect();
        self.sql(&statements);
        for table in 0..3 {
            self.fill(table);
        }
        self.mark();
    }

    /// Writes into a column that came.
    fn fill(&mut self, table: usize) {
        let columns = self.tables[table].columns.len() as u64;
        if columns > 0 {
            let column = self.random.below(columns) as usize;
            let statement = self.filling(table, column);
            self.sql(&statement);
        }
    }

    fn filling(&mut self, table: usize, column: usize) -> String {
        let Table { ledger, number, columns, .. } = &self.tables[table];
        let Column { name, kind } = &columns[column];
        let value = value(kind).replace('k', number);
        let (part, from) = (self.random.below(40), ledger.key.split(',').next().unwrap_or_default());
        format!(
            "UPDATE {} SET {name} = {value} WHERE {from} BETWEEN 0 AND {LARGE_FROM} AND {number} % 40 = {part};",
            ledger.table
        )
    }

    /// Changes a table's columns, with rows before and behind, now and then all in one transaction. True if the rows of before look
    /// different under the columns of behind.
    pub(crate) fn evolve(&mut self, table: usize, change: Change) -> bool {
        let fits = |column: &Column| change != Change::Widen || wider(column.kind).is_some();
        if change != Change::Add && !self.tables[table].columns.iter().any(fits) {
            let (kind, _) = KINDS[self.random.below(3) as usize];
            self.add(table, kind);
        }
        let statement = match change {
            Change::Add => {
                let kind = KINDS[self.random.below(4) as usize].0;
                self.add(table, kind);
                return false;
            }
            Change::Widen => self.widen(table),
            Change::Rename => self.rename(table),
            Change::Drop => {
                let column = self.random.below(self.tables[table].columns.len() as u64) as usize;
                let gone = self.tables[table].columns.remove(column);
                format!("DROP COLUMN {}", gone.name)
            }
        };
        self.alter(table, &statement);
        matches!(change, Change::Rename | Change::Drop)
    }

    fn next_name(&mut self) -> String {
        self.named += 1;
        format!("x{}", self.named)
    }

    fn add(&mut self, table: usize, kind: &'static str) {
        let name = self.next_name();
        let statement = format!("ADD COLUMN {name} {kind}");
        self.tables[table].columns.push(Column { name, kind });
        self.alter(table, &statement);
        let column = self.tables[table].columns.len() - 1;
        let statement = self.filling(table, column);
        self.sql(&statement);
    }

    fn widen(&mut self, table: usize) -> String {
        let column =
            self.tables[table].columns.iter_mut().find(|column| wider(column.kind).is_some()).expect("a column to widen");
        column.kind = wider(column.kind).expect("a wider type");
        format!("ALTER COLUMN {} TYPE {}", column.name, column.kind)
    }

    fn rename(&mut self, table: usize) -> String {
        let name = self.next_name();
        let column = self.random.below(self.tables[table].columns.len() as u64) as usize;
        let old = std::mem::replace(&mut self.tables[table].columns[column].name, name.clone());
        let followed = self.tables[table].ledger.renaming(&old, &name);
        format!("RENAME COLUMN {old} TO {name}; {followed}")
    }

    fn alter(&mut self, table: usize, what: &str) {
        let name = self.tables[table].ledger.table;
        let (before, behind) = (transaction(&mut self.random), self.marking_of(&self.tables[table]));
        match self.random.below(2) {
            0 => self.sql(&format!("{before} ALTER TABLE {name} {what}; {behind}")),
            _ => self.sql(&format!("BEGIN; {behind} ALTER TABLE {name} {what}; {behind} COMMIT;")),
        };
        self.mark();
    }

    /// A transaction of so many rows: they come, are changed, move to other keys, go; in two tables at once where `stock` takes part.
    pub(crate) fn large(&mut self, rows: u64, stock: bool) {
        let mut statements = "BEGIN;".to_owned();
        let tables = if stock { vec![(1, rows / 2), (2, rows / 2)] } else { vec![(1, rows)] };
        for (table, rows) in tables {
            let (first, key, columns) = match table {
                1 => ("order_id", "order_id = order_id + 1000000000", "(order_id, line, quantity) SELECT n / 3, n % 3, n"),
                _ => ("id", "id = id + 1000000000", "(id, amount) SELECT n, n"),
            };
            let Table { ledger: Ledger { table: name, .. }, large, .. } = &mut self.tables[table];
            let these = format!("WHERE {first} >= {LARGE_FROM}");
            let (from, to) = (LARGE_FROM * 3, LARGE_FROM * 3 + rows - 1);
            statements += &match *large {
                0 => format!("INSERT INTO {name} {columns} FROM generate_series({from}, {to}) n;"),
                1 if table == 1 => format!("UPDATE lines SET quantity = quantity + 1 {these};"),
                1 => format!("UPDATE stock SET amount = amount + 1 {these};"),
                2 => format!("UPDATE {name} SET {key} {these};"),
                _ => format!("DELETE FROM {name} {these};"),
            };
            *large = (*large + 1) % 4;
        }
        self.sql(&(statements + "COMMIT;"));
        self.mark();
    }

    /// Empties `lines` and `stock` in one statement, or `orders`; what is worth being read is filled again in the same transaction.
    pub(crate) fn truncate(&mut self) {
        let tables: &[usize] = if self.random.below(2) == 0 { &[0] } else { &[1, 2] };
        let names: Vec<&str> = tables.iter().map(|table| self.tables[*table].ledger.table).collect();
        let again: String = tables.iter().filter(|table| **table != 1).map(|table| self.refill(*table)).collect();
        self.sql(&format!("BEGIN; TRUNCATE {}; {again} {} COMMIT;", names.join(", "), self.marking()));
        for table in tables {
            self.tables[*table].large = 0;
        }
        self.mark();
    }

    /// Takes the rows of large transactions out of a table.
    pub(crate) fn thin(&mut self, table: usize) {
        let Table { ledger: Ledger { table: name, key, .. }, large, .. } = &mut self.tables[table];
        *large = 0;
        let first = key.split(',').next().unwrap_or_default();
        let statement = format!("DELETE FROM {name} WHERE {first} >= {LARGE_FROM}");
        self.sql(&statement);
        self.mark();
    }

    /// A transaction that has written and stays open: see [`Open`].
    pub(crate) fn open(&self) -> Open {
        let mut psql = self.server.psql(DATABASE);
        let mut session = psql.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("psql starts");
        let begin = "SET application_name = 'straggler'; BEGIN; \
                     INSERT INTO stock SELECT n, 'open', n, NULL FROM generate_series(900001, 900500) n ON CONFLICT (id) DO UPDATE SET amount = stock.amount + 1;\n";
        session.stdin.as_mut().expect("a pipe").write_all(begin.as_bytes()).expect("psql reads");
        wait_until("the open transaction's rows", || {
            let there = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'straggler' AND state = 'idle in transaction' AND backend_xid IS NOT NULL";
            (self.sql(there) == "1").then_some(())
        });
        Open { session }
    }
}

fn wider(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(narrow, _)| *narrow == kind).and_then(|(_, wide)| *wide)
}

/// A session with an open transaction.
pub(crate) struct Open {
    session: Child,
}

impl Open {
    /// Commits it, behind everything that was committed meanwhile.
    pub(crate) fn commit(mut self) {
        self.session.stdin.take().expect("a pipe").write_all(b"COMMIT;\n").expect("psql reads");
        assert!(self.ended().success(), "the open transaction was not committed");
    }

    /// It ended with its server.
    pub(crate) fn lost(mut self) {
        drop(self.session.stdin.take());
        self.ended();
    }

    fn ended(&mut self) -> ExitStatus {
        wait_until("the end of the open transaction's session", || self.session.try_wait().expect("a child can be asked"))
    }
}

/// A transaction of the third table: rows that go and come again with the same key in it, that move, that come and go.
fn stock(random: &mut Random) -> String {
    let (id, amount) = (1 + random.below(3000), random.below(1000));
    match random.below(5) {
        0 => format!(
            "BEGIN; DELETE FROM stock WHERE id = {id}; INSERT INTO stock VALUES ({id}, 'again', {amount}, NULL); COMMIT;\n"
        ),
        1 => format!("DELETE FROM stock WHERE id BETWEEN {id} AND {id} + 9;\n"),
        2 => format!(
            "UPDATE stock SET id = id + 5000 WHERE id = {id} AND NOT EXISTS (SELECT FROM stock s WHERE s.id = {id} + 5000);\n"
        ),
        3 => format!(
            "BEGIN; INSERT INTO stock VALUES (9000 + {id}, 'short', {amount}, NULL); DELETE FROM stock WHERE id = 9000 + {id}; COMMIT;\n"
        ),
        _ => format!(
            "INSERT INTO stock SELECT n, 'p', {amount}, NULL FROM generate_series({id}, {id} + 20) n ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount, place = 'upserted';\n"
        ),
    }
}
