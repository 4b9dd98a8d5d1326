//! What else differs between the two sides of a paired run: round trips, loss and CPU time, besides what its answer is about.

use model::{Cell, EndCost, Outcome, Spec, Stopping, Summary, Trial};

use super::paired::per_round;
use crate::outcome::{Headline, cost, trial_summary};
use crate::stats::{ConfidenceInterval, Paired, mean};

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct SideFigure {
    /// What it is.
    pub of: SideFigureKind,
    /// A's: the mean over its trials, of a count the sum.
    pub a: f64,
    /// B's, likewise.
    pub b: f64,
    /// By how much B differs, by the rounds with a figure of each trial; `None` without such a round.
    pub difference: Option<SideDifference>,
}

/// By how much B's figure differs from A's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideDifference {
    /// B over A minus 1, of a count the difference.
    pub value: f64,
    /// Its interval at the confidence of the run, not corrected for the number of figures; `None` for fewer than six rounds.
    pub interval: Option<ConfidenceInterval>,
}

/// What a figure of a side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SideFigureKind {
    /// The goodput, bit/s.
    Goodput,
    /// Transactions per second.
    Transactions,
    /// The median round trip of requests, ns.
    RoundTrip,
    /// TCP's round trip under the load, ns.
    RoundTripUnderLoad,
    /// Retransmitted segments.
    Retransmits,
    /// Datagrams lost.
    Lost,
    /// CPU time of both ends' measuring processes, s per 10^9 bytes.
    CpuPerGigabyte,
    /// CPU time of both ends' measuring processes, ns per transaction.
    CpuPerTransaction,
}

impl SideFigureKind {
    /// Whether it is a number of things, which may be zero.
    #[must_use]
    pub fn is_count(self) -> bool {
        matches!(self, Self::Retransmits | Self::Lost)
    }
}

/// The figures that both sides of a paired run have, the one of its answer first.
#[must_use]
pub fn paired_figures(a: &Outcome, b: &Outcome, rule: &Stopping) -> Vec<SideFigure> {
    let sides = [a, b].map(|outcome| {
        let cell = Cell::new(outcome.cell, outcome.spec.clone());
        let of = |trial| TrialFigures { trial, summary: trial_summary(&cell, trial), spec: &outcome.spec };
        outcome.trials.iter().map(of).collect::<Vec<_>>()
    });
    let paired = Paired::new(rule);
    let kinds = match Headline::of(&a.spec) {
        Headline::Goodput => [SideFigureKind::Goodput, SideFigureKind::RoundTripUnderLoad].as_slice(),
        Headline::RoundTrip => &[SideFigureKind::RoundTrip],
        _ => &[SideFigureKind::Transactions, SideFigureKind::RoundTrip],
    };
    let others = [
        SideFigureKind::Retransmits,
        SideFigureKind::Lost,
        SideFigureKind::CpuPerGigabyte,
        SideFigureKind::CpuPerTransaction,
    ];
    kinds.iter().copied().chain(others).filter_map(|kind| figure(kind, &sides, &paired)).collect()
}

/// A trial with its figures.
struct TrialFigures<'a> {
    trial: &'a Trial,
    summary: Summary,
    spec: &'a Spec,
}

