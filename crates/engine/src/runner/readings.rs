//! The counts of a running trial, taken by the watching thread about once a second for whoever looks on, and kept for flows that no
//! other series has.

use model::{DatagramReading, FlowCounts, FlowReading, Reading, TcpReading};

use super::tcp;
use crate::core::{Counters, LinkPlan, Snapshot, TrialPlan, now_ns};
use crate::transport::Breaker;

/// A rest of a trial of less than this part of a period has no reading before it.
const LEAST: u64 = 10;

/// When the counts of a trial are reported, and of which connections.
pub(super) struct Counts {
    links: Vec<LinkPlan>,
    start_ns: u64,
    stop_ns: u64,
    period_ns: u64,
    /// Readings that were taken or missed.
    taken: u64,
    /// What is kept of each flow, by flow number: of several flows, and of datagrams that arrive.
    kept: Vec<Vec<FlowCounts>>,
    /// Most readings that are kept of a flow.
    most: usize,
    /// Every reading whose number is a multiple of this is kept.
    stride: u64,
}

impl Counts {
    /// Of a trial that starts and stops at these times of the monotonic clock. Passes of a curve have none.
    pub(super) fn new(plan: &TrialPlan, start_ns: u64, stop_ns: u64) -> Self {
        let period_ns = plan.spec.reading_ns.max(1);
        // Without an end nothing is due.
        let stop_ns = if plan.legs.len() == 1 { stop_ns } else { start_ns };
        let links = plan.links();
        let (kept, most) = (vec![Vec::new(); links.len()], tcp::most_readings(plan, links.len()));
        Self { links, start_ns, stop_ns, period_ns, taken: 0, kept, most, stride: 1 }
    }

    /// When the next reading is due. The last one of a trial would be its end: that is in its result.
    pub(super) fn due_ns(&self) -> u64 {
        let due = self.start_ns.saturating_add((self.taken + 1).saturating_mul(self.period_ns));
        if due.saturating_add(self.period_ns / LEAST) < self.stop_ns { due } else { u64::MAX }
    }

    /// The reading that is due, of the flows' counters and sockets. It is kept only if the trial ends soon after it.
    pub(super) fn take(&mut self, shared: &[Counters], breakers: &[Breaker]) -> Option<Reading> {
        let is_shown = self.due_ns().saturating_add(self.period_ns / 2) < self.stop_ns;
        let at_ns = now_ns().saturating_sub(self.start_ns);
        // Readings that were missed are not made up for.
        self.taken = (at_ns / self.period_ns).max(self.taken + 1);
        let alone = shared.len() <= Reading::MOST_FLOWS;
        let flows = self.links.iter().zip(shared).zip(breakers).map(|((link, counters), breaker)| {
            let tcp = alone.then(|| breaker.tcp()).flatten().map(|info| info.in_short());
            reading(link, &counters.snapshot(), tcp)
        });
        let flows: Vec<FlowReading> = flows.collect();
        if alone && self.taken.is_multiple_of(self.stride) {
            self.keep(at_ns, &flows);
        }
        let first_arrival = shared.iter().filter_map(Counters::first_arrival).min();
        is_shown.then(|| Reading {
            number: u32::try_from(self.taken).unwrap_or(u32::MAX),
            at_ns,
            first_arrival_ns: first_arrival.map(|ns| ns.saturating_sub(self.start_ns)),
            flows: if alone { flows } else { by_direction(&flows) },
            cpu: None,
        })
    }

