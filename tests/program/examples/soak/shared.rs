//! What the threads that make connections by hand share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use model::SplitMix64;

use crate::counts::Counts;

/// The crowd gathers, waits and goes in this time.
pub(crate) const CYCLE: Duration = Duration::from_secs(40);
/// What all threads of the process share.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) root: String,
    pub(crate) open: String,
    pub(crate) counts: Counts,
    /// Authenticated clients at the moment.
    pub(crate) clients: Arc<AtomicUsize>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) begun: Instant,
    pub(crate) seed: u64,
}

impl Load {
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// Time since the crowd began to gather.
    pub(crate) fn phase(&self) -> Duration {
        Duration::from_nanos((self.begun.elapsed().as_nanos() % CYCLE.as_nanos()) as u64)
    }

    /// Random numbers of one thread.
    pub(crate) fn random(&self, thread: u64) -> SplitMix64 {
        SplitMix64::new(self.seed.wrapping_mul(1_000).wrapping_add(thread))
    }
}
