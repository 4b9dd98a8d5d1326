//! Two byte rings in memory shared between two processes, one for each direction.
//!
//! The cost of a round trip through shared memory is the cache lines that move between cores. Each end therefore
//! publishes everything that the other needs in one line that it alone writes (`Word`): how much it pushed, how much
//! it popped, and the bytes of a small message. The other end polls only that line, so a small message is one line
//! transfer, and its answer, which also acknowledges the message, another.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use rustix::thread::futex;
use rustix::time::Timespec;

use super::segment::{End, INLINE, Segment};

/// One end of two rings: it pushes into one and pops from the other.
pub(crate) struct SharedRings {
    segment: Segment,
    /// Positions. This end's words in the segment follow them and are never read back.
    pushed: u64,
    popped: u64,
    /// `popped` was not published yet.
    owes: bool,
    /// The other end's `popped` at the last read.
    seen: u64,
    /// Length of the last message, if it went beside the ring.
    inlined: usize,
}

impl SharedRings {
    /// The end that makes the segment, with two rings of `capacity`, which must be a power of two.
    pub(crate) fn create(capacity: usize) -> io::Result<Self> {
        Segment::create(capacity).map(Self::new)
    }

    /// The other end.
    pub(crate) fn join(fd: OwnedFd, capacity: usize) -> io::Result<Self> {
        Segment::join(fd, capacity).map(Self::new)
    }

    fn new(segment: Segment) -> Self {
        Self { segment, pushed: 0, popped: 0, owes: false, seen: 0, inlined: 0 }
    }

    /// The segment, to be passed to the other process.
    pub(crate) fn fd(&self) -> &OwnedFd {
        self.segment.fd()
    }

    #[inline]
    fn own(&self) -> &End {
        self.segment.own()
    }

    #[inline]
    fn other(&self) -> &End {
        self.segment.other()
    }

    /// Bytes that fit into the outgoing ring, as far as this end knows.
    #[inline]
    fn room(&self) -> usize {
        // A misbehaving peer can write a wrong value; the subtraction then yields no room.
        self.segment.capacity.saturating_sub(self.pushed.wrapping_sub(self.seen) as usize)
    }

