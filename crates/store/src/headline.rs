//! The one number that stands for a run in a list, and how far to trust it.

use model::{Direction, Estimate, Finding, FindingKind, Outcome, Trust};

/// The goodput of each direction of `both`, outbound first.
pub(crate) type Directions = [Option<Estimate>; 2];

/// Follows a run's outcomes and findings and remembers what could stand for it.
#[derive(Debug, Default)]
pub(crate) struct Headline {
    outcomes: u32,
    outcome: Option<Estimate>,
    /// The directions of the last outcome, if it has payload in both.
    directions: Option<Directions>,
    peak: Option<Estimate>,
    first: Option<Estimate>,
    /// The values of the outcomes that have the unit of the first one with a value.
    values: Vec<f64>,
    unit: String,
    trust: Option<Trust>,
}

impl Headline {
    /// Takes note of an outcome.
    pub(crate) fn outcome(&mut self, outcome: &Outcome) {
        self.outcomes += 1;
        self.outcome.clone_from(&outcome.estimate);
        self.directions = directions(outcome);
        if let Some(estimate) = &outcome.estimate {
            if self.values.is_empty() {
                self.unit.clone_from(&estimate.unit);
            }
            if self.unit == estimate.unit {
                self.values.push(estimate.value);
            }
        }
        self.trust = self.trust.max(outcome.summary.trust); // the worst is the greatest
    }

    /// Takes note of a finding.
    pub(crate) fn finding(&mut self, finding: &Finding) {
        if finding.kind == FindingKind::Peak && self.peak.is_none() {
            self.peak.clone_from(&finding.estimate);
        }
        // A ratio between some of a plan's cells does not stand for the plan.
        let of_some = matches!(
            finding.kind,
            FindingKind::Effect | FindingKind::Asymmetry | FindingKind::Outlier | FindingKind::Unconfirmed
        );
        if self.first.is_none() && !of_some {
            self.first.clone_from(&finding.estimate);
        }
    }

    /// The estimate of the only outcome, else of the peak, else of the first finding that has one, else the median of the outcomes.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let only = self.outcome.as_ref().filter(|_| self.outcomes == 1);
        only.or(self.peak.as_ref()).or(self.first.as_ref()).cloned().or_else(|| self.median())
    }

    /// The directions of the only outcome; `None` for one direction, and for several outcomes.
    pub(crate) fn directions(&self) -> Option<&Directions> {
        self.directions.as_ref().filter(|_| self.outcomes == 1)
    }

    /// The median of the outcomes of one unit, without an interval: cells of a plan differ on purpose.
    fn median(&self) -> Option<Estimate> {
        Some(Estimate {
            statistic: Estimate::MEDIAN_OVER_CELLS.to_owned(),
            unit: self.unit.clone(),
            value: model::median(&self.values)?,
            low: None,
            high: None,
            confidence: 0.0,
            method: "median".to_owned(),
            n: u32::try_from(self.values.len()).unwrap_or(u32::MAX),
        })
    }

    /// The worst trust among the outcomes, `None` where none has a value.
    pub(crate) fn trust(&self) -> Option<Trust> {
        self.trust
    }
}

fn directions(outcome: &Outcome) -> Option<Directions> {
    let of = |wanted| outcome.directions().find(|(direction, _)| *direction == wanted).map(|(_, estimate)| estimate);
    let each = [Direction::Send, Direction::Reverse].map(of);
    each.iter().any(Option::is_some).then_some(each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Event, Pattern, Spec, Summary};

    fn estimate(value: f64) -> Option<Estimate> {
        let words = |text: &str| text.to_owned();
        let (statistic, unit, method) = (words("mean"), words("bit/s"), words("t"));
        Some(Estimate { statistic, unit, value, low: None, high: None, confidence: 0.95, method, n: 6 })
    }

    fn outcome(estimate: Option<Estimate>) -> Event {
        let (spec, summary) = (Spec::new("tcp", Pattern::Stream), Summary::default());
        Event::Outcome(Outcome { cell: 0, spec: spec.into(), summary, estimate, histogram: None, trials: Vec::new() })
    }

    fn finding(kind: FindingKind, estimate: Option<Estimate>) -> Event {
        Event::Finding(Finding {
            kind,
            statement: String::new().into(),
            estimate,
            block: None,
            cells: Vec::new(),
            comparison: None,
        })
    }

    impl Headline {
        fn follow(&mut self, event: &Event) {
            match event {
                Event::Outcome(outcome) => self.outcome(outcome),
                Event::Finding(finding) => self.finding(finding),
                _ => {}
            }
        }
    }

    fn headline(events: &[Event]) -> Option<f64> {
        let mut headline = Headline::default();
        events.iter().for_each(|event| headline.follow(event));
        headline.estimate().map(|estimate| estimate.value)
    }

    #[test]
    fn the_worst_outcome_decides_the_trust() {
        let mut headline = Headline::default();
        assert_eq!(headline.trust(), None);
        for (trust, worst) in [(Trust::High, Trust::High), (Trust::Low, Trust::Low), (Trust::Fair, Trust::Low)] {
            let Event::Outcome(mut outcome) = outcome(None) else { unreachable!() };
            outcome.summary.trust = Some(trust);
            headline.follow(&Event::Outcome(outcome));
            assert_eq!(headline.trust(), Some(worst));
        }
    }

    #[test]
    fn a_single_outcome_speaks_for_itself_and_a_curve_by_its_peak() {
        let latency = finding(FindingKind::Latency, estimate(3.0));
        let peak = finding(FindingKind::Peak, estimate(4.0));
        let (one, two) = (outcome(estimate(1.0)), outcome(estimate(2.0)));
        assert_eq!(headline(&[one.clone(), latency.clone(), peak.clone()]), Some(1.0));
        assert_eq!(headline(&[one.clone(), two.clone(), latency.clone(), peak]), Some(4.0));
        assert_eq!(headline(&[one, two, finding(FindingKind::Note, None), latency]), Some(3.0));
        assert_eq!(headline(&[outcome(None)]), None);
    }

    #[test]
    fn a_single_outcome_in_both_directions_has_two_numbers() {
        let Event::Outcome(mut both) = outcome(estimate(35.0)) else { unreachable!() };
        let of = |goodput| Some(Box::new(Summary { goodput_bps: Some(goodput), ..Summary::default() }));
        (both.summary.outbound, both.summary.return_trip) = (of(30.0), of(5.0));
        let mut headline = Headline::default();
        headline.follow(&Event::Outcome(both.clone()));
        let values = headline.directions().unwrap().clone().map(|one| one.unwrap().value);
        assert_eq!((values, headline.estimate().unwrap().value), ([30.0, 5.0], 35.0));
        headline.follow(&Event::Outcome(both));
        assert_eq!(headline.directions(), None, "two cells");
    }

    #[test]
    fn cells_without_a_common_finding_have_a_median() {
        let cells = [4.0, 1.0, 2.0, 9.0].map(|value| outcome(estimate(value)));
        assert_eq!(headline(&cells), Some(3.0));
        assert_eq!(headline(&cells[..3]), Some(2.0));
        let Event::Outcome(mut other) = outcome(estimate(100.0)) else { unreachable!() };
        other.estimate.as_mut().unwrap().unit = "ns".to_owned();
        assert_eq!(headline(&[&cells[..], &[Event::Outcome(other)]].concat()), Some(3.0), "of the first unit");
    }
}
