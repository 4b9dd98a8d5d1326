//! Windows' performance counters as CSV: typeperf, and what relog and logman write of Performance Monitor's logs.
//!
//! The first line has a column for each counter: `"(PDH-CSV 4.0)","\\HOST\Processor(_Total)\% Processor Time",...`. Logs have their time
//! zone there: `"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)"`, in minutes from local time to UTC. A row has a time and a number for
//! each counter; a counter without a value is blank or -1.

use std::collections::{BTreeMap, BTreeSet};

use model::source::counter;
use model::{EndPass, HostSeries, Inventory, Observed, Pass, RunKind, SeriesLine};

use super::{ImportFormat, sar};
use crate::error::{HostError, ImportError};
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::{MAX_ROWS, days_since_epoch, lines, number};

/// typeperf.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "typeperf",
    help: "Windows' counters as CSV (typeperf, relog, logman), as the near host's series",
    detect,
    read,
};

/// How the first cell begins; the separator is the one between columns, a comma or a tab.
const HEADS: [(&str, &str); 2] = [("(PDH-CSV 4.0)", "\",\""), ("(PDH-TSV 4.0)", "\"\t\"")];

/// An object and its counter in small letters, the last part of the series' name, its unit and the factor of its values.
type Column = (&'static str, &'static str, &'static str, &'static str, f64);

/// The counters of a core, `cpu.CORE.NAME`. Processor Information numbers the cores of each group.
const CORES: [Column; 6] = [
    ("processor", "% user time", "user", "ratio", 0.01),
    ("processor", "% privileged time", "system", "ratio", 0.01),
    ("processor", "% interrupt time", "irq", "ratio", 0.01),
    ("processor", "% dpc time", "softirq", "ratio", 0.01),
    ("processor", "% idle time", "idle", "ratio", 0.01),
    ("processor", "interrupts/sec", "interrupts", "1/s", 1.0),
];
/// The share of the time that is not idle.
const BUSY: &str = "% processor time";

/// The counters of an interface, `dev.DEVICE.NAME`.
const DEVICES: [Column; 4] = [
    ("network interface", "bytes received/sec", "rx_bytes", "B/s", 1.0),
    ("network interface", "bytes sent/sec", "tx_bytes", "B/s", 1.0),
    ("network interface", "packets received/sec", "rx_packets", "1/s", 1.0),
    ("network interface", "packets sent/sec", "tx_packets", "1/s", 1.0),
];

/// The counters of the host. Windows counts IPv4 and IPv6 apart; here they are added up, as on Linux.
const HOST: [Column; 17] = [
    ("system", "context switches/sec", counter::CONTEXT_SWITCHES, "1/s", 1.0),
    ("system", "processor queue length", "procs.waiting", "threads", 1.0),
    ("memory", "available bytes", "memory.available", "B", 1.0),
    ("memory", "available kbytes", "memory.available", "B", 1024.0),
    ("memory", "available mbytes", "memory.available", "B", 1_048_576.0),
    ("tcpv4", "segments received/sec", "snmp.Tcp.InSegs", "1/s", 1.0),
    ("tcpv6", "segments received/sec", "snmp.Tcp.InSegs", "1/s", 1.0),
    ("tcpv4", "segments sent/sec", "snmp.Tcp.OutSegs", "1/s", 1.0),
    ("tcpv6", "segments sent/sec", "snmp.Tcp.OutSegs", "1/s", 1.0),
    ("tcpv4", "segments retransmitted/sec", "snmp.Tcp.RetransSegs", "1/s", 1.0),
    ("tcpv6", "segments retransmitted/sec", "snmp.Tcp.RetransSegs", "1/s", 1.0),
    ("udpv4", "datagrams received/sec", "snmp.Udp.InDatagrams", "1/s", 1.0),
    ("udpv6", "datagrams received/sec", "snmp.Udp.InDatagrams", "1/s", 1.0),
    ("udpv4", "datagrams sent/sec", "snmp.Udp.OutDatagrams", "1/s", 1.0),
    ("udpv6", "datagrams sent/sec", "snmp.Udp.OutDatagrams", "1/s", 1.0),
    ("udpv4", "datagrams no port/sec", "snmp.Udp.NoPorts", "1/s", 1.0),
    ("udpv6", "datagrams no port/sec", "snmp.Udp.NoPorts", "1/s", 1.0),
];

