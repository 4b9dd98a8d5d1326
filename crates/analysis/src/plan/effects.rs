//! Main effects and interactions of a plan's factors, with their intervals.
//!
//! Everything is computed on the logarithm of the values, so an effect is a ratio. Conditions are the same for all cells of a round,
//! so each round gives one value of an effect: the mean over all pairs of cells that differ in that factor alone. The interval is
//! Student's over the rounds. Interval and significance have Holm's correction over all effects of the run.

use std::collections::BTreeMap;

use model::{Cell, Estimate, Finding, FindingKind, Plan, Program, RunHeader};
use text::{Aside, Text, say};

use super::logs::{Logs, noun};
use super::{KINDS, dimensions, is_host_of_matrix, is_of_traffic, levels, of_kind, part, sizes_of_curves};
use crate::compare::other_clock;
use crate::findings::wording::{confidence, plural, sentence};
use crate::limiter::MATTERS;
use crate::outcome::Headline;
use crate::stats::{ConfidenceInterval, MeanDifference, holm_errors, mean, sample_sd};

/// Fewest rounds with an interval.
const MIN_ROUNDS: usize = 3;

/// Half width in percent from which an interval is shown by its ends.
const WIDE: f64 = 10.0;

/// An effect to be tested.
pub(super) struct Effect {
    pub(super) kind: FindingKind,
    /// The text before the number.
    pub(super) what: Text,
    /// One value per round.
    pub(super) rounds: Vec<f64>,
    pub(super) cells: Vec<u32>,
    /// What to know about it.
    pub(super) note: Option<Text>,
}

/// The effects of a plan's factors: main effects between neighbouring levels (if another factor reverses one, the effects at that
/// factor's levels instead), and interactions between the outermost levels. Sizes of curves have none, nor have the hosts of a matrix,
/// which are no levels that somebody chose.
pub(super) fn of_factors(header: &RunHeader, plan: &Plan, logs: &Logs) -> Vec<Finding> {
    let mut effects = Vec::new();
    for kind in KINDS {
        let cells = of_kind(&header.cells, kind);
        let names = dimensions(plan, &cells);
        if names.iter().any(|name| sizes_of_curves(plan, name)) {
            continue;
        }
        let factors: Vec<(&String, Vec<String>)> = names
            .iter()
            .filter(|name| !is_host_of_matrix(header, &names, name))
            .map(|name| (name, levels(plan, name, &cells)))
            .collect();
        let comparable = ComparableCells { cells: &cells, names: &names, factors: &factors, kind, logs };
        // Numbers of senders have no main effects: their curve shows them.
        let stepped = factors.iter().filter(|(name, _)| !is_of_traffic(plan, name));
        for (name, levels) in stepped {
            for pair in levels.windows(2) {
                effects.extend(comparable.step(name, pair, header.stopping.confidence));
            }
        }
        for (at, one) in factors.iter().enumerate() {
            for other in &factors[at + 1..] {
                effects.extend(interaction(&cells, &names, one, other, logs));
            }
        }
    }
    findings(effects, header.stopping.confidence)
}

/// The mean over `sums` of signed cells, for every round in which all of their cells have a value.
pub(super) fn over_rounds(sums: &[Vec<(f64, u32)>], logs: &Logs) -> Vec<f64> {
    let Some(first) = sums.first().and_then(|sum| logs.get(&sum.first()?.1)) else { return Vec::new() };
    let of = |round: &u32| {
        let one = |sum: &Vec<(f64, u32)>| sum.iter().map(|(sign, cell)| Some(sign * logs.get(cell)?.get(round)?)).sum();
        let values: Option<Vec<f64>> = sums.iter().map(one).collect();
        mean(&values?)
    };
    first.keys().filter_map(of).collect()
}

/// The cells with the levels `of`, by their levels of the factors `rest`.
pub(super) fn cells_at<'a>(
    cells: &[&'a Cell],
    rest: &'a [String],
    of: &[(&str, &str)],
) -> BTreeMap<BTreeMap<&'a str, &'a str>, u32> {
    let has = |cell: &&&Cell| of.iter().all(|(name, level)| cell.levels.get(*name).map(String::as_str) == Some(level));
    cells.iter().filter(has).map(|cell| (part(cell, rest), cell.id)).collect()
}

