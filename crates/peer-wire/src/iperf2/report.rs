//! A server's counts of a transfer over UDP, and its report.

use super::datagram::Datagram;
use super::error::Iperf2Error;
use super::{PEER, flag, word};
use crate::WireError;

/// Bytes of the report that is written here, that of the first version, which every client reads.
pub const REPORT_BYTES: usize = 56;

/// A server's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Bytes that arrived, the last datagram's included.
    pub bytes: u64,
    /// From the first to the last datagram, microseconds.
    pub elapsed_us: u64,
    /// Numbers that did not arrive.
    pub lost: u32,
    /// Datagrams that arrived after one with a higher number.
    pub out_of_order: u32,
    /// Numbers in all.
    pub datagrams: u32,
    /// Jitter of RFC 1889, microseconds.
    pub jitter_us: u64,
}

impl Report {
    /// The datagram that answers the last one.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REPORT_BYTES] {
        let [seconds, micros] = [self.elapsed_us / 1_000_000, self.elapsed_us % 1_000_000];
        let words = [
            0,
            0,
            0,
            0,
            flag::VERSION_1,
            (self.bytes >> 32) as u32,
            self.bytes as u32,
            seconds as u32,
            micros as u32,
            self.lost,
            self.out_of_order,
            self.datagrams,
            (self.jitter_us / 1_000_000) as u32,
            (self.jitter_us % 1_000_000) as u32,
        ];
        let mut bytes = [0; REPORT_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Parses a server's report of this version or a later one, whose extension is ignored.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        let refuse = |what: Iperf2Error| Err(PEER.error("while reading the server's report", what));
        if datagram.len() < REPORT_BYTES {
            return refuse(Iperf2Error::ShortReport { bytes: datagram.len(), least: REPORT_BYTES });
        }
        if word(datagram, 16) & flag::VERSION_1 == 0 {
            return refuse(Iperf2Error::NoReport);
        }
        let micros = |at: usize| Some(u64::from(word(datagram, at)) * 1_000_000 + u64::from(word(datagram, at + 4)));
        let whole = |at: usize| micros(at).filter(|_| word(datagram, at + 4) < 1_000_000);
        let (Some(elapsed_us), Some(jitter_us)) = (whole(28), whole(48)) else {
            return refuse(Iperf2Error::Time);
        };
        Ok(Self {
            bytes: u64::from(word(datagram, 20)) << 32 | u64::from(word(datagram, 24)),
            elapsed_us,
            lost: word(datagram, 36),
            out_of_order: word(datagram, 40),
            datagrams: word(datagram, 44),
            jitter_us,
        })
    }
}

/// A server's counts of a transfer over UDP.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    bytes: u64,
    received: u64,
    out_of_order: u32,
    highest: u64,
    first_us: Option<u64>,
    last_us: u64,
    transit_us: i64,
    jitter_us: f64,
    over: bool,
}

impl Counts {
    /// Counts a datagram of `bytes` that arrived at `now_us` by this end's clock. After the last datagram
    /// nothing is counted: the client repeats it until it receives the report. Returns true if a report must be
    /// sent.
    pub fn take(&mut self, datagram: &Datagram, bytes: usize, now_us: u64) -> bool {
        if self.over {
            return datagram.last;
        }
        // RFC 1889, 6.3.1, with its gain of 1/16; the clocks' difference falls out.
        let transit = now_us.wrapping_sub(datagram.sent_us) as i64;
        if self.first_us.is_some() {
            let change = transit.wrapping_sub(self.transit_us).unsigned_abs() as f64;
            self.jitter_us += (change - self.jitter_us) / 16.0;
        }
        self.first_us.get_or_insert(now_us);
        (self.transit_us, self.last_us) = (transit, now_us);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.received += 1;
        if datagram.number < self.highest {
            self.out_of_order = self.out_of_order.saturating_add(1);
        }
        self.highest = self.highest.max(datagram.number);
        self.over = datagram.last;
        datagram.last
    }

    /// What was counted.
    #[must_use]
    pub fn report(&self) -> Report {
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Report {
            bytes: self.bytes,
            elapsed_us: self.last_us.saturating_sub(self.first_us.unwrap_or(self.last_us)),
            lost: count(self.highest.saturating_sub(self.received)),
            out_of_order: self.out_of_order,
            datagrams: count(self.highest.max(self.received)),
            jitter_us: self.jitter_us as u64,
        }
    }
}
