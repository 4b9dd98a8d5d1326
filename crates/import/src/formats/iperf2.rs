//! iperf 2's text, of a client and of a server (2.0 to 2.2).
//!
//! A client counts what it sent, and over UDP repeats the server's report. The last line of a connection covers the whole test.

mod bounces;

use std::collections::{BTreeMap, BTreeSet};

use model::{Count, DatagramTally, Direction, Interval, Spec, Stop, Verdict};

use super::Format;
use super::iperf::{Line, REVERSE, Who};
use crate::listing::{Confidence, Imported, Reading, Row, unless_reported};
use crate::text::{MAX_ROWS, block, lines, ns, number};

/// iperf 2's text.
pub(super) const FORMAT: Format =
    Format { name: "iperf2", help: "iperf 2's text, of a client or of a server", detect, read };

fn detect(text: &str) -> Confidence {
    let opens = lines(text).any(|(_, line)| banner(line).is_some() || connected(line).is_some());
    if opens && lines(text).any(|(_, line)| Line::of(line).is_some()) { Confidence::Certain } else { Confidence::No }
}

/// `Client connecting to HOST, TCP port 5001` or `Server listening on TCP port 5001`.
struct Banner<'a> {
    /// A client's host.
    host: Option<&'a str>,
    datagrams: bool,
    port: Option<u16>,
}

fn banner(line: &str) -> Option<Banner<'_>> {
    let line = line.trim();
    let (host, rest) = match line.strip_prefix("Client connecting to ") {
        Some(rest) => rest.split_once(", ").map(|(host, rest)| (Some(host), rest))?,
        None => (None, line.strip_prefix("Server listening on ")?),
    };
    let datagrams = rest.starts_with("UDP port");
    let port = rest.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    (datagrams || rest.starts_with("TCP port")).then_some(Banner { host, datagrams, port })
}

/// `[ *1] local A port P connected with B port Q`.
struct Connected<'a> {
    number: Option<u32>,
    /// Its payload flows from the server to the client (`*`).
    reverse: bool,
    local_port: Option<u16>,
    peer: &'a str,
}

fn connected(line: &str) -> Option<Connected<'_>> {
    let (name, rest) = line.trim_start().strip_prefix('[')?.split_once("] local ")?;
    let (local, peer) = rest.split_once(" connected with ")?;
    let name = name.trim();
    Some(Connected {
        number: name.trim_start_matches('*').parse().ok(),
        reverse: name.starts_with('*'),
        local_port: local.split_whitespace().next_back().and_then(|port| port.parse().ok()),
        peer: peer.split_whitespace().next()?,
    })
}

/// The facts of the banner.
#[derive(Debug, Clone, Default)]
struct Setting {
    target: Option<String>,
    server: bool,
    datagrams: bool,
    block: Option<u64>,
    /// The port of this end's server. A client has one too if its server calls back (-d, -r).
    listening: Option<u16>,
    /// Whether each connection brings payload to this end.
    receiving: BTreeMap<u32, bool>,
}

impl Setting {
    /// Whether this end receives the payload that a line is about.
    fn receives(&self, line: &Line<'_>) -> bool {
        let known = if let Who::Flow(number) = line.who { self.receiving.get(&number) } else { None };
        known.copied().unwrap_or(self.server != (line.role == Some(REVERSE)))
    }

    /// Notes a connection: one that this end's server accepted brings payload, one that it made takes it, unless the direction is
    /// reversed. A server that calls back marks its own connection as reversed, and sends on it.
    fn note(&mut self, connected: &Connected<'_>) {
        let accepted = self.listening.is_some() && connected.local_port == self.listening;
        let receives = if accepted { !connected.reverse } else { connected.reverse && !self.server };
        if let (Some(number), true) = (connected.number, self.listening.is_some()) {
            self.receiving.insert(number, receives);
        }
    }
}

/// Largest difference of a sum and what it adds up, which are printed with three digits.
const SUM_ROUNDING: f64 = 0.05;

