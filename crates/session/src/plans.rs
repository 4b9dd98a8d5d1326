//! Opens a plan file.

use std::path::Path;

use command::Failure;
use command::values::variables;
use lab::Topology;
use plan::ParsedPlan;
use text::say;

use crate::labs::topology;
use crate::this_host::ThisHost;

/// The plan in a file, with the values of its variables. If `in_lab`, it is measured in its lab.
///
/// # Errors
/// The file cannot be read, has a mistake, or has no lab.
pub fn open(path: &Path, vars: &[(String, String)], in_lab: bool) -> Result<ParsedPlan, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the plan {name}: {error}")))?;
    let parsed = plan::read(&name, text, &variables(vars)?, in_lab, &ThisHost)?;
    if in_lab && parsed.plan.lab.is_none() {
        return Err(Failure::usage(say!(
            "{name} has no [lab]: add one with topology = \"NAME\", or omit `--lab` to measure between real hosts"
        )));
    }
    Ok(parsed)
}

/// The topology of the lab that the plan in this file is measured in; `None` if it is measured elsewhere.
///
/// # Errors
/// The topology has a mistake, or cannot have what a cell gives its links.
pub fn topology(path: &Path, parsed: &ParsedPlan) -> Result<Option<Topology>, Failure> {
    let lab = parsed.plan.lab.as_ref();
    lab.map(|lab| topology::of_plan(path, lab, parsed.specs())).transpose()
}
