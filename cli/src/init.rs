//! `urutau init`: looks into a source and writes a commented pipeline file for what is there.
//!
//! Change files do not say what the key of a table is. On a terminal it is asked for; elsewhere the file says that it is not
//! known, and what to do about it. A key that was guessed wrong would lose rows. A database says its keys; a table that can't be
//! copied as it is stands in the file as a comment, with what is wrong and the statement that mends it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write as _};
use std::path::Path;

use contract::{Sketch, Source, SourceTable, TableRequest};
use rows::{TableSchema, Type};
use serde_json::json;
use spec::{Draft, DraftColumn, DraftKey, DraftSource, DraftTable, Environment, ProcessEnvironment};

use crate::args::{InitArgs, OutputFormat};
use crate::drivers;
use crate::grid::{bytes, count};
use crate::output::{Answer, Failure};

/// Where a database's password is looked for, and where the pipeline file looks for it.
const PASSWORD: &str = "PGPASSWORD";

/// Writes a pipeline file.
pub(crate) async fn init(args: &InitArgs, output: OutputFormat) -> Result<Answer, Failure> {
    if args.file.exists() && !args.force {
        let what = format!("{} is there already", args.file.display());
        return Err(Failure::usage("init-file-exists", what, "name another file with -f, or replace it with --force"));
    }
    let mut asking = Asking { terminal: std::io::stdin().is_terminal() && output == OutputFormat::Text };
    let named = match &args.source {
        Some(source) => source.clone(),
        None => asking.source()?,
    };
    let from = Named::read(&named)?;
    let mut draft = Draft {
        pipeline: args.name.clone().unwrap_or_else(|| name_from(&from.name)),
        source: from.shown,
        warehouse: args.warehouse.clone(),
        namespace: args.namespace.clone(),
        tables: Vec::new(),
    };
    let source = open(&Draft { source: from.exposed, ..draft.clone() }).await?;
    let sketches = sketch(&*source).await?;
    draft.tables = draft_tables(sketches, &mut asking)?;
    write(&args.file, &checked(&draft, &args.file)?, args.force)?;
    Ok(answer(&args.file, &draft, from.had_password))
}

/// The source that somebody named.
#[derive(Debug)]
struct Named {
    /// What the pipeline is called after.
    name: String,
    /// As it is opened now.
    exposed: DraftSource,
    /// As the file says it.
    shown: DraftSource,
    /// Did the address hold a password, which the file does not?
    had_password: bool,
}

impl Named {
    fn read(named: &str) -> Result<Self, Failure> {
        let Some((scheme, _)) = named.split_once("://") else {
            let files = DraftSource::Files { path: named.to_owned() };
            return Ok(Self { name: named.to_owned(), exposed: files.clone(), shown: files, had_password: false });
        };
        if !matches!(scheme, "postgres" | "postgresql") {
            let what = format!("'{scheme}://' is not the address of a source that init knows");
            return Err(Failure::usage("init-source", what, "postgres://user@host:5432/database, or the path of a change file"));
        }
        let mut address = reqwest::Url::parse(named).map_err(|error| {
            // The text may hold a password: it is not repeated.
            let what = format!("the address is none: {error}");
            Failure::usage("init-source", what, "postgres://user@host:5432/database; special letters in it as %40 and so on")
        })?;
        if address.fragment().is_some() {
            // In a password written as it is, this ends the address: what is behind it would be left out.
            let what = "the address has a '#', behind which nothing belongs to it";
            return Err(Failure::usage("init-source", what, "write it as %23, in a password or name as elsewhere"));
        }
        let had_password = address.password().is_some();
        // Of a postgres address this can't fail: it has a host.
        let _ = address.set_password(None);
        let password = (had_password || ProcessEnvironment.variable(PASSWORD).is_some()).then(|| PASSWORD.to_owned());
        let exposed =
            DraftSource::Postgres { uri: named.to_owned(), password: if had_password { None } else { password.clone() } };
        let name = address.path().trim_matches('/').to_owned();
        let shown = DraftSource::Postgres { uri: address.to_string(), password };
        Ok(Self { name, exposed, shown, had_password })
    }
}

/// The variables of this process, and a password for whoever only checks the file.
struct WithPassword;

impl Environment for WithPassword {
    fn variable(&self, name: &str) -> Option<OsString> {
        ProcessEnvironment.variable(name).or_else(|| (name == PASSWORD).then(|| "checked without it".into()))
    }

    fn file(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        ProcessEnvironment.file(path)
    }
}

