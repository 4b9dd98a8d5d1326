//! iperf 2's text, of a client and of a server (2.0 to 2.2).
//!
//! A client counts what it sent, and over UDP repeats the server's report. The last line of a connection covers the whole test.

mod bounces;

use std::collections::{BTreeMap, BTreeSet};

use model::{Count, DatagramTally, Direction, FlowTally, Interval, Pattern, RunKind, SocketFacts, Spec, Stop, Verdict};

use super::ImportFormat;
use super::iperf::{Line, REVERSE, Who, check_loss, check_sum, flag_rounding};
use crate::error::{Contradiction, ImportError, IperfError};
use crate::listing::{Certainty, Imported, Refused, Row, TextReading, unless_reported};
use crate::text::{MAX_ROWS, block, lines, ns, number};

/// iperf 2's text.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "iperf2", help: "iperf 2's text, of a client or of a server", detect, read };

fn detect(text: &str) -> Certainty {
    let opens = lines(text).any(|(_, line)| banner(line).is_some() || connected(line).is_some());
    if opens && lines(text).any(|(_, line)| Line::of(line).is_some()) { Certainty::Certain } else { Certainty::No }
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
    /// The addresses of both ends.
    ends: Option<[String; 2]>,
    /// Bytes of a request and of its reply (--bounceback).
    bounces: Option<[u64; 2]>,
}

fn connected(line: &str) -> Option<Connected<'_>> {
    let (name, rest) = line.trim_start().strip_prefix('[')?.split_once("] local ")?;
    let (local, peer) = rest.split_once(" connected with ")?;
    let name = name.trim();
    let address = |text: &str| {
        let (host, port) = text.split_once(" port ")?;
        let (host, port) = (host.split('%').next()?, port.split_whitespace().next()?);
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    };
    Some(Connected {
        number: name.trim_start_matches('*').parse().ok(),
        reverse: name.starts_with('*'),
        local_port: local.split_whitespace().next_back().and_then(|port| port.parse().ok()),
        peer: peer.split_whitespace().next()?,
        ends: address(local).zip(address(peer)).map(|(local, peer)| [local, peer]),
        bounces: bounces::sizes(peer),
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

/// A sum is of the whole test if it is at least this share of its longest connection.
const WHOLE: f64 = 0.9;

/// Connections that were measured together, and their lines.
#[derive(Default)]
struct Group<'a> {
    peers: BTreeSet<String>,
    lines: Vec<(u32, &'a str, Line<'a>)>,
    /// The server's reports to a client, by connection.
    reported: Vec<(u32, &'a str, Line<'a>)>,
    sockets: Vec<[String; 2]>,
    /// The connections that were opened, by line and number.
    opened: Vec<(u32, u32)>,
    bounces: Option<[u64; 2]>,
    unknown: BTreeSet<String>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let (mut setting, mut group) = (Setting::default(), Group::default());
    let (mut report, mut count) = (false, 0);
    for (at, line) in lines(text) {
        let trimmed = line.trim();
        if let Some(Banner { host, datagrams, port }) = banner(line) {
            if !group.lines.is_empty() {
                let open = close(&std::mem::take(&mut group), &setting, &mut reading);
                incomplete(&open, &mut reading);
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
                // A server's connection may end after the next one has begun.
                let opened = close(&std::mem::take(&mut group), &setting, &mut reading);
                group = Group { opened, ..Group::default() };
            }
            setting.note(&connected);
            group.opened.extend(connected.number.map(|number| (at, number)));
            group.peers.insert(connected.peer.to_owned());
            group.bounces = connected.bounces.or(group.bounces);
            group.sockets.extend(connected.ends);
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
        // Histograms, and the delays of each direction.
        if trimmed.contains("-PDF:") || trimmed.contains(" OWD Delays ") {
            continue;
        }
        match Line::of(line) {
            Some(Ok(_)) if count >= MAX_ROWS => {
                reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "lines of figures" });
                break;
            }
            Some(Ok(figures)) => {
                count += 1;
                let list = if std::mem::take(&mut report) { &mut group.reported } else { &mut group.lines };
                list.push((at, line, figures));
            }
            Some(Err(reason)) => reading.refuse_text(at, line, reason),
            None => {}
        }
    }
    let open = if group.lines.is_empty() { group.opened } else { close(&group, &setting, &mut reading) };
    incomplete(&open, &mut reading);
    reading
}

/// Refuses connections without a total.
fn incomplete(open: &[(u32, u32)], reading: &mut TextReading) {
    for (at, number) in open {
        reading.refuse(*at, IperfError::NoTotal(Some(*number)));
    }
}

