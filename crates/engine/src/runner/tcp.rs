//! TCP_INFO of the first flows over the time of a trial, read by the watching thread. The kernel takes the socket's
//! lock for it, so a reading waits for a send or receive in progress, and a call that comes then waits for the
//! reading: about a microsecond.

use model::{Pattern, TcpSample};

use crate::core::{TrialPlan, now_ns};
use crate::transport::Breaker;

/// Flows of a process that have a series.
const FLOWS: usize = 64;
/// Maximum readings of a flow, besides the one at its end.
const MAX_READINGS: usize = 600;
/// Minimum readings, with any number of flows.
const MIN_READINGS: usize = 16;
/// Readings of all flows of an end over all its processes: about 500 bytes each in a document.
const ALL: usize = 4_096;

/// Whether the flow with this number among a worker's links has a series: not on curves, which have too many legs, nor
/// if connections are renewed.
pub(super) fn has_series(plan: &TrialPlan, slot: usize) -> bool {
    slot < FLOWS && plan.legs.len() == 1 && plan.spec.pattern != Pattern::Crr
}

/// Most readings of each of so many flows of a process.
pub(super) fn most_readings(plan: &TrialPlan, flows: usize) -> usize {
    let all = ALL / (plan.spec.processes.max(1) as usize);
    (all / flows.max(1)).clamp(MIN_READINGS, MAX_READINGS)
}

/// The series of a trial's flows while they grow.
pub(super) struct Readings<'a> {
    /// The readings of each flow that TCP carries, by flow number.
    flows: Vec<(&'a Breaker, Vec<TcpSample>)>,
    start_ns: u64,
    interval_ns: u64,
    most: usize,
    /// One tick in this many is read.
    stride: u64,
    /// The next tick that is.
    next: u64,
}

impl<'a> Readings<'a> {
    /// Takes the first readings, at the trial's start. `breakers` are those of its flows.
    ///
    /// A breaker has its flow's socket and no other, and none once it is closed: what is read belongs to the flow.
    pub(super) fn start(plan: &TrialPlan, breakers: &'a [Breaker], start_ns: u64) -> Self {
        let flows = breakers.iter().enumerate().take_while(|(slot, _)| has_series(plan, *slot));
        let flows: Vec<_> = flows.map(|(_, breaker)| (breaker, Vec::new())).collect();
        let most = most_readings(plan, flows.len());
        let interval_ns = plan.spec.interval_ns;
        let mut readings = Self { flows, start_ns, interval_ns, most, stride: 1, next: 0 };
        readings.read();
        if readings.flows.iter().all(|(_, series)| series.is_empty()) {
            readings.flows.clear();
        }
        readings.next = 1;
        readings
    }

    /// Round trip of the slowest flow by its first reading, ns, and that flow's segment size; `None` without TCP.
    pub(super) fn first_round_trip(&self) -> Option<(u64, u32)> {
        let firsts = self.flows.iter().filter_map(|(_, series)| series.first());
        firsts.map(|sample| (sample.rtt_ns, sample.mss)).max_by_key(|(rtt_ns, _)| *rtt_ns)
    }

    /// When the next readings are due; never where nothing is read.
    pub(super) fn due_ns(&self) -> u64 {
        if self.flows.is_empty() || self.interval_ns == 0 {
            return u64::MAX;
        }
        self.start_ns.saturating_add(self.next.saturating_mul(self.interval_ns))
    }

    /// Takes the readings that are due.
    pub(super) fn take(&mut self) {
        let now = self.read();
        // Missed readings are not made up.
        let tick = now.saturating_sub(self.start_ns) / self.interval_ns.max(1);
        if self.flows.iter().any(|(_, series)| series.len() >= self.most) {
            self.flows.iter_mut().for_each(|(_, series)| thin(series));
            self.stride = self.stride.saturating_mul(2);
        }
        self.next = (tick + 1).next_multiple_of(self.stride);
    }

    fn read(&mut self) -> u64 {
        for (breaker, series) in &mut self.flows {
            // Taken after the call: it may have waited for the socket.
            series.extend(breaker.tcp().map(|info| info.sample(now_ns().saturating_sub(self.start_ns))));
        }
        now_ns()
    }

    /// The series by the flows' numbers.
    pub(super) fn finish(self) -> Vec<Vec<TcpSample>> {
        self.flows.into_iter().map(|(_, series)| series).collect()
    }
}

