//! What a check found out about a path: the figures of both directions, a grade for the queues, what is wrong, and whether the path is
//! as the user expects.

use std::cmp::Ordering;

use model::{
    Direction, Estimate, Expectation, Finding, FindingKind, Outcome, PathFigure, Pattern, Ratio, Remedy, Run,
    RunHeader, RunKind, Spec, TransportName, Verdict,
};
use text::{Count, Rate, Text, Time, say};

use crate::limiter;
use crate::outcome::{is_unusable, why_unusable};

/// A share of lost datagrams above this is wrong.
const LOSS: f64 = 0.001;
/// A goodput whose interval is wider than this, relative to it, says little about the path.
const WIDE: f64 = 0.25;
/// Bytes of the smallest block whose rate is a goodput.
const BULK: u64 = 1_000;
/// Standard errors from a share to the end of its 95 % interval.
const Z95: f64 = 1.96;

/// How much a load adds to the round trip, with the steps of DSLReports' speed test (<https://www.dslreports.com/faq/17930>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BloatGrade {
    /// Less than 5 ms.
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl BloatGrade {
    /// The grade of a delay in ns.
    #[must_use]
    pub fn of(added_ns: f64) -> Self {
        match added_ns / 1e6 {
            ms if ms < 5.0 => Self::APlus,
            ms if ms < 30.0 => Self::A,
            ms if ms < 60.0 => Self::B,
            ms if ms < 200.0 => Self::C,
            ms if ms < 400.0 => Self::D,
            _ => Self::F,
        }
    }

    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

/// The parts of a check.
#[derive(Debug, Clone, Copy)]
pub struct Checkup<'a> {
    header: &'a RunHeader,
    outcomes: &'a [Outcome],
}

/// One direction of a path under load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnderLoad {
    /// Median of the round trip during the stream, ns.
    pub loaded_ns: f64,
    /// What the stream added to it, ns; `None` if it is not known without load.
    pub added_ns: Option<f64>,
}

/// What a curve says about the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePeak {
    /// The block, in bytes, with the highest of NetPIPE's rates, and this rate, bit/s; `None` if no block was large enough for a goodput.
    pub peak: Option<(u64, f64)>,
    /// The largest block that was measured, bytes.
    pub largest: u64,
}

impl<'a> Checkup<'a> {
    /// The parts of a run; `None` if it is not a check.
    #[must_use]
    pub fn of(header: &'a RunHeader, outcomes: &'a [Outcome]) -> Option<Self> {
        (header.kind == RunKind::Check).then_some(Self { header, outcomes })
    }

