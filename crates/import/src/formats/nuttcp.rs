//! nuttcp: the summary line of a test, its `-fparse` form, and both ends' lines of its verbose output.
//!
//! MB are 2^20 bytes, Mbps 10^6 bit/s (nuttcp's manual). The rate of the summary is the receiver's.

use std::collections::BTreeMap;

use model::{Count, DatagramTally, Direction, Interval, Pattern, RunKind, Spec, Stop, Verdict};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, StreamError};
use crate::listing::{Certainty, Imported, Row, TextReading, unless_reported};
use crate::text::{MAX_ROWS, block, half_digit, lines, ns, number, resolution, whole};

/// nuttcp.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "nuttcp", help: "nuttcp's lines, -fparse and verbose output", detect, read };

const MIB: f64 = 1_048_576.0;

fn detect(text: &str) -> Certainty {
    let known = |line: &str| {
        let verbose = line.contains(" real seconds = ") && (line.contains("nuttcp-t:") || line.contains("nuttcp-r:"));
        // A line that contradicts itself has the shape of one, too.
        let of_test = |sum: Result<Sum, ImportError>| sum.is_ok_and(|sum| sum.whole) || line.contains("%TX");
        verbose || Sum::of(line).is_some_and(of_test) || matches!(Sum::parsed(line), Some(Ok(_)))
    };
    if lines(text).any(|(_, line)| known(line)) { Certainty::Certain } else { Certainty::No }
}

/// A line of figures.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sum {
    bytes: f64,
    seconds: f64,
    bps: f64,
    figures: BTreeMap<&'static str, f64>,
    /// Of the whole test, not of an interval.
    whole: bool,
    /// The relative rounding error of the rate.
    rounding: f64,
}

impl Sum {
    /// `4.8125 MB /   2.01 sec =   20.0461 Mbps 84 %TX 0 %RX 0 retrans 0.11 msRTT`, or the same up to the rate.
    fn of(line: &str) -> Option<Result<Self, ImportError>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [size, "MB", "/", seconds, "sec", "=", rate, "Mbps", rest @ ..] = words.as_slice() else { return None };
        let mut figures = BTreeMap::new();
        for pair in rest.windows(2) {
            let name = match pair[1] {
                "%TX" => "sender_cpu_percent",
                "%RX" => "receiver_cpu_percent",
                "retrans" => "retransmits",
                "host-retrans" => "host_retransmits",
                "msRTT" => "connect_rtt_ns",
                _ => continue,
            };
            let scale = if pair[1] == "msRTT" { 1e6 } else { 1.0 };
            figures.extend(number(pair[0]).map(|value| (name, value * scale)));
        }
        for four in rest.windows(4) {
            if let [lost, "/", all, "drop/pkt"] = four {
                figures.extend(number(lost).map(|lost| ("lost_packets", lost)));
                figures.extend(number(all).map(|all| ("packets", all)));
            }
        }
        Some(Self::checked(size, seconds, rate, figures, rest.contains(&"%TX")))
    }

    /// `megabytes=2.4375 real_seconds=1.02 rate_Mbps=20.0338 tx_cpu=50 rx_cpu=0 retrans=0`.
    fn parsed(line: &str) -> Option<Result<Self, ImportError>> {
        let keys: BTreeMap<&str, &str> = line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let [size, seconds, rate] = ["megabytes", "real_seconds", "rate_Mbps"].map(|key| keys.get(key).copied());
        let (size, seconds, rate) = (size?, seconds?, rate?);
        let names = [
            ("tx_cpu", "sender_cpu_percent", 1.0),
            ("rx_cpu", "receiver_cpu_percent", 1.0),
            ("retrans", "retransmits", 1.0),
            ("drop", "lost_packets", 1.0),
            ("pkt", "packets", 1.0),
            ("rtt_ms", "connect_rtt_ns", 1e6),
        ];
        let figure = |(key, name, scale): (&str, &'static str, f64)| Some((name, number(keys.get(key)?)? * scale));
        Some(Self::checked(size, seconds, rate, names.into_iter().filter_map(figure).collect(), true))
    }

    /// `nuttcp-r: 2.4375 MB in 1.02 real seconds = 2452.18 KB/sec = 20.0882 Mbps`.
    fn verbose(line: &str) -> Option<Result<Self, ImportError>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, size, "MB", "in", seconds, "real", "seconds", "=", _, "KB/sec", "=", rate, "Mbps", ..] =
            words.as_slice()
        else {
            return None;
        };
        Some(Self::checked(size, seconds, rate, BTreeMap::new(), true))
    }

    fn checked(
        size: &str,
        seconds: &str,
        rate: &str,
        figures: BTreeMap<&'static str, f64>,
        whole: bool,
    ) -> Result<Self, ImportError> {
        let read = |word: &str| number(word).ok_or_else(|| ImportError::word(word, "a number"));
        let sum = Self {
            bytes: read(size)? * MIB,
            seconds: read(seconds)?,
            bps: read(rate)? * 1e6,
            figures,
            whole,
            rounding: resolution(rate),
        };
        if let Some((lost, all)) = sum.figures.get("lost_packets").zip(sum.figures.get("packets"))
            && whole
            && lost > all
        {
            return Err(Contradiction::Lost { lost: *lost as u64, all: *all as u64 }.into());
        }
        // The rate is computed from a finer time than the printed one.
        let rounding = resolution(size) + resolution(rate) + 2.0 * half_digit(seconds) / sum.seconds;
        if rounding.is_finite() && (sum.bytes * 8.0 / sum.seconds / sum.bps).ln().abs() > rounding + 1e-3 {
            let printed = [size, seconds, rate].map(str::to_owned);
            return Err(Contradiction::PrintedRate(Box::new(printed)).into());
        }
        Ok(sum)
    }
}

