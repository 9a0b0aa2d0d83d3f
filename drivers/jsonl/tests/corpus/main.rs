//! Recorded events of a real connector, in five configurations: every value that an event carries lands, with the right type,
//! exactly. The judge is `truth.rs`, which knows the statements and nothing of this crate; where the connector says something else
//! than the database had, `differences.rs` says what and why.

mod differences;
mod truth;
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use contract::{Kind, Limit, LogEvent, LogRead, Severity, Source, Start};
use jsonl::JsonlSource;
use rows::{ChangeBatch, TableSchema};
use serde_json::{Value as Json, json};

use differences::{DIFFERENCES, REFUSED};
use truth::Event;
use variants::{Variant, requests, tables, variants};

/// What landed for an event: the operation and the columns as text, or why it was refused.
#[derive(Debug)]
enum Landed {
    Row(&'static str, BTreeMap<String, String>),
    Refused(String),
}

fn source(variant: &str, settings: &Json) -> JsonlSource {
    let folder = format!("{}/testdata/debezium/{variant}/*.jsonl", env!("CARGO_MANIFEST_DIR"));
    let Json::Object(mut settings) = settings.clone() else { panic!("settings are an object") };
    settings.insert("path".to_owned(), json!(folder));
    settings.insert("format".to_owned(), json!("record"));
    JsonlSource::new(&settings).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Everything that a recording holds, table by table, and the schemas that its events told later.
fn landed(source: &JsonlSource, schemas: &[Arc<TableSchema>]) -> (BTreeMap<String, Vec<Landed>>, Vec<String>) {
    let (mut all, mut told) = (BTreeMap::<String, Vec<Landed>>::new(), Vec::new());
    block_on(async {
        let mut reader = source.stream(&Start::default(), schemas).await.unwrap();
        loop {
            let read = reader.next(Limit { rows: 10, bytes: 1 << 20 }).await.unwrap();
            for event in &read.events {
                take(&read, event, &mut all, &mut told);
            }
            if read.finished {
                break;
            }
        }
    });
    (all, told)
}

fn take(read: &LogRead, event: &LogEvent, all: &mut BTreeMap<String, Vec<Landed>>, told: &mut Vec<String>) {
    match event {
        LogEvent::Rows { batch, rows, .. } => {
            let batch = &read.batches[*batch];
            batch.check().unwrap();
            let of = all.entry(batch.schema.table.to_string()).or_default();
            of.extend(rows.clone().map(|row| landed_row(batch, row)));
        }
        LogEvent::Truncated { table, .. } => {
            all.entry(table.to_string()).or_default().push(Landed::Row("Truncate", BTreeMap::new()));
        }
        LogEvent::Refused { table, error, .. } => {
            assert_eq!(error.kind, Kind::Rejected);
            all.entry(table.to_string()).or_default().push(Landed::Refused(error.what.clone()));
        }
        LogEvent::Schema { schema, .. } => {
            let columns: Vec<_> = schema.columns.iter().map(|column| format!("{} {}", column.name, column.kind)).collect();
            told.push(format!("{}: {}", schema.table, columns.join(", ")));
        }
        LogEvent::Ended { .. } | LogEvent::Keepalive { .. } => {}
    }
}

fn landed_row(batch: &ChangeBatch, row: usize) -> Landed {
    let operation = match batch.tail.operations[row] {
        rows::Operation::Insert => "Insert",
        rows::Operation::Update => "Update",
        rows::Operation::Delete => "Delete",
        rows::Operation::Read => "Read",
    };
    let text = |place: usize| if batch.is_absent(place, row) { "~".to_owned() } else { shown(batch.data.column(place), row) };
    let columns = batch.schema.columns.iter().enumerate().map(|(place, column)| (column.name.clone(), text(place)));
    Landed::Row(operation, columns.collect())
}

/// A value as Arrow prints it; what its calendar has no name for, as its number.
fn shown(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("null").with_display_error(false);
    let printed = ArrayFormatter::try_new(array.as_ref(), &options).unwrap().value(row).try_to_string();
    match (printed, array.data_type()) {
        (Ok(text), _) => text,
        (Err(_), DataType::Date32) => format!("day {}", array.as_primitive::<Date32Type>().value(row)),
        (Err(_), DataType::Timestamp(..)) => {
            format!("microsecond {}", array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        (Err(e), _) => panic!("{e}"),
    }
}

/// Which of the entries were needed, by their index and the recording.
#[derive(Default)]
struct Needed {
    differences: BTreeSet<(usize, &'static str, usize)>,
    refused: BTreeSet<(usize, &'static str)>,
}

/// Compares what landed with what happened.
fn compare(
    variant: &'static str,
    table: &str,
    happened: &[Event],
    landed: &[Landed],
    refusals: bool,
    needed: &mut Needed,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if happened.len() != landed.len() {
        return vec![format!("{variant} {table}: {} events, landed {}: {landed:?}", happened.len(), landed.len())];
    }
    for (number, ((operation, expected), landed)) in happened.iter().zip(landed).enumerate() {
        let at = format!("{variant} {table} event {number}");
        let (landed_operation, columns) = match landed {
            Landed::Row(operation, columns) => (operation, columns),
            Landed::Refused(what) => {
                let entry = REFUSED.iter().position(|entry| {
                    entry.variants.contains(&variant)
                        && entry.table == table
                        && entry.event == number
                        && what.ends_with(entry.says)
                });
                match entry {
                    Some(entry) => drop(needed.refused.insert((entry, variant))),
                    None => wrong.push(format!("{at}: refused: {what}")),
                }
                continue;
            }
        };
        let must_be_refused = REFUSED
            .iter()
            .any(|entry| refusals && entry.variants.contains(&variant) && entry.table == table && entry.event == number);
        if must_be_refused || landed_operation != operation {
            wrong.push(format!("{at}: landed as {landed_operation}, expected {operation}"));
        }
        let missing = if *operation == "Delete" { "~" } else { "null" };
        for (column, text) in columns {
            let truth = expected.iter().find(|(name, _)| name == column).map_or(missing, |(_, text)| text);
            let entry = DIFFERENCES.iter().position(|entry| {
                entry.variants.contains(&variant)
                    && entry.table == table
                    && entry.events.contains(&number)
                    && entry.column == column
                    && entry.lands == text
            });
            match entry {
                _ if text == truth => {}
                Some(entry) => drop(needed.differences.insert((entry, variant, number))),
                None => wrong.push(format!("{at}, {column}: landed {text}, expected {truth}")),
            }
        }
        for (column, text) in expected.iter().filter(|(column, _)| !columns.contains_key(*column)) {
            wrong.push(format!("{at}, {column}: missing, expected {text}"));
        }
    }
    wrong
}

#[test]
fn every_value_that_an_event_carries_lands() {
    let (mut wrong, mut needed) = (Vec::new(), Needed::default());
    for variant in variants() {
        // Once as a timestamp, which does not hold infinity, and once as text, which holds it.
        for timestamptz in ["timestamptz", "string"] {
            let mut types = variant.types.clone();
            types.retain(|(column, _)| *column != "tstz");
            if timestamptz == "string" || !variant.types.is_empty() {
                types.push(("tstz", timestamptz));
            }
            // A later entry for a column stands for an earlier one.
            let source = source(variant.name, &variant.settings);
            let described = block_on(source.describe(&requests(&variant, &types), &BTreeMap::new())).unwrap();
            let schemas: Vec<_> = described.into_iter().map(|table| table.schema).collect();
            let (mut landed, _) = landed(&source, &schemas);
            for (table, happened) in tables(variant.name) {
                let landed = landed.remove(table).unwrap_or_default();
                let refusals = timestamptz == "timestamptz";
                wrong.extend(compare(variant.name, table, &happened, &landed, refusals, &mut needed));
            }
            assert!(landed.is_empty(), "{landed:?}");
            assert_eq!(source.counts().now().messages, 1, "the logical message");
        }
    }
    let unneeded = DIFFERENCES.iter().enumerate().flat_map(|(place, entry)| {
        entry.variants.iter().flat_map(move |variant| entry.events.iter().map(move |event| (place, *variant, *event)))
    });
    for (place, variant, event) in unneeded.filter(|entry| !needed.differences.contains(entry)) {
        let entry = &DIFFERENCES[place];
        wrong.push(format!("needless: {variant} {} event {event} {} ({})", entry.table, entry.column, entry.why));
    }
    let unneeded =
        REFUSED.iter().enumerate().flat_map(|(place, entry)| entry.variants.iter().map(move |variant| (place, *variant)));
    for (place, variant) in unneeded.filter(|entry| !needed.refused.contains(entry)) {
        let entry = &REFUSED[place];
        wrong.push(format!("needless: {variant} {} event {} refused ({})", entry.table, entry.event, entry.why));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_wrong_value_a_missing_row_and_a_needless_entry_are_each_found() {
    let landed = |qty: &str| {
        let columns = [("region", "eu"), ("id", "1"), ("note", "snapshot"), ("qty", qty)];
        Landed::Row("Read", columns.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    };
    let happened = &truth::orders()[..1];
    let mut needed = Needed::default();
    let mut wrong = |landed: &[Landed]| compare("default", "shop.orders", happened, landed, true, &mut needed);
    assert_eq!(wrong(&[landed("1")]), Vec::<String>::new());
    assert_eq!(wrong(&[landed("2")]), ["default shop.orders event 0, qty: landed 2, expected 1"]);
    assert_eq!(wrong(&[]), ["default shop.orders: 1 events, landed 0: []"]);
    assert_eq!(wrong(&[Landed::Refused("why".to_owned())]), ["default shop.orders event 0: refused: why"]);
    assert!(needed.differences.is_empty() && needed.refused.is_empty());
}

#[test]
fn a_schema_part_gives_every_column_its_type() {
    let source = source("schemas", &json!({}));
    let variant = Variant { name: "schemas", settings: json!({}), types: vec![], declared: vec![] };
    let described = block_on(source.describe(&requests(&variant, &[]), &BTreeMap::new())).unwrap();
    assert!(described.iter().all(|table| !table.inferred));
    let types = &described[2].schema;
    let found: Vec<_> = types.columns.iter().map(|column| (column.name.as_str(), column.kind.to_string())).collect();
    let expected = [
        ("id", "int64"),
        ("b", "bool"),
        ("i2", "int16"),
        ("i4", "int32"),
        ("i8", "int64"),
        ("f4", "float32"),
        ("f8", "float64"),
        ("n_ps", "decimal(20,4)"),
        ("n_0", "decimal(38,0)"),
        ("n_free", "string"),
        ("m", "decimal(38,2)"),
        ("c", "string"),
        ("v", "string"),
        ("t", "string"),
        ("bin", "binary"),
        ("u", "uuid"),
        ("j", "json"),
        ("jb", "json"),
        ("x", "string"),
        ("d", "date"),
        ("tm", "time"),
        ("tm3", "time"),
        ("ttz", "string"),
        ("ts", "timestamp"),
        ("ts3", "timestamp"),
        ("ts0", "timestamp"),
        ("tstz", "timestamptz"),
        ("iv", "int64"),
        ("e", "enum"),
        ("em", "string"),
        ("h", "json"),
        ("ai", "list(int32)"),
        ("at", "list(string)"),
        ("inet", "string"),
        ("cidr", "string"),
        ("mac", "string"),
        ("bit1", "bool"),
        ("bit5", "binary"),
        ("vb", "binary"),
        ("pt", "struct(x float64 not null, y float64 not null, wkb binary, srid int32)"),
        ("r4", "string"),
        ("rts", "string"),
        ("o", "int64"),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name, kind.to_owned())));
    assert_eq!(types.key, [0]);
    assert!(!types.columns[0].nullable && types.columns[1..].iter().all(|column| column.nullable));
    let schemas: Vec<_> = described.iter().map(|table| table.schema.clone()).collect();
    // DDL between the rows: columns come and widen; one that went stays.
    assert_eq!(
        landed(&source, &schemas).1,
        [
            "shop.evolve: id int32, a int32, b string",
            "shop.evolve: id int32, a int64, b string",
            "shop.evolve: id int32, a int64, b string, c string",
        ]
    );
}

#[test]
fn flat_rows_are_no_change_events() {
    let source = source("unwrapped", &json!({}));
    let findings = block_on(source.preflight(&[]));
    assert_eq!((findings[0].severity, findings[0].code), (Severity::Error, "jsonl-not-an-event"));
    let error = block_on(async {
        let mut reader = source.stream(&Start::default(), &[]).await.unwrap();
        loop {
            match reader.next(Limit { rows: 10, bytes: 1 << 20 }).await {
                Ok(read) => assert!(!read.finished),
                Err(error) => break error,
            }
        }
    });
    assert_eq!((error.kind, error.code), (Kind::Poison, "jsonl-not-an-event"));
}
