//! rapid (2003): the report of its receiver, with a section for each process and one of totals.
//!
//! Its megabits are 10^6 bit: 16388608000 bytes in 59.991 s are printed as 2185.476.

use model::{Count, Spec, Stop};

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row, unless_reported};
use crate::text::{lines, ns, number, whole};

/// rapid.
pub(super) const FORMAT: Format = Format { name: "rapid", help: "rapid's report of a transfer", detect, read };

fn detect(text: &str) -> Confidence {
    let has = |what: &str| text.contains(what);
    if has("total amount transferred:") && has("total throughput:") { Confidence::Certain } else { Confidence::No }
}

/// The number after `label`.
fn after(line: &str, label: &str) -> Option<f64> {
    number(line.trim().strip_prefix(label)?.split_whitespace().next()?)
}

#[derive(Default)]
struct Totals {
    bytes: Option<f64>,
    seconds: Option<f64>,
    start: Option<f64>,
    processes: u32,
    block: Option<u64>,
    target: Option<String>,
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
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
        totals.processes += u32::from(line.trim().starts_with("statistics for process"));
        totals.bytes = after(line, "total amount transferred:").or(totals.bytes);
        totals.seconds = after(line, "total elapsed time:").or(totals.seconds);
        totals.start = after(line, "the earliest start time of any child:").or(totals.start);
        if let Some(megabits) = after(line, "total throughput:") {
            match row(std::mem::take(&mut totals), megabits, number, line) {
                Ok(imported) => reading.imported.push(imported),
                Err(reason) => reading.refuse(number, reason),
            }
        }
    }
    reading
}

fn row(totals: Totals, megabits: f64, line: u32, text: &str) -> Result<Imported, String> {
    let (bytes, seconds) =
        totals.bytes.and_then(whole).zip(totals.seconds).ok_or("throughput without bytes and time")?;
    let value = megabits * 1e6;
    if !(seconds > 0.0 && (bytes as f64 * 8.0 / seconds / value - 1.0).abs() < 0.001) {
        return Err(format!("{megabits} megabits/sec contradicts {bytes} bytes in {seconds} s"));
    }
    let mut spec = Spec { stop: Stop::Bytes(bytes), ..Spec::new("tcp", "transfer") };
    spec.block = totals.block.unwrap_or(spec.block);
    spec.flows = totals.processes.max(1);
    spec.processes = spec.flows;
    let mut row = Row::new(spec, value, line, text);
    row.trial.far.report(Count::BytesReceived, bytes);
    row.trial.far.report(Count::ReceivingNs, ns(seconds));
    row.figure("bytes", bytes as f64);
    row.figure("elapsed_ns", seconds * 1e9);
    row.figure("throughput_bps", value);
    Ok(Imported {
        tool: "rapid".into(),
        kind: "transfer".into(),
        target: totals.target,
        measured_unix_ns: totals.start.map(|seconds| (seconds * 1e9) as u64),
        rows: vec![row],
        assumed: unless_reported(totals.block),
        ..Imported::default()
    })
}
