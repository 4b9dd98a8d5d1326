//! `ifconfig`, as net-tools 1.60 and 2.x print it: addresses, MTU, queue length and counters of interfaces.

use model::Interface;

use super::ImportFormat;
use super::interface_list::{Interfaces, prefix_length};
use crate::listing::{Certainty, TextReading};
use crate::text::lines;

/// Interfaces by ifconfig.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "ifconfig", help: "ifconfig: the near host's interfaces with their counters", detect, read };

/// The name of the interface whose block begins with this line.
fn begins(line: &str) -> Option<&str> {
    let name = line.split_whitespace().next().filter(|_| !line.starts_with(char::is_whitespace))?;
    if line.contains("Link encap:") {
        return Some(name);
    }
    (line.contains("flags=") && line.contains("mtu ")).then(|| name.trim_end_matches(':'))
}

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| begins(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

fn read(text: &str) -> TextReading {
    let mut found = Interfaces::default();
    let mut name: Option<String> = None;
    for (_, line) in lines(text) {
        if let Some(own) = begins(line) {
            found.begin(own);
            name = Some(own.to_owned());
        } else if line.trim().is_empty() || !line.starts_with(char::is_whitespace) {
            name = None;
        }
        if let Some(name) = &name {
            fact(found.of(name), line);
        }
    }
    found.reading("ifconfig")
}

/// The facts of one line of an interface's block.
fn fact(interface: &mut Interface, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    // `MTU:1500` of the older form, `mtu 1500` of the newer.
    let labelled = |label: &str| words.iter().find_map(|word| word.strip_prefix(label));
    let after = |label: &str| words.iter().position(|word| *word == label).and_then(|at| words.get(at + 1)).copied();
    if let Some(mtu) = labelled("MTU:").or_else(|| after("mtu")).and_then(|mtu| mtu.parse().ok()) {
        interface.mtu = Some(mtu);
    }
    if let Some(length) = labelled("txqueuelen:").or_else(|| after("txqueuelen")).and_then(|length| length.parse().ok())
    {
        interface.txqueuelen = Some(length);
    }
    let device = interface.device.get_or_insert_default();
    if let Some(mac) = after("HWaddr").or_else(|| after("ether")) {
        device.mac = Some(mac.to_lowercase());
    }
    let flags =
        match words.iter().find_map(|word| word.split_once('<').filter(|(before, _)| before.starts_with("flags="))) {
            Some((_, list)) => list.trim_end_matches('>').split(',').map(str::to_lowercase).collect(),
            // Of the older form the flags are the words before the MTU.
            None if labelled("MTU:").is_some() => {
                words.iter().take_while(|word| !word.contains(':')).map(|word| word.to_lowercase()).collect()
            }
            None => Vec::new(),
        };
    if !flags.is_empty() {
        device.flags = flags;
    }
    counters(&words, device);
    if device.flags.iter().any(|flag| flag == "up") {
        interface.state =
            Some(if device.flags.iter().any(|flag| flag == "running") { "up" } else { "down" }.to_owned());
    }
    addresses(&words, interface);
}

/// `RX packets:12 errors:0 ...` of the older form, `RX packets 12  bytes 960 (960.0 B)` and `RX errors 0  dropped 0` of the newer.
fn counters(words: &[&str], device: &mut model::Device) {
    let mut way = "";
    for (at, word) in words.iter().enumerate() {
        match *word {
            "RX" => way = "rx_",
            "TX" => way = "tx_",
            _ => {}
        }
        let (label, count) = match word.split_once(':') {
            Some((label, count)) => (label, Some(count)),
            None => (*word, words.get(at + 1).copied()),
        };
        // Net-tools takes them from /proc/net/dev, whose `fifo` it calls overruns.
        let key = match label {
            "collisions" => label.to_owned(),
            _ if way.is_empty() => continue,
            "packets" | "errors" | "dropped" | "bytes" => format!("{way}{label}"),
            "overruns" => format!("{way}fifo_errors"),
            "frame" | "carrier" => format!("{way}{label}_errors"),
            _ => continue,
        };
        if let Some(count) = count.and_then(|count| count.parse().ok()) {
            device.totals.insert(key, count);
        }
    }
}

fn addresses(words: &[&str], interface: &mut Interface) {
    let Some(at) = words.iter().position(|word| ["inet", "inet6"].contains(word)) else { return };
    let rest = &words[at + 1..];
    let address = match rest {
        ["addr:", address, ..] => Some(*address),
        [first, ..] => Some(first.trim_start_matches("addr:")),
        [] => None,
    };
    let after = |label: &str| rest.iter().position(|word| *word == label).and_then(|at| rest.get(at + 1)).copied();
    let mask = rest.iter().find_map(|word| word.strip_prefix("Mask:")).or_else(|| after("netmask"));
    let length = mask.and_then(prefix_length).or_else(|| after("prefixlen").and_then(|length| length.parse().ok()));
    if let Some(address) = address {
        interface.addresses.push(match length {
            Some(length) if !address.contains('/') => format!("{address}/{length}"),
            _ => address.to_owned(),
        });
    }
}
