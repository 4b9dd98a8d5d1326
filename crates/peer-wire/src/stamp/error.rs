//! Problems of STAMP's datagrams.

use text::Said;
use thiserror::Error;

/// A datagram of STAMP or TWAMP Light that cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum StampError {
    /// A received datagram that is too short.
    #[error("a packet has {bytes} bytes; the minimum is {least}")]
    Short {
        /// Its length.
        bytes: usize,
        /// Bytes of the shortest.
        least: usize,
    },
    /// No room for a datagram to send.
    #[error("{bytes} bytes are too few; the packet needs {needed}")]
    NoRoom {
        /// The room.
        bytes: usize,
        /// What the datagram takes.
        needed: usize,
    },
    /// Timestamps in PTP's format.
    #[error("PTP timestamps are not supported, only NTP")]
    Ptp,
}
