//! TCP_INFO: struct tcp_info of linux/tcp.h, read by offset. Fields are only ever added at its end, so an older
//! kernel's answer is shorter.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use model::{SocketFacts, TcpReading, TcpSample};

use super::sys::sockopt::{self, TCP_INFO_ROOM};

/// What the kernel answered.
pub(crate) struct TcpInfo {
    bytes: [u8; TCP_INFO_ROOM],
    length: usize,
}

/// What a TCP connection shows of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpPath {
    /// The smoothed round trip; the handshake gives its first value.
    pub round_trip: Duration,
    /// Its mean deviation.
    pub variation: Duration,
    /// Segments with data that were sent, repetitions included.
    pub sent: u32,
    /// Segments that were sent again, those of the handshake included.
    pub repeated: u32,
    /// Whether the oldest segment has been sent again and is not acknowledged yet.
    pub repeating: bool,
}

/// What a TCP connection shows of its path now. `None` for any other socket.
#[must_use]
pub fn tcp_path(socket: BorrowedFd<'_>) -> Option<TcpPath> {
    TcpInfo::of(socket).map(|info| info.path())
}

/// The length up to tcpi_total_retrans, which every kernel since 2.6 has.
const OLDEST: usize = 104;
/// The value of tcpi_snd_ssthresh if there is none (TCP_INFINITE_SSTHRESH).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

