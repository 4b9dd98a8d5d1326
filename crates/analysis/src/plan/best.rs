//! Which level of a factor is best, by how much, and where it makes no difference, from the outcomes of one plan: for example which MTU
//! or buffer to choose. Where block sizes vary, this is told by ranges of them.
//!
//! Levels are compared within rounds, as effects are: each round in which both levels have all cells gives one value, the mean over the
//! cells of the difference of the logarithms; the interval is Student's over the rounds. Changes between rounds, or between the passes
//! of a curve, are included in the interval.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::{BestRegion, Cell, Estimate, Factor, FactorKind, Finding, FindingKind, Plan, RunHeader};
use text::{Text, say};

use super::logs::{Logs, as_goodput, noun};
use super::{
    KINDS, across_kinds, dimensions, is_host_of_matrix, is_of_traffic, levels, of_kind, part, sizes_of_curves,
};
use crate::curve::centres;
use crate::limiter::{CONFIDENCE, LabelledRates, best_regions, is_ahead, range_of};
use crate::outcome::Headline;
use crate::stats::{MeanDifference, mean, sample_sd};

/// Fewest rounds with a standard error.
const MIN_ROUNDS: usize = 3;

/// Levels of the other factors.
type Held<'a> = BTreeMap<&'a str, &'a str>;

/// For each factor its best level, over the block sizes of the plan if it has several (those of its curves, or a factor `block`), and
/// over all combinations of the other factors. If one of them contradicts, so that the mean would mislead, at each of its levels.
pub(super) fn best(header: &RunHeader, plan: &Plan, logs: &Logs) -> Vec<Finding> {
    let mut found = Vec::new();
    for kind in KINDS {
        let cells = of_kind(&header.cells, kind);
        let names = dimensions(plan, &cells);
        let sizes = names.iter().find(|name| is_sizes(plan, name));
        let is_compared = |name: &&String| {
            // The hosts of a matrix are no levels to choose from, and a larger block always takes longer.
            let takes_longer = Some(*name) == sizes && kind != Headline::Goodput;
            let is_chosen = !is_host_of_matrix(header, &names, name) && !is_of_traffic(plan, name);
            is_chosen && !takes_longer && !sizes_of_curves(plan, name)
        };
        for factor in names.iter().filter(is_compared) {
            let sizes = sizes.filter(|sizes| *sizes != factor);
            let rest: Vec<String> =
                names.iter().filter(|name| *name != factor && Some(*name) != sizes).cloned().collect();
            let is_of_curves = sizes.is_some_and(|name| sizes_of_curves(plan, name));
            let what = if is_of_curves && kind == Headline::RoundTrip { "NetPIPE rate" } else { noun(kind) };
            let one = Compared { plan, kind, what, factor, sizes, logs };
            found.extend(one.findings(&rest, &cells));
        }
    }
    found.extend(between_patterns(header, plan, logs));
    found
}

/// Round trips against streams, where a factor switches the curves of a plan between them.
fn between_patterns(header: &RunHeader, plan: &Plan, logs: &Logs) -> Vec<Finding> {
    let across = across_kinds(plan, &header.cells);
    if across.is_empty() {
        return Vec::new();
    }
    let logs = as_goodput(logs, &header.cells);
    let cells: Vec<&Cell> = header.cells.iter().filter(|cell| cell.spec.is_point()).collect();
    let names = dimensions(plan, &cells);
    let sizes = names.iter().find(|name| sizes_of_curves(plan, name));
    let of = |factor: &String| {
        let rest: Vec<String> = names.iter().filter(|name| *name != factor && Some(*name) != sizes).cloned().collect();
        let one = Compared { plan, kind: Headline::Goodput, what: "rate", factor, sizes, logs: &logs };
        one.findings(&rest, &cells)
    };
    across.iter().flat_map(of).collect()
}

