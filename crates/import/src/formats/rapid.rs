//! rapid (2003): the report of its receiver, with a section for each process and one of totals.
//!
//! Its megabits are 10^6 bit: 16388608000 bytes in 59.991 s are printed as 2185.476. Times are whole milliseconds, so of a short transfer
//! the rate has more digits.

use model::{Count, FlowTally, Pattern, RunKind, Spec, Stop};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, StreamError};
use crate::listing::{Certainty, Imported, Row, TextReading, unless_reported};
use crate::text::{half_digit, lines, ns, number, resolution, whole};

/// rapid.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "rapid", help: "rapid's report of a transfer", detect, read };

fn detect(text: &str) -> Certainty {
    let has = |what: &str| text.contains(what);
    if has("total amount transferred:") && has("total throughput:") { Certainty::Certain } else { Certainty::No }
}

/// The word after `label`.
fn word<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.trim().strip_prefix(label)?.split_whitespace().next()
}

/// The number after `label`.
fn after(line: &str, label: &str) -> Option<f64> {
    number(word(line, label)?)
}

/// A process: its bytes, and its start and stop by the wall clock, s.
#[derive(Default)]
struct Process {
    bytes: Option<f64>,
    start: Option<f64>,
    stop: Option<f64>,
}

#[derive(Default)]
struct Totals {
    bytes: Option<f64>,
    elapsed: Option<String>,
    start: Option<f64>,
    processes: Vec<Process>,
    block: Option<u64>,
    target: Option<String>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut totals = Totals::default();
    for (number, line) in lines(text) {
        if line.contains("rapid ") && line.contains(" -r") {
            let option =
                |flag: &str| line.split_whitespace().find_map(|word| word.strip_prefix(flag)).map(str::to_owned);
            totals = Totals {
                block: option("-l").and_then(|bytes| crate::text::block(crate::text::number(&bytes)?)),
                target: option("-i"),
                ..Totals::default()
            };
        }
        if line.trim().starts_with("statistics for process") {
            totals.processes.push(Process::default());
        }
        if let Some(process) = totals.processes.last_mut() {
            process.bytes = after(line, "amount transferred:").or(process.bytes);
            process.start = after(line, "start time:").or(process.start);
            process.stop = after(line, "stop time:").or(process.stop);
        }
        totals.bytes = after(line, "total amount transferred:").or(totals.bytes);
        totals.elapsed = word(line, "total elapsed time:").map(str::to_owned).or(totals.elapsed);
        totals.start = after(line, "the earliest start time of any child:").or(totals.start);
        if let Some(megabits) = word(line, "total throughput:") {
            match row(std::mem::take(&mut totals), megabits, number, line) {
                Ok(imported) => reading.imported.push(imported),
                Err(reason) => reading.refuse(number, reason),
            }
        }
    }
    reading
}

fn row(totals: Totals, printed: &str, line: u32, text: &str) -> Result<Imported, ImportError> {
    let megabits = number(printed).filter(|megabits| *megabits > 0.0).ok_or(StreamError::Throughput)?;
    let elapsed = totals.elapsed.as_deref().unwrap_or_default();
    let alone = ImportError::Without { what: "throughput", lacks: "bytes and time" };
    let (bytes, seconds) = totals.bytes.and_then(whole).zip(number(elapsed)).ok_or(alone)?;
    let value = megabits * 1e6;
    let exact = bytes as f64 * 8.0 / value;
    if (exact - seconds).abs() > half_digit(elapsed) * 1.02 + exact * (0.001 + resolution(printed)) {
        return Err(Contradiction::Throughput { megabits, bytes, seconds }.into());
    }
    let finer = if resolution(printed) < resolution(elapsed) { exact } else { seconds };
    let mut spec = Spec { stop: Stop::Bytes(bytes), ..Spec::new("tcp", Pattern::Transfer) };
    spec.block = totals.block.unwrap_or(spec.block);
    spec.flows = u32::try_from(totals.processes.len()).unwrap_or(u32::MAX).max(1);
    spec.processes = spec.flows;
    let mut row = Row::new(spec, value, line, text);
    row.trial.far.report(Count::BytesReceived, bytes);
    row.trial.far.report(Count::ReceivingNs, ns(finer));
    let first = totals.processes.iter().filter_map(|process| process.start).fold(f64::INFINITY, f64::min);
    let flow = |(flow, process): (u32, &Process)| {
        let times = process.start.zip(process.stop).filter(|(start, stop)| start <= stop);
        Some(FlowTally {
            flow,
            bytes_received: process.bytes.and_then(whole)?,
            receiving_ns: times.map(|(start, stop)| [ns(start - first), ns(stop - first)]),
            ..FlowTally::default()
        })
    };
    // A single process has the times of the whole, which have more digits.
    if totals.processes.len() > 1 {
        let flows: Option<Vec<FlowTally>> = (0..).zip(&totals.processes).map(flow).collect();
        let flows = flows.unwrap_or_default();
        let sum = flows.iter().map(|flow| flow.bytes_received).fold(0, u64::saturating_add);
        if !flows.is_empty() && sum != bytes {
            return Err(Contradiction::Processes { processes: sum, total: bytes }.into());
        }
        row.trial.far.flows = flows;
    }
    row.figure("bytes", bytes as f64);
    row.figure("elapsed_ns", finer * 1e9);
    row.figure("throughput_bps", value);
    Ok(Imported {
        tool: "rapid".into(),
        kind: RunKind::Transfer,
        target: totals.target,
        measured_unix_ns: totals.start.map(|seconds| (seconds * 1e9) as u64),
        rows: vec![row],
        assumed: unless_reported(totals.block),
        ..Imported::default()
    })
}
