//! What the agent's trials carried, for those who watch it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use model::EndTally;

/// Sums over all trials since the agent started, and the last trial. A trial of several legs counts once for each.
#[derive(Debug, Default)]
pub(super) struct Measured(Mutex<Sums>);

/// The sums at one time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// Trials that ended, failed ones included.
    pub(super) trials: u64,
    /// Trials that failed.
    pub(super) failed: u64,
    /// Payload bytes sent and received by this host.
    pub(super) bytes: [u64; 2],
    /// The last trial that gave counts.
    pub(super) last: Option<Last>,
}

/// A trial as this end counted it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    /// When it ended.
    pub(super) at: SystemTime,
    /// Payload bytes sent and received.
    pub(super) bytes: [u64; 2],
    /// Their rates over this end's own times, bit/s; none over no time.
    pub(super) bps: [Option<f64>; 2],
}

impl Measured {
    /// Counts what a trial's end reports.
    pub(super) fn note(&self, tallies: &[EndTally], failed: bool) {
        let mut sums = self.lock();
        sums.trials += tallies.len().max(1) as u64;
        sums.failed += u64::from(failed);
        for tally in tallies {
            let bytes = [tally.bytes_sent, tally.bytes_received];
            sums.bytes.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
            let rate = |bytes: u64, ns: u64| (ns > 0 && bytes > 0).then(|| bytes as f64 * 8e9 / ns as f64);
            let windows = [tally.sends(), tally.arrivals()];
            sums.last = Some(Last { at: SystemTime::now(), bytes, bps: windows.map(|of| rate(of.bytes, of.ns)) });
        }
    }

    /// The sums now.
    pub(super) fn now(&self) -> Sums {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_add_up_and_the_last_one_is_kept() {
        let measured = Measured::default();
        let tally = |bytes_received, receiving_ns| EndTally { bytes_received, receiving_ns, ..EndTally::default() };
        measured.note(&[tally(1_000, 1_000)], false);
        measured.note(&[], true);
        measured.note(&[tally(2_000, 1_000), tally(500, 0)], false);
        let sums = measured.now();
        assert_eq!((sums.trials, sums.failed, sums.bytes), (4, 1, [0, 3_500]));
        let last = sums.last.unwrap();
        assert_eq!((last.bytes, last.bps), ([0, 500], [None, None]));
    }
}