    /// Copies as much of `bytes` into the outgoing ring as fits; 0 when it is full.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        // The last read of the other end, which in a round trip is the one that found its message, showed that it took
        // everything.
        if self.seen == self.pushed && bytes.len() <= INLINE {
            self.push_inline(bytes);
            return bytes.len();
        }
        self.push_ring(bytes)
    }

    #[inline]
    fn push_inline(&mut self, bytes: &[u8]) {
        let word = &self.own().word;
        // SAFETY: at most INLINE bytes. The other end does not read them now: it took all that was pushed, and finds nothing new
        // before the release store of `pushed`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), word.bytes.get().cast(), bytes.len()) };
        let pushed = self.pushed.wrapping_add(bytes.len() as u64);
        word.inline.store(tag(pushed, bytes.len()), Ordering::Relaxed);
        self.inlined = bytes.len();
        self.advance(pushed);
    }

    #[inline]
    fn push_ring(&mut self, bytes: &[u8]) -> usize {
        if self.room() < bytes.len() {
            self.seen = self.other().word.popped.load(Ordering::Acquire);
        }
        let count = self.room().min(bytes.len());
        if count > 0 {
            if self.inlined > 0 {
                self.spill();
            }
            // SAFETY: `count` bytes behind `pushed` are free: the other end has read what was there, and does not read what is put
            // there before the release store of `pushed`.
            unsafe { self.fill(self.pushed, bytes.as_ptr(), count) };
            self.advance(self.pushed.wrapping_add(count as u64));
        } else if self.owes {
            self.settle();
        }
        count
    }

    /// Copies the message that went beside the ring into it as well, because the other end may not have read it yet
    /// and is about to see that its bytes are in the ring.
    #[cold]
    fn spill(&mut self) {
        let count = std::mem::take(&mut self.inlined);
        let from = self.own().word.bytes.get().cast::<u8>();
        // SAFETY: this end alone writes those bytes; the ring was empty when they were pushed, so their positions in it are free, or
        // were read since.
        unsafe { self.fill(self.pushed.wrapping_sub(count as u64), from, count) };
    }

    /// Copies `count` bytes, at most the capacity, to position `at` of the outgoing ring.
    ///
    /// # Safety
    /// `from` has as many, and the other end reads none of these positions.
    #[inline]
    unsafe fn fill(&self, at: u64, from: *const u8, count: usize) {
        let at = at as usize & (self.segment.capacity - 1);
        let first = count.min(self.segment.capacity - at);
        // SAFETY: `at + first <= capacity` and `count - first <= at`, both inside this ring; the rest is the caller's word.
        unsafe {
            std::ptr::copy_nonoverlapping(from, self.segment.outgoing.as_ptr().add(at), first);
            if first < count {
                std::ptr::copy_nonoverlapping(from.add(first), self.segment.outgoing.as_ptr(), count - first);
            }
        }
    }

    /// Copies what there is in the incoming ring, at most `into.len()`; 0 when it is empty.
    ///
    /// The pop is published with the next push, or by the next call of this function: a separate store would take back
    /// the cache line that the other end polls, just when the answer is about to be put there.
    #[inline]
    pub(crate) fn pop(&mut self, into: &mut [u8]) -> usize {
        if self.owes {
            self.settle();
        }
        let word = &self.other().word;
        let pushed = word.pushed.load(Ordering::Acquire);
        let filled = pushed.wrapping_sub(self.popped) as usize;
        // An empty ring is polled repeatedly: nothing is stored, so that its lines stay where they are.
        if filled == 0 {
            return 0;
        }
        // The message is read at once: its line moves soon if the other end goes on.
        let seen = word.popped.load(Ordering::Acquire);
        let held = (word.inline.load(Ordering::Relaxed) ^ tag(pushed, 0)) as usize;
        let count = if held <= INLINE && filled <= held {
            let count = filled.min(into.len());
            let bytes = word.bytes.get().cast::<u8>();
            // SAFETY: `held - filled + count <= INLINE`. The other end does not write these bytes before it has seen the release
            // store of a `popped` that covers them.
            unsafe { std::ptr::copy_nonoverlapping(bytes.add(held - filled), into.as_mut_ptr(), count) };
            count
        } else {
            self.drain(filled, into)
        };
        self.seen = seen;
        self.popped = self.popped.wrapping_add(count as u64);
        self.owes = count > 0;
        count
    }

    /// Copies from the incoming ring, in which there are `filled` bytes.
    #[inline]
    fn drain(&self, filled: usize, into: &mut [u8]) -> usize {
        let count = filled.min(self.segment.capacity).min(into.len());
        let at = self.popped as usize & (self.segment.capacity - 1);
        let first = count.min(self.segment.capacity - at);
        // SAFETY: `at + first <= capacity` and `count - first <= at`, both inside this ring; the other end does not overwrite these
        // bytes before it has seen the release store of `popped`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.segment.incoming.as_ptr().add(at), into.as_mut_ptr(), first);
            if first < count {
                std::ptr::copy_nonoverlapping(
                    self.segment.incoming.as_ptr(),
                    into.as_mut_ptr().add(first),
                    count - first,
                );
            }
        }
        count
    }

    /// Publishes everything up to `pushed`, and with it what was popped.
    #[inline]
    fn advance(&mut self, pushed: u64) {
        self.pushed = pushed;
        // A sender's stores wait for the cache line that the receiver polls: no more stores than necessary.
        if self.owes {
            self.owes = false;
            self.own().word.popped.store(self.popped, Ordering::Release);
        }
        self.own().word.pushed.store(pushed, Ordering::Release);
        self.alert();
    }

    /// Publishes what was popped.
    #[inline]
    fn settle(&mut self) {
        self.own().word.popped.store(self.popped, Ordering::Release);
        self.owes = false;
        self.alert();
    }

    /// Wakes the other end if it sleeps, after a position was stored.
    ///
    /// An end that sleeps sets `sleeps`, then reads the positions a last time; this end stores its positions, then
    /// reads `sleeps`. With a full fence between store and load at both, the two loads cannot both miss the other's
    /// store: either the sleeper sees the positions and stays awake, or it is woken. Without the fences both might,
    /// because a load may overtake an earlier store to another location.
    ///
    /// A spinning peer needs no fence here. A peer that stops spinning at this very moment may miss its wake-up: it
    /// polls for some microseconds before it sleeps, in which the store arrives, and otherwise sleeps until its limit.
    #[inline]
    fn alert(&self) {
        let state = &self.other().state;
        if state.spins.load(Ordering::Relaxed) == 0 {
            fence(Ordering::SeqCst);
            if state.sleeps.load(Ordering::Relaxed) != 0 {
                self.wake();
            }
        }
    }

    /// Wakes the other end. `sleeps` is cleared before the count changes: an end that goes to sleep again in between
    /// has read the old count, which keeps it awake, and the flag of one that does so later remains set.
    #[cold]
    fn wake(&self) {
        let state = &self.other().state;
        state.sleeps.store(0, Ordering::SeqCst);
        state.wakes.fetch_add(1, Ordering::SeqCst);
        // Not PRIVATE: the sleeper is another process.
        let _ = futex::wake(&state.wakes, futex::Flags::empty(), 1);
    }

    /// Publishes whether this side ever sleeps: the other side skips the check for one that spins.
    pub(crate) fn spin(&self, on: bool) {
        self.own().state.spins.store(u32::from(on), Ordering::SeqCst);
    }

    /// Announces that nothing more will be pushed.
    pub(crate) fn finish(&mut self) {
        self.settle();
        self.own().state.finished.store(1, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the other side finished and everything it pushed was popped.
    pub(crate) fn at_end(&self) -> bool {
        self.other().state.finished.load(Ordering::SeqCst) != 0 && self.empty()
    }

    fn empty(&self) -> bool {
        self.other().word.pushed.load(Ordering::SeqCst) == self.popped
    }

    /// Sleeps until the incoming ring has bytes or ended, at most `limit_ns`. What was popped must have been published: a `pop`
    /// that found nothing did.
    pub(crate) fn wait_data(&self, limit_ns: u64) {
        self.sleep(limit_ns, || !self.empty() || self.other().state.finished.load(Ordering::SeqCst) != 0);
    }

    /// Sleeps until the outgoing ring has room, at most `limit_ns`. What was popped must have been published: a `push` that
    /// found no room did.
    pub(crate) fn wait_space(&self, limit_ns: u64) {
        let taken = || self.other().word.popped.load(Ordering::SeqCst);
        self.sleep(limit_ns, || self.pushed.wrapping_sub(taken()) < self.segment.capacity as u64);
    }

    /// Sleeps until woken, unless it is `ready`; see `alert` for the order of the stores.
    fn sleep(&self, limit_ns: u64, ready: impl Fn() -> bool) {
        debug_assert!(!self.owes, "the other end may wait for what was popped");
        let state = &self.own().state;
        let seen = state.wakes.load(Ordering::SeqCst);
        state.sleeps.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !ready() {
            let limit =
                Timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
            let _ = futex::wait(&state.wakes, futex::Flags::empty(), seen, Some(&limit));
        }
        state.sleeps.store(0, Ordering::SeqCst);
    }
}

impl Drop for SharedRings {
    fn drop(&mut self) {
        // The peer must not wait for bytes that will never come.
        self.finish();
    }
}

/// The value of `Word::inline` after a message of `length` bytes that ends at `pushed`.
#[inline]
fn tag(pushed: u64, length: usize) -> u64 {
    pushed << 8 | length as u64
}

#[cfg(test)]
mod tests;
