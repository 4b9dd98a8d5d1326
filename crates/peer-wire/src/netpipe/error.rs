//! Problems of NetPIPE's protocol.

use text::Said;
use thiserror::Error;

/// A wrong mark or message of NetPIPE, or a driver's call out of turn.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum NetpipeError {
    /// Something else than the mark that was due.
    #[error("expected \"{}\", received \"{}\"", expected.escape_ascii(), received.escape_ascii())]
    Mark {
        /// The mark.
        expected: &'static [u8],
        /// As many bytes of what came.
        received: Vec<u8>,
    },
    /// A message that answers none.
    #[error("received a message before one was sent: NPtcp was started with -2")]
    Unasked,
    /// A trial of nothing.
    #[error("received a repeat count of 0")]
    NoRepeats,
    /// A message whose numbers are wrong.
    #[error("a message of {bytes} bytes is corrupt at byte {at}")]
    Differs {
        /// Its length.
        bytes: usize,
        /// The offset of the first wrong number.
        at: usize,
    },
    /// The driver reported an exchange that was not requested.
    #[error("no exchange was requested")]
    NoExchangeDue,
    /// The driver reported a new connection that was not requested.
    #[error("no new connection was requested")]
    NoConnectionDue,
}
