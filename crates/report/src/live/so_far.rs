//! The estimate so far of a run while it is conducted.

use analysis::compare::paired_difference;
use analysis::outcome::{Headline, estimate, outcome, sample};
use analysis::stats::mean;
use model::{Cell, Direction, EndTally, Estimate, Event, Interval, RunKind, Shared, Spec, Stopping, Trial};
use serde::Serialize;

use super::{directions, is_behind_end};

/// Fewest trials whose values give an interval. Until then that of the series within them counts.
const TRIALS: usize = 3;
/// Most entries of the series that are kept: an hour of them.
const MOST: usize = 36_000;

/// The estimates of a run with one cell, or of the difference of two, from the events so far.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    kind: RunKind,
    rule: Stopping,
    cells: Vec<Cell>,
    trials: Vec<Trial>,
    /// The rates of the series, outbound and return.
    rates: [Vec<f64>; 2],
}

/// An estimate while a run goes on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EstimateSoFar {
    /// The direction of its payload, if there is one for each.
    pub direction: Option<Direction>,
    /// The number of trials that ended.
    pub trials: usize,
    /// The estimate; of a comparison the ratio of B to A.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl SoFar {
    /// Takes what an event says.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Run(header) => {
                let (kind, rule, cells) = (header.kind, header.stopping.clone(), header.cells.clone());
                *self = Self { kind, rule, cells, ..Self::default() };
            }
            Event::Interval { end, interval, .. } => self.entry(end, interval),
            Event::Trial(trial) => self.trials.push(trial.clone()),
            _ => {}
        }
    }

    /// An entry of the series of an end. A receiver counts its goodput, the end that asks its exchanges.
    fn entry(&mut self, end: &str, entry: &Interval) {
        let [Cell { spec, .. }] = self.cells.as_slice() else { return };
        let way = usize::from(end == "near");
        let count = match Headline::of(spec) {
            Headline::Goodput => 8 * entry.bytes_received,
            Headline::Transactions if end == "near" => entry.transactions,
            _ => return,
        };
        let rates = &mut self.rates[if spec.is_stream() { way } else { 0 }];
        let ns = entry.end_ns.saturating_sub(entry.start_ns);
        // Before the first arrival there is no rate.
        let is_over = is_behind_end(spec, entry);
        let is_measured = entry.start_ns >= spec.warmup_ns && !is_over && (count > 0 || !rates.is_empty());
        if is_measured && ns > 0 && rates.len() < MOST {
            rates.push(count as f64 * 1e9 / ns as f64);
        }
    }

    /// The estimates of now; none before the first value.
    #[must_use]
    pub fn estimates(&self) -> Vec<EstimateSoFar> {
        let of = |direction, trials, estimate: Option<Estimate>| {
            estimate.map(|estimate| EstimateSoFar { direction, trials, estimate })
        };
        match self.cells.as_slice() {
            [cell] => {
                let ways = directions(&cell.spec);
                let several = ways.len() > 1;
                let each = ways.into_iter().filter_map(|way| {
                    of(several.then_some(way), self.trials.len(), self.of_way(&cell.spec, way, several))
                });
                each.collect()
            }
            [a, b] if self.kind == RunKind::Ab => {
                let side = |cell: &Cell| {
                    let own = self.trials.iter().filter(|trial| trial.cell == cell.id).cloned();
                    outcome(cell, own.collect(), &self.rule, analysis::Context { paired: true, ..Default::default() })
                };
                let ratio = paired_difference(&side(a), &side(b), &self.rule).estimate;
                of(None, self.trials.len(), ratio).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_way(&self, spec: &Shared<Spec>, way: Direction, several: bool) -> Option<Estimate> {
        let headline = Headline::of(spec);
        let values = if several {
            let receiver = |trial: &Trial| if way == Direction::Send { rate(&trial.far) } else { rate(&trial.near) };
            self.trials.iter().filter_map(receiver).collect()
        } else {
            sample(&self.trials)
        };
        let rates = &self.rates[usize::from(way == Direction::Reverse && spec.is_stream())];
        match mean(rates) {
            Some(so_far) if values.len() < TRIALS => estimate(headline, &[so_far], rates, &self.rule),
            _ => estimate(headline, &values, &[], &self.rule),
        }
    }
}

/// What an end received in a second, bit/s.
fn rate(receiver: &EndTally) -> Option<f64> {
    let window = receiver.arrivals();
    (window.ns > 0).then(|| window.bytes as f64 * 8e9 / window.ns as f64)
}

#[cfg(test)]
mod tests {
    use model::{Direction, RunHeader, Stop};

    use super::*;
    use crate::sample;

    fn begun(run: &model::Run) -> SoFar {
        let mut so_far = SoFar::default();
        let mut header = RunHeader { plan: None, ..run.header.clone() };
        for cell in &mut header.cells {
            cell.spec = Spec { stop: Stop::TimeNs(60_000_000_000), ..(*cell.spec).clone() }.into();
        }
        so_far.event(&Event::Run(header));
        so_far
    }

    fn entry(number: u64, bytes: u64) -> Event {
        let interval = Interval {
            start_ns: number * 100_000_000,
            end_ns: (number + 1) * 100_000_000,
            bytes_received: bytes,
            ..Interval::default()
        };
        Event::Interval { pass: 0, end: "far".into(), interval }
    }

    #[test]
    fn within_the_first_trial_the_series_gives_the_interval() {
        let mut so_far = begun(&sample::stream());
        assert_eq!(so_far.estimates(), []);
        // Nothing has arrived yet.
        so_far.event(&entry(0, 0));
        assert_eq!(so_far.estimates(), []);
        for number in 1..101 {
            so_far.event(&entry(number, 1_250_000 + 10_000 * (number % 3)));
        }
        let [one] = so_far.estimates().try_into().unwrap();
        let EstimateSoFar { direction: None, trials: 0, estimate } = one else { panic!("{one:?}") };
        assert!((estimate.value / 100.8e6 - 1.0).abs() < 0.001, "{}", estimate.value);
        assert!(estimate.low.unwrap() < estimate.value && estimate.value < estimate.high.unwrap());
    }

    #[test]
    fn three_trials_give_the_interval_of_the_result() {
        let run = sample::stream();
        let mut so_far = begun(&run);
        let trials = &run.outcomes[0].trials;
        assert!(trials.len() >= TRIALS);
        trials.iter().for_each(|trial| so_far.event(&Event::Trial(trial.clone())));
        let [one] = so_far.estimates().try_into().unwrap();
        let stated = run.outcomes[0].estimate.as_ref().unwrap();
        assert_eq!((one.trials, one.estimate.unit.as_str()), (trials.len(), "bit/s"));
        assert!((one.estimate.value / stated.value - 1.0).abs() < 0.05, "{} and {}", one.estimate.value, stated.value);
        assert!(one.estimate.low.is_some());
    }

    #[test]
    fn each_direction_has_its_own_and_a_comparison_has_the_ratio() {
        let mut run = sample::stream();
        let spec = Spec { direction: Direction::Both, ..(*run.header.cells[0].spec).clone() };
        run.header.cells[0].spec = spec.into();
        let mut so_far = begun(&run);
        for number in 1..51 {
            so_far.event(&entry(number, 1_250_000));
        }
        assert_eq!(so_far.estimates().iter().map(|one| one.direction).collect::<Vec<_>>(), [Some(Direction::Send)]);

        let mut run = sample::pair();
        run.header.cells = run.outcomes.iter().map(|side| Cell::new(side.cell, side.spec.clone())).collect();
        let mut so_far = begun(&run);
        for pass in 0..24 {
            // A B B A, with a bit less of B.
            let cell = u32::from(matches!(pass % 4, 1 | 2));
            let value = Some(if cell == 0 { 1e9 } else { 0.97e9 } + f64::from(pass) * 1e5);
            so_far.event(&Event::Trial(Trial { cell, pass, value, ..run.outcomes[0].trials[0].clone() }));
        }
        let [one] = so_far.estimates().try_into().unwrap();
        assert!(one.estimate.unit == "ratio" && (one.estimate.value - 0.97).abs() < 1e-3, "{:?}", one.estimate);
    }
}
