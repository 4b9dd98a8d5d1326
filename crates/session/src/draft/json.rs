//! A JSON object with the keys of a draft.

use serde_json::{Map, Value};

use super::error::FieldError;
use super::spec_draft::{SpecDraft, TestKind};

impl SpecDraft {
    /// The draft of an object such as `{"pattern": "rr", "block": 64, "near": {"sndbuf": "1MiB"}, "far.cc": "bbr"}`.
    ///
    /// # Errors
    /// A key that the pattern does not have, or a value that the key does not take.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, FieldError> {
        let mut pattern = TestKind::default();
        if let Some(value) = object.get(TestKind::KEY) {
            let name = scalar(TestKind::KEY, value)?;
            pattern = TestKind::read(&name).map_err(|what| FieldError::of_value(TestKind::KEY, &name, what))?;
        }
        let mut draft = Self::new(pattern);
        let mut of_ends = Vec::new();
        for (key, value) in object.iter().filter(|(key, _)| *key != TestKind::KEY) {
            match value {
                Value::Object(end) if key == "near" || key == "far" => {
                    of_ends.extend(end.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
                }
                _ if key.contains('.') => of_ends.push((key.clone(), value)),
                _ => draft.set(key, &scalar(key, value)?)?,
            }
        }
        // The value of an end replaces the one for both, wherever it is written.
        for (key, value) in of_ends {
            draft.set(&key, &scalar(&key, value)?)?;
        }
        Ok(draft)
    }
}

fn scalar(key: &str, value: &Value) -> Result<String, FieldError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(switch) => Ok(switch.to_string()),
        other => {
            let what = "write a string, a number, true or false".into();
            Err(FieldError::of_value(key, &other.to_string(), what))
        }
    }
}
