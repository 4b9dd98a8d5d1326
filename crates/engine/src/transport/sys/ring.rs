//! Two byte rings in memory shared between two processes, one for each direction.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;
use rustix::time::Timespec;

/// What both processes read and write about one ring; each field that one side writes has two cache lines of its own, since
/// processors prefetch pairs.
#[repr(C, align(128))]
struct RingHeader {
    /// Bytes ever written; only the producer stores it.
    head: AtomicU64,
    _head_line: [u64; 15],
    /// Bytes ever read; only the consumer stores it.
    tail: AtomicU64,
    _tail_line: [u64; 15],
    /// Counts wake-ups of the consumer; it sleeps on it.
    data_ready: AtomicU32,
    consumer_sleeps: AtomicU32,
    /// Counts wake-ups of the producer; it sleeps on it.
    space_ready: AtomicU32,
    producer_sleeps: AtomicU32,
    /// The producer will write no more.
    finished: AtomicU32,
    /// The consumer spins: it never sleeps on `data_ready`.
    consumer_spins: AtomicU32,
    /// The producer spins: it never sleeps on `space_ready`.
    producer_spins: AtomicU32,
    _flag_line: [u32; 25],
}

const HEADER: usize = size_of::<RingHeader>();

/// A mapping with two rings of the same capacity.
pub(crate) struct SharedRings {
    base: NonNull<u8>,
    length: usize,
    capacity: usize,
    /// Which ring this side writes: 0 or 1; it reads the other.
    writes: usize,
    /// The other side's position in the outgoing ring when last looked at: its line is fetched only when that leaves no room.
    seen_tail: u64,
    fd: OwnedFd,
}

// SAFETY: the mapping is shared memory that is only touched through atomics and through the single-producer/single-consumer
// protocol below; moving the handle to another thread changes nothing about that.
unsafe impl Send for SharedRings {}

impl SharedRings {
    /// Bytes of a segment with two rings of `capacity`.
    pub(crate) fn segment_bytes(capacity: usize) -> usize {
        2 * (HEADER + capacity)
    }

