//! Curves on simulated paths: also through token buckets.

use model::{Estimate, Finding, FindingKind, NetpipeSizes, Pattern, Spent, ThreadTime};

use super::*;

/// A token bucket, as of a shaper: what is in it passes at the speed of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    line_bps: f64,
    bytes: f64,
    /// For each direction what is in it, bytes, and the time to which that applies, ns.
    filled: [(f64, f64); 2],
}

impl Bucket {
    fn new(line_bps: f64, bytes: f64) -> Self {
        Self { line_bps, bytes, filled: [(bytes, 0.0); 2] }
    }

    /// Time in ns in which a block that is sent at `at` passes in a direction, while the bucket fills at `rate_bps`.
    fn pass(&mut self, direction: usize, block: f64, at: f64, rate_bps: f64) -> f64 {
        let (left, since) = self.filled[direction];
        let held = (left + (at - since) * rate_bps / 8e9).min(self.bytes);
        let line = block * 8e9 / self.line_bps;
        let ns = line.max((block - held) * 8e9 / rate_bps);
        self.filled[direction] = ((held + ns * rate_bps / 8e9 - block).clamp(0.0, self.bytes), at + ns);
        ns
    }
}

/// What an end spends on a stream that the path limits.
pub(super) fn mostly_asleep(ns: u64) -> Spent {
    let busiest = ThreadTime { threads: 1, elapsed_ns: ns, cpu_ns: ns / 20, wait_ns: Some(0), ..ThreadTime::default() };
    Spent { busiest: Some(busiest), ..Spent::default() }
}

impl World {
    pub(super) fn pass(&mut self, number: u32, legs: &[crate::Leg]) -> Result<PassResult, StepFailure> {
        let begun_ns = self.now;
        self.now += self.path.set_up_ns;
        if let Some(failure) = self.failure(number) {
            return Err(failure);
        }
        let near: Vec<EndTally> = legs.iter().map(|leg| self.leg(leg)).collect();
        let far = near.iter().map(|_| EndTally::default()).collect();
        Ok(self.result(begun_ns, near, far))
    }

    fn leg(&mut self, leg: &crate::Leg) -> EndTally {
        let outlier = if self.chance(self.path.outliers) { 10.0 } else { 1.0 };
        // A long drift would make time run backwards.
        let factor = (outlier * self.noise()).max(0.01);
        let first = self.exchange(leg.block, factor);
        let count = match leg.stop {
            Stop::Transactions(count) => count,
            Stop::AboutNs(about) => {
                let fits = about / leg.expected_ns.max(first as u64).max(1);
                fits.max(Spec::new("tcp", Pattern::Pingpong).min_exchanges(first))
            }
            _ => panic!("a leg of a curve"),
        };
        let mut times: Vec<f64> = (1..count).map(|_| self.exchange(leg.block, factor)).collect();
        times.push(first);
        times.sort_by(f64::total_cmp);
        let rtt = RttTally {
            count,
            min_ns: times[0] as u64,
            p50_ns: times[times.len() / 2] as u64,
            mean_ns: times.iter().sum::<f64>() / count as f64,
            p99_ns: None,
            max_ns: times[times.len() - 1] as u64,
            batch: 1,
            histogram: None,
        };
        EndTally { rtt: Some(rtt), transactions: count, ..EndTally::default() }
    }

    /// A block there and back; `factor` is the noise of its leg.
    fn exchange(&mut self, block: u64, factor: f64) -> f64 {
        let (bytes, rate, half) = (block as f64, self.path.rate_bps, self.path.rtt_ns as f64 / 2.0);
        let mut at = self.now as f64;
        for direction in [0, 1] {
            at += factor * half;
            at += match &mut self.path.bucket {
                Some(bucket) => bucket.pass(direction, bytes, at, rate),
                None => factor * bytes * 8e9 / rate,
            };
        }
        let ns = at - self.now as f64;
        self.now = at as u64;
        ns
    }
}

