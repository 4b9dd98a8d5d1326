//! What the two ends of a measurement do with a connection.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the two ends of a measurement do with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    // In the order of the names, in which lists of patterns are sorted.
    /// Connect, request, response, close: a connection for each transaction.
    Crr,
    /// A block to the far end and back; in both directions both ends send at the same time.
    Pingpong,
    /// Request and response over one connection.
    Rr,
    /// Blocks in one direction, or in both over two connections for each flow, until a time, a count or a number of bytes.
    Stream,
    /// Exactly as many blocks as requested, shared by the flows.
    Transfer,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 5] = [Self::Crr, Self::Pingpong, Self::Rr, Self::Stream, Self::Transfer];

    /// Its name in documents and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pingpong => "pingpong",
            Self::Stream => "stream",
            Self::Rr => "rr",
            Self::Crr => "crr",
            Self::Transfer => "transfer",
        }
    }

    /// Whether payload flows without an answer for each block.
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        match self {
            Self::Stream | Self::Transfer => true,
            Self::Pingpong | Self::Rr | Self::Crr => false,
        }
    }

    /// Whether it makes transactions: a request, and a response of a size of its own.
    #[must_use]
    pub const fn is_transactions(self) -> bool {
        match self {
            Self::Rr | Self::Crr => true,
            Self::Pingpong | Self::Stream | Self::Transfer => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_name_of_a_pattern() {
        for pattern in Pattern::ALL {
            let text = serde_json::to_string(&pattern).unwrap();
            assert_eq!(text, format!("\"{pattern}\""));
            assert_eq!(serde_json::from_str::<Pattern>(&text).unwrap(), pattern);
        }
        assert!(serde_json::from_str::<Pattern>("\"curve\"").is_err());
    }
}
