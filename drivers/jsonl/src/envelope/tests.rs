//! Lines of all kinds, and lines that are none.

use proptest::prelude::*;

use super::*;

const SOURCE: &str =
    r#""source":{"connector":"postgresql","db":"desk","schema":"shop","table":"orders","txId":7,"ts_ms":12,"ts_us":12345}"#;

fn decode(decoder: &mut Decoder, line: &str) -> Result<String, Malformed> {
    decoder.decode(line.as_bytes()).map(|line| told(&line))
}

fn debezium(line: &str) -> Result<String, Malformed> {
    decode(&mut Decoder::new(Format::Debezium), line)
}

fn record(line: &str) -> Result<String, Malformed> {
    decode(&mut Decoder::new(Format::Record), line)
}

/// A line in a form that tests can write down.
fn told(line: &Line<'_>) -> String {
    let image = |image: &Option<Image<'_>>| match image {
        None => "-".to_owned(),
        Some(image) => {
            image.members().map(|(name, value)| format!("{}={}", name.text().unwrap(), value.raw)).collect::<Vec<_>>().join(" ")
        }
    };
    let tag =
        |tag: &Tag<'_>| format!("{}@{}", tag.id.as_deref().unwrap_or("-"), tag.time.map_or("-".to_owned(), |t| t.to_string()));
    match line {
        Line::Change(change) => format!(
            "{:?} {}.{} {} before[{}] after[{}] key[{}]{}",
            change.operation,
            change.qualifier.as_deref().unwrap_or("-"),
            change.table,
            tag(&change.tag),
            image(&change.before),
            image(&change.after),
            image(&change.key),
            change.schema.map_or(String::new(), |schema| format!(" schema {}", schema.id))
        ),
        Line::Marker(marker) => format!("{} {}", if marker.end { "END" } else { "BEGIN" }, marker.id),
        Line::Message(of) => format!("message {}", tag(of)),
        Line::Silent(silent) => format!("{silent:?}"),
    }
}