    /// The stream in a direction.
    #[must_use]
    pub fn stream(&self, direction: Direction) -> Option<&'a Outcome> {
        self.find(|spec| spec.pattern == Pattern::Stream && !is_udp(spec) && spec.direction == direction)
    }

    /// The datagrams in a direction.
    #[must_use]
    pub fn datagrams(&self, direction: Direction) -> Option<&'a Outcome> {
        self.find(|spec| spec.pattern == Pattern::Stream && is_udp(spec) && spec.direction == direction)
    }

    /// Requests and responses without load; of a curve its smallest blocks.
    #[must_use]
    pub fn round_trips(&self) -> Option<&'a Outcome> {
        let smallest = || self.points().min_by_key(|outcome| outcome.spec.block);
        self.find(|spec| spec.pattern == Pattern::Rr).or_else(smallest)
    }

    /// The curve of blocks that go there and come back: one connection, and one figure for both directions.
    #[must_use]
    pub fn curve(&self) -> Option<CurvePeak> {
        let largest = self.points().map(|outcome| outcome.spec.block).max()?;
        let usable = self.points().filter(|outcome| outcome.spec.block >= BULK && !is_unusable(outcome));
        let rates = usable.filter_map(|outcome| Some((outcome.spec.block, outcome.summary.netpipe_bps?)));
        let peak = rates.max_by(|(_, a), (_, b)| order(a, b));
        Some(CurvePeak { peak, largest })
    }

    fn points(&self) -> impl Iterator<Item = &'a Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.spec.pattern == Pattern::Pingpong && !outcome.trials.is_empty())
    }

    fn find(&self, is_it: impl Fn(&Spec) -> bool) -> Option<&'a Outcome> {
        self.outcomes.iter().find(|outcome| is_it(&outcome.spec))
    }

    /// The goodput in a direction, unless it is not to be used.
    #[must_use]
    pub fn goodput(&self, direction: Direction) -> Option<&'a Estimate> {
        self.stream(direction).filter(|outcome| !is_unusable(outcome))?.estimate.as_ref()
    }

    /// The round trip without load, ns: of the probe before a stream, of requests and responses, or of echoes.
    #[must_use]
    pub fn idle_ns(&self) -> Option<f64> {
        let streams = BOTH.into_iter().filter_map(|direction| self.stream(direction));
        let probed = streams.filter_map(|outcome| outcome.summary.probe.as_ref()?.idle.as_ref()).map(|rtt| rtt.p50_ns);
        let paths = [&self.header.path_outbound, &self.header.path_return].into_iter().flatten();
        let echoed = paths.filter_map(|path| path.ping.as_ref()?.median_ns);
        let asked = || self.round_trips()?.summary.rtt_p50_ns;
        probed.min().map(|ns| ns as f64).or_else(asked).or_else(|| echoed.min().map(|ns| ns as f64))
    }

    /// The round trip during the stream in a direction: of the probe, or of TCP itself where the far end has no probe.
    #[must_use]
    pub fn under_load(&self, direction: Direction) -> Option<UnderLoad> {
        let summary = &self.stream(direction)?.summary;
        match &summary.probe {
            Some(probe) => Some(UnderLoad { loaded_ns: probe.loaded.p50_ns as f64, added_ns: probe.bufferbloat_ns }),
            None => summary
                .tcp_rtt_ns
                .map(|ns| UnderLoad { loaded_ns: ns, added_ns: self.idle_ns().map(|idle| (ns - idle).max(0.0)) }),
        }
    }

    /// The grade of a direction's queues.
    #[must_use]
    pub fn grade(&self, direction: Direction) -> Option<BloatGrade> {
        self.under_load(direction)?.added_ns.map(BloatGrade::of)
    }

    /// Lost and sent datagrams of a direction.
    #[must_use]
    pub fn lost(&self, direction: Direction) -> Option<(u64, u64)> {
        let summary = &self.datagrams(direction)?.summary;
        summary.packets_lost.zip(summary.packets_sent).filter(|(_, sent)| *sent > 0)
    }

    /// The jitter of a direction's datagrams, ns.
    #[must_use]
    pub fn jitter_ns(&self, direction: Direction) -> Option<f64> {
        self.datagrams(direction)?.summary.jitter_ns
    }

    /// A figure that can be expected; of two directions the worse one.
    #[must_use]
    pub fn figure(&self, figure: PathFigure) -> Option<f64> {
        let worse = |of: &dyn Fn(Direction) -> Option<f64>| BOTH.into_iter().filter_map(of).max_by(order);
        match figure {
            PathFigure::Out => self.goodput(Direction::Send).map(|estimate| estimate.value),
            PathFigure::Back => self.goodput(Direction::Reverse).map(|estimate| estimate.value),
            PathFigure::Rtt => self.idle_ns(),
            PathFigure::Bloat => worse(&|direction| self.under_load(direction)?.added_ns),
            PathFigure::Loss => worse(&|direction| self.lost(direction).map(share)),
            PathFigure::Jitter => worse(&|direction| self.jitter_ns(direction)),
        }
    }

    /// The change that would help most: the first remedy of what limits a direction, outbound first.
    #[must_use]
    pub fn remedy(&self) -> Option<&'a Remedy> {
        let streams = BOTH.into_iter().filter_map(|direction| self.stream(direction));
        streams.flat_map(|outcome| outcome.summary.limits()).find_map(|(_, why)| why.remedies.first())
    }

    /// What is wrong with the path, and what is not as expected.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let unmet = self.header.expected.iter().filter_map(|expected| self.unmet(expected));
        let concerns = BOTH.into_iter().flat_map(|direction| self.concerns(direction));
        let finding = |kind| {
            move |(statement, cell): (Text, Option<u32>)| Finding {
                kind,
                statement,
                estimate: None,
                block: None,
                cells: cell.into_iter().collect(),
                comparison: None,
            }
        };
        let unmet = unmet.map(|statement| (statement, None)).map(finding(FindingKind::Unmet));
        unmet.chain(concerns.map(finding(FindingKind::Concern))).collect()
    }

    fn unmet(&self, expected: &Expectation) -> Option<Text> {
        let Expectation { figure, at_least, value } = *expected;
        let (name, bound) = (figure.name(), figure.shown(value));
        let Some(measured) = self.figure(figure) else {
            return Some(say!("{name} was not measured, and {bound} is expected"));
        };
        let side = if at_least { "less" } else { "more" };
        let own = figure.shown(measured);
        (!expected.is_met_by(measured)).then(|| say!("{name} is {own}, {side} than the {bound} that is expected"))
    }

    fn concerns(&self, direction: Direction) -> Vec<(Text, Option<u32>)> {
        let way = way(direction);
        let mut found = Vec::new();
        if let Some(stream) = self.stream(direction) {
            let mut add = |statement| found.push((statement, Some(stream.cell)));
            if let Some(why) = why_unusable(stream) {
                add(say!("{way}: the goodput is not to be used: {why}"));
            } else if stream.summary.verdicts.contains(&Verdict::NotSettled) {
                add(say!("{way}: the goodput had not settled when the trial ended"));
            } else if let Some(half) = self.goodput(direction).and_then(too_wide) {
                add(say!(
                    "{way}: the goodput varied by ±{}: repeat the check when hosts and path are quiet",
                    Ratio(half)
                ));
            }
            if let Some((added, grade)) =
                self.under_load(direction).and_then(|load| load.added_ns).zip(self.grade(direction))
                && grade >= BloatGrade::C
            {
                let time = Time(added);
                add(say!("{way}: a queue adds {time} to the round trip under load (grade {})", grade.name()));
            }
            for (_, why) in stream.summary.limits().filter(|(_, why)| !why.remedies.is_empty()) {
                add(say!("{way}: a host limits the goodput, not the path: {}", limiter::named(why)));
            }
        }
        if let Some((lost, sent)) = self.lost(direction)
            && least_share(lost, sent) > LOSS
        {
            let cell = self.datagrams(direction).map(|outcome| outcome.cell);
            let rate = self.datagrams(direction).and_then(|outcome| outcome.spec.rate_bps).map(|bps| Rate(bps as f64));
            let at = rate.map_or(Text::default(), |rate| say!(" at {rate}"));
            let share = Ratio(share((lost, sent)));
            found.push((
                say!("{way}: {share} of the datagrams are lost{at} ({} of {})", Count(lost), Count(sent)),
                cell,
            ));
        }
        found
    }
}

