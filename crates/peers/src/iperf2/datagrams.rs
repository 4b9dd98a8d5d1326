//! iperf 2's datagrams on the measuring thread.

use std::sync::{Arc, OnceLock};

use engine::transport::programs;
use peer_wire::iperf2::{Counts, DATAGRAM_BYTES, Datagram, HEADER_BYTES, Header, NUMBER_BYTES, Report};

/// Highest number that is believed: a hostile one must not count a billion losses.
const MOST_NUMBER: u64 = 1 << 48;

/// Numbers of a stream's datagrams and the receiver's counts; the last datagram completes the report.
pub(super) struct Numbered {
    front: Front,
    counts: Counts,
    report: Arc<OnceLock<Report>>,
}

impl Numbered {
    pub(super) fn new(front: Front, counts: Counts, report: Arc<OnceLock<Report>>) -> Self {
        Self { front, counts, report }
    }
}

impl programs::DatagramHeader for Numbered {
    #[inline]
    fn write(&mut self, block: &mut [u8], number: u64) {
        self.front.write(block, number + 1, false);
    }

    #[inline]
    fn read(&mut self, datagram: &[u8]) -> Option<u64> {
        take(&mut self.counts, datagram, &self.report)
    }
}

/// The header that a sender writes to a datagram.
#[derive(Clone, Copy)]
pub(super) struct Front([u8; HEADER_BYTES]);

impl Front {
    pub(super) fn new(header: &Header) -> Self {
        Self(header.to_datagram())
    }

    /// Of an end that sends none.
    pub(super) fn none() -> Self {
        Self([0; HEADER_BYTES])
    }

    /// Numbers a datagram, as large as all are.
    pub(super) fn write(&self, block: &mut [u8], number: u64, last: bool) {
        if let Some(front) = block.first_chunk_mut::<DATAGRAM_BYTES>() {
            Datagram { number, last, sent_us: wall_us() }.write(front);
        }
        if let Some(header) = block.get_mut(NUMBER_BYTES..NUMBER_BYTES + HEADER_BYTES) {
            header.copy_from_slice(&self.0);
        }
    }
}

/// The wall clock, which iperf 2 stamps with: its servers take other clocks' times for nonsense.
fn wall_us() -> u64 {
    engine::unix_ns() / 1000
}

/// Counts a received datagram; returns its number if it belongs to the stream.
pub(super) fn take(counts: &mut Counts, datagram: &[u8], report: &OnceLock<Report>) -> Option<u64> {
    let seen = Datagram::read(datagram).filter(|seen| seen.number < MOST_NUMBER)?;
    if counts.take(&seen, datagram.len(), wall_us()) {
        // Set once, at the end.
        let _ = report.set(counts.report());
    }
    Some(seen.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::transport::programs::DatagramHeader as _;
    use model::Pattern;

    #[test]
    fn the_last_datagram_makes_the_report() {
        let report = Arc::new(OnceLock::new());
        let requested = crate::iperf2::request::header(&model::Spec::new("tcp", Pattern::Stream), 5001).unwrap();
        let front = Front::new(&requested);
        let mut header = Numbered::new(front, Counts::default(), report.clone());
        let mut block = [0; 100];
        for number in [0, 1, 3] {
            header.write(&mut block, number);
            assert_eq!(header.read(&block), Some(number + 1));
        }
        assert!(report.get().is_none());
        front.write(&mut block, 5, true);
        assert_eq!(header.read(&block), Some(5));
        let counted = report.get().unwrap();
        assert_eq!((counted.bytes, counted.datagrams, counted.lost), (400, 5, 1));
        assert_eq!(header.read(&[0xff; 11]), None);
    }
}
