//! Problems of netperf's protocol.

use text::Said;
use thiserror::Error;

/// netserver's error number for a request that it does not know.
pub const NOT_SUPPORTED: u32 = 998;

/// An invalid or unsupported value of netperf, or the server's refusal.
#[derive(Debug, Clone, PartialEq, Error, Said)]
#[non_exhaustive]
pub enum NetperfError {
    /// A size that cannot be.
    #[error("{what} of {bytes} bytes; the limit is {limit}")]
    Size {
        /// As "a send buffer".
        what: &'static str,
        /// As received.
        bytes: i32,
        /// The largest.
        limit: i32,
    },
    /// A ring that cannot be.
    #[error("a ring of {buffers} buffers; the limit is {limit}")]
    Ring {
        /// As received.
        buffers: i32,
        /// The most.
        limit: i32,
    },
    /// A number that is not a port.
    #[error("{port} is not a port")]
    Port {
        /// As received.
        port: u32,
    },
    /// An address family that is not supported.
    #[error("address family {family}; only IPv4 and IPv6 are supported")]
    Family {
        /// netperf's number of it.
        family: u32,
    },
    /// A kind of socket that is not supported.
    #[error("socket type {socket} with IP protocol {protocol}; only TCP and UDP are supported")]
    Socket {
        /// netperf's number of the type.
        socket: u32,
        /// IP's number.
        protocol: u32,
    },
    /// An unknown direction.
    #[error("unknown direction {bits}")]
    Direction {
        /// As received.
        bits: u32,
    },
    /// A time or a share that cannot be.
    #[error("invalid number {number}")]
    Number {
        /// As received.
        number: f32,
    },
    /// A request that is not supported.
    #[error("unknown request {number}; only OMNI tests (97) and TCP_STREAM (10) are supported")]
    OmniRequest {
        /// Its number.
        number: u32,
    },
    /// The server refused because it does not know the test.
    #[error("the server does not know this test (error {})", NOT_SUPPORTED)]
    NotKnown,
    /// The server refused for another reason.
    #[error("the server refused with error {number}")]
    Refused {
        /// An error number of its system.
        number: u32,
    },
    /// The driver requested a test within another.
    #[error("the previous test has not ended")]
    NotEnded,
}
