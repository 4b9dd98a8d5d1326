//! What memory shared with another process consists of: atomics, counts that an end sleeps on, and bytes that the other
//! process may write at any time. `modelled_memory.rs` has the same for loom.

use std::arch::asm;
use std::cell::UnsafeCell;
use std::ffi::c_void;

use rustix::thread::futex;
use rustix::time::Timespec;

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A byte that another process may write at any time. It is only copied, by the two functions below.
#[repr(transparent)]
pub(super) struct SharedByte(UnsafeCell<u8>);

// SAFETY: nothing refers to the byte itself, and the copies below are no accesses that the compiler knows. Another thread is
// as good as another process.
unsafe impl Sync for SharedByte {}

/// Copies as many bytes as both have; their number. Each is read from the shared memory by this call and never again: what is
/// in `into` cannot change after a check. While the other process writes, the copy has old and new bytes, in any mixture.
///
/// The copy is made by a function that the compiler does not know: a copy that it knew would be a data race, which the
/// language does not define, and it might read the source again in place of the copy. What the C library's function does
/// is not the language's concern; processors load and store bytes that others write as they would atomics.
#[inline]
pub(super) fn read_shared(from: &[SharedByte], into: &mut [u8]) -> usize {
    let count = from.len().min(into.len());
    // SAFETY: both have `count` bytes; they do not overlap, because `into` is borrowed alone and is no shared memory.
    unsafe { unknown_copy()(into.as_mut_ptr().cast(), from.as_ptr().cast(), count) };
    count
}

/// Copies as many bytes as both have; their number. As `read_shared`, in the other direction.
#[inline]
pub(super) fn write_shared(from: &[u8], to: &[SharedByte]) -> usize {
    let count = from.len().min(to.len());
    // SAFETY: both have `count` bytes, which may be written behind a shared reference: they are in an UnsafeCell. They do not
    // overlap, because `from` is no shared memory.
    unsafe { unknown_copy()(to.as_ptr().cast_mut().cast(), from.as_ptr().cast(), count) };
    count
}

type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;

/// The C library's memcpy. The compiler has to assume that it is any other function.
#[inline(always)]
fn unknown_copy() -> Copy {
    let mut copy: Copy = libc::memcpy;
    // SAFETY: no instruction. The register keeps its value, which the compiler does not know.
    unsafe { asm!("/* {0} */", inout(reg) copy, options(pure, readonly, nostack, preserves_flags)) };
    copy
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
    fn a_copy_has_what_both_have_room_for() {
        let shared = bytes(200);
        assert_eq!((write_shared(&[1; 300], &shared[..150]), write_shared(&[2; 20], &shared[150..])), (150, 20));
        let mut into = [9; 300];
        assert_eq!((read_shared(&shared, &mut into[..170]), read_shared(&shared[170..], &mut into[170..])), (170, 30));
        assert_eq!(into[..], [&[1; 150][..], &[2; 20], &[0; 30], &[9; 100]].concat());
        assert_eq!((read_shared(&[], &mut into), write_shared(&[], &shared)), (0, 0));
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
