//! The front of each datagram.

use super::{flag, word};

/// Bytes of it.
pub const DATAGRAM_BYTES: usize = 20;

/// Number and time of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, from 1; older versions count from 0.
    pub number: u64,
    /// It is the last one (a negative number on the wire), to be answered with a report.
    pub last: bool,
    /// The sender's clock, microseconds.
    pub sent_us: u64,
}

impl Datagram {
    /// Reads the front of a datagram; `None` where it is shorter than its 12 bytes (16 with numbers of 64
    /// bits), or its microseconds exceed a second.
    #[must_use]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let low = word(datagram, 0);
        let wide = datagram.len() >= DATAGRAM_BYTES && word(datagram, 16) & flag::NUMBERS_OF_64_BITS != 0;
        let number =
            if wide { (u64::from(word(datagram, 12)) << 32 | u64::from(low)) as i64 } else { i64::from(low as i32) };
        let micros = word(datagram, 8);
        (datagram.len() >= 12 && micros < 1_000_000).then(|| Self {
            number: number.unsigned_abs(),
            last: number < 0,
            sent_us: u64::from(word(datagram, 4)) * 1_000_000 + u64::from(micros),
        })
    }

    /// Writes it to the front of a block, with numbers of 64 bits and without a test header.
    pub fn write(&self, block: &mut [u8; DATAGRAM_BYTES]) {
        let number = if self.last { (self.number as i64).wrapping_neg() } else { self.number as i64 };
        let words = [
            number as u32,
            (self.sent_us / 1_000_000) as u32,
            (self.sent_us % 1_000_000) as u32,
            (number >> 32) as u32,
            flag::NUMBERS_OF_64_BITS,
        ];
        for (place, word) in block.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}
