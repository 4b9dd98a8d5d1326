//! The state of a fleet's hosts as a table.

use model::{HostCheck, MachineUser, units};

use crate::grid::Grid;
use crate::sections::one_way::signed;
use crate::{Layout, labels};

/// Hosts with the same remark that are named.
const MOST_NAMES: usize = 8;

/// What a look at the hosts of a fleet found: the answer, the table, and what to know of each host.
#[must_use]
pub fn fleet_check(checks: &[HostCheck], layout: Layout) -> String {
    let lost: Vec<&HostCheck> = checks.iter().filter(|check| check.error.is_some()).collect();
    let busy = checks.iter().filter(|check| check.users.as_ref().is_some_and(|users| !users.is_empty())).count();
    let mut text = match lost.as_slice() {
        [] if checks.len() == 1 => "1 host can measure".to_owned(),
        [] => format!("All {} hosts can measure", checks.len()),
        [one] => {
            format!("{} of {} hosts can measure, not {}", checks.len() - 1, checks.len(), labels::plain(&one.name))
        }
        many => format!("{} of {} hosts can measure", checks.len() - many.len(), checks.len()),
    };
    text += &match busy {
        0 => ".\n".to_owned(),
        1 => "; 1 is in use.\n".to_owned(),
        busy => format!("; {busy} are in use.\n"),
    };
    let head = ["host", "agent", "thru", "RTT", "clock", "interface", "MTU", "speed", "cores", "load", "in use by"];
    let rows: Vec<Vec<String>> = checks.iter().filter(|check| check.error.is_none()).map(row).collect();
    if !rows.is_empty() {
        let numeric = ["RTT", "clock", "MTU", "speed", "cores", "load"];
        let numeric: Vec<bool> = head.iter().map(|name| numeric.contains(name)).collect();
        let head = head.map(str::to_owned);
        let table = Grid { head: &head, rows: &rows, numeric: &numeric, names: 1 };
        text += &format!("\n{}\n", table.text(layout.columns));
    }
    let errors = lost.iter().filter_map(|check| Some((check, check.error.as_ref()?)));
    let errors: Vec<String> = errors.map(|(check, error)| format!("{}: {}", check.name, layout.shown(error))).collect();
    for (title, lines) in [("Not reached", errors), ("Remarks", remarks(checks))] {
        if !lines.is_empty() {
            text += &format!("\n{title}\n");
            text.extend(lines.iter().map(|line| format!("  {}\n", labels::plain(line))));
        }
    }
    text
}

/// Each remark once, with its hosts, in the order of the hosts.
fn remarks(checks: &[HostCheck]) -> Vec<String> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for check in checks {
        for remark in &check.remarks {
            match found.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, hosts)) => hosts.push(&check.name),
                None => found.push((remark, vec![&check.name])),
            }
        }
    }
    let line = |(remark, hosts): (&str, Vec<&str>)| {
        let more = hosts.len().saturating_sub(MOST_NAMES);
        let named = hosts[..hosts.len().min(MOST_NAMES)].join(", ");
        match more {
            _ if hosts.len() > 1 && hosts.len() == checks.len() => format!("all hosts: {remark}"),
            0 => format!("{named}: {remark}"),
            more => format!("{named} and {more} more: {remark}"),
        }
    };
    found.into_iter().map(line).collect()
}

fn row(check: &HostCheck) -> Vec<String> {
    let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    let clock = check.clock_offset_ns.zip(check.clock_error_ns);
    vec![
        labels::plain(&check.name),
        labels::plain(&check.control),
        labels::plain(check.version.as_deref().unwrap_or_default()),
        check.rtt_ns.map_or_else(String::new, |ns| units::seconds(ns as f64)),
        clock.map_or_else(String::new, |(offset, error)| {
            format!("{} ±{}", signed(offset).plain(), units::seconds(error as f64))
        }),
        labels::plain(check.interface.as_deref().unwrap_or_default()),
        number(check.mtu),
        check.speed_mbps.map_or_else(String::new, |speed| units::bits_per_second(f64::from(speed) * 1e6)),
        number(check.cores),
        check.load.map_or_else(String::new, |load| format!("{load:.1}")),
        in_use(check),
    ]
}

/// Who measures there: what, from where and for how long.
fn in_use(check: &HostCheck) -> String {
    let user = |user: &MachineUser| {
        let from = user.source.as_ref().map_or_else(String::new, |source| format!(" from {source}"));
        format!("{}{from}, {}", user.purpose, units::seconds(user.for_ns as f64))
    };
    let Some(users) = &check.users else { return "not told".to_owned() };
    let mut all: Vec<String> = users.iter().map(user).collect();
    if let Some(waiting) = check.waiting.filter(|waiting| *waiting > 0) {
        all.push(format!("{waiting} waiting"));
    }
    if all.is_empty() { "-".to_owned() } else { labels::plain(&all.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide() -> Layout {
        Layout { columns: 160, ..Layout::default() }
    }

    #[test]
    fn the_answer_comes_first_and_each_error_names_its_host() {
        let host = |name: &str| HostCheck {
            name: name.into(),
            control: format!("{name}:6280"),
            version: Some("1.0".into()),
            rtt_ns: Some(200_000),
            clock_offset_ns: Some(-1_500_000),
            clock_error_ns: Some(100_000),
            interface: Some("eth0".into()),
            mtu: Some(9000),
            speed_mbps: Some(10_000),
            cores: Some(8),
            load: Some(0.25),
            users: Some(Vec::new()),
            waiting: Some(0),
            ..HostCheck::default()
        };
        assert!(fleet_check(&[host("a")], wide()).starts_with("1 host can measure.\n"));
        assert!(fleet_check(&[host("a"), host("b")], wide()).starts_with("All 2 hosts can measure.\n"));
        let user = MachineUser { purpose: "stream".into(), source: Some("192.0.2.1".into()), for_ns: 2_000_000_000 };
        let used =
            HostCheck { users: Some(vec![user]), waiting: Some(2), remarks: vec!["MTU 1500".into()], ..host("b") };
        let lost = HostCheck { error: Some("connection refused".into()), ..host("c") };
        let text = fleet_check(&[host("a"), used, lost], wide());
        assert!(text.starts_with("2 of 3 hosts can measure, not c; 1 is in use.\n"), "{text}");
        for part in [
            "-1.50 ms ±100 µs",
            "10.0 Gbit/s",
            "stream from 192.0.2.1, 2.00 s; 2 waiting",
            "\nNot reached\n  c: connection refused\n",
            "\nRemarks\n  b: MTU 1500\n",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("c:6280"), "{text}");
    }

    #[test]
    fn a_remark_on_many_hosts_is_one_line() {
        let host = |number: usize, remark: &str| HostCheck {
            name: format!("n{number}"),
            remarks: vec![remark.into()],
            ..HostCheck::default()
        };
        let mut checks: Vec<HostCheck> = (0..10).map(|number| host(number, "load 8.6 on 2 cores")).collect();
        assert!(fleet_check(&checks, wide()).ends_with("\nRemarks\n  all hosts: load 8.6 on 2 cores\n"));
        checks.push(host(10, "MTU 1500"));
        let text = fleet_check(&checks, wide());
        let expected = "  n0, n1, n2, n3, n4, n5, n6, n7 and 2 more: load 8.6 on 2 cores\n  n10: MTU 1500\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