fn is_sizes(plan: &Plan, name: &str) -> bool {
    let factor = plan.factors.iter().find(|factor| factor.name == name);
    factor.is_some_and(|factor| match factor.kind {
        FactorKind::Sizes => true,
        FactorKind::Field => factor.key == Factor::SIZES,
        FactorKind::Setting | FactorKind::Set | FactorKind::Observed | FactorKind::Traffic => false,
    })
}

/// A factor whose levels are compared.
struct Compared<'a> {
    plan: &'a Plan,
    kind: Headline,
    /// What is compared, in words.
    what: &'static str,
    factor: &'a String,
    /// The factor of the block sizes.
    sizes: Option<&'a String>,
    logs: &'a Logs,
}

impl Compared<'_> {
    fn findings(&self, rest: &[String], cells: &[&Cell]) -> Vec<Finding> {
        let mut groups: BTreeMap<Held<'_>, Vec<&Cell>> = BTreeMap::new();
        for cell in cells {
            groups.entry(part(cell, rest)).or_default().push(cell);
        }
        let labels = levels(self.plan, self.factor, cells);
        let mut grids: Vec<(Held<'_>, Grid)> =
            groups.iter().map(|(held, group)| (held.clone(), self.grid(labels.clone(), group))).collect();
        grids.retain(|(_, grid)| !grid.rows.is_empty());
        if grids.is_empty() {
            // No combination of the others has all levels: each is compared with its own ones.
            let own = |(held, group): (&Held<'_>, &Vec<&Cell>)| {
                let grid = self.grid(levels(self.plan, self.factor, group), group);
                if grid.labels.len() > 1 && !grid.rows.is_empty() { self.of_grid(&grid, &at(held)) } else { Vec::new() }
            };
            return groups.iter().flat_map(own).collect();
        }
        let all = Grid::mean_of(&grids);
        if contradictions(&all, &grids) == 0 {
            return self.of_grid(&all, "");
        }
        let split = |name: &String| {
            let parts: Vec<Vec<(Held<'_>, Grid)>> = levels(self.plan, name, cells)
                .iter()
                .map(|level| grids.iter().filter(|(held, _)| held.get(name.as_str()) == Some(&level.as_str())).cloned())
                .map(Iterator::collect)
                .collect();
            let left: usize = parts.iter().map(|part| contradictions(&Grid::mean_of(part), part)).sum();
            (left, name.clone(), parts)
        };
        let names = rest.iter().filter(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str()));
        let Some((_, name, parts)) = names.map(split).min_by_key(|(left, ..)| *left) else {
            return self.of_grid(&all, "");
        };
        let of_part = |part: &Vec<(Held<'_>, Grid)>| {
            let level = part.first().and_then(|(held, _)| held.get(name.as_str())).copied().unwrap_or_default();
            self.of_grid(&Grid::mean_of(part), &format!(" at {name} {level}"))
        };
        parts.iter().filter(|part| !part.is_empty()).flat_map(of_part).collect()
    }

    /// The cells of one combination of the other factors. Round trips of a curve are compared by their rate.
    fn grid(&self, labels: Vec<String>, group: &[&Cell]) -> Grid {
        let is_time = self.kind == Headline::RoundTrip;
        let sign = if is_time { -1.0 } else { 1.0 };
        let of_curves = self.sizes.is_some_and(|name| sizes_of_curves(self.plan, name));
        let blocks: BTreeSet<u64> = group.iter().filter(|_| self.sizes.is_some()).map(|cell| cell.spec.block).collect();
        let blocks: Vec<u64> = blocks.into_iter().collect();
        let centres: BTreeMap<u64, u64> =
            if of_curves { blocks.iter().copied().zip(centres(&blocks)).collect() } else { BTreeMap::new() };
        let mut by_size: BTreeMap<u64, Vec<Vec<u32>>> = BTreeMap::new();
        for cell in group {
            let block = if self.sizes.is_some() { cell.spec.block } else { 0 };
            let centre = centres.get(&block).copied().unwrap_or(block);
            let own = by_size.entry(centre).or_insert_with(|| vec![Vec::new(); labels.len()]);
            let level = cell.levels.get(self.factor);
            if let Some(label) = labels.iter().position(|label| Some(label) == level) {
                own[label].push(cell.id);
            }
        }
        let row = |(block, cells): (u64, Vec<Vec<u32>>)| {
            let alike = cells.iter().all(|own| !own.is_empty() && own.len() == cells[0].len());
            let logs = cells.iter().map(|own| {
                let each: Vec<BTreeMap<u32, f64>> = own.iter().filter_map(|id| self.logs.get(id)).cloned().collect();
                let logs = mean_by_round(&each, each.len() == own.len());
                logs.into_iter().map(|(round, ln)| (round, sign * ln)).collect()
            });
            let logs: Vec<BTreeMap<u32, f64>> = logs.collect();
            (alike && logs.iter().all(|logs| !logs.is_empty())).then_some(Row { block, cells, logs })
        };
        let rows: Vec<Row> = by_size.into_iter().filter_map(row).collect();
        let sizes = rows.iter().map(|row| row.block).collect();
        Grid { labels, rows, sizes, are_times: is_time && !of_curves }
    }

    fn of_grid(&self, grid: &Grid, at: &str) -> Vec<Finding> {
        let what = Text::from(self.what).capitalised();
        let finding = |(region, sizes): (BestRegion, Range<usize>)| {
            let index = |label: &Option<String>| grid.labels.iter().position(|other| Some(other) == label.as_ref());
            let best = index(&region.best);
            let rounds = best.zip(index(&region.over));
            let rounds = rounds.map_or(0, |(best, over)| grid.by_round(sizes.clone(), best, over).len());
            let estimate = region.ratio.map(|value| Estimate {
                statistic: "geometric mean over rounds of the ratio of the best level to the next".into(),
                unit: "ratio".into(),
                value,
                low: region.low,
                high: region.high,
                confidence: CONFIDENCE,
                method: "Student's t over rounds, on the logarithm of the ratio, corrected for levels and regions"
                    .into(),
                n: u32::try_from(rounds).unwrap_or(u32::MAX),
            });
            let rows = &grid.rows[sizes];
            let cells = match best {
                Some(best) => rows.iter().flat_map(|row| row.cells[best].iter().copied()).collect(),
                None => rows.iter().flat_map(|row| row.cells.iter().flatten().copied()).collect(),
            };
            let blocks = if self.sizes.is_some() { say!(", blocks of {}", range_of(&region)) } else { Text::default() };
            let statement = say!("{what} by {}{at}{blocks}: {}.", self.factor, region.statement);
            let kind = if estimate.is_some() { FindingKind::Best } else { FindingKind::NoDifference };
            let block = self.sizes.map(|_| region.from);
            Finding { kind, statement, estimate, block, cells, comparison: None }
        };
        best_regions(grid).into_iter().map(finding).collect()
    }
}