/// A line of figures with its number and its text.
type Stated<'g, 'a> = &'g (u32, &'a str, Line<'a>);

/// The total of a connection in one direction: the line that covers the others.
///
/// # Errors
/// The last line of a connection that has intervals only.
fn total<'g, 'a>(lines: &[Stated<'g, 'a>]) -> Result<Stated<'g, 'a>, u32> {
    let length = |line: &Line<'_>| line.end_s - line.start_s;
    let longest = lines.iter().max_by(|a, b| length(&a.2).total_cmp(&length(&b.2))).ok_or(0_u32)?;
    let covers = |one: &Stated<'_, '_>| longest.2.start_s <= one.2.start_s && one.2.start_s < longest.2.end_s;
    if lines.iter().all(|one| covers(one) || one.2 == longest.2) { Ok(*longest) } else { Err(longest.0) }
}

/// What the connections of a group add up to, their totals, and the line of their sum.
struct Totals<'g, 'a> {
    flows: Vec<Stated<'g, 'a>>,
    sum: Option<Stated<'g, 'a>>,
}

/// # Errors
/// A connection has no total.
fn totals<'g, 'a>(group: &'g Group<'a>, setting: &Setting) -> Result<Totals<'g, 'a>, Refused> {
    let mut all: BTreeMap<(Who, bool), Vec<Stated<'g, 'a>>> = BTreeMap::new();
    for one in &group.lines {
        all.entry((one.2.who, setting.receives(&one.2))).or_default().push(one);
    }
    let (mut flows, mut sum) = (Vec::new(), None);
    for ((who, _), lines) in &all {
        match (who, total(lines)) {
            (Who::Sum, own) => sum = own.ok(),
            (Who::Flow(_), Ok(own)) => flows.push(own),
            (Who::Flow(number), Err(at)) => return Err(Refused::new(at, IperfError::NoTotal(Some(*number)))),
        }
    }
    let (connections, known) = (group.opened.len(), flows.len());
    if !setting.server && known > 0 && connections > known {
        return Err(Refused::new(flows[0].0, IperfError::Totals { connections, totals: known }));
    }
    let length = |one: &Stated<'_, '_>| one.2.end_s - one.2.start_s;
    let longest = flows.iter().map(length).fold(0.0, f64::max);
    Ok(Totals { sum: sum.filter(|sum| length(sum) >= WHOLE * longest), flows })
}

/// Ends a group. Returns the connections of a server that have no total yet.
fn close(group: &Group<'_>, setting: &Setting, reading: &mut TextReading) -> Vec<(u32, u32)> {
    match totals(group, setting) {
        Ok(totals) => {
            let ended = |number: u32| totals.flows.iter().any(|(.., line)| line.who == Who::Flow(number));
            let open = group.opened.iter().copied().filter(|(_, number)| setting.server && !ended(*number)).collect();
            take(group, totals, setting, reading);
            open
        }
        Err(refused) => {
            reading.refused.push(refused);
            Vec::new()
        }
    }
}

/// Takes the measurement of a group.
fn take(group: &Group<'_>, totals: Totals<'_, '_>, setting: &Setting, reading: &mut TextReading) {
    let Totals { flows, mut sum } = totals;
    // After a test in both directions a server adds connections of several tests up.
    let both_directions =
        [true, false].into_iter().all(|receives| setting.receiving.values().any(|own| *own == receives));
    let lines: Vec<&Line<'_>> = flows.iter().map(|(.., line)| line).collect();
    let mut remark = None;
    if let Some((at, text, line)) = sum
        && let Err(reason) = check_sum(line, &lines)
    {
        // 2.0 counts the first interval of each connection twice.
        let parts = group.lines.iter().map(|(.., part)| part).filter(|part| !lines.contains(part));
        let first = parts.filter(|part| part.who != Who::Sum && part.start_s == 0.0);
        let twice: Vec<&Line<'_>> = lines.iter().copied().chain(first).collect();
        match check_sum(line, &twice) {
            Ok(()) => {
                remark = Some("the [SUM] line has the first interval twice: the value is that of the connections");
            }
            Err(_) if both_directions => {}
            Err(_) => reading.refuse_text(*at, text, reason),
        }
        sum = None;
    }
    let Some(stated) = sum.or_else(|| flows.first().copied()) else { return };
    let (at, text, total) = stated;
    if let Some(row) = bounces::row(*at, text, total, group.bounces, setting.block) {
        return reading.imported.push(imported(RunKind::Rr, row, group, setting));
    }
    if group.bounces.is_some() {
        return reading.refuse_text(
            *at,
            text,
            ImportError::Without { what: "a test of round trips", lacks: "round trips" },
        );
    }
    let receives = flows.first().is_some_and(|(.., line)| setting.receives(line));
    let row = if flows.iter().any(|(.., line)| setting.receives(line) != receives) {
        both(group, &flows, setting, *at, text)
    } else {
        one_way(group, setting, &flows, stated, sum.is_some(), receives)
    };
    match row {
        Ok(mut row) => {
            row.remarks.extend(remark.map(str::to_owned));
            reading.imported.push(imported(RunKind::Stream, row, group, setting));
        }
        Err(reason) => reading.refuse_text(*at, text, reason),
    }
}