fn figure(of: SideFigureKind, sides: &[Vec<TrialFigures<'_>>; 2], paired: &Paired) -> Option<SideFigure> {
    let values = sides
        .each_ref()
        .map(|side| side.iter().map(|one| (one.trial, one.value(of))).collect::<Vec<(&Trial, Option<f64>)>>());
    let known = values.each_ref().map(|side| side.iter().filter_map(|(_, value)| *value).collect::<Vec<f64>>());
    let [a, b] = known.each_ref().map(|side| if of.is_count() { Some(side.iter().sum()) } else { mean(side) });
    if known.iter().any(Vec::is_empty) {
        return None;
    }
    let scaled =
        |value: &f64| if of.is_count() { Some(*value) } else { Some(value.ln()).filter(|log| log.is_finite()) };
    let [of_a, of_b] = values.each_ref().map(|side| {
        let scaled = side.iter().map(|(trial, value)| (*trial, value.as_ref().and_then(scaled)));
        scaled.collect::<Vec<_>>()
    });
    let rounds = per_round(of_a, of_b);
    // From the count of one trial to that of all trials of a side.
    let trials = known[1].len() as f64;
    let shown = |difference: f64| if of.is_count() { difference * trials } else { difference.exp_m1() };
    let difference = mean(&rounds).map(|value| SideDifference {
        value: shown(value),
        interval: paired
            .interval_of(&rounds)
            .map(|interval| ConfidenceInterval { low: shown(interval.low), high: shown(interval.high) }),
    });
    Some(SideFigure { of, a: a?, b: b?, difference })
}

impl TrialFigures<'_> {
    fn value(&self, of: SideFigureKind) -> Option<f64> {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        let cost = |each: fn(&EndCost) -> Option<f64>| {
            let cost = cost(self.spec, std::slice::from_ref(self.trial))?;
            Some(each(&cost.near)? + cost.far.as_ref().and_then(each).unwrap_or(0.0))
        };
        match of {
            SideFigureKind::Goodput | SideFigureKind::Transactions => self.trial.value,
            SideFigureKind::RoundTrip => self.summary.rtt_p50_ns,
            SideFigureKind::RoundTripUnderLoad => self.summary.tcp_rtt_ns,
            SideFigureKind::Retransmits => count(self.summary.retransmits),
            SideFigureKind::Lost => count(self.summary.packets_lost),
            SideFigureKind::CpuPerGigabyte => cost(|end| end.process_s_per_gb),
            SideFigureKind::CpuPerTransaction => cost(|end| end.process_ns_per_transaction),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Pattern, SocketFacts};

    use super::*;
    use crate::outcome::testing::stream_trial;
    use crate::outcome::{Context, outcome};

    /// Eight rounds; each trial of B carries 3 % less.
    fn sides() -> [Outcome; 2] {
        let spec = Spec::new("tcp", Pattern::Stream);
        let side = |id: u32, positions: [u32; 2], mbits: u64| {
            let trial = |pass: u32| {
                let mut trial = stream_trial(&spec, mbits + u64::from(pass % 3));
                (trial.cell, trial.pass) = (id, pass);
                let socket = SocketFacts { retransmits: Some(u64::from(2 * id)), ..SocketFacts::default() };
                trial.near.flows.push(FlowTally { socket, ..FlowTally::default() });
                trial.value = crate::trial_value(&spec, &trial.near, &trial.far);
                trial
            };
            let trials = (0..8).flat_map(|round| positions.map(|at| 4 * round + at)).map(trial).collect();
            outcome(&Cell::new(id, spec.clone()), trials, &Stopping::default(), Context::default())
        };
        [side(0, [0, 3], 1000), side(1, [1, 2], 970)]
    }

    #[test]
    fn each_figure_has_both_values_and_the_difference_with_its_interval() {
        let [a, b] = sides();
        let figures = paired_figures(&a, &b, &Stopping::default());
        let of = |kind| figures.iter().find(|figure| figure.of == kind);
        assert_eq!(figures[0].of, SideFigureKind::Goodput);
        let goodput = figures[0].difference.unwrap();
        assert!((goodput.value + 0.03).abs() < 0.005, "{goodput:?}");
        let interval = goodput.interval.unwrap();
        assert!(interval.low <= goodput.value && goodput.value <= interval.high && interval.high < 0.0, "{interval:?}");
        // Counts are sums, and zero has no ratio.
        let retransmits = of(SideFigureKind::Retransmits).unwrap();
        assert_eq!((retransmits.a, retransmits.b), (0.0, 32.0));
        assert!((retransmits.difference.unwrap().value - 32.0).abs() < 1e-9);
        assert_eq!(of(SideFigureKind::Lost), None, "{figures:?}");
    }

    #[test]
    fn five_rounds_have_no_interval() {
        let [mut a, mut b] = sides();
        [&mut a, &mut b].into_iter().for_each(|side| side.trials.truncate(10));
        let figures = paired_figures(&a, &b, &Stopping::default());
        assert!(figures[0].difference.unwrap().interval.is_none());
    }
}
