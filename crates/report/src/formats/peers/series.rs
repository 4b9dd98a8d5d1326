//! The near end's series, merged to the intervals of these programs.

use model::{DatagramReading, EndTally, FlowCounts, FlowTally, Interval, Spec, TcpSample, Trial};

use super::test::Test;

/// iperf3's interval; a finer series is merged to it.
const INTERVAL_NS: u64 = 1_000_000_000;
/// How much earlier than nominal an interval may end and still be complete, and how far a reading may be from its end.
const SLACK_NS: u64 = 5_000_000;
/// A part of less than this share of an interval is not one of its own: of its time the text would have a digit or none.
const LEAST: u64 = 10;

/// An interval of the test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MergedInterval {
    /// Start, ns since the test began (of the warm-up: since it began).
    pub(super) start_ns: u64,
    /// End, likewise.
    pub(super) end_ns: u64,
    /// Payload bytes that the near end sent or received.
    pub(super) bytes: u64,
    /// Part of a warm-up, which is in no sum.
    pub(super) omitted: bool,
    /// TCP at the near end, if it sends and all its connections have a series: the sum of the retransmissions, and the last connection.
    pub(super) tcp: Option<TcpAtEnd>,
    /// What arrived of datagrams, if all connections have a reading at both ends.
    pub(super) datagrams: Option<Arrivals>,
    /// The connections of the direction, if all have a reading at both ends.
    pub(super) streams: Vec<StreamInterval>,
}

/// One connection in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamInterval {
    pub(super) bytes: u64,
    pub(super) tcp: Option<TcpAtEnd>,
    pub(super) datagrams: Option<Arrivals>,
}

/// TCP at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TcpAtEnd {
    /// Segments retransmitted in the interval.
    pub(super) retransmits: u64,
    /// Congestion window, bytes.
    pub(super) cwnd_bytes: u64,
    /// The other end's window, bytes, if the kernel reports it.
    pub(super) window_bytes: Option<u32>,
    /// Smoothed RTT, ns.
    pub(super) rtt_ns: u64,
    /// Its mean deviation, ns.
    pub(super) rttvar_ns: u64,
    /// Path MTU of the socket, bytes, as it was at the end of the trial.
    pub(super) pmtu: Option<u32>,
    /// Times at which TCP has seen reordering so far.
    pub(super) reordering_seen: Option<u64>,
}

/// Datagrams of an interval at their receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Arrivals {
    /// Datagrams up to the highest number that arrived.
    pub(super) packets: u64,
    /// How many of them did not arrive.
    pub(super) lost: u64,
    /// Jitter at the end of the interval, ns; of several connections the mean.
    pub(super) jitter_ns: Option<u64>,
}

impl Arrivals {
    /// Lost in percent of all.
    pub(super) fn lost_percent(self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.packets as f64 }
    }
}

impl MergedInterval {
    /// Takes what follows it in as a part of itself.
    fn extend(&mut self, rest: Self) {
        (self.end_ns, self.bytes) = (rest.end_ns, self.bytes + rest.bytes);
        self.tcp = together(self.tcp, rest.tcp);
        self.datagrams = one_after_the_other(self.datagrams, rest.datagrams);
        if self.streams.len() != rest.streams.len() {
            self.streams.clear();
        }
        for (own, rest) in self.streams.iter_mut().zip(rest.streams) {
            own.bytes += rest.bytes;
            own.tcp = together(own.tcp, rest.tcp);
            own.datagrams = one_after_the_other(own.datagrams, rest.datagrams);
        }
    }
}

fn together(own: Option<TcpAtEnd>, rest: Option<TcpAtEnd>) -> Option<TcpAtEnd> {
    let (own, rest) = own.zip(rest)?;
    Some(TcpAtEnd { retransmits: own.retransmits + rest.retransmits, ..rest })
}

fn one_after_the_other(own: Option<Arrivals>, rest: Option<Arrivals>) -> Option<Arrivals> {
    let (own, rest) = own.zip(rest)?;
    Some(Arrivals { packets: own.packets + rest.packets, lost: own.lost + rest.lost, ..rest })
}

