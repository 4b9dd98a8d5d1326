//! The topologies that commands name: those of the program, and files.

use std::collections::BTreeMap;
use std::path::Path;

use lab::Topology;
use model::{PlanLab, Shared, Spec};
use options::unknown;
use plan::topology::{READY, read};

use command::Failure;

/// The topology of a plan in the file `plan`, with the emulator on each link that a cell changes. A topology's file is relative to
/// the plan.
///
/// # Errors
/// As [`find`], and a property that a cell gives a link.
pub fn of_plan<'a>(
    plan: &Path,
    lab: &PlanLab,
    specs: impl Iterator<Item = &'a Shared<Spec>>,
) -> Result<Topology, Failure> {
    let beside = plan.parent().filter(|_| lab.topology.contains(['.', '/'])).map(|folder| folder.join(&lab.topology));
    let name = beside.map_or_else(|| lab.topology.clone(), |file| file.display().to_string());
    let topology = find(&name, &lab.vars)?;
    let adjustable = topology.adjustable(specs.map(|spec| spec.settings.links.as_slice()));
    adjustable.map_err(|error| Failure::usage(format!("{}: {error}", plan.display())))
}

/// The topology of that name, or in that file. A name with a dot or a slash is a file.
///
/// # Errors
/// There is no such topology, or the file has a mistake: its line, column and key.
pub fn find(name: &str, vars: &BTreeMap<String, String>) -> Result<Topology, Failure> {
    if let Some(ready) = READY.iter().find(|ready| ready.name == name) {
        return Ok(read(&format!("topologies/{name}.toml"), ready.text.into(), vars)?);
    }
    if !name.contains(['.', '/']) && !Path::new(name).exists() {
        let names = READY.map(|ready| ready.name);
        return Err(Failure::usage(format!(
            "{}; or give a file, such as ./my.toml",
            unknown(name, &names, "the program")
        )));
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| Failure::usage(format!("cannot read the topology {name}: {error}")))?;
    Ok(read(name, text, vars)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let message = find("satelite", &BTreeMap::new()).unwrap_err().to_string();
        assert!(message.contains("'satellite'") && message.contains("./my.toml"), "{message}");
        assert!(find("./none.toml", &BTreeMap::new()).unwrap_err().to_string().contains("cannot read"));
    }
}
