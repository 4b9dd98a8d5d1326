//! Problems of nuttcp's protocol.

use text::Said;
use thiserror::Error;

use crate::excerpt::excerpt;

/// Longest part of a peer's text in a message, characters.
const SHOWN: usize = 80;

/// An invalid or unsupported value of nuttcp, or the server's refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum NuttcpError {
    /// Something else than a greeting.
    #[error("expected a greeting, received '{}'", excerpt(line, SHOWN))]
    Greeting {
        /// The line that came.
        line: String,
    },
    /// The server refused the test.
    #[error("the server refused: '{}'", excerpt(line, SHOWN))]
    Refused {
        /// What it sent.
        line: String,
    },
    /// A report that is too long.
    #[error("the report is longer than {limit} bytes")]
    ReportTooLong {
        /// The most that is read.
        limit: usize,
    },
    /// A field of the options is missing.
    #[error("{key} is missing")]
    Missing {
        /// The field.
        key: &'static str,
    },
    /// A value that is not a whole number, or out of its limits.
    #[error("{key} = {}; the limits are {least} to {most}", excerpt(text, SHOWN))]
    Number {
        /// The field.
        key: &'static str,
        /// As received.
        text: String,
        /// The least.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A value that is not a time, or too long.
    #[error("{key} = {} is not a time of up to a day", excerpt(text, SHOWN))]
    Time {
        /// The field.
        key: &'static str,
        /// As received.
        text: String,
    },
    /// A test without an end.
    #[error("the test has neither a count nor a time")]
    Endless,
    /// An option that is not supported.
    #[error("{key} = {} is not supported", excerpt(text, SHOWN))]
    Unsupported {
        /// The field.
        key: &'static str,
        /// As received.
        text: String,
    },
}
