//! The table of options: its rows, and what they make of keys and values.

use serde_json::{Map, Value};
use text::Text;

use crate::end_options::END_ROWS;
use crate::given::TEST_ROWS;
use crate::row::ValuePlace;
use crate::values::ends;
use crate::{EndOptions, Family, OptionError, OptionRow, Program, Role, Spec, TestKind, TestOptions, ValueError};

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static OptionRow> {
    TEST_ROWS.iter().chain(END_ROWS)
}

/// The rows of a test.
pub fn rows_of(test: TestKind) -> impl Iterator<Item = &'static OptionRow> {
    rows().filter(move |row| row.is_of(test))
}

/// The rows of the options that each end has.
pub fn end_rows() -> impl Iterator<Item = &'static OptionRow> {
    END_ROWS.iter()
}

/// The row that a test has for `key`.
#[must_use]
pub fn row(key: &str, test: TestKind) -> Option<&'static OptionRow> {
    rows_of(test).find(|row| row.key == key)
}

/// Whether an option of any test has this key.
#[must_use]
pub fn is_key(key: &str) -> bool {
    rows().any(|row| row.key == key)
}

/// The first option of a spec that the server of `program` would have a part in and does not carry out, in words.
#[must_use]
pub fn uncarried(spec: &Spec, program: Program) -> Option<Text> {
    rows().find_map(|row| row.uncarried(spec, program))
}

/// The end and the name in a key such as `near.sndbuf`.
#[must_use]
pub fn split(key: &str) -> (Option<Role>, &str) {
    match key.split_once('.') {
        Some(("near", name)) => (Some(Role::Active), name),
        Some(("far", name)) => (Some(Role::Passive), name),
        _ => (None, key),
    }
}

impl TestOptions {
    /// None.
    #[must_use]
    pub fn new(test: TestKind) -> Self {
        Self { test, ..Self::default() }
    }

    /// Sets an option from its text. A value of one end replaces what was set for both before.
    ///
    /// # Errors
    /// The test does not have the key, or the key does not take the value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), OptionError> {
        let (end, name) = split(key);
        let Some(row) = row(name, self.test) else {
            let known: Vec<&str> = rows_of(self.test).map(|row| row.key).collect();
            return Err(OptionError::unknown(key, name, known, self.test));
        };
        self.put(row, end, value).map_err(|wrong| match wrong {
            Wrong::End(end) => OptionError::ForBothEnds { key: key.to_owned(), name: name.to_owned(), end },
            Wrong::Value(error) => OptionError::of_value(key, value, error),
        })
    }

    fn put(&mut self, row: &OptionRow, end: Option<Role>, value: &str) -> Result<(), Wrong> {
        match (row.place, end) {
            (ValuePlace::Test { .. }, Some(end)) => Err(Wrong::End(end)),
            (ValuePlace::Test { set, .. }, None) => set(self, value).map_err(Wrong::Value),
            (ValuePlace::End { set, .. }, end) => self.put_at_ends(set, row.is_local, end, value).map_err(Wrong::Value),
        }
    }

    /// Sets an option of one end, or of both: `V`, or `LOCAL,REMOTE`, of which one may be missing. For a local option `V` is `V,`.
    fn put_at_ends(&mut self, set: SetAtEnd, is_local: bool, end: Option<Role>, value: &str) -> Result<(), ValueError> {
        let given = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        let (near, far) = match (end, ends(value)) {
            (None, Some((near, far))) => (given(near), given(far)),
            (None, None) if is_local => (given(value), None),
            _ => (given(value), given(value)),
        };
        match end {
            Some(_) if near.is_none() => {
                return Err(ValueError::NoValue { text: String::new(), remedy: "write one, or omit the key" });
            }
            None if near.is_none() && far.is_none() => {
                let remedy = "write one for both ends, or LOCAL,REMOTE";
                return Err(ValueError::NoValue { text: value.to_owned(), remedy });
            }
            _ => {}
        }
        if end != Some(Role::Passive) {
            set(&mut self.near, near.as_deref())?;
        }
        if end != Some(Role::Active) {
            set(&mut self.far, far.as_deref())?;
        }
        Ok(())
    }

    /// The options of an object such as `{"pattern": "rr", "block": 64, "near": {"sndbuf": "1MiB"}, "far.cc": "bbr"}`.
    ///
    /// # Errors
    /// A key that the test does not have, or a value that the key does not take.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, OptionError> {
        let mut test = TestKind::default();
        if let Some(value) = object.get(TestKind::KEY) {
            let name = scalar(TestKind::KEY, value)?;
            test = TestKind::read(&name).map_err(|error| OptionError::of_value(TestKind::KEY, &name, error))?;
        }
        let mut options = Self::new(test);
        let mut of_ends = Vec::new();
        for (key, value) in object.iter().filter(|(key, _)| *key != TestKind::KEY) {
            match value {
                Value::Object(end) if key == "near" || key == "far" => {
                    of_ends.extend(end.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
                }
                _ if key.contains('.') => of_ends.push((key.clone(), value)),
                _ => options.set(key, &scalar(key, value)?)?,
            }
        }
        // The value of an end replaces the one for both, wherever it is written.
        for (key, value) in of_ends {
            options.set(&key, &scalar(&key, value)?)?;
        }
        Ok(options)
    }

    /// The transport's name.
    #[must_use]
    pub fn transport(&self) -> &str {
        if self.udp { "udp" } else { self.transport.as_deref().unwrap_or("tcp") }
    }

    /// The IP version of the data and of the connections to agents.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::requested(self.ipv4, self.ipv6)
    }
}

