//! CPU use and interrupts of the hosts over the levels of a factor.

use std::collections::{BTreeMap, HashMap};

use model::source::counter;
use model::{Cell, EndPass, Factor, Outcome, Pass, RunHeader, Trial};

use super::{dimensions, levels, part, sizes_of_curves};
use crate::stats::mean;

/// One quantity at one end over the levels of a factor, with all other levels fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorLine {
    /// The factor.
    pub factor: String,
    /// `cores` (busy cores, including interrupts) or `1/s` (interrupts).
    pub unit: &'static str,
    /// `near` or `far`.
    pub end: &'static str,
    /// The other factors' levels.
    pub held: Vec<(String, String)>,
    /// Level and the mean over the cell's passes, in the plan's order.
    pub points: Vec<(String, f64)>,
}

type Quantity = fn(&EndPass) -> Option<f64>;

/// Cells by their level of a factor.
type Levels<'a> = HashMap<&'a str, &'a Cell>;

/// CPU use and interrupts over each factor with more than one level; quantities that were not observed have no line.
#[must_use]
pub fn factor_lines(header: &RunHeader, outcomes: &[Outcome], passes: &[Pass]) -> Vec<FactorLine> {
    let Some(plan) = &header.plan else { return Vec::new() };
    let cores: Quantity = |end| end.cpu.as_ref()?.busy_cores();
    let interrupts: Quantity = |end| {
        let observed = end.observed.as_ref()?;
        let grew = observed.grew(counter::INTERRUPTS)?;
        (observed.window_ns > 0).then(|| grew as f64 * 1e9 / observed.window_ns as f64)
    };
    let by_index: BTreeMap<u32, &Pass> = passes.iter().map(|pass| (pass.index, pass)).collect();
    let mut trials: HashMap<u32, Vec<&Trial>> = HashMap::new();
    outcomes.iter().for_each(|outcome| trials.entry(outcome.cell).or_default().extend(&outcome.trials));
    let cells: Vec<&Cell> = header.cells.iter().collect();
    // All sizes of a curve share its passes, so sizes are not a factor here.
    let mut names = dimensions(plan, &cells);
    names.retain(|name| !sizes_of_curves(plan, name));
    let mut lines = Vec::new();
    for factor in names.iter().filter(|name| ![Factor::FROM, Factor::TO].contains(&name.as_str())) {
        let rest: Vec<String> = names.iter().filter(|name| *name != factor).cloned().collect();
        // The cells of each group by their level, the first one of each.
        let mut groups: Vec<(BTreeMap<&str, &str>, Levels<'_>)> = Vec::new();
        let mut places: HashMap<BTreeMap<&str, &str>, usize> = HashMap::new();
        for cell in &cells {
            let held = part(cell, &rest);
            let place = *places.entry(held).or_insert_with_key(|held| {
                groups.push((held.clone(), HashMap::new()));
                groups.len() - 1
            });
            if let Some(level) = cell.levels.get(factor) {
                groups[place].1.entry(level).or_insert(cell);
            }
        }
        let levels = levels(plan, factor, &cells);
        for (unit, quantity) in [("cores", cores), ("1/s", interrupts)] {
            for (end, side) in [("near", 0), ("far", 1)] {
                for (held, of_group) in &groups {
                    let of_level = |level: &String| {
                        let cell = of_group.get(level.as_str())?;
                        let ends = trials.get(&cell.id)?.iter().filter_map(|trial| by_index.get(&trial.pass));
                        let values: Vec<f64> =
                            ends.filter_map(|pass| quantity([&pass.near, &pass.far][side])).collect();
                        mean(&values).map(|value| (level.clone(), value))
                    };
                    let points: Vec<(String, f64)> = levels.iter().filter_map(of_level).collect();
                    if points.len() > 1 {
                        let held = held.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
                        lines.push(FactorLine { factor: factor.clone(), unit, end, held, points });
                    }
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::table::testing::planned;
    use super::*;
    use model::{CoreUse, CpuUse, Observed, Pattern};

    #[test]
    fn observed_cpu_use_and_interrupts_have_lines() {
        let mut run = planned(&[("flows", &["1", "4"]), ("cc", &["x", "y"])], Pattern::Stream, 3, |_, _| 1e9);
        assert_eq!(factor_lines(&run.header, &run.outcomes, &run.passes), []);
        for (at, pass) in run.passes.iter_mut().enumerate() {
            // Cells 0 and 1 have one flow, 2 and 3 have four.
            let busy = if at % 4 < 2 { 500_000_000 } else { 1_000_000_000 };
            let core = CoreUse { system_ns: busy, ..CoreUse::default() };
            pass.far.cpu = Some(CpuUse { window_ns: 1_000_000_000, resolution_ns: 1, cores: vec![core] });
            let counters = [(counter::INTERRUPTS.to_owned(), 3_000)].into();
            pass.far.observed = Some(Observed {
                window_ns: 2_000_000_000,
                sources: vec!["stat".into()],
                counters,
                ..Observed::default()
            });
        }
        let lines = factor_lines(&run.header, &run.outcomes, &run.passes);
        let flows: Vec<_> = lines.iter().filter(|line| line.factor == "flows" && line.unit == "cores").collect();
        assert_eq!(flows.len(), 2, "one for each cc, at the far end alone");
        assert_eq!(flows[0].points, [("1".to_owned(), 0.5), ("4".to_owned(), 1.0)]);
        assert!(lines.iter().any(|line| line.unit == "1/s" && line.points.iter().all(|(_, rate)| *rate == 1_500.0)));
    }
}
