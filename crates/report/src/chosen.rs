//! Runs of chosen cells of a plan, for the figures of a few among many.

use std::collections::BTreeSet;
use std::str::FromStr;

use model::{Cell, Factor, FindingKind, Run};

use crate::ReportError;

/// Cells of a plan by their levels: `block=64KiB,mtu=9000`. A factor that is not named may have any level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenCells(Vec<(String, String)>);

/// Text that chooses no cells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' chooses no cells: write FACTOR=LEVEL, several with commas, such as block=64KiB,mtu=9000")]
pub struct ChosenCellsError {
    text: String,
}

impl FromStr for ChosenCells {
    type Err = ChosenCellsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut chosen: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            match (part.split_once('='), chosen.last_mut()) {
                (Some((name, level)), _) if !name.trim().is_empty() && !level.is_empty() => {
                    chosen.push((name.trim().to_owned(), level.trim().to_owned()));
                }
                // A level may have commas of its own.
                (None, Some((_, level))) => *level += &format!(",{part}"),
                _ => return Err(ChosenCellsError { text: text.to_owned() }),
            }
        }
        Ok(Self(chosen))
    }
}

impl std::fmt::Display for ChosenCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, level)| format!("{name}={level}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl ChosenCells {
    fn is_of(&self, cell: &Cell) -> bool {
        self.0.iter().all(|(name, level)| cell.levels.get(name) == Some(level))
    }
}

/// The run of a plan with those of its cells that any of `choices` names, and their findings.
///
/// # Errors
/// The run is not one of a plan, or has no such factor, level or cell.
pub fn chosen(run: Run, choices: &[ChosenCells]) -> Result<Run, ReportError> {
    let id = || run.header.id.clone();
    let Some(plan) = &run.header.plan else { return Err(ReportError::NoPlan { run: id() }) };
    let levels = |name: &str| -> BTreeSet<&String> {
        run.header.cells.iter().filter_map(|cell| cell.levels.get(name)).collect()
    };
    for (name, level) in choices.iter().flat_map(|choice| &choice.0) {
        let met = levels(name);
        if met.is_empty() {
            let names = plan.factors.iter().map(|factor| factor.name.as_str()).chain([Factor::FROM, Factor::TO]);
            let names: Vec<&str> = names.filter(|name| !levels(name).is_empty()).collect();
            return Err(ReportError::NoFactor { run: id(), factor: name.clone(), factors: names.join(", ") });
        }
        if !met.contains(level) {
            // In the plan's order, where it lists them.
            let written = plan.factors.iter().find(|factor| factor.name == *name).map(|factor| factor.levels.clone());
            let levels = written.unwrap_or_else(|| met.into_iter().cloned().collect()).join(", ");
            return Err(ReportError::NoLevel { run: id(), factor: name.clone(), level: level.clone(), levels });
        }
    }
    let kept: Vec<Cell> =
        run.header.cells.iter().filter(|cell| choices.iter().any(|choice| choice.is_of(cell))).cloned().collect();
    if kept.is_empty() {
        let choice = choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        return Err(ReportError::NoCell { run: id(), choice });
    }
    Ok(with_cells(run, kept, choices))
}

fn with_cells(mut run: Run, cells: Vec<Cell>, choices: &[ChosenCells]) -> Run {
    let ids: BTreeSet<u32> = cells.iter().map(|cell| cell.id).collect();
    run.header.cells = cells;
    run.outcomes.retain(|outcome| ids.contains(&outcome.cell));
    let of_run = |kind| matches!(kind, FindingKind::Path | FindingKind::Note);
    run.findings.retain(|finding| of_run(finding.kind));
    run.findings.splice(0..0, analysis::of_plan(&run.header, &run.outcomes, &run.passes, &run.retests));
    if let Some(plan) = &mut run.header.plan {
        let choice = choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let title = plan.title.take().or_else(|| run.header.name.clone()).unwrap_or_else(|| "plan".to_owned());
        plan.title = Some(format!("{title} ({choice})"));
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn cells(text: &str) -> ChosenCells {
        text.parse().unwrap()
    }

    #[test]
    fn cells_are_chosen_by_some_of_their_levels() {
        let run = sample::categories();
        let one = chosen(run.clone(), &[cells("stack=bbr,message=4096")]).unwrap();
        assert_eq!((one.header.cells.len(), one.outcomes.len()), (1, 1));
        assert_eq!(one.outcomes[0].cell, one.header.cells[0].id);
        assert!(one.header.plan.unwrap().title.unwrap().ends_with("(stack=bbr,message=4096)"));
        let two = chosen(run, &[cells("stack=bbr"), cells("stack=reno,message=64")]).unwrap();
        assert_eq!(two.outcomes.len(), 9);
        let figures: Vec<String> = crate::figures(&[two]).into_iter().map(|figure| figure.id).collect();
        assert!(figures.contains(&"goodput".to_owned()), "{figures:?}");
    }

    #[test]
    fn a_wrong_choice_is_answered_with_what_there_is() {
        let refused = |run, text: &str| chosen(run, &[cells(text)]).unwrap_err().to_string();
        let run = sample::categories;
        assert_eq!(
            refused(run(), "stacks=bbr"),
            format!("`--cell`: run {} has no factor 'stacks': use stack, message", run().header.id)
        );
        let said = refused(run(), "stack=vegas");
        assert!(said.contains("no level 'vegas' of stack: use cubic, bbr, reno, highspeed"), "{said}");
        let said = refused(sample::stream(), "stack=bbr");
        assert!(said.contains("is not one of a plan"), "{said}");
        assert!("64KiB".parse::<ChosenCells>().is_err() && "=1".parse::<ChosenCells>().is_err());
        assert_eq!(cells("set=a,b,mtu=1"), ChosenCells(vec![("set".into(), "a,b".into()), ("mtu".into(), "1".into())]));
    }
}
