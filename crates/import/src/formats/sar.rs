//! sar and mpstat (sysstat): host activity, as a series. [`json`] reads the same as JSON.
//!
//! A table begins with a clock and the names of its columns; its rows are a clock, for some tables a core or a device, and numbers. The
//! names of the series are those of this program's observers. kB are 1024 bytes (sar's manual). Rows of `Average:` end a listing.

mod json;

use std::collections::{BTreeMap, BTreeSet};

use model::source::counter;
use model::{EndPass, HostSeries, Inventory, Observed, Pass, RunKind, SeriesLine, units};

use super::ImportFormat;
use crate::error::{HostError, ImportError};
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::{MAX_ROWS, clock, lines, number};

/// sar.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "sar",
    help: "sar -u, -P, -n DEV, EDEV, TCP, ETCP, UDP, and mpstat: the near host's series",
    detect,
    read,
};

/// A column's head, the last part of the series' name, its unit, and the factor of its values.
type Column = (&'static str, &'static str, &'static str, f64);

/// Shares of a core's time: `cpu.CORE.NAME`.
const CORES: [Column; 13] = [
    ("%user", "user", "ratio", 0.01),
    ("%usr", "user", "ratio", 0.01),
    ("%nice", "nice", "ratio", 0.01),
    ("%system", "system", "ratio", 0.01),
    ("%sys", "system", "ratio", 0.01),
    ("%iowait", "iowait", "ratio", 0.01),
    ("%steal", "steal", "ratio", 0.01),
    ("%irq", "irq", "ratio", 0.01),
    ("%soft", "softirq", "ratio", 0.01),
    ("%guest", "guest", "ratio", 0.01),
    ("%gnice", "guest_nice", "ratio", 0.01),
    ("%idle", "idle", "ratio", 0.01),
    ("intr/s", "interrupts", "1/s", 1.0),
];

/// Of an interface, by the kernel's names: `dev.DEVICE.NAME`.
const DEVICES: [Column; 17] = [
    ("rxpck/s", "rx_packets", "1/s", 1.0),
    ("txpck/s", "tx_packets", "1/s", 1.0),
    ("rxkB/s", "rx_bytes", "B/s", 1024.0),
    ("txkB/s", "tx_bytes", "B/s", 1024.0),
    ("rxcmp/s", "rx_compressed", "1/s", 1.0),
    ("txcmp/s", "tx_compressed", "1/s", 1.0),
    ("rxmcst/s", "multicast", "1/s", 1.0),
    ("%ifutil", "utilization", "ratio", 0.01),
    ("rxerr/s", "rx_errors", "1/s", 1.0),
    ("txerr/s", "tx_errors", "1/s", 1.0),
    ("coll/s", "collisions", "1/s", 1.0),
    ("rxdrop/s", "rx_dropped", "1/s", 1.0),
    ("txdrop/s", "tx_dropped", "1/s", 1.0),
    ("txcarr/s", "tx_carrier_errors", "1/s", 1.0),
    ("rxfram/s", "rx_frame_errors", "1/s", 1.0),
    ("rxfifo/s", "rx_fifo_errors", "1/s", 1.0),
    ("txfifo/s", "tx_fifo_errors", "1/s", 1.0),
];

/// Of the protocols, by the kernel's names: `snmp.NAME`.
const PROTOCOLS: [Column; 13] = [
    ("active/s", "Tcp.ActiveOpens", "1/s", 1.0),
    ("passive/s", "Tcp.PassiveOpens", "1/s", 1.0),
    ("iseg/s", "Tcp.InSegs", "1/s", 1.0),
    ("oseg/s", "Tcp.OutSegs", "1/s", 1.0),
    ("atmptf/s", "Tcp.AttemptFails", "1/s", 1.0),
    ("estres/s", "Tcp.EstabResets", "1/s", 1.0),
    ("retrans/s", "Tcp.RetransSegs", "1/s", 1.0),
    ("isegerr/s", "Tcp.InErrs", "1/s", 1.0),
    ("orsts/s", "Tcp.OutRsts", "1/s", 1.0),
    ("idgm/s", "Udp.InDatagrams", "1/s", 1.0),
    ("odgm/s", "Udp.OutDatagrams", "1/s", 1.0),
    ("noport/s", "Udp.NoPorts", "1/s", 1.0),
    ("idgmerr/s", "Udp.InErrors", "1/s", 1.0),
];

/// How far the shares of a core's time may be from 100 %, by their rounding.
const ROUNDING_PERCENT: f64 = 0.5;
const DAY_S: u64 = 86_400;

/// What the rows of a table are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Host,
    Core,
    Device,
}

/// A table that is open.
struct Table<'a> {
    of: Of,
    heads: Vec<&'a str>,
    /// Seconds of the last row since the listing began.
    last: u64,
}

