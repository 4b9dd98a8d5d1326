//! A flow's counters: written by its one thread with plain stores, read by the watching thread.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use model::Interval;

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
    /// Of `bytes_received`, those that had arrived at `first_arrival_ns`.
    first_bytes: AtomicU64,
    /// When a paced sender began its last block, and how many of `bytes_sent` belong to it.
    last_begun_ns: AtomicU64,
    last_bytes: AtomicU64,
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

    /// A paced sender began its last block at `now_ns`; `bytes` of it were sent.
    pub(crate) fn begun_last(&self, now_ns: u64, bytes: usize) {
        self.last_begun_ns.store(now_ns, Ordering::Relaxed);
        self.last_bytes.store(bytes as u64, Ordering::Relaxed);
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

    /// The first block is complete: the arrival time starts here, at `now_ns`, because the bytes of the block before
    /// it arrived at the path's rate and not at the sender's.
    pub(crate) fn begin_arrivals(&self, now_ns: u64) {
        self.first_arrival_ns.store(now_ns, Ordering::Relaxed);
        self.first_bytes.store(self.bytes_received.load(Ordering::Relaxed), Ordering::Relaxed);
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
            &self.last_begun_ns,
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
            last_begun_ns: read(&self.last_begun_ns),
            last_bytes: read(&self.last_bytes),
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
    /// When a paced flow began its last block (0 if unknown), and how many of `bytes_sent` belong to it.
    pub(crate) last_begun_ns: u64,
    pub(crate) last_bytes: u64,
}

impl Snapshot {
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
            last_begun_ns: 0,
            last_bytes: 0,
            first_bytes: if first(&self) <= first(&other) { self.first_bytes } else { other.first_bytes },
        }
    }
}
