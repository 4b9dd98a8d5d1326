//! Adds up the counts of the threads.

use model::tally::Window;
use model::{
    DatagramTally, EndTally, FlowCounts, FlowTally, Histogram, PacingTally, ProbeSample, RttTally, SizeCount, Spec,
    TcpSample, ThreadTime,
};

use super::tcp;
use crate::core::{Snapshot, TrialPlan};
use crate::transport::FlowLeg;

/// What one thread counted, leg by leg.
#[derive(Default)]
pub(super) struct ThreadLegs {
    legs: Vec<ThreadLeg>,
    /// Its use of its core, if there is one leg.
    pub(super) time: Option<ThreadTime>,
}

/// The series of the flows, by their numbers, and when the trial began.
pub(super) struct Series {
    pub(super) tcp: Vec<Vec<TcpSample>>,
    pub(super) counts: Vec<Vec<FlowCounts>>,
    pub(super) start_ns: u64,
}

/// One thread's part of a leg: its flows, their round trips, and the timing errors of paced sends.
type ThreadLeg = (Vec<FlowLeg>, Histogram, Histogram);

impl ThreadLegs {
    pub(super) fn push(&mut self, flows: Vec<FlowLeg>, rtt: Histogram, pace: Histogram) {
        self.legs.push((flows, rtt, pace));
    }
}

/// The probe's round trips of all its threads and legs, and those that had connections of their own.
pub(super) fn round_trips(threads: Vec<ThreadLegs>, start_ns: u64) -> (Option<RttTally>, Vec<ProbeSample>) {
    let (mut all, mut count, mut singles) = (Histogram::new(), 0, Vec::new());
    for (mut flows, rtt, _) in threads.into_iter().flat_map(|thread| thread.legs) {
        all.merge(&rtt);
        count += flows.iter().map(|flow| flow.counts.transactions).sum::<u64>();
        singles.extend(flows.iter_mut().flat_map(|flow| std::mem::take(&mut flow.probes)));
    }
    singles.iter_mut().for_each(|sample: &mut ProbeSample| sample.at_ns = sample.at_ns.saturating_sub(start_ns));
    singles.sort_by_key(|sample| sample.at_ns);
    (RttTally::weighted(all, count), singles)
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
            leg(&plan.spec, flows, rtt, &pace, keep_flows.then_some(&mut series))
        })
        .unzip()
}

/// One leg; only flows that are in `series` are described.
fn leg(
    spec: &Spec,
    mut flows: Vec<FlowLeg>,
    rtt: Histogram,
    pace: &Histogram,
    series: Option<&mut Series>,
) -> (EndTally, [u64; 4]) {
    flows.sort_by_key(|flow| flow.flow);
    let sum = flows.iter().map(|flow| flow.counts).fold(Snapshot::default(), |sum, one| sum + one);
    let span = |(first, last): (u64, u64)| last.saturating_sub(first);
    let batch = flows.iter().map(|flow| flow.batch).max().unwrap_or(1);
    let datagrams = flows.iter().filter_map(datagrams).reduce(DatagramTally::together);
    let datagrams = datagrams.map(|all| DatagramTally { jitter_ns: jitter(&flows), ..all });
    let mut sizes = Vec::new();
    flows.iter().for_each(|flow| SizeCount::add(&mut sizes, &flow.sizes));
    let spans = [sum.sent_ns.0, sum.sent_ns.1, sum.arrival_ns.0, sum.arrival_ns.1];
    let tally = EndTally {
        began_ns: series.as_ref().map(|series| series.start_ns),
        bytes_sent: sum.bytes_sent,
        bytes_received: sum.bytes_received,
        calls_sent: sum.calls_sent,
        calls_received: sum.calls_received,
        blocks_sent: sum.blocks_sent,
        transactions: sum.transactions,
        sending_ns: span(sum.sent_ns),
        receiving_ns: span(sum.arrival_ns),
        after_first: spec.is_stream().then(|| after_first(spec, &sum, &flows)).flatten(),
        before_last: before_last(&flows),
        rtt: RttTally::from_histogram(rtt, batch),
        pacing: PacingTally::from_histogram(pace).map(|tally| PacingTally {
            asleep_ns: sum.given_up_ns.0,
            blocked_ns: sum.given_up_ns.1,
            ..tally
        }),
        datagrams,
        sizes,
        stamps: flows.iter_mut().find_map(|flow| flow.stamps.take()),
        bytes_unsent: flows.iter().map(|flow| flow.unsent).sum(),
        flows: series.map_or_else(Vec::new, |series| flows.into_iter().map(|flow| flow_tally(flow, series)).collect()),
        ..EndTally::default()
    };
    (tally, spans)
}