/// The facts of the verbose lines.
#[derive(Default)]
struct Session {
    version: Option<String>,
    target: Option<String>,
    block: Option<u64>,
    flows: Option<u32>,
    udp: bool,
    rate_bps: Option<u64>,
    /// The far end sends.
    reverse: bool,
    sender: Option<(u32, Sum)>,
    receiver: Option<(u32, String, Sum)>,
    intervals: Vec<Sum>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut session = Session::default();
    for (at, line) in lines(text) {
        if reading.imported.len() + session.intervals.len() >= MAX_ROWS {
            reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "lines of figures" });
            break;
        }
        let end = line.trim_start().get(..9).filter(|end| ["nuttcp-t:", "nuttcp-r:"].contains(end));
        if let Some(end) = end {
            let rest = &line.trim_start()[9..];
            let own = if end == "nuttcp-t:" { session.sender.is_some() } else { session.receiver.is_some() };
            if own && rest.trim_end().ends_with(": socket") {
                close(std::mem::take(&mut session), &mut reading);
            }
            session.facts(end, rest.trim());
        }
        match Sum::of(line).or_else(|| Sum::parsed(line)).or_else(|| end.and_then(|_| Sum::verbose(line))) {
            Some(Ok(sum)) if end == Some("nuttcp-t:") => session.sender = Some((at, sum)),
            Some(Ok(sum)) if end == Some("nuttcp-r:") => session.receiver = Some((at, line.to_owned(), sum)),
            Some(Ok(sum)) if sum.whole => {
                session.receiver = Some((at, line.to_owned(), sum));
                close(std::mem::take(&mut session), &mut reading);
            }
            Some(Ok(sum)) => session.intervals.push(sum),
            Some(Err(reason)) => reading.refuse_text(at, line, reason),
            None => {}
        }
    }
    close(session, &mut reading);
    reading
}

