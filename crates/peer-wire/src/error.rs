//! Errors in a peer's messages.

use text::Said;
use thiserror::Error;

use crate::iperf2::Iperf2Error;
use crate::iperf3::Iperf3Error;
use crate::netperf::NetperfError;
use crate::netpipe::NetpipeError;
use crate::nttcp::NttcpError;
use crate::nuttcp::NuttcpError;
use crate::stamp::StampError;

/// A session that cannot continue: the program, the step and the error.
#[derive(Debug, Error, Said)]
#[error("{peer}, {step}: {what}")]
pub struct WireError {
    /// The peer's program, by the name of its [`crate::Peer`].
    pub peer: &'static str,
    /// The step of the session, as "while reading the parameters".
    pub step: &'static str,
    /// The error, with the received value.
    pub what: WireProblem,
}

/// Why a session cannot continue.
#[derive(Debug, Error, Said)]
#[non_exhaustive]
pub enum WireProblem {
    /// Bytes that arrived out of turn.
    #[error("received {bytes} unexpected bytes")]
    Unexpected {
        /// How many.
        bytes: usize,
    },
    /// A message with an announced length above the limit.
    #[error("a message has {bytes} bytes; the limit is {limit}")]
    MessageTooLong {
        /// The announced length.
        bytes: usize,
        /// The longest that is read, bytes.
        limit: usize,
    },
    /// A line above the limit.
    #[error("a line is longer than {limit} bytes")]
    LineTooLong {
        /// The longest that is read, bytes.
        limit: usize,
    },
    /// The connection ended before the session was complete.
    #[error("the {end} closed the connection")]
    Closed {
        /// The other end: "server", "client", "peer", "remote side", "local side".
        end: &'static str,
    },
    /// The connection ended within a message.
    #[error("the connection ended after {have} of {of} bytes")]
    CutOff {
        /// Bytes that arrived.
        have: usize,
        /// Bytes of the message.
        of: usize,
    },
    /// The driver let the server speak out of turn.
    #[error("it is not the server's turn")]
    NotServersTurn,
    /// The driver reported counts of data that never flowed.
    #[error("there is nothing to count")]
    NothingToCount,
    /// A problem of iperf 2's protocol.
    #[error(transparent)]
    Iperf2(#[from] Iperf2Error),
    /// A problem of iperf3's protocol.
    #[error(transparent)]
    Iperf3(#[from] Iperf3Error),
    /// A problem of netperf's protocol.
    #[error(transparent)]
    Netperf(#[from] NetperfError),
    /// A problem of NetPIPE's protocol.
    #[error(transparent)]
    Netpipe(#[from] NetpipeError),
    /// A problem of nttcp's protocol.
    #[error(transparent)]
    Nttcp(#[from] NttcpError),
    /// A problem of nuttcp's protocol.
    #[error(transparent)]
    Nuttcp(#[from] NuttcpError),
    /// A problem of STAMP's datagrams.
    #[error(transparent)]
    Stamp(#[from] StampError),
}
