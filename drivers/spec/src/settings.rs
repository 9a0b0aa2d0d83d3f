//! The part of a pipeline file that is a driver's own, with its secrets held so that nothing prints them by accident.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value as Json};

use crate::value::{Section, Shadowed, Value};

/// A driver's section: `source` or `sink`, without its kind, all defaults filled in.
///
/// Durations are whole milliseconds and sizes are bytes, both as numbers, so that a driver needs no parser for them.
/// Names are those of the file. `Debug` and `Display` print [`Settings::shown`].
#[derive(Clone, Default)]
pub struct Settings {
    values: BTreeMap<String, Setting>,
}

#[derive(Clone)]
enum Setting {
    Open(Json),
    Hidden { value: SecretString, shown: String },
    Section(Settings),
    List(Vec<Setting>),
}

impl Settings {
    /// Everything, the secrets in clear text: what a driver is opened with, and for nothing else. Nobody keeps it, logs
    /// it or puts it into an error.
    pub fn expose(&self) -> Map<String, Json> {
        self.json(|value, _| value.expose_secret().to_owned())
    }

    /// Everything as it may be shown: a secret as `***`, an address without its password, and a value from outside of the
    /// file as what the file says (`${env:NAME}`).
    pub fn shown(&self) -> Map<String, Json> {
        self.json(|_, shown| shown.to_owned())
    }

    fn json(&self, secret: impl Fn(&SecretString, &str) -> String + Copy) -> Map<String, Json> {
        self.values.iter().map(|(name, setting)| (name.clone(), setting.json(secret))).collect()
    }

    /// Sets a value that is no secret.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), Setting::Open(Json::from(value)));
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }
}

impl Setting {
    fn json(&self, secret: impl Fn(&SecretString, &str) -> String + Copy) -> Json {
        match self {
            Setting::Open(value) => value.clone(),
            Setting::Hidden { value, shown } => Json::String(secret(value, shown)),
            Setting::Section(section) => Json::Object(section.json(secret)),
            Setting::List(items) => items.iter().map(|item| item.json(secret)).collect(),
        }
    }
}

impl From<&Section> for Settings {
    fn from(section: &Section) -> Self {
        let values = section.entries.iter().filter_map(|entry| Some((entry.field.name.to_owned(), setting(&entry.value)?)));
        Self { values: values.collect() }
    }
}

/// What becomes of a value. `None` for what no driver's section holds, and for what could not be read.
fn setting(value: &Value) -> Option<Setting> {
    Some(match value {
        Value::Text(text) => text_setting(text),
        Value::Bool(value) => Setting::Open(Json::from(*value)),
        Value::Number(value) => Setting::Open(Json::from(*value)),
        Value::Duration(value) => Setting::Open(Json::from(value.as_millis())),
        Value::Size(value) => Setting::Open(Json::from(value.bytes())),
        Value::Word(word) => Setting::Open(Json::from(*word)),
        Value::ColumnType(column_type) => Setting::Open(Json::from(column_type.as_str())),
        Value::Section(section) => Setting::Section(Settings::from(section)),
        Value::Names(names) => Setting::List(names.iter().map(|name| text_setting(&name.value)).collect()),
        Value::Texts(texts) => {
            let values = texts.iter().map(|(name, text)| (name.clone(), text_setting(text))).collect();
            Setting::Section(Settings { values })
        }
        Value::Sections(_) | Value::Casts(_) | Value::Filter(_) | Value::Filters(_) | Value::Literal(..) | Value::Broken => {
            return None;
        }
    })
}

fn text_setting(text: &Shadowed) -> Setting {
    match &text.shown {
        None => Setting::Open(Json::from(text.text.as_str())),
        Some(shown) => Setting::Hidden { value: SecretString::from(text.text.as_str()), shown: shown.clone() },
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Json::Object(self.shown()))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
