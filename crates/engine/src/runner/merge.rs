//! Adds up what the threads counted.

use model::{DatagramTally, EndTally, FlowTally, Histogram, PacingTally, RttTally, TcpSample, ThreadTime};

use super::{FlowLeg, Snapshot, tcp};
use crate::TrialPlan;

/// What one thread counted, leg by leg.
#[derive(Default)]
pub(super) struct ThreadLegs {
    legs: Vec<ThreadLeg>,
    /// What it had of its core, where there is one leg.
    pub(super) time: Option<ThreadTime>,
}

/// The series of the flows, by their numbers, and when the trial began.
pub(super) struct Series {
    pub(super) tcp: Vec<Vec<TcpSample>>,
    pub(super) start_ns: u64,
}

/// One thread's part of a leg: its flows, their round trips, and by how much paced sends missed their distance.
type ThreadLeg = (Vec<FlowLeg>, Histogram, Histogram);

impl ThreadLegs {
    /// The round trips of all legs, one flow's.
    pub(super) fn round_trips(self) -> Option<RttTally> {
        let mut all = Histogram::new();
        self.legs.iter().for_each(|(_, rtt, _)| all.merge(rtt));
        RttTally::from_histogram(all, 1)
    }

    pub(super) fn push(&mut self, flows: Vec<FlowLeg>, rtt: Histogram, pace: Histogram) {
        self.legs.push((flows, rtt, pace));
    }
}

/// One tally for each leg that any thread began, and its first and last send and arrival.
pub(super) fn merge(plan: &TrialPlan, threads: Vec<ThreadLegs>, mut series: Series) -> (Vec<EndTally>, Vec<[u64; 4]>) {
    let legs = threads.iter().map(|thread| thread.legs.len()).max().unwrap_or(0);
    let mut threads: Vec<_> = threads.into_iter().map(|thread| thread.legs.into_iter()).collect();
    let keep_flows = plan.legs.len() == 1;
    (0..legs)
        .map(|_| {
            let mut flows = Vec::new();
            let (mut rtt, mut pace) = (Histogram::new(), Histogram::new());
            for (mut part, round_trips, errors) in threads.iter_mut().filter_map(Iterator::next) {
                flows.append(&mut part);
                rtt.merge(&round_trips);
                pace.merge(&errors);
            }
            leg(flows, rtt, &pace, keep_flows.then_some(&mut series))
        })
        .unzip()
}

/// One leg; its flows are only described where `series` has theirs.
fn leg(mut flows: Vec<FlowLeg>, rtt: Histogram, pace: &Histogram, series: Option<&mut Series>) -> (EndTally, [u64; 4]) {
    flows.sort_by_key(|flow| flow.flow);
    let sum = flows.iter().map(|flow| flow.counts).fold(Snapshot::default(), |sum, one| sum + one);
    let span = |(first, last): (u64, u64)| last.saturating_sub(first);
    let batch = flows.iter().map(|flow| flow.batch).max().unwrap_or(1);
    let datagrams = flows.iter().any(|flow| flow.datagram).then(|| DatagramTally {
        sent: sum.datagrams_sent,
        received: sum.datagrams_received,
        duplicates: sum.duplicates,
        reordered: sum.reordered,
        socket_drops: flows.iter().map(|flow| flow.socket_drops).sum(),
        replies_lost: sum.replies_lost,
        ..DatagramTally::default()
    });
    let spans = [sum.sent_ns.0, sum.sent_ns.1, sum.arrival_ns.0, sum.arrival_ns.1];
    let tally = EndTally {
        bytes_sent: sum.bytes_sent,
        bytes_received: sum.bytes_received,
        calls_sent: sum.calls_sent,
        calls_received: sum.calls_received,
        blocks_sent: sum.blocks_sent,
        transactions: sum.transactions,
        sending_ns: span(sum.sent_ns),
        receiving_ns: span(sum.arrival_ns),
        rtt: RttTally::from_histogram(rtt, batch),
        pacing: PacingTally::from_histogram(pace),
        datagrams,
        bytes_unsent: flows.iter().map(|flow| flow.unsent).sum(),
        flows: series.map_or_else(Vec::new, |series| flows.into_iter().map(|flow| flow_tally(flow, series)).collect()),
        ..EndTally::default()
    };
    (tally, spans)
}

fn flow_tally(flow: FlowLeg, series: &mut Series) -> FlowTally {
    let readings = series.tcp.get_mut(flow.slot).map(std::mem::take).unwrap_or_default();
    FlowTally {
        flow: flow.flow,
        bytes_sent: flow.counts.bytes_sent,
        bytes_received: flow.counts.bytes_received,
        transactions: flow.counts.transactions,
        socket: flow.facts,
        tcp: tcp::end(readings, flow.last, series.start_ns),
    }
}

/// For transports with one end: each copy, there or back, was sent and has arrived at once.
pub(super) fn mirror(tally: &mut EndTally, [first_sent, last_sent, first_arrival, last_arrival]: &mut [u64; 4]) {
    fn both(sent: &mut u64, received: &mut u64) {
        *sent += *received;
        *received = *sent;
    }
    both(&mut tally.bytes_sent, &mut tally.bytes_received);
    both(&mut tally.calls_sent, &mut tally.calls_received);
    tally.receiving_ns = tally.receiving_ns.max(tally.sending_ns);
    if *last_arrival <= *first_arrival {
        (*first_arrival, *last_arrival) = (*first_sent, *last_sent);
    }
    tally.intervals.iter_mut().for_each(|interval| both(&mut interval.bytes_sent, &mut interval.bytes_received));
    tally.flows.iter_mut().for_each(|flow| both(&mut flow.bytes_sent, &mut flow.bytes_received));
}