pub(super) fn others(names: &[String], left_out: &[&str]) -> Vec<String> {
    names.iter().filter(|name| !left_out.contains(&name.as_str())).cloned().collect()
}

/// The cells of one headline statistic, and the factors in which they differ.
struct ComparableCells<'a> {
    cells: &'a [&'a Cell],
    names: &'a [String],
    factors: &'a [(&'a String, Vec<String>)],
    kind: Headline,
    logs: &'a Logs,
}

/// From a mean effect of 10 % on, another level's effect of 5 % the other way contradicts it. Logarithms of ratios.
const LARGE: f64 = 0.095;
const NOTABLE: f64 = 0.049;

/// Largest number of levels of another factor at which an effect is reported separately.
const MAX_LEVELS: usize = 6;

impl ComparableCells<'_> {
    /// The effect of the step from one level of a factor to another over all cells. If another factor reverses it, the mean is true
    /// at none of that factor's levels, so the effect is reported at each of them, or for many levels at those with the smallest
    /// and the largest effect.
    fn step(&self, name: &str, pair: &[String], confidence: f64) -> Vec<Effect> {
        let main = self.main_effect(name, pair, None);
        let Some((mean, _)) = tested(&main.rounds, confidence) else { return vec![main] };
        let up = mean.value > 0.0;
        let mut reversed: Option<(f64, Vec<Effect>)> = None;
        for (other, levels) in self.factors.iter().filter(|(other, _)| *other != name) {
            let at = levels.iter().map(|level| self.main_effect(name, pair, Some((other, level))));
            let mut at: Vec<(f64, Effect, ConfidenceInterval)> = at
                .filter_map(|effect| {
                    let (mean, interval) = tested(&effect.rounds, confidence)?;
                    Some((mean.value, effect, interval))
                })
                .collect();
            // Significantly, or by its value where the mean is large: one collapsed cell makes a mean that no other has.
            let is_against = |(value, _, interval): &(f64, Effect, ConfidenceInterval)| {
                let significant = if up { interval.high < 0.0 } else { interval.low > 0.0 };
                let large = mean.value.abs() > LARGE && (*value > 0.0) != up && value.abs() > NOTABLE;
                significant || large
            };
            if !at.iter().any(is_against) {
                continue;
            }
            let values = || at.iter().map(|(value, ..)| *value);
            let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            if at.len() > MAX_LEVELS {
                at.retain(|(value, ..)| [min, max].contains(value));
            }
            let spread = max - min;
            if reversed.as_ref().is_none_or(|(other, _)| spread > *other) {
                reversed = Some((spread, at.into_iter().map(|(_, effect, _)| effect).collect()));
            }
        }
        reversed.map_or_else(|| vec![main], |(_, effects)| effects)
    }

    /// The effect of a step over all cells, or over those with one level of another factor.
    fn main_effect(&self, name: &str, pair: &[String], at: Option<(&str, &str)>) -> Effect {
        let rest = others(self.names, &[name]);
        let with = |level: &str| {
            let of: Vec<(&str, &str)> = std::iter::once((name, level)).chain(at).collect();
            cells_at(self.cells, &rest, &of)
        };
        let (low, high) = (with(&pair[0]), with(&pair[1]));
        let sums: Vec<Vec<(f64, u32)>> =
            low.iter().filter_map(|(rest, from)| Some(vec![(1.0, *high.get(rest)?), (-1.0, *from)])).collect();
        let cells = sums.iter().flatten().map(|(_, cell)| *cell).collect();
        let at = at.map_or_else(String::new, |(other, level)| format!(" at {other} {level}"));
        let what = say!("{name} {} → {}{at}: {}", pair[0], pair[1], noun(self.kind));
        let note = self.clocks(&sums);
        Effect { kind: FindingKind::Effect, what, rounds: over_rounds(&sums, self.logs), cells, note }
    }

    /// What to know where these cells were measured by different programs.
    fn clocks(&self, sums: &[Vec<(f64, u32)>]) -> Option<Text> {
        if self.kind == Headline::RoundTrip {
            return None;
        }
        let program = |id: u32| self.cells.iter().find(|cell| cell.id == id)?.spec.speak.map(Program::name);
        sums.iter().find_map(|sum| match sum[..] {
            [(_, high), (_, low)] => other_clock(program(low), program(high)),
            _ => None,
        })
    }
}

