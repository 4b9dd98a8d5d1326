//! The output of netperf's omni tests: KEY=VALUE lines (-k), names and values separated by commas (-o), or columns (-O).

use std::collections::BTreeMap;

use model::{Count, Pattern, RunKind, Stop};

use super::{Title, unit};
use crate::error::{ImportError, NetperfResultError};
use crate::listing::{Imported, Row, TextReading, unless_reported};
use crate::text::{block, ns, number, resolution};

/// Keys of omni output that are imported.
const KEYS: [&str; 9] = [
    "THROUGHPUT",
    "TRANSACTION_RATE",
    "THROUGHPUT_UNITS",
    "ELAPSED_TIME",
    "LOCAL_SEND_SIZE",
    "REQUEST_SIZE",
    "RESPONSE_SIZE",
    "PROTOCOL",
    "DIRECTION",
];

/// Lines of a head and its values: more belong to something else.
const MOST_LINES: usize = 8;

/// What a test prints after its title.
pub(super) struct Omni<'a> {
    line: u32,
    title: Title,
    keys: BTreeMap<String, String>,
    /// Lines that are not KEY=VALUE.
    others: Vec<&'a str>,
}

/// `THROUGHPUT=9415.51`.
pub(super) fn is_key_value(line: &str) -> bool {
    line.trim().split_once('=').is_some_and(|(key, _)| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// The head and its values: up to the first line below it of which half are numbers. What follows is of something else.
fn with_values<'l, 'a>(lines: &'l [&'a str]) -> &'l [&'a str] {
    let are_values = |line: &&str| {
        let cells: Vec<&str> =
            if line.contains(',') { line.split(',').collect() } else { line.split_whitespace().collect() };
        cells.iter().filter(|cell| number(cell.trim()).is_some()).count() * 2 >= cells.len()
    };
    let values = lines.iter().skip(1).position(are_values);
    values.map_or(lines, |at| &lines[..at + 2])
}

/// Names and values of a head and the line below it, between commas or in columns.
fn by_columns(lines: &[&str]) -> Vec<(String, String)> {
    let [head @ .., values] = lines else { return Vec::new() };
    if let [.., names] = head
        && names.contains(',')
    {
        return names.split(',').zip(values.split(',')).map(|(name, value)| (key(name), value.trim().into())).collect();
    }
    // A column is where some line has text.
    let lines: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let used = |at: usize| lines.iter().any(|line| line.get(at).is_some_and(|c| !c.is_whitespace()));
    let mut columns = Vec::new();
    let mut at = 0;
    while at < width {
        let end = (at..width).find(|at| !used(*at)).unwrap_or(width);
        if end > at {
            let words = |line: &Vec<char>| -> String { line.iter().skip(at).take(end - at).collect() };
            let [head @ .., value] = &lines.iter().map(words).collect::<Vec<_>>()[..] else { return Vec::new() };
            columns.push((key(&head.join(" ")), value.trim().to_owned()));
        }
        at = end + 1;
    }
    columns
}

/// The name of a key of -k by its words in a head: `Elapsed Time (sec)` is ELAPSED_TIME.
fn key(name: &str) -> String {
    let words = name.split_whitespace().filter(|word| !["(sec)", "Bytes", "bytes", "Tran/s"].contains(word));
    words.map(str::to_uppercase).collect::<Vec<_>>().join("_")
}

impl<'a> Omni<'a> {
    pub(super) fn new(line: u32, title: Title) -> Self {
        Self { line, title, keys: BTreeMap::new(), others: Vec::new() }
    }

    /// Whether a line has a key that is known already: another test begins there.
    pub(super) fn has(&self, line: &str) -> bool {
        is_key_value(line) && line.trim().split_once('=').is_some_and(|(key, _)| self.keys.contains_key(key))
    }

    /// Another test of the same kind.
    pub(super) fn again(&self, line: u32) -> Self {
        Self::new(line, self.title.clone())
    }

    /// Takes a line.
    pub(super) fn take(&mut self, line: &'a str) {
        if is_key_value(line) {
            self.keys.extend(line.trim().split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())));
        } else if !line.trim().is_empty() && self.others.len() < MOST_LINES {
            self.others.push(line);
        }
    }

    /// Adds what the test printed, at its end.
    pub(super) fn close(omni: Option<Self>, reading: &mut TextReading) {
        let Some(Self { line, title, mut keys, others }) = omni else { return };
        if keys.is_empty() {
            keys.extend(by_columns(with_values(&others)));
        }
        let unread = |key: &'static str| Some((key, keys.get(key).filter(|value| number(value).is_none())?));
        if let Some((key, value)) = ["THROUGHPUT", "ELAPSED_TIME"].into_iter().find_map(unread) {
            return reading.refuse(line, NetperfResultError::Figure { key, value: value.clone() });
        }
        let get = |key: &str| keys.get(key).and_then(|value| number(value));
        let rate = get("TRANSACTION_RATE");
        let throughput = get("THROUGHPUT").zip(keys.get("THROUGHPUT_UNITS").and_then(|word| unit(word)));
        let Some((throughput, units)) = throughput.or(rate.map(|rate| (rate, 1.0))) else {
            let lacks = "THROUGHPUT and THROUGHPUT_UNITS, or TRANSACTION_RATE";
            return reading.refuse(line, ImportError::Without { what: "omni output", lacks });
        };
        let mut spec = title.spec();
        let transactions = keys.get("THROUGHPUT_UNITS").map_or(rate.is_some(), |units| units.starts_with("Trans"));
        if transactions != spec.pattern.is_transactions() {
            spec.pattern = if transactions { Pattern::Rr } else { Pattern::Stream };
        }
        if keys.get("PROTOCOL").is_some_and(|protocol| protocol.eq_ignore_ascii_case("udp")) {
            spec.transport = "udp".into();
        }
        // The remote end sends a stream to the local one.
        let sent = || get("LOCAL_SEND_SIZE").or(get("REMOTE_SEND_SIZE"));
        let size = if transactions { get("REQUEST_SIZE") } else { sent() }.and_then(block);
        spec.block = size.unwrap_or(spec.block);
        if transactions {
            spec.reply = get("RESPONSE_SIZE").and_then(block).filter(|reply| *reply != spec.block);
        }
        let elapsed = get("ELAPSED_TIME").map(ns).filter(|ns| *ns > 0);
        spec.stop = elapsed.map_or(spec.stop, Stop::TimeNs);
        let kind = if transactions { RunKind::Rr } else { RunKind::Stream };
        let mut row = Row::new(spec, throughput * units, line, &format!("THROUGHPUT={throughput}"));
        let printed = ["THROUGHPUT", "TRANSACTION_RATE"].iter().find_map(|key| keys.get(*key));
        row.rounded(printed.map_or(0.0, |word| resolution(word)));
        if let Some(elapsed) = elapsed {
            row.trial.far.report(Count::ReceivingNs, elapsed);
            row.figure("elapsed_ns", elapsed as f64);
        }
        row.figure("throughput", throughput * units);
        // All keys with numbers are kept under their names; those that are not imported are listed too.
        let unknown: Vec<String> = keys.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
        for key in &unknown {
            if let Some(value) = get(key) {
                row.figure(key, value);
            }
        }
        reading.imported.push(Imported {
            tool: "netperf".into(),
            kind,
            target: title.target,
            rows: vec![row],
            assumed: unless_reported(size),
            unknown,
            ..Imported::default()
        });
    }
}