/// Drops every other entry; the first one stays.
pub(super) fn thin<T>(series: &mut Vec<T>) {
    let mut keep = false;
    series.retain(|_| {
        keep = !keep;
        keep
    });
}

/// Begins a series with the last reading before the flow's first send: a connection that waits for its start is not idle for a
/// reason of its own.
pub(super) fn begin(series: &mut Vec<TcpSample>, sent_ns: u64) {
    let before = series.iter().take_while(|sample| sample.at_ns < sent_ns).count();
    series.drain(..before.saturating_sub(1));
}

/// Ends a series with the flow's own last reading, which it took before it closed.
pub(super) fn end(mut series: Vec<TcpSample>, last: Option<TcpSample>, start_ns: u64) -> Vec<TcpSample> {
    if let Some(mut last) = last {
        last.at_ns = last.at_ns.saturating_sub(start_ns);
        series.retain(|sample| sample.at_ns < last.at_ns);
        series.push(last);
    }
    series
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use model::{Leg, Role, Spec, Stop};

    use super::*;
    use crate::transport::WatchedSocket;

    fn plan(pattern: Pattern, legs: usize) -> TrialPlan {
        let spec = Spec { interval_ns: 1, ..Spec::new("tcp", pattern) };
        let leg = Leg { block: 1, reply: 1, stop: Stop::Blocks(1), expected_ns: 0 };
        TrialPlan {
            spec,
            role: Role::Active,
            trial: 0,
            flows: 0..1,
            legs: vec![leg; legs],
            path: model::PathTimes::default(),
        }
    }

    #[test]
    fn curves_and_connections_that_are_renewed_have_no_series() {
        assert!(has_series(&plan(Pattern::Stream, 1), 63) && has_series(&plan(Pattern::Rr, 1), 0));
        assert!(!has_series(&plan(Pattern::Stream, 1), 64));
        assert!(!has_series(&plan(Pattern::Stream, 2), 0) && !has_series(&plan(Pattern::Crr, 1), 0));
    }

    #[test]
    fn a_long_trial_is_read_at_longer_distances_and_its_series_stays_short() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let watched = WatchedSocket::new(socket);
        let breakers = [Breaker::of(&watched), Breaker::default()];
        let mut readings = Readings::start(&plan(Pattern::Stream, 1), &breakers, now_ns());
        for _ in 0..3 * MAX_READINGS {
            assert!(readings.due_ns() < u64::MAX);
            readings.take();
        }
        assert!(readings.stride >= 4, "{}", readings.stride);
        // The socket is closed: there is nothing more to read.
        drop(watched);
        let so_far = readings.flows[0].1.len();
        readings.take();
        let series = readings.finish();
        assert!(series[0].len() <= MAX_READINGS && series[0].len() <= so_far && series[1].is_empty());
        assert!(series[0].len() >= MAX_READINGS / 2 - 1, "{}", series[0].len());
        assert!(series[0].windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    }

    #[test]
    fn a_flow_without_tcp_is_not_read_again() {
        let breakers = [Breaker::default()];
        let readings = Readings::start(&plan(Pattern::Stream, 1), &breakers, 0);
        assert_eq!(readings.due_ns(), u64::MAX);
        assert_eq!(readings.finish(), Vec::<Vec<TcpSample>>::new());
    }

    #[test]
    fn a_series_begins_with_the_last_reading_before_the_first_send() {
        let times = |sent_ns| {
            let at = |at_ns| TcpSample { at_ns, ..TcpSample::default() };
            let mut series = vec![at(1), at(10), at(30)];
            begin(&mut series, sent_ns);
            series.iter().map(|sample| sample.at_ns).collect::<Vec<_>>()
        };
        assert_eq!([times(0), times(5), times(10)], [vec![1, 10, 30], vec![1, 10, 30], vec![1, 10, 30]]);
        assert_eq!([times(11), times(99)], [vec![10, 30], vec![30]]);
    }

    #[test]
    fn a_series_ends_with_the_flows_own_reading() {
        let at = |at_ns| TcpSample { at_ns, ..TcpSample::default() };
        let times = |series: Vec<TcpSample>| series.into_iter().map(|sample| sample.at_ns).collect::<Vec<_>>();
        assert_eq!(times(end(vec![at(1), at(10), at(30)], Some(at(1_020)), 1_000)), [1, 10, 20]);
        assert_eq!(times(end(vec![at(1)], None, 1_000)), [1]);
        assert_eq!(times(end(Vec::new(), Some(at(1_005)), 1_000)), [5]);
    }
}