/// Connections that were measured together, and their lines.
#[derive(Default)]
struct Group<'a> {
    peer: Option<String>,
    lines: Vec<(u32, &'a str, Line<'a>)>,
    /// The server's reports to a client, by connection.
    reported: Vec<(u32, &'a str, Line<'a>)>,
    unknown: BTreeSet<String>,
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let (mut setting, mut group) = (Setting::default(), Group::default());
    let (mut report, mut count) = (false, 0);
    for (at, line) in lines(text) {
        let trimmed = line.trim();
        if let Some(Banner { host, datagrams, port }) = banner(line) {
            if !group.lines.is_empty() {
                close(std::mem::take(&mut group), &setting, &mut reading);
            }
            // A server that has accepted a client calls that client back.
            let calls_back = host.is_some() && setting.server && !setting.receiving.is_empty();
            if !calls_back {
                let listening = if host.is_none() { port } else { setting.listening };
                let target = host.map(str::to_owned);
                setting = Setting { target, server: host.is_none(), datagrams, listening, ..Setting::default() };
            }
        } else if let Some(connected) = connected(line) {
            if !group.lines.is_empty() {
                close(std::mem::take(&mut group), &setting, &mut reading);
            }
            setting.note(&connected);
            group.peer = Some(connected.peer.to_owned());
        } else if let Some(rest) =
            trimmed.strip_prefix("Write buffer size:").or_else(|| trimmed.strip_prefix("Sending "))
        {
            setting.block = rest.split_whitespace().next().and_then(|word| block(number(word)?));
        } else if trimmed.starts_with("[ ID]") {
            let known = ["[", "ID]", "Interval", "Transfer", "Bandwidth", "Jitter", "Lost/Total", "Datagrams"];
            group.unknown.extend(trimmed.split_whitespace().filter(|word| !known.contains(word)).map(str::to_owned));
        }
        if trimmed.ends_with("Server Report:") {
            report = true;
        }
        // Histograms.
        if trimmed.contains("-PDF:") {
            continue;
        }
        match Line::of(line) {
            Some(Ok(_)) if count >= MAX_ROWS => {
                reading.refuse(at, format!("more than {MAX_ROWS} lines of figures; the others were not imported"));
                break;
            }
            Some(Ok(figures)) => {
                count += 1;
                let list = if std::mem::take(&mut report) { &mut group.reported } else { &mut group.lines };
                list.push((at, line, figures));
            }
            Some(Err(reason)) => reading.refuse(at, format!("{reason}: '{trimmed}'")),
            None => {}
        }
    }
    if !group.lines.is_empty() {
        close(group, &setting, &mut reading);
    }
    reading
}