impl Test<'_> {
    /// The intervals of one direction as the near end counted them, all trials joined end to end.
    pub(super) fn merged_intervals(&self, outbound: bool) -> Vec<MergedInterval> {
        let mut merged: Vec<MergedInterval> = Vec::new();
        let mut at = 0;
        let least = nominal_ns(self.spec()) / LEAST;
        for trial in &self.trials {
            let own = merged_intervals_of(self.spec(), trial, outbound);
            let measured = own.iter().filter(|part| !part.omitted).map(|part| part.end_ns).max().unwrap_or(0);
            for mut part in own {
                if !part.omitted {
                    (part.start_ns, part.end_ns) = (at + part.start_ns, at + part.end_ns);
                }
                let before = merged.iter_mut().rfind(|before| before.omitted == part.omitted);
                let adjoining = before.filter(|before| before.end_ns == part.start_ns);
                match adjoining.filter(|_| part.end_ns - part.start_ns < least) {
                    Some(before) => before.extend(part),
                    None => merged.push(part),
                }
            }
            at += measured;
        }
        merged
    }
}

/// Length of an interval, ns.
fn nominal_ns(spec: &Spec) -> u64 {
    INTERVAL_NS.max(spec.interval_ns).max(spec.reading_ns)
}

/// The intervals of a trial; times after the warm-up count from its end, as in iperf3.
fn merged_intervals_of(spec: &Spec, trial: &Trial, outbound: bool) -> Vec<MergedInterval> {
    let near = &trial.near;
    let mut merged: Vec<MergedInterval> = Vec::new();
    for entry in series(near, &trial.far, outbound) {
        let omitted = entry.start_ns < spec.warmup_ns;
        let from = if omitted { 0 } else { spec.warmup_ns };
        let (start_ns, end_ns) = (entry.start_ns - from, entry.end_ns.saturating_sub(from));
        let bytes = if outbound { entry.bytes_sent } else { entry.bytes_received };
        // An entry that ended late does not shift those after it.
        let number = |start_ns: u64| (start_ns + SLACK_NS) / nominal_ns(spec);
        let open = merged.last_mut();
        let open = open.filter(|part| part.omitted == omitted && number(part.start_ns) == number(start_ns));
        match open {
            Some(part) => (part.end_ns, part.bytes) = (end_ns, part.bytes + bytes),
            None => merged.push(MergedInterval { start_ns, end_ns, bytes, omitted, ..MergedInterval::default() }),
        }
    }
    let mut tcp: Vec<(&FlowTally, u64)> = senders(near, outbound).into_iter().map(|flow| (flow, 0)).collect();
    let mut flows: Vec<Counted<'_>> = counted(trial, outbound);
    let last = merged.len();
    for (number, part) in merged.iter_mut().enumerate() {
        let end = if part.omitted { part.end_ns } else { part.end_ns + spec.warmup_ns };
        let until = if number + 1 == last { u64::MAX } else { end + SLACK_NS };
        let mut of_flows = Vec::new();
        for (flow, before) in &mut tcp {
            let Some(sample) = flow.tcp.iter().take_while(|sample| sample.at_ns <= until).last() else { continue };
            let own = at_end(flow, sample, before);
            let sum = part.tcp.map_or(0, |tcp| tcp.retransmits);
            part.tcp = Some(TcpAtEnd { retransmits: sum + own.retransmits, ..own });
            of_flows.push(own);
        }
        let steps: Option<Vec<FlowCounts>> = flows.iter_mut().map(|flow| flow.step(end, number + 1 == last)).collect();
        let Some(steps) = steps else { continue };
        let arrived: Option<Vec<Arrivals>> = steps.iter().map(arrivals).collect();
        part.datagrams = arrived.filter(|all| !all.is_empty()).map(|all| sum_of(&all));
        let one_tcp_each = of_flows.len() == steps.len();
        let stream = |(at, step): (usize, &FlowCounts)| StreamInterval {
            bytes: if outbound { step.bytes_sent } else { step.bytes_received },
            tcp: of_flows.get(at).copied().filter(|_| one_tcp_each),
            datagrams: arrivals(step),
        };
        part.streams = steps.iter().enumerate().map(stream).collect();
    }
    merged
}

