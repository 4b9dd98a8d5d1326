//! The round trips of a path without load, before a measurement with a probe.

use model::{EndResult, Leg, Responsiveness, RttTally, Spec, Stop};

/// Longest probing of the path without load, ns; a shorter trial's length is used.
const IDLE_NS: u64 = 1_000_000_000;
/// If that gives too few samples for a median: this many round trips of the path plus the time for enough probes, up to a limit.
const IDLE_ROUND_TRIPS: u64 = 3;
const MAX_IDLE_NS: u64 = 10_000_000_000;

/// The probing of one path: one pass, or two if the first gave too few samples.
#[derive(Debug)]
pub(crate) struct IdleProbe {
    /// `None` for a spec without a probe.
    probe: Option<Spec>,
    probes_per_s: u64,
    /// Length of the next pass, ns; `None` after the last one.
    next_ns: Option<u64>,
    found: Option<RttTally>,
    passes: u32,
}

impl IdleProbe {
    /// The probing of the path of `spec`.
    #[must_use]
    pub(crate) fn new(spec: &Spec) -> Self {
        let time = if let Stop::TimeNs(ns) = spec.stop { ns.min(IDLE_NS) } else { IDLE_NS };
        // Another program has no probe.
        let probe = spec.probing().filter(|_| spec.speak.is_none());
        let next_ns = probe.as_ref().map(|_| time);
        let probes_per_s = u64::from(spec.probe.unwrap_or(1)).max(1);
        Self { probe, probes_per_s, next_ns, found: None, passes: 0 }
    }

    /// The next pass; `None` when there is no more.
    #[must_use]
    pub(crate) fn next(&self) -> Option<(Spec, Leg)> {
        let spec = Spec { stop: Stop::TimeNs(self.next_ns?), ..self.probe.clone()? };
        let leg = Leg::of(&spec);
        Some((spec, leg))
    }

    /// Takes the near end's results of the last pass, if there are any.
    pub(crate) fn completed(&mut self, near: Option<&EndResult>) {
        let tally = near.and_then(|near| near.tallies.first());
        let rtt = tally.and_then(|tally| RttTally::weighted(tally.rtt.clone()?.histogram?, tally.transactions));
        self.passes += 1;
        self.next_ns = match &rtt {
            Some(rtt) if self.passes == 1 && rtt.count < Responsiveness::MIN_SAMPLES => {
                let probes = Responsiveness::MIN_SAMPLES * 1_000_000_000 / self.probes_per_s;
                Some((rtt.p50_ns * IDLE_ROUND_TRIPS + probes).min(MAX_IDLE_NS))
            }
            _ => None,
        };
        let samples = |rtt: &Option<RttTally>| rtt.as_ref().map_or(0, |rtt| rtt.count);
        if samples(&rtt) > samples(&self.found) {
            self.found = rtt;
        }
    }

    /// The round trips of the pass with more samples.
    #[must_use]
    pub(crate) fn found(&self) -> Option<RttTally> {
        self.found.clone()
    }
}
