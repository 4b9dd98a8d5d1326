//! iperf 2's protocol, its basics as version 2.1.8 speaks them: no control connection. A stream of TCP is plain bytes, before which the
//! client may say what it wants in a header; of UDP each datagram has a number and a time, a negative number ends it, and the server
//! answers that one with what it counted.
//!
//! ```text
//! TCP: [header, 60 bytes] ->  [<- acknowledgement, 28 bytes], data, the end of the connection
//! UDP: 1, 2, 3, ... -N  ->    <- report;   -N again until it comes
//! ```

mod datagram;
mod error;
mod header;
mod report;
mod server;

pub use datagram::{DATAGRAM_BYTES, Datagram};
pub use error::Iperf2Error;
pub use header::{Amount, HEADER_BYTES, Header, NUMBER_BYTES};
pub use report::{Counts, REPORT_BYTES, Report};
pub use server::{Action as ServerAction, Server};

use crate::Peer;

/// iperf 2 and the port of its server.
pub const PEER: Peer = Peer { name: "iperf2", port: 5001 };

/// Time after which a client sends its last datagram again, if no report has come, in milliseconds.
pub const LAST_WAIT_MS: u64 = 250;

/// Bits of the flags word (`payloads.h`).
mod flag {
    /// Of a client: test back (-d, -r). Of a server: a report.
    pub(super) const VERSION_1: u32 = 0x8000_0000;
    pub(super) const EXTEND: u32 = 0x4000_0000;
    pub(super) const UDP_TESTS: u32 = 0x2000_0000;
    pub(super) const NUMBERS_OF_64_BITS: u32 = 0x0800_0000;
    pub(super) const VERSION_2: u32 = 0x0400_0000;
    /// The low bits hold twice the header's length.
    pub(super) const LENGTH: u32 = 0x0001_0000;
    pub(super) const LENGTH_BITS: u32 = 0x0000_01fe;
    /// The whole word of a client that measures round trips (--bounceback, 2.1.8).
    pub(super) const BOUNCE_BACK: u32 = 0x0080_0000;
    /// In the upper flags of the extension: the server sends.
    pub(super) const REVERSE: u32 = 0x0400_0000;
    /// Likewise: both send, over one connection (--full-duplex).
    pub(super) const FULL_DUPLEX: u32 = 0x0800_0000;
}

/// The big-endian word at `at`; 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_be_bytes(*word))
}
