//! Which level of a factor is best at which block sizes, from the outcomes of one plan, for example which MTU or buffer to choose.
//!
//! Levels are compared within rounds, as effects are: each round in which both levels have all sizes of a region gives one value, the
//! mean over the sizes of the difference of the logarithms; the interval is Student's over the rounds. Changes between rounds, or
//! between the passes of a curve, are included in the interval.

use std::collections::BTreeMap;
use std::ops::Range;

use model::{Cell, Estimate, Factor, FactorKind, Finding, FindingKind, Plan, RunHeader};
use text::{Text, say};

use super::logs::{Logs, noun};
use super::{KINDS, dimensions, levels, of_kind, part};
use crate::limiter::{LabelledRates, best_regions};
use crate::outcome::Headline;
use crate::stats::{MeanDifference, mean, sample_sd};

/// Fewest rounds with a standard error.
const MIN_ROUNDS: usize = 3;
/// Fewest sizes with regions.
const MIN_SIZES: usize = 2;

/// For each factor besides a plan's block sizes (those of its curves, or a factor `block`), with all others fixed: the best level in
/// each range of sizes. Empty if the block does not vary, or if it is the only factor.
pub(super) fn best(header: &RunHeader, plan: &Plan, logs: &Logs) -> Vec<Finding> {
    let mut found = Vec::new();
    for kind in KINDS {
        let cells = of_kind(&header.cells, kind);
        let names = dimensions(plan, &cells);
        let Some(sizes) = names.iter().find(|name| is_sizes(plan, name)) else { continue };
        let hosts = [Factor::FROM, Factor::TO];
        for factor in names.iter().filter(|name| *name != sizes && !hosts.contains(&name.as_str())) {
            let rest: Vec<String> = names.iter().filter(|name| ![sizes, factor].contains(name)).cloned().collect();
            let mut groups: Vec<(BTreeMap<&str, &str>, Vec<&Cell>)> = Vec::new();
            for cell in &cells {
                let held = part(cell, &rest);
                match groups.iter_mut().find(|(other, _)| *other == held) {
                    Some((_, group)) => group.push(cell),
                    None => groups.push((held, vec![cell])),
                }
            }
            for (held, group) in groups {
                let grid = Grid::new(levels(plan, factor, &group), factor, &group, kind, logs);
                if grid.labels.len() > 1 && grid.sizes.len() >= MIN_SIZES {
                    found.extend(findings(&grid, factor, &held, kind));
                }
            }
        }
    }
    found
}

fn is_sizes(plan: &Plan, name: &str) -> bool {
    let factor = plan.factors.iter().find(|factor| factor.name == name);
    factor.is_some_and(|factor| match factor.kind {
        FactorKind::Sizes => true,
        FactorKind::Field => factor.key == Factor::SIZES,
        FactorKind::Setting | FactorKind::Set | FactorKind::Observed | FactorKind::Traffic => false,
    })
}

/// The levels of a factor by the block sizes that all of them have, with all other factors fixed.
struct Grid {
    labels: Vec<String>,
    sizes: Vec<u64>,
    /// By size and label: the cell, and the logarithm of its rate in each round.
    cells: Vec<Vec<(u32, BTreeMap<u32, f64>)>>,
}

impl Grid {
    fn new(labels: Vec<String>, factor: &str, group: &[&Cell], kind: Headline, logs: &Logs) -> Self {
        // Shorter times are better.
        let sign = if kind == Headline::RoundTrip { -1.0 } else { 1.0 };
        let mut blocks: Vec<u64> = group.iter().map(|cell| cell.spec.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let at = |block: u64, label: &String| {
            let cell = group.iter().find(|cell| cell.spec.block == block && cell.levels.get(factor) == Some(label))?;
            let logs = logs.get(&cell.id)?;
            Some((cell.id, logs.iter().map(|(round, ln)| (*round, sign * ln)).collect()))
        };
        let (mut sizes, mut cells) = (Vec::new(), Vec::new());
        for block in blocks {
            let all: Option<Vec<(u32, BTreeMap<u32, f64>)>> = labels.iter().map(|label| at(block, label)).collect();
            if let Some(all) = all {
                sizes.push(block);
                cells.push(all);
            }
        }
        Self { labels, sizes, cells }
    }

    /// One value for each round in which both labels have all of these sizes.
    fn by_round(&self, sizes: Range<usize>, one: usize, other: usize) -> Vec<f64> {
        let rows = &self.cells[sizes];
        let Some(first) = rows.first() else { return Vec::new() };
        let of = |round: &u32| {
            let each = |row: &Vec<(u32, BTreeMap<u32, f64>)>| Some(row[one].1.get(round)? - row[other].1.get(round)?);
            let all: Option<Vec<f64>> = rows.iter().map(each).collect();
            mean(&all?)
        };
        first[one].1.keys().filter_map(of).collect()
    }
}

impl LabelledRates for Grid {
    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    fn ln_rate(&self, size: usize, label: usize) -> f64 {
        let row = &self.cells[size];
        // Only rounds that all cells have are comparable.
        let common = |round: &&u32| row.iter().all(|(_, logs)| logs.contains_key(round));
        let values: Vec<f64> = row[label].1.keys().filter(common).map(|round| row[label].1[round]).collect();
        mean(&values).unwrap_or(f64::NEG_INFINITY)
    }

