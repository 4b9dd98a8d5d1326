//! Which level of a factor is best for which block sizes, from the outcomes of one plan: the MTU or the buffer to choose.
//!
//! Levels are compared within blocks, as effects are: each block in which both levels have all sizes of a region gives one value, the
//! mean over the sizes of the difference of the logarithms, and Student's interval over the blocks follows. So what moves a whole
//! block, or all sizes of a curve's pass, widens the interval as it should.

use std::collections::BTreeMap;
use std::ops::Range;

use model::{Cell, Estimate, Factor, FactorKind, Finding, FindingKind, Plan, RunHeader};

use super::effects::{Logs, capitalised, noun};
use super::{KINDS, dimensions, levels, of_kind, part};
use crate::limiter::{LabelledRates, best_regions};
use crate::outcome::Headline;
use crate::stats::{MeanDifference, mean, sample_sd};

/// Fewest blocks that tell how sure a difference is.
const MIN_ROUNDS: usize = 3;
/// Fewest sizes that make regions.
const MIN_SIZES: usize = 2;

/// For each factor beside a plan's block sizes (those of its curves, or a factor `block`), with all others held: the best level in
/// each stretch of sizes. Empty where the block does not vary, or alone.
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
                    found.extend(in_words(&grid, factor, &held, kind));
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
        FactorKind::Setting | FactorKind::Set | FactorKind::Observed => false,
    })
}

/// The levels of a factor by the block sizes that all of them have, with everything else held.
struct Grid {
    labels: Vec<String>,
    sizes: Vec<u64>,
    /// By size and label: the cell, and the logarithm of its rate in each block.
    cells: Vec<Vec<(u32, BTreeMap<u32, f64>)>>,
}

