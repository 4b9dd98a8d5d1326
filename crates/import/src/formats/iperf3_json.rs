//! iperf3's JSON (3.1 to 3.21), one document or several concatenated, and the events of --json-stream (since 3.17).
//!
//! The keys are those of the program's own output: `start.test_start` is the request, `end` has the counts of each side
//! ([`ways`]). A server's file begins with the connection that it accepted; the server is then the near end.

mod connections;
mod ways;

use std::collections::BTreeMap;

use model::{Count, Direction, Interval, Pattern, RunKind, Spec, Stop, TransportName, Verdict};
use serde_json::Value;

use self::ways::{Way, ways};
use super::ImportFormat;
use crate::error::{ImportError, IperfError};
use crate::json::{Shape, documents, may_have_documents};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_NUMBER, block, lines, ns};

/// iperf3's JSON.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "iperf3-json", help: "iperf3 -J, whole or as events, 3.1 to 3.21", detect, read };

fn detect(text: &str) -> Certainty {
    let shaped = may_have_documents(text) && text.contains("\"start\"");
    if shaped && (text.contains("\"test_start\"") || text.contains("iperf 3")) {
        Certainty::Certain
    } else {
        Certainty::No
    }
}

/// The documents and events of iperf3. 3.7 to 3.9 write the sums of `--bidir` twice under one name.
const SHAPE: Shape = Shape {
    is_own: |document| ["event", "start", "end", "error"].iter().any(|key| document.get(*key).is_some()),
    may_repeat: |document, key| {
        let sums = ["intervals[].sum", "end.sum", "end.sum_sent", "end.sum_received"];
        sums.contains(&key) && sends_and_receives(&document["end"])
    },
};

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut tests = Tests::default();
    let mut streamed: Option<(u32, Value)> = None;
    for (line, found) in documents(text, SHAPE) {
        match found {
            Ok(document) => match event(document, line, &mut streamed) {
                Ok(Some((begun, document))) => tests.take(&document, begun, &mut reading),
                Ok(None) => {}
                Err(cut) => reading.refuse(cut, IperfError::CutEvents),
            },
            Err(refused) => reading.refused.push(refused),
        }
    }
    if let Some((begun, _)) = streamed {
        reading.refuse(begun, IperfError::CutEvents);
    }
    for (at, line) in lines(text) {
        if let Some(error) = line.strip_prefix("iperf3: ") {
            reading.refuse(at, ImportError::OwnError { program: "iperf3", error: error.trim().to_owned() });
        }
    }
    reading
}

/// The tests so far by their cookies, which both ends of a test and each of its outputs have.
#[derive(Default)]
struct Tests(BTreeMap<String, Test>);

/// A test that was imported: its line, its place among what was imported, and whether it is the server's document.
struct Test {
    line: u32,
    at: usize,
    by_server: bool,
}

