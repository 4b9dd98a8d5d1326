//! iperf3's JSON (3.1 to 3.21), one document or several concatenated, and the events of --json-stream (since 3.17).
//!
//! The keys are those of the program's own output: `start.test_start` is the request, `end.sum_sent` and `end.sum_received`
//! the counts of each side; before 3.10 a UDP test has `end.sum` alone.

use model::{Count, DatagramTally, Direction, Interval, Spec, Stop, Verdict};
use serde_json::Value;

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row};
use crate::text::{block, ns, whole};

/// iperf3's JSON.
pub(super) const FORMAT: Format =
    Format { name: "iperf3-json", help: "iperf3 -J, whole or as events, 3.1 to 3.21", detect, read };

fn detect(text: &str) -> Confidence {
    let shaped = text.trim_start().starts_with('{') && text.contains("\"start\"");
    if shaped && (text.contains("\"test_start\"") || text.contains("iperf 3")) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut rest = text;
    let mut line = 1;
    let mut streamed: Option<(u32, Value)> = None;
    while !rest.trim().is_empty() {
        let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let document = documents.next();
        let used = documents.byte_offset();
        match document {
            Some(Ok(document)) => {
                match event(document, line, &mut streamed) {
                    Ok(Some((begun, document))) => take(&document, begun, &mut reading),
                    Ok(None) => {}
                    Err(cut) => reading.refuse(cut, CUT),
                }
                line += newlines(&rest[..used]);
                rest = &rest[used..];
            }
            Some(Err(error)) => {
                let at = line + u32::try_from(error.line().saturating_sub(1)).unwrap_or(0);
                reading.refuse(at, format!("not valid JSON: {error}"));
                break;
            }
            None => break,
        }
    }
    if let Some((begun, _)) = streamed {
        reading.refuse(begun, CUT);
    }
    reading
}

/// The reason for a stream of events that does not end.
const CUT: &str = "the events end without an end of the test";

fn take(document: &Value, line: u32, reading: &mut Reading) {
    match of_document(document, line) {
        Ok(imported) => reading.imported.push(imported),
        Err(reason) => reading.refuse(line, reason),
    }
}

/// A whole document with its line: `document`, or the one that the events so far make if this is the last of them.
///
/// # Errors
/// The line of earlier events without an end.
fn event(mut document: Value, line: u32, streamed: &mut Option<(u32, Value)>) -> Result<Option<(u32, Value)>, u32> {
    let Some(name) = string(&document, "event") else { return Ok(Some((line, document))) };
    let data = document["data"].take();
    if name == "start" {
        let begun = serde_json::json!({ "start": data, "intervals": [], "end": {} });
        return streamed.replace((line, begun)).map_or(Ok(None), |(cut, _)| Err(cut));
    }
    let Some((begun, mut whole)) = streamed.take() else { return Ok(None) };
    match name.as_str() {
        "interval" => {
            if let Some(all) = whole["intervals"].as_array_mut() {
                all.push(data);
            }
        }
        "end" => {
            whole["end"] = data;
            return Ok(Some((begun, whole)));
        }
        "error" => {
            whole["error"] = data;
            return Ok(Some((begun, whole)));
        }
        _ => {}
    }
    *streamed = Some((begun, whole));
    Ok(None)
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

fn float(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|value| (0.0..=1e14).contains(value))
}