fn at_end(flow: &FlowTally, sample: &TcpSample, before: &mut u64) -> TcpAtEnd {
    let since = sample.retransmits.saturating_sub(*before);
    *before = sample.retransmits;
    TcpAtEnd {
        retransmits: since,
        cwnd_bytes: u64::from(sample.cwnd) * u64::from(sample.mss),
        window_bytes: sample.peer_window_bytes,
        rtt_ns: sample.rtt_ns,
        rttvar_ns: sample.rttvar_ns,
        pmtu: flow.socket.pmtu,
        reordering_seen: sample.reordering_seen,
    }
}

/// A connection's counts over time.
struct Counted<'a> {
    flow: &'a FlowTally,
    /// At the end of the trial.
    whole: FlowCounts,
    /// At the end of the last interval; `None` if there was no reading then.
    before: Option<FlowCounts>,
}

/// The near end's connections of a direction, by number.
fn counted(trial: &Trial, outbound: bool) -> Vec<Counted<'_>> {
    let near = &trial.near;
    let moved = |flow: &&FlowTally| if outbound { flow.bytes_sent > 0 } else { flow.bytes_received > 0 };
    let own: Vec<&FlowTally> = near.flows.iter().filter(moved).collect();
    let alone = own.len() == 1;
    let mut all = Vec::with_capacity(own.len());
    for flow in own {
        let arrived = flow.datagrams.or(near.datagrams.filter(|_| alone)).filter(|_| !outbound);
        let far = trial.far.flows.iter().find(|far| (far.flow, far.direction) == (flow.flow, flow.direction));
        let far = far.and_then(|far| far.datagrams).or(trial.far.datagrams.filter(|_| alone));
        let datagrams = arrived.map(|own| DatagramReading {
            // Another program's sender is followed by its numbers.
            numbers: own
                .missed
                .map_or_else(|| far.map_or(own.received, |far| far.sent), |missed| own.received + missed),
            received: own.received,
            jitter_ns: own.jitter_ns,
        });
        let FlowTally { bytes_sent, bytes_received, .. } = *flow;
        let whole = FlowCounts { at_ns: u64::MAX, bytes_sent, bytes_received, datagrams };
        let nothing = FlowCounts { at_ns: 0, bytes_sent: 0, bytes_received: 0, datagrams: None };
        all.push(Counted { flow, whole, before: Some(nothing) });
    }
    all
}

impl Counted<'_> {
    /// The counts since the end of the last interval, up to the one that ends at `end_ns`, or up to the end of the trial.
    fn step(&mut self, end_ns: u64, last: bool) -> Option<FlowCounts> {
        let near = |reading: &&FlowCounts| reading.at_ns.abs_diff(end_ns) <= SLACK_NS;
        let now = if last { Some(self.whole) } else { self.flow.readings.iter().find(near).copied() };
        let before = std::mem::replace(&mut self.before, now);
        let (now, before) = now.zip(before)?;
        let since = before.datagrams.unwrap_or(DatagramReading { numbers: 0, received: 0, jitter_ns: None });
        Some(FlowCounts {
            bytes_sent: now.bytes_sent.saturating_sub(before.bytes_sent),
            bytes_received: now.bytes_received.saturating_sub(before.bytes_received),
            datagrams: now.datagrams.map(|now| DatagramReading {
                numbers: now.numbers.saturating_sub(since.numbers),
                received: now.received.saturating_sub(since.received),
                ..now
            }),
            ..now
        })
    }
}

fn arrivals(step: &FlowCounts) -> Option<Arrivals> {
    let step = step.datagrams?;
    // Those that were late are of an interval before.
    let lost = step.numbers.saturating_sub(step.received);
    Some(Arrivals { packets: step.numbers, lost, jitter_ns: step.jitter_ns })
}

