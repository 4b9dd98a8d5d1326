//! What the near end saw over time, in steps of the length that these tools have.

use model::{EndTally, FlowTally, Interval, Spec, Trial};

use super::test::Test;

/// iperf3's own interval, which a finer series is put together to.
const STEP_NS: u64 = 1_000_000_000;
/// How much a step may end before its time and still be whole.
const SLACK_NS: u64 = 5_000_000;

/// A stretch of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// Start, ns since the test began (of the warm-up: since it began).
    pub(super) start_ns: u64,
    /// End, likewise.
    pub(super) end_ns: u64,
    /// Payload bytes that the near end sent or received.
    pub(super) bytes: u64,
    /// It is part of a warm-up, which is in no sum.
    pub(super) omitted: bool,
    /// TCP at the near end, where it sends and all its connections were watched.
    pub(super) tcp: Option<TcpStep>,
}

/// TCP at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TcpStep {
    /// Segments sent again in the step, by all connections.
    pub(super) retransmits: u64,
    /// Congestion window of the last connection, bytes.
    pub(super) cwnd_bytes: u64,
    /// Its smoothed RTT, ns.
    pub(super) rtt_ns: u64,
    /// Its mean deviation, ns.
    pub(super) rttvar_ns: u64,
}

impl Test<'_> {
    /// The steps of one way as the near end counted them, all trials laid end to end.
    pub(super) fn steps(&self, forth: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = 0;
        for trial in &self.trials {
            let own = steps_of(self.spec(), trial, forth);
            let measured = own.iter().filter(|step| !step.omitted).map(|step| step.end_ns).max().unwrap_or(0);
            steps.extend(own.into_iter().map(|step| match step.omitted {
                true => step,
                false => Step { start_ns: at + step.start_ns, end_ns: at + step.end_ns, ..step },
            }));
            at += measured;
        }
        steps
    }
}

/// The steps of a trial; times after the warm-up count from its end, as iperf3 has it.
fn steps_of(spec: &Spec, trial: &Trial, forth: bool) -> Vec<Step> {
    let near = &trial.near;
    let mut steps: Vec<Step> = Vec::new();
    let mut tcp: Vec<(&FlowTally, u64)> = senders(near, forth).into_iter().map(|flow| (flow, 0)).collect();
    for entry in series(near, &trial.far, forth) {
        let omitted = entry.start_ns < spec.warmup_ns;
        let from = if omitted { 0 } else { spec.warmup_ns };
        let (start_ns, end_ns) = (entry.start_ns - from, entry.end_ns.saturating_sub(from));
        let bytes = if forth { entry.bytes_sent } else { entry.bytes_received };
        let open = steps.last_mut().filter(|step| {
            let length = step.end_ns - step.start_ns;
            step.omitted == omitted && length + SLACK_NS < STEP_NS.max(spec.interval_ns)
        });
        match open {
            Some(step) => (step.end_ns, step.bytes) = (end_ns, step.bytes + bytes),
            None => steps.push(Step { start_ns, end_ns, bytes, omitted, tcp: None }),
        }
    }
    let last = steps.len();
    for (number, step) in steps.iter_mut().enumerate() {
        let end = if step.omitted { step.end_ns } else { step.end_ns + spec.warmup_ns };
        let until = if number + 1 == last { u64::MAX } else { end + SLACK_NS };
        for (flow, before) in &mut tcp {
            let Some(sample) = flow.tcp.iter().take_while(|sample| sample.at_ns <= until).last() else { continue };
            let sum = step.tcp.map_or(0, |tcp| tcp.retransmits);
            step.tcp = Some(TcpStep {
                retransmits: sum + sample.retransmits.saturating_sub(*before),
                cwnd_bytes: u64::from(sample.cwnd) * u64::from(sample.mss),
                rtt_ns: sample.rtt_ns,
                rttvar_ns: sample.rttvar_ns,
            });
            *before = sample.retransmits;
        }
    }
    steps
}

/// The near end's series, or the whole trial as its only entry.
fn series(near: &EndTally, far: &EndTally, forth: bool) -> Vec<Interval> {
    if !near.intervals.is_empty() {
        return near.intervals.clone();
    }
    let (bytes, ns) = match forth {
        true => (near.bytes_sent, near.sending_ns),
        false => (near.bytes_received, near.receiving_ns),
    };
    let end_ns = if ns == 0 { far.sending_ns.max(far.receiving_ns) } else { ns };
    let whole = Interval { end_ns, bytes_sent: bytes, bytes_received: bytes, ..Interval::default() };
    if end_ns == 0 { Vec::new() } else { vec![whole] }
}

/// The near end's sending connections, if TCP was watched on each of them.
fn senders(near: &EndTally, forth: bool) -> Vec<&FlowTally> {
    let sending: Vec<&FlowTally> = near.flows.iter().filter(|flow| forth && flow.bytes_sent > 0).collect();
    if sending.iter().any(|flow| flow.tcp.is_empty()) { Vec::new() } else { sending }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn entry(start: u64, end: u64) -> Interval {
        let ms = |at: u64| at * 1_000_000;
        Interval { start_ns: ms(start), end_ns: ms(end), bytes_sent: (end - start) * 10, ..Interval::default() }
    }

    #[test]
    fn tenths_make_seconds_and_trials_follow_each_other() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(2);
        for trial in &mut outcome.trials {
            trial.near.intervals = (0..25).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        }
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let steps: Vec<_> = test.steps(true).iter().map(|step| (step.start_ns / 1_000_000, step.bytes)).collect();
        assert_eq!(steps, [(0, 10_000), (1000, 10_000), (2000, 5_000), (2500, 10_000), (3500, 10_000), (4500, 5_000)]);
    }

    #[test]
    fn a_warm_up_is_apart_and_the_clock_begins_after_it() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(1);
        outcome.spec.warmup_ns = 500_000_000;
        outcome.trials[0].near.intervals = (0..15).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let steps: Vec<_> = test.steps(true).iter().map(|s| (s.start_ns, s.end_ns, s.bytes, s.omitted)).collect();
        assert_eq!(steps, [(0, 500_000_000, 5_000, true), (0, 1_000_000_000, 10_000, false)]);
        let direction = &test.directions().unwrap()[0];
        assert_eq!((direction.sent.bytes, direction.sent.ns), (10_000, 1_000_000_000));
    }
}
