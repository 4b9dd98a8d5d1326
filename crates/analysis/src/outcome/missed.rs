//! How far intervals are from their target, and what would meet it.

use model::units::plus_minus;
use model::{Outcome, Stopping, Verdict};
use text::{Text, say};

use super::estimate::reach;

/// Trials come in steps between two analyses, so a little more than the computed number is needed.
const MARGIN: f64 = 1.25;
/// Budgets to propose, s: round figures that are at most 2.5 times apart.
const BUDGETS_S: [u64; 10] = [15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

/// The widest interval among `outcomes` that missed the target of `rule`, the target, and what would probably meet it, as long as the
/// values vary as they did: `±7.5 %, wanted ±2 %: `. `duration_ns` is what the whole run took; a run of a plan says no more than that
/// it needs a larger budget. `None` if no outcome missed the target.
#[must_use]
pub fn missed_target<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
    rule: &Stopping,
    duration_ns: Option<u64>,
) -> Option<Text> {
    let missed = |outcome: &&Outcome| outcome.summary.verdicts.contains(&Verdict::TargetMissed);
    let of = |outcome: &'a Outcome| Some((outcome, outcome.estimate.as_ref().and_then(reach)?));
    let all: Vec<(&Outcome, f64)> = outcomes.into_iter().filter(missed).filter_map(of).collect();
    let (widest, width) = all.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let up_to = if all.len() > 1 { "up to " } else { "" };
    let wanted = (rule.target * 1000.0).round() / 10.0;
    // The width falls with the square root of the number of trials.
    let factor = (width / rule.target).powi(2) * MARGIN;
    let trials = f64::from(widest.summary.trials) * factor;
    let remedy = match duration_ns {
        Some(ns) if trials <= f64::from(rule.max_trials) => {
            budget(ns as f64 / 1e9 * factor).unwrap_or_else(|| QUIETER.into())
        }
        Some(_) if trials <= MOST_TRIALS => say!("`--trials {}`", (trials / 10.0).ceil() * 10.0),
        Some(_) => QUIETER.into(),
        None => "allow a larger budget".into(),
    };
    Some(say!("{up_to}{}, wanted ±{wanted} %: {remedy}", plus_minus(width)))
}

/// Most trials to propose.
const MOST_TRIALS: f64 = 1000.0;
/// What helps where no reasonable number of trials would.
const QUIETER: &str = "the path or a host varies too much: use longer trials or an idle host";

/// A budget of at least this many seconds, as it is typed; `None` beyond the largest one.
fn budget(seconds: f64) -> Option<Text> {
    let seconds = BUDGETS_S.into_iter().find(|one| *one as f64 >= seconds)?;
    Some(if seconds < 120 { say!("`--budget {seconds}s`") } else { say!("`--budget {}min`", seconds / 60) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use model::Pattern;

    const SECOND: u64 = 1_000_000_000;

    fn missed(values: &[f64], rule: &Stopping, duration_ns: Option<u64>) -> Option<String> {
        let cell = made(Pattern::Stream, 0, 1024, values);
        missed_target([&cell], rule, duration_ns).map(|text| text.plain())
    }

    #[test]
    fn the_remedy_grows_with_the_square_of_the_width() {
        let rule = Stopping::default();
        let some = [9.4e8, 9.6e8, 1.04e9, 9.9e8, 1.02e9, 9.5e8];
        assert_eq!(missed(&some, &rule, Some(10 * SECOND)).unwrap(), "±4.3 %, wanted ±2 %: `--budget 60s`");
        let few = Stopping { max_trials: 12, ..rule.clone() };
        assert_eq!(missed(&some, &few, Some(10 * SECOND)).unwrap(), "±4.3 %, wanted ±2 %: `--trials 40`");
        assert!(missed(&some, &rule, None).unwrap().ends_with("wanted ±2 %: allow a larger budget"));
        let wild = [1e8, 9e8, 4e8, 2e9, 5e8, 3e7];
        let text = missed(&wild, &rule, Some(10 * SECOND)).unwrap();
        assert!(text.ends_with("use longer trials or an idle host"), "{text}");
        assert_eq!(missed(&[1e9; 6], &rule, Some(SECOND)), None);
    }

    #[test]
    fn of_several_outcomes_the_widest_decides() {
        let narrow = made(Pattern::Stream, 0, 1024, &[9.4e8, 9.6e8, 1.04e9, 9.9e8, 1.02e9, 9.5e8]);
        let wide = made(Pattern::Stream, 1, 2048, &[8e8, 9e8, 1.1e9, 1.05e9, 1e9, 9e8]);
        let text = missed_target([&narrow, &wide], &Stopping::default(), None).unwrap();
        assert!(text.plain().starts_with("up to ±12 %, wanted ±2 %"), "{text:?}");
    }
}
