//! A receiver that lets bytes or datagrams gather, where waking it up for each handful holds their sender back.
//!
//! Within one host the sender's own call delivers what it sends and wakes up whoever waits for it, which between virtual cores can
//! cost more than to carry the bytes. Nobody has to wake up a receiver that sleeps by the clock. What that is worth, and whether it
//! is worth anything, is the machine's business: see docs/manual/engine.md, "A receiver that rests".

use std::os::fd::BorrowedFd;
use std::time::Duration;

use model::SocketFacts;

use super::TcpInfo;
use crate::now_ns;

/// How long a receiver rests while bytes or datagrams come quickly.
const READ_DELAY: Duration = Duration::from_nanos(SocketFacts::READ_DELAY_NS);

/// What the read after a rest may take: with several smaller ones the sender meets an awake receiver more often.
pub(crate) const DELAYED_READ_BYTES: usize = 512 << 10;

/// What a read without a rest before it may take at least, whatever the block: in less room no handful shows.
const ROOM: usize = 64 << 10;
/// Less than this in a read is a trickle, after which there is no rest.
const MIN_BURST_BYTES: usize = 32 << 10;
/// The same for a call that takes many datagrams.
const MIN_BURST_DATAGRAMS: usize = 4;
/// The longest round trip at which a rest shows what it does: a sender from farther away that is held back by it, by a window that
/// opens later above all, goes on for longer than a rest.
const NEAR_NS: u64 = 200_000;
/// How long one way of reading is kept up before it is judged: some hundred handfuls.
const WINDOW_NS: u64 = 5_000_000;
/// Windows until the other way is tried again: so many at first, then twice as many after each time in vain, up to a second's.
const SOON: u32 = 4;
const LATEST: u32 = 200;
/// By how much a window falls behind the other way's last one when the machine has changed under it.
const BEHIND: f64 = 1.1;

/// How one connection is read: with rests or without, whichever carried more of late.
pub(super) struct DelayedReads {
    /// Whether the sender is near; not known before the first handful.
    near: Option<bool>,
    /// The socket says how much lies in it.
    counts_waiting: bool,
    /// The way of this window: with rests.
    delaying: bool,
    /// This window is a trial of its way.
    trying: bool,
    /// Windows until the next trial, and how many there will be after it if it is in vain.
    left: u32,
    patience: u32,
    /// When this window began, 0 before the first handful, and the bytes it has had.
    since_ns: u64,
    bytes: u64,
    /// Bytes per ns in the last window without rests, and in the last one with them.
    rates: [f64; 2],
    /// A rest comes before the next read.
    due: bool,
    /// A rest of this window has been looked into.
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

    /// Of datagrams the kernel says neither how far their sender is nor how many lie in the socket; that a rest holds one back who
    /// keeps to what there is room for shows in its window.
    pub(super) fn of_datagrams() -> Self {
        Self { near: Some(true), counts_waiting: false, ..Self::of_bytes() }
    }

    /// How much the next read may take, where `plain` bytes would do without rests.
    #[inline]
    pub(super) fn room(&self, plain: usize) -> usize {
        plain.max(if self.due { DELAYED_READ_BYTES } else { ROOM })
    }

    /// Rests, where that is due.
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
        // As many bytes as before: all that the sender may have outstanding, by its buffer, its congestion window or the receiver's,
        // lies here, and the rest is what holds it back. No window has to show that.
        if waiting() <= before {
            self.rates[1] = 0.0;
            self.give_up();
            self.begin(now_ns());
        }
    }

    /// A read took `count` bytes, and all there were if it `emptied` the socket.
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

    /// A call took `datagrams` of `bytes` in all, and all there were if it `emptied` the socket.
    #[inline]
    pub(super) fn took_datagrams(&mut self, datagrams: usize, bytes: usize, emptied: bool) {
        self.bytes += bytes as u64;
        if emptied && datagrams >= MIN_BURST_DATAGRAMS {
            self.burst_read();
        }
    }

    /// The socket is empty after a handful: a rest comes next, if that is the way of the window that this is in.
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

    /// The way that was tried is no better: back to the other one, for longer than before.
    fn give_up(&mut self) {
        (self.delaying, self.trying) = (!self.delaying, false);
        self.left = self.patience;
        self.patience = (2 * self.patience).min(LATEST);
    }

    fn begin(&mut self, now_ns: u64) {
        (self.since_ns, self.bytes, self.wait_checked) = (now_ns, 0, false);
    }

    /// How often it rested; `None` where it never did.
    pub(super) fn delayed_reads(&self) -> Option<u64> {
        Some(self.delayed_reads).filter(|delayed_reads| *delayed_reads > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    /// Of `windows` windows, the share with rests, where a way carries `rates(window)` bytes per ns: without rests, with them.
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
    fn a_way_of_reading_that_gets_slower_is_left_at_once() {
        // With rests it is three times slower from the 300th window on, for 50.
        let with = share(350, |window| if window < 300 { [3.0, 4.0] } else { [3.0, 1.0] });
        assert!((0.80..0.88).contains(&with), "{with}");
        // And what gets better meanwhile is found.
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

        // A sender that stands still, however much of it lies here, is read without rests for the next windows.
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
            let mut delayed =
                DelayedReads { delaying: true, trying: true, since_ns: now_ns(), ..DelayedReads::of_datagrams() };
            delayed.took_datagrams(datagrams, bytes, emptied);
            delayed.delay(socket.as_fd());
            assert!(delayed.delaying, "nothing that the socket says ends the window");
            delayed.delayed_reads()
        };
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS, 64 * MIN_BURST_DATAGRAMS, true), Some(1));
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS, 64 * MIN_BURST_DATAGRAMS, false), None, "there is more to take");
        assert_eq!(delayed_reads(MIN_BURST_DATAGRAMS - 1, 60_000, true), None, "a trickle");

        // What comes with rests and without is compared: here they bring half as much.
        let mut delayed = DelayedReads::of_datagrams();
        for window in 0..20 {
            let bytes = if delayed.delaying { 10_000_000 } else { 20_000_000 };
            delayed.took_datagrams(100, bytes, true);
            delayed.since_ns -= WINDOW_NS;
            assert!(!delayed.delaying || delayed.trying, "window {window}");
        }
        assert!(delayed.rates[1] > 0.0 && delayed.rates[1] < delayed.rates[0], "both were tried");
    }
}