impl Grid {
    fn new(labels: Vec<String>, factor: &str, group: &[&Cell], kind: Headline, logs: &Logs) -> Self {
        // Of a time less is better.
        let sign = if kind == Headline::RoundTrip { -1.0 } else { 1.0 };
        let mut blocks: Vec<u64> = group.iter().map(|cell| cell.spec.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let at = |block: u64, label: &String| {
            let cell = group.iter().find(|cell| cell.spec.block == block && cell.levels.get(factor) == Some(label))?;
            let logs = logs.get(&cell.id)?;
            Some((cell.id, logs.iter().map(|(block, ln)| (*block, sign * ln)).collect()))
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

    /// One value for each block in which both labels have all of these sizes.
    fn by_block(&self, sizes: Range<usize>, one: usize, other: usize) -> Vec<f64> {
        let rows = &self.cells[sizes];
        let Some(first) = rows.first() else { return Vec::new() };
        let of = |block: &u32| {
            let each = |row: &Vec<(u32, BTreeMap<u32, f64>)>| Some(row[one].1.get(block)? - row[other].1.get(block)?);
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
        // Where cells were done at different times, only the blocks that all of them have tell them apart.
        let common = |block: &&u32| row.iter().all(|(_, logs)| logs.contains_key(block));
        let values: Vec<f64> = row[label].1.keys().filter(common).map(|block| row[label].1[block]).collect();
        mean(&values).unwrap_or(f64::NEG_INFINITY)
    }

    fn ahead(&self, sizes: Range<usize>, one: usize, other: usize) -> Option<MeanDifference> {
        let values = self.by_block(sizes, one, other);
        let n = values.len();
        let standard_error = sample_sd(&values).filter(|_| n >= MIN_ROUNDS)? / (n as f64).sqrt();
        Some(MeanDifference { value: mean(&values)?, standard_error, df: (n - 1) as f64 })
    }
}

fn in_words(grid: &Grid, factor: &str, held: &BTreeMap<&str, &str>, kind: Headline) -> Vec<Finding> {
    let held: Vec<String> = held.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let at = if held.is_empty() { String::new() } else { format!(" at {}", held.join(", ")) };
    let tell = |(region, sizes): (model::BestRegion, Range<usize>)| {
        let slot = |label: &Option<String>| grid.labels.iter().position(|other| Some(other) == label.as_ref());
        let best = slot(&region.best);
        let blocks = best.zip(slot(&region.over)).map(|(best, over)| grid.by_block(sizes.clone(), best, over).len());
        let estimate = region.ratio.zip(blocks).map(|(value, blocks)| Estimate {
            statistic: "mean over blocks of the ratio of the best level to the next".into(),
            unit: "ratio".into(),
            value,
            low: region.low,
            high: region.high,
            confidence: crate::limiter::CONFIDENCE,
            method: "Student t over blocks of the log ratio".into(),
            n: u32::try_from(blocks).unwrap_or(u32::MAX),
        });
        let rows = &grid.cells[sizes];
        let cells = match best {
            Some(best) => rows.iter().map(|row| row[best].0).collect(),
            None => rows.iter().flatten().map(|(cell, _)| *cell).collect(),
        };
        let what = capitalised(noun(kind));
        let statement = format!("{what} by {factor}{at}, blocks of {}.", region.statement);
        Finding { kind: FindingKind::Best, statement, estimate, block: Some(region.from), cells, comparison: None }
    };
    best_regions(grid).into_iter().map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::super::of_plan;
    use super::super::table::testing::{Made, planned};
    use super::*;
    use crate::stats::SplitMix64;

    const BLOCKS: &[&str] = &["1000", "4000", "16000", "64000", "256000"];

    /// A plan over block sizes and MTUs whose streams have the rate that `rate` says, with weather that moves whole blocks.
    fn made(rate: impl Fn(f64, &str) -> f64) -> Made {
        let mut random = SplitMix64::new(3);
        let weather: Vec<f64> = (0..8).map(|_| (0.3 * random.normal()).exp()).collect();
        let factors: [(&str, &[&str]); 2] = [("block", BLOCKS), ("mtu", &["1500", "9000"])];
        let mut run = planned(&factors, "stream", 8, |levels, block| {
            let size: f64 = levels["block"].parse().unwrap();
            1e9 * weather[block as usize] * rate(size, &levels["mtu"]) * (1.0 + 0.004 * random.normal())
        });
        for cell in &mut run.header.cells {
            cell.spec.block = cell.levels["block"].parse().unwrap();
        }
        run
    }

    fn best_of(run: &Made) -> Vec<Finding> {
        let found = of_plan(&run.header, &run.outcomes, &run.passes);
        found.into_iter().filter(|finding| finding.kind == FindingKind::Best).collect()
    }

    #[test]
    fn the_best_level_of_each_region_is_named_whatever_the_weather() {
        let run = made(|size, mtu| match (mtu, size < 5_000.0) {
            ("9000", true) => 0.9,
            ("9000", false) => 1.25,
            _ => 1.0,
        });
        let found = best_of(&run);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(
            found[0].statement.starts_with("Goodput by mtu, blocks of 1000 B to 4000 B: 1500 is best, +11"),
            "{found:#?}"
        );
        assert!(found[1].statement.contains("blocks of 16000 B to 250 KiB: 9000 is best, +25"), "{found:#?}");
        let ratio = found[1].estimate.as_ref().unwrap();
        assert!(ratio.low.unwrap() > 1.23 && ratio.high.unwrap() < 1.27 && ratio.n == 8, "{ratio:?}");
        assert_eq!((found[1].block, found[1].cells.len()), (Some(16_000), 3));
    }

    #[test]
    fn equal_levels_have_no_best() {
        let found = best_of(&made(|size, _| size.ln()));
        assert!(found.iter().any(|finding| finding.statement.ends_with("no difference is sure.")), "{found:#?}");
        assert!(found.iter().filter(|finding| finding.estimate.is_some()).count() <= 1, "{found:#?}");
    }

    #[test]
    fn of_round_trips_the_shortest_is_best() {
        let mut random = SplitMix64::new(8);
        let factors: [(&str, &[&str]); 3] = [("block", &["1", "8"]), ("cc", &["a", "b"]), ("wait", &["x", "y"])];
        let mut run = planned(&factors, "pingpong", 6, |levels, _| {
            if levels["cc"] == "b" { 2e4 } else { 1e4 * (1.0 + 0.01 * random.normal()) }
        });
        for cell in &mut run.header.cells {
            cell.spec.block = cell.levels["block"].parse().unwrap();
        }
        let found = best_of(&run);
        let of_cc: Vec<&Finding> =
            found.iter().filter(|finding| finding.statement.contains(" by cc at wait ")).collect();
        assert_eq!(of_cc.len(), 2, "one for each of the other factor's levels: {found:#?}");
        assert!(of_cc.iter().all(|finding| finding.statement.contains(": a is best, +")), "{of_cc:#?}");
    }

    #[test]
    fn without_sizes_or_without_anything_beside_them_nothing_is_said() {
        let flows = planned(&[("flows", &["1", "2"]), ("cc", &["x", "y"])], "stream", 4, |_, _| 1e9);
        assert_eq!(best_of(&flows), []);
        let alone = planned(&[("block", &["1", "2"])], "stream", 4, |_, _| 1e9);
        assert_eq!(best_of(&alone), []);
    }
}