    /// Maps a segment. `capacity` must be a power of two and the segment at least `segment_bytes(capacity)` long; the side
    /// that `first` is true for writes ring 0.
    pub(crate) fn map(fd: OwnedFd, capacity: usize, first: bool) -> io::Result<Self> {
        let length = Self::segment_bytes(capacity);
        let actual = rustix::fs::fstat(&fd)?.st_size;
        if !capacity.is_power_of_two() || (actual as u64) < length as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared segment is smaller than its rings"));
        }
        // SAFETY: a new shared mapping of `length` bytes within the file, at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd.as_fd(),
                0,
            )?
        };
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("the kernel mapped the segment at zero"))?;
        Ok(Self { base, length, capacity, writes: usize::from(!first), seen_tail: 0, fd })
    }

    /// The segment, to be passed to the other process.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    fn header(&self, ring: usize) -> &RingHeader {
        // SAFETY: both headers lie within the mapping (`map` checked its length), start on a 128-byte boundary (the mapping
        // is page-aligned, capacity and header are multiples of 128) and hold only atomics, for which any bytes are valid.
        unsafe { &*self.base.as_ptr().add(ring * (HEADER + self.capacity)).cast::<RingHeader>() }
    }

    fn data(&self, ring: usize) -> *mut u8 {
        // SAFETY: within the mapping, see `header`.
        unsafe { self.base.as_ptr().add(ring * (HEADER + self.capacity) + HEADER) }
    }

    /// Copies as much of `bytes` into the outgoing ring as fits; 0 when it is full.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        let ring = self.writes;
        let (capacity, seen) = (self.capacity, self.seen_tail);
        let header = self.header(ring);
        let head = header.head.load(Ordering::Relaxed);
        // A peer that scribbles over its tail can make `used` nonsense; the subtraction then yields no room.
        let room = |tail: u64| capacity.saturating_sub(head.wrapping_sub(tail) as usize);
        let tail = if room(seen) < bytes.len() { header.tail.load(Ordering::Acquire) } else { seen };
        let count = room(tail).min(bytes.len());
        if count > 0 {
            let at = head as usize & (capacity - 1);
            let first = count.min(capacity - at);
            // SAFETY: `at + first <= capacity` and `count - first <= at`, both inside this ring's data; the consumer does not
            // read these bytes before the release store of `head`.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data(ring).add(at), first);
                if first < count {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), self.data(ring), count - first);
                }
            }
            let wakes = [&header.consumer_spins, &header.consumer_sleeps, &header.data_ready];
            publish(&header.head, head.wrapping_add(count as u64), wakes);
        }
        self.seen_tail = tail;
        count
    }

    /// Copies what there is in the incoming ring, at most `into.len()`; 0 when it is empty.
    #[inline]
    pub(crate) fn pop(&mut self, into: &mut [u8]) -> usize {
        let ring = 1 - self.writes;
        let header = self.header(ring);
        let tail = header.tail.load(Ordering::Relaxed);
        let filled = header.head.load(Ordering::Acquire).wrapping_sub(tail) as usize;
        let count = filled.min(self.capacity).min(into.len());
        // An empty ring is looked at again and again: nothing is stored, so that its lines stay where they are.
        if count > 0 {
            let at = tail as usize & (self.capacity - 1);
            let first = count.min(self.capacity - at);
            // SAFETY: as in `push`; the producer does not overwrite these bytes before the release store of `tail`.
            unsafe {
                std::ptr::copy_nonoverlapping(self.data(ring).add(at), into.as_mut_ptr(), first);
                if first < count {
                    std::ptr::copy_nonoverlapping(self.data(ring), into.as_mut_ptr().add(first), count - first);
                }
            }
            let wakes = [&header.producer_spins, &header.producer_sleeps, &header.space_ready];
            publish(&header.tail, tail.wrapping_add(count as u64), wakes);
        }
        count
    }

    /// Tells the other side whether this one will ever sleep: it need not look after one that spins.
    pub(crate) fn spin(&self, on: bool) {
        self.header(self.writes).producer_spins.store(u32::from(on), Ordering::SeqCst);
        self.header(1 - self.writes).consumer_spins.store(u32::from(on), Ordering::SeqCst);
    }

    /// Says that nothing more will be pushed.
    pub(crate) fn finish(&mut self) {
        let header = self.header(self.writes);
        header.finished.store(1, Ordering::SeqCst);
        wake(&header.data_ready, &header.consumer_sleeps);
    }

    /// Whether the other side finished and everything it pushed was popped.
    pub(crate) fn at_end(&self) -> bool {
        let header = self.header(1 - self.writes);
        header.finished.load(Ordering::SeqCst) != 0
            && header.head.load(Ordering::SeqCst) == header.tail.load(Ordering::SeqCst)
    }

    /// Sleeps until the incoming ring has bytes or ended, at most `limit_ns`.
    pub(crate) fn wait_data(&self, limit_ns: u64) {
        let header = self.header(1 - self.writes);
        let ready = || {
            header.head.load(Ordering::SeqCst) != header.tail.load(Ordering::SeqCst)
                || header.finished.load(Ordering::SeqCst) != 0
        };
        sleep_on(&header.data_ready, &header.consumer_sleeps, limit_ns, ready);
    }

    /// Sleeps until the outgoing ring has room, at most `limit_ns`.
    pub(crate) fn wait_space(&self, limit_ns: u64) {
        let header = self.header(self.writes);
        let ready = || {
            let used = header.head.load(Ordering::SeqCst).wrapping_sub(header.tail.load(Ordering::SeqCst));
            used < self.capacity as u64
        };
        sleep_on(&header.space_ready, &header.producer_sleeps, limit_ns, ready);
    }
}

impl Drop for SharedRings {
    fn drop(&mut self) {
        // The peer must not wait for bytes that will never come.
        self.finish();
        // SAFETY: the mapping made by `map`, unmapped once; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Stores a position, then wakes the other side if it sleeps; `wakes` has its words for spinning, sleeping and being woken.
///
/// A side that sleeps says so before it looks at the position a last time, so one of the two sees the other, provided that no
/// later load overtakes the store: that takes a full fence, which a side that spins is spared. One that stops spinning at this
/// very moment may miss its wake-up and sleeps until its limit.
#[inline]
fn publish(position: &AtomicU64, value: u64, [spins, sleeps, word]: [&AtomicU32; 3]) {
    if spins.load(Ordering::Relaxed) != 0 {
        position.store(value, Ordering::Release);
        return;
    }
    position.store(value, Ordering::SeqCst);
    if sleeps.load(Ordering::SeqCst) != 0 {
        wake(word, sleeps);
    }
}

fn wake(word: &AtomicU32, sleeps: &AtomicU32) {
    word.fetch_add(1, Ordering::SeqCst);
    sleeps.store(0, Ordering::SeqCst);
    // Not PRIVATE: the sleeper is another process.
    let _ = futex::wake(word, futex::Flags::empty(), 1);
}

fn sleep_on(word: &AtomicU32, sleeps: &AtomicU32, limit_ns: u64, ready: impl Fn() -> bool) {
    let seen = word.load(Ordering::SeqCst);
    sleeps.store(1, Ordering::SeqCst);
    // The other side stores its position before it looks at `sleeps`: one of the two sees the other.
    if ready() {
        sleeps.store(0, Ordering::SeqCst);
        return;
    }
    let limit = Timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
    let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&limit));
}
