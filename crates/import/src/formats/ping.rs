//! ping of Linux, BSD and Windows: each printed round trip is a sample of one trial.

use model::{Path, Ping, RttTally, Spec, Verdict};

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row};
use crate::text::{MAX_ROWS, lines, ns, number, whole};

/// ping.
pub(super) const FORMAT: Format =
    Format { name: "ping", help: "ping's echoes (Linux, BSD, Windows), as round trips", detect, read };

fn detect(text: &str) -> Confidence {
    if lines(text).any(|(_, line)| head(line).is_some()) { Confidence::Certain } else { Confidence::No }
}

/// One ping.
#[derive(Default)]
struct Session {
    line: u32,
    text: String,
    peer: String,
    bytes: u64,
    /// Windows' ping, which prints whole milliseconds and counts answers of routers, such as "unreachable", as received.
    windows: bool,
    /// Printed round trips; those that are only known to be below 1 ms are 0.
    times_ms: Vec<f64>,
    below: bool,
    unread: usize,
    sent: Option<u32>,
    received: Option<u32>,
    /// Min, mean and max of ping's summary, ms.
    summary: Option<[f64; 3]>,
}

/// The peer and the payload of a first line: `PING NAME (ADDRESS) [from ADDRESS :] 56(84) bytes of data.`, `PING6(56=40+8+8 bytes) FROM
/// --> TO`, or `Pinging NAME [ADDRESS] with 32 bytes of data:`.
fn head(line: &str) -> Option<(&str, u64)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("PING6(") {
        let (sizes, rest) = rest.split_once(" bytes)")?;
        let payload = number(sizes.rsplit('+').next()?).and_then(whole)?;
        return Some((rest.split_once("--> ")?.1.split_whitespace().next()?, payload));
    }
    if let Some(rest) = line.strip_prefix("Pinging ") {
        let (peer, rest) = rest.split_once(" with ")?;
        let payload = number(rest.strip_suffix(" bytes of data:")?).and_then(whole)?;
        return Some((peer.split_whitespace().next()?, payload));
    }
    let rest = line.strip_prefix("PING ")?;
    let peer = rest.split([' ', '(']).next().filter(|peer| !peer.is_empty())?;
    let (before, _) = rest.rsplit_once("bytes").or_else(|| rest.rsplit_once(" data"))?;
    // `56(84)`, the payload and the packet, or `(ADDRESS) 56 data`.
    let size =
        before.split_whitespace().rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()) && *word != peer)?;
    let payload = number(size.split('(').next()?).and_then(whole)?;
    Some((peer, payload))
}

/// The round trip of a reply, ms: `time=0.12 ms` or `time=12ms`; 0 for `time<1ms`.
fn round_trip(line: &str) -> Option<f64> {
    let word = |sign: &str| line.split_once(sign)?.1.split_whitespace().next()?.trim_end_matches("ms").into();
    let known: Option<&str> = word(" time=");
    known.and_then(number).or_else(|| word(" time<").and_then(number).map(|_| 0.0))
}

/// The first number after `label`.
fn after(line: &str, label: &str) -> Option<f64> {
    let rest = line.split_once(label)?.1.trim_start();
    number(rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?)
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut open: Option<Session> = None;
    for (number_of_line, line) in lines(text) {
        if let Some((peer, bytes)) = head(line) {
            close(open.take(), &mut reading);
            open = Some(Session {
                line: number_of_line,
                text: line.to_owned(),
                peer: peer.to_owned(),
                bytes,
                windows: line.trim().starts_with("Pinging "),
                ..Session::default()
            });
            continue;
        }
        let Some(session) = &mut open else { continue };
        if let Some(ms) = round_trip(line) {
            session.below |= ms == 0.0;
            if session.times_ms.len() < MAX_ROWS {
                session.times_ms.push(ms);
            } else {
                session.unread += 1;
            }
        } else if line.contains(" transmitted, ") {
            let count = |part: &str| whole(number(part.split_whitespace().next()?)?)?.try_into().ok();
            let mut parts = line.split(',');
            session.sent = parts.next().and_then(count);
            session.received = parts.next().and_then(count);
        } else if session.windows && line.contains("Packets: Sent = ") {
            let count = |label: &str| after(line, label).and_then(whole)?.try_into().ok();
            (session.sent, session.received) = (count("Sent ="), count("Received ="));
        } else if session.windows && line.contains("Minimum = ") {
            let figure = |label: &str| after(line, label);
            let [min, mean, max] = ["Minimum =", "Average =", "Maximum ="].map(figure);
            session.summary = (|| Some([min?, mean?, max?]))();
        } else if line.contains("min/avg/max") {
            let figures: Vec<f64> =
                line.split('=').nth(1).into_iter().flat_map(|rest| rest.split(['/', ' '])).filter_map(number).collect();
            session.summary = figures.get(..3).and_then(|three| three.try_into().ok());
        }
    }
    close(open, &mut reading);
    reading
}

