//! The `source` section of a pipeline file, as far as it is this driver's. Names that are not known here are the validator's
//! business; a value of the wrong type is an error.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::registry::Settings;
use contract::{Error, Kind};
use serde_json::Value as Json;

use crate::envelope::{Format, Unit};
use crate::files::Location;
use crate::reader::Behaviour;
use crate::values::{BinaryText, DecimalText, Options};

/// What happens at a line that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDecodeError {
    /// The source stops.
    Fail,
    /// It is counted, logged and passed over.
    Skip,
}

/// All settings of a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceSettings {
    pub(crate) location: Location,
    pub(crate) format: Format,
    pub(crate) behaviour: Behaviour,
    pub(crate) options: Options,
}

impl SourceSettings {
    pub(crate) fn read(settings: &Settings) -> Result<Self, Error> {
        let from = Section(settings);
        let unavailable = from.text("unavailableValue")?.unwrap_or("__debezium_unavailable_value").to_owned();
        Ok(Self {
            location: match from.text("path")? {
                Some(path) if !path.is_empty() => Location::new(path)?,
                _ => return Err(wrong("path", "a file or a glob of change events", "nothing")),
            },
            format: from.word("format", &[("debezium", Format::Debezium), ("record", Format::Record)])?,
            behaviour: Behaviour {
                follow: from.boolean("follow")?,
                on_decode_error: from.word("onDecodeError", &[("fail", OnDecodeError::Fail), ("skip", OnDecodeError::Skip)])?,
                idle: from.duration("transactionIdle")?.unwrap_or(Duration::from_secs(5)),
            },
            options: Options {
                decimals: from.word(
                    "decimals",
                    &[("auto", DecimalText::Auto), ("text", DecimalText::Text), ("base64", DecimalText::Base64)],
                )?,
                binary: from.word(
                    "binary",
                    &[("base64", BinaryText::Base64), ("base64url", BinaryText::Base64Url), ("hex", BinaryText::Hex)],
                )?,
                time_unit: from.word(
                    "timeUnit",
                    &[("none", None), ("ms", Some(Unit::Millis)), ("us", Some(Unit::Micros)), ("ns", Some(Unit::Nanos))],
                )?,
                unavailable_base64: STANDARD.encode(&unavailable),
                unavailable,
            },
        })
    }
}

struct Section<'a>(&'a Settings);

impl<'a> Section<'a> {
    fn value(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", kind(other))),
        }
    }

    fn boolean(&self, name: &str) -> Result<bool, Error> {
        match self.value(name) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(wrong(name, "true or false", kind(other))),
        }
    }

    /// One of some words; the first is the default.
    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Error> {
        let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let Some(text) = self.text(name)? else { return Ok(words[0].1) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| wrong(name, &format!("one of {}", all()), &format!("'{text}'")))
    }

    /// Milliseconds as a number, as the validator gives them, or text such as `5s`, `1m30s`, `500ms`.
    fn duration(&self, name: &str) -> Result<Option<Duration>, Error> {
        let expected = "a duration such as 5s, 1m30s or 500ms";
        match self.value(name) {
            None => Ok(None),
            Some(Json::String(text)) => match duration(text) {
                Some(duration) => Ok(Some(duration)),
                None => Err(wrong(name, expected, &format!("'{text}'"))),
            },
            Some(Json::Number(number)) => match number.as_u64() {
                Some(millis) => Ok(Some(Duration::from_millis(millis))),
                None => Err(wrong(name, expected, "a number that is no whole number of milliseconds")),
            },
            Some(other) => Err(wrong(name, expected, kind(other))),
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let (unit, next) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let part = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?);
        total = total.checked_add(part)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a section",
    }
}

fn wrong(name: &str, expected: &str, found: &str) -> Error {
    Error::new(
        Kind::Config,
        "jsonl-setting",
        format!("source.{name}: expected {expected}, found {found}"),
        format!("correct 'source.{name}' in the pipeline file"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(settings: Json) -> Result<SourceSettings, Error> {
        match settings {
            Json::Object(settings) => SourceSettings::read(&settings),
            _ => unreachable!("settings are an object"),
        }
    }

    #[test]
    fn a_path_is_enough() {
        let settings = read(json!({ "kind": "jsonl", "path": "a.jsonl" })).unwrap();
        assert_eq!(settings.location.text(), "a.jsonl");
        assert_eq!(settings.format, Format::Debezium);
        assert!(!settings.behaviour.follow);
        assert_eq!(settings.behaviour.on_decode_error, OnDecodeError::Fail);
        assert_eq!(settings.behaviour.idle, Duration::from_secs(5));
        assert_eq!(settings.options.decimals, DecimalText::Auto);
        assert_eq!(settings.options.binary, BinaryText::Base64);
        assert_eq!(settings.options.time_unit, None);
        assert_eq!(settings.options.unavailable, "__debezium_unavailable_value");
        assert_eq!(settings.options.unavailable_base64, "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==");
    }

    #[test]
    fn all_settings_are_taken() {
        let settings = read(json!({
            "path": "a.jsonl", "follow": true, "format": "record", "onDecodeError": "skip", "transactionIdle": "1m30s",
            "decimals": "base64", "binary": "hex", "timeUnit": "us", "unavailableValue": "__gone__",
        }))
        .unwrap();
        assert_eq!(settings.format, Format::Record);
        assert!(settings.behaviour.follow);
        assert_eq!(settings.behaviour.on_decode_error, OnDecodeError::Skip);
        assert_eq!(settings.behaviour.idle, Duration::from_secs(90));
        assert_eq!(settings.options.decimals, DecimalText::Base64);
        assert_eq!(settings.options.binary, BinaryText::Hex);
        assert_eq!(settings.options.time_unit, Some(Unit::Micros));
        assert_eq!(settings.options.unavailable, "__gone__");
    }

    #[test]
    fn durations_are_text_or_milliseconds() {
        for (given, expected) in [(json!("500ms"), 500), (json!("2h"), 7_200_000), (json!(250), 250), (json!("0s"), 0)] {
            let settings = read(json!({ "path": "a", "transactionIdle": given })).unwrap();
            assert_eq!(settings.behaviour.idle, Duration::from_millis(expected));
        }
    }

    #[test]
    fn a_wrong_setting_is_named_with_what_is_accepted() {
        for (settings, said) in [
            (json!({}), "source.path: expected a file or a glob of change events, found nothing"),
            (json!({ "path": 5 }), "source.path: expected a string, found a number"),
            (json!({ "path": "a", "follow": "yes" }), "source.follow: expected true or false, found a string"),
            (json!({ "path": "a", "format": "avro" }), "source.format: expected one of debezium, record, found 'avro'"),
            (json!({ "path": "a", "onDecodeError": [] }), "source.onDecodeError: expected a string, found a list"),
            (
                json!({ "path": "a", "transactionIdle": "5 parsecs" }),
                "source.transactionIdle: expected a duration such as 5s, 1m30s or 500ms, found '5 parsecs'",
            ),
            (
                json!({ "path": "a", "transactionIdle": -1 }),
                "source.transactionIdle: expected a duration such as 5s, 1m30s or 500ms, found a number that is no whole number of milliseconds",
            ),
            (json!({ "path": "a", "timeUnit": "days" }), "source.timeUnit: expected one of none, ms, us, ns, found 'days'"),
        ] {
            let error = read(settings).unwrap_err();
            assert_eq!((error.kind, error.code, error.what.as_str()), (Kind::Config, "jsonl-setting", said));
        }
        let error = read(json!({ "path": "changes/[.jsonl" })).unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "jsonl-path"));
    }
}
