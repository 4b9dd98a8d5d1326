//! Rates from an interface's counter over time. Pure arithmetic.

use super::claims::Count;

/// A counter at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// ns since the reading began.
    pub(super) at_ns: u64,
    pub(super) count: Count,
}

/// What passed an interface between its first and its last payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Course {
    /// Payload bytes, with those of the connection itself.
    pub(super) bytes: f64,
    /// Time between first and last, ns.
    pub(super) ns: f64,
    /// How uncertain the time is: the two gaps between samples in which it begins and ends, halved, ns.
    pub(super) uncertain_ns: f64,
    /// Bytes of the counter, with headers.
    pub(super) wire_bytes: f64,
}

/// The hello of a connection and its agreement have fewer bytes than this, a stream's first send has more.
const BESIDE: i64 = 1_200;

impl Course {
    /// The course of a counter; `None` if nothing passed.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let payload = |sample: &Sample| sample.count.payload_since(&first.count);
        let total = payload(last);
        let begun = samples.iter().position(|sample| payload(sample) > BESIDE)?;
        let ended = samples.iter().position(|sample| payload(sample) > total - BESIDE)?;
        // Before the sample that shows it, and after the one before.
        let between = |at: usize| {
            let (early, late) = (samples.get(at.checked_sub(1)?)?.at_ns as f64, samples[at].at_ns as f64);
            Some((f64::midpoint(early, late), (late - early) / 2.0))
        };
        let ((begun_ns, begin), (ended_ns, end)) = (between(begun)?, between(ended)?);
        let wire_bytes = (last.count.bytes - first.count.bytes) as f64;
        Some(Self { bytes: total as f64, ns: ended_ns - begun_ns, uncertain_ns: begin + end, wire_bytes })
    }

    /// Rate of what came after the first `first` bytes, without the `beside` bytes of the connection, bit/s.
    pub(super) fn rate(&self, beside: f64, first: f64) -> f64 {
        (self.bytes - beside - first) * 8e9 / self.ns
    }
}

/// The most bytes that a sender of `rate_bps` was ahead of its schedule, which begins with its first block: the size of its largest
/// burst. NaN if nothing passed.
pub(super) fn burst(samples: &[Sample], rate_bps: f64) -> f64 {
    let Some(first) = samples.first() else { return f64::NAN };
    let payload = |sample: &Sample| sample.count.payload_since(&first.count);
    let Some(begun) = samples.iter().position(|sample| payload(sample) > BESIDE) else { return f64::NAN };
    let origin = samples[begun.saturating_sub(1)];
    let ahead = |sample: &Sample| {
        let due = (sample.at_ns - origin.at_ns) as f64 * rate_bps / 8e9;
        (payload(sample) - payload(&origin)) as f64 - due
    };
    samples[begun..].iter().map(ahead).fold(f64::NAN, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hello of 200 bytes, then blocks of 2,000 bytes, one each ms: 16 Mbit/s.
    fn even() -> Vec<Sample> {
        let at = |ms: u64, payload: u64, packets: u64| Sample {
            at_ns: ms * 1_000_000,
            count: Count { bytes: 5_000 + payload + packets * 42, packets, header: 42 },
        };
        let blocks = (1..=11).map(|block| at(10 + block, 200 + block * 2_000, 1 + block));
        [at(0, 0, 0), at(9, 200, 1), at(10, 200, 1)].into_iter().chain(blocks).chain([at(40, 22_200, 12)]).collect()
    }

    #[test]
    fn a_rate_is_that_of_the_intervals_between_the_first_and_the_last_block() {
        let course = Course::of(&even()).unwrap();
        assert!((course.bytes - 22_200.0).abs() < 1e-9 && (course.ns - 1e7).abs() < 1e-9, "{course:?}");
        assert!((course.uncertain_ns - 1e6).abs() < 1e-9, "{course:?}");
        assert!((course.rate(200.0, 2_000.0) - 16e6).abs() < 1e-3, "{course:?}");
        assert_eq!(Course::of(&even()[..3]), None);
        assert_eq!(Course::of(&[]), None);
    }

    #[test]
    fn a_burst_is_what_came_before_it_was_due() {
        let mut samples = even();
        assert!((burst(&samples, 16e6) - 0.0).abs() < 1e-6, "{}", burst(&samples, 16e6));
        samples[8].count.bytes += 3_000;
        assert!((burst(&samples, 16e6) - 3_000.0).abs() < 1e-6, "{}", burst(&samples, 16e6));
        assert!(burst(&[], 16e6).is_nan());
    }
}
