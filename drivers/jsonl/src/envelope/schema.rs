//! The schema part that Kafka Connect's JsonConverter writes beside each payload: how each column's values are written.
//!
//! Names of semantic types are Debezium's (`io.debezium.*`) and Connect's (`org.apache.kafka.connect.data.*`). A name that is
//! not known here changes nothing: such values are what their literal type says.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::json::{Cursor, Kind, Syntax};

/// How a value is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wire {
    /// `true`, `false`
    Bool,
    /// A number of 8 bits.
    Int8,
    /// A number of 16 bits.
    Int16,
    /// A number of 32 bits (also `Year`).
    Int32,
    /// A number of 64 bits (also `MicroDuration`, `NanoDuration`).
    Int64,
    /// A number, or one of the strings `NaN`, `Infinity`, `-Infinity`.
    Float32,
    /// As `Float32`, twice as wide.
    Float64,
    /// Text (also `Xml`, `EnumSet`, `Interval`, `Ltree`, ...).
    String,
    /// Base64 (also `Bits`, least significant byte first).
    Bytes,
    /// Base64 of the unscaled value, two's complement, most significant byte first; or a number.
    Decimal {
        /// How many digits, if the connector says.
        precision: Option<u32>,
        /// How many of them after the point.
        scale: i32,
    },
    /// `{"scale": n, "value": base64}`
    VariableScaleDecimal,
    /// Days since 1970.
    Date,
    /// Since midnight.
    Time(Unit),
    /// Since 1970 as if the wall clock were in UTC.
    Timestamp(Unit),
    /// `08:00:00Z`
    ZonedTime,
    /// `2026-02-28T09:34:56.123456Z`
    ZonedTimestamp,
    /// `2026-02-28Z`
    IsoDate,
    /// `23:59:59.123456Z`
    IsoTime,
    /// `2026-02-28T12:34:56.123456Z`, the `Z` without a meaning.
    IsoTimestamp,
    /// Text.
    Uuid,
    /// Text that is JSON.
    Json,
    /// Text, one of some labels.
    Enum,
    /// `[...]`
    Array(Box<Wire>),
    /// `{...}`, or pairs `[[key, value], ...]` where keys are no strings.
    Map(Box<Wire>, Box<Wire>),
    /// `{...}`
    Struct(Vec<WireField>),
}

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// A column, or a member of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireField {
    /// Its name.
    pub name: String,
    /// How its values are written.
    pub wire: Wire,
    /// May it be null?
    pub optional: bool,
}

/// What a schema part says about the rows of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowSchema {
    /// Different for different schema parts that one decoder has met.
    pub id: u64,
    /// The columns.
    pub fields: Vec<WireField>,
}

/// How many schema parts are kept. More tables than this take turns, which costs time and nothing else.
const CACHE_MAX: usize = 64;

/// How many bytes of them, if there is more than one.
const CACHE_BYTES_MAX: usize = 16 << 20;

/// Schema parts that came before, so that an equal one is recognised by its text and not read again.
#[derive(Default, Debug)]
pub(super) struct SchemaCache {
    /// The one that was used last comes first.
    kept: Vec<Kept>,
    next_id: u64,
}

#[derive(Debug)]
struct Kept {
    text: Box<str>,
    id: u64,
    /// `None` for a schema without rows (markers, messages).
    parsed: Result<Option<Arc<RowSchema>>, String>,
}

/// Which of the kept schemas an event has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cached(u64);

impl SchemaCache {
    /// Reads the schema part that comes next. `None` if it is no object.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Cached>, Syntax> {
        // The text of an object ends with its brace, so a text that begins with a known one holds exactly that object.
        let rest = cursor.rest();
        if let Some(at) = self.kept.iter().position(|kept| rest.starts_with(&*kept.text)) {
            cursor.skip_known(self.kept[at].text.len());
            self.kept[..=at].rotate_right(1);
            return Ok(Some(Cached(self.kept[0].id)));
        }
        let value = cursor.value()?;
        if value.kind != Kind::Object {
            return Ok(None);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.kept.insert(0, Kept { text: value.raw.into(), id, parsed: parse(value.raw, id) });
        while self.kept.len() > 1 && (self.kept.len() > CACHE_MAX || self.bytes() > CACHE_BYTES_MAX) {
            self.kept.pop();
        }
        Ok(Some(Cached(id)))
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.text.len()).sum()
    }

    pub(super) fn get(&self, cached: &Cached) -> Result<Option<&Arc<RowSchema>>, String> {
        match self.kept.iter().find(|kept| kept.id == cached.0) {
            Some(kept) => kept.parsed.as_ref().map(Option::as_ref).map_err(Clone::clone),
            None => Ok(None),
        }
    }
}