/// The default curve of a path.
fn curve(path: &Path) -> Ended {
    let size = |block: u64| Spec { block, stop: Stop::AboutNs(MS), ..Spec::new("tcp", Pattern::Pingpong) };
    let cells = NetpipeSizes::DEFAULT.list().into_iter().map(size).collect();
    let mut header = header(cells, 9_500 * MS, path.seed);
    header.stopping.max_trials = 64;
    let plan = CurvePlan { adaptive: false, leg_ns: None, limit_ns: None, ceiling: false, anatomy: true, check: true };
    run(&header, &Schedule::Curve(plan), path)
}

#[test]
fn the_streams_of_a_check_can_be_measured() {
    let size = Spec { block: 1, interval_ns: 0, stop: Stop::AboutNs(MS), ..Spec::new("tcp", Pattern::Pingpong) };
    let stream = crate::check_stream_of(&header(vec![size], SECOND, 1)).unwrap();
    assert!(stream.check().is_ok(), "{:?}", stream.check());
}

fn found(ended: &Ended, kind: FindingKind) -> &Finding {
    ended.findings.iter().find(|finding| finding.kind == kind).unwrap()
}

fn peak(ended: &Ended) -> Estimate {
    found(ended, FindingKind::Peak).estimate.clone().unwrap()
}

/// A path with little latency, as between two namespaces.
fn short(rate_bps: f64, bucket: Option<(f64, f64)>, seed: u64) -> Path {
    let bucket = bucket.map(|(line, bytes)| Bucket::new(line, bytes));
    Path { rate_bps, rtt_ns: 10_000, noise: 0.02, bucket, ..Path::new(seed) }
}

#[test]
fn a_peak_through_a_token_bucket_is_what_the_path_carries() {
    for (seed, (rate, burst)) in
        [(300e6, 64e3), (300e6, 8e3), (50e6, 16e3), (50e6, 1e6), (1e9, 256e3)].into_iter().enumerate()
    {
        let ended = curve(&short(rate, Some((20e9, burst)), seed as u64));
        let peak = peak(&ended);
        assert!((peak.value / rate - 1.0).abs() < 0.03, "{rate} {burst}: {peak:?}");
        assert!(peak.low.is_some() && peak.high.is_some(), "{peak:?}");
        let statement = found(&ended, FindingKind::Peak).statement.plain();
        assert!(statement.contains("as through a token bucket"), "{statement}");
        let half = found(&ended, FindingKind::HalfPeak).block.unwrap();
        let saturation = found(&ended, FindingKind::Saturation).block;
        assert!(saturation.is_none_or(|from| half <= from), "{half} {saturation:?}");
        nothing_is_lost(&ended);
    }
}

#[test]
fn a_peak_without_a_bucket_is_the_rate_of_large_blocks_however_noisy_they_are() {
    for seed in 0..6 {
        let path = Path { noise: 0.15, outliers: 0.05, ..short(1e9, None, seed) };
        let ended = curve(&path);
        let peak = peak(&ended);
        assert!((0.9..1.1).contains(&(peak.value / 1e9)), "{peak:?}");
        assert!(peak.low.is_some(), "{peak:?}");
        assert!(!found(&ended, FindingKind::Peak).statement.plain().contains("bucket"));
    }
}

#[test]
fn every_size_of_the_default_curve_has_an_interval() {
    for rate in [20e6, 50e6, 300e6, 1e9, 10e9] {
        let ended = curve(&short(rate, None, 3));
        let open: Vec<u64> = ended
            .outcomes
            .iter()
            .filter(|outcome| outcome.estimate.as_ref().is_none_or(|estimate| estimate.low.is_none()))
            .map(|outcome| outcome.spec.block)
            .collect();
        assert!(open.is_empty(), "{rate}: {open:?} of {} in {} ns", ended.outcomes.len(), ended.ns);
        assert!(ended.ns < 10 * SECOND, "{}", ended.ns);
    }
}