    fn ahead(&self, sizes: Range<usize>, one: usize, other: usize) -> Option<MeanDifference> {
        let values = self.by_round(sizes, one, other);
        let n = values.len();
        let standard_error = sample_sd(&values).filter(|_| n >= MIN_ROUNDS)? / (n as f64).sqrt();
        Some(MeanDifference { value: mean(&values)?, standard_error, df: (n - 1) as f64 })
    }
}

fn findings(grid: &Grid, factor: &str, held: &BTreeMap<&str, &str>, kind: Headline) -> Vec<Finding> {
    let held: Vec<String> = held.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let at = if held.is_empty() { String::new() } else { format!(" at {}", held.join(", ")) };
    let finding = |(region, sizes): (model::BestRegion, Range<usize>)| {
        let index = |label: &Option<String>| grid.labels.iter().position(|other| Some(other) == label.as_ref());
        let best = index(&region.best);
        let rounds = best.zip(index(&region.over)).map(|(best, over)| grid.by_round(sizes.clone(), best, over).len());
        let estimate = region.ratio.zip(rounds).map(|(value, rounds)| Estimate {
            statistic: "geometric mean over rounds of the ratio of the best level to the next".into(),
            unit: "ratio".into(),
            value,
            low: region.low,
            high: region.high,
            confidence: crate::limiter::CONFIDENCE,
            method: "Student's t over rounds, on the logarithm of the ratio".into(),
            n: u32::try_from(rounds).unwrap_or(u32::MAX),
        });
        let rows = &grid.cells[sizes];
        let cells = match best {
            Some(best) => rows.iter().map(|row| row[best].0).collect(),
            None => rows.iter().flatten().map(|(cell, _)| *cell).collect(),
        };
        let what = Text::from(noun(kind)).capitalised();
        let statement = say!("{what} by {factor}{at}, blocks of {}.", region.statement);
        Finding { kind: FindingKind::Best, statement, estimate, block: Some(region.from), cells, comparison: None }
    };
    best_regions(grid).into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::of_plan;
    use super::super::table::testing::{PlanRun, planned};
    use super::*;
    use model::{Pattern, SplitMix64};

    const BLOCKS: &[&str] = &["1000", "4000", "16000", "64000", "256000"];

    /// A plan over block sizes and MTUs whose streams have the rate `rate`, with conditions that change from round to round.
    fn made(rate: impl Fn(f64, &str) -> f64) -> PlanRun {
        let mut random = SplitMix64::new(3);
        let conditions: Vec<f64> = (0..8).map(|_| (0.3 * random.normal()).exp()).collect();
        let factors: [(&str, &[&str]); 2] = [("block", BLOCKS), ("mtu", &["1500", "9000"])];
        let mut run = planned(&factors, Pattern::Stream, 8, |levels, round| {
            let size: f64 = levels["block"].parse().unwrap();
            1e9 * conditions[round as usize] * rate(size, &levels["mtu"]) * (1.0 + 0.004 * random.normal())
        });
        for cell in &mut run.header.cells {
            cell.spec.block = cell.levels["block"].parse().unwrap();
        }
        run
    }

    fn best_of(run: &PlanRun) -> Vec<Finding> {
        let found = of_plan(&run.header, &run.outcomes, &run.passes, &[]);
        found.into_iter().filter(|finding| finding.kind == FindingKind::Best).collect()
    }

    #[test]
    fn the_best_level_of_each_region_is_found_under_changing_conditions() {
        let run = made(|size, mtu| match (mtu, size < 5_000.0) {
            ("9000", true) => 0.9,
            ("9000", false) => 1.25,
            _ => 1.0,
        });
        let found = best_of(&run);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(
            found[0].statement.plain().starts_with("Goodput by mtu, blocks of 1000 B to 4000 B: 1500 is best, +11"),
            "{found:#?}"
        );
        assert!(found[1].statement.plain().contains("blocks of 16000 B to 250 KiB: 9000 is best, +25"), "{found:#?}");
        let ratio = found[1].estimate.as_ref().unwrap();
        assert!(ratio.low.unwrap() > 1.23 && ratio.high.unwrap() < 1.27 && ratio.n == 8, "{ratio:?}");
        assert_eq!((found[1].block, found[1].cells.len()), (Some(16_000), 3));
    }

    #[test]
    fn equal_levels_have_no_best() {
        let found = best_of(&made(|size, _| size.ln()));
        assert!(
            found.iter().any(|finding| finding.statement.plain().ends_with("no significant difference.")),
            "{found:#?}"
        );
        assert!(found.iter().filter(|finding| finding.estimate.is_some()).count() <= 1, "{found:#?}");
    }

    #[test]
    fn the_shortest_rtt_is_best() {
        let mut random = SplitMix64::new(8);
        let factors: [(&str, &[&str]); 3] = [("block", &["1", "8"]), ("cc", &["a", "b"]), ("wait", &["x", "y"])];
        let mut run = planned(&factors, Pattern::Pingpong, 6, |levels, _| {
            if levels["cc"] == "b" { 2e4 } else { 1e4 * (1.0 + 0.01 * random.normal()) }
        });
        for cell in &mut run.header.cells {
            cell.spec.block = cell.levels["block"].parse().unwrap();
        }
        let found = best_of(&run);
        let of_cc: Vec<&Finding> =
            found.iter().filter(|finding| finding.statement.plain().contains(" by cc at wait ")).collect();
        assert_eq!(of_cc.len(), 2, "one for each of the other factor's levels: {found:#?}");
        assert!(of_cc.iter().all(|finding| finding.statement.plain().contains(": a is best, +")), "{of_cc:#?}");
    }

    #[test]
    fn without_sizes_or_another_factor_there_are_no_regions() {
        let flows = planned(&[("flows", &["1", "2"]), ("cc", &["x", "y"])], Pattern::Stream, 4, |_, _| 1e9);
        assert_eq!(best_of(&flows), []);
        let alone = planned(&[("block", &["1", "2"])], Pattern::Stream, 4, |_, _| 1e9);
        assert_eq!(best_of(&alone), []);
    }
}
