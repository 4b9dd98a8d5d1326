//! Datagrams without numbers between begin and end marks, as nttcp and nuttcp send them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::transport::programs;
use engine::{Signals, now_ns};

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// A mark before the data; the last of them starts the clock.
    Begin,
    /// Data.
    Data,
    /// A mark after the data; the first of them stops the clock.
    End,
}

/// Arrival times of the marks by this host's monotonic clock, 0 for never. Only the measuring thread writes
/// them.
#[derive(Debug, Default)]
pub(crate) struct MarkTimes {
    begun_ns: AtomicU64,
    ended_ns: AtomicU64,
}

impl MarkTimes {
    /// The data is over.
    pub(crate) fn ended(&self) -> bool {
        self.ended_ns.load(Ordering::Relaxed) > 0
    }

    /// Time between the marks, ns; `None` if one of them did not arrive.
    pub(crate) fn span_ns(&self) -> Option<u64> {
        let [begun, ended] = [&self.begun_ns, &self.ended_ns].map(|at| at.load(Ordering::Relaxed));
        (begun > 0 && ended > 0).then(|| ended.saturating_sub(begun))
    }
}

/// For each step of a transfer: stops it when the data is over, and aborts it when it may not continue.
pub(crate) fn stop_at_end(
    mark_times: Arc<MarkTimes>,
    mut may_continue: impl FnMut() -> bool,
) -> impl FnMut(&Signals, Duration) {
    move |signals, _| {
        if !may_continue() {
            signals.abort();
        } else if mark_times.ended() {
            signals.stop();
        }
    }
}

/// Numbers datagrams without a header in order of arrival; losses show only in the byte counts.
pub(crate) struct MarkedDatagrams<F> {
    sort: F,
    mark_times: Arc<MarkTimes>,
    next: u64,
}

impl<F> MarkedDatagrams<F> {
    pub(crate) fn new(sort: F, mark_times: Arc<MarkTimes>) -> Self {
        Self { sort, mark_times, next: 0 }
    }
}

impl MarkedDatagrams<fn(&[u8]) -> DatagramKind> {
    /// For a sender, which gets no mark.
    pub(crate) fn sent(mark_times: Arc<MarkTimes>) -> Self {
        Self::new(|_| DatagramKind::Data, mark_times)
    }
}

impl<F: FnMut(&[u8]) -> DatagramKind + Send + 'static> programs::DatagramHeader for MarkedDatagrams<F> {
    #[inline]
    fn write(&mut self, _: &mut [u8], _: u64) {}

    #[inline]
    fn read(&mut self, datagram: &[u8]) -> Option<u64> {
        match (self.sort)(datagram) {
            DatagramKind::Data if !self.mark_times.ended() => {
                let number = self.next;
                self.next += 1;
                return Some(number);
            }
            DatagramKind::Data => {}
            DatagramKind::Begin => self.mark_times.begun_ns.store(now_ns(), Ordering::Relaxed),
            DatagramKind::End if !self.mark_times.ended() => {
                self.mark_times.ended_ns.store(now_ns(), Ordering::Relaxed);
            }
            DatagramKind::End => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::transport::programs::DatagramHeader as _;

    #[test]
    fn what_stands_between_the_marks_is_data() {
        let mark_times = Arc::new(MarkTimes::default());
        let sort = |datagram: &[u8]| match datagram {
            b"begin" => DatagramKind::Begin,
            b"end" => DatagramKind::End,
            _ => DatagramKind::Data,
        };
        let mut header = MarkedDatagrams::new(sort, mark_times.clone());
        let datagrams: [&[u8]; 6] = [b"begin", b"one", b"two", b"end", b"late", b"end"];
        let numbers = datagrams.map(|datagram| header.read(datagram));
        assert_eq!(numbers, [None, Some(0), Some(1), None, None, None]);
        assert!(mark_times.ended() && mark_times.span_ns().is_some());
        let unbegun = MarkTimes { ended_ns: AtomicU64::new(5), ..MarkTimes::default() };
        assert_eq!(unbegun.span_ns(), None, "the first mark was lost");
    }
}
