//! `thru host` as text: one host, or the differences of two.

use std::fmt::Write;

use model::{Difference, Interface, Inventory};

use text::Text;

use crate::lines::{cut, hanging};
use crate::sections::host_facts::{device_facts, host_facts, interface_line};
use crate::{Layout, labels};

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

/// Differences that a screen has, and columns of its narrowest value.
const FEW: usize = 16;
const LEAST: usize = 12;

/// The differences of two hosts called `a` and `b`, one per line. What is known of one of them only, because the other may not read it or
/// has nothing of the kind, is not a difference and stands below. At most a screen of them, with `whole` all, and no value is cut.
#[must_use]
pub fn host_differences(differences: &[Difference], [a, b]: [&str; 2], layout: Layout, whole: bool) -> String {
    let is_known = |one: &&Difference| one.a != UNKNOWN && one.b != UNKNOWN;
    let (both, one_only): (Vec<&Difference>, Vec<&Difference>) = differences.iter().partition(is_known);
    let mut text = String::new();
    if both.is_empty() {
        text += &format!("{a} and {b} do not differ in anything that is known of both.\n");
    } else {
        table(&both, [a, b], layout, whole, &mut text);
    }
    for (known, is_of) in [(a, (|one| one.b == UNKNOWN) as fn(&Difference) -> bool), (b, |one| one.a == UNKNOWN)] {
        let names: Vec<&str> = one_only.iter().filter(|one| is_of(one)).map(|one| one.field.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        text += &format!("\nKnown of {known} only ({})\n", names.len());
        let mut list = String::new();
        hanging(" ", &Text::from(labels::plain(&names.join(", "))), 2, layout, &mut list);
        text += &if whole { list } else { cut(&list, 2, layout.width()) };
    }
    text
}

/// What stands for a value that is not known.
const UNKNOWN: &str = "-";

fn table(differences: &[&Difference], [a, b]: [&str; 2], layout: Layout, whole: bool, text: &mut String) {
    let shown = if whole { differences } else { &differences[..differences.len().min(FEW)] };
    let width = |values: Vec<&str>| values.iter().map(|value| value.chars().count()).max().unwrap_or_default();
    let field = width(shown.iter().map(|one| one.field.as_str()).collect());
    let left = width(shown.iter().map(|one| one.a.as_str()).chain([a]).collect());
    // Half of what the names leave for each host, more if the other needs less.
    let room = layout.width().saturating_sub(field + 4).max(2 * LEAST);
    let right = width(shown.iter().map(|one| one.b.as_str()).chain([b]).collect());
    let left = if whole { left } else { left.min((room / 2).max(room.saturating_sub(right))) };
    let right = if whole { usize::MAX } else { room - left };
    let cut = |value: &str, most: usize| match value.chars().count() {
        count if count > most => value.chars().take(most - 1).chain(['…']).collect(),
        _ => value.to_owned(),
    };
    let _ = writeln!(text, "{:<field$}  {:<left$}  {}", "", cut(a, left), cut(b, right));
    for one in shown {
        let [name, a, b] = [&one.field, &one.a, &one.b].map(|part| labels::plain(part));
        let _ = writeln!(text, "{name:<field$}  {:<left$}  {}", cut(&a, left), cut(&b, right));
    }
    if differences.len() > shown.len() {
        let _ = writeln!(text, "{} more differences: -v", differences.len() - shown.len());
    }
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

    fn one(field: &str, a: &str, b: &str) -> Difference {
        Difference { of: "host".into(), field: field.into(), a: a.into(), b: b.into() }
    }

    #[test]
    fn differences_are_in_columns_and_what_is_unknown_is_none() {
        let found = [one("kernel", "6.1", "6.12"), one("governor", "-", "performance"), one("irqbalance", "true", "-")];
        let text = host_differences(&found, ["this host", "beta"], Layout::default(), false);
        let expected = "        this host  beta\nkernel  6.1        6.12\n\nKnown of this host only (1)\n  irqbalance\n\n\
                        Known of beta only (1)\n  governor\n";
        assert_eq!(text, expected);
        let none = host_differences(&[], ["a", "b"], Layout::default(), false);
        assert_eq!(none, "a and b do not differ in anything that is known of both.\n");
    }

    #[test]
    fn many_differences_fit_a_screen() {
        let long = "4096 131072 6291456 ".repeat(6);
        let found: Vec<Difference> = (0..40).map(|at| one(&format!("sysctl.net.{at}"), &long, "1")).collect();
        let unknown = (0..900).map(|at| one(&format!("interfaces.eth{at}.mtu"), "-", "1500"));
        let all: Vec<Difference> = found.into_iter().chain(unknown).collect();
        let layout = Layout { columns: 80, ..Layout::default() };
        let text = host_differences(&all, ["this host", "beta"], layout, false);
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\n24 more differences: -v\n") && text.contains("Known of beta only (900)\n"), "{text}");
        let whole = host_differences(&all, ["this host", "beta"], layout, true);
        assert!(whole.contains(long.trim_end()) && whole.contains("interfaces.eth899.mtu"), "{whole}");
    }
}
