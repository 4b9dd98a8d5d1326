//! The header of iperf3's datagrams, and the receiver's counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use engine::now_ns;
use engine::transport::programs;
use peer_wire::iperf3::datagram;

/// A stream receiver's counts; only its measuring thread writes them.
#[derive(Debug, Default)]
pub(super) struct ReceiverState {
    highest: AtomicU64,
    errors: AtomicI64,
    /// Jitter in nanoseconds, the bits of a double.
    jitter: AtomicU64,
}

/// A snapshot of the receiver's counts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Received {
    /// The highest received number.
    pub(super) packets: u64,
    /// Skipped numbers less those that arrived late. A duplicate counts as late, as in iperf3.
    pub(super) errors: i64,
    /// After RFC 1889, in seconds.
    pub(super) jitter_s: f64,
}

impl ReceiverState {
    pub(super) fn received(&self) -> Received {
        Received {
            packets: self.highest.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            jitter_s: f64::from_bits(self.jitter.load(Ordering::Relaxed)) / 1e9,
        }
    }

    fn record(&self, number: u64, variation_ns: Option<f64>) {
        let highest = self.highest.load(Ordering::Relaxed);
        let errors = self.errors.load(Ordering::Relaxed);
        if number > highest {
            self.errors.store(errors.saturating_add_unsigned(number - highest - 1), Ordering::Relaxed);
            self.highest.store(number, Ordering::Relaxed);
        } else if errors > 0 {
            self.errors.store(errors - 1, Ordering::Relaxed);
        }
        if let Some(variation) = variation_ns {
            let jitter = f64::from_bits(self.jitter.load(Ordering::Relaxed));
            self.jitter.store((jitter + (variation - jitter) / 16.0).to_bits(), Ordering::Relaxed);
        }
    }
}

/// The header of one stream's datagrams.
pub(super) struct Header {
    /// Numbers of 64 bits.
    wide: bool,
    receivers: Arc<ReceiverState>,
    /// Arrival less sending of the datagram before, ns; the clocks' zeros differ, so only differences mean anything.
    transit_ns: Option<i64>,
}

impl Header {
    pub(super) fn new(wide: bool, receivers: Arc<ReceiverState>) -> Self {
        Self { wide, receivers, transit_ns: None }
    }

    /// Extends a received 32-bit number to 64 bits: the value nearest to the highest so far.
    fn widened(&self, number: u64) -> u64 {
        if self.wide {
            return number;
        }
        let highest = self.receivers.highest.load(Ordering::Relaxed);
        let near = (highest & !0xffff_ffff) | number;
        match near.abs_diff(highest) {
            far if far <= 1 << 31 => near,
            _ if near < highest => near + (1 << 32),
            _ => near.checked_sub(1 << 32).unwrap_or(near),
        }
    }
}

impl programs::DatagramHeader for Header {
    #[inline]
    fn write(&mut self, block: &mut [u8], number: u64) {
        if let Some(front) = block.first_chunk_mut() {
            datagram::Header { sent_us: now_ns() / 1_000, number: number + 1 }.write(front, self.wide);
        }
    }

    #[inline]
    fn read(&mut self, block: &[u8]) -> Option<u64> {
        let header = datagram::Header::read(block, self.wide)?;
        let number = self.widened(header.number);
        // A hostile number must not count a billion losses, nor wrap.
        let index = number.checked_sub(1).filter(|index| *index < 1 << 48)?;
        let transit = (now_ns() as i64).wrapping_sub_unsigned(header.sent_us.wrapping_mul(1_000));
        let variation = self.transit_ns.map(|before| transit.wrapping_sub(before).unsigned_abs() as f64);
        self.transit_ns = Some(transit);
        self.receivers.record(number, variation);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::transport::programs::DatagramHeader as _;

    fn said(number: u32) -> [u8; 16] {
        let mut block = [0; 16];
        datagram::Header { sent_us: 5, number: u64::from(number) }.write(&mut block, false);
        block
    }

    #[test]
    fn gaps_are_losses_until_the_late_ones_come() {
        let receivers = Arc::new(ReceiverState::default());
        let mut header = Header::new(false, receivers.clone());
        let numbers: Vec<_> = [1, 2, 5, 3].map(|number| header.read(&said(number))).to_vec();
        assert_eq!(numbers, [Some(0), Some(1), Some(4), Some(2)]);
        assert_eq!((receivers.received().packets, receivers.received().errors), (5, 1));
        assert_eq!((header.read(&said(0)), header.read(&[0; 11])), (None, None));
    }

    #[test]
    fn numbers_of_32_bits_go_on_after_their_end() {
        let receivers = Arc::new(ReceiverState::default());
        receivers.highest.store((1 << 32) - 2, Ordering::Relaxed);
        let mut header = Header::new(false, receivers.clone());
        let numbers = [u32::MAX, 0, 1].map(|number| header.read(&said(number)));
        assert_eq!(numbers, [Some((1 << 32) - 2), Some((1 << 32) - 1), Some(1 << 32)]);
        assert_eq!(receivers.received().errors, 0);
    }

    #[test]
    fn what_is_written_is_read() {
        let receivers = Arc::new(ReceiverState::default());
        let mut header = Header::new(true, receivers);
        let mut block = [0; 64];
        header.write(&mut block, 1 << 40);
        assert_eq!(header.read(&block), Some(1 << 40));
    }
}
