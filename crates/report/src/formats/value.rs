//! A value of a table, with its type.

use options::SpecValue;

use crate::labels;

/// A value of a table. What was not measured is no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A name or a sentence.
    Text(String),
    /// A count, or a number of bytes or nanoseconds.
    Count(u64),
    /// Any other number; finite.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Wall-clock time, ns since the Unix epoch.
    Time(u64),
}

impl Value {
    /// As text: numbers are the shortest decimals that read back as the same number, times follow RFC 3339.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Count(count) => count.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Flag(is) => is.to_string(),
            Self::Time(unix_ns) => labels::when_rfc3339(unix_ns),
        }
    }
}

impl From<SpecValue> for Value {
    fn from(value: SpecValue) -> Self {
        match value {
            SpecValue::Count(count) => Self::Count(count),
            SpecValue::Flag(is) => Self::Flag(is),
            SpecValue::Name(name) => Self::Text(name),
        }
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// A text; an empty one is no value.
pub(super) fn text(text: impl AsRef<str>) -> Option<Value> {
    let text = text.as_ref();
    (!text.is_empty()).then(|| Value::Text(text.to_owned()))
}

/// A count.
pub(super) fn count(count: impl Into<u64>) -> Option<Value> {
    Some(Value::Count(count.into()))
}

/// A number; none if it is not finite.
pub(super) fn number(number: Option<f64>) -> Option<Value> {
    number.filter(|number| number.is_finite()).map(Value::Number)
}
