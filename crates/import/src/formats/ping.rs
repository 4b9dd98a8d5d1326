//! ping: each printed round trip is a sample of one trial.

use model::{Path, Ping, RttTally, Spec, Verdict};

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row};
use crate::text::{MAX_ROWS, lines, ns, number, whole};

/// ping.
pub(super) const FORMAT: Format = Format { name: "ping", help: "ping's echoes, as round trips", detect, read };

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
    times_ms: Vec<f64>,
    sent: Option<u32>,
    received: Option<u32>,
    /// Min, mean and max of ping's summary, ms.
    summary: Option<[f64; 3]>,
}

/// `PING NAME (ADDRESS) [from ADDRESS :] 56(84) bytes of data.`: the peer and the payload.
fn head(line: &str) -> Option<(&str, u64)> {
    let rest = line.trim().strip_prefix("PING ")?;
    let peer = rest.split([' ', '(']).next().filter(|peer| !peer.is_empty())?;
    let (before, _) = rest.rsplit_once("bytes").or_else(|| rest.rsplit_once(" data"))?;
    // `56(84)`, the payload and the packet, or `(ADDRESS) 56 data`.
    let size =
        before.split_whitespace().rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()) && *word != peer)?;
    let payload = number(size.split('(').next()?).and_then(whole)?;
    Some((peer, payload))
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
                ..Session::default()
            });
            continue;
        }
        let Some(session) = &mut open else { continue };
        if let Some(ms) = line.split("time=").nth(1).and_then(|rest| number(rest.split_whitespace().next()?)) {
            if session.times_ms.len() < MAX_ROWS {
                session.times_ms.push(ms);
            }
        } else if line.contains(" transmitted, ") {
            let count = |part: &str| whole(number(part.split_whitespace().next()?)?)?.try_into().ok();
            let mut parts = line.split(',');
            session.sent = parts.next().and_then(count);
            session.received = parts.next().and_then(count);
        } else if line.contains("min/avg/max") {
            let figures: Vec<f64> =
                line.split('=').nth(1).into_iter().flat_map(|rest| rest.split(['/', ' '])).filter_map(number).collect();
            session.summary = figures.get(..3).and_then(|three| three.try_into().ok());
        }
    }
    close(open, &mut reading);
    reading
}

fn close(session: Option<Session>, reading: &mut Reading) {
    let Some(session) = session else { return };
    let Session { line, text, peer, bytes, times_ms, sent, received, summary } = session;
    let in_ns = |ms: f64| ns(ms / 1e3);
    let min = times_ms.iter().copied().reduce(f64::min).or(summary.map(|three| three[0]));
    let max = times_ms.iter().copied().reduce(f64::max).or(summary.map(|three| three[2]));
    let median_ms = model::median(&times_ms);
    let ping = Ping {
        method: "ping".into(),
        sent: sent.unwrap_or_else(|| u32::try_from(times_ms.len()).unwrap_or(u32::MAX)),
        received: received.unwrap_or_else(|| u32::try_from(times_ms.len()).unwrap_or(u32::MAX)),
        // The payload, 8 bytes of ICMP and the IP header.
        packet_bytes: u32::try_from(bytes.saturating_add(if peer.contains(':') { 48 } else { 28 })).unwrap_or(u32::MAX),
        min_ns: min.map(in_ns),
        median_ns: median_ms.map(in_ns),
        max_ns: max.map(in_ns),
    };
    let notes = vec![format!("{} of {} echo requests were answered", ping.received, ping.sent)];
    let mut rows = Vec::new();
    if let (Some(median_ms), Some(min), Some(max)) = (median_ms, min, max) {
        let spec = Spec { block: bytes.max(1), ..Spec::new("icmp", "pingpong") };
        let mut row = Row::new(spec, median_ms * 1e6, line, &text);
        row.trial.near.rtt = Some(RttTally {
            count: times_ms.len() as u64,
            min_ns: in_ns(min),
            p50_ns: in_ns(median_ms),
            mean_ns: times_ms.iter().sum::<f64>() / times_ms.len() as f64 * 1e6,
            p99_ns: None,
            max_ns: in_ns(max),
            batch: 1,
            histogram: None,
        });
        if let Some([min, mean, max]) = summary {
            row.figure("summary_min_ns", min * 1e6);
            row.figure("summary_mean_ns", mean * 1e6);
            row.figure("summary_max_ns", max * 1e6);
        }
        rows.push(row);
        if sent.is_none() {
            reading.refuse(line, format!("ping {peer} has no summary: the text is cut"));
        }
    } else if let Some([min, mean, max]) = summary {
        // With -q and -f.
        let spec = Spec { block: bytes.max(1), ..Spec::new("icmp", "pingpong") };
        let mut row = Row::new(spec, mean * 1e6, line, &text);
        row.figure("summary_min_ns", min * 1e6);
        row.figure("summary_mean_ns", mean * 1e6);
        row.figure("summary_max_ns", max * 1e6);
        row.remarks.push("no round trips, only the summary: the value is the mean, not the median".into());
        rows.push(row);
    } else if ping.received == 0 && sent.is_some_and(|sent| sent > 0) {
        let spec = Spec { block: bytes.max(1), ..Spec::new("icmp", "pingpong") };
        let mut row = Row::new(spec, 0.0, line, &text);
        row.trial.value = None;
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