type SetAtEnd = fn(&mut EndOptions, Option<&str>) -> Result<(), ValueError>;

/// Why an option was not set.
enum Wrong {
    /// It has one value for both ends.
    End(Role),
    /// It does not take the value.
    Value(ValueError),
}

fn scalar(key: &str, value: &Value) -> Result<String, OptionError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(switch) => Ok(switch.to_string()),
        other => Err(OptionError::of_value(key, &other.to_string(), ValueError::Json)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_port_are_those_of_the_near_end() {
        let set = |values: &[(&str, &str)]| {
            let mut options = TestOptions::new(TestKind::Stream);
            values.iter().for_each(|(key, value)| options.set(key, value).unwrap());
            (options.near.device, options.far.device, options.near.port, options.far.port)
        };
        assert_eq!(set(&[("device", "a"), ("data-port", "7000")]), (Some("a".into()), None, Some(7000), None));
        assert_eq!(set(&[("device", "a,b"), ("data-port", ",7")]), (Some("a".into()), Some("b".into()), None, Some(7)));
        assert_eq!(set(&[("device", "a"), ("far.device", "b")]), (Some("a".into()), Some("b".into()), None, None));
    }

    #[test]
    fn a_wrong_key_or_value_is_named() {
        let set = |key: &str, value: &str| TestOptions::new(TestKind::Rr).set(key, value).unwrap_err().to_string();
        assert_eq!(set("sndbufs", "1"), "thru rr has no 'sndbufs'; did you mean 'sndbuf'?");
        assert!(set("probe", "1").starts_with("thru rr has no 'probe'; "), "{}", set("probe", "1"));
        assert_eq!(set("near.block", "1"), "'block' applies to both ends: omit the near. prefix");
        assert_eq!(set("far.mss", "5"), "far.mss: '5' is not a whole number from 88 to 32767");
        assert_eq!(set("far.mss", " "), "far.mss: '' has no value: write one, or omit the key");
        assert_eq!(set("reverse", "7"), "reverse: '7' is not true or false");
        assert_eq!(set("wait", "x"), "wait: 'x' is not one of auto, blocking, epoll, uring");
        let wrong = TestOptions::new(TestKind::Stream).set("rate", "0").unwrap_err();
        assert_eq!(wrong, OptionError::of_value("rate", "0", ValueError::Zero { text: "0".into() }));
    }
}
