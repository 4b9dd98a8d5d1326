//! Where the measuring loops count round trips: an array of all buckets, moved into a [`Histogram`] after each leg.

use hdrhistogram::Histogram as Hdr;
use model::Histogram;

/// All buckets of a [`Histogram`], so that counting is one addition and never allocates (270 KiB).
#[derive(Debug)]
pub(crate) struct RttRecorder {
    counts: Hdr<u64>,
    out_of_range: u64,
}

impl RttRecorder {
    const DIGITS: u8 = 3;

    /// An empty recorder, fully allocated.
    #[allow(clippy::expect_used, reason = "constants within hdrhistogram's documented limits; a test builds one")]
    pub(crate) fn new() -> Self {
        let counts = Hdr::new_with_bounds(1, Histogram::MAX_NS, Self::DIGITS).expect("constant bounds are valid");
        Self { counts, out_of_range: 0 }
    }

    /// Counts one time in nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` samples of the same time.
    #[inline]
    pub(crate) fn record_n(&mut self, ns: u64, n: u64) {
        if ns > Histogram::MAX_NS {
            self.out_of_range += n;
        }
        self.counts.saturating_record_n(ns.clamp(1, Histogram::MAX_NS), n);
    }

    /// Number of samples since the last [`take`](Self::take).
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.counts.len()
    }

    /// What was counted; the recorder is empty after it.
    pub(crate) fn take(&mut self) -> Histogram {
        let filled = self.counts.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        let histogram = Histogram::from_buckets(filled, std::mem::take(&mut self.out_of_range));
        self.counts.reset();
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The array's buckets come from hdrhistogram, those of the model from its own arithmetic: they must be equal.
        #[test]
        fn a_recorder_counts_as_a_histogram_does(values in prop::collection::vec((0u32..64, any::<u64>()), 0..200)) {
            let (mut recorder, mut histogram) = (RttRecorder::new(), Histogram::new());
            for (shift, bits) in values {
                recorder.record(bits >> shift);
                histogram.record(bits >> shift);
            }
            prop_assert_eq!(recorder.take(), histogram);
            prop_assert_eq!((recorder.count(), recorder.take()), (0, Histogram::new()));
        }
    }
}
