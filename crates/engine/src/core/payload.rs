//! The bytes that blocks are sent from.

use std::ops::{Deref, DerefMut};

use model::{Framing, PayloadKind, Spec, SplitMix64};

use super::PageBuffer;

/// Payload, prepared before the trial: blocks are slices of it. On a path that could compress, each block begins where
/// the one before it ended, so that the bytes do not repeat for a long time.
pub(crate) struct Payload {
    buffer: PageBuffer,
    /// After how many bytes the blocks repeat; 1 if all begin at 0.
    cycle: usize,
    /// Blocks begin at multiples of it.
    grain: usize,
    next: usize,
}

/// Random bytes that all threads of a process send before the first are sent again: more than twice the window of zstd
/// at its highest level (8 MiB), and far more than those of devices that compress (32 to 64 KiB, RFC 1951).
const RANDOM_BYTES: usize = 16 << 20;
/// Random blocks begin on a cache line.
const LINE: usize = 64;

impl Payload {
    /// What a thread of `threads` sends of `spec`, in blocks of at most `room` bytes. If it `varies`, blocks of random bytes
    /// differ.
    pub(crate) fn new(spec: &Spec, room: usize, varies: bool, threads: usize) -> Self {
        let requested = spec.payload.clone().unwrap_or_default();
        let random = || SplitMix64::new(u64::from_ne_bytes(super::random().unwrap_or_default()));
        match requested.kind {
            PayloadKind::Random => {
                let cycle = if varies { (RANDOM_BYTES / threads.max(1)).next_multiple_of(LINE) } else { 1 };
                let mut buffer = PageBuffer::filled(cycle + room, 0);
                let mut random = random();
                let (words, rest) = buffer.as_chunks_mut::<8>();
                words.iter_mut().for_each(|word| *word = random.next_u64().to_ne_bytes());
                rest.copy_from_slice(&random.next_u64().to_ne_bytes()[..rest.len()]);
                Self { buffer, cycle, grain: LINE, next: 0 }
            }
            PayloadKind::Zeros => Self::repeated(&[0], room, false),
            PayloadKind::Pattern => Self::repeated(&(0..=u8::MAX).collect::<Vec<u8>>(), room, true),
            PayloadKind::File => Self::repeated(&requested.content(), room, true),
        }
    }

    /// `bytes`, again and again; from block to block if it `goes_on`.
    fn repeated(bytes: &[u8], room: usize, goes_on: bool) -> Self {
        let bytes = if bytes.is_empty() { &[0] } else { bytes };
        let cycle = if goes_on { bytes.len() } else { 1 };
        let mut buffer = PageBuffer::filled(cycle + room, 0);
        buffer.chunks_mut(bytes.len()).for_each(|chunk| chunk.copy_from_slice(&bytes[..chunk.len()]));
        Self { buffer, cycle, grain: 1, next: 0 }
    }

    /// Where the next block, of `len` bytes, begins.
    #[inline]
    pub(crate) fn next(&mut self, len: usize) -> usize {
        let at = self.next;
        if self.cycle > 1 {
            self.next = (at + len.next_multiple_of(self.grain)) % self.cycle;
        }
        at
    }

    /// Whether blocks begin at different places.
    #[inline]
    pub(crate) fn varies(&self) -> bool {
        self.cycle > 1
    }

    /// Another one with the same bytes.
    pub(crate) fn again(&self) -> Self {
        let mut buffer = PageBuffer::filled(self.buffer.len(), 0);
        buffer.copy_from_slice(&self.buffer);
        Self { buffer, ..*self }
    }

