//! A trial in the parts between two readings of its connections, about a second each.

use model::{Direction, EndTally, FlowCounts, FlowTally, Outcome, Trial, median};

/// A last part shorter than this share of the others has too few arrivals for a rate.
const SHORT: f64 = 0.2;
/// Trials of fewer parts are shown one after the other.
const FEWEST: usize = 3;

/// What arrived between two readings. Another program's receiver reports nothing before its end, so for it this is what was sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its ends, ns since the start of the trial.
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// What arrived on each connection, in flow order.
    pub(super) flows: Vec<FlowPart>,
}

/// What arrived on one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FlowPart {
    pub(super) flow: u32,
    pub(super) bytes: u64,
    /// Numbered datagrams, and those of them that arrived.
    pub(super) datagrams: Option<[u64; 2]>,
    /// The jitter at its end.
    pub(super) jitter_ns: Option<u64>,
}

impl Part {
    pub(super) fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The middle of its time, `start_ns` after a common start.
    pub(super) fn middle(&self, start_ns: u64) -> f64 {
        (start_ns + self.from_ns) as f64 + self.length_ns() as f64 / 2.0
    }
}

/// The parts of each trial, in the order of the trials.
pub(super) struct Trials {
    pub(super) parts: Vec<Vec<Part>>,
    /// Whether the sender counted them.
    pub(super) is_sent: bool,
}

impl Trials {
    pub(super) fn of(outcome: &Outcome, direction: Direction) -> Self {
        let of = |is_sent: bool| outcome.trials.iter().map(|trial| parts(trial, direction, is_sent)).collect();
        let has_readings = |end: &EndTally| end.flows.iter().any(|flow| !flow.readings.is_empty());
        let is_sent = outcome.trials.iter().any(|trial| {
            let [receiver, sender] = ends(trial, direction);
            has_readings(sender) && !has_readings(receiver)
        });
        Self { parts: of(is_sent), is_sent }
    }

    /// Whether the trials are too short to show anything over their time.
    pub(super) fn are_short(&self) -> bool {
        let counts: Vec<f64> = self.parts.iter().map(|parts| parts.len() as f64).filter(|count| *count > 0.0).collect();
        median(&counts).is_some_and(|count| count < FEWEST as f64)
    }

    /// Each part with the time at which its trial starts if the trials follow one another without a gap.
    pub(super) fn in_a_row(&self) -> impl Iterator<Item = (u64, &Part)> {
        let lengths = self.parts.iter().map(|parts| parts.last().map_or(0, |last| last.to_ns));
        let starts = lengths.scan(0, |sum, length| {
            *sum += length;
            Some(*sum - length)
        });
        starts.zip(&self.parts).flat_map(|(start_ns, parts)| parts.iter().map(move |part| (start_ns, part)))
    }
}

/// The receiver and the sender of a direction.
fn ends(trial: &Trial, direction: Direction) -> [&EndTally; 2] {
    if direction == Direction::Reverse { [&trial.near, &trial.far] } else { [&trial.far, &trial.near] }
}

/// The directions that carry payload.
pub(super) fn directions(direction: Direction) -> Vec<Direction> {
    match direction {
        Direction::Both => vec![Direction::Send, Direction::Reverse],
        one => vec![one],
    }
}

/// The parts of a trial's payload in one direction, counted at one of its ends.
fn parts(trial: &Trial, direction: Direction, is_sent: bool) -> Vec<Part> {
    let [receiver, sender] = ends(trial, direction);
    let (own, other) = if is_sent { (sender, receiver) } else { (receiver, sender) };
    let flows: Vec<&FlowTally> = own.flows.iter().filter(|flow| flow.direction == direction).collect();
    let mut moments: Vec<(u64, Vec<Counts>)> = vec![(0, vec![Counts::default(); flows.len()])];
    let readings = flows.iter().map(|flow| flow.readings.len()).min().unwrap_or(0);
    for number in 0..readings {
        let own = flows.iter().map(|flow| Counts::of(&flow.readings[number], is_sent)).collect();
        let at_ns = flows.iter().map(|flow| flow.readings[number].at_ns).max().unwrap_or(0);
        moments.push((at_ns, own));
    }
    let end_ns = own.intervals.last().map_or(own.receiving_ns.max(own.sending_ns), |last| last.end_ns);
    moments.push((end_ns, flows.iter().map(|flow| Counts::at_end(flow, other, is_sent)).collect()));
    let usual = moments.get(1).map_or(0, |(at_ns, _)| *at_ns);
    let of = |pair: &[(u64, Vec<Counts>)]| {
        let [(from_ns, before), (to_ns, now)] = pair else { return None };
        let each = flows.iter().zip(before.iter().zip(now));
        let flows = each.map(|(flow, (before, now))| now.since(before, flow.flow)).collect();
        let part = Part { from_ns: *from_ns, to_ns: *to_ns, flows };
        let is_whole = part.length_ns() as f64 >= SHORT * usual as f64;
        (is_whole && part.length_ns() > 0 && !part.flows.is_empty()).then_some(part)
    };
    moments.windows(2).filter_map(of).collect()
}

/// The counts of a connection at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    bytes: u64,
    datagrams: Option<[u64; 2]>,
    jitter_ns: Option<u64>,
}

impl Counts {
    /// Those of a reading.
    fn of(counts: &FlowCounts, is_sent: bool) -> Self {
        let datagrams = counts.datagrams;
        Self {
            bytes: if is_sent { counts.bytes_sent } else { counts.bytes_received },
            datagrams: datagrams.map(|all| [all.numbers, all.received]),
            jitter_ns: datagrams.and_then(|all| all.jitter_ns),
        }
    }

    /// Those at the end of a trial: what was sent and did not arrive is lost.
    fn at_end(flow: &FlowTally, other: &EndTally, is_sent: bool) -> Self {
        if is_sent {
            return Self { bytes: flow.bytes_sent, ..Self::default() };
        }
        let own = flow.datagrams;
        let same = |one: &&FlowTally| (one.flow, one.direction) == (flow.flow, flow.direction);
        let sent = other.flows.iter().find(same).and_then(|one| one.datagrams).map_or(0, |datagrams| datagrams.sent);
        Self {
            bytes: flow.bytes_received,
            datagrams: own.map(|own| [sent.max(own.received), own.received]),
            jitter_ns: own.and_then(|own| own.jitter_ns),
        }
    }

    fn since(&self, before: &Self, flow: u32) -> FlowPart {
        let earlier = before.datagrams.unwrap_or_default();
        FlowPart {
            flow,
            bytes: self.bytes.saturating_sub(before.bytes),
            datagrams: self.datagrams.map(|now| [0, 1].map(|count| now[count].saturating_sub(earlier[count]))),
            jitter_ns: self.jitter_ns,
        }
    }
}
