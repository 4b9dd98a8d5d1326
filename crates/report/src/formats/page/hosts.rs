//! Both hosts side by side, with their differences marked, and what differs between several runs.

use std::collections::BTreeSet;

use model::{Inventory, Run, RunHeader, units};
use serde::Serialize;

use super::tables::Table;
use crate::labels;
use crate::sections::host_facts::{device_facts, host_facts, interface_line, path_facts};

/// One fact of both hosts.
#[derive(Debug, Serialize)]
pub struct Fact {
    group: String,
    name: String,
    near: String,
    far: String,
    /// Whether the ends differ where equal hosts would not.
    differs: bool,
    /// An expected difference, such as the host's name, is not marked.
    #[serde(skip)]
    expected: bool,
}

/// The facts that at least one of two hosts has, without a run between them.
#[must_use]
pub fn facts_of(near: &Inventory, far: &Inventory) -> Vec<Fact> {
    side_by_side(&RunHeader { near: near.clone(), far: far.clone(), ..RunHeader::default() })
}

/// The facts that at least one end has.
pub(super) fn side_by_side(header: &RunHeader) -> Vec<Fact> {
    let mut facts = facts(header);
    facts.retain(|fact| fact.near != "-" || fact.far != "-");
    facts
}

/// The facts of both ends: group, name, both values, and `yes` where they differ and equal hosts would not.
#[cfg(feature = "xlsx")]
pub(in crate::formats) fn environment(header: &RunHeader) -> impl Iterator<Item = [String; 5]> {
    side_by_side(header).into_iter().map(|fact| {
        let differs = if fact.differs { "yes" } else { "" };
        [fact.group, fact.name, fact.near, fact.far, differs.to_owned()]
    })
}

/// What differs between the environments of several runs: the head, and the rows; `None` for one run.
#[cfg(feature = "xlsx")]
pub(in crate::formats) fn differences(runs: &[Run]) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    between(runs).map(Table::into_rows)
}

/// The value of one end.
type End = fn(&Fact) -> &String;

/// What differs between the environments of several runs, a column for each; `None` for one run.
pub(super) fn between(runs: &[Run]) -> Option<Table> {
    if runs.len() < 2 {
        return None;
    }
    let all: Vec<Vec<Fact>> = runs.iter().map(|run| facts(&run.header)).collect();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut rows = Vec::new();
    for fact in all.iter().flatten().filter(|fact| !fact.expected) {
        if !seen.insert((&fact.group, &fact.name)) {
            continue;
        }
        let find = |facts: &Vec<Fact>, end: End| {
            let found = facts.iter().find(|other| other.group == fact.group && other.name == fact.name);
            found.map_or("-".to_owned(), |found| end(found).clone())
        };
        let ends: [(&str, End); 2] = [("near", |fact| &fact.near), ("far", |fact| &fact.far)];
        for (end, of) in ends {
            let values: Vec<String> = all.iter().map(|facts| find(facts, of)).collect();
            if values.iter().any(|value| *value != values[0]) {
                rows.push(std::iter::once(format!("{end}: {}", fact.name)).chain(values).collect());
            }
        }
    }
    let head =
        std::iter::once(String::new()).chain(runs.iter().map(|run| labels::plain(&labels::title(run)))).collect();
    Some(Table::words("What differs between the runs", head, rows))
}

fn facts(header: &RunHeader) -> Vec<Fact> {
    let (near, far) = (&header.near, &header.far);
    let mut all = Vec::new();
    let mut add = |group: &str, name: &str, expected: bool, near: Option<String>, far: Option<String>| {
        let text = |value: Option<String>| value.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
        let (group, name) = (group.to_owned(), name.to_owned());
        let (near, far) = (text(near), text(far));
        let differs = !expected && near != far;
        all.push(Fact { group, name, near, far, differs, expected });
    };
    for (near, far) in host_facts(near).into_iter().zip(host_facts(far)) {
        add(near.group, &near.name, near.expected_to_differ, near.value, far.value);
    }
    let paths = [&header.path_outbound, &header.path_return].map(|path| path.iter().flat_map(path_facts).collect());
    // Only facts that should agree in both directions are marked when they differ.
    both(&paths, |name, values| {
        let [near, far] = values;
        add("path to the other end", name, name != "path MTU" && name != "ping", near, far);
    });
    if let Some(clocks) = &header.clocks {
        let offset = format!(
            "far - near = {} ± {}",
            units::seconds(clocks.offset_ns as f64),
            units::seconds(clocks.error_ns as f64)
        );
        add("path to the other end", "wall clocks", true, Some(offset), None);
    }
    let ends = [(near, &header.path_outbound), (far, &header.path_return)];
    let used = ends.map(|(host, path)| {
        let name = path.as_ref()?.route.as_ref()?.interface.as_deref()?;
        host.interfaces.iter().find(|interface| interface.name == name)
    });
    let [near_line, far_line] =
        used.map(|interface| interface.map(|of| format!("{}: {}", of.name, interface_line(of))));
    add("interface towards the other end", "interface", true, near_line, far_line);
    let devices = used.map(|interface| interface.and_then(|of| of.device.as_ref()).map_or(Vec::new(), device_facts));
    both(&devices, |name, [near, far]| {
        let expected = [
            "traffic before the run",
            "kernel message",
            "interrupts",
            "bus",
            "neighbour (LLDP)",
            "lower devices",
            "member of",
        ];
        add("interface towards the other end", name, expected.contains(&name), near, far);
    });
    let keys: BTreeSet<&String> = near.sysctl.keys().chain(far.sysctl.keys()).collect();
    for key in keys {
        let value = |host: &Inventory| host.sysctl.get(key).cloned();
        add("settings", key, false, value(near), value(far));
    }
    // Interfaces of two hosts can be paired only by the route, so all others are only listed.
    let listed = |host: &Inventory| {
        let line = |of: &model::Interface| format!("{}: {}", of.name, interface_line(of));
        Some(host.interfaces.iter().map(line).collect::<Vec<_>>().join("\n"))
    };
    add("all interfaces", "interfaces", true, listed(near), listed(far));
    add("not readable", "not readable", true, Some(near.missing.join("\n")), Some(far.missing.join("\n")));
    all
}

/// Calls `take` with each name of two lists of facts, in the order of the first, and with both values.
fn both(lists: &[Vec<(&'static str, String)>; 2], mut take: impl FnMut(&'static str, [Option<String>; 2])) {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in lists.iter().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for name in names {
        let value = |list: &Vec<(&str, String)>| list.iter().find(|fact| fact.0 == name).map(|fact| fact.1.clone());
        take(name, [value(&lists[0]), value(&lists[1])]);
    }
}
