//! A receiver that delays its reads so that bytes or datagrams accumulate, because a wake-up for each small burst
//! slows the sender down.
//!
//! Within one host the sender's own call delivers the data and wakes the waiting receiver, which between virtual cores
//! can cost more than the transfer itself. A receiver that sleeps on a timer needs no wake-up. Whether this helps, and
//! how much, depends on the machine: see docs/notes/engine.md.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use model::SocketFacts;

use super::tcp_info::TcpInfo;
use crate::core::now_ns;

/// The delay before a read while bytes or datagrams arrive quickly.
const READ_DELAY: Duration = Duration::from_nanos(SocketFacts::READ_DELAY_NS);

/// Room of a read after a delay: with several smaller reads the sender would meet an awake receiver more often.
pub(crate) const DELAYED_READ_BYTES: usize = 512 << 10;

/// Minimum room of a read without a delay, at any block size: with less, no burst shows.
const ROOM: usize = 64 << 10;
/// Reads of fewer bytes are a trickle and are followed by no delay.
const MIN_BURST_BYTES: usize = 32 << 10;
/// The same in datagrams, for a call that takes many.
const MIN_BURST_DATAGRAMS: usize = 4;
/// The longest round trip at which a delay shows its effect at once: a farther sender that it slows down, above all by
/// a window that opens later, goes on for longer than a delay.
const NEAR_NS: u64 = 200_000;
/// How long one way of reading is used before its rate is compared: some hundred bursts.
const WINDOW_NS: u64 = 5_000_000;
/// Windows until the other way is tried again: first this many, then twice as many after each unsuccessful trial, up
/// to a second.
const SOON: u32 = 4;
const LATEST: u32 = 200;
/// Ratio of the other way's last rate to this window's above which conditions on the machine have changed.
const BEHIND: f64 = 1.1;

/// How one connection is read: with or without delays, whichever had the higher rate recently.
pub(super) struct DelayedReads {
    /// Whether the sender is near; unknown before the first burst.
    near: Option<bool>,
    /// The socket reports how many bytes wait in it.
    counts_waiting: bool,
    /// This window uses delays.
    delaying: bool,
    /// This window is a trial of its way of reading.
    trying: bool,
    /// Windows until the next trial, and the number after that if it fails.
    left: u32,
    patience: u32,
    /// Start of this window (0 before the first burst), and its bytes so far.
    since_ns: u64,
    bytes: u64,
    /// Bytes per ns in the last window without delays, and in the last one with them.
    rates: [f64; 2],
    /// A delay comes before the next read.
    due: bool,
    /// A delay of this window has been checked for its effect on the sender.
    wait_checked: bool,
    delayed_reads: u64,
}

impl DelayedReads {
    pub(super) fn of_bytes() -> Self {
        Self {
            near: None,
            counts_waiting: true,
            delaying: false,
            trying: false,
            left: 1,
            patience: SOON,
            since_ns: 0,
            bytes: 0,
            rates: [0.0; 2],
            due: false,
            wait_checked: false,
            delayed_reads: 0,
        }
    }

    /// For datagrams the kernel reports neither the distance of the sender nor the number waiting. If a delay slows
    /// down a sender that is paced to the receiver, the rate of its window shows it.
    pub(super) fn of_datagrams() -> Self {
        Self { near: Some(true), counts_waiting: false, ..Self::of_bytes() }
    }

    /// Room of the next read, if `plain` bytes would do without delays.
    #[inline]
    pub(super) fn room(&self, plain: usize) -> usize {
        plain.max(if self.due { DELAYED_READ_BYTES } else { ROOM })
    }

    /// Sleeps, if a delay is due.
    #[inline]
    pub(super) fn delay(&mut self, socket: BorrowedFd<'_>) {
        if !std::mem::take(&mut self.due) {
            return;
        }
        self.delayed_reads += 1;
        std::thread::sleep(READ_DELAY);
        if !self.counts_waiting || std::mem::replace(&mut self.wait_checked, true) {
            return;
        }
        let waiting = || rustix::io::ioctl_fionread(socket).unwrap_or(0);
        let before = waiting();
        std::thread::sleep(READ_DELAY);
        // No more bytes than before: everything that the sender may have outstanding, by its buffer, its congestion
        // window or the receiver's, is here, and the delay itself blocks it. No window needs to show that.
        if waiting() <= before {
            self.rates[1] = 0.0;
            self.give_up();
            self.begin(now_ns());
        }
    }

    /// A read took `count` bytes; `emptied` if they were all there were.
    #[inline]
    pub(super) fn took(&mut self, socket: BorrowedFd<'_>, count: usize, emptied: bool) {
        self.bytes += count as u64;
        if !emptied || count < MIN_BURST_BYTES || self.near == Some(false) {
            return;
        }
        if self.near.is_none() {
            let rtt_ns = TcpInfo::of(socket).and_then(|info| info.min_rtt_ns());
            self.near = Some(rtt_ns.is_some_and(|rtt_ns| rtt_ns <= NEAR_NS));
        }
        self.burst_read();
    }

    /// A call took `datagrams` of `bytes` in all; `emptied` if they were all there were.
    #[inline]
    pub(super) fn took_datagrams(&mut self, datagrams: usize, bytes: usize, emptied: bool) {
        self.bytes += bytes as u64;
        if emptied && datagrams >= MIN_BURST_DATAGRAMS {
            self.burst_read();
        }
    }