fn count(value: &Value, key: &str) -> Option<u64> {
    float(value, key).and_then(whole)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// Bytes, nanoseconds and bit/s of one of the sums.
struct Sum {
    bytes: u64,
    ns: u64,
    bps: f64,
}

impl Sum {
    /// Rounding of a rate that follows from the bytes and the time beside it.
    const ROUNDING: f64 = 0.01;

    /// Refuses a rate that the bytes and the time contradict.
    fn check(&self, key: &str) -> Result<(), String> {
        let seconds = self.ns as f64 / 1e9;
        let derived = self.bytes as f64 * 8.0 / seconds;
        if self.ns == 0 || (derived - self.bps).abs() <= Self::ROUNDING * derived.max(self.bps) {
            return Ok(());
        }
        Err(format!("end.{key}: {} bytes in {seconds} s contradict {} bit/s", self.bytes, self.bps))
    }

    fn of(end: &Value, key: &str) -> Option<Self> {
        let sum = end.get(key)?;
        let (bytes, seconds) = (count(sum, "bytes")?, float(sum, "seconds")?);
        let ns = ns(seconds);
        // A missing rate follows from bytes and time.
        let bps = float(sum, "bits_per_second").or_else(|| (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds))?;
        Some(Self { bytes, ns, bps })
    }
}

fn of_document(document: &Value, line: u32) -> Result<Imported, String> {
    let (start, end) = (&document["start"], &document["end"]);
    if let Some(error) = string(document, "error") {
        return Err(format!("iperf3 ended with an error: {error}"));
    }
    let requested = start.get("test_start").ok_or("no start.test_start: the test did not start")?;
    let mut spec = spec(requested)?;
    // 3.12 does not report --bidir in test_start.
    if end.get("sum_received_bidir_reverse").is_some() {
        spec.direction = Direction::Both;
    }
    let udp = spec.transport == "udp";
    let one = |key: &str| Sum::of(end, key);
    for key in ["sum", "sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"] {
        one(key).map_or(Ok(()), |sum| sum.check(key))?;
    }
    let sent = one("sum_sent").or_else(|| one("sum"));
    let received = one("sum_received").or_else(|| if udp { one("sum") } else { None });
    let received = received.ok_or("no end.sum_received: the test did not complete")?;
    let returned = one("sum_received_bidir_reverse");
    let value = received.bps + returned.as_ref().map_or(0.0, |sum| sum.bps);
    let first = document.get("start").and_then(|start| string(start, "version")).unwrap_or_default();
    let mut row = Row::new(spec.clone(), value, line, &first);
    for (key, sum) in
        [("sum_sent", &sent), ("sum_received", &Some(received)), ("sum_received_bidir_reverse", &returned)]
    {
        if let Some(sum) = sum {
            row.figure(&format!("{key}_bytes"), sum.bytes as f64);
            row.figure(&format!("{key}_bps"), sum.bps);
        }
    }
    tallies(&mut row, end, &spec);
    if value <= 0.0 && sent.as_ref().is_some_and(|sent| sent.bytes > 0) {
        row.trial.value = None;
        row.flag(Verdict::ByteCountMismatch, "iperf3 reports bytes sent and none received, so there is no goodput");
    }
    intervals(&mut row, document, spec.direction);
    for (side, name) in [("host", "local"), ("remote", "remote")] {
        for part in ["total", "user", "system"] {
            if let Some(percent) = float(&end["cpu_utilization_percent"], &format!("{side}_{part}")) {
                row.figure(&format!("{name}_cpu_{part}_percent"), percent);
            }
        }
    }
    if let Some(retransmits) = float(&end["sum_sent"], "retransmits") {
        row.figure("retransmits", retransmits);
    }
    let mut imported = Imported {
        tool: "iperf3".into(),
        version: string(start, "version").map(|version| version.trim_start_matches("iperf ").to_owned()),
        kind: "stream".into(),
        target: string(&start["connecting_to"], "host"),
        measured_unix_ns: count(&start["timestamp"], "timesecs").and_then(|s| s.checked_mul(1_000_000_000)),
        rows: vec![row],
        unknown: unknown(document),
        ..Imported::default()
    };
    let system = string(start, "system_info").unwrap_or_default();
    let mut words = system.split_whitespace();
    if words.next() == Some("Linux") {
        imported.near.hostname = words.next().map(str::to_owned);
        imported.near.kernel = words.next().map(str::to_owned);
    }
    Ok(imported)
}

/// The requested measurement.
fn spec(requested: &Value) -> Result<Spec, String> {
    let protocol = string(requested, "protocol").unwrap_or_default();
    let transport = match protocol.as_str() {
        "TCP" => "tcp",
        "UDP" => "udp",
        other => return Err(format!("protocol '{other}' is not supported")),
    };
    let flag = |key: &str| count(requested, key).unwrap_or(0) > 0;
    let direction = match () {
        () if flag("bidir") => Direction::Both,
        () if flag("reverse") => Direction::Reverse,
        () => Direction::Send,
    };
    let mut spec = Spec { direction, ..Spec::new(transport, "stream") };
    spec.block = float(requested, "blksize").and_then(block).ok_or("no block size")?;
    spec.flows = count(requested, "num_streams").and_then(|flows| u32::try_from(flows).ok()).unwrap_or(1).max(1);
    spec.rate_bps = count(requested, "target_bitrate").filter(|rate| *rate > 0);
    spec.warmup_ns = float(requested, "omit").map_or(0, ns);
    let more = |key: &str| count(requested, key).filter(|count| *count > 0);
    spec.stop = match (more("bytes"), more("blocks"), float(requested, "duration").map_or(0, ns)) {
        (Some(bytes), ..) => Stop::Bytes(bytes),
        (_, Some(blocks), _) => Stop::Blocks(blocks),
        (_, _, 0) => return Err("no duration, bytes or blocks to end the test".into()),
        (.., ns) => Stop::TimeNs(ns),
    };
    Ok(spec)
}

/// Bytes and times of both ends, and datagrams.
fn tallies(row: &mut Row, end: &Value, spec: &Spec) {
    let directions: &[(&str, bool)] = match spec.direction {
        Direction::Send => &[("", true)],
        Direction::Reverse => &[("", false)],
        Direction::Both => &[("", true), ("_bidir_reverse", false)],
    };
    for (suffix, outbound) in directions {
        let sent = Sum::of(end, &format!("sum_sent{suffix}"));
        let received = Sum::of(end, &format!("sum_received{suffix}")).or_else(|| Sum::of(end, "sum"));
        let (near, far) = (&mut row.trial.near, &mut row.trial.far);
        let (sender, receiver) = if *outbound { (near, far) } else { (far, near) };
        if let Some(sent) = sent {
            sender.report(Count::BytesSent, sent.bytes);
            sender.report(Count::SendingNs, sent.ns);
        }
        if let Some(received) = received {
            receiver.report(Count::BytesReceived, received.bytes);
            receiver.report(Count::ReceivingNs, received.ns);
        }
        let sum = end.get(format!("sum_received{suffix}")).or_else(|| end.get("sum")).unwrap_or(&Value::Null);
        if let Some((packets, lost)) =
            count(sum, "packets").zip(count(sum, "lost_packets")).filter(|_| spec.transport == "udp")
        {
            sender.datagrams.get_or_insert_default().sent = packets;
            let tally = DatagramTally { received: packets.saturating_sub(lost), ..DatagramTally::default() };
            let counts = receiver.datagrams.get_or_insert_default();
            counts.received = tally.received;
            row.figure("lost_packets", lost as f64);
            if let Some(jitter) = float(sum, "jitter_ms") {
                row.figure("jitter_ns", jitter * 1e6);
            }
            if lost > 0 {
                row.flag(Verdict::Loss, format!("{lost} of {packets} datagrams were lost"));
            }
        }
    }
}

/// The local side's series over time.
fn intervals(row: &mut Row, document: &Value, direction: Direction) {
    let Some(all) = document.get("intervals").and_then(Value::as_array) else { return };
    for interval in all {
        let Some(sum) = interval.get("sum") else { continue };
        if sum.get("omitted").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let figures = float(sum, "start").zip(float(sum, "end")).zip(count(sum, "bytes"));
        let Some(((start, end), bytes)) = figures else { continue };
        let returned = interval.get("sum_bidir_reverse").and_then(|sum| count(sum, "bytes")).unwrap_or(0);
        let (bytes_sent, bytes_received) = match direction {
            Direction::Reverse => (0, bytes),
            Direction::Send | Direction::Both => (bytes, returned),
        };
        row.trial.near.intervals.push(Interval {
            start_ns: ns(start),
            end_ns: ns(end),
            bytes_sent,
            bytes_received,
            transactions: 0,
        });
    }
}

/// Keys that this reader knows, by their object.
const KNOWN: &[(&str, &[&str])] = &[
    ("start", &["connected", "version", "system_info", "timestamp", "connecting_to", "test_start", "target_bitrate"]),
    (
        "end",
        &[
            "streams",
            "sum",
            "sum_sent",
            "sum_received",
            "sum_sent_bidir_reverse",
            "sum_received_bidir_reverse",
            "cpu_utilization_percent",
        ],
    ),
];

/// The keys that are not imported.
fn unknown(document: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (object, known) in KNOWN {
        let keys = document.get(object).and_then(Value::as_object).into_iter().flat_map(|object| object.keys());
        names.extend(keys.filter(|key| !known.contains(&key.as_str())).map(|key| format!("{object}.{key}")));
    }
    let top = document.as_object().into_iter().flat_map(|object| object.keys());
    names.extend(top.filter(|key| !["start", "intervals", "end"].contains(&key.as_str())).cloned());
    names
}