/// The bytes after the first arrival. Flows without a rate share the path, so their arrivals are one sequence. Paced
/// flows have a sequence each: they begin at the same time, and all but one would count a block too many.
fn after_first(spec: &Spec, sum: &Snapshot, flows: &[FlowLeg]) -> Option<Window> {
    if spec.rate_bps.is_none() {
        let ns = sum.arrival_ns.1.saturating_sub(sum.arrival_ns.0);
        return (sum.arrival_ns.0 > 0).then(|| Window { bytes: sum.bytes_received - sum.first_bytes, ns });
    }
    let counts = flows.iter().map(|flow| flow.counts).filter(|counts| counts.arrival_ns.0 > 0);
    side_by_side(counts.map(|counts| counts.beats_since(None)))
}

/// The sequence counts of a flow over a transport with loss.
fn datagrams(flow: &FlowLeg) -> Option<DatagramTally> {
    let FlowLeg { counts, socket_drops, .. } = flow;
    flow.datagram.then(|| DatagramTally {
        sent: counts.datagrams_sent,
        received: counts.datagrams_received,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        socket_drops: *socket_drops,
        replies_lost: counts.replies_lost,
        missed: None,
        jitter_ns: counts.jitter(),
    })
}

/// The mean of the flows' jitters, ns.
fn jitter(flows: &[FlowLeg]) -> Option<u64> {
    let jitters: Vec<u64> = flows.iter().filter_map(|flow| flow.counts.jitter()).collect();
    jitters.iter().sum::<u64>().checked_div(jitters.len() as u64)
}

/// What paced flows sent before their last blocks.
fn before_last(flows: &[FlowLeg]) -> Option<Window> {
    let counts = flows.iter().map(|flow| flow.counts).filter(|counts| counts.begun.0 > 0);
    side_by_side(counts.map(|counts| counts.begun_since(None)))
}

/// Combines flows of one rate: all their bytes over the mean of their times. A flow that had one block more than
/// another also had its time; one of a single block has neither, and lowers nothing.
pub(super) fn side_by_side(flows: impl Iterator<Item = Window>) -> Option<Window> {
    let (mut count, mut sum) = (0, Window::default());
    for flow in flows {
        count += 1;
        (sum.bytes, sum.ns) = (sum.bytes + flow.bytes, sum.ns + flow.ns);
    }
    (count > 0).then(|| Window { ns: sum.ns / count, ..sum })
}

fn flow_tally(flow: FlowLeg, series: &mut Series) -> FlowTally {
    let mut readings = series.tcp.get_mut(flow.slot).map(std::mem::take).unwrap_or_default();
    let since = |(first, last): (u64, u64)| {
        (first > 0).then(|| [first, last.max(first)].map(|ns| ns.saturating_sub(series.start_ns)))
    };
    let sending_ns = since(flow.counts.sent_ns);
    if let Some([begun, _]) = sending_ns {
        tcp::begin(&mut readings, begun);
    }
    FlowTally {
        flow: flow.flow,
        direction: flow.direction,
        datagrams: datagrams(&flow),
        sending_ns,
        receiving_ns: since(flow.counts.arrival_ns),
        bytes_sent: flow.counts.bytes_sent,
        bytes_received: flow.counts.bytes_received,
        transactions: flow.counts.transactions,
        sizes: flow.sizes,
        socket: flow.facts,
        tcp: tcp::end(readings, flow.last, series.start_ns),
        readings: series.counts.get_mut(flow.slot).map(std::mem::take).unwrap_or_default(),
    }
}

