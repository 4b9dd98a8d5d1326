//! vmstat: host activity, as a series.
//!
//! Memory is in KiB, swap in KiB a second, blocks of 1024 bytes (vmstat's manual). The first line is a mean since the host started.

use model::source::counter;
use model::{EndPass, HostSeries, Observed, Pass, RunKind, SeriesLine};

use super::ImportFormat;
use crate::error::{HostError, ImportError};
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::{MAX_ROWS, clock, lines, number};

/// vmstat.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "vmstat", help: "vmstat's lines, as the near host's series", detect, read };

/// A column's head, the series' name and unit, and the factor of its values.
const COLUMNS: [(&str, &str, &str, f64); 20] = [
    ("r", "procs.running", "processes", 1.0),
    ("b", "procs.blocked", "processes", 1.0),
    ("swpd", "memory.swapped", "B", 1024.0),
    ("free", "memory.free", "B", 1024.0),
    ("buff", "memory.buffers", "B", 1024.0),
    ("cache", "memory.cached", "B", 1024.0),
    ("inact", "memory.inactive", "B", 1024.0),
    ("active", "memory.active", "B", 1024.0),
    ("si", "swap.in", "B/s", 1024.0),
    ("so", "swap.out", "B/s", 1024.0),
    ("bi", "io.in", "B/s", 1024.0),
    ("bo", "io.out", "B/s", 1024.0),
    ("in", counter::INTERRUPTS, "1/s", 1.0),
    ("cs", counter::CONTEXT_SWITCHES, "1/s", 1.0),
    ("us", "cpu.all.user", "ratio", 0.01),
    ("sy", "cpu.all.system", "ratio", 0.01),
    ("id", "cpu.all.idle", "ratio", 0.01),
    ("wa", "cpu.all.iowait", "ratio", 0.01),
    ("st", "cpu.all.steal", "ratio", 0.01),
    ("gu", "cpu.all.guest", "ratio", 0.01),
];

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| head(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

/// The names of the columns: ` r  b   swpd   free ... us sy id wa st`.
fn head(line: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = line.split_whitespace().collect();
    let has = |name: &str| names.contains(&name);
    (names.first() == Some(&"r") && ["swpd", "free", "cs", "us", "id"].into_iter().all(has)).then_some(names)
}

struct Listing<'a> {
    line: u32,
    names: Vec<&'a str>,
    rows: Vec<(Vec<f64>, Option<u64>)>,
    /// Rows below the last head, and below the first one.
    below: usize,
    screen: Option<usize>,
}

/// The fewest lines of a screen, after which the head is repeated. A head after fewer lines is that of another run.
const SCREEN: usize = 20;
const DAY_S: u64 = 86_400;
/// How far shares of the CPU's time may be from 100 %: each is a whole number.
const ROUNDING_PERCENT: f64 = 3.0;

impl Listing<'_> {
    /// Whether a head is that of the next screen of this run.
    fn continues(&mut self, names: &[&str]) -> bool {
        let below = std::mem::take(&mut self.below);
        self.names == names && below >= SCREEN && *self.screen.get_or_insert(below) == below
    }

    /// Refuses shares of the CPU's time that are not 100 % together; versions differ in whether a guest's is part of the user's.
    fn check(&self, values: &[f64]) -> Result<(), HostError> {
        let share = |name: &str| self.names.iter().position(|own| *own == name).and_then(|at| values.get(at)).copied();
        let sum: f64 = ["us", "sy", "id", "wa", "st"].into_iter().filter_map(share).sum();
        let virtual_machines = share("gu").unwrap_or(0.0);
        let off = (sum - 100.0).abs().min((sum + virtual_machines - 100.0).abs());
        if off > ROUNDING_PERCENT { Err(HostError::CpuShares(sum)) } else { Ok(()) }
    }
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut open: Option<Listing<'_>> = None;
    for (at, line) in lines(text) {
        if let Some(names) = head(line) {
            // The head is repeated once per screen.
            if open.as_mut().is_none_or(|listing| !listing.continues(&names)) {
                close(open.take(), &mut reading);
                open = Some(Listing { line: at, names, rows: Vec::new(), below: 0, screen: None });
            }
            continue;
        }
        let Some(listing) = &mut open else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || line.contains("---") {
            continue;
        }
        // Only the time, at the end, is not a number.
        let known = |name: &&str| COLUMNS.iter().any(|(known, ..)| known == name);
        let numbers = listing.names.iter().rposition(known).map_or(0, |last| last + 1);
        let values: Option<Vec<f64>> = words.iter().take(numbers).map(|word| number(word)).collect();
        match values.filter(|values| values.len() == numbers) {
            Some(_) if listing.rows.len() >= MAX_ROWS => {
                reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "lines" });
                break;
            }
            Some(values) => match listing.check(&values) {
                Ok(()) => {
                    listing.below += 1;
                    listing.rows.push((values, words[numbers..].iter().find_map(|word| clock(word))));
                }
                Err(reason) => reading.refuse_text(at, line, reason),
            },
            None if words.first().is_some_and(|word| number(word).is_some()) && words.len() + 3 > numbers => {
                reading.refuse_text(at, line, HostError::Numbers(numbers));
            }
            None => close(open.take(), &mut reading),
        }
    }
    close(open, &mut reading);
    reading
}

