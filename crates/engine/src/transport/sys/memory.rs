//! What memory shared with another process consists of: atomics, counts that an end sleeps on, and bytes that the other
//! process may write at any time. `modelled_memory.rs` has the same for loom.

use std::arch::asm;
use std::cell::UnsafeCell;

use rustix::thread::futex;
use rustix::time::Timespec;

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A byte that another process may write at any time. It is only copied, by the two functions below.
#[repr(transparent)]
pub(super) struct SharedByte(UnsafeCell<u8>);

// SAFETY: the copies below are the only accesses, and they are made for bytes that change meanwhile. The rings order the
// copies of one byte where both ends keep to the protocol; loom checks that (`ring/models.rs`).
unsafe impl Sync for SharedByte {}

/// Fills `into` from the beginning of `from`, which must be as long. Each byte is read from the shared memory by this call and
/// never again: what is in `into` cannot change after a check. While the other process writes, the copy has old and new
/// bytes, in any mixture.
///
/// A copy alone would not do: the compiler, which knows no other process, might read the source again in place of the
/// copy, because both have the same bytes as far as it knows. The barrier takes that knowledge away.
#[inline]
pub(super) fn read_shared(from: &[SharedByte], into: &mut [u8]) {
    let from = &from[..into.len()];
    // SAFETY: both have that many bytes; they do not overlap, because `into` is borrowed alone and is no shared memory. Any
    // bytes are valid. Nothing in this process writes them meanwhile by an access that the compiler knows.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr().cast(), into.as_mut_ptr(), into.len()) };
    barrier(into.as_ptr());
}

/// Copies `from` to the beginning of `to`, which must be as long. Without a barrier: nothing is decided by what was written, and a
/// sender's stores are best close together, because the other end takes the cache line back at its next poll.
#[inline]
pub(super) fn write_shared(from: &[u8], to: &[SharedByte]) {
    let to = &to[..from.len()];
    // SAFETY: both have that many bytes, which may be written behind a shared reference: they are in an UnsafeCell. They do not
    // overlap, because `from` is no shared memory.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr().cast_mut().cast(), from.len()) };
}

/// No instruction, but the compiler has to assume that it reads and writes all memory that `bytes` and others can reach.
#[inline(always)]
fn barrier(bytes: *const u8) {
    // SAFETY: it does nothing.
    unsafe { asm!("/* {0} */", in(reg) bytes, options(nostack, preserves_flags)) };
}

/// A count that its end sleeps on and that the other end increases to wake it.
#[repr(transparent)]
pub(super) struct WakeCount(AtomicU32);

impl WakeCount {
    pub(super) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps until `wake`, at most `limit_ns`, and not at all if the count is not `seen` any more.
    pub(super) fn wait(&self, seen: u32, limit_ns: u64) {
        let limit = Timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
        // Not PRIVATE: whoever wakes it is another process.
        let _ = futex::wait(&self.0, futex::Flags::empty(), seen, Some(&limit));
    }

    /// Increases the count and wakes the sleeper.
    pub(super) fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(&self.0, futex::Flags::empty(), 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn bytes(count: usize) -> Vec<SharedByte> {
        (0..count).map(|_| SharedByte(UnsafeCell::new(0))).collect()
    }

    #[test]
    fn copies_begin_at_the_beginning_and_have_the_length_of_their_own_side() {
        let shared = bytes(200);
        write_shared(&[1; 150], &shared);
        write_shared(&[2; 20], &shared[150..]);
        let mut into = [9; 300];
        read_shared(&shared, &mut into[..170]);
        read_shared(&shared[170..], &mut into[170..200]);
        assert_eq!(into[..], [&[1; 150][..], &[2; 20], &[0; 30], &[9; 100]].concat());
        read_shared(&[], &mut []);
        write_shared(&[], &[]);
    }

    #[test]
    #[should_panic(expected = "range end index 201")]
    fn a_copy_longer_than_the_shared_memory_is_refused() {
        read_shared(&bytes(200), &mut [0; 201]);
    }

    #[test]
    fn what_was_read_stays_as_it_was_while_its_source_changes() {
        let (shared, over) = (bytes(8), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for value in (0..=255u8).cycle() {
                    write_shared(&[value; 8], &shared);
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let table: [u32; 128] = std::array::from_fn(|at| at as u32);
            for _ in 0..100_000 {
                let mut into = [0; 8];
                read_shared(&shared, &mut into);
                // Had the index been read again after its check, it would be another one, at times beyond the table.
                let index = usize::from(into[3]);
                if index < table.len() {
                    assert_eq!((table[index], into[3]), (index as u32, index as u8));
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
