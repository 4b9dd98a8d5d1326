//! What TCP did: retransmissions, its RTT and its congestion window.

use model::{EndTally, FlowTally, SocketFacts, Spec, TcpSample, Trial, median};

use super::Headline;
use super::ends::senders;
use crate::tcp_clocks::spans;

/// A count over the connections of both ends in all trials; `None` if none reported it.
pub(super) fn total(trials: &[Trial], count: fn(&SocketFacts) -> Option<u64>) -> Option<u64> {
    let ends = trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
    ends.flat_map(|end| &end.flows).filter_map(|flow| count(&flow.socket)).reduce(u64::saturating_add)
}

/// Median of a figure over the readings of all sending connections after the warm-up or the start-up.
pub(super) fn typical(spec: &Spec, trials: &[Trial], figure: fn(&TcpSample) -> f64) -> Option<f64> {
    let counted = |trial: &Trial| {
        let started = [&trial.near, &trial.far].into_iter().filter_map(|end| end.steady_from_ns).max();
        let from = started.unwrap_or(spec.warmup_ns);
        let flows = senders(spec, &trial.near, &trial.far).into_iter().flat_map(sending);
        flows.flat_map(|flow| &flow.tcp).filter(|sample| sample.at_ns > from).map(figure).collect::<Vec<f64>>()
    };
    median(&trials.iter().flat_map(counted).collect::<Vec<_>>())
}

/// The share of a connection's busy time from which on its send buffer decides its rate.
const LIMITING: f64 = 0.2;

/// Longer round trips than the shortest by this factor show a queue on the path, which is full whatever the send buffer holds.
const QUEUED: f64 = 1.05;

/// Whether a stream was one trial of one connection which the send buffer limited for much of its time, and not the path as well.
pub(super) fn is_held_by_send_buffer(spec: &Spec, trials: &[Trial]) -> bool {
    let ([trial], Headline::Goodput) = (trials, Headline::of(spec)) else { return false };
    let senders = senders(spec, &trial.near, &trial.far);
    let [flow] = senders.into_iter().flat_map(sending).collect::<Vec<_>>()[..] else { return false };
    let trips: Vec<f64> = flow.tcp.iter().map(|sample| sample.rtt_ns as f64).collect();
    let shortest = trips.iter().copied().fold(f64::INFINITY, f64::min);
    let is_queued = median(&trips).is_some_and(|middle| middle > QUEUED * shortest);
    let limits = |[_, rwnd, sndbuf, rest]: [f64; 4]| sndbuf > LIMITING * (rwnd + sndbuf + rest);
    !is_queued && spans(&flow.tcp).is_some_and(limits)
}

/// The connections that sent payload: with both directions an end has others.
fn sending(end: &EndTally) -> impl Iterator<Item = &FlowTally> {
    end.flows.iter().filter(|flow| flow.bytes_sent > 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::stream_trial;
    use super::*;
    use model::Pattern;

    #[test]
    fn figures_are_of_the_senders_after_the_warm_up() {
        let spec = Spec { warmup_ns: 100, ..Spec::new("tcp", Pattern::Stream) };
        let sample = |at_ns, rtt_ns| TcpSample { at_ns, rtt_ns, cwnd: 10, mss: 1448, ..TcpSample::default() };
        let flow = |bytes_sent, retransmits, rtts: &[u64]| FlowTally {
            bytes_sent,
            socket: SocketFacts { retransmits: Some(retransmits), ..SocketFacts::default() },
            tcp: rtts.iter().zip(0..).map(|(rtt, at)| sample(at * 100, *rtt)).collect(),
            ..FlowTally::default()
        };
        let mut trial = stream_trial(&spec, 940);
        trial.near.flows = vec![flow(1, 3, &[9, 9, 20, 30, 40]), flow(0, 0, &[1, 1, 1, 1, 1, 1])];
        trial.far.flows = vec![flow(0, 1, &[7, 7, 7])];
        let trials = [trial];
        assert_eq!(typical(&spec, &trials, |sample| sample.rtt_ns as f64), Some(30.0));
        assert_eq!(total(&trials, |socket| socket.retransmits), Some(4));
        assert_eq!(total(&trials, |socket| socket.bytes_retransmitted), None);
    }

    #[test]
    fn one_connection_that_its_send_buffer_limits_is_recognised() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let of = |connections: usize, trials: usize, limited: u64, rtts: [u64; 3]| {
            let at = |at_ns, sndbuf, rtt_ns| TcpSample {
                at_ns,
                rtt_ns,
                busy_ns: Some(at_ns),
                sndbuf_limited_ns: Some(sndbuf),
                ..TcpSample::default()
            };
            let flow = FlowTally {
                bytes_sent: 1,
                tcp: vec![at(0, 0, rtts[0]), at(50, limited / 2, rtts[1]), at(100, limited, rtts[2])],
                ..FlowTally::default()
            };
            let mut trial = stream_trial(&spec, 940);
            trial.near.flows = vec![flow; connections];
            is_held_by_send_buffer(&spec, &vec![trial; trials])
        };
        assert!(of(1, 1, 74, [200, 201, 200]));
        assert!(!of(1, 1, 74, [200, 250, 250]), "the path has a queue, so it is full");
        assert!(!of(1, 1, 10, [200, 201, 200]), "something else limited it");
        assert!(!of(2, 1, 74, [200, 201, 200]), "another connection has a rate of its own");
        assert!(!of(1, 3, 74, [200, 201, 200]), "three trials show how far connections differ");
    }
}
