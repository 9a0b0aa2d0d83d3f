//! Change events for tests, written as a connector writes them: one Debezium envelope a line.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A change file in the making.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    text: String,
    transaction: u64,
}

/// One event's row images.
#[derive(Clone, Debug)]
pub struct Change {
    /// `c`, `u`, `d`, `r` or `t`.
    pub op: &'static str,
    /// The row before, or null.
    pub before: Value,
    /// The row after, or null.
    pub after: Value,
}

impl Changes {
    /// Nothing yet.
    pub fn new() -> Changes {
        Changes::default()
    }

    /// Begins a transaction: what follows belongs to it.
    #[must_use]
    pub fn begin(mut self) -> Changes {
        self.transaction += 1;
        self
    }

    /// An event of the table `shop.TABLE`.
    #[must_use]
    pub fn event(mut self, table: &str, change: Change) -> Changes {
        let Change { op, before, after } = change;
        let source = json!({"connector": "mysql", "db": "desk", "schema": "shop", "table": table, "txId": self.transaction, "ts_ms": 1_767_600_000_000_u64});
        let event = json!({"before": before, "after": after, "source": source, "op": op, "ts_ms": 1_767_600_000_000_u64});
        let _ = writeln!(self.text, "{event}"); // Writing to a String cannot fail.
        self
    }

    /// A row is made.
    #[must_use]
    pub fn insert(self, table: &str, row: Value) -> Changes {
        self.event(table, Change { op: "c", before: Value::Null, after: row })
    }

    /// A row is changed.
    #[must_use]
    pub fn update(self, table: &str, before: Value, after: Value) -> Changes {
        self.event(table, Change { op: "u", before, after })
    }

    /// A row is gone.
    #[must_use]
    pub fn delete(self, table: &str, before: Value) -> Changes {
        self.event(table, Change { op: "d", before, after: Value::Null })
    }

    /// A line as it is.
    #[must_use]
    pub fn line(mut self, line: &str) -> Changes {
        let _ = writeln!(self.text, "{line}");
        self
    }

    /// The file's content.
    pub fn text(&self) -> &str {
        &self.text
    }
}