    fn keep(&mut self, at_ns: u64, flows: &[FlowReading]) {
        let several = flows.len() > 1;
        for (own, flow) in self.kept.iter_mut().zip(flows).filter(|(_, flow)| several || flow.datagrams.is_some()) {
            let FlowReading { bytes_sent, bytes_received, datagrams, .. } = *flow;
            own.push(FlowCounts { at_ns, bytes_sent, bytes_received, datagrams });
        }
        if self.kept.iter().any(|own| own.len() >= self.most) {
            self.kept.iter_mut().for_each(tcp::thin);
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// What was kept of each flow, by flow number.
    pub(super) fn finish(self) -> Vec<Vec<FlowCounts>> {
        self.kept
    }
}

fn reading(link: &LinkPlan, counts: &Snapshot, tcp: Option<TcpReading>) -> FlowReading {
    let datagrams = (counts.numbers > 0).then(|| DatagramReading {
        numbers: counts.numbers,
        received: counts.datagrams_received,
        jitter_ns: counts.jitter(),
    });
    FlowReading {
        flow: link.flow,
        connections: 1,
        direction: link.direction,
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        transactions: counts.transactions,
        tcp,
        datagrams,
    }
}

/// The sums of each direction's connections.
fn by_direction(flows: &[FlowReading]) -> Vec<FlowReading> {
    let mut sums: Vec<FlowReading> = Vec::new();
    for flow in flows {
        match sums.iter_mut().find(|sum| sum.direction == flow.direction) {
            None => sums.push(*flow),
            Some(sum) => {
                sum.connections += flow.connections;
                sum.bytes_sent += flow.bytes_sent;
                sum.bytes_received += flow.bytes_received;
                sum.transactions += flow.transactions;
                let count = u64::from(sum.connections);
                sum.datagrams = [sum.datagrams, flow.datagrams].into_iter().flatten().reduce(|a, b| DatagramReading {
                    numbers: a.numbers + b.numbers,
                    received: a.received + b.received,
                    jitter_ns: match (a.jitter_ns, b.jitter_ns) {
                        (Some(mean), Some(own)) => Some((mean.saturating_mul(count - 1).saturating_add(own)) / count),
                        (mean, own) => mean.or(own),
                    },
                });
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use model::{Direction, Leg, Pattern, Role, Spec, Stop};

    use super::*;

    fn plan(flows: u32, legs: usize) -> TrialPlan {
        let spec = Spec { flows, ..Spec::new("tcp", Pattern::Stream) };
        let leg = Leg { block: 1, reply: 1, stop: Stop::Blocks(1), expected_ns: 0 };
        TrialPlan {
            spec,
            role: Role::Active,
            trial: 0,
            flows: 0..flows,
            legs: vec![leg; legs],
            path: model::PathTimes::default(),
        }
    }

    /// The times, in tenths of a second, at which readings of a trial of that length are due.
    fn due(tenths: u64, legs: usize) -> Vec<u64> {
        let mut counts = Counts::new(&plan(1, legs), 0, tenths * 100_000_000);
        let next = |_| {
            let due = counts.due_ns();
            counts.taken += 1;
            (due < u64::MAX).then_some(due / 100_000_000)
        };
        (0..4).map_while(next).collect()
    }

    #[test]
    fn a_second_that_ends_the_trial_has_no_reading() {
        assert_eq!(due(10, 1), [0; 0]);
        assert_eq!(due(11, 1), [0; 0]);
        assert_eq!(due(15, 1), [10]);
        assert_eq!(due(30, 1), [10, 20]);
        assert_eq!(due(600, 1), [10, 20, 30, 40]);
        assert_eq!(due(600, 2), [0; 0], "a pass of a curve");
    }

    #[test]
    fn a_reading_near_the_end_is_kept_and_not_shown() {
        let taken = |hours: u64| {
            let (now, hour) = (now_ns(), 3_600_000_000_000);
            let shared = [Counters::default(), Counters::default()];
            let mut counts = Counts { period_ns: hour, ..Counts::new(&plan(2, 1), now, now + hours * hour / 2) };
            let shown = counts.take(&shared, &[Breaker::default(), Breaker::default()]).is_some();
            (shown, counts.finish()[0].len())
        };
        assert_eq!((taken(3), taken(4)), ((false, 1), (true, 1)));
    }

    #[test]
    fn many_connections_are_summed_up_by_direction() {
        let direction = |flow: u32| if flow.is_multiple_of(2) { Direction::Send } else { Direction::Reverse };
        let counts = |flow: u32| Snapshot {
            bytes_sent: u64::from(flow),
            numbers: 2,
            jitter: u64::from(flow) * 16_000 + 1,
            ..Snapshot::default()
        };
        let flows: Vec<FlowReading> = (0..100)
            .map(|flow| reading(&LinkPlan { flow, index: flow, direction: direction(flow) }, &counts(flow), None))
            .collect();
        let sums = by_direction(&flows);
        let of = |sum: &FlowReading| (sum.flow, sum.connections, sum.bytes_sent, sum.datagrams.unwrap().numbers);
        assert_eq!(sums.iter().map(of).collect::<Vec<_>>(), [(0, 50, 2450, 100), (1, 50, 2500, 100)]);
        // The mean, but for the rounding of each step.
        let jitter = |sum: &FlowReading| sum.datagrams.unwrap().jitter_ns.unwrap();
        assert!(jitter(&sums[0]).abs_diff(49_000) < 50 && jitter(&sums[1]).abs_diff(50_000) < 50, "{sums:?}");
    }

    #[test]
    fn the_flows_of_a_process_have_their_numbers() {
        let shared = [Counters::default(), Counters::default()];
        shared[1].received(1000);
        let breakers = [Breaker::default(), Breaker::default()];
        let plan = TrialPlan { flows: 2..4, ..plan(4, 1) };
        let reading = Counts::new(&plan, now_ns(), u64::MAX).take(&shared, &breakers).unwrap();
        let of = |flow: &FlowReading| (flow.flow, flow.bytes_received, flow.tcp, flow.datagrams);
        assert_eq!(reading.flows.iter().map(of).collect::<Vec<_>>(), [(2, 0, None, None), (3, 1000, None, None)]);
        assert_eq!((reading.number, reading.first_arrival_ns), (1, None));
    }

    #[test]
    fn the_counts_of_several_flows_and_of_datagrams_are_kept() {
        let kept = |flows: u32, numbers: u64, readings: u32| {
            let shared: Vec<Counters> = (0..flows).map(|_| Counters::default()).collect();
            shared[0].received(700);
            shared[0].numbered(numbers, None);
            let breakers: Vec<Breaker> = shared.iter().map(|_| Breaker::default()).collect();
            // No period is over, so that the readings have the numbers 1, 2, 3.
            let mut counts = Counts { period_ns: u64::MAX, ..Counts::new(&plan(flows, 1), now_ns(), u64::MAX) };
            (0..readings).for_each(|_| drop(counts.take(&shared, &breakers)));
            counts.finish()
        };
        assert!(kept(1, 0, 3)[0].is_empty(), "the series of the end has them");
        let alone = kept(1, 9, 3);
        let numbers = |one: &FlowCounts| one.datagrams.map(|datagrams| datagrams.numbers);
        assert_eq!(alone[0].iter().map(numbers).collect::<Vec<_>>(), [Some(9); 3]);
        let [first, second] = &kept(2, 0, 3)[..] else { panic!("two flows") };
        assert_eq!((first[2].bytes_received, second[2].bytes_received, first.len(), second.len()), (700, 0, 3, 3));
        let long = kept(2, 0, 5_000);
        assert!((100..=600).contains(&long[0].len()) && long[0].len() == long[1].len(), "{}", long[0].len());
        assert!(long[0].windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    }
}
