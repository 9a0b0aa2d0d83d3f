//! The JSON Schema of the pipeline file, made from the field table, so that editors complete and check it.
//!
//! What the reader accepts, the schema accepts. The other way round it is more generous: it knows neither what takes two
//! fields to be wrong nor the grammar of column types. A field that is not built yet is refused by both.

use serde_json::{Map, Value, json};

use crate::column_type;
use crate::field::{Built, Field, Form, Need, Shape, Text, Word, Zero};
use crate::fields::{FILTER, PIPELINE};

/// The schema (draft 2020-12).
pub fn schema() -> Value {
    let mut schema = section(PIPELINE);
    let mut filter = section(FILTER);
    filter.extend([("minProperties".to_owned(), json!(1)), ("maxProperties".to_owned(), json!(1))]);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:urutau:pipeline",
        "title": "urutau pipeline",
        "description": "One replication job: a source, a sink and the tables between them.",
        "$defs": {
            "replaced": {
                "description": "A text in which `${env:NAME}` or `${file:PATH}` is replaced when the file is loaded.",
                "type": "string",
                "pattern": r"\$\{(env|file):[^}]+\}",
            },
            "text": { "type": ["string", "number", "boolean"], "minLength": 1 },
            "duration": { "anyOf": [{ "const": 0 }, { "type": "string", "pattern": DURATION }, { "$ref": "#/$defs/replaced" }] },
            "size": { "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": SIZE },
                { "$ref": "#/$defs/replaced" },
            ] },
            "columnType": {
                "description": format!("A column type; {}.", column_type::all()),
                "anyOf": [{ "type": "string", "pattern": column_type_pattern() }, { "$ref": "#/$defs/replaced" }],
            },
            "filter": filter,
        },
    });
    if let Value::Object(head) = head {
        schema.extend(head);
    }
    Value::Object(schema)
}

const DURATION: &str = r"^(0|\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
const SIZE: &str = r"^[0-9.]+([KMGT]i|[KMGT]iB|[kKMGT]?B)?$";

/// A text that begins with the name of a type; the rest is for the reader to judge.
fn column_type_pattern() -> String {
    format!(r"^ *({}|decimal|list|map|struct) *(\(.*\) *)?$", column_type::PLAIN.join("|"))
}

/// A section whose fields are all for everybody, or one that has a kind.
fn section(fields: &'static [Field]) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in fields {
        let described = described(field);
        match properties.get_mut(field.name) {
            None => _ = properties.insert(field.name.to_owned(), described),
            Some(first) => *first = either(first.take(), described),
        }
        if let Some(alias) = field.alias {
            properties.insert(alias.to_owned(), properties[field.name].clone());
        }
    }
    let mut section =
        object([("type", json!("object")), ("properties", Value::Object(properties)), ("additionalProperties", json!(false))]);
    let required = required(fields, None);
    if !required.is_empty() {
        section.insert("required".into(), json!(required));
    }
    if let Some(Field { name: "kind", shape: Shape::Word(words), need, .. }) = fields.first() {
        if matches!(need, Need::Required) {
            section.insert("anyOf".into(), json!([{ "required": ["kind"] }, { "required": ["type"] }]));
        }
        let default = fields.first().and_then(|field| field.default_for(None, false));
        let built = words.iter().filter(|word| word.built);
        section.insert("allOf".into(), built.map(|word| of_kind(word, fields, default == Some(word.name))).collect());
    }
    section
}

fn either(one: Value, other: Value) -> Value {
    match one {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("anyOf") => {
            if let Some(Value::Array(variants)) = map.get_mut("anyOf") {
                variants.push(other);
            }
            Value::Object(map)
        }
        one => json!({ "anyOf": [one, other] }),
    }
}

/// What holds for one kind only: which fields it has, and which of them must be there.
fn of_kind(kind: &Word, fields: &'static [Field], is_default: bool) -> Value {
    let said = |name: &str| json!({ "properties": { name: { "enum": word_values(kind) } }, "required": [name] });
    let mut conditions = vec![said("kind"), said("type")];
    if is_default {
        conditions.push(json!({ "not": { "anyOf": [{ "required": ["kind"] }, { "required": ["type"] }] } }));
    }
    let mut properties = Map::new();
    for field in fields.iter().filter(|field| !field.kinds.is_empty()) {
        if field.belongs_to(Some(kind.name)) {
            let described = described(field);
            properties.insert(field.name.to_owned(), described);
        } else {
            properties.entry(field.name).or_insert(json!(false));
        }
    }
    let mut then = object([("properties", Value::Object(properties))]);
    let required = required(fields, Some(kind.name));
    if !required.is_empty() {
        then.insert("required".into(), json!(required));
    }
    json!({ "if": { "anyOf": conditions }, "then": then })
}

