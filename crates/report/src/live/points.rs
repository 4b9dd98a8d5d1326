//! The numbers of a running stream, transfer or round-trip test, as the events come: what live figures show.

use model::{Direction, Event, Interval, Shared, Spec};
use serde::Serialize;

use super::counts::{Change, Counts};
use super::readings::Readings;
use super::{directions, is_behind_end, is_moment, measured};

/// What happened between two moments of a trial in one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LivePoint {
    /// Measured time at its end, over all trials so far, s.
    pub time_s: f64,
    /// The trial, from 1.
    pub trial: u32,
    /// The direction of its payload.
    pub direction: Direction,
    /// The flow; null for all together.
    pub flow: Option<u32>,
    /// Whether it is an entry of the series, which has the rate alone, and not a reading.
    pub fine: bool,
    /// Payload bytes in this direction since the run began; null for a single flow, and for round trips.
    pub bytes: Option<u64>,
    /// Goodput, bit/s; with another program's receiver the rate that was sent.
    pub bits_per_s: Option<f64>,
    /// Round trips, 1/s; null for streams.
    pub transactions_per_s: Option<f64>,
    /// Retransmitted segments; null where the transport is not TCP.
    pub retransmits: Option<u64>,
    /// Smoothed RTT at its end, ns; of several connections the mean.
    pub rtt_ns: Option<f64>,
    /// Congestion windows at its end, added up, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Share of the numbered datagrams that did not arrive.
    pub lost: Option<f64>,
    /// Jitter (RFC 3550), ns.
    pub jitter_ns: Option<f64>,
}

/// Makes the points of one run.
#[derive(Debug, Clone, Default)]
pub struct LivePoints {
    spec: Option<Shared<Spec>>,
    ended_ns: u64,
    /// Bytes of the trials that ended, in each direction.
    ended_bytes: Vec<(Direction, u64)>,
    readings: Readings,
    /// Also the entries of the series.
    with_series: bool,
}

impl LivePoints {
    /// Makes also a point of each entry of the series, ten times a second.
    #[must_use]
    pub fn with_series() -> Self {
        Self { with_series: true, ..Self::default() }
    }

    /// The rate of an entry of the series of a receiving end, or of the end that asks.
    fn entry(&self, pass: u32, end: &str, entry: &Interval) -> Option<LivePoint> {
        let spec = self.spec.as_ref().filter(|_| self.with_series)?;
        let ns = entry.end_ns.checked_sub(entry.start_ns).filter(|ns| *ns > 0)?;
        let per_second = |count: u64| count as f64 * 1e9 / ns as f64;
        let near = end == "near";
        let direction = if near && spec.is_stream() { Direction::Reverse } else { Direction::Send };
        let is_own = if spec.is_stream() { directions(spec).contains(&direction) } else { near };
        (is_own && !is_behind_end(spec, entry)).then(|| LivePoint {
            time_s: (self.ended_ns + entry.end_ns) as f64 / 1e9,
            trial: pass + 1,
            direction,
            fine: true,
            bits_per_s: spec.is_stream().then(|| per_second(8 * entry.bytes_received)),
            transactions_per_s: (!spec.is_stream()).then(|| per_second(entry.transactions)),
            ..LivePoint::default()
        })
    }

    /// The points that follow from an event; often none. Runs of several cells have none.
    pub fn event(&mut self, event: &Event) -> Vec<LivePoint> {
        match event {
            Event::Run(header) => self.spec = measured(header),
            Event::Interval { pass, end, interval } => {
                return self.entry(*pass, end, interval).into_iter().collect();
            }
            Event::Reading { pass, end, reading } => {
                let Some(spec) = &self.spec else { return Vec::new() };
                if let Some((before, counts)) = self.readings.add(spec, end, reading) {
                    return self.points(*pass, before.as_ref(), &counts);
                }
            }
            Event::Trial(trial) if self.spec.is_some() => {
                let (before, counts) = self.readings.end(trial);
                let points = self.points(trial.pass, before.as_ref(), &counts);
                self.ended_ns += counts.at_ns();
                self.ended_bytes = self.bytes(&counts);
                return points;
            }
            _ => {}
        }
        Vec::new()
    }

    /// The bytes of all trials so far in each direction.
    fn bytes(&self, counts: &Counts) -> Vec<(Direction, u64)> {
        let Some(spec) = self.spec.as_ref().filter(|spec| spec.is_stream()) else { return Vec::new() };
        let own = directions(spec).into_iter().map(|way| (way, counts.since(None, way, None, true).bytes()));
        own.map(|(way, bytes)| (way, bytes + of_way(&self.ended_bytes, way).unwrap_or(0))).collect()
    }

    fn points(&self, pass: u32, before: Option<&Counts>, counts: &Counts) -> Vec<LivePoint> {
        let Some(spec) = &self.spec else { return Vec::new() };
        let (stream, flows) = (spec.is_stream(), counts.flows(before));
        let each = stream && flows.len() > 1;
        let flows = [None].into_iter().chain(flows.into_iter().map(Some).filter(|_| each));
        let moved = self.bytes(counts);
        let time_s = (self.ended_ns + counts.at_ns()) as f64 / 1e9;
        let of = |flow, direction| {
            let change = counts.since(before, direction, flow, stream);
            is_moment(&change, before).then(|| LivePoint {
                time_s,
                trial: pass + 1,
                direction,
                flow,
                bytes: of_way(&moved, direction).filter(|_| flow.is_none()),
                ..point(&change, stream)
            })
        };
        flows.flat_map(|flow| directions(spec).into_iter().filter_map(move |way| of(flow, way))).collect()
    }
}

fn of_way(bytes: &[(Direction, u64)], way: Direction) -> Option<u64> {
    bytes.iter().find(|(other, _)| *other == way).map(|(_, bytes)| *bytes)
}

fn point(change: &Change, stream: bool) -> LivePoint {
    let per_second = |count: f64| (change.seconds > 0.0).then(|| count / change.seconds);
    LivePoint {
        bits_per_s: change.rate().filter(|_| stream),
        transactions_per_s: per_second(change.transactions).filter(|_| !stream),
        retransmits: change.retransmits,
        rtt_ns: change.rtt_ns,
        cwnd_bytes: change.cwnd_bytes,
        lost: change
            .datagrams
            .filter(|[numbers, _]| *numbers > 0)
            .map(|[numbers, received]| numbers.saturating_sub(received) as f64 / numbers as f64),
        jitter_ns: change.jitter_ns,
        ..LivePoint::default()
    }
}
