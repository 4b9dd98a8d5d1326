//! Two byte rings in memory shared between two processes, one for each direction.
//!
//! The cost of a round trip through shared memory is the cache lines that move between cores. Each end therefore
//! publishes everything that the other needs in one line that it alone writes (`Word`): how much it pushed, how much
//! it popped, and the bytes of a small message. The other end polls only that line, so a small message is one line
//! transfer, and its answer, which also acknowledges the message, another.
//!
//! The other process may write anything anywhere in the segment, at any time. Each position is therefore read once and
//! limited before it is used, and bytes are only copied (`memory.rs`): what is wrong in the segment makes wrong bytes, and
//! no access beyond it.

use std::io;
use std::os::fd::OwnedFd;

use super::ends::{End, INLINE};
use super::memory::{Ordering, fence, read_shared, write_shared};
use super::segment::Segment;

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
        // A misbehaving peer can write a wrong value; the subtraction then yields no room, or at most all of it.
        self.segment.outgoing().len().saturating_sub(self.pushed.wrapping_sub(self.seen) as usize)
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
        // The other end does not read them now: it took all that was pushed, and finds nothing new before the release
        // store of `pushed`.
        write_shared(bytes, &word.bytes);
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
            // `count` bytes behind `pushed` are free: the other end has read what was there, and does not read what is put
            // there before the release store of `pushed`.
            self.fill(self.pushed, &bytes[..count]);
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
        let mut held = [0; INLINE];
        let held = &mut held[..count];
        // This end alone writes those bytes. The ring was empty when they were pushed, so their positions in it are free, or
        // were read since.
        read_shared(&self.own().word.bytes, held);
        self.fill(self.pushed.wrapping_sub(count as u64), held);
    }

    /// Copies `bytes`, at most the capacity, to position `at` of the outgoing ring.
    #[inline]
    fn fill(&self, at: u64, bytes: &[u8]) {
        let ring = self.segment.outgoing();
        let at = at as usize & (ring.len() - 1);
        let (first, rest) = bytes.split_at(bytes.len().min(ring.len() - at));
        write_shared(first, &ring[at..]);
        if !rest.is_empty() {
            write_shared(rest, ring);
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
            // The other end does not write these bytes before it has seen the release store of a `popped` that covers them.
            read_shared(&word.bytes[held - filled..], &mut into[..count]);
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
        let ring = self.segment.incoming();
        let count = filled.min(ring.len()).min(into.len());
        let at = self.popped as usize & (ring.len() - 1);
        let (first, rest) = into[..count].split_at_mut(count.min(ring.len() - at));
        // The other end does not overwrite these bytes before it has seen the release store of `popped`.
        read_shared(&ring[at..], first);
        if !rest.is_empty() {
            read_shared(ring, rest);
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
        state.wakes.wake();
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
        self.sleep(limit_ns, || self.pushed.wrapping_sub(taken()) < self.segment.outgoing().len() as u64);
    }

    /// Sleeps until woken, unless it is `ready`; see `alert` for the order of the stores.
    fn sleep(&self, limit_ns: u64, ready: impl Fn() -> bool) {
        debug_assert!(!self.owes, "the other end may wait for what was popped");
        let state = &self.own().state;
        let seen = state.wakes.get();
        state.sleeps.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !ready() {
            state.wakes.wait(seen, limit_ns);
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

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
