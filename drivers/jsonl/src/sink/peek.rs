//! Reading rows back, the newest first: enough for a look, however long the file is.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use contract::{Error, Kind, Peek};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::backwards::{Backwards, read};
use super::fault;
use super::file::TableFile;
use super::place::Names;

/// Some rows of a target as they are visible now, the newest first. Columns are whole numbers, numbers or truth values where
/// all that were read are, else text: what stands in the file. Empty if there is no such file.
pub fn read_rows(directory: &Path, target: &str, which: &Peek) -> Result<Vec<RecordBatch>, Error> {
    let names = Names::new(directory, target);
    let Some(file) = TableFile::open(&names.file, false)? else { return Ok(Vec::new()) };
    let rows = Reader { file: &file, target, which }.rows()?;
    if rows.is_empty() { Ok(Vec::new()) } else { Ok(vec![batch(&rows, target)?]) }
}

/// Fields in the order in which they stand.
#[derive(Clone, PartialEq, Debug, Default)]
struct Fields(Vec<(String, Json)>);

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    op: String,
    #[serde(default)]
    row: Option<Fields>,
}

struct Reader<'a> {
    file: &'a TableFile,
    target: &'a str,
    which: &'a Peek,
}

impl Reader<'_> {
    fn rows(&self) -> Result<Vec<Fields>, Error> {
        let (header, header_end) = self.file.header()?;
        let keyed = header.mode == "upsert";
        if let Some(key) = self.which.key.as_ref().filter(|key| !keyed || key.len() != header.key.len()) {
            let expected = if keyed { header.key.join(", ") } else { "none: every change is a row of its own".into() };
            let what = format!("{}: {} key values are given, the key is {expected}", self.target, key.len());
            return Err(Error::new(Kind::Config, "jsonl-sink-key", what, "give one value for each column of the key"));
        }
        let stand = self.file.stand()?;
        let cannot = |error| fault("read", self.file.path(), &error);
        let mut lines = Backwards::new(self.file.file(), stand.end);
        let mut rows = Vec::new();
        let mut seen = HashSet::new();
        while rows.len() < self.which.limit
            && let Some(range) = lines.next_line().map_err(cannot)?
            && range.start >= header_end
        {
            let start = range.start;
            let bytes = read(self.file.file(), range).map_err(cannot)?;
            if bytes.starts_with(b"{\"state\":") {
                continue;
            }
            let line: Line<'_> = serde_json::from_slice(&bytes).map_err(|error| self.unreadable(start, &error))?;
            if line.op == "t" {
                break;
            }
            let key = line.key.map_or("", RawValue::get);
            if keyed && !seen.insert(key.to_owned()) {
                continue;
            }
            let asked = self.is_asked_for(key).map_err(|error| self.unreadable(start, &error))?;
            rows.extend(line.row.filter(|_| asked));
            if asked && self.which.key.is_some() {
                break;
            }
        }
        Ok(rows)
    }

    fn is_asked_for(&self, key: &str) -> serde_json::Result<bool> {
        let Some(wanted) = &self.which.key else { return Ok(true) };
        let Fields(columns) = serde_json::from_str(key)?;
        Ok(columns.iter().map(|(_, value)| text(value)).eq(wanted.iter().cloned()))
    }

    fn unreadable(&self, at: u64, error: &serde_json::Error) -> Error {
        let what = format!("{}: the line at byte {at} cannot be read: {error}", self.file.path().display());
        Error::new(Kind::Config, "jsonl-sink-unreadable", what, "restore the file, or copy the table anew into another target")
    }
}

/// A value without the quotes of a text.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn batch(rows: &[Fields], target: &str) -> Result<RecordBatch, Error> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|Fields(fields)| fields) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let columns = names.iter().map(|name| {
        let cell = |Fields(fields): &Fields| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
        let array = column(&rows.iter().map(|row| cell(row).filter(|value| !value.is_null())).collect::<Vec<_>>());
        (Field::new(*name, array.data_type().clone(), true), array)
    });
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|error| {
        Error::new(Kind::Fatal, "jsonl-sink-rows", format!("rows of {target} fit no batch: {error}"), "report this as a bug")
    })
}

/// The narrowest column that holds all cells as they stand in the file.
fn column(cells: &[Option<Json>]) -> ArrayRef {
    fn all<T>(cells: &[Option<Json>], of: impl Fn(&Json) -> Option<T>) -> Option<Vec<Option<T>>> {
        cells.iter().map(|cell| cell.as_ref().map_or(Some(None), |value| of(value).map(Some))).collect()
    }
    let fraction = |value: &Json| value.as_number().filter(|n| n.as_i64().is_none() && n.as_u64().is_none())?.as_f64();
    if cells.iter().all(Option::is_none) {
        return Arc::new(StringArray::from(vec![None::<&str>; cells.len()]));
    }
    if let Some(numbers) = all(cells, Json::as_i64) {
        return Arc::new(Int64Array::from(numbers));
    }
    if let Some(truths) = all(cells, Json::as_bool) {
        return Arc::new(BooleanArray::from(truths));
    }
    if let Some(numbers) = all(cells, fraction) {
        return Arc::new(Float64Array::from(numbers));
    }
    Arc::new(StringArray::from(cells.iter().map(|cell| cell.as_ref().map(text)).collect::<Vec<_>>()))
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(InOrder)
    }
}
