//! Both hosts side by side, with what differs between them.

use std::collections::BTreeSet;

use maud::{Markup, html};
use model::{Inventory, RunHeader, units};

use crate::facts::{device_facts, host_facts, interface_line, path_facts};

/// One fact of both hosts.
struct Fact {
    group: String,
    name: String,
    near: String,
    far: String,
    /// A difference that is no surprise, such as the host's name, is not marked.
    expected: bool,
}

impl Fact {
    fn differs(&self) -> bool {
        !self.expected && self.near != self.far
    }
}

pub(super) fn side_by_side(header: &RunHeader) -> Markup {
    let facts: Vec<Fact> = facts(header).into_iter().filter(|f| f.near != "-" || f.far != "-").collect();
    let differences = facts.iter().filter(|fact| fact.differs()).count();
    html! {
        @if facts.is_empty() {
            p.muted { "No inventory was recorded." }
        } @else {
            p.muted {
                @match differences {
                    0 => "The two ends are alike in all that was recorded.",
                    1 => "1 difference is marked ≠.",
                    n => { (n) " differences are marked ≠." }
                }
            }
            div.wide { table.hosts {
                thead { tr { th.words { "" } th.words { "near" } th.words { "far" } } }
                tbody {
                    @for (place, fact) in facts.iter().enumerate() {
                        @if place == 0 || facts[place - 1].group != fact.group {
                            tr.group { th colspan="3" scope="rowgroup" { (fact.group) } }
                        }
                        tr.differs[fact.differs()] {
                            th scope="row" { (fact.name) @if fact.differs() { span.unequal title="the two ends differ" { " ≠" } } }
                            td { (fact.near) }
                            td { (fact.far) }
                        }
                    }
                }
            } }
        }
    }
}

fn facts(header: &RunHeader) -> Vec<Fact> {
    let (near, far) = (&header.near, &header.far);
    let mut all = Vec::new();
    let mut add = |group: &str, name: &str, expected: bool, near: Option<String>, far: Option<String>| {
        let text = |value: Option<String>| value.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
        let (group, name) = (group.to_owned(), name.to_owned());
        all.push(Fact { group, name, near: text(near), far: text(far), expected });
    };
    for (near, far) in host_facts(near).into_iter().zip(host_facts(far)) {
        add(near.group, &near.name, near.passing, near.value, far.value);
    }
    let paths = [&header.path_outbound, &header.path_return].map(|path| path.iter().flat_map(path_facts).collect());
    // The two ways are two things: only where a fact should be the same both ways is a difference worth a mark.
    both(&paths, |name, values| {
        let [near, far] = values;
        add("path to the other end", name, name != "path MTU" && name != "ping", near, far);
    });
    if let Some(clocks) = &header.clocks {
        let words = format!(
            "far - near = {} ± {}",
            units::seconds(clocks.offset_ns as f64),
            units::seconds(clocks.error_ns as f64)
        );
        add("path to the other end", "wall clocks", true, Some(words), None);
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
        let passing = ["traffic before", "kernel says", "interrupts", "bus", "neighbour (LLDP)", "lies on", "part of"];
        add("interface towards the other end", name, passing.contains(&name), near, far);
    });
    let keys: BTreeSet<&String> = near.sysctl.keys().chain(far.sysctl.keys()).collect();
    for key in keys {
        let value = |host: &Inventory| host.sysctl.get(key).cloned();
        add("settings", key, false, value(near), value(far));
    }
    // Interfaces of two hosts have no pairing but by their route: they are listed, and left to the reader.
    let listed = |host: &Inventory| {
        let line = |of: &model::Interface| format!("{}: {}", of.name, interface_line(of));
        Some(host.interfaces.iter().map(line).collect::<Vec<_>>().join("\n"))
    };
    add("all interfaces", "interfaces", true, listed(near), listed(far));
    add("could not be read", "could not be read", true, Some(near.missing.join("\n")), Some(far.missing.join("\n")));
    all
}

/// Goes through the names of two lists of facts, in the order of the first, and hands over both values of each.
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