/// A schema as JsonConverter writes it.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    optional: bool,
    name: Option<String>,
    parameters: Option<BTreeMap<String, String>>,
    field: Option<String>,
    fields: Option<Vec<Part>>,
    items: Option<Box<Part>>,
    keys: Option<Box<Part>>,
    values: Option<Box<Part>>,
}

fn parse(text: &str, id: u64) -> Result<Option<Arc<RowSchema>>, String> {
    let part: Part = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let images = part.fields.unwrap_or_default();
    let image = |name: &str| images.iter().find(|field| field.field.as_deref() == Some(name) && field.fields.is_some());
    let Some(row) = image("after").or_else(|| image("before")) else { return Ok(None) };
    Ok(Some(Arc::new(RowSchema { id, fields: fields(row)? })))
}

fn fields(part: &Part) -> Result<Vec<WireField>, String> {
    let all = part.fields.as_ref().ok_or("a struct without 'fields'")?;
    all.iter()
        .map(|field| {
            let name = field.field.clone().ok_or("a field without its name in 'field'")?;
            let wire = wire(field).map_err(|why| format!("field '{name}': {why}"))?;
            Ok(WireField { name, wire, optional: field.optional })
        })
        .collect()
}

fn wire(part: &Part) -> Result<Wire, String> {
    if let Some(semantic) = part.name.as_deref().and_then(|name| semantic(name, part).transpose()) {
        return semantic;
    }
    let inner = |held: &Option<Box<Part>>, what: &str| match held {
        Some(held) => wire(held).map(Box::new),
        None => Err(format!("{} without '{what}'", part.kind)),
    };
    Ok(match part.kind.as_str() {
        "boolean" => Wire::Bool,
        "int8" => Wire::Int8,
        "int16" => Wire::Int16,
        "int32" => Wire::Int32,
        "int64" => Wire::Int64,
        "float" | "float32" => Wire::Float32,
        "double" | "float64" => Wire::Float64,
        "string" => Wire::String,
        "bytes" => Wire::Bytes,
        "array" => Wire::Array(inner(&part.items, "items")?),
        "map" => Wire::Map(inner(&part.keys, "keys")?, inner(&part.values, "values")?),
        "struct" => Wire::Struct(fields(part)?),
        other => return Err(format!("the type '{other}' is unknown")),
    })
}

/// The meaning that a semantic type's name adds; `None` if it adds none that matters here.
fn semantic(name: &str, part: &Part) -> Result<Option<Wire>, String> {
    let literal = part.kind.as_str();
    Ok(Some(match (name, literal) {
        ("org.apache.kafka.connect.data.Decimal", "bytes") => decimal(part)?,
        ("io.debezium.data.VariableScaleDecimal", "struct") => Wire::VariableScaleDecimal,
        ("io.debezium.time.Date" | "org.apache.kafka.connect.data.Date", "int32") => Wire::Date,
        ("io.debezium.time.Time" | "org.apache.kafka.connect.data.Time", "int32") => Wire::Time(Unit::Millis),
        ("io.debezium.time.MicroTime", "int64") => Wire::Time(Unit::Micros),
        ("io.debezium.time.NanoTime", "int64") => Wire::Time(Unit::Nanos),
        ("io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp", "int64") => Wire::Timestamp(Unit::Millis),
        ("io.debezium.time.MicroTimestamp", "int64") => Wire::Timestamp(Unit::Micros),
        ("io.debezium.time.NanoTimestamp", "int64") => Wire::Timestamp(Unit::Nanos),
        ("io.debezium.time.ZonedTime", "string") => Wire::ZonedTime,
        ("io.debezium.time.ZonedTimestamp", "string") => Wire::ZonedTimestamp,
        ("io.debezium.time.IsoDate", "string") => Wire::IsoDate,
        ("io.debezium.time.IsoTime", "string") => Wire::IsoTime,
        ("io.debezium.time.IsoTimestamp", "string") => Wire::IsoTimestamp,
        ("io.debezium.data.Uuid", "string") => Wire::Uuid,
        ("io.debezium.data.Json", "string") => Wire::Json,
        ("io.debezium.data.Enum", "string") => Wire::Enum,
        _ => return Ok(None),
    }))
}

fn decimal(part: &Part) -> Result<Wire, String> {
    let parameter = |name: &str| part.parameters.as_ref().and_then(|all| all.get(name));
    let scale = parameter("scale").ok_or("a Decimal without the parameter 'scale'")?;
    let scale = scale.parse().map_err(|_| "a Decimal whose parameter 'scale' is no number")?;
    let precision = match parameter("connect.decimal.precision") {
        Some(text) => Some(text.parse().map_err(|_| "a Decimal whose parameter 'connect.decimal.precision' is no number")?),
        None => None,
    };
    Ok(Wire::Decimal { precision, scale })
}
