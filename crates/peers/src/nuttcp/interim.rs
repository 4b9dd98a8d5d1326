//! Interim reports of what our server receives, for clients with -i.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::transport::programs;
use model::{Interval, Spec, TransportName};
use peer_wire::nuttcp::{Interim, PathMark, count_sent, mark, sent_so_far};
use rustix::net::SendFlags;

use super::sort;
use crate::marks::{DatagramKind, MarkTimes, MarkedDatagrams};
use crate::plain;

/// Datagrams that the client has sent, as the last one to arrive said; 0 for not known.
type Sent = Arc<AtomicU64>;

/// The lines of the control connection while data flows.
pub(super) struct InterimReports {
    line: OwnedFd,
    /// Bytes of a datagram; `None` over TCP.
    datagram: Option<u64>,
    parse: bool,
    interval_ns: u64,
    pub(super) sent: Sent,
    reported: u64,
}

impl InterimReports {
    pub(super) fn new(line: OwnedFd, spec: &Spec, parse: bool) -> Self {
        let datagram = (spec.transport == TransportName::Udp).then_some(spec.block);
        Self { line, datagram, parse, interval_ns: spec.interval_ns, sent: Sent::default(), reported: 0 }
    }

    /// Sends the line of an interval; not of a shorter one at the end, as nuttcp.
    pub(super) fn report(&mut self, interval: &Interval) {
        let ns = interval.end_ns.saturating_sub(interval.start_ns);
        if ns < self.interval_ns - self.interval_ns / 10 {
            return;
        }
        let line = self.interim(interval.bytes_received, ns).to_line(self.parse);
        // A client that does not read its reports misses them: data flows meanwhile.
        let _ = rustix::net::send(&self.line, line.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    fn interim(&mut self, bytes: u64, ns: u64) -> Interim {
        let sent = self.sent.load(Ordering::Relaxed);
        let datagrams = self.datagram.filter(|_| sent > 0).map(|size| {
            let all = sent.saturating_sub(self.reported);
            self.reported = self.reported.max(sent);
            [all.saturating_sub(bytes / size), all]
        });
        Interim { bytes, seconds: ns as f64 / 1e9, datagrams }
    }
}

/// Distinguishes marks from data and notes what the data say was sent.
pub(super) fn counted(sent: Option<Sent>) -> impl FnMut(&[u8]) -> DatagramKind + Send + 'static {
    move |datagram| {
        let kind = sort(datagram);
        if let (Some(sent), DatagramKind::Data) = (&sent, kind)
            && let Some(count) = sent_so_far(datagram)
        {
            sent.store(count, Ordering::Relaxed);
        }
        kind
    }
}

/// The datagrams that this end sends, each with what was sent up to its end: a client with -i counts losses by that.
pub(super) struct Numbered {
    marked: MarkedDatagrams<fn(&[u8]) -> DatagramKind>,
    block: u64,
}

impl Numbered {
    pub(super) fn new(mark_times: Arc<MarkTimes>, block: u64) -> Self {
        Self { marked: MarkedDatagrams::sent(mark_times), block }
    }
}

impl programs::DatagramHeader for Numbered {
    #[inline]
    fn write(&mut self, datagram: &mut [u8], number: u64) {
        count_sent(datagram, (number + 1).wrapping_mul(self.block));
    }

    #[inline]
    fn read(&mut self, datagram: &[u8]) -> Option<u64> {
        programs::DatagramHeader::read(&mut self.marked, datagram)
    }
}

/// Takes the mark that comes a quarter of a second before the data and waits for the next datagram: the first interval
/// begins there.
pub(super) fn skip_first_mark(socket: &UdpSocket, keep_waiting: &mut dyn FnMut() -> bool) {
    let mut front = [0; 8];
    let first = socket.peek(&mut front).is_ok_and(|count| mark(&front[..count]) == Some(PathMark::Begin(0)));
    if first && socket.recv(&mut front).is_ok() {
        while keep_waiting() && !plain::readable(socket) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn only_the_first_mark_is_skipped() {
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        here.connect(there.local_addr().unwrap()).unwrap();
        there.connect(here.local_addr().unwrap()).unwrap();
        for number in 0..PathMark::BEGINS {
            there.send(&PathMark::Begin(number).bytes()).unwrap();
        }
        for _ in 0..2 {
            skip_first_mark(&here, &mut || true);
        }
        let mut left = [0; 8];
        let count = here.recv(&mut left).unwrap();
        assert_eq!(mark(&left[..count]), Some(PathMark::Begin(1)));
    }

    #[test]
    fn losses_of_an_interval_are_what_the_data_say_was_sent_and_did_not_arrive() {
        let (line, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let spec = Spec { block: 1_000, interval_ns: 1_000_000_000, ..Spec::new("udp", Pattern::Stream) };
        let mut reports = InterimReports::new(line.into(), &spec, false);
        assert_eq!(reports.interim(5_000, 1_000_000_000).datagrams, None, "no datagram said what was sent");
        let mut sort = counted(Some(reports.sent.clone()));
        let mut datagram = [0; 1_000];
        for count in [1_u64, 2, 5] {
            datagram[24..32].copy_from_slice(&(count * 1_000).to_le_bytes());
            assert_eq!(sort(&datagram), DatagramKind::Data);
        }
        assert_eq!(reports.interim(3_000, 1_000_000_000).datagrams, Some([2, 5]));
        assert_eq!(reports.interim(0, 1_000_000_000).datagrams, Some([0, 0]));
        datagram[24..32].copy_from_slice(&9_000_u64.to_le_bytes());
        sort(&datagram);
        assert_eq!(reports.interim(4_000, 1_000_000_000).datagrams, Some([0, 4]));
    }
}