/// The columns that are imported.
fn columns(of: Of) -> &'static [Column] {
    match of {
        Of::Host => &PROTOCOLS,
        Of::Core => &CORES,
        Of::Device => &DEVICES,
    }
}

impl Table<'_> {
    /// The column below `head`, if it is imported.
    fn column(&self, head: &str) -> Option<&'static Column> {
        columns(self.of).iter().find(|(known, ..)| *known == head)
    }
}

/// The words of a line after its clock, and the clock's seconds of the day: `21:06:26 ...` or `09:06:26 PM ...`.
fn timed(line: &str) -> Option<(u64, Vec<&str>)> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let mut at = clock(words.first()?)?;
    words.remove(0);
    if let Some(half @ ("AM" | "PM")) = words.first().copied() {
        words.remove(0);
        at = at % (DAY_S / 2) + if half == "PM" { DAY_S / 2 } else { 0 };
    }
    Some((at, words))
}

/// The words of a line of averages, which begins with a word of the user's language: `Average:`.
fn averaged(line: &str) -> Option<Vec<&str>> {
    let (first, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let is_word = first.strip_suffix(':').is_some_and(|word| word.chars().all(|c| c.is_alphabetic() || c == '.'));
    is_word.then(|| rest.split_whitespace().collect())
}

/// The table that a line begins: it has names only. One of averages has no time.
fn head(line: &str) -> Option<(Option<u64>, Table<'_>)> {
    let (at, mut heads) = match timed(line) {
        Some((at, heads)) => (Some(at), heads),
        None => (None, averaged(line)?),
    };
    let named = |word: &&str| word.contains(['/', '%', '-']) || word.starts_with(|c: char| c.is_ascii_alphabetic());
    if heads.len() < 2 || heads.iter().any(|word| number(word).is_some()) || !heads.iter().all(named) {
        return None;
    }
    let of = match heads[0] {
        "CPU" => Of::Core,
        "IFACE" => Of::Device,
        _ => Of::Host,
    };
    if of != Of::Host {
        heads.remove(0);
    }
    Some((at, Table { of, heads, last: 0 }))
}

fn detect(text: &str) -> Certainty {
    let known =
        |line: &str| head(line).is_some_and(|(_, table)| table.heads.iter().any(|head| table.column(head).is_some()));
    if json::is_json(text) || lines(text).any(|(_, line)| known(line)) { Certainty::Certain } else { Certainty::No }
}

/// `Linux 6.1.0 (host)  2026-11-25  _x86_64_  (2 CPU)`.
fn facts(line: &str) -> Option<Inventory> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["Linux", kernel, host, .., arch, cores, "CPU)"] = words.as_slice() else { return None };
    Some(Inventory {
        kernel: Some((*kernel).to_owned()),
        hostname: Some(host.strip_prefix('(')?.strip_suffix(')')?.to_owned()),
        arch: Some(arch.strip_prefix('_')?.strip_suffix('_')?.to_owned()),
        cores: cores.strip_prefix('(')?.parse().ok(),
        ..Inventory::default()
    })
}

/// One listing, up to the next head of the program or a restart of the host.
#[derive(Default)]
struct Listing {
    host: Inventory,
    /// The clock of its first head: its first interval began then.
    start: Option<u64>,
    /// The values of each series by the seconds since the start, and the order of the series.
    series: BTreeMap<String, (usize, &'static str, BTreeMap<u64, f64>)>,
    unknown: BTreeSet<String>,
    rows: usize,
    last_line: u32,
    averaged: bool,
    /// The averages, with their lines.
    averages: BTreeMap<String, (usize, &'static str, f64, u32)>,
    note: Option<String>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    if json::is_json(text) {
        json::read(text, &mut reading);
    }
    let mut listing = Listing::default();
    let mut table: Option<Table<'_>> = None;
    for (at, line) in lines(text) {
        if let Some(host) = facts(line) {
            std::mem::take(&mut listing).close(&mut reading);
            (listing.host, table) = (host, None);
        } else if line.contains("LINUX RESTART") {
            let host = listing.host.clone();
            // The counters of the host began again: sar prints no averages over a restart.
            listing.averaged = true;
            std::mem::take(&mut listing).close(&mut reading);
            (listing.host, table) = (host, None);
        } else if let Some((began, mut begun)) = head(line) {
            begun.last = began.map_or(0, |at| listing.since(at));
            listing.averaged |= began.is_none();
            let unknown = begun.heads.iter().filter(|head| begun.column(head).is_none());
            listing.unknown.extend(unknown.map(|head| (*head).to_owned()));
            table = Some(begun);
        } else if line.trim().is_empty() {
            table = None;
        } else if let Some(open) = &mut table {
            if let Some(words) = averaged(line) {
                listing.averaged = true;
                if let Err(reason) = listing.average(open, at, words) {
                    reading.refuse_text(at, line, reason);
                }
            } else if !line.starts_with(|c: char| c.is_ascii_digit()) {
                // No time: a line of something else.
                table = None;
            } else if listing.rows == MAX_ROWS {
                reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "rows" });
                break;
            } else if let Err(reason) = listing.row(open, at, line) {
                reading.refuse_text(at, line, reason);
            }
        } else if line.starts_with("Average:") {
            listing.averaged = true;
        }
    }
    listing.close(&mut reading);
    reading
}

