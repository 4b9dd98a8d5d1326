//! Cells whose far end is another program.

use analysis::plan::PlannedCell;
use model::{Program, Spec};

/// Refuses what the program cannot do.
///
/// # Errors
/// What, and what to do instead.
pub(super) fn check(program: Program, specs: &[Spec]) -> Result<(), String> {
    let program = peers::protocol(program);
    let checked = match specs.first() {
        Some(spec) if spec.is_point() => program.check_curve(specs),
        _ => specs.iter().try_for_each(|spec| program.check(spec)),
    };
    checked.map_err(|error| error.to_string())
}

/// Refuses what a plan cannot do at a host without an agent, which the program is on.
///
/// # Errors
/// What, and what to do instead.
pub(super) fn check_hosts(name: Program, cell: &PlannedCell) -> Result<(), String> {
    if cell.from.is_some() {
        return Err(format!("`from` with `speak {name}`: thru connects to {name} from this host; omit `from`"));
    }
    if cell.to.is_none() {
        return Err(format!("`speak {name}` needs a far host: add to = [\"HOST\"] at the top, or a host to the cell"));
    }
    if let Some(setting) = cell.settings.far.first() {
        return Err(format!(
            "{} at the far end with `speak {name}`: no agent there can change it; use end = \"near\", and set it there yourself",
            setting.key
        ));
    }
    Ok(())
}
