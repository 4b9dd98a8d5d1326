//! What a run is.

use std::fmt;

use options::TestKind;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run is: the command that measured it, or what an imported file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Goodput.
    #[default]
    Stream,
    /// Transactions, or round trips of an imported file.
    Rr,
    /// The time of a fixed amount.
    Transfer,
    /// All block sizes.
    Curve,
    /// What a path carries in each direction, how long its queues become, and what it loses.
    Check,
    /// Two settings compared in pairs of trials.
    Ab,
    /// A search for settings.
    Advise,
    /// A plan.
    Run,
    /// A plan whose hosts are a sample of many, not levels that somebody chose.
    Mesh,
    /// What an imported file has of a host without a measurement.
    Environment,
    /// What an imported file has of a path without a measurement.
    Path,
}

impl From<TestKind> for RunKind {
    /// What a run of a test is.
    fn from(test: TestKind) -> Self {
        match test {
            TestKind::Stream => Self::Stream,
            TestKind::Rr => Self::Rr,
            TestKind::Transfer => Self::Transfer,
            TestKind::Curve => Self::Curve,
        }
    }
}

impl RunKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Stream,
        Self::Rr,
        Self::Transfer,
        Self::Curve,
        Self::Check,
        Self::Ab,
        Self::Advise,
        Self::Run,
        Self::Mesh,
        Self::Environment,
        Self::Path,
    ];

    /// Its name in documents and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Rr => "rr",
            Self::Transfer => "transfer",
            Self::Curve => "curve",
            Self::Check => "check",
            Self::Ab => "ab",
            Self::Advise => "advise",
            Self::Run => "run",
            Self::Mesh => "mesh",
            Self::Environment => "environment",
            Self::Path => "path",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_name_of_a_kind() {
        for kind in RunKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(RunKind::of(kind.name()), Some(kind));
        }
        assert_eq!(RunKind::of("profile"), None);
    }
}