impl Session {
    /// Reads the facts in a line of one end.
    fn facts(&mut self, end: &str, rest: &str) {
        if let Some(version) = rest.strip_prefix('v').and_then(|rest| rest.strip_suffix(": socket")) {
            self.version = Some(version.to_owned());
        }
        for part in rest.split(", ") {
            if let Some(bytes) = part.strip_prefix("buflen=") {
                self.block = block(number(bytes).unwrap_or(0.0));
            } else if let Some(flows) = part.strip_prefix("nstream=") {
                self.flows = flows.parse().ok();
            } else if part.starts_with("port=") {
                self.udp = part.split_whitespace().any(|word| word == "udp");
            }
        }
        if let Some(limit) = rest.strip_prefix("rate limit = ") {
            let mut words = limit.split_whitespace();
            self.rate_bps =
                words.next().and_then(number).map(|megabits| (megabits * 1e6) as u64).filter(|bps| *bps > 0);
        }
        // The end that connects is the client.
        if let Some(host) = rest.strip_prefix("connect to ") {
            self.target = host.split_whitespace().next().map(str::to_owned);
            self.reverse = end == "nuttcp-r:";
        }
    }
}

fn close(session: Session, reading: &mut TextReading) {
    let Session { version, target, block, flows, udp, rate_bps, reverse, sender, receiver, intervals } = session;
    let unheard = receiver.is_none();
    let summary = receiver.or_else(|| sender.clone().map(|(at, sum)| (at, String::new(), sum)));
    let Some((at, text, sum)) = summary else {
        if !intervals.is_empty() {
            reading.refuse(0, StreamError::IntervalsAlone(intervals.len()));
        }
        return;
    };
    let parts: f64 = intervals.iter().map(|part| part.bytes).sum();
    if parts > sum.bytes * 1.05 + MIB * 0.001 {
        return reading.refuse(at, Contradiction::Intervals { intervals: parts / MIB, total: sum.bytes / MIB });
    }
    let packets = sum.figures.get("packets").copied().and_then(whole);
    let transport = if udp || packets.is_some() { "udp" } else { "tcp" };
    let direction = if reverse { Direction::Reverse } else { Direction::Send };
    let mut spec = Spec { direction, rate_bps, ..Spec::new(transport, Pattern::Stream) };
    spec.block = block.unwrap_or(spec.block);
    spec.flows = flows.unwrap_or(1).clamp(1, Spec::MAX_FLOWS);
    spec.stop = Stop::TimeNs(ns(sum.seconds).max(1));
    let mut row = Row::new(spec, sum.bps, at, &text);
    if sum.bytes > 0.0 || sum.bps > 0.0 {
        row.rounded(sum.rounding);
    }
    let (near, far) = (&mut row.trial.near, &mut row.trial.far);
    let (from, to) = if reverse { (far, near) } else { (near, far) };
    if !unheard {
        to.report(Count::ReceivingNs, ns(sum.seconds));
    }
    if let Some((_, sent)) = &sender {
        from.report(Count::SendingNs, ns(sent.seconds));
    }
    let lost = sum.figures.get("lost_packets").copied().and_then(whole);
    if let Some((lost, all)) = lost.zip(packets) {
        from.datagrams = Some(DatagramTally { sent: all, ..DatagramTally::default() });
        to.datagrams = Some(DatagramTally { received: all.saturating_sub(lost), ..DatagramTally::default() });
        if lost > 0 {
            row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost"));
        }
    }
    let mut start_ns = 0;
    for part in &intervals {
        let end_ns = start_ns + ns(part.seconds);
        let bytes_received = part.bytes.round() as u64;
        let receiver = if reverse { &mut row.trial.near } else { &mut row.trial.far };
        receiver.intervals.push(Interval { start_ns, end_ns, bytes_received, ..Interval::default() });
        start_ns = end_ns;
    }
    if unheard {
        row.remarks.push("the receiver's line is missing: a sender's rate, not a receiver's".into());
    } else {
        row.figure("receiver_rate_bps", sum.bps);
    }
    row.figure("bytes_as_printed", sum.bytes);
    for (name, value) in &sum.figures {
        row.figure(name, *value);
    }
    if let Some((_, sent)) = sender {
        row.figure("sender_rate_bps", sent.bps);
    }
    // Without its verbose lines nuttcp does not say which end sent.
    let direction = if target.is_none() { vec!["direction"] } else { Vec::new() };
    reading.imported.push(Imported {
        tool: "nuttcp".into(),
        version,
        kind: RunKind::Stream,
        target,
        rows: vec![row],
        assumed: [unless_reported(block), direction].concat(),
        ..Imported::default()
    });
}
