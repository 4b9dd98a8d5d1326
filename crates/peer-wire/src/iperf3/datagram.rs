//! A UDP stream's datagrams: the two that open it, and the header of each block.

/// The datagram with which a client of 3.12 or newer opens a stream.
pub const REQUEST: [u8; 4] = *b"9876";
/// The answer of a server of 3.12 or newer.
pub const REPLY: [u8; 4] = *b"6789";
/// The answer of older servers on little-endian and big-endian hosts: 987654321.
const OLD_REPLIES: [[u8; 4]; 2] = [987_654_321_u32.to_le_bytes(), 987_654_321_u32.to_be_bytes()];

/// Whether a datagram is a server's answer to [`REQUEST`], of any version.
#[must_use]
pub fn is_reply(datagram: &[u8]) -> bool {
    datagram == REPLY || OLD_REPLIES.iter().any(|old| datagram == old)
}

/// Bytes of the header with packet numbers of 64 bits; four less with 32.
pub const HEADER_BYTES: usize = 16;

/// The front of each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The sender's clock, with an arbitrary zero; the wire carries whole microseconds.
    pub sent_us: u64,
    /// The packet's number, from 1.
    pub number: u64,
}

impl Header {
    /// Reads a header; `None` where the datagram is too short or its microseconds exceed a second.
    #[must_use]
    pub fn read(datagram: &[u8], wide: bool) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*datagram.get(at..)?.first_chunk()?));
        let micros = word(4).filter(|micros| *micros < 1_000_000)?;
        let number = if wide { u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?) } else { u64::from(word(8)?) };
        Some(Self { sent_us: u64::from(word(0)?) * 1_000_000 + u64::from(micros), number })
    }

    /// Writes the header to the front of `block`, which has at least [`HEADER_BYTES`]. Counts of 32 bits wrap.
    pub fn write(&self, block: &mut [u8; HEADER_BYTES], wide: bool) {
        block[..4].copy_from_slice(&((self.sent_us / 1_000_000) as u32).to_be_bytes());
        block[4..8].copy_from_slice(&((self.sent_us % 1_000_000) as u32).to_be_bytes());
        if wide {
            block[8..].copy_from_slice(&self.number.to_be_bytes());
        } else {
            block[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        }
    }
}
