//! As much of JSON Schema as our schema uses. A keyword that it does not know is a panic, so that nothing is passed over.

use regex::Regex;
use serde_json::{Map, Value};

/// Where the value breaks the schema, as paths with keywords.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Checker { root: schema }.check(schema, value, "", &mut faults);
    faults
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn holds(&self, schema: &Value, value: &Value) -> bool {
        let mut faults = Vec::new();
        self.check(schema, value, "", &mut faults);
        faults.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
        let schema = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return faults.push(format!("{path}: false")),
            Value::Object(schema) => schema,
            other => panic!("{other} is no schema"),
        };
        for (keyword, says) in schema {
            if !self.keyword(schema, keyword, says, value, path, faults) {
                faults.push(format!("{path}: {keyword}"));
            }
        }
    }

    fn keyword(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        says: &Value,
        value: &Value,
        path: &str,
        faults: &mut Vec<String>,
    ) -> bool {
        let number = |says: &Value| says.as_f64().unwrap();
        let count = |says: &Value| usize::try_from(says.as_u64().unwrap()).unwrap();
        match keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" | "then" => true,
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                self.check(&self.root["$defs"][name], value, path, faults);
                true
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|one| is_of_type(value, one.as_str().unwrap())),
                one => is_of_type(value, one.as_str().unwrap()),
            },
            "enum" => says.as_array().unwrap().contains(value),
            "const" => says == value,
            "minimum" => value.as_f64().is_none_or(|value| value >= number(says)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(says)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= count(says)),
            "pattern" => value.as_str().is_none_or(|text| Regex::new(says.as_str().unwrap()).unwrap().is_match(text)),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= count(says)),
            "minProperties" => value.as_object().is_none_or(|object| object.len() >= count(says)),
            "maxProperties" => value.as_object().is_none_or(|object| object.len() <= count(says)),
            "required" => value
                .as_object()
                .is_none_or(|object| says.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(says, item, &format!("{path}[{index}]"), faults);
                }
                true
            }
            "properties" => {
                for (name, schema) in says.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        self.check(schema, value, &format!("{path}.{name}"), faults);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (name, value) in value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)))
                {
                    self.check(says, value, &format!("{path}.{name}"), faults);
                }
                true
            }
            "anyOf" => says.as_array().unwrap().iter().any(|schema| self.holds(schema, value)),
            "allOf" => {
                says.as_array().unwrap().iter().for_each(|schema| self.check(schema, value, path, faults));
                true
            }
            "not" => !self.holds(says, value),
            "if" => {
                if self.holds(says, value) {
                    self.check(&schema["then"], value, path, faults);
                }
                true
            }
            unknown => panic!("the keyword {unknown} is not known here"),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        unknown => panic!("the type {unknown} is not known here"),
    }
}