fn interaction(
    cells: &[&Cell],
    names: &[String],
    (one, one_levels): &(&String, Vec<String>),
    (other, other_levels): &(&String, Vec<String>),
    logs: &Logs,
) -> Option<Effect> {
    let [(low, high), (first, last)] =
        [(one_levels.first()?, one_levels.last()?), (other_levels.first()?, other_levels.last()?)];
    let rest = others(names, &[one, other]);
    let at = |level: &str, second: &str| cells_at(cells, &rest, &[(one, level), (other, second)]);
    let corners = [at(high, last), at(low, last), at(high, first), at(low, first)];
    let quad = |rest: &BTreeMap<&str, &str>| -> Option<Vec<(f64, u32)>> {
        corners.iter().zip([1.0, -1.0, -1.0, 1.0]).map(|(corner, sign)| Some((sign, *corner.get(rest)?))).collect()
    };
    let sums: Vec<Vec<(f64, u32)>> = corners[0].keys().filter_map(quad).collect();
    let cells = sums.iter().flatten().map(|(_, cell)| *cell).collect();
    let what = say!("{one} {low} → {high} interacts with {other}: effect at {last} relative to {first}");
    Some(Effect { kind: FindingKind::Effect, what, rounds: over_rounds(&sums, logs), cells, note: None })
}

/// The mean of an effect's values and its interval; `None` with too few rounds.
fn tested(rounds: &[f64], confidence: f64) -> Option<(MeanDifference, ConfidenceInterval)> {
    let n = rounds.len();
    let standard_error = sample_sd(rounds)? / (n as f64).sqrt();
    let value = mean(rounds).filter(|_| n >= MIN_ROUNDS)?;
    let test = MeanDifference { value, standard_error, df: (n - 1) as f64 };
    Some((test, test.interval(confidence)?))
}

pub(super) fn findings(effects: Vec<Effect>, level: f64) -> Vec<Finding> {
    let sizes: Vec<(Effect, MeanDifference)> = effects
        .into_iter()
        .filter_map(|effect| {
            let (test, _) = tested(&effect.rounds, level)?;
            Some((effect, test))
        })
        .collect();
    let p: Vec<f64> = sizes.iter().map(|(_, test)| (2.0 * test.p_above(0.0).min(test.p_below(0.0))).min(1.0)).collect();
    let errors = holm_errors(&p, 1.0 - level);
    let number = sizes.len();
    let findings = sizes.into_iter().zip(p.into_iter().zip(errors)).filter_map(|((effect, test), (p, error))| {
        let significant = p <= error;
        let interval = test.interval(1.0 - error)?;
        // Pairs of hosts that are as good as symmetric are not reported.
        if effect.kind == FindingKind::Asymmetry && !(significant && test.value.abs() > MATTERS) {
            return None;
        }
        let rounds = effect.rounds.len();
        let significance = if significant { ", significant" } else { ", not significant" };
        let corrected = if number > 1 { format!(", corrected for {number} comparisons") } else { String::new() };
        let note = effect.note.map_or(Text::default(), |note| say!(" {}", sentence(note)));
        let method = say!("{} interval over {}{significance}{corrected}", confidence(level), plural(rounds, "round"));
        let statement = say!("{} {}{}.{note}", effect.what, change(test.value, Some(interval)), Aside(method));
        let estimate = Estimate {
            statistic: "geometric mean over rounds of the ratio".into(),
            unit: "ratio".into(),
            value: test.value.exp(),
            low: Some(interval.low.exp()),
            high: Some(interval.high.exp()),
            confidence: level,
            method: format!("Student's t over rounds, on the logarithm of the ratio{corrected}"),
            n: u32::try_from(rounds).unwrap_or(u32::MAX),
        };
        let mut cells = effect.cells;
        cells.sort_unstable();
        cells.dedup();
        Some(Finding { kind: effect.kind, statement, estimate: Some(estimate), block: None, cells, comparison: None })
    });
    findings.collect()
}

