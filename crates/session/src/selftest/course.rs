//! Rates from an interface's counter over time. Pure arithmetic.

use super::claims::Count;

/// A counter at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// ns since the reading began.
    pub(super) at_ns: u64,
    pub(super) count: Count,
}

/// Payload since the first sample.
fn passed(samples: &[Sample], sample: &Sample) -> f64 {
    samples.first().map_or(0.0, |first| sample.count.payload_since(&first.count) as f64)
}

/// All payload; NaN without a sample.
pub(super) fn total(samples: &[Sample]) -> f64 {
    samples.last().map_or(f64::NAN, |last| passed(samples, last))
}

/// When `bytes` had passed, ns, between the samples before and after by proportion; `None` if they never had.
fn time_at(samples: &[Sample], bytes: f64) -> Option<f64> {
    let after = samples.iter().position(|sample| passed(samples, sample) >= bytes)?;
    let late = samples[after];
    let Some(early) = after.checked_sub(1).map(|before| samples[before]) else { return Some(late.at_ns as f64) };
    let (below, above) = (passed(samples, &early), passed(samples, &late));
    let share = if above > below { (bytes - below) / (above - below) } else { 1.0 };
    Some(early.at_ns as f64 + share * (late.at_ns - early.at_ns) as f64)
}

/// Rate and time between the moments at which `from` and `to` bytes had passed, bit/s and ns; `None` if they never had.
pub(super) fn rate_between(samples: &[Sample], from: f64, to: f64) -> Option<(f64, f64)> {
    let ns = time_at(samples, to)? - time_at(samples, from)?;
    (ns > 0.0).then(|| ((to - from) * 8e9 / ns, ns))
}

/// The largest burst: the most bytes that passed in any time beyond what `rate_bps` allows in that time (the depth of the smallest
/// token bucket that would have let them through, RFC 2697). NaN without a sample.
pub(super) fn burst(samples: &[Sample], rate_bps: f64) -> f64 {
    let ahead = |sample: &Sample| passed(samples, sample) - sample.at_ns as f64 * rate_bps / 8e9;
    let mut lowest = f64::INFINITY;
    let over = samples.iter().map(|sample| {
        let ahead = ahead(sample);
        lowest = lowest.min(ahead);
        ahead - lowest
    });
    over.fold(f64::NAN, f64::max)
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
    fn a_rate_is_that_between_two_amounts() {
        let samples = even();
        assert!((total(&samples) - 22_200.0).abs() < 1e-9);
        for (from, to, ms) in [(2_200.0, 22_200.0, 10.0), (3_200.0, 21_200.0, 9.0), (200.0, 4_200.0, 3.0)] {
            let (rate, ns) = rate_between(&samples, from, to).unwrap();
            assert!((ns - ms * 1e6).abs() < 1e-3, "{from} to {to}: {ns} ns");
            assert!((rate - (to - from) * 8e9 / ns).abs() < 1e-3);
        }
        assert_eq!(rate_between(&samples, 200.0, 22_201.0), None);
        assert_eq!(rate_between(&samples, 300.0, 300.0), None);
        assert_eq!(rate_between(&[], 0.0, 1.0), None);
    }

    #[test]
    fn a_burst_is_what_a_bucket_of_that_rate_would_have_to_hold() {
        let mut samples = even();
        assert!((burst(&samples, 16e6) - 0.0).abs() < 1e-6, "{}", burst(&samples, 16e6));
        samples[8].count.bytes += 3_000;
        assert!((burst(&samples, 16e6) - 3_000.0).abs() < 1e-6, "{}", burst(&samples, 16e6));
        // What was late and is made up at once is a burst, too.
        let mut late = even();
        late.drain(5..8);
        assert!((burst(&late, 16e6) - 0.0).abs() < 1e-6);
        late[5].at_ns -= 2_000_000;
        assert!((burst(&late, 16e6) - 4_000.0).abs() < 1e-6, "{}", burst(&late, 16e6));
        assert!(burst(&[], 16e6).is_nan());
    }
}