/// Opens the source as a run would: with the section of a pipeline file, defaults filled in.
async fn open(draft: &Draft) -> Result<std::sync::Arc<dyn Source>, Failure> {
    let placeholder = DraftTable {
        source: "placeholder".into(),
        target: None,
        key: DraftKey::Unknown,
        columns: Vec::new(),
        note: String::new(),
        fault: None,
    };
    let text = Draft { tables: vec![placeholder], ..draft.clone() }.render();
    let pipeline = spec::parse(&text, "the new pipeline file", &ProcessEnvironment)?;
    Ok(host::open_source(&pipeline, &drivers::registry()).await?)
}

async fn sketch(source: &dyn Source) -> Result<Vec<Sketch>, Failure> {
    let tables = source.discover().await?;
    if tables.is_empty() {
        let remedy = "name a file that holds change events, one Debezium envelope a line, or a database with tables";
        return Err(Failure::usage("init-no-tables", "the source holds no event of any table, and no table", remedy));
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

/// The tables as the file names them. One at least must be fit to be copied.
fn draft_tables(sketches: Vec<Sketch>, asking: &mut Asking) -> Result<Vec<DraftTable>, Failure> {
    let mut drafted = Vec::new();
    let mut targets = BTreeSet::new();
    let mut first_fault = None;
    for Sketch { table, found, size } in sketches {
        let mut draft = match found {
            Ok(found) => {
                let asked = asking.key(&found.schema)?;
                draft_table(&found, asked)
            }
            Err(fault) => {
                let words = format!("{}. {}", fault.what, fault.remedy);
                first_fault.get_or_insert(fault);
                DraftTable {
                    source: table.to_string(),
                    target: None,
                    key: DraftKey::Told,
                    columns: Vec::new(),
                    note: String::new(),
                    fault: Some(words),
                }
            }
        };
        if let Some(size) = size {
            let rows = size.rows.map(|rows| format!("about {} rows, ", count(rows))).unwrap_or_default();
            draft.note = format!("{rows}{} at the source. {}", bytes(size.bytes), draft.note).trim_end().to_owned();
        }
        // Two tables of one name, in different schemas, are different tables at the target, too.
        let own = table.as_str().rsplit('.').next().unwrap_or_default().to_owned();
        if !targets.insert(own) {
            let whole = table.as_str().replace('.', "_");
            targets.insert(whole.clone());
            draft.target = Some(whole);
        }
        drafted.push(draft);
    }
    match first_fault {
        Some(fault) if drafted.iter().all(|draft| draft.fault.is_some()) => {
            let what = format!("none of the {} tables can be copied as it is; the first: {}", drafted.len(), fault.what);
            Err(Failure::usage("init-no-tables", what, fault.remedy))
        }
        _ => Ok(drafted),
    }
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
    let key = match (of_source.is_empty(), asked.is_empty()) {
        (false, _) => DraftKey::Columns(of_source),
        (true, false) => DraftKey::Columns(asked),
        (true, true) => DraftKey::Unknown,
    };
    DraftTable {
        source: schema.table.to_string(),
        target: None,
        key,
        columns: if table.inferred { known.map(draft).collect() } else { Vec::new() },
        note: note.join(" "),
        fault: None,
    }
}

/// The file's text, if urutau itself accepts it.
fn checked(draft: &Draft, file: &Path) -> Result<String, Failure> {
    let text = draft.render();
    spec::parse(&text, &file.display().to_string(), &WithPassword)?;
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

fn answer(file: &Path, draft: &Draft, had_password: bool) -> Answer {
    let copied = draft.tables.iter().filter(|table| table.fault.is_none()).count();
    let count = match copied {
        1 => "1 table".to_owned(),
        more => format!("{more} tables"),
    };
    let mut text = format!("wrote {}: pipeline {}, {count}\n", file.display(), draft.pipeline);
    for table in &draft.tables {
        let said = match (&table.fault, &table.key) {
            (Some(fault), _) => format!("left out: {fault}"),
            (None, DraftKey::Columns(key)) => format!("key {}", key.join(", ")),
            (None, DraftKey::Told) => "key as the source says".to_owned(),
            (None, DraftKey::Unknown) => "key not known, appended".to_owned(),
        };
        text.push_str(&format!("  {}: {said}\n", table.source));
    }
    if had_password {
        text.push_str(&format!("the file does not hold the password: set {PASSWORD} to it for what follows\n"));
    }
    let there = if file == Path::new(crate::args::PIPELINE_FILE) { String::new() } else { format!(" -f {}", file.display()) };
    text.push_str(&format!("look at it, then: urutau plan{there} and urutau run{there}\n"));
    let tables = draft.tables.iter().map(|table| {
        let key = match &table.key {
            DraftKey::Columns(key) => key.as_slice(),
            DraftKey::Told | DraftKey::Unknown => &[],
        };
        json!({ "table": table.source, "key": key, "left_out": table.fault })
    });
    let json = json!({ "file": file, "pipeline": draft.pipeline, "tables": tables.collect::<Vec<_>>() });
    Answer::done(text, json)
}

/// A pipeline's name from a path or a database's name: its last part without endings, in the letters that a name may have.
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
    fn source(&mut self) -> Result<String, Failure> {
        let missing = || {
            Failure::usage("init-no-path", "no source is named", "urutau init PATH, or urutau init postgres://user@host/database")
        };
        if !self.terminal {
            return Err(missing());
        }
        match ask(
            "File of change events (or a pattern such as changes/*.jsonl), or a database (postgres://user@host/database): ",
        )? {
            source if source.is_empty() => Err(missing()),
            source => Ok(source),
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
    use contract::{Error, TableSize};
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
        let column = |name: &str, kind| Column::new(name, kind, true);
        let columns = vec![column("id", Type::Int64), column("price", Type::Float64)];
        SourceTable { schema: Arc::new(TableSchema { table: "shop.items".into(), columns, key }), inferred }
    }

    #[test]
    fn a_key_that_the_source_tells_is_not_replaced_by_an_answer() {
        let id = DraftKey::Columns(vec!["id".into()]);
        assert_eq!(draft_table(&table(vec![0], false), vec!["price".into()]).key, id);
        assert_eq!(draft_table(&table(vec![], false), vec!["id".into()]).key, id);
        assert_eq!(draft_table(&table(vec![], false), vec![]).key, DraftKey::Unknown);
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
        let column = |name: &str, kind| Column::new(name, kind, true);
        let columns = vec![column("id", Type::Int64), column("gone_at", Type::Unknown("only nulls".into()))];
        let schema = Arc::new(TableSchema { table: "shop.items".into(), columns, key: Vec::new() });
        let drafted = draft_table(&SourceTable { schema, inferred: true }, vec![]);
        assert_eq!(drafted.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["id"]);
        assert!(drafted.note.ends_with("Add to `columns`, since nothing tells their types: gone_at."), "{}", drafted.note);
    }

    #[test]
    fn a_password_in_an_address_is_used_and_not_written() {
        let named = Named::read("postgres://me:s%40cret@db:5433/Shop?sslmode=require").unwrap();
        assert!(named.had_password);
        let DraftSource::Postgres { uri, password } = &named.shown else { panic!("{named:?}") };
        assert_eq!((uri.as_str(), password.as_deref()), ("postgres://me@db:5433/Shop?sslmode=require", Some("PGPASSWORD")));
        let DraftSource::Postgres { uri, password } = &named.exposed else { panic!("{named:?}") };
        assert_eq!((uri.as_str(), password), ("postgres://me:s%40cret@db:5433/Shop?sslmode=require", &None));
        assert_eq!(name_from(&named.name), "shop");
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_being_repeated() {
        for address in ["mysql://me:secret@db/shop", "postgres://me:secret@[db/shop", "postgres://me@db/secret#2"] {
            let refused = format!("{:?}", Named::read(address).unwrap_err());
            assert!(refused.contains("init-source") && !refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn two_tables_of_one_name_get_two_targets_and_one_that_cannot_be_copied_says_why() {
        let sketched = |name: &str| {
            let columns = vec![Column::new("id", Type::Int64, false)];
            let schema = Arc::new(TableSchema { table: name.into(), columns, key: vec![0] });
            Sketch {
                size: Some(TableSize { rows: Some(1234), bytes: 2048 }),
                ..Sketch::from(SourceTable { schema, inferred: false })
            }
        };
        let fault = Error::new(
            contract::Kind::Config,
            "postgres-identity",
            "table c.t: no key",
            "ALTER TABLE c.t ADD PRIMARY KEY (...);",
        );
        let refused = |fault| Sketch { table: "c.t".into(), found: Err(fault), size: None };
        let mut nobody = Asking { terminal: false };
        let drafted = draft_tables(vec![sketched("a.t"), sketched("b.t"), refused(fault)], &mut nobody).unwrap();
        let targets: Vec<_> = drafted.iter().map(|draft| draft.target.as_deref()).collect();
        assert_eq!(targets, [None, Some("b_t"), Some("c_t")]);
        assert_eq!(drafted[0].note, "about 1,234 rows, 2.00 KiB at the source.");
        assert_eq!(drafted[2].fault.as_deref(), Some("table c.t: no key. ALTER TABLE c.t ADD PRIMARY KEY (...);"));
        let fault = Error::new(contract::Kind::Config, "postgres-identity", "table c.t: no key", "add one");
        let none = format!("{:?}", draft_tables(vec![refused(fault)], &mut nobody).unwrap_err());
        assert!(none.contains("init-no-tables") && none.contains("table c.t: no key"), "{none}");
    }
}
