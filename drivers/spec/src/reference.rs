//! The reference page of the pipeline file, made from the field table.

use std::fmt::Write as _;

use crate::column_type;
use crate::field::{Built, Field, Need, Shape, Word};
use crate::fields::{FILTER, PIPELINE, SINK, SOURCE, TABLE};
use crate::problem::Code;

/// The page, as Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.replace("{types}", &types());
    page.push_str("\n## The file\n");
    section(&mut page, "", PIPELINE);
    for field in PIPELINE.iter().filter(|field| !matches!(field.name, "source" | "sink" | "tables")) {
        nested(&mut page, "", std::slice::from_ref(field));
    }
    for (title, fields) in [("source", SOURCE), ("sink", SINK), ("tables[]", TABLE)] {
        let _ = write!(page, "\n## `{title}`\n");
        let path = format!("{title}.");
        section(&mut page, &path, fields);
        nested(&mut page, &path, fields);
    }
    page.push_str("\n## Conditions\n\nA condition is a section with exactly one of these fields.\n");
    section(&mut page, "filter.", FILTER);
    nested(&mut page, "filter.", FILTER);
    page.push_str(GO);
    for (path, fields) in [("source.", SOURCE), ("sink.", SINK)] {
        for field in fields {
            if let (Some(go), Need::Default(here)) = (field.go_default, field.need) {
                let _ = writeln!(page, "| `{path}{}` | `{here}` | `{go}` |", field.name);
            }
        }
    }
    page.push_str(PROBLEMS);
    for code in Code::ALL {
        let _ = writeln!(page, "| `{code}` | {} |", code.meaning());
    }
    page
}

const INTRODUCTION: &str = "\
# The pipeline file

This page is made from the table of fields in `drivers/spec`; a test compares the two. One file describes one replication
job. `urutau validate` checks it and reports every problem at once, each with its field, line and column.
`urutau schema` prints a JSON Schema with which editors complete and check it.

```yaml
pipeline: order-desk
source: { kind: jsonl, path: examples/quickstart/changes.jsonl }
sink:   { kind: iceberg, uri: ./warehouse, namespace: shop }
tables:
  - { source: shop.orders, primaryKey: [id] }
  - source: shop.order_lines
    primaryKey: [order_id, line]
    columns: [{ name: price, type: \"decimal(12,2)\" }, { name: placed_at, type: timestamptz }]
```

## Values

- The file is YAML 1.2 in UTF-8, one document. Only `true` and `false` are booleans: `no` is a text. Anchors, aliases and
  `<<` are fine. A field with an empty value is a problem, a field that nobody knows is one, and so is a field that is known
  but not built yet.
- **Durations** are numbers with units: `500ms`, `10s`, `15m`, `24h`, `1h30m` (ns, us, ms, s, m, h).
- **Sizes** are bytes, or numbers with a unit: `256Mi`, `10Gi` (Ki, Mi, Gi, Ti: powers of 1024), `64MB` (kB, MB, GB, TB:
  powers of 1000).
- **`${env:NAME}`** in any value is replaced by a variable, **`${file:PATH}`** by what a file holds (without the line end at
  its end); `$${` stands for `${`. What was replaced so, passwords, and passwords inside addresses are never printed: not in
  logs, errors, plans or reports. Names (of the pipeline, namespaces, tables, columns) are printed, so no secret belongs there.
- **Relative paths** begin at the directory in which urutau is started.
- **Column types**: {types}.
";

const GO: &str = "
## Files of the Go urutau

A file that the Go urutau accepts is accepted here, except for fields and kinds that are not built yet, empty values, and
`yes` and `no` as booleans. These defaults differ; `urutau plan` names them, and the log does once.
`compat: go` restores the ones of the Go urutau.

| field | here | in the Go urutau |
|---|---|---|
";

const PROBLEMS: &str = "
## Problems

A problem is one line, `file:line:column: field: found ..., expected ... [code]`, and often a hint below it.

| code | meaning |
|---|---|
";