#[test]
fn an_envelope_tells_operation_table_rows_and_transaction() {
    let line = format!(r#" {{ "before":null, "after":{{"id":1,"a b":"x\n"}}, {SOURCE}, "op":"c", "ts_ms":5 }} "#);
    assert_eq!(debezium(&line).unwrap(), r#"Create shop.orders 7@12345 before[-] after[id=1 a b="x\n"] key[-]"#);
    for (op, name) in [("u", "Update"), ("r", "Read"), ("d", "Delete"), ("t", "Truncate")] {
        let line = format!(r#"{{"before":{{"id":1}},"after":null,{SOURCE},"op":"{op}"}}"#);
        assert_eq!(debezium(&line).unwrap(), format!("{name} shop.orders 7@12345 before[id=1] after[-] key[-]"));
    }
}

#[test]
fn the_payload_beside_a_schema_part_is_the_envelope() {
    let schema = r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],"field":"after"}]}"#;
    let line = |schema: &str| format!(r#"{{"schema":{schema},"payload":{{"after":{{"id":1}},{SOURCE},"op":"c"}}}}"#);
    let mut decoder = Decoder::new(Format::Debezium);
    let expected = "Create shop.orders 7@12345 before[-] after[id=1] key[-]";
    assert_eq!(decode(&mut decoder, &line(schema)).unwrap(), format!("{expected} schema 0"));
    assert_eq!(decode(&mut decoder, &line(schema)).unwrap(), format!("{expected} schema 0"));
    assert_eq!(decode(&mut decoder, &line(&schema.replace("int32", "int64"))).unwrap(), format!("{expected} schema 1"));
    assert_eq!(decode(&mut decoder, &line(schema)).unwrap(), format!("{expected} schema 0"));
    assert_eq!(decode(&mut decoder, &line("null")).unwrap(), expected);
    let turned = format!(r#"{{"payload":{{"after":{{"id":1}},{SOURCE},"op":"c"}},"schema": {schema}}}"#);
    assert_eq!(decode(&mut decoder, &turned).unwrap(), format!("{expected} schema 0"));
    assert_eq!(decode(&mut decoder, &format!(r#"{{"schema":{schema},"payload":null}}"#)).unwrap(), "Tombstone");
}

#[test]
fn a_table_is_called_by_its_schema_else_by_its_database() {
    let line = |source: &str| debezium(&format!(r#"{{"op":"t","source":{source}}}"#));
    assert_eq!(line(r#"{"db":"a","schema":"b","table":"c"}"#).unwrap(), "Truncate b.c -@- before[-] after[-] key[-]");
    assert_eq!(line(r#"{"db":"a","schema":null,"table":"c"}"#).unwrap(), "Truncate a.c -@- before[-] after[-] key[-]");
    assert_eq!(line(r#"{"db":"a","table":"c\u00e9"}"#).unwrap(), "Truncate a.cé -@- before[-] after[-] key[-]");
    assert_eq!(line(r#"{"table":"c"}"#).unwrap(), "Truncate -.c -@- before[-] after[-] key[-]");
}

#[test]
fn a_transaction_is_known_by_its_own_id_else_its_gtid_else_its_number() {
    let line = |connector: &str, more: &str, transaction: &str| {
        let line = format!(r#"{{"op":"m","source":{{"connector":"{connector}"{more}}},"transaction":{transaction}}}"#);
        debezium(&line).unwrap()
    };
    let all = r#","gtid":"uuid:5","txId":9"#;
    assert_eq!(line("postgresql", all, r#"{"id":"1015:657","total_order":1}"#), "message 1015@-");
    assert_eq!(line("mysql", all, r#"{"total_order":1,"id":"uuid:6"}"#), "message uuid:6@-");
    assert_eq!(line("mysql", all, "null"), "message uuid:5@-");
    assert_eq!(line("oracle", r#","gtid":null,"txId":"0a.1b""#, "null"), "message 0a.1b@-");
    assert_eq!(line("postgresql", r#","txId":9"#, "null"), "message 9@-");
    assert_eq!(line("postgresql", r#","txId":null"#, "null"), "message -@-");
    assert_eq!(line("postgresql", r#","ts_ms":5"#, "null"), "message -@5000");
}

#[test]
fn markers_messages_and_records_of_no_table_are_told_apart() {
    for (line, expected) in [
        (
            r#"{"status":"BEGIN","id":"1015:65702064","event_count":null,"data_collections":null,"ts_ms":5}"#,
            "BEGIN 1015:65702064",
        ),
        (
            r#"{"status":"END","id":"1015:65702776","event_count":1,"data_collections":[{"event_count":1}],"ts_ms":5}"#,
            "END 1015:65702776",
        ),
        (r#"{"schema":{"type":"struct","fields":[]},"payload":{"status":"END","id":"5","event_count":0}}"#, "END 5"),
        (r#"{"ts_ms":5}"#, "Heartbeat"),
        (
            r#"{"source":{"table":"t"},"ts_ms":5,"databaseName":"d","ddl":"CREATE TABLE t(a int)","tableChanges":[]}"#,
            "SchemaHistory",
        ),
        ("null", "Tombstone"),
        ("", "Blank"),
        (" \t\r", "Blank"),
    ] {
        assert_eq!(debezium(line).unwrap(), expected, "{line}");
    }
}

#[test]
fn a_record_holds_key_and_envelope_as_text() {
    let value = r#"{\"before\":null,\"after\":{\"id\":1,\"n\":\"a\\\"b\"},\"source\":{\"schema\":\"shop\",\"table\":\"orders\"},\"op\":\"c\"}"#;
    let line = |key: &str, value: &str| {
        format!(r#"{{"topic":"t","partition":0,"offset":1,"headers":[["a",null]],"key":{key},"value":{value}}}"#)
    };
    let expected = r#"Create shop.orders -@- before[-] after[id=1 n="a\"b"] key["#;
    assert_eq!(record(&line(r#""{\"id\":1}""#, &format!("\"{value}\""))).unwrap(), format!("{expected}id=1]"));
    let key = r#""{\"schema\":{\"type\":\"struct\"},\"payload\":{\"region\":\"eu\",\"id\":1}}""#;
    assert_eq!(record(&line(key, &format!("\"{value}\""))).unwrap(), format!("{expected}region=\"eu\" id=1]"));
    assert_eq!(record(&line("null", &format!("\"{value}\""))).unwrap(), format!("{expected}-]"));
    assert_eq!(record(&line("\"5\"", &format!("\"{value}\""))).unwrap(), format!("{expected}-]"));
    assert_eq!(record(&line(r#""{\"id\":1}""#, "null")).unwrap(), "Tombstone");
    assert_eq!(record(&line("null", "null")).unwrap(), "Tombstone");
    assert_eq!(record("").unwrap(), "Blank");
}

#[test]
fn a_line_that_is_no_event_says_why_and_never_what_it_holds() {
    let said = |line: &str| debezium(line).unwrap_err().to_string();
    for (line, expected) in [
        ("{\"op\":", "not JSON: the text ends where a value is expected, at byte 7 of the line"),
        ("{} {}", "not JSON: text after the end of the value, at byte 4 of the line"),
        ("[1]", "JSON, but no change event: expected an object, found an array"),
        ("5", "JSON, but no change event: expected an object, found a number"),
        ("{}", "JSON, but no change event: 'op' is missing"),
        ("{\"id\":5,\"status\":\"END\",\"ts_ms\":5}", "JSON, but no change event: 'op' is missing"),
        (
            "{\"op\":\"x\",\"source\":{\"table\":\"t\"}}",
            "a change event with the unknown operation 'x'; known are c, u, d, r, t and m",
        ),
        (
            "{\"op\":\"secret\",\"source\":{\"table\":\"t\"}}",
            "a change event with the unknown operation (a string that is no single letter); known are c, u, d, r, t and m",
        ),
        (
            "{\"op\":5,\"source\":{\"table\":\"t\"}}",
            "a change event with the unknown operation '5'; known are c, u, d, r, t and m",
        ),
        ("{\"op\":\"c\"}", "JSON, but no change event: 'source' is missing"),
        ("{\"op\":\"c\",\"source\":null}", "JSON, but no change event: 'source' is missing"),
        ("{\"op\":\"c\",\"source\":{\"db\":\"d\"}}", "JSON, but no change event: 'source.table' is missing"),
        ("{\"op\":\"c\",\"source\":{\"table\":5}}", "JSON, but no change event: 'source.table' is a number, expected a string"),
        (
            "{\"op\":\"c\",\"source\":{\"table\":\"t\"},\"after\":[1]}",
            "JSON, but no change event: 'after' is an array, expected an object or null",
        ),
        (
            "{\"op\":\"c\",\"source\":{\"table\":\"t\"},\"before\":\"x\"}",
            "JSON, but no change event: 'before' is a string, expected an object or null",
        ),
        ("{\"schema\":null,\"payload\":7}", "JSON, but no change event: 'payload' is a number, expected an object or null"),
        (
            "{\"topic\":\"t\",\"key\":null,\"value\":null}",
            "JSON, but no change event: 'op' is missing, but 'topic' or 'value' is there as in a Kafka record: 'source.format: record' reads those",
        ),
        (
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"field\":\"after\",\"fields\":[{\"type\":\"int31\",\"field\":\"a\"}]}]},\"payload\":{\"op\":\"c\",\"source\":{\"table\":\"t\"}}}",
            "a change event whose schema part cannot be read: field 'a': the type 'int31' is unknown",
        ),
    ] {
        assert_eq!(said(line), expected, "{line}");
    }
    let mut decoder = Decoder::new(Format::Debezium);
    assert_eq!(decoder.decode(b"{\"op\":\"\xff\"}").unwrap_err().to_string(), "not UTF-8 from byte 8 of the line on");
    for (line, expected) in [
        (
            "{\"op\":\"c\"}",
            "JSON, but no change event: 'value' is missing as in an envelope: 'source.format: debezium' reads those",
        ),
        ("{\"key\":null}", "JSON, but no change event: 'value' is missing, which a Kafka record has"),
        ("{\"value\":{}}", "JSON, but no change event: the record's value is an object, expected a string or null"),
        ("{\"key\":1,\"value\":null}", "JSON, but no change event: the record's key is a number, expected a string or null"),
        ("{\"value\":\"{\"}", "not JSON: expected a member's name in quotes, at byte 2 of the value"),
        ("{\"key\":\"{\",\"value\":\"{}\"}", "not JSON: expected a member's name in quotes, at byte 2 of the key"),
        ("{\"value\":\"\\ud800\"}", "JSON, but no change event: the record's value holds half of a surrogate pair"),
        ("null", "JSON, but no change event: expected an object, a Kafka record, found null"),
    ] {
        assert_eq!(record(line).unwrap_err().to_string(), expected, "{line}");
    }
}

#[test]
fn names_with_escapes_are_the_names_that_they_spell() {
    let line = r#"{"\u006fp":"c","source":{"t\u0061ble":"t"},"after":{"\u0069d":1}}"#;
    assert_eq!(debezium(line).unwrap(), "Create -.t -@- before[-] after[id=1] key[-]");
}

#[test]
fn all_literal_and_semantic_types_are_known() {
    let wire = |part: &str| {
        let line = format!(
            r#"{{"schema":{{"type":"struct","fields":[{{"type":"struct","field":"after","fields":[{part}]}}]}},"payload":{{"op":"c","source":{{"table":"t"}}}}}}"#
        );
        let mut decoder = Decoder::new(Format::Debezium);
        match decoder.decode(line.as_bytes()) {
            Ok(Line::Change(change)) => Ok(change.schema.unwrap().fields[0].wire.clone()),
            Ok(other) => panic!("{other:?}"),
            Err(wrong) => Err(wrong.to_string()),
        }
    };
    let named = |literal: &str, name: &str| wire(&format!(r#"{{"type":"{literal}","name":"{name}","field":"a"}}"#));
    for (literal, expected) in [
        ("boolean", Wire::Bool),
        ("int8", Wire::Int8),
        ("int16", Wire::Int16),
        ("int32", Wire::Int32),
        ("int64", Wire::Int64),
        ("float", Wire::Float32),
        ("double", Wire::Float64),
        ("string", Wire::String),
        ("bytes", Wire::Bytes),
    ] {
        assert_eq!(named(literal, "some.name"), Ok(expected), "{literal}");
    }
    for (literal, name, expected) in [
        ("int32", "io.debezium.time.Date", Wire::Date),
        ("int32", "org.apache.kafka.connect.data.Date", Wire::Date),
        ("int32", "io.debezium.time.Time", Wire::Time(Unit::Millis)),
        ("int32", "org.apache.kafka.connect.data.Time", Wire::Time(Unit::Millis)),
        ("int64", "io.debezium.time.MicroTime", Wire::Time(Unit::Micros)),
        ("int64", "io.debezium.time.NanoTime", Wire::Time(Unit::Nanos)),
        ("int64", "io.debezium.time.Timestamp", Wire::Timestamp(Unit::Millis)),
        ("int64", "org.apache.kafka.connect.data.Timestamp", Wire::Timestamp(Unit::Millis)),
        ("int64", "io.debezium.time.MicroTimestamp", Wire::Timestamp(Unit::Micros)),
        ("int64", "io.debezium.time.NanoTimestamp", Wire::Timestamp(Unit::Nanos)),
        ("string", "io.debezium.time.ZonedTime", Wire::ZonedTime),
        ("string", "io.debezium.time.ZonedTimestamp", Wire::ZonedTimestamp),
        ("string", "io.debezium.time.IsoDate", Wire::IsoDate),
        ("string", "io.debezium.time.IsoTime", Wire::IsoTime),
        ("string", "io.debezium.time.IsoTimestamp", Wire::IsoTimestamp),
        ("string", "io.debezium.data.Uuid", Wire::Uuid),
        ("string", "io.debezium.data.Json", Wire::Json),
        ("string", "io.debezium.data.Enum", Wire::Enum),
        ("string", "io.debezium.data.EnumSet", Wire::String),
        ("string", "io.debezium.data.Xml", Wire::String),
        ("string", "io.debezium.time.Interval", Wire::String),
        ("int64", "io.debezium.time.MicroDuration", Wire::Int64),
        ("int32", "io.debezium.time.Year", Wire::Int32),
        ("bytes", "io.debezium.data.Bits", Wire::Bytes),
    ] {
        assert_eq!(named(literal, name), Ok(expected), "{name}");
    }
    let variable = r#"{"type":"struct","name":"io.debezium.data.VariableScaleDecimal","field":"a","fields":[]}"#;
    assert_eq!(wire(variable), Ok(Wire::VariableScaleDecimal));
    let decimal = |parameters: &str| {
        wire(&format!(
            r#"{{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{parameters},"field":"a"}}"#
        ))
    };
    let exact = decimal(r#"{"scale":"4","connect.decimal.precision":"20"}"#);
    assert_eq!(exact, Ok(Wire::Decimal { precision: Some(20), scale: 4 }));
    assert_eq!(decimal(r#"{"scale":"2"}"#), Ok(Wire::Decimal { precision: None, scale: 2 }));
    assert!(decimal("{}").unwrap_err().contains("a Decimal without the parameter 'scale'"));
    let list = r#"{"type":"array","items":{"type":"int32"},"field":"a"}"#;
    assert_eq!(wire(list), Ok(Wire::Array(Box::new(Wire::Int32))));
    let map = r#"{"type":"map","keys":{"type":"string"},"values":{"type":"int8"},"field":"a"}"#;
    assert_eq!(wire(map), Ok(Wire::Map(Box::new(Wire::String), Box::new(Wire::Int8))));
    let point =
        r#"{"type":"struct","name":"io.debezium.data.geometry.Point","fields":[{"type":"double","field":"x"}],"field":"a"}"#;
    let x = WireField { name: "x".to_owned(), wire: Wire::Float64, optional: false };
    assert_eq!(wire(point), Ok(Wire::Struct(vec![x])));
    assert!(wire(r#"{"type":"array","field":"a"}"#).unwrap_err().contains("array without 'items'"));
}

#[test]
fn the_schema_cache_is_bounded_and_forgets_the_oldest() {
    let line = |n: usize| {
        format!(
            r#"{{"schema":{{"type":"struct","fields":[{{"type":"struct","field":"after","fields":[{{"type":"int32","field":"c{n}"}}]}}]}},"payload":{{"op":"c","source":{{"table":"t"}}}}}}"#
        )
    };
    let mut decoder = Decoder::new(Format::Debezium);
    for n in 0..100 {
        assert!(decode(&mut decoder, &line(n)).unwrap().ends_with(&format!("schema {n}")));
    }
    assert!(decode(&mut decoder, &line(50)).unwrap().ends_with("schema 50"));
    assert!(decode(&mut decoder, &line(0)).unwrap().ends_with("schema 100"));
}

/// Lines of a real connector, to be broken.
const CORPUS: [&str; 4] = [
    include_str!("../../testdata/debezium/default/shop.types_all.jsonl"),
    include_str!("../../testdata/debezium/schemas/shop.orders.jsonl"),
    include_str!("../../testdata/debezium/default/transaction.jsonl"),
    include_str!("../../testdata/debezium/default/message.jsonl"),
];

fn corpus_line() -> impl Strategy<Value = &'static str> {
    let lines: Vec<&str> = CORPUS.iter().flat_map(|file| file.lines()).collect();
    proptest::sample::select(lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_decoder_never_panics_on_broken_lines(
        line in corpus_line(),
        breaks in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..6),
        inner in any::<bool>(),
    ) {
        let mut bytes = line.as_bytes().to_vec();
        if inner && let Ok(record) = serde_json::from_str::<serde_json::Value>(line) {
            bytes = record["value"].as_str().unwrap_or_default().as_bytes().to_vec();
        }
        for (at, byte, how) in breaks {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        for format in [Format::Debezium, Format::Record] {
            let mut decoder = Decoder::new(format);
            // Twice: what the first left behind must not disturb the second.
            let first = decoder.decode(&bytes).map(|line| told_safely(&line));
            let second = decoder.decode(&bytes).map(|line| told_safely(&line));
            prop_assert_eq!(&first, &second);
            // A row has at most one member for each four bytes: the decoder's memory is a small multiple of the line.
            prop_assert!(decoder.images.before.len() + decoder.images.after.len() + decoder.images.key.len() <= bytes.len() / 4 + 1);
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
                prop_assert!(is_json || text.trim().is_empty() || first.is_err());
            } else {
                prop_assert!(first.is_err());
            }
        }
    }
}

fn told_safely(line: &Line<'_>) -> String {
    match line {
        Line::Change(change) => {
            let members = |image: &Option<Image<'_>>| image.map_or(0, |image| image.members().count());
            format!("{:?} {} {} {}", change.operation, change.table, members(&change.before), members(&change.after))
        }
        other => told(other),
    }
}
