//! The near end's series, merged to the intervals of these programs.

use model::{EndTally, FlowTally, Interval, Spec, Trial};

use super::test::Test;

/// iperf3's interval; a finer series is merged to it.
const INTERVAL_NS: u64 = 1_000_000_000;
/// How much earlier than nominal an interval may end and still be complete.
const SLACK_NS: u64 = 5_000_000;

/// An interval of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MergedInterval {
    /// Start, ns since the test began (of the warm-up: since it began).
    pub(super) start_ns: u64,
    /// End, likewise.
    pub(super) end_ns: u64,
    /// Payload bytes that the near end sent or received.
    pub(super) bytes: u64,
    /// Part of a warm-up, which is in no sum.
    pub(super) omitted: bool,
    /// TCP at the near end, if it sends and all its connections have a series.
    pub(super) tcp: Option<TcpAtEnd>,
}

/// TCP at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TcpAtEnd {
    /// Segments that all connections retransmitted in the interval.
    pub(super) retransmits: u64,
    /// Congestion window of the last connection, bytes.
    pub(super) cwnd_bytes: u64,
    /// Its smoothed RTT, ns.
    pub(super) rtt_ns: u64,
    /// Its mean deviation, ns.
    pub(super) rttvar_ns: u64,
}

impl Test<'_> {
    /// The intervals of one direction as the near end counted them, all trials joined end to end.
    pub(super) fn merged_intervals(&self, outbound: bool) -> Vec<MergedInterval> {
        let mut merged = Vec::new();
        let mut at = 0;
        for trial in &self.trials {
            let own = merged_intervals_of(self.spec(), trial, outbound);
            let measured = own.iter().filter(|part| !part.omitted).map(|part| part.end_ns).max().unwrap_or(0);
            merged.extend(own.into_iter().map(|part| match part.omitted {
                true => part,
                false => MergedInterval { start_ns: at + part.start_ns, end_ns: at + part.end_ns, ..part },
            }));
            at += measured;
        }
        merged
    }
}

/// The intervals of a trial; times after the warm-up count from its end, as in iperf3.
fn merged_intervals_of(spec: &Spec, trial: &Trial, outbound: bool) -> Vec<MergedInterval> {
    let near = &trial.near;
    let mut merged: Vec<MergedInterval> = Vec::new();
    let mut tcp: Vec<(&FlowTally, u64)> = senders(near, outbound).into_iter().map(|flow| (flow, 0)).collect();
    for entry in series(near, &trial.far, outbound) {
        let omitted = entry.start_ns < spec.warmup_ns;
        let from = if omitted { 0 } else { spec.warmup_ns };
        let (start_ns, end_ns) = (entry.start_ns - from, entry.end_ns.saturating_sub(from));
        let bytes = if outbound { entry.bytes_sent } else { entry.bytes_received };
        let open = merged.last_mut().filter(|part| {
            let length = part.end_ns - part.start_ns;
            part.omitted == omitted && length + SLACK_NS < INTERVAL_NS.max(spec.interval_ns).max(spec.reading_ns)
        });
        match open {
            Some(part) => (part.end_ns, part.bytes) = (end_ns, part.bytes + bytes),
            None => merged.push(MergedInterval { start_ns, end_ns, bytes, omitted, tcp: None }),
        }
    }
    let last = merged.len();
    for (number, part) in merged.iter_mut().enumerate() {
        let end = if part.omitted { part.end_ns } else { part.end_ns + spec.warmup_ns };
        let until = if number + 1 == last { u64::MAX } else { end + SLACK_NS };
        for (flow, before) in &mut tcp {
            let Some(sample) = flow.tcp.iter().take_while(|sample| sample.at_ns <= until).last() else { continue };
            let sum = part.tcp.map_or(0, |tcp| tcp.retransmits);
            part.tcp = Some(TcpAtEnd {
                retransmits: sum + sample.retransmits.saturating_sub(*before),
                cwnd_bytes: u64::from(sample.cwnd) * u64::from(sample.mss),
                rtt_ns: sample.rtt_ns,
                rttvar_ns: sample.rttvar_ns,
            });
            *before = sample.retransmits;
        }
    }
    merged
}

/// The near end's series, or the whole trial as a single entry.
fn series(near: &EndTally, far: &EndTally, outbound: bool) -> Vec<Interval> {
    if !near.intervals.is_empty() {
        return near.intervals.clone();
    }
    let (bytes, ns) = match outbound {
        true => (near.bytes_sent, near.sending_ns),
        false => (near.bytes_received, near.receiving_ns),
    };
    let end_ns = if ns == 0 { far.sending_ns.max(far.receiving_ns) } else { ns };
    let whole = Interval { end_ns, bytes_sent: bytes, bytes_received: bytes, ..Interval::default() };
    if end_ns == 0 { Vec::new() } else { vec![whole] }
}

/// The near end's sending connections, if all have a TCP series.
fn senders(near: &EndTally, outbound: bool) -> Vec<&FlowTally> {
    let sending: Vec<&FlowTally> = near.flows.iter().filter(|flow| outbound && flow.bytes_sent > 0).collect();
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
    fn tenths_are_merged_to_seconds_and_trials_are_joined() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(2);
        for trial in &mut outcome.trials {
            trial.near.intervals = (0..25).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        }
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let merged: Vec<_> =
            test.merged_intervals(true).iter().map(|part| (part.start_ns / 1_000_000, part.bytes)).collect();
        assert_eq!(merged, [(0, 10_000), (1000, 10_000), (2000, 5_000), (2500, 10_000), (3500, 10_000), (4500, 5_000)]);
    }

    #[test]
    fn a_warm_up_is_separate_and_time_starts_after_it() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(1);
        outcome.spec.warmup_ns = 500_000_000;
        outcome.trials[0].near.intervals = (0..15).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let merged: Vec<_> =
            test.merged_intervals(true).iter().map(|s| (s.start_ns, s.end_ns, s.bytes, s.omitted)).collect();
        assert_eq!(merged, [(0, 500_000_000, 5_000, true), (0, 1_000_000_000, 10_000, false)]);
        let direction = &test.directions().unwrap()[0];
        assert_eq!((direction.sent.bytes, direction.sent.ns), (10_000, 1_000_000_000));
    }
}
