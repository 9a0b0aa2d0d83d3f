//! A commented pipeline file to begin with, as `urutau init` writes it.

use std::fmt::Write as _;

/// What `init` found out or was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The pipeline's name.
    pub pipeline: String,
    /// Where changes come from.
    pub source: DraftSource,
    /// The directory of the warehouse.
    pub warehouse: String,
    /// The namespace of the tables.
    pub namespace: String,
    /// The tables.
    pub tables: Vec<DraftTable>,
}

/// The source of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DraftSource {
    /// Files of change events.
    Files {
        /// Their path, or a pattern.
        path: String,
    },
    /// A PostgreSQL server.
    Postgres {
        /// Its address, without a password unless this draft stays in memory.
        uri: String,
        /// The variable that holds the password, if there is one.
        password: Option<String>,
    },
}

/// A table of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftTable {
    /// Its name at the source.
    pub source: String,
    /// Its name at the target, if it is not the source's own.
    pub target: Option<String>,
    /// Its key.
    pub key: DraftKey,
    /// Columns whose type the file should say.
    pub columns: Vec<DraftColumn>,
    /// What to say about it in a comment, for example its size; may be empty.
    pub note: String,
    /// Why it can't be copied as it is, if it can't: then it stands there as a comment.
    pub fault: Option<String>,
}

/// The key of a table of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DraftKey {
    /// The file has to say it.
    Columns(Vec<String>),
    /// The source's catalogue says it.
    Told,
    /// Nobody knows it, which the file then says.
    Unknown,
}

/// A column of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftColumn {
    /// Its name.
    pub name: String,
    /// Its type, in text form.
    pub column_type: String,
}

/// An example for a kind of source, ready to be changed; `None` if there is none.
pub fn render_example(kind: &str) -> Option<String> {
    let column = |name: &str, column_type: &str| DraftColumn { name: name.into(), column_type: column_type.into() };
    let source = match kind {
        "jsonl" => DraftSource::Files { path: "changes.jsonl".into() },
        "postgres" => {
            DraftSource::Postgres { uri: "postgres://shop@localhost:5432/shop".into(), password: Some("PGPASSWORD".into()) }
        }
        _ => return None,
    };
    let table = |source: &str, key: &[&str], columns: Vec<DraftColumn>| {
        let key = match kind {
            "postgres" => DraftKey::Told,
            _ => DraftKey::Columns(key.iter().map(|name| (*name).to_owned()).collect()),
        };
        // A database knows its types.
        let columns = if key == DraftKey::Told { Vec::new() } else { columns };
        DraftTable { source: source.into(), target: None, key, columns, note: String::new(), fault: None }
    };
    let draft = Draft {
        pipeline: "order-desk".into(),
        source,
        warehouse: "./warehouse".into(),
        namespace: "shop".into(),
        tables: vec![
            table("shop.orders", &["id"], Vec::new()),
            table(
                "shop.order_lines",
                &["order_id", "line"],
                vec![column("price", "decimal(12,2)"), column("placed_at", "timestamptz")],
            ),
        ],
    };
    Some(draft.render())
}

const HEAD: &str = "\
# A urutau pipeline: one source, one sink, and the tables between them.
#   urutau validate     checks this file
#   urutau doctor       checks everything around it
#   urutau run          copies
# In every value ${env:NAME} is replaced by a variable and ${file:PATH} by what a file holds.
# All fields: docs/pipeline-reference.md; for editors: `urutau schema`.
";

const FILES: &str = "
  # Keep reading as the files grow; else the run ends at their end.
  # follow: true
  # What a line holds: `debezium` (an envelope) or `record` (a Kafka record with key, value and headers).
  # format: debezium
  # A TRUNCATE empties the target. `ignore` passes over it, `fail` halts the table.
  # onTruncate: propagate
";

const POSTGRES: &str = "
  # A run makes the slot and the publication if they are not there. Without it `urutau doctor` shows the statements that make them.
  create: true
  # A TRUNCATE empties the target. `ignore` passes over it, `fail` halts the table.
  # onTruncate: propagate

snapshot:
  # What is there already is read in chunks beside the log. `never`: the copy begins with what changes from now on.
  mode: initial
  # chunkRows: 20000
  # parallelism: 2
";

const SINK: &str = "
  # Rows are committed at the first of these three.
  # checkpoint: { interval: 10s, maxRows: 1000000, maxBytes: 256Mi }
";

const TABLES: &str = "
# Each table at the source that is copied. `target` is its name at the sink, if it is to be another one.
tables:
";

const KEYLESS: &str = "  # Its key is not known. Name the columns, or append: each change becomes a row of its own.
  # primaryKey: [id]
  writeMode: append
";

impl Draft {
    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        let _ = write!(text, "\npipeline: {}\n\nsource:\n", value(&self.pipeline));
        self.source.render(&self.pipeline, &mut text);
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

impl DraftSource {
    fn render(&self, pipeline: &str, text: &mut String) {
        match self {
            DraftSource::Files { path } => {
                let _ = write!(text, "  kind: jsonl\n  path: {}", value(path));
                text.push_str(FILES);
            }
            DraftSource::Postgres { uri, password } => {
                let _ = writeln!(text, "  kind: postgres\n  uri: {}", value(uri));
                if let Some(variable) = password {
                    let _ = writeln!(text, "  # The password stands in the environment, not here.");
                    let _ = writeln!(text, "  postgres: {{ password: \"${{env:{variable}}}\" }}");
                }
                let _ = write!(text, "  slotName: {}", slot_name(pipeline));
                text.push_str(POSTGRES);
            }
        }
    }
}

/// The server allows small letters, digits and underscores, 63 of them.
fn slot_name(pipeline: &str) -> String {
    let letters = pipeline.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    format!("urutau_{}", letters.take(50).collect::<String>())
}

impl DraftTable {
    fn render(&self, text: &mut String) {
        let comment = |text: &mut String, what: &str| {
            if !what.is_empty() {
                let _ = writeln!(text, "  # {}", what.replace(char::is_control, " "));
            }
        };
        comment(text, &self.note);
        if let Some(fault) = &self.fault {
            comment(text, &format!("Not copied as it is: {fault}"));
        }
        let mut lines = format!("- source: {}\n", value(&self.source));
        if let Some(target) = &self.target {
            let _ = writeln!(lines, "  target: {}", value(target));
        }
        match &self.key {
            DraftKey::Unknown if self.fault.is_none() => lines.push_str(KEYLESS),
            DraftKey::Unknown | DraftKey::Told => {}
            DraftKey::Columns(columns) => {
                let columns: Vec<String> = columns.iter().map(|column| value(column)).collect();
                let _ = writeln!(lines, "  primaryKey: [{}]", columns.join(", "));
            }
        }
        if !self.columns.is_empty() {
            lines.push_str("  # Types that the source does not say, or not exactly enough.\n  columns:\n");
        }
        for column in &self.columns {
            let _ = writeln!(lines, "    - {{ name: {}, type: {} }}", value(&column.name), value(&column.column_type));
        }
        let indent = if self.fault.is_some() { "  # " } else { "  " };
        for line in lines.lines() {
            let _ = writeln!(text, "{indent}{line}");
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
