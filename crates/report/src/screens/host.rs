//! `thru host` as text: one host, or the differences of two.

use std::fmt::Write;

use model::{Difference, Interface, Inventory};

use crate::labels;
use crate::sections::host_facts::{device_facts, host_facts, interface_line};

/// Width of the column of names.
const NAMES: usize = 26;

/// A host as text: its facts by group, its interfaces, its settings, and what could not be read.
///
/// `clock_ns` is the cost of one read of its clock, ns.
#[must_use]
pub fn host(inventory: &Inventory, clock_ns: Option<f64>) -> String {
    let mut text = String::new();
    let mut group = "";
    for fact in host_facts(inventory) {
        if fact.group != group {
            heading(&mut text, fact.group);
            group = fact.group;
        }
        // A fact without a value is left out; the reason is in `missing`, printed last.
        if let Some(value) = fact.value {
            line(&mut text, &fact.name, &value);
        }
    }
    if let Some(cost) = clock_ns {
        line(&mut text, "clock read", &format!("{cost:.0} ns"));
    }
    let citation = inventory.selftest.as_ref().map(crate::citation);
    line(&mut text, "self-test", &citation.map_or_else(|| "none: run thru selftest".into(), |cited| cited.plain()));
    for interface in &inventory.interfaces {
        interface_lines(&mut text, interface);
    }
    heading(&mut text, "settings");
    settings(&mut text, inventory);
    if !inventory.missing.is_empty() {
        heading(&mut text, "not readable");
        inventory.missing.iter().for_each(|what| {
            let _ = writeln!(text, "  {}", labels::plain(what));
        });
    }
    text
}

/// The interfaces and settings of an imported environment.
pub(crate) fn environment(inventory: &Inventory) -> String {
    let mut text = String::new();
    inventory.interfaces.iter().for_each(|interface| interface_lines(&mut text, interface));
    if !inventory.sysctl.is_empty() {
        heading(&mut text, "settings");
        settings(&mut text, inventory);
    }
    text
}

fn settings(text: &mut String, inventory: &Inventory) {
    for (name, value) in &inventory.sysctl {
        let _ = writeln!(text, "  {:<42} {}", labels::plain(name), labels::plain(value));
    }
}

fn interface_lines(text: &mut String, interface: &Interface) {
    heading(text, &format!("interface {}", labels::plain(&interface.name)));
    let known = interface_line(interface);
    if !known.is_empty() {
        let _ = writeln!(text, "  {}", labels::plain(&known));
    }
    for (name, value) in interface.device.iter().flat_map(device_facts) {
        line(text, name, &value);
    }
}

fn heading(text: &mut String, title: &str) {
    let gap = if text.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{gap}{title}");
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {:<NAMES$} {}", labels::plain(name), labels::plain(value));
}

/// The differences of two hosts called `a` and `b`, one per line.
#[must_use]
pub fn host_differences(differences: &[Difference], a: &str, b: &str) -> String {
    if differences.is_empty() {
        return format!("{a} and {b} do not differ in anything recorded.\n");
    }
    let width = |pick: fn(&Difference) -> &String| {
        differences.iter().map(|one| pick(one).chars().count()).max().unwrap_or_default().min(60)
    };
    let (field, left) = (width(|one| &one.field), width(|one| &one.a).max(a.chars().count()));
    let mut text = format!("{:<field$}  {a:<left$}  {b}\n", "");
    for one in differences {
        let [name, a, b] = [&one.field, &one.a, &one.b].map(|part| labels::plain(part));
        let _ = writeln!(text, "{name:<field$}  {a:<left$}  {b}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Device, Processor};

    #[test]
    fn a_host_is_laid_out_by_groups_without_unknown_facts() {
        let device = Device { qdiscs: vec!["root mq".into()], ..Device::default() };
        let inventory = Inventory {
            hostname: Some("beta".into()),
            processor: Some(Processor {
                sockets: Some(2),
                cores_per_socket: Some(8),
                threads_per_core: Some(1),
                ..Processor::default()
            }),
            interfaces: vec![Interface {
                name: "eth0".into(),
                mtu: Some(9_000),
                device: Some(device),
                ..Interface::default()
            }],
            sysctl: [("net.core.rmem_max".to_owned(), "212992".to_owned())].into(),
            missing: vec!["frequency governor: not here".into()],
            ..Inventory::default()
        };
        let text = host(&inventory, Some(21.4));
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let expected = [
            "host",
            "  host name                  beta",
            "processor",
            "  sockets x cores x threads  2 x 8 x 1",
            "kernel",
            "memory and limits",
            "  clock read                 21 ns",
            "  self-test                  none: run thru selftest",
            "interface eth0",
            "  MTU 9000",
            "  qdisc                      root mq",
            "settings",
            "  net.core.rmem_max                          212992",
            "not readable",
            "  frequency governor: not here",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn differences_are_in_columns() {
        let one = |field: &str, a: &str, b: &str| Difference {
            of: "host".into(),
            field: field.into(),
            a: a.into(),
            b: b.into(),
        };
        let text =
            host_differences(&[one("kernel", "6.1", "6.12"), one("governor", "-", "performance")], "this host", "beta");
        assert_eq!(text, "          this host  beta\nkernel    6.1        6.12\ngovernor  -          performance\n");
        assert_eq!(host_differences(&[], "a", "b"), "a and b do not differ in anything recorded.\n");
    }
}
