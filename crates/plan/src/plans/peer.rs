//! Cells whose far end is another program.

use analysis::plan::PlannedCell;
use model::{Program, Spec};

use super::error::PlanError;

/// Refuses what the program cannot do.
///
/// # Errors
/// What, and what to do instead.
pub(super) fn check(program: Program, specs: &[Spec]) -> Result<(), PlanError> {
    let program = peers::protocol(program);
    let checked = match specs.first() {
        Some(spec) if spec.is_point() => program.check_curve(specs),
        _ => specs.iter().try_for_each(|spec| program.check(spec)),
    };
    Ok(checked?)
}

/// Refuses what a plan cannot do at a host without an agent, which the program is on.
///
/// # Errors
/// What, and what to do instead.
pub(super) fn check_hosts(program: Program, cell: &PlannedCell) -> Result<(), PlanError> {
    if cell.from.is_some() {
        return Err(PlanError::FromWithProgram { program });
    }
    if cell.to.is_none() {
        return Err(PlanError::NoFarHost { program });
    }
    if let Some(setting) = cell.settings.far.first() {
        return Err(PlanError::FarSetting { key: setting.key.clone(), program });
    }
    Ok(())
}
