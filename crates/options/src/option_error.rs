//! What is wrong with an option.

use text::{Said, Text};
use thiserror::Error;

use crate::{Role, TestKind, unknown};

/// An option that cannot be as it is.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum OptionError {
    /// A key that the test does not have.
    #[error("{}", unknown(name, known, &format!("thru {}", test.name())))]
    Unknown {
        /// The key as it was given.
        key: String,
        /// The key without its end.
        name: String,
        /// The keys that the test has.
        known: Vec<&'static str>,
        /// The test.
        test: TestKind,
    },
    /// A value of one end for an option that has one value for both.
    #[error("'{name}' applies to both ends: omit the {}. prefix", word(*end))]
    ForBothEnds {
        /// The key as it was given.
        key: String,
        /// The key without its end.
        name: String,
        /// The end.
        end: Role,
    },
    /// A value that the key does not take.
    #[error("{key}: {}", what.plain())]
    Value {
        /// The key, such as `sndbuf` or `near.sndbuf`.
        key: String,
        /// The value as it was given.
        value: String,
        /// What is wrong with it, with the remedy.
        what: Text,
    },
    /// An option that the other options, the transport or the hosts do not allow.
    #[error("{}", what.plain())]
    Combination {
        /// The key that has to change.
        key: String,
        /// What is wrong, with the remedy.
        what: Text,
    },
}

impl OptionError {
    /// A value that the key does not take.
    pub fn of_value(key: &str, value: &str, error: impl Said) -> Self {
        Self::Value { key: key.to_owned(), value: value.to_owned(), what: error.say() }
    }

    /// An option that cannot be combined with the others.
    pub fn of_key(key: &str, what: Text) -> Self {
        Self::Combination { key: key.to_owned(), what }
    }

    pub(crate) fn unknown(key: &str, name: &str, known: Vec<&'static str>, test: TestKind) -> Self {
        Self::Unknown { key: key.to_owned(), name: name.to_owned(), known, test }
    }

    /// The key that it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Unknown { key, .. }
            | Self::ForBothEnds { key, .. }
            | Self::Value { key, .. }
            | Self::Combination { key, .. } => key,
        }
    }

    /// The value, if the value alone is wrong.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        if let Self::Value { value, .. } = self { Some(value) } else { None }
    }

    /// What is wrong, with the remedy. Does not repeat the key of a wrong value.
    #[must_use]
    pub fn what(&self) -> Text {
        match self {
            Self::Value { what, .. } | Self::Combination { what, .. } => what.clone(),
            other => other.to_string().into(),
        }
    }
}

impl Said for OptionError {
    fn say(&self) -> Text {
        match self {
            Self::Value { key, what, .. } => text::say!("{key}: {what}"),
            other => other.what(),
        }
    }
}

/// What keys call an end.
fn word(end: Role) -> &'static str {
    match end {
        Role::Active => "near",
        Role::Passive => "far",
    }
}