fn close(group: Group<'_>, setting: &Setting, reading: &mut Reading) {
    // The line of a connection with the longest interval is its total.
    let mut totals: BTreeMap<(Who, bool), &(u32, &str, Line<'_>)> = BTreeMap::new();
    let length = |line: &Line<'_>| line.end_s - line.start_s;
    for one in &group.lines {
        let kept = totals.entry((one.2.who, setting.receives(&one.2))).or_insert(one);
        if length(&one.2) >= length(&kept.2) {
            *kept = one;
        }
    }
    let flows: Vec<_> = totals.iter().filter(|((who, _), _)| *who != Who::Sum).map(|(_, one)| *one).collect();
    let sum = totals.iter().find(|((who, _), _)| *who == Who::Sum).map(|(_, one)| *one);
    // After a test in both directions a server adds connections of several tests up.
    let own: f64 = flows.iter().map(|(.., line)| line.bytes).sum();
    let sum = sum.filter(|(.., line)| flows.is_empty() || (line.bytes / own - 1.0).abs() < SUM_ROUNDING);
    let Some((at, text, total)) = sum.or_else(|| flows.first().copied()) else { return };
    if let Some(row) = bounces::row(*at, text, total, setting.block) {
        reading.imported.push(imported("rr", row, group, setting));
        return;
    }
    let receives = flows.first().is_some_and(|(.., line)| setting.receives(line));
    if flows.iter().any(|(.., line)| setting.receives(line) != receives) {
        let row = both(&flows, setting, *at, text);
        reading.imported.push(imported("stream", row, group, setting));
        return;
    }
    let server_rate: Option<f64> =
        (group.reported.len() == flows.len()).then(|| group.reported.iter().map(|(.., line)| line.bps).sum());
    let summed = sum.is_some();
    let own = if summed { total.bps } else { flows.iter().map(|(.., line)| line.bps).sum() };
    let transport = if setting.datagrams { "udp" } else { "tcp" };
    let direction = if receives { Direction::Reverse } else { Direction::Send };
    let mut spec = Spec { direction, ..Spec::new(transport, "stream") };
    spec.block = setting.block.unwrap_or(spec.block);
    spec.flows = u32::try_from(flows.len()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    spec.stop = Stop::TimeNs(ns(length(total)).max(1));
    let mut row = Row::new(spec, server_rate.unwrap_or(own), *at, text);
    let elapsed = ns(length(total));
    if receives {
        row.trial.near.report(Count::ReceivingNs, elapsed);
        row.figure("receiver_rate_bps", own);
    } else {
        row.trial.near.report(Count::SendingNs, elapsed);
        row.figure("sender_rate_bps", own);
        match server_rate {
            Some(rate) => row.figure("receiver_rate_bps", rate),
            None => row.remarks.push("counted by the client: a sender's rate, not a receiver's".into()),
        }
    }
    row.figure("bytes_as_printed", total.bytes);
    if server_rate.is_some() || group.reported.is_empty() {
        losses(&mut row, setting, if setting.server { &flows } else { &[] }, &group.reported);
    } else {
        let (some, all) = (group.reported.len(), flows.len());
        row.remarks
            .push(format!("{some} of {all} reports of the server arrived: what was received and lost is not known"));
    }
    series(&mut row, &group, total, summed, receives);
    reading.imported.push(imported("stream", row, group, setting));
}

fn imported(kind: &str, row: Row, group: Group<'_>, setting: &Setting) -> Imported {
    Imported {
        tool: "iperf".into(),
        version: Some("2.x".into()),
        kind: kind.into(),
        target: setting.target.clone().or(group.peer),
        rows: vec![row],
        assumed: unless_reported(setting.block),
        unknown: group.unknown.into_iter().collect(),
        ..Imported::default()
    }
}

/// Both directions over the same connections (--full-duplex): each end counted what it sent, and what it received.
fn both(flows: &[&(u32, &str, Line<'_>)], setting: &Setting, at: u32, text: &str) -> Row {
    let of =
        |receives: bool| flows.iter().map(|(.., line)| line).filter(move |line| setting.receives(line) == receives);
    let rate = |receives: bool| of(receives).map(|line| line.bps).sum::<f64>();
    let span = |receives: bool| of(receives).map(|line| ns(line.end_s - line.start_s)).max().unwrap_or(0);
    let transport = if setting.datagrams { "udp" } else { "tcp" };
    let mut spec = Spec { direction: Direction::Both, ..Spec::new(transport, "stream") };
    spec.block = setting.block.unwrap_or(spec.block);
    spec.flows = u32::try_from(of(false).count()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    spec.stop = Stop::TimeNs(span(false).max(span(true)).max(1));
    let mut row = Row::new(spec, rate(false) + rate(true), at, text);
    row.trial.near.report(Count::SendingNs, span(false));
    row.trial.near.report(Count::ReceivingNs, span(true));
    row.figure("outbound_sender_rate_bps", rate(false));
    row.figure("reverse_receiver_rate_bps", rate(true));
    row.remarks.push("outbound it is the sender's rate, not the receiver's".into());
    row
}

/// Datagrams as the receiving end reported them.
fn losses(row: &mut Row, setting: &Setting, own: &[&(u32, &str, Line<'_>)], reported: &[(u32, &str, Line<'_>)]) {
    let printed: Vec<&Line<'_>> =
        own.iter().map(|(.., line)| line).chain(reported.iter().map(|(.., line)| line)).collect();
    let counts: Vec<(u64, u64)> = printed.iter().filter_map(|line| line.lost()).collect();
    if counts.is_empty() || !setting.datagrams {
        return;
    }
    let (lost, all) =
        counts.iter().fold((0, 0), |sum: (u64, u64), one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    let (near, far) = (&mut row.trial.near, &mut row.trial.far);
    let (sender, receiver) = if setting.server { (far, near) } else { (near, far) };
    sender.datagrams = Some(DatagramTally { sent: all, ..DatagramTally::default() });
    receiver.datagrams = Some(DatagramTally { received: all.saturating_sub(lost), ..DatagramTally::default() });
    row.figure("packets", all as f64);
    row.figure("lost_packets", lost as f64);
    if let Some(jitter) = printed.iter().filter_map(|line| line.jitter_ns()).reduce(f64::max) {
        row.figure("jitter_ns", jitter);
    }
    if lost > 0 {
        row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost"));
    }
}

/// The near end's series: the lines other than totals.
fn series(row: &mut Row, group: &Group<'_>, total: &Line<'_>, summed: bool, receives: bool) {
    let whose = if summed { Who::Sum } else { total.who };
    if !summed && row.spec.flows > 1 {
        return;
    }
    let parts = group.lines.iter().map(|(.., line)| line).filter(|line| line.who == whose && *line != total);
    row.trial.near.intervals = parts
        .map(|line| {
            let bytes = line.bytes.round() as u64;
            let (bytes_sent, bytes_received) = if receives { (0, bytes) } else { (bytes, 0) };
            Interval { start_ns: ns(line.start_s), end_ns: ns(line.end_s), bytes_sent, bytes_received, transactions: 0 }
        })
        .collect();
}