fn close(listing: Option<Listing<'_>>, reading: &mut TextReading) {
    let Some(Listing { line, names, rows, .. }) = listing else { return };
    let [(_, first), rest @ ..] = rows.as_slice() else {
        return reading.refuse(line, HostError::HeadAlone);
    };
    let mut notes = vec!["vmstat's first line, the mean since boot, is left out".to_owned()];
    if rest.is_empty() {
        return reading.refuse(line, HostError::SinceBoot);
    }
    let times: Option<Vec<u64>> = rest.iter().map(|(_, at)| *at).collect();
    // The clock wraps at midnight.
    let steps = first.zip(times).map(|(start, times)| {
        let before = std::iter::once(start).chain(times.iter().copied());
        before.zip(&times).map(|(before, at)| (at + DAY_S - before) % DAY_S).collect::<Vec<u64>>()
    });
    if steps.iter().flatten().any(|step| *step == 0 || *step > DAY_S / 2) {
        return reading.refuse(line, HostError::Times);
    }
    let at_ns: Vec<u64> = match steps {
        Some(steps) => {
            let mut since_start = 0;
            let each = steps.iter().map(|step| {
                since_start += step;
                since_start * 1_000_000_000
            });
            each.collect()
        }
        None => {
            notes.push("without -t vmstat does not print times: an interval of 1 s is assumed".to_owned());
            (1..).take(rest.len()).map(|second: u64| second * 1_000_000_000).collect()
        }
    };
    let mut series = Vec::new();
    for (column, name) in names.iter().enumerate() {
        let Some((_, name, unit, factor)) = COLUMNS.iter().find(|(known, ..)| known == name) else { continue };
        let values = rest.iter().map(|(values, _)| values.get(column).map(|value| value * factor)).collect();
        series.push(SeriesLine { name: (*name).to_owned(), unit: (*unit).to_owned(), values });
    }
    let mean = |name: &str| {
        let values: Vec<f64> = series
            .iter()
            .filter(|line| line.name == name)
            .flat_map(|line| line.values.iter().flatten().copied())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let percent = |name: &str| mean(name).map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let count = |name: &str| mean(name).map_or("-".to_owned(), |rate| format!("{rate:.0}"));
    notes.push(format!(
        "means of {} readings: user {}, system {}, idle {}, {} interrupts/s, {} context switches/s",
        rest.len(),
        percent("cpu.all.user"),
        percent("cpu.all.system"),
        percent("cpu.all.idle"),
        count(counter::INTERRUPTS),
        count(counter::CONTEXT_SWITCHES),
    ));
    let window_ns = at_ns.last().copied().unwrap_or(0);
    let series = Some(HostSeries { at_ns, lines: series });
    let observed = Observed { window_ns, sources: vec!["vmstat".into()], series, ..Observed::default() };
    let near = EndPass { observed: Some(observed), ..EndPass::default() };
    let unknown = names.iter().filter(|name| !COLUMNS.iter().any(|(known, ..)| known == *name));
    reading.imported.push(Imported {
        tool: "vmstat".into(),
        kind: RunKind::Environment,
        passes: vec![Pass { near, duration_ns: window_ns, ..Pass::default() }],
        notes,
        unknown: unknown.map(|name| (*name).to_owned()).collect(),
        ..Imported::default()
    });
}
