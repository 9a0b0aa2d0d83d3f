//! `urutau init`: looks into a source and writes a commented pipeline file for what is there.
//!
//! Change files do not say what the key of a table is. On a terminal it is asked for; elsewhere the file says that it is not
//! known, and what to do about it. A key that was guessed wrong would lose rows.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write as _};
use std::path::Path;

use contract::{Source, SourceTable, TableRequest};
use rows::{TableSchema, Type};
use serde_json::json;
use spec::{Draft, DraftColumn, DraftTable};

use crate::args::{InitArgs, OutputFormat};
use crate::drivers;
use crate::output::{Answer, Failure};

/// Writes a pipeline file.
pub(crate) async fn init(args: &InitArgs, output: OutputFormat) -> Result<Answer, Failure> {
    if args.file.exists() && !args.force {
        let what = format!("{} is there already", args.file.display());
        return Err(Failure::usage("init-file-exists", what, "name another file with -f, or replace it with --force"));
    }
    let mut asking = Asking { terminal: std::io::stdin().is_terminal() && output == OutputFormat::Text };
    let path = match &args.path {
        Some(path) => path.clone(),
        None => asking.path()?,
    };
    let mut draft = Draft {
        pipeline: args.name.clone().unwrap_or_else(|| name_from(&path)),
        path,
        warehouse: args.warehouse.clone(),
        namespace: args.namespace.clone(),
        tables: Vec::new(),
    };
    let source = open(&draft).await?;
    let described = describe(&*source).await?;
    for table in &described {
        draft.tables.push(draft_table(table, asking.key(&table.schema)?));
    }
    write(&args.file, &checked(&draft, &args.file)?, args.force)?;
    Ok(answer(&args.file, &draft))
}

/// Opens the source as a run would: with the section of a pipeline file, defaults filled in.
async fn open(draft: &Draft) -> Result<std::sync::Arc<dyn Source>, Failure> {
    let placeholder =
        DraftTable { source: "placeholder".into(), primary_key: Vec::new(), columns: Vec::new(), note: String::new() };
    let text = Draft { tables: vec![placeholder], ..draft.clone() }.render();
    let pipeline = spec::parse(&text, "the new pipeline file", &spec::ProcessEnvironment)?;
    Ok(host::open_source(&pipeline, &drivers::registry()).await?)
}

async fn describe(source: &dyn Source) -> Result<Vec<SourceTable>, Failure> {
    let tables = source.discover().await?;
    if tables.is_empty() {
        let remedy = "name a file that holds change events, one Debezium envelope a line";
        return Err(Failure::usage("init-no-tables", "the source holds no event of any table", remedy));
    }
    let request = |table| TableRequest {
        table,
        primary_key: None,
        columns: BTreeMap::new(),
        before_is_full: false,
        keeps_every_row: false,
    };
    let requests: Vec<TableRequest> = tables.into_iter().map(request).collect();
    Ok(source.sketch(&requests).await?)
}

fn draft_table(table: &SourceTable, asked: Vec<String>) -> DraftTable {
    let schema = &table.schema;
    let of_source: Vec<String> =
        schema.key.iter().filter_map(|at| schema.columns.get(*at)).map(|column| column.name.clone()).collect();
    let is_unknown = |column: &&rows::Column| matches!(column.kind, Type::Unknown(_));
    let unknown: Vec<&str> = schema.columns.iter().filter(is_unknown).map(|column| column.name.as_str()).collect();
    let known = schema.columns.iter().filter(|column| !is_unknown(column));
    let draft = |column: &rows::Column| DraftColumn { name: column.name.clone(), column_type: column.kind.to_string() };
    let mut note = Vec::new();
    if table.inferred {
        note.push("Types inferred from the first events: JSON tells no decimal from a number, no date from a text.".to_owned());
    }
    if !unknown.is_empty() {
        note.push(format!("Add to `columns`, since nothing tells their types: {}.", unknown.join(", ")));
    }
    DraftTable {
        source: schema.table.to_string(),
        primary_key: if of_source.is_empty() { asked } else { of_source },
        columns: if table.inferred { known.map(draft).collect() } else { Vec::new() },
        note: note.join(" "),
    }
}

/// The file's text, if urutau itself accepts it.
fn checked(draft: &Draft, file: &Path) -> Result<String, Failure> {
    let text = draft.render();
    spec::parse(&text, &file.display().to_string(), &spec::ProcessEnvironment)?;
    Ok(text)
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    // Looked at before; it may have been made since.
    let opened = if force { options.create(true).truncate(true).open(file) } else { options.create_new(true).open(file) };
    opened.and_then(|mut opened| opened.write_all(text.as_bytes())).map_err(|error| {
        let what = format!("{} cannot be written: {error}", file.display());
        Failure::usage("init-cannot-write", what, "name a file in a directory that can be written with -f")
    })
}

