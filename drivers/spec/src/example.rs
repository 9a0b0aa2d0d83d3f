//! A commented pipeline file to begin with, as `urutau init` writes it.

use std::fmt::Write as _;

/// What `init` found out or was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The pipeline's name.
    pub pipeline: String,
    /// The files of change events.
    pub path: String,
    /// The directory of the warehouse.
    pub warehouse: String,
    /// The namespace of the tables.
    pub namespace: String,
    /// The tables.
    pub tables: Vec<DraftTable>,
}

/// A table of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftTable {
    /// Its name at the source.
    pub source: String,
    /// The columns of its key; empty if they are not known, which the file then says.
    pub primary_key: Vec<String>,
    /// Columns whose type the file should say.
    pub columns: Vec<DraftColumn>,
    /// What to say about it in a comment, for example its size; may be empty.
    pub note: String,
}

/// A column of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftColumn {
    /// Its name.
    pub name: String,
    /// Its type, in text form.
    pub column_type: String,
}

/// An example for a kind of source, ready to be changed; `None` if the kind is not built.
pub fn render_example(kind: &str) -> Option<String> {
    let column = |name: &str, column_type: &str| DraftColumn { name: name.into(), column_type: column_type.into() };
    let draft = Draft {
        pipeline: "order-desk".into(),
        path: "changes.jsonl".into(),
        warehouse: "./warehouse".into(),
        namespace: "shop".into(),
        tables: vec![
            DraftTable { source: "shop.orders".into(), primary_key: vec!["id".into()], columns: Vec::new(), note: String::new() },
            DraftTable {
                source: "shop.order_lines".into(),
                primary_key: vec!["order_id".into(), "line".into()],
                columns: vec![column("price", "decimal(12,2)"), column("placed_at", "timestamptz")],
                note: String::new(),
            },
        ],
    };
    (kind == "jsonl").then(|| draft.render())
}

const HEAD: &str = "\
# A urutau pipeline: one source, one sink, and the tables between them.
#   urutau validate     checks this file
#   urutau doctor       checks everything around it
#   urutau run          copies
# In every value ${env:NAME} is replaced by a variable and ${file:PATH} by what a file holds.
# All fields: docs/pipeline-reference.md; for editors: `urutau schema`.
";

const SOURCE: &str = "
  # Keep reading as the files grow; else the run ends at their end.
  # follow: true
  # What a line holds: `debezium` (an envelope) or `record` (a Kafka record with key, value and headers).
  # format: debezium
  # A TRUNCATE empties the target. `ignore` passes over it, `fail` halts the table.
  # onTruncate: propagate
";

const SINK: &str = "
  # Rows are committed at the first of these three.
  # checkpoint: { interval: 10s, maxRows: 1000000, maxBytes: 256Mi }
";

const TABLES: &str = "
# Each table at the source that is copied. `target` is its name at the sink, if it is to be another one.
tables:
";

const KEYLESS: &str = "    # Its key is not known. Name the columns, or append: each change becomes a row of its own.
    # primaryKey: [id]
    writeMode: append
";

impl Draft {
    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        let _ = write!(text, "\npipeline: {}\n\nsource:\n  kind: jsonl\n  path: {}", value(&self.pipeline), value(&self.path));
        text.push_str(SOURCE);
        let uri = value(&self.warehouse);
        let _ = write!(text, "\nsink:\n  kind: iceberg\n  uri: {uri}\n  namespace: {}", value(&self.namespace));
        text.push_str(SINK);
        text.push_str(TABLES);
        for table in &self.tables {
            table.render(&mut text);
        }
        text
    }
}

impl DraftTable {
    fn render(&self, text: &mut String) {
        if !self.note.is_empty() {
            let _ = writeln!(text, "  # {}", self.note.replace(char::is_control, " "));
        }
        let _ = writeln!(text, "  - source: {}", value(&self.source));
        match self.primary_key.as_slice() {
            [] => text.push_str(KEYLESS),
            columns => {
                let columns: Vec<String> = columns.iter().map(|column| value(column)).collect();
                let _ = writeln!(text, "    primaryKey: [{}]", columns.join(", "));
            }
        }
        if !self.columns.is_empty() {
            text.push_str("    # Types that the source does not say, or not exactly enough.\n    columns:\n");
        }
        for column in &self.columns {
            let _ = writeln!(text, "      - {{ name: {}, type: {} }}", value(&column.name), value(&column.column_type));
        }
    }
}

/// A text as YAML, in quotes where it could be read as something else.
fn value(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '/'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '*' | '+'))
        && !matches!(text.to_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off" | ".inf" | ".nan");
    if plain { text.to_owned() } else { serde_json::Value::from(text.replace("${", "$${")).to_string() }
}
