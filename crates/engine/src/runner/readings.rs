//! The counts of a running trial, taken by the watching thread about once a second for whoever looks on.

use model::{DatagramReading, FlowReading, Reading, TcpReading};

use crate::core::{Counters, LinkPlan, Snapshot, TrialPlan, now_ns};
use crate::transport::Breaker;

/// When the counts of a trial are reported, and of which connections.
pub(super) struct Counts {
    links: Vec<LinkPlan>,
    start_ns: u64,
    stop_ns: u64,
    period_ns: u64,
    /// Readings that were taken or missed.
    taken: u64,
}

impl Counts {
    /// Of a trial that starts and stops at these times of the monotonic clock. Passes of a curve have none.
    pub(super) fn new(plan: &TrialPlan, start_ns: u64, stop_ns: u64) -> Self {
        let period_ns = plan.spec.reading_ns.max(1);
        // Without an end nothing is due.
        let stop_ns = if plan.legs.len() == 1 { stop_ns } else { start_ns };
        Self { links: plan.links(), start_ns, stop_ns, period_ns, taken: 0 }
    }

    /// When the next reading is due. The last one of a trial would be its end: that is in its result.
    pub(super) fn due_ns(&self) -> u64 {
        let due = self.start_ns.saturating_add((self.taken + 1).saturating_mul(self.period_ns));
        if due.saturating_add(self.period_ns / 2) < self.stop_ns { due } else { u64::MAX }
    }

    /// The reading that is due, of the flows' counters and sockets.
    pub(super) fn take(&mut self, shared: &[Counters], breakers: &[Breaker]) -> Reading {
        let at_ns = now_ns().saturating_sub(self.start_ns);
        // Readings that were missed are not made up for.
        self.taken = (at_ns / self.period_ns).max(self.taken + 1);
        let alone = shared.len() <= Reading::MOST_FLOWS;
        let flows = self.links.iter().zip(shared).zip(breakers).map(|((link, counters), breaker)| {
            let tcp = alone.then(|| breaker.tcp()).flatten().map(|info| info.in_short());
            reading(link, &counters.snapshot(), tcp)
        });
        let flows: Vec<FlowReading> = flows.collect();
        let first_arrival = shared.iter().filter_map(Counters::first_arrival).min();
        Reading {
            number: u32::try_from(self.taken).unwrap_or(u32::MAX),
            at_ns,
            first_arrival_ns: first_arrival.map(|ns| ns.saturating_sub(self.start_ns)),
            flows: if alone { flows } else { by_direction(&flows) },
            cpu: None,
        }
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
    use model::{Direction, Role, Spec, Stop};

    use super::*;
    use crate::core::Leg;

    fn plan(flows: u32, legs: usize) -> TrialPlan {
        let spec = Spec { flows, ..Spec::new("tcp", "stream") };
        let leg = Leg { block: 1, reply: 1, stop: Stop::Blocks(1), expected_ns: 0 };
        TrialPlan { spec, role: Role::Active, trial: 0, flows: 0..flows, legs: vec![leg; legs] }
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
        assert_eq!(due(15, 1), [0; 0]);
        assert_eq!(due(16, 1), [10]);
        assert_eq!(due(30, 1), [10, 20]);
        assert_eq!(due(600, 1), [10, 20, 30, 40]);
        assert_eq!(due(600, 2), [0; 0], "a pass of a curve");
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
        let reading = Counts::new(&plan, now_ns(), u64::MAX).take(&shared, &breakers);
        let of = |flow: &FlowReading| (flow.flow, flow.bytes_received, flow.tcp, flow.datagrams);
        assert_eq!(reading.flows.iter().map(of).collect::<Vec<_>>(), [(2, 0, None, None), (3, 1000, None, None)]);
        assert_eq!((reading.number, reading.first_arrival_ns), (1, None));
    }
}
