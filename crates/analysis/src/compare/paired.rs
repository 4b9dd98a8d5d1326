//! A and B alternated within one run.

use std::collections::BTreeMap;

use model::{Answer, Comparison, Estimate, Finding, FindingKind, Outcome, Stopping, Trial, Verdict};
use text::{Text, say};

use super::{change, higher_is_better, judge, ratio, verdict, what};
use crate::findings::{of_single, wording};
use crate::outcome::Headline;
use crate::stats::{Paired, mean};

/// Trials per round: ABBA or BAAB. Pass `p` of a run belongs to round `p / ROUND`.
pub const ROUND: u32 = 4;

/// The natural logarithms of B over A in each complete round, in the order in which they were taken: the mean of the logarithms of
/// B's two values minus that of A's. Pass `p` of a run belongs to round `p / 4`. A round without all values (interrupted, nothing
/// arrived) is skipped, because half a round does not cancel drift.
#[must_use]
pub fn log_ratios(a: &[Trial], b: &[Trial]) -> Vec<f64> {
    let log = |trial: &Trial| trial.value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
    per_round(a.iter().map(|trial| (trial, log(trial))), b.iter().map(|trial| (trial, log(trial))))
}

/// By how much B's figure differs from A's in each complete round, in the order in which they were taken: the mean of B's two trials
/// minus that of A's. A round with a trial that was cut short or has no figure is skipped.
pub(super) fn per_round<'a>(
    a: impl IntoIterator<Item = (&'a Trial, Option<f64>)>,
    b: impl IntoIterator<Item = (&'a Trial, Option<f64>)>,
) -> Vec<f64> {
    let mut rounds: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    let sides = a.into_iter().map(|trial| (0, trial)).chain(b.into_iter().map(|trial| (1, trial)));
    for (side, (trial, figure)) in sides.filter(|(_, (trial, _))| !trial.verdicts.contains(&Verdict::CutShort)) {
        rounds.entry(trial.pass / ROUND).or_default()[side].extend(figure);
    }
    let complete = rounds.into_values().filter(|sides| sides.iter().all(|values| values.len() == 2));
    complete.filter_map(|[a, b]| Some(mean(&b)? - mean(&a)?)).collect()
}

/// The difference of a paired run's two outcomes, A's first, by the run's stop rule (its target is the tolerance). With too few
/// rounds for an interval the answer is [`Answer::CannotTell`].
#[must_use]
pub fn paired_difference(a: &Outcome, b: &Outcome, rule: &Stopping) -> Finding {
    let headline = Headline::of(&a.spec);
    let paired = Paired::new(rule);
    let logs = log_ratios(&a.trials, &b.trials);
    let judged = paired.judged_by(&logs);
    let higher = higher_is_better(headline);
    let answer = judge(judged, paired.bounds(), higher);
    let estimate = mean(&logs).map(|value| {
        let statistic = format!("ratio of B to A, geometric mean over rounds ({})", headline.statistic());
        let method = "randomisation test over ABBA rounds, on the logarithms of their ratios".to_owned();
        ratio(value, paired.interval_of(&logs), statistic, method, rule.confidence, logs.len())
    });
    let (adjusted_low, adjusted_high) =
        (judged.map(|interval| interval.low.exp()), judged.map(|interval| interval.high.exp()));
    let deciding = estimate.clone().map(|own| Estimate { low: adjusted_low, high: adjusted_high, ..own });
    let statement = statement(answer, deciding.as_ref(), rule, logs.len(), headline);
    Finding {
        kind: FindingKind::Difference,
        statement,
        comparison: Some(Comparison {
            answer,
            tolerance: rule.target,
            higher_is_better: higher,
            p_value: (!logs.is_empty()).then(|| paired.p_value(&logs)),
            adjusted_low,
            adjusted_high,
            ratios: logs.iter().map(|log| log.exp()).collect(),
        }),
        estimate,
        block: None,
        cells: vec![a.cell, b.cell],
    }
}

/// The findings of a paired run: the difference first, then each side alone. Outcomes by cell, A's first; if one of the two is
/// missing, the findings of single outcomes.
#[must_use]
pub fn of_paired(outcomes: &[Outcome], rule: &Stopping) -> Vec<Finding> {
    let [a, b] = outcomes else { return of_single(outcomes) };
    let mut findings = vec![paired_difference(a, b, rule)];
    for (side, outcome) in [("A", a), ("B", b)] {
        findings.extend(
            of_single(std::slice::from_ref(outcome))
                .into_iter()
                .map(|finding| Finding { statement: say!("{side}: {}", finding.statement), ..finding }),
        );
    }
    findings
}

/// `estimate` has the interval that decided the answer, so that the two never contradict each other.
fn statement(answer: Answer, estimate: Option<&Estimate>, rule: &Stopping, rounds: usize, headline: Headline) -> Text {
    let says = verdict(answer, rule.target);
    let Some(estimate) = estimate else {
        return say!("{says}: no round of four trials was completed.");
    };
    let advice = match (answer, estimate.low) {
        (Answer::CannotTell, Some(_)) => " Use longer trials, more pairs or a larger tolerance.",
        (Answer::CannotTell, None) => " An interval needs at least six rounds (12 pairs).",
        _ => "",
    };
    let pairs = wording::plural(2 * rounds, "pair");
    let interim = estimate.low.is_some() && Paired::new(rule).analyses().len() > 1;
    let corrected = if interim { ", corrected for interim analyses" } else { "" };
    let what = what(headline.unit());
    say!("{says}: B's {what} differs by {} over {pairs}{corrected}.{advice}", change(estimate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Context, outcome};
    use model::{Cell, Ledger, Pattern, Spec};

    fn trial(cell: u32, pass: u32, value: Option<f64>) -> Trial {
        let (near, far, ledger) = Default::default();
        let ledger: Ledger = ledger;
        Trial { cell, pass, position: 0, near, far, ledger, value, verdicts: Vec::new() }
    }

    /// Rounds on a path that loses 1 % of its rate with each trial; B is `effect` times A.
    fn run(effect: f64, pattern: Pattern, rounds: u32) -> [Outcome; 2] {
        let mut sides = [Vec::new(), Vec::new()];
        for pass in 0..rounds * ROUND {
            let swapped = (pass / ROUND).is_multiple_of(3);
            let side = usize::from(matches!(pass % ROUND, 1 | 2) != swapped);
            let wobble = 1.0 + 0.001 * f64::from(pass * 7 % 5);
            let value = 1e9 * 0.99f64.powi(pass as i32) * wobble * if side == 1 { effect } else { 1.0 };
            sides[side].push(trial(side as u32, pass, Some(value)));
        }
        let rule = Stopping::default();
        let make =
            |id: u32, trials| outcome(&Cell::new(id, Spec::new("tcp", pattern)), trials, &rule, Context::default());
        let [a, b] = sides;
        [make(0, a), make(1, b)]
    }

    fn rule() -> Stopping {
        Stopping { target: 0.01, min_trials: 16, max_trials: 54, ..Stopping::default() }
    }

    #[test]
    fn drift_is_not_an_effect() {
        let [a, b] = run(1.0, Pattern::Stream, 8);
        let finding = paired_difference(&a, &b, &rule());
        let estimate = finding.estimate.as_ref().unwrap();
        assert!((estimate.value - 1.0).abs() < 0.002, "{estimate:?}");
        assert_eq!(finding.comparison.as_ref().unwrap().answer, Answer::NotWorse);
        assert!(
            finding.statement.plain().contains("not worse than A by more than 1.00 %"),
            "{}",
            finding.statement.plain()
        );
        assert!(
            finding.statement.plain().contains("over 16 pairs, corrected for interim analyses."),
            "{}",
            finding.statement.plain()
        );
    }

    #[test]
    fn a_change_is_found_and_less_time_is_better() {
        let answers = |effect, pattern| {
            let [a, b] = run(effect, pattern, 8);
            paired_difference(&a, &b, &rule()).comparison.unwrap().answer
        };
        assert_eq!(answers(0.97, Pattern::Stream), Answer::Worse);
        assert_eq!(answers(1.03, Pattern::Stream), Answer::Better);
        assert_eq!(answers(0.97, Pattern::Pingpong), Answer::Better);
        assert_eq!(answers(1.03, Pattern::Pingpong), Answer::Worse);
    }

    #[test]
    fn five_rounds_cannot_tell() {
        let [a, b] = run(0.5, Pattern::Stream, 5);
        let finding = paired_difference(&a, &b, &rule());
        assert_eq!(finding.comparison.as_ref().unwrap().answer, Answer::CannotTell);
        assert!(finding.statement.plain().contains("at least six rounds"), "{}", finding.statement.plain());
        assert_eq!(finding.estimate.unwrap().low, None);
        let none = paired_difference(&run(1.0, Pattern::Stream, 0)[0], &run(1.0, Pattern::Stream, 0)[1], &rule());
        assert_eq!((none.estimate, none.comparison.unwrap().p_value), (None, None));
    }

    #[test]
    fn an_incomplete_round_is_skipped() {
        let [mut a, b] = run(1.0, Pattern::Stream, 8);
        a.trials[3].value = None;
        a.trials[8].verdicts.push(Verdict::CutShort);
        assert_eq!(log_ratios(&a.trials, &b.trials).len(), 6);
    }
}