impl Tests {
    /// Takes a document.
    fn take(&mut self, document: &Value, line: u32, reading: &mut TextReading) {
        let imported = match of_document(document, line) {
            Ok(imported) => imported,
            Err(reason) => return reading.refuse(line, reason),
        };
        let by_server = is_by_server(document);
        let Some(cookie) = string(&document["start"], "cookie") else { return reading.imported.push(imported) };
        let Some(known) = self.0.get_mut(&cookie) else {
            self.0.insert(cookie, Test { line, at: reading.imported.len(), by_server });
            return reading.imported.push(imported);
        };
        let earlier = &mut reading.imported[known.at];
        match (known.by_server, by_server) {
            (false, true) => {
                earlier.copies.push(format!("line {line} has the server's document of the same test: not imported"));
            }
            // The client's document has the figures of both ends.
            (true, false) => {
                let copies =
                    vec![format!("line {} has the server's document of the same test: not imported", known.line)];
                *earlier = Imported { copies, ..imported };
                (known.line, known.by_server) = (line, by_server);
            }
            _ if earlier.rows.iter().map(|row| &row.figures).eq(imported.rows.iter().map(|row| &row.figures)) => {
                earlier.copies.push(format!("line {line} repeats the test: imported once"));
            }
            _ => reading.refuse(line, IperfError::SameCookie(known.line)),
        }
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

fn float(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|value| (0.0..=MAX_NUMBER).contains(value))
}

fn count(value: &Value, key: &str) -> Option<u64> {
    float(value, key).filter(|value| value.fract() == 0.0).map(|value| value as u64)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// Whether a server wrote the document.
fn is_by_server(document: &Value) -> bool {
    let start = &document["start"];
    start.get("connecting_to").is_none() && start.get("accepted_connection").is_some()
}

fn of_document(document: &Value, line: u32) -> Result<Imported, ImportError> {
    let (start, end) = (&document["start"], &document["end"]);
    let error = string(document, "error");
    let by_server = is_by_server(document);
    let requested = match (start.get("test_start"), &error) {
        (Some(requested), _) => requested,
        (None, Some(error)) => return Err(IperfError::Ended(error.clone()).into()),
        (None, None) => return Err(IperfError::NotStarted.into()),
    };
    let lasted = ["sum_sent", "sum", "sum_received"].into_iter().find_map(|key| float(&end[key], "seconds"));
    let mut spec = spec(requested, by_server, lasted)?;
    connections::request(&mut spec, start);
    // 3.7 to 3.12 do not report --bidir in test_start.
    if end.get("sum_received_bidir_reverse").is_some() || sends_and_receives(end) {
        spec.direction = Direction::Both;
    }
    connections::congestion(&mut spec, end, by_server);
    let ways = ways(end, &spec, by_server)?;
    let nothing = ways.iter().all(|way| way.sent.or(way.received).is_none_or(|sum| sum.bytes == 0));
    if let Some(error) = error.as_ref().filter(|_| nothing) {
        return Err(IperfError::Ended(error.clone()).into());
    }
    if !by_server && ways.iter().any(|way| way.received.is_none()) {
        return Err(IperfError::NotReceived.into());
    }
    let received: Option<Vec<f64>> = ways.iter().map(|way| way.received.map(|sum| sum.bps)).collect();
    let version = string(start, "version").unwrap_or_default();
    let mut row = Row::new(spec.clone(), received.as_ref().map_or(0.0, |all| all.iter().sum()), line, &version);
    for way in &ways {
        tally(&mut row, way);
        if let Some(received) = way.received.filter(|_| ways.len() > 1 && !lost_everything(way)) {
            row.carried(way.outbound, received.bps);
        }
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
    if let Some(retransmits) = end["sum_sent"].get("retransmits").filter(|count| ways.len() == 1 && count.is_number()) {
        match connections::counted(retransmits) {
            Some(count) => row.figure("retransmits", count as f64),
            None => row.remarks.push(format!("{retransmits} retransmits is not a count: not imported")),
        }
    }
    connections::flows(&mut row, document, by_server);
    let client = if by_server { &start["accepted_connection"] } else { &start["connecting_to"] };
    let mut imported = Imported {
        tool: "iperf3".into(),
        version: string(start, "version").map(|version| version.trim_start_matches("iperf ").to_owned()),
        kind: RunKind::Stream,
        target: string(client, "host"),
        measured_unix_ns: count(&start["timestamp"], "timesecs").and_then(|s| s.checked_mul(1_000_000_000)),
        rows: vec![row],
        unknown: unknown(document),
        by_server,
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

/// The requested measurement, as the client or as the server. A test without a limit ran for the seconds that it `lasted`.
fn spec(requested: &Value, by_server: bool, lasted: Option<f64>) -> Result<Spec, ImportError> {
    let protocol = string(requested, "protocol").unwrap_or_default();
    let transport = match protocol.as_str() {
        "TCP" => "tcp",
        "UDP" => "udp",
        _ => return Err(IperfError::Protocol(protocol).into()),
    };
    let flag = |key: &str| count(requested, key).unwrap_or(0) > 0;
    let direction = match () {
        () if flag("bidir") => Direction::Both,
        () if flag("reverse") != by_server => Direction::Reverse,
        () => Direction::Send,
    };
    let mut spec = Spec { direction, ..Spec::new(transport, Pattern::Stream) };
    spec.block = float(requested, "blksize").and_then(block).ok_or(ImportError::Missing("block size"))?;
    spec.flows = count(requested, "num_streams").and_then(|flows| u32::try_from(flows).ok()).unwrap_or(1).max(1);
    // The rate of iperf3 is that of each stream.
    let rate = count(requested, "target_bitrate").filter(|rate| *rate > 0);
    spec.rate_bps = rate.and_then(|rate| rate.checked_mul(u64::from(spec.flows)));
    spec.warmup_ns = float(requested, "omit").map_or(0, ns);
    let more = |key: &str| count(requested, key).filter(|count| *count > 0);
    spec.stop = match (more("bytes"), more("blocks"), float(requested, "duration").map_or(0, ns)) {
        (Some(bytes), ..) => Stop::Bytes(bytes),
        (_, Some(blocks), _) => Stop::Blocks(blocks),
        (_, _, 0) => match lasted.map_or(0, ns) {
            0 => return Err(IperfError::Endless.into()),
            ns => Stop::TimeNs(ns),
        },
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
    if let Some((packets, lost)) = way.datagrams.filter(|_| row.spec.transport == TransportName::Udp) {
        sender.datagrams.get_or_insert_default().sent = packets;
        let arrived = receiver.datagrams.get_or_insert_default();
        (arrived.received, arrived.reordered) = (packets - lost, way.out_of_order.unwrap_or(0));
    }
    row.remarks.extend(way.remarks.iter().cloned());
    for (name, sum) in [("sum_sent", way.sent), ("sum_received", way.received)] {
        if let Some(sum) = sum {
            row.figure(&format!("{name}{}_bytes", way.suffix), sum.bytes as f64);
            row.figure(&format!("{name}{}_bps", way.suffix), sum.bps);
        }
    }
    if let Some((packets, lost)) = way.datagrams.filter(|_| row.spec.transport == TransportName::Udp) {
        row.figure(&format!("lost_packets{}", way.suffix), lost as f64);
        if let Some(count) = way.out_of_order {
            row.figure(&format!("out_of_order_packets{}", way.suffix), count as f64);
        }
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
        let Some(((start, end), bytes)) = figures.filter(|((start, end), _)| start < end) else { continue };
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
            "sock_bufsize",
            "sndbuf_actual",
            "rcvbuf_actual",
            "tcp_mss",
            "tcp_mss_default",
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
            "sender_tcp_congestion",
            "receiver_tcp_congestion",
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
