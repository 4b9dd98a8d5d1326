//! Problems of iperf 2's protocol.

use text::Said;
use thiserror::Error;

/// An invalid or unsupported value of iperf 2.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum Iperf2Error {
    /// The client requests the tests of version 1 in both directions.
    #[error("tests in both directions (-d, -r) are not supported")]
    BothDirections,
    /// A number that is not a port.
    #[error("{port} is not a port")]
    Port {
        /// As received.
        port: u32,
    },
    /// Too many connections, none, or writes that are too large.
    #[error("{threads} connections with writes of {bytes} bytes are outside the limits")]
    Size {
        /// Connections.
        threads: u32,
        /// Bytes of a write.
        bytes: u32,
    },
    /// A datagram that is too short for a report.
    #[error("a datagram has {bytes} bytes; a report has at least {least}")]
    ShortReport {
        /// Its length.
        bytes: usize,
        /// Bytes of the shortest report.
        least: usize,
    },
    /// A datagram without the mark of a report.
    #[error("a datagram is not a report")]
    NoReport,
    /// A time that cannot be.
    #[error("the microseconds of a time exceed a second")]
    Time,
    /// The host reports that the port of the datagrams is closed.
    #[error("nothing receives datagrams at its port: it has ended, or was not started with -s -u")]
    NoReceiver,
}