/// A test in one direction, whose line is that of the sum or of a connection.
///
/// # Errors
/// Counts that contradict each other.
fn one_way<'a>(
    group: &Group<'a>,
    setting: &Setting,
    flows: &[Stated<'_, 'a>],
    (at, text, total): Stated<'_, 'a>,
    summed: bool,
    receives: bool,
) -> Result<Row, Contradiction> {
    let server_rate: Option<f64> = (!flows.is_empty() && group.reported.len() == flows.len())
        .then(|| group.reported.iter().map(|(.., line)| line.bps).sum());
    let own = if summed { total.bps } else { flows.iter().map(|(.., line)| line.bps).sum() };
    let transport = if setting.datagrams { "udp" } else { "tcp" };
    let direction = if receives { Direction::Reverse } else { Direction::Send };
    let mut spec = Spec { direction, ..Spec::new(transport, Pattern::Stream) };
    spec.block = setting.block.unwrap_or(spec.block);
    spec.flows = u32::try_from(flows.len()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    let elapsed = ns(total.end_s - total.start_s);
    spec.stop = Stop::TimeNs(elapsed.max(1));
    let mut row = Row::new(spec, server_rate.unwrap_or(own), *at, text);
    let printed: Vec<&Line<'_>> = match server_rate {
        Some(_) => group.reported.iter().map(|(.., line)| line).collect(),
        None if summed => vec![total],
        None => flows.iter().map(|(.., line)| line).collect(),
    };
    flag_rounding(&mut row, printed.iter().map(|line| line.errors[1]).sum());
    if receives {
        row.trial.near.report(Count::ReceivingNs, elapsed);
        row.figure("receiver_rate_bps", own);
    } else {
        row.trial.near.report(Count::SendingNs, elapsed);
        row.figure("sender_rate_bps", own);
        match server_rate {
            Some(rate) => row.figure("receiver_rate_bps", rate),
            // What was sent says nothing of the datagrams that arrived.
            None if setting.datagrams => {
                row.trial.value = None;
                row.flag(Verdict::ByteCountMismatch, "the server's report is missing, so there is no goodput");
            }
            None => row.remarks.push("counted by the client: a sender's rate, not a receiver's".into()),
        }
    }
    row.figure("bytes_as_printed", total.bytes);
    if server_rate.is_some() || group.reported.is_empty() {
        losses(&mut row, setting, if setting.server { flows } else { &[] }, &group.reported)?;
    } else {
        let (some, all) = (group.reported.len(), flows.len());
        row.remarks.push(format!("{some} of {all} server reports arrived: what was received and lost is unknown"));
    }
    series(&mut row, group, total, summed, receives);
    Ok(row)
}

fn imported(kind: RunKind, mut row: Row, group: &Group<'_>, setting: &Setting) -> Imported {
    row.trial.near.flows = (0..)
        .zip(group.sockets.iter().cloned())
        .map(|(flow, [local, peer])| FlowTally {
            flow,
            socket: SocketFacts { local: Some(local), peer: Some(peer), ..SocketFacts::default() },
            ..FlowTally::default()
        })
        .collect();
    Imported {
        tool: "iperf".into(),
        version: Some("2.x".into()),
        kind,
        // A server may have had clients on several hosts at once.
        target: setting.target.clone().or_else(|| group.peers.first().filter(|_| group.peers.len() == 1).cloned()),
        rows: vec![row],
        assumed: unless_reported(group.bounces.map(|[request, _]| request).or(setting.block)),
        unknown: group.unknown.iter().cloned().collect(),
        by_server: setting.server,
        ..Imported::default()
    }
}

