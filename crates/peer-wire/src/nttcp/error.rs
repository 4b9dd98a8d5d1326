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
    #[error("the line of options is empty")]
    NoOptions,
    /// A field that is not an option.
    #[error("'{}' is not an option", excerpt(text, SHOWN))]
    NotAnOption {
        /// As received.
        text: String,
    },
    /// An option that a remote side does not have.
    #[error("a remote side has no option -{}", option.escape_debug())]
    UnknownOption {
        /// Its letter.
        option: char,
    },
    /// An option without its value.
    #[error("-{} needs a value", option.escape_debug())]
    NoValue {
        /// Its letter.
        option: char,
    },
    /// A value that is not a number, or out of its limits.
    #[error("-{option} '{}' is not at least {least} and below {limit}", excerpt(text, SHOWN))]
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
    #[error("-m (multicast) is not supported")]
    Multicast,
    /// The option -R.
    #[error("-R is not supported: it measures no transfer")]
    NoTransfer,
    /// More or larger buffers than nttcp has, or none.
    #[error("{count} buffers of {bytes} bytes are outside its limits")]
    Buffers {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// A pattern without a seed.
    #[error("the seed is empty")]
    EmptySeed,
    /// A format with a `%` that no value follows.
    #[error("no value after % in '{}'", excerpt(format, SHOWN))]
    Format {
        /// As received.
        format: String,
    },
    /// The other side has no data socket.
    #[error("the other end has no data socket (dataport: {port})")]
    NoDataSocket {
        /// What it sent for its port.
        port: String,
    },
    /// More verbose output than is read.
    #[error("the verbose output is longer than {limit} bytes")]
    Verbose {
        /// The most that is read.
        limit: usize,
    },
    /// Options that are too long for a line, or contain its end.
    #[error("{bytes} bytes do not fit on a line")]
    OptionsTooLong {
        /// Bytes of the line.
        bytes: usize,
    },
    /// The driver opened a data socket out of turn.
    #[error("no data socket was requested")]
    NotRequested,
    /// The remote side closed the connection without a message.
    #[error("it closed the connection")]
    Closed,
    /// The remote side closed the connection after a last line.
    #[error("it sent '{}' and closed the connection", line.escape_debug())]
    ClosedAfter {
        /// Its last line.
        line: String,
    },
}