/// `+32 % ± 2 %`, from logarithms of ratios; both ends of a wide interval, which is asymmetric on this scale. More than the double is a
/// factor: `×3.81, ×3.28 to ×4.43`.
pub(super) fn change(ln: f64, interval: Option<ConfidenceInterval>) -> String {
    let percent = |ln: f64| 100.0 * ln.exp_m1();
    let times = |ln: f64| format!("×{}", model::units::three_digits(ln.exp()));
    let is_factor = ln > std::f64::consts::LN_2;
    let Some(interval) = interval else {
        return if is_factor { times(ln) } else { format!("{:+.0} %", percent(ln)) };
    };
    if is_factor {
        return format!("{}, {} to {}", times(ln), times(interval.low), times(interval.high));
    }
    let half = f64::midpoint(percent(interval.high), -percent(interval.low));
    if half >= WIDE {
        return format!("{:+.0} %, {:+.0} to {:+.0} %", percent(ln), percent(interval.low), percent(interval.high));
    }
    let digits = usize::from(half < 0.95);
    let width = if half < 0.05 { "<0.1".to_owned() } else { format!("{half:.digits$}") };
    format!("{:+.digits$} % ± {width} %", percent(ln))
}

#[cfg(test)]
mod tests {
    use super::super::logs::logs;
    use super::super::of_plan;
    use super::super::table::testing::{PlanRun, planned};
    use super::*;
    use model::{Pattern, SplitMix64};

    fn statements(run: &PlanRun) -> Vec<String> {
        found(run).into_iter().map(|finding| finding.statement.plain()).collect()
    }

    fn found(run: &PlanRun) -> Vec<Finding> {
        of_factors(&run.header, run.header.plan.as_ref().unwrap(), &logs(&run.outcomes, &run.passes))
    }

    #[test]
    fn effects_and_interactions_are_found_and_absent_ones_are_not_significant() {
        let mut random = SplitMix64::new(5);
        let run = planned(
            &[("sndbuf", &["64KiB", "128KiB"]), ("block", &["1KiB", "64KiB"])],
            Pattern::Stream,
            8,
            |levels, _| {
                let buffer = if levels["sndbuf"] == "128KiB" { 1.32 } else { 1.0 };
                1e9 * buffer * (1.0 + 0.005 * random.normal())
            },
        );
        let said = statements(&run);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(
            said[0].starts_with("sndbuf 64KiB → 128KiB: goodput +32")
                && said[0].contains("significant, corrected for 3 comparisons"),
            "{said:?}"
        );
        assert!(said[1].starts_with("block 1KiB → 64KiB: goodput") && said[1].contains("not significant"), "{said:?}");
        assert!(
            said[2].starts_with("sndbuf 64KiB → 128KiB interacts with block: effect at 64KiB relative to 1KiB")
                && said[2].contains("not significant")
        );
        let ratio = found(&run)[0].estimate.clone().unwrap();
        assert!(ratio.low.unwrap() < 1.32 && ratio.high.unwrap() > 1.32, "{ratio:?}");
    }

    #[test]
    fn an_interval_excludes_no_effect_exactly_if_the_effect_is_significant() {
        // Many levels with effects from none to large: without the correction of the interval some contradict each other.
        let levels: Vec<String> = (0..24).map(|level| level.to_string()).collect();
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        let (mut significant, mut not) = (0, 0);
        for seed in 0..6 {
            let mut random = SplitMix64::new(seed);
            let run = planned(&[("n", &levels)], Pattern::Stream, 5, |levels, _| {
                let n: f64 = levels["n"].parse().unwrap();
                1e9 * (1.0 + 0.01 * n * n / 2.0) * (1.0 + 0.01 * random.normal())
            });
            for finding in found(&run) {
                let Some(Estimate { low: Some(low), high: Some(high), .. }) = finding.estimate else { continue };
                let claimed = !finding.statement.plain().contains("not significant");
                assert_eq!(claimed, !(low..=high).contains(&1.0), "{}", finding.statement.plain());
                assert!(
                    finding.statement.plain().contains("corrected for 23 comparisons"),
                    "{}",
                    finding.statement.plain()
                );
                *(if claimed { &mut significant } else { &mut not }) += 1;
            }
        }
        assert!(significant > 10 && not > 10, "{significant} and {not}");
    }