impl Listing {
    /// Seconds from its start to a clock; the clock wraps at midnight.
    fn since(&mut self, at: u64) -> u64 {
        (at + DAY_S - *self.start.get_or_insert(at)) % DAY_S
    }

    /// Takes a row.
    fn row(&mut self, table: &mut Table<'_>, line: u32, text: &str) -> Result<(), ImportError> {
        self.last_line = line;
        let (at, words) = timed(text).ok_or(ImportError::Without { what: "a row", lacks: "a time" })?;
        let at = self.since(at);
        if at < table.last {
            return Err(HostError::Earlier.into());
        }
        self.insert(at, values(table, words)?)?;
        table.last = at;
        Ok(())
    }

    /// Takes a row of averages.
    fn average(&mut self, table: &Table<'_>, line: u32, words: Vec<&str>) -> Result<(), ImportError> {
        for (name, unit, value) in values(table, words)? {
            let next = self.averages.len();
            self.averages.entry(name).or_insert((next, unit, value, line));
        }
        Ok(())
    }

    /// The first average that is not between the values of its series, with its line.
    fn wrong_average(&self) -> Option<(u32, HostError)> {
        let times = self.series.values().flat_map(|(_, _, values)| values.keys()).collect::<BTreeSet<_>>().len();
        let is_within = |name: &str, value: f64| {
            // An interface that came or went has an average of another time.
            let series = self.series.get(name).filter(|(_, _, values)| values.len() == times);
            let Some((_, unit, values)) = series else { return true };
            let [low, high] = [f64::min, f64::max].map(|of| values.values().copied().reduce(of).unwrap_or(value));
            // Both are rounded.
            let rounding = if *unit == "ratio" { 0.01 } else { 0.01 * high.max(1.0) };
            (low - rounding..=high + rounding).contains(&value)
        };
        let wrong = self.averages.iter().filter(|(name, (_, _, value, _))| !is_within(name, *value));
        let (name, (.., line)) = wrong.min_by_key(|(_, (.., line))| *line)?;
        Some((*line, HostError::Average(name.clone())))
    }