/// ` at mtu 9000, cc bbr`.
fn at(held: &Held<'_>) -> String {
    let held: Vec<String> = held.iter().map(|(name, level)| format!("{name} {level}")).collect();
    if held.is_empty() { String::new() } else { format!(" at {}", held.join(", ")) }
}

/// How often a combination of the other factors has, in a region, another best level than their mean.
fn contradictions(all: &Grid, grids: &[(Held<'_>, Grid)]) -> usize {
    let regions = best_regions(all);
    if grids.len() < 2 {
        return 0;
    }
    let error = (1.0 - CONFIDENCE) / (grids.len() * regions.len().max(1)) as f64;
    let contradicts = |grid: &Grid, region: &BestRegion| {
        let sizes = grid.between(region.from, region.to);
        let index = |label: &Option<String>| grid.labels.iter().position(|other| Some(other) == label.as_ref());
        match index(&region.best).zip(index(&region.over)) {
            Some((best, over)) => {
                let interval = grid.ahead(sizes, best, over).and_then(|ahead| ahead.interval(1.0 - error));
                interval.is_some_and(|interval| interval.high < 0.0)
            }
            None => {
                let error = error / (grid.labels.len() - 1).max(1) as f64;
                (0..grid.labels.len()).any(|label| is_ahead(grid, label, sizes.clone(), error))
            }
        }
    };
    let pairs = grids.iter().flat_map(|(_, grid)| regions.iter().map(move |(region, _)| (grid, region)));
    pairs.filter(|(grid, region)| contradicts(grid, region)).count()
}

/// The mean in each round that all of these have; none unless these are `all`.
fn mean_by_round(each: &[BTreeMap<u32, f64>], all: bool) -> BTreeMap<u32, f64> {
    let Some(first) = each.first().filter(|_| all) else { return BTreeMap::new() };
    let of = |round: &u32| {
        let values: Option<Vec<f64>> = each.iter().map(|logs| logs.get(round).copied()).collect();
        Some((*round, mean(&values?)?))
    };
    first.keys().filter_map(of).collect()
}

/// The levels of a factor by the block sizes that all of them have, or in a single row.
#[derive(Debug, Clone)]
struct Grid {
    labels: Vec<String>,
    sizes: Vec<u64>,
    rows: Vec<Row>,
    are_times: bool,
}

/// A block size with the neighbours that accompany it, by label.
#[derive(Debug, Clone)]
struct Row {
    block: u64,
    cells: Vec<Vec<u32>>,
    /// The logarithm of the rate in each round.
    logs: Vec<BTreeMap<u32, f64>>,
}

impl Grid {
    /// The mean over combinations of the other factors.
    fn mean_of(grids: &[(Held<'_>, Self)]) -> Self {
        let [(_, first), others @ ..] = grids else {
            return Self { labels: Vec::new(), sizes: Vec::new(), rows: Vec::new(), are_times: false };
        };
        let of_row = |row: &Row| {
            let same = |(_, grid): &(Held<'_>, Self)| grid.rows.iter().find(|other| other.block == row.block).cloned();
            let rows: Vec<Row> =
                std::iter::once(Some(row.clone())).chain(others.iter().map(same)).collect::<Option<_>>()?;
            let label = |at: usize| {
                let logs: Vec<BTreeMap<u32, f64>> = rows.iter().map(|row| row.logs[at].clone()).collect();
                (rows.iter().flat_map(|row| row.cells[at].clone()).collect(), mean_by_round(&logs, true))
            };
            let (cells, logs) = (0..first.labels.len()).map(label).unzip();
            Some(Row { block: row.block, cells, logs })
        };
        let rows: Vec<Row> = first.rows.iter().filter_map(of_row).collect();
        let sizes = rows.iter().map(|row| row.block).collect();
        Self { labels: first.labels.clone(), sizes, rows, are_times: first.are_times }
    }

    /// The rows of these sizes.
    fn between(&self, from: u64, to: u64) -> Range<usize> {
        self.sizes.partition_point(|size| *size < from)..self.sizes.partition_point(|size| *size <= to)
    }

    /// One value for each round in which both labels have all of these sizes.
    fn by_round(&self, sizes: Range<usize>, one: usize, other: usize) -> Vec<f64> {
        let rows = &self.rows[sizes];
        let Some(first) = rows.first() else { return Vec::new() };
        let of = |round: &u32| {
            let each = |row: &Row| Some(row.logs[one].get(round)? - row.logs[other].get(round)?);
            let all: Option<Vec<f64>> = rows.iter().map(each).collect();
            mean(&all?)
        };
        first.logs[one].keys().filter_map(of).collect()
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
        let logs = &self.rows[size].logs;
        // Only rounds that all cells have are comparable.
        let common = |round: &&u32| logs.iter().all(|logs| logs.contains_key(round));
        let values: Vec<f64> = logs[label].keys().filter(common).map(|round| logs[label][round]).collect();
        mean(&values).unwrap_or(f64::NEG_INFINITY)
    }

    fn ahead(&self, sizes: Range<usize>, one: usize, other: usize) -> Option<MeanDifference> {
        let values = self.by_round(sizes, one, other);
        let n = values.len();
        let standard_error = sample_sd(&values).filter(|_| n >= MIN_ROUNDS)? / (n as f64).sqrt();
        Some(MeanDifference { value: mean(&values)?, standard_error, df: (n - 1) as f64 })
    }

    fn are_times(&self) -> bool {
        self.are_times
    }
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

    /// The findings on one factor.
    fn of(run: &PlanRun, factor: &str) -> Vec<Finding> {
        let found = of_plan(&run.header, &run.outcomes, &run.passes, &[]).into_iter();
        let levels = found.filter(|one| matches!(one.kind, FindingKind::Best | FindingKind::NoDifference));
        levels.filter(|one| one.statement.plain().contains(&format!(" by {factor}"))).collect()
    }

    fn said(found: &[Finding]) -> Vec<String> {
        found.iter().map(|one| one.statement.plain()).collect()
    }

    #[test]
    fn the_best_level_of_each_region_is_found_under_changing_conditions() {
        let run = made(|size, mtu| match (mtu, size < 5_000.0) {
            ("9000", true) => 0.9,
            ("9000", false) => 1.25,
            _ => 1.0,
        });
        let found = of(&run, "mtu");
        let said = said(&found);
        assert_eq!(found.len(), 2, "{said:#?}");
        assert!(said[0].starts_with("Goodput by mtu, blocks of 1000 B to 4000 B: 1500 is best, +11"), "{said:#?}");
        assert!(said[1].contains("blocks of 16000 B to 250 KiB: 9000 is best, +25"), "{said:#?}");
        let ratio = found[1].estimate.as_ref().unwrap();
        assert!(ratio.low.unwrap() > 1.23 && ratio.high.unwrap() < 1.27 && ratio.n == 8, "{ratio:?}");
        assert_eq!((found[1].block, found[1].cells.len()), (Some(16_000), 3));
    }

    #[test]
    fn equal_levels_have_no_best_but_a_bound_of_their_difference() {
        let found = of(&made(|size, _| size.ln()), "mtu");
        let [only] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((only.kind, &only.estimate), (FindingKind::NoDifference, &None));
        assert_eq!(
            only.statement.plain(),
            "Goodput by mtu, blocks of 1000 B to 250 KiB: no significant difference (at most 1 %)."
        );
    }

    #[test]
    fn of_many_sizes_none_alone_is_a_region_and_noise_makes_none() {
        let sizes: Vec<String> = crate::curve::testing::netpipe().iter().map(ToString::to_string).collect();
        let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
        for seed in 0..6 {
            let mut random = SplitMix64::new(seed);
            let mut run =
                planned(&[("mtu", &["1500", "3000"]), ("block", &sizes)], Pattern::Pingpong, 6, |levels, _| {
                    let size: f64 = levels["block"].parse().unwrap();
                    // One size differs in all rounds, and from 24 KiB on MTU 3000 is 6 % faster.
                    let lone = if levels["block"] == "51" { 0.8 } else { 1.0 };
                    let large = if size > 24_000.0 { 0.94 } else { 1.0 };
                    let own = if levels["mtu"] == "3000" { lone * large } else { 1.0 };
                    own * (30_000.0 + 20.0 * size) * (1.0 + 0.03 * random.normal())
                });
            for cell in &mut run.header.cells {
                cell.spec.block = cell.levels["block"].parse().unwrap();
            }
            run.header.plan.as_mut().unwrap().factors[1].kind = FactorKind::Sizes;
            let found = of(&run, "mtu");
            let said = said(&found);
            assert_eq!(found.len(), 2, "{said:#?}");
            assert!(
                said[0].starts_with("NetPIPE rate by mtu, blocks of 1 B to ") && found[0].estimate.is_none(),
                "{said:#?}"
            );
            // The edge is an estimate.
            assert!((8_192..=65_536).contains(&found[1].block.unwrap()), "{said:#?}");
            let ratio = found[1].estimate.as_ref().unwrap().value;
            assert!(said[1].contains(": 3000 is best, +") && (1.045..1.085).contains(&ratio), "{said:#?}");
        }
    }

    #[test]
    fn the_shortest_rtt_is_best_over_all_levels_of_the_others() {
        let mut random = SplitMix64::new(8);
        let factors: [(&str, &[&str]); 3] = [("block", &["1", "8"]), ("cc", &["a", "b"]), ("wait", &["x", "y"])];
        let mut run = planned(&factors, Pattern::Pingpong, 6, |levels, _| {
            if levels["cc"] == "b" { 2.5e4 } else { 1e4 * (1.0 + 0.01 * random.normal()) }
        });
        for cell in &mut run.header.cells {
            cell.spec.block = cell.levels["block"].parse().unwrap();
        }
        let found = said(&of(&run, "cc"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("RTT by cc, blocks of 1 B to 8 B: a is best, -60."), "{found:#?}");
        assert!(said(&of(&run, "wait"))[0].contains("no significant difference (at most "), "{found:#?}");
        assert_eq!(said(&of(&run, "block")), [""; 0], "a larger block always takes longer");
    }

    #[test]
    fn a_level_that_contradicts_divides_the_finding_and_levels_that_lead_together_are_named() {
        let mut random = SplitMix64::new(5);
        let factors: [(&str, &[&str]); 3] =
            [("cc", &["cubic", "bbr", "reno"]), ("loss", &["0", "1%"]), ("flows", &["1", "4"])];
        let run = planned(&factors, Pattern::Stream, 6, |levels, _| {
            let rate = match (levels["cc"].as_str(), levels["loss"].as_str()) {
                ("bbr", "1%") => 5.0,
                (_, "1%") => 1.0,
                ("reno", _) => 7.0,
                ("bbr", _) => 8.0,
                _ => 10.0,
            };
            1e8 * rate * (1.0 + 0.01 * random.normal())
        });
        let cc = said(&of(&run, "cc"));
        assert_eq!(cc.len(), 2, "{cc:#?}");
        assert!(cc[0].starts_with("Goodput by cc at loss 0: cubic is best, +2"), "{cc:#?}");
        assert!(cc[1].starts_with("Goodput by cc at loss 1%: bbr is best, "), "{cc:#?}");
        let flows = said(&of(&run, "flows"));
        assert!(flows.len() == 1 && flows[0].contains(": no significant difference (at most "), "{flows:#?}");
        let tied = planned(&[("n", &["1", "2", "4"])], Pattern::Stream, 6, |levels, _| {
            1e9 * if levels["n"] == "1" { 0.5 } else { 1.0 } * (1.0 + 0.005 * random.normal())
        });
        let tied = of(&tied, "n");
        let start = "Goodput by n: 2, 4 are best, without a significant difference between them (at most ";
        assert!(tied[0].kind == FindingKind::Best && said(&tied)[0].starts_with(start), "{tied:#?}");
        assert!(said(&tied)[0].contains("or more over 1"), "{tied:#?}");
    }

    #[test]
    fn two_rounds_have_no_winner_and_one_cell_no_finding() {
        let run =
            planned(
                &[("flows", &["1", "2"])],
                Pattern::Stream,
                2,
                |levels, _| {
                    if levels["flows"] == "2" { 2e9 } else { 1e9 }
                },
            );
        let found = of(&run, "flows");
        assert_eq!(found[0].kind, FindingKind::NoDifference);
        assert_eq!(said(&found), ["Goodput by flows: fewer than three rounds, so no interval; the mean of 2 is best."]);
        assert_eq!(of(&planned(&[("flows", &["1"])], Pattern::Stream, 4, |_, _| 1e9), "flows"), []);
    }
}
