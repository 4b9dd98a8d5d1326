//! The header that a client sends before its data.

use super::error::Iperf2Error;
use super::{flag, word};

/// Bytes of the header that 2.1.8's client writes over TCP.
pub const HEADER_BYTES: usize = 60;
/// Bytes of a datagram before the header: number and time.
pub const NUMBER_BYTES: usize = 16;
/// Bytes of a write if the client does not set them.
const DEFAULT_BYTES: u32 = 128 << 10;
/// Version 2.1.8.3, as its parts.
const VERSION: [u32; 2] = [0x0002_0001, 0x0008_0003];

/// What ends the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// After so many bytes.
    Bytes(u32),
    /// After so many hundredths of a second.
    Hundredths(u32),
}

/// The test that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Parallel connections, at least 1.
    pub threads: u32,
    /// The server's port.
    pub port: u16,
    /// Bytes of a write.
    pub bytes: u32,
    /// When it ends.
    pub amount: Amount,
    /// The server sends (-R).
    pub reverse: bool,
    /// Both send, over the same connection (--full-duplex).
    pub full_duplex: bool,
    /// Requested bit/s of each connection, from whichever end sends; 0 for none.
    pub rate_bps: u64,
}

impl Header {
    /// The header as 2.1.8 lays it out over TCP.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut flags = flag::EXTEND | flag::LENGTH | (HEADER_BYTES as u32) << 1;
        if self.reverse || self.full_duplex {
            flags |= flag::VERSION_2;
        }
        let amount = match self.amount {
            Amount::Bytes(bytes) => bytes & 0x7fff_ffff,
            Amount::Hundredths(time) => (time & 0x7fff_ffff).wrapping_neg(),
        };
        let upper = match (self.reverse, self.full_duplex) {
            (_, true) => flag::FULL_DUPLEX,
            (true, false) => flag::REVERSE,
            (false, false) => 0,
        };
        let rate = [self.rate_bps as u32, (self.rate_bps >> 32) as u32];
        let words =
            [flags, self.threads, u32::from(self.port), self.bytes, 0, amount, 0, 0, upper, VERSION[0], VERSION[1], 0];
        let mut bytes = [0; HEADER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words.into_iter().chain(rate)) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The header in each datagram, after its number and time.
    #[must_use]
    pub fn to_datagram(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = self.to_bytes();
        let length = (HEADER_BYTES + NUMBER_BYTES) as u32;
        let flags = flag::EXTEND | flag::LENGTH | flag::NUMBERS_OF_64_BITS | length << 1;
        bytes[..4].copy_from_slice(&flags.to_be_bytes());
        bytes
    }

    /// The length of a header that begins with this word; `None` for data.
    #[must_use]
    pub fn length(flags: u32) -> Option<usize> {
        let length = ((flags & flag::LENGTH_BITS) >> 1) as usize;
        let marked = flags & (flag::EXTEND | flag::LENGTH) == flag::EXTEND | flag::LENGTH;
        // Payload of digits has both bits that no header over TCP has.
        let foreign = flags & flag::UDP_TESTS != 0;
        (marked && !foreign && (24..=255).contains(&length)).then_some(length)
    }

    /// Parses a complete header.
    ///
    /// # Errors
    /// The invalid or unsupported value.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Iperf2Error> {
        let flags = word(bytes, 0);
        if flags & flag::VERSION_1 != 0 {
            return Err(Iperf2Error::BothDirections);
        }
        let (threads, port, size) = (word(bytes, 4), word(bytes, 8), word(bytes, 12));
        let port = u16::try_from(port).map_err(|_| Iperf2Error::Port { port })?;
        // A client without -l names none.
        let size = if size == 0 { DEFAULT_BYTES } else { size };
        if !(1..=1024).contains(&threads) || size > 1 << 30 {
            return Err(Iperf2Error::Size { threads, bytes: size });
        }
        let amount = word(bytes, 20);
        let amount = if amount >> 31 == 1 { Amount::Hundredths(amount.wrapping_neg()) } else { Amount::Bytes(amount) };
        let rate_bps = u64::from(word(bytes, 52)) << 32 | u64::from(word(bytes, 48));
        let upper = word(bytes, 32);
        let (reverse, full_duplex) = (upper & flag::REVERSE != 0, upper & flag::FULL_DUPLEX != 0);
        Ok(Self { threads, port, bytes: size, amount, reverse, full_duplex, rate_bps })
    }

    /// The header in a datagram; `None` where it has none.
    #[must_use]
    pub fn from_datagram(datagram: &[u8]) -> Option<Self> {
        let header = datagram.get(NUMBER_BYTES..).filter(|header| header.len() >= HEADER_BYTES)?;
        let marks = flag::EXTEND | flag::LENGTH;
        if word(header, 0) & marks == marks { Self::from_bytes(header).ok() } else { None }
    }

    /// Server 2.1.8's answer to a client that sends over TCP.
    #[must_use]
    pub fn acknowledgement() -> [u8; 28] {
        let mut bytes = [0; 28];
        for (place, word) in bytes.chunks_exact_mut(4).zip([2, 28, 0, VERSION[0], VERSION[1]]) {
            place.copy_from_slice(&u32::to_be_bytes(word));
        }
        bytes
    }
}
