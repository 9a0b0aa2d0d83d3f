//! Lines of change events: read or refused, alike each time, whatever was read before; and what they become together is well formed.

use std::sync::Arc;

use jsonl::envelope::{Decoder, Format, Line, Malformed};
use rows::{Column, TableSchema, Type};

use crate::Saw;
use crate::read::is_well_formed;

/// The bytes are the lines of a file.
pub fn lines(bytes: &[u8]) -> Saw {
    let mut taken = false;
    for format in [Format::Debezium, Format::Record] {
        let mut decoder = Decoder::new(format);
        for line in bytes.split(|byte| *byte == b'\n') {
            taken |= one_line(&mut decoder, format, line);
        }
        let (read, malformed) = jsonl::read_text(format, tables(), bytes).unwrap_or_else(|error| panic!("{error}"));
        is_well_formed(&read);
        let (again, malformed_again) = jsonl::read_text(format, tables(), bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((&read.events, &malformed), (&again.events, &malformed_again));
        for (batch, again) in read.batches.iter().zip(&again.batches) {
            assert_eq!(batch.data, again.data);
        }
    }
    Saw::taken_if(taken)
}

fn one_line(decoder: &mut Decoder, format: Format, line: &[u8]) -> bool {
    let mut fresh = Decoder::new(format);
    let (known, anew) = (decoder.decode(line), fresh.decode(line));
    match (&known, &anew) {
        (Ok(known), Ok(anew)) => assert_eq!(told(known), told(anew), "a line says the same whatever came before it"),
        (Err(known), Err(anew)) => assert_eq!(known, anew),
        _ => panic!("a line is read or not by what came before it: {known:?}, {anew:?}"),
    }
    match known {
        Ok(line_says) => {
            let text = std::str::from_utf8(line).expect("it was read as text");
            // Another reader of JSON agrees that it is some, but for members that come twice and what is deeper than it goes.
            let silent = matches!(line_says, Line::Silent(_));
            let json = serde_json::from_str::<&serde_json::value::RawValue>(text);
            assert!(silent || json.is_ok(), "{json:?}");
            !silent
        }
        Err(Malformed::Encoding { at }) => {
            assert!(std::str::from_utf8(line).is_err() && at >= 1 && at <= line.len());
            false
        }
        Err(Malformed::Syntax { at, what, part }) => {
            assert!(at >= 1 && !what.is_empty());
            assert!(part != "line" || at <= line.len() + 1, "byte {at} of {}", line.len());
            let text = std::str::from_utf8(line).expect("it was read as text");
            let json = serde_json::from_str::<&serde_json::value::RawValue>(text);
            assert!(part != "line" || json.is_err() || what.contains("nested"), "{what} at {at}, and another reader takes it");
            false
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// What a line says, without where a schema part is remembered.
fn told(line: &Line<'_>) -> String {
    match line {
        Line::Change(change) => {
            let schema = change.schema.map(|schema| &schema.fields);
            format!(
                "{:?} {:?} {} {:?} {:?} {:?} {:?} {schema:?}",
                change.operation, change.qualifier, change.table, change.tag, change.before, change.after, change.key
            )
        }
        other => format!("{other:?}"),
    }
}

/// One table with a column of each kind, and one whose columns the recorded events have.
fn tables() -> Vec<Arc<TableSchema>> {
    let kinds = [
        "int64",
        "bool",
        "int16",
        "uint64",
        "float64",
        "decimal(12,2)",
        "decimal(38,10)",
        "string",
        "json",
        "binary",
        "uuid",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "list(int32)",
        "map(string, int64)",
        "struct(a int32, b list(string))",
    ];
    let column = |(n, kind): (usize, &&str)| Column::new(format!("c{n}"), kind.parse().expect("a type"), n > 0);
    let all = kinds.iter().enumerate().map(column).collect();
    let orders = vec![
        Column::new("id", Type::Int64, false),
        Column::new("customer_id", Type::Int64, true),
        Column::new("status", Type::String, true),
        Column::new("total", Type::Decimal { precision: 12, scale: 2 }, true),
    ];
    let table = |name: &str, columns| TableSchema::new(name.into(), columns, vec![0]).expect("a table").into();
    vec![table("t", all), table("shop.orders", orders)]
}