fn types() -> String {
    let quoted = |name: &&str| format!("`{name}`");
    column_type::PLAIN.iter().chain(&column_type::WITH_ARGUMENTS).map(quoted).collect::<Vec<_>>().join(", ")
}

/// The sections below a section, each with a heading.
fn nested(page: &mut String, path: &str, fields: &'static [Field]) {
    for field in fields {
        let (below, list) = match field.shape {
            Shape::Section(below) => (below, ""),
            Shape::Sections(below) => (below, "[]"),
            _ => continue,
        };
        let path = format!("{path}{}{list}", field.name);
        let _ = write!(page, "\n### `{path}`{}\n", not_yet(field));
        let path = format!("{path}.");
        section(page, &path, below);
        nested(page, &path, below);
    }
}

/// The table of a section's fields, and the words that they accept.
fn section(page: &mut String, path: &str, fields: &'static [Field]) {
    page.push_str("\n| field | value | default | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let alias = field.alias.map(|alias| format!(", `{alias}`")).unwrap_or_default();
        let of = match field.kinds {
            [] => String::new(),
            kinds => format!(" ({})", kinds.join(", ")),
        };
        let variable = field.variable.map(|variable| format!(" Else the variable `{variable}`.")).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}`{alias}{of} | {} | {} | {}{variable}{} |",
            field.name,
            sort(field.shape),
            default(field),
            field.meaning,
            not_yet(field)
        );
    }
    for field in fields {
        if let Shape::Word(words) = field.shape {
            let of =
                if field.kinds.is_empty() || !fields.iter().any(|other| other.name == field.name && other.kinds != field.kinds) {
                    String::new()
                } else {
                    format!(" ({})", field.kinds.join(", "))
                };
            let _ = write!(page, "\n`{path}{}`{of}:\n", field.name);
            words.iter().for_each(|word| word_line(page, word));
        }
    }
}

fn word_line(page: &mut String, word: &Word) {
    let alias = word.alias.map(|alias| format!(" (or `{alias}`)")).unwrap_or_default();
    let not_yet = if word.built { "" } else { " *Not built yet.*" };
    let _ = writeln!(page, "- `{}`{alias}: {}{not_yet}", word.name, word.meaning.trim());
}

fn not_yet(field: &Field) -> String {
    match field.built {
        Built::Yes => String::new(),
        Built::NotYet => " *Not built yet.*".into(),
        Built::Only(only) => format!(" *Only `{only}` is built yet.*"),
    }
}

fn default(field: &Field) -> String {
    match field.need {
        Need::Required => "required".into(),
        Need::Optional(words) => words.into(),
        Need::Default(value) => format!("`{value}`"),
        Need::DefaultByKind(of_kinds, otherwise) => {
            let own: Vec<String> = of_kinds.iter().map(|(kinds, value)| format!("`{value}` ({})", kinds.join(", "))).collect();
            format!("{}, else `{otherwise}`", own.join(", "))
        }
    }
}

/// What a value is, in a few words.
fn sort(shape: Shape) -> String {
    match shape {
        Shape::Text(text) => text.what.into(),
        Shape::Bool => "`true` or `false`".into(),
        Shape::Number { least, most: u64::MAX } => format!("a number, at least {least}"),
        Shape::Number { least, most } => format!("a number from {least} to {most}"),
        Shape::Duration(_) => "a duration".into(),
        Shape::Size => "a size".into(),
        Shape::Word(_) => "a word, see below".into(),
        Shape::ColumnType => "a column type".into(),
        Shape::Section(_) => "a section, see below".into(),
        Shape::Sections(_) => "a list of sections, see below".into(),
        Shape::Names => "a list of names".into(),
        Shape::Texts { .. } => "a section of names and texts".into(),
        Shape::Casts => "a section of column names and types".into(),
        Shape::Filter => "a condition".into(),
        Shape::Filters => "a list of conditions".into(),
        Shape::Literal => "a text, a number, `true`, `false`, or a list of them".into(),
    }
}