/// For transports with one end: each copy, in either direction, is sent and received at once.
pub(super) fn mirror(tally: &mut EndTally, [first_sent, last_sent, first_arrival, last_arrival]: &mut [u64; 4]) {
    fn both(sent: &mut u64, received: &mut u64) {
        *sent += *received;
        *received = *sent;
    }
    both(&mut tally.bytes_sent, &mut tally.bytes_received);
    both(&mut tally.calls_sent, &mut tally.calls_received);
    tally.receiving_ns = tally.receiving_ns.max(tally.sending_ns);
    tally.after_first = tally.before_last;
    if *last_arrival <= *first_arrival {
        (*first_arrival, *last_arrival) = (*first_sent, *last_sent);
    }
    tally.intervals.iter_mut().for_each(|interval| both(&mut interval.bytes_sent, &mut interval.bytes_received));
    tally.flows.iter_mut().for_each(|flow| both(&mut flow.bytes_sent, &mut flow.bytes_received));
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;
    use proptest::prelude::*;

    fn flow(first_ns: u64, last_ns: u64, first_bytes: u64, bytes: u64) -> FlowLeg {
        let counts =
            Snapshot { bytes_received: bytes, arrival_ns: (first_ns, last_ns), first_bytes, ..Snapshot::default() };
        FlowLeg { counts, ..FlowLeg::default() }
    }

    fn goodput(spec: &Spec, flows: &[FlowLeg]) -> Option<Window> {
        let sum = flows.iter().map(|flow| flow.counts).fold(Snapshot::default(), |sum, one| sum + one);
        after_first(spec, &sum, flows)
    }

    proptest! {
        /// Flows of one rate whose first and last blocks begin at arbitrary times: the rate is that of the blocks.
        #[test]
        fn paced_flows_have_their_rate_whatever_their_phases(
            phases in prop::collection::vec(1u64..100_000_000, 1..9),
            gap in 1_000_000u64..100_000_000,
            until in 300_000_000u64..2_000_000_000,
            block in 1u64..1 << 20,
        ) {
            let flows: Vec<FlowLeg> = phases.iter().map(|phase| {
                let blocks = (until - phase) / gap + 1;
                let last = phase + (blocks - 1) * gap;
                // The last block may still be arriving; the first one took its time.
                let mut flow = flow(*phase, last, 0, blocks * block);
                flow.counts.beat = (last, (blocks - 1) * block);
                flow.counts.arrival_ns.1 = last + gap / 3;
                flow
            }).collect();
            let spec = Spec { rate_bps: Some(1), ..Spec::new("tcp", Pattern::Stream) };
            let window = goodput(&spec, &flows).unwrap();
            let truth = phases.len() as f64 * block as f64 / gap as f64;
            prop_assert!((window.bytes as f64 / window.ns as f64 / truth - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn flows_that_share_a_path_leave_out_the_first_arrival() {
        let flows = [flow(200, 1_000, 50, 500), flow(100, 900, 30, 400), flow(0, 0, 0, 0)];
        let spec = Spec::new("tcp", Pattern::Stream);
        assert_eq!(goodput(&spec, &flows), Some(Window { bytes: 870, ns: 900 }));
        assert_eq!(goodput(&spec, &flows[2..]), None, "nothing arrived");
        let paced = Spec { rate_bps: Some(1), ..spec };
        assert_eq!(goodput(&paced, &flows[..1]), Some(Window { bytes: 450, ns: 800 }));
        assert_eq!(goodput(&paced, &[flow(7, 7, 9, 9)]), Some(Window::default()), "a block has no rate");
    }
}