impl TcpInfo {
    /// Of a socket; `None` where it is no TCP socket.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut bytes = [0; TCP_INFO_ROOM];
        let length = sockopt::tcp_info(socket, &mut bytes)?;
        Self { bytes, length }.complete()
    }

    /// An answer of any length, as a kernel might give it.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let mut bytes = [0; TCP_INFO_ROOM];
        bytes.iter_mut().zip(answer).for_each(|(byte, answered)| *byte = *answered);
        // A newer kernel's answer may be longer than the room.
        Self { bytes, length: answer.len() }.complete()
    }

    fn complete(self) -> Option<Self> {
        (self.length >= OLDEST).then_some(self)
    }

    /// The field of four bytes at `at`; `None` if this kernel's answer ends before.
    fn u32(&self, at: usize) -> Option<u32> {
        let field = self.bytes[..self.length.min(TCP_INFO_ROOM)].get(at..at + 4)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let field = self.bytes[..self.length.min(TCP_INFO_ROOM)].get(at..at + 8)?;
        Some(u64::from_ne_bytes(field.try_into().ok()?))
    }

    /// Fields that every kernel has.
    fn old(&self, at: usize) -> u32 {
        self.u32(at).unwrap_or(0)
    }

    /// A time in microseconds, in ns.
    fn us(&self, at: usize) -> Option<u64> {
        Some(self.u64(at)?.saturating_mul(1_000))
    }

    /// A rate in bytes a second, in bit/s.
    fn bps(&self, at: usize) -> Option<u64> {
        Some(self.u64(at)?.saturating_mul(8))
    }

    fn path(&self) -> TcpPath {
        let us = |at| Duration::from_micros(self.old(at).into());
        TcpPath {
            round_trip: us(68),
            variation: us(72),
            // Kernels before 4.6 count no segments with data.
            sent: self.u32(156).or_else(|| self.u32(136)).unwrap_or(0),
            repeated: self.old(100),
            // tcpi_retransmits
            repeating: self.bytes[2] > 0,
        }
    }

    /// Shortest round trip that this end saw, ns.
    pub(crate) fn min_rtt_ns(&self) -> Option<u64> {
        // All ones until the first sample.
        self.u32(148).filter(|us| *us != u32::MAX).map(|us| u64::from(us) * 1_000)
    }

    fn peer_window(&self) -> Option<u32> {
        // A connection that has never received a window has none.
        self.u32(228).filter(|window| *window > 0)
    }

    /// All of it, as an entry of the series at `at_ns`.
    pub(crate) fn sample(&self, at_ns: u64) -> TcpSample {
        let us = |at| u64::from(self.old(at)) * 1_000;
        let count = |at| self.u32(at).map(u64::from);
        TcpSample {
            at_ns,
            state: self.bytes[1],
            rtt_ns: us(68),
            rttvar_ns: us(72),
            min_rtt_ns: self.min_rtt_ns(),
            cwnd: self.old(80),
            ssthresh: self.u32(76).filter(|segments| *segments < NO_SSTHRESH),
            mss: self.old(16),
            unacked: self.old(24),
            lost: self.old(32),
            retransmits: u64::from(self.old(100)),
            bytes_retransmitted: self.u64(208),
            reordering: self.old(88),
            // All ones where there is no limit.
            pacing_bps: self.u64(104).filter(|rate| *rate < u64::MAX).and_then(|_| self.bps(104)),
            delivery_bps: self.bps(160).filter(|rate| *rate > 0),
            app_limited: self.app_limited(),
            busy_ns: self.us(168),
            rwnd_limited_ns: self.us(176),
            sndbuf_limited_ns: self.us(184),
            delivered: count(192),
            delivered_ce: count(196),
            bytes_acked: self.u64(120),
            bytes_received: self.u64(128),
            notsent_bytes: count(144),
            peer_window_bytes: self.peer_window(),
            window_bytes: self.u32(64),
            rto_ns: Some(us(8)),
            timeouts: self.u32(240).map(|word| u64::from(low_half(word))),
            spurious: count(216),
            segments_sent: count(156),
            segments_received: count(152),
            // tcpi_segs_in counts all segments; both are words that wrap around.
            acks_received: self.u32(140).zip(self.u32(152)).map(|(all, data)| u64::from(all.wrapping_sub(data))),
            out_of_order: count(224),
            reordering_seen: count(220),
        }
    }

    /// What is shown while a trial runs.
    pub(crate) fn in_short(&self) -> TcpReading {
        TcpReading {
            retransmits: u64::from(self.old(100)),
            rtt_ns: u64::from(self.old(68)) * 1_000,
            cwnd_bytes: u64::from(self.old(80)) * u64::from(self.old(16)),
        }
    }

    /// A field of one bit, the first of its byte.
    fn app_limited(&self) -> bool {
        self.bytes[7] & if cfg!(target_endian = "big") { 0x80 } else { 1 } != 0
    }

    /// Window scales for sending and receiving: two fields of four bits, in the order of the machine's bit fields.
    fn wscale(&self) -> (u8, u8) {
        let (low, high) = (self.bytes[6] & 0xf, self.bytes[6] >> 4);
        if cfg!(target_endian = "big") { (high, low) } else { (low, high) }
    }

    /// What may differ between the sockets of one trial.
    pub(crate) fn brief(&self) -> SocketFacts {
        SocketFacts {
            retransmits: Some(u64::from(self.old(100))),
            bytes_retransmitted: self.u64(208),
            min_rtt_ns: self.min_rtt_ns(),
            srtt_ns: Some(u64::from(self.old(68)) * 1_000),
            cwnd: Some(self.old(80)),
            peer_window_bytes: self.peer_window(),
            ..SocketFacts::default()
        }
    }

    /// What the two ends agreed on, and TCP's figures of the path.
    pub(crate) fn negotiated(&self, facts: &mut SocketFacts) {
        let options = self.bytes[5];
        facts.mss = Some(self.old(16));
        facts.pmtu = Some(self.old(60));
        facts.wscale = (options & WSCALE != 0).then(|| self.wscale());
        let names = OPTIONS.iter().filter(|(bits, _)| options & bits != 0);
        facts.negotiated = names.map(|(_, name)| (*name).to_owned()).collect();
    }
}

/// TCPI_OPT_WSCALE.
const WSCALE: u8 = 4;

