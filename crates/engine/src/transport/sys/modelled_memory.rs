//! `memory.rs` for loom, which runs a model through every order of its accesses: it finds a byte that one thread writes while
//! another one copies it, and a sleeper that nobody wakes.

use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};

pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A byte of whose accesses loom keeps account.
#[derive(Default)]
pub(super) struct SharedByte(UnsafeCell<u8>);

// SAFETY: loom runs one thread at a time, and ends the test if two use a byte without an order between them.
unsafe impl Sync for SharedByte {}

pub(super) fn read_shared(from: &[SharedByte], into: &mut [u8]) {
    for (from, into) in from[..into.len()].iter().zip(into) {
        // SAFETY: a live byte; see above for other threads.
        from.0.with(|byte| *into = unsafe { *byte });
    }
}

pub(super) fn write_shared(from: &[u8], to: &[SharedByte]) {
    for (from, to) in from.iter().zip(&to[..from.len()]) {
        // SAFETY: as above.
        to.0.with_mut(|byte| unsafe { *byte = *from });
    }
}

/// As futex(2) has it: the comparison and the beginning of the sleep are one step for whoever wakes. A sleep has no limit here,
/// so that loom reports a wake-up that was lost.
#[derive(Default)]
pub(super) struct WakeCount {
    count: AtomicU32,
    kernel: Mutex<()>,
    sleeper: Condvar,
}

impl WakeCount {
    pub(super) fn get(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    pub(super) fn wait(&self, seen: u32, _: u64) {
        let kernel = self.kernel.lock().unwrap();
        if self.get() == seen {
            drop(self.sleeper.wait(kernel).unwrap());
        }
    }

    pub(super) fn wake(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let _kernel = self.kernel.lock().unwrap();
        self.sleeper.notify_one();
    }
}