    /// Takes the values of a row by their series.
    fn insert(&mut self, at: u64, values: Vec<(String, &'static str, f64)>) -> Result<(), HostError> {
        let known = |(name, _, value): &&(String, &str, f64)| {
            self.series.get(name).and_then(|(_, _, all)| all.get(&at)).is_some_and(|own| own != value)
        };
        if let Some((name, ..)) = values.iter().find(known) {
            return Err(HostError::Twice(name.clone()));
        }
        for (name, unit, value) in values {
            let next = self.series.len();
            self.series.entry(name).or_insert((next, unit, BTreeMap::new())).2.insert(at, value);
        }
        self.rows += 1;
        Ok(())
    }

    /// Ends it.
    fn close(mut self, reading: &mut TextReading) {
        if let Some((line, reason)) = self.wrong_average() {
            return reading.refuse(line, reason);
        }
        if self.series.is_empty() && !self.averages.is_empty() {
            for (name, (order, unit, value, _)) in std::mem::take(&mut self.averages) {
                self.series.insert(name, (order, unit, BTreeMap::from([(0, value)])));
            }
            self.note = Some("only averages: the text does not say over how long".into());
        }
        let times: BTreeSet<u64> = self.series.values().flat_map(|(_, _, values)| values.keys().copied()).collect();
        if times.is_empty() {
            if !self.unknown.is_empty() {
                reading.refuse(self.last_line, HostError::OtherColumns(self.unknown.into_iter().collect()));
            }
            return;
        }
        // Without an interval the only rows have the time of their head, and there are no averages.
        let alone = !self.averaged && times.iter().eq(&[0]);
        if !self.averaged && !alone {
            reading.refuse(self.last_line, HostError::NoAverages);
        }
        let mut series: Vec<_> = self.series.into_iter().collect();
        series.sort_by_key(|(_, (order, ..))| *order);
        let lines: Vec<SeriesLine> = series
            .into_iter()
            .map(|(name, (_, unit, values))| SeriesLine {
                name,
                unit: unit.to_owned(),
                values: times.iter().map(|at| values.get(at).copied()).collect(),
            })
            .collect();
        let at_ns: Vec<u64> = times.iter().map(|second| second * 1_000_000_000).collect();
        let window_ns = at_ns.last().copied().unwrap_or(0);
        let mut notes = means(&lines, at_ns.len());
        let since_start = || "no interval: these are means since the host started".to_owned();
        notes.extend(self.note.or_else(|| alone.then(since_start)));
        let series = Some(HostSeries { at_ns, lines });
        let observed = Observed { window_ns, sources: vec!["sar".into()], series, ..Observed::default() };
        let near = EndPass { observed: Some(observed), ..EndPass::default() };
        reading.imported.push(Imported {
            tool: "sysstat".into(),
            kind: RunKind::Environment,
            near: self.host,
            passes: vec![Pass { near, duration_ns: window_ns, ..Pass::default() }],
            notes,
            unknown: self.unknown.into_iter().collect(),
            ..Imported::default()
        });
    }
}

/// The values of a row behind its time, by their series.
fn values(table: &Table<'_>, mut words: Vec<&str>) -> Result<Vec<(String, &'static str, f64)>, ImportError> {
    let nameless = ImportError::Without { what: "a row", lacks: "a name" };
    let of = if table.of == Of::Host { "" } else { words.first().copied().ok_or(nameless)? };
    if table.of != Of::Host {
        words.remove(0);
    }
    if words.len() != table.heads.len() {
        return Err(ImportError::Row { found: words.len(), what: "numbers", expected: table.heads.len() });
    }
    let mut values = Vec::new();
    for (head, word) in table.heads.iter().zip(&words) {
        let Some((_, name, unit, factor)) = table.column(head) else { continue };
        let value = number(word).ok_or_else(|| ImportError::word(*word, "a number"))?;
        values.push((series_name(table.of, of, name), *unit, value * factor));
    }
    if table.of == Of::Core && table.heads.contains(&"%idle") {
        let shares = table.heads.iter().zip(&words).filter(|(head, _)| head.starts_with('%'));
        let percent: f64 = shares.filter_map(|(_, word)| number(word)).sum();
        // A core that is offline has no shares.
        if percent != 0.0 && (percent - 100.0).abs() > ROUNDING_PERCENT {
            return Err(HostError::Shares { core: None, percent }.into());
        }
    }
    Ok(values)
}

fn series_name(of: Of, which: &str, name: &str) -> String {
    match of {
        Of::Host => format!("snmp.{name}"),
        Of::Core => format!("cpu.{which}.{name}"),
        Of::Device => format!("dev.{which}.{name}"),
    }
}

/// Sentences of the means: all cores, each interface with traffic, TCP.
pub(super) fn means(lines: &[SeriesLine], readings: usize) -> Vec<String> {
    let mean = |name: &str| {
        let values: Vec<f64> = lines.iter().find(|line| line.name == name)?.values.iter().flatten().copied().collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let of = if readings == 1 { "the only reading".to_owned() } else { format!("means of {readings} readings") };
    let mut notes = Vec::new();
    let percent = |name: &str| mean(&format!("cpu.all.{name}")).map(|share| format!("{name} {:.0} %", share * 100.0));
    let shares: Vec<String> =
        ["user", "system", "softirq", "iowait", "steal", "idle"].into_iter().filter_map(percent).collect();
    if !shares.is_empty() {
        notes.push(format!("all cores, {of}: {}", shares.join(", ")));
    }
    for line in lines {
        let Some(device) = line.name.strip_prefix("dev.").and_then(|rest| rest.strip_suffix(".rx_bytes")) else {
            continue;
        };
        let column = |name: &str| mean(&format!("dev.{device}.{name}"));
        let way = |verb: &str, bytes: &str, packets: &str| {
            let rate = units::bits_per_second(column(bytes)? * 8.0);
            let packets = column(packets).map_or(String::new(), |packets| format!(" in {packets:.0} packets/s"));
            Some(format!("{verb} {rate}{packets}"))
        };
        let is_quiet = ["rx_bytes", "tx_bytes"].map(column).into_iter().flatten().all(|rate| rate == 0.0);
        let ways = [way("received", "rx_bytes", "rx_packets"), way("sent", "tx_bytes", "tx_packets")];
        let said: Vec<String> = ways.into_iter().flatten().collect();
        if !is_quiet {
            notes.push(format!("{device}, {of}: {}", said.join(", ")));
        }
    }
    if let Some(sent) = mean(counter::TCP_OUT_SEGMENTS) {
        let again = mean(counter::TCP_RETRANSMITTED)
            .map_or(String::new(), |rate| format!(", {rate:.1} segments/s retransmitted"));
        notes.push(format!("TCP, {of}: {sent:.0} segments/s sent{again}"));
    }
    notes
}