/// Both directions, outbound first.
const BOTH: [Direction; 2] = [Direction::Send, Direction::Reverse];

/// What a check found wrong, at its end; nothing of other runs.
#[must_use]
pub fn of_check(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Finding> {
    Checkup::of(header, outcomes).map(|checkup| checkup.findings()).unwrap_or_default()
}

/// What a finished check says against the path: what is not as expected, or without expectations everything that is wrong.
pub fn objections(run: &Run) -> impl Iterator<Item = &Finding> {
    let decisive = if run.header.expected.is_empty() { FindingKind::Concern } else { FindingKind::Unmet };
    run.findings.iter().filter(move |finding| finding.kind == decisive)
}

fn is_udp(spec: &Spec) -> bool {
    spec.transport == TransportName::Udp
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "out",
        Direction::Reverse => "back",
        Direction::Both => "in both directions",
    }
}

fn order(a: &f64, b: &f64) -> Ordering {
    a.total_cmp(b)
}

fn share((lost, sent): (u64, u64)) -> f64 {
    lost as f64 / sent as f64
}

/// The half width of an interval that is too wide, relative to the value.
fn too_wide(estimate: &Estimate) -> Option<f64> {
    estimate.relative_half_width().filter(|half| *half > WIDE)
}

/// Lower end of the 95 % interval of a share (Wilson, 1927).
fn least_share(count: u64, all: u64) -> f64 {
    let (n, p) = (all as f64, count as f64 / all as f64);
    let z2 = Z95 * Z95;
    let centre = p + z2 / (2.0 * n);
    let half = Z95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half) / (1.0 + z2 / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_are_those_of_dslreports() {
        let grades: Vec<&str> = [0.0, 4.9, 5.0, 29.9, 30.0, 60.0, 199.9, 200.0, 399.9, 400.0]
            .map(|ms| BloatGrade::of(ms * 1e6).name())
            .into();
        assert_eq!(grades, ["A+", "A+", "A", "A", "B", "C", "C", "D", "D", "F"]);
    }

    #[test]
    fn a_goodput_between_wide_limits_is_a_finding() {
        let between = |low, high| Estimate {
            statistic: "goodput".into(),
            unit: "bit/s".into(),
            value: 100.0,
            low,
            high,
            confidence: 0.95,
            method: "t".into(),
            n: 10,
        };
        assert_eq!(too_wide(&between(Some(80.0), Some(120.0))), None);
        assert_eq!(too_wide(&between(Some(7.0), Some(193.0))), Some(0.93));
        assert_eq!(too_wide(&between(None, None)), None);
    }

    #[test]
    fn a_single_lost_datagram_is_no_finding() {
        // Newcombe (1998), table I: Wilson's interval of 15 of 148 is 0.0624 to 0.1605.
        assert!((least_share(15, 148) - 0.0624).abs() < 5e-5);
        assert!(least_share(1, 625) < LOSS && least_share(5, 625) > LOSS);
        assert_eq!(least_share(0, 625), 0.0);
    }
}
