//! The lines of a comparison while it runs: one for each round, with the difference so far.

use std::collections::BTreeMap;

use analysis::compare::ROUND;
use analysis::stats::{Paired, mean};
use model::{Event, Pattern, RunHeader, RunKind, Trial, Verdict};
use text::Spelling;

use crate::labels;

/// Makes the lines of a run whose two cells are measured in turns.
#[derive(Debug)]
pub(super) struct PairLines {
    rule: Paired,
    /// The unit of the values.
    unit: &'static str,
    spelling: Spelling,
    /// The values of the rounds that have not all of them, A's and B's.
    open: BTreeMap<u32, [Vec<f64>; 2]>,
    /// The logarithm of B over A in each complete round.
    logs: Vec<f64>,
}

/// Width of a value.
const VALUE: usize = 16;

impl PairLines {
    /// `None` for another kind of run.
    pub(super) fn of(header: &RunHeader, spelling: Spelling) -> Option<Self> {
        let [a, _] = header.cells.as_slice() else { return None };
        let unit = match a.spec.pattern {
            Pattern::Rr | Pattern::Crr => "1/s",
            Pattern::Pingpong => "ns",
            Pattern::Stream | Pattern::Transfer => "bit/s",
        };
        let rule = Paired::new(&header.stopping);
        (header.kind == RunKind::Ab).then(|| Self { rule, unit, spelling, open: BTreeMap::new(), logs: Vec::new() })
    }

    /// The lines that follow from an event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<String> {
        let Event::Trial(trial) = event else { return Vec::new() };
        let Some([a, b]) = self.round(trial) else { return Vec::new() };
        let heads =
            self.logs.is_empty().then(|| format!("{:>7}{:>VALUE$}{:>VALUE$}   B to A so far", "round", "A", "B"));
        let logarithm = |values: &[f64]| mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>());
        let Some((from, to)) = logarithm(&a).zip(logarithm(&b)) else { return Vec::new() };
        self.logs.push(to - from);
        let so_far = mean(&self.logs).map(|log| labels::signed(log.exp_m1())).unwrap_or_default();
        let interval = self.rule.interval_of(&self.logs).map(|interval| {
            format!(" ({} to {})", labels::signed(interval.low.exp_m1()), labels::signed(interval.high.exp_m1()))
        });
        let value = |values: &[f64]| {
            mean(values).map(|value| labels::quantity(value, self.unit).shown(self.spelling)).unwrap_or_default()
        };
        let [a, b] = [value(&a), value(&b)];
        let line = format!("{:>7}{a:>VALUE$}{b:>VALUE$}   {so_far}{}", self.logs.len(), interval.unwrap_or_default());
        heads.into_iter().chain([line]).collect()
    }

    /// The values of the round that a trial completes.
    fn round(&mut self, trial: &Trial) -> Option<[Vec<f64>; 2]> {
        let value = trial.value.filter(|value| *value > 0.0 && value.is_finite());
        let value = value.filter(|_| !trial.verdicts.contains(&Verdict::CutShort))?;
        let number = trial.pass / ROUND;
        let round = self.open.entry(number).or_default();
        round[usize::from(trial.cell > 0)].push(value);
        if round.iter().all(|values| values.len() == 2) { self.open.remove(&number) } else { None }
    }
}