fn answer(file: &Path, draft: &Draft) -> Answer {
    let count = match draft.tables.len() {
        1 => "1 table".to_owned(),
        more => format!("{more} tables"),
    };
    let mut text = format!("wrote {}: pipeline {}, {count}\n", file.display(), draft.pipeline);
    for table in &draft.tables {
        let key = if table.primary_key.is_empty() {
            "key not known, appended".to_owned()
        } else {
            format!("key {}", table.primary_key.join(", "))
        };
        text.push_str(&format!("  {}: {key}\n", table.source));
    }
    let there = if file == Path::new(crate::args::PIPELINE_FILE) { String::new() } else { format!(" -f {}", file.display()) };
    text.push_str(&format!("look at it, then: urutau plan{there} and urutau run{there}\n"));
    let tables = draft.tables.iter().map(|table| json!({ "table": table.source, "key": table.primary_key }));
    let json = json!({ "file": file, "pipeline": draft.pipeline, "tables": tables.collect::<Vec<_>>() });
    Answer::done(text, json)
}

/// A pipeline's name from a path: its last part without endings, in the letters that a name may have.
fn name_from(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_lowercase()).to_owned();
    if name.is_empty() { "changes".to_owned() } else { name }
}

/// What is asked, where somebody can answer.
struct Asking {
    terminal: bool,
}

impl Asking {
    fn path(&mut self) -> Result<String, Failure> {
        if !self.terminal {
            let what = "no file of change events is named";
            return Err(Failure::usage("init-no-path", what, "urutau init PATH"));
        }
        match ask("File of change events (or a pattern such as changes/*.jsonl): ")? {
            path if path.is_empty() => {
                Err(Failure::usage("init-no-path", "no file of change events is named", "urutau init PATH"))
            }
            path => Ok(path),
        }
    }

    /// The key's columns; none if nobody knows.
    fn key(&mut self, schema: &TableSchema) -> Result<Vec<String>, Failure> {
        if !self.terminal || !schema.key.is_empty() {
            return Ok(Vec::new());
        }
        let columns: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
        let question = format!("Key of {} ({}), comma between columns, empty if it has none: ", schema.table, columns.join(", "));
        loop {
            let key = key_in(&ask(&question)?);
            match key.iter().find(|name| !columns.contains(&name.as_str())) {
                Some(unknown) => eprintln!("there is no column '{unknown}'"),
                None => return Ok(key),
            }
        }
    }
}

fn key_in(answer: &str) -> Vec<String> {
    answer.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn ask(question: &str) -> Result<String, Failure> {
    let cannot =
        |error: std::io::Error| Failure::usage("init-no-answer", format!("no answer can be read: {error}"), "urutau init PATH");
    eprint!("{question}");
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer).map_err(cannot)? {
        0 => Err(Failure::usage("init-no-answer", "the input ended before an answer came", "urutau init PATH")),
        _ => Ok(answer.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rows::Column;
    use std::sync::Arc;

    #[test]
    fn a_name_is_made_from_the_change_files_name() {
        for (path, name) in [
            ("changes.jsonl", "changes"),
            ("data/Order Desk_2.jsonl.gz", "order-desk"),
            ("changes/*.jsonl", "changes"),
            ("/data/2024.jsonl", "changes"),
            ("", "changes"),
        ] {
            assert_eq!(name_from(path), name, "{path}");
        }
    }

    #[test]
    fn a_keys_columns_are_taken_as_they_are_typed() {
        assert_eq!(key_in(" order_id, line "), ["order_id", "line"]);
        assert_eq!(key_in(" "), Vec::<String>::new());
    }

    fn table(key: Vec<usize>, inferred: bool) -> SourceTable {
        let column = |name: &str, kind| Column { name: name.into(), kind, nullable: true };
        let columns = vec![column("id", Type::Int64), column("price", Type::Float64)];
        SourceTable { schema: Arc::new(TableSchema { table: "shop.items".into(), columns, key }), inferred }
    }

    #[test]
    fn a_key_that_the_source_tells_is_not_replaced_by_an_answer() {
        assert_eq!(draft_table(&table(vec![0], false), vec!["price".into()]).primary_key, ["id"]);
        assert_eq!(draft_table(&table(vec![], false), vec!["id".into()]).primary_key, ["id"]);
        assert_eq!(draft_table(&table(vec![], false), vec![]).primary_key, Vec::<String>::new());
    }

    #[test]
    fn inferred_types_are_written_down_to_be_looked_at() {
        let drafted = draft_table(&table(vec![], true), vec![]);
        let columns: Vec<(&str, &str)> = drafted.columns.iter().map(|c| (c.name.as_str(), c.column_type.as_str())).collect();
        assert_eq!(columns, [("id", "int64"), ("price", "float64")]);
        assert!(drafted.note.contains("inferred"));
        assert!(draft_table(&table(vec![], false), vec![]).columns.is_empty());
    }

    #[test]
    fn a_type_that_nothing_tells_is_asked_for_in_the_file_and_not_made_up() {
        let column = |name: &str, kind| Column { name: name.into(), kind, nullable: true };
        let columns = vec![column("id", Type::Int64), column("gone_at", Type::Unknown("only nulls".into()))];
        let schema = Arc::new(TableSchema { table: "shop.items".into(), columns, key: Vec::new() });
        let drafted = draft_table(&SourceTable { schema, inferred: true }, vec![]);
        assert_eq!(drafted.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["id"]);
        assert!(drafted.note.ends_with("Add to `columns`, since nothing tells their types: gone_at."), "{}", drafted.note);
    }
}
