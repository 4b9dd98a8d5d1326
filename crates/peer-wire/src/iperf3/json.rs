//! JSON as iperf3 reads and writes it (cJSON): all numbers are doubles, and a value of the wrong type counts as
//! absent.

use serde_json::{Map, Value};

/// A whole number, cut off at the ends of its range.
pub(super) fn whole(map: &Map<String, Value>, key: &str) -> Option<i64> {
    let number = map.get(key)?;
    number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))
}

/// A flag: some are `true`, some are 1.
pub(super) fn flag(map: &Map<String, Value>, key: &str) -> bool {
    match map.get(key) {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        _ => false,
    }
}

pub(super) fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key)?.as_str().map(str::to_owned)
}

/// Writes an object key by key, in the order of the calls, without spaces: the same bytes as iperf3.
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    pub(super) fn value(&mut self, key: &str, value: impl Into<Value>) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{key}\":{}", value.into()));
    }

    /// The key, if there is a value.
    pub(super) fn option(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.value(key, value);
        }
    }

    /// `true`, or no key.
    pub(super) fn truth(&mut self, key: &str, holds: bool) {
        self.option(key, holds.then_some(true));
    }

    /// 1, or no key.
    pub(super) fn one(&mut self, key: &str, holds: bool) {
        self.option(key, holds.then_some(1));
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.push('}');
        self.0.into_bytes()
    }
}