/// TCPI_OPT_* of linux/tcp.h; SYN_DATA and TFO_CHILD are the two ends of a fast open.
const OPTIONS: [(u8, &str); 7] = [
    (1, "timestamps"),
    (64, "usec-timestamps"),
    (2, "sack"),
    (WSCALE, "wscale"),
    (8, "ecn"),
    (16, "ecn-seen"),
    (32 | 128, "fast-open"),
];

/// The two bytes of a word that come first in memory.
fn low_half(word: u32) -> u16 {
    let [a, b, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b])
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    /// A kernel's answer of `length` bytes, every field of four bytes set to its offset.
    fn answer(length: usize) -> TcpInfo {
        let mut bytes = [0; TCP_INFO_ROOM];
        for at in (0..length).step_by(4) {
            bytes[at..at + 4].copy_from_slice(&(at as u32).to_ne_bytes());
        }
        TcpInfo { bytes, length }
    }

    #[test]
    fn fields_missing_in_an_older_kernels_answer_are_null() {
        let old = answer(104).sample(7);
        assert_eq!((old.at_ns, old.cwnd, old.rtt_ns, old.retransmits), (7, 80, 68_000, 100));
        assert_eq!((old.min_rtt_ns, old.pacing_bps, old.bytes_acked, old.busy_ns), (None, None, None, None));
        let newer = answer(232).sample(7);
        assert_eq!((newer.min_rtt_ns, newer.delivered, newer.peer_window_bytes), (Some(148_000), Some(192), Some(228)));
        assert_eq!((newer.spurious, newer.timeouts), (Some(216), None));
        // A field that the answer holds only in part counts as missing.
        assert_eq!(answer(230).sample(7).peer_window_bytes, None);
        assert!(answer(100).complete().is_none());
    }

    #[test]
    fn values_that_mean_none_are_none() {
        let mut info = answer(248);
        info.bytes[76..80].copy_from_slice(&NO_SSTHRESH.to_ne_bytes());
        info.bytes[104..112].fill(0xff);
        info.bytes[148..152].fill(0xff);
        info.bytes[160..168].fill(0);
        let sample = info.sample(0);
        assert_eq!((sample.ssthresh, sample.pacing_bps), (None, None));
        assert_eq!((sample.min_rtt_ns, sample.delivery_bps), (None, None));
    }

    #[test]
    fn options_have_their_names() {
        let mut info = answer(104);
        let mut named = |bits| {
            info.bytes[5] = bits;
            let mut facts = SocketFacts::default();
            info.negotiated(&mut facts);
            (facts.negotiated.join(" "), facts.wscale.is_some())
        };
        assert_eq!(named(0b0111), ("timestamps sack wscale".to_owned(), true));
        assert_eq!(named(8), ("ecn".to_owned(), false));
        assert_eq!(named(8 | 16 | 64 | 1), ("timestamps usec-timestamps ecn ecn-seen".to_owned(), false));
        assert_eq!((named(32).0, named(128).0), ("fast-open".to_owned(), "fast-open".to_owned()));
    }

    #[test]
    fn this_kernel_counts_the_bytes_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 5_000]).unwrap();
        let mut buffer = [0; 5_000];
        far.read_exact(&mut buffer).unwrap();
        let received = TcpInfo::of(far.as_fd()).unwrap().sample(1);
        let sent = TcpInfo::of(near.as_fd()).unwrap().sample(2);
        assert_eq!(received.bytes_received, Some(5_000), "{received:?}");
        assert!(sent.segments_sent.unwrap() >= 1 && sent.cwnd > 0 && sent.mss > 0, "{sent:?}");
        // The first segment's acknowledgement may be on its way; the SYN counts as a byte.
        assert!(sent.bytes_acked.unwrap() <= 5_001, "{sent:?}");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(TcpInfo::of(file.as_fd()).is_none() && TcpInfo::of(listener.as_fd()).is_some());
    }
}
