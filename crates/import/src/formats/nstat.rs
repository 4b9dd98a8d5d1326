//! nstat of iproute2: increases of the kernel's counters, as text or JSON.
//!
//! The text is `#kernel` and a line for each counter: its name, the increase since nstat's last use (with `-a` the counter itself, since
//! the host started) and a rate that only nstat's daemon computes. Counters that did not change are left out. nstat joins the name of
//! a group and of its counter (`Tcp` and `RetransSegs`).

use std::collections::BTreeMap;

use model::{EndPass, Observed, Pass, RunKind};
use serde_json::Value;

use super::ImportFormat;
use crate::error::{HostError, ImportError};
use crate::json::{Shape, documents, may_have_documents};
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::lines;

/// nstat.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "nstat", help: "nstat as text (also -a, -z) or JSON: the near host's counters", detect, read };

/// Groups of /proc/net/netstat and /proc/net/snmp with their source, longer names first. Names in /proc/net/snmp6 have no groups.
const GROUPS: [(&str, &str); 9] = [
    ("MPTcpExt", "netstat"),
    ("TcpExt", "netstat"),
    ("IpExt", "netstat"),
    ("IcmpMsg", "snmp"),
    ("UdpLite", "snmp"),
    ("Icmp", "snmp"),
    ("Tcp", "snmp"),
    ("Udp", "snmp"),
    ("Ip", "snmp"),
];
/// The beginnings of names in /proc/net/snmp6.
const IPV6: [&str; 4] = ["Ip6", "Icmp6", "Udp6", "UdpLite6"];
/// Most counters of a listing.
const MOST: usize = 10_000;

/// The name of a counter as this program's observers have it: `TcpRetransSegs` is `snmp.Tcp.RetransSegs`.
fn counter(name: &str) -> Option<String> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    if IPV6.iter().any(|group| name.starts_with(group)) {
        return Some(format!("snmp6.{name}"));
    }
    GROUPS.iter().find_map(|(group, source)| {
        let own = name.strip_prefix(group).filter(|own| !own.is_empty())?;
        Some(format!("{source}.{group}.{own}"))
    })
}

/// `#kernel`, or `#12345.678 sampling_interval=5 time_const=60` of its daemon.
fn is_head(line: &str) -> bool {
    line.trim_end() == "#kernel" || (line.starts_with('#') && line.contains("sampling_interval="))
}

/// A line `TcpRetransSegs    1    0.0`.
fn entry(line: &str) -> Result<(String, i64), ImportError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, increase, rate] = words.as_slice() else {
        return Err(ImportError::Columns { found: words.len(), expected: 3 });
    };
    let counter = counter(name).ok_or_else(|| HostError::Counter((*name).to_owned()))?;
    let increase = increase.parse().map_err(|_| ImportError::word(*increase, "an integer"))?;
    rate.parse::<f64>().map_err(|_| ImportError::word(*rate, "a rate"))?;
    Ok((counter, increase))
}

/// The documents of nstat.
const SHAPE: Shape = Shape::of(|document| document["kernel"].is_object());

fn detect(text: &str) -> Certainty {
    if is_json(text) && documents(text, SHAPE).next().is_some() {
        return Certainty::Certain;
    }
    let mut after = lines(text).skip_while(|(_, line)| !is_head(line)).skip(1);
    let first = after.next();
    // A host without any traffic since the last use prints the head alone.
    let alone = text.trim() == "#kernel";
    if alone || first.is_some_and(|(_, line)| entry(line).is_ok()) { Certainty::Certain } else { Certainty::No }
}

fn is_json(text: &str) -> bool {
    may_have_documents(text) && text.contains("\"kernel\"")
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    if is_json(text) {
        for (line, found) in documents(text, SHAPE) {
            match found {
                Ok(document) => {
                    document["kernel"].as_object().into_iter().for_each(|all| of_document(all, line, &mut reading));
                }
                Err(refused) => reading.refused.push(refused),
            }
        }
        return reading;
    }
    let mut open: Option<Counters> = None;
    let mut after_gap = false;
    for (at, line) in lines(text) {
        if is_head(line) {
            reading.imported.extend(open.take().map(imported));
            (open, after_gap) = (Some(Counters::new()), false);
            continue;
        }
        let Some(counters) = &mut open else { continue };
        if line.trim().is_empty() {
            after_gap = true;
            continue;
        }
        match entry(line) {
            // Other lines after an empty one are of something else.
            Err(_) if after_gap => reading.imported.extend(open.take().map(imported)),
            Ok(_) if counters.len() >= MOST => {
                reading.refuse(at, ImportError::TooMany { most: MOST, what: "counters" });
                break;
            }
            Ok((name, value)) => add(counters, name, value).unwrap_or_else(|reason| reading.refuse(at, reason)),
            // A word that stands alone belongs to what follows in the text.
            Err(_) if !line.contains(char::is_whitespace) && counter(line.trim()).is_none() => {
                reading.imported.extend(open.take().map(imported));
            }
            Err(reason) => reading.refuse_text(at, line, reason),
        }
    }
    reading.imported.extend(open.map(imported));
    reading
}

type Counters = BTreeMap<String, i64>;

fn add(counters: &mut Counters, name: String, value: i64) -> Result<(), HostError> {
    match counters.get(&name) {
        Some(own) if *own != value => Err(HostError::TwoCounts { name, above: *own, here: value }),
        _ => {
            counters.insert(name, value);
            Ok(())
        }
    }
}

fn of_document(all: &serde_json::Map<String, Value>, line: u32, reading: &mut TextReading) {
    let mut counters = Counters::new();
    if all.len() > MOST {
        reading.refuse(line, ImportError::TooMany { most: MOST, what: "counters" });
    }
    for (name, value) in all.iter().take(MOST) {
        match (counter(name), value.as_i64()) {
            (Some(name), Some(value)) => {
                counters.insert(name, value);
            }
            (None, _) => reading.refuse(line, HostError::Counter(name.clone())),
            (_, None) => {
                reading.refuse(line, HostError::Count { name: name.clone(), value: value.to_string() });
            }
        }
    }
    reading.imported.push(imported(counters));
}

/// A listing; counters that did not change are not kept, as in this program's own readings.
fn imported(mut counters: Counters) -> Imported {
    counters.retain(|_, value| *value != 0);
    let changed = counters.len();
    let sources = ["snmp", "snmp6", "netstat"].map(str::to_owned).to_vec();
    let observed = Observed { sources, counters, ..Observed::default() };
    let near = EndPass { observed: Some(observed), ..EndPass::default() };
    let noun = if changed == 1 { "counter" } else { "counters" };
    Imported {
        tool: "nstat".into(),
        kind: RunKind::Environment,
        passes: vec![Pass { near, ..Pass::default() }],
        notes: vec![format!(
            "{changed} {noun} changed since the last nstat, or with -a since the host started; the text does not say how long ago"
        )],
        ..Imported::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_of_the_kernels_files() {
        let names = ["TcpRetransSegs", "TcpExtTCPTimeouts", "IpExtInOctets", "Ip6InReceives", "UdpLite6InErrors"];
        let own = [
            "snmp.Tcp.RetransSegs",
            "netstat.TcpExt.TCPTimeouts",
            "netstat.IpExt.InOctets",
            "snmp6.Ip6InReceives",
            "snmp6.UdpLite6InErrors",
        ];
        assert_eq!(names.map(counter), own.map(|name| Some(name.to_owned())));
        assert_eq!(["Tcp", "SctpCurrEstab", "Tcp-x"].map(counter), [const { None }; 3]);
    }
}
