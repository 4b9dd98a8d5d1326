//! `netstat -i` and `netstat -ina`: the kernel's table of interfaces.

use super::ImportFormat;
use super::interface_list::Interfaces;
use crate::error::ImportError;
use crate::listing::{Certainty, TextReading};
use crate::text::lines;

/// Interfaces by netstat.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "netstat",
    help: "netstat -i, -ina: the near host's interfaces with their counters",
    detect,
    read,
};

/// Heads of the columns with a counter, and the kernel's names.
const COUNTERS: [(&str, &str); 8] = [
    ("RX-OK", "rx_packets"),
    ("RX-ERR", "rx_errors"),
    ("RX-DRP", "rx_dropped"),
    ("RX-OVR", "rx_fifo_errors"),
    ("TX-OK", "tx_packets"),
    ("TX-ERR", "tx_errors"),
    ("TX-DRP", "tx_dropped"),
    ("TX-OVR", "tx_fifo_errors"),
];

/// The heads of a table.
fn heads(line: &str) -> Option<Vec<&str>> {
    let heads: Vec<&str> = line.split_whitespace().collect();
    (heads.first() == Some(&"Iface") && heads.contains(&"RX-OK")).then_some(heads)
}

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| heads(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

fn read(text: &str) -> TextReading {
    let mut found = Interfaces::default();
    let mut refused = Vec::new();
    let mut table: Option<Vec<&str>> = None;
    for (number, line) in lines(text) {
        if let Some(heads) = heads(line) {
            table = Some(heads);
            continue;
        }
        let Some(heads) = &table else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        // An alias has no counters of its own.
        if line.contains("no statistics available") {
            if let [name, mtu, ..] = words.as_slice() {
                found.begin(name).mtu = mtu.parse().ok();
            }
            continue;
        }
        // The last column, the flags, may be empty.
        if words.len() + 1 < heads.len()
            || words.len() > heads.len()
            || words.get(1).is_none_or(|mtu| mtu.parse::<u32>().is_err())
        {
            if !words.is_empty() && words.len() > 2 && words.get(1).is_some_and(|mtu| mtu.parse::<u32>().is_ok()) {
                let (found, expected) = (words.len(), heads.len());
                refused.push((number, ImportError::Row { found, what: "columns", expected }));
            }
            table = None;
            continue;
        }
        let interface = found.begin(words[0]);
        interface.mtu = words[1].parse().ok();
        let device = interface.device.get_or_insert_default();
        for (head, word) in heads.iter().zip(&words) {
            let key = COUNTERS.iter().find(|(name, _)| name == head).map(|(_, key)| *key);
            if let Some((key, count)) = key.zip(word.parse().ok()) {
                device.totals.insert(key.to_owned(), count);
            }
        }
        if heads.last() == Some(&"Flg") {
            device.flags = words.get(heads.len() - 1).map_or("", |flags| flags).chars().filter_map(flag).collect();
        }
    }
    let mut reading = found.reading("netstat");
    refused.into_iter().for_each(|(line, reason)| reading.refuse(line, reason));
    reading
}

/// A flag's letter (netstat(8)) by its name in linux/if.h.
fn flag(letter: char) -> Option<String> {
    let name = match letter {
        'B' => "broadcast",
        'L' => "loopback",
        'M' => "multicast",
        'O' => "noarp",
        'P' => "promisc",
        'R' => "running",
        'U' => "up",
        _ => return None,
    };
    Some(name.to_owned())
}