/// The shortest median of which whole milliseconds are within 5 %, ms.
const COARSE_BELOW_MS: f64 = 10.0;

fn close(session: Option<Session>, reading: &mut Reading) {
    let Some(session) = session else { return };
    let Session { line, text, peer, bytes, windows, times_ms, below, unread, sent, received, summary } = session;
    if unread > 0 {
        reading.refuse(line, format!("more than {MAX_ROWS} replies; the other {unread} were not imported"));
    }
    let in_ns = |ms: f64| ns(ms / 1e3);
    let printed = u32::try_from(times_ms.len() + unread).unwrap_or(u32::MAX);
    // What is below 1 ms has no value; those above have the right ranks.
    let known = |ms: &f64| *ms > 0.0 || !below;
    let min = times_ms.iter().copied().reduce(f64::min).or(summary.map(|three| three[0])).filter(known);
    let max = times_ms.iter().copied().reduce(f64::max).or(summary.map(|three| three[2])).filter(known);
    let median_ms = model::median(&times_ms).filter(|ms| *ms >= 1.0 || !below);
    let ping = Ping {
        method: "ping".into(),
        sent: sent.unwrap_or(printed),
        received: received.filter(|_| !windows).unwrap_or(printed),
        // The payload, 8 bytes of ICMP and the IP header.
        packet_bytes: u32::try_from(bytes.saturating_add(if peer.contains(':') { 48 } else { 28 })).unwrap_or(u32::MAX),
        min_ns: min.map(in_ns),
        median_ns: median_ms.map(in_ns),
        max_ns: max.map(in_ns),
    };
    let notes = vec![format!("{} of {} echo requests were answered", ping.received, ping.sent)];
    let mut rows = Vec::new();
    let spec = Spec { block: bytes.max(1), ..Spec::new("icmp", "pingpong") };
    if let Some(median_ms) = median_ms {
        let mut row = Row::new(spec, median_ms * 1e6, line, &text);
        // A mean of values that are only known to be short is not known.
        row.trial.near.rtt = min.zip(max).map(|(min, max)| RttTally {
            count: times_ms.len() as u64,
            min_ns: in_ns(min),
            p50_ns: in_ns(median_ms),
            mean_ns: times_ms.iter().sum::<f64>() / times_ms.len() as f64 * 1e6,
            p99_ns: None,
            max_ns: in_ns(max),
            batch: 1,
            histogram: None,
        });
        summarise(&mut row, summary.filter(|_| !below));
        if windows && median_ms < COARSE_BELOW_MS {
            row.flag(Verdict::ResolutionLimited, "whole milliseconds have too few digits for an accuracy of 5 %");
        }
        rows.push(row);
        if sent.is_none() {
            reading.refuse(line, format!("ping {peer} has no summary: the text is cut"));
        }
    } else if below {
        let mut row = Row::new(spec, 0.0, line, &text);
        row.trial.value = None;
        row.flag(Verdict::ResolutionLimited, "the median round trip is below 1 ms, the shortest time that is printed");
        rows.push(row);
    } else if let Some(summary) = summary {
        // With -q and -f.
        let mut row = Row::new(spec, summary[1] * 1e6, line, &text);
        summarise(&mut row, Some(summary));
        row.remarks.push("no round trips, only the summary: the value is the mean, not the median".into());
        rows.push(row);
    } else if sent.is_some_and(|sent| sent > 0) {
        let mut row = Row::new(spec, 0.0, line, &text);
        row.trial.value = None;
        if ping.received > 0 {
            row.remarks
                .push("no round trips: a payload of fewer than 16 bytes has no room for ping's time stamp".into());
        }
        rows.push(row);
    } else {
        reading.refuse(line, format!("ping {peer} has no reply and no summary"));
        return;
    }
    for row in &mut rows {
        row.figure("echoes_sent", f64::from(ping.sent));
        row.figure("echoes_received", f64::from(ping.received));
        if ping.received < ping.sent {
            row.flag(Verdict::Loss, format!("{} of {} echoes were lost", ping.sent - ping.received, ping.sent));
        }
    }
    reading.imported.push(Imported {
        tool: "ping".into(),
        kind: "rr".into(),
        target: Some(peer.clone()),
        path: Some(Path { peer, ping: Some(ping), ..Path::default() }),
        rows,
        notes,
        ..Imported::default()
    });
}

fn summarise(row: &mut Row, summary: Option<[f64; 3]>) {
    let Some([min, mean, max]) = summary else { return };
    row.figure("summary_min_ns", min * 1e6);
    row.figure("summary_mean_ns", mean * 1e6);
    row.figure("summary_max_ns", max * 1e6);
}