/// How much more than 100 % a share of the time may be, by its rounding and by the moments of the readings.
const ROUNDING_PERCENT: f64 = 1.0;

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| cells(line).is_some_and(|(cells, _)| cells.len() > 1)) {
        Certainty::Certain
    } else {
        Certainty::No
    }
}

/// The cells of a head, and what is between two cells.
fn cells(line: &str) -> Option<(Vec<&str>, &'static str)> {
    let (_, between) = HEADS
        .iter()
        .find(|(head, _)| line.trim_start().strip_prefix('"').is_some_and(|cell| cell.starts_with(head)))?;
    Some((quoted(line, between)?, between))
}

fn quoted<'a>(line: &'a str, between: &str) -> Option<Vec<&'a str>> {
    Some(line.trim().strip_prefix('"')?.strip_suffix('"')?.split(between).collect())
}

/// The parts of `\\HOST\Object(Instance)\Counter`.
#[derive(Debug, PartialEq)]
struct Path<'a> {
    host: &'a str,
    object: String,
    instance: &'a str,
    counter: String,
}

impl<'a> Path<'a> {
    fn of(cell: &'a str) -> Option<Self> {
        let (host, rest) = cell.strip_prefix("\\\\")?.split_once('\\')?;
        let (object, counter) = rest.rsplit_once('\\')?;
        let (object, instance) = match object.split_once('(') {
            Some((object, instance)) => (object, instance.strip_suffix(')')?),
            None => (object, ""),
        };
        Some(Self { host, object: object.to_lowercase(), instance, counter: counter.to_lowercase() })
    }

    /// The core that a counter is of: `all`, `3`, or `1,3` in another group than the first.
    fn core(&self) -> Option<&'a str> {
        match (self.object.as_str(), self.instance) {
            ("processor" | "processor information", "_Total") => Some("all"),
            ("processor", core) => Some(core),
            ("processor information", core) if !core.contains("_Total") => {
                Some(core.strip_prefix("0,").unwrap_or(core))
            }
            _ => None,
        }
    }

    /// The series of a counter.
    fn series(&self) -> Option<Counter> {
        let of = |name: String, unit, factor| Counter { name, unit, from: 0.0, factor };
        let named = |columns: &'static [Column], object: &str| {
            columns.iter().find(|(of, counter, ..)| *of == object && *counter == self.counter)
        };
        if let Some(core) = self.core() {
            if self.counter == BUSY {
                return Some(Counter { from: 1.0, ..of(format!("cpu.{core}.idle"), "ratio", -0.01) });
            }
            let (.., name, unit, factor) = named(&CORES, "processor")?;
            let of_host = core == "all" && *name == "interrupts";
            let name = if of_host { counter::INTERRUPTS.to_owned() } else { format!("cpu.{core}.{name}") };
            return Some(of(name, unit, *factor));
        }
        if let Some((.., name, unit, factor)) = named(&DEVICES, &self.object) {
            return Some(of(format!("dev.{}.{name}", self.instance), unit, *factor));
        }
        let (.., name, unit, factor) = named(&HOST, &self.object)?;
        Some(of((*name).to_owned(), unit, *factor))
    }
}

/// A counter as a series, and how its values follow from the printed ones.
struct Counter {
    name: String,
    unit: &'static str,
    from: f64,
    factor: f64,
}

impl Counter {
    fn value(&self, printed: f64) -> f64 {
        (self.from + self.factor * printed).max(0.0)
    }
}

