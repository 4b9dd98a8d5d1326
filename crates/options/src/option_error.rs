//! What is wrong with an option.

use std::error::Error;
use std::fmt;

/// An option that cannot be as it is. Options are named by their keys in backticks, so that each caller can spell them in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    /// The key, such as `sndbuf` or `near.sndbuf`.
    pub key: String,
    /// The value, if the value alone is wrong; `None` for a wrong key or combination.
    pub value: Option<String>,
    /// What is wrong, with the remedy. Names the key unless `value` is given.
    pub what: String,
}

impl OptionError {
    /// A value that the key does not take.
    pub fn of_value(key: &str, value: &str, what: String) -> Self {
        Self { key: key.to_owned(), value: Some(value.to_owned()), what }
    }

    /// A wrong key, or one that cannot be combined with the others.
    pub fn of_key(key: &str, what: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: None, what: what.into() }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_some() { write!(f, "{}: {}", self.key, self.what) } else { f.write_str(&self.what) }
    }
}

impl Error for OptionError {}