    #[test]
    fn levels_of_two_programs_have_a_note_on_their_clocks() {
        let of = |pattern| {
            let mut random = SplitMix64::new(3);
            let mut run = planned(&[("system", &["linux", "netbsd"]), ("flows", &["1", "4"])], pattern, 5, |_, _| {
                1e9 * (1.0 + 0.01 * random.normal())
            });
            for cell in run.header.cells.iter_mut().filter(|cell| cell.levels["system"] == "netbsd") {
                cell.spec.speak = Some(Program::Iperf3);
            }
            statements(&run)
        };
        let said = of(Pattern::Stream);
        let noted: Vec<bool> = said
            .iter()
            .map(|one| one.contains(" A trial's clock starts at different events in thru and iperf3 "))
            .collect();
        assert!(said[0].starts_with("system ") && noted == [true, false, false], "{said:#?}");
        assert!(of(Pattern::Pingpong).iter().all(|one| !one.contains("iperf3")));
    }

    #[test]
    fn an_interaction_is_a_ratio_of_ratios() {
        let mut random = SplitMix64::new(6);
        let run = planned(&[("mtu", &["1500", "9000"]), ("cc", &["cubic", "bbr"])], Pattern::Stream, 6, |levels, _| {
            let both = levels["mtu"] == "9000" && levels["cc"] == "bbr";
            1e9 * if both { 1.5 } else { 1.0 } * (1.0 + 0.001 * random.normal())
        });
        let said = statements(&run);
        assert!(
            said[2].starts_with("mtu 1500 → 9000 interacts with cc: effect at bbr relative to cubic +50"),
            "{said:?}"
        );
    }

    #[test]
    fn changes_between_rounds_are_not_an_effect() {
        let mut random = SplitMix64::new(9);
        let conditions: Vec<f64> = (0..8).map(|_| (0.5 * random.normal()).exp()).collect();
        let run = planned(&[("flows", &["1", "4"])], Pattern::Stream, 8, |levels, round| {
            let flows = if levels["flows"] == "4" { 1.05 } else { 1.0 };
            1e9 * conditions[round as usize] * flows * (1.0 + 0.002 * random.normal())
        });
        let said = statements(&run);
        assert!(said[0].contains("+5") && said[0].ends_with("8 rounds, significant)."), "{said:?}");
    }

    #[test]
    fn asymmetric_directions_are_reported() {
        let mut random = SplitMix64::new(1);
        let run = planned(&[("from", &["a", "b", "c"]), ("to", &["a", "b", "c"])], Pattern::Stream, 6, |levels, _| {
            let slow = levels["from"] == "b" && levels["to"] == "a";
            1e9 * if slow { 0.5 } else { 1.0 } * (1.0 + 0.003 * random.normal())
        });
        let said = statements(&run);
        let unequal: Vec<Finding> = of_plan(&run.header, &run.outcomes, &run.passes, &[])
            .into_iter()
            .filter(|finding| finding.kind == FindingKind::Asymmetry)
            .collect();
        assert_eq!(unequal.len(), 1, "{said:?}");
        let statement = &unequal[0].statement.plain();
        assert!(statement.starts_with("a → b has ") && statement.contains(", b → a has "), "{said:?}");
        let ratio = unequal[0].estimate.clone().unwrap();
        assert!((ratio.value / 2.0 - 1.0).abs() < 0.01, "{ratio:?}");
    }

