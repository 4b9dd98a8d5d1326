//! traceroute and Windows' tracert: the hops of a path with their round trips.

use std::net::IpAddr;

use model::{Hop, Path, RunKind};

use super::ImportFormat;
use crate::error::PathError;
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::{lines, ns, number};

/// traceroute.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "traceroute", help: "traceroute's and tracert's hops, as the path", detect, read };

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| head(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

/// The peer of `traceroute to NAME (ADDRESS), 30 hops max, ...`, or of `Tracing route to NAME [ADDRESS]`.
fn head(line: &str) -> Option<&str> {
    let line = line.trim();
    let bracketed = |rest: &'static [char; 2], text| -> Option<&str> {
        let (_, rest_of) = str::split_once(text, rest[0])?;
        Some(rest_of.split_once(rest[1])?.0)
    };
    if let Some(rest) = line.strip_prefix("Tracing route to ") {
        return bracketed(&['[', ']'], rest).or_else(|| rest.split_whitespace().next());
    }
    let rest = line.strip_prefix("traceroute to ").or_else(|| line.strip_prefix("traceroute6 to "))?;
    rest.contains(" hops max").then_some(())?;
    bracketed(&['(', ')'], rest).or_else(|| rest.split([' ', ',']).next())
}

/// `2  192.5.175.129  64.930 ms  64.922 ms  64.883 ms`, or a name with its address in brackets, or `3  * * *`; tracert has the address last.
fn hop(line: &str) -> Option<Hop> {
    let (number, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let mut hop = Hop { hop: number.parse().ok()?, ..Hop::default() };
    answers(rest, &mut hop).then_some(hop)
}

/// Adds the answers in a line without its number. Some systems print each further address of a hop in a line of its own, others all in one.
/// Returns whether there are any, or probes without one.
fn answers(line: &str, hop: &mut Hop) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let times = words.windows(2).filter(|pair| pair[1] == "ms");
    let rtts: Vec<u64> = times.filter_map(|pair| Some(ns(number(pair[0])? / 1e3))).collect();
    let probes = count(&words).unwrap_or(0);
    let below = words.iter().any(|word| word.starts_with('<'));
    let silent = words.iter().all(|word| *word == "*") || words.ends_with(&["Request", "timed", "out."]);
    if probes == 0 || (rtts.is_empty() && !below && !silent) {
        return false;
    }
    let bracketed = || words.iter().filter_map(|word| address_in(word));
    let bare = || words.iter().copied().filter(|word| word.parse::<IpAddr>().is_ok());
    let mut addresses: Vec<&str> = bracketed().collect();
    if addresses.is_empty() {
        addresses = bare().collect();
    }
    if addresses.is_empty() {
        addresses.extend(words.iter().copied().find(|word| *word != "*").filter(|_| !rtts.is_empty() && !below));
    }
    for address in addresses {
        match &hop.address {
            None => hop.address = Some(address.to_owned()),
            Some(known) if known != address && !hop.others.iter().any(|other| other == address) => {
                hop.others.push(address.to_owned());
            }
            Some(_) => {}
        }
    }
    hop.rtts_ns.extend(rtts);
    hop.rtt_ns = hop.rtts_ns.iter().min().copied();
    hop.probes = Some(hop.probes.unwrap_or(0) + probes);
    true
}

/// The address in `(192.0.2.1)`, or Windows' `[192.0.2.1]`; the number of a network is in square brackets, too (-A, -a).
fn address_in(word: &str) -> Option<&str> {
    within(word, '(', ')').or_else(|| within(word, '[', ']').filter(|inner| inner.parse::<IpAddr>().is_ok()))
}

fn within(word: &str, open: char, close: char) -> Option<&str> {
    word.strip_prefix(open)?.strip_suffix(close)
}

/// Probes of a hop: each has a time or a star.
fn count(words: &[&str]) -> Option<u32> {
    u32::try_from(words.iter().filter(|word| ["ms", "*"].contains(*word)).count()).ok()
}

/// The number of a line that has the shape of a hop: after it comes a probe's time or star, an address, or a name with its address.
fn numbered(line: &str) -> Option<u8> {
    let mut words = line.split_whitespace().filter(|word| !word.starts_with("[AS"));
    let (hop, first, second) = (words.next()?.parse().ok()?, words.next()?, words.next());
    let probe = first == "*" || first.starts_with('<') || second == Some("ms");
    let named = first.parse::<IpAddr>().is_ok() || second.is_some_and(|word| within(word, '(', ')').is_some());
    (probe || named).then_some(hop)
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut open: Option<(u32, Path)> = None;
    for (at, line) in lines(text) {
        if let Some(peer) = head(line) {
            close(open.take(), &mut reading);
            open = Some((at, Path { peer: peer.to_owned(), hops: Some(Vec::new()), ..Path::default() }));
        } else if let Some((_, path)) = &mut open {
            let hops = path.hops.get_or_insert_default();
            let next = hops.last().map_or(1, |last| u16::from(last.hop) + 1);
            match (numbered(line), hop(line)) {
                // The first hop may be a later one (-f).
                (Some(number), Some(hop)) if u16::from(number) >= next => {
                    if u16::from(number) > next && !hops.is_empty() {
                        reading.refuse(at, PathError::Gap { hop: number, before: next - 1 });
                    }
                    hops.push(hop);
                }
                (Some(_), Some(_)) => {
                    reading.refuse_text(at, line, PathError::OutOfOrder(next - 1));
                }
                (Some(_), None) => reading.refuse_text(at, line, PathError::NotAHop),
                (None, _) => {
                    if let Some(last) = hops.last_mut().filter(|_| line.starts_with(char::is_whitespace)) {
                        answers(line, last);
                    }
                }
            }
        }
    }
    close(open, &mut reading);
    reading
}

fn close(open: Option<(u32, Path)>, reading: &mut TextReading) {
    let Some((line, path)) = open else { return };
    if path.hops.as_ref().is_none_or(Vec::is_empty) {
        reading.refuse(line, PathError::NoHop("traceroute"));
        return;
    }
    let target = Some(path.peer.clone());
    let notes = path.hops.iter().flatten().map(|hop| match (&hop.address, hop.rtt_ns) {
        (Some(address), Some(rtt)) => {
            let all = std::iter::once(address).chain(&hop.others).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("hop {}: {all}, {:.3} ms", hop.hop, rtt as f64 / 1e6)
        }
        (Some(address), None) => format!("hop {}: {address}, below 1 ms", hop.hop),
        _ => format!("hop {}: no reply", hop.hop),
    });
    reading.imported.push(Imported {
        tool: "traceroute".into(),
        kind: RunKind::Path,
        target,
        notes: notes.collect(),
        path: Some(path),
        ..Imported::default()
    });
}