    /// The longest block.
    pub(crate) fn room(&self) -> usize {
        self.buffer.len() - self.cycle
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl DerefMut for Payload {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

/// Whether something between the two ends may compress what `spec` sends to `peer` (`ADDRESS:PORT`): TCP or UDP that
/// leaves the host, and nothing that encrypts. Requested random bytes vary everywhere.
pub(crate) fn may_be_compressed(spec: &Spec, peer: Option<&str>) -> bool {
    if spec.payload.is_some() {
        return true;
    }
    let encrypts = |framing| matches!(framing, Some(Framing::Tls | Framing::Quic));
    let plain = spec.transport_facts().is_some_and(|facts| facts.ip.is_some() && !encrypts(facts.framing));
    let address = peer.and_then(|peer| peer.parse::<std::net::SocketAddr>().ok());
    plain && address.is_some_and(|address| !address.ip().to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;
    use model::Payload as Requested;

    fn spec(payload: Option<Requested>) -> Spec {
        Spec { payload, ..Spec::new("tcp", Pattern::Stream) }
    }

    /// The first `count` blocks of `len` bytes.
    fn blocks(mut payload: Payload, len: usize, count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|_| {
                let at = payload.next(len);
                payload[at..at + len].to_vec()
            })
            .collect()
    }

    fn of(kind: PayloadKind) -> Option<Requested> {
        Some(Requested { kind, ..Requested::default() })
    }

    #[test]
    fn random_blocks_do_not_repeat_within_the_window_of_a_compressor() {
        for (len, threads) in [(128_usize << 10, 1), (1_472, 4), (1_000, 64)] {
            let count = RANDOM_BYTES / threads / len.next_multiple_of(LINE);
            let sent = blocks(Payload::new(&spec(None), 1 << 17, true, threads), len, count);
            // Every eight bytes on a grid occur once: a match of a compressor would have to be shorter.
            let mut words: Vec<&[u8]> = sent.chunks_exact(8).collect();
            let all = words.len();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), all, "{len}");
        }
    }

    #[test]
    fn two_trials_differ() {
        let of = || blocks(Payload::new(&spec(None), 4096, true, 64), 4096, 1);
        assert_ne!(of(), of());
    }

    #[test]
    fn a_block_is_whole_at_every_length_and_place() {
        for len in [1, 63, 64, 1_472, 65_536] {
            let mut payload = Payload::new(&spec(None), 1 << 16, true, 64);
            assert!((0..20_000).all(|_| payload.next(len) + len <= payload.len()), "{len}");
            assert_eq!(payload.room(), 1 << 16);
        }
    }

    #[test]
    fn within_a_host_all_blocks_are_the_same() {
        let mut payload = Payload::new(&spec(None), 1 << 16, false, 1);
        assert_eq!((payload.next(100), payload.next(100), payload.len()), (0, 0, (1 << 16) + 1));
    }

    #[test]
    fn what_is_requested_is_sent() {
        assert_eq!(blocks(Payload::new(&spec(of(PayloadKind::Zeros)), 10, true, 1), 10, 2), [0; 20]);
        let counted = blocks(Payload::new(&spec(of(PayloadKind::Pattern)), 300, true, 1), 300, 2);
        assert!(counted.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        let file = blocks(Payload::new(&spec(Some(Requested::of_file("a", b"hello"))), 8, true, 1), 8, 3);
        assert_eq!(file, b"hellohellohellohellohell");
        let empty = Requested { kind: PayloadKind::File, ..Requested::default() };
        assert_eq!(blocks(Payload::new(&spec(Some(empty)), 4, true, 1), 4, 1), [0; 4]);
    }

    #[test]
    fn plain_bytes_that_leave_the_host_may_be_compressed() {
        let may = |transport: &str, peer| may_be_compressed(&Spec::new(transport, Pattern::Stream), peer);
        for transport in ["tcp", "mptcp", "udp"] {
            assert!(
                may(transport, Some("192.0.2.1:6280")) && may(transport, Some("[2001:db8::1]:6280")),
                "{transport}"
            );
            assert!(!may(transport, Some("127.0.0.2:6280")) && !may(transport, Some("[::1]:6280")), "{transport}");
            assert!(!may(transport, Some("[::ffff:127.0.0.1]:6280")) && !may(transport, None), "{transport}");
        }
        for transport in ["tls", "quic", "shm", "unix", "memcpy"] {
            assert!(!may(transport, Some("192.0.2.1:6280")), "{transport}");
        }
        assert!(may_be_compressed(&spec(Some(Requested::default())), None), "as requested");
    }
}
