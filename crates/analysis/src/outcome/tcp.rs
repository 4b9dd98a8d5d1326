//! What TCP did: retransmissions, its RTT and its congestion window.

use model::{EndTally, FlowTally, SocketFacts, Spec, TcpSample, Trial, median};

use super::ends::senders;

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

/// The connections that sent payload: with both directions an end has others.
fn sending(end: &EndTally) -> impl Iterator<Item = &FlowTally> {
    end.flows.iter().filter(|flow| flow.bytes_sent > 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::stream_trial;
    use super::*;

    #[test]
    fn figures_are_of_the_senders_after_the_warm_up() {
        let spec = Spec { warmup_ns: 100, ..Spec::new("tcp", "stream") };
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
}