    /// The socket is empty after a burst: a delay comes next, if this window uses delays.
    fn burst_read(&mut self) {
        let now_ns = now_ns();
        if self.since_ns == 0 {
            self.begin(now_ns);
        } else if now_ns - self.since_ns >= WINDOW_NS {
            self.judge(now_ns);
        }
        self.due = self.delaying;
    }

    /// Ends a window and chooses the way of the next one.
    fn judge(&mut self, now_ns: u64) {
        let rate = self.bytes as f64 / (now_ns - self.since_ns).max(1) as f64;
        let other = self.rates[usize::from(!self.delaying)];
        self.rates[usize::from(self.delaying)] = rate;
        self.left = self.left.saturating_sub(1);
        if std::mem::take(&mut self.trying) {
            if rate < other {
                self.give_up();
            } else {
                (self.left, self.patience) = (SOON, SOON);
            }
        } else if self.left == 0 || rate * BEHIND < other {
            (self.delaying, self.trying) = (!self.delaying, true);
        }
        self.begin(now_ns);
    }

    /// The tried way is no better: back to the other one, for longer than before.
    fn give_up(&mut self) {
        (self.delaying, self.trying) = (!self.delaying, false);
        self.left = self.patience;
        self.patience = (2 * self.patience).min(LATEST);
    }

    fn begin(&mut self, now_ns: u64) {
        (self.since_ns, self.bytes, self.wait_checked) = (now_ns, 0, false);
    }

    /// Number of delays; `None` if there were none.
    pub(super) fn delayed_reads(&self) -> Option<u64> {
        Some(self.delayed_reads).filter(|delayed_reads| *delayed_reads > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    /// Of `windows` windows, the share with delays, if `rates(window)` are the bytes per ns without and with them.
    fn share(windows: u32, rates: impl Fn(u32) -> [f64; 2]) -> f64 {
        let mut delayed = DelayedReads::of_bytes();
        let delaying = (1..=windows).filter(|window| {
            let delaying = delayed.delaying;
            delayed.bytes = (rates(*window)[usize::from(delaying)] * WINDOW_NS as f64) as u64;
            delayed.judge(delayed.since_ns + WINDOW_NS);
            delaying
        });
        delaying.count() as f64 / f64::from(windows)
    }

    #[test]
    fn the_faster_way_of_reading_is_used() {
        let with = share(1_000, |_| [3.0, 4.0]);
        assert!(with > 0.97, "{with}");
        let without = share(1_000, |_| [4.0, 3.0]);
        assert!(without < 0.015, "{without}");
    }

    #[test]
    fn a_way_of_reading_that_gets_slower_is_abandoned_at_once() {
        // With delays it is three times slower for 50 windows from the 300th on.
        let with = share(350, |window| if window < 300 { [3.0, 4.0] } else { [3.0, 1.0] });
        assert!((0.80..0.88).contains(&with), "{with}");
        // An improvement is found as well.
        let with = share(1_000, |window| if window < 300 { [4.0, 3.0] } else { [3.0, 4.0] });
        assert!((0.5..0.71).contains(&with), "{with}");
    }

    #[test]
    fn only_a_burst_from_a_near_sender_that_empties_the_socket_is_followed_by_a_delay() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let delaying =
            |near| DelayedReads { near, delaying: true, trying: true, since_ns: now_ns(), ..DelayedReads::of_bytes() };
        let room = |near, count, emptied| {
            let mut delayed = delaying(near);
            delayed.took(socket.as_fd(), count, emptied);
            delayed.room(1 << 17)
        };
        assert_eq!(room(Some(true), 1 << 16, true), DELAYED_READ_BYTES);
        assert_eq!(room(Some(true), 1 << 16, false), 1 << 17, "there is more to take");
        assert_eq!(room(Some(true), 1_000, true), 1 << 17, "a trickle");
        assert_eq!(room(Some(false), 1 << 16, true), 1 << 17, "from far away");

        // A sender that is blocked is read without delays for the next windows, however many bytes wait here.
        (&sender).write_all(&[0; 65_536]).unwrap();
        let mut delayed = delaying(Some(true));
        delayed.took(socket.as_fd(), 1 << 16, true);
        delayed.delay(socket.as_fd());
        assert_eq!(
            (delayed.delayed_reads(), delayed.delaying, delayed.left, delayed.patience),
            (Some(1), false, SOON, 2 * SOON)
        );
    }

    #[test]
    fn a_burst_of_datagrams_that_empties_the_socket_is_followed_by_a_delay() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let delayed_reads = |datagrams, bytes, emptied| {
            let mut delayed = DelayedReads { delaying: true, trying: true, ..DelayedReads::of_datagrams() };
            delayed.took_datagrams(datagrams, bytes, emptied);
            delayed.delay(socket.as_fd());
            assert!(delayed.delaying, "nothing that the socket says ends the window");
            delayed.delayed_reads()
        };
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS, 64 * MIN_BURST_DATAGRAMS, true), Some(1));
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS, 64 * MIN_BURST_DATAGRAMS, false), None, "there is more to take");
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS - 1, 60_000, true), None, "a trickle");

        // Rates with and without delays are compared: here delays halve the rate.
        let mut delayed = DelayedReads::of_datagrams();
        for window in 0..20 {
            delayed.bytes = if delayed.delaying { 10_000_000 } else { 20_000_000 };
            delayed.judge(delayed.since_ns + WINDOW_NS);
            assert!(!delayed.delaying || delayed.trying, "window {window}");
        }
        assert!(delayed.rates[1] > 0.0 && delayed.rates[1] < delayed.rates[0], "both were tried");
    }
}
