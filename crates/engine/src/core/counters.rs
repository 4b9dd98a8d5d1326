//! A flow's counters: written by its one thread with plain stores, read by the watching thread.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Interval;
use model::tally::Window;

/// One flow's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) calls_sent: AtomicU64,
    pub(crate) calls_received: AtomicU64,
    pub(crate) blocks_sent: AtomicU64,
    pub(crate) transactions: AtomicU64,
    pub(crate) datagrams_sent: AtomicU64,
    pub(crate) datagrams_received: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) reordered: AtomicU64,
    pub(crate) replies_lost: AtomicU64,
    /// Datagrams up to the highest number that arrived.
    numbers: AtomicU64,
    /// Jitter in sixteenths of a nanosecond, plus 1; 0 while it is unknown.
    jitter: AtomicU64,
    first_sent_ns: AtomicU64,
    last_sent_ns: AtomicU64,
    first_arrival_ns: AtomicU64,
    last_arrival_ns: AtomicU64,
    /// Of `bytes_received`, those that had arrived at `first_arrival_ns`; of a paced stream those before its first block.
    first_bytes: AtomicU64,
    /// A paced sender's last block so far: when it was begun, and `bytes_sent` before it.
    begun_ns: AtomicU64,
    begun_bytes: AtomicU64,
    /// A paced stream's last block so far: when its first byte arrived, and `bytes_received` before it.
    beat_ns: AtomicU64,
    beat_bytes: AtomicU64,
    /// Time of a paced sender's schedule that was given up: because its thread did not run, because the transport took
    /// nothing.
    asleep_ns: AtomicU64,
    blocked_ns: AtomicU64,
}

/// Adds to a counter that only this thread writes: a load and a store, no locked instruction.
#[inline]
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