/// The fields that must be there: for everybody, or for one kind. What a variable may give need not stand in the file.
fn required(fields: &'static [Field], kind: Option<&str>) -> Vec<&'static str> {
    let here = |field: &&Field| field.kinds.is_empty() == kind.is_none() && field.belongs_to(kind);
    let must = |field: &&Field| matches!(field.need, Need::Required) && field.variable.is_none() && field.alias.is_none();
    fields.iter().filter(here).filter(must).map(|field| field.name).collect()
}

/// A field with its meaning and default.
fn described(field: &Field) -> Value {
    let mut value = match field.built {
        Built::NotYet => object([("not", json!({}))]),
        Built::Only(only) => object([("const", default_value(field.shape, only))]),
        Built::Yes => shape(field.shape),
    };
    let not_yet = if field.built == Built::NotYet { " Not built yet." } else { "" };
    value.insert("description".into(), json!(format!("{}{not_yet}", field.meaning)));
    if let (Need::Default(default), Built::Yes) = (field.need, field.built) {
        value.insert("default".into(), default_value(field.shape, default));
    }
    Value::Object(value)
}

/// A default as JSON has it.
fn default_value(shape: Shape, text: &str) -> Value {
    match shape {
        Shape::Bool => json!(text == "true"),
        Shape::Number { .. } => text.parse::<u64>().map_or(json!(text), |number| json!(number)),
        _ => json!(text),
    }
}

fn shape(shape: Shape) -> Map<String, Value> {
    match shape {
        Shape::Text(Text { form: Form::Any, .. }) => reference("text"),
        Shape::Text(Text { form, .. }) => {
            let text = json!({ "type": ["string", "number", "boolean"], "minLength": 1, "pattern": form.pattern() });
            object([("anyOf", json!([text, reference("replaced")]))])
        }
        Shape::Bool => object([("anyOf", json!([{ "type": "boolean" }, reference("replaced")]))]),
        Shape::Number { least, most } => {
            let number = json!({ "type": "integer", "minimum": least, "maximum": most });
            let digits = json!({ "type": "string", "pattern": "^[0-9][0-9_]*$" });
            object([("anyOf", json!([number, digits, reference("replaced")]))])
        }
        Shape::Duration(Zero::Allowed | Zero::Refused) => reference("duration"),
        Shape::Size => reference("size"),
        Shape::Word(words) => {
            let values: Vec<Value> = words.iter().filter(|word| word.built).flat_map(word_values).collect();
            object([("anyOf", json!([{ "enum": values }, reference("replaced")]))])
        }
        Shape::ColumnType => reference("columnType"),
        Shape::Section(fields) => section(fields),
        Shape::Sections(fields) => object([("type", json!("array")), ("items", Value::Object(section(fields)))]),
        Shape::Names => object([("type", json!("array")), ("minItems", json!(1)), ("items", Value::Object(reference("text")))]),
        Shape::Texts { .. } => {
            object([("type", json!("object")), ("additionalProperties", json!({ "type": ["string", "number", "boolean"] }))])
        }
        Shape::Casts => {
            let ways = json!({ "type": "string", "pattern": r"^ *(string|timestamptz) *\(.*\) *$" });
            object([("type", json!("object")), ("additionalProperties", json!({ "anyOf": [reference("columnType"), ways] }))])
        }
        Shape::Filter => reference("filter"),
        Shape::Filters => {
            object([("type", json!("array")), ("minItems", json!(1)), ("items", Value::Object(reference("filter")))])
        }
        Shape::Literal => {
            let one = json!({ "type": ["string", "number", "boolean"] });
            object([("anyOf", json!([one, { "type": "array", "minItems": 1, "items": one }]))])
        }
    }
}

/// A word as YAML may read it: `null` without quotes is not a text.
fn word_values(word: &Word) -> Vec<Value> {
    let mut values: Vec<Value> = [Some(word.name), word.alias].into_iter().flatten().map(Value::from).collect();
    if word.name == "null" {
        values.push(Value::Null);
    }
    values
}

fn reference(definition: &str) -> Map<String, Value> {
    object([("$ref", json!(format!("#/$defs/{definition}")))])
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