/// A time of a row, ns since the epoch in its zone: `06/14/2002 10:15:01.593`.
fn time(cell: &str) -> Option<u64> {
    let (date, clock) = cell.split_once(' ')?;
    let mut parts = date.split('/').map(|part| part.parse::<u64>().ok());
    let (month, day, year) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = clock.split(':');
    let (hour, minute): (u64, u64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second = number(parts.next()?).filter(|second| *second < 61.0)?;
    let valid = parts.next().is_none() && hour < 24 && minute < 60;
    let days = days_since_epoch(year, month, day).filter(|_| valid)?;
    Some((days * 86_400 + hour * 3_600 + minute * 60) * 1_000_000_000 + (second * 1e9).round() as u64)
}

/// A listing: what follows a head.
struct Listing<'a> {
    line: u32,
    /// Minutes from local time to UTC, if the head has them.
    zone: Option<i64>,
    between: &'static str,
    columns: Vec<&'a str>,
    /// Cells of the head, of which logs have one more: their description.
    cells: usize,
    rows: Vec<(u64, Vec<Option<f64>>)>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut open: Option<Listing<'_>> = None;
    for (at, line) in lines(text) {
        if let Some((cells, between)) = cells(line) {
            close(open.take(), &mut reading);
            let zone = cells[0].rsplit_once('(').and_then(|(_, zone)| zone.strip_suffix(')')?.parse().ok());
            let columns: Vec<&str> = cells.iter().skip(1).copied().filter(|cell| cell.starts_with("\\\\")).collect();
            open = Some(Listing { line: at, zone, between, columns, cells: cells.len(), rows: Vec::new() });
            continue;
        }
        let Some(listing) = &mut open else { continue };
        // What typeperf says at its end is not quoted.
        let Some(cells) = quoted(line, listing.between) else { continue };
        if listing.rows.len() >= MAX_ROWS {
            reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "rows" });
            break;
        }
        if let Err(reason) = listing.row(&cells) {
            reading.refuse_text(at, line, reason);
        }
    }
    close(open, &mut reading);
    reading
}

impl Listing<'_> {
    fn row(&mut self, cells: &[&str]) -> Result<(), ImportError> {
        let expected = self.columns.len() + 1;
        if cells.len() != expected && cells.len() != self.cells {
            return Err(ImportError::Row { found: cells.len(), what: "columns", expected });
        }
        let at = time(cells[0]).ok_or_else(|| HostError::Time(cells[0].to_owned()))?;
        if self.rows.last().is_some_and(|(before, _)| at <= *before) {
            return Err(HostError::NotAfter(cells[0].to_owned()).into());
        }
        let value = |(cell, path): (&&str, &&str)| match cell.trim() {
            "" | "-1" => Ok(None),
            word => {
                let value = number(word).ok_or_else(|| ImportError::word(word, "a number"))?;
                // A share of the time.
                let is_share =
                    path.rsplit_once('\\').is_some_and(|(_, name)| name.starts_with('%') && name.ends_with("Time"));
                if is_share && path.contains("\\Processor") && value > 100.0 + ROUNDING_PERCENT {
                    return Err(HostError::CpuShares(value).into());
                }
                Ok(Some(value))
            }
        };
        let values = cells[1..].iter().zip(&self.columns).map(value).collect::<Result<Vec<_>, ImportError>>()?;
        self.rows.push((at, values));
        Ok(())
    }
}

