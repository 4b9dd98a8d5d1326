//! Problems of nttcp's protocol.

use text::Said;
use thiserror::Error;

use crate::excerpt::excerpt;

/// Longest part of a peer's text in a message, characters.
const SHOWN: usize = 60;

/// An invalid or unsupported value of nttcp, or the other side's failure.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum NttcpError {
    /// A line of options without a field.
    #[error("an empty line for options")]
    NoOptions,
    /// A field that is not an option.
    #[error("'{}' for an option", excerpt(text, SHOWN))]
    NotAnOption {
        /// As received.
        text: String,
    },
    /// An option that a remote side does not have.
    #[error("-{}, which is not an option of a remote side", option.escape_debug())]
    UnknownOption {
        /// Its letter.
        option: char,
    },
    /// An option without its value.
    #[error("-{} without its value", option.escape_debug())]
    NoValue {
        /// Its letter.
        option: char,
    },
    /// A value that is not a number, or out of its limits.
    #[error("-{option} '{}', which is not from {least} to below {limit}", excerpt(text, SHOWN))]
    Number {
        /// The option's letter.
        option: char,
        /// As received.
        text: String,
        /// The least.
        least: u64,
        /// The first number above the largest.
        limit: u64,
    },
    /// Multicast.
    #[error("-m, multicast, which is not spoken")]
    Multicast,
    /// The option -R.
    #[error("-R, which measures no transfer")]
    NoTransfer,
    /// More or larger buffers than nttcp has, or none.
    #[error("{count} buffers of {bytes} bytes")]
    Buffers {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// A pattern without a seed.
    #[error("an empty seed")]
    EmptySeed,
    /// A format with a `%` that no value follows.
    #[error("no value after % in '{}'", excerpt(format, SHOWN))]
    Format {
        /// As received.
        format: String,
    },
    /// The other side has no data socket.
    #[error("no data socket at the other end (dataport: {port})")]
    NoDataSocket {
        /// What it sent for its port.
        port: String,
    },
    /// More verbose output than is read.
    #[error("more than {limit} bytes of verbose output")]
    Verbose {
        /// The most that is read.
        limit: usize,
    },
    /// Options that are too long for a line, or contain its end.
    #[error("{bytes} bytes do not fit into a line")]
    OptionsTooLong {
        /// Bytes of the line.
        bytes: usize,
    },
    /// The driver opened a data socket out of turn.
    #[error("no data socket was requested")]
    NotRequested,
    /// The remote side ended without a word.
    #[error("it closed the connection")]
    Closed,
    /// The remote side ended after a last word.
    #[error("'{}', and closed the connection", line.escape_debug())]
    ClosedAfter {
        /// Its last line.
        line: String,
    },
}
