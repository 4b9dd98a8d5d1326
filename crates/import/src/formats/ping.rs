//! ping of Linux, BSD and Windows: each printed round trip is a sample of one trial.

use std::collections::BTreeSet;

use model::{Path, Pattern, Ping, RttTally, RunKind, Spec, Verdict};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, PathError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, after, half_digit, lines, ns, number, whole};

/// ping.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "ping", help: "ping's echoes (Linux, BSD, Windows), as round trips", detect, read };

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| head(line).is_some()) { Certainty::Certain } else { Certainty::No }
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
    /// Further replies to an echo that was answered, which some systems mark (`DUP!`).
    duplicates: usize,
    /// Numbers of the echoes that were answered since they last began again.
    answered: BTreeSet<u64>,
    /// Half of the last digit of the coarsest round trip, ms.
    rounding_ms: f64,
    /// A round trip that is not a number.
    unreadable: Option<(u32, String)>,
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

/// The words of a reply's round trip: `0.12` of `time=0.12 ms` or `time=0.12ms`, `<1` of `time<1ms`.
fn round_trip(line: &str) -> Option<&str> {
    (line.contains(" bytes from ") || line.starts_with("Reply from ")).then_some(())?;
    let exact = line.split_once(" time=").map(|(_, rest)| rest);
    let below = || line.find(" time<").map(|at| &line[at + " time".len()..]);
    Some(exact.or_else(below)?.split_whitespace().next()?.trim_end_matches("ms"))
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
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
        if let Some(word) = round_trip(line.trim_start()) {
            session.reply(number_of_line, line, word);
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
            if let (None, Some((_, printed))) = (session.summary, line.split_once('=')) {
                session.unreadable.get_or_insert((number_of_line, printed.trim().to_owned()));
            }
        }
    }
    close(open, &mut reading);
    reading
}

/// Half of the echoes whose numbers differ: the numbers begin again after 65,535.
const HALF_RANGE: u64 = 32_768;

impl Session {
    /// Takes the round trip of a reply.
    fn reply(&mut self, at: u32, line: &str, word: &str) {
        if line.contains("(DUP!)") || self.is_answered(line) {
            self.duplicates += 1;
            return;
        }
        let below = word.starts_with('<');
        match number(word.trim_start_matches('<')) {
            None => {
                self.unreadable.get_or_insert((at, word.to_owned()));
            }
            Some(_) if self.times_ms.len() >= MAX_ROWS => self.unread += 1,
            Some(ms) => {
                self.below |= below;
                self.rounding_ms = self.rounding_ms.max(half_digit(word));
                self.times_ms.push(if below { 0.0 } else { ms });
            }
        }
    }

    /// Whether the echo of a reply has an answer. Windows does not number them.
    fn is_answered(&mut self, line: &str) -> bool {
        let Some(echo) = after(line, "seq=").and_then(whole) else { return false };
        if self.answered.last().is_some_and(|last| echo + HALF_RANGE < *last) {
            self.answered.clear();
        }
        !self.answered.insert(echo)
    }

    /// Refuses what cannot be: more answers than echoes or than the summary counts, and a summary of other round trips.
    fn check(&self) -> Result<(), ImportError> {
        if let Some((at, word)) = &self.unreadable {
            return Err(PathError::RoundTrip { line: *at, word: word.clone() }.into());
        }
        let (replies, counted) = (self.times_ms.len() + self.unread, self.received.map(|count| count as usize));
        if let Some((sent, received)) = self.sent.zip(self.received).filter(|(sent, received)| received > sent) {
            return Err(Contradiction::echoes([sent, received]).into());
        }
        if let Some(counted) = counted.filter(|counted| replies > *counted) {
            return Err(Contradiction::Replies { replies, summary: counted }.into());
        }
        let Some([min, mean, max]) = self.summary else { return Ok(()) };
        if !(min..=max).contains(&mean) {
            return Err(Contradiction::MeanOutside { mean, min, max }.into());
        }
        // Without a summary of the same replies nothing can be compared.
        if counted != Some(replies) || replies == 0 || self.duplicates + self.unread > 0 || self.below || self.windows {
            return Ok(());
        }
        let own = self.times_ms.iter().sum::<f64>() / replies as f64;
        // The summary has three decimals, and is cut there.
        let tolerance = self.rounding_ms + 0.0011 + 0.001 * mean;
        if (own - mean).abs() > tolerance {
            return Err(Contradiction::MeanOfReplies { mean, replies: own }.into());
        }
        Ok(())
    }
}

/// The shortest median of which whole milliseconds are within 5 %, ms.
const COARSE_BELOW_MS: f64 = 10.0;

fn close(session: Option<Session>, reading: &mut TextReading) {
    let Some(session) = session else { return };
    if let Err(reason) = session.check() {
        return reading.refuse(session.line, reason);
    }
    let Session {
        line, text, peer, bytes, windows, times_ms, below, unread, duplicates, sent, received, summary, ..
    } = session;
    if unread > 0 {
        reading.refuse(line, PathError::TooManyReplies { most: MAX_ROWS, others: unread });
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
    let spec = Spec { block: bytes.max(1), ..Spec::new("icmp", Pattern::Pingpong) };
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
            reading.refuse(line, PathError::NoSummary(peer.clone()));
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
        row.remarks.push("only the summary, no round trips: the value is the mean, not the median".into());
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
        reading.refuse(line, PathError::NoReply(peer));
        return;
    }
    for row in &mut rows {
        row.figure("echoes_sent", f64::from(ping.sent));
        row.figure("echoes_received", f64::from(ping.received));
        if duplicates > 0 {
            row.figure("duplicates", duplicates as f64);
            row.remarks.push(format!("{duplicates} duplicate replies are left out"));
        }
        let seen = u32::try_from(times_ms.len() + unread).unwrap_or(u32::MAX);
        if seen > 0 && seen < ping.received && !windows {
            row.remarks.push(format!("the text has {seen} of {} replies: the value is from these", ping.received));
        }
        if ping.received < ping.sent {
            row.flag(Verdict::Loss, format!("{} of {} echoes were lost", ping.sent - ping.received, ping.sent));
        }
    }
    reading.imported.push(Imported {
        tool: "ping".into(),
        kind: RunKind::Rr,
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