/// The series of a listing in the order of its columns, by their names, and the counters that are not imported.
fn series(listing: &Listing<'_>) -> (Vec<SeriesLine>, Vec<String>) {
    let mut series: Vec<SeriesLine> = Vec::new();
    let (mut seen, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for (column, cell) in listing.columns.iter().enumerate() {
        let path = Path::of(cell);
        let Some((path, counter)) = path.and_then(|path| path.series().map(|series| (path, series))) else {
            unknown.insert(
                cell.trim_start_matches('\\').split_once('\\').map_or(*cell, |(_, counter)| counter).to_owned(),
            );
            continue;
        };
        let values = listing.rows.iter().map(|(_, values)| Some(counter.value((*values.get(column)?)?)));
        match series.iter_mut().find(|line| line.name == counter.name) {
            None => {
                let values = values.collect();
                series.push(SeriesLine { name: counter.name, unit: counter.unit.to_owned(), values });
            }
            // The other version of IP. The same counter of another object is left out.
            Some(line) if line.name.starts_with("snmp.") && seen.insert((path.object, path.counter)) => {
                for (sum, value) in line.values.iter_mut().zip(values) {
                    *sum = sum.zip(value).map(|(one, other)| one + other);
                }
            }
            Some(_) => {}
        }
    }
    without_interrupts(&mut series);
    (series, unknown.into_iter().collect())
}

/// Privileged time includes that of interrupts and deferred procedure calls; on Linux they are shares by themselves.
fn without_interrupts(series: &mut [SeriesLine]) {
    let values: BTreeMap<String, Vec<Option<f64>>> =
        series.iter().map(|line| (line.name.clone(), line.values.clone())).collect();
    for line in series {
        let Some(core) = line.name.strip_suffix(".system") else { continue };
        for part in ["irq", "softirq"] {
            let Some(part) = values.get(&format!("{core}.{part}")) else { continue };
            for (all, part) in line.values.iter_mut().zip(part) {
                *all = all.zip(*part).map(|(all, part)| (all - part).max(0.0)).or(*all);
            }
        }
    }
}

fn close(listing: Option<Listing<'_>>, reading: &mut TextReading) {
    let Some(listing) = listing else { return };
    let (lines, unknown) = series(&listing);
    if lines.is_empty() {
        return reading.refuse(listing.line, HostError::OtherColumns(unknown));
    }
    let Some((first, _)) = listing.rows.first() else {
        return reading.refuse(listing.line, ImportError::Without { what: "a head", lacks: "rows" });
    };
    let mut notes = Vec::new();
    // The first interval is like the second.
    let interval = listing.rows.get(1).map_or(0, |(second, _)| second - first);
    let at_ns: Vec<u64> = listing.rows.iter().map(|(at, _)| at - first + interval).collect();
    if interval == 0 {
        notes.push("one reading of an unknown interval".to_owned());
    }
    notes.extend(sar::means(&lines, at_ns.len()));
    let host = listing.columns.iter().find_map(|cell| Path::of(cell)).map(|path| path.host.to_owned());
    let began = listing
        .zone
        .and_then(|zone| first.checked_add_signed(zone.checked_mul(60_000_000_000)?)?.checked_sub(interval));
    let window_ns = at_ns.last().copied().unwrap_or(0);
    let series = Some(HostSeries { at_ns, lines });
    let observed = Observed { window_ns, sources: vec!["typeperf".into()], series, ..Observed::default() };
    let near = EndPass { observed: Some(observed), ..EndPass::default() };
    reading.imported.push(Imported {
        tool: "typeperf".into(),
        kind: RunKind::Environment,
        measured_unix_ns: began,
        near: Inventory { hostname: host, ..Inventory::default() },
        passes: vec![Pass { near, duration_ns: window_ns, ..Pass::default() }],
        notes,
        unknown,
        ..Imported::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_a_host_an_object_and_an_instance() {
        let path = Path::of(r"\\W2K\Network Interface(3Com 3C996 [Gigabit] (A))\Bytes Sent/sec").unwrap();
        assert_eq!(
            (path.host, path.object.as_str(), path.instance),
            ("W2K", "network interface", "3Com 3C996 [Gigabit] (A)")
        );
        assert_eq!(path.series().map(|counter| counter.name).as_deref(), Some("dev.3Com 3C996 [Gigabit] (A).tx_bytes"));
        let name = |cell: &str| Path::of(cell).and_then(|path| Some(path.series()?.name));
        for (cell, expected) in [
            (r"\\A\Processor(0)\% DPC Time", Some("cpu.0.softirq")),
            (r"\\A\Processor Information(0,3)\% Idle Time", Some("cpu.3.idle")),
            (r"\\A\Processor Information(1,3)\% Idle Time", Some("cpu.1,3.idle")),
            (r"\\A\Processor Information(0,_Total)\% Idle Time", None),
            (r"\\A\Processor(_Total)\Interrupts/sec", Some("stat.intr")),
            (r"\\A\System\Context Switches/sec", Some("stat.ctxt")),
            (r"\\A\Prozessor(_Total)\Prozessorzeit (%)", None),
            (r"\Processor(0)\% DPC Time", None),
        ] {
            assert_eq!(name(cell).as_deref(), expected, "{cell}");
        }
    }

    #[test]
    fn a_time_has_the_month_first() {
        assert_eq!(time("01/01/1970 00:00:01.593"), Some(1_593_000_000));
        assert_eq!(time("06/14/2002 10:15:01.000"), Some(1_024_049_701_000_000_000));
        for text in ["14/06/2002 10:15:01.000", "06/14/2002", "06/14/2002 25:00:00", ""] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