/// Both directions over the same connections (--full-duplex) or two (-d): each end counted what it sent, and what it received.
///
/// # Errors
/// Counts that contradict each other.
fn both(
    group: &Group<'_>,
    flows: &[Stated<'_, '_>],
    setting: &Setting,
    at: u32,
    text: &str,
) -> Result<Row, Contradiction> {
    let of =
        |receives: bool| flows.iter().map(|(.., line)| line).filter(move |line| setting.receives(line) == receives);
    let rate = |receives: bool| of(receives).map(|line| line.bps).sum::<f64>();
    let span = |receives: bool| of(receives).map(|line| ns(line.end_s - line.start_s)).max().unwrap_or(0);
    let transport = if setting.datagrams { "udp" } else { "tcp" };
    let mut spec = Spec { direction: Direction::Both, ..Spec::new(transport, Pattern::Stream) };
    spec.block = setting.block.unwrap_or(spec.block);
    spec.flows = u32::try_from(of(false).count()).unwrap_or(u32::MAX).clamp(1, Spec::MAX_FLOWS);
    spec.stop = Stop::TimeNs(span(false).max(span(true)).max(1));
    let mut row = Row::new(spec, rate(false) + rate(true), at, text);
    row.trial.near.report(Count::SendingNs, span(false));
    row.trial.near.report(Count::ReceivingNs, span(true));
    row.figure("outbound_sender_rate_bps", rate(false));
    row.figure("reverse_receiver_rate_bps", rate(true));
    row.carried(false, rate(true));
    if !setting.datagrams {
        row.carried(true, rate(false));
        row.remarks.push("the outbound rate is the sender's, not the receiver's".into());
    } else if group.reported.len() == of(false).count() {
        let arrived = group.reported.iter().map(|(.., line)| line.bps).sum::<f64>();
        row.trial.value = Some(arrived + rate(true));
        row.carried(true, arrived);
        let reported: Vec<&Line<'_>> = group.reported.iter().map(|(.., line)| line).collect();
        for (outbound, lines) in [(true, reported), (false, of(true).collect())] {
            lost_of_way(&mut row, outbound, &lines)?;
        }
    } else {
        // What was sent says nothing of the datagrams that arrived.
        row.trial.value = None;
        row.flag(Verdict::ByteCountMismatch, "the server's report is missing, so there is no goodput");
    }
    flag_rounding(&mut row, flows.iter().map(|(.., line)| line.errors[1]).sum());
    Ok(row)
}

/// Datagrams of one of both directions, as the lines of its receiver have them.
///
/// # Errors
/// More lost than sent.
fn lost_of_way(row: &mut Row, outbound: bool, lines: &[&Line<'_>]) -> Result<(), Contradiction> {
    let Some(counts) = lines.iter().map(|line| line.lost()).collect::<Option<Vec<(u64, u64)>>>() else { return Ok(()) };
    let (mut lost, mut all) = (0_u64, 0_u64);
    for count in counts {
        check_loss(count)?;
        (lost, all) = (lost.saturating_add(count.0), all.saturating_add(count.1));
    }
    let (near, far) = (&mut row.trial.near, &mut row.trial.far);
    let (sender, receiver) = if outbound { (near, far) } else { (far, near) };
    sender.datagrams.get_or_insert_default().sent = all;
    receiver.datagrams.get_or_insert_default().received = all.saturating_sub(lost);
    let way = if outbound { "outbound" } else { "reverse" };
    row.figure(&format!("{way}_packets"), all as f64);
    row.figure(&format!("{way}_lost_packets"), lost as f64);
    if lost > 0 {
        row.flag(Verdict::Loss, format!("{lost} of {all} datagrams were lost ({way})"));
    }
    Ok(())
}

/// Datagrams as the receiving end reported them.
///
/// # Errors
/// More lost than sent.
fn losses(
    row: &mut Row,
    setting: &Setting,
    own: &[Stated<'_, '_>],
    reported: &[(u32, &str, Line<'_>)],
) -> Result<(), Contradiction> {
    let printed: Vec<&Line<'_>> =
        own.iter().map(|(.., line)| line).chain(reported.iter().map(|(.., line)| line)).collect();
    if printed.is_empty() || !setting.datagrams {
        return Ok(());
    }
    let counts: Option<Vec<(u64, u64)>> = printed.iter().map(|line| line.lost()).collect();
    let Some(counts) = counts else {
        let without = printed.iter().find(|line| line.lost().is_none());
        row.remarks.extend(without.map(|line| line.no_loss().to_owned()));
        return Ok(());
    };
    for count in &counts {
        check_loss(*count)?;
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
    Ok(())
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
