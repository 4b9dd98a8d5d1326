//! What the two ends of a segment publish.

use super::memory::{AtomicU32, AtomicU64, SharedByte, WakeCount};

/// Bytes of the largest message that travels beside its position. Up to 40 share its cache line; the rest is in the line that
/// processors fetch with it as a pair. A model under loom has few bytes, because it looks at each access.
pub(super) const INLINE: usize = if cfg!(loom) { 2 } else { 104 };

/// What an end publishes with each message and each poll, on a pair of cache lines that only it writes.
#[repr(C, align(128))]
pub(super) struct Word {
    /// Bytes that this end ever pushed into its outgoing ring.
    pub(super) pushed: AtomicU64,
    /// Bytes that this end ever popped from its incoming ring.
    pub(super) popped: AtomicU64,
    /// The last message that went beside the ring: `pushed` after it, times 256, plus its length. A reader that sees
    /// another `pushed` knows that the bytes are in the ring; 56 bits of the position are enough to distinguish them.
    pub(super) inline: AtomicU64,
    /// That message's bytes.
    pub(super) bytes: [SharedByte; INLINE],
}

/// What changes rarely, apart from the lines that are polled.
#[repr(C, align(128))]
pub(super) struct State {
    /// Counts wake-ups of this end; it sleeps on it.
    pub(super) wakes: WakeCount,
    /// Whether it sleeps, or is about to.
    pub(super) sleeps: AtomicU32,
    /// This end spins: it never sleeps.
    pub(super) spins: AtomicU32,
    /// This end will push no more.
    pub(super) finished: AtomicU32,
    /// [`LAYOUT`] of the end that made the segment.
    pub(super) layout: AtomicU32,
}

/// The state that an end publishes.
#[repr(C)]
pub(super) struct End {
    pub(super) word: Word,
    pub(super) state: State,
}

/// Changes with the meaning of a segment's bytes, so that two incompatible builds refuse each other.
pub(super) const LAYOUT: u32 = 2;

#[cfg(loom)]
impl Default for End {
    fn default() -> Self {
        let word = Word {
            pushed: AtomicU64::default(),
            popped: AtomicU64::default(),
            inline: AtomicU64::default(),
            bytes: std::array::from_fn(|_| SharedByte::default()),
        };
        let state = State {
            wakes: WakeCount::default(),
            sleeps: AtomicU32::default(),
            spins: AtomicU32::default(),
            finished: AtomicU32::default(),
            layout: AtomicU32::new(LAYOUT),
        };
        Self { word, state }
    }
}