fn sum_of(all: &[Arrivals]) -> Arrivals {
    let jitters: Option<Vec<u64>> = all.iter().map(|one| one.jitter_ns).collect();
    Arrivals {
        packets: all.iter().map(|one| one.packets).sum(),
        lost: all.iter().map(|one| one.lost).sum(),
        jitter_ns: jitters.and_then(|all| all.iter().sum::<u64>().checked_div(all.len() as u64)),
    }
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
    fn a_short_rest_belongs_to_the_interval_before_it_and_a_late_entry_shifts_no_other() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(2);
        let mut entries: Vec<Interval> = (0..20).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        (entries[9].end_ns, entries[10].start_ns) = (1_020_000_000, 1_020_000_000);
        entries.push(Interval { end_ns: 2_001_600_000, ..entry(2_000, 2_001) });
        outcome.trials[0].near.intervals = entries;
        outcome.trials[1].near.intervals = vec![entry(0, 4)];
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let merged: Vec<_> =
            test.merged_intervals(true).iter().map(|part| (part.start_ns / 1_000, part.bytes)).collect();
        assert_eq!(merged, [(0, 10_000), (1_020_000, 10_050)]);
        assert_eq!(test.merged_intervals(true)[1].end_ns, 2_005_600_000);
    }

    #[test]
    fn connections_have_their_readings_and_the_last_interval_their_totals() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(1);
        outcome.spec.flows = 2;
        let trial = &mut outcome.trials[0];
        trial.near.intervals = (0..25).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        let counts = |at_ns, bytes_sent| FlowCounts { at_ns, bytes_sent, bytes_received: 0, datagrams: None };
        let flow = |flow, bytes_sent, readings| FlowTally { flow, bytes_sent, readings, ..FlowTally::default() };
        let readings = |share: u64| vec![counts(1_000_100_000, 10 * share), counts(2_000_100_000, 20 * share)];
        trial.near.flows = vec![flow(0, 17_500, readings(700)), flow(1, 7_500, readings(300))];
        let bytes = |run: &model::Run| -> Vec<Vec<u64>> {
            let test = Test::of(run, &run.outcomes[0]).unwrap();
            let of = |part: &MergedInterval| part.streams.iter().map(|stream| stream.bytes).collect();
            test.merged_intervals(true).iter().map(of).collect()
        };
        assert_eq!(bytes(&run), [[7_000, 3_000], [7_000, 3_000], [3_500, 1_500]]);
        // Without the reading between two intervals neither is known.
        run.outcomes[0].trials[0].near.flows[1].readings.pop();
        assert_eq!(bytes(&run), [vec![7_000, 3_000], vec![], vec![]]);
    }

    #[test]
    fn datagrams_of_an_interval_are_those_between_two_readings() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(1);
        outcome.spec.transport = "udp".into();
        let trial = &mut outcome.trials[0];
        trial.near.intervals = (0..20).map(|n| entry(n * 100, (n + 1) * 100)).collect();
        let reading = DatagramReading { numbers: 500, received: 490, jitter_ns: Some(2_000) };
        let counts = FlowCounts { at_ns: 1_000_000_000, bytes_sent: 0, bytes_received: 490, datagrams: Some(reading) };
        let tally = |sent, received| {
            Some(model::DatagramTally { sent, received, jitter_ns: Some(3_000), ..model::DatagramTally::default() })
        };
        let flow = |bytes_received, datagrams, readings| FlowTally {
            bytes_received,
            datagrams,
            readings,
            ..FlowTally::default()
        };
        trial.near.flows = vec![flow(970, tally(0, 970), vec![counts])];
        trial.far.flows = vec![flow(0, tally(1_000, 0), Vec::new())];
        let test = Test::of(&run, &run.outcomes[0]).unwrap();
        let merged: Vec<_> = test.merged_intervals(false).iter().map(|part| part.datagrams.unwrap()).collect();
        let arrivals = |lost, jitter_ns| Arrivals { packets: 500, lost, jitter_ns: Some(jitter_ns) };
        assert_eq!(merged, [arrivals(10, 2_000), arrivals(20, 3_000)]);
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
