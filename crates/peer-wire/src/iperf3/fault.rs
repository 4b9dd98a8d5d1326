//! iperf3's own error numbers.

use text::Said;
use thiserror::Error;

/// A reason that iperf3's server gives with SERVER_ERROR. The discriminants are those of `iperf_api.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum ServerFault {
    /// A duration that is not allowed.
    #[error("the duration is not allowed")]
    Duration = 5,
    /// Too many streams, or none.
    #[error("the number of streams is not allowed")]
    Streams = 6,
    /// A TCP block size that is not allowed.
    #[error("the block size is not allowed")]
    BlockSize = 7,
    /// A socket buffer that is not allowed.
    #[error("the socket buffer size is not allowed")]
    Buffer = 8,
    /// A segment size that is not allowed.
    #[error("the segment size is not allowed")]
    Mss = 10,
    /// An omitted time that is not allowed.
    #[error("the omitted time is not allowed")]
    Omit = 12,
    /// A burst that is not allowed.
    #[error("the burst is not allowed")]
    Burst = 15,
    /// A UDP block size that is not allowed.
    #[error("the UDP block size is not allowed")]
    UdpBlockSize = 20,
    /// More than the server's limit of the total rate.
    #[error("the total rate is above the server's limit")]
    Rate = 27,
    /// Longer than the server allows.
    #[error("the duration is above the server's limit")]
    TooLong = 37,
    /// Parameters that cannot be understood.
    #[error("the parameters cannot be understood")]
    Parameters = 114,
    /// Results that cannot be understood.
    #[error("the results cannot be understood")]
    Results = 117,
    /// The congestion control is not available.
    #[error("the congestion control is not available")]
    Congestion = 134,
    /// Name, password or time of the login are not right.
    #[error(
        "the login was refused: check `--username`, the password, `--rsa-public-key-path`, `--use-pkcs1-padding` and both clocks"
    )]
    Authorisation = 142,
    /// No data arrived for too long.
    #[error("no data arrived")]
    NoData = 144,
    /// The test took longer than requested.
    #[error("the test ran beyond its end")]
    Expired = 160,
}

impl ServerFault {
    const ALL: [Self; 16] = [
        Self::Duration,
        Self::Streams,
        Self::BlockSize,
        Self::Buffer,
        Self::Mss,
        Self::Omit,
        Self::Burst,
        Self::UdpBlockSize,
        Self::Rate,
        Self::TooLong,
        Self::Parameters,
        Self::Results,
        Self::Congestion,
        Self::Authorisation,
        Self::NoData,
        Self::Expired,
    ];

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The fault with this number, if known.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.number() == number)
    }
}