impl Counters {
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.bytes_sent, bytes as u64);
        add(&self.calls_sent, 1);
    }

    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        add(&self.bytes_received, bytes as u64);
        add(&self.calls_received, 1);
    }

    /// The first payload byte is about to be sent; later calls in the same leg change nothing.
    pub(crate) fn start_sending(&self, now_ns: u64) {
        if self.first_sent_ns.load(Ordering::Relaxed) == 0 {
            self.first_sent_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// The last payload byte so far was sent.
    pub(crate) fn stop_sending(&self, now_ns: u64) {
        self.last_sent_ns.store(now_ns, Ordering::Relaxed);
    }

    /// A paced sender begins a block now, after all that it has sent.
    #[inline]
    pub(crate) fn begin_block(&self, now_ns: u64) {
        self.begun_ns.store(now_ns, Ordering::Relaxed);
        self.begun_bytes.store(self.bytes_sent.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// A paced sender gives up `ns` of its schedule: its thread did not run in time, or (`blocked`) the transport took
    /// nothing in that time.
    pub(crate) fn give_up(&self, ns: u64, blocked: bool) {
        add(if blocked { &self.blocked_ns } else { &self.asleep_ns }, ns);
    }

    /// An interrupted sender stopped now.
    pub(crate) fn settle(&self, now_ns: u64) {
        if self.first_sent_ns.load(Ordering::Relaxed) > 0 && self.last_sent_ns.load(Ordering::Relaxed) == 0 {
            self.stop_sending(now_ns);
        }
    }

    /// Payload, already counted, arrived at `now_ns`.
    #[inline]
    pub(crate) fn arrived(&self, now_ns: u64) {
        if self.first_arrival_ns.load(Ordering::Relaxed) == 0 {
            self.begin_arrivals(now_ns);
        }
        self.last_arrival_ns.store(now_ns, Ordering::Relaxed);
    }

    fn begin_arrivals(&self, now_ns: u64) {
        self.first_arrival_ns.store(now_ns, Ordering::Relaxed);
        self.first_bytes.store(self.bytes_received.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The first byte of a paced stream's block arrived at `now_ns`, and with it the `of_block` last ones of the bytes
    /// already counted. What came before it is the basis of the rate: it was sent at the sender's rate, while a block
    /// itself arrives at that of the path. Goes before [`arrived`](Self::arrived).
    #[inline]
    pub(crate) fn beat(&self, now_ns: u64, of_block: u64) {
        let before = self.bytes_received.load(Ordering::Relaxed).wrapping_sub(of_block);
        if self.first_arrival_ns.load(Ordering::Relaxed) == 0 {
            self.first_arrival_ns.store(now_ns, Ordering::Relaxed);
            self.first_bytes.store(before, Ordering::Relaxed);
        }
        self.beat_ns.store(now_ns, Ordering::Relaxed);
        self.beat_bytes.store(before, Ordering::Relaxed);
    }

    /// When payload first arrived in this leg.
    pub(crate) fn first_arrival(&self) -> Option<u64> {
        Some(self.first_arrival_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }

    /// The receiver's account of numbered datagrams: all up to the highest number, and the jitter of their arrivals in sixteenths of
    /// a nanosecond, if they carry times.
    #[inline]
    pub(crate) fn numbered(&self, numbers: u64, jitter: Option<u64>) {
        self.numbers.store(numbers, Ordering::Relaxed);
        if let Some(jitter) = jitter {
            self.jitter.store(jitter + 1, Ordering::Relaxed);
        }
    }

    /// Clears the times for the next leg; the counts continue.
    pub(crate) fn forget_times(&self) {
        let times = [
            &self.first_sent_ns,
            &self.last_sent_ns,
            &self.first_arrival_ns,
            &self.last_arrival_ns,
            &self.begun_ns,
            &self.beat_ns,
        ];
        times.iter().for_each(|time| time.store(0, Ordering::Relaxed));
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
            calls_sent: read(&self.calls_sent),
            calls_received: read(&self.calls_received),
            blocks_sent: read(&self.blocks_sent),
            transactions: read(&self.transactions),
            datagrams_sent: read(&self.datagrams_sent),
            datagrams_received: read(&self.datagrams_received),
            duplicates: read(&self.duplicates),
            reordered: read(&self.reordered),
            replies_lost: read(&self.replies_lost),
            numbers: read(&self.numbers),
            jitter: read(&self.jitter),
            sent_ns: (read(&self.first_sent_ns), read(&self.last_sent_ns)),
            arrival_ns: (read(&self.first_arrival_ns), read(&self.last_arrival_ns)),
            first_bytes: read(&self.first_bytes),
            begun: (read(&self.begun_ns), read(&self.begun_bytes)),
            beat: (read(&self.beat_ns), read(&self.beat_bytes)),
            given_up_ns: (read(&self.asleep_ns), read(&self.blocked_ns)),
        }
    }
}

/// The counters at one moment. Times are (first, last) in ns of the monotonic clock, 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Snapshot {
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) calls_sent: u64,
    pub(crate) calls_received: u64,
    pub(crate) blocks_sent: u64,
    pub(crate) transactions: u64,
    pub(crate) datagrams_sent: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) replies_lost: u64,
    /// Datagrams up to the highest number that arrived.
    pub(crate) numbers: u64,
    /// As in the counters; of several flows the largest.
    pub(crate) jitter: u64,
    pub(crate) sent_ns: (u64, u64),
    pub(crate) arrival_ns: (u64, u64),
    /// Of `bytes_received`, those that had arrived at the first arrival; of several flows those of the first one.
    pub(crate) first_bytes: u64,
    /// A paced sender's last block: when it was begun (0 for none), and `bytes_sent` before it; of several flows unknown.
    pub(crate) begun: (u64, u64),
    /// A paced stream's last block: when its first byte arrived (0 for none), and `bytes_received` before it; likewise.
    pub(crate) beat: (u64, u64),
    /// Time of the schedule that a paced sender gave up, ns: its thread did not run, the transport took nothing.
    pub(crate) given_up_ns: (u64, u64),
}

impl Snapshot {
    /// What a paced sender sent from its first block, or from the last one of an `earlier` snapshot, to its last one.
    pub(crate) fn begun_since(&self, earlier: Option<&Self>) -> Window {
        let (from_ns, from_bytes) =
            earlier.map(|earlier| earlier.begun).filter(|begun| begun.0 > 0).unwrap_or((self.sent_ns.0, 0));
        let (ns, bytes) = self.begun;
        Window { bytes: bytes.saturating_sub(from_bytes), ns: ns.saturating_sub(from_ns) }
    }

    /// What of a paced stream arrived, likewise. Blocks that are not followed byte by byte count when they are there.
    pub(crate) fn beats_since(&self, earlier: Option<&Self>) -> Window {
        let last = |one: &Self| if one.beat.0 > 0 { one.beat } else { (one.arrival_ns.1, one.bytes_received) };
        let from = earlier.map(last).filter(|beat| beat.0 > 0).unwrap_or((self.arrival_ns.0, self.first_bytes));
        let (ns, bytes) = last(self);
        Window { bytes: bytes.saturating_sub(from.1), ns: ns.saturating_sub(from.0) }
    }

    /// What came since `earlier`, as an entry of the series.
    pub(crate) fn since(&self, earlier: &Self, start_ns: u64, end_ns: u64) -> Interval {
        Interval {
            start_ns,
            end_ns,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
            bytes_received: self.bytes_received - earlier.bytes_received,
            transactions: self.transactions - earlier.transactions,
        }
    }

    /// Jitter of the arrivals, ns.
    pub(crate) fn jitter(&self) -> Option<u64> {
        self.jitter.checked_sub(1).map(|sixteenths| sixteenths / 16)
    }

    /// The counts since `earlier`; the times are this one's.
    pub(crate) fn less(mut self, earlier: &Self) -> Self {
        self.bytes_sent -= earlier.bytes_sent;
        self.bytes_received -= earlier.bytes_received;
        self.first_bytes = self.first_bytes.saturating_sub(earlier.bytes_received);
        self.beat.1 = self.beat.1.saturating_sub(earlier.bytes_received);
        self.begun.1 = self.begun.1.saturating_sub(earlier.bytes_sent);
        self.given_up_ns.0 -= earlier.given_up_ns.0;
        self.given_up_ns.1 -= earlier.given_up_ns.1;
        self.calls_sent -= earlier.calls_sent;
        self.calls_received -= earlier.calls_received;
        self.blocks_sent -= earlier.blocks_sent;
        self.transactions -= earlier.transactions;
        self.datagrams_sent -= earlier.datagrams_sent;
        self.datagrams_received -= earlier.datagrams_received;
        self.duplicates -= earlier.duplicates;
        self.reordered -= earlier.reordered;
        self.replies_lost -= earlier.replies_lost;
        self
    }
}

impl Add for Snapshot {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let first = |one: &Self| if one.arrival_ns.0 > 0 { one.arrival_ns.0 } else { u64::MAX };
        let span = |a: (u64, u64), b: (u64, u64)| {
            let first = [a.0, b.0].into_iter().filter(|ns| *ns > 0).min().unwrap_or(0);
            (first, a.1.max(b.1))
        };
        Self {
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
            calls_sent: self.calls_sent + other.calls_sent,
            calls_received: self.calls_received + other.calls_received,
            blocks_sent: self.blocks_sent + other.blocks_sent,
            transactions: self.transactions + other.transactions,
            datagrams_sent: self.datagrams_sent + other.datagrams_sent,
            datagrams_received: self.datagrams_received + other.datagrams_received,
            duplicates: self.duplicates + other.duplicates,
            reordered: self.reordered + other.reordered,
            replies_lost: self.replies_lost + other.replies_lost,
            numbers: self.numbers + other.numbers,
            jitter: self.jitter.max(other.jitter),
            sent_ns: span(self.sent_ns, other.sent_ns),
            arrival_ns: span(self.arrival_ns, other.arrival_ns),
            begun: (0, 0),
            beat: (0, 0),
            given_up_ns: (self.given_up_ns.0 + other.given_up_ns.0, self.given_up_ns.1 + other.given_up_ns.1),
            first_bytes: if first(&self) <= first(&other) { self.first_bytes } else { other.first_bytes },
        }
    }
}
