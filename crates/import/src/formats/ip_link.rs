//! `ip link`, `ip -s link` and `ip addr`, as iproute2 prints them.

use model::Interface;

use super::ImportFormat;
use super::interface_list::Interfaces;
use crate::listing::{Certainty, TextReading};
use crate::text::lines;

/// Interfaces by ip.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "ip-link",
    help: "ip -s link, ip addr: the near host's interfaces with their counters",
    detect,
    read,
};

/// The interface whose block begins with this line: `2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq state UP qlen 1000`.
fn begins(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(": ")?;
    number.parse::<u32>().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    // `eth0@if7` is one end of a pair.
    Some((name.split('@').next().unwrap_or(name), rest)).filter(|_| rest.contains(" mtu "))
}

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| begins(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

fn read(text: &str) -> TextReading {
    let mut found = Interfaces::default();
    let mut name: Option<&str> = None;
    // The direction and the heads of the line of counters that follows.
    let mut heads: Option<(&str, Vec<&str>)> = None;
    for (_, line) in lines(text) {
        if let Some((own, rest)) = begins(line) {
            name = Some(own);
            first(found.begin(own), rest);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(own) = name.filter(|_| line.starts_with(char::is_whitespace) && !words.is_empty()) else {
            (name, heads) = (None, None);
            continue;
        };
        let interface = found.of(own);
        if let Some((way, titles)) = heads.take() {
            let device = interface.device.get_or_insert_default();
            for (title, count) in titles.iter().zip(&words) {
                device.totals.extend(count.parse().ok().map(|count| (counter(way, title), count)));
            }
            continue;
        }
        match words.as_slice() {
            ["RX:", titles @ ..] if !titles.contains(&"errors:") => heads = Some(("rx", titles.to_vec())),
            ["TX:", titles @ ..] if !titles.contains(&"errors:") => heads = Some(("tx", titles.to_vec())),
            [kind, mac, ..] if kind.starts_with("link/") && mac.contains(':') => {
                interface.device.get_or_insert_default().mac = Some((*mac).to_owned());
            }
            ["inet" | "inet6", address, ..] => interface.addresses.push((*address).to_owned()),
            _ => {}
        }
    }
    found.reading("ip")
}

/// The kernel's name of a counter.
fn counter(way: &str, title: &str) -> String {
    match title.trim_end_matches(':') {
        "mcast" => "multicast".to_owned(),
        "collsns" => "collisions".to_owned(),
        "missed" => format!("{way}_missed_errors"),
        "overrun" => format!("{way}_over_errors"),
        "carrier" => format!("{way}_carrier_errors"),
        other => format!("{way}_{other}"),
    }
}

fn first(interface: &mut Interface, rest: &str) {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let after = |label: &str| words.iter().position(|word| *word == label).and_then(|at| words.get(at + 1)).copied();
    interface.mtu = after("mtu").and_then(|mtu| mtu.parse().ok());
    interface.txqueuelen = after("qlen").and_then(|length| length.parse().ok());
    interface.state = after("state").map(str::to_lowercase);
    let device = interface.device.get_or_insert_default();
    device.flags =
        words.first().map_or("", |flags| flags.trim_end_matches('>')).split(',').map(str::to_lowercase).collect();
    device.qdiscs = after("qdisc").map(|qdisc| format!("root {qdisc}")).into_iter().collect();
}