    #[test]
    fn a_host_is_a_factor_like_others() {
        let mut random = SplitMix64::new(4);
        let run = planned(&[("to", &["b", "c"]), ("cc", &["x", "y"])], Pattern::Stream, 6, |levels, _| {
            1e9 * if levels["to"] == "c" { 0.1 } else { 1.0 } * (1.0 + 0.003 * random.normal())
        });
        let said = statements(&run);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said.iter().any(|one| one.starts_with("to b → c: goodput -90")), "{said:?}");
        assert!(said.iter().any(|one| one.contains("interacts with to: effect at c relative to b")), "{said:?}");
    }

    #[test]
    fn an_effect_that_another_factor_reverses_is_reported_at_its_levels() {
        let mut random = SplitMix64::new(7);
        let factors: [(&str, &[&str]); 2] =
            [("message", &["1KiB", "8KiB", "64KiB"]), ("socket", &["32KiB", "128KiB", "512KiB"])];
        // The shape of the plan socket-sizes: large messages collapse in the smallest buffer and gain in all others.
        let run = planned(&factors, Pattern::Stream, 8, |levels, _| {
            let rate = match (levels["message"].as_str(), levels["socket"].as_str()) {
                ("64KiB", "32KiB") => 0.03,
                ("64KiB", _) => 1.6,
                ("8KiB", _) => 1.0,
                _ => 0.3,
            };
            1e9 * rate * (1.0 + 0.02 * random.normal())
        });
        let said = statements(&run);
        let of = |start: &str| said.iter().filter(|one| one.starts_with(start)).cloned().collect::<Vec<_>>();
        assert_eq!(of("message 8KiB → 64KiB: "), Vec::<String>::new(), "{said:#?}");
        assert_eq!(of("message 8KiB → 64KiB at socket ").len(), 3, "{said:#?}");
        assert!(of("message 8KiB → 64KiB at socket 32KiB: goodput -97").len() == 1, "{said:#?}");
        assert!(of("message 8KiB → 64KiB at socket 512KiB: goodput +6").len() == 1, "{said:#?}");
        assert_eq!(of("message 1KiB → 8KiB: goodput ×3.3").len(), 1, "{said:#?}");
    }

    #[test]
    fn with_many_levels_a_reversed_effect_is_reported_at_two_of_them() {
        let mut random = SplitMix64::new(2);
        let others: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8"];
        let run = planned(&[("cc", &["x", "y"]), ("n", others)], Pattern::Stream, 5, |levels, _| {
            let n: f64 = levels["n"].parse().unwrap();
            1e9 * if levels["cc"] == "y" { 0.5 + 0.15 * n } else { 1.0 } * (1.0 + 0.002 * random.normal())
        });
        let said = statements(&run);
        let of_cc: Vec<&String> = said.iter().filter(|one| one.starts_with("cc x → y")).collect();
        assert!(of_cc[0].starts_with("cc x → y at n 1: goodput -34.9"), "{said:#?}");
        assert!(of_cc[1].starts_with("cc x → y at n 8: goodput +70"), "{said:#?}");
        assert!(
            of_cc[2].starts_with("cc x → y interacts with n: effect at 8 relative") && of_cc.len() == 3,
            "{said:#?}"
        );
    }

    #[test]
    fn a_wide_interval_shows_both_its_ends() {
        let interval = |low: f64, high: f64| ConfidenceInterval { low: low.ln(), high: high.ln() };
        assert_eq!(change(1.32f64.ln(), Some(interval(1.30, 1.34))), "+32 % ± 2 %");
        assert_eq!(change(1.004f64.ln(), Some(interval(1.001, 1.007))), "+0.4 % ± 0.3 %");
        assert_eq!(change(1.7f64.ln(), Some(interval(1.1, 2.3))), "+70 %, +10 to +130 %");
        assert_eq!(change(3.7f64.ln(), Some(interval(1.5, 9.4))), "×3.70, ×1.50 to ×9.40");
    }

    #[test]
    fn two_rounds_give_no_effects() {
        let run = planned(&[("flows", &["1", "4"])], Pattern::Stream, 2, |_, _| 1e9);
        assert_eq!(statements(&run), Vec::<String>::new());
    }
}
