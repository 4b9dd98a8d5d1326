//! iperf3's JSON (3.1 to 3.21), one document or several concatenated, and the events of --json-stream (since 3.17).
//!
//! The keys are those of the program's own output: `start.test_start` is the request, `end` has the counts of each side
//! ([`ways`]). A server's file begins with the connection that it accepted; the server is then the near end.

mod ways;

use model::{Count, Direction, Interval, Spec, Stop, Verdict};
use serde_json::Value;

use self::ways::{Way, ways};
use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row};
use crate::text::{MAX_NUMBER, block, ns};

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
    value.get(key)?.as_f64().filter(|value| (0.0..=MAX_NUMBER).contains(value))
}

fn count(value: &Value, key: &str) -> Option<u64> {
    float(value, key).filter(|value| value.fract() == 0.0).map(|value| value as u64)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn of_document(document: &Value, line: u32) -> Result<Imported, String> {
    let (start, end) = (&document["start"], &document["end"]);
    let error = string(document, "error");
    let by_server = start.get("connecting_to").is_none() && start.get("accepted_connection").is_some();
    let requested = match (start.get("test_start"), &error) {
        (Some(requested), _) => requested,
        (None, Some(error)) => return Err(format!("iperf3 ended with an error: {error}")),
        (None, None) => return Err("no start.test_start: the test did not start".into()),
    };
    let mut spec = spec(requested, by_server)?;
    // 3.7 to 3.12 do not report --bidir in test_start.
    if end.get("sum_received_bidir_reverse").is_some() || sends_and_receives(end) {
        spec.direction = Direction::Both;
    }
    let ways = ways(end, &spec, by_server)?;
    let nothing = ways.iter().all(|way| way.sent.or(way.received).is_none_or(|sum| sum.bytes == 0));
    if let Some(error) = error.as_ref().filter(|_| nothing) {
        return Err(format!("iperf3 ended with an error: {error}"));
    }
    if !by_server && ways.iter().any(|way| way.received.is_none()) {
        return Err("no end.sum_received: the test did not complete".into());
    }
    let received: Option<Vec<f64>> = ways.iter().map(|way| way.received.map(|sum| sum.bps)).collect();
    let version = string(start, "version").unwrap_or_default();
    let mut row = Row::new(spec.clone(), received.as_ref().map_or(0.0, |all| all.iter().sum()), line, &version);
    for way in &ways {
        tally(&mut row, way);
    }
    if received.is_none() {
        row.trial.value = None;
        row.flag(
            Verdict::ByteCountMismatch,
            "a server's file does not say what its client received, so there is no goodput",
        );
    } else if let Some(way) = ways.iter().find(|way| lost_everything(way)) {
        let direction = if way.outbound { "outbound" } else { "return" };
        let what = if ways.len() > 1 { format!(" on the {direction} direction") } else { String::new() };
        row.trial.value = None;
        row.flag(
            Verdict::ByteCountMismatch,
            format!("iperf3 reports bytes sent and none received{what}, so there is no goodput"),
        );
    }
    if let Some(error) = error {
        row.flag(Verdict::CutShort, format!("iperf3 ended with an error: {error}"));
    }
    intervals(&mut row, document, spec.direction, by_server);
    for (side, name) in [("host", "local"), ("remote", "remote")] {
        for part in ["total", "user", "system"] {
            if let Some(percent) = float(&end["cpu_utilization_percent"], &format!("{side}_{part}")) {
                row.figure(&format!("{name}_cpu_{part}_percent"), percent);
            }
        }
    }
    if let Some(retransmits) = float(&end["sum_sent"], "retransmits").filter(|_| ways.len() == 1) {
        row.figure("retransmits", retransmits);
    }
    let client = if by_server { &start["accepted_connection"] } else { &start["connecting_to"] };
    let mut imported = Imported {
        tool: "iperf3".into(),
        version: string(start, "version").map(|version| version.trim_start_matches("iperf ").to_owned()),
        kind: "stream".into(),
        target: string(client, "host"),
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

/// Whether this end sent on some streams and received on others.
fn sends_and_receives(end: &Value) -> bool {
    let streams = || end.get("streams").and_then(Value::as_array).into_iter().flatten();
    let sends = |wanted: bool| {
        streams().any(|stream| ["sender", "udp"].iter().any(|name| stream[*name]["sender"] == Value::Bool(wanted)))
    };
    sends(true) && sends(false)
}

/// Whether a direction sent bytes and its receiver reports none, as where its results were never fetched. Datagrams may all be lost.
fn lost_everything(way: &Way) -> bool {
    let counted = way.datagrams.is_some_and(|(sent, lost)| sent > 0 && lost == sent);
    way.sent.is_some_and(|sum| sum.bytes > 0) && way.received.is_some_and(|sum| sum.bytes == 0) && !counted
}

/// The requested measurement, as the client or as the server.
fn spec(requested: &Value, by_server: bool) -> Result<Spec, String> {
    let protocol = string(requested, "protocol").unwrap_or_default();
    let transport = match protocol.as_str() {
        "TCP" => "tcp",
        "UDP" => "udp",
        other => return Err(format!("protocol '{other}' is not supported")),
    };
    let flag = |key: &str| count(requested, key).unwrap_or(0) > 0;
    let direction = match () {
        () if flag("bidir") => Direction::Both,
        () if flag("reverse") != by_server => Direction::Reverse,
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

/// Bytes, times and datagrams of both ends of a direction.
fn tally(row: &mut Row, way: &Way) {
    let (near, far) = (&mut row.trial.near, &mut row.trial.far);
    let (sender, receiver) = if way.outbound { (near, far) } else { (far, near) };
    if let Some(sent) = way.sent {
        sender.report(Count::BytesSent, sent.bytes);
        sender.report(Count::SendingNs, sent.ns);
    }
    if let Some(received) = way.received {
        receiver.report(Count::BytesReceived, received.bytes);
        receiver.report(Count::ReceivingNs, received.ns);
    }
    if let Some((packets, lost)) = way.datagrams.filter(|_| row.spec.transport == "udp") {
        sender.datagrams.get_or_insert_default().sent = packets;
        receiver.datagrams.get_or_insert_default().received = packets - lost;
    }
    for (name, sum) in [("sum_sent", way.sent), ("sum_received", way.received)] {
        if let Some(sum) = sum {
            row.figure(&format!("{name}{}_bytes", way.suffix), sum.bytes as f64);
            row.figure(&format!("{name}{}_bps", way.suffix), sum.bps);
        }
    }
    if let Some((packets, lost)) = way.datagrams.filter(|_| row.spec.transport == "udp") {
        row.figure(&format!("lost_packets{}", way.suffix), lost as f64);
        if let Some(jitter) = way.jitter_ms {
            row.figure(&format!("jitter{}_ns", way.suffix), jitter * 1e6);
        }
        if lost > 0 {
            row.flag(Verdict::Loss, format!("{lost} of {packets} datagrams were lost"));
        }
    }
}

/// The local side's series over time.
fn intervals(row: &mut Row, document: &Value, direction: Direction, by_server: bool) {
    let Some(all) = document.get("intervals").and_then(Value::as_array) else { return };
    for interval in all {
        let Some(sum) = interval.get("sum") else { continue };
        if sum.get("omitted").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let figures = float(sum, "start").zip(float(sum, "end")).zip(count(sum, "bytes"));
        let Some(((start, end), bytes)) = figures else { continue };
        let returned = interval.get("sum_bidir_reverse").and_then(|sum| count(sum, "bytes"));
        let (bytes_sent, bytes_received) = match (direction, returned) {
            (Direction::Reverse, _) => (0, bytes),
            (Direction::Send, _) => (bytes, 0),
            // The client's direction comes first.
            (Direction::Both, Some(returned)) if by_server => (returned, bytes),
            (Direction::Both, Some(returned)) => (bytes, returned),
            // Before 3.10 both sums have one name.
            (Direction::Both, None) => continue,
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
    (
        "start",
        &[
            "connected",
            "version",
            "system_info",
            "timestamp",
            "connecting_to",
            "accepted_connection",
            "test_start",
            "target_bitrate",
        ],
    ),
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
    names.extend(top.filter(|key| !["start", "intervals", "end", "error"].contains(&key.as_str())).cloned());
    names
}
